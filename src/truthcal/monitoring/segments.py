"""Monitors of segments: one for each, and one for all rows, with control of the false discovery rate."""

import copy
import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import check_rows, invalid, refuse_fractional
from truthcal.core.file_format import BinaryFile
from truthcal.core.frame_columns import named_columns_of_method
from truthcal.core.group_keys import (
    Key,
    check_by,
    checked_key,
    ordered_keys,
    printed,
    to_json,
    users_key,
    value_from_json,
)
from truthcal.core.params import shown
from truthcal.core.sketch_table import SketchTable
from truthcal.monitoring.monitor import Monitor
from truthcal.monitoring.rows import plain_keys, sketch_sums
from truthcal.results.monitor import MonitorSegments, MonitorStatus
from truthcal.results.text import count


class MonitorTable(BinaryFile, Mapping[Any, Monitor]):
    """One `Monitor` for each segment, and one for all rows: a mapping from segments to monitors.

    Parameters
    ----------
    by : str or list of str
        Names of the columns that define the segments.
    alpha, window, start
        As for `Monitor`. The monitor of all rows has level `alpha`; among the segments that are listed as
        miscalibrated, the expected share of false ones is at most `alpha`, too (e-BH), however segments depend on each
        other.

    Notes
    -----
    The list of segments is valid at one moment, which you may choose by looking at the evidence, for example the first
    time that a segment is listed. The union of the lists of all moments is not covered.

    Memory: about 0.4 MB per segment after 200 windows.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> table = tc.MonitorTable(by="region")
    >>> for week in range(20):
    ...     p = rng.beta(2, 3, 600)
    ...     region = np.array(["north", "south", "west"])[np.arange(600) % 3]
    ...     y = rng.random(600) < p - 0.1 * (region == "west")
    ...     _ = table.update(y, p, region)
    >>> print(table.status().verdict)
    1 of 3 segments is miscalibrated: west (too high).
    """

    _MAGIC, _NOUN = b"TRUTHMTB", "monitor table"
    _HEADERS: ClassVar = {1: struct.Struct("<8sIQQ")}

    def __init__(
        self, by: str | list[str], alpha: float = 0.05, *, window: str | None = None, start: object = None
    ) -> None:
        self.by = check_by(by)
        self.total = Monitor(alpha, window=window, start=start)
        self._monitors: dict[Key, Monitor] = {}

    # --- filling ---------------------------------------------------------------------------------------------------

    @named_columns_of_method
    def update(
        self,
        y_true: object,
        y_proba: object = None,
        segments: object = None,
        time: object = None,
        groups: object = None,
        *,
        pos_label: object = None,
    ) -> Self:
        """Add rows with known outcomes, or a `SketchTable` of those of one window. Returns the table itself.

        Parameters
        ----------
        y_true, y_proba, groups, pos_label
            As for `Monitor.update`; `y_true` may be a `SketchTable` by the same columns, or a data frame, followed by
            names of its columns: ``update(frame, "y", "p", "region", time="date")``.
        segments : array-like, or list of array-like
            The segment of each row; with several columns in `by`, a list of columns.
        time : int, date, datetime, str or array-like, optional
            The window of these rows, or the time of each, as for `Monitor.update`.
        """
        if isinstance(y_true, SketchTable):
            return self._update_sketches(y_true, time, y_proba=y_proba, segments=segments, groups=groups)
        checked = check_rows(y_true, y_proba, pos_label=pos_label)
        refuse_fractional(checked.y)
        y, p = checked.y.astype(np.int64), checked.p.astype(np.float64)
        keys = self._keys(segments, len(p))
        in_groups = None if groups is None else plain_keys(groups, "groups", len(p))
        index = self.total._indices(time, len(p))
        if len(index) == 1:
            index = np.full(len(p), index[0])
        for window in np.unique(index).tolist():
            rows = np.flatnonzero(index == window)
            group = None if in_groups is None else [in_groups[i] for i in rows]
            self._add_rows(y[rows], p[rows], [keys[i] for i in rows], group, window)
        return self

    def _add_rows(
        self, y: NDArray[np.int64], p: NDArray[np.float64], keys: list[Key], groups: list[Any] | None, window: int
    ) -> None:
        distinct, place = ordered_keys(keys)
        self.total._add_rows(y, p, groups, window)
        for segment, key in enumerate(distinct):
            rows = np.flatnonzero(np.array(place) == segment)
            some = None if groups is None else [groups[row] for row in rows]
            self._monitor(key)._add_rows(y[rows], p[rows], some, window)

    def _update_sketches(self, table: SketchTable, time: object, **others: object) -> Self:
        for name, value in others.items():
            if value is not None:
                raise invalid(name, "must be omitted for a SketchTable, which has the sums of its rows already.")
        if table.by != self.by:
            raise ValueError(f"the SketchTable is by {', '.join(table.by)}, but this table by {', '.join(self.by)}.")
        sums = {users_key(key, self.by): sketch_sums(table[key]) for key in table}
        total = sketch_sums(table.total())
        self._add_sums(total, sums, self._window(time))
        return self

    def _add_sums(self, total: NDArray[np.int64], sums: dict[Key, NDArray[np.int64]], window: int) -> None:
        self.total._add_window(total, window)
        for key, segment in sums.items():
            self._monitor(key)._add_window(segment, window)

    def _close_window(self, window: int) -> None:
        """End a window: its groups are scored, and the evidence counts."""
        for monitor in (self.total, *map(self._monitor, self._monitors)):
            monitor._advance(window)
            monitor._close_window()

    def advance(self, time: object) -> Self:
        """Declare that all windows before this time are complete. Returns the table itself."""
        self.total._advance(self._window(time))
        return self

    def _window(self, time: object) -> int:
        index = self.total._indices(time, None)
        return int(index[0])

    def _monitor(self, key: Key) -> Monitor:
        if key not in self._monitors:
            self._monitors[key] = Monitor(self.total.alpha)
        monitor = self._monitors[key]
        monitor._clock = self.total._clock
        return monitor

    def _keys(self, segments: Any, n: int) -> list[Key]:
        """Check the segments of rows."""
        if segments is None:
            raise invalid("segments", f"is required: the segment of each row, by {', '.join(self.by)}.")
        columns = [segments] if len(self.by) == 1 else segments
        if len(columns) != len(self.by):
            raise invalid("segments", f"must have {len(self.by)} columns, for {', '.join(self.by)}.")
        lists = []
        for column in columns:
            values = list(np.asarray(column, dtype=object)) if not isinstance(column, np.ndarray) else list(column)
            if len(values) != n:
                raise invalid("segments", f"has {len(values)} rows but there are {n} outcomes; they must match.")
            lists.append(values)
        return [checked_key(key, self.by) for key in zip(*lists, strict=True)]

    def merge(self, other: "MonitorTable") -> Self:
        """Add all rows of another table of other rows, as `Monitor.merge` does. Returns the table itself."""
        if not isinstance(other, MonitorTable):
            raise TypeError(f"only a MonitorTable can be merged into a MonitorTable; got {type(other).__name__}.")
        if self.by != other.by:
            mine, others = ", ".join(self.by), ", ".join(other.by)
            raise ValueError(f"cannot merge a table by {others} into one by {mine}; use the same `by`.")
        self.total.merge(other.total)
        for key, monitor in other._monitors.items():
            self._monitor(key).merge(monitor)
        return self

    # --- a mapping -------------------------------------------------------------------------------------------------

    def _caught_up(self, key: Key) -> Monitor:
        """Return the monitor of a segment, in the current window of all rows."""
        monitor = self._monitor(key)
        monitor._advance(self.total._blocks.now)
        return monitor

    def __getitem__(self, key: Any) -> Monitor:
        try:
            plain = users_key(key, self.by)
        except (TypeError, ValueError):
            plain = ()
        if plain not in self._monitors:
            raise KeyError(f"no segment {shown(key)} by {', '.join(self.by)}; list(...) has the {len(self):,} keys.")
        return self._caught_up(plain)

    def __iter__(self) -> Iterator[Any]:
        return (key[0] if len(self.by) == 1 else key for key in ordered_keys(list(self._monitors))[0])

    def __len__(self) -> int:
        return len(self._monitors)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    # --- results ---------------------------------------------------------------------------------------------------

    def status(self) -> MonitorSegments:
        """Return the status of all rows and of each segment, and which segments are miscalibrated."""
        statuses: dict[Any, MonitorStatus] = {key: self[key].status() for key in self}
        names = {key: ", ".join(map(printed, key if len(self.by) > 1 else (key,))) for key in statuses}
        order = sorted(statuses, key=lambda key: (-statuses[key].log_e_value, names[key]))
        listed = e_bh([statuses[key].log_e_value for key in order], self.total.alpha)
        return MonitorSegments(
            by=self.by,
            alpha=self.total.alpha,
            total=self.total.status(),
            names=tuple(names[key] for key in order),
            statuses=tuple(statuses[key] for key in order),
            n_listed=listed,
            _keys=tuple(order),
        )

    def __repr__(self) -> str:
        return f"MonitorTable(by={self.by!r}): {count(len(self), 'segment')}, {count(self.total.n, 'row')}"

    # --- files -----------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def to_bytes(self) -> bytes:
        """Return the table in truthcal's file format: compressed, versioned, checksummed, no pickle."""
        keys = ordered_keys(list(self._monitors))[0]
        parts = [self.total.to_bytes(), *(self._caught_up(key).to_bytes() for key in keys)]
        names = {
            "by": self.by,
            "keys": [[to_json(value) for value in key] for key in keys],
            "sizes": list(map(len, parts)),
        }
        text = json.dumps(names, separators=(",", ":")).encode("ascii")
        return self._sealed(1, (len(text), sum(map(len, parts))), text, *parts)

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        _, (size, _), body = cls._opened(data, name, {1: lambda text, parts: text + parts})
        try:
            names = json.loads(bytes(body[:size]))
            table = cls(names["by"])
            ends = np.cumsum([size, *names["sizes"]]).tolist()
            parts = [bytes(body[start:end]) for start, end in itertools.pairwise(ends)]
            table.total, *monitors = (Monitor.from_bytes(part) for part in parts)
            keys = [checked_key(tuple(map(value_from_json, key)), table.by) for key in names["keys"]]
            table._monitors = dict(zip(keys, monitors, strict=True))
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            raise ValueError(f"{name}: the monitor table is inconsistent; it was not written by truthcal.") from None
        return table

    def __copy__(self) -> "MonitorTable":
        return self.from_bytes(self.to_bytes())

    def __deepcopy__(self, memo: object) -> "MonitorTable":
        return copy.copy(self)


def e_bh(log_e: list[float], alpha: float) -> int:
    """Return how many of these log e-values, in decreasing order, e-BH rejects: the last k with e_k >= n / (alpha k).

    The expected share of false rejections is at most `alpha` under any dependence (Wang and Ramdas 2022).
    """
    n = len(log_e)
    limits = [np.log(n / (alpha * k)) for k in range(1, n + 1)]
    return max((k for k, (e, limit) in enumerate(zip(log_e, limits, strict=True), 1) if e >= limit), default=0)
