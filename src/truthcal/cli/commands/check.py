"""`truthcal check`: the gate for CI. Prints the result of `truthcal.check` and sets the exit status."""

import sys

import truthcal as tc
from truthcal.cli.commands.report import prepare_report, write_report
from truthcal.cli.inputs import Data, read_inputs
from truthcal.cli.model_result import ModelResult, arrange_result, certified_atb, rows_or_sketch
from truthcal.cli.output import (
    coloured,
    notes_in_markdown,
    print_json,
    print_message,
    print_notes,
    print_result,
    terminal_width,
)
from truthcal.cli.output_files import refuse_unwritable
from truthcal.cli.request import Request
from truthcal.results.column_width import wrap_lines
from truthcal.results.text import Table, escape_markdown

_EXIT_STATUS = {"pass": 0, "fail": 1, "too little data": 3}
_MARKS = {"pass": "✅", "fail": "❌", "too little data": "❔"}


def run(request: Request) -> int:
    """Run `truthcal check`."""
    prepare_report(request, request.report)
    refuse_unwritable(request, request.summary)
    data = read_inputs(request, digest=request.report is not None)
    loaded = data.only_model("check")
    rows, weight = rows_or_sketch(loaded)
    gate = tc.check(
        *rows,
        alpha=request.alpha,
        max_error=request.max_error,
        confidence_level=request.confidence_level,
        segments=loaded.table,
        adjust=request.adjust,
        min_rows=request.min_rows,
        sample_weight=weight,
        hard=request.hard,
        groups=loaded.groups,
        labels=loaded.labels,
    )
    result = ModelResult(next(iter(data.models)), gate.assessment, gate.segments, certified_atb(loaded))
    result = arrange_result(request, result)
    status = _EXIT_STATUS[gate.status]
    if request.format == "json":
        limits = {"alpha": gate.alpha, "max_error": gate.max_error, "confidence_level": gate.confidence_level}
        used = {"alpha": gate.used_alpha, "confidence_level": gate.used_confidence_level}
        decision = {"status": gate.status, "exit_status": status, "reasons": gate.reasons}
        content = {**decision, "gate": {**limits, "used": used}, "input": data.to_dict(), **result.to_dict()}
        print_json("check", content)
    elif request.format == "markdown":
        print_result(_check_markdown(data, gate, result))
    else:
        _print_text(request, gate, result)
    if request.format == "text":
        print_notes(request, data.facts.notes)
    if request.summary is not None:
        _append_to_summary(request.summary, _check_markdown(data, gate, result) + "\n\n")
    if request.report is not None:
        write_report(request, request.report, data, [result])
    return status


def _print_text(request: Request, gate: tc.Gate, result: ModelResult) -> None:
    """Print the answer and three lines, or all of the assessment."""
    width = terminal_width()
    verdict = coloured(wrap_lines(gate.verdict, width), gate.status, gate.verdict)
    lines = Table(("", ""), gate.summary(), show_header=False, indent=2).lines(width)
    if request.verbose:
        levels = [wrap_lines(gate.levels(), width)] if gate.segments is not None else []
        answer = "\n".join([verdict, *lines, *levels])
        print_result(f"{answer}\n\n{result.to_text()}")
        return
    close = [gate.assessment.verdict.partition("\n")[0]] if gate.assessment.kind == "too good" else []
    warnings = [wrap_lines(f"! {warning}", width, "  ") for warning in (*close, *gate.assessment.warnings)]
    print_result("\n".join([verdict, *lines, *warnings]))
    if sys.stdout.isatty():
        print_message(request, "-v prints all numbers.")


def _append_to_summary(path: str, text: str) -> None:
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:  # an error of writing has no file name
        raise type(error)(error.errno, error.strerror, path) from None


def _check_markdown(data: Data, gate: tc.Gate, result: ModelResult) -> str:
    title = f"## {_MARKS[gate.status]} Calibration of {escape_markdown(result.name)} in {escape_markdown(data.where)}"
    scope = "" if gate.segments is None else "### All rows, then segments"
    parts = [title, escape_markdown(gate.verdict), scope, result.to_markdown(), notes_in_markdown(data.facts.notes)]
    return "\n\n".join(filter(None, parts))
