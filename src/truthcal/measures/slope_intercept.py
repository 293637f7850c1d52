"""Calibration slope and intercepts, by logistic regression on the predicted log-odds."""

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.sample import Groups, Sample
from truthcal.results.measures import CalibrationLine

_MOST_STEPS = 100


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
    are often confused; only the first depends on the slope. O(n log n).
    Reference: Cox (1958); Van Calster et al. (2019), Calibration: the Achilles heel of predictive analytics.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.calibration_slope_intercept([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9]))
    slope 1.012, intercept -0.1377; calibration in the large (intercept at slope 1) -0.1374
    """
    groups = Sample.of(y_true, y_proba, sample_weight, pos_label).groups
    _check_fit_exists(groups)
    log_odds = np.log(groups.r) - np.log1p(-groups.r)
    ones = np.ones_like(log_odds)
    centre = float(np.average(log_odds, weights=groups.w))
    spread = float(np.sqrt(np.average((log_odds - centre) ** 2, weights=groups.w)))
    if not spread > 0.0:
        raise invalid("y_proba", "has log-odds that are equal up to rounding, so no slope can be fitted.")
    level, steepness = _fit_logistic(np.stack([ones, (log_odds - centre) / spread]), 0.0 * log_odds, groups)
    (large,) = _fit_logistic(ones[None], log_odds, groups)
    slope = steepness / spread
    return CalibrationLine(slope=slope, intercept=level - slope * centre, calibration_in_the_large=large)


def _fit_logistic(columns: NDArray[np.float64], offset: NDArray[np.float64], groups: Groups) -> list[float]:
    """Fit slope and intercept of a weighted logistic regression by Newton's method; halve steps that overshoot."""
    from scipy.special import expit

    def loss(coefficients: NDArray[np.float64]) -> float:
        z = offset + np.sum(coefficients[:, None] * columns, axis=0)
        return float(np.sum(groups.w * np.logaddexp(0.0, z) - groups.wy * z))

    coefficients, last, newton = np.zeros(len(columns)), loss(np.zeros(len(columns))), np.inf
    for _ in range(_MOST_STEPS):
        chance = expit(offset + np.sum(coefficients[:, None] * columns, axis=0))
        gradient = np.sum(columns * (groups.w * chance - groups.wy), axis=1)
        hessian = np.array([[np.sum(a * b * groups.w * chance * (1.0 - chance)) for a in columns] for b in columns])
        if not np.linalg.det(hessian) > 0.0:
            break
        step = np.linalg.solve(hessian, gradient)
        newton = np.abs(step).max() / (1.0 + np.abs(coefficients).max())
        while loss(coefficients - step) > last * (1.0 + 1e-15) and np.abs(step).max() > 1e-14:
            step /= 2.0
        coefficients, last = coefficients - step, loss(coefficients - step)
        if newton <= 1e-12:
            break
    if not newton <= 1e-6:  # the maximum is too far out for floats
        reason = "predictions are too close to 0, 1 or each other, or almost separate the outcomes"
        cure = "Use more rows, or less extreme weights."
        raise invalid("y_proba", f"does not allow an accurate fit of slope and intercepts: {reason}. {cure}")
    return [float(value) for value in coefficients]


def _check_fit_exists(groups: Groups) -> None:
    """Reject input without a finite slope and intercept: infinite or equal log-odds, outcomes without a best fit."""
    r, with_zeros, with_ones = groups.r, np.flatnonzero(groups.wy < groups.w), np.flatnonzero(groups.wy > 0.0)
    if r[0] <= 0.0 or r[-1] >= 1.0:
        example = f"found {r[0] if r[0] <= 0.0 else r[-1]:g}"
        cure = "Clip them, for example with np.clip(y_proba, 1e-6, 1 - 1e-6)."
        raise invalid("y_proba", f"must lie strictly between 0 and 1, because log-odds are used; {example}. {cure}")
    if len(r) < 2:
        raise invalid("y_proba", f"must contain at least two distinct predictions to fit a slope; all are {r[0]:g}.")
    if len(with_zeros) == 0 or len(with_ones) == 0:
        problem = "contains only one class, so the maximum-likelihood intercept is infinite; both outcomes must occur."
        raise invalid("y_true", problem)
    if with_zeros[-1] <= with_ones[0] or with_ones[-1] <= with_zeros[0]:
        problem = "separates the outcomes perfectly, so the maximum-likelihood slope is infinite; more rows are needed."
        raise invalid("y_proba", problem)
