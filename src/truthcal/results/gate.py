"""The result of `check`: pass, fail or too little data, with the reasons and the assessment behind them."""

import html
import math
from dataclasses import dataclass

from truthcal.results.assessment import Assessment, word_parts
from truthcal.results.base import Plotted, Result
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.segments import Segment, SegmentTable
from truthcal.results.text import count, escape_markdown, lower_limit, p_value, percent, upper_limit

# Reasons that the sentence lists; `reasons` has all of them.
_LISTED = 5
_HEADINGS = {"pass": "Pass", "fail": "Fail", "too little data": "Too little data to tell"}


@dataclass(frozen=True, slots=True, repr=False)
class Gate(Plotted, Result):
    """Pass, fail, or too little data to tell. Returned by `check`. Print it.

    Attributes
    ----------
    status : {"pass", "fail", "too little data"}
        The decision. "too little data": no limit is exceeded, but there are too few rows to be sure.
    reasons : tuple of str
        The reasons for the decision, at least one.
    alpha, max_error : float or None
        The requested limits; None for one that is not checked.
    confidence_level : float
        The requested confidence level.
    used_alpha : float or None
        Level of the test of all rows and of the test of the segments: half of `alpha` each if there are segments.
    used_confidence_level : float
        Confidence level of each interval: with segments and `max_error`, high enough for all of them to hold together.
    assessment : Assessment or MulticlassAssessment
        All rows, assessed at these levels.
    segments : SegmentTable or None
        The segments, if there are any.
    """

    status: str
    reasons: tuple[str, ...]
    alpha: float | None
    max_error: float | None
    confidence_level: float
    used_alpha: float | None
    used_confidence_level: float
    assessment: Assessment | MulticlassAssessment
    segments: SegmentTable | None

    @property
    def verdict(self) -> str:
        """Status and reasons in one sentence."""
        more = f"; and {len(self.reasons) - _LISTED:,} more" if len(self.reasons) > _LISTED else ""
        return f"{_HEADINGS[self.status]}: {'; '.join(self.reasons[:_LISTED])}{more}."

    def summary(self) -> list[tuple[str, str]]:
        """Three lines below the verdict: the number that decided and its limit; the error; rows and p-value."""
        whole = self.assessment
        error = whole.error
        ends = f" ({error.between()})" if error.low > 0.0 else f" ({percent(error.confidence_level)} confidence)"
        size = f"{error.size(2)}{'' if math.isnan(error.low) else ends}"
        groups = "" if whole.n_groups is None else f" in {count(whole.n_groups, 'group')}"
        rows = f"{whole.n:,}{groups}; {p_value(whole.pvalue)} for miscalibration"
        scope = "" if self.segments is None else "all rows: "
        return [("limit", self._word_limit()), ("error", f"{scope}{size}"), ("rows", f"{scope}{rows}")]

    def levels(self) -> str:
        """Sentences on how all rows and the segments share the levels; empty without segments."""
        if self.segments is None:
            return ""
        sentences, used = [], self.used_confidence_level
        if self.used_alpha is not None:
            shares = f"{self.used_alpha:g} for all rows together and {self.used_alpha:g} for the segments"
            sentences.append(f"Levels of the tests: {shares}, half of {self.alpha:g} each.")
        if self.max_error is not None:
            together = f"so that all {len(self.segments) + 1:,} hold together with {percent(self.confidence_level)}"
            sentences.append(f"Confidence level of each interval: {100.0 * used:.4g}%, {together}.")
        return " ".join(sentences)

    def _word_limit(self) -> str:
        """Word the number that decided, and the limit that it was compared with."""
        whole, failed, level = self.assessment, self.status == "fail", self.used_alpha
        p, name = min([(whole.pvalue, ""), *((s.adjusted, f" (adjusted) of segment {s.name}") for s in self._tested)])
        if failed and level is not None and p <= level:
            return f"{p_value(p)}{name}; {level:g} or less fails"
        if failed and level is not None and whole.test.impossible:
            return f"{count(whole.test.impossible, 'outcome')} had a predicted probability of 0; one fails"
        if self.status == "pass" and level is not None and self.max_error is None:
            return f"{p_value(p)}{name}; above {level:g} passes"
        if self.status == "too little data" and self.max_error is None and whole.error.high <= whole.notable_error:
            return self._word_other_doubt()
        return self._word_largest_error()

    def _word_other_doubt(self) -> str:
        """Word what decided if there is too little data, although the error is small enough."""
        whole = self.assessment
        if whole.kind == "unclear":
            evidence = (
                "the interval of the error excludes 0"
                if whole.error.low > 0.0
                else "the interval of the slope excludes 1"
            )
            return f"{p_value(whole.pvalue)} is above {self.used_alpha:g}, but {evidence}"
        rows = "rows" if whole.n_groups is None else "groups"
        return f"too few {rows} to detect errors" if whole.kind == "too few rows" else "no segment was tested"

    def _word_largest_error(self) -> str:
        errors = [(self.assessment.error, "")]
        errors += [(s.error, f" of segment {s.name}") for s in self._tested if self.max_error is not None]
        if self.status == "fail":
            error, name = max(errors, key=lambda pair: pair[0].low)
            return f"the error{name} is {lower_limit(error.low)} or more; above {self.max_error:g} fails"
        error, name = max(errors, key=lambda pair: math.inf if math.isnan(pair[0].high) else pair[0].high)
        allowed = self.assessment.notable_error if self.max_error is None else self.max_error
        if math.isnan(error.high):
            return f"the error{name} is unknown; it must be at most {allowed:.2g}"
        return f"the error{name} may be up to {upper_limit(error.high)}; it must be at most {allowed:.2g}"

    @property
    def _tested(self) -> tuple[Segment, ...]:
        return () if self.segments is None else self.segments.tested

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """Return the metrics of the assessment, and ``passed``: 1 or 0, or nan with too little data."""
        passed = {"pass": 1.0, "fail": 0.0}.get(self.status, math.nan)
        return {f"{prefix}passed": passed, **self.assessment.metrics(prefix)}

    def to_markdown(self) -> str:
        """Verdict and evidence in Markdown, for a pull request or a job summary."""
        segments = [] if self.segments is None else [self.segments.to_markdown()]
        return "\n\n".join([escape_markdown(self.verdict), self.assessment.to_markdown(), *segments])

    def _repr_html_(self) -> str:
        segments = "" if self.segments is None else self.segments._repr_html_()
        return f"<p><strong>{html.escape(self.verdict)}</strong></p>{self.assessment._repr_html_()}{segments}"

    def __str__(self) -> str:
        levels = [self.levels()] if self.segments is not None else []
        return "\n\n".join([self.verdict, *levels, str(self.assessment), *word_parts(self.segments, None)])
