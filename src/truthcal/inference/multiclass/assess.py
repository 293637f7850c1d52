"""The verdict on predictions with many classes: can they be trusted, and which classes are wrong?"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.class_rows import ClassRows
from truthcal.core.parallel import one_blas_thread
from truthcal.core.points import excess
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.inference.multiclass.calibration_test import multiclass_test
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.column_order import suspect_column_order
from truthcal.inference.multiclass.confusion import confusion_of
from truthcal.inference.multiclass.detectable import detectable_slopes
from truthcal.inference.multiclass.entry import MultilabelInput
from truthcal.inference.multiclass.error_size import multiclass_error_size
from truthcal.inference.multiclass.null_law import GroupedClasses, null_law_of
from truthcal.inference.multiclass.slope import slope_of, tempered
from truthcal.inference.segments import assess_segments
from truthcal.inference.statistic import Plan
from truthcal.measures.multiclass import multiclass_brier, multiclass_noise_floor, vector_atb_of
from truthcal.results.assessment import Assessment
from truthcal.results.dependence import few_groups
from truthcal.results.multiclass import MulticlassAssessment, word_classes, word_slopes
from truthcal.results.segments import SegmentTable
from truthcal.results.text import count, percent, plural, rows_in_groups, upper_limit

_Ints = NDArray[np.int64]

_POWER = 0.8
# "Unusually close" requires a p-value five times smaller, as for two classes.
_STRICTER = 5.0
# Share of the error that a slope must explain for the word "overconfident" or "underconfident".
_EXPLAINED = 0.5
_MIN_ROWS, _BUCKETS = 30, 4096


@one_blas_thread()
def assess_classes(
    rows: ClassRows, plan: Plan, alpha: float, level: float, groups: _Ints | None = None
) -> MulticlassAssessment:
    """Assess rows with three classes or more. `groups`: numbers of the groups of rows that belong together."""
    cells = ClassCells.of(rows)
    grouped = None if groups is None else GroupedClasses.of(cells, groups)
    law = null_law_of(cells) if grouped is None else grouped.null_law()
    test = multiclass_test(rows, plan, cells, grouped, law)
    # Half of the level is for all classes together, and half for each class.
    slopes, classes = detectable_slopes(cells, law, alpha / 2.0, _POWER), _class_table(rows, alpha / 2.0, level, groups)
    found = MulticlassAssessment(
        kind="",
        verdict="",
        definition="vector",
        error=multiclass_error_size(cells, level, groups),
        **_values(rows, grouped),
        test=test,
        pvalue_too_good=test.less,
        slope=slope_of(rows, level, groups),
        detectable_slopes=slopes,
        classes=classes,
        confusion=confusion_of(rows, alpha, groups),
        labels=rows.labels,
        n=rows.n,
        n_effective=1.0 / rows.one_row,
        warnings=(),
        n_groups=test.n_groups,
        n_effective_groups=test.n_effective_groups,
        _rows=rows,
        _groups=groups,
    )
    found = replace(found, kind=_kind(found, cells, alpha))
    suspicion, reason = suspect_column_order(rows)
    order = [f"{suspicion[:1].lower()}{suspicion[1:]} {reason}"] if suspicion else []
    return replace(found, verdict=_verdict_text(found, alpha, suspicion), warnings=(*order, *_warnings(found, rows)))


def _values(rows: ClassRows, grouped: GroupedClasses | None) -> dict[str, float]:
    """Vector ATB, its noise floor and excess, and the Brier score, by field of an assessment."""
    value, brier = vector_atb_of(rows), multiclass_brier(rows)
    own, one = 2.0 * float(np.sum(rows.w**2 * brier)) / rows.total**2, rows.one_row
    noise_floor = multiclass_noise_floor(rows)
    if grouped is not None:
        own, one, noise_floor = grouped.own_atb, grouped.one_group, grouped.own_atb
    brier_score = float(rows.w @ brier) / rows.total
    return {"atb": value, "noise_floor": noise_floor, "excess": excess(value, own, one), "brier": brier_score}


def two_classes(
    rows: ClassRows, one: Assessment, alpha: float, level: float, groups: _Ints | None
) -> MulticlassAssessment:
    """The assessment of two classes, from that of the second one: vector ATB is twice its ATB."""
    found = _from_binary(one, _class_table(rows, alpha, level, groups), rows.labels, "vector", rows)
    return replace(
        found,
        verdict=f"{found.verdict}{_word_event(rows.labels)}",
        atb=2.0 * one.atb,
        noise_floor=2.0 * one.noise_floor,
        excess=2.0 * one.excess,
        slope=slope_of(rows, level, groups),
        confusion=confusion_of(rows, alpha, groups),
        _groups=groups,
    )


def _word_event(labels: tuple[Any, ...]) -> str:
    """Say which of two classes the verdict is about, unless they are 0 and 1."""
    return "" if labels == (0, 1) else f"\nThe event is {labels[1]!r}, the second of the two classes."


def many_labels(rows: MultilabelInput, one: Assessment, alpha: float, level: float) -> MulticlassAssessment:
    """The assessment of independent columns, from that of all entries together."""
    columns = {label: rows.column(k) for k, label in enumerate(rows.labels)}
    grouped = len(np.unique(rows.groups)) < len(rows.groups)
    sketches = {
        label: Sketch(_BUCKETS).update(
            column.y_true, column.y_proba, column.sample_weight, groups=column.groups if grouped else None
        )
        for label, column in columns.items()
    }
    table = _table_of(sketches, alpha / 2.0, level, "column")
    found = _from_binary(one, table, rows.labels, "multilabel", rows)
    if not table.miscalibrated or one.test.greater <= alpha / 2.0:
        return found
    start = "Miscalibrated: errors of columns differ, so that all together show less."
    lines = start, _word_error(found), word_classes(table.miscalibrated, table.noun)
    return replace(found, kind="miscalibrated", verdict="\n".join(filter(None, lines)))


def _from_binary(
    one: Assessment, table: SegmentTable, labels: tuple[Any, ...], definition: str, rows: Any
) -> MulticlassAssessment:
    # The rows of that assessment are the entries of the matrix, and its groups the rows, unless the user has groups.
    entries = one.verdict.replace(" rows in ", " entries in ")
    if one.n_groups == one.n // len(labels):
        entries = entries.replace(f"in {one.n_groups:,} groups", f"in {one.n_groups:,} rows")
    verdict = "\n".join(filter(None, [entries, word_classes(table.miscalibrated, table.noun)]))
    return MulticlassAssessment(
        kind=one.kind,
        verdict=one.verdict if definition == "vector" else verdict,
        definition=definition,
        error=one.error,
        atb=one.atb,
        noise_floor=one.noise_floor,
        excess=one.excess,
        brier=one.brier,
        test=one.test,
        pvalue_too_good=one.pvalue_too_good,
        slope=None,
        detectable_slopes=None,
        classes=table,
        confusion=None,
        labels=labels,
        n=one.n if definition == "vector" else one.n // len(labels),
        n_effective=one.n_effective if definition == "vector" else rows.n_effective,
        warnings=one.warnings,
        n_groups=one.n_groups,
        n_effective_groups=one.n_effective_groups,
        _rows=rows,
    )


def _class_table(rows: ClassRows, alpha: float, level: float, groups: _Ints | None = None) -> SegmentTable:
    """Assess each class against the rest, with Holm's adjustment."""
    sketches = {}
    for k, label in enumerate(rows.labels):
        one = rows.one_against_rest(k)
        sketches[label] = Sketch(_BUCKETS).update(one.y, one.p, one.w, groups=groups)
    return _table_of(sketches, alpha, level, "class")


def _table_of(sketches: dict[Any, Sketch], alpha: float, level: float, noun: str) -> SegmentTable:
    table = SketchTable.from_sketches(sketches, by=noun)
    return replace(assess_segments(table, alpha=alpha, confidence_level=level, min_rows=_MIN_ROWS), noun=noun)


def _kind(found: MulticlassAssessment, cells: ClassCells, alpha: float) -> str:
    test, slopes = found.test, found.detectable_slopes or (math.nan, math.nan)
    if found.pvalue <= alpha:
        return _direction(found, cells)
    if test.impossible:
        return "miscalibrated"
    if test.less <= alpha / _STRICTER:
        return "too good"
    no_limit = not found.error.high <= found.notable_error  # also without an interval
    if all(map(math.isnan, slopes)) and no_limit and test.information > 0.0:
        return "too few rows"
    return "unclear" if found.error.low > 0.0 or _slope_differs(found) else "calibrated"


def _slope_differs(found: MulticlassAssessment) -> bool:
    """Whether the interval of the slope excludes 1."""
    slope = found.slope
    return slope is not None and not math.isnan(slope.low) and not slope.low <= 1.0 <= slope.high


def _direction(found: MulticlassAssessment, cells: ClassCells) -> str:
    """Whether a significant error is mostly one of confidence: a slope must explain half of it."""
    slope, rows = found.slope, cells.rows
    if slope is None or not _slope_differs(found):
        return "miscalibrated"
    # In the same cells, so that both values are comparable.
    left = cells.with_rows(rows.with_proba(tempered(rows.p, slope.estimate)))
    before = found.test.statistic - found.test.null_mean
    after = float(left.statistic(left.errors)) - found.test.null_mean
    if after > (1.0 - _EXPLAINED) * before:
        return "miscalibrated"
    return "overconfident" if slope.estimate < 1.0 else "underconfident"


# --- in words ---------------------------------------------------------------------------------------------------------

_WRONG = {
    "overconfident": "Overconfident: predictions are too extreme",
    "underconfident": "Underconfident: predictions are not extreme enough",
    "miscalibrated": "Miscalibrated: predictions are off, and not only in how extreme they are",
}


def _verdict_text(found: MulticlassAssessment, alpha: float, suspicion: str) -> str:
    test, rows = found.test, rows_in_groups(found.n, found.n_groups)
    rows = f"{rows} with {len(found.labels)} classes"
    if found.kind == "miscalibrated" and test.impossible and found.pvalue > alpha:
        return (
            f"Miscalibrated: {test.impossible:,} of {rows} had a class with a predicted probability of exactly 0.\n"
            "This cannot happen to a calibrated forecaster. "
            f"Otherwise, miscalibration is not significant ({test.format_p(found.pvalue)})."
        )
    if found.kind in _WRONG:
        confusion = "" if found.confusion is None else found.confusion.sentence
        lines = (
            f"{_WRONG[found.kind]}.",
            suspicion,
            _word_error(found),
            word_classes(found.classes.miscalibrated, found.classes.noun),
            confusion,
        )
        return "\n".join(filter(None, lines))
    if found.kind == "too good":
        return (
            "Unusually close: predictions are closer to the classes than chance allows.\n"
            "Possible causes: they were fitted on these rows, or the sample was stratified by class."
        )
    if found.kind == "too few rows":
        return f"Too few rows: {rows} {plural(found.n, 'carries', 'carry')} too little information to detect errors."
    if test.information == 0.0:
        return f"Always right: one class has the probability 1 in every row, and none is wrong ({rows})."
    if found.kind == "unclear":
        start = f"Unclear: miscalibration is not significant, but {_word_doubt(found)}"
        return "\n".join(filter(None, [start, word_slopes(found.detectable_slopes)]))
    start = f"Calibrated as far as {rows} can tell."
    return "\n".join(filter(None, [start, _word_error(found), word_slopes(found.detectable_slopes)]))


def _word_doubt(found: MulticlassAssessment) -> str:
    """Word why a verdict is unclear: an interval that excludes no error, or a slope of 1."""
    slope = found.slope
    if found.error.low > 0.0 or slope is None:
        return _word_error(found, "the")
    seem = "overconfident" if slope.estimate < 1.0 else "underconfident"
    return f"predictions seem {seem} (slope {slope.size(2)}, {percent(slope.confidence_level)}: {slope.ends()})."


def _word_error(found: MulticlassAssessment, the: str = "The") -> str:
    """Word the size of the error for a verdict: an upper limit if it may be 0; nothing without an interval."""
    error, level = found.error, percent(found.error.confidence_level)
    if math.isnan(error.low):
        return ""
    if error.low == 0.0:
        return f"{the} error is at most {upper_limit(error.high)} ({level} confidence)."
    return f"{the} error is about {error.size(2)} ({level}: {error.ends()})."


def _warnings(found: MulticlassAssessment, rows: ClassRows) -> list[str]:
    test, warnings = found.test, []
    absent = [str(rows.labels[k]) for k in np.flatnonzero(np.bincount(rows.y, minlength=rows.n_classes) == 0)]
    if absent:
        names = ", ".join(absent[:5]) + (", ..." if len(absent) > 5 else "")
        warnings.append(
            f"{count(len(absent), 'column')} {plural(len(absent), 'has', 'have')} no rows of that class: {names}."
        )
    if test.impossible:
        wrong = f"{count(test.impossible, 'row')} had a class with a predicted probability of exactly 0"
        warnings.append(f"{wrong}; this cannot happen to a calibrated forecaster, whatever the p-value.")
    if 2.0 * found.n_effective < found.n:
        warnings.append(f"weights are uneven: the effective sample size is {found.n_effective:,.1f}, not {found.n:,}.")
    return [*warnings, *filter(None, [test.dependence, few_groups(found.n_effective_groups)])]
