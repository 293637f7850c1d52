"""Loops that fill a sketch, and the one that reads it."""

from typing import Any

import numpy as np

from truthcal._kernels._compile import Rows, compiled, two_sum

# Per-bucket scratch of `sketch_binary`, one cache line: (count, sum t, sum t^2) of zeros, the same of ones, min, max.
SCRATCH_FIELDS = 8

# The sums a sketch keeps for each bucket, in file order. c = p - y, v = p(1 - p).
(N, W, WW, WP, POS, NEG, WCP, WCC, WWCC, WWV) = range(10)
N_SUMS = 10


@compiled
def bucket_of(x: float, n_buckets: int) -> Any:
    """THE definition of a bucket: [k/B, (k+1)/B), and 1 goes to the last. Exact, since B is a power of two.

    Unsigned, because numba checks signed indices for Python's counting from the end: 25% of the sketch's time.
    """
    return min(np.uint64(np.int64(x * np.float64(n_buckets))), np.uint64(n_buckets - 1))


@compiled
def bucket_indices(p: Rows, n_buckets: int, out: Rows) -> None:
    """`bucket_of` for an array."""
    for i in range(p.size):
        out[i] = bucket_of(np.float64(p[i]), n_buckets)


@compiled
def add_to(sums: Rows, lost: Rows, field: int, bucket: int, x: float) -> None:
    """Compensated addition to one sum."""
    sums[field, bucket], lost[field, bucket] = two_sum(sums[field, bucket], lost[field, bucket], x)


@compiled
def add_table(sums: Rows, lost: Rows, x: Rows) -> None:
    """Compensated addition of whole tables of sums."""
    for field in range(sums.shape[0]):
        for bucket in range(sums.shape[1]):
            if x[field, bucket] != 0.0:
                add_to(sums, lost, field, bucket, x[field, bucket])


@compiled
def sketch_binary(p: Rows, y: Rows, n_buckets: int, scratch: Rows) -> int:
    """Add unweighted rows with 0/1 labels to the scratch (n_buckets * SCRATCH_FIELDS, flat).

    t is the distance from p to the bucket's edge on the side of the outcome: with it |p - y| is a sum of positive
    parts, and the sums stay as accurate for predictions of 1 - 1e-9 as for 1e-9.

    Any other row is passed over; returns how many. Checking here and not before costs a tenth, because a pass of its
    own would push the scratch out of the cache.
    """
    width = 1.0 / n_buckets
    fields, half = np.uint64(SCRATCH_FIELDS), np.uint64(3)
    f1, f2, f6, f7 = np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(7)
    others = 0
    for i in range(p.size):
        x = np.float64(p[i])
        if not ((x >= 0.0) & (x <= 1.0) & ((y[i] == 0) | (y[i] == 1))):
            others += 1
            continue
        bucket = bucket_of(x, n_buckets)
        label = np.uint64(y[i])
        t = abs(np.float64(np.int64(bucket + label)) * width - x)
        base = bucket * fields
        own = base + half * label
        scratch[own] += 1.0
        scratch[own + f1] += t
        scratch[own + f2] += t * t
        if x < scratch[base + f6]:
            scratch[base + f6] = x
        if x > scratch[base + f7]:
            scratch[base + f7] = x
    return others


@compiled
def finish_binary(scratch: Rows, sums: Rows, lost: Rows, low: Rows, high: Rows) -> None:
    """Add the scratch of `sketch_binary` to a sketch."""
    n_buckets = low.size
    for k in range(n_buckets):
        own = scratch[k * SCRATCH_FIELDS : (k + 1) * SCRATCH_FIELDS]
        n0, t0, tt0, n1, t1, tt1 = own[0], own[1], own[2], own[3], own[4], own[5]
        if n0 + n1 == 0.0:
            continue
        left = k / n_buckets  # zeros: p = left + t, all parts positive
        p0 = n0 * left + t0
        pp0 = n0 * left * left + 2.0 * left * t0 + tt0
        v0 = n0 * left * (1.0 - left) + (1.0 - 2.0 * left) * t0 - tt0
        rest = 1.0 - (k + 1) / n_buckets  # ones: 1 - p = rest + t, likewise
        q1 = n1 * rest + t1
        qq1 = n1 * rest * rest + 2.0 * rest * t1 + tt1
        v1 = n1 * rest * (1.0 - rest) + (1.0 - 2.0 * rest) * t1 - tt1
        for field in (N, W, WW):
            add_to(sums, lost, field, k, n0 + n1)
        add_to(sums, lost, WP, k, p0 + (n1 - q1))
        add_to(sums, lost, POS, k, p0)
        add_to(sums, lost, NEG, k, q1)
        add_to(sums, lost, WCP, k, pp0 - (q1 - qq1))
        add_to(sums, lost, WCC, k, pp0 + qq1)
        add_to(sums, lost, WWCC, k, pp0 + qq1)
        add_to(sums, lost, WWV, k, max(v0, 0.0) + max(v1, 0.0))
        low[k] = min(low[k], own[6])
        high[k] = max(high[k], own[7])


@compiled
def sketch_weighted(p: Rows, y: Rows, w: Rows, n_buckets: int, scratch: Rows, low: Rows, high: Rows) -> None:
    """Add rows with weights or fractional outcomes to the scratch (n_buckets, N_SUMS)."""
    for i in range(p.size):
        x = np.float64(p[i])
        k = bucket_of(x, n_buckets)
        own = scratch[k]
        weight = w[i]
        c = x - y[i]
        wc = weight * c
        own[N] += 1.0
        own[W] += weight
        own[WW] += weight * weight
        own[WP] += weight * x
        own[POS] += max(wc, 0.0)
        own[NEG] += max(-wc, 0.0)
        own[WCP] += wc * x
        own[WCC] += wc * c
        own[WWCC] += wc * wc
        own[WWV] += weight * weight * x * (1.0 - x)
        low[k] = min(low[k], x)
        high[k] = max(high[k], x)


@compiled
def two_bin_loss(x: float, total: float, squared: bool) -> float:
    """What both ATBs integrate: the bias below the threshold and the bias above it, squared or absolute."""
    if squared:
        return x * x + (total - x) * (total - x)
    return abs(x) + abs(total - x)


@compiled
def sketch_integral(
    sums: Rows, low: Rows, high: Rows, rounding: Rows, total: float, squared: bool
) -> tuple[float, float, float]:
    """Estimate, lower and upper bound of the integral of `two_bin_loss` over q, given only the sums of each bucket.

    Inside a bucket the partial sums x move between -neg and pos with a known average. The loss is convex in x, so its
    average is at least the loss at the average and at most the chord over [-neg, pos]. The estimate spreads x evenly
    by the standard deviation of a bridge with these steps. The average is a difference of sums divided by the length of
    the bucket's stretch, so it is known only to within what rounding did to them; the bounds allow for all of that.
    """
    value, least, most = 0.0, 0.0, 0.0
    before, before_lost = 0.0, 0.0
    position = 0.0
    for k in range(sums.shape[1]):
        if sums[N, k] == 0.0:
            continue
        pos, neg = sums[POS, k], sums[NEG, k]
        a = before + before_lost
        gap = (low[k] - position) * two_bin_loss(a, total, squared)
        value += gap
        least += gap
        most += gap
        d = high[k] - low[k]
        step = pos - neg
        if d > 0.0 and pos + neg > 0.0:
            mean = min(max((step * high[k] - sums[WCP, k]) / d, -neg), pos)
            doubt = rounding[k] * (pos + neg) / d
            lowest, highest = max(mean - doubt, -neg), min(mean + doubt, pos)
            best = min(max(0.5 * total - a, lowest), highest)  # where the loss is least
            below = d * two_bin_loss(a + best, total, squared)
            bottom = two_bin_loss(a - neg, total, squared)
            slope = (two_bin_loss(a + pos, total, squared) - bottom) / (pos + neg)
            above = max(d * (bottom + max(slope * (lowest + neg), slope * (highest + neg))), below)
            sd = np.sqrt((step * step + sums[WWCC, k]) / 12.0)
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
        position = high[k]
    tail = (1.0 - position) * two_bin_loss(before + before_lost, total, squared)
    return value + tail, least + tail, most + tail
