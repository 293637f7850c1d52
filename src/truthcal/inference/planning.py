"""Power without simulation: the error that a test can detect, and the number of rows needed to detect an error."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.checks import check_proba, invalid
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_sums import GroupSums
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_choice, check_level
from truthcal.core.points import Points, equal_cells
from truthcal.core.roots import find_root
from truthcal.core.summarize import summarize_predictions
from truthcal.inference.laws.quadratic_form import upper_quantile, upper_tail
from truthcal.inference.laws.tent_kernel import CERTAIN, TentKernel
from truthcal.inference.power import FAMILIES, Family, check_family, refuse_unreachable
from truthcal.measures.registry import TENTS
from truthcal.results.power import DetectableError

_Array = NDArray[np.float64]

# Planning needs only two digits, so fewer cells suffice. Unknown future predictions are assumed to be evenly spread.
_PLANNING_CELLS, _EVENLY = 64, (np.arange(1000) + 0.5) / 1000
# With less information the asymptotic distribution is not usable.
LEAST_INFORMATION = 5.0
# Logarithm of the largest slope that is looked for.
_STEEPEST = math.log(10.0)
# The search of a detectable error starts at this share of one standard error of the mean of the outcomes. It ends where
# the power is within 0.003 of the wanted one, or after so many steps.
_FIRST, _NO_GAP, _SECANTS = 0.01, 0.01, 12
# A variance of the bias below this is rounding.
_NO_NOISE = 1e-20
# A constant prediction of at most this many rows has a binomial number of events.
_MOST_TRIALS = 20_000
# Largest number of rows that is planned for.
_MOST_ROWS = 1e18
# Skewness of outcomes takes away at most this share of the statistic's variance.
_LEAST_VARIANCE = 0.25


@dataclass(frozen=True, slots=True)
class Alternative:
    """Distribution of a test's statistic if outcomes follow some truth: the squared length of a nearly normal vector.

    `mean`, `covariance`: those of the vector. `skewness`, `kurtosis`: what those of the outcomes add to the statistic's
    variance. With them the power is known to 0.02 for slopes, and to 0.05 for 20 expected events.
    """

    mean: _Array
    covariance: _Array
    skewness: float
    kurtosis: float

    def distance(self, critical: float) -> float:
        """Standard deviations from a critical value to the expected one: quick, and nearly a quantile of the power."""
        expected = float(np.sum(self.mean**2) + np.trace(self.covariance))
        _, variance = self.variances(1.0)
        return (expected - critical) / math.sqrt(max(variance, 1e-300))

    def power(self, critical: float, times: float = 1.0) -> float:
        """Probability of exceeding a critical value with `times` as many rows."""
        covariance = self.covariance / times
        scales, axes = np.linalg.eigh(covariance)
        mean = self.mean @ axes
        free = scales > CERTAIN * np.max(scales)
        certain = float(np.sum(mean[~free] ** 2))
        if not free.any():
            return float(certain > critical)
        normal, variance = self.variances(times)
        # Stretch the distribution of a normal vector's squared length to the right variance.
        expected = float(np.sum(mean**2) + np.sum(scales[free]))
        moved = expected + (critical - expected) * math.sqrt(normal / variance)
        return upper_tail(moved - certain, scales[free], mean[free] / np.sqrt(scales[free]))

    def variances(self, times: float) -> tuple[float, float]:
        """Variances of the statistic with `times` as many rows, if the vector were normal, and of these outcomes."""
        covariance = self.covariance / times
        normal = 4.0 * float(self.mean @ covariance @ self.mean) + 2.0 * float(np.sum(covariance**2))
        variance = normal + self.skewness / times**2 + self.kurtosis / times**3
        return normal, max(variance, _LEAST_VARIANCE * normal)


class GroupNoise(NamedTuple):
    """Noise of rows that belong together, for planning a test.

    `covariance`: that of the sums of w c / W at the points. `one_group`: one over the effective number of groups.
    """

    covariance: _Array
    design_effect: float
    one_group: float


@dataclass(frozen=True, slots=True)
class Design:
    """Predictions for which a test is planned: points with their share of the weight.

    `squares`, `cubes`, `fourths`: sums of (w / W)^2, (w / W)^3 and (w / W)^4. `phi`: coordinates of the points in the
    space where the kernel is the inner product. `groups`: of rows that belong together.
    """

    x: _Array
    share: _Array
    squares: _Array
    cubes: _Array
    fourths: _Array
    phi: _Array
    groups: GroupNoise | None = None

    @classmethod
    def of(cls, points: Points, measure: str) -> Self:
        """Build it from the points of sorted rows or of a sketch; if there are many, neighbours are merged."""
        kernel = TentKernel.of(measure, points)
        if len(points) > _PLANNING_CELLS:
            noise = points.weight * (points.p * (1.0 - points.p) + 1e-12)
            # Predictions near 0 and 1 have little noise, but a slope moves them a lot.
            cell = equal_cells(noise / np.sum(noise) + points.weight / points.total, _PLANNING_CELLS)
            points = points.runs(np.flatnonzero(np.diff(cell, prepend=-1)))
        x, share, squares = points.p, points.weight / points.total, points.ww / points.total**2
        row, phi = np.sqrt(points.row_ww) / points.total, kernel.axes(kernel.positions(points))
        return cls(x, share, squares, squares * row, squares * row**2, phi)

    @classmethod
    def of_groups(cls, sums: GroupSums, kernel: TentKernel) -> Self:
        """Build it for rows that belong together."""
        cells, none = sums.cells, np.zeros(len(sums.cells))
        covariance = sums.covariance(float(np.sum(cells.bias))) / (1.0 - sums.one_group)
        phi = kernel.axes(kernel.positions(cells))
        noise = GroupNoise(covariance, sums.design_effect, sums.one_group)
        return cls(cells.p, cells.weight, cells.ww, none, none, phi, noise)

    @property
    def information(self) -> float:
        """Sum of p(1 - p), scaled to the effective sample size."""
        rows = 1.0 / float(np.sum(self.squares)) / (1.0 if self.groups is None else self.groups.design_effect)
        return rows * float(np.sum(self.share * self.x * (1.0 - self.x)))

    def error(self, truth: _Array) -> float:
        """Mean of |prediction - truth|."""
        return float(np.sum(self.share * np.abs(self.x - truth)))

    def critical(self, alpha: float, times: float = 1.0) -> float:
        """The value that calibrated predictions, `times` as many, exceed with probability alpha.

        It is that of the limit, with the distance from the mean stretched to the right standard deviation.
        """
        null = self.alternative(self.x)
        scales = np.maximum(np.linalg.eigvalsh(null.covariance), 0.0).astype(np.float64)
        mean, limit = float(np.sum(scales)), upper_quantile(alpha, scales)
        normal, variance = null.variances(times)
        return (mean + (limit - mean) * math.sqrt(variance / normal if normal > 0.0 else 1.0)) / times

    def criticals(self, alpha: float) -> Callable[["Alternative"], float]:
        """The critical value as a function of the alternative: it is the same for all, unless rows are in groups.

        Their test estimates the noise from the errors of groups, and an error of all groups looks like noise in part.
        """
        critical, groups = self.critical(alpha), self.groups
        if groups is None:
            return lambda _: critical
        null = self.alternative(self.x).covariance
        distance = (critical - np.trace(null)) / math.sqrt(2.0 * np.sum(null**2))  # in standard deviations

        def estimated(alternative: Alternative) -> float:
            noise = null + groups.one_group * np.outer(alternative.mean, alternative.mean)
            return float(np.trace(noise) + distance * math.sqrt(2.0 * np.sum(noise**2)))

        return estimated

    def alternative(self, truth: _Array) -> Alternative:
        """Distribution of the statistic if outcomes follow the truth."""
        mean, variance = (self.share * (self.x - truth)) @ self.phi, truth * (1.0 - truth)
        if self.groups is not None:
            now = self.x * (1.0 - self.x)
            phi = self.phi * np.sqrt(np.divide(variance, now, out=np.ones_like(now), where=now > 0.0))[:, None]
            return Alternative(mean, phi.T @ self.groups.covariance @ phi, 0.0, 0.0)
        covariance = (self.phi.T * (self.squares * variance)) @ self.phi
        # 4 times the covariance of the length along the mean with the squared length: k(p, p) is 1.
        third = self.cubes * variance * (2.0 * truth - 1.0)
        fourth = float(np.sum(self.fourths * variance * (1.0 - 6.0 * variance)))
        return Alternative(mean, covariance, 4.0 * float(np.sum(third * (self.phi @ mean))), fourth)

    def tilted(self, log_slope: float) -> _Array:
        """Truth whose log-odds have this slope in those of the predictions, and the mean of the predictions."""
        log_odds, slope = special.logit(self.x), math.exp(log_slope)
        finite = np.abs(log_odds[np.isfinite(log_odds)])
        reach = (1.0 + slope) * float(np.max(finite, initial=1.0))

        def surplus(intercept: float) -> float:
            return float(np.sum(self.share * (special.expit(intercept + slope * log_odds) - self.x)))

        intercept = find_root(surplus, -reach, reach, xtol=1e-12)
        return np.asarray(special.expit(intercept + slope * log_odds), np.float64)


@named_columns
def detectable_error(
    y_proba: object,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    measure: str = "information_atb",
    sample_weight: object = None,
) -> DetectableError:
    """Plan a test: the smallest error of these predictions that it detects with a given power.

    Parameters
    ----------
    y_proba : array-like of shape (n,), or Sketch
        Predicted probabilities. Outcomes are not needed. A `Sketch` takes the place of all rows, including
        `sample_weight`; its outcomes are ignored.
    power : float, default 0.8
        Probability that the test detects the error.
    alpha : float, default 0.05
        Level of the test.
    measure : {"information_atb", "atb", "shifted_grid_ubse"}, default "information_atb"
        The test's statistic.
    sample_weight
        As for `calibration_test`.

    Returns
    -------
    DetectableError
        For predictions that are all too high, all too low, too extreme or too timid: the error that the test detects
        with this power. nan if not even the largest such error is detected, or if sum p(1 - p) is below 5, which is too
        little information.

    Notes
    -----
    With a shift of d, the truth is p - d (or p + d), but at least 0 and at most 1. A slope multiplies log-odds, and
    keeps the mean of the predictions. Errors of other shapes, such as those that change sign several times along the
    prediction axis, must be larger to be detected.
    Uses the asymptotic distribution of the statistic, under calibration and under the error; nothing is simulated.
    Rows are assumed to be independent. There is no `groups` here: how much rows of a group have in common shows only in
    their outcomes, so `assess` with `groups` has the detectable error of grouped rows. So has a `Sketch` with groups.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> print(tc.detectable_error(np.linspace(0.05, 0.95, 2000)))
    With these 2,000 predictions, a test at level 0.05 has 80% power to detect
    a shift of 0.030 or more and log-odds slopes below 0.83 or above 1.21.
    """
    check_choice(measure, "measure", TENTS)
    power, alpha = _check_levels(power, alpha)
    summary = summarize_predictions(y_proba, sample_weight)
    return detectable_of(summary.points(), power, alpha, measure, summary.group_sums)


def _check_levels(power: float, alpha: float) -> tuple[float, float]:
    """Check the power and the level of a planned test."""
    power, alpha = check_level(power, "power"), check_level(alpha, "alpha")
    if power <= alpha:  # calibrated predictions are rejected that often
        raise invalid("power", f"must be above alpha = {alpha:g}; got {power:g}.")
    return power, alpha


@one_blas_thread()
def detectable_of(
    points: Points, power: float, alpha: float, measure: str, sums: GroupSums | None = None
) -> DetectableError:
    """The detectable error, from the points of sorted rows or of a sketch; with `sums`, of rows in groups."""
    kernel = TentKernel.of(measure, points)
    design = Design.of(points, measure) if sums is None else Design.of_groups(sums, kernel)
    shifts = slopes = [(math.nan, math.nan)] * 2
    if design.information >= LEAST_INFORMATION:
        (shifted, longest), criticals = FAMILIES["shift"], design.criticals(alpha)
        search = functools.partial(_detectable, design, wanted=float(special.ndtri(power)), criticals=criticals)
        shifts = [
            search(lambda size: shifted(design.x, size), longest),
            search(lambda size: shifted(design.x, -size), longest),
        ]
        slopes = [
            search(lambda size: design.tilted(-size), _STEEPEST),
            search(lambda size: design.tilted(size), _STEEPEST),
        ]
        if sums is not None and sums.bias_variance <= _NO_NOISE:  # options that exclude each other have no bias
            shifts = [(math.nan, math.nan)] * 2
        if sums is None and len(points) == 1 and points.equal_weights and points.rows <= _MOST_TRIALS:
            shifts = [_binomial_shift(points, power, alpha, sign) for sign in (1.0, -1.0)]
    return DetectableError(
        too_high=shifts[0][1],
        too_low=shifts[1][1],
        too_extreme=slopes[0][1],
        too_timid=slopes[1][1],
        shift_high=shifts[0][0],
        shift_low=shifts[1][0],
        slope_low=math.exp(-slopes[0][0]),
        slope_high=math.exp(slopes[1][0]),
        power=power,
        alpha=alpha,
        measure=measure,
        n=points.rows,
        information=design.information,
    )


def _detectable(
    design: Design,
    truth_of: Callable[[float], _Array],
    strongest: float,
    *,
    wanted: float,
    criticals: Callable[[Alternative], float],
) -> tuple[float, float]:
    """The smallest strength of an error that is detected, and its mean error; nan if there is none.

    Very strong errors that make all outcomes certain may not be detected either, so the search starts from below, with
    the quick approximation of the power. `wanted`: normal quantile of the power.
    """

    def nearly(strength: float) -> float:
        alternative = design.alternative(truth_of(strength))
        return alternative.distance(criticals(alternative)) - wanted

    def missing(log_strength: float) -> float:
        alternative = design.alternative(truth_of(min(math.exp(log_strength), strongest)))
        reached = alternative.power(criticals(alternative))
        return float(special.ndtri(min(max(reached, 1e-12), 1.0 - 1e-12))) - wanted

    first = _FIRST / math.sqrt(design.information)
    strengths = [0.0, *np.geomspace(min(first, 0.5) * strongest, strongest, 30).tolist()]
    above = next((k for k, strength in enumerate(strengths) if nearly(strength) >= 0.0), 0)
    if above == 0:
        return math.nan, math.nan
    root = find_root(nearly, strengths[above - 1], strengths[above], rtol=1e-2)
    if not root > 0.0:  # no noise in this direction: errors of groups cancel by construction
        return math.nan, math.nan
    start = math.log(root)
    strength = math.exp(_secant_root(missing, start, start + 0.05))
    if not strength <= strongest:
        return math.nan, math.nan
    return strength, design.error(truth_of(strength))


def _binomial_shift(points: Points, power: float, alpha: float, sign: float) -> tuple[float, float]:
    """The smallest detectable shift of a constant prediction, exactly; nan if there is none.

    The level of such a test is below alpha, because numbers of events are whole: the asymptotic distribution would
    promise a power of 0.8 where it is 0.55 (300 rows of 0.02).
    """
    from scipy import stats  # takes 0.4 s, and few predictions are constant

    n, p = points.rows, float(points.p[0])
    distance = np.abs(np.arange(n + 1) - n * p)
    farthest = np.argsort(-distance, kind="stable")
    # The p-value of a number of events is the probability of all numbers that are at least as far from n p.
    at_least = np.cumsum(stats.binom.pmf(farthest, n, p))
    last_tie = np.searchsorted(-distance[farthest], -distance[farthest] + 1e-9 * n, side="right") - 1
    rejected = np.sort(farthest[at_least[last_tie] <= alpha])
    below, above = rejected[rejected < n * p], rejected[rejected > n * p]

    def missing(shift: float) -> float:
        truth = min(max(p - sign * shift, 0.0), 1.0)
        low = stats.binom.cdf(below[-1], n, truth) if below.size else 0.0
        high = stats.binom.sf(above[0] - 1, n, truth) if above.size else 0.0
        return float(low + high) - power

    longest = p if sign > 0.0 else 1.0 - p
    if missing(longest) < 0.0 or missing(0.0) >= 0.0:
        return math.nan, math.nan
    shift = find_root(missing, 0.0, longest, xtol=1e-12)
    return shift, shift


def _secant_root(rising: Callable[[float], float], x: float, other: float) -> float:
    """Find the detectable error where a smooth function is 0 up to 0.01, near x; nan if it is not rising there."""
    value, last = rising(other), rising(x)
    for _ in range(_SECANTS):
        if abs(value) <= _NO_GAP:
            return other
        if not (value - last) * (other - x) > 0.0:
            break
        step = -value * (other - x) / (value - last)
        x, last, other = other, value, other + min(max(step, -1.0), 1.0)
        value = rising(other)
    return math.nan


@one_blas_thread()
def required_sample_size(
    effect: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    family: str | Family = "shift",
    y_proba: object = None,
    measure: str = "information_atb",
) -> int:
    """Plan a test: the number of rows that it needs to detect an error of this size.

    Parameters
    ----------
    effect : float
        Mean of ``|prediction - truth|``, as a probability: 0.02 for 2 points.
    power, alpha, measure
        As for `detectable_error`.
    family : {"shift", "slope", "wave"} or callable, default "shift"
        How the predictions are wrong, as for `validity_curve`.
    y_proba : array-like, optional
        Predictions similar to the future ones; any number of them. By default evenly spread over [0, 1].

    Returns
    -------
    int
        Number of rows.

    Notes
    -----
    Computed as in `detectable_error`. If the result is below about 100, check it with `power`.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.required_sample_size(0.05), tc.required_sample_size(0.02)
    (645, 4016)
    """
    check_choice(measure, "measure", TENTS)
    (power, alpha), effect = _check_levels(power, alpha), check_level(effect, "effect")
    p = check_proba(y_proba, "y_proba").astype(np.float64) if y_proba is not None else _EVENLY
    _, wrong, strongest = check_family(family, p)
    points = summarize_predictions(p).points()
    design = Design.of(points, measure)
    truth = _truth_at(design, wrong, strongest, effect)
    alternative = design.alternative(truth)

    def missing(log_times: float) -> float:
        times = math.exp(log_times)
        return alternative.power(design.critical(alpha, times), times) - power

    fewest, most = -math.log(points.rows), math.log(_MOST_ROWS / points.rows)
    if missing(fewest) >= 0.0:
        return 1
    if missing(most) < 0.0:
        raise invalid("effect", f"is too small to plan for: more than {_MOST_ROWS:g} rows are needed; got {effect:g}.")
    return math.ceil(math.exp(find_root(missing, fewest, most, xtol=1e-6)) * points.rows * (1.0 - 1e-9))


def _truth_at(design: Design, wrong: Family, strongest: float, effect: float) -> _Array:
    """Truth of a family of errors at which the mean error is `effect`."""

    def error(strength: float) -> float:
        return design.error(wrong(design.x, strength))

    # At the largest slope all truths are 1/2, but just below it predictions of 0 and 1 are still right.
    refuse_unreachable(effect, min(error(strongest), error(strongest * (1.0 - 1e-9))), "effect")
    strength = find_root(lambda strength: error(strength) - effect, 0.0, strongest, xtol=1e-6 * min(effect, 1e-6))
    truth = wrong(design.x, float(strength))
    if abs(design.error(truth) - effect) > 0.01 * effect:
        raise invalid("effect", f"cannot be reached: the errors of this family jump over {effect:g}.")
    return truth
