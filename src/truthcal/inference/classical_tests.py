"""Tests of calibration that people know by name. For comparison, with their traps; `calibration_test` has none of them.

Kolmogorov-Smirnov and Kuiper are `calibration_test` with the measures ks_ce and kuiper_ce.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.bins import BinSums, bin_biases, quantile_edges, rows_of, scaled_weights
from truthcal.core.checks import Checked, check_rows, invalid, refuse_fractional
from truthcal.core.frame_columns import named_columns
from truthcal.core.neighbours import neighbour_z
from truthcal.core.parallel import in_parts
from truthcal.core.params import check_choice, check_rng, check_whole
from truthcal.core.sample import Sample
from truthcal.core.totals import Totals
from truthcal.inference.calibration_test import ALTERNATIVES, MANY_ROWS, run_test
from truthcal.inference.laws.redraw import Outcomes, Tails, Values
from truthcal.inference.statistic import Plan, Statistic
from truthcal.kernels.totals import spiegelhalter_sums
from truthcal.results.tests import CalibrationTest

_Array = NDArray[np.float64]
_METHODS = ("auto", "exact", "asymptotic")
# Bins whose counts vary less than this are too far from normal for the chi-square distribution: with 0.5 it rejects
# calibrated rows nearly twice as often as it should at 1%, with 5 one in seven times too often (simulated).
_ENOUGH_IN_A_BIN = 5.0
# Relative rounding error of sums of weights.
_ROUNDING = 1e-13


@named_columns
def spiegelhalter_test(
    y_true: object,
    y_proba: object,
    *,
    method: str = "auto",
    alternative: str = "two-sided",
    n_resamples: int = 9999,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> CalibrationTest:
    """Spiegelhalter's z-test: is the Brier score what it would be if the predictions were right?

    Parameters
    ----------
    y_true, y_proba, n_resamples, rng, sample_weight, pos_label
        As for `calibration_test`.
    method : {"auto", "exact", "asymptotic"}, default "auto"
        As for `calibration_test`; "asymptotic" is the normal distribution.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the Brier score is worse than for calibrated predictions, usually because they are too extreme.

    Returns
    -------
    CalibrationTest
        ``statistic`` is z.

    Notes
    -----
    ``z = sum w (y - p)(1 - 2p) / sqrt(sum w^2 (1 - 2p)^2 p(1 - p))``. It detects predictions that are too extreme or
    not extreme enough, and little else: predictions that are all too high by the same amount, and symmetric about 1/2,
    pass. Predictions of exactly 1/2 have no influence. The default is two-sided; some packages print half of it.
    Rows are assumed to be independent. There is no `groups`: the test exists for comparison with other packages. Use
    `calibration_test` if rows belong together.
    Reference: Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.spiegelhalter_test([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]).statistic:.4f}")
    -1.0050
    """
    plan = _classical_plan(method, alternative, n_resamples, rng)
    rows = _classical_rows(y_true, y_proba, sample_weight, pos_label)
    return run_test(_spiegelhalter(rows), plan, neighbour_z=neighbour_z(rows.p, rows.y))


def _spiegelhalter(rows: Checked) -> Statistic:
    """Spiegelhalter's z of checked rows, from sums over them: they are sorted only to redraw outcomes."""
    total, spread = _spiegelhalter_sums(rows)
    z = total / spread
    return Statistic(
        "spiegelhalter",
        z,
        Totals.of_rows(rows),
        _redraw(rows, spiegelhalter_values),
        limit=lambda: Tails(float(special.ndtr(-z)), float(special.ndtr(z)), 0.0, 1.0, 0),
        moments=(0.0, 1.0),
        close=len(rows.p) > MANY_ROWS,
    )


def spiegelhalter_values(sample: Sample) -> Values:
    """Spiegelhalter's z as a function of the bias at each different prediction of sorted rows."""
    spread = _spiegelhalter_sums(rows_of(sample))[1]
    slope = -(1.0 - 2.0 * sample.groups.r) / spread
    return lambda bias: np.asarray(bias @ slope)


def _spiegelhalter_sums(rows: Checked) -> tuple[float, float]:
    """Numerator and denominator of Spiegelhalter's z."""
    (p, y, _), w = rows, scaled_weights(rows)[0]
    parts = in_parts(lambda first, last: spiegelhalter_sums(p[first:last], y[first:last], w[first:last]), len(p))
    total, variance = map(math.fsum, zip(*parts, strict=True))
    if not variance > 0.0:
        problem = "contains only 0, 1/2 and 1, which do not affect Spiegelhalter's test; use calibration_test."
        raise invalid("y_proba", problem)
    return total, math.sqrt(variance)


@named_columns
def hosmer_lemeshow_test(
    y_true: object,
    y_proba: object,
    *,
    n_bins: int = 10,
    ddof: int = 0,
    method: str = "auto",
    alternative: str = "greater",
    n_resamples: int = 9999,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> CalibrationTest:
    """Hosmer-Lemeshow test: do the counts in bins of equal size agree with the predictions?

    Parameters
    ----------
    y_true, y_proba, n_resamples, rng, sample_weight, pos_label
        As for `calibration_test`.
    n_bins : int, default 10
        Number of bins of equal count. Equal predictions stay together, so ties may lead to unequal or fewer bins.
    ddof : int, default 0
        Number subtracted from the degrees of freedom. Use 0 for new data; use 2, and method "asymptotic", if the
        predictions come from a logistic regression fitted on these rows. For other models the number is unknown.
    method : {"auto", "exact", "asymptotic"}, default "auto"
        As for `calibration_test`; "asymptotic" is the chi-square distribution, which "auto" uses for many rows if the
        count of every bin has a variance of 5 or more. It is the only method with `ddof`.
    alternative : {"greater", "less", "two-sided"}, default "greater"
        "greater": miscalibrated.

    Returns
    -------
    CalibrationTest
        ``statistic`` is the sum over bins of (observed - expected)^2 / (n q (1 - q)), q the bin's mean prediction.

    Notes
    -----
    A different number of bins, or a different rule for ties, gives a different p-value, sometimes on the other side of
    0.05: choose them in advance. Errors that cancel within a bin are not detected. Packages that always subtract 2
    degrees of freedom reject calibrated predictions too often on new data. The chi-square distribution needs about 5
    expected positives and negatives in every bin; "exact" has no such condition.
    Rows are assumed to be independent. There is no `groups`: the test exists for comparison with other packages. Use
    `calibration_test` if rows belong together.
    Reference: Hosmer, Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model.

    Examples
    --------
    >>> import truthcal as tc
    >>> result = tc.hosmer_lemeshow_test([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], n_bins=2)
    >>> print(f"{result.statistic:.4f}")
    1.3333
    """
    plan = _classical_plan(method, alternative, n_resamples, rng)
    n_bins, ddof = check_whole(n_bins, "n_bins", 1), check_whole(ddof, "ddof", 0)
    rows = _classical_rows(y_true, y_proba, sample_weight, pos_label)
    return run_test(_hosmer_lemeshow(rows, n_bins, ddof), plan, neighbour_z=neighbour_z(rows.p, rows.y))


def _hosmer_lemeshow(rows: Checked, n_bins: int, ddof: int) -> Statistic:
    """The Hosmer-Lemeshow statistic of checked rows, from sums in bins: rows are sorted only to redraw outcomes."""
    edges = _hosmer_lemeshow_edges(rows, n_bins)
    bins = BinSums.of_rows(rows, edges)
    variance, (bias, mass, _) = _count_variance(bins), bin_biases(rows, edges)
    freedom = int(np.count_nonzero(variance)) - ddof
    if freedom < 1:
        problem = f"= {ddof} leaves no degrees of freedom: {freedom + ddof} bins have predictions other than 0 and 1"
        raise invalid("ddof", f"{problem}; use more bins, or calibration_test.")
    observed = float(_sum_of_squares(bias[mass > 0.0], variance, bins.weight))
    tails = float(special.chdtrc(freedom, observed)), float(special.chdtr(freedom, observed))
    return Statistic(
        "hosmer_lemeshow",
        observed,
        Totals.of_rows(rows),
        _redraw(rows, lambda sample: hosmer_lemeshow_values(sample, n_bins)) if ddof == 0 else None,
        limit=lambda: Tails(*tails, freedom, math.sqrt(2.0 * freedom), 0),
        close=len(rows.p) > MANY_ROWS and bool(np.min(variance[variance > 0.0]) >= _ENOUGH_IN_A_BIN),
    )


def hosmer_lemeshow_values(sample: Sample, n_bins: int = 10) -> Values:
    """The Hosmer-Lemeshow statistic as a function of the bias at each different prediction of sorted rows."""
    starts, variance, weight = _bins(sample, n_bins)
    return lambda bias: _sum_of_squares(np.add.reduceat(bias, starts, axis=1), variance, weight)


def _bins(sample: Sample, n_bins: int) -> tuple[NDArray[np.intp], _Array, _Array]:
    """Hosmer-Lemeshow bins of sorted rows: starts among the distinct predictions, variances of counts, and weights."""
    rows = rows_of(sample)
    bins = BinSums.of_rows(rows, _hosmer_lemeshow_edges(rows, n_bins))
    return np.searchsorted(sample.groups.r, bins.low), _count_variance(bins), bins.weight


def _hosmer_lemeshow_edges(rows: Checked, n_bins: int) -> _Array:
    """Left edges of the Hosmer-Lemeshow bins, of equal numbers of rows whatever their weights."""
    return quantile_edges(rows._replace(w=None), n_bins)


def _count_variance(bins: BinSums) -> _Array:
    """Variance of the counts in Hosmer-Lemeshow bins."""
    return np.asarray(bins.ww * bins.p * (1.0 - bins.p))


def _sum_of_squares(bias: _Array, variance: _Array, weight: _Array) -> _Array:
    """The Hosmer-Lemeshow statistic, from the bias in each bin."""
    # A bin of 0s and 1s has no variance: what happens in it is right, up to rounding, or impossible.
    gaps = np.where((variance > 0.0) | (np.abs(bias) > _ROUNDING * weight), bias**2, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.sum(np.where(gaps > 0.0, gaps / variance, 0.0), axis=-1))


def _redraw(rows: Checked, values_of: Callable[[Sample], Values]) -> Callable[[], tuple[Outcomes, Values]]:
    """Redraw outcomes for a classical statistic of the bias at each different prediction."""

    def redraw() -> tuple[Outcomes, Values]:
        outcomes = Outcomes(Sample.from_checked(rows))
        statistic_of = values_of(outcomes.sample)
        return outcomes, lambda positive: statistic_of(outcomes.bias(positive))

    return redraw


def _classical_plan(method: str, alternative: str, n_resamples: int, rng: Any) -> Plan:
    check_choice(method, "method", _METHODS)
    check_choice(alternative, "alternative", ALTERNATIVES)
    return Plan(method, alternative, check_whole(n_resamples, "n_resamples", 1), check_rng(rng))


def _classical_rows(y_true: object, y_proba: object, sample_weight: object, pos_label: object) -> Checked:
    """Check the rows of a classical test, whose outcomes must be 0/1."""
    rows = check_rows(y_true, y_proba, sample_weight, pos_label)
    refuse_fractional(rows.y)
    return rows
