"""`truthcal audit`: does lying pay under each measure?"""

from typing import Any

import truthcal as tc
from truthcal.audits.derived import DERIVED
from truthcal.cli.column_guess import guess
from truthcal.cli.inputs import open_inputs, print_where, sketches_in
from truthcal.cli.name_lists import expand_names, split_names
from truthcal.cli.output import as_rows, print_json, print_message, print_result, terminal_width
from truthcal.cli.request import Request, refuse_unknown_measures
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.load import load
from truthcal.io.files.preview import preview_columns


def run(request: Request) -> int:
    """Run `truthcal audit`."""
    refuse_unknown_measures(request, DERIVED)
    if bool(request.truth) == bool(request.files):
        raise ValueError("pass one file of predictions, or true probabilities: --truth 0.25,0.75")
    measures = list(request.measures) or None
    options: dict[str, Any] = {"stage": request.stage, "n_rows": request.n_rows, "rng": request.seed}
    if request.where is not None and request.truth:
        raise ValueError("--where chooses rows of a file, but --truth has none; omit it.")
    if request.truth:
        result = tc.audit(list(request.truth), measures, **options)
    else:
        result = tc.audit_on(_read_predictions(request), measures, max_rows=request.max_rows, **options)
    if request.format == "json":
        print_json("audit", {"rows": as_rows(result.table())})
    else:
        is_text = request.format == "text"
        print_result(result.to_text(terminal_width()) if is_text else f"```\n{result}\n```")
    return 0


def _read_predictions(request: Request) -> Any:
    """Read the predictions to audit, one column without outcomes."""
    if sketches_in(request.files):
        raise ValueError("`audit` needs individual predictions, which a sketch does not have; pass a file of rows.")
    with open_inputs(request) as sources:
        preview = preview_columns(sources[0], split_names(request.proba))
        sources[0] = preview.source
        proba = expand_names(request.proba, [column.name for column in preview.columns])
        if len(proba) > 1:
            raise ValueError("`audit` takes one column of predictions; name one with --proba.")
        guessed = guess(preview.columns, proba=proba, where=str(sources[0]), label_elsewhere="")
        for message in guessed.messages:
            print_message(request, message)
        (name,) = guessed.y_proba
        predictions = load(sources, ColumnRoles.predictions_only(name), exact_rows=None)[name].p
        print_where(request, sources)
        return predictions
