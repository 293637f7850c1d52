"""Loops over rows in any order that add them up in bins, and that find the edges of bins of equal weight."""

from typing import Any

import numpy as np

from truthcal.kernels.grid import GridTables, bucket_in
from truthcal.kernels.jit import Rows, compiled, interpreted_first, two_sum


@compiled
def bin_in(x: float, edges: Rows, first: Rows) -> Any:
    """Return the bin of x: the last one with edges[bin] <= x.

    `first` divides [0, 1] into equal stretches and has the bin of the left end of each, and then the last bin. Within a
    stretch the search is binary, because bins of equal weight may all lie in one.
    """
    stretch = min(np.uint64(np.int64(x * np.float64(first.size - 1))), np.uint64(first.size - 2))
    low, high = np.uint64(first[stretch]), np.uint64(first[stretch + np.uint64(1)])
    while low < high:
        middle = (low + high + np.uint64(1)) >> np.uint64(1)
        if x >= edges[middle]:
            low = middle
        else:
            high = middle - np.uint64(1)
    return low


@interpreted_first
def bin_biases(p: Rows, y: Rows, w: Rows, edges: Rows, first: Rows, out: Rows) -> None:
    """Add the rows of each bin to `out`, (bins, 4): sums of w, w y and, as a pair, of w c."""
    for i in range(p.size):
        x, weight = np.float64(p[i]), w[i]
        k = bin_in(x, edges, first)
        out[k, 0] += weight
        out[k, 1] += weight * y[i]
        out[k, 2], out[k, 3] = two_sum(out[k, 2], out[k, 3], weight * (x - y[i]))


@interpreted_first
def bin_totals(p: Rows, y: Rows, w: Rows, edges: Rows, first: Rows, out: Rows) -> None:
    """Add the rows of each bin to `out`, (bins, 9).

    Columns: number of rows; sums of w, w^2, w y, w^2 v and, as a pair, of w p; smallest and largest p.
    """
    for i in range(p.size):
        x, weight = np.float64(p[i]) + 0.0, w[i]  # turns -0.0 into 0.0
        k = bin_in(x, edges, first)
        out[k, 0] += 1.0
        out[k, 1] += weight
        out[k, 2] += weight * weight
        out[k, 3] += weight * y[i]
        out[k, 4] += weight * weight * x * (1.0 - x)
        out[k, 5], out[k, 6] = two_sum(out[k, 5], out[k, 6], weight * x)
        out[k, 7] = min(out[k, 7], x)
        out[k, 8] = max(out[k, 8], x)


@interpreted_first
def select_bins(p: Rows, edges: Rows, first: Rows, wanted: Rows, out: Rows) -> Any:
    """Copy the predictions of rows in wanted bins to `out`; returns their number."""
    count = np.uint64(0)
    for i in range(p.size):
        x = np.float64(p[i]) + 0.0  # turns -0.0 into 0.0
        out[count] = x
        count += np.uint64(wanted[bin_in(x, edges, first)])
    return count


@compiled
def bucket_weights(p: Rows, w: Rows, grid: GridTables, out: Rows) -> None:
    """Add the weight of each row to the bucket of its prediction, from which edges of equal weight are found."""
    for i in range(p.size):
        out[bucket_in(np.float64(p[i]), grid)] += w[i]


@compiled
def select_buckets(p: Rows, w: Rows, grid: GridTables, wanted: Rows, out: Rows) -> Any:
    """Copy the predictions and weights of rows in wanted buckets to `out`; returns their number."""
    count = np.uint64(0)
    for i in range(p.size):
        out[0, count], out[1, count] = p[i], w[i]
        count += np.uint64(wanted[bucket_in(np.float64(p[i]), grid)])
    return count
