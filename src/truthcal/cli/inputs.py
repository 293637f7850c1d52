"""From arguments to data: which files, which columns, read once for each model."""

import argparse
import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truthcal.cli.guessing import Guess, guess
from truthcal.cli.showing import say
from truthcal.frames.files import Source, sources_of
from truthcal.frames.loading import EXACT_ROWS, Loaded, load
from truthcal.frames.looking import look
from truthcal.frames.roles import Roles
from truthcal.frames.spooling import is_kept, spooled
from truthcal.sketch import Sketch
from truthcal.sketch_table import SketchTable

STDIN = "-"
_BUCKETS = 16384


@dataclass(frozen=True, slots=True)
class Data:
    """What was read: a `Loaded` for each model, by the name of its column, and what is to be said of it.

    `columns` are the roles of columns by name, empty for sketches; `digest` is the SHA-256 of all files, if asked for.
    """

    models: dict[str, Loaded]
    files: tuple[str, ...]
    columns: dict[str, Any]
    said: tuple[str, ...]
    digest: str = ""

    @property
    def first(self) -> Loaded:
        """The first model, or the only one."""
        return next(iter(self.models.values()))

    @property
    def where(self) -> str:
        """The files in a word or two."""
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1:,} more"

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
    kept = [name for name in args.files if name != STDIN and is_kept(name)]
    if kept:
        return _from_sketches(args, kept)
    with opened(args.files) as sources:
        if sources[0].format == "sketch":
            return _from_sketches(args, [str(sources[0].path)])
        meant = guessed(args, sources)
        for line in meant.said:
            say(args, line)
        by = getattr(args, "by", None)
        models = {
            name: load(
                sources,
                Roles.of(meant.y_true, name, args.weight, by, meant.pos_label),
                n_buckets=n_buckets or _BUCKETS,
                exact_rows=exact_rows,
            )
            for name in meant.y_proba
        }
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
            said=meant.said,
            digest=digest_of(sources) if digest else "",
        )


@contextlib.contextmanager
def opened(files: list[str]) -> Iterator[list[Source]]:
    """The files that are meant; standard input is one for as long as this lasts."""
    if STDIN not in files:
        yield sources_of(files)
        return
    if len(files) > 1:
        raise ValueError("`-` is standard input, which must be the only file. Put the others into it with cat.")
    if sys.stdin.isatty():
        raise ValueError(
            "`-` reads standard input, but that is a terminal. Pipe a file: truthcal ... - < predictions.csv"
        )
    with spooled(sys.stdin.buffer) as source:
        yield [source]


def guessed(args: argparse.Namespace, sources: list[Source]) -> Guess:
    """Which column is what: by name, or by the only sensible reading of the first file."""
    proba = args.proba or []
    twice = next((name for name in proba if proba.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"--proba {twice} is named twice; name each model once.")
    by = getattr(args, "by", None) or []
    key = getattr(args, "key", None)
    return guess(
        look(sources[0], [name for name in (args.label, *proba, args.weight, *by, key) if name is not None]),
        label=args.label,
        proba=proba,
        weight=args.weight,
        by=by,
        key=key,
        pos_label=args.pos_label,
        where=str(sources[0]),
    )


def one_model(data: Data, args: argparse.Namespace) -> Loaded:
    """The only model, for commands that take one."""
    if len(data.models) > 1:
        raise ValueError(f"`{args.command}` looks at one model; name one column with --proba.")
    return data.first


def refuse_unwritable(path: str | None) -> None:
    """Say that a file cannot be written before the work, not after it."""
    if path is None:
        return
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; name a file in it.")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}; make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: nothing can be written into {folder}; name another folder.")


# --- sketches ---------------------------------------------------------------------------------------------------------


def _from_sketches(args: argparse.Namespace, kept: list[str]) -> Data:
    other = next((name for name in args.files if name not in kept and name != STDIN), None)
    if other is not None:
        raise ValueError(f"{other}: not a sketch, but {kept[0]} is one; give sketches, or files of rows.")
    flags = {"--label": args.label, "--proba": args.proba, "--weight": args.weight, "--pos-label": args.pos_label}
    given = next((flag for flag, value in flags.items() if value), None)
    if given is not None:
        raise ValueError(f"{given} names a column, but {kept[0]} is a sketch, which has none: leave it out.")
    whole = merged(kept)
    by = getattr(args, "by", None)
    table = whole if isinstance(whole, SketchTable) else None
    if by and (table is None or tuple(by) != table.by):
        has = f"its segments are by {', '.join(table.by)}" if table else "it has no segments"
        raise ValueError(f"--by {' --by '.join(by)}: {kept[0]} is a sketch, and {has}.")
    sketch = table.total() if table is not None else whole
    assert isinstance(sketch, Sketch)
    files = tuple("standard input" if STDIN in args.files else name for name in kept)
    return Data({"predictions": Loaded(None, None, None, sketch, table, sketch.n)}, files, {}, ())


def merged(paths: list[str]) -> Sketch | SketchTable:
    """Sketches put together; a table of segments only with its like."""
    kinds = {path: is_kept(path) for path in paths}
    strange = next((path for path, kind in kinds.items() if kind is None), None)
    if strange is not None:
        raise ValueError(f"{strange}: not a truthcal sketch; write one with: truthcal sketch FILE -o OUT")
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


def digest_of(sources: list[Source]) -> str:
    """SHA-256 of all bytes, file after file."""
    whole = hashlib.sha256()
    for source in sources:
        with open(source.path, "rb") as file:
            while block := file.read(1 << 20):
                whole.update(block)
    return whole.hexdigest()
