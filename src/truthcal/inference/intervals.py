"""Confidence intervals for what infinitely many rows of the same kind would show.

A calibration error cannot be negative, is estimated too large by chance, and has a distribution of another shape near 0
than away from it: percentiles of a bootstrap miss it there. Here nothing is resampled from rows.

- Squared errors with a kernel of tents (atb, multiscale_atb, shifted_grid_ubse): the squared length of a normal vector,
  whose tail is known for every length of its mean. The interval holds all lengths that are not rejected.
- Norms of the bias (smcal, ks_ce, binned_ece ...): the measure of what noise adds bounds how far the measure is off,
  whatever the truth. Wider than need be, never too narrow.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from truthcal.core.params import check_choice, check_level, check_rng, check_whole
from truthcal.core.points import CELLS, Points, excess
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize
from truthcal.inference.laws.quadratic_form import lower_tail, upper_tail
from truthcal.inference.laws.redraw import blocks
from truthcal.inference.laws.tent_kernel import CERTAIN, TentKernel
from truthcal.measures.registry import MEASURES, NORMS, TENTS
from truthcal.results.intervals import ConfidenceInterval

_Array = NDArray[np.float64]

# Names that are no measures, and the measure behind the first two.
_OTHERS = ("rms", "excess", "bias")
# Uneven weights that leave the worth of fewer rows than this make means far from normal.
_FEW = 20.0
# So many different predictions at most carry the noise of a norm; neighbours are taken for one beyond that.
_NOISY = 2048
_DRAWS = 1999


@dataclass(frozen=True, slots=True)
class _Axes:
    """A normal vector on the axes along which its coordinates are independent: what was seen of it, and its variances.

    `scales` increase.
    """

    seen: _Array
    scales: _Array

    @classmethod
    def of(cls, seen: _Array, covariance: _Array) -> Self:
        scales, axes = np.linalg.eigh(covariance)
        return cls(seen @ axes, np.maximum(scales, 0.0))

    @property
    def noise(self) -> float:
        """Its mean squared length if its mean is 0."""
        return float(np.sum(self.scales))

    def tail(self, squared_length: float, mean: _Array, side: Callable[..., float]) -> float:
        """Chance that the squared length is beyond this, for a given mean."""
        free = self.scales > CERTAIN * max(float(self.scales[-1]), 1e-12 * squared_length)
        rest = squared_length - float(np.sum(mean[~free] ** 2))
        return side(rest, self.scales[free], mean[free] / np.sqrt(self.scales[free]))


@dataclass(frozen=True, slots=True)
class LengthOfMean:
    """The mean of w c phi(p), with the covariance seen in the rows, and with that of calibrated rows.

    `self_pairs`: what pairs of a row with itself add to the squared length. `one_row`: one over the effective number of
    rows. `of_shift`: the length if all predictions were too high by 1.
    """

    as_seen: _Axes
    calibrated: _Axes
    self_pairs: float
    one_row: float
    of_shift: float

    @classmethod
    def of(cls, points: Points, kernel: TentKernel, square: float | None = None) -> Self:
        """From a few hundred points: their covariance is that of independent draws of (p, y), with their w.

        The mean gets the length `square` that the measure has, where that is given: merged points are too coarse for
        narrow errors.
        """
        points = points.normalized()
        phi = kernel.axes(points.p)
        mean, drift = points.bias @ phi, points.wwc @ phi
        length = math.sqrt(float(mean @ mean))
        if square is not None and length > 0.0:
            mean *= math.sqrt(square) / length
        one_row = points.one_row
        covariance = (phi.T * points.wwcc) @ phi - np.outer(drift, mean) - np.outer(mean, drift)
        covariance += one_row * np.outer(mean, mean)
        shift = points.ww / np.sum(points.ww) @ phi
        return cls(
            as_seen=_Axes.of(mean, covariance / max(1.0 - one_row, one_row)),
            calibrated=_Axes.of(mean, (phi.T * points.wwv) @ phi),
            self_pairs=points.self_pairs,
            one_row=one_row,
            of_shift=math.sqrt(float(shift @ shift)),
        )

    @property
    def square(self) -> float:
        """The squared length: the measure itself."""
        return float(self.as_seen.seen @ self.as_seen.seen)

    @property
    def excess(self) -> float:
        """The unbiased estimate of the squared length that infinitely many rows would have."""
        return excess(self.square, self.self_pairs, self.one_row)

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """All lengths that neither tail rejects."""
        chance, size = (1.0 - confidence_level) / 2.0, math.sqrt(self.square)
        return self._low(chance, size), self._high(chance, size)

    def _low(self, chance: float, size: float) -> float:
        """The least length, in the direction seen, at which so large a value is not too rare.

        At length 0 rows are calibrated, at the length seen they vary as they were seen to; in between the chances are
        mixed in proportion. Where few events have happened, variances seen know nothing of those that could have.
        """
        if size == 0.0:
            return 0.0

        def rising(length: float) -> float:
            share = min(1.0, length / size)
            both = self.calibrated, self.as_seen
            first, last = (axes.tail(self.square, axes.seen * (length / size), upper_tail) for axes in both)
            return (1.0 - share) * first + share * last - chance

        return _crossing(rising)

    def _high(self, chance: float, size: float) -> float:
        """The greatest length at which so small a value is not too rare.

        The direction is the one seen. Where that may be noise it turns towards the one in which the mean varies most:
        the true error may have been hidden by noise against it. And a value smaller than noise alone gives on average
        is treated as that average, since data that look too good must not shrink the interval.
        """
        axes, noise = self.as_seen, self.as_seen.noise
        if noise == 0.0:
            return size
        signal = max(0.0, 1.0 - noise / size**2) if size > 0.0 else 0.0
        direction = axes.seen * (math.sqrt(signal) / size) if size > 0.0 else np.zeros_like(axes.seen)
        direction[-1] += math.copysign(math.sqrt(1.0 - signal), axes.seen[-1])  # the last axis varies most
        direction /= math.sqrt(float(direction @ direction))
        least = max(size**2, noise)
        return _crossing(lambda length: chance - axes.tail(least, direction * length, lower_tail))


def _crossing(rising: Callable[[float], float]) -> float:
    """Root of a function that rises on [0, 1]; an end if there is none.

    Lengths are small beside 1, so that steps towards 0 by a factor come near sooner than Brent's method does.
    """
    rising = functools.cache(rising)  # a tail takes a millisecond, and brentq asks for both ends again
    if rising(0.0) >= 0.0:
        return 0.0
    if rising(1.0) <= 0.0:
        return 1.0
    high = 1.0
    while high > 1e-12 and rising(high / 4.0) > 0.0:
        high /= 4.0
    return float(optimize.brentq(rising, high / 4.0 if high > 1e-12 else 0.0, high, xtol=1e-12, rtol=1e-6))


def confidence_interval(
    y_true: object,
    y_proba: object = None,
    *,
    measure: str = "rms",
    confidence_level: float = 0.95,
    method: str = "auto",
    n_resamples: int = _DRAWS,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> ConfidenceInterval:
    """Confidence interval of the calibration error that infinitely many such rows would have.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `calibration_test`. A `Sketch` has "rms", "excess", "bias", atb, multiscale_atb and shifted_grid_ubse.
    measure : str, default "rms"
        "excess", the ATB without noise; "rms", its root, on the scale of a probability; "bias", mean prediction minus
        mean outcome; or a name in `MEASURES`. For atb, multiscale_atb and shifted_grid_ubse the interval is for the
        value without noise.
    confidence_level : float, default 0.95
        Wanted coverage.
    method : {"auto", "quadratic", "norm", "score"}, default "auto"
        "auto" chooses "score" for the bias, "quadratic" for squared errors with a kernel of tents, "norm" for
        atb_l1, smcal, laplace_kernel_ce, ks_ce, step_ce, kuiper_ce, binned_ece, and for ece if predictions repeat.
    n_resamples, rng
        Draws of the noise, and source of randomness, for "norm".

    Returns
    -------
    ConfidenceInterval
        ``low`` and ``high``, both nan where no interval with the wanted coverage is known (``why`` says so): for other
        measures, and for one row.

    Notes
    -----
    More than 2^20 rows are reduced to a sketch of 16,384 buckets where a sketch will do, not sorted.
    Rows are taken for independent draws from one population. How often the intervals contain its value was simulated,
    for calibrated and other predictions: docs/benchmarks/coverage.md. Near calibration, where bootstrap percentiles
    exclude even their own estimate, the interval starts at 0.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> print(tc.confidence_interval(rng.random(2000) < 0.2 + 0.6 * p, p))
    rms 0.05423, 95% between 0.04496 and 0.06487
    """
    check_choice(measure, "measure", (*_OTHERS, *MEASURES))
    confidence_level = check_level(confidence_level, "confidence_level")
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    summary = summarize(y_true, y_proba, sample_weight, pos_label, sketch_many=measure in (*_OTHERS, *TENTS))
    return interval_of(summary, measure, confidence_level, method, n_resamples, rng)


def interval_of(
    summary: Sample | Sketch,
    measure: str,
    confidence_level: float,
    method: str,
    n_resamples: int = _DRAWS,
    rng: Any = 0,
    *,
    at_most: int = CELLS,
) -> ConfidenceInterval:
    """Compute the interval from sorted rows or a sketch, with neighbouring points merged down to a maximum number."""
    if summary.sketched:
        check_choice(measure, "measure", (*_OTHERS, *TENTS), " of a sketch")
    known = "score" if measure == "bias" else "norm" if measure in NORMS else "quadratic"
    check_choice(method, "method", ("auto", known), f" for {measure}")
    points = summary.points()
    cells, one_row = points.merged(at_most).normalized(), points.one_row
    if points.rows < 2 or one_row >= 1.0 or (one_row * points.rows > 2.0 and one_row * _FEW > 1.0):
        estimate = float(np.sum(cells.bias)) if measure == "bias" else math.nan
        why = "an interval needs two rows" if points.rows < 2 else "a few rows have nearly all of the weight"
        return _none(measure, estimate, confidence_level, why)
    if measure == "bias":
        return _of_bias(cells, confidence_level)
    if measure in NORMS and not summary.sketched:
        return _of_norm(summary, cells, measure, confidence_level, n_resamples, rng)
    if measure in TENTS or measure in _OTHERS:
        return _of_square(summary, points, cells, measure, confidence_level)
    why = f"no interval for {measure} has known coverage near calibration; use rms, smcal or binned_ece"
    return _none(measure, MEASURES[measure].of_sample(summary), confidence_level, why)


def _none(measure: str, estimate: float, level: float, why: str) -> ConfidenceInterval:
    return ConfidenceInterval(math.nan, math.nan, level, measure, estimate, "none", why)


def _of_bias(cells: Points, level: float) -> ConfidenceInterval:
    """All biases that these rows do not contradict, by Student's quantile of a score.

    The variance is the one seen, or that of outcomes with the supposed bias if that is larger: where few events have
    happened, or none, the variance seen knows nothing of those that could have.
    """
    bias, one_row = float(np.sum(cells.bias)), cells.one_row
    squares = float(np.sum(cells.wwcc) - 2.0 * bias * np.sum(cells.wwc)) + one_row * bias**2
    seen = max(squares, 0.0) / (1.0 - one_row)
    quantile = float(special.stdtrit(max(1.0 / one_row - 1.0, 1e-9), (1.0 + level) / 2.0))

    def beyond(distance: float, sign: float) -> float:
        distance = max(distance, 1e-12)  # at 0 itself all is equal if nothing was left to chance
        truth = np.clip(cells.p - bias - sign * distance, 0.0, 1.0)
        return distance - quantile * math.sqrt(max(seen, float(np.sum(cells.ww * truth * (1.0 - truth)))))

    low, high = (bias + sign * _crossing(lambda far, sign=sign: beyond(far, sign)) for sign in (-1.0, 1.0))  # type: ignore[misc]
    why = "all biases that are consistent with the mean of these rows"
    return ConfidenceInterval(max(low, -1.0), min(high, 1.0), level, "bias", bias, "score", why)


def _of_square(
    summary: Sample | Sketch, points: Points, cells: Points, measure: str, level: float
) -> ConfidenceInterval:
    name = "atb" if measure in _OTHERS else measure
    kernel = TentKernel.of(name, points)
    square = kernel.measure(points) if summary.sketched else MEASURES[name].of_sample(summary)
    length = LengthOfMean.of(cells, kernel, square)
    estimate = length.excess
    low, high = length.interval(level)
    bias = _of_bias(cells, level)  # it allows for events that could have happened and did not; so must this
    high = min(max(high, length.of_shift * max(-bias.low, bias.high), math.sqrt(max(estimate, 0.0))), 1.0)
    low = min(low, math.sqrt(max(estimate, 0.0)))  # two or three rows: what is impossible may still average out
    why = "all sizes of the mean error that are consistent with these rows"
    if measure == "rms":
        return ConfidenceInterval(low, high, level, measure, math.sqrt(max(estimate, 0.0)), "quadratic", why)
    ends, removed = (low**2, high**2), measure in TENTS
    return ConfidenceInterval(*ends, level, measure, estimate, "quadratic", why, noise_removed=removed)


def _of_norm(
    sample: Sample, cells: Points, measure: str, level: float, n_resamples: int, rng: Any
) -> ConfidenceInterval:
    value = MEASURES[measure].of_sample(sample)
    if has_no_population(sample, measure):
        return _none(measure, value, level, "most predictions are unique, so this ECE has no population value")
    draws = noise_of_norm(sample, measure, n_resamples, check_rng(rng))
    reach = float(np.quantile(draws, level, method="higher"))
    why = "conservative: noise changes the measure by at most the measure of the noise itself"
    bias = _of_bias(cells, level)  # no norm here is much less than the bias, whose ends allow for more
    low, high = max(value - reach, 0.0), min(max(value + reach, -bias.low, bias.high), 1.0)
    return ConfidenceInterval(low, high, level, measure, value, "norm", why)


def has_no_population(sample: Sample, measure: str) -> bool:
    """Whether an incomplete measure, the ECE of distinct predictions, compares most of them with one outcome alone."""
    return not MEASURES[measure].complete and len(sample.groups.r) > sample.n / 10


def noise_of_norm(sample: Sample, measure: str, n_resamples: int, generator: np.random.Generator) -> _Array:
    """Draws of the measure of what noise adds to the bias: independent normals with the variances seen, or of H0."""
    cells = sample.points().merged(_NOISY).normalized()
    # Where few events have happened, the variances seen know nothing of those that could have.
    root = np.sqrt(cells.wwcc if np.sum(cells.wwcc) >= np.sum(cells.wwv) else cells.wwv)
    sizes = blocks(n_resamples, max(1, (1 << 18) // len(root)))
    norm = MEASURES[measure].norm
    assert norm is not None  # callers pass a name in NORMS
    return np.concatenate([norm(cells.p, generator.standard_normal((size, len(root))) * root) for size in sizes])
