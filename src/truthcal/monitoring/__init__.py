"""Monitoring: evidence against calibration that stays valid however often one looks."""
