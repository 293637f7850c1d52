"""The best report of a forecaster who reports on all events before any outcome: scores, and a search."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure, SortedReport
from truthcal.audits.outcomes import MAX_ENUMERATED, AllOutcomes, OutcomeSet, RandomOutcomes
from truthcal.audits.random_half import with_coins
from truthcal.audits.stages import Scored
from truthcal.audits.strategies import STRATEGIES, reports_to_try, search_report
from truthcal.core.progress import progress

_Array = NDArray[np.float64]

# Coins (outcomes, and halves of subsampled measures) up to which a search enumerates them; the same for slow measures,
# and up to which scores of slow measures do.
_MAX_TO_SEARCH, _MAX_SLOW_TO_SEARCH, _MAX_SLOW = 8, 5, 8
# Random outcomes for a search, as a share of those for scoring, and at least.
_SEARCH_SHARE, _MIN_TO_SEARCH = 4, 25
# Work of a search in rows scored (a few seconds), and the number of reports that it tries.
_WORK, _MIN_TRIED, _MAX_TRIED = 1 << 25, 60, 2000
# Reports compared at the end of a search.
_CHOSEN = 5
# Starts of a descent, values tried for each block of events, most blocks, and steps of the refinement.
_STARTS, _VALUES, _MAX_BLOCKS = 3, 20, 16
_STEPS = tuple(0.5**k for k in range(3, 10))


class BatchScores:
    """Expected scores of reports on events with these true probabilities."""

    def __init__(self, measure: AuditedMeasure, truth: _Array, n_resamples: int, rng: np.random.Generator) -> None:
        self.measure, chances = with_coins(measure, truth)
        self.truth = truth
        coins, slow = len(chances), self.measure.slow
        few = coins <= (_MAX_SLOW if slow else MAX_ENUMERATED)
        self.outcomes: OutcomeSet = AllOutcomes(chances) if few else RandomOutcomes(chances, n_resamples, rng)
        self._to_search = self._to_choose = self.outcomes
        if coins > (_MAX_SLOW_TO_SEARCH if slow else _MAX_TO_SEARCH):
            draws = max(n_resamples // (4 * _SEARCH_SHARE if slow else _SEARCH_SHARE), _MIN_TO_SEARCH)
            self._to_search = RandomOutcomes(chances, draws, rng)
        if not few:
            self._to_choose = RandomOutcomes(chances, n_resamples, rng)

    @property
    def method(self) -> str:
        """The method that computes the scores."""
        if self.measure.expected(SortedReport(self.truth, self.truth)) is not None:
            return "decomposition"
        return "enumeration" if self.outcomes.exact else "draws"

    def score(self, report: _Array, bar: progress) -> Scored:
        """Expected score of a report."""
        return self._score_on(self.outcomes, report, bar)

    def search_loss(self, report: _Array, bar: progress) -> float:
        """Expected loss of a report, on other random outcomes than `score` uses."""
        return self.measure.loss(self._score_on(self._to_search, report, bar).value)

    def choose(self, reports: list[_Array], bar: progress) -> _Array:
        """Return the best of the first few reports, on outcomes that neither the search nor `score` uses if random."""
        return min(
            reports[:_CHOSEN], key=lambda report: self.measure.loss(self._score_on(self._to_choose, report, bar).value)
        )

    def _score_on(self, outcomes: OutcomeSet, report: _Array, bar: progress) -> Scored:
        reported = SortedReport(report, self.truth)
        value = self.measure.expected(reported)
        if value is not None:
            return Scored(report, value, np.empty(0))
        values = self.measure.scores(reported, outcomes, bar)
        return Scored(report, outcomes.mean(values), np.empty(0) if outcomes.exact else values)

    @property
    def work_of_report(self) -> int:
        """Cost of a report in a search, in rows."""
        n = len(self.truth)
        count = 1 if self.method == "decomposition" else self._to_search.count
        return count * self.measure.cost(n)

    @property
    def n_tried(self) -> int:
        """Number of reports that a search may try."""
        return int(np.clip(_WORK // self.work_of_report, _MIN_TRIED, _MAX_TRIED))


class ReportSearch:
    """Coordinate descent from several reports, until none improves or `n_tried` reports were tried."""

    def __init__(self, truth: _Array, loss: Callable[[_Array], float], margin: float, n_tried: int) -> None:
        self._truth, self._loss, self._margin, self._left = truth, loss, margin, n_tried
        self._seen: dict[bytes, float] = {}

    def run(self) -> list[_Array]:
        """Return the best reports found, best first: the end of each descent, and the known strategies."""
        truth = self._truth
        known = [truth, *(strategy(truth) for strategy in STRATEGIES.values()), *reports_to_try(truth)]
        known.append(search_report(truth, known, self.loss, self._margin, thorough=True))
        distinct = list({report.tobytes(): report for report in known}.values())
        distinct.sort(key=self.loss)
        budget, found = self._left, []
        for k, report in enumerate(distinct[:_STARTS]):
            self._left = budget * (k + 1) // _STARTS - budget * k // _STARTS
            found.append(self._refine(self._sweep(report)))
        return sorted([*found, *distinct], key=self.loss)

    def loss(self, report: _Array) -> float:
        """Return the loss of a report, computed once."""
        key = report.tobytes()
        if key not in self._seen:
            self._seen[key] = self._loss(report)
            self._left -= 1
        return self._seen[key]

    def _sweep(self, report: _Array) -> _Array:
        """Set blocks of neighbours, and tied events, to their best value: on a grid, of other events, or the truth."""
        order = np.argsort(self._truth, kind="stable")
        blocks = np.array_split(order, min(len(order), _MAX_BLOCKS))
        improved = True
        while improved and self._left > 0:
            before = report
            tied = [np.flatnonzero(report == level) for level in np.unique(report)]
            for block in blocks + (tied if len(tied) <= _MAX_BLOCKS else []):
                report = self._best(report, _with_block(report, block, self._truth))
            improved = report is not before
        return report

    def _refine(self, report: _Array) -> _Array:
        """Move tied reports together, and blocks of events, by smaller and smaller steps."""
        for step in _STEPS:
            improved = True
            while improved and self._left > 0:
                moved = self._best(report, _moved(report, step))
                report, improved = moved, moved is not report
        return report

    def _best(self, report: _Array, others: Iterator[_Array]) -> _Array:
        """Return the best of the others if it is better than the report, otherwise the report itself."""
        best = report
        for other in others:
            if self._left <= 0:
                break
            if self.loss(other) < self.loss(best) - self._margin:
                best = other
        return best


def _with_block(report: _Array, block: NDArray[np.intp], truth: _Array) -> Iterator[_Array]:
    """Yield the report with other values for a block of events."""
    others = np.unique(np.delete(report, block))
    if len(others) > _VALUES:
        others = others[np.linspace(0, len(others) - 1, _VALUES).astype(np.intp)]
    values = np.unique([*np.linspace(0.0, 1.0, _VALUES + 1), *others, truth[block].mean()])
    for value in (*values, truth[block]):
        changed = report.copy()
        changed[block] = value
        yield changed


def _moved(report: _Array, step: float) -> Iterator[_Array]:
    """Yield the report with all events of one value, or one of a few blocks, moved up and down."""
    levels = np.unique(report)
    blocks = [np.flatnonzero(report == level) for level in levels]
    if len(levels) > _MAX_BLOCKS:
        blocks = np.array_split(np.argsort(report, kind="stable"), _MAX_BLOCKS)
    elif len(levels) < len(report) <= _MAX_BLOCKS:
        blocks += list(np.arange(len(report))[:, None])
    for block in blocks:
        for change in (-step, step):
            moved = report.copy()
            moved[block] = np.clip(moved[block] + change, 0.0, 1.0)
            yield moved
