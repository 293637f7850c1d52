"""Repeats of a simulation, and how many hits of an interval are too few.

TRUTHCAL_SIMULATIONS sets the repeats: 300 by default, 50 in CI, 2,000 in the nightly workflow.

Intervals of nominal coverage 0.95 are allowed 0.94. A count fails where 0.94 would give so few hits less than once in
1,000 simulations: below 268 of 300, 1,101 of 1,200 or 1,846 of 2,000. A true 0.95 then fails once in 44,000 simulations
of 300 repeats, less often for more. A true 0.90 fails in 31% of simulations of 300 repeats, in 98% of 1,200 (four
scenarios together), and in all but 2 of 10,000 simulations of 2,000 repeats.
"""

import os

from scipy import stats

REPEATS = int(os.environ.get("TRUTHCAL_SIMULATIONS", "300"))


def assert_covered(hits, count, name, coverage=0.94):
    """Fail if the hits are too few for an interval of at least this coverage."""
    assert stats.binom.cdf(hits, count, coverage) >= 1e-3, f"{name}: {hits} of {count}"
