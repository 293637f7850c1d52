"""Rows that stream by, added to buckets as they come: for one sketch, or for one for each group."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT, read_only
from truthcal.core.group_keys import checked_key
from truthcal.core.parallel import in_halves, run_parts
from truthcal.core.sketch import Sketch, empty_scratch
from truthcal.io import row_codes
from truthcal.io.assemble import Groups
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import Found, refuse_bad_rows
from truthcal.kernels import buckets, prepare

_Rows = NDArray[Any]
_NO_WEIGHTS = np.empty(0)
# So many rows are added up plainly before they join sums that keep their rounding errors.
_PLAIN_ROWS = 1 << 24
# So many rows are dealt out by group at a time.
_WORTH_A_ROUND = 1 << 21
# So many buckets of all groups together, filled or not, take 1 GB before the first of them is filled.
MOST_CELLS = 1 << 28


class BucketAccumulator:
    """Sums of all rows so far. Memory: 1.2 MB; with groups 60 MB, and for each 4 bytes a bucket and 64 a filled one.

    With weights or fractional outcomes it is 90 MB, and 96 bytes a filled bucket.
    """

    def __init__(self, roles: ColumnRoles, n_buckets: int) -> None:
        self._roles, self._n_buckets = roles, n_buckets
        self._rows = 0
        self._sketch = Sketch(n_buckets)
        self._scratch: dict[int, NDArray[np.float64]] = {}  # of the two halves of every batch
        self._plain_rows = 0
        self._cells = {binary: _Cells(n_buckets, binary) for binary in (False, True)}

    def add(self, y: _Rows, p: _Rows, w: _Rows | None, groups: Groups | None, first: int, where: str) -> None:
        """Add rows. If any cannot be used, the error says so of the `first` and later rows of `where`."""
        if groups is not None:  # as tables keep them: two times in a zone may be equal for Python and not the same
            groups = groups[0], [checked_key(key, self._roles.by) for key in groups[1]]
        others: _Rows | None = None
        if w is None and groups is None:
            others = self._add_binary(y, p)
        if others is None or len(others):
            rows = (y, p, w) if others is None else (y[others], p[others], None)
            labels = _labels(y) if groups is not None and w is None else None
            cells = self._cells[labels is not None]
            if cells.add(rows[0] if labels is None else labels, *rows[1:], groups):
                _refuse(y, p, w, first, self._roles, where)
        self._rows += len(p)

    def _add_binary(self, y: _Rows, p: _Rows) -> _Rows:
        """Add all rows with outcomes 0 or 1; returns which ones are left."""
        y, p = read_only(y), read_only(p)

        def half(first: int, last: int) -> int:
            scratch = self._scratch.get(first > 0)
            if scratch is None:
                scratch = self._scratch[first > 0] = empty_scratch(self._n_buckets)
            return buckets.sketch_binary(p[first:last], y[first:last], self._n_buckets, scratch)

        self._plain_rows += len(p)
        passed_over = sum(in_halves(half, len(p)))
        if self._plain_rows >= _PLAIN_ROWS:
            self._settle()
        if not passed_over:
            return np.empty(0, np.int64)
        return np.flatnonzero(~((p >= 0) & (p <= 1) & ((y == 0) | (y == 1))))

    def _settle(self) -> None:
        own = self._sketch
        for scratch in self._scratch.values():
            buckets.finish_binary(scratch, own._sums, own._lost, own._low, own._high)
        self._scratch.clear()
        self._plain_rows = 0

    def table(self) -> tuple[dict[str, _Rows], Groups | None]:
        """All sums so far as a table by code, and its groups."""
        self._settle()
        keys = [key for cells in self._cells.values() for key in cells.keys]
        parts = [cells.filled(self._roles.sample_weight is not None) for cells in self._cells.values()]
        groups: Groups | None = None
        if self._roles.by:
            parts[1][0][:] += len(self._cells[False].keys)
            group, code, fields = (np.concatenate(pair, axis=-1) for pair in zip(*parts, strict=True))
            groups = group, keys
        else:
            _, code, fields = parts[0]
            self._sketch.merge(Sketch._from_columns(self._n_buckets, code, fields, "cells contradict themselves"))
            code, fields = self._sketch._filled()
        if not len(code):  # no row counts
            code, fields, groups = np.array([row_codes.WEIGHTLESS]), np.zeros((buckets.N_FIELDS, 1)), None
            fields[buckets.N] = self._rows
        return {"code": code, **dict(zip(row_codes.WEIGHTED, fields, strict=True))}, groups


class _Cells:
    """The filled buckets of all groups. Every second group belongs to one core, the others to the other one.

    With `binary`, for unweighted rows with bytes 0 and 1 as outcomes.
    """

    def __init__(self, n_buckets: int, binary: bool) -> None:
        self._binary = binary
        self._n_fields = buckets.SCRATCH_FIELDS if binary else buckets.N_FIELDS
        self.keys: dict[Any, int] = {}
        self._n_buckets = n_buckets
        self._cell_of = np.full((1, n_buckets), -1, np.int32)
        self._fields = [_aligned(0, self._n_fields), _aligned(0, self._n_fields)]
        self._used = [0, 0]
        self._waiting: list[tuple[_Rows, ...]] = []

    def add(self, y: _Rows, p: _Rows, w: _Rows | None, groups: Groups | None) -> int:
        """Add rows; if some are not legal, add none and return how many.

        Rows wait until they are many: then each group has so many that its cells are worth fetching into the cache.
        """
        index, keys = groups or (np.zeros(len(p), np.int32), [()])
        y = y if y.dtype == np.uint8 else y.astype(np.float64)
        given = _NO_WEIGHTS if w is None else w
        others = buckets.count_illegal(p, y, given, SMALLEST_WEIGHT, LARGEST_WEIGHT)
        if others:
            return others
        number = np.array([self.keys.setdefault(key, len(self.keys)) for key in keys], dtype=np.int32)
        self._waiting.append((y, p, given, number[index]))
        if sum(len(rows[0]) for rows in self._waiting) >= _WORTH_A_ROUND:
            self._settle()
        return 0

    def _settle(self) -> None:
        if not self._waiting:
            return
        *columns, groups = zip(*self._waiting, strict=True)
        self._waiting.clear()
        counts = np.sum([np.bincount(group, minlength=len(self.keys)) for group in groups], axis=0)
        starts = np.concatenate([[0], np.cumsum(counts)])
        ys, ps, ws = columns
        p, (y, w) = run_parts(
            lambda: _dealt(ps, groups, starts), lambda: [_dealt(part, groups, starts) for part in (ys, ws)], starts[-1]
        )
        self._make_room([int(counts[parity::2].sum()) for parity in (0, 1)])

        def fill(parity: int) -> None:
            own = starts, parity, self._cell_of, self._fields[parity], self._used[parity]
            filled = buckets.fill_binary_cells(p, y, *own) if self._binary else buckets.fill_cells(p, y, w, *own)
            self._used[parity] = filled

        run_parts(lambda: fill(0), lambda: fill(1), len(p))

    def _make_room(self, rows: list[int]) -> None:
        """For all groups, and for as many new cells as these rows can fill."""
        if len(self.keys) > len(self._cell_of):
            most = MOST_CELLS // self._n_buckets
            if len(self.keys) > most:
                _refuse_groups(len(self.keys), self._n_buckets)
            groups = min(max(len(self.keys), 2 * len(self._cell_of)), most)
            more = np.full((groups, self._n_buckets), -1, np.int32)
            more[: len(self._cell_of)] = self._cell_of
            self._cell_of = more
        for parity in (0, 1):
            fields, used = self._fields[parity], self._used[parity]
            most = (len(self.keys) + 1 - parity) // 2 * self._n_buckets
            needed = min(used + rows[parity], most)
            if needed > len(fields):
                self._fields[parity] = _aligned(min(max(needed, 3 * len(fields) // 2), most), self._n_fields)
                self._fields[parity][:used] = fields[:used]

    def filled(self, weighted: bool) -> tuple[_Rows, _Rows, NDArray[np.float64]]:
        """For each cell its group, its bucket, and its fields by column."""
        self._settle()
        group, bucket = np.nonzero(self._cell_of >= 0)
        cell = self._cell_of[group, bucket]
        raw = np.empty((len(cell), self._n_fields))
        for parity in (0, 1):
            own = group % 2 == parity
            raw[own] = self._fields[parity][cell[own]]
        if not self._binary:
            fields = raw.T
            if not weighted:
                fields[[buckets.W, buckets.WW, buckets.WWCC]] = fields[[buckets.N, buckets.N, buckets.WCC]]
            return group, bucket, fields
        fields = np.empty((buckets.N_FIELDS, len(cell)))
        buckets.finish_binary_cells(raw, bucket, self._n_buckets, fields)
        return group, bucket, fields


def _refuse_groups(groups: int, n_buckets: int) -> NoReturn:
    enough = 1 << max(MOST_CELLS // groups, 1).bit_length() - 1
    cure = f"n_buckets={enough} would do for these, but fewer if there are more groups to come"
    if enough < 2:
        cure = "Name fewer columns in `by`, or coarser ones"
    raise ValueError(
        f"`by` makes {groups:,} groups so far, which are too many for n_buckets={n_buckets}: {groups * n_buckets:,} "
        f"buckets, and {MOST_CELLS:,} are the most that are kept. {cure}."
    )


def _labels(y: _Rows) -> NDArray[np.uint8] | None:
    """Outcomes as bytes, if they are all 0 or 1."""
    labels = np.empty(len(y), np.uint8)
    return None if prepare.binary_labels(read_only(y), labels) else labels


def _aligned(rows: int, fields: int) -> NDArray[np.float64]:
    """Zeros that begin with a cache line, so that a row of eight is one and not two."""
    raw = np.zeros(rows * fields * 8 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + rows * fields * 8].view(np.float64).reshape(rows, fields)


def _dealt(batches: Sequence[_Rows], groups: Sequence[_Rows], starts: _Rows) -> _Rows:
    """The values of the first group, then those of the second ..., from all batches."""
    out = np.empty(sum(map(len, batches)), np.result_type(*batches))
    at = starts[:-1].copy()
    for values, group in zip(batches, groups, strict=True):
        buckets.deal(values, group, at, out)
    return out


def _refuse(y: _Rows, p: _Rows, w: _Rows | None, first: int, roles: ColumnRoles, where: str) -> None:
    """Say what is wrong with the first of these rows that cannot be used, and with all rows like it."""
    code = codes_of_rows(y, p, w)
    found = {}
    for wrong in np.unique(code[code < row_codes.WEIGHTLESS]):
        column = (
            p if row_codes.PROBA_NULL >= wrong > row_codes.WEIGHT_NULL else y if wrong > row_codes.PROBA_NULL else w
        )
        values = np.asarray(column, dtype=np.float64)[code == wrong]
        low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        found[int(wrong)] = Found(len(values), low, high, first + int(np.argmax(code == wrong)))
    refuse_bad_rows(found, len(p), roles, where)


def codes_of_rows(y: _Rows, p: _Rows, w: _Rows | None) -> NDArray[np.int64]:
    """The code of each row that does not count; 0 for the others."""
    rules = [
        (np.isnan(y), row_codes.TRUE_NULL),
        (np.isinf(y), row_codes.TRUE_WILD),
        (~((y >= 0) & (y <= 1)), row_codes.TRUE_OUTSIDE),
        (np.isnan(p), row_codes.PROBA_NULL),
        (np.isinf(p), row_codes.PROBA_WILD),
        (~((p >= 0) & (p <= 1)), row_codes.PROBA_OUTSIDE),
    ]
    if w is not None:
        rules += [
            (np.isnan(w), row_codes.WEIGHT_NULL),
            (np.isinf(w), row_codes.WEIGHT_WILD),
            (w < 0, row_codes.WEIGHT_OUTSIDE),
            (w == 0, row_codes.WEIGHTLESS),
            ((w < SMALLEST_WEIGHT) | (w > LARGEST_WEIGHT), row_codes.WEIGHT_EXTREME),
        ]
    tests, values = zip(*rules, strict=True)
    return np.select(tests, values, 0)
