"""What may happen to events of known chances: everything, or random draws. In blocks that two cores can share."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from truthcal.core.parallel import run_parts
from truthcal.core.progress import progress

_Array = NDArray[np.float64]
Outcomes2D = NDArray[np.bool_]

# Up to so many events all outcomes are gone through: 16,384 of them.
MOST_ENUMERATED = 14
# Numbers that a block of outcomes holds.
_BLOCK = 1 << 16


class Cases(Protocol):
    """Outcomes in numbered blocks, one row each, and how to average over them."""

    exact: bool
    count: int
    block: int

    def outcomes(self, first: int) -> Outcomes2D:
        """The block of outcomes that starts at `first`."""

    def mean(self, values: _Array) -> float:
        """Expected value, from the value of each outcome."""

    def error(self, values: _Array) -> float:
        """Its standard error."""


class Everything:
    """Every outcome that can happen, in the order of binary numbers, with its probability."""

    exact = True

    def __init__(self, truth: _Array) -> None:
        sides = [np.flatnonzero([t < 1.0, t > 0.0]) for t in truth]  # a certain event has one side
        grid = np.meshgrid(*sides, indexing="ij")
        self.all: Outcomes2D = np.stack([side.ravel() for side in grid], axis=1).astype(np.bool_)
        self.probabilities: _Array = np.prod(np.where(self.all, truth, 1.0 - truth), axis=1)
        self.count = len(self.all)
        self.block = _block(self.count, len(truth))

    def outcomes(self, first: int) -> Outcomes2D:
        """The block of outcomes that starts at `first`."""
        return self.all[first : first + self.block]

    def mean(self, values: _Array) -> float:
        """Expected value."""
        return math.fsum(self.probabilities * values)

    def error(self, values: _Array) -> float:
        """Nothing is left to chance."""
        return 0.0


class Drawn:
    """`count` random outcomes. Each block has a random stream of its own, so that it can be drawn again for the next
    report (common random numbers) and on whichever core, without being kept.
    """

    exact = False

    def __init__(self, truth: _Array, count: int, rng: np.random.Generator) -> None:
        self._truth, self.count = truth, count
        self._seed: list[int] = rng.integers(0, 2**63, 4).tolist()
        self.block = _block(count, len(truth))

    def outcomes(self, first: int) -> Outcomes2D:
        """The block of outcomes that starts at `first`."""
        rows = min(self.block, self.count - first)
        return np.random.default_rng([*self._seed, first]).random((rows, len(self._truth))) < self._truth

    def mean(self, values: _Array) -> float:
        """Mean over the draws."""
        return float(np.mean(values))

    def error(self, values: _Array) -> float:
        """Standard error of the mean."""
        return float(np.std(values, ddof=1)) / math.sqrt(self.count)


def _block(count: int, events: int) -> int:
    """Rows of a block: at least eight blocks if there are rows for them, so that two cores finish together."""
    return max(1, min(_BLOCK // events, -(-count // 8)))


def each_value(values: Callable[[Outcomes2D], _Array], cases: Cases, cost: int, threads: bool, bar: progress) -> _Array:
    """The value of every case; `cost` is what one of them costs. Without `threads` in the order of cases."""
    starts = range(0, cases.count, cases.block)
    parts: list[_Array] = [np.empty(0)] * len(starts)

    def every(first: int, step: int) -> None:
        for k in range(first, len(starts), step):
            parts[k] = values(cases.outcomes(starts[k]))
            bar.advance(len(parts[k]) * cost)

    if threads:
        run_parts(lambda: every(0, 2), lambda: every(1, 2), cases.count * cost)
    else:
        every(0, 1)
    return np.concatenate(parts)
