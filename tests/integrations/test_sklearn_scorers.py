"""Scorers in scikit-learn's own tools: same numbers as the core, weights, labels, errors, and stratified folds."""

import copy
import itertools
import pickle
import re
import warnings
from math import comb

import numpy as np
import pytest
from oracles.measures import ORACLES, exact

import truthcal as tc

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.datasets import load_iris  # noqa: E402
from sklearn.dummy import DummyClassifier  # noqa: E402
from sklearn.feature_selection import SequentialFeatureSelector  # noqa: E402
from sklearn.inspection import permutation_importance  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from sklearn.metrics import brier_score_loss, log_loss  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
    cross_validate,
)
from sklearn.svm import LinearSVC  # noqa: E402

from truthcal.sklearn import atb_scorer, calibration_scorer, calibration_scoring  # noqa: E402
from truthcal.sklearn.folds import FoldHistory, chance_of_equal_events  # noqa: E402
from truthcal.sklearn.scorers import seed_of  # noqa: E402

FOLDS = KFold(5, shuffle=True, random_state=0)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, (rng.random(n) < 1 / (1 + np.exp(-x[:, 0] - 0.3))).astype(int)


X, Y = rows()
TEXT = np.where(Y == 1, "yes", "no")
MODEL = LogisticRegression().fit(X, TEXT)
P = MODEL.predict_proba(X)[:, 1]


@pytest.mark.parametrize("measure", ["atb", "multiscale_atb", "information_atb", "quantile_ece", "shifted_grid_ubse"])
def test_scores_are_the_measures_times_minus_one(measure):
    expected = -float(ORACLES[measure](Y[:7], exact(P[:7])))
    assert calibration_scorer(measure)(MODEL, X[:7], TEXT[:7]) == pytest.approx(expected, rel=1e-9)


def test_weights_and_labels():
    w = np.random.default_rng(1).integers(1, 9, 7)
    scored = atb_scorer()(MODEL, X[:7], TEXT[:7], sample_weight=w)
    assert scored == pytest.approx(-float(ORACLES["atb"](Y[:7], exact(P[:7]), exact(w))), rel=1e-9)
    other = calibration_scorer("quantile_ece", pos_label="no")(MODEL, X, TEXT)
    assert other == -tc.quantile_ece(1 - Y, 1 - P)


def test_one_class_in_the_test_rows_is_not_taken_for_the_event():
    """A test fold may lack the event: its labels alone would not tell which class the predictions are of."""
    no = TEXT == "no"
    assert atb_scorer()(MODEL, X[no], TEXT[no]) == -tc.atb(Y[no], P[no])


def test_many_classes():
    x, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LogisticRegression(max_iter=1000).fit(x, names)
    part = names != "versicolor"  # a fold may lack a class
    expected = -tc.multiclass_atb(names[part], model.predict_proba(x[part]), labels=model.classes_)
    assert atb_scorer()(model, x[part], names[part]) == expected
    assert expected < 0.0


def test_cross_validation_scores_each_fold():
    scores = cross_val_score(LogisticRegression(), X, TEXT, cv=FOLDS, scoring=atb_scorer())
    several = cross_validate(LogisticRegression(), X, TEXT, cv=FOLDS, scoring={"a": atb_scorer(), "b": "accuracy"})
    for score, (train, test) in zip(scores, FOLDS.split(X), strict=True):
        p = LogisticRegression().fit(X[train], TEXT[train]).predict_proba(X[test])[:, 1]
        assert score == pytest.approx(-tc.atb(Y[test], p), rel=1e-9)
    np.testing.assert_array_equal(several["test_a"], scores)


def test_in_other_tools_of_scikit_learn():
    scorer = atb_scorer()
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=FOLDS, scoring=scorer).fit(X, TEXT)
    means = [cross_val_score(LogisticRegression(C=c), X, TEXT, cv=FOLDS, scoring=scorer).mean() for c in (0.01, 1.0)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means)
    assert search.score(X, TEXT) == -tc.atb(Y, search.predict_proba(X)[:, 1])
    weights = np.ones(len(Y))
    found = permutation_importance(MODEL, X, TEXT, scoring=scorer, n_repeats=2, random_state=0, sample_weight=weights)
    assert found.importances_mean[0] > max(found.importances_mean[1:])
    several = permutation_importance(
        MODEL, X, TEXT, scoring={"a": scorer}, n_repeats=2, random_state=0, sample_weight=weights
    )
    np.testing.assert_array_equal(several["a"].importances, found.importances)
    parallel = cross_val_score(LogisticRegression(), X, TEXT, cv=FOLDS, scoring=scorer, n_jobs=2)
    np.testing.assert_array_equal(parallel, cross_val_score(LogisticRegression(), X, TEXT, cv=FOLDS, scoring=scorer))
    calibrated = CalibratedClassifierCV(LinearSVC(), cv=3)
    scores = cross_val_score(calibrated, X, TEXT, cv=FOLDS, scoring=scorer)
    train, test = next(FOLDS.split(X))
    p = clone(calibrated).fit(X[train], TEXT[train]).predict_proba(X[test])[:, 1]
    assert scores[0] == pytest.approx(-float(ORACLES["atb"](Y[test], exact(p))), rel=1e-9)


def test_scorers_are_copied_and_pickled():
    scorer = calibration_scorer("quantile_ece", pos_label="no")
    for twin in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):
        assert twin(MODEL, X, TEXT) == scorer(MODEL, X, TEXT)
        assert repr(twin) == "calibration_scorer('quantile_ece', pos_label='no')"
    search = clone(GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=FOLDS, scoring=scorer)).fit(X, TEXT)
    proba = [
        (Y[test], LogisticRegression().fit(X[train], TEXT[train]).predict_proba(X[test])[:, 0])
        for train, test in FOLDS.split(X)
    ]
    assert search.best_score_ == pytest.approx(-np.mean([tc.quantile_ece(1 - y, p) for y, p in proba]))


def test_weights_by_metadata_routing():
    w = np.random.default_rng(2).uniform(0.2, 3.0, len(Y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=False)
        scorers = {
            "weighted": atb_scorer().set_score_request(sample_weight=True),
            "alias": atb_scorer().set_score_request(sample_weight="importance"),
            "plain": atb_scorer().set_score_request(sample_weight=False),
        }
        found = cross_validate(model, X, Y, cv=FOLDS, scoring=scorers, params={"sample_weight": w, "importance": w})
        alone = cross_val_score(model, X, Y, cv=FOLDS, scoring=scorers["weighted"], params={"sample_weight": w})
        searched = GridSearchCV(model, {"C": [1.0]}, cv=FOLDS, scoring=scorers["weighted"]).fit(X, Y, sample_weight=w)
        with pytest.raises(ValueError, match=r"sample_weight.*\] are passed .*not explicitly set"):
            cross_validate(model, X, Y, cv=FOLDS, scoring=atb_scorer(), params={"sample_weight": w})
    for fold, (train, test) in enumerate(FOLDS.split(X)):
        p = LogisticRegression().fit(X[train], Y[train]).predict_proba(X[test])[:, 1]
        assert found["test_weighted"][fold] == pytest.approx(-tc.atb(Y[test], p, sample_weight=w[test]), rel=1e-9)
        assert found["test_plain"][fold] == pytest.approx(-tc.atb(Y[test], p), rel=1e-9)
    np.testing.assert_array_equal(found["test_alias"], found["test_weighted"])
    np.testing.assert_array_equal(alone, found["test_weighted"])
    assert searched.best_score_ == pytest.approx(alone.mean())


def test_requests_need_metadata_routing():
    with pytest.raises(RuntimeError, match=r"set_score_request needs metadata routing\. Call sklearn\.set_config"):
        atb_scorer().set_score_request(sample_weight=True)


@pytest.mark.parametrize("request_", [3, "no name", "$UNUSED$", [True]])
def test_refuses_requests(request_):
    with sklearn.config_context(enable_metadata_routing=True):
        message = "`sample_weight` must be True, False, None or the name under which weights are passed; got "
        with pytest.raises(TypeError, match=message + re.escape(repr(request_))):
            atb_scorer().set_score_request(sample_weight=request_)
        with pytest.raises(TypeError, match=message):
            calibration_scoring(sample_weight=request_)


@pytest.mark.parametrize("function", [atb_scorer, calibration_scorer, calibration_scoring])
def test_functions_that_make_scorers_are_no_scorers(function):
    message = rf"`scoring` must be {function.__name__}\(\), with parentheses; got the function itself"
    with pytest.raises(TypeError, match=message):
        cross_val_score(LogisticRegression(), X, Y, cv=FOLDS, scoring=function, error_score="raise")


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("ece", r"must be one of 'atb', .*; 'ece' is not truthful: a model can improve it"),
        ("nonsense", "must be one of 'atb', .*; got 'nonsense'"),
        (None, "must be one of 'atb', .*; got None"),
    ],
)
def test_refuses_measures(measure, message):
    with pytest.raises(ValueError, match=f"`measure` {message}"):
        calibration_scorer(measure)


class OneClass:
    classes_ = (0,)

    def predict_proba(self, X):
        return np.ones((len(X), 1))


THREE = DummyClassifier().fit(X[:3], [0, 1, 2])


@pytest.mark.parametrize(
    ("estimator", "y", "options", "error", "message"),
    [
        (LinearSVC(), Y, {}, TypeError, r"`estimator` must have predict_proba; LinearSVC has none\. Its decision_function .*CalibratedClassifierCV"),
        (LinearRegression(), Y, {}, TypeError, r"LinearRegression has none\. Regressors predict no probabilities\. Pass a classifier"),
        (object(), Y, {}, TypeError, r"object has none\. Pass a classifier with predict_proba"),
        (OneClass(), Y * 0, {}, ValueError, "`estimator` must have two classes; .* If the training rows of a fold had one class only"),
        (MODEL, TEXT, {"pos_label": "maybe"}, ValueError, r"`pos_label` must be one of the classes of LogisticRegression, \['no', 'yes'\]"),
        (THREE, Y, {"pos_label": 1}, ValueError, "`pos_label` cannot be combined with the 3 classes of DummyClassifier"),
        (THREE, Y, {"measure": "quantile_ece"}, ValueError, "`measure` 'quantile_ece' is for two classes, and the estimator has 3. Use 'atb'"),
        (MODEL, np.where(Y == 1, "yes", "nay"), {}, ValueError, r"`y_true` has the label 'nay', which LogisticRegression was not fitted on \(its classes: 'no', 'yes'\)"),
    ],
)  # fmt: skip
def test_refuses_estimators(estimator, y, options, error, message):
    with pytest.raises(error, match=message):
        calibration_scorer(**options)(estimator, X, y)


def test_refuses_shuffled_frames():
    """Reordering one of them, for example by a join, is not noticed by scikit-learn."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    x, y = pandas.DataFrame(X), pandas.Series(TEXT)
    for scorer in (atb_scorer(), *calibration_scoring().values()):
        if "constant" in repr(scorer):  # it has no predictions
            continue
        with pytest.raises(ValueError, match="`X` and `y` have the same index labels in a different order"):
            scorer(MODEL, x[::-1], y)
    other = pandas.Series(TEXT, index=np.arange(len(Y)) + 1000)
    assert atb_scorer()(LogisticRegression().fit(x, y), x, other) == atb_scorer()(MODEL, X, TEXT)


def test_brier_scores():
    scorers = calibration_scoring()
    w = np.random.default_rng(3).uniform(0.2, 3.0, len(Y))
    expected = -brier_score_loss(Y, P, sample_weight=w)
    assert scorers["neg_brier_score"](MODEL, X, TEXT, sample_weight=w) == pytest.approx(expected)
    base = np.average(Y, weights=w)
    constant = scorers["neg_brier_constant"](MODEL, X, TEXT, sample_weight=w)
    assert constant == pytest.approx(-brier_score_loss(Y, np.full(len(Y), base), sample_weight=w))


def test_brier_scores_of_many_classes():
    scorers, y = calibration_scoring(), np.arange(len(X)) % 3
    proba, truth = THREE.predict_proba(X), np.eye(3)[y]
    assert scorers["neg_brier_score"](THREE, X, y) == pytest.approx(-np.mean(np.sum((proba - truth) ** 2, axis=1)))
    constant = -np.mean(np.sum((truth.mean(axis=0) - truth) ** 2, axis=1))
    assert scorers["neg_brier_constant"](THREE, X, y) == pytest.approx(constant)


class Certain:
    classes_ = (0, 1)

    def predict_proba(self, X):
        return np.tile([1.0, 0.0], (len(X), 1))


class Given:
    """Predicts given columns."""

    classes_ = (0, 1)

    def predict_proba(self, X):
        return X


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_log_loss_of_certain_predictions(dtype):
    """scikit-learn clips at both ends, to the precision of the predictions' type."""
    scorer = calibration_scoring("neg_log_loss")["neg_log_loss"]
    p = np.array([1.0, 0.0, 1.0, 0.25], dtype)
    for y in ([0, 0, 1, 1], [1, 0, 1, 0]):
        proba = np.stack([1 - p, p], axis=1)
        assert scorer(Given(), proba, y) == pytest.approx(-log_loss(y, proba), rel=20 * float(np.finfo(dtype).eps))
    assert scorer(Given(), np.stack([1 - p, p], axis=1)[:1], [1]) == pytest.approx(-np.finfo(dtype).eps, rel=0.01)


def test_pvalue_scores():
    scorer = calibration_scoring()["calibration_pvalue"]
    seeds = [seed_of({"y_true": Y[rows], "y_proba": P[rows]}) for rows in (slice(60), slice(60, 120))]
    assert seeds[0] != seeds[1]  # the errors of redraws are independent
    assert seeds[0] == seed_of({"y_true": TEXT[:60], "y_proba": P[:60]})
    expected = tc.calibration_test(Y[:60], P[:60], n_resamples=999, rng=seeds[0]).pvalue
    assert scorer(MODEL, X[:60], TEXT[:60]) == expected
    assert scorer(Certain(), X, Y) == 0.0  # an event of probability 0 happened
    assert scorer(Certain(), X, 0 * Y) == 1.0
    assert repr(scorer) == "<p-value of calibration_test>"


# --- stratified folds -------------------------------------------------------------------------------------------------


def folds_of(cv, x, y):
    return [(x[test], y[test]) for _, test in cv.split(x, y)]


def noticed(cv, x, y):
    history = FoldHistory()
    return [history.notice(*fold) for fold in folds_of(cv, x, y)]


@pytest.mark.parametrize(
    ("sizes", "total"), [([4, 4, 4], 6), ([3, 3, 3, 3], 5), ([5, 5], 10), ([5, 5], 0), ([2] * 5, 4)]
)
def test_chance_of_equal_events_counts_assignments(sizes, total):
    equal = every = 0
    for events in itertools.product(*(range(size + 1) for size in sizes)):
        if sum(events) == total:
            ways = np.prod([comb(size, number) for size, number in zip(sizes, events, strict=True)])
            every, equal = every + ways, equal + ways * (max(events) - min(events) <= 1)
    events = [total // len(sizes) + (k < total % len(sizes)) for k in range(len(sizes))]
    assert chance_of_equal_events(sizes, events) == pytest.approx(equal / every)


@pytest.mark.parametrize(
    "cv",
    [StratifiedKFold(5), StratifiedKFold(5, shuffle=True, random_state=0), StratifiedShuffleSplit(5, random_state=0)],
)
def test_stratified_folds_are_noticed(cv):
    x, y = rows(500)
    assert sum(noticed(cv, x, y)) == 1


def test_periodic_outcomes_are_noticed():
    """Matched pairs in the order of the file: all folds have the same outcomes, and as many events as others."""
    y, x = np.tile([1, 0], 500), np.random.default_rng(0).normal(size=(1000, 1))
    assert sum(noticed(KFold(5), x, y)) == 1
    history = FoldHistory()
    pairs = GroupKFold(5).split(x, y, np.repeat(np.arange(500), 2))
    assert sum(history.notice(x[test], y[test]) for _, test in pairs) == 1


def test_sorted_outcomes_are_noticed():
    """Outcomes alone do not tell such folds from each other."""
    x, y = rows(500)
    assert sum(noticed(StratifiedKFold(5), x, np.sort(y))) == 1
    assert not any(noticed(KFold(5, shuffle=True, random_state=0), x, np.sort(y)))


def test_many_classes_are_noticed():
    x, _ = rows(1500)
    y = np.random.default_rng(0).choice(["a", "b", "c"], 1500, p=[0.5, 0.3, 0.2])
    assert sum(noticed(StratifiedKFold(5), x, y)) == 1
    assert not any(noticed(KFold(5), x, y))


def test_other_folds_are_not_taken_for_stratified():
    """At a false alarm rate of 1%, the documented bound, 4 of 400 data sets are expected to have one."""
    alarms = 0
    for seed in range(400):
        x, y = rows(400, seed)
        alarms += any(noticed(KFold(5, shuffle=True, random_state=seed), x, y))
    assert alarms <= 4
    x, y = rows(100)
    assert not any(noticed(LeaveOneOut(), x, y))
    assert not any(noticed(RepeatedKFold(n_splits=5, n_repeats=20, random_state=0), *rows(400)))


def test_scorer_warns_once_of_stratified_folds():
    x, y = rows(500)
    scorer = atb_scorer()
    message = r"Test folds have nearly the same number of rows of one class \((\d+, ){3,4}.*as stratified folds do.*Pass cv=KFold\(5.*calibrated_refit\(\)"
    with pytest.warns(UserWarning, match=message) as caught:
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=scorer).fit(x, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the line of the search, not one of scikit-learn
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_val_score(LogisticRegression(), x, y, scoring=scorer)
        repeated = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
        cross_val_score(LogisticRegression(), x, y, cv=repeated, scoring=scorer)


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array(["no", "yes"])])
def test_scorer_warns_again_of_another_data_set(labels):
    scorer = atb_scorer()
    for seed, names in ((0, np.array([0, 1])), (1, labels)):
        x, y = rows(700 - 200 * seed, seed)
        with pytest.warns(UserWarning, match="Test folds have nearly the same number of rows of one class"):
            cross_val_score(LogisticRegression(), x, names[y], scoring=scorer)


def test_scorer_does_not_warn_of_the_same_rows_again_and_again():
    """Feature selection and permutation importance score many variants of the same test rows."""
    x, y = rows(500)
    scorer = atb_scorer()
    model = LogisticRegression().fit(x, y)
    permutation_importance(model, x, y, scoring=scorer, n_repeats=5, random_state=0)
    SequentialFeatureSelector(LogisticRegression(), n_features_to_select=2, scoring=scorer, cv=FOLDS).fit(x, y)
