"""Group flips: errors of groups of rows, in sums that sketches can add up, also if a group is split over sketches.

The errors of each group, by cell of neighbouring predictions, are added up as they are while there are few. All
inference for groups (`core.group_sums`) follows from them. From more than 8192 sums on, memory would grow with the
number of groups. Then each group has a slot, one of 128, and a sign s, both from the hash of the group, and only the
sums of s w c and of s w (w weight, c = p - y) of each slot and cell are kept. They are linear: parts of a group add up,
whichever sketch has seen them. With F_b the sums of slot b, the mean of sum over b of F_b F_b' over random signs is the
sum of z_g z_g' over groups, since errors of different groups in one slot have independent signs. Its variance is that
of the mean over 128 tables in which all groups have independent signs, but each row is added to one slot, not to 128
tables ("count sketch", or the "fast AMS sketch" of Thorup and Zhang).

Whether sums are kept by group or by slot depends on all rows together, not on their order or on how they were divided.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from truthcal.core.cell_codec import compress, decompress
from truthcal.core.grid import Grid
from truthcal.core.group_hash import Hashes
from truthcal.core.group_sums import GroupSums, refuse_few_groups
from truthcal.core.points import Points
from truthcal.kernels import group_flips as kernel

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Key = TypeVar("_Key", bound=Hashable)

SLOTS = 1 << kernel.SLOT_BITS
# Cells are the buckets of the grid with this many buckets: unions of buckets of all finer grids.
CELLS = 1 << kernel.CELL_BITS
# Sums by group and cell, at most, and places for them: at first, and at most. Half of the places are left empty.
MOST_SUMS, _FEW_PLACES, _MOST_PLACES = 1 << 13, 1 << 8, 1 << 14
# Smallest hashes that are kept. Fewer groups are counted; the number of more groups is estimated with a standard error
# of 3%.
COUNTED = 1 << 10
# Bytes in memory, at most.
SIZE = 24 * _MOST_PLACES
_NO_WEIGHTS = np.empty(0)
_CELL_MASK = np.uint64(CELLS - 1)


class EstimatedCount(int):
    """An estimated number of groups. It prints as such: "about 5,100"."""

    def __format__(self, spec: str) -> str:
        return f"about {int(self):{spec}}"


class GroupFlips:
    """The sums of the groups of one sketch, by group or with signs by slot, and the smallest hashes of groups.

    The key of a sum is the hash of the group with the number of the cell in place of its lowest 7 bits. Memory: 48 to
    192 bytes for each sum by group, at most 0.4 MB; 0.27 MB by slot.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid, self.n_cells = grid, cells_of(grid)
        self._keys: Hashes | None = np.full(_FEW_PLACES, kernel.EMPTY)  # None: sums are kept by slot
        self._sums: _Array = np.zeros((_FEW_PLACES, 2))
        self._used = 0
        self._smallest = np.empty(0, np.uint64)

    # --- filling ---------------------------------------------------------------------------------------------------

    def add_rows(self, p: NDArray[np.generic], y: NDArray[np.generic], w: _Array | None, hashes: Hashes) -> None:
        """Add valid rows, which may have weight 0, and the hashes of their groups."""
        outcomes, weights = y.astype(np.float64), _NO_WEIGHTS if w is None else w
        grid, shift = self.grid.tables, (self.grid.n_buckets // self.n_cells).bit_length() - 1
        while self._keys is not None:
            table = self._keys, self._sums, self._used, self._room()
            first, self._used = kernel.add_rows_to_groups(p, outcomes, weights, hashes, grid, shift, *table)
            if first == len(p):
                return
            p, outcomes, weights, hashes = p[first:], outcomes[first:], weights[first:], hashes[first:]
            self._make_room()
        kernel.add_rows_to_slots(p, outcomes, weights, hashes, grid, shift, self._sums)
        self._count(hashes if w is None else hashes[weights > 0.0])

    def add_entries(self, cell: _Ints, errors: _Array, weights: _Array, hashes: Hashes) -> None:
        """Add sums of w c and of w, each over rows of one group in one cell."""
        self._add_sums((hashes & ~_CELL_MASK) | cell.astype(np.uint64), np.column_stack([errors, weights]))

    def merge(self, other: "GroupFlips") -> None:
        """Add all rows of another object of the same grid."""
        if other._keys is None:
            self._collapse()
            self._sums += other._sums
            self._count(other._smallest)
        else:
            self._add_sums(*other._by_group())

    def _add_sums(self, keys: Hashes, sums: _Array) -> None:
        while self._keys is not None:
            table = self._keys, self._sums, self._used, self._room()
            first, self._used = kernel.add_sums_to_groups(keys, sums, *table)
            if first == len(keys):
                return
            keys, sums = keys[first:], sums[first:]
            self._make_room()
        kernel.add_sums_to_slots(keys, sums, self._sums)
        self._count(keys)

    def _room(self) -> int:
        """Return the number of sums by group for which there is room now."""
        return 0 if self._keys is None else min(len(self._keys) // 2, MOST_SUMS)

    def _make_room(self) -> None:
        """Make room for four times as many sums by group; if there are too many, keep them by slot."""
        if self._used >= MOST_SUMS or self._keys is None:
            self._collapse()
            return
        keys, sums = self._by_group()
        self._keys = np.full(min(4 * len(self._keys), _MOST_PLACES), kernel.EMPTY)
        self._sums = np.zeros((len(self._keys), 2))
        kernel.add_sums_to_groups(keys, sums, self._keys, self._sums, 0, len(keys))

    def _collapse(self) -> None:
        """Keep sums by slot from now on."""
        if self._keys is not None:
            keys, self._sums, self._keys = self._by_group()[0], self.by_slot(), None
            self._count(keys)

    def _by_group(self) -> tuple[Hashes, _Array]:
        """Return the keys of sums that are kept by group, increasing, and these sums."""
        assert self._keys is not None
        filled = np.flatnonzero(self._keys != kernel.EMPTY)
        filled = filled[np.argsort(self._keys[filled])]
        return self._keys[filled], self._sums[filled]

    def by_slot(self) -> _Array:
        """Return the sums with signs, of s w c and of s w, for each slot and cell."""
        if self._keys is None:
            return self._sums
        slots = np.zeros((SLOTS, self.n_cells, 2))
        kernel.add_sums_to_slots(*self._by_group(), slots)
        return slots

    def _count(self, hashes: Hashes) -> None:
        """Keep the smallest hashes of groups, without their lowest bits, which keys do not have."""
        below = self._smallest[-1] if len(self._smallest) == COUNTED else kernel.EMPTY
        out = np.empty(len(hashes), np.uint64)
        new = out[: kernel.groups_below(hashes, below, np.full(COUNTED, kernel.EMPTY), out)]
        if len(new):
            self._smallest = np.unique(np.concatenate([self._smallest, new]))[:COUNTED]

    def copy(self) -> "GroupFlips":
        """Return a copy that can be changed by itself."""
        flips = GroupFlips(self.grid)
        flips.merge(self)
        return flips

    # --- results ---------------------------------------------------------------------------------------------------

    @property
    def is_exact(self) -> bool:
        """Whether sums are kept by group."""
        return self._keys is not None

    @property
    def n_groups(self) -> int:
        """Number of groups; an estimate from the smallest hashes, to two digits, if there are many."""
        if self._keys is not None:
            return len(np.unique(self._by_group()[0] & ~_CELL_MASK))
        if len(self._smallest) < COUNTED:
            return len(self._smallest)
        return EstimatedCount(float(f"{(COUNTED - 1) * 2.0**64 / float(self._smallest[-1]):.2g}"))

    def group_sums(self, bucket: _Ints, points: Points) -> GroupSums:
        """Return the second moments of groups, or estimates; given filled buckets of the sketch and their points."""
        n_groups = self.n_groups
        refuse_few_groups(n_groups)
        cell = bucket * self.n_cells // self.grid.n_buckets
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        cells, used = points.runs(starts), cell[starts]
        if self._keys is None:
            errors, weights = (np.ascontiguousarray(self._sums[:, used, k]) for k in (0, 1))
            return GroupSums.of_flips(cells, errors, weights, n_groups)
        keys, sums = self._by_group()
        group = np.unique(keys & ~_CELL_MASK, return_inverse=True)[1].astype(np.int64)
        place = np.searchsorted(used, (keys & _CELL_MASK).astype(np.int64))
        return GroupSums.of_entries(cells, group, place, sums[:, 0], sums[:, 1])

    # --- files -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the bytes in a file: whether sums are by slot, the number of keys or hashes, these, and the sums."""
        keys, sums = (self._smallest, self._sums) if self._keys is None else self._by_group()
        numbers = (self._keys is None).to_bytes(4, "little") + len(keys).to_bytes(4, "little")
        return numbers + compress(keys.astype("<u8").tobytes() + sums.astype("<f8").tobytes())

    @classmethod
    def from_bytes(cls, data: memoryview, grid: Grid, bucket: _Ints, weight: _Array) -> Self | None:
        """Read the sums of a sketch with these filled buckets and sums of weights; None if no rows can have them."""
        flips, slots, n = cls(grid), *(int.from_bytes(data[k : k + 4], "little") for k in (0, 4))
        size = 16 * SLOTS * flips.n_cells if slots else 16 * n
        raw = decompress(data[8:], 8 * n + size) if slots <= 1 and n <= (COUNTED if slots else MOST_SUMS) else None
        if raw is None:
            return None
        keys = np.frombuffer(raw, "<u8", n).astype(np.uint64)
        sums = np.frombuffer(raw, "<f8", offset=8 * n).astype(np.float64).reshape(-1, 2)
        cell = np.tile(np.arange(flips.n_cells), SLOTS) if slots else (keys & _CELL_MASK).astype(np.int64)
        if not (keys[:-1] < keys[1:]).all() or not flips._are_possible(cell, sums, bucket, weight):
            return None
        if slots:
            flips._keys, flips._sums, flips._smallest = None, sums.reshape(SLOTS, flips.n_cells, 2), keys
            return flips if n and not (keys & _CELL_MASK).any() else None
        flips._add_sums(keys, sums)
        total = np.bincount(cell, sums[:, 1], minlength=flips.n_cells)
        complete = np.allclose(total, flips._weights(bucket, weight), rtol=1e-9, atol=0.0)
        return flips if complete and (sums[:, 1] > 0.0).all() else None

    def _weights(self, bucket: _Ints, weight: _Array) -> _Array:
        """Return the sum of weights of each cell, from those of filled buckets of the sketch."""
        cell = bucket * self.n_cells // self.grid.n_buckets
        return np.bincount(cell, weight, minlength=self.n_cells).astype(np.float64)

    def _are_possible(self, cell: _Ints, sums: _Array, bucket: _Ints, weight: _Array) -> bool:
        """Whether rows in these buckets can have these sums. A checksum proves only unchanged bytes."""
        most = self._weights(bucket, weight)
        if not (cell < self.n_cells).all():
            return False
        totals = [np.bincount(cell, column, minlength=self.n_cells) for column in np.abs(sums).T]
        return all(bool((total <= most * (1.0 + 1e-9)).all()) for total in totals)


def merge_flips(parts: Iterable[tuple[_Key, GroupFlips]]) -> dict[_Key, GroupFlips]:
    """Add up those with the same key. The result shares no memory with the parts."""
    merged: dict[_Key, GroupFlips] = {}
    for key, flips in parts:
        if key not in merged:
            merged[key] = GroupFlips(flips.grid)
        merged[key].merge(flips)
    return merged


def pack_flips(sketches: Sequence[GroupFlips]) -> bytes:
    """Return the sums of several sketches for a file, each after its size in bytes."""
    parts = [flips.to_bytes() for flips in sketches]
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def unpack_flips(data: memoryview, grid: Grid, sketches: Sequence[tuple[_Ints, _Array]]) -> list[GroupFlips] | None:
    """Read the sums of sketches with these filled buckets and sums of weights; None if no rows can have them."""
    found = []
    for bucket, weight in sketches:
        size = int.from_bytes(data[:8], "little")
        flips = GroupFlips.from_bytes(data[8 : 8 + size], grid, bucket, weight)
        if flips is None or len(data) < 8 + size:
            return None
        found.append(flips)
        data = data[8 + size :]
    return found if not len(data) else None


def cells_of(grid: Grid) -> int:
    """Number of cells of the flips of a sketch with this grid."""
    return min(grid.n_buckets, CELLS)
