"""The best response of a forecaster who knows the truth to a measure, in a batch and in sequence."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure, MeasureLike, SortedReport, resolve_measure
from truthcal.audits.batch_response import BatchScores, ReportSearch
from truthcal.audits.gains import MIN_DRAWS, MIN_EXPECTED, margin, relative_gain, standard_error
from truthcal.audits.lookahead import LookaheadPolicy, score_sequences, search_policy
from truthcal.audits.random_half import is_subsampled, with_coins
from truthcal.audits.sequential import OptimalPolicy, count_states, optimal_policy
from truthcal.audits.stages import Scored
from truthcal.core.checks import check_proba, invalid, read_only
from truthcal.core.params import check_choice, check_rng, check_whole
from truthcal.core.progress import progress
from truthcal.results.best_response import BestResponse

_Array = NDArray[np.float64]

SETTINGS = ("batch", "sequential")
# The score that is a sum over rows, each proper on its own, so that the truth is best in sequence as well.
_PROPER = "brier"
# Dynamic programming: most events, and states with the default grids and with the user's own; fewer for slow measures.
# A subsampled measure takes one step for each state and half of the rows.
_MAX_EVENTS, _MAX_STATES, _MAX_STATES_GIVEN, _MAX_SLOW_STATES, _MAX_HALVES = 12, 1 << 17, 1 << 20, 1 << 12, 1 << 25
# Steps of the default grids, most levels on each side of the mean, and events up to which they are used.
_STEPS, _LEVELS, _FEW = (0.25, 0.125, 0.0625, 0.03125), 4, 10
# Random sequences for a search of a policy, as a share of those for scoring.
_SEARCH_SHARE = 5


def best_response(
    truth: object,
    measure: MeasureLike = "atb",
    *,
    setting: str = "batch",
    grid: object = None,
    n_resamples: int = 1000,
    rng: Any = 0,
) -> BestResponse:
    """Lower bound on the gain of a forecaster who knows the truth and reports something else.

    Parameters
    ----------
    truth : array-like of shape (n,)
        True probabilities of n independent events, known to the forecaster; in the sequential setting in their order.
    measure : str, Binning or callable, default "atb"
        As for `expected_score`. In the sequential setting a function must not depend on the order of the rows.
    setting : {"batch", "sequential"}, default "batch"
        "batch": all reports are made before any outcome is known. "sequential": each outcome is revealed before the
        next report, which may depend on it.
    grid : array-like, optional
        Reports allowed in the sequential setting, in addition to the values of `truth`; for up to 12 events and as many
        reports as give a million states at most. By default several grids around the mean.
    n_resamples : int, default 1000
        Number of random outcomes if there is no exact result, at least 20. The search uses other outcomes.
    rng : int, numpy Generator or None, default 0
        Source of randomness. With the default the same input always gives the same result; None draws a new seed.

    Returns
    -------
    BestResponse
        ``honest``, ``best``, ``gain``, ``ratio``; ``report`` in a batch, ``policy`` in sequence for up to 10 events.

    Notes
    -----
    The gain is a lower bound of what is possible: a search or a grid may miss better reports. If no gain is found, this
    proves nothing, except for truthful measures in a batch.

    Batch: the best report known is improved by coordinate descent, event by event (for many events, in blocks of
    neighbours), over a grid and the values of other events, and then by smaller and smaller steps.

    Sequential, up to 10 events with few different probabilities: dynamic programming over how often each report was
    made with each outcome finds the best of all policies on a grid. Otherwise: one-step lookahead policies, which
    cancel the bias of earlier reports, are simulated, and the best of a family of them is scored on new sequences. In
    sequence no measure of calibration here is truthful, and whether one exists that is also complete and sound is an
    open question (Hartline, Hu, Wu 2025, section 1.6). This function shows gains, and answers nothing else.

    Examples
    --------
    >>> from truthcal import best_response
    >>> print(best_response([0.5, 0.5], "atb"))
    atb, 2 events in a batch: the truth scores 0.125 and the best report found 0.125 (exact).
    No report gains (proved).
    >>> result = best_response([0.5, 0.5], "atb", setting="sequential")
    >>> print(result.honest, result.best, result.policy)
    0.125 0.09375 {'': 0.5, '0': 0.25, '1': 0.75}
    """
    known = read_only(check_proba(truth, "truth").astype(np.float64) + 0.0)  # a copy, without -0.0
    chosen = resolve_measure(measure, "measure")
    n_resamples, generator = check_whole(n_resamples, "n_resamples", MIN_DRAWS), check_rng(rng)
    batch = check_choice(setting, "setting", SETTINGS) == "batch"
    grids = [] if batch and grid is None else _check_grids(grid, known, chosen, batch)
    if chosen.truthful if batch else _truthful_in_sequence(chosen):
        return _respond_honestly(known, chosen, setting, n_resamples, generator)
    if batch:
        return _respond_in_batch(known, chosen, n_resamples, generator)
    if grids:
        return _respond_optimally(known, chosen, grids)
    return _respond_by_lookahead(known, chosen, n_resamples, generator)


def _check_grids(grid: object, truth: _Array, measure: AuditedMeasure, batch: bool) -> list[_Array]:
    """Return the grids for dynamic programming: the user's own with the truth, or the default ones."""
    if batch:
        raise invalid("grid", "is only for the setting 'sequential'. Omit it: a batch search covers all reports.")
    if grid is None:
        return list(_default_grids(truth, measure))
    with_truth = np.union1d(check_proba(grid, "grid").astype(np.float64) + 0.0, truth)
    _refuse_too_many_states(truth, with_truth, measure)
    return [with_truth]


def _respond_honestly(
    truth: _Array, measure: AuditedMeasure, setting: str, n_resamples: int, rng: np.random.Generator
) -> BestResponse:
    """Result of a measure under which it is proved that nothing gains."""
    scores = BatchScores(measure, truth, n_resamples, rng)
    with progress(scores.work_of_report, f"best response to {measure.name}") as bar:
        honest = scores.score(truth, bar)
    return _result(measure, setting, truth, honest, honest, method=scores.method, truthful=True, strategy="")


def _respond_in_batch(
    truth: _Array, measure: AuditedMeasure, n_resamples: int, rng: np.random.Generator
) -> BestResponse:
    scores = BatchScores(measure, truth, n_resamples, rng)
    with progress(scores.n_tried * scores.work_of_report, f"best response to {measure.name}") as bar:
        search = ReportSearch(truth, lambda report: scores.search_loss(report, bar), margin(measure), scores.n_tried)
        report = scores.choose(search.run(), bar)
        honest, best = scores.score(truth, bar), scores.score(report, bar)
    changed = truth[best.report != truth]
    rarer = scores.outcomes.count * float(np.sum(np.minimum(changed, 1.0 - changed)))
    return _result(
        measure,
        "batch",
        truth,
        honest,
        best,
        method=scores.method,
        strategy=_describe_report(best.report),
        enough=rarer >= MIN_EXPECTED,
    )


def _respond_optimally(truth: _Array, measure: AuditedMeasure, grids: list[_Array]) -> BestResponse:
    """Dynamic programming on each grid; return the best."""
    found: list[OptimalPolicy] = []
    with progress(len(grids), f"best response to {measure.name}") as bar:
        for grid in grids:
            found.append(optimal_policy(truth, grid, measure))
            bar.advance()
    best = min(found, key=lambda policy: policy.best)
    scored = [Scored(truth, measure.loss(value), np.empty(0)) for value in (best.honest, best.best)]
    return _result(
        measure,
        "sequential",
        truth,
        *scored,
        method="dynamic programming",
        strategy="the next report depends on the outcomes so far",
        grid=read_only(best.grid),
        policy=best.reports,
    )


def _respond_by_lookahead(
    truth: _Array, measure: AuditedMeasure, n_resamples: int, rng: np.random.Generator
) -> BestResponse:
    """Search for a policy on some random sequences, and score it on others."""
    with_halves, chances = with_coins(measure, truth)
    n, n_search = len(truth), max(n_resamples // _SEARCH_SHARE, MIN_DRAWS)
    to_search, to_score = (rng.random((count, len(chances))) < chances for count in (n_search, n_resamples))

    def scores_of(policy: LookaheadPolicy, coins: NDArray[np.bool_]) -> _Array:
        return score_sequences(with_halves, truth, policy.reports(truth, coins[:, :n]), coins)

    policy = search_policy(lambda policy: measure.loss(float(np.mean(scores_of(policy, to_search)))))
    honest, best = _honest_scores(with_halves, truth, to_score), scores_of(policy, to_score)
    return _result(
        measure,
        "sequential",
        truth,
        Scored(truth, float(np.mean(honest)), honest),
        Scored(truth, float(np.mean(best)), best),
        method="simulation",
        strategy=policy.describe(),
        enough=n_resamples * float(np.sum(np.minimum(truth, 1.0 - truth))) >= MIN_EXPECTED,
    )


def _honest_scores(measure: AuditedMeasure, truth: _Array, coins: NDArray[np.bool_]) -> _Array:
    """Scores of the truth, or for each sequence the expected score if it has a closed form."""
    reported = SortedReport(truth, truth)
    expected = measure.expected(reported)
    return measure.values(reported)(coins) if expected is None else np.full(len(coins), expected)


def _result(
    measure: AuditedMeasure,
    setting: str,
    truth: _Array,
    honest: Scored,
    best: Scored,
    *,
    method: str,
    strategy: str,
    truthful: bool = False,
    enough: bool = True,
    grid: _Array | None = None,
    policy: dict[str, float] | None = None,
) -> BestResponse:
    """Result of the best way found; of the truth, if this does not gain."""
    gain = measure.loss(honest.value) - measure.loss(best.value)
    if gain <= margin(measure):
        best, gain, strategy = honest, 0.0, "report the truth"
    error = standard_error(honest.draws - best.draws)
    return BestResponse(
        measure=measure.name,
        setting=setting,
        n_events=len(truth),
        honest=honest.value,
        best=best.value,
        gain=gain,
        standard_error=error,
        relative_gain=relative_gain(gain, honest, best, measure.tolerance),
        higher_is_better=measure.higher_is_better,
        truthful=truthful,
        pays=gain > 3.0 * error and (enough or len(honest.draws) == 0),
        method=method,
        strategy=strategy,
        n_resamples=len(honest.draws),
        report=read_only(best.report.copy()) if setting == "batch" else None,
        grid=grid,
        policy=policy,
    )


def _describe_report(report: _Array) -> str:
    levels = np.unique(report)
    return f"report {levels[0]:.4g} for every event" if len(levels) == 1 else f"a report with {len(levels)} values"


def _truthful_in_sequence(measure: AuditedMeasure) -> bool:
    return measure.name == _PROPER and not measure.user_defined


def _fits(n_events: int, n_reports: int, measure: AuditedMeasure, most: int) -> bool:
    """Return whether dynamic programming takes seconds."""
    states = count_states(n_events, n_reports)
    if is_subsampled(measure):
        return states <= most and states << n_events <= _MAX_HALVES
    return states <= (min(most, _MAX_SLOW_STATES) if measure.slow else most)


def _default_grids(truth: _Array, measure: AuditedMeasure) -> Iterator[_Array]:
    """Yield grids of levels around the mean truth, with as many levels as fit; none if there are too many events."""
    if len(truth) > _FEW:
        return
    for step in _STEPS:
        for levels in range(_LEVELS, 0, -1):
            grid = truth.mean() + step * np.arange(-levels, levels + 1)
            grid = np.union1d(grid[(grid >= 0.0) & (grid <= 1.0)], truth)
            if _fits(len(truth), len(grid), measure, _MAX_STATES):
                yield grid
                break


def _refuse_too_many_states(truth: _Array, grid: _Array, measure: AuditedMeasure) -> None:
    if len(truth) <= _MAX_EVENTS and _fits(len(truth), len(grid), measure, _MAX_STATES_GIVEN):
        return
    states = f"{len(grid)} reports, those of the truth included, for {len(truth)} events"
    raise invalid("grid", f"is too large for dynamic programming: {states}. Use fewer, or omit it.")
