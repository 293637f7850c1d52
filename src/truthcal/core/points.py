"""Points: increasing predictions with sums of their rows, the same from sorted rows and from a sketch."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from truthcal.kernels.buckets import group_totals
from truthcal.kernels.point_groups import cumulative_sums

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]

# 192 points of equal noise give p-values of multiscale ATB to 0.6% down to 1e-9, and of ATB to 0.01%, in 2 ms. Twice as
# many would be four times as close, and take seconds where BLAS threads wait for a busy core.
CELLS = 192
# Certain outcomes are drawn as a binomial with a standard deviation below 1e-7.
_MOST_TRIALS = 2.0**50
# Shares of the variance below this are omitted from weight classes. No weight is below this share of the largest.
_NEGLIGIBLE, _LIGHTEST = 1e-10, 1e-9


@dataclass(frozen=True, eq=False)
class Points:
    """Increasing predictions with the sums over their rows. All columns are read-only.

    Sorted rows have a point for each distinct prediction, a sketch for each filled bucket; `merged`, `thinned` and
    `runs` join neighbours. In the sums w is a row's weight, p its prediction, y its outcome, c = p - y, v = p(1 - p).

    Attributes
    ----------
    p, low, high : ndarray of float
        Mean, smallest and largest prediction of each point.
    n : ndarray of int
        Rows.
    weight, ww, www, wp, wy, wv, wcp, wwc, wwcc, wwv : ndarray of float
        Sums of w, w^2, w^3, w p, w y, w v, w c p, w^2 c, w^2 c^2 and w^2 v. A sketch has no sum of w v: there v is
        taken for its value at the mean of the bucket.
    bias, cumulative : ndarray of float
        Sums of w c: of this point, and of all points up to and including it.
    row_ww : ndarray of float
        Sum of w^4 divided by the sum of w^2.
    top : ndarray of float
        Largest w.
    n_buckets : int
        Number of buckets of a sketch, 0 for sorted rows.
    impossible : int
        Rows whose outcome had a predicted probability of exactly 0. A user's sketch, which cannot tell, has 0 here.
    weights_known : bool
        Whether sums of w^3 and w^4 and the largest w are those of the rows, not only upper limits.
    """

    p: _Array
    low: _Array
    high: _Array
    n: NDArray[np.int64]
    weight: _Array
    ww: _Array
    www: _Array
    wp: _Array
    wy: _Array
    wv: _Array
    wcp: _Array
    wwc: _Array
    wwcc: _Array
    wwv: _Array
    bias: _Array
    cumulative: _Array
    row_ww: _Array
    top: _Array
    n_buckets: int = 0
    impossible: int = 0
    weights_known: bool = True

    def __post_init__(self) -> None:
        for column in vars(self).values():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False

    @classmethod
    def of_buckets(cls, columns: _Array, n_buckets: int) -> Self:
        """One point for each filled bucket of a sketch, from the sketch's COLUMNS."""
        n, weight, ww, wp, pos, neg, wcp, _, wwcc, wwv, wwc, www, wwww, low, high, top = columns
        bias, p = pos - neg, np.clip(wp / weight, low, high)  # rounding never takes a mean out of its bucket
        unchanged = dict(weight=weight, ww=ww, www=www, wp=wp, wcp=wcp, wwc=wwc, wwcc=wwcc, wwv=wwv, low=low, high=high)
        return cls(
            p=p,
            wv=weight * p * (1.0 - p),
            n=n.astype(np.int64),
            wy=np.clip((wp - bias) / weight, 0.0, 1.0) * weight,
            bias=bias,
            cumulative=np.cumsum(bias),
            row_ww=wwww / ww,
            top=top,
            n_buckets=n_buckets,
            **unchanged,
        )

    def __len__(self) -> int:
        return len(self.p)

    # --- totals ----------------------------------------------------------------------------------------------------

    @property
    def sketched(self) -> bool:
        """Whether these points are buckets of a sketch, so that predictions within one may differ."""
        return self.n_buckets > 0

    @cached_property
    def rows(self) -> int:
        """Number of rows."""
        return int(np.sum(self.n))

    @cached_property
    def total(self) -> float:
        """Sum of all weights, W."""
        return float(np.sum(self.weight))

    @cached_property
    def one_row(self) -> float:
        """Sum of w^2 / W^2: one over the effective number of rows."""
        return float(np.sum(self.ww)) / self.total**2 if self.rows > 1 else 1.0

    @property
    def noise_floor(self) -> float:
        """Sum of w^2 v / W^2: the expected value, under calibration, of ATB and all other UBSEs."""
        return float(np.sum(self.wwv)) / self.total**2

    @property
    def self_pairs(self) -> float:
        """Sum of w^2 c^2 / W^2: the part of ATB and of all other UBSEs that comes from pairs of a row with itself."""
        return float(np.sum(self.wwcc)) / self.total**2

    @property
    def information(self) -> float:
        """Sum of p(1 - p) over all rows: how much of the outcomes is left to chance."""
        return float(PointGroups.one(self).information[0])

    @property
    def effective_information(self) -> float:
        """Effective information: sum of p(1 - p) over rows of equal weight that determine the mean error as well."""
        return float(PointGroups.one(self).effective_information[0])

    @property
    def largest_weight(self) -> float:
        """Largest weight of any row."""
        return float(np.max(self.top))

    @property
    def equal_weights(self) -> bool:
        """Whether all rows of a point have the same weight: then n times the sum of w^2 is the squared sum of w."""
        return bool(np.all(np.abs(self.n * self.ww / self.weight**2 - 1.0) <= 1e-9))

    @property
    def mean_proba(self) -> float:
        """Mean prediction of all rows."""
        return float(np.sum(self.wp)) / self.total

    @property
    def mean_true(self) -> float:
        """Mean outcome of all rows."""
        return min(max(float(np.sum(self.wy)) / self.total, 0.0), 1.0)

    # --- fewer points ----------------------------------------------------------------------------------------------

    def runs(self, starts: NDArray[np.intp], unit: Any = None) -> "Points":
        """Join neighbours: the runs of points that begin at `starts` become one point each.

        `unit`: the size of the squared weights, by default the largest sum of them; without it, w^4 would overflow.
        """
        if len(starts) == len(self):
            return self
        ends = np.append(starts[1:], len(self)) - 1
        sums: dict[str, Any] = {name: np.add.reduceat(getattr(self, name), starts) for name in _SUMS}
        low, high = self.low[starts], self.high[ends]
        unit = np.broadcast_to(np.max(self.ww) if unit is None else unit, self.ww.shape)
        return replace(
            self,
            p=np.clip(sums["wp"] / sums["weight"], low, high),
            low=low,
            high=high,
            cumulative=self.cumulative[ends],
            row_ww=np.add.reduceat(self.row_ww * (self.ww / unit), starts) / (sums["ww"] / unit[starts]),
            top=np.maximum.reduceat(self.top, starts),
            **sums,
        )

    def merged(self, at_most: int = CELLS) -> "Points":
        """Merge neighbours into at most `at_most` points of about equal noise, each at its noise-weighted mean."""
        return PointGroups.one(self).merged(at_most).points

    def thinned(self, at_most: int) -> "Points":
        """Merge neighbours into a limited number of points for a drawing, finest at both ends (see `thinned_runs`)."""
        return self.runs(thinned_runs(self.weight, at_most))

    def normalized(self) -> "Points":
        """The same points with weights that add up to 1."""
        return self.divided(self.total)

    def divided(self, unit: Any) -> "Points":
        """The same points with all weights divided by a unit, which is a number or one for each point."""
        linear = {name: getattr(self, name) / unit for name in _LINEAR}
        squares = {name: getattr(self, name) / unit**2 for name in _SQUARES}
        return replace(self, www=self.www / unit**3, **linear, **squares)

    def redraw_positives(self, count: int, rng: np.random.Generator, *, of_curve: bool = False) -> _Array:
        """Draw the weight of the positives at each point `count` times, under calibration.

        If all rows of a point have the same weight, its frequency is that of a binomial whose number of trials gives
        its variance. If this number is not whole, one of its two neighbours is drawn, with probabilities that preserve
        the mean of 1 / trials. Otherwise, its `weight_classes` are drawn.

        Weighted errors are drawn around 0, so that a point without any drawn event may have a small weight of
        positives. `of_curve`: it is exactly 0 then, as in the rows, and the whole weight if only events are drawn. Such
        weights have a slightly smaller mean, which a curve that starts at 0 needs, and a test must not have.
        """
        if not self.equal_weights:
            return self._redraw_classes(count, rng, of_curve)
        p, variance = self.p, self.wwv / self.weight**2
        with np.errstate(divide="ignore", invalid="ignore"):
            trials = np.where(variance > 0.0, p * (1.0 - p) / variance, _MOST_TRIALS).clip(1.0, _MOST_TRIALS)
        trials = np.where(np.abs(trials - np.rint(trials)) < 1e-9 * trials, np.rint(trials), trials)  # up to rounding
        whole = np.floor(trials)
        fewer = whole * (whole + 1.0 - trials) / trials
        successes, drawn = _draw_binomials(whole, 1.0 - fewer, p, count, rng)
        return np.asarray(self.weight * (successes / drawn))

    def _redraw_classes(self, count: int, rng: np.random.Generator, of_curve: bool) -> _Array:
        """Draw the weight of the positives at each point from binomials, one for each weight class.

        The number of rows in a class is rounded up or down at random. Errors are drawn around 0, so this preserves
        their variance and skewness.
        """
        p, v = self.p, self.p * (1.0 - self.p)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.where(self.ww * v > 0.0, self.wwv / (self.ww * v), 0.0)  # predictions of a point may differ
        positive = np.repeat(self.weight[None] * p, count, axis=0)
        events, others = (np.zeros_like(positive) if of_curve else np.empty(0) for _ in range(2))
        for weight, size in zip(*self.weight_classes(), strict=True):
            rows = np.minimum(size * spread, _MOST_TRIALS)
            successes, drawn = _draw_binomials(np.floor(rows), rows % 1.0, p, count, rng)
            positive += weight * (successes - drawn * p)
            if of_curve:  # tests do not need them
                events += successes
                others += drawn - successes
        if of_curve:
            positive[(events == 0.0) & (others > 0.0)] = 0.0
            positive = np.where((others == 0.0) & (events > 0.0), self.weight, positive)
        return positive

    def weight_classes(self) -> tuple[_Array, _Array]:
        """Three weights for each point, and how many rows have each: stand-ins for all rows of the point.

        One row has the largest weight. The others have two weights, such that the sums of w, w^2, w^3 and w^4 are those
        of the rows (Gaussian quadrature; docs/theory/inference.md, "Weights in a sketch"). Numbers of rows need not be
        whole, and are 0 where fewer weights suffice. The weights of up to three rows are exact.
        """
        sums = self.weight, self.ww, self.www, self.row_ww * self.ww
        m1, m2, m3, m4 = (np.maximum(total / self.top**k - 1.0, 0.0) for k, total in enumerate(sums, 1))
        some = m2 > _NEGLIGIBLE
        with np.errstate(all="ignore"):
            only = np.where(some, m2 / m1, 1.0)  # the weight of the others, if they are equal
            gap = m1 * m3 - m2 * m2
            half_sum, product = (m1 * m4 - m2 * m3) / gap / 2.0, (m2 * m4 - m3 * m3) / gap
            root = np.sqrt(np.maximum(half_sum**2 - product, 0.0))
            light, heavy = np.maximum(half_sum - root, _LIGHTEST), np.minimum(half_sum + root, 1.0)
            two = some & (gap > _NEGLIGIBLE * m1 * m3) & (light < only) & (only < heavy)
            heavy_share = np.where(two, (m2 - m1 * light) / (heavy - light), 0.0)
        light, heavy = np.where(two, light, only), np.where(two, heavy, 1.0)
        sizes = np.stack([np.ones(len(self)), heavy_share / heavy, np.where(some, (m1 - heavy_share) / light, 0.0)])
        return np.stack([np.ones(len(self)), heavy, light]) * self.top, sizes


def _draw_binomials(
    trials: _Array, one_more: _Array, p: _Array, count: int, rng: np.random.Generator
) -> tuple[_Array, _Array]:
    """Draw `count` binomials at each point, with a given number of trials or, with probability `one_more`, one more.

    Returns the numbers of successes and of trials, a column for each point. All those of a point are drawn one after
    another: preparing a binomial takes half of the time, and numpy then does it once per point.
    """
    successes = rng.binomial(trials.astype(np.int64)[:, None], p[:, None], (len(p), count)).astype(np.float64)
    drawn = np.repeat(trials[:, None], count, axis=1)
    some = np.flatnonzero(one_more > 0.0)
    if len(some):
        more = rng.random((len(some), count)) < one_more[some, None]
        drawn[some] += more
        successes[some] += more & (rng.random(more.shape) < p[some, None])
    return np.ascontiguousarray(successes.T), np.ascontiguousarray(drawn.T)


@dataclass(frozen=True, eq=False)
class PointGroups:
    """The points of several groups, one group after another: those of group g from ``starts[g]`` to ``starts[g + 1]``.

    No group is empty. Totals are arrays with an entry for each group. One pass over the points of many groups takes a
    tenth of the time of one pass for each.
    """

    points: Points
    starts: _Ints

    @classmethod
    def one(cls, points: Points) -> Self:
        """One group of points."""
        return cls(points, np.array([0, len(points)]))

    @classmethod
    def of_buckets(cls, columns: _Array, starts: _Ints, n_buckets: int) -> Self:
        """One point for each filled bucket of several sketches, from the sketches' COLUMNS."""
        groups = cls(Points.of_buckets(columns, n_buckets), starts)
        return replace(groups, points=replace(groups.points, cumulative=groups.cumulative(groups.points.bias)))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Points]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, group: int) -> Points:
        """The points of one group."""
        part = slice(self.starts[group], self.starts[group + 1])
        return replace(self.points, **{name: getattr(self.points, name)[part] for name in _COLUMNS})

    def sums(self, column: NDArray[Any]) -> _Array:
        """Sum of a column of points, for each group."""
        if len(self) == 1:
            return np.array([math.fsum(column.tolist())])  # needs no compiled code
        out = np.empty((1, len(self)))
        group_totals(self.starts, column[None], out)
        return np.asarray(out[0])

    def largest(self, column: _Array) -> _Array:
        """Largest entry of a column of points, for each group."""
        return np.maximum.reduceat(column, self.starts[:-1])

    def cumulative(self, column: _Array) -> _Array:
        """Cumulative sum of a column of points, from the first point of each group on."""
        if len(self) == 1:
            return np.cumsum(column)
        out = np.empty(len(column))
        cumulative_sums(self.starts, column, out)
        return out

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of groups, for each point."""
        return np.repeat(values, np.diff(self.starts))

    @cached_property
    def rows(self) -> _Ints:
        """Number of rows."""
        return np.add.reduceat(self.points.n, self.starts[:-1])

    @cached_property
    def total(self) -> _Array:
        """Sum of all weights."""
        return self.sums(self.points.weight)

    @cached_property
    def one_row(self) -> _Array:
        """Sum of w^2 / W^2: one over the effective number of rows."""
        return np.where(self.rows > 1, self.sums(self.points.ww) / self.total**2, 1.0)

    @property
    def information(self) -> _Array:
        """Sum of p(1 - p) over all rows: how much of the outcomes is left to chance."""
        return self.sums(self.points.wwv / (self.points.ww / self.points.n))

    @property
    def effective_information(self) -> _Array:
        """Effective information: sum of p(1 - p) over rows of equal weight that determine the mean error as well."""
        unit = self.spread(self.largest(self.points.row_ww))  # fourth powers of weights may underflow
        noise = self.points.wwv / unit
        sums, squares = self.sums(noise), self.sums(noise * (self.points.row_ww / unit))
        return np.where(squares > 0.0, sums**2 / np.where(squares > 0.0, squares, 1.0), 0.0)

    @property
    def has_fractions(self) -> NDArray[np.bool_]:
        """Whether outcomes are fractions, which shows without weights only: for 0/1 outcomes sum y^2 = sum y."""
        points = self.points
        weighted = np.logical_or.reduceat((points.ww != points.n) | (points.weight != points.n), self.starts[:-1])
        squares = points.wwcc + (points.wp - points.wwv) - 2.0 * points.wcp  # of y; sum of p^2 = sum p - sum v
        return ~weighted & (self.sums(points.wp - points.bias - squares) > 1e-6 * self.rows)

    def take(self, wanted: NDArray[np.bool_]) -> "PointGroups":
        """Some of the groups."""
        if wanted.all():
            return self
        points, sizes = self.spread(wanted), np.diff(self.starts)[wanted]
        columns: dict[str, Any] = {name: getattr(self.points, name)[points] for name in _COLUMNS}
        return PointGroups(replace(self.points, **columns), np.concatenate([[0], np.cumsum(sizes)]))

    def merged(self, at_most: int = CELLS) -> "PointGroups":
        """Merge neighbours into at most `at_most` points of about equal noise, each at its noise-weighted mean."""
        points, few = self.points, np.diff(self.starts) <= at_most
        if few.all():
            return self
        noise = points.wwv + points.wwcc + 1e-12 * points.ww  # predictions of 0 and 1 have a place, too
        upto = self.cumulative(noise)
        cell = _cells_of(noise, upto, self.spread(upto[self.starts[1:] - 1]), at_most)
        first = (np.diff(cell, prepend=-1) != 0) | self.spread(few)
        first[self.starts[:-1]] = True
        starts = np.flatnonzero(first)
        p = np.add.reduceat(noise * points.p, starts) / np.add.reduceat(noise, starts)
        p = np.where(np.diff(starts, append=len(points)) == 1, points.p[starts], p)
        merged = points.runs(starts, self.spread(self.largest(points.ww)))
        merged = replace(merged, p=np.clip(p, merged.low, merged.high))
        return PointGroups(merged, np.searchsorted(starts, self.starts))

    def normalized(self) -> "PointGroups":
        """The same points with weights that add up to 1 in each group."""
        return replace(self, points=self.points.divided(self.spread(self.total)))


# Columns; those that are sums over rows; and those that grow with the weights or with their squares.
_NUMBERS = ("n_buckets", "impossible", "weights_known")
_COLUMNS = tuple(field.name for field in fields(Points) if field.name not in _NUMBERS)
_SUMS = ("n", "weight", "ww", "www", "wp", "wy", "wv", "wcp", "wwc", "wwcc", "wwv", "bias")
_LINEAR = ("weight", "top", "wp", "wy", "wv", "wcp", "bias", "cumulative")
_SQUARES = ("ww", "wwc", "wwcc", "wwv", "row_ww")


def information_axis(p: _Array, information: _Array) -> _Array:
    """Positions of increasing predictions on the information axis: the share of the information below each.

    `information` holds the sums of w v; half of a point's own counts as below it. Without any, p itself.
    """
    upto = np.cumsum(information)
    return (upto - 0.5 * information) / upto[-1] if upto[-1] > 0.0 else p


def equal_cells(noise: _Array, at_most: int) -> NDArray[np.intp]:
    """Number the cells into which neighbouring points are merged, of about equal noise, for each point."""
    upto = np.cumsum(noise)
    return np.unique(_cells_of(noise, upto, upto[-1], at_most), return_inverse=True)[1]


def _cells_of(noise: _Array, upto: _Array, total: Any, at_most: int) -> _Ints:
    """Cells of about equal noise, by the middle of the noise of each point; some may be empty."""
    return np.asarray(np.minimum(((upto - 0.5 * noise) / total * at_most).astype(np.int64), at_most - 1))


def thinned_runs(weight: _Array, at_most: int) -> NDArray[np.intp]:
    """Return the starts of at most `at_most` runs of neighbouring points.

    Runs have about equal shares of the weight and of the points, so that neither many light points nor a few heavy
    ones take all the room. Towards both ends they become single points, where an isotonic curve takes its steepest
    turns.
    """
    many = len(weight)
    if many <= at_most:
        return np.arange(many)
    upto = np.cumsum(weight)
    share = ((upto - weight / 2.0) / upto[-1] + (np.arange(many) + 0.5) / many) / 2.0
    run = np.floor(at_most * (2.0 / math.pi) * np.arcsin(np.sqrt(np.minimum(share, 1.0))))
    return np.flatnonzero(np.diff(np.minimum(run, at_most - 1.0), prepend=-1.0))


@overload
def excess(value: float, self_pairs: float, one_row: float) -> float: ...
@overload
def excess(value: _Array, self_pairs: _Array, one_row: _Array) -> _Array: ...
def excess(value: Any, self_pairs: Any, one_row: Any) -> Any:
    """Unbiased estimate of a squared measure in the population, from sums of points, without self-pairs of rows.

    ``(value - sum w^2 c^2 / W^2) / (1 - sum w^2 / W^2)``, for numbers and arrays alike; nan for a single row, whose
    sum of w^2 / W^2 is 1.
    """
    rest = 1.0 - np.asarray(one_row, np.float64)
    result = np.full(rest.shape, np.nan)
    np.divide(value - self_pairs, rest, out=result, where=rest > 0.0)
    return result if result.shape else float(result)
