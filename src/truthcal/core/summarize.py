"""Rows or a sketch become a summary: the one entry point of measures, curves, tests and intervals."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import (
    Checked,
    as_columns,
    check_proba,
    check_report,
    check_rows,
    invalid,
    read_only,
    refuse_fractional,
)
from truthcal.core.group_column import check_groups
from truthcal.core.group_sums import GroupSums
from truthcal.core.neighbours import neighbour_z
from truthcal.core.points import PointGroups, Points
from truthcal.core.sample import Sample, relative_weights
from truthcal.core.sketch import Sketch
from truthcal.core.totals import Totals

# More rows than this are not sorted where a sketch serves as well: they are reduced to one with this many buckets. From
# here on that is faster, up to 30 times at 2^20 rows.
TOO_MANY_TO_SORT, BUCKETS = 1 << 15, 1 << 14
# A sketch serves as well if no bucket of different predictions has more than this share of the noise: tests merge
# points into 192 cells of equal noise anyway.
_LARGEST_BUCKET = 1.0 / 400.0


def given_sketch(
    y_true: object, y_proba: object, sample_weight: object, pos_label: object, groups: object = None
) -> Sketch | None:
    """The summary that was passed in place of all rows, a sketch; None if rows were passed."""
    if isinstance(y_true, Sketch):
        _refuse_beside_sketch(y_proba=y_proba, sample_weight=sample_weight, pos_label=pos_label, groups=groups)
        return y_true
    if y_proba is None:
        cure = '(y_true, y_proba), or the names of both columns after a data frame: (frame, "y", "p")'
        if isinstance(y_true, Mapping):  # a SketchTable
            cure = "one group of a SketchTable (table[key]), or table.total()"
        raise invalid("y_proba", f"is missing: pass {cure}.", TypeError)
    return None


def _refuse_beside_sketch(**arguments: object) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise invalid(name, "cannot be combined with a Sketch, whose rows are summarized; omit it.", TypeError)


def summarize(
    y_true: object,
    y_proba: object,
    sample_weight: object = None,
    pos_label: object = None,
    *,
    binary: bool = False,
    sketch_many: bool = False,
    groups: object = None,
) -> Sample | Sketch:
    """Check rows and sort them, or return the sketch that was passed in their place, or the sample of an assessment.

    Fractional outcomes are rejected if `binary`, and the summary then has `neighbour_z`. If `sketch_many`, more than
    2^15 rows are not sorted but reduced to a sketch, unless its buckets are too coarse for these predictions. With
    `groups`, which says which rows belong together, the summary has `group_sums` instead of `neighbour_z`.
    """
    if isinstance(y_true, Sample):
        return y_true
    sketch = given_sketch(y_true, y_proba, sample_weight, pos_label, groups)
    if sketch is not None:
        if binary:
            refuse_fractional_buckets(sketch.points())
        return sketch
    summary = _summarize_rows(y_true, y_proba, sample_weight, pos_label, binary, sketch_many)
    if groups is not None:
        rows = check_rows(y_true, y_proba, sample_weight, pos_label)
        summary.group_sums = group_rows(summary.points(), rows, groups, y_proba, sample_weight)
        summary.neighbour_z = None
    return summary


def _summarize_rows(
    y_true: object, y_proba: object, sample_weight: object, pos_label: object, binary: bool, sketch_many: bool
) -> Sample | Sketch:
    """Check rows, and summarize them by a sample or, if they are many, by a sketch."""
    truth, proba, *weight = as_columns(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
    w = weight[0] if weight else None
    if sketch_many and len(proba) > TOO_MANY_TO_SORT:
        sketch = Sketch(BUCKETS).update(truth, proba, _in_range(w), pos_label=pos_label)
        if binary and weight and pos_label is None and truth.dtype.kind == "f":  # a sketch with weights cannot tell
            refuse_fractional(truth)
        points = sketch.points()
        if binary:
            refuse_fractional_buckets(points)
        if _is_fine(points):
            outcomes = truth if pos_label is None else truth == pos_label
            if binary:
                sketch.neighbour_z = neighbour_z(proba, outcomes)
                sketch.impossible = _count_impossible(outcomes, proba, w)
            return sketch
    rows = check_rows(truth, proba, w, pos_label)
    if binary:
        refuse_fractional(rows.y)
    sample = Sample.from_checked(rows)
    sample.neighbour_z = neighbour_z(rows.p, rows.y) if binary else None
    return sample


def group_rows(points: Points, rows: Checked, groups: object, y_proba: object, sample_weight: object) -> GroupSums:
    """Check which rows belong together, and add up the errors of each group, for the points of these rows."""
    return GroupSums.of_rows(points, rows, check_groups(groups, y_proba, sample_weight))


def _in_range(w: NDArray[Any] | None) -> NDArray[Any] | None:
    """Scale weights that are too extreme for a sketch; others, and invalid ones, remain as they are."""
    if w is None or w.dtype.kind not in "fiu" or not w.size:
        return w
    largest = float(np.max(w))
    return relative_weights(w.astype(np.float64))[0] if largest > 1e60 or 0.0 < largest < 1e-30 else w


def _is_fine(points: Points) -> bool:
    """Whether a sketch distinguishes the predictions well enough to summarize rows."""
    mixed = points.wwv[points.high > points.low]
    return float(np.max(mixed, initial=0.0)) <= _LARGEST_BUCKET * float(np.sum(points.wwv))


def _count_impossible(y: NDArray[Any], p: NDArray[Any], w: NDArray[Any] | None) -> int:
    """Number of rows whose outcome had a predicted probability of exactly 0; a sketch cannot tell."""
    certain = np.flatnonzero((p == 0) | (p == 1))
    wrong = y[certain] != p[certain]
    return int(np.count_nonzero(wrong if w is None else wrong & (w[certain] > 0)))


def summarize_predictions(y_proba: object, sample_weight: object = None) -> Sample | Sketch:
    """Summarize predictions without outcomes: check and sort them, or return the sketch passed in their place."""
    if isinstance(y_proba, Sketch):
        _refuse_beside_sketch(sample_weight=sample_weight)
        return y_proba
    p = check_proba(y_proba, "y_proba")
    rows = check_report(p, p, sample_weight, name="y_proba")
    no_outcomes = read_only(np.zeros(len(rows.p), np.uint8))  # sorts faster than fractions
    return Sample.from_checked(rows._replace(y=no_outcomes))


def refuse_groups(sketch: Sketch, subject: str, instead: str) -> None:
    """Reject a sketch whose rows have groups where independent rows are assumed."""
    if sketch.flips is not None:
        problem = f"is a sketch whose rows belong together (`groups`), but {subject} assume independent rows."
        raise invalid("y_true", f"{problem} {instead}")


def refuse_labels(points: Points | Totals, hard: bool, name: str = "y_proba") -> None:
    """Reject predictions that are all exactly 0 or 1, unless they are meant to be: they are probably labels."""
    if not hard and points.information == 0.0:
        cure = "Pass `predict_proba`, or hard=True (--hard) to treat them as certain predictions."
        raise invalid(name, f"contains nothing but 0 and 1: labels from `predict`? {cure}")


def refuse_fractional_buckets(points: Points) -> None:
    """Reject buckets with fractional outcomes. They show without weights only."""
    if PointGroups.one(points).has_fractions.any():
        refuse_fractional(None)
