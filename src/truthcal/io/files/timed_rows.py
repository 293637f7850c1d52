"""Rows of files with their times, and with due times, groups and missing outcomes if asked for: for monitoring."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.times import Times
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import refuse_no_rows
from truthcal.io.files.accumulate import refuse_invalid_batch
from truthcal.io.files.decode import KeyNumbers
from truthcal.io.files.scan import BatchReader, RowBatch
from truthcal.io.files.source import RowNumbers, Source
from truthcal.io.files.time_column import decode_times

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimedColumns:
    """Names of the columns of times, of due times and of groups; and the unit of times that are integers."""

    time: str
    due: str | None = None
    group: str | None = None
    unit: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys(name for name in (self.time, self.due, self.group) if name is not None))


@dataclass(frozen=True, slots=True)
class TimedRows:
    """Rows in the order of the files. An unknown outcome is -1. `segments` and `groups` index into lists of keys."""

    y: _Ints
    p: NDArray[np.float64]
    time: Times
    due: Times | None
    segments: tuple[_Ints, list[Any]] | None
    groups: tuple[_Ints, list[Any]] | None
    batches: list[tuple[str, RowNumbers]]  # the file of each batch, and the numbers of its rows there

    def place(self, row: int) -> str:
        """Name a row by its number in its file."""
        for file, numbers in self.batches:
            if row < len(numbers):
                return f"row {numbers[row]} of {file}"
            row -= len(numbers)
        raise IndexError("there is no such row")


def read_timed_rows(sources: list[Source], roles: ColumnRoles, columns: TimedColumns) -> TimedRows:
    """Read all rows into memory: 17 bytes each, 8 more for each of due times, segments and groups.

    Outcomes may be missing if there is a column of due times. Raises if a row is invalid.
    """
    reader = BatchReader(sources, roles, extra_columns=columns.names)
    y, p, times, dues = [], [], [], []
    segments, groups = KeyNumbers(), KeyNumbers()
    batches = list[tuple[str, RowNumbers]]()
    for rows in reader:
        batches.append((str(rows.source), rows.numbers))
        y.append(_outcomes(rows, roles, may_miss=columns.due is not None))
        p.append(rows.ps[0].astype(np.float64))
        times.append(decode_times(rows.record, columns.time, rows.source, rows.numbers, columns.unit))
        if columns.due is not None:
            dues.append(decode_times(rows.record, columns.due, rows.source, rows.numbers, columns.unit))
        if rows.groups is not None:
            segments.add(*rows.groups)
        if columns.group is not None:
            groups.add(*rows.keys(columns.group, "groups", "Name the group of every row."))
    refuse_no_rows(sum(map(len, y)), reader.where)
    due = _joined(dues, str(columns.due), reader.where) if dues else None
    joined = _joined(times, columns.time, reader.where)
    return TimedRows(np.concatenate(y), np.concatenate(p), joined, due, segments.result(), groups.result(), batches)


def _outcomes(rows: RowBatch, roles: ColumnRoles, *, may_miss: bool) -> _Ints:
    """Check the rows of a batch; return outcomes of 0 and 1, and -1 where they are missing."""
    missing = np.isnan(rows.y) if may_miss and rows.y.dtype.kind == "f" else np.zeros(len(rows.y), np.bool_)
    known = np.where(missing, 0, rows.y)
    refuse_invalid_batch(known, rows.ps, None, rows.numbers, roles, str(rows.source))
    fractions = (known != 0) & (known != 1)
    if fractions.any():
        row = int(fractions.argmax())
        problem = f"must contain only 0 and 1 here; found {known[row]:g} at row {rows.numbers[row]}"
        raise invalid("y_true", f"{problem}.", subject=f"{rows.source}: column {roles.y_true!r}")
    return np.where(missing, -1, known).astype(np.int64)


def _joined(parts: list[Times], name: str, where: str) -> Times:
    """Join the times of all batches, which must be of one kind."""
    first = parts[0]
    for kind, what in (("counter", "are integers"), ("zoned", "have a time zone")):
        if any(getattr(part, kind) != getattr(first, kind) for part in parts):
            problem = f"must have one type in all files, but only some times {what}."
            raise invalid("time", problem, subject=f"{where}: column {name!r}")
    return Times(np.concatenate([part.values for part in parts]), first.counter, first.zoned)
