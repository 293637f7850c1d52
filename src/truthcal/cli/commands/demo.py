"""`demo`: three forecasters of the same events, what truthcal says of each, and the report that compares them."""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import truthcal as tc
from truthcal.cli.commands.assess import prepare_report, report
from truthcal.cli.output import coloured, out, say
from truthcal.cli.parser import parser
from truthcal.core.file_format import write_atomically

_ROWS, _SEED = 5000, 3
_ABOUT = {
    "honest": "reports the true chance of each event",
    "overconfident": "knows it too, and exaggerates (log-odds times 1.6)",
    "gamed": "knows it too, and always reports the average, which scores better in ECE",
}


def demo(args: argparse.Namespace) -> int:
    """`truthcal demo`."""
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    data, page = folder / "predictions.csv", folder / "report.html"
    prepare_report(argparse.Namespace(files=[]), str(page))
    say(args, "the first run on a machine compiles what it needs, which takes a minute or two; later ones do not.")
    outcome, forecasts = _events()
    columns = {"outcome": outcome, **forecasts}
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*map(np.ndarray.tolist, columns.values()), strict=True)),
    ]
    write_atomically(data, ("\n".join(lines) + "\n").encode())
    out(f"Three forecasters of the same {_ROWS:,} events. Can their probabilities be trusted?\n")
    found = {name: tc.assess(outcome, p) for name, p in forecasts.items()}
    for name, assessment in found.items():
        out(f"{name}: {_ABOUT[name]}")
        out("  " + coloured(assessment.verdict, assessment.kind).replace("\n", "\n  ") + "\n")
    out(_table(outcome, forecasts, found) + "\n")
    out("The gamed forecaster wins by ECE, and tells nobody anything: its Brier score is the worst. Had outcomes been")
    out("drawn again and again (500 of the events), the expected scores would be:\n")
    out(_moral(forecasts["honest"]))
    line = ["report", str(data), "--label", "outcome", *(f"--proba={name}" for name in forecasts), "-o", str(page)]
    own = parser().parse_args([*line, "--title", "Three forecasters", "--quiet"])
    own.line = line
    out("\nThe data, and the report that compares the three:")
    out(str(data))
    return report(own)


def _events() -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Outcomes, and the three forecasts of them."""
    rng = np.random.default_rng(_SEED)
    truth = rng.beta(1.2, 1.8, _ROWS).round(6)  # each event's true chance, which a real data set would not tell
    outcome = (rng.random(_ROWS) < truth).astype(np.int64)
    odds = (truth / (1.0 - truth)) ** 1.6
    exaggerated = (odds / (1.0 + odds)).round(6)
    return outcome, {
        "honest": truth,
        "overconfident": exaggerated,
        "gamed": np.full(_ROWS, round(float(truth.mean()), 3)),
    }


def _table(
    outcome: NDArray[np.int64], forecasts: dict[str, NDArray[np.float64]], found: dict[str, tc.Assessment]
) -> str:
    """What the usual measure says beside ATB and a measure of skill."""
    rows = [f"  {'':<15} {'ECE, 15 bins':>12} {'ATB / chance':>13} {'error (rms)':>12} {'Brier score':>12}"]
    for name, a in found.items():
        ece = tc.binned_ece(outcome, forecasts[name])
        rows.append(f"  {name:<15} {ece:>12.4f} {a.atb / a.noise_floor:>13.2f} {a.rms:>12.3f} {a.brier:>12.4f}")
    return "\n".join(rows)


def _moral(honest: NDArray[np.float64]) -> str:
    """What a single table cannot show: what both reports score on average, over all that could have happened."""
    rows = tc.audit_on(honest, ["binned_ece", "atb"], strategies={"gamed": "constant mean"}).rows
    lines = [f"  {'':<15} {'honest':>12} {'gamed':>13}   does lying pay?"]
    names = {"binned_ece": "ECE, 15 bins", "atb": "ATB"}
    for row in rows:
        numbers = f"{row.honest:>12.3g} {row.scores['gamed']:>13.3g}"
        lines.append(f"  {names[row.measure]:<15} {numbers}   {row.answer}")
    return "\n".join(lines)
