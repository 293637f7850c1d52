"""The clock of a monitor: which window, counted from 0, a time belongs to, and the name of a window."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, invalid
from truthcal.core.params import check_whole, shown
from truthcal.core.times import times_of
from truthcal.core.windows import Window, parse_window

_Ints = NDArray[np.int64]

# Windows after the first one; more are a typing error.
_MOST = 1 << 22


@dataclass(slots=True)
class Clock:
    """Numbers windows from 0: by the calendar with a `Window`, else by the user's own numbers.

    `origin` is the start of window 0, as `Window.starts_of` returns it; None until the first time is known.
    """

    window: Window | None = None
    origin: int | None = None

    @classmethod
    def of(cls, window: object, start: object) -> "Clock":
        """Build a clock from the parameters `window` and `start`."""
        if window is None:
            if start is not None:
                raise invalid("start", f"needs `window`; without it, windows are numbered from 0. Got {shown(start)}.")
            return cls(None, 0)
        parsed = parse_window(window)
        if parsed.kind == "rows":
            problem = f"must be a length of time such as 'week' or '7d'; got {shown(window)}."
            raise invalid("window", f"{problem} For windows of rows, call `update` once for each of them.")
        clock = cls(parsed)
        if start is not None:
            clock.origin = int(clock._starts(start, "start")[0])
        return clock

    def window_to_json(self) -> list[Any] | None:
        """Return the window in JSON types."""
        window = self.window
        return None if window is None else [window.kind, window.size, window.origin, window.text]

    @classmethod
    def from_json(cls, window: list[Any] | None, origin: int | None) -> "Clock":
        """Build a clock from what `window_to_json` returned, and its origin."""
        return cls(None if window is None else Window(*window), origin)

    def index_of(self, start: int) -> int:
        """Return the number of the window that starts at `start`."""
        assert self.window is not None
        assert self.origin is not None
        if self.window.kind == "months":
            return self.window.number_between(self.origin, start) - 1
        return (start - self.origin) // self.window.size

    def indices(self, time: object, name: str = "time") -> _Ints:
        """Return the number of the window of each time, or of the only one."""
        if self.window is None:
            return self._numbers(time, name)
        starts = self._starts(time, name)
        if self.origin is None:
            self.origin = int(starts.min())
        distinct, place = np.unique(starts, return_inverse=True)
        if distinct[0] < self.origin:
            first, given = self.window.label(self.origin), self.window.label(int(distinct[0]))
            cure = "To include it, build the monitor with"
            problem = f"is before the first window of the monitor, {first}; found {given}. {cure}"
            raise invalid(name, problem, fix=("start", given))
        numbers = np.array([self.index_of(int(s)) for s in distinct])
        return self._checked(numbers, name)[place]

    def _starts(self, time: object, name: str) -> _Ints:
        assert self.window is not None
        column = time if np.ndim(time) else [time]  # type: ignore[arg-type]
        times = times_of(column, name)
        self.window.check_kind(times)
        return self.window.starts_of(times.values)

    def _numbers(self, time: Any, name: str) -> _Ints:
        """Check numbers of windows given by the user."""
        if np.ndim(time) == 0:
            if not isinstance(time, int | np.integer):
                problem = f"must be the number of a window, 0 or more; got {shown(time)}. For dates, set"
                raise invalid(name, problem, TypeError, fix=("window", "week"))
            return self._checked(np.array([check_whole(time, name, 0)]), name)
        numbers = as_vector(time, name)
        if numbers.dtype.kind not in "iu" or numbers.min() < 0:
            problem = f"must contain numbers of windows, 0 or more; got dtype {numbers.dtype}. For dates, set"
            raise invalid(name, problem, fix=("window", "week"))
        return self._checked(numbers.astype(np.int64), name)

    @staticmethod
    def _checked(numbers: _Ints, name: str) -> _Ints:
        if numbers.max() > _MOST:
            raise invalid(name, f"is {numbers.max():,} windows after the first, more than {_MOST:,}; use longer ones.")
        return numbers

    def label(self, index: int) -> str:
        """Return the name of a window: the date or time at which it starts, or its number."""
        if self.window is None or self.origin is None:
            return f"window {index}"
        return self.window.label(self._start_of(index))

    def _start_of(self, index: int) -> int:
        assert self.window is not None
        assert self.origin is not None
        if self.window.kind != "months":
            return self.origin + index * self.window.size
        month = np.int64(self.origin).astype("datetime64[us]").astype("datetime64[M]") + index * self.window.size
        return int(month.astype("datetime64[us]").astype(np.int64))
