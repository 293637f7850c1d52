"""How often the tests reject calibrated predictions: in [0.8, 1.2] x nominal at 5% and 1%, or less where that is said.

Predictions are fixed, so one set of null draws serves all tests of a design, and a p-value below alpha is a statistic
beyond the critical value. Draws are independent of the code under test: uniform numbers below the predictions.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats
from support.simulation import REPEATS

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.inference.classical_tests import _bins
from truthcal.inference.laws import brownian
from truthcal.inference.laws.quadratic_form import upper_quantile
from truthcal.inference.laws.redraw import Outcomes
from truthcal.inference.laws.tent_kernel import TentKernel

LEVELS = (0.05, 0.01)
TENT_TESTS, PATH_TESTS = ("information_atb", "atb"), ("ks_ce", "kuiper_ce")
CLASSICAL = ("spiegelhalter", "hosmer_lemeshow")


def design(kind, n):
    """(p, w): quantiles, so that a design is what its name says."""
    grid = (np.arange(n) + 0.5) / n
    p = {
        "uniform": lambda: grid,
        "Beta(2,2)": lambda: stats.beta.ppf(grid, 2, 2),
        "rare": lambda: stats.beta.ppf(grid, 1, 99),
        "tied": lambda: np.arange(n) % 11 / 10,
        "weighted": lambda: grid,
    }[kind]()
    return p, np.random.default_rng(5).uniform(0.2, 3.0, n) if kind == "weighted" else None


class Null:
    """A design, and many calibrated outcomes of it measured by every test."""

    def __init__(self, kind, n, count, tests, seed=0, *, by_draw=False):
        self.p, self.w = design(kind, n)
        self.sample = Sample.of(np.zeros(n), self.p, self.w)
        self.outcomes = Outcomes(self.sample)
        measured = {test: self.measured(test) for test in tests}
        found = {test: [] for test in tests}
        rng, size = np.random.default_rng(seed), max(1, 2_000_000 // n)
        for first in range(0, count, size):
            block = min(size, count - first)
            if by_draw:
                positive = self.outcomes.draw(rng, block)
            else:
                positive = self.outcomes.grouped(rng.random((block, n)) < self.sample.p)
            for test in tests:
                found[test].append(measured[test](positive))
        self.values = {test: np.concatenate(parts) for test, parts in found.items()}

    def measured(self, test):
        """The statistic of a block of outcomes; Spiegelhalter's by its size, as it is two-sided."""
        r = self.outcomes.r
        if test == "spiegelhalter":
            p, w = self.sample.p, self.sample.w
            slope = (1.0 - 2.0 * r) / math.sqrt(np.sum((w * (1.0 - 2.0 * p)) ** 2 * p * (1.0 - p)))
            return lambda positive: np.abs(self.outcomes.bias(positive) @ slope)
        if test == "hosmer_lemeshow":
            starts, variance, _ = _bins(self.sample, 10)
            sure = variance == 0.0  # bins of 0 or of 1 alone, whose outcomes are never wrong here

            def chi_square(positive):
                gaps = np.add.reduceat(self.outcomes.bias(positive), starts, axis=1)
                return np.sum(gaps[:, ~sure] ** 2 / variance[~sure], axis=1)

            return chi_square
        return self.outcomes.values(test)

    def critical(self, test, alpha):
        """Where the asymptotic p-value is alpha."""
        if test in TENT_TESTS:
            return upper_quantile(
                alpha, TentKernel.of(test, self.sample.points()).null_scales(self.sample.points().merged())
            )
        if test in PATH_TESTS:
            tail = {"ks_ce": brownian.maximum_tail, "kuiper_ce": brownian.range_tail}[test]
            unit = math.sqrt(self.sample.moments.wwv) / self.sample.weight
            return optimize.brentq(lambda x: tail(x) - alpha, 0.5, 9.0, xtol=1e-12) * unit
        if test == "spiegelhalter":
            return stats.norm.isf(alpha / 2)
        return stats.chi2.isf(alpha, np.count_nonzero(_bins(self.sample, 10)[1]))

    def size(self, test, alpha):
        return float(np.mean(self.values[test] >= self.critical(test, alpha)))


def in_range(size, alpha, count, low=0.8):
    """In [low, 1.2] x nominal. Four standard errors are within 0.2 x nominal for 40,000 draws; two are added for less."""
    slack = 0.0 if count >= 40_000 else 2.0 * math.sqrt(alpha * (1.0 - alpha) / count)
    return low * alpha - slack <= size <= 1.2 * alpha + slack


def check_sizes(null, tests, count, low=0.8):
    sizes = {(test, alpha): null.size(test, alpha) for test in tests for alpha in LEVELS}
    assert all(in_range(size, alpha, count, low) for (_, alpha), size in sizes.items()), sizes


# --- asymptotic -------------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["uniform", "Beta(2,2)", "weighted"])
def test_size_of_asymptotic_tests(kind):
    tests = (*TENT_TESTS, *PATH_TESTS, *CLASSICAL)
    check_sizes(Null(kind, 1000, 40_000, tests), tests, 40_000)


@pytest.mark.simulation
def test_size_of_asymptotic_tests_with_ties():
    tests = (*TENT_TESTS, *CLASSICAL)
    null = Null("tied", 1000, 40_000, (*tests, *PATH_TESTS))
    check_sizes(null, tests, 40_000)
    check_sizes(null, PATH_TESTS, 40_000, low=0.0)  # Brownian limits are cautious where predictions tie


@pytest.mark.simulation
def test_size_of_asymptotic_tests_of_rare_events():
    """At the least information that `auto` accepts: sum p(1 - p) = 100."""
    n = 10_250
    p, _ = design("rare", n)
    assert 100.0 <= np.sum(p * (1.0 - p)) < 101.0
    tests = (*TENT_TESTS, *PATH_TESTS, "spiegelhalter")
    null = Null("rare", n, 20_000, tests)
    check_sizes(null, tests, 20_000)


@pytest.mark.simulation
def test_size_of_hosmer_lemeshow_of_rare_events():
    """The chi-square limit needs five expected positives in each bin: 100,000 rows here, in ties so that draws are few."""
    p = np.repeat(design("rare", 1000)[0], 100)
    sample = Sample.of(np.zeros(len(p)), p)
    starts, variance, _ = _bins(sample, 10)
    assert 5.0 < variance.min() < 5.5
    outcomes, rng, count = Outcomes(sample), np.random.default_rng(0), 20_000
    positive = (outcomes.draw(rng, 2000) for _ in range(count // 2000))
    gaps = np.concatenate([np.add.reduceat(outcomes.bias(block), starts, axis=1) for block in positive])
    value = np.sum(gaps**2 / variance, axis=1)
    for alpha in LEVELS:
        assert in_range(np.mean(value >= stats.chi2.isf(alpha, 10)), alpha, count)


def test_critical_values_are_where_the_public_tests_have_p_equal_alpha():
    tests = (*TENT_TESTS, *PATH_TESTS, *CLASSICAL)
    rng = np.random.default_rng(0)
    for kind in ("uniform", "weighted", "tied"):
        null = Null(kind, 300, 1, tests)
        for _ in range(6):
            y = rng.random(300) < np.clip(null.p + rng.uniform(0.0, 0.1), 0.0, 1.0)
            for test in tests:
                common = {"sample_weight": null.w, "method": "asymptotic"}
                if test in CLASSICAL:
                    result = getattr(tc, f"{test}_test")(y, null.p, **common)
                else:
                    result = tc.calibration_test(y, null.p, measure=test, **common)
                for alpha in LEVELS:
                    beyond = abs(result.statistic) >= null.critical(test, alpha)
                    assert beyond == (result.pvalue <= alpha)


# --- exact ------------------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["uniform", "Beta(2,2)", "rare", "tied", "weighted"])
def test_size_of_exact_tests(kind):
    """p = (1 + #{redrawn >= observed}) / (1 + redraws), with the redraws shared by all observed outcomes.

    Rare events of 150 rows have so few outcomes that many tie: sizes there may be below nominal, never above.
    """
    tests, n, count = (*TENT_TESTS, *PATH_TESTS, *CLASSICAL, "unbinned_ece"), 150, 40_000
    observed = Null(kind, n, count, tests, seed=1)
    redrawn = Null(kind, n, count, tests, seed=2, by_draw=True)
    low = 0.0 if kind in ("rare", "tied") else 0.75
    for test in tests:
        null = np.sort(redrawn.values[test])
        at_least = count - np.searchsorted(null, observed.values[test] * (1.0 - 1e-9))
        p = (1 + at_least) / (1 + count)
        for alpha in LEVELS:
            # both sides are drawn: two standard errors on top of the range
            size, slack = float(np.mean(p <= alpha)), 2.0 * math.sqrt(2.0 * alpha * (1.0 - alpha) / count)
            assert low * alpha - slack <= size <= 1.2 * alpha + slack, (test, alpha, size)


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["uniform", "rare", "tied", "weighted"])
def test_size_of_the_whole_function(kind):
    """Nothing shared: 199 redraws for each of 600 data sets. 600 x 5% = 30 rejections, 4 standard errors = 21."""
    p, w = design(kind, 60)
    rng, count = np.random.default_rng(3), 2 * REPEATS
    pvalues = np.array(
        [
            tc.calibration_test(rng.random(60) < p, p, sample_weight=w, n_resamples=199, rng=rng).pvalue
            for _ in range(count)
        ]
    )
    for alpha in LEVELS:
        slack = 4.0 * math.sqrt(alpha * (1.0 - alpha) / count)
        assert np.mean(pvalues <= alpha) <= alpha + slack
        if kind in ("uniform", "weighted"):
            assert np.mean(pvalues <= alpha) >= alpha - slack


@pytest.mark.parametrize("method", ["exact", "bound"])
@pytest.mark.parametrize("kind", ["uniform", "Beta(2,2)", "rare", "tied", "weighted"])
def test_size_is_never_above_nominal_by_all_outcomes_of_few_rows(kind, method):
    """P(p-value <= alpha), summed over the 128 outcomes of 7 rows: no simulation."""
    p, w = design(kind, 7)
    pvalues, chances = [], []
    for y in itertools.product((0, 1), repeat=7):
        chances.append(np.prod(np.where(y, p, 1.0 - p)))
        pvalues.append(tc.calibration_test(y, p, sample_weight=w, method=method).pvalue)
    pvalues, chances = np.array(pvalues), np.array(chances)
    for alpha in (*LEVELS, *pvalues):
        assert chances[pvalues <= alpha].sum() <= alpha * (1.0 + 1e-9)
    if method == "exact":  # and at each p-value that occurs it is exactly that
        for alpha in pvalues[chances > 0.0]:
            assert chances[pvalues <= alpha * (1.0 + 1e-9)].sum() == pytest.approx(alpha, rel=1e-8)
