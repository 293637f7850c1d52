"""`RecalibratedClassifier`: scikit-learn's common tests, and the numbers of `recalibrate`."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.metrics
from sklearn.datasets import make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import truthcal as tc
from truthcal.sklearn import RecalibratedClassifier, atb_scorer

X, Y = make_classification(1500, n_informative=4, n_redundant=12, random_state=0)


@pytest.mark.filterwarnings("ignore")
def test_common_checks_of_scikit_learn():
    """Tiny data sets: two folds, and no choice of the method."""
    quiet = {"on_skip": None} if "on_skip" in inspect.signature(check_estimator).parameters else {}  # 1.6 or newer
    check_estimator(RecalibratedClassifier(method="platt", cv=2), **quiet)


def test_equals_recalibrate_of_out_of_fold_predictions():
    model = RecalibratedClassifier(GaussianNB()).fit(X, Y)
    folds = KFold(5, shuffle=True, random_state=0)
    p = cross_val_predict(GaussianNB(), X, Y, cv=folds, method="predict_proba")[:, 1]
    fix = tc.recalibrate(Y, p)
    assert fix.changes
    assert model.recalibration_ == fix
    whole = GaussianNB().fit(X, Y).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], fix(whole))
    np.testing.assert_array_equal(model.predict(X), (fix(whole) > 0.5).astype(int))


def test_labels_may_be_words():
    words = np.array(["no", "yes"])[Y]
    model = RecalibratedClassifier(GaussianNB(), method="beta").fit(X, words)
    numbers = RecalibratedClassifier(GaussianNB(), method="beta").fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), numbers.predict_proba(X))
    assert set(model.predict(X)) == {"no", "yes"}


def test_fitted_estimators_are_not_fitted_again():
    fitted = GaussianNB().fit(X[:500], Y[:500])
    model = RecalibratedClassifier(fitted, cv="prefit").fit(X[500:], Y[500:])
    assert model.estimator_ is fitted
    assert model.recalibration_ == tc.recalibrate(Y[500:], fitted.predict_proba(X[500:])[:, 1])


def test_groups_and_weights_are_passed_on():
    groups, weight = np.arange(1500) // 10, np.random.default_rng(0).exponential(size=1500)
    model = RecalibratedClassifier(GaussianNB()).fit(X, Y, groups=groups, sample_weight=weight)
    assert model.recalibration_.assessment.n_groups == 150
    np.testing.assert_array_equal(model.estimator_.theta_, GaussianNB().fit(X, Y, sample_weight=weight).theta_)


def test_works_in_pipelines_and_searches():
    pipeline = make_pipeline(StandardScaler(), RecalibratedClassifier(LogisticRegression(), method="platt", cv=3))
    grid = {"recalibratedclassifier__estimator__C": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring="neg_brier_score", cv=KFold(3)).fit(X[:400], Y[:400])
    scaled = StandardScaler().fit(X[:400]).transform(X[:405])
    base = LogisticRegression(C=search.best_params_["recalibratedclassifier__estimator__C"])
    alone = RecalibratedClassifier(base, method="platt", cv=3).fit(scaled[:400], Y[:400])
    np.testing.assert_allclose(search.predict_proba(X[400:405]), alone.predict_proba(scaled[400:]))


FOUR, PREFIT = np.tile([0.0, 1.0, 1.0, 1.0], 375), GaussianNB().fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "y", "options", "message"),
    [
        (GaussianNB(), np.arange(1500) % 3, {}, r"Only binary classification is supported\. `y` has 3 classes \(0, 1, 2\)\. Recalibrate one class against the rest"),
        (GaussianNB(), np.arange(1500) % 3, {"sample_weight": np.arange(1500) % 3}, r"`y` has 3 classes \(0, 1, 2\)\..*, or drop the rows of the others"),
        (GaussianNB(), np.full(1500, "no"), {}, r"`y` has rows of one class only, 'no'\. Collect rows of the other class"),
        (GaussianNB(), np.arange(1500) % 2, {"sample_weight": np.arange(1500) % 2}, r"`y` has rows of one class only with a positive weight, 1\. Collect"),
        (GaussianNB(), np.where(np.arange(1500) == 7, np.nan, FOUR), {}, r"`y` has a missing value \(nan or None\) at row 7 \(1 of 1500 rows\)\. Drop those rows"),
        (GaussianNB(), Y, {"groups": np.where(np.arange(1500) == 7, np.nan, 1.0)}, r"`groups` has a missing value \(nan\) at row 7 .* Every row needs a group"),
        (LinearSVC(), Y, {}, r"`estimator` must have predict_proba; LinearSVC has none\. .*wrap the estimator in sklearn\.calibration\.CalibratedClassifierCV"),
        (pd.DataFrame(X[::-1], index=range(1499, -1, -1)), pd.Series(Y), {}, r"`X` and `y` have the same index labels in a different order\. Align them first"),
    ],
)  # fmt: skip
def test_wrong_input(estimator, y, options, message):
    features, estimator = (estimator, None) if isinstance(estimator, pd.DataFrame) else (X, estimator)
    with pytest.raises((ValueError, TypeError), match=message):
        RecalibratedClassifier(estimator).fit(features, y, **options)


def test_arguments_of_fit_need_a_classifier_that_is_fitted():
    with pytest.raises(ValueError, match=r'`classes` is an argument of `fit`, but cv="prefit" fits nothing\. Omit it'):
        RecalibratedClassifier(PREFIT, cv="prefit").fit(X, Y, classes=[0, 1])


def test_indexes_without_a_common_label_are_no_error():
    features, labels = pd.DataFrame(X, index=np.arange(1500) + 10_000), pd.Series(Y)
    model = RecalibratedClassifier(GaussianNB()).fit(features, labels)
    same = RecalibratedClassifier(GaussianNB()).fit(X, Y)  # up to rounding: columns of a frame are added up differently
    np.testing.assert_allclose(model.predict_proba(features), same.predict_proba(X), rtol=1e-6)


def test_weights_are_the_third_argument():
    weight = np.random.default_rng(0).exponential(size=1500)
    model = RecalibratedClassifier(GaussianNB(), n_jobs=2).fit(X, Y, weight)
    assert model.recalibration_ == RecalibratedClassifier(GaussianNB()).fit(X, Y, sample_weight=weight).recalibration_


def test_arguments_of_fit_reach_the_classifier():
    class Remembers(GaussianNB):
        def fit(self, X, y, sample_weight=None, note=None):
            self.note_, self.weight_ = note, sample_weight
            return super().fit(X, y, sample_weight)

    model = RecalibratedClassifier(Remembers(), method="platt").fit(X, Y, note="as given")
    assert (model.estimator_.note_, model.estimator_.weight_) == ("as given", None)


# --- metadata routing -------------------------------------------------------------------------------------------------

WEIGHT = np.random.default_rng(0).exponential(size=1500)


def weighted():
    return GaussianNB().set_fit_request(sample_weight=True)


def test_weights_reach_classifiers_in_a_pipeline_and_a_search():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), weighted())
        search = GridSearchCV(weighted(), {"var_smoothing": [1e-9]}, scoring="accuracy", cv=KFold(2))
        search.scoring = sklearn.metrics.get_scorer("accuracy").set_score_request(sample_weight=False)
        for base in (pipeline, search):
            model = RecalibratedClassifier(base, method="platt").fit(X, Y, sample_weight=WEIGHT)
            alone = base.fit(X, Y, sample_weight=WEIGHT)
            np.testing.assert_array_equal(model.estimator_.predict_proba(X), alone.predict_proba(X))
    x = StandardScaler().fit_transform(X)
    expected = GaussianNB().fit(x, Y, sample_weight=WEIGHT).predict_proba(x)
    np.testing.assert_allclose(pipeline.predict_proba(X), expected)


def test_weights_reach_it_in_a_pipeline_and_a_search():
    with sklearn.config_context(enable_metadata_routing=True):
        model = RecalibratedClassifier(weighted(), method="platt").set_fit_request(sample_weight=True, groups=True)
        groups = np.arange(1500) // 10
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, Y, sample_weight=WEIGHT, groups=groups)
        x = StandardScaler().fit_transform(X)
        alone = model.fit(x, Y, WEIGHT, groups=groups)
        assert pipeline[-1].recalibration_ == alone.recalibration_
        search = GridSearchCV(model, {"method": ["platt"]}, scoring=atb_scorer().set_score_request(sample_weight=False))
        search.set_params(cv=GroupKFold(3)).fit(x, Y, sample_weight=WEIGHT, groups=groups)
        assert search.best_estimator_.recalibration_ == alone.recalibration_


def test_unset_requests_are_an_error():
    message = (
        r"\[sample_weight\] are passed but are not explicitly set as requested or not requested for GaussianNB\.fit"
    )
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match=message):
            RecalibratedClassifier(GaussianNB()).fit(X, Y, sample_weight=WEIGHT)
        with pytest.raises(TypeError, match=r"unexpected argument.*other"):
            RecalibratedClassifier(GaussianNB()).fit(X, Y, other=WEIGHT)


def test_requests_under_another_name():
    with sklearn.config_context(enable_metadata_routing=True):
        base = GaussianNB().set_fit_request(sample_weight="importance")
        model = RecalibratedClassifier(base, method="platt").fit(X, Y, importance=WEIGHT)
        alone = RecalibratedClassifier(weighted(), method="platt").fit(X, Y, sample_weight=WEIGHT)
        np.testing.assert_array_equal(model.estimator_.theta_, alone.estimator_.theta_)
        assert model.recalibration_.map != alone.recalibration_.map  # the recalibration has no weights
        default = RecalibratedClassifier(method="platt").fit(X, Y, WEIGHT).estimator_
        np.testing.assert_array_equal(default.coef_, LogisticRegression().fit(X, Y, WEIGHT).coef_)
        prefit = RecalibratedClassifier(PREFIT, cv="prefit", method="platt").fit(X, Y, WEIGHT).recalibration_
        assert prefit.map == tc.recalibrate(Y, PREFIT.predict_proba(X)[:, 1], method="platt", sample_weight=WEIGHT).map


def test_weights_of_zero():
    with pytest.raises(
        ValueError, match=r"`sample_weight` is zero or negative in all rows; each class needs a positive"
    ):
        RecalibratedClassifier().fit(X, Y, sample_weight=np.zeros(1500))


def test_weights_only_for_the_recalibration():
    """A classifier that takes no weights, or does not request them."""
    weight = np.random.default_rng(0).exponential(size=1500)
    with pytest.warns(UserWarning, match=r"KNeighborsClassifier\.fit takes no sample_weight: it is used for the recal"):
        model = RecalibratedClassifier(KNeighborsClassifier(), method="platt").fit(X, Y, sample_weight=weight)
    plain = RecalibratedClassifier(KNeighborsClassifier(), method="platt").fit(X, Y)
    assert model.recalibration_.map != plain.recalibration_.map
    with sklearn.config_context(enable_metadata_routing=True):
        for request in (False, True):
            base = GaussianNB().set_fit_request(sample_weight=request)
            fitted = RecalibratedClassifier(base, method="platt").fit(X, Y, sample_weight=weight)
            expected = GaussianNB().fit(X, Y, sample_weight=weight if request else None)
            np.testing.assert_array_equal(fitted.estimator_.theta_, expected.theta_)


def test_fitted_estimators_must_know_the_labels():
    fitted = GaussianNB().fit(X[:500], Y[:500])
    with pytest.raises(ValueError, match=r"`y_true` has the label 2, which GaussianNB was not fitted on"):
        RecalibratedClassifier(fitted, cv="prefit").fit(X[500:], Y[500:] + 1)


def test_fitting_again_forgets_the_names_of_features():
    model = RecalibratedClassifier(GaussianNB(), method="platt")
    model.fit(pd.DataFrame(X[:, :3], columns=list("abc")), Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_certain_predictions_with_weights():
    """Leaves of a tree are pure: predictions are 0 or 1."""
    weight = np.random.default_rng(0).exponential(size=300)
    model = RecalibratedClassifier(DecisionTreeClassifier(random_state=0), random_state=np.random.RandomState(1))
    model.fit(X[:300], Y[:300], sample_weight=weight)
    p = model.predict_proba(X[300:])[:, 1]
    raw = model.estimator_.predict_proba(X[300:])[:, 1]
    assert set(raw) == {0.0, 1.0}
    np.testing.assert_array_equal(p, model.recalibration_(raw))
    seed = int(np.random.RandomState(1).randint(2**31))
    tree = DecisionTreeClassifier(random_state=0)
    q = np.empty(300)
    for rows, test in KFold(5, shuffle=True, random_state=0).split(X[:300]):
        q[test] = tree.fit(X[rows], Y[rows], sample_weight=weight[rows]).predict_proba(X[test])[:, 1]
    assert model.recalibration_ == tc.recalibrate(Y[:300], q, sample_weight=weight, rng=seed, hard=True)
    # Pure leaves are wrong in about every fifth row, and the map says so.
    shares = [np.average(Y[:300][q == value], weights=weight[q == value]) for value in (0.0, 1.0)]
    assert sorted(set(p)) == pytest.approx(shares, abs=0.05)
