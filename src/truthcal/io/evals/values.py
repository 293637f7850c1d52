"""Confidences and outcomes of single answers: text and numbers become probabilities, or an error says why not."""

import math
from typing import Any

from truthcal.core.params import shown
from truthcal.io.void_words import is_void

_OUTCOMES = {
    "c": 1.0, "correct": 1.0, "true": 1.0, "yes": 1.0, "y": 1.0, "right": 1.0, "pass": 1.0, "passed": 1.0,
    "i": 0.0, "incorrect": 0.0, "false": 0.0, "no": 0.0, "n": 0.0, "wrong": 0.0, "fail": 0.0, "failed": 0.0,
    "p": 0.5, "partial": 0.5,
}  # fmt: skip


def parse_confidence(value: Any, *, percent: bool = False) -> float | None:
    """Convert a confidence to a probability: 0.85, "0.85" or "85%"; None if it is missing.

    With `percent`, a number without "%" is a percentage, too. Raises ValueError with the reason and the cure: numbers
    above 1 are never taken for percentages, nor negative ones for logits, without being told.
    """
    if is_void(value):
        return None
    text = str(value).strip()
    is_percentage = percent or text.endswith("%")
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in text:
            raise ValueError
        number = float(text.removesuffix("%"))
    except ValueError:
        cure = 'write a number, text such as "0.85" or "85%", or null if it is missing'
        raise ValueError(f"{shown(value)} is not a confidence; {cure}.") from None
    probability = number / 100.0 if is_percentage else number
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"{shown(value)} is not a probability in [0, 1]. {_cure(number, is_percentage)}")
    return probability


def _cure(number: float, is_percentage: bool) -> str:
    if is_percentage:
        return "Percentages lie between 0% and 100%; correct or drop the row."
    if 1.0 < number <= 100.0:
        return 'If all numbers of this column are percentages, use --percent; or write "85%".'
    if number < 0.0 and math.isfinite(number):
        return "If it is a log-probability, write its exponential; if it is a logit, apply the sigmoid."
    return "Correct or drop the row."


def parse_outcome(value: Any) -> float | None:
    """Convert correctness to 0 or 1, or a fraction if it is one: true, 1, "C", "incorrect"; None if it is missing.

    Raises ValueError for other values.
    """
    if is_void(value):
        return None
    if isinstance(value, bool | int | float):
        return float(value)
    text = str(value).strip().casefold()
    return _OUTCOMES[text] if text in _OUTCOMES else float(text)
