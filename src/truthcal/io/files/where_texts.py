"""Comparisons of text columns with text, and which of their values are missing."""

from typing import Any, NoReturn

from truthcal.core.params import list_shown, shown
from truthcal.io.files.decode import decodes_to_text
from truthcal.io.files.source import arrow
from truthcal.io.files.where import Cell, Comparison, TextHint, Where, quote_name
from truthcal.io.files.where_batch import EQUALITIES, WhereBatch, compare, is_number, shown_cell
from truthcal.io.files.where_times import parse_time

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_HINTED, _HINT_ROWS = 5, 1000  # values to list in a hint, and rows of a batch in which to look for them


# --- missing values ---------------------------------------------------------------------------------------------------


def is_missing(name: str, batch: WhereBatch) -> Any:
    """Return which rows of a column are missing: null and nan, and words such as NA if it holds numbers or dates."""
    column = batch.column(name)
    if decodes_to_text(column.type) and batch.cached("is typed", name, lambda: _is_typed(name, batch)):
        return batch.words(name).is_null()
    return column.is_null(nan_is_null=True)


def _is_typed(name: str, batch: WhereBatch) -> bool:
    """Whether a text column holds numbers, dates or truth values.

    It does if the condition compares it with one. If the condition does not compare it, its first value decides.
    """
    literals = [value.value for each in batch.where.comparisons if each.column == name for value in each.values]
    if literals:
        return any(not isinstance(literal, str) or parse_time(literal) is not None for literal in literals)
    first, facts = batch.first_value(name), batch.facts(name)
    if first is None:
        facts.missing = facts.missing or batch.first_cell(name, batch.column(name).is_valid())
        return True
    text = first.text.strip()
    is_typed = is_number(text) or parse_time(text) is not None or text.lower() in _TRUTHS
    if not is_typed and facts.missing is not None and facts.missing.row < batch.first <= first.row:
        _refuse_ambiguous_null(name, facts.missing, first, batch)
    return is_typed


def _refuse_ambiguous_null(name: str, missing: Cell, first: Cell, batch: WhereBatch) -> NoReturn:
    """Raise if words of earlier batches were counted as missing, but the column turns out to hold text."""
    at = next(each.at for each in batch.where.comparisons if each.column == name)
    problem = f"starts with words that may stand for missing values ({shown_cell(missing)}), before text"
    cure = f"If they do not, name one: `{quote_name(name)} != '{missing.text.strip()}'`."
    batch.refuse(at, name, f"{problem} ({shown_cell(first)}). {cure}")


# --- comparisons ------------------------------------------------------------------------------------------------------


def compare_bools(column: Any, comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a column of truth values with true or false."""
    for literal in comparison.values:
        if literal.value not in (0, 1):
            batch.refuse(literal.at, comparison.column, "holds true and false; compare it with one of these.")
    if comparison.operator not in EQUALITIES:
        batch.refuse(comparison.at, comparison.column, "holds true and false; use = or !=.")
    return compare(column, comparison.operator, [bool(value.value) for value in comparison.values])


def compare_texts_as_bools(comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a text column with true or false. Raises if it has other words."""
    import pyarrow.compute

    name = comparison.column
    words = pyarrow.compute.utf8_lower(batch.words(name))
    is_other = pyarrow.compute.and_(words.is_valid(), pyarrow.compute.invert(_is_in(words, list(_TRUTHS))))
    if (cell := batch.first_cell(name, is_other)) is not None:
        problem = f"holds text ({shown_cell(cell)}), which is neither true nor false; compare it with text."
        batch.refuse(comparison.values[0].at, name, problem)
    truths = _is_in(words, [word for word, truth in _TRUTHS.items() if truth])
    return compare_bools(pyarrow.compute.if_else(words.is_valid(), truths, None), comparison, batch)


def _is_in(words: Any, values: list[str]) -> Any:
    import pyarrow.compute

    return pyarrow.compute.is_in(words, value_set=arrow().array(values, arrow().string()))


def compare_texts(comparison: Comparison, batch: WhereBatch) -> Any:
    """Compare a text column with text, as it is. Raises for an order of numbers, which text does not have."""
    name, literal = comparison.column, comparison.values[0]
    if comparison.operator not in EQUALITIES and is_number(str(literal.value)):
        first = batch.first_value(name)
        if first is not None and is_number(first.text):
            cure = f"Write {literal.value} without quotes: as text, '9' comes after '10'."
            batch.refuse(literal.at, name, f"holds numbers ({shown_cell(first)}). {cure}")
    met = compare(batch.column(name), comparison.operator, [value.value for value in comparison.values])
    if comparison.operator in ("=", "in") and not batch.where.rows[1]:
        _collect_hint(comparison, met, batch)
    return met


# --- hints if no row is kept ------------------------------------------------------------------------------------------


def _collect_hint(comparison: Comparison, met: Any, batch: WhereBatch) -> None:
    """Remember a few values of a column, and one that differs from the literal only by case or spaces."""
    import pyarrow.compute

    name, hint = comparison.column, batch.where.hints.setdefault(comparison.at, TextHint(comparison.column))
    hint.matched = hint.matched or bool(pyarrow.compute.any(met).as_py())
    if hint.matched:
        return
    if len(hint.values) <= _HINTED:
        values = batch.cached("values", name, lambda: batch.column(name).slice(0, _HINT_ROWS).drop_null().unique())
        hint.values.update(dict.fromkeys(values.slice(0, _HINTED + 1).to_pylist()))
    if not hint.similar:
        lower = batch.cached("lower", name, lambda: pyarrow.compute.utf8_lower(_trimmed(batch.column(name))))
        literals = [str(value.value).strip().lower() for value in comparison.values]
        similar = batch.first_cell(name, _is_in(lower, literals))
        hint.similar = "" if similar is None else similar.text


def _trimmed(texts: Any) -> Any:
    import pyarrow.compute

    return pyarrow.compute.utf8_trim_whitespace(texts)


def hint_of_values(where: Where) -> str:
    """Describe the first column whose comparison with text no row has met, for the error that no row is kept."""
    hint = next((hint for hint in where.hints.values() if not hint.matched and hint.values), None)
    if hint is None:
        return ""
    values = list(hint.values)
    suggestion = f" Did you mean {shown(hint.similar)}?" if hint.similar else ""
    listed = list_shown(values[:_HINTED], more=len(values) > _HINTED)
    return f"{suggestion} Column {shown(hint.column)} has {listed}."
