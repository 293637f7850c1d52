"""Words of a report on many classes: verdicts, the meaning of each number, definitions."""

from collections.abc import Sequence

from truthcal.reports.class_data import ClassModelData
from truthcal.reports.wording import MEANING, Chip, join_sentences, typeset
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.text import mood

_OF_VECTOR = "Root of half of the sum over classes of the mean squared differences between predictions and frequencies"
_BRIER = (
    "Half of the squared distance between the predicted probabilities and the class that happened, averaged over rows."
)
_OWN_MEANING = {
    "error": f"{_OF_VECTOR}: with two classes, 0.05 is five percentage points. It is estimated from bins of "
    "neighbouring predictions, without noise.",
    "vector ATB": "The averaged two-bin calibration error of all classes together. On average, no lie improves it. "
    "Compare it with the value that chance alone gives, not with 0. The excess is the part beyond chance.",
    "too good?": "How often calibrated predictions are as close to the classes as these by chance. A small value has "
    "several possible causes: the predictions were fitted on these rows, or the sample was stratified by class.",
    "slope": "The factor by which all log-probabilities would have to be multiplied. Below 1, predictions are too "
    "extreme; above 1, not extreme enough. 1 / slope is known as the temperature.",
    "detectable": "The test detects predictions that are too extreme, or not extreme enough, by these slopes with this "
    "power. Smaller errors, and errors of other shapes, may be present.",
    "classes": "Each class against the rest. P-values are adjusted for the number of classes.",
    "Brier score": f"{_BRIER} It reflects both calibration and skill.",
}
# Name of a piece of evidence in a MulticlassAssessment -> its meaning.
CLASS_MEANING = MEANING | _OWN_MEANING
MULTILABEL_MEANING = CLASS_MEANING | {
    **{name: MEANING[name] for name in ("error", "too good?")},
    "columns": "Each column alone. P-values are adjusted for the number of columns.",
    "Brier score": "Mean squared error of the predictions of all columns. It reflects both calibration and skill.",
}


def class_meaning(assessments: Sequence[MulticlassAssessment]) -> dict[str, str]:
    """Return the meaning of each number that these assessments have."""
    meaning = CLASS_MEANING if assessments[0].definition == "vector" else MULTILABEL_MEANING
    names = {row.name for assessment in assessments for row in assessment.evidence()}
    return {name: text for name, text in meaning.items() if name in names}


def class_chips(assessment: MulticlassAssessment) -> list[Chip]:
    """Word the verdict on a model and, if there are any, the number of its miscalibrated classes."""
    a, table = assessment, assessment.classes
    # No green tick if the predictions may still be wrong.
    unsure = a.kind == "calibrated" and (not a.error.high <= a.notable_error or a.test.impossible > 0)
    text = "unusually close" if a.kind == "too good" else a.kind
    chips = [Chip(text.capitalize(), "unsure" if unsure else mood(a.kind))]
    if table.miscalibrated:
        tested = table.count_words(len(table.tested))
        chips.append(Chip(f"{len(table.miscalibrated):,} of {tested} off", "bad"))
    return chips


def class_verdict(assessment: MulticlassAssessment) -> list[str]:
    """Word the verdict on a model, and that on its classes if only some of them are miscalibrated."""
    lines, table = join_sentences(typeset(assessment.verdict)), assessment.classes
    if table.miscalibrated and mood(assessment.kind) != "bad":
        lines.append(f"But {table.verdict}")
    return lines


def word_outcomes(models: Sequence[ClassModelData]) -> str:
    """Word what the outcomes and predictions of a report on many classes are."""
    if models[0].assessment.definition != "vector":
        return (
            "Columns are independent events: any number of them may happen in a row. Columns of the same row may "
            "depend on each other."
        )
    return "Exactly one of the classes happens in each row, and the predicted probabilities of a row add up to 1."
