"""The tent kernel of ATB, the shifted grid, multiscale and information ATB, and their distribution under calibration.

These measures are (1/W^2) sum over s, t of w_s w_t c_s c_t k(x_s, x_t) with k(x, z) = sum over h of
share_h max(0, 1 - |x - z|/h), so k(x, x) = 1. A position x is the prediction itself or, on the information axis, the
share of the information below it.

In the space where the kernel is the inner product of phi(x) and phi(z), such a measure is the squared length of the
mean of w c phi(x). For many rows that mean is normal, so its squared length is a weighted sum of squares of normals.
The weights are eigenvalues, which a few hundred points give to four digits and more.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import read_only
from truthcal.core.points import PointGroups, Points, information_axis
from truthcal.kernels.ubse import grouped_tent_sums, tent_sums
from truthcal.measures.registry import MEASURES
from truthcal.measures.ubse import Multiscale, MultiscaleInformation, tent_starts

_Array = NDArray[np.float64]

# Entries of the matrices whose eigenvalues are computed together, which should fit into the processor's cache.
_BLOCK = 1 << 16
# Directions whose variance is below this share of the largest are left out.
CERTAIN = 1e-11


@dataclass(frozen=True, slots=True)
class TentKernel:
    """A mixture of tents: `widths`, and `shares` that add up to 1, on the axis of p or on the information axis."""

    widths: _Array
    shares: _Array
    information: bool = False

    @classmethod
    def of(cls, measure: str, points: Points) -> Self:
        """Build the kernel of a measure. The shares of several widths on the axis of p depend on the predictions."""
        widths, information = MEASURES[measure].tent_widths, MEASURES[measure].axis == "information"
        if information:
            shares = MultiscaleInformation().shares()
        else:
            shares = {widths[0]: 1.0} if len(widths) == 1 else Multiscale().shares(points.p, points.weight)
        return cls(np.array(list(shares)), np.array(list(shares.values())), information)

    @property
    def steepness(self) -> float:
        """Largest slope of the kernel."""
        return float(np.sum(self.shares / self.widths))

    def positions(self, points: Points) -> _Array:
        """Positions of points on the axis of the tents."""
        return self.positions_of(points.p, points.wv)

    def positions_of(self, p: _Array, information: _Array) -> _Array:
        """Positions of increasing predictions, with their sums of w v, on the axis of the tents."""
        return information_axis(p, information) if self.information else p

    def lengths(self, points: Points) -> _Array:
        """Lengths of the buckets of a sketch on the axis of the tents; 0 where the rows of a bucket count as tied."""
        return np.zeros(len(points)) if self.information else points.high - points.low

    def matrix(self, x: _Array) -> _Array:
        """The kernel between all pairs of points, for each row of x if there are several."""
        distance = np.abs(x[..., :, None] - x[..., None, :])
        k = np.zeros_like(distance)
        for width, share in zip(self.widths, self.shares, strict=True):
            k += share * np.maximum(1.0 - distance / width, 0.0)
        return k

    def before(self, x: _Array) -> NDArray[np.intp]:
        """For each width and point, the first point that is less than a width below; x increases."""
        return tent_starts(x, self.widths)

    def sums(self, x: _Array, c: _Array, before: NDArray[np.intp] | None = None) -> _Array:
        """For each row of `c`, the sum over all pairs of points of c c' k."""
        out = np.empty(len(c))
        x, c = read_only(x), read_only(c)  # so that the kernel compiles once
        tent_sums(x, c, self.before(x) if before is None else before, 1.0 / self.widths, self.shares, out)
        return out

    def group_sums(self, starts: NDArray[np.int64], x: _Array, c: _Array) -> _Array:
        """For each group of points, the sum over all of its pairs of c c' k; x increases in each group."""
        out = np.empty(len(starts) - 1)
        grouped_tent_sums(starts, x, c, 1.0 / self.widths, self.shares, out)
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
            # Sums over pairs of points less than a width apart of a a', of a a' (x - x') and of a a' (x - x')^2.
            pairs = a @ mass, a @ (x * mass - moment), a @ (x * x * mass - 2.0 * x * moment + second)
            for other, other_share in zip(self.widths, self.shares, strict=True):
                if other < width:
                    continue
                near = pairs[0] - pairs[1] * (1.0 / width + 1.0 / other) + pairs[2] / (width * other)
                factor = share * other_share * (1.0 if other == width else 2.0)
                total += factor * float(a @ a + 2.0 * near)
        return max(total, 0.0)

    def measure(self, points: Points) -> float:
        """The measure with this kernel, from the points of a sketch.

        Each bucket becomes two points with the bucket's sums of w c and w c p, as far apart as rows at equal distances
        between its smallest and its largest prediction are in the root mean square. So buckets of one or two rows are
        exact, and of the others pairs of rows in different buckets wherever the kernel is straight between them;
        docs/guide/inference.md compares the error of the rest with the spread of the measure under calibration. On the
        information axis the rows of a bucket count as tied.
        """
        if self.information:
            return float(self.group_measures(PointGroups.one(points))[0])
        n = np.maximum(points.n, 2)
        middle, reach = (points.low + points.high) / 2.0, (points.high - points.low) * np.sqrt((n + 1) / (n - 1) / 12.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            tilt = np.where(reach > 0.0, (points.wcp - points.bias * middle) / reach, 0.0)
        x = np.stack([middle - reach, middle + reach], axis=1).ravel()
        c = np.stack([(points.bias - tilt) / 2.0, (points.bias + tilt) / 2.0], axis=1).ravel()
        return float(self.sums(x, c[None, :])[0]) / points.total**2

    def group_measures(self, groups: PointGroups) -> _Array:
        """The measure with this kernel of each group of points of sketches."""
        if not self.information:
            return np.array([self.measure(points) for points in groups])
        return self.group_sums(groups.starts, self._group_positions(groups), groups.points.bias) / groups.total**2

    def _group_positions(self, groups: PointGroups) -> _Array:
        """Positions of the points of each group on the axis of the tents."""
        points, parts = groups.points, [slice(*ends) for ends in pairwise(groups.starts.tolist())]
        return np.concatenate([self.positions_of(points.p[part], points.wv[part]) for part in parts])

    def axes(self, x: _Array) -> _Array:
        """Coordinates of phi at the points x: inner products of rows are the kernel.

        By Cholesky, since eigenvectors take a hundred times as long where BLAS threads wait for a busy core. Points too
        close together to be distinguished are moved apart a little, which changes lengths by less than that.
        """
        return np.linalg.cholesky(self.matrix(x) + np.eye(len(x)) * (1e-12 * len(x))).astype(np.float64)

    def null_scales(self, points: Points) -> _Array:
        """Scales of the null distribution for many rows: a sum of squares of standard normals, each with its scale."""
        return self.group_null_scales(PointGroups.one(points))

    def group_null_scales(self, groups: PointGroups) -> _Array:
        """Scales of the null distribution of each group, as many as it has points, and in their place."""
        points, sizes, x = groups.points, np.diff(groups.starts), self._group_positions(groups)
        root = np.sqrt(points.wwv) / groups.spread(groups.total)
        scales = np.empty(len(points))
        for size in np.unique(sizes):
            places = groups.starts[:-1][sizes == size, None] + np.arange(size)
            for first in range(0, len(places), block := 1 + _BLOCK // size**2):
                place = places[first : first + block]
                scaled = root[place][:, :, None] * self.matrix(x[place]) * root[place][:, None, :]
                scales[place] = np.linalg.eigvalsh(scaled)
        return np.maximum(scales, 0.0)


@dataclass(frozen=True, slots=True)
class NullMoments:
    """Mean and standard deviation of a measure under calibration; `pairs`: the variance from pairs of rows alone."""

    mean: float
    sd: float
    pairs: float


def null_moments(kernel: TentKernel, points: Points) -> NullMoments:
    """Null moments with a tent kernel, a row being one observation: exact for sorted rows, else up to bucket width.

    Variance: twice the sum over pairs of k^2 a a', a = w^2 v, plus the rest of each row with itself, w^4 v (1 - 6v),
    since c^2 has the variance v (1 - 4v).
    """
    a, row_ww = points.wwv / points.total**2, points.row_ww / points.total**2
    pairs = 2.0 * kernel.squares(kernel.positions(points), a)
    self_pairs = float(np.sum(a * row_ww * (1.0 - 6.0 * points.p * (1.0 - points.p))))
    return NullMoments(points.noise_floor, math.sqrt(max(pairs + self_pairs, 0.0)), pairs)
