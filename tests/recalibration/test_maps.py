"""Recalibration maps: monotone, never 0 or 1, equal in JSON and in SQL."""

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.servers import database

from truthcal.io.sql_dialects import DIALECTS
from truthcal.recalibration.maps import EQUAL, LEAST, IdentityMap, InterpolatedMap, LogisticMap, read_map
from truthcal.recalibration.sql import map_sql

EDGES = [0.0, 5e-324, 1e-300, LEAST, 1e-5, 0.1, 0.25, 0.5, 0.75, 0.9, 1 - LEAST, math.nextafter(1, 0), 1.0]
STEEP = LogisticMap(40.0, 3.0, 1.0)  # clipped at both ends
MAPS = {
    "identity": IdentityMap(),
    "temperature": LogisticMap(0.7, 0.7, 0.0),
    "platt": LogisticMap(1.3, 1.3, -0.4),
    "beta": LogisticMap(0.0, 1.7, 0.2),
    "steep": STEEP,
    "constant": LogisticMap(0.0, 0.0, -2.0),
    "always low": LogisticMap(1.0, 1.0, -99.0),
    "always high": LogisticMap(1.0, 1.0, 99.0),
    "isotonic": InterpolatedMap((0.1, 0.25, 0.5, 0.75), (0.01, 0.01, 0.3, 0.999)),
    "one point": InterpolatedMap((0.4,), (0.2,)),
}
# Maps that were fitted to separated rows, whose slopes grow with the inverse of the gap.
STEEPEST = {
    "steep beta": LogisticMap(5e5, 22604.0, 335381.0),
    "no a": LogisticMap(0.0, 298287.625708, -31427.9421075),
    "low": LogisticMap(298.3, 298.3, 4121.0),
    "high": LogisticMap(1000.0, 1000.0, -9210.57004776),
    "steepest": LogisticMap(2.98e7, 2.98e7, -0.19),
    "steepest beta": LogisticMap(227440783.818, 7869892.66977, 5842180.52992),
}

NAME = 'a "p"'  # of a column
slopes = st.floats(0, 60)
logistic_maps = st.builds(LogisticMap, slopes, slopes, st.floats(-60, 60))


@st.composite
def interpolated_maps(draw):
    n = draw(st.integers(1, 30))
    x = np.unique(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    x = x[np.diff(x, prepend=-1.0) > EQUAL].tolist()
    n = len(x)
    y = sorted(draw(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=n, max_size=n)))
    return InterpolatedMap(tuple(x), tuple(y))


@given(logistic_maps | interpolated_maps(), st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_maps_never_decrease_and_never_return_certainty(found, p):
    q = found(np.sort(np.array(p)))
    assert (np.diff(q) >= -1e-15).all()
    assert ((q > 0) & (q < 1)).all()


def test_logistic_map_is_the_formula():
    p = np.linspace(0.01, 0.99, 50)
    for a, b, c in ((0.5, 0.5, 0.0), (2.0, 0.3, -1.0)):
        odds = p**a / (1 - p) ** b * math.exp(c)
        np.testing.assert_allclose(LogisticMap(a, b, c)(p), odds / (1 + odds), rtol=1e-13)


def test_identity_returns_every_bit():
    p = np.array(EDGES)
    assert (IdentityMap()(p) == p).all()


@pytest.mark.parametrize("name", MAPS)
def test_json_keeps_every_bit(name):
    found = MAPS[name]
    assert type(found).from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "spark"])
@pytest.mark.parametrize("name", MAPS)
def test_sql_equals_python(name, dialect):
    found, server = MAPS[name], database(dialect)
    p = np.concatenate([EDGES, np.linspace(0, 1, 101), np.geomspace(1e-12, 1e-3, 30)])
    server.load("predictions", {"k": "integer", NAME: "double"}, [(0, float(x)) for x in p])
    column, expression = DIALECTS[dialect].quoted(NAME), map_sql(found, dialect, NAME)
    rows = server.run(f"SELECT {column} AS p, {expression} AS q FROM predictions")
    assert len(rows) == len(p)
    expected = found(np.array([row["p"] for row in rows]))
    np.testing.assert_allclose([row["q"] for row in rows], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "spark"])
@pytest.mark.parametrize("name", STEEPEST)
def test_sql_of_steep_maps_differs_by_rounding_errors_times_the_largest_coefficient(name, dialect):
    steep, server = STEEPEST[name], database(dialect)
    largest = max(steep.a, steep.b, abs(steep.c))
    p = np.linspace(0, 1, 20_001)
    middle = p[np.argmin(np.abs(steep(p) - 0.5))]
    rise = [np.geomspace(1e-3, 1e-12, 100) * sign + middle for sign in (-1, 1)]
    p = np.concatenate([p[::20], *rise, np.geomspace(1e-9, 1e-3, 100), 1 - np.geomspace(1e-9, 1e-3, 100)])
    p = np.unique(p.clip(0, 1))
    server.load("steep", {"p": "double"}, [(float(x),) for x in p])
    rows = server.run(f"SELECT p, {map_sql(steep, dialect, 'p')} AS q FROM steep")
    expected = steep(np.array([row["p"] for row in rows]))
    np.testing.assert_allclose([row["q"] for row in rows], expected, rtol=1e-15 * max(largest, 1000), atol=0)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "spark"])
def test_sql_is_null_where_there_is_no_probability(dialect):
    server = database(dialect)
    bad = [None, -0.1, 1.5, 40.0, *([math.nan, math.inf, -math.inf] if server.holds_nan else [])]
    server.load("bad", {"p": "double"}, [(x,) for x in bad])
    for found in MAPS.values():
        rows = server.run(f"SELECT {map_sql(found, dialect, 'p')} AS q FROM bad")
        assert [row["q"] for row in rows] == [None] * len(bad)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "spark"])
@pytest.mark.parametrize("kind", ["float", "integer", "decimal"])
def test_sql_accepts_other_numbers(dialect, kind):
    server, values = (
        database(dialect),
        {"float": [0.1, 0.7], "integer": [0, 1], "decimal": [Decimal("0.125"), Decimal("0.5")]}[kind],
    )
    values = [float(np.float32(x)) if kind == "float" and dialect != "sqlite" else x for x in values]
    values = [float(x) if dialect == "sqlite" else x for x in values]  # which has no decimals
    server.load("numbers", {"p": kind}, [(x,) for x in values])
    rows = server.run(f"SELECT {map_sql(MAPS['beta'], dialect, 'p')} AS q FROM numbers")
    np.testing.assert_allclose(sorted(row["q"] for row in rows), MAPS["beta"](np.array(values, float)), rtol=1e-12)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres", "spark"])
def test_sql_refuses_text(dialect):
    server = database(dialect)
    server.load("words", {"p": "text"}, [("abc",)])
    with pytest.raises(Exception, match=server.refusal):
        server.run(f"SELECT {map_sql(MAPS['platt'], dialect, 'p')} AS q FROM words")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", MAPS)
def test_sql_parses_in_its_dialect(dialect, name):
    sqlglot = pytest.importorskip("sqlglot")
    tree = sqlglot.parse_one(f"SELECT {map_sql(MAPS[name], dialect, 'my p')} AS q FROM t", read=dialect)
    assert {column.name for column in tree.find_all(sqlglot.exp.Column)} == {"my p"}


def test_sql_server_has_another_name_for_the_logarithm():
    assert "LOG(" in map_sql(MAPS["beta"], "tsql", "p")
    assert "LN(" not in map_sql(MAPS["beta"], "tsql", "p")


def test_names_of_columns_and_dialects_are_checked():
    with pytest.raises(TypeError, match=r"`y_proba` must be the name of a column; got 3\."):
        map_sql(IdentityMap(), "duckdb", 3)
    for name, other in (("PostgreSQL", "postgres"), ("Snowflake", "snowflake"), ("mssql", "tsql")):
        assert map_sql(IdentityMap(), name, "p") == map_sql(IdentityMap(), other, "p")
    with pytest.raises(
        ValueError, match=r"`dialect` must be one of 'duckdb', .*; got 'bigquerry'\. Did you mean 'bigquery'\?"
    ):
        map_sql(IdentityMap(), "bigquerry", "p")
    with pytest.raises(ValueError, match=r"`dialect` must be one of 'duckdb', .*; got 'oracle'\.$"):
        map_sql(IdentityMap(), "oracle", "p")


BROKEN = {
    "lacks": ("beta", {"a": 1.0, "b": 1.0}, r"`map` lacks 'c'; got \{'a': 1\.0, 'b': 1\.0\}\."),
    "text": ("platt", {"a": "1", "b": 1.0, "c": 0.0}, r"`map: a` must be a number; got '1'\."),
    "decreasing": ("platt", {"a": -1.0, "b": 1.0, "c": 0.0}, r"`map` must not decrease: `a` and `b` are not allowed"),
    "no list": ("isotonic", {"x": 1, "y": [0.1]}, r"`map` needs a list of numbers as 'x'; got 1\."),
    "outside": (
        "isotonic",
        {"x": [0.1], "y": [1.5]},
        r"`map` must contain probabilities between 0 and 1 as 'y'; got 1\.5",
    ),
    "order": (
        "isotonic",
        {"x": [0.2, 0.1], "y": [0.1, 0.2]},
        r"`map` must have as many `y` as `x`, both in increasing",
    ),
    "lengths": ("isotonic", {"x": [0.2], "y": [0.1, 0.2]}, r"`map` must have as many `y` as `x`"),
    "empty": ("isotonic", {"x": [], "y": []}, r"`map` must have as many `y` as `x`, .* and at least one\."),
    "too close": (
        "isotonic",
        {"x": [0.0, 1e-320], "y": [0.1, 0.9]},
        r"`map` must have `x` that differ by more than 1e-15: merge those that are closer\.",
    ),
    "null": ("beta", {"a": None, "b": 1.0, "c": 0.0}, r"`map: a` must be a number; got None\."),
    "no map": ("beta", None, r"`map` lacks 'a'; got None\."),
    "temperature with two slopes": (
        "temperature",
        {"a": 1.0, "b": 2.0, "c": 0.0},
        r"`map` must have a = b and c = 0 for the method 'temperature'; got \{'a': 1\.0, 'b': 2\.0, 'c': 0\.0\}\.",
    ),
    "temperature with an intercept": (
        "temperature",
        {"a": 1.0, "b": 1.0, "c": 0.5},
        r"`map` must have a = b and c = 0 for the method 'temperature'",
    ),
    "platt": ("platt", {"a": 1.0, "b": 2.0, "c": 0.5}, r"`map` must have a = b for the method 'platt'; got"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_maps_are_refused(case):
    method, content, message = BROKEN[case]
    with pytest.raises((ValueError, TypeError), match=message):
        read_map(method, content)
