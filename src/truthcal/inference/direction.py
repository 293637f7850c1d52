"""The direction of a calibration error: too high, too low, overconfident or underconfident, if the evidence tells.

Evidence is a logistic recalibration (Cox): log-odds of the outcome = intercept + slope * log-odds of the prediction.
Its likelihood ratios show whether there is a shift (which has the sign of the bias) and a slope other than 1. Where
both are significant, the word is what describes most of the error: nearly all of it on one side is "too high" or "too
low", errors that change sign once are "overconfident" or "underconfident". If that line leaves most of the error
unexplained, the errors of groups of rows decide, and may show that there is no such direction: errors with the opposite
sign of the shift must not be significant (Gail and Simon 1985, a test of qualitative interactions).
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
# A shift or a slope is significant at 2.5%, and one of the two at 5%, if its likelihood ratio exceeds this.
_SIGNIFICANT = 5.024
# Shares of the error that must have one sign for "too high" or "too low": of the fitted line; of groups although the
# line fits, together with a smaller share of the line, since groups of rare events have most of the evidence but few of
# the rows; and of groups if it does not fit.
_ONE_SIDED_LINE, _ONE_SIDED_GROUPS, _ONE_SIDED_LINE_WITH_GROUPS, _ONE_SIDED_WITHOUT_LINE = 0.7, 0.85, 0.4, 0.7
# Without a line that fits: the share of the errors of groups that must change sign once for "overconfident" or
# "underconfident", and the level at which errors with the opposite sign of the shift rule out "too high" or "too low".
_TURNING, _OPPOSED = 0.95, 0.2
# The line does not fit if groups differ from it at this level.
_LACK_OF_FIT = 0.02
_STEPS, _LONGEST_STEP = 50, 10.0
# Predictions are reversed if their correlation with outcomes is below 0 by so many standard errors.
_AGAINST = 4.0
# Fewer rows of one outcome may be separated from the others by chance.
_FEWEST_SEPARATED = 10
# Observed frequencies closer to 0 or 1 than this are 0 or 1, up to rounding.
_ROUNDING = 1e-9


class Evidence(NamedTuple):
    """Evidence for a direction of the error.

    `shift`, `slope`: likelihood ratios of a shift, and of a slope given the shift, each with the sign of its direction:
    above 0 if predictions are too high, and too extreme. `fits`: whether the line explains most of the error.
    `line_side`: mean error over mean absolute error of the fitted line; `group_side`: the same of the squared errors of
    groups, with their signs; `group_turning`: the same, with errors below the best turning point counted as negative.
    `opposed`: p-value of the hypothesis that no group has an error with the opposite sign of the shift.
    """

    shift: float
    slope: float
    fits: bool
    line_side: float
    group_side: float
    group_turning: float
    opposed: float


def is_reversed(points: Points, n_effective: float) -> bool:
    """Whether predictions and outcomes are negatively correlated, by four standard errors or more."""
    w, x = points.weight / points.total, points.p - points.mean_proba
    slope = float(np.sum(w * x * (points.p - points.bias / points.weight)))
    spread = float(np.sum(w * x * x)) * points.mean_true * (1.0 - points.mean_true) / n_effective
    return spread > 0.0 and -slope > _AGAINST * math.sqrt(spread)


def is_separated(points: Points) -> bool:
    """Whether all events have larger predictions than all other rows, of which there are at least ten each."""
    frequency = np.clip(points.p - points.bias / points.weight, 0.0, 1.0)
    happened = frequency > 0.5
    rows = int(np.sum(points.n[happened])), int(np.sum(points.n[~happened]))
    pure = bool(np.all(np.minimum(frequency, 1.0 - frequency) < _ROUNDING))
    return pure and min(rows) >= _FEWEST_SEPARATED and bool(np.all(np.diff(happened.astype(np.int8)) >= 0))


def kind_of_error(points: Points, design_effect: float = 1.0) -> str:
    """Kind of a significant error for the verdict; "miscalibrated" if its direction is not clear.

    `design_effect`: number of rows with the information of one independent row, if rows belong together.
    """
    evidence = evidence_of(points, design_effect)
    if abs(evidence.shift) > _SIGNIFICANT and _is_one_sided(evidence):
        return "too high" if evidence.shift > 0.0 else "too low"
    if abs(evidence.slope) > _SIGNIFICANT and _turns(evidence):
        return "overconfident" if evidence.slope > 0.0 else "underconfident"
    return "miscalibrated"


def _is_one_sided(evidence: Evidence) -> bool:
    line, groups = (math.copysign(side, side * evidence.shift) for side in (evidence.line_side, evidence.group_side))
    if evidence.fits:
        slope = abs(evidence.slope) > _SIGNIFICANT
        with_groups = line >= _ONE_SIDED_LINE_WITH_GROUPS and groups >= _ONE_SIDED_GROUPS
        return not slope or line >= _ONE_SIDED_LINE or with_groups
    return groups >= _ONE_SIDED_WITHOUT_LINE and evidence.opposed > _OPPOSED


def _turns(evidence: Evidence) -> bool:
    return evidence.fits or math.copysign(evidence.group_turning, evidence.group_turning * evidence.slope) >= _TURNING


def evidence_of(points: Points, design_effect: float = 1.0) -> Evidence:
    """Fit the recalibration line, and compare it with groups of rows."""
    if len(points) > _CELLS:
        share = points.weight / points.total + points.wwv / max(float(np.sum(points.wwv)), 1e-300)
        points = points.runs(np.flatnonzero(np.diff(equal_cells(share, _CELLS), prepend=-1)))
    x = special.logit(np.clip(points.p, _SMALLEST, 1.0 - _SMALLEST))
    # Weights on the scale on which a row counts as one observation.
    scale = points.total / float(np.sum(points.ww)) / design_effect
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
    group_errors, rest = _compare_groups(points, truth, design_effect)
    fits = rest <= abs(shift) + abs(slope) - 2.0
    line_side, _ = _shares(points.weight * (points.p - truth))
    opposed = _test_of_zeros(group_errors[group_errors * shift < 0.0], len(group_errors))
    return Evidence(shift, slope, fits, line_side, *_shares(group_errors), opposed)


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


def _compare_groups(points: Points, truth: _Array, design_effect: float) -> tuple[_Array, float]:
    """Squared errors of groups in units of variance, with their signs, and how much a fitted truth leaves unexplained.

    The second is a sum of squares, too, minus its expectation, or 0 if it is not significant.
    """
    noise = points.ww * truth * (1.0 - truth)
    group = equal_cells(noise + 1e-12 * points.ww, _GROUPS)
    sd = np.sqrt(design_effect * np.bincount(group, np.maximum(noise, 1e-12 * points.ww)))
    error = np.bincount(group, points.bias)
    rest = np.bincount(group, points.weight * truth - points.wy) / sd
    square, free = float(np.sum(rest**2)), max(len(sd) - 2, 1)
    unexplained = square - free if special.chdtrc(free, square) < _LACK_OF_FIT else 0.0
    return np.sign(error) * (error / sd) ** 2, unexplained


def _test_of_zeros(squares: _Array, groups: int) -> float:
    """P-value of the squared errors of one sign, if no group has a true error of that sign.

    Under the least favourable hypothesis each group has this sign with probability 1/2: a mixture of chi-squared laws.
    """
    counts = np.arange(1, groups + 1)
    return float(special.comb(groups, counts) @ special.chdtrc(counts, float(np.sum(np.abs(squares))))) / 2.0**groups


def _shares(errors: _Array) -> tuple[float, float]:
    """Share of errors (in order of prediction) on one side, and share that changes sign once, each with its sign."""
    total = float(np.sum(np.abs(errors)))
    if not total > 0.0:
        return 0.0, 0.0
    upto = np.cumsum(errors)
    turned = upto[-1] - 2.0 * upto[:-1]
    turning = float(turned[np.argmax(np.abs(turned))]) if len(turned) else 0.0
    return float(upto[-1]) / total, turning / total
