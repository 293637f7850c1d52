"""Detectable overconfidence: slopes that the calibration test of many classes detects with a given power."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.roots import find_root
from truthcal.inference.laws.quadratic_form import upper_quantile
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.null_law import NullLaw
from truthcal.inference.multiclass.slope import tempered

_Array = NDArray[np.float64]

# Rows from which the means are computed.
_MOST_ROWS = 20_000
# Slopes as powers of e, between which is searched.
_FARTHEST, _PRECISION = math.log(8.0), 1e-3


def detectable_slopes(cells: ClassCells, law: NullLaw, alpha: float, power: float) -> tuple[float, float]:
    """The slopes below and above 1 that a test at level alpha detects with this power; nan if none does.

    The statistic is approximately normal with the mean |m|^2 plus that of noise, where m is the mean vector if the true
    probabilities have another slope than the predictions. Flatter truths have more noise, which is detected as well:
    without it, the power at a slope of 0.77 was 1.0 instead of 0.8 (10 classes).
    """
    if law.mean <= 0.0:
        return math.nan, math.nan
    distance = (upper_quantile(alpha, law.scales) - law.mean) * math.sqrt(law.share)
    largest = float(np.max(law.scales))
    at_most = int(np.clip(100 * _MOST_ROWS // cells.rows.n_classes**2, 500, _MOST_ROWS))
    part = cells.take(cells.rows.sampled(at_most))
    noise = _noise(part, part.rows.p)

    def shortfall(log_slope: float) -> float:
        """Standard deviations by which the critical value exceeds the mean plus what the power requires."""
        truth = tempered(part.rows.p, math.exp(log_slope))
        square = _squared_mean(part, part.rows.p - truth)
        # The variance along the mean is at most the largest eigenvalue: power is not overstated.
        ratio = _noise(part, truth) / noise if noise > 0.0 else 1.0
        sd = math.sqrt((ratio * law.sd) ** 2 + 4.0 * square * ratio * largest)
        return (distance - square - (ratio - 1.0) * law.mean) / max(sd, 1e-300) + float(special.ndtri(power))

    ends = []
    for direction in (-1.0, 1.0):
        far = direction * _FARTHEST
        ends.append(math.nan if shortfall(far) > 0.0 else math.exp(find_root(shortfall, 0.0, far, xtol=_PRECISION)))
    return ends[0], ends[1]


def _noise(cells: ClassCells, q: _Array) -> float:
    """Mean of the statistic's noise, up to a factor, if classes have the probabilities q."""
    return float(cells.rows.w**2 @ ((q * (1.0 - q)) @ cells.class_weights()))


def _squared_mean(cells: ClassCells, errors: _Array) -> float:
    """Squared length of the mean vector of given errors of rows."""
    rows = cells.rows
    sums = np.zeros((cells.n_cells, rows.n_classes))
    for j in range(rows.n_classes):
        weighted = np.broadcast_to((rows.w * errors[:, j])[:, None], cells.cell.shape)
        sums[:, j] = np.bincount(cells.cell.ravel(), weighted.ravel(), cells.n_cells)
    return float(cells.statistic(sums))
