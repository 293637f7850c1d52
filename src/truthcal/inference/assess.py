"""The verdict: can these probabilities be trusted, what is wrong with them, what could these rows have shown?"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import check_level, check_whole
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.inference.calibration_test import calibration_test_of, summary_of
from truthcal.inference.cells import bucket_sample
from truthcal.inference.intervals import interval_of
from truthcal.inference.planning import detectable_of
from truthcal.measures.atb import atb_summary_of
from truthcal.measures.skill import brier_decomposition_of
from truthcal.results.assessment import Assessment, BiasedStretch, detects_large_errors
from truthcal.results.measures import ScoreDecomposition
from truthcal.results.tests import CalibrationTest, ConfidenceInterval
from truthcal.results.text import count, percent

_Array = NDArray[np.float64]

_POWER = 0.8
# To say that predictions are too good is to accuse somebody: it takes five times as small a p-value.
_ACCUSATION = 5.0
# A direction is named if the error along it is this many standard errors from 0, and about as improbable as all of it.
_CLEAR = 2.0
# And if both directions together explain at least this share of what ten bins show beyond chance.
_MOST_OF_IT, _BINS = 0.5, 10
# Predictions that run against outcomes by so many standard errors are worth a word.
_AGAINST = 4.0
# Fewer different predictions than this are worth a word, if there are many rows.
_COARSE = 20
# Biases below this are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Gaps:
    """Errors along the predictions: points `x` with the sums `c` of w c and `noise` of w^2 v."""

    x: _Array
    c: _Array
    noise: _Array

    def directions(self) -> tuple[float, float]:
        """How many standard errors predictions are too high, and too extreme beside that."""
        total = float(np.sum(self.noise))
        if not total > 0.0:  # predictions of 0 and 1: any error is beyond chance
            return math.copysign(math.inf, float(np.sum(self.c))), 0.0
        middle = float(np.sum(self.noise * self.x)) / total
        spread = float(np.sum(self.noise * (self.x - middle) ** 2))
        high = float(np.sum(self.c)) / math.sqrt(total)
        extreme = float(np.sum(self.c * (self.x - middle))) / math.sqrt(spread) if spread > 0.0 else 0.0
        return high, extreme

    def surplus(self) -> float:
        """How much the squared errors of ten bins of equal noise, in their variances, exceed what chance gives."""
        if not np.sum(self.noise) > 0.0:
            return 0.0
        share = np.cumsum(self.noise) - 0.5 * self.noise
        bins = (share * (_BINS / float(np.sum(self.noise)))).astype(np.int64)
        noise = np.bincount(bins, self.noise)
        some = noise > 0.0
        return float(np.sum(np.bincount(bins, self.c)[some] ** 2 / noise[some])) - np.count_nonzero(some)

    def kind(self, pvalue: float) -> str:
        """What is wrong with predictions that are: the clearer of two directions, if either explains the p-value."""
        high, extreme = self.directions()
        size = high**2 + extreme**2
        # Two normals have so large a square with probability exp(-size / 2).
        if size < _CLEAR**2 or size < _MOST_OF_IT * self.surplus() or math.exp(-size / 2.0) > 10.0 * pvalue:
            return "miscalibrated"
        if abs(high) >= abs(extreme):
            return "too high" if high > 0.0 else "too low"
        return "overconfident" if extreme > 0.0 else "underconfident"


@dataclass(frozen=True, slots=True)
class _Facts:
    """What sorted rows and sketches both know. `x`, `w`, `c`, `noise`: per point, sums of w, w c and w^2 v."""

    n: int
    ww: float
    x: _Array
    w: _Array
    c: _Array
    noise: _Array
    atb: float
    noise_floor: float
    excess: float
    brier: float
    decomposition: ScoreDecomposition
    distinct: int | None

    @classmethod
    def of(cls, summary: Sample | Sketch) -> "_Facts":
        return cls.of_sketch(summary) if isinstance(summary, Sketch) else cls.of_sample(summary)

    @classmethod
    def of_sample(cls, sample: Sample) -> "_Facts":
        s, groups = atb_summary_of(sample), sample.groups
        p = sample.p.astype(np.float64)
        starts = sample.starts
        return cls(
            n=sample.n,
            ww=1.0 / s.n_effective,
            x=groups.r,
            w=groups.w,
            c=groups.c,
            noise=np.add.reduceat(sample.w**2 * p * (1.0 - p), starts),
            atb=s.value,
            noise_floor=s.noise_floor,
            excess=s.excess,
            brier=s.brier,
            decomposition=brier_decomposition_of(sample),
            distinct=len(groups.r),
        )

    @classmethod
    def of_sketch(cls, sketch: Sketch) -> "_Facts":
        table, total = sketch.table(), sketch.weight
        atb, ww = sketch.atb().value, float(np.sum(table["ww"])) / total**2
        own = float(np.sum(table["wwcc"])) / total**2
        # Of the buckets as rows: what happens within them is in the score and in the uncertainty alike.
        coarse = brier_decomposition_of(bucket_sample(sketch))
        base = float(np.sum(table["weight"] * table["mean_true"])) / total
        uncertainty, brier = base * (1.0 - base), sketch.brier()
        miscalibration = max(brier - uncertainty + coarse.discrimination, 0.0)
        return cls(
            n=sketch.n,
            ww=ww,
            x=table["mean_proba"],
            w=table["weight"],
            c=table["pos"] - table["neg"],
            noise=table["wwv"],
            atb=atb,
            noise_floor=sketch.noise_floor(),
            excess=(atb - own) / (1.0 - ww) if ww < 1.0 else math.nan,
            brier=brier,
            decomposition=ScoreDecomposition(coarse.name, brier, miscalibration, coarse.discrimination, uncertainty),
            distinct=None,
        )

    @property
    def mean_proba(self) -> float:
        return float(np.sum(self.w * self.x) / np.sum(self.w))

    @property
    def mean_true(self) -> float:
        return min(max(self.mean_proba - float(np.sum(self.c) / np.sum(self.w)), 0.0), 1.0)

    def against(self) -> float:
        """How many standard errors predictions run against outcomes, were the two independent."""
        w, x = self.w / np.sum(self.w), self.x - self.mean_proba
        slope = float(np.sum(w * x * (self.x - self.c / self.w)))
        spread = float(np.sum(w * x * x)) * self.mean_true * (1.0 - self.mean_true) * self.ww
        return -slope / math.sqrt(spread) if spread > 0.0 else 0.0

    def stretch(self) -> BiasedStretch:
        """From where the cumulative bias is lowest to where it is highest, or the other way round."""
        curve = np.concatenate([[0.0], np.cumsum(self.c)])
        first, last = sorted((int(np.argmin(curve)), int(np.argmax(curve))))
        if first == last:  # no bias anywhere
            first, last = 0, len(self.x)
        w = float(np.sum(self.w[first:last]))
        bias = float(curve[last] - curve[first]) / w
        if abs(bias) < _ROUNDING:
            bias = 0.0
        return BiasedStretch(float(self.x[first]), float(self.x[last - 1]), bias, w / float(np.sum(self.w)))


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
    """Can these probabilities be trusted? The verdict in words, then the evidence.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Sketch
        Outcomes, 0/1; other labels need `pos_label`. Or a `Sketch` in place of all rows.
    y_proba, sample_weight, pos_label
        As for `calibration_test`.
    alpha : float, default 0.05
        Predictions are called miscalibrated if the p-value of `calibration_test` is at most this, and too good to be
        honest if the other tail is at most a fifth of it.
    confidence_level : float, default 0.95
        Of the intervals.
    n_resamples, rng
        As for `calibration_test`; with the default `rng` the same rows always get the same verdict.

    Returns
    -------
    Assessment
        Print it; ``.to_dict()`` for JSON. See there for the fields.

    Notes
    -----
    The test is multiscale ATB, which sees errors of every width; the size of the error is the root of the ATB without
    noise. "Too high" and "overconfident" (too extreme) are named by the clearer of two directions of the error. More
    than 2^20 rows are reduced to a sketch of 16,384 buckets first.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> outcome = rng.random(2000) < truth
    >>> print(tc.assess(outcome, truth).verdict)
    Calibrated as far as 2,000 rows can tell: an error of 0.029 or more would have been detected with 80% power.
    """
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    summary = summary_of(y_true, y_proba, sample_weight, pos_label)
    test = calibration_test_of(summary, "multiscale_atb", "auto", "two-sided", n_resamples, rng)
    return _assessed(summary, test, alpha, level)


def _assessed(summary: Sample | Sketch, test: CalibrationTest, alpha: float, level: float) -> Assessment:
    facts = _Facts.of(summary)
    rms = interval_of(summary, "rms", level, "auto")
    detectable = detectable_of(summary, _POWER, alpha, test.measure).largest
    kind = _kind(facts, test, alpha, detectable)
    return Assessment(
        kind=kind,
        verdict=_verdict(kind, facts, test, rms, detectable, alpha),
        atb=facts.atb,
        noise_floor=facts.noise_floor,
        excess=facts.excess,
        rms=math.sqrt(max(facts.excess, 0.0)) if not math.isnan(facts.excess) else math.nan,
        brier=facts.brier,
        rms_interval=rms,
        bias_interval=interval_of(summary, "bias", level, "auto"),
        test=test,
        detectable=detectable,
        largest_bias=facts.stretch(),
        decomposition=facts.decomposition,
        mean_proba=facts.mean_proba,
        mean_true=facts.mean_true,
        n=facts.n,
        n_effective=1.0 / facts.ww,
        warnings=tuple(_warnings(facts, test)),
        _summary=summary,
    )


def _kind(facts: _Facts, test: CalibrationTest, alpha: float, detectable: float) -> str:
    if test.greater <= alpha:
        return Gaps(facts.x, facts.c, facts.noise).kind(test.greater)
    if test.impossible:  # whatever the p-value, which does not look at them
        return "miscalibrated"
    if test.less <= alpha / _ACCUSATION:
        return "too good"
    return "too few rows" if math.isnan(detectable) and test.information > 0.0 else "calibrated"


_WRONG = {
    "too high": "Too high: predictions exceed what happens",
    "too low": "Too low: more happens than is predicted",
    "overconfident": "Overconfident: predictions are too extreme",
    "underconfident": "Underconfident: predictions are too timid",
    "miscalibrated": "Miscalibrated: predictions are off, but in no single direction",
}


def _verdict(
    kind: str, facts: _Facts, test: CalibrationTest, rms: ConfidenceInterval, detectable: float, alpha: float
) -> str:
    rows = count(facts.n, "row")
    if kind == "miscalibrated" and test.impossible and test.greater > alpha:
        return (
            f"Miscalibrated: {test.impossible:,} of {rows} had an outcome with a predicted chance of exactly 0.\n"
            f"No calibrated forecaster has that. The other rows show no miscalibration ({test.format_p(test.greater)})."
        )
    if kind in _WRONG:
        chance, ends = test.format_p(test.greater), f"{rms.low:.2g} to {rms.high:.2g}"
        size = f"The error is about {rms.estimate:.2g} ({percent(rms.confidence_level)}: {ends})"
        if math.isnan(rms.low):
            return f"{_WRONG[kind]} ({chance})."
        if kind == "miscalibrated":
            size = f"Errors change sign along the predictions and cancel in ATB (rms {rms.estimate:.2g}, {ends})"
        return f"{_WRONG[kind]} ({chance}).\n{size}.\nIt is worst {facts.stretch()}."
    if kind == "too good":
        return (
            f"Better than any honest forecaster could be ({test.format_p(test.less)}): "
            "were these predictions fitted on these labels?"
        )
    if kind == "too few rows":
        doubt = f"sum p(1 - p) is {test.information:.2g}"
        these = "like these leave" if facts.n != 1 else "like this leaves"
        return f"Too few rows to tell: {rows} {these} little to chance ({doubt}), so errors may not show."
    if test.information == 0.0:
        return f"Right every time: {rows} predicted with certainty, 0 or 1, and none of them wrong."
    far = "" if detects_large_errors(detectable, facts.mean_proba) else ", which is not far"
    power = f"an error of {detectable:.2g} or more would have been detected with 80% power"
    return f"Calibrated as far as {rows} can tell{far}: {power}."


def _warnings(facts: _Facts, test: CalibrationTest) -> list[str]:
    found = []
    if facts.against() > _AGAINST:
        found.append("predictions fall where outcomes rise: are they probabilities of the opposite event?")
    if facts.mean_true in (0.0, 1.0):
        found.append(f"all outcomes are {facts.mean_true:.0f}: nothing is known of the other class.")
    if test.impossible:
        found.append(
            f"predictions of exactly 0 or 1 were wrong ({test.impossible:,} of them): that cannot happen to a "
            "calibrated forecaster, whatever the p-value."
        )
    if facts.distinct is not None and facts.distinct < min(_COARSE, facts.n / 10):
        values = f"{facts.distinct} different values" if facts.distinct > 1 else "one value"
        found.append(f"predictions take only {values}: were they rounded or binned?")
    if facts.ww * facts.n > 2.0:
        found.append(f"weights are uneven: {facts.n:,} rows are worth {1.0 / facts.ww:,.1f} of equal weight.")
    if 0.0 < test.information < 5.0 and facts.n > 1:
        found.append(f"outcomes leave little to chance here: sum p(1 - p) is {test.information:.2g}.")
    return found
