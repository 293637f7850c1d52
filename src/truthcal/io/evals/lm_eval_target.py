"""The correct options of an lm-eval sample: its target is an index, a text, a letter, or a list of indices."""

import ast
import string
from collections.abc import Iterator
from typing import Any

from truthcal.core.params import shown


class Unknown(Exception):
    """The correct option cannot be determined; the message says why."""


def find_correct(
    sample: dict[str, Any], likelihoods: list[float], texts: list[str] | None
) -> tuple[frozenset[int], bool]:
    """Return the indices of the correct options, and whether the metric `acc` fits them.

    The harness turns a target of digits into an index. If another reading is possible and only that fits `acc`, it
    counts. If no reading is possible and there are two options, `acc` tells which of them is correct.
    """
    n, top = len(likelihoods), likelihoods.index(max(likelihoods))
    acc = _accuracy(sample)
    readings = list(dict.fromkeys(_readings(sample.get("target"), n, texts)))
    for reading in readings:
        if acc is None or acc == (top in reading):
            return reading, True
    if readings:
        return readings[0], False
    if acc is not None and n == 2:
        return frozenset([top if acc else 1 - top]), True
    raise Unknown(f"the target {shown(sample.get('target'))} is none of its {n} options, by index, text or letter.")


def _accuracy(sample: dict[str, Any]) -> bool | None:
    """Return whether the most likely option is correct by the metric `acc`; None if the sample has no such metric."""
    acc = sample.get("acc")
    if not isinstance(acc, bool | int | float):
        return None
    if acc not in (0, 1):
        problem = f"`acc` is {acc:g}, so several options are correct to some degree, as in TruthfulQA mc2"
        raise Unknown(f"{problem}, and the file does not say which. Use a task with one correct option, such as mc1.")
    return bool(acc)


def _readings(target: Any, n: int, texts: list[str] | None) -> Iterator[frozenset[int]]:
    """Yield the possible meanings of a target, the most likely one first: sets of indices of options."""
    indices = _as_indices(target)
    if indices and all(0 <= index < n for index in indices):
        yield indices
    text = str(target).strip()
    matches = [i for i, option in enumerate(texts or []) if option.strip() == text]
    if len(matches) == 1:
        yield frozenset(matches)
    letter = text.strip("().").upper()
    if len(letter) == 1 and letter in string.ascii_uppercase[:n] and not matches:
        yield frozenset([string.ascii_uppercase.index(letter)])


def _as_indices(target: Any) -> frozenset[int]:
    """Return a target as indices: 1, "1", [0, 2] or "[0, 2]"; empty if it is something else."""
    if isinstance(target, str):
        try:
            target = ast.literal_eval(target.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return frozenset()
    items = target if isinstance(target, list) else [target]
    whole = all(isinstance(item, int) and not isinstance(item, bool) for item in items)
    return frozenset(items) if whole else frozenset()
