"""Loops over rows: checks, packing for the sort, sums."""

import numpy as np

from truthcal.kernels.jit import BLOCK, Pairs, Rows, compiled, interpreted_first, two_product, two_sum

# Rows that differ only in the last bits are moved by insertion, so often on average, before `np.argsort` is faster.
MOVES_A_ROW = 8

# --- checking ---------------------------------------------------------------------------------------------------------


@interpreted_first
def count_outside_unit(x: Rows) -> int:
    """Count rows with a value outside [0, 1], NaN included."""
    bad = 0
    for i in range(x.size):
        bad += not ((x[i] >= 0) & (x[i] <= 1))
    return bad


@interpreted_first
def binary_labels(y: Rows, out: Rows) -> int:
    """Write the 0/1 labels of rows as bytes; returns the number of rows whose label is neither 0 nor 1."""
    bad = 0
    for i in range(y.size):
        bad += (y[i] != 0) & (y[i] != 1)
        out[i] = y[i] == 1
    return bad


@interpreted_first
def count_invalid(p: Rows, y: Rows, w: Rows, smallest: float, largest: float) -> int:
    """Count rows with an invalid prediction, outcome or weight. An empty `w` means no weights."""
    bad = 0
    for i in range(p.size):
        valid = (p[i] >= 0) & (p[i] <= 1) & (y[i] >= 0) & (y[i] <= 1)
        if w.size > 0:
            valid = valid & ((w[i] == 0.0) | ((w[i] >= smallest) & (w[i] <= largest)))
        bad += not valid
    return bad


# --- sorting ----------------------------------------------------------------------------------------------------------


@interpreted_first
def pack(bits: Rows, y: Rows, keys: Rows) -> None:
    """Write the sort key of each row, (bits of p << 1) | label: sorts like (p, label), exact, turns -0.0 into 0.0."""
    for i in range(bits.size):
        keys[i] = (bits[i] << 1) | y[i]


@compiled
def count_by_part(bits: Rows, low: int, shift: int, first: Rows, pivots: Rows, part: Rows) -> Rows:
    """Find the part of each row between pivots, and return the number of rows of each part.

    `bits` and `pivots` are the bit patterns of floats; the last pivot is the largest integer. A table narrows the
    search: `first` has the lowest part of each of its cells, 2^shift bit patterns each from `low` on. Few cells contain
    a pivot, so the loop over pivots seldom runs: 1.6 ns a row, a third of a binary search. Two counters per part, in
    turn, do not wait for each other if the same part occurs twice.
    """
    counts, top, no_sign = np.zeros((2, pivots.size), np.int64), first.size - 1, pivots[pivots.size - 1]
    for i in range(bits.size):
        b = bits[i] & no_sign  # -0.0 is 0.0
        k = np.uint64(first[np.uint64(min((max(b, low) - low) >> shift, top))])
        while b >= pivots[k]:
            k += np.uint64(1)
        part[i] = k
        counts[i & 1, k] += 1
    total: Rows = counts[0] + counts[1]
    return total


@compiled
def scatter_keys(bits: Rows, y: Rows, part: Rows, places: Rows, keys: Rows) -> None:
    """`pack` rows and write each key to the next place of its part.

    `places` is copied: threads that count in neighbouring arrays of the caller would share cache lines, which took
    twice the time.
    """
    at = places.copy()
    for i in range(bits.size):
        k = np.uint64(part[i])
        keys[np.uint64(at[k])] = (bits[i] << 1) | y[i]
        at[k] += 1


@compiled
def scatter_rows(p: Rows, y: Rows, w: Rows, part: Rows, places: Rows, out: Rows) -> None:
    """Write each row (p, y and w) to the next place of its part. An empty `w` means no weights."""
    weighted, at = w.size > 0, places.copy()
    for i in range(p.size):
        k = np.uint64(part[i])
        place = np.uint64(at[k])
        out[0, place] = p[i] + 0.0  # turns -0.0 into 0.0
        out[1, place] = y[i]
        if weighted:
            out[2, place] = w[i]
        at[k] += 1


@compiled
def index_keys(bits: Rows, low: int, shift: int, index_bits: int, keys: Rows) -> None:
    """Write sort keys: the bits of p from `low` on without the last `shift`, and the index of the row below them."""
    for i in range(bits.size):
        keys[i] = (((bits[i] - low) >> shift) << index_bits) | i


@compiled
def order_of_keys(keys: Rows, bits: Rows, mask: int, cut: bool, order: Rows) -> bool:
    """Write the order of rows from sorted `index_keys`.

    If bits were `cut` off, rows are moved to their places by insertion. Returns False if they need many moves.
    """
    moves = MOVES_A_ROW * keys.size
    for i in range(keys.size):
        row, j = keys[i] & mask, i
        if cut:
            while j > 0 and bits[order[j - 1]] > bits[row]:
                order[j] = order[j - 1]
                j -= 1
            moves -= i - j
            if moves < 0:
                return False
        order[j] = row
    return True


@interpreted_first
def unpack(keys: Rows, y: Rows) -> int:
    """Undo `pack` of sorted rows in place: keys become the bits of p again, labels go to y. Returns distinct values.

    Two loops, since the processor can take several rows at once in each.
    """
    distinct = min(keys.size, 1)
    for i in range(1, keys.size):
        distinct += (keys[i] ^ keys[i - 1]) > 1  # in more than the label
    for i in range(keys.size):
        key = keys[i]
        y[i] = key & 1
        keys[i] = key >> 1
    return distinct


@compiled
def slot_of(value: np.int64, shift: int, table: Rows) -> np.uint64:
    """The slot of a value in a hash table with open addressing, or an empty slot, which has a 0."""
    last = np.uint64(table.shape[0] - 1)
    slot = (np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift)
    while table[slot, 0] != value and table[slot, 0] != 0:
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def count_values(bits: Rows, y: Rows, shift: int, most: int, table: Rows) -> int:
    """Count rows by the bits of p and by label in a hash table: bits + 1, rows with outcome 0, with 1.

    Returns the number of distinct values. The table is not filled further if there are more than `most`.
    """
    distinct, no_sign = 0, np.iinfo(bits.dtype).max
    for i in range(bits.size):
        value = np.int64(bits[i] & no_sign) + np.int64(1)  # -0.0 is 0.0
        slot = slot_of(value, shift, table)
        if table[slot, 0] == 0:
            distinct += 1
            if distinct > most:
                break
            table[slot, 0] = value
        table[slot, np.uint64(1) + np.uint64(y[i])] += 1
    return distinct


@compiled
def add_counts(table: Rows, shift: int, most: int, total: Rows) -> int:
    """Add the counts of one hash table of `count_values` to another; returns the number of distinct values there."""
    distinct = 0
    for i in range(total.shape[0]):
        distinct += total[i, 0] != 0
    for i in range(table.shape[0]):
        if table[i, 0] != 0:
            slot = slot_of(table[i, 0], shift, total)
            if total[slot, 0] == 0:
                distinct += 1
                if distinct > most:
                    break
                total[slot, 0] = table[i, 0]
            total[slot, 1] += table[i, 1]
            total[slot, 2] += table[i, 2]
    return distinct


@interpreted_first
def sort_by_group(values: Rows, group: Rows, at: Rows, out: Rows) -> None:
    """Sort the values of rows by group: `at` holds the next position of each group, and is advanced."""
    for i in range(values.size):
        k = np.uint64(group[i])
        out[np.uint64(at[k])] = values[i]
        at[k] += 1


# --- sums over rows ---------------------------------------------------------------------------------------------------


@interpreted_first
def moments(p: Rows, y: Rows, w: Rows) -> tuple[float, float, float, float, float, float]:
    """Sums over rows of w^2, w c^2, w^2 c^2, w^2 v; and of w c, as a pair."""
    sum_ww, sum_wcc, sum_wwcc, sum_wwv = 0.0, 0.0, 0.0, 0.0
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    for first in range(0, p.size, BLOCK):
        block_ww, block_wcc, block_wwcc, block_wwv = 0.0, 0.0, 0.0, 0.0
        for i in range(first, min(first + BLOCK, p.size)):
            x, weight = np.float64(p[i]), w[i]
            c = x - y[i]
            wc = weight * c
            ph, pl = two_sum(ph, pl, weight * x)
            yh, yl = two_sum(yh, yl, weight * y[i])
            block_ww += weight * weight
            block_wcc += wc * c
            block_wwcc += wc * wc
            block_wwv += weight * weight * x * (1.0 - x)
        sum_ww += block_ww
        sum_wcc += block_wcc
        sum_wwcc += block_wwcc
        sum_wwv += block_wwv
    high, low = two_sum(ph, pl - yl, -yh)
    return sum_ww, sum_wcc, sum_wwcc, sum_wwv, high, low


@interpreted_first
def count_distinct(p: Rows) -> int:
    """Count the distinct predictions of sorted rows."""
    count = 1
    for i in range(1, p.size):
        count += p[i] != p[i - 1]
    return count


@interpreted_first
def group_ties(p: Rows, y: Rows, w: Rows, before: Pairs, out: Rows) -> None:
    """Group rows by prediction: its value, sums of w, w y and w c, and the sum of w c up to it, inclusive.

    w and w y are summed in the same way, so that they are equal if all outcomes are 1. `before` holds the sums of w p
    and of w y over all earlier rows.
    """
    ph, pl, yh, yl = before
    group = 0
    first = 0
    while first < p.size:
        x = np.float64(p[first])
        gh, oh, wh = w[first] * x, w[first] * y[first], w[first]
        gl, ol, wl = 0.0, 0.0, 0.0
        last = first + 1
        while last < p.size and p[last] == p[first]:
            gh, gl = two_sum(gh, gl, w[last] * x)
            oh, ol = two_sum(oh, ol, w[last] * y[last])
            wh, wl = two_sum(wh, wl, w[last])
            last += 1
        ph, pl = two_sum(ph, pl + gl, gh)
        yh, yl = two_sum(yh, yl + ol, oh)
        out[0, group] = x
        out[1, group] = wh + wl
        out[2, group] = oh + ol
        out[3, group] = (gh - oh) + (gl - ol)
        out[4, group] = (ph - yh) + (pl - yl)
        group += 1
        first = last


@compiled
def group_counts(value: Rows, zeros: Rows, ones: Rows, out: Rows) -> None:
    """`group_ties` of rows that were counted by prediction."""
    ph, pl, events = 0.0, 0.0, 0
    for i in range(value.size):
        rows = zeros[i] + ones[i]
        x = np.float64(value[i])
        gh, gl = two_product(x, np.float64(rows))
        ph, pl = two_sum(ph, pl + gl, gh)
        events += ones[i]
        out[0, i] = x
        out[1, i] = rows
        out[2, i] = ones[i]
        out[3, i] = (gh - ones[i]) + gl
        out[4, i] = (ph - events) + pl
