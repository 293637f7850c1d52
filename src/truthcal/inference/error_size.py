"""The size of the calibration error: its root mean square over groups of equal weight, without noise."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_level, check_whole
from truthcal.core.points import CELLS, Points, excess
from truthcal.core.summarize import summarize
from truthcal.inference.intervals import bias_interval
from truthcal.inference.laws.quadratic_form import lower_tail, upper_quantile, upper_tail
from truthcal.inference.laws.squared_length import Axes, interval_end, why_no_interval
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.text import count

_Array = NDArray[np.float64]
_Indices = NDArray[np.intp]

# Groups: half the square root of the number of rows up to the first number, then a multiple of the cube root.
_FEW_GROUPS, _MANY_GROUPS, _PER_CUBE_ROOT = 50, 400, 2.3
# Even a row whose outcome is certain counts this much: errors of opposite sign must not share a group.
_LEAST_COUNT = 0.05
# A prediction made often is a group of its own: a point with at least this share of a group's weight, or with at least
# this many rows and this many times the weight of its neighbours.
_HEAVY, _OFTEN, _OFTEN_TIMES = 0.5, 8.0, 8.0
# Groups in which odds differ by more than a factor of 10 are broken at powers of 10, up to this power, into pieces of
# at least this many rows: a few large predictions must not hide among many small ones.
_LARGEST_POWER, _LEAST_PIECE = 6, 10.0
# The odds of predictions of 0 and 1 are those of this probability and its complement.
_SMALLEST = 1e-7
# Groups finer by this factor, with this many rows or more each, are used if their mean square error is larger by more
# than this many standard errors.
_FINER, _LEAST_ROWS, _SIGNIFICANT = 4, 8.0, 2.5
# The errors within buckets that are wider than this and as heavy as a group are not known.
_WIDE_BUCKET = 0.02
# A sum of w^2 / W^2 this close to 1 is that of a single row.
_ROUNDING = 1e-9
# A mean square error below this quantile of its null distribution is replaced by it in the upper end of the interval.
_UNUSUALLY_SMALL = 0.1


def error_size(
    y_true: object,
    y_proba: object = None,
    *,
    n_groups: int | None = None,
    confidence_level: float = 0.95,
    sample_weight: object = None,
    pos_label: object = None,
) -> ConfidenceInterval:
    """Root mean square of the calibration error, without noise, with a confidence interval.

    The error of a prediction p is p minus the frequency of the event among all cases with that prediction. Its root
    mean square is estimated from groups of neighbouring predictions.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `calibration_test`. Outcomes may be fractions.
    n_groups : int, optional
        Number of groups of about equal weight. A prediction that is made often is a group of its own, and a group
        whose odds differ by more than a factor of 10 is broken. Default: half the square root of the number of rows,
        at most 50, and for more than 10,000 rows 2.3 times the cube root, at most 400; four times as many if these
        show a significantly larger error. Rows of small weight, or with p near 0 or 1, count less.
    confidence_level : float, default 0.95
        Nominal coverage.

    Returns
    -------
    ConfidenceInterval
        ``estimate``, ``low`` and ``high``, on the scale of a probability. Both ends are nan if there are too few rows.

    Notes
    -----
    In each group, the square of the mean error is estimated from pairs of different rows, which have no noise in
    common. The estimate is the root of their average, or the absolute bias if that is larger, because no root mean
    square error is smaller than the bias. For the same reason the interval begins no lower than the 97.5% limit of the
    absolute bias (for a level of 95%), and ends no lower than the interval of the bias. Equal predictions, and those in
    one bucket of a sketch, stay together, so that the order of rows has no influence.

    The interval contains all sizes that the mean squared error of the groups does not reject. For a given size that is
    a quadratic form in normal variables. Errors that change sign within a group cancel, so that the interval is an
    approximation for errors that vary slowly compared with a group; docs/benchmarks/sentences.md has the simulated
    coverage of the true error. A sketch whose buckets are wide and hold many rows has no interval.

    This is an estimate, not a score: a forecaster can make it smaller by not telling the truth. Compare forecasters by
    `atb` or the Brier score.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> print(tc.error_size(rng.random(2000) < 0.2 + 0.6 * p, p))  # the root mean square of 0.4 (p - 0.5) is 0.115
    error without noise 0.1184, 95% between 0.099 and 0.1397
    """
    confidence_level = check_level(confidence_level, "confidence_level")
    points = summarize(y_true, y_proba, sample_weight, pos_label, sketch_many=True).points()
    if n_groups is not None and check_whole(n_groups, "n_groups", 1) > max(1, points.rows // 2):
        raise invalid("n_groups", f"is {n_groups}, but {points.rows:,} rows make at most {points.rows // 2:,} groups.")
    return error_size_of(points, confidence_level, n_groups)


@one_blas_thread()
def error_size_of(points: Points, confidence_level: float, n_groups: int | None = None) -> ConfidenceInterval:
    """The size of the error, from sorted rows or a sketch."""
    groups = _choose_groups(points) if n_groups is None else _Groups.of(points, n_groups)
    estimate = groups.estimate
    why = why_no_interval(points) or _why_buckets_hide_errors(points, len(groups.weight))
    if why:
        return ConfidenceInterval(math.nan, math.nan, confidence_level, "error", estimate, "none", why)
    low, high = groups.interval(confidence_level)
    least, largest = _bias_limits(points, confidence_level)
    ends = min(max(low, least), estimate), min(max(high, estimate, largest), 1.0)
    why = f"approximation: all sizes of the error that are consistent with {count(len(groups.weight), 'group')} of rows"
    return ConfidenceInterval(*ends, confidence_level, "error", estimate, "quadratic", why, noise_removed=True)


def estimated_error(points: Points) -> float:
    """The estimate of the size of the error, without its interval."""
    return _choose_groups(points).estimate


def _why_buckets_hide_errors(points: Points, n_groups: int) -> str:
    """Reason why a sketch has no interval: errors may differ within buckets that are wide and hold many rows."""
    wide = (points.high - points.low > _WIDE_BUCKET) & (points.weight >= _HEAVY * points.total / n_groups)
    return "the buckets of this sketch are too wide: errors within them are not known" if wide.any() else ""


def _bias_limits(points: Points, confidence_level: float) -> tuple[float, float]:
    """Limits of the size of the error that follow from the bias, which is never larger.

    The upper limit follows also from the bias with the signs of predictions above 1/2 reversed, which shows events that
    could have happened but did not if all predictions are near 0 or 1. The lower limit has half the chance of error of
    the interval, so that both lower limits together hold.
    """
    cells = points.merged().normalized()
    sign = np.where(cells.p > 0.5, -1.0, 1.0)
    reverse = replace(cells, p=np.minimum(cells.p, 1.0 - cells.p), bias=sign * cells.bias, wwc=sign * cells.wwc)
    limits = [bias_interval(x, confidence_level) for x in (cells, reverse)]
    largest = max(max(-limit.low, limit.high) for limit in limits)
    surer = bias_interval(cells, (1.0 + confidence_level) / 2.0)
    return max(surer.low, -surer.high, 0.0), largest


# --- groups -----------------------------------------------------------------------------------------------------------


def _choose_groups(points: Points) -> "_Groups":
    """Groups for these points: finer ones than usual if the error changes within groups."""
    n_groups = number_of_groups(points)
    groups = _Groups.of(points, n_groups)
    while n_groups * _FINER * _LEAST_ROWS * points.one_row <= 1.0:
        n_groups *= _FINER
        finer = _Groups.of(points, n_groups)
        if finer.mean_square - groups.mean_square <= _SIGNIFICANT * finer.standard_error:
            break
        groups = finer
    return groups


def _cut_into_groups(points: Points, n_groups: int) -> tuple[_Indices, _Indices]:
    """Cut neighbouring points into groups of about equal weight, and these into cells.

    Returns the first point of each cell, and the group of each cell. A prediction made often is a group of its own; for
    the others, the middle of their weight decides.
    """
    weight = points.weight
    ends = np.cumsum(weight)
    ends *= n_groups / ends[-1]
    begins = np.concatenate([[0.0], ends[:-1]])
    breaks = (ends - begins >= _HEAVY) | _made_often(points)
    breaks[1:] |= breaks[:-1].copy()  # a group begins at a prediction made often and after it
    fine = max(1, CELLS // n_groups)
    cell = np.minimum((begins + ends) * (fine / 2.0), fine * n_groups - 1.0).astype(np.intp)
    breaks |= np.diff(cell // fine, prepend=-1) > 0
    _break_wide_groups(breaks, points)
    starts = np.flatnonzero(breaks | (np.diff(cell, prepend=-1) > 0))
    return starts, np.cumsum(breaks[starts]) - 1


def _made_often(points: Points) -> NDArray[np.bool_]:
    """Which points are a single prediction with many more rows than its neighbours."""
    neighbours = np.zeros_like(points.weight)
    neighbours[1:], neighbours[:-1] = points.weight[:-1], np.maximum(neighbours[:-1], points.weight[1:])
    often = (points.weight > _OFTEN_TIMES * neighbours) & (points.weight**2 >= _OFTEN * points.ww)
    return np.asarray(often & (points.low == points.high))


def _break_wide_groups(breaks: NDArray[np.bool_], points: Points) -> None:
    """Add breaks at odds of powers of 10, within groups that span more than that."""
    odds = 10.0 ** np.arange(-_LARGEST_POWER, _LARGEST_POWER + 1)
    for at in np.unique(np.searchsorted(points.p, odds / (1.0 + odds))):
        if 0 < at < len(points) and not breaks[at]:
            begin = int(np.flatnonzero(breaks[:at])[-1])
            later = np.flatnonzero(breaks[at:])
            end = int(at + later[0]) if len(later) else len(points)
            sides = (slice(begin, at), slice(at, end))
            rows = min(np.sum(points.weight[side]) ** 2 / np.sum(points.ww[side]) for side in sides)
            first, last = np.clip(points.p[[begin, end - 1]], _SMALLEST, 1.0 - _SMALLEST)
            breaks[at] = rows >= _LEAST_PIECE and last / (1.0 - last) > 10.0 * first / (1.0 - first)


def number_of_groups(points: Points) -> int:
    """Number of groups of the error size, which depends on predictions and weights alone.

    Rows with a small p(1 - p) carry little information about the error of a group, and count less: one with p = 0.01
    counts as a ninth, and all of them fully if predictions are spread evenly over [0, 1].
    """
    rows = min(1.0, 6.0 * points.noise_floor / points.one_row + _LEAST_COUNT) / points.one_row
    most_groups = max(_FEW_GROUPS, min(_PER_CUBE_ROOT * rows ** (1.0 / 3.0), _MANY_GROUPS))
    return int(np.clip(round(math.sqrt(rows) / 2.0), 1, round(most_groups)))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of neighbouring points, and the cells from which the variances of their errors are computed.

    `weight` and `bias`: share of the weight of each group, and its mean of c = p - y. `mean_square`: the mean over
    groups of the squared error without noise. Each cell belongs to one `group`; `p` is its mean prediction, `ww` and
    `wwv` its sums of w^2 and w^2 v.
    """

    weight: _Array
    bias: _Array
    mean_square: float
    group: _Indices
    p: _Array
    ww: _Array
    wwv: _Array

    @classmethod
    def of(cls, points: Points, n_groups: int) -> Self:
        """Cut points into groups, and add up what is needed of each."""
        starts, group = _cut_into_groups(points, n_groups)

        def cells(column: _Array, power: int) -> _Array:
            return np.asarray(np.add.reduceat(column, starts) / points.total**power)

        ww, wwv = cells(points.ww, 2), cells(points.wwv, 2)
        weight = np.bincount(group, cells(points.weight, 1)).astype(np.float64)
        bias = np.bincount(group, cells(points.bias, 1)) / weight
        self_pairs = np.bincount(group, cells(points.wwcc, 2)) / weight**2
        one_row = np.bincount(group, ww) / weight**2
        known = one_row < 1.0 - _ROUNDING  # a group of a single row has no pairs of rows
        squares = excess(bias**2, self_pairs, np.where(known, one_row, 1.0))
        mean_square = float(np.average(squares[known], weights=weight[known])) if known.any() else 0.0
        return cls(weight, bias, mean_square, group, cells(points.ww * points.p, 2) / ww, ww, wwv)

    @property
    def mean(self) -> float:
        """Mean error of all rows: the bias."""
        return float(self.weight @ self.bias)

    @property
    def estimate(self) -> float:
        """Root mean square error, at least the absolute bias."""
        return max(math.sqrt(max(self.mean_square, 0.0)), abs(self.mean))

    @property
    def standard_error(self) -> float:
        """Standard error of `mean_square` if there is no error."""
        return math.sqrt(2.0 * float(np.sum(self.variances(np.zeros_like(self.bias)) ** 2)))

    def variances(self, error: _Array) -> _Array:
        """Variances of `bias` times the root of `weight`, if these are the true errors of the groups.

        In a cell, the sum of w^2 q(1 - q) with q = p - error follows from its sums; q stays in [0, 1].
        """
        error = error[self.group]
        variance = self.wwv + self.ww * error * (2.0 * self.p - 1.0 - error)
        variance = np.where((self.p > error) & (self.p < 1.0 + error), np.maximum(variance, 0.0), 0.0)
        return np.asarray(np.bincount(self.group, variance) / self.weight)

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """All sizes that neither tail rejects.

        The lower end is sought in the direction of the observed errors, the upper end in one that is turned towards the
        largest variance as far as the observed errors may be noise: there, noise hides an error best. Errors that look
        smaller than chance allows must not make the interval short, so that their mean square is at least the 10%
        quantile of that of noise.
        """
        chance, root = (1.0 - confidence_level) / 2.0, np.sqrt(self.weight)
        observed = root * self.bias
        square = float(observed @ observed)
        direction = observed / math.sqrt(square) if square > 0.0 else np.zeros_like(observed)

        def tail(mean: _Array, side: Callable[..., float]) -> float:
            axes = Axes.of(mean, self.variances(mean / root))
            return axes.tail(square, axes.observed, side)

        low = interval_end(lambda size: tail(size * direction, upper_tail) - chance) if square > 0.0 else 0.0
        noise = self.variances(np.zeros_like(observed))
        signal = max(0.0, 1.0 - float(np.sum(noise)) / square) if square > 0.0 else 0.0
        largest, hidden = np.argmax(noise), math.sqrt(signal) * direction
        hidden[largest] += math.copysign(math.sqrt(1.0 - signal), observed[largest])
        hidden /= math.sqrt(float(hidden @ hidden))
        square = max(square, upper_quantile(1.0 - _UNUSUALLY_SMALL, self.variances(self.bias)))
        return low, interval_end(lambda size: chance - tail(size * hidden, lower_tail))
