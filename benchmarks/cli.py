"""Measure the run time of commands, and write docs/benchmarks/cli.md: part of `make bench`.

Each command runs in a new process, once before it is timed so that compiled code is cached. The reference times are
those of a Python process that does nothing, and of one that imports the libraries that every command needs.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from run import machine

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "cli.md"
RUNS = 7
TEMPLATE = """# Benchmarks of the command line

Written by `make bench`; do not edit. {machine}.

Each time is the median of {runs} runs, each in a new process, with compiled code cached on disk. The files are CSV
with four columns, of which two are used.

| command | seconds | / empty Python process | / Python process that imports numpy, scipy.special, numba, pyarrow |
|---|---:|---:|---:|
{lines}
"""


def seconds(*command: str) -> float:
    # Let Python cache bytecode, as it does by default.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, capture_output=True, check=True, env=env)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True, env=env)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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


def main() -> None:
    python, truthcal = [sys.executable, "-c"], [sys.executable, "-m", "truthcal"]
    nothing = seconds(*python, "pass")
    imports = seconds(*python, "import numpy, scipy.special, numba, pyarrow.csv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = predictions(folder, 10_000), predictions(folder, 1_000_000)
        commands = {
            "`truthcal --help`": ["--help"],
            "`truthcal assess`, 10,000 rows": ["assess", small],
            "`truthcal assess --by region`, 10,000 rows": ["assess", small, "--by", "region"],
            "`truthcal assess --report`, 10,000 rows": ["assess", small, "--report", str(folder / "r.html")],
            "`truthcal check`, 10,000 rows": ["check", small, "--alpha", "1e-9"],
            "`truthcal assess`, 1,000,000 rows": ["assess", large],
        }
        lines = []
        for what, arguments in commands.items():
            took = seconds(*truthcal, *arguments)
            lines.append(f"| {what} | {took:.2f} | {took / nothing:.1f} | {took / imports:.2f} |")
            print(lines[-1])
    PAGE.write_text(TEMPLATE.format(machine=machine(), runs=RUNS, lines="\n".join(lines)))


if __name__ == "__main__":
    main()
