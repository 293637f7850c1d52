"""The result of `compare`: the finding in words, then a row for each measure."""

from dataclasses import asdict, dataclass
from typing import Any

from truthcal.results.base import PageResult, columns
from truthcal.results.text import Page, Table, count, interval, number, p_number, percent


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
        """Format the row with `digits` significant digits: measure, a, b, difference, interval, p-value."""
        values = number(self.a, digits), number(self.b, digits), number(self.difference, digits, sign="+")
        return [self.measure, *values, interval(self.low, self.high, digits, sign="+"), p_number(self.pvalue)]


@dataclass(frozen=True, slots=True)
class Comparison(PageResult):
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
    confidence_level, n : float, int
        Level of both intervals; rows with a weight above 0.
    names : tuple of str
        Names for printing; change them with ``dataclasses.replace(result, names=("old", "new"))``.
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
    confidence_level: float
    n: int
    names: tuple[str, str] = ("a", "b")

    @property
    def better_by_measure(self) -> str | None:
        """The one with the lower `measure`, "a" or "b"; None if the interval of the difference contains 0."""
        return _lower_model(self.low, self.high)

    @property
    def better_by_brier(self) -> str | None:
        """The same for the Brier score."""
        return _lower_model(self.brier_low, self.brier_high)

    def rows(self) -> tuple["ComparisonRow", "ComparisonRow"]:
        """Return the comparison by the measure, and by the Brier score."""
        values = self.a, self.b, self.difference, self.low, self.high, self.pvalue
        brier = self.brier_a, self.brier_b, self.brier_difference, self.brier_low, self.brier_high, self.brier_pvalue
        return ComparisonRow(self.label, *values), ComparisonRow("Brier score", *brier)

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
        return Page(self.verdict, table, self.notes())

    @property
    def verdict(self) -> str:
        """One line: which has the better scores."""
        known = {"a": self.names[0], "b": self.names[1], None: None}
        by_measure, by_brier = known[self.better_by_measure], known[self.better_by_brier]
        label, rows = self.label, count(self.n, "row")
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
        return [
            f"Lower is better. {self.label} is a score of calibration, the Brier score of calibration and skill.",
            "If outcomes are independent, no lie improves either of them on average.",
        ]


def _lower_model(low: float, high: float) -> str | None:
    """Return which of the compared models a and b is lower; None if the interval of a - b contains 0."""
    return "a" if high < 0.0 else "b" if low > 0.0 else None
