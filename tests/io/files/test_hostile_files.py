"""Files that a scan could misread without a word: it reads them rightly, or says what is wrong."""

import datetime
import json
import os
import uuid

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from support.files import CSV, refused, scan, write_text

import truthcal as tc
from truthcal.io.files import accumulate, csv_quotes
from truthcal.io.files.source import Source

ROWS = pa.table({"y": [0, 1], "p": [0.25, 0.5]})
BIG = 2**53
# Fields with quotes that are text, which only the slow way tells from others.
LOOSE = ('5" pipe', '"a" b"', '"John "Johnny" Smith"', ' "a"', "'\"'")


def write(path, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"y": [0, 1], "p": [0.25, 0.5], **more}), path)
    return path


# --- quotes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1 << 22, 256])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_a_quote_that_is_never_closed(tmp_path, monkeypatch, block, ending):
    monkeypatch.setattr(Source, "BLOCK", block)
    text = "y,p,t\n" + "1,.5,a\n" * 50 + '1,.5,"abc\n' + "0,.3,x\n" * 20
    path = write_text(
        tmp_path / f"a.{ending}", pa.compress(text.encode(), "gzip", asbytes=True) if ending[3:] else text
    )
    refused(ValueError, rf"a\.{ending}: could not be read as CSV \(a quote is opened but never closed", path)
    write_text(tmp_path / "a.csv", text + "0,.3,x\n" * 1_000)
    words = r"a quote is opened but never closed" if block > 256 else r"a line is longer than 256 bytes, or a quote is"
    refused(ValueError, rf"a\.csv: could not be read as CSV \({words}", tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("field", "rows"),
    [
        ('5" pipe', 3),
        ('"5"" pipe"', 3),
        ('"a" b"', 3),
        ('"John "Johnny" Smith"', 3),
        (' "a"', 3),
        ("'\"'", 3),
        ('""', 3),
        ('""""', 3),
        ('"a\n\nb"', 3),
        ('"a\n"', 3),
        ('x\n0,.3,"x"', 4),
        ('"""', None),
        ('"a""', None),
        ('x\n1,.5,"', None),
        ('"x\n0,.5,"x"', None),
        ('"x\n0,.5,"x', None),
        ('5" pipe\n1,.5,"abc', None),
    ],
)
def test_quotes_that_lose_lines_and_quotes_that_are_text(tmp_path, field, rows):
    """Whether they are odd or even in number, at the end or not, however the text is cut into pieces."""
    for text in (f"y,p,t\n1,.5,a\n1,.5,{field}\n0,.3,x\n", f'"y","p","t"\n1,.5,a\n0,.3,x\n1,.5,{field}'):
        path = write_text(tmp_path / "a.csv", text)
        if rows is None:
            refused(ValueError, r"a quote is opened but never closed|Expected 3 columns", path)
        else:
            assert scan(path).n == rows
        for size in range(1, len(text)):
            pieces = [text[i : i + size].encode() for i in range(0, len(text), size)]
            assert csv_quotes.swallows_lines(pieces, ",") == (rows is None)
            check = csv_quotes.QuoteCheck(",")
            for piece in [b"\xef\xbb\xbf" + pieces[0], *pieces[1:]]:
                check.feed(piece)
            assert check.are_in_order() == (rows is not None and field not in LOOSE)


def test_a_first_line_of_many_columns(tmp_path):
    names = [f"a column with a rather long name, number {i}" for i in range(10_000)]
    head = ",".join(f'"{name}"' for name in names)
    path = write_text(tmp_path / "a.csv", f"{head},y,p\n" + "7," * len(names) + "1,0.5\n")
    assert scan(path).n == 1
    refused(ValueError, r"has no rows", write_text(tmp_path / "b.csv", f"{head},y,p\n"))
    write_text(path, '"' + "y,p\n" * 100_000)
    refused(ValueError, r"a\.csv: could not be read as CSV \(it has no header: is a quote opened", path)


# --- which files ------------------------------------------------------------------------------------------------------


def test_patterns_pass_over_what_is_set_aside_below_them(tmp_path):
    for name in ("a/x.csv", "_temporary/0/x.csv", "a/_old/x.csv", "a/.hidden/x.csv", "_x.csv"):
        write_text(tmp_path / "s" / name, CSV)
    for pattern in ("**/*.csv", "**", "*", "a/**/*.csv"):
        assert scan(tmp_path / "s" / pattern).n == 2
    for pattern in ("_temporary/**/*.csv", "*/_old/*.csv", "_*.csv", "**/_old/*.csv"):
        assert scan(tmp_path / "s" / pattern).n == 2
    assert scan(tmp_path / "s" / "_temporary").n == 2


def test_links_to_folders_are_followed_once(tmp_path):
    write_text(tmp_path / "elsewhere" / "b.csv", CSV)
    write_text(tmp_path / "s" / "day=2026-01-31" / "a.csv", CSV)
    os.symlink(tmp_path / "elsewhere", tmp_path / "s" / "link")
    os.symlink(tmp_path / "s", tmp_path / "s" / "link in a circle")
    assert scan(tmp_path / "s").n == 4
    (tmp_path / "s" / "link").unlink()
    os.symlink(tmp_path / "s" / "day=2026-01-31", tmp_path / "s" / "a latest")
    assert list(scan(tmp_path / "s", by="day")) == [datetime.date(2026, 1, 31)]


@pytest.mark.parametrize("name", ["b.csv.xz", "part-00001", "d.orc", "e.parquet.snappy", "README.md"])
def test_unknown_endings_in_a_folder_are_refused(tmp_path, name):
    write_text(tmp_path / "a.csv", CSV)
    write_text(tmp_path / "a.csv.crc", "x")
    assert scan(tmp_path).n == 2
    write_text(tmp_path / "deep" / name, "x")
    refused(ValueError, rf"deep/{name}: the extension is unknown.* Name the files, or use a pattern", tmp_path)
    write_text(tmp_path / "z.orc", "x")
    refused(ValueError, rf"deep/{name} and 1 more: ", tmp_path)
    assert scan(tmp_path / "*.csv").n == 2


def test_tables_with_logs_are_refused(tmp_path):
    for name in ("delta/a.parquet", "delta/_delta_log/1.checkpoint.parquet", "ice/data/a.parquet"):
        write(tmp_path / name)
    write_text(tmp_path / "ice" / "metadata" / "v1.metadata.json", "{}")
    delta = r"delta: a Delta table, .* DuckDB's delta_scan or Polars' scan_delta, and pass the frame to `sketch_frame`"
    for paths in ("delta", "delta/*.parquet", "**/*.parquet", "."):
        refused(ValueError, delta, tmp_path / paths)
    for paths in ("ice", "ice/**/*.parquet"):
        refused(
            ValueError, r"ice: an Iceberg table, .* DuckDB's iceberg_scan or Polars' scan_iceberg", tmp_path / paths
        )
    assert scan(tmp_path / "delta" / "a.parquet").n == 2


def test_names_that_are_no_local_files(tmp_path, monkeypatch):
    write_text(tmp_path / "a.csv", CSV)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for nothing in ("", [""]):
        refused(ValueError, r"`paths` is empty", nothing)
    assert scan("~/a.csv").n == scan("~/*.csv").n == scan("~").n == scan(".").n == 2
    for name in ("s3://b/a.csv", "gs://b/*.parquet", "https://h/a.csv", "file:///a.csv"):
        refused(ValueError, r"`scan` reads local files.* DuckDB or Polars frame to `sketch_frame`", name)


def test_hard_links_are_the_same_file(tmp_path):
    path = write_text(tmp_path / "a.csv", CSV)
    os.link(path, tmp_path / "b.csv")
    for twice in ([path, tmp_path / "b.csv"], tmp_path):
        refused(ValueError, r"b\.csv: named twice \(.*a\.csv is the same file\)", twice)


@pytest.mark.parametrize("batches", [1, 2])
def test_a_stream_cut_off_after_a_whole_batch(tmp_path, batches):
    """pyarrow reads such a stream as a shorter one."""
    path, ends = tmp_path / "a.arrows", []
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, ROWS.schema) as writer:
        for batch in ROWS.to_batches() * 2:
            writer.write_batch(batch)
            ends.append(file.tell())
    whole = path.read_bytes()
    assert scan(path).n == 2 * ROWS.num_rows
    path.write_bytes(whole[: ends[batches - 1]])
    refused(
        ValueError, r"a\.arrows: could not be read as Arrow \(no marker at the end of the stream, so rows may", path
    )


def test_two_streams_in_one_file(tmp_path):
    path = tmp_path / "a.arrows"
    with pa.ipc.new_stream(str(path), ROWS.schema) as writer:
        writer.write_table(ROWS)
    assert scan(path).n == 2
    path.write_bytes(path.read_bytes() * 2)
    refused(ValueError, r"a\.arrows: could not be read as Arrow \(more data after the end of the stream", path)


# --- values in paths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-20", "0"], [1, -20, 0]),
        (["007", "8"], ["007", "8"]),
        (["1", "x"], ["1", "x"]),
        (["1", "-0"], ["1", "-0"]),
        (["1.5", "2"], ["1.5", "2"]),
        (["9" * 19, "2"], ["9" * 19, "2"]),
        (["2026-01-31", "2025-12-01"], [datetime.date(2026, 1, 31), datetime.date(2025, 12, 1)]),
        (["2026-02-30", "2025-12-01"], ["2026-02-30", "2025-12-01"]),
        (["2026-01-31", "5"], ["2026-01-31", "5"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], [1, None]),
        (["__HIVE_DEFAULT_PARTITION__"], [None]),
    ],
)
def test_values_in_paths_are_typed_as_engines_do(tmp_path, texts, values):
    for text in texts:
        write(tmp_path / f"k={text}" / "a.parquet")
    found = scan(tmp_path, by="k")
    assert {(type(key), key) for key in found} == {(type(value), value) for value in values}


def test_a_table_of_files_merges_with_one_of_an_engine(tmp_path):
    pl = pytest.importorskip("polars")
    for day in (1, 2):
        write(tmp_path / f"shop={day}" / f"day=2026-01-0{day}" / "a.parquet")
    ours = scan(tmp_path, by=["shop", "day"])
    frame = pl.scan_parquet(tmp_path, hive_partitioning=True)
    theirs = tc.sketch_frame(frame, y_true="y", y_proba="p", by=["shop", "day"], n_buckets=64)
    assert list(ours) == list(theirs) == list(ours + theirs)


def test_a_column_that_is_also_in_the_path(tmp_path):
    day = datetime.date(2026, 1, 31)
    for folder, values in [("k=fr", ["fr", "fr"]), ("k=1", [1, 1]), ("k=01", [1, 1]), ("k=2026-01-31", [day, day]), ("k=0.50", [0.5, 0.5]), ("k=true", [True, True]), ("k=1", ["1", "1"]), ("k=__HIVE_DEFAULT_PARTITION__", pa.nulls(2))]:  # fmt: skip
        path = write(tmp_path / folder / "a.parquet", k=values)
        [key] = scan(path, by="k")
        assert key == pa.array(values)[0].as_py()
    path = write(tmp_path / "k=all" / "a.parquet", k=["fr", "all"])
    refused(ValueError, r"`k` \(by\) is 'fr' in .*k=all/a\.parquet, but its path says 'all'", path, by="k")
    path = write_text(tmp_path / "k=2" / "a.csv", "y,p,k\n1,0.5,1\n")
    refused(ValueError, r"`k` \(by\) is '1' in .*a\.csv, but its path says 2", path, by="k")
    assert scan(path).n == 1


# --- JSON lines -------------------------------------------------------------------------------------------------------


def json_lines(path, rows):
    return write_text(path, "\n".join(json.dumps({"y": 1, "p": 0.5, **row}) for row in rows))


def test_json_text_that_looks_like_a_time_stays_text(tmp_path):
    texts = ["2020-01-01", "2020-01-01T00:00:00", "2020-01-01 00:00:00"]
    path = json_lines(tmp_path / "a.jsonl", [{"g": text} for text in texts])
    assert set(scan(path, by="g")) == set(texts)
    path = json_lines(tmp_path / "a.jsonl", [{"y": text} for text in texts[:2]])
    assert scan(path, pos_label=texts[0]).bias() == 0.0


def test_json_numbers_too_long_for_64_bits_make_no_groups(tmp_path):
    path = json_lines(tmp_path / "a.jsonl", [{"g": BIG}, {"g": BIG + 1}])
    assert set(scan(path, by="g")) == {BIG, BIG + 1}
    for values in ([10**19, 10**19 + 1], [0.5, BIG, BIG + 1]):
        path = json_lines(tmp_path / "a.jsonl", [{"g": value} for value in values])
        refused(
            ValueError,
            r"a\.jsonl: could not be read as JSON lines \(.*, or one that does not fit in 64 bits",
            path,
            by="g",
        )


def test_json_columns_that_nobody_asked_for_may_hold_anything(tmp_path):
    path = json_lines(tmp_path / "a.jsonl", [{"z": 1}, {"z": "x"}, {"z": [{}]}, {"z": None}])
    assert scan(path).n == 4
    refused(TypeError, r"`z` \(by\) must contain text, numbers or dates; it is struct", json_lines(path, [{"z": {"a": 1}}]), by="z")  # fmt: skip


def test_json_keys_that_come_late(tmp_path, monkeypatch):
    monkeypatch.setattr(Source, "BLOCK", 200)
    path = json_lines(tmp_path / "a.jsonl", [{}] * 5 + [{"g": "x"}] + [{}] * 50)
    assert set(scan(path, by="g")) == {"x", None}
    path = json_lines(tmp_path / "a.jsonl", [{}] * 50 + [{"g": "x"}])
    refused(
        ValueError, r"a\.jsonl \(according to its first 10 lines\) has no column 'g' \(named by `by`\)", path, by="g"
    )


# --- labels, groups and numbers of CSV --------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("label", [BIG, -BIG - 2, 2**63 - 1, 2**63, 2**64 - 2, float(BIG)])
def test_labels_that_floats_do_not_tell_apart(tmp_path, ending, label):
    other = int(label) + (-1 if label < 0 or label == 2**63 - 1 else 1)
    labels = [int(label), other, int(label)]
    path = tmp_path / f"a.{ending}"
    write_text(path, "y,p\n" + "".join(f"{y},0.5\n" for y in labels))
    if ending == "jsonl":
        json_lines(path, [{"y": y} for y in labels])
    assert scan(path, pos_label=label).bias() == pytest.approx(0.5 - 2 / 3)


def test_large_labels_that_go_on_with_fractions(tmp_path):
    path = write_text(tmp_path / "a.csv", f"y,p\n{BIG},0.5\n2.5,0.5\n")
    refused(ValueError, r"a\.csv: could not be read as CSV \(.*conversion error to int64: invalid value '2\.5'", path, pos_label=BIG)  # fmt: skip


@pytest.mark.parametrize("missing", ["", '""', "NA", "nan", "null", "N/A", "NaN", "#N/A"])
@pytest.mark.parametrize("block", [1 << 22, 64])
def test_missing_numbers_beside_groups(tmp_path, monkeypatch, missing, block):
    monkeypatch.setattr(Source, "BLOCK", block)
    good = "1,0.5,1,NA\n"
    for line, name in [(f"{missing},0.5,1,NA", "y"), (f"1,{missing},1,NA", "p"), (f"1,0.5,{missing},NA", "w")]:
        path = write_text(tmp_path / "a.csv", "y,p,w,g\n" + good * 30 + line + "\n" + good)
        words = rf"`{name}` \(.*\) has a missing value \(null or nan\) at row 30 of .*a\.csv"
        refused(ValueError, words, path, sample_weight="w", by="g")
        if name == "y":
            refused(ValueError, words, path, pos_label=1)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_groups_by_outcomes_and_predictions(tmp_path, ending):
    rows = [(1, 0.5), (0, 0.5), (1, 0.25)]
    path = write_text(tmp_path / f"a.{ending}", "y,p\n" + "".join(f"{y},{p}\n" for y, p in rows))
    if ending == "jsonl":
        json_lines(path, [{"y": y, "p": p} for y, p in rows])
    assert set(scan(path, by="y")) == {0, 1}
    assert set(scan(path, by=["p", "y"])) == {(p, y) for y, p in rows}
    assert set(scan(path, by="y", pos_label=1)) == {0, 1}


def test_decimal_commas_are_found_in_any_column_of_numbers(tmp_path):
    path = write_text(tmp_path / "a.csv", "y;p;w\n1;1;1,5\n0;1;0,5\n")
    assert scan(path, sample_weight="w").bias() == 0.25
    path = write_text(tmp_path / "a.csv", "y;p\n0,5;1\n0;1\n1;0\n0;0,5\n")
    assert scan(path).bias() == 0.25
    path = write_text(tmp_path / "a.csv", "y;p;w\n1;0.5;1,500\n")
    refused(TypeError, r"`w` \(sample_weight\) must contain numbers; .*'1,500' at row 0", path, sample_weight="w")


# --- groups -----------------------------------------------------------------------------------------------------------


def test_extension_types_make_groups(tmp_path):
    ids = [uuid.UUID(int=7), uuid.UUID(int=8)]
    column = pa.array([one.bytes for one in ids], pa.uuid())
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", "[]"]))
    for name in ("a.arrow", "a.parquet"):
        rows = ROWS.append_column("id", column).append_column("j", texts)
        rows = rows.append_column("y8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())))
        (pq.write_table if name == "a.parquet" else pa.feather.write_feather)(rows, tmp_path / name)
        assert set(scan(tmp_path / name, by="id")) == {str(one) for one in ids}
        assert set(scan(tmp_path / name, by="j")) == {"{}", "[]"}
        assert scan(tmp_path / name, y_true="y8").bias() == -0.125


def test_too_many_groups_for_so_many_buckets(tmp_path, monkeypatch):
    monkeypatch.setattr(accumulate, "MAX_CELLS", 1 << 10)
    n = 100
    pq.write_table(pa.table({"y": [0, 1] * 50, "p": [0.5] * n, "g": list(range(n))}), tmp_path / "a.parquet")
    words = r"`by` has 100 groups so far, too many for 64 buckets each: that is 6,400 buckets, .* Use fewer buckets, for example n_buckets=8"
    refused(ValueError, words, tmp_path, by="g")
    assert len(scan(tmp_path, by="g", n_buckets=8)) == n
    monkeypatch.setattr(accumulate, "MAX_CELLS", 64)
    refused(ValueError, r"`by` has 100 groups .* Name fewer columns, or coarser ones", tmp_path, by="g")


def test_a_damaged_file_is_found_before_others_are_read(tmp_path, monkeypatch):
    for name in "abc":
        pq.write_table(pa.table({"y": [0, 1], "p": [0.2, 0.7]}), tmp_path / f"{name}.parquet")
    (tmp_path / "c.parquet").write_bytes((tmp_path / "c.parquet").read_bytes()[:-3])
    monkeypatch.setattr(Source, "batches", None)  # nobody gets as far as that
    with pytest.raises(ValueError, match=r"c\.parquet: could not be read as Parquet"):
        tc.scan(tmp_path, y_true="y", y_proba="p")
