"""Loops over distinct predictions: interval partitions, isotonic regression, concave envelopes."""

import numpy as np

from truthcal.kernels.jit import Rows, compiled, two_sum

# Number of candidates compared without a branch between them.
_LANES = 32


@compiled
def interval_error(r: Rows, mass: Rows, cumulative: Rows) -> float:
    """Minimum over partitions into runs of the sum of |sum of c in the run| + mass of the run * its width.

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


@compiled
def isotonic(mass: Rows, positive: Rows, fit: Rows) -> None:
    """Isotonic regression by pooling adjacent violators."""
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


@compiled
def gain_of_knowing(r: Rows, mass: Rows, positive: Rows, gain: Rows) -> None:
    """For each k, the sum of (positive_i - r_k mass_i) over the i whose mean outcome exceeds r_k.

    A group leaves the sum at the first r_k that is not below its mean outcome, found by binary search.
    """
    n = r.size
    leaving = np.zeros((2, n + 1))
    mh, ml, ph, pl = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        mean = positive[i] / mass[i]
        first, last = (i, n) if mean > r[i] else (0, i + 1)
        if mean <= 0.0:
            continue
        if mean >= 1.0:  # most groups are single rows: 0 and 1 need no search
            first = last = n - (r[n - 1] >= 1.0)
        while first < last:
            middle = (first + last) >> 1
            if r[middle] < mean:
                first = middle + 1
            else:
                last = middle
        if first > 0:
            leaving[0, first] += mass[i]
            leaving[1, first] += positive[i]
            mh, ml = two_sum(mh, ml, mass[i])
            ph, pl = two_sum(ph, pl, positive[i])
    for k in range(n):
        mh, ml = two_sum(mh, ml, -leaving[0, k])
        ph, pl = two_sum(ph, pl, -leaving[1, k])
        gain[k] = (ph + pl) - r[k] * (mh + ml)


@compiled
def envelope_at_half(r: Rows, mass: Rows, positive: Rows, gain: Rows) -> float:
    """Upper concave envelope, at 1/2, of gain(mu) - sum of (positive - mu mass) over r > mu, and of 0 at 0 and 1.

    `gain` holds the first term at each r_k. It is convex between them, so the corners are at the r_k: one for mu just
    below r_k and one for mu = r_k.
    """
    n = r.size
    hull_x, hull_y = np.empty(2 * n + 2), np.empty(2 * n + 2)
    hull_x[0], hull_y[0] = 0.0, 0.0
    size = 1
    mh, ml, ph, pl = 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        mh, ml = two_sum(mh, ml, mass[k])
        ph, pl = two_sum(ph, pl, positive[k])
    for corner in range(2 * n + 1):
        x, y = 1.0, 0.0
        if corner < 2 * n:
            k = corner >> 1
            x = r[k]
            if corner & 1:
                mh, ml = two_sum(mh, ml, -mass[k])
                ph, pl = two_sum(ph, pl, -positive[k])
            y = gain[k] - ((ph + pl) - x * (mh + ml))
        if x == hull_x[size - 1] and y <= hull_y[size - 1]:
            continue
        while size > 0 and (
            x == hull_x[size - 1]
            or (
                size > 1
                and (hull_y[size - 1] - hull_y[size - 2]) * (x - hull_x[size - 2])
                <= (y - hull_y[size - 2]) * (hull_x[size - 1] - hull_x[size - 2])
            )
        ):
            size -= 1
        hull_x[size], hull_y[size] = x, y
        size += 1
    k = 0
    while k < size - 2 and hull_x[k + 1] <= 0.5:
        k += 1
    t = (0.5 - hull_x[k]) / (hull_x[k + 1] - hull_x[k])
    return float(hull_y[k] + t * (hull_y[k + 1] - hull_y[k]))


@compiled
def kept_bias(r: Rows, y: Rows, kept: Rows, cumulative: Rows) -> None:
    """Sum of kept * (r - y) over the rows up to each distinct r, inclusive."""
    high, low = 0.0, 0.0
    group = -1
    for i in range(r.size):
        if i == 0 or r[i] != r[i - 1]:
            group += 1
        high, low = two_sum(high, low, kept[i] * (r[i] - y[i]))
        cumulative[group] = high + low


@compiled
def merge_neighbours(r: Rows, mass: Rows, positive: Rows, steps: int, out: Rows) -> int:
    """Merge groups that begin within the same of `steps` equal parts of the total mass: mean r, zeros, ones.

    Returns the number of merged groups.
    """
    total = 0.0
    for i in range(r.size):
        total += mass[i]
    before, step, count = 0.0, -1, -1
    for i in range(r.size):
        own = int(before / total * steps)
        if own != step:
            step = own
            count += 1
            out[:, count] = 0.0
        out[0, count] += r[i] * mass[i]
        out[1, count] += mass[i] - positive[i]
        out[2, count] += positive[i]
        before += mass[i]
    for k in range(count + 1):
        out[0, k] /= out[1, k] + out[2, k]
    return count + 1
