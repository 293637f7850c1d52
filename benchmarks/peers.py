"""Compare truthcal with other packages on the same rows, and write docs/benchmarks/peers.md: `make bench-peers`.

benchmarks/peer_calls.py lists the functions. Each comparison is timed in a process of its own, in which the calls
alternate; the peak memory of each function is measured in another. A call that takes longer than LIMIT seconds or more
than MEMORY bytes ends its process, and the page says so. The run took 26 minutes on two
busy cores, 16 of them processor time.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from peer_calls import COMPARISONS, OURS, PACKAGES, Call, Comparison
from run import machine, predictions

from truthcal.kernels.jit import compile_at_once

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "peers.md"
SIZES = (10_000, 1_000_000, 10_000_000)
LIMIT = 60  # seconds for one call
MEMORY = 8 << 30
FEW = 1_000  # rows of the first call, which imports and compiles
SAME_MEMORY = 1.0  # megabytes; smaller differences are not measured reliably
OVER_TIME, OVER_MEMORY, NOT_RUN = f"over {LIMIT} s", f"over {MEMORY >> 30} GB", "not run"
Rows = tuple[np.ndarray, np.ndarray]


def rows(n: int) -> Rows:
    """Return calibrated outcomes and uniform predictions, in the types that the other packages expect."""
    p = predictions("uniform", n, np.float64)
    return (np.random.default_rng(1).random(n) < p).astype(np.int64), p


# --- in a process of its own ------------------------------------------------------------------------------------------


def limited(call: Call, data: Rows, limit: float = LIMIT) -> tuple[float, object]:
    """Return the seconds and the result of a call; SIGALRM ends the process if it takes too long."""
    signal.setitimer(signal.ITIMER_REAL, limit)
    start = time.perf_counter()
    result = call(*data)
    seconds = time.perf_counter() - start
    signal.setitimer(signal.ITIMER_REAL, 0)
    return seconds, result


def time_calls(calls: dict[str, Call], data: Rows) -> tuple[dict[str, list[float]], dict[str, object]]:
    """Return the times of all calls, round by round, and their results. Rounds after a short first one replace it."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    results = {}
    start = time.perf_counter()
    for done in range(31):
        for name, call in calls.items():
            seconds, results[name] = limited(call, data)
            times[name].append(seconds)
        elapsed = time.perf_counter() - start
        if elapsed > 8 or (done >= 3 and elapsed > 1):
            break
    warm = 1 if done >= 1 else 0  # the first round is a warm-up, if there are others
    return {name: seconds[warm:] for name, seconds in times.items()}, results


def agreement(theirs: object, ours: object) -> float:
    """Return the number of decimal digits in which two results agree: 16 if they are equal."""
    a, b = np.ravel(np.asarray(theirs, np.float64)), np.ravel(np.asarray(ours, np.float64))
    if a.shape != b.shape:
        return 0.0
    difference, size = float(np.max(np.abs(a - b))), float(np.max(np.abs(b)))
    if difference == 0.0:
        return 16.0
    return min(15.0, max(0.0, -math.log10(difference / size))) if size > 0.0 else 0.0


def timing_child(comparison: Comparison, sizes: list[int], with_package: bool) -> Iterator[dict[str, object]]:
    calls = {name: OURS[name] for name in comparison.ours}
    if with_package:
        calls = {comparison.package: comparison.call} | calls
    few = rows(FEW)
    for call in calls.values():
        limited(call, few)
    for n in sizes:
        times, results = time_calls(calls, rows(n))
        theirs = results.get(comparison.package)
        digits = {name: agreement(theirs, results[name]) for name in comparison.ours} if with_package else {}
        yield {"n": n, "times": times, "digits": digits}


def megabytes(name: str) -> float:
    """Read a line of this process's memory statistics: VmRSS is the memory in use, VmHWM its peak."""
    return int(Path("/proc/self/status").read_text().partition(f"{name}:")[2].split()[0]) / 1024


def memory_child(call: Call, sizes: list[int]) -> Iterator[dict[str, object]]:
    """Yield the peak memory beyond that of the process after a call on few rows, and beyond the rows themselves."""
    limited(call, rows(FEW))
    base = megabytes("VmRSS")
    for n in sizes:
        data = rows(n)
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the rows
        limited(call, data, 3 * LIMIT)  # it finished in time before, when no other process was measured
        yield {"n": n, "peak": max(0.0, megabytes("VmHWM") - base - sum(x.nbytes for x in data) / 2**20)}


def child(job: str, index: int, sizes: list[int]) -> None:
    """Print the measurements of one job as JSON, one line for each size."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    if job == "memory":
        lines = memory_child(COMPARISONS[index].call, sizes)
    elif job == "memory-ours":
        lines = memory_child(list(OURS.values())[index], sizes)
    else:
        lines = timing_child(COMPARISONS[index], sizes, with_package=job == "times")
    try:
        with compile_at_once():  # otherwise loops over few rows are interpreted at first, which is for short processes
            for line in lines:
                print(json.dumps(line), flush=True)
    except (MemoryError, RuntimeError) as error:  # torch and polars raise RuntimeError when memory runs out
        print(json.dumps({"failed": OVER_MEMORY if isinstance(error, MemoryError) else repr(error)}), flush=True)


def run_child(job: str, index: int, sizes: list[int]) -> tuple[dict[int, dict], str]:
    """Return the measurements by size, and what ended the process early, if anything did."""
    if not sizes:
        return {}, ""
    command = [sys.executable, __file__, "--child", job, str(index), ",".join(map(str, sizes))]
    # A fixed threshold makes malloc return freed arrays to the system, so that the peak is that of one call.
    own = {"MALLOC_MMAP_THRESHOLD_": "65536"} if job.startswith("memory") else {}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | own)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {line["n"]: line for line in lines if "n" in line}
    if done.returncode == -signal.SIGALRM:
        return found, OVER_TIME
    if done.returncode:
        return found, f"failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}"
    return found, next((line["failed"] for line in lines if "failed" in line), "")


# --- the measurements -------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """A row of the page: one function of a package against one of truthcal, for one number of rows."""

    comparison: Comparison
    ours: str
    n: int
    failed: str = ""
    times: list[float] = field(default_factory=list)
    our_times: list[float] = field(default_factory=list)
    peak: float | None = None
    our_peak: float | None = None
    digits: float | None = None

    @property
    def ratio(self) -> float:
        """Median over rounds of the package's time divided by truthcal's; infinite if the package failed."""
        pairs = zip(self.times, self.our_times, strict=False)
        return math.inf if self.failed else statistics.median(a / b for a, b in pairs)

    @property
    def slower(self) -> bool:
        """Whether the package is faster."""
        return self.ratio < 1.0

    @property
    def larger(self) -> bool:
        """Whether truthcal's peak memory is larger by more than can be due to the measurement."""
        return None not in (self.peak, self.our_peak) and self.our_peak > self.peak + SAME_MEMORY

    @property
    def memory(self) -> str:
        """Both peaks in words."""
        return f"{show_memory(self.peak)} against {show_memory(self.our_peak)}"

    @property
    def disagrees(self) -> bool:
        """Whether results that should agree do not."""
        wanted = self.comparison.digits
        return wanted is not None and self.digits is not None and self.digits < wanted

    @property
    def cells(self) -> str:
        """The row as Markdown."""
        theirs = self.failed or show_seconds(self.times)
        ratio = "" if self.failed else f"**{self.ratio:.2f}**" if self.slower else f"{self.ratio:.2f}"
        digits = "" if self.digits is None else "equal" if self.digits == 16 else f"{math.floor(self.digits)}"
        memory = f"{show_memory(self.peak)} | {show_memory(self.our_peak)}"
        name = f"{self.comparison.package} `{self.comparison.function}` | `{self.ours}` | {self.n:,}"
        return f"| {name} | {theirs} | {show_seconds(self.our_times)} | {ratio} | {memory} | {digits} |"


def show_seconds(times: list[float]) -> str:
    if not times:
        return ""
    seconds = statistics.median(times)
    return f"{seconds * 1e3:,.2f} ms" if seconds < 0.01 else f"{seconds * 1e3:,.0f} ms"


def show_memory(peak: float | None) -> str:
    return "" if peak is None else f"{peak:,.0f}" if peak >= SAME_MEMORY else "<1"


def time_comparison(index: int, sizes: list[int]) -> list[Row]:
    """Time one comparison. Where the package does not finish, truthcal is timed alone."""
    comparison = COMPARISONS[index]
    timed, ended = run_child("times", index, sizes)
    rest = [n for n in sizes if n not in timed]
    alone = run_child("times-ours", index, rest)[0] if rest else {}
    found = []
    for name in comparison.ours:
        for n in sizes:
            row = Row(comparison, name, n)
            if n in timed:
                row.times, row.digits = timed[n]["times"][comparison.package], timed[n]["digits"][name]
            else:
                row.failed = ended if n == rest[0] else NOT_RUN
            row.our_times = (timed | alone).get(n, {"times": {name: []}})["times"][name]
            found.append(row)
    return found


def measure_memory(found: list[Row]) -> None:
    """Add the peak memory of each function to the rows. Processes run two at a time: none is timed."""
    ours, theirs = {}, {}
    with ThreadPoolExecutor(2) as pool:
        for row in found:
            if row.ours not in ours:
                sizes = sorted({other.n for other in found if other.ours == row.ours})
                ours[row.ours] = pool.submit(run_child, "memory-ours", list(OURS).index(row.ours), sizes)
            if row.comparison not in theirs:
                sizes = sorted({other.n for other in found if other.comparison == row.comparison and not other.failed})
                index = COMPARISONS.index(row.comparison)
                theirs[row.comparison] = pool.submit(run_child, "memory", index, sizes)
    for row in found:
        row.peak = theirs[row.comparison].result()[0].get(row.n, {}).get("peak")
        row.our_peak = ours[row.ours].result()[0].get(row.n, {}).get("peak")


# --- the page ---------------------------------------------------------------------------------------------------------


def versions() -> list[str]:
    lines = []
    for package, module in PACKAGES.items():
        installed = importlib.util.find_spec(module) is not None
        lines.append(f"| {package} | {importlib.metadata.version(package) if installed else 'not installed'} |")
    return lines


def installed() -> str:
    """Say whether all packages could be measured."""
    missing = [package for package, module in PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        return f"\nNot measured, because they are not installed: {', '.join(missing)}."
    return f"\nAll of them install into one environment with Python {platform.python_version()}."


def table(found: list[Row]) -> str:
    lines = []
    for section in dict.fromkeys(row.comparison.section for row in found):
        lines += [f"## {section}", "", HEADER]
        lines += [row.cells for row in found if row.comparison.section == section]
        lines.append("")
    return "\n".join(lines).rstrip()


def by_pair(found: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    pairs: dict[tuple[str, str, str], list[Row]] = {}
    for row in found:
        pairs.setdefault((row.comparison.package, row.comparison.function, row.ours), []).append(row)
    return pairs


def wins(found: list[Row]) -> list[str]:
    """Name every row in which the package is faster or uses less memory."""
    lines = []
    for (package, function, ours), pair in by_pair([row for row in found if row.slower or row.larger]).items():
        faster = ", ".join(f"{row.n:,} rows ({1 / row.ratio:.1f} times)" for row in pair if row.slower)
        less = ", ".join(f"{row.n:,} rows ({row.memory} MB)" for row in pair if row.larger)
        parts = [f"faster: {faster}"] * bool(faster) + [f"less memory: {less}"] * bool(less)
        reason = pair[0].comparison.reason
        lines.append(
            f"- **{package} `{function}`** against `{ours}`: {'; '.join(parts)}." + f" {reason}" * bool(reason)
        )
    return lines or ["None."]


def differences(found: list[Row]) -> list[str]:
    """Explain why results differ, once for each function."""
    lines = {}
    for row in found:
        compared = row.comparison
        if compared.difference:
            lines[compared.package, compared.function] = (
                f"- {compared.package} `{compared.function}`: {compared.difference}"
            )
    return list(lines.values())


def failures(found: list[Row]) -> list[str]:
    pairs = by_pair([row for row in found if row.failed and row.failed != NOT_RUN])
    return [f"- {package} `{function}`, {r[0].n:,} rows: {r[0].failed}." for (package, function, _), r in pairs.items()]


def page(found: list[Row]) -> str:
    timed = [row for row in found if not row.failed]
    weighed = [row for row in found if row.peak is not None]
    return TEMPLATE.format(
        machine=machine(),
        versions="\n".join(versions()),
        installed=installed(),
        limit=LIMIT,
        memory=MEMORY >> 30,
        few=f"{FEW:,}",
        tables=table(found),
        compared=len(timed),
        slower=sum(row.slower for row in timed),
        weighed=len(weighed),
        larger=sum(row.larger for row in weighed),
        wins="\n".join(wins(found)),
        failures="\n".join(dict.fromkeys(failures(found))) or "None.",
        differences="\n".join(differences(found)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 rows only, and write nothing")
    parser.add_argument("--only", default="", help="only functions whose package or name contains this; write nothing")
    parser.add_argument("--child", nargs=3, metavar=("JOB", "INDEX", "SIZES"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        job, index, sizes = arguments.child
        child(job, int(index), [int(n) for n in sizes.split(",")])
        return
    found: list[Row] = []
    for index, comparison in enumerate(COMPARISONS):
        wanted = arguments.only.lower() in f"{comparison.package} {comparison.function}".lower()
        if wanted and importlib.util.find_spec(PACKAGES[comparison.package]) is not None:
            found += time_comparison(index, list(SIZES[:1] if arguments.quick else SIZES))
            print(*(row.cells for row in found if row.comparison == comparison), sep="\n", flush=True)
    measure_memory(found)
    print("", table(found), "", *wins(found), sep="\n")
    if not (arguments.quick or arguments.only):
        PAGE.write_text(page(found))
    disagreeing = [f"{row.cells} expected {row.comparison.digits} digits" for row in found if row.disagrees]
    if disagreeing:
        sys.exit("\n".join(["Results that should agree differ:", *disagreeing]))


HEADER = """\
| package | truthcal | rows | package, time | truthcal, time | ratio | package, MB | truthcal, MB | digits |
|---|---|---:|---:|---:|---:|---:|---:|---:|"""

TEMPLATE = """\
# Benchmarks of other packages

Written by `make bench-peers`; do not edit. Each row compares a function of another package with the function of
truthcal that computes the same quantity, or the nearest one, on the same rows. Predictions are uniform float64,
outcomes are calibrated int64. The command installs the packages into an environment of their own, `.venv-peers`.

- **time**: the median over rounds, after a warm-up, with compiled kernels. The calls alternate in one process, and
  "ratio" is the median of the package's time divided by truthcal's: above 1 truthcal is faster; **bold** where the
  package is.
- **MB**: peak memory of the process during one call, beyond the rows themselves and beyond that of a call on {few}
  rows. Each function is measured in a process of its own.
- **digits**: the decimal digits in which the two results agree. [Differences](#differences-between-the-results) are
  explained below.
- A call may take {limit} s and {memory} GB. Larger inputs are then not run.

{machine}.

| package | version |
|---|---|
{versions}
{installed}

{tables}

## Where a package is faster or uses less memory

Of {compared} rows in which the package finished, truthcal is slower in {slower}. Of {weighed} rows with measured
memory, it uses more (by at least 1 MB) in {larger}. All of them:

{wins}

## Calls that did not finish

{failures}

## Differences between the results

Where nothing is said, the results differ by rounding only.

{differences}
"""


if __name__ == "__main__":
    main()
