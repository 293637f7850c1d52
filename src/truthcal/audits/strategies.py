"""Dishonest reports of a forecaster who knows the truth, and a search for the one with the best score."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]
Objective = Callable[[_Array], float]

SEARCHED = "searched"
# Events up to which all reports are searched; beyond, only a family of reports is tried.
_FEW, _MAX_GROUPS = 4, 64
_STEPS = tuple(0.5**k for k in range(2, 8))
# Estimated number of reports that a search adds, for the progress bar.
SEARCH_STEPS = 20


def constant_mean(truth: _Array) -> _Array:
    """Strategy: report the mean for every event."""
    return np.full(len(truth), truth.mean())


def shrink(truth: _Array, factor: float = 0.5) -> _Array:
    """Strategy: multiply the distance to the mean by `factor`."""
    mean = truth.mean()
    return np.asarray(np.clip(mean + factor * (truth - mean), 0.0, 1.0))


def sharpen(truth: _Array, power: float = 1.5) -> _Array:
    """Strategy: multiply the log-odds by `power`, computed from odds so that 0 and 1 are unchanged."""
    yes, no = truth**power, (1.0 - truth) ** power
    return np.asarray(yes / (yes + no))


def round_to_grid(truth: _Array, parts: int = 10) -> _Array:
    """Strategy: round to the nearest multiple of 1/parts."""
    return np.asarray(np.round(truth * parts) / parts)


def merge_neighbours(truth: _Array) -> _Array:
    """Strategy: replace pairs of neighbours by their mean; a last single one is unchanged."""
    return _report_group_means(truth, np.split(np.argsort(truth, kind="stable"), range(2, len(truth), 2)))


def _report_group_means(truth: _Array, groups: list[NDArray[np.intp]]) -> _Array:
    report = truth.copy()
    for group in groups:
        report[group] = truth[group].mean()
    return report


STRATEGIES: dict[str, Callable[[_Array], _Array]] = {
    "constant mean": constant_mean,
    "shrink": shrink,
    "sharpen": sharpen,
    "round to 0.1": round_to_grid,
    "merge neighbours": merge_neighbours,
}


def reports_to_try(truth: _Array) -> Iterator[_Array]:
    """Yield dishonest reports that are worth trying for any measure."""
    powers = (1 << k for k in range(min(len(truth) // 2, _MAX_GROUPS).bit_length()))
    order = np.argsort(truth, kind="stable")
    yield from (_report_group_means(truth, np.array_split(order, groups)) for groups in powers)  # means of neighbours
    yield from (shrink(truth, factor) for factor in (0.25, 0.75, 0.9))
    yield from (sharpen(truth, power) for power in (1.1, 1.25, 2.0))
    yield from (round_to_grid(truth, parts) for parts in (5, 20))


def search_report(truth: _Array, known: list[_Array], score: Objective, margin: float, thorough: bool) -> _Array:
    """Search for the best lie, the report with the lowest expected score; the truth unless a lie gains `margin`.

    For few events a pattern search starts from the best report so far; if `thorough`, from the best three.
    """
    search = _Search(score, margin)
    start = [truth, *known, *reports_to_try(truth)]
    for report in start:
        search.visit(report)
    if len(truth) > _FEW:
        for factor in (0.9, 0.75, 0.5):
            search.visit(shrink(search.best, factor))
        return search.best
    start.sort(key=search.score)
    for report in start[: 3 if thorough else 1]:
        search.descend(report)
    return search.best


class _Search:
    """The best report so far, and the scores of all reports tried."""

    def __init__(self, score: Objective, margin: float) -> None:
        self._expected, self._margin = score, margin
        self._seen: dict[bytes, float] = {}
        self.best = np.empty(0)
        self._least = np.inf

    def score(self, report: _Array) -> float:
        """Return the expected score, computed once for each report."""
        key = report.tobytes()
        if key not in self._seen:
            self._seen[key] = self._expected(report)
        return self._seen[key]

    def visit(self, report: _Array) -> None:
        """Score a report and keep it if it is the best so far."""
        value = self.score(report)
        if value < self._least - self._margin:
            self.best, self._least = report, value

    def descend(self, report: _Array) -> None:
        """Pattern search: move while a step lowers the score, then halve the step."""
        for step in _STEPS:
            moved = True
            while moved:
                here = self.score(report)
                nearby = min(_nearby_reports(report, step), key=self.score)
                moved = self.score(nearby) < here - self._margin
                report = nearby if moved else report
        self.visit(report)


def _nearby_reports(report: _Array, step: float) -> Iterator[_Array]:
    """Reports near a dishonest one: move one event, or all with the same report, since good lies have ties."""
    tied = [report == value for value in np.unique(report)]
    single = list(np.eye(len(report), dtype=np.bool_))
    for moving in tied if len(tied) == len(report) else tied + single:
        for change in (-step, step):
            yield np.where(moving, np.clip(report + change, 0.0, 1.0), report)
