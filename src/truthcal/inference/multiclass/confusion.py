"""Confusion of errors: where one class is predicted, does another one happen more often than predicted?"""

import math

import numpy as np
from numpy.typing import NDArray

from truthcal.core.class_rows import ClassRows
from truthcal.results.multiclass import Confusion

_Array = NDArray[np.float64]


def confusion_of(rows: ClassRows, alpha: float, groups: NDArray[np.int64] | None = None) -> Confusion:
    """Compare predicted and observed frequencies of each class, weighted by the probability of each other class.

    For classes k and l the sum of w p_k (y_l - p_l) has the mean 0 under calibration, and the variance
    sum of w^2 p_k^2 p_l (1 - p_l); with groups, that of the sums of groups.
    """
    p, w = rows.p, rows.w
    weight = w @ p
    weighted = p * w[:, None]
    predicted = weighted.T @ p
    actual = _sums_by_class(rows, weighted)
    variance = (weighted**2).T @ (p * (1.0 - p)) if groups is None else _variance_of_groups(rows, groups)
    excess = actual - predicted
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(variance > 0.0, excess / np.sqrt(variance), 0.0)
        rates = [np.where(weight[:, None] > 0.0, table / weight[:, None], np.nan) for table in (predicted, actual)]
    bound = _log_bound(z, variance, weighted.max(axis=0) if groups is None else None)
    pairs = rows.n_classes * (rows.n_classes - 1)
    significant = (z > 0.0) & (bound <= math.log(alpha / pairs)) & ~np.eye(rows.n_classes, dtype=bool)
    worst = None
    if significant.any():
        k, j = np.unravel_index(int(np.argmax(np.where(significant, excess, 0.0))), excess.shape)
        worst = int(k), int(j)
    return Confusion(rows.labels, rates[0], rates[1], z, worst, significant)


def _log_bound(z: _Array, variance: _Array, largest: _Array | None) -> _Array:
    """Upper bound on the logarithm of the probability of at least z standard errors, for z above 0.

    Bennett's inequality, for sums of independent terms up to `largest` (one for each row of the tables): the normal
    distribution would call a single surprising row significant. With groups, whose signs are random: -z^2 / 2.
    """
    if largest is None:
        return -0.5 * z**2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(z, 0.0) * largest[:, None] / np.sqrt(variance)
        scale = variance / largest[:, None] ** 2
        bound = -scale * ((1.0 + ratio) * np.log1p(ratio) - ratio)
    return np.asarray(np.where((variance > 0.0) & (largest[:, None] > 0.0), bound, 0.0))


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
    errors = -rows.p.copy()
    errors[np.arange(rows.n), rows.y] += 1.0
    for k in range(rows.n_classes):
        sums = np.add.reduceat((rows.w * rows.p[:, k])[order, None] * errors[order], starts)
        variance[k] = np.sum(sums**2, axis=0)
    return variance
