"""The verdict: can these probabilities be trusted, what is wrong with them, and what error could have been detected?"""

import math
from typing import Any

import numpy as np

from truthcal.core.params import check_level, check_rng, check_whole
from truthcal.core.points import Points
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize
from truthcal.inference.calibration_test import ENOUGH_INFORMATION, Plan, calibration_test_of
from truthcal.inference.error_size import error_size_of
from truthcal.inference.intervals import interval_of
from truthcal.inference.planning import detectable_of
from truthcal.measures.atb import atb_summary_of
from truthcal.measures.decomposition import brier_decomposition_of
from truthcal.results.assessment import Assessment, BiasedStretch, detects_large_errors
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.measures import ScoreDecomposition
from truthcal.results.tests import CalibrationTest
from truthcal.results.text import count, percent, plural

_POWER = 0.8
# "Too good" is an accusation, so it requires a p-value five times smaller.
_ACCUSATION = 5.0
# A direction is named only if the error along it is at least this many standard errors and about as improbable as the
# whole error,
_CLEAR = 2.0
# and if both directions together explain at least this share of the excess over chance in ten bins.
_LEAST_SHARE, _BINS = 0.5, 10
# Warn if predictions are negatively associated with outcomes by more standard errors than this.
_AGAINST = 4.0
# Warn if there are fewer distinct predictions than this and many rows.
_COARSE = 20
# Biases below this are rounding.
_ROUNDING = 1e-12


def assess(
    y_true: object,
    y_proba: object = None,
    *,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
) -> Assessment:
    """Can these probabilities be trusted? Returns a verdict in words and the evidence.

    Parameters
    ----------
    y_true, y_proba, n_resamples, sample_weight, pos_label
        As for `calibration_test`.
    alpha : float, default 0.05
        Predictions are called miscalibrated if the p-value of `calibration_test` is at most alpha, and too good to be
        honest if the p-value of the other tail is at most alpha / 5.
    confidence_level : float, default 0.95
        Confidence level of the intervals.
    rng : int, numpy Generator or None, default 0
        As for `calibration_test`; with the default the same rows always get the same verdict.

    Returns
    -------
    Assessment
        Print it, or call ``.to_dict()`` for JSON. Its docstring lists the fields.

    Notes
    -----
    The test uses multiscale ATB, which detects errors of every width. The size of the error is that of
    `error_size`. The verdict "too high" or "overconfident" (too extreme) is the clearer of two directions of the
    error. More than 2^20 rows are first reduced to a sketch of 16,384 buckets.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> outcome = rng.random(2000) < truth
    >>> print(tc.assess(outcome, truth).verdict)
    Calibrated as far as 2,000 rows can tell: an error of 0.031 or more would have been detected with 80% power.
    """
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    plan = Plan("auto", "greater", n_resamples, check_rng(rng), read_both=True)
    summary = summarize(
        y_true, y_proba, sample_weight, pos_label, binary=True, sketch_many=True, least_information=ENOUGH_INFORMATION
    )
    return _assess_summary(summary, calibration_test_of(summary, "multiscale_atb", plan), alpha, level)


def _assess_summary(summary: Sample | Sketch, test: CalibrationTest, alpha: float, level: float) -> Assessment:
    points, s = summary.points(), atb_summary_of(summary)
    error = error_size_of(points, level)
    detectable = detectable_of(points, _POWER, alpha, test.measure).largest
    kind = _verdict_kind(points, test, alpha, detectable)
    return Assessment(
        kind=kind,
        verdict=_verdict_text(kind, points, test, error, detectable, alpha),
        atb=s.value,
        noise_floor=s.noise_floor,
        excess=s.excess,
        brier=s.brier,
        error=error,
        bias_interval=interval_of(summary, "bias", level, "auto"),
        test=test,
        pvalue_too_good=test.less,
        detectable=detectable,
        largest_bias=_most_biased_stretch(points),
        decomposition=_assess_brier(summary, points, s.brier),
        mean_proba=points.mean_proba,
        mean_true=points.mean_true,
        n=s.n,
        n_effective=s.n_effective,
        warnings=tuple(_assessment_warnings(points, test)),
        _summary=summary,
    )


def _assess_brier(summary: Sample | Sketch, points: Points, brier: float) -> ScoreDecomposition:
    if not summary.sketched:
        return brier_decomposition_of(summary)
    # Each bucket is one row: variation within buckets is in both the score and the uncertainty.
    coarse = brier_decomposition_of(Sample(points.p, points.wy / points.weight, points.weight))
    uncertainty = points.mean_true * (1.0 - points.mean_true)
    miscalibration = max(brier - uncertainty + coarse.discrimination, 0.0)
    return ScoreDecomposition(coarse.name, brier, miscalibration, coarse.discrimination, uncertainty)


# --- the kind of error ------------------------------------------------------------------------------------------------


def _verdict_kind(points: Points, test: CalibrationTest, alpha: float, detectable: float) -> str:
    if test.greater <= alpha:
        return kind_of_error(points, test.greater)
    if test.impossible:  # the p-value does not account for impossible outcomes
        return "miscalibrated"
    if test.less <= alpha / _ACCUSATION:
        return "too good"
    return "too few rows" if math.isnan(detectable) and test.information > 0.0 else "calibrated"


def kind_of_error(points: Points, pvalue: float) -> str:
    """Kind of error in a verdict: the clearer of two directions of a significant error, if it explains the p-value."""
    high, extreme = _error_directions(points)
    size = high**2 + extreme**2
    # The sum of two squared normals exceeds `size` with probability exp(-size / 2).
    if size < _CLEAR**2 or size < _LEAST_SHARE * _excess_in_bins(points) or math.exp(-size / 2.0) > 10.0 * pvalue:
        return "miscalibrated"
    if abs(high) >= abs(extreme):
        return "too high" if high > 0.0 else "too low"
    return "overconfident" if extreme > 0.0 else "underconfident"


def _error_directions(points: Points) -> tuple[float, float]:
    """Evidence for the verdict: standard errors by which predictions are too high, and are too extreme."""
    x, c, noise = points.p, points.bias, points.wwv
    total = float(np.sum(noise))
    if not total > 0.0:  # predictions of 0 and 1: any error is beyond chance
        return math.copysign(math.inf, float(np.sum(c))), 0.0
    middle = float(np.sum(noise * x)) / total
    spread = float(np.sum(noise * (x - middle) ** 2))
    high = float(np.sum(c)) / math.sqrt(total)
    extreme = float(np.sum(c * (x - middle))) / math.sqrt(spread) if spread > 0.0 else 0.0
    return high, extreme


def _excess_in_bins(points: Points) -> float:
    """Evidence for the verdict: squared errors of ten bins, in units of their variances, minus the expected value."""
    total = float(np.sum(points.wwv))
    if not total > 0.0:
        return 0.0
    bins = ((np.cumsum(points.wwv) - 0.5 * points.wwv) * (_BINS / total)).astype(np.int64)
    noise = np.bincount(bins, points.wwv)
    filled = noise > 0.0
    return float(np.sum(np.bincount(bins, points.bias)[filled] ** 2 / noise[filled])) - np.count_nonzero(filled)


def _most_biased_stretch(points: Points) -> BiasedStretch:
    """Interval for the verdict: between the lowest and the highest point of the cumulative bias curve."""
    curve = np.concatenate([[0.0], np.cumsum(points.bias)])
    first, last = sorted((int(np.argmin(curve)), int(np.argmax(curve))))
    if first == last:  # no bias anywhere
        first, last = 0, len(points)
    weight = float(np.sum(points.weight[first:last]))
    bias = float(curve[last] - curve[first]) / weight
    if abs(bias) < _ROUNDING:
        bias = 0.0
    return BiasedStretch(float(points.p[first]), float(points.p[last - 1]), bias, weight / points.total)


def _negative_correlation(points: Points) -> float:
    """Evidence for a warning: standard errors by which predictions and outcomes are negatively correlated."""
    w, x = points.weight / points.total, points.p - points.mean_proba
    slope = float(np.sum(w * x * (points.p - points.bias / points.weight)))
    spread = float(np.sum(w * x * x)) * points.mean_true * (1.0 - points.mean_true) * points.one_row
    return -slope / math.sqrt(spread) if spread > 0.0 else 0.0


# --- in words ---------------------------------------------------------------------------------------------------------


_WRONG = {
    "too high": "Too high: predictions exceed the observed frequencies",
    "too low": "Too low: predictions are below the observed frequencies",
    "overconfident": "Overconfident: predictions are too extreme",
    "underconfident": "Underconfident: predictions are not extreme enough",
    "miscalibrated": "Miscalibrated: predictions are off, but not in a single direction",
}


def _verdict_text(
    kind: str, points: Points, test: CalibrationTest, error: ConfidenceInterval, detectable: float, alpha: float
) -> str:
    rows = count(points.rows, "row")
    if kind == "miscalibrated" and test.impossible and test.greater > alpha:
        return (
            f"Miscalibrated: {test.impossible:,} of {rows} had an outcome with a predicted probability of exactly 0.\n"
            "This cannot happen to a calibrated forecaster. "
            f"The other rows show no miscalibration ({test.format_p(test.greater)})."
        )
    if kind in _WRONG:
        if math.isnan(error.low):
            return f"{_WRONG[kind]}."
        size = f"The error is about {error.estimate:.2g} ({percent(error.confidence_level)}: {error.ends(2)})"
        return f"{_WRONG[kind]}.\n{size}.\nThe bias is largest {_most_biased_stretch(points)}."
    if kind == "too good":
        return (
            "Too good: predictions fit the outcomes better than the true probabilities could "
            f"({test.format_p(test.less)}).\nWere they fitted on these outcomes?"
        )
    if kind == "too few rows":
        these = "these predictions carry" if points.rows != 1 else "this prediction carries"
        information = f"{these} too little information (sum p(1 - p) is {test.information:.2g})"
        return f"Too few rows: {rows} with {information} to detect errors."
    if test.information == 0.0:
        return f"Always right: all predictions are 0 or 1, and none is wrong ({rows})."
    little = "" if detects_large_errors(detectable, points.mean_proba) else ", which is not much"
    power = f"an error of {detectable:.2g} or more would have been detected with 80% power"
    return f"Calibrated as far as {rows} can tell{little}: {power}."


def _assessment_warnings(points: Points, test: CalibrationTest) -> list[str]:
    warnings, n, one_row = [], points.rows, points.one_row
    if _negative_correlation(points) > _AGAINST:
        warnings.append(
            "predictions and outcomes are negatively correlated: are these probabilities of the opposite event?"
        )
    if points.mean_true in (0.0, 1.0):
        warnings.append(f"all outcomes are {points.mean_true:.0f}; there are no rows of the other class.")
    if test.impossible:
        wrong = f"{count(test.impossible, 'prediction')} of exactly 0 or 1 {plural(test.impossible, 'was', 'were')}"
        warnings.append(f"{wrong} wrong; this cannot happen to a calibrated forecaster, whatever the p-value.")
    if not points.sketched and len(points) < min(_COARSE, n / 10):
        values = f"{len(points)} different values" if len(points) > 1 else "one value"
        warnings.append(f"predictions take only {values}: were they rounded or binned?")
    if one_row * n > 2.0:
        warnings.append(f"weights are uneven: the effective sample size is {1.0 / one_row:,.1f}, not {n:,}.")
    if 0.0 < test.information < 5.0 and n > 1:
        warnings.append(f"the predictions carry little information: sum p(1 - p) is {test.information:.2g}.")
    if test.dependence:
        warnings.append(test.dependence)
    return warnings
