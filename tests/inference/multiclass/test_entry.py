"""Public functions with a matrix of predictions: dispatch, options that do not fit, independent columns."""

import re

import numpy as np
import pandas as pd
import pytest

import truthcal as tc

rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), 60)
Y = rng.integers(0, 3, 60)
HARD = np.eye(3)[Y]
MANY = (rng.random((60, 3)) < P).astype(int)


def fails(match, function, *args, error=ValueError, **options):
    with pytest.raises(error, match=re.escape(match)):
        function(*args, **options)


@pytest.mark.parametrize("function", [tc.assess, tc.calibration_test, tc.error_size, tc.check])
def test_options_that_do_not_fit(function):
    cure = "For one class against the rest, pass `y_true == label` and its column."
    fails(f"`pos_label` cannot be combined with several columns of predictions. {cure}", function, Y, P, pos_label=1)
    one = (
        "is for predictions with a column for each class, an array of shape (n, k); `y_proba` has one column. Omit it."
    )
    fails(f"`labels` {one}", function, Y == 1, P[:, 1], labels=[0, 1])
    if function in (tc.assess, tc.check):
        fails(f"`multilabel` {one}", function, Y == 1, P[:, 1], multilabel=True)
    if function is not tc.error_size:
        match = "`y_proba` gives one class the probability 1 in every row: labels from `predict`? Pass `predict_proba`"
        fails(match, function, Y, HARD)


def test_options_of_one_function():
    many = "must be 'information_atb' for predictions with many classes; got 'atb'."
    fails(f"`measure` {many} For one class against", tc.calibration_test, Y, P, measure="atb")
    fails(
        "`method` for many classes must be one of 'auto', 'exact', 'asymptotic'",
        tc.calibration_test,
        Y,
        P,
        method="bound",
    )
    fails("`n_bins` is for predictions of one event; with many classes it is chosen.", tc.error_size, Y, P, n_bins=5)
    fails(
        "`measure` must be 'atb' for predictions with many classes; got 'information_atb'",
        tc.compare,
        Y,
        P,
        P,
        measure="information_atb",
    )
    fails("`y_proba_b` must have as many columns as `y_proba_a`.", tc.compare, Y, P, P[:, 0])
    two = np.column_stack([P[:, 0], 1.0 - P[:, 0]])
    fails("`y_proba_b` must have as many columns as `y_proba_a`.", tc.compare, (Y > 1).astype(int), two, P)
    a, b = pd.DataFrame(P, columns=[0, 1, 2]), pd.DataFrame(P, columns=[2, 1, 0])
    fails("`y_proba_b` must have the same classes as `y_proba_a`, in the same order.", tc.compare, Y, a, b)
    fails("`y_proba_b` must lie in [0, 1]", tc.compare, Y, P, 3 * P)
    fails("`y_proba_b` gives one class the probability 1", tc.compare, Y, P, HARD)


def test_groups_are_checked():
    fails("`groups` has only one value; at least 20 groups are needed", tc.assess, Y, P, groups=[0] * 60)
    fails("`groups` has 3 rows", tc.assess, Y, P, groups=[0] * 3)


def test_independent_columns():
    found = tc.assess(MANY, P, multilabel=True, labels=["a", "b", "c"])
    assert found.definition == "multilabel"
    assert (found.n, found.labels, found.n_groups) == (60, ("a", "b", "c"), 60)
    assert found.slope is found.confusion is found.detectable_slopes is None
    assert set(found.classes) == {"a", "b", "c"}
    assert found.atb == pytest.approx(tc.atb(MANY.ravel(), P.ravel()))
    together = tc.assess(MANY.ravel(), P.ravel(), groups=np.repeat(np.arange(60), 3))
    assert found.test.pvalue == together.test.pvalue
    assert tc.assess(MANY, pd.DataFrame(P, columns=["x", "y", "z"]), multilabel=True).labels == ("x", "y", "z")
    assert tc.check(MANY, P, multilabel=True).assessment.definition == "multilabel"


def test_independent_columns_with_weights_and_groups():
    w, groups = np.r_[np.zeros(10), np.ones(50)], np.arange(60) // 2
    found = tc.assess(MANY, P, multilabel=True, sample_weight=w, groups=groups)
    kept = tc.assess(MANY[10:], P[10:], multilabel=True, groups=groups[10:])
    assert found.n == 50
    assert found.test.pvalue == pytest.approx(kept.test.pvalue)
    assert found.n_effective == pytest.approx(50)


def test_errors_of_independent_columns():
    options = {"multilabel": True}
    fails(
        "`pos_label` cannot be combined with multilabel=True: `y_true` holds 0 and 1.",
        tc.assess,
        MANY,
        P,
        pos_label=1,
        **options,
    )
    fails("`y_true` must have shape (n, k), a column for each class; got shape (60,).", tc.assess, Y, P, **options)
    shape = (
        "`y_true` has shape (60, 2), but `y_proba` has shape (60, 3); with multilabel=True both have a column for each"
    )
    fails(shape, tc.assess, MANY[:, :2], P, **options)
    only = "`y_true` must contain only 0 and 1 with multilabel=True, a column for each event."
    fails(only, tc.assess, MANY * 2, P, **options)
    fails(only, tc.assess, MANY * 0.5, P, **options)
    fails("`y_true` has a missing value (nan) at row 0", tc.assess, MANY * np.nan, P, **options)
    fails(
        "`labels` must hold 3 different names, one for each column.", tc.assess, MANY, P, labels=["a", "b"], **options
    )
    fails(
        "`labels` must hold 3 different names, one for each column.", tc.assess, MANY, P, labels=list("aab"), **options
    )
    fails("`y_proba` has 5 rows; multilabel=True needs at least 20.", tc.assess, MANY[:5], P[:5], **options)
    fails(
        "`sample_weight` must contain numbers", tc.assess, MANY, P, sample_weight=["a"] * 60, error=TypeError, **options
    )
    fails("`sample_weight` has a missing value (nan)", tc.assess, MANY, P, sample_weight=[np.nan] * 60, **options)
    fails("`sample_weight` has 3 rows but `y_proba` has 60", tc.assess, MANY, P, sample_weight=[1] * 3, **options)
