"""Statistics of filled buckets, from their sums: of one sketch, or of many at once."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from truthcal.core.points import excess
from truthcal.kernels import buckets
from truthcal.results.measures import Bounded, BoundedArray

# What a quotient may have lost to underflow.
_TINY = 1e-300


def predictions_are_certain(columns: NDArray[np.float64]) -> bool:
    """Whether all predictions in buckets with these COLUMNS are 0 or 1. Variances do not show it: they underflow."""
    ends = columns[[buckets.LOW, buckets.HIGH]]
    return not columns[buckets.WWV].any() and bool(((ends == 0.0) | (ends == 1.0)).all())


class BucketStats:
    """Statistics of the filled buckets of one sketch or of many: arrays with one entry for each group.

    The COLUMNS of group g stand from ``starts[g]`` to ``starts[g + 1]``, by increasing bucket. No group may be empty.
    """

    def __init__(self, starts: NDArray[np.int64], columns: NDArray[np.float64]) -> None:
        self._starts, self._columns = starts, columns
        self.totals = np.empty((buckets.N_SUMS, len(starts) - 1))
        buckets.group_totals(starts, columns, self.totals)
        n, w, ww, wp, pos, neg, _, wcc, _, wwv, *_ = self.totals
        self.n, self.weight = n.astype(np.int64), w
        self.mean_proba, self.bias = wp / w, (pos - neg) / w
        self.mean_true = np.clip((wp - (pos - neg)) / w, 0.0, 1.0)
        self.brier, self.noise_floor = wcc / w, wwv / w**2
        self.one_row = np.where(n > 1, ww / w**2, 1.0)

    @cached_property
    def _bounds(self) -> NDArray[np.float64]:
        out = np.empty((buckets.N_BOUNDS, len(self.n)))
        buckets.group_bounds(self._starts, self._columns, self.totals, out)
        return out

    @property
    def atb(self) -> BoundedArray:
        """ATB between certified bounds."""
        return BoundedArray(*self._bounds[:3])

    @property
    def atb_l1(self) -> BoundedArray:
        """ATB_l1 between certified bounds."""
        return BoundedArray(*self._bounds[3:6])

    @property
    def excess(self) -> NDArray[np.float64]:
        """Unbiased estimate of the ATB without the noise; nan for one row."""
        return excess(self.atb.value, self.totals[buckets.WWCC] / self.weight**2, self.one_row)

    def bracket(self) -> dict[str, NDArray[np.float64]]:
        """The fields of `DistanceBracket`."""
        slack = self._bounds[6] / self.weight + _TINY
        bias = BoundedArray(self.bias, self.bias - slack, self.bias + slack)
        return distance_bracket(self.atb, self.atb_l1, bias)


def distance_bracket(
    atb: Bounded | BoundedArray, atb_l1: Bounded | BoundedArray, bias: Bounded | BoundedArray
) -> dict[str, NDArray[np.float64]]:
    """The fields of `DistanceBracket`, from sums of buckets: the tightest inequalities (docs/theory/foundations.md)."""
    least = np.maximum(np.maximum(bias.low, -bias.high), 0.0)
    smcal_low = np.maximum(np.maximum((atb_l1.low + least) / 2.0, atb.low), least)
    most = np.maximum(bias.high, -bias.low)
    beyond_bias = np.minimum(atb_l1.high, np.sqrt(np.maximum(2.0 * atb.high - least**2, 0.0))) / 2.0
    smcal_high = np.minimum(np.minimum(1.5 * atb_l1.high, most + beyond_bias), 1.0)
    distcal_low = np.maximum(np.maximum(atb_l1.low / 3.0, smcal_low / 2.0), least)
    distcal_high = np.minimum(np.minimum(2.0 * smcal_high - least, atb_l1.high), 1.0)
    return dict(smcal_low=smcal_low, smcal_high=smcal_high, distcal_low=distcal_low, distcal_high=distcal_high)
