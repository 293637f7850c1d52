"""Loops that add rows to the sums of their groups, or to slots with the sign of their group.

`core.group_flips` defines both. The sums of groups are in a hash table of a power of two places: `keys` has the key of
each place, `sums` its two sums, and `used` is the number of keys.
"""

from typing import Any

import numpy as np

from truthcal.kernels.grid import GridTables, bucket_in
from truthcal.kernels.jit import Rows, compiled

# Bits of a hash: the highest ones are the slot, the next one is the sign. In a key, the lowest bits are the cell.
SLOT_BITS, CELL_BITS = 7, 7
_SLOT, _SIGN, _ONE = np.uint64(64 - SLOT_BITS), np.uint64(63 - SLOT_BITS), np.uint64(1)
_CELL = np.uint64((1 << CELL_BITS) - 1)
# No group has this key: the chance is that of guessing 57 bits.
EMPTY = np.uint64(2**64 - 1)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@compiled
def place_of_key(key: int, keys: Rows) -> Any:
    """Return the place of a key in the hash table, or the empty place where it belongs."""
    last = np.uint64(keys.size - 1)
    place = (key * _FACTOR >> np.uint64(32)) & last
    while keys[place] != key and keys[place] != EMPTY:
        place = (place + _ONE) & last
    return place


@compiled
def add_rows_to_groups(
    p: Rows, y: Rows, w: Rows, hashes: Rows, grid: GridTables, shift: int, keys: Rows, sums: Rows, used: int, most: int
) -> tuple[int, int]:
    """Add w (p - y) and w of each row to the sums of its group in the cell of its bucket. No `w`: all ones.

    Stop at the first row for which there is no room, if there are `most` keys. Returns its number and `used`.
    """
    bits = np.uint64(shift)
    for i in range(p.size):
        weight = w[i] if w.size > 0 else 1.0
        if weight == 0.0:
            continue
        x = np.float64(p[i])
        key = (hashes[i] & ~_CELL) | (bucket_in(x, grid) >> bits)
        place = place_of_key(key, keys)
        if keys[place] == EMPTY:
            if used >= most:
                return i, used
            keys[place] = key
            used += 1
        sums[place, 0] += weight * (x - y[i])
        sums[place, 1] += weight
    return p.size, used


@compiled
def add_sums_to_groups(new: Rows, added: Rows, keys: Rows, sums: Rows, used: int, most: int) -> tuple[int, int]:
    """Add the sums of keys, a row of `added` for each of `new`; stop and return as `add_rows_to_groups` does."""
    for i in range(new.size):
        place = place_of_key(new[i], keys)
        if keys[place] == EMPTY:
            if used >= most:
                return i, used
            keys[place] = new[i]
            used += 1
        sums[place, 0] += added[i, 0]
        sums[place, 1] += added[i, 1]
    return new.size, used


@compiled
def add_rows_to_slots(p: Rows, y: Rows, w: Rows, hashes: Rows, grid: GridTables, shift: int, slots: Rows) -> None:
    """Add s w (p - y) and s w of each row to the slot of its group and the cell of its bucket."""
    bits = np.uint64(shift)
    for i in range(p.size):
        x, h = np.float64(p[i]), hashes[i]
        slot, cell = h >> _SLOT, bucket_in(x, grid) >> bits
        signed = w[i] if w.size > 0 else 1.0
        if (h >> _SIGN) & _ONE:
            signed = -signed
        slots[slot, cell, 0] += signed * (x - y[i])
        slots[slot, cell, 1] += signed


@compiled
def add_sums_to_slots(new: Rows, added: Rows, slots: Rows) -> None:
    """Add the sums of keys, a row of `added` for each of `new`, with the signs of their groups."""
    for i in range(new.size):
        key = new[i]
        slot, cell = key >> _SLOT, key & _CELL
        sign = -1.0 if (key >> _SIGN) & _ONE else 1.0
        slots[slot, cell, 0] += sign * added[i, 0]
        slots[slot, cell, 1] += sign * added[i, 1]


@compiled
def groups_below(hashes: Rows, below: Any, recent: Rows, out: Rows) -> int:
    """Write the hashes of groups that are below a limit to `out`, without their lowest bits; return their number.

    Most repetitions are left out: `recent`, which is empty at first and has 1024 places, remembers some.
    """
    n = 0
    for i in range(hashes.size):
        h = hashes[i] & ~_CELL
        place = (h * _FACTOR) >> np.uint64(54)
        if h < below and recent[place] != h:
            recent[place] = h
            out[n] = h
            n += 1
    return n
