"""`truthcal recalibrate`: the library's recalibration on the command line, stored, applied and as SQL."""

import csv
import json

import numpy as np
import pytest
from scipy import special
from support.cli import valid

import truthcal as tc
from truthcal.cli.options import _OPTIONS
from truthcal.recalibration.maps import METHODS
from truthcal.results.recalibration import METHOD_NAMES


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    truth = rng.beta(0.8, 1.6, 1200)
    p = special.expit(1.6 * special.logit(truth) + 0.4).round(5)
    return (rng.random(1200) < truth).astype(int), p, rng.integers(0, 80, 1200)


@pytest.fixture
def train(tmp_path, table):
    path = tmp_path / "train.csv"
    lines = [f"{y},{p},{g}" for y, p, g in zip(*table, strict=True)]
    path.write_text("clicked,score,user\n" + "\n".join(lines) + "\n")
    return path


def test_prints_and_stores_what_the_library_finds(quick, train, table, tmp_path):
    y, p, _ = table
    fix = tc.recalibrate(y, p)
    done = quick("recalibrate", train, "-o", tmp_path / "fix.json")
    assert done.status == 0
    assert done.out == f"{fix}\n"
    assert "fix.json; apply it with: truthcal recalibrate --apply" in done.err
    assert tc.Recalibration.from_json(tmp_path / "fix.json") == fix
    assert json.loads((tmp_path / "fix.json").read_text())["y_proba"] == "score"


def test_warns_if_predictions_are_miscalibrated_and_not_corrected(quick, table, tmp_path):
    y, p, _ = table
    (tmp_path / "bad.csv").write_text("y,p\n" + "".join(f"{a},{1 - b:.5f}\n" for a, b in zip(y, p, strict=True)))
    done = quick("recalibrate", "bad.csv", "-o", "fix.json", check=0)
    warning = (
        "truthcal: warning: predictions stay as they are. Miscalibration is significant (p = 2.2e-251), but is not "
        "corrected. Predictions and outcomes are negatively correlated: are these probabilities of the opposite event? "
        "If so, pass 1 minus the predictions.\n"
    )
    assert done.err.endswith(f"truthcal: wrote fix.json; it leaves predictions as they are\n{warning}")
    assert quick("recalibrate", "--apply", "fix.json", "bad.csv", "-o", "out.csv", check=0).err.endswith(warning)
    recalibration = valid(quick("recalibrate", "bad.csv", "--json", "-q", check=0).out)["recalibration"]
    assert recalibration["warnings"] == list(tc.recalibrate(y, (1 - p).round(5)).warnings)
    quick("recalibrate", "bad.csv", "-o", "fix.json", "--method", "identity", check=0)
    assert "warning" not in quick("recalibrate", "--apply", "fix.json", "bad.csv", "-o", "out.csv", check=0).err


def test_options_are_passed_on(quick, train, table):
    y, p, users = table
    options = ["--group", "user", "--method", "beta", "--seed", "3", "--confidence-level", "0.9"]
    content = valid(quick("recalibrate", train, "--proba", "score", "--label", "clicked", *options, "--json").out)
    fix = tc.recalibrate(y, p, groups=users, method="beta", rng=3, confidence_level=0.9)
    assert content["schema"] == "truthcal/recalibrate/1"
    assert content["recalibration"]["map"] == fix.map.to_dict()
    assert content["recalibration"]["comparison"]["scores"]["n_groups"] == 27
    assert content["recalibration"]["comparison"]["scores"]["confidence_level"] == 0.9


def test_applies_it_to_new_rows(quick, train, table, tmp_path):
    quick("recalibrate", train, "-o", tmp_path / "fix.json")
    (tmp_path / "new.csv").write_text("id,score,other\n007,0.25,0.1\n008,0.9,0.2\n")
    done = quick("recalibrate", "--apply", tmp_path / "fix.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert (done.status, done.out) == (0, f"{tmp_path / 'out.csv'}\n")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["007", "008"]
    fix = tc.Recalibration.from_json(tmp_path / "fix.json")
    assert [float(row["score_recalibrated"]) for row in rows] == fix([0.25, 0.9]).tolist()
    other = quick("recalibrate", "--apply", tmp_path / "fix.json", tmp_path / "new.csv", "--proba", "other", "-o", "-")
    assert other.out.splitlines()[0] == "id,score,other,other_recalibrated"


def test_column_is_found_if_it_is_the_only_one(quick, table, tmp_path):
    tc.recalibrate(*table[:2]).to_json(tmp_path / "fix.json")  # by the library: without the name of a column
    (tmp_path / "new.csv").write_text("id,chance\n7,0.25\n8,0.9\n9,0.1\n10,0.15\n")
    done = quick("recalibrate", "--apply", tmp_path / "fix.json", tmp_path / "new.csv", "-o", "-")
    assert done.out.startswith("id,chance,chance_recalibrated\n")
    (tmp_path / "two.csv").write_text("a,b\n0.2,0.25\n0.3,0.9\n0.5,0.1\n0.6,0.15\n")
    done = quick("recalibrate", "--apply", tmp_path / "fix.json", tmp_path / "two.csv", "-o", "-")
    assert "two.csv: columns that may hold probabilities: a, b. Name one with --proba." in done.err


def test_sql(quick, train, table, tmp_path):
    fix = tc.recalibrate(*table[:2])
    quick("recalibrate", train, "-o", tmp_path / "fix.json")
    printed = quick("recalibrate", "--apply", tmp_path / "fix.json", "--sql", "postgres").out
    assert printed == fix.to_sql("postgres", y_proba="score") + "\n"
    printed = quick("recalibrate", "--apply", tmp_path / "fix.json", "--sql", "tsql", "--proba", "x").out
    assert printed == fix.to_sql("tsql", y_proba="x") + "\n"
    assert quick("recalibrate", train, "--sql", "duckdb").out == fix.to_sql("duckdb", y_proba="score") + "\n"


_FIT_OPTIONS = (
    "--report r.html",
    "--method beta",
    "--group user",
    "--alpha 0.1",
    "--label clicked",
    "--hard",
    "--seed 3",
    "--markdown",
    "--format lm-eval",
    "--confidence-level 0.9",
    "--pos-label 1",
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([], "name a file of rows to fit to, or a stored recalibration with --apply."),
        (["--apply", "fix.json"], "--apply needs one file of rows, and -o with the name of the output: truthcal"),
        (["--apply", "fix.json", "train.csv"], "--apply needs one file of rows, and -o"),
        (
            ["--apply", "fix.json", "train.csv", "-o", "x.parquet"],
            "x.parquet: the output is CSV, like the input; name it with .csv.",
        ),
        (
            ["--apply", "fix.json", "train.csv", "--sql", "duckdb"],
            "--sql prints an expression and reads no rows; omit the files",
        ),
        (["--apply", "fix.json", "--sql", "oracle"], "--sql must be one of 'duckdb', 'sqlite',"),
        (
            ["--apply", "fix.json", "train.csv", "-o", "x.csv", "--proba", "a", "--proba", "b"],
            "takes one column of predictions; name one with --proba",
        ),
        (
            ["--apply", "fix.json", "train.csv", "-o", "x.csv", "--where", "score > 0.5"],
            "--where cannot be combined with --apply",
        ),
        (["--apply", "train.csv", "train.csv", "-o", "x.csv"], "--apply train.csv: is not valid JSON ("),
        (
            ["--apply", "list.json", "train.csv", "-o", "x.csv"],
            "--apply list.json: is not a JSON object, but [1]; name a",
        ),
        (["--apply", "null.json", "train.csv", "-o", "x.csv"], "--apply null.json: "),
        (
            ["--apply", "fix.json", "--sql", "duckdb", "-o", "fix.json"],
            "fix.json: is the stored recalibration and would be overwritten; choose another output file.",
        ),
        (
            ["--apply", "fix.json", "--sql", "duckdb", "--json"],
            "--json cannot be combined with --apply, which fits and reports nothing; omit one of them.",
        ),
        (
            ["train.csv", "--sql", "duckdb", "--json"],
            "--sql prints an expression, which cannot be combined with --json",
        ),
        *(
            (
                ["--apply", "fix.json", "train.csv", "-o", "x.csv", *option.split()],
                f"{flag} cannot be combined with --apply",
            )
            for option in _FIT_OPTIONS
            for flag in [option.split()[0]]
        ),
        (["--apply", "fix.json", "*.csv", "-o", "x.csv"], "*.csv: matches 2 files; name one of them."),
        (["a.sketch"], "a.sketch: is a sketch; `recalibrate` needs the rows themselves."),
        (["train.csv", "-o", "train.csv"], "train.csv: is an input and would be overwritten"),
    ],
)
def test_wrong_usage(quick, train, table, tmp_path, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    tc.recalibrate([0, 1] * 20, [0.3] * 40).to_json("fix.json")
    (tmp_path / "more.csv").write_text("score\n0.5\n")
    (tmp_path / "list.json").write_text("[1]")
    stored = json.loads((tmp_path / "fix.json").read_text()) | {"method": "platt", "map": {"a": None, "b": 1, "c": 0}}
    (tmp_path / "null.json").write_text(json.dumps(stored))
    tc.Sketch().update(*table[:2]).save("a.sketch")
    done = quick("recalibrate", *line)
    assert done.status == 2
    assert message in done.err
    assert not (tmp_path / "x.csv").exists()
    assert not (tmp_path / "r.html").exists()


def test_missing_scores_are_left_empty_and_counted(quick, train, tmp_path):
    quick("recalibrate", train, "-o", tmp_path / "fix.json")
    (tmp_path / "new.csv").write_text("score,id\n0.5,1\n,2\n")
    line = ("recalibrate", "--apply", tmp_path / "fix.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    done = quick(*line, check=0)
    assert "1 of 2 rows has no 'score'; 'score_recalibrated' is empty there\n" in done.err
    assert (tmp_path / "out.csv").read_text().endswith("\n,2,\n")


def test_bad_rows_leave_no_file(quick, train, tmp_path):
    quick("recalibrate", train, "-o", tmp_path / "fix.json")
    (tmp_path / "new.csv").write_text("score\n0.5\n12\n")
    done = quick("recalibrate", "--apply", tmp_path / "fix.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.status == 2
    assert "new.csv: column 'score' must hold probabilities between 0 and 1, but row 1 is 12." in done.err
    assert not (tmp_path / "out.csv").exists()


def test_output_is_replaced_at_the_end_or_not_at_all(quick, train, tmp_path, monkeypatch):
    monkeypatch.setattr("truthcal.io.files.add_column._ROWS", 2)
    monkeypatch.chdir(tmp_path)
    quick("recalibrate", train, "-o", "fix.json", check=0)
    (tmp_path / "new.csv").write_text("score\n" + "0.5\n" * 6)
    (tmp_path / "bad.csv").write_text("score\n" + "0.5\n" * 6 + "12\n")
    (tmp_path / "out.csv").write_text("old")
    files = sorted(tmp_path.iterdir())
    quick("recalibrate", "--apply", "fix.json", "bad.csv", "-o", "out.csv", check=2)
    assert (tmp_path / "out.csv").read_text() == "old"
    quick("recalibrate", "--apply", "fix.json", "new.csv", "-o", "out.csv", check=0)
    assert (tmp_path / "out.csv").read_text().startswith("score,score_recalibrated\n0.5,")
    assert sorted(tmp_path.iterdir()) == files


def test_methods_are_written_alike():
    """The parser must not import the library, which takes 0.2 s; results must not import maps, which use them."""
    options = next(settings for flags, settings in [_OPTIONS["recalibration-method"]] if flags == ("--method",))
    assert options["choices"] == ("auto", *METHODS)
    assert list(METHOD_NAMES) == list(METHODS)


def test_sql_in_a_file(quick, train, tmp_path):
    quick("recalibrate", train, "-o", tmp_path / "fix.json", check=0)
    line = ("recalibrate", "--apply", tmp_path / "fix.json", "--sql", "duckdb")
    path = tmp_path / "fix.sql"
    done = quick(*line, "-o", path, check=0)
    assert done.out == f"{path}\n"
    assert path.read_text() == quick(*line, check=0).out == quick(*line, "-o", "-", check=0).out


def test_stored_file_with_a_byte_order_mark(quick, train, tmp_path):
    """As an editor on Windows may save it."""
    fix = tmp_path / "fix.json"
    quick("recalibrate", train, "-o", fix, check=0)
    fix.write_text(fix.read_text(), encoding="utf-8-sig")
    assert '"score"' in quick("recalibrate", "--apply", fix, "--sql", "duckdb", check=0).out
