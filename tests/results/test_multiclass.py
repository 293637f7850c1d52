"""Results of many classes: words, tables, and plain types."""

import json
import math

import numpy as np
import pandas as pd

import truthcal as tc
from truthcal.results.multiclass import Confusion, word_classes, word_slopes

rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), 400)
Y = np.array(["a", "b\nb", "c|c"])[(rng.random((400, 1)) >= np.cumsum(P[:, [1, 0, 2]], axis=1)[:, :-1]).sum(axis=1)]
FOUND = tc.assess(Y, P)


def test_to_dict():
    values = json.loads(json.dumps(FOUND.to_dict()))
    assert values["definition"] == "vector"
    assert values["labels"] == ["a", "b\nb", "c|c"]
    assert values["test"]["pvalue"] == FOUND.test.pvalue
    assert values["slope"]["estimate"] == FOUND.slope.estimate
    np.testing.assert_allclose(values["confusion"]["z"], FOUND.confusion.z)
    assert values["confusion"]["sentence"] == FOUND.confusion.sentence
    assert len(values["classes"]["segments"]) == 3


def test_frame_has_one_row():
    (row,) = FOUND.frame().to_dict("records")
    assert row["atb"] == FOUND.atb
    assert row["test_pvalue"] == FOUND.test.pvalue
    assert len(FOUND.classes.frame()) == 3
    assert isinstance(FOUND.classes.frame(), pd.DataFrame)


def test_names_stay_on_one_line():
    assert len(FOUND.verdict.splitlines()) == 5
    for line in (*FOUND.verdict.splitlines(), FOUND.confusion.sentence):
        assert "b\nb" not in line
    assert FOUND._repr_html_().startswith("<")
    assert FOUND.to_markdown().strip()


def test_confusion_in_words():
    table = np.array([[0.5, 0.2], [0.3, 0.7]])
    none = Confusion(("x", "y"), table, table, np.zeros((2, 2)), None, np.zeros((2, 2), bool))
    assert none.sentence == ""
    assert str(none) == "No two classes are confused significantly."
    some = Confusion(("x", "y"), table, table[::-1], np.zeros((2, 2)), (0, 1), np.eye(2)[::-1] > 0)
    assert some.sentence == "Most confused: where x is predicted, y happens more often: 70% instead of 20%."


def test_slopes_in_words():
    assert word_slopes(None) == ""
    assert word_slopes((math.nan, math.nan)) == ""
    assert word_slopes((0.5, math.nan)) == "Detectable with 80% power: slopes below 0.5."
    assert word_slopes((0.5, 2.0)) == "Detectable with 80% power: slopes below 0.5 or above 2."


def test_classes_in_words():
    assert word_classes([], "class") == ""
    many = rng.dirichlet(np.ones(8), 4000)
    y = (rng.random((4000, 1)) >= np.cumsum(many[:, ::-1], axis=1)[:, :-1]).sum(axis=1)
    found = tc.assess(y, many)
    assert len(found.classes.miscalibrated) > 5
    assert found.classes.verdict.startswith("8 of 8 classes are miscalibrated")
    assert "more" in word_classes(found.classes.miscalibrated, "class")
    assert "... and 3 more (`.classes` and --json have all of them)" in str(found)


def test_many_labels_in_words():
    happened = rng.random((400, 3)) < 0.5 * P
    found = tc.assess(happened, P, multilabel=True)
    assert found.verdict.endswith("are too high (Holm).")
    assert found.classes.noun == "column"
    names = [line.name for line in found.evidence()]
    assert "ATB" in names
    assert "slope" not in names
