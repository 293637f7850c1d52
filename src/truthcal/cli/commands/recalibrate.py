"""`truthcal recalibrate`: fit and store a recalibration, apply a stored one to a file, or print it as SQL."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import truthcal as tc
from truthcal.cli.commands.report import prepare_report, write_recalibration_report
from truthcal.cli.inputs import open_inputs, read_inputs
from truthcal.cli.output import print_exactly, print_formatted, print_message
from truthcal.cli.output_files import STDOUT, refuse_unwritable, write_file
from truthcal.cli.request import Request
from truthcal.core.file_format import open_atomically
from truthcal.core.params import shown
from truthcal.io.files.add_column import add_column
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source
from truthcal.results.text import count, plural

# Options that have a meaning together with --apply.
_WITH_APPLY = ("command", "line", "files", "proba", "percent", "output", "apply", "sql", "quiet", "debug")
# Options that change rows -> what to do instead.
_BEFORE_APPLY = {
    **dict.fromkeys(("where", "missing", "fractional"), ", which copies all rows; remove rows from the file first")
}
_SQL_OF_PERCENT = "the expression is for probabilities; divide the column of percentages by 100 in the query"
# Fields of a request -> flags, where the names differ.
_FLAGS = {"input_format": "--format"}


def run(request: Request) -> int:
    """Run `truthcal recalibrate`."""
    if request.apply is None:
        _fit(request)
        return 0
    _refuse_beside_apply(request)
    stored = _Stored.read(request.apply)
    _refuse_overwriting(request, request.apply)
    if request.sql is not None:
        _write_sql(request, stored, request.sql)
    else:
        _apply(request, stored)
        _warn_if_uncorrected(request, stored.recalibration)
    return 0


# --- fit --------------------------------------------------------------------------------------------------------------


def _fit(request: Request) -> None:
    """Fit a recalibration to the rows of files, print it, and store it."""
    if not request.files:
        raise ValueError("name a file of rows to fit to, or a stored recalibration with --apply.")
    if request.sql is not None and request.format != "text":
        raise ValueError(
            f"--sql prints an expression, which cannot be combined with --{request.format}; omit one of them."
        )
    if request.sql is not None and request.percent:
        raise ValueError(f"--sql cannot be combined with --percent: {_SQL_OF_PERCENT}.")
    refuse_unwritable(request, request.output)
    prepare_report(request, request.report)
    data = read_inputs(request, exact_rows=None, digest=request.report is not None)
    loaded, name = data.only_model("recalibrate"), next(iter(data.models))
    if not loaded.exact:
        raise ValueError(f"{data.where}: is a sketch; `recalibrate` needs the rows themselves.")
    levels: dict[str, Any] = {"alpha": request.alpha, "confidence_level": request.confidence_level}
    fix = tc.recalibrate(
        loaded.y,
        loaded.p,
        sample_weight=loaded.w,
        groups=loaded.groups,
        method=request.method,
        hard=request.hard,
        rng=request.seed,
        **levels,
    )
    sql = None if request.sql is None else fix.to_sql(request.sql, y_proba=name)
    if sql is not None:
        print_exactly(sql)
    else:
        print_formatted(request, fix, {"input": data.to_dict(), "recalibration": fix.to_dict()})
    if request.output is not None:
        origin = {"y_proba": name, "files": list(data.files), "percent": request.percent}
        _store(request, request.output, _with_origin(fix, origin), changes=fix.changes)
    if request.format == "json" or sql is not None or not sys.stdout.isatty():  # the text on the terminal says it
        _warn_if_uncorrected(request, fix)
    if request.report is not None:
        write_recalibration_report(request, request.report, data, fix)


def _store(request: Request, path: str, text: str, *, changes: bool) -> None:
    """Store the JSON of a recalibration, and say how to apply it."""
    write_file(path, text.encode())
    command = f"truthcal recalibrate --apply {path} NEW -o OUT"
    how = f"apply it with: {command}" if changes else "it leaves predictions as they are"
    print_message(request, f"wrote {path}; {how}")


def _warn_if_uncorrected(request: Request, fix: tc.Recalibration) -> None:
    """Print a warning if predictions are miscalibrated and stay as they are."""
    if not fix.changes and fix.warnings:
        why = " ".join(fix.reason.split("\n"))
        print_message(request, f"warning: predictions stay as they are. {why}")


def _with_origin(fix: tc.Recalibration, origin: dict[str, Any]) -> str:
    """Return the JSON of a recalibration, with the column and files that it was fitted to."""
    content = json.loads(fix.to_json()) | origin
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


# --- apply ------------------------------------------------------------------------------------------------------------


class _Stored:
    """A recalibration read from a file, and the column that it was fitted to: its name, and if it had percentages."""

    def __init__(self, recalibration: tc.Recalibration, name: str | None, percent: bool) -> None:
        self.recalibration, self.name, self.percent = recalibration, name, percent

    @classmethod
    def read(cls, path: str) -> "_Stored":
        """Read the file once: it may be a pipe."""
        cure = "name a file written by `truthcal recalibrate -o`."
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
            content = json.loads(text)
        except ValueError as error:
            raise ValueError(f"--apply {path}: is not valid JSON ({error}); {cure}") from None
        if not isinstance(content, dict):
            raise ValueError(f"--apply {path}: is not a JSON object, but {shown(content)}; {cure}")
        try:
            recalibration = tc.Recalibration.from_json(text)
        except (ValueError, TypeError) as error:  # of the library, which does not know the file
            raise ValueError(f"--apply {path}: {error}") from error
        name = content.get("y_proba")
        return cls(recalibration, name if isinstance(name, str) else None, content.get("percent") is True)

    def name_in(self, request: Request) -> str | None:
        """Return the column to recalibrate: the named one, or that of the fit if it is known."""
        if len(request.proba) > 1:
            raise ValueError("`recalibrate` takes one column of predictions; name one with --proba.")
        return request.proba[0] if request.proba else self.name


def _refuse_beside_apply(request: Request) -> None:
    """Reject options that would have no effect together with --apply."""
    for field in dataclasses.fields(request):
        value = getattr(request, field.name)
        if field.name in _WITH_APPLY or value == field.default:
            continue
        flag = f"--{value}" if field.name == "format" else _FLAGS.get(field.name, f"--{field.name.replace('_', '-')}")
        cure = _BEFORE_APPLY.get(field.name, ", which fits and reports nothing; omit one of them")
        raise ValueError(f"{flag} cannot be combined with --apply{cure}.")


def _refuse_overwriting(request: Request, path: str) -> None:
    """Reject an output file that is the stored recalibration."""
    output = request.output
    if output not in (None, "", STDOUT) and Path(str(output)).is_file() and Path(str(output)).samefile(path):
        raise ValueError(f"{output}: is the stored recalibration and would be overwritten; choose another output file.")


def _write_sql(request: Request, stored: _Stored, dialect: str) -> None:
    """Print a recalibration as SQL, or write it to a file."""
    if request.files:
        raise ValueError("--sql prints an expression and reads no rows; omit the files, or omit --sql.")
    if request.percent or (stored.percent and not request.proba):
        raise ValueError(f"--sql: {_SQL_OF_PERCENT}, and name the quotient with --proba.")
    refuse_unwritable(request, request.output)
    sql = stored.recalibration.to_sql(dialect, y_proba=stored.name_in(request) or "p")
    if request.output is None or request.output == STDOUT:
        print_exactly(sql)
        return
    write_file(request.output, f"{sql}\n".encode())
    print_message(request, f"wrote {request.output}: the correction as an SQL expression")
    print_exactly(request.output)


def _apply(request: Request, stored: _Stored) -> None:
    """Copy a file with a recalibrated column."""
    if len(request.files) != 1 or request.output is None:
        example = "truthcal recalibrate --apply fix.json new.csv -o out.csv"
        raise ValueError(f"--apply needs one file of rows, and -o with the name of the output: {example}")
    refuse_unwritable(request, request.output)
    with open_inputs(request) as (source, *others):
        if others:
            raise ValueError(f"{request.files[0]}: matches {1 + len(others)} files; name one of them.")
        _refuse_other_format(source, request.output)
        name = stored.name_in(request) or _only_probability(source)
        new = f"{name}_recalibrated"
        with _open_output(request.output) as out:
            percent = request.percent or stored.percent
            rows, missing = add_column(source, name, new, lambda p: stored.recalibration(p), out, percent=percent)
    if percent:
        print_message(request, f"{name!r} holds percentages, which were divided by 100; {new!r} holds probabilities")
    if missing:
        without = f"{missing:,} of {count(rows, 'row')} {plural(missing, 'has', 'have')} no {name!r}"
        print_message(request, f"{without}; {new!r} is empty there")
    if request.output != STDOUT:
        print_message(request, f"wrote {request.output}: {count(rows, 'row')} with the column {new!r}")
        print_exactly(request.output)


def _refuse_other_format(source: Source, path: str) -> None:
    """Reject an output file whose extension is not that of the format, which stays that of the input."""
    wanted = source.format.extensions
    suffix = Path(path).suffix.lower()
    if path != STDOUT and suffix and suffix not in wanted:
        raise ValueError(f"{path}: the output is {source.format.name}, like the input; name it with {wanted[0]}.")


def _only_probability(source: Source) -> str:
    """Return the only column of a file that holds probabilities."""
    names = [c.name for c in preview_columns(source).columns if c.in_unit and c.many]
    if len(names) == 1:
        return names[0]
    if names:
        raise ValueError(f"{source}: columns that may hold probabilities: {', '.join(names)}. Name one with --proba.")
    cure = "Divide percentages by 100, and correct or drop rows with text; or name a column with --proba."
    raise ValueError(f"{source}: no column holds numbers between 0 and 1 only. {cure}")


@contextmanager
def _open_output(path: str) -> Iterator[BinaryIO]:
    if path != STDOUT:
        with open_atomically(path) as file:
            yield file
        return
    sys.stdout.flush()
    yield sys.stdout.buffer
