"""The audit of many classes: does a definition of the multiclass ATB reward dishonest reports?

All expected scores are exact. Vector, classwise and canonical ATB are sums over pairs of rows with a kernel that is 1
for equal predictions, so that the expected score of a report is its score with the truth in place of the outcomes, plus
the noise of the outcomes. Top-label ATB is the binary ATB of one event for each row.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.class_rows import check_class_proba
from truthcal.core.params import check_choice, shown
from truthcal.measures.multiclass import DEFINITIONS, uncertainty
from truthcal.results.audit import Audit, AuditRow

_Array = NDArray[np.float64]

# Rows up to which all reports are searched.
_FEW_ROWS = 4
_STEPS = tuple(0.5**k for k in range(2, 8))
_SEARCHED = "searched"
# Gains below this are rounding.
_ROUNDING = 1e-12
# The canonical definition compares all pairs of rows.
_MOST_ROWS = 2_000


def audit_classes(
    truth: object, measures: object, strategies: object, *, name: str = "truth", source: str = ""
) -> Audit:
    """Audit definitions of the multiclass ATB, for the true probabilities of the classes of each row."""
    known = check_class_proba(truth, name)
    if len(known) > _MOST_ROWS:
        raise invalid(name, f"has {len(known):,} rows; an audit of many classes takes at most {_MOST_ROWS:,}.")
    known = known / known.sum(axis=1, keepdims=True)
    chosen = _names(measures, tuple(DEFINITIONS), "measures")
    lies = _names(strategies, (*STRATEGIES, _SEARCHED), "strategies")
    rows = tuple(_audit_row(definition, known, lies) for definition in chosen)
    return Audit(rows=rows, truth=known, lies=lies, n_resamples=0, source=source)


def _names(given: object, known: tuple[str, ...], parameter: str) -> tuple[str, ...]:
    if given is None:
        return known
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, Mapping) or not isinstance(names, list | tuple) or not names:
        problem = f"must be a list of names for an audit of many classes: {', '.join(map(repr, known))}"
        raise invalid(parameter, f"{problem}; got {shown(given)}.", TypeError)
    return tuple(check_choice(name, parameter, known, " for many classes") for name in names)


def _audit_row(definition: str, truth: _Array, lies: tuple[str, ...]) -> AuditRow:
    def score(report: _Array) -> float:
        return expected_class_score(definition, report, truth)

    honest = score(truth)
    reports = {name: STRATEGIES[name](truth) for name in lies if name != _SEARCHED}
    if _SEARCHED in lies:
        found = _search(truth, list(reports.values()), score)
        reports = {name: reports.get(name, found) for name in lies}
    scores = {name: score(report) for name, report in reports.items()}
    best = min(scores, key=lambda name: scores[name])
    gain, truthful = honest - scores[best], DEFINITIONS[definition].truthful
    return AuditRow(
        measure=definition,
        honest=honest,
        scores=scores,
        best_lie=best,
        best_report=reports[best],
        gain=gain,
        standard_error=0.0,
        relative_gain=gain / honest if honest > _ROUNDING else float("nan"),
        higher_is_better=False,
        truthful=truthful,
        pays=not truthful and gain > _ROUNDING,
        undecided=False,
        method="decomposition",
    )


# --- expected scores --------------------------------------------------------------------------------------------------


def expected_class_score(definition: str, report: _Array, truth: _Array) -> float:
    """Expected score of a report under a definition of the multiclass ATB, if the classes follow the truth."""
    n, k = len(truth), len(truth[0])
    c = report - truth
    if definition == "top_label":
        place = np.arange(n), np.argmax(report, axis=1)
        return _binary(report[place], truth[place])
    if definition == "classwise":
        return float(np.mean([_binary(report[:, j], truth[:, j]) for j in range(k)]))
    noise = float(np.sum(uncertainty(truth))) / n**2
    if definition == "vector":
        similar = np.minimum(report[:, None, :], report[None, :, :]).sum(axis=2)
    else:
        similar = np.prod(1.0 - np.abs(report[:, None, :] - report[None, :, :]), axis=2)
    return float(np.sum((c @ c.T) * similar)) / n**2 + noise


def _binary(report: _Array, truth: _Array) -> float:
    """Expected ATB of a report on one event of each row."""
    c = report - truth
    similar = 1.0 - np.abs(report[:, None] - report[None, :])
    pairs, noise = float(np.sum(np.outer(c, c) * similar)), float(np.sum(truth * (1.0 - truth)))
    return (pairs + noise) / float(len(truth) ** 2)


# --- lies -------------------------------------------------------------------------------------------------------------


def _constant_mean(truth: _Array) -> _Array:
    return np.tile(truth.mean(axis=0), (len(truth), 1))


def _shrink(truth: _Array) -> _Array:
    return np.asarray((truth + truth.mean(axis=0)) / 2.0)


def _sharpen(truth: _Array) -> _Array:
    power = truth**1.5
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def _one_class(truth: _Array) -> _Array:
    """Report the most frequent class as the most probable one in all rows, with its mean, and the rest as it is."""
    top = int(np.argmax(truth.mean(axis=0)))
    report = np.empty_like(truth)
    mean = max(float(truth[:, top].mean()), 1.0 / truth.shape[1])
    others = np.delete(np.arange(truth.shape[1]), top)
    report[:, others] = (1.0 - mean) / len(others)
    report[:, top] = mean
    return report


STRATEGIES: dict[str, Callable[[_Array], _Array]] = {
    "constant mean": _constant_mean,
    "shrink": _shrink,
    "sharpen": _sharpen,
    "one class": _one_class,
}


def _search(truth: _Array, known: list[_Array], score: Callable[[_Array], float]) -> _Array:
    """The best report found: among those known and, for few rows, by moving probability between two classes."""
    start = sorted([truth, *known], key=score)
    best = start[0]
    if len(truth) > _FEW_ROWS:
        return best
    for report in start[:3]:
        here = score(report)
        for step in _STEPS:
            moved = True
            while moved:
                nearby = min(_nearby(report, step), key=score)
                moved = score(nearby) < here - _ROUNDING
                report, here = (nearby, score(nearby)) if moved else (report, here)
        best = min(best, report, key=score)
    return best


def _nearby(report: _Array, step: float) -> Iterator[_Array]:
    """Reports in which one row, or all rows, move probability from one class to another."""
    n, k = report.shape
    for rows in (*([i] for i in range(n)), list(range(n))):
        for a in range(k):
            for b in range(k):
                if a != b:
                    moved = report.copy()
                    part = np.minimum(step, moved[rows, a])
                    moved[rows, a] -= part
                    moved[rows, b] += part
                    yield moved
