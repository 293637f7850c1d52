"""JSON lines files as record batches, and their preview."""

import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.preview import Column, preview_values, rows_to_preview
from truthcal.io.files.source import SKETCH, Batches, Checksum, Source, arrow
from truthcal.io.files.text_input import UTF8_MARK, TextInput, is_sketch, large_label_type, require_utf8, text_columns
from truthcal.io.files.where_batch import array_of_mixed
from truthcal.io.files.where_rows import rows_to_preview_where

_ENOUGH = 1 << 18  # bytes to infer types from if each column has a value there: Python parses slowly
_MIXED_ROWS = 1 << 14  # of a batch that Python parses
_IN_ROW = re.compile(r"in row (\d+)")


def read_json(source: Source, roles: ColumnRoles, checksum: Checksum | None) -> Batches:
    """Yield batches of the requested columns of a JSON lines file, and the share of the file read so far."""
    import pyarrow.json

    with TextInput(source, checksum) as text:
        head = text.head(source.BLOCK)
        if not head.strip():
            return
        require_utf8(source, head)
        schema = arrow().schema(_infer_json_types(source, roles, head))
        options = pyarrow.json.ReadOptions(block_size=source.BLOCK)
        parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        row = 0
        try:
            for batch in pyarrow.json.open_json(text, read_options=options, parse_options=parse):
                row += len(batch)
                yield batch, text.share()
        except arrow().ArrowInvalid as error:  # its row numbers start at this block
            if source.where is not None and "changed from" in str(error):
                yield from _read_mixed_json(source, schema, row)
                return
            reason = _IN_ROW.sub(lambda match: f"in row {row + int(match[1])}", str(error))
            if "couldn't parse" in reason:
                reason += ", a number of a different type from earlier rows, or one that does not fit in 64 bits"
            raise arrow().ArrowInvalid(reason) from None


def _read_mixed_json(source: Source, schema: Any, first: int) -> Batches:
    """Yield batches of JSON lines from row `first` on; columns of mixed types, such as 0.5 and "NA", become text.

    Rows with text among numbers may be those that a condition leaves out. pyarrow cannot read them.
    """
    texts = set() if source.where is None else source.where.text_columns
    kinds = {name: arrow().string() if name in texts else schema.field(name).type for name in schema.names}
    with TextInput(source) as text, arrow().PythonFile(text, mode="r") as file:
        lines = _parse_json_lines(io.BufferedReader(file))
        rows = (row for _, row in itertools.islice(lines, first, None))
        while batch := list(itertools.islice(rows, _MIXED_ROWS)):
            if not all(isinstance(row, dict) for row in batch):
                row = next(i for i, row in enumerate(batch) if not isinstance(row, dict))
                raise arrow().ArrowInvalid(f"JSON parse error in row {first + row}")
            columns = [array_of_mixed([row.get(name) for row in batch], kind) for name, kind in kinds.items()]
            yield arrow().record_batch(columns, list(kinds)), text.share()
            first += len(batch)


def _infer_json_types(source: Source, roles: ColumnRoles, head: bytes) -> dict[str, Any]:
    """Infer the types of the requested JSON columns from the first lines, wide enough for the whole file.

    pyarrow would infer all columns, fail at one that is not needed, and take text that looks like a time for one.
    """
    complete, lines = len(head) < source.BLOCK, head.splitlines()
    rows: list[dict[str, Any]] = []
    unseen, size, row = set(source.columns_to_read(roles, ())), 0, None
    for line, row in _parse_json_lines(lines if complete else lines[:-1]):
        if not isinstance(row, dict):
            break  # the reader reports what is wrong
        rows.append(row)
        unseen = {name for name in unseen if row.get(name) is None}
        size += len(line)
        if size > _ENOUGH and not unseen:
            break
    names = dict.fromkeys(name for row in rows for name in row)
    if isinstance(row, dict):
        where = None if complete else f"{source} (according to its first {len(rows):,} lines)"
        source.require_columns(roles, names, where)
    wanted = source.columns_to_read(roles, names)
    return {name: _json_type(name, [row[name] for row in rows if row.get(name) is not None], roles) for name in wanted}


def _parse_json_lines(lines: Iterable[bytes]) -> Iterator[tuple[bytes, Any]]:
    """Yield each JSON line that is not blank and its value, or the error that it cannot be parsed."""
    for line in filter(bytes.strip, lines):
        try:
            yield line, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield line, error


def _json_type(name: str, values: list[Any], roles: ColumnRoles) -> Any:
    """Infer the type of a JSON column with such values. Integers may be followed by fractions, except in groups."""
    pa, is_text = arrow(), name in text_columns(roles)
    if not values:
        return pa.string() if is_text else pa.float64()
    types = {type(value) for value in values}
    if types <= {int, float}:
        if name == roles.y_true and (large := large_label_type(roles)) is not None:
            return large
        in_groups = name not in roles.where or name in (*roles.by, roles.groups)
        exact = (types == {int} and in_groups) or any(
            isinstance(value, int) and abs(value) >= 2**53 for value in values
        )
        return pa.int64() if exact and is_text else pa.float64()
    first = values[0]
    if isinstance(first, bool | str):
        return pa.bool_() if isinstance(first, bool) else pa.string()
    return pa.float64() if isinstance(first, int | float) else pa.array([first]).type


def preview_json(source: Source, named: set[str]) -> tuple[Source, list[Column]]:
    """Preview the columns of a JSON lines file from its first lines."""
    with TextInput(source) as text:
        if is_sketch(text):
            return replace(source, format=SKETCH), []
        head = text.head(source.BLOCK)
    require_utf8(source, head)
    rows: list[dict[str, Any]] = []
    enough = rows_to_preview(1)
    for line, row in _parse_json_lines(head.removeprefix(UTF8_MARK).splitlines()):
        if not isinstance(row, dict):
            if not rows:
                _refuse_json_line(source, head, line, row)
            break  # the reader reports what is wrong
        rows.append(row)
        enough, named = min(enough, rows_to_preview(len(row))), named - row.keys()
        if len(rows) >= enough and not named:
            break
    names = dict.fromkeys(name for row in rows for name in row)
    if source.where is not None:
        columns = {name: [row.get(name) for row in rows] for name in source.where.columns if name in names}
        rows = [rows[row] for row in rows_to_preview_where(columns, len(rows), source)]
    return source, [preview_values(name, [row.get(name) for row in rows]) for name in names]


def _refuse_json_line(source: Source, head: bytes, line: bytes, value: Any) -> None:
    start = repr(line[:40].decode("utf-8", "replace"))
    reason = str(value) if isinstance(value, Exception) else f"{start} has no column names"
    fix = "each line must be one object, as `jq -c .` writes it"
    if head.lstrip()[:1] == b"[":
        fix = "it is a list in brackets, but each line must be one object, as `jq -c '.[]'` writes it"
    elif len(head) == source.BLOCK and b"\n" not in head:
        fix = f"its first line is longer than {source.BLOCK:,} bytes"
    raise ValueError(f"{source}: could not be read as JSON lines ({reason}): {fix}.")
