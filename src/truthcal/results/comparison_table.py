"""The result of `compare_models`: all pairs of several models, with p-values adjusted for their number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from truthcal.results.base import PageResult, columns
from truthcal.results.comparison import Comparison
from truthcal.results.dependence import few_groups
from truthcal.results.text import Page, Table, join_words, number, p_number, rows_in_groups


@dataclass(frozen=True, slots=True)
class PairFinding:
    """Which of the two models of a pair has the better scores, by adjusted p-values: a name, or None. Of one pair."""

    by_measure: str | None
    by_brier: str | None

    def words(self, label: str) -> str:
        """Return the finding in a few words: "old (both)", "old (Brier score)", or "not significant"."""
        if self.by_measure is None and self.by_brier is None:
            return "not significant"
        if self.by_measure == self.by_brier:
            return f"{self.by_brier} (both)"
        parts = [(self.by_measure, label), (self.by_brier, "Brier score")]
        return ", ".join(f"{name} ({score})" for name, score in parts if name is not None)


@dataclass(frozen=True, slots=True)
class ComparisonTable(PageResult):
    """All pairs of several models of the same events. Returned by `compare_models`. Print it.

    Attributes
    ----------
    comparisons : tuple of Comparison
        One for each pair, in the order of the models, with their names.
    adjusted, brier_adjusted : tuple of float
        P-values of the differences of the measure and of the Brier score, adjusted for the number of pairs (Holm).
    """

    comparisons: tuple[Comparison, ...]
    adjusted: tuple[float, ...]
    brier_adjusted: tuple[float, ...]
    _derived: ClassVar = ("verdict",)

    def __len__(self) -> int:
        return len(self.comparisons)

    @property
    def names(self) -> tuple[str, ...]:
        """The models."""
        return tuple(dict.fromkeys(name for found in self.comparisons for name in found.names))

    def findings(self) -> list[PairFinding]:
        """Return which model of each pair has the better scores, as far as adjusted p-values show it."""
        pairs = zip(self.comparisons, self.adjusted, self.brier_adjusted, strict=True)
        return [
            PairFinding(_lower_name(found, p, found.difference), _lower_name(found, brier_p, found.brier_difference))
            for found, p, brier_p in pairs
        ]

    @property
    def verdict(self) -> str:
        """Which model has the best Brier score, and which the best score of calibration: a line for each."""
        if len(self) == 1:
            return self.comparisons[0].verdict
        first, findings = self.comparisons[0], self.findings()
        rows = rows_in_groups(first.n, first.n_groups)
        values, briers = self._scores()
        by_brier = self._best("Brier score", briers, [finding.by_brier for finding in findings])
        by_measure = self._best(first.label, values, [finding.by_measure for finding in findings])
        return f"{by_brier} ({len(values):,} models, {rows}).\n{by_measure}."

    def _scores(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the measure and the Brier score of each model."""
        values = {name: value for found in self.comparisons for name, value in _named(found, "a", "b")}
        briers = {name: value for found in self.comparisons for name, value in _named(found, "brier_a", "brier_b")}
        return values, briers

    def _best(self, label: str, values: Mapping[str, float], better: list[str | None]) -> str:
        best = min(values, key=lambda name: values[name])
        pairs = zip(self.comparisons, better, strict=True)
        level = [
            next(name for name in found.names if name != best)
            for found, winner in pairs
            if best in found.names and winner != best
        ]
        if not level:
            return f"{best} has the best {label}"
        if len(level) == len(values) - 1 and not any(better):
            return f"No significant difference in {label} between any two models"
        others = f"{len(level):,} others" if len(level) > 3 else join_words(level)
        return f"{best} has the lowest {label}, but not significantly lower than {others}"

    def table(self) -> dict[str, list[Any]]:
        """Return columns of equal length, with a row for each pair."""
        pairs = zip(self.comparisons, self.adjusted, self.brier_adjusted, self.findings(), strict=True)
        fields = "difference", "low", "high", "pvalue"
        return columns(
            {
                "model_a": found.names[0],
                "model_b": found.names[1],
                **{name: getattr(found, name) for name in fields},
                "adjusted": p,
                "better": finding.by_measure,
                **{f"brier_{name}": getattr(found, f"brier_{name}") for name in fields},
                "brier_adjusted": brier_p,
                "brier_better": finding.by_brier,
            }
            for found, p, brier_p, finding in pairs
        )

    def notes(self) -> list[str]:
        """Return how to read the numbers, one sentence per line."""
        calibration, *others = self.comparisons[0].notes()[:2]
        if len(self) == 1:
            return [calibration, *others]
        values, briers = self._scores()
        scores = "; ".join(f"{name} {number(value)} and {number(briers[name])}" for name, value in values.items())
        adjusted = "P-values are adjusted for the number of pairs (Holm)."
        return [calibration, *others, adjusted, f"{self.comparisons[0].label} and Brier score: {scores}."]

    def warnings(self) -> list[str]:
        """Return reasons for caution, each once."""
        first = self.comparisons[0]
        lines = [line for found in self.comparisons for line in found._row_order_warnings()]
        return [*list(dict.fromkeys(lines))[:1], *filter(None, [few_groups(first.n_effective_groups)])]

    def _page(self) -> Page:
        label, p_name = self.comparisons[0].label, "adjusted p" if len(self) > 1 else "p"
        header = ["a", "b", f"{label}: a - b", p_name, "Brier: a - b", p_name, "better"]
        pairs = zip(self.comparisons, self.adjusted, self.brier_adjusted, self.findings(), strict=True)
        rows = [
            [
                *found.names,
                number(found.difference, sign="+"),
                p_number(p),
                number(found.brier_difference, sign="+"),
                p_number(brier_p),
                finding.words(label),
            ]
            for found, p, brier_p, finding in pairs
        ]
        return Page(self.verdict, Table(header, rows, right=[2, 3, 4, 5], indent=2), self.notes(), self.warnings())


def _named(found: Comparison, *fields: str) -> list[tuple[str, float]]:
    """Return both models of a comparison with their values."""
    return [(name, getattr(found, field)) for name, field in zip(found.names, fields, strict=True)]


def _lower_name(found: Comparison, p: float, difference: float) -> str | None:
    """Return the model of a comparison with the lower score, if the p-value shows it."""
    if not p <= 1.0 - found.confidence_level or difference == 0.0:
        return None
    return found.names[0] if difference < 0.0 else found.names[1]
