"""The results of a monitor: an alarm or none, in words first, then the evidence."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from truthcal.results.base import Evidence, PageResult, evidence_page
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.text import Page, Table, count, more_rows, number, p_value, percent, plural
from truthcal.results.tracked import Tracked, attribute_metrics, interval_metrics

# Segments that `str` shows, and names in the verdict.
_SHOWN, _NAMED = 20, 5


@dataclass(frozen=True, slots=True, repr=False)
class MonitorStatus(Tracked, PageResult):
    """The evidence of a `Monitor` so far. Returned by `Monitor.status`. Print it.

    Attributes
    ----------
    alpha : float
        Probability of a false alarm, ever.
    log_e_value : float
        Logarithm of the evidence against calibration at this moment.
    pvalue : float
        Smallest 1 / e-value at the end of a window so far: a p-value that is valid at any time.
    alarm : bool
        Whether the evidence has ever reached ``1 / alpha``.
    alarm_since : str or None
        The first window at whose end it had.
    error : str
        The kind of error that most of the evidence speaks for: "too high", "too low", "overconfident",
        "underconfident", or "too high near 0.25". Without an alarm it may be chance.
    since : str or None
        The window in which this error began, approximately; None for the first window.
    bias : ConfidenceInterval
        Mean prediction minus mean outcome of all scored rows, with an interval that holds at all looks together.
    mean_proba : float
        Mean prediction of all scored rows; nan if there are none.
    n, n_units : int
        Scored rows, and independent units among them: groups, and rows without a group.
    n_windows : int
        Windows so far, including the current one.
    window : str or None
        The current window.
    n_open : int
        Rows of groups in the current window, which are scored when it ends.
    n_pending, n_overdue, n_due : int
        Registered rows that are not yet scored and not overdue; rows without an outcome after they were due; all rows
        with a due window that are known or overdue.
    n_too_late : int
        Outcomes that arrived after their group was scored, and were left out.
    warnings : tuple of str
        Reasons for caution.
    """

    alpha: float
    log_e_value: float
    pvalue: float
    alarm: bool
    alarm_since: str | None
    error: str
    since: str | None
    bias: ConfidenceInterval
    mean_proba: float
    n: int
    n_units: int
    n_windows: int
    window: str | None
    n_open: int
    n_pending: int
    n_overdue: int
    n_due: int
    n_too_late: int
    warnings: tuple[str, ...]
    _derived: ClassVar = ("e_value", "verdict")
    _METRICS: ClassVar = {
        **attribute_metrics("log_e_value", "pvalue", "alarm"),
        **interval_metrics("bias"),
        **attribute_metrics("mean_proba", "n", "n_windows", "n_pending", "n_overdue", "overdue_share"),
    }

    @property
    def e_value(self) -> float:
        """The evidence against calibration at this moment: about 1 or less without errors, large with them."""
        return math.exp(self.log_e_value) if self.log_e_value < 709.0 else math.inf

    @property
    def overdue_share(self) -> float:
        """Share of the rows that are due whose outcome is missing; nan if none is due."""
        return self.n_overdue / self.n_due if self.n_due else math.nan

    @property
    def verdict(self) -> str:
        """The alarm and what it means in one sentence."""
        if not self.alarm:
            seen = f"{count(self.n, 'row')} in {count(self.n_windows, 'window')}"
            return f"No alarm after {seen}." if self.n else "No alarm: no rows have been scored yet."
        since = "the first window" if self.since is None else f"about {self.since}"
        what = f"predictions have been {self.error} since {since}"
        if self.log_e_value < -math.log(self.alpha):
            what = "the evidence has fallen below the limit since then"
        return f"Alarm since {self.alarm_since}: {what}."

    def evidence(self) -> list[Evidence]:
        """Return the lines of evidence: e-value, p-value, bias, and overdue rows if there are any."""
        level = percent(1.0 - self.alpha)
        limit = f"against calibration now; an alarm is raised at {number(1.0 / self.alpha)}"
        evidence = [
            Evidence("e-value", self.e_value, number(self.e_value, 3), limit),
            Evidence("p-value", self.pvalue, p_value(self.pvalue), "valid at any number of looks"),
            Evidence("bias", self.bias.estimate, number(self.bias.estimate, 3, sign="+"), self._bias_text(level)),
        ]
        if self.n_pending or self.n_due:
            late = f"{self.n_overdue:,} of {count(self.n_due, 'row')} due; {self.n_pending:,} not yet due"
            late += f"; {self.n_too_late:,} arrived too late for their group" if self.n_too_late else ""
            share = "-" if math.isnan(self.overdue_share) else f"{100.0 * self.overdue_share:.1f}%"
            evidence.append(Evidence("overdue", self.overdue_share, share, late))
        return evidence

    def _page(self) -> Page:
        return evidence_page(self.verdict, self.evidence(), widths=(8, 12), warnings=self.warnings)

    def _bias_text(self, level: str) -> str:
        if math.isnan(self.bias.low):
            return "no rows yet"
        groups = f" in {self.n_units:,} groups, counted per window" if self.n_units != self.n else ""
        ends = self.bias.ends("+")
        return f"mean prediction minus mean outcome of {count(self.n, 'row')}{groups} ({level} at all looks: {ends})"


@dataclass(frozen=True, slots=True, repr=False)
class MonitorSegments(PageResult):
    """The status of a `MonitorTable`: of all rows, and of each segment. Print it.

    Attributes
    ----------
    by : tuple of str
        Names of the columns that define the segments.
    alpha : float
        Bound of the expected share of false ones among the segments that are listed as miscalibrated.
    total : MonitorStatus
        All rows.
    names, statuses : tuple of str, tuple of MonitorStatus
        The segments, by decreasing evidence.
    n_listed : int
        So many of them, from the first on, are miscalibrated.
    """

    by: tuple[str, ...]
    alpha: float
    total: MonitorStatus
    names: tuple[str, ...]
    statuses: tuple[MonitorStatus, ...]
    n_listed: int
    _keys: tuple[Any, ...] = ()
    _derived: ClassVar = ("verdict",)

    @property
    def miscalibrated(self) -> tuple[Any, ...]:
        """Keys of the segments that are miscalibrated, by decreasing evidence."""
        return self._keys[: self.n_listed]

    @property
    def verdict(self) -> str:
        """The miscalibrated segments in one sentence."""
        n = len(self.names)
        if not self.n_listed:
            return f"None of {count(n, 'segment')} is shown to be miscalibrated." if n else "There are no segments yet."
        pairs = zip(self.names, self.statuses, strict=True)
        named = [f"{name} ({status.error})" for name, status in pairs][: min(self.n_listed, _NAMED)]
        more = f" and {self.n_listed - _NAMED:,} more" if self.n_listed > _NAMED else ""
        are = plural(self.n_listed, "is", "are")
        separator = "; " if len(self.by) > 1 else ", "  # a name has commas between the values of several columns
        return f"{self.n_listed:,} of {count(n, 'segment')} {are} miscalibrated: {separator.join(named)}{more}."

    def table(self) -> dict[str, Any]:
        """Return one row per segment, as columns: its name, the evidence, the kind of error, and the bias."""
        rows = self.statuses
        return {
            "segment": list(self.names),
            "miscalibrated": [place < self.n_listed for place in range(len(rows))],
            **{name: [getattr(row, name) for row in rows] for name in ("n", "log_e_value", "error", "since")},
            "bias": [row.bias.estimate for row in rows],
            "bias_low": [row.bias.low for row in rows],
            "bias_high": [row.bias.high for row in rows],
        }

    def _page(self) -> Page:
        rows = []
        for place, (name, status) in enumerate(zip(self.names[:_SHOWN], self.statuses, strict=False)):
            bias = f"{number(status.bias.estimate, 2, sign='+')} ({status.bias.ends('+')})"
            verdict = status.error if place < self.n_listed else "no finding"
            rows.append([name, f"{status.n:,}", bias, number(status.e_value, 3), verdict])
        header = (", ".join(self.by), "rows", "bias (all looks)", "e-value", "verdict")
        note = f"Of the listed segments, at most {percent(self.alpha)} are false on average."
        notes = [*more_rows(len(self.names), _SHOWN), *([note] if self.n_listed else [])]
        return Page(self.verdict, Table(header, rows, right=(1, 3)), notes)
