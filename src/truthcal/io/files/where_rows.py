"""The rows of a record batch that meet a condition."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import closest_name, list_shown, shown
from truthcal.io.files.decode import decodes_to_numbers, decodes_to_text
from truthcal.io.files.source import Source, arrow
from truthcal.io.files.where import Comparison, Condition, Joined, Not, Where
from truthcal.io.files.where_batch import WhereBatch, array_of_mixed, is_number
from truthcal.io.files.where_numbers import compare_numbers, compare_texts_as_numbers
from truthcal.io.files.where_texts import compare_bools, compare_texts, compare_texts_as_bools, is_missing
from truthcal.io.files.where_times import compare_texts_as_times, compare_times, parse_time, refuse_impossible_dates


def rows_where(record: Any, source: Source, first: int = 0) -> NDArray[np.int64]:
    """Return the indices of the rows that meet the condition of their source; a comparison with null is not met.

    The first row of the batch is row `first` of its file.
    """
    where = source.where
    assert where is not None
    met = _evaluate(where.condition, WhereBatch(where, record, source, first))
    return np.flatnonzero(np.asarray(met.fill_null(False)))


def rows_to_preview_where(columns: Mapping[str, Sequence[Any]], n: int, source: Source) -> list[int]:
    """Return the indices of previewed rows that meet the condition of their source, if any; else all.

    `columns` has at least those of the condition that are not in the path. If one is unknown, all rows are returned:
    `require_where_columns` reports it.
    """
    where = source.where
    if where is None or not all(name in columns or name in source.partition for name in where.columns):
        return list(range(n))
    arrays = {name: array_of_mixed(columns[name]) for name in where.columns if name in columns}
    record = arrow().RecordBatch.from_arrays([*arrays.values(), arrow().nulls(n)], [*arrays, ""])
    return [int(row) for row in rows_where(record, source)] or list(range(n))


def require_where_columns(source: Source, names: Sequence[str]) -> None:
    """Raise an error that points at a column of the condition that its source does not have."""
    where = source.where
    in_path = [name for name in source.partition if name not in names]
    known = [*names, *in_path]
    for comparison in where.comparisons if where is not None else []:
        if where is not None and comparison.column not in known:
            close = closest_name(comparison.column, known)
            suggestion = f" Did you mean {shown(close)}?" if close else ""
            problem = f"names the column {comparison.column!r}, which {source} does not have."
            raise where.error(comparison.at, f"{problem}{suggestion} It has {list_shown(known)}.")
        if where is not None:
            _refuse_second_column(where, comparison, known, source)


def _refuse_second_column(where: Where, comparison: Comparison, known: Sequence[str], source: Source) -> None:
    """Reject text in double quotes that is the name of a column: as in SQL, it may be meant as the column."""
    for value in comparison.values:
        if where.text[value.at] == '"' and value.value in known:
            text = "'" + str(value.value).replace("'", "''") + "'"
            problem = (
                f"has {shown(value.value)} in double quotes in place of a value, which is also a column of {source}."
            )
            raise where.error(value.at, f"{problem} Two columns cannot be compared; put text in single quotes: {text}.")


def _evaluate(condition: Condition, batch: WhereBatch) -> Any:
    import pyarrow.compute

    if isinstance(condition, Not):
        return pyarrow.compute.invert(_evaluate(condition.condition, batch))
    if isinstance(condition, Joined):
        join = pyarrow.compute.and_kleene if condition.operator == "and" else pyarrow.compute.or_kleene
        return functools.reduce(join, (_evaluate(each, batch) for each in condition.conditions))
    if condition.operator == "is null":
        return is_missing(condition.column, batch)
    return _compare(condition, batch)


def _compare(comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a column with literals in the way that fits its type."""
    column = batch.column(comparison.column)
    types, kind, literal = arrow().types, column.type, comparison.values[0]
    if types.is_null(kind):
        return arrow().nulls(len(column), arrow().bool_())
    if types.is_date(kind) or types.is_timestamp(kind):
        return compare_times(column, comparison, batch)
    if types.is_boolean(kind):
        return compare_bools(column, comparison, batch)
    if decodes_to_text(kind):
        return _compare_text_column(comparison, batch)
    if not decodes_to_numbers(kind):
        batch.refuse(comparison.at, comparison.column, f"holds values of type {kind}, which cannot be compared.")
    if isinstance(literal.value, str):
        cure = f"write {literal.value} without quotes" if is_number(literal.value) else "compare it with a number"
        batch.refuse(literal.at, comparison.column, f"holds numbers, which cannot be compared with text; {cure}.")
    return compare_numbers(column, comparison)


def _compare_text_column(comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a text column as the literals demand: as truth values, numbers, times or text."""
    literal = comparison.values[0].value
    if isinstance(literal, bool):
        return compare_texts_as_bools(comparison, batch)
    if not isinstance(literal, str):
        return compare_texts_as_numbers(comparison, batch)
    if any(parse_time(value.value) is not None for value in comparison.values):
        return compare_texts_as_times(comparison, batch)
    refuse_impossible_dates(comparison, batch)
    return compare_texts(comparison, batch)
