"""A classifier whose probabilities are recalibrated by `recalibrate`."""

import warnings
from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_consistent_length, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from truthcal.core.checks import invalid
from truthcal.core.estimators import PredictedClasses
from truthcal.recalibration.recalibrate import recalibrate
from truthcal.sklearn.assess_estimator import predict_out_of_fold, splits_of
from truthcal.sklearn.estimator_rows import refuse_shuffled, refuse_unknown_labels, refuse_without_proba

_Array = NDArray[np.float64]


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes whose probabilities are recalibrated, if they need it.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        Logistic regression by default.
    method : str, default "auto"
        As for `truthcal.recalibrate`: "auto" changes nothing unless miscalibration is shown.
    cv : int, splitter, iterable or "prefit", default 5
        How to predict rows that a model was not fitted to, as for `assess_estimator`; the recalibration is fitted to
        these predictions. "prefit": `estimator` is fitted already, and `fit` gets other rows than those it was fitted
        to.
    random_state : int, RandomState instance or None, default 0
        Seed of the random splits of `recalibrate`.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted to all rows.
    recalibration_ : Recalibration
        The recalibration, with scores before and after. Print it.
    classes_ : array of shape (2,)
        The labels; the second one is the event.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from truthcal.sklearn import RecalibratedClassifier
    >>> X, y = make_classification(2000, n_informative=4, n_redundant=12, random_state=0)
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X, y)
    >>> print(model.recalibration_.assessment.kind, model.recalibration_.method)
    overconfident isotonic
    """

    def __init__(self, estimator: Any = None, *, method: str = "auto", cv: Any = 5, random_state: Any = 0) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier, and the recalibration of its predictions for rows that it was not fitted to.

        Parameters
        ----------
        X, y : array-like
            Features and labels of two classes.
        groups : array-like of shape (n,), optional
            Which rows belong together. No group is split.
        sample_weight : array-like of shape (n,), optional
            Weights of rows, for the recalibration, and for the classifier if its `fit` takes them. With metadata
            routing, the classifier gets them if it requests them.

        Returns
        -------
        RecalibratedClassifier
            Itself, fitted.
        """
        check_classification_targets(y)
        refuse_shuffled(X, y)
        X, labels = indexable(X, column_or_1d(y, warn=True))
        estimator = self._classifier()
        refuse_without_proba(estimator)
        weight: dict[str, Any] = {} if sample_weight is None else {"sample_weight": column_or_1d(sample_weight)}
        check_consistent_length(X, labels, *weight.values())
        _refuse_other_than_two(labels, weight.get("sample_weight"))
        if isinstance(self.cv, str) and self.cv == "prefit":
            predicted, self.estimator_ = PredictedClasses.of(estimator, X, ""), estimator
        else:
            splits = splits_of(self.cv, X, labels, groups)
            used = weight if _takes_weights(estimator, weight) else {}
            predicted = predict_out_of_fold(estimator, X, labels, labels, splits, used or None, None)
            self.estimator_ = clone(estimator).fit(X, labels, **used)
        refuse_unknown_labels(predicted, labels)
        self.classes_ = np.asarray(self.estimator_.classes_)
        column, event = predicted.event(self.classes_[1], "")
        seed = self.random_state
        seed = int(seed.randint(2**31)) if isinstance(seed, np.random.RandomState) else seed
        options: dict[str, Any] = {"method": self.method, "groups": groups, "rng": seed, "hard": True}
        self.recalibration_ = recalibrate(labels == event, column, **options, **weight)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _classifier(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def predict_proba(self, X: Any) -> _Array:
        """Return the recalibrated probabilities of both classes, in the order of `classes_`."""
        check_is_fitted(self)
        event = self.recalibration_(np.asarray(self.estimator_.predict_proba(X))[:, 1])
        return np.column_stack([1.0 - event, event])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable class of each row."""
        check_is_fitted(self)
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def _more_tags(self) -> dict[str, bool]:  # of scikit-learn 1.5; newer versions call __sklearn_tags__
        return {"binary_only": True}

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags  # scikit-learn 1.5 has no such function

        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = get_tags(self._classifier()).input_tags.sparse
        return tags


def _takes_weights(estimator: Any, weight: dict[str, Any]) -> bool:
    """Whether the classifier is fitted with the weights; warn if it cannot be."""
    if not weight:
        return False
    if sklearn.get_config()["enable_metadata_routing"]:
        requested = estimator.get_metadata_routing().fit.requests.get("sample_weight")
        return requested is True
    if has_fit_parameter(estimator, "sample_weight"):
        return True
    name = type(estimator).__name__
    warnings.warn(f"{name}.fit takes no sample_weight: it is used for the recalibration only.", UserWarning, 3)
    return False


def _refuse_other_than_two(labels: NDArray[Any], weight: NDArray[Any] | None) -> None:
    """Reject labels of one class, or of more than two, in rows of positive weight."""
    if weight is not None and not np.any(weight > 0):
        raise invalid("sample_weight", "is zero or negative in all rows; each class needs a positive weight.")
    classes = np.unique(labels if weight is None else labels[weight > 0])
    if len(classes) == 2:
        return
    # The first sentence is that of scikit-learn, whose common tests look for it.
    rule = f"Only binary classification is supported. The type of the target is {len(classes)} class labels."
    cure = "recalibrate one class against the rest" if len(classes) > 2 else "collect rows of the other class"
    raise invalid("y", f"needs two classes: {cure}.", subject=f"{rule} `y`")
