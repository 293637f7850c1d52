"""`truthcal watch`: windows, continuing, exit statuses, late outcomes, sketches, the report, and being killed."""

import datetime
import subprocess
import sys

import numpy as np
import pytest
from support.cli import ROOT, valid

import truthcal as tc
from truthcal.monitoring.watch import Watch

OK, ALARM, WRONG, UNCLEAR = 0, 1, 2, 3
FIRST = datetime.date(2026, 1, 5)  # a Monday


def stream(days, per_day=20, shift=0.0, seed=0):
    """Columns of a stream with `per_day` rows a day."""
    rng, n = np.random.default_rng(seed), days * per_day
    p = rng.beta(2, 3, n).round(4)
    day = np.arange(n) // per_day
    drift = shift * (day >= days // 2)
    return {
        "date": [str(FIRST + datetime.timedelta(int(d))) for d in day],
        "due": [str(FIRST + datetime.timedelta(int(d) + 7)) for d in day],
        "region": np.array(["north", "south"])[np.arange(n) % 2].tolist(),
        "match": (np.arange(n) // 5).tolist(),
        "score": p.tolist(),
        "hit": (rng.random(n) < p - drift).astype(int).tolist(),
    }


def first_rows(columns, n):
    return {name: values[:n] for name, values in columns.items()}


@pytest.fixture
def watch(quick, tmp_path):
    """Run the command with a state file."""

    def run(file, *arguments, window="week", state="m.tcm", check=None):
        options = ["--time", "date", "--label", "hit", "--proba", "score", "--window", window]
        return quick("watch", file, *options, "--state", tmp_path / state, *arguments, check=check)

    return run


def test_each_closed_window_has_a_line(watch, write):
    columns = stream(70)
    done = watch(write("s.csv", **columns), check=OK)
    lines = done.out.splitlines()
    assert [line.split(":")[0] for line in lines[:9]] == [str(FIRST + datetime.timedelta(7 * k)) for k in range(9)]
    assert lines[0].startswith("2026-01-05: 140 rows, bias ")
    assert lines[0].endswith(", ok")
    assert "No alarm after 1,260 rows in 9 windows." in done.out  # the tenth is still open


def test_the_evidence_is_that_of_a_monitor(watch, write, tmp_path):
    columns = stream(70)
    watch(write("s.csv", **columns), check=OK)
    monitor = tc.Monitor(window="week")
    before = FIRST + datetime.timedelta(63)
    known = [str(before) > day for day in columns["date"]]
    rows = [np.array(columns[name])[known] for name in ("hit", "score", "date")]
    monitor.update(rows[0], rows[1], time=rows[2].tolist())
    status = Watch.load(tmp_path / "m.tcm").result().status
    assert status.log_e_value == pytest.approx(monitor.status().log_e_value, rel=1e-12)
    assert status.window == monitor.status().window == "2026-03-02"


@pytest.mark.parametrize("window", ["week", "3d", "month", "100 rows"])
@pytest.mark.parametrize("more", [(), ("--by", "region"), ("--group", "match"), ("--by", "region", "--group", "match")])
def test_running_again_gives_the_state_of_one_run(watch, write, tmp_path, window, more):
    columns = stream(100)
    for k, n in enumerate((500, 1300, 1300, 2000)):
        file = write(f"s{k}.csv", **first_rows(columns, n))
        watch(file, *more, window=window)
    done = watch(file, *more, window=window)
    assert "no window was closed since the last run" in done.err
    watch(write("whole.csv", **columns), *more, window=window, state="whole.tcm")
    assert (tmp_path / "m.tcm").read_bytes() == (tmp_path / "whole.tcm").read_bytes()


def test_only_new_files_are_needed(watch, write, tmp_path):
    columns = stream(70)
    watch(write("a.csv", **first_rows(columns, 800)))
    watch(write("b.csv", **{name: values[700:] for name, values in columns.items()}))
    watch(write("whole.csv", **columns), state="whole.tcm")
    assert (tmp_path / "m.tcm").read_bytes() == (tmp_path / "whole.tcm").read_bytes()


@pytest.mark.parametrize("kept", [0, 20])
def test_a_window_is_not_closed_without_rows_that_an_earlier_run_saw(watch, write, tmp_path, kept):
    """The first file ends on Wednesday of the third week; the second alone lacks the first days of that week."""
    columns = stream(40)
    early = write("early.csv", **first_rows(columns, 340))
    watch(early)
    before = (tmp_path / "m.tcm").read_bytes()
    late = write("late.csv", **{name: values[340 - kept :] for name, values in columns.items()})
    assert (
        f"an earlier run saw 60 rows of 2026-01-19, and these files have {kept} of them. Pass all files with rows of "
        "2026-01-19: this run would close it, and a closed window is final. Nothing was changed."
    ) in watch(late, check=WRONG).err
    assert (tmp_path / "m.tcm").read_bytes() == before
    assert "warning" not in watch(write("all.csv", **columns), check=OK).err


def test_an_open_window_may_lose_some_rows(watch, write):
    columns = stream(40)
    watch(write("s.csv", **first_rows(columns, 340)))
    done = watch(write("s.csv", **{name: values[:338] + values[340:] for name, values in columns.items()}), check=OK)
    problem = "an earlier run saw 60 rows of 2026-01-19, and these files have 58 of them"
    assert f"warning: {problem}. 2026-01-19 is closed without the others." in done.err


def test_rows_of_an_open_window_are_missed_in_sketches(watch, quick, write, tmp_path):
    columns = stream(40)
    for name, part in (("early", slice(0, 340)), ("late", slice(340, None))):
        file = write(f"{name}.csv", **{key: values[part] for key, values in columns.items()})
        options = ("--by", "date", "--label", "hit", "--proba", "score", "-o", tmp_path / f"{name}.sketch")
        quick("sketch", file, *options, check=OK)
    options = ("--time", "date", "--window", "week", "--state", tmp_path / "m.tcm")
    quick("watch", tmp_path / "early.sketch", *options)
    done = quick("watch", tmp_path / "late.sketch", *options, check=WRONG)
    assert "an earlier run saw 60 rows of 2026-01-19, and these files have 0 of them." in done.err
    quick("watch", tmp_path / "early.sketch", tmp_path / "late.sketch", *options, check=OK)


def test_an_alarm_has_its_own_exit_status(watch, write):
    done = watch(write("s.csv", **stream(140, shift=0.2)), "--by", "region", check=ALARM)
    assert "\nAlarm since 2026-" in done.out
    assert "predictions have been too high since about 2026-03-" in done.out
    assert "2 of 2 segments are miscalibrated" in done.out
    assert done.out.count(", alarm\n") > 3


def test_few_rows_are_too_little(watch, write):
    done = watch(write("s.csv", **stream(15, 2)), check=UNCLEAR)
    assert "There are too few rows to exclude a large bias." in done.out
    assert watch(write("t.csv", **stream(3, 2)), state="n.tcm", check=UNCLEAR).out.startswith("No alarm: no rows have")


def test_json_has_the_documented_schema(watch, write):
    content = valid(watch(write("s.csv", **stream(70)), "--by", "region", "--json").out)
    assert (content["decision"], content["exit_status"], len(content["windows"])) == ("pass", 0, 9)
    assert content["status"]["verdict"] == "No alarm after 1,260 rows in 9 windows."
    shown = watch(write("s.csv", **stream(70)), "--markdown", "--by", "region", state="x").out
    for start in ("| window | rows |", "| e-value | ", "| region | rows |"):
        assert start in shown, start


def test_outcomes_may_be_missing_until_they_are_due(watch, write, tmp_path):
    columns = stream(70)
    rng = np.random.default_rng(1)
    last = str(FIRST + datetime.timedelta(69))
    missing = (rng.random(1400) < 0.05) | (np.array(columns["due"]) > last)
    columns["hit"] = ["" if gone else y for gone, y in zip(missing, columns["hit"], strict=True)]
    done = watch(write("s.csv", **columns), "--due", "due", check=OK)
    result = Watch.load(tmp_path / "m.tcm").result()
    assert [window.label for window in result.windows][:2] == ["2026-01-12", "2026-01-19"]  # when they are due
    assert sum(window.n_overdue for window in result.windows) == int(missing[: 20 * 56].sum())
    assert result.status.n == int((~missing)[: 20 * 56].sum())
    assert " overdue, bias" in done.out
    assert not result.warnings
    error = watch(write("s.csv", **columns), state="n.tcm", check=WRONG).err
    assert "hit" in error  # without --due every row needs an outcome


def test_outcomes_that_miss_by_prediction_give_a_warning(watch, write):
    columns = stream(70)
    rng = np.random.default_rng(1)
    gone = rng.random(1400) < 0.4 * np.array(columns["score"])
    columns["hit"] = ["" if miss else y for miss, y in zip(gone, columns["hit"], strict=True)]
    done = watch(write("s.csv", **columns), "--due", "due")
    assert "! Missing outcomes depend on the prediction: " in done.out
    assert "(z = +" in done.out


def test_closed_windows_are_final(watch, write):
    columns = stream(70)
    watch(write("s.csv", **columns))
    more = {name: [*values[:20], *values] for name, values in columns.items()}
    done = watch(write("s.csv", **more))
    assert "warning: 2026-01-05 had 140 rows when it was closed, and has 160 now. Closed windows are final" in done.err


def test_other_rows_in_a_closed_window_are_noticed(watch, write):
    columns, others = stream(70), stream(70, seed=1)
    for window in ("week", "100 rows"):
        watch(write("s.csv", **columns), window=window, state=window)
    done = watch(write("t.csv", **others), state="week")
    assert "warning: 2026-01-05 has other predictions now than when it was closed" in done.err
    later = {name: values[300:] for name, values in columns.items()}
    done = watch(write("t.csv", **later), window="100 rows", state="100 rows", check=WRONG)
    assert "the rows from row 0 on are not those of earlier runs, so it is not known which rows are new" in done.err


def test_other_outcomes_in_a_closed_window_are_noticed(watch, write):
    columns = stream(70)
    watch(write("s.csv", **columns))
    revised = {**columns, "hit": [1 - hit for hit in columns["hit"][:20]] + list(columns["hit"][20:])}
    done = watch(write("t.csv", **revised))
    assert "warning: 2026-01-05 has other outcomes now than when it was closed. Closed windows are final" in done.err
    backwards = {name: list(values)[::-1] for name, values in columns.items()}  # only the rounding of means may differ
    assert "warning" not in watch(write("u.csv", **backwards)).err


@pytest.mark.parametrize("sketched", [False, True])
def test_until_closes_the_last_window(watch, quick, write, tmp_path, sketched):
    """The stream ends on a Sunday."""
    columns = stream(70)
    file = write("s.csv", **columns)
    if sketched:
        quick(
            "sketch", file, "--by", "date", "--label", "hit", "--proba", "score", "-o", tmp_path / "s.sketch", check=OK
        )
        file = tmp_path / "s.sketch"
    options = ("--time", "date", "--window", "week", "--state", tmp_path / "m.tcm")
    columns = () if sketched else ("--label", "hit", "--proba", "score")
    done = quick("watch", file, *options, *columns, check=OK)
    assert "140 rows of 2026-03-09 wait until rows of a later window, or --until, close it." in done.err
    done = quick("watch", file, *options, *columns, "--until", "2026-03-15", check=OK)
    assert "no window was closed since the last run" in done.err
    done = quick("watch", file, *options, *columns, "--until", "2026-03-16", check=OK)
    assert "2026-03-09: 140 rows" in done.out
    assert "wait" not in done.err
    assert "1,400 rows in 10 windows" in done.out


def test_until_is_a_time(watch, write):
    file = write("s.csv", **stream(30))
    assert "--until must be a time such as 2024-03-31" in watch(file, "--until", "Monday", check=WRONG).err
    done = watch(file, "--until", "2026-03-16", window="100 rows", check=WRONG)
    assert "--until needs windows of time, such as --window week, not of rows." in done.err


def test_late_outcomes_are_reported(watch, write):
    columns = stream(70)
    complete = write("t.csv", **columns)
    columns["hit"] = ["" if row < 30 else y for row, y in enumerate(columns["hit"])]
    watch(write("s.csv", **columns), "--due", "due")
    done = watch(complete, "--due", "due")
    assert "2026-01-12: 30 outcomes arrived after it was closed; they are not scored" in done.err


@pytest.mark.parametrize("by", [None, "region"])
def test_sketches_by_day(watch, quick, write, tmp_path, by):
    columns = stream(70)
    file = write("s.csv", **columns)
    more = () if by is None else ("--by", by)
    names = ["date"] if by is None else ["date", by]
    tc.scan(file, y_true="hit", y_proba="score", by=names).save(tmp_path / "days.sketch")
    quick("watch", tmp_path / "days.sketch", "--window", "week", "--state", tmp_path / "k.tcm", *more, check=OK)
    watch(file, *more)
    sketched, rows = (Watch.load(tmp_path / name).result() for name in ("k.tcm", "m.tcm"))
    assert sketched.status.log_e_value == pytest.approx(rows.status.log_e_value, abs=1e-9)
    assert [w.n for w in sketched.windows] == [w.n for w in rows.windows]
    assert [w.mean_true for w in sketched.windows] == pytest.approx([w.mean_true for w in rows.windows])
    if by is not None:
        assert sketched.segments.names == rows.segments.names


def test_the_report(watch, write, tmp_path):
    watch(write("s.csv", **stream(140, shift=0.2)), "--by", "region", "--report", tmp_path / "r.html", check=ALARM)
    page = (tmp_path / "r.html").read_text()
    for words in ("Evidence against calibration", "Error in each window", "Rows in each window", "Alarm since 2026-"):
        assert words in page
    assert page.count("<svg") == 3
    assert "<script" not in page
    numbers = stream(140)
    numbers["date"] = list(range(len(numbers["date"])))
    watch(write("t.csv", **numbers), "--report", tmp_path / "n.html", window="200", state="n.tcm")
    assert "No alarm after 2,600 rows in 13 windows." in (tmp_path / "n.html").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--by", "region"), "was made without --by, not with --by region; use the same, or another --state"),
        (("--alpha", "0.01"), "was made with --alpha 0.05, not with --alpha 0.01"),
        (("--group", "match"), "was made without --group, not with --group match"),
        (("--due", "nothing"), "nothing"),
    ],
)
def test_options_that_do_not_fit_the_state(watch, write, more, message):
    file = write("s.csv", **stream(70))
    watch(file)
    assert message in watch(file, *more, check=WRONG).err


def test_damaged_states_and_other_files_are_refused(watch, write, tmp_path):
    file = write("s.csv", **stream(70))
    watch(file)
    data = (tmp_path / "m.tcm").read_bytes()
    (tmp_path / "m.tcm").write_bytes(data[:-5])
    assert "the state of `truthcal watch` is truncated" in watch(file, check=WRONG).err
    (tmp_path / "m.tcm").write_bytes(data[:100] + b"x" + data[101:])
    assert "corrupted (checksum mismatch)" in watch(file, check=WRONG).err
    (tmp_path / "m.tcm").write_bytes(b"something else")
    assert "not a truthcal state of `truthcal watch`" in watch(file, check=WRONG).err
    with pytest.raises(ValueError, match="is inconsistent; it was not written by truthcal"):
        Watch.from_bytes(Watch.from_bytes(data)._sealed(1, (2, 1), b"{}", b"x"))


def test_other_errors(watch, quick, write, tmp_path):
    columns = stream(30)
    file = write("s.csv", **columns)
    assert "--due needs windows of time" in watch(file, "--due", "due", window="100 rows", check=WRONG).err
    assert "--window must be 'day', 'week'" in watch(file, window="fortnight", check=WRONG).err
    state = ("--state", tmp_path / "s.tcm", "--window", "week")
    assert "name the column of times with --time. Columns: " in quick("watch", file, *state, check=WRONG).err
    columns["hit"][3] = 0.5
    error = watch(write("f.csv", **columns), check=WRONG).err
    assert "column 'hit' must contain only 0 and 1 here; found 0.5 at row 3" in error
    columns["hit"][3], columns["match"][7] = 1, ""
    error = watch(write("g.csv", **columns), "--group", "match", check=WRONG).err
    assert "column 'match' has a missing value at row 7" in error
    tc.Sketch().update([0, 1], [0.5, 0.5]).save(tmp_path / "plain.sketch")
    assert "a sketch must be by its times" in quick("watch", tmp_path / "plain.sketch", *state, check=WRONG).err


# Forks a child that has everything loaded, runs the command in it, and kills it after a random time. Children that
# finish earlier must leave the expected state, and the next one starts from nothing.
_KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import truthcal.cli.commands.watch as command
from truthcal.cli.main import main
from truthcal.monitoring.watch import Watch
state, expected, arguments = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
main([*arguments, "--state", str(expected)])  # undisturbed; also loads all modules
command.SAVE_SECONDS = 0.0
rng, kills, finished, resumed, longest = random.Random(0), 0, 0, 0, 1.0
while kills < 50:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main([*arguments, "--state", str(state)]))
    begin, wait = time.monotonic(), longest * rng.random()
    while time.monotonic() - begin < wait and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.001)
    try:
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    except (ProcessLookupError, ChildProcessError):
        status = 0
    if os.WIFSIGNALED(status):
        kills += 1
        resumed += state.exists()
        if state.exists():
            Watch.load(state)
        else:
            longest *= 1.2  # on a busy machine, nothing is saved before the kill
    else:
        longest = time.monotonic() - begin
        finished += 1
        assert state.read_bytes() == expected.read_bytes()
        state.unlink()
main([*arguments, "--state", str(state)])
assert state.read_bytes() == expected.read_bytes()
print("killed", kills, "resumed", resumed, "finished", finished)
"""


def test_a_killed_run_is_continued_as_if_nothing_had_happened(write, tmp_path):
    file = write("s.csv", **stream(280, 10, shift=0.1))
    options = ["--time", "date", "--label", "hit", "--proba", "score", "--window", "week", "--by", "region", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", _KILLER, tmp_path / "m.tcm", tmp_path / "whole.tcm", "watch", file, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "", "OPENBLAS_NUM_THREADS": "1", "TRUTHCAL_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.splitlines()[-1].split()
    assert words[:2] == ["killed", "50"]
    assert int(words[3]) >= 10  # most found a state


def test_error_of_a_window_with_groups_needs_enough_groups(watch, write):
    """Rows of one group repeat each other: an interval for independent rows would be far too narrow."""
    rng = np.random.default_rng(0)
    rows = {"date": [], "score": [], "hit": [], "game": []}
    for day, games in (("2026-01-05", 19), ("2026-01-12", 25), ("2026-01-19", 1)):
        for game in range(games):
            p, won = rng.random(10).round(3), int(rng.random() < 0.5)
            rows["date"] += [day] * 10
            rows["score"] += p.tolist()
            rows["hit"] += [won] * 10
            rows["game"] += [f"{day} {game}"] * 10
    done = watch(write("games.csv", **rows), "--group", "game", "--json")
    few, enough = valid(done.out)["windows"]
    assert few["error"]["estimate"] is None
    second = slice(190, 440)
    expected = tc.error_size(rows["hit"][second], rows["score"][second], groups=rows["game"][second])
    assert enough["error"]["estimate"] == pytest.approx(expected.estimate)
