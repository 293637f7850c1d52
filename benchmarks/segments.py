"""Measure the assessment of many segments, and write docs/benchmarks/segments.md: part of `make bench`.

A table of segments is assessed, and all p-values, verdicts and intervals are read. The peak memory is that of the
process, above what it had with the table alone.
"""

import argparse
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from run import machine

import truthcal as tc

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "segments.md"
SHAPES = {"uniform": lambda rng, n: rng.random(n), "Beta(1, 49)": lambda rng, n: rng.beta(1, 49, n)}
# The goal for 10,000 segments of 1,000 rows with uniform predictions, in seconds and MB.
GOAL, MEMORY = 20, 1000
TEMPLATE = """\
# Benchmarks of many segments

Written by `make bench`; do not edit. {machine}; load {load}.

`assess_segments` of {rows:,} rows per segment (p-values and verdicts), then `table()` (intervals). Of 20
segments, one has predictions that are too high by a quarter, one has predictions that are too extreme, and the others
are calibrated. With Beta(1, 49) predictions, the sum of p(1 - p) of a segment is about 19, so that its outcomes are
redrawn. Memory is the peak above that of the process with the table. The goal for 10,000 segments with uniform
predictions: below {goal} s, and below {memory:,} MB. Processor time is that of both cores together; elapsed time also
depends on other processes.

| predictions | segments | p-values, s | intervals, s | together, s | processor, s | memory, MB | table, MB |
|---|---:|---:|---:|---:|---:|---:|---:|
{lines}
"""


class Measured(NamedTuple):
    """Seconds of both steps, processor time, and peak memory in MB."""

    tests: float
    intervals: float
    processor: float
    memory: float


def build_table(shape: str, segments: int, rows: int) -> tc.SketchTable:
    """Build a table in parts of 1,000 segments, which need less memory than all rows."""
    rng, parts = np.random.default_rng(0), []
    for first in range(0, segments, 1000):
        segment = np.repeat(np.arange(first, min(first + 1000, segments)), rows)
        p = SHAPES[shape](rng, len(segment))
        truth = np.select([segment % 20 == 0, segment % 20 == 10], [0.8 * p, 0.15 + 0.7 * p], p)
        frame = pd.DataFrame({"segment": segment, "p": p, "y": rng.random(len(p)) < truth})
        parts.append(tc.sketch_frame(frame, y_true="y", y_proba="p", by="segment"))
    while len(parts) > 1:  # pairs, so that each cell is merged only a few times
        parts = [sum(parts[k : k + 2]) for k in range(0, len(parts), 2)]
    return parts[0]


def memory() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class PeakMemory:
    """Largest memory while this context is open, above that at its start."""

    def __enter__(self) -> "PeakMemory":
        self.start, self.peak, self._open = memory(), memory(), True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while self._open:
            self.peak = max(self.peak, memory())
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._thread.join()

    @property
    def above(self) -> float:
        """Peak memory above that at the start, in MB."""
        return self.peak - self.start


def measure(table: tc.SketchTable) -> Measured:
    with PeakMemory() as peak:
        start, processor = time.perf_counter(), time.process_time()
        result = tc.assess_segments(table)
        middle = time.perf_counter()
        result.table()
        end = time.perf_counter()
    return Measured(middle - start, end - middle, time.process_time() - processor, peak.above)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--only", choices=SHAPES, help="one kind of predictions, and write nothing")
    arguments = parser.parse_args()
    load, lines = f"{os.getloadavg()[0]:.1f}", []
    for shape in [arguments.only] if arguments.only else SHAPES:
        measure(build_table(shape, 30, arguments.rows))  # compiles
        table = build_table(shape, arguments.segments, arguments.rows)
        found = measure(table)
        times = f"{found.tests:.1f} | {found.intervals:.1f} | {found.tests + found.intervals:.1f}"
        sizes = f"{found.processor:.1f} | {found.memory:,.0f} | {table._columns.nbytes / 1e6:,.0f}"
        lines.append(f"| {shape} | {len(table):,} | {times} | {sizes} |")
        print(lines[-1], flush=True)
    if not arguments.only:
        values = dict(machine=machine(), load=load, rows=arguments.rows, goal=GOAL, memory=MEMORY)
        PAGE.write_text(TEMPLATE.format(lines="\n".join(lines), **values), encoding="utf-8")


if __name__ == "__main__":
    main()
