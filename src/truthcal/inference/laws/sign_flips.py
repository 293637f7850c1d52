"""The null distribution of a squared length if the errors of whole groups change sign at random.

Under calibration the sum z_g of the errors of a group has mean 0, whatever the rows of the group have in common. If the
signs of whole groups are flipped at random, the squared length of the sum is sum |z_g|^2, which is fixed, plus the sum
over pairs g != h of s_g s_h <z_g, z_h>. With normals in place of the signs s, the second part is a weighted sum of
squares whose scales are the eigenvalues of the matrix of all <z_g, z_h> with a diagonal of zeros: mean, variance and
third cumulant are exactly those of the flips. For many groups, whose diagonal matters little, the scales are the
eigenvalues of sum z_g z_g', and the distance from the mean is stretched to the right variance. No signs are drawn, so
that there is no smallest p-value. Simulated sizes: docs/benchmarks/groups.md.
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
# Squared lengths below this share of those of rows are rounding.
_ROUNDING = 1e-20
# Up to this many groups the eigenvalues without the diagonal are computed: 50 ms for 512.
_FEW_GROUPS = 512


class SignFlips(NamedTuple):
    """Distribution of a squared length under sign flips of groups.

    `observed`: the squared length itself. `scales`: those of the squares of normals. `share`: variance of the flips
    divided by that of the squares. `off_diagonal`: the scales of the sum over pairs of different groups, whose mean is
    0, if there are few groups. `inflation`: the factor in all scales that allows for events that did not happen.
    """

    observed: float
    scales: _Array
    share: float
    off_diagonal: _Array | None = None
    inflation: float = 1.0

    @classmethod
    def of(cls, sums: GroupSums, kernel: TentKernel) -> Self:
        """Find the distribution of a measure with a tent kernel."""
        return cls.of_axes(sums, kernel.axes(kernel.positions(sums.cells)))

    @classmethod
    def of_axes(cls, sums: GroupSums, phi: _Array) -> Self:
        """Find the distribution of the squared length of the mean of c phi, for coordinates `phi` of each cell."""
        total = sums.cells.bias @ phi
        scales = np.maximum(np.linalg.eigvalsh(phi.T @ sums.errors @ phi), 0.0)
        rounding = _ROUNDING * float(np.sum(sums.cells.wwcc))
        if max(float(np.sum(scales)), float(total @ total)) <= rounding:  # errors cancel in each group by construction
            return cls(0.0, np.zeros(1), 1.0)
        own, squares = sums.group_squares(phi), float(np.sum(scales**2))
        share = 1.0 if own is None or squares == 0.0 else 1.0 - float(np.sum(own**2)) / squares
        pairs, inflation = None, sums.fewer_events_factor
        if sums.n_vectors <= _FEW_GROUPS and share > _LEAST_SHARE:
            z = sums.vectors(phi)
            products = z @ z.T
            np.fill_diagonal(products, 0.0)
            pairs = np.linalg.eigvalsh(products).astype(np.float64) * inflation
        return cls(float(total @ total), scales * inflation, max(share, _LEAST_SHARE), pairs, inflation)

    @property
    def mean(self) -> float:
        """Mean of the squared length: the noise floor."""
        return float(np.sum(self.scales))

    @property
    def sd(self) -> float:
        """Standard deviation of the squared length."""
        return math.sqrt(2.0 * self.share * float(np.sum(self.scales**2)))

    def tails(self) -> Tails:
        """Both tails of the observed squared length. The lower one is not stretched or inflated: it is conservative."""
        if self.mean == 0.0:
            return Tails(float(self.observed == 0.0), 1.0, 0.0, 0.0, 0)
        lower = lower_tail(self.observed, self.scales / self.inflation)
        return Tails(self.upper_tail(self.observed), lower, self.mean, self.sd, 0)

    def upper_tail(self, x: float) -> float:
        """Probability of a squared length above x."""
        if self.off_diagonal is not None:
            return upper_tail(x - self.mean, self.off_diagonal)
        return upper_tail(self.mean + (x - self.mean) / math.sqrt(self.share), self.scales)

    def upper_quantile(self, chance: float) -> float:
        """The squared length that is exceeded with this probability; stretched only above the mean."""
        if self.off_diagonal is not None:
            return max(self.mean + upper_quantile(chance, self.off_diagonal), 0.0)
        x = upper_quantile(chance, self.scales)
        return self.mean + (x - self.mean) * math.sqrt(self.share) if x > self.mean else x
