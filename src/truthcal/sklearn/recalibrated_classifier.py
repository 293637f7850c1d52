"""A classifier whose probabilities are recalibrated by `recalibrate`."""

from typing import Any, Self

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_consistent_length, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from truthcal.core.checks import invalid, refuse_missing_values
from truthcal.core.estimators import PredictedClasses
from truthcal.core.group_column import check_group_column, missing_values
from truthcal.core.params import list_shown
from truthcal.recalibration.recalibrate import recalibrate
from truthcal.sklearn.assess_estimator import predict_out_of_fold, splits_of
from truthcal.sklearn.estimator_rows import refuse_shuffled, refuse_unknown_labels, refuse_without_proba
from truthcal.sklearn.misuse import warn_caller

_Array = NDArray[np.float64]


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes whose probabilities are recalibrated, if they need it.

    It is a router of metadata like `CalibratedClassifierCV`: with ``sklearn.set_config(enable_metadata_routing=True)``
    the classifier gets the weights that it requests, and an unset request is an error.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, optional
        Logistic regression by default.
    method : str, default "auto"
        As for `truthcal.recalibrate`: "auto" changes nothing unless miscalibration is shown.
    cv : int, splitter, iterable or "prefit", optional
        How to predict rows that a model was not fitted to, as for `assess_estimator`: by five shuffled folds by
        default. The recalibration is fitted to these predictions. "prefit": `estimator` is fitted already, and `fit`
        gets other rows than those it was fitted to.
    n_jobs : int, optional
        Number of folds that are fitted at the same time, as in scikit-learn.
    random_state : int, RandomState instance or None, default 0
        Seed of the random splits of `recalibrate`. As everywhere in truthcal, the same rows give the same result by
        default; None draws other splits each time.

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

    def __init__(
        self, estimator: Any = None, *, method: str = "auto", cv: Any = None, n_jobs: Any = None, random_state: Any = 0
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **params: Any) -> Self:
        """Fit the classifier, and the recalibration of its predictions for rows that it was not fitted to.

        Parameters
        ----------
        X, y : array-like
            Features and labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights of rows, for the recalibration, and for the classifier if its `fit` takes them. With metadata
            routing, the classifier gets them if it requests them.
        groups : array-like of shape (n,), optional
            Which rows belong together. No group is split.
        **params
            Other arguments of `fit` of the classifier; with metadata routing, those that it requests.

        Returns
        -------
        RecalibratedClassifier
            Itself, fitted.
        """
        refuse_shuffled(X, y)
        X, labels = indexable(X, _check_labels(y))
        weight = None if sample_weight is None else column_or_1d(sample_weight)
        check_consistent_length(X, labels, weight)
        _refuse_other_than_two(labels, weight)
        if groups is not None:
            groups = check_group_column(groups, y if getattr(y, "ndim", 0) == 1 else labels, "y")
        predicted = self._fit_classifier(X, labels, weight, groups, params)
        refuse_unknown_labels(predicted, labels)
        self.classes_ = np.asarray(self.estimator_.classes_)
        column, event = predicted.event(self.classes_[1], "")
        seed = self.random_state
        seed = int(seed.randint(2**31)) if isinstance(seed, np.random.RandomState) else seed
        options: dict[str, Any] = {"method": self.method, "groups": groups, "rng": seed, "hard": True}
        self.recalibration_ = recalibrate(labels == event, column, sample_weight=weight, **options)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _fit_classifier(
        self, X: Any, labels: NDArray[Any], weight: Any, groups: Any, params: dict[str, Any]
    ) -> PredictedClasses:
        """Fit the classifier to all rows; return predictions of models that were not fitted to the predicted rows."""
        estimator = self._classifier()
        refuse_without_proba(estimator)
        if self._is_prefit():
            if params:
                raise invalid(next(iter(params)), 'is an argument of `fit`, but cv="prefit" fits nothing. Omit it.')
            self.estimator_ = estimator
            return PredictedClasses.of(estimator, X, "")
        splits = splits_of(self.cv, X, labels, groups)
        of_folds, of_all = self._fit_arguments(estimator, weight, groups, params)
        predicted = predict_out_of_fold(estimator, X, labels, labels, splits, of_folds or None, self.n_jobs)
        self.estimator_ = clone(estimator).fit(X, labels, **of_all)
        return predicted

    def _fit_arguments(
        self, estimator: Any, weight: Any, groups: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments of `fit` by the names under which they are passed, and by those that `fit` has.

        These differ if the classifier requests metadata under another name. `cross_validate` routes the former itself.
        """
        weights = {} if weight is None else {"sample_weight": weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            given = params | weights | ({} if groups is None else {"groups": groups})
            routed = process_routing(self, "fit", **given)["estimator"]["fit"]
            requested = get_routing_for_object(estimator).consumes("fit", given)
            return {name: given[name] for name in requested}, dict(routed)
        if weights and not has_fit_parameter(estimator, "sample_weight"):
            name = type(estimator).__name__
            warn_caller(f"{name}.fit takes no sample_weight: it is used for the recalibration only.")
            weights = {}
        return params | weights, params | weights

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata, such as weights, is passed on to the classifier and the splitter."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        if not self._is_prefit():
            to_fit = MethodMapping().add(caller="fit", callee="fit")
            router = router.add(estimator=self._classifier(), method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _classifier(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        routing = sklearn.get_config()["enable_metadata_routing"]
        return LogisticRegression().set_fit_request(sample_weight=True) if routing else LogisticRegression()

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


def _check_labels(y: Any) -> NDArray[Any]:
    """Check that outcomes are labels of classes, none of them missing."""
    labels = column_or_1d(y, warn=True)
    refuse_missing_values(missing_values(labels), "y", "nan or None")
    check_classification_targets(labels)
    return np.asarray(labels)


def _refuse_other_than_two(labels: NDArray[Any], weight: NDArray[Any] | None) -> None:
    """Reject labels of one class, or of more than two; both classes need rows of positive weight."""
    if weight is not None and not np.any(weight > 0):
        raise invalid("sample_weight", "is zero or negative in all rows; each class needs a positive weight.")
    # The first sentence is that of scikit-learn, whose common tests look for it.
    subject = "Only binary classification is supported. `y`"
    classes = np.unique(labels).tolist()
    if len(classes) > 2:
        cure = "Recalibrate one class against the rest, or drop the rows of the others."
        raise invalid("y", f"has {len(classes)} classes ({list_shown(classes)}). {cure}", subject=subject)
    weighted = classes if weight is None else np.unique(labels[weight > 0]).tolist()
    if len(weighted) == 1:
        where = " with a positive weight" if len(classes) == 2 else ""
        cure = "Collect rows of the other class."
        raise invalid("y", f"has rows of one class only{where}, {weighted[0]!r}. {cure}", subject=subject)
