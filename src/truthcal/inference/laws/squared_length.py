"""The squared length of a normal vector: its tails, and when its mean has an interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.roots import interval_end
from truthcal.inference.laws.quadratic_form import lower_tail, upper_quantile, upper_tail
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
        """Find the principal axes."""
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

    def least_length(self, chance: float, axes_at: "Callable[[float], Axes]") -> float:
        """The smallest length of the mean, in the observed direction, at which the upper tail does not reject.

        `axes_at` gives the vector on the principal axes that it has at a share of the observed length.
        """
        square = float(self.observed @ self.observed)
        if square == 0.0:
            return 0.0

        def rising(length: float) -> float:
            share = length / math.sqrt(square)
            axes = axes_at(share)
            return axes.tail(square, axes.observed * share, upper_tail) - chance

        return interval_end(rising)

    def largest_length(self, chance: float, unusually_small: float) -> float:
        """The largest length of the mean at which the lower tail of the observed squared length does not reject.

        The direction is the observed one, turned as far as that may be noise towards the directions of noise: there,
        noise hides the mean. A squared length below the quantile `unusually_small` of that of noise is replaced by it.
        """
        square = float(self.observed @ self.observed)
        if self.noise == 0.0 or square == 0.0:
            return math.sqrt(square)
        signal = max(0.0, 1.0 - self.noise / square)
        direction = self.observed * math.sqrt(signal / square)
        direction += math.sqrt(1.0 - signal) * np.copysign(np.sqrt(self.scales / self.noise), self.observed)
        direction /= math.sqrt(float(direction @ direction))
        square = max(square, upper_quantile(1.0 - unusually_small, self.scales))
        return interval_end(lambda length: chance - self.tail(square, direction * length, lower_tail))


def why_no_interval(rows: int, one_row: float) -> str:
    """Reason why rows of this number and sum of w^2 / W^2 have no confidence interval; empty if they have one."""
    if rows < 2:
        return "an interval needs two rows"
    uneven = one_row * rows > 2.0 and one_row * _FEW > 1.0
    return "a few rows have nearly all of the weight" if uneven or one_row >= 1.0 else ""
