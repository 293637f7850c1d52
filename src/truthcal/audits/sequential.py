"""The best policy of a forecaster who sees each outcome before the next report, by backward induction.

A measure does not depend on the order of the rows. So all that matters of the past is how often each report was made
with each outcome: a multiset of symbols 2 g + y, for the report grid[g] with the outcome y. Multisets of t symbols are
listed in colexicographic order, in which their positions are sums of binomial coefficients.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure, SortedReport, resolve_measure
from truthcal.audits.random_half import MEASURE_OF_HALF, is_subsampled

_Array = NDArray[np.float64]
_States = NDArray[np.uint8]
_Indices = NDArray[np.int64]

# Differences up to this size are rounding; between such reports the one nearest to the truth is chosen.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class OptimalPolicy:
    """The best policy on a grid of reports.

    Attributes
    ----------
    grid : ndarray
        The reports allowed.
    honest, best : float
        Expected loss of the truth and of the best policy.
    reports : dict
        Outcomes so far, as a string such as "01" -> the next report.
    """

    grid: _Array
    honest: float
    best: float
    reports: dict[str, float]


def count_states(n_rows: int, n_reports: int) -> int:
    """Return the number of multisets of `n_rows` symbols."""
    return math.comb(n_rows + 2 * n_reports - 1, n_rows)


class _StateSpace:
    """Multisets of up to `n_rows` symbols; `levels[t]` has those of t symbols, one a row, sorted within rows."""

    def __init__(self, n_rows: int, n_symbols: int) -> None:
        # Column i of this table: position of the multisets whose i-th symbol is the first of its kind.
        table = [[math.comb(symbol + i - 1, i) if i else 0 for i in range(n_rows + 2)] for symbol in range(n_symbols)]
        self._binomial: _Indices = np.array(table, np.int64)
        self.levels: list[_States] = [np.zeros((1, 0), np.uint8)]
        for t in range(1, n_rows + 1):
            shorter = self.levels[-1]
            parts = [
                np.pad(shorter[: math.comb(last + t - 1, t - 1)], ((0, 0), (0, 1)), constant_values=last)
                for last in range(n_symbols)
            ]
            self.levels.append(np.concatenate(parts))

    def index(self, states: _States) -> _Indices:
        """Position of sorted multisets of the same size."""
        return np.asarray(self._binomial[states, np.arange(1, states.shape[1] + 1)].sum(axis=1))

    def with_symbol(self, t: int, symbol: int) -> _Indices:
        """Position, in level t + 1, of each multiset of level t with one more symbol."""
        states, place = self.levels[t], np.arange(1, t + 1)
        later = states > symbol
        moved = self._binomial[states, place + later].sum(axis=1)
        return np.asarray(moved + self._binomial[symbol, t + 1 - later.sum(axis=1)])


def optimal_policy(truth: _Array, grid: _Array, measure: AuditedMeasure) -> OptimalPolicy:
    """Compute the best of all policies with reports in `grid`, sorted, which contains every value of the truth."""
    space = _StateSpace(len(truth), 2 * len(grid))
    sign = -1.0 if measure.higher_is_better else 1.0
    best = honest = sign * _final_scores(space, grid, measure)
    chosen = []
    for t in range(len(truth) - 1, -1, -1):
        children = [space.with_symbol(t, symbol) for symbol in range(2 * len(grid))]

        def expected(after: _Array, g: int, t: int = t, children: list[_Indices] = children) -> _Array:
            return np.asarray((1.0 - truth[t]) * after[children[2 * g]] + truth[t] * after[children[2 * g + 1]])

        nearest = np.argsort(np.abs(grid - truth[t]), kind="stable")
        losses = np.stack([expected(best, g) for g in nearest])
        pick = np.argmax(losses <= losses.min(axis=0) + _ROUNDING, axis=0)
        honest, best = expected(honest, int(nearest[0])), np.take_along_axis(losses, pick[None], axis=0)[0]
        chosen.append(nearest[pick])
    reports = _reports_after(space, grid, chosen[::-1])
    return OptimalPolicy(grid, float(honest[0]), float(best[0]), reports)


def _reports_after(space: _StateSpace, grid: _Array, chosen: list[NDArray[np.intp]]) -> dict[str, float]:
    """Report after each sequence of outcomes, given the index of the report in each state."""
    reports: dict[str, float] = {}
    past: dict[str, tuple[int, ...]] = {"": ()}
    for t, choice in enumerate(chosen):
        states = np.array(list(past.values()), np.uint8).reshape(len(past), t)
        index = choice[space.index(np.sort(states, axis=1))]
        reports |= zip(past, grid[index].tolist(), strict=True)
        past = {
            outcomes + str(y): (*symbols, 2 * int(g) + y)
            for (outcomes, symbols), g in zip(past.items(), index, strict=True)
            for y in (0, 1)
        }
    return reports


def _final_scores(space: _StateSpace, grid: _Array, measure: AuditedMeasure) -> _Array:
    """Score of every state in which all outcomes are known."""
    n = len(space.levels) - 1
    if not is_subsampled(measure):
        return _scores(space.levels[n], grid, measure)
    of_half = resolve_measure(MEASURE_OF_HALF[measure.name], "measure")
    sums = [t * _scores(states, grid, of_half) if t else np.zeros(1) for t, states in enumerate(space.levels)]
    total = np.zeros(len(space.levels[n]))
    for kept in itertools.product((False, True), repeat=n):
        total += sums[sum(kept)][space.index(space.levels[n][:, kept])]
    return total / (n * 2.0**n)


def _scores(states: _States, grid: _Array, measure: AuditedMeasure) -> _Array:
    """Score of each state: those with the same reports are scored together."""
    reports, outcomes = states >> 1, (states & 1).astype(np.bool_)
    distinct, group = np.unique(reports @ _digits(states.shape[1], len(grid)), return_inverse=True)
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(group, minlength=len(distinct)))[:-1])
    scores = np.empty(len(states))
    for part in parts:
        report = grid[reports[part[0]]]
        scores[part] = measure.values(SortedReport(report, report))(outcomes[part])
    return scores


def _digits(n_rows: int, base: int) -> NDArray[np.uint64]:
    """Place values of numbers with `n_rows` digits, which must be below 2^64."""
    return np.array([base**k for k in range(n_rows)], np.uint64)
