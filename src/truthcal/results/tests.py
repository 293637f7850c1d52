"""Results of tests. They print the finding first."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from truthcal.results.base import Result
from truthcal.results.dependence import RowOrderNote, few_groups
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.measures import Bounded
from truthcal.results.text import count, p_value, rows_in_groups

_TOO_CLOSE = "these predictions are closer to the outcomes than chance allows"
_Interval = Callable[[float, str], ConfidenceInterval]


@dataclass(frozen=True, slots=True)
class CalibrationTest(RowOrderNote, Result):
    """The result of a test of calibration. Returned by `calibration_test` and the classical tests.

    Attributes
    ----------
    statistic, pvalue : float
        The measure of these rows, and the probability of a value at least as extreme if predictions are calibrated.
    null_mean, null_sd : float
        Mean and standard deviation of the statistic under calibration; nan if unknown.
    z : float
        ``(statistic - null_mean) / null_sd``. The distribution is skewed: read `pvalue`, not this.
    measure, alternative : str
        Name of the statistic; values that count as extreme: "greater", "less" or "two-sided".
    method, why : str
        "exact" (all or random outcomes redrawn), "approximate" (redrawn in the cells of a sketch with weights),
        "asymptotic" or "bound"; and the reason for it.
    n, n_resamples : int
        Numbers of rows with a weight above 0 and of redrawn outcomes.
    information : float
        Sum of p(1 - p) over the rows: the variance of the number of events if predictions are calibrated.
    greater, less : float
        p-values of both tails. The tail that `alternative` does not use is an estimate if redrawing stopped early.
    impossible : int
        Rows whose outcome had a predicted probability of exactly 0 (0 for a sketch). The p-value ignores them; a
        calibrated forecaster has none.
    neighbour_z : float or None
        z of the correlation of errors of neighbouring rows, in the order of the input: beyond 4 or -4, rows are hardly
        independent, and `dependence` says so. None for fewer than 30 rows, for a sketch whose rows have no order, and
        with groups.
    n_groups, n_effective_groups : int, float, or None
        Number of groups of rows that belong together, and their effective number: that of groups of equal weight
        with the same information. None without groups.
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
    neighbour_z: float | None = field(default=None, compare=False)
    n_groups: int | None = None
    n_effective_groups: float | None = None
    _interval: _Interval | None = field(default=None, repr=False, compare=False)

    def confidence_interval(self, confidence_level: float = 0.95, method: str = "auto") -> ConfidenceInterval:
        """Return an interval for the population value of the measure. See `truthcal.confidence_interval`."""
        if self._interval is None:
            raise ValueError(f"{self.measure} is a test statistic, not a measure: it has no population value.")
        return self._interval(confidence_level, method)

    def __str__(self) -> str:
        start = f"{'But' if self.pvalue > 0.05 else 'And'} {count(self.impossible, 'outcome')}"
        but = f"{start} had a predicted probability of 0, which cannot happen to a calibrated forecaster.\n"
        text = f"{self._verdict()}\n{but if self.impossible else ''}{self._evidence()}\n({self.method}: {self.why})"
        warnings = [self.dependence, few_groups(self.n_effective_groups)]
        return "\n! ".join([text, *filter(None, warnings)])

    def format_p(self, p: float) -> str:
        """Format one of its p-values: "p <= 0.001" where a bound or few redraws give only an upper limit."""
        formatted = p_value(p, self.n_resamples if self.method in ("exact", "approximate") else 0)
        return formatted.replace("p = ", "p <= ") if self.method == "bound" and p < 1.0 else formatted

    def _verdict(self) -> str:
        p = self.format_p(self.pvalue)
        below = self.alternative == "less" or (self.alternative == "two-sided" and self.less < self.greater)
        if self.pvalue > 0.05:
            sign = f"that {_TOO_CLOSE}" if self.alternative == "less" else "of miscalibration"
            return f"No significant evidence {sign} in {rows_in_groups(self.n, self.n_groups)} ({p})."
        evidence = "Some evidence" if self.pvalue > 0.01 else "Clear evidence"
        if self.measure == "spiegelhalter":
            score, error = ("better", "not extreme enough") if below else ("worse", "too extreme")
            return (
                f"{evidence} of miscalibration ({p}): the Brier score is {score} than expected. "
                f"The predictions are probably {error}."
            )
        if below:
            causes = "Were they fitted on these outcomes, or do outcomes exclude each other?"
            return f"{evidence} that {_TOO_CLOSE} ({p}). {causes}"
        return f"{evidence} of miscalibration: calibrated predictions would rarely score this badly by chance ({p})."

    def _evidence(self) -> str:
        if math.isnan(self.null_mean):
            return f"{self.measure} is {self.statistic:.4g}."
        spread = f" (standard deviation {self.null_sd:.3g})" if not math.isnan(self.null_sd) else ""
        expected = f"the value expected by chance is {self.null_mean:.3g}{spread}"
        return f"{self.measure} is {self.statistic:.4g}; {expected}."


@dataclass(frozen=True, slots=True)
class LinearTimeTest(RowOrderNote, Result):
    """Accept or reject, in linear time. Returned by `linear_time_test`.

    Attributes
    ----------
    accepted, statistic : bool, Bounded
        Whether ATB is at most `threshold`; ATB between certified bounds.
    threshold, n_effective : float
        ``3 / (2 n_effective)``, and the effective sample size.
    detectable : float
        Predictions at this distance from calibration (distCal of their population) or more are rejected with
        probability 3/4 or more. Above 1, there are too few rows for a guarantee.
    neighbour_z : float or None
        As in `CalibrationTest`.
    """

    accepted: bool
    statistic: Bounded
    threshold: float
    n_effective: float
    detectable: float
    neighbour_z: float | None = field(default=None, compare=False)

    def __str__(self) -> str:
        words = "Accepted as calibrated" if self.accepted else "Rejected: not calibrated"
        sign = "<=" if self.accepted else ">"
        accepted = "With probability at least 3/4, calibrated predictions are accepted"
        rejected = "; more rows are needed to guarantee that others are rejected"
        if self.detectable <= 1.0:
            rejected = f"\nand predictions at a distance of {self.detectable:.3g} or more from calibration are rejected"
        text = f"{words}: ATB {self.statistic.value:.4g} {sign} {self.threshold:.4g}.\n({accepted}{rejected}.)"
        return f"{text}\n! {self.dependence}" if self.dependence else text
