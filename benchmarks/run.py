"""Compare truthcal with reference calls in the same run, and write docs/benchmarks/speed.md: part of `make bench`.

Machines are noisy, so most results are ratios, not seconds: in each round the reference and the measured call run one
after the other, and the table shows the median of their ratio over rounds.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "speed.md"
SIZES = (10_000, 1_000_000, 10_000_000)
ENGINES = "## Engines and files\n\n"
Call = Callable[[], object]


def predictions(shape: str, n: int, dtype: type) -> np.ndarray:
    rng = np.random.default_rng(0)
    return {
        "uniform": lambda: rng.random(n),
        "rare": lambda: rng.beta(1, 99, n),
        "ties": lambda: np.round(rng.random(n), 2),
    }[shape]().astype(dtype)


def obvious_atb(y: np.ndarray, p: np.ndarray) -> float:
    """Compute ATB in the straightforward way in numpy: argsort, cumulative sum, gaps.

    Not `gaps @ ...`: BLAS would leave a thread spinning on the other core and slow down the next measurement.
    """
    order = np.argsort(p)
    p, y = p[order].astype(np.float64), y[order]
    c = np.concatenate([[0.0], np.cumsum(p - y)])
    gaps = np.diff(p, prepend=0.0, append=1.0)
    return float(np.sum(gaps * (c**2 + (c[-1] - c) ** 2))) / len(p) ** 2


def seconds(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def race(calls: dict[str, Call], rounds: int, repeats: int) -> dict[str, list[float]]:
    """Return the times of all calls, round by round, after one warm-up round that compiles."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, repeats))
    return times


def ratio(times: dict[str, list[float]], name: str, yardstick: str) -> float:
    return statistics.median(a / b for a, b in zip(times[name], times[yardstick], strict=True))


def extra_bytes_a_row(call: Call, n: int) -> float:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / n


def measure(shape: str, n: int, dtype: type, rounds: int) -> tuple[str, dict[str, list[float]]]:
    """Return one row of the table, and its times."""
    p = predictions(shape, n, dtype)
    y = np.random.default_rng(1).random(n) < p
    sketch = tc.Sketch()
    calls: dict[str, Call] = {
        "sum": p.sum,
        "sort": lambda: np.sort(p),
        "argsort": lambda: np.argsort(p),
        "obvious": lambda: obvious_atb(y, p),
        "atb": lambda: tc.atb(y, p),
        "summary": lambda: tc.atb_summary(y, p),
        "update": lambda: sketch.update(y, p),
        "approx": lambda: tc.atb_approx(y, p, tolerance=1 / (2 * n)),
    }
    times = race(calls, rounds, 20 if n <= 10_000 else 1)
    cells = [
        f"{n:,}",
        shape,
        np.dtype(dtype).name,
        f"**{ratio(times, 'atb', 'sort'):.2f}**",
        f"{ratio(times, 'obvious', 'atb'):.1f}",
        f"{ratio(times, 'atb', 'argsort'):.2f}",
        f"{ratio(times, 'summary', 'sort'):.2f}",
        f"**{ratio(times, 'update', 'sum'):.1f}**",
        f"{ratio(times, 'approx', 'sort'):.2f}",
        f"{extra_bytes_a_row(lambda: tc.atb(y, p), n):.1f}",
        f"{extra_bytes_a_row(lambda: sketch.update(y, p), n):.2f}",
    ]
    return "| " + " | ".join(cells) + " |", times


def small_inputs() -> list[str]:
    """Measure calls on few rows, in microseconds: the cost of the call dominates."""
    lines = []
    for n in (10, 1_000):
        p = predictions("uniform", n, np.float64)
        y = (np.random.default_rng(1).random(n) < p).astype(np.int64)
        tc.atb(y, p)
        best = min(seconds(lambda y=y, p=p: tc.atb(y, p), 200) for _ in range(20))
        lines.append(f"| `atb` on {n:,} rows, checks included | {best * 1e6:.0f} microseconds |")
    return lines


def startup() -> list[str]:
    """Measure imports and a first call in new processes, with files in the page cache."""

    def fresh(code: str) -> float:
        return min(seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 1) for _ in range(7))

    empty = fresh("pass")
    numpy, light = fresh("import numpy") - empty, fresh("import truthcal") - empty
    first = fresh("import truthcal; truthcal.atb([0, 1], [0.2, 0.7])") - empty
    return [
        f"| `import truthcal`, warm | {light:.2f} s |",
        f"| `import numpy`, warm | {numpy:.2f} s |",
        f"| import and a first `atb`, compiled code cached | {first:.2f} s |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="only the first two sizes, and write nothing")
    arguments = parser.parse_args()
    lines, growth = [], {}
    for n in SIZES[:2] if arguments.quick else SIZES:
        for shape in ("uniform", "rare", "ties"):
            for dtype in (np.float64, np.float32):
                line, times = measure(shape, n, dtype, arguments.rounds)
                print(line, flush=True)
                lines.append(line)
                growth[shape, dtype, n] = statistics.median(times["atb"])
    notes = [*small_inputs(), *startup()]
    if not arguments.quick:
        grew = growth["uniform", np.float64, SIZES[2]] / growth["uniform", np.float64, SIZES[1]]
        notes.append(f"| `atb`, 1e7 rows against 1e6 (uniform, float64) | {grew:.1f} times |")
        engines = PAGE.read_text().partition(ENGINES)[2]  # keep the part that engines.py writes
        PAGE.write_text(with_engines(page(lines, notes), engines))
    print(*notes, sep="\n")


def with_engines(text: str, engines: str) -> str:
    """Replace the last part of the page, which benchmarks/engines.py writes."""
    return f"{text.partition(ENGINES)[0].rstrip()}\n\n{ENGINES}{engines}"


def machine() -> str:
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}"
    return f"{versions}, {len(os.sched_getaffinity(0))} cores, {platform.machine()}"


def page(lines: list[str], notes: list[str]) -> str:
    return TEMPLATE.format(lines="\n".join(lines), notes="\n".join(notes), machine=machine())


TEMPLATE = """\
# Benchmarks of ATB, files and engines

Written by `make bench`; do not edit. Each ratio compares the measured call with a reference call in the same round,
and is the median over rounds. A ratio below 1 means faster than the reference. Outcomes are booleans. `atb_approx`
uses the tolerance 1/(2n) that the linear-time calibration test needs. `Sketch` has 4096 buckets. "numpy ATB" is the
straightforward version in numpy: argsort, cumulative sum, gaps.

{machine}.

| rows | predictions | type | `atb` / `np.sort` | numpy ATB / `atb` | `atb` / `np.argsort` | `atb_summary` / `np.sort` \
| `Sketch.update` / `p.sum()` | `atb_approx` / `np.sort` | `atb` extra bytes per row | `update` extra bytes per row |
|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|
{lines}

| quantity | measured |
|---|---:|
{notes}

For 10,000 or a million rows, `p.sum()` runs from the processor's cache and the fixed cost of a sketch's 4096 buckets
is visible, so the `Sketch.update` ratio is meaningful only at the largest size. With only a hundred distinct
predictions, in the rows named "ties", `np.sort` is two to three times as fast as usual; from 2^17 rows on `atb` then
counts rows instead of sorting them.
"""


if __name__ == "__main__":
    main()
