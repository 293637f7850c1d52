"""Loop of the interval calibration error."""

import numpy as np

from truthcal.kernels.jit import Rows, compiled

# Number of candidates compared without a branch between them.
_LANES = 32


@compiled
def interval_error(r: Rows, mass: Rows, cumulative: Rows) -> float:
    """Kernel of the interval error: minimum over partitions of the sum over runs of |sum of c| + mass * width.

    F_j = min over i < j of F_i + |A_j - A_i| + (M_j - M_i)(r_j - r_{i+1}), A and M cumulative. The last term grows as i
    falls, so the search ends when its sum with the smallest earlier F exceeds the best value so far.
    """
    n = r.size
    best, least, a, m = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    best[0], least[0], a[0], m[0] = 0.0, 0.0, 0.0, 0.0
    for j in range(1, n + 1):
        a[j] = cumulative[j - 1]
        m[j] = m[j - 1] + mass[j - 1]
        lowest = np.inf
        last = j
        while last > 0 and least[last - 1] + (m[j] - m[last - 1]) * (r[j - 1] - r[last - 1]) < lowest:
            first = max(last - _LANES, 0)
            for i in range(first, last):
                cost = best[i] + abs(a[j] - a[i]) + (m[j] - m[i]) * (r[j - 1] - r[i])
                lowest = min(lowest, cost)
            last = first
        best[j] = lowest
        least[j] = min(least[j - 1], lowest)
    return float(best[n])
