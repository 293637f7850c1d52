"""`truthcal demo`: three forecasters of the same events, their assessments, and the report that compares them."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import truthcal as tc
from truthcal.cli.commands.report import prepare_report, write_report
from truthcal.cli.inputs import Data, rows_in_memory
from truthcal.cli.model_result import ModelResult, assess_models
from truthcal.cli.output import coloured, print_result
from truthcal.cli.request import Request
from truthcal.core.file_format import write_atomically

_ROWS, _SEED = 5000, 3
_ABOUT = {
    "honest": "reports the true probability of each event",
    "overconfident": "exaggerates the true probabilities (log-odds times 1.6)",
    "gamed": "always reports the average of the true probabilities, which improves its ECE",
}
# Scores in the demo's table -> headers.
_HEADS = {"ece": "ECE, 15 bins", "atb": "ATB", "brier": "Brier score"}


def run(request: Request) -> int:
    """Run `truthcal demo`."""
    folder = Path(request.folder)
    folder.mkdir(parents=True, exist_ok=True)
    path, page = str(folder / "predictions.csv"), str(folder / "report.html")
    prepare_report(request, page)
    outcome, forecasts = _draw_demo_events()
    data = _write_demo_data(path, outcome, forecasts)
    print_result(f"Three forecasters of the same {_ROWS:,} events. Can their probabilities be trusted?\n")
    results = assess_models(request, data)
    for result in results:
        # Not the size of the error, by which the gamed forecaster looks better than the honest one.
        verdict = result.assessment.verdict.splitlines()[0]
        verdict = coloured(verdict, result.assessment.kind, verdict)
        print_result(f"{result.name}: {_ABOUT[result.name]}\n  {verdict}\n")
    print_result(_table(outcome, forecasts, results) + "\n")
    print_result(
        "The gamed forecaster has the best ECE, although its predictions carry no information. ATB and the Brier\n"
        "score are truthful, so they can rank forecasters. Expected scores if the outcomes are redrawn many times:\n"
    )
    print_result(_expected_scores(forecasts["honest"], forecasts["gamed"]))
    print_result(f"\nThe data and the report:\n{path}\n{page}")
    write_report(_report_request(request, path, page, tuple(forecasts)), page, data, results)
    return 0


def _write_demo_data(path: str, outcome: NDArray[np.int64], forecasts: dict[str, NDArray[np.float64]]) -> Data:
    """Write the rows of the demo as CSV, and return them as if they had been read."""
    columns = {"outcome": outcome, **forecasts}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    text = "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"
    write_atomically(path, text.encode())
    models = {name: rows_in_memory(outcome, p) for name, p in forecasts.items()}
    roles = {"label": "outcome", "proba": list(forecasts), "weight": None, "pos_label": None, "by": []}
    return Data(models, (path,), roles, hashlib.sha256(text.encode()).hexdigest())


def _report_request(request: Request, path: str, page: str, names: tuple[str, ...]) -> Request:
    """Return the request that would write the demo's report from its data."""
    line = ("report", path, "--label", "outcome", *(f"--proba={name}" for name in names), "-o", page)
    return dataclasses.replace(request, line=line, label="outcome", proba=names, title="Three forecasters", quiet=True)


def _draw_demo_events() -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Draw the outcomes of the demo, and make the three forecasts of them."""
    rng = np.random.default_rng(_SEED)
    truth = rng.beta(1.2, 1.8, _ROWS).round(6)  # the true probability of each event, which real data do not have
    outcome = (rng.random(_ROWS) < truth).astype(np.int64)
    odds = (truth / (1.0 - truth)) ** 1.6
    exaggerated = (odds / (1.0 + odds)).round(6)
    constant = np.full(_ROWS, truth.mean())
    return outcome, {"honest": truth, "overconfident": exaggerated, "gamed": constant}


def _table(outcome: NDArray[np.int64], forecasts: dict[str, NDArray[np.float64]], results: list[ModelResult]) -> str:
    """Format the usual measure of the demo's forecasts next to two truthful scores."""
    rows = [f"  {'':<15} {_HEADS['ece']:>12} {_HEADS['atb']:>13} {_HEADS['brier']:>12}"]
    for result in results:
        a, ece = result.assessment, tc.ece(outcome, forecasts[result.name])
        rows.append(f"  {result.name:<15} {ece:>12.4f} {a.atb:>13.6f} {a.brier:>12.4f}")
    return "\n".join(rows)


def _expected_scores(honest: NDArray[np.float64], gamed: NDArray[np.float64]) -> str:
    """Format the expected scores of the demo's honest and gamed forecasts, for each score of its table."""
    rows = tc.audit(honest, list(_HEADS), strategies={"gamed": lambda truth: gamed}).rows
    lines = [f"  {'':<15} {'honest':>12} {'gamed':>13}   does lying pay?"]
    for row in rows:
        numbers = f"{row.honest:>12.4g} {row.scores['gamed']:>13.4g}"
        lines.append(f"  {_HEADS[row.measure]:<15} {numbers}   {row.answer}")
    return "\n".join(lines)
