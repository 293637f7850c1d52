"""Checks of rows and parameters, and the summaries that rows are reduced to."""
