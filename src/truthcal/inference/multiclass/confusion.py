"""Confusion of errors: where one class is predicted, does another one happen more often than predicted?"""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.class_rows import ClassRows
from truthcal.results.multiclass import Confusion

_Array = NDArray[np.float64]


def confusion_of(rows: ClassRows, alpha: float, groups: NDArray[np.int64] | None = None) -> Confusion:
    """Compare predicted and observed frequencies of each class, weighted by the probability of each other class.

    For classes k and l the sum x of w p_k (y_l - p_l) has the mean 0 under calibration, and the variance V =
    sum of w^2 p_k^2 p_l (1 - p_l); with groups, that of the sums of groups. No row (or group) adds more than M, the
    largest w p_k: the upper tail is taken to be that of a Poisson variable with the jump M and the variance V, the
    worst case. If V / M^2 is large, it is that of a normal variable; if class l is rare where k is predicted, a single
    surprise is not significant, although it may be many standard errors.
    """
    p, w = rows.p, rows.w
    weight = w @ p
    predicted = (p * w[:, None]).T @ p
    actual = _sums_by_class(rows, p * w[:, None])
    square = (p * w[:, None]) ** 2
    variance = square.T @ (p * (1.0 - p)) if groups is None else _variance_of_groups(rows, groups)
    excess = actual - predicted
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(variance > 0.0, excess / np.sqrt(variance), 0.0)
        rates = [np.where(weight[:, None] > 0.0, table / weight[:, None], np.nan) for table in (predicted, actual)]
    pairs = rows.n_classes * (rows.n_classes - 1)
    tail = _upper_tail(excess, variance, _largest(rows, groups))
    significant = (tail < alpha / pairs) & ~np.eye(rows.n_classes, dtype=bool)
    gain = np.where(significant, excess, 0.0)
    worst = None
    if gain.max(initial=0.0) > 0.0:
        k, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
        worst = int(k), int(j)
    return Confusion(rows.labels, rates[0], rates[1], z, worst, significant)


def _largest(rows: ClassRows, groups: NDArray[np.int64] | None) -> _Array:
    """For each class k, the largest w p_k of a row, or of the sum of a group."""
    weights = rows.w[:, None] * rows.p
    if groups is None:
        return np.asarray(weights.max(axis=0))
    return np.array([np.bincount(groups, column).max() for column in weights.T])


def _upper_tail(x: _Array, variance: _Array, largest: _Array) -> _Array:
    """Upper tail at x of a centered Poisson variable with this variance and, for each row, this jump."""
    jump = np.where(largest > 0.0, largest, 1.0)[:, None]
    mean = variance / jump**2
    tail = special.gammainc(mean + np.maximum(x, 0.0) / jump, mean)
    return np.where((x > 0.0) & (mean > 0.0), tail, 1.0)


def _sums_by_class(rows: ClassRows, values: _Array) -> _Array:
    """Sum of the rows of `values` by the class that happened: a column for each class."""
    out = np.zeros((values.shape[1], rows.n_classes))
    for j in range(rows.n_classes):
        out[:, j] = values[rows.y == j].sum(axis=0)
    return out


def _variance_of_groups(rows: ClassRows, groups: NDArray[np.int64]) -> _Array:
    """Variance of the confusion of two classes from the sums of groups, one class at a time."""
    variance = np.empty((rows.n_classes, rows.n_classes))
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    errors = rows.errors()
    for k in range(rows.n_classes):
        sums = np.add.reduceat((rows.w * rows.p[:, k])[order, None] * errors[order], starts)
        variance[k] = np.sum(sums**2, axis=0)
    return variance
