"""Possible outcomes of fixed predictions: draw them, enumerate them, and measure each.

Every measure depends on the rows only through the different predictions and, at each, the weight and the weight of the
positive outcomes. So an outcome is a vector of positive weights, one for each different prediction, and the positives
of tied rows are drawn as one binomial.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.params import check_counts
from truthcal.core.sample import Sample
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.measures.registry import MEASURES

_Array = NDArray[np.float64]
Values = Callable[[_Array], _Array]

# Entries in a block of outcomes, which should fit into the processor's cache.
_BLOCK = 1 << 16


class Outcomes:
    """Possible outcomes of the rows of a sample, each positive with its own `chance`, independently.

    Chances are in the sample's order; by default the predictions, as for a calibrated forecaster. The sample's own
    outcomes are not used.
    """

    def __init__(self, sample: Sample, chance: _Array | None = None) -> None:
        self.sample = sample
        self.r, self.w = sample.groups.r, sample.groups.w
        self._starts = sample.starts
        self._sizes = np.diff(self._starts, append=sample.n)
        self._chance = sample.p.astype(np.float64) if chance is None else chance
        first = self._chance[self._starts]
        same = chance is None or bool((np.repeat(first, self._sizes) == self._chance).all())
        # Unweighted ties of equal chance are drawn as one binomial.
        self._binomial = same and not sample.weighted
        self._group_chance = first
        self._tied = np.flatnonzero(self._sizes > 1)

    @property
    def block(self) -> int:
        """Number of outcomes to draw and measure at a time."""
        return max(1, _BLOCK // (len(self.r) if self._binomial else self.sample.n))

    def draw(self, rng: np.random.Generator, count: int) -> _Array:
        """Draw `count` random outcomes."""
        if not self._binomial:
            return self.grouped(rng.random((count, self.sample.n)) < self._chance)
        positive = np.empty((count, len(self.r)))
        np.less(rng.random(positive.shape), self._group_chance, out=positive)
        tied = self._tied
        if len(tied):
            positive[:, tied] = rng.binomial(self._sizes[tied], self._group_chance[tied], (count, len(tied)))
        return positive

    def grouped(self, y: NDArray[np.bool_]) -> _Array:
        """Convert outcomes of all rows, in the sample's order, to positive weights of the different predictions."""
        if len(self._tied) == 0:
            return y * self.sample.w
        return np.add.reduceat(y * self.sample.w, self._starts, axis=1)

    @property
    def cases(self) -> float:
        """Number of different outcomes, inf beyond 2^60."""
        free = np.add.reduceat((self._chance > 0.0) & (self._chance < 1.0), self._starts, dtype=np.float64)
        bits = float(np.sum(free if self.sample.weighted else np.log2(free + 1.0)))
        return float(np.rint(2.0**bits)) if bits <= 60.0 else math.inf

    def all(self) -> Iterator[tuple[_Array, _Array]]:
        """Yield all outcomes in blocks, with their probabilities."""
        values, chances = zip(*map(self._of_group, range(len(self.r))), strict=True)
        sizes = [len(value) for value in values]
        for first in range(0, math.prod(sizes), self.block):
            code = np.arange(first, min(first + self.block, math.prod(sizes)))
            digits = np.unravel_index(code, sizes)
            positive = np.stack([value[digit] for value, digit in zip(values, digits, strict=True)], axis=1)
            yield positive, math.prod(chance[digit] for chance, digit in zip(chances, digits, strict=True))

    def _of_group(self, group: int) -> tuple[_Array, _Array]:
        """Possible positive weights of a group of equal predictions, and their probabilities."""
        first, size = self._starts[group], self._sizes[group]
        if self._binomial:
            count, chance = np.arange(size + 1.0), self._group_chance[group]
            ways = -np.log(size + 1.0) - special.betaln(size - count + 1.0, count + 1.0)
            chances = np.exp(ways + special.xlogy(count, chance) + special.xlog1py(size - count, -chance))
            return count[chances > 0.0], chances[chances > 0.0] / np.sum(chances)  # removes rounding
        values, chances = np.zeros(1), np.ones(1)
        for row in range(first, first + size):
            chance = self._chance[row]
            values = np.concatenate([values, values + self.sample.w[row]])
            chances = np.concatenate([chances * (1.0 - chance), chances * chance])
            if not self.sample.weighted:  # merge equal counts
                values, same = np.unique(values, return_inverse=True)
                chances = np.bincount(same, chances).astype(np.float64)
        possible = chances > 0.0
        return values[possible], chances[possible]

    def values(self, measure: str) -> Values:
        """Return the function from a block of outcomes to the measure of each."""
        row, sample = MEASURES[measure], self.sample
        if row.whole_weights and sample.weighted:
            check_counts(sample.repetitions)
        if row.tent_widths:
            kernel = TentKernel.of(measure, sample.points())
            before = kernel.before(self.r)
            return lambda positive: kernel.sums(self.r, self.bias(positive), before) / sample.weight**2
        norm, of_sample = row.norm, row.of_sample
        if norm is not None:
            return lambda positive: norm(self.r, self.bias(positive)) / sample.weight
        return lambda positive: np.array([of_sample(self.with_positives(one)) for one in positive])

    def with_positives(self, positive: _Array) -> Sample:
        """Return the sample with this outcome."""
        if not self.sample.weighted and len(self._tied) == 0:
            return Sample(self.r, positive.astype(np.uint8), None)
        p, y = np.repeat(self.r, 2), np.tile([0.0, 1.0], len(self.r))
        w = np.stack([self.w - positive, positive], axis=1).ravel()
        used = w > 0.0
        return Sample(p[used], y[used], w[used], self.sample.exponent)

    def bias(self, positive: _Array) -> _Array:
        """Sum of w (p - y) at each different prediction."""
        return self.w * self.r - positive


def blocks(count: int, block: int) -> Iterator[int]:
    """Split `count` into parts of at most `block`."""
    return itertools.chain(itertools.repeat(block, count // block), [count % block] if count % block else [])
