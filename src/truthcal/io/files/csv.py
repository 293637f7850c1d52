"""Files of lines of fields, parted by commas or the like, as a stream of record batches."""

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any

from truthcal.io import row_codes
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import Found, refuse_bad_rows, refuse_type
from truthcal.io.files import text_input
from truthcal.io.files.csv_quotes import Counted, lose_lines
from truthcal.io.files.sources import Source
from truthcal.io.files.text_input import (
    arrow,
    beginning,
    columns_in,
    decompressed,
    refuse_missing,
    refuse_other_encodings,
    share,
)

# Bytes in which the line that names the columns is looked for: at first, and at most.
_HEADER = 1 << 18
_LONGEST_HEADER = 1 << 26
_DELIMITERS = (",", "\t", ";", "|")
_MISSING = {"y_true": row_codes.TRUE_NULL, "y_proba": row_codes.PROBA_NULL, "sample_weight": row_codes.WEIGHT_NULL}


def read_csv(source: Source, roles: ColumnRoles) -> Iterator[tuple[Any, float]]:
    """Batches of the columns in question, and the share of the file read so far."""
    delimiter, names, some = division(source, columns_in(source, roles, ()))
    refuse_missing(source, roles, names)
    if not some:
        return
    wanted, texts = columns_in(source, roles, names), text_input.texts_of(roles)
    numbers = {name: role for role, name in roles if role != "by" and name not in texts}
    file = _File(source, delimiter)
    point, types = _kinds(file, wanted, numbers)
    must = [name for name in numbers if name != roles.y_true or roles.pos_label is None]
    types |= {name: arrow().float64() for name in must if arrow().types.is_string(types[name])}
    # Groups and labels are told apart by their text: 007 is not 7, and the next file may hold letters. Nothing but an
    # empty field is missing there: NA may be Namibia.
    types = _settled(types, roles) | {name: arrow().string() for name in wanted if name in texts}
    ways = {"include_columns": wanted, "column_types": types, "decimal_point": point}
    words = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    try:
        yield from file.batches(**ways, **words)
    except arrow().ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
        _refuse_words(file, numbers, point, roles)
        raise


class _File:
    """A file that can be read again and again, in different ways."""

    def __init__(self, source: Source, delimiter: str) -> None:
        self.source, self.delimiter = source, delimiter

    def batches(self, **ways: Any) -> Iterator[tuple[Any, float]]:
        """All batches, and the share of the file read so far. Refuses quotes that swallow lines."""
        size = self.source.path.stat().st_size
        with arrow().OSFile(str(self.source.path)) as raw:
            text = Counted(decompressed(self.source, raw), self.delimiter)
            for batch in self._opened(text, ways):
                yield batch, share(raw, size)
        if not text.are_in_order() and self._loses_lines():
            raise arrow().ArrowInvalid("a quote is opened and never closed, so it is not known where lines end")

    def kinds(self, **ways: Any) -> dict[str, Any]:
        """The types of columns, by the first block."""
        with arrow().OSFile(str(self.source.path)) as raw:
            schema = self._opened(decompressed(self.source, raw), ways).schema
        return {name: schema.field(name).type for name in schema.names}

    def _opened(self, text: Any, ways: dict[str, Any]) -> Any:
        import pyarrow.csv

        return pyarrow.csv.open_csv(
            text,
            pyarrow.csv.ReadOptions(block_size=text_input.BLOCK),
            pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pyarrow.csv.ConvertOptions(**ways),
        )

    def _loses_lines(self) -> bool:
        with arrow().OSFile(str(self.source.path)) as raw:
            text = decompressed(self.source, raw)
            return lose_lines(iter(lambda: text.read(text_input.BLOCK), b""), self.delimiter)


# --- kinds of columns -------------------------------------------------------------------------------------------------


def _kinds(file: _File, wanted: list[str], numbers: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """How fractions are written, and the types of the columns, by the first block."""

    def words(types: dict[str, Any]) -> set[str]:
        return {name for name in numbers if arrow().types.is_string(types[name])}

    types = file.kinds(include_columns=wanted)
    if file.delimiter != "," and words(types):
        # As numbers are written where a comma does not part columns: unless that makes text of a column of numbers.
        others = file.kinds(include_columns=wanted, decimal_point=",")
        if words(others) <= words(types):
            return ",", others
    return ".", types


def _settled(types: dict[str, Any], roles: ColumnRoles) -> dict[str, Any]:
    """Types that hold to the end of the file: a column that begins with whole numbers may go on with others."""
    kinds = arrow().types
    large = text_input.large_labels(roles)
    settled = {}
    for name, kind in types.items():
        number = kinds.is_null(kind) or kinds.is_integer(kind) or kinds.is_floating(kind)
        own = large if large is not None and name == roles.y_true else arrow().float64()
        settled[name] = own if number else kind
    return settled


def _refuse_words(file: _File, numbers: dict[str, str], point: str, roles: ColumnRoles) -> None:
    """Find what cannot be read as a number, if that is what is wrong."""
    row, where = 0, str(file.source)
    types = dict.fromkeys(numbers, arrow().string())
    for batch, _ in file.batches(include_columns=list(numbers), column_types=types, strings_can_be_null=True):
        for name, role in numbers.items():
            column = batch.column(name)
            for i, word in _words(column, point):
                refuse_type(name, role, f"text in {where} ({word[:40]!r} at row {row + i})", text=True, word=word)
            if column.null_count:
                first = row + column.is_null().index(True).as_py()
                refuse_bad_rows({_MISSING[role]: Found(column.null_count, row=first)}, len(batch), roles, where)
        row += len(batch)


def _words(column: Any, point: str) -> Iterator[tuple[int, str]]:
    """Fields that are no numbers, and their places."""
    with contextlib.suppress(arrow().ArrowInvalid):
        column.cast(arrow().float64())
        return  # all are, which is quick to see
    yield from ((i, value) for i, value in enumerate(column.to_pylist()) if not _is_number(value, point))


def _is_number(value: str | None, point: str) -> bool:
    """Whether a field is a number, True, False or nothing."""
    try:
        return value is None or value.lower() in ("true", "false") or float(value.replace(point, ".")) is not None
    except ValueError:
        return False


# --- the line that names the columns ----------------------------------------------------------------------------------


def division(source: Source, wanted: Iterable[str] = ()) -> tuple[str, list[str], bool]:
    """What parts the columns: whatever gives the wanted ones, else whatever gives the most. Their names; if any row."""
    raw = first_lines(source)
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip("\r\n")
    if not text.strip():
        raise ValueError(f"{source}: the file is empty.")
    refuse_other_encodings(source, raw)
    readings = []
    for delimiter in _DELIMITERS:
        with contextlib.suppress(csv.Error):  # a name of more than 100,000 letters, which only the wrong one makes
            readings.append((delimiter, next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))))
    if not readings:
        raise csv.Error("no line that names columns: a quote is opened there and never closed?")
    delimiter, names = max(readings, key=lambda reading: (set(wanted) <= set(reading[1]), len(reading[1])))
    refuse_other_encodings(source, raw, "".join(names))
    return delimiter, names, re.search(r"[\r\n]", text.strip()) is not None


def first_lines(source: Source) -> bytes:
    """At least the line that names the columns, to its end, and a bit of the next if there is one."""
    size = _HEADER
    while True:
        text = beginning(source, size)
        if len(text) < size or size >= _LONGEST_HEADER or _has_a_line(text[: -(1 << 10)]):
            return text
        size *= 4


def _has_a_line(text: bytes) -> bool:
    """Whether a line ends here, outside quotes."""
    quotes = last = 0
    for found in re.finditer(rb"[\r\n]+", text):
        quotes += text.count(b'"', last, found.start())
        last = found.start()
        if found.start() and quotes % 2 == 0:
            return True
    return False
