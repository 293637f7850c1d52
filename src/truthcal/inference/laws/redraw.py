"""p-values of any statistic, from all possible outcomes or from random ones."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.parallel import WORTH_A_THREAD, run_parts
from truthcal.core.progress import progress
from truthcal.inference.laws.outcomes import Outcomes, Values, blocks

_Array = NDArray[np.float64]

# Number of outcomes up to which all are enumerated, for measures with and without a batched kernel: a few seconds.
MOST_CASES, MOST_SLOW_CASES = 1 << 20, 1 << 16
# Drawing stops once this many draws were at least as extreme (Besag, Clifford 1991): p is then known to 4%.
_ENOUGH = 500
# Draws between two checks. Fixed, so that the result does not depend on the number of cores.
_ROUND = 1000


class Tails(NamedTuple):
    """P(value at least as large), P(value at least as small), mean and sd under calibration; number of random draws."""

    greater: float
    less: float
    mean: float
    sd: float
    draws: int


def enumerate_tails(outcomes: Outcomes, values: Values, observed: float, slack: float) -> Tails:
    """Compute exact tails from all outcomes and their probabilities."""
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


Redraw = Callable[[np.random.Generator, int], _Array]


def two_streams(generator: np.random.Generator) -> list[np.random.Generator]:
    """Always two streams, so that the result does not depend on the number of cores."""
    return [np.random.default_rng(generator.integers(0, 2**63, 4)) for _ in range(2)]


def draw_halves(
    redraw: Redraw, streams: list[np.random.Generator], count: int, block: int, bar: progress, work: int
) -> _Array:
    """Draw `count` values, half from each of two streams, at most `block` at a time. `work`: to decide on threads."""

    def draw(stream: np.random.Generator, count: int) -> _Array:
        parts = [np.empty(0)]
        for size in blocks(count, block):
            parts.append(redraw(stream, size))
            bar.advance(size)
        return np.concatenate(parts)

    half = count // 2
    return np.concatenate(run_parts(lambda: draw(streams[0], half), lambda: draw(streams[1], count - half), work))


def simulate_tails(
    redraw: Redraw,
    block: int,
    observed: float,
    slack: float,
    *,
    n_resamples: int,
    generator: np.random.Generator,
    sides: tuple[str, ...],
) -> Tails:
    """Estimate tails from random outcomes. Exactly valid: P(p-value <= alpha) <= alpha under calibration.

    `redraw` draws and measures outcomes, at most `block` at a time. Drawing stops early once the requested tails
    (`sides`) are clearly not small.
    """
    streams, values = two_streams(generator), np.empty(0)
    with progress(n_resamples, "redrawing outcomes") as bar:
        while len(values) < n_resamples:
            count = min(_ROUND, n_resamples - len(values))
            # A round is worth a thread unless there are very few rows.
            drawn = draw_halves(redraw, streams, count, block, bar, count * WORTH_A_THREAD // block)
            values = np.concatenate([values, drawn])
            hits = {"greater": values >= observed - slack, "less": values <= observed + slack}
            if all(np.count_nonzero(hits[side]) >= _ENOUGH for side in sides):
                break
    greater, less = (_pvalue(hits[side], n_resamples) for side in ("greater", "less"))
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return Tails(greater, less, float(np.mean(values)), sd, len(values))


def _pvalue(hits: NDArray[np.bool_], n_resamples: int) -> float:
    """p-value of a sequence stopped at its _ENOUGH-th hit, or of all draws with the observed value among them.

    The side that was not requested may end early, when the other side stops: its draws so far are used.
    """
    positions = np.flatnonzero(hits)
    if len(positions) >= _ENOUGH:
        return _ENOUGH / (int(positions[_ENOUGH - 1]) + 1)
    return (1 + len(positions)) / (1 + min(len(hits), n_resamples))
