"""The part of a report on a recalibration: its words, its scores before and after, and its curve."""

from typing import NamedTuple

from truthcal.core.checks import invalid
from truthcal.recalibration.recalibration import Recalibration
from truthcal.reports.figures import Figure, Figures
from truthcal.results.assessment import Assessment
from truthcal.results.comparison_table import ComparisonTable


class RecalibrationPart(NamedTuple):
    """The decision in words, a table of scores, and the curve; only words if nothing changes."""

    words: list[str]
    header: list[str]
    rows: list[list[str]]
    figure: Figure | None


def models_of(fix: Recalibration) -> tuple[dict[str, Assessment], ComparisonTable | None]:
    """Return the assessments before and after, and their comparison; only that before if nothing changes."""
    if fix.assessment is None or fix.before is None or fix.after is None:
        problem = "is a recalibration that was read from a file, which does not contain the assessments."
        raise invalid("y_true", f"{problem} Pass the one that `recalibrate` returned.")
    if not fix.changes:
        return {"": fix.assessment}, None
    scores = fix.comparison.scores
    table = ComparisonTable((scores,), (scores.pvalue,), (scores.brier_pvalue,))
    return {"before": fix.before, "after": fix.after}, table


def build_recalibration(fix: Recalibration, figures: Figures) -> RecalibrationPart:
    """Build the part of the page."""
    words, comparison = fix.verdict.splitlines(), fix.comparison
    if not fix.changes:
        return RecalibrationPart(words, [], [], None)
    rows = [row.cells(3) for row in comparison.printed_rows()]
    return RecalibrationPart(
        [*words, *comparison.notes()], comparison.scores.header(), rows, figures.recalibration(fix)
    )
