"""The audit: who is judged by this measure, does it pay them to lie?"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.cases import MOST_ENUMERATED, Cases, Drawn, Everything
from truthcal.audits.expected_score import Criterion, MeasureLike, Reported, criterion
from truthcal.audits.lies import LIES, SEARCHED, TRIED, searched
from truthcal.core.checks import as_columns, check_proba
from truthcal.core.params import check_choice, check_rng, check_table, check_whole, refuse_reserved
from truthcal.core.progress import progress
from truthcal.results.audit import COLUMNS, Audit, AuditRow

_Array = NDArray[np.float64]
Strategies = Mapping[str, str | Callable[[_Array], Any]] | Iterable[str]

USUAL = (
    *("atb", "multiscale_atb", "quantile_ece"),
    *("smcal", "distcal", "smece", "laplace_kernel_ce", "ks_ce", "ece", "binned_ece"),
)
# Enumerating more for a measure that takes milliseconds an outcome makes people wait for minutes: only if they name it.
_MOST_FOR_SLOW = 8
# A search tries a few dozen reports, so it draws outcomes where there are more than 64 of them.
_MOST_TO_SEARCH = 6
# It makes do with fewer draws than the audit, since it compares reports on the same ones, but not with fewer than this.
_FEWEST_TO_SEARCH = 25
# A standard error knows nothing of what was not drawn. From about so many of the rarer outcomes on, three of them are
# exceeded by chance as rarely as they should be (a Poisson count of 100 falls 3 of its roots short once in 250 times).
_FEWEST_SEEN = 100
# Fewer draws would make a poor standard error.
_FEWEST_DRAWS = 20
# Differences below this are rounding.
_ROUNDING = 1e-12


def audit(
    truth: object,
    measures: Mapping[str, MeasureLike] | Iterable[str] | None = None,
    *,
    strategies: Strategies | None = None,
    n_resamples: int = 200,
    rng: Any = 0,
) -> Audit:
    """Does lying pay? What the honest report and several lies score on average, under each measure.

    Parameters
    ----------
    truth : array-like of shape (n,)
        True probabilities of n independent events, which the forecaster knows.
    measures : iterable of str, or dict, optional
        Names in `MEASURES`; or a dict from names of your choice to such a name, a `Binning`, or a function
        ``f(y_true, y_proba) -> float`` (lower is better). By default the usual ones.
    strategies : iterable of str, or dict, optional
        Which lies: names among "constant mean", "shrink" (half way to the mean), "sharpen" (log-odds times 1.5),
        "round to 0.1", "merge neighbours" (pairs at their mean) and "searched" (the best lie that a search finds); or a
        dict from names of your choice to such a name or to a function of the truth that returns a report. By default
        all six.
    n_resamples : int, default 200
        Number of random outcomes where nothing exact is known, at least 20. All reports are scored on the same ones.
    rng : int, numpy Generator or None, default 0
        Source of randomness; with the default the same input always gives the same audit. None draws a new seed.

    Returns
    -------
    Audit
        Prints as a table with a verdict for each measure; ``audit(...)["smcal"]`` is a row, and ``frame()`` is a data
        frame.

    Notes
    -----
    Scores are exact for the truthful measures, by the decomposition of `expected_ubse`; and for the others up to 14
    events, by enumeration. ("distcal" and "smece" take milliseconds an outcome. If `measures` is left out they are
    enumerated up to 8 events; name them to wait for more.) Otherwise scores are means over random outcomes, and a gain
    counts if it exceeds three of its standard errors (and if the events that the lie changes are
    not too rare for so few draws; else the verdict is that nothing can be said).

    The search goes over all reports for up to four events, and over a family (averages of neighbours, shrunk,
    sharpened and rounded truths) for more. A lie is searched for on other draws than it is scored on. What it finds is
    a lower bound of what lying can gain.

    Examples
    --------
    >>> from truthcal import audit
    >>> result = audit([0.25, 0.75], ["atb", "smcal"])
    >>> print(result["atb"])
    atb: truthful: no lie can gain (proved).
    >>> print(result["smcal"])
    smcal: lying pays: constant mean scores 20% better.
    """
    chances = check_proba(truth, "truth").astype(np.float64)
    return _audit(chances, measures, strategies, n_resamples, rng, "")


def audit_on(
    y_proba: object,
    measures: Mapping[str, MeasureLike] | Iterable[str] | None = None,
    *,
    strategies: Strategies | None = None,
    n_resamples: int = 200,
    rng: Any = 0,
    max_rows: int = 500,
) -> Audit:
    """Would lying pay for a forecaster whose true chances are your predictions?

    Parameters
    ----------
    y_proba : array-like of shape (n,)
        Predictions, taken as the truth.
    measures, strategies, n_resamples, rng
        As for `audit`.
    max_rows : int, default 500
        Of more predictions than this, so many are used: those at evenly spaced places in sorted order.

    Returns
    -------
    Audit
        As for `audit`.

    Examples
    --------
    >>> import numpy as np
    >>> from truthcal import audit_on
    >>> predictions = np.random.default_rng(0).beta(2, 5, 10_000)
    >>> print(audit_on(predictions, ["binned_ece"])["binned_ece"].best_lie)
    constant mean
    """
    given = check_proba(y_proba, "y_proba").astype(np.float64)
    most = check_whole(max_rows, "max_rows", 1)
    source = "your predictions"
    chances = given
    if len(given) > most:
        places = ((np.arange(most) + 0.5) * (len(given) / most)).astype(np.int64)
        chances = np.sort(given)[places]
        source = f"{most:,} of your {len(given):,} predictions, evenly spaced"
    return _audit(chances, measures, strategies, n_resamples, rng, source)


def _audit(
    truth: _Array,
    measures: Mapping[str, MeasureLike] | Iterable[str] | None,
    strategies: Strategies | None,
    n_resamples: int,
    rng: Any,
    source: str,
) -> Audit:
    truth = truth + 0.0  # a copy that nobody else can change, and no -0.0
    truth.flags.writeable = False
    table = check_table(USUAL if measures is None else measures, "measures", "['atb', 'smcal']")
    criteria = [criterion(measure, "measures", name) for name, measure in table.items()]
    lies = _lies(truth, strategies)
    n_resamples = check_whole(n_resamples, "n_resamples", _FEWEST_DRAWS)
    patience = _MOST_FOR_SLOW if measures is None else MOST_ENUMERATED
    trial = _Trial(truth, lies, n_resamples, check_rng(rng), patience)
    with progress(sum(trial.work(each) for each in criteria), "audit") as bar:
        rows = tuple(trial.row(each, bar) for each in criteria)
    return Audit(rows=rows, truth=truth, lies=tuple(lies), n_resamples=n_resamples, source=source)


def _lies(truth: _Array, strategies: Strategies | None) -> dict[str, _Array | None]:
    """Name -> report; None for a lie that is searched for."""
    known = (*LIES, SEARCHED)
    table = check_table(known if strategies is None else strategies, "strategies", "['shrink', 'searched']")
    reports: dict[str, _Array | None] = {}
    for name, strategy in table.items():
        refuse_reserved(name, COLUMNS)
        if not callable(strategy):
            check_choice(strategy, "strategies", known)
        if isinstance(strategy, str):
            reports[name] = LIES[strategy](truth) if strategy in LIES else None
        else:
            reports[name] = _checked(truth, strategy(truth), f"strategies[{name!r}](truth)")
    return reports


def _checked(truth: _Array, report: object, name: str) -> _Array:
    """What a user's strategy returned: a report of as many probabilities as there are events."""
    column, _ = as_columns(**{name: report, "truth": truth})
    return check_proba(column, name).astype(np.float64)


class _Scored(NamedTuple):
    """A report with its expected score, and its score in each drawn outcome (empty if exact)."""

    report: _Array
    value: float
    draws: _Array


class _Trial:
    """One truth, its lies, and the outcomes on which reports are compared."""

    def __init__(
        self,
        truth: _Array,
        lies: dict[str, _Array | None],
        n_resamples: int,
        rng: np.random.Generator,
        most_for_slow: int,
    ) -> None:
        self.truth, self.lies, self._most_for_slow = truth, lies, most_for_slow
        self.drawn = Drawn(truth, n_resamples, rng)
        self.to_search = Drawn(truth, max(n_resamples // 8, _FEWEST_TO_SEARCH), rng)
        self.everything = Everything(truth) if len(truth) <= MOST_ENUMERATED else None

    def cases(self, measure: Criterion) -> Cases:
        """All outcomes where that is affordable, else drawn ones."""
        if self.everything is None or (measure.slow and len(self.truth) > self._most_for_slow):
            return self.drawn
        return self.everything

    def cases_to_search(self, measure: Criterion) -> Cases:
        """The same with fewer outcomes, and never those that the lie is then scored on."""
        cases = self.cases(measure)
        return cases if cases.exact and len(self.truth) <= _MOST_TO_SEARCH else self.to_search

    def work(self, measure: Criterion) -> int:
        """Estimated cost of a row, for the progress bar."""
        if self._method(measure) == "decomposition":
            return 0
        tried = TRIED * sum(lie is None for lie in self.lies.values())
        outcomes = self.cases(measure).count * (1 + len(self.lies)) + self.cases_to_search(measure).count * tried
        return measure.cost(len(self.truth)) * outcomes

    def row(self, measure: Criterion, bar: progress) -> AuditRow:
        """Score the truth and every lie."""
        honest = self._score(measure, self.truth, bar)
        scored = {name: self._score(measure, lie, bar) for name, lie in self.lies.items() if lie is not None}
        if len(scored) < len(self.lies):
            found = self._searched(measure, honest, scored, bar)
            scored = {name: scored.get(name, found) for name in self.lies}
        best = min(scored, key=lambda name: scored[name].value)
        report = scored[best].report
        gain = honest.value - scored[best].value
        error = self.drawn.error(honest.draws - scored[best].draws) if len(honest.draws) else 0.0
        gains = not measure.truthful and gain > max(3.0 * error, self._margin(measure))
        enough = len(honest.draws) == 0 or self._enough(report)
        return AuditRow(
            measure=measure.name,
            honest=honest.value,
            scores={name: each.value for name, each in scored.items()},
            best_lie=best,
            best_report=report,
            gain=gain,
            standard_error=error,
            relative_gain=_share(gain, honest.value),
            truthful=measure.truthful,
            pays=gains and enough,
            undecided=gains and not enough,
            method=self._method(measure),
        )

    def _enough(self, report: _Array) -> bool:
        """Whether both outcomes of the events that a lie changes were drawn often enough for its standard error."""
        changed = self.truth[report != self.truth]
        return self.drawn.count * float(np.sum(np.minimum(changed, 1.0 - changed))) >= _FEWEST_SEEN

    def _method(self, measure: Criterion) -> str:
        if measure.expected(Reported(self.truth, self.truth)) is not None:
            return "decomposition"
        return "enumeration" if self.cases(measure).exact else "draws"

    def _margin(self, measure: Criterion) -> float:
        """Differences that mean nothing."""
        return max(2.0 * measure.tolerance, _ROUNDING)

    def _score(self, measure: Criterion, report: _Array, bar: progress, *, search: bool = False) -> _Scored:
        reported = Reported(report, self.truth)
        value = measure.expected(reported)
        if value is not None:
            return _Scored(report, value, np.empty(0))
        cases = self.cases_to_search(measure) if search else self.cases(measure)
        values = measure.scores(reported, cases, bar)
        return _Scored(report, cases.mean(values), np.empty(0) if cases.exact else values)

    def _searched(self, measure: Criterion, honest: _Scored, known: dict[str, _Scored], bar: progress) -> _Scored:
        """The best lie that can be found, or the truth if it is the best."""
        report = searched(
            self.truth,
            [lie.report for lie in known.values()],
            lambda lie: self._score(measure, lie, bar, search=True).value,
            self._margin(measure),
            thorough=not measure.slow,
        )
        found = self._score(measure, report, bar)
        # Scores that are exact may be compared again: where the search drew outcomes, it may have been misled.
        best = min([honest, *known.values(), found], key=lambda each: each.value)
        return found if len(found.draws) else best


def _share(gain: float, honest: float) -> float:
    """Gain as a share of the honest score."""
    if honest == 0.0:
        return 0.0 if gain == 0.0 else math.nan
    return gain / abs(honest)
