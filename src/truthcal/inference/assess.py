"""The verdict: can these probabilities be trusted, what is wrong with them, and what error could have been detected?"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from truthcal.core.checks import invalid
from truthcal.core.class_rows import has_classes
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_sums import GroupSums
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_level, check_rng, check_whole, shown
from truthcal.core.points import Points, excess
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import refuse_labels, summarize
from truthcal.inference.calibration_test import calibration_test_of
from truthcal.inference.direction import is_reversed, is_separated, kind_of_error
from truthcal.inference.error_size import error_size_of
from truthcal.inference.intervals import interval_of
from truthcal.inference.laws.sign_flips import SignFlips
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.inference.multiclass.assess import assess_classes, many_labels, two_classes
from truthcal.inference.multiclass.entry import (
    ClassInput,
    EventRows,
    MultilabelInput,
    refuse_certain_classes,
    refuse_class_options,
    refuse_event_options,
)
from truthcal.inference.over_time import assess_over_time
from truthcal.inference.planning import LEAST_INFORMATION, detectable_of
from truthcal.inference.segments import assess_segments
from truthcal.inference.statistic import Plan
from truthcal.inference.worst_stretch import worst_stretch_of
from truthcal.measures.atb import atb_summary_of
from truthcal.measures.decomposition import brier_decomposition_of
from truthcal.results.assessment import Assessment
from truthcal.results.dependence import few_groups
from truthcal.results.measures import AtbSummary, ScoreDecomposition
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.tests import CalibrationTest
from truthcal.results.text import count, frequencies, percent, plural, ratio_of_means, rows_in_groups, upper_limit

_POWER = 0.8
# "Unusually close" has innocent causes more often than a calibration error has, so it requires a p-value five times
# smaller.
_STRICTER = 5.0
# Means up to this are those of rare events, for which a verdict gives the ratio of predicted to observed events.
_RARE = 0.05
# Warn if weights are associated with outcomes by more standard errors than this, in cells of at least so many rows, at
# most so many cells: many, since weights and errors may both depend on the prediction. For weights that do not depend
# on the outcome, it was at most 3.8 in 7,200 simulated samples of rows and sketches.
_WEIGHTS_DIFFER, _CELL_ROWS, _MOST_CELLS = 5.0, 20, 4096
# Warn if there are fewer distinct predictions than this and many rows.
_COARSE = 20


@named_columns
def assess(
    y_true: object,
    y_proba: object = None,
    *,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
    hard: bool = False,
    groups: object = None,
    labels: object = None,
    multilabel: bool = False,
    by: object = None,
    time: object = None,
    window: object = "auto",
) -> Assessment | MulticlassAssessment:
    """Can these probabilities be trusted? Returns a verdict in words and the evidence.

    Parameters
    ----------
    y_true, y_proba, n_resamples, sample_weight, pos_label, hard, groups, labels
        As for `calibration_test`. With `groups` (which rows belong together), the test, all intervals, the noise floor
        and the detectable error are those of groups of rows. With a data frame as first argument, names of its columns
        follow: ``assess(frame, "y", "p", groups="patient", by="region")``.
    alpha : float, default 0.05
        Predictions are called miscalibrated if the p-value of `calibration_test` is at most alpha, and unusually
        close to the outcomes if the p-value of the other tail is at most alpha / 5.
    confidence_level : float, default 0.95
        Confidence level of the intervals.
    rng : int, numpy Generator or None, default 0
        As for `calibration_test`; with the default the same rows always get the same verdict.
    multilabel : bool, default False
        Columns of `y_proba` are independent events: any number of them may happen in a row. `y_true` then has the
        shape of `y_proba`.
    by : array-like, or list or mapping of them, optional
        Columns that define segments, such as the region: ``.segments`` then assesses each segment, as
        `assess_segments` does. With a data frame, a name or a list of names.
    time, window : array-like and str or int, optional
        Time of each row, and how it is divided: ``.over_time`` then says whether calibration changes, as
        `assess_over_time` does. Not possible with `groups`.

    Returns
    -------
    Assessment, or MulticlassAssessment if `y_proba` has a column for each class
        Print it, or call ``.to_dict()`` for JSON. Its docstring lists the fields.

    Notes
    -----
    The test uses `information_atb`, which detects errors of every width. The size of the error is that of `error_size`.
    The verdict "too high" or "overconfident" (too extreme) follows from the bias and the slope of a logistic
    recalibration. More than 2^15 rows are first reduced to a sketch of 16,384 buckets, unless these are too coarse.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000)
    >>> outcome = rng.random(2000) < truth
    >>> print(tc.assess(outcome, truth).verdict)
    Calibrated as far as 2,000 rows can tell.
    The error is at most 0.0369 (95% confidence).
    Detectable with 80% power: a shift of 0.029 or more and log-odds slopes below 0.83 or above 1.21.
    """
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    plan = Plan("auto", "greater", n_resamples, check_rng(rng), read_both=True)
    rows = EventRows(y_true, y_proba, sample_weight, pos_label, groups)
    if not has_classes(y_proba):
        refuse_class_options(labels, multilabel)
        _refuse_parts(rows, by, time, window)
        one = replace(_assess_event(rows, plan, alpha, level, hard), event=None if pos_label == 1 else pos_label)
        return _with_parts(one, rows, by, time, window)
    refuse_event_options(by=by, time=time)
    if multilabel:
        return _assess_multilabel(rows, labels, plan, alpha, level, hard)
    classes = ClassInput.of(y_true, y_proba, labels=labels, **rows.options())
    refuse_certain_classes(classes.rows, hard)
    if not classes.is_binary:
        return assess_classes(classes.rows, plan, alpha, level, classes.groups)
    one = _assess_event(classes.second_class(), plan, alpha, level, hard=True)
    return two_classes(classes.rows, one, alpha, level, classes.groups)


def _assess_event(rows: EventRows, plan: Plan, alpha: float, level: float, hard: bool) -> Assessment:
    """Assess predictions of one event, or a sketch of them."""
    summary = summarize(rows.y_true, rows.y_proba, binary=True, sketch_many=True, **rows.options())
    refuse_labels(summary.points(), hard)
    return _assess_summary(summary, calibration_test_of(summary, "information_atb", plan), alpha, level)


def _refuse_parts(rows: EventRows, by: object, time: object, window: object) -> None:
    """Reject the assessment of segments or windows where it is not possible, before anything is computed."""
    if time is None and window != "auto":
        raise invalid("window", f"divides `time`, which is not given; got {shown(window)}. Pass time=, or omit it.")
    for name, value in (("by", by), ("time", time)):
        if value is not None and isinstance(rows.y_true, Sketch):
            raise invalid(name, "cannot be combined with a Sketch, whose rows are summarized; omit it.", TypeError)
    if time is not None and rows.groups is not None:
        problem = "cannot be combined with `groups`: the test for change needs independent rows"
        raise invalid("time", f"{problem}. Omit one of them, or use `Monitor`, which accepts groups.")


def _with_parts(found: Assessment, rows: EventRows, by: object, time: object, window: object) -> Assessment:
    """Add the assessments of segments and of windows of time, if there are any, at the same levels."""
    levels: dict[str, Any] = {"alpha": found.detectable.alpha, "confidence_level": found.error.confidence_level}
    segments = over_time = None
    if by is not None:
        segments = assess_segments(rows.y_true, rows.y_proba, by, **rows.options(), **levels)
    if time is not None:
        options = {"sample_weight": rows.sample_weight, "pos_label": rows.pos_label, "window": window}
        over_time = assess_over_time(rows.y_true, rows.y_proba, time, **options, **levels)
    return found if segments is None and over_time is None else replace(found, segments=segments, over_time=over_time)


def _assess_multilabel(
    rows: EventRows, labels: object, plan: Plan, alpha: float, level: float, hard: bool
) -> MulticlassAssessment:
    """Assess independent columns: all entries together, those of a row belonging together, and each column alone."""
    if rows.pos_label is not None:
        raise invalid("pos_label", "cannot be combined with multilabel=True: `y_true` holds 0 and 1.")
    options = {"sample_weight": rows.sample_weight, "groups": rows.groups, "labels": labels}
    matrix = MultilabelInput.of(rows.y_true, rows.y_proba, **options)
    one = _assess_event(matrix.entries(), plan, alpha / 2.0, level, hard)  # the other half is for the columns
    return many_labels(matrix, one, alpha, level)


@one_blas_thread()
def _assess_summary(summary: Sample | Sketch, test: CalibrationTest, alpha: float, level: float) -> Assessment:
    points, sums, s = summary.points(), summary.group_sums, _atb_of_groups(summary, atb_summary_of(summary))
    error, bias = error_size_of(points, level, sums=sums), interval_of(summary, "bias", level, "auto")
    detectable = detectable_of(points, _POWER, alpha, test.measure, sums)
    worst = worst_stretch_of(points, level, sums)
    undetectable = math.isnan(detectable.largest) and test.information > 0.0
    not_rejected = "too few rows" if undetectable else "unclear" if error.low > 0.0 else "calibrated"
    found = Assessment(
        kind=_verdict_kind(points, test, alpha, not_rejected, sums),
        verdict="",
        atb=s.value,
        noise_floor=s.noise_floor,
        excess=s.excess,
        brier=s.brier,
        error=error,
        bias_interval=bias,
        test=test,
        pvalue_too_good=test.less,
        detectable=detectable,
        worst=worst,
        decomposition=_assess_brier(summary, points, s.brier),
        mean_proba=points.mean_proba,
        mean_true=points.mean_true,
        n=s.n,
        n_effective=s.n_effective if sums is None else sums.effective_rows,
        n_groups=test.n_groups,
        n_effective_groups=test.n_effective_groups,
        warnings=(),
        _summary=summary,
    )
    verdict = _verdict_text(found, alpha, _word_suspicion(found, points))
    return replace(found, verdict=verdict, warnings=tuple(_assessment_warnings(found, points)))


def _atb_of_groups(summary: Sample | Sketch, s: AtbSummary) -> AtbSummary:
    """ATB with the noise floor and the excess of grouped rows, if the assessed rows belong together."""
    sums = summary.group_sums
    if sums is None:
        return s
    flips = SignFlips.of(sums, TentKernel.of("atb", summary.points()))
    own = flips.mean / sums.fewer_events_factor
    return replace(s, noise_floor=flips.mean, excess=excess(s.value, own, sums.one_group))


def _assess_brier(summary: Sample | Sketch, points: Points, brier: float) -> ScoreDecomposition:
    if not summary.sketched:
        return brier_decomposition_of(summary)
    # Each bucket is one row: variation within buckets is in both the score and the uncertainty.
    coarse = brier_decomposition_of(Sample(points.p, points.wy / points.weight, points.weight))
    uncertainty = points.mean_true * (1.0 - points.mean_true)
    miscalibration = max(brier - uncertainty + coarse.discrimination, 0.0)
    return ScoreDecomposition(coarse.name, brier, miscalibration, coarse.discrimination, uncertainty)


# --- the kind of error ------------------------------------------------------------------------------------------------


def _verdict_kind(
    points: Points, test: CalibrationTest, alpha: float, not_rejected: str, sums: GroupSums | None
) -> str:
    if test.greater <= alpha:
        return kind_of_error(points, 1.0 if sums is None else _design_effect(sums))
    if test.impossible:  # the p-value does not account for impossible outcomes
        return "miscalibrated"
    return "too good" if test.less <= alpha / _STRICTER else not_rejected


def _design_effect(sums: GroupSums) -> float:
    """Design effect for the direction of an assessed error: the larger one of those of a shift and of a slope."""
    cells = sums.cells
    log_odds = special.logit(np.clip(cells.p, 1e-6, 1.0 - 1e-6))
    return max(sums.design_effect, sums.design_effect_of(log_odds - float(np.average(log_odds, weights=cells.weight))))


def _weights_against_events(points: Points) -> float:
    """Evidence for a warning: standard errors by which events have smaller weights than similar predictions.

    It compares w and c = p - y within cells of neighbouring predictions, by the sum of w (w - m) c, where m is
    sum w^2 / sum w. A calibration error that is the same for all weights in a cell leaves its mean at 0.
    """
    # Cells of equal numbers of rows: those of `merged` depend on the outcomes, and would separate events from the rest.
    at_most = min(max(points.rows // _CELL_ROWS, 1), _MOST_CELLS)
    cell = (np.cumsum(points.n) - points.n) * at_most // points.rows
    cells = points.runs(np.flatnonzero(np.diff(cell, prepend=-1)))
    mean = cells.ww / cells.weight
    spread = np.maximum(cells.row_ww * cells.ww - 2.0 * mean * cells.www + mean**2 * cells.ww, 0.0)
    variance = float(np.sum(np.maximum(cells.wwv, cells.wwcc) / cells.ww * spread))
    return float(np.sum(cells.wwc - mean * cells.bias)) / math.sqrt(variance) if variance > 0.0 else 0.0


# --- in words ---------------------------------------------------------------------------------------------------------


_CAUSES = (
    "Possible causes: they were fitted on these outcomes; outcomes exclude each other, such as both teams of a match\n"
    "or one-vs-rest columns; or the sample was stratified, or weighted, by the outcome."
)
# Tests of independent rows take weights as fixed; those of groups use the observed spread of the weighted errors.
_FIXED_WEIGHTS = (
    "If weights depend on the outcome (class weights, or weights for a sample of the non-events), tests and intervals "
    "are wrong; see docs/guide/rare-events.md. Weights for censoring are valid with a group for each row; see "
    "docs/cookbook/survival.md."
)
_WEIGHTED = "Results are about the weighted rows, as is right for censoring; leave out class weights."
REVERSED = "Predictions and outcomes are negatively correlated: are these probabilities of the opposite event?"
SEPARATED = "All events have larger predictions than all other rows: were these rows used to train the model?"
_WRONG = {
    "too high": "Too high: predictions exceed the observed frequencies",
    "too low": "Too low: predictions are below the observed frequencies",
    "overconfident": "Overconfident: predictions are too extreme",
    "underconfident": "Underconfident: predictions are not extreme enough",
    "miscalibrated": "Miscalibrated: predictions are off, in no clear direction",
}


def _word_suspicion(found: Assessment, points: Points) -> str:
    """Word a likely mistake behind an error that the verdict should name first; empty if there is none."""
    if is_reversed(points, found.n_effective):
        return REVERSED
    return SEPARATED if found.kind in _WRONG and is_separated(points) else ""


def _verdict_text(found: Assessment, alpha: float, suspicion: str) -> str:
    kind, test, rows = found.kind, found.test, rows_in_groups(found.n, found.n_groups)
    if kind == "miscalibrated" and test.impossible and test.greater > alpha:
        return (
            f"Miscalibrated: {test.impossible:,} of {rows} had an outcome with a predicted probability of exactly 0.\n"
            "This cannot happen to a calibrated forecaster. "
            f"Otherwise, miscalibration is not significant ({test.format_p(test.greater)})."
        )
    if kind in _WRONG:
        return _join_lines(
            f"{_WRONG[kind]}.", suspicion, _word_error(found), _word_ratio(found), _word_worst_place(found)
        )
    if kind == "too good":
        return f"Unusually close: predictions are closer to the outcomes than chance allows.\n{_CAUSES}"
    if kind == "too few rows" and found.n_groups is not None and found.noise_floor == 0.0:
        return f"Nothing to test: the errors of each group cancel by construction ({rows})."
    if kind == "too few rows":
        return f"Too few rows: {_word_shortage(found)}."
    if test.information == 0.0:
        return f"Always right: all predictions are 0 or 1, and none is wrong ({rows})."
    detectable = f"Detectable with 80% power: {found.detectable.shapes_in(found.unit)}."
    if kind == "unclear":
        return f"Unclear: miscalibration is not significant, but {_word_error(found, 'the')}\n{detectable}"
    little = "" if found.detectable.largest <= found.notable_error else ", which is not much"
    return _join_lines(f"Calibrated as far as {rows} can tell{little}.", _word_error(found), detectable)


def _word_shortage(found: Assessment) -> str:
    """Word the reason for a verdict why no error is detectable."""
    rows = rows_in_groups(found.n, found.n_groups)
    if found.n_groups is not None:
        size = f"an effective sample size of {found.n_effective:,.1f}"
        return f"{rows} have {size}, which is too small to detect errors"
    if _has_uneven_weights(found):
        few = f"a few of {rows} have nearly all of the weight" if math.isnan(found.error.low) else "weights are uneven"
        return f"{few}; the effective sample size is {found.n_effective:,.1f}"
    little = f"{plural(found.n, 'carries', 'carry')} too little information to detect errors"
    return f"{rows} {little} (sum p(1 - p) is {found.test.information:.2g})"


def _has_uneven_weights(found: Assessment) -> bool:
    """Whether a verdict rests on an effective sample size of less than half of the rows, because of weights."""
    return found.n_groups is None and 2.0 * found.n_effective < found.n


def _join_lines(*lines: str) -> str:
    """Join the lines of a verdict that are not empty."""
    return "\n".join(filter(None, lines))


def _word_error(found: Assessment, the: str = "The") -> str:
    """Word the size of the error for a verdict: an upper limit if it may be 0; nothing without an interval."""
    error, unit, level = found.error, found.unit, percent(found.error.confidence_level)
    if math.isnan(error.low):
        return ""
    if error.low == 0.0:
        return f"{the} error is at most {upper_limit(unit.rows * error.high)}{unit.per} ({level} confidence)."
    return f"{the} error is about {error.size(2, unit)}{unit.per} ({level}: {error.ends(unit=unit)})."


def _word_ratio(found: Assessment) -> str:
    """Word the bias of rare events (or non-events) as a ratio; nothing for common ones or an uncertain direction."""
    means, bias = (found.mean_proba, found.mean_true), found.bias_interval
    level = percent(bias.confidence_level)
    if not (bias.low > 0.0 or bias.high < 0.0):
        return ""
    if 0.0 < min(means) <= _RARE:
        ratio, limits = ratio_of_means(*means, bias.low, bias.high)
        start = f"It predicts {ratio} times as many events as happen"
    elif 1.0 - _RARE <= max(means) < 1.0:
        means = 1.0 - means[0], 1.0 - means[1]
        ratio, limits = ratio_of_means(*means, -bias.high, -bias.low)
        start = f"It predicts {ratio} times as many non-events as there are"
    else:
        return ""
    return f"{start} ({level}: {limits}): {' instead of '.join(frequencies(*means, unit=found.unit))}."


def _word_worst_place(found: Assessment) -> str:
    """Word the worst range for a verdict, in the unit of the error if events are rare; nothing without one."""
    worst, unit = found.worst, found.rare_unit
    return f"Worst place: {worst.text(unit)};\n{worst.frequencies(unit)}." if worst else ""


def _assessment_warnings(found: Assessment, points: Points) -> list[str]:
    warnings, test, n = [], found.test, found.n
    # Standard errors are larger if rows belong together.
    larger = 1.0 if found.n_groups is None else math.sqrt(1.0 / points.one_row / found.n_effective)
    suspicion = _word_suspicion(found, points)
    if suspicion:
        warnings.append(f"{suspicion[:1].lower()}{suspicion[1:]}")
    against = _weights_against_events(points) / larger
    if abs(against) > _WEIGHTS_DIFFER:
        events = f"events have {'smaller' if against > 0.0 else 'larger'} weights than other rows"
        warnings.append(f"{events} with similar predictions. {_FIXED_WEIGHTS if found.n_groups is None else _WEIGHTED}")
    if points.mean_true in (0.0, 1.0):
        warnings.append(f"all outcomes are {points.mean_true:.0f}; there are no rows of the other class.")
    if test.impossible:
        wrong = f"{count(test.impossible, 'prediction')} of exactly 0 or 1 {plural(test.impossible, 'was', 'were')}"
        warnings.append(f"{wrong} wrong; this cannot happen to a calibrated forecaster, whatever the p-value.")
    distinct = not (points.high > points.low).any()  # else different predictions share a bucket of a sketch
    if distinct and len(points) < min(_COARSE, n / 10) and test.information > 0.0:
        values = f"{len(points)} different values" if len(points) > 1 else "one value"
        warnings.append(f"predictions take only {values}: were they rounded or binned?")
    if found.kind != "too few rows":  # whose verdict says this
        if _has_uneven_weights(found):
            warnings.append(f"weights are uneven: the effective sample size is {found.n_effective:,.1f}, not {n:,}.")
        if 0.0 < test.information < LEAST_INFORMATION and n > 1:
            warnings.append(f"the predictions carry little information: sum p(1 - p) is {test.information:.2g}.")
    return [*warnings, *filter(None, [test.dependence, few_groups(found.n_effective_groups)])]
