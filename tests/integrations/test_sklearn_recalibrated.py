"""`RecalibratedClassifier`: scikit-learn's common tests, and the numbers of `recalibrate`."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import truthcal as tc
from truthcal.sklearn import RecalibratedClassifier

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
    assert search.predict_proba(X[:5]).shape == (5, 2)


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [
        (
            GaussianNB(),
            np.arange(1500) % 3,
            r"Only binary classification is supported\..* needs two classes: recalibrate one",
        ),
        (LinearSVC(), Y, r"predict_proba"),
    ],
)
def test_wrong_input(estimator, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        RecalibratedClassifier(estimator).fit(X, y)


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
    assert model.predict_proba(X[300:]).min() > 0
