"""The HTML report: what `assess` found, as one file that people keep."""

from truthcal.reports.making import Report, report

__all__ = ["Report", "report"]
