"""Redraw outcomes that are nearly certain: the cost grows with the expected number of surprises, not of rows.

Every row starts with its likelier outcome. A redrawn outcome differs from it in few rows, the surprises. With
c = d - f, d the error of the likelier outcomes and f the surprises, the measure is d'Kd - 2 f'Kd + f'Kf, where K d is
computed once.
"""

import numpy as np
from numpy.typing import NDArray

from truthcal.inference.laws.redraw import TiedOutcomes
from truthcal.inference.laws.tent_kernel import TentKernel

_Array = NDArray[np.float64]


def expected_surprises(outcomes: TiedOutcomes) -> float:
    """Expected number of rows with the less likely outcome, if outcomes follow the predictions."""
    chance, _, size = outcomes.rows
    return float(np.sum(size * np.minimum(chance, 1.0 - chance)))


class SparseRedraw:
    """Draw a measure with a tent kernel under calibration, at a cost proportional to the number of surprises.

    A row with a Poisson number of marks, of mean -log(1 - m), has none with probability 1 - m. So a Poisson number of
    marks is spread over the rows in proportion to that mean: rows with at least one mark are surprises, independently
    and with exactly their probability m. Equal rows (ties, or a bucket of a sketch) are numbered, not stored.
    """

    def __init__(self, outcomes: TiedOutcomes, kernel: TentKernel) -> None:
        (chance, w, size), self._kernel, self._total = outcomes.rows, kernel, outcomes.points.total**2
        up, self._x = chance > 0.5, outcomes.row_positions(kernel)
        self._row_marks = -np.log1p(-np.where(up, 1.0 - chance, chance))
        self._marks = np.cumsum(size * self._row_marks)
        self._last = np.cumsum(size) - 1  # number of the last of each point's rows
        d = size * w * np.where(up, chance - 1.0, chance)
        self._surprise = w * np.where(up, -1.0, 1.0)
        self._smoothed = kernel.smoothed(self._x, d)
        self._likelier = float(d @ self._smoothed)

    def __call__(self, rng: np.random.Generator, count: int) -> _Array:
        """Measure `count` random outcomes."""
        all_marks, n_rows = self._marks[-1], self._last[-1] + 1
        draw = np.repeat(np.arange(count), rng.poisson(all_marks, count))
        marks = rng.random(len(draw)) * all_marks
        point = np.searchsorted(self._marks, marks, side="right")
        rows = self._last[point] - ((self._marks[point] - marks) / self._row_marks[point]).astype(np.int64)
        # Surprises, each with at least one mark. `np.unique` takes ten times as long as sorting.
        marked = np.sort(draw * n_rows + rows)
        draw, rows = np.divmod(marked[np.diff(marked, prepend=-1) > 0], n_rows)
        point = rows if n_rows == len(self._last) else np.searchsorted(self._last, rows)
        starts = np.searchsorted(draw, np.arange(count + 1))
        f = self._surprise[point]
        squares = self._kernel.group_sums(starts, self._x[point], f)
        cross = np.bincount(draw, f * self._smoothed[point], count)
        return np.asarray((self._likelier - 2.0 * cross + squares) / self._total)
