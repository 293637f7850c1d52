"""p-values from the outcomes themselves: all of them if they are few, else random ones. Valid for any statistic."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.parallel import WORTH_A_THREAD, run_parts
from truthcal.core.progress import progress
from truthcal.inference.laws.outcomes import Outcomes, Values, blocks

_Array = NDArray[np.float64]

# All outcomes are gone through if there are at most so many, each measured by a compiled kernel; where each is a call
# of its own, a sixteenth of that, which takes seconds.
MOST_CASES = 1 << 20
MOST_SLOW_CASES = 1 << 16
# Drawing stops when so many draws were at least as extreme (Besag, Clifford 1991): p is then known to 4%, and is large
# if that happens before all draws are used up.
_ENOUGH = 500
# Draws between two looks at the count. Fixed, so that the result does not depend on the number of cores.
_ROUND = 1000


class Tails(NamedTuple):
    """Chances of a value at least as large, and at least as small, under calibration. `draws`: 0 if none was needed."""

    greater: float
    less: float
    mean: float
    sd: float
    draws: int


def enumerate_tails(outcomes: Outcomes, values: Values, observed: float, slack: float) -> Tails:
    """Exact tails: the probability of every outcome is known."""
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
    """Tails from random outcomes, exactly valid: P(p-value <= alpha) <= alpha under calibration, for any alpha.

    `redraw` measures a number of them, at most `block` at a time. Stops early once the tails asked for (`sides`) are
    clearly not small.
    """
    # Always two streams, so that the result does not depend on the number of cores.
    streams = [np.random.default_rng(generator.integers(0, 2**63, 4)) for _ in range(2)]
    found = np.empty(0)
    with progress(n_resamples, "redrawing outcomes") as bar:

        def some(stream: np.random.Generator, count: int) -> _Array:
            parts = []
            for size in blocks(count, block):
                parts.append(redraw(stream, size))
                bar.advance(size)
            return np.concatenate(parts) if parts else np.empty(0)

        while len(found) < n_resamples:
            count = min(_ROUND, n_resamples - len(found))
            # Rounds are long enough for a thread unless there are very few rows.
            one, two = run_parts(
                lambda half=count // 2: some(streams[0], half),  # type: ignore[misc]
                lambda half=count - count // 2: some(streams[1], half),  # type: ignore[misc]
                count * WORTH_A_THREAD // block,
            )
            found = np.concatenate([found, one, two])
            hits = {"greater": found >= observed - slack, "less": found <= observed + slack}
            if all(np.count_nonzero(hits[side]) >= _ENOUGH for side in sides):
                break
    greater, less = (_share(hits[side], n_resamples) for side in ("greater", "less"))
    return Tails(
        greater, less, float(np.mean(found)), float(np.std(found, ddof=1)) if len(found) > 1 else 0.0, len(found)
    )


def _share(hits: NDArray[np.bool_], n_resamples: int) -> float:
    """The p-value: of a sequence stopped at its _ENOUGH-th hit, or else of all draws with the observed one among them.

    A side that nobody asked for may have been cut off by the other one's stop: then its draws so far are all there is.
    """
    where = np.flatnonzero(hits)
    if len(where) >= _ENOUGH:
        return _ENOUGH / (int(where[_ENOUGH - 1]) + 1)
    return (1 + len(where)) / (1 + min(len(hits), n_resamples))
