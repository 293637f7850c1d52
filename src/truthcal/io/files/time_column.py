"""The time column of record batches, decoded to `Times`."""

import re
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid, row_of_first
from truthcal.core.times import Times, integers_of_text, times_of
from truthcal.io.files.decode import decode_to_dictionary, storage
from truthcal.io.files.source import RowNumbers, Source, arrow, errors_naming

_ROW = re.compile(r"\bat row (\d+)")


def decode_times(record: Any, name: str, source: Source, numbers: RowNumbers, unit: str | None = None) -> Times:
    """Decode the time of each row of a batch; `numbers` are those of its rows in the file.

    A column of the path is the same for all rows. Text of digits only, as all integers in CSV, is an integer.
    """
    rows: NDArray[np.int64] | None = np.zeros(len(record), np.int64)
    column: Any = [source.partition.get(name)]
    if name in record.schema.names:
        with errors_naming(source):
            rows, column = _distinct_times(storage(record.column(name)))
    subject = f"{source}: column {name!r}"
    if isinstance(column, list) and None in column:
        missing = np.array([value is None for value in column], np.bool_)[rows]
        place = _ROW.sub(lambda match: f"at row {numbers[int(match[1])]}", row_of_first(missing))
        problem = f"has a missing value (no time) {place}. Drop those rows, or fill in their times."
        raise invalid("time", problem, subject=subject)
    try:
        times = times_of(integers_of_text(column), "time", unit)
    except (ValueError, TypeError):
        _refuse_time(column, rows, numbers, unit, subject)
    return times if rows is None else Times(times.values[rows], times.counter, times.zoned)


def _distinct_times(column: Any) -> tuple[NDArray[np.int64] | None, Any]:
    """Return each row's index into a list of distinct times; or no index, and a numpy array of the times."""
    types, kind = arrow().types, column.type
    plain = types.is_timestamp(kind) or types.is_date(kind) or types.is_integer(kind)
    if plain and not column.null_count:
        return None, column
    encoded = decode_to_dictionary(column)
    # Only values of this batch: the dictionary may hold those of the whole file.
    occurring, rows = np.unique(np.from_dlpack(encoded.indices), return_inverse=True)
    return rows.astype(np.int64), encoded.dictionary.take(arrow().array(occurring)).to_pylist()


def _refuse_time(
    column: Any, rows: NDArray[np.int64] | None, numbers: RowNumbers, unit: str | None, subject: str
) -> NoReturn:
    """Raise the error for a column of times again, with the name of the file and the number of the row in it."""
    distinct = integers_of_text(column)
    try:
        times_of(column if rows is None else [distinct[row] for row in rows], "time", unit)
    except (ValueError, TypeError) as error:
        parts = vars(error)
        problem = _ROW.sub(lambda match: f"at row {numbers[int(match[1])]}", parts["problem"])
        raise invalid("time", problem, type(error), subject=subject, fix=parts["fix"]) from None
    raise AssertionError("the rows have the same times as their distinct values")
