"""What a forecaster who knows the truth might report instead, and a search for the lie that pays best."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]
Objective = Callable[[_Array], float]

SEARCHED = "searched"
# A search over all reports is affordable for so many events; beyond, only a family of reports is tried.
_FEW = 4
_STEPS = tuple(0.5**k for k in range(2, 8))
_MOST_GROUPS = 64


def constant_mean(truth: _Array) -> _Array:
    """The average for every event."""
    return np.full(len(truth), truth.mean())


def shrink(truth: _Array, kept: float = 0.5) -> _Array:
    """Part of the way to the mean."""
    mean = truth.mean()
    return np.asarray(np.clip(mean + kept * (truth - mean), 0.0, 1.0))


def sharpen(truth: _Array, power: float = 1.5) -> _Array:
    """Log-odds times `power`, as odds: so 0 and 1 stay where they are."""
    yes, no = truth**power, (1.0 - truth) ** power
    return np.asarray(yes / (yes + no))


def on_grid(truth: _Array, parts: int = 10) -> _Array:
    """Rounded to the nearest multiple of 1/parts."""
    return np.asarray(np.round(truth * parts) / parts)


def merge_neighbours(truth: _Array) -> _Array:
    """Pairs of neighbours at their mean; an odd one out stays as it is."""
    return _averaged(truth, np.split(np.argsort(truth, kind="stable"), range(2, len(truth), 2)))


def merge_into(truth: _Array, groups: int) -> _Array:
    """Groups of neighbours, of about equal size, each at its mean."""
    return _averaged(truth, np.array_split(np.argsort(truth, kind="stable"), groups))


def _averaged(truth: _Array, groups: list[NDArray[np.intp]]) -> _Array:
    report = truth.copy()
    for group in groups:
        report[group] = truth[group].mean()
    return report


LIES: dict[str, Callable[[_Array], _Array]] = {
    "constant mean": constant_mean,
    "shrink": shrink,
    "sharpen": sharpen,
    "round to 0.1": on_grid,
    "merge neighbours": merge_neighbours,
}


# --- the search -------------------------------------------------------------------------------------------------------


def family(truth: _Array) -> Iterator[_Array]:
    """Reports worth trying, whatever the measure."""
    groups = 1
    while groups <= min(len(truth) // 2, _MOST_GROUPS):
        yield merge_into(truth, groups)
        groups *= 2
    yield from (shrink(truth, kept) for kept in (0.25, 0.75, 0.9))
    yield from (sharpen(truth, power) for power in (1.1, 1.25, 2.0))
    yield from (on_grid(truth, parts) for parts in (5, 20))


# How many reports a search tries beyond those it is given, for the progress bar. An estimate.
TRIED = 20


def searched(truth: _Array, known: list[_Array], score: Objective, margin: float, thorough: bool) -> _Array:
    """The report of least expected score that can be found; the truth itself unless another is better by `margin`.

    For few events a pattern search follows from the best report so far; if `thorough`, from the best three.
    """
    search = _Search(score, margin)
    start = [truth, *known, *family(truth)]
    for report in start:
        search.visit(report)
    if len(truth) > _FEW:
        for kept in (0.9, 0.75, 0.5):
            search.visit(shrink(search.best, kept))
        return search.best
    start.sort(key=search.score)
    for report in start[: 3 if thorough else 1]:
        search.descend(report)
    return search.best


class _Search:
    """The best report so far, and the scores of all that were tried."""

    def __init__(self, score: Objective, margin: float) -> None:
        self._expected, self._margin = score, margin
        self._seen: dict[bytes, float] = {}
        self.best = np.empty(0)
        self._least = np.inf

    def score(self, report: _Array) -> float:
        """Expected score, computed once for each report."""
        key = report.tobytes()
        if key not in self._seen:
            self._seen[key] = self._expected(report)
        return self._seen[key]

    def visit(self, report: _Array) -> None:
        """Keep a report if it is the best so far."""
        value = self.score(report)
        if value < self._least - self._margin:
            self.best, self._least = report, value

    def descend(self, report: _Array) -> None:
        """Pattern search: move wherever a step lowers the score, halve the steps where none does."""
        for step in _STEPS:
            moved = True
            while moved:
                here = self.score(report)
                nearby = min(_moves(report, step), key=self.score)
                moved = self.score(nearby) < here - self._margin
                report = nearby if moved else report
        self.visit(report)


def _moves(report: _Array, step: float) -> Iterator[_Array]:
    """One event up or down, or all events of one report together: good lies have ties, and single moves break them."""
    tied = [report == value for value in np.unique(report)]
    single = list(np.eye(len(report), dtype=np.bool_))
    for moving in tied if len(tied) == len(report) else tied + single:
        for change in (-step, step):
            yield np.where(moving, np.clip(report + change, 0.0, 1.0), report)
