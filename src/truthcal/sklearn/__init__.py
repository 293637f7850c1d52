"""scikit-learn: recalibration."""
