"""A query sent to a real database and read back is the sketch of its rows."""

import functools
import random

import numpy as np
import pytest
from support.servers import database

import truthcal as tc

COLUMNS = {"clicked": "boolean", "score": "double", "weight": "double", "site": "text"}


def rows(n=200):
    draw = random.Random(5)
    return [
        (draw.random() < 0.4, round(draw.random(), 2), draw.choice([0.0, 0.5, 2.0]), draw.choice(["a", "b", None]))
        for _ in range(n)
    ]


def assert_same(sketch, other):
    one, two = sketch.table(), other.table()
    assert one["bucket"].tolist() == two["bucket"].tolist()
    assert one["n"].tolist() == two["n"].tolist()
    for name in one:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["duckdb", "sqlite", "postgres", "spark"])
def test_round_trip(name):
    data, base = rows(), database(name)
    base.load("clicks", COLUMNS, data)
    roles = {"y_true": "clicked", "y_proba": "score"}
    plain = base.run(tc.sketch_sql("clicks", **roles, n_buckets=256, dialect=name))
    y, p, w, sites = (list(column) for column in zip(*data, strict=True))
    assert_same(tc.sketch_from_rows(plain), tc.Sketch(256).update(y, p))
    grouped = base.run(tc.sketch_sql("clicks", **roles, sample_weight="weight", by="site", n_buckets=64, dialect=name))
    table = tc.sketch_from_rows(grouped, by="site")
    assert set(table) == {"a", "b", None}
    for site in table:
        mine = [i for i in range(len(data)) if sites[i] == site]
        assert_same(table[site], tc.Sketch(64).update(*([column[i] for i in mine] for column in (y, p, w))))


def test_labels_by_name():
    base = database("duckdb")
    base.load("answers", {"answer": "text", "score": "double"}, [("yes", 0.9), ("no", 0.2), ("yes", 0.7)])
    query = tc.sketch_sql("answers", y_true="answer", y_proba="score", pos_label="yes")
    assert_same(tc.sketch_from_rows(base.run(query), pos_label="yes"), tc.Sketch().update([1, 0, 1], [0.9, 0.2, 0.7]))
    base.load("answers", {"answer": "text", "score": "double"}, [("yes", 0.9), ("no", 0.2), ("maybe", 0.7)])
    with pytest.raises(ValueError, match=r"`y_true` has more than two different labels \('yes', 'maybe', 'no'\)"):
        tc.sketch_from_rows(base.run(query), pos_label="yes")


@functools.cache
def result(*, by=None, **kwargs):
    base = database("duckdb")
    base.load("clicks", COLUMNS, rows())
    return base.run(tc.sketch_sql("clicks", y_true="clicked", y_proba="score", by=by, **kwargs))


def test_every_shape_of_a_result():
    """Tuples as a cursor gives them, dicts, columns, data frames."""
    import pandas
    import polars
    import pyarrow

    lines = result(by="site")
    expected = tc.sketch_from_rows(lines, by="site")
    columns = {name: [line[name] for line in lines] for name in lines[0]}
    shapes = [
        [tuple(line.values()) for line in lines],
        columns,
        pandas.DataFrame(columns),
        polars.DataFrame(columns),
        pyarrow.table(columns),
    ]
    for shape in shapes:
        found = tc.sketch_from_rows(shape, by="site")
        assert list(found) == list(expected)
        for key in found:
            assert found[key].to_bytes() == expected[key].to_bytes()


@pytest.mark.parametrize(
    ("given", "keywords", "message"),
    [
        ([], {}, "the result has no rows; at least one is needed."),
        (
            [(1, 2, 3)],
            {},
            r"`result` must be the complete result of a query written by sketch_sql, .*; got 3 columns\.",
        ),
        ([5], {}, r"got lines such as 5\."),
        (["abc"], {}, r"got lines such as 'abc'\."),
        ({"a": [1]}, {}, r"got the columns a\."),
        (5, {}, r"got the columns \(none\)\."),
        ("all", {"by": "site"}, r"got the columns code, n, wp"),
        ("all", {"pos_label": "yes"}, r"got the columns code, n, wp"),
        ("some", {}, r"`result` is incomplete: it accounts for \d+ of 200 rows of the table\."),
        ("twice", {}, r"it accounts for 400 of 200 rows of the table\."),
        ("two", {}, r"got lines of different queries \(`n_buckets` is not the same in all of them\)\."),
        ("other", {}, r"the sums are inconsistent; no rows can have these sums\."),
    ],
)
def test_what_is_no_result(given, keywords, message):
    whole = result()
    shapes = {
        "all": whole,
        "some": whole[:10],
        "twice": whole + whole,
        "two": whole[:10] + result(n_buckets=64)[:5],
        "other": [{**line, "n_buckets": 8192} for line in whole],
    }
    with pytest.raises(ValueError, match=message):
        tc.sketch_from_rows(shapes[given] if isinstance(given, str) else given, **keywords)


def test_a_cursor_will_do():
    """Nothing has to be fetched first."""
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (y INTEGER, p REAL)")
    base.executemany("INSERT INTO t VALUES (?, ?)", [(0, 0.2), (1, 0.9)])
    assert tc.sketch_from_rows(base.execute(tc.sketch_sql("t", y_true="y", y_proba="p", dialect="sqlite"))).n == 2
    base.close()


def test_bad_rows_are_told_by_the_query():
    base = database("duckdb")
    base.load("clicks", COLUMNS, [*rows(), (True, 74.5, 1.0, "a"), (True, None, 1.0, "b")])
    lines = base.run(tc.sketch_sql("clicks", y_true="clicked", y_proba="score"))
    with pytest.raises(
        ValueError, match=r"`y_proba` has a missing value \(null or nan\) in the result \(1 of 202 rows\)"
    ):
        tc.sketch_from_rows(lines)
