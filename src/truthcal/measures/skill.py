"""Skill and calibration: CORP decompositions of scores, calibration slope and intercepts, and the ICI."""

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import check_log_odds, check_spread, refuse_separated, refuse_unconverged
from truthcal.core.sample import Groups, Sample
from truthcal.kernels import chains
from truthcal.results.measures import CalibrationLine, ScoreDecomposition

_MOST_STEPS = 100


def isotonic_of(groups: Groups) -> NDArray[np.float64]:
    """Isotonic regression of the outcomes on the predictions, at each different prediction."""
    fit = np.empty_like(groups.r)
    chains.isotonic(groups.w, groups.wy, fit)
    return fit


def ici(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Integrated calibration index: mean distance of the predictions to a smoothed curve of outcomes.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1. Not truthful.

    Notes
    -----
    ``mean of |p - g(p)|``, g being the isotonic regression of outcomes on predictions, without a bandwidth. The loess
    curve of Austin and Steyerberg gives other numbers. Equal predictions form one group. O(n log n).
    Reference: Austin, Steyerberg (2019), The Integrated Calibration Index (ICI) and related metrics.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.ici([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.250000
    """
    return ici_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def ici_of(sample: Sample) -> float:
    """ICI of sorted rows."""
    groups = sample.groups
    return float(np.sum(groups.w * np.abs(groups.r - isotonic_of(groups)))) / sample.weight


def brier_decomposition(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> ScoreDecomposition:
    """The Brier score as miscalibration minus discrimination plus uncertainty (CORP).

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    ScoreDecomposition
        ``score = miscalibration - discrimination + uncertainty``, none of the parts negative.

    Notes
    -----
    Miscalibration: the gain of isotonic recalibration on the same rows. Discrimination: the gain of the recalibrated
    predictions over always predicting the mean outcome, whose score is the uncertainty.
    For fractional outcomes the score is ``(p - y)^2``. O(n log n).
    Reference: Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.brier_decomposition([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9]))
    Brier score 0.1925 = miscalibration 0.0675 - discrimination 0.125 + uncertainty 0.25
    """
    return brier_decomposition_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def brier_decomposition_of(sample: Sample) -> ScoreDecomposition:
    """The decomposition of sorted rows."""
    groups, m = sample.groups, sample.moments
    mean = groups.wy / groups.w
    base = float(np.sum(groups.wy) / np.sum(groups.w))
    # All three scores contain the spread of outcomes within groups; adding it last avoids cancellation.
    within = m.wcc / m.w - float(np.sum(groups.w * (groups.r - mean) ** 2)) / sample.weight

    def score(p: NDArray[np.float64] | float) -> float:
        return float(np.sum(groups.w * (p - mean) ** 2)) / sample.weight

    return _decomposition("Brier score", (score(groups.r), score(isotonic_of(groups)), score(base)), within)


def log_loss_decomposition(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> ScoreDecomposition:
    """The logarithmic loss as miscalibration minus discrimination plus uncertainty (CORP).

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    ScoreDecomposition
        As for `brier_decomposition`, in nats. Score and miscalibration are infinite after a wrong prediction of 0 or 1.

    Notes
    -----
    As for `brier_decomposition`, with ``-y log(p) - (1 - y) log(1 - p)`` as the score.
    Reference: Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.log_loss_decomposition([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9]))
    log loss 0.5403 = miscalibration 0.1937 - discrimination 0.3466 + uncertainty 0.6931
    """
    from scipy.special import xlog1py, xlogy

    sample = Sample.of(y_true, y_proba, sample_weight, pos_label)
    groups = sample.groups

    def score(p: NDArray[np.float64] | float) -> float:
        return float(np.sum(-xlogy(groups.wy, p) - xlog1py(groups.w - groups.wy, -np.asarray(p)))) / sample.weight

    base = float(np.sum(groups.wy) / np.sum(groups.w))
    return _decomposition("log loss", (score(groups.r), score(isotonic_of(groups)), score(base)), 0.0)


def _decomposition(name: str, parts: tuple[float, float, float], common: float) -> ScoreDecomposition:
    """Build the result from the scores of the predictions, the recalibrated ones and the mean outcome."""
    original, recalibrated, constant = parts
    score, miscalibration = original + common, original - recalibrated
    discrimination, uncertainty = constant - recalibrated, constant + common
    return ScoreDecomposition(name, *(max(x, 0.0) for x in (score, miscalibration, discrimination, uncertainty)))


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
    check_log_odds(groups.r)
    refuse_separated(groups.w, groups.wy)
    log_odds = np.log(groups.r) - np.log1p(-groups.r)
    ones = np.ones_like(log_odds)
    centre = float(np.average(log_odds, weights=groups.w))
    spread = float(np.sqrt(np.average((log_odds - centre) ** 2, weights=groups.w)))
    check_spread(spread)
    level, steepness = _logistic(np.stack([ones, (log_odds - centre) / spread]), 0.0 * log_odds, groups)
    (large,) = _logistic(ones[None], log_odds, groups)
    slope = steepness / spread
    return CalibrationLine(slope=slope, intercept=level - slope * centre, calibration_in_the_large=large)


def _logistic(columns: NDArray[np.float64], offset: NDArray[np.float64], groups: Groups) -> list[float]:
    """Fit a weighted logistic regression by Newton's method; a step that overshoots is halved."""
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
    refuse_unconverged(float(newton))
    return [float(value) for value in coefficients]
