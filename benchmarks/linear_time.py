"""Measure how the time of linear-time functions grows with the rows, and write docs/benchmarks/linear_time.md.

Part of `make bench`. Times are the smallest of all rounds, because other processes only ever add to them. On a busy
machine only processor time is reliable: a short call is often undisturbed, a long one never is.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from run import Call, machine

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "linear_time.md"
SIZES = (1_000_000, 4_000_000)
# Largest acceptable ratio of the time for four times as many rows.
TARGET = 5.0
Rows = tuple[np.ndarray, np.ndarray]


def calibrated(p: np.ndarray) -> Rows:
    return np.random.default_rng(1).random(len(p)) < p, p


def balanced(p: np.ndarray) -> Rows:
    """Return outcomes that keep the cumulative bias close to 0 at every threshold: hardest for ATB_l1."""
    order = np.argsort(p)
    y = np.empty(len(p), np.bool_)
    y[order] = np.diff(np.floor(np.cumsum(p[order]) + 0.5), prepend=0.0)
    return y, p


def nested_clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.3 + 0.6 * 2.0 ** -rng.integers(0, 40, n) * rng.uniform(0.5, 0.75, n)


def half_in_a_cluster(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.5, 0.5 + 1e-4 * rng.random(n), rng.random(n))


def many_clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    width = np.where(rng.random(n) < 0.9, 0.01, 1.0)
    return (rng.integers(0, 5000, n) + 0.5 + (rng.random(n) - 0.5) * width) / 5000


INPUTS: dict[str, Callable[[np.random.Generator, int], Rows]] = {
    "uniform": lambda rng, n: calibrated(rng.random(n)),
    "cluster of width 1e-4": lambda rng, n: calibrated(0.3 + 1e-4 * rng.random(n)),
    "cluster of width 1e-9": lambda rng, n: calibrated(0.3 + 1e-9 * rng.random(n)),
    "tied, 101 values": lambda rng, n: calibrated(np.round(rng.random(n), 2)),
    "all equal": lambda rng, n: calibrated(np.full(n, 0.3)),
    "clusters within clusters": lambda rng, n: calibrated(nested_clusters(rng, n)),
    "half uniform, half in a cluster": lambda rng, n: calibrated(half_in_a_cluster(rng, n)),
    "uniform, balanced": lambda rng, n: balanced(rng.random(n)),
    "5000 clusters, balanced": lambda rng, n: balanced(many_clusters(rng, n)),
}


def calls(y: np.ndarray, p: np.ndarray) -> dict[str, Call]:
    tolerance = 1 / (2 * len(p))
    return {
        "np.sort": lambda: np.sort(p),
        "atb_approx": lambda: tc.atb_approx(y, p, tolerance=tolerance),
        "linear_time_test": lambda: tc.linear_time_test(y, p),
        "atb_l1_approx": lambda: tc.atb_l1_approx(y, p, tolerance=tolerance),
    }


def elapsed(call: Call) -> np.ndarray:
    """Return the elapsed time of a call and the processor time of all its threads, in milliseconds."""
    start = np.array([time.perf_counter(), time.process_time()])
    call()
    return 1e3 * (np.array([time.perf_counter(), time.process_time()]) - start)


def measure(name: str, rounds: int) -> list[str]:
    """Return the rows of the table for one input, after one round that compiles."""
    both = [calls(*INPUTS[name](np.random.default_rng(0), n)) for n in SIZES]
    best = {function: np.full((2, 2), np.inf) for function in both[0]}
    for done in range(rounds + 1):
        for function, times in best.items():
            found = np.array([elapsed(own[function]) for own in both])
            if done:
                np.minimum(times, found, out=times)
    lines = []
    for function, ((few_elapsed, few), (many_elapsed, many)) in best.items():
        cells = f"{few:.1f} | {many:.1f} | **{many / few:.2f}** | {many_elapsed / few_elapsed:.2f}"
        lines.append(f"| {name} | `{function}` | {cells} | {many / best['np.sort'][1, 1]:.2f} |")
    return lines


def summarize(lines: list[str]) -> dict[str, float]:
    """Return the number of ratios, how many are below the target, and the largest, without those of np.sort."""
    columns = [line.replace("*", "").split("|") for line in lines if "`np.sort`" not in line]
    ratios, elapsed_ratios = np.array([[float(x) for x in column[5:7]] for column in columns]).T
    below = int((ratios < TARGET).sum())
    return dict(count=len(ratios), below=below, largest=ratios.max(), largest_elapsed=elapsed_ratios.max())


TEMPLATE = """\
# Benchmarks of linear time

Written by `make bench`; do not edit. Processor time of all threads for {few:,} and {many:,} rows, in milliseconds,
checks included, and their ratio. It is 4 for linear time, and the target is below {target:g} for these inputs. Next to
it is the ratio of elapsed times, which also depends on other processes: two threads share the work, and if another
process uses their cores, long calls suffer more often than short ones. All times are the smallest of {rounds} rounds.
The last column compares with `np.sort` of the predictions alone, on one thread.

Bounds are at most 1/(2n) apart, the tolerance of the linear-time test; they are certified for each input, and rows are
never sorted ([theory](../theory/foundations.md#linear-time-in-the-worst-case)). Outcomes are calibrated, or "balanced":
they keep the cumulative bias close to 0 at every threshold, which is hardest for ATB_l1. The ratio of
`linear_time_test` is small because it also looks for dependence among 131,072 rows at most, a cost that does not grow.

Of {count} ratios, without those of `np.sort`, {below} are below {target:g}; the largest is {largest:.2f} (elapsed:
{largest_elapsed:.2f}).

{machine}.

| predictions | function | {few:,} rows | {many:,} rows | ratio | elapsed | / `np.sort` |
|---|---|---:|---:|---:|---:|---:|
{lines}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", choices=INPUTS, help="one input, and write nothing")
    arguments = parser.parse_args()
    lines = []
    for name in [arguments.only] if arguments.only else INPUTS:
        found = measure(name, arguments.rounds)
        print(*found, sep="\n", flush=True)
        lines += found
    if not arguments.only:
        values = dict(few=SIZES[0], many=SIZES[1], target=TARGET, rounds=arguments.rounds, machine=machine())
        PAGE.write_text(TEMPLATE.format(lines="\n".join(lines), **values, **summarize(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
