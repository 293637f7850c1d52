"""How far a Brownian motion on [0, 1] strays: tails of its largest distance from 0 and of its range."""

import math
from collections.abc import Callable

# Near the medians. Either series converges fast on its own side: the first term left out is below 1e-60.
_MAXIMUM_SPLIT = 1.2
_RANGE_SPLIT = 1.5
_TERMS = 12


def maximum_tail(x: float) -> float:
    """Chance that the largest ``|B(t)|`` over 0 <= t <= 1 exceeds x, for a standard Brownian motion B.

    Parameters
    ----------
    x : float
        The threshold; infinite is fine.

    Returns
    -------
    float
        The chance, with a relative error of a few x^2 roundings. 1 for x <= 0.

    References
    ----------
    Feller (1971), An introduction to probability theory and its applications, volume 2, X.5.

    Examples
    --------
    >>> print(f"{maximum_tail(2.2414):.4f}")
    0.0500
    """
    if x < _MAXIMUM_SPLIT:
        return 1.0 - maximum_head(x)
    return 4.0 * _sum(lambda k: (-1) ** k * _normal_tail((2 * k + 1) * x))


def maximum_head(x: float) -> float:
    """Chance that the largest ``|B(t)|`` over 0 <= t <= 1 stays below x.

    Parameters
    ----------
    x : float
        The threshold; infinite is fine.

    Returns
    -------
    float
        The chance, with a relative error of a few 1 / x^2 roundings, also where it is tiny. 0 for x <= 0.

    Examples
    --------
    >>> print(f"{maximum_head(0.2):.4g}")
    5.131e-14
    """
    if x >= _MAXIMUM_SPLIT:
        return 1.0 - maximum_tail(x)
    if x <= 1e-100:
        return 0.0
    rate = math.pi**2 / 8.0 / x**2
    return 4.0 / math.pi * _sum(lambda k: (-1) ** k / (2 * k + 1) * math.exp(-((2 * k + 1) ** 2) * rate))


def range_tail(x: float) -> float:
    """Chance that ``max B(t) - min B(t)`` over 0 <= t <= 1 exceeds x, for a standard Brownian motion B.

    Parameters
    ----------
    x : float
        The threshold; infinite is fine.

    Returns
    -------
    float
        The chance, with a relative error of a few x^2 roundings. 1 for x <= 0.

    References
    ----------
    Feller (1951), The asymptotic distribution of the range of sums of independent random variables.

    Examples
    --------
    >>> print(f"{range_tail(2.4977):.4f}")
    0.0500
    """
    if x < _RANGE_SPLIT:
        return 1.0 - range_head(x)
    return 8.0 * _sum(lambda k: (-1) ** k * (k + 1) * _normal_tail((k + 1) * x))


def range_head(x: float) -> float:
    """Chance that ``max B(t) - min B(t)`` over 0 <= t <= 1 stays below x.

    Parameters
    ----------
    x : float
        The threshold; infinite is fine.

    Returns
    -------
    float
        The chance, with a relative error of a few 1 / x^2 roundings, also where it is tiny. 0 for x <= 0.

    Examples
    --------
    >>> print(f"{range_head(0.4):.4g}")
    2.047e-12
    """
    if x >= _RANGE_SPLIT:
        return 1.0 - range_tail(x)
    if x <= 1e-100:
        return 0.0

    def term(k: int) -> float:
        root = (k + 0.5) * math.pi
        return (8.0 / x**2 + 2.0 / root**2) * math.exp(-2.0 * (root / x) ** 2)

    return _sum(term)


def _normal_tail(x: float) -> float:
    """Chance that a standard normal exceeds x."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _sum(term: Callable[[int], float]) -> float:
    """Sum of the first terms of a fast series, rounded once."""
    return math.fsum(term(k) for k in range(_TERMS))
