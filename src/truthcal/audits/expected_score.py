"""The expected score of a report when outcomes follow known chances, under any measure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.cases import MOST_ENUMERATED, Cases, Drawn, Everything, Outcomes2D, each_value
from truthcal.core.checks import Checked, check_report, refuse_wide_weight
from truthcal.core.params import check_rng, check_score, check_whole, refuse_weight_of_callable, shown
from truthcal.core.progress import progress
from truthcal.core.sample import Sample, relative_weights
from truthcal.inference.laws.outcomes import Outcomes
from truthcal.measures.registry import MEASURES
from truthcal.measures.ubse import Binning, QuantileBins
from truthcal.results.audit import ExpectedScore

_Array = NDArray[np.float64]
MeasureLike = str | Binning | Callable[[Any, Any], float]

# Cost of an outcome under a slow measure, in rows that a fast one takes in the same time (2 cores: 1 to 5 ms a call).
_SLOW_CALL = 1 << 12


class Reported:
    """A report in sorted order with the truth beside it, as a sample whose outcomes are the true chances."""

    def __init__(self, report: _Array, truth: _Array, weight: _Array | None = None) -> None:
        self.report = report
        self.order = np.argsort(report, kind="stable")
        w, exponent = (None, 0) if weight is None else relative_weights(weight)
        self.sample = Sample(
            report[self.order] + 0.0,  # turns -0.0 into 0.0
            truth[self.order] + 0.0,
            None if w is None else w[self.order],
            exponent,
        )
        by_truth = np.argsort(truth)
        self.honest = Sample(truth[by_truth] + 0.0, truth[by_truth] + 0.0, None if w is None else w[by_truth], exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A measure made ready for expectations.

    Attributes
    ----------
    name : str
        What it is called in results.
    truthful : bool
        Whether no lie can gain, by proof.
    values : callable
        Of a report: the function from a block of outcomes, in the user's order of rows, to the value of each.
    expected : callable
        Of a report: its expected score in closed form, or None if there is none.
    tolerance : float
        How far a value may be from the exact one.
    slow : bool
        Whether an outcome takes milliseconds, or may do so.
    own : bool
        Whether this is a user's function: it must stay in the caller's thread.
    """

    name: str
    truthful: bool
    values: Callable[[Reported], Callable[[Outcomes2D], _Array]]
    expected: Callable[[Reported], float | None]
    tolerance: float = 0.0
    slow: bool = False
    own: bool = False

    def cost(self, events: int) -> int:
        """What an outcome costs, in rows that a quick measure takes in the same time."""
        return max(events, _SLOW_CALL) if self.slow else events

    def scores(self, reported: Reported, cases: Cases, bar: progress) -> _Array:
        """The score of a report in every case."""
        return each_value(self.values(reported), cases, self.cost(reported.sample.n), not self.own, bar)


# --- the three kinds of measures --------------------------------------------------------------------------------------


def criterion(measure: Any, argument: str, name: str | None = None) -> Criterion:
    """A measure as the user may name it."""
    known = getattr(measure, "__name__", None)
    if known in MEASURES and MEASURES[known].function is measure:  # a public function: its row says more about it
        return _named(known, name or known)
    if isinstance(measure, str) and measure in MEASURES:
        return _named(measure, name or measure)
    if isinstance(measure, Binning):
        return _binned(measure, name or repr(measure))
    if callable(measure) and not isinstance(measure, type):
        return _own(measure, name or str(getattr(measure, "__name__", "own measure")))
    if isinstance(measure, type):
        raise TypeError(f"`{argument}` has the class {measure.__name__}; pass an instance, {measure.__name__}(...).")
    raise ValueError(
        f"`{argument}` must be one of {', '.join(repr(key) for key in MEASURES)}; or a Binning; or a function "
        f"f(y_true, y_proba) -> float. Got {shown(measure)}."
    )


def _named(key: str, name: str) -> Criterion:
    measure = MEASURES[key]

    def expected(reported: Reported) -> float | None:
        # Every truthful row is a UBSE: its expected value is its value at the true chances plus the noise of honest
        # reports. Not if weights are repetitions, since a row has one outcome here, however heavy it is.
        floor = measure.noise_floor
        if not measure.truthful or floor is None or (measure.whole_weights and reported.sample.weighted):
            return None
        return measure.of_sample(reported.sample) + floor(reported.honest)

    return Criterion(
        name=name,
        truthful=measure.truthful,
        values=lambda reported: _of_groups(reported, lambda outcomes: outcomes.values(key), not measure.batched),
        expected=expected,
        tolerance=measure.tolerance if measure.tolerance > 0.0 else 0.0,
        slow=measure.slow,
    )


def _binned(binning: Binning, name: str) -> Criterion:
    def expected(reported: Reported) -> float | None:
        if isinstance(binning, QuantileBins) and reported.sample.weighted:  # as above
            return None
        return binning.ubse_of(reported.sample) + binning.noise_of(reported.sample, reported.sample.y)

    def values(outcomes: Outcomes) -> Callable[[_Array], _Array]:
        return lambda positive: np.array([binning.ubse_of(outcomes.with_positives(row)) for row in positive])

    return Criterion(
        name=name, truthful=True, values=lambda reported: _of_groups(reported, values, True), expected=expected
    )


def _of_groups(
    reported: Reported, prepare: Callable[[Outcomes], Callable[[_Array], _Array]], one_by_one: bool
) -> Callable[[Outcomes2D], _Array]:
    outcomes = Outcomes(reported.sample)
    value = prepare(outcomes)
    order = reported.order
    if not one_by_one or len(outcomes.r) == reported.sample.n:
        return lambda y: value(outcomes.grouped(y[:, order]))

    def of_different(y: Outcomes2D) -> _Array:  # tied reports: many outcomes are one and the same to the measure
        different, which = np.unique(outcomes.grouped(y[:, order]), axis=0, return_inverse=True)
        return value(different)[which]

    return of_different


def _own(function: Callable[[Any, Any], float], name: str) -> Criterion:
    def values(reported: Reported) -> Callable[[Outcomes2D], _Array]:
        report = reported.report.copy()
        report.flags.writeable = False

        def each(y: Outcomes2D) -> _Array:
            labels = y.astype(np.int64)
            labels.flags.writeable = False
            return np.array([check_score(function(row, report), name, row) for row in labels])

        return each

    return Criterion(name=name, truthful=False, values=values, expected=lambda reported: None, slow=True, own=True)


# --- the public function ----------------------------------------------------------------------------------------------


def expected_score(
    report: object,
    truth: object,
    measure: MeasureLike = "atb",
    *,
    sample_weight: object = None,
    n_resamples: int = 1000,
    rng: Any = 0,
) -> ExpectedScore:
    """What a report scores on average, under any measure, when outcomes really follow `truth`.

    Parameters
    ----------
    report : array-like of shape (n,)
        Reported probabilities.
    truth : array-like of shape (n,)
        True probabilities of the outcomes, which are independent.
    measure : str, Binning or callable, default "atb"
        A name in `MEASURES`; a `Binning`, for its UBSE; or a function ``f(y_true, y_proba) -> float`` of an array of
        0/1 outcomes and the report, both read-only and in the order given here.
    sample_weight : array-like of shape (n,), optional
        As for `atb`; rows of weight 0 are left out. A row has one outcome, however heavy it is. Not for a function.
    n_resamples : int, default 1000
        Number of random outcomes where nothing exact is known.
    rng : int, numpy Generator or None, default 0
        Source of randomness; with the default the same input always gives the same value. None draws a new seed.

    Returns
    -------
    ExpectedScore
        ``value``, ``standard_error`` (0 if exact) and ``method``. Up to 14 rows every outcome is gone through
        ("enumeration") and listed in ``outcomes``, ``probabilities`` and ``values``. Beyond, and for a `Binning` with
        any number of rows, the expected value of a UBSE is known in closed form ("decomposition"). Otherwise outcomes
        are drawn ("draws").

    Notes
    -----
    The decomposition is that of `expected_ubse`: UBSE(report, truth) plus noise that no report can change. It does not
    hold for quantile bins with weights, which stand for repetitions there: these are enumerated or drawn.

    Where events are so rare that few draws have any, the standard error knows too little: raise `n_resamples`.

    Examples
    --------
    >>> from truthcal import expected_score
    >>> truth = [0.25, 0.75]
    >>> print(expected_score(truth, truth, "smcal"))
    expected smcal 0.234375, exact: all 4 outcomes
    >>> print(expected_score([0.5, 0.5], truth, "smcal"))
    expected smcal 0.1875, exact: all 4 outcomes
    """
    chosen = criterion(measure, "measure")
    if chosen.own:
        refuse_weight_of_callable(sample_weight)
    rows = check_report(report, truth, sample_weight)
    n_resamples = check_whole(n_resamples, "n_resamples", 2)
    generator = check_rng(rng)
    reported = _reported(rows)
    few = len(rows.p) <= MOST_ENUMERATED
    if not few or isinstance(measure, Binning):
        value = chosen.expected(reported)
        if value is not None:
            return ExpectedScore(chosen.name, value, 0.0, "decomposition")
    cases: Cases = Everything(rows.y) if few else Drawn(rows.y, n_resamples, generator)
    with progress(cases.count * chosen.cost(len(rows.p)), f"expected {chosen.name}") as bar:
        values = chosen.scores(reported, cases, bar)
    return _finished(chosen.name, cases, values)


def _reported(rows: Checked) -> Reported:
    if rows.w is not None:
        refuse_wide_weight(rows.w)
    return Reported(rows.p.astype(np.float64), rows.y, rows.w)


def _finished(name: str, cases: Cases, values: _Array) -> ExpectedScore:
    value, error = cases.mean(values), cases.error(values)
    if not isinstance(cases, Everything):
        return ExpectedScore(name, value, error, "draws", n_resamples=cases.count)
    table = (cases.all.astype(np.uint8), cases.probabilities, values)
    for column in table:
        column.flags.writeable = False
    return ExpectedScore(name, value, error, "enumeration", 0, *table)
