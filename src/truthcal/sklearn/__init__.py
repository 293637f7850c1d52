"""truthcal in scikit-learn: scorers, a rule for choosing a model, assessment and recalibration of an estimator.

Needs scikit-learn 1.5 or newer: ``pip install 'truthcal[sklearn]'``. No other part of truthcal imports it.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError:
    raise ImportError("truthcal.sklearn needs scikit-learn: pip install 'truthcal[sklearn]'.") from None

from truthcal.sklearn.assess_estimator import assess_estimator
from truthcal.sklearn.model_choice import calibrated_refit, calibration_scoring
from truthcal.sklearn.recalibrated_classifier import RecalibratedClassifier
from truthcal.sklearn.scorers import atb_scorer, calibration_scorer

__all__ = [
    "RecalibratedClassifier",
    "assess_estimator",
    "atb_scorer",
    "calibrated_refit",
    "calibration_scorer",
    "calibration_scoring",
]
