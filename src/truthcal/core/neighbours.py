"""Dependence of rows: do errors of neighbouring rows, in file order, have something in common?"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import is_plain
from truthcal.core.edge_search import search_edges

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]

# Fewer rows say nothing. Errors are measured from their mean in bins of this many rows or more: in sorted files with
# 50 rows per bin, calibration errors that jump gave the note in up to 50% of files of 300 independent rows. With
# groups, bins are larger, first of all rows and then of each group: only the mean of the second ones is corrected.
_FEWEST, _PER_BIN, _PER_BIN_OF_GROUPS, _MOST_BINS = 30, 15, 500, 500
# Of more rows than this number of blocks, only such a number of blocks is read, spread over the file: 20 ms.
_BLOCK, _MOST_BLOCKS = 1 << 13, 16
# Where errors are certainly 0 but for rounding, their squares times squares are below this.
_ROUNDING = 1e-28


class SpreadRows:
    """The rows of a stream from which `neighbour_z` is computed: all of them or, if there are many, some blocks.

    Every block is kept, or every second, fourth and so on: at most 16 of 8192 rows. The size of the batches does not
    matter.
    """

    def __init__(self) -> None:
        self._n, self._stride = 0, 1
        self._blocks: dict[int, list[list[NDArray[Any]]]] = {}

    def add(self, *columns: NDArray[Any]) -> None:
        """Add a batch of rows: columns of equal length."""
        first, self._n = self._n, self._n + len(columns[0])
        for block in range(first // _BLOCK, -(-self._n // _BLOCK)):
            if block % self._stride:
                continue
            rows = slice(max(block * _BLOCK - first, 0), (block + 1) * _BLOCK - first)
            self._blocks.setdefault(block, []).append([column[rows].copy() for column in columns])
            if len(self._blocks) > _MOST_BLOCKS:
                self._stride *= 2
                self._blocks = {number: rows for number, rows in self._blocks.items() if number % self._stride == 0}

    def columns(self) -> list[NDArray[Any]]:
        """Return the kept rows, in order. At least one row must have been added."""
        pieces = [piece for block in self._blocks.values() for piece in block]
        return [np.concatenate(column) for column in zip(*pieces, strict=True)]


def neighbour_z(p: NDArray[Any], y: NDArray[Any], groups: NDArray[Any] | None = None) -> float | None:
    """Standardized correlation (z) of errors of neighbouring rows, in this order; None for few rows or soft labels.

    With `groups`, a number for each row, neighbours are consecutive rows of the same group. The sum over neighbours of
    e e', where e is p - y minus its mean among rows of similar predictions (and of the same group): a calibration error
    alone, of all rows or of a group, shows no correlation. For independent rows the products are uncorrelated. Their
    mean would be 0, but for the subtracted mean, which is corrected. The sum is divided by the root of the sum of their
    variances or of their squares, whichever is larger: then it is not large where events are rare and two happen to be
    neighbours.
    """
    rows = SpreadRows()
    rows.add(p, y, np.broadcast_to(np.int64(0), p.shape) if groups is None else groups)
    p, y, numbers = rows.columns() if len(p) else (p, y, p)
    if len(p) < _FEWEST or not (is_plain(p) and is_plain(y)) or not ((y == 0) | (y == 1)).all():
        return None
    p, y, numbers = p.astype(np.float64), y.astype(np.float64), numbers.astype(np.int64)
    per_bin = _PER_BIN if groups is None else _PER_BIN_OF_GROUPS
    bins = _bin_numbers(p, np.zeros_like(numbers), per_bin)
    error = _subtract_means(p - y, bins)
    if groups is not None:
        order = np.argsort(numbers, kind="stable")
        p, y, error, numbers = p[order], y[order], error[order], numbers[order]
        bins = _bin_numbers(p, numbers, per_bin)
        error = _subtract_means(error, bins)
    return _standardize(error, np.clip(y + error, 0.0, 1.0), bins, numbers)


def _standardize(error: _Array, chance: _Array, bins: _Ints, groups: _Ints) -> float:
    """Sum of products of neighbouring errors in the same group, divided by its standard deviation.

    `chance` is the estimated probability of each event, and `bins` are those in which errors have the mean 0: in random
    order, the mean product of two of m errors is minus the sum of their squares / (m (m - 1)).
    """
    m = np.bincount(bins)
    mean_product = -np.bincount(bins, error**2) / np.maximum(m * (m - 1.0), 1.0)
    neighbours = groups[1:] == groups[:-1]
    products, variance = error[:-1] * error[1:] * neighbours, chance * (1.0 - chance)
    # Not products @ products: a second thread of BLAS may have to wait for a core, which took three times as long.
    squares, expected = float(np.sum(products**2)), float(np.sum(variance[:-1] * variance[1:] * neighbours))
    same_bin = bins[:-1][neighbours & (bins[1:] == bins[:-1])]
    total = float(np.sum(products)) - float(np.sum(mean_product[same_bin]))
    variance_of_total = max(squares, expected)
    return total / math.sqrt(variance_of_total) if variance_of_total > _ROUNDING * len(products) else 0.0


def _bin_numbers(p: _Array, groups: _Ints, per_bin: int) -> _Ints:
    """Number bins of similar predictions within each group; rows are in the order of their groups."""
    counts = np.bincount(groups)
    ends, n_bins = np.cumsum(counts), np.clip(counts // per_bin, 1, _MOST_BINS)
    numbers: _Ints = (np.cumsum(n_bins) - n_bins)[groups]
    for group in np.flatnonzero(n_bins > 1):
        rows = slice(ends[group] - counts[group], ends[group])
        sampled = np.sort(p[rows][:: max(1, int(counts[group]) // 10_000)])
        quantiles = np.arange(1, n_bins[group]) * (len(sampled) - 1) / n_bins[group]
        edges = np.unique(
            np.interp(quantiles, np.arange(len(sampled)), sampled)
        )  # np.quantile takes five times as long
        numbers[rows] += search_edges(edges, p[rows], "right")
    return numbers


def _subtract_means(values: _Array, bins: _Ints) -> _Array:
    """Subtract from each value the mean of its bin."""
    means = np.bincount(bins, values) / np.maximum(np.bincount(bins), 1)
    return values - means[bins]
