"""Loops over rows in file order."""

import numpy as np

from truthcal.kernels.jit import Rows, compiled


@compiled
def _find_bin(edges: Rows, x: float) -> int:
    """Kernel of the number of edges that are at most x; edges increase."""
    first, last = 0, edges.size
    while first < last:
        middle = (first + last) // 2
        if edges[middle] <= x:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def neighbour_products(p: Rows, y: Rows, edges: Rows) -> tuple[float, float, float]:
    """Kernel of the products of errors of neighbouring rows: their sum, the sum of their squares, and its expectation.

    The error is p - y minus its mean over all rows in the same bin of predictions, between `edges`.
    """
    n = p.size
    bias, count = np.zeros(edges.size + 1), np.zeros(edges.size + 1)
    for i in range(n):
        b = _find_bin(edges, p[i])
        bias[b] += p[i] - y[i]
        count[b] += 1.0
    for b in range(bias.size):
        bias[b] /= max(count[b], 1.0)
    total, squares, expected = 0.0, 0.0, 0.0
    error_before, variance_before = 0.0, 0.0  # of the row before; the first row has none
    for i in range(n):
        mean = bias[_find_bin(edges, p[i])]
        chance = min(max(p[i] - mean, 0.0), 1.0)
        error, variance = p[i] - y[i] - mean, chance * (1.0 - chance)
        product = error * error_before
        total += product
        squares += product * product
        expected += variance * variance_before
        error_before, variance_before = error, variance
    return total, squares, expected
