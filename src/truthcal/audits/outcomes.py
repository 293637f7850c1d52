"""Outcomes of events with known probabilities, all or random ones, in blocks for two cores."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from truthcal.core.parallel import run_tasks
from truthcal.core.progress import progress

_Array = NDArray[np.float64]
Outcomes2D = NDArray[np.bool_]

# Events up to which all outcomes, here 16,384, are enumerated.
MAX_ENUMERATED = 14
# Entries in a block of outcomes.
_BLOCK = 1 << 16


class AllOutcomes:
    """Every possible outcome, in the order of binary numbers, with its probability."""

    exact = True

    def __init__(self, truth: _Array) -> None:
        sides = [np.flatnonzero([t < 1.0, t > 0.0]) for t in truth]  # a certain event has only one
        grid = np.meshgrid(*sides, indexing="ij")
        self.all: Outcomes2D = np.stack([side.ravel() for side in grid], axis=1).astype(np.bool_)
        self.probabilities: _Array = np.prod(np.where(self.all, truth, 1.0 - truth), axis=1)
        self.count = len(self.all)
        self.block = _block_size(self.count, len(truth))

    def block_at(self, first: int) -> Outcomes2D:
        """The block that starts at `first`."""
        return self.all[first : first + self.block]

    def mean(self, values: _Array) -> float:
        """Expected value."""
        return math.fsum(self.probabilities * values)

    def error(self, values: _Array) -> float:
        """Always 0."""
        return 0.0


class RandomOutcomes:
    """`count` random outcomes. Each block has its own random stream, so that it can be drawn again for the next report
    (common random numbers), on any core, without being stored.
    """

    exact = False

    def __init__(self, truth: _Array, count: int, rng: np.random.Generator) -> None:
        self._truth, self.count = truth, count
        self._seed: list[int] = rng.integers(0, 2**63, 4).tolist()
        self.block = _block_size(count, len(truth))

    def block_at(self, first: int) -> Outcomes2D:
        """The block of outcomes that starts at `first`."""
        rows = min(self.block, self.count - first)
        return np.random.default_rng([*self._seed, first]).random((rows, len(self._truth))) < self._truth

    def mean(self, values: _Array) -> float:
        """Mean over the draws."""
        return float(np.mean(values))

    def error(self, values: _Array) -> float:
        """Standard error of the mean."""
        return float(np.std(values, ddof=1)) / math.sqrt(self.count)


OutcomeSet = AllOutcomes | RandomOutcomes


def _block_size(count: int, events: int) -> int:
    """Number of outcomes in a block: at least eight blocks if possible, so that two cores finish together."""
    return max(1, min(_BLOCK // events, -(-count // 8)))


def score_outcomes(
    values: Callable[[Outcomes2D], _Array], outcomes: OutcomeSet, cost: int, threads: bool, bar: progress
) -> _Array:
    """Return the values of all outcomes, on all cores if `threads`; `cost` is the cost of one outcome."""
    starts = range(0, outcomes.count, outcomes.block)

    def run(start: int) -> _Array:
        part = values(outcomes.block_at(start))
        bar.advance(len(part) * cost)
        return part

    work = outcomes.count * cost if threads else 0
    return np.concatenate(run_tasks([partial(run, start) for start in starts], work))
