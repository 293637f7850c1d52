"""Percentages of one event: --percent gives the numbers of the probabilities, in all commands that read rows."""

import csv
import json
import pathlib

import numpy as np
import pytest

import truthcal as tc

NOTE = "Probabilities are percentages: they were divided by 100 (--percent)."
BASE = ["--label", "hit"]
COMMANDS = {
    "assess": [],
    "check": [],
    "test": [],
    "measures": ["--measure", "atb"],
    "recalibrate": ["--method", "temperature"],
}


@pytest.fixture
def rows(write, events):
    """Probabilities, and the same as percentages, also with a sign, and with a sign in some rows."""
    score = events["score"]
    percent = [f"{100 * p:.3f}" for p in score]
    columns = {
        "chance_pct": percent,
        "signed": [f"{p} %" for p in percent],
        "mixed": [f"{p}%" if i % 2 else p for i, p in enumerate(percent)],
    }
    return write("p.csv", id=events["id"], hit=events["hit"], score=score, **columns)


@pytest.mark.parametrize("column", ["chance_pct", "signed", "mixed"])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_numbers_are_those_of_probabilities(quick, rows, command, column):
    text = quick(command, rows, "--proba", column, "--percent", *BASE, *COMMANDS[command])
    plain = quick(command, rows, "--proba", "score", *BASE, *COMMANDS[command])
    assert NOTE in text.out
    assert text.out.replace(NOTE, "").replace(column, "score").strip() == plain.out.strip()


def test_sketch_compare_report_and_watch(quick, rows):
    for column, options in (("score", []), ("mixed", ["--percent"])):
        quick("sketch", rows, *BASE, "--proba", column, *options, "-o", f"{column}.sketch", check=0)
    assert quick("assess", "mixed.sketch").out == quick("assess", "score.sketch").out
    pair = quick("compare", rows, *BASE, "--proba", "chance_pct,signed", "--percent", check=0)
    assert NOTE in pair.out
    twin = rows.parent / "twin.csv"
    twin.write_text(rows.read_text())
    options = [*BASE, "--key", "id", "--proba", "mixed", "--percent"]
    assert NOTE in quick("compare", rows, twin, *options, check=0).out
    options = [*BASE, "--time", "id", "--window", "300 rows", "--state", "s.tcm"]
    done = quick("watch", rows, *options, "--proba", "signed", "--percent", check=0)
    assert NOTE in done.err
    error = quick("watch", rows, *options, "--proba", "signed", check=2).err
    assert "Percentages? Remove the sign and divide by 100. Or add --percent, which divides by 100." in error


def test_watch_remembers_the_option(quick, rows):
    options = [*BASE, "--time", "id", "--window", "300 rows", "--state", "s.tcm", "--proba", "score"]
    quick("watch", rows, *options, check=0)
    rows.write_text(rows.read_text().replace("score", "other").replace("chance_pct", "score"))
    error = quick("watch", rows, *options, "--percent", check=2).err
    assert "s.tcm: was made without --percent, not with --percent; use the same, or another --state." in error


def test_columns_are_guessed(quick, write, events):
    path = write("p.csv", hit=events["hit"], proba=[f"{100 * p:.3f}%" for p in events["score"]])
    assert "as if you had typed: --label hit --proba proba" in quick("assess", path, "--percent", check=0).err


@pytest.mark.parametrize(("column", "cure"), [("chance_pct", "Divide by 100."), ("signed", "Remove the sign")])
def test_errors_suggest_the_option(quick, rows, column, cure):
    error = quick("assess", rows, *BASE, "--proba", column, check=2).err
    assert cure in error
    assert "Or add --percent, which divides by 100." in error
    assert "--percent" not in quick("audit", rows, "--proba", column, check=2).err


def test_probabilities_are_no_percentages(quick, rows):
    error = quick("assess", rows, *BASE, "--proba", "score", "--percent", check=2).err
    assert "--percent: 'score' of " in error
    assert "has only numbers between 0 and 1 in its first rows, so they are not percentages. Omit --percent" in error


def test_json_lines_with_signs(quick, tmp_path, events):
    lines = [
        json.dumps({"hit": y, "chance": f"{100 * p:.3f}%"}) for y, p in zip(events["hit"], events["score"], strict=True)
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(lines) + "\n")
    assert NOTE in quick("assess", "p.jsonl", "--percent", "--proba", "chance", check=0).out


def test_a_correction_of_percentages_is_applied_to_percentages(quick, rows):
    """The stored file says what the column held, so that the same column is converted again."""
    quick("recalibrate", rows, *BASE, "--proba", "signed", "--percent", "--method", "platt", "-o", "pct.json", check=0)
    fix = tc.Recalibration.from_json("pct.json")
    for flags in ((), ("--percent",)):
        done = quick("recalibrate", "--apply", "pct.json", rows, *flags, "-o", "out.csv", check=0)
        assert "'signed' holds percentages, which were divided by 100; 'signed_recalibrated' holds proba" in done.err
        with open("out.csv", newline="") as file:
            table = list(csv.DictReader(file))
        p = np.array([float(row["signed"].removesuffix("%")) / 100 for row in table])
        np.testing.assert_allclose([float(row["signed_recalibrated"]) for row in table], fix(p), rtol=1e-12)
    for command in (
        ["--apply", "pct.json", "--sql", "duckdb"],
        [rows, *BASE, "--proba", "signed", "--percent", "--sql", "duckdb"],
    ):
        assert "divide the column of percentages by 100 in the query" in quick("recalibrate", *command, check=2).err
    assert "BETWEEN" in quick("recalibrate", "--apply", "pct.json", "--sql", "duckdb", "--proba", "p", check=0).out


def test_percentages_without_the_option_are_explained(quick, rows):
    quick("recalibrate", rows, *BASE, "--proba", "signed", "--percent", "-o", "pct.json", check=0)
    content = json.loads(pathlib.Path("pct.json").read_text()) | {"percent": False}
    pathlib.Path("fix.json").write_text(json.dumps(content))
    error = quick("recalibrate", "--apply", "fix.json", rows, "--proba", "chance_pct", "-o", "out.csv", check=2).err
    assert "must hold probabilities between 0 and 1, but row" in error
    assert "Percentages? Add --percent." in error


def test_more_than_100_percent_is_named_as_in_the_file(quick, write):
    file = write("over.csv", hit=[0, 1, 1], score=[20.0, 120.0, 70.0])
    error = quick("assess", file, *BASE, "--proba", "score", "--percent", check=2).err
    assert "'score' must lie in [0, 100] with --percent; found 120 at row 1. Correct or remove such rows." in error
