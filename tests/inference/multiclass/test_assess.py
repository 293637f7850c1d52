"""The verdict on many classes: kinds, words, warnings, and the gate."""

import math

import numpy as np
import pytest
from oracles import multiclass as oracle
from support.classes import draw_classes

import truthcal as tc
from truthcal.inference.multiclass.slope import tempered

rng = np.random.default_rng(3)
P = rng.dirichlet(np.ones(3), 1500)
NAMES = np.array(["cat", "dog", "owl"])


def draw(q, seed=0):
    return draw_classes(np.random.default_rng(seed), q)


Y = draw(P)


@pytest.fixture(scope="module")
def calibrated():
    return tc.assess(NAMES[Y], P)


def test_calibrated(calibrated):
    assert calibrated.kind == "calibrated"
    assert calibrated.verdict.startswith(
        "Calibrated as far as 1,500 rows with 3 classes can tell.\nThe error is at most"
    )
    assert "Detectable with 80% power: slopes below 0." in calibrated.verdict
    assert calibrated.labels == ("cat", "dog", "owl")
    assert set(calibrated.classes) == {"cat", "dog", "owl"}
    assert calibrated.classes.noun == "class"
    assert str(calibrated.classes).startswith("No significant miscalibration in any of 3 classes")
    assert calibrated.warnings == ()
    text = str(calibrated)
    for part in ("vector ATB", "truthful", "of all classes, without noise", "0 of 3 tested", "Holm"):
        assert part in text


def test_numbers_of_the_evidence(calibrated):
    w = np.ones(200)
    found = tc.assess(Y[:200], P[:200])
    assert found.atb == pytest.approx(oracle.vector(Y[:200], P[:200], w))
    assert found.noise_floor == pytest.approx(oracle.noise_floor(P[:200], w))
    assert found.brier == pytest.approx(np.mean(oracle.brier(Y[:200], P[:200])))
    own = 2.0 * found.brier / 200
    assert found.excess == pytest.approx((found.atb - own) / (1 - 1 / 200))
    assert calibrated.test == tc.calibration_test(NAMES[Y], P, rng=0)
    assert str(calibrated.error) == str(tc.error_size(NAMES[Y], P))
    assert calibrated.n_effective == 1500
    names = [line.name for line in calibrated.evidence()]
    assert names == [
        "error",
        "vector ATB",
        "miscalibrated?",
        "too good?",
        "slope",
        "detectable",
        "classes",
        "Brier score",
        "rows",
    ]


@pytest.mark.parametrize(("slope", "kind"), [(0.6, "overconfident"), (1.6, "underconfident")])
def test_confidence(slope, kind):
    found = tc.assess(NAMES[draw(tempered(P, slope), 1)], P)
    assert found.kind == kind
    assert found.verdict.startswith(f"{kind.capitalize()}: predictions are ")
    assert slope in found.slope
    low, high = found.detectable_slopes
    assert low < 1.0 < high


def test_miscalibrated_in_other_ways():
    q = P.copy()
    q[:, 1] += 0.6 * q[:, 0]  # many cats are dogs
    q[:, 0] *= 0.4
    y = NAMES[draw(q, 2)]
    found = tc.assess(y, P)
    assert found.kind == "miscalibrated"
    lines = found.verdict.splitlines()
    assert lines[0] == "Miscalibrated: predictions are off, and not only in how extreme they are."
    assert lines[1].startswith("The error is about 0.")
    assert lines[2].startswith("By class: ")
    assert lines[3].startswith("Most confused: where cat is predicted, dog happens more often: ")
    assert tc.check(NAMES[Y], P).status == "pass"
    assert tc.check(y, P).status == "fail"


def test_classes_that_are_too_high_and_too_low():
    q = P.copy()
    q[:, 0] *= 0.5
    q[:, 2] += 1.0 - q.sum(axis=1)
    found = tc.assess(NAMES[draw(q, 3)], P)
    assert found.classes["cat"].kind == "too high"
    assert found.classes["owl"].kind == "too low"
    assert "cat is too high" in found.verdict
    assert "owl is too low" in found.verdict
    assert "cat: too high (adjusted p" in str(found)


def test_too_good():
    """Each prediction is made ten times, and classes happen exactly as often as predicted."""
    p = np.repeat(np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]), 100, axis=0)
    y = np.concatenate([np.repeat([0, 1, 2], (100 * row).round().astype(int)) for row in p[::100]])
    found = tc.assess(y, p)
    assert found.kind == "too good"
    assert found.verdict.startswith("Unusually close: predictions are closer to the classes than chance allows.")


def test_few_rows():
    assert tc.assess([0], P[:1], labels=range(3)).verdict == (
        "Too few rows: 1 row with 3 classes carries too little information to detect errors."
    )
    assert tc.assess([0, 1], [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]], labels=range(3)).kind == "too few rows"
    assert "5 rows with 3 classes carry too" in tc.assess([0, 1, 2, 2, 1], np.full((5, 3), 1 / 3)).verdict


def test_unclear():
    found = [tc.assess(draw(tempered(P[:400], 0.75), seed), P[:400]) for seed in range(12)]
    start = "Unclear: miscalibration is not significant, but "
    for one in found:
        excluded = one.error.low > 0.0 or not one.slope.low <= 1.0 <= one.slope.high
        assert (one.kind == "unclear") == (one.pvalue > 0.05 and excluded)
        if one.kind == "unclear":
            because = "the error is about " if one.error.low > 0.0 else "predictions seem overconfident (slope 0."
            assert one.verdict.startswith(start + because)
    assert {one.error.low > 0.0 for one in found if one.kind == "unclear"} == {True, False}


def test_uniform_predictions_have_no_slope_but_are_assessed():
    found = tc.assess(np.arange(20_000) * 7 % 10, np.full((20_000, 10), 0.1))
    assert found.kind in ("calibrated", "too good")
    y = np.random.default_rng(0).integers(0, 3, 20_000)
    assert tc.assess(y, np.full((20_000, 3), 1 / 3)).kind == "calibrated"
    assert tc.check(y, np.full((20_000, 3), 1 / 3)).status == "pass"
    assert "slope           unknown" in str(found)


def test_options_that_exclude_each_other_have_no_error_to_test():
    y = np.eye(3)[np.random.default_rng(0).integers(0, 3, 300)]
    found = tc.assess(y, np.full((300, 3), 1 / 3), multilabel=True)
    assert found.test.greater == 1.0
    assert (
        found.verdict == "Nothing to test: the errors of each group cancel by construction (900 entries in 300 rows)."
    )
    varied = np.random.default_rng(1).dirichlet(np.ones(3), 300)
    alone = tc.assess(y.ravel(), varied.ravel(), groups=np.repeat(np.arange(300), 3))
    assert math.isnan(alone.detectable.shift_high)
    assert not math.isnan(alone.detectable.slope_high)


def test_columns_of_data_frames_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    truth = np.random.default_rng(2).random((400, 3))
    y = pd.DataFrame(np.random.default_rng(3).random((400, 3)) < truth, columns=list("abc"))
    p = pd.DataFrame(truth, columns=list("abc"))
    assert tc.assess(y, p[["c", "a", "b"]], multilabel=True).kind == "calibrated"
    with pytest.raises(
        ValueError, match="`y_true` has the columns 'x', 'b', 'c', but those of the predictions are called"
    ):
        tc.assess(y.rename(columns={"a": "x"}), p, multilabel=True)
    with pytest.raises(ValueError, match="`labels` has the names of the columns of `y_proba` in another order"):
        tc.assess(y, p, multilabel=True, labels=list("cba"))
    frame = pd.DataFrame(P, columns=NAMES)
    names, backwards = NAMES[Y], list(NAMES[::-1])
    assert tc.multiclass_atb(names, frame[backwards]) == pytest.approx(tc.multiclass_atb(names, frame))
    sketch = tc.MulticlassSketch(NAMES.tolist()).update(names, frame[backwards])
    assert tc.multiclass_atb(names, frame) in sketch.atb()
    with pytest.raises(ValueError, match=r"in this order\. Omit it: named columns are matched by name"):
        tc.assess(names, frame[backwards], labels=NAMES)


def test_certain_classes():
    hard = np.eye(3)[Y[:50]]
    right = tc.assess(Y[:50], hard, hard=True)
    assert right.kind == "calibrated"
    assert right.verdict.startswith("Always right: one class has the probability 1 in every row, and none is wrong")
    wrong = tc.assess((Y[:50] + 1) % 3, hard, hard=True)
    assert wrong.kind == "miscalibrated"
    predicted, happened = hard.mean(axis=0), hard[:, [2, 0, 1]].mean(axis=0)  # frequencies of classes
    squares = predicted + (1.0 - predicted) * (happened / (1.0 - predicted)) ** 2
    assert wrong.error.estimate == pytest.approx(np.sqrt(squares.sum() / 2.0), abs=0.01)
    assert wrong.error.low > 0.5
    assert any(x.startswith("50 rows had a class with a predicted probability of exactly 0;") for x in wrong.warnings)


def test_warnings():
    p = np.c_[P[:200], np.zeros(200)]
    absent = tc.assess(Y[:200], p, labels=range(4))
    assert absent.warnings == ("1 column has no rows of that class: 3.",)
    y = Y[:200].copy()
    y[0] = 3
    impossible = tc.assess(y, p, labels=range(4))
    assert any(
        x.startswith("1 row had a class with a predicted probability of exactly 0;") for x in impossible.warnings
    )
    many = tc.assess([0, 1] * 30, np.full((60, 9), 1 / 9), labels=range(9))
    assert "7 columns have no rows of that class: 2, 3, 4, 5, 6, ..." in many.warnings[0]
    uneven = tc.assess(Y[:200], P[:200], sample_weight=np.r_[np.full(20, 50.0), np.ones(180)])
    assert any(x.startswith("weights are uneven: the effective sample size is ") for x in uneven.warnings)


def test_groups():
    groups = np.arange(1500) // 5
    found = tc.assess(Y, P, groups=groups)
    assert (found.n_groups, found.n_effective_groups) == (300, pytest.approx(300))
    assert "1,500 rows in 300 groups with 3 classes" in found.verdict
    assert found.test == tc.calibration_test(Y, P, groups=groups)
    assert [line.name for line in found.evidence()][-1] == "groups"
    low, high = tc.assess(Y, P).detectable_slopes
    assert found.detectable_slopes == pytest.approx((low, high), rel=0.15)
    w = np.r_[np.zeros(500), np.ones(1000)]
    weighted, kept = tc.assess(Y, P, groups=groups, sample_weight=w), tc.assess(Y[500:], P[500:], groups=groups[500:])
    assert weighted.test.pvalue == pytest.approx(kept.test.pvalue)
    assert str(weighted.slope) == str(kept.slope)


@pytest.mark.parametrize("k", [3, 20])
def test_hostile_rows(k):
    local = np.random.default_rng(5)
    z = local.dirichlet(np.ones(k), 12)
    cases = [np.c_[z, np.zeros(12)], np.tile(z[0], (12, 1)), local.dirichlet(np.full(k, 0.02), 12)]
    for p in cases:
        y = draw(p)
        for w in (None, 10.0 ** local.uniform(-6, 6, 12)):
            found = tc.assess(y, p, labels=range(p.shape[1]), sample_weight=w, n_resamples=199)
            assert found.verdict
            assert not math.isnan(found.atb)


def test_a_classifier_of_digits():
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB

    x, y = datasets.load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x / 16.0, y, test_size=0.5, random_state=0)
    bayes = tc.assess(y_test, GaussianNB(var_smoothing=1e-3).fit(x, y).predict_proba(x_test))
    assert bayes.kind in ("overconfident", "miscalibrated")
    assert bayes.slope.high < 1.0
    logistic = tc.assess(y_test, LogisticRegression(max_iter=500).fit(x, y).predict_proba(x_test))
    assert logistic.atb < bayes.atb
    assert logistic.brier < bayes.brier
    assert logistic.slope.low > 1.0  # regularized
    assert len(logistic.labels) == 10
