"""The test for change against slow, obvious versions; its size where the error is constant but predictions drift."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import change as oracle
from scipy import special, stats
from support.simulation import REPEATS
from support.strategies import examples

from truthcal.inference.change import ChangeStatistic, WindowSums, detectable_change, run_change_test
from truthcal.inference.laws.quadratic_form import upper_quantile
from truthcal.inference.over_time import window_rows


def sums_of(rows):
    """The sums of rows (window, group, p, y, w) by window and group."""
    windows, groups = sorted({row[0] for row in rows}), sorted({row[1] for row in rows})
    shape = (len(windows), len(groups))
    columns = [np.zeros(shape) for _ in range(5)]
    for t, g, p, y, w in rows:
        for column, value in zip(columns, (1, w, w * w, w * (p - y), w * y), strict=True):
            column[windows.index(t), groups.index(g)] += value
    return WindowSums(*columns)


@st.composite
def small_rows(draw, weighted=False, tied=False):
    n = draw(st.integers(6, 10))
    windows, groups = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    rows = []
    for i in range(n):
        g = i % groups
        p = (g + (0.5 if tied else draw(st.sampled_from([0.25, 0.5, 0.75])))) / groups
        weight = draw(st.sampled_from([1.0, 2.0, 0.5])) if weighted else 1.0
        rows.append((draw(st.integers(0, windows - 1)) if i >= windows else i, g, p, draw(st.integers(0, 1)), weight))
    return rows


def has_noise(rows):
    return sum(oracle.variances(rows).values()) > 0


@examples(25)
@given(st.booleans().flatmap(lambda weighted: small_rows(weighted)))
def test_statistic_and_evidence_against_oracle(rows):
    if has_noise(rows):
        found = ChangeStatistic(sums_of(rows))
        assert found.observed == pytest.approx(oracle.value(oracle.all_terms(rows), rows), rel=1e-9, abs=1e-9)
        evidence = [oracle.value(terms, rows) for terms in oracle.date_terms(rows)]
        assert found.evidence.tolist() == pytest.approx(evidence, rel=1e-9, abs=1e-9)


@examples(15)
@given(small_rows(tied=True))
def test_eigenvalues_add_up_to_the_mean_over_all_placements_of_events(rows):
    if has_noise(rows):
        terms = oracle.all_terms(rows)
        values = [oracle.value(terms, rows, outcomes) for outcomes in oracle.placements(rows)]
        scales, _ = ChangeStatistic(sums_of(rows))._limit
        assert float(np.sum(scales)) == pytest.approx(np.mean(values), rel=1e-8, abs=1e-9)


def test_redraws_are_close_to_all_placements():
    rng = np.random.default_rng(3)
    cells = [(t, g) for t in range(3) for g in range(2) for _ in range(2)]
    rows = [(t, g, 0.3 + 0.4 * g, int(rng.random() < 0.3 + 0.4 * g), 1.0) for t, g in cells]
    terms = oracle.all_terms(rows)
    values = np.array([oracle.value(terms, rows, outcomes) for outcomes in oracle.placements(rows)])
    found = ChangeStatistic(sums_of(rows))
    exact = np.mean(values >= oracle.value(terms, rows) * (1 - 1e-9))
    assert found.redrawn_pvalue(found.observed) == pytest.approx(exact, abs=4 * math.sqrt(0.25 / 2000))


def test_limit_is_close_to_redraws_of_many_rows():
    rng = np.random.default_rng(0)
    p, t = rng.random(2000), np.repeat(np.arange(10), 200)
    sums = window_sums(rng.random(2000) < 0.8 * p, p, t)
    found = ChangeStatistic(sums)
    for chance in (0.5, 0.1, 0.02):
        threshold = upper_quantile(chance, found._limit[0])
        assert found.redrawn_pvalue(threshold) == pytest.approx(chance, abs=4.5 * math.sqrt(chance / 2000))


def window_sums(y, p, t, w=None):
    table = window_rows(y, p, t, "1", None, w).table
    return WindowSums.of(table.point_groups(range(len(table))), table.total().points())


def test_sums_of_windows_are_those_of_all_rows():
    rng = np.random.default_rng(1)
    p, t, w = rng.random(3000), rng.integers(0, 7, 3000), rng.exponential(size=3000)
    y = rng.random(3000) < p
    sums = window_sums(y, p, t, w)
    for k in range(7):
        inside = t == k
        assert sums.n[k].sum() == inside.sum()
        assert sums.weight[k].sum() == pytest.approx(w[inside].sum())
        assert sums.ww[k].sum() == pytest.approx((w[inside] ** 2).sum())
        assert sums.bias[k].sum() == pytest.approx((w * (p - y))[inside].sum())
    assert np.abs(sums.residual.sum(axis=0)).max() < 1e-9


def test_weights_of_one_change_nothing_and_scale_does_not_matter():
    rng = np.random.default_rng(2)
    p, t = rng.random(2000), np.repeat(np.arange(8), 250)
    y = rng.random(2000) < p
    plain = run_change_test(window_sums(y, p, t))
    assert run_change_test(window_sums(y, p, t, np.full(2000, 3.0))).pvalue == pytest.approx(plain.pvalue, rel=1e-9)
    twice = run_change_test(window_sums(np.tile(y, 2), np.tile(p, 2), np.tile(t, 2)))
    assert twice.pvalue < plain.pvalue or plain.pvalue > 0.5


def test_a_constant_error_is_no_change_and_a_change_is_found():
    rng = np.random.default_rng(4)
    p, t = rng.random(20_000), np.repeat(np.arange(20), 1000)
    assert run_change_test(window_sums(rng.random(20_000) < 0.5 * p, p, t)).pvalue > 0.01
    found = run_change_test(window_sums(rng.random(20_000) < np.where(t < 12, 1.0, 0.9) * p, p, t))
    assert found.pvalue < 1e-6
    assert found.place == 12


def test_many_windows_are_merged_for_the_p_value_only():
    rng = np.random.default_rng(5)
    p, t = rng.random(60_000), np.repeat(np.arange(300), 200)
    sums = window_sums(rng.random(60_000) < np.where(t < 200, p, 0.9 * p), p, t)
    merged = sums.merged(64)
    assert len(sums) == 300
    assert len(merged) == 64
    assert merged.bias.sum() == pytest.approx(sums.bias.sum())
    found = run_change_test(sums)
    assert found.pvalue < 1e-6
    assert abs(found.place - 200) <= 3


def test_no_test_without_information_or_overlap():
    few = run_change_test(window_sums([0, 1, 0, 1], [0.2, 0.8, 0.3, 0.7], [0, 0, 1, 1]))
    assert math.isnan(few.pvalue)
    assert few.method == "none"
    assert "too little information" in few.why
    rng = np.random.default_rng(6)
    p = np.concatenate([np.full(500, 0.2), np.full(500, 0.8)])
    apart = run_change_test(window_sums(rng.random(1000) < p, p, np.repeat([0, 1], 500)))
    assert "no two windows have similar predictions" in apart.why
    w = rng.pareto(1.1, 200) + 1
    p = rng.random(200)
    heavy = run_change_test(window_sums(rng.random(200) < p, p, np.repeat([0, 1], 100), w))
    assert "100 are needed" in heavy.why


def test_methods():
    rng = np.random.default_rng(7)
    for n, method in ((400, "exact"), (4000, "asymptotic")):
        p = rng.random(n)
        found = run_change_test(window_sums(rng.random(n) < p, p, np.arange(n) * 8 // n))
        assert found.method == method
        assert 0 < found.pvalue <= 1


def drifting(rng, n, windows):
    """Overconfident predictions that grow with time; the error is constant."""
    t = np.sort(rng.integers(0, windows, n))
    x = t / windows
    p = rng.beta(1 + 3 * x, 4 - 3 * x)
    truth = special.expit(0.5 * special.logit(np.clip(p, 1e-12, 1 - 1e-12)))
    return rng.random(n) < truth, p, t


@pytest.mark.simulation
@pytest.mark.parametrize(("n", "windows"), [(300, 6), (3000, 15)])
def test_size_if_predictions_drift_and_the_error_is_constant(n, windows):
    rng = np.random.default_rng(8)
    rejected = sum(run_change_test(window_sums(*drifting(rng, n, windows))).pvalue <= 0.05 for _ in range(REPEATS))
    assert stats.binom.sf(rejected - 1, REPEATS, 0.06) >= 1e-3, rejected


@pytest.mark.simulation
def test_detectable_shift_has_the_power():
    rng = np.random.default_rng(9)
    t = np.repeat(np.arange(12), 200)
    p = rng.random(2400)
    shift = detectable_change(window_sums(rng.random(2400) < p, p, t), 0.05)
    hits, count = 0, REPEATS
    for _ in range(count):
        p = rng.random(2400)
        y = rng.random(2400) < np.clip(p - shift * (t >= 6), 0, 1)
        hits += run_change_test(window_sums(y, p, t)).pvalue <= 0.05
    # Clipping at 0 takes away a little of the shift.
    assert stats.binom.cdf(hits, count, 0.75) >= 1e-3, hits
    assert stats.binom.sf(hits - 1, count, 0.87) >= 1e-3, hits
