"""The two stages of an audit, which differ in the expectation that they take of a report's score.

Interim: the events are fixed, only their outcomes are random. Ex ante: the events themselves are drawn at random from a
population before their outcomes are, and a report is a function of the kind of event.
"""

import functools
import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure, SortedReport
from truthcal.audits.outcomes import MAX_ENUMERATED, AllOutcomes, OutcomeSet, RandomOutcomes
from truthcal.core.checks import invalid
from truthcal.core.progress import progress

_Array = NDArray[np.float64]
_Kinds = NDArray[np.intp]
_Samples = list[tuple[_Kinds, NDArray[np.bool_]]]

# Events up to which a search of a few dozen reports enumerates all outcomes.
_MAX_TO_SEARCH = 6
# Draws for a search: fewer than for the audit, since it compares reports on the same ones, but at least this many.
_MIN_TO_SEARCH = 25
# Samples with their outcomes, in the ex ante stage, up to which all are enumerated; and in a search, where a slow
# measure may take milliseconds for each.
_MAX_SAMPLES, _MAX_SAMPLES_TO_SEARCH, _MAX_SLOW_TO_SEARCH = 1 << 14, 1 << 8, 1 << 5
# Rows of all random samples in the ex ante stage: about 3 GB.
_MAX_DRAWN_ROWS = 100_000_000


class Scored(NamedTuple):
    """A report with its expected score, and its score in each random outcome (empty if exact)."""

    report: _Array
    value: float
    draws: _Array


class InterimStage:
    """Events with these true probabilities, and the outcomes on which reports are compared."""

    thorough_search = True

    def __init__(self, truth: _Array, n_resamples: int, rng: np.random.Generator, slow_limit: int) -> None:
        self.truth, self._max_for_slow = truth, slow_limit
        self._random = RandomOutcomes(truth, n_resamples, rng)
        self._to_search = RandomOutcomes(truth, max(n_resamples // 8, _MIN_TO_SEARCH), rng)
        self._all = AllOutcomes(truth) if len(truth) <= MAX_ENUMERATED else None

    def truthful(self, measure: AuditedMeasure) -> bool:
        """Return whether it is proved that no lie can gain in this stage."""
        return measure.truthful

    def score(self, measure: AuditedMeasure, report: _Array, bar: progress, *, search: bool = False) -> Scored:
        """Expected score of a report; in a search, on fewer outcomes."""
        reported = SortedReport(report, self.truth)
        value = measure.expected(reported)
        if value is not None:
            return Scored(report, value, np.empty(0))
        outcomes = self._search_outcomes(measure) if search else self._outcomes(measure)
        values = measure.scores(reported, outcomes, bar)
        return Scored(report, outcomes.mean(values), np.empty(0) if outcomes.exact else values)

    def method(self, measure: AuditedMeasure) -> str:
        """Return the method that computes the scores."""
        if measure.expected(SortedReport(self.truth, self.truth)) is not None:
            return "decomposition"
        return "enumeration" if self._outcomes(measure).exact else "draws"

    def work(self, measure: AuditedMeasure, scored: int, tried: int) -> int:
        """Cost of scoring so many reports, and of trying so many in a search, for the progress bar."""
        if self.method(measure) == "decomposition":
            return 0
        count = self._outcomes(measure).count * scored + self._search_outcomes(measure).count * tried
        return measure.cost(len(self.truth)) * count

    def rarer_outcomes(self, changed: _Array) -> float:
        """Expected number of the rarer outcomes, in all draws, of the events with these true probabilities."""
        return self._random.count * float(np.sum(np.minimum(changed, 1.0 - changed)))

    def _outcomes(self, measure: AuditedMeasure) -> OutcomeSet:
        """All outcomes if that is fast enough, otherwise random ones."""
        if self._all is None or (measure.slow and len(self.truth) > self._max_for_slow):
            return self._random
        return self._all

    def _search_outcomes(self, measure: AuditedMeasure) -> OutcomeSet:
        """The outcomes for a search: fewer, and not the random ones used for scoring."""
        outcomes = self._outcomes(measure)
        return outcomes if outcomes.exact and len(self.truth) <= _MAX_TO_SEARCH else self._to_search


class ExAnteStage:
    """Samples of `n_rows` events, drawn from kinds of events with these true probabilities and relative frequencies."""

    thorough_search = False  # each sample has its own predictions: many times the work of an outcome

    def __init__(
        self, truth: _Array, n_rows: int, n_resamples: int, rng: np.random.Generator, frequency: _Array | None = None
    ) -> None:
        self.truth, self.n_rows, self._frequency = truth, n_rows, frequency
        equal = np.full(len(truth), 1.0 / len(truth))
        self._share = equal if frequency is None else frequency / np.sum(frequency)
        self._n_resamples, self._rng = n_resamples, rng
        self._n_to_search = max(n_resamples // 8, _MIN_TO_SEARCH)
        self._samples = math.comb(n_rows + len(truth) - 1, n_rows)

    def truthful(self, measure: AuditedMeasure) -> bool:
        """Return whether it is proved that no lie can gain in this stage."""
        return measure.truthful_ex_ante

    def score(self, measure: AuditedMeasure, report: _Array, bar: progress, *, search: bool = False) -> Scored:
        """Expected score of a report; in a search, on fewer samples."""
        value = measure.expected_ex_ante(SortedReport(report, self.truth, self._frequency), self.n_rows)
        if value is None and self._exact(measure, search):
            value = math.fsum(
                share * self._score_of_sample(measure, report, kinds, bar) for kinds, share in self._all_samples()
            )
        if value is not None:
            return Scored(report, value, np.empty(0))
        drawn = self._drawn[1] if search else self._drawn[0]
        values = np.array([self._score_of_draw(measure, report, kinds, y, bar) for kinds, y in drawn])
        return Scored(report, float(np.mean(values)), values)

    def method(self, measure: AuditedMeasure) -> str:
        """Return the method that computes the scores."""
        if measure.expected_ex_ante(SortedReport(self.truth, self.truth), self.n_rows) is not None:
            return "decomposition"
        return "enumeration" if self._exact(measure, search=False) else "draws"

    def work(self, measure: AuditedMeasure, scored: int, tried: int) -> int:
        """Cost of scoring so many reports, and of trying so many in a search, for the progress bar."""
        if self.method(measure) == "decomposition":
            return 0
        cases = self._samples * self._outcomes_of_sample(measure)
        count = cases if self._exact(measure, search=False) else self._n_resamples
        count_in_search = cases if self._exact(measure, search=True) else self._n_to_search
        return measure.cost(self.n_rows) * (count * scored + count_in_search * tried)

    def rarer_outcomes(self, changed: _Array) -> float:
        """Expected number of the rarer outcomes, in all draws, of the kinds with these true probabilities."""
        return self._n_resamples * self.n_rows / len(self.truth) * float(np.sum(np.minimum(changed, 1.0 - changed)))

    @functools.cached_property
    def _drawn(self) -> tuple[_Samples, _Samples]:
        """Random samples for scoring, and others for a search; drawn only if a measure needs them."""
        if self.n_rows * self._n_resamples > _MAX_DRAWN_ROWS:
            needed = f"{self._n_resamples:,} samples of {self.n_rows:,} rows would have to be drawn"
            raise invalid("n_rows", f"is too large: {needed}, more than {_MAX_DRAWN_ROWS:,} rows. Lower n_rows.")
        return self._draw(self._n_resamples), self._draw(self._n_to_search)

    def _draw(self, count: int) -> _Samples:
        kinds = self._rng.choice(len(self.truth), (count, self.n_rows), p=self._share)
        return list(zip(kinds, self._rng.random(kinds.shape) < self.truth[kinds], strict=True))

    def _all_samples(self) -> Iterator[tuple[_Kinds, float]]:
        """Yield all samples as sorted kinds, with their probabilities."""
        for kinds in itertools.combinations_with_replacement(range(len(self.truth)), self.n_rows):
            sample = np.array(kinds, np.intp)
            orders = math.factorial(self.n_rows) // math.prod(map(math.factorial, np.bincount(sample).tolist()))
            yield sample, orders * math.prod(self._share[sample].tolist())

    def _outcomes_of_sample(self, measure: AuditedMeasure) -> int:
        return 1 if measure.expected(SortedReport(self.truth, self.truth)) is not None else 2 ** min(self.n_rows, 62)

    def _exact(self, measure: AuditedMeasure, search: bool) -> bool:
        """Return whether all samples and outcomes are enumerated."""
        few = (_MAX_SLOW_TO_SEARCH if measure.slow else _MAX_SAMPLES_TO_SEARCH) if search else _MAX_SAMPLES
        return self._samples * self._outcomes_of_sample(measure) <= few

    def _score_of_sample(self, measure: AuditedMeasure, report: _Array, kinds: _Kinds, bar: progress) -> float:
        """Expected score of a sample, whose outcomes are random."""
        reported = SortedReport(report[kinds], self.truth[kinds])
        value = measure.expected(reported)
        if value is not None:
            return value
        outcomes = AllOutcomes(self.truth[kinds])
        return outcomes.mean(measure.scores(reported, outcomes, bar))

    def _score_of_draw(
        self, measure: AuditedMeasure, report: _Array, kinds: _Kinds, y: NDArray[np.bool_], bar: progress
    ) -> float:
        """Score of a sample with its outcomes; the expected score over all outcomes where that is known."""
        reported = SortedReport(report[kinds], self.truth[kinds])
        value = measure.expected(reported)
        bar.advance(measure.cost(self.n_rows))
        return float(measure.values(reported)(y[None, :])[0]) if value is None else value


Stage = InterimStage | ExAnteStage
