"""`truthcal recalibrate`: fit and store a recalibration, apply a stored one to a file, or print it as SQL."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import truthcal as tc
from truthcal.cli.commands.report import prepare_report, write_recalibration_report
from truthcal.cli.inputs import Data, open_inputs, read_inputs
from truthcal.cli.output import print_formatted, print_message, print_result
from truthcal.cli.output_files import STDOUT, refuse_unwritable, write_file
from truthcal.cli.request import Request
from truthcal.core.file_format import open_atomically
from truthcal.io.files.add_column import add_column
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.source import Source
from truthcal.results.text import count, plural


def run(request: Request) -> int:
    """Run `truthcal recalibrate`."""
    if request.apply is None:
        _fit(request)
        return 0
    if request.percent:
        raise ValueError("--percent cannot be combined with --apply; divide the column of probabilities by 100 first.")
    stored = _Stored.read(request.apply)
    if request.sql is not None:
        if request.files:
            raise ValueError("--sql prints an expression and reads no rows; omit the files, or omit --sql.")
        print_result(stored.recalibration.to_sql(request.sql, y_proba=stored.name_in(request) or "p"))
    else:
        _apply(request, stored)
        _warn_if_uncorrected(request, stored.recalibration)
    return 0


# --- fit --------------------------------------------------------------------------------------------------------------


def _fit(request: Request) -> None:
    """Fit a recalibration to the rows of files, print it, and store it."""
    if not request.files:
        raise ValueError("name a file of rows to fit to, or a stored recalibration with --apply.")
    refuse_unwritable(request, request.output)
    prepare_report(request, request.report)
    data = read_inputs(request, exact_rows=None, digest=request.report is not None)
    loaded, name = data.only_model("recalibrate"), next(iter(data.models))
    if not loaded.exact:
        raise ValueError(f"{data.where}: is a sketch; `recalibrate` needs the rows themselves.")
    fix = tc.recalibrate(
        loaded.y,
        loaded.p,
        sample_weight=loaded.w,
        groups=loaded.groups,
        method=request.method,
        alpha=0.05 if request.alpha is None else request.alpha,
        confidence_level=request.confidence_level,
        hard=request.hard,
        rng=request.seed,
    )
    sql = None if request.sql is None else fix.to_sql(request.sql, y_proba=name)
    if sql is not None:
        print_result(sql)
    else:
        print_formatted(request, fix, {"input": data.to_dict(), "recalibration": fix.to_dict()})
    if request.output is not None:
        write_file(request.output, _with_origin(fix, data, name).encode())
        command = f"truthcal recalibrate --apply {request.output} NEW -o OUT"
        how = f"apply it with: {command}" if fix.changes else "it leaves predictions as they are"
        print_message(request, f"wrote {request.output}; {how}")
    if request.format == "json" or sql is not None or not sys.stdout.isatty():  # the text on the terminal says it
        _warn_if_uncorrected(request, fix)
    if request.report is not None:
        write_recalibration_report(request, request.report, data, fix)


def _warn_if_uncorrected(request: Request, fix: tc.Recalibration) -> None:
    """Print a warning if predictions are miscalibrated and stay as they are."""
    if not fix.changes and fix.warnings:
        why = " ".join(fix.reason.split("\n"))
        print_message(request, f"warning: predictions stay as they are. {why}")


def _with_origin(fix: tc.Recalibration, data: Data, name: str) -> str:
    """Return the JSON of a recalibration, with the column and files that it was fitted to."""
    content = json.loads(fix.to_json()) | {"y_proba": name, "files": list(data.files)}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


# --- apply ------------------------------------------------------------------------------------------------------------


class _Stored:
    """A recalibration read from a file, and the name of the column of predictions that it was fitted to."""

    def __init__(self, recalibration: tc.Recalibration, name: str | None) -> None:
        self.recalibration, self.name = recalibration, name

    @classmethod
    def read(cls, path: str) -> "_Stored":
        recalibration = tc.Recalibration.from_json(Path(path))
        name = json.loads(Path(path).read_text(encoding="utf-8")).get("y_proba")
        return cls(recalibration, name if isinstance(name, str) else None)

    def name_in(self, request: Request) -> str | None:
        """Return the column to recalibrate: the named one, or that of the fit if it is known."""
        if len(request.proba) > 1:
            raise ValueError("`recalibrate` takes one column of predictions; name one with --proba.")
        return request.proba[0] if request.proba else self.name


def _apply(request: Request, stored: _Stored) -> None:
    """Copy a file with a recalibrated column."""
    if len(request.files) != 1 or request.output is None:
        example = "truthcal recalibrate --apply fix.json new.csv -o out.csv"
        raise ValueError(f"--apply needs one file of rows, and -o with the name of the output: {example}")
    refuse_unwritable(request, request.output)
    for flag, value in (("where", request.where), ("missing", request.missing), ("fractional", request.fractional)):
        if value is not None:
            problem = f"--{flag} cannot be combined with --apply, which copies all rows"
            raise ValueError(f"{problem}; remove rows from the file first.")
    with open_inputs(request) as (source, *others):
        if others:
            raise ValueError(f"{request.files[0]}: matches {1 + len(others)} files; name one of them.")
        _refuse_other_format(source, request.output)
        name = stored.name_in(request) or _only_probability(source)
        new = f"{name}_recalibrated"
        with _open_output(request.output) as out:
            rows, missing = add_column(source, name, new, lambda p: stored.recalibration(p), out)
    if missing:
        without = f"{missing:,} of {count(rows, 'row')} {plural(missing, 'has', 'have')} no {name!r}"
        print_message(request, f"{without}; {new!r} is empty there")
    if request.output != STDOUT:
        print_message(request, f"wrote {request.output}: {count(rows, 'row')} with the column {new!r}")
        print_result(request.output)


def _refuse_other_format(source: Source, path: str) -> None:
    """Reject an output file whose extension is not that of the format, which stays that of the input."""
    wanted = source.format.extensions
    suffix = Path(path).suffix.lower()
    if path != STDOUT and suffix and suffix not in wanted:
        raise ValueError(f"{path}: the output is {source.format.name}, like the input; name it with {wanted[0]}.")


def _only_probability(source: Source) -> str:
    """Return the only column of a file that holds probabilities."""
    found = [c.name for c in preview_columns(source).columns if c.in_unit and c.many]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{source}: columns that may hold probabilities: {', '.join(found)}. Name one with --proba.")
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
