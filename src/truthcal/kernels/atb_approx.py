"""Loops of ATB and ATB_l1 with certified bounds: rows are summed in buckets and in cells, never sorted.

Buckets divide [0, 1] evenly. Cells divide the stretch from the smallest to the largest prediction of one bucket evenly.
docs/theory/foundations.md has the proofs. `wc` is w (p - y), the weighted error of a row.
"""

from typing import Any

import numpy as np

from truthcal.kernels.buckets import EPS, bucket_of, two_bin_loss
from truthcal.kernels.jit import Rows, compiled, two_sum

# Fields of a cell, one cache line: the sums of the positive and of the negative parts of w c, each with its rounding
# error; the sums of w c (p - edge) and (w c)^2, where edge is the left edge of the bucket; the extremes of p.
POS, POS_LOST, NEG, NEG_LOST, MOMENT, SQUARES, LOW, HIGH = range(8)
FIELDS = 8
# Unsigned, because numba checks signed indices for negative values.
_LOST, _NEG, _MOMENT, _SQUARES, _LOW, _HIGH = (np.uint64(i) for i in (POS_LOST, NEG, MOMENT, SQUARES, LOW, HIGH))

# `refine_gathered` orders the rows of a cell if there are at most this many, and tries this many rows per cell first.
_FEW_ROWS, _ROWS_A_CELL = 16, 2


@compiled
def clear_cells(cells: Rows) -> None:
    """Remove all rows from cells."""
    for k in range(cells.shape[0]):
        for field in range(LOW):
            cells[k, field] = 0.0
        cells[k, LOW], cells[k, HIGH] = np.inf, -np.inf


@compiled
def add_row(cells: Rows, k: int, edge: float, x: float, wc: float) -> None:
    """Add a row to cell k. The first two sums are compensated, so that their error does not grow with the rows."""
    side = _NEG if wc < 0.0 else np.uint64(0)
    cells[k, side], cells[k, side + _LOST] = two_sum(cells[k, side], cells[k, side + _LOST], abs(wc))
    cells[k, _MOMENT] += wc * (x - edge)
    cells[k, _SQUARES] += wc * wc
    if x < cells[k, _LOW]:
        cells[k, _LOW] = x
    if x > cells[k, _HIGH]:
        cells[k, _HIGH] = x


@compiled
def cell_of(x: float, left: float, scale: float, count: int) -> Any:
    """Return the cell of x in a bucket. Each step is monotone, so cells are in order even after rounding."""
    return min(np.uint64(np.int64((x - left) * scale)), np.uint64(count - 1))


@compiled
def fill_buckets(p: Rows, y: Rows, w: Rows, cells: Rows) -> None:
    """Add rows to their buckets, one cell each. An empty `w` means no weights."""
    n_buckets = cells.shape[0]
    width = 1.0 / n_buckets
    for i in range(p.size):
        x = np.float64(p[i])
        k = bucket_of(x, n_buckets)
        c = x - y[i]
        add_row(cells, k, np.int64(k) * width, x, c * w[i] if w.size > 0 else c)


@compiled
def fill_cells(p: Rows, y: Rows, w: Rows, starts: Rows, left: Rows, scale: Rows, cells: Rows) -> None:
    """Add rows to cells: bucket k has the cells from ``starts[k]`` to ``starts[k + 1]``."""
    n_buckets = left.size
    width = 1.0 / n_buckets
    for i in range(p.size):
        x = np.float64(p[i])
        k = bucket_of(x, n_buckets)
        cell = np.uint64(starts[k]) + cell_of(x, left[k], scale[k], starts[k + np.uint64(1)] - starts[k])
        c = x - y[i]
        add_row(cells, cell, np.int64(k) * width, x, c * w[i] if w.size > 0 else c)


@compiled
def merge_cells(cells: Rows, other: Rows) -> None:
    """Add the sums and extremes of other cells, one by one."""
    for k in range(cells.shape[0]):
        if other[k, LOW] <= other[k, HIGH]:
            for field in (POS, NEG):
                high, low = two_sum(cells[k, field], cells[k, field + 1], other[k, field])
                cells[k, field], cells[k, field + 1] = high, low + other[k, field + 1]
            cells[k, MOMENT] += other[k, MOMENT]
            cells[k, SQUARES] += other[k, SQUARES]
            cells[k, LOW] = min(cells[k, LOW], other[k, LOW])
            cells[k, HIGH] = max(cells[k, HIGH], other[k, HIGH])


@compiled
def add_cell(high: float, low: float, cell: Rows) -> tuple[float, float]:
    """Add the sum of w c of a cell to (high, low), with compensation."""
    high, low = two_sum(high, low + (cell[POS_LOST] - cell[NEG_LOST]), cell[POS])
    return two_sum(high, low, -cell[NEG])


@compiled
def cell_totals(cells: Rows) -> tuple[float, float]:
    """Sums over all cells of w c and of its absolute value."""
    high, low, size = 0.0, 0.0, 0.0
    for k in range(cells.shape[0]):
        high, low = add_cell(high, low, cells[k])
        size += cells[k, POS] + cells[k, NEG]
    return high + low, size


@compiled
def bends_inside(low: float, high: float, total: float) -> int:
    """Count the bends of the absolute `two_bin_loss`, at 0 and at the total, from `low` to `high`."""
    return (low <= 0.0 <= high) + (low <= total <= high)


@compiled
def bound_cell(
    cell: Rows, edge: float, before: float, total: float, rows: int, squared: bool
) -> tuple[float, float, float]:
    """Estimate, lower and upper bound of the integral of `two_bin_loss` from the smallest to the largest prediction.

    The partial sums x of the cell lie between -neg and pos, have a known average, and any two differ by at most the
    larger of neg and pos. The loss is convex in x. So its average is at least the loss at the average, and at most the
    chord over [-neg, pos] and the loss at the average plus `bump`. The estimate spreads x evenly by the standard
    deviation of a bridge with these steps. Rounding affects the average; the bounds allow for it.
    """
    pos, neg = cell[POS] + cell[POS_LOST], cell[NEG] + cell[NEG_LOST]
    high = cell[HIGH]
    d = high - cell[LOW]
    size = pos + neg
    if not (d > 0.0 and size > 0.0):
        flat = d * two_bin_loss(before, total, squared)
        return flat, flat, flat
    step, span = pos - neg, max(pos, neg)
    mean = min(max((step * (high - edge) - cell[MOMENT]) / d, -neg), pos)
    doubt = EPS * (rows + 32) * size * (high - edge) / d
    lowest, highest = max(mean - doubt, -neg), min(mean + doubt, pos)
    best = min(max(0.5 * total - before, lowest), highest)  # minimum of the loss
    below = d * two_bin_loss(before + best, total, squared)
    left, right = two_bin_loss(before - neg, total, squared), two_bin_loss(before + pos, total, squared)
    chord = max((pos - lowest) * left + (lowest + neg) * right, (pos - highest) * left + (highest + neg) * right)
    bump = 0.5 * span * (span if squared else bends_inside(before - neg, before + pos, total))
    worst = max(two_bin_loss(before + lowest, total, squared), two_bin_loss(before + highest, total, squared))
    above = max(d * min(chord / size, worst + bump), below)
    sd = np.sqrt((step * step + cell[SQUARES]) / 12.0)
    middle = two_bin_loss(before + mean - sd, total, squared) + two_bin_loss(before + mean + sd, total, squared)
    return min(max(0.5 * d * middle, below), above), below, above


@compiled
def bound_buckets(
    cells: Rows, starts: Rows, rows: int, total: float, squared: bool, before: Rows, bounds: Rows
) -> float:
    """Integral of the loss between buckets. `bounds` gets those over each, `before` the sum of w c on its left.

    Bucket k has the cells from ``starts[k]`` to ``starts[k + 1]``; `rows` is the number of rows in all buckets.
    """
    high, low, position, between = 0.0, 0.0, 0.0, 0.0
    for k in range(before.size):
        value, lower, upper = 0.0, 0.0, 0.0
        before[k] = high + low
        entered = False
        for cell in range(starts[k], starts[k + 1]):
            if not cells[cell, LOW] <= cells[cell, HIGH]:
                continue
            a = high + low
            gap = (cells[cell, LOW] - position) * two_bin_loss(a, total, squared)
            if entered:
                value, lower, upper = value + gap, lower + gap, upper + gap
            else:
                between += gap
                entered = True
            inside = bound_cell(cells[cell], k / before.size, a, total, rows, squared)
            value, lower, upper = value + inside[0], lower + inside[1], upper + inside[2]
            high, low = add_cell(high, low, cells[cell])
            position = cells[cell, HIGH]
        bounds[0, k], bounds[1, k], bounds[2, k] = value, lower, upper
    return between + (1.0 - position) * two_bin_loss(high + low, total, squared)


# --- more cells than fit into the processor's cache: one bucket at a time ---------------------------------------------


@compiled
def count_rows(p: Rows, counts: Rows) -> None:
    """Count the rows of each bucket."""
    for i in range(p.size):
        counts[bucket_of(np.float64(p[i]), counts.size)] += 1


@compiled
def gather_rows(p: Rows, y: Rows, w: Rows, at: Rows, steps: Rows, x: Rows, wc: Rows) -> None:
    """Copy rows to `x` (predictions) and `wc`, bucket by bucket.

    `at` holds the next position of each bucket and is advanced by its step. Rows of buckets with step 0 overwrite each
    other, which is faster than a branch. If `wc` is empty, outcomes are 0 or 1, and the sign of x is the outcome.
    """
    for i in range(p.size):
        here = np.float64(p[i])
        k = bucket_of(here, at.size)
        slot = np.uint64(at[k])
        at[k] += steps[k]
        c = here - y[i]
        if wc.size == 0:
            x[slot] = np.copysign(here, 0.5 - y[i])
        else:
            x[slot] = here
            wc[slot] = c * w[i] if w.size > 0 else c


@compiled
def distribute(x: Rows, wc: Rows, left: float, scale: float, ends: Rows, x_out: Rows, wc_out: Rows) -> None:
    """Copy the rows of one bucket, cell by cell; afterwards the rows of cell k are ``ends[k - 1]`` to ``ends[k]``."""
    count = ends.size - 1
    ends[:] = 0
    for i in range(x.size):
        ends[cell_of(abs(x[i]), left, scale, count) + np.uint64(1)] += 1
    for k in range(count):
        ends[k + 1] += ends[k]
    for i in range(x.size):
        k = cell_of(abs(x[i]), left, scale, count)
        slot = np.uint64(ends[k])
        ends[k] += 1
        x_out[slot] = x[i]
        if wc.size > 0:
            wc_out[slot] = wc[i]


@compiled
def error_of(x: Rows, wc: Rows, i: int) -> Any:
    """Return w c of a row from `gather_rows`."""
    return wc[i] if wc.size > 0 else abs(x[i]) - np.float64(np.signbit(x[i]))


@compiled
def order_few(x: Rows, wc: Rows, first: int, last: int) -> None:
    """Order the rows of a cell by prediction, by insertion."""
    for i in range(first + 1, last):
        here = x[i]
        error = wc[i] if wc.size > 0 else 0.0
        j = i - 1
        while j >= first and abs(x[j]) > abs(here):
            x[j + 1] = x[j]
            if wc.size > 0:
                wc[j + 1] = wc[j]
            j -= 1
        x[j + 1] = here
        if wc.size > 0:
            wc[j + 1] = error


@compiled
def integrate_gathered(
    x: Rows, wc: Rows, ends: Rows, edge: float, before: float, total: float, squared: bool, cell: Rows
) -> tuple[float, float, float]:
    """Estimate and bounds of the integral of the loss over one bucket, whose rows `distribute` put cell by cell."""
    value, lower, upper = 0.0, 0.0, 0.0
    high, low, position = before, 0.0, -1.0
    first = 0
    for k in range(ends.size - 1):
        last = ends[k]
        exact = 0.0
        if last - first <= _FEW_ROWS:
            order_few(x, wc, first, last)
            for i in range(first, last):
                here = abs(x[i])
                if position >= 0.0:
                    exact += (here - position) * two_bin_loss(high + low, total, squared)
                high, low = two_sum(high, low, error_of(x, wc, i))
                position = here
            value, lower, upper = value + exact, lower + exact, upper + exact
        else:
            clear_cells(cell)
            for i in range(first, last):
                add_row(cell, 0, edge, abs(x[i]), error_of(x, wc, i))
            a = high + low
            if position >= 0.0:
                exact = (cell[0, LOW] - position) * two_bin_loss(a, total, squared)
            inside = bound_cell(cell[0], edge, a, total, last - first, squared)
            value, lower, upper = value + exact + inside[0], lower + exact + inside[1], upper + exact + inside[2]
            high, low = add_cell(high, low, cell[0])
            position = cell[0, HIGH]
        first = last
    return value, lower, upper


@compiled
def refine_gathered(
    x: Rows, wc: Rows, starts: Rows, plan: Rows, parts: Rows, total: float, squared: bool, bounds: Rows
) -> None:
    """Bound the integral of the loss over buckets with many cells; bucket j has rows ``starts[j]`` to ``starts[j+1]``.

    The columns of `plan` are the left edge, the smallest and the largest prediction, the sum of w c on the left of the
    bucket, and the allowed distance of the bounds, which ``parts[j]`` cells guarantee. Fewer are tried first: with few
    rows in a cell, rows are put in order and the integral is exact.
    """
    most = np.max(starts[1:] - starts[:-1])
    x_out, wc_out = np.empty(most), np.empty(most if wc.size > 0 else 0)
    cell = np.empty((1, FIELDS))
    for j in range(parts.size):
        first, last = starts[j], starts[j + 1]
        edge, left, right, before, allowed = plan[j, 0], plan[j, 1], plan[j, 2], plan[j, 3], plan[j, 4]
        own_wc = wc[first:last] if wc.size > 0 else wc
        count = min(parts[j], (last - first) // _ROWS_A_CELL + 1)
        while True:
            ends = np.empty(count + 1, np.int64)
            scale = count / (right - left) if count > 1 else 0.0
            distribute(x[first:last], own_wc, left, scale, ends, x_out, wc_out)
            value, lower, upper = integrate_gathered(x_out, wc_out, ends, edge, before, total, squared, cell)
            if count == parts[j] or upper - lower <= allowed:
                break
            count = parts[j]
        bounds[0, j], bounds[1, j], bounds[2, j] = value, lower, upper
