"""Parts of the result of `recalibrate`: the methods that were tried, and scores before and after."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from truthcal.results.base import PageResult, Result, columns
from truthcal.results.comparison import Comparison, ComparisonRow
from truthcal.results.text import Page, Table, interval, number, percent, rows_in_groups

# Method -> its name in text.
METHOD_NAMES = {
    "identity": "leaving predictions as they are",
    "temperature": "temperature scaling",
    "platt": "Platt scaling",
    "beta": "beta calibration",
    "isotonic": "isotonic regression",
}


@dataclass(frozen=True, slots=True)
class Candidate(Result):
    """A method that `recalibrate` tried, from the simplest to the one with the most freedom.

    Attributes
    ----------
    method : str
        Name of the method.
    log_loss : float
        Mean log loss of rows that the method was not fitted to.
    difference, standard_error : float
        By how much it is larger than that of the best method, and the standard error of this paired difference.
    """

    method: str
    log_loss: float
    difference: float
    standard_error: float

    @property
    def within_one_standard_error(self) -> bool:
        """Whether the method is as good as the best one, up to one standard error."""
        return self.difference <= self.standard_error


def candidate_table(candidates: Sequence[Candidate]) -> Table:
    """Return the table of the methods that were tried."""
    rows = [
        [each.method, number(each.log_loss), number(each.difference), number(each.standard_error)]
        for each in candidates
    ]
    return Table(("method", "log loss", "minus the best", "standard error"), rows, right=[1, 2, 3], indent=2)


# Samples of calibrated predictions are changed only if they show an improvement by chance. In simulations, its interval
# included 0 in 45 of 48 of them, and contained the expected change, a small loss, in 3 of 48.
_NOT_SIGNIFICANT = "This is not significant by itself: the true improvement is probably smaller, and may be a loss."


@dataclass(frozen=True, slots=True, repr=False)
class RecalibrationComparison(PageResult):
    """Scores before and after recalibration, of rows that the map was not fitted to.

    Attributes
    ----------
    scores : Comparison
        ATB, Brier score and size of the error before (a) and after (b), with intervals of the paired differences, of a
        random third of the rows.
    log_loss : ComparisonRow
        The same for the log loss, of all rows: each is recalibrated by a map that was fitted to other rows.
    n : int
        Number of all rows.
    """

    scores: Comparison
    log_loss: ComparisonRow
    n: int

    def rows(self) -> tuple[ComparisonRow, ...]:
        """Return log loss, ATB and Brier score, then the error before and after."""
        *scores, before, after = self.scores.rows()
        return self.log_loss, *scores, replace(before, measure="error before"), replace(after, measure="error after")

    def table(self) -> dict[str, list[Any]]:
        """Return `rows` as columns of equal length, with the number of rows that each score is of."""
        names, rows = {"a": "before", "b": "after"}, self.rows()
        named = columns({names.get(name, name): value for name, value in asdict(row).items()} for row in rows)
        return named | {"n": [self.n, *[self.scores.n] * (len(rows) - 1)]}

    def printed_rows(self) -> tuple[ComparisonRow, ...]:
        """Return `rows` with labels that say which rows each score is of."""
        log_loss, *scores = self.rows()
        third = (replace(row, measure=f"{row.measure} (third)") for row in scores)
        return replace(log_loss, measure=f"{log_loss.measure} (all)"), *third

    @property
    def verdict(self) -> str:
        """By how much the log loss changes, and a warning if an improvement is not significant by itself."""
        row, level = self.log_loss, percent(self.scores.confidence_level)
        if row.a == row.b:
            return "Scores before and after are the same."
        change = f"from {number(row.a)} to {number(row.b)}"
        if math.isnan(row.low):
            return f"The log loss changes {change}."
        falls = row.difference > 0.0
        low, high = (row.low, row.high) if falls else (-row.high, -row.low)
        verb, ends = "falls" if falls else "rises", interval(low, high, sign="+" if low < 0.0 else "")
        effect = f"The log loss changes {change}; it {verb} by {number(abs(row.difference), 2)} ({level}: {ends})."
        return f"{effect}\n{_NOT_SIGNIFICANT}" if row.low <= 0.0 < row.difference else effect

    def notes(self) -> list[str]:
        """Return how to read the scores, one sentence per line."""
        rows = rows_in_groups(self.scores.n, self.scores.n_groups)
        return [
            "Lower is better; a positive difference is an improvement.",
            f"All: {self.n:,} rows, each recalibrated by a map that was fitted to other rows.",
            f"Third: {rows}, drawn at random; for them, the map was fitted to the others.",
        ]

    def _page(self) -> Page:
        table = Table(
            self.scores.header(),
            [row.cells() for row in self.printed_rows()],
            right=[1, 2, 3],
            indent=2,
            widths=(20, 10, 10),
        )
        return Page(self.verdict, table, self.notes())
