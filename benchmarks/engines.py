"""Compare engines and files with reading the same columns, and write that part of docs/benchmarks/speed.md.

Times are relative to reading two columns of the same Parquet files with pyarrow, immediately before, in the same
process. Memory is the peak of a separate process. The files are created once in the system's temporary directory and
reused.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from run import PAGE, machine, with_engines

import truthcal as tc

FOLDER = Path(tempfile.gettempdir()) / "truthcal-benchmark"
ROWS_A_FILE, SEGMENTS = 5_000_000, 100
COLUMNS = {"y_true": "y", "y_proba": "p"}


def files(n: int) -> list[Path]:
    """Return files with n rows in total: a prediction, an outcome, one of a hundred segments, and an unused column."""
    FOLDER.mkdir(exist_ok=True)
    return [made(FOLDER / f"part-{k:03d}.parquet", k) for k in range(n // ROWS_A_FILE)]


def made(path: Path, seed: int) -> Path:
    if not path.exists():
        rng = np.random.default_rng(seed)
        p = rng.random(ROWS_A_FILE)
        names = np.array([f"segment {i:02d}" for i in range(SEGMENTS)], dtype=object)
        columns = {
            "p": p,
            "y": rng.random(ROWS_A_FILE) < p,
            "segment": names[rng.integers(0, SEGMENTS, ROWS_A_FILE)],
            "other": rng.random(ROWS_A_FILE),
        }
        scratch = path.with_suffix(".part")
        pq.write_table(pa.table(columns), scratch)
        os.replace(scratch, path)
    return path


def read(paths: list[Path], *more: str) -> None:
    """Read the columns: the reference time."""
    for path in paths:
        pq.read_table(path, columns=["p", "y", *more])


# --- measured functions: each takes the files, and returns a sketch or a number -------------------------------------


def scan(paths: list[Path]) -> object:
    return tc.scan(paths, **COLUMNS)


def scan_segments(paths: list[Path]) -> object:
    return tc.scan(paths, **COLUMNS, by="segment")


def duckdb(paths: list[Path], by: str | None = None) -> object:
    import duckdb

    return tc.sketch_frame(duckdb.connect().from_parquet([str(path) for path in paths]), **COLUMNS, by=by)


def duckdb_segments(paths: list[Path]) -> object:
    return duckdb(paths, "segment")


def duckdb_exact(paths: list[Path]) -> object:
    import duckdb

    return tc.atb_frame(duckdb.connect().from_parquet([str(path) for path in paths]), **COLUMNS)


def polars(paths: list[Path], by: str | None = None) -> object:
    import polars

    return tc.sketch_frame(polars.scan_parquet(paths), **COLUMNS, by=by)


def polars_segments(paths: list[Path]) -> object:
    return polars(paths, "segment")


def pandas(paths: list[Path]) -> object:
    frame = pq.read_table(paths, columns=["p", "y"]).to_pandas()
    return tc.sketch_frame(frame, **COLUMNS)


def dask(paths: list[Path]) -> object:
    import dask.dataframe

    return tc.sketch_frame(dask.dataframe.read_parquet(paths, columns=["p", "y"]), **COLUMNS)


_SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
}


def spark(paths: list[Path]) -> object:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in _SPARK.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    return tc.sketch_frame(session.read.parquet(*map(str, paths)), **COLUMNS)


MEASURED: list[tuple[str, Callable[[list[Path]], object], int]] = [
    ("`scan`", scan, 100_000_000),
    ("`scan`, 100 segments", scan_segments, 100_000_000),
    ("`sketch_frame`, DuckDB", duckdb, 100_000_000),
    ("`sketch_frame`, Polars lazy", polars, 100_000_000),
    ("`scan`", scan, 10_000_000),
    ("`scan`, 100 segments", scan_segments, 10_000_000),
    ("`sketch_frame`, DuckDB", duckdb, 10_000_000),
    ("`sketch_frame`, DuckDB, 100 segments", duckdb_segments, 10_000_000),
    ("`sketch_frame`, Polars lazy", polars, 10_000_000),
    ("`sketch_frame`, Polars lazy, 100 segments", polars_segments, 10_000_000),
    ("`sketch_frame`, pandas, reading included", pandas, 10_000_000),
    ("`sketch_frame`, Dask", dask, 10_000_000),
    ("`sketch_frame`, Spark local[2], already started", spark, 10_000_000),
    ("`atb_frame`, DuckDB (exact)", duckdb_exact, 10_000_000),
]


def times(call: Callable[[list[Path]], object], paths: list[Path], rounds: int) -> list[float]:
    """Return ratios to the reference time, after a warm-up on one file that compiles code and starts servers."""
    call(paths[:1])
    read(paths[:1])
    ratios = []
    for _ in range(rounds):
        start = time.perf_counter()
        read(paths)
        middle = time.perf_counter()
        call(paths)
        ratios.append((time.perf_counter() - middle) / (middle - start))
    return ratios


def child(index: int, rounds: int) -> None:
    """Print the ratio if there are rounds, otherwise the peak memory of one call; runs in a separate process."""
    warnings.simplefilter("ignore")
    _, call, n = MEASURED[index]
    paths = files(n)
    if rounds:
        print(statistics.median(times(call, paths, rounds)))
        return
    call(paths[:1])
    result = call(paths)
    rows = result.n if not isinstance(result, float) else n
    assert int(np.sum(rows)) == n, rows
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)


def run_child(index: int, rounds: int) -> float:
    command = [sys.executable, __file__, "--child", str(index), "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", type=int)
    parser.add_argument("--quick", action="store_true", help="1e7 rows only, and write nothing")
    arguments = parser.parse_args()
    if arguments.child is not None:
        child(arguments.child, arguments.rounds)
        return
    files(10_000_000 if arguments.quick else 100_000_000)
    lines = []
    for index, (name, _, n) in enumerate(MEASURED):
        if arguments.quick and n > 10_000_000:
            continue
        ratio, memory = run_child(index, arguments.rounds), run_child(index, 0)
        lines.append(f"| {name} | {n:,} | {ratio:.1f} | {memory:,.0f} |")
        print(lines[-1], flush=True)
    if not arguments.quick:
        PAGE.write_text(with_engines(PAGE.read_text(), TEMPLATE.format(machine=machine(), lines="\n".join(lines))))


TEMPLATE = """\
Written by `benchmarks/engines.py`. Times are relative to reading the two columns of the same Parquet files with
`pyarrow.parquet.read_table`, file by file, in the same process (medians over rounds). Memory is the peak of a
separate process in megabytes, of which Python, numba and pyarrow use about 200; Spark's Java process is not included.
Predictions are uniform float64, outcomes are booleans, and sketches have 4096 buckets.

{machine}.

| function | rows | time / reading | peak memory, MB |
|---|---:|---:|---:|
{lines}
"""


if __name__ == "__main__":
    main()
