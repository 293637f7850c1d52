"""ATB and ATB_l1 in linear time: certified bounds, in any case and for any rows."""

import functools
import importlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from support.strategies import examples, probabilities, rows, weighted_rows

import truthcal as tc
from truthcal.core import parallel

# The plain name is the function.
module = importlib.import_module("truthcal.measures.atb_approx")

APPROXIMATIONS = [
    pytest.param(tc.atb_approx, oracles.atb, id="atb"),
    pytest.param(tc.atb_l1_approx, oracles.atb_l1, id="atb_l1"),
]
N = 400


def balanced_outcomes(p):
    """Outcomes that keep the cumulative bias close to 0 at every threshold: the loss of ATB_l1 bends everywhere."""
    y, bias = np.zeros(len(p), np.int64), 0.0
    for i in np.argsort(p, kind="stable"):
        y[i] = bias + p[i] > 0.5
        bias += p[i] - y[i]
    return y


def nested_clusters(rng):
    """Clusters around 0.3, each twice as wide as the last, from 1e-12 to 1, with equally many rows."""
    return 0.3 + 0.6 * 2.0 ** -rng.integers(0, 40, N) * rng.uniform(0.5, 0.75, N)


def half_in_a_cluster(rng):
    return np.where(rng.random(N) < 0.5, 0.5 + 1e-4 * rng.random(N), rng.random(N))


def cluster_in_every_bucket(rng):
    width = np.where(rng.random(N) < 0.8, 1e-6, 1.0)
    return (rng.integers(0, 50, N) + 0.5 + (rng.random(N) - 0.5) * width) / 50


SHAPES = {
    "uniform": lambda rng: rng.random(N),
    "cluster 1e-4 wide": lambda rng: 0.3 + 1e-4 * rng.random(N),
    "cluster 1e-9 wide": lambda rng: 0.3 + 1e-9 * rng.random(N),
    "ties": lambda rng: np.round(rng.random(N), 1),
    "all equal": lambda rng: np.full(N, 0.3),
    "1e-300 apart": lambda rng: np.where(rng.random(N) < 0.5, 1e-300, 2e-300),
    "subnormal": lambda rng: rng.integers(0, 1000, N) * 5e-324,
    "0 and 1": lambda rng: (rng.random(N) < 0.5) * 1.0,
    "0, 1 and next to them": lambda rng: rng.choice([0.0, -0.0, 5e-324, np.nextafter(1.0, 0.0), 1.0], N),
    "float32": lambda rng: rng.random(N).astype(np.float32),
    "nested clusters": nested_clusters,
    "half in a cluster": half_in_a_cluster,
    "cluster in every bucket": cluster_in_every_bucket,
}


OUTCOMES = ["calibrated", "balanced", "weighted and fractional"]


@functools.cache
def case(shape, outcomes):
    """Rows, and their exact ATB and ATB_l1."""
    rng = np.random.default_rng(7)
    p = SHAPES[shape](rng)
    y, w = balanced_outcomes(p) if outcomes == "balanced" else (rng.random(N) < p).astype(np.int64), None
    if outcomes == "weighted and fractional":
        w = rng.choice([0.5, 1.0, 3.0], N)
        if shape != "0 and 1":  # refused with fractions
            y = np.clip(p + rng.choice([-0.25, 0.25], N), 0.0, 1.0)
    exact_w = [1] * N if w is None else oracles.exact(w)
    return y, p, w, oracles.atb_and_atb_l1_by_scan(oracles.exact(y), oracles.exact(p), exact_w)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("outcomes", OUTCOMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_bounds_hold_exactly_and_keep_the_tolerance_without_sorting(shape, outcomes, threads, monkeypatch):
    monkeypatch.setattr(module, "Sample", None)  # sorting would fail
    if threads == 2:
        monkeypatch.setattr(parallel, "WORTH_A_THREAD", 2)
    y, p, w, exact = case(shape, outcomes)
    tolerance = 1 / (2 * N)
    for approximation, expected in zip((tc.atb_approx, tc.atb_l1_approx), exact, strict=True):
        result = approximation(y, p, tolerance=tolerance, sample_weight=w)
        assert Fraction(result.low) <= expected <= Fraction(result.high)
        assert result.low <= result.value <= result.high
        assert result.width <= tolerance
        assert {type(x) for x in (result.value, result.low, result.high)} == {float}


def test_the_scan_of_the_oracle_is_the_definition():
    y, p, w = [0, 1, 1, 0, 1], oracles.exact([0.2, 0.9, 0.6, 0.3, 0.2]), [1, 2, 1, 1, 3]
    assert oracles.atb_and_atb_l1_by_scan(y, p, w) == (oracles.atb(y, p, w), oracles.atb_l1(y, p, w))


@pytest.mark.parametrize(("approximation", "oracle"), APPROXIMATIONS)
@given(
    data=weighted_rows(max_size=40, outcomes=probabilities),
    tolerance=st.sampled_from([1e308, 0.3, 0.01, 1e-3, 1e-4, 1e-7, 1e-10]),
)
@examples(60)
def test_any_rows_and_tolerances(approximation, oracle, data, tolerance):
    y, p, w = data
    if all(x in (0.0, 1.0) for x in p):
        y = [round(x) for x in y]  # fractions with predictions of 0 and 1 are refused
    result = approximation(y, p, tolerance=tolerance, sample_weight=w)
    exact = oracle(oracles.exact(y), oracles.exact(p), oracles.exact(w))
    assert Fraction(result.low) <= exact <= Fraction(result.high)
    assert result.low <= result.value <= result.high
    assert result.width <= tolerance


@given(data=rows(min_size=2, max_size=40), seed=st.integers(0, 9), n_buckets=st.sampled_from([1, 4, 64]))
@examples(40)
def test_cells_bound_the_width_as_proved(data, seed, n_buckets):
    """Any number of buckets: refined to a tolerance far below what they give."""
    y, p = data
    p = np.abs(np.random.default_rng(seed).choice([1.0, 1e-3, 1e-6], len(p)) * p)
    checked = tc.core.checks.check_rows(y, p)
    for squared, oracle in ((True, oracles.atb), (False, oracles.atb_l1)):
        buckets = module._Buckets(checked, n_buckets, squared)
        buckets.refine(1e-3)
        result = buckets.result()
        assert result.width <= 1e-3
        assert Fraction(result.low) <= oracle(y, oracles.exact(p)) <= Fraction(result.high)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("width", "cells", "ordered"),
    [
        pytest.param(1.0, 10, False, id="few cells"),
        pytest.param(1.0, 100, True, id="many cells"),
        pytest.param(1e-6, 100, False, id="many cells, most rows in one"),
    ],
)
def test_rows_are_ordered_only_if_many_cells_are_needed_and_each_has_few_rows(width, cells, ordered, weighted):
    rng = np.random.default_rng(0)
    p = np.concatenate([[0.0, 1.0], rng.random(8), 0.4 + width * rng.uniform(-0.4, 0.6, 40)])
    y, w = balanced_outcomes(p), rng.choice([1.0, 2.0], 50) if weighted else np.ones(50)
    c = w * (p - y)
    x, wc = (p, c) if weighted else (np.copysign(p, 0.5 - y), np.empty(0))
    plan, starts, bounds = np.array([[0.0, 0.0, 1.0, 0.0]]), np.array([0, 50]), np.empty((3, 2))[:, :1]
    module.kernel.refine_gathered(x, wc, starts, plan, np.array([cells]), float(c.sum()), 1.0, bounds)
    exact = oracles.atb_and_atb_l1_by_scan(oracles.exact(y), oracles.exact(p), oracles.exact(w))[1] * int(w.sum())
    value, low, high = bounds[:, 0]
    assert (low == high) == ordered
    assert low - 1e-12 <= exact <= high + 1e-12
    assert low <= value <= high
    assert high - low <= np.abs(c).sum() / cells


@pytest.mark.parametrize("shape", ["uniform", "cluster 1e-4 wide", "nested clusters", "half in a cluster"])
def test_atb_needs_no_more_cells_than_proved(shape, monkeypatch):
    """At most 1 / (2 * tolerance) divided by the number of buckets, and one for each bucket."""
    made = []
    kept = module._empty_cells
    monkeypatch.setattr(module, "_empty_cells", lambda count: made.append(count) or kept(count))
    rng = np.random.default_rng(0)
    p = np.repeat(SHAPES[shape](rng), 50)
    tolerance = 1 / (2 * len(p))
    tc.atb_approx(rng.random(len(p)) < p, p, tolerance=tolerance)
    assert made[0] == 256  # at least 1 / sqrt(2 * tolerance) = 142
    assert len(made) <= 2
    assert made[-1] <= 256 + 1 / (2 * tolerance) / 0.85 / 256 + 256


@pytest.mark.parametrize(("approximation", "exact"), [(tc.atb_approx, tc.atb), (tc.atb_l1_approx, tc.atb_l1)])
@pytest.mark.parametrize("shape", ["uniform", "rare", "one bucket", "ties"])
def test_many_rows(shape, approximation, exact):
    rng = np.random.default_rng(0)
    n = 300_000  # enough for two threads
    p = {
        "uniform": rng.random(n),
        "rare": rng.beta(1, 99, n),
        "one bucket": 0.5 + 1e-4 * rng.random(n),
        "ties": np.round(rng.random(n), 1),
    }[shape]
    y = rng.random(n) < p
    for tolerance in (1e-3, 1e-5, 1 / (2 * n)):
        result = approximation(y, p, tolerance=tolerance)
        assert exact(y, p) in result
        assert result.width <= tolerance


@pytest.mark.parametrize(
    ("approximation", "largest"), [(tc.atb_approx, 1 / (2 * N**2)), (tc.atb_l1_approx, 1 / (8 * N))]
)
def test_rows_are_sorted_only_for_tolerances_that_need_more_cells_than_rows(approximation, largest, monkeypatch):
    monkeypatch.setattr(module, "Sample", None)
    p = np.random.default_rng(0).random(N)
    assert approximation(p < 0.5, p, tolerance=1.01 * largest).width <= 1.01 * largest
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute"):  # Sample, which sorts, is called
        approximation(p < 0.5, p, tolerance=0.99 * largest)


@pytest.mark.parametrize(("approximation", "oracle"), APPROXIMATIONS)
def test_extreme_weights(approximation, oracle):
    y, p, w = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], [1e300, 1e220, 1e299, 1e300]
    exact = oracle(y, oracles.exact(p), oracles.exact(w))
    for tolerance in (1e-3, 0.05):
        result = approximation(y, p, tolerance=tolerance, sample_weight=w)
        assert Fraction(result.low) <= exact <= Fraction(result.high)


@pytest.mark.parametrize(
    ("tolerance", "error", "message"),
    [
        (0, ValueError, "`tolerance` must be finite and at least 1e-10; got 0.0"),
        (math.nan, ValueError, "`tolerance` must be finite and at least 1e-10; got nan"),
        (1e-12, ValueError, "`tolerance` must be finite and at least 1e-10; got 1e-12"),
        ("0.1", TypeError, "`tolerance` must be a number; got '0.1'"),
        (True, TypeError, "`tolerance` must be a number; got True"),
    ],
)
@pytest.mark.parametrize("approximation", [tc.atb_approx, tc.atb_l1_approx])
def test_bad_tolerance(approximation, tolerance, error, message):
    with pytest.raises(error, match=message):
        approximation([0, 1], [0.2, 0.7], tolerance=tolerance)
