"""What each command prints, and that it is what the library says."""

import shlex

import numpy as np
import pytest
from support.cli import valid

import truthcal as tc
from truthcal.cli import inputs
from truthcal.cli.command_table import COMMANDS
from truthcal.cli.parser import parse_arguments


@pytest.fixture
def file(write, events):
    return write(**{name: events[name] for name in ("id", "region", "score", "hit")})


@pytest.fixture
def models(write, events):
    return write("models.csv", **{name: events[name] for name in ("id", "score", "sure", "hit")})


# --- assess -----------------------------------------------------------------------------------------------------------


def test_assess_prints_the_assessment_and_says_which_columns_were_guessed(quick, file, events):
    done = quick("assess", file, check=0)
    assert done.out == f"{tc.assess(events['hit'], events['score'])}\n"
    assert "--label hit" in done.err
    assert "--proba score" in done.err


def test_assess_is_quiet_where_asked(quick, file):
    assert quick("assess", file, "-q", check=0).err == ""


def test_assess_of_json_is_the_assessment(quick, file, events):
    content = valid(quick("assess", file, "--json", check=0).out)
    want = tc.assess(events["hit"], events["score"])
    (model,) = content["models"]
    assert model["assessment"]["verdict"] == want.verdict
    assert model["assessment"]["error"]["estimate"] == want.error.estimate
    assert model["assessment"]["error"]["low"] == want.error.low
    assert model["certified_atb"] is None
    assert content["input"]["rows"] == 900
    assert content["input"]["exact"] is True
    assert content["input"]["label"] == "hit"


def test_assess_of_markdown_has_verdict_and_table(quick, file, events):
    out = quick("assess", file, "--markdown", "--by", "region", check=0).out
    assert out.startswith(f"**{tc.assess(events['hit'], events['score']).verdict.splitlines()[0]}**\n")
    assert "| error |" in out or "| error |" in out
    assert "| north | 300 |" in out


def test_assess_by_segments_is_assess_segments(quick, file, events):
    content = valid(quick("assess", file, "--by", "region", "--json", check=0).out)
    regions = np.array(events["region"])
    y, p = np.array(events["hit"]), np.array(events["score"])
    own = {r: tc.Sketch().update(y[regions == r], p[regions == r]) for r in ("north", "south", "west")}
    want = tc.assess_segments(tc.SketchTable.from_sketches(own, by="region"))
    found = {segment["key"]: segment for segment in content["models"][0]["segments"]["segments"]}
    assert {key: found[key]["n"] for key in found} == {"north": 300, "south": 300, "west": 300}
    for key, segment in found.items():
        assert segment["pvalue"] == pytest.approx(want[key].pvalue)
        assert segment["bias"] == pytest.approx(want[key].bias)
    assert str(want).splitlines()[0] in quick("assess", file, "--by", "region", check=0).out


def test_assess_of_several_models_names_each(quick, models, events):
    done = quick("assess", models, "--proba", "score", "--proba", "sure", check=0)
    for name in ("score", "sure"):
        assert f"{name}\n{'-' * len(name)}\n{tc.assess(events['hit'], events[name]).verdict}" in done.out
    content = valid(quick("assess", models, "--proba", "score", "--proba", "sure", "--json", check=0).out)
    assert [model["name"] for model in content["models"]] == ["score", "sure"]


def test_assess_of_more_rows_than_are_kept_shows_certified_bounds(quick, file, events, monkeypatch):
    monkeypatch.setitem(inputs.read_inputs.__kwdefaults__, "exact_rows", 899)
    content = valid(quick("assess", file, "--json", check=0).out)
    bounds = content["models"][0]["certified_atb"]
    assert bounds["low"] <= tc.atb(events["hit"], events["score"]) <= bounds["high"]
    assert content["input"]["exact"] is False
    assert "certified" in quick("assess", file, check=0).out


def test_rows_that_belong_together_get_a_warning(quick, write, monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(600).round(5)
    y = (np.repeat(rng.random(60), 10) < p).astype(int)
    path = write("groups.csv", hit=y, p=p, q=np.clip(p, 0.1, 0.9), region=["north", "south"] * 300)
    by_region, both = ["--proba", "p", "--by", "region"], ["--proba", "p", "--proba", "q"]
    exact = valid(quick("assess", path, *by_region, "--json", check=0).out)["models"][0]
    compared = valid(quick("compare", path, *both, "--json", check=0).out)["comparison"]
    monkeypatch.setitem(inputs.read_inputs.__kwdefaults__, "exact_rows", 599)
    sketched = valid(quick("assess", path, *by_region, "--json", check=0).out)["models"][0]
    assert sketched["certified_atb"] is not None
    assert exact["segments"]["neighbour_z"] == sketched["segments"]["neighbour_z"] > 4.0
    assert exact["assessment"]["test"]["neighbour_z"] == sketched["assessment"]["test"]["neighbour_z"] > 4.0
    assert compared["neighbour_z"] > 4.0
    note = "! errors of neighbouring rows are correlated (z = "
    assert quick("assess", path, *by_region, check=0).out.count(note) == 2
    assert quick("check", path, *by_region).out.count(note) == 1
    assert quick("check", path, *by_region, "-v").out.count(note) == 2
    assert quick("compare", path, *both, check=0).out.count(note) == 1
    assert quick("test", path, "--proba", "p", check=0).out.count(note) == 1


def test_assess_of_standard_input_is_that_of_the_file(quick, file):
    want = quick("assess", file, check=0).out
    assert quick("assess", "-", stdin=file.read_bytes(), check=0).out == want


def test_weights_and_labels_are_used(quick, write, events):
    words = ["won" if y else "lost" for y in events["hit"]]
    weight = [1 + i % 3 for i in range(900)]
    path = write("w.csv", result=words, p=events["score"], w=weight)
    content = valid(
        quick("assess", path, "--pos-label", "won", "--weight", "w", "--label", "result", "--json", check=0).out
    )
    want = tc.assess(events["hit"], events["score"], sample_weight=weight)
    assert content["models"][0]["assessment"]["atb"] == pytest.approx(want.atb, rel=1e-12)
    assert content["input"]["weight"] == "w"
    assert content["input"]["pos_label"] == "won"


# --- test, compare, measures, audit -----------------------------------------------------------------------------------


def test_test_is_calibration_test(quick, file, events):
    want = tc.calibration_test(events["hit"], events["score"], measure="ks_ce", rng=5, n_resamples=199)
    options = ["--measure", "ks_ce", "--seed", "5", "--n-resamples", "199"]
    assert quick("test", file, *options, check=0).out == f"{want}\n"
    assert valid(quick("test", file, *options, "--json", check=0).out)["test"]["pvalue"] == want.pvalue
    assert quick("test", file, *options, "--markdown", check=0).out.startswith(
        "**No significant evidence of miscalibration"
    )


def test_compare_of_two_columns_is_compare(quick, models, events):
    want = tc.compare(events["hit"], events["score"], events["sure"])
    done = quick("compare", models, "--proba", "score", "--proba", "sure", check=0)
    assert done.out.startswith("score has the better ATB and the better Brier score")
    content = valid(quick("compare", models, "--proba", "score", "--proba", "sure", "--json", check=0).out)
    assert content["comparison"]["difference"] == want.difference
    assert content["comparison"]["names"] == ["score", "sure"]
    assert "| score | sure | score - sure |" in quick(
        "compare", models, "--proba", "score", "--proba", "sure", "--markdown", check=0
    ).out.replace("\\-", "-")


def test_compare_of_three_columns_is_compare_models(quick, write, events):
    columns = {"score": events["score"], "sure": events["sure"], "flat": np.full(len(events["hit"]), 0.4)}
    path = write("three.csv", hit=events["hit"], **columns)
    options = [word for name in columns for word in ("--proba", name)]
    want = tc.compare_models(events["hit"], columns)
    assert quick("compare", path, *options, check=0).out == f"{want}\n"
    content = valid(quick("compare", path, *options, "--json", check=0).out)
    assert content["comparison"] is None
    assert content["verdict"] == want.verdict
    assert content["comparisons"]["adjusted"] == pytest.approx(want.adjusted)
    assert [pair["names"] for pair in content["comparisons"]["comparisons"]] == [
        ["score", "sure"], ["score", "flat"], ["sure", "flat"],
    ]  # fmt: skip
    assert want.to_markdown() in quick("compare", path, *options, "--markdown", check=0).out


def test_compare_refuses_labels_unless_hard(quick, write):
    path = write(y=[0, 1, 1, 0] * 5, p=[0.2, 0.7, 0.6, 0.1] * 5, q=[0, 1, 0, 0] * 5)
    line = ["compare", path, "--label", "y", "--proba", "p", "--proba", "q"]
    assert "contains nothing but 0 and 1: labels from `predict`" in quick(*line, check=2).err
    quick(*line, "--hard", check=0)


def test_compare_of_two_files_joins_them_on_a_key(quick, write, events):
    old = write("old.csv", id=events["id"], hit=events["hit"], p=events["score"])
    order = np.random.default_rng(0).permutation(900)[:700]
    new = write(
        "new.csv",
        id=order.tolist(),
        p=np.array(events["sure"])[order].tolist(),
        hit=np.array(events["hit"])[order].tolist(),
    )
    content = quick("compare", old, new, "--key", "id", "--json", check=0)
    y, a, b = (np.array(events[name])[np.sort(order)] for name in ("hit", "score", "sure"))
    want = tc.compare(y, a, b)
    found = valid(content.out)["comparison"]
    assert found["names"] == ["old", "new"]
    assert found["n"] == 700
    assert found["difference"] == pytest.approx(want.difference, rel=1e-9)
    assert "200 rows of" in content.err


def test_compare_needs_outcomes_and_weights_in_the_first_file_only(quick, write, events):
    weight = [1 + i % 4 for i in range(900)]
    old = write("old.csv", id=events["id"], hit=events["hit"], p=events["score"], w=weight)
    new = write("new.csv", id=events["id"], q=events["sure"])
    line = ["compare", old, new, "--key", "id", "--weight", "w", "--proba", "p", "--proba", "q", "--json"]
    found = valid(quick(*line, check=0).out)
    want = tc.compare(events["hit"], events["score"], events["sure"], sample_weight=weight)
    assert found["comparison"]["difference"] == pytest.approx(want.difference, rel=1e-9)
    assert found["comparison"]["names"] == ["p", "q"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models.csv"], "`compare` needs two models: name both columns, as in --proba old --proba new"),
        (["models.csv", "models.csv"], "Name a column that both have: --key id"),
        (["models.csv", "models.csv", "--key", "id"], "named twice"),
        (["models.csv", "--key", "id"], "--key joins two files; got 1"),
        (["models.csv", "-", "--key", "id"], "standard input cannot be one of them"),
    ],
)
def test_compare_says_what_it_needs(quick, models, arguments, message):
    done = quick("compare", *arguments, check=2)
    assert message in done.err
    assert done.out == ""


def test_measures_are_all_measures(quick, file, events):
    want = tc.all_measures(events["hit"], events["score"], ["atb", "smcal"])
    chosen = ["--measure", "atb", "--measure", "smcal"]
    assert quick("measures", file, *chosen, check=0).out == f"{want}\n"
    found = valid(quick("measures", file, *chosen, "--json", check=0).out)["measures"]
    assert {row["name"]: row["value"] for row in found} == dict(want)


def test_measures_are_listed_without_data(quick):
    out = quick("measures", "--list", check=0).out
    assert all(name in out for name in tc.MEASURES)
    listed = valid(quick("measures", "--list", "--json", check=0).out)["measures"]
    assert [row["name"] for row in listed if row["truthful"]] == [n for n, m in tc.MEASURES.items() if m.truthful]
    assert quick("measures", "--list", "--markdown", check=0).out.startswith("| measure |")


def test_audit_of_truth_and_of_a_file(quick, file, events):
    want = tc.audit([0.25, 0.75], ["atb", "smcal"])
    chosen = ["--measure", "atb", "--measure", "smcal"]
    assert quick("audit", "--truth", "0.25,0.75", *chosen, check=0).out == f"{want}\n"
    rows = valid(quick("audit", "--truth", "0.25,0.75", *chosen, "--json", check=0).out)["rows"]
    assert [row["pays"] for row in rows] == [False, True]
    chosen = ["--measure", "pvalue", "--measure", "atb_ratio", "--json"]
    rows = valid(quick("audit", "--truth", "0.25,0.75", *chosen, check=0).out)["rows"]
    assert [row["higher_is_better"] for row in rows] == [True, False]
    want = tc.audit_on(events["score"], ["ece"], max_rows=50)
    out = quick("audit", file, "--measure", "ece", "--max-rows", "50", check=0).out
    assert out == f"{want}\n"


def test_audit_of_samples_from_a_population(quick, file, events):
    ex_ante = {"stage": "ex_ante", "n_rows": 2}
    flags = ["--stage", "ex_ante", "--n-rows", "2", "--measure", "atb"]
    assert (
        quick("audit", "--truth", "0.25,0.75", *flags, check=0).out == f"{tc.audit([0.25, 0.75], ['atb'], **ex_ante)}\n"
    )
    want = tc.audit_on(events["score"], ["atb"], max_rows=50, **ex_ante)
    out = quick("audit", file, *flags, "--max-rows", "50", check=0).out
    assert out == f"{want}\n"
    assert out.startswith(
        "Ex ante: samples of 2 events from 50 kinds of events, equally frequent. True probabilities: 50 "
    )
    assert "--n-rows is the size of a sample" in quick("audit", "--truth", "0.5", "--n-rows", "2", check=2).err


def test_audit_needs_no_outcomes(quick, write, events):
    path = write("p.csv", score=events["score"][:50])
    want = tc.audit_on(events["score"][:50], ["ece"])
    assert quick("audit", path, "--measure", "ece", check=0).out == f"{want}\n"
    assert "has no column 'zzz' (named by --proba)" in quick("audit", path, "--proba", "zzz", check=2).err


@pytest.mark.parametrize("command", ["test", "compare", "measures", "audit"])
def test_unknown_measures_are_refused_before_anything_is_read(quick, command):
    done = quick(command, "nowhere.csv", "--measure", "ece15", check=2)
    assert "there is no measure 'ece15'" in done.err
    assert "atb, atb_l1" in done.err


# --- sketch, merge ----------------------------------------------------------------------------------------------------


def test_sketches_merge_and_are_assessed(quick, write, events, tmp_path):
    for name, rows in (("a", slice(0, 300)), ("b", slice(300, 900))):
        path = write(f"{name}.csv", hit=events["hit"][rows], score=events["score"][rows])
        quick("sketch", path, "-o", f"{name}.sketch", check=0)
    assert quick("merge", "a.sketch", "b.sketch", "-o", "week.sketch", check=0).out == "week.sketch\n"
    sketch = tc.Sketch(16384).update(events["hit"], events["score"])
    assert tc.Sketch.load(tmp_path / "week.sketch").atb().value == pytest.approx(sketch.atb().value, rel=1e-12)
    content = valid(quick("assess", "week.sketch", "--json", check=0).out)
    assert content["models"][0]["assessment"]["verdict"] == tc.assess(sketch).verdict
    assert quick("assess", "?.sketch", check=0).out == quick("assess", "week.sketch", check=0).out
    # And from standard input.
    piped = quick("assess", "-", stdin=(tmp_path / "week.sketch").read_bytes(), check=0)
    assert piped.out == quick("assess", "week.sketch", check=0).out


@pytest.mark.parametrize(
    ("asked", "n_buckets"), [([], 4096), (["--buckets", "1024"], 1024), (["--buckets", "8192"], 8192)]
)
def test_sketches_of_segments_keep_them(quick, file, tmp_path, asked, n_buckets):
    quick("sketch", file, "-o", "r.sketch", "--by", "region", *asked, check=0)
    assert tc.SketchTable.load(tmp_path / "r.sketch").n_buckets == n_buckets
    content = valid(quick("assess", "r.sketch", "--json", check=0).out)
    assert content["models"][0]["segments"]["by"] == ["region"]


def test_sketches_by_several_columns_are_rolled_up(quick, write, events, tmp_path):
    days = np.array(["mon", "tue"])[np.arange(len(events["hit"])) % 2]
    for k, rows in enumerate((slice(0, 300), slice(300, 900))):
        columns = {name: events[name][rows] for name in ("hit", "score", "region")}
        path = write(f"{k}.csv", **columns, day=days[rows])
        quick("sketch", path, "-o", f"{k}.sketch", "--by", "day,region", check=0)
    done = quick("merge", "?.sketch", "--by", "region", "-o", "regions.sketch", check=0)
    assert done.err == "truthcal: wrote regions.sketch: 900 rows in 3 segments by region\n"
    rolled = tc.SketchTable.load(tmp_path / "regions.sketch")
    assert rolled.by == ("region",)
    for region in np.unique(events["region"]):
        rows = np.asarray(events["region"]) == region
        expected = tc.Sketch(4096).update(np.asarray(events["hit"])[rows], np.asarray(events["score"])[rows])
        assert rolled[region].atb().value == pytest.approx(expected.atb().value, rel=1e-12)
        assert rolled[region].n == expected.n
    # `assess` does the same with the sketches themselves, in any order of columns.
    once = quick("assess", "regions.sketch", check=0).out
    assert quick("assess", "?.sketch", "--by", "region", check=0).out == once
    quick("merge", "?.sketch", "-o", "all.sketch", check=0)
    assert tc.SketchTable.load(tmp_path / "all.sketch").by == ("day", "region")
    quick("merge", "?.sketch", "--by", "region,day", "-o", "all.sketch", check=0)
    assert tc.SketchTable.load(tmp_path / "all.sketch").by == ("region", "day")
    wrong = quick("merge", "?.sketch", "--by", "country", "-o", "b.sketch", check=2).err
    assert "--by country: ?.sketch is a sketch with segments by day, region." in wrong
    quick("sketch", "0.csv", "-o", "plain.sketch", check=0)
    wrong = quick("merge", "plain.sketch", "--by", "region", "-o", "b.sketch", check=2).err
    assert "--by region: plain.sketch is a sketch without segments." in wrong
    assert not (tmp_path / "b.sketch").exists()


def test_a_question_about_columns_ends_with_the_command_to_type(quick, write, events):
    values = {"hit": events["hit"], "a": events["score"], "my b": events["score"], "id": np.arange(len(events["hit"]))}
    write("rows.csv", **values)
    question = "Which column of rows.csv holds the predicted probabilities (in [0, 1])?"
    lines = quick("check", "--max-error", "0.1", "rows.csv", check=2).err.splitlines()
    assert lines == [
        f"truthcal: {question} Candidates for --proba: 'a', 'my b'.",
        "  For example: truthcal check --max-error 0.1 rows.csv --proba a",
    ]
    assert quick("check", "-q", "--", "rows.csv", check=2).err.endswith("truthcal check -q --proba a -- rows.csv\n")
    write("first.csv", hit=values["hit"], p=values["a"], id=values["id"])
    done = quick("compare", "first.csv", "rows.csv", "--key", "id", "-q", check=2)
    assert done.err.endswith("truthcal compare first.csv rows.csv --key id -q --proba p --proba a\n")
    quick("compare", "first.csv", "rows.csv", "--key", "id", "-q", "--proba", "p", "--proba", "a", check=0)


def test_sketches_and_rows_do_not_mix(quick, file, events, tmp_path):
    quick("sketch", file, "-o", "a.sketch", check=0)
    quick("sketch", file, "-o", "r.sketch", "--by", "region", check=0)
    assert "pass only sketches, or only files of rows" in quick("assess", "a.sketch", file, check=2).err
    assert "which has no columns; omit --proba" in quick("assess", "a.sketch", "--proba", "score", check=2).err
    assert "is a sketch without segments" in quick("assess", "a.sketch", "--by", "region", check=2).err
    assert (
        "some of these sketches have segments" in quick("merge", "a.sketch", "r.sketch", "-o", "b.sketch", check=2).err
    )
    assert "not a truthcal sketch" in quick("merge", file, "-o", "b.sketch", check=2).err
    assert "not a truthcal sketch (no such file)" in quick("merge", "none.sketch", "-o", "b.sketch", check=2).err
    assert "named twice" in quick("merge", "a.sketch", "./a.sketch", "-o", "b.sketch", check=2).err
    assert "named twice" in quick("assess", "a.sketch", "a.sketch", check=2).err
    assert "standard input: not a sketch" in quick("assess", "a.sketch", "-", stdin=file.read_bytes(), check=2).err
    assert "omit --buckets" in quick("sketch", "a.sketch", "-o", "b.sketch", "--buckets", "64", check=2).err
    assert "which a sketch does not have" in quick("audit", "a.sketch", check=2).err
    assert "a sketch has no rows" in quick("compare", "a.sketch", "r.sketch", "--key", "id", check=2).err
    assert "most measures need rows" in quick("measures", "a.sketch", check=2).err
    assert not (tmp_path / "b.sketch").exists()


# --- help -------------------------------------------------------------------------------------------------------------


def test_help_has_examples_and_nothing_else_is_loaded(process):
    assert "truthcal assess predictions.csv" in process("--help", check=0).out
    done = process("check", "--help", check=0)
    assert "--max-error 0.03" in done.out
    assert "0: pass, 1: fail" in done.out
    assert "numpy" not in process("--help", env={"PYTHONVERBOSE": "1"}, check=0).err


@pytest.mark.parametrize("own", COMMANDS, ids=lambda own: own.name)
def test_every_command_has_help(quick, own):
    assert f"usage: truthcal {own.name}" in quick(own.name, "--help", check=0).out


@pytest.mark.parametrize("own", COMMANDS, ids=lambda own: own.name)
def test_every_example_of_help_is_a_valid_command(own):
    for _, line in own.examples:
        words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"').split("| source")[0].split("| ")[-1])
        assert words[0] == "truthcal"
        assert parse_arguments(words[1:]).command


def test_a_word_that_is_no_command_gets_the_one_that_was_meant(quick, file):
    assert (
        quick("asses", "x.csv", check=2).err
        == "truthcal: 'asses' is not a command. Did you mean: truthcal assess ...\n"
    )
    assert f"Did you mean: truthcal assess {file.name}" in quick(file.name, check=2).err
    assert quick("hello", check=2).err == "truthcal: 'hello' is not a command. See: truthcal --help\n"


def test_nothing_given_shows_help(quick):
    done = quick(check=2)
    assert "COMMAND" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["assess"], "the following arguments are required: FILE"),
        (["assess", "x.csv", "--alpha", "5"], "must lie between 0 and 1; got 5"),
        (["assess", "x.csv", "--alpha", "five"], "must be a number; got 'five'"),
        (["check", "x.csv", "--max-error", "5%"], "must be a number; got '5%'. Write 0.05"),
        (["assess", "x.csv", "--json", "--markdown"], "not allowed with argument"),
        (["check", "x.csv", "--max-error", "-1"], "must be a positive number; got -1"),
        (["check", "x.csv", "--max-error", "nan"], "must be a positive number; got nan"),
        (["test", "x.csv", "--n-resamples", "0"], "must be a positive whole number; got '0'"),
        (["test", "x.csv", "--seed", "-3"], "must be a whole number, 0 or more; got '-3'"),
        (["sketch", "x.csv"], "the following arguments are required: -o/--output"),
    ],
)
def test_wrong_use_is_one_line_that_names_the_help(quick, arguments, message):
    done = quick(*arguments, check=2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert "--help)" in done.err
    assert done.out == ""
