"""The result of `assess_over_time`: stable or changed, in words first, then a row for each window of time."""

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

from truthcal.results.base import PageResult, Plotted, Result
from truthcal.results.dependence import RowOrderNote
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.text import (
    PLAIN,
    Page,
    Table,
    Unit,
    count,
    error_unit,
    more_rows,
    number,
    p_value,
    percent,
    plural,
    upper_limit,
)

# Windows that `str` shows.
SHOWN = 40
# Column of `TimeAssessment.table` -> attribute of a window.
_FIELDS = {name: name for name in ("start", "n", "mean_proba", "mean_true")}
_FIELDS |= {"bias": "bias.estimate", "bias_low": "bias.low", "bias_high": "bias.high"}
_FIELDS |= {"error": "error.estimate", "error_low": "error.low", "error_high": "error.high"}


@dataclass(frozen=True, slots=True)
class TimeWindow(Result):
    """One window of a `TimeAssessment`.

    Attributes
    ----------
    start, label : object, str
        Its start: a date, a datetime, an integer, or the key of a table; the same as text.
    n : int
        Rows with a weight above 0.
    mean_proba, mean_true : float
        Mean prediction and mean outcome.
    bias, error : ConfidenceInterval
        Mean prediction minus mean outcome, and the size of the error as in `error_size`. With the probability
        `TimeAssessment.confidence_level` the intervals of all windows hold at once, those of the bias and those of the
        error separately.
    """

    start: Any
    label: str
    n: int
    mean_proba: float
    mean_true: float
    bias: ConfidenceInterval
    error: ConfidenceInterval

    def cells(self, digits: int = 2, unit: Unit = PLAIN) -> list[str]:
        """Format the window as a row of the printed table, with `digits` significant digits."""
        bias, ends = number(unit.rows * self.bias.estimate, digits, sign="+"), self.bias.ends("+", unit)
        error, limits = self.error.size(digits, unit), self.error.ends(unit=unit)
        biases = f"{bias} ({ends})" if ends else bias
        errors = f"{error} ({limits})" if limits and self.error.low > 0.0 else error
        return [self.label, f"{self.n:,}", biases, errors]


@dataclass(frozen=True, slots=True)
class ChangeTest(Result):
    """Test of whether the calibration error is the same in all windows.

    Attributes
    ----------
    statistic, pvalue : float
        Weighted sum of squares of the differences between windows; probability of at least this value if the error does
        not change. Both are nan if the test was not possible.
    method, why : str
        "asymptotic", "exact" or "none", and its justification.
    n_resamples : int
        Number of redraws, 0 if there were none.
    start, label : object, str or None
        The estimated time of the change: the start of the first window after it, as in `TimeWindow`. None if there is
        no significant change.
    bias_before, bias_after, error_before, error_after : float
        Bias and size of the error of all rows before this time, and from then on; nan if there is none.
    detectable : float
        The smallest shift of all predictions, beginning in the middle, that the test detects with 80% power; nan if it
        detects none.
    """

    statistic: float
    pvalue: float
    method: str
    why: str
    n_resamples: int
    start: Any
    label: str | None
    bias_before: float
    bias_after: float
    error_before: float
    error_after: float
    detectable: float

    def format_p(self) -> str:
        """Format the p-value: "p <= 0.001" where few redraws give only an upper limit."""
        return p_value(self.pvalue, self.n_resamples)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimeAssessment(Plotted, RowOrderNote, PageResult):
    """Calibration over time. Returned by `assess_over_time`. Print it.

    Attributes
    ----------
    windows : tuple of TimeWindow
        All windows that have rows, in the order of time.
    window : str
        The division of time: "week", "7d", "1,000 rows"; for a table of sketches the name of its column.
    change : ChangeTest
        Whether the error changes over time, and when.
    alpha, confidence_level : float
        Level of the test; confidence level of the intervals, of all windows at once.
    neighbour_z : float or None
        As in `CalibrationTest`, where neighbours are consecutive rows of the same window. None if the order of the
        rows is not known.
    """

    windows: tuple[TimeWindow, ...]
    window: str
    change: ChangeTest
    alpha: float
    confidence_level: float
    neighbour_z: float | None = None
    _derived: ClassVar = ("kind", "verdict")
    _neighbours: ClassVar = "in the order of the rows of each window"

    @property
    def kind(self) -> str:
        """The verdict in one word: "changed", "stable" (no change was detected) or "unknown" (no test)."""
        if math.isnan(self.change.pvalue):
            return "unknown"
        return "changed" if self.change.pvalue <= self.alpha else "stable"

    @property
    def verdict(self) -> str:
        """One line: stable, or changed around which time, with the p-value and the size of the change."""
        test, unit = self.change, self.unit
        if self.kind == "unknown":
            return f"Not tested for change: {test.why}."
        if self.kind == "stable":
            power = ""
            if not math.isnan(test.detectable):
                shift = f"{upper_limit(unit.rows * test.detectable)}{unit.per}"
                power = f"; a shift of all predictions by {shift} halfway would have been detected with 80% power"
            return f"Stable: no change of the calibration error was detected ({test.format_p()}){power}."
        bias = [number(unit.rows * x, 2, sign="+") for x in (test.bias_before, test.bias_after)]
        error = [number(unit.rows * x, 2) for x in (test.error_before, test.error_after)]
        sizes = f"bias{unit.per} {bias[0]} before, {bias[1]} from then on; error {error[0]} before, {error[1]} after"
        return f"Changed around {test.label} ({test.format_p()}): {sizes}."

    @property
    def unit(self) -> Unit:
        """Unit of biases and errors in text, from the mean of all rows: for rare events, per 1,000 rows or more."""
        rows = max(sum(window.n for window in self.windows), 1)
        predicted = sum(window.n * window.mean_proba for window in self.windows) / rows
        return error_unit(predicted, sum(window.n * window.mean_true for window in self.windows) / rows)

    def table(self) -> dict[str, list[Any]]:
        """Return columns of equal length, one row for each window.

        ``start``, ``n``, ``mean_proba``, ``mean_true``, ``bias``, ``bias_low``, ``bias_high``, ``error``,
        ``error_low`` and ``error_high``.
        """
        return {name: [attrgetter(path)(window) for window in self.windows] for name, path in _FIELDS.items()}

    def to_text(self, width: int | None = None, limit: int | None = SHOWN) -> str:
        """Return the printed text: the newest `limit` windows (None: all), in lines of at most `width` characters."""
        return self._page(limit).text(width)

    def to_markdown(self, limit: int | None = SHOWN) -> str:
        """Return heading and table in Markdown, with the newest `limit` windows (None: all)."""
        return self._page(limit).markdown()

    def _page(self, limit: int | None = SHOWN, hint: str = "") -> Page:
        """Lay out the newest windows: those show what happens now. `hint` says how to see the others."""
        unit, total = self.unit, len(self.windows)
        limit = total if limit is None else limit
        rows = [window.cells(unit=unit) for window in self.windows[max(total - limit, 0) :]]
        header = [self.window, "rows", f"bias{unit.per}", f"error{unit.per}"]
        level = percent(self.confidence_level)
        note = f"Intervals hold for all {count(total, 'window')} at once with about {level} confidence."
        earlier = plural(max(total - limit, 0), "earlier window")
        notes = [*more_rows(total, limit, earlier, hint=hint), note]
        return Page(self.verdict, Table(header, rows, right=[1]), notes, self._row_order_warnings())
