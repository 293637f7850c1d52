"""Messages about columns of many classes that cannot be guessed, and about outcomes that are missing and fractions."""

import numpy as np
import pytest

KINDS = ("cat", "dog", "owl")


@pytest.fixture
def classes(tmp_path):
    """Write rows of three classes; return the file's name."""

    def write(names=("p_cat", "p_dog", "p_owl"), label="kind", kinds=KINDS, factor=1.0, extra=None):
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.ones(3), 60)
        rows = [",".join([label, *names, *([extra] if extra else [])])]
        for row in p:
            numbers = [f"{factor * x:.6f}" for x in row] + ([f"{rng.random():.4f}"] if extra else [])
            rows.append(",".join([kinds[rng.choice(3, p=row)], *numbers]))
        (tmp_path / "k.csv").write_text("\n".join(rows) + "\n")
        return "k.csv"

    return write


@pytest.mark.parametrize("options", [[], ["--label", "kind"]])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kinds": ("Cat", "Dog", "Owl")}, "'kind' holds 'Cat', and the column is 'p_cat': they differ in case or spaces. Rename the columns, or the labels"),
        ({"kinds": ("cat", "dog", "owl ")}, "'kind' holds 'owl ', and the column is 'p_owl': they differ in case or spaces"),
        ({"names": ("p_cat", "p_dog", "p_fox")}, """the class 'owl' in 'kind' has no column. Add the column 'p_owl', or leave out these rows: --where "kind != 'owl'\""""),
        ({"factor": 100.0}, "which is no probability. Percentages? Divide by 100."),
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


def test_labels_in_another_case_beside_a_prefix(quick, classes):
    classes(kinds=("Cat", "Dog", "Owl"))
    error = quick("assess", "k.csv", "--label", "kind", "--proba-prefix", "p_", check=2).err
    assert "has the label 'Cat' at row 0" in error
    assert "and the column is that of 'cat': they differ in case or spaces. Make them the same." in error


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
