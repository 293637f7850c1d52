"""The squared length of a normal vector: its tails, and the ends of an interval of the length of its mean."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.points import Points
from truthcal.core.roots import find_root
from truthcal.inference.laws.tent_kernel import CERTAIN

_Array = NDArray[np.float64]

# With uneven weights and a smaller effective sample size, means are not approximately normal.
_FEW = 20.0


@dataclass(frozen=True, slots=True)
class Axes:
    """A normal vector on its principal axes: a vector on these axes, and the variances in increasing order."""

    observed: _Array
    scales: _Array

    @classmethod
    def of(cls, observed: _Array, covariance: _Array) -> Self:
        """Find the principal axes. A covariance that is a vector is the diagonal of a matrix."""
        if covariance.ndim == 1:
            order = np.argsort(covariance)
            return cls(observed[order], covariance[order])
        scales, axes = np.linalg.eigh(covariance)
        return cls(observed @ axes, np.maximum(scales, 0.0))

    @property
    def noise(self) -> float:
        """Expected squared length if the mean is 0."""
        return float(np.sum(self.scales))

    def tail(self, squared_length: float, mean: _Array, side: Callable[..., float]) -> float:
        """Tail probability of the squared length for a given mean, on these axes."""
        free = self.scales > CERTAIN * max(float(self.scales[-1]), 1e-12 * squared_length)
        rest = squared_length - float(np.sum(mean[~free] ** 2))
        return side(rest, self.scales[free], mean[free] / np.sqrt(self.scales[free]))


def interval_end(rising: Callable[[float], float]) -> float:
    """End of a confidence interval: root of an increasing function on [0, 1], or an end of [0, 1] if it has none.

    Lengths are much smaller than 1, so dividing by 4 brackets the root faster than Brent's method alone.
    """
    rising = functools.cache(rising)  # a tail takes a millisecond, and `find_root` evaluates both ends again
    if rising(0.0) >= 0.0:
        return 0.0
    if rising(1.0) <= 0.0:
        return 1.0
    high = 1.0
    while high > 1e-12 and rising(high / 4.0) > 0.0:
        high /= 4.0
    return find_root(rising, high / 4.0 if high > 1e-12 else 0.0, high, xtol=1e-12, rtol=1e-6)


def why_no_interval(points: Points) -> str:
    """Reason why these points have no confidence interval; empty if they have one."""
    if points.rows < 2:
        return "an interval needs two rows"
    uneven = points.one_row * points.rows > 2.0 and points.one_row * _FEW > 1.0
    return "a few rows have nearly all of the weight" if uneven or points.one_row >= 1.0 else ""
