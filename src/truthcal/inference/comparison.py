"""Comparison of two forecasters of the same events: which is better calibrated, and which more skilful."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.checks import Checked, as_columns, check_rows, refuse_fractional
from truthcal.core.params import check_choice, check_level, check_rng, check_whole
from truthcal.core.points import equal_cells, excess
from truthcal.core.sample import Sample
from truthcal.core.sketch import bucket_index
from truthcal.inference.intervals import has_no_population, noise_of_norm
from truthcal.inference.laws.quadratic_form import lower_tail, upper_quantile, upper_tail
from truthcal.inference.laws.tent_kernel import CERTAIN, TentKernel
from truthcal.measures.registry import MEASURES, NORMS, TENTS
from truthcal.results.comparison import Comparison

_Array = NDArray[np.float64]

# Cells for each forecaster; buckets are merged into them.
_CELLS, _BUCKETS = 96, 4096
# Curvature below the first share of the largest curvature is treated as 0; below the second share of the noise, as
# rounding.
_STRAIGHT, _ROUNDING = 1e-6, 1e-10
# Merging into cells hides differences below this share of the noise, so intervals are widened by it.
_HIDDEN = 1e-5


def compare(
    y_true: object,
    y_proba_a: object,
    y_proba_b: object,
    *,
    measure: str = "atb",
    confidence_level: float = 0.95,
    n_resamples: int = 19999,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> Comparison:
    """Is one of two forecasters better calibrated, or only more skilful? A paired comparison on the same outcomes.

    Parameters
    ----------
    y_true, sample_weight, pos_label
        As for `calibration_test`.
    y_proba_a, y_proba_b : array-like of shape (n,)
        The two forecasters' predictions of the same events, row by row.
    measure : str, default "atb"
        atb, multiscale_atb or shifted_grid_ubse: their values without noise are compared. Or, with a wider interval,
        atb_l1, smcal, laplace_kernel_ce, ks_ce, step_ce, kuiper_ce, ece or (if predictions repeat) unbinned_ece.
    confidence_level : float, default 0.95
        Confidence level of the intervals.
    n_resamples : int, default 19999
        Number of draws of the noise, for atb_l1 and the measures after it.
    rng : int, numpy Generator or None, default 0
        Source of randomness, for the same measures.

    Returns
    -------
    Comparison
        ``difference`` (a minus b; negative if a is better calibrated), its interval and ``pvalue``, and the same for
        the Brier score. Prints in words.

    Notes
    -----
    For squared errors with a tent kernel, the two mean errors form one normal vector whose covariance is estimated from
    the rows. The distribution of the difference of their squared lengths follows from it, both for miscalibrated
    forecasters, whose estimates vary like means, and for calibrated ones, whose estimates vary like squares. For norms
    of the bias the two intervals are combined, which is conservative. The Brier score is compared by the mean of the
    differences per row. Rows are assumed to be independent.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(3000)
    >>> outcome = rng.random(3000) < truth
    >>> result = tc.compare(outcome, truth, np.full(3000, 0.5))
    >>> print(result.better_calibrated, result.better_brier)
    None a
    >>> print(str(result).splitlines()[0])
    a is more skilful (Brier score); no significant difference in calibration (3,000 rows).
    """
    check_choice(measure, "measure", (*TENTS, *NORMS))
    level = check_level(confidence_level, "confidence_level")
    n_resamples, generator = check_whole(n_resamples, "n_resamples", 99), check_rng(rng)
    as_columns(y_proba_a=y_proba_a, y_proba_b=y_proba_b)  # same length and order
    columns = {"y_proba_a": y_proba_a, "y_proba_b": y_proba_b}
    a, b = (check_rows(y_true, p, sample_weight, pos_label, name=name) for name, p in columns.items())
    refuse_fractional(a.y)
    samples = Sample.from_checked(a), Sample.from_checked(b)
    if not samples[0].points().one_row < 1.0:
        raise ValueError("at least two rows with positive weight are needed to distinguish noise from error.")
    if measure in TENTS:
        calibration = _compare_squares(a, b, samples, measure, level)
    else:
        calibration = _compare_norms(samples, measure, level, n_resamples, generator)
    differences = calibration.fields("") | _compare_brier(a, b, level).fields("brier_")
    return Comparison(measure=measure, confidence_level=level, n=len(a.p), **differences)


class _Difference(NamedTuple):
    """Both values, and interval and p-value of their difference."""

    a: float
    b: float
    low: float
    high: float
    pvalue: float

    def fields(self, prefix: str) -> dict[str, Any]:
        """Return the fields of `Comparison` whose names begin with the prefix."""
        values = self._asdict() | {"difference": self.a - self.b}
        return {prefix + name: value for name, value in values.items()}


# --- squared errors ---------------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One forecaster's rows in cells: the cell and w / W, p, w c / W of each row, and coordinates of the cells."""

    cell: NDArray[np.int64]
    phi: _Array
    w: _Array
    p: _Array
    c: _Array

    @classmethod
    def of(cls, rows: Checked, kernel: TentKernel) -> "_Side":
        p = rows.p.astype(np.float64)
        w = np.full(len(p), 1.0 / len(p)) if rows.w is None else rows.w / np.sum(rows.w)
        bucket = bucket_index(p, _BUCKETS)
        noise = np.bincount(bucket, w * w, minlength=_BUCKETS).astype(np.float64)
        filled = np.flatnonzero(noise)
        number = np.zeros(_BUCKETS, np.int64)
        number[filled] = equal_cells(noise[filled], _CELLS) if len(filled) > _CELLS else np.arange(len(filled))
        cell = number[bucket]
        return cls(cell, kernel.axes(np.bincount(cell, w * p) / np.bincount(cell, w)), w, p, w * (p - rows.y))

    def mean(self) -> _Array:
        """The mean of w c phi."""
        return np.bincount(self.cell, self.c, minlength=len(self.phi)) @ self.phi

    def products(self, other: "_Side", of_rows: _Array) -> _Array:
        """Sum over rows of the outer products of both forecasters' phi, each times a number."""
        shape = len(self.phi), len(other.phi)
        table = np.bincount(self.cell * shape[1] + other.cell, of_rows, minlength=shape[0] * shape[1])
        return self.phi.T @ table.reshape(shape) @ other.phi


def _joint_covariance(a: _Side, b: _Side) -> _Array:
    """Joint covariance of both forecasters' mean errors.

    It is computed from the observed products or, if larger, from those expected if the truth is halfway between the
    forecasters: if few events occurred, the observed products are too small.
    """
    observed = a.c * a.c, a.c * b.c, b.c * b.c
    truth = (a.p + b.p) / 2.0
    noise, gap = a.w**2 * truth * (1.0 - truth), a.w**2 * (a.p - truth) ** 2
    expected = noise + gap, noise - gap, noise + gap
    aa, ab, bb = observed if np.sum(observed[0] + observed[2]) >= np.sum(expected[0] + expected[2]) else expected
    cross = a.products(b, ab)
    return np.block([[a.products(a, aa), cross], [cross.T, b.products(b, bb)]])


def _compare_squares(a: Checked, b: Checked, samples: tuple[Sample, Sample], measure: str, level: float) -> _Difference:
    """Compare two forecasters by a squared error: values without noise, and the distribution of their difference.

    With M = m + Z and J the sign of a forecaster's part, M'JM - m'JM is linear and quadratic in the noise Z. Products
    of rows are not centred by the mean, which makes the variance of Z slightly too large.
    """
    points = [sample.points() for sample in samples]
    sides = [_Side.of(rows, TentKernel.of(measure, p)) for rows, p in zip((a, b), points, strict=True)]
    means = [side.mean() for side in sides]
    covariance = _joint_covariance(*sides)
    rest, squares = 1.0 - points[0].one_row, [MEASURES[measure].of_sample(sample) for sample in samples]
    values = [excess(square, p.self_pairs, p.one_row) for square, p in zip(squares, points, strict=True)]
    sign = np.concatenate([np.ones(len(means[0])), -np.ones(len(means[1]))])
    mean = _shorten_means(np.concatenate(means), covariance, sign)
    scales, axes = np.linalg.eigh(covariance)
    uncertain = scales > CERTAIN * scales[-1]
    root = axes[:, uncertain] * np.sqrt(scales[uncertain])
    curvature, rotation = np.linalg.eigh((root.T * sign) @ root)
    noise = float(np.trace(covariance)) / rest
    law = _Law.of(curvature / rest, 2.0 * (mean * sign) @ root @ rotation / rest, _ROUNDING * noise)
    # Omitted directions and merged cells hide differences below this share of the noise.
    difference, hidden = values[0] - values[1], _HIDDEN * noise if values[0] != values[1] else 0.0
    low, high = (difference - law.quantile(chance) for chance in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
    beyond = math.copysign(max(abs(difference) - hidden, 0.0), difference)
    return _Difference(values[0], values[1], low - hidden, high + hidden, law.two_sided(beyond))


class _Law(NamedTuple):
    """The distribution of the sum over j of curvature_j (g_j^2 - 1) + slope_j g_j, g independent standard normals.

    Completing squares makes it a sum of squares of shifted normals, minus `offset`. Terms with almost no curvature are
    combined into one normal, represented by two opposite squares with large shifts.
    """

    scales: _Array
    shifts: _Array
    offset: float

    @classmethod
    def of(cls, curvature: _Array, slope: _Array, rounding: float) -> "_Law":
        largest, steepest = float(np.max(np.abs(curvature), initial=0.0)), float(np.sqrt(np.sum(slope**2)))
        if not max(largest, steepest) > rounding:  # equal forecasters, or no uncertain predictions
            return cls(np.empty(0), np.empty(0), 0.0)
        largest = max(largest, 1e-3 * steepest)  # almost no curvature: a normal
        bent = np.abs(curvature) > _STRAIGHT * largest
        scales, shifts = curvature[bent], slope[bent] / (2.0 * curvature[bent])
        offset = float(np.sum(scales * (1.0 + shifts**2)))
        sd, epsilon = math.sqrt(float(np.sum(slope[~bent] ** 2))), 100.0 * _STRAIGHT * largest
        shift = sd / (2.0 * math.sqrt(2.0) * epsilon)
        return cls(np.append(scales, [epsilon, -epsilon]), np.append(shifts, [shift, shift]), offset)

    def quantile(self, upper: float) -> float:
        """The value that is exceeded with probability `upper`."""
        return upper_quantile(upper, self.scales, self.shifts) - self.offset if len(self.scales) else 0.0

    def two_sided(self, value: float) -> float:
        """Two-sided p-value of `value`."""
        if len(self.scales) == 0:
            return float(value == 0.0)
        tails = (tail(value + self.offset, self.scales, self.shifts) for tail in (upper_tail, lower_tail))
        return min(1.0, 2.0 * min(tails))


def _shorten_means(mean: _Array, covariance: _Array, sign: _Array) -> _Array:
    """Shorten both forecasters' means so that the estimated variance of the linear part is unbiased or too large.

    That variance is 4 x'Cx with x = J m. With M in place of m, noise adds the trace of C J C J, which is large for
    forecasters whose errors have little in common and almost 0 for nearly equal ones.
    """
    signed = covariance * sign[:, None] * sign
    square, noise = float(mean @ signed @ mean), float(np.sum(covariance * signed))
    return mean * math.sqrt(min(1.0, max(0.0, 1.0 - noise / square))) if square > 0.0 else mean


# --- norms and the Brier score ----------------------------------------------------------------------------------------


def _compare_norms(
    samples: tuple[Sample, Sample], measure: str, level: float, n_resamples: int, generator: np.random.Generator
) -> _Difference:
    """Compare two forecasters by a norm: each one's noise gets half of the allowed error."""
    if any(has_no_population(sample, measure) for sample in samples):
        raise ValueError(f"most predictions are unique, so {measure} has no population value; use atb or ece.")
    values = [MEASURES[measure].of_sample(sample) for sample in samples]
    draws = [np.sort(noise_of_norm(sample, measure, n_resamples, generator)) for sample in samples]
    reach = sum(float(np.quantile(draw, (1.0 + level) / 2.0, method="higher")) for draw in draws)
    difference = values[0] - values[1]
    # The p-value is the smallest allowed error at which the interval excludes 0.
    together = draws[0] + draws[1]
    pvalue = min(1.0, 2.0 * (1 + int(np.count_nonzero(together >= abs(difference)))) / (1 + len(together)))
    low, high = max(difference - reach, -1.0), min(difference + reach, 1.0)
    return _Difference(values[0], values[1], low, high, pvalue)


def _compare_brier(a: Checked, b: Checked, level: float) -> _Difference:
    """Compare two forecasters by Brier scores: Student's interval and p-value of their difference."""
    w = np.full(len(a.p), 1.0 / len(a.p)) if a.w is None else a.w / np.sum(a.w)
    squares = [(rows.p.astype(np.float64) - rows.y) ** 2 for rows in (a, b)]
    scores = [float(np.sum(w * square)) for square in squares]
    difference = scores[0] - scores[1]
    ww = float(np.sum(w * w))
    variance = float(np.sum((w * (squares[0] - squares[1] - difference)) ** 2)) / (1.0 - ww)
    if a.y.min() == a.y.max():  # one class only: use the variance for a truth halfway between the forecasters
        p, q = a.p.astype(np.float64), b.p.astype(np.float64)
        variance += float(np.sum((2.0 * w * (p - q)) ** 2 * (p + q) / 2.0 * (1.0 - (p + q) / 2.0)))
    error = math.sqrt(variance)
    freedom = 1.0 / ww - 1.0
    reach = float(special.stdtrit(freedom, (1.0 + level) / 2.0)) * error
    pvalue = 2.0 * float(special.stdtr(freedom, -abs(difference) / error)) if error > 0.0 else float(difference == 0.0)
    return _Difference(scores[0], scores[1], difference - reach, difference + reach, pvalue)
