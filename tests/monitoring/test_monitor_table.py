"""Monitors of segments: the same as one monitor each, e-BH, files, errors."""

import dataclasses
import itertools
import math
import pickle
import re

import numpy as np
import pytest
from support.simulation import REPEATS

import truthcal as tc
from truthcal.monitoring.segments import e_bh


def filled(windows=3, drift=0.0, seed=0, by="region"):
    rng, table = np.random.default_rng(seed), tc.MonitorTable(by)
    for _ in range(windows):
        p = rng.beta(2, 3, 90)
        region = np.array(["a", "b", "c"])[np.arange(90) % 3]
        table.update((rng.random(90) < p - drift * (region == "b")).astype(int), p, region)
    return table


def test_each_segment_is_a_monitor_of_its_rows():
    rng, table = np.random.default_rng(0), tc.MonitorTable(["region", "age"])
    alone, total = {}, tc.Monitor()
    for window in range(4):
        p, y = rng.random(40), rng.integers(0, 2, 40)
        region, age = rng.choice(["n", "s"], 40), rng.integers(1, 3, 40)
        group = rng.integers(0, 5, 40) if window % 2 else None
        table.update(y, p, [region, age], time=window, groups=group)
        total.update(y, p, time=window, groups=group)
        for key in itertools.product("ns", (1, 2)):
            rows = (region == key[0]) & (age == key[1])
            some = None if group is None else group[rows]
            alone.setdefault(key, tc.Monitor()).update(y[rows], p[rows], time=window, groups=some)
    table.advance(4)
    assert list(table) == list(alone)
    for key, monitor in alone.items():
        assert table[key].to_bytes() == monitor.advance(4).to_bytes()
    assert table.total.to_bytes() == total.advance(4).to_bytes()


def test_sketch_tables_give_the_same_evidence():
    rng = np.random.default_rng(1)
    p, y, region = rng.random(60), rng.integers(0, 2, 60), np.array(["a", "b"])[np.arange(60) % 2]
    sketches = {key: tc.Sketch().update(y[region == key], p[region == key]) for key in "ab"}
    by_sketch = tc.MonitorTable("region").update(tc.SketchTable.from_sketches(sketches, by="region"))
    by_rows = tc.MonitorTable("region").update(y, p, region)
    for key in "ab":
        assert by_sketch[key].status().log_e_value == pytest.approx(by_rows[key].status().log_e_value, abs=1e-9)


def test_e_bh_against_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(200):
        e = np.sort(np.exp(rng.normal(3, 2, rng.integers(1, 8))))[::-1]
        alpha, n = 0.1, len(e)
        k = max((k for k in range(1, n + 1) if e[k - 1] >= n / (alpha * k)), default=0)
        assert e_bh(np.log(e).tolist(), alpha) == k
    assert e_bh([], 0.05) == 0


def test_verdict_and_table():
    status = filled(20, 0.25).status()
    assert status.miscalibrated == ("b",)
    assert status.verdict == "1 of 3 segments is miscalibrated: b (too high)."
    assert status.names[0] == "b"
    assert status.table()["miscalibrated"] == [True, False, False]
    assert "Of the listed segments, at most 5% are false on average." in str(status)
    assert status.to_dict()["verdict"] == status.verdict
    assert filled(1).status().verdict == "None of 3 segments is shown to be miscalibrated."
    assert tc.MonitorTable("a").status().verdict == "There are no segments yet."
    several = dataclasses.replace(status, names=("2020, a", "2019, b", "c, d"), by=("year", "team"), n_listed=2)
    assert re.search(r": 2020, a \(.*\); 2019, b \(.*\)\.$", several.verdict)


def test_files_and_merging(tmp_path):
    table = filled()
    table.save(tmp_path / "t")
    for other in (tc.MonitorTable.load(tmp_path / "t"), pickle.loads(pickle.dumps(table))):
        assert other.to_bytes() == table.to_bytes()
        assert other.status() == table.status()
    one, two = filled(seed=1), filled(seed=2)
    total = one.total + two.total
    assert one.merge(two).total.to_bytes() == total.to_bytes()
    assert one["a"].n == 180


def test_a_late_segment_starts_in_the_windows_of_the_table():
    table = tc.MonitorTable("x", window="week", start="2026-01-05")
    table.update([1, 0], [0.5, 0.5], ["a", "a"], time="2026-01-06")
    table.update([1, 0], [0.5, 0.5], ["a", "b"], time="2026-02-03")
    assert table["b"].status().window == "2026-02-02"
    assert table["b"].status().n_windows == 5
    assert tc.MonitorTable.from_bytes(table.to_bytes())["b"].status() == table["b"].status()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.update([1], [0.5]), "`segments` is required: the segment of each row, by region"),
        (lambda t: t.update([1], [0.5], ["a", "b"]), "`segments` has 2 rows but there are 1"),
        (lambda t: t.update([0.5], [0.5], ["a"]), "`y_true` must contain only 0 and 1"),
        (lambda t: t.update(tc.SketchTable("other")), "the SketchTable is by other, but this table by region"),
        (lambda t: t.update(tc.SketchTable("region"), [0.5]), "`y_proba` must be omitted for a SketchTable"),
        (lambda t: t.merge(tc.MonitorTable("other")), "cannot merge a table by other into one by region"),
        (lambda t: tc.MonitorTable.from_bytes(t._sealed(1, (2, 0), b"{}")), "the monitor table is inconsistent"),
    ],
)
def test_invalid_calls(call, message):
    with pytest.raises(ValueError, match=message):
        call(filled(1))


def test_unknown_segments():
    with pytest.raises(KeyError, match="no segment 'x' by region"):
        filled(1)["x"]
    with pytest.raises(TypeError, match="only a MonitorTable can be merged"):
        filled(1).merge(tc.Monitor())


@pytest.mark.simulation
def test_the_share_of_false_discoveries_is_at_most_alpha():
    """Half of the segments drift; stop at the first window in which any segment is listed."""
    n, false, rng = max(REPEATS // 15, 20), [], np.random.default_rng(2)
    for _ in range(n):
        table = tc.MonitorTable("k", alpha=0.2)
        for _ in range(15):
            p, k = rng.beta(2, 3, 400), np.arange(400) % 8
            status = table.update((rng.random(400) < p - 0.12 * (k < 4)).astype(int), p, k).status()
            if status.n_listed:
                break
        false.append(sum(key >= 4 for key in status.miscalibrated) / max(status.n_listed, 1))
    assert np.mean(false) <= 0.2 + 3 * math.sqrt(0.2 / n)


def test_rows_of_several_windows_and_frames():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    p = rng.random(600)
    frame = pandas.DataFrame(
        {
            "y": (rng.random(600) < p).astype(int),
            "p": p,
            "region": rng.choice(["north", "south"], 600),
            "day": pandas.to_datetime("2026-01-05") + pandas.to_timedelta(rng.integers(0, 28, 600), "D"),
        }
    )
    by_frame = tc.MonitorTable("region", window="week", start="2026-01-05").update(
        frame, "y", "p", "region", time="day"
    )
    by_week = tc.MonitorTable("region", window="week", start="2026-01-05")
    for _, week in frame.groupby(frame["day"].dt.isocalendar().week):
        by_week.update(week["y"], week["p"], week["region"], time=week["day"].iloc[0])
    at_once = tc.MonitorTable("region", window="week", start="2026-01-05")
    at_once.update(frame["y"], frame["p"], frame["region"], time=frame["day"])
    assert by_frame.status().to_dict() == by_week.status().to_dict() == at_once.status().to_dict()
    of_list = tc.MonitorTable("region", window="week", start="2026-01-05").update(
        frame, "y", "p", ["region"], time="day"
    )
    assert of_list.status().to_dict() == by_frame.status().to_dict()
