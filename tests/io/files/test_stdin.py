"""Standard input in every format is read as a file of that format is, and leaves nothing behind."""

import bz2
import gzip
import io
import lzma
import re
import tempfile

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import truthcal as tc
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.formats import sketch_kind
from truthcal.io.files.load import load
from truthcal.io.files.preview import preview_columns
from truthcal.io.files.stdin import spool_stdin

ROWS = pa.table({"y": [0, 1, 1], "p": [0.25, 0.75, 0.5]})
CSV = b"y,p\n0,0.25\n1,0.75\n1,0.5\n"
JSON = b'{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.75}\n{"y": 1, "p": 0.5}\n'
SKETCH = tc.Sketch(16).update([0, 1], [0.25, 0.75])


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Where temporary files go; nothing may be left there."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def in_bytes(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def stream(file):
    with pa.ipc.new_stream(file, ROWS.schema) as writer:
        writer.write_table(ROWS)


def compressed(data, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


DATA = {
    "comma": (CSV, "CSV"),
    "tab": (CSV.replace(b",", b"\t"), "CSV"),
    "mark": (b"\xef\xbb\xbf" + CSV, "CSV"),
    "quotes": (b'"y","p"\n0,0.25\n1,0.75\n1,0.5\n', "CSV"),
    "gzip": (gzip.compress(CSV), "CSV"),
    "bzip2": (bz2.compress(CSV), "CSV"),
    "zstd": (compressed(CSV, "zstd"), "CSV"),
    "lz4": (compressed(CSV, "lz4"), "CSV"),
    "JSON": (JSON, "JSON lines"),
    "JSON after blanks": (b"\n  " + JSON, "JSON lines"),
    "JSON with a mark": (b"\xef\xbb\xbf" + JSON, "JSON lines"),
    "JSON in gzip": (gzip.compress(JSON), "JSON lines"),
    "Parquet": (in_bytes(lambda file: pq.write_table(ROWS, file)), "Parquet"),
    "Arrow": (in_bytes(lambda file: pyarrow.feather.write_feather(ROWS, file)), "Arrow"),
    "Arrow stream": (in_bytes(stream), "Arrow"),
}


@pytest.mark.parametrize("name", DATA)
def test_the_format_is_told_by_the_content(name):
    data, format_ = DATA[name]
    with spool_stdin(io.BytesIO(data)) as source:
        assert (source.format.name, str(source)) == (format_, "standard input")
        assert [column.name for column in preview_columns(source).columns] == ["y", "p"]
        loaded = load([source], ColumnRoles.of("y", "p", None, None, None))["p"]
        path = source.path
    assert not path.exists()
    assert loaded.y.tolist() == [0, 1, 1]
    assert loaded.p.tolist() == [0.25, 0.75, 0.5]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"^standard input is empty; pipe a file into it"),
        (b"\n\n", r"^standard input: the file is empty"),
        (gzip.compress(b""), r"^standard input: the file is empty"),
        (b"PK\x03\x04", r"^standard input is an Excel workbook or a zip archive; save the sheet as CSV"),
        (lzma.compress(CSV), r"^standard input is compressed with xz; decompress it with `xz -dc`"),
        (gzip.compress(DATA["Parquet"][0]), r"^standard input is a compressed Parquet file; decompress it first"),
        (CSV.decode().encode("utf-16"), r"^standard input: .* \(it is UTF-16 text\).*iconv -f utf-16 -t utf-8"),
        (JSON.decode().encode("utf-16"), r"^standard input: .* \(it is UTF-16 text\).*iconv -f utf-16 -t utf-8"),
        ("é,y,p\n1,0,0.5\n".encode("latin-1"), r"the column names are not UTF-8 text; .*iconv -f latin1 -t utf-8"),
        (b'[{"y": 0, "p": 0.25},\n {"y": 1, "p": 0.5}]', r"a list in brackets, .*`jq -c '\.\[\]'`"),
        (b'{\n"y": 0,\n"p": 0.25\n}', r"each line must be one object, as `jq -c \.` writes it"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_cure(data, message):
    with pytest.raises(ValueError, match=message), spool_stdin(io.BytesIO(data)) as source:
        preview_columns(source)


def test_text_that_is_not_utf8_is_refused_only_where_it_is_read():
    with spool_stdin(io.BytesIO("y,p,name\nno,0.5,é\nnon-évènement,0.25,b\n".encode("latin-1"))) as source:
        assert [column.name for column in preview_columns(source).columns] == ["y", "p", "name"]
        with pytest.raises(ValueError, match=r"^standard input: .*it is not UTF-8 text; .*iconv -f latin1 -t utf-8"):
            load([source], ColumnRoles.of("y", "p", None, None, "no"))
    with spool_stdin(io.BytesIO("y,p,name\n0,0.5,é\n1,0.25,b\n".encode("latin-1"))) as source:
        assert load([source], ColumnRoles.of("y", "p", None, None, None))["p"].y.tolist() == [0, 1]


def test_bad_rows_are_told_of_standard_input():
    message = r"found 1\.5 at row 0 of standard input \(1 of 1 row read\)"
    with spool_stdin(io.BytesIO(b"y,p\n0,1.5\n")) as source, pytest.raises(ValueError, match=message):
        load([source], ColumnRoles.of("y", "p", None, None, None))


def test_a_cut_off_stream_is_told():
    cut = gzip.compress(CSV * 1000)[:-9]
    with pytest.raises(OSError, match=r"^standard input: could not be read"), spool_stdin(io.BytesIO(cut)) as source:
        load([source], ColumnRoles.of("y", "p", None, None, None))


class _Stream(io.RawIOBase):
    def __init__(self, error):
        self.error, self.first = error, True

    def read(self, size=-1):
        if not self.first:
            raise self.error
        self.first = False
        return CSV


def test_an_interrupt_leaves_nothing_behind():
    with pytest.raises(KeyboardInterrupt), spool_stdin(_Stream(KeyboardInterrupt())):
        pass
    with pytest.raises(KeyboardInterrupt), spool_stdin(io.BytesIO(CSV)):
        raise KeyboardInterrupt


def test_a_full_disk_is_told(scratch):
    full = OSError(28, "No space left on device")
    message = (
        rf"standard input could not be copied to {re.escape(str(scratch))}.* \(No space left on device\).* Set TMPDIR"
    )
    with pytest.raises(OSError, match=message), spool_stdin(_Stream(full)):
        pass


def test_sketches_are_known_by_their_first_bytes(tmp_path):
    table = tc.SketchTable.from_sketches({"a": SKETCH}, by="g")
    SKETCH.save(tmp_path / "sketch.csv")
    table.save(tmp_path / "table")
    (tmp_path / "rows.csv").write_bytes(CSV)
    assert sketch_kind(tmp_path / "sketch.csv") == "Sketch"
    assert sketch_kind(str(tmp_path / "table")) == "SketchTable"
    assert [sketch_kind(tmp_path / name) for name in ("rows.csv", "*.csv", "nothing", ".")] == [None] * 4
    with spool_stdin(io.BytesIO(SKETCH.to_bytes())) as source:
        assert source.is_sketch
        assert sketch_kind(source.path) == "Sketch"
        assert tc.Sketch.load(source.path).n == 2
