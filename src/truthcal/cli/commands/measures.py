"""`truthcal measures`: all measures of a file, or the list of measures and their properties."""

import truthcal as tc
from truthcal.cli.inputs import read_inputs
from truthcal.cli.output import as_rows, print_formatted, print_json, print_result, terminal_width
from truthcal.cli.request import Request, refuse_unknown_measures
from truthcal.reports.wording import describe_measure
from truthcal.results.text import Table

_PROPERTIES = ("truthful", "continuous", "complete", "sound")


def run(request: Request) -> int:
    """Run `truthcal measures`."""
    refuse_unknown_measures(request)
    if request.list:
        _print_measures(request)
        return 0
    if not request.files:
        raise ValueError("pass a file of predictions, or use --list to list all measures and their properties.")
    data = read_inputs(request, exact_rows=None)
    rows = data.only_model("measures")
    if rows.y is None:
        cure = "`truthcal assess` shows the ATB of a sketch."
        raise ValueError(f"most measures need rows, which a sketch does not have; {cure}")
    table = tc.all_measures(rows.y, rows.p, list(request.measures) or None, sample_weight=rows.w)
    print_formatted(request, table, {"input": data.to_dict(), "measures": as_rows(table.table())})
    return 0


def _print_measures(request: Request) -> None:
    chosen = {name: tc.MEASURES[name] for name in tc.MEASURES if not request.measures or name in request.measures}
    if request.format == "json":
        fields = ("scale", *_PROPERTIES, "cost", "reference")
        rows = [{"name": name, **{field: getattr(m, field) for field in fields}} for name, m in chosen.items()]
        print_json("measures", {"input": None, "measures": rows})
        return
    header = ["measure", "scale", *_PROPERTIES, "description"]
    cells = [
        [name, m.scale, *("yes" if getattr(m, field) else "no" for field in _PROPERTIES), describe_measure(name)]
        for name, m in chosen.items()
    ]
    table = Table(header, cells)
    print_result(table.markdown() if request.format == "markdown" else "\n".join(table.lines(terminal_width())))
