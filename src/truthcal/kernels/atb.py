"""Loops of ATB and ATB_l1: integrals over all thresholds. Input: rows sorted by prediction."""

import numpy as np

from truthcal.kernels.jit import BLOCK, Pairs, Rows, interpreted_first, two_sum

# Rows whose bias is stored before it is integrated: they stay in the L1 cache. Sums that are added at once.
INTEGRAL_BLOCK, LANES = 1024, 32


@interpreted_first
def bias_sum(p: Rows, y: Rows, w: Rows) -> Pairs:
    """Sums over rows of w p and of w y, as pairs."""
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    for i in range(p.size):
        ph, pl = two_sum(ph, pl, w[i] * np.float64(p[i]))
        yh, yl = two_sum(yh, yl, w[i] * y[i])
    return ph, pl, yh, yl


@interpreted_first
def bias_sum_binary(p: Rows, y: Rows) -> Pairs:
    """`bias_sum` without weights and with 0/1 outcomes. LANES sums in turn are added at once: a third of the time."""
    high, low, ones = np.zeros(LANES), np.zeros(LANES), 0
    for first in range(0, p.size, LANES):
        row = p[first : first + LANES]
        for k in range(row.size):
            high[k], low[k] = two_sum(high[k], low[k], np.float64(row[k]))
    for i in range(p.size):
        ones += int(y[i])
    ph, pl = 0.0, 0.0
    for k in range(LANES):
        ph, pl = two_sum(ph, pl + low[k], high[k])
    return ph, pl, float(ones), 0.0


@interpreted_first
def square_integral(p: Rows, y: Rows, w: Rows, before: Pairs, total: float, end: float) -> float:
    """Kernel of ATB: integral of C(q)^2 + (total - C(q))^2 over q from the first of these rows to `end`.

    `before` holds the sums of w p and of w y over all earlier rows, as pairs.
    """
    ph, pl, yh, yl = before
    integral = 0.0
    for first in range(0, p.size, BLOCK):
        block = 0.0
        for i in range(first, min(first + BLOCK, p.size)):
            here = np.float64(p[i])
            ph, pl = two_sum(ph, pl, w[i] * here)
            yh, yl = two_sum(yh, yl, w[i] * y[i])
            there = np.float64(p[i + 1]) if i + 1 < p.size else end
            x = (ph - yh) + (pl - yl)
            block += (there - here) * (x * x + (total - x) * (total - x))
        integral += block
    return integral


@interpreted_first
def square_integral_binary(p: Rows, y: Rows, before: Pairs, total: float, end: float) -> float:
    """`square_integral` without weights and with 0/1 outcomes.

    The cumulative bias of a block of rows is stored, and the processor then integrates several rows at once. If the sum
    so far exceeds each prediction of the block, half of the operations of `two_sum` suffice. Together 1.6 times as fast
    as one loop.
    """
    ph, pl, yh, _ = before
    ones, integral, bias = int(yh), 0.0, np.empty(INTEGRAL_BLOCK)
    for first in range(0, p.size, INTEGRAL_BLOCK):
        here, labels = p[first : first + INTEGRAL_BLOCK], y[first : first + INTEGRAL_BLOCK]
        if ph >= here[here.size - 1]:
            for i in range(here.size):
                x = np.float64(here[i])
                high = ph + x
                pl += x - (high - ph)
                ph = high
                ones += int(labels[i])
                bias[i] = (ph - ones) + pl
        else:
            for i in range(here.size):
                ph, pl = two_sum(ph, pl, np.float64(here[i]))
                ones += int(labels[i])
                bias[i] = (ph - ones) + pl
        there = np.float64(p[first + here.size]) if first + here.size < p.size else end
        integral += integral_of_block(here, bias, total, there)
    return integral


@interpreted_first
def integral_of_block(p: Rows, bias: Rows, total: float, end: float) -> float:
    """Integral of bias^2 + (total - bias)^2 from the first prediction to `end`. LANES sums are added at once."""
    sums, last = np.zeros(LANES), p.size - 1
    for first in range(0, last, LANES):
        size = min(LANES, last - first)
        here, there, x = p[first : first + size], p[first + 1 : first + 1 + size], bias[first : first + size]
        for k in range(size):
            gap = np.float64(there[k]) - np.float64(here[k])
            sums[k] += gap * (x[k] * x[k] + (total - x[k]) * (total - x[k]))
    x_last = bias[last]
    integral = (end - np.float64(p[last])) * (x_last * x_last + (total - x_last) * (total - x_last))
    for k in range(LANES):
        integral += sums[k]
    return float(integral)


@interpreted_first
def absolute_integral(p: Rows, y: Rows, w: Rows, total: float) -> float:
    """Kernel of ATB_l1: integral of |C(q)| + |total - C(q)| over thresholds q in [0, 1]."""
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    integral = abs(total) * np.float64(p[0])
    for first in range(0, p.size, BLOCK):
        block = 0.0
        for i in range(first, min(first + BLOCK, p.size)):
            here = np.float64(p[i])
            ph, pl = two_sum(ph, pl, w[i] * here)
            yh, yl = two_sum(yh, yl, w[i] * y[i])
            there = np.float64(p[i + 1]) if i + 1 < p.size else 1.0
            x = (ph - yh) + (pl - yl)
            block += (there - here) * (abs(x) + abs(total - x))
        integral += block
    return integral
