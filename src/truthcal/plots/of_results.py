"""The Display of each kind of result: `result.plot()` looks it up here."""

from collections.abc import Callable
from typing import Any

from truthcal.core.checks import invalid
from truthcal.measures.reliability import consistency_band_of, density_of, reliability_curve_of
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

_SEED = 0


def display_of(result: Any) -> Display:
    """Return the Display of a result that has a method `plot`, not yet drawn."""
    return _DISPLAYS[type(result)](result)


def _of_assessment(found: Assessment) -> ReliabilityDisplay:
    summary = found._summary
    if summary is None:
        problem = "has no rows or sketch to draw a curve from, because truthcal.assess did not return it"
        raise invalid(
            "assessment", f"{problem} (it may be a copy). Call truthcal.assess again.", subject="the assessment"
        )
    return ReliabilityDisplay(
        reliability_curve_of(summary), consistency_band_of(summary, rng=_SEED), density_of(summary)
    )


def _of_curve(curve: ReliabilityCurve) -> Display:
    return ReliabilityDisplay(curve) if curve.strategy == "isotonic" else BinnedReliabilityDisplay(curve)


_DISPLAYS: dict[type, Callable[[Any], Display]] = {
    Assessment: _of_assessment,
    MulticlassAssessment: lambda found: SegmentsDisplay(found.classes),
    Gate: lambda gate: display_of(gate.assessment),
    SegmentTable: SegmentsDisplay,
    TimeAssessment: OverTimeDisplay,
    ReliabilityCurve: _of_curve,
    BiasCurve: BiasCurveDisplay,
    ScaleProfile: ScaleProfileDisplay,
    SmoothWitness: SmoothWitnessDisplay,
    Validity: ValidityDisplay,
}
