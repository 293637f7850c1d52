"""Recalibration: maps from predicted to recalibrated probabilities, and how they are fitted and chosen."""
