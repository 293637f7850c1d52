"""From arguments to data: which files, which columns, read once for each model."""

import argparse
import contextlib
import glob
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truthcal.cli.column_guess import Guess, guess
from truthcal.cli.output import STDOUT, say
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.formats import sketch_kind
from truthcal.io.files.load import EXACT_ROWS, Loaded, load
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source
from truthcal.io.files.sources import find_sources
from truthcal.io.files.stdin import spool_stdin

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Data:
    """What was read: a `Loaded` for each model, by the name of its column, and what is to be said of it.

    `columns` are the roles of columns by name, empty for sketches; `digest` is the SHA-256 of all files, if asked for.
    """

    models: dict[str, Loaded]
    files: tuple[str, ...]
    columns: dict[str, Any]
    digest: str = ""

    @property
    def first(self) -> Loaded:
        """The first model, or the only one."""
        return next(iter(self.models.values()))

    @property
    def where(self) -> str:
        """The files in a word or two."""
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1:,} more"

    @property
    def title(self) -> str:
        """The same without folders."""
        return self.where.replace(self.files[0], Path(self.files[0]).name, 1)

    def to_dict(self) -> dict[str, Any]:
        """What JSON says of it."""
        first = self.first
        return {"files": list(self.files), "rows": first.n, "exact": first.exact, **self.columns}


def read(
    args: argparse.Namespace,
    *,
    exact_rows: int | None = EXACT_ROWS,
    n_buckets: int | None = None,
    digest: bool = False,
) -> Data:
    """All rows that the arguments name, and a message about what was guessed."""
    kept = sketches_in(args.files)
    if kept:
        _refuse_beside_sketches(args, kept, n_buckets)
        return _from_sketches(args, kept, tuple(kept))
    with opened(args.files) as sources:
        if sources[0].is_sketch:
            _refuse_beside_sketches(args, [str(sources[0])], n_buckets)
            return _from_sketches(args, [str(sources[0].path)], (str(sources[0]),))
        meant = guessed(args, sources)
        for line in meant.said:
            say(args, line)
        by = getattr(args, "by", None)
        checksum = hashlib.sha256()
        models = load(
            sources,
            ColumnRoles.of_models(meant.y_true, meant.y_proba, args.weight, by, meant.pos_label),
            n_buckets=n_buckets,
            exact_rows=exact_rows,
            checksum=checksum if digest else None,
        )
        return Data(
            models=models,
            files=tuple(map(str, sources)),
            columns={
                "label": meant.y_true,
                "proba": list(meant.y_proba),
                "weight": args.weight,
                "pos_label": meant.pos_label,
                "by": list(by or []),
            },
            digest=checksum.hexdigest() if digest else "",
        )


@contextlib.contextmanager
def opened(files: list[str]) -> Iterator[list[Source]]:
    """The files that are meant; standard input is one for as long as this lasts."""
    if STDIN not in files:
        sources = find_sources(files)
        for source in sources:
            _refuse_strange_name(source)
        yield sources
        return
    if len(files) > 1:
        raise ValueError("`-` is standard input, which must be the only file. Put the others into it with cat.")
    if sys.stdin.isatty():
        raise ValueError(
            "`-` reads standard input, but that is a terminal. Pipe a file: truthcal ... - < predictions.csv"
        )
    with spool_stdin(sys.stdin.buffer) as source:
        yield [source]


def guessed(args: argparse.Namespace, sources: list[Source]) -> Guess:
    """Which column is what: by name, or by the only sensible reading of the first file."""
    proba = args.proba or []
    twice = next((name for name in proba if proba.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"--proba {twice} is named twice; name each model once.")
    by = getattr(args, "by", None) or []
    key = getattr(args, "key", None)
    several = args.command in ("assess", "report")
    named = [name for name in (args.label, *proba, args.weight, *by, key) if name is not None]
    preview = preview_columns(sources[0], named)
    sources[0] = preview.source
    return guess(
        preview.columns,
        label=args.label,
        proba=proba,
        weight=args.weight,
        by=by,
        key=key,
        pos_label=args.pos_label,
        where=str(sources[0]),
        several=several,
    )


def one_model(data: Data, args: argparse.Namespace) -> Loaded:
    """The only model, for commands that take one."""
    if len(data.models) > 1:
        raise ValueError(f"`{args.command}` looks at one model; name one column with --proba.")
    return data.first


def refuse_unwritable(args: argparse.Namespace, path: str | None, *, may_be_read: bool = False) -> None:
    """Say that a file cannot be written before the work, not after it; nor may it be one that is read."""
    if path is None or path == STDOUT:
        return
    target = Path(path)
    if not path:
        raise ValueError("a file to write has an empty name; name it, or leave the option out.")
    if not may_be_read and target.is_file():
        _refuse_own_input(args, target)
    if target.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; name a file in it.")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}; make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: nothing can be written into {folder}; name another folder.")


def _refuse_own_input(args: argparse.Namespace, target: Path) -> None:
    rows = [name for name in args.files if name != STDIN]
    paths = [Path(name) for name in sketches_in(args.files)]
    if rows and not paths:
        paths = [source.path for source in find_sources(rows)]
    if any(path.samefile(target) for path in paths):
        raise ValueError(f"{target}: is read, and would be overwritten; name another file to write.")


def _refuse_strange_name(source: Source) -> None:
    try:
        os.fspath(source.path).encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{source}: the name of this file is not in UTF-8, so it cannot be opened. Rename it, or pipe it: "
            "truthcal ... - < FILE"
        ) from None


# --- sketches ---------------------------------------------------------------------------------------------------------


def sketches_in(files: list[str]) -> list[str]:
    """The files among these that are sketches, patterns included."""
    found = []
    for name in files:
        matches = sorted(glob.glob(name)) if glob.has_magic(name) and not Path(name).exists() else [name]
        found += [match for match in matches if match != STDIN and sketch_kind(match)]
    return found


def _refuse_beside_sketches(args: argparse.Namespace, kept: list[str], n_buckets: int | None) -> None:
    """What sketches cannot be together with: rows, names of columns, numbers of buckets."""
    other = next(
        (name for name in args.files if name not in kept and (name == STDIN or not glob.has_magic(name))), None
    )
    if other is not None and kept != ["standard input"]:
        what = "standard input" if other == STDIN else other
        raise ValueError(f"{what}: not a sketch, but {kept[0]} is one; give sketches, or files of rows.")
    flags = {"--label": args.label, "--proba": args.proba, "--weight": args.weight, "--pos-label": args.pos_label}
    given = next((flag for flag, value in flags.items() if value), None)
    if given is not None:
        raise ValueError(f"{given} names a column, but {kept[0]} is a sketch, which has none: leave it out.")
    if n_buckets is not None:
        raise ValueError(f"{kept[0]}: is a sketch, whose buckets are as they are; leave --buckets out.")


def _from_sketches(args: argparse.Namespace, paths: list[str], names: tuple[str, ...]) -> Data:
    whole = merged(paths)
    by = getattr(args, "by", None)
    table = whole if isinstance(whole, SketchTable) else None
    if by and (table is None or tuple(by) != table.by):
        has = f"its segments are by {', '.join(table.by)}" if table else "it has no segments"
        raise ValueError(f"--by {' --by '.join(by)}: {names[0]} is a sketch, and {has}.")
    sketch = whole.total() if isinstance(whole, SketchTable) else whole
    return Data({"predictions": Loaded(None, None, None, sketch, table, sketch.n)}, names, {})


def merged(paths: list[str]) -> Sketch | SketchTable:
    """Sketches put together; a table of segments only with its like."""
    paths = sketches_in(paths) if any(map(glob.has_magic, paths)) else paths
    if not paths:
        raise FileNotFoundError("no sketch fits this pattern.")
    twice = next((path for i, path in enumerate(paths) if any(_same(path, other) for other in paths[:i])), None)
    if twice is not None:
        raise ValueError(f"{twice}: named twice, so its rows would count twice. Name it once.")
    kinds = {path: sketch_kind(path) for path in paths}
    strange = next((path for path, kind in kinds.items() if kind is None), None)
    if strange is not None:
        missing = "" if Path(strange).exists() else " (no such file)"
        raise ValueError(f"{strange}: not a truthcal sketch{missing}; write one with: truthcal sketch FILE -o OUT")
    if len(set(kinds.values())) > 1:
        raise ValueError(
            f"{paths[0]} and the others are of two kinds, with and without segments; merge like with like."
        )
    if "SketchTable" in kinds.values():
        first, *rest = [SketchTable.load(path) for path in paths]
        for table in rest:
            first.merge(table)
        return first
    sketch, *others = [Sketch.load(path) for path in paths]
    for other in others:
        sketch.merge(other)
    return sketch


def _same(one: str, other: str) -> bool:
    return Path(one).exists() and Path(other).exists() and Path(one).samefile(other)
