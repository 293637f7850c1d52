"""Arguments of truthcal's functions from an estimator, its features and its outcomes."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from truthcal.core.checks import invalid, refuse_other_order
from truthcal.core.estimators import PredictedClasses, require_proba
from truthcal.core.params import list_shown

_ONE_CLASS = "If the training rows of a fold had one class only, use more rows or fewer folds."


def refuse_without_proba(estimator: Any) -> None:
    """Reject an estimator without `predict_proba`; the error says how to get probabilities."""
    require_proba(estimator, _cure_of(estimator))


def predict_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, pos_label: Any) -> dict[str, Any]:
    """Predict for X with a fitted estimator. Returns the arguments of `assess` and of measures by name."""
    refuse_shuffled(X, y)
    return rows_of(PredictedClasses.of(estimator, X, _cure_of(estimator)), y, sample_weight, pos_label)


def refuse_shuffled(X: Any, y: Any) -> None:
    """Reject features and outcomes with the same index labels in another order, which scikit-learn would not notice."""
    refuse_other_order(X, y, ("X", "y"), other_rows=False)


def rows_of(predicted: PredictedClasses, y: Any, sample_weight: Any, pos_label: Any) -> dict[str, Any]:
    """Return the arguments of `assess` and of measures by name: those of one event, or of more than two classes.

    Two classes become one event, that of `pos_label` or of the second class. More classes have all columns of
    predictions, and their labels.
    """
    refuse_unknown_labels(predicted, y)
    rows = {"y_true": y, "sample_weight": sample_weight}
    if predicted.proba.ndim != 2 or predicted.proba.shape[1] <= 2:
        column, label = predicted.event(pos_label, _ONE_CLASS)
        return rows | {"y_proba": column, "pos_label": label}
    if pos_label is not None:
        problem = f"cannot be combined with the {predicted.proba.shape[1]} classes of {predicted.estimator}"
        raise invalid("pos_label", f"{problem}. Omit it: all classes are used together.")
    return rows | {"y_proba": predicted.proba, "labels": predicted.classes}


def refuse_unknown_labels(predicted: PredictedClasses, y: Any) -> None:
    """Reject outcomes with a label that the estimator was not fitted on."""
    labels = np.asarray(y)
    if predicted.classes is None or labels.ndim != 1:
        return
    unknown = set(labels.tolist()).difference(predicted.classes)
    if unknown:
        problem = f"has the label {min(unknown, key=repr)!r}, which {predicted.estimator} was not fitted on"
        classes = list_shown(predicted.classes)
        cure = "If the training rows of a fold lack a class, shuffle the folds, or drop or merge rare classes."
        raise invalid("y_true", f"{problem} (its classes: {classes}). {cure}")


def _cure_of(estimator: Any) -> str:
    if hasattr(estimator, "decision_function"):
        cure = "wrap the estimator in sklearn.calibration.CalibratedClassifierCV"
        return f"Its decision_function returns scores, not probabilities: {cure}."
    kind = "Regressors predict no probabilities. " if isinstance(estimator, RegressorMixin) else ""
    return f"{kind}Pass a classifier with predict_proba."
