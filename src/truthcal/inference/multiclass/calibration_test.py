"""The calibration test of predictions with many classes."""

import math

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.class_rows import ClassRows
from truthcal.core.neighbours import neighbour_z
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_choice
from truthcal.inference.laws.redraw import Tails, block_of, simulate_tails
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.null_law import GroupedClasses, NullLaw, null_law_of
from truthcal.inference.statistic import Plan
from truthcal.kernels import multiclass as kernel
from truthcal.measures.multiclass import top_label, uncertainty
from truthcal.results.tests import CalibrationTest

_Array = NDArray[np.float64]

# Name of the statistic, and the only `measure` of the test of many classes.
MEASURE = "information_atb"
_METHODS = ("auto", "exact", "asymptotic")
# From this sum of (1 - |p|^2) / 2 for each class on, the asymptotic distribution is accurate
# (docs/benchmarks/multiclass.md).
_ENOUGH_INFORMATION, _LEAST_FOR_EACH_CLASS = 100.0, 10.0
# Redraws of more rows than this would take minutes.
_MANY_ROWS = 100_000


def information_of(rows: ClassRows) -> float:
    """Sum over rows of (1 - |p|^2) / 2, which is p(1 - p) for two classes."""
    return float(np.sum(uncertainty(rows.p))) / 2.0


def refuse_other_measures(measure: str) -> None:
    """Reject other statistics than that of many classes."""
    if measure != MEASURE:
        problem = f"must be {MEASURE!r} for predictions with many classes; got {measure!r}."
        raise invalid("measure", f"{problem} For one class against the rest, pass `y_true == label` and its column.")


@one_blas_thread()
def multiclass_test(
    rows: ClassRows, plan: Plan, cells: ClassCells, grouped: GroupedClasses | None, law: NullLaw | None = None
) -> CalibrationTest:
    """Test whether the classes are plausible if the predictions are calibrated.

    `grouped`: sums of groups, if rows belong together. `law`: the null distribution, if it is known already.
    """
    method = check_choice(plan.method, "method", _METHODS, " for many classes")
    observed, information = float(cells.statistic(cells.errors)), information_of(rows)
    if grouped is not None:
        method, tails = "asymptotic", (law or grouped.null_law()).tails(observed)
        why = f"distribution if the errors of whole groups change sign at random; {grouped.n_groups:,} groups of rows"
    elif method == "exact" or (method == "auto" and _needs_redraws(rows, information)):
        method, tails = "exact", _redraw(cells, observed, plan)
        why = f"{tails.draws:,} outcomes drawn with the predicted probabilities; valid for any number of rows"
    else:
        method, tails = "asymptotic", (law or null_law_of(cells)).tails(observed)
        why = f"weighted sum of chi-squares; the sum of (1 - |p|^2) / 2 is {information:.4g}"
    sides = {"greater": tails.greater, "less": tails.less}
    return CalibrationTest(
        statistic=observed,
        pvalue=float(min(1.0, len(plan.sides) * min(sides[side] for side in plan.sides))),
        null_mean=tails.mean,
        null_sd=tails.sd,
        z=(observed - tails.mean) / tails.sd if tails.sd > 0.0 else math.nan,
        measure=MEASURE,
        alternative=plan.alternative,
        method=method,
        why=f"{rows.n_classes} classes: {why}",
        n=rows.n,
        information=information,
        n_resamples=tails.draws,
        greater=tails.greater,
        less=tails.less,
        impossible=int(np.count_nonzero(rows.p[np.arange(rows.n), rows.y] <= 0.0)),
        neighbour_z=None if grouped is not None else _neighbour_z(rows),
        n_groups=None if grouped is None else grouped.n_groups,
        n_effective_groups=None if grouped is None else grouped.n_effective,
    )


def _neighbour_z(rows: ClassRows) -> float | None:
    """Correlation of neighbouring rows: of whether the most probable class is right."""
    top = top_label(rows)
    return neighbour_z(top.p, top.y)


def _needs_redraws(rows: ClassRows, information: float) -> bool:
    """Whether the asymptotic distribution may be wrong, and there are not too many rows to redraw."""
    little = information / rows.one_row / rows.n < max(_ENOUGH_INFORMATION, _LEAST_FOR_EACH_CLASS * rows.n_classes)
    return little and rows.n <= _MANY_ROWS


def _redraw(cells: ClassCells, observed: float, plan: Plan) -> Tails:
    """Tails of the statistic from redrawn classes."""
    rows = cells.rows
    everything, likeliest = np.arange(rows.n), np.argmax(rows.p, axis=1)
    is_certain = uncertainty(rows.p) <= 0.0
    certain, uncertain = np.flatnonzero(is_certain), np.flatnonzero(~is_certain)
    # Errors without outcomes; rows whose class is certain always have the same one.
    predicted = cells.errors + cells.counts(rows.y, everything) - cells.counts(likeliest, certain)
    place, weight = cells.cell[uncertain], rows.w[uncertain]
    cumulative = np.cumsum(rows.p[uncertain], axis=1)

    def redraw(rng: np.random.Generator, count: int) -> _Array:
        drawn = np.zeros((count, *predicted.shape))
        kernel.add_redrawn(place, cumulative, weight, rng.random((count, len(place))), drawn)
        return cells.statistic(predicted - drawn)

    return simulate_tails(
        redraw,
        block_of(predicted.size + len(place)),
        observed,
        max(1e-9 * observed, 1e-12 * float(np.sum(rows.w**2)) / rows.total**2),
        n_resamples=plan.n_resamples,
        generator=plan.generator,
        sides=plan.redrawn_sides,
        enough=plan.enough,
    )
