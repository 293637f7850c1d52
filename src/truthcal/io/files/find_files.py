"""Files for paths, patterns and folders."""

import contextlib
import datetime
import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from truthcal.core.checks import invalid
from truthcal.io.files.formats import EXTENSIONS, format_of_path, sketch_kind
from truthcal.io.files.source import SKETCH, Source
from truthcal.io.files.unsupported import advice_for_path

_MISSING = "__HIVE_DEFAULT_PARTITION__"  # as Hive and Spark write it
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 007 is a name, not a number
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# At least two letters, since Windows drives have one; and one slash, since Path makes one of two.
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def find_sources(paths: Any) -> list[Source]:
    """Find all files for paths, patterns and folders, in order; sketches too. Raises if one does not exist."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable) or isinstance(paths, bytes):
        rule = "must be a file, a pattern such as 'day-*.parquet', or a list of them"
        raise invalid("paths", f"{rule}; got {paths!r}.", TypeError)
    sources: dict[tuple[int, int], Source] = {}
    for path in paths:
        for source in _without_links(_find_files(path)):
            stat = source.path.stat()  # a file may have two names
            first = sources.setdefault((stat.st_dev, stat.st_ino), source)
            if first is not source:
                same = f" ({first} is the same file)" if first.path != source.path else ""
                raise ValueError(f"{source}: named twice{same}, so its rows would count twice. Name it once.")
    if not sources:
        raise ValueError("`paths` is empty; at least one file is needed.")
    return _with_typed_partitions(list(sources.values()))


def _without_links(sources: list[Source]) -> list[Source]:
    """Drop files found twice, by a pattern or a link: keep the real path, which may name the file's groups."""
    by_path: dict[str, Source] = {}
    for source in sources:
        real = os.path.realpath(source.path)
        if real not in by_path or real == os.path.abspath(source.path):
            by_path[real] = source
    return list(by_path.values())


def _find_files(path_or_pattern: Any) -> list[Source]:
    if not isinstance(path_or_pattern, str | os.PathLike):
        raise invalid("paths", f"must contain names of files; got {path_or_pattern!r}.", TypeError)
    name = os.fspath(path_or_pattern)
    if not name:
        raise ValueError("`paths` is empty; at least one file is needed. For the working directory, pass '.'.")
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        if files := _find_in(path):
            return files
        raise FileNotFoundError(f"{path}: no data file in this folder ({', '.join(EXTENSIONS)}).")
    if path.exists():
        return [_find_one(path)]
    if _REMOTE.match(str(name)):
        problem = f"{name}: `scan` reads local files, named by plain paths."
        cure = "For remote files, pass a DuckDB or Polars frame to `sketch_frame`."
        raise ValueError(f"{problem} {cure}")
    if not glob.has_magic(str(path)):
        raise FileNotFoundError(f"{path}: no such file.")
    matches = [_find_in(match) if match.is_dir() else _without_empty([_find_one(match)]) for match in _matches(path)]
    if not any(matches):
        raise FileNotFoundError(f"{path}: no file matches this pattern.")
    return [source for sources in matches for source in sources]


def _matches(pattern: Path) -> Iterator[Path]:
    """Find the matches of a pattern, without hidden files unless the pattern names them, as in ``_old/*.csv``."""
    fixed = next(i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    hidden_patterns = [part for part in pattern.parts[fixed:] if _is_hidden(part)]
    checked: set[Path] = set()
    for match in map(Path, sorted(glob.glob(str(pattern), recursive=True))):
        for folder in [x for x in match.parents[: len(match.parts) - fixed] if x not in checked]:
            checked.add(folder)
            _refuse_table_folder(folder)
        hidden = [part for part in match.parts[fixed:] if _is_hidden(part)]
        if all(any(fnmatch.fnmatch(part, named) for named in hidden_patterns) for part in hidden):
            yield match


def _find_in(folder: Path) -> list[Source]:
    files = list(_walk_folder(folder, frozenset()))
    unknown = [file for file in files if format_of_path(file)[0] is None]
    if unknown:
        if len(unknown) == len(files) and (advice := advice_for_path(unknown[0])):
            raise ValueError(f"{unknown[0]}: is {advice}")
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        problem = f"{unknown[0]}{more}: the extension is unknown, so the format cannot be determined"
        cure = "Name the files, or use a pattern such as '**/*.parquet'."
        raise ValueError(f"{problem}, and skipping it could lose rows. {cure}")
    return _without_empty([_find_one(file) for file in files])


def _walk_folder(folder: Path, parents: frozenset[str]) -> Iterator[Path]:
    """Find all files in a folder that are not hidden. Follows links to folders, but not to itself or a parent."""
    _refuse_table_folder(folder)
    parents |= {os.path.realpath(folder)}
    for entry in sorted(path for path in folder.iterdir() if not _is_hidden(path.name)):
        if not entry.is_dir():
            yield entry
        elif os.path.realpath(entry) not in parents:
            yield from _walk_folder(entry, parents)


def _refuse_table_folder(folder: Path) -> None:
    """Raise if a found folder is a table that keeps files of old versions beside the current ones."""
    is_delta = (folder / "_delta_log").is_dir()
    if is_delta or any((folder / "metadata").glob("*.metadata.json")):
        kind, prefix = ("a Delta table", "delta") if is_delta else ("an Iceberg table", "iceberg")
        problem = f"{folder}: {kind}, whose log determines which of its files are valid."
        cure = f"Read it with DuckDB's {prefix}_scan or Polars' scan_{prefix}, and pass the frame to `sketch_frame`."
        raise ValueError(f"{problem} {cure}")


def _without_empty(sources: list[Source]) -> list[Source]:
    """Drop empty text files that were found, which Spark writes for parts without rows; not a file named by itself."""
    return [source for source in sources if source.format.magic or source.path.stat().st_size]


def _is_hidden(name: str) -> bool:
    """Whether not to find a file, since Spark or the like wrote it beside the data: _SUCCESS, .part-0.crc."""
    return name.startswith(("_", ".")) or name.endswith(".crc")


def _find_one(path: Path) -> Source:
    format_, compression = format_of_path(path)
    format_ = format_ or (SKETCH if sketch_kind(path) else None)
    if format_ is None and (advice := advice_for_path(path)):
        raise ValueError(f"{path}: is {advice}")
    if format_ is None:
        problem = f"{path}: the extension determines the format, and it must be {', '.join(EXTENSIONS)}."
        cure = f"Rename the file, or pipe it into the command line: truthcal assess - < {path}"
        raise ValueError(f"{problem} {cure}")
    pairs = (part.partition("=") for part in path.parts[:-1])
    values = {unquote(name): unquote(value) for name, equals, value in pairs if equals and name}
    partition = {name: None if value == _MISSING else value for name, value in values.items()}
    return Source(path, format_, compression, partition)


def _with_typed_partitions(sources: list[Source]) -> list[Source]:
    """Convert values in the paths found as engines do: to integers or dates if all of a name are, else text."""
    pairs = {pair for source in sources for pair in source.partition.items()}
    names = {name for name, _ in pairs}
    texts = {name: {text for key, text in pairs if key == name and text is not None} for name in names}
    typed = {name: _parse_path_values(texts[name]) for name in names}
    partitions = ({name: typed[name].get(text) for name, text in source.partition.items()} for source in sources)
    return [replace(source, partition=partition) for source, partition in zip(sources, partitions, strict=True)]


def _parse_path_values(texts: set[str]) -> dict[str, Any]:
    if all(map(_INTEGER.fullmatch, texts)):
        return {text: int(text) for text in texts}
    with contextlib.suppress(ValueError):  # such as 2026-02-30
        if all(map(_DATE.fullmatch, texts)):
            return {text: datetime.date.fromisoformat(text) for text in texts}
    return {text: text for text in texts}
