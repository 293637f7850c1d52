"""The expected score of a report, under any measure, when outcomes follow known probabilities."""

import math
from typing import Any

import numpy as np

from truthcal.audits.audited_measure import AuditedMeasure, MeasureLike, SortedReport, resolve_measure
from truthcal.audits.outcomes import MAX_ENUMERATED, AllOutcomes, OutcomeSet, RandomOutcomes
from truthcal.audits.stages import ExAnteStage
from truthcal.core.checks import Checked, check_report, invalid, read_only, refuse_wide_weight
from truthcal.core.params import check_rng, check_whole
from truthcal.core.progress import progress
from truthcal.measures.ubse import Binning
from truthcal.results.audit import ExpectedScore


def expected_score(
    report: object,
    truth: object,
    measure: MeasureLike = "atb",
    *,
    n_rows: int | None = None,
    sample_weight: object = None,
    n_resamples: int = 1000,
    rng: Any = 0,
) -> ExpectedScore:
    """Expected score of a report, under any measure, when outcomes follow `truth`.

    Parameters
    ----------
    report : array-like of shape (n,)
        Reported probabilities.
    truth : array-like of shape (n,)
        True probabilities of the outcomes, which are independent.
    measure : str, Binning or callable, default "atb"
        A name in `MEASURES`, or of a number derived from ATB, as for `audit`; a `Binning`, for its UBSE; or a function
        ``f(y_true, y_proba) -> float`` of an array of 0/1 outcomes and the report, both read-only and in the order
        given here.
    n_rows : int, optional
        If given, the report and the truth belong to a population of n kinds of events. The score is that of a sample of
        `n_rows` events, drawn at random with replacement (the stage "ex_ante" of `audit`).
    sample_weight : array-like of shape (n,), optional
        As for `atb`; rows of weight 0 are left out. A row of any weight has one outcome. Not for a function. With
        `n_rows`, the relative frequencies of the kinds, which are equally frequent by default.
    n_resamples : int, default 1000
        Number of random outcomes if there is no exact result.
    rng : int, numpy Generator or None, default 0
        Source of randomness. With the default the same input always gives the same value; None draws a new seed.

    Returns
    -------
    ExpectedScore
        ``value``, ``standard_error`` (0 if exact) and ``method``: "enumeration" of all outcomes up to 14 rows (listed
        in ``outcomes``, ``probabilities`` and ``values``), "decomposition" for a UBSE of more rows and for a `Binning`,
        otherwise "draws". With `n_rows`: "decomposition" for ATB, `shifted_grid_ubse` and the Brier score,
        "enumeration" of all samples if there are few, otherwise "draws".

    Notes
    -----
    The decomposition is that of `expected_ubse`. It does not hold for quantile bins with weights, which are repetitions
    there. If events are so rare that few draws have any, the standard error is too small: raise `n_resamples`.

    With `n_rows` = T, the expected ATB is ``(B + (T - 1) A) / T``, where B and A are the Brier score and the ATB of the
    population. A is 0 for calibrated reports, so their expected ATB is B / T (Hartline, Hu, Wu 2025, Lemma B.1).

    Examples
    --------
    >>> from truthcal import expected_score
    >>> truth = [0.25, 0.75]
    >>> print(expected_score(truth, truth, "smcal"))
    expected smcal 0.234375 (exact: mean over all 4 outcomes)
    >>> print(expected_score([0.5, 0.5], truth, "smcal"))
    expected smcal 0.1875 (exact: mean over all 4 outcomes)
    >>> print(expected_score(truth, truth, "atb", n_rows=10), float(expected_score(truth, truth, "brier")))
    expected atb of 10 rows 0.01875 (exact) 0.1875
    """
    chosen = resolve_measure(measure, "measure")
    if chosen.user_defined and sample_weight is not None and n_rows is None:
        problem = "cannot be given with a function as `measure`, which is called as f(y_true, y_proba)"
        raise invalid("sample_weight", f"{problem}; use the weights inside that function.")
    rows = check_report(report, truth, sample_weight)
    n_resamples, generator = check_whole(n_resamples, "n_resamples", 2), check_rng(rng)
    if rows.w is not None:
        refuse_wide_weight(rows.w)
    if n_rows is not None:
        return _expected_of_samples(chosen, rows, check_whole(n_rows, "n_rows", 1), n_resamples, generator)
    reported = SortedReport(rows.p.astype(np.float64), rows.y, rows.w)
    few = len(rows.p) <= MAX_ENUMERATED
    if not few or isinstance(measure, Binning):
        value = chosen.expected(reported)
        if value is not None:
            return ExpectedScore(chosen.name, value, 0.0, "decomposition")
    outcomes: OutcomeSet = AllOutcomes(rows.y) if few else RandomOutcomes(rows.y, n_resamples, generator)
    with progress(outcomes.count * chosen.cost(len(rows.p)), f"expected {chosen.name}") as bar:
        values = chosen.scores(reported, outcomes, bar)
    value, error = outcomes.mean(values), outcomes.error(values)
    if not isinstance(outcomes, AllOutcomes):
        return ExpectedScore(chosen.name, value, error, "draws", n_resamples=outcomes.count)
    possible = read_only(outcomes.all.astype(np.uint8))
    probabilities, scores = read_only(outcomes.probabilities), read_only(values)
    return ExpectedScore(chosen.name, value, error, "enumeration", 0, possible, probabilities, scores)


def _expected_of_samples(
    measure: AuditedMeasure, rows: Checked, n_rows: int, n_resamples: int, rng: np.random.Generator
) -> ExpectedScore:
    """Expected score of samples from a population, whose kinds are the rows."""
    stage = ExAnteStage(rows.y, n_rows, n_resamples, rng, rows.w)
    with progress(stage.work(measure, 1, 0), f"expected {measure.name}") as bar:
        scored = stage.score(measure, rows.p.astype(np.float64), bar)
    draws = len(scored.draws)
    error = float(np.std(scored.draws, ddof=1)) / math.sqrt(draws) if draws else 0.0
    return ExpectedScore(measure.name, scored.value, error, stage.method(measure), draws, n_rows=n_rows)
