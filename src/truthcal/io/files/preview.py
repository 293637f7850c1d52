"""What the columns of a file are, by its first rows: so that the command line can guess which is which."""

import contextlib
import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from truthcal.io.files import text_input
from truthcal.io.files.csv import division, first_lines
from truthcal.io.files.decode import plain
from truthcal.io.files.sources import Source
from truthcal.io.files.text_input import arrow, beginning, refuse_other_encodings, said_of

Kind = Literal["number", "bool", "text", "other", "nothing"]

# Rows that are looked at, and values, where a file is so wide that fewer rows must do; but at least so many.
_ROWS, _CELLS, _FEWEST = 1000, 1 << 21, 10
# Different values of a column that are told.
_TOLD = 3
# Parquet files with more columns are judged by their own statistics: to open each column would take seconds.
_WIDE = 50_000
# As pyarrow reads them.
_NOTHING = frozenset(
    ["", "NA", "N/A", "n/a", "NULL", "null", "NaN", "nan", "-NaN", "-nan", "#N/A", "#N/A N/A", "#NA", "1.#IND"]
).union(["1.#QNAN", "-1.#IND", "-1.#QNAN"])
_TRUE, _FALSE = frozenset(["1", "True", "TRUE", "true"]), frozenset(["0", "False", "FALSE", "false"])


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds, as far as its first rows tell.

    Attributes
    ----------
    name : str
    kind : {"number", "bool", "text", "other", "nothing"}
        "other" are dates, lists and mixtures; "nothing" is a column without any value.
    low, high : float or None
        The smallest and the largest number.
    values : tuple
        The first different values, three at most.
    many : bool
        Whether there are more of them.
    in_path : bool
        Whether the value is a part of the path, as in ``country=fr/part-0.parquet``, and so can make groups only.
    """

    name: str
    kind: Kind
    low: float | None = None
    high: float | None = None
    values: tuple[Any, ...] = ()
    many: bool = False
    in_path: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """The columns of a file, and the file with its detected format, delimiter and header: pass it on to `load`."""

    source: Source
    columns: tuple[Column, ...]


def preview_columns(source: Source, named: Iterable[str] = ()) -> Preview:
    """Tell what the columns of a file hold, by its first rows.

    Parameters
    ----------
    source : Source
    named : iterable of str
        Columns that should be there. What parts the columns of text is told by them, and lines of JSON are read until
        all of them were seen.

    Returns
    -------
    Preview
        The columns in the order of the file, two of which may have the same name; then those of its path.

    Notes
    -----
    A thousand rows; fewer where there are thousands of columns.
    """
    lookers = {"Parquet": _parquet, "Arrow": _arrow_file, "JSON lines": _json, "CSV": _csv}
    with said_of(source):
        own = tuple(lookers[source.format](source, set(named)))
    there = {column.name for column in own}
    paths = ((name, value) for name, value in source.partition.items() if name not in there)
    return Preview(source, own + tuple(_column(name, [value], in_path=True) for name, value in paths))


def _enough(columns: int) -> int:
    return min(max(_CELLS // max(columns, 1), _FEWEST), _ROWS)


def _column(name: str, values: Iterable[Any], *, in_path: bool = False) -> Column:
    """By values as Python has them."""
    some = [value for value in values if value is not None and value == value]
    kinds = {type(value) for value in some}
    if kinds == {bool}:
        return Column(name, "bool", None, None, *_told(some), in_path)
    if not kinds:
        return Column(name, "nothing", in_path=in_path)
    if kinds <= {int, float, Decimal}:
        return Column(name, "number", float(min(some)), float(max(some)), *_told(some), in_path)
    if kinds == {str}:
        return Column(name, "text", None, None, *_told(some), in_path)
    return Column(name, "other", in_path=in_path)


def _told(values: Iterable[Any]) -> tuple[tuple[Any, ...], bool]:
    """The first different values, and whether there are more."""
    different = list(dict.fromkeys(values))
    return tuple(different[:_TOLD]), len(different) > _TOLD


# --- text -------------------------------------------------------------------------------------------------------------


def _csv(source: Source, named: set[str]) -> Iterator[Column]:
    delimiter, names, _ = division(source, named)
    size = max(len(first_lines(source)), text_input.BLOCK)
    raw = beginning(source, size)
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip("\r\n")
    _refuse_sep(source, text)
    enough, rows = _enough(len(names)), list[list[str]]()
    lines = (line for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if line)
    with contextlib.suppress(csv.Error):  # a field of more than 100,000 letters; reading all rows says what is wrong
        rows.extend(itertools.islice(lines, 1, enough + 1))
    if len(raw) == size and len(rows) < enough:
        del rows[-1:]  # which is cut off
    fields = itertools.zip_longest(*rows, fillvalue="") if rows else itertools.repeat((), len(names))
    for name, texts in zip(names, fields, strict=False):  # a line may have too many fields
        yield _of_texts(name, texts, "." if delimiter == "," else ".,")


def _refuse_sep(source: Source, text: str) -> None:
    """Excel may write on top what parts the columns. It is the only one that knows."""
    note = re.match(r'"?sep=("?[^\r\n]"?)?"?[ ,;\t]*(?=[\r\n]|$)', text, re.IGNORECASE)
    if note:
        raise ValueError(
            f"{source}: its first line, {note[0]!r}, is a note for Excel, where the names of the columns should be. "
            "Remove the first line: `tail -n +2 file > new`."
        )


def _of_texts(name: str, texts: Sequence[str], points: str) -> Column:
    """By fields as they are written: numbers, where all are, with one of these points."""
    some = [text for text in texts if text not in _NOTHING]
    for point in points:
        numbers = _numbers(some, point)
        if numbers is not None:
            return _column(name, numbers)
    if _TRUE.union(_FALSE).issuperset(some):
        return _column(name, [text in _TRUE for text in some])
    return _column(name, [text for text in texts if text])


def _numbers(texts: list[str], point: str) -> list[int | float] | None:
    try:
        floats = [float(text if point == "." else _with_point(text)) for text in texts]
    except ValueError:
        return None
    if any("_" in text for text in texts):  # which Python reads, and nobody else
        return None
    return [int(number) if number.is_integer() and abs(number) < 2**53 else number for number in floats]


def _with_point(text: str) -> str:
    if "." in text:
        raise ValueError("a point, where there should be a comma")
    return text.replace(",", ".")


def _json(source: Source, named: set[str]) -> Iterator[Column]:
    text = beginning(source, text_input.BLOCK)
    refuse_other_encodings(source, text)
    rows, enough = list[dict[str, Any]](), _ROWS
    for line in filter(bytes.strip, text.removeprefix(b"\xef\xbb\xbf").splitlines()):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            _refuse_json(source, text, rows, str(error))
            break
        if not isinstance(row, dict):
            _refuse_json(source, text, rows, f"{line[:40].decode('utf-8', 'replace')!r} has no names of columns")
            break
        rows.append(row)
        enough, named = min(enough, _enough(len(row))), named - row.keys()
        if len(rows) >= enough and not named:
            break
    for name in dict.fromkeys(name for row in rows for name in row):
        yield _column(name, [row.get(name) for row in rows])


def _refuse_json(source: Source, text: bytes, rows: list[Any], reason: str) -> None:
    """Without a single good line nothing can be told. Otherwise whoever reads all lines says what is wrong."""
    if rows:
        return
    cure = "each line must be one object, as `jq -c .` writes it"
    if text.lstrip()[:1] == b"[":
        cure = "it is a list in brackets, but each line must be one object, as `jq -c '.[]'` writes it"
    elif len(text) == text_input.BLOCK and b"\n" not in text:
        cure = f"its first line is longer than {text_input.BLOCK:,} bytes"
    raise ValueError(f"{source}: could not be read as JSON lines ({reason}): {cure}.")


# --- columns with types -----------------------------------------------------------------------------------------------


def _parquet(source: Source, _: set[str]) -> Iterator[Column]:
    import pyarrow.parquet

    ways = {"pre_buffer": False, "buffer_size": 1 << 16}
    with pyarrow.parquet.ParquetFile(source.path, **ways) as file:
        schema, n_groups = file.schema_arrow, file.metadata.num_row_groups
        if len(schema.names) > _WIDE and n_groups and len(file.schema) == len(schema.names):
            yield from _by_statistics(schema, file.metadata.row_group(0))
            return
        batches = file.iter_batches(_enough(len(schema.names)))
        yield from _of_batch(schema, next((batch for batch in batches if len(batch)), None))


def _arrow_file(source: Source, _: set[str]) -> Iterator[Column]:
    ipc = arrow().ipc
    with arrow().memory_map(str(source.path)) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = (ipc.open_file if is_file else ipc.open_stream)(file)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader)
        batch = next((batch for batch in batches if len(batch)), None)
        if batch is not None:
            batch = batch.slice(0, _enough(len(reader.schema.names)))
            batch.validate(full=True)  # damage could crash Python
        yield from _of_batch(reader.schema, batch)


def _of_batch(schema: Any, batch: Any) -> Iterator[Column]:
    for i, name in enumerate(schema.names):
        if batch is None:
            yield Column(name, "nothing")
            continue
        column = plain(batch.column(i))
        yield _column(name, column.to_pylist()) if _is_plain(column.type) else Column(name, "other")


def _is_plain(kind: Any) -> bool:
    """Whether Python has numbers, text, True and False for such values."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = "null boolean integer floating decimal string large_string string_view"
    return any(getattr(types, f"is_{test}")(kind) for test in tests.split())


def _by_statistics(schema: Any, group: Any) -> Iterator[Column]:
    """By what the file says of its first rows. Which values there are is known of whole numbers 0 and 1 only."""
    types = arrow().types
    for i, field in enumerate(schema):
        known = group.column(i).statistics
        ends = [known.min, known.max] if known is not None and known.has_min_max else []
        column = _column(field.name, ends)
        whole = types.is_boolean(field.type) or types.is_integer(field.type)
        few = whole and set(ends) <= {0, 1}
        yield column if few else Column(field.name, column.kind, column.low, column.high, (), True)
