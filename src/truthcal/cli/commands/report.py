"""`truthcal report`: the HTML report; other commands write it with `--report`."""

import importlib
import shlex
from pathlib import Path
from typing import Any

import truthcal as tc
from truthcal.cli.inputs import STDIN, Data, read_inputs
from truthcal.cli.model_result import ModelResult, assess_models
from truthcal.cli.output import print_exactly, print_message
from truthcal.cli.output_files import STDOUT, refuse_unwritable, write_file
from truthcal.cli.request import Request
from truthcal.kernels.jit import load_cached

_SUFFIXES = (".html", ".htm")


def run(request: Request) -> int:
    """Run `truthcal report`."""
    stem = "" if request.files[0] == STDIN else Path(request.files[0]).name.split(".")[0].strip("*?[]")
    path = request.output or f"{stem or 'report'}.html"
    prepare_report(request, path)
    data = read_inputs(request, digest=True)
    write_report(request, path, data, assess_models(request, data))
    if path != STDOUT:
        print_exactly(path)
    return 0


def prepare_report(request: Request, path: str | None) -> None:
    """Raise before the work starts if the report could not be written after it: libraries or the folder are missing."""
    if path is None:
        return
    refuse_unwritable(request, path)
    is_device = path.startswith(("/dev/", "/proc/")) or (Path(path).exists() and not Path(path).is_file())
    if path != STDOUT and not is_device and Path(path).suffix.lower() not in _SUFFIXES:
        flag = "-o" if request.command == "report" else "--report"
        cure = "For a PDF, open that file in a browser and print it."
        raise ValueError(f"{flag} must end with .html, the format of a report; got {path!r}. {cure}")
    for library in ("jinja2", "matplotlib"):
        try:
            importlib.import_module(library)
        except ImportError:
            raise ImportError(f"the report needs {library}: pip install 'truthcal[report]'.") from None
    load_cached()  # some measures of the report are never interpreted


def write_report(
    request: Request, path: str, data: Data, results: list[ModelResult], comparisons: tc.ComparisonTable | None = None
) -> None:
    """Build and write the HTML report of a command, completely or not at all."""
    single = len(results) == 1
    assessments: Any = {result.name: result.assessment for result in results}
    segments = {result.name: result.segments for result in results if result.segments is not None}
    over_time = {result.name: result.over_time for result in results if result.over_time is not None}
    report = tc.report(
        results[0].assessment if single else assessments,
        segments=results[0].segments if single else segments or None,
        over_time=results[0].over_time if single else over_time or None,
        comparisons=_compare_all(data) if comparisons is None else comparisons,
        group_name=data.columns.get("group"),
        title=request.title or f"Can these probabilities be trusted? {data.title}",
        provenance=_provenance_of_request(request, data),
        notes=_notes_on_inputs(request, data),
        exact_distcal=request.exact_distcal,
    )
    _write_page(request, path, report)


def write_recalibration_report(request: Request, path: str, data: Data, fix: tc.Recalibration) -> None:
    """Build and write the HTML report of `truthcal recalibrate`, completely or not at all."""
    title = request.title or f"Recalibration of {data.title}"
    report = tc.report(
        fix,
        group_name=data.columns.get("group"),
        title=title,
        provenance=_provenance_of_request(request, data),
        notes=_notes_on_inputs(request, data),
    )
    _write_page(request, path, report)


def _write_page(request: Request, path: str, report: tc.Report) -> None:
    write_file(path, report.html.encode())
    if path != STDOUT:
        print_message(request, f"wrote {path}")


def _compare_all(data: Data) -> tc.ComparisonTable | None:
    """Compare all pairs of models of the report on the same rows; None if there is one, or a sketch.

    Labels in place of probabilities were refused before, by `assess`.
    """
    first = data.first
    if len(data.models) < 2 or not first.exact:
        return None
    options: dict[str, Any] = {"sample_weight": first.w, "groups": first.groups, "labels": first.labels, "hard": True}
    return tc.compare_models(first.y, {name: loaded.p for name, loaded in data.models.items()}, **options)


def _provenance_of_request(request: Request, data: Data) -> dict[str, str]:
    more = f" and {len(data.files) - 5:,} more" if len(data.files) > 5 else ""
    origin = {
        "data": ", ".join(data.files[:5]) + more,
        "rows": f"{data.first.n:,}",
        "command": shlex.join(["truthcal", *request.line]),
    }
    if left_out := sum(data.facts.dropped.values()):
        origin["rows left out"] = f"{left_out:,}"
    return origin | ({"SHA-256 of the data": data.digest} if data.digest else {})


def _notes_on_inputs(request: Request, data: Data) -> list[str]:
    if not data.columns:
        return ["The input is a sketch: sums per bucket of predictions, not the rows themselves."]
    c = data.columns
    if "classes" in c:
        return _notes_on_classes(request, data)
    label = f", where {c['pos_label']!r} counts as 1" if c["pos_label"] is not None else ""
    notes = [f"Outcomes are in the column {c['label']!r}{label}; predictions in {', '.join(map(repr, c['proba']))}."]
    guessed = data.facts.format is None and (request.label is None or not request.proba)
    return notes + _notes_on_other_columns(data, guessed=guessed)


def _notes_on_classes(request: Request, data: Data) -> list[str]:
    names, label = data.columns["proba"], data.columns["label"]
    probabilities = ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    note = f"The class of each row is in the column {label!r}; probabilities of classes in {probabilities}."
    guessed = request.label is None or not (request.proba or request.proba_prefix)
    return [note, *_notes_on_other_columns(data, guessed=guessed)]


def _notes_on_other_columns(data: Data, *, guessed: bool) -> list[str]:
    weight, group = data.columns["weight"], data.columns.get("group")
    notes = [f"Weights are in the column {weight!r}." if weight else "All rows have the same weight."]
    if group:
        notes.append(f"Rows with the same value of {group!r} belong together; other rows are independent.")
    notes += data.facts.notes
    if guessed:
        notes.append("Columns not named in the command were guessed from the column names and the first rows.")
    return notes
