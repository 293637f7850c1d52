"""The state of `truthcal watch`: monitors, and a record of each closed window, which is final."""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.file_format import BinaryFile
from truthcal.core.group_keys import Key
from truthcal.core.group_sums import FEWEST_GROUPS
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.core.windows import Window
from truthcal.inference.error_size import error_size
from truthcal.monitoring.clock import Clock
from truthcal.monitoring.monitor import Monitor
from truthcal.monitoring.pending import missing_warning
from truthcal.monitoring.rows import sketch_sums
from truthcal.monitoring.segments import MonitorTable
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.watch import WatchedWindow, WatchResult

# Windows whose records are kept.
_MOST_WINDOWS = 2000


@dataclass(frozen=True, slots=True)
class WindowRows:
    """The rows of one window: outcomes and predictions, or a sketch of them; and predictions without an outcome.

    `segments` has the segment of each row, or is a table of sketches. `times` and `counts` say when the rows were.
    """

    y: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    p: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    segments: list[Key] | SketchTable | None = None
    groups: list[Any] | None = None
    missing: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    sketch: Sketch | None = None
    times: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: NDArray[np.int64] | None = None  # rows of each time; None: one

    @property
    def n_all(self) -> int:
        """Number of rows, with and without an outcome."""
        return self.n + len(self.missing)

    def n_until(self, time: int) -> int:
        """Number of rows up to a time, with and without an outcome."""
        return int(np.sum((self.times <= time) * (1 if self.counts is None else self.counts)))

    @property
    def n(self) -> int:
        """Number of rows with an outcome."""
        return len(self.p) if self.sketch is None else self.sketch.n

    @property
    def mean_proba(self) -> float:
        """Mean prediction of the rows with an outcome; nan if there are none."""
        if not self.n:
            return math.nan
        return float(self.p.mean()) if self.sketch is None else float(self.sketch.table()["wp"].sum() / self.n)

    @property
    def mean_true(self) -> float:
        """Mean outcome; nan if there are no rows."""
        if not self.n:
            return math.nan
        return float(self.y.mean()) if self.sketch is None else self.mean_proba - self.sketch.bias()


class OpenWindow(NamedTuple):
    """Rows of a window that was not closed yet, as an earlier run saw them: their latest time and their number."""

    last: int
    n: int


class Watch(BinaryFile):
    """Monitors of a stream of files, and a record of each closed window.

    `setup` holds the options that must not change between runs, `window` and `first` the windows.
    """

    _MAGIC, _NOUN = b"TRUTHWCH", "state of `truthcal watch`"
    _HEADERS: ClassVar = {1: struct.Struct("<8sIQQ")}

    def __init__(self, setup: dict[str, Any], window: Window, first: int) -> None:
        self.setup, self.window = setup, window
        self.monitors = MonitorTable(setup["by"] or ["all"], setup["alpha"])
        self.monitors.total._clock = Clock(window, first)
        self.history: list[WatchedWindow] = []
        self.open: dict[int, OpenWindow] = {}
        self._missing, self._known = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]

    @property
    def total(self) -> Monitor:
        """The monitor of all rows."""
        return self.monitors.total

    @property
    def next_start(self) -> int | None:
        """Start of the first window that is not closed; None before the first."""
        return self.window.next_start(self.history[-1].start) if self.history else None

    def process(self, start: int, rows: WindowRows) -> WatchedWindow:
        """Score the rows of the window that starts at `start`, and close it."""
        index = self.total._clock.index_of(start)
        if rows.n:
            self._add(rows, index)
        self.monitors._close_window(index)
        for sums, p in ((self._known, rows.p), (self._missing, rows.missing)):
            sums[:] = [sums[0] + len(p), sums[1] + float(p.sum()), sums[2] + float((p * p).sum())]
        record = self._record(start, rows)
        self.history = [*self.history, record][-_MOST_WINDOWS:]
        self.open.pop(start, None)
        return record

    def remember_open(self, windows: Mapping[int, WindowRows]) -> bool:
        """Remember the rows of windows that are not closed yet; return whether this changed the state."""
        before, following = dict(self.open), self.next_start
        for start, rows in windows.items():
            if len(rows.times) and (following is None or start >= following):
                seen = self.open.get(start)
                if seen is None or rows.n_until(seen.last) >= seen.n:  # otherwise this run has fewer rows
                    self.open[start] = OpenWindow(int(rows.times.max()), rows.n_all)
        return self.open != before

    def _add(self, rows: WindowRows, index: int) -> None:
        if isinstance(rows.segments, SketchTable):
            sums = {
                (key if isinstance(key, tuple) else (key,)): sketch_sums(rows.segments[key]) for key in rows.segments
            }
            self.monitors._add_sums(sketch_sums(rows.segments.total()), sums, index)
        elif rows.sketch is not None:
            self.total._add_window(sketch_sums(rows.sketch), index)
        elif rows.segments is not None:
            self.monitors._add_rows(rows.y, rows.p, rows.segments, rows.groups, index)
        else:
            self.total._add_rows(rows.y, rows.p, rows.groups, index)

    def _record(self, start: int, rows: WindowRows) -> WatchedWindow:
        return WatchedWindow(
            label=self.window.label(start),
            start=start,
            n=rows.n,
            n_overdue=len(rows.missing),
            mean_proba=rows.mean_proba,
            mean_true=rows.mean_true,
            error=_error_of(rows),
            log_e_value=self.total._blocks.log_e_value(),
            alarm=self.total._alarm_window is not None,
        )

    def result(self) -> WatchResult:
        """Return the evidence so far and the records of the windows."""
        warning = missing_warning(self._missing, self._known)
        segments = self.monitors.status() if self.setup["by"] else None
        warnings = () if warning is None else (warning,)
        return WatchResult(self.total.status(), segments, tuple(self.history), warnings)

    # --- files -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the state in truthcal's file format. The same windows give the same bytes."""
        meta = {
            "setup": self.setup,
            "missing": [self._missing, self._known],
            "open": [[start, *seen] for start, seen in sorted(self.open.items())],
            "history": [
                [w.start, w.n, w.n_overdue, w.mean_proba, w.mean_true, _error_to_json(w.error), w.log_e_value, w.alarm]
                for w in self.history
            ],
        }
        text, monitors = json.dumps(meta, separators=(",", ":")).encode("ascii"), self.monitors.to_bytes()
        return self._sealed(1, (len(text), len(monitors)), text, monitors)

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        _, (size, _), body = cls._opened(data, name, {1: lambda text, monitors: text + monitors})
        try:
            meta = json.loads(bytes(body[:size]))
            monitors = MonitorTable.from_bytes(bytes(body[size:]))
            clock = monitors.total._clock
            assert clock.window is not None
            assert clock.origin is not None
            watch = cls(meta["setup"], clock.window, clock.origin)
            watch.monitors = monitors
            watch._missing, watch._known = meta["missing"]
            watch.open = {start: OpenWindow(*seen) for start, *seen in meta["open"]}
            watch.history = [
                WatchedWindow(clock.window.label(start), start, n, late, p, y, _error_from_json(error), log_e, alarm)
                for start, n, late, p, y, error, log_e, alarm in meta["history"]
            ]
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AssertionError):
            raise ValueError(f"{name}: the {cls._NOUN} is inconsistent; it was not written by truthcal.") from None
        return watch


def _error_of(rows: WindowRows) -> ConfidenceInterval:
    """Return the size of the error of a window alone, if there are rows and, for rows in groups, enough groups."""
    if rows.n and rows.sketch is not None:
        return error_size(rows.sketch)
    why = "there are no rows"
    if rows.n:
        if rows.groups is None or len(set(rows.groups)) >= FEWEST_GROUPS:
            return error_size(rows.y, rows.p, groups=rows.groups)
        why = f"there are fewer than {FEWEST_GROUPS} groups of rows"
    return ConfidenceInterval(math.nan, math.nan, 0.95, "error", math.nan, "none", why)


def _error_to_json(error: ConfidenceInterval) -> list[Any]:
    return [error.low, error.high, error.estimate, error.method, error.why, error.noise_removed]


def _error_from_json(content: list[Any]) -> ConfidenceInterval:
    low, high, estimate, method, why, removed = content
    return ConfidenceInterval(low, high, 0.95, "error", estimate, method, why, removed)
