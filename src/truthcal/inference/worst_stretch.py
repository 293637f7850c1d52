"""The stretch of predictions whose error is certainly largest: a lower limit that holds for all stretches at once.

C is the cumulative bias, the sum of w (p - y) of all predictions up to a point. Between two points it grows by the
total error of that stretch plus noise, and the noise of every stretch is at most the range (maximum minus minimum) of
the cumulative noise. So with q the 95% quantile of that range, the mean error between a and b is at least
(|C_b - C_a| - q) / (weight between a and b), for all a and b at once, with 95% confidence.

The noise is w (truth - y), whatever the predictions are. Its variance is estimated from the outcomes, in groups of
similar predictions, and its upper confidence limit is used. The range depends on little else: for many points it is
that of a Brownian motion, whose law depends on the total variance only.
"""

import math

import numpy as np
from numpy.typing import NDArray

from truthcal.core.group_sums import GroupSums
from truthcal.core.points import Points, equal_cells
from truthcal.inference.intervals import student_factor
from truthcal.results.worst_stretch import WorstStretch

_Array = NDArray[np.float64]

# Stretches begin and end at the borders of at most this many cells.
_CELLS = 200
# Groups for the estimate of the noise: at most so many, of about sqrt(n) * 2 rows or more.
_GROUPS = 20
# The noise in a group is measured around the group's own mean error if this removes at most this share of it.
_MOST_REMOVED = 0.2
# One-sided 95% limit of the noise variance.
_UPPER = 1.645
_DRAWS = 2000


def worst_stretch_of(points: Points, level: float = 0.95, sums: GroupSums | None = None) -> WorstStretch | None:
    """The stretch with the largest lower limit of its mean error; None if no stretch is certainly biased.

    With `sums`, rows belong together, and the noise is that of groups.
    """
    cells = _cells_of(points) if sums is None else sums.cells
    noise = noise_range(cells, level) if sums is None else noise_range_of_groups(sums, level)
    curve = np.concatenate([[0.0], np.cumsum(cells.bias)])
    upto = np.concatenate([[0.0], np.cumsum(cells.weight)])
    excess = np.abs(curve - curve[:, None]) - noise
    first, last = np.triu_indices(len(curve), 1)
    width = upto[last] - upto[first]  # 0 if light cells vanish beside a heavy one
    limits = np.full(len(width), -np.inf)
    np.divide(excess[first, last], width, out=limits, where=width > 0.0)
    best = int(np.argmax(limits))
    if not limits[best] > 0.0:
        return None
    a, b = int(first[best]), int(last[best])
    weight = float(upto[b] - upto[a])
    return WorstStretch(
        low=float(cells.low[a]),
        high=float(cells.high[b - 1]),
        error_at_least=math.copysign(float(limits[best]), float(curve[b] - curve[a])),
        mean_proba=float(np.sum(cells.wp[a:b])) / weight,
        mean_true=float(np.sum(cells.wy[a:b])) / weight,
        share=weight / cells.total,
        confidence_level=level,
    )


def _cells_of(points: Points) -> Points:
    """Merge neighbours into cells of about equal weight and noise. The outcomes have no say in it."""
    if len(points) <= _CELLS:
        return points
    noise = points.wwv + 1e-12 * points.ww
    share = points.weight / points.total + noise / float(np.sum(noise))
    return points.runs(np.flatnonzero(np.diff(equal_cells(share, _CELLS), prepend=-1)))


def noise_range(cells: Points, level: float) -> float:
    """Quantile of the range of the cumulative noise, for outcomes of any truth."""
    shape, total = noise_variance(cells)
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(cells)))
    walks = np.cumsum(draws * np.sqrt(shape), axis=1)
    return math.sqrt(total) * _range_quantile(walks, level)


def noise_range_of_groups(sums: GroupSums, level: float) -> float:
    """Quantile of the range of the cumulative noise of rows that belong together.

    The covariance contains the squares of errors that all groups share, which makes the range conservative.
    """
    scales, axes = np.linalg.eigh(sums.errors * (student_factor(sums.n_effective, level) * sums.fewer_events_factor))
    draws = np.random.default_rng(0).standard_normal((_DRAWS, len(scales)))
    walks = np.cumsum(draws @ (axes * np.sqrt(np.maximum(scales, 0.0))).T, axis=1)
    return _range_quantile(walks, level)


def _range_quantile(walks: _Array, level: float) -> float:
    """Quantile of the range of the cumulative noise that begins at 0, for walks that are rows."""
    ranges = np.maximum(walks.max(axis=1), 0.0) - np.minimum(walks.min(axis=1), 0.0)
    return float(np.quantile(ranges, level, method="higher"))


def noise_variance(cells: Points) -> tuple[_Array, float]:
    """Variance of the noise: each cell's share of it, and the upper confidence limit of the total."""
    n_groups = min(max(round(math.sqrt(1.0 / cells.one_row) / 2.0), 1), _GROUPS)
    group = equal_cells(cells.weight, n_groups)

    def sums(column: _Array) -> _Array:
        return np.bincount(group, column).astype(np.float64)

    weight, ww = sums(cells.weight), sums(cells.ww)
    error, unit = sums(cells.bias) / weight, float(np.max(cells.ww))
    largest = np.sqrt(sums(cells.row_ww * (cells.ww / unit)) / (ww / unit))  # at least sum w^3 / sum w^2
    left = 1.0 - 2.0 * largest / weight + ww / weight**2
    removable = left >= 1.0 - _MOST_REMOVED
    raw = sums(cells.wwcc)
    centred = (raw - 2.0 * error * sums(cells.wwc) + error**2 * ww) / np.where(removable, left, 1.0)
    variance = float(np.sum(np.where(removable, np.minimum(centred, raw), raw)))

    half_event = np.minimum(0.5 * ww / weight**2, 0.5)[group]
    truth = np.clip(cells.p - error[group], half_event, 1.0 - half_event)
    shape = cells.ww * truth * (1.0 - truth)
    shape /= np.sum(shape)
    # The estimate has the variance `jump` times the variance itself, as that of a Poisson number.
    jump = float(np.sum(shape * cells.row_ww * (1.0 - 2.0 * truth) ** 2))
    return shape, ((_UPPER * math.sqrt(jump) + math.sqrt(_UPPER**2 * jump + 4.0 * variance)) / 2.0) ** 2
