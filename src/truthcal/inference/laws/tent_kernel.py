"""The tent kernel of ATB, the shifted grid and multiscale ATB, and their moments under calibration.

These measures are (1/W^2) sum over s, t of w_s w_t c_s c_t k(p_s, p_t) with k(p, q) = sum over h of
share_h max(0, 1 - |p - q|/h), so k(p, p) = 1.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.sample import Sample
from truthcal.kernels import tents
from truthcal.measures.registry import MEASURES
from truthcal.measures.ubse import Multiscale

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TentKernel:
    """A mixture of tents: `widths`, and `shares` that add up to 1."""

    widths: _Array
    shares: _Array

    @classmethod
    def of(cls, measure: str, sample: Sample) -> Self:
        """Build the kernel of a measure. The shares of several widths depend on the predictions."""
        widths = MEASURES[measure].tent_widths
        shares = {widths[0]: 1.0} if len(widths) == 1 else Multiscale().shares(sample)
        return cls(np.array(list(shares)), np.array(list(shares.values())))

    @property
    def steepness(self) -> float:
        """Largest slope of the kernel."""
        return float(np.sum(self.shares / self.widths))

    def matrix(self, x: _Array) -> _Array:
        """The kernel between all pairs of points."""
        distance = np.abs(x[:, None] - x)
        k = np.zeros_like(distance)
        for width, share in zip(self.widths, self.shares, strict=True):
            k += share * np.maximum(1.0 - distance / width, 0.0)
        return k

    def before(self, x: _Array) -> NDArray[np.int64]:
        """For each width and point, the first point that is less than a width below; x increases."""
        return np.stack([np.searchsorted(x, x - width, side="right") for width in self.widths]).astype(np.int64)

    def sums(self, x: _Array, c: _Array, before: NDArray[np.int64] | None = None) -> _Array:
        """For each row of `c`, the sum over all pairs of points of c c' k."""
        out = np.empty(len(c))
        tents.tent_sums(x, c, self.before(x) if before is None else before, 1.0 / self.widths, self.shares, out)
        return out

    def smoothed(self, x: _Array, c: _Array) -> _Array:
        """At each point, the sum over all points of c k; x increases."""
        mass, moment = np.concatenate([np.zeros((2, 1)), np.cumsum([c, c * x], axis=1)], axis=1)
        here = np.arange(len(x))
        total = np.zeros(len(x))
        for width, share in zip(self.widths, self.shares, strict=True):
            first = np.searchsorted(x, x - width, side="right")
            last = np.searchsorted(x, x + width, side="left")
            below = (mass[here] - mass[first]) * (1.0 - x / width) + (moment[here] - moment[first]) / width
            above = (mass[last] - mass[here]) * (1.0 + x / width) - (moment[last] - moment[here]) / width
            total += share * (below + above)
        return total

    def squares(self, x: _Array, a: _Array) -> float:
        """Sum over all pairs of points of a a' k^2, from prefix sums: exact, O(points)."""
        distances = np.concatenate([np.zeros((3, 1)), np.cumsum([a, a * x, a * x * x], axis=1)], axis=1)
        here = np.arange(len(x))
        total = 0.0
        for width, share, first in zip(self.widths, self.shares, self.before(x), strict=True):
            mass, moment, second = distances[:, here] - distances[:, first]
            d, dd = x * mass - moment, x * x * mass - 2.0 * x * moment + second  # sums of a (x - x') and a (x - x')^2
            for other, other_share in zip(self.widths, self.shares, strict=True):
                if other < width:
                    continue
                near = mass - d * (1.0 / width + 1.0 / other) + dd / (width * other)
                factor = share * other_share * (1.0 if other == width else 2.0)
                total += factor * float(np.sum(a * (a + 2.0 * near)))
        return max(total, 0.0)


def excess_of(measure: str, sample: Sample) -> float:
    """A measure without its noise: the unbiased estimate of its population value. Needs two rows."""
    m = sample.moments
    return (MEASURES[measure].of_sample(sample) - m.wwcc / m.w**2) / (1.0 - m.ww / m.w**2)


@dataclass(frozen=True, slots=True)
class NullMoments:
    """Mean and standard deviation of a measure when outcomes follow the predictions."""

    mean: float
    sd: float


def null_moments(kernel: TentKernel, sample: Sample) -> NullMoments:
    """Compute exact moments, for independent rows of which each is one observation, whatever its weight.

    Variance: twice the sum over pairs of k^2 a a', a = w^2 v, plus the rest of each row with itself, w^4 v (1 - 6v),
    since c^2 has the variance v (1 - 4v).
    """
    groups, total = sample.groups, sample.weight
    v = sample.p * (1.0 - sample.p.astype(np.float64))
    a = np.add.reduceat(sample.w**2 * v, sample.starts)
    self_pairs = float(np.sum(sample.w**4 * v * (1.0 - 6.0 * v)))
    variance = 2.0 * kernel.squares(groups.r, a) + self_pairs
    return NullMoments(float(np.sum(a)) / total**2, math.sqrt(max(variance, 0.0)) / total**2)
