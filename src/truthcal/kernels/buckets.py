"""Loops over buckets of one sketch or of many: add rows, check, sum up, bound.

In the loops over filled buckets, ``columns`` are the sums of each, its smallest and its largest prediction, and its
largest weight. Group g has the entries from ``starts[g]`` to ``starts[g + 1]``, by increasing bucket.
"""

from typing import Any

import numpy as np

from truthcal.kernels.grid import GridTables, bucket_in, left_and_width, place_of, place_rows
from truthcal.kernels.jit import Rows, compiled, two_sum

# Per-bucket scratch of `sketch_binary`, one cache line: (count, sum t, sum t^2) of zeros, the same of ones, min, max.
SCRATCH_FIELDS = 8

# Groups g, g + 8, g + 16 ... share a table of cells, which one thread fills.
GROUP_CLASSES = 8

# Rows that `sketch_binary` places at a time, and bits of these places: of the field in the scratch, and of its cell.
_BLOCK = 512
_LOW_BITS, _CELL_BITS = np.uint64(2**32 - 1), np.uint64(2**32 - SCRATCH_FIELDS)
_F1, _F2, _F6, _F7 = np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(7)

# Sums in each bucket of a sketch, in file order. c = p - y, v = p(1 - p).
(N, W, WW, WP, POS, NEG, WCP, WCC, WWCC, WWV, WWC, WWW, WWWW) = range(13)
N_SUMS = 13
# Fields of a cell, a filled bucket of a group: the sums of a sketch, the smallest and the largest prediction, and the
# largest weight.
LOW, HIGH, TOP = N_SUMS, N_SUMS + 1, N_SUMS + 2
N_FIELDS = N_SUMS + 3
# Unsigned, because numba checks signed indices for negative values.
_N, _W, _WW, _WP, _POS, _NEG, _WCP, _WCC, _WWCC, _WWV, _WWC, _WWW, _WWWW, _LOW, _HIGH, _TOP = (
    np.uint64(i) for i in range(N_FIELDS)
)

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
def bucket_of(x: float, n_buckets: int) -> Any:
    """Return the bucket of x among buckets of equal width, a power of two of them. Exact; 1 is in the last.

    Unsigned, because numba checks signed indices for negative values, which takes 25% of the sketch's time.
    """
    return min(np.uint64(np.int64(x * np.float64(n_buckets))), np.uint64(n_buckets - 1))


@compiled
def add_to_bucket(sums: Rows, lost: Rows, field: int, bucket: int, x: float) -> None:
    """Add x to one sum of a bucket, with compensation."""
    sums[field, bucket], lost[field, bucket] = two_sum(sums[field, bucket], lost[field, bucket], x)


@compiled
def add_buckets(sums: Rows, lost: Rows, x: Rows) -> None:
    """Add the sums of all buckets of another sketch, with compensation."""
    for field in range(sums.shape[0]):
        for bucket in range(sums.shape[1]):
            if x[field, bucket] != 0.0:
                add_to_bucket(sums, lost, field, bucket, x[field, bucket])


@compiled
def sketch_binary(p: Rows, y: Rows, grid: GridTables, scratch: Rows) -> int:
    """Add unweighted rows with 0/1 labels to the scratch of their buckets (n_buckets * SCRATCH_FIELDS, flat).

    t is the distance from p to the edge of the bucket on the side of the outcome, in units of the bucket's width: |p -
    y| is then a sum of positive parts, and the sums are as accurate for predictions of 1 - 1e-9 as for 1e-9.

    Other rows are skipped; returns their number. Checking here takes a tenth of the time of a separate pass, which
    would push the scratch out of the cache. So blocks are short.
    """
    ts, places = np.empty(_BLOCK), np.empty(_BLOCK)
    sides = places.view(np.uint64)
    others = 0
    for first in range(0, p.size, _BLOCK):
        block, labels = p[first : first + _BLOCK], y[first : first + _BLOCK]
        valid = True
        for i in range(block.size):
            valid &= is_binary_row(block[i], labels[i])
        place_rows(block, labels, grid, scratch.size / SCRATCH_FIELDS, ts, places)
        for i in range(block.size):
            if not valid and not is_binary_row(block[i], labels[i]):
                others += 1
                continue
            x, t = np.float64(block[i]), ts[i]
            side = sides[i] & _LOW_BITS
            base = side & _CELL_BITS
            scratch[side] += 1.0
            scratch[side + _F1] += t
            scratch[side + _F2] += t * t
            if x < scratch[base + _F6]:
                scratch[base + _F6] = x
            if x > scratch[base + _F7]:
                scratch[base + _F7] = x
    return others


@compiled
def is_binary_row(x: float, y: float) -> Any:
    """Return whether a prediction is valid and its outcome 0 or 1."""
    return (x >= 0.0) & (x <= 1.0) & ((y == 0) | (y == 1))


@compiled
def binary_sums(scratch: Rows, k: int, grid: GridTables) -> tuple[float, float, float, float, float, float, float]:
    """Return N, WP, POS, NEG, WCP, WCC and WWV from the scratch of bucket k, which give the other sums as well."""
    left, width = left_and_width(k, grid.pieces)
    n0, t0, tt0 = scratch[0], scratch[1] * width, scratch[2] * width * width
    n1, t1, tt1 = scratch[3], scratch[4] * width, scratch[5] * width * width
    # Zeros: p = left + t, both positive.
    p0 = n0 * left + t0
    pp0 = n0 * left * left + 2.0 * left * t0 + tt0
    v0 = n0 * left * (1.0 - left) + (1.0 - 2.0 * left) * t0 - tt0
    rest = 1.0 - (left + width)  # ones: 1 - p = rest + t, both positive
    q1 = n1 * rest + t1
    qq1 = n1 * rest * rest + 2.0 * rest * t1 + tt1
    v1 = n1 * rest * (1.0 - rest) + (1.0 - 2.0 * rest) * t1 - tt1
    variance = max(v0, 0.0) + max(v1, 0.0)
    return n0 + n1, p0 + (n1 - q1), p0, q1, pp0 - (q1 - qq1), pp0 + qq1, variance


@compiled
def finish_binary(scratch: Rows, grid: GridTables, sums: Rows, lost: Rows, low: Rows, high: Rows, top: Rows) -> None:
    """Add the scratch of `sketch_binary` to the buckets of a sketch."""
    for k in range(low.size):
        fields = scratch[k * SCRATCH_FIELDS : (k + 1) * SCRATCH_FIELDS]
        if fields[0] + fields[3] == 0.0:
            continue
        n, wp, pos, neg, wcp, wcc, wwv = binary_sums(fields, k, grid)
        for field in (N, W, WW, WWW, WWWW):
            add_to_bucket(sums, lost, field, k, n)
        add_to_bucket(sums, lost, WP, k, wp)
        add_to_bucket(sums, lost, POS, k, pos)
        add_to_bucket(sums, lost, NEG, k, neg)
        add_to_bucket(sums, lost, WCP, k, wcp)
        add_to_bucket(sums, lost, WCC, k, wcc)
        add_to_bucket(sums, lost, WWCC, k, wcc)
        add_to_bucket(sums, lost, WWV, k, wwv)
        add_to_bucket(sums, lost, WWC, k, pos - neg)
        low[k] = min(low[k], fields[6])
        high[k] = max(high[k], fields[7])
        top[k] = max(top[k], 1.0)


@compiled
def sketch_weighted(
    p: Rows, y: Rows, w: Rows, grid: GridTables, scratch: Rows, low: Rows, high: Rows, top: Rows
) -> None:
    """Add rows with weights or fractional outcomes to the scratch of their buckets (n_buckets, N_SUMS)."""
    for i in range(p.size):
        x = np.float64(p[i])
        k = bucket_in(x, grid)
        sums = scratch[k]
        weight = w[i]
        c = x - y[i]
        wc = weight * c
        sums[N] += 1.0
        sums[W] += weight
        sums[WW] += weight * weight
        sums[WP] += weight * x
        sums[POS] += max(wc, 0.0)
        sums[NEG] += max(-wc, 0.0)
        sums[WCP] += wc * x
        sums[WCC] += wc * c
        sums[WWCC] += wc * wc
        sums[WWV] += weight * weight * x * (1.0 - x)
        sums[WWC] += weight * wc
        sums[WWW] += weight * weight * weight
        sums[WWWW] += weight * weight * weight * weight
        low[k] = min(low[k], x)
        high[k] = max(high[k], x)
        top[k] = max(top[k], weight)


# --- one sketch for each group, with the filled buckets of all groups in one growing table ----------------------------


@compiled
def fill_cells(
    p: Rows, y: Rows, w: Rows, grid: GridTables, starts: Rows, first: int, cell_of: Rows, fields: Rows, used: int
) -> int:
    """Add valid rows, sorted by group, to the buckets (cells) of every eighth group. Returns the number in use.

    Rows from starts[g] to starts[g + 1] belong to group g. `cell_of` holds the cell of each bucket of a group, or -1;
    there must be room for all new cells. One group at a time is several times as fast, since its cells fit into the
    processor's cache and those of a hundred groups do not. Without weights, the columns that depend on them stay 0.
    """
    weighted = w.size > 0
    for g in range(first, starts.size - 1, GROUP_CLASSES):
        cells = cell_of[g]
        for i in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            weight = w[i] if weighted else 1.0
            if weight == 0.0:
                continue
            x = np.float64(p[i])
            bucket = bucket_in(x, grid)
            cell = cells[bucket]
            if cell < 0:
                cell = used
                cells[bucket] = cell
                used += 1
                fields[cell, LOW], fields[cell, HIGH] = x, x
            k = np.uint64(cell)
            c = x - np.float64(y[i])
            wc = weight * c
            fields[k, _N] += 1.0
            fields[k, _WP] += weight * x
            fields[k, _POS] += max(wc, 0.0)
            fields[k, _NEG] += max(-wc, 0.0)
            fields[k, _WCP] += wc * x
            fields[k, _WCC] += wc * c
            fields[k, _WWV] += weight * weight * x * (1.0 - x)
            if weighted:
                fields[k, _W] += weight
                fields[k, _WW] += weight * weight
                fields[k, _WWCC] += wc * wc
                fields[k, _WWC] += weight * wc
                fields[k, _WWW] += weight * weight * weight
                fields[k, _WWWW] += weight * weight * weight * weight
                if weight > fields[k, _TOP]:
                    fields[k, _TOP] = weight
            if x < fields[k, _LOW]:
                fields[k, _LOW] = x
            if x > fields[k, _HIGH]:
                fields[k, _HIGH] = x
    return used


@compiled
def fill_binary_cells(
    p: Rows, y: Rows, grid: GridTables, starts: Rows, first: int, cell_of: Rows, fields: Rows, used: int
) -> int:
    """Add rows to buckets like `fill_cells`, for unweighted rows with labels 0 or 1, in cells of SCRATCH_FIELDS.

    An aligned cell is one cache line: a third of the time of `fill_cells` for a hundred groups.
    """
    half, f1, f2, f6, f7 = np.uint64(3), np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(7)
    for g in range(first, starts.size - 1, GROUP_CLASSES):
        cells = cell_of[g]
        for i in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            x = np.float64(p[i])
            bucket, j, z = place_of(x, grid)
            cell = cells[bucket]
            if cell < 0:
                cell = used
                cells[bucket] = cell
                used += 1
                fields[cell, 6], fields[cell, 7] = x, x
            k, label = np.uint64(cell), np.uint64(y[i])
            # From an integer: a label as a float would be compiled to a branch, which takes twice as long.
            t = abs(np.float64(np.int64(j + label)) - z)
            side = half * label
            fields[k, side] += 1.0
            fields[k, side + f1] += t
            fields[k, side + f2] += t * t
            if x < fields[k, f6]:
                fields[k, f6] = x
            if x > fields[k, f7]:
                fields[k, f7] = x
    return used


@compiled
def finish_binary_cells(scratch: Rows, bucket: Rows, grid: GridTables, out: Rows) -> None:
    """Compute the columns of filled buckets, one entry for each cell, from cells of SCRATCH_FIELDS."""
    for i in range(bucket.size):
        n, wp, pos, neg, wcp, wcc, wwv = binary_sums(scratch[i], bucket[i], grid)
        for field in (N, W, WW, WWW, WWWW):
            out[field, i] = n
        out[WP, i], out[POS, i], out[NEG, i] = wp, pos, neg
        out[WCP, i], out[WCC, i], out[WWCC, i], out[WWV, i], out[WWC, i] = wcp, wcc, wcc, wwv, pos - neg
        out[LOW, i], out[HIGH, i], out[TOP, i] = scratch[i, 6], scratch[i, 7], 1.0


@compiled
def rounding_error(n: float) -> float:
    """Largest rounding error of the sums of a bucket with n rows, relative to the sum of absolute values."""
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
        slack = rounding_error(n) * w  # largest rounding error of a sum of terms of up to w
        share = 1.0 + (n + ROUNDINGS_A_TERM) * EPS
        www, wwww, top = columns[WWW, k], columns[WWWW, k], columns[TOP, k]
        out[k] = (
            finite
            and (1.0 <= n <= _MOST_ROWS and n == np.floor(n))
            and (w > 0.0 and ww > 0.0 and www > 0.0 and wwww > 0.0)
            # Means of the weights, each with more emphasis on large ones.
            and (w / n <= ww / w * share and ww / w <= www / ww * share and www / ww <= wwww / www * share)
            and (wwww / www <= top * share and top <= np.sqrt(ww) * share)
            and (0.0 <= low <= high <= 1.0)
            and (w * low - slack <= wp <= w * high + slack)
            and (0.0 <= pos <= wp + slack and 0.0 <= neg <= w - wp + slack and sizes <= w + slack)
            and low * pos - high * neg - slack <= columns[WCP, k] <= high * pos - low * neg + slack
            and 0.0 <= columns[WCC, k] <= sizes + slack
            and 0.0 <= columns[WWCC, k] <= ww * share
            and 0.0 <= columns[WWV, k] <= ww
            and abs(columns[WWC, k]) <= ww * share
        )


@compiled
def merge_buckets(order: Rows, starts: Rows, columns: Rows, out: Rows) -> None:
    """Merge the buckets ``order[starts[k]:starts[k + 1]]`` of `columns` into entry k of `out`: sums and extremes."""
    for k in range(starts.size - 1):
        for field in range(N_SUMS):
            total, lost = 0.0, 0.0
            for i in range(starts[k], starts[k + 1]):
                total, lost = two_sum(total, lost, columns[field, order[i]])
            out[field, k] = total + lost
        low, high, top = np.inf, -np.inf, 0.0
        for i in range(starts[k], starts[k + 1]):
            low, high = min(low, columns[LOW, order[i]]), max(high, columns[HIGH, order[i]])
            top = max(top, columns[TOP, order[i]])
        out[LOW, k], out[HIGH, k], out[TOP, k] = low + 0.0, high + 0.0, top  # -0.0 becomes 0.0


@compiled
def group_totals(starts: Rows, columns: Rows, out: Rows) -> None:
    """For each group of buckets, the totals of the first sums: as many as `out` has rows."""
    for field in range(out.shape[0]):
        for g in range(starts.size - 1):
            total, lost = 0.0, 0.0
            for k in range(starts[g], starts[g + 1]):
                total, lost = two_sum(total, lost, columns[field, k])
            out[field, g] = total + lost


@compiled
def two_bin_loss(x: float, total: float, squared: bool) -> float:
    """Integrand of ATB and ATB_l1 for `integrate_buckets`: biases on both sides of a threshold, squared or absolute."""
    if squared:
        return x * x + (total - x) * (total - x)
    return abs(x) + abs(total - x)


@compiled
def inner_sum(columns: Rows, k: int) -> float:
    """Bound the sum of |w c| over the rows of a bucket but for its first and its last. It is 0 for two rows."""
    total: float = max(columns[N, k] - 2.0, 0.0) * columns[TOP, k] * max(columns[HIGH, k], 1.0 - columns[LOW, k])
    return total


@compiled
def integrate_buckets(columns: Rows, first: int, last: int, total: float, squared: bool) -> tuple[float, float, float]:
    """Estimate, lower and upper bound of the integral of `two_bin_loss` over q, from the sums of each bucket.

    Inside a bucket the partial sums x lie between -neg and pos, have a known average, and any two differ by at most
    `span`: the larger of neg and pos, or the sum over all rows but the first and the last. The loss is convex in x, so
    its average is at least the loss at the average, and at most the chord over [-neg, pos] and the loss at the average
    plus `bump` (Lemma A1 in docs/theory/foundations.md). The estimate spreads x evenly by the standard deviation of a
    bridge with these steps. The average is a difference of sums divided by the length of the bucket's stretch, so
    rounding affects it; the bounds allow for that.
    """
    value, lower, upper = 0.0, 0.0, 0.0
    before, before_lost = 0.0, 0.0
    position = 0.0
    for k in range(first, last):
        pos, neg, low, high = columns[POS, k], columns[NEG, k], columns[LOW, k], columns[HIGH, k]
        a = before + before_lost
        gap = (low - position) * two_bin_loss(a, total, squared)
        value += gap
        lower += gap
        upper += gap
        d = high - low
        step = pos - neg
        if d > 0.0 and pos + neg > 0.0:
            mean = min(max((step * high - columns[WCP, k]) / d, -neg), pos)
            doubt = rounding_error(columns[N, k]) * (pos + neg) / d
            lowest, highest = max(mean - doubt, -neg), min(mean + doubt, pos)
            best = min(max(0.5 * total - a, lowest), highest)  # minimum of the loss
            below = d * two_bin_loss(a + best, total, squared)
            bottom = two_bin_loss(a - neg, total, squared)
            slope = (two_bin_loss(a + pos, total, squared) - bottom) / (pos + neg)
            chord = bottom + max(slope * (lowest + neg), slope * (highest + neg))
            span = min(max(pos, neg), inner_sum(columns, k)) * (1.0 + rounding_error(columns[N, k]))
            bends = (a - neg <= 0.0 <= a + pos) + (a - neg <= total <= a + pos)
            bump = 0.5 * span * (span if squared else np.float64(bends))
            worst = max(two_bin_loss(a + lowest, total, squared), two_bin_loss(a + highest, total, squared))
            above = max(d * min(chord, worst + bump), below)
            sd = np.sqrt((step * step + columns[WWCC, k]) / 12.0)
            middle = two_bin_loss(a + mean - sd, total, squared) + two_bin_loss(a + mean + sd, total, squared)
            value += min(max(0.5 * d * middle, below), above)
            lower += below
            upper += above
        elif d > 0.0:
            flat = d * two_bin_loss(a, total, squared)
            value += flat
            lower += flat
            upper += flat
        before, before_lost = two_sum(before, before_lost, step)
        position = high
    tail = (1.0 - position) * two_bin_loss(before + before_lost, total, squared)
    return value + tail, lower + tail, upper + tail


@compiled
def widen(estimate: tuple[float, float, float], pad: float, share: float, unit: float) -> tuple[float, float, float]:
    """Widen bounds from buckets by `pad` and the relative rounding error `share`; divide by `unit`, a power of W."""
    value, low, high = estimate
    low = max(low - pad - _TINY, 0.0) * (1.0 - share)
    high = (high + pad + _TINY) * (1.0 + share)
    value = min(max(value, low), high) / unit
    return value, max(low / unit - _TINY, 0.0), high / unit + _TINY  # the quotient may underflow


@compiled
def group_bounds(starts: Rows, columns: Rows, totals: Rows, out: Rows) -> None:
    """For each group of buckets, ATB and ATB_l1 with certified bounds (N_BOUNDS x groups). No group may be empty."""
    for g in range(starts.size - 1):
        first, last = starts[g], starts[g + 1]
        weight, bias = totals[W, g], totals[POS, g] - totals[NEG, g]
        slack, rows = 0.0, 0.0
        for k in range(first, last):
            slack += rounding_error(columns[N, k]) * (columns[POS, k] + columns[NEG, k])
            rows = max(rows, columns[N, k])
        share = 3.0 * rounding_error(rows) + 4.0 * EPS * (last - first) + 1e-12  # the integral has two terms a bucket
        linear = integrate_buckets(columns, first, last, bias, False)
        square = integrate_buckets(columns, first, last, bias, True)
        pad = 4.0 * slack * linear[2] + 5.0 * slack * slack
        out[0, g], out[1, g], out[2, g] = widen(square, pad, share, weight * weight)
        # Three for the cumulative bias and its total, two for each of two bends that rounding may hide.
        out[3, g], out[4, g], out[5, g] = widen(linear, 7.0 * slack, share, weight)
        out[6, g] = slack
