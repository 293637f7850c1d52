"""Accumulators: rows of batches added to the buckets of one sketch, or of one for each group."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT, invalid, read_only
from truthcal.core.grid import Grid
from truthcal.core.group_hash import Hashes
from truthcal.core.group_keys import checked_key
from truthcal.core.parallel import parts_of, run_tasks
from truthcal.core.sketch import Sketch, empty_scratch
from truthcal.io import row_codes
from truthcal.io.assemble import Groups, columns_without_weights
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import BadRows, refuse_bad_rows
from truthcal.io.files.source import RowNumbers
from truthcal.io.row_codes import Check, rules_for
from truthcal.io.segment_flips import SegmentFlips
from truthcal.kernels import buckets
from truthcal.kernels import rows as kernel

_Rows = NDArray[Any]
_NO_WEIGHTS = np.empty(0)
_PLAIN_ROWS = 1 << 24  # to add up in plain sums before these join sums with compensated rounding errors
_MOST_PARTS = 8  # of a batch, each with its own sums
_SORT_ROWS = 1 << 21  # to collect before they are sorted by group
MAX_CELLS = 1 << 28  # buckets of all groups together, filled or not: their indices take 1 GB


class BucketAccumulator:
    """Sums of all rows so far, by bucket and group.

    Memory: 1.2 MB. With groups 60 MB, and for each group 4 bytes a bucket and 64 a filled one; with weights or
    fractional outcomes 90 MB, and 128 bytes a filled bucket.
    """

    def __init__(self, roles: ColumnRoles, n_buckets: int) -> None:
        self._roles, self._n_buckets, self._sketch = roles, n_buckets, Sketch(n_buckets)
        self._scratch: dict[int, NDArray[np.float64]] = {}  # one for each part of a batch
        self._rows = self._plain_rows = 0
        self.flips = SegmentFlips(self._sketch.grid)
        self._cells = {binary: _Cells(n_buckets, binary) for binary in (False, True)}

    def add(
        self,
        y: _Rows,
        p: _Rows,
        w: _Rows | None,
        groups: Groups | None,
        numbers: RowNumbers,
        where: str,
        hashes: Hashes | None = None,
    ) -> None:
        """Add rows, with their segments and the hashes of their groups if there are any.

        If a row is invalid, raise; `numbers` has the row numbers for the error.
        """
        if groups is not None:  # normalized: two times in a time zone may be equal for Python and still differ
            groups = groups[0], [checked_key(key, self._roles.by) for key in groups[1]]
        others = self._add_binary(y, p) if w is None and groups is None else None
        if others is None or len(others):
            rows = (y, p, w) if others is None else (y[others], p[others], None)
            labels = _binary_labels(y) if groups is not None and w is None else None
            cells = self._cells[labels is not None]
            if cells.add(rows[0] if labels is None else labels, *rows[1:], groups):
                _raise_for_batch(y, p, w, numbers, self._roles, where)
        self._rows += len(p)
        if hashes is not None:
            self.flips.add_rows(p, y, w, hashes, groups)

    def _add_binary(self, y: _Rows, p: _Rows) -> _Rows:
        """Add all valid rows with outcomes 0 or 1; return the indices of the others."""
        y, p, grid = read_only(y), read_only(p), self._sketch.grid.tables

        parts = parts_of(len(p), _MOST_PARTS)
        for part in range(len(self._scratch), len(parts)):
            self._scratch[part] = empty_scratch(self._n_buckets)

        def add(part: int, first: int, last: int) -> int:
            return buckets.sketch_binary(p[first:last], y[first:last], grid, self._scratch[part])

        self._plain_rows += len(p)
        skipped = sum(run_tasks([partial(add, k, *part) for k, part in enumerate(parts)], len(p)))
        if self._plain_rows >= _PLAIN_ROWS:
            self._flush()
        return np.flatnonzero(~((p >= 0) & (p <= 1) & ((y == 0) | (y == 1)))) if skipped else np.empty(0, np.int64)

    def _flush(self) -> None:
        """Add the plain sums to the sketch."""
        for scratch in self._scratch.values():
            self._sketch._add_scratch(scratch)
        self._scratch.clear()
        self._plain_rows = 0

    def table(self) -> tuple[dict[str, Any], Groups | None]:
        """Return all sums so far as a table by code, and its groups."""
        self._flush()
        parts = [cells.filled(self._roles.sample_weight is not None) for cells in self._cells.values()]
        groups: Groups | None = None
        if self._roles.by:
            parts[1][0][:] += len(self._cells[False].keys)
            # Without a copy if all cells are of one kind.
            used = [part for part in parts if len(part[0])] or parts[:1]
            group, code, fields = (
                pair[0] if len(pair) == 1 else np.concatenate(pair, axis=-1) for pair in zip(*used, strict=True)
            )
            groups = group, [key for cells in self._cells.values() for key in cells.keys]
        else:
            _, code, fields = parts[0]
            self._sketch.merge(Sketch._from_columns(self._sketch.grid, code, fields, "cells contradict themselves"))
            code, fields = self._sketch._filled()
        if not len(code):  # no rows with weight
            code, fields, groups = np.array([row_codes.ZERO_WEIGHT]), np.zeros((buckets.N_FIELDS, 1)), None
            fields[buckets.N] = self._rows
        return {"code": code, **dict(zip(row_codes.WEIGHTED, fields, strict=True))}, groups


class _Cells:
    """The filled buckets (cells) of all groups. One thread fills those of every eighth group.

    `binary` cells take unweighted rows with bytes 0 and 1 as outcomes.
    """

    def __init__(self, n_buckets: int, binary: bool) -> None:
        self._n_buckets, self._binary, self._grid = n_buckets, binary, Grid.of_size(n_buckets).tables
        self._n_fields = buckets.SCRATCH_FIELDS if binary else buckets.N_FIELDS
        self.keys: dict[Any, int] = {}
        self._cell_of = np.full((1, n_buckets), -1, np.int32)
        self._fields = [_new_cells(0, self._n_fields) for _ in range(buckets.GROUP_CLASSES)]
        self._used = [0] * buckets.GROUP_CLASSES
        self._waiting: list[tuple[_Rows, ...]] = []

    def add(self, y: _Rows, p: _Rows, w: _Rows | None, groups: Groups | None) -> int:
        """Add rows; if some are invalid, add none and return how many.

        Rows wait until there are many: then each group has enough of them to keep its cells in the cache.
        """
        index, keys = groups or (np.zeros(len(p), np.int32), [()])
        y = y if y.dtype == np.uint8 else y.astype(np.float64)
        weights = _NO_WEIGHTS if w is None else w
        if n_invalid := kernel.count_invalid(p, y, weights, SMALLEST_WEIGHT, LARGEST_WEIGHT):
            return n_invalid
        numbers = np.array([self.keys.setdefault(key, len(self.keys)) for key in keys], dtype=np.int32)
        self._waiting.append((y, p, weights, numbers[index]))
        if sum(len(rows[0]) for rows in self._waiting) >= _SORT_ROWS:
            self._flush()
        return 0

    def _flush(self) -> None:
        """Sort the waiting rows by group and add them to the cells."""
        if not self._waiting:
            return
        *columns, groups = zip(*self._waiting, strict=True)
        self._waiting.clear()
        counts = np.sum([np.bincount(group, minlength=len(self.keys)) for group in groups], axis=0)
        starts = np.concatenate([[0], np.cumsum(counts)])
        y, p, w = run_tasks([partial(_by_group, column, groups, starts) for column in columns], int(starts[-1]))
        classes = range(buckets.GROUP_CLASSES)
        self._make_room([int(counts[first :: len(classes)].sum()) for first in classes])

        def fill(first: int) -> None:
            cells = self._grid, starts, first, self._cell_of, self._fields[first], self._used[first]
            used = buckets.fill_binary_cells(p, y, *cells) if self._binary else buckets.fill_cells(p, y, w, *cells)
            self._used[first] = used

        run_tasks([partial(fill, first) for first in classes], len(p))

    def _make_room(self, rows: list[int]) -> None:
        """Allocate for all groups, and for as many new cells as these rows can fill."""
        if len(self.keys) > len(self._cell_of):
            max_groups = MAX_CELLS // self._n_buckets
            if len(self.keys) > max_groups:
                _refuse_too_many_groups(len(self.keys), self._n_buckets)
            groups = min(max(len(self.keys), 2 * len(self._cell_of)), max_groups)
            more = np.full((groups, self._n_buckets), -1, np.int32)
            more[: len(self._cell_of)] = self._cell_of
            self._cell_of = more
        for first, (fields, used) in enumerate(zip(self._fields, self._used, strict=True)):
            limit = len(range(first, len(self.keys), buckets.GROUP_CLASSES)) * self._n_buckets
            needed = min(used + rows[first], limit)
            if needed > len(fields):
                self._fields[first] = _new_cells(min(max(needed, 3 * len(fields) // 2), limit), self._n_fields)
                self._fields[first][:used] = fields[:used]

    def filled(self, weighted: bool) -> tuple[_Rows, _Rows, NDArray[np.float64]]:
        """Return the group of each cell, its bucket, and its fields by column."""
        self._flush()
        group, bucket = np.nonzero(self._cell_of >= 0)
        cell = self._cell_of[group, bucket]
        raw = np.empty((len(cell), self._n_fields))
        for first, filled in enumerate(self._fields):
            rows = group % buckets.GROUP_CLASSES == first
            raw[rows] = filled[cell[rows]]
        fields = np.empty((buckets.N_FIELDS, len(cell))) if self._binary else raw.T
        if self._binary:
            buckets.finish_binary_cells(raw, bucket, self._grid, fields)
        elif not weighted:
            table = dict(zip(row_codes.WEIGHTED, fields, strict=True))
            for name, column in columns_without_weights(table).items():
                table[name][:] = column
        return group, bucket, fields


def _refuse_too_many_groups(groups: int, n_buckets: int) -> NoReturn:
    possible = 1 << max(MAX_CELLS // groups, 1).bit_length() - 1
    problem = (
        f"has {groups:,} groups so far, too many for {n_buckets:,} buckets each: that is {groups * n_buckets:,} "
        f"buckets, and the limit is {MAX_CELLS:,}."
    )
    if possible < 2:
        raise invalid("by", f"{problem} Name fewer columns, or coarser ones.")
    raise invalid("by", f"{problem} Use fewer buckets, for example", fix=("n_buckets", possible))


def _binary_labels(y: _Rows) -> NDArray[np.uint8] | None:
    """Return the outcomes to accumulate as bytes if they are all 0 or 1; else None."""
    labels = np.empty(len(y), np.uint8)
    return None if kernel.binary_labels(read_only(y), labels) else labels


def _new_cells(rows: int, fields: int) -> NDArray[np.float64]:
    """Return empty buckets to accumulate in, aligned to cache lines: a row of eight floats is in one line, not two."""
    raw = np.zeros(rows * fields * 8 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + rows * fields * 8].view(np.float64).reshape(rows, fields)


def _by_group(batches: Sequence[_Rows], groups: Sequence[_Rows], starts: _Rows) -> _Rows:
    """Return the accumulated values of all batches: those of the first group, then those of the second, and so on."""
    out = np.empty(sum(map(len, batches)), np.result_type(*batches))
    at = starts[:-1].copy()
    for values, group in zip(batches, groups, strict=True):
        kernel.sort_by_group(values, group, at, out)
    return out


def refuse_invalid_batch(
    y: _Rows, ps: list[_Rows], w: _Rows | None, numbers: RowNumbers, roles: ColumnRoles, where: str
) -> None:
    """Raise if a row of a batch that is not accumulated is invalid for one of the models."""
    weights_valid = w is None or bool(((w == 0.0) | ((w >= SMALLEST_WEIGHT) & (w <= LARGEST_WEIGHT))).all())
    for name, p in zip(roles.y_probas, ps, strict=True):
        if kernel.count_outside_unit(p) or kernel.count_outside_unit(y) or not weights_valid:
            _raise_for_batch(y, p, w, numbers, roles.for_model(name), where)


def _raise_for_batch(y: _Rows, p: _Rows, w: _Rows | None, numbers: RowNumbers, roles: ColumnRoles, where: str) -> None:
    """Raise for a batch that cannot be accumulated: for the first rule that rows break, with all rows that break it."""
    codes = codes_of_batch(y, p, w)
    columns = {"y_true": y, "y_proba": p, "sample_weight": w}
    bad_rows = {}
    for rule in rules_for(weighted=w is not None):
        rows = codes == rule.code
        if rule.check != "zero" and rows.any():
            values = np.asarray(columns[rule.role], dtype=np.float64)[rows]
            low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
            row = int(numbers[int(np.argmax(rows))])
            bad_rows[rule.code] = BadRows(len(values), low, high, row, float(values[0]))
    refuse_bad_rows(bad_rows, int(numbers[-1]) + 1, roles, where)


# The rules of `row_codes` for arrays, where a missing number is nan.
_BREAKS: dict[Check, Callable[[_Rows], NDArray[np.bool_]]] = {
    "missing": np.isnan,
    "nonfinite": np.isinf,
    "outside_unit": lambda x: ~((x >= 0) & (x <= 1)),
    "negative": lambda x: x < 0,
    "zero": lambda x: x == 0,
    "extreme": lambda x: (x < SMALLEST_WEIGHT) | (x > LARGEST_WEIGHT),
}


def codes_of_batch(y: _Rows, p: _Rows, w: _Rows | None) -> NDArray[np.int64]:
    """Return the code of each row of a batch that is not accumulated; 0 for the others."""
    columns: dict[str, Any] = {"y_true": y, "y_proba": p, "sample_weight": w}
    rules = rules_for(weighted=w is not None)
    broken = [_BREAKS[rule.check](columns[rule.role]) for rule in rules]
    return np.select(broken, np.array([rule.code for rule in rules]), 0)
