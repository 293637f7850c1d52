"""Assessment over time: each window against functions for all rows, verdicts, errors, tables of sketches."""

import datetime as dt
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support.simulation import REPEATS, assert_covered

import truthcal as tc


def rows(n=6000, days=60, seed=0, change=None, factor=0.8):
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, days, n))
    p = rng.random(n)
    y = rng.random(n) < np.where(day >= (days if change is None else change), factor, 1.0) * p
    return y.astype(int), p, np.datetime64("2024-01-01") + day


@pytest.fixture(scope="module")
def changed():
    return tc.assess_over_time(*rows(change=35), window="week")


@pytest.fixture(scope="module")
def stable():
    y, p, time = rows(seed=1)
    return tc.assess_over_time(y, np.sqrt(p), time, window="week")  # wrong, but always in the same way


def test_each_window_is_assessed_by_the_functions_for_all_rows(changed):
    y, p, time = rows(change=35)
    start = (time - np.datetime64("2024-01-01")).astype(int) // 7  # 2024-01-01 is a Monday
    level = 0.95 ** (1 / len(changed.windows))
    assert len(changed.windows) == 9
    for k, window in enumerate(changed.windows):
        inside = start == k
        sketch = tc.Sketch().update(y[inside], p[inside])
        size, bias = (
            tc.error_size(sketch, confidence_level=level),
            tc.confidence_interval(sketch, measure="bias", confidence_level=level),
        )
        assert window.start == dt.date(2024, 1, 1) + dt.timedelta(days=7 * k)
        assert window.label == str(window.start)
        assert window.n == inside.sum()
        assert window.mean_proba == pytest.approx(p[inside].mean())
        assert window.mean_true == pytest.approx(y[inside].mean())
        assert (window.error.low, window.error.high) == pytest.approx((size.low, size.high))
        assert window.bias.estimate == pytest.approx((p - y)[inside].mean())
        assert (window.bias.low, window.bias.high) == pytest.approx((bias.low, bias.high))
        assert window.error.confidence_level == pytest.approx(level)


def test_a_change_is_found_and_dated(changed):
    y, p, time = rows(change=35)
    assert changed.kind == "changed"
    assert changed.change.start == dt.date(2024, 2, 5)  # day 35
    before = time < np.datetime64("2024-02-05")
    assert changed.change.bias_before == pytest.approx((p - y)[before].mean())
    assert changed.change.bias_after == pytest.approx((p - y)[~before].mean())
    assert changed.change.error_after == pytest.approx(tc.error_size(y[~before], p[~before]).estimate, rel=0.05)
    assert changed.verdict.startswith("Changed around 2024-02-05 (p = ")
    assert "bias +0.0061 before, +0.12 from then on; error 0.028 before, 0.14 after." in changed.verdict


def test_a_constant_error_is_stable(stable):
    assert stable.kind == "stable"
    assert all(window.error.low > 0 for window in stable.windows)
    assert stable.verdict.startswith("Stable: no change of the calibration error was detected (p = 0.")
    assert "halfway would have been detected with 80% power." in stable.verdict
    assert stable.change.label is stable.change.start is None
    assert math.isnan(stable.change.bias_before)


def test_order_of_rows_does_not_matter(changed):
    y, p, time = rows(change=35)
    order = np.random.default_rng(0).permutation(len(y))
    other = tc.assess_over_time(y[order], p[order], time[order], window="week")
    assert other.change.pvalue == pytest.approx(changed.change.pvalue)
    assert other.table() == changed.table()


def test_frames_text_and_json(changed):
    frame = changed.frame()
    assert list(frame.columns)[:4] == ["start", "n", "mean_proba", "mean_true"]
    assert len(frame) == 9
    values = json.loads(json.dumps(changed.to_dict()))
    assert values["kind"] == "changed"
    assert values["windows"][0]["start"] == "2024-01-01"
    lines = str(changed).splitlines()
    assert lines[0] == changed.verdict
    assert lines[2].split() == ["week", "rows", "bias", "error"]
    assert lines[3].startswith("2024-01-01")
    assert lines[-1] == "Intervals hold for all 9 windows at once with about 95% confidence."
    assert "| 2024-01-01 |" in changed.to_markdown()


@pytest.mark.parametrize(
    "column",
    [
        lambda t: t.astype(str).tolist(),
        lambda t: pd.Series(t),
        lambda t: pl.Series(t.astype("datetime64[us]")),
        lambda t: pd.Series(t).dt.tz_localize("UTC"),
        lambda t: t.astype("datetime64[s]").astype(object),
    ],
)
def test_columns_of_times(column, changed):
    y, p, time = rows(change=35)
    assert tc.assess_over_time(y, p, column(time), window="week").verdict == changed.verdict


def test_integers_count_or_are_times(changed):
    y, p, time = rows(change=35)
    seconds = time.astype("datetime64[s]").astype(np.int64)
    assert tc.assess_over_time(y, p, seconds, window="week", time_unit="s").verdict == changed.verdict
    days = (time - time[0]).astype(int)
    counted = tc.assess_over_time(y, p, days, window=7)
    assert counted.window == "steps of 7"
    assert [window.start for window in counted.windows] == list(range(0, 63, 7))
    assert counted.change.start == 35


def test_windows_of_rows_are_in_the_order_of_time():
    y, p, time = rows(n=2000)
    order = np.random.default_rng(0).permutation(len(y))
    result = tc.assess_over_time(y[order], p[order], time[order], window="300 rows")
    assert [window.n for window in result.windows] == [300] * 6 + [200]
    assert result.windows[0].start == dt.date(2024, 1, 1)
    assert result.windows[1].start == time[300].item()
    assert result.window == "300 rows"


def test_automatic_windows():
    assert tc.assess_over_time(*rows(days=365)).window == "month"
    assert tc.assess_over_time(*rows(days=20)).window == "day"


def test_weights_and_labels(changed):
    y, p, time = rows(change=35)
    labels = np.where(y == 1, "yes", "no")
    assert tc.assess_over_time(labels, p, time, window="week", pos_label="yes").verdict == changed.verdict
    weighted = tc.assess_over_time(y, p, time, window="week", sample_weight=np.full(len(y), 2.0))
    assert weighted.change.pvalue == pytest.approx(changed.change.pvalue)
    zero = (time < np.datetime64("2024-01-08")).astype(float)  # only the first week
    with pytest.raises(ValueError, match="puts all rows into one window"):
        tc.assess_over_time(y, p, time, window="week", sample_weight=zero)


def test_table_of_sketches(changed):
    y, p, time = rows(change=35)
    frame = pd.DataFrame({"y": y, "p": p, "day": [t.item() for t in time]})
    daily = tc.sketch_frame(frame, y_true="y", y_proba="p", by="day")
    assert tc.assess_over_time(daily, window="week").verdict == changed.verdict
    each = tc.assess_over_time(daily)
    assert each.window == "day"
    assert len(each.windows) == 60
    assert each.windows[3].start == dt.date(2024, 1, 4)
    text = tc.SketchTable.from_sketches({str(k): daily[key] for k, key in enumerate(daily)}, by="k")
    assert [window.label for window in tc.assess_over_time(text).windows[:12]] == [str(k) for k in range(12)]
    with pytest.raises(ValueError, match="does not have the order of rows"):
        tc.assess_over_time(daily, window="100 rows")
    with pytest.raises(TypeError, match="`time` cannot be combined with a SketchTable"):
        tc.assess_over_time(daily, time=time)
    two = tc.sketch_frame(frame.assign(region="a"), y_true="y", y_proba="p", by=["region", "day"])
    with pytest.raises(ValueError, match=r"must have one column, whose values are times; it has region, day"):
        tc.assess_over_time(two)
    missing = tc.SketchTable.from_sketches({None: daily[dt.date(2024, 1, 1)]}, by="day")
    with pytest.raises(ValueError, match="has rows without a time: 'day' is missing there"):
        tc.assess_over_time(missing)


def test_errors():
    y, p, time = rows(n=2000)
    with pytest.raises(TypeError, match=r"`time` is missing: pass \(y_true, y_proba, time\)"):
        tc.assess_over_time(y, p)
    with pytest.raises(TypeError, match="`y_proba` is missing"):
        tc.assess_over_time(y, time=time)
    with pytest.raises(ValueError, match="`y_true` has 2000 rows but `time` has 1999"):
        tc.assess_over_time(y, p, time[1:])
    with pytest.raises(ValueError, match="`window` must be 'day'"):
        tc.assess_over_time(y, p, time, window="fortnight")
    for adverb, word in {"weekly": "week", "daily": "day", "quarterly": "quarter"}.items():
        with pytest.raises(ValueError, match=f"'quarter', 'year', .* Did you mean '{word}'"):
            tc.assess_over_time(y, p, time, window=adverb)
    with pytest.raises(ValueError, match=r"`window` divides `time`, which is not given; got 'month'\. Pass"):
        tc.assess(y, p, window="month")
    with pytest.raises(ValueError, match="`window` puts all rows into one window"):
        tc.assess_over_time(y, p, time, window="year")
    with pytest.raises(ValueError, match=r"`y_proba` must lie in \[0, 1\]; found 1.5 at row 1999"):
        tc.assess_over_time(y, np.append(p[:-1], 1.5), time[::-1])
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here"):
        tc.assess_over_time(p, p, time)
    with pytest.raises(ValueError, match=r"`alpha` must lie strictly between 0 and 1"):
        tc.assess_over_time(y, p, time, alpha=2)
    with pytest.raises(ValueError, match=r"of 1 makes 2,000 windows or more .* window='200'\.$"):
        tc.assess_over_time(y, p, np.arange(2000), window="1")


def test_rare_events_have_a_unit():
    rng = np.random.default_rng(0)
    p, day = rng.beta(1, 400, 60_000), np.repeat(np.arange(6), 10_000)
    result = tc.assess_over_time(rng.random(60_000) < p * np.where(day < 3, 1.0, 0.2), p, day, window="1")
    assert result.kind == "changed"
    assert "per 1,000" in result.verdict
    assert "bias per 1,000" in str(result)


def test_dependent_rows_are_noted():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(400), 20)
    y = np.repeat(rng.random(400) < p[::20], 20)
    result = tc.assess_over_time(y, p, np.repeat(np.arange(10), 800), window="1")
    assert "in the order of the rows of each window" in result.dependence
    assert result.dependence in str(result)


def test_no_test_is_said():
    result = tc.assess_over_time([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.1], [1, 1, 2, 2])
    assert result.kind == "unknown"
    assert result.verdict.startswith("Not tested for change: the rows carry too little information")


@pytest.mark.simulation
@pytest.mark.parametrize("factor", [1.0, 0.75])
def test_intervals_hold_for_all_windows_at_once(factor):
    rng = np.random.default_rng(3)
    t, hits, count = np.repeat(np.arange(8), 400), {"bias": 0, "error": 0}, REPEATS // 2
    bias, error = 0.5 * (1 - factor), (1 - factor) / math.sqrt(3)
    for _ in range(count):
        p = rng.random(len(t))
        windows = tc.assess_over_time(rng.random(len(t)) < factor * p, p, t, window="1").windows
        hits["bias"] += all(bias in window.bias for window in windows)
        hits["error"] += all(error in window.error for window in windows)
    for name, number in hits.items():
        assert_covered(number, count, name, 0.93)


def test_more_windows_than_sketches_that_exist_at_a_time():
    rng = np.random.default_rng(0)
    day, p = np.repeat(np.arange(150), 40), rng.random(6000).round(3)
    y = rng.random(6000) < p
    order = rng.permutation(6000)
    result = tc.assess_over_time(y[order], p[order], day[order], window=1)
    assert [window.start for window in result.windows] == list(range(150))
    biases = [np.mean(p[day == k]) - np.mean(y[day == k]) for k in range(150)]
    np.testing.assert_allclose([window.bias.estimate for window in result.windows], biases, atol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars", "index"])
def test_windows_are_those_of_the_time_zone_of_the_column(library):
    rng = np.random.default_rng(0)
    p, y = np.full(400, 0.5), rng.random(400) < 0.5
    utc = np.datetime64("2023-12-31T23:00") + 216 * np.arange(400) * np.timedelta64(1, "m")  # from midnight in Berlin
    if library == "polars":
        polars = pytest.importorskip("polars")
        time = (
            polars.Series(utc.astype("datetime64[us]"))
            .dt.replace_time_zone("UTC")
            .dt.convert_time_zone("Europe/Berlin")
        )
    else:
        pandas = pytest.importorskip("pandas")
        time = pandas.DatetimeIndex(utc).tz_localize("UTC").tz_convert("Europe/Berlin")
        time = time if library == "index" else time.to_series(index=range(400))
    labels = [window.label for window in tc.assess_over_time(y, p, time, window="month").windows]
    assert labels == ["2024-01", "2024-02"]
