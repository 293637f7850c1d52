"""Copies of files with one more column: other columns stay as they are, in every format."""

import csv
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.add_column import add_column
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.preview import preview_columns

P = [0.0, 0.1, 0.25, 1.0]


def copy(path, name="p", new="q"):
    out = io.BytesIO()
    rows, missing = add_column(find_sources([str(path)])[0], name, new, lambda p: (p + 1.0) / 3.0, out)
    assert missing == 0
    return rows, out.getvalue()


def expected(p):
    return [(float(x) + 1.0) / 3.0 for x in p]


def test_csv_keeps_the_text_of_other_columns(tmp_path):
    (tmp_path / "a.csv").write_text('id,p,"name, full"\n007,0.10,"a ""b"", c"\n\n2,2.5e-1,é\n', encoding="utf-8")
    n, data = copy(tmp_path / "a.csv")
    header, *rows = csv.reader(io.StringIO(data.decode()))
    assert (n, header) == (2, ["id", "p", "name, full", "q"])
    assert [row[:3] for row in rows] == [["007", "0.10", 'a "b", c'], ["2", "2.5e-1", "é"]]
    assert [float(row[3]) for row in rows] == expected([0.1, 0.25])


def test_csv_with_other_delimiters_and_compression(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfp;x\r\n0,5;a\r\n0,25;b\r\n"))
    _, data = copy(tmp_path / "a.csv.gz")
    assert data.decode() == "p;x;q\n0,5;a;0,5\n0,25;b;0,4166666666666667\n"


def test_json_lines_keep_their_text(tmp_path):
    lines = ['{"p": 0.10, "big": 12345678901234567890, "x": [1, 2]}', '{"x": "}", "p": 1}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    n, data = copy(tmp_path / "a.jsonl")
    found = data.decode().splitlines()
    assert n == 2
    assert [line.startswith(old[:-1]) for line, old in zip(found, lines, strict=True)] == [True, True]
    assert [json.loads(line)["q"] for line in found] == expected([0.1, 1])


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows"])
def test_tables_keep_their_types(tmp_path, kind):
    table = pa.table({"p": pa.array(P, pa.float32()), "d": pa.array([1, 2, 3, 4], pa.date32()), "s": list("abcd")})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=3)
    else:
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    n, data = copy(path)
    (tmp_path / f"b.{kind}").write_bytes(data)
    if kind == "parquet":
        found = pq.read_table(tmp_path / f"b.{kind}")
    else:
        found = (pa.ipc.open_file if kind == "arrow" else pa.ipc.open_stream)(data).read_all()
    assert n == 4
    assert found.drop(["q"]).equals(table)
    assert found["q"].to_pylist() == expected(np.array(P, np.float32).astype(float))


def test_rows_are_counted_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("truthcal.io.files.add_column._ROWS", 2)
    (tmp_path / "a.csv").write_text("p\n" + "0.5\n" * 5 + "7\n")
    with pytest.raises(ValueError, match=r"column 'p' must hold probabilities between 0 and 1, but row 5 is 7\."):
        copy(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p\n0.5\nhigh\n", r"a\.csv: column 'p' .* but row 1 is 'high'\. Correct or remove such rows\."),
        ('p\n0.5\n""\n-1\n', r"but row 2 is -1\."),
        ("x\n0.5\n", r"a\.csv: has no column 'p'; it has x\. Name the column to use with --proba\."),
        ("p,q\n0.5,1\n", r"a\.csv: already has a column 'q'; rename it\."),
        ("p,p\n0.5,1\n", r"a\.csv: has several columns 'p'; rename all but one\."),
        ("p\n0.5\n1.0000000001\n", r"but row 1 is 1\.0000000001\."),
        ("p\n0.5\n0.2_5\n", r"but row 1 is '0\.2_5'\."),
        ("id,p,t\n1,0.5,a\n1,0.5\n", r"a\.csv: row 1 has 2 fields, but the header has 3\. Correct or remove such rows"),
        ("id,p\n1,0.5\n1,0.5\n1,0.5,9\n", r"a\.csv: row 2 has 3 fields, but the header has 2\."),
        ("id,p\n1,0.5\n1\n", r"a\.csv: row 1 has 1 field, but the header has 2\."),
        ('p,s\n0.5,"a\n0.25,b\n', r"a\.csv: could not be read as CSV \(a quote is opened but never closed"),
    ],
)
def test_bad_rows_are_refused(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        copy(tmp_path / "a.csv")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_missing_probability_stays_missing(tmp_path, kind):
    """As in SQL, where the map of NULL is NULL."""
    path, out, given = tmp_path / f"a.{kind}", io.BytesIO(), [0.5, None, 0.25]
    if kind == "csv":
        path.write_text("p,x\n" + "".join(f"{'' if p is None else p},a\n" for p in given))
    elif kind == "jsonl":
        path.write_text("".join(f"{json.dumps({'p': p})}\n" for p in given))
    else:
        pq.write_table(pa.table({"p": given}), path)
    counts = add_column(find_sources([str(path)])[0], "p", "q", lambda p: (p + 1.0) / 3.0, out)
    assert counts == (3, 1)
    data = out.getvalue()
    if kind == "csv":
        found = [float(row["q"]) if row["q"] else None for row in csv.DictReader(io.StringIO(data.decode()))]
    elif kind == "jsonl":
        found = [json.loads(line)["q"] for line in data.splitlines()]
    else:
        found = pq.read_table(io.BytesIO(data))["q"].to_pylist()
    assert found == [0.5, None, (0.25 + 1.0) / 3.0]


@pytest.mark.parametrize("text", ["y,p,t\n0,0.5,a\n1,0.5\n", "y,p\n0,0.5\n1,0.5,9\n"])
def test_ragged_rows_are_refused_as_when_they_are_assessed(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    source = preview_columns(find_sources([str(tmp_path / "a.csv")])[0]).source
    with pytest.raises(ValueError, match=r"a\.csv: could not be read as CSV \(row 1: expected"):
        list(source.batches(ColumnRoles("y", ("p",), None, (), None)))
    with pytest.raises(ValueError, match=r"a\.csv: row 1 has"):
        copy(tmp_path / "a.csv")


@pytest.mark.parametrize("word", ["NA", " nan ", "#N/A", "-nan", "void", "null"])
def test_words_for_a_missing_value(tmp_path, word):
    """As in `--missing drop` and --where."""
    (tmp_path / "a.csv").write_text(f"p,x\n0.5,a\n{word},b\n")
    out = io.BytesIO()
    assert add_column(find_sources([str(tmp_path / "a.csv")])[0], "p", "q", lambda p: p, out) == (2, 1)
    assert out.getvalue().decode() == f"p,x,q\n0.5,a,0.5\n{word},b,\n"


def test_long_fields(tmp_path):
    before, text = csv.field_size_limit(), "x" * 200_000
    (tmp_path / "a.csv").write_text(f"p,prompt\n0.5,{text}\n")
    assert copy(tmp_path / "a.csv")[1].decode() == f"p,prompt,q\n0.5,{text},0.5\n"
    assert csv.field_size_limit() == before


def test_empty_json_object(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"p": 0.5}\n{ }\n{}\n')
    out = io.BytesIO()
    assert add_column(find_sources([str(tmp_path / "a.jsonl")])[0], "p", "q", lambda p: p, out) == (3, 2)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"p": 0.5, "q": 0.5},
        {"q": None},
        {"q": None},
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", r"a\.jsonl: row 1 is not a JSON object, but \[1\]\. Each line must be one JSON object"),
        ("7", r"a\.jsonl: row 1 is not a JSON object, but 7\."),
        ('{"p": 0.5', r"a\.jsonl: row 1 could not be read as JSON \(.*\)\. Each line must be one JSON object"),
        ('{"p": true}', r"a\.jsonl: column 'p' must hold probabilities between 0 and 1, but row 1 is True\."),
        ('{"p": {"a": 1}}', r"but row 1 is \{'a': 1\}\."),
    ],
)
def test_bad_json_lines(tmp_path, line, message):
    (tmp_path / "a.jsonl").write_text(f'{{"p": 0.5}}\n{line}\n')
    with pytest.raises(ValueError, match=message):
        copy(tmp_path / "a.jsonl")


def test_new_column_in_a_later_json_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"p": 0.5}\n' * 2000 + '{"p": 0.5, "q": 1}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl: already has a column 'q', at row 2000; rename it\."):
        copy(tmp_path / "a.jsonl")
