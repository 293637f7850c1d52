"""A record batch whose rows should meet a condition: its columns as text and words, and errors about them."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from truthcal.io.files.decode import decodes_to_text, storage
from truthcal.io.files.source import Source, arrow
from truthcal.io.files.where import Cell, TextFacts, Where, quote_name
from truthcal.io.void_words import MISSING_WORDS

_FUNCTIONS = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_SHOWN = 40  # characters of a text in an error
EQUALITIES = ("=", "!=", "in")  # all other operators need an order


class WhereBatch:
    """A record batch, where it comes from, and the condition that its rows should meet.

    Conversions of a column are cached: a long condition may compare it hundreds of times.
    """

    def __init__(self, where: Where, record: Any, source: Source, first: int) -> None:
        self._record, self._cache = record, dict[tuple[str, str], Any]()
        self.where, self.source, self.first = where, source, first

    def cached(self, kind: str, name: str, convert: Callable[[], Any]) -> Any:
        """Return a conversion of a column; convert it only once."""
        if (kind, name) not in self._cache:
            self._cache[kind, name] = convert()
        return self._cache[kind, name]

    def column(self, name: str) -> Any:
        """Return a column without dictionaries and extension types; one in the path is the same for all rows."""
        return self.cached("column", name, lambda: self._column(name))

    def _column(self, name: str) -> Any:
        if name not in self._record.schema.names:
            value = self.source.partition[name]
            n = len(self._record)
            return arrow().nulls(n) if value is None else arrow().repeat(arrow().scalar(value), n)
        column = storage(self._record.column(name))
        is_dictionary = arrow().types.is_dictionary(column.type)
        column = column.cast(column.type.value_type) if is_dictionary else column
        return column.cast(arrow().string()) if decodes_to_text(column.type) else column

    def words(self, name: str) -> Any:
        """Return the texts of a column without surrounding spaces; null if they stand for a missing value."""
        return self.cached("words", name, lambda: _without_missing_words(self.column(name)))

    def named_words(self, name: str) -> Any:
        """Return which rows of a text column hold a word that the condition names: `date != 'unknown'`."""
        return self.cached("named", name, lambda: self._named_words(name))

    def _named_words(self, name: str) -> Any:
        import pyarrow.compute

        equalities = [each for each in self.where.comparisons if each.column == name and each.operator in EQUALITIES]
        texts = [value.value for each in equalities for value in each.values if isinstance(value.value, str)]
        words = arrow().array([text for text in texts if not is_number(text)], arrow().string())
        return pyarrow.compute.is_in(self.column(name), value_set=words)

    def facts(self, name: str) -> TextFacts:
        """Return the facts about a text column of this file."""
        return self.where.facts.setdefault((str(self.source), name), TextFacts())

    def first_value(self, name: str) -> Cell | None:
        """Return the first value of the file in a text column that is not missing; None if there is none so far."""
        facts = self.facts(name)
        if facts.first is None:
            facts.first = self.first_cell(name, self.words(name).is_valid())
        return facts.first

    def first_cell(self, name: str, mask: Any) -> Cell | None:
        """Return the text in the first row of a mask, with its row in the file; None if there is none."""
        row = mask.index(True).as_py()
        return None if row < 0 else self.cell(name, row)

    def cell(self, name: str, row: int) -> Cell:
        """Return the text in a row of the batch, with its row in the file."""
        return Cell(self.column(name)[row].as_py(), self.first + row)

    def refuse(self, at: int, name: str, problem: str) -> NoReturn:
        """Raise an error about a column, that points at a place in the condition."""
        raise self.where.error(at, f"cannot be applied: column {name!r} of {self.source} {problem}")


def _without_missing_words(texts: Any) -> Any:
    import pyarrow.compute

    words = pyarrow.compute.utf8_trim_whitespace(texts)
    missing = pyarrow.compute.is_in(pyarrow.compute.utf8_lower(words), value_set=arrow().array(MISSING_WORDS))
    return pyarrow.compute.if_else(missing, None, words)


def array_of_mixed(values: Sequence[Any], kind: Any = None) -> Any:
    """Return Python values as an array of a type, or as text, as JSON writes them, if not all are of one type."""
    try:
        return arrow().array(list(values), kind)
    except (arrow().ArrowInvalid, arrow().ArrowTypeError, OverflowError):
        return arrow().array([x if x is None or isinstance(x, str) else json.dumps(x, default=str) for x in values])


def is_number(text: str) -> bool:
    """Whether a text is a number. Python's underscores, as in 1_000, are not."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def without_word(name: str, cell: Cell) -> str:
    """Name the comparison that leaves out rows with a word, for an error."""
    text = cell.text.replace("'", "''") if len(cell.text) <= _SHOWN else "..."
    return f"To leave out such rows, add: and {quote_name(name)} != '{text}'"


def shown_cell(cell: Cell) -> str:
    """Format a text of a file and its row for an error."""
    return f"{cell.text.strip()[:_SHOWN]!r} at row {cell.row}"


def compare(column: Any, operator: str, values: Sequence[Any]) -> Any:
    """Compare a column with values of its type; null where the column is."""
    import pyarrow.compute

    scalars = arrow().array(values, column.type)
    if operator == "in":
        is_in = pyarrow.compute.is_in(column, value_set=scalars)
        return pyarrow.compute.if_else(column.is_valid(), is_in, None)
    return pyarrow.compute.call_function(_FUNCTIONS[operator], [column, scalars[0]])
