"""Can these probabilities be trusted? Calibration measured so that lying never pays.

Names are loaded on first use, so that ``import truthcal`` costs no more than numpy.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> module that holds it. docs/api.md lists the same names; a test compares the two.
_HOME = {
    "atb": "measures.atb",
    "atb_l1": "measures.atb",
    "atb_approx": "measures.atb",
    "atb_summary": "measures.atb",
    "cumulative_bias_curve": "measures.atb",
    "reliability_curve": "measures.curves",
    "consistency_band": "measures.curves",
    "bias_band": "measures.bias_bands",
    "ubse": "measures.ubse",
    "expected_ubse": "measures.ubse",
    "shifted_grid_ubse": "measures.ubse",
    "quantile_ece": "measures.ubse",
    "multiscale_atb": "measures.ubse",
    "Binning": "measures.ubse",
    "RandomThreshold": "measures.ubse",
    "ShiftedGrid": "measures.ubse",
    "QuantileBins": "measures.ubse",
    "FixedBins": "measures.ubse",
    "Multiscale": "measures.ubse",
    "smcal": "measures.smooth",
    "smcal_witness": "measures.smooth",
    "smece": "measures.smooth",
    "laplace_kernel_ce": "measures.smooth",
    "distcal": "measures.distance",
    "distcal_bounds": "measures.distance",
    "distcal_bracket": "measures.distance",
    "intcal": "measures.interval",
    "intcal_surrogate": "measures.interval",
    "ece": "measures.binned",
    "binned_ece": "measures.binned",
    "binned_ece_like": "measures.conventions",
    "ks_ce": "measures.cumulative",
    "kuiper_ce": "measures.cumulative",
    "step_ce": "measures.cumulative",
    "decision_loss": "measures.decision",
    "u_calibration": "measures.decision",
    "subsampled_smcal": "measures.subsampled",
    "subsampled_step_ce": "measures.subsampled",
    "subsampled_estimate": "measures.subsampled",
    "ici": "measures.skill",
    "brier_decomposition": "measures.skill",
    "log_loss_decomposition": "measures.skill",
    "calibration_slope_intercept": "measures.skill",
    "all_measures": "measures.overview",
    "calibration_test": "inference.testing",
    "linear_time_test": "inference.linear_time",
    "hosmer_lemeshow_test": "inference.classical",
    "spiegelhalter_test": "inference.classical",
    "confidence_interval": "inference.intervals",
    "scale_profile": "inference.profile",
    "power": "inference.power",
    "validity_curve": "inference.power",
    "detectable_error": "inference.planning",
    "required_sample_size": "inference.planning",
    "compare": "inference.comparison",
    "assess": "inference.assessment",
    "assess_segments": "inference.segments",
    "audit": "truthfulness",
    "audit_on": "truthfulness",
    "expected_score": "truthfulness",
    "Audit": "truthfulness",
    "AuditRow": "truthfulness",
    "ExpectedScore": "truthfulness",
    "MEASURES": "measures",
    "Measure": "measures",
    "Sketch": "sketch",
    "bucket_index": "sketch",
    "SketchTable": "sketch_table",
    "sketch_frame": "frames.engines",
    "atb_frame": "frames.exact",
    "sketch_sql": "frames.sql",
    "sketch_from_rows": "frames.queries",
    "scan": "frames.scanning",
    "report": "reports",
    "Report": "reports",
    "Bounded": "_results",
    "BoundedArray": "_results",
    "AtbSummary": "_results",
    "BiasCurve": "_curves",
    "ReliabilityCurve": "_curves",
    "ConsistencyBand": "_curves",
    "BiasBand": "_curves",
    "ScaleProfile": "_curves",
    "SmoothWitness": "_results",
    "DistanceBracket": "_results",
    "Estimate": "_results",
    "ScoreDecomposition": "_results",
    "CalibrationLine": "_results",
    "MeasureTable": "_results",
    "MeasureValue": "_results",
    "ConfidenceInterval": "_verdicts",
    "LinearTimeTest": "_verdicts",
    "CalibrationTest": "_verdicts",
    "BiasedStretch": "_assessments",
    "Assessment": "_assessments",
    "Segment": "_segments",
    "SegmentTable": "_segments",
    "Comparison": "_verdicts",
    "DetectableError": "_verdicts",
    "ValidityCurve": "_verdicts",
}

# Modules that are reached as they are.
_MODULES = ("plots",)

__all__ = ["__version__", *_HOME, *_MODULES]

if TYPE_CHECKING:  # `name as name` marks a name as exported for type checkers
    from truthcal import plots as plots
    from truthcal._assessments import Assessment as Assessment
    from truthcal._assessments import BiasedStretch as BiasedStretch
    from truthcal._curves import BiasBand as BiasBand
    from truthcal._curves import BiasCurve as BiasCurve
    from truthcal._curves import ConsistencyBand as ConsistencyBand
    from truthcal._curves import ReliabilityCurve as ReliabilityCurve
    from truthcal._curves import ScaleProfile as ScaleProfile
    from truthcal._results import AtbSummary as AtbSummary
    from truthcal._results import Bounded as Bounded
    from truthcal._results import BoundedArray as BoundedArray
    from truthcal._results import CalibrationLine as CalibrationLine
    from truthcal._results import DistanceBracket as DistanceBracket
    from truthcal._results import Estimate as Estimate
    from truthcal._results import MeasureTable as MeasureTable
    from truthcal._results import MeasureValue as MeasureValue
    from truthcal._results import ScoreDecomposition as ScoreDecomposition
    from truthcal._results import SmoothWitness as SmoothWitness
    from truthcal._segments import Segment as Segment
    from truthcal._segments import SegmentTable as SegmentTable
    from truthcal._verdicts import CalibrationTest as CalibrationTest
    from truthcal._verdicts import Comparison as Comparison
    from truthcal._verdicts import ConfidenceInterval as ConfidenceInterval
    from truthcal._verdicts import DetectableError as DetectableError
    from truthcal._verdicts import LinearTimeTest as LinearTimeTest
    from truthcal._verdicts import ValidityCurve as ValidityCurve
    from truthcal.frames.engines import sketch_frame as sketch_frame
    from truthcal.frames.exact import atb_frame as atb_frame
    from truthcal.frames.queries import sketch_from_rows as sketch_from_rows
    from truthcal.frames.scanning import scan as scan
    from truthcal.frames.sql import sketch_sql as sketch_sql
    from truthcal.inference.assessment import assess as assess
    from truthcal.inference.classical import hosmer_lemeshow_test as hosmer_lemeshow_test
    from truthcal.inference.classical import spiegelhalter_test as spiegelhalter_test
    from truthcal.inference.comparison import compare as compare
    from truthcal.inference.intervals import confidence_interval as confidence_interval
    from truthcal.inference.linear_time import linear_time_test as linear_time_test
    from truthcal.inference.planning import detectable_error as detectable_error
    from truthcal.inference.planning import required_sample_size as required_sample_size
    from truthcal.inference.power import power as power
    from truthcal.inference.power import validity_curve as validity_curve
    from truthcal.inference.profile import scale_profile as scale_profile
    from truthcal.inference.segments import assess_segments as assess_segments
    from truthcal.inference.testing import calibration_test as calibration_test
    from truthcal.measures import MEASURES as MEASURES
    from truthcal.measures import Measure as Measure
    from truthcal.measures.atb import atb as atb
    from truthcal.measures.atb import atb_approx as atb_approx
    from truthcal.measures.atb import atb_l1 as atb_l1
    from truthcal.measures.atb import atb_summary as atb_summary
    from truthcal.measures.atb import cumulative_bias_curve as cumulative_bias_curve
    from truthcal.measures.bias_bands import bias_band as bias_band
    from truthcal.measures.binned import binned_ece as binned_ece
    from truthcal.measures.binned import ece as ece
    from truthcal.measures.conventions import binned_ece_like as binned_ece_like
    from truthcal.measures.cumulative import ks_ce as ks_ce
    from truthcal.measures.cumulative import kuiper_ce as kuiper_ce
    from truthcal.measures.cumulative import step_ce as step_ce
    from truthcal.measures.curves import consistency_band as consistency_band
    from truthcal.measures.curves import reliability_curve as reliability_curve
    from truthcal.measures.decision import decision_loss as decision_loss
    from truthcal.measures.decision import u_calibration as u_calibration
    from truthcal.measures.distance import distcal as distcal
    from truthcal.measures.distance import distcal_bounds as distcal_bounds
    from truthcal.measures.distance import distcal_bracket as distcal_bracket
    from truthcal.measures.interval import intcal as intcal
    from truthcal.measures.interval import intcal_surrogate as intcal_surrogate
    from truthcal.measures.overview import all_measures as all_measures
    from truthcal.measures.skill import brier_decomposition as brier_decomposition
    from truthcal.measures.skill import calibration_slope_intercept as calibration_slope_intercept
    from truthcal.measures.skill import ici as ici
    from truthcal.measures.skill import log_loss_decomposition as log_loss_decomposition
    from truthcal.measures.smooth import laplace_kernel_ce as laplace_kernel_ce
    from truthcal.measures.smooth import smcal as smcal
    from truthcal.measures.smooth import smcal_witness as smcal_witness
    from truthcal.measures.smooth import smece as smece
    from truthcal.measures.subsampled import subsampled_estimate as subsampled_estimate
    from truthcal.measures.subsampled import subsampled_smcal as subsampled_smcal
    from truthcal.measures.subsampled import subsampled_step_ce as subsampled_step_ce
    from truthcal.measures.ubse import Binning as Binning
    from truthcal.measures.ubse import FixedBins as FixedBins
    from truthcal.measures.ubse import Multiscale as Multiscale
    from truthcal.measures.ubse import QuantileBins as QuantileBins
    from truthcal.measures.ubse import RandomThreshold as RandomThreshold
    from truthcal.measures.ubse import ShiftedGrid as ShiftedGrid
    from truthcal.measures.ubse import expected_ubse as expected_ubse
    from truthcal.measures.ubse import multiscale_atb as multiscale_atb
    from truthcal.measures.ubse import quantile_ece as quantile_ece
    from truthcal.measures.ubse import shifted_grid_ubse as shifted_grid_ubse
    from truthcal.measures.ubse import ubse as ubse
    from truthcal.reports import Report as Report
    from truthcal.reports import report as report
    from truthcal.sketch import Sketch as Sketch
    from truthcal.sketch import bucket_index as bucket_index
    from truthcal.sketch_table import SketchTable as SketchTable
    from truthcal.truthfulness import Audit as Audit
    from truthcal.truthfulness import AuditRow as AuditRow
    from truthcal.truthfulness import ExpectedScore as ExpectedScore
    from truthcal.truthfulness import audit as audit
    from truthcal.truthfulness import audit_on as audit_on
    from truthcal.truthfulness import expected_score as expected_score


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name in _MODULES:
        return importlib.import_module(f"truthcal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'truthcal' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"truthcal.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
