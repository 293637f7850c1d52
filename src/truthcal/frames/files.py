"""Files as a stream of record batches of the columns in question."""

import contextlib
import csv
import glob
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truthcal.frames.roles import Roles

# Rows of a batch, where there is a choice: group by group they should fill the processor's cache, and stay in it.
BATCH = 1 << 20
# Bytes of text parsed at a time.
_BLOCK = 1 << 22
_FORMATS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".tab": "CSV",
    ".txt": "CSV",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".json": "JSON lines",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br")
_DELIMITERS = (",", "\t", ";", "|")


@dataclass(frozen=True, slots=True)
class Source:
    """A file, its format, and the columns that are written in its path, as in ``day=2026-01-31/part-0.parquet``."""

    path: Path
    format: str
    partition: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.path)


def sources_of(paths: Any) -> list[Source]:
    """All files that are meant: names, patterns and folders, in order. Refuses what is not there."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable) or isinstance(paths, bytes):
        raise TypeError(f"`paths` must be a file, a pattern such as 'day-*.parquet', or a list of them; got {paths!r}.")
    found = [source for path in paths for source in _meant_by(path)]
    if not found:
        raise ValueError("`paths` is empty; at least one file is needed.")
    return found


def _meant_by(given: Any) -> list[Source]:
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"`paths` must hold names of files; got {given!r}.")
    path = Path(given)
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.is_file() and _is_data(file.relative_to(path)))
        if not inside:
            raise FileNotFoundError(f"{path}: no data file in this folder ({', '.join(_FORMATS)}).")
        return [_source(file) for file in inside]
    if path.exists():
        return [_source(path)]
    matches = sorted(glob.glob(os.fspath(given), recursive=True)) if glob.has_magic(str(given)) else []
    if not matches:
        kind = "no file matches this pattern" if glob.has_magic(str(given)) else "no such file"
        raise FileNotFoundError(f"{path}: {kind}.")
    return [source for match in matches for source in _meant_by(match)]


def _is_data(path: Path) -> bool:
    """Spark and its kin leave files such as _SUCCESS and .part-0.crc beside the data."""
    return not any(part.startswith(("_", ".")) for part in path.parts) and _suffix(path) in _FORMATS


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    return name.suffix.lower()


def _source(path: Path) -> Source:
    format_ = _FORMATS.get(_suffix(path))
    if format_ is None:
        raise ValueError(f"{path}: the format is told by the ending of the name, which must be {', '.join(_FORMATS)}.")
    pairs = (part.partition("=") for part in path.parts[:-1])
    return Source(path, format_, {name: value for name, equals, value in pairs if equals and name})


# --- reading ----------------------------------------------------------------------------------------------------------


def arrow() -> Any:
    """pyarrow, which reads all files."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError("reading files needs pyarrow: pip install 'truthcal[files]'.") from None
    return pyarrow


@contextlib.contextmanager
def said_of(source: Source) -> Iterator[None]:
    """Whatever is wrong with a file is said with its name."""
    try:
        yield
    except (arrow().ArrowInvalid, arrow().ArrowTypeError, arrow().ArrowNotImplementedError, UnicodeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"{source}: could not be read as {source.format} ({reason.rstrip('.')}).") from error
    except OSError as error:
        if str(source) in str(error):
            raise
        reason = " ".join(str(error).split())[:300].rstrip(".")
        # a damaged Parquet file is an OSError, too
        raise type(error)(f"{source}: could not be read as {source.format} ({reason}).") from error


def columns_in(source: Source, roles: Roles) -> list[str]:
    """Columns to read from the file itself: the others are in its path."""
    return [name for name in roles.columns if name not in source.partition]


def batches_of(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    """Record batches with at least the columns in question, and the share of the file read so far."""
    readers = {"Parquet": _parquet, "CSV": _csv, "JSON lines": _json, "Arrow": _arrow_file}
    with said_of(source):
        yield from readers[source.format](source, roles)


def _refuse_missing(source: Source, roles: Roles, there: Iterable[str]) -> None:
    roles.refuse_missing([*there, *(name for name in source.partition if name not in there)], str(source))


def _parquet(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    import pyarrow.dataset
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(source.path) as file:
        rows, schema = file.metadata.num_rows, file.schema_arrow
    _refuse_missing(source, roles, schema.names)
    types = arrow().types
    texts = {name for name in roles.by if name in schema.names and types.is_string(schema.field(name).type)}
    format_ = pyarrow.dataset.ParquetFileFormat(dictionary_columns=texts)
    data = pyarrow.dataset.dataset(source.path, format=format_)
    done = 0
    for batch in data.scanner(columns=columns_in(source, roles), batch_size=BATCH, fragment_readahead=1).to_batches():
        done += len(batch)
        yield batch, done / rows


def _arrow_file(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    ipc = arrow().ipc
    with arrow().memory_map(str(source.path)) as file:
        try:
            reader = ipc.open_file(file)
        except arrow().ArrowInvalid:
            file.seek(0)
            reader = ipc.open_stream(file)
        _refuse_missing(source, roles, reader.schema.names)
        wanted = [reader.schema.get_field_index(name) for name in columns_in(source, roles)]
        options = ipc.IpcReadOptions(included_fields=sorted(wanted))
        file.seek(0)
        if isinstance(reader, ipc.RecordBatchFileReader):
            reader = ipc.open_file(file, options=options)
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i), (i + 1) / reader.num_record_batches
        else:
            for batch in ipc.open_stream(file, options=options):
                yield batch, file.tell() / file.size()


def _json(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    import pyarrow.json

    options = pyarrow.json.ReadOptions(block_size=_BLOCK)
    size = source.path.stat().st_size
    with arrow().OSFile(str(source.path)) as raw:
        first = pyarrow.json.open_json(_decompressed(source, raw), read_options=options)
        _refuse_missing(source, roles, first.schema.names)
        types = {name: first.schema.field(name).type for name in columns_in(source, roles)}
    schema = arrow().schema(_settled(types, roles))
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    with arrow().OSFile(str(source.path)) as raw:
        for batch in pyarrow.json.open_json(_decompressed(source, raw), read_options=options, parse_options=parse):
            yield batch, raw.tell() / size


def _decompressed(source: Source, raw: Any) -> Any:
    """The text itself, if the name says that the file is compressed."""
    name = source.path.suffix.lower()
    if name not in _COMPRESSED:
        return raw
    return arrow().CompressedInputStream(raw, {".gz": "gzip", ".zst": "zstd", ".br": "brotli"}.get(name, name[1:]))


def _settled(types: dict[str, Any], roles: Roles) -> dict[str, Any]:
    """Types that hold to the end of a file of text: a column that begins with whole numbers may go on with others."""
    numbers = [roles.y_proba, roles.sample_weight, *([roles.y_true] if roles.pos_label is None else [])]
    settled = {}
    for name, kind in types.items():
        loose = name in numbers and (arrow().types.is_integer(kind) or arrow().types.is_null(kind))
        settled[name] = arrow().float64() if loose else kind
    return settled


def _csv(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    import pyarrow.csv

    parse = _division(source, roles)
    wanted, size = columns_in(source, roles), source.path.stat().st_size
    read = pyarrow.csv.ReadOptions(block_size=_BLOCK)
    convert = pyarrow.csv.ConvertOptions(include_columns=wanted)

    def opened(raw: Any) -> Any:
        return pyarrow.csv.open_csv(_decompressed(source, raw), read, parse, convert)

    with arrow().OSFile(str(source.path)) as raw:
        kinds = opened(raw).schema
    if parse.delimiter != "," and arrow().types.is_string(kinds.field(roles.y_proba).type):
        convert.decimal_point = ","  # as numbers are written where a comma does not part columns
        with arrow().OSFile(str(source.path)) as raw:
            kinds = opened(raw).schema
    # Groups are told apart by their text: 007 is not 7, and the next file may hold letters.
    texts = {name: arrow().string() for name in wanted if name in roles.by}
    convert.column_types = _settled({name: kinds.field(name).type for name in wanted}, roles) | texts
    with arrow().OSFile(str(source.path)) as raw:
        for batch in opened(raw):
            yield batch, raw.tell() / size


def _division(source: Source, roles: Roles) -> Any:
    """What parts the columns: whatever gives the wanted ones, else whatever gives the most."""
    import pyarrow.csv

    with arrow().OSFile(str(source.path)) as raw:
        text = _decompressed(source, raw).read(_BLOCK).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if not text.strip():
        raise ValueError(f"{source}: the file is empty.")
    wanted = set(columns_in(source, roles))
    readings = [(d, next(csv.reader(io.StringIO(text), delimiter=d))) for d in _DELIMITERS]
    delimiter, names = max(readings, key=lambda reading: (wanted <= set(reading[1]), len(reading[1])))
    _refuse_missing(source, roles, names)
    return pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
