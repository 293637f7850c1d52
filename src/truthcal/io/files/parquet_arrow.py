"""Parquet and Arrow files as record batches, and their previews."""

import contextlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.decode import storage
from truthcal.io.files.preview import Column, preview_values, rows_to_preview
from truthcal.io.files.source import Batches, Checksum, Source, arrow, errors_naming
from truthcal.io.files.where_rows import rows_where

BATCH = 1 << 20  # rows of a batch: group by group they should fill the processor's cache, and stay in it
# Bytes of each column of a Parquet file to read ahead. Without a limit pyarrow holds whole row groups, which may be
# whole files: 860 MB for 2e7 rows instead of 320, and it is no faster.
_READ_AHEAD = 1 << 20
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_WIDE = 50_000  # Parquet files with more columns are previewed from statistics: opening columns would take seconds


def check_parquet_footers(sources: list[Source], roles: ColumnRoles) -> None:
    """Check all Parquet files by their footers, so that a damaged one is not found after an hour of reading others."""
    for source in sources:
        if source.format.name == "Parquet" and len(sources) > 1:
            with errors_naming(source):
                import pyarrow.parquet

                source.require_columns(roles, pyarrow.parquet.read_schema(source.path).names)


def read_parquet(source: Source, roles: ColumnRoles, checksum: Checksum | None) -> Batches:
    """Yield batches of a Parquet file."""
    import pyarrow.parquet

    with arrow().OSFile(str(source.path)) as raw:
        _add_to_checksum(checksum, raw)
        metadata = pyarrow.parquet.read_metadata(raw)
        schema = metadata.schema.to_arrow_schema()
        source.require_columns(roles, schema.names)
        wanted = source.columns_to_read(roles, schema.names)
        texts = [name for name in wanted if name in roles.keys and arrow().types.is_string(schema.field(name).type)]
        options = {"read_dictionary": texts, "buffer_size": _READ_AHEAD, "pre_buffer": False}
        file = pyarrow.parquet.ParquetFile(raw, metadata=metadata, page_checksum_verification=True, **options)
        done = 0
        with contextlib.closing(_read_ahead(file.iter_batches(BATCH, columns=wanted))) as batches:
            for batch in batches:
                done += len(batch)
                yield batch, done / metadata.num_rows


def _add_to_checksum(checksum: Checksum | None, file: Any) -> None:
    """Add all bytes of a Parquet or Arrow file to the checksum, and go back to its start."""
    while checksum is not None and (block := file.read_buffer(1 << 20)).size:
        checksum.update(block)
    file.seek(0)


def _read_ahead(batches: Iterator[Any]) -> Generator[Any, None, None]:
    """Yield the same batches of a Parquet file; while one is in use, the next one is read."""
    with ThreadPoolExecutor(1, thread_name_prefix="truthcal") as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


def read_arrow(source: Source, roles: ColumnRoles, checksum: Checksum | None) -> Batches:
    """Yield batches of an Arrow file or stream."""
    ipc = arrow().ipc
    with arrow().memory_map(str(source.path)) as file:
        _add_to_checksum(checksum, file)
        open_ = _arrow_reader(file)
        schema = open_(file).schema
        source.require_columns(roles, schema.names)
        wanted = [schema.get_field_index(name) for name in source.columns_to_read(roles, schema.names)]
        file.seek(0)
        reader = open_(file, options=ipc.IpcReadOptions(included_fields=sorted(set(wanted))))
        if open_ is ipc.open_stream:
            batches = ((batch, file.tell() / file.size()) for batch in reader)
        else:
            n = reader.num_record_batches
            batches = ((reader.get_batch(i), (i + 1) / n) for i in range(n))
        for batch, done in batches:
            for first in range(0, len(batch), BATCH):
                yield batch.slice(first, BATCH), done
        if open_ is ipc.open_stream:
            _refuse_cut_off(file)


def _refuse_cut_off(file: Any) -> None:
    """Raise unless an Arrow stream that was read ends the file, with the marker that pyarrow does not insist on."""
    if file.tell() < file.size():
        raise arrow().ArrowInvalid("more data after the end of the stream: two streams in one file?")
    file.seek(0)
    is_legacy = file.read(4) != _END_OF_STREAM[:4]  # before Arrow 0.15
    file.seek(file.size() - 8)
    if not file.read(8).endswith(_END_OF_STREAM[4:] if is_legacy else _END_OF_STREAM):
        raise arrow().ArrowInvalid("no marker at the end of the stream, so rows may be missing; write it again")


def _arrow_reader(file: Any) -> Any:
    """Return the function that opens this file: Arrow data are either a file or a stream."""
    head = file.read(6)
    file.seek(0)
    if head.startswith(b"FEA1"):
        raise arrow().ArrowInvalid("it is a Feather file of version 1; write it with pyarrow.feather.write_feather")
    is_file = head == b"ARROW1"
    return arrow().ipc.open_file if is_file else arrow().ipc.open_stream


def preview_parquet(source: Source, _: set[str]) -> tuple[Source, list[Column]]:
    """Preview the columns of a Parquet file."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(source.path, pre_buffer=False, buffer_size=1 << 16) as file:
        schema, n_groups = file.schema_arrow, file.metadata.num_row_groups
        if len(schema.names) > _WIDE and n_groups and len(file.schema) == len(schema.names):
            return source, _preview_statistics(schema, file.metadata.row_group(0))
        batches = file.iter_batches(rows_to_preview(len(schema.names)))
        return source, _preview_arrow_batch(source, schema, next(filter(len, batches), None))


def preview_arrow(source: Source, _: set[str]) -> tuple[Source, list[Column]]:
    """Preview the columns of an Arrow file or stream."""
    with arrow().memory_map(str(source.path)) as file:
        open_ = _arrow_reader(file)
        reader = open_(file)
        is_stream = open_ is arrow().ipc.open_stream
        batches = reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))
        batch = next(filter(len, batches), None)
        if batch is not None:
            batch = batch.slice(0, rows_to_preview(len(reader.schema.names)))
            batch.validate(full=True)  # a damaged file could crash Python
        return source, _preview_arrow_batch(source, reader.schema, batch)


def _preview_arrow_batch(source: Source, schema: Any, batch: Any) -> list[Column]:
    if batch is None:
        return [Column(name, "nothing") for name in schema.names]
    if source.where is not None and set(source.where.columns) <= {*schema.names, *source.partition}:
        chosen = rows_where(batch, source)
        batch = batch.take(chosen) if len(chosen) else batch
    columns = zip(schema.names, map(storage, batch.columns), strict=True)
    return [preview_values(name, x.to_pylist()) if _is_plain(x.type) else Column(name, "other") for name, x in columns]


def _is_plain(kind: Any) -> bool:
    """Whether Python has numbers, text, True and False for values of this Arrow type."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = "null boolean integer floating decimal string large_string string_view"
    return any(getattr(types, f"is_{test}")(kind) for test in tests.split())


def _preview_statistics(schema: Any, group: Any) -> list[Column]:
    """Preview the columns of a Parquet file from statistics of the first row group: values only for 0 and 1."""
    types, columns = arrow().types, []
    for i, field in enumerate(schema):
        statistics = group.column(i).statistics
        known = statistics is not None and statistics.has_min_max
        ends = [statistics.min, statistics.max] if known else []
        column = preview_values(field.name, ends)
        if not set(ends) <= {0, 1} or not (types.is_boolean(field.type) or types.is_integer(field.type)):
            column = replace(column, values=(), many=True, numbers=())
        columns.append(column)
    return columns
