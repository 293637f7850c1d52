"""What the report says in words: verdicts, what each number means, comparisons, what was assumed."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from truthcal.core.sketch import Sketch
from truthcal.measures.registry import MEASURES, TENTS
from truthcal.reports.sanitize import rounded
from truthcal.results.assessment import Assessment, detects_large_errors
from truthcal.results.segments import SegmentTable
from truthcal.results.tests import Comparison

# Kind of verdict -> mood: which icon and colour go with the words.
_MOODS = {"calibrated": "good", "too few rows": "unsure", "too good": "odd"}
# Name of a piece of evidence in an Assessment -> what it means.
MEANING = {
    "error (rms)": "The root of ATB without noise: 0.05 is five percentage points. No larger than the root mean square "
    "error of the probabilities; predictions that are spread out and all off by 0.05 have 0.035 to 0.05. Errors of "
    "opposite sign at neighbouring predictions cancel in it.",
    "bias": "Mean prediction minus mean outcome: positive if predictions are too high on average.",
    "ATB": "Averaged two-bin calibration error, which no lie improves, on average. Compare it with what chance alone "
    "gives, not with 0; excess is what it has beyond chance.",
    "miscalibrated?": "How often calibrated predictions would look as bad as these, by chance alone. Small means: not "
    "calibrated.",
    "too good?": "How often calibrated predictions would look as good as these. Small means: better than honest "
    "predictions can be.",
    "largest bias": "Where predictions are most off in one direction: mean prediction minus mean outcome there. The "
    "place is chosen after the fact, so by chance alone it is larger than 0 even for calibrated predictions.",
    "detectable": "What these rows could show: a smaller error may have stayed hidden.",
    "Brier score": "Mean squared error of the predictions, in which calibration and skill both count. Discrimination "
    "is what predictions know; uncertainty is the score of always predicting the mean outcome. Miscalibration and "
    "discrimination are those of these very rows, noise included: above 0 even for calibrated predictions.",
    "rows": "Rows that count: those of weight 0 do not.",
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A verdict in two words and its mood: "good", "bad", "unsure", "odd" or "neutral"."""

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


def model_chips(assessment: Assessment, table: SegmentTable | None) -> list[Chip]:
    """The verdict on a model; beside it, how many of its segments are miscalibrated, if any is."""
    a = assessment
    text = "too good to be honest" if a.kind == "too good" else a.kind
    mood = "unsure" if a.kind == "calibrated" and _open(a) else _MOODS.get(a.kind, "bad")
    found = [Chip(text.capitalize(), mood)]
    if table is not None and table.miscalibrated:
        many = len(table.tested)
        among = f"{len(table.miscalibrated):,} of {many:,} segment{'' if many == 1 else 's'}"
        found.append(Chip(f"{among} off", "bad"))
    return found


def _open(assessment: Assessment) -> bool:
    """Whether predictions in which nothing wrong was found may be wrong all the same: then there is no green tick."""
    a = assessment
    return (
        not detects_large_errors(a.detectable, a.mean_proba) or a.test.impossible > 0
    )  # nor if it is not known how far


def segment_chip(kind: str) -> Chip:
    """The verdict on a segment: that nothing was found in it is no praise, since small ones show little."""
    return Chip("No sign", "neutral") if kind == "calibrated" else Chip(kind.capitalize(), _MOODS.get(kind, "bad"))


def verdict_lines(assessment: Assessment, table: SegmentTable | None) -> list[str]:
    """The verdict, then the one on the segments if any of them is miscalibrated."""
    found = typeset(assessment.verdict).splitlines()
    if table is not None and table.miscalibrated:
        start = "But" if assessment.kind in _MOODS else "And"
        found.append(f"{start} {table.verdict}")
    return found


def numbers(assessment: Assessment) -> list[Number]:
    """The evidence, as it prints, with what it means."""
    rows = [(row.name, row.text, row.explanation) for row in assessment.evidence(3)]
    return [Number(name, typeset(value), typeset(noise), MEANING[name]) for name, value, noise in rows]


def typeset(text: str) -> str:
    """Text of a terminal as a page has it."""
    return rounded(text).replace("<=", "\u2264")


def compared(labels: tuple[str, str], comparison: Comparison) -> Compared:
    """What `compare` found, with short names of the models."""
    named = dataclasses.replace(comparison, names=labels)
    (_, *header), lines = named.header(), [row.cells(3) for row in named.rows()]
    rows = [[_label(measure), *map(typeset, cells)] for measure, *cells in lines]
    return Compared(" and ".join(labels), named.verdict, header, rows)


def _label(measure: str) -> str:
    """Name of a row of a comparison; `compare` removes the noise of measures with tents."""
    return f"{MEASURES[measure].label} beyond chance" if measure in TENTS else measure


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
    if math.isnan(interval.low):
        found.append(f"The error has no interval: {_sentence(interval.why)}")
    else:
        found.append("The interval of the error holds each size of error that these rows do not speak against.")
    return found


def _reduced(assessment: Assessment) -> str:
    summary, rows = assessment._summary, "one row" if assessment.n == 1 else f"{assessment.n:,} rows"
    if not isinstance(summary, Sketch):
        return f"All numbers come from the {rows} that {'counts' if assessment.n == 1 else 'count'}, not from a sketch."
    bounds = summary.atb()
    return (
        f"All numbers come from {rows}, reduced to a sketch of {summary.n_buckets:,} buckets. ATB is "
        f"{bounds.value:.6g}; its exact value is certain to lie between {bounds.low:.6g} and {bounds.high:.6g}."
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
