"""Compare engines and files with reading the same columns, and write that part of docs/benchmarks/speed.md.

Times are relative to the same engine reading the same columns (and adding them up), and to reading them with pyarrow,
immediately before, in the same process. Memory is the peak of a separate process. The files are created once in the
system's temporary directory and reused.
"""

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from run import PAGE, machine, with_engines

import truthcal as tc
from truthcal.io.assemble import build_sketch
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.engines import aggregate_in_engine, lazy_frame, select_columns, with_code_column

FOLDER = Path(tempfile.gettempdir()) / "truthcal-benchmark"
ROWS_A_FILE, SEGMENTS = 5_000_000, 100
COLUMNS = {"y_true": "y", "y_proba": "p"}
BUCKETS, WARM_UPS = 4096, 3


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


# --- engines: how each opens the files, and how it reads the columns and adds them up --------------------------------

Read = Callable[[Any, str | None], object]


def read_pyarrow(paths: list[Path], by: str | None) -> None:
    for path in paths:
        pq.read_table(path, columns=["p", "y", *([by] if by else [])])


def open_duckdb(paths: list[Path]) -> Any:
    import duckdb

    return duckdb.connect().from_parquet([str(path) for path in paths])


def read_duckdb(frame: Any, by: str | None) -> None:
    frame.aggregate("sum(p), sum(y::INTEGER)" + (f", sum(strlen({by}))" if by else "")).fetchall()


def open_polars(paths: list[Path]) -> Any:
    import polars

    return polars.scan_parquet(paths)


def read_polars(frame: Any, by: str | None) -> None:
    import polars

    sums = [polars.col("p").sum(), polars.col("y").sum()]
    frame.select(*sums, *([polars.col(by).str.len_bytes().sum()] if by else [])).collect()


def open_dask(paths: list[Path]) -> Any:
    import dask.dataframe

    return dask.dataframe.read_parquet(paths, columns=["p", "y"])


_SPARK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
}


def open_spark(paths: list[Path]) -> Any:
    """Return a new data frame: Spark would reuse the shuffled sums of one that it has executed before."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in _SPARK.items():
        builder = builder.config(name, value)
    return builder.getOrCreate().read.parquet(*map(str, paths))


def read_spark(frame: Any, by: str | None) -> None:
    sums = ["sum(p)", "sum(cast(y AS INT))", *([f"sum(octet_length({by}))"] if by else [])]
    frame.selectExpr(*sums).collect()


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine: how it opens the files, and the reference, which reads the columns and adds them up."""

    open: Callable[[list[Path]], Any]
    read: Read


ARROW = Engine(list, read_pyarrow)
DUCKDB, POLARS = Engine(open_duckdb, read_duckdb), Engine(open_polars, read_polars)
DASK = Engine(open_dask, lambda frame, by: frame.sum().compute())
SPARK = Engine(open_spark, read_spark)


# --- measured functions: each takes what an engine has opened, and the grouping column -------------------------------


def scan(paths: list[Path], by: str | None) -> object:
    return tc.scan(paths, **COLUMNS, by=by)


def pandas(paths: list[Path], by: str | None) -> object:
    return tc.sketch_frame(pq.read_table(paths, columns=["p", "y"]).to_pandas(), **COLUMNS, by=by)


def sketch(frame: Any, by: str | None) -> object:
    return tc.sketch_frame(frame, **COLUMNS, by=by)


def exact(frame: Any, by: str | None) -> object:
    return tc.atb_frame(frame, **COLUMNS)


def codes(frame: Any, by: str | None) -> object:
    """Compute the row codes, without a GROUP BY; return the number of rows."""
    coded = with_code_column(select_columns(lazy_frame(frame), roles(by)), False, BUCKETS)
    return coded.select(nw.col("code").cast(nw.Int64).sum(), nw.col("p").count().alias("n")).collect()["n"][0]


def query(frame: Any, by: str | None) -> object:
    """Run the GROUP BY of the engine, which `sketch_frame` uses if rows are invalid or the engine runs elsewhere."""
    table, groups = aggregate_in_engine(select_columns(lazy_frame(frame), roles(by)), roles(by), BUCKETS)
    return build_sketch(table, groups, roles(by), BUCKETS, "the frame")


def roles(by: str | None) -> ColumnRoles:
    return ColumnRoles.of("y", "p", None, by, None)


MANY, FEW = 100_000_000, 10_000_000


@dataclass(frozen=True, slots=True)
class Measured:
    """A line of the table: a function, and the engine that opens the files."""

    name: str
    engine: Engine
    call: Read
    n: int
    by: str | None = None


MEASURED = [
    Measured("`scan`", ARROW, scan, MANY),
    Measured("`sketch_frame`, DuckDB", DUCKDB, sketch, MANY),
    Measured("`sketch_frame`, Polars lazy", POLARS, sketch, MANY),
    Measured("`sketch_frame`, Spark local[2]", SPARK, sketch, MANY),
    Measured("`scan`, 100 segments", ARROW, scan, MANY, "segment"),
    Measured("`sketch_frame`, DuckDB, 100 segments", DUCKDB, sketch, MANY, "segment"),
    Measured("`sketch_frame`, Polars lazy, 100 segments", POLARS, sketch, MANY, "segment"),
    Measured("`scan`", ARROW, scan, FEW),
    Measured("`sketch_frame`, DuckDB", DUCKDB, sketch, FEW),
    Measured("- row codes alone", DUCKDB, codes, FEW),
    Measured("- GROUP BY in the engine", DUCKDB, query, FEW),
    Measured("`sketch_frame`, Polars lazy", POLARS, sketch, FEW),
    Measured("- row codes alone", POLARS, codes, FEW),
    Measured("- GROUP BY in the engine", POLARS, query, FEW),
    Measured("`sketch_frame`, Spark local[2]", SPARK, sketch, FEW),
    Measured("- row codes alone", SPARK, codes, FEW),
    Measured("`sketch_frame`, pandas, reading included", ARROW, pandas, FEW),
    Measured("`sketch_frame`, Dask", DASK, sketch, FEW),
    Measured("`scan`, 100 segments", ARROW, scan, FEW, "segment"),
    Measured("`sketch_frame`, DuckDB, 100 segments", DUCKDB, sketch, FEW, "segment"),
    Measured("- GROUP BY in the engine", DUCKDB, query, FEW, "segment"),
    Measured("`sketch_frame`, Polars lazy, 100 segments", POLARS, sketch, FEW, "segment"),
    Measured("- GROUP BY in the engine", POLARS, query, FEW, "segment"),
    Measured("`sketch_frame`, Spark local[2], 100 segments", SPARK, sketch, FEW, "segment"),
    Measured("`atb_frame`, DuckDB (exact)", DUCKDB, exact, FEW),
]


def times(line: Measured, paths: list[Path], rounds: int) -> tuple[float, float]:
    """Return ratios to reading by the engine and by pyarrow, after a warm-up that compiles code and starts servers."""
    calls = [(line.engine, line.engine.read), (ARROW, ARROW.read), (line.engine, line.call)]
    for _ in range(WARM_UPS):
        for engine, call in calls:
            call(engine.open(paths[:1]), line.by)
    ratios = []
    for _ in range(rounds):
        ticks = [time.perf_counter()]
        for engine, call in calls:
            call(engine.open(paths), line.by)
            ticks.append(time.perf_counter())
        by_engine, by_pyarrow, own = np.diff(ticks)
        ratios.append((own / by_engine, own / by_pyarrow))
    to_engine, to_pyarrow = (statistics.median(column) for column in zip(*ratios, strict=True))
    return to_engine, to_pyarrow


def child(index: int, rounds: int) -> None:
    """Print the ratios if there are rounds, otherwise the peak memory of one call; runs in a separate process."""
    warnings.simplefilter("ignore")
    line = MEASURED[index]
    paths = files(line.n)
    if rounds:
        print(*times(line, paths, rounds))
        return
    line.call(line.engine.open(paths[:1]), line.by)
    result = line.call(line.engine.open(paths), line.by)
    rows = getattr(result, "n", result)
    assert isinstance(result, float) or int(np.sum(rows)) == line.n, rows
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)


def run_child(index: int, rounds: int, launcher: list[str]) -> list[float]:
    command = [*launcher, sys.executable, __file__, "--child", str(index), "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", type=int)
    parser.add_argument("--quick", action="store_true", help="1e7 rows only, and write nothing")
    parser.add_argument("--launcher", default="", help="command that runs each measurement, such as `flock FILE`")
    arguments = parser.parse_args()
    if arguments.child is not None:
        child(arguments.child, arguments.rounds)
        return
    files(FEW if arguments.quick else MANY)
    lines = []
    for index, line in enumerate(MEASURED):
        if arguments.quick and line.n > FEW:
            continue
        launcher = shlex.split(arguments.launcher)
        ratios, (memory,) = run_child(index, arguments.rounds, launcher), run_child(index, 0, launcher)
        numbers = " | ".join(f"{ratio:.1f}" for ratio in ratios)
        lines.append(f"| {line.name} | {line.n:,} | {numbers} | {memory:,.0f} |")
        print(lines[-1], flush=True)
    if not arguments.quick:
        PAGE.write_text(with_engines(PAGE.read_text(), TEMPLATE.format(machine=machine(), lines="\n".join(lines))))


TEMPLATE = """\
Written by `benchmarks/engines.py`. Times are relative to reading the same columns of the same Parquet files in the same
process: by the same engine, which also adds them up (`SELECT sum(p), sum(y)`), and by `pyarrow.parquet.read_table`,
file by file. Numbers are medians over rounds. For `scan` and pandas the engine is pyarrow. Spark was started before.
Memory is the peak of a separate process in megabytes, of which Python, numba and pyarrow use about 200; Spark's Java
process is not included. Predictions are uniform float64, outcomes are booleans, and sketches have 4096 buckets.

{machine}.

| function | rows | time / reading in the engine | time / reading with pyarrow | peak memory, MB |
|---|---:|---:|---:|---:|
{lines}

The lines below an engine show where a query spends its time: "row codes alone" validates each row and computes its
bucket, and "GROUP BY in the engine" is the whole query. DuckDB and Polars run in this process, so `sketch_frame` does
not use the query for them: it streams the rows into the compiled loops of `scan`, which combine both steps. The query
remains for invalid rows, which it counts for the error message, for many groups, and for engines that run elsewhere.
"""


if __name__ == "__main__":
    main()
