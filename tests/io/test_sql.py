"""The query of `sketch_sql` in real databases, against codes and sums by a slow and obvious loop."""

import functools
import itertools
import math
import random
import sqlite3

import numpy as np
import pytest
from oracles import grid
from support import servers
from support.grid_cases import grid_cases
from support.servers import database

import truthcal as tc
from truthcal.io.row_codes import CHECKS, OTHERS, UNWEIGHTED, WEIGHTED
from truthcal.io.sql import sketch_sql
from truthcal.io.sql_dialects import DIALECTS

NAN, INF = math.nan, math.inf
ROLES = {"y_true": "y", "y_proba": "p"}
SUMS = ("w", "ww", "wp", "pos", "neg", "wcp", "wcc", "wwcc", "wwv", "wwc", "www", "wwww")
RUN_HERE = ("duckdb", "sqlite", "postgres", "spark")
QUICK = RUN_HERE[:3]  # a query takes Spark half a second, so it is asked only what it may answer differently


# --- oracle -----------------------------------------------------------------------------------------------------------


def code_of(y, p, w, n_buckets):
    """By the words of `codes`."""
    for value, null, least, most in ((y, -2, 0, 1), (p, -5, 0, 1), (w, -8, 0, INF)):
        if value is None:
            return null
        if not math.isfinite(value):
            return null - 1
        if not least <= value <= most:
            return null - 2
    if w == 0:
        return -1
    if not 1e-70 <= w <= 1e70:
        return -11
    return grid.bucket_of(p, n_buckets)


def terms(y, p, w):
    c = p - y
    values = (
        *(w, w * w, w * p, w * max(c, 0), w * max(-c, 0), w * c * p, w * c * c, w * w * c * c, w * w * p * (1 - p)),
        *(w * w * c, w**3, w**4),
    )
    return dict(zip(SUMS, values, strict=True))


def expected(rows, n_buckets, grouped):
    """By group and code: the rows, and the values that `low` and `high` speak of."""
    table = {}
    for y, p, w, group in rows:
        code = code_of(y, p, w, n_buckets)
        value = y if -5 < code < -1 else w if code <= -8 else p
        table.setdefault((group if grouped else None, code), []).append(((y, p, w), value))
    return table


def assert_agree(found, rows, n_buckets, grouped=False, tiny=0.0):
    """Counts, `low` and `high` exactly; sums to 1e-12 of the sizes of their terms, or to `tiny` for each weight."""
    table = expected(rows, n_buckets, grouped)
    assert len(found) == len(table)
    for row in found:
        members = table[row.get("g"), row["code"]]
        assert row["n"] == len(members)
        values = [value for _, value in members if value is not None]
        if any(map(math.isnan, values)):  # engines do not agree on where nan stands
            assert all(low_or_high in values or math.isnan(low_or_high) for low_or_high in (row["low"], row["high"]))
        else:
            assert (row["low"], row["high"]) == ((min(values), max(values)) if values else (None, None))
        if row["code"] >= 0:
            each = [terms(*numbers) for numbers, _ in members]
            for name in set(SUMS) & set(row):
                size = math.fsum(abs(term[name]) for term in each)
                slack = tiny * max(term["w"] for term in each) ** (2 if name.startswith("ww") else 1)
                assert abs(row[name] - math.fsum(term[name] for term in each)) <= 1e-12 * size + slack, (name, row)
            assert row.get("top", 1.0) == max(w for (_, _, w), _ in members)


# --- rows -------------------------------------------------------------------------------------------------------------

GOOD_P = [*grid_cases(4096), 1e-200, 1e-60, 0.5, 0.5]
BAD_P = [None, NAN, INF, -INF, math.nextafter(1, 2), -5e-324, -0.001, 74.5, 1e308, -1e308]
GOOD_Y = [0.0, 1.0, 0.0, 1.0, 0.25, 0.3, 1e-200, -0.0]
BAD_Y = [None, NAN, INF, -INF, 2.0, -1.0, math.nextafter(1, 2), -5e-324, 1e308]
GOOD_W = [1.0, 0.1, 3.0, 1e-70, 1e70, 1e-50]
BAD_W = [None, NAN, INF, -INF, -1.0, -1e-300, 0.0, -0.0, 1e-200, 1e200, 1e308, 5e-324, math.nextafter(1e70, INF)]
BAD_W.append(math.nextafter(1e-70, 0))


@functools.cache
def all_rows():
    rng = random.Random(0)
    good = list(itertools.product(GOOD_Y[:2], GOOD_P, [1.0]))
    good += [(rng.choice(GOOD_Y), rng.choice(GOOD_P), rng.choice(GOOD_W)) for _ in range(150)]
    good += [(float(rng.random() < 0.5), rng.random(), rng.expovariate(1)) for _ in range(100)]
    bad = [(y, 0.5, 1.0) for y in BAD_Y] + [(1.0, p, 1.0) for p in BAD_P] + [(1.0, 0.5, w) for w in BAD_W]
    bad += [(rng.choice([*BAD_Y, 1.0]), rng.choice([*BAD_P, 0.5]), rng.choice([*BAD_W, 1.0])) for _ in range(100)]
    bad += [(rng.choice([0.0, 1.0]), rng.choice([*BAD_P, 0.5]), rng.choice([*BAD_W, 1.0])) for _ in range(50)]
    rows = good + bad
    rng.shuffle(rows)
    return [(*row, rng.choice(["a", "b", None])) for row in rows]


def without_nan(rows):
    return [tuple(None if isinstance(x, float) and math.isnan(x) else x for x in row) for row in rows]


def load_all_rows(dialect):
    rows = all_rows() if database(dialect).holds_nan else without_nan(all_rows())
    database(dialect).load("forecasts", {"y": "double", "p": "double", "w": "double", "g": "text"}, rows)
    return rows


TINY = {"postgres": 1.1e-50}  # what is taken for 0 there


# --- codes and sums ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", RUN_HERE)
@pytest.mark.parametrize(("weighted", "grouped"), [(True, True), (False, False)])
def test_codes_and_sums_of_all_edge_cases(dialect, weighted, grouped):
    rows = load_all_rows(dialect)
    if not weighted:
        rows = [(y, p, 1.0, g) for y, p, _, g in rows]
    query = sketch_sql(
        "forecasts", **ROLES, sample_weight="w" if weighted else None, by="g" if grouped else None, dialect=dialect
    )
    found = database(dialect).run(query)
    names = [*(["g"] if grouped else []), "code", *(WEIGHTED if weighted else UNWEIGHTED), *CHECKS]
    assert all(list(row) == names for row in found)
    assert {(row["total"], row["n_buckets"]) for row in found} == {
        (sum(row["n"] for row in found), found[0]["n_buckets"])
    }
    assert {row["code"] for row in found} >= set(range(-11 if weighted else -7, -1))
    assert_agree(found, rows, 4096, grouped, TINY.get(dialect, 0.0))


@pytest.mark.spark
def test_spark_without_ansi():
    rows = load_all_rows("spark")
    session = servers.spark_session()
    before = session.conf.get("spark.sql.ansi.enabled")
    assert before == "true"
    session.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found = database("spark").run(sketch_sql("forecasts", **ROLES, sample_weight="w", dialect="databricks"))
        database("spark").load("words", {"y": "double", "p": "text"}, [(1.0, "0.5")])
        with pytest.raises(Exception, match=r"not a number: 0\.5"):
            database("spark").run(sketch_sql("words", **ROLES, dialect="databricks"))
    finally:
        session.conf.set("spark.sql.ansi.enabled", before)
    assert_agree(found, rows, 4096)


@pytest.mark.parametrize("dialect", QUICK)
@pytest.mark.parametrize("n_buckets", [1, 2, 2**20])
def test_any_number_of_buckets(dialect, n_buckets):
    rows = load_all_rows(dialect)
    found = database(dialect).run(
        sketch_sql("forecasts", **ROLES, sample_weight="w", n_buckets=n_buckets, dialect=dialect)
    )
    assert_agree(found, rows, n_buckets, tiny=TINY.get(dialect, 0.0))


@pytest.mark.parametrize("dialect", QUICK)
def test_result_is_the_sketch_of_the_rows(dialect):
    rows = [row[:3] for row in all_rows() if code_of(*row[:3], 4096) >= 0 and row[1] > 1e-50]
    database(dialect).load("good", {"y": "double", "p": "double", "w": "double"}, rows)
    found = database(dialect).run(sketch_sql("good", **ROLES, sample_weight="w", dialect=dialect))
    columns = {name: np.array([row[name] for row in sorted(found, key=lambda row: row["code"])]) for name in found[0]}
    table = tc.Sketch().update(*np.array(rows).T).table()
    for name in ("n", "ww", "wp", "pos", "neg", "wcp", "wcc", "wwcc", "wwv"):
        np.testing.assert_allclose(columns[name], table[name], rtol=1e-12, atol=1e-12 * np.abs(table[name]).max())
    for mine, its in (("code", "bucket"), ("low", "min"), ("high", "max")):
        assert (columns[mine] == table[its]).all()


@pytest.mark.parametrize("dialect", QUICK)
def test_no_rows(dialect):
    database(dialect).load("nothing", {"y": "double", "p": "double"}, [])
    assert database(dialect).run(sketch_sql("nothing", **ROLES, dialect=dialect)) == []


@pytest.mark.parametrize("dialect", QUICK)
def test_subquery_is_used_as_it_is(dialect):
    load_all_rows(dialect)
    table = "(SELECT y AS z, p FROM forecasts WHERE p = 0.5 AND y = 1) AS chosen"
    (row,) = database(dialect).run(sketch_sql(table, y_true="z", y_proba="p", dialect=dialect))
    assert (row["code"], row["low"], row["high"], row["neg"]) == (2048, 0.5, 0.5, row["n"] / 2)


@pytest.mark.parametrize("writer", ["pyarrow", "polars", "duckdb"])
def test_duckdb_finds_nan_in_parquet(writer, tmp_path):
    """Its statistics say that all numbers lie in [0, 1], and DuckDB believes them."""
    path, numbers = tmp_path / "rows.parquet", [0.25, 0.75, NAN, 0.5] * 500
    ones, connection = [1.0] * len(numbers), database("duckdb").connection
    if writer == "polars":
        pytest.importorskip("polars").DataFrame({"a": numbers, "b": ones}).write_parquet(path)
    else:
        table = pytest.importorskip("pyarrow").table({"a": numbers, "b": ones})
        if writer == "pyarrow":
            pytest.importorskip("pyarrow.parquet").write_table(table, path)
        else:
            connection.register("arrow_rows", table)
            connection.execute(f"COPY (SELECT * FROM arrow_rows) TO '{path}' (FORMAT PARQUET)")
    for roles, code in (
        ({"y_true": "b", "y_proba": "a"}, -6),
        ({"y_true": "a", "y_proba": "b"}, -3),
        ({"y_true": "a", "y_proba": "b", "pos_label": 0.25}, -3),
        ({"y_true": "b", "y_proba": "c", "sample_weight": "a"}, -9),
    ):
        found = database("duckdb").run(sketch_sql(f"(SELECT *, b AS c FROM '{path}')", **roles))
        assert {row["code"]: row["n"] for row in found if row["code"] < 0} == {code: 500}


# --- types ------------------------------------------------------------------------------------------------------------

OUTCOMES = {
    "boolean": ([True, False, None], [1.0, 0.0, None]),
    "integer": ([1, 0, 2, None], [1.0, 0.0, 2.0, None]),
    "decimal": (["1", "0", "0.3", "-0.5", None], [1.0, 0.0, 0.3, -0.5, None]),
    "float": ([1.0, 0.0, 0.1, None], [1.0, 0.0, float(np.float32(0.1)), None]),
}


def cast_for(dialect, kind, values):
    """As Python's driver wants them."""
    if kind == "decimal" and dialect == "spark":
        import decimal

        return [None if value is None else decimal.Decimal(value) for value in values]
    if kind == "boolean" and dialect == "sqlite":
        return [None if value is None else int(value) for value in values]
    return values


@pytest.mark.parametrize("dialect", RUN_HERE)
@pytest.mark.parametrize("kind", OUTCOMES)
def test_outcomes_of_every_type(dialect, kind):
    given, meant = OUTCOMES[kind]
    if (dialect, kind) == ("sqlite", "float"):
        meant = given  # it has one type of float
    given = cast_for(dialect, kind, given)
    database(dialect).load("typed", {"y": kind, "p": "double"}, [(value, 0.75) for value in given])
    found = database(dialect).run(sketch_sql("typed", **ROLES, dialect=dialect))
    assert_agree(found, [(value, 0.75, 1.0, None) for value in meant], 4096)


@pytest.mark.parametrize("dialect", QUICK)
@pytest.mark.parametrize("kind", ["integer", "decimal", "float"])
def test_predictions_and_weights_of_every_type(dialect, kind):
    one = cast_for(dialect, "decimal", ["1"])[0] if kind == "decimal" else 1.0 if kind == "float" else 1
    database(dialect).load("typed", {"y": "integer", "p": kind, "w": kind}, [(1, one, one)])
    (row,) = database(dialect).run(sketch_sql("typed", **ROLES, sample_weight="w", dialect=dialect))
    assert (row["code"], row["w"], row["wp"], row["wcc"], row["low"]) == (4095, 1.0, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(("dialect", "text"), [*((name, "1") for name in RUN_HERE), *((name, "abc") for name in QUICK)])
@pytest.mark.parametrize("role", ["y", "p", "w"])
def test_numbers_written_as_text_are_refused(dialect, role, text):
    columns = {name: "text" if name == role else "double" for name in ("y", "p", "w")}
    database(dialect).load("words", columns, [tuple(text if name == role else 1.0 for name in columns)])
    with pytest.raises(Exception, match=database(dialect).refusal):
        database(dialect).run(sketch_sql("words", **ROLES, sample_weight="w", dialect=dialect))
    if role == "y":
        with pytest.raises(Exception, match=database(dialect).refusal):
            database(dialect).run(sketch_sql("words", **ROLES, pos_label=1, dialect=dialect))


@pytest.mark.postgres
def test_postgres_looks_through_domains():
    cursor = database("postgres").connection.cursor()
    cursor.execute("CREATE DOMAIN word AS TEXT; CREATE DOMAIN share AS REAL")
    cursor.execute("CREATE TABLE domains (y share, p share, t word)")
    cursor.execute("INSERT INTO domains VALUES (0.5, 0.5, '1')")
    (row,) = database("postgres").run(sketch_sql("domains", **ROLES, dialect="postgres"))
    assert (row["code"], row["wcc"]) == (2048, 0.0)
    with pytest.raises(Exception, match="neither number nor boolean: 1"):
        database("postgres").run(sketch_sql("domains", y_true="t", y_proba="p", dialect="postgres"))


def test_sqlite_finds_one_text_among_numbers():
    database("sqlite").load("mixed", {"y": "boolean", "p": "boolean"}, [(1, 0.5), (0, "0.5"), (1, 0.25)])
    with pytest.raises(sqlite3.OperationalError, match=r"not a number: ''0\.5''"):
        database("sqlite").run(sketch_sql("mixed", **ROLES, dialect="sqlite"))


@pytest.mark.parametrize("roles", [{"by": "typo"}, {"y_true": "typo", "pos_label": "yes"}, {"y_proba": "typo"}])
def test_sqlite_does_not_take_an_unknown_column_for_text(roles):
    load_all_rows("sqlite")
    with pytest.raises(sqlite3.OperationalError, match="no such column: typo"):
        database("sqlite").run(sketch_sql("forecasts", **(ROLES | roles), dialect="sqlite"))


# --- labels -----------------------------------------------------------------------------------------------------------

HOSTILE = [
    "it's",
    "\\",
    "\\'; DROP TABLE victim; --",
    "'; DROP TABLE victim; --",
    "a\nb\\nc",
    "\u00e4 {x} %s :x ? $1",
    "",
]


@pytest.mark.parametrize("dialect", RUN_HERE)
def test_text_labels(dialect):
    """Each row is positive under exactly one of the labels, however hostile."""
    database(dialect).load(
        "victim", {"y": "text", "p": "double"}, [*((label, 0.25) for label in HOSTILE), (None, 0.25)]
    )
    for label in HOSTILE[:4] if dialect == "spark" else HOSTILE:
        found = database(dialect).run(sketch_sql("victim", **ROLES, pos_label=label, dialect=dialect))
        by_code = {row["code"]: row for row in found}
        assert {code: row["n"] for code, row in by_code.items()} == {-2: 1, 1536: len(HOSTILE)}
        assert (by_code[1536]["neg"], by_code[1536]["pos"]) == (0.75, 0.25 * (len(HOSTILE) - 1))
        others = sorted(set(HOSTILE) - {label})
        assert {by_code[1536][name] for name in ("first_other", "last_other")} <= set(others)
        assert by_code[1536]["first_other"] != by_code[1536]["last_other"]
        assert by_code[-2]["first_other"] is None


@pytest.mark.parametrize("dialect", RUN_HERE)
@pytest.mark.parametrize("label", [3, 3.0])
def test_labels_that_are_numbers(dialect, label):
    database(dialect).load(
        "classes", {"y": "double", "p": "double"}, [(3.0, 0.5), (-7.0, 0.5), (2.5, 0.5), (None, 0.5), (NAN, 0.5)]
    )
    found = database(dialect).run(sketch_sql("classes", **ROLES, pos_label=label, dialect=dialect))
    counts = {row["code"]: row["n"] for row in found}
    assert counts == ({-2: 1, -3: 1, 2048: 3} if database(dialect).holds_nan else {-2: 2, 2048: 3})
    row = next(row for row in found if row["code"] == 2048)
    assert (row["neg"], row["pos"], row["first_other"], row["last_other"]) == (0.5, 1.0, -7.0, 2.5)


@pytest.mark.parametrize("dialect", RUN_HERE)
@pytest.mark.parametrize("label", [True, False])
def test_labels_that_are_booleans(dialect, label):
    values = cast_for(dialect, "boolean", [True, True, False, None])
    database(dialect).load("flags", {"y": "boolean", "p": "double"}, [(value, 0.5) for value in values])
    found = database(dialect).run(sketch_sql("flags", **ROLES, pos_label=label, dialect=dialect))
    row = next(row for row in found if row["code"] == 2048)
    assert {row["code"]: row["n"] for row in found} == {-2: 1, 2048: 3}
    assert (row["neg"], row["first_other"], row["last_other"]) == (1.0 if label else 0.5, not label, not label)


# --- names ------------------------------------------------------------------------------------------------------------

NAMES = [
    'a"; DROP TABLE victim; --',
    "b`; DROP TABLE victim; --",
    "c]' {x} {y} {} %s :x ? \\",
    "d\n -- \n    e",
    "SELECT",
]


@pytest.mark.parametrize(
    ("dialect", "shift"), [*itertools.product(QUICK, range(len(NAMES))), ("spark", 0), ("spark", 2)]
)
def test_hostile_names_are_names(dialect, shift):
    table, y, p, w, g = NAMES[shift:] + NAMES[:shift]
    database(dialect).load("victim", {"y": "double"}, [(1.0,)])
    rows = [(1.0, 0.5, 2.0, "a"), (0.0, 0.5, 1.0, None), (1.0, 0.25, 1.0, "a")]
    database(dialect).load(table, {y: "double", p: "double", w: "double", g: "text"}, rows)
    found = database(dialect).run(sketch_sql(table, y_true=y, y_proba=p, sample_weight=w, by=g, dialect=dialect))
    assert_agree([row | {"g": row[g]} for row in found], rows, 4096, True)
    assert database(dialect).run("SELECT COUNT(*) AS n FROM victim") == [{"n": 1}]


@pytest.mark.parametrize("dialect", RUN_HERE)
def test_names_that_the_query_uses_itself(dialect):
    """Columns named like what they are not, and groups like what is added up."""
    names = ["p", "weight", "y", "by_2", "c", "example", "counted", "label"]
    rows = [
        (1.0, 0.5, 2.0, *"abcde"),
        (0.0, 0.25, 1.0, *"vwxyz"),
        (0.0, 0.75, 1.0, *"vaxyz"),
        (1.0, 0.75, 1.0, *"vaxyz"),
    ]
    kinds = ["double"] * 3 + ["text"] * 5
    database(dialect).load("numbers", dict(zip(names, kinds, strict=True)), rows)
    roles = {"y_true": "p", "y_proba": "weight", "sample_weight": "y", "by": names[3:]}
    found = database(dialect).run(sketch_sql("numbers", **roles, dialect=dialect))
    assert sorted("".join(row[name] for name in names[3:]) for row in found) == ["abcde", "vaxyz", "vwxyz"]
    assert_agree(found, [(*row[:3], None) for row in rows], 4096)


def test_table_names_are_quoted_part_by_part():
    assert 'FROM "a b"."c"\n' in sketch_sql("a b.c", **ROLES)
    assert "FROM [a].[b]]c]\n" in sketch_sql("a.b]c", **ROLES, dialect="tsql")


# --- databases that do not run here -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("label", [None, "it's \\ a", 2, 0.5, True])
def test_text_parses_in_its_dialect(dialect, label):
    sqlglot = pytest.importorskip("sqlglot")
    table, columns = 'db.we`i"r]d', ["y 1", "p`2", 'w"3', "g]4"]
    if dialect == "bigquery":  # its names cannot hold this, and sqlglot cannot read it
        table, columns[1] = 'db.wei"r]d', "p 2"
    y, p, w, g = columns
    query = sketch_sql(table, y_true=y, y_proba=p, sample_weight=w, by=g, pos_label=label, dialect=dialect)
    (tree,) = sqlglot.parse(query, read=dialect)
    others = OTHERS if label is not None else ()
    assert tree.named_selects == [g, "code", *WEIGHTED, *others, *CHECKS]
    (source,) = tree.find_all(sqlglot.exp.Table)
    assert [part.name for part in source.parts] == table.split(".")
    read = {column.name for column in source.find_ancestor(sqlglot.exp.Select).find_all(sqlglot.exp.Column)}
    assert read >= set(columns)
    assert "{" not in query
    if isinstance(label, str):
        assert label in {
            node.name for node in tree.find_all(sqlglot.exp.Literal, sqlglot.exp.National, sqlglot.exp.ByteString)
        }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_labels_never_end_the_string_that_holds_them(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    for label in HOSTILE:
        statements = sqlglot.parse(sketch_sql("t", **ROLES, pos_label=label, dialect=dialect), read=dialect)
        assert len([statement for statement in statements if statement]) == 1
        assert not list(statements[0].find_all(sqlglot.exp.Drop))


def test_bigquery_escapes_names():
    query = sketch_sql("t", y_true="a`b\\", y_proba="p", dialect="bigquery")
    assert r"CAST(`a\`b\\` + 0 AS FLOAT64) AS y," in query


def test_text_is_readable():
    first, *lines = sketch_sql("t", **ROLES, n_buckets=64).splitlines()
    assert first == "-- The sums of a sketch. In Python: truthcal.sketch_from_rows(result, ...)"
    assert lines[:3] == ["SELECT", '    counted.code AS "code",', '    COUNT(*) AS "n",']
    assert max(map(len, lines)) <= 120
    assert not any(line.endswith(" ") for line in lines)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"table": 3}, TypeError, "`table` must be the name of a table, or a subquery in parentheses; got 3."),
        ({"table": ""}, ValueError, "`table` must be a name, with dots only between its parts; got ''."),
        ({"table": "a..b"}, ValueError, "`table` must be a name, with dots only between its parts; got 'a..b'."),
        ({"dialect": "oracle"}, ValueError, "`dialect` must be one of 'duckdb', 'sqlite', .*; got 'oracle'."),
        ({"n_buckets": 1000}, ValueError, "`n_buckets` must be a power of two; got 1000. Try 512 or 1024."),
        ({"n_buckets": 2**21}, ValueError, "`n_buckets` must be between 1 and 1048576; got 2097152."),
        ({"y_true": ""}, ValueError, "`y_true` must be the name of a column; got an empty string."),
        ({"y_true": None}, TypeError, "`y_true` must be the name of a column; got None."),
        ({"y_proba": "y"}, ValueError, "`y_true` and `y_proba` both name the column 'y'; they must differ."),
        ({"sample_weight": "p"}, ValueError, "`y_proba` and `sample_weight` both name the column 'p'"),
        ({"by": ["g", ""]}, ValueError, "`by` must be the name of a column; got an empty string."),
        ({"by": ["g", "g"]}, ValueError, "`by` has 'g' twice; name each column once."),
        ({"by": "n"}, ValueError, "`by` must not name a column 'n': a table has a statistic of that name. Rename it."),
        (
            {"by": ["g", "Low"]},
            ValueError,
            "`by` must not name a column 'Low': the result also has a column 'low'. Rename it",
        ),
        ({"pos_label": b"yes"}, TypeError, "`pos_label` must be one label: text, a number, True or False; got b'yes'."),
        ({"pos_label": NAN}, TypeError, "`pos_label` must be one label: text, a number, True or False; got nan."),
        ({"pos_label": -INF}, ValueError, "`pos_label` must be finite; got -inf."),
        ({"pos_label": 2**53}, ValueError, r"`pos_label` must be less than 2\*\*53, because .*; got 9007199254740992."),
    ],
)
def test_refusals(change, error, message):
    arguments = {"table": "t", **ROLES} | change
    with pytest.raises(error, match=message):
        sketch_sql(arguments.pop("table"), **arguments)
