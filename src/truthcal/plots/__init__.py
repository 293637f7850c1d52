"""Plots in the style of scikit-learn: each Display stores a result and draws it.

matplotlib is needed to draw, not to import this: ``pip install 'truthcal[plot]'``.
"""

from truthcal.plots.bias_curve import BiasCurveDisplay
from truthcal.plots.binned_reliability import BinnedReliabilityDisplay
from truthcal.plots.reliability import ReliabilityDisplay
from truthcal.plots.scale_profile import ScaleProfileDisplay
from truthcal.plots.segments import SegmentsDisplay
from truthcal.plots.validity import ValidityDisplay

__all__ = [
    "BiasCurveDisplay",
    "BinnedReliabilityDisplay",
    "ReliabilityDisplay",
    "ScaleProfileDisplay",
    "SegmentsDisplay",
    "ValidityDisplay",
]
