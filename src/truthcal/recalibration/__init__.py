"""Fitted recalibration maps and the result of `recalibrate`. The maps are fitted in `truthcal.sklearn`."""
