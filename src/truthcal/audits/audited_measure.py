"""Measures prepared for expectations: scores of a report in many outcomes, and expected scores in closed form."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.derived import DERIVED, expected_brier
from truthcal.audits.outcomes import Outcomes2D, OutcomeSet, score_outcomes
from truthcal.core.checks import invalid, read_only
from truthcal.core.params import shown
from truthcal.core.progress import progress
from truthcal.core.sample import Sample, relative_weights
from truthcal.inference.laws.redraw import Outcomes
from truthcal.measures.registry import MEASURES
from truthcal.measures.ubse import Binning, QuantileBins

_Array = NDArray[np.float64]
MeasureLike = str | Binning | Callable[[Any, Any], float]

# Cost of an outcome under a slow measure, in rows that a fast one takes in the same time (2 cores: 1 to 5 ms a call).
_SLOW_CALL = 1 << 12


class SortedReport:
    """A report in sorted order, as a sample whose outcomes are the true probabilities."""

    def __init__(self, report: _Array, truth: _Array, weight: _Array | None = None) -> None:
        self.report = report
        self.order = np.argsort(report, kind="stable")
        w, exponent = (None, 0) if weight is None else relative_weights(weight)
        self.sample = _sample_of_report(report, truth, w, exponent, self.order)
        self.honest = _sample_of_report(truth, truth, w, exponent, np.argsort(truth))


def _sample_of_report(p: _Array, y: _Array, w: _Array | None, exponent: int, order: NDArray[np.intp]) -> Sample:
    return Sample(p[order] + 0.0, y[order] + 0.0, None if w is None else w[order], exponent)  # -0.0 becomes 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedMeasure:
    """A measure prepared for expectations.

    Attributes
    ----------
    name, truthful, truthful_ex_ante : str, bool, bool
        Name in results; whether it is proved that no lie can gain, in the interim and in the ex ante stage.
    values : callable
        Takes a report; returns the function from a block of outcomes, in the user's order of rows, to their values.
    expected : callable
        Takes a report; returns its expected score in closed form, or None if there is none.
    expected_ex_ante : callable
        Takes a report for each kind of event in a population, and the size of a sample; returns the expected score of
        random samples in closed form, or None if there is none.
    tolerance, slow : float, bool
        Largest error of a value; whether an outcome may take milliseconds.
    user_defined : bool
        Whether this is a user's function, which must run in the caller's thread.
    higher_is_better : bool
        Whether a forecaster wants a high score.
    """

    name: str
    truthful: bool
    truthful_ex_ante: bool
    values: Callable[[SortedReport], Callable[[Outcomes2D], _Array]]
    expected: Callable[[SortedReport], float | None]
    expected_ex_ante: Callable[[SortedReport, int], float | None] = lambda reported, n_rows: None
    tolerance: float = 0.0
    slow: bool = False
    user_defined: bool = False
    higher_is_better: bool = False

    def loss(self, score: float) -> float:
        """Score with the sign that makes lower better."""
        return -score if self.higher_is_better else score

    def cost(self, events: int) -> int:
        """Cost of an outcome, in rows of a fast measure."""
        return max(events, _SLOW_CALL) if self.slow else events

    def scores(self, reported: SortedReport, outcomes: OutcomeSet, bar: progress) -> _Array:
        """Score a report in every outcome."""
        values, cost = self.values(reported), self.cost(reported.sample.n)
        return score_outcomes(values, outcomes, cost, not self.user_defined, bar)


def resolve_measure(measure: Any, argument: str, name: str | None = None) -> AuditedMeasure:
    """Look up the measure whose expected score is wanted: named or passed by the user."""
    known = str(getattr(measure, "__name__", ""))
    if known in MEASURES and MEASURES[known].function is measure:  # a public function: its row says more about it
        return _audited_measure(known, name or known)
    if isinstance(measure, str) and measure in MEASURES:
        return _audited_measure(measure, name or measure)
    if isinstance(measure, str) and measure in DERIVED:
        return _audited_derived_number(measure, name or measure)
    if isinstance(measure, Binning):
        return _audited_binning(measure, name or repr(measure))
    if callable(measure) and not isinstance(measure, type):
        return _audited_function(measure, name or str(getattr(measure, "__name__", "own measure")))
    if isinstance(measure, type):
        raise TypeError(f"`{argument}` got the class {measure.__name__}; pass an instance, {measure.__name__}(...).")
    names = ", ".join(map(repr, [*MEASURES, *DERIVED]))
    rule = f"must be one of {names}; or a Binning; or a function f(y_true, y_proba) -> float"
    raise invalid(argument, f"{rule}. Got {shown(measure)}.")


def _audited_measure(key: str, name: str) -> AuditedMeasure:
    measure = MEASURES[key]

    def expected(reported: SortedReport) -> float | None:
        # Every truthful measure is a UBSE: its expected value is its value at the true probabilities plus the noise of
        # honest reports. This does not hold if weights are repetitions, since here each row has one outcome.
        floor = measure.noise_floor
        if not measure.truthful or floor is None or (measure.whole_weights and reported.sample.weighted):
            return None
        return measure.of_sample(reported.sample) + floor(reported.honest)

    def expected_ex_ante(reported: SortedReport, n_rows: int) -> float | None:
        # With a kernel that does not depend on the sample, which is 1 for equal predictions: a row with itself gives
        # the Brier score, and two different rows give the value of the population.
        if len(measure.tent_widths) != 1:
            return None
        pairs = measure.of_sample(reported.sample) * (n_rows - 1)
        return (expected_brier(reported.sample) + pairs) / n_rows

    return AuditedMeasure(
        name=name,
        truthful=measure.truthful,
        truthful_ex_ante=measure.truthful,
        values=lambda reported: _scores_by_group(reported, lambda outcomes: outcomes.values(key), not measure.batched),
        expected=expected,
        expected_ex_ante=expected_ex_ante,
        tolerance=measure.tolerance if measure.tolerance > 0.0 else 0.0,
        slow=measure.slow,
    )


def _audited_binning(binning: Binning, name: str) -> AuditedMeasure:
    def expected(reported: SortedReport) -> float | None:
        if isinstance(binning, QuantileBins) and reported.sample.weighted:  # as above
            return None
        return binning.ubse_of(reported.sample) + binning.noise_of(reported.sample, reported.sample.y)

    def values(outcomes: Outcomes) -> Callable[[_Array], _Array]:
        return lambda positive: np.array([binning.ubse_of(outcomes.with_positives(row)) for row in positive])

    return AuditedMeasure(
        name=name,
        truthful=True,
        truthful_ex_ante=True,
        values=lambda reported: _scores_by_group(reported, values, True),
        expected=expected,
    )


def _audited_derived_number(key: str, name: str) -> AuditedMeasure:
    derived = DERIVED[key]

    def values(reported: SortedReport) -> Callable[[Outcomes2D], _Array]:
        scores, order = derived.scores(reported.sample), reported.order
        return lambda y: scores(y[:, order])

    return AuditedMeasure(
        name=name,
        truthful=derived.truthful,
        truthful_ex_ante=derived.truthful_ex_ante,
        values=values,
        expected=lambda reported: derived.expected(reported.sample),
        expected_ex_ante=lambda reported, n_rows: derived.expected_ex_ante(reported.sample),
        higher_is_better=derived.higher_is_better,
        slow=derived.slow,
    )


def _scores_by_group(
    reported: SortedReport, prepare: Callable[[Outcomes], Callable[[_Array], _Array]], one_by_one: bool
) -> Callable[[Outcomes2D], _Array]:
    outcomes = Outcomes(reported.sample)
    value = prepare(outcomes)
    order = reported.order
    if not one_by_one or len(outcomes.r) == reported.sample.n:
        return lambda y: value(outcomes.grouped(y[:, order]))

    def of_distinct(y: Outcomes2D) -> _Array:  # with tied reports many outcomes have the same value
        distinct, index = np.unique(outcomes.grouped(y[:, order]), axis=0, return_inverse=True)
        return value(distinct)[index]

    return of_distinct


def _audited_function(function: Callable[[Any, Any], float], name: str) -> AuditedMeasure:
    def values(reported: SortedReport) -> Callable[[Outcomes2D], _Array]:
        report = read_only(reported.report.copy())

        def score(y: Outcomes2D) -> _Array:
            labels = read_only(y.astype(np.int64))
            return np.array([_check_score(function(row, report), name, row) for row in labels])

        return score

    return AuditedMeasure(
        name=name,
        truthful=False,
        truthful_ex_ante=False,
        values=values,
        expected=lambda reported: None,
        slow=True,
        user_defined=True,
    )


def _check_score(value: Any, name: str, y: NDArray[Any]) -> float:
    """Check the value that a user's own measure returned for the outcomes `y`: a finite number."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"the measure {name!r} must return a finite number for all outcomes; it returned {shown(value)} for "
            f"y_true = {shown(y.tolist())}. Return a number there, or choose a truth for which this cannot occur."
        )
    return number
