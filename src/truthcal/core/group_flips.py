"""Group flips: errors of groups of rows with random signs, in a table that sketches can add up.

Second moments of the sums of groups (`core.group_sums`) cannot be merged if a group is split over sketches. So each
group has a slot, one of 128, and a sign s, both from the hash of the group. The table has the sums of s w c and of s w
of all rows (w weight, c = p - y), for each slot and for each of at most 128 cells of neighbouring predictions. It is
linear: parts of a group add up, whichever sketch has seen them. With F_b the row of the table for slot b, the mean of
sum over b of F_b F_b' over random signs is the sum of z_g z_g' over groups, since errors of different groups in one
slot have independent signs. Its variance is that of the mean over 128 tables in which all groups have independent
signs, but each row is added to one slot, not to 128 tables ("count sketch", or the "fast AMS sketch" of Thorup and
Zhang).
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
CELLS = 128
# Smallest hashes that are kept. Fewer groups are counted; the number of more groups is estimated with a standard error
# of 3%.
COUNTED = 1 << 10
# Bytes of a table with all cells.
SIZE = 16 * SLOTS * CELLS + 8 * COUNTED
_NO_WEIGHTS = np.empty(0)


class EstimatedCount(int):
    """An estimated number of groups. It prints as such: "about 5,100"."""

    def __format__(self, spec: str) -> str:
        return f"about {int(self):{spec}}"


class GroupFlips:
    """The table of one sketch: sums with the signs of groups, by slot and cell, and the smallest hashes of groups.

    Memory: 0.27 MB.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid, self.n_cells = grid, cells_of(grid)
        self._sums = np.zeros((SLOTS, self.n_cells, 2))
        self._smallest = np.empty(0, np.uint64)

    # --- filling ---------------------------------------------------------------------------------------------------

    def add_rows(self, p: NDArray[np.generic], y: NDArray[np.generic], w: _Array | None, hashes: Hashes) -> None:
        """Add valid rows, which may have weight 0, and the hashes of their groups."""
        weights, shift = _NO_WEIGHTS if w is None else w, (self.grid.n_buckets // self.n_cells).bit_length() - 1
        kernel.add_rows(p, y.astype(np.float64), weights, hashes, self.grid.tables, shift, self._sums)
        self._count(hashes if w is None else hashes[w > 0.0])

    def add_entries(self, cell: _Ints, errors: _Array, weights: _Array, hashes: Hashes) -> None:
        """Add sums of w c and of w, each over rows of one group in one cell."""
        kernel.add_entries(cell, errors, weights, hashes, self._sums)
        self._count(hashes)

    def merge(self, other: "GroupFlips") -> None:
        """Add all rows of another table of the same grid."""
        self._sums += other._sums
        self._count(other._smallest)

    def _count(self, hashes: Hashes) -> None:
        if len(self._smallest) == COUNTED:
            hashes = hashes[hashes < self._smallest[-1]]
        if len(hashes):
            self._smallest = np.unique(np.concatenate([self._smallest, np.unique(hashes)[:COUNTED]]))[:COUNTED]

    def copy(self) -> "GroupFlips":
        """Return a table that can be changed by itself."""
        flips = GroupFlips(self.grid)
        flips.merge(self)
        return flips

    # --- results ---------------------------------------------------------------------------------------------------

    @property
    def is_counted(self) -> bool:
        """Whether the number of groups is exact."""
        return len(self._smallest) < COUNTED

    @property
    def n_groups(self) -> int:
        """Number of groups, exact below 1024, else an estimate from the smallest hashes, to two digits."""
        if self.is_counted:
            return len(self._smallest)
        return EstimatedCount(float(f"{(COUNTED - 1) * 2.0**64 / float(self._smallest[-1]):.2g}"))

    def group_sums(self, bucket: _Ints, points: Points) -> GroupSums:
        """Estimate the second moments of groups, given the filled buckets of the sketch and their points."""
        refuse_few_groups(self.n_groups)
        cell = bucket * self.n_cells // self.grid.n_buckets
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        errors, weights = (np.ascontiguousarray(self._sums[:, cell[starts], k]) for k in (0, 1))
        return GroupSums.of_flips(points.runs(starts), errors, weights, self.n_groups)

    # --- files -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the table for a file: the smallest hashes, then the sums."""
        hashes = np.zeros(COUNTED + 1, "<u8")
        hashes[0] = len(self._smallest)
        hashes[1 : 1 + len(self._smallest)] = self._smallest
        return compress(hashes.tobytes() + self._sums.astype("<f8").tobytes())

    @classmethod
    def from_bytes(cls, data: memoryview, grid: Grid, bucket: _Ints, weight: _Array) -> Self | None:
        """Read the table of a sketch with these filled buckets and sums of weights; None if no rows can have it."""
        flips = cls(grid)
        head = 8 * (COUNTED + 1)
        raw = decompress(data, head + flips._sums.nbytes)
        if raw is None:
            return None
        hashes = np.frombuffer(raw, "<u8", COUNTED + 1).astype(np.uint64)
        known = int(min(hashes[0], np.uint64(COUNTED)))
        flips._smallest = hashes[1 : 1 + known].copy()
        flips._sums[:] = np.frombuffer(raw, "<f8", offset=head).reshape(flips._sums.shape)
        return flips if hashes[0] == known and flips._is_possible(bucket, weight) else None

    def _is_possible(self, bucket: _Ints, weight: _Array) -> bool:
        """Whether rows in these buckets can have these sums. A checksum proves only unchanged bytes."""
        cell = bucket * self.n_cells // self.grid.n_buckets
        most = np.bincount(cell, weight, minlength=self.n_cells) * (1.0 + 1e-9)
        sums = np.abs(self._sums).sum(axis=0)
        increasing = self._smallest[:-1] < self._smallest[1:]
        enough = len(self._smallest) > 0 or not len(bucket)
        return bool(enough and increasing.all() and (sums[:, 0] <= most).all() and (sums[:, 1] <= most).all())


def cells_of(grid: Grid) -> int:
    """Number of cells of the flips of a sketch with this grid."""
    return min(grid.n_buckets, CELLS)


def merge_flips(parts: Iterable[tuple[_Key, GroupFlips]]) -> dict[_Key, GroupFlips]:
    """Add up the tables with the same key. The result shares no memory with the parts."""
    merged: dict[_Key, GroupFlips] = {}
    for key, flips in parts:
        if key not in merged:
            merged[key] = GroupFlips(flips.grid)
        merged[key].merge(flips)
    return merged


def pack_flips(tables: Sequence[GroupFlips]) -> bytes:
    """Return the tables of several sketches for a file, each after its size in bytes."""
    parts = [flips.to_bytes() for flips in tables]
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def unpack_flips(data: memoryview, grid: Grid, sketches: Sequence[tuple[_Ints, _Array]]) -> list[GroupFlips] | None:
    """Read the tables of sketches with these filled buckets and sums of weights; None if no rows can have them."""
    tables = []
    for bucket, weight in sketches:
        size = int.from_bytes(data[:8], "little")
        flips = GroupFlips.from_bytes(data[8 : 8 + size], grid, bucket, weight)
        if flips is None or len(data) < 8 + size:
            return None
        tables.append(flips)
        data = data[8 + size :]
    return tables if not len(data) else None
