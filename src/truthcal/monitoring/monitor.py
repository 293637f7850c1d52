"""Monitor calibration over time: evidence that is valid at any number of looks."""

import copy
import json
import math
import struct
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, check_proba, check_rows, invalid, refuse_fractional
from truthcal.core.file_format import BinaryFile
from truthcal.core.frame_columns import named_columns_of_method
from truthcal.core.params import check_level
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.monitoring import state_file
from truthcal.monitoring.blocks import Blocks
from truthcal.monitoring.clock import Clock
from truthcal.monitoring.pending import PendingRow, PendingRows, ScoredRow
from truthcal.monitoring.rows import group_sums, plain_keys, sketch_sums
from truthcal.monitoring.summary import bias_sequence, main_error
from truthcal.monitoring.tilts import BUCKETS
from truthcal.results.monitor import MonitorStatus
from truthcal.results.text import count

_Ints = NDArray[np.int64]


class Monitor(BinaryFile):
    """Watch a stream of predictions and outcomes, and raise an alarm when they are no longer calibrated.

    Look as often as you like: a calibrated stream raises an alarm, ever, with a probability of at most `alpha`. The
    monitor also finds changes after a long time without errors. Its memory does not grow with the number of rows.

    Parameters
    ----------
    alpha : float, default 0.05
        Probability of a false alarm over the whole life of the monitor.
    window : str, optional
        Length of a window: "day", "week", "month", "7d", "12h". Then `time` is a date, a time or ISO text. Without it,
        `time` is the number of a window, counted from 0, and each `update` without `time` is a window of its own.
    start : date, datetime or str, optional
        A time in the first window. By default the first time that the monitor sees. Monitors can be merged only if
        their first windows are the same.

    Notes
    -----
    The null hypothesis is that each outcome, given everything scored before it, is 1 with the predicted probability.
    The evidence is a martingale under it (an e-process): a weighted average over start times and kinds of error of
    products of likelihood ratios. By Ville's inequality it ever reaches ``1 / alpha`` with a probability of at most
    `alpha`. It needs unweighted outcomes of 0 and 1.

    The evidence counts at the end of each window, and for the current window at the time of the call.
    The guide (docs/guide/monitoring.md) explains late outcomes, groups and merging; the theory
    (docs/theory/monitoring.md) has the proofs.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> monitor = tc.Monitor(window="week", start="2026-01-05")
    >>> for week in np.arange("2026-01-05", "2026-06-01", 7, dtype="datetime64[D]"):
    ...     p = rng.beta(2, 3, 400)
    ...     drift = 0.06 if week >= np.datetime64("2026-03-30") else 0.0
    ...     _ = monitor.update(rng.random(400) < p - drift, p, time=week)
    >>> print(monitor.status().verdict)
    Alarm since 2026-04-20: predictions have been too high since about 2026-03-30.
    """

    _MAGIC, _NOUN = b"TRUTHMON", "monitor"
    _HEADERS: ClassVar = {1: struct.Struct("<8sIQQQ")}

    def __init__(self, alpha: float = 0.05, *, window: str | None = None, start: object = None) -> None:
        self.alpha = check_level(alpha, "alpha")
        self._clock = Clock.of(window, start)
        self._blocks = Blocks()
        self._pending = PendingRows()
        self._open: list[ScoredRow] = []  # rows of groups in the current window
        self._peak = 0.0  # largest log evidence at the end of a window
        self._alarm_window: int | None = None

    # --- filling ---------------------------------------------------------------------------------------------------

    @named_columns_of_method
    def update(
        self,
        y_true: object,
        y_proba: object = None,
        time: object = None,
        groups: object = None,
        *,
        pos_label: object = None,
    ) -> Self:
        """Add rows with known outcomes, or a sketch of them. Returns the monitor itself.

        If a row is invalid, the monitor is unchanged. The same rows added twice count twice.

        Parameters
        ----------
        y_true : array-like, Sketch or SketchTable
            Outcomes, 0 or 1; or a sketch of rows without weights (then omit `y_proba`); or a table of sketches by one
            column of times, such as days (then omit `time`, too). With a data frame as first argument, names of its
            columns follow: ``update(frame, "y", "p", time="date")``.
        y_proba : array-like
            Predicted probabilities.
        time : int, date, datetime, str or array-like, optional
            The window of the rows, or the time of each. By default the window after the last one; with `window`, it is
            required. Rows of windows before the current one are refused: use `register` and `resolve` for outcomes
            that arrive late.
        groups : array-like, optional
            The group of each row, such as a patient or a match: rows of a group may depend on each other in any way.
            The rows of a group within a window count as one observation, when the window ends. A group in several
            windows must have been predicted with knowledge of its outcomes in earlier windows.
        pos_label : optional
            The label that counts as 1.
        """
        if isinstance(y_true, SketchTable):
            return self._update_table(y_true, y_proba, time, groups)
        if isinstance(y_true, Sketch):
            _refuse_beside_sketch(y_proba=y_proba, groups=groups)
            return self._add_window(sketch_sums(y_true), self._indices(time, None)[0])
        checked = check_rows(y_true, y_proba, pos_label=pos_label)
        refuse_fractional(checked.y)
        y, p = checked.y.astype(np.int64), checked.p.astype(np.float64)
        keys = None if groups is None else plain_keys(groups, "groups", len(p))
        index = self._indices(time, len(p))
        if len(index) == 1:
            return self._add_rows(y, p, keys, int(index[0]))
        for window in np.unique(index).tolist():
            rows = np.flatnonzero(index == window)
            self._add_rows(y[rows], p[rows], None if keys is None else [keys[i] for i in rows], window)
        return self

    def _update_table(self, table: SketchTable, y_proba: object, time: object, groups: object) -> Self:
        _refuse_beside_sketch(y_proba=y_proba, time=time, groups=groups)
        if len(table.by) != 1 or not len(table):
            columns = ", ".join(table.by)
            raise ValueError(f"the table must have one column, of times, and at least one group; it is by {columns}.")
        sums = [sketch_sums(table[key]) for key in table]
        index = self._indices(np.array(list(table), dtype=object), len(table))
        for place in np.argsort(index, kind="stable").tolist():
            self._add_window(sums[place], int(index[place]))
        return self

    def _indices(self, time: object, n: int | None) -> _Ints:
        """Return the window of each row, or one for all; nothing is added yet."""
        if time is None:
            if self._clock.window is not None:
                raise invalid("time", f"is required, because the monitor has windows of a {self._clock.window}.")
            return np.array([self._blocks.now + 1])
        if np.ndim(time) and n is None:  # type: ignore[arg-type]
            raise invalid("time", "must be one time for a sketch; use a SketchTable by day for several.")
        clock = copy.copy(self._clock)
        index = clock.indices(time)
        if np.ndim(time) and len(index) != n:  # type: ignore[arg-type]
            raise invalid("time", f"has {len(index)} rows but `y_proba` has {n}; they must match row by row.")
        if index.min() < self._blocks.now:
            early, now = clock.label(int(index.min())), clock.label(int(self._blocks.now))
            problem = f"has rows of {early}, but {now} has begun, so their window is closed"
            raise invalid("time", f"{problem}. Add windows in order; for late outcomes use register and resolve.")
        self._clock = clock
        return index

    def _add_rows(self, y: _Ints, p: NDArray[np.float64], keys: list[Any] | None, window: int) -> Self:
        if keys is None:
            return self._add_window(sketch_sums(Sketch(BUCKETS).update(y, p)), window)
        self._advance(window)
        self._open += map(ScoredRow, p.tolist(), y.tolist(), keys)
        return self

    def _add_window(self, sums: _Ints, window: int) -> Self:
        self._advance(window)
        self._blocks.add(sums)
        return self

    # --- late outcomes ---------------------------------------------------------------------------------------------

    def register(self, ids: object, y_proba: object, time: object, due: object = None, groups: object = None) -> Self:
        """Register predictions whose outcomes arrive later. Returns the monitor itself.

        Parameters
        ----------
        ids : array-like
            A name for each row, not used before: int, str, date or similar.
        y_proba : array-like
            Predicted probabilities.
        time : int, date, datetime or str
            When they were predicted.
        due : int, date, datetime, str or array-like, optional
            The window, or a time in it, at whose end the outcome is known. The row is scored then, even if its outcome
            arrives earlier; `status` counts rows that are overdue.
        groups : array-like, optional
            As for `update`. A group is scored as a whole, when each of its rows is known or overdue.
        """
        p = check_proba(y_proba, "y_proba").astype(np.float64)
        names = plain_keys(ids, "ids", len(p))
        keys = [None] * len(p) if groups is None else plain_keys(groups, "groups", len(p))
        clock = copy.copy(self._clock)
        now = clock.indices([time] if np.ndim(time) == 0 else time).max()  # type: ignore[arg-type]
        dues: list[int | None] = [None] * len(p)
        if due is not None:
            dues = np.broadcast_to(clock.indices(due, "due"), len(p)).tolist()
        self._pending.add(names, map(PendingRow, p.tolist(), dues, keys))
        self._clock = clock
        self._advance(max(int(now), self._blocks.now))
        return self

    def resolve(self, ids: object, y_true: object, time: object = None, *, pos_label: object = None) -> Self:
        """Add the outcomes of registered rows. Returns the monitor itself.

        Parameters
        ----------
        ids : array-like
            Names of registered rows.
        y_true : array-like
            Their outcomes, 0 or 1.
        time : int, date, datetime or str, optional
            When the outcomes arrived; by default in the current window.
        pos_label : optional
            The label that counts as 1.
        """
        y = check_rows(y_true, np.full(len(as_vector(y_true, "y_true")), 0.5), pos_label=pos_label).y
        refuse_fractional(y)
        names = plain_keys(ids, "ids", len(y))
        self._pending.check_ids(names)
        if time is not None:
            self.advance(time)
        now = max(self._blocks.now, 0)
        self._advance(now)
        outcomes = (self._pending.resolve(name, int(value), now) for name, value in zip(names, y, strict=True))
        self._score([row for row in outcomes if row is not None])
        return self

    def advance(self, time: object) -> Self:
        """Declare that all windows before this time are complete. Returns the monitor itself."""
        self._advance(int(self._indices(time, None)[0]))
        return self

    def _advance(self, window: int) -> None:
        """Go to a window: close the current one, and those on the way in which registered rows are due."""
        now = self._blocks.now
        if window <= now:
            return
        if now < 0:
            self._blocks.advance(now := 0)
        for end in sorted({now, *(due for due in self._pending.next_due(now) if due < window)}):
            if end < window:
                self._blocks.advance(end)
                self._close_window()
        self._blocks.advance(window)

    def _close_window(self) -> None:
        rows, self._open = [*self._open, *self._pending.due_at_end(self._blocks.now)], []
        self._score(rows)
        self._look(self._blocks.log_e_value(), self._blocks.now)

    def _score(self, rows: Iterable[ScoredRow]) -> None:
        rows = list(rows)
        alone = [row for row in rows if row.group is None]
        if alone:
            y, p = np.array([row.y for row in alone]), np.array([row.p for row in alone])
            self._blocks.add(sketch_sums(Sketch(BUCKETS).update(y, p)))
        grouped = [row for row in rows if row.group is not None]
        if grouped:
            self._blocks.add(group_sums(grouped))

    def _look(self, log_e: float, window: int) -> None:
        self._peak = max(self._peak, log_e)
        if log_e >= -math.log(self.alpha) and self._alarm_window is None:
            self._alarm_window = window

    # --- results ---------------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of scored rows."""
        return self._blocks.totals().n

    def status(self) -> MonitorStatus:
        """Return the evidence so far, whether there is an alarm, and the bias.

        Rows of groups in the current window, and rows that are due in it, count when it ends.
        """
        blocks, label, log_e = self._blocks, self._clock.label, self._blocks.log_e_value()
        peak, alarm = max(self._peak, log_e), self._alarm_window
        if alarm is None and log_e >= -math.log(self.alpha):
            alarm = blocks.now
        totals = blocks.totals()
        error, since = main_error(blocks) if totals.n else ("", 0)
        warning = self._pending.warning(blocks.now)
        overdue = len(self._pending.overdue(blocks.now))
        return MonitorStatus(
            alpha=self.alpha,
            log_e_value=log_e,
            pvalue=min(math.exp(-peak), 1.0),
            alarm=alarm is not None,
            alarm_since=None if alarm is None else label(alarm),
            error=error,
            since=label(since) if since else None,
            bias=bias_sequence(totals, self.alpha),
            mean_proba=totals.proba / totals.n if totals.n else math.nan,
            n=totals.n,
            n_units=totals.units,
            n_windows=blocks.now + 1,
            window=label(blocks.now) if blocks.now >= 0 else None,
            n_open=len(self._open),
            n_pending=len(self._pending.rows) - overdue,
            n_overdue=overdue,
            n_too_late=self._pending.too_late,
            n_due=int(self._pending.known[0]) + overdue,
            warnings=() if warning is None else (warning,),
        )

    def merge(self, other: "Monitor") -> Self:
        """Add all rows of another monitor, of other rows of the same windows. Returns the monitor itself.

        The result is the monitor that saw the rows of both, window by window, with the same sums to the last bit. What
        was seen at looks before the merge is replaced by the evidence of both at the ends of the windows that are still
        start times, so `pvalue` may be larger than that of one monitor which saw both from the beginning, never
        smaller. Rows of one group must not be divided between the two. `other` is unchanged.
        """
        if not isinstance(other, Monitor):
            raise TypeError(f"only a Monitor can be merged into a Monitor; got {type(other).__name__}.")
        self._refuse_other(other)
        self._pending.check_disjoint(other._pending)
        other = copy.deepcopy(other)
        for monitor, last in ((self, other._blocks.now), (other, self._blocks.now)):
            monitor._advance(last)
        if self._clock.origin is None:
            self._clock = other._clock
        self._blocks.merge(other._blocks)
        self._pending.merge(other._pending)
        self._open += other._open
        self._look_again()
        return self

    def _refuse_other(self, other: "Monitor") -> None:
        """Raise if another monitor cannot be merged."""
        for name, mine, others in (
            ("alpha", self.alpha, other.alpha),
            ("window", self._clock.window, other._clock.window),
            ("start", self._clock.origin, other._clock.origin),
        ):
            if mine != others and (name != "start" or None not in (mine, others)):
                given = [
                    clock.label(0) if name == "start" else v
                    for v, clock in ((others, other._clock), (mine, self._clock))
                ]
                problem = f"cannot merge a monitor with {name}={given[0]} into one with {name}={given[1]}"
                raise ValueError(f"{problem}; use the same `{name}`.")

    def _look_again(self) -> None:
        """Replace the looks so far by the evidence at the ends of all blocks with rows but the last, which is open."""
        self._peak, self._alarm_window = 0.0, None
        for end in np.flatnonzero(self._blocks.rows()[:-1]) + 1:
            self._look(self._blocks.log_e_value(int(end)), int(self._blocks.starts[end]) - 1)

    def __add__(self, other: object) -> "Monitor":
        if not isinstance(other, Monitor):
            return NotImplemented
        return copy.deepcopy(self).merge(other)

    def __radd__(self, other: object) -> "Monitor":
        if isinstance(other, int) and other == 0:  # the start value of sum(monitors)
            return copy.deepcopy(self)
        return NotImplemented

    def __deepcopy__(self, memo: object) -> "Monitor":
        return self.from_bytes(self.to_bytes())

    def __repr__(self) -> str:
        window = "" if self._clock.window is None else f", window={str(self._clock.window)!r}"
        windows = self._blocks.now + 1
        return f"Monitor(alpha={self.alpha:g}{window}): {count(self.n, 'row')} in {count(windows, 'window')}"

    # --- files -----------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def to_bytes(self) -> bytes:
        """Return the monitor in truthcal's file format: compressed, versioned, checksummed, no pickle."""
        meta = {
            "alpha": self.alpha.hex(),
            "window": self._clock.window_to_json(),
            "origin": self._clock.origin,
            "now": self._blocks.now,
            "peak": self._peak.hex(),
            "alarm": self._alarm_window,
            "pending": state_file.pack_pending(self._pending),
            "open": state_file.pack_open(self._open),
        }
        text, blocks = state_file.pack_meta(meta), state_file.pack_blocks(self._blocks)
        return self._sealed(1, (len(self._blocks.starts), len(text), len(blocks)), text, blocks)

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        _, (n_blocks, size, _), body = cls._opened(data, name, {1: lambda _, text, blocks: text + blocks})
        try:
            meta = json.loads(bytes(body[:size]))
            monitor = cls(float.fromhex(meta["alpha"]))
            monitor._clock = Clock.from_json(meta["window"], meta["origin"])
            blocks = state_file.unpack_blocks(body[size:], n_blocks, meta["now"])
            monitor._peak, monitor._alarm_window = float.fromhex(meta["peak"]), meta["alarm"]
            monitor._pending = state_file.unpack_pending(meta["pending"])
            monitor._open = state_file.unpack_open(meta["open"])
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            blocks = None
        if blocks is None:
            raise ValueError(f"{name}: the monitor is inconsistent; it was not written by truthcal.")
        monitor._blocks = blocks
        return monitor


def _refuse_beside_sketch(**arguments: object) -> None:
    """Reject arguments that a sketch makes meaningless."""
    for name, value in arguments.items():
        if value is not None:
            raise invalid(name, "must be omitted for a sketch, which has the sums of its rows already.")
