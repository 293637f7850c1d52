"""Results of power analysis."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from truthcal.results.base import Result
from truthcal.results.text import count


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValidityCurve(Result):
    """Acceptance rate of a test by the distance of predictions from calibration. Returned by `validity_curve`.

    Attributes
    ----------
    distance : ndarray
        Distances to calibration (distCal of the true probabilities).
    acceptance, standard_error : ndarray
        Share of simulations accepted, and its standard error.
    measure, alpha, family, n : str, float, str, int
        Statistic and level of the test, kind of error of the predictions, and number of rows.
    """

    distance: NDArray[np.float64]
    acceptance: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    measure: str
    alpha: float
    family: str
    n: int
    _columns: ClassVar = ("distance", "acceptance", "standard_error")

    def __str__(self) -> str:
        test = f"{self.measure} at level {self.alpha:g} for {self.n:,} predictions"
        start = f"Acceptance rate of {test}, by distance to calibration ({self.family}):"
        rows = zip(self.distance, self.acceptance, strict=True)
        return "\n".join([start, *(f"  distance {d:<7.3g} accepted {a:.0%}" for d, a in rows)])


@dataclass(frozen=True, slots=True)
class DetectableError(Result):
    """The smallest mean error that a test detects with given power. Returned by `detectable_error`.

    Attributes
    ----------
    too_high, too_low, too_extreme : float
        Mean of ``|prediction - truth|`` if predictions are all too high, all too low, or too extreme; nan if no such
        error is detectable.
    power, alpha, measure : float, float, str
        Power, level and statistic of the test.
    n, information : int, float
        Number of rows, and sum of p(1 - p). If this sum is below 5, no error is given.
    """

    too_high: float
    too_low: float
    too_extreme: float
    power: float
    alpha: float
    measure: str
    n: int
    information: float

    @property
    def largest(self) -> float:
        """The largest of the three errors; nan if none is known."""
        errors = self.too_high, self.too_low, self.too_extreme
        return max((error for error in errors if not math.isnan(error)), default=math.nan)

    def __str__(self) -> str:
        if math.isnan(self.largest):
            why = f"too little information (sum p(1 - p) is {self.information:.2g})"
            return f"No detectable error can be given for {count(self.n, 'prediction')}: {why}."
        words = {"all are too high": self.too_high, "all are too low": self.too_low, "too extreme": self.too_extreme}
        lines = [f"  {error:.2g} if {how}" for how, error in words.items() if not math.isnan(error)]
        start = f"With these {self.n:,} predictions, a test at level {self.alpha:g} has {self.power:.0%} power"
        return f"{start} to detect a mean error of\n" + ",\n".join(lines) + "."
