"""Results of tests, intervals, power analysis and comparisons. They print the finding first."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truthcal.results.base import PageResult, Result, columns
from truthcal.results.measures import Bounded
from truthcal.results.text import Page, Table, count, interval, number, p_value, percent

_Interval = Callable[[float, str], "ConfidenceInterval"]


@dataclass(frozen=True, slots=True)
class ConfidenceInterval(Result):
    """A confidence interval for the population value of a measure. Returned by `confidence_interval`.

    Attributes
    ----------
    low, high : float
        Its ends; nan if no interval with this coverage is known.
    confidence_level : float
        Smallest probability that such an interval contains the population value.
    measure, estimate : str, float
        Name of the measure, and the estimate of its population value; minus the noise if `noise_removed`.
    method, why : str
        Method, and what it rests on; or why there is no interval.
    noise_removed : bool
        Whether `estimate` is the measure minus its noise.
    """

    low: float
    high: float
    confidence_level: float
    measure: str
    estimate: float
    method: str
    why: str
    noise_removed: bool = False

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.measure} {self.estimate:.4g}; no interval: {self.why}"
        noise = " without noise" if self.noise_removed else ""
        return f"{self.measure}{noise} {self.estimate:.4g}, {self.between()}"

    def ends(self, digits: int = 4, sign: str = "") -> str:
        """Return both ends as text with `digits` significant digits: "0.1 to 0.2"; empty if there is no interval."""
        return interval(self.low, self.high, digits, sign=sign)

    def between(self, digits: int = 4) -> str:
        """Return both ends in words with `digits` significant digits: "95% between 0.1 and 0.2"."""
        if math.isnan(self.low):
            return "no interval"
        return f"{percent(self.confidence_level)} between {self.low:.{digits}g} and {self.high:.{digits}g}"


@dataclass(frozen=True, slots=True)
class CalibrationTest(Result):
    """The result of a test of calibration. Returned by `calibration_test` and the classical tests.

    Attributes
    ----------
    statistic, pvalue : float
        The measure of these rows, and the probability of so extreme a value if predictions are calibrated.
    null_mean, null_sd : float
        Mean and standard deviation of the statistic under calibration; nan if unknown.
    z : float
        ``(statistic - null_mean) / null_sd``. The distribution is skewed: read `pvalue`, not this.
    measure, alternative : str
        Name of the statistic; values that count as extreme: "greater", "less" or "two-sided".
    method, why : str
        "exact" (all or random outcomes redrawn), "asymptotic" or "bound"; and the reason for it.
    n, n_resamples : int
        Numbers of rows with a weight above 0 and of redrawn outcomes.
    information : float
        Sum of p(1 - p) over the rows: a quarter of the number of coin tosses that are as random.
    greater, less : float
        p-values of both tails. The tail that `alternative` does not use is an estimate if redrawing stopped early.
    impossible : int
        Rows whose outcome had a predicted probability of exactly 0 (0 for a sketch). The p-value ignores them; a
        calibrated forecaster has none.
    """

    statistic: float
    pvalue: float
    null_mean: float
    null_sd: float
    z: float
    measure: str
    alternative: str
    method: str
    why: str
    n: int
    information: float
    n_resamples: int
    greater: float
    less: float
    impossible: int = 0
    _interval: _Interval | None = field(default=None, repr=False, compare=False)

    def confidence_interval(self, confidence_level: float = 0.95, method: str = "auto") -> ConfidenceInterval:
        """Return an interval for the population value of the measure. See `truthcal.confidence_interval`."""
        if self._interval is None:
            raise ValueError(f"{self.measure} is a test statistic, not a measure: it has no population value.")
        return self._interval(confidence_level, method)

    def __str__(self) -> str:
        start = "But" if self.pvalue > 0.05 else "And"
        but = f"{start} {self.impossible:,} of these outcomes had a predicted chance of 0: that cannot be calibrated.\n"
        return f"{self._verdict()}\n{but if self.impossible else ''}{self._evidence()}\n({self.method}: {self.why})"

    def format_p(self, p: float) -> str:
        """Format one of its p-values: "p <= 0.001" where a bound or few redraws give only an upper limit."""
        formatted = p_value(p, self.n_resamples)
        return formatted.replace("p = ", "p <= ") if self.method == "bound" and p < 1.0 else formatted

    def _verdict(self) -> str:
        p = self.format_p(self.pvalue)
        below = self.alternative == "less" or (self.alternative == "two-sided" and self.less < self.greater)
        if self.pvalue > 0.05:
            sign = "that these predictions are too good to be honest" if below else "of miscalibration"
            sign = "of miscalibration" if self.alternative == "two-sided" else sign
            return f"No sign {sign} among {count(self.n, 'row')} ({p})."
        weak = "Some sign" if self.pvalue > 0.01 else "Clear signs"
        if self.measure == "spiegelhalter":
            than = "better than these predictions promise: too timid" if below else "worse than promised: too extreme"
            return f"{weak} of miscalibration ({p}): the Brier score is {than}, as a rule."
        if below:
            return f"{weak} that these predictions are too good to be honest ({p}): were they fitted on these outcomes?"
        return f"{weak} of miscalibration: calibrated predictions would rarely score so badly by chance ({p})."

    def _evidence(self) -> str:
        if math.isnan(self.null_mean):
            return f"{self.measure} is {self.statistic:.4g}."
        spread = f" with a standard deviation of {self.null_sd:.3g}" if not math.isnan(self.null_sd) else ""
        return f"{self.measure} is {self.statistic:.4g}; by chance alone it would be {self.null_mean:.3g}{spread}."


@dataclass(frozen=True, slots=True)
class LinearTimeTest(Result):
    """Accept or reject, in linear time. Returned by `linear_time_test`.

    Attributes
    ----------
    accepted, statistic : bool, Bounded
        Whether ATB is at most `threshold`; ATB between certified bounds.
    threshold, n_effective : float
        ``3 / (2 n_effective)``, and the effective sample size.
    detectable : float
        Predictions at least this far from calibrated (in distCal of their population) are rejected with probability 3/4
        or more. Above 1 the rows are too few for a guarantee.
    """

    accepted: bool
    statistic: Bounded
    threshold: float
    n_effective: float
    detectable: float

    def __str__(self) -> str:
        words = "Accepted as calibrated" if self.accepted else "Rejected: not calibrated"
        sign = "<=" if self.accepted else ">"
        promise = "Calibrated predictions are accepted with probability 3/4 or more; more needs more rows."
        if self.detectable <= 1.0:
            rejected = f"predictions at least {self.detectable:.3g} from calibrated rejected"
            promise = f"Calibrated predictions are accepted, and {rejected},\nwith probability 3/4 or more."
        return f"{words}: ATB {self.statistic.value:.4g} {sign} {self.threshold:.4g}.\n({promise})"


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
        test = f"{self.measure} at level {self.alpha:g} accepts {self.n:,} predictions"
        start = f"How often {test}, by how far they are from calibrated ({self.family}):"
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
        Rows, and sum of p(1 - p), below 5 of which no error is given.
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
            why = f"too little is left to chance (sum p(1 - p) is {self.information:.2g})"
            return f"No detectable error is known for these {count(self.n, 'prediction')}: {why}."
        words = {"all are too high": self.too_high, "all are too low": self.too_low, "too extreme": self.too_extreme}
        lines = [f"  {error:.2g} if {how}" for how, error in words.items() if not math.isnan(error)]
        start = f"With these {self.n:,} predictions a test at level {self.alpha:g} detects with {self.power:.0%} power"
        return f"{start} a mean error of\n" + ",\n".join(lines) + "."


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Two values of one measure, their difference with its interval, and the p-value. A row of a `Comparison`."""

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    pvalue: float

    def cells(self, digits: int = 4) -> list[str]:
        """Format the row with `digits` significant digits: measure, a, b, difference, interval with p-value."""
        ends = f"{interval(self.low, self.high, digits, sign='+')} ({p_value(self.pvalue)})"
        values = number(self.a, digits), number(self.b, digits), number(self.difference, digits, sign="+")
        return [self.measure, *values, ends]


@dataclass(frozen=True, slots=True)
class Comparison(PageResult):
    """Two forecasters of the same events. Returned by `compare`.

    Attributes
    ----------
    measure, a, b : str, float, float
        The measure of calibration and its values; negative values are possible, as noise is subtracted from squares.
    difference, low, high : float
        ``a - b``, negative if a is better calibrated; its confidence interval.
    pvalue : float
        Two-sided p-value of no difference.
    brier_a, brier_b, brier_difference, brier_low, brier_high, brier_pvalue : float
        The same for the Brier score, in which calibration and skill both count.
    confidence_level, n : float, int
        Level of both intervals; rows with a weight above 0.
    names : tuple of str
        Names for printing; change them with ``dataclasses.replace(result, names=("old", "new"))``.
    """

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    pvalue: float
    brier_a: float
    brier_b: float
    brier_difference: float
    brier_low: float
    brier_high: float
    brier_pvalue: float
    confidence_level: float
    n: int
    names: tuple[str, str] = ("a", "b")

    @property
    def better_calibrated(self) -> str | None:
        """The better calibrated one, "a" or "b"; None if the interval of the difference contains 0."""
        return _lower(self.low, self.high)

    @property
    def better_brier(self) -> str | None:
        """The same for the Brier score."""
        return _lower(self.brier_low, self.brier_high)

    def rows(self) -> tuple["ComparisonRow", "ComparisonRow"]:
        """Return the comparison by the measure, and by the Brier score."""
        values = self.a, self.b, self.difference, self.low, self.high, self.pvalue
        brier = self.brier_a, self.brier_b, self.brier_difference, self.brier_low, self.brier_high, self.brier_pvalue
        return ComparisonRow(self.measure, *values), ComparisonRow("Brier score", *brier)

    def table(self) -> dict[str, list[Any]]:
        """Return `rows` as columns of equal length."""
        return columns(map(asdict, self.rows()))

    def header(self) -> list[str]:
        """Return the headers of the columns of `ComparisonRow.cells`."""
        a, b = self.names
        return ["", a, b, f"{a} - {b}", f"{percent(self.confidence_level)} interval"]

    def _page(self) -> Page:
        rows = [row.cells() for row in self.rows()]
        return Page(self.verdict, Table(self.header(), rows, right=[1, 2, 3], indent=2, widths=(11, 10, 10, 10)))

    @property
    def verdict(self) -> str:
        """One line: which is better calibrated, which is more skilful."""
        known = {"a": self.names[0], "b": self.names[1], None: None}
        calibrated, brier = known[self.better_calibrated], known[self.better_brier]
        rows = count(self.n, "row")
        if calibrated is None and brier is None:
            return f"No difference shown by {rows}: neither in calibration nor in the Brier score."
        if calibrated is None:
            return f"{brier} is more skilful (Brier score); no difference in calibration is shown by {rows}."
        if brier is None:
            return f"{calibrated} is better calibrated; no difference in the Brier score is shown by {rows}."
        if brier == calibrated:
            return f"{calibrated} is better calibrated, and has the better Brier score."
        return f"{calibrated} is better calibrated, but {brier} has the better Brier score: it has more skill."


def _lower(low: float, high: float) -> str | None:
    """Return which of a and b is lower; None if the interval of a - b contains 0."""
    return "a" if high < 0.0 else "b" if low > 0.0 else None
