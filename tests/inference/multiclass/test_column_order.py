"""The warning that columns of classes are in the wrong order."""

import itertools

import numpy as np
import pytest

import truthcal as tc
from truthcal.core.class_rows import ClassRows
from truthcal.inference.multiclass.column_order import suspect_column_order

LABELS = ("ant", "bee", "cat", "dog", "elk")


def rows(n, k, concentration, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, concentration), n)
    y = np.array([rng.choice(k, p=row) for row in p])
    return p, y


def warning(p, y):
    return " ".join(suspect_column_order(ClassRows(p, y, None, LABELS[: p.shape[1]]))).strip()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[1:])
def test_every_order_of_four_columns(order):
    p, y = rows(400, 4, 0.15, 0)
    text = warning(p[:, order], y)
    pairs = [f"that of {LABELS[c]} fits {LABELS[k]}" for c, k in enumerate(order) if c != k]
    for place, pair in enumerate(pairs):
        assert (pair in text) == (place < 3)
    assert ("and 1 more." in text) == (len(pairs) == 4)
    assert text.startswith(f"Columns of classes may be in the wrong order: {pairs[0]}")
    assert warning(p, y) == ""


def test_numbers_in_the_warning():
    p, y = rows(300, 5, 0.1, 1)
    swapped = p[:, [0, 3, 2, 1, 4]]
    of_both = np.isin(y, [1, 3])
    before = np.mean(swapped.argmax(axis=1)[of_both] == y[of_both])
    after = np.mean(p.argmax(axis=1)[of_both] == y[of_both])
    assert warning(swapped, y) == (
        "Columns of classes may be in the wrong order: that of bee fits dog and that of dog fits bee. As they are, the "
        f"most probable class is right in {before:.0%} of {of_both.sum()} rows of these classes; in that order, in "
        f"{after:.0%}. Check the order of the columns."
    )


def test_assessment_has_it_first():
    p, y = rows(300, 4, 0.1, 2)
    assert tc.assess(y, p).warnings == ()
    assert tc.assess(y, p[:, [1, 0, 2, 3]]).warnings[0].startswith("columns of classes may be in the wrong order")


def test_labels_that_count_from_another_number():
    p, y = rows(500, 5, 0.1, 3)
    assert "and 2 more" in warning(np.roll(p, 1, axis=1), y)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_no_false_alarm_for_calibrated_predictions(concentration):
    for seed in range(100):
        assert warning(*rows(30 + 3 * seed, 3 + seed % 3, concentration, seed)) == ""


def test_few_rows_and_weak_models_give_no_warning():
    p, y = rows(12, 3, 0.1, 4)
    assert warning(p[:, [1, 0, 2]], y) == ""
    p, y = rows(300, 3, 20.0, 5)
    assert warning(p[:, [1, 0, 2]], y) == ""
