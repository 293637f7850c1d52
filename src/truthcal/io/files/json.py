"""Files of JSON lines as a stream of record batches."""

import json
import re
from collections.abc import Iterator
from typing import Any

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files import text_input
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

# Bytes of lines that are enough to judge columns by, if each has a value there: Python reads them slowly.
_ENOUGH = 1 << 18
_IN_ROW = re.compile(r"in row (\d+)")


def read_json(source: Source, roles: ColumnRoles) -> Iterator[tuple[Any, float]]:
    """Batches of the columns in question, and the share of the file read so far."""
    import pyarrow.json

    text = beginning(source, text_input.BLOCK)
    if not text.strip():
        return
    refuse_other_encodings(source, text)
    schema = arrow().schema(_types(source, roles, text))
    options = pyarrow.json.ReadOptions(block_size=text_input.BLOCK)
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    size, row = source.path.stat().st_size, 0
    with arrow().OSFile(str(source.path)) as raw:
        try:
            for batch in pyarrow.json.open_json(decompressed(source, raw), read_options=options, parse_options=parse):
                row += len(batch)
                yield batch, share(raw, size)
        except arrow().ArrowInvalid as error:  # which counts the rows of this block only
            reason = _IN_ROW.sub(lambda found: f"in row {row + int(found[1])}", str(error))
            if "couldn't parse" in reason:
                reason += ", a number of another kind than those before, or too long for 64 bits"
            raise arrow().ArrowInvalid(reason) from None


def _types(source: Source, roles: ColumnRoles, text: bytes) -> dict[str, Any]:
    """Types that hold to the end of the file, judged by the first lines.

    pyarrow would judge all columns, fail at one that nobody asked for, and take text that looks like a time for one.
    """
    whole = len(text) < text_input.BLOCK
    lines = text.splitlines()
    rows, broken = _rows(lines if whole else lines[:-1], columns_in(source, roles, ()))
    names = dict.fromkeys(name for row in rows for name in row)
    if rows and not broken:  # else whoever reads will say what is wrong
        some = None if whole else f"{source} (judged by its first {len(rows):,} lines)"
        refuse_missing(source, roles, names, some)
    found: dict[str, list[Any]] = {name: [] for name in columns_in(source, roles, names)}
    for row in rows:
        for name, values in found.items():
            if row.get(name) is not None:
                values.append(row[name])
    return {name: _type(name, values, roles) for name, values in found.items()}


def _rows(lines: list[bytes], wanted: list[str]) -> tuple[list[dict[str, Any]], bool]:
    """The first lines, enough to judge the wanted columns by, and whether they end with one that cannot be read."""
    rows: list[dict[str, Any]] = []
    without, seen = set(wanted), 0
    for line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return rows, True
        if not isinstance(row, dict):
            return rows, True
        rows.append(row)
        without = {name for name in without if row.get(name) is None}
        seen += len(line)
        if seen > _ENOUGH and not without:
            break
    return rows, False


def _type(name: str, values: list[Any], roles: ColumnRoles) -> Any:
    """Of a column with such values: a column of whole numbers may go on with others, unless it makes groups."""
    pa, texts = arrow(), text_input.texts_of(roles)
    if not values:
        return pa.string() if name in texts else pa.float64()
    kinds = {type(value) for value in values}
    if kinds <= {int, float}:
        if name == roles.y_true and (large := text_input.large_labels(roles)) is not None:
            return large
        exact = kinds == {int} or any(isinstance(value, int) and abs(value) >= 2**53 for value in values)
        return pa.int64() if exact and name in texts else pa.float64()
    first = values[0]
    if isinstance(first, bool | str):
        return pa.bool_() if isinstance(first, bool) else pa.string()
    return pa.float64() if isinstance(first, int | float) else pa.array([first]).type
