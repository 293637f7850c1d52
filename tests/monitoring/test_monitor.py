"""The monitor: its evidence against the definition, its martingale property by enumeration, merging, files, errors."""

import copy
import itertools
import math
import pickle
import sqlite3
from datetime import date, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import monitor as oracle
from support.simulation import REPEATS

import truthcal as tc
from truthcal.monitoring.blocks import Blocks
from truthcal.monitoring.start_times import kept_starts, log_reserve, log_weights
from truthcal.monitoring.tilts import tilt_table


def rows(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    return (rng.random(n) < p - shift).astype(int), p


# --- the evidence against its definition ------------------------------------------------------------------------------


@pytest.mark.parametrize("windows", [(0,), (0, 1, 2), (3, 40, 41), (0, 31, 32, 64, 100)])
def test_e_value_of_single_rows_against_the_definition(windows):
    # One row in each window: no bucket has two different predictions, so Jensen's inequality is an equality, unless
    # windows have been joined to a block.
    rng, monitor, seen = np.random.default_rng(1), tc.Monitor(), {}
    p = 0.3
    for window in windows:
        y = int(rng.random() < 0.5)
        monitor.update([y], [p], time=window)
        seen[window] = [[(p, y)]]
    assert monitor.status().e_value == pytest.approx(oracle.e_value(seen, windows[-1]), rel=1e-12)


def test_e_value_of_groups_against_the_definition():
    rng, monitor, seen = np.random.default_rng(2), tc.Monitor(), {}
    for window in (0, 1, 2):
        p, y, group = rng.random(6), rng.integers(0, 2, 6), [1, 1, 2, 3, 3, 3]
        monitor.update(y, p, time=window, groups=group)
        seen[window] = [[(p[i], y[i]) for i in range(6) if group[i] == g] for g in (1, 2, 3)]
    assert monitor.status().n_open == 6
    monitor.advance(3)
    assert monitor.status().e_value == pytest.approx(oracle.e_value(seen, 3), rel=1e-12)
    assert monitor.status().n_units == 9


def test_jensen_costs_little():
    y, p = rows(2000, shift=0.05)
    by_bucket = tc.Monitor().update(y, p).status().log_e_value
    alone = tc.Monitor().update(y, p, groups=np.arange(2000)).advance(1).status().log_e_value
    same = tc.Monitor().update(y, p).advance(1).status().log_e_value
    assert same <= alone
    assert same == pytest.approx(alone, rel=0.01)
    assert by_bucket > 3.0


def test_a_sketch_gives_the_evidence_of_its_rows():
    y, p = rows(500)
    whole = tc.Monitor().update(y, p).status()
    for size in (128, 4096):
        sketched = tc.Monitor().update(tc.Sketch(size).update(y, p)).status()
        assert sketched.log_e_value == pytest.approx(whole.log_e_value, abs=1e-9)
        assert sketched.bias.low == pytest.approx(whole.bias.low, abs=1e-12)


def test_a_table_of_sketches_by_day():
    days = [date(2026, 3, day) for day in (1, 2, 3, 9)]
    parts = [rows(50, seed) for seed in range(4)]
    table = tc.SketchTable.from_sketches(
        {day: tc.Sketch().update(*part) for day, part in zip(days, parts, strict=True)}, by="day"
    )
    monitor = tc.Monitor(window="week").update(table)
    other = tc.Monitor(window="week")
    for day, part in zip(days, parts, strict=True):
        other.update(*part, time=day)
    assert monitor.status().n_windows == 3  # Sunday the 1st, and two weeks that start on Monday
    assert monitor.status().log_e_value == pytest.approx(other.status().log_e_value, abs=1e-9)


def test_a_query_by_day_in_a_database():
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (day TEXT, y INTEGER, p REAL)")
    y, p = rows(60)
    days = [f"2026-03-{2 + i // 20:02}" for i in range(60)]
    database.executemany("INSERT INTO t VALUES (?, ?, ?)", zip(days, y.tolist(), p.tolist(), strict=True))
    query = tc.sketch_sql("t", y_true="y", y_proba="p", by="day", dialect="sqlite")
    table = tc.sketch_from_rows(database.execute(query), by="day")
    by_day = tc.Monitor(window="day").update(table).status()
    direct = tc.Monitor(window="day").update(y, p, time=days).status()
    assert by_day.n_windows == 3
    assert by_day.log_e_value == pytest.approx(direct.log_e_value, abs=1e-9)


def test_priors_add_up_to_at_most_one():
    starts = np.arange(1 << 20)
    weights = np.exp(log_weights(starts))
    assert weights.sum() <= 1.0
    assert np.exp(tilt_table().log_prior).sum() == pytest.approx(1.0)
    for now in (0, 31, 32, 500, 8191, 8192, 10**6):
        assert math.exp(log_reserve(now)) <= 1.0 - weights[: now + 1].sum() + 1e-12


@pytest.mark.parametrize("starts", [[0, 1, 2, 31, 32, 33, 48, 64, 96, 8191, 8192, 20000]])
def test_weights_of_start_times_against_the_definition(starts):
    expected = [oracle.start_weight(s) for s in starts]
    np.testing.assert_allclose(np.exp(log_weights(np.array(starts))), expected, rtol=1e-12)


def test_few_start_times_are_kept_and_never_come_back():
    before, last = set(), -1
    for now in range(0, 3000, 7):
        starts = np.arange(now + 1)
        kept = set(starts[kept_starts(starts, now)].tolist())
        assert kept == {s for s in starts.tolist() if oracle.is_kept(s, now)}
        assert {s for s in kept if s <= last} <= before
        before, last = kept, now
        assert len(kept) <= 16 * max(math.log2(now + 1), 1) + 32


# --- a martingale: enumeration of all outcomes ------------------------------------------------------------------------


def expected_e_values(n, run):
    """The mean, over all outcomes of n rows, of each e-value that `run` yields.

    `run(outcomes)` is a generator: it yields a prediction to get an outcome of that probability, or ("e", value).
    """
    totals = {}
    for outcomes in itertools.product((0, 1), repeat=n):
        probability, asked, looks, stream = 1.0, 0, 0, run()
        step = next(stream)
        while step is not None:
            if isinstance(step, tuple):
                # Outcomes that are not asked for yet must count once, not 2 to the power of their number.
                totals[looks] = totals.get(looks, 0.0) + probability * step[1] / 2 ** (n - asked)
                looks, answer = looks + 1, None
            else:
                answer = outcomes[asked]
                probability *= step if answer else 1.0 - step
                asked += 1
            step = next_step(stream, answer)
        assert asked == n
    return list(totals.values())


def next_step(stream, answer):
    try:
        return stream.send(answer)
    except StopIteration:
        return None


def look(monitor):
    return ("e", monitor.status().e_value)


def adaptive():
    """Predictions depend on the outcomes so far, and windows are skipped, so that start times are dropped."""
    monitor, p = tc.Monitor(), 0.3
    for window in (0, 40, 120):
        y = [(yield p), (yield 1.0 - p / 2)]
        monitor.update(y, [p, 1.0 - p / 2], time=window)
        yield look(monitor)
        p = 0.1 + 0.2 * sum(y)


def sketched():
    """Sketches of rows whose predictions differ within a bucket."""
    monitor = tc.Monitor()
    for window in range(3):
        p = [0.301, 0.31]
        y = [(yield p[0]), (yield p[1])]
        monitor.update(tc.Sketch(128).update(y, p), time=window)
        yield look(monitor)


def grouped():
    """Groups of two rows with the same outcome, predicted in two ways: fully dependent, each calibrated."""
    monitor = tc.Monitor()
    for window in range(3):
        y, p, group = [], [], []
        for g, chance in enumerate((0.2, 0.6)):
            outcome = yield chance
            y += [outcome, 1 - outcome, outcome]
            p += [chance, 1.0 - chance, chance]
            group += [g, g, g]
        monitor.update(y, p, time=window, groups=group)
        yield look(monitor)
    monitor.advance(3)
    yield look(monitor)


def merged():
    """Two monitors of disjoint rows."""
    one, two = tc.Monitor(), tc.Monitor()
    for window in (0, 1, 33):
        first, second = (yield 0.3), (yield 0.8)
        one.update([first], [0.3], time=window)
        two.update([second], [0.8], time=window)
        yield look(one + two)


def late():
    """Outcomes of 1 arrive one window earlier than those of 0, and both are due in the second window."""
    monitor = tc.Monitor()
    outcomes = {}
    for window in range(4):
        monitor.register([window], [0.25 + window / 8], time=window, due=window + 2)
        outcomes[window] = yield 0.25 + window / 8
        arrived = [i for i, y in outcomes.items() if window >= i + (1 if y else 2)]
        if arrived:
            monitor.resolve(arrived, [outcomes.pop(i) for i in arrived], time=window)
        yield look(monitor)
    monitor.advance(6)
    yield look(monitor)


@pytest.mark.parametrize(
    ("run", "n"),
    [(adaptive, 6), (sketched, 6), (grouped, 6), (merged, 6), (late, 4)],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_the_mean_e_value_of_a_calibrated_stream_is_at_most_1(run, n):
    means = expected_e_values(n, run)
    assert len(means) >= 3
    assert max(means) <= 1.0 + 1e-12
    assert min(means) >= 0.9  # little is lost


def test_outcomes_scored_on_arrival_would_not_be_valid():
    """The reason for due windows: the mean e-value exceeds 1 if outcomes of 1 are scored before those of 0."""

    def on_arrival():
        monitor = tc.Monitor()
        for i in range(6):
            y = yield 0.5
            if y:
                monitor.update([1], [0.5], time=i)
        yield look(monitor)

    assert expected_e_values(6, on_arrival)[0] > 1.02


# --- merging ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 99), st.booleans()), min_size=1, max_size=6))
def test_merged_monitors_equal_one_that_saw_both(steps):
    whole, parts = tc.Monitor(), (tc.Monitor(), tc.Monitor())
    window = 0
    for gap, which, seed, in_groups in steps:
        window += 12 * gap
        y, p = rows(7, seed)
        groups = [f"{which}{i // 2}" for i in range(7)] if in_groups else None
        whole.update(y, p, time=window, groups=groups)
        parts[which].update(y, p, time=window, groups=groups)
    both = parts[0] + parts[1]
    for monitor in (both, parts[1] + parts[0], whole):
        monitor.advance(window + 1)
    assert np.array_equal(both._blocks.sums, whole._blocks.sums)
    assert both._blocks.sums.tobytes() == (parts[1] + parts[0]).advance(window + 1)._blocks.sums.tobytes()
    one, other = both.status(), whole.status()
    assert one.log_e_value == other.log_e_value
    assert one.bias == other.bias
    assert one.pvalue >= other.pvalue - 1e-12


def test_merged_monitors_have_the_same_p_value_while_all_windows_are_kept():
    whole, parts = tc.Monitor(), (tc.Monitor(), tc.Monitor())
    for window in range(25):
        for which in range(2):
            y, p = rows(60, 2 * window + which, shift=0.15 if window < 12 else -0.05)
            whole.update(y, p, time=window)
            parts[which].update(y, p, time=window)
    both = (parts[0] + parts[1]).status()
    assert both.alarm_since == whole.status().alarm_since
    assert both.pvalue == pytest.approx(whole.status().pvalue, rel=1e-9)
    assert both.pvalue < 1.0 / both.e_value  # the evidence was larger before


def test_merge_leaves_the_other_monitor_and_sums_lists():
    monitors = [tc.Monitor().update(*rows(30, seed), time=seed) for seed in range(3)]
    before = [monitor.to_bytes() for monitor in monitors]
    assert sum(monitors).n == 90
    assert [monitor.to_bytes() for monitor in monitors] == before


def test_merge_adds_pending_rows_and_open_groups():
    one = tc.Monitor().register(["a"], [0.3], time=0, due=2)
    two = tc.Monitor().register(["b"], [0.7], time=1, due=2).update([1, 0], [0.5, 0.5], time=1, groups=["x", "x"])
    both = one + two
    both.resolve(["a", "b"], [1, 0], time=3).advance(4)
    assert both.n == 4
    assert both.status().n_units == 3


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (tc.Monitor(0.01), "cannot merge a monitor with alpha=0.01 into one with alpha=0.05; use the same `alpha`"),
        (tc.Monitor(window="week"), "cannot merge a monitor with window=week into one with window=None"),
    ],
)
def test_monitors_that_cannot_be_merged(other, message):
    with pytest.raises(ValueError, match=message):
        tc.Monitor().merge(other)


def test_monitors_with_other_first_windows_cannot_be_merged():
    one, two = (tc.Monitor(window="day", start=day).update(*rows(5), time=day) for day in ("2026-01-01", "2026-01-02"))
    with pytest.raises(ValueError, match="with start=2026-01-02 into one with start=2026-01-01; use the same `start`"):
        one.merge(two)
    with pytest.raises(TypeError, match="only a Monitor can be merged into a Monitor; got Sketch"):
        one.merge(tc.Sketch())
    three, four = (tc.Monitor().register([7], [0.5], time=0) for _ in range(2))
    with pytest.raises(ValueError, match="the row 7 is registered in both monitors"):
        three.merge(four)


# --- late outcomes ----------------------------------------------------------------------------------------------------


def test_rows_are_scored_at_the_end_of_their_due_window():
    monitor = tc.Monitor().register(["a", "b", "c"], [0.2, 0.5, 0.9], time=0, due=[1, 1, 2])
    monitor.resolve(["a"], [1])
    assert monitor.n == 0
    monitor.advance(2)
    status = monitor.status()
    assert (status.n, status.n_pending, status.n_overdue, status.n_due) == (1, 1, 1, 2)
    assert status.overdue_share == 0.5
    assert "overdue" in str(status)
    monitor.resolve(["b"], [0])  # overdue: scored at once
    assert monitor.n == 2
    assert monitor.advance(5).status().n_overdue == 1


def test_rows_without_a_due_window_are_scored_when_they_arrive():
    monitor = tc.Monitor().register([1, 2], [0.2, 0.5], time=0)
    assert monitor.resolve([2], [1], time=4).n == 1
    assert monitor.status().n_pending == 1
    assert math.isnan(monitor.status().overdue_share)


def test_late_rows_give_the_same_evidence_as_rows_in_their_due_window():
    y, p = rows(40)
    late = tc.Monitor().register(np.arange(40), p, time=0, due=np.arange(40) // 10)
    late.resolve(np.arange(40), y).advance(9)
    direct = tc.Monitor()
    for window in range(4):
        direct.update(y[10 * window : 10 * window + 10], p[10 * window : 10 * window + 10], time=window)
    assert late.to_bytes() != direct.to_bytes()  # it also counts rows that were due
    assert np.array_equal(late._blocks.sums, direct.advance(9)._blocks.sums)
    assert late.status().pvalue == direct.status().pvalue


def test_a_group_is_scored_as_a_whole():
    monitor = tc.Monitor().register([1, 2, 3], [0.2, 0.5, 0.6], time=0, due=[1, 3, 3], groups=["g", "g", "h"])
    monitor.resolve([1, 3], [1, 0])
    assert monitor.advance(3).n == 0
    assert monitor.advance(4).n == 2  # row 2 is overdue: its group is scored without it
    status = monitor.resolve([2], [1]).status()
    assert (status.n, status.n_units, status.n_too_late, status.n_pending) == (2, 2, 1, 0)
    assert "1 arrived too late for their group" in str(status)


def test_missing_outcomes_that_depend_on_the_prediction_give_a_warning():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    for known, warns in ((rng.random(2000) < 0.9, False), (rng.random(2000) < 1.0 - 0.3 * p, True)):
        monitor = tc.Monitor().register(np.arange(2000), p, time=0, due=1)
        monitor.resolve(np.flatnonzero(known), y[known]).advance(2)
        warnings = monitor.status().warnings
        assert bool(warnings) == warns
    missing = int((~known).sum())
    assert f"{missing:,} rows are overdue with a mean prediction of {p[~known].mean():.3g}" in warnings[0]
    assert f"{2000 - missing:,} rows with outcomes have {p[known].mean():.3g} (z = " in warnings[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.register([1], [0.5], time=0), r"`ids` has 1 at row 0, which is registered already"),
        (lambda m: m.register([5, 5], [0.5, 0.5], time=0), r"`ids` has 5 at row 1, which is registered already"),
        (lambda m: m.register([5, None], [0.5, 0.5], time=0), r"`ids` has a missing value at row 1"),
        (lambda m: m.register([5], [0.5, 0.5], time=0), r"`ids` has 1 rows but there are 2"),
        (lambda m: m.resolve([9], [1]), r"`ids` has 9 at row 0, which is not registered, or is scored already"),
        (lambda m: m.resolve([1, 1], [1, 1]), r"`ids` has 1 twice; each row has one outcome"),
        (lambda m: m.resolve([2], [1]), r"`ids` has 2 at row 0, which has its outcome already"),
        (lambda m: m.resolve([1], [0.5]), r"`y_true` must contain only 0 and 1"),
    ],
)
def test_invalid_late_outcomes(call, message):
    monitor = tc.Monitor().register([1, 2], [0.5, 0.5], time=0, due=3).resolve([2], [1])
    before = monitor.to_bytes()
    with pytest.raises(ValueError, match=message):
        call(monitor)
    assert monitor.to_bytes() == before


# --- invalid rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.update([0.5], [0.5]), "`y_true` must contain only 0 and 1"),
        (lambda m: m.update([1], [1.5]), r"`y_proba` must lie in \[0, 1\]"),
        (
            lambda m: m.update([1], [0.5], time=2),
            "has rows of window 2, but window 3 has begun, so their window is closed",
        ),
        (lambda m: m.update([1], [0.5], time=-1), "`time` must be at least 0"),
        (lambda m: m.update([1], [0.5], time=1 << 40), "windows after the first, more than"),
        (lambda m: m.update([1], [0.5], time=[3, 4]), "`time` has 2 rows but `y_proba` has 1"),
        (lambda m: m.update([1, 0], [0.5, 0.5], groups=["a"]), "`groups` has 1 rows but there are 2"),
        (lambda m: m.update([1, 0], [0.5, 0.5], groups=["a", None]), "`groups` has a missing value at row 1"),
        (lambda m: m.update(tc.Sketch(64).update([1], [0.5])), "must have at least 128 graded buckets"),
        (lambda m: m.update(tc.Sketch()), "the sketch is empty"),
        (lambda m: m.update(tc.Sketch().update([1], [0.5], [2.0])), "the sketch has weights"),
        (lambda m: m.update(tc.Sketch().update([0.5, 0.5], [0.5, 0.4])), "the sketch has fractional outcomes"),
        (lambda m: m.update(tc.Sketch().update([1], [0.5]), [0.5]), "`y_proba` must be omitted for a sketch"),
        (lambda m: m.update(tc.Sketch().update([1], [0.5]), time=[3]), "`time` must be one time for a sketch"),
        (lambda m: m.update(tc.SketchTable(["a", "b"])), "the table must have one column, of times"),
    ],
)
def test_invalid_rows_leave_the_monitor_unchanged(call, message):
    monitor = tc.Monitor().update(*rows(20), time=3)
    before = monitor.to_bytes()
    with pytest.raises(ValueError, match=message):
        call(monitor)
    assert monitor.to_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 5}, "`alpha` must lie strictly between 0 and 1"),
        ({"window": "1000 rows"}, "must be a length of time such as 'week' or '7d'"),
        ({"start": "2026-01-01"}, "`start` needs `window`"),
        ({"window": "fortnight"}, "`window` must be 'day', 'week'"),
    ],
)
def test_invalid_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        tc.Monitor(**arguments)


def test_dates_need_a_window_and_windows_need_dates():
    with pytest.raises(TypeError, match=r"`time` must be the number of a window.*For dates, set window='week'"):
        tc.Monitor().update([1], [0.5], time=date(2026, 1, 1))
    with pytest.raises(ValueError, match="`time` is required, because the monitor has windows of a week"):
        tc.Monitor(window="week").update([1], [0.5])
    monitor = tc.Monitor(window="day", start="2026-01-10")
    cure = "To include it, build the monitor with start='2026-01-09'"
    problem = "`time` is before the first window of the monitor, 2026-01-10; found 2026-01-09"
    with pytest.raises(ValueError, match=rf"{problem}\. {cure}"):
        monitor.update([1], [0.5], time="2026-01-09")


@pytest.mark.parametrize(
    ("window", "times", "labels"),
    [
        ("week", [date(2026, 1, 7), datetime(2026, 1, 20, 12)], ("2026-01-05", "2026-01-19", 3)),
        ("month", ["2025-11-30", "2026-02-01"], ("2025-11", "2026-02", 4)),
        ("12h", ["2026-01-01T13:00", "2026-01-02T00:00"], ("2026-01-01 12:00", "2026-01-02 00:00", 2)),
    ],
)
def test_windows_of_the_calendar(window, times, labels):
    monitor = tc.Monitor(window=window)
    monitor.update([1, 0], [0.5, 0.5], time=times)
    status = monitor.status()
    assert (monitor._clock.label(0), status.window, status.n_windows) == labels


# --- files ------------------------------------------------------------------------------------------------------------


def full_monitor():
    monitor = tc.Monitor(0.01, window="day", start="2026-01-01")
    for day in range(1, 29):
        monitor.update(*rows(50, day, shift=0.1), time=f"2026-01-{day:02}")
    monitor.update([1, 0, 1], [0.5, 0.2, 0.1], time="2026-01-28", groups=["a", "b", "a"])
    return monitor.register([1, "x"], [0.3, 0.4], "2026-01-28", due="2026-02-02", groups=[5, 6]).resolve([1], [1])


def test_a_file_restores_everything(tmp_path):
    monitor = full_monitor()
    path = tmp_path / "m.tcm"
    monitor.save(path)
    for other in (tc.Monitor.load(path), pickle.loads(pickle.dumps(monitor)), copy.deepcopy(monitor)):
        assert other.to_bytes() == monitor.to_bytes()
        assert other.status() == monitor.status()
        for m in (other, monitor):
            assert m.advance("2026-02-05") is m
        assert other.status() == monitor.status()
        monitor = full_monitor()


@pytest.mark.parametrize("cut", [0, 5, 20, 200, -1])
def test_damaged_files_are_refused(cut):
    data = full_monitor().to_bytes()
    with pytest.raises(ValueError, match=r"not a truthcal monitor|truncated"):
        tc.Monitor.from_bytes(data[:cut])
    if cut > 20:
        with pytest.raises(ValueError, match="corrupted"):
            tc.Monitor.from_bytes(data[:cut] + bytes([data[cut] ^ 1]) + data[cut + 1 :])


def test_other_files_are_refused():
    with pytest.raises(ValueError, match=r"not a truthcal monitor; read it with Sketch\.load"):
        tc.Monitor.from_bytes(tc.Sketch().update([1], [0.5]).to_bytes())
    monitor = tc.Monitor().update([1], [0.5])
    with pytest.raises(ValueError, match="the monitor is inconsistent"):
        tc.Monitor.from_bytes(monitor._sealed(1, (1, 2, 3), b"{}", b"abc"))


# --- what it says -----------------------------------------------------------------------------------------------------


def test_an_empty_monitor():
    status = tc.Monitor().status()
    assert (status.e_value, status.pvalue, status.alarm, status.n_windows) == (1.0, 1.0, False, 0)
    assert str(status).startswith("No alarm: no rows have been scored yet.")
    assert repr(tc.Monitor()) == "Monitor(alpha=0.05): 0 rows in 0 windows"


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (lambda p: p - 0.15, "too high"),
        (lambda p: p + 0.15, "too low"),
        (lambda p: 1 / (1 + (p / (1 - p)) ** -0.4), "overconfident"),
        (lambda p: 1 / (1 + (p / (1 - p)) ** -2.5), "underconfident"),
        (lambda p: p - 0.3 * (np.abs(p - 0.5) < 0.1), "too high near 0.5"),
    ],
)
def test_words_for_the_error(truth, words):
    rng, monitor = np.random.default_rng(3), tc.Monitor()
    for window in range(40):
        p = rng.uniform(0.02, 0.98, 150)
        q = np.clip(truth(p), 0, 1) if window >= 20 else p
        monitor.update(rng.random(150) < q, p)
    status = monitor.status()
    assert status.alarm
    assert status.error == words
    assert abs(int(status.since.split()[1]) - 20) <= 3
    assert (
        status.verdict == f"Alarm since {status.alarm_since}: predictions have been {words} since about {status.since}."
    )


@pytest.mark.parametrize(("shift", "words"), [(0.1, "too low"), (-0.1, "too high")])
@pytest.mark.parametrize("high", [False, True])
def test_an_error_of_predictions_on_one_side_is_a_shift(shift, words, high):
    """Among predictions around 0.25, outcomes that are more frequent are those of a change of the slope around 0.5."""
    rng, monitor = np.random.default_rng(4), tc.Monitor()
    for _ in range(30):
        p = rng.uniform(0.15, 0.35, 150) + (0.5 if high else 0.0)
        monitor.update(rng.random(150) < p + shift, p)
    assert monitor.status().alarm
    assert monitor.status().error.startswith(words)


def test_an_alarm_stays_when_the_evidence_fades():
    monitor = tc.Monitor()
    for window in range(100):
        monitor.update(*rows(80, window, shift=0.12 if window < 8 else 0.0))
    status = monitor.status()
    assert status.alarm
    assert status.pvalue < 0.05 < 1.0 / status.e_value
    assert "the evidence has fallen below the limit since then" in status.verdict


def test_results_have_plain_values():
    status = tc.Monitor().update(*rows(100)).status()
    plain = status.to_dict()
    assert plain["e_value"] == status.e_value
    assert plain["verdict"] == "No alarm after 100 rows in 1 window."
    assert set(status.table()) >= {"e_value", "pvalue", "alarm", "bias_low"}


def test_memory_stays_bounded():
    blocks = Blocks()
    for now in range(0, 40_000, 500):
        blocks.advance(now)
    assert len(blocks.starts) < 250


# --- simulations ------------------------------------------------------------------------------------------------------


@pytest.mark.simulation
def test_false_alarms_over_60_looks_and_the_bias_at_all_looks():
    n, alarms, missed = max(REPEATS // 8, 30), 0, 0
    rng = np.random.default_rng(5)
    for _ in range(n):
        monitor, left = tc.Monitor(), False
        for _ in range(60):
            p = rng.beta(1, 9, 60)
            status = monitor.update(rng.random(60) < p, p).status()
            left |= 0.0 not in status.bias
        alarms, missed = alarms + status.alarm, missed + left
    limit = n * 0.05 + 3 * math.sqrt(n * 0.05)
    assert alarms <= limit
    assert missed <= limit


@pytest.mark.simulation
def test_outcomes_of_1_that_arrive_early_raise_no_false_alarm():
    n, alarms, rng = max(REPEATS // 6, 30), 0, np.random.default_rng(6)
    for _ in range(n):
        monitor = tc.Monitor()
        waiting = {}
        for week in range(30):
            ids, p = [f"{week}-{i}" for i in range(40)], rng.beta(2, 5, 40)
            monitor.register(ids, p, time=week, due=week + 4)
            waiting |= {name: (week, int(y)) for name, y in zip(ids, rng.random(40) < p, strict=True)}
            here = [name for name, (then, y) in waiting.items() if week >= then + (1 if y else 4)]
            if here:
                monitor.resolve(here, [waiting.pop(name)[1] for name in here], time=week)
        alarms += monitor.status().alarm
    assert alarms <= n * 0.05 + 3 * math.sqrt(n * 0.05)


def test_update_takes_a_frame():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    p = rng.random(300)
    days = pandas.date_range("2026-01-05", periods=300, freq="6h")
    frame = pandas.DataFrame({"y": (rng.random(300) < p).astype(int), "p": p, "day": days, "user": np.arange(300) // 3})
    of_frame = tc.Monitor(window="week").update(frame, "y", "p", time="day", groups="user")
    of_columns = tc.Monitor(window="week").update(frame["y"], frame["p"], time=days, groups=frame["user"])
    assert of_frame.status().to_dict() == of_columns.status().to_dict()
    with pytest.raises(ValueError, match=r"the frame has no column .date. \(named by `time`\)"):
        tc.Monitor(window="week").update(frame, "y", "p", time="date")
