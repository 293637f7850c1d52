"""Messages that name the place and the cure, and how they look on a terminal."""

import json
import re

import numpy as np
import pytest


@pytest.fixture
def nested(tmp_path):
    path = tmp_path / "n.jsonl"
    rows = [{"meta": {"confident": i / 300}, "scores": {"correct": i % 2}} for i in range(300)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Make columns of their fields: jq -c '. + .meta + .scores' n.jsonl > flat.jsonl"),
        (
            ["--label", "correct", "--proba", "confident"],
            "n.jsonl has no column 'correct' (named by --label), but 'scores' holds objects. Make columns",
        ),
        (["--label", "scores.correct"], "no column 'scores.correct' (named by --label), but 'scores' holds objects."),
        (["--label", "scores", "--proba", "meta"], "--label names 'scores' of n.jsonl, which holds objects. Make col"),
    ],
)
def test_nested_json_lines(quick, nested, options, message):
    error = quick("assess", nested.name, *options, check=2).err
    assert message in error
    assert "Did you mean" not in error


def test_ragged_csv(quick, tmp_path):
    (tmp_path / "r.csv").write_text("y,p\n0,0.4\n1,0.3\n0,0.4,7\n1,0.5\n")
    error = quick("assess", "r.csv", check=2).err
    assert "(row 2: expected 2 columns, got 3: 0,0.4,7. A field with a delimiter in it must be in quotes, and" in error


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["check", "f.csv", "--plot"], "unrecognized arguments: --plot; --plot is an option of `assess`"),
        (["assess", "f.csv", "--summary", "x"], "unrecognized arguments: --summary x; --summary is an option of `check`"),
        (["assess", "f.csv", "--lable", "y"], "did you mean --label?"),
        (["compare", "a.sketch", "b.sketch"], "a sketch has no rows; pass files of rows."),
        (["assess", "f.csv", "--proba", "p,p"], "the column 'p' is named twice, by --proba; name it once."),
        (["assess", "f.csv", "--proba", "p", "--label", "p"], "named twice, by --label and --proba; name another column."),
        (["assess", "f.csv", "--report", "out.txt"], "--report must end with .html, the format of a report; got 'out.txt'."),
        (["report", "f.csv", "-o", "out.pdf"], "-o must end with .html, the format of a report; got 'out.pdf'. For a PDF"),
        (
            ["watch", "f.csv", "--time", "d", "--window", "week", "--state", "s", "--until", "tomorrow"],
            "--until must be a time such as 2024-03-31 or 2024-03-31T12:00:00Z, or an integer if the times are; got 'tom",
        ),
        (
            ["watch", "f.csv", "g.csv", "--time", "d", "--window", "2 rows", "--state", "s"],
            "row 0 of g.csv is earlier than row 1 of f.csv. Sort the rows by time, and name the files in this order",
        ),
    ],
)  # fmt: skip
def test_errors_name_place_and_cure(quick, tmp_path, line, message):
    (tmp_path / "f.csv").write_text("y,p,d\n0,0.4,2024-01-02\n1,0.3,2024-01-03\n")
    (tmp_path / "g.csv").write_text("y,p,d\n0,0.4,2024-01-01\n1,0.3,2024-01-03\n")
    for name in ("a.sketch", "b.sketch"):
        if "a.sketch" in line:
            quick("sketch", "f.csv", "-o", name, check=0)
    assert message in quick(*line, check=2).err


def test_errors_on_a_terminal_are_wrapped_at_spaces(terminal, tmp_path):
    (tmp_path / "f.csv").write_text("prob1,prob1_outcome,season\n0.3,0,2016\n0.6,1,2017\n")
    line = ["assess", "f.csv", "--label", "prob1_out/come", "--proba", "prob1"]
    for columns in (60, 80, 120):
        shell = {"COLUMNS": str(columns)}
        lines = terminal(*line, env=shell).out.replace("\r", "").rstrip("\n").split("\n")
        assert max(map(len, lines)) <= columns
        assert "'prob1_out/come'" in " ".join(lines)


def test_words_of_verdicts_are_divided_and_not_cut(terminal, write):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.02, 0.98, 3000).round(4)
    odds = (p / (1 - p)) ** 0.4
    season = [2016 + i % 3 for i in range(3000)]
    write("f.csv", y=(rng.random(3000) < odds / (1 + odds)).astype(int), p=p, season=season)
    text = terminal("assess", "f.csv", "--by", "season", env={"COLUMNS": "56"}).out.split("By season")[1]
    assert "…" not in text
    assert re.search("overc[a-z]*-", text) or "overconfident" in text


def test_a_correction_that_is_refused_is_reported_once_on_a_terminal(terminal, process, write):
    rng = np.random.default_rng(1)
    p = rng.random(2000).round(4)
    path = write("f.csv", y=(rng.random(2000) > p).astype(int), p=p)
    shown = terminal("recalibrate", path).out
    assert shown.count("not corrected") == 1
    assert "warning" not in shown
    assert process("recalibrate", path).err.count("warning: predictions stay as they are.") == 1


def test_the_report_of_a_pattern_is_named_by_the_state(quick, tmp_path):
    for k in range(2):
        rows = "".join(f"{i % 2},0.{3 + i % 5},2024-0{1 + k}-{1 + i % 28:02d}\n" for i in range(80))
        (tmp_path / f"log-{k}.csv").write_text("y,p,d\n" + rows)
    options = ["--time", "d", "--window", "week", "--state", "churn.tcm", "--report", "r.html"]
    quick("watch", "log-*.csv", *options)
    assert "<title>Are these probabilities still calibrated? churn</title>" in (tmp_path / "r.html").read_text()
