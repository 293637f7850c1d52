"""CSV files (comma, tab, semicolon or bar) as record batches, and their preview."""

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from truthcal.io.column_roles import KEY_ROLES, ColumnRoles
from truthcal.io.errors import BadRows, refuse_bad_rows, refuse_column_type
from truthcal.io.files.csv_quotes import QuoteCheck, has_line_end, swallows_lines
from truthcal.io.files.decode import decodes_to_numbers
from truthcal.io.files.preview import Column, preview_values, rows_to_preview
from truthcal.io.files.source import SKETCH, Batches, Checksum, Source, arrow
from truthcal.io.files.text_input import UTF8_MARK, TextInput, is_sketch, large_label_type, require_utf8, text_columns
from truthcal.io.files.where_rows import rows_to_preview_where
from truthcal.io.row_codes import code_of
from truthcal.io.void_words import is_void

_HEADER, _LONGEST_HEADER = 1 << 18, 1 << 26  # bytes in which to look for the header: at first, and at most
_DELIMITERS = (",", "\t", ";", "|")
# Fields that pyarrow reads as null, true and false in columns of numbers and booleans.
_NULLS = {"", "NA", "N/A", "n/a", "NULL", "null", "NaN", "nan", "-NaN", "-nan", "#N/A", "#N/A N/A", "#NA", "1.#IND"}
_NULLS |= {"1.#QNAN", "-1.#IND", "-1.#QNAN"}
_TRUE, _FALSE = {"1", "True", "TRUE", "true"}, {"0", "False", "FALSE", "false"}


def read_csv(source: Source, roles: ColumnRoles, checksum: Checksum | None) -> Batches:
    """Yield batches of the requested columns of a CSV file, and the share of the file read so far."""
    with TextInput(source, checksum) as text:
        if not source.delimiter:
            source = _with_dialect(source, text, source.columns_to_read(roles, ()))
        source.require_columns(roles, source.header)
        if not re.search(r"[\r\n]", _csv_text(_header_bytes(text)).strip()):
            return  # a header without rows
        options, numbers = _convert_options(source, roles, text)
        try:
            yield from _csv_batches(source, text, **options)
        except arrow().ArrowInvalid as error:
            if "conversion error" in str(error):
                _refuse_text_fields(source, numbers, options["decimal_point"], roles)
            raise


def _convert_options(source: Source, roles: ColumnRoles, text: TextInput) -> tuple[dict[str, Any], dict[str, str]]:
    """Return how pyarrow should convert the requested columns of CSV, and the role of each column of numbers."""
    wanted, texts = source.columns_to_read(roles, source.header), text_columns(roles)
    if source.void:  # numbers or words such as "void", which the decoder knows
        texts |= {roles.y_true, *roles.y_probas}
    if source.percent:  # with or without a percent sign
        texts |= {*roles.y_probas}
    if source.where is not None:  # rows with words may be left out, whichever columns the condition compares
        texts |= {name for role, name in roles if role not in KEY_ROLES}
        texts -= {roles.y_true} if large_label_type(roles) is not None else set()
    numbers = {name: role for role, name in roles if role not in KEY_ROLES and name not in texts}
    # One byte more than a block: pyarrow would take a smaller file for a complete one, and a cut-off line for a row.
    point, types = _csv_types(text.head(source.BLOCK + 1), source.delimiter, wanted, numbers)
    # Wide types, for the whole file: integers in the first block may be followed by fractions.
    wide, kinds = arrow().float64(), arrow().types
    must = [name for name in numbers if name != roles.y_true or roles.pos_label is None]
    types |= {name: wide for name in must if kinds.is_string(types[name])}
    widened = [name for name, kind in types.items() if decodes_to_numbers(kind) or kinds.is_null(kind)]
    types |= {name: (large_label_type(roles) if name == roles.y_true else None) or wide for name in widened}
    # Groups and labels are compared as text: 007 is not 7, and the next file may hold letters. Only an empty field is
    # null there: NA may be Namibia.
    types |= {name: arrow().string() for name in wanted if name in texts}
    nulls = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    return {"include_columns": wanted, "column_types": types, "decimal_point": point, **nulls}, numbers


def _csv_batches(source: Source, text: TextInput, **options: Any) -> Batches:
    """Yield all batches of a CSV file, and the share of it read so far. Raises if a quote swallows lines."""
    quotes = QuoteCheck(source.delimiter)
    text.on_read = quotes.feed
    for batch in _open_csv(text, source.delimiter, options):
        yield batch, text.share()
    refuse_open_quotes(source, quotes)


def refuse_open_quotes(source: Source, quotes: QuoteCheck) -> None:
    """Raise if a quote of a CSV file swallows lines. The quotes of the whole file were checked before."""
    if not quotes.are_in_order():
        with TextInput(source) as again:
            if swallows_lines(iter(lambda: again.read(source.BLOCK), b""), source.delimiter):
                raise arrow().ArrowInvalid("a quote is opened but never closed, so the ends of lines cannot be found")


def _open_csv(text: Any, delimiter: str, options: dict[str, Any]) -> Any:
    import pyarrow.csv

    read = pyarrow.csv.ReadOptions(block_size=Source.BLOCK)
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    return pyarrow.csv.open_csv(text, read, parse, pyarrow.csv.ConvertOptions(**options))


def _csv_types(head: bytes, delimiter: str, wanted: list[str], numbers: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return the decimal point of a CSV file, and the types of the columns in the first block."""

    def infer(**options: Any) -> tuple[dict[str, Any], set[str]]:
        schema = _open_csv(arrow().BufferReader(head), delimiter, {"include_columns": wanted, **options}).schema
        types = {name: schema.field(name).type for name in schema.names}
        return types, {name for name in numbers if arrow().types.is_string(types[name])}

    types, texts = infer()
    if delimiter != "," and texts:  # decimal commas? Not if that makes text of a column of numbers
        comma_types, comma_texts = infer(decimal_point=",")
        if comma_texts <= texts:
            return ",", comma_types
    return ".", types


def _refuse_text_fields(source: Source, numbers: dict[str, str], point: str, roles: ColumnRoles) -> None:
    """Read CSV columns of numbers as text, and raise for the first field that is not a number, or is missing."""
    first, where = 0, str(source)
    options = {"column_types": dict.fromkeys(numbers, arrow().string()), "strings_can_be_null": True}
    with TextInput(source) as text:
        for batch, _ in _csv_batches(source, text, include_columns=list(numbers), **options):
            for name, role in numbers.items():
                column = batch.column(name)
                for row, word in _text_fields(column, point):
                    kind = f"text in {where} ({word[:40]!r} at row {first + row})"
                    refuse_column_type(name, role, kind, text=True, word=word)
                if column.null_count:
                    missing = BadRows(column.null_count, row=first + column.is_null().index(True).as_py())
                    model = roles.for_model(name) if role == "y_proba" else roles
                    refuse_bad_rows({code_of(role, "missing"): missing}, first + len(batch), model, where)
            first += len(batch)


def _text_fields(column: Any, point: str) -> Iterator[tuple[int, str]]:
    """Yield the CSV fields that are not numbers, and their rows."""
    with contextlib.suppress(arrow().ArrowInvalid):
        column.cast(arrow().float64())
        return  # the fast way to see that all fields are numbers
    yield from ((row, field) for row, field in enumerate(column.to_pylist()) if not _is_number_field(field, point))


def _is_number_field(field: str | None, point: str) -> bool:
    """Whether a CSV field is a number, True, False or missing."""
    try:
        return field is None or field.lower() in ("true", "false") or float(field.replace(point, ".")) is not None
    except ValueError:
        return False


def _with_dialect(source: Source, text: TextInput, wanted: Iterable[str]) -> Source:
    """Detect the delimiter and header of CSV: those with the wanted columns, else those with the most columns."""
    raw = _header_bytes(text)
    first = _csv_text(raw)
    if not first.strip():
        raise ValueError(f"{source}: the file is empty.")
    require_utf8(source, raw)
    headers = {}
    for delimiter in _DELIMITERS:
        with contextlib.suppress(csv.Error):  # a name of more than 100,000 letters, which only a wrong delimiter makes
            headers[delimiter] = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter))
    if not headers:
        raise csv.Error("it has no header: is a quote opened there but never closed?")
    delimiter = max(headers, key=lambda delimiter: (set(wanted) <= set(headers[delimiter]), len(headers[delimiter])))
    require_utf8(source, raw, "".join(headers[delimiter]))
    return replace(source, delimiter=delimiter, header=tuple(headers[delimiter]))


def _header_bytes(text: TextInput) -> bytes:
    """Return at least the header line of a CSV file, and a bit of the next line if there is one."""
    size = _HEADER
    while len(head := text.head(size)) == size < _LONGEST_HEADER and not has_line_end(head[: -(1 << 10)]):
        size *= 4
    return head


def _csv_text(raw: bytes) -> str:
    return raw.removeprefix(UTF8_MARK).decode("utf-8", "replace").lstrip("\r\n")


def preview_csv(source: Source, named: set[str]) -> tuple[Source, list[Column]]:
    """Preview the columns of a CSV file, after its delimiter and header are detected."""
    with TextInput(source) as text:
        if is_sketch(text):
            return replace(source, format=SKETCH), []
        source = _with_dialect(source, text, named)
        raw = text.head(size := max(len(_header_bytes(text)), source.BLOCK))
    first = _csv_text(raw)
    _refuse_excel_note(source, first)
    enough, rows = rows_to_preview(len(source.header)), list[list[str]]()
    lines = (line for line in csv.reader(io.StringIO(first, newline=""), delimiter=source.delimiter) if line)
    with contextlib.suppress(csv.Error):  # a field of more than 100,000 letters; reading all rows reports it
        rows.extend(itertools.islice(lines, 1, enough + 1))
    if len(raw) == size and len(rows) < enough:
        del rows[-1:]  # cut off
    rows = _rows_where(source, rows)
    fields: Iterable[Sequence[str]]
    fields = itertools.zip_longest(*rows, fillvalue="") if rows else itertools.repeat((), len(source.header))
    points = "." if source.delimiter == "," else ".,"
    # a line may have too many fields
    if source.void:
        fields = (["" if is_void(text) else text for text in texts] for texts in fields)
    return source, [_preview_texts(name, texts, points) for name, texts in zip(source.header, fields, strict=False)]


def _rows_where(source: Source, rows: list[list[str]]) -> list[list[str]]:
    """Return the previewed rows of a CSV file that meet its condition."""
    if source.where is None:
        return rows
    places = {name: source.header.index(name) for name in source.where.columns if name in source.header}
    columns = {name: [(row[i] or None) if i < len(row) else None for row in rows] for name, i in places.items()}
    return [rows[row] for row in rows_to_preview_where(columns, len(rows), source)]


def _refuse_excel_note(source: Source, text: str) -> None:
    """Raise if a CSV file starts with Excel's note about the delimiter, which no other program understands."""
    if note := re.match(r'"?sep=("?[^\r\n]"?)?"?[ ,;\t]*(?=[\r\n]|$)', text, re.IGNORECASE):
        problem = f"{source}: its first line, {note[0]!r}, is a directive for Excel, not the column names."
        cure = "Remove the line: `tail -n +2 file > new`."
        raise ValueError(f"{problem} {cure}")


def _preview_texts(name: str, fields: Sequence[str], points: str) -> Column:
    """Preview a CSV column from its fields: numbers if all are, with one of these decimal points."""
    present = [field for field in fields if field not in _NULLS]
    for point in points:
        if (numbers := _parse_csv_numbers(present, point)) is not None:
            parsed = iter(numbers)
            return preview_values(name, [None if field in _NULLS else next(parsed) for field in fields])
    if _TRUE.union(_FALSE).issuperset(present):
        return preview_values(name, [field in _TRUE for field in present])
    return preview_values(name, [field for field in fields if field])


def _parse_csv_numbers(fields: list[str], point: str) -> list[int | float] | None:
    """Return CSV fields as numbers, integers where they are; None if one is not a number."""
    if any("_" in field or (point == "," and "." in field) for field in fields):  # float("1_000") is 1000.0 in Python
        return None
    try:
        floats = [float(field.replace(point, ".")) for field in fields]
    except ValueError:
        return None
    return [int(number) if number.is_integer() and abs(number) < 2**53 else number for number in floats]
