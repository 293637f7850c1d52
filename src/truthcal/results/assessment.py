"""The result of `assess`: the verdict in words, and the evidence for it."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from truthcal.results.base import Evidence, PageResult, Plotted, evidence_page, one_row
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.measures import ScoreDecomposition
from truthcal.results.over_time import SHOWN as WINDOWS_SHOWN
from truthcal.results.over_time import TimeAssessment
from truthcal.results.power import DetectableError
from truthcal.results.segments import SHOWN, SegmentTable
from truthcal.results.tests import CalibrationTest
from truthcal.results.text import Page, Unit, effective_rows, error_unit, mood, number, one_line, percent, unit_of
from truthcal.results.tracked import Tracked, attribute_metrics, interval_metrics
from truthcal.results.worst_stretch import WorstStretch

# If errors of this size may be present, "calibrated" says little.
LARGE_ERROR = 0.1
# Assessments of parts of the rows, which are tables.
_PARTS = ("segments", "over_time")
_TOO_GOOD = "small if predictions are closer to the outcomes than chance allows"


@dataclass(frozen=True, slots=True, repr=False)
class Assessment(Plotted, Tracked, PageResult):
    """Verdict and evidence: can these probabilities be trusted? Returned by `assess`. Print it.

    Attributes
    ----------
    kind, verdict : str
        "calibrated", "too few rows", "unclear" (the test finds nothing, but the interval of the error excludes 0), "too
        high", "too low", "overconfident", "underconfident", "miscalibrated" (none of these four clearly, or an outcome
        had a predicted probability of 0) or "too good"; the finding in words.
    error, bias_interval : ConfidenceInterval
        Root mean square error (`error_size`) and bias; their `estimate` is the value.
    atb, noise_floor, excess, brier : float
        As in `AtbSummary`.
    test : CalibrationTest
        The calibration test: ``test.pvalue`` is the p-value for miscalibration that the verdict gives.
    pvalue_too_good : float
        The p-value of the other tail: small if predictions are closer to the outcomes than chance allows.
    detectable : DetectableError
        The smallest errors that would have been detected with 80% power, by their shape.
    worst : WorstStretch or None
        The range of predictions whose mean error is certainly largest; None if no range is certainly off.
    decomposition : ScoreDecomposition
        The Brier score as miscalibration, discrimination and uncertainty.
    mean_proba, mean_true : float
        Mean prediction and mean outcome.
    n, n_effective : int, float
        Rows with a weight above 0; effective sample size: the number of independent rows of equal weight with
        the same information.
    n_groups, n_effective_groups : int, float, or None
        Number of groups of rows that belong together, and their effective number: that of groups of equal weight
        with the same information. None without groups.
    warnings : tuple of str
        Valid but suspicious properties of the data.
    event : str, int, float, bool or None
        The label of the event that was passed as `pos_label`; None if it is 1, or was not passed.
    segments : SegmentTable or None
        The segments, if `by` of `assess` defines some.
    over_time : TimeAssessment or None
        Calibration over time, if `time` of `assess` says when each row happened.
    """

    kind: str
    verdict: str
    error: ConfidenceInterval
    bias_interval: ConfidenceInterval
    atb: float
    noise_floor: float
    excess: float
    brier: float
    test: CalibrationTest
    pvalue_too_good: float
    detectable: DetectableError
    worst: WorstStretch | None
    decomposition: ScoreDecomposition
    mean_proba: float
    mean_true: float
    n: int
    n_effective: float
    warnings: tuple[str, ...]
    n_groups: int | None = None
    n_effective_groups: float | None = None
    event: Any = None
    segments: SegmentTable | None = None
    over_time: TimeAssessment | None = None
    _summary: Any = field(default=None, repr=False, compare=False)  # the Sample or Sketch, for curves
    _METRICS: ClassVar = {
        **interval_metrics("error"),
        **interval_metrics("bias", "bias_interval"),
        **attribute_metrics("atb"),
        **{"atb_noise_floor": "noise_floor", "atb_excess": "excess"},
        **attribute_metrics("pvalue", "pvalue_too_good", "brier", "mean_proba", "mean_true", "n", "n_effective"),
    }

    def evidence(self, digits: int = 4) -> list[Evidence]:
        """Return the numbers behind the verdict, with `digits` significant digits and an explanation each."""
        d, test, few = self.decomposition, self.test, min(digits, 3)

        def line(name: str, value: float, explanation: str) -> Evidence:
            return Evidence(name, value, number(value, digits), explanation)

        by_test = f"by {test.measure} ({test.method})"
        chance = f"chance alone gives {self.noise_floor:.{few}g}; excess {number(self.excess, digits)}"
        parts = f"miscalibration {d.miscalibration:.{few}g} - discrimination {d.discrimination:.{few}g}"
        return [
            self._error_evidence(digits),
            self._bias_evidence(digits),
            line("ATB", self.atb, chance),
            Evidence("miscalibrated?", test.pvalue, test.format_p(test.pvalue), by_test),
            Evidence("too good?", self.pvalue_too_good, test.format_p(self.pvalue_too_good), _TOO_GOOD),
            self._worst_evidence(digits),
            self._detectable_evidence(),
            line("Brier score", self.brier, f"{parts} + uncertainty {d.uncertainty:.{few}g}"),
            *self._event_evidence(),
            Evidence("rows", self.n, f"{self.n:,}", effective_rows(self.n, self.n_effective)),
            *self._groups_evidence(),
        ]

    @property
    def unit(self) -> Unit:
        """Unit of errors in text: for rare events, per 1,000 rows or more."""
        return error_unit(self.mean_proba, self.mean_true, self.error.high)

    @property
    def rare_unit(self) -> Unit | None:
        """Unit of errors, if events are rare: rates are in the same one. Otherwise None: each rate has its own."""
        return self.unit if self.unit.rows > 1 and max(self.mean_proba, self.mean_true) < 0.5 else None

    @property
    def pvalue(self) -> float:
        """p-value of the verdict, that of the test for miscalibration."""
        return self.test.greater

    @property
    def notable_error(self) -> float:
        """The smallest error that this should exclude: 0.1, or half of the rarer outcome's mean probability."""
        return min(LARGE_ERROR, self.mean_proba / 2.0, (1.0 - self.mean_proba) / 2.0)

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """Return the main numbers by name, with those of segments and of windows of time if there are any."""
        numbers = Tracked.metrics(self, prefix)
        if self.segments is not None:
            numbers[f"{prefix}segments_tested"] = float(len(self.segments.tested))
            numbers[f"{prefix}segments_miscalibrated"] = float(len(self.segments.miscalibrated))
        if self.over_time is not None:
            numbers[f"{prefix}pvalue_change"] = self.over_time.change.pvalue
        return numbers

    def _error_evidence(self, digits: int) -> Evidence:
        """Format the size of the error and its explanation. An error that may be 0 has an upper limit only."""
        error, unit = self.error, self.unit
        significant = mood(self.kind) == "bad" or error.low > 0.0
        start = "root mean square, without noise" if significant else "none detected"
        end = f"{percent(error.confidence_level)} confidence" if error.low == 0.0 else error.between(unit)
        return Evidence("error", error.estimate, f"{error.size(digits, unit)}{unit.per}", f"{start}; {end}")

    def _bias_evidence(self, digits: int) -> Evidence:
        bias, unit = self.bias_interval, self.unit
        rates = self.rare_unit or unit_of(self.mean_proba, self.mean_true)
        predicted, observed = (number(rates.rows * mean, digits) for mean in (self.mean_proba, self.mean_true))
        means = f"mean prediction {predicted}, outcome {observed}{rates.per}"
        text = f"{number(unit.rows * bias.estimate, digits, sign='+')}{unit.per}"
        return Evidence("bias", bias.estimate, text, f"{bias.between(unit)}; {means}")

    def _detectable_evidence(self) -> Evidence:
        shapes, power = self.detectable.shapes_in(self.unit), self.detectable.power
        if not shapes:
            return Evidence("detectable", math.nan, "unknown", "these rows carry too little information")
        return Evidence("detectable", power, f"{percent(power)} power", shapes)

    def _worst_evidence(self, digits: int) -> Evidence:
        worst, level, unit = self.worst, percent(self.bias_interval.confidence_level), self.rare_unit
        if worst is None:
            return Evidence("worst range", math.nan, "none", f"no range of predictions is off with {level} confidence")
        predicted, observed = worst.rates(unit)
        where = f"or worse {worst.place(unit)} ({level}); mean prediction {predicted}, outcome {observed}"
        return Evidence("worst range", worst.error_at_least, worst.limit(unit), where)

    def _event_evidence(self) -> list[Evidence]:
        """Name the event, if outcomes are labels."""
        if self.event is None:
            return []
        return [Evidence("event", math.nan, one_line(str(self.event)), "the outcome whose probability is predicted")]

    def _groups_evidence(self) -> list[Evidence]:
        """Format the number of groups, if there are any."""
        if self.n_groups is None or self.n_effective_groups is None:
            return []
        even = self.n_effective_groups > 0.99 * self.n_groups
        uneven = "" if even else f"; effective number of groups {self.n_effective_groups:,.1f}"
        meaning = f"rows of a group may depend on each other{uneven}"
        return [Evidence("groups", self.n_groups, f"{self.n_groups:,}", meaning)]

    def _page(self) -> Page:
        return evidence_page(self.verdict, self.evidence(), widths=(15, 11), warnings=self.warnings)

    def to_text(self, width: int | None = None) -> str:
        """Return the printed text, in lines of at most `width` characters where possible; None wraps nothing."""
        return "\n\n".join([self._page().text(width), *word_parts(self.segments, self.over_time, width=width)])

    def to_markdown(self) -> str:
        """Return the verdict, the evidence, segments and windows in Markdown."""
        return "\n\n".join([self._page().markdown(), *(part.to_markdown() for part in self._parts())])

    def _repr_html_(self) -> str:
        return self._page().html() + "".join(part._repr_html_() for part in self._parts())

    def _parts(self) -> list[PageResult]:
        """Return the assessments of parts of the rows: segments, windows of time."""
        return [part for part in (self.segments, self.over_time) if part is not None]

    def table(self) -> dict[str, Any]:
        """Return one row with all numbers and words; `segments` and `over_time` have tables of their own."""
        return one_row({name: value for name, value in self.to_dict().items() if name not in _PARTS})


def word_parts(
    segments: SegmentTable | None,
    over_time: TimeAssessment | None,
    *,
    whole: bool = False,
    hint: str = "",
    width: int | None = None,
) -> list[str]:
    """Format the assessments of parts of the rows, as text below that of all rows.

    With `whole`, all segments and windows are listed; else `hint` says how to see those that are left out.
    """
    limits = (None, None) if whole else (SHOWN, WINDOWS_SHOWN)
    pages = [] if segments is None else [(f"By {', '.join(segments.by)}", segments._page(limits[0], hint))]
    pages += [] if over_time is None else [("Over time", over_time._page(limits[1], hint))]
    return [replace(page, heading=f"{name}: {page.heading}").text(width) for name, page in pages]
