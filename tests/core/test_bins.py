"""Bins of rows in any order, totals and edges, against loops over rows in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import examples

import truthcal as tc
from truthcal.core import bins as bins_module
from truthcal.core.bins import BinSums, bin_biases, predictions_in, quantile_edges, uniform_edges
from truthcal.core.checks import check_rows
from truthcal.core.edge_search import search_edges
from truthcal.core.sample import Sample
from truthcal.core.totals import Totals
from truthcal.measures.cumulative import bias_path

KINDS = ("distinct", "tied", "rare", "near 1", "equal", "certain", "float32", "negative zero")


def some_rows(kind, n, weighted, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    p = {
        "tied": lambda: p.round(1),
        "rare": lambda: p**20,
        "near 1": lambda: 1.0 - 1e-6 * p,
        "equal": lambda: np.full(n, 0.3),
        "certain": lambda: p.round(),
        "float32": lambda: p.astype(np.float32),
        "negative zero": lambda: np.where(p < 0.5, -0.0, p),
    }.get(kind, lambda: p)()
    y = (rng.random(n) < p).astype(int)
    w = rng.integers(1, 5, n).astype(float) if weighted else None
    return check_rows(y, p, w, part=True)


def weights_of(rows):
    return [Fraction(1)] * len(rows.p) if rows.w is None else [Fraction(float(w)) for w in rows.w]


def naive_edges(rows, n_bins):
    """Left edges by the definition: the bin of a prediction is floor(n_bins * the share of weight up to its middle)."""
    weights, total, upto, edges, before = weights_of(rows), sum(weights_of(rows)), Fraction(0), [0.0], 0
    for r in sorted(set(rows.p.tolist())):
        own = sum(w for w, p in zip(weights, rows.p.tolist(), strict=True) if p == r)
        number = math.floor(n_bins * (upto + own / 2) / total)
        edges += [r] if number != before else []
        before, upto = number, upto + own
    return edges


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 300])
@pytest.mark.parametrize("n_bins", [1, 2, 10, 1000])
@pytest.mark.parametrize("buckets", [False, True])
def test_quantile_edges_are_those_of_the_definition(kind, weighted, n, n_bins, buckets, monkeypatch):
    if buckets:
        monkeypatch.setattr(bins_module, "_FEW", 0)
    rows = some_rows(kind, n, weighted)
    assert quantile_edges(rows, n_bins).tolist() == naive_edges(rows, n_bins)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 300])
@pytest.mark.parametrize("edges", ["uniform", "quantile", "crowded"])
def test_sums_in_bins_are_those_of_a_loop(kind, weighted, n, edges):
    rows = some_rows(kind, n, weighted)
    crowded = np.concatenate([[0.0], 1e-9 * np.arange(1, 300), [0.5]])
    edges = {"uniform": uniform_edges(7), "quantile": quantile_edges(rows, 7), "crowded": crowded}[edges]
    found, (bias, mass, positive) = BinSums.of_rows(rows, edges), bin_biases(rows, edges)
    number = [max(k for k, edge in enumerate(edges) if edge <= x) for x in rows.p.tolist()]
    scale = 1.0 if rows.w is None else 2.0 ** -math.frexp(rows.w.max())[1]
    filled = 0
    for k in range(len(edges)):
        here = [i for i, bin_number in enumerate(number) if bin_number == k]
        p, y = rows.p[here].astype(float), rows.y[here].astype(float)
        w = scale * (np.ones(len(here)) if rows.w is None else rows.w[here])
        sums = w @ (p - y), np.sum(w), w @ y
        assert (bias[k], mass[k], positive[k]) == pytest.approx(sums, rel=1e-12, abs=1e-14)
        if here:
            at = [column[filled] for column in found]
            mean = w @ p / np.sum(w)
            totals = np.sum(w), np.sum(w**2), w @ p, w @ y, np.sum(w**2 * p * (1 - p))
            expected = [mean, p.min(), p.max(), len(here), *totals]
            assert at == pytest.approx(expected, rel=1e-12, abs=1e-300)
            wanted = np.arange(len(edges)) == k
            np.testing.assert_array_equal(predictions_in(rows, edges, wanted), np.sort(p))
            filled += 1
    assert len(found.n) == filled


def test_parts_of_many_rows_add_up():
    rng = np.random.default_rng(0)
    p, w = rng.random(400_000), rng.exponential(size=400_000)
    y = rng.random(400_000) < p
    for weight in (None, w):
        rows = check_rows(y, p, weight)
        found, sample = BinSums.of_rows(rows, quantile_edges(rows, 9)), Sample.from_checked(rows)
        upto = np.cumsum(sample.w)
        starts = np.flatnonzero(np.diff(np.floor(9 * (upto - sample.w / 2) / upto[-1]), prepend=-1.0))
        for column, values in (("weight", sample.w), ("wy", sample.w * sample.y), ("wp", sample.w * sample.p)):
            expected = np.add.reduceat(values, starts)
            np.testing.assert_allclose(getattr(found, column), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 300])
def test_totals_of_rows_are_those_of_points(kind, weighted, n):
    rows = some_rows(kind, n, weighted)
    found, points = Totals.of_rows(rows), Sample.from_checked(rows).points()
    expected = Totals.of_points(points)
    assert (found.rows, found.impossible, found.sketched) == (expected.rows, expected.impossible, False)
    for name in ("information", "effective_information", "noise_floor"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12, abs=1e-300)


def test_only_predictions_of_exactly_0_and_1_make_outcomes_impossible():
    p = np.array([0.0, 0.0, 1.0, 1.0, 1e-17, 5e-324, 1.0 - 2.0**-53])
    y = np.array([1, 0, 0, 1, 1, 1, 0], np.uint8)
    assert Totals.of_rows(check_rows(y, p)).impossible == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 300, 300_000])
def test_bias_path_is_that_of_the_groups(kind, weighted, n):
    sample = Sample.from_checked(some_rows(kind, n, weighted))
    found, groups = bias_path(sample), sample.groups
    curve = np.append(groups.cumulative, 0.0)
    assert (found.lowest, found.highest) == pytest.approx((curve.min(), curve.max()), rel=1e-12, abs=1e-12)
    assert found.distinct == len(groups.r)
    steps = groups.w * groups.r * (1 - groups.r)
    expected = np.sum(steps) ** 2 / np.sum(steps**2) if steps.any() else 0.0
    assert found.steps == pytest.approx(expected, rel=1e-9)


@examples(60)
@given(data=st.data(), side=st.sampled_from(["left", "right"]), dtype=st.sampled_from([np.float32, np.float64]))
def test_search_of_edges_is_numpys(data, side, dtype):
    numbers = st.floats(0, 1, width=32) | st.integers(0, 8192).map(lambda k: k / 8192)
    edges = np.sort(np.array(data.draw(st.lists(numbers, min_size=1, max_size=20)), dtype))
    p = np.array(data.draw(st.lists(numbers | st.sampled_from(edges.tolist()), min_size=1, max_size=30)), dtype)
    np.testing.assert_array_equal(search_edges(edges, p, side), np.searchsorted(edges, p, side))


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(600_000)
    y, w = rng.random(len(p)) < p, rng.exponential(size=len(p))

    def results():
        curve = tc.reliability_curve(y, p, strategy="quantile", sample_weight=w)
        line = tc.calibration_slope_intercept(y, p, sample_weight=w)
        tests = tc.spiegelhalter_test(y, p), tc.hosmer_lemeshow_test(y, p, sample_weight=w)
        path = tc.calibration_test(y, p, measure="kuiper_ce")
        return [*curve.mean_proba, *curve.low, line.slope, line.intercept, *(t.pvalue for t in tests), path.pvalue,
                tc.smece(y, p), tc.binned_ece(y, p, strategy="quantile")]  # fmt: skip

    monkeypatch.setenv("TRUTHCAL_NUM_THREADS", "1")
    alone = results()
    monkeypatch.setenv("TRUTHCAL_NUM_THREADS", "3")
    assert results() == alone
