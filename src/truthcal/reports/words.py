"""What the report says in words: verdicts, what each number means, comparisons, what was assumed."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from truthcal._assessments import Assessment
from truthcal._verdicts import Comparison
from truthcal.sketch import Sketch

# Kind of verdict -> mood: which icon and colour go with the words.
_MOODS = {"calibrated": "good", "too few rows": "unsure", "too good": "odd"}
# Name of a piece of evidence in an Assessment -> what it means.
MEANING = {
    "error (rms)": "About how far predictions are from the true chances, noise taken out: 0.05 is five percentage "
    "points. Errors that change sign along the predictions partly cancel.",
    "bias": "Mean prediction minus mean outcome: positive if predictions are too high on average.",
    "ATB": "Averaged two-bin calibration error, the measure that no lie improves, on average. Compare it with what "
    "chance alone gives, not with 0.",
    "miscalibrated?": "How often calibrated predictions would look as bad as these, by chance alone. Small means: not "
    "calibrated.",
    "too good?": "How often calibrated predictions would look as good as these. Small means: better than honest "
    "predictions can be.",
    "largest bias": "Where predictions are most off in one direction: mean prediction minus mean outcome there.",
    "detectable": "What these rows could show: a smaller error may have stayed hidden.",
    "Brier score": "Mean squared error of the predictions, in which calibration and skill both count. Discrimination "
    "is what predictions know; uncertainty is the score of always predicting the mean outcome.",
    "rows": "Rows that count: those of weight 0 do not.",
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A verdict in two words and its mood: "good", "bad", "unsure" or "odd"."""

    text: str
    mood: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the report: its name, itself, its noise, what it means."""

    name: str
    value: str
    noise: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Compared:
    """Two models: the verdict, and the table behind it."""

    title: str
    verdict: str
    header: list[str]
    rows: list[list[str]]


def chip(kind: str) -> Chip:
    """The chip of a kind of verdict."""
    text = "too good to be honest" if kind == "too good" else kind
    return Chip(text.capitalize(), _MOODS.get(kind, "bad"))


def numbers(assessment: Assessment) -> list[Number]:
    """The evidence, as it prints, with what it means."""
    return [Number(name, typeset(value), typeset(noise), MEANING[name]) for name, value, noise in assessment._rows()]


def typeset(text: str) -> str:
    """Text of a terminal as a page has it."""
    return text.replace("<=", "\u2264")


def compared(labels: tuple[str, str], comparison: Comparison) -> Compared:
    """What `compare` found, with short names of the models."""
    named = dataclasses.replace(comparison, names=labels)
    (_, *header), *rows = named._lines()
    return Compared(" and ".join(labels), named.verdict, header, rows)


def assumed(assessments: Mapping[str, Assessment]) -> list[str]:
    """What the numbers rest on; what is not true of all models, with the names of those."""
    found: dict[str, list[str]] = {}
    for name, assessment in assessments.items():
        for line in _assumed(assessment):
            found.setdefault(line, []).append(name)
    every = len(assessments)
    return [line if len(names) == every else f"{', '.join(names)}: {line}" for line, names in found.items()]


def _assumed(assessment: Assessment) -> list[str]:
    a, interval = assessment, assessment.rms_interval
    found = [
        _reduced(a),
        f"The test of calibration is that of {a.test.measure} ({a.test.method}): {_sentence(a.test.why)}",
    ]
    start = "The interval of the error" if not math.isnan(interval.low) else "The error has no interval"
    found.append(f"{start}: {_sentence(interval.why)}")
    return found


def _reduced(assessment: Assessment) -> str:
    summary, rows = assessment._summary, f"{assessment.n:,} row{'' if assessment.n == 1 else 's'}"
    if not isinstance(summary, Sketch):
        return f"All numbers come from the {rows} themselves, not from a sketch of them."
    bounds = summary.atb()
    return (
        f"{rows} were reduced to a sketch of {summary.n_buckets:,} buckets. ATB is {bounds.value:.6g}; its exact value "
        f"is certain to lie between {bounds.low:.6g} and {bounds.high:.6g}."
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
