"""Loops that add rows of groups to their slots, with the sign of their group. `core.group_flips` defines both."""

import numpy as np

from truthcal.kernels.grid import GridTables, bucket_in
from truthcal.kernels.jit import Rows, compiled

# Bits of a hash: the highest ones are the slot, the next one is the sign.
SLOT_BITS = 7
_SLOT, _SIGN, _ONE = np.uint64(64 - SLOT_BITS), np.uint64(63 - SLOT_BITS), np.uint64(1)


@compiled
def add_rows(p: Rows, y: Rows, w: Rows, hashes: Rows, grid: GridTables, shift: int, sums: Rows) -> None:
    """Add s w (p - y) and s w of each row to the slot of its group and the cell of its bucket. No `w`: all ones."""
    bits = np.uint64(shift)
    for i in range(p.size):
        x, h = np.float64(p[i]), hashes[i]
        slot, cell = h >> _SLOT, bucket_in(x, grid) >> bits
        signed = w[i] if w.size > 0 else 1.0
        if (h >> _SIGN) & _ONE:
            signed = -signed
        sums[slot, cell, 0] += signed * (x - y[i])
        sums[slot, cell, 1] += signed


@compiled
def add_entries(cell: Rows, errors: Rows, weights: Rows, hashes: Rows, sums: Rows) -> None:
    """Add sums of w (p - y) and of w, each over rows of one group in one cell, with the sign of the group."""
    for i in range(cell.size):
        h = hashes[i]
        slot = h >> _SLOT
        sign = -1.0 if (h >> _SIGN) & _ONE else 1.0
        sums[slot, cell[i], 0] += sign * errors[i]
        sums[slot, cell[i], 1] += sign * weights[i]
