"""Copy a file of rows with one more column, which is computed from a column of probabilities."""

import contextlib
import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import shown
from truthcal.io.files.csv import refuse_open_quotes
from truthcal.io.files.csv_quotes import QuoteCheck
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source, arrow, errors_naming
from truthcal.io.files.text_input import UTF8_MARK, TextInput
from truthcal.io.void_words import is_void
from truthcal.results.text import count

_Array = NDArray[np.float64]
_Function = Callable[[_Array], _Array]

_ROWS = 1 << 16  # rows that are computed at a time
_LONGEST_FIELD = (1 << 31) - 1  # characters of a CSV field; Python's limit is 131,072 unless it is set


def add_column(
    source: Source, name: str, new: str, function: _Function, out: BinaryIO, *, percent: bool = False
) -> tuple[int, int]:
    """Write the file to `out` with the column `new`, a function of the probabilities `name` (or of percentages).

    Returns the number of rows, and of those whose probability is missing: the new column is empty there, as in SQL.
    Text is copied as it is, apart from unnecessary quotes in CSV. The format is that of the source.
    """
    source = preview_columns(source, [name]).source
    if name not in source.header:
        known = ", ".join(source.header)
        raise ValueError(f"{source}: has no column {name!r}; it has {known}. Name the column to use with --proba.")
    if source.header.count(name) > 1:
        raise ValueError(f"{source}: has several columns {name!r}; rename all but one.")
    if new in source.header:
        raise ValueError(f"{source}: already has a column {new!r}; rename it.")
    compute = _Computer(str(source), name, function, percent)
    with errors_naming(source):
        _COPIES[source.format.name](source, name, new, compute, out)
    return compute.rows, compute.missing


class _Computer:
    """Computes the new column batch by batch, and counts rows so that errors can name them."""

    def __init__(self, where: str, name: str, function: _Function, percent: bool) -> None:
        self.rows = self.missing = 0
        self._where, self._name, self._function, self._percent = where, name, function, percent

    def __call__(self, p: _Array) -> _Array:
        """Return the results for a batch; nan where the probability is missing."""
        missing = np.isnan(p)
        one = 100.0 if self._percent else 1.0
        bad = ~missing & ~((p >= 0.0) & (p <= one))
        if bad.any():
            first = int(bad.argmax())
            hint = "" if self._percent or not 1.0 < p[first] <= 100.0 else " Percentages? Add --percent."
            raise self._refuse(first, repr(float(p[first])).removesuffix(".0"), hint)
        p = p / one
        self.rows += len(p)
        self.missing += int(missing.sum())
        result = np.full(len(p), np.nan)
        if not missing.all():
            result[~missing] = self._function(p[~missing])
        return result

    def parse(self, fields: list[Any], point: str = ".") -> _Array:
        """Convert fields of text or JSON to numbers; a missing one (null, nan, or a word such as NA) becomes nan."""
        p = np.empty(len(fields))
        for i, field in enumerate(fields):
            try:
                text = str(field).strip().removesuffix("%") if self._percent else str(field)
                p[i] = np.nan if is_void(field) else _parse_number(text.replace(point, "."))
            except ValueError:
                raise self._refuse(i, repr(field)) from None
        return p

    def _refuse(self, row: int, shown: str, hint: str = "") -> Exception:
        rule = "percentages between 0 and 100" if self._percent else "probabilities between 0 and 1"
        place = f"{self._where}: column {self._name!r} must hold {rule}"
        return ValueError(f"{place}, but row {self.rows + row} is {shown}.{hint or ' Correct or remove such rows.'}")


def _parse_number(text: str) -> float:
    """Parse a number. Raises for Python's underscores, as in 0.2_5, which other readers refuse."""
    return float("" if "_" in text else text)


# --- text -------------------------------------------------------------------------------------------------------------


def _copy_csv(source: Source, name: str, new: str, compute: _Computer, out: BinaryIO) -> None:
    quotes = QuoteCheck(source.delimiter)
    with TextInput(source) as stream, _long_fields():
        stream.on_read = quotes.feed
        reader = csv.reader(_text_lines(stream), delimiter=source.delimiter)
        header = next(line for line in reader if line)
        place, point = header.index(name), "."
        out.write(_csv_lines([[*header, new]], source.delimiter))
        for lines in _chunks(line for line in reader if line):
            _refuse_ragged(lines, len(header), source, compute.rows)
            fields = [line[place].strip() for line in lines]
            if source.delimiter != "," and any("," in field for field in fields):
                point = ","
            numbers = compute(compute.parse(fields, point)).tolist()
            results = ["" if math.isnan(x) else repr(x).replace(".", point) for x in numbers]
            rows = ([*line, result] for line, result in zip(lines, results, strict=True))
            out.write(_csv_lines(rows, source.delimiter))
    refuse_open_quotes(source, quotes)


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Let Python's csv module read fields of any length."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _refuse_ragged(lines: list[list[str]], n_columns: int, source: Source, first: int) -> None:
    """Reject rows with fewer or more fields than the header, as the reader of CSV does. `first` is the first row."""
    for row, line in enumerate(lines, first):
        if len(line) != n_columns:
            problem = f"{source}: row {row} has {count(len(line), 'field')}, but the header has {n_columns}"
            raise ValueError(
                f"{problem}. Correct or remove such rows; a quote that is never closed has this effect, too."
            )


def _csv_lines(rows: Iterable[list[str]], delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _copy_json(source: Source, name: str, new: str, compute: _Computer, out: BinaryIO) -> None:
    with TextInput(source) as stream:
        for lines in _chunks(line for line in _text_lines(stream) if line.strip()):
            rows = [_parse_json_row(line, row, source, new) for row, line in enumerate(lines, compute.rows)]
            results = compute(compute.parse([row.get(name) for row in rows])).tolist()
            for line, row, result in zip(lines, rows, results, strict=True):
                start = line.rstrip()[:-1].rstrip() + (", " if row else "")  # without the closing brace
                value = "null" if math.isnan(result) else repr(result)
                out.write(f"{start}{json.dumps(new, ensure_ascii=False)}: {value}}}\n".encode())


def _parse_json_row(line: str, row: int, source: Source, new: str) -> dict[str, Any]:
    """Parse a line of JSON; raise if it is not one object, or has the new column."""
    cure = "Each line must be one JSON object; correct or remove such rows."
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: row {row} could not be read as JSON ({error}). {cure}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{source}: row {row} is not a JSON object, but {shown(content)}. {cure}")
    if new in content:
        raise ValueError(f"{source}: already has a column {new!r}, at row {row}; rename it.")
    return content


# --- tables -----------------------------------------------------------------------------------------------------------


def _copy_parquet(source: Source, name: str, new: str, compute: _Computer, out: BinaryIO) -> None:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(source.path) as file:
        schema = file.schema_arrow.append(arrow().field(new, arrow().float64()))
        with pyarrow.parquet.ParquetWriter(out, schema) as writer:
            for batch in file.iter_batches(_ROWS):
                writer.write_batch(_with_column(batch, name, schema, compute))


def _copy_arrow(source: Source, name: str, new: str, compute: _Computer, out: BinaryIO) -> None:
    ipc = arrow().ipc
    with arrow().memory_map(str(source.path)) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = ipc.open_file(file) if is_file else ipc.open_stream(file)
        schema = reader.schema.append(arrow().field(new, arrow().float64()))
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
        with (ipc.new_file if is_file else ipc.new_stream)(out, schema) as writer:
            for batch in batches:
                writer.write_batch(_with_column(batch, name, schema, compute))


def _with_column(batch: Any, name: str, schema: Any, compute: _Computer) -> Any:
    column = batch.column(batch.schema.get_field_index(name)).cast(arrow().float64())
    result = compute(column.to_numpy(zero_copy_only=False).astype(np.float64))
    return arrow().RecordBatch.from_arrays([*batch.columns, arrow().array(result, from_pandas=True)], schema=schema)


_COPIES = {"CSV": _copy_csv, "JSON lines": _copy_json, "Parquet": _copy_parquet, "Arrow": _copy_arrow}


def _text_lines(stream: TextInput) -> Iterator[str]:
    """Yield the lines of a UTF-8 text with their ends."""
    buffered = io.BufferedReader(_Readable(stream), 1 << 20)
    if buffered.peek(3)[:3] == UTF8_MARK:
        buffered.read(3)
    yield from io.TextIOWrapper(buffered, encoding="utf-8", newline="")


class _Readable(io.RawIOBase):
    """The bytes of a text file for Python's buffered reader."""

    def __init__(self, stream: TextInput) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _chunks(lines: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield lists of rows of limited length."""
    iterator = iter(lines)
    while chunk := list(itertools.islice(iterator, _ROWS)):
        yield chunk
