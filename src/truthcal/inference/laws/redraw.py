"""Redrawn outcomes of fixed predictions: draw or enumerate them, measure each, and get p-values of any statistic.

Every measure depends on the rows only through the different predictions and, at each, the weight and the weight of the
positive outcomes. So an outcome is a vector of positive weights, one for each different prediction, and the positives
of tied rows, or of the rows in a bucket of a sketch, are drawn as one binomial.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.parallel import WORTH_A_THREAD, random_streams, run_tasks
from truthcal.core.params import check_counts
from truthcal.core.points import Points
from truthcal.core.progress import progress
from truthcal.core.sample import Sample
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.measures.registry import MEASURES
from truthcal.results.text import count

_Array = NDArray[np.float64]
Values = Callable[[_Array], _Array]
Redraw = Callable[[np.random.Generator, int], _Array]

# Entries in a block of outcomes, which should fit into the processor's cache.
_BLOCK = 1 << 16
# Number of outcomes up to which all are enumerated, for measures with and without a batched kernel: a few seconds.
MOST_CASES, MOST_SLOW_CASES = 1 << 20, 1 << 16
# Drawing stops once this many draws were at least as extreme (Besag, Clifford 1991): p is then known to 4%.
_ENOUGH = 500
# Draws between two checks. Fixed, so that the result does not depend on the number of cores.
_ROUND = 1000


class TiedOutcomes:
    """Possible outcomes of points whose rows have the same chance and weight: the number of positives is binomial.

    Chances are by default the predictions, as for a calibrated forecaster. `observed` holds the points' own outcome.
    For the buckets of a sketch this binomial has the mean prediction of its rows: its variance is then too large, by at
    most a share of about the width of a bucket, so that p-values of large values are never too small (Hoeffding 1956:
    the expected value of a convex function is largest for equal chances).
    """

    method = "exact"

    def __init__(self, points: Points, chance: _Array | None = None) -> None:
        self.points = points
        self.r, self.w, self.size = points.p, points.weight, points.n
        self.chance = points.p if chance is None else chance
        self.unit = points.weight / points.n
        self._tied = np.flatnonzero(self.size > 1)

    @property
    def observed(self) -> _Array:
        """Positive weights of the points' own outcome: a whole number of rows, up to rounding."""
        return np.asarray(np.rint(self.points.wy / self.unit) * self.unit)

    @property
    def rows(self) -> tuple[_Array, _Array, NDArray[np.int64]]:
        """Chance, weight and number of the equal rows that outcomes are drawn for."""
        return self.chance, self.unit, self.size

    def row_positions(self, kernel: TentKernel) -> _Array:
        """Positions of `rows` on the axis of a tent kernel."""
        return kernel.positions(self.points)

    @property
    def validity(self) -> str:
        """Validity of p-values from redraws, in words."""
        return "valid for any number of rows"

    @property
    def cost(self) -> int:
        """Time to draw an outcome, in rows: a binomial takes as long as ten."""
        return int(np.sum(np.where(self.rows[2] > 1, 10, 1)))

    @property
    def block(self) -> int:
        """Number of outcomes to draw and measure at a time."""
        return block_of(len(self.rows[0]))

    def draw(self, rng: np.random.Generator, count: int) -> _Array:
        """Draw `count` random outcomes: the weights of the positives at each point."""
        positive = np.empty((count, len(self.r)))
        np.less(rng.random(positive.shape), self.chance, out=positive)
        tied = self._tied
        if len(tied):
            positive[:, tied] = rng.binomial(self.size[tied], self.chance[tied], (count, len(tied)))
        positive *= self.unit
        return positive

    @property
    def cases(self) -> float:
        """Number of different outcomes, inf beyond 2^60."""
        free = self.size[(self.chance > 0.0) & (self.chance < 1.0)]
        return _power_of_two(float(np.sum(np.log2(free + 1.0))))

    def all(self) -> Iterator[tuple[_Array, _Array]]:
        """Yield all outcomes in blocks, with their probabilities."""
        values, chances = zip(*map(self._of_group, range(len(self.r))), strict=True)
        sizes = [len(value) for value in values]
        for first in range(0, math.prod(sizes), self.block):
            digits = np.unravel_index(np.arange(first, min(first + self.block, math.prod(sizes))), sizes)
            positive = np.stack([value[digit] for value, digit in zip(values, digits, strict=True)], axis=1)
            yield positive, math.prod(chance[digit] for chance, digit in zip(chances, digits, strict=True))

    def _of_group(self, group: int) -> tuple[_Array, _Array]:
        """Possible positive weights of a point, and their probabilities."""
        size, chance = int(self.size[group]), self.chance[group]
        count = np.arange(size + 1.0)
        ways = -np.log(size + 1.0) - special.betaln(size - count + 1.0, count + 1.0)
        chances = np.exp(ways + special.xlogy(count, chance) + special.xlog1py(size - count, -chance))
        possible = chances > 0.0
        return count[possible] * self.unit[group], chances[possible] / np.sum(chances)  # removes rounding

    def bias(self, positive: _Array) -> _Array:
        """Sum of w (p - y) at each different prediction."""
        return self.w * self.r - positive

    def tent_values(self, kernel: TentKernel) -> Values:
        """Return the function from a block of outcomes to the measure with this kernel of each."""
        x, total = kernel.positions(self.points), self.points.total**2
        before = kernel.before(x)
        return lambda positive: kernel.sums(x, self.bias(positive), before) / total


class MergedOutcomes(TiedOutcomes):
    """Possible outcomes of a few cells, each of many rows with different weights: of a sketch with weights.

    Approximate, since a cell keeps only some sums of its weights (`Points.weight_classes`).
    """

    method = "approximate"

    def __init__(self, points: Points) -> None:
        # At the mean prediction, where the errors of the observed outcomes are measured.
        super().__init__(replace(points, p=np.clip(points.wp / points.weight, points.low, points.high)))

    @property
    def validity(self) -> str:
        """Validity of p-values from redraws, in words."""
        return f"weights are known only by their sums in {count(len(self.r), 'cell')}"

    @property
    def observed(self) -> _Array:
        """Positive weights of the points' own outcome."""
        return self.points.wy

    def draw(self, rng: np.random.Generator, count: int) -> _Array:
        """Draw `count` random outcomes."""
        return self.points.redraw_positives(count, rng)

    @property
    def cases(self) -> float:
        """Number of different outcomes: too many to enumerate."""
        return math.inf


class Outcomes(TiedOutcomes):
    """Possible outcomes of the rows of a sample, each positive with its own chance, independently.

    Chances are in the sample's order; by default the predictions, as for a calibrated forecaster.
    """

    def __init__(self, sample: Sample, chance: _Array | None = None) -> None:
        self.sample = sample
        self._starts = sample.starts
        self._row_chance = sample.p.astype(np.float64) if chance is None else chance
        first = self._row_chance[self._starts]
        super().__init__(sample.points(), first)
        same = chance is None or bool((np.repeat(first, self.size) == self._row_chance).all())
        # Unweighted ties of equal chance are drawn as one binomial.
        self._binomial = same and not sample.weighted

    @property
    def observed(self) -> _Array:
        """Positive weights of the sample's own outcome."""
        return self.sample.groups.wy

    @property
    def rows(self) -> tuple[_Array, _Array, NDArray[np.int64]]:
        """Chance, weight and number of the equal rows that outcomes are drawn for: of each row, if ties differ."""
        if self._binomial:
            return super().rows
        return self._row_chance, self.sample.w, np.broadcast_to(np.int64(1), self.sample.p.shape)

    def row_positions(self, kernel: TentKernel) -> _Array:
        """Positions of `rows` on the axis of a tent kernel."""
        positions = super().row_positions(kernel)
        return positions if self._binomial else np.repeat(positions, self.size)

    def draw(self, rng: np.random.Generator, count: int) -> _Array:
        """Draw `count` random outcomes."""
        if self._binomial:
            return super().draw(rng, count)
        return self.grouped(rng.random((count, self.sample.n)) < self._row_chance)

    def grouped(self, y: NDArray[np.bool_]) -> _Array:
        """Convert outcomes of all rows, in the sample's order, to positive weights of the different predictions."""
        if len(self._tied) == 0:
            return y * self.sample.w
        return np.add.reduceat(y * self.sample.w, self._starts, axis=1)

    @property
    def cases(self) -> float:
        """Number of different outcomes, inf beyond 2^60."""
        free = np.add.reduceat((self._row_chance > 0.0) & (self._row_chance < 1.0), self._starts, dtype=np.float64)
        return _power_of_two(float(np.sum(free if self.sample.weighted else np.log2(free + 1.0))))

    def _of_group(self, group: int) -> tuple[_Array, _Array]:
        """Possible positive weights of a group of equal predictions, and their probabilities."""
        if self._binomial:
            return super()._of_group(group)
        first, values, chances = self._starts[group], np.zeros(1), np.ones(1)
        for row in range(first, first + self.size[group]):
            chance = self._row_chance[row]
            if chance in (0.0, 1.0):  # certain: doubling the arrays for each such row would exhaust the memory
                values = values + chance * self.sample.w[row]
                continue
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
            return self.tent_values(TentKernel.of(measure, sample.points()))
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


def _power_of_two(bits: float) -> float:
    return float(np.rint(2.0**bits)) if bits <= 60.0 else math.inf


def block_of(size: int) -> int:
    """Number of outcomes to draw and measure at a time, each of `size` numbers."""
    return max(1, _BLOCK // size)


def blocks(count: int, block: int) -> Iterator[int]:
    """Split `count` redraws into parts of at most `block`."""
    return itertools.chain(itertools.repeat(block, count // block), [count % block] if count % block else [])


class Tails(NamedTuple):
    """P(value at least as large), P(value at least as small), mean and sd under calibration; number of random draws."""

    greater: float
    less: float
    mean: float
    sd: float
    draws: int


def enumerate_tails(outcomes: TiedOutcomes, values: Values, observed: float, slack: float) -> Tails:
    """Compute exact tails of a statistic from all possible outcomes and their probabilities."""
    greater = less = mean = square = 0.0
    for positive, chance in outcomes.all():
        value = values(positive)
        greater += float(np.sum(chance[value >= observed - slack]))
        less += float(np.sum(chance[value <= observed + slack]))
        mean += float(np.sum(chance * value))
        with np.errstate(over="ignore"):  # predictions of 1e-300 make statistics of 1e300
            square += float(np.sum(chance * (value - observed) ** 2))
    variance = square - (mean - observed) ** 2 if abs(mean - observed) < 1e150 else math.inf
    return Tails(min(greater, 1.0), min(less, 1.0), mean, math.sqrt(max(variance, 0.0)), 0)


def draw_from_streams(
    redraw: Redraw, streams: list[np.random.Generator], count: int, block: int, bar: progress, work: int
) -> _Array:
    """Redraw `count` values, equally many from each stream, at most `block` at a time. `work`: to decide on threads."""

    def draw(stream: np.random.Generator, count: int) -> _Array:
        parts = [np.empty(0)]
        for size in blocks(count, block):
            parts.append(redraw(stream, size))
            bar.advance(size)
        return np.concatenate(parts)

    ends = [count * k // len(streams) for k in range(len(streams) + 1)]
    sizes = [last - first for first, last in itertools.pairwise(ends)]
    tasks = [partial(draw, stream, size) for stream, size in zip(streams, sizes, strict=True)]
    return np.concatenate(run_tasks(tasks, work))


def simulate_tails(
    redraw: Redraw,
    block: int,
    observed: float,
    slack: float,
    *,
    n_resamples: int,
    generator: np.random.Generator,
    sides: tuple[str, ...],
    enough: int | None = None,
) -> Tails:
    """Estimate tails from redrawn outcomes. Exactly valid: P(p-value <= alpha) <= alpha under calibration.

    `redraw` draws and measures outcomes, at most `block` at a time. Drawing stops early once the requested tails
    (`sides`) are clearly not small: each has `enough` values as extreme, by default 500.
    """
    enough = _ENOUGH if enough is None else enough
    streams, values = random_streams(generator), np.empty(0)
    with progress(n_resamples, "redrawing outcomes") as bar:
        while len(values) < n_resamples:
            count = min(_ROUND, 2 * enough, n_resamples - len(values))
            # A round is worth a thread unless there are very few rows.
            drawn = draw_from_streams(redraw, streams, count, block, bar, count * WORTH_A_THREAD // block)
            values = np.concatenate([values, drawn])
            hits = {"greater": values >= observed - slack, "less": values <= observed + slack}
            if all(np.count_nonzero(hits[side]) >= enough for side in sides):
                break
    greater, less = (_pvalue_of_redraws(hits[side], n_resamples, enough) for side in ("greater", "less"))
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Tails(greater, less, float(np.mean(values)), sd, len(values))


def _pvalue_of_redraws(hits: NDArray[np.bool_], n_resamples: int, enough: int) -> float:
    """p-value of redraws stopped at the `enough`-th hit, or of all of them with the observed value among them.

    The side that was not requested may end early, when the other side stops: its draws so far are used.
    """
    positions = np.flatnonzero(hits)
    if len(positions) >= enough:
        return enough / (int(positions[enough - 1]) + 1)
    return (1 + len(positions)) / (1 + min(len(hits), n_resamples))
