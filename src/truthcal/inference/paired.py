"""The mean of paired differences: standard error, interval and p-value, for rows or for groups of rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

_Array = NDArray[np.float64]


class PairedMean(NamedTuple):
    """Mean of differences with its standard error and Student's degrees of freedom."""

    mean: float
    standard_error: float
    freedom: float

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return the ends of Student's interval."""
        reach = float(special.stdtrit(self.freedom, (1.0 + confidence_level) / 2.0)) * self.standard_error
        return self.mean - reach, self.mean + reach

    @property
    def pvalue(self) -> float:
        """The two-sided p-value of a mean of 0."""
        if self.standard_error == 0.0:
            return float(self.mean == 0.0)
        return 2.0 * float(special.stdtr(self.freedom, -abs(self.mean) / self.standard_error))


def paired_mean(difference: _Array, weight: _Array, groups: NDArray[np.int64] | None) -> PairedMean:
    """Compute the weighted mean of differences; rows of one group belong together."""
    share = weight / np.sum(weight)
    mean = float(np.sum(share * difference))
    deviation = share * (difference - mean)
    if groups is not None:
        share, deviation = (np.bincount(groups, x).astype(np.float64) for x in (share, deviation))
    one_row = float(np.sum(share**2))
    if not one_row < 1.0:
        return PairedMean(mean, float("nan"), float("nan"))
    variance = float(np.sum(deviation**2)) / (1.0 - one_row)
    return PairedMean(mean, float(np.sqrt(variance)), 1.0 / one_row - 1.0)
