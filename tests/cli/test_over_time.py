"""`--time` of `assess` and `report`: what the library says, in words, JSON and Markdown; which options are refused."""

import numpy as np
import pytest
from support.cli import valid

import truthcal as tc


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    day = np.sort(rng.integers(0, 60, 4000))
    p = rng.random(4000).round(4)
    y = (rng.random(4000) < np.where(day < 35, 1.0, 0.8) * p).astype(int)
    return y, p, (np.datetime64("2024-01-01") + day).astype(str)


@pytest.fixture
def file(write, rows):
    y, p, date = rows
    return write(hit=y.tolist(), score=p.tolist(), date=date.tolist(), region=["a", "b"] * 2000)


def test_assess_prints_the_assessment_over_time(quick, file, rows):
    y, p, date = rows
    want = tc.assess_over_time(y, p, date, window="week")
    out = quick("assess", file, "--time", "date", "--window", "week", check=0).out
    assert out.endswith(f"\n\nOver time: {want}\n")
    assert out.startswith(str(tc.assess(y, p)))
    markdown = quick("assess", file, "--time", "date", "--window", "week", "--markdown", check=0).out
    assert want.to_markdown() in markdown


def test_the_newest_windows_are_shown_or_all(quick, file, rows):
    y, p, date = rows
    line = ["assess", file, "--time", "date", "--window", "day"]
    whole = tc.assess_over_time(y, p, date, window="day")
    assert "\n... and 20 earlier windows\n" in str(whole)
    first, newest = "2024-01-01", "2024-02-29"
    for extra in ((), ("--markdown",)):
        out = quick(*line, *extra, check=0).out
        assert "... and 20 earlier windows (--all shows them)\n" in out
        assert newest in out
        assert first not in out
        out = quick(*line, *extra, "--all", check=0).out
        assert newest in out
        assert first in out
        assert "earlier window" not in out
    done = quick("assess", file, "--all", check=2)
    assert "--all is for segments, and there are none; name their column with --by; windows of time need" in done.err
    done = quick(*line, "--sort", "name", check=2)
    assert "--sort is for segments, and there are none; name their column with --by." in done.err


def test_json(quick, file, rows):
    y, p, date = rows
    want = tc.assess_over_time(y, p, date)
    content = valid(quick("assess", file, "--time", "date", "--by", "region", "--json", check=0).out)
    (model,) = content["models"]
    assert content["input"]["time"] == "date"
    assert model["over_time"]["verdict"] == want.verdict
    assert model["over_time"]["change"]["pvalue"] == pytest.approx(want.change.pvalue)
    assert len(model["segments"]["segments"]) == 2
    without = valid(quick("assess", file, "--json", check=0).out)
    assert without["models"][0]["over_time"] is None
    assert without["input"]["time"] is None


def test_sketches_by_day(quick, file, rows, tmp_path):
    y, p, date = rows
    quick("sketch", file, "--by", "date", "-o", tmp_path / "days.sketch", check=0)
    want = tc.assess_over_time(y, p, date, window="week")
    out = quick("assess", tmp_path / "days.sketch", "--time", "date", "--window", "week", check=0).out
    assert f"Over time: {want.verdict}" in out
    assert "By date" not in out
    done = quick("assess", tmp_path / "days.sketch", "--time", "day", check=2)
    assert "--time day: " in done.err
    assert "is a sketch by date." in done.err


def test_report(quick, file, tmp_path):
    pytest.importorskip("jinja2")
    quick("report", file, "--time", "date", "-o", tmp_path / "out.html", check=0)
    assert "Error over time" in (tmp_path / "out.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--window", "week"], "--window needs the column of times; name it with --time."),
        (["--time-unit", "s"], "--time-unit needs the column of times; name it with --time."),
        (["--time", "date", "--window", "5m"], "--window must be 'day', 'week', 'month'"),
        (["--time", "datum"], "has no column 'datum' (named by --time)"),
        (["--time", "region"], "column 'region' must contain dates, times"),
        (["--time", "date", "--window", "year"], "--window puts all rows into one window (of year)"),
        (["--time", "date", "--window", "1 row"], "the limit is 1,000. Use longer windows, for example --window week."),
    ],
)
def test_what_is_refused(quick, file, options, message):
    assert message in quick("assess", file, *options, check=2).err


def test_integers_need_a_unit_for_durations(quick, write, rows):
    y, p, date = rows
    seconds = date.astype("datetime64[s]").astype(int)
    path = write("epoch.csv", hit=y.tolist(), score=p.tolist(), at=seconds.tolist())
    assert "name the unit with --time-unit." in quick("assess", path, "--time", "at", "--window", "week", check=2).err
    want = tc.assess_over_time(y, p, date, window="week").verdict
    assert want in quick("assess", path, "--time", "at", "--window", "week", "--time-unit", "s", check=0).out
