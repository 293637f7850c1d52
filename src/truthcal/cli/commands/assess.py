"""`truthcal assess`: the verdict in words, the evidence, and optionally the report."""

from truthcal.cli.commands.report import prepare_report, write_report
from truthcal.cli.inputs import read_inputs
from truthcal.cli.model_result import assess_models, refuse_text_options
from truthcal.cli.output import print_json, print_notes, print_result
from truthcal.cli.request import Request
from truthcal.results.text import escape_markdown


def run(request: Request) -> int:
    """Run `truthcal assess`."""
    refuse_text_options(request)
    prepare_report(request, request.report)
    data = read_inputs(request, digest=request.report is not None)
    results = assess_models(request, data)
    several = len(results) > 1
    if request.format == "json":
        print_json("assess", {"input": data.to_dict(), "models": [result.to_dict() for result in results]})
    elif request.format == "markdown":
        print_result("\n\n".join(f"### {escape_markdown(r.name)}\n\n" * several + r.to_markdown() for r in results))
    else:
        print_result("\n\n".join(f"{r.name}\n{'-' * len(r.name)}\n" * several + r.to_text() for r in results))
    if request.format != "json":
        print_notes(request, data.facts.notes)
    if request.report is not None:
        write_report(request, request.report, data, results)
    return 0
