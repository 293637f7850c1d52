"""Calibration slope and intercepts, by logistic regression on the predicted log-odds."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.bins import BinSums, scaled_weights
from truthcal.core.checks import Checked, check_rows, invalid
from truthcal.core.frame_columns import named_columns
from truthcal.core.grid import Grid
from truthcal.core.parallel import in_parts
from truthcal.kernels.totals import outcome_ranges
from truthcal.results.measures import CalibrationLine

_Array = NDArray[np.float64]

_MOST_STEPS = 100
# Steps below the first are Newton's without a check: the loss changes by less than its rounding. The last step.
_CLOSE, _LAST = 1e-6, 1e-12
# More rows than this are fitted in buckets first.
_FEW, _BUCKETS = 1 << 15, 1 << 14
# Rows at a time, whose columns fit into the processor's cache.
_BLOCK = 1 << 14


@named_columns
def calibration_slope_intercept(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> CalibrationLine:
    """Calibration slope and both intercepts, by logistic regression of the outcomes on the predicted log-odds.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`. Predictions must lie strictly between 0 and 1.

    Returns
    -------
    CalibrationLine
        ``slope`` (1 if calibrated; below 1: overconfident), ``intercept`` fitted together with the slope, and
        ``calibration_in_the_large``, the intercept if the slope is fixed at 1 (0 if calibrated; below 0: too high).

    Notes
    -----
    Maximum likelihood for ``logit(P(y = 1)) = intercept + slope * logit(p)``, by Newton's method. The two intercepts
    are often confused; only the first depends on the slope. O(n), without sorting: with many rows the first steps use
    sums in 16,384 buckets, and only the last ones all rows.
    Reference: Cox (1958); Van Calster et al. (2019), Calibration: the Achilles heel of predictive analytics.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.calibration_slope_intercept([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9]))
    slope 1.012, intercept -0.1377; calibration in the large (intercept at slope 1) -0.1374
    """
    rows = check_rows(y_true, y_proba, sample_weight, pos_label)
    _check_fit_exists(rows)
    log_odds, centre, spread = _standardize(rows)
    coarse = log_odds
    if len(rows.p) > _FEW:
        sums = BinSums.of_rows(rows, Grid.of_size(_BUCKETS).edges[:-1])
        coarse = _LogOdds((_logit(sums.p) - centre) / spread, sums.weight, sums.wy / sums.weight)
    steepness, level = _fit_logistic(log_odds, coarse, np.zeros(2), np.array([True, True]))
    _, level_at_one = _fit_logistic(log_odds, coarse, np.array([spread, centre]), np.array([False, True]))
    slope = steepness / spread
    return CalibrationLine(
        slope=slope, intercept=level - slope * centre, calibration_in_the_large=level_at_one - centre
    )


class _LogOdds(NamedTuple):
    """Rows of a logistic regression for slope and intercept: standardized log-odds, weights and outcomes."""

    x: _Array
    w: _Array
    y: NDArray[Any]

    def sums(self, coefficients: _Array) -> _Array:
        """Loss, gradient and upper half of the Hessian at (steepness, level), for logit = level + steepness * x."""

        def add(first: int, last: int) -> _Array:
            blocks = [slice(k, min(k + _BLOCK, last)) for k in range(first, last, _BLOCK)]
            return np.asarray(np.sum([self._of_block(rows, *coefficients) for rows in blocks], axis=0))

        return np.array([math.fsum(column) for column in zip(*in_parts(add, len(self.x)), strict=True)])

    def _of_block(self, rows: slice, steepness: float, level: float) -> list[float]:
        x, w, wy = self.x[rows], self.w[rows], self.w[rows] * self.y[rows]
        z = level + steepness * x
        rare = np.exp(-np.abs(z))
        share = 1.0 / (1.0 + rare)
        error, curvature = w * np.where(z >= 0.0, share, rare * share) - wy, w * rare * share * share
        loss = w * (np.maximum(z, 0.0) + np.log1p(rare)) - wy * z
        columns = loss, error * x, error, curvature * x * x, curvature * x, curvature
        return [float(np.sum(column)) for column in columns]


def _logit(p: NDArray[Any]) -> _Array:
    p = p.astype(np.float64, copy=False)
    return np.asarray(np.log(p) - np.log1p(-p))


def _standardize(rows: Checked) -> tuple[_LogOdds, float, float]:
    """Log-odds of rows for the fit of slope and intercept, with mean 0 and variance 1; their mean and spread."""
    x, w = np.empty(len(rows.p)), scaled_weights(rows)[0]

    def fill(first: int, last: int) -> tuple[float, float]:
        x[first:last] = _logit(rows.p[first:last])
        return float(np.sum(w[first:last])), float(np.sum(w[first:last] * x[first:last]))

    total, centre = map(math.fsum, zip(*in_parts(fill, len(x)), strict=True))
    centre /= total

    def squares(first: int, last: int) -> float:
        x[first:last] -= centre
        return float(np.sum(w[first:last] * x[first:last] ** 2))

    spread = math.sqrt(math.fsum(in_parts(squares, len(x))) / total)
    if not spread > 0.0:
        raise invalid("y_proba", "has log-odds that are equal up to rounding, so no slope can be fitted.")
    in_parts(lambda first, last: np.divide(x[first:last], spread, out=x[first:last]), len(x))
    return _LogOdds(x, w, rows.y), centre, spread


def _fit_logistic(log_odds: _LogOdds, coarse: _LogOdds, start: _Array, free: NDArray[np.bool_]) -> list[float]:
    """Fit those of slope and intercept that are free, from where they are in a coarse summary of the same rows."""
    if coarse is not log_odds:
        coefficients, newton = _newton(coarse, start, free)
        start = coefficients if newton <= _CLOSE else start
    coefficients, newton = _newton(log_odds, start, free)
    if not newton <= _CLOSE:  # the maximum is too far out for floats
        reason = "predictions are too close to 0, 1 or each other, or almost separate the outcomes"
        cure = "Use more rows, or less extreme weights."
        raise invalid("y_proba", f"does not allow an accurate fit of slope and intercepts: {reason}. {cure}")
    return [float(value) for value in coefficients]


def _newton(log_odds: _LogOdds, coefficients: _Array, free: NDArray[np.bool_]) -> tuple[_Array, float]:
    """Newton's method for slope and intercept; steps that overshoot are halved. Returns the relative last step, too."""
    value, newton = log_odds.sums(coefficients), math.inf
    for _ in range(_MOST_STEPS):
        _, *gradient, xx, x, one = value
        hessian = np.array([[xx, x], [x, one]])[np.ix_(free, free)]
        if not np.linalg.det(hessian) > 0.0:
            break
        step = np.zeros(2)
        step[free] = np.linalg.solve(hessian, np.array(gradient)[free])
        newton = float(np.abs(step).max() / (1.0 + np.abs(coefficients[free]).max()))
        if newton <= _LAST:
            return coefficients - step, newton
        following = log_odds.sums(coefficients - step)
        while newton > _CLOSE and following[0] > value[0] * (1.0 + 1e-15) and np.abs(step).max() > 1e-14:
            step /= 2.0
            following = log_odds.sums(coefficients - step)
        coefficients, value = coefficients - step, following
    return coefficients, newton


def _check_fit_exists(rows: Checked) -> None:
    """Reject input without a finite slope and intercept: infinite or equal log-odds, outcomes without a best fit."""
    p, y, _ = rows
    ranges = np.array(in_parts(lambda first, last: outcome_ranges(p[first:last], y[first:last]), len(p)))
    (zero_low, zero_high), (one_low, one_high) = ((np.min(x[:, 0]), np.max(x[:, 1])) for x in np.split(ranges, 2, 1))
    lowest, highest = min(zero_low, one_low), max(zero_high, one_high)
    if lowest <= 0.0 or highest >= 1.0:
        example = f"found {abs(lowest) if lowest <= 0.0 else highest:g}"
        cure = "Clip them, for example with np.clip(y_proba, 1e-6, 1 - 1e-6)."
        raise invalid("y_proba", f"must lie strictly between 0 and 1, because log-odds are used; {example}. {cure}")
    if lowest == highest:
        raise invalid("y_proba", f"must contain at least two distinct predictions to fit a slope; all are {lowest:g}.")
    if math.isinf(zero_low) or math.isinf(one_low):
        problem = "contains only one class, so the maximum-likelihood intercept is infinite; both outcomes must occur."
        raise invalid("y_true", problem)
    if zero_high <= one_low or one_high <= zero_low:
        problem = "separates the outcomes perfectly, so the maximum-likelihood slope is infinite; more rows are needed."
        raise invalid("y_proba", problem)
