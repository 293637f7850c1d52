"""Inputs: the files of a request, opened once, and the rows of all its models, read in one pass."""

import contextlib
import functools
import glob
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from truthcal.cli.class_columns import describe_classes, find_class_columns
from truthcal.cli.class_hints import explain_classes
from truthcal.cli.column_guess import Guess, guess
from truthcal.cli.input_options import (
    InputFacts,
    input_facts,
    prepare_inputs,
    refuse_class_options,
    refuse_input_options,
    row_filter_of,
    warn_of_repeated_questions,
)
from truthcal.cli.name_lists import expand_names, with_expanded_names, with_split_names
from truthcal.cli.named_columns import refuse_missing_and_fractional
from truthcal.cli.output import print_message
from truthcal.cli.percentages import preview_as_probabilities, refuse_probabilities, with_percentages
from truthcal.cli.request import Request
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.core.windows import parse_window
from truthcal.inference.over_time import WindowedRows
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.class_rows import load_classes
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.formats import format_of_path, sketch_kind
from truthcal.io.files.load import EXACT_ROWS, Loaded, load
from truthcal.io.files.preview import Preview, preview_columns
from truthcal.io.files.source import Source
from truthcal.io.files.stdin import spool_stdin
from truthcal.io.files.where import parse_where
from truthcal.io.files.windows import TimeOptions

STDIN = "-"
# Commands that accept no fractional outcomes.
_NEED_BINARY = ("assess", "test", "compare", "report", "check")


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of all models, by the name of their prediction column, and where they came from.

    `columns` holds the roles of columns by name, empty for sketches; `digest` the SHA-256 of all files, if asked for;
    `facts` are stated in every output.
    """

    models: dict[str, Loaded]
    files: tuple[str, ...]
    columns: dict[str, Any]
    digest: str = ""
    facts: InputFacts = field(default_factory=InputFacts)

    @property
    def first(self) -> Loaded:
        """The first model, or the only one."""
        return next(iter(self.models.values()))

    @property
    def where(self) -> str:
        """The first file, and the number of others."""
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1:,} more"

    @property
    def title(self) -> str:
        """The same without folders."""
        return self.where.replace(self.files[0], Path(self.files[0]).name, 1)

    def only_model(self, command: str) -> Loaded:
        """Return the only model, for commands that take one."""
        if len(self.models) > 1:
            one = "one --proba-prefix" if "classes" in self.columns else "one column with --proba"
            raise ValueError(f"`{command}` takes one model; name {one}.")
        return self.first

    def to_dict(self) -> dict[str, Any]:
        """Describe the input for JSON."""
        origin = {"files": list(self.files), "rows": self.first.n, "exact": self.first.exact}
        return {**origin, **self.columns, **self.facts.to_dict()}


def rows_in_memory(y: Any, p: Any, w: Any = None, groups: Any = None) -> Loaded:
    """Wrap input rows that are in memory already."""
    return Loaded(y, p, w, None, None, len(p), groups)


def read_inputs(request: Request, *, exact_rows: int | None = EXACT_ROWS, digest: bool = False) -> Data:
    """Read the inputs, all rows of all models in one pass, and print which columns were guessed."""
    refuse_input_options(request)
    _refuse_time_options(request)
    sketches = sketches_in(request.files)
    if sketches:
        return _read_input_sketches(request, sketches, tuple(sketches))
    with open_inputs(request) as found:
        typed = request
        request, prepared = prepare_inputs(with_split_names(request), found)
        sources = prepared.sources
        names = (request.label, *request.proba, request.weight, *request.by, request.group, request.key, request.time)
        names += (request.question, request.close)
        preview = preview_columns(sources[0], [name for name in names if name is not None])
        if preview.source.is_sketch:
            return _read_input_sketches(typed, [str(sources[0].path)], (str(sources[0]),))
        sources[0] = preview.source
        if prepared.format is None:
            request = with_expanded_names(request, typed, [column.name for column in preview.columns])
        checksum = hashlib.sha256() if digest else None
        classes = find_class_columns(request, preview)
        if classes is not None:
            warn_of_repeated_questions(request, preview.columns)
            models, notes = load_classes(sources, classes, checksum=checksum)
            facts = input_facts(request, prepared, notes=notes)
            return _data_of(models, sources, describe_classes(request, classes), checksum, facts)
        try:
            refuse_class_options(request, prepared)
            guessed = guess_input_columns(request, preview)
        except ValueError as error:
            reason = explain_classes(request, preview.columns, str(preview.source))
            raise (ValueError(reason) if reason else error) from None
        sources[:] = with_percentages(sources, request.percent and prepared.format is None)
        warn_of_repeated_questions(request, preview.columns)
        by, positive = request.by or None, guessed.pos_label
        roles = ColumnRoles.of_models(guessed.y_true, guessed.y_proba, request.weight, by, positive, request.group)
        row_filter, filter_notes = row_filter_of(request, sources, guessed.y_proba[0])
        options: dict[str, Any] = {"n_buckets": request.buckets, "exact_rows": exact_rows, "time": _windows(request)}
        models = load(sources, roles, checksum=checksum, row_filter=row_filter, **options)
        columns = describe_columns(request, guessed, guessed.y_proba)
        return _data_of(models, sources, columns, checksum, input_facts(request, prepared, [row_filter], filter_notes))


def _data_of(
    models: dict[str, Loaded], sources: Sequence[Source], columns: dict[str, Any], checksum: Any, facts: InputFacts
) -> Data:
    return Data(models, tuple(map(str, sources)), columns, "" if checksum is None else checksum.hexdigest(), facts)


def _windows(request: Request) -> TimeOptions | None:
    """Return the windows of time of the request; with --horizon, times are those of forecasts to choose from."""
    if request.time is None or request.horizon is not None:
        return None
    return TimeOptions(request.time, request.window, request.time_unit)


def _refuse_time_options(request: Request) -> None:
    """Reject options of time that are invalid or do not fit the others, before any input is read."""
    for flag, value in (("--window", request.window), ("--time-unit", request.time_unit)):
        if request.time is None and value not in ("auto", None):
            raise ValueError(f"{flag} needs the column of times; name it with --time.")
    if request.horizon is not None:
        if request.window != "auto":
            raise ValueError("--window cannot be combined with --horizon, which chooses one forecast per question.")
        return
    if request.time is not None and request.command not in ("assess", "report"):
        raise ValueError(f"--time in `{request.command}` is for --horizon; name the forecasts to use: --horizon 7d.")
    if request.time is not None and request.group is not None:
        problem = "--time cannot be combined with --group: the test for change needs independent rows"
        raise ValueError(f"{problem}. Omit one of them, or use `truthcal watch`, which accepts groups.")
    if request.window != "auto":
        parse_window(request.window)


def describe_columns(request: Request, guessed: Guess, proba: Sequence[str]) -> dict[str, Any]:
    """Describe the columns of the inputs and their roles for JSON and the report."""
    return {
        "label": guessed.y_true,
        "proba": list(proba),
        "weight": request.weight,
        "pos_label": guessed.pos_label,
        "by": list(request.by),
        "group": request.group,
        "time": request.time,
    }


@contextlib.contextmanager
def open_inputs(request: Request) -> Iterator[list[Source]]:
    """Find the input files; stdin is copied to a temporary file that exists within this context.

    They have the condition of the request, if there is one, that rows must meet.
    """
    where, files = None if request.where is None else parse_where(request.where), request.files
    if STDIN not in files:
        sources = find_sources(list(files))
        for source in sources:
            _refuse_input_name_not_utf8(source)
        yield [replace(source, where=where) for source in sources]
        return
    if len(files) > 1:
        raise ValueError("`-` (standard input) must be the only input. Combine files with cat.")
    if sys.stdin.isatty():
        raise ValueError("`-` reads standard input, which is a terminal. Pipe a file: truthcal ... - < predictions.csv")
    with spool_stdin(sys.stdin.buffer) as source:
        yield [replace(source, where=where)]


def print_where(request: Request, sources: Sequence[Source]) -> None:
    """Print how many rows were kept by --where, for commands whose results have no notes."""
    if sources[0].where is not None:
        print_message(request, sources[0].where.note)


def guess_input_columns(request: Request, preview: Preview) -> Guess:
    """Find the columns of the inputs that were not named, by the content of the first file, and print the guess."""
    columns = preview_as_probabilities(preview.columns, request.label) if request.percent else preview.columns
    guessed = guess(
        columns,
        label=request.label,
        proba=request.proba,
        weight=request.weight,
        by=request.by,
        group=request.group,
        key=request.key,
        time=request.time,
        question=request.question,
        close=request.close,
        pos_label=request.pos_label,
        where=str(preview.source),
        fractional=request.fractional is not None or request.command == "measures",
    )
    for message in guessed.messages:
        print_message(request, message)
    if request.percent and preview.source.table is None:
        refuse_probabilities(preview.columns, guessed.y_proba, str(preview.source))
    if request.missing is None and request.fractional is None and request.command in _NEED_BINARY:
        label = next(column for column in preview.columns if column.name == guessed.y_true)
        refuse_missing_and_fractional(label, str(preview.source))
    return guessed


def _refuse_input_name_not_utf8(source: Source) -> None:
    try:
        os.fspath(source.path).encode()
    except UnicodeEncodeError:
        problem = f"{source}: the name of this file is not in UTF-8, so it cannot be opened."
        cure = "Rename it, or pipe it: truthcal ... - < FILE"
        raise ValueError(f"{problem} {cure}") from None


# --- sketches ---------------------------------------------------------------------------------------------------------


def sketches_in(files: Sequence[str]) -> list[str]:
    """Return the input files that are sketches, with patterns expanded."""
    names = [name for name in files if name != STDIN]
    matches = [
        sorted(glob.glob(name)) if glob.has_magic(name) and not Path(name).exists() else [name] for name in names
    ]
    # A file with the extension of a row format is not opened to find out.
    return [path for paths in matches for path in paths if format_of_path(Path(path))[0] is None and sketch_kind(path)]


def _read_input_sketches(request: Request, paths: list[str], names: tuple[str, ...]) -> Data:
    _refuse_beside_sketches(request, names)
    whole = merge_input_sketches(paths)
    table = roll_up_sketch(whole, request.by, names[0])
    windows = None if request.time is None else _windows_of_sketch(request, whole, names)
    sketch = whole.total() if isinstance(whole, SketchTable) else whole
    if table is not None and not request.by and request.time is not None:
        table = None  # its groups are times, not segments
    return Data({"predictions": Loaded(None, None, None, sketch, table, sketch.n, windows=windows)}, names, {})


def roll_up_sketch(whole: Sketch | SketchTable, by: Sequence[str], name: str) -> SketchTable | None:
    """Return the segments of an input sketch by the columns that the user named, or by all; None without segments."""
    table = whole if isinstance(whole, SketchTable) else None
    columns = expand_names(by, () if table is None else table.by)
    if table is None or not set(columns) <= set(table.by):
        if not columns:
            return None
        segments = f"with segments by {', '.join(table.by)}" if table else "without segments"
        raise ValueError(f"--by {' --by '.join(columns)}: {name} is a sketch {segments}.")
    return table.rollup(columns) if columns and columns != table.by else table


def _windows_of_sketch(request: Request, table: Sketch | SketchTable, names: tuple[str, ...]) -> WindowedRows:
    """Return the windows of input sketches, one of whose columns has the times."""
    if not isinstance(table, SketchTable) or request.time not in table.by:
        columns = f"by {', '.join(table.by)}" if isinstance(table, SketchTable) else "without groups"
        raise ValueError(f"--time {request.time}: {names[0]} is a sketch {columns}.")
    return WindowedRows.of_table(table.rollup(request.time), request.window, request.time_unit)


def _refuse_beside_sketches(request: Request, names: tuple[str, ...]) -> None:
    """Reject inputs that cannot be combined with sketches: files of rows, names of columns, a number of buckets."""
    others = [name for name in request.files if name not in names and (name == STDIN or not glob.has_magic(name))]
    if others and names != ("standard input",):
        other = "standard input" if others[0] == STDIN else others[0]
        raise ValueError(f"{other}: not a sketch, but {names[0]} is one; pass only sketches, or only files of rows.")
    roles = ("label", "proba", "proba_prefix", "weight", "pos_label", "group")
    columns = (*roles, "question", "close", "where", "missing", "fractional")
    flag = next((f"--{name.replace('_', '-')}" for name in columns if getattr(request, name)), None)
    if flag is not None:
        raise ValueError(f"{flag} refers to a column, but {names[0]} is a sketch, which has no columns; omit {flag}.")
    if request.buckets is not None:
        raise ValueError(f"{names[0]}: is a sketch with a fixed number of buckets; omit --buckets.")


def merge_input_sketches(files: Sequence[str]) -> Sketch | SketchTable:
    """Merge input files that are sketches, all with segments or all without."""
    paths = sketches_in(files) if any(map(glob.has_magic, files)) else list(files)
    if not paths:
        raise FileNotFoundError("no sketch matches this pattern.")
    for i, path in enumerate(paths):
        if any(Path(path).exists() and Path(other).exists() and Path(path).samefile(other) for other in paths[:i]):
            raise ValueError(f"{path}: named twice, so its rows would count twice. Name it once.")
    kinds = {path: sketch_kind(path) for path in paths}
    unknown = next((path for path, kind in kinds.items() if kind is None), None)
    if unknown is not None:
        missing = "" if Path(unknown).exists() else " (no such file)"
        raise ValueError(f"{unknown}: not a truthcal sketch{missing}; write one with: truthcal sketch FILE -o OUT")
    if len(set(kinds.values())) > 1:
        raise ValueError("some of these sketches have segments and some do not; merge only one kind.")
    classes: dict[str | None, Any] = {"Sketch": Sketch, "SketchTable": SketchTable}
    sketches = [classes[kind].load(path) for path, kind in kinds.items()]
    merged: Sketch | SketchTable = functools.reduce(lambda whole, part: whole.merge(part), sketches)
    return merged
