"""Which files are meant, and what is said of files and rows that cannot be used: one line, with the file's name."""

import bz2
import gzip
import math
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from support.files import CSV, HEAD, refused, scan, write, write_text

from truthcal.io.files import parquet_arrow
from truthcal.io.files.source import Source

NAN, INF = math.nan, math.inf
GOOD = {"y": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0], "p": [0.1, 0.9, 0.2, 0.8, 0.3, 0.7], "w": [1.0] * 6}
# --- rows that cannot be used -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("p", 1, None, "`p` (y_proba) has a missing value (null or nan) at row 1 of {} (1 of {} rows read)"),
        ("p", 5, NAN, "`p` (y_proba) has a missing value (null or nan) at row 5 of {} (1 of {} rows read)"),
        ("y", 4, None, "`y` (y_true) has a missing value (null or nan) at row 4 of {} (1 of {} rows read)"),
        ("w", 5, NAN, "`w` (sample_weight) has a missing value (null or nan) at row 5 of {} (1 of {} rows read)"),
        ("p", 5, -INF, "`p` (y_proba) must contain finite numbers; found -inf at row 5 of {} (1 of {} rows read)"),
        ("w", 2, INF, "`w` (sample_weight) must contain finite numbers; found inf at row 2 of {} (1 of {} rows read)"),
        ("p", 5, 74.5, "`p` (y_proba) must lie in [0, 1]; found 74.5 at row 5 of {} (1 of {} rows read). Percentages? Divide by 100."),
        ("p", 0, -3.5, "`p` (y_proba) must lie in [0, 1]; found -3.5 at row 0 of {} (1 of {} rows read). Logits or scores?"),
        ("p", 4, 1.0000000000000002, "`p` (y_proba) must lie in [0, 1]; found 1.0000000000000002 at row 4 of {} (1 of {} rows read). Rounding error?"),
        ("y", 5, 2.0, "`y` (y_true) must contain 0/1, True/False or probabilities in [0, 1]; found 2.0 at row 5 of {} (1 of {} rows read)"),
        ("w", 5, -1.0, "`w` (sample_weight) must not be negative; found -1.0 at row 5 of {} (1 of {} rows read)"),
        ("w", 5, 1e-200, "`w` (sample_weight) must be 0 or between 1e-70 and 1e+70 for a sketch; found 1e-200 to 1e-200"),
        ("w", 5, 1e200, "`w` (sample_weight) must be 0 or between 1e-70 and 1e+70 for a sketch; found 1e+200 to 1e+200"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("batch", [1 << 20, 3])
def test_bad_rows_are_named_by_file_column_row_count_and_value(
    tmp_path, monkeypatch, column, row, value, message, batch
):
    """Rows count from 0 within the file, also in its second batch and in the second file."""
    monkeypatch.setattr(parquet_arrow, "BATCH", batch)
    write(tmp_path / "a.parquet", GOOD)
    bad = tmp_path / "b.parquet"
    write(bad, {**GOOD, column: [*GOOD[column][:row], value, *GOOD[column][row + 1 :]]})
    read = 6 if batch > 6 or row >= 3 else 3
    refused(ValueError, re.escape(message.format(bad, read)), tmp_path, sample_weight="w")
    refused(ValueError, re.escape(message.format(bad, read)), bad, sample_weight="w")
    if column != "w":
        refused(ValueError, re.escape(message.format(bad, read)), bad)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("p", [0.5, 40.0, 10.0, 90.0, -7.0, 0.1], "found 40.0 at row 1 of .*(4 of 6 rows"),
        ("p", [0.5, NAN, 0.1, -INF, INF, 0.1], "found -inf at row 3 of .*(3 of 6 rows"),
        ("y", [0.0, 1.0, 2.0, 3.0, 1.0, 1.0], "found 2.0 at row 2 of .*(2 of 6 rows"),
        ("w", [1.0, -1.0, -5.0, 1.0, 1.0, 1.0], "found -1.0 at row 1 of .*(2 of 6 rows"),
    ],
)
def test_the_value_and_the_row_of_an_error_belong_together(tmp_path, column, values, message):
    write(tmp_path / "a.parquet", {**GOOD, column: values})
    refused(ValueError, message.replace("(", r"\("), tmp_path, sample_weight="w")


def test_all_rows_like_the_first_bad_one_are_counted(tmp_path):
    write(tmp_path / "a.parquet", {**GOOD, "p": [0.5, 30.0, None, 20.0, NAN, 10.0]})
    refused(ValueError, r"missing value \(null or nan\) at row 2 of .*a\.parquet \(2 of 6 rows", tmp_path)
    write(tmp_path / "a.parquet", {**GOOD, "p": [0.5, 30.0, 0.1, 20.0, 0.2, 10.0]})
    refused(ValueError, r"found 30\.0 at row 1 of .*a\.parquet \(3 of 6 rows", tmp_path)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "arrow", "parquet"])
@pytest.mark.parametrize("column", ["y", "p"])
def test_columns_of_nothing_but_missing_values(tmp_path, ending, column):
    rows = {"y": [0, 1], "p": [0.5, 0.25], column: [None, None]}
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        path.write_text(
            "\n".join(
                [
                    HEAD,
                    *(",".join("" if v is None else str(v) for v in row) for row in zip(*rows.values(), strict=True)),
                ]
            )
        )
    elif ending == "jsonl":
        path.write_text(
            "\n".join(
                '{{"y":{},"p":{}}}'.format(*row)
                for row in zip(*(["null" if v is None else v for v in values] for values in rows.values()), strict=True)
            )
        )
    elif ending == "arrow":
        pa.feather.write_feather(pa.table(rows), path)
    else:
        pq.write_table(pa.table(rows), path)
    pattern = rf"`{column}` \(y_.*\) has a missing value \(null or nan\) at row 0 of .*a\.{ending} \(2 of 2 rows"
    refused(ValueError, pattern, path)
    for positive in (1, "yes") if column == "y" else ():
        refused(ValueError, pattern, path, pos_label=positive)


def test_missing_labels_in_text_files_are_no_label(tmp_path):
    path = write_text(tmp_path / "a.csv", HEAD + "yes,0.5\n,0.25\n")
    refused(
        ValueError, r"`y` \(y_true\) has a missing value \(null or nan\) at row 1 of .*a\.csv", path, pos_label="yes"
    )


def test_labels_that_do_not_fit(tmp_path):
    path = write_text(tmp_path / "a.csv", HEAD + "a,0.5\nb,0.25\nc,0.5\n")
    refused(ValueError, r"has more than two different labels \('a', 'b', 'c'\)", tmp_path, pos_label="a")
    refused(
        ValueError,
        r"`pos_label` must be one of the labels in `y` \('a', 'b', 'c', \.\.\.\); got 'z'",
        tmp_path,
        pos_label="z",
    )
    refused(
        ValueError,
        r"`pos_label` must have the same type as the labels in `y`, string in .*a\.csv; got 1",
        path,
        pos_label=1,
    )
    write(tmp_path / "a.parquet", GOOD)
    refused(
        ValueError,
        r"`pos_label` must have the same type as the labels .*a\.parquet; got '1'",
        tmp_path / "a.parquet",
        pos_label="1",
    )


def test_a_column_of_numbers_taken_for_labels_does_not_fill_memory(tmp_path):
    numbers = np.arange(1000.0)
    pq.write_table(pa.table({"y": numbers, "p": numbers / 1000}), tmp_path / "a.parquet")
    refused(ValueError, r"has more than two different labels", tmp_path, pos_label=1)


@pytest.mark.parametrize("block", [1 << 22, 128])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,abc,1", r"`p` \(y_proba\) must contain numbers; its type is text in .*a\.csv \('abc' at row 60\)"),
        ("0,50%,1", r"`p` \(y_proba\) must contain numbers; its type is text in .*a\.csv \('50%' at row 60\)"),
        ('0,"0,5",1', r"`p` \(y_proba\) must contain numbers; its type is text in .*a\.csv \('0,5' at row 60\)"),
        ("no,0.5,1", r"`y` \(y_true\) must contain numbers; its type is text in .*a\.csv \('no' at row 60\)\. Name the label .* `pos_label`"),
        ("0,0.5,one", r"`w` \(sample_weight\) must contain numbers; its type is text in .*a\.csv \('one' at row 60\)"),
    ],
)  # fmt: skip
def test_text_among_numbers_is_named_by_row_and_value(tmp_path, monkeypatch, block, line, message):
    """In the first block, by which columns are judged, and in a later one."""
    monkeypatch.setattr(Source, "BLOCK", block)
    path = write_text(tmp_path / "a.csv", "y,p,w\n" + "1,0.5,1\n0,0.1,2\n" * 30 + line + "\n")
    refused(TypeError, message, path, sample_weight="w")


def test_text_among_numbers_with_decimal_commas(tmp_path):
    path = write_text(tmp_path / "a.csv", "y;p\n1;0,5\n0;abc\n")
    refused(TypeError, r"its type is text in .*a\.csv \('abc' at row 1\)", path)


@pytest.mark.parametrize("block", [1 << 22, 128])
def test_json_lines_that_cannot_be_read(tmp_path, monkeypatch, block):
    monkeypatch.setattr(Source, "BLOCK", block)
    lines = '{"y": 1, "p": 0.5}\n' * 30
    path = write_text(tmp_path / "a.jsonl", lines + '{"y": 1, "p": "x"}\n')
    refused(ValueError, r"a\.jsonl: could not be read as JSON lines \(.*/p.* in row 30\)", path)
    write_text(path, lines + '{"y": \n')
    refused(ValueError, r"a\.jsonl: could not be read as JSON lines", path)
    write_text(path, '{"y": 1, "p": "0.5"}\n')
    refused(TypeError, r"`p` \(y_proba\) must contain numbers; its type is string in .*a\.jsonl", path)
    write_text(path, '[{"y": 1, "p": 0.5}]')
    refused(ValueError, r"a\.jsonl: could not be read as JSON lines", path)


def test_swapped_columns_and_no_weight(tmp_path):
    write(tmp_path / "a.parquet", {**GOOD, "w": [0.0] * 6})
    refused(ValueError, r"the arguments look swapped", tmp_path, y_true="p", y_proba="y")
    refused(ValueError, r"`sample_weight` is zero in every row|is zero in every row", tmp_path, sample_weight="w")


# --- columns that are not there, twice there, or of another kind ------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.arrow"])
def test_missing_columns_are_answered_with_those_there_are(tmp_path, name):
    rows = pa.table({"y": [1], "p": [0.5]})
    writers = {"a.parquet": pq.write_table, "a.arrow": pa.feather.write_feather}
    write_text(tmp_path / name, CSV if name == "a.csv" else '{"y": 1, "p": 0.5}')
    if name in writers:
        writers[name](rows, tmp_path / name)
    pattern = rf"{name} has no column '{{}}' \(named by `{{}}`\); it has 'y', 'p'"
    refused(ValueError, pattern.format("q", "y_proba"), tmp_path, y_proba="q")
    refused(ValueError, pattern.format("q", "by"), tmp_path, by="q")
    refused(ValueError, pattern.format("q", "sample_weight"), tmp_path, sample_weight="q")


def test_outcomes_are_not_read_from_paths(tmp_path):
    (tmp_path / "y=1").mkdir()
    pq.write_table(pa.table({"p": [0.5]}), tmp_path / "y=1" / "a.parquet")
    refused(ValueError, r"a\.parquet has no column 'y' \(named by `y_true`\)", tmp_path)
    pq.write_table(pa.table({"y": [0], "p": [0.5]}), tmp_path / "y=1" / "a.parquet")
    assert scan(tmp_path).bias() == 0.5


def test_columns_of_the_same_name(tmp_path):
    write_text(tmp_path / "a.csv", "y,p,p\n1,0.5,0.5\n")
    refused(ValueError, r"a\.csv has 2 columns named 'p'; rename all but one", tmp_path)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([0.5]), pa.array([0.5])], names=["y", "p", "p"])
    pq.write_table(twice, tmp_path / "a.parquet")
    refused(ValueError, r"a\.parquet has 2 columns named 'p'", tmp_path / "a.parquet")


def test_groups_of_different_kinds_in_two_files(tmp_path):
    for name, values in [("a", [1, 2]), ("b", ["1", "2"])]:
        pq.write_table(pa.table({"y": [0, 1], "p": [0.5, 0.25], "g": values}), tmp_path / f"{name}.parquet")
    refused(ValueError, r"`g` \(by\) is a number in .*a\.parquet but text in .*b\.parquet", tmp_path, by="g")
    pq.write_table(pa.table({"y": [0, 1], "p": [0.5, 0.25], "g": pa.nulls(2)}), tmp_path / "b.parquet")
    assert list(scan(tmp_path, by="g")) == [1, 2, None]


def test_columns_that_hold_no_plain_values(tmp_path):
    pq.write_table(pa.table({"y": [0, 1], "p": [0.5, 0.25], "g": [[1], [2]]}), tmp_path / "a.parquet")
    refused(
        TypeError, r"`g` \(by\) must contain text, numbers or dates; it is list.* in .*a\.parquet", tmp_path, by="g"
    )
    refused(
        TypeError, r"`g` \(y_proba\) must contain numbers; its type is list.* in .*a\.parquet", tmp_path, y_proba="g"
    )
    refused(
        TypeError,
        r"`g` \(y_true\) must contain labels.*; its type is list.* in .*a\.parquet",
        tmp_path,
        y_true="g",
        pos_label=1,
    )


# --- files that are not there, empty, or not what they seem -----------------------------------------------------------


def test_files_that_are_not_there(tmp_path):
    good = write_text(tmp_path / "a.csv", CSV)
    refused(FileNotFoundError, r"nosuch\.csv: no such file", tmp_path / "nosuch.csv")
    refused(FileNotFoundError, r"nosuch\.csv: no such file", [good, tmp_path / "nosuch.csv"])
    refused(FileNotFoundError, r"a\.csv/x\.csv: no such file", good / "x.csv")
    refused(FileNotFoundError, r"b\*\.csv: no file matches this pattern", str(tmp_path / "b*.csv"))
    (tmp_path / "void").mkdir()
    refused(FileNotFoundError, r"void: no data file in this folder \(\.parquet, ", tmp_path / "void")
    refused(ValueError, r"`paths` is empty", [])
    refused(TypeError, r"`paths` must be a file, a pattern .*; got 5", 5)
    refused(TypeError, r"`paths` must contain names of files; got 5", [5])
    refused(TypeError, r"`paths` must be a file, a pattern .*; got b'a\.csv'", b"a.csv")


def test_unknown_endings(tmp_path):
    path = write_text(tmp_path / "a.stuff", "x")
    refused(ValueError, r"a\.stuff: the extension determines the format, and it must be \.parquet, ", path)
    refused(ValueError, r"a\.stuff: the extension determines the format", str(tmp_path / "*"))


def test_files_without_rows(tmp_path):
    no_rows = r"{} has no rows; at least one is needed\."
    refused(ValueError, r"a\.csv: the file is empty", write_text(tmp_path / "a.csv", ""))
    refused(ValueError, r"a\.csv: the file is empty", write_text(tmp_path / "a.csv", "\n\n"))
    refused(ValueError, no_rows.format(r"b\.csv"), write_text(tmp_path / "b.csv", HEAD))
    refused(ValueError, no_rows.format(r"c\.csv"), write_text(tmp_path / "c.csv", HEAD.strip()))
    refused(ValueError, no_rows.format(r"d\.jsonl"), write_text(tmp_path / "d.jsonl", ""))
    empty = pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())})
    pq.write_table(empty, tmp_path / "e.parquet")
    pa.feather.write_feather(empty, tmp_path / "f.feather")
    refused(ValueError, no_rows.format(r"e\.parquet"), tmp_path / "e.parquet")
    refused(ValueError, no_rows.format(r"f\.feather"), tmp_path / "f.feather")
    paths = [tmp_path / name for name in ("b.csv", "c.csv", "d.jsonl", "e.parquet", "f.feather")]
    refused(ValueError, no_rows.format("^each of these 5 files"), paths)
    assert scan([*paths, write_text(tmp_path / "g.csv", CSV)]).n == 2


PARQUET = pa.BufferOutputStream()
pq.write_table(pa.table({name: GOOD[name] * 50 for name in GOOD}), PARQUET, compression="snappy", use_dictionary=False)
PARQUET = PARQUET.getvalue().to_pybytes()
FEATHER = pa.BufferOutputStream()
pa.feather.write_feather(pa.table(GOOD), FEATHER, compression="uncompressed")
FEATHER = FEATHER.getvalue().to_pybytes()
BAD = {
    "cut in the middle.parquet": PARQUET[: len(PARQUET) // 2],
    "cut at the end.parquet": PARQUET[:-5],
    "nothing.parquet": b"",
    "text.parquet": CSV.encode(),
    "garbage in a page.parquet": PARQUET[:60] + b"\xff" * 200 + PARQUET[260:],
    "table.csv": PARQUET,
    "sixteen bits.csv": CSV.encode("utf-16"),
    "open quote.csv": '"y,p\n' + "1,0.5\n" * 50_000,
    "ragged.csv": CSV + "0,0.5,7\n",
    "short line.csv": CSV + "0\n",
    "bad letters.csv": b"y,p,g\n1,0.5,\xff\xfe\n",
    "cut.csv.gz": gzip.compress(CSV.encode())[:-8],
    "text.csv.gz": CSV,
    "cut.csv.bz2": bz2.compress(CSV.encode())[:-8],
    "text.jsonl": CSV,
    "cut.feather": FEATHER[:-20],
    "middle.arrow": FEATHER[: len(FEATHER) // 2],
    "text.arrow": CSV,
    "nothing.arrow": b"",
}


@pytest.mark.parametrize("name", BAD)
def test_damaged_files_among_good_ones_are_named(tmp_path, name):
    for good in ("a.csv", "z.csv"):
        write_text(tmp_path / good, "y,p,g\n1,0.5,x\n")
    path = write_text(tmp_path / name, BAD[name])
    form = {"parquet": "Parquet", "jsonl": "JSON lines", "feather": "Arrow", "arrow": "Arrow"}.get(
        path.suffix[1:], "CSV"
    )
    by = {"by": "g"} if name == "bad letters.csv" else {}
    refused((ValueError, OSError), rf"^{re.escape(str(path))}: could not be read as {form} \(", tmp_path, **by)


def test_a_changed_byte_in_a_checked_page_is_found(tmp_path):
    """Spark writes checksums; without them nobody could tell."""
    path = tmp_path / "a.parquet"
    rows = pa.table({"y": [0.0, 1.0] * 50, "p": [0.25, 0.75] * 50})
    pq.write_table(rows, path, write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[data.index(np.array([0.25, 0.75]).tobytes()) + 5] ^= 1
    path.write_bytes(data)
    refused(OSError, r"a\.parquet: could not be read as Parquet \(.*checksum", path)


def test_a_damaged_index_into_text_does_not_crash(tmp_path):
    rows = pa.table({"y": [0, 1], "p": [0.5, 0.25], "g": ["aa", "bb"]})
    pa.feather.write_feather(rows, tmp_path / "a.arrow", compression="uncompressed")
    data = (tmp_path / "a.arrow").read_bytes()
    offsets = np.array([0, 2, 4], np.int32).tobytes()
    assert data.count(offsets) == 1
    write_text(tmp_path / "a.arrow", data.replace(offsets, np.array([0, 2, 1 << 30], np.int32).tobytes()))
    refused(ValueError, r"a\.arrow: could not be read as Arrow \(", tmp_path, by="g")


# --- which files are meant --------------------------------------------------------------------------------------------


def test_folders_as_spark_leaves_them(tmp_path):
    for name, data in [("_SUCCESS", ""), (".part-0.csv.crc", "x"), ("part-0.csv", CSV), ("part-1.csv", ""), ("part-2.jsonl", ""), ("part-3.csv", CSV), ("part-4.csv", HEAD), ("_temporary/0/part-9.csv", CSV), ("deep/er/part-5.csv", CSV), ("notes.md", "x")]:  # fmt: skip
        write_text(tmp_path / "out.csv" / name, data)
    refused(
        ValueError,
        r"out\.csv/notes\.md: the extension is unknown, so the format cannot be determined, and skipping it could lose rows",
        tmp_path / "out.csv",
    )
    assert scan(str(tmp_path / "out.csv" / "part-*")).n == 4
    (tmp_path / "out.csv" / "notes.md").unlink()
    assert scan(tmp_path / "out.csv").n == 6
    assert scan(str(tmp_path / "out.csv" / "*")).n == 6
    refused(ValueError, r"part-1\.csv: the file is empty", tmp_path / "out.csv" / "part-1.csv")


def test_patterns_name_each_file_once(tmp_path):
    for name in ("a.csv", "b/c.csv", "b/d/e.csv"):
        write_text(tmp_path / name, CSV)
    for pattern in ("**", "**/*.csv", "**/*"):
        assert scan(tmp_path / pattern).n == 6
        assert scan(str(tmp_path / pattern)).n == 6
    assert scan(str(tmp_path / "*")).n == 6
    assert scan(str(tmp_path / "*.csv")).n == 2
    assert scan([str(tmp_path / "*.csv"), tmp_path / "b"]).n == 6
    assert scan(path for path in [tmp_path / "a.csv", str(tmp_path / "b")]).n == 6


def test_a_file_named_like_a_pattern(tmp_path):
    write_text(tmp_path / "a[1].csv", CSV)
    assert scan(str(tmp_path / "a[1].csv")).n == 2


def test_files_named_twice_are_refused(tmp_path, monkeypatch):
    path = write_text(tmp_path / "a.csv", CSV)
    os.symlink(path, tmp_path / "link.csv")
    monkeypatch.chdir(tmp_path)
    for twice in (
        [path, path],
        [path, "a.csv"],
        ["a.csv", str(tmp_path / "a*.csv")],
        [tmp_path, "a.csv"],
        ["a.csv", "link.csv"],
    ):
        refused(ValueError, r"(a|link)\.csv: named twice.*, so its rows would count twice", twice)
