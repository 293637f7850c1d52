"""Confidence intervals for the value of a measure in the population.

A calibration error cannot be negative, its estimate is biased upwards by noise, and the shape of its distribution
changes near 0, where bootstrap percentiles fail. No rows are resampled here. All intervals are approximations for many
rows (docs/theory/inference.md, I12 to I14), whose coverage is simulated in docs/benchmarks/coverage.md.

- Squared errors with a tent kernel (atb, multiscale_atb, information_atb, shifted_grid_ubse): the squared length of a
  normal vector, whose tail is known for every length of its mean. The interval contains all lengths that are not
  rejected.
- Norms of the bias (smcal, ks_ce, ece ...): noise changes the measure by at most the measure of the noise,
  whatever the truth. The distribution of the noise is approximately normal; given that, the interval is conservative.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.frame_columns import named_columns
from truthcal.core.group_sums import GroupSums
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_choice, check_level, check_rng, check_whole
from truthcal.core.points import PointGroups, Points, excess
from truthcal.core.roots import interval_end, interval_ends
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize
from truthcal.inference.laws.quadratic_form import lower_tail, upper_tail
from truthcal.inference.laws.redraw import blocks
from truthcal.inference.laws.squared_length import Axes, why_no_interval
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.measures.registry import MEASURES, NORMS, TENTS
from truthcal.results.intervals import ConfidenceInterval

_Array = NDArray[np.float64]

# Quantities that have an interval but are not in MEASURES. The first is ATB without noise.
_OTHERS = ("excess", "bias")
# The noise of a norm is drawn at no more than this number of points; neighbouring predictions are merged.
_NOISY = 2048
_DRAWS = 1999
# Of a bias of grouped rows: it is 0 by construction if a group holds all options of a question, one of them correct.
_ROUNDING = 1e-12
# Measures of grouped rows: those that hardly change if neighbouring predictions are merged into 128 cells.
GROUPED = (*TENTS, *(name for name in NORMS if name not in ("ece", "unbinned_ece")))


@dataclass(frozen=True, slots=True)
class LengthOfMean:
    """The mean of w c phi(p), with the covariance estimated from the rows, and with that of calibrated rows.

    `self_pairs`: contribution to the squared length of the pairs of a row with itself. `one_row`: 1 / (effective sample
    size). `of_shift`: the length if all predictions were too high by 1.
    """

    estimated: Axes
    calibrated: Axes
    self_pairs: float
    one_row: float
    of_shift: float

    @classmethod
    def of(cls, points: Points, kernel: TentKernel, square: float | None = None) -> Self:
        """Compute the mean and both covariances from a few hundred points, for independent draws of (p, y).

        If `square` is given, the mean is scaled to this squared length, the value of the measure: merged points are too
        coarse for narrow errors.
        """
        points = points.normalized()
        phi = kernel.axes(kernel.positions(points))
        mean, drift = points.bias @ phi, points.wwc @ phi
        length = math.sqrt(float(mean @ mean))
        if square is not None and length > 0.0:
            mean *= math.sqrt(square) / length
        one_row = points.one_row
        covariance = (phi.T * points.wwcc) @ phi - np.outer(drift, mean) - np.outer(mean, drift)
        covariance += one_row * np.outer(mean, mean)
        shift = points.ww / np.sum(points.ww) @ phi
        return cls(
            estimated=Axes.of(mean, covariance / max(1.0 - one_row, one_row)),
            calibrated=Axes.of(mean, (phi.T * points.wwv) @ phi),
            self_pairs=points.self_pairs,
            one_row=one_row,
            of_shift=math.sqrt(float(shift @ shift)),
        )

    @classmethod
    def of_groups(cls, sums: GroupSums, phi: _Array, level: float, square: float | None = None) -> Self:
        """Compute the mean and both covariances for independent draws of groups of rows.

        `phi` has a row for each cell of the groups. The estimated covariance is increased as Student's quantile is, and
        both if fewer rare events happened than predicted.
        """
        cells, one_group, factor = sums.cells, sums.one_group, sums.fewer_events_factor
        mean, drift = cells.bias @ phi, np.sum(sums.cross, axis=1) @ phi
        calibrated = phi.T @ sums.errors @ phi
        self_pairs = float(np.trace(calibrated))
        length = math.sqrt(float(mean @ mean))
        if square is not None and length > 0.0:
            mean = mean * (math.sqrt(square) / length)
        covariance = calibrated - np.outer(drift, mean) - np.outer(mean, drift) + one_group * np.outer(mean, mean)
        wider = student_factor(sums.n_effective, level) * factor / (1.0 - one_group)
        shift = cells.ww / np.sum(cells.ww) @ phi
        return cls(
            estimated=Axes.of(mean, covariance * wider),
            calibrated=Axes.of(mean, calibrated * factor),
            self_pairs=self_pairs,
            one_row=one_group,
            of_shift=math.sqrt(float(shift @ shift)),
        )

    @property
    def square(self) -> float:
        """The squared length: the measure itself."""
        return float(self.estimated.observed @ self.estimated.observed)

    @property
    def excess(self) -> float:
        """The unbiased estimate of the squared length in the population."""
        return excess(self.square, self.self_pairs, self.one_row)

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """All lengths that neither tail rejects."""
        chance, size = (1.0 - confidence_level) / 2.0, math.sqrt(self.square)
        return self._low(chance, size), self._high(chance, size)

    def _low(self, chance: float, size: float) -> float:
        """The smallest length, in the observed direction, at which the upper tail does not reject the observed value.

        At length 0 the covariance is that of calibrated rows, at the observed length the estimated one; in between the
        two tail probabilities are interpolated. If few events occurred, the estimated variances are too small.
        """
        if size == 0.0:
            return 0.0

        def rising(length: float) -> float:
            share = min(1.0, length / size)
            both = self.calibrated, self.estimated
            first, last = (axes.tail(self.square, axes.observed * (length / size), upper_tail) for axes in both)
            return (1.0 - share) * first + share * last - chance

        return interval_end(rising)

    def _high(self, chance: float, size: float) -> float:
        """The largest length at which the lower tail does not reject the observed value.

        The direction is the observed one. If that may be noise, it is turned towards the direction of the largest
        variance, because noise may have hidden the true error. A value below its average under noise alone is replaced
        by that average: data that look too good must not shrink the interval.
        """
        axes, noise = self.estimated, self.estimated.noise
        if noise == 0.0:
            return size
        signal = max(0.0, 1.0 - noise / size**2) if size > 0.0 else 0.0
        direction = axes.observed * (math.sqrt(signal) / size) if size > 0.0 else np.zeros_like(axes.observed)
        direction[-1] += math.copysign(math.sqrt(1.0 - signal), axes.observed[-1])  # largest variance on the last axis
        direction /= math.sqrt(float(direction @ direction))
        squared_length = max(size**2, noise)
        return interval_end(lambda length: chance - axes.tail(squared_length, direction * length, lower_tail))


def student_factor(n_effective: float, level: float) -> float:
    """Factor for variances estimated from a number of groups: the square of Student's quantile over the normal one."""
    freedom = max(n_effective - 1.0, 1.0)
    return float(special.stdtrit(freedom, (1.0 + level) / 2.0) / special.ndtri((1.0 + level) / 2.0)) ** 2


@named_columns
def confidence_interval(
    y_true: object,
    y_proba: object = None,
    *,
    measure: str = "atb",
    confidence_level: float = 0.95,
    method: str = "auto",
    n_resamples: int = _DRAWS,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
    groups: object = None,
) -> ConfidenceInterval:
    """Confidence interval of the calibration error in the population.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label, groups
        As for `calibration_test`. A `Sketch` has "excess", "bias", and the measures with a tent kernel: atb,
        multiscale_atb, information_atb and shifted_grid_ubse.
    measure : str, default "atb"
        A name in `MEASURES`; for those with a tent kernel the interval is for the value without noise.
        Or "excess", the same as "atb"; or "bias", mean prediction minus mean outcome. `error_size` has the interval of
        the root mean square error.
    confidence_level : float, default 0.95
        Nominal coverage.
    method : {"auto", "quadratic", "norm", "score"}, default "auto"
        "auto" chooses "score" for the bias, "quadratic" for squared errors with a tent kernel, "norm" for
        atb_l1, smcal, laplace_kernel_ce, ks_ce, step_ce, kuiper_ce, ece, and for unbinned_ece if predictions repeat.
    n_resamples, rng
        Number of draws of the noise, and source of randomness, for "norm".

    Returns
    -------
    ConfidenceInterval
        ``low`` and ``high``. Both are nan if no interval with this coverage is known, as ``why`` explains: for other
        measures, and for one row.

    Notes
    -----
    More than 2^15 rows are not sorted but reduced to a sketch of 16,384 buckets, if the measure allows it and the
    buckets are not too coarse.
    Rows, or with `groups` whole groups of rows, are assumed to be independent draws from one population. Intervals of
    ece and unbinned_ece do not support `groups`. The interval is an approximation for many rows; its
    coverage was simulated for calibrated and other predictions: docs/benchmarks/coverage.md. Near calibration, where
    bootstrap percentiles may exclude their own estimate, the interval starts at 0.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> print(tc.confidence_interval(rng.random(2000) < 0.2 + 0.6 * p, p))
    atb without noise 0.002941, 95% between 0.00202 and 0.00421
    """
    check_choice(measure, "measure", (*_OTHERS, *MEASURES))
    confidence_level = check_level(confidence_level, "confidence_level")
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    sketch_many = measure in (*_OTHERS, *TENTS)
    summary = summarize(y_true, y_proba, sample_weight, pos_label, sketch_many=sketch_many, groups=groups)
    return interval_of(summary, measure, confidence_level, method, n_resamples, rng)


@one_blas_thread()
def interval_of(
    summary: Sample | Sketch,
    measure: str,
    confidence_level: float,
    method: str,
    n_resamples: int = _DRAWS,
    rng: Any = 0,
) -> ConfidenceInterval:
    """Confidence interval from sorted rows or a sketch."""
    if summary.sketched:
        check_choice(measure, "measure", (*_OTHERS, *TENTS), " of a sketch")
    known = "score" if measure == "bias" else "norm" if measure in NORMS else "quadratic"
    check_choice(method, "method", ("auto", known), f" for {measure}")
    points, sums = summary.points(), summary.group_sums
    if sums is not None:
        check_choice(measure, "measure", (*_OTHERS, *GROUPED), " with groups")
    cells = points.merged().normalized()
    if measure == "bias":
        return bias_interval(cells, confidence_level) if sums is None else grouped_bias_interval(sums, confidence_level)
    if why := why_no_interval(points.rows, points.one_row):
        return _no_interval(measure, math.nan, confidence_level, why)
    if measure in NORMS and not summary.sketched:
        return _norm_interval(summary, cells, measure, confidence_level, n_resamples, rng)
    if measure in TENTS or measure in _OTHERS:
        return _square_interval(summary, points, cells, measure, confidence_level)
    why = f"no interval for {measure} has known coverage near calibration; use error_size, smcal or ece"
    return _no_interval(measure, MEASURES[measure].of_sample(summary), confidence_level, why)


def _no_interval(measure: str, estimate: float, level: float, why: str) -> ConfidenceInterval:
    return ConfidenceInterval(math.nan, math.nan, level, measure, estimate, "none", why)


def bias_interval(cells: Points, level: float) -> ConfidenceInterval:
    """Confidence interval of the bias, from normalized cells (see `bias_intervals`)."""
    return bias_intervals(PointGroups.one(cells), level)[0]


def grouped_bias_interval(sums: GroupSums, level: float) -> ConfidenceInterval:
    """Confidence interval of the bias if rows belong together (see `bias_intervals`)."""
    return bias_intervals(PointGroups.one(sums.cells), level, sums)[0]


def bias_intervals(cells: PointGroups, level: float, sums: GroupSums | None = None) -> list[ConfidenceInterval]:
    """Confidence intervals of biases, from normalized cells: all that Student's quantile of a score does not reject.

    The variance is the estimated one or, if larger, that of outcomes with the assumed bias: if few or no events
    occurred, the estimated variance is too small. With `sums`, of the only group of cells, groups of rows take the
    place of rows, and the variance of outcomes is multiplied by what groups add to it.
    """
    points, one_row = cells.points, cells.one_row
    reasons = [why_no_interval(*group) for group in zip(cells.rows.tolist(), one_row.tolist(), strict=True)]
    known = np.array([not why for why in reasons])
    bias = cells.sums(points.bias)
    squares = cells.sums(points.wwcc) - 2.0 * bias * cells.sums(points.wwc) + one_row * bias**2
    variance = np.maximum(squares, 0.0) / np.where(known, 1.0 - one_row, 1.0)
    rounding = 0.0 if sums is None else _ROUNDING
    ratio, why = 1.0, "approximation: all biases that are consistent with the mean of these rows, by Student's quantile"
    if sums is not None:
        variance, one_row, ratio = np.array([sums.bias_variance]), np.array([sums.one_group]), sums.noise_ratio
        why = f"{why}; from {sums.n_groups:,} groups of rows"
    quantile = special.stdtrit(np.maximum(1.0 / one_row - 1.0, 1e-9), (1.0 + level) / 2.0)
    unbiased = points.p - cells.spread(bias)

    def end(sign: float) -> _Array:
        def beyond(distance: _Array, _: NDArray[np.bool_]) -> _Array:
            distance = np.maximum(distance, 1e-12)  # at 0, both terms are 0 if all outcomes are certain
            truth = np.clip(unbiased - sign * cells.spread(distance), 0.0, 1.0)
            assumed = ratio * np.add.reduceat(points.ww * truth * (1.0 - truth), cells.starts[:-1])
            return np.asarray(distance - quantile * np.sqrt(np.maximum(variance, assumed)))

        return np.clip(bias + sign * np.maximum(interval_ends(beyond, known), rounding), -1.0, 1.0)

    ends = np.stack([end(-1.0), end(1.0), bias], axis=1).tolist()
    return [
        _no_interval("bias", estimate, level, reason)
        if reason
        else ConfidenceInterval(low, high, level, "bias", estimate, "score", why)
        for (low, high, estimate), reason in zip(ends, reasons, strict=True)
    ]


def _square_interval(
    summary: Sample | Sketch, points: Points, cells: Points, measure: str, level: float
) -> ConfidenceInterval:
    name = "atb" if measure in _OTHERS else measure
    kernel, sums = TentKernel.of(name, points), summary.group_sums
    square = kernel.measure(points) if summary.sketched else MEASURES[name].of_sample(summary)
    if sums is None:
        length, bias = LengthOfMean.of(cells, kernel, square), bias_interval(cells, level)
    else:
        phi = kernel.axes(kernel.positions(sums.cells))
        length, bias = LengthOfMean.of_groups(sums, phi, level, square), grouped_bias_interval(sums, level)
    estimate = length.excess
    low, high = length.interval(level)
    # The interval of the bias accounts for events that could have occurred but did not.
    high = min(max(high, length.of_shift * max(-bias.low, bias.high), math.sqrt(max(estimate, 0.0))), 1.0)
    low = min(low, math.sqrt(max(estimate, 0.0)))  # with two or three rows, impossible outcomes may still cancel
    rows = "rows" if sums is None else f"{sums.n_groups:,} groups of rows"
    why = f"approximation for many rows: all sizes of the mean error that are consistent with these {rows}"
    ends, removed = (low**2, high**2), measure in TENTS
    return ConfidenceInterval(*ends, level, measure, estimate, "quadratic", why, noise_removed=removed)


def _norm_interval(
    sample: Sample, cells: Points, measure: str, level: float, n_resamples: int, rng: Any
) -> ConfidenceInterval:
    value = MEASURES[measure].of_sample(sample)
    if has_no_population(sample, measure):
        return _no_interval(measure, value, level, "most predictions are unique, so this ECE has no population value")
    draws = noise_of_norm(sample, measure, n_resamples, check_rng(rng))
    margin = float(np.quantile(draws, level, method="higher"))
    why = "normal approximation; conservative: noise changes the measure by at most the measure of the noise itself"
    # No norm is much below the bias, whose interval accounts for events that could have occurred but did not.
    sums = sample.group_sums
    bias = bias_interval(cells, level) if sums is None else grouped_bias_interval(sums, level)
    low, high = max(value - margin, 0.0), min(max(value + margin, -bias.low, bias.high), 1.0)
    return ConfidenceInterval(low, high, level, measure, value, "norm", why)


def has_no_population(sample: Sample, measure: str) -> bool:
    """Whether a measure has no interval: it is incomplete (ECE of distinct predictions), most predictions unique."""
    return not MEASURES[measure].complete and len(sample.groups.r) > sample.n / 10


def noise_of_norm(sample: Sample, measure: str, n_resamples: int, generator: np.random.Generator) -> _Array:
    """Draw a norm of the noise, for its interval: independent normals with estimated variances, or those under H0.

    Those of grouped rows have the covariance that is estimated from the groups.
    """
    norm, sums = MEASURES[measure].norm, sample.group_sums
    assert norm is not None  # callers pass a name in NORMS
    if sums is not None:
        covariance = sums.covariance(float(np.sum(sums.cells.bias))) / (1.0 - sums.one_group)
        scales, axes = np.linalg.eigh(covariance * sums.fewer_events_factor)
        normals = generator.standard_normal((n_resamples, len(scales)))
        return norm(sums.cells.p, normals @ (axes * np.sqrt(np.maximum(scales, 0.0))).T)
    cells = sample.points().merged(_NOISY).normalized()
    # If few events occurred, the estimated variances are too small.
    root = np.sqrt(cells.wwcc if np.sum(cells.wwcc) >= np.sum(cells.wwv) else cells.wwv)
    sizes = blocks(n_resamples, max(1, (1 << 18) // len(root)))
    return np.concatenate([norm(cells.p, generator.standard_normal((size, len(root))) * root) for size in sizes])
