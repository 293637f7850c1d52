"""Shared setup of all tests: markers, hypothesis profiles, number of simulations, one BLAS thread.

Markers (`-m "not spark"` leaves a group out; a marker that is not registered in pyproject.toml is an error):

- `simulation`: size or coverage by repeated random draws; `make test` leaves these out, `.ci/run` runs them.
- `spark`, `postgres`, `browser`, `peers`: uses Spark, a PostgreSQL server, Chromium, or the packages whose numbers
  `binned_ece_like` reproduces. Tests with a parameter or fixture of that name are marked here.

In parallel runs (`-n 2`) each test goes to the first free worker, but the tests of one server, and others that share
slow results, stay on one worker: GROUPS below.

Hypothesis profiles (`--hypothesis-profile=...`), all derandomized, so that a run that passed once passes again:
`fast` (15 examples, `make test`), `ci` (50, the default), `nightly` (1,000).

Environment variables: TRUTHCAL_REQUIRE_ALL=1 turns a skipped test into a failure; TRUTHCAL_SIMULATIONS sets the
number of repeats of a simulation (default 300, in CI 50; see `support/simulation.py`).
"""

import os
import re

# Before numpy is imported. Matrices here have at most a few hundred rows: with two workers on two cores, the threads of
# OpenBLAS wait for each other, and one interval takes 260 ms of CPU time instead of 29.
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# No deadline: compiling a kernel may exceed any.
for _profile, _examples in {"fast": 15, "ci": 50, "nightly": 1000}.items():
    settings.register_profile(
        _profile, deadline=None, derandomize=True, max_examples=_examples, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("ci")

SERVERS = ("spark", "postgres", "browser", "peers")
# Group -> which test ids belong to it.
GROUPS = {
    "spark": re.compile("spark|page_on_engines"),
    "postgres": re.compile("postgres"),
    "reports": re.compile(r"tests/reports/"),  # the browser, and pages that take seconds to build
    "peers": re.compile(r"test_conventions\.py|torch"),
    "scenarios": re.compile(r"test_intervals\.py::test_coverage_(of_squared|over_all)"),
}


def _uses(item, server):
    """Whether a test has a marker, a fixture or a parameter of that name ("spark, not ANSI" is Spark)."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return (
        item.get_closest_marker(server) is not None
        or server in getattr(item, "fixturenames", ())
        or any(isinstance(value, str) and value.split(",")[0] == server for value in parameters)
    )


def pytest_make_parametrize_id(val, argname):
    """Name bytes by their argument: gzip writes the time of day into them, and all workers must collect the same ids."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    """Mark the users of servers, and start simulations first: they take longest, and workers finish at the same time."""
    for item in items:
        for server in SERVERS:
            if _uses(item, server):
                item.add_marker(server)
    items.sort(key=lambda item: item.get_closest_marker("simulation") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep each group on one worker.

    The marker `xdist_group` of pytest-xdist 3.8 has no effect with pytest 9.2, where test ids cannot be changed, and
    `--dist=worksteal` knows no groups.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return next((group for group, pattern in GROUPS.items() if pattern.search(nodeid)), nodeid)

    return GroupScheduling(config, log)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("TRUTHCAL_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped although TRUTHCAL_REQUIRE_ALL=1: {report.longrepr}"
