"""Redraw outcomes that are nearly certain: the cost grows with the expected number of surprises, not of rows.

Every row starts with its likelier outcome. A redrawn outcome differs from it in few rows, the surprises. With
c = d - f, d the error of the likelier outcomes and f the surprises, the measure is d'Kd - 2 f'Kd + f'Kf, where K d is
computed once.
"""

import numpy as np
from numpy.typing import NDArray

from truthcal.core.sample import Sample
from truthcal.inference.laws.tent_kernel import TentKernel

_Array = NDArray[np.float64]


def expected_surprises(sample: Sample) -> float:
    """Expected number of rows with the less likely outcome, if outcomes follow the predictions."""
    p = sample.p.astype(np.float64)
    return float(np.sum(np.minimum(p, 1.0 - p)))


class SparseRedraw:
    """Draw a measure with a tent kernel under calibration, at a cost proportional to the number of surprises.

    A row with a Poisson number of marks, of mean -log(1 - m), has none with probability 1 - m. So a Poisson number of
    marks is spread over the rows in proportion to that mean: rows with at least one mark are surprises, independently
    and with exactly their probability m.
    """

    def __init__(self, sample: Sample, kernel: TentKernel) -> None:
        self._x, self._kernel, self._total = sample.p.astype(np.float64), kernel, sample.weight**2
        up = self._x > 0.5
        self._marks = np.cumsum(-np.log1p(-np.where(up, 1.0 - self._x, self._x)))
        d = sample.w * np.where(up, self._x - 1.0, self._x)
        self._surprise = sample.w * np.where(up, -1.0, 1.0)
        self._smoothed = kernel.smoothed(self._x, d)
        self._likelier = float(d @ self._smoothed)

    def __call__(self, rng: np.random.Generator, count: int) -> _Array:
        """Measure `count` random outcomes."""
        all_marks = self._marks[-1]
        ends = np.cumsum(rng.poisson(all_marks, count))
        rows = np.searchsorted(self._marks, rng.random(int(ends[-1])) * all_marks, side="right")
        return np.array([self._measure(np.unique(drawn)) for drawn in np.split(rows, ends[:-1])]) / self._total

    def _measure(self, rows: NDArray[np.int64]) -> float:
        """Measure the outcome in which exactly these rows are surprises, times the squared weight."""
        f = self._surprise[rows]
        square = float(self._kernel.sums(self._x[rows], f[None, :])[0]) if len(rows) else 0.0
        return self._likelier - 2.0 * float(f @ self._smoothed[rows]) + square
