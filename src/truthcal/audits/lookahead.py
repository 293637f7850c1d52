"""Policies of a forecaster who sees each outcome before the next report, for sequences too long for an optimal one.

Each report minimises the expected increase of a UBSE, so that it cancels the bias of earlier ones, plus a penalty.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure, SortedReport
from truthcal.audits.outcomes import Outcomes2D

_Array = NDArray[np.float64]

# Values of the parameters of a policy that a search tries.
_CHOICES: dict[str, tuple[float, ...]] = {
    "levels": (4, 8, 16, 32, 64),
    "reach": (1, 4, 64),
    "width": (2.0, 1.0, 0.25),
    "penalty": (0.25, 1.0, 4.0, 16.0),
    "pooling": (0.0, 1.0),
}
_SWEEPS = 2
# Penalty per unit of distance to the truth that decides between equal reports.
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class LookaheadPolicy:
    """A policy that looks one report ahead.

    It reports the value r of a grid that minimises 2 (r - t) B(r) + penalty (r - a)^2, where t is the true probability,
    a is t, or the mean truth if `pooling` is 1, and B(r) is the sum of (r_s - y_s) max(0, 1 - |r - r_s| / width) over
    the past. With a penalty of 1 and without pooling this is the expected increase of T^2 times the UBSE with tents of
    this width, up to a constant; with a width of 1, of ATB.

    Attributes
    ----------
    levels, reach : float
        The grid has the multiples of 1/levels and the center; a report is at most reach/levels from a.
    width, penalty, pooling : float
        As above.
    """

    levels: float = 32
    reach: float = 4
    width: float = 1.0
    penalty: float = 4.0
    pooling: float = 0.0

    def reports(self, truth: _Array, y: Outcomes2D) -> _Array:
        """Return the reports for many sequences of outcomes, one a row. A report depends on earlier outcomes alone."""
        center = np.full_like(truth, truth.mean()) if self.pooling else truth
        grid = self._grid(float(truth.mean()))
        kernel = np.maximum(0.0, 1.0 - np.abs(grid[:, None] - grid) / self.width)
        bias, rows = np.zeros((len(y), len(grid))), np.arange(len(y))
        reports = np.empty(y.shape)
        for t, chance in enumerate(truth):
            error, distance = grid - chance, np.abs(grid - center[t])
            fixed = self.penalty * distance**2 + _TIE * np.abs(error)
            allowed = np.flatnonzero(distance <= max(self.reach / self.levels, float(distance.min())) + _TIE)
            cost = 2.0 * error[allowed] * (bias @ kernel[:, allowed]) + fixed[allowed]
            chosen = allowed[np.argmin(cost, axis=1)]
            reports[:, t] = grid[chosen]
            bias[rows, chosen] += grid[chosen] - y[:, t]
        return reports

    def _grid(self, mean: float) -> _Array:
        """Multiples of 1/levels, moved so that the mean is one of them, within [0, 1]."""
        start = mean * self.levels % 1.0
        return np.unique(np.clip((start + np.arange(-1, self.levels + 1)) / self.levels, 0.0, 1.0))

    def describe(self) -> str:
        """Name of the policy, with its parameters."""
        pooled = ", toward the mean" if self.pooling else ""
        grid = f"{self.levels:.0f} levels, reach {self.reach / self.levels:.3g}"
        return f"one-step lookahead ({grid}, width {self.width:g}, penalty {self.penalty:g}{pooled})"


def score_sequences(measure: AuditedMeasure, truth: _Array, reports: _Array, coins: Outcomes2D) -> _Array:
    """Score each sequence of reports at its own outcomes; `coins` are those of `with_coins`."""
    return np.array(
        [
            measure.values(SortedReport(report, truth))(outcome[None, :])[0]
            for report, outcome in zip(reports, coins, strict=True)
        ]
    )


def search_policy(loss: Callable[[LookaheadPolicy], float]) -> LookaheadPolicy:
    """Search for the best policy, changing one parameter at a time."""
    best = LookaheadPolicy()
    seen = {best: loss(best)}
    for _ in range(_SWEEPS):
        start = best
        for name, values in _CHOICES.items():  # the best value of each parameter, given those chosen before
            tried = [dataclasses.replace(best, **{name: value}) for value in values]
            seen |= {policy: loss(policy) for policy in tried if policy not in seen}
            best = min(tried, key=seen.__getitem__)
        if best == start:
            break
    return best
