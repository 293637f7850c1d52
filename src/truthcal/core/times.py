"""Times of rows: a column of dates, times, ISO text or integers becomes 64-bit integers, or one clear error.

A time is stored as microseconds since 1970-01-01 00:00 UTC, an integer of the user (a counter) as it is. Times with a
time zone are converted to UTC, unless `on_its_own_clock` made them local first. Times without one stay as they are:
their days begin at their own midnight.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, invalid, is_missing_object, refuse_missing_values, row_of_first
from truthcal.core.params import check_choice, shown

_Ints = NDArray[np.int64]

# Units of integers that count time since 1970-01-01 UTC.
TIME_UNITS = ("s", "ms", "us", "ns")
_EPOCH, _EPOCH_UTC, _MICROSECOND = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
# Years for which the start and the end of a window of up to 1000 years are dates of Python.
_FIRST_YEAR, _LAST_YEAR = 1001, 8999
_EARLIEST = (datetime(_FIRST_YEAR, 1, 1) - _EPOCH) // _MICROSECOND
_LATEST = (datetime(_LAST_YEAR + 1, 1, 1) - _EPOCH) // _MICROSECOND - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_KINDS = "dates, times, ISO text such as '2024-03-31' or '2024-03-31T12:00:00Z', or integers"


@dataclass(frozen=True, eq=False)
class Times:
    """Times of rows, checked.

    `values`: microseconds since 1970-01-01, or integers of the user if `counter`. `zoned`: whether they had a time zone
    and were converted to UTC.
    """

    values: _Ints
    counter: bool = False
    zoned: bool = False

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.values)


def times_of(column: Any, name: str = "time", unit: str | None = None) -> Times:
    """Check a column of times. Integers are counters unless `unit` says that they count time since 1970-01-01 UTC."""
    if unit is not None:
        check_choice(unit, "time_unit", TIME_UNITS)
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:  # pandas would make an object of each time
        return _times_from_numpy(np.asarray(column, dtype="datetime64[us]"), name, zoned=True)
    raw = as_vector(column, name)
    if raw.dtype.kind == "O":
        _refuse_missing_time(is_missing_object(raw), name)
        return _times_from_objects(raw, name, unit)
    if raw.dtype.kind == "f":
        _refuse_missing_time(np.isnan(raw), name)
    if raw.dtype.kind == "M":
        return _times_from_numpy(raw, name, zoned=_has_zone(column))
    if raw.dtype.kind in "iu":
        return _times_from_integers(raw, name, unit)
    if raw.dtype.kind == "U":
        return _times_from_objects(raw.astype(object), name, unit)
    raise invalid(name, f"must contain {_KINDS}; got dtype {raw.dtype} (first value {raw[0].item()!r}).", TypeError)


def on_its_own_clock(column: Any) -> Any:
    """Return a pandas or polars column of times with a time zone as the clocks of that zone show them, without it.

    Windows of days, weeks and months then start at midnight there, not in UTC. Other columns are returned as they are.
    """
    kind = getattr(column, "dtype", None)
    if getattr(kind, "tz", None) is not None and (hasattr(column, "dt") or hasattr(column, "tz_localize")):  # pandas
        return (column.dt if hasattr(column, "dt") else column).tz_localize(None)
    if getattr(kind, "time_zone", None) is not None and hasattr(column, "dt"):  # polars
        return column.dt.replace_time_zone(None)
    return column


def integers_of_text(values: Any) -> Any:
    """Convert a list of text that consists of digits to integers, as in files whose columns have no type."""
    if isinstance(values, list) and all(isinstance(value, str) and _INTEGER.fullmatch(value) for value in values):
        return [int(value) for value in values]
    return values


def _refuse_missing_time(missing: NDArray[np.bool_], name: str) -> None:
    refuse_missing_values(missing, name, "no time", "Drop those rows, or fill in their times.")


def _has_zone(column: Any) -> bool:
    """Whether a column of times of polars or pyarrow has a time zone; numpy has none."""
    kind = getattr(column, "dtype", None) or getattr(column, "type", None)
    return getattr(kind, "time_zone", None) is not None or getattr(kind, "tz", None) is not None


def _times_from_numpy(raw: NDArray[Any], name: str, zoned: bool) -> Times:
    """Times of datetime64. Finer ones are rounded down to microseconds, which changes no window."""
    _refuse_missing_time(np.isnat(raw), name)
    if np.datetime_data(raw.dtype)[0] == "generic":
        raise invalid(name, f"must contain {_KINDS}; got dtype {raw.dtype}.", TypeError)
    # Coarse units reach years that would overflow in microseconds.
    years = raw.astype("datetime64[Y]").astype(np.int64) + 1970
    _refuse_other_years((years < _FIRST_YEAR) | (years > _LAST_YEAR), raw, name)
    return Times(raw.astype("datetime64[us]").astype(np.int64), zoned=zoned)


def _refuse_other_years(outside: NDArray[np.bool_], raw: NDArray[Any], name: str) -> None:
    if outside.any():
        found = f"found {_plain(raw[outside.argmax()])} {row_of_first(outside)}"
        rule = f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}"
        raise invalid(name, f"{rule}; {found}. Correct or drop those rows.")


def _times_from_integers(raw: NDArray[Any], name: str, unit: str | None) -> Times:
    if raw.dtype == np.uint64 and raw.max() > np.iinfo(np.int64).max:
        raise invalid(name, f"must contain integers below 2**63; found {raw.max()}.")
    values = raw.astype(np.int64)
    if unit is None:
        return Times(values, counter=True)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    low, high = (limit * per_second // 10**6 for limit in (_EARLIEST, _LATEST))
    outside = (values < low) | (values > high)
    if outside.any():
        found = f"{values[outside.argmax()]} {row_of_first(outside)}"
        problem = f"has {found}, which is outside of the years {_FIRST_YEAR} to {_LAST_YEAR} if it counts {unit}"
        raise invalid(name, f"{problem} since 1970-01-01. Name the unit of these integers with", fix=("time_unit",))
    return Times(values // 1000 if unit == "ns" else values * (10**6 // per_second), zoned=True)


def _times_from_objects(raw: NDArray[Any], name: str, unit: str | None) -> Times:
    """Times of Python's objects and text."""
    if all(type(value) is int for value in raw):
        return _times_from_integers(_as_int64(raw, name), name, unit)
    texts: dict[str, tuple[int, bool]] = {}  # equal objects may be different times: an hour repeats when clocks go back
    values, zoned = np.empty(len(raw), np.int64), np.empty(len(raw), np.bool_)
    for row, value in enumerate(raw):
        if isinstance(value, str):
            if value not in texts:
                texts[value] = _time_from_object(value, name, row)
            values[row], zoned[row] = texts[value]
        else:
            values[row], zoned[row] = _time_from_object(value, name, row)
    other = zoned != zoned[0]
    if other.any():
        first, rest = ("has", "has none") if zoned[0] else ("lacks", "has one")
        found = f"the first row {first} a time zone, {shown(_plain(raw[other.argmax()]))} {row_of_first(other)} {rest}"
        raise invalid(name, f"must have a time zone in all rows or in none: {found}.")
    _refuse_other_years((values < _EARLIEST) | (values > _LATEST), raw, name)
    return Times(values, zoned=bool(zoned[0]))


def _as_int64(raw: NDArray[Any], name: str) -> _Ints:
    try:
        return raw.astype(np.int64)
    except OverflowError:
        raise invalid(name, f"must contain integers below 2**63; found {shown(max(raw, key=abs))}.") from None


def _time_from_object(value: Any, name: str, row: int) -> tuple[int, bool]:
    """Convert one date, time or ISO text; return microseconds since 1970-01-01 and whether it had a time zone."""
    time = value
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value.strip())
        except ValueError:
            time = None
    elif isinstance(value, np.datetime64):
        time = value.astype("datetime64[us]").item()
    if isinstance(time, date) and not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day)
    if not isinstance(time, datetime):
        problem = f"must contain {_KINDS}; found {shown(_plain(value))} at row {row}"
        kind = ValueError if isinstance(value, str) else TypeError
        raise invalid(name, f"{problem}. Convert it, for example with pandas.to_datetime.", kind)
    if time.utcoffset() is None:
        return (time.replace(tzinfo=None) - _EPOCH) // _MICROSECOND, False
    return (time - _EPOCH_UTC) // _MICROSECOND, True


def _plain(value: Any) -> Any:
    """Return text of numpy as text of Python, which prints without its type."""
    return str(value) if isinstance(value, str) else value
