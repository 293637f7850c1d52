"""Loops that add rows to one sketch or to many."""

from typing import Any

import numpy as np

from truthcal.kernels.jit import Rows, compiled, two_sum

# Per-bucket scratch of `sketch_binary`, one cache line: (count, sum t, sum t^2) of zeros, the same of ones, min, max.
SCRATCH_FIELDS = 8

# Sums in each bucket of a sketch, in file order. c = p - y, v = p(1 - p).
(N, W, WW, WP, POS, NEG, WCP, WCC, WWCC, WWV) = range(10)
N_SUMS = 10
# Fields of a cell, a filled bucket of a group: the sums of a sketch, the smallest and the largest prediction.
LOW, HIGH = N_SUMS, N_SUMS + 1
N_FIELDS = N_SUMS + 2
# Unsigned, because numba checks signed indices for negative values.
_N, _W, _WW, _WP, _POS, _NEG, _WCP, _WCC, _WWCC, _WWV, _LOW, _HIGH = (
    np.uint64(i) for i in (N, W, WW, WP, POS, NEG, WCP, WCC, WWCC, WWV, LOW, HIGH)
)


@compiled
def bucket_of(x: float, n_buckets: int) -> Any:
    """Return the bucket of x, the only definition: [k/B, (k+1)/B), with 1 in the last. Exact, as B is a power of two.

    Unsigned, because numba checks signed indices for negative values, which takes 25% of the sketch's time.
    """
    return min(np.uint64(np.int64(x * np.float64(n_buckets))), np.uint64(n_buckets - 1))


@compiled
def bucket_indices(p: Rows, n_buckets: int, out: Rows) -> None:
    """Apply `bucket_of` to an array."""
    for i in range(p.size):
        out[i] = bucket_of(np.float64(p[i]), n_buckets)


@compiled
def add_to(sums: Rows, lost: Rows, field: int, bucket: int, x: float) -> None:
    """Add to one sum, with compensation."""
    sums[field, bucket], lost[field, bucket] = two_sum(sums[field, bucket], lost[field, bucket], x)


@compiled
def add_table(sums: Rows, lost: Rows, x: Rows) -> None:
    """Add a table of sums, with compensation."""
    for field in range(sums.shape[0]):
        for bucket in range(sums.shape[1]):
            if x[field, bucket] != 0.0:
                add_to(sums, lost, field, bucket, x[field, bucket])


@compiled
def sketch_binary(p: Rows, y: Rows, n_buckets: int, scratch: Rows) -> int:
    """Add unweighted rows with 0/1 labels to the scratch (n_buckets * SCRATCH_FIELDS, flat).

    t is the distance from p to the edge of the bucket on the side of the outcome: |p - y| is then a sum of positive
    parts, and the sums are as accurate for predictions of 1 - 1e-9 as for 1e-9.

    Other rows are skipped; returns their number. Checking here takes a tenth of the time of a separate pass, which
    would push the scratch out of the cache.
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
def binary_sums(own: Rows, k: int, n_buckets: int) -> tuple[float, float, float, float, float, float, float]:
    """Return N, WP, POS, NEG, WCP, WCC and WWV from the scratch of bucket k, which give the other sums as well."""
    n0, t0, tt0, n1, t1, tt1 = own[0], own[1], own[2], own[3], own[4], own[5]
    left = k / n_buckets  # zeros: p = left + t, both positive
    p0 = n0 * left + t0
    pp0 = n0 * left * left + 2.0 * left * t0 + tt0
    v0 = n0 * left * (1.0 - left) + (1.0 - 2.0 * left) * t0 - tt0
    rest = 1.0 - (k + 1) / n_buckets  # ones: 1 - p = rest + t, both positive
    q1 = n1 * rest + t1
    qq1 = n1 * rest * rest + 2.0 * rest * t1 + tt1
    v1 = n1 * rest * (1.0 - rest) + (1.0 - 2.0 * rest) * t1 - tt1
    variance = max(v0, 0.0) + max(v1, 0.0)
    return n0 + n1, p0 + (n1 - q1), p0, q1, pp0 - (q1 - qq1), pp0 + qq1, variance


@compiled
def finish_binary(scratch: Rows, sums: Rows, lost: Rows, low: Rows, high: Rows) -> None:
    """Add the scratch of `sketch_binary` to a sketch."""
    n_buckets = low.size
    for k in range(n_buckets):
        own = scratch[k * SCRATCH_FIELDS : (k + 1) * SCRATCH_FIELDS]
        n, wp, pos, neg, wcp, wcc, wwv = binary_sums(own, k, n_buckets)
        if n == 0.0:
            continue
        for field in (N, W, WW):
            add_to(sums, lost, field, k, n)
        add_to(sums, lost, WP, k, wp)
        add_to(sums, lost, POS, k, pos)
        add_to(sums, lost, NEG, k, neg)
        add_to(sums, lost, WCP, k, wcp)
        add_to(sums, lost, WCC, k, wcc)
        add_to(sums, lost, WWCC, k, wcc)
        add_to(sums, lost, WWV, k, wwv)
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


# --- one sketch for each group, with the filled buckets of all groups in one growing table ----------------------------


@compiled
def count_illegal(p: Rows, y: Rows, w: Rows, smallest: float, largest: float) -> int:
    """Count invalid rows. An empty `w` means no weights."""
    others = 0
    for i in range(p.size):
        legal = (p[i] >= 0) & (p[i] <= 1) & (y[i] >= 0) & (y[i] <= 1)
        if w.size > 0:
            legal = legal & ((w[i] == 0.0) | ((w[i] >= smallest) & (w[i] <= largest)))
        others += not legal
    return others


@compiled
def deal(values: Rows, group: Rows, at: Rows, out: Rows) -> None:
    """Sort values by group: `at` holds the next position of each group, and is advanced."""
    for i in range(values.size):
        k = np.uint64(group[i])
        out[np.uint64(at[k])] = values[i]
        at[k] += 1


@compiled
def fill_cells(p: Rows, y: Rows, w: Rows, starts: Rows, parity: int, cell_of: Rows, fields: Rows, used: int) -> int:
    """Add valid rows, sorted by group, to the cells of every second group. Returns the number of cells in use.

    Rows from starts[g] to starts[g + 1] belong to group g. `cell_of` holds the cell of each bucket of a group, or -1;
    there must be room for all new cells. One group at a time is several times as fast, since its cells fit into the
    processor's cache and those of a hundred groups do not. Without weights, W, WW and WWCC stay 0.
    """
    n_buckets = cell_of.shape[1]
    weighted = w.size > 0
    for g in range(parity, starts.size - 1, 2):
        cells = cell_of[g]
        for i in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            weight = w[i] if weighted else 1.0
            if weight == 0.0:
                continue
            x = np.float64(p[i])
            bucket = bucket_of(x, n_buckets)
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
            if x < fields[k, _LOW]:
                fields[k, _LOW] = x
            if x > fields[k, _HIGH]:
                fields[k, _HIGH] = x
    return used


@compiled
def fill_binary_cells(p: Rows, y: Rows, starts: Rows, parity: int, cell_of: Rows, fields: Rows, used: int) -> int:
    """Like `fill_cells`, for unweighted rows with labels 0 or 1, in cells of SCRATCH_FIELDS.

    An aligned cell is one cache line: a third of the time of `fill_cells` for a hundred groups.
    """
    n_buckets = cell_of.shape[1]
    width = 1.0 / n_buckets
    half, f1, f2, f6, f7 = np.uint64(3), np.uint64(1), np.uint64(2), np.uint64(6), np.uint64(7)
    for g in range(parity, starts.size - 1, 2):
        cells = cell_of[g]
        for i in range(np.uint64(starts[g]), np.uint64(starts[g + 1])):
            x = np.float64(p[i])
            bucket = bucket_of(x, n_buckets)
            cell = cells[bucket]
            if cell < 0:
                cell = used
                cells[bucket] = cell
                used += 1
                fields[cell, 6], fields[cell, 7] = x, x
            k, label = np.uint64(cell), np.uint64(y[i])
            t = abs(np.float64(np.int64(bucket + label)) * width - x)
            own = half * label
            fields[k, own] += 1.0
            fields[k, own + f1] += t
            fields[k, own + f2] += t * t
            if x < fields[k, f6]:
                fields[k, f6] = x
            if x > fields[k, f7]:
                fields[k, f7] = x
    return used


@compiled
def finish_binary_cells(scratch: Rows, bucket: Rows, n_buckets: int, out: Rows) -> None:
    """Compute the columns of a sketch, one entry for each cell, from cells of SCRATCH_FIELDS."""
    for i in range(bucket.size):
        n, wp, pos, neg, wcp, wcc, wwv = binary_sums(scratch[i], bucket[i], n_buckets)
        out[N, i], out[W, i], out[WW, i] = n, n, n
        out[WP, i], out[POS, i], out[NEG, i] = wp, pos, neg
        out[WCP, i], out[WCC, i], out[WWCC, i], out[WWV, i] = wcp, wcc, wcc, wwv
        out[LOW, i], out[HIGH, i] = scratch[i, 6], scratch[i, 7]
