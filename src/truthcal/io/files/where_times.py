"""Comparisons of columns of times, or of texts that may be times, with dates."""

import contextlib
import dataclasses
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from truthcal.io.files.decode import decode_to_dictionary
from truthcal.io.files.source import arrow
from truthcal.io.files.where import Comparison, Value, pad_date
from truthcal.io.files.where_batch import EQUALITIES, WhereBatch, compare, shown_cell, without_word
from truthcal.io.files.where_numbers import compare_numbers

_DATE = "a date such as '2024-01-31' or '2024-01-31T12:00'"
# Times that pyarrow parses, if month and day exist; Python parses the same, and some more.
_USUAL = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$"
_EPOCH = datetime(1970, 1, 1)
# Text that is meant as a date, whether or not the day exists.
_LIKE_A_DATE = re.compile(r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*([ T][0-9:]+.*)?")
_FINER_THAN_MICROSECONDS = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}  # in a unit of times
_EARLIEST, _LATEST = ((end - _EPOCH) // timedelta(microseconds=1) for end in (datetime.min, datetime.max))


class _ParsedTexts(NamedTuple):
    """The times of a text column, null elsewhere, and which rows hold other words."""

    times: Any
    is_word: Any
    zoned: bool  # also if there are no times: then literals may have a time zone


def parse_time(text: object) -> datetime | None:
    """Parse a text as a time; None if it is none. Digits alone are no date: they may be a year or a number.

    Months and days may have one digit: as text, 2024-1-10 would come before 2024-1-5.
    """
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(text, str) and "-" in text:
            time = datetime.fromisoformat(pad_date(text.strip()))
            return time if time.tzinfo is None else time.astimezone(UTC)
    return None


def compare_times(column: Any, comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a column of dates or times with literals, exactly: as integers in the unit of the column."""
    types = arrow().types
    if types.is_date(column.type):
        column = column.cast(arrow().timestamp("s" if types.is_date32(column.type) else "ms"))
    unit, zoned = column.type.unit, column.type.tz is not None
    times = _literal_times(comparison, comparison.values, zoned, batch)
    ticks = [Value(_ticks(time, unit), value.at) for time, value in zip(times, comparison.values, strict=True)]
    return compare_numbers(column.cast(arrow().int64()), dataclasses.replace(comparison, values=tuple(ticks)))


def _ticks(time: datetime, unit: str) -> int | float:
    """Return a time as a number of units since 1970; between two of them, the number in their middle."""
    microseconds = (time.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)
    if unit == "ns":
        return 1000 * microseconds
    ticks, rest = divmod(microseconds, _MICROSECONDS[unit])
    return ticks + 0.5 if rest else ticks


def refuse_impossible_dates(comparison: Comparison, batch: WhereBatch) -> None:
    """Reject literals that are meant as dates and are none, such as 2024-02-31: the order of text would decide."""
    for literal in comparison.values:
        if comparison.operator not in EQUALITIES and _LIKE_A_DATE.fullmatch(str(literal.value)):
            problem = f"cannot be compared with {literal.value!r}, which is not a date; write {_DATE}, in quotes."
            batch.refuse(literal.at, comparison.column, problem)


def _literal_times(comparison: Comparison, literals: Sequence[Value], zoned: bool, batch: WhereBatch) -> list[datetime]:
    """Parse literals as times. Those without a time zone are UTC if the column has one."""
    times = list[datetime]()
    for literal in literals:
        time = parse_time(literal.value)
        if time is None:
            batch.refuse(literal.at, comparison.column, f"holds times; compare it with {_DATE}, in quotes.")
        if _FINER_THAN_MICROSECONDS.search(str(literal.value)):
            batch.refuse(
                literal.at, comparison.column, "is compared in microseconds; write at most 6 decimals of a second."
            )
        if time.tzinfo is not None and not zoned:
            batch.refuse(literal.at, comparison.column, "holds times without a time zone; omit that of this time.")
        times.append(time.replace(tzinfo=UTC) if zoned else time)
    return times


def compare_texts_as_times(comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a text column with literals of which at least one is a date.

    Each value is judged by itself: one that is no time differs from all dates, and has no order in time, which is an
    error unless the condition names it. Literals of a list that are no dates are compared as text.
    """
    import pyarrow.compute

    name, operator = comparison.column, comparison.operator
    parsed = batch.cached("times", name, lambda: _parse_texts(comparison, batch))
    if operator not in EQUALITIES:
        unknown = pyarrow.compute.and_not(parsed.is_word, batch.named_words(name))
        if (cell := batch.first_cell(name, unknown)) is not None:
            problem = f"holds text ({shown_cell(cell)}) that is not {_DATE}, so it has no order in time."
            batch.refuse(comparison.values[0].at, name, f"{problem} {without_word(name, cell)}")
        return compare(parsed.times, operator, _literal_times(comparison, comparison.values, parsed.zoned, batch))
    dates = [value for value in comparison.values if parse_time(value.value) is not None]
    others = [value.value for value in comparison.values if parse_time(value.value) is None]
    met = compare(parsed.times, operator, _literal_times(comparison, dates, parsed.zoned, batch))
    met = pyarrow.compute.if_else(parsed.is_word, operator == "!=", met)
    return pyarrow.compute.or_kleene(met, compare(batch.column(name), "in", others)) if others else met


def _parse_texts(comparison: Comparison, batch: WhereBatch) -> _ParsedTexts:
    """Parse each text as a time. Raises if some times of the file have a time zone and others have none."""
    import pyarrow.compute

    name = comparison.column
    words, first_times = batch.words(name), batch.facts(name).times
    times_by_kind = _parse_all(words) or _parse_some(words)
    for zoned, times in times_by_kind.items():
        if zoned not in first_times and (cell := batch.first_cell(name, times.is_valid())) is not None:
            first_times[zoned] = cell
    if len(first_times) == 2:
        problem = f"holds times with a time zone ({shown_cell(first_times[True])}) and without one"
        cure = "which cannot be compared. Write all of them in one way."
        batch.refuse(comparison.at, name, f"{problem} ({shown_cell(first_times[False])}), {cure}")
    zoned = first_times.keys() != {False}
    times = times_by_kind.get(zoned, arrow().nulls(len(words), _type(zoned)))
    return _ParsedTexts(times, pyarrow.compute.and_(words.is_valid(), times.is_null()), zoned)


def _type(zoned: bool) -> Any:
    return arrow().timestamp("us", "UTC" if zoned else None)


def _parse_all(words: Any) -> dict[bool, Any]:
    """Parse texts that are all times, with a time zone (True) or without; return nothing if some are other words.

    Far faster than one by one. Where Python cannot represent a time, it is left to `_parse_each`, so that the rest
    of a batch does not decide what a time is.
    """
    import pyarrow.compute

    for zoned in (False, True):
        with contextlib.suppress(arrow().ArrowInvalid):
            times = words.cast(_type(zoned))
            ends = pyarrow.compute.min_max(times.cast(arrow().int64())).as_py().values()
            return {zoned: times} if all(end is None or _EARLIEST <= end <= _LATEST for end in ends) else {}
    return {}


def _parse_some(words: Any) -> dict[bool, Any]:
    """Parse texts of which some are not times in the usual format, and only these one by one."""
    import pyarrow.compute

    is_usual = pyarrow.compute.match_substring_regex(words, _USUAL)
    usual, other = pyarrow.compute.if_else(is_usual, words, None), pyarrow.compute.if_else(is_usual, None, words)
    parsed = _parse_each(other)
    for zoned, times in (_parse_all(usual) or _parse_each(usual)).items():
        parsed[zoned] = pyarrow.compute.coalesce(parsed[zoned], times)
    return parsed


def _parse_each(words: Any) -> dict[bool, Any]:
    """Parse texts one by one, each distinct one once; return times with a time zone (True) and those without."""
    encoded = decode_to_dictionary(words)
    times = [parse_time(word) for word in encoded.dictionary.to_pylist()]
    kinds: dict[bool, Any] = {}
    for zoned in (False, True):
        chosen = [time if time is not None and (time.tzinfo is not None) == zoned else None for time in times]
        kinds[zoned] = arrow().array(chosen, _type(zoned)).take(encoded.indices)
    return kinds
