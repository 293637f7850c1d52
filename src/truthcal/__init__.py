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
    "MEASURES": "measures",
    "Measure": "measures",
    "Sketch": "sketch",
    "bucket_index": "sketch",
    "Bounded": "_results",
    "AtbSummary": "_results",
    "BiasCurve": "_results",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:  # `name as name` marks a name as exported for type checkers
    from truthcal._results import AtbSummary as AtbSummary
    from truthcal._results import BiasCurve as BiasCurve
    from truthcal._results import Bounded as Bounded
    from truthcal.measures import MEASURES as MEASURES
    from truthcal.measures import Measure as Measure
    from truthcal.measures.atb import atb as atb
    from truthcal.measures.atb import atb_approx as atb_approx
    from truthcal.measures.atb import atb_l1 as atb_l1
    from truthcal.measures.atb import atb_summary as atb_summary
    from truthcal.measures.atb import cumulative_bias_curve as cumulative_bias_curve
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
    from truthcal.sketch import Sketch as Sketch
    from truthcal.sketch import bucket_index as bucket_index


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'truthcal' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"truthcal.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
