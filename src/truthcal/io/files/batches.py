"""Files as a stream of record batches of the columns in question."""

import contextlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.csv import read_csv
from truthcal.io.files.json import read_json
from truthcal.io.files.sources import Source
from truthcal.io.files.text_input import Checksum, arrow, columns_in, refuse_missing, said_of

# Rows of a batch, where there is a choice: group by group they should fill the processor's cache, and stay in it.
BATCH = 1 << 20
# Bytes of each column of a Parquet file read ahead. Without a limit pyarrow holds whole groups of rows, which may be
# whole files: 860 MB for 2e7 rows, not 320; and it is no faster.
_AHEAD = 1 << 20


def batches_of(source: Source, roles: ColumnRoles, checksum: Checksum | None = None) -> Iterator[tuple[Any, float]]:
    """Record batches with at least the columns in question, and the share of the file read so far."""
    if checksum is not None:
        with open(source.path, "rb") as file:
            while block := file.read(1 << 20):
                checksum.update(block)
    readers = {"Parquet": _parquet, "CSV": read_csv, "JSON lines": read_json, "Arrow": _arrow_file}
    with said_of(source):
        yield from readers[source.format](source, roles)


def refuse_unreadable(sources: list[Source], roles: ColumnRoles) -> None:
    """What is wrong with the last of a thousand files should not come out after an hour: Parquet tells by its end."""
    for source in sources:
        if source.format == "Parquet":
            with said_of(source):
                _schema(source, roles)


def _schema(source: Source, roles: ColumnRoles) -> Any:
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(source.path)
    refuse_missing(source, roles, schema.names)
    return schema


def _parquet(source: Source, roles: ColumnRoles) -> Iterator[tuple[Any, float]]:
    import pyarrow.parquet

    schema = _schema(source, roles)
    wanted = columns_in(source, roles, schema.names)
    texts = [name for name in wanted if name in roles.by and arrow().types.is_string(schema.field(name).type)]
    ways = {"read_dictionary": texts, "buffer_size": _AHEAD, "pre_buffer": False, "page_checksum_verification": True}
    done = 0
    with (
        pyarrow.parquet.ParquetFile(source.path, **ways) as file,
        contextlib.closing(_one_ahead(file.iter_batches(BATCH, columns=wanted))) as batches,
    ):
        for batch in batches:
            done += len(batch)
            yield batch, done / file.metadata.num_rows


def _one_ahead(batches: Iterator[Any]) -> Generator[Any, None, None]:
    """The same batches; while one is in use, the next one is read."""
    with ThreadPoolExecutor(1, thread_name_prefix="truthcal") as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


def _arrow_file(source: Source, roles: ColumnRoles) -> Iterator[tuple[Any, float]]:
    ipc = arrow().ipc
    with arrow().memory_map(str(source.path)) as file:
        opened = ipc.open_file if file.read(6) == b"ARROW1" else ipc.open_stream
        file.seek(0)
        schema = opened(file).schema
        refuse_missing(source, roles, schema.names)
        wanted = [schema.get_field_index(name) for name in columns_in(source, roles, schema.names)]
        file.seek(0)
        reader = opened(file, options=ipc.IpcReadOptions(included_fields=sorted(set(wanted))))
        if opened is ipc.open_stream:
            whole = ((batch, file.tell() / file.size()) for batch in reader)
        else:
            n = reader.num_record_batches
            whole = ((reader.get_batch(i), (i + 1) / n) for i in range(n))
        for batch, done in whole:
            for first in range(0, len(batch), BATCH):
                yield batch.slice(first, BATCH), done
        if opened is ipc.open_stream and file.tell() < file.size():
            raise arrow().ArrowInvalid("more data after the end of the stream: two streams in one file?")
