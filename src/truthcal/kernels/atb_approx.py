"""Loops of ATB and ATB_l1 with certified bounds: rows are summed in buckets and in cells, never sorted.

Buckets divide [0, 1] evenly. Cells divide the stretch from the smallest to the largest prediction of one bucket evenly.
docs/theory/foundations.md has the proofs. `wc` is w (p - y), the weighted error of a row.
"""

from typing import Any

import numpy as np

from truthcal.kernels.buckets import EPS, bucket_of, two_bin_loss
from truthcal.kernels.jit import Rows, compiled, two_sum

# Fields of a cell, one cache line: the sums of the positive and of the negative parts of w c, each with its rounding
# error; the sum of w c (p - edge), where edge is the left edge of the bucket; the number of rows; the extremes of p.
POS, POS_LOST, NEG, NEG_LOST, MOMENT, ROWS, LOW, HIGH = range(8)
FIELDS = 8
# Unsigned, because numba checks signed indices for negative values.
_LOST, _NEG, _MOMENT, _ROWS, _LOW, _HIGH = (np.uint64(i) for i in (POS_LOST, NEG, MOMENT, ROWS, LOW, HIGH))

# `refine_gathered` orders the rows of a bucket if cells would have fewer rows than this on average, and if dividing the
# bucket into as many cells as rows leaves at most so many rows in each.
_ROWS_A_CELL, _FEW_ROWS = 2, 16


@compiled
def clear_cells(cells: Rows) -> None:
    """Remove all rows from cells."""
    for k in range(cells.shape[0]):
        for field in range(LOW):
            cells[k, field] = 0.0
        cells[k, LOW], cells[k, HIGH] = np.inf, -np.inf


@compiled
def add_row(cells: Rows, k: int, edge: float, x: float, wc: float) -> None:
    """Add a row to cell k. The first two sums are compensated, so that their error does not grow with the rows.

    There are no branches: those for the extremes took more than half of the time if cells have few rows.
    """
    side = _NEG if wc < 0.0 else np.uint64(0)
    cells[k, side], cells[k, side + _LOST] = two_sum(cells[k, side], cells[k, side + _LOST], abs(wc))
    cells[k, _MOMENT] += wc * (x - edge)
    cells[k, _ROWS] += 1.0
    cells[k, _LOW] = min(cells[k, _LOW], x)
    cells[k, _HIGH] = max(cells[k, _HIGH], x)


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
            cells[k, ROWS] += other[k, ROWS]
            cells[k, LOW] = min(cells[k, LOW], other[k, LOW])
            cells[k, HIGH] = max(cells[k, HIGH], other[k, HIGH])


@compiled
def add_cell(high: float, low: float, cell: Rows) -> tuple[float, float]:
    """Add the sum of w c of a cell to (high, low), with compensation."""
    high, low = two_sum(high, low + (cell[POS_LOST] - cell[NEG_LOST]), cell[POS])
    return two_sum(high, low, -cell[NEG])


@compiled
def sum_before(cells: Rows, before: Rows) -> tuple[float, float]:
    """Fill `before` with the sum of w c on the left of each cell; return the sums of w c and of its absolute value."""
    high, low, size = 0.0, 0.0, 0.0
    for k in range(cells.shape[0]):
        before[k] = high + low
        high, low = add_cell(high, low, cells[k])
        size += cells[k, POS] + cells[k, NEG]
    return high + low, size


@compiled
def bends_inside(low: float, high: float, total: float) -> int:
    """Count the bends of the absolute `two_bin_loss`, at 0 and at the total, from `low` to `high`."""
    return (low <= 0.0 <= high) + (low <= total <= high)


@compiled
def bound_cell(
    cell: Rows, edge: float, before: float, total: float, row_weight: float, squared: bool
) -> tuple[float, float, float]:
    """Estimate, lower and upper bound of the integral of `two_bin_loss` from the smallest to the largest prediction.

    The partial sums x of the cell lie between -neg and pos, have a known average, and any two differ by at most the
    larger of neg and pos. The loss is convex in x. So its average is at least the loss at the average, and at most the
    chord over [-neg, pos] and the loss at the average plus `bump`. The estimate spreads x evenly by the standard
    deviation of a bridge whose steps have outcomes 0 or 1 and this weight. Rounding affects the average; the bounds
    allow for it.
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
    doubt = EPS * (cell[ROWS] + 32.0) * size * (high - edge) / d
    lowest, highest = max(mean - doubt, -neg), min(mean + doubt, pos)
    best = min(max(0.5 * total - before, lowest), highest)  # minimum of the loss
    below = d * two_bin_loss(before + best, total, squared)
    left, right = two_bin_loss(before - neg, total, squared), two_bin_loss(before + pos, total, squared)
    chord = max((pos - lowest) * left + (lowest + neg) * right, (pos - highest) * left + (highest + neg) * right)
    bump = 0.5 * span * (span if squared else bends_inside(before - neg, before + pos, total))
    worst = max(two_bin_loss(before + lowest, total, squared), two_bin_loss(before + highest, total, squared))
    above = max(d * min(chord / size, worst + bump), below)
    middle = 0.5 * (cell[LOW] + high)
    squares = row_weight * (pos * middle + neg * (1.0 - middle))
    sd = np.sqrt((step * step + squares) / 12.0)
    spread = two_bin_loss(before + mean - sd, total, squared) + two_bin_loss(before + mean + sd, total, squared)
    return min(max(0.5 * d * spread, below), above), below, above


@compiled
def bound_cells(
    cells: Rows, edge: float, before: float, total: float, row_weight: float, squared: bool
) -> tuple[float, float, float]:
    """Estimate and bounds of the integral of the loss from the smallest to the largest prediction of a bucket."""
    value, lower, upper = 0.0, 0.0, 0.0
    high, low, position = before, 0.0, np.inf
    for k in range(cells.shape[0]):
        if not cells[k, LOW] <= cells[k, HIGH]:
            continue
        a = high + low
        gap = max(cells[k, LOW] - position, 0.0) * two_bin_loss(a, total, squared)
        inside = bound_cell(cells[k], edge, a, total, row_weight, squared)
        value, lower, upper = value + gap + inside[0], lower + gap + inside[1], upper + gap + inside[2]
        high, low = add_cell(high, low, cells[k])
        position = cells[k, HIGH]
    return value, lower, upper


@compiled
def bound_buckets(
    cells: Rows, starts: Rows, before: Rows, total: float, row_weight: float, squared: bool, bounds: Rows
) -> None:
    """Bound the integral of the loss over each bucket; bucket k has the cells ``starts[k]`` to ``starts[k + 1]``.

    `before` holds the sum of w c on the left of each bucket; `row_weight` is a typical weight of a row.
    """
    for k in range(before.size):
        own = cells[starts[k] : starts[k + 1]]
        bounds[0, k], bounds[1, k], bounds[2, k] = bound_cells(
            own, k / before.size, before[k], total, row_weight, squared
        )


@compiled
def integrate_between(cells: Rows, before: Rows, total: float, squared: bool) -> float:
    """Integral of the loss over [0, 1] except inside buckets, which have one cell each."""
    integral, position = 0.0, 0.0
    for k in range(before.size):
        if cells[k, LOW] <= cells[k, HIGH]:
            integral += (cells[k, LOW] - position) * two_bin_loss(before[k], total, squared)
            position = cells[k, HIGH]
    return integral + (1.0 - position) * two_bin_loss(total, total, squared)


# --- ATB_l1: more cells than fit into the processor's cache, one bucket at a time -------------------------------------


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
def error_of(x: Rows, wc: Rows, i: int) -> Any:
    """Return w c of a row from `gather_rows`."""
    return wc[i] if wc.size > 0 else abs(x[i]) - np.float64(np.signbit(x[i]))


@compiled
def fill_bucket(x: Rows, wc: Rows, edge: float, left: float, scale: float, cells: Rows) -> None:
    """Add the rows of one bucket to its cells."""
    clear_cells(cells)
    for i in range(x.size):
        here = abs(x[i])
        add_row(cells, cell_of(here, left, scale, cells.shape[0]), edge, here, error_of(x, wc, i))


@compiled
def distribute(x: Rows, wc: Rows, left: float, scale: float, ends: Rows, x_out: Rows, wc_out: Rows) -> bool:
    """Copy the rows of one bucket, cell by cell, unless a cell has too many to be ordered; return whether it did."""
    count = ends.size
    ends[:] = 0
    for i in range(x.size):
        ends[cell_of(abs(x[i]), left, scale, count)] += 1
    start = 0
    for k in range(count):
        if ends[k] > _FEW_ROWS:
            return False
        start, ends[k] = start + ends[k], start
    for i in range(x.size):
        k = cell_of(abs(x[i]), left, scale, count)
        slot = np.uint64(ends[k])
        ends[k] += 1
        x_out[slot] = x[i]
        if wc.size > 0:
            wc_out[slot] = wc[i]
    return True


@compiled
def order_rows(x: Rows, wc: Rows) -> None:
    """Order rows by prediction, by insertion: fast if each is already close to its place."""
    for i in range(1, x.size):
        here = x[i]
        error = wc[i] if wc.size > 0 else 0.0
        j = i - 1
        while j >= 0 and abs(x[j]) > abs(here):
            x[j + 1] = x[j]
            if wc.size > 0:
                wc[j + 1] = wc[j]
            j -= 1
        x[j + 1] = here
        if wc.size > 0:
            wc[j + 1] = error


@compiled
def integrate_ordered(x: Rows, wc: Rows, before: float, total: float) -> float:
    """Integral of the absolute loss from the first to the last of these rows, ordered by prediction."""
    integral, high, low, position = 0.0, before, 0.0, abs(x[0])
    for i in range(x.size):
        here = abs(x[i])
        integral += (here - position) * two_bin_loss(high + low, total, False)
        high, low = two_sum(high, low, error_of(x, wc, i))
        position = here
    return integral


@compiled
def refine_gathered(
    x: Rows, wc: Rows, starts: Rows, plan: Rows, parts: Rows, total: float, row_weight: float, bounds: Rows
) -> None:
    """Bound the integral of the absolute loss over buckets; bucket j has rows ``starts[j]`` to ``starts[j + 1]``.

    The columns of `plan` are the left edge, the smallest and the largest prediction, and the sum of w c on the left of
    the bucket. ``parts[j]`` cells are enough. If they are many, putting rows in order is faster, and exact.
    """
    most = np.max(starts[1:] - starts[:-1])
    x_out, wc_out, ends = np.empty(most), np.empty(most if wc.size > 0 else 0), np.empty(most, np.int64)
    cells = np.empty((np.max(parts), FIELDS))
    for j in range(parts.size):
        first, last = starts[j], starts[j + 1]
        rows = last - first
        edge, left, right, before = plan[j, 0], plan[j, 1], plan[j, 2], plan[j, 3]
        own_x, own_wc = x[first:last], wc[first:last] if wc.size > 0 else wc
        if parts[j] * _ROWS_A_CELL > rows and distribute(
            own_x, own_wc, left, rows / (right - left), ends[:rows], x_out, wc_out
        ):
            own_x, own_wc = x_out[:rows], wc_out[:rows] if wc.size > 0 else wc
            order_rows(own_x, own_wc)
            bounds[:, j] = integrate_ordered(own_x, own_wc, before, total)
        else:
            own_cells = cells[: parts[j]]
            fill_bucket(own_x, own_wc, edge, left, parts[j] / (right - left), own_cells)
            bounds[0, j], bounds[1, j], bounds[2, j] = bound_cells(own_cells, edge, before, total, row_weight, False)
