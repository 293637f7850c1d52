"""The rows of a record batch that meet a condition."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import closest_name, list_shown, shown
from truthcal.io.files.decode import decodes_to_numbers, decodes_to_text, storage
from truthcal.io.files.source import Source, arrow
from truthcal.io.files.where import Both, Comparison, Condition, Not, Value, Where

_FUNCTIONS = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
# Text that stands for a missing number.
_MISSING = ("", "na", "n/a", "nan", "null", "none")
_DATE = "a date such as '2024-01-31' or '2024-01-31T12:00'"


def rows_where(record: Any, source: Source, first: int = 0) -> NDArray[np.int64]:
    """Return the indices of the rows that meet the condition of their source; a comparison with null is not met.

    The first row of the batch is row `first` of its file.
    """
    where = source.where
    assert where is not None
    met = _evaluate(where.condition, _Batch(where, record, source, first))
    return np.flatnonzero(np.asarray(met.fill_null(False)))


def rows_to_preview_where(columns: Mapping[str, Sequence[Any]], n: int, source: Source) -> list[int]:
    """Return the indices of previewed rows that meet the condition of their source, if any; else all.

    `columns` has at least those of the condition that are not in the path. If one is unknown, all rows are returned:
    `require_where_columns` reports it.
    """
    where = source.where
    if where is None or not all(name in columns or name in source.partition for name in where.columns):
        return list(range(n))
    arrays = {}
    for name in where.columns:
        if name in columns:
            try:
                arrays[name] = arrow().array(list(columns[name]))
            except (arrow().ArrowInvalid, arrow().ArrowTypeError):
                return list(range(n))  # a column of mixed types; the reader reports it
    record = arrow().RecordBatch.from_arrays([*arrays.values(), arrow().nulls(n)], [*arrays, ""])
    return [int(row) for row in rows_where(record, source)] or list(range(n))


def require_where_columns(source: Source, names: Sequence[str]) -> None:
    """Raise an error that points at a column of the condition that its source does not have."""
    where = source.where
    in_path = [name for name in source.partition if name not in names]
    known = {*names, *in_path}
    for comparison in where.comparisons if where is not None else []:
        if where is not None and comparison.column not in known:
            close = closest_name(comparison.column, list(known))
            suggestion = f" Did you mean {shown(close)}?" if close else ""
            problem = f"names the column {comparison.column!r}, which {source} does not have."
            raise where.error(comparison.at, f"{problem}{suggestion} It has {list_shown([*names, *in_path])}.")


class _Batch:
    """A record batch, where it comes from, and the condition that its rows should meet."""

    def __init__(self, where: Where, record: Any, source: Source, first: int) -> None:
        self._where, self._record, self._first, self.source = where, record, first, source

    def column(self, name: str) -> Any:
        """Return a column without dictionaries and extension types; one in the path is the same for all rows."""
        if name not in self._record.schema.names:
            value = self.source.partition[name]
            n = len(self._record)
            return arrow().nulls(n) if value is None else arrow().repeat(arrow().scalar(value), n)
        column = storage(self._record.column(name))
        is_dictionary = arrow().types.is_dictionary(column.type)
        return column.cast(column.type.value_type) if is_dictionary else column

    def refuse(self, at: int, name: str, problem: str, row: int | None = None) -> NoReturn:
        """Raise an error about a column, that points at a place in the condition."""
        place = "" if row is None else f" at row {self._first + row}"
        raise self._where.error(
            at, f"cannot be applied: column {name!r} of {self.source} {problem.format(place=place)}"
        )


def _evaluate(condition: Condition, batch: _Batch) -> Any:
    import pyarrow.compute

    if isinstance(condition, Not):
        return pyarrow.compute.invert(_evaluate(condition.condition, batch))
    if isinstance(condition, Both):
        first, second = _evaluate(condition.first, batch), _evaluate(condition.second, batch)
        return pyarrow.compute.call_function(f"{condition.operator}_kleene", [first, second])
    column = batch.column(condition.column)
    if condition.operator == "is null":
        return column.is_null(nan_is_null=True)
    if arrow().types.is_null(column.type):
        return arrow().nulls(len(column), arrow().bool_())
    column, values = _comparable(column, condition, batch)
    scalars = arrow().array(values, column.type)
    if condition.operator == "in":
        is_in = pyarrow.compute.is_in(column, value_set=scalars)
        return pyarrow.compute.if_else(column.is_valid(), is_in, None)
    return pyarrow.compute.call_function(_FUNCTIONS[condition.operator], [column, scalars[0]])


def _comparable(column: Any, comparison: Comparison, batch: _Batch) -> tuple[Any, list[Any]]:
    """Return a column and the values that it is compared with, of one type."""
    types, kind, literal = arrow().types, column.type, comparison.values[0]
    if types.is_date(kind) or types.is_timestamp(kind):
        return _as_times(column, comparison, batch)
    if types.is_boolean(kind):
        return _as_bools(column, comparison, batch)
    if decodes_to_numbers(kind):
        if isinstance(literal.value, str):
            cure = f"write {literal.value} without quotes" if _is_number(literal.value) else "compare it with a number"
            batch.refuse(literal.at, comparison.column, f"holds numbers, which cannot be compared with text; {cure}.")
        return _as_numbers(column, comparison)
    if not decodes_to_text(kind):
        batch.refuse(comparison.at, comparison.column, f"holds values of type {kind}, which cannot be compared.")
    if isinstance(literal.value, bool):
        return _texts_as_bools(column, comparison, batch)
    if not isinstance(literal.value, str):
        return _as_numbers(_texts_as_numbers(column, comparison, batch), comparison)
    return _as_texts(column, comparison, batch)


def _as_numbers(column: Any, comparison: Comparison) -> tuple[Any, list[Any]]:
    values = [value.value for value in comparison.values]
    whole = arrow().types.is_integer(column.type) and all(isinstance(v, int) and abs(v) < 2**63 for v in values)
    if whole and not arrow().types.is_uint64(column.type):
        return column.cast(arrow().int64()), [int(value) for value in values]
    return _floats(column), [float(value) for value in values]


def _floats(column: Any) -> Any:
    """Convert numbers to float64; nan is missing."""
    import pyarrow.compute

    if arrow().types.is_decimal(column.type):
        column = column.cast(arrow().string())  # a direct cast makes 0.09999999999999999 of 0.1
    column = column.cast(arrow().float64(), safe=False)
    return pyarrow.compute.if_else(pyarrow.compute.is_nan(column), None, column)


def _texts_as_numbers(column: Any, comparison: Comparison, batch: _Batch) -> Any:
    """Convert text to numbers. Raises if there are other words."""
    import pyarrow.compute

    words = pyarrow.compute.utf8_trim_whitespace(column.cast(arrow().string()))
    if batch.source.format.name == "CSV" and batch.source.delimiter != ",":
        words = pyarrow.compute.replace_substring(words, ",", ".")  # a decimal comma
    missing = pyarrow.compute.is_in(pyarrow.compute.utf8_lower(words), value_set=arrow().array(_MISSING))
    words = pyarrow.compute.if_else(missing, None, words)
    try:
        return words.cast(arrow().float64())
    except arrow().ArrowInvalid:
        row, word = next((i, w) for i, w in enumerate(words.to_pylist()) if w is not None and not _is_number(w))
        number = comparison.values[0]
        cure = f"To compare it as text, use quotes: '{number.value}'."
        problem = f"holds text ({word[:40]!r}{{place}}), which cannot be compared with a number. {cure}"
        batch.refuse(number.at, comparison.column, problem, row)


def _is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        float(text)
        return "_" not in text
    return False


def _as_bools(column: Any, comparison: Comparison, batch: _Batch) -> tuple[Any, list[Any]]:
    for literal in comparison.values:
        if literal.value not in (0, 1):
            batch.refuse(literal.at, comparison.column, "holds true and false; compare it with one of these.")
    if comparison.operator not in ("=", "!=", "in"):
        batch.refuse(comparison.at, comparison.column, "holds true and false; use = or !=.")
    return column, [bool(value.value) for value in comparison.values]


def _texts_as_bools(column: Any, comparison: Comparison, batch: _Batch) -> tuple[Any, list[Any]]:
    words = [None if word is None else word.strip().lower() for word in column.to_pylist()]
    for row, word in enumerate(words):
        if word and word not in _TRUTHS:
            problem = f"holds text ({word[:40]!r}{{place}}), which is neither true nor false; compare it with text."
            batch.refuse(comparison.values[0].at, comparison.column, problem, row)
    truths = arrow().array([_TRUTHS[word] if word else None for word in words], arrow().bool_())
    return _as_bools(truths, comparison, batch)


# --- text and times ---------------------------------------------------------------------------------------------------


def _as_texts(column: Any, comparison: Comparison, batch: _Batch) -> tuple[Any, list[Any]]:
    """Return text as it is; but as times if it is compared with a date, so that formats may differ."""
    is_date = all(_parse_time(value) is not None for value in comparison.values)
    column, literal = column.cast(arrow().string()), comparison.values[0]
    first = next((value.as_py() for value in column if value.is_valid and value.as_py().strip()), "")
    if comparison.operator in ("<", "<=", ">", ">=") and _is_number(str(literal.value)) and _is_number(first):
        cure = f"Write {literal.value} without quotes: as text, '9' comes after '10'."
        batch.refuse(literal.at, comparison.column, f"holds numbers ({first[:40]!r}). {cure}")
    if is_date:
        zoned = _first_zone(column)
        with contextlib.suppress(arrow().ArrowInvalid):
            return _as_times(column.cast(arrow().timestamp("us", "UTC" if zoned else None)), comparison, batch)
    if is_date and comparison.operator not in ("=", "!=", "in"):
        row, word = next((i, w) for i, w in enumerate(column.to_pylist()) if w is not None and not _is_time(w))
        problem = f"holds text ({word[:40]!r}{{place}}) that is not {_DATE}, so it has no order in time."
        batch.refuse(comparison.values[0].at, comparison.column, problem, row)
    return column, [value.value for value in comparison.values]


def _first_zone(column: Any) -> bool:
    """Whether the first text that is not null is a time with a time zone."""
    text = next((value.as_py() for value in column if value.is_valid), "")
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).tzinfo is not None
    return False


def _is_time(text: str) -> bool:
    return _parse_time(Value(text, 0)) is not None


def _parse_time(value: Value) -> datetime | None:
    """Parse a literal as a time; None if it is none. Digits alone are no date: they may be a year or a number."""
    text = value.value
    with contextlib.suppress(ValueError):
        if isinstance(text, str) and "-" in text:
            return datetime.fromisoformat(text.strip())
    return None


def _as_times(column: Any, comparison: Comparison, batch: _Batch) -> tuple[Any, list[Any]]:
    """Return times in microseconds. Literals without a time zone are UTC if the column has one."""
    zoned = getattr(column.type, "tz", None) is not None
    times: list[date] = []
    for literal in comparison.values:
        time = _parse_time(literal)
        if time is None:
            batch.refuse(literal.at, comparison.column, f"holds times; compare it with {_DATE}, in quotes.")
        if time.tzinfo is not None and not zoned:
            batch.refuse(literal.at, comparison.column, "holds times without a time zone; omit that of this time.")
        times.append(time.replace(tzinfo=UTC) if zoned and time.tzinfo is None else time)
    return column.cast(arrow().timestamp("us", "UTC" if zoned else None), safe=False), times
