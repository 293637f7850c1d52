"""The size of the calibration error: its root mean square over groups of equal weight, without noise."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_sums import GroupSums
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_level, check_whole
from truthcal.core.points import CELLS, PointGroups, Points, excess
from truthcal.core.roots import interval_ends
from truthcal.core.summarize import summarize
from truthcal.inference.intervals import bias_intervals, grouped_bias_interval, student_factor
from truthcal.inference.laws.quadratic_form import Forms
from truthcal.inference.laws.squared_length import Axes, why_no_interval
from truthcal.inference.laws.tent_kernel import CERTAIN
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.entry import ClassInput, EventRows, event_or_classes
from truthcal.inference.multiclass.error_size import multiclass_error_size
from truthcal.kernels.point_groups import break_at_odds
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.text import count

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Mask = NDArray[np.bool_]

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
# Bins in which one group has about this share of the weight or more are left out of the estimate.
_MOST_OF_ONE_GROUP = 0.5
_HIDDEN = "the buckets of this sketch are too wide: errors within them are not known"
# A mean square error below this quantile of its null distribution is replaced by it in the upper end of the interval.
_UNUSUALLY_SMALL = 0.1


@named_columns
def error_size(
    y_true: object,
    y_proba: object = None,
    *,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    sample_weight: object = None,
    pos_label: object = None,
    groups: object = None,
    labels: object = None,
) -> ConfidenceInterval:
    """Root mean square of the calibration error, without noise, with a confidence interval.

    The error of a prediction p is p minus the frequency of the event among all cases with that prediction. Its root
    mean square is estimated from bins of neighbouring predictions.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label, groups, labels
        As for `calibration_test`. Outcomes may be fractions. With `groups` (of rows that belong together), pairs of
        rows in the same group count as noise, too, and the interval follows from the differences between groups.
    n_bins : int, optional
        Number of bins of neighbouring predictions, of about equal weight. A prediction that is made often is a bin of
        its own, and a bin whose odds differ by more than a factor of 10 is divided.
        Default: half the square root of the number of rows, at most 50, and for more than 10,000 rows 2.3 times the
        cube root, at most 400; four times as many if these show a significantly larger error. Rows of small weight, or
        with p near 0 or 1, count less.
    confidence_level : float, default 0.95
        Nominal coverage.

    Returns
    -------
    ConfidenceInterval
        ``estimate``, ``low`` and ``high``, on the scale of a probability. Both ends are nan if there are too few rows.

    Notes
    -----
    In each bin, the square of the mean error is estimated from pairs of different rows, which have no noise in
    common. The estimate is the root of their average, or the absolute bias if that is larger, because no root mean
    square error is smaller than the bias. For the same reason the interval begins no lower than the 97.5% limit of the
    absolute bias (for a level of 95%), and ends no lower than the interval of the bias. Equal predictions, and those in
    one bucket of a sketch, stay together, so that the order of rows has no influence.

    The interval contains all sizes that the mean squared error of the bins does not reject. For a given size that is
    a quadratic form in normal variables. Errors that change sign within a bin cancel, so that the interval is an
    approximation for errors that vary slowly compared with a bin; docs/benchmarks/sentences.md has the simulated
    coverage of the true error. A sketch whose buckets are wide and hold many rows has no interval.

    With k classes (`y_proba` of shape (n, k)) it is the root of half of the sum over classes of their mean squared
    errors, each class against the rest: for two classes, the error of either of them. Bins are of equal information.

    This is an estimate, not a score: a forecaster can make it smaller by not telling the truth. Compare forecasters by
    `atb` or the Brier score.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> print(tc.error_size(rng.random(2000) < 0.2 + 0.6 * p, p))  # the root mean square of 0.4 (p - 0.5) is 0.115
    error without noise 0.1184, 95% between 0.099 and 0.14
    """
    confidence_level = check_level(confidence_level, "confidence_level")
    rows = event_or_classes(EventRows(y_true, y_proba, sample_weight, pos_label, groups), labels)
    if isinstance(rows, ClassInput):
        if n_bins is not None:
            raise invalid("n_bins", "is for predictions of one event; with many classes it is chosen.")
        return multiclass_error_size(ClassCells.of(rows.rows), confidence_level, rows.groups)
    summary = summarize(rows.y_true, rows.y_proba, sketch_many=True, **rows.options())
    points = summary.points()
    if n_bins is not None and check_whole(n_bins, "n_bins", 1) > max(1, points.rows // 2):
        raise invalid("n_bins", f"is {n_bins}, but {points.rows:,} rows make at most {points.rows // 2:,} bins.")
    return error_size_of(points, confidence_level, n_bins, summary.group_sums)


@one_blas_thread()
def error_size_of(
    points: Points, confidence_level: float, n_bins: int | None = None, sums: GroupSums | None = None
) -> ConfidenceInterval:
    """The size of the error, from sorted rows or a sketch; with `sums`, for rows that belong together."""
    if sums is not None:
        return _error_size_of_groups(sums, confidence_level, n_bins)
    return error_sizes_of(PointGroups.one(points), confidence_level, n_bins)[0]


def _error_size_of_groups(sums: GroupSums, confidence_level: float, n_bins: int | None) -> ConfidenceInterval:
    """The size of the error of rows that belong together: that of bins of neighbouring cells.

    The squared error of a bin is estimated from pairs of rows in different groups. A group contributes to several bins,
    whose errors are then correlated: the mean square is the squared length of a normal vector with the covariance that
    the groups show.
    """
    member = _bins_of_cells(sums, n_bins)
    weight, bias = sums.cells.weight @ member, sums.cells.bias @ member
    own, one_group = (np.diag(member.T @ moments @ member) / weight**2 for moments in (sums.errors, sums.weights))
    known = one_group < _MOST_OF_ONE_GROUP
    squares = np.where(known, excess((bias / weight) ** 2, own, np.where(known, one_group, 0.0)), 0.0)
    mean_square = float(np.sum(squares * weight)) / max(float(np.sum(weight[known])), _ROUNDING)
    estimate = max(math.sqrt(max(mean_square, 0.0)), abs(float(np.sum(bias))))
    if sums.one_group > _MOST_OF_ONE_GROUP:
        why = "a few groups have nearly all of the weight"
        return ConfidenceInterval(math.nan, math.nan, confidence_level, "error", estimate, "none", why)
    # The errors of bins were estimated from these rows, which makes their noise look smaller.
    unit = member / np.sqrt(weight * np.where(known, 1.0 - one_group, 1.0))
    wider = student_factor(sums.n_effective, confidence_level) * sums.fewer_events_factor
    mean, error = bias / np.sqrt(weight), member @ (bias / weight)
    covariance = unit.T @ sums.covariance(error) @ unit * wider

    def axes_at(share: float) -> Axes:
        return Axes.of(mean, covariance + np.diag(_unseen_noise(sums, error, share) @ member / weight))

    axes, chance = Axes.of(mean, covariance), (1.0 - confidence_level) / 2.0
    low, high = axes.least_length(chance, axes_at), axes.largest_length(chance, _UNUSUALLY_SMALL)
    least, largest = _bias_limits_of_groups(sums, confidence_level)
    low, high = min(max(low, least), estimate), min(max(high, estimate, largest), 1.0)
    why = f"approximation: all sizes of the error that are consistent with {sums.n_groups:,} groups of rows"
    why = f"{why}, in {count(len(weight), 'bin')}"
    return ConfidenceInterval(low, high, confidence_level, "error", estimate, "quadratic", why, noise_removed=True)


def _unseen_noise(sums: GroupSums, error: _Array, share: float) -> _Array:
    """Variances of cells that are not seen in the outcomes of grouped rows, if only a share of the error is true.

    Then more events could have happened than did: with no events at all, the estimated variances are almost 0.
    """
    cells = sums.cells
    truth = np.clip(cells.p - share * error, 0.0, 1.0)
    possible = cells.ww * truth * (1.0 - truth)
    seen = float(np.sum(cells.wwcc - 2.0 * error * cells.wwc + error**2 * cells.ww))
    unseen = max(1.0 - seen / float(np.sum(possible)), 0.0) if np.any(possible > 0.0) else 0.0
    return np.asarray(possible * (unseen * sums.design_effect))


def _bins_of_cells(sums: GroupSums, n_bins: int | None) -> _Array:
    """Cut the cells of grouped rows into bins; return 1 for each cell (row) in its bin (column), and 0 elsewhere."""
    cells = PointGroups.one(sums.cells)
    wanted = number_of_groups(cells, sums.design_effect) if n_bins is None else np.array([n_bins])
    starts, bins = _cut_into_groups(cells, wanted)
    member = np.zeros((len(sums.cells), int(bins[-1]) + 1))
    member[np.arange(len(sums.cells)), np.repeat(bins, np.diff(starts, append=len(sums.cells)))] = 1.0
    return member


def _bias_limits_of_groups(sums: GroupSums, confidence_level: float) -> tuple[float, float]:
    """Limits of the size of the error of grouped rows that follow from the bias, as in `_bias_limits`."""
    both = sums, sums.reversed(np.where(sums.cells.p > 0.5, -1.0, 1.0))
    intervals = [grouped_bias_interval(x, confidence_level) for x in both]
    lower = grouped_bias_interval(sums, (1.0 + confidence_level) / 2.0)
    return max(lower.low, -lower.high, 0.0), max(max(-x.low, x.high) for x in intervals)


def error_sizes_of(
    segments: PointGroups, confidence_level: float, n_groups: int | None = None
) -> list[ConfidenceInterval]:
    """The sizes of the errors of several sets of rows: segments."""
    groups = _choose_groups(segments) if n_groups is None else _Groups.of(segments, np.array([n_groups]))
    estimates, numbers = groups.estimate, np.diff(groups.starts)
    hidden = _buckets_hide_errors(segments, numbers)
    low, high = groups.interval(confidence_level)
    least, largest = _bias_limits(segments, confidence_level)
    low, high = np.minimum(np.maximum(low, least), estimates), np.clip(high, np.maximum(estimates, largest), 1.0)
    sizes = []
    for g, estimate in enumerate(estimates.tolist()):
        why = why_no_interval(int(segments.rows[g]), float(segments.one_row[g])) or (_HIDDEN if hidden[g] else "")
        ends, method = (math.nan, math.nan), "none"
        if not why:
            ends, method = (float(low[g]), float(high[g])), "quadratic"
            groups_of_rows = f"{count(int(numbers[g]), 'group')} of rows"
            why = f"approximation: all sizes of the error that are consistent with {groups_of_rows}"
        removed = method == "quadratic"
        sizes.append(ConfidenceInterval(*ends, confidence_level, "error", estimate, method, why, removed))
    return sizes


def estimated_error(points: Points) -> float:
    """The estimate of the size of the error, without its interval."""
    return float(_choose_groups(PointGroups.one(points)).estimate[0])


def _buckets_hide_errors(segments: PointGroups, n_groups: _Ints) -> _Mask:
    """Which sketches have no interval: errors may differ within buckets that are wide and hold many rows."""
    points = segments.points
    heavy = points.weight >= segments.spread(_HEAVY * segments.total / n_groups)
    return np.logical_or.reduceat((points.high - points.low > _WIDE_BUCKET) & heavy, segments.starts[:-1])


def _bias_limits(segments: PointGroups, confidence_level: float) -> tuple[_Array, _Array]:
    """Limits of the size of the error that follow from the bias, which is never larger.

    The upper limit follows also from the bias with the signs of predictions above 1/2 reversed, which shows events that
    could have happened but did not if all predictions are near 0 or 1. The lower limit has half the chance of error of
    the interval, so that both lower limits together hold.
    """
    groups = segments.merged().normalized()
    cells = groups.points
    sign = np.where(cells.p > 0.5, -1.0, 1.0)
    reverse = replace(cells, p=np.minimum(cells.p, 1.0 - cells.p), bias=sign * cells.bias, wwc=sign * cells.wwc)

    def ends(cells: Points, level: float) -> tuple[_Array, _Array]:
        intervals = bias_intervals(PointGroups(cells, groups.starts), level)
        return np.array([interval.low for interval in intervals]), np.array([interval.high for interval in intervals])

    limits = [ends(x, confidence_level) for x in (cells, reverse)]
    largest = np.maximum.reduce([np.maximum(-low, high) for low, high in limits])
    low, high = ends(cells, (1.0 + confidence_level) / 2.0)
    return np.maximum(np.maximum(low, -high), 0.0), largest


# --- groups -----------------------------------------------------------------------------------------------------------


def _choose_groups(segments: PointGroups) -> "_Groups":
    """Groups of the points of segments: finer ones than usual where the error changes within groups."""
    n_groups = usual = chosen = number_of_groups(segments)
    groups = _Groups.of(segments, usual)
    square, trying = groups.mean_square.copy(), np.ones(len(segments), np.bool_)
    while (trying := trying & (n_groups * _FINER * _LEAST_ROWS * segments.one_row <= 1.0)).any():
        n_groups = np.where(trying, n_groups * _FINER, n_groups)
        finer = _Groups.of(segments.take(trying), n_groups[trying])
        better = finer.mean_square - square[trying] > _SIGNIFICANT * finer.standard_error
        square[trying] = finer.mean_square
        trying[trying] = better
        chosen = np.where(trying, n_groups, chosen)
    return groups if np.array_equal(chosen, usual) else _Groups.of(segments, chosen)


def _cut_into_groups(segments: PointGroups, n_groups: _Ints) -> tuple[_Ints, _Ints]:
    """Cut neighbouring points into groups of about equal weight, and these into cells.

    Returns the first point of each cell, and the group of each cell. A prediction made often is a group of its own; for
    the others, the middle of their weight decides.
    """
    points, first = segments.points, segments.starts[:-1]
    ends = segments.cumulative(points.weight)
    ends *= segments.spread(n_groups / ends[segments.starts[1:] - 1])
    begins = np.concatenate([[0.0], ends[:-1]])
    begins[first] = 0.0
    breaks = (ends - begins >= _HEAVY) | _made_often(segments)
    breaks[1:] |= breaks[:-1].copy()  # a group begins at a prediction made often and after it
    breaks[first] = True
    fine = np.maximum(1, CELLS // n_groups)
    most = segments.spread(fine * n_groups - 1.0)
    fine = segments.spread(fine)
    cell = np.minimum((begins + ends) * (fine / 2.0), most).astype(np.int64)
    breaks |= np.diff(cell // fine, prepend=-1) > 0
    odds = 10.0 ** np.arange(-_LARGEST_POWER, _LARGEST_POWER + 1)
    levels = odds / (1.0 + odds)
    break_at_odds(segments.starts, points.p, points.weight, points.ww, levels, _LEAST_PIECE, _SMALLEST, breaks)
    starts = np.flatnonzero(breaks | (np.diff(cell, prepend=-1) > 0))
    return starts, np.cumsum(breaks[starts]) - 1


def neighbour_groups(points: Points) -> _Ints:
    """First point of each of the groups of neighbouring points from which the size of the error is estimated."""
    segments = PointGroups.one(points)
    first, group = _cut_into_groups(segments, number_of_groups(segments))
    return first[np.flatnonzero(np.diff(group, prepend=-1))]


def _made_often(segments: PointGroups) -> _Mask:
    """Which points are a single prediction with many more rows than its neighbours."""
    weight = segments.points.weight
    single = segments.points.low == segments.points.high
    often = np.flatnonzero(single & (weight**2 >= _OFTEN * segments.points.ww))
    is_first, is_last = np.zeros(len(weight), np.bool_), np.zeros(len(weight), np.bool_)
    is_first[segments.starts[:-1]] = is_last[segments.starts[1:] - 1] = True
    below = np.where(is_first[often], 0.0, weight[often - 1])
    above = np.where(is_last[often], 0.0, weight[np.minimum(often + 1, len(weight) - 1)])
    result = np.zeros(len(weight), np.bool_)
    result[often] = weight[often] > _OFTEN_TIMES * np.maximum(below, above)
    return result


def number_of_groups(segments: PointGroups, design_effect: float = 1.0) -> _Ints:
    """Number of groups of the error size of each segment, which depends on predictions and weights alone.

    Rows that belong together count less, by their design effect. Rows with a small p(1 - p) carry little information
    about the error of a group, and count less: one with p = 0.01 counts as a ninth, and all of them fully if
    predictions are spread evenly over [0, 1].
    """
    noise_floor = segments.sums(segments.points.wwv) / segments.total**2
    rows = np.minimum(1.0, 6.0 * noise_floor / segments.one_row + _LEAST_COUNT) / segments.one_row / design_effect
    most_groups = np.maximum(_FEW_GROUPS, np.minimum(_PER_CUBE_ROOT * rows ** (1.0 / 3.0), _MANY_GROUPS))
    return np.clip(np.round(np.sqrt(rows) / 2.0), 1, np.round(most_groups)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of neighbouring points, and the cells from which the variances of their errors are computed.

    The groups of segment s stand from ``starts[s]`` to ``starts[s + 1]``. `weight` and `bias`: share of the weight of
    its segment of each group, and its mean of c = p - y. `mean_square`: for each segment, the mean over groups of the
    squared error without noise. Each cell belongs to one `group`; `p` is its mean prediction, `ww` and `wwv` its sums
    of w^2 and w^2 v.
    """

    starts: _Ints
    weight: _Array
    bias: _Array
    mean_square: _Array
    group: _Ints
    p: _Array
    ww: _Array
    wwv: _Array

    @classmethod
    def of(cls, segments: PointGroups, n_groups: _Ints) -> Self:
        """Cut the points of segments into groups, and add up what is needed of each."""
        points = segments.points
        first, group = _cut_into_groups(segments, n_groups)
        segment = np.searchsorted(segments.starts, first, side="right") - 1  # of each cell
        total = segments.total[segment]

        def cells(column: _Array, power: int) -> _Array:
            return np.asarray(np.add.reduceat(column, first) / total**power)

        ww, wwv = cells(points.ww, 2), cells(points.wwv, 2)
        weight = np.bincount(group, cells(points.weight, 1)).astype(np.float64)
        bias = np.bincount(group, cells(points.bias, 1)) / weight
        self_pairs = np.bincount(group, cells(points.wwcc, 2)) / weight**2
        one_row = np.bincount(group, ww) / weight**2
        known = one_row < 1.0 - _ROUNDING  # a group of a single row has no pairs of rows
        squares = np.where(known, excess(bias**2, self_pairs, np.where(known, one_row, 0.0)), 0.0)
        starts = np.searchsorted(segment[np.flatnonzero(np.diff(group, prepend=-1))], np.arange(len(segments) + 1))
        sums = [np.add.reduceat(terms, starts[:-1]) for terms in (squares * weight * known, weight * known)]
        mean_square = np.where(sums[1] > 0.0, sums[0] / np.where(sums[1] > 0.0, sums[1], 1.0), 0.0)
        return cls(starts, weight, bias, mean_square, group, cells(points.ww * points.p, 2) / ww, ww, wwv)

    def _sums(self, terms: _Array) -> _Array:
        """Sum over the groups of each segment."""
        return np.add.reduceat(terms, self.starts[:-1])

    def _spread(self, values: _Array) -> _Array:
        """Values of segments, for each group."""
        return np.repeat(values, np.diff(self.starts))

    @property
    def estimate(self) -> _Array:
        """Root mean square error of each segment, at least the absolute bias."""
        return np.maximum(np.sqrt(np.maximum(self.mean_square, 0.0)), np.abs(self._sums(self.weight * self.bias)))

    @property
    def standard_error(self) -> _Array:
        """Standard error of `mean_square` if there is no error."""
        return np.sqrt(2.0 * self._sums(self.variances(np.zeros_like(self.bias)) ** 2))

    def variances(self, error: _Array) -> _Array:
        """Variances of `bias` times the root of `weight`, if these are the true errors of the groups.

        In a cell, the sum of w^2 q(1 - q) with q = p - error follows from its sums; q stays in [0, 1].
        """
        error = error[self.group]
        variance = self.wwv + self.ww * error * (2.0 * self.p - 1.0 - error)
        variance = np.where((self.p > error) & (self.p < 1.0 + error), np.maximum(variance, 0.0), 0.0)
        return np.asarray(np.bincount(self.group, variance) / self.weight)

    def interval(self, confidence_level: float) -> tuple[_Array, _Array]:
        """All sizes of the error of each segment that neither tail rejects.

        The lower end is sought in the direction of the observed errors, the upper end in one that is turned towards the
        largest variance as far as the observed errors may be noise: there, noise hides an error best. Errors that look
        smaller than chance allows must not make the interval short, so that their mean square is at least the 10%
        quantile of that of noise.
        """
        chance, observed = (1.0 - confidence_level) / 2.0, np.sqrt(self.weight) * self.bias
        square = self._sums(observed**2)
        some = square > 0.0
        direction = observed / self._spread(np.sqrt(np.where(some, square, 1.0)))
        low = interval_ends(
            lambda size, wanted: self._tails(size, direction, square, wanted, upper=True) - chance, some
        )
        noise = self.variances(np.zeros_like(observed))
        signal = np.where(some, np.maximum(0.0, 1.0 - self._sums(noise) / np.where(some, square, 1.0)), 0.0)
        hidden = self._spread(np.sqrt(signal)) * direction
        largest = self._first_largest(noise)
        hidden[largest] += np.copysign(np.sqrt(1.0 - signal), observed[largest])
        hidden /= self._spread(np.sqrt(self._sums(hidden**2)))
        square = np.maximum(square, self._usual_square(square))
        return low, interval_ends(
            lambda size, wanted: chance - self._tails(size, hidden, square, wanted, upper=False), np.ones_like(some)
        )

    def _tails(self, size: _Array, direction: _Array, square: _Array, wanted: _Mask, *, upper: bool) -> _Array:
        """Tail probability of the mean square of each segment at `square`, for errors of a size in a direction."""
        mean = self._spread(size) * direction
        scales = self.variances(mean / np.sqrt(self.weight))
        largest = np.maximum.reduceat(scales, self.starts[:-1])
        free = scales > self._spread(CERTAIN * np.maximum(largest, 1e-12 * square))
        rest = square - self._sums(np.where(free, 0.0, mean**2))
        shifts = np.where(free, mean, 0.0) / np.sqrt(np.where(free, scales, 1.0))
        forms = Forms.of(np.where(free, scales, 0.0), shifts, self.starts)
        return forms.upper_tails(rest, wanted) if upper else forms.lower_tails(rest, wanted)

    def _usual_square(self, square: _Array) -> _Array:
        """Quantile of the mean square of noise alone, where `square` is smaller; 0 elsewhere."""
        forms = Forms.of(self.variances(self.bias), np.zeros_like(self.bias), self.starts)
        usual = 1.0 - _UNUSUALLY_SMALL
        return forms.upper_quantiles(usual, forms.upper_tails(square) > usual)

    def _first_largest(self, values: _Array) -> _Ints:
        """The first group of each segment that has its largest value."""
        places = np.flatnonzero(values == self._spread(np.maximum.reduceat(values, self.starts[:-1])))
        return places[np.searchsorted(places, self.starts[:-1])]
