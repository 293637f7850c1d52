"""Rows that belong together: the same sketch from every engine and file, however the groups are written."""

import csv
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from support.engines import ENGINES, SLOW
from support.rows import assert_same

import truthcal as tc
from truthcal.io import segment_flips

RNG = np.random.default_rng(0)
N = 400
P = np.concatenate([[0.0, 1.0, 0.5, 2.0**-13], RNG.random(N - 4)])
Y = (RNG.random(N) < P).astype(int)
W = RNG.choice([0.0, 0.5, 3.0], N)
G = RNG.integers(-3, 47, N)
SITE = np.array(["a", "b"])[RNG.integers(0, 2, N)]
TEXT = [f"match {g}, Ünal" for g in G]
COLUMNS = {"y_true": "y", "y_proba": "p", "groups": "g", "n_buckets": 256}


def table(groups=G, **more):
    return pa.table({"y": Y, "p": P, "w": W, "g": groups, "site": SITE} | more)


def assert_same_sketch(one, other):
    assert_same(one, other)
    np.testing.assert_allclose(one.flips.by_slot(), other.flips.by_slot(), rtol=0, atol=1e-12)
    assert one.flips.is_exact == other.flips.is_exact
    assert one.flips.n_groups == other.flips.n_groups
    assert one.neighbour_z is None


@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_every_engine_gives_the_sketch_that_arrays_give(engine, kind):
    groups = G if kind == "numbers" else TEXT
    sketch = tc.sketch_frame(engine(table(groups)), sample_weight="w", **COLUMNS)
    assert_same_sketch(sketch, tc.Sketch(256).update(Y, P, W, groups=groups))


def test_every_engine_gives_the_same_segments(engine):
    result = tc.sketch_frame(engine(table()), by="site", **COLUMNS)
    for site in ("a", "b"):
        own = site == SITE
        assert_same_sketch(result[site], tc.Sketch(256).update(Y[own], P[own], groups=G[own]))
    assert_same_sketch(result.total(), tc.Sketch(256).update(Y, P, groups=G))


@pytest.mark.parametrize("kind", [pa.int8(), pa.float32(), pa.float64(), pa.string()])
def test_numbers_of_any_type_are_the_same_groups(kind):
    sketch = tc.sketch_frame(table(pa.array(G).cast(kind)), **COLUMNS)
    assert_same_sketch(sketch, tc.Sketch(256).update(Y, P, groups=G))


def test_a_missing_group_is_an_error_in_every_engine(engine):
    groups = pa.array([None, None, *TEXT[2:]])
    message = r"`g` \(groups\) has a missing value in the frame \(2 of 400 rows\)\. Every row needs a group: drop"
    with pytest.raises(ValueError, match=message):
        tc.sketch_frame(engine(table(groups)), **COLUMNS)


def test_names_and_columns_are_checked():
    with pytest.raises(ValueError, match=r"the frame has no column 'match' \(named by `groups`\)"):
        tc.sketch_frame(table(), **COLUMNS | {"groups": "match"})
    with pytest.raises(TypeError, match="`groups` must be the name of a column; got 5"):
        tc.sketch_frame(table(), **COLUMNS | {"groups": 5})
    with pytest.raises(ValueError, match="`groups` and `by` both name the column 'g', so that each segment would be"):
        tc.sketch_frame(table(), by="g", **COLUMNS)
    with pytest.raises(TypeError, match=r"`g` .*must contain text, numbers or dates"):
        tc.sketch_frame(table(pa.array([[1]] * N)), **COLUMNS)


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in SLOW], indirect=True)
def test_too_many_segments_are_refused(engine, monkeypatch):
    monkeypatch.setattr(segment_flips, "MAX_SEGMENTS", 3)
    message = "`by` has more than 3 segments, and with groups each of them takes up to 0.4 MB; name fewer columns"
    with pytest.raises(ValueError, match=message):
        tc.sketch_frame(engine(table(site=[str(i % 4) for i in range(N)])), by="site", **COLUMNS)


# --- files ------------------------------------------------------------------------------------------------------------


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["y", "p", "w", "g", "site"])
        writer.writerows(zip(Y[rows], P[rows].tolist(), W[rows], G[rows], SITE[rows], strict=True))


def test_groups_may_be_split_over_files_of_any_format(tmp_path):

    write_csv(tmp_path / "1.csv", slice(0, 150))
    parquet.write_table(table()[150:300], tmp_path / "2.parquet")
    feather.write_feather(table()[300:], tmp_path / "3.arrow")
    files = [tmp_path / name for name in ("1.csv", "2.parquet", "3.arrow")]
    whole = tc.Sketch(256).update(Y, P, W, groups=G)
    assert_same_sketch(tc.scan(files, sample_weight="w", **COLUMNS), whole)
    assert_same_sketch(sum(tc.scan(file, sample_weight="w", **COLUMNS) for file in files), whole)
    by_site = tc.scan(files, by="site", **COLUMNS)
    own = SITE == "a"
    assert_same_sketch(by_site["a"], tc.Sketch(256).update(Y[own], P[own], groups=G[own]))


def test_a_group_may_be_in_the_path(tmp_path):
    for g in sorted(set(G.tolist())):
        (tmp_path / f"g={g}").mkdir()
        parquet.write_table(table().drop_columns("g").filter(pa.array(g == G)), tmp_path / f"g={g}" / "0.parquet")
    assert_same_sketch(tc.scan(tmp_path, **COLUMNS), tc.Sketch(256).update(Y, P, groups=G))


def test_a_missing_group_in_a_file_is_an_error_with_its_row(tmp_path):
    (tmp_path / "a.csv").write_text("y,p,g\n0,0.1,a\n1,0.2,\n")
    with pytest.raises(ValueError, match=r"`g` \(groups\) has a missing value at row 1 of .*a.csv\. Every row needs a"):
        tc.scan(tmp_path / "a.csv", **COLUMNS)


# --- SQL --------------------------------------------------------------------------------------------------------------


def in_sqlite(groups=G):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (y INTEGER, p REAL, w REAL, g, site TEXT)")
    lines = zip(Y.tolist(), P.tolist(), W.tolist(), list(groups), SITE.tolist(), strict=True)
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", lines)
    return database


def query(**options):
    return tc.sketch_sql("t", **COLUMNS | {"dialect": "sqlite"} | options)


@pytest.mark.parametrize("weighted", [False, True])
def test_sql_gives_the_sketch_that_arrays_give(weighted):
    database = in_sqlite([int(g) for g in G])
    result = database.execute(query(sample_weight="w" if weighted else None)).fetchall()
    sketch = tc.sketch_from_rows(result, groups="g")
    assert_same_sketch(sketch, tc.Sketch(256).update(Y, P, W if weighted else None, groups=G))


def test_sql_gives_the_same_segments_and_takes_named_columns():
    cursor = in_sqlite(TEXT).execute(query(by="site"))
    lines = [dict(zip([name for name, *_ in cursor.description], line, strict=True)) for line in cursor]
    result = tc.sketch_from_rows(lines, by="site", groups="g")
    for site in ("a", "b"):
        own = np.flatnonzero(site == SITE)
        assert_same_sketch(result[site], tc.Sketch(256).update(Y[own], P[own], groups=[TEXT[i] for i in own]))


def test_sql_in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    database = duckdb.connect()
    database.register("t", table(TEXT))
    result = database.sql(query(sample_weight="w", dialect="duckdb")).to_arrow_table()
    assert_same_sketch(tc.sketch_from_rows(result, groups="g"), tc.Sketch(256).update(Y, P, W, groups=TEXT))


def test_sql_counts_missing_groups_and_invalid_rows():
    database = in_sqlite([None, None, *G[2:].tolist()])
    with pytest.raises(ValueError, match=r"`g` \(groups\) has a missing value in the result \(2 of 400 rows\)"):
        tc.sketch_from_rows(database.execute(query()).fetchall(), groups="g")
    database.execute("UPDATE t SET p = 1.5 WHERE g > 20")
    with pytest.raises(ValueError, match=r"`y_proba` must lie in \[0, 1\]; found 1.5 in the result \(\d+ of 400 rows"):
        tc.sketch_from_rows(database.execute(query()).fetchall(), groups="g")


def test_sql_needs_the_same_groups():
    result = in_sqlite([int(g) for g in G]).execute(query()).fetchall()
    with pytest.raises(ValueError, match="with the same `by`, `pos_label` and `groups`"):
        tc.sketch_from_rows(result)
    with pytest.raises(ValueError, match="`groups` must not name a column 'code': the result also has a column 'code'"):
        query(groups="code")
