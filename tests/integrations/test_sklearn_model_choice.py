"""`calibrated_refit`: a proper score chooses, calibration only excludes, and a constant is never chosen."""

import copy
import pickle
import warnings

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from scipy import stats  # noqa: E402
from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.dummy import DummyClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.metrics import log_loss  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut, RandomizedSearchCV  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402

import truthcal as tc  # noqa: E402
from truthcal.sklearn import calibrated_refit, calibration_scoring  # noqa: E402
from truthcal.sklearn.scorers import seed_of  # noqa: E402

FOLDS = KFold(5, shuffle=True, random_state=0)
STRENGTHS = (1e-5, 1e-3, 1e-1, 1.0, 10.0)  # the first gives nearly constant predictions


def results(brier, pvalues, constant=0.25, n_folds=3, **more):
    """`cv_results_` of a search: the Brier score and the p-value of each candidate, the same in all folds."""
    columns = {
        "neg_brier_score": -np.array(brier),
        "calibration_pvalue": np.array(pvalues),
        "neg_brier_constant": np.full(len(brier), -constant),
        **{name: np.array(values) for name, values in more.items()},
    }
    return {f"split{k}_test_{name}": values for name, values in columns.items() for k in range(n_folds)}


@pytest.mark.parametrize(
    ("brier", "pvalues", "chosen"),
    [
        ([0.2, 0.1, 0.15], [0.5, 0.5, 0.5], 1),
        ([0.2, 0.1, 0.15], [0.5, 1e-9, 0.5], 2),  # the best one is shown to be miscalibrated
        ([0.2, 0.1, 0.15], [0.5, 0.2, 0.5], 1),  # it is not
        ([0.2, 0.1, np.nan], [0.5, 1e-9, 0.5], 0),  # scoring failed
    ],
)  # fmt: skip
def test_best_score_among_candidates_not_shown_to_be_miscalibrated(brier, pvalues, chosen):
    assert calibrated_refit(min_skill=0.0)(results(brier, pvalues)) == chosen


def test_log_loss_may_choose():
    found = results([0.1, 0.11], [0.5, 0.5], neg_log_loss=[-0.5, -0.4])
    assert calibrated_refit("neg_log_loss")(found) == 1


def test_pvalues_are_combined_by_fisher_and_adjusted_by_holm():
    by_fold = np.array([[0.03, 0.4, 0.9], [0.01, 0.02, 0.5], [0.0, 0.5, 0.5]])
    found = results([0.1, 0.1, 0.1], [0.5] * 3)
    found |= {f"split{k}_test_calibration_pvalue": by_fold[:, k] for k in range(3)}
    pvalues = calibrated_refit().pvalues(found)
    assert pvalues == pytest.approx([*(stats.combine_pvalues(row).pvalue for row in by_fold[:2]), 0.0])
    second = pvalues[1]
    found |= {f"split{k}_test_neg_brier_score": np.array([-0.11, -0.1, -0.1]) for k in range(3)}
    # Holm: the smallest p-value is 0, and the second of three is multiplied by 2
    assert calibrated_refit(alpha=2.0 * second * 0.999)(found) == 1
    assert calibrated_refit(alpha=2.0 * second * 1.001)(found) == 0


def test_a_constant_is_not_chosen_because_all_useful_candidates_are_miscalibrated():
    found = results([0.15, 0.16, 0.249], [1e-9, 1e-9, 0.9])
    message = "All candidates with at least 50% of the largest skill are shown to be miscalibrated; chose the best neg_brier_score: candidate 0"
    with pytest.warns(UserWarning, match=message):
        assert calibrated_refit()(found) == 0
    assert calibrated_refit(min_skill=0.0)(found) == 2
    # skill 0.06 / 0.10 of the best
    assert calibrated_refit(min_skill=0.6)(results([0.15, 0.19], [1e-9, 0.9], n_folds=2)) == 1
    with pytest.warns(UserWarning, match="with at least 61% of the largest skill"):
        assert calibrated_refit(min_skill=0.61)(results([0.15, 0.19], [1e-9, 0.9], n_folds=2)) == 0


def test_warns_if_all_are_miscalibrated():
    message = r"All candidates are shown to be miscalibrated; .* candidate 1\. Recalibrate it: truthcal\.sklearn\.RecalibratedClassifier"
    with pytest.warns(UserWarning, match=message):
        assert calibrated_refit()(results([0.2, 0.1], [1e-9, 1e-9])) == 1
    with pytest.warns(UserWarning, match=r"chose the best neg_brier_score: \{'C': 2\}\. Recalibrate it"):
        assert calibrated_refit()(results([0.2, 0.1], [1e-9, 1e-9]) | {"params": [{"C": 1}, {"C": 2}]}) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrated_refit("roc_auc"), "`score` must be one of 'neg_brier_score', 'neg_log_loss'; got 'roc_auc'. Other scores"),
        (lambda: calibration_scoring("accuracy"), "`score` must be one of .*; got 'accuracy'"),
        (lambda: calibrated_refit(alpha=5), "`alpha` must lie strictly between 0 and 1"),
        (lambda: calibrated_refit(min_skill=2), "`min_skill` must be at most 1, the skill of the best candidate; got 2"),
        (lambda: calibrated_refit()({"split0_test_score": [0.1]}), r"`cv_results` has no scores 'neg_brier_score'\. Pass scoring=calibration_scoring\(\)"),
        (lambda: calibrated_refit().pvalues({"split0_test_score": [0.1]}), r"has no scores 'calibration_pvalue'\. Pass scoring=calibration_scoring\(\) to"),
        (lambda: calibrated_refit("neg_log_loss")(results([0.1], [0.5])), r"has no scores 'neg_log_loss'\. Pass scoring=calibration_scoring\('neg_log_loss'\)"),
        (lambda: calibrated_refit()(results([np.nan], [0.5])), "`cv_results` has no candidate with finite scores in all folds. Pass error_score='raise'"),
    ],
)  # fmt: skip
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_over_20_data_sets_the_constant_is_never_chosen():
    """The searches of benchmarks/stratified.py: folds are stratified, the default for classifiers."""
    by_atb = by_refit = stratified = 0
    for seed in range(20):
        x, y = make_classification(400, 8, n_informative=4, class_sep=0.6, flip_y=0.1, random_state=seed)
        search = GridSearchCV(
            LogisticRegression(), {"C": STRENGTHS}, scoring=calibration_scoring(), refit=calibrated_refit()
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(x, y)
        stratified += sum("same number of rows of one class" in str(warning.message) for warning in caught)
        by_atb += search.cv_results_["mean_test_neg_atb"].argmax() == 0
        by_refit += search.best_index_ == 0
    assert (by_atb, by_refit, stratified) == (20, 0, 20)


def test_other_searches_and_labels():
    x, y = make_classification(400, 8, flip_y=0.2, random_state=0)
    text = np.where(y == 1, "yes", "no")
    scoring = calibration_scoring("neg_log_loss") | {"auc": "roc_auc"}
    options = {"scoring": scoring, "refit": calibrated_refit("neg_log_loss"), "cv": FOLDS}
    search = RandomizedSearchCV(
        LogisticRegression(), {"C": [1e-5, 0.1, 1.0]}, n_iter=2, random_state=1, n_jobs=2, **options
    ).fit(x, text)
    assert search.best_index_ == search.cv_results_["mean_test_neg_log_loss"].argmax()
    assert search.score(x, text) == -log_loss(y, search.predict_proba(x))  # the score that chooses
    many = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": [1e-5, 1.0]}, scoring=calibration_scoring(), refit=calibrated_refit(), cv=FOLDS
    ).fit(x, (x[:, 0] > 0).astype(int) + (x[:, 1] > 0))  # fmt: skip
    assert many.best_params_ == {"C": 1.0}


def test_miscalibrated_model_loses_against_an_honest_one():
    """Copies of a feature make naive Bayes overconfident; its Brier score is not better than that of a constant."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1))
    y = rng.random(600) < 1 / (1 + np.exp(-x[:, 0]))
    copies = np.repeat(x, 10, axis=1)
    search = GridSearchCV(
        Pipeline([("model", GaussianNB())]),
        {"model": [GaussianNB(), DummyClassifier(), LogisticRegression()]},
        scoring=calibration_scoring(),
        refit=calibrated_refit(),
        cv=FOLDS,
    ).fit(copies, y)
    pvalues = calibrated_refit().pvalues(search.cv_results_)
    assert pvalues[0] < 1e-6
    assert min(pvalues[1:]) > 0.001
    assert search.best_index_ == 2


def test_refit_is_copied_and_pickled():
    refit = calibrated_refit(alpha=0.01)
    for twin in (copy.deepcopy(refit), pickle.loads(pickle.dumps(refit))):
        assert twin == refit
        assert repr(twin) == "calibrated_refit('neg_brier_score', alpha=0.01, min_skill=0.5)"
    assert refit != calibrated_refit(alpha=0.05)


def test_features_without_information_are_no_error():
    """No candidate is better than a constant, so the best score is chosen among all of them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), (rng.random(400) < 0.05).astype(int)
    folds = KFold(5, shuffle=True, random_state=0)
    grid = {"C": [1e-3, 1.0, 100.0]}
    search = GridSearchCV(LogisticRegression(), grid, cv=folds, scoring=calibration_scoring(), refit=calibrated_refit())
    with pytest.warns(UserWarning, match="No candidate is better than a constant in these test folds; chose the best"):
        search.fit(X, y)
    assert search.best_index_ == search.cv_results_["mean_test_neg_brier_score"].argmax()


def test_without_skill_the_proper_score_chooses_and_not_the_calibration_test():
    """With few rows, a constant may be calibrated and the better model shown to be miscalibrated."""
    table = {f"split{k}_test_neg_brier_constant": np.array([-0.2, -0.2]) for k in range(2)}
    table |= {f"split{k}_test_neg_brier_score": np.array([-0.24, -0.28]) for k in range(2)}
    table |= {f"split{k}_test_calibration_pvalue": np.array([1e-6, 0.8]) for k in range(2)}
    with pytest.warns(UserWarning, match="No candidate is better than a constant"):
        assert calibrated_refit()(table) == 0


def test_test_folds_of_one_row_are_refused():
    X, y = make_classification(40, random_state=0)
    search = GridSearchCV(
        GaussianNB(),
        {"var_smoothing": [1e-9]},
        cv=LeaveOneOut(),
        scoring=calibration_scoring(),
        refit=calibrated_refit(),
    )
    with pytest.raises(ValueError, match=r"test folds with one class only.*Use fewer and larger test folds"):
        search.fit(X, y)


def test_weights_for_all_scorers():
    X, y = make_classification(400, random_state=0)
    w, labels = np.random.default_rng(0).uniform(0.5, 2.0, 400), np.array(["no", "yes"])[y]
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        scoring = calibration_scoring("neg_log_loss", sample_weight=True)
        search = GridSearchCV(model, {"C": [1.0]}, cv=FOLDS, scoring=scoring, refit=calibrated_refit("neg_log_loss"))
        search.fit(X, labels, sample_weight=w)
    train, test = next(FOLDS.split(X))
    p = LogisticRegression().fit(X[train], labels[train], w[train]).predict_proba(X[test])
    expected = -log_loss(labels[test], p, sample_weight=w[test])
    assert search.cv_results_["split0_test_neg_log_loss"][0] == pytest.approx(expected)
    expected = -tc.atb(labels[test], p[:, 1], sample_weight=w[test], pos_label="yes")
    assert search.cv_results_["split0_test_neg_atb"][0] == pytest.approx(expected)


def test_log_loss_of_folds_without_a_class():
    """Three events in five folds; and the number of scikit-learn where it has one."""
    X, y = make_classification(600, n_informative=4, random_state=0)
    rare = np.where(np.isin(np.arange(600), [1, 200, 400]), 1, 0)
    scoring = calibration_scoring("neg_log_loss")
    model = LogisticRegression().fit(X, rare)
    assert np.isfinite(scoring["neg_log_loss"](model, X[:100], np.zeros(100, int)))
    for labels in (y, np.array(["a", "b", "c"])[np.arange(600) % 3]):
        model = LogisticRegression().fit(X, labels)
        w = np.random.default_rng(0).uniform(0.5, 2.0, 600)
        expected = -log_loss(labels, model.predict_proba(X), sample_weight=w)
        assert scoring["neg_log_loss"](model, X, labels, sample_weight=w) == pytest.approx(expected)


def test_the_rule_itself_and_a_search_are_refused():
    with pytest.raises(TypeError, match=r"`refit` must be calibrated_refit\(\), with parentheses; got the function"):
        calibrated_refit(results([0.1], [0.5]))
    with pytest.raises(TypeError, match=r"`cv_results` must be `cv_results_` of a search; got 3"):
        calibrated_refit().pvalues(3)


class TrueProbabilities(ClassifierMixin, BaseEstimator):
    """Predicts its first feature: calibrated if this is the true probability."""

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = X[:, 0] ** self.power
        return np.column_stack([1.0 - p, p])


def test_groups_reach_the_test_by_metadata_routing():
    """Rows of a group have one outcome: taken as independent, a calibrated model is called miscalibrated."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(300), 10)
    X = np.repeat(rng.random((300, 1)), 10, axis=0)
    y = np.repeat(rng.random(300), 10) < X[:, 0]
    options = {"cv": GroupKFold(3), "scoring": calibration_scoring(), "refit": calibrated_refit()}
    search = GridSearchCV(TrueProbabilities(), {"power": [1.0, 2.0]}, **options)
    rule = calibrated_refit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # all candidates seem to be miscalibrated
        alone = rule.pvalues(search.fit(X, y, groups=groups).cv_results_)
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, y, groups=groups)
    by_groups = rule.pvalues(search.cv_results_)
    assert alone[0] < 1e-6
    assert by_groups[0] > 0.05
    assert by_groups[1] < 1e-3
    assert search.best_params_ == {"power": 1.0}
    tests = []
    for _, test in GroupKFold(3).split(X, y, groups):
        seed = seed_of({"y_true": y[test], "y_proba": X[test, 0]})
        tests.append(tc.calibration_test(y[test], X[test, 0], groups=groups[test], n_resamples=999, rng=seed).pvalue)
    assert by_groups[0] == pytest.approx(stats.combine_pvalues(tests).pvalue)
