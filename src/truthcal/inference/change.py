"""Test for change: is the calibration error the same in all windows of time?

The error may be anything, as long as it does not change: a model with a constant bias is stable. The predictions
themselves may change, too. Rows are therefore compared within groups of similar predictions only: in each group, the
errors p - y of every window are measured from the mean of all windows. If the error is constant, what remains is noise,
whose covariance follows from the frequencies of the event in the groups.

The statistic is a sum of squares of that noise. Over predictions it is expanded in cosines on the information axis, of
which the first is the bias, with decreasing weights. Over time it has two parts: the average, over all dates of change,
of the standardized difference before and after (Andrews, Ploberger 1994), and that of each window from all others.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.parallel import one_blas_thread
from truthcal.core.points import PointGroups, Points, equal_cells, information_axis
from truthcal.core.roots import find_root
from truthcal.inference.error_size import neighbour_groups
from truthcal.inference.laws.quadratic_form import upper_quantile, upper_tail

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]

# Cosines over predictions, with weights 1, 1/2, 1/3, ...; weight of single windows beside that of dates of change.
_COSINES, _SINGLE_WINDOWS = 6, 2.0
# More windows than this are merged into blocks for the p-value, but not for the date.
_BLOCKS = 64
# Less information, the sum of q(1 - q) over rows, and the p-value comes from redraws; still less, and there is none.
# With weights there are no redraws.
_ENOUGH, _LEAST, _LEAST_WEIGHTED = 200.0, 5.0, 100.0
# Redraws, and entries of a block of them.
_RESAMPLES, _BLOCK = 1999, 1 << 21
# Variances and eigenvalues below this share of the largest are rounding errors.
_ROUNDING = 1e-10
# Power for which the detectable change is computed.
POWER = 0.8


@dataclass(frozen=True, eq=False)
class WindowSums:
    """Sums by window of time (first axis) and group of similar predictions (second axis): n, w, w^2, w (p - y), w y."""

    n: _Array
    weight: _Array
    ww: _Array
    bias: _Array
    wy: _Array

    @classmethod
    def of(cls, windows: Iterable[PointGroups], total: Points) -> Self:
        """Add up the points of windows, which come in blocks; `total` are the points of all rows."""
        edges = total.low[neighbour_groups(total)]
        sums = []
        for block in windows:
            points, window = block.points, block.spread(np.arange(len(block)))
            group = np.maximum(np.searchsorted(edges, points.p, side="right") - 1, 0)
            code, shape = window * len(edges) + group, (len(block), len(edges))
            columns = points.n, points.weight, points.ww, points.bias, points.wy
            sums.append([np.bincount(code, x, shape[0] * shape[1]).reshape(shape) for x in columns])
        return cls(*(np.concatenate(parts) for parts in zip(*sums, strict=True)))

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def equal_weights(self) -> bool:
        """Whether all rows have the same weight."""
        return bool(np.all(np.abs(self.ww - self.n) + np.abs(self.weight - self.n) <= 1e-9 * self.n))

    @cached_property
    def variance(self) -> _Array:
        """Variance of an outcome in each group, from the frequency of the event there; 0 for a single row."""
        total = np.sum(self.weight, axis=0)
        rate = np.clip(np.sum(self.wy, axis=0) / total, 0.0, 1.0)
        left = 1.0 - np.sum(self.ww, axis=0) / total**2
        return np.where(left > 1e-9, rate * (1.0 - rate) / np.where(left > 1e-9, left, 1.0), 0.0)

    @property
    def information(self) -> float:
        """Effective information: sum of q(1 - q), q the frequency of the event, over as many rows of equal weight."""
        noise, square = self.ww * self.variance, float(np.sum(self.ww * self.variance * self.ww / self._rows))
        return float(np.sum(noise)) ** 2 / square if square > 0.0 else 0.0

    @property
    def _rows(self) -> _Array:
        return np.where(self.n > 0.0, self.n, 1.0)

    @property
    def residual(self) -> _Array:
        """Sums of w (p - y), measured from the mean error of each group in all windows."""
        return np.asarray(self.bias - self.weight * (np.sum(self.bias, axis=0) / np.sum(self.weight, axis=0)))

    def merged(self, at_most: int) -> "WindowSums":
        """Merge neighbouring windows into blocks of about equal information."""
        if len(self) <= at_most:
            return self
        noise = np.sum(self.ww * self.variance, axis=1)
        firsts = np.flatnonzero(np.diff(equal_cells(noise + 1e-9 * np.sum(noise) / len(self), at_most), prepend=-1))
        columns = self.n, self.weight, self.ww, self.bias, self.wy
        return WindowSums(*(np.add.reduceat(column, firsts, axis=0) for column in columns))


class ChangeStatistic:
    """The statistic of the test for change, and its distribution if the error is constant."""

    def __init__(self, sums: WindowSums) -> None:
        self._sums = sums
        information = np.sum(sums.ww, axis=0) * sums.variance
        place = information_axis(np.arange(len(information), dtype=np.float64), information)
        self._cosines = np.cos(np.pi * np.outer(np.arange(_COSINES), place))
        weight = 1.0 / (1.0 + np.arange(_COSINES))
        share = np.sum(sums.ww * sums.variance, axis=1)
        share = share / np.sum(share)
        dates = (share[:-1] + share[1:]) / np.sum(share[:-1] + share[1:])
        self._dates = np.outer(dates, weight) * _inverse(self.date_variances)
        self._windows = _SINGLE_WINDOWS * np.outer(share, weight) * _inverse(self._noise(sums.weight, sums.ww))

    def coordinates(self, residual: _Array) -> _Array:
        """Coordinates of residuals over predictions, for each window: their sums times each cosine."""
        return residual @ self._cosines.T

    def value(self, coordinates: _Array) -> _Array:
        """The statistic, for the coordinates of one or several residuals."""
        path = np.cumsum(coordinates, axis=-2)[..., :-1, :]
        terms = np.sum(self._windows * coordinates**2, axis=(-2, -1))
        return np.asarray(terms + np.sum(self._dates * path**2, axis=(-2, -1)))

    @property
    def observed(self) -> float:
        """The value for the outcomes that happened."""
        return float(self.value(self.coordinates(self._sums.residual)))

    # --- dates of change -------------------------------------------------------------------------------------------

    def _noise(self, weight: _Array, ww: _Array) -> _Array:
        """Variances of the coordinates of sets of rows, from their sums of w and of w^2 in each group."""
        sums = self._sums
        total, squares = np.sum(sums.weight, axis=0), np.sum(sums.ww, axis=0)
        share = weight / total
        return np.asarray((sums.variance * (ww * (1.0 - 2.0 * share) + share**2 * squares)) @ self._cosines.T**2)

    @property
    def date_variances(self) -> _Array:
        """Variances of the coordinates of all windows before each date of change."""
        return self._noise(np.cumsum(self._sums.weight, axis=0)[:-1], np.cumsum(self._sums.ww, axis=0)[:-1])

    @property
    def evidence(self) -> _Array:
        """Evidence for each date of change: squared standardized differences before and after, weighted."""
        path = np.cumsum(self.coordinates(self._sums.residual), axis=0)[:-1]
        return np.asarray(path**2 * _inverse(self.date_variances) @ (1.0 / (1.0 + np.arange(_COSINES))))

    # --- distribution ----------------------------------------------------------------------------------------------

    @cached_property
    def _limit(self) -> tuple[_Array, _Array]:
        """Eigenvalues of the covariance of a vector whose squared length is the statistic, and its axes."""
        roots, many = self._roots, len(self._sums) * _COSINES
        scaled = np.einsum("jst,tjui,iuv->sjvi", roots, self._covariance, roots, optimize=True)
        values, axes = np.linalg.eigh(scaled.reshape(many, many))
        positive = values > _ROUNDING * max(float(values[-1]), 1e-300)
        return values[positive], axes[:, positive]

    @cached_property
    def _roots(self) -> _Array:
        """Symmetric roots of the matrices of the statistic, one for each cosine."""
        t = len(self._sums)
        lower = np.tril(np.ones((t - 1, t)))
        metric = np.einsum("sj,st,su->jtu", self._dates, lower, lower, optimize=True)
        metric[:, np.arange(t), np.arange(t)] += self._windows.T
        values, axes = np.linalg.eigh(metric)
        return np.asarray((axes * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(axes, 1, 2))

    @property
    def _covariance(self) -> _Array:
        """Covariance of the coordinates of windows: axes are window, cosine, window, cosine."""
        sums, cosines = self._sums, self._cosines
        t, shape = len(sums), (len(sums), _COSINES, len(sums), _COSINES)
        noise, share = sums.ww * sums.variance, sums.weight / np.sum(sums.weight, axis=0)
        own, part = (np.reshape(x[:, None, :] * cosines, (t * _COSINES, -1)) for x in (noise, share))
        cross = own @ part.T
        covariance = (part * np.sum(noise, axis=0)) @ part.T - cross - cross.T
        result = covariance.reshape(shape)
        result[np.arange(t), :, np.arange(t), :] += np.einsum("tk,jk,ik->tji", noise, cosines, cosines, optimize=True)
        return np.asarray(result)

    def limit_pvalue(self, observed: float) -> float:
        """Upper tail of the limit: a quadratic form in normal variables."""
        return upper_tail(observed, self._limit[0])

    def redrawn_pvalue(self, observed: float) -> float:
        """Upper tail if the events of each group of similar predictions are distributed over windows by chance."""
        sums, rng = self._sums, np.random.default_rng(0)
        rows = np.rint(sums.n).astype(np.int64)
        events = np.rint(np.sum(sums.wy, axis=0)).astype(np.int64)
        mean = sums.n * (events / np.sum(sums.n, axis=0))
        extreme, drawn = 0, 0
        while drawn < _RESAMPLES:
            count = min(_RESAMPLES - drawn, max(_BLOCK // rows.size, 1))
            draws = [rng.multivariate_hypergeometric(*group, count) for group in zip(rows.T, events, strict=True)]
            values = self.value(self.coordinates(mean - np.stack(draws, axis=-1)))
            extreme += int(np.sum(values >= observed * (1.0 - 1e-9)))
            drawn += count
        return (1 + extreme) / (1 + _RESAMPLES)

    def detectable(self, alpha: float) -> float:
        """The shift of all predictions, from the middle of the information on, that is detected with 80% power."""
        sums, (scales, axes) = self._sums, self._limit
        upto = np.cumsum(np.sum(sums.ww * sums.variance, axis=1))
        later = np.where(np.arange(len(sums)) > np.argmin(np.abs(upto[:-1] - upto[-1] / 2.0)), 1.0, 0.0)[:, None]
        total = np.sum(sums.weight, axis=0)
        mean = self.coordinates(sums.weight * (later - np.sum(later * sums.weight, axis=0) / total))
        unit = np.einsum("jst,tj->sj", self._roots, mean).ravel() @ axes / np.sqrt(scales)
        critical = upper_quantile(alpha, scales)

        def surplus(shift: float) -> float:
            return upper_tail(critical, scales, shift * unit) - POWER

        return find_root(surplus, 0.0, 1.0, xtol=1e-7, rtol=1e-3) if surplus(1.0) > 0.0 else math.nan


def _inverse(variances: _Array) -> _Array:
    """One over each variance, 0 where it is a rounding error: nothing can be compared there."""
    some = variances > _ROUNDING * np.max(variances, initial=1e-300)
    return np.where(some, 1.0 / np.where(some, variances, 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class Change:
    """Result of the test: `place` is the first window after the change. `method` "none" if there is no p-value."""

    statistic: float
    pvalue: float
    method: str
    why: str
    n_resamples: int
    place: int


@one_blas_thread()
def run_change_test(sums: WindowSums) -> Change:
    """Test whether the error changes over time, and estimate when."""
    information, equal = sums.information, sums.equal_weights
    least = _LEAST if equal else _LEAST_WEIGHTED
    if information < least:
        why = f"the rows carry too little information for the test: {information:.3g}, and {least:g} are needed"
        return Change(math.nan, math.nan, "none", why, 0, 0)
    blocks = ChangeStatistic(sums.merged(_BLOCKS))
    if not np.max(blocks.date_variances) > _ROUNDING * np.sum(sums.ww * sums.variance):
        why = "no two windows have similar predictions, so that nothing can be compared"
        return Change(math.nan, math.nan, "none", why, 0, 0)
    observed, place = blocks.observed, int(np.argmax(ChangeStatistic(sums).evidence)) + 1
    if equal and information < _ENOUGH:
        why = f"{_RESAMPLES} redraws of the windows of events, within groups of similar predictions"
        return Change(observed, blocks.redrawn_pvalue(observed), "exact", why, _RESAMPLES, place)
    why = "limit for many rows: a quadratic form in normal variables"
    return Change(observed, blocks.limit_pvalue(observed), "asymptotic", why, 0, place)


@one_blas_thread()
def detectable_change(sums: WindowSums, alpha: float) -> float:
    """The shift of all predictions, from the middle on, that the test detects with 80% power; nan if there is none."""
    return ChangeStatistic(sums.merged(_BLOCKS)).detectable(alpha)
