"""Forecasts on the command line: ties, void questions, and several forecasts per question."""

import datetime

import numpy as np
import pytest
from support.cli import valid

import truthcal as tc


@pytest.fixture(scope="module")
def games():
    """Forecasts of 300 games, of which every 25th is a tie."""
    rng = np.random.default_rng(0)
    p = rng.random(300).round(3)
    won = [0.5 if i % 25 == 3 else int(rng.random() < x) for i, x in enumerate(p)]
    return {"prob": p.tolist(), "result": won}


@pytest.fixture
def questions(write):
    """Five forecasts of each of 80 questions, 4 to 20 days before it closes."""
    rng = np.random.default_rng(1)
    rows = []
    for i in range(80):
        p, close = rng.random(), datetime.date(2026, 3, 1) + datetime.timedelta(days=i)
        outcome = int(rng.random() < p)
        rows += [
            (f"Q{i}", close - datetime.timedelta(days=4 * k), close, round(p, 3), outcome, k) for k in range(5, 0, -1)
        ]
    names = ("question_id", "made", "close", "prob", "outcome", "k")
    return write(**{name: [row[i] for row in rows] for i, name in enumerate(names)})


def test_ties_are_dropped_and_counted(quick, write, games):
    path = write(**games)
    done = quick("assess", path, "--fractional", "drop", check=0)
    assert "12 of 300 rows (4.0%) have a fractional outcome and are left out (--fractional drop)." in done.out
    content = valid(quick("assess", path, "--fractional", "drop", "--json", check=0).out)
    keep = np.array(games["result"]) != 0.5
    expected = tc.assess(np.array(games["result"])[keep], np.array(games["prob"])[keep])
    assert content["models"][0]["assessment"]["atb"] == pytest.approx(expected.atb, rel=1e-12)
    assert (content["input"]["rows"], content["input"]["dropped"]["fractional"]) == (288, 12)


@pytest.mark.parametrize("options", [(), ("--label", "result")])
@pytest.mark.parametrize("command", ["assess", "test", "check"])
def test_the_error_of_a_tie_names_the_way_out(quick, write, games, command, options):
    done = quick(command, write(**games), *options, check=2)
    assert "add --fractional drop; `truthcal measures` accepts them" in done.err


def test_columns_named_in_pairs(quick, write, games):
    """As FiveThirtyEight writes games of the NFL, with ties."""
    won, p = games["result"], games["prob"]
    other = {"prob2": [round(1 - x, 3) for x in p], "prob2_outcome": [1 - y for y in won]}
    path = write(season=[2022] * 300, prob1=p, prob1_outcome=won, **other)
    done = quick("assess", path, "--proba", "prob1", check=2)
    assert "'prob1_outcome' holds fractions such as 0.5 (a tie or a partial" in done.err
    done = quick("assess", path, "--proba", "prob1", "--fractional", "drop", check=0)
    assert "as if you had typed: --label prob1_outcome" in done.err
    assert "12 of 300 rows" in done.out


def test_measures_accept_ties_and_say_so(quick, write, games):
    path = write(**games)
    for options in ((), ("--fractional", "keep")):
        done = quick("measures", path, "--measure", "atb", *options, check=0)
        assert "12 of 300 rows (4.0%) have a fractional outcome, which is taken as a true probability." in done.out
    assert f"{tc.atb(games['result'], games['prob']):.4g}" in done.out
    dropped = quick("measures", path, "--measure", "atb", "--fractional", "drop", check=0)
    assert "are left out" in dropped.out


def test_fractions_cannot_be_kept_in_tests(quick, write, games):
    done = quick("assess", write(**games), "--fractional", "keep", check=2)
    assert "--fractional keep is not possible in `assess`: tests and intervals need outcomes of 0 and 1" in done.err


@pytest.mark.parametrize("word", ["void", "annulled", "postponed", "N/A", ""])
def test_void_questions(quick, write, games, word):
    outcome = [word if y == 0.5 else y for y in games["result"]]
    path = write(prob=games["prob"], outcome=outcome)
    done = quick("assess", path, check=2)
    assert "--missing drop" in done.err
    assert "--missing drop" in quick("assess", path, "--label", "outcome", check=2).err
    done = quick("assess", path, "--missing", "drop", check=0)
    assert "12 of 300 rows (4.0%) have no outcome (missing or void) and are left out (--missing drop)." in done.out
    about = valid(quick("test", path, "--missing", "drop", "--json", check=0).out)["input"]
    assert (about["rows"], about["dropped"]["missing_outcomes"]) == (288, 12)


def test_missing_outcomes_must_not_be_imputed(quick, write, games, tmp_path):
    """The outcome is the evidence; rows without it are dropped, or wait for it in `watch`."""
    outcome = ["" if i == 4 else int(y) for i, y in enumerate(games["result"])]
    path = write(prob=games["prob"], result=outcome, day=["2024-01-01"] * len(outcome))
    line = (path, "--label", "result", "--proba", "prob")
    error = quick("assess", *line, check=2).err
    assert "Drop those rows. To leave out rows without a value and count them, add --missing drop.\n" in error
    error = quick("watch", *line, "--time", "day", "--window", "week", "--state", tmp_path / "s.tcm", check=2).err
    assert "Drop those rows. Outcomes that are not known yet: --due names the column" in error


@pytest.mark.parametrize("name", ["question_id", "questionId", "Question ID", "QID", "market-id"])
def test_a_column_of_questions_is_noticed(quick, write, games, name):
    n = len(games["prob"])
    path = write(prob=games["prob"], hit=[int(y) for y in games["result"]], **{name: [i // 3 for i in range(n)]})
    error = quick("assess", path, check=0).err
    assert f"values of {name!r} are repeated; if rows of one {name!r} share their outcome, add --group " in error
    if " " in name:
        assert f"add --group '{name}', or use one forecast of each: --question '{name}' --time" in error


@pytest.mark.parametrize("name", ["patient", "Patient ID", "customer_id"])
def test_a_column_of_people_is_noticed(quick, write, games, name):
    n = len(games["prob"])
    path = write(prob=games["prob"], hit=[int(y) for y in games["result"]], **{name: [i // 3 for i in range(n)]})
    hint = f"values of {name!r} are repeated; if rows of one {name!r} have similar outcomes, add --group "
    assert hint in quick("assess", path, check=0).err
    assert "are repeated" not in quick("assess", path, "--group", name, check=0).err


def test_missing_probabilities(quick, write, games):
    path = write(
        prob=["" if i < 2 else p for i, p in enumerate(games["prob"])], result=[int(y) for y in games["result"]]
    )
    assert "add --missing drop" in quick("assess", path, check=2).err
    assert "2 of 300 rows (0.7%) have no probability" in quick("assess", path, "--missing", "drop", check=0).out


def test_the_way_out_is_not_named_where_there_is_none(quick, write, games):
    path = write(prob=["", *games["prob"][1:]], result=[int(y) for y in games["result"]])
    assert "--missing drop" not in quick("audit", path, "--proba", "prob", check=2).err


def test_report_counts_the_rows_left_out(quick, write, games, tmp_path):
    pytest.importorskip("jinja2")
    quick("report", write(**games), "--fractional", "drop", "-o", tmp_path / "out.html", check=0)
    page = (tmp_path / "out.html").read_text()
    assert "12 of 300 rows (4.0%) have a fractional outcome and are left out" in page
    assert "rows left out" in page


def test_a_sketch_is_written_with_the_count_of_rows_left_out(quick, write, games, tmp_path):
    done = quick("sketch", write(**games), "--fractional", "drop", "-o", tmp_path / "a.sketch", check=0)
    assert "288 rows" in done.err
    assert "12 of 300 rows (4.0%) have a fractional outcome and are left out" in done.err


def test_the_summary_of_the_gate_counts_the_rows_left_out(quick, write, games, tmp_path):
    options = "--fractional", "drop", "--max-error", "0.9", "--summary", tmp_path / "summary.md"
    done = quick("check", write(**games), *options, "--markdown", check=0)
    assert done.out.count("\n- 12 of 300 rows") == 1
    assert (tmp_path / "summary.md").read_text().count("\n- 12 of 300 rows") == 1


def test_joined_files_leave_out_ties(quick, write, games):
    ids = list(range(300))
    a = write("a.csv", id=ids, prob=games["prob"], result=games["result"])
    b = write("b.csv", id=ids, prob=[round(p**2, 4) for p in games["prob"]])
    options = "--key", "id", "--fractional", "drop", "--label", "result"
    content = valid(quick("compare", a, b, *options, "--json", check=0).out)
    assert (content["input"]["rows"], content["input"]["dropped"]["fractional"]) == (288, 12)


# --- several forecasts per question -----------------------------------------------------------------------------------

CHOICE = ("--question", "question_id", "--time", "made", "--close", "close")


@pytest.mark.parametrize("command", ["assess", "test", "check", "measures"])
def test_one_forecast_per_question(quick, questions, command):
    done = quick(command, questions, *CHOICE, "--horizon", "7d", "--label", "outcome", "--proba", "prob", "--json")
    about = valid(done.out)["input"]
    assert (about["rows"], about["dropped"]["other_forecasts"]) == (80, 320)
    assert about["notes"] == ["One forecast per 'question_id': the latest at least 7d before 'close' (80 of 400 rows)."]


def test_the_chosen_forecast_is_the_latest_at_the_horizon(quick, questions, tmp_path):
    """Eight days before the close is the latest of those at least seven days before it."""
    done = quick("assess", questions, *CHOICE, "--horizon", "7d", "--by", "k", "--json", check=0)
    segments = valid(done.out)["models"][0]["segments"]["segments"]
    assert [(segment["key"], segment["n"]) for segment in segments] == [("2", 80)]


def test_repeated_questions_are_noticed(quick, questions):
    done = quick("assess", questions, check=0)
    assert "values of 'question_id' are repeated" in done.err
    assert "add --group question_id, or use one forecast of each: --question question_id --time" in done.err
    assert "are repeated" not in quick("assess", questions, "--group", "question_id", check=0).err
    assert "are repeated" not in quick("assess", questions, *CHOICE, "--horizon", "7d", check=0).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--question", "question_id"), "needs --question, --time, --close and --horizon; --close is missing"),
        ((*CHOICE,), "--horizon is missing. To use all forecasts of a question, name its column with --group"),
        ((*CHOICE, "--horizon", "month"), "--horizon must be a length of time such as 7d or 12h"),
        (
            (*CHOICE, "--horizon", "60d"),
            "no question has a forecast at least 60d before 'close'; use a shorter --horizon",
        ),
        ((*CHOICE[:5], "nope", "--horizon", "7d"), "has no column 'nope' (named by --close)"),
        ((*CHOICE, "--horizon", "7d", "--window", "week"), "--window cannot be combined with --horizon"),
    ],
)
def test_options_that_are_refused(quick, questions, options, message):
    assert message in quick("assess", questions, *options, check=2).err


def test_time_of_other_commands_is_that_of_forecasts(quick, questions):
    assert "--time in `test` is for --horizon" in quick("test", questions, "--time", "made", check=2).err
    done = quick("compare", questions, questions, *CHOICE, "--horizon", "7d", "--key", "k", check=2)
    assert "--horizon cannot be combined with --key" in done.err


def test_options_of_rows_are_refused_for_sketches(quick, questions, tmp_path):
    quick("sketch", questions, "-o", tmp_path / "a.sketch", "--label", "outcome", "--proba", "prob", check=0)
    done = quick("assess", tmp_path / "a.sketch", "--missing", "drop", check=2)
    assert "--missing" in done.err
    assert "is a sketch" in done.err
