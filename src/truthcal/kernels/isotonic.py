"""Isotonic regression."""

import numpy as np

from truthcal.kernels.jit import Rows, interpreted_first


@interpreted_first
def isotonic(mass: Rows, positive: Rows, fit: Rows) -> None:
    """Kernel of isotonic regression: pool adjacent violators."""
    n = mass.size
    block_mass, block_positive, end = np.empty(n), np.empty(n), np.empty(n, np.int64)
    k = -1
    for i in range(n):
        k += 1
        block_mass[k], block_positive[k], end[k] = mass[i], positive[i], i + 1
        while k > 0 and block_positive[k - 1] * block_mass[k] >= block_positive[k] * block_mass[k - 1]:
            block_mass[k - 1] += block_mass[k]
            block_positive[k - 1] += block_positive[k]
            end[k - 1] = end[k]
            k -= 1
    first = 0
    for block in range(k + 1):
        mean = min(block_positive[block] / block_mass[block], 1.0)
        for i in range(first, end[block]):
            fit[i] = mean
        first = end[block]
