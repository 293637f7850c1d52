"""The calibration test: are these outcomes plausible if the predictions are calibrated?

A test chooses a method, finds both tails of its statistic with it, and describes the result: `run_test`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from truthcal.core.bins import rows_of
from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_choice, check_level, check_rng, check_whole
from truthcal.core.points import CELLS, Points
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import refuse_labels, summarize
from truthcal.core.totals import Totals
from truthcal.inference.intervals import interval_of
from truthcal.inference.laws.bounds import bound_tails, limit_or_bound, variance_bound
from truthcal.inference.laws.brownian import PATH_LIMITS
from truthcal.inference.laws.quadratic_form import lower_tail, upper_tail
from truthcal.inference.laws.redraw import (
    MOST_CASES,
    MOST_SLOW_CASES,
    MergedOutcomes,
    Outcomes,
    Tails,
    TiedOutcomes,
    Values,
    block_of,
    enumerate_tails,
    simulate_tails,
)
from truthcal.inference.laws.skewness import correct_for_skewness, error_skewness
from truthcal.inference.laws.sparse_redraw import SparseRedraw, expected_surprises
from truthcal.inference.laws.tent_kernel import TentKernel, null_moments
from truthcal.inference.multiclass.calibration_test import multiclass_test, refuse_other_measures
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.entry import ClassInput, EventRows, event_or_classes
from truthcal.inference.multiclass.null_law import GroupedClasses
from truthcal.inference.statistic import Plan, Statistic, explain_groups, grouped_statistic
from truthcal.measures.cumulative import BiasPath, bias_path
from truthcal.measures.registry import MEASURES, TENTS
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.tests import CalibrationTest

METHODS = ("auto", "exact", "asymptotic", "bound")
ALTERNATIVES = ("greater", "less", "two-sided")
# From here on the asymptotic distribution is accurate; docs/benchmarks/power.md measures it.
ENOUGH_INFORMATION = 100.0
# The extremes of a Brownian motion approach their limit more slowly; fewer rows than this are redrawn in a second.
MANY_ROWS = 10_000
# A Brownian motion seen at fewer times than this has noticeably smaller extremes.
_MANY_STEPS = 400
# Only surprises (unlikely outcomes) are redrawn if there are few: one takes as long as the outcomes of so many rows.
_SURPRISE_COST = 25.0
# Points for the null mean and standard deviation: merging so many changes the sixth digit.
_MOMENT_POINTS = 1 << 14
# Redraws are skipped if the p-value is this many times below the smallest one that they could give.
_WELL_BELOW = 4.0
# With little information, the corrected limit is accurate below this p-value (`correct_for_skewness`).
_FAR = 1e-4
# Lower tails up to this are redrawn where the limit may be wrong, in so many cells, until so many are as small.
_SMALL, _LOWER_TAIL_CELLS, _LOWER_TAIL_ENOUGH = 0.05, 64, 100

Interval = Callable[[float, str], ConfidenceInterval]


@named_columns
def calibration_test(
    y_true: object,
    y_proba: object = None,
    *,
    measure: str = "information_atb",
    method: str = "auto",
    alternative: str = "greater",
    n_resamples: int = 9999,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
    hard: bool = False,
    groups: object = None,
    labels: object = None,
) -> CalibrationTest:
    """Could calibrated predictions have had these outcomes? A p-value for any measure and any number of rows.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Sketch
        Outcomes: 0/1 or bool; other labels need `pos_label`. A `Sketch` takes the place of all rows, `y_proba` and
        `sample_weight` included.
    y_proba : array-like of shape (n,) or (n, k)
        Predicted probabilities: of the event, or of k classes that exclude each other. With k classes, `y_true` holds
        the class of each row, rows of `y_proba` add up to 1, and the test is one of all classes together.
    measure : str, default "information_atb"
        Any name in `MEASURES`. The default detects errors of every width; "atb" has more power against predictions
        that are all too high or too low, and less against errors that change sign.
    method : {"auto", "exact", "asymptotic", "bound"}, default "auto"
        "exact": outcomes are redrawn with the predicted probabilities. All are enumerated if there are at most 2^20 of
        them (2^16 for measures without a fast kernel); otherwise `n_resamples` are drawn at random. Valid for every
        measure and any n.
        "asymptotic": for atb, multiscale_atb, information_atb, shifted_grid_ubse, ks_ce, step_ce and kuiper_ce.
        "bound": an upper bound on the p-value that is always valid, for the first four of these.
        "auto": exact if the effective sum p(1 - p) is below 100 or few outcomes are possible ("approximate" for a
        sketch with weights, which keeps only some of their sums); otherwise asymptotic if available (for ks_ce,
        step_ce and kuiper_ce only above 10,000 rows with many distinct predictions). Where
        the p-value is too small for redraws, which cannot go below 1 / (1 + `n_resamples`), asymptotic or bound (for
        the measures that have both), whichever is smaller.
    alternative : {"greater", "less", "two-sided"}, default "greater"
        "greater": miscalibrated. "less": closer to the outcomes than chance allows, for example fitted on them.
    n_resamples : int, default 9999
        Largest number of redraws. Drawing stops early once 500 redraws are at least as extreme as the data, which keeps
        the test valid (Besag, Clifford 1991).
    rng : int, numpy Generator or None, default 0
        Source of randomness; None draws a new seed.
    sample_weight : array-like of shape (n,), optional
        Weights. A row of any weight is one observation: if weights are counts of equal rows, repeat the rows.
    pos_label : optional
        The label that counts as 1.
    hard : bool, default False
        Accept predictions that are all exactly 0 or 1. Otherwise they are an error, because they are usually labels.
    groups : array-like of shape (n,), optional
        Which rows belong together: a patient, a match, a question. Values of any hashable type, at least 20 different
        ones. Outcomes may then depend on each other within a group, in any way, but not between groups.
    labels : array-like of shape (k,), optional
        The class of each column of `y_proba`, as for `multiclass_atb`.

    Returns
    -------
    CalibrationTest
        ``statistic``, ``pvalue``, the null distribution's mean and sd, and the method. Prints in words.

    Notes
    -----
    The hypothesis: outcomes are independent and each follows its prediction. Rows that share a fate (several of one
    patient, one day) make any such test reject too often, unless `groups` names what they share. Then the test asks
    whether the mean error is larger than the differences between groups explain: the errors of whole groups change sign
    at random. `method` is "auto" or, for measures with a tent kernel, "asymptotic"; ks_ce, step_ce, kuiper_ce, smcal,
    atb_l1 and laplace_kernel_ce draw signs, and other measures have no such test (docs/guide/groups.md). With a measure
    of squared errors the statistic is, for many rows, a weighted sum of squares of normals, whose tail is computed to
    12 digits. Its upper tail is then corrected for skewness, and a small lower tail is redrawn in a few cells
    (docs/theory/inference.md). A `Sketch` without weights redraws the number of positives in each bucket. More than
    2^15 rows are not sorted: their statistic comes from a sketch of 16,384 buckets (docs/guide/inference.md has its
    error), unless these are too coarse.
    A redrawn value equal to the observed one up to rounding counts as being as extreme.

    With many classes the statistic compares, where a class is predicted with similar probabilities, the frequencies of
    all classes with their mean predictions, on the information axis of each class (docs/theory/multiclass.md).
    `measure` must be its default. The method is "exact" (classes are redrawn) or "asymptotic". Two classes have the
    p-value of the second one alone.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.calibration_test([0, 1, 1, 0, 1, 1], [0.2, 0.9, 0.6, 0.3, 0.6, 0.8]))
    No significant evidence of miscalibration in 6 rows (p = 0.68).
    information_atb is 0.02296; the value expected by chance is 0.0306 (standard deviation 0.0193).
    (exact: all 48 possible outcomes were enumerated)
    """
    check_choice(measure, "measure", tuple(MEASURES))
    check_choice(method, "method", METHODS)
    check_choice(alternative, "alternative", ALTERNATIVES)
    n_resamples, generator = check_whole(n_resamples, "n_resamples", 1), check_rng(rng)
    plan = Plan(method, alternative, n_resamples, generator)
    rows = event_or_classes(EventRows(y_true, y_proba, sample_weight, pos_label, groups), labels, hard=hard)
    if isinstance(rows, ClassInput):
        refuse_other_measures(measure)
        cells = ClassCells.of(rows.rows)
        grouped = None if rows.groups is None else GroupedClasses.of(cells, rows.groups)
        return multiclass_test(rows.rows, plan, cells, grouped)
    summary = summarize(
        rows.y_true,
        rows.y_proba,
        binary=True,
        sketch_many=measure in TENTS and method in ("auto", "asymptotic"),
        **rows.options(),
    )
    return calibration_test_of(summary, measure, plan, hard)


def calibration_test_of(summary: Sample | Sketch, measure: str, plan: Plan, hard: bool = True) -> CalibrationTest:
    """The calibration test, from sorted rows or a sketch."""
    sums = summary.group_sums
    statistic = statistic_of(summary, measure) if sums is None else grouped_statistic(summary, sums, measure)
    refuse_labels(statistic.totals, hard)
    # A partial can be pickled. It keeps the summary for `CalibrationTest.confidence_interval`.
    interval = functools.partial(_interval_of_test, summary, measure)
    return run_test(statistic, plan, interval, summary.neighbour_z)


def _interval_of_test(summary: Sample | Sketch, measure: str, level: float, method: str) -> ConfidenceInterval:
    return interval_of(summary, measure, check_level(level, "confidence_level"), method)


@one_blas_thread()
def run_test(
    statistic: Statistic, plan: Plan, interval: Interval | None = None, neighbour_z: float | None = None
) -> CalibrationTest:
    """Run a calibration test: choose a method, find both tails with it, and describe the result."""
    method, tails, why = _tails_of_test(statistic, _choose_method(statistic, plan), plan)
    totals = statistic.totals
    if totals.sketched:
        why += f"; from a sketch of {totals.n_buckets:,} buckets"
    mean, sd = statistic.moments or (tails.mean, tails.sd)
    smallest = min({"greater": tails.greater, "less": tails.less}[side] for side in plan.sides)
    return CalibrationTest(
        statistic=statistic.observed,
        pvalue=float(min(1.0, len(plan.sides) * smallest)),
        null_mean=mean,
        null_sd=sd,
        z=(statistic.observed - mean) / sd if sd > 0.0 else math.nan,
        measure=statistic.name,
        alternative=plan.alternative,
        method=method,
        why=why,
        n=totals.rows,
        information=totals.information,
        n_resamples=tails.draws,
        greater=tails.greater,
        less=tails.less,
        impossible=totals.impossible,
        neighbour_z=neighbour_z,
        n_groups=None if statistic.groups is None else statistic.groups.n_groups,
        n_effective_groups=None if statistic.groups is None else statistic.groups.n_effective,
        _interval=interval,
    )


# --- first step: choose a method --------------------------------------------------------------------------------------


def _choose_method(statistic: Statistic, plan: Plan) -> str:
    """The method of the test: the one asked for, if the statistic has it; for "auto" the best one for these rows."""
    known = {
        "exact": statistic.redraw if statistic.exact else None,
        "asymptotic": statistic.limit,
        "bound": statistic.bound,
    }
    totals = statistic.totals
    if statistic.flips and plan.method == "auto":
        return "approximate"
    if plan.method != "auto":
        allowed = ("auto", *(name for name, way in known.items() if way))
        where = (
            f" for {statistic.name}{' with groups' if statistic.groups else ' of a sketch' if totals.sketched else ''}"
        )
        return check_choice(plan.method, "method", allowed, where)
    enough = totals.effective_information >= ENOUGH_INFORMATION
    if statistic.redraw and (not (statistic.limit and statistic.close and enough) or _can_enumerate(statistic)):
        return "exact"
    return "asymptotic" if enough or not statistic.bound else "bound"


def _can_enumerate(statistic: Statistic) -> bool:
    """Whether a test can enumerate the numbers of positives at a few different predictions, of however many rows."""
    points = statistic.points
    few = points is not None and len(points) <= 2 + math.log2(MOST_CASES)  # one may be 0, and one 1
    return points is not None and few and points.equal_weights and TiedOutcomes(points).cases <= MOST_CASES


# --- second step: find both tails -------------------------------------------------------------------------------------


class _Found(NamedTuple):
    """Both tails of a test statistic, the method that found them, and an explanation of it."""

    method: str
    tails: Tails
    why: str


def _tails_of_test(statistic: Statistic, method: str, plan: Plan) -> _Found:
    if method == "exact" and statistic.redraw:
        return _tails_of_exact_test(statistic, *statistic.redraw(), plan)
    if method == "asymptotic" and statistic.limit:
        tails = statistic.limit()
        if statistic.kernel and statistic.points and tails.less <= _SMALL:
            redrawn = _lower_tail_of_cells(statistic.points, statistic.kernel, plan)
            # Rows of a group that have something in common vary more than independent ones: their tail is smaller.
            tails = tails._replace(less=max(tails.less, redrawn) if statistic.groups else redrawn)
        return _Found(method, tails, _explain(method, statistic))
    if method == "approximate" and statistic.flips:
        return _Found(method, statistic.flips(plan), _explain(method, statistic))
    if method == "bound" and statistic.bound:
        return _Found(method, statistic.bound(), _explain(method, statistic))
    raise AssertionError(f"{statistic.name} has no method {method!r}")


def _lower_tail_of_cells(points: Points, kernel: TentKernel, plan: Plan) -> float:
    """Lower tail of a test statistic with a tent kernel, from redrawn numbers of positives in a few cells.

    The limit is continuous, but numbers of positives are whole. If nearly all variance lies in one or two directions
    (ties, or predictions close together), the smallest values are much more frequent than the limit says: among 20,000
    predictions of 0.5 exactly 10,000 events have a probability of 0.0056. The limit decides only whether to redraw, so
    at levels up to _SMALL this tail is a p-value of redraws.
    """
    outcomes = MergedOutcomes(points.merged(_LOWER_TAIL_CELLS))
    values = outcomes.tent_values(kernel)
    observed = float(values(outcomes.observed[None, :])[0])
    return simulate_tails(
        lambda stream, count: values(outcomes.draw(stream, count)),
        outcomes.block,
        observed,
        max(1e-9 * observed, 1e-10 * points.noise_floor),
        n_resamples=plan.n_resamples,
        generator=plan.generator,
        sides=("less",),
        enough=_LOWER_TAIL_ENOUGH,
    ).less


def _explain(method: str, statistic: Statistic) -> str:
    if statistic.groups is not None:
        return explain_groups(statistic.groups)
    if method == "bound":
        return "upper bound on the p-value, valid for any number of rows"
    totals = statistic.totals
    known = totals.effective_information
    how = "accurate: {:.4g} is at least 100" if known >= ENOUGH_INFORMATION else "approximate: {:.4g} is below 100"
    weighted = "" if math.isclose(known, totals.information, rel_tol=1e-6) else "effective "
    return f"distribution for large {weighted}sum p(1 - p), {how.format(known)}"


def _tails_of_exact_test(statistic: Statistic, outcomes: TiedOutcomes, values: Values, plan: Plan) -> _Found:
    # Measured by the same arithmetic as the redrawn outcomes, so that equal ones compare as equal.
    observed = float(values(outcomes.observed[None, :])[0])
    usual = statistic.moments[0] if statistic.moments else 1e-4
    slack = max(1e-9 * abs(observed), 1e-10 * usual, statistic.slack)
    cases = outcomes.cases
    if cases <= (MOST_CASES if statistic.quick else MOST_SLOW_CASES):
        many = f"all {cases:,.0f} possible outcomes were enumerated" if cases > 1 else "only one outcome is possible"
        return _Found("exact", enumerate_tails(outcomes, values, observed, slack), many)
    far = plan.method == "auto" and "greater" in plan.sides
    if far and _needs_no_redraws(statistic, plan):
        return _tails_beyond_redraws(statistic, outcomes, Tails(1.0, 1.0, math.nan, math.nan, 0), plan)
    redraw, block = (lambda stream, count: values(outcomes.draw(stream, count))), outcomes.block
    surprises = expected_surprises(outcomes)
    if statistic.kernel and _SURPRISE_COST * surprises < outcomes.cost:
        redraw, block = SparseRedraw(outcomes, statistic.kernel), block_of(1 + int(surprises))
    tails = simulate_tails(
        redraw, block, observed, slack,
        n_resamples=plan.n_resamples, generator=plan.generator, sides=plan.redrawn_sides, enough=plan.enough,
    )  # fmt: skip
    if far and tails.greater <= 1.0 / (1 + plan.n_resamples):
        return _tails_beyond_redraws(statistic, outcomes, tails, plan)
    return _found_by_redraws(outcomes, tails, plan)


def _found_by_redraws(outcomes: TiedOutcomes, tails: Tails, plan: Plan) -> _Found:
    """Describe tails of a test statistic that were found by random redraws."""
    early = ", enough for a p-value this large" if 0 < tails.draws < plan.n_resamples else ""
    why = f"{tails.draws:,} random redraws of the outcomes{early}; {outcomes.validity}"
    return _Found(outcomes.method, tails, why)


def _needs_no_redraws(statistic: Statistic, plan: Plan) -> bool:
    """Whether the test's p-value is known to be well below any that redraws could give.

    The choice depends on the outcomes, which adds at most the probability of such a small p-value to the size of the
    test: 0.000025 with 9,999 redraws.
    """
    if statistic.bound is None:
        return False
    return len(plan.sides) * statistic.bound().greater < 1.0 / (1 + plan.n_resamples) / _WELL_BELOW


def _tails_beyond_redraws(statistic: Statistic, outcomes: TiedOutcomes, tails: Tails, plan: Plan) -> _Found:
    """Follow the test's redraws by another method where they cannot show how small the p-value is.

    The p-value is the smaller one of 1 / (1 + n_resamples) and `far`. So at levels of 1 / (1 + n_resamples) or more the
    test rejects exactly where redraws alone do; at smaller levels only where `far` does, too.
    """
    redrawn = _found_by_redraws(outcomes, tails, plan)
    if statistic.far is None:
        return redrawn
    method, pvalue = statistic.far()
    if tails.draws and (pvalue >= tails.greater or (method == "asymptotic" and pvalue > _FAR)):
        return redrawn
    none = f"; {plan.n_resamples:,} redraws cannot give a p-value this small"
    return _Found(method, tails._replace(greater=pvalue), _explain(method, statistic) + none)


# --- statistics -------------------------------------------------------------------------------------------------------


def statistic_of(summary: Sample | Sketch, measure: str) -> Statistic:
    """A measure of sorted rows or of a sketch as the statistic of the calibration test."""
    if summary.sketched:
        check_choice(measure, "measure", TENTS, " of a sketch")
        return tent_statistic(measure, summary.points(), summary.atb().value if measure == "atb" else None)
    row = MEASURES[measure]
    observed = row.of_sample(summary)
    if measure in TENTS:
        return tent_statistic(measure, summary.points(), observed, summary)

    def redraw() -> tuple[TiedOutcomes, Values]:
        outcomes = Outcomes(summary)
        return outcomes, outcomes.values(measure)

    totals = Totals.of_rows(rows_of(summary))
    path = bias_path(summary) if row.path_limit else None
    return Statistic(
        measure,
        observed,
        totals,
        redraw,
        limit=_path_limit_tails(measure, observed, totals.noise_floor, path) if path else None,
        # To redraw more different predictions than this would take too long: the limit, which is conservative, must do.
        close=totals.rows > MANY_ROWS
        and path is not None
        and (path.steps >= _MANY_STEPS or path.distinct > 2 * MANY_ROWS),
        slack=row.tolerance if row.tolerance > 0.0 else 0.0,  # it may be nan
        quick=row.batched,
    )


def tent_statistic(
    measure: str, points: Points, value: float | None = None, sample: Sample | None = None, at_most: int = CELLS
) -> Statistic:
    """A measure with a tent kernel as the statistic of the calibration test, from the points of a sketch or of rows."""
    kernel = TentKernel.of(measure, points)
    observed = kernel.measure(points) if value is None else value
    moments = null_moments(kernel, points.merged(_MOMENT_POINTS))

    def redraw() -> tuple[TiedOutcomes, Values]:
        outcomes = TiedOutcomes(points) if points.equal_weights else MergedOutcomes(points.merged(at_most))
        if sample is not None and not points.equal_weights:
            outcomes = Outcomes(sample)
        return outcomes, outcomes.tent_values(kernel)

    return Statistic(
        measure,
        observed,
        Totals.of_points(points),
        redraw if sample is not None or points.equal_weights or points.weights_known else None,
        limit=lambda: _tent_limit_tails(observed, points, kernel),
        bound=lambda: bound_tails(observed, points, variance_bound(points, kernel, moments)),
        far=lambda: far_upper_tail(observed, points, kernel, at_most),
        moments=(moments.mean, moments.sd),
        kernel=kernel,
        points=points,
        exact=sample is not None or points.equal_weights,
    )


def _tent_limit_tails(observed: float, points: Points, kernel: TentKernel) -> Tails:
    """Tails of a test statistic with a tent kernel: for many rows a weighted sum of squares of normals."""
    if not points.noise_floor > 0.0:
        return _tails_if_certain(observed)
    scales = kernel.null_scales(points.merged())
    sd = math.sqrt(2.0 * float(np.sum(scales**2)))
    greater = correct_for_skewness(upper_tail(observed, scales), error_skewness(points))
    return Tails(greater, lower_tail(observed, scales), points.noise_floor, sd, 0)


def far_upper_tail(observed: float, points: Points, kernel: TentKernel, at_most: int = CELLS) -> tuple[str, float]:
    """Upper tail of a test statistic with a tent kernel, and the method: its limit, or a bound if that is smaller.

    Both are functions of the observed value that are nowhere below its tail (the limit up to 20%, where p is below
    1e-4; see `correct_for_skewness`), so the smaller one is as valid.
    """
    limit = upper_tail(observed, kernel.null_scales(points.merged(at_most)))
    return limit_or_bound(limit, error_skewness(points), observed, lambda: points, kernel)


def _tails_if_certain(observed: float) -> Tails:
    """Tails of a test statistic if all predictions are 0 or 1: any error is impossible."""
    return Tails(float(observed == 0.0), 1.0, 0.0, 0.0, 0)


def _path_limit_tails(measure: str, observed: float, noise_floor: float, bias: BiasPath) -> Callable[[], Tails]:
    """Tails of a test statistic of the cumulative bias, for many distinct predictions a Brownian motion.

    With ties it jumps, and its extremes are smaller: the p-value of large ones is then too large, never too small.
    """
    path = PATH_LIMITS[str(MEASURES[measure].path_limit)]
    unit = math.sqrt(noise_floor)

    def limit() -> Tails:
        if unit == 0.0:
            return _tails_if_certain(observed)
        x = observed / unit
        less = path.head(x) if bias.steps >= _MANY_STEPS else 1.0  # with ties small values are more frequent
        return Tails(path.tail(x), less, path.mean * unit, math.sqrt(path.square - path.mean**2) * unit, 0)

    return limit
