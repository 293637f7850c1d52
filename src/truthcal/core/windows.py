"""Windows of time: a specification such as "week", "7d" or "1000 rows", and the window of each row.

Windows are half-open intervals, named by their start. They are aligned to the calendar, not to the data, so that the
rows of separate files fall into the same windows: weeks start on Monday, months on the 1st, and windows of other
lengths are counted from 1970-01-01 00:00. Windows of n rows are counted from the first row, in the order of time.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.params import closest_name, shown
from truthcal.core.times import Times

_Ints = NDArray[np.int64]
Kind = Literal["duration", "months", "steps", "rows"]

_SECOND = 10**6  # in microseconds, as all durations here
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86400 * _SECOND
# Spellings of units, without a final "s".
_DURATIONS = {
    **dict.fromkeys(("s", "sec", "second"), _SECOND),
    **dict.fromkeys(("min", "minute"), _MINUTE),
    **dict.fromkeys(("h", "hr", "hour"), _HOUR),
    **dict.fromkeys(("d", "day"), _DAY),
    **dict.fromkeys(("w", "week"), 7 * _DAY),
}
_MONTHS = {"mo": 1, "month": 1, "quarter": 3, "year": 12, "y": 12}
_WEEKS = ("w", "week")
_FIRST_MONDAY = 4 * _DAY  # 1970-01-05
# Longer windows than these, a thousand years, are typing errors, and sums of times could overflow.
_LONGEST, _MOST_MONTHS, _MOST_STEPS = 365_250 * _DAY, 12_000, 10**15
_SPECIFICATION = re.compile(r"\s*(\d{0,18})\s*([a-z]*)\s*", re.IGNORECASE)
_ALLOWED = (
    "'day', 'week', 'month', 'quarter', 'year', a duration such as '7d' or '12h', or a number of rows such as "
    "'1000 rows'"
)
_NAMED = ("day", "week", "month", "quarter", "year")

# The windows from which `choose_window` chooses.
_SHORT_CHOICES = ("1s", "10s", "1min", "5min", "15min", "1h", "6h", "1d")
_CHOICES = (*_SHORT_CHOICES, "week", "month", "quarter", "year", "5 years", "20 years", "100 years")
# Wanted: so many windows, with at least this many rows each on average; but a few windows even for few rows.
_FEWEST, _MOST, _ROWS, _FEW_ROWS = 10, 31, 200, 4


@dataclass(frozen=True, slots=True)
class Window:
    """A division of time into windows.

    Attributes
    ----------
    kind : {"duration", "months", "steps", "rows"}
        What `size` counts: microseconds, months, units of an integer column, or rows.
    size, origin : int
        Length of a window, and a time at which one starts (0, or a Monday).
    text : str
        The specification, normalized: "week", "7d", "1,000 rows".
    """

    kind: Kind
    size: int
    origin: int = 0
    text: str = ""

    def __str__(self) -> str:
        return self.text

    def starts(self, times: Times, first_row: int = 0) -> _Ints:
        """Return the start of the window of each row, as an integer like the times.

        For windows of rows, this is the number of the first row of the window. `first_row` is the number of rows
        before these; the rows must be in the order of time, which `check_order` checks.
        """
        self.check_kind(times)
        if self.kind == "rows":
            row = np.arange(first_row, first_row + len(times), dtype=np.int64)
            return row - row % self.size
        return self.starts_of(times.values)

    def starts_of(self, values: _Ints) -> _Ints:
        """Return the start of the window of each time; for a coarser window also that of each start."""
        if self.kind == "months":
            month = values.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
            first = month - month % self.size
            return first.astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
        return values - (values - self.origin) % self.size

    def next_start(self, start: int) -> int:
        """Return the start of the window that follows one."""
        if self.kind == "months":
            month = np.int64(start).astype("datetime64[us]").astype("datetime64[M]") + self.size
            return int(month.astype("datetime64[us]").astype(np.int64))
        return int(start + self.size)

    def number_between(self, first: int, last: int) -> int:
        """Return the number of windows from the one that has the time `first` to the one that has the time `last`."""
        start, end = self.starts_of(np.array([first, last], np.int64)).tolist()
        if self.kind == "months":
            months = np.array([start, end]).astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
            return int(months[1] - months[0]) // self.size + 1
        return int((end - start) // self.size + 1)

    def check_kind(self, times: Times) -> None:
        """Reject a window that does not fit the times: a duration if these are plain integers."""
        if times.counter and self.kind in ("duration", "months"):
            problem = f"is {self.text!r}, but the times are integers, which count anything"
            cure = "Pass a number of units per window, such as '100'; if they count time since 1970-01-01, name"
            raise invalid("window", f"{problem}. {cure} the unit with", fix=("time_unit",))
        if not times.counter and self.kind == "steps":
            raise invalid("window", f"is {self.text!r}, but the times are not integers.")

    def key(self, start: int) -> Any:
        """Return the start of a window as a date, a datetime, or for counters and rows an integer."""
        if self.kind in ("steps", "rows"):
            return start
        time = datetime(1970, 1, 1) + timedelta(microseconds=start)
        whole_days = self.kind == "months" or self.size % _DAY == 0
        return time.date() if whole_days else time

    def start_of_key(self, key: Any) -> int:
        """Return the start of a window from its `key`, for example in a `SketchTable`."""
        if isinstance(key, datetime):
            return (key - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        return (key - date(1970, 1, 1)).days * _DAY if isinstance(key, date) else int(key)

    def label(self, start: int) -> str:
        """Return the start of a window as text: "2024-03", "2024-03-04", "2024-03-04 12:00", "3000"."""
        if self.kind in ("steps", "rows"):
            return str(start)
        if self.kind == "months":
            return time_label(start, _DAY)[: 4 if self.size % 12 == 0 else 7]
        return time_label(start, self.size)


def time_label(time: int, resolution: int = 1) -> str:
    """Format a time in microseconds since 1970-01-01, no finer than a window of this length needs."""
    exact = datetime(1970, 1, 1) + timedelta(microseconds=time)
    if resolution % _DAY == 0:
        return exact.date().isoformat()
    unit = "minutes" if resolution % _MINUTE == 0 else "seconds" if resolution % _SECOND == 0 else "microseconds"
    return exact.isoformat(" ", unit)


# --- specifications ---------------------------------------------------------------------------------------------------


def parse_window(window: object, *, counter: bool = False, name: str = "window") -> Window:
    """Parse a specification of windows (parameter `name`).

    A plain number means rows, or for times that are integers (`counter`) a number of their units.
    """
    if isinstance(window, Window):
        return window
    if isinstance(window, int | np.integer) and not isinstance(window, bool):
        window = str(int(window))
    if not isinstance(window, str):
        raise invalid(name, f"must be text: {_ALLOWED}; got {shown(window)}.", TypeError)
    match = _SPECIFICATION.fullmatch(window)
    number, unit = (match[1], match[2].lower()) if match else ("", "")
    if len(unit) > 1 and unit.endswith("s"):
        unit = unit[:-1]
    size = int(number or bool(unit))
    parsed = _window_of(size, unit, counter) if size > 0 else None
    if parsed is None:
        close = closest_name("day" if unit == "daily" else unit.removesuffix("ly"), _NAMED) if len(unit) > 1 else ""
        hint = " For minutes write '5min', for months '5 months'." if unit == "m" else ""
        hint = f" Did you mean {close!r}?" if close else hint
        raise invalid(name, f"must be {_ALLOWED}; got {shown(window)}.{hint}")
    largest = {"duration": _LONGEST, "months": _MOST_MONTHS}.get(parsed.kind, _MOST_STEPS)
    if parsed.size > largest:
        limit = f"{largest:,}" if largest == _MOST_STEPS else "1000 years"
        raise invalid(name, f"must be at most {limit}; got {shown(window)}.")
    return parsed


def _window_of(size: int, unit: str, counter: bool) -> Window | None:
    """Build a window of `size` units; None if the unit is not known."""
    if unit == "row" or (not unit and not counter):
        return Window("rows", size, text=f"{size:,} row{'s' * (size > 1)}")
    if not unit:
        return Window("steps", size, text=f"{size:,}")
    if unit in _MONTHS:
        name = {"mo": "month", "y": "year"}.get(unit, unit)
        return Window("months", size * _MONTHS[unit], text=name if size == 1 else f"{size} {name}s")
    if unit not in _DURATIONS:
        return None
    length, origin = _DURATIONS[unit], _FIRST_MONDAY if unit in _WEEKS else 0
    short = next(short for short, micros in _DURATIONS.items() if micros == length)
    names = {_MINUTE: "minute", _HOUR: "hour", _DAY: "day", 7 * _DAY: "week", _SECOND: "second"}
    return Window("duration", size * length, origin, names[length] if size == 1 else f"{size}{short}")


def choose_window(first: int, last: int, rows: int, *, counter: bool = False) -> Window:
    """Choose windows for `rows` rows with times from `first` to `last`: 10 to 31, with 200 rows each on average.

    The longest windows of which there are at least 10, if they have enough rows; otherwise the shortest that have. At
    least two, if not all times are equal.
    """
    candidates = _step_choices(first, last) if counter else [parse_window(choice) for choice in _CHOICES]
    numbers = [window.number_between(first, last) for window in candidates]
    most = min(_MOST, max(rows // _ROWS, _FEW_ROWS))
    fitting = [i for i, number in enumerate(numbers) if number <= most] or [len(candidates) - 1]
    enough = [i for i in fitting if numbers[i] >= _FEWEST]
    best = enough[-1] if enough else fitting[0]
    if numbers[best] == 1 < max(numbers):
        best = max(i for i, number in enumerate(numbers) if number > 1)
    return candidates[best]


def nested_windows(*, counter: bool = False) -> list[Window]:
    """Return windows from short to long, each of which consists of whole windows of those before it.

    If there are more than 512 of one, `choose_window` chooses windows that consist of whole windows of the next.
    """
    if counter:
        return [Window("steps", 10**power, text=f"{10**power:,}") for power in range(16)]
    longer = ("month", "year", "5 years", "20 years", "100 years")
    return [parse_window(choice) for choice in (*_SHORT_CHOICES, *longer)]


def _step_choices(first: int, last: int) -> list[Window]:
    """Candidate windows of an integer column: 1, 2, 5, 10, 20, ... up to more than its range."""
    sizes, power = list[int](), 1
    while not sizes or sizes[-1] <= min(2 * (last - first), _MOST_STEPS // 10):
        sizes += [power, 2 * power, 5 * power]
        power *= 10
    return [Window("steps", size, text=f"{size:,}") for size in sizes]


def check_order(times: Times, last_before: int | None = None) -> int:
    """Check that rows are in the order of time, as windows of rows need; return the last time.

    `last_before` is the last time of the rows before these, which were read earlier.
    """
    values = times.values
    before = values[0] if last_before is None else last_before
    earlier = np.diff(values, prepend=before) < 0
    if earlier.any():
        row = int(earlier.argmax())
        problem = f"must increase from row to row for windows of rows; row {row} is earlier than the row before it"
        raise invalid("time", f"{problem}. Sort the rows by time, or use windows such as 'day'.")
    return int(values[-1])
