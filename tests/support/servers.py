"""Real servers for the tests: PostgreSQL and Spark, each started once a session, when first asked for."""

import atexit
import contextlib
import functools
import glob
import importlib.util
import logging
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import warnings
from pathlib import Path

import pytest

_OWNER = "postgres"  # who runs the server where the tests run as root, which PostgreSQL refuses


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def _postgres_binaries():
    """The directory that holds initdb and pg_ctl, or None."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    return Path(max(installed, key=lambda path: float(path.split("/")[4]))).parent if installed else None


def _run_as_owner(command):
    """Run it as the user who may run a server; its output is in the error if it fails."""
    user = {"user": _OWNER, "group": _OWNER, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryFile() as output:  # a pipe would be held open by the server, and never end
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", timeout=60, check=False, **user
        )
        output.seek(0)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {output.read().decode(errors='replace')}")


@functools.cache
def postgres_conninfo():
    """How to connect to a fresh PostgreSQL, for psycopg.connect; it is stopped and removed at exit.

    It listens on a Unix socket in its own directory only, so no port is taken and nobody else can reach it.
    """
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed.")
    binaries = _postgres_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server is installed (initdb not found).")
    home = Path(tempfile.mkdtemp(prefix="truthcal-pg-", dir="/tmp"))  # short: a socket's path has at most 107 bytes
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    if os.geteuid() == 0:
        try:
            owner = pwd.getpwnam(_OWNER)
        except KeyError:
            pytest.skip(f"the tests run as root, and there is no user {_OWNER} to run the server.")
        os.chown(home, owner.pw_uid, owner.pw_gid)
    data = str(home / "data")
    _run_as_owner(
        [str(binaries / "initdb"), "-D", data, "-U", _OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    )
    options = f"-k {home} -c listen_addresses='' -c fsync=off -c full_page_writes=off -c shared_buffers=16MB"
    control = [str(binaries / "pg_ctl"), "-D", data]
    _run_as_owner([*control, "-l", str(home / "log"), "-o", options, "-w", "-t", "30", "start"])
    atexit.register(_run_as_owner, [*control, "-m", "immediate", "-w", "stop"])  # runs before the removal above
    return f"host={home} user={_OWNER} dbname=postgres"


# --- Spark ------------------------------------------------------------------------------------------------------------

_SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Halves the start: our queries are too short to repay the second compiler or a parallel collector.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.session.timeZone": "UTC",
    # Without the line of Python code behind each expression, which takes two thirds of the time to build a query.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


@contextlib.contextmanager
def quiet_spark():
    """pyspark's own deprecated calls are not ours to mend; warnings from elsewhere stay errors."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning, UserWarning, ResourceWarning):
            warnings.filterwarnings("ignore", category=category, module=r"pyspark(\.|$)")
        yield


@functools.cache
def spark_session():
    """One local Spark for all tests; it is stopped at exit."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed.")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("no Java is installed, which Spark needs.")
    with quiet_spark():
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession

        home = tempfile.mkdtemp(prefix="truthcal-spark-")
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        builder = SparkSession.builder.master("local[1]").appName("truthcal-tests")
        for name, value in {**_SPARK_SETTINGS, "spark.sql.warehouse.dir": home}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # queries that must fail would fill the screen
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    atexit.register(_stop_quietly, session)
    return session


def _stop_quietly(session):
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    with quiet_spark(), contextlib.suppress(Exception):  # the tests are over; a JVM that is gone already is fine
        session.stop()


# --- tables and queries -----------------------------------------------------------------------------------------------

KINDS = ("double", "float", "integer", "decimal", "boolean", "text")


def _quoted(name, quote):
    return f"{quote}{name.replace(quote, 2 * quote)}{quote}"


def _declared(columns, types, quote):
    kinds = dict(zip(KINDS, types, strict=True))
    return ", ".join(f"{_quoted(name, quote)} {kinds[kind]}" for name, kind in columns.items())


class DuckDB:
    types = ("DOUBLE", "FLOAT", "TINYINT", "DECIMAL(9, 4)", "BOOLEAN", "VARCHAR")
    quote, mark, percent, holds_nan = '"', "?", "%", True
    refusal = "an explicit cast is required"

    @functools.cached_property
    def connection(self):
        return pytest.importorskip("duckdb").connect()

    def load(self, table, columns, rows):
        """Make a table; `columns` are names and types."""
        table, declared = _quoted(table, self.quote), _declared(columns, self.types, self.quote)
        cursor = self.connection.cursor()
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute(f"CREATE TABLE {table} ({declared})")
        if rows:
            marks = ", ".join([self.mark] * len(columns))
            cursor.executemany(f"INSERT INTO {table.replace('%', self.percent)} VALUES ({marks})", rows)

    def run(self, query):
        cursor = self.connection.cursor()
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


class SQLite(DuckDB):
    types = ("REAL", "REAL", "INTEGER", "NUMERIC", "", "TEXT")
    holds_nan = False  # it becomes NULL
    refusal = "not a number: "

    @functools.cached_property
    def connection(self):
        connection = sqlite3.connect(":memory:")
        atexit.register(connection.close)
        return connection


class Postgres(DuckDB):
    types = ("DOUBLE PRECISION", "REAL", "SMALLINT", "NUMERIC", "BOOLEAN", "TEXT")
    mark, percent = "%s", "%%"
    refusal = "neither number nor boolean: |operator does not exist: text"

    @functools.cached_property
    def connection(self):
        conninfo = postgres_conninfo()
        import psycopg

        connection = psycopg.connect(conninfo, autocommit=True)
        atexit.register(connection.close)  # before the server is stopped
        return connection


class Spark:
    types = ("DOUBLE", "FLOAT", "TINYINT", "DECIMAL(9, 4)", "BOOLEAN", "STRING")
    quote, holds_nan = "`", True
    refusal = "not a number: "

    def load(self, table, columns, rows):
        import pyarrow as pa  # from rows, Spark would start a Python process for each query

        kinds = (pa.float64(), pa.float32(), pa.int8(), pa.decimal128(9, 4), pa.bool_(), pa.string())
        types = dict(zip(KINDS, kinds, strict=True))
        arrays = [pa.array([row[i] for row in rows], types[kind]) for i, kind in enumerate(columns.values())]
        with quiet_spark():
            content = pa.table(arrays, names=list(columns))
            frame = spark_session().createDataFrame(content, _declared(columns, self.types, self.quote))
            frame.createOrReplaceTempView(_quoted(table, self.quote))

    def run(self, query):
        with quiet_spark():
            return [row.asDict() for row in spark_session().sql(query).collect()]


@functools.cache
def database(name):
    return {"duckdb": DuckDB, "sqlite": SQLite, "postgres": Postgres, "spark": Spark}[name]()
