"""The gate: predictions pass a limit on their calibration error, fail it, or have too few rows to tell."""

import math
from dataclasses import dataclass
from typing import Any, Self

from truthcal.core.checks import invalid
from truthcal.core.class_rows import has_classes
from truthcal.core.frame_columns import named_columns
from truthcal.core.params import check_level, check_positive
from truthcal.core.segment_rows import segment_rows
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.inference.assess import assess
from truthcal.inference.multiclass.entry import refuse_event_options
from truthcal.inference.segments import assess_segments, check_table_of_sketches
from truthcal.results.assessment import Assessment
from truthcal.results.gate import Gate
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.segments import SegmentTable
from truthcal.results.text import count, lower_limit, p_value, percent, plural, upper_limit

_ALPHA = 0.05


@named_columns
def check(
    y_true: Any,
    y_proba: Any = None,
    *,
    alpha: float | None = None,
    max_error: float | None = None,
    confidence_level: float = 0.95,
    by: Any = None,
    segments: SketchTable | None = None,
    adjust: str = "holm",
    min_rows: int = 30,
    sample_weight: Any = None,
    pos_label: Any = None,
    hard: bool = False,
    groups: Any = None,
    labels: Any = None,
    multilabel: bool = False,
) -> Gate:
    """Decide whether predictions pass: the gate for continuous integration and for monitoring.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label, hard, groups, labels, multilabel
        As for `assess`.
    alpha : float, optional
        Fail if miscalibration is significant at this level, or if any outcome had a predicted probability of exactly
        0. Default 0.05, unless `max_error` is given.
    max_error : float, optional
        Fail if the lower end of the interval of the error (on the scale of a probability) exceeds this. At most 1.
    confidence_level : float, default 0.95
        Confidence level of the intervals.
    by : array-like, or list or mapping of them, optional
        Columns that define segments, as for `assess`. Each segment is checked as well.
    segments : SketchTable, optional
        The same rows by segment, in place of `by`, if they are not in memory.
    adjust, min_rows
        As for `assess_segments`.

    Returns
    -------
    Gate
        ``.status`` is "pass", "fail" or "too little data"; ``.reasons`` lists the reasons.

    Notes
    -----
    "too little data" means that nothing failed, but the upper end of the interval of the error exceeds `max_error`
    (without `max_error`: 0.1, or half of the mean probability of the rarer outcome if that is smaller), the assessment
    says "too few rows" or, without `max_error`, "unclear", or no segment has enough rows to be tested.
    With segments, half of `alpha` is used for all rows together and half for the segments, so that with
    ``adjust="holm"`` the probability of any false alarm stays at most `alpha`. With `max_error`, each interval gets an
    equal share of 1 - `confidence_level`, so that all of them hold together. With fewer than 20 groups there is no test
    at all, which is a ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> outcome = rng.random(2000) < truth
    >>> tc.check(outcome, truth).status
    'pass'
    >>> print(tc.check(outcome, truth**2, max_error=0.05).verdict)
    Fail: the error is at least 0.162, above the limit of 0.05.
    """
    rows: dict[str, Any] = {"sample_weight": sample_weight, "pos_label": pos_label, "groups": groups}
    segments = _gate_segments(y_true, y_proba, by, segments, rows)
    limits = _Limits.of(alpha, max_error, confidence_level, 0 if segments is None else len(segments))
    levels: dict[str, Any] = {"alpha": limits.used_alpha, "confidence_level": limits.used_confidence_level}
    whole = assess(y_true, y_proba, labels=labels, multilabel=multilabel, hard=hard, **rows, **levels)
    table = None if segments is None else assess_segments(segments, adjust=adjust, min_rows=min_rows, **levels)
    status, reasons = _decide_gate(limits, whole, table)
    return Gate(
        status=status,
        reasons=tuple(reasons),
        alpha=limits.alpha,
        max_error=limits.max_error,
        confidence_level=limits.confidence_level,
        used_alpha=None if limits.alpha is None else limits.used_alpha,
        used_confidence_level=limits.used_confidence_level,
        assessment=whole,
        segments=table,
    )


def _gate_segments(
    y_true: Any, y_proba: Any, by: Any, segments: SketchTable | None, rows: dict[str, Any]
) -> SketchTable | None:
    """Segments that the gate checks: a table of the user, or one of the rows; None without segments."""
    if segments is not None:
        if by is not None:
            raise invalid("by", "cannot be combined with `segments`: both divide the rows. Omit one of them.")
        return check_table_of_sketches(segments, "segments")
    if by is None:
        return None
    if isinstance(y_true, Sketch):
        raise invalid("by", "cannot be combined with a Sketch, whose rows are summarized; pass", fix=("segments",))
    if has_classes(y_proba):
        refuse_event_options(by=by)
    return segment_rows(y_true, y_proba, by, **rows)


@dataclass(frozen=True, slots=True)
class _Limits:
    """The requested limits, and the number of segments that share them with all rows together."""

    alpha: float | None
    max_error: float | None
    confidence_level: float
    n_segments: int

    @classmethod
    def of(cls, alpha: float | None, max_error: float | None, confidence_level: float, n_segments: int) -> Self:
        if alpha is None and max_error is None:
            alpha = _ALPHA
        if max_error is not None and check_positive(max_error, "max_error") > 1.0:
            cure = f" For {max_error:g} percentage points, pass {max_error / 100.0:g}." if max_error < 100.0 else ""
            raise invalid("max_error", f"must be at most 1; got {max_error:g}.{cure}")
        return cls(
            None if alpha is None else check_level(alpha, "alpha"),
            None if max_error is None else float(max_error),
            check_level(confidence_level, "confidence_level"),
            n_segments,
        )

    @property
    def used_alpha(self) -> float:
        """Half of the level for all rows and half for the segments."""
        alpha = self.alpha or _ALPHA
        return alpha / 2.0 if self.n_segments else alpha

    @property
    def used_confidence_level(self) -> float:
        """Bonferroni's share of the error for each interval that is compared with `max_error`."""
        return 1.0 - (1.0 - self.confidence_level) / (1 if self.max_error is None else 1 + self.n_segments)

    @property
    def level_text(self) -> str:
        return f"{self.used_alpha:g} (half of {self.alpha:g})" if self.n_segments else f"{self.alpha:g}"


def _decide_gate(
    limits: _Limits, whole: Assessment | MulticlassAssessment, segments: SegmentTable | None
) -> tuple[str, list[str]]:
    """Return the status of the gate and its reasons."""
    errors = _gate_intervals(limits, whole, segments)
    failures = [*_gate_test_failures(limits, whole, segments), *_gate_size_failures(limits, errors)]
    if failures:
        return "fail", failures
    doubts = _gate_doubts(limits, whole, segments, errors)
    if doubts:
        return "too little data", doubts
    untested = [] if segments is None else _untested_segments(segments)
    if limits.max_error is None:
        return "pass", [f"no significant miscalibration at level {limits.level_text}", *untested]
    largest = max(errors, key=lambda name: errors[name].high)
    limit = upper_limit(errors[largest].high)
    return "pass", [f"{largest} is at most {limit}, within the limit of {limits.max_error:g}", *untested]


def _untested_segments(segments: SegmentTable) -> list[str]:
    """A sentence on segments that passed the gate because they could not be tested; none if there are none."""
    few = len(segments) - len(segments.tested)
    were = plural(few, "was", "were")
    untested = f"{few:,} of {segments.count_words(len(segments))} {were} not tested (too few rows or groups)"
    return [untested] if few else []


def _gate_intervals(
    limits: _Limits, whole: Assessment | MulticlassAssessment, segments: SegmentTable | None
) -> dict[str, ConfidenceInterval]:
    """Intervals of the errors that the gate limits, by their name in messages."""
    errors = {"the error": whole.error}
    if segments is not None and limits.max_error is not None:
        errors |= {f"the error of segment {segment.name}": segment.error for segment in segments.tested}
    return errors


def _gate_test_failures(
    limits: _Limits, whole: Assessment | MulticlassAssessment, segments: SegmentTable | None
) -> list[str]:
    """Reasons to fail the gate: significant miscalibration at level alpha."""
    if limits.alpha is None:
        return []
    test, failures = whole.test, []
    if whole.pvalue <= limits.used_alpha:
        p = test.format_p(test.greater) if whole.pvalue == test.greater else p_value(whole.pvalue)
        evidence = p if whole.kind == "miscalibrated" else f"{whole.kind}, {p}"
        failures.append(f"significant miscalibration ({evidence}) at level {limits.level_text}")
    if test.impossible:
        failures.append(f"{count(test.impossible, 'outcome')} had a predicted probability of exactly 0")
    if segments is not None:
        failures += [
            f"segment {segment.name} is {segment.kind} (adjusted {p_value(segment.adjusted)})"
            for segment in segments.miscalibrated
        ]
    return failures


def _gate_size_failures(limits: _Limits, errors: dict[str, ConfidenceInterval]) -> list[str]:
    if limits.max_error is None:
        return []
    return [
        f"{name} is at least {lower_limit(interval.low)}, above the limit of {limits.max_error:g}"
        for name, interval in errors.items()
        if interval.low > limits.max_error
    ]


def _gate_doubts(
    limits: _Limits,
    whole: Assessment | MulticlassAssessment,
    segments: SegmentTable | None,
    errors: dict[str, ConfidenceInterval],
) -> list[str]:
    """Reasons why passing the gate would mean nothing."""
    doubts = [
        doubt for name, interval in errors.items() if (doubt := _word_wide_interval(limits, whole, name, interval))
    ]
    if not doubts and whole.kind == "too few rows":
        doubts.append("too few rows to detect errors" if whole.n_groups is None else "too few groups to detect errors")
    if not doubts and whole.kind == "unclear" and limits.max_error is None:
        size = (
            f"the error is at least {lower_limit(whole.error.low)}"
            if whole.error.low > 0.0
            else "the slope differs from 1"
        )
        cure = "a limit of the error (max_error=, --max-error) decides by its size"
        doubts.append(f"miscalibration is not significant, but {size}; {cure}")
    if segments is not None and not segments.tested:
        doubts.append(segments.verdict.rstrip("."))
    return doubts


def _word_wide_interval(
    limits: _Limits, whole: Assessment | MulticlassAssessment, name: str, interval: ConfidenceInterval
) -> str:
    """Word why an interval of the error does not allow a pass; empty if it does."""
    allowed = whole.notable_error if limits.max_error is None else limits.max_error
    if math.isnan(interval.high):
        return f"{name} has no interval: {interval.why.rstrip('.')}"
    if interval.high <= allowed:
        return ""
    unasked = "" if limits.max_error is not None else " to pass if no limit is given"
    if interval.low > 0.0:
        ends = f"between {lower_limit(interval.low)} and {upper_limit(interval.high)}"
        limit = f"must be at most {allowed:.2g}{unasked}" if unasked else f"the limit is {allowed:g}"
        return f"{name} is {ends} ({percent(interval.confidence_level)}), and {limit}"
    limit = f"and must be at most {allowed:.2g}{unasked}" if unasked else f"above the limit of {allowed:g}"
    return f"{name} may be as large as {upper_limit(interval.high)}, {limit}"
