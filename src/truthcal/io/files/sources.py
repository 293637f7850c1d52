"""Which files are meant by names, patterns and folders."""

import datetime
import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br")
# How a value that is missing is written in a path.
_MISSING = "__HIVE_DEFAULT_PARTITION__"
# Whole numbers that are written the same way again: 007 is a name, not a number.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Two letters at least, for a drive of Windows has one; and one slash, for a Path makes one of two.
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True, slots=True)
class Source:
    """A file, its format, and the columns that are written in its path, as in ``day=2026-01-31/part-0.parquet``.

    Messages call it by its `name`, if that is another than the path.
    """

    path: Path
    format: str
    partition: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def __str__(self) -> str:
        return self.name or str(self.path)


def find_sources(paths: Any) -> list[Source]:
    """All files that are meant: names, patterns and folders, in order. Refuses what is not there."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable) or isinstance(paths, bytes):
        raise TypeError(f"`paths` must be a file, a pattern such as 'day-*.parquet', or a list of them; got {paths!r}.")
    found: dict[tuple[int, int], Source] = {}
    for given in paths:
        for source in _once(_meant_by(given)):
            there = source.path.stat()  # a file may have two names and still be one
            if (there.st_dev, there.st_ino) in found:
                first = found[there.st_dev, there.st_ino]
                other = f" ({first} is the same file)" if first.path != source.path else ""
                raise ValueError(
                    f"{source}: named twice in `paths`{other}, so its rows would count twice. Name it once."
                )
            found[there.st_dev, there.st_ino] = source
    if not found:
        raise ValueError("`paths` is empty; at least one file is needed.")
    return _with_types(list(found.values()))


def _once(sources: list[Source]) -> list[Source]:
    """Each file once, though a pattern or a link may lead to it twice: by its own path, which may name its groups."""
    own: dict[str, Source] = {}
    for source in sources:
        real = os.path.realpath(source.path)
        if real not in own or real == os.path.abspath(source.path):
            own[real] = source
    return list(own.values())


def _meant_by(given: Any) -> list[Source]:
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"`paths` must hold names of files; got {given!r}.")
    name = os.fspath(given)
    if not name:
        raise ValueError("`paths` is empty; at least one file is needed. The working directory is '.'.")
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        inside = _inside(path)
        if not inside:
            raise FileNotFoundError(f"{path}: no data file in this folder ({', '.join(_FORMATS)}).")
        return inside
    if path.exists():
        return [_source(path)]
    if _REMOTE.match(str(name)):
        raise ValueError(
            f"{name}: `scan` reads local files, named by plain paths. For remote ones give a frame of DuckDB or Polars "
            "to `sketch_frame`."
        )
    if not glob.has_magic(str(path)):
        raise FileNotFoundError(f"{path}: no such file.")
    found = [_inside(match) if match.is_dir() else _with_rows([_source(match)]) for match in _matches(path)]
    if not any(found):
        raise FileNotFoundError(f"{path}: no file matches this pattern.")
    return [source for sources in found for source in sources]


def _matches(pattern: Path) -> Iterator[Path]:
    """What fits a pattern, but for what is set aside: unless the pattern says so, as in ``_old/*.csv``."""
    fixed = next(i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    asides = [part for part in pattern.parts[fixed:] if _is_aside(part)]
    tables: set[Path] = set()
    for match in map(Path, sorted(glob.glob(str(pattern), recursive=True))):
        for folder in match.parents[: len(match.parts) - fixed]:
            if folder not in tables:
                tables.add(folder)
                _refuse_tables(folder)
        below = [part for part in match.parts[fixed:] if _is_aside(part)]
        if all(any(fnmatch.fnmatch(part, meant) for meant in asides) for part in below):
            yield match


def _inside(folder: Path) -> list[Source]:
    """All data files in a folder."""
    files = list(_files_below(folder, frozenset()))
    strange = [file for file in files if _suffix(file) not in _FORMATS]
    if strange:
        more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else ""
        raise ValueError(
            f"{strange[0]}{more}: the format is told by the ending of the name, and this one is not known, so rows may "
            "be missed. Name the files, or use a pattern such as '**/*.parquet'."
        )
    return _with_rows([_source(file) for file in files])


def _files_below(folder: Path, above: frozenset[str]) -> Iterator[Path]:
    """All files that are not set aside. Links to folders are followed, but not round in a circle."""
    _refuse_tables(folder)
    real = os.path.realpath(folder)
    for entry in sorted(folder.iterdir()):
        if _is_aside(entry.name):
            continue
        if not entry.is_dir():
            yield entry
        elif os.path.realpath(entry) not in above | {real}:
            yield from _files_below(entry, above | {real})


def _refuse_tables(folder: Path) -> None:
    """Tables that keep files of former versions beside those that count."""
    kind = None
    if (folder / "_delta_log").is_dir():
        kind = "a Delta table", "delta"
    elif any((folder / "metadata").glob("*.metadata.json")):
        kind = "an Iceberg table", "iceberg"
    if kind is not None:
        raise ValueError(
            f"{folder}: {kind[0]}, whose log says which of its files count. Read it with DuckDB's {kind[1]}_scan or "
            f"Polars' scan_{kind[1]}, and give that to `sketch_frame`."
        )


def _with_rows(sources: list[Source]) -> list[Source]:
    """Spark also leaves empty files of text among the others: parts that had no rows. A file named alone is not one."""
    return [source for source in sources if source.format not in ("CSV", "JSON lines") or source.path.stat().st_size]


def _is_aside(name: str) -> bool:
    """Spark and its kin leave files such as _SUCCESS and .part-0.crc beside the data."""
    return name.startswith(("_", ".")) or name.endswith(".crc")


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return name.suffix.lower()


def _source(path: Path) -> Source:
    format_ = _FORMATS.get(_suffix(path))
    if format_ is None:
        raise ValueError(
            f"{path}: the format is told by the ending of the name, which must be {', '.join(_FORMATS)}. Rename it; "
            f"the command line also takes it as it is: truthcal assess - < {path}"
        )
    pairs = (part.partition("=") for part in path.parts[:-1])
    values = {unquote(name): unquote(value) for name, equals, value in pairs if equals and name}
    return Source(path, format_, {name: None if value == _MISSING else value for name, value in values.items()})


def _with_types(sources: list[Source]) -> list[Source]:
    """Values in paths as engines read them: whole numbers or days where all of a name are, else text."""
    values: dict[str, set[str]] = {}
    for source in sources:
        for name, value in source.partition.items():
            values.setdefault(name, set()).update([] if value is None else [value])
    typed = {name: _typed(texts) for name, texts in values.items()}
    return [
        replace(source, partition={name: typed[name].get(value) for name, value in source.partition.items()})
        for source in sources
    ]


def _typed(texts: set[str]) -> dict[str, Any]:
    if all(map(_WHOLE.fullmatch, texts)):
        return {text: int(text) for text in texts}
    try:
        if all(map(_DAY.fullmatch, texts)):
            return {text: datetime.date.fromisoformat(text) for text in texts}
    except ValueError:  # such as 2026-02-30
        pass
    return {text: text for text in texts}
