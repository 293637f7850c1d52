"""The direction of a calibration error: too high, too low, overconfident or underconfident, if the evidence tells.

Evidence is a logistic recalibration (Cox): log-odds of the outcome = intercept + slope * log-odds of the prediction.
Its likelihood ratios show whether there is a shift (which has the sign of the bias) and a slope other than 1. Where
both are significant, the word is what describes most of the error: nearly all of it on one side is "too high" or "too
low", errors that change sign once are "overconfident" or "underconfident". If that line leaves most of the error
unexplained, the signs of groups of rows decide, and may show that there is no such direction.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.points import Points, equal_cells

_Array = NDArray[np.float64]

_CELLS, _GROUPS = 400, 20
# Predictions of 0 and 1 have infinite log-odds.
_SMALLEST = 1e-6
# A shift or a slope is significant at 5% if its likelihood ratio exceeds this.
_SIGNIFICANT = 3.841
# If at least this share of the error has one sign, it is "too high" or "too low".
_ONE_SIDED = 0.7
# Without a line that fits, a direction must account for this share of the errors of groups beyond their noise.
_AGREEMENT = 0.85
# The line does not fit if groups differ from it at this level.
_LACK_OF_FIT = 0.02
_STEPS, _LONGEST_STEP = 50, 10.0


class Evidence(NamedTuple):
    """Evidence for a direction of the error.

    `shift`, `slope`: likelihood ratios of a shift, and of a slope given the shift, each with the sign of its direction:
    above 0 if predictions are too high, and too extreme. `one_sided`: mean error over mean absolute error, of the
    fitted line or, if it does not fit, of groups. `turning`: the same, with the error counted as negative below the
    best turning point. `fits`: whether the line explains most of the error.
    """

    shift: float
    slope: float
    one_sided: float
    turning: float
    fits: bool


def kind_of_error(points: Points) -> str:
    """Kind of a significant error for the verdict; "miscalibrated" if its direction is not clear."""
    found = evidence_of(points)
    shift, slope = abs(found.shift) > _SIGNIFICANT, abs(found.slope) > _SIGNIFICANT
    if shift and (abs(found.one_sided) >= _AGREEMENT if not found.fits else not slope or _is_one_sided(found)):
        return "too high" if found.shift > 0.0 else "too low"
    if slope and (found.fits or (found.turning * found.slope > 0.0 and abs(found.turning) >= _AGREEMENT)):
        return "overconfident" if found.slope > 0.0 else "underconfident"
    return "miscalibrated"


def _is_one_sided(found: Evidence) -> bool:
    return abs(found.one_sided) >= _ONE_SIDED and found.one_sided * found.shift > 0.0


def evidence_of(points: Points) -> Evidence:
    """Fit the recalibration line, and compare it with groups of rows."""
    if len(points) > _CELLS:
        share = points.weight / points.total + points.wwv / max(float(np.sum(points.wwv)), 1e-300)
        points = points.runs(np.flatnonzero(np.diff(equal_cells(share, _CELLS), prepend=-1)))
    x = special.logit(np.clip(points.p, _SMALLEST, 1.0 - _SMALLEST))
    # Weights on the scale on which a row counts as one observation.
    scale = points.total / float(np.sum(points.ww))
    weight, events = points.weight * scale, points.wy * scale
    ones, centred = np.ones_like(x), x - float(np.average(x, weights=weight))
    null = _log_likelihood(x, weight, events)
    shifted = _fit(ones[None], x, weight, events)
    line = _fit(np.stack([ones, centred]), x, weight, events) if np.ptp(x) > 1e-9 else shifted
    high = float(np.sum(points.bias))
    shift = math.copysign(2.0 * max(_log_likelihood(shifted, weight, events) - null, 0.0), high)
    steeper = float(np.sum((line - x) * centred * weight))
    gain = 2.0 * max(_log_likelihood(line, weight, events) - _log_likelihood(shifted, weight, events), 0.0)
    slope = math.copysign(gain, -steeper)
    truth = special.expit(line)
    group_errors, rest = _compare_groups(points, truth)
    fits = rest <= abs(shift) + abs(slope) - 2.0
    errors = points.weight * (points.p - truth) if fits else group_errors
    return Evidence(shift, slope, *_shares(errors), fits)


def _log_likelihood(log_odds: _Array, weight: _Array, events: _Array) -> float:
    return float(np.sum(events * log_odds - weight * np.logaddexp(0.0, log_odds)))


def _fit(columns: _Array, offset: _Array, weight: _Array, events: _Array) -> _Array:
    """Log-odds of a logistic regression with an offset, by Newton's method with halved steps.

    Where outcomes are separated the best coefficients are infinite: the last step is good enough for a likelihood.
    """
    log_odds, last = offset, _log_likelihood(offset, weight, events)
    for _ in range(_STEPS):
        chance = special.expit(log_odds)
        hessian = (columns * (weight * chance * (1.0 - chance))) @ columns.T
        hessian += np.eye(len(columns)) * (1e-9 * np.trace(hessian) + 1e-300)
        step = np.linalg.solve(hessian, columns @ (events - weight * chance)) @ columns
        step = step / max(1.0, float(np.abs(step).max()) / _LONGEST_STEP)
        while (new := _log_likelihood(log_odds + step, weight, events)) < last and np.abs(step).max() > 1e-9:
            step = step / 2.0
        if new - last <= 1e-9 * (1.0 + abs(last)):
            break
        log_odds, last = log_odds + step, new
    return log_odds


def _compare_groups(points: Points, truth: _Array) -> tuple[_Array, float]:
    """Squared errors of groups in units of variance, with their signs, and how much a fitted truth leaves unexplained.

    The second is a sum of squares, too, minus its expectation, or 0 if it is not significant.
    """
    noise = points.ww * truth * (1.0 - truth)
    group = equal_cells(noise + 1e-12 * points.ww, _GROUPS)
    sd = np.sqrt(np.bincount(group, np.maximum(noise, 1e-12 * points.ww)))
    error = np.bincount(group, points.bias)
    rest = np.bincount(group, points.weight * truth - points.wy) / sd
    square, free = float(np.sum(rest**2)), max(len(sd) - 2, 1)
    unexplained = square - free if special.chdtrc(free, square) < _LACK_OF_FIT else 0.0
    return np.sign(error) * (error / sd) ** 2, unexplained


def _shares(errors: _Array) -> tuple[float, float]:
    """Share of errors (in order of prediction) on one side, and share that changes sign once, each with its sign."""
    total = float(np.sum(np.abs(errors)))
    if not total > 0.0:
        return 0.0, 0.0
    upto = np.cumsum(errors)
    turned = upto[-1] - 2.0 * upto[:-1]
    turning = float(turned[np.argmax(np.abs(turned))]) if len(turned) else 0.0
    return float(upto[-1]) / total, turning / total
