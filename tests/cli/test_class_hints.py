"""Messages about columns of many classes that cannot be guessed, and about outcomes that are missing and fractions."""

from pathlib import Path

import numpy as np
import pytest
from support.cli import valid

KINDS = ("cat", "dog", "owl")


@pytest.fixture
def classes(tmp_path):
    """Write rows of three classes; return the file's name."""

    def write(names=("p_cat", "p_dog", "p_owl"), label="kind", kinds=KINDS, factor=1.0, extra=None, digits=6):
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.ones(3), 60)
        rows = [",".join([label, *names, *([extra] if extra else [])])]
        for row in p:
            numbers = [f"{factor * x:.{digits}f}" for x in row] + ([f"{rng.random():.4f}"] if extra else [])
            rows.append(",".join([kinds[rng.choice(3, p=row)], *numbers]))
        (tmp_path / "k.csv").write_text("\n".join(rows) + "\n")
        return "k.csv"

    return write


@pytest.mark.parametrize("options", [[], ["--label", "kind"]])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"names": ("p_cat", "p_dog", "p_fox")}, """the class 'owl' in 'kind' has no column. Add the column 'p_owl', or leave out these rows: --where "kind != 'owl'\""""),
        ({"factor": 100.0}, "they add up to 100 in row 0, not to 1. Percentages? Add --percent."),
        ({"factor": 100.0, "digits": 0}, "Rounded percentages? Add --percent --normalize, which divides each row by its sum."),
        ({"digits": 2}, "not to 1. Rounded probabilities? Add --normalize, which divides each row by its sum."),
        ({"factor": 7.0}, ", which is no probability."),
        ({"factor": 0.5}, "they add up to 0.5 in row 0, not to 1. Is the column of a class missing, or are these events that do not"),
        ({"extra": "p_value"}, "not to 1. No row of 'kind' is of the class of 'p_value'; name the others: --proba p_cat --proba p_dog --proba p_owl"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_columns(quick, classes, given, message, options):
    error = quick("assess", classes(**given), *options, check=2).err
    assert " of k.csv look like the probabilities of classes, but " in error
    assert message in error
    assert len(error) < 350


def test_cures_work(quick, classes):
    classes(extra="p_value")
    quick("assess", "k.csv", "--proba", "p_cat,p_dog,p_owl", check=0)
    classes(names=("p_cat", "p_dog", "p_fox"))
    quick("assess", "k.csv", "--where", "kind != 'owl'", check=0)


@pytest.mark.parametrize("options", [[], ["--label", "kind"], ["--label", "kind", "--proba-prefix", "p_"]])
def test_labels_in_another_case_are_matched_and_all_outputs_say_so(quick, classes, options):
    expected = quick("assess", classes(), *options, check=0).out
    note = "Labels in 'kind' and names of columns differ in case or spaces; they were matched: 'Cat' with 'cat',"
    done = quick("assess", classes(kinds=("Cat", "Dog", "owl ")), *options, "--report", "k.html", check=0)
    assert done.out.startswith(expected.rstrip())
    assert note in " ".join(done.out.split())
    assert note.replace("'", "&#39;") in Path("k.html").read_text()
    assert note in valid(quick("assess", "k.csv", *options, "--json", check=0).out)["input"]["notes"][0]


@pytest.mark.parametrize("options", [[], ["--label", "kind", "--proba-prefix", "p_"]])
def test_two_spellings_of_a_class_are_refused(quick, classes, options):
    path = Path(classes())
    path.write_text(path.read_text().replace("\ncat", "\nCat", 1))
    error = quick("assess", "k.csv", *options, check=2).err
    assert "the class 'cat' also has the label '" in error
    assert "they differ in case or spaces. Make them the same." in error


@pytest.mark.parametrize("options", [[], ["--label", "kind", "--proba-prefix", "p_"], ["--proba", "p_cat,p_dog,p_owl"]])
def test_percentages_and_rounded_rows_are_accepted_if_named(quick, classes, options):
    exact = quick("assess", classes(), *options, check=0).out
    percent = quick("assess", classes(factor=100.0), *options, "--percent", check=0).out
    assert percent.startswith(exact.split("p = ")[0].rstrip())
    assert "Probabilities are percentages: they were divided by 100 (--percent)." in percent
    classes(digits=2)
    rounded = quick("assess", "k.csv", *options, "--normalize", check=0).out
    assert "Rows add up to between 0.99 and 1.01; each was divided by its sum (--normalize)." in rounded
    classes(factor=100.0, digits=0)
    assert "Rows add up to between 99 and 101" in quick("assess", "k.csv", *options, "--percent", "--normalize").out


@pytest.mark.parametrize("command", ["assess", "compare"])
def test_options_of_classes_are_refused_for_one_event(quick, write, events, command):
    paths = [write(name, id=events["id"], hit=events["hit"], score=events["score"]) for name in ("a.csv", "b.csv")]
    arguments = [paths[0]] if command == "assess" else [*paths, "--key", "id"]
    error = quick(command, *arguments, "--normalize", check=2).err
    assert "--normalize applies only to the probabilities of many classes: see --proba-prefix. Omit it." in error


def test_other_files_get_the_usual_question(quick, write):
    write("p_a.csv", p_a=[0.1, 0.2], p_b=[0.1, 0.2], p_c=[0.1, 0.2], colour=["red", "blue"])
    assert "look like the probabilities of classes" not in quick("assess", "p_a.csv", check=2).err


# --- missing and fractional outcomes ----------------------------------------------------------------------------------

BOTH = "add --missing drop --fractional drop. `truthcal measures` accepts fractions."


@pytest.fixture
def games(write, events):
    def written(missing, fraction):
        result = list(events["hit"])
        result[::50] = [missing] * len(result[::50])
        result[7::60] = [fraction] * len(result[7::60])
        return write("games.csv", result=result, p=events["score"])

    return written


@pytest.mark.parametrize("missing", ["void", "postponed", "abandoned", "no contest", ""])
@pytest.mark.parametrize("options", [[], ["--label", "result"], ["--label", "result", "--proba", "p"]])
def test_both_are_reported_at_once(quick, games, missing, options):
    error = quick("assess", games(missing, "0.5"), *options, check=2).err
    assert BOTH in error
    assert "0.5" in error
    done = quick("assess", "games.csv", "--missing", "drop", "--fractional", "drop", *options, check=0)
    assert "18 of 900 rows (2.0%) have no outcome" in done.out
    assert "15 of 900 rows (1.7%) have a fractional outcome" in done.out


def test_one_of_them_names_one_option(quick, games):
    games("void", "1")
    error = quick("assess", "games.csv", check=2).err
    assert "add --missing drop." in error
    assert "--fractional" not in error
    games("0", "0.5")
    error = quick("assess", "games.csv", check=2).err
    assert "add --fractional drop;" in error
    assert "--missing" not in error


def test_measures_need_no_option_for_fractions(quick, games):
    games("", "0.5")
    assert quick("measures", "games.csv", "--measure", "atb", "--missing", "drop").status == 0
