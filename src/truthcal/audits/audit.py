"""The audit: does a measure reward dishonest reports?"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure, MeasureLike, resolve_measure
from truthcal.audits.class_audit import audit_classes
from truthcal.audits.gains import MIN_DRAWS, MIN_EXPECTED, margin, relative_gain, standard_error
from truthcal.audits.outcomes import MAX_ENUMERATED
from truthcal.audits.stages import ExAnteStage, InterimStage, Scored, Stage
from truthcal.audits.strategies import SEARCH_STEPS, SEARCHED, STRATEGIES, search_report
from truthcal.core.checks import as_columns, check_proba, invalid, read_only
from truthcal.core.class_rows import check_class_proba, has_classes
from truthcal.core.params import check_choice, check_rng, check_whole, shown
from truthcal.core.progress import progress
from truthcal.results.audit import COLUMNS, Audit, AuditRow

_Array = NDArray[np.float64]
Measures = Mapping[str, MeasureLike] | Iterable[str]
Strategies = Mapping[str, str | Callable[[_Array], Any]] | Iterable[str]

DEFAULT_MEASURES = (
    *("atb", "multiscale_atb", "information_atb", "quantile_ece"),
    *("smcal", "distcal", "smece", "laplace_kernel_ce", "ks_ce", "ece", "unbinned_ece"),
)
STAGES = ("interim", "ex_ante")
# Events enumerated by default for slow measures; more would take minutes.
_MAX_FOR_SLOW = 8


def audit(
    truth: object,
    measures: Measures | None = None,
    *,
    strategies: Strategies | None = None,
    stage: str = "interim",
    n_rows: int | None = None,
    n_resamples: int = 200,
    rng: Any = 0,
) -> Audit:
    """Does lying pay? Expected scores of the honest report and of several lies, under each measure.

    Parameters
    ----------
    truth : array-like of shape (n,) or (n, k)
        True probabilities of n independent events, or of k classes in n independent rows, known to the forecaster.
    measures : iterable of str, or dict, optional
        Names in `MEASURES`; "brier"; numbers derived from ATB: "sqrt_atb", "atb_ratio" (to its noise floor), "excess",
        "sqrt_excess", "error_size", "pvalue" (of `calibration_test`) and "pass_rate" (how often p > 0.05), the last two
        higher for a better forecast; or a dict from names of your choice to such a name, a `Binning`, or a function
        ``f(y_true, y_proba) -> float`` (lower is better). By default ten common measures. For k classes: names in
        `DEFINITIONS`, by default all.
    strategies : iterable of str, or dict, optional
        The lies: "constant mean", "shrink" (halfway to the mean), "sharpen" (log-odds times 1.5),
        "round to 0.1", "merge neighbours" (pairs at their mean) and "searched" (the best lie that a search finds); or a
        dict from names of your choice to such a name or to a function of the truth that returns a report. By default
        all six. For k classes: "constant mean", "shrink", "sharpen", "one class" (the most frequent class is always the
        most probable one) and "searched".
    stage : {"interim", "ex_ante"}, default "interim"
        "interim": the forecaster knows the events, and only their outcomes are random. "ex_ante": `truth` is a
        population of equally frequent kinds of events, and a report gives one prediction for each kind; then `n_rows`
        events are drawn at random from it, with replacement, and their outcomes.
    n_rows : int, optional
        Number of events in a sample, only for the stage "ex_ante"; by default as many as there are kinds.
    n_resamples : int, default 200
        Number of random outcomes if there is no exact result, at least 20. All reports are scored on the same ones.
    rng : int, numpy Generator or None, default 0
        Source of randomness. With the default the same input always gives the same audit; None draws a new seed.

    Returns
    -------
    Audit
        Prints as a table with a verdict for each measure; ``audit(...)["smcal"]`` is a row, and ``frame()`` is a data
        frame.

    Notes
    -----
    Scores are exact for the truthful measures, by the decomposition of `expected_ubse`, and for the others up to 14
    events, by enumeration ("distcal" and "smece", which take milliseconds per outcome, up to 8 events unless named in
    `measures`). Otherwise scores are means over random outcomes, and a gain counts if it exceeds three standard errors
    (undecided if the events that the lie changes are too rare for the number of draws). The search covers all reports
    for up to four events, and a family (averages of neighbours, shrunk, sharpened and rounded truths) for more, on
    other draws than the scores, so "searched" may score worse than another lie. The best lie of all gives a lower
    bound of the possible gain.

    Interim truthfulness implies ex ante truthfulness. In the ex ante stage every UBSE is even strictly truthful, and
    calibrated predictors are ranked by their Brier score: ATB has the mean Brier score / `n_rows` (Hartline, Hu, Wu
    2025, Theorem 3.5 and Lemma B.1). There, scores are exact for few samples and for measures with one tent kernel.

    Examples
    --------
    >>> from truthcal import audit
    >>> result = audit([0.25, 0.75], ["atb", "smcal"])
    >>> print(result["atb"])
    atb: truthful: lying never pays (proved).
    >>> print(result["smcal"])
    smcal: lying pays; the lie "constant mean" scores 20% better.
    >>> print(audit([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], ["vector", "top_label"])["top_label"].pays)
    True
    """
    if has_classes(truth):
        _refuse_stage_of_classes(stage, n_rows)
        return audit_classes(truth, measures, strategies)
    known = check_proba(truth, "truth").astype(np.float64)
    rows = _sample_size(stage, n_rows, len(known))
    return _run_audit(known, measures, strategies, n_resamples, rng, n_rows=rows)


def _sample_size(stage: str, n_rows: int | None, kinds: int) -> int | None:
    """Check the stage of an audit; return the number of events in a sample, None in the interim stage."""
    if check_choice(stage, "stage", STAGES) == "ex_ante":
        return kinds if n_rows is None else check_whole(n_rows, "n_rows", 1)
    if n_rows is not None:
        raise invalid("n_rows", f"is the size of a sample in the stage 'ex_ante'; got {shown(n_rows)}. Omit it.")
    return None


def _refuse_stage_of_classes(stage: str, n_rows: int | None) -> None:
    if _sample_size(stage, n_rows, 1) is not None:
        raise invalid("stage", 'must be "interim" for many classes: the rows of an audit are known.')


def audit_on(
    y_proba: object,
    measures: Measures | None = None,
    *,
    strategies: Strategies | None = None,
    stage: str = "interim",
    n_rows: int | None = None,
    n_resamples: int = 200,
    rng: Any = 0,
    max_rows: int = 500,
) -> Audit:
    """Would lying pay if your predictions were the true probabilities?

    Parameters
    ----------
    y_proba : array-like of shape (n,) or (n, k)
        Predictions, used as the truth.
    measures, strategies, stage, n_rows, n_resamples, rng
        As for `audit`.
    max_rows : int, default 500
        Largest number of predictions used. If there are more, the ones used are evenly spaced in sorted order (rows
        with k classes: in their own order).

    Returns
    -------
    Audit
        As for `audit`.

    Examples
    --------
    >>> import numpy as np
    >>> from truthcal import audit_on
    >>> predictions = np.random.default_rng(0).beta(2, 5, 10_000)
    >>> print(audit_on(predictions, ["ece"])["ece"].best_lie)
    constant mean
    """
    classes, max_rows = has_classes(y_proba), check_whole(max_rows, "max_rows", 1)
    truth, source = (check_class_proba if classes else check_proba)(y_proba, "y_proba"), "your predictions"
    truth, n = truth.astype(np.float64), len(truth)
    if n > max_rows:
        index = ((np.arange(max_rows) + 0.5) * (n / max_rows)).astype(np.int64)
        truth = (truth if classes else np.sort(truth))[index]
        source = f"{max_rows:,} of your {n:,} predictions, evenly spaced"
    if classes:
        _refuse_stage_of_classes(stage, n_rows)
        return audit_classes(truth, measures, strategies, name="y_proba", source=source)
    rows = _sample_size(stage, n_rows, len(truth))
    return _run_audit(truth, measures, strategies, n_resamples, rng, source=source, n_rows=rows)


def _run_audit(
    truth: _Array,
    measures: Measures | None,
    strategies: Strategies | None,
    n_resamples: int,
    rng: Any,
    *,
    source: str = "",
    n_rows: int | None = None,
) -> Audit:
    """Run an audit: of the events themselves, or, if `n_rows` is given, of samples of that size."""
    truth = read_only(truth + 0.0)  # a copy, without -0.0
    table = _check_audit_table(DEFAULT_MEASURES if measures is None else measures, "measures", "['atb', 'smcal']")
    audited = [resolve_measure(measure, "measures", name) for name, measure in table.items()]
    lies = _reports_to_audit(truth, strategies)
    n_resamples = check_whole(n_resamples, "n_resamples", MIN_DRAWS)
    generator, max_for_slow = check_rng(rng), _MAX_FOR_SLOW if measures is None else MAX_ENUMERATED
    stage: Stage = InterimStage(truth, n_resamples, generator, max_for_slow)
    if n_rows is not None:
        stage = ExAnteStage(truth, n_rows, n_resamples, generator)
    run = _AuditRun(truth, lies, stage)
    with progress(sum(run.work(measure) for measure in audited), "audit") as bar:
        rows = tuple(run.row(measure, bar) for measure in audited)
    return Audit(rows=rows, truth=truth, lies=tuple(lies), n_resamples=n_resamples, source=source, n_rows=n_rows)


def _reports_to_audit(truth: _Array, strategies: Strategies | None) -> dict[str, _Array | None]:
    """Lies to audit: name -> report; None for a lie to search for."""
    known = (*STRATEGIES, SEARCHED)
    table = _check_audit_table(known if strategies is None else strategies, "strategies", "['shrink', 'searched']")
    reports: dict[str, _Array | None] = {}
    for name, strategy in table.items():
        if name in COLUMNS:
            raise invalid("strategies", f"must not name a lie {name!r}: an audit has a column of that name. Rename it.")
        if not callable(strategy):
            check_choice(strategy, "strategies", known)
        if isinstance(strategy, str):
            reports[name] = STRATEGIES[strategy](truth) if strategy in STRATEGIES else None
        else:
            argument = f"strategies[{name!r}](truth)"
            column, _ = as_columns(**{argument: strategy(truth), "truth": truth})
            reports[name] = check_proba(column, argument).astype(np.float64)
    return reports


class _AuditRun:
    """An audit of one truth: its lies, and the stage in which reports are scored."""

    def __init__(self, truth: _Array, lies: dict[str, _Array | None], stage: Stage) -> None:
        self.truth, self.lies, self.stage = truth, lies, stage

    def work(self, measure: AuditedMeasure) -> int:
        """Estimate the cost of a row, for the progress bar."""
        tried = SEARCH_STEPS * sum(lie is None for lie in self.lies.values())
        return self.stage.work(measure, 1 + len(self.lies), tried)

    def row(self, measure: AuditedMeasure, bar: progress) -> AuditRow:
        """Score the truth and every lie."""
        honest = self.stage.score(measure, self.truth, bar)
        scored = {name: self.stage.score(measure, lie, bar) for name, lie in self.lies.items() if lie is not None}
        if len(scored) < len(self.lies):
            best_lie = self._search(measure, honest, scored, bar)
            scored = {name: scored.get(name, best_lie) for name in self.lies}
        best = min(scored, key=lambda name: measure.loss(scored[name].value))
        lie = scored[best]
        gain = measure.loss(honest.value) - measure.loss(lie.value)
        error = standard_error(honest.draws - lie.draws)
        truthful = self.stage.truthful(measure)
        gains = not truthful and gain > max(3.0 * error, margin(measure))
        enough = len(honest.draws) == 0 or self._enough(lie.report)
        return AuditRow(
            measure=measure.name,
            honest=honest.value,
            scores={name: lie.value for name, lie in scored.items()},
            best_lie=best,
            best_report=lie.report,
            gain=gain,
            standard_error=error,
            relative_gain=relative_gain(gain, honest, lie, measure.tolerance),
            higher_is_better=measure.higher_is_better,
            truthful=truthful,
            pays=gains and enough,
            undecided=gains and not enough,
            method=self.stage.method(measure),
        )

    def _enough(self, report: _Array) -> bool:
        """Return whether both outcomes of the events that a lie changes are frequent enough for a standard error."""
        return self.stage.rarer_outcomes(self.truth[report != self.truth]) >= MIN_EXPECTED

    def _search(self, measure: AuditedMeasure, honest: Scored, known: dict[str, Scored], bar: progress) -> Scored:
        """Search for the best lie; the truth if it is the best."""

        def loss(lie: _Array) -> float:
            return measure.loss(self.stage.score(measure, lie, bar, search=True).value)

        reports = [lie.report for lie in known.values()]
        thorough = self.stage.thorough_search and not measure.slow
        report = search_report(self.truth, reports, loss, margin(measure), thorough=thorough)
        result = self.stage.score(measure, report, bar)
        if len(result.draws):
            return result
        # Exact scores can be compared again: a search on random outcomes may have missed the best.
        return min([honest, *known.values(), result], key=lambda scored: measure.loss(scored.value))


def _check_audit_table(given: Any, name: str, example: str) -> dict[str, Any]:
    """Convert measures or strategies of an audit, a list of names or a dict, to a dict with at least one entry."""
    rule = f"must be a list of names or a dict, such as {example}"
    if isinstance(given, str):
        given = [given]
    try:
        pairs = list(given.items()) if isinstance(given, Mapping) else [(entry, entry) for entry in given]
    except TypeError:
        raise invalid(name, f"{rule}; got {shown(given)}.", TypeError) from None
    if not pairs:
        raise invalid(name, f"is empty; at least one is needed, for example {example}.")
    for entry, _ in pairs:
        if not isinstance(entry, str):
            raise invalid(name, f"{rule}; got {shown(entry)} as a name.", TypeError)
    return dict(pairs)
