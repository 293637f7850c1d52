"""Rows that estimate a measure: the inequalities of the proof by search, and the promise by simulation."""

import math

import numpy as np
import pytest
from scipy import stats
from support.simulation import REPEATS

import truthcal as tc
from truthcal.inference.sample_complexity import ESTIMATED, _atb_failure

GRID = np.linspace(0, 1, 41)
P, C = np.concatenate([GRID, GRID]), np.concatenate([GRID, GRID - 1])  # all rows: outcome 0, then outcome 1
PRODUCTS = C[:, None] * C * (1 - np.abs(P[:, None] - P))  # <z, z'>


def measured(y, p, w, measure):
    if measure == "sqrt_atb":
        return math.sqrt(tc.atb(y, p, sample_weight=w))
    return getattr(tc, measure)(y, p, sample_weight=w)


def test_geometry_of_single_rows():
    """(1) and (3) of the proof; both are attained."""
    lengths = np.diag(PRODUCTS)
    assert np.max(lengths[:, None] + lengths - 2 * PRODUCTS) == pytest.approx(2, abs=1e-12)
    assert np.max(PRODUCTS.max(axis=0) - PRODUCTS.min(axis=0)) == pytest.approx(5 / 4, abs=1e-12)
    assert -8 / 27 <= PRODUCTS.min() <= -0.296


def test_variances_of_random_populations():
    """(2) and (4): the worst populations found come close to the bounds."""
    rng = np.random.default_rng(0)
    worst_spread = worst_variance = 0.0
    for _ in range(1000):
        w = np.zeros(len(P))
        w[rng.integers(0, len(P), rng.integers(1, 6))] = rng.exponential(size=1)
        w[[40, 41]] += rng.exponential(size=2) * rng.integers(0, 2, 2)  # rows that are wrong with certainty
        w *= rng.random(len(w)) + 0.01
        w /= w.sum()
        inner = PRODUCTS @ w
        mean = w @ inner
        worst_spread = max(worst_spread, w @ np.diag(PRODUCTS) - mean)
        worst_variance = max(worst_variance, 4 * (w @ inner**2 - mean**2))
    assert 0.4 < worst_spread <= 5 / 9
    assert 0.3 < worst_variance <= 2 / 3
    worst = tc.atb([0, 1], [1, 0.65], sample_weight=[79, 21])  # the population named in the proof
    values = np.array([0.79 - 0.21 * 0.35 * 0.65, -0.35 * (0.79 * 0.65 - 0.21 * 0.35)])
    assert np.dot(values, [0.79, 0.21]) == pytest.approx(worst)
    assert 4 * (np.dot(values**2, [0.79, 0.21]) - worst**2) == pytest.approx(0.533, abs=1e-3)


@pytest.mark.parametrize("measure", ESTIMATED)
def test_rows_grow_with_the_demands_by_the_right_rate(measure):
    rows = [tc.sample_complexity(epsilon, 0.05, measure=measure) for epsilon in (0.2, 0.1, 0.05, 0.001)]
    assert rows == sorted(rows)
    assert tc.sample_complexity(0.1, 0.01, measure=measure) > rows[1]
    assert rows[-1] * 0.001**2 == pytest.approx(
        tc.sample_complexity(0.0005, 0.05, measure=measure) * 0.0005**2, rel=0.02
    )


def test_values():
    """The formulas, and for ATB the smallest number that the bound allows."""
    log = math.log(20)
    assert tc.sample_complexity(0.1, 0.05, measure="atb_l1") == math.ceil(
        100 * (math.sqrt(10) / 3 + (2 * log) ** 0.5) ** 2
    )
    assert tc.sample_complexity(0.1, 0.05, measure="smcal") == math.ceil(
        100 * (math.sqrt(25 / 18) + (2 * log) ** 0.5) ** 2
    )
    assert tc.sample_complexity(0.1, 0.05, measure="sqrt_atb") == math.ceil(100 * (math.sqrt(5) / 3 + log**0.5) ** 2)
    n = tc.sample_complexity(0.02, 0.05)
    assert _atb_failure(n, 0.02) <= 0.05 < _atb_failure(n - 1, 0.02)
    assert tc.sample_complexity(1e-4, 0.05) * 1e-8 / math.log(40) == pytest.approx(4 / 3, rel=0.01)


def test_bound_is_never_below_an_exact_probability():
    """One prediction of 1, wrong with probability q: ATB is the squared share of wrong rows."""
    for n, epsilon, q in [(10, 0.3, 0.75), (50, 0.2, 0.75), (200, 0.1, 0.7), (1000, 0.05, 0.8), (5000, 0.02, 0.75)]:
        wrong = np.arange(n + 1)
        far = np.abs((wrong / n) ** 2 - q**2) >= epsilon
        assert stats.binom.pmf(wrong, n, q)[far].sum() <= _atb_failure(n, epsilon)


@pytest.mark.simulation
@pytest.mark.parametrize("measure", ESTIMATED)
def test_promise_holds(measure):
    """At epsilon = delta = 0.1 for populations with much noise in the measure."""
    n, rng = tc.sample_complexity(0.1, 0.1, measure=measure), np.random.default_rng(0)
    spread = np.linspace(0.02, 0.98, 25)
    populations = [
        ([1.0], [0.25]),
        ([1.0, 0.65], [0.0, 1.0]),
        ([0.5], [0.5]),
        ([0.0, 1.0], [0.5, 0.5]),
        (spread, 1 - spread),
    ]
    for p, truth in populations:
        share = np.array([0.79, 0.21]) if list(truth) == [0.0, 1.0] else np.full(len(p), 1 / len(p))
        chances = np.concatenate([share * (1 - np.array(truth)), share * np.array(truth)])
        expected = measured(np.repeat([0, 1], len(p)), np.tile(p, 2), chances, measure)
        off = 0
        for _ in range(REPEATS):
            kinds = rng.choice(len(p), n, p=share)
            y, r = (rng.random(n) < np.array(truth)[kinds]).astype(int), np.array(p)[kinds]
            off += abs(measured(y, r, None, measure) - expected) > 0.1
        assert off <= 0.1 * REPEATS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "`epsilon` must lie strictly between 0 and 1; got 0"),
        ({"epsilon": 1e-200}, "`epsilon` must be at least 1e-09; got 1e-200"),
        ({"delta": 5}, r"`delta` must lie strictly between 0 and 1; got 5.0. For 5%, pass 0\.05"),
        ({"measure": "ece"}, "`measure` must be one of 'atb', 'sqrt_atb', 'atb_l1', 'smcal'; got 'ece'"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        tc.sample_complexity(**({"epsilon": 0.1, "delta": 0.1} | arguments))
