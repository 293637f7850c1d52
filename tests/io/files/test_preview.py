"""What the columns of a file hold, in every format."""

import datetime
import decimal
import gzip
import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import truthcal as tc
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files import parquet_arrow
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.load import load
from truthcal.io.files.preview import Column, preview_columns
from truthcal.io.files.source import Source


def looked(path, named=()):
    return preview_columns(find_sources(path)[0], named).columns


def of_text(folder, text, name="file.csv", **given):
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return looked(folder / name, **given)


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        (["0", "1", "0"], Column("x", "number", 0.0, 1.0, (0, 1))),
        (["0.5", "1e-3", "7"], Column("x", "number", 0.001, 7.0, (0.5, 0.001, 7))),
        (["1", "2", "3", "4", "4"], Column("x", "number", 1.0, 4.0, (1, 2, 3), True)),
        (["1", "NA", "", "nan"], Column("x", "number", 1.0, 1.0, (1,))),
        (["True", "False", "True"], Column("x", "bool", None, None, (True, False))),
        (["true", "0"], Column("x", "bool", None, None, (True, False))),
        (["yes", "no", "", "NA"], Column("x", "text", None, None, ("yes", "no", "NA"))),
        (["1_000", "2"], Column("x", "text", None, None, ("1_000", "2"))),
        (["74%", "3"], Column("x", "text", None, None, ("74%", "3"))),
        (['"0,5"', "1"], Column("x", "text", None, None, ("0,5", "1"))),
        (["", "NA"], Column("x", "nothing")),
        (["inf", "0"], Column("x", "number", 0.0, float("inf"), (float("inf"), 0))),
        (["9007199254740993"], Column("x", "number", 9007199254740992.0, 9007199254740992.0, (9007199254740992.0,))),
    ],
)
def test_fields_of_text(tmp_path, fields, column):
    lines = "\n".join(f"{field},-" for field in fields)
    assert of_text(tmp_path, f"x,y\n{lines}\n")[0] == column


@pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
def test_decimal_commas_where_commas_do_not_part_columns(tmp_path, delimiter):
    text = "y/p/t\n0/0,25/1.234,5\n1/0,5/2\n".replace("/", delimiter)
    y, p, t = of_text(tmp_path, text)
    assert (y.values, p.values, p.kind) == ((0, 1), (0.25, 0.5), "number")
    assert t.kind == "text"


def test_named_columns_tell_what_parts_columns(tmp_path):
    text = "a;b,c;d,e\n1;2,3;4,5\n"
    assert [column.name for column in of_text(tmp_path, text)] == ["a;b", "c;d", "e"]
    assert [column.name for column in of_text(tmp_path, text, named=["b,c"])] == ["a", "b,c", "d,e"]


@pytest.mark.parametrize("text", ["y,p\n", "y,p", "\n\ny,p\r\n"])
def test_a_header_alone(tmp_path, text):
    assert of_text(tmp_path, text) == (Column("y", "nothing"), Column("p", "nothing"))


def test_odd_text_does_not_stop_a_look(tmp_path):
    short, long = "y,p\n0\n1,0.5\n", "y,p\n0,0.5,9\n1,0.25\n"
    assert [column.kind for column in of_text(tmp_path, short)] == ["number", "number"]
    assert [column.name for column in of_text(tmp_path, long)] == ["y", "p"]
    assert of_text(tmp_path, 'y,p\n0,"0.5\n' + "1,0.5\n" * 60_000)[0].kind == "nothing"  # a quote is never closed
    assert [column.name for column in of_text(tmp_path, "y,p,p\n1,2,3\n")] == ["y", "p", "p"]
    with pytest.raises(ValueError, match=r"file\.csv: the file is empty"):
        of_text(tmp_path, "")


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
@pytest.mark.parametrize("first", ["sep={}", '"sep={}"', "\ufeffSEP={}\r", "sep={},"])
def test_a_note_for_excel_is_refused_with_the_cure(tmp_path, first, delimiter):
    text = f"{first.format(delimiter)}\ny{delimiter}p\n0{delimiter}0.5\n"
    for named in ([], ["y", "p"]):
        with pytest.raises(
            ValueError,
            match=r"(?i)file\.csv: its first line, .*sep=.* is a directive for Excel.*`tail -n \+2 file > new`",
        ):
            of_text(tmp_path, text, named=named)


@pytest.mark.parametrize("header", ["sep,p", "sep=a,p", "y,sep=", "sepal=,p"])
def test_names_that_begin_like_a_note_for_excel(tmp_path, header):
    assert [column.name for column in of_text(tmp_path, f"{header}\n0,0.5\n")] == header.split(",")


def test_only_the_first_rows_are_looked_at(tmp_path):
    text = "y\n" + "0\n" * 1000 + "word\n"
    assert of_text(tmp_path, text) == (Column("y", "number", 0.0, 0.0, (0,)),)
    assert of_text(tmp_path, gzip.compress(text.encode()), "file.csv.gz")[0].kind == "number"
    lines = '{"y": 0}\n' * 1000 + '{"y": "word", "late": 1}\n'
    assert of_text(tmp_path, lines, "file.jsonl") == (Column("y", "number", 0.0, 0.0, (0,)),)
    assert [column.name for column in of_text(tmp_path, lines, "file.jsonl", named=["late"])] == ["y", "late"]


@pytest.mark.parametrize("name", ["file.csv", "file.jsonl"])
def test_a_line_that_is_cut_off_is_left_out(tmp_path, monkeypatch, name):
    monkeypatch.setattr(Source, "BLOCK", 64)
    monkeypatch.setattr("truthcal.io.files.csv._HEADER", 64)
    line = "0.5,0.5\n" if name == "file.csv" else '{"y": 0.5, "p": 0.5}\n'
    text = ("y,p\n" if name == "file.csv" else "") + line * 100 + "word,word\n"
    assert [column.values for column in of_text(tmp_path, text, name)] == [(0.5,), (0.5,)]


TYPED = pa.table(
    {
        "bit": pa.array([0, 1, None], pa.int8()),
        "p": pa.array([0.25, float("nan"), 0.5], pa.float32()),
        "money": [decimal.Decimal("1.50"), decimal.Decimal("2.25"), None],
        "flag": [True, False, None],
        "word": pa.array(["a", "b", "a"]).dictionary_encode(),
        "large": pa.array(["a", "b", None], pa.large_string()),
        "day": [datetime.date(2026, 1, 1)] * 3,
        "list": [[1], [2], [3]],
        "none": pa.nulls(3),
    }
)
KINDS = ["number", "number", "number", "bool", "text", "text", "other", "other", "nothing"]


def arrow_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("ending", "write"),
    [("parquet", pq.write_table), ("feather", pyarrow.feather.write_feather), ("arrows", arrow_stream)],
)
def test_columns_with_types(tmp_path, ending, write):
    write(TYPED, tmp_path / f"file.{ending}")
    columns = looked(tmp_path / f"file.{ending}")
    assert [column.name for column in columns] == TYPED.column_names
    assert [column.kind for column in columns] == KINDS
    assert columns[0] == Column("bit", "number", 0.0, 1.0, (0, 1))
    assert columns[1] == Column("p", "number", 0.25, 0.5, (0.25, 0.5))
    assert (columns[2].low, columns[2].high) == (1.5, 2.25)
    assert columns[4].values == columns[5].values == ("a", "b")
    write(TYPED.slice(0, 0), tmp_path / f"empty.{ending}")
    assert {column.kind for column in looked(tmp_path / f"empty.{ending}")} == {"nothing"}


def test_columns_of_one_name_with_types(tmp_path):
    table = pa.table([[0, 1], [0.5, 0.25]], names=["p", "p"])
    pyarrow.feather.write_feather(table, tmp_path / "file.arrow")
    assert [column.values for column in looked(tmp_path / "file.arrow")] == [(0, 1), (0.5, 0.25)]
    pq.write_table(table, tmp_path / "file.parquet")
    assert [column.values for column in looked(tmp_path / "file.parquet")] == [(0, 1), (0.5, 0.25)]


def test_very_wide_parquet_files_are_judged_by_their_statistics(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_arrow, "_WIDE", 2)
    table = pa.table(
        {"y": [0, 1], "p": [0.0, 1.0], "n": [3, 9], "t": ["a", "b"], "b": [True, False], "x": pa.nulls(2, pa.float64())}
    )
    pq.write_table(table, tmp_path / "file.parquet")
    y, p, n, t, b, x = looked(tmp_path / "file.parquet")
    assert y == Column("y", "number", 0.0, 1.0, (0, 1))
    assert p == Column("p", "number", 0.0, 1.0, (), True)  # what lies between is not known
    assert (n.low, n.high, n.many, t.kind, t.many) == (3.0, 9.0, True, "text", True)
    assert (b.kind, set(b.values)) == ("bool", {False, True})
    assert x.kind == "nothing"


def test_lines_of_json(tmp_path):
    rows = [{"y": True, "p": 0.5, "who": {"id": 1}}, {"y": False, "p": 1, "note": "a"}, {"y": None, "note": None}]
    text = "\ufeff" + "\n\n".join(map(json.dumps, rows))
    assert of_text(tmp_path, text, "file.jsonl") == (
        Column("y", "bool", None, None, (True, False)),
        Column("p", "number", 0.5, 1.0, (0.5, 1)),
        Column("who", "other"),
        Column("note", "text", None, None, ("a",)),
    )
    mixed = of_text(tmp_path, '{"y": 1}\n{"y": "a"}\n{"y": [}\n', "file.jsonl")
    assert mixed == (Column("y", "other"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]\n", r"it is a list in brackets, but each line must be one object, as `jq -c '\.\[\]'` writes it"),
        ('"y"\n', r"""'"y"' has no column names\): each line must be one object"""),
        ("y,p\n", r"file\.jsonl: could not be read as JSON lines \(Expecting value"),
        (b"\xff\xfe{\0}\0", r"it is UTF-16 text"),
    ],
)
def test_what_is_not_lines_of_json(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        of_text(tmp_path, text, "file.jsonl")


def test_parts_of_the_path_are_columns_too(tmp_path):
    folder = tmp_path / "country=fr" / "day=2026-01-31" / "y=1"
    folder.mkdir(parents=True)
    columns = of_text(folder, "y,p\n0,0.5\n")
    assert columns[2:] == (
        Column("country", "text", None, None, ("fr",), in_path=True),
        Column("day", "other", in_path=True),
    )


def test_damaged_files_are_named(tmp_path):
    for name in ("file.parquet", "file.arrow"):
        with pytest.raises(ValueError, match=rf"{name}: could not be read as"):
            of_text(tmp_path, b"PAR1 ARROW1 nothing of the kind", name)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_wide_files(tmp_path, ending):
    names = [f"x{i}" for i in range(20_000)]
    text = ",".join(names) + "\n" + (",".join(["0.5"] * len(names)) + "\n") * 12
    if ending == "jsonl":
        text = json.dumps(dict.fromkeys(names, 0.5)) + "\n"
    columns = of_text(tmp_path, text, f"file.{ending}")
    assert len(columns) == 20_000
    assert columns[-1] == Column("x19999", "number", 0.5, 0.5, (0.5,))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.sketch"])
def test_a_sketch_is_recognized_whatever_its_name(tmp_path, name):
    tc.Sketch(16).update([0, 1], [0.25, 0.75]).save(tmp_path / name)
    preview = preview_columns(find_sources(tmp_path / name)[0])
    assert preview.source.is_sketch
    assert preview.columns == ()
    with pytest.raises(
        ValueError, match=rf"{name}: is a truthcal sketch, not a file of rows; load it with Sketch\.load"
    ):
        load([preview.source], ColumnRoles.of("y", "p", None, None, None))


def test_the_reader_uses_what_the_preview_has_detected(tmp_path):
    path = tmp_path / "file.csv"
    path.write_text("a;b,c;d,e\n1;0,5;0\n")
    source = preview_columns(find_sources(path)[0], ["b,c"]).source
    assert (source.delimiter, source.header) == (";", ("a", "b,c", "d,e"))
    assert load([source], ColumnRoles.of("d,e", "b,c", None, None, None))["b,c"].p.tolist() == [0.5]
