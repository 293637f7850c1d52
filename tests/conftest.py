"""Shared fixtures. With TRUTHCAL_REQUIRE_ALL=1 a skipped test is a failure: nothing is left out unnoticed."""

import os

import pytest
from hypothesis import HealthCheck, settings

# Derandomised, so that a run that passed once passes again; compiling a kernel may exceed any deadline.
settings.register_profile(
    "truthcal", deadline=None, derandomize=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("truthcal")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("TRUTHCAL_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped although TRUTHCAL_REQUIRE_ALL=1: {report.longrepr}"
