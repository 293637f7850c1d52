"""Reliability curves and consistency bands: by loops over rows, and by what they promise under calibration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.simulation import REPEATS, assert_covered
from support.strategies import examples, rows, weighted_rows

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.core.summarize import summarize
from truthcal.measures.reliability import (
    MOST_ENTRIES,
    STRATEGIES,
    consistency_band,
    consistency_band_of,
    reliability_curve,
    reliability_curve_of,
)
from truthcal.plots.reliability import _pools_outside_band

BINNED = ("quantile", "uniform")
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def some_rows(n=300, seed=0, ties=False, wrong=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    if ties:
        p = np.round(p, 1)
    return (rng.random(n) < p**wrong).astype(int), p


# --- oracles ----------------------------------------------------------------------------------------------------------


def grouped(y, p, w):
    """The different predictions, increasing, with their weight and positive weight."""
    values = sorted(set(p))
    mass = [math.fsum(wi for pi, wi in zip(p, w, strict=True) if pi == v) for v in values]
    positive = [math.fsum(wi * yi for pi, yi, wi in zip(p, y, w, strict=True) if pi == v) for v in values]
    return values, mass, positive


def min_max_isotonic(y, p, w):
    """Isotonic regression by its formula: the largest over a <= i of the smallest over b >= i of the mean of a..b."""
    values, mass, positive = grouped(y, p, w)
    many = range(len(values))

    def mean(a, b):
        return math.fsum(positive[a : b + 1]) / math.fsum(mass[a : b + 1])

    return values, [max(min(mean(a, b) for b in many if b >= i) for a in many if a <= i) for i in many]


def uniform_bin(p, n_bins):
    """The bin k with k/n <= p < (k + 1)/n, the last one closed."""
    return max(k for k in range(n_bins) if k / n_bins <= p)


def quantile_bin(p, w, n_bins):
    """Per row: floor(n_bins * m), m the share of weight below it plus half of that of its ties."""
    total = math.fsum(w)
    out = []
    for value in p:
        below = math.fsum(wi for pi, wi in zip(p, w, strict=True) if pi < value)
        own = math.fsum(wi for pi, wi in zip(p, w, strict=True) if pi == value)
        out.append(min(math.floor(n_bins * ((below + own / 2) / total)), n_bins - 1))
    return out


def binned(y, p, w, bins):
    """(mean prediction, mean outcome, count, share) of each bin that holds rows, by loops."""
    out = []
    for k in sorted(set(bins)):
        own = [(yi, pi, wi) for yi, pi, wi, b in zip(y, p, w, bins, strict=True) if b == k]
        mass = math.fsum(wi for *_, wi in own)
        mean_p, mean_y = (math.fsum(row[i] * row[2] for row in own) / mass for i in (1, 0))
        out.append(
            (mean_p, mean_y, len(own), mass / math.fsum(w), min(pi for _, pi, _ in own), max(pi for _, pi, _ in own))
        )
    return out


def law_of_count(p):
    """Chances of 0, 1, ..., n positives."""
    law = np.ones(1)
    for chance in p:
        law = np.convolve(law, [1 - chance, chance])
    return law


def close(expected):
    return pytest.approx(expected, rel=1e-11, abs=1e-13)


# --- against the definitions ------------------------------------------------------------------------------------------


@given(weighted_rows(max_size=9))
def test_isotonic_pools_against_the_min_max_formula(data):
    y, p, w = data
    p = [pi + 0.0 for pi in p]
    curve = reliability_curve(y, p, sample_weight=w)
    values, fit = min_max_isotonic(y, p, w)
    assert (np.diff(curve.mean_true) > 0).all()
    for value, expected in zip(values, fit, strict=True):
        (pool,) = np.flatnonzero((curve.left <= value) & (value <= curve.right))
        assert curve.mean_true[pool] == close(expected)
    for pool in range(len(curve.left)):
        own = [(yi, pi, wi) for yi, pi, wi in zip(y, p, w, strict=True) if curve.left[pool] <= pi <= curve.right[pool]]
        mass = math.fsum(wi for *_, wi in own)
        assert curve.mean_proba[pool] == close(math.fsum(pi * wi for _, pi, wi in own) / mass)
        assert curve.count[pool] == len(own)
        assert curve.weight[pool] == close(mass / math.fsum(w))
        assert {curve.left[pool], curve.right[pool]} <= set(p)
    assert curve.low is None
    assert curve.high is None
    assert curve.pools == len(curve.left)


@pytest.mark.parametrize("strategy", BINNED)
@given(data=weighted_rows(max_size=10), n_bins=st.sampled_from([1, 2, 3, 8, 10, 15]))
@examples(60)
def test_bins_against_loops(strategy, data, n_bins):
    y, p, w = data
    p = [pi + 0.0 for pi in p]
    w = [round(8 * wi) / 8 + 0.125 for wi in w]  # so that shares of weight at the edge of a bin are the same in any sum
    bins = [uniform_bin(pi, n_bins) for pi in p] if strategy == "uniform" else quantile_bin(p, w, n_bins)
    curve = reliability_curve(y, p, strategy=strategy, n_bins=n_bins, sample_weight=w)
    expected = binned(y, p, w, bins)
    assert len(curve.left) == len(expected) == n_bins - curve.empty
    for k, (mean_p, mean_y, count, share, low, high) in zip(range(len(expected)), expected, strict=True):
        assert curve.mean_proba[k] == close(mean_p)
        assert curve.mean_true[k] == close(mean_y)
        assert curve.count[k] == count
        assert curve.weight[k] == close(share)
        edges = (low, high) if strategy == "quantile" else tuple((sorted(set(bins))[k] + d) / n_bins for d in (0, 1))
        assert (curve.left[k], curve.right[k]) == edges
    assert curve.straddling == 0.0


@pytest.mark.parametrize("strategy", BINNED)
@pytest.mark.parametrize("n_bins", [1, 7, 15, 100])
def test_mean_gap_is_the_binned_ece(strategy, n_bins):
    y, p = some_rows(500, ties=n_bins == 7)
    curve = reliability_curve(y, p, strategy=strategy, n_bins=n_bins)
    gap = float(np.sum(curve.weight * np.abs(curve.mean_proba - curve.mean_true)))
    assert gap == close(tc.binned_ece(y, p, n_bins=n_bins, strategy=strategy))


def test_empty_bins_are_left_out_and_show_in_the_edges():
    curve = reliability_curve([0, 1, 1], [0.05, 0.95, 1.0], strategy="uniform", n_bins=10)
    assert curve.left.tolist() == [0.0, 0.9]
    assert curve.right.tolist() == [0.1, 1.0]
    assert curve.empty == 8
    assert curve.count.tolist() == [1, 2]


def test_equal_predictions_are_one_entry():
    curve = reliability_curve([0, 1, 0, 1, 0], [0.5] * 5, strategy="quantile", n_bins=5)
    assert curve.count.tolist() == [5]
    assert reliability_curve([1], [0.3]).mean_true.tolist() == [1.0]


# --- properties -------------------------------------------------------------------------------------------------------


def assert_same(a, b, but=()):
    for name, column in a.table().items():
        if name not in but:
            np.testing.assert_allclose(b.table()[name], column, rtol=1e-11, atol=1e-12, err_msg=name)


@each_strategy
@given(data=rows(min_size=2, max_size=20), seed=st.integers(0, 5))
@examples(40)
def test_row_order_does_not_matter(strategy, data, seed):
    y, p = map(np.asarray, data)
    order = np.random.default_rng(seed).permutation(len(p))
    assert_same(reliability_curve(y, p, strategy=strategy), reliability_curve(y[order], p[order], strategy=strategy))


@each_strategy
@given(data=rows(max_size=15), seed=st.integers(0, 5))
@examples(40)
def test_weight_is_repetition_for_the_means(strategy, data, seed):
    """Not for the band: one row of weight 2 is one observation."""
    y, p = map(np.asarray, data)
    w = np.random.default_rng(seed).integers(0, 4, len(p)) + (np.arange(len(p)) == 0)
    weighted = reliability_curve(y, p, strategy=strategy, sample_weight=w)
    repeated = reliability_curve(np.repeat(y, w), np.repeat(p, w), strategy=strategy)
    assert_same(weighted, repeated, but=("count", "low", "high"))


@each_strategy
@given(data=weighted_rows(max_size=15), n_bins=st.sampled_from([1, 2, 5, 15]))
@examples(60)
def test_sketch_is_rows_where_a_bucket_holds_one_prediction(strategy, data, n_bins):
    y, p, w = data
    p = [round(40 * pi) / 40 for pi in p]
    w = [round(8 * wi) / 8 + 0.125 for wi in w]
    sketch = tc.Sketch().update(y, p, w)
    from_sketch = reliability_curve(sketch, strategy=strategy, n_bins=n_bins)
    from_rows = reliability_curve(y, p, sample_weight=w, strategy=strategy, n_bins=n_bins)
    assert_same(from_rows, from_sketch)
    assert from_sketch.sketched
    assert from_sketch.straddling == 0.0


@pytest.mark.parametrize("n_bins", [1, 16, 64, 1024 // 2])
def test_uniform_bins_of_a_sketch_are_exact_where_they_divide_the_buckets(n_bins):
    y, p = some_rows(20_000)
    from_rows = reliability_curve(y, p, strategy="uniform", n_bins=n_bins)
    from_sketch = reliability_curve(tc.Sketch(1024).update(y, p), strategy="uniform", n_bins=n_bins)
    assert from_sketch.straddling == 0.0
    assert_same(from_rows, from_sketch, but=("low", "high"))
    # The band takes rows of few at their buckets' means, which moves a quantile by one count here and there.
    for name in ("low", "high"):
        off = np.abs(getattr(from_rows, name) - getattr(from_sketch, name)) * from_rows.count
        assert off.max() < 1.001
        assert np.mean(off > 0.5) < 0.02


def test_buckets_across_an_edge_go_to_one_side_and_are_counted():
    sketch = tc.Sketch(8).update([0, 1, 1, 0], [0.30, 0.34, 0.36, 0.9])  # one edge of three bins, 1/3, is in a bucket
    curve = reliability_curve(sketch, strategy="uniform", n_bins=3)
    assert curve.straddling == 0.75
    assert curve.count.tolist() == [3, 1]
    assert curve.left.tolist() == [1 / 3, 2 / 3]
    assert "0.75 of the weight in buckets that straddle a bin edge" in str(curve)
    assert sum(reliability_curve(sketch, strategy="uniform", n_bins=100).count) == 4  # more bins than buckets


def test_a_sketch_of_many_rows_is_close_to_the_rows():
    y, p = some_rows(200_000, wrong=1.2)
    sketch = tc.Sketch().update(y, p)
    exact, close_by = reliability_curve(y, p), reliability_curve(sketch)
    at = np.linspace(0.01, 0.99, 99)
    difference = np.interp(at, exact.mean_proba, exact.mean_true) - np.interp(
        at, close_by.mean_proba, close_by.mean_true
    )
    assert np.abs(difference).max() < 0.03  # where one of them steps up a little earlier
    assert np.abs(difference).mean() < 0.002
    for strategy in BINNED:
        exact, close_by = (reliability_curve(*data, strategy=strategy) for data in ((y, p), (sketch,)))
        np.testing.assert_allclose(close_by.mean_proba, exact.mean_proba, atol=1e-3)
        np.testing.assert_allclose(close_by.mean_true, exact.mean_true, atol=3e-3)


def test_one_sample_serves_all():
    y, p = some_rows()
    assert_same(reliability_curve(y, p), reliability_curve_of(Sample.of(y, p)))


# --- how many entries -------------------------------------------------------------------------------------------------


def test_never_more_than_a_thousand_entries():
    n = 30_000
    p = (np.arange(n) + 0.5) / n
    curve = reliability_curve(p**2, p)  # fractions that rise with every row: n pools
    assert 900 < len(curve.left) <= MOST_ENTRIES
    assert curve.pools == n
    assert curve.count.sum() == n
    assert (np.diff(curve.mean_true) > 0).all()
    assert (curve.left[1:] > curve.right[:-1]).all()
    assert curve.count[0] < 5 < np.median(curve.count)  # finest at the ends
    np.testing.assert_allclose(curve.mean_true, curve.mean_proba**2, atol=1e-5)
    assert "(30,000 rows; merged from 30,000 pools)" in str(curve)
    assert len(reliability_curve(p**2, p, strategy="quantile", n_bins=1000).left) == 1000


def test_thinning_leaves_room_for_light_points():
    n = 5000
    p = (np.arange(n) + 0.5) / n
    w = np.where(np.arange(n) < 3, 1e6, 1.0)
    curve = reliability_curve(p**2, p, sample_weight=w)
    assert 400 < len(curve.left) <= MOST_ENTRIES
    assert curve.count.max() < 50


def test_calibrated_rows_have_few_pools():
    y, p = some_rows(1_000_000)
    curve = reliability_curve(y, p)
    assert 50 < curve.pools == len(curve.left) < 500
    assert (np.abs(curve.mean_true - curve.mean_proba) < 0.1).all()


# --- the band of bins -------------------------------------------------------------------------------------------------


@given(rows(max_size=25), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_band_of_few_rows_is_that_of_the_full_law(data, level):
    y, p = data
    curve = reliability_curve(y, p, strategy="uniform", n_bins=1, confidence_level=level)
    law, n = law_of_count(p), len(p)
    low, high = round(curve.low[0] * n), round(curve.high[0] * n)
    assert curve.low[0] == low / n
    assert curve.high[0] == high / n
    tail = (1 - level) / 2
    assert law[:low].sum() <= tail + 1e-12 < law[: low + 1].sum() + 2e-12  # no larger low would do
    assert law[high + 1 :].sum() <= tail + 1e-12 < law[high:].sum() + 2e-12


@pytest.mark.parametrize("n", [501, 1000, 3000])
@pytest.mark.parametrize("shape", ["one chance", "narrow", "wide", "rare", "near 1", "far apart", "hardly in doubt"])
def test_band_of_many_rows_keeps_its_level(n, shape):
    rng = np.random.default_rng(n)
    p = {
        "one chance": np.full(n, 0.37),
        "narrow": 0.4 + rng.random(n) / 15,
        "wide": rng.random(n),
        "rare": rng.beta(1, 200, n),
        "near 1": 1 - rng.beta(1, 30, n),
        "far apart": np.where(rng.random(n) < 0.5, 0.02, 0.95),
        "hardly in doubt": np.where(rng.random(n) < 0.5, 0.001, 0.995),  # the case that the Notes make an exception of
    }[shape]
    law, steps = law_of_count(p), np.arange(n + 1)
    for level in (0.9, 0.95, 0.99):
        curve = reliability_curve(np.arange(n) % 2, p, strategy="uniform", n_bins=1, confidence_level=level)
        low, high = round(curve.low[0] * n), round(curve.high[0] * n)
        assert law[(steps < low) | (steps > high)].sum() < 1 - level + (0.03 if shape == "hardly in doubt" else 0.005)
        narrower = law[steps <= low].sum(), law[steps >= high].sum()
        assert shape == "hardly in doubt" or min(narrower) > 0.2 * (1 - level)  # no wider than it must be


def test_band_of_one_chance_is_scipys_binomial():
    from scipy.stats import binom

    for n in (3, 499, 501, 20_000, 1_000_000):
        for p in (1e-7, 0.003, 0.5, 0.98):
            curve = reliability_curve(np.arange(n) % 2, np.full(n, p), strategy="quantile")
            expected = binom.ppf([0.025, 0.975], n, p) / n
            assert [curve.low[0], curve.high[0]] == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.simulation
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_band_of_few_unequal_weights_keeps_its_level_on_average(n, spread):
    """By going through all outcomes. What the Notes say: on average 1 to 2%, in some bins more than 5%, at most 16%."""
    rng = np.random.default_rng(n)
    y = np.array(list(itertools.product((0, 1), repeat=n)))
    outside = []
    for _ in range(150):
        p, w = rng.beta(0.7, 1.5, n), np.exp(spread * rng.normal(size=n))
        curve = reliability_curve(np.ones(n), p, strategy="uniform", n_bins=1, sample_weight=w)
        share, chance = y @ w / w.sum(), np.prod(np.where(y == 1, p, 1 - p), axis=1)
        outside.append(chance[(share < curve.low[0] - 1e-12) | (share > curve.high[0] + 1e-12)].sum())
    assert np.mean(outside) < 0.025
    assert np.mean(np.array(outside) > 0.05) < 0.15
    assert max(outside) < 0.2


@pytest.mark.simulation
@pytest.mark.parametrize("n", [100, 1000])
def test_band_of_many_unequal_weights_keeps_its_level(n):
    rng = np.random.default_rng(n)
    outside = []
    for _ in range(20):
        p, w = rng.beta(0.7, 1.5, n), rng.exponential(size=n) + 0.01
        curve = reliability_curve(np.ones(n), p, strategy="uniform", n_bins=1, sample_weight=w)
        share = (rng.random((1000, n)) < p) @ w / w.sum()
        outside.append(np.mean((share < curve.low[0]) | (share > curve.high[0])))
    assert 0.03 < np.mean(outside) < 0.05
    assert max(outside) < 0.075  # 3.6 standard errors of 1000 draws


@pytest.mark.simulation
def test_band_holds_calibrated_bins_in_a_simulation():
    rng = np.random.default_rng(0)
    inside = total = 0
    for _ in range(200):
        p = rng.random(150)
        curve = reliability_curve(rng.random(150) < p, p, strategy="uniform")
        inside += int(np.sum((curve.low <= curve.mean_true) & (curve.mean_true <= curve.high)))
        total += len(curve.left)
    assert 0.95 <= inside / total < 0.995


def test_equal_weights_have_the_band_of_no_weights():
    y, p = some_rows(200)
    for strategy in BINNED:
        plain = reliability_curve(y, p, strategy=strategy)
        assert_same(plain, reliability_curve(y, p, strategy=strategy, sample_weight=np.full(200, 0.3)))


def test_certain_predictions_have_no_band():
    curve = reliability_curve([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], strategy="uniform", n_bins=2)
    assert curve.low.tolist() == curve.high.tolist() == [0.0, 1.0]
    many = reliability_curve([0, 1] * 400, [0.0, 1.0] * 400, strategy="uniform", n_bins=1)
    assert many.low.tolist() == many.high.tolist() == [0.5]
    weighted = reliability_curve([0, 1], [0.0, 1.0], strategy="uniform", n_bins=1, sample_weight=[1, 3])
    assert weighted.low.tolist() == weighted.high.tolist() == [0.75]
    below_one = float(np.nextafter(1.0, 0.0))
    tiny = reliability_curve([0] * 600, [5e-324] * 300 + [below_one] * 300, strategy="uniform", n_bins=2)
    assert (tiny.low <= tiny.high).all()
    assert np.isfinite(tiny.low).all()


# --- the band of isotonic curves --------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "ties"), [(20, False), (400, True), (3000, False)])
def test_consistency_band_holds_calibrated_curves(n, ties, weighted):
    """The fit to all rows, at the predictions of the band, in new outcomes: inside 95% of the time at each."""
    rng = np.random.default_rng(n)
    p = np.round(rng.random(n), 2 if ties else 16)
    w = rng.exponential(size=n) + 0.1 if weighted else None
    band = consistency_band(p, rng=1, sample_weight=w, n_resamples=1999)
    assert (np.diff(band.low) >= 0).all()
    assert (np.diff(band.high) >= 0).all()
    at = np.linspace(0, len(band.q) - 1, 9).astype(int)
    inside = np.zeros(len(at))
    for _ in range(400):
        curve = reliability_curve(rng.random(n) < p, p, sample_weight=w)
        pool = np.searchsorted(curve.left, band.q[at], side="right") - 1
        fit = curve.mean_true[pool]
        inside += (band.low[at] - 1e-9 <= fit) & (fit <= band.high[at] + 1e-9)
    assert (inside / 400 > 0.91).all()
    assert 0.94 < np.mean(inside / 400) < (0.999 if n == 20 else 0.98)


def leaves(curve, band):
    """Whether the curve is outside the band at any of its points, by a loop over pools and points."""
    for q, low, high in zip(band.q, band.low, band.high, strict=True):
        for left, right, mean in zip(curve.left, curve.right, curve.mean_true, strict=True):
            if left <= q <= right and not low - 1e-9 <= mean <= high + 1e-9:
                return True
    return False


@pytest.mark.parametrize("sketched", [False, True])
def test_curves_of_weighted_rare_events_may_start_at_exactly_0(sketched):
    """Weighted points without events once had a tiny weight of them, so that the band excluded 0 in most samples."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        p, w = rng.beta(1, 49, 8000), rng.lognormal(0.0, 1.2, 8000)
        y = (rng.random(8000) < p).astype(int)
        summary = tc.Sketch().update(y, p, w) if sketched else Sample.of(y, p, w)
        mirrored = tc.Sketch().update(1 - y, 1.0 - p, w) if sketched else Sample.of(1 - y, 1.0 - p, w)
        assert reliability_curve_of(summary).mean_true[0] == 0.0 == consistency_band_of(summary, rng=0).low[0]
        assert consistency_band_of(summary, rng=0, simultaneous=True).low[0] == 0.0
        assert reliability_curve_of(mirrored).mean_true[-1] == pytest.approx(1.0, rel=0, abs=1e-15)
        assert consistency_band_of(mirrored, rng=0).high[-1] == 1.0


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["rare", "rarer", "uniform"])
def test_simultaneous_band_holds_whole_curves_of_weighted_rows(kind):
    """More than 1,000 different predictions, which are merged."""
    rng, outside = np.random.default_rng(5), 0
    for seed in range(REPEATS):
        p = {
            "rare": lambda: rng.beta(1, 49, 8000),
            "rarer": lambda: 1 / (1 + np.exp(6 - 1.5 * rng.normal(size=3000))),
            "uniform": lambda: rng.random(2000),
        }[kind]()
        w = rng.lognormal(0.0, 1.2, len(p))
        curve = reliability_curve(rng.random(len(p)) < p, p, sample_weight=w)
        band = consistency_band(p, rng=seed, simultaneous=True, sample_weight=w)
        outside += len(_pools_outside_band(curve, band)[0]) > 0
    assert_covered(REPEATS - outside, REPEATS, kind)


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["uniform", "ties", "rare"])
def test_simultaneous_band_holds_whole_calibrated_curves(kind):
    """At most 5% of calibrated samples leave it anywhere; half of them and more leave the other band somewhere."""
    rng = np.random.default_rng(3)
    outside = {True: 0, False: 0}
    for seed in range(400):
        p = {
            "uniform": lambda: rng.random(200),
            "ties": lambda: rng.choice(np.arange(1, 20) / 20, 500),
            "rare": lambda: np.round(0.01 * np.exp(rng.normal(0, 0.8, 3000)), 3).clip(0, 1),
        }[kind]()
        curve = reliability_curve(rng.random(len(p)) < p, p)
        for whole in outside:
            outside[whole] += leaves(curve, consistency_band(p, rng=seed, simultaneous=whole))
    assert 0.02 < outside[True] / 400 < 0.08  # 5% plus or minus three standard errors
    assert outside[False] / 400 > 0.3


def grouped_rows(kind, rng):
    """Calibrated predictions whose errors depend on each other in groups, as outcomes, predictions and groups."""
    from scipy.stats import norm

    if kind == "in-game":  # one outcome for each game; predictions are a random walk towards it
        time, start = np.linspace(0.0, 0.95, 20), rng.normal(0, 0.5, (400, 1))
        walk = start + np.cumsum(np.sqrt(np.diff(time, prepend=0.0)) * rng.normal(size=(400, 20)), axis=1)
        won = walk[:, -1] + np.sqrt(1 - time[-1]) * rng.normal(size=400) > 0
        return np.repeat(won, 20), norm.cdf(walk / np.sqrt(1 - time)).ravel(), np.repeat(np.arange(400), 20)
    n_groups, size, dependence, spread = {
        "50 x 40": (50, 40, 0.5, 0.02),
        "100 x 20": (100, 20, 0.5, 0.02),
        "200 x 10": (200, 10, 0.5, 0.02),
        "varied": (50, 40, 0.5, 1.0),
        "rare": (400, 10, 0.5, 0.02),
        "uneven": (100, 20, 0.5, 0.02),
        "independent": (200, 10, 0.0, 0.02),
    }[kind]
    sizes = np.full(n_groups, size)
    if kind == "uneven":
        shares = np.exp(rng.normal(size=n_groups))
        sizes = np.maximum(np.rint(n_groups * size * shares / shares.sum()), 1).astype(int)
    group = np.repeat(np.arange(n_groups), sizes)
    p = spread * rng.random(len(group)) + (1 - spread) * rng.random(n_groups)[group]
    p = 0.04 * p if kind == "rare" else p
    shared, own = rng.normal(size=n_groups)[group], rng.normal(size=len(group))
    return norm.cdf(np.sqrt(dependence) * shared + np.sqrt(1 - dependence) * own) < p, p, group


@pytest.mark.simulation
@pytest.mark.parametrize(
    "kind", ["50 x 40", "100 x 20", "200 x 10", "varied", "in-game", "rare", "uneven", "independent"]
)
def test_simultaneous_band_of_groups_holds_whole_calibrated_curves(kind):
    """About 5% of calibrated samples leave it; with dependent rows, many more leave the band of independent rows."""
    rng, outside = np.random.default_rng(5), {"groups": 0, "rows": 0}
    for seed in range(150):
        y, p, group = grouped_rows(kind, rng)
        for name, groups in (("groups", group), ("rows", None))[: 2 if seed < 40 else 1]:
            summary = summarize(y, p, groups=groups)
            band = consistency_band_of(summary, n_resamples=399, rng=seed, simultaneous=True)
            outside[name] += len(_pools_outside_band(reliability_curve_of(summary), band)[0]) > 0
    # 5% plus or minus three standard errors of 1.8%; few large groups know their dependence less well.
    assert 1 <= outside["groups"] <= (22 if kind == "uneven" else 15)
    assert kind == "independent" or outside["rows"] / 40 > 0.1  # 22% and more were seen


def test_grouped_band_goes_from_the_first_to_the_last_prediction():
    rng = np.random.default_rng(0)
    p, group = rng.random(2000), np.arange(2000) // 10
    summary = summarize(rng.random(2000) < p, p, groups=group)
    curve, band = reliability_curve_of(summary), consistency_band_of(summary, rng=0, simultaneous=True)
    assert (band.q[0], band.q[-1]) == (curve.left[0], curve.right[-1]) == (p.min(), p.max())
    assert (band.low[0], band.high[-1]) == (band.low[1], band.high[-2])


def test_grouped_band_is_that_of_independent_rows_if_each_row_is_a_group():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < p
    alone, grouped = (consistency_band_of(summarize(y, p, groups=groups), rng=0) for groups in (None, np.arange(4000)))
    at = np.linspace(0.1, 0.9, 30)
    width = [np.interp(at, band.q, band.high) - np.interp(at, band.q, band.low) for band in (alone, grouped)]
    assert 0.9 < np.mean(width[1]) / np.mean(width[0]) < 1.2
    twice = summarize(np.repeat(y, 4), np.repeat(p, 4), groups=np.repeat(np.arange(4000), 4))
    wide = consistency_band_of(twice, rng=0)  # each row four times knows no more than once
    assert 0.9 < np.mean(np.interp(at, wide.q, wide.high) - np.interp(at, wide.q, wide.low)) / np.mean(width[0]) < 1.2


@pytest.mark.parametrize("weighted", [False, True])
def test_simultaneous_band_is_wider_and_rises(weighted):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    w = rng.random(300) + 0.1 if weighted else None
    each, whole = (consistency_band(p, rng=0, sample_weight=w, simultaneous=flag) for flag in (False, True))
    assert (each.simultaneous, whole.simultaneous) == (False, True)
    assert (np.diff(whole.low) >= 0).all()
    assert (np.diff(whole.high) >= 0).all()
    assert (whole.low >= 0).all()
    assert (whole.high <= 1).all()
    assert np.mean(whole.low <= each.low) > 0.99
    assert np.mean(whole.high >= each.high) > 0.99
    assert "of the whole isotonic curve at 300 predictions" in str(whole)
    assert "of the isotonic curve" in str(each)
    middle = slice(100, 200)
    assert 1.2 < np.mean((whole.high - whole.low)[middle]) / np.mean((each.high - each.low)[middle]) < 2.5


def test_simultaneous_band_of_one_prediction_is_binomial():
    from scipy.stats import binom

    band = consistency_band(np.full(400, 0.3), n_resamples=20_000, rng=0, simultaneous=True)
    assert [band.low[0], band.high[0]] == pytest.approx(binom.ppf([0.025, 0.975], 400, 0.3) / 400, abs=0.006)


def test_simultaneous_band_excludes_what_cannot_happen():
    """Predictions of 0 and 1 have a band of one point, however uncertain the others are."""
    band = consistency_band([0.0] * 60 + [0.5] * 60 + [1.0] * 60, rng=0, simultaneous=True)
    assert (band.low[0], band.high[0], band.low[2], band.high[2]) == (0.0, 0.0, 1.0, 1.0)
    assert 0.25 < band.low[1] < 0.45 < 0.55 < band.high[1] < 0.75


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_simultaneous_ranges_of_bins_have_the_level_of_independent_bins(strategy):
    y, p = some_rows(500)
    p = p / 2  # half of the uniform bins are empty
    for arguments in ((y, p), (tc.Sketch(64).update(y, p),)):
        whole = reliability_curve(*arguments, strategy=strategy, n_bins=8, simultaneous=True)
        level = 0.95 ** (1 / len(whole.count))
        each = reliability_curve(*arguments, strategy=strategy, n_bins=8, confidence_level=level)
        assert len(whole.count) == (4 if strategy == "uniform" else 8)
        assert whole.confidence_level == 0.95
        np.testing.assert_array_equal(whole.low, each.low)
        np.testing.assert_array_equal(whole.high, each.high)
        assert str(whole).endswith("95% band of calibrated predictions, which holds for all bins at once.")


def test_simultaneous_is_true_or_false():
    with pytest.raises(TypeError, match=r"`simultaneous` must be True or False; got 1\."):
        consistency_band([0.2, 0.7], simultaneous=1)
    with pytest.raises(TypeError, match="`simultaneous` must be True or False; got 'yes'"):
        reliability_curve([0, 1], [0.2, 0.7], strategy="uniform", simultaneous="yes")


def test_consistency_band_of_a_sketch_is_that_of_the_rows():
    _, p = some_rows(30_000)
    of_rows = consistency_band(p, rng=0)
    of_sketch = consistency_band(tc.Sketch().update(np.zeros(len(p)), p), rng=0)
    at = np.linspace(0.02, 0.98, 49)
    for name in ("low", "high"):
        a, b = (np.interp(at, band.q, getattr(band, name)) for band in (of_rows, of_sketch))
        assert np.abs(a - b).max() < 0.02
        assert abs(np.mean(a - b)) < 0.002
    assert of_sketch.n == of_rows.n == 30_000


def test_consistency_band_of_one_prediction_is_binomial():
    from scipy.stats import binom

    band = consistency_band(np.full(50, 0.3), n_resamples=20_000, rng=0)
    assert [band.low[0], band.high[0]] == pytest.approx(binom.ppf([0.025, 0.975], 50, 0.3) / 50)
    heavy = consistency_band([0.3, 0.3], sample_weight=[1, 1e-6], rng=0)
    assert [heavy.low[0], heavy.high[0]] == pytest.approx([0, 1], abs=1e-6)


def test_consistency_band_with_nothing_in_doubt():
    band = consistency_band([0.0, 1.0, 1.0, 0.0], rng=0)
    assert band.low.tolist() == band.high.tolist() == band.q.tolist() == [0.0, 1.0]
    sketch = tc.Sketch(1).update([0, 1, 1], [0.0, 1.0, 1.0])  # one bucket with both, and no chance
    band = consistency_band(sketch, rng=0)
    assert band.low == pytest.approx(band.q, abs=1e-6)
    assert band.high == pytest.approx(band.q, abs=1e-6)


def test_consistency_band_is_bounded_and_repeatable():
    _, p = some_rows(20_000)
    one, two = (consistency_band(p, n_resamples=99, rng=7) for _ in range(2))
    assert len(one.q) <= MOST_ENTRIES
    assert (one.low == two.low).all()
    assert (consistency_band(p, n_resamples=99, rng=np.random.default_rng(7)).high == one.high).all()
    assert one.q[0] < 2e-3
    assert one.q[-1] > 1 - 2e-3
    wide = consistency_band(p, n_resamples=99, rng=7, confidence_level=0.5)
    assert (wide.high - wide.low).mean() < (one.high - one.low).mean()


# --- printing ---------------------------------------------------------------------------------------------------------


def test_curves_print_in_words():
    y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9]
    assert str(reliability_curve(y, p)) == (
        "Mean gap of 0.1333 between predictions and frequencies in 3 isotonic pools (6 rows), largest part from 0.7 to 0.9 (too low by 0.2)."
    )
    assert repr(reliability_curve(y, p, strategy="uniform", n_bins=4)) == (
        "Mean gap of 0.2333 between predictions and frequencies in 4 bins of equal width (6 rows), largest part from 0.25 to 0.5 (too low by 0.7); "
        "0 of 4 outside the 95% band of calibrated predictions."
    )
    curve = reliability_curve(tc.Sketch().update(y, p), strategy="quantile", n_bins=9, confidence_level=0.3)
    assert str(curve) == (
        "Mean gap of 0.3333 between predictions and frequencies in 6 bins of about equal weight (6 rows of a sketch; 3 empty bins left out), "
        "largest part at 0.3 (too low by 0.7); 1 of 6 outside the 30% band of calibrated predictions."
    )
    assert (
        str(reliability_curve([0], [0.0]))
        == "Mean gap of 0 between predictions and frequencies in 1 isotonic pool (1 row)."
    )
    assert str(consistency_band(p, rng=0)).startswith(
        "95% consistency band of the isotonic curve at 6 predictions (6 rows): median width "
    )


def test_curves_make_columns():
    y, p = some_rows(50)
    columns = ["left", "right", "mean_proba", "mean_true", "count", "weight"]
    curve = reliability_curve(y, p, strategy="uniform")
    assert list(curve.table()) == [*columns, "low", "high"]
    assert len({len(column) for column in curve.table().values()}) == 1
    assert list(reliability_curve(y, p).table()) == columns
    assert curve.to_dict()["strategy"] == "uniform"
    assert curve.table()["low"] is curve.low
    band = consistency_band(p, rng=0)
    assert list(band.table()) == ["q", "low", "high"]
    assert band.to_dict()["n_resamples"] == 999
    for column in (*curve.table().values(), *band.table().values()):
        assert not column.flags.writeable


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"strategy": "isotone"}, ValueError, "`strategy` must be one of 'isotonic', 'quantile', 'uniform'; got 'isotone'"),
        ({"n_bins": 0}, ValueError, "`n_bins` must be between 1 and 1000; got 0"),
        ({"n_bins": 1001}, ValueError, "`n_bins` must be between 1 and 1000; got 1001"),
        ({"n_bins": 2.0}, TypeError, r"`n_bins` must be a whole number; got 2\.0"),
        ({"confidence_level": 95}, ValueError, r"`confidence_level` must lie strictly between 0 and 1; got 95\.0. For 95%, pass 0\.95"),
        ({"confidence_level": "high"}, TypeError, "`confidence_level` must be a number; got 'high'"),
        ({"sample_weight": [1, -1]}, ValueError, "`sample_weight` must"),
        ({"pos_label": 7}, ValueError, "`pos_label` must be one of the labels in `y_true` .*; got 7"),
    ],
)  # fmt: skip
def test_reliability_curve_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        reliability_curve([0, 1], [0.2, 0.7], **arguments)


@pytest.mark.parametrize("function", [reliability_curve, tc.cumulative_bias_curve, tc.atb_summary, tc.distcal_bracket])
def test_a_sketch_stands_alone_and_rows_do_not(function):
    sketch = tc.Sketch().update([0, 1], [0.2, 0.7])
    with pytest.raises(TypeError, match="`y_proba` cannot be combined with a Sketch, whose rows are summarized"):
        function(sketch, [0.2, 0.7])
    with pytest.raises(TypeError, match="`sample_weight` cannot be combined with a Sketch"):
        function(sketch, sample_weight=[1, 2])
    with pytest.raises(TypeError, match="`pos_label` cannot be combined with a Sketch"):
        function(sketch, pos_label=1)
    with pytest.raises(TypeError, match=r"`y_proba` is missing: pass \(y_true, y_proba\)"):
        function([0, 1])
    with pytest.raises(ValueError, match="the sketch is empty; add rows with"):
        function(tc.Sketch())
    with pytest.raises(ValueError, match=r"`y_proba` must lie in \[0, 1\]; found 74\.5 at row 1"):
        function([0, 1], [0.2, 74.5])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_resamples": 38}, ValueError, r"`n_resamples` must be at least 39 for confidence_level = 0\.95; got 38\. Increase it"),
        ({"n_resamples": 150, "confidence_level": 0.99}, ValueError, r"at least 199 for confidence_level = 0\.99; got 150"),
        ({"n_resamples": 20_001}, ValueError, "`n_resamples` must be between 1 and 20000; got 20001"),
        ({"n_resamples": True}, TypeError, "`n_resamples` must be a whole number; got True"),
        ({"confidence_level": 1.0}, ValueError, "`confidence_level` must lie strictly between 0 and 1; got 1.0"),
        ({"rng": "seed"}, TypeError, "`rng` must be a whole number, a numpy Generator or None; got 'seed'"),
        ({"sample_weight": [0, 0]}, ValueError, "`sample_weight` is zero in every row"),
    ],
)  # fmt: skip
def test_consistency_band_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        consistency_band([0.2, 0.7], **arguments)


def test_consistency_band_refuses_weights_beside_a_sketch_and_nothing_at_all():
    with pytest.raises(TypeError, match="`sample_weight` cannot be combined with a Sketch"):
        consistency_band(tc.Sketch().update([0, 1], [0.2, 0.7]), sample_weight=[1, 2])
    with pytest.raises(ValueError, match="the sketch is empty"):
        consistency_band(tc.Sketch())
    with pytest.raises(ValueError, match=r"`y_proba` must lie in \[0, 1\]"):
        consistency_band([0.2, 7])
    assert consistency_band([0.2, 0.7], n_resamples=39, rng=0).low.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_a_frequency_at_the_end_of_its_band_is_inside(weight):
    """Both are counts over n; rounding must not part them."""
    for n, ones in [(501, 279), (20, 14), (20, 6), (3, 3)]:
        y, p, w = np.arange(n) < ones, np.full(n, 0.6 if n > 3 else 0.9999), np.full(n, weight)
        for rows_or_sketch in [(y, p, w), (tc.Sketch().update(y, p, w),)]:
            rest = {"sample_weight": rows_or_sketch[2]} if len(rows_or_sketch) > 1 else {}
            curve = reliability_curve(*rows_or_sketch[:2], strategy="uniform", n_bins=1, **rest)
            assert curve.mean_true[0] == ones / n
            for end in (curve.low[0], curve.high[0]):
                assert end == round(end * n) / n
