"""Results of power analysis."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from truthcal.results.base import PageResult, Plotted, Result
from truthcal.results.text import Page, Table, Unit, count, unit_of

# Shifts upwards and downwards that differ by at most this share are given as one, and rounding moves them by at most
# this share: either changes a power of 0.8 by about 0.01.
_SAME, _CLOSE = 0.03, 0.02


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Validity(Plotted, PageResult):
    """How well a test tells calibrated from miscalibrated populations, by number of rows. Returned by `validity`.

    Attributes
    ----------
    n_rows, distance : ndarray
        Number of rows in a sample, and distance of the miscalibrated populations from calibration.
    threshold : ndarray
        Largest number that is accepted; nan for a test that decides itself.
    accept_calibrated, accept_miscalibrated : ndarray
        Lowest acceptance rate of a calibrated population, and highest one of a miscalibrated population.
    standard_error : ndarray
        Standard error of the gap between these two rates.
    best_possible : ndarray
        The largest gap that any test can have, as given by `best_possible_gap`.
    gap : ndarray
        Lowest acceptance rate of a calibrated population minus highest one of a miscalibrated population.
    test, constant, n_simulations : str, float, int
        Name of the test; ``distance * sqrt(n_rows)``; number of samples behind each rate.
    """

    n_rows: NDArray[np.int64]
    distance: NDArray[np.float64]
    threshold: NDArray[np.float64]
    accept_calibrated: NDArray[np.float64]
    accept_miscalibrated: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    best_possible: NDArray[np.float64]
    test: str
    constant: float
    n_simulations: int
    _derived: ClassVar = ("gap",)
    _columns: ClassVar = (
        *("n_rows", "distance", "threshold", "accept_calibrated", "accept_miscalibrated"),
        *("gap", "standard_error", "best_possible"),
    )

    @property
    def gap(self) -> NDArray[np.float64]:
        """Gap between the two acceptance rates."""
        return self.accept_calibrated - self.accept_miscalibrated

    def _page(self) -> Page:
        rates = self.accept_calibrated, self.accept_miscalibrated, self.gap, self.best_possible
        cells = [f"{n:,}" for n in self.n_rows], [f"{d:.3g}" for d in self.distance]
        rows = list(zip(*cells, *([f"{rate:.2f}" for rate in column] for column in rates), strict=True))
        heading = f"Acceptance rate of {self.test} at a distance of {self.constant:g} / sqrt(rows) from calibration:"
        header = ("rows", "distance", "calibrated", "miscalibrated", "gap", "any test")
        return Page(heading, Table(header, rows, right=range(len(header)), indent=2))


@dataclass(frozen=True, slots=True)
class DetectableError(Result):
    """The smallest errors that a test detects with given power, by their shape. Returned by `detectable_error`.

    Attributes
    ----------
    too_high, too_low : float
        Mean of ``|prediction - truth|`` if all predictions are too high by `shift_high`, or too low by `shift_low`.
    too_extreme, too_timid : float
        Mean of ``|prediction - truth|`` at these slopes: `slope_low`, `slope_high`.
    shift_high, shift_low : float
        Amount by which all predictions are too high, or all too low; but no truth is below 0 or above 1, so the mean
        error may be smaller. nan if no such error is detectable.
    slope_low, slope_high : float
        Slope of the true log-odds in the predicted ones, below 1 if predictions are too extreme (overconfident) and
        above 1 if they are too timid (underconfident), with the right mean; nan if no such slope is detectable.
    power, alpha, measure : float, float, str
        Power, level and statistic of the test.
    n, information : int, float
        Number of rows, and sum of p(1 - p). If this sum is below 5, no error is given.
    """

    too_high: float
    too_low: float
    too_extreme: float
    too_timid: float
    shift_high: float
    shift_low: float
    slope_low: float
    slope_high: float
    power: float
    alpha: float
    measure: str
    n: int
    information: float

    @property
    def largest(self) -> float:
        """The largest of the four mean errors; nan if none is known."""
        errors = self.too_high, self.too_low, self.too_extreme, self.too_timid
        return max((error for error in errors if not math.isnan(error)), default=math.nan)

    @property
    def shapes(self) -> str:
        """The errors in words: "a shift of 0.02 or more and log-odds slopes below 0.9 or above 1.2"; empty if none."""
        return self.shapes_in(unit_of(self.information / self.n))

    def shapes_in(self, unit: Unit) -> str:
        """Return `shapes` with the shift in this unit."""
        return " and ".join(part for part in (self._shift(unit), self._slopes()) if part)

    def __str__(self) -> str:
        if not self.shapes:
            why = f"too little information (sum p(1 - p) is {self.information:.2g})"
            return f"No detectable error can be given for {count(self.n, 'prediction')}: {why}."
        start = f"With these {self.n:,} predictions, a test at level {self.alpha:g} has {self.power:.0%} power"
        return f"{start} to detect\n{self.shapes}."

    def _shift(self, unit: Unit) -> str:
        shifts = unit.rows * self.shift_high, unit.rows * self.shift_low
        high, low = (None if math.isnan(x) else _rounded(x) for x in shifts)
        if high and low and abs(self.shift_high / self.shift_low - 1.0) <= _SAME:
            return f"a shift of {_rounded(sum(shifts) / 2.0)}{unit.per} or more"
        if high and low:
            return f"shifts below -{low} or above +{high}{unit.per}"
        return f"shifts below -{low}{unit.per}" if low else f"shifts above +{high}{unit.per}" if high else ""

    def _slopes(self) -> str:
        low, high = (None if math.isnan(x) else _rounded(x - 1.0, 1.0) for x in (self.slope_low, self.slope_high))
        if low and high:
            return f"log-odds slopes below {low} or above {high}"
        return f"log-odds slopes below {low}" if low else f"log-odds slopes above {high}" if high else ""


def _rounded(x: float, start: float = 0.0) -> str:
    """Format `start` + x with two digits of x, or more if the power would noticeably differ at the rounded value."""
    first = 1 - math.floor(math.log10(abs(x)) + 1e-9)
    decimals = next(d for d in (first, first + 1, first + 2) if abs(round(x, d) - x) <= _CLOSE * abs(x))
    return f"{start + x:.{max(decimals, 0)}f}"
