"""Measure every goal for speed in one run, and write docs/benchmarks/goals.md: part of `make bench-peers`.

Some reference calls are those of other packages, so that it runs in their environment. `--part` measures one part and
prints it.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cli
import numpy as np
import segments
from run import machine, predictions, race

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "goals.md"
SIZES = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 1_048_577, 3_000_000, 10_000_000)
LARGE = (1_000_000, 10_000_000)
SAMPLES = 25  # for each number of rows, fewer for millions
ROWS = 8_886  # of the file for the command line
STEADY = 2.0 / 3.0  # time may fall to this share of that for fewer rows
TEMPLATE = """# Goals for speed

Written by `make bench-peers`; do not edit. {machine}; load {load}. One run measured all of this page.

## Time by number of rows

Milliseconds, the median over 25 samples (5 of ten million rows). Predictions are uniform or rare (Beta(1, 99)), and
calibrated. Goals: time never falls by more than a third when the number of rows grows, and `assess` of a million rows
takes at most 0.2 s, and no longer than of ten million.

{by_rows}

## Ratios to other calls

Each ratio is the median over rounds in which both calls run one after the other. "rare" are Beta(1, 99) predictions.

{ratios}

## Commands

Seconds until a command ends, for a CSV file of {rows:,} rows. "First" is one run with an empty cache of compiled code,
"warm" the median of {runs} more.

{commands}

## Segments

p-values, verdicts and intervals of 10,000 segments of 1,000 rows.

{segments}
"""


class Goal(NamedTuple):
    """A call, its reference, and the ratio of their times that it must not exceed, if any."""

    name: str
    reference: str
    most: float | None
    call: Callable[[], object]
    yardstick: Callable[[], object]


def verdict(met: bool) -> str:
    return "yes" if met else "**no**"


def table(head: list[str], lines: list[list[str]]) -> str:
    rows = [head, ["---"] + ["---:"] * (len(head) - 1), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


# --- time by number of rows -------------------------------------------------------------------------------------------


def median_time(function: Callable[..., object], y: np.ndarray, p: np.ndarray, n: int) -> float:
    """Return the median time of a function over samples of n rows."""
    samples = min(SAMPLES, len(p) // n)
    function(y[:n], p[:n])  # compiles
    times = []
    for first in range(0, samples * n, n):
        rows = y[first : first + n].copy(), p[first : first + n].copy()
        start = time.perf_counter()
        function(*rows)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def by_rows() -> str:
    functions = {"calibration_test": tc.calibration_test, "assess": tc.assess}
    times: dict[tuple[str, str], list[float]] = {}
    for shape in ("uniform", "rare"):
        p = predictions(shape, 5 * SIZES[-1], np.float64)
        y = np.random.default_rng(1).random(len(p)) < p
        for (name, function), n in itertools.product(functions.items(), SIZES):
            times.setdefault((name, shape), []).append(median_time(function, y, p, n))
    head = ["rows", *(f"`{name}`, {shape}" for name, shape in times)]
    lines = [[f"{n:,}", *(f"{1000.0 * column[k]:.1f}" for column in times.values())] for k, n in enumerate(SIZES)]
    falls = [min(b / a for a, b in itertools.pairwise(column)) for column in times.values()]
    lines.append(["smallest ratio to the line above", *(f"{fall:.2f}" for fall in falls)])
    lines.append(["never falls by more than a third", *(verdict(fall >= STEADY) for fall in falls)])
    limits = [min(0.2, column[-1]) if "assess" in name else np.inf for (name, _), column in times.items()]
    million = SIZES.index(1_000_000)
    met = [verdict(column[million] <= most) for column, most in zip(times.values(), limits, strict=True)]
    lines.append(["a million rows", *(m if most < np.inf else "" for m, most in zip(met, limits, strict=True))])
    return table(head, lines)


# --- ratios -----------------------------------------------------------------------------------------------------------


def ratio_goals(n: int) -> list[Goal]:
    from relplot.metrics import binnedECE
    from sklearn.calibration import calibration_curve

    rng = np.random.default_rng(1)
    p, rare, ties = (predictions(shape, n, np.float64) for shape in ("uniform", "rare", "ties"))
    p32, w = p.astype(np.float32), rng.uniform(0.5, 2.0, n)
    y = rng.random(n) < p
    labels = y.astype(np.int64)
    return [
        Goal("`atb`", "`np.sort`", 1.0, lambda: tc.atb(y, p), lambda: np.sort(p)),
        Goal("`atb`, rare", "`np.sort`", 1.0, lambda: tc.atb(y, rare), lambda: np.sort(rare)),
        Goal("`atb`, float32", "`np.sort`", 1.2, lambda: tc.atb(y, p32), lambda: np.sort(p32)),
        Goal("`atb`, 101 distinct predictions", "`np.sort`", 1.2, lambda: tc.atb(y, ties), lambda: np.sort(ties)),
        Goal(
            "`atb` with weights", "`np.argsort`", 1.0 if n == LARGE[-1] else None,
            lambda: tc.atb(y, p, sample_weight=w), lambda: np.argsort(p),
        ),
        Goal("`smcal`", "`np.argsort`", None, lambda: tc.smcal(y, p), lambda: np.argsort(p)),
        Goal(
            "`binned_ece`, 15 bins", "relplot `binnedECE`", 1.0,
            lambda: tc.binned_ece(labels, p, n_bins=15), lambda: binnedECE(p, labels, nbins=15),
        ),
        Goal(
            "`reliability_curve`, 15 bins", "scikit-learn `calibration_curve`", 1.0,
            lambda: tc.reliability_curve(labels, p, strategy="uniform", n_bins=15),
            lambda: calibration_curve(labels, p, n_bins=15),
        ),
    ]  # fmt: skip


def use_memory() -> None:
    """Write to 4 GB of memory: a virtual machine takes long to provide memory that it has not used before."""
    np.ones(1 << 29)


def ratios() -> str:
    lines = []
    use_memory()
    for n in LARGE:
        for goal in ratio_goals(n):
            times = race({"call": goal.call, "reference": goal.yardstick}, 9, 1)
            ours, theirs = (statistics.median(times[name]) for name in ("call", "reference"))
            share = statistics.median(a / b for a, b in zip(times["call"], times["reference"], strict=True))
            shown = [f"{1000.0 * ours:.1f}", goal.reference, f"{1000.0 * theirs:.1f}", f"{share:.2f}"]
            goals = ["", ""] if goal.most is None else [f"{goal.most:.1f}", verdict(share <= goal.most)]
            lines.append([goal.name, f"{n:,}", *shown, *goals])
    return table(["call", "rows", "ms", "reference", "ms", "ratio", "goal", "met"], lines)


# --- commands and segments --------------------------------------------------------------------------------------------


def commands() -> str:
    truthcal = [sys.executable, "-m", "truthcal"]
    with tempfile.TemporaryDirectory() as name:
        rows, report = cli.predictions(Path(name), ROWS), str(Path(name, "r.html"))
        goals = {
            "`truthcal assess`": (["assess", rows], 3.0, 0.9),
            "`truthcal report`": (["report", rows, "-o", report], 10.0, 2.5),
            "`truthcal --help`": (["--help"], np.inf, 0.1),
        }
        lines = []
        for what, (arguments, most_first, most_warm) in goals.items():
            (first, _), (warm, _) = cli.first_and_warm(*truthcal, *arguments)
            goal = f"{most_first:.1f}" if most_first < np.inf else ""
            met = verdict(first <= most_first and warm <= most_warm)
            lines.append([what, f"{first:.2f}", goal, f"{warm:.2f}", f"{most_warm:.1f}", met])
    return table(["command", "first", "goal", "warm", "goal", "met"], lines)


def many_segments() -> str:
    segments.measure(segments.build_table("uniform", 30, 1000))  # compiles
    found = segments.measure(segments.build_table("uniform", 10_000, 1000))
    elapsed = found.tests + found.intervals
    met = verdict(elapsed <= segments.GOAL and found.memory <= segments.MEMORY)
    limits = [f"{segments.GOAL}", f"{found.memory:,.0f}", f"{segments.MEMORY:,}"]
    return table(["predictions", "s", "goal", "MB", "goal", "met"], [["uniform", f"{elapsed:.1f}", *limits, met]])


PARTS = {"by_rows": by_rows, "ratios": ratios, "commands": commands, "segments": many_segments}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="measure one part, and write no page")
    part = parser.parse_args().part
    if part:
        print(PARTS[part]())
        return
    load = f"{os.getloadavg()[0]:.1f}"
    measured = {name: measure() for name, measure in PARTS.items()}
    values = {"machine": machine(), "load": load, "rows": ROWS, "runs": cli.RUNS, **measured}
    PAGE.write_text(TEMPLATE.format(**values), encoding="utf-8")


if __name__ == "__main__":
    main()
