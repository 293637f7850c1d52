"""Rows of files reduced to one sketch for each window of time, in batches."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.sketch_table import SketchTable
from truthcal.core.times import Times
from truthcal.core.windows import Window, check_order, nested_windows, parse_window
from truthcal.inference.over_time import Span, WindowedRows, window_is_automatic
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.scan import BatchReader, RowBatch, SketchBuilder
from truthcal.io.files.time_column import decode_times

_BY = "window"
# Windows that are kept until the automatic choice is made: more are merged into longer ones.
_MOST_KEPT = 512


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """The time column, the specification of windows, and the unit of times that are integers."""

    column: str
    window: str = "auto"
    unit: str | None = None


class WindowBuilder:
    """Sketches of windows, from rows that are added in batches: a table for each prediction column.

    If the windows are chosen automatically, the first ones are short, and longer ones that contain them are used from
    then on whenever there are too many. At the end, all of them are merged into the chosen ones. Memory: as for that
    many groups.
    """

    def __init__(self, options: TimeOptions, roles: ColumnRoles, n_buckets: int) -> None:
        self._options, self._automatic = options, window_is_automatic(options.window)
        self._builder = SketchBuilder(replace(roles, by=(_BY,)), n_buckets)
        self._span: Span | None = None
        self._kind: Times | None = None  # the times of the first batch
        self._latest: int | None = None  # time of the last row, for windows of rows
        self._windows: list[Window] = []  # the one in use, and longer ones
        self._seen: set[int] = set()  # starts of windows
        self._first_times: dict[int, int] = {}  # of windows of rows, by the number of their first row

    def add(self, rows: RowBatch) -> None:
        """Add a batch. If a time is missing or invalid, raise."""
        times = decode_times(rows.record, self._options.column, rows.source, rows.numbers, self._options.unit)
        self._check_kind(times, rows)
        before = 0 if self._span is None else self._span.rows
        span = Span.of(times)
        self._span = span if self._span is None else self._span.joined(span)
        starts, index = np.unique(self._starts(times, before), return_inverse=True)
        if self._windows[0].kind == "rows":
            self._latest = check_order(times, self._latest)
            for start in starts.tolist():
                self._first_times.setdefault(start, int(times.values[max(start - before, 0)]))
        self._builder.add(replace(rows, groups=(index.astype(np.int32), [(start,) for start in starts.tolist()])))

    def _check_kind(self, times: Times, rows: RowBatch) -> None:
        """Choose the windows to begin with, once it is known what times are; reject times of another kind later."""
        if self._kind is None:
            self._kind = times
            window, counter = self._options.window, times.counter
            self._windows = (
                nested_windows(counter=counter) if self._automatic else [parse_window(window, counter=counter)]
            )
            self._windows[0].check_kind(times)
        for name, what in (("counter", "are integers"), ("zoned", "have a time zone")):
            if getattr(times, name) != getattr(self._kind, name):
                subject = f"{rows.source}: column {self._options.column!r}"
                raise invalid("time", f"must have one type in all files, but only some times {what}.", subject=subject)

    def _starts(self, times: Times, before: int) -> NDArray[np.int64]:
        """Return the start of the window of each row. If there are too many, use longer windows from now on."""
        starts = self._windows[0].starts(times, before)
        seen = self._seen | set(np.unique(starts).tolist())
        while self._automatic and len(seen) > _MOST_KEPT and len(self._windows) > 1:
            del self._windows[0]
            starts = self._windows[0].starts(times)
            seen = set(self._windows[0].starts_of(np.array(sorted(seen), np.int64)).tolist())
        self._seen = seen
        if self._span is not None:
            self._span.refuse_too_many(len(seen), self._windows[0])
        return starts

    def build(self, reader: BatchReader) -> dict[str, WindowedRows]:
        """Build the sketches of the windows of all rows of a reader."""
        tables = self._builder.build(reader)  # raises if there are no rows
        if self._span is None:
            return {}
        window = self._span.window_for(self._options.window)
        results = {}
        for name, table in tables.items():
            if isinstance(table, SketchTable):
                starts = list(table) if window.kind == "rows" else window.starts_of(np.array(list(table))).tolist()
                windows = table._with_keys([(start,) for start in starts])
                windows.neighbour_z = None if self._automatic else table.neighbour_z
                results[name] = WindowedRows.of_starts(windows, window, self._first_times, counter=self._span.counter)
        return results
