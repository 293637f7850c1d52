"""What functions return when one number is not enough: frozen dataclasses that print well."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from truthcal.results.text import literal, markdown_table

# The sum of p(1 - p) from which on the distribution of ATB is close to its limit.
_ENOUGH = 100


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number known up to certified bounds: ``low <= exact value <= high`` always holds, rounding included.

    Attributes
    ----------
    value : float
        Best estimate, far closer to the exact value than the bounds as a rule.
    low, high : float
        Certified bounds.
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

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return f"{self.value:.6g}, certain to {max(self.high - self.value, self.value - self.low):.1g}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over random draws. Returned by `subsampled_estimate`.

    Attributes
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error from drawing alone: 0 if nothing had to be drawn, nan for a single draw.
    n_resamples : int
        Number of draws; 0 if all cases were gone through.
    """

    value: float
    standard_error: float
    n_resamples: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.n_resamples == 0:
            return f"{self.value:.6g}, exact"
        draws = f"{self.n_resamples} draw{'s' if self.n_resamples > 1 else ''}"
        return f"{self.value:.4g}, standard error {self.standard_error:.2g} from {draws}"

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class DistanceBracket:
    """Between which numbers smCal and distCal lie. Returned by `distcal_bracket`.

    Attributes
    ----------
    smcal_low, smcal_high : float
        Certified bounds of the smooth calibration error.
    distcal_low, distcal_high : float
        Certified bounds of the lower distance to calibration.
    """

    smcal_low: float
    smcal_high: float
    distcal_low: float
    distcal_high: float

    def __str__(self) -> str:
        return (
            f"smCal is between {self.smcal_low:.4g} and {self.smcal_high:.4g}, "
            f"distCal between {self.distcal_low:.4g} and {self.distcal_high:.4g}."
        )

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class SmoothWitness:
    """The 1-Lipschitz function with values in [-1, 1] that shows the smooth calibration error. By `smcal_witness`.

    Attributes
    ----------
    q : ndarray
        The different predictions, increasing.
    f : ndarray
        The function there: ``sum of w (p - y) f(p) / sum of w`` is `value`.
    value : float
        The smooth calibration error, computed from `f`.
    """

    q: NDArray[np.float64]
    f: NDArray[np.float64]
    value: float

    def __call__(self, y_proba: object) -> NDArray[np.float64]:
        """The function at any predictions: linear between `q`, constant beyond."""
        return np.interp(np.asarray(y_proba, np.float64), self.q, self.f)

    def __str__(self) -> str:
        return f"A 1-Lipschitz function at {len(self.q):,} different predictions that shows smCal = {self.value:.6g}."

    __repr__ = __str__

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Columns of equal length, ready for a data frame."""
        return {"q": self.q, "f": self.f}


@dataclass(frozen=True, slots=True)
class AtbSummary:
    """ATB beside what is needed to read it. Returned by `atb_summary`.

    Attributes
    ----------
    value : float
        ATB, the averaged two-bin calibration error.
    noise_floor : float
        What a perfectly calibrated forecaster with these very predictions scores on average. Compare with it, and not
        with 0: it is 0 only if all predictions are 0 or 1. Where sum p(1 - p) is at least 100, chance alone keeps the
        value below about 4 times the floor in 95 of 100 samples, and often well below it. A row of weight 2 is one
        observation here, not two.
    excess : float
        Unbiased estimate of the ATB that infinitely many such rows would have. May be negative. NaN for one row.
    rms : float
        ``sqrt(max(excess, 0))``, on the scale of a probability. A forecaster with one constant prediction that is off
        by d has d here; predictions that are spread out and all off by d have between 0.71 d and d, because the two
        bins share the error; errors of opposite sign at neighbouring predictions partly cancel. It is at most the root
        mean square error of the probabilities.
    brier : float
        Mean squared error of the predictions.
    bias : float
        Mean prediction minus mean outcome.
    n : int
        Rows that count (those with weight 0 do not).
    n_effective : float
        Rows of equal weight that would carry as much information, ``(sum w)^2 / sum w^2``.
    """

    value: float
    noise_floor: float
    excess: float
    rms: float
    brier: float
    bias: float
    n: int
    n_effective: float

    def __str__(self) -> str:
        lines = [
            self._sentence(),
            "",
            f"  ATB          {self.value:<12.6g} averaged two-bin calibration error",
            f"  noise floor  {self.noise_floor:<12.6g} what calibrated predictions like these score on average",
            f"  excess       {self._excess()}",
            f"  rms          {self._rms()}",
            f"  bias         {self.bias:<+12.4g} mean prediction minus mean outcome",
            f"  Brier score  {self.brier:<12.6g} mean squared error of the predictions",
            f"  rows         {self.n:,}" + self._effective(),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return dataclasses.asdict(self)

    def _sentence(self) -> str:
        start = f"ATB is {self.value:.3g}"
        if self.noise_floor == 0.0:
            return f"{start}. The predictions are all 0 or 1; if they were right, it would be exactly 0."
        if math.isnan(self.excess):
            return f"{start}. One row says little about calibration."
        ratio = self.value / self.noise_floor
        chance = "by chance alone, 95 of 100 samples stay below 4 times that"
        information = self.noise_floor * self.n_effective**2
        if information < _ENOUGH:
            chance = f"no rule of thumb for chance here: it needs sum p(1 - p) >= {_ENOUGH}, this is {information:.3g}"
        return f"{start}, {ratio:.3g} times what calibrated predictions like these score on average\n({chance})."

    def _excess(self) -> str:
        if math.isnan(self.excess):
            return "undefined    needs two rows"
        return f"{self.excess:<12.4g} unbiased estimate of the ATB without the noise"

    def _rms(self) -> str:
        if math.isnan(self.rms):
            return "undefined    needs two rows"
        return f"{self.rms:<12.4g} root of the excess, on the scale of a probability"

    def _effective(self) -> str:
        same = math.isclose(self.n, self.n_effective, rel_tol=1e-9)
        return "" if same else f", worth {self.n_effective:,.1f} of equal weight"


@dataclass(frozen=True, slots=True)
class ScoreDecomposition:
    """A score in three parts. Returned by `brier_decomposition` and `log_loss_decomposition`.

    Attributes
    ----------
    name : str
        Which score.
    score : float
        ``miscalibration - discrimination + uncertainty``. Lower is better.
    miscalibration : float
        What isotonic recalibration on these rows would gain; not negative. Noise included: calibrated predictions have
        some too.
    discrimination : float
        What the recalibrated predictions gain over always predicting the mean outcome; not negative.
    uncertainty : float
        The score of always predicting the mean outcome.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float

    def __str__(self) -> str:
        return (
            f"{self.name} {self.score:.4g} = miscalibration {self.miscalibration:.4g} "
            f"- discrimination {self.discrimination:.4g} + uncertainty {self.uncertainty:.4g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class CalibrationLine:
    """Logistic regression of outcomes on predicted log-odds. Returned by `calibration_slope_intercept`.

    Attributes
    ----------
    slope : float
        1 if calibrated. Below 1 predictions are too extreme, above 1 not extreme enough.
    intercept : float
        Fitted together with the slope.
    calibration_in_the_large : float
        The intercept if the slope is fixed at 1: 0 if predictions are right on average, negative if too high.
    """

    slope: float
    intercept: float
    calibration_in_the_large: float

    def __str__(self) -> str:
        return (
            f"slope {self.slope:.4g}, intercept {self.intercept:.4g}; calibration in the large (intercept at slope 1) "
            f"{self.calibration_in_the_large:.4g}"
        )

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class MeasureValue:
    """A row of a `MeasureTable`: the value of a measure, and the properties that `Measure` explains.

    `note` says why there is no value (nan), or why it means little.
    """

    name: str
    value: float
    scale: str
    truthful: bool
    continuous: bool
    complete: bool
    sound: bool
    note: str = ""


class NamedRows:
    """What makes a table of named rows a mapping from names: with `keys` and `__getitem__`, ``dict(table)`` works."""

    __slots__ = ()

    def keys(self) -> list[str]:
        """Names of the rows."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()


@dataclass(frozen=True, slots=True)
class MeasureTable(NamedRows):
    """Values of several measures for the same rows. Returned by `all_measures`.

    A mapping from names to values: ``table["atb"]``, ``"atb" in table``, ``dict(table)``.

    Attributes
    ----------
    rows : tuple of MeasureValue
        Name, value, properties and note of each measure.
    """

    rows: tuple[MeasureValue, ...]

    def keys(self) -> list[str]:
        """Names of the measures."""
        return [row.name for row in self.rows]

    def __getitem__(self, name: str) -> float:
        for row in self.rows:
            if row.name == name:
                return row.value
        raise KeyError(f"{name!r} is not in this table; it has {', '.join(row.name for row in self.rows)}.")

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of equal length, ready for a data frame."""
        fields = [field.name for field in dataclasses.fields(MeasureValue)]
        return {field: [getattr(row, field) for row in self.rows] for field in fields}

    def _lines(self) -> list[list[str]]:
        """Header and rows, as they are printed."""
        flags = ("truthful", "continuous", "complete", "sound")
        lines = [["measure", "value", "scale", *flags]]
        for row in self.rows:
            words = ["yes" if getattr(row, flag) else "no" for flag in flags]
            lines.append([row.name, f"{row.value:.4g}", row.scale, *words])
        return lines

    def _notes(self) -> list[str]:
        notes: dict[str, list[str]] = {}
        for row in self.rows:
            if row.note:
                notes.setdefault(row.note, []).append(row.name)
        return [f"{', '.join(names)}: {note}" for note, names in notes.items()]

    def to_markdown(self) -> str:
        """The table in Markdown."""
        header, *lines = self._lines()
        return "\n\n".join([markdown_table(header, lines, right=[1]), *map(literal, self._notes())])

    def __str__(self) -> str:
        lines = self._lines()
        width = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        for line in lines:
            line[1] = line[1].rjust(width[1])
        table = ["  ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)).rstrip() for line in lines]
        return "\n".join([*table, *self._notes()])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, eq=False)
class BoundedArray:
    """Numbers known up to certified bounds, one for each group of a `SketchTable`: as `Bounded`, with arrays.

    Attributes
    ----------
    value : ndarray
        Best estimates.
    low, high : ndarray
        Certified bounds: ``low <= exact value <= high`` always holds.
    """

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def width(self) -> NDArray[np.float64]:
        """``high - low``."""
        return self.high - self.low

    def __len__(self) -> int:
        return len(self.value)

    __contains__ = None  # of which group? ask one of them: number in bounds[i]

    @overload
    def __getitem__(self, index: int) -> Bounded: ...

    @overload
    def __getitem__(self, index: slice) -> "BoundedArray": ...

    def __getitem__(self, index: int | slice) -> "Bounded | BoundedArray":
        own = self.value[index], self.low[index], self.high[index]
        return BoundedArray(*own) if isinstance(index, slice) else Bounded(*map(float, own))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """The fields by name: columns of equal length, ready for a data frame."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        if not len(self):
            return "no numbers"
        if len(self) == 1:
            return str(self[0])
        doubt = np.maximum(self.high - self.value, self.value - self.low).max()
        return f"{len(self):,} numbers from {self.value.min():.6g} to {self.value.max():.6g}, certain to {doubt:.1g}"

    __repr__ = __str__
