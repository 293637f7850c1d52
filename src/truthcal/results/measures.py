"""Results of measures: numbers with bounds or errors, decompositions, tables of measures."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from truthcal.results.base import Evidence, PageResult, Plotted, Result, columns, evidence_page
from truthcal.results.text import Page, Table, count, effective_rows, number

# From this sum of p(1 - p) on, the distribution of ATB is close to its limit.
_ENOUGH = 100
_FLAGS = ("truthful", "continuous", "complete", "sound")


@dataclass(frozen=True, slots=True)
class Bounded(Result):
    """A number known up to certified bounds: ``low <= exact value <= high`` always holds, rounding included.

    Attributes
    ----------
    value, low, high : float
        Best estimate, usually much closer to the exact value than the bounds; certified bounds.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """``high - low``."""
        return self.high - self.low

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __str__(self) -> str:
        return f"{self.value:.6g}, certain to {max(self.high - self.value, self.value - self.low):.1g}"


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """A mean over random draws. Returned by `subsampled_estimate`.

    Attributes
    ----------
    value, standard_error : float
        The mean, and its standard error from drawing alone: 0 if nothing had to be drawn, nan for a single draw.
    n_resamples : int
        Number of draws; 0 if all cases were enumerated.
    """

    value: float
    standard_error: float
    n_resamples: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.n_resamples == 0:
            return f"{self.value:.6g}, exact"
        return f"{self.value:.4g}, standard error {self.standard_error:.2g} from {count(self.n_resamples, 'draw')}"


@dataclass(frozen=True, slots=True)
class DistanceBracket(Result):
    """Certified bounds of smCal and distCal. Returned by `distcal_bracket`.

    Attributes
    ----------
    smcal_low, smcal_high, distcal_low, distcal_high : float
        Certified bounds of the smooth calibration error and of the lower distance to calibration.
    """

    smcal_low: float
    smcal_high: float
    distcal_low: float
    distcal_high: float

    def __str__(self) -> str:
        smcal = f"smCal is between {self.smcal_low:.4g} and {self.smcal_high:.4g}"
        return f"{smcal}, distCal between {self.distcal_low:.4g} and {self.distcal_high:.4g}."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SmoothWitness(Plotted, Result):
    """The 1-Lipschitz function with values in [-1, 1] that shows the smooth calibration error. By `smcal_witness`.

    Attributes
    ----------
    q, f : ndarray
        The different predictions, increasing, and the function there.
    value : float
        The smooth calibration error, ``sum of w (p - y) f(p) / sum of w``.
    """

    q: NDArray[np.float64]
    f: NDArray[np.float64]
    value: float
    _columns: ClassVar = ("q", "f")

    def __call__(self, y_proba: object) -> NDArray[np.float64]:
        """The function at any predictions: linear between `q`, constant beyond."""
        return np.interp(np.asarray(y_proba, np.float64), self.q, self.f)

    def __str__(self) -> str:
        return f"A 1-Lipschitz function at {len(self.q):,} different predictions that shows smCal = {self.value:.6g}."


@dataclass(frozen=True, slots=True)
class AtbSummary(PageResult):
    """ATB and the numbers needed to interpret it. Returned by `atb_summary`.

    Attributes
    ----------
    value : float
        ATB, the averaged two-bin calibration error.
    noise_floor : float
        Expected ATB of calibrated predictions with the same values. Compare `value` with it, not with 0: it is 0 only
        if all predictions are 0 or 1. If sum p(1 - p) is at least 100, calibrated predictions stay below about 4 times
        the floor in 95 of 100 samples. A row of weight 2 is one observation, not two.
    excess : float
        Unbiased estimate of the ATB of the population. May be negative. nan for one row.
    brier, bias : float
        Mean squared error of the predictions; mean prediction minus mean outcome.
    n, n_effective : int, float
        Rows with a weight above 0; effective sample size, ``(sum w)^2 / sum w^2``.
    """

    value: float
    noise_floor: float
    excess: float
    brier: float
    bias: float
    n: int
    n_effective: float

    def evidence(self, digits: int = 6) -> list[Evidence]:
        """Return the numbers as rows with an explanation each; ATB, its floor and the Brier score have `digits`."""

        def line(name: str, value: float, explanation: str, digits: int, sign: str = "") -> Evidence:
            formatted = number(value, digits, sign=sign, missing="undefined")
            return Evidence(name, value, formatted, "needs two rows" if math.isnan(value) else explanation)

        few = min(digits, 4)
        return [
            line("ATB", self.value, "averaged two-bin calibration error", digits),
            line("noise floor", self.noise_floor, "average ATB of calibrated predictions like these", digits),
            line("excess", self.excess, "unbiased estimate of ATB without noise", few),
            line("bias", self.bias, "mean prediction minus mean outcome", few, "+"),
            line("Brier score", self.brier, "mean squared error of the predictions", digits),
            Evidence("rows", self.n, f"{self.n:,}", effective_rows(self.n, self.n_effective)),
        ]

    def _page(self) -> Page:
        return evidence_page(self._sentence(), self.evidence(), widths=(12, 12))

    def _sentence(self) -> str:
        start, information = f"ATB is {self.value:.3g}", self.noise_floor * self.n_effective**2
        if self.noise_floor == 0.0:
            return f"{start}. All predictions are 0 or 1; if they were all right, ATB would be exactly 0."
        if math.isnan(self.excess):
            return f"{start}. One row says little about calibration."
        ratio = self.value / self.noise_floor
        chance = "if predictions are calibrated, 95 of 100 samples stay below 4 times the noise floor"
        if information < _ENOUGH:
            chance = f"too few rows for a rule of thumb: sum p(1 - p) is {information:.3g}, below {_ENOUGH}"
        return f"{start}, {ratio:.3g} times the noise floor\n({chance})."


@dataclass(frozen=True, slots=True)
class ScoreDecomposition(Result):
    """A score in three parts. Returned by `brier_decomposition` and `log_loss_decomposition`.

    Attributes
    ----------
    name, score : str, float
        Name of the score, and its value: ``miscalibration - discrimination + uncertainty``. Lower is better.
    miscalibration : float
        Gain of isotonic recalibration on these rows; not negative, and above 0 even for calibrated predictions.
    discrimination : float
        Gain of the recalibrated predictions over always predicting the mean outcome; not negative.
    uncertainty : float
        The score of always predicting the mean outcome.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float

    def __str__(self) -> str:
        gain = f"miscalibration {self.miscalibration:.4g} - discrimination {self.discrimination:.4g}"
        return f"{self.name} {self.score:.4g} = {gain} + uncertainty {self.uncertainty:.4g}"


@dataclass(frozen=True, slots=True)
class CalibrationLine(Result):
    """Logistic regression of outcomes on predicted log-odds. Returned by `calibration_slope_intercept`.

    Attributes
    ----------
    slope, intercept : float
        Fitted together. A slope below 1 means that predictions are too extreme; above 1, not extreme enough.
    calibration_in_the_large : float
        The intercept if the slope is fixed at 1: 0 if predictions are right on average, negative if too high.
    """

    slope: float
    intercept: float
    calibration_in_the_large: float

    def __str__(self) -> str:
        large = f"calibration in the large (intercept at slope 1) {self.calibration_in_the_large:.4g}"
        return f"slope {self.slope:.4g}, intercept {self.intercept:.4g}; {large}"


@dataclass(frozen=True, slots=True)
class MeasureValue(Result):
    """A row of a `MeasureTable`: the value of a measure, and the properties that `Measure` explains.

    `note` explains why there is no value (nan), or why it is not meaningful.
    """

    name: str
    value: float
    scale: str
    truthful: bool
    continuous: bool
    complete: bool
    sound: bool
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class MeasureTable(PageResult, Mapping[str, float]):
    """Values of several measures for the same rows. Returned by `all_measures`.

    A mapping from names to values: ``table["atb"]``, ``"atb" in table``, ``dict(table)``.

    Attributes
    ----------
    rows : tuple of MeasureValue
        Name, value, properties and note of each measure.
    """

    rows: tuple[MeasureValue, ...]

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> float:
        for row in self.rows:
            if row.name == name:
                return row.value
        raise KeyError(f"{name!r} is not in this table; it has {', '.join(self)}.")

    def table(self) -> dict[str, list[Any]]:
        """Return columns of equal length: name, value, properties and note of each measure."""
        return columns(row.to_dict() for row in self.rows)

    def notes(self) -> dict[str, list[str]]:
        """Return each note with the names of its measures."""
        notes: dict[str, list[str]] = {}
        for row in self.rows:
            if row.note:
                notes.setdefault(row.note, []).append(row.name)
        return notes

    def _page(self) -> Page:
        flags = [["yes" if getattr(row, flag) else "no" for flag in _FLAGS] for row in self.rows]
        rows = [[row.name, number(row.value, missing="nan"), row.scale] for row in self.rows]
        rows = [start + end for start, end in zip(rows, flags, strict=True)]
        notes = [f"{', '.join(names)}: {note}" for note, names in self.notes().items()]
        return Page("", Table(["measure", "value", "scale", *_FLAGS], rows, right=[1], optional=[6, 5, 4]), notes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundedArray(Result):
    """Numbers known up to certified bounds, one for each group of a `SketchTable`: as `Bounded`, with arrays.

    Attributes
    ----------
    value, low, high : ndarray
        Best estimates and certified bounds.
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    _columns: ClassVar = ("value", "low", "high")

    @property
    def width(self) -> NDArray[np.float64]:
        """``high - low``."""
        return self.high - self.low

    def __len__(self) -> int:
        return len(self.value)

    __contains__ = None  # ambiguous for several groups; use: number in bounds[i]

    @overload
    def __getitem__(self, index: int) -> Bounded: ...

    @overload
    def __getitem__(self, index: slice) -> "BoundedArray": ...

    def __getitem__(self, index: int | slice) -> "Bounded | BoundedArray":
        parts = self.value[index], self.low[index], self.high[index]
        return BoundedArray(*parts) if isinstance(index, slice) else Bounded(*map(float, parts))

    def __str__(self) -> str:
        if not len(self):
            return "no numbers"
        if len(self) == 1:
            return str(self[0])
        error = np.maximum(self.high - self.value, self.value - self.low).max()
        return f"{len(self):,} numbers from {self.value.min():.6g} to {self.value.max():.6g}, certain to {error:.1g}"
