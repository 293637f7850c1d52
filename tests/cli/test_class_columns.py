"""Many classes on the command line: which columns they are, and results that are those of the library."""

import numpy as np
import pytest
from support.cli import valid

import truthcal as tc

LABELS = ("cat", "dog", "owl", "yak")


def temper(p, slope):
    power = p**slope
    return power / power.sum(axis=1, keepdims=True)


@pytest.fixture(scope="session")
def classes():
    """Calibrated and overconfident probabilities of four classes, in columns p_ and sure_."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(4), 600)
    y = (p.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    sure = temper(p, 2.5)
    columns = {"kind": [LABELS[k] for k in y]}
    columns |= {f"p_{label}": p[:, k].tolist() for k, label in enumerate(LABELS)}
    columns |= {f"sure_{label}": sure[:, k].tolist() for k, label in enumerate(LABELS)}
    return columns | {"question": [i // 6 for i in range(600)], "w": rng.uniform(0.5, 2.0, 600).tolist()}


def matrix(classes, prefix):
    return np.column_stack([classes[f"{prefix}{label}"] for label in LABELS])


def some(classes, *names):
    chosen = [name for name in classes if name in names or name.startswith(names)]
    return {name: classes[name] for name in chosen}


@pytest.fixture
def file(write, classes):
    return write(**classes)


def test_prefix_names_the_columns_of_all_classes(quick, file, classes):
    done = quick("assess", file, "--proba-prefix", "sure_", "--label", "kind", check=0)
    assert done.out == f"{tc.assess(classes['kind'], matrix(classes, 'sure_'))}\n"
    assert "--weight w" in done.err


def test_classes_are_guessed_and_the_guess_is_printed(quick, write, classes):
    done = quick("assess", write(**some(classes, "kind", "p_")), check=0)
    assert "as if you had typed: --label kind --proba-prefix p_\n" in done.err
    assert done.out.startswith("Calibrated as far as 600 rows with 4 classes can tell.")


@pytest.mark.parametrize("prefix", ["prob_", "proba_", "P_", "Prob-"])
def test_other_known_prefixes_are_guessed(quick, write, classes, prefix):
    columns = {name.replace("p_", prefix): values for name, values in some(classes, "kind", "p_").items()}
    assert f"--proba-prefix {prefix}" in quick("assess", write(**columns), check=0).err


def test_a_prefix_may_end_with_a_space(quick, write, classes):
    columns = {name.replace("p_", "Prob "): values for name, values in some(classes, "kind", "p_").items()}
    done = quick("assess", write(**columns), check=0)
    assert "--label kind --proba-prefix 'Prob '\n" in done.err
    columns["Prob DOG"] = columns.pop("Prob dog")
    done = quick("assess", write(**columns), check=0)
    assert "they were matched: 'dog' with 'DOG'." in " ".join(done.out.split())


def test_numbers_are_classes(quick, write, classes):
    number = dict(zip(LABELS, (0, 1, 2, 10), strict=True))
    columns = {"digit": [number[kind] for kind in classes["kind"]]}
    columns |= {f"p_{number[label]}": classes[f"p_{label}"] for label in LABELS}
    done = quick("assess", write(**columns), "--json", check=0)
    assert valid(done.out)["models"][0]["assessment"]["labels"] == ["0", "1", "2", "10"]
    assert "--label digit --proba-prefix p_" in done.err


def test_decisions_and_other_columns_are_not_taken_for_classes(quick, write, classes):
    columns = some(classes, "kind", "p_") | {"pred": classes["kind"][::-1], "day": [i % 50 for i in range(600)]}
    assert "--label kind" in quick("assess", write(**columns), check=0).err
    del columns["kind"]
    assert "holds the outcomes" in quick("assess", write(**columns), check=2).err


def test_two_possible_columns_of_classes_are_a_question(quick, write, classes):
    columns = some(classes, "kind", "p_") | {"sort": classes["kind"]}
    done = quick("assess", write(**columns), check=2)
    assert "holds the class of each row ('cat', 'dog', 'owl', 'yak')? Candidates: 'kind', 'sort'. Name it" in done.err
    assert quick("assess", write(**columns), "--label", "sort", check=0).out
    nothing = quick("assess", write(**some(classes, "w", "p_")), "--proba-prefix", "p_", check=2)
    assert "holds the class of each row" in nothing.err


def test_two_prefixes_that_fit_are_a_question(quick, write, classes):
    columns = some(classes, "kind", "p_") | {f"prob_{label}": classes[f"sure_{label}"] for label in LABELS}
    done = quick("assess", write(**columns), check=2)
    assert "Use --proba-prefix prob_ or --proba-prefix p_, or both." in done.err


def test_several_columns_with_the_names_of_labels_are_classes(quick, write, classes):
    flags = [word for label in LABELS for word in ("--proba", f"sure_{label}")]
    columns = {name.removeprefix("sure_"): values for name, values in some(classes, "kind", "sure_").items()}
    bare = [word for label in LABELS for word in ("--proba", label)]
    done = quick("assess", write(**columns), *bare, "--label", "kind", check=0)
    assert done.out == f"{tc.assess(classes['kind'], matrix(classes, 'sure_'))}\n"
    columns = {f"p_{name}" if name != "kind" else name: values for name, values in columns.items()}
    flags = [word for label in LABELS for word in ("--proba", f"p_{label}")]
    assert quick("test", write(**columns), *flags, check=0).out


def test_several_columns_of_one_event_stay_several_models(quick, write, events):
    columns = {"hit": events["hit"], "a": events["score"], "b": events["sure"], "c": events["score"]}
    content = valid(
        quick("assess", write(**columns), *["--proba", "a", "--proba", "b", "--proba", "c", "--json"], check=0).out
    )
    assert [model["name"] for model in content["models"]] == ["a", "b", "c"]


def test_columns_that_may_be_classes_or_models_are_a_question(quick, write, classes):
    columns = {"y": [int(kind == "dog") for kind in classes["kind"]], "p_0": classes["p_cat"], "p_1": classes["p_dog"]}
    columns["p_2"] = (np.array(classes["p_owl"]) + classes["p_yak"]).tolist()
    flags = ["--label", "y", "--proba", "p_0", "--proba", "p_1", "--proba", "p_2"]
    done = quick("assess", write(**columns), *flags, check=2)
    assert "the classes of one model, or several models of one event? For classes, use --proba-prefix p_." in done.err
    columns["p_2"] = columns["p_1"]
    assert "p_2\n---" in quick("assess", write(**columns), *flags, check=0).out


def test_json_has_classes_and_confusion(quick, file):
    content = valid(quick("assess", file, "--proba-prefix", "sure_", "--label", "kind", "--json", check=0).out)
    assert content["input"]["classes"] == list(LABELS)
    assert content["input"]["proba"] == [f"sure_{label}" for label in LABELS]
    (model,) = content["models"]
    assert model["name"] == "sure"
    assert model["assessment"]["kind"] == "overconfident"
    assert np.shape(model["assessment"]["confusion"]["significant"]) == (4, 4)
    assert {row["name"] for row in model["assessment"]["classes"]["segments"]} == set(LABELS)


def test_markdown_of_two_models(quick, file):
    arguments = ["--proba-prefix", "p_", "--proba-prefix", "sure_", "--label", "kind", "--markdown"]
    done = quick("assess", file, *arguments, check=0)
    assert done.out.startswith("### p\n\n**Calibrated as far as 600 rows with 4 classes can tell.**")
    assert "### sure\n\n**Overconfident" in done.out


def test_weights_and_groups_are_used(quick, file, classes):
    arguments = ["--proba-prefix", "sure_", "--label", "kind", "--weight", "w", "--group", "question"]
    done = quick("assess", file, *arguments, check=0)
    options = {"sample_weight": classes["w"], "groups": classes["question"]}
    assert done.out == f"{tc.assess(classes['kind'], matrix(classes, 'sure_'), **options)}\n"


def test_test_check_and_compare_are_those_of_the_library(quick, file, classes):
    y, p, sure = classes["kind"], matrix(classes, "p_"), matrix(classes, "sure_")
    done = quick("test", file, "--proba-prefix", "p_", "--label", "kind", "--json", check=0)
    assert valid(done.out)["test"]["pvalue"] == tc.calibration_test(y, p).pvalue
    done = quick("check", file, "--proba-prefix", "sure_", "--label", "kind", "--json", check=1)
    assert valid(done.out)["reasons"] == list(tc.check(y, sure).reasons)
    arguments = ["--proba-prefix", "p_", "--proba-prefix", "sure_", "--label", "kind"]
    done = quick("compare", file, *arguments, "--json", check=0)
    expected = tc.compare(y, p, sure)
    content = valid(done.out)
    assert content["comparison"]["names"] == ["p", "sure"]
    assert content["comparison"]["difference"] == expected.difference
    assert "Lower is better. Vector ATB is a score" in quick("compare", file, *arguments, check=0).out


def test_a_longer_prefix_takes_its_columns(quick, write, classes):
    columns = {
        name.replace("sure_", "p_sure_"): values for name, values in some(classes, "kind", "p_", "sure_").items()
    }
    arguments = ["--proba-prefix", "p_", "--proba-prefix", "p_sure_", "--label", "kind", "--json"]
    content = valid(quick("assess", write(**columns), *arguments, check=0).out)
    assert [model["name"] for model in content["models"]] == ["p", "p_sure"]
    assert content["input"]["classes"] == list(LABELS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "assess --proba-prefix q_",
            "--proba-prefix q_: no column of * starts with this. All columns: 'kind', 'p_cat'",
        ),
        (
            "assess --proba-prefix p_c",
            "only 'p_cat' of * starts with this, but there must be a column for each class. For",
        ),
        ("assess --proba-prefix=", "--proba-prefix must not be empty; name the columns of the classes with --proba."),
        ("assess --proba-prefix p_ --proba w", "--proba cannot be combined with --proba-prefix: name the columns of"),
        (
            "assess --proba-prefix p_ --pos-label cat",
            "--pos-label cannot be combined with many classes: all classes are",
        ),
        (
            "assess --proba-prefix p_ --by question",
            "--by cannot be combined with many classes: segments are those of one",
        ),
        (
            "assess --proba-prefix p_ --time question",
            "--time cannot be combined with many classes: the test for change",
        ),
        ("assess --by question --label kind", "--by cannot be combined with many classes"),
        (
            "report --proba-prefix p_ --exact-distcal",
            "--exact-distcal cannot be combined with many classes: the distance",
        ),
        ("assess --proba-prefix p_ --missing drop", "--missing cannot be combined with many classes: rows are left"),
        ("assess --proba-prefix p_ --fractional drop", "--fractional cannot be combined with many classes: a class"),
        ("compare --proba-prefix p_", "`compare` needs two models: * both prefixes, as in --proba-prefix old_"),
        (
            "compare --proba-prefix p_ --proba-prefix sure_ --key w",
            "--key cannot be combined with many classes: two files",
        ),
        ("compare --proba-prefix p_ --proba-prefix sure_c", "only 'sure_cat' of "),
        (
            "check --proba-prefix p_ --proba-prefix sure_ --label kind",
            "`check` takes one model; name one --proba-prefix.",
        ),
        (
            "test --proba-prefix p_ --label kind --measure ece",
            "--measure must be 'information_atb' for predictions with",
        ),
        ("test --proba-prefix p_ --label no", "has no column 'no' (named by --label)"),
        ("assess --proba-prefix p_ --label w", "column 'w' has the label "),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(quick, file, line, message):
    command, *arguments = line.split()
    done = quick(command, file, *arguments, check=2)
    for part in message.split(" * "):
        assert part in done.err


def test_models_need_the_same_classes(quick, write, classes):
    columns = {name: values for name, values in classes.items() if name != "sure_yak"}
    done = quick(
        "assess", write(**columns), *["--proba-prefix", "p_", "--proba-prefix", "sure_", "--label", "kind"], check=2
    )
    assert "--proba-prefix sure_: both models need the same classes, but" in done.err
    assert "has no column 'sure_yak'." in done.err


def test_more_columns_than_classes_are_possible(quick, write, monkeypatch, file):
    monkeypatch.setattr("truthcal.cli.class_columns.MOST_CLASSES", 3)
    done = quick("assess", file, "--proba-prefix", "p_", "--label", "kind", check=2)
    assert "--proba-prefix p_: 4 columns of" in done.err
    assert "start with this; the limit is 3." in done.err


def test_sketches_have_no_classes(quick, write, events):
    quick("sketch", write(hit=events["hit"], score=events["score"]), "-o", "s.sketch", check=0)
    done = quick("assess", "s.sketch", "--proba-prefix", "p_", check=2)
    assert "--proba-prefix refers to a column, but s.sketch is a sketch" in done.err


@pytest.mark.parametrize("command", ["sketch", "measures", "audit", "watch"])
def test_other_commands_have_no_classes(quick, file, command):
    assert "unrecognized arguments: --proba-prefix p_" in quick(
        command, file, *("-o x --proba-prefix p_" if command == "sketch" else "--proba-prefix p_").split(),
        *("--window 7d --state x" if command == "watch" else "").split(), check=2,
    ).err  # fmt: skip


def test_digits_get_a_report_from_the_command_line(quick, write, tmp_path):
    """Real rows: one column for each digit, guessed."""
    datasets = pytest.importorskip("sklearn.datasets", reason="rows of real digits")
    from sklearn.naive_bayes import GaussianNB

    features, digit = datasets.load_digits(return_X_y=True)
    proba = GaussianNB().fit(features[::2], digit[::2]).predict_proba(features[1::2])
    columns = {"digit": digit[1::2].tolist(), **{f"p_{k}": proba[:, k].tolist() for k in range(10)}}
    done = quick("assess", write("digits.csv", **columns), "--report", "digits.html", check=0)
    assert done.out.startswith("Overconfident: predictions are too extreme.")
    assert max(len(line) for line in done.out.splitlines() if not line.startswith("!")) <= 100
    assert "--label digit --proba-prefix p_" in done.err
    page = (tmp_path / "digits.html").read_text()
    assert "The class of each row is in the column &#39;digit&#39;; probabilities of classes in" in page
    assert "and 7 more" in page
    assert "Columns not named in the command were guessed" in page
    assert len(page.encode()) < 300_000
    assert "<script" not in page


def test_report_of_two_models_compares_them(quick, file, tmp_path):
    arguments = ["--proba-prefix", "p_", "--proba-prefix", "sure_", "--label", "kind", "-o", "two.html"]
    assert quick("report", file, *arguments, check=0).out == "two.html\n"
    page = (tmp_path / "two.html").read_text()
    assert "p has the better vector ATB and the better Brier score" in page
    assert "were guessed" not in page


def test_the_error_of_a_missing_value_names_no_option_that_many_classes_refuse(quick, tmp_path):
    path = tmp_path / "empty.csv"
    rows = ["cat,0.5,0.3,0.2", "dog,0.2,,0.3", "owl,0.1,0.2,0.7"] * 20
    path.write_text("\n".join(["kind,p_cat,p_dog,p_owl", *rows]))
    done = quick("assess", path, "--proba-prefix", "p_", "--label", "kind", check=2)
    assert "missing" in done.err
    assert "--missing" not in done.err
