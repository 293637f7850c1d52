"""Loops over filled buckets of one sketch or of many: checks, sums and bounds.

``columns`` are the sums of `buckets.py`, the smallest and the largest prediction, with one entry for each filled
bucket. Group g has the entries from ``starts[g]`` to ``starts[g + 1]``, by increasing bucket.
"""

import numpy as np

from truthcal.kernels.buckets import HIGH, LOW, N_SUMS, NEG, POS, WCC, WCP, WP, WW, WWCC, WWV, N, W
from truthcal.kernels.jit import Rows, compiled, two_sum

# The error of adding n terms in any order is at most n - 1 roundings of the sum of their absolute values. The constant
# more than covers the rounding of the terms themselves. Certified bounds are widened by the effect of these errors.
EPS = float(np.finfo(np.float64).eps)
ROUNDINGS_A_TERM = 32
# Largest count that floats represent exactly.
_MOST_ROWS = 2.0**53
# Squares smaller than this underflow.
_TINY = 1e-300

# Columns of `group_bounds`: estimate, lower and upper bound of ATB, the same of ATB_l1, and the largest rounding error
# of the cumulative bias.
N_BOUNDS = 7


@compiled
def rounding(n: float) -> float:
    """Largest error of a sum of n terms, relative to the sum of their absolute values."""
    return EPS * (n + ROUNDINGS_A_TERM)


@compiled
def possible_cells(columns: Rows, out: Rows) -> None:
    """Mark the filled buckets whose sums and extremes can come from rows. Nan cannot."""
    for k in range(out.size):
        finite = True
        for field in range(columns.shape[0]):
            finite &= np.isfinite(columns[field, k])
        n, w, ww, wp = columns[N, k], columns[W, k], columns[WW, k], columns[WP, k]
        pos, neg, low, high = columns[POS, k], columns[NEG, k], columns[LOW, k], columns[HIGH, k]
        sizes = pos + neg
        slack = rounding(n) * w  # largest rounding error of a sum of terms of up to w
        share = 1.0 + n * EPS
        out[k] = (
            finite
            and (1.0 <= n <= _MOST_ROWS and n == np.floor(n))
            and (w > 0.0 and 0.0 < ww <= w * w * share)
            and (0.0 <= low <= high <= 1.0)
            and (w * low - slack <= wp <= w * high + slack)
            and (0.0 <= pos <= wp + slack and 0.0 <= neg <= w - wp + slack and sizes <= w + slack)
            and low * pos - high * neg - slack <= columns[WCP, k] <= high * pos - low * neg + slack
            and 0.0 <= columns[WCC, k] <= sizes + slack
            and 0.0 <= columns[WWCC, k] <= ww * share
            and 0.0 <= columns[WWV, k] <= ww
        )


@compiled
def add_up(order: Rows, starts: Rows, columns: Rows, out: Rows) -> None:
    """For each cell k of `out`, the sums and extremes of the cells ``order[starts[k]:starts[k + 1]]`` of `columns`."""
    for k in range(starts.size - 1):
        for field in range(N_SUMS):
            total, lost = 0.0, 0.0
            for i in range(starts[k], starts[k + 1]):
                total, lost = two_sum(total, lost, columns[field, order[i]])
            out[field, k] = total + lost
        low, high = np.inf, -np.inf
        for i in range(starts[k], starts[k + 1]):
            low, high = min(low, columns[LOW, order[i]]), max(high, columns[HIGH, order[i]])
        out[LOW, k], out[HIGH, k] = low + 0.0, high + 0.0  # -0.0 becomes 0.0


@compiled
def group_totals(starts: Rows, columns: Rows, out: Rows) -> None:
    """For each group, the totals of all sums (N_SUMS x groups)."""
    for field in range(N_SUMS):
        for g in range(starts.size - 1):
            total, lost = 0.0, 0.0
            for k in range(starts[g], starts[g + 1]):
                total, lost = two_sum(total, lost, columns[field, k])
            out[field, g] = total + lost


@compiled
def two_bin_loss(x: float, total: float, squared: bool) -> float:
    """Integrand of ATB and ATB_l1: the biases below and above the threshold, squared or absolute."""
    if squared:
        return x * x + (total - x) * (total - x)
    return abs(x) + abs(total - x)


@compiled
def integral(columns: Rows, first: int, last: int, total: float, squared: bool) -> tuple[float, float, float]:
    """Estimate, lower and upper bound of the integral of `two_bin_loss` over q, from the sums of each bucket.

    Inside a bucket the partial sums x lie between -neg and pos and have a known average. The loss is convex in x, so
    its average is at least the loss at the average and at most the chord over [-neg, pos]. The estimate spreads x
    evenly by the standard deviation of a bridge with these steps. The average is a difference of sums divided by the
    length of the bucket's stretch, so rounding affects it; the bounds allow for that.
    """
    value, least, most = 0.0, 0.0, 0.0
    before, before_lost = 0.0, 0.0
    position = 0.0
    for k in range(first, last):
        pos, neg, low, high = columns[POS, k], columns[NEG, k], columns[LOW, k], columns[HIGH, k]
        a = before + before_lost
        gap = (low - position) * two_bin_loss(a, total, squared)
        value += gap
        least += gap
        most += gap
        d = high - low
        step = pos - neg
        if d > 0.0 and pos + neg > 0.0:
            mean = min(max((step * high - columns[WCP, k]) / d, -neg), pos)
            doubt = rounding(columns[N, k]) * (pos + neg) / d
            lowest, highest = max(mean - doubt, -neg), min(mean + doubt, pos)
            best = min(max(0.5 * total - a, lowest), highest)  # minimum of the loss
            below = d * two_bin_loss(a + best, total, squared)
            bottom = two_bin_loss(a - neg, total, squared)
            slope = (two_bin_loss(a + pos, total, squared) - bottom) / (pos + neg)
            above = max(d * (bottom + max(slope * (lowest + neg), slope * (highest + neg))), below)
            sd = np.sqrt((step * step + columns[WWCC, k]) / 12.0)
            middle = two_bin_loss(a + mean - sd, total, squared) + two_bin_loss(a + mean + sd, total, squared)
            value += min(max(0.5 * d * middle, below), above)
            least += below
            most += above
        elif d > 0.0:
            flat = d * two_bin_loss(a, total, squared)
            value += flat
            least += flat
            most += flat
        before, before_lost = two_sum(before, before_lost, step)
        position = high
    tail = (1.0 - position) * two_bin_loss(before + before_lost, total, squared)
    return value + tail, least + tail, most + tail


@compiled
def widened(estimate: tuple[float, float, float], pad: float, share: float, unit: float) -> tuple[float, float, float]:
    """Divide by `unit`, a power of the weight, and widen by `pad` and by the relative rounding error `share`."""
    value, low, high = estimate
    low = max(low - pad - _TINY, 0.0) * (1.0 - share)
    high = (high + pad + _TINY) * (1.0 + share)
    value = min(max(value, low), high) / unit
    return value, max(low / unit - _TINY, 0.0), high / unit + _TINY  # the quotient may underflow


@compiled
def group_bounds(starts: Rows, columns: Rows, totals: Rows, out: Rows) -> None:
    """For each group, ATB and ATB_l1 with certified bounds (N_BOUNDS x groups). No group may be empty."""
    for g in range(starts.size - 1):
        first, last = starts[g], starts[g + 1]
        weight, bias = totals[W, g], totals[POS, g] - totals[NEG, g]
        slack, rows = 0.0, 0.0
        for k in range(first, last):
            slack += rounding(columns[N, k]) * (columns[POS, k] + columns[NEG, k])
            rows = max(rows, columns[N, k])
        share = 3.0 * rounding(rows) + 4.0 * EPS * (last - first) + 1e-12  # the integral has two terms for each bucket
        linear = integral(columns, first, last, bias, False)
        square = integral(columns, first, last, bias, True)
        pad = 4.0 * slack * linear[2] + 5.0 * slack * slack
        out[0, g], out[1, g], out[2, g] = widened(square, pad, share, weight * weight)
        out[3, g], out[4, g], out[5, g] = widened(linear, 3.0 * slack, share, weight)
        out[6, g] = slack
