"""`assess_estimator`: the verdict of `assess` on pooled out-of-fold predictions."""

import re

import numpy as np
import pytest
from scipy.special import expit
from support.simulation import REPEATS

import truthcal as tc

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

from truthcal.sklearn import assess_estimator  # noqa: E402

BETA = np.array([1.0, -0.8, 0.6, 0.3, 0.0])
FOLDS = KFold(5, shuffle=True, random_state=0)


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    return x, (rng.random(n) < expit(x @ BETA - 0.5)).astype(int)


X, Y = rows()
TEXT = np.where(Y == 1, "yes", "no")


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifierCV(LinearSVC(), cv=3),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring="neg_log_loss", cv=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_pools_out_of_fold_predictions(model):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    result = assess_estimator(model, pandas.DataFrame(X), pandas.Series(TEXT, index=np.arange(400) + 1000))
    proba = cross_val_predict(model, X, Y, cv=FOLDS, method="predict_proba")[:, 1]
    expected = tc.assess(Y, proba)
    assert result.kind == expected.kind
    assert (result.atb, result.pvalue, result.brier) == pytest.approx((expected.atb, expected.pvalue, expected.brier))


def test_a_number_of_folds_is_not_stratified():
    proba = cross_val_predict(GaussianNB(), X, Y, cv=KFold(3, shuffle=True, random_state=0), method="predict_proba")
    assert assess_estimator(GaussianNB(), X, Y, cv=3).atb == tc.atb(Y, proba[:, 1])


def test_options_weights_and_labels():
    w = np.random.default_rng(1).uniform(0.2, 3.0, 400)
    proba = cross_val_predict(GaussianNB(), X, Y, cv=FOLDS, method="predict_proba", params={"sample_weight": w})
    options = {"sample_weight": w, "alpha": 0.01, "confidence_level": 0.9}
    result = assess_estimator(GaussianNB(), X, TEXT, params={"sample_weight": w}, pos_label="no", n_jobs=2, **options)
    assert result.to_dict() == tc.assess(TEXT, proba[:, 0], pos_label="no", **options).to_dict()
    assert result.atb == tc.atb(1 - Y, proba[:, 0], sample_weight=w)


@pytest.mark.parametrize("cv", ["prefit", None])
def test_names_the_event_if_labels_are_not_0_and_1(cv):
    event = r"\n *event +{} +the outcome whose probability is predicted"
    text, numbers = GaussianNB().fit(X, TEXT), GaussianNB().fit(X, Y)
    assert re.search(event.format("yes"), str(assess_estimator(text, X, TEXT, cv=cv)))
    assert re.search(event.format("no"), str(assess_estimator(text, X, TEXT, cv=cv, pos_label="no")))
    assert not re.search(event.format(".*"), str(assess_estimator(numbers, X, Y, cv=cv)))


@pytest.mark.parametrize("cv", ["prefit", None])
def test_refuses_shuffled_frames(cv):
    """Reordering one of them, for example by a join, is not noticed by scikit-learn."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y, model = pandas.DataFrame(X), pandas.Series(TEXT), GaussianNB().fit(X, TEXT)
    with pytest.raises(ValueError, match=r"`X` and `y` have the same index labels in a different order\. Align them"):
        assess_estimator(model, x[::-1], y, cv=cv)
    other = assess_estimator(model, x, pandas.Series(TEXT, index=np.arange(400) + 1000), cv=cv)
    assert other.to_dict() == assess_estimator(model, X, TEXT, cv=cv).to_dict()


def test_columns_of_pandas():
    """scikit-learn cannot take rows of an array of pandas."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    expected = assess_estimator(GaussianNB(), X, TEXT).to_dict()
    for column in (pandas.array(TEXT, dtype="string"), pandas.Series(TEXT, dtype="category")):
        assert assess_estimator(GaussianNB(), X, column).to_dict() == expected


def test_groups_may_be_tuples():
    pairs = [(k // 8, "ab"[k // 4 % 2]) for k in range(400)]
    result = assess_estimator(GaussianNB(), X, Y, groups=pairs)
    assert result.atb == assess_estimator(GaussianNB(), X, Y, groups=np.arange(400) // 4).atb


def test_estimators_see_the_labels():
    model = LogisticRegression(class_weight={"yes": 3.0, "no": 1.0})
    assert assess_estimator(model, X, TEXT).kind == "too high"


def test_many_classes():
    x, y = load_iris(return_X_y=True)
    names = np.array(["virginica", "setosa", "versicolor"], dtype=object)[y]
    found = assess_estimator(GaussianNB(), x, names)
    proba = cross_val_predict(GaussianNB(), x, names, cv=FOLDS, method="predict_proba")
    assert isinstance(found, tc.MulticlassAssessment)
    assert found.to_dict() == tc.assess(names, proba).to_dict()


def test_groups_are_in_one_fold_and_may_depend():
    group = np.arange(400) // 4
    found = assess_estimator(GaussianNB(), X, Y, groups=group)
    proba = cross_val_predict(GaussianNB(), X, Y, cv=GroupKFold(5), groups=group, method="predict_proba")
    assert found.to_dict() == tc.assess(Y, proba[:, 1], groups=group).to_dict()
    assert found.n_groups == 100


def test_own_folds_must_not_split_groups():
    groups = np.arange(len(Y)) // 4
    folds = list(FOLDS.split(X))
    with pytest.raises(
        ValueError, match=r"`cv` has rows of group \d+ in the training and the test rows of fold 0\. Use"
    ):
        assess_estimator(GaussianNB(), X, Y, cv=folds, groups=groups)
    masks = [(np.isin(np.arange(len(Y)), train), np.isin(np.arange(len(Y)), test)) for train, test in folds]
    assert assess_estimator(GaussianNB(), X, Y, cv=masks) == assess_estimator(GaussianNB(), X, Y, cv=folds)


def test_fitted_estimator():
    model = GaussianNB().fit(X[:200], TEXT[:200])
    groups = np.arange(200) // 2
    result = assess_estimator(model, X[200:], TEXT[200:], cv="prefit", groups=groups)
    expected = tc.assess(TEXT[200:], model.predict_proba(X[200:])[:, 1], groups=groups, pos_label="yes")
    assert result.to_dict() == expected.to_dict()


class Shuffled(ClassifierMixin, BaseEstimator):
    """An estimator whose classes are in decreasing order."""

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_[::-1]
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, ::-1]


def test_columns_are_matched_by_class():
    assert assess_estimator(Shuffled(), X, TEXT).atb == assess_estimator(LogisticRegression(), X, TEXT).atb


def own_folds(y):
    """Stratified folds of a user: every fifth of the sorted rows."""
    order = np.argsort(y, kind="stable")
    tests = [order[k::5] for k in range(5)]
    return [(np.setdiff1d(order, test), test) for test in tests]


@pytest.mark.parametrize(
    ("cv", "groups"),
    [(StratifiedKFold(5), None), (StratifiedGroupKFold(5), np.arange(400) // 4), (own_folds(Y), None)],
    ids=["StratifiedKFold", "StratifiedGroupKFold", "own"],
)
def test_warns_of_stratified_folds(cv, groups):
    with pytest.warns(UserWarning, match=r"`cv` is stratified: .* Pass cv=KFold\(5, shuffle=True, random_state=0\)"):
        assess_estimator(GaussianNB(), X, Y, cv=cv, groups=groups)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: assess_estimator(LinearSVC(), X, Y), TypeError, r"`estimator` must have predict_proba; LinearSVC has none\. Its decision_function"),
        (lambda: assess_estimator(LinearRegression(), X, Y), TypeError, "Regressors predict no probabilities"),
        (lambda: assess_estimator(LinearSVC().fit(X, Y), X, Y, cv="prefit"), TypeError, "wrap the estimator in sklearn.calibration.CalibratedClassifierCV"),
        (lambda: assess_estimator(GaussianNB(), X, Y, cv="five"), ValueError, '`cv` must be a number of folds, a splitter, an iterable or "prefit"; got \'five\''),
        (lambda: assess_estimator(GaussianNB(), X, Y, cv=1), ValueError, "`cv` must be at least 2; got 1"),
        (lambda: assess_estimator(GaussianNB(), X, Y, cv=TimeSeriesSplit(3)), ValueError, r"`cv` must have each row in exactly one test fold; row 0 is in 0 \(100 such rows\)\. Use KFold .*cv='prefit'"),
        (lambda: assess_estimator(GaussianNB(), X, Y, cv=RepeatedKFold(n_splits=2, n_repeats=3)), ValueError, r"row 0 is in 3 \(400 such rows\)"),
        (lambda: assess_estimator(GaussianNB(), X, np.arange(400) // 100, cv=KFold(4)), ValueError, "`cv` has no training rows of class 0 in fold 0. Use more folds"),
        (lambda: assess_estimator(GaussianNB().fit(X, Y), X, Y, cv="prefit", params={"sample_weight": Y}), ValueError, '`params` are arguments of `fit`, but cv="prefit" fits nothing. Omit one of them'),
        (lambda: assess_estimator(GaussianNB(), X, Y, cv=[(np.arange(399), [-1])]), ValueError, r"`cv` has the row number -1 in the test rows of fold 0; rows are numbered from 0 to 399\. Use np\.arange\(400\)\[rows\]"),
        (lambda: assess_estimator(GaussianNB(), X, Y, cv=[([400], np.arange(400))]), ValueError, "`cv` has the row number 400 in the training rows of fold 0"),
        (lambda: assess_estimator(GaussianNB(), X, Y, cv=[([0], [1.0])]), TypeError, "`cv` must hold row numbers or masks; the test rows of fold 0 are of type float64"),
        (lambda: assess_estimator(GaussianNB(), X, np.where(np.arange(400) == 3, np.nan, Y)), ValueError, r"`y` has a missing value \(nan or None\) at row 3 \(1 of 400 rows\)\. Drop those rows\."),
        (lambda: assess_estimator(GaussianNB(), X, np.where(np.arange(400) == 3, None, TEXT)), ValueError, r"`y` has a missing value \(nan or None\) at row 3"),
        (lambda: assess_estimator(GaussianNB(), X, Y, groups=np.where(np.arange(400) == 3, np.nan, 1.0)), ValueError, r"`groups` has a missing value \(nan\) at row 3 \(1 of 400 rows\)\. Every row needs a group"),
        (lambda: assess_estimator(GaussianNB(), X, Y, groups=np.arange(399)), ValueError, "`groups` has 399 rows but `y` has 400"),
        (lambda: assess_estimator(GaussianNB(), X, X[:, 0]), ValueError, "`y` must hold the class of each row; scikit-learn takes it for 'continuous'"),
        (lambda: assess_estimator(GaussianNB(), X, np.full(400, "no")), ValueError, "`y` must have rows of two or more classes; all are 'no'"),
        (lambda: assess_estimator(GaussianNB(), X, np.stack([Y, Y], axis=1)), ValueError, r"`y` must be one-dimensional; got shape \(400, 2\)"),
    ],
)  # fmt: skip
def test_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.simulation
def test_size_for_a_model_of_the_right_form():
    """Each fold's model is fitted to the other outcomes: predictions are closer to outcomes than independent ones are.

    Nominal rates are 5% and 1%.
    """
    found = [assess_estimator(LogisticRegression(C=np.inf), *rows(500, seed)) for seed in range(REPEATS)]
    assert np.mean([one.pvalue <= 0.05 for one in found]) <= 0.03
    assert 0.005 <= np.mean([one.pvalue_too_good <= 0.01 for one in found]) <= 0.07
