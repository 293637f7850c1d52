"""Measure the run time of commands, and write docs/benchmarks/cli.md: part of `make bench`.

Each command runs in a new process: first with an empty cache of compiled code, then again with the code that this run
cached. The reference times are those of a Python process that does nothing, and of one that imports the libraries that
commands use. `python benchmarks/cli.py FILE ARGUMENT...` prints the times of a file of your own, with the arguments
that name its columns, and writes no page.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from run import machine

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "cli.md"
RUNS = 5
TEMPLATE = """# Benchmarks of the command line

Written by `make bench`; do not edit. {machine}.

Seconds until a command ends, and seconds of processor time in parentheses. "First" is one run with an empty cache of
compiled code, as on a new machine; "warm" is the median of {runs} more runs. Each runs in a new process. The files are
CSV with four columns, of which two are used. An empty Python process takes {nothing:.2f} s, and one that imports numpy,
scipy.special, numba and pyarrow {imports:.2f} s.

| command | first | warm | warm / empty Python process |
|---|---:|---:|---:|
{lines}
"""
Times = tuple[float, float]  # elapsed, processor


def run_once(command: list[str], cache: str) -> Times:
    # Let Python cache bytecode, as it does by default.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env=env | {"NUMBA_CACHE_DIR": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used


def first_and_warm(*command: str) -> tuple[Times, Times]:
    with tempfile.TemporaryDirectory() as unused, tempfile.TemporaryDirectory() as cache:
        run_once([sys.executable, "-c", "import truthcal.cli.commands.report, numba"], unused)  # caches bytecode
        first = run_once(list(command), cache)
        times = [run_once(list(command), cache) for _ in range(RUNS)]
    elapsed, used = (statistics.median(column) for column in zip(*times, strict=True))
    return first, (elapsed, used)


def line_of(what: str, first: Times, warm: Times, nothing: float) -> str:
    shown = " | ".join(f"{elapsed:.2f} ({used:.2f})" for elapsed, used in (first, warm))
    return f"| {what} | {shown} | {warm[0] / nothing:.1f} |"


def predictions(folder: Path, n: int) -> str:
    rng = np.random.default_rng(0)
    p = rng.random(n).round(6)
    y = (rng.random(n) < p).astype(int)
    region = rng.choice(["north", "south", "west"], n)
    rows = enumerate(zip(region, p, y, strict=True))
    lines = ["id,region,score,clicked", *(f"{i},{r},{q},{o}" for i, (r, q, o) in rows)]
    path = folder / f"{n}.csv"
    path.write_text("\n".join(lines))
    return str(path)


def commands_for(rows: list[str], what: str, folder: Path) -> dict[str, list[str]]:
    return {
        f"`truthcal assess`, {what}": ["assess", *rows],
        f"`truthcal report`, {what}": ["report", *rows, "-o", str(folder / "r.html")],
    }


def main() -> None:
    python, truthcal = [sys.executable, "-c"], [sys.executable, "-m", "truthcal"]
    nothing = first_and_warm(*python, "pass")[1][0]
    imports = first_and_warm(*python, "import numpy, scipy.special, numba, pyarrow.csv")[1][0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = {"`truthcal --help`": ["--help"]}
        if sys.argv[1:]:
            commands |= commands_for(sys.argv[1:], "your rows", folder)
        else:
            small, large = predictions(folder, 10_000), predictions(folder, 1_000_000)
            commands |= commands_for([small], "10,000 rows", folder) | {
                "`truthcal assess --by region`, 10,000 rows": ["assess", small, "--by", "region"],
                "`truthcal check`, 10,000 rows": ["check", small, "--alpha", "1e-9"],
                "`truthcal assess`, 1,000,000 rows": ["assess", large],
            }
        lines = []
        for what, arguments in commands.items():
            lines.append(line_of(what, *first_and_warm(*truthcal, *arguments), nothing))
            print(lines[-1])
    if not sys.argv[1:]:
        values = {"machine": machine(), "runs": RUNS, "nothing": nothing, "imports": imports}
        PAGE.write_text(TEMPLATE.format(**values, lines="\n".join(lines)))


if __name__ == "__main__":
    main()
