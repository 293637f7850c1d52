"""The stretch of predictions whose error is certainly largest."""

import math
from dataclasses import dataclass

from truthcal.results.base import Result
from truthcal.results.text import lower_limit, percent, upper_limit


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

    @property
    def frequencies(self) -> str:
        """The same place in words: "when it says 85%, 97% happen"."""
        predicted, observed = self.percentages
        if self.low == self.high:
            return f"when it says {predicted}, {observed} happen"
        return f"there it says {predicted} on average, and {observed} happen"

    @property
    def percentages(self) -> list[str]:
        """Both means, with at least two digits of their difference, and of their distance from 0 and 1."""
        texts = []
        for mean in (self.mean_proba, self.mean_true):
            sizes = ((abs(self.mean_proba - self.mean_true), 0.02), (mean, 0.01), (1.0 - mean, 0.01))
            decimals = [-1 - math.floor(math.log10(size)) for size, large in sizes if 1e-14 < size < large]
            texts.append(f"{100.0 * mean:.{max(decimals, default=0)}f}%")
        return texts

    @property
    def place(self) -> str:
        """The range in words: "between 0.3 and 0.6"."""
        return f"between {self.low:.3g} and {self.high:.3g}" if self.low < self.high else f"at {self.low:.3g}"

    def __str__(self) -> str:
        too, size = "high" if self.error_at_least > 0.0 else "low", self.limit(2)[1:]
        return f"at least {size} too {too} {self.place} ({percent(self.confidence_level)} confidence)"

    def limit(self, digits: int) -> str:
        """Format the limit with its sign and significant digits, rounded towards 0."""
        towards_zero = lower_limit if self.error_at_least > 0.0 else upper_limit
        return towards_zero(self.error_at_least, digits, sign="+")
