"""Results of tests. They print the finding first."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from truthcal.results.base import Result
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.measures import Bounded
from truthcal.results.text import count, p_value

_Interval = Callable[[float, str], ConfidenceInterval]


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
