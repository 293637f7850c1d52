"""Engines: functions that put an Arrow table into an engine and return its frame."""

import functools
import importlib
import uuid

import pytest

from support.servers import quiet_spark, spark_session


def needs(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed.")


def as_pandas(table, folder):
    needs("pandas")
    return table.to_pandas()


def as_pandas_arrow(table, folder):
    return table.to_pandas(types_mapper=needs("pandas").ArrowDtype)


def as_polars(table, folder):
    return needs("polars").from_arrow(table)


def as_polars_lazy(table, folder):
    return needs("polars").from_arrow(table).lazy()


def as_pyarrow(table, folder):
    return table


def as_duckdb(table, folder):
    """From Parquet written by pyarrow, whose statistics make DuckDB believe that there is no nan."""
    path = folder / f"{uuid.uuid4().hex}.parquet"
    needs("pyarrow.parquet").write_table(table, path)
    return needs("duckdb").connect().from_parquet(str(path))


def as_duckdb_own(table, folder):
    """From Parquet written by DuckDB."""
    path, connection = folder / f"{uuid.uuid4().hex}.parquet", needs("duckdb").connect()
    connection.from_arrow(table).write_parquet(str(path))
    return connection.from_parquet(str(path))


def as_dask(table, folder):
    frames = needs("dask.dataframe")
    needs("dask").config.set(scheduler="synchronous")  # threads take a fifth longer for so few rows
    return frames.from_pandas(table.to_pandas(), npartitions=2)


@functools.cache
def ibis_connection():
    return needs("ibis").duckdb.connect()


def as_ibis(table, folder):
    path = folder / f"{uuid.uuid4().hex}.parquet"
    needs("pyarrow.parquet").write_table(table, path)
    return ibis_connection().read_parquet(str(path))


def as_spark(table, folder):
    session = spark_session()
    with quiet_spark():
        return session.createDataFrame(table)


LENIENT = ("spark.sql.ansi.enabled", "spark.sql.adaptive.enabled")


def as_spark_lenient(table, folder):
    """With the rules from before ANSI mode and without adaptive plans, which many clusters still have."""
    frame = as_spark(table, folder)
    for name in LENIENT:
        frame.sparkSession.conf.set(name, "false")
    return frame


ENGINES = {
    "pandas": as_pandas,
    "pandas, Arrow types": as_pandas_arrow,
    "polars": as_polars,
    "polars, lazy": as_polars_lazy,
    "pyarrow": as_pyarrow,
    "duckdb": as_duckdb,
    "duckdb, own Parquet": as_duckdb_own,
    "dask": as_dask,
    "ibis": as_ibis,
    "spark": as_spark,
    "spark, not ANSI": as_spark_lenient,
}
SLOW = ("dask", "spark", "spark, not ANSI")
