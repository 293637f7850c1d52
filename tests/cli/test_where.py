"""--where in all commands: the numbers of a file with only these rows, what is said, and errors that point."""

import json
import shlex
import shutil

import pytest
from support.cli import valid

CONDITION = "season >= 2018 and region != 'west'"


@pytest.fixture
def both(write, events):
    """A file, and one with only the rows that meet the condition."""
    columns = {**events, "season": [2014 + i % 7 for i in range(900)]}
    kept = [i for i in range(900) if columns["season"][i] >= 2018 and columns["region"][i] != "west"]
    write("all.csv", **columns)
    write("some.csv", **{name: [values[i] for i in kept] for name, values in columns.items()})
    return len(kept)


def without_input(content):
    return {name: value for name, value in content.items() if name != "input"}


@pytest.mark.parametrize(
    "line",
    [
        "assess FILE --proba score --by region",
        "test FILE --proba score --measure ece --n-resamples 99",
        "compare FILE --proba score,sure",
        "measures FILE --proba score --measure atb",
        "check FILE --proba sure",
    ],
)
def test_same_result_as_for_a_file_with_these_rows(quick, both, line):
    words = line.split()
    command = lambda name: [name if word == "FILE" else word for word in words]  # noqa: E731
    found = valid(quick(*command("all.csv"), "--label", "hit", "--where", CONDITION, "--json").out)
    wanted = valid(quick(*command("some.csv"), "--label", "hit", "--json").out)
    assert without_input(found) == without_input(wanted)
    assert found["input"]["where"] == {"condition": CONDITION, "rows_read": 900, "rows_kept": both}
    assert found["input"]["notes"] == [f"kept {both} of 900 rows (--where {CONDITION})."]
    assert found["input"]["rows"] == both
    assert wanted["input"]["where"] is None


def test_audit_sketch_and_report(quick, both, tmp_path):
    note = f"kept {both} of 900 rows (--where {CONDITION})."
    done = quick("audit", "all.csv", "--proba", "score", "--measure", "atb", "--where", CONDITION, check=0)
    assert note in done.err
    assert done.out == quick("audit", "some.csv", "--proba", "score", "--measure", "atb").out
    for name, more in (("all", ["--where", CONDITION]), ("some", [])):
        line = ["sketch", f"{name}.csv", "-o", f"{name}.sketch", "--proba", "score", "--label", "hit", *more]
        assert (note in quick(*line, check=0).err) == bool(more)
    assert (tmp_path / "all.sketch").read_bytes() == (tmp_path / "some.sketch").read_bytes()
    quick("report", "all.csv", "--proba", "score", "--label", "hit", "--where", CONDITION, "-o", "r.html", check=0)
    assert f"kept {both} of 900 rows (--where season &gt;= 2018" in (tmp_path / "r.html").read_text()


def test_standard_input(process, both, tmp_path):
    text = (tmp_path / "all.csv").read_bytes()
    line = ["assess", "-", "--proba", "score", "--label", "hit", "--where", CONDITION]
    assert f"kept {both} of 900 rows" in process(*line, stdin=text, check=0).out


def test_two_files_joined_by_a_key(quick, both, write, events):
    write("other.csv", id=events["id"], q=events["sure"])
    line = ["compare", "all.csv", "other.csv", "--key", "id", "--proba", "score", "--proba", "q", "--where", CONDITION]
    content = valid(quick(*line, "--label", "hit", "--json", check=0).out)
    assert content["comparison"]["n"] == both
    assert content["input"]["where"]["rows_read"] == 900  # of the file that has these columns
    assert "names the column 'nothing', which all.csv does not have" in quick(*line[:-1], "nothing = 1", check=2).err


def test_labels_are_guessed_from_the_rows_that_are_kept(quick, write, events):
    result = [("draw", "loss", "win")[0 if i % 7 == 0 else 1 + y] for i, y in enumerate(events["hit"])]
    write("games.csv", result=result, p=events["score"])
    error = quick("assess", "games.csv", check=2).err
    assert """'draw' is neither of two outcomes; to leave out such rows, add --where "result != 'draw'".""" in error
    done = quick("assess", "games.csv", "--where", "result != 'draw'", check=0)
    assert "--label result --proba p --pos-label win" in done.err


def test_rows_to_keep_may_come_late(quick, write):
    n = 3000  # more than are previewed
    write("late.csv", y=[i % 2 for i in range(n)], p=[0.5] * n, k=range(n))
    assert "kept 100 of 3,000 rows" in quick("assess", "late.csv", "--where", "k >= 2900", check=0).out


def test_groups_may_be_missing_in_other_rows(quick, write, events):
    group = ["" if i % 9 == 0 else f"g{i // 10}" for i in range(900)]
    write("groups.csv", y=events["hit"], p=events["score"], g=group)
    assert "has a missing value at row 0" in quick("assess", "groups.csv", "--group", "g", check=2).err
    assert "kept 800 of 900" in quick("assess", "groups.csv", "--group", "g", "--where", "g is not null", check=0).out


def test_many_classes(quick, tmp_path):
    rows = ["kind,p_cat,p_dog,p_owl,k", *(f"{('cat', 'dog', 'owl')[i % 3]},0.3,0.3,0.4,{i}" for i in range(300))]
    (tmp_path / "k.csv").write_text("\n".join(rows) + "\n")
    content = valid(quick("assess", "k.csv", "--where", "k < 120", "--json", check=0).out)
    assert content["models"][0]["assessment"]["n"] == 120
    assert content["input"]["where"]["rows_kept"] == 120


def test_one_forecast_per_question(quick, write):
    rows = [(q, t) for q in range(60) for t in range(3)]
    write(
        "f.csv",
        y=[q % 2 for q, _ in rows],
        p=[0.5 + 0.001 * t for _, t in rows],
        q=[q for q, _ in rows],
        made=[t for _, t in rows],
        close=[10] * len(rows),
        expert=[t % 2 for _, t in rows],
    )
    line = ["assess", "f.csv", "--label", "y", "--proba", "p", "--question", "q", "--time", "made", "--close", "close"]
    done = quick(*line, "--horizon", "1", "--where", "expert = 0 and q < 50", check=0)
    assert "kept 100 of 180 rows" in done.out
    assert "(50 of 100 rows)" in done.out


def test_evaluation_files(quick, tmp_path):
    lines = [
        {"confidence": f"{40 + i % 50}%", "correct": i % 2 == 0, "topic": ("law", "art")[i % 3 == 0]}
        for i in range(120)
    ]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = quick("assess", "e.jsonl", "--where", "topic = 'law'", check=0)
    assert "kept 80 of 120 rows (--where topic = 'law')." in done.out


def test_watch_keeps_the_condition_in_its_state(quick, write):
    n = 400
    days = [f"2024-01-{1 + i // 20:02d}" for i in range(n)]
    write("log.csv", y=[i % 2 for i in range(n)], p=[0.5] * n, date=days, k=[i % 4 for i in range(n)])
    line = ["watch", "log.csv", "--time", "date", "--window", "7d", "--state", "s.tcm"]
    assert "kept 200 of 400 rows" in quick(*line, "--where", "k < 2").err
    error = quick(*line, check=2).err
    assert "was made with --where k < 2, not without --where" in error
    shutil.copy("s.tcm", "t.tcm")
    assert quick(*line, "--where", "k < 2").status in (0, 3)


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("seasn >= 2018", "--where names the column 'seasn', which all.csv does not have. Did you mean 'season'? It has 'hit', 'score'"),
        ("season >= 'a", "--where has a quote that is never closed."),
        ("season > 2030", "--where keeps none of the 900 rows of all.csv."),
        ("region = north", "--where has 'north' in place of a value; put text in single quotes: 'north'."),
    ],
)  # fmt: skip
def test_errors_show_the_place(quick, both, condition, error):
    first, shown, mark = quick(
        "assess", "all.csv", "--proba", "score", "-q", "--where", condition, check=2
    ).err.splitlines()
    assert first.startswith(f"truthcal: {error}")
    assert shown == f"  {condition}"
    place = {"seasn": 0, "season >= 'a": 10, "season > 2030": 0, "region = north": 9}
    assert mark == " " * (2 + next(at for start, at in place.items() if condition.startswith(start))) + "^"


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("Season > 2012", "--where names the column 'Season', which all.csv does not have. Did you mean 'season'?"),
        (
            "region = 'NORTH'",
            "keeps none of the 900 rows of all.csv. Did you mean 'north'? Column 'region' has 'north'",
        ),
        ("region in ('no', 'yes')", "--where keeps none of the 900 rows of all.csv. Column 'region' has 'north'"),
    ],
)
def test_names_and_values_in_another_case(quick, write, events, condition, error):
    region = ["north" if i < 3 else each for i, each in enumerate(events["region"])]
    write("all.csv", **{**events, "region": region, "season": [2014 + i % 7 for i in range(900)]})
    assert error in quick("assess", "all.csv", "--proba", "score", "-q", "--where", condition, check=2).err


def test_the_result_does_not_depend_on_batches(quick, tmp_path):
    n = 300_000  # two batches of CSV; the second one has a word among its dates
    dates = ["2024-01-01 00:00"] * (n - 1) + ["unknown"]
    lines = "".join(f"{i % 2},0.5,{date}\n" for i, date in enumerate(dates))
    (tmp_path / "f.csv").write_text(f"y,p,date\n{lines}")
    done = quick("measures", "f.csv", "--measure", "ece", "--where", "date = '2024-01-01'", check=0)
    assert "kept 299,999 of 300,000 rows" in done.out + done.err


@pytest.mark.parametrize("name", ["true", "In", "Null", "result"])
def test_suggested_conditions_can_be_used(quick, write, events, name):
    result = [("draw", "loss", "win")[0 if i % 7 == 0 else 1 + y] for i, y in enumerate(events["hit"])]
    write("games.csv", **{name: result, "p": events["score"]})
    error = quick("assess", "games.csv", "--label", name, "--proba", "p", check=2).err
    flag, condition = shlex.split(error[error.index("--where") :].splitlines()[0].rstrip("."))
    assert "kept 771 of 900 rows" in quick("assess", "games.csv", "--proba", "p", flag, condition, check=0).out


def test_long_conditions_are_cut_around_the_place(quick, both):
    condition = " and ".join(["season >= 2018"] * 20) + " and region = north" + " and season >= 2018" * 20
    _, shown, mark = quick("assess", "all.csv", "-q", "--where", condition, check=2).err.splitlines()
    assert shown[mark.index("^") :].startswith("north")
    assert shown.startswith("  …")
    assert len(shown) < 130


def test_sketches_have_no_rows_to_choose(quick, both):
    quick("sketch", "all.csv", "-o", "s.sketch", "--proba", "score", "--label", "hit", check=0)
    for command in ("assess", "test", "check"):
        assert (
            "--where refers to a column, but s.sketch is a sketch"
            in quick(command, "s.sketch", "--where", "a = 1", check=2).err
        )
    assert (
        "--where chooses rows of a file, but --truth has none"
        in quick("audit", "--truth", "0.5", "--where", "a = 1", check=2).err
    )
