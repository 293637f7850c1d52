"""Paired comparison of two forecasters of the same classes, by truthful scores: vector ATB and the Brier score."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.class_rows import ClassRows
from truthcal.core.neighbours import neighbour_z
from truthcal.core.parallel import one_blas_thread
from truthcal.inference.intervals import student_factor
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.error_size import multiclass_error_size
from truthcal.measures.multiclass import multiclass_brier, top_label, vector_influence_of
from truthcal.results.comparison import Comparison
from truthcal.results.intervals import ConfidenceInterval

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]

# Rows between which all products are taken.
_MOST_PAIRED = 1500


@dataclass(frozen=True, eq=False)
class ClassForecaster:
    """One forecaster's rows, the influence and the Brier score of each, the groups, and the size of the error."""

    rows: ClassRows
    influence: _Array
    scores: _Array
    groups: _Ints | None
    error: ConfidenceInterval

    @classmethod
    @one_blas_thread()
    def of(cls, rows: ClassRows, level: float, groups: _Ints | None) -> "ClassForecaster":
        """Compute what a comparison needs of one forecaster."""
        error = multiclass_error_size(ClassCells.of(rows), level, groups)
        return cls(rows, vector_influence_of(rows), multiclass_brier(rows), groups, error)


@one_blas_thread()
def compare_classes(a: ClassForecaster, b: ClassForecaster, level: float) -> Comparison:
    """Compare two forecasters of the same rows with many classes.

    The difference of the vector ATBs is that of the means of each row's influence. Its variance has a linear part, from
    the influences of rows (or groups), and a quadratic part, which is what remains if both are calibrated.
    """
    rows, groups = a.rows, a.groups
    values = [float(rows.w @ side.influence) / rows.total for side in (a, b)]
    quadratic = _quadratic_variance(a.rows, b.rows, groups)
    calibration = _interval(rows, 2.0 * (a.influence - b.influence), values[0] - values[1], quadratic, level, groups)
    briers = [float(rows.w @ side.scores) / rows.total for side in (a, b)]
    skill = _interval(rows, a.scores - b.scores, briers[0] - briers[1], 0.0, level, groups)
    return Comparison(
        measure="multiclass_atb",
        label="vector ATB",
        a=values[0],
        b=values[1],
        difference=values[0] - values[1],
        low=calibration[0],
        high=calibration[1],
        pvalue=calibration[2],
        brier_a=briers[0],
        brier_b=briers[1],
        brier_difference=briers[0] - briers[1],
        brier_low=skill[0],
        brier_high=skill[1],
        brier_pvalue=skill[2],
        error_a=a.error,
        error_b=b.error,
        confidence_level=level,
        n=rows.n,
        neighbour_z=None if groups is not None else _neighbour_z(a.rows, b.rows),
        n_groups=None if groups is None else int(groups.max()) + 1,
        n_effective_groups=None if groups is None else 1.0 / _one_cluster(rows, groups),
    )


def _neighbour_z(a: ClassRows, b: ClassRows) -> float | None:
    tops = top_label(a), top_label(b)
    return max((neighbour_z(top.p, top.y) for top in tops), key=lambda z: abs(z or 0.0))


def _one_cluster(rows: ClassRows, groups: _Ints | None) -> float:
    """One over the effective number of rows, or of groups."""
    return rows.one_row if groups is None else float(np.sum(np.bincount(groups, rows.w / rows.total) ** 2))


def _quadratic_variance(a: ClassRows, b: ClassRows, groups: _Ints | None) -> float:
    """Variance of the quadratic part of the difference, from the differences of products of pairs of rows or groups.

    A pair of rows adds w w' (<c, c'> k - <d, d'> l) with the errors c, d and the kernels k, l of both forecasters. The
    part of it that is linear in one row is removed by centring. Some rows are drawn if there are many.
    """
    from scipy.spatial.distance import cdist

    groups = np.arange(a.n) if groups is None else groups
    some = _drawn_rows(groups)
    products = np.zeros((len(some), len(some)))
    for rows, sign in ((a, 1.0), (b, -1.0)):
        p, errors = rows.p[some], rows.errors()[some]
        products += sign * (errors @ errors.T) * (1.0 - cdist(p, p, "cityblock") / 2.0)
    products *= np.outer(a.w[some], a.w[some]) / a.total**2
    starts = np.flatnonzero(np.diff(groups[some], prepend=-1))
    pairs = np.add.reduceat(np.add.reduceat(products, starts, axis=0), starts, axis=1)
    centred = pairs - pairs.mean(axis=0) - pairs.mean(axis=1)[:, None] + pairs.mean()
    many, all_groups = len(starts), int(groups.max()) + 1
    if many < 2:
        return 0.0
    np.fill_diagonal(centred, 0.0)
    return 2.0 * float(np.sum(centred**2)) * (all_groups * (all_groups - 1.0)) / (many * (many - 1.0))


def _drawn_rows(groups: _Ints) -> _Ints:
    """The rows of some groups, always the same ones, sorted by group: so many rows, or those of two groups."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    drawn = np.random.default_rng(0).permutation(len(sizes))
    few = max(int(np.searchsorted(np.cumsum(sizes[drawn]), _MOST_PAIRED, side="right")), 2)
    wanted = np.zeros(len(sizes), np.bool_)
    wanted[drawn[:few]] = True
    return order[wanted[groups[order]]]


def _interval(
    rows: ClassRows, of_rows: _Array, difference: float, quadratic: float, level: float, groups: _Ints | None
) -> tuple[float, float, float]:
    """Interval of a difference and two-sided p-value, from the values of rows whose mean is linear in the outcomes."""
    w, one = rows.w / rows.total, _one_cluster(rows, groups)
    parts = w * (of_rows - float(w @ of_rows))
    if groups is not None:
        parts = np.bincount(groups, parts).astype(np.float64)
    if one >= 1.0:
        return math.nan, math.nan, math.nan
    variance = float(parts @ parts) / (1.0 - one) + quadratic
    if variance <= 0.0:
        return difference, difference, float(difference == 0.0)
    sd = math.sqrt(variance)
    reach = sd * float(special.ndtri((1.0 + level) / 2.0)) * math.sqrt(student_factor(1.0 / one, level))
    freedom = max(1.0 / one - 1.0, 1.0)
    return difference - reach, difference + reach, 2.0 * float(special.stdtr(freedom, -abs(difference) / sd))
