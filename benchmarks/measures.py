"""Measure the measures other than ATB, and write docs/benchmarks/measures.md: part of `make bench`.

Times are ratios to np.argsort of the same predictions, as in run.py; linear programmes are compared with HiGHS.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from run import Call, machine, predictions, race, ratio
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "measures.md"
SHAPES = ("uniform", "rare", "ties")
SLOW = ("distcal", "intcal", "intcal_surrogate")

# Target: the largest acceptable ratio to np.argsort at a million rows.
WANTED = {"smcal": 6, "distcal_bounds": 25, "laplace_kernel_ce": 3, "ks_ce": 3, "kuiper_ce": 3, "unbinned_ece": 3}
WANTED |= {"ece": 3, "decision_loss": 3, "all_measures": 12}


def data(shape: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    p = predictions(shape, n, np.float64)
    return np.random.default_rng(1).random(n) < p, p


def calls(y: np.ndarray, p: np.ndarray) -> dict[str, Call]:
    fast = [name for name in tc.MEASURES if name not in SLOW]
    found: dict[str, Call] = {"argsort": lambda: np.argsort(p)}
    for name, measure in tc.MEASURES.items():
        if name != "intcal":
            found[name] = lambda function=measure.function: function(y, p)
    found["distcal_bounds"] = lambda: tc.distcal_bounds(y, p)
    found["distcal_bracket"] = lambda: tc.distcal_bracket(y, p)
    found["smcal_witness"] = lambda: tc.smcal_witness(y, p)
    found["brier_decomposition"] = lambda: tc.brier_decomposition(y, p)
    found["log_loss_decomposition"] = lambda: tc.log_loss_decomposition(y, p)
    found["all_measures"] = lambda: tc.all_measures(y, p, fast)
    return found


def table(n: int, rounds: int) -> list[str]:
    """Return one table row per function: its ratio to np.argsort for each distribution of predictions."""
    times = {shape: race(calls(*data(shape, n)), rounds, 1) for shape in SHAPES}
    lines = []
    for name in times["uniform"]:
        if name != "argsort":
            cells = [f"{ratio(times[shape], name, 'argsort'):.2f}" for shape in SHAPES]
            lines.append(f"| `{name}` | {' | '.join(cells)} | {WANTED.get(name, '')} |")
    return lines


def smcal_by_highs(y: np.ndarray, p: np.ndarray) -> float:
    """Solve the definition as a linear programme: f at the sorted predictions, absolute values and slopes at most 1."""
    order = np.argsort(p)
    r, c = p[order], (p - y)[order] / len(p)
    n = len(r)
    rows = np.repeat(np.arange(n - 1), 2)
    columns = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).ravel()
    steps = coo_array((np.tile([-1.0, 1.0], n - 1), (rows, columns)), shape=(n - 1, n))
    limits = np.tile(np.diff(r), 2)
    return -float(linprog(-c, A_ub=vstack([steps, -steps]).tocsr(), b_ub=limits, bounds=(-1, 1), method="highs").fun)


def against_highs() -> list[str]:
    y, p = data("uniform", 10_000)
    tc.smcal(y, p)
    start = time.perf_counter()
    exact = smcal_by_highs(y, p)
    slow = time.perf_counter() - start
    fast = statistics.median(race({"smcal": lambda: tc.smcal(y, p)}, 9, 5)["smcal"])
    return [
        f"| HiGHS / `smcal`, 10,000 rows (target: at least 500) | {slow / fast:,.0f} times |",
        f"| difference of the two results (target: 1e-9) | {abs(exact - tc.smcal(y, p)):.1e} |",
    ]


MEMORY = """
import resource, numpy as np, truthcal as tc
rng = np.random.default_rng(0)
n = 10_000_000
p = rng.random(n)
y = rng.random(n) < p
tc.smcal(y[:100], p[:100])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
tc.smcal(y, p)
print((peak() - before) / 1024)
"""


def at_ten_million() -> list[str]:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    y, p = data("uniform", 10_000_000)
    times = race({"argsort": lambda: np.argsort(p), "smcal": lambda: tc.smcal(y, p)}, 3, 1)
    return [
        f"| `smcal` / `np.argsort`, 10,000,000 rows | {ratio(times, 'smcal', 'argsort'):.2f} |",
        f"| extra memory of `smcal`, 10,000,000 rows (limit: 1,024 MB) | {float(done.stdout):,.0f} MB |",
    ]


def distances(rounds: int) -> list[str]:
    lines = []
    for tolerance in (1e-3, 1e-4, 1e-5, 1e-6):
        y, p = data("uniform", 1_000_000)
        call = {"argsort": lambda p=p: np.argsort(p)}
        call["bounds"] = lambda y=y, p=p, tolerance=tolerance: tc.distcal_bounds(y, p, tolerance=tolerance)
        times = race(call, rounds, 1)
        width = tc.distcal_bounds(y, p, tolerance=tolerance).width
        lines.append(f"| {tolerance:g} | {ratio(times, 'bounds', 'argsort'):.1f} | {width:.1e} |")
    return lines


def intervals() -> list[str]:
    lines = []
    for n in (5_000, 100_000):
        y, p = data("uniform", n)
        times = race({"intcal": lambda y=y, p=p: tc.intcal(y, p)}, 3, 1)
        lines.append(f"| `intcal`, {n:,} distinct predictions | {statistics.median(times['intcal']):.2g} s |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rounds, n = parser.parse_args().rounds, parser.parse_args().rows
    lines = table(n, rounds)
    page = TEMPLATE.format(
        machine=machine(),
        rows=f"{n:,}",
        lines="\n".join(lines),
        notes="\n".join([*against_highs(), *at_ten_million(), *intervals()]),
        distances="\n".join(distances(rounds)),
    )
    print(page)
    PAGE.write_text(page)


TEMPLATE = """\
# Benchmarks of the other measures

Written by `make bench`; do not edit. Each number is the time of the whole call on {rows} rows, including input checks
and sorting, divided by the time of `np.argsort` of the same predictions in the same round (median over rounds). The
last column is the target. "ties" has 101 distinct predictions. `all_measures` excludes `distcal`, `intcal` and
`intcal_surrogate`; it sorts once and computes the measures on both cores (if the other core is busy, it takes about
twice as long). [speed.md](speed.md) has the benchmarks of ATB.

{machine}.

| function | uniform | rare | ties | target |
|---|---:|---:|---:|---:|
{lines}

`distcal_bounds` for a million calibrated uniform predictions, the hardest case:

| tolerance | time / `np.argsort` | width of the bounds |
|---:|---:|---:|
{distances}

| quantity | measured |
|---|---:|
{notes}
"""


if __name__ == "__main__":
    main()
