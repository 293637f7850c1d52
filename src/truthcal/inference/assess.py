"""The verdict: can these probabilities be trusted, what is wrong with them, and what error could have been detected?"""

import math
from typing import Any

import numpy as np

from truthcal.core.params import check_level, check_rng, check_whole
from truthcal.core.points import Points
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import refuse_labels, summarize
from truthcal.inference.calibration_test import ENOUGH_INFORMATION, Plan, calibration_test_of
from truthcal.inference.direction import kind_of_error
from truthcal.inference.error_size import error_size_of
from truthcal.inference.intervals import interval_of
from truthcal.inference.planning import detectable_of
from truthcal.inference.worst_stretch import worst_stretch_of
from truthcal.measures.atb import atb_summary_of
from truthcal.measures.decomposition import brier_decomposition_of
from truthcal.results.assessment import Assessment, detects_large_errors
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.measures import ScoreDecomposition
from truthcal.results.power import DetectableError
from truthcal.results.tests import CalibrationTest
from truthcal.results.text import count, percent, plural
from truthcal.results.worst_stretch import WorstStretch

_POWER = 0.8
# "Unusually close" has innocent causes more often than a calibration error has, so it requires a p-value five times
# smaller.
_STRICTER = 5.0
# Means up to this are those of rare events, for which a verdict gives the ratio of predicted to observed events.
_RARE = 0.05
# Where no event happened, the ratio has no upper limit: 1,000 stands for it.
_TINY = 1e-3
# Warn if predictions are negatively associated with outcomes by more standard errors than this.
_AGAINST = 4.0
# Warn if there are fewer distinct predictions than this and many rows.
_COARSE = 20


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
    hard: bool = False,
) -> Assessment:
    """Can these probabilities be trusted? Returns a verdict in words and the evidence.

    Parameters
    ----------
    y_true, y_proba, n_resamples, sample_weight, pos_label, hard
        As for `calibration_test`.
    alpha : float, default 0.05
        Predictions are called miscalibrated if the p-value of `calibration_test` is at most alpha, and unusually
        close to the outcomes if the p-value of the other tail is at most alpha / 5.
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
    The test uses multiscale ATB, which detects errors of every width. The size of the error is that of `error_size`.
    The verdict "too high" or "overconfident" (too extreme) follows from the bias and the slope of a logistic
    recalibration. More than 2^20 rows are first reduced to a sketch of 16,384 buckets.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> outcome = rng.random(2000) < truth
    >>> print(tc.assess(outcome, truth).verdict)
    Calibrated as far as 2,000 rows can tell: the error is at most 0.037 (95% confidence).
    Detectable with 80% power: a shift of 0.028 or more and log-odds slopes beyond 0.82 to 1.24.
    """
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    plan = Plan("auto", "greater", n_resamples, check_rng(rng), read_both=True)
    summary = summarize(
        y_true, y_proba, sample_weight, pos_label, binary=True, sketch_many=True, least_information=ENOUGH_INFORMATION
    )
    refuse_labels(summary.points(), hard)
    return _assess_summary(summary, calibration_test_of(summary, "multiscale_atb", plan), alpha, level)


def _assess_summary(summary: Sample | Sketch, test: CalibrationTest, alpha: float, level: float) -> Assessment:
    points, s = summary.points(), atb_summary_of(summary)
    error, bias = error_size_of(points, level), interval_of(summary, "bias", level, "auto")
    detectable, worst = detectable_of(points, _POWER, alpha, test.measure), worst_stretch_of(points, level)
    kind = _verdict_kind(points, test, alpha, detectable)
    return Assessment(
        kind=kind,
        verdict=_verdict_text(kind, points, test, error, bias, detectable, worst, alpha),
        atb=s.value,
        noise_floor=s.noise_floor,
        excess=s.excess,
        brier=s.brier,
        error=error,
        bias_interval=bias,
        test=test,
        pvalue_too_good=test.less,
        detectable=detectable,
        worst=worst,
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


def _verdict_kind(points: Points, test: CalibrationTest, alpha: float, detectable: DetectableError) -> str:
    if test.greater <= alpha:
        return kind_of_error(points)
    if test.impossible:  # the p-value does not account for impossible outcomes
        return "miscalibrated"
    if test.less <= alpha / _STRICTER:
        return "too good"
    return "too few rows" if math.isnan(detectable.largest) and test.information > 0.0 else "calibrated"


def _negative_correlation(points: Points) -> float:
    """Evidence for a warning: standard errors by which predictions and outcomes are negatively correlated."""
    w, x = points.weight / points.total, points.p - points.mean_proba
    slope = float(np.sum(w * x * (points.p - points.bias / points.weight)))
    spread = float(np.sum(w * x * x)) * points.mean_true * (1.0 - points.mean_true) * points.one_row
    return -slope / math.sqrt(spread) if spread > 0.0 else 0.0


# --- in words ---------------------------------------------------------------------------------------------------------


_CAUSES = (
    "Possible causes: they were fitted on these outcomes; outcomes exclude each other, such as both teams of a match\n"
    "or one-vs-rest columns; or the sample was stratified by the outcome."
)
_WRONG = {
    "too high": "Too high: predictions exceed the observed frequencies",
    "too low": "Too low: predictions are below the observed frequencies",
    "overconfident": "Overconfident: predictions are too extreme",
    "underconfident": "Underconfident: predictions are not extreme enough",
    "miscalibrated": "Miscalibrated: predictions are off, in no clear direction",
}


def _verdict_text(
    kind: str,
    points: Points,
    test: CalibrationTest,
    error: ConfidenceInterval,
    bias: ConfidenceInterval,
    detectable: DetectableError,
    worst: WorstStretch | None,
    alpha: float,
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
        lines = f"{_WRONG[kind]}.", f"{size}.", _word_ratio(points, bias), _word_worst(worst)
        return "\n".join(filter(None, lines))
    if kind == "too good":
        return f"Unusually close: predictions are closer to the outcomes than chance allows.\n{_CAUSES}"
    if kind == "too few rows":
        these = "these predictions carry" if points.rows != 1 else "this prediction carries"
        information = f"{these} too little information (sum p(1 - p) is {test.information:.2g})"
        return f"Too few rows: {rows} with {information} to detect errors."
    if test.information == 0.0:
        return f"Always right: all predictions are 0 or 1, and none is wrong ({rows})."
    little = "" if detects_large_errors(detectable.largest, points.mean_proba) else ", which is not much"
    calibrated = f"Calibrated as far as {rows} can tell{little}"
    if not math.isnan(error.high):
        calibrated += f": the error is at most {error.high:.2g} ({percent(error.confidence_level)} confidence)"
    return f"{calibrated}.\nDetectable with 80% power: {detectable.shapes}."


def _word_ratio(points: Points, bias: ConfidenceInterval) -> str:
    """Word the bias of rare events for a verdict, as a ratio; nothing for common events or an uncertain direction.

    The ratio is that of the mean prediction to the mean outcome, for each mean outcome in the interval of the bias.
    """
    mean = points.mean_proba
    if not (0.0 < min(mean, points.mean_true) <= _RARE and (bias.low > 0.0 or bias.high < 0.0)):
        return ""
    least, most = (f"{mean / max(mean - end, _TINY * mean):.2g}" for end in (bias.low, bias.high))
    ratio, level = f"{mean / points.mean_true:.2g}", percent(bias.confidence_level)
    return f"It predicts {ratio} times as many events as happen ({level}: {least} to {most})."


def _word_worst(worst: WorstStretch | None) -> str:
    """Word the place of the largest error for a verdict; nothing if no place is certain."""
    return f"Worst place: {worst};\n{worst.frequencies}." if worst else ""


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
