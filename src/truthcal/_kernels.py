"""Compiled loops: valid arrays in, numbers out.

Nothing here raises, has a default or knows the public API. Every loop that takes rows takes them as three arrays of one
length: predictions ``p`` in increasing order, outcomes ``y`` and weights ``w`` (a broadcast 1.0 when there are none).

All kernels live in this one file because numba's disk cache watches only the file of the kernel it loads: a helper
edited in another file would leave its callers stale.

Running sums of signed terms are kept as an unevaluated pair (high, low), exact to about 1e-31, so that cancellation in
the cumulative bias costs nothing. Long sums of non-negative terms are taken in blocks of ``BLOCK`` rows, which keeps
the rounding error near BLOCK times, not n times, the machine epsilon and costs no speed.
"""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Rows = NDArray[Any]

BLOCK = 4096

# Per-bucket scratch of `sketch_binary`, one cache line: (count, sum t, sum t^2) of zeros, the same of ones, min, max.
SCRATCH_FIELDS = 8

# The sums a sketch keeps for each bucket, in file order. c = p - y, v = p(1 - p).
(N, W, WW, WP, POS, NEG, WCP, WCC, WWCC, WWV) = range(10)
N_SUMS = 10


def compiled(function: F) -> F:
    """Compile for every caller, without the GIL, with the machine code cached on disk where a place for it exists."""
    try:
        dispatcher: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no writable cache directory: compile once per process instead
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))
    save = dispatcher._cache.save_overload

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except OSError as error:  # a disk that filled up meanwhile must not stop a computation
            warnings.warn(f"truthcal could not cache compiled code: {error}", RuntimeWarning, stacklevel=2)

    dispatcher._cache.save_overload = save_if_possible
    return cast(F, dispatcher)


@compiled
def two_sum(high: float, low: float, x: float) -> tuple[float, float]:
    """(high, low) + x without losing the rounding error of the addition."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))


# --- checking ---------------------------------------------------------------------------------------------------------


@compiled
def count_outside_unit(x: Rows) -> int:
    """How many entries are not in [0, 1]; NaN counts."""
    bad = 0
    for i in range(x.size):
        bad += not ((x[i] >= 0) & (x[i] <= 1))
    return bad


@compiled
def binary_labels(y: Rows, out: Rows) -> int:
    """Write 0/1 labels as bytes; returns how many entries are neither 0 nor 1."""
    bad = 0
    for i in range(y.size):
        bad += (y[i] != 0) & (y[i] != 1)
        out[i] = y[i] == 1
    return bad


# --- sorting ----------------------------------------------------------------------------------------------------------


@compiled
def pack(bits: Rows, y: Rows, keys: Rows) -> None:
    """Keys = (bits of p << 1) | label: orders like (p, label), loses nothing, and turns -0.0 into 0.0."""
    for i in range(bits.size):
        keys[i] = (bits[i] << 1) | y[i]


@compiled
def pack_lower(bits: Rows, y: Rows, pivot: int, keys: Rows) -> int:
    """`pack`, but only keys below the pivot, from the front; returns how many. Writes one slot past the last."""
    kept = 0
    for i in range(bits.size):
        key = (bits[i] << 1) | y[i]
        keys[kept] = key
        kept += key < pivot
    return kept


@compiled
def pack_upper(bits: Rows, y: Rows, pivot: int, keys: Rows) -> None:
    """`pack`, but only keys from the pivot on, from the back; writes one slot before the last."""
    slot = keys.size - 1
    for i in range(bits.size):
        key = (bits[i] << 1) | y[i]
        keys[slot] = key
        slot -= key >= pivot


@compiled
def unpack(keys: Rows, y: Rows) -> None:
    """Undo `pack` in place: keys become the bits of p again, labels go to y."""
    for i in range(keys.size):
        key = keys[i]
        y[i] = key & 1
        keys[i] = key >> 1


# --- sums over rows ---------------------------------------------------------------------------------------------------


@compiled
def moments(p: Rows, y: Rows, w: Rows) -> tuple[float, float, float, float, float, float]:
    """Sums of w, w^2, w c^2, w^2 c^2, w^2 v and w c."""
    sum_w, sum_ww, sum_wcc, sum_wwcc, sum_wwv = 0.0, 0.0, 0.0, 0.0, 0.0
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    for first in range(0, p.size, BLOCK):
        block_w, block_ww, block_wcc, block_wwcc, block_wwv = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first, min(first + BLOCK, p.size)):
            x, weight = np.float64(p[i]), w[i]
            c = x - y[i]
            wc = weight * c
            ph, pl = two_sum(ph, pl, weight * x)
            yh, yl = two_sum(yh, yl, weight * y[i])
            block_w += weight
            block_ww += weight * weight
            block_wcc += wc * c
            block_wwcc += wc * wc
            block_wwv += weight * weight * x * (1.0 - x)
        sum_w += block_w
        sum_ww += block_ww
        sum_wcc += block_wcc
        sum_wwcc += block_wwcc
        sum_wwv += block_wwv
    return sum_w, sum_ww, sum_wcc, sum_wwcc, sum_wwv, (ph - yh) + (pl - yl)


@compiled
def count_distinct(p: Rows) -> int:
    """How many different predictions."""
    count = 1
    for i in range(1, p.size):
        count += p[i] != p[i - 1]
    return count


@compiled
def cumulative_bias(p: Rows, y: Rows, w: Rows, value: Rows, bias: Rows, count: Rows, weight: Rows) -> None:
    """Per distinct prediction: its value, sum of w c up to and with it, and its own rows and weight."""
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    group = -1
    for i in range(p.size):
        if i == 0 or p[i] != p[i - 1]:
            group += 1
            value[group] = p[i]
            count[group] = 0
            weight[group] = 0.0
        ph, pl = two_sum(ph, pl, w[i] * np.float64(p[i]))
        yh, yl = two_sum(yh, yl, w[i] * y[i])
        bias[group] = (ph - yh) + (pl - yl)
        count[group] += 1
        weight[group] += w[i]


# --- integrals over thresholds ----------------------------------------------------------------------------------------


@compiled
def one_sided_integrals(
    p: Rows, y: Rows, w: Rows, first: int, step: int, count: int, end: float
) -> tuple[float, float, float]:
    """Integrals of x and x^2, x(q) the sum of w c over the rows passed on the way to q, walking up or down.

    Walks `count` rows from `first` in direction `step` and then on to q = `end`. Also returns the sum of all of them.
    """
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    linear, square = 0.0, 0.0
    i = first
    for done in range(0, count, BLOCK):
        block_linear, block_square = 0.0, 0.0
        for k in range(done, min(done + BLOCK, count)):
            here = np.float64(p[i])
            ph, pl = two_sum(ph, pl, w[i] * here)
            yh, yl = two_sum(yh, yl, w[i] * y[i])
            i += step
            there = np.float64(p[i]) if k + 1 < count else end
            x = (ph - yh) + (pl - yl)
            part = abs(there - here) * x
            block_linear += part
            block_square += part * x
        linear += block_linear
        square += block_square
    return (ph - yh) + (pl - yl), linear, square


@compiled
def one_sided_integrals_binary(
    p: Rows, y: Rows, first: int, step: int, count: int, end: float
) -> tuple[float, float, float]:
    """`one_sided_integrals` without weights and with 0/1 outcomes, which integers count exactly: 1.6 times as fast."""
    ph, pl, ones = 0.0, 0.0, 0
    linear, square = 0.0, 0.0
    i = first
    for done in range(0, count, BLOCK):
        block_linear, block_square = 0.0, 0.0
        for k in range(done, min(done + BLOCK, count)):
            here = np.float64(p[i])
            ph, pl = two_sum(ph, pl, here)
            ones += y[i]
            i += step
            there = np.float64(p[i]) if k + 1 < count else end
            x = (ph - ones) + pl
            part = abs(there - here) * x
            block_linear += part
            block_square += part * x
        linear += block_linear
        square += block_square
    return (ph - ones) + pl, linear, square


@compiled
def absolute_integral(p: Rows, y: Rows, w: Rows, total: float) -> float:
    """Integral over q in [0, 1] of |C(q)| + |total - C(q)|."""
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


@compiled
def window_integral(p: Rows, y: Rows, w: Rows, width: float) -> float:
    """(1/width) * integral over q of (sum of w c with q < p <= q + width)^2.

    The window [q, q + width] slides up. Rows enter at q = p - width and leave at q = p. Steps between two events of one
    kind are differences of predictions, so that neighbours one ulp apart keep their distance.
    """
    n = p.size
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    total, block = 0.0, 0.0
    entered, left = 0, 0
    here, here_enters = np.float64(p[0]), True
    for event in range(2 * n):
        leaver = np.float64(p[left])
        enters = entered < n and bool(np.float64(p[entered]) - leaver <= width)
        there = np.float64(p[entered]) if enters else leaver
        step = there - here
        if enters and not here_enters:
            step -= width
        elif here_enters and not enters:
            step += width
        x = (ph - yh) + (pl - yl)
        block += max(step, 0.0) * x * x
        if event % BLOCK == 0:
            total += block
            block = 0.0
        if enters:
            ph, pl = two_sum(ph, pl, w[entered] * there)
            yh, yl = two_sum(yh, yl, w[entered] * y[entered])
            entered += 1
        else:
            ph, pl = two_sum(ph, pl, -w[left] * there)
            yh, yl = two_sum(yh, yl, -w[left] * y[left])
            left += 1
        here, here_enters = there, enters
    return (total + block) / width


@compiled
def tent_pairs(p: Rows, w: Rows, width: float) -> float:
    """Sum over all ordered pairs (s, t) of k^2 a_s a_t, k = max(0, 1 - |p_s - p_t|/width), a = w p(1 - p).

    a0, a1, a2 are the sums over the window below p_t of a, a d, a d^2 with d = (p_t - p_s)/width.
    """
    a0, a1, a2 = 0.0, 0.0, 0.0
    total = 0.0
    left = 0
    for t in range(p.size):
        x = np.float64(p[t])
        if t > 0:
            step = (x - np.float64(p[t - 1])) / width
            a2 += step * (2.0 * a1 + step * a0)
            a1 += step * a0
        while x - np.float64(p[left]) >= width:
            z = np.float64(p[left])
            d = (x - z) / width
            a = w[left] * z * (1.0 - z)
            a0 -= a
            a1 -= a * d
            a2 -= a * d * d
            left += 1
        if left == t:  # an empty window: drop what rounding left behind
            a0, a1, a2 = 0.0, 0.0, 0.0
        a = w[t] * x * (1.0 - x)
        total += a * (2.0 * (a0 - 2.0 * a1 + a2) + a)
        a0 += a
    return total


@compiled
def quantile_squares(p: Rows, y: Rows, w: Rows, size: int, n_bins: int) -> float:
    """Expected sum over bins of (sum of c)^2; bins hold equal counts of rows, ties are split at random.

    w holds whole numbers of repetitions, `size` is their sum. A bin that takes j of m tied rows gets j times their mean
    and the variance j(m - j)/m times their sample variance of drawing without replacement.
    """
    total, variance = 0.0, 0.0
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    bin_, room = 0, size // n_bins
    i = 0
    while i < p.size:
        x = np.float64(p[i])
        m, positive, last = 0.0, 0.0, i
        while last < p.size and p[last] == p[i]:
            m += w[last]
            positive += w[last] * y[last]
            last += 1
        spread = 0.0
        for k in range(i, last):
            spread += w[k] * (y[k] - positive / m) ** 2
        rest = int(m)
        while rest > 0:
            taken = min(rest, room)
            ph, pl = two_sum(ph, pl, taken * x)
            yh, yl = two_sum(yh, yl, taken * positive / m)
            if m > 1.0:
                variance += taken * (m - taken) / m * spread / (m - 1.0)
            rest -= taken
            room -= taken
            if room == 0:
                mean = (ph - yh) + (pl - yl)
                total += mean * mean + variance
                ph, pl, yh, yl, variance = 0.0, 0.0, 0.0, 0.0, 0.0
                bin_ += 1
                room = (bin_ + 1) * size // n_bins - bin_ * size // n_bins
        i = last
    return total


@compiled
def labelled_squares(p: Rows, y: Rows, w: Rows, bins: Rows, n_bins: int) -> float:
    """Sum over bins of (sum of w c)^2, rows labelled 0 to n_bins - 1."""
    sums = np.zeros((n_bins, 4))
    for i in range(p.size):
        own = sums[bins[i]]
        own[0], own[1] = two_sum(own[0], own[1], w[i] * np.float64(p[i]))
        own[2], own[3] = two_sum(own[2], own[3], w[i] * y[i])
    total = 0.0
    for k in range(n_bins):
        total += ((sums[k, 0] - sums[k, 2]) + (sums[k, 1] - sums[k, 3])) ** 2
    return total


# --- the sketch -------------------------------------------------------------------------------------------------------


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
def sketch_integral(sums: Rows, low: Rows, high: Rows, total: float, squared: bool) -> tuple[float, float, float]:
    """Estimate, lower and upper bound of the integral of `two_bin_loss` over q, given only the sums of each bucket.

    Inside a bucket the partial sums x move between -neg and pos with a known average. The loss is convex in x, so its
    average is at least the loss at the average and at most the chord over [-neg, pos]. The estimate spreads x evenly
    by the standard deviation of a bridge with these steps.
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
            below = d * two_bin_loss(a + mean, total, squared)
            chord = (pos - mean) * two_bin_loss(a - neg, total, squared)
            chord += (mean + neg) * two_bin_loss(a + pos, total, squared)
            above = max(d * chord / (pos + neg), below)
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
