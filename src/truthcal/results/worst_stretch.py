"""The stretch of predictions whose error is certainly largest."""

from dataclasses import dataclass

from truthcal.results.base import Result
from truthcal.results.text import (
    PER_1000,
    PLAIN,
    Unit,
    error_unit,
    frequencies,
    lower_limit,
    number,
    percent,
    unit_of,
    upper_limit,
)


@dataclass(frozen=True, slots=True)
class WorstStretch(Result):
    """A range of predictions whose mean error is at least a certain size, in an `Assessment`.

    Attributes
    ----------
    low, high : float
        Its smallest and largest prediction.
    error_at_least : float
        Lower confidence limit of the mean error there; above 0 if predictions are too high, below 0 if too low. Valid
        although the range was chosen after looking at the outcomes.
    mean_proba, mean_true : float
        Mean prediction and mean outcome there.
    share : float
        Its share of the weight.
    confidence_level : float
        Probability that such a statement is true.
    """

    low: float
    high: float
    error_at_least: float
    mean_proba: float
    mean_true: float
    share: float
    confidence_level: float

    def frequencies(self, unit: Unit | None = None) -> str:
        """Return the same place in words, "when it says 85%, 97% happen"; in a unit of rare events if one is given."""
        predicted, observed = self.rates(unit)
        if self.low == self.high:
            return f"when it says {predicted}, {observed} happen"
        return f"there it says {predicted} on average, and {observed} happen"

    def rates(self, unit: Unit | None = None) -> list[str]:
        """Return the mean prediction and the mean outcome there as text."""
        return frequencies(self.mean_proba, self.mean_true, unit=self._readable(unit))

    def place(self, unit: Unit | None = None) -> str:
        """Return the range in words: "between 0.3 and 0.6", or "between 3 and 6 per 1,000" if events are rare there."""
        own = unit_of(self.mean_proba, self.mean_true)
        unit = self._readable(unit) or (PLAIN if own.rows * self.high >= 1000.0 else own)
        start = self.low if self.low > self.high / 1000.0 else 0.0  # not "between 2.31e-07 and 0.0682"
        low, high = (number(unit.rows * end, 3) for end in (start, self.high))
        return f"between {low} and {high}{unit.per}" if self.low < self.high else f"at {low}{unit.per}"

    def limit(self, unit: Unit | None = None) -> str:
        """Return the limit with its sign, rounded towards 0."""
        unit = self._readable(unit) or error_unit(self.mean_proba, self.mean_true)
        towards_zero = lower_limit if self.error_at_least > 0.0 else upper_limit
        return f"{towards_zero(unit.rows * self.error_at_least, sign='+')}{unit.per}"

    def text(self, unit: Unit | None = None) -> str:
        """Return the size of the error and its place in words."""
        too, size = "high" if self.error_at_least > 0.0 else "low", self.limit(unit)[1:]
        return f"at least {size} too {too} {self.place(unit)} ({percent(self.confidence_level)} confidence)"

    def _readable(self, unit: Unit | None) -> Unit | None:
        """Return the unit that is given, but per 1,000 where it would give numbers such as 34,000 per 100,000."""
        return PER_1000 if unit and unit.rows * max(self.high, self.mean_true) >= 1000.0 else unit

    def __str__(self) -> str:
        return self.text()
