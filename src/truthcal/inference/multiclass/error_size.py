"""The size of the calibration error of predictions with many classes.

The error of class k is p_k minus the frequency of k among all rows with that p_k. The size is the root of half of the
sum over classes of the mean squared errors: for two classes, the root mean square error of either of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.class_rows import ClassRows
from truthcal.core.parallel import one_blas_thread
from truthcal.core.points import excess
from truthcal.inference.intervals import student_factor
from truthcal.inference.laws.squared_length import Axes, why_no_interval
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.measures.multiclass import uncertainty
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.text import count

_Array = NDArray[np.float64]

# Bins of each class: half of the root of six times its information, at least two (errors of opposite sign must not
# share a bin) and at most the first number; of all classes together at most the second, since the covariance of all
# bins is decomposed.
_MOST_BINS, _ALL_BINS = 40, 400
# Products that the covariance of bins may take; beyond, it is estimated from some of the rows.
_WORK = 200_000_000
# A mean square error below this quantile of that of noise is replaced by it in the upper end of the interval.
_UNUSUALLY_SMALL = 0.1
_ONE_ROW = 1.0 - 1e-9
# Bins in which one row or group has more than this share of the weight are left out of the estimate.
_MOST_OF_ONE = 0.5


@dataclass(frozen=True, eq=False)
class _Bins:
    """Bins of neighbouring probabilities of each class.

    `bin`: the bin of each row for each class. `weight`, `bias`, `self_pairs`, `one_row`: sums over the rows of each bin
    of w / W, of w c / W and of the squares of both.
    """

    rows: ClassRows
    bin: NDArray[np.int64]
    weight: _Array
    bias: _Array
    self_pairs: _Array
    one_row: _Array

    @classmethod
    def of(cls, cells: ClassCells, design_effect: float) -> Self:
        rows = cells.rows
        place = _bins_of_cells(cells, design_effect)
        bins = place[cells.cell]
        w = rows.w / rows.total
        errors = rows.errors()
        size = int(place[-1]) + 1

        def sums(values: _Array) -> _Array:
            values = np.broadcast_to(values, bins.shape).ravel()
            return np.bincount(bins.ravel(), values, size).astype(np.float64)

        weight, bias = sums(w[:, None]), sums(w[:, None] * errors)
        return cls(rows, bins, weight, bias, sums((w[:, None] * errors) ** 2), sums((w**2)[:, None]))

    @property
    def rate(self) -> _Array:
        """Error of each bin: mean prediction minus frequency."""
        return self.bias / self.weight

    def truth(self) -> _Array:
        """Probabilities of each row if the errors of bins were true."""
        q = np.clip(self.rows.p - self.rate[self.bin], 0.0, 1.0)
        total = q.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, q / np.where(total > 0.0, total, 1.0), self.rows.p)

    def covariance(self, q: _Array) -> _Array:
        """Covariance of `bias` if classes have the probabilities q."""
        from scipy import sparse

        rows, k = self.rows, q.shape[1]
        some = rows.sampled(max(_WORK // k**2, 1))
        w = rows.w[some] / rows.total
        scale = float(np.sum(rows.w**2 * uncertainty(q))) / rows.total**2
        used = float(np.sum(w**2 * uncertainty(q[some])))
        w = w * math.sqrt(scale / used) if used > 0.0 else w
        values = (w[:, None] * q[some]).ravel()
        ends = np.arange(0, values.size + 1, k)
        table = sparse.csr_matrix((values, self.bin[some].ravel(), ends), (len(some), len(self.weight)))
        of_bins = np.bincount(self.bin[some].ravel(), (w[:, None] ** 2 * q[some]).ravel(), len(self.weight))
        return np.asarray(np.diag(of_bins) - (table.T @ table).toarray())

    def of_groups(self, groups: NDArray[np.int64]) -> tuple[Any, Any]:
        """Sums of w c / W and of w / W of each group (row) in each bin (column), as sparse matrices."""
        from scipy import sparse

        rows, shape = self.rows, (int(groups.max()) + 1, len(self.weight))
        w = np.repeat(rows.w / rows.total, rows.n_classes)
        places = np.repeat(groups, rows.n_classes), self.bin.ravel()
        z, h = (sparse.csr_matrix((values, places), shape) for values in (w * rows.errors().ravel(), w))
        return z, h


class _Noise(NamedTuple):
    """The noise of bins: their squared errors from pairs of the same row or group, and the sums of squared shares.

    `clusters`: one over the effective number of rows or groups. `least`: bins in which one has a larger share of the
    weight are left out. `why_not`: reason why there is no interval. `covariances`: those of the biases of bins, if
    errors are those observed and if there are none.
    """

    own: _Array
    one: _Array
    clusters: float
    least: float
    why_not: str
    covariances: Callable[[], tuple[_Array, _Array]]

    @classmethod
    def of_rows(cls, bins: _Bins) -> Self:
        """The noise of independent rows."""
        rows = bins.rows
        own, one = bins.self_pairs / bins.weight**2, bins.one_row / bins.weight**2
        why_not = why_no_interval(rows.n, rows.one_row)
        return cls(
            own, one, rows.one_row, _ONE_ROW, why_not, lambda: (bins.covariance(bins.truth()), bins.covariance(rows.p))
        )

    @classmethod
    def of_groups(cls, bins: _Bins, groups: NDArray[np.int64], level: float) -> Self:
        """The noise of rows that belong together, from the differences between groups."""
        z, h = bins.of_groups(groups)
        own, one = (np.asarray(x.multiply(x).sum(axis=0)).ravel() / bins.weight**2 for x in (z, h))
        clusters = float(np.sum(np.bincount(groups, bins.rows.w / bins.rows.total) ** 2))
        why_not = "a few groups have nearly all of the weight" if clusters > _MOST_OF_ONE else ""

        def covariances() -> tuple[_Array, _Array]:
            scale = 1.0 / np.sqrt(np.where(one < _MOST_OF_ONE, 1.0 - one, 1.0))
            noise = (z - h.multiply(bins.rate)).multiply(scale).tocsr()
            covariance = (noise.T @ noise).toarray() * student_factor(1.0 / clusters, level)
            return covariance, covariance

        return cls(own, one, clusters, _MOST_OF_ONE, why_not, covariances)


def _bins_of_cells(cells: ClassCells, design_effect: float) -> NDArray[np.int64]:
    """Number the bins, for each cell: neighbouring cells of a class are joined to bins of about equal information."""
    rows, numbers, first = cells.rows, [], 0
    information = (rows.w[:, None] * rows.p * (1.0 - rows.p)).sum(axis=0) / rows.total / rows.one_row / design_effect
    at_most = max(_ALL_BINS // rows.n_classes, 2)
    for k in range(rows.n_classes):
        n_cells = int(cells.starts[k + 1] - cells.starts[k])
        wanted = int(np.clip(round(math.sqrt(6.0 * float(information[k])) / 2.0), 2, min(_MOST_BINS, at_most)))
        place = np.unique(np.arange(n_cells) * min(wanted, n_cells) // n_cells, return_inverse=True)[1]
        numbers.append(first + place)
        first += int(place[-1]) + 1
    return np.concatenate(numbers)


@one_blas_thread()
def multiclass_error_size(
    cells: ClassCells, confidence_level: float, groups: NDArray[np.int64] | None = None
) -> ConfidenceInterval:
    """The size of the error, with a confidence interval."""
    rows = cells.rows
    bins = _Bins.of(cells, 1.0 if groups is None else _design_effect(rows, groups))
    noise = _Noise.of_rows(bins) if groups is None else _Noise.of_groups(bins, groups, confidence_level)
    known = noise.one < noise.least
    squares = np.where(known, excess(bins.rate**2, noise.own, np.where(known, noise.one, 0.0)), 0.0)
    share = float(np.sum(bins.weight[known])) / float(np.sum(bins.weight))
    mean_square = float(np.sum(squares * bins.weight)) / max(share, 1e-9) / 2.0
    estimate = min(math.sqrt(max(mean_square, 0.0)), 1.0)
    if noise.why_not:
        return ConfidenceInterval(math.nan, math.nan, confidence_level, "error", estimate, "none", noise.why_not)
    low, high = _interval(bins, noise, (1.0 - confidence_level) / 2.0)
    low, high = min(low, estimate), min(max(high, estimate), 1.0)
    of = f"{count(rows.n, 'row')}" if groups is None else f"{int(groups.max()) + 1:,} groups of rows"
    why = f"approximation: all sizes of the error that are consistent with {of}, in {count(len(bins.weight), 'bin')}"
    return ConfidenceInterval(low, high, confidence_level, "error", estimate, "quadratic", why, noise_removed=True)


def _interval(bins: _Bins, noise: _Noise, chance: float) -> tuple[float, float]:
    """All sizes of the error that neither tail rejects."""
    unit = 1.0 / np.sqrt(2.0 * bins.weight)
    covariance, calibrated = noise.covariances()

    def axes_at(share: float) -> Axes:
        """The principal axes if this share of the error is true: noise is between those of no error and of all."""
        mixed = share * covariance + (1.0 - share) * calibrated if share < 1.0 else covariance
        return Axes.of(bins.bias * unit, unit[:, None] * mixed * unit)

    axes = axes_at(1.0)
    low = axes.least_length(chance, (lambda _: axes) if calibrated is covariance else axes_at)
    return low, axes.largest_length(chance, _UNUSUALLY_SMALL)


def _design_effect(rows: ClassRows, groups: NDArray[np.int64]) -> float:
    """Variance of the mean errors of all classes, divided by that of independent rows; at least 1."""
    errors = rows.errors()
    errors = (rows.w / rows.total)[:, None] * (errors - rows.w @ errors / rows.total)
    of_groups = sum(float(np.sum(np.bincount(groups, column) ** 2)) for column in errors.T)
    return max(of_groups / max(float(np.sum(errors**2)), 1e-300), 1.0)
