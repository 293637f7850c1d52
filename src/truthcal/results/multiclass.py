"""The result of `assess` for predictions with many classes: the verdict in words, and the evidence for it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from truthcal.results.assessment import LARGE_ERROR
from truthcal.results.base import Evidence, PageResult, Plotted, Result, evidence_page
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.segments import Segment, SegmentTable
from truthcal.results.tests import CalibrationTest
from truthcal.results.text import (
    Page,
    effective_rows,
    frequencies,
    join_words,
    lower_limit,
    number,
    one_line,
    p_value,
    percent,
    plural,
    upper_limit,
)
from truthcal.results.tracked import Tracked, attribute_metrics, interval_metrics

# Classes that a sentence names.
_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Confusion(Result):
    """Which class happens where another one is predicted. Part of `MulticlassAssessment`.

    All numbers are tables with a row for the class k that is predicted and a column for the class l that happens. Rows
    count with weight times p_k, so that calibrated predictions have equal entries in both tables, up to noise.

    Attributes
    ----------
    labels : tuple
        The classes.
    predicted, observed : ndarray of shape (k, k)
        Predicted and observed frequency of class l where class k is predicted.
    z : ndarray of shape (k, k)
        Observed minus predicted, in standard errors.
    worst : tuple of int, or None
        The pair (k, l) with the most surplus rows of class l where k is predicted, among the significant pairs; None if
        there is none.
    significant : ndarray of bool, of shape (k, k)
        Pairs of different classes for which class l happens more often than predicted, after Bonferroni's correction
        for all pairs.
    """

    labels: tuple[Any, ...]
    predicted: Any
    observed: Any
    z: Any
    worst: tuple[int, int] | None
    significant: Any
    _derived: ClassVar = ("sentence",)

    @property
    def sentence(self) -> str:
        """The two classes that are confused most, in words; empty if no pair is significant."""
        if self.worst is None:
            return ""
        k, j = self.worst
        observed, predicted = frequencies(float(self.observed[k, j]), float(self.predicted[k, j]))
        where, what = (one_line(str(self.labels[i])) for i in (k, j))
        return (
            f"Most confused: where {where} is predicted, {what} happens more often: {observed} instead of {predicted}."
        )

    def __str__(self) -> str:
        return self.sentence or "No two classes are confused significantly."


@dataclass(frozen=True, slots=True, repr=False)
class MulticlassAssessment(Plotted, Tracked, PageResult):
    """Verdict and evidence on predictions with many classes. Returned by `assess`. Print it.

    Attributes
    ----------
    kind, verdict : str
        "calibrated", "too few rows", "unclear", "overconfident", "underconfident", "miscalibrated" (none of these two
        clearly, or a class with probability 0 happened) or "too good"; for two classes also "too high" and "too low",
        as in `Assessment`; the finding in words.
    definition : str
        What calibration means: "vector" (see `multiclass_atb`), or "multilabel" for independent columns.
    error : ConfidenceInterval
        Size of the error: the root of half of the sum over classes of the mean squared errors (with "multilabel", the
        root mean square error of all columns).
    atb, noise_floor, excess : float
        Vector ATB ("multilabel": the ATB of all entries), its expected value under calibration, and an unbiased
        estimate of it in the population.
    brier : float
        Brier score: the mean of half of |p - y|^2 ("multilabel": of (p - y)^2 over all entries).
    test : CalibrationTest
        The calibration test of all classes together. The verdict rests on ``pvalue``, which also uses those of classes.
    pvalue_too_good : float
        The p-value of the other tail.
    slope : ConfidenceInterval or None
        Slope of all log-probabilities in a recalibration: below 1, predictions are overconfident. 1 / slope is known as
        temperature. None with "multilabel".
    detectable_slopes : tuple of float, or None
        Slopes beyond these two would have been detected with 80% power; nan if none would.
    classes : SegmentTable
        Each class against the rest, with p-values adjusted for the number of classes (Holm), at half of the level of
        the verdict. A mapping from labels.
    confusion : Confusion or None
        Which classes happen where others are predicted. None with "multilabel".
    labels : tuple
        The classes, in the order of the columns.
    n, n_effective : int, float
        Rows with a weight above 0, and the effective sample size.
    warnings : tuple of str
        Valid but suspicious properties of the data.
    n_groups, n_effective_groups : int, float, or None
        As in `Assessment`.
    """

    kind: str
    verdict: str
    definition: str
    error: ConfidenceInterval
    atb: float
    noise_floor: float
    excess: float
    brier: float
    test: CalibrationTest
    pvalue_too_good: float
    slope: ConfidenceInterval | None
    detectable_slopes: tuple[float, float] | None
    classes: SegmentTable
    confusion: Confusion | None
    labels: tuple[Any, ...]
    n: int
    n_effective: float
    warnings: tuple[str, ...]
    n_groups: int | None = None
    n_effective_groups: float | None = None
    _rows: Any = field(default=None, repr=False, compare=False)  # the checked rows, for curves
    _groups: Any = field(default=None, repr=False, compare=False)  # numbers of their groups
    _derived: ClassVar = ("pvalue",)
    _METRICS: ClassVar = {
        **interval_metrics("error"),
        **interval_metrics("slope"),
        **attribute_metrics("atb"),
        **{"atb_noise_floor": "noise_floor", "atb_excess": "excess"},
        **attribute_metrics("pvalue", "pvalue_too_good", "brier", "n", "n_effective"),
    }

    def evidence(self, digits: int = 4) -> list[Evidence]:
        """Return the numbers behind the verdict, with `digits` significant digits and an explanation each."""
        test, few = self.test, min(digits, 3)
        name = "vector ATB" if self.definition == "vector" else "ATB"
        chance = f"chance alone gives {self.noise_floor:.{few}g}; excess {number(self.excess, digits)}"
        noun = "classes" if self.definition == "vector" else "columns"
        by_test = self._word_smaller() or f"all {noun} together ({test.method})"
        rows = effective_rows(self.n, self.n_effective)
        lines = [
            self._error_evidence(digits),
            Evidence(name, self.atb, number(self.atb, digits), f"{chance}; truthful"),
            Evidence("miscalibrated?", self.pvalue, self._format_p(), by_test),
            Evidence(
                "too good?",
                self.pvalue_too_good,
                test.format_p(self.pvalue_too_good),
                "small if predictions are closer to the outcomes than chance allows",
            ),
            *self._slope_evidence(digits),
            Evidence(noun, len(self.labels), f"{len(self.labels):,}", self._word_classes()),
            Evidence("Brier score", self.brier, number(self.brier, digits), self._word_brier()),
            Evidence("rows", self.n, f"{self.n:,}", rows),
        ]
        if self.n_groups is not None:
            lines.append(
                Evidence("groups", self.n_groups, f"{self.n_groups:,}", "rows of a group may depend on each other")
            )
        return lines

    @property
    def pvalue(self) -> float:
        """p-value of the verdict: of all classes together and of each class, whichever is smaller, times two.

        The p-values of classes are adjusted for their number (Holm). Two classes have that of the test alone.
        """
        if self.definition == "vector" and len(self.labels) == 2:
            return self.test.greater
        return min(1.0, 2.0 * min([self.test.greater, *(segment.adjusted for segment in self.classes.tested)]))

    @property
    def notable_error(self) -> float:
        """The smallest error that the assessment should exclude."""
        return LARGE_ERROR

    def _error_evidence(self, digits: int) -> Evidence:
        error = self.error
        what = "of all classes" if self.definition == "vector" else "root mean square"
        end = f"{percent(error.confidence_level)} confidence" if error.low == 0.0 else error.between()
        return Evidence("error", error.estimate, error.size(digits), f"{what}, without noise; {end}")

    def _slope_evidence(self, digits: int) -> list[Evidence]:
        if self.slope is None:
            return []
        text = f"{self.slope.between()}; below 1 is overconfident"
        low, high = self.detectable_slopes or (math.nan, math.nan)
        lines = [Evidence("slope", self.slope.estimate, number(self.slope.estimate, digits), text)]
        if not math.isnan(low) or not math.isnan(high):
            lines.append(Evidence("detectable", 0.8, "80% power", f"slopes {_join_slopes(low, high)}"))
        return lines

    def _format_p(self) -> str:
        """Format the p-value of the verdict; as an upper limit if it comes from few redraws."""
        limit = self.test.format_p(self.test.greater).startswith("p <=") and self.pvalue >= 2.0 * self.test.greater
        return p_value(self.pvalue).replace("p = ", "p <= " if limit else "p = ")

    def _word_smaller(self) -> str:
        """Word the two p-values of which that of the verdict is twice the smaller one; empty if there is only one."""
        smallest = min((segment.adjusted for segment in self.classes.tested), default=math.nan)
        if math.isnan(smallest) or self.pvalue == self.test.greater:
            return ""
        one, together = (
            text.removeprefix("p ").removeprefix("= ")
            for text in (p_value(smallest), self.test.format_p(self.test.greater))
        )
        return f"twice the smaller of {one} (a {self.classes.noun}, Holm) and {together} (all)"

    def _word_brier(self) -> str:
        return "half of |p - y|^2, averaged over rows" if self.definition == "vector" else "(p - y)^2, averaged"

    def _word_classes(self) -> str:
        wrong, tested = self.classes.miscalibrated, self.classes.tested
        are = plural(len(wrong), "is", "are")
        return f"{len(wrong)} of {len(tested)} tested {are} miscalibrated (Holm, level {percent(self.classes.alpha)})"

    def _page(self) -> Page:
        rows = [segment for segment in self.classes.segments if segment.miscalibrated]
        notes = [f"  {one_line(row.name)}: {row.kind} (adjusted {p_value(row.adjusted)})" for row in rows[:_NAMED]]
        if len(rows) > _NAMED:
            notes.append(f"  ... and {len(rows) - _NAMED:,} more (`.classes` and --json have all of them)")
        page = evidence_page(self.verdict, self.evidence(), widths=(15, 11), warnings=self.warnings)
        return Page(page.heading, page.table, notes, page.warnings)


def _join_slopes(low: float, high: float) -> str:
    """Word the slopes that would have been detected; empty if there are none."""
    below = [] if math.isnan(low) else [f"below {lower_limit(low)}"]
    return " or ".join([*below, *([] if math.isnan(high) else [f"above {upper_limit(high)}"])])


def word_slopes(slopes: tuple[float, float] | None) -> str:
    """Word the detectable slopes for a verdict; empty if none would have been detected."""
    words = _join_slopes(*(slopes or (math.nan, math.nan)))
    return f"Detectable with 80% power: slopes {words}." if words else ""


def word_classes(segments: Iterable[Segment], noun: str) -> str:
    """List miscalibrated classes by the direction of their error, for a verdict; empty if there are none."""
    by_kind: dict[str, list[str]] = {}
    for segment in segments:
        by_kind.setdefault(segment.kind, []).append(one_line(segment.name))
    parts = []
    for kind, names in by_kind.items():
        shown = names[:_NAMED] + ([f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else [])
        parts.append(f"{join_words(shown)} {plural(len(names), 'is', 'are')} {kind}")
    return f"By {noun}: {'; '.join(parts)} (Holm)." if parts else ""
