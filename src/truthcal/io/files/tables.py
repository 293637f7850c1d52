"""Tables in memory that stand for a file whose rows were converted."""

import contextlib
from dataclasses import replace
from typing import Any

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.preview import Column, preview_values, rows_to_preview
from truthcal.io.files.source import Batches, Checksum, FileFormat, Source
from truthcal.io.files.where_rows import rows_to_preview_where
from truthcal.io.void_words import is_void


def in_memory(source: Source, table: Any) -> Source:
    """Return a source that reads this table in place of its file."""
    return replace(source, format=TABLE, table=table)


def read_table(source: Source, roles: ColumnRoles, checksum: Checksum | None) -> Batches:
    """Yield the batches of a converted table. The checksum is that of the file."""
    if checksum is not None:
        with open(source.path, "rb") as file:
            while block := file.read(1 << 20):
                checksum.update(block)
    source.require_columns(roles, source.table.column_names)
    wanted = source.columns_to_read(roles, source.table.column_names)
    for batch in source.table.select(wanted).to_batches():
        yield batch, 1.0


def preview_table(source: Source, named: set[str]) -> tuple[Source, list[Column]]:
    """Preview the columns of a converted table."""
    names = source.table.column_names
    first = source.table.slice(0, rows_to_preview(len(names)))
    if source.where is not None:
        columns = {name: first.column(name).to_pylist() for name in source.where.columns if name in names}
        first = first.take(rows_to_preview_where(columns, len(first), source))
    return source, [_preview_values(name, first.column(name).to_pylist(), source.void) for name in names]


def _preview_values(name: str, values: list[Any], void: bool) -> Column:
    """Preview a column; with `void`, text of numbers and words such as "void" counts as numbers."""
    if void:
        values = [None if is_void(value) else value for value in values]
        with contextlib.suppress(ValueError):
            values = [None if value is None else float(value) if isinstance(value, str) else value for value in values]
    return preview_values(name, values)


TABLE = FileFormat("evaluation file", (), (), read_table, preview_table)
