"""Predictions of a fitted classifier: of any object with `predict_proba`, so that scikit-learn is not needed."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.params import shown


@dataclass(frozen=True, eq=False)
class PredictedClasses:
    """Output of `predict_proba`: a column for each class.

    Attributes
    ----------
    estimator : str
        Name of the estimator's class, for messages.
    proba : ndarray of shape (n, k)
        Probabilities.
    classes : tuple or None
        Label of each column; None if the estimator has no `classes_`.
    """

    estimator: str
    proba: NDArray[Any]
    classes: tuple[Any, ...] | None

    @classmethod
    def of(cls, estimator: Any, features: Any, cure: str) -> Self:
        """Predict, or raise an error that ends with `cure` if the estimator has no probabilities."""
        require_proba(estimator, cure)
        classes = getattr(estimator, "classes_", None)
        labels = None if classes is None else tuple(np.asarray(classes).tolist())
        return cls(type(estimator).__name__, np.asarray(estimator.predict_proba(features)), labels)

    def event(self, pos_label: object, cure: str) -> tuple[NDArray[Any], object]:
        """Return the probabilities of one of two classes, and its label in the outcomes (None if these are 0 and 1).

        The default is the second class. More or fewer classes raise an error that ends with `cure`.
        """
        if self.proba.ndim != 2 or self.proba.shape[1] != 2:
            found = f"predict_proba of {self.estimator} returned shape {self.proba.shape}"
            raise invalid("estimator", f"must have two classes; {found}. {cure}")
        if self.classes is None:
            return self.proba[:, 1], pos_label
        labels = list(self.classes)
        if pos_label is None:
            return self.proba[:, 1], None if labels in ([0, 1], [False, True]) else labels[1]
        if pos_label not in labels:
            rule = f"must be one of the classes of {self.estimator}, {labels}"
            raise invalid("pos_label", f"{rule}; got {shown(pos_label)}.")
        return self.proba[:, labels.index(pos_label)], pos_label


def require_proba(estimator: Any, cure: str) -> None:
    """Reject an estimator without `predict_proba`, with an error that ends with `cure`."""
    if not hasattr(estimator, "predict_proba"):
        kind = type(estimator).__name__
        raise invalid("estimator", f"must have predict_proba; {kind} has none. {cure}", TypeError)
