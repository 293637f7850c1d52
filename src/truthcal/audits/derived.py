"""Numbers derived from ATB and its test, by the names under which an audit knows them, and the Brier score.

Raw ATB is truthful. A root, a ratio, a difference or a p-value of it is another number, and lying may pay under it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.outcomes import Outcomes2D
from truthcal.core.points import excess
from truthcal.core.sample import Sample
from truthcal.inference.error_size import estimated_error
from truthcal.inference.laws.redraw import Outcomes
from truthcal.measures.registry import MEASURES

_Array = NDArray[np.float64]
Scores = Callable[[Outcomes2D], _Array]

# Level of the test behind "pass_rate", and the measure that `calibration_test` uses by default.
_LEVEL, _STATISTIC = 0.05, "information_atb"
# Number of outcomes up to which the law of a calibrated forecaster is enumerated; otherwise this many are drawn.
_MAX_CASES, _REDRAWS = 1 << 14, 999
# Relative differences of test statistics up to this size are rounding.
_TIED = 1e-9


@dataclass(frozen=True, slots=True)
class DerivedNumber:
    """A number derived from ATB or its test.

    Attributes
    ----------
    scores : callable
        Takes a sorted sample, whose outcomes are not used; returns the function from outcomes, in the order of the
        sample and one a row, to the number at each.
    expected, expected_ex_ante : callable
        Take a sorted sample whose outcomes are true probabilities; return the mean of the number for these events, and
        for random samples from these kinds of events, or None if there is no closed form.
    higher_is_better : bool
        Whether a forecaster wants a large value.
    truthful, truthful_ex_ante : bool
        Whether it is proved that no lie can gain, in the interim and in the ex ante stage.
    slow : bool
        Whether each outcome is scored on its own.
    """

    scores: Callable[[Sample], Scores]
    higher_is_better: bool = False
    truthful: bool = False
    truthful_ex_ante: bool = False
    slow: bool = False
    expected: Callable[[Sample], float | None] = lambda sample: None
    expected_ex_ante: Callable[[Sample], float | None] = lambda sample: None


def _atb_scores(sample: Sample) -> Scores:
    outcomes = Outcomes(sample)
    values = outcomes.values("atb")
    return lambda y: values(outcomes.grouped(y))


def _sqrt_atb(sample: Sample) -> Scores:
    atb = _atb_scores(sample)
    return lambda y: np.sqrt(atb(y))


def _atb_ratio(sample: Sample) -> Scores:
    """ATB over its noise floor; if both are 0, as for certain predictions that came true, 1."""
    atb, floor = _atb_scores(sample), sample.points().noise_floor

    def ratio(y: Outcomes2D) -> _Array:
        value = atb(y)
        return value / floor if floor > 0.0 else np.where(value > 0.0, math.inf, 1.0)

    return ratio


def _brier(sample: Sample) -> Scores:
    share = sample.w / sample.weight
    return lambda y: np.square(sample.p - y) @ share


def expected_brier(sample: Sample) -> float:
    """Mean Brier score of predictions whose outcomes are given as true probabilities."""
    share = sample.w / sample.weight
    return float((np.square(sample.p - sample.y) + sample.y * (1.0 - sample.y)) @ share)


def _excess(sample: Sample) -> Scores:
    atb, share = _atb_scores(sample), sample.w / sample.weight
    one_row = float(share @ share)
    if not one_row < 1.0:
        raise ValueError("the excess of ATB needs at least two events; do not audit it with one.")
    return lambda y: excess(atb(y), np.square(sample.p - y) @ share**2, np.full(len(y), one_row))


def _sqrt_excess(sample: Sample) -> Scores:
    values = _excess(sample)
    return lambda y: np.sqrt(np.maximum(values(y), 0.0))


def _error_size(sample: Sample) -> Scores:
    """Estimate of `error_size`, which needs rows: tied ones must not become one row of a larger weight."""
    w = sample.w if sample.weighted else None

    def error(y: Outcomes2D) -> _Array:
        rows = (Sample(sample.p, row.astype(np.uint8), w, sample.exponent) for row in y)
        return np.array([estimated_error(row.points()) for row in rows])

    return error


def _pvalue(sample: Sample) -> Scores:
    """p-value of the calibration test, against the law of a calibrated forecaster with these predictions."""
    outcomes = Outcomes(sample)
    values = outcomes.values(_STATISTIC)
    if outcomes.cases <= _MAX_CASES:
        blocks, chances = zip(*outcomes.all(), strict=True)
        null, chance, observed_too = np.concatenate([values(block) for block in blocks]), np.concatenate(chances), 0.0
    else:  # the same redraws for each report of this size
        null = values(outcomes.draw(np.random.default_rng(0), _REDRAWS))
        chance, observed_too = np.full(_REDRAWS, 1.0 / (1 + _REDRAWS)), 1.0 / (1 + _REDRAWS)
    order = np.argsort(null)
    null, at_least = null[order], np.append(np.cumsum(chance[order][::-1])[::-1], 0.0) + observed_too

    def pvalue(y: Outcomes2D) -> _Array:
        first = np.searchsorted(null, values(outcomes.grouped(y)) * (1.0 - _TIED) - _TIED * null[-1])
        return np.asarray(np.minimum(at_least[first], 1.0))

    return pvalue


def _pass_rate(sample: Sample) -> Scores:
    pvalue = _pvalue(sample)
    return lambda y: (pvalue(y) > _LEVEL).astype(np.float64)


DERIVED: dict[str, DerivedNumber] = {
    "brier": DerivedNumber(
        _brier, truthful=True, truthful_ex_ante=True, expected=expected_brier, expected_ex_ante=expected_brier
    ),
    "sqrt_atb": DerivedNumber(_sqrt_atb),
    "atb_ratio": DerivedNumber(_atb_ratio),
    "excess": DerivedNumber(_excess, truthful_ex_ante=True, expected_ex_ante=MEASURES["atb"].of_sample),
    "sqrt_excess": DerivedNumber(_sqrt_excess),
    "error_size": DerivedNumber(_error_size, slow=True),
    "pvalue": DerivedNumber(_pvalue, higher_is_better=True),
    "pass_rate": DerivedNumber(_pass_rate, higher_is_better=True),
}
