"""Files as a stream of record batches of the columns in question."""

import contextlib
import csv
import glob
import io
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from truthcal.frames.refusals import refuse_type
from truthcal.frames.roles import Roles

# Rows of a batch, where there is a choice: group by group they should fill the processor's cache, and stay in it.
BATCH = 1 << 20
# Bytes of text parsed at a time.
_BLOCK = 1 << 22
# Bytes in which the line that names the columns must end.
_HEADER = 1 << 18
# Bytes of each column of a Parquet file read ahead. Without a limit pyarrow holds whole groups of rows, which may be
# whole files: 860 MB for 2e7 rows, not 320; and it is no faster.
_AHEAD = 1 << 20
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
    ".arrows": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br")
_DELIMITERS = (",", "\t", ";", "|")
# How a value that is missing is written in a path.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Source:
    """A file, its format, and the columns that are written in its path, as in ``day=2026-01-31/part-0.parquet``."""

    path: Path
    format: str
    partition: dict[str, str | None] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.path)


def sources_of(paths: Any) -> list[Source]:
    """All files that are meant: names, patterns and folders, in order. Refuses what is not there."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable) or isinstance(paths, bytes):
        raise TypeError(f"`paths` must be a file, a pattern such as 'day-*.parquet', or a list of them; got {paths!r}.")
    found: dict[str, Source] = {}
    for given in paths:
        meant: dict[str, Source] = {}
        for source in _meant_by(given):
            meant.setdefault(os.path.realpath(source.path), source)
        for twice in (meant[file] for file in meant if file in found):
            raise ValueError(f"{twice}: named twice in `paths`, so its rows would count twice. Name it once.")
        found |= meant
    if not found:
        raise ValueError("`paths` is empty; at least one file is needed.")
    return list(found.values())


def _meant_by(given: Any) -> list[Source]:
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"`paths` must hold names of files; got {given!r}.")
    path = Path(given)
    if path.is_dir():
        inside = _inside(path)
        if not inside:
            raise FileNotFoundError(f"{path}: no data file in this folder ({', '.join(_FORMATS)}).")
        return inside
    if path.exists():
        return [_source(path)]
    if not glob.has_magic(str(given)):
        raise FileNotFoundError(f"{path}: no such file.")
    matches = [Path(match) for match in sorted(glob.glob(os.fspath(given), recursive=True))]
    matches = [match for match in matches if not _is_aside(match.name)]
    found = [_inside(match) if match.is_dir() else _with_rows([_source(match)]) for match in matches]
    if not any(found):
        raise FileNotFoundError(f"{path}: no file matches this pattern.")
    return [source for sources in found for source in sources]


def _inside(folder: Path) -> list[Source]:
    """All data files in a folder."""
    files = sorted(file for file in folder.rglob("*") if file.is_file() and _is_data(file.relative_to(folder)))
    return _with_rows([_source(file) for file in files])


def _with_rows(sources: list[Source]) -> list[Source]:
    """Spark also leaves empty files of text among the others: parts that had no rows. A file named alone is not one."""
    return [source for source in sources if source.format not in ("CSV", "JSON lines") or source.path.stat().st_size]


def _is_data(path: Path) -> bool:
    return not any(map(_is_aside, path.parts)) and _suffix(path) in _FORMATS


def _is_aside(name: str) -> bool:
    """Spark and its kin leave files such as _SUCCESS and .part-0.crc beside the data."""
    return name.startswith(("_", "."))


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in _COMPRESSED else path
    return name.suffix.lower()


def _source(path: Path) -> Source:
    format_ = _FORMATS.get(_suffix(path))
    if format_ is None:
        raise ValueError(f"{path}: the format is told by the ending of the name, which must be {', '.join(_FORMATS)}.")
    pairs = (part.partition("=") for part in path.parts[:-1])
    values = {unquote(name): unquote(value) for name, equals, value in pairs if equals and name}
    return Source(path, format_, {name: None if value == _MISSING else value for name, value in values.items()})


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
    except (
        arrow().ArrowInvalid,
        arrow().ArrowTypeError,
        arrow().ArrowNotImplementedError,
        UnicodeError,
        csv.Error,
    ) as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(f"{source}: could not be read as {source.format} ({reason.rstrip('.')}).") from error
    except (OSError, MemoryError) as error:  # a damaged file is an OSError, too, or asks for more memory than there is
        if str(source) in str(error):
            raise
        reason = " ".join(str(error).split())[:300].rstrip(".")
        kind = type(error) if isinstance(error, OSError) else MemoryError
        raise kind(f"{source}: could not be read as {source.format} ({reason}).") from error


def columns_in(source: Source, roles: Roles) -> list[str]:
    """Columns to read from the file itself: others that make groups are in its path."""
    return list(dict.fromkeys(name for role, name in roles if role != "by" or name not in source.partition))


def batches_of(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    """Record batches with at least the columns in question, and the share of the file read so far."""
    readers = {"Parquet": _parquet, "CSV": _csv, "JSON lines": _json, "Arrow": _arrow_file}
    with said_of(source):
        yield from readers[source.format](source, roles)


def _refuse_missing(source: Source, roles: Roles, there: Iterable[str]) -> None:
    in_path = [name for name in roles.by if name in source.partition]
    roles.refuse_missing([*there, *(name for name in in_path if name not in there)], str(source))


def _parquet(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(source.path)
    _refuse_missing(source, roles, schema.names)
    wanted = columns_in(source, roles)
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


def _arrow_file(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    ipc = arrow().ipc
    with arrow().memory_map(str(source.path)) as file:
        opened = ipc.open_file if file.read(6) == b"ARROW1" else ipc.open_stream
        file.seek(0)
        schema = opened(file).schema
        _refuse_missing(source, roles, schema.names)
        wanted = [schema.get_field_index(name) for name in columns_in(source, roles)]
        file.seek(0)
        reader = opened(file, options=ipc.IpcReadOptions(included_fields=sorted(set(wanted))))
        if opened is ipc.open_stream:
            whole = ((batch, file.tell() / file.size()) for batch in reader)
        else:
            n = reader.num_record_batches
            whole = ((reader.get_batch(i), (i + 1) / n) for i in range(n))
        for batch, share in whole:
            for first in range(0, len(batch), BATCH):
                yield batch.slice(first, BATCH), share


def _json(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    import pyarrow.json

    options = pyarrow.json.ReadOptions(block_size=_BLOCK)
    size, row = source.path.stat().st_size, 0
    if not _beginning(source).strip():
        return
    with arrow().OSFile(str(source.path)) as raw:
        first = pyarrow.json.open_json(_decompressed(source, raw), read_options=options)
        _refuse_missing(source, roles, first.schema.names)
        types = {name: first.schema.field(name).type for name in columns_in(source, roles)}
    schema = arrow().schema(_settled(types, roles))
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    with arrow().OSFile(str(source.path)) as raw:
        try:
            for batch in pyarrow.json.open_json(_decompressed(source, raw), read_options=options, parse_options=parse):
                row += len(batch)
                yield batch, _share(raw, size)
        except arrow().ArrowInvalid as error:  # which counts the rows of this block only
            reason = re.sub(r"in row (\d+)", lambda found: f"in row {row + int(found[1])}", str(error))
            raise arrow().ArrowInvalid(reason) from None


def _share(raw: Any, size: int) -> float:
    """How much of a file is read."""
    try:
        return float(raw.tell() / size)
    except (ValueError, OSError):  # whoever reads ahead has come to the end and closed it
        return 1.0


def _beginning(source: Source) -> bytes:
    with arrow().OSFile(str(source.path)) as raw:
        text: bytes = _decompressed(source, raw).read(_HEADER)
    return text


def _decompressed(source: Source, raw: Any) -> Any:
    """The text itself, if the name says that the file is compressed."""
    name = source.path.suffix.lower()
    if name not in _COMPRESSED:
        return raw
    return arrow().CompressedInputStream(raw, {".gz": "gzip", ".zst": "zstd", ".br": "brotli"}.get(name, name[1:]))


def _settled(types: dict[str, Any], roles: Roles) -> dict[str, Any]:
    """Types that hold to the end of a file of text: a column that begins with whole numbers may go on with others."""
    texts = [*roles.by, *([roles.y_true] if isinstance(roles.pos_label, str) else [])]
    settled = {}
    for name, kind in types.items():
        loose = arrow().types.is_null(kind) or (arrow().types.is_integer(kind) and name not in texts)
        settled[name] = kind if not loose else arrow().string() if name in texts else arrow().float64()
    return settled


def _csv(source: Source, roles: Roles) -> Iterator[tuple[Any, float]]:
    import pyarrow.csv

    parse = _division(source, roles)
    if parse is None:
        return
    wanted, size = columns_in(source, roles), source.path.stat().st_size
    read = pyarrow.csv.ReadOptions(block_size=_BLOCK)
    convert = pyarrow.csv.ConvertOptions(include_columns=wanted)

    def opened(raw: Any) -> Any:
        return pyarrow.csv.open_csv(_decompressed(source, raw), read, parse, convert)

    def kinds() -> dict[str, Any]:
        with arrow().OSFile(str(source.path)) as raw:
            schema = opened(raw).schema
        return {name: schema.field(name).type for name in wanted}

    types = kinds()
    if parse.delimiter != "," and arrow().types.is_string(types[roles.y_proba]):
        convert.decimal_point = ","  # as numbers are written where a comma does not part columns
        types = kinds()
    # Groups and labels are told apart by their text: 007 is not 7, and the next file may hold letters.
    texts = [*roles.by, *([roles.y_true] if isinstance(roles.pos_label, str) else [])]
    numbers = {name: role for role, name in roles if name not in texts}
    must = [name for name in numbers if name != roles.y_true or roles.pos_label is None]
    types |= {name: arrow().float64() for name in must if arrow().types.is_string(types[name])}
    convert.column_types = _settled(types, roles) | {name: arrow().string() for name in wanted if name in texts}
    try:
        with arrow().OSFile(str(source.path)) as raw:
            for batch in opened(raw):
                yield batch, _share(raw, size)
    except arrow().ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
        convert.column_types = dict.fromkeys(numbers, arrow().string())
        convert.include_columns, convert.strings_can_be_null = list(numbers), True
        _refuse_words(source, numbers, opened, convert.decimal_point)
        raise


def _refuse_words(source: Source, numbers: dict[str, str], opened: Callable[[Any], Any], point: str) -> None:
    """Find what cannot be read as a number, if that is what is wrong."""
    row = 0
    with arrow().OSFile(str(source.path)) as raw:
        for batch in opened(raw):
            for name, role in numbers.items():
                for i, word in _words(batch.column(name), point):
                    refuse_type(name, role, f"text in {source} ({word[:40]!r} at row {row + i})", text=True)
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


def _division(source: Source, roles: Roles) -> Any:
    """What parts the columns: whatever gives the wanted ones, else whatever gives the most. None if there is no row."""
    import pyarrow.csv

    text = _beginning(source).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip("\r\n")
    if not text.strip():
        raise ValueError(f"{source}: the file is empty.")
    if "\0" in text:
        raise ValueError(f"{source}: could not be read as CSV (it is no text in UTF-8).")
    wanted = set(columns_in(source, roles))
    readings = [(d, next(csv.reader(io.StringIO(text, newline=""), delimiter=d))) for d in _DELIMITERS]
    delimiter, names = max(readings, key=lambda reading: (wanted <= set(reading[1]), len(reading[1])))
    _refuse_missing(source, roles, names)
    if not re.search(r"[\r\n]", text.strip()):
        return None
    return pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
