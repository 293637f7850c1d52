"""Sums with signs of groups, of all rows or of each segment, filled from batches of rows or from sums of an engine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.grid import Grid
from truthcal.core.group_flips import SIZE, GroupFlips
from truthcal.core.group_hash import Hashes, hash_values
from truthcal.core.group_keys import Key
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io.assemble import Groups, float_columns
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import refuse_missing_groups

_Rows = NDArray[Any]
# With groups, each segment takes up to 0.4 MB.
MAX_SEGMENTS = 1000


class SegmentFlips:
    """The sums of groups of all rows, under the key (), or of each segment. Memory: up to 0.4 MB for each."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._flips: dict[Key, GroupFlips] = {}
        self._too_many = False

    def add_rows(self, p: _Rows, y: _Rows, w: _Rows | None, hashes: Hashes, segments: Groups | None) -> None:
        """Add valid rows, with the hashes of their groups, and with their segments if there are any."""
        for flips, rows in self._by_segment(segments):
            columns = [column[rows] for column in (p, y)]
            flips.add_rows(columns[0], columns[1], None if w is None else w[rows], hashes[rows])

    def add_entries(self, cell: _Rows, errors: _Rows, weights: _Rows, hashes: Hashes, segments: Groups | None) -> None:
        """Add sums of w c and of w, each over rows of one segment and group in one cell."""
        for flips, rows in self._by_segment(segments):
            flips.add_entries(*(column[rows] for column in (cell, errors, weights, hashes)))

    def _by_segment(self, segments: Groups | None) -> Iterator[tuple[GroupFlips, Any]]:
        """Yield the sums of each segment, and which rows are in it."""
        if segments is None:
            yield self._flips.setdefault((), GroupFlips(self._grid)), slice(None)
            return
        index, keys = segments
        order = np.argsort(index, kind="stable")
        ends = np.searchsorted(index[order], np.arange(len(keys) + 1))
        for key, first, last in zip(keys, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if first < last and key not in self._flips:
                self._make_room(key)
            if first < last and not self._too_many:
                yield self._flips[key], order[first:last]

    def _make_room(self, key: Key) -> None:
        """Add a segment. If there are too many, drop all: the user may not need them."""
        self._too_many = self._too_many or len(self._flips) == MAX_SEGMENTS
        if self._too_many:
            self._flips.clear()
        else:
            self._flips[key] = GroupFlips(self._grid)

    def store_in(self, result: Sketch | SketchTable) -> None:
        """Store the sums in the sketch, or in the table, of the same rows. The order of rows no longer matters."""
        if self._too_many:
            size = f"with groups each of them takes up to {SIZE / 1e6:.1f} MB;"
            problem = f"has more than {MAX_SEGMENTS:,} segments, and {size}"
            cure = "name fewer columns, or coarser ones, or sketch some segments at a time."
            raise invalid("by", f"{problem} {cure}")
        if not self._flips:
            return
        if isinstance(result, SketchTable):
            result.set_flips(self._flips)
            result._neighbour_z_of_all = None
        else:
            result.flips = self._flips[()]
        result.neighbour_z = None


def flips_of_entries(
    table: Mapping[str, Any], keys: Sequence[Any], segments: Groups | None, roles: ColumnRoles, grid: Grid, where: str
) -> SegmentFlips:
    """Add up a table with a line for each segment, group and cell, which an engine returned.

    Its columns are `cell`, `n` (rows), `errors` (sum of w c) and `weights` (sum of w); `keys` are the groups.
    """
    names = ("cell", "n", "errors", "weights")
    numbers = float_columns({name: table[name] for name in names})
    place: dict[Any, int] = {}
    index = np.array([place.setdefault(key, len(place)) for key in keys], np.int64)
    hashes, missing = hash_values(list(place), roles.groups or "")
    if missing.any():
        bad, rows = (int(numbers["n"][lines].sum()) for lines in (missing[index], slice(None)))
        refuse_missing_groups(roles.groups or "", f"in {where} ({bad:,} of {rows:,} rows)")
    flips = SegmentFlips(grid)
    cell = numbers["cell"].astype(np.int64)
    flips.add_entries(cell, numbers["errors"], numbers["weights"], hashes[index], segments)
    return flips
