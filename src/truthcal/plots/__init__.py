"""Plots in the style of scikit-learn: each Display stores a result and draws it.

matplotlib is needed to draw, not to import this: ``pip install 'truthcal[plot]'``.
"""

from truthcal.plots.bias_curve import BiasCurveDisplay
from truthcal.plots.binned_reliability import BinnedReliabilityDisplay
from truthcal.plots.blend import BlendDisplay
from truthcal.plots.expected_scores import BestResponseDisplay, ExpectedScoreDisplay
from truthcal.plots.over_time import OverTimeDisplay
from truthcal.plots.recalibration import RecalibrationDisplay
from truthcal.plots.reliability import ReliabilityDisplay
from truthcal.plots.scale_profile import ScaleProfileDisplay
from truthcal.plots.segments import SegmentsDisplay
from truthcal.plots.smooth_witness import SmoothWitnessDisplay
from truthcal.plots.validity import ValidityDisplay

__all__ = [
    "BestResponseDisplay",
    "BiasCurveDisplay",
    "BinnedReliabilityDisplay",
    "BlendDisplay",
    "ExpectedScoreDisplay",
    "OverTimeDisplay",
    "RecalibrationDisplay",
    "ReliabilityDisplay",
    "ScaleProfileDisplay",
    "SegmentsDisplay",
    "SmoothWitnessDisplay",
    "ValidityDisplay",
]
