"""Rows that stream by, added to buckets as they come: for one sketch, or for one for each group."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal._kernels import buckets
from truthcal._threads import in_halves
from truthcal._validation import LARGEST_WEIGHT, SMALLEST_WEIGHT, read_only
from truthcal.frames import codes
from truthcal.frames.finishing import Groups
from truthcal.frames.refusals import Found, refuse_bad_rows
from truthcal.frames.roles import Roles
from truthcal.sketch import Sketch

_Rows = NDArray[Any]
_NO_WEIGHTS = np.empty(0)
# So many rows are added up plainly before they join sums that keep their rounding errors.
_PLAIN_ROWS = 1 << 24


class Filler:
    """Sums of all rows so far. Memory: 0.8 MB, and for each group 4 bytes a bucket and 96 a filled one."""

    def __init__(self, roles: Roles, n_buckets: int) -> None:
        self._roles, self._n_buckets = roles, n_buckets
        self._rows = 0
        self._sketch = Sketch(n_buckets)
        self._scratch: dict[int, NDArray[np.float64]] = {}  # of the two halves of every batch
        self._plain_rows = 0
        self._cells = _Cells(n_buckets)

    def add(self, y: _Rows, p: _Rows, w: _Rows | None, groups: Groups | None, first: int, where: str) -> None:
        """Add rows. If any cannot be used, the error says so of the `first` and later rows of `where`."""
        others: _Rows | None = None
        if w is None and groups is None:
            others = self._add_binary(y, p)
        if others is None or len(others):
            rows = (y, p, w) if others is None else (y[others], p[others], None)
            if self._cells.add(*rows, groups):
                _refuse(y, p, w, first, self._roles, where)
        self._rows += len(p)

    def _add_binary(self, y: _Rows, p: _Rows) -> _Rows:
        """Add all rows with outcomes 0 or 1; returns which ones are left."""
        y, p = read_only(y), read_only(p)

        def half(first: int, last: int) -> int:
            scratch = self._scratch.get(first > 0)
            if scratch is None:
                scratch = self._scratch[first > 0] = _empty_scratch(self._n_buckets)
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
        group, code, fields = self._cells.filled()
        if self._roles.sample_weight is None:
            fields[[buckets.W, buckets.WW, buckets.WWCC]] = fields[[buckets.N, buckets.N, buckets.WCC]]
        if not self._roles.by:
            self._sketch.merge(Sketch._from_columns(self._n_buckets, code, fields, "cells contradict themselves"))
            code, fields = self._sketch._filled()
            group = np.zeros(len(code), np.int64)
        weightless = np.zeros((len(fields), 1))
        weightless[buckets.N] = self._rows - fields[buckets.N].sum()
        code, fields = np.append(code, codes.WEIGHTLESS), np.append(fields, weightless, axis=1)
        table = {"code": code, **dict(zip(codes.WEIGHTED, fields, strict=True))}
        return table, (np.append(group, 0), list(self._cells.keys)) if self._roles.by else None


class _Cells:
    """The filled buckets of all groups."""

    def __init__(self, n_buckets: int) -> None:
        self.keys: dict[Any, int] = {}
        self._n_buckets = n_buckets
        self._cell_of = np.full((1, n_buckets), -1, np.int32)
        self._fields = np.zeros((0, buckets.N_FIELDS))
        self._used = 0

    def add(self, y: _Rows, p: _Rows, w: _Rows | None, groups: Groups | None) -> int:
        """Add rows; if some are not legal, add none and return how many."""
        index, keys = groups or (np.zeros(len(p), np.int32), [()])
        y = y if y.dtype == np.uint8 else y.astype(np.float64)
        counts = np.zeros(len(keys), np.int64)
        given = _NO_WEIGHTS if w is None else w
        others = buckets.count_groups(p, y, given, index, SMALLEST_WEIGHT, LARGEST_WEIGHT, counts)
        if others:
            return others
        number = np.array([self.keys.setdefault(key, len(self.keys)) for key in keys])
        self._make_room(len(p))
        starts = np.concatenate([[0], np.cumsum(counts)])
        if len(keys) > 1:
            y, p, given = (_dealt(column, index, starts) for column in (y, p, given))
        self._used = buckets.fill_cells(p, y, given, starts, number, self._cell_of, self._fields, self._used)
        return 0

    def _make_room(self, rows: int) -> None:
        """For all groups, and for as many new cells as these rows can fill."""
        if len(self.keys) > len(self._cell_of):
            more = np.full((max(len(self.keys), 2 * len(self._cell_of)), self._n_buckets), -1, np.int32)
            more[: len(self._cell_of)] = self._cell_of
            self._cell_of = more
        needed = min(self._used + rows, len(self.keys) * self._n_buckets)
        if needed > len(self._fields):
            fields = np.zeros((max(needed, 3 * len(self._fields) // 2), buckets.N_FIELDS))
            fields[: self._used] = self._fields[: self._used]
            self._fields = fields

    def filled(self) -> tuple[_Rows, _Rows, NDArray[np.float64]]:
        """For each cell its group, its bucket, and its fields by column."""
        group, bucket = np.nonzero(self._cell_of >= 0)
        return group, bucket, self._fields[self._cell_of[group, bucket]].T


def _dealt(values: _Rows, index: _Rows, starts: _Rows) -> _Rows:
    out = np.empty_like(values)
    buckets.deal(values, index, starts, out)
    return out


def _empty_scratch(n_buckets: int) -> NDArray[np.float64]:
    scratch = np.zeros((n_buckets, buckets.SCRATCH_FIELDS))
    scratch[:, 6], scratch[:, 7] = np.inf, -np.inf
    return scratch.reshape(-1)


def _refuse(y: _Rows, p: _Rows, w: _Rows | None, first: int, roles: Roles, where: str) -> None:
    """Say what is wrong with the first of these rows that cannot be used, and with all rows like it."""
    code = row_codes(y, p, w)
    found = {}
    for wrong in np.unique(code[code < codes.WEIGHTLESS]):
        column = p if codes.PROBA_NULL >= wrong > codes.WEIGHT_NULL else y if wrong > codes.PROBA_NULL else w
        values = np.asarray(column, dtype=np.float64)[code == wrong]
        low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        found[int(wrong)] = Found(len(values), low, high, first + int(np.argmax(code == wrong)))
    refuse_bad_rows(found, len(p), roles, where)


def row_codes(y: _Rows, p: _Rows, w: _Rows | None) -> NDArray[np.int64]:
    """The code of each row that does not count; 0 for the others."""
    rules = [
        (np.isnan(y), codes.TRUE_NULL),
        (np.isinf(y), codes.TRUE_WILD),
        (~((y >= 0) & (y <= 1)), codes.TRUE_OUTSIDE),
        (np.isnan(p), codes.PROBA_NULL),
        (np.isinf(p), codes.PROBA_WILD),
        (~((p >= 0) & (p <= 1)), codes.PROBA_OUTSIDE),
    ]
    if w is not None:
        rules += [
            (np.isnan(w), codes.WEIGHT_NULL),
            (np.isinf(w), codes.WEIGHT_WILD),
            (w < 0, codes.WEIGHT_OUTSIDE),
            (w == 0, codes.WEIGHTLESS),
            ((w < SMALLEST_WEIGHT) | (w > LARGEST_WEIGHT), codes.WEIGHT_EXTREME),
        ]
    tests, values = zip(*rules, strict=True)
    return np.select(tests, values, 0)
