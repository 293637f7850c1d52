"""Words of the report: verdicts, the meaning of each number, assumptions, measures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truthcal.core.sketch import Sketch
from truthcal.measures.registry import MEASURES
from truthcal.results.assessment import Assessment
from truthcal.results.measures import MeasureTable, MeasureValue
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.over_time import TimeAssessment
from truthcal.results.segments import SegmentTable
from truthcal.results.text import count, join_words, mood, one_line

# Name of a piece of evidence in an Assessment -> its meaning.
MEANING = {
    "error": "Root mean square difference between predictions and the frequencies of the event: 0.05 is five "
    "percentage points. It is estimated from bins of neighbouring predictions, without noise, and is never smaller "
    "than the bias.",
    "bias": "Mean prediction minus mean outcome: positive if predictions are too high on average.",
    "ATB": "Averaged two-bin calibration error. On average, no lie improves it. Compare it with the value that chance "
    "alone gives, not with 0. The excess is the part beyond chance.",
    "miscalibrated?": "How often calibrated predictions look as bad as these by chance. A small value is "
    "evidence that these predictions are not calibrated.",
    "too good?": "How often calibrated predictions are as close to their outcomes as these by chance. A small value "
    "has several possible causes: the predictions were fitted on these outcomes, outcomes exclude each other, or the "
    "sample was stratified by the outcome.",
    "worst range": "A lower limit of the mean error in the range of predictions where this limit is largest: above 0 "
    "if predictions are too high there. It holds for all ranges at once, so that choosing the worst one does not "
    "exaggerate it.",
    "detectable": "The smallest errors of these shapes that the test detects with this power. With a shift, all "
    "predictions are too high or too low by this amount, but no true probability is below 0 or above 1. With a "
    "log-odds slope below 1 they are too extreme, above 1 too timid. Smaller errors, and errors of other shapes, may "
    "be present.",
    "Brier score": "Mean squared error of the predictions. It reflects both calibration and skill. Discrimination "
    "is how well predictions separate outcomes; uncertainty is the score of always predicting the mean outcome. "
    "Miscalibration and discrimination include noise, so they are not 0 even for calibrated predictions.",
    "event": "The label of the outcomes whose probability is predicted; all other outcomes count as no event.",
    "rows": "Rows with a weight above 0. The effective sample size is the number of independent rows of equal weight "
    "with the same information.",
    "groups": "Rows of the same group may depend on each other in any way; different groups are independent. Tests, "
    "intervals and bands rest on the differences between groups.",
}

# Table -> how to read it.
TABLES = {
    "Segments": "Clearest findings first. Intervals are for each segment alone; an error that may be 0 has an upper "
    "limit only. Adjusted p-values take the number of tests into account. Not significant does not mean calibrated: a "
    "segment with few rows proves little.",
    "Windows of time": "Each window is named by its start. The intervals hold for all windows at once, those of the "
    "bias and those of the error separately; an error that may be 0 has an upper limit only. The test for change "
    "compares rows with similar predictions only: a constant error is no change, and neither are other predictions.",
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A verdict in two words and its mood: "good", "bad", "unsure", "odd" or "neutral"."""

    text: str
    mood: str


def model_chips(
    assessment: Assessment, table: SegmentTable | None, over_time: TimeAssessment | None = None
) -> list[Chip]:
    """Word the verdict on a model and, if there are any, the number of its miscalibrated segments and its change."""
    a = assessment
    open_question = not a.detectable.largest <= a.notable_error or a.test.impossible > 0
    unsure = a.kind == "calibrated" and open_question  # no green tick if the predictions may still be wrong
    text = "unusually close" if a.kind == "too good" else a.kind
    chips = [Chip(text.capitalize(), "unsure" if unsure else mood(a.kind))]
    if table is not None and table.miscalibrated:
        chips.append(Chip(f"{len(table.miscalibrated):,} of {count(len(table.tested), 'segment')} off", "bad"))
    if over_time is not None and over_time.kind == "changed":
        chips.append(Chip(f"Changed around {over_time.change.label}", "bad"))
    return chips


def segment_chip(kind: str) -> Chip:
    """Word the verdict on a segment."""
    return Chip(kind.capitalize(), mood(kind))


def verdict_lines(
    assessment: Assessment, table: SegmentTable | None, over_time: TimeAssessment | None = None
) -> list[str]:
    """Word the verdict on a model, then that on its segments if any of them is miscalibrated, and any change."""
    lines = join_sentences(typeset(assessment.verdict))
    if table is not None and table.miscalibrated:
        lines.append(f"{'And' if mood(assessment.kind) == 'bad' else 'But'} {table.verdict}")
    if over_time is not None and over_time.kind == "changed":
        lines.append(typeset(over_time.verdict))
    return lines


def join_sentences(text: str) -> list[str]:
    """Split a verdict into the paragraphs of the report: a line that ends with a semicolon continues on the next."""
    return text.replace(";\n", "; ").splitlines()


def reason_without_p(assessment: Assessment | MulticlassAssessment) -> str:
    """Return the first sentence of a verdict in the report that does not follow from the p-value beside it, or ""."""
    impossible = assessment.kind == "miscalibrated" and assessment.test.impossible > 0
    if not impossible and assessment.kind != "too good":
        return ""
    sentence = assessment.verdict.splitlines()[0]
    return sentence if assessment.kind == "too good" or "exactly 0" in sentence else ""


def typeset(text: str) -> str:
    """Use the sign in the report's words that a terminal may not have."""
    return text.replace("<=", "\u2264")


def merge_measures(tables: Sequence[MeasureTable]) -> list[tuple[MeasureValue, str, list[float]]]:
    """Return each measure that any model has: its properties, its description in words, and its values."""
    rows = {row.name: row for table in tables for row in table.rows}
    return [
        (rows[name], describe_measure(name), [table.get(name, math.nan) for table in tables])
        for name in MEASURES
        if name in rows
    ]


def describe_measure(name: str) -> str:
    """Describe a measure in words: the first line of its docstring; nothing if Python runs without them (-OO)."""
    return (MEASURES[name].function.__doc__ or "").strip().split("\n")[0].replace("`", "")


def merge_notes(tables: Sequence[MeasureTable]) -> dict[str, list[str]]:
    """Return each note in words on a value, with the names of its measures."""
    notes: dict[str, list[str]] = {}
    for table in tables:
        for note, names in table.notes().items():
            notes[note] = list(dict.fromkeys([*notes.get(note, []), *names]))
    return notes


def assumptions(models: Mapping[str, tuple[Assessment | MulticlassAssessment, Sketch | None]]) -> list[str]:
    """Word the assumptions behind the numbers; those of only some models start with the names of these models."""
    names: dict[str, list[str]] = {}
    for name, model in models.items():
        for line in _word_assumptions(*model):
            names.setdefault(line, []).append(name)
    return [line if len(some) == len(models) else f"{', '.join(some)}: {line}" for line, some in names.items()]


def _word_assumptions(assessment: Assessment | MulticlassAssessment, sketch: Sketch | None) -> list[str]:
    test, interval = assessment.test, assessment.error
    error = "The interval of the error (an approximation) contains all sizes that are consistent with these rows."
    if math.isnan(interval.low):
        error = f"The error has no interval: {_word_sentence(interval.why)}"
    method = f"The calibration test uses {test.measure} ({test.method}): {_word_sentence(test.why)}"
    return [_word_source(assessment.n, sketch), method, error]


def word_independence(assessments: Sequence[Assessment | MulticlassAssessment]) -> str:
    """Word what the report assumes about rows that belong together."""
    if all(map(_is_grouped, assessments)):
        return "Groups of rows are independent. Rows of the same group may depend on each other."
    return (
        "Rows are independent. If several rows belong to the same person, game or day, p-values are too small and "
        "intervals too narrow, unless the column that says so is named (groups=, --group)."
    )


def word_rows(models: Mapping[str, Assessment | MulticlassAssessment], group_name: str | None) -> str:
    """Word in one sentence, for the top of the page, which rows are taken as independent."""
    grouped = {name: found.n_groups for name, found in models.items() if _is_grouped(found)}
    if not grouped:
        return "Rows are assumed to be independent."
    by = f" by {one_line(group_name)}" if group_name and group_name.strip() else ""
    numbers = set(grouped.values())
    groups = f": {count(numbers.pop() or 0, 'group')}" if len(numbers) == 1 else ""
    if len(grouped) == len(models):
        return f"Rows are grouped{by}{groups}."
    return f"Rows of {join_words(list(grouped))} are grouped{by}{groups}; others are assumed to be independent."


def _is_grouped(assessment: Assessment | MulticlassAssessment) -> bool:
    """Whether the words about groups apply: several rows belong together."""
    return assessment.n_groups is not None and assessment.n_groups < assessment.n


def _word_source(n: int, sketch: Sketch | None) -> str:
    rows = "one row" if n == 1 else count(n, "row")
    if sketch is None:
        return f"All numbers are computed from {rows} with a weight above 0, not from a sketch."
    bounds = sketch.atb()
    return (
        f"All numbers are computed from a sketch of {rows} with {sketch.n_buckets:,} buckets. ATB is "
        f"{bounds.value:.6g}; its exact value is certain to lie between {bounds.low:.6g} and {bounds.high:.6g}."
    )


def _word_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
