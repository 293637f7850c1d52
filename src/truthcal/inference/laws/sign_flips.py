"""The null distribution of a squared length if the errors of whole groups change sign at random.

Under calibration the sum z_g of the errors of a group has mean 0, whatever the rows of the group have in common. If the
signs of whole groups are flipped at random, the squared length of the sum has the mean sum |z_g|^2 and the variance
2 sum over g != h of <z_g, z_h>^2, both exactly. Its distribution is nearly that of a weighted sum of squares of normals
with the eigenvalues of sum z_g z_g' as scales, whose variance is too large by the pairs g = h. It is stretched to the
right variance. No signs are drawn, so that there is no smallest p-value. Simulated sizes: docs/benchmarks/groups.md.
"""

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.group_sums import GroupSums
from truthcal.inference.laws.quadratic_form import lower_tail, upper_quantile, upper_tail
from truthcal.inference.laws.redraw import Tails
from truthcal.inference.laws.tent_kernel import TentKernel

_Array = NDArray[np.float64]

# Share of the variance of the weighted sum of squares that is left for pairs of different groups, at least. It is less
# only if one or two groups have nearly all of the weight.
_LEAST_SHARE = 0.05


class SignFlips(NamedTuple):
    """Distribution of a squared length under sign flips of groups.

    `observed`: the squared length itself. `scales`: those of the squares of normals. `share`: variance of the flips
    divided by that of the squares.
    """

    observed: float
    scales: _Array
    share: float

    @classmethod
    def of(cls, sums: GroupSums, kernel: TentKernel) -> Self:
        """Find the distribution of a measure with a tent kernel."""
        return cls.of_axes(sums, kernel.axes(kernel.positions(sums.cells)))

    @classmethod
    def of_axes(cls, sums: GroupSums, phi: _Array) -> Self:
        """Find the distribution of the squared length of the mean of c phi, for coordinates `phi` of each cell."""
        total = sums.cells.bias @ phi
        scales = np.maximum(np.linalg.eigvalsh(phi.T @ sums.errors @ phi), 0.0)
        own, squares = sums.group_squares(phi), float(np.sum(scales**2))
        share = 1.0 if own is None or squares == 0.0 else 1.0 - float(np.sum(own**2)) / squares
        return cls(float(total @ total), scales * sums.fewer_events_factor, max(share, _LEAST_SHARE))

    @property
    def mean(self) -> float:
        """Mean of the squared length: the noise floor."""
        return float(np.sum(self.scales))

    @property
    def sd(self) -> float:
        """Standard deviation of the squared length."""
        return math.sqrt(2.0 * self.share * float(np.sum(self.scales**2)))

    def tails(self) -> Tails:
        """Both tails of the observed squared length. The lower one is not stretched, which makes it conservative."""
        if self.mean == 0.0:
            return Tails(float(self.observed == 0.0), 1.0, 0.0, 0.0, 0)
        return Tails(self.upper_tail(self.observed), lower_tail(self.observed, self.scales), self.mean, self.sd, 0)

    def upper_tail(self, x: float) -> float:
        """Probability of a squared length above x."""
        return upper_tail(self.mean + (x - self.mean) / math.sqrt(self.share), self.scales)

    def upper_quantile(self, chance: float) -> float:
        """The squared length that is exceeded with this probability; stretched only above the mean."""
        x = upper_quantile(chance, self.scales)
        return self.mean + (x - self.mean) * math.sqrt(self.share) if x > self.mean else x
