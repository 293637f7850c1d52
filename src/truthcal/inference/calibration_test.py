"""The calibration test: are these outcomes plausible if the predictions are calibrated?

A test chooses a method, finds both tails of its statistic with it, and describes the result: `run_test`.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truthcal.core.params import check_choice, check_level, check_rng, check_whole
from truthcal.core.points import Points
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize
from truthcal.inference.intervals import interval_of
from truthcal.inference.laws.brownian import PATH_LIMITS
from truthcal.inference.laws.quadratic_form import lower_tail, upper_tail
from truthcal.inference.laws.redraw import (
    MOST_CASES,
    MOST_SLOW_CASES,
    Outcomes,
    Tails,
    Values,
    enumerate_tails,
    simulate_tails,
)
from truthcal.inference.laws.sparse_redraw import SparseRedraw, expected_surprises
from truthcal.inference.laws.tent_kernel import NullMoments, TentKernel, null_moments
from truthcal.measures.registry import MEASURES, TENTS
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.tests import CalibrationTest

METHODS = ("auto", "exact", "asymptotic", "bound")
ALTERNATIVES = ("greater", "less", "two-sided")
# From here on the asymptotic distribution is accurate; docs/benchmarks/inference.md measures it.
MANY_ROWS = 10_000
ENOUGH_INFORMATION = 100.0
# A Brownian motion seen at fewer times than this has noticeably smaller extremes.
_MANY_STEPS = 400
# If many rows have fewer expected surprises (unlikely outcomes) than this, only these are redrawn, in such blocks.
_FEW_SURPRISES, _SPARSE_BLOCK = 1000.0, 100
# Redraws are skipped if the bound is this many times below the smallest p-value that they could give.
_WELL_BELOW = 4.0

Interval = Callable[[float, str], ConfidenceInterval]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A test statistic: its observed value, and the ways to find its tails under calibration.

    `sample`: the rows whose outcomes can be redrawn, and `values` measures redrawn outcomes. `limit` and `bound` give
    tails without redraws. `moments`: null mean and sd, where known. `close`: whether these rows, if they are many, are
    near the limit. `slack`: differences up to this are rounding. `quick`: whether `values` is a compiled kernel.
    """

    name: str
    observed: float
    points: Points
    sample: Sample | None = None
    values: Callable[[Outcomes], Values] | None = None
    limit: Callable[[], Tails] | None = None
    bound: Callable[[], Tails] | None = None
    moments: tuple[float, float] | None = None
    close: bool = True
    slack: float = 0.0
    quick: bool = True
    kernel: TentKernel | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The user's choices for a test: method, alternative, and redraws."""

    method: str = "auto"
    alternative: str = "greater"
    n_resamples: int = 0
    generator: np.random.Generator = field(default_factory=np.random.default_rng)

    @property
    def sides(self) -> tuple[str, ...]:
        """The tails that the p-value needs."""
        return ("greater", "less") if self.alternative == "two-sided" else (self.alternative,)


def calibration_test(
    y_true: object,
    y_proba: object = None,
    *,
    measure: str = "multiscale_atb",
    method: str = "auto",
    alternative: str = "greater",
    n_resamples: int = 9999,
    rng: Any = None,
    sample_weight: object = None,
    pos_label: object = None,
) -> CalibrationTest:
    """Could calibrated predictions have had these outcomes? A p-value for any measure and any number of rows.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Sketch
        Outcomes: 0/1 or bool; other labels need `pos_label`. A `Sketch` takes the place of all rows, `y_proba` and
        `sample_weight` included.
    y_proba : array-like of shape (n,)
        Predicted probabilities.
    measure : str, default "multiscale_atb"
        Any name in `MEASURES`. The default detects errors of every width; "atb" has more power against predictions
        that are all too high or too low, and less against errors that change sign.
    method : {"auto", "exact", "asymptotic", "bound"}, default "auto"
        "exact": outcomes are redrawn with the predicted probabilities. All are enumerated if there are at most 2^20 of
        them (2^16 for measures without a fast kernel); otherwise `n_resamples` are drawn at random. Valid for every
        measure and any n.
        "asymptotic": for atb, multiscale_atb, shifted_grid_ubse, ks_ce, step_ce and kuiper_ce.
        "bound": an upper bound on the p-value that is always valid, for the first three of these.
        "auto": exact for up to 10,000 rows, or if sum p(1 - p) is below 100 (unless the bound is well below any p-value
        that `n_resamples` redraws can give); otherwise asymptotic if available (for ks_ce, step_ce and kuiper_ce only
        if there are many distinct predictions).
    alternative : {"greater", "less", "two-sided"}, default "greater"
        "greater": miscalibrated. "less": too good to be honest, for example fitted on these outcomes.
    n_resamples : int, default 9999
        Largest number of redraws. Drawing stops early once 500 redraws are at least as extreme as the data, which keeps
        the test valid (Besag, Clifford 1991).
    rng : int, numpy Generator or None
        Source of randomness.
    sample_weight : array-like of shape (n,), optional
        Weights. A row of any weight is one observation: if weights are counts of equal rows, repeat the rows.
    pos_label : optional
        The label that counts as 1.

    Returns
    -------
    CalibrationTest
        ``statistic``, ``pvalue``, the null distribution's mean and sd, and the method. Prints in words.

    Notes
    -----
    The hypothesis: outcomes are independent and each follows its prediction. Rows that share a fate (several of one
    patient, one day) make any such test reject too often. With a measure of squared errors the statistic is, for many
    rows, a weighted sum of squares of normals, whose tail is computed to 12 digits. More than 2^20 rows are not sorted:
    their statistic comes from a sketch of 16,384 buckets (docs/guide/inference.md has its error).
    A redrawn value equal to the observed one up to rounding counts as being as extreme.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.calibration_test([0, 1, 1, 0, 1, 1], [0.2, 0.9, 0.6, 0.3, 0.6, 0.8]))
    No sign of miscalibration in 6 rows (p = 0.68).
    multiscale_atb is 0.02375; the value expected by chance is 0.0306 (standard deviation 0.0199).
    (exact: all 48 possible outcomes were enumerated)
    """
    check_choice(measure, "measure", tuple(MEASURES))
    check_choice(method, "method", METHODS)
    check_choice(alternative, "alternative", ALTERNATIVES)
    n_resamples, generator = check_whole(n_resamples, "n_resamples", 1), check_rng(rng)
    summary = summarize(
        y_true,
        y_proba,
        sample_weight,
        pos_label,
        binary=True,
        sketch_many=measure in TENTS and method in ("auto", "asymptotic"),
        least_information=ENOUGH_INFORMATION if method == "auto" else 0.0,
    )
    return calibration_test_of(summary, measure, Plan(method, alternative, n_resamples, generator))


def calibration_test_of(summary: Sample | Sketch, measure: str, plan: Plan) -> CalibrationTest:
    """The calibration test, from sorted rows or a sketch."""
    # A partial can be pickled. It keeps the summary for `CalibrationTest.confidence_interval`.
    return run_test(statistic_of(summary, measure), plan, functools.partial(_interval_of_test, summary, measure))


def _interval_of_test(summary: Sample | Sketch, measure: str, level: float, method: str) -> ConfidenceInterval:
    return interval_of(summary, measure, check_level(level, "confidence_level"), method)


def run_test(statistic: Statistic, plan: Plan, interval: Interval | None = None) -> CalibrationTest:
    """Run a calibration test: choose a method, find both tails with it, and describe the result."""
    method = _choose_method(statistic, plan)
    tails, why = _tails_of_test(statistic, method, plan)
    points = statistic.points
    if points.sketched:
        why += f"; from a sketch of {round(1.0 / points.bucket_width):,} buckets"
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
        n=points.rows,
        information=points.information,
        n_resamples=tails.draws,
        greater=tails.greater,
        less=tails.less,
        impossible=points.impossible,
        _interval=interval,
    )


# --- first step: choose a method --------------------------------------------------------------------------------------


def _choose_method(statistic: Statistic, plan: Plan) -> str:
    """The method of the test: the one asked for, if the statistic has it; for "auto" the best one for these rows."""
    known = {"exact": statistic.values, "asymptotic": statistic.limit, "bound": statistic.bound}
    points = statistic.points
    if plan.method != "auto":
        allowed = ("auto", *(name for name, way in known.items() if way))
        where = f" for {statistic.name}{' of a sketch' if points.sketched else ''}"
        return check_choice(plan.method, "method", allowed, where)
    enough = points.effective_information >= ENOUGH_INFORMATION
    if statistic.values and not (statistic.limit and statistic.close and points.rows > MANY_ROWS and enough):
        return "bound" if _bound_suffices(statistic, plan) else "exact"
    return "asymptotic" if enough or not statistic.bound else "bound"


def _bound_suffices(statistic: Statistic, plan: Plan) -> bool:
    """Whether a bound on the test's p-value is well below any that redraws could give, so that none are needed.

    The choice depends on the bound, which adds at most the probability of such a small bound to the size of the test:
    0.000025 with 9,999 redraws. Bounds are rarely tight, so the actual amount is much smaller.
    """
    if statistic.bound is None or statistic.sample is None or "greater" not in plan.sides:
        return False
    small = len(plan.sides) * statistic.bound().greater < 1.0 / (1 + plan.n_resamples) / _WELL_BELOW
    return small and Outcomes(statistic.sample).cases > MOST_CASES


# --- second step: find both tails -------------------------------------------------------------------------------------


def _tails_of_test(statistic: Statistic, method: str, plan: Plan) -> tuple[Tails, str]:
    """Both tails of a test statistic by this method, and an explanation of it."""
    if method == "exact" and statistic.values and statistic.sample is not None:
        return _tails_of_exact_test(statistic, statistic.values, statistic.sample, plan)
    if method == "asymptotic" and statistic.limit:
        effective = f"{statistic.points.effective_information:.4g}"
        why = f"asymptotic distribution, accurate if sum p(1 - p) is at least 100; here it is {effective}"
        return statistic.limit(), why
    if method == "bound" and statistic.bound:
        why = "upper bound on the p-value, valid for any number of rows"
        if plan.method == "auto" and statistic.values:
            why += f"; {plan.n_resamples:,} redraws cannot give a p-value this small"
        return statistic.bound(), why
    raise AssertionError(f"{statistic.name} has no method {method!r}")


def _tails_of_exact_test(
    statistic: Statistic, prepare: Callable[[Outcomes], Values], sample: Sample, plan: Plan
) -> tuple[Tails, str]:
    outcomes = Outcomes(sample)
    values = prepare(outcomes)
    # Measured by the same arithmetic as the redrawn outcomes, so that equal ones compare as equal.
    observed = float(values(sample.groups.wy[None, :])[0])
    usual = statistic.moments[0] if statistic.moments else 1e-4
    slack = max(1e-9 * abs(observed), 1e-10 * usual, statistic.slack)
    cases = outcomes.cases
    if cases <= (MOST_CASES if statistic.quick else MOST_SLOW_CASES):
        many = f"all {cases:,.0f} possible outcomes were enumerated" if cases > 1 else "only one outcome is possible"
        return enumerate_tails(outcomes, values, observed, slack), many
    redraw, block = (lambda stream, count: values(outcomes.draw(stream, count))), outcomes.block
    if statistic.kernel and sample.n > MANY_ROWS and expected_surprises(sample) < _FEW_SURPRISES:
        redraw, block = SparseRedraw(sample, statistic.kernel), _SPARSE_BLOCK
    tails = simulate_tails(
        redraw, block, observed, slack, n_resamples=plan.n_resamples, generator=plan.generator, sides=plan.sides
    )
    early = ", enough for a p-value this large" if tails.draws < plan.n_resamples else ""
    return tails, f"{tails.draws:,} random redraws of the outcomes{early}; valid for any number of rows"


# --- statistics -------------------------------------------------------------------------------------------------------


def statistic_of(summary: Sample | Sketch, measure: str) -> Statistic:
    """A measure of sorted rows or of a sketch as the statistic of the calibration test."""
    points = summary.points()
    if summary.sketched:
        check_choice(measure, "measure", TENTS, " of a sketch")
        kernel = TentKernel.of(measure, points)
        observed = summary.atb().value if measure == "atb" else kernel.measure(points)
        return _tent_statistic(measure, observed, points, kernel, None)
    row = MEASURES[measure]
    observed = row.of_sample(summary)
    if measure in TENTS:
        return _tent_statistic(measure, observed, points, TentKernel.of(measure, points), summary)
    return Statistic(
        measure,
        observed,
        points,
        summary,
        values=lambda outcomes: outcomes.values(measure),
        limit=_path_limit_tails(measure, observed, points),
        # To redraw more different predictions than this would take too long: the limit, which is conservative, must do.
        close=not row.path_limit or _bias_steps(points) >= _MANY_STEPS or len(points) > 2 * MANY_ROWS,
        slack=row.tolerance if row.tolerance > 0.0 else 0.0,  # it may be nan
        quick=row.batched,
    )


def _tent_statistic(
    measure: str, observed: float, points: Points, kernel: TentKernel, sample: Sample | None
) -> Statistic:
    moments = null_moments(kernel, points)
    return Statistic(
        measure,
        observed,
        points,
        sample,
        values=(lambda outcomes: outcomes.values(measure)) if sample is not None else None,
        limit=lambda: _tent_limit_tails(observed, points, kernel),
        bound=lambda: bound_tails(observed, points, variance_bound(points, kernel, moments)),
        moments=(moments.mean, moments.sd),
        kernel=kernel,
    )


def _tent_limit_tails(observed: float, points: Points, kernel: TentKernel) -> Tails:
    """Tails of a test statistic with a tent kernel: for many rows a weighted sum of squares of normals."""
    if not points.noise_floor > 0.0:
        return _tails_if_certain(observed)
    scales = kernel.null_scales(points.merged())
    sd = math.sqrt(2.0 * float(np.sum(scales**2)))
    return Tails(upper_tail(observed, scales), lower_tail(observed, scales), points.noise_floor, sd, 0)


def _tails_if_certain(observed: float) -> Tails:
    """Tails of a test statistic if all predictions are 0 or 1: any error is impossible."""
    return Tails(float(observed == 0.0), 1.0, 0.0, 0.0, 0)


def _path_limit_tails(measure: str, observed: float, points: Points) -> Callable[[], Tails] | None:
    """Tails of a test statistic of the cumulative bias, for many distinct predictions a Brownian motion.

    With ties it jumps, and its extremes are smaller: the p-value of large ones is then too large, never too small.
    """
    name = MEASURES[measure].path_limit
    if name is None:
        return None
    path = PATH_LIMITS[name]
    unit = math.sqrt(points.noise_floor)

    def limit() -> Tails:
        if unit == 0.0:
            return _tails_if_certain(observed)
        x = observed / unit
        less = path.head(x) if _bias_steps(points) >= _MANY_STEPS else 1.0  # with ties small values are more frequent
        return Tails(path.tail(x), less, path.mean * unit, math.sqrt(path.square - path.mean**2) * unit, 0)

    return limit


def _bias_steps(points: Points) -> float:
    """Effective number of equal steps of the cumulative bias: whether its Brownian limit fits in the test."""
    variances = points.weight * points.p * (1.0 - points.p)
    total = float(np.sum(variances))
    return total**2 / float(np.sum(variances**2)) if total > 0.0 else 0.0


# --- bounds -----------------------------------------------------------------------------------------------------------


def variance_bound(points: Points, kernel: TentKernel, moments: NullMoments) -> float:
    """Upper limit of a test statistic's null variance: the variance itself for sorted rows."""
    if not points.sketched:
        return moments.sd**2
    # Both predictions of a pair may be a bucket's width from their buckets' means, and k^2 is twice as steep as k.
    moved = 8.0 * kernel.steepness * points.bucket_width * points.noise_floor**2
    largest = np.minimum(points.ww, points.largest_weight**2) / points.total**2
    return moments.pairs + moved + float(np.sum(points.wwv / points.total**2 * largest))


def bound_tails(observed: float, points: Points, variance: float) -> Tails:
    """Tails of a test statistic by the smallest of several bounds that always hold (docs/theory/inference.md).

    Above the mean: Markov; Cantelli; McDiarmid and Bernstein for the length of a sum of independent vectors. Below it:
    Cantelli.
    """
    floor, largest = points.noise_floor, points.largest_weight / points.total
    greater = less = 1.0
    gap = observed - floor
    cantelli = variance / (variance + gap**2) if variance + gap**2 > 0.0 else 1.0
    if gap < 0.0:
        less = cantelli
    elif gap > 0.0:
        length, spread = math.sqrt(observed), math.sqrt(floor)
        mcdiarmid = math.exp(-2.0 * max(0.0, length - spread) ** 2 / points.one_row)
        bernstein = 2.0 * math.exp(-observed / (2.0 * (floor + largest * length / 3.0)))
        greater = min(floor / observed, cantelli, mcdiarmid, bernstein)
    return Tails(greater, less, floor, math.sqrt(variance), 0)
