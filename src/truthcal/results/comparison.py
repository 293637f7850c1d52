"""The result of `compare`: the finding in words, then a row for each measure."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from truthcal.results.base import PageResult, Result, columns
from truthcal.results.dependence import RowOrderNote, few_groups
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.text import Page, Table, error_text, interval, number, p_number, percent, rows_in_groups
from truthcal.results.tracked import Tracked, attribute_metrics, interval_metrics


@dataclass(frozen=True, slots=True)
class ComparisonRow(Result):
    """Two values of one measure, their difference with its interval, and the p-value. A row of a `Comparison`.

    A row for the error of one model has that model's value and its interval; the other numbers are nan.
    """

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    pvalue: float

    def cells(self, digits: int = 4) -> list[str]:
        """Format the row with `digits` significant digits: measure, a, b, difference, interval, p-value."""
        sign = "" if math.isnan(self.difference) else "+"
        values = [self._value(self.a, digits), self._value(self.b, digits)]
        difference = number(self.difference, digits, sign="+", missing="")
        ends = interval(self.low, self.high, sign=sign)
        return [self.measure, *values, difference, ends, p_number(self.pvalue, missing="")]

    def _value(self, value: float, digits: int) -> str:
        if math.isnan(value) or not math.isnan(self.difference):
            return number(value, digits, missing="")
        return error_text(value, self.low, self.high, digits)


@dataclass(frozen=True, slots=True)
class Comparison(Tracked, RowOrderNote, PageResult):
    """Two forecasters of the same events. Returned by `compare`.

    Attributes
    ----------
    measure, label : str
        The score of calibration, and its name in text.
    a, b : float
        Its values. Lower is better. They contain noise, which is about the same for both.
    difference, low, high : float
        ``a - b``, negative if a is better, and the confidence interval of its expected value for this number of rows.
    pvalue : float
        Two-sided p-value of no difference.
    brier_a, brier_b, brier_difference, brier_low, brier_high, brier_pvalue : float
        The same for the Brier score, which reflects both calibration and skill.
    error_a, error_b : ConfidenceInterval
        Root mean square of each one's calibration error (`error_size`): estimates, not scores. Do not rank by them.
    confidence_level, n : float, int
        Level of all intervals; rows with a weight above 0.
    names : tuple of str
        Names of the two in text.
    neighbour_z : float or None
        As in `CalibrationTest`, of the model for which it is further from 0.
    n_groups, n_effective_groups : int, float, or None
        As in `CalibrationTest`.
    """

    measure: str
    label: str
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
    error_a: ConfidenceInterval
    error_b: ConfidenceInterval
    confidence_level: float
    n: int
    names: tuple[str, str] = ("a", "b")
    neighbour_z: float | None = field(default=None, compare=False)
    n_groups: int | None = None
    n_effective_groups: float | None = None
    _METRICS: ClassVar = {
        **attribute_metrics("brier_a", "brier_b", "brier_difference"),
        **{"brier_difference_low": "brier_low", "brier_difference_high": "brier_high"},
        **attribute_metrics("brier_pvalue"),
        **interval_metrics("error_a"),
        **interval_metrics("error_b"),
        **attribute_metrics("n"),
    }

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """Return the main numbers by name, as for `assess`. Those of the score start with its name: "atb_a"."""
        own = {"a": self.a, "b": self.b, "difference": self.difference, "difference_low": self.low}
        own |= {"difference_high": self.high, "pvalue": self.pvalue}
        named = {f"{prefix}{self.measure}_{name}": float(value) for name, value in own.items()}
        return named | Tracked.metrics(self, prefix)

    @property
    def better_by_measure(self) -> str | None:
        """The one with the lower `measure`, "a" or "b"; None if the interval of the difference contains 0."""
        return _lower_model(self.low, self.high)

    @property
    def better_by_brier(self) -> str | None:
        """The same for the Brier score."""
        return _lower_model(self.brier_low, self.brier_high)

    def rows(self) -> tuple["ComparisonRow", ...]:
        """Return the comparison by the measure and by the Brier score, then the error of each model."""
        values = self.a, self.b, self.difference, self.low, self.high, self.pvalue
        brier = self.brier_a, self.brier_b, self.brier_difference, self.brier_low, self.brier_high, self.brier_pvalue
        scores = ComparisonRow(self.label, *values), ComparisonRow("Brier score", *brier)
        missing, (a, b) = math.nan, (self.error_a, self.error_b)
        return (
            *scores,
            ComparisonRow(f"error of {self.names[0]}", a.estimate, missing, missing, a.low, a.high, missing),
            ComparisonRow(f"error of {self.names[1]}", missing, b.estimate, missing, b.low, b.high, missing),
        )

    def table(self) -> dict[str, list[Any]]:
        """Return `rows` as columns of equal length."""
        return columns(map(asdict, self.rows()))

    def header(self) -> list[str]:
        """Return the headers of the columns of `ComparisonRow.cells`."""
        a, b = self.names
        return ["", a, b, f"{a} - {b}", f"{percent(self.confidence_level)} interval", "p-value"]

    def _page(self) -> Page:
        rows = [row.cells() for row in self.rows()]
        table = Table(self.header(), rows, right=[1, 2, 3], indent=2, widths=(11, 10, 10, 10))
        warnings = [*self._row_order_warnings(), *filter(None, [few_groups(self.n_effective_groups)])]
        return Page(self.verdict, table, self.notes(), warnings)

    @property
    def verdict(self) -> str:
        """One line: which has the better scores."""
        known = {"a": self.names[0], "b": self.names[1], None: None}
        by_measure, by_brier = known[self.better_by_measure], known[self.better_by_brier]
        label, rows = self.label, rows_in_groups(self.n, self.n_groups)
        if by_measure is None and by_brier is None:
            return f"No significant difference in {label} or in the Brier score ({rows})."
        if by_measure is None:
            return f"{by_brier} has the better Brier score; no significant difference in {label} ({rows})."
        if by_brier is None:
            return f"{by_measure} has the better {label}; no significant difference in the Brier score ({rows})."
        if by_brier == by_measure:
            return f"{by_measure} has the better {label} and the better Brier score ({rows})."
        return f"{by_measure} has the better {label}, but {by_brier} has the better Brier score ({rows})."

    def notes(self) -> list[str]:
        """Return how to read the numbers, one sentence per line."""
        label = f"{self.label[:1].upper()}{self.label[1:]}"
        return [
            f"Lower is better. {label} is a score of calibration, the Brier score of calibration and skill.",
            "If outcomes are independent, no lie improves either of them on average.",
            "Errors (root mean square, without noise) are estimates with their own intervals, not scores to rank by.",
        ]


def _lower_model(low: float, high: float) -> str | None:
    """Return which of the compared models a and b is lower; None if the interval of a - b contains 0."""
    return "a" if high < 0.0 else "b" if low > 0.0 else None
