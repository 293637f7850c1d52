"""The Display of each kind of result: `plot` of a result looks it up here."""

from collections.abc import Callable
from typing import Any

from truthcal.core.checks import invalid
from truthcal.plots.bias_curve import BiasCurveDisplay
from truthcal.plots.binned_reliability import BinnedReliabilityDisplay
from truthcal.plots.display import Display
from truthcal.plots.over_time import OverTimeDisplay
from truthcal.plots.reliability import ReliabilityDisplay
from truthcal.plots.scale_profile import ScaleProfileDisplay
from truthcal.plots.segments import SegmentsDisplay
from truthcal.plots.smooth_witness import SmoothWitnessDisplay
from truthcal.plots.validity import ValidityDisplay
from truthcal.results.assessment import Assessment
from truthcal.results.curves import BiasCurve, ReliabilityCurve, ScaleProfile
from truthcal.results.gate import Gate
from truthcal.results.measures import SmoothWitness
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.over_time import TimeAssessment
from truthcal.results.power import Validity
from truthcal.results.segments import SegmentTable


def plot_result(result: Any, ax: Any, options: dict[str, Any]) -> Any:
    """Plot a result that has a method `plot`, with the Display of its kind."""
    if isinstance(result, Gate):
        return plot_result(result.assessment, ax, options)
    if isinstance(result, Assessment):
        return _plot_assessment(result, ax, options)
    return _DISPLAYS[type(result)](result).plot(ax, **options)


def _plot_assessment(found: Assessment, ax: Any, options: dict[str, Any]) -> Display:
    if found._summary is None:
        problem = "has no rows or sketch to draw a curve from, because truthcal.assess did not return it"
        subject = "the assessment"
        raise invalid("assessment", f"{problem} (it may be a copy). Call truthcal.assess again.", subject=subject)
    return ReliabilityDisplay.from_predictions(found._summary, ax=ax, **options)


def _display_of_curve(curve: ReliabilityCurve) -> Display:
    return ReliabilityDisplay(curve) if curve.strategy == "isotonic" else BinnedReliabilityDisplay(curve)


_DISPLAYS: dict[type, Callable[[Any], Any]] = {
    MulticlassAssessment: lambda found: SegmentsDisplay(found.classes),
    SegmentTable: SegmentsDisplay,
    TimeAssessment: OverTimeDisplay,
    ReliabilityCurve: _display_of_curve,
    BiasCurve: BiasCurveDisplay,
    ScaleProfile: ScaleProfileDisplay,
    SmoothWitness: SmoothWitnessDisplay,
    Validity: ValidityDisplay,
}
