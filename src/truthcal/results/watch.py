"""The result of `truthcal watch`: one line per window, and the evidence so far."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from truthcal.results.base import PageResult, Result, columns
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.monitor import MonitorSegments, MonitorStatus
from truthcal.results.text import Page, Table, number

_HEADER = ("window", "rows", "overdue", "bias", "error", "e-value", "")
# Windows that `str` shows.
_SHOWN = 30


@dataclass(frozen=True, slots=True)
class WatchedWindow(Result):
    """A closed window of a watched stream.

    Attributes
    ----------
    label, start : str, int
        Its name, and its start as a number: microseconds since 1970-01-01, a counter, or the number of a row.
    n, n_overdue : int
        Rows that were scored, and rows without an outcome.
    mean_proba, mean_true : float
        Mean prediction and mean outcome of the scored rows; nan if there are none.
    error : ConfidenceInterval
        Size of the error in this window alone; nan without rows, or with rows in fewer than 20 groups.
    log_e_value : float
        Logarithm of the evidence of the whole stream at its end.
    alarm : bool
        Whether there was an alarm then, or before.
    """

    label: str
    start: int
    n: int
    n_overdue: int
    mean_proba: float
    mean_true: float
    error: ConfidenceInterval
    log_e_value: float
    alarm: bool
    _derived: ClassVar = ("bias",)

    @property
    def bias(self) -> float:
        """Mean prediction minus mean outcome."""
        return self.mean_proba - self.mean_true

    def cells(self) -> list[str]:
        """Format the window as a row of a table."""
        ends = "" if math.isnan(self.error.low) else self.error.ends()
        error = f"{self.error.size(2)}{f' ({ends})' if ends and self.error.low > 0.0 else ''}"
        bias = number(self.bias, 2, sign="+", missing="-")
        e_value = format_evidence(self.log_e_value)
        return [
            self.label,
            f"{self.n:,}",
            f"{self.n_overdue:,}",
            bias,
            "-" if math.isnan(self.error.estimate) else error,
            e_value,
            "alarm" if self.alarm else "ok",
        ]

    def __str__(self) -> str:
        label, rows, overdue, bias, error, e_value, state = self.cells()
        late = f", {overdue} overdue" if self.n_overdue else ""
        return f"{label}: {rows} rows{late}, bias {bias}, error {error}, e-value {e_value}, {state}"


@dataclass(frozen=True, slots=True, repr=False)
class WatchResult(PageResult):
    """The state of a watched stream.

    Attributes
    ----------
    status : MonitorStatus
        The evidence of all rows.
    segments : MonitorSegments or None
        The evidence of each segment.
    windows : tuple of WatchedWindow
        Closed windows, oldest first; the last 2,000 at most.
    warnings : tuple of str
        Reasons for caution.
    """

    status: MonitorStatus
    segments: MonitorSegments | None
    windows: tuple[WatchedWindow, ...]
    warnings: tuple[str, ...]
    _derived: ClassVar = ("decision",)

    @property
    def decision(self) -> str:
        """One of "pass", "fail" (an alarm) and "too little data" (a large bias is still possible)."""
        if self.status.alarm or (self.segments is not None and self.segments.n_listed):
            return "fail"
        if not self.windows or not self.status.n:
            return "too little data"
        means = self.status.mean_proba, 1.0 - self.status.mean_proba
        limit = min(0.1, 0.5 * min(means))
        ends = self.status.bias.low, self.status.bias.high
        return "pass" if max(map(abs, ends)) <= limit else "too little data"

    def table(self) -> dict[str, Any]:
        """Return one row per window, as columns."""
        return columns(
            {
                **{
                    name: getattr(window, name)
                    for name in ("label", "n", "n_overdue", "mean_proba", "mean_true", "bias")
                },
                "error": window.error.estimate,
                "error_low": window.error.low,
                "error_high": window.error.high,
                "log_e_value": window.log_e_value,
                "alarm": window.alarm,
            }
            for window in self.windows
        )

    def to_markdown(self) -> str:
        """Return the evidence, the segments and the windows as tables in Markdown."""
        parts = [self.status, *([] if self.segments is None else [self.segments])]
        return "\n\n".join([*(part.to_markdown() for part in parts), replace(self._page(), heading="").markdown()])

    def _page(self) -> Page:
        rows = [window.cells() for window in self.windows[-_SHOWN:]]
        heading = str(self.status) if self.segments is None else f"{self.status}\n\n{self.segments}"
        return Page(heading, Table(_HEADER, rows, right=(1, 2, 3, 5)), warnings=self.warnings)


def format_evidence(log_e: float) -> str:
    """Format an e-value from its logarithm; beyond the range of floats, as a power of ten."""
    return number(math.exp(log_e), 3) if log_e < 700.0 else f"1e+{log_e / math.log(10.0):.0f}"
