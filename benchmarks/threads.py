"""Measure the gain from a second thread, project it to more cores, and write docs/benchmarks/threads.md.

Part of `make bench`. Needs a machine with at least two idle cores.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from run import machine

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "threads.md"
CORES = (16, 64)
ROUNDS = 7


def calls(n: int) -> dict[str, Callable[[], object]]:
    """Return the measured calls, on n rows with uniform predictions."""
    rng = np.random.default_rng(0)
    p, w = rng.random(n), rng.uniform(0.5, 2.0, n)
    y = rng.random(n) < p
    rare = p[: n // 100] / 1000.0
    hits = rng.random(len(rare)) < rare
    return {
        "`atb`": lambda: tc.atb(y, p),
        "`atb` with weights": lambda: tc.atb(y, p, sample_weight=w),
        "`ece`": lambda: tc.ece(y, p),
        "`ks_ce`": lambda: tc.ks_ce(y, p),
        "`Sketch().update`": lambda: tc.Sketch().update(y, p),
        "`Sketch().update` with weights": lambda: tc.Sketch().update(y, p, w),
        "`atb_approx`": lambda: tc.atb_approx(y, p, tolerance=1.0 / (2 * n)),
        f"`calibration_test` of {len(rare):,} rare rows, redrawn": lambda: tc.calibration_test(
            hits, rare, n_resamples=2000, method="exact", rng=0
        ),
    }


def seconds(call: Callable[[], object], rounds: int) -> dict[int, float]:
    """Return the smallest time of a call with one and with two threads, measured in turn."""
    best = dict.fromkeys((1, 2), np.inf)
    call()  # compile first
    for _ in range(rounds):
        for threads in best:
            os.environ["TRUTHCAL_NUM_THREADS"] = str(threads)
            start = time.perf_counter()
            call()
            best[threads] = min(best[threads], time.perf_counter() - start)
    return best


def line(name: str, best: dict[int, float]) -> str:
    """Return a table row: times, the parallel share by Amdahl's law, and projected gains."""
    share = min(max(2.0 * (1.0 - best[2] / best[1]), 0.0), 1.0)
    gains = [f"{1.0 / (1.0 - share + share / cores):.1f}" for cores in CORES]
    times = [f"{1000.0 * best[threads]:.1f}" for threads in (1, 2)]
    return "| " + " | ".join([name, *times, f"{best[1] / best[2]:.2f}", f"{share:.2f}", *gains]) + " |"


TEMPLATE = """\
# Threads

Written by `benchmarks/threads.py`; do not edit. {machine}.

Milliseconds for {n:,} rows with one and with two threads, smallest of {rounds} rounds, and how many times as fast two
threads are. Amdahl's law, t(k) = t(1) (1 - s + s/k), then gives the parallel share s. The last two columns are
**projections** from this law, not measurements: times as fast as one thread on 16 and 64 cores. They assume that memory
keeps up. Rows are sorted in at most 64 parts, so that sorting gains nothing from more than 64 threads.

| call | 1 thread | 2 threads | gain | parallel share | projected, 16 cores | projected, 64 cores |
|---|---:|---:|---:|---:|---:|---:|
{lines}

Results are identical to the last bit for 1, 2, 3, 8 and 64 threads (`tests/core/test_sample.py`).
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fast smoke run that writes nothing")
    quick = parser.parse_args().quick
    n, rounds = (1_000_000, 1) if quick else (10_000_000, ROUNDS)
    lines = [line(name, seconds(call, rounds)) for name, call in calls(n).items()]
    page = TEMPLATE.format(machine=machine(), n=n, rounds=rounds, lines="\n".join(lines))
    print(page)
    if not quick:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
