"""Confidence intervals."""

import math
from dataclasses import dataclass

from truthcal.results.base import Result
from truthcal.results.text import PLAIN, Unit, error_text, interval, lower_limit, percent, upper_limit


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
        Method, and its justification; or the reason why there is no interval.
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
        if self.low == 0.0 == self.estimate:
            limit = f"at most {upper_limit(self.high)} ({percent(self.confidence_level)} confidence)"
            return f"{self.measure}: none detected, {limit}"
        noise = " without noise" if self.noise_removed else ""
        return f"{self.measure}{noise} {self.estimate:.4g}, {self.between()}"

    def size(self, digits: int = 4, unit: Unit = PLAIN) -> str:
        """Return the size of an error as text: its estimate, or an upper limit if the interval contains 0."""
        return error_text(unit.rows * self.estimate, unit.rows * self.low, unit.rows * self.high, digits)

    def ends(self, sign: str = "", unit: Unit = PLAIN) -> str:
        """Return both ends as text: "0.1 to 0.2"; empty if there is no interval."""
        return interval(unit.rows * self.low, unit.rows * self.high, sign=sign)

    def between(self, unit: Unit = PLAIN) -> str:
        """Return both ends in words: "95% between 0.1 and 0.2"."""
        if math.isnan(self.low):
            return "no interval"
        ends = f"{lower_limit(unit.rows * self.low)} and {upper_limit(unit.rows * self.high)}"
        return f"{percent(self.confidence_level)} between {ends}"
