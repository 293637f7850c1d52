"""Size of the error and comparison of two forecasters of many classes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import multiclass as oracle
from support.classes import draw_classes
from support.simulation import REPEATS, assert_covered
from support.strategies import examples

import truthcal as tc
from truthcal.core.class_rows import check_class_rows
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.inference.multiclass.error_size import _Bins, multiclass_error_size
from truthcal.inference.multiclass.slope import tempered

# --- size of the error ------------------------------------------------------------------------------------------------


@examples(30)
@given(seed=st.integers(0, 2**32), n=st.sampled_from([3, 30, 300]), k=st.sampled_from([3, 6]), weighted=st.booleans())
def test_estimate_against_the_definition(seed, n, k, weighted):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y, w = draw_classes(rng, tempered(p, 0.5)), rng.integers(1, 4, n).astype(float)
    rows = check_class_rows(y, p, w if weighted else None, range(k))
    cells = ClassCells.of(rows)
    found, bins = multiclass_error_size(cells, 0.95), _Bins.of(cells, 1.0)
    expected = oracle.error_estimate(y, bins.bin, p, w if weighted else np.ones(n))
    assert found.estimate == pytest.approx(min(expected, 1.0), rel=1e-9, abs=1e-9)
    if not math.isnan(found.low):
        assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0


def test_covariance_of_bins():
    """Of the sums w c / W of bins, if classes have given probabilities: from all pairs of a row's bins."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 50)
    rows = check_class_rows(draw_classes(rng, p), p, rng.random(50) + 0.5, range(3))
    bins = _Bins.of(ClassCells.of(rows), 1.0)
    q, expected = tempered(p, 0.7), np.zeros((len(bins.weight), len(bins.weight)))
    for i in range(50):
        v = np.diag(q[i]) - np.outer(q[i], q[i])
        expected[np.ix_(bins.bin[i], bins.bin[i])] += (rows.w[i] / rows.total) ** 2 * v
    np.testing.assert_allclose(bins.covariance(q), expected, rtol=1e-9, atol=1e-15)


def test_known_errors():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 20_000)
    shifted = 0.7 * p + 0.3 * p[:, [1, 2, 0]]
    found = tc.error_size(draw_classes(rng, shifted), p)
    order, total = np.argsort(p, axis=0), 0.0
    for k in range(3):
        error = (p - shifted)[order[:, k], k].reshape(100, -1).mean(axis=1)
        total += np.mean(error**2)
    assert found.low < math.sqrt(total / 2) < found.high
    assert tc.error_size(draw_classes(rng, p), p).low == 0.0


def test_no_events_are_no_certainty():
    """Two classes of 1 in 100 that do not happen in 30 rows: the error may be 0."""
    found = tc.error_size([0] * 30, [[0.98, 0.01, 0.01]] * 30, labels=[0, 1, 2])
    assert found.low == 0.0
    assert found.high >= found.estimate == pytest.approx(math.sqrt((0.02**2 + 2 * 0.01**2) / 2))


def test_intervals_that_do_not_exist():
    one = tc.error_size([0], [[0.5, 0.3, 0.2]], labels=[0, 1, 2])
    assert math.isnan(one.low)
    assert "an interval needs two rows" in str(one)
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 100)
    uneven = tc.error_size(draw_classes(rng, p), p, sample_weight=10.0 ** rng.uniform(-6, 6, 100))
    assert "a few rows have nearly all of the weight" in str(uneven)
    groups = np.r_[np.arange(20), np.zeros(80)]
    heavy = tc.error_size(draw_classes(rng, p), p, sample_weight=np.r_[1000.0, np.ones(99)], groups=groups)
    assert "a few groups have nearly all of the weight" in str(heavy)


def test_groups_of_one_row_change_little():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(4), 600)
    y = draw_classes(rng, tempered(p, 0.6))
    alone, one = tc.error_size(y, p), tc.error_size(y, p, groups=np.arange(600))
    assert one.estimate == pytest.approx(alone.estimate, rel=1e-9)
    assert (one.low, one.high) == pytest.approx((alone.low, alone.high), abs=0.01)
    # Each row three times: wider than if rows were independent.
    three = np.repeat(np.arange(600), 3)
    same, naive = tc.error_size(y[three], p[three], groups=three), tc.error_size(y[three], p[three])
    assert same.high - same.low > 1.2 * (naive.high - naive.low)


@pytest.mark.simulation
@pytest.mark.parametrize("slope", [0.6, 1.5])
def test_coverage_of_error_size(slope):
    rng = np.random.default_rng(25)
    p = rng.dirichlet(np.ones(3), 200_000)
    q, total = tempered(p, slope), 0.0
    for k in range(3):
        order = np.argsort(p[:, k])
        total += np.mean((p - q)[order, k].reshape(400, -1).mean(axis=1) ** 2)
    truth, hits = math.sqrt(total / 2), 0
    for _ in range(REPEATS):
        some = rng.choice(len(p), 600)
        hits += truth in tc.error_size(draw_classes(rng, q[some]), p[some], labels=range(3))
    assert_covered(hits, REPEATS, f"slope {slope}", 0.93)


# --- comparison -------------------------------------------------------------------------------------------------------


@examples(15)
@given(seed=st.integers(0, 2**32), weighted=st.booleans())
def test_values_of_a_comparison(seed, weighted):
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(3), 25), rng.dirichlet(np.ones(3), 25)
    y, w = draw_classes(rng, a), rng.integers(1, 4, 25).astype(float) if weighted else np.ones(25)
    found = tc.compare(y, a, b, sample_weight=w if weighted else None, labels=range(3))
    expected = [oracle.vector(y, p, w) for p in (a, b)]
    assert (found.a, found.b, found.difference) == pytest.approx((*expected, expected[0] - expected[1]))
    briers = [np.average(oracle.brier(y, p), weights=w) for p in (a, b)]
    assert (found.brier_a, found.brier_b) == pytest.approx(briers)
    assert found.brier_difference == pytest.approx(briers[0] - briers[1])
    assert found.low <= found.difference <= found.high
    assert found.measure == "multiclass_atb"
    assert "vector ATB" in str(found)


def test_brier_interval_is_that_of_paired_differences():
    rng = np.random.default_rng(4)
    a = rng.dirichlet(np.ones(3), 2000)
    b, y = tempered(a, 1.5), draw_classes(rng, a)
    found = tc.compare(y, a, b)
    differences = np.array(oracle.brier(y, a)) - oracle.brier(y, b)
    reach = 1.96 * differences.std(ddof=1) / math.sqrt(2000)
    assert found.brier_high - found.brier_low == pytest.approx(2 * reach, rel=0.01)


def test_comparison_of_equal_forecasters_and_of_one_row():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(3), 100)
    same = tc.compare(draw_classes(rng, p), p, p)
    assert same.difference == same.brier_difference == 0.0
    assert same.low <= 0.0 <= same.high
    one = tc.compare([0], p[:1], p[1:2], labels=range(3))
    assert math.isnan(one.low)
    assert math.isnan(one.pvalue)


def test_comparison_with_groups():
    rng = np.random.default_rng(6)
    a = rng.dirichlet(np.ones(3), 300)
    b, y = tempered(a, 2.0), draw_classes(rng, a)
    alone, one = tc.compare(y, a, b), tc.compare(y, a, b, groups=np.arange(300))
    assert one.n_groups == 300
    assert (one.brier_low, one.brier_high) == pytest.approx((alone.brier_low, alone.brier_high))
    assert one.difference == alone.difference
    three = np.repeat(np.arange(300), 3)
    same = tc.compare(y[three], a[three], b[three], groups=three)
    assert (same.brier_low, same.brier_high) == pytest.approx((alone.brier_low, alone.brier_high), rel=0.01)


@pytest.mark.simulation
@pytest.mark.parametrize("slopes", [(1.0, 2.0), (0.7, 1.0), (1.3, 0.8)])
def test_coverage_of_a_comparison(slopes):
    """Predictions with two slopes; the target is the expected difference for this number of rows."""
    rng, n = np.random.default_rng(26), 400
    truth = rng.dirichlet(np.ones(3), 40_000)
    targets = []
    for slope in slopes:
        p = tempered(truth, slope)
        c, total = p - truth, 0.0
        for k in range(3):
            order = np.argsort(-p[:, k])
            sums, x = np.cumsum(c[order], axis=0), np.append(p[order, k], 0.0)
            total += np.sum(-np.diff(x) * np.sum(sums**2, axis=1))
        pairs = (total - np.sum(c**2)) / len(p) / (len(p) - 1)
        own = np.mean(np.sum(c**2, axis=1) + 1.0 - np.sum(truth**2, axis=1))
        targets.append(((1.0 - 1.0 / n) * pairs + own / n, own / 2))
    difference = np.subtract(*targets)
    hits = np.zeros(2, int)
    for _ in range(REPEATS):
        q = truth[rng.choice(len(truth), n)]
        found = tc.compare(draw_classes(rng, q), tempered(q, slopes[0]), tempered(q, slopes[1]), labels=range(3))
        hits += [found.low <= difference[0] <= found.high, found.brier_low <= difference[1] <= found.brier_high]
    assert_covered(hits[0], REPEATS, "vector ATB")
    assert_covered(hits[1], REPEATS, "Brier score", 0.93)


def test_a_forecaster_compared_with_itself_has_no_difference():
    p = np.random.default_rng(5).dirichlet(np.ones(4), 200)
    y = np.random.default_rng(6).integers(0, 4, 200)
    for groups in (None, np.repeat(np.arange(50), 4)):
        found = tc.compare(y, p, p, groups=groups)
        assert (found.low, found.high, found.pvalue) == (0.0, 0.0, 1.0)
