"""Fixed predictions with many possible outcomes: drawing them, going through all of them, and measuring each.

Every measure depends on the rows only through the different predictions and, at each, the weight and the weight of the
positive outcomes. So an outcome is a vector of positive weights, one entry for each different prediction, and ties cost
nothing: their positives are drawn as one binomial.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.checks import read_only
from truthcal.core.params import check_counts
from truthcal.core.sample import Sample
from truthcal.inference.laws.tent_kernel import TENTS, TentKernel
from truthcal.kernels import smooth
from truthcal.measures.binned import DEFAULT_BINS, uniform_bins
from truthcal.measures.registry import MEASURES

_Array = NDArray[np.float64]
Values = Callable[[_Array], _Array]

# Numbers that a block of outcomes holds: it should stay in the processor's cache.
_BLOCK = 1 << 16


class Outcomes:
    """What may happen to the rows of a sample when each is positive with its own `chance`, independently.

    Parameters
    ----------
    sample : Sample
        Predictions and weights; its outcomes are not looked at.
    chance : ndarray, optional
        Probability of each row, in the sample's order. By default the predictions: the forecaster is calibrated.
    """

    def __init__(self, sample: Sample, chance: _Array | None = None) -> None:
        self.sample = sample
        self.r, self.w = sample.groups.r, sample.groups.w
        self._starts = sample.starts
        self._sizes = np.diff(self._starts, append=sample.n)
        self._chance = sample.p.astype(np.float64) if chance is None else chance
        first = self._chance[self._starts]
        same = chance is None or bool((np.repeat(first, self._sizes) == self._chance).all())
        # Without weights, equal rows of equal chance are counted by one binomial draw.
        self._binomial = same and not sample.weighted
        self._group_chance = first
        self._tied = np.flatnonzero(self._sizes > 1)

    @property
    def block(self) -> int:
        """How many outcomes to draw and measure at a time."""
        return max(1, _BLOCK // (len(self.r) if self._binomial else self.sample.n))

    def draw(self, rng: np.random.Generator, count: int) -> _Array:
        """`count` random outcomes."""
        if not self._binomial:
            return self.grouped(rng.random((count, self.sample.n)) < self._chance)
        positive = np.empty((count, len(self.r)))
        np.less(rng.random(positive.shape), self._group_chance, out=positive)
        tied = self._tied
        if len(tied):
            positive[:, tied] = rng.binomial(self._sizes[tied], self._group_chance[tied], (count, len(tied)))
        return positive

    def grouped(self, y: NDArray[np.bool_]) -> _Array:
        """Outcomes of all rows, in the sample's order, as positive weights of the different predictions."""
        if len(self._tied) == 0:
            return y * self.sample.w
        return np.add.reduceat(y * self.sample.w, self._starts, axis=1)

    @property
    def cases(self) -> float:
        """How many different outcomes there are, inf beyond 2^60."""
        free = np.add.reduceat((self._chance > 0.0) & (self._chance < 1.0), self._starts, dtype=np.float64)
        bits = float(np.sum(free if self.sample.weighted else np.log2(free + 1.0)))
        return float(np.rint(2.0**bits)) if bits <= 60.0 else math.inf

    def all(self) -> Iterator[tuple[_Array, _Array]]:
        """All outcomes in blocks, with their probabilities."""
        values, chances = zip(*map(self._of_group, range(len(self.r))), strict=True)
        sizes = [len(value) for value in values]
        for first in range(0, math.prod(sizes), self.block):
            code = np.arange(first, min(first + self.block, math.prod(sizes)))
            digits = np.unravel_index(code, sizes)
            positive = np.stack([value[digit] for value, digit in zip(values, digits, strict=True)], axis=1)
            yield positive, math.prod(chance[digit] for chance, digit in zip(chances, digits, strict=True))

    def _of_group(self, group: int) -> tuple[_Array, _Array]:
        """What the positive weight of equal predictions may be, and how probable each is."""
        first, size = self._starts[group], self._sizes[group]
        if self._binomial:
            count, chance = np.arange(size + 1.0), self._group_chance[group]
            ways = -np.log(size + 1.0) - special.betaln(size - count + 1.0, count + 1.0)
            chances = np.exp(ways + special.xlogy(count, chance) + special.xlog1py(size - count, -chance))
            return count[chances > 0.0], chances[chances > 0.0] / np.sum(chances)  # rounding grows with the rows
        values, chances = np.zeros(1), np.ones(1)
        for row in range(first, first + size):
            chance = self._chance[row]
            values = np.concatenate([values, values + self.sample.w[row]])
            chances = np.concatenate([chances * (1.0 - chance), chances * chance])
            if not self.sample.weighted:  # counts: equal ones become one case
                values, same = np.unique(values, return_inverse=True)
                chances = np.bincount(same, chances).astype(np.float64)
        possible = chances > 0.0
        return values[possible], chances[possible]

    def values(self, measure: str) -> Values:
        """The function that takes a block of outcomes to the measure of each."""
        if MEASURES[measure].whole_weights and self.sample.weighted:
            check_counts(self.sample.repetitions)
        return _QUICK[measure](self) if measure in _QUICK else lambda positive: self._one_by_one(measure, positive)

    def _one_by_one(self, measure: str, positive: _Array) -> _Array:
        of_sample = MEASURES[measure].of_sample
        return np.array([of_sample(self.with_positives(row)) for row in positive])

    def with_positives(self, positive: _Array) -> Sample:
        """The sample with this outcome."""
        if not self.sample.weighted and len(self._tied) == 0:
            return Sample(self.r, positive.astype(np.uint8), None)
        p, y = np.repeat(self.r, 2), np.tile([0.0, 1.0], len(self.r))
        w = np.stack([self.w - positive, positive], axis=1).ravel()
        some = w > 0.0
        return Sample(p[some], y[some], w[some], self.sample.exponent)

    def bias(self, positive: _Array) -> _Array:
        """Sum of w (p - y) at each different prediction."""
        return self.w * self.r - positive


# --- measures of many outcomes at once --------------------------------------------------------------------------------


def _tents(measure: str) -> Callable[[Outcomes], Values]:
    def prepared(outcomes: Outcomes) -> Values:
        kernel, total = TentKernel.of(measure, outcomes.sample), outcomes.sample.weight**2
        before = kernel.before(outcomes.r)
        return lambda positive: kernel.sums(outcomes.r, outcomes.bias(positive), before) / total

    return prepared


def _largest(_: _Array, bias: _Array) -> _Array:
    value: _Array = np.max(np.abs(np.cumsum(bias, axis=1)), axis=1)
    return value


def _range(_: _Array, bias: _Array) -> _Array:
    curve = np.cumsum(bias, axis=1)
    value: _Array = np.maximum(np.max(curve, axis=1), 0.0) - np.minimum(np.min(curve, axis=1), 0.0)
    return value


def _l1(r: _Array, bias: _Array) -> _Array:
    curve = np.cumsum(bias, axis=1)
    total = curve[:, -1:]
    value: _Array = (np.abs(curve) + np.abs(total - curve)) @ np.diff(r, append=1.0) + np.abs(total[:, 0]) * r[0]
    return value


def _smooth(r: _Array, bias: _Array) -> _Array:
    curve = np.cumsum(bias, axis=1)
    curve.flags.writeable = False  # as in smcal, so that the kernel compiles once for both
    nothing = np.empty(0)
    return np.array([smooth.smooth_error(r, row, nothing) for row in curve])


def _laplace(r: _Array, bias: _Array) -> _Array:
    return np.sqrt([smooth.laplace_square(r, read_only(row), 1.0) for row in bias])


def _sizes(_: _Array, bias: _Array) -> _Array:
    value: _Array = np.sum(np.abs(bias), axis=1)
    return value


def _binned(r: _Array, bias: _Array) -> _Array:
    value: _Array = np.sum(np.abs(np.add.reduceat(bias, uniform_bins(r, DEFAULT_BINS), axis=1)), axis=1)
    return value


# Measures that, times the total weight, are a norm of the bias: of the vector of sums of w (p - y) at the different
# predictions. They are symmetric, grow in proportion, and the measure of a sum is at most the sum of the measures.
NORMS: dict[str, Callable[[_Array, _Array], _Array]] = {
    "atb_l1": _l1,
    "smcal": _smooth,
    "laplace_kernel_ce": _laplace,
    "ks_ce": _largest,
    "step_ce": _largest,
    "kuiper_ce": _range,
    "ece": _sizes,
    "binned_ece": _binned,
}


def _norm(measure: str) -> Callable[[Outcomes], Values]:
    def prepared(outcomes: Outcomes) -> Values:
        total = outcomes.sample.weight
        return lambda positive: NORMS[measure](outcomes.r, outcomes.bias(positive)) / total

    return prepared


_QUICK = {name: _tents(name) for name in TENTS} | {name: _norm(name) for name in NORMS}
QUICK = frozenset(_QUICK)


def blocks(count: int, block: int) -> Iterator[int]:
    """`count` in parts of at most `block`."""
    return itertools.chain(itertools.repeat(block, count // block), [count % block] if count % block else [])
