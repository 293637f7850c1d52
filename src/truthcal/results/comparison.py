"""The result of `compare`: the finding in words, then a row for each measure."""

from dataclasses import asdict, dataclass
from typing import Any

from truthcal.results.base import PageResult, columns
from truthcal.results.text import Page, Table, count, interval, number, p_value, percent


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
        The measure of calibration and its values, which may be negative because noise is subtracted from squares.
    difference, low, high : float
        ``a - b``, negative if a is better calibrated; its confidence interval.
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
        return _lower_model(self.low, self.high)

    @property
    def better_brier(self) -> str | None:
        """The same for the Brier score."""
        return _lower_model(self.brier_low, self.brier_high)

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
            return f"No significant difference in calibration or Brier score ({rows})."
        if calibrated is None:
            return f"{brier} is more skilful (Brier score); no significant difference in calibration ({rows})."
        if brier is None:
            return f"{calibrated} is better calibrated; no significant difference in the Brier score ({rows})."
        if brier == calibrated:
            return f"{calibrated} is better calibrated and has the better Brier score."
        return f"{calibrated} is better calibrated, but {brier} is more skilful (Brier score)."


def _lower_model(low: float, high: float) -> str | None:
    """Return which of the compared models a and b is lower; None if the interval of a - b contains 0."""
    return "a" if high < 0.0 else "b" if low > 0.0 else None
