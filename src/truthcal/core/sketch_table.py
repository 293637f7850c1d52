"""One sketch per group of rows. Only filled buckets are stored; statistics are computed for all groups at once."""

import copy
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core import group_keys
from truthcal.core.bucket_stats import BucketStats
from truthcal.core.cell_codec import CELL_SIZE, COLUMNS, compress, decompress, pack_cells, read_cells, unpack_cells
from truthcal.core.file_format import BinaryFile
from truthcal.core.grid import MAX_BUCKETS, MOST_FLAGS, Grid, pack_flags, unpack_flags
from truthcal.core.group_flips import GroupFlips, merge_flips, pack_flips, unpack_flips
from truthcal.core.group_keys import STATISTICS, Key, check_by, named, printed
from truthcal.core.group_sums import FEWEST_GROUPS, GroupSums
from truthcal.core.params import check_power_of_two, shown
from truthcal.core.points import PointGroups, Points
from truthcal.core.segment_groups import SegmentGroups
from truthcal.core.sketch import Sketch, cells_are_possible, refuse_other_grid, refuse_other_groups
from truthcal.kernels import buckets
from truthcal.results.base import Tabular
from truthcal.results.measures import BoundedArray
from truthcal.results.text import Page, Table, count, more_rows, number

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

# Groups that `str` shows.
_SHOWN = 20
# Most points of a block of groups: 60 MB with everything that is computed from them.
_BLOCK = 1 << 18


class SketchTable(Tabular, BinaryFile, Mapping[Any, Sketch]):
    """One `Sketch` per group of rows: a mapping from groups to sketches, with statistics of all groups at once.

    Only filled buckets are stored, so thousands of small groups need little memory. Groups are sorted: numbers, text,
    bytes, dates, times, and finally the group with a missing value.

    Parameters
    ----------
    by : str or list of str
        Names of the columns that define the groups; as an attribute, a tuple.
    n_buckets : int, default 4096
        As for `Sketch`.

    Notes
    -----
    With one column the keys are its values, with several columns tuples of values: None (missing; so are NaN, NA and
    NaT), bool, int, float, str, bytes, Decimal, date or datetime. As in a dict, ``True``, ``1``, ``1.0`` and
    ``Decimal(1)`` are the same key; the table keeps the first of these types that occurs, in this order. Times with a
    zone are converted to UTC. Groups without rows are omitted.

    Memory: 136 bytes per filled bucket of each group, plus the keys, and up to 0.4 MB for each key if `groups` of
    `sketch_frame` or `scan` says which rows belong together.

    Examples
    --------
    >>> import truthcal as tc
    >>> north, south = tc.Sketch().update([0, 1, 1], [0.1, 0.8, 0.7]), tc.Sketch().update([0, 1], [0.9, 0.9])
    >>> table = tc.SketchTable.from_sketches({"north": north, "south": south}, by="region")
    >>> table
    SketchTable(by=('region',), n_buckets=4096): 2 groups, 5 rows
    >>> print(table)
    2 groups by region, 5 rows
    <BLANKLINE>
    region  rows     bias      ATB  noise floor
    north      3  -0.1333  0.02356      0.05111
    south      2     +0.4     0.16        0.045
    >>> table["south"].bias()
    0.4
    >>> table.bias().round(3).tolist()
    [-0.133, 0.4]
    """

    # z of neighbouring rows of the same group, and of the whole file: known if all rows were at hand, in order.
    neighbour_z: float | None = None
    _neighbour_z_of_all: float | None = None
    flips: dict[Key, GroupFlips] | None = None  # sums with signs of each segment, if rows have groups
    segment_groups: SegmentGroups | None = None  # rows with groups, if they are at hand; more accurate than `flips`
    weights_known: bool = True  # as for `Sketch`
    _MAGIC, _NOUN = b"TRUTHTAB", "sketch table"
    _HEADERS: ClassVar = {
        1: struct.Struct("<8sIIQQQ"),
        2: struct.Struct("<8sIIIQQQQQ"),
        3: struct.Struct("<8sIIIQQQQQQ"),
    }

    def __init__(self, by: str | Iterable[str], n_buckets: int = 4096) -> None:
        self.by = check_by(by)
        self._empty(Grid.of_size(check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)))

    def _empty(self, grid: Grid) -> Self:
        """Remove all groups and use this grid. Returns the table itself."""
        self.grid, self.n_buckets = grid, grid.n_buckets
        none = np.empty(0, np.int64)
        return self._fill([], none, none, np.empty((len(COLUMNS), 0)))

    # --- filling ---------------------------------------------------------------------------------------------------

    @classmethod
    def from_sketches(cls, sketches: Mapping[Any, Sketch], by: str | Iterable[str]) -> Self:
        """Build a table from existing sketches.

        Parameters
        ----------
        sketches : mapping of keys to Sketch
            All with the same `n_buckets`. With several columns the keys are tuples. Empty sketches are omitted.
        by : str or list of str
            Names of the columns that define the groups.

        Returns
        -------
        SketchTable
            A table with copies of the sums.
        """
        by = check_by(by)
        if not isinstance(sketches, Mapping):
            raise TypeError(f"`sketches` must be a dict from keys to sketches; got {shown(sketches)}.")
        pairs = [(group_keys.users_key(key, by), sketch) for key, sketch in sketches.items()]
        for key, sketch in pairs:
            if not isinstance(sketch, Sketch):
                raise TypeError(f"`sketches` must contain a Sketch for each key; got {shown(sketch)} for {named(key)}.")
        sizes = sorted({sketch.n_buckets for _, sketch in pairs})
        if len(sizes) != 1:
            found = ", ".join(map(str, sizes)) or "none"
            raise ValueError(f"`sketches` must all have the same n_buckets; found {found}.")
        grid = pairs[0][1].grid
        grouped = [(key, sketch.flips) for key, sketch in pairs if sketch.flips is not None]
        for _, sketch in pairs:
            refuse_other_grid(sketch.grid, grid, "sketch")
            if sketch.n:
                refuse_other_groups(sketch.flips is not None, bool(grouped), "sketch")
        cells = [sketch._filled() for _, sketch in pairs]
        group = np.repeat(np.arange(len(cells)), [len(filled) for filled, _ in cells])
        bucket, columns = (np.concatenate(parts, axis=-1) for parts in zip(*cells, strict=True))
        table = cls(by)._empty(grid)._fill([key for key, _ in pairs], group, bucket, columns)
        table.weights_known = all(sketch.weights_known for _, sketch in pairs)
        table.flips = merge_flips(grouped) if grouped else None
        return table

    @classmethod
    def _from_cells(
        cls, by: Sequence[str], keys: Sequence[Key], group: _Ints, bucket: _Ints, columns: _Floats, n_buckets: int
    ) -> Self:
        """Build a table from filled buckets in any order, each of the group ``keys[group]``; duplicates are added up.

        `columns` are the COLUMNS of a sketch. Raises ValueError if no rows can have these sums.
        """
        table = cls(by, n_buckets)
        checked = [group_keys.checked_key(key, table.by) for key in keys]
        shaped = columns.shape == (len(COLUMNS), len(bucket)) and len(group) == len(bucket)
        if not shaped or ((group < 0) | (group >= len(checked))).any():
            shape = f"`columns` must have shape ({len(COLUMNS)}, {len(bucket)}), like `group` and `bucket`"
            raise ValueError(f"{shape}, and each group must be one of the {len(checked)} keys.")
        columns = np.ascontiguousarray(columns, np.float64)
        possible = cells_are_possible(table.grid, bucket, columns)
        if not possible.all():
            wrong = int(possible.argmin())
            where = f"bucket {bucket[wrong]} of group {named(checked[group[wrong]])}"
            raise ValueError(f"the sums of {where} are inconsistent; no rows can have these sums.")
        return table._fill(checked, group, bucket, columns)

    def _fill(self, keys: list[Key], group: _Ints, bucket: _Ints, columns: _Floats) -> Self:
        """Replace the content by these filled buckets. Equal keys form one group; keys without buckets are dropped."""
        used = np.unique(group)
        ordered, places = group_keys.ordered_keys([keys[g] for g in used])
        place = np.zeros(len(keys), np.int64)
        place[used] = places
        code, columns = _merge_duplicates(place[group] * self.n_buckets + bucket, columns)
        counts = np.bincount(code // self.n_buckets, minlength=len(ordered))
        self._keys, self._place = ordered, {key: g for g, key in enumerate(ordered)}
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._buckets, self._columns = code % self.n_buckets, columns
        self.neighbour_z = self._neighbour_z_of_all = self.segment_groups = None
        return self

    def merge(self, other: "SketchTable") -> Self:
        """Add all rows of another table with the same `by` and `n_buckets`. Returns the table itself.

        It then has the groups of both. `other` is unchanged. If `other` is not compatible, the table is unchanged too.
        """
        if not isinstance(other, SketchTable):
            raise TypeError(f"only a SketchTable can be merged into a SketchTable; got {type(other).__name__}.")
        for name in ("by", "n_buckets"):
            mine, others = f"{name}={getattr(self, name)}", f"{name}={getattr(other, name)}"
            if mine != others:
                raise ValueError(f"cannot merge a table with {others} into one with {mine}; use the same `{name}`.")
        refuse_other_grid(other.grid, self.grid, "table")
        if self and other:
            refuse_other_groups(other.flips is not None, self.flips is not None, "table")
        if other.flips is not None:
            self.flips = merge_flips([*(self.flips or {}).items(), *other.flips.items()])
        self.weights_known &= other.weights_known
        return self._fill(
            self._keys + other._keys,
            np.concatenate([self._groups(), other._groups() + len(self)]),
            np.concatenate([self._buckets, other._buckets]),
            np.concatenate([self._columns, other._columns], axis=1),
        )

    def __add__(self, other: object) -> "SketchTable":
        if not isinstance(other, SketchTable):
            return NotImplemented
        return copy.copy(self).merge(other)

    def __radd__(self, other: object) -> "SketchTable":
        if isinstance(other, int) and other == 0:  # the start value of sum(tables)
            return copy.copy(self)
        return NotImplemented

    def __copy__(self) -> "SketchTable":  # without it, copy.copy would compress all cells, as pickle does
        table = SketchTable(self.by)
        vars(table).update(vars(self))  # arrays may be shared: `_fill` replaces them and never changes them
        return table

    def rollup(self, by: str | Iterable[str]) -> "SketchTable":
        """Return a new table of the same rows, grouped by only some of its columns, in any order."""
        table = SketchTable(by)._empty(self.grid)
        for name in table.by:
            if name not in self.by:
                raise ValueError(f"`by` must name columns of this table, {', '.join(self.by)}; got {name!r}.")
        places = [self.by.index(name) for name in table.by]
        table.weights_known = self.weights_known
        keys = [tuple(key[place] for place in places) for key in self._keys]
        if self.flips is not None:
            table.flips = merge_flips((new, self.flips[key]) for new, key in zip(keys, self._keys, strict=True))
        return table._fill(keys, self._groups(), self._buckets, self._columns)

    def _with_keys(self, keys: Sequence[Key]) -> "SketchTable":
        """Return a new table whose groups have other keys, in the order of its own; groups of equal keys are merged."""
        table = SketchTable(self.by)._empty(self.grid)
        table.weights_known = self.weights_known
        return table._fill(list(keys), self._groups(), self._buckets, self._columns)

    def total(self) -> Sketch:
        """Return one sketch of the rows of all groups."""
        sketch = Sketch._from_columns(self.grid, *_merge_duplicates(self._buckets, self._columns), "")
        sketch.neighbour_z, sketch.weights_known = self._neighbour_z_of_all, self.weights_known
        if self.flips:
            sketch.flips = merge_flips(((), flips) for flips in self.flips.values())[()]
        return sketch

    @property
    def has_groups(self) -> bool:
        """Whether the user said which rows belong together."""
        return self.flips is not None or self.segment_groups is not None

    def group_sums(self, key: Key) -> GroupSums | None:
        """Return the second moments of the groups of a segment; None if it has fewer than 20 groups."""
        if self.segment_groups is not None:
            return self.segment_groups.sums(key)
        flips, place = (self.flips or {})[key], self._place[key]
        if flips.n_groups < FEWEST_GROUPS:
            return None
        cells = slice(self._starts[place], self._starts[place + 1])
        points = Points.of_buckets(np.ascontiguousarray(self._columns[:, cells]), self.n_buckets)
        return flips.group_sums(self._buckets[cells], points)

    def set_flips(self, flips: Mapping[Key, GroupFlips]) -> None:
        """Store the sums with signs of groups of each segment of this table; keys without segments are dropped."""
        self.flips = {key: flips[key] for key in self._keys}

    def _groups(self) -> _Ints:
        """Return the position of the group of each filled bucket."""
        return np.repeat(np.arange(len(self)), np.diff(self._starts))

    # --- a mapping -------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Sketch:
        filled, columns = self._filled(key)
        sketch = Sketch._from_columns(self.grid, filled, columns, "")
        sketch.weights_known = self.weights_known
        if self.flips is not None:
            sketch.flips = self.flips[group_keys.users_key(key, self.by)].copy()
        return sketch

    def points(self, key: Any) -> Points:
        """Return the points of one group: the same as ``table[key].points()``, without building a sketch."""
        return replace(Points.of_buckets(self._filled(key)[1], self.n_buckets), weights_known=self.weights_known)

    def point_groups(self, places: Sequence[int]) -> Iterator[PointGroups]:
        """Yield the points of the groups at these places of the table, in blocks that need little memory."""
        starts, ends = self._starts[:-1][places], self._starts[1:][places]
        upto = np.concatenate([[0], np.cumsum(ends - starts)])
        first = 0
        while first < len(places):
            last = max(first + 1, int(np.searchsorted(upto, upto[first] + _BLOCK, side="right")) - 1)
            parts = zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True)
            columns = np.concatenate([self._columns[:, start:end] for start, end in parts], axis=1)
            groups = PointGroups.of_buckets(columns, upto[first : last + 1] - upto[first], self.n_buckets)
            yield replace(groups, points=replace(groups.points, weights_known=self.weights_known))
            first = last

    def _filled(self, key: Any) -> tuple[_Ints, _Floats]:
        """Return the numbers of the filled buckets of one group, and their COLUMNS."""
        place = self._find(key)
        if place is None:
            few = ", ".join(named(known) for known in self._keys[:3])
            groups_it_has = f"the {len(self):,} are {few}{', ...' if len(self) > 3 else ''}" if few else "it has none"
            raise KeyError(f"no group {shown(key)} in this table by {', '.join(self.by)}; {groups_it_has}.")
        cells = slice(self._starts[place], self._starts[place + 1])
        return self._buckets[cells], np.ascontiguousarray(self._columns[:, cells])

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def _find(self, key: object) -> int | None:
        try:
            return self._place.get(group_keys.users_key(key, self.by))
        except (TypeError, ValueError):  # not a valid key
            return None

    def __iter__(self) -> Iterator[Any]:
        return (key[0] if len(self.by) == 1 else key for key in self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    # Mapping.__eq__ would compare sketches, which are new objects at each access: no table would equal itself.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    # --- results ---------------------------------------------------------------------------------------------------

    def _stats(self) -> BucketStats:
        return BucketStats(self._starts, self._columns)

    @property
    def n(self) -> _Ints:
        """Number of rows with a weight above 0 in each group."""
        return self._stats().n

    @property
    def weight(self) -> _Floats:
        """Sum of the weights of each group."""
        return self._stats().weight

    def atb(self) -> BoundedArray:
        """ATB of each group, between certified bounds."""
        return self._stats().atb

    def atb_l1(self) -> BoundedArray:
        """ATB with absolute values in place of squares, of each group, between certified bounds."""
        return self._stats().atb_l1

    def distcal_bracket(self) -> dict[str, _Floats]:
        """Bounds of smCal and distCal of each group: the fields of `DistanceBracket` as columns."""
        return self._stats().bracket()

    def brier(self) -> _Floats:
        """Mean squared error of the predictions of each group."""
        return self._stats().brier

    def bias(self) -> _Floats:
        """Mean prediction minus mean outcome of each group."""
        return self._stats().bias

    def noise_floor(self) -> _Floats:
        """Expected ATB of a perfectly calibrated forecaster with these predictions, for each group."""
        return self._stats().noise_floor

    def table(self) -> dict[str, Any]:
        """Return one row per group, as columns of equal length, ready for a data frame.

        Returns
        -------
        dict of list and ndarray
            The columns named in `by` (lists; None where missing), then ``n`` (rows), ``weight``, ``mean_proba``,
            ``mean_true``, ``bias``, ``brier``, ``atb`` with its certified bounds ``atb_low`` and ``atb_high``,
            ``noise_floor`` and ``excess``, as in `AtbSummary`.
        """
        stats = self._stats()
        bounds = {"atb": stats.atb.value, "atb_low": stats.atb.low, "atb_high": stats.atb.high}
        keys = {name: [key[i] for key in self._keys] for i, name in enumerate(self.by)}
        return keys | {name: bounds[name] if name in bounds else getattr(stats, name) for name in STATISTICS}

    def __repr__(self) -> str:
        return f"SketchTable(by={self.by!r}, {self.grid.arguments}): {self._size()}"

    def _size(self, by: str = "") -> str:
        return f"{count(len(self), 'group')}{by}, {count(int(self.n.sum()), 'row')}"

    def __str__(self) -> str:
        return self._page().text() if self else self._size(f" by {', '.join(self.by)}")

    def _repr_html_(self) -> str:
        return self._page().html() if self else super()._repr_html_()

    def _page(self) -> Page:
        """Return the table of the largest groups."""
        table = self.table()
        rows = []
        for g in np.argsort(-table["n"], kind="stable")[:_SHOWN]:
            bias, atb, floor = (table[name][g] for name in ("bias", "atb", "noise_floor"))
            numbers = [f"{table['n'][g]:,}", number(bias, sign="+"), number(atb), number(floor)]
            rows.append([*map(printed, self._keys[g]), *numbers])
        header, first = [*self.by, "rows", "bias", "ATB", "noise floor"], len(self.by)
        lines = Table(header, rows, right=range(first, first + 4))
        return Page(self._size(f" by {', '.join(self.by)}"), lines, more_rows(len(self), _SHOWN))

    # --- files -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the table in truthcal's file format: compressed, versioned, checksummed, no pickle."""
        names = {"by": self.by, "keys": [[group_keys.to_json(value) for value in key] for key in self._keys]}
        text = json.dumps(names, separators=(",", ":")).encode("ascii")
        groups = compress(np.diff(self._starts).astype("<u4").tobytes() + text)
        cells = pack_cells(self._buckets, self._columns)
        sizes = len(self), len(self._buckets), len(text), len(cells), len(groups)
        numbers = pack_flags(self.grid, self.weights_known), self.n_buckets, *sizes
        if self.flips is None:  # older versions of truthcal read it, too
            return self._sealed(2, numbers, cells, groups)
        flips = pack_flips([self.flips[key] for key in self._keys])
        return self._sealed(3, (*numbers, len(flips)), cells, groups, flips)

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        sizes = {1: lambda _, g, m, k: 4 * g + m * CELL_SIZE + k, 2: lambda *numbers: sum(numbers[-2:])}
        version, numbers, body = cls._opened(data, name, sizes | {3: lambda *numbers: sum(numbers[-3:])})
        content = _read_version_1(numbers, body) if version == 1 else _read_version_2(numbers, body)
        table = None if content is None else cls._from_content(*content)
        if table is None or (version == 3 and not table._read_flips(body[sum(numbers[5:7]) :])):
            raise ValueError(f"{name}: the sketch table is inconsistent; it was not written by truthcal.")
        known = unpack_flags(numbers[0], table.n_buckets)[1]
        table.weights_known = known if version > 1 else all(table.points(key).equal_weights for key in table)
        return table

    @classmethod
    def _from_content(cls, grid: Grid, g: int, cells: tuple[_Ints, _Floats], counts: _Ints, text: bytes) -> Self | None:
        """Build a table of g groups from the content of a file; None if it is inconsistent."""
        bucket, columns = cells
        by, keys = group_keys.names_from_json(text)
        if not (by and len(keys) == g and (counts > 0).all() and counts.sum() == len(bucket) and grid.is_possible):
            return None
        code = np.repeat(np.arange(g), counts) * grid.n_buckets + bucket
        if not (np.diff(code) > 0).all() or not cells_are_possible(grid, bucket, columns).all():
            return None
        return cls(by)._empty(grid)._fill(keys, code // grid.n_buckets, bucket, columns)

    def _read_flips(self, data: memoryview) -> bool:
        """Read the sums with signs of groups of all segments from a file of version 3; return whether they fit."""
        cells = [self._filled(key) for key in self]
        parts = unpack_flips(data, self.grid, [(bucket, columns[buckets.W]) for bucket, columns in cells])
        self.flips = None if parts is None else dict(zip(self._keys, parts, strict=True))
        return parts is not None


_Content = tuple[Grid, int, tuple[_Ints, _Floats], _Ints, bytes]


def _read_version_1(numbers: list[int], body: memoryview) -> _Content:
    """Read the grid, the number of groups, all cells, their number by group, and the names of a table's file."""
    n_buckets, g, m, _ = numbers
    counts = np.frombuffer(body, "<u4", g, offset=m * CELL_SIZE).astype(np.int64)
    return Grid(n_buckets, False), g, read_cells(body, m), counts, bytes(body[m * CELL_SIZE + 4 * g :])


def _read_version_2(numbers: list[int], body: memoryview) -> _Content | None:
    """Read the same from a file of version 2 or 3; None if it cannot be decompressed."""
    flags, n_buckets, g, m, k, size, rest, *_ = numbers
    cells, groups = unpack_cells(body[:size], m), decompress(body[size : size + rest], 4 * g + k)
    if cells is None or groups is None or flags > MOST_FLAGS:
        return None
    counts = np.frombuffer(groups, "<u4", g).astype(np.int64)
    return unpack_flags(flags, n_buckets)[0], g, cells, counts, groups[4 * g :]


def _merge_duplicates(code: _Ints, columns: _Floats) -> tuple[_Ints, _Floats]:
    """Merge buckets of a sketch table with equal codes: distinct codes, increasing, with sums and extremes."""
    order = np.argsort(code, kind="stable")
    increasing = code[order]
    firsts = np.flatnonzero(np.diff(increasing, prepend=-1))
    out = np.empty((len(COLUMNS), len(firsts)))
    buckets.merge_buckets(order, np.append(firsts, len(code)), columns, out)
    return increasing[firsts], out
