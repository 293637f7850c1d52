"""Comparisons of columns with numbers: integers exactly, floats at the precision of the column."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from truthcal.io.files.decode import decode_to_dictionary
from truthcal.io.files.source import arrow
from truthcal.io.files.where import EXACT, Comparison, exact_number
from truthcal.io.files.where_batch import WhereBatch, compare, shown_cell, without_word

_EXACT: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DTYPES: dict[str, type[np.floating[Any]]] = {"halffloat": np.float16, "float": np.float32, "double": np.float64}


def compare_numbers(column: Any, comparison: Comparison) -> Any:
    """Compare a column of numbers with literals."""
    types = arrow().types
    if types.is_floating(column.type):
        return _compare_floats(column, comparison)
    if types.is_decimal(column.type):
        column = column.cast(arrow().string())  # a direct cast to float64 makes 0.09999999999999999 of 0.1
    elif _fit(comparison, *_limits(column.type)):
        return compare(column, comparison.operator, [int(value.value) for value in comparison.values])
    return _compare_exactly(column, column.cast(arrow().float64(), safe=False), comparison)


def _limits(kind: Any) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type."""
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def _fit(comparison: Comparison, low: int, high: int) -> bool:
    """Whether all literals of a comparison are integers in this range."""
    return all(isinstance(value.value, int) and low <= value.value <= high for value in comparison.values)


def _compare_floats(column: Any, comparison: Comparison) -> Any:
    """Compare floats with literals that are rounded to their type: 0.1 equals 0.1 stored as float32. nan is missing."""
    import pyarrow.compute

    with np.errstate(over="ignore"):
        values = [float(_DTYPES[str(column.type)](float(value.value))) for value in comparison.values]
    if arrow().types.is_float16(column.type):
        column = column.cast(arrow().float32())
    column = pyarrow.compute.if_else(pyarrow.compute.is_nan(column), None, column)
    return compare(column, comparison.operator, values)


def compare_texts_as_numbers(comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a text column with numbers. Raises if it has other words that the condition does not name."""
    name = comparison.column
    words = batch.cached("numerals", name, lambda: _numerals(name, batch))
    numbers = batch.cached("numbers", name, lambda: _parse_numbers(words))
    if numbers is None:
        cell, number = batch.cell(name, _first_word(words)), comparison.values[0]
        cure = f"To compare it as text, use quotes: '{number.value}'."
        problem = f"holds text ({shown_cell(cell)}), which cannot be compared with a number. {cure}"
        batch.refuse(number.at, name, f"{problem} {without_word(name, cell)}")
    return _compare_exactly(words, numbers, comparison)


def _numerals(name: str, batch: WhereBatch) -> Any:
    """Return words with a decimal point in place of a decimal comma; null if the condition names them."""
    import pyarrow.compute

    words = pyarrow.compute.if_else(batch.named_words(name), None, batch.words(name))
    has_commas = batch.source.format.name == "CSV" and batch.source.delimiter != ","
    return pyarrow.compute.replace_substring(words, ",", ".") if has_commas else words


def _parse_numbers(words: Any) -> Any:
    """Return words as float64; None if one is not a number."""
    try:
        return words.cast(arrow().float64())
    except arrow().ArrowInvalid:
        return None


def _first_word(words: Any) -> int:
    """Return the row of the first word that is not a number, by bisection; there is one."""
    low, high = 0, len(words)
    while high - low > 1:
        middle = (low + high) // 2
        part = words.slice(low, middle - low)
        low, high = (middle, high) if _parse_numbers(part) is not None else (low, middle)
    return low


def _compare_exactly(column: Any, floats: Any, comparison: Comparison) -> Any:
    """Compare integers or texts of numbers, which are also given as floats, without rounding large integers.

    Rounding keeps the order, so floats decide, except where one equals a large literal: there the exact values do.
    """
    import pyarrow.compute

    literals = [float(value.value) for value in comparison.values]
    floats = pyarrow.compute.if_else(pyarrow.compute.is_nan(floats), None, floats)
    met = compare(floats, comparison.operator, literals)
    large = [literal for literal in literals if EXACT <= abs(literal) < math.inf]
    is_tie = pyarrow.compute.is_in(floats, value_set=arrow().array(large, arrow().float64()))
    if not pyarrow.compute.any(is_tie).as_py():
        return met
    ties = decode_to_dictionary(column.filter(is_tie))
    exact = [_meets(exact_number(str(number)), comparison) for number in ties.dictionary.to_pylist()]
    return pyarrow.compute.replace_with_mask(met, is_tie, arrow().array(exact, arrow().bool_()).take(ties.indices))


def _meets(number: int | float, comparison: Comparison) -> bool:
    literals = [value.value for value in comparison.values]
    return number in literals if comparison.operator == "in" else _EXACT[comparison.operator](number, literals[0])
