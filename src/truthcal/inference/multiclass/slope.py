"""Overconfidence of predictions with many classes: the slope of a recalibration of all log-probabilities.

With the slope b, the probability of a class is proportional to p^b: below 1, predictions are too extreme
(overconfident); above 1, not extreme enough. 1 / b is known as temperature.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.class_rows import ClassRows
from truthcal.inference.intervals import student_factor
from truthcal.results.intervals import ConfidenceInterval

_Array = NDArray[np.float64]

# Smaller probabilities are replaced by this one: those of 0 have no logarithm.
_SMALLEST = 1e-6
_STEPS, _LARGEST_SLOPE, _TOLERANCE = 60, 50.0, 1e-10
# The likelihood grows without limit beyond this share of the largest slope: bisection approaches the end, but does not
# reach it.
_AT_BOUND = 0.999


def log_proba(p: _Array) -> _Array:
    """Logarithms of the probabilities of classes, none of which is 0."""
    return np.asarray(np.log(np.maximum(p, _SMALLEST)))


def tempered(p: _Array, slope: float) -> _Array:
    """Probabilities of classes with another slope."""
    return np.asarray(special.softmax(slope * log_proba(p), axis=1))


def slope_of(rows: ClassRows, level: float, groups: NDArray[np.int64] | None = None) -> ConfidenceInterval:
    """Estimate the slope by maximum likelihood, with an interval that also holds if the slope does not describe all.

    The standard error is that of the scores of rows or, if rows belong together, of groups.
    """
    logs, w = log_proba(rows.p), rows.w / rows.total
    seen = logs[np.arange(rows.n), rows.y]
    slope = _maximum(logs, seen, w)
    q = special.softmax(slope * logs, axis=1)
    mean = np.einsum("ik,ik->i", q, logs)
    scores = w * (seen - mean)
    spread = float(np.sum(w * (np.einsum("ik,ik->i", q, logs**2) - mean**2)))
    if groups is not None:
        scores = np.bincount(groups, scores)
    clusters = rows.one_row if groups is None else float(np.sum(np.bincount(groups, w) ** 2))
    name, why = "slope", "maximum likelihood; standard error from the scores of rows or groups"
    if spread <= 1e-12 or abs(slope) > _AT_BOUND * _LARGEST_SLOPE or clusters >= 0.5:
        why_not = "the rows do not determine it"
        return ConfidenceInterval(math.nan, math.nan, level, name, math.nan, "none", why_not)
    factor = student_factor(1.0 / clusters, level) / (1.0 - clusters)
    reach = float(special.ndtri((1.0 + level) / 2.0)) * math.sqrt(float(scores @ scores) * factor) / spread
    return ConfidenceInterval(slope - reach, slope + reach, level, name, slope, "likelihood", why)


def _maximum(logs: _Array, seen: _Array, w: _Array) -> float:
    """The slope with the largest likelihood, by Newton's method with bisection; the likelihood is concave."""
    low, high, slope = -_LARGEST_SLOPE, _LARGEST_SLOPE, 1.0
    for _ in range(_STEPS):
        q = special.softmax(slope * logs, axis=1)
        mean = np.einsum("ik,ik->i", q, logs)
        score = float(w @ (seen - mean))
        spread = float(w @ (np.einsum("ik,ik->i", q, logs**2) - mean**2))
        low, high = (slope, high) if score > 0.0 else (low, slope)
        step = score / spread if spread > 1e-300 else math.inf
        following = slope + step if low < slope + step < high else (low + high) / 2.0
        if abs(following - slope) <= _TOLERANCE * max(abs(slope), 1.0):
            return following
        slope = following
    return slope
