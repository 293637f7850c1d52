"""The gain of a lie: its standard error, its share of the honest score, and whether it exceeds rounding and chance."""

import math

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure
from truthcal.audits.stages import Scored

_Array = NDArray[np.float64]

# Draws, and expected number of the rarer outcomes in them, needed for a reliable standard error (a Poisson count of 100
# is below 70 once in 250 times).
MIN_DRAWS, MIN_EXPECTED = 20, 100
# Differences below this are rounding.
_ROUNDING = 1e-12


def margin(measure: AuditedMeasure) -> float:
    """Return the size up to which differences are ignored."""
    return max(2.0 * measure.tolerance, _ROUNDING)


def standard_error(draws: _Array) -> float:
    """Return the standard error of the mean of random draws; 0 if there are none, because the mean is exact."""
    return float(np.std(draws, ddof=1)) / math.sqrt(len(draws)) if len(draws) else 0.0


def relative_gain(gain: float, honest: Scored, lie: Scored, tolerance: float) -> float:
    """Gain as a share of the honest score; nan if that is 0 up to its error, or if the scores differ in sign."""
    if gain == 0.0:
        return 0.0
    rounding = _ROUNDING * max(abs(honest.value), abs(lie.value))
    error = max(rounding, tolerance, 3.0 * standard_error(honest.draws))
    return gain / abs(honest.value) if abs(honest.value) > error and honest.value * lie.value >= 0.0 else math.nan
