"""The audit: does a measure reward dishonest reports?"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.expected_score import AuditedMeasure, MeasureLike, SortedReport, resolve_measure
from truthcal.audits.outcomes import MAX_ENUMERATED, AllOutcomes, OutcomeSet, RandomOutcomes
from truthcal.audits.strategies import SEARCH_STEPS, SEARCHED, STRATEGIES, search_report
from truthcal.core.checks import as_columns, check_proba, invalid, read_only
from truthcal.core.params import check_choice, check_rng, check_whole, shown
from truthcal.core.progress import progress
from truthcal.results.audit import COLUMNS, Audit, AuditRow

_Array = NDArray[np.float64]
Measures = Mapping[str, MeasureLike] | Iterable[str]
Strategies = Mapping[str, str | Callable[[_Array], Any]] | Iterable[str]

DEFAULT_MEASURES = (
    *("atb", "multiscale_atb", "quantile_ece"),
    *("smcal", "distcal", "smece", "laplace_kernel_ce", "ks_ce", "ece", "unbinned_ece"),
)
# Events enumerated by default for slow measures (more would take minutes), and in a search of a few dozen reports.
_MAX_FOR_SLOW, _MAX_TO_SEARCH = 8, 6
# Draws for a search: fewer than for the audit, since it compares reports on the same ones, but at least this many.
_MIN_TO_SEARCH = 25
# Draws, and expected number of the rarer outcomes in them, needed for a reliable standard error (a Poisson count of 100
# is below 70 once in 250 times).
_MIN_DRAWS, _MIN_EXPECTED = 20, 100
# Differences below this are rounding.
_ROUNDING = 1e-12


def audit(
    truth: object,
    measures: Measures | None = None,
    *,
    strategies: Strategies | None = None,
    n_resamples: int = 200,
    rng: Any = 0,
) -> Audit:
    """Does lying pay? Expected scores of the honest report and of several lies, under each measure.

    Parameters
    ----------
    truth : array-like of shape (n,)
        True probabilities of n independent events, known to the forecaster.
    measures : iterable of str, or dict, optional
        Names in `MEASURES`; or a dict from names of your choice to such a name, a `Binning`, or a function
        ``f(y_true, y_proba) -> float`` (lower is better). By default ten common ones.
    strategies : iterable of str, or dict, optional
        The lies: "constant mean", "shrink" (halfway to the mean), "sharpen" (log-odds times 1.5),
        "round to 0.1", "merge neighbours" (pairs at their mean) and "searched" (the best lie that a search finds); or a
        dict from names of your choice to such a name or to a function of the truth that returns a report. By default
        all six.
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
    other draws than the scores. Its result is a lower bound of the possible gain.

    Examples
    --------
    >>> from truthcal import audit
    >>> result = audit([0.25, 0.75], ["atb", "smcal"])
    >>> print(result["atb"])
    atb: truthful: lying never pays (proved).
    >>> print(result["smcal"])
    smcal: lying pays; the lie "constant mean" scores 20% better.
    """
    return _run_audit(check_proba(truth, "truth").astype(np.float64), measures, strategies, n_resamples, rng, "")


def audit_on(
    y_proba: object,
    measures: Measures | None = None,
    *,
    strategies: Strategies | None = None,
    n_resamples: int = 200,
    rng: Any = 0,
    max_rows: int = 500,
) -> Audit:
    """Would lying pay if your predictions were the true probabilities?

    Parameters
    ----------
    y_proba : array-like of shape (n,)
        Predictions, used as the truth.
    measures, strategies, n_resamples, rng
        As for `audit`.
    max_rows : int, default 500
        Largest number of predictions used. If there are more, the ones used are evenly spaced in sorted order.

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
    truth, source = check_proba(y_proba, "y_proba").astype(np.float64), "your predictions"
    n, max_rows = len(truth), check_whole(max_rows, "max_rows", 1)
    if n > max_rows:
        index = ((np.arange(max_rows) + 0.5) * (n / max_rows)).astype(np.int64)
        truth, source = np.sort(truth)[index], f"{max_rows:,} of your {n:,} predictions, evenly spaced"
    return _run_audit(truth, measures, strategies, n_resamples, rng, source)


def _run_audit(
    truth: _Array, measures: Measures | None, strategies: Strategies | None, n_resamples: int, rng: Any, source: str
) -> Audit:
    truth = read_only(truth + 0.0)  # a copy, without -0.0
    table = _check_audit_table(DEFAULT_MEASURES if measures is None else measures, "measures", "['atb', 'smcal']")
    audited = [resolve_measure(measure, "measures", name) for name, measure in table.items()]
    lies = _reports_to_audit(truth, strategies)
    n_resamples = check_whole(n_resamples, "n_resamples", _MIN_DRAWS)
    max_for_slow = _MAX_FOR_SLOW if measures is None else MAX_ENUMERATED
    run = _AuditRun(truth, lies, n_resamples, check_rng(rng), max_for_slow)
    with progress(sum(run.work(measure) for measure in audited), "audit") as bar:
        rows = tuple(run.row(measure, bar) for measure in audited)
    return Audit(rows=rows, truth=truth, lies=tuple(lies), n_resamples=n_resamples, source=source)


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


class _Scored(NamedTuple):
    """A report with its expected score, and its score in each random outcome (empty if exact)."""

    report: _Array
    value: float
    draws: _Array


class _AuditRun:
    """An audit of one truth: its lies, and the outcomes on which reports are compared."""

    def __init__(
        self, truth: _Array, lies: dict[str, _Array | None], n_resamples: int, rng: np.random.Generator, slow_limit: int
    ) -> None:
        self.truth, self.lies, self._max_for_slow = truth, lies, slow_limit
        self.random_outcomes = RandomOutcomes(truth, n_resamples, rng)
        self.to_search = RandomOutcomes(truth, max(n_resamples // 8, _MIN_TO_SEARCH), rng)
        self.all_outcomes = AllOutcomes(truth) if len(truth) <= MAX_ENUMERATED else None

    def outcomes(self, measure: AuditedMeasure) -> OutcomeSet:
        """All outcomes if that is fast enough, otherwise random ones."""
        if self.all_outcomes is None or (measure.slow and len(self.truth) > self._max_for_slow):
            return self.random_outcomes
        return self.all_outcomes

    def search_outcomes(self, measure: AuditedMeasure) -> OutcomeSet:
        """The outcomes for a search: fewer, and not the random ones used for scoring."""
        outcomes = self.outcomes(measure)
        return outcomes if outcomes.exact and len(self.truth) <= _MAX_TO_SEARCH else self.to_search

    def work(self, measure: AuditedMeasure) -> int:
        """Estimate the cost of a row, for the progress bar."""
        if self._method(measure) == "decomposition":
            return 0
        tried = SEARCH_STEPS * sum(lie is None for lie in self.lies.values())
        count = self.outcomes(measure).count * (1 + len(self.lies)) + self.search_outcomes(measure).count * tried
        return measure.cost(len(self.truth)) * count

    def row(self, measure: AuditedMeasure, bar: progress) -> AuditRow:
        """Score the truth and every lie."""
        honest = self._score(measure, self.truth, bar)
        scored = {name: self._score(measure, lie, bar) for name, lie in self.lies.items() if lie is not None}
        if len(scored) < len(self.lies):
            best_lie = self._search(measure, honest, scored, bar)
            scored = {name: scored.get(name, best_lie) for name in self.lies}
        best = min(scored, key=lambda name: scored[name].value)
        report = scored[best].report
        gain = honest.value - scored[best].value
        error = self.random_outcomes.error(honest.draws - scored[best].draws) if len(honest.draws) else 0.0
        gains = not measure.truthful and gain > max(3.0 * error, self._margin(measure))
        enough = len(honest.draws) == 0 or self._enough(report)
        return AuditRow(
            measure=measure.name,
            honest=honest.value,
            scores={name: lie.value for name, lie in scored.items()},
            best_lie=best,
            best_report=report,
            gain=gain,
            standard_error=error,
            relative_gain=self._relative_gain(measure, honest, scored[best]),
            truthful=measure.truthful,
            pays=gains and enough,
            undecided=gains and not enough,
            method=self._method(measure),
        )

    def _relative_gain(self, measure: AuditedMeasure, honest: _Scored, lie: _Scored) -> float:
        """Gain as a share of the honest score; nan if that is 0 up to its error, or if the scores differ in sign."""
        gain, draws = honest.value - lie.value, honest.draws
        if gain == 0.0:
            return 0.0
        rounding = _ROUNDING * max(abs(honest.value), abs(lie.value))
        error = max(rounding, measure.tolerance, 3.0 * self.random_outcomes.error(draws) if len(draws) else 0.0)
        return gain / abs(honest.value) if abs(honest.value) > error and honest.value * lie.value >= 0.0 else math.nan

    def _enough(self, report: _Array) -> bool:
        """Return whether both outcomes of the events that a lie changes are frequent enough for a standard error."""
        changed = self.truth[report != self.truth]
        return self.random_outcomes.count * float(np.sum(np.minimum(changed, 1.0 - changed))) >= _MIN_EXPECTED

    def _method(self, measure: AuditedMeasure) -> str:
        if measure.expected(SortedReport(self.truth, self.truth)) is not None:
            return "decomposition"
        return "enumeration" if self.outcomes(measure).exact else "draws"

    def _margin(self, measure: AuditedMeasure) -> float:
        """Differences up to this size are ignored."""
        return max(2.0 * measure.tolerance, _ROUNDING)

    def _score(self, measure: AuditedMeasure, report: _Array, bar: progress, *, search: bool = False) -> _Scored:
        reported = SortedReport(report, self.truth)
        value = measure.expected(reported)
        if value is not None:
            return _Scored(report, value, np.empty(0))
        outcomes = self.search_outcomes(measure) if search else self.outcomes(measure)
        values = measure.scores(reported, outcomes, bar)
        return _Scored(report, outcomes.mean(values), np.empty(0) if outcomes.exact else values)

    def _search(self, measure: AuditedMeasure, honest: _Scored, known: dict[str, _Scored], bar: progress) -> _Scored:
        """Search for the best lie; the truth if it is the best."""

        def score(lie: _Array) -> float:
            return self._score(measure, lie, bar, search=True).value

        reports = [lie.report for lie in known.values()]
        report = search_report(self.truth, reports, score, self._margin(measure), thorough=not measure.slow)
        result = self._score(measure, report, bar)
        if len(result.draws):
            return result
        # Exact scores can be compared again: a search on random outcomes may have missed the best.
        return min([honest, *known.values(), result], key=lambda scored: scored.value)


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
