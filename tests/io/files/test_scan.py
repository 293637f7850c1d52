"""Files of every format, kind of column and division give the sketches that arrays give."""

import bisect
import datetime
import decimal
import gzip
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.grid import edges_of
from support.engines import needs
from support.rows import PROBA, SITE, TRUE, WEIGHT, YEAR, B, assert_same, numbers, table

import truthcal as tc
from truthcal.io import row_codes
from truthcal.io.assemble import build_sketch
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files import parquet_arrow
from truthcal.io.files.accumulate import BucketAccumulator, codes_of_batch
from truthcal.io.files.source import Source

N = len(PROBA)
LABEL = [int(y) for y in TRUE]
ROWS = table(y=LABEL)


def scan(paths, **given):
    return tc.scan(paths, **{"y_true": "y", "y_proba": "p", "n_buckets": B, **given})


# --- formats ----------------------------------------------------------------------------------------------------------


def text(delimiter=",", point=".", newline="\n", odd="plain"):
    """The rows with floats as Python writes them, which every reader must read back to the last bit."""
    lines = [["y", "odd", "p", "w"]]
    lines += [[str(y), odd, repr(p), repr(w)] for y, p, w in zip(LABEL, PROBA, WEIGHT, strict=True)]
    decimal_point = [[field.replace(".", point) for field in line] for line in lines]
    return newline.join(delimiter.join(line) for line in [*decimal_point, []]).encode()


def parquet_of_duckdb(path):
    needs("duckdb").connect().from_arrow(ROWS).write_parquet(str(path), row_group_size=2048)


def arrow_file(path, new):
    with new(str(path), ROWS.schema) as writer:
        writer.write_table(ROWS, max_chunksize=7)


JSON = "\n".join(
    json.dumps({"y": y, "more": {"x": [1]}, "p": p, "w": w}) for y, p, w in zip(LABEL, PROBA, WEIGHT, strict=True)
).encode()
WRITERS = {
    "a.parquet": lambda path: pq.write_table(ROWS, path, row_group_size=10),
    "plain.pq": lambda path: pq.write_table(ROWS, path, use_dictionary=False, compression="none", data_page_size=64),
    "checked.parquet": lambda path: pq.write_table(ROWS, path, write_page_checksum=True, compression="zstd"),
    "polars.parquet": lambda path: needs("polars").from_arrow(ROWS).write_parquet(path, row_group_size=10),
    "duckdb.parquet": parquet_of_duckdb,
    "a.csv": lambda path: path.write_bytes(text()),
    "mark.csv": lambda path: path.write_bytes(b"\xef\xbb\xbf" + text()),
    "windows.csv": lambda path: path.write_bytes(text(newline="\r\n")),
    "old mac.csv": lambda path: path.write_bytes(text(newline="\r")),
    "blank lines.csv": lambda path: path.write_bytes(b"\n\n" + text()),
    "no last line end.csv": lambda path: path.write_bytes(text().rstrip()),
    "quoted.csv": lambda path: path.write_bytes(text(odd='"a, ""b""\nand c;\t|"')),
    "a.tsv": lambda path: path.write_bytes(text("\t")),
    "a.txt": lambda path: path.write_bytes(text("|")),
    "semicolons.csv": lambda path: path.write_bytes(text(";")),
    "commas.csv": lambda path: path.write_bytes(text(";", ",")),
    "commas.tsv": lambda path: path.write_bytes(text("\t", ",")),
    "a.csv.gz": lambda path: path.write_bytes(gzip.compress(text())),
    "two.csv.gz": lambda path: path.write_bytes(gzip.compress(text()[:500]) + gzip.compress(text()[500:])),
    "a.csv.zst": lambda path: path.write_bytes(pa.compress(text(), codec="zstd", asbytes=True)),
    "a.jsonl": lambda path: path.write_bytes(JSON),
    "a.ndjson.gz": lambda path: path.write_bytes(gzip.compress(JSON)),
    "a.arrow": lambda path: arrow_file(path, pa.ipc.new_file),
    "a.arrows": lambda path: arrow_file(path, pa.ipc.new_stream),
    "stream.arrow": lambda path: arrow_file(path, pa.ipc.new_stream),
    "a.feather": lambda path: pa.feather.write_feather(ROWS, path, compression="lz4"),
    "zstd.feather": lambda path: pa.feather.write_feather(ROWS, path, compression="zstd", chunksize=9),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_sketch_that_arrays_give(tmp_path, monkeypatch, name):
    WRITERS[name](tmp_path / name)
    plain, weighted = tc.Sketch(B).update(LABEL, PROBA), tc.Sketch(B).update(LABEL, PROBA, WEIGHT)
    for batch, block in [(1 << 20, 1 << 22), (4, 512), (1, 128)]:  # rows and bytes of a batch
        monkeypatch.setattr(parquet_arrow, "BATCH", batch)
        monkeypatch.setattr(Source, "BLOCK", block)
        assert_same(scan(tmp_path / name), plain)
        assert_same(scan(str(tmp_path / name), sample_weight="w"), weighted)


# --- kinds of columns -------------------------------------------------------------------------------------------------

WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
KINDS = [*WHOLE, pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 4), pa.decimal256(40, 2)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_outcomes_and_certain_predictions_of_every_kind(tmp_path, kind):
    certain = [i % 2 for i in range(N)]
    make = (
        bool
        if kind == pa.bool_()
        else np.float16
        if kind == pa.float16()
        else decimal.Decimal
        if pa.types.is_decimal(kind)
        else int
    )
    y, q = (pa.array([make(value) for value in values], kind) for values in (LABEL, certain))
    pa.feather.write_feather(table(y=y, q=q), tmp_path / "a.arrow")
    assert_same(scan(tmp_path), tc.Sketch(B).update(LABEL, PROBA))
    assert_same(scan(tmp_path, y_proba="q"), tc.Sketch(B).update(LABEL, certain))


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.decimal128(38, 20), pa.decimal128(9, 4)], ids=str)
def test_predictions_of_every_kind(tmp_path, kind):
    short = [k / B for k in range(B + 1)] + [0.1, 0.2, 0.3, 0.7]
    given = [decimal.Decimal(repr(p)) if pa.types.is_decimal(kind) else np.float16(p) for p in short]
    given = [value.quantize(decimal.Decimal("0.0001")) if kind == pa.decimal128(9, 4) else value for value in given]
    column = pa.array(given, kind if kind != pa.float32() else pa.float16()).cast(kind)
    y = [k % 2 for k in range(len(short))]
    pq.write_table(pa.table({"y": y, "p": column}), tmp_path / "a.parquet")
    assert_same(scan(tmp_path), tc.Sketch(B).update(y, numbers(column)))


WORDS = pa.array(["yes" if y else "no" for y in TRUE])


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (WORDS, "yes"),
        (WORDS.dictionary_encode(), "yes"),
        (WORDS.cast(pa.large_string()), "yes"),
        (pa.array([2 if y else 1 for y in TRUE], pa.int16()), 2),
        (pa.array([1.0 if y else -1.0 for y in TRUE]), 1),
        (pa.array([2 if y else 1 for y in TRUE]).dictionary_encode(), 2),
        (pa.array(TRUE), True),
    ],
    ids=lambda given: str(getattr(given, "type", given)),
)
def test_labels_of_every_kind(tmp_path, labels, positive):
    pq.write_table(table(y=labels), tmp_path / "a.parquet", row_group_size=11)
    assert_same(scan(tmp_path, pos_label=positive), tc.Sketch(B).update(TRUE, PROBA))


@pytest.mark.parametrize(("one", "zero", "positive"), [("yes", "no", "yes"), ("2", "1", 2), ("1", "0", "1"), ("True", "False", True), ("NA", "007", "NA")])  # fmt: skip
def test_labels_in_text_files(tmp_path, one, zero, positive):
    lines = [f"{one if y else zero},{p!r}" for y, p in zip(TRUE, PROBA, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["y,p", *lines]))
    assert_same(scan(tmp_path, pos_label=positive), tc.Sketch(B).update(TRUE, PROBA))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_columns_that_begin_with_whole_numbers_and_go_on_with_fractions(tmp_path, monkeypatch, ending):
    """At the size of blocks that is in use, and at a small one. So, too, columns whose first block is empty."""
    rows = [(1, 1, 1)] * 300_000 + [(0.25, 0.5, 0.5)]
    expected = tc.Sketch(B).update([y for y, _, _ in rows], [p for _, p, _ in rows], [w for _, _, w in rows])
    line = '{"y":%s,"p":%s,"w":%s,"void":null}' if ending == "jsonl" else "%s,%s,%s,"
    lines = [line % row for row in rows]
    path = tmp_path / f"a.{ending}"
    path.write_text(
        "\n".join(
            [
                *(["y,p,w,void"] if ending == "csv" else []),
                *lines,
                lines[0].replace("null", '"x"') + ("x" if ending == "csv" else ""),
            ]
        )
    )
    expected = expected + tc.Sketch(B).update([1], [1.0], [1.0])
    for block in (1 << 22, 1 << 14):
        monkeypatch.setattr(Source, "BLOCK", block)
        assert_same(scan(path, sample_weight="w"), expected)
        assert set(scan(path, by="void")) == {"x", None}


def test_labels_that_begin_with_nothing_or_whole_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(Source, "BLOCK", 64)
    (tmp_path / "a.csv").write_text("y,p\n" + "1,0.5\n" * 20 + "two,0.25\n")
    expected = tc.Sketch(B).update([0] * 20 + [1], [0.5] * 20 + [0.25])
    assert_same(scan(tmp_path, pos_label="two"), expected)
    (tmp_path / "a.csv").write_text("y,p\n" + "1,0.5\n" * 20 + "2.0,0.25\n")
    assert_same(scan(tmp_path, pos_label=2), expected)


# --- groups -----------------------------------------------------------------------------------------------------------


def assert_groups(result, keys, y, p, w=None):
    """As if each group had been put into a sketch of its own."""
    columns = [column for column in (y, p, w) if column is not None]
    rows = {}
    for i, key in enumerate(keys):
        if w is None or w[i] > 0:
            rows.setdefault(key, []).append(i)
    assert set(result) == set(rows)
    for key, own in rows.items():
        assert_same(result[key], tc.Sketch(result.n_buckets).update(*([column[i] for i in own] for column in columns)))


DAYS = [datetime.date(2026, 1, 1 + i % 3) for i in range(N)]
FLOATS = [(0.5, math.nan, None, -0.0)[i % 4] for i in range(N)]
GROUPS = {
    "site": SITE,
    "year": YEAR,
    "day": DAYS,
    "flag": TRUE,
    "kind": pa.array(SITE).dictionary_encode(),
    "long": pa.array(SITE, pa.large_string()),
    "number": FLOATS,
    "void": pa.nulls(N),
}


@pytest.mark.parametrize("by", [*GROUPS, ["site", "year"], ["day", "kind", "flag", "number"]], ids=str)
@pytest.mark.parametrize("batch", [1 << 20, 3])
def test_groups_over_batches_files_and_formats(tmp_path, monkeypatch, by, batch):
    monkeypatch.setattr(parquet_arrow, "BATCH", batch)
    rows = table(y=LABEL, **GROUPS)
    pq.write_table(rows.slice(0, 13), tmp_path / "a.parquet", row_group_size=5)
    pa.feather.write_feather(rows.slice(13, 9), tmp_path / "b.arrow")
    pq.write_table(rows.slice(22), tmp_path / "c.parquet", row_group_size=7)
    names = [by] if isinstance(by, str) else by
    values = [rows[name].to_pylist() for name in names]
    keys = [tuple(None if v is None or v != v else v for v in key) for key in zip(*values, strict=True)]
    keys = [key[0] for key in keys] if isinstance(by, str) else keys
    assert_groups(scan(tmp_path, by=by, sample_weight="w"), keys, LABEL, PROBA, WEIGHT)
    assert_groups(scan(tmp_path, by=by), keys, LABEL, PROBA)


def test_two_thousand_groups_with_different_dictionaries(tmp_path):
    rng = np.random.default_rng(0)
    n = 16_000
    p, group = rng.random(n), np.arange(n) // 8  # each row group has groups of its own
    rows = pa.table({"y": (rng.random(n) < p).astype(np.int8), "p": p, "g": [f"user {k}" for k in group]})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=3_999)
    result = scan(tmp_path, by="g")
    assert len(result) == 2_000
    assert_groups(result, rows["g"].to_pylist(), rows["y"].to_pylist(), p.tolist())


def test_categories_without_rows_take_no_room(tmp_path):
    """Two columns of 3,000 categories each: nine million pairs, of which four occur."""
    category = pa.array([f"c{i}" for i in range(3_000)])
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2_999, 0], pa.int32()), category)
    rows = pa.table({"y": [0, 1, 0, 1], "p": [0.25, 0.5, 0.75, 1.0], "a": one, "b": one.take(pa.array([3, 2, 1, 0]))})
    pa.feather.write_feather(rows, tmp_path / "a.arrow")
    assert set(scan(tmp_path, by=["a", "b"])) == {("c0", "c0"), ("c1", "c2999"), ("c2999", "c1")}
    assert set(scan(tmp_path, by="a")) == {"c0", "c1", "c2999"}


def test_groups_in_paths(tmp_path):
    for i, (country, day) in enumerate([("fr", "2026-01-01"), ("fr", "2026-01-02"), ("c%C3%B4te%20x", "2026-01-01"), ("__HIVE_DEFAULT_PARTITION__", "2026-01-01")]):  # fmt: skip
        folder = tmp_path / f"country={country}" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(table(y=LABEL).slice(8 * i, 8), folder / "part-0.parquet")
    where = ["fr"] * 16 + ["côte x"] * 8 + [None] * 8
    first, second = datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)
    days = [first] * 8 + [second] * 8 + [first] * 16
    y, p = LABEL[:32], PROBA[:32]
    assert_groups(scan(tmp_path, by="country"), where, y, p)
    assert_groups(scan(tmp_path / "*" / "*", by=["day", "country"]), list(zip(days, where, strict=True)), y, p)
    keys = list(zip(days, SITE, strict=False))
    assert_groups(scan(str(tmp_path / "**/*.parquet"), by=["day", "site"]), keys, y, p)


def test_groups_of_text_files_are_told_apart_by_their_text(tmp_path):
    (tmp_path / "a.csv").write_text("y,p,g\n1,0.5,007\n0,0.25,7\n1,0.5,NA\n0,0.5,\n")
    (tmp_path / "b.csv").write_text('y,p,g\n1,0.5,x\n0,0.25,7.0\n1,0.5,""\n0,0.5,nan\n1,0.5,"null"\n')
    assert set(scan(tmp_path, by="g")) == {"007", "7", "NA", None, "", "x", "7.0", "nan", "null"}


# --- any rows, any division -------------------------------------------------------------------------------------------

# With fractions for outcomes, no predictions of 0 and 1: a group of nothing else would look swapped to the oracle.
LABELLED = st.tuples(st.sampled_from([0.0, 1.0]), st.one_of(st.sampled_from(PROBA), st.floats(0, 1)))
FRACTIONS = st.tuples(st.sampled_from([0.0, 1.0, 0.3]), st.floats(0.125, 0.875, width=32))
OTHERS = st.tuples(st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([None, "a", "b"]))
ANY_ROWS = st.one_of(*(st.lists(st.tuples(rows, OTHERS), min_size=1, max_size=30) for rows in (LABELLED, FRACTIONS)))


@given(rows=ANY_ROWS, cuts=st.lists(st.integers(0, 30), max_size=3), batch=st.integers(1, 9), ending=st.sampled_from(["parquet", "jsonl", "arrow"]))  # fmt: skip
def test_any_division_gives_what_the_whole_gives(tmp_path_factory, rows, cuts, batch, ending):
    y, p, w, g = (list(column) for column in zip(*(one + two for one, two in rows), strict=True))
    whole = pa.table({"y": y, "p": p, "w": w, "g": pa.array(g, pa.string())})
    folder = tmp_path_factory.mktemp("parts")
    edges = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    for first, last in itertools.pairwise(edges):
        path, part = folder / f"{first:02}.{ending}", whole.slice(first, last - first)
        if ending == "parquet":
            pq.write_table(part, path, row_group_size=batch + 1)
        elif ending == "arrow":
            pa.feather.write_feather(part, path)
        else:
            path.write_text("\n".join(json.dumps(row) for row in part.to_pylist()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_arrow, "BATCH", batch)
        patch.setattr(Source, "BLOCK", 128)
        assert_same(scan(folder), tc.Sketch(B).update(y, p))
        assert_groups(scan(folder, by="g"), g, y, p)
        if any(w):
            assert_same(scan(folder, sample_weight="w"), tc.Sketch(B).update(y, p, w))
            assert_groups(scan(folder, by="g", sample_weight="w"), g, y, p, w)


# --- the filler -------------------------------------------------------------------------------------------------------


EDGES = [float(edge) for edge in edges_of(B)]


def slow_sums(y, p, w):
    """Sums for each bucket, from the definitions, correctly rounded."""
    kept = [(a, b, c) for a, b, c in zip(y, p, w, strict=True) if c > 0]
    terms = {}
    for a, b, c in kept:
        d = b - a
        row = (
            1.0,
            c,
            c * c,
            c * b,
            max(c * d, 0.0),
            max(-c * d, 0.0),
            c * d * b,
            c * d * d,
            (c * d) ** 2,
            c * c * b * (1 - b),
            c * c * d,
            c**3,
            c**4,
        )
        terms.setdefault(min(bisect.bisect_right(EDGES, b) - 1, B - 1), []).append((row, b, c))
    sums = {
        k: [math.fsum(column) for column in zip(*(row for row, _, _ in rows), strict=True)] for k, rows in terms.items()
    }
    extremes = {
        k: (min(b for _, b, _ in rows), *(max(x) for x in list(zip(*rows, strict=True))[1:]))
        for k, rows in terms.items()
    }
    return {k: (*sums[k], *extremes[k]) for k in sorted(terms)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by", [None, "g"])
def test_filler_against_slow_sums(weighted, by):
    """Batches of labels, then of fractions, then of both, of either precision, with more rows than one thread takes."""
    rng = np.random.default_rng(1)
    n = 1 << 18
    p = np.concatenate([PROBA, rng.random(n - N)])
    y = (rng.random(n) < p).astype(np.float64)
    y[n // 2 :: 3] = rng.integers(0, 5, len(y[n // 2 :: 3])) / 4
    w = rng.integers(0, 4, n) / 2 if weighted else np.ones(n)
    p[n // 2 + 5 : n // 2 + 5000] = np.float32(p[n // 2 + 5 : n // 2 + 5000])
    group = rng.integers(0, 3, n).astype(np.int32)
    roles = ColumnRoles.of("y", "p", "w" if weighted else None, by, None)
    filler = BucketAccumulator(roles, B)
    for first, last, kinds in [(0, n // 2, (np.uint8, np.float64)), (n // 2, n // 2 + 5, (np.float64, np.float64)), (n // 2 + 5, n // 2 + 5000, (np.float64, np.float32)), (n // 2 + 5000, n, (np.float64, np.float64))]:  # fmt: skip
        rows = slice(first, last)
        groups = (group[rows], [("a",), ("b",), ("c",)]) if by else None
        filler.add(
            y[rows].astype(kinds[0]),
            p[rows].astype(kinds[1]),
            w[rows] if weighted else None,
            groups,
            range(first, last),
            "here",
        )
    result = build_sketch(*filler.table(), roles, B, "here")
    for g in range(3) if by else [None]:
        own = slice(None) if g is None else np.flatnonzero(group == g)
        code, columns = (result if g is None else result["abc"[g]])._filled()
        expected = slow_sums(y[own].tolist(), p[own].tolist(), w[own].tolist())
        assert code.tolist() == list(expected)
        rows = zip(row_codes.WEIGHTED, columns, zip(*expected.values(), strict=True), strict=True)
        for name, found, wanted in rows:
            np.testing.assert_allclose(
                found, wanted, rtol=0 if name in ("n", "low", "high", "top") else 1e-11, atol=1e-10
            )


def test_row_codes_against_the_rules():
    values = [0.0, -0.0, 0.5, 1.0, math.nan, math.inf, -math.inf, -0.1, 1.1]
    weights = [0.0, 1.0, math.nan, math.inf, -1.0, 1e-200, 1e200]
    rows = np.array([(y, p, w) for y in values for p in values for w in weights]).T

    def code(y, p, w):
        for x, missing, nonfinite, outside in [(y, -2, -3, -4), (p, -5, -6, -7)]:
            if x != x:
                return missing
            if abs(x) == math.inf:
                return nonfinite
            if not 0 <= x <= 1:
                return outside
        if w is None or w == 1:
            return 0
        return {0.0: -1, math.inf: -9, -1.0: -10}.get(w, -8 if w != w else -11)

    assert codes_of_batch(*rows).tolist() == [code(*row) for row in rows.T]
    assert codes_of_batch(*rows[:2], None).tolist() == [code(y, p, None) for y, p, _ in rows.T]


# --- interrupted, and watched -----------------------------------------------------------------------------------------

SLOW = """
import sys, time
import truthcal as tc
from truthcal.io.files import parquet_arrow
from truthcal.io.files.source import Source
parquet_arrow.BATCH = 1
true = Source.batches
def slowly(source, roles, checksum):
    for batch in true(source, roles, checksum):
        print("read", flush=True)
        time.sleep(float(sys.argv[3]))
        yield batch
Source.batches = slowly
try:
    tc.scan(sys.argv[1], y_true="y", y_proba="p").save(sys.argv[2])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_scan_that_is_killed_leaves_nothing(tmp_path, sign):
    pq.write_table(ROWS, tmp_path / "a.parquet")
    out = tmp_path / "out" / "week.sketch"
    out.parent.mkdir()
    out.write_bytes(b"what was there")
    arguments = [sys.executable, "-c", SLOW, str(tmp_path / "a.parquet"), str(out), "30"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "read\n"
        process.send_signal(sign)
        rest = process.communicate(timeout=20)[0]
    assert rest == ("interrupted\n" if sign == signal.SIGINT else "")
    assert [path.name for path in out.parent.iterdir()] == ["week.sketch"]
    assert out.read_bytes() == b"what was there"


@pytest.mark.parametrize("watched", [True, False])
def test_a_long_scan_draws_a_line_on_a_terminal_and_nowhere_else(tmp_path, watched):
    pq.write_table(ROWS.slice(0, 8), tmp_path / "a.parquet")
    ours, theirs = os.openpty() if watched else os.pipe()[::1]
    arguments = [sys.executable, "-c", SLOW, str(tmp_path / "a.parquet"), str(tmp_path / "out"), "0.2"]
    subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=theirs, check=True, timeout=40)
    time.sleep(0.05)
    os.set_blocking(ours, False)
    try:
        drawn = os.read(ours, 10_000).decode()
    except BlockingIOError:
        drawn = ""
    os.close(ours)
    os.close(theirs)
    assert drawn.startswith("\rreading [#") if watched else drawn == ""
    assert drawn.endswith("\r") == watched
    assert (tmp_path / "out").exists()
