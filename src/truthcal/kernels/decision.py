"""Loops of the calibration decision loss and U-calibration. Input: distinct predictions, increasing."""

import numpy as np

from truthcal.kernels.jit import Rows, interpreted_briefly, two_sum


@interpreted_briefly
def gain_of_knowing(r: Rows, mass: Rows, positive: Rows, gain: Rows) -> None:
    """Kernel of decision loss: for each k, the sum of (positive_i - r_k mass_i) over the i whose mean exceeds r_k.

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


@interpreted_briefly
def envelope_at_half(r: Rows, mass: Rows, positive: Rows, gain: Rows) -> float:
    """Kernel of decision loss: concave envelope at 1/2 of gain(mu) - sum of (positive - mu mass) over r > mu.

    It is 0 at 0 and 1. `gain` holds the first term at each r_k. It is convex between them, so the corners are at the
    r_k: one for mu just below r_k and one for mu = r_k.
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
