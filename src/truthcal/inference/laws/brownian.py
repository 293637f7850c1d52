"""Distributions of the maximum of |B(t)| and of the range of a standard Brownian motion B on [0, 1].

Relative errors are a few roundings times max(x^2, 1 / x^2), also where a probability is tiny.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

# Near the medians. Either series converges fast on its own side: the first term left out is below 1e-60.
_MAXIMUM_SPLIT, _RANGE_SPLIT = 1.2, 1.5
_TERMS, _CATALAN = 12, 0.915965594177219015


def maximum_tail(x: float) -> float:
    """P(maximum of ``|B(t)|`` > x); Feller (1971), An introduction to probability theory, volume 2, X.5."""
    if x < _MAXIMUM_SPLIT:
        return 1.0 - maximum_head(x)
    return 4.0 * _sum_series(lambda k: (-1) ** k * _standard_normal_tail((2 * k + 1) * x))


def maximum_head(x: float) -> float:
    """P(maximum of ``|B(t)|`` < x)."""
    if x >= _MAXIMUM_SPLIT:
        return 1.0 - maximum_tail(x)
    if x <= 1e-100:
        return 0.0
    rate = math.pi**2 / 8.0 / x**2
    return 4.0 / math.pi * _sum_series(lambda k: (-1) ** k / (2 * k + 1) * math.exp(-((2 * k + 1) ** 2) * rate))


def range_tail(x: float) -> float:
    """P(max B(t) - min B(t) > x); Feller (1951), The range of sums of independent random variables."""
    if x < _RANGE_SPLIT:
        return 1.0 - range_head(x)
    return 8.0 * _sum_series(lambda k: (-1) ** k * (k + 1) * _standard_normal_tail((k + 1) * x))


def range_head(x: float) -> float:
    """P(max B(t) - min B(t) < x)."""
    if x >= _RANGE_SPLIT:
        return 1.0 - range_tail(x)
    if x <= 1e-100:
        return 0.0

    def term(k: int) -> float:
        root = (k + 0.5) * math.pi
        return (8.0 / x**2 + 2.0 / root**2) * math.exp(-2.0 * (root / x) ** 2)

    return _sum_series(term)


class PathLimit(NamedTuple):
    """A functional of B: both tails, its mean and its mean square."""

    tail: Callable[[float], float]
    head: Callable[[float], float]
    mean: float
    square: float


# By `Measure.path_limit`.
PATH_LIMITS = {
    "maximum": PathLimit(maximum_tail, maximum_head, math.sqrt(math.pi / 2.0), 2.0 * _CATALAN),
    "range": PathLimit(range_tail, range_head, 2.0 * math.sqrt(2.0 / math.pi), 4.0 * math.log(2.0)),
}


def _standard_normal_tail(x: float) -> float:
    """P(Z > x) for a standard normal Z, a term in the series of Brownian tails."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _sum_series(term: Callable[[int], float]) -> float:
    """Sum of the first terms of a fast series of a Brownian tail, rounded once."""
    return math.fsum(term(k) for k in range(_TERMS))
