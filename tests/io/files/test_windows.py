"""Windows of files read in batches: the same as of rows in memory, for every format, batch and kind of time."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truthcal as tc
from truthcal.inference.over_time import assess_windows
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files import parquet_arrow
from truthcal.io.files import windows as module
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.load import load
from truthcal.io.files.windows import TimeOptions

ROLES = ColumnRoles.of("y", "p", None, None, None)


def rows(n=3000, seconds=90 * 86400, seed=0):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.integers(0, seconds, n))
    p = rng.random(n).round(3)
    return (rng.random(n) < p).astype(int), p, np.datetime64("2024-01-01T00:00:00") + t


def write(folder, ending, y, p, time, files=1):
    for k, part in enumerate(np.array_split(np.arange(len(y)), files)):
        path = folder / f"{k}.{ending}"
        table = pa.table({"y": y[part], "p": p[part], "t": time[part]})
        if ending == "parquet":
            pq.write_table(table, path)
        elif ending == "csv":
            lines = ["y,p,t", *(f"{a},{b},{c}" for a, b, c in zip(y[part], p[part], time[part], strict=True))]
            path.write_text("\n".join(lines) + "\n")
        else:
            lines = [
                {"y": int(a), "p": float(b), "t": str(c)} for a, b, c in zip(y[part], p[part], time[part], strict=True)
            ]
            path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return find_sources(str(folder / f"*.{ending}"))


def read(sources, window="auto", unit=None, roles=ROLES, **options):
    return load(sources, roles, time=TimeOptions("t", window, unit), **options)["p"].windows


def same(found, want):
    """Whether the windows of files give the result of rows in memory."""
    result = assess_windows(found, 0.05, 0.95)
    assert [w.label for w in result.windows] == [w.label for w in want.windows]
    assert [w.n for w in result.windows] == [w.n for w in want.windows]
    assert result.change.pvalue == pytest.approx(want.change.pvalue, rel=1e-6)
    assert [w.error.high for w in result.windows] == pytest.approx([w.error.high for w in want.windows], rel=1e-6)
    assert result.window == want.window


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("window", ["auto", "12h", "week", "500 rows"])
def test_files_have_the_windows_of_rows_in_memory(tmp_path, monkeypatch, ending, window):
    monkeypatch.setattr(parquet_arrow, "BATCH", 700)
    y, p, time = rows()
    same(read(write(tmp_path, ending, y, p, time, files=3), window), tc.assess_over_time(y, p, time, window=window))


def test_too_many_short_windows_are_merged_while_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_arrow, "BATCH", 100)
    monkeypatch.setattr(module, "_MOST_KEPT", 64)
    y, p, time = rows(seconds=400 * 86400)
    sources = write(tmp_path, "parquet", y, p, time)
    same(read(sources, exact_rows=500), tc.assess_over_time(y, p, time))
    order = np.random.default_rng(0).permutation(len(y))
    sources = write(tmp_path, "parquet", y[order], p[order], time[order])
    same(read(sources), tc.assess_over_time(y, p, time))


def test_integers_are_counters_or_times(tmp_path):
    y, p, time = rows()
    seconds = time.astype("datetime64[s]").astype(np.int64)
    for ending in ("csv", "parquet"):
        sources = write(tmp_path, ending, y, p, seconds)
        same(read(sources, "week", "s"), tc.assess_over_time(y, p, time, window="week"))
        same(read(sources), tc.assess_over_time(y, p, seconds))


def test_time_zones_and_dates(tmp_path):
    y, p, time = rows()
    table = pa.table(
        {"y": y, "p": p, "t": pa.array(time).cast(pa.timestamp("ns")).cast(pa.timestamp("ns", "Asia/Tokyo"))}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    same(read(find_sources(tmp_path / "a.parquet"), "day"), tc.assess_over_time(y, p, time, window="day"))
    days = time.astype("datetime64[D]")
    same(read(write(tmp_path, "csv", y, p, days), "week"), tc.assess_over_time(y, p, days, window="week"))


def test_time_in_the_path(tmp_path):
    y, p, time = rows()
    days = time.astype("datetime64[M]")
    for month in np.unique(days):
        folder = tmp_path / f"t={month}-01"
        folder.mkdir()
        pq.write_table(pa.table({"y": y[days == month], "p": p[days == month]}), folder / "part.parquet")
    same(read(find_sources(tmp_path), "month"), tc.assess_over_time(y, p, time, window="month"))


def test_weights_and_groups_beside_windows(tmp_path):
    y, p, time = rows()
    w = np.where(np.arange(len(y)) % 3, 1.0, 0.0)
    pq.write_table(pa.table({"y": y, "p": p, "t": time, "w": w, "g": ["a", "b"] * 1500}), tmp_path / "a.parquet")
    roles = ColumnRoles.of("y", "p", "w", "g", None)
    loaded = load(find_sources(tmp_path / "a.parquet"), roles, time=TimeOptions("t", "month"))["p"]
    assert set(loaded.table) == {"a", "b"}
    same(loaded.windows, tc.assess_over_time(y, p, time, window="month", sample_weight=w))


ERRORS = {
    "missing": (["2024-01-01", "", "2024-01-02"], "column 't' has a missing value (no time) at row 1 (1 of 3 rows). Drop"),
    "text": (["2024-01-01", "2024-01-02", "soon"], "column 't' must contain dates, times, ISO text"),
    "zones": (["2024-01-01", "2024-01-02", "2024-01-02T00:00Z"], "column 't' must have a time zone in all rows or in none"),
    "fractions": (["1.5", "2.5", "3.5"], "found '1.5' at row 0"),
}  # fmt: skip


@pytest.mark.parametrize(("times", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_name_file_column_and_row(tmp_path, times, message):
    (tmp_path / "0.csv").write_text("y,p,t\n" + "".join(f"1,0.5,{t}\n" for t in times))
    with pytest.raises((ValueError, TypeError)) as caught:
        read(find_sources(tmp_path / "0.csv"))
    assert str(caught.value).startswith(f"{tmp_path / '0.csv'}: ")
    assert message in str(caught.value)


def test_rows_are_numbered_from_the_start_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_arrow, "BATCH", 2)
    times = ["2024-01-01", "2024-01-02", "2024-01-03", None, "x"]
    pq.write_table(pa.table({"y": [0, 1, 0, 1, 0], "p": [0.5] * 5, "t": times}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 't' has a missing value \(no time\) at row 3 \(1 of 2 rows\)"):
        read(find_sources(tmp_path / "a.parquet"))
    pq.write_table(
        pa.table({"y": [0, 1, 0], "p": [0.5] * 3, "t": ["2024-01-01", "2024-01-02", "x"]}), tmp_path / "a.parquet"
    )
    with pytest.raises(ValueError, match=r"found 'x' at row 2\."):
        read(find_sources(tmp_path / "a.parquet"))


def test_files_must_agree(tmp_path):
    (tmp_path / "0.csv").write_text("y,p,t\n1,0.5,2024-01-01\n")
    (tmp_path / "1.csv").write_text("y,p,t\n1,0.5,7\n")
    with pytest.raises(ValueError, match="must have one type in all files, but only some times are integers"):
        read(find_sources(tmp_path))
    (tmp_path / "1.csv").write_text("y,p,t\n1,0.5,2024-01-01T00:00Z\n")
    with pytest.raises(ValueError, match="only some times have a time zone"):
        read(find_sources(tmp_path))


def test_windows_that_are_refused(tmp_path):
    y, p, time = rows()
    sources = write(tmp_path, "parquet", y, p, time)
    with pytest.raises(ValueError, match=r"`window` of minute makes 2,9\d\d windows or more .* window='week'\.$"):
        read(sources, "1min")
    with pytest.raises(ValueError, match="`window` must be 'day'"):
        read(sources, "fortnight")
    sources = write(tmp_path, "parquet", y, p, time[::-1])
    with pytest.raises(ValueError, match="must increase from row to row for windows of rows; row 1 is earlier"):
        read(sources, "100 rows")
