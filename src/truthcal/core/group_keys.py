"""Group keys: plain values that can be compared, sorted, printed and stored in a file."""

import json
import math
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from truthcal.core.checks import invalid
from truthcal.core.params import shown
from truthcal.results.text import escape_control_characters, shorten

Key = tuple[Any, ...]

STATISTICS = (
    "n", "weight", "mean_proba", "mean_true", "bias", "brier",
    "atb", "atb_low", "atb_high", "noise_floor", "excess",
)  # fmt: skip

# Type of a key -> sort position. Types that can be compared share a position. Of equal values of different types (1 and
# 1.0) a table keeps the one whose type comes first.
_SORTED = {bool: 0, int: 0, float: 0, Decimal: 0, str: 1, bytes: 2, date: 3, datetime: 4}
_AWARE, _MISSING = 5, 6
_SPELLED = {kind: position for position, kind in enumerate([type(None), *_SORTED])}
# Types that JSON lacks: their tag in files, and functions to write and read them.
_TAGS: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    float: ("float", repr, float),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    Decimal: ("decimal", str, Decimal),
    date: ("date", date.isoformat, date.fromisoformat),
    datetime: ("datetime", datetime.isoformat, datetime.fromisoformat),
}

# Bits of an integer: Python does not print much longer ones.
_LONGEST = 4096
# Characters of a key that are printed.
_WIDEST = 40


def check_by(by: object) -> tuple[str, ...]:
    """Check the names of grouping columns: at least one, no duplicates, none that `SketchTable.table` uses itself."""
    names = (by,) if isinstance(by, str) or not isinstance(by, Iterable) else tuple(by)
    for name in names:
        if not isinstance(name, str):
            raise invalid("by", f"must be the name of a column or a list of names; got {shown(by)}.", TypeError)
        if names.count(name) > 1:
            raise invalid("by", f"has {name!r} twice; name each column once.")
        if name in STATISTICS:
            raise invalid("by", f"must not name a column {name!r}: a table has a statistic of that name. Rename it.")
    if not names:
        raise invalid("by", "is empty; name at least one column, or use one Sketch for all rows.")
    return names


def checked_key(key: object, by: tuple[str, ...]) -> Key:
    """Check a group key and return it with plain values, one for each column."""
    if not isinstance(key, tuple) or len(key) != len(by):
        raise TypeError(f"a key must be a tuple of {len(by)} values, one each for {', '.join(by)}; got {shown(key)}.")
    return tuple(plain_value(value, name) for value, name in zip(key, by, strict=True))


def users_key(key: object, by: tuple[str, ...]) -> Key:
    """Check a group key from the user, who passes the value itself if there is one column."""
    return checked_key((key,) if len(by) == 1 else key, by)


def plain_value(value: Any, name: str) -> Any:
    """Convert a value of a group key to one of the types in _SORTED, or to None if it is missing."""
    if isinstance(value, np.generic):
        value = _value_from_numpy(value, name)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    kind = type(value)
    if kind is int and value.bit_length() > _LONGEST:
        raise ValueError(f"grouping column {name!r} has an integer of {value.bit_length()} bits; use text.")
    if kind in (bool, int, str, bytes):
        return value
    if kind is float:
        return None if math.isnan(value) else value + 0.0  # -0.0 becomes 0.0
    if kind is Decimal:
        return None if value.is_nan() else value
    if isinstance(value, datetime):
        return _plain_datetime(value, name, not getattr(value, "nanosecond", 0))
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    raise TypeError(
        f"values of the grouping column {name!r} must be None, bool, int, float, str, bytes, Decimal, date or "
        f"datetime; got {shown(value)} ({kind.__name__}). Convert them to text, for example with str()."
    )


def _value_from_numpy(value: np.generic, name: str) -> Any:
    """Convert a numpy value of a group key to Python. `item()` would turn a time in nanoseconds into an integer."""
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as"):
        coarse = value.astype("datetime64[us]")
        return _plain_datetime(coarse.item(), name, coarse == value) if not np.isnat(value) else None
    plain = value.item()
    # item() also turns durations, and times outside the range of Python, into integers
    return value if isinstance(value, np.datetime64 | np.timedelta64) and isinstance(plain, int) else plain


def _plain_datetime(value: datetime, name: str, exact: bool) -> datetime:
    """Convert a time in a group key to a plain datetime, in UTC if it has a time zone: equal times print alike."""
    if not exact:
        raise ValueError(f"column {name!r} has times finer than microseconds, at {value}; round them before grouping.")
    plain = datetime.combine(value.date(), value.timetz())
    try:
        return plain.replace(fold=0) if plain.utcoffset() is None else plain.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"column {name!r} has a time that does not exist in UTC, {value}.") from None


def _key_order(key: Key) -> list[tuple[int, Any]]:
    """Sort order of a group key: type position first, so that only values of comparable types are compared."""
    return [
        (_MISSING, 0) if v is None else (_AWARE if getattr(v, "tzinfo", None) else _SORTED[type(v)], v) for v in key
    ]


def ordered_keys(keys: list[Key]) -> tuple[list[Key], list[int]]:
    """Return the distinct group keys, sorted, and the position of each of `keys` among them."""
    distinct: dict[Key, Key] = {}
    for key in keys:
        other = distinct.setdefault(key, key)
        if other is not key and _key_spelling(key) < _key_spelling(other):
            distinct[key] = key
    ordered = sorted(distinct.values(), key=_key_order)
    place = {key: g for g, key in enumerate(ordered)}
    return ordered, [place[key] for key in keys]


def _key_spelling(key: Key) -> list[tuple[int, str]]:
    """Tie-break between equal group keys, such as 1 and 1.0, that does not depend on their order."""
    return [(_SPELLED[type(value)], str(value)) for value in key]


def to_json(value: Any) -> Any:
    """Encode a value of a group key: None, bool, int and str unchanged, other types as text under their tag."""
    if type(value) not in _TAGS:
        return value
    tag, write, _ = _TAGS[type(value)]
    return {tag: write(value)}


def value_from_json(value: Any) -> Any:
    """Decode what `to_json` returns."""
    if not isinstance(value, dict):
        return value
    ((tag, text),) = value.items()
    return {name: read for name, _, read in _TAGS.values()}[tag](text)


def names_from_json(text: bytes) -> tuple[tuple[str, ...], list[Key]]:
    """Decode `by` and the group keys; return no names if the text was not written by `to_bytes`."""
    try:
        names = json.loads(text)
        by = check_by(names["by"])
        keys = [checked_key(tuple(map(value_from_json, key)), by) for key in names["keys"]]
        return (by, keys) if ordered_keys(keys)[0] == keys else ((), [])
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return (), []


def named(key: Key) -> str:
    """Format a group key for error messages."""
    return shown(key[0] if len(key) == 1 else key)


def printed(value: Any) -> str:
    """Format a value of a group key for the printed table: one line, shortened."""
    return "(missing)" if value is None else shorten(escape_control_characters(str(value)), _WIDEST)
