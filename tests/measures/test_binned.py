"""ECE in bins, and on distinct values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from oracles import more_measures as more_oracles
from support.strategies import examples, rows, weighted_rows

import truthcal as tc


def test_unbinned_ece_reference_value():
    y, p = [0, 1, 0, 1, 0, 1, 1, 1, 0], [0.5, 0.5, 0.5, 0.6, 0.5, 0.6, 0.6, 0.6, 0.6]
    assert tc.unbinned_ece(y, p) == pytest.approx(4 / 9 * 0.25 + 5 / 9 * 0.2, rel=1e-14)


def test_unbinned_ece_of_different_predictions_says_nothing_about_calibration():
    """Example 1 of the paper: the honest report of uniform chances scores 1/3, the constant 1/2 next to nothing."""
    rng = np.random.default_rng(0)
    truth = rng.random(100_000)
    y = rng.random(100_000) < truth
    assert tc.unbinned_ece(y, truth) == pytest.approx(1 / 3, abs=0.005)
    assert tc.unbinned_ece(y, np.full(100_000, 0.5)) < 0.005


@given(weighted_rows(max_size=8), st.sampled_from([1, 1.5, 2, 3]))
def test_unbinned_ece_exponents(data, alpha):
    y, p, w = data
    expected = float(more_oracles.unbinned_ece(y, oracles.exact(p), oracles.exact(w), alpha=alpha))
    assert tc.unbinned_ece(y, p, alpha=alpha, sample_weight=w) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@examples(20)
@given(weighted_rows(), st.integers(1, 40))
def test_ece_is_binned_ece_with_15_bins_of_equal_width(data, n_bins):
    y, p, w = data
    assert tc.ece(y, p, sample_weight=w) == tc.binned_ece(y, p, sample_weight=w)
    assert tc.ece(y, p) == tc.binned_ece(y, p, n_bins=15, strategy="uniform", norm="l1", debias=False)
    assert tc.ece(y, p, n_bins=n_bins) == tc.binned_ece(y, p, n_bins=n_bins)


@given(
    weighted_rows(max_size=12),
    st.sampled_from([1, 2, 7, 10, 15, 49]),
    st.sampled_from(["uniform", "quantile"]),
    st.sampled_from(["l1", "l2", "max"]),
)
def test_binned_ece_against_its_definition(data, n_bins, strategy, norm):
    y, p, w = data
    w = [round(8 * value) / 8 or 0.125 for value in w]  # sums of eighths are exact, so quantile bins have no rounding
    expected = more_oracles.binned_ece(
        y, oracles.exact(p), oracles.exact(w), n_bins=n_bins, strategy=strategy, norm=norm
    )
    found = tc.binned_ece(y, p, n_bins=n_bins, strategy=strategy, norm=norm, sample_weight=w)
    assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-14)


@examples(30)
@given(
    weighted_rows(max_size=12),
    st.sampled_from(["uniform", [0.3, 0.5, 0.75], [0.5], []]),
    st.sampled_from([1, 1.5, 2, 3]),
)
def test_binned_ece_of_any_partition_and_exponent_against_its_definition(data, bins, alpha):
    y, p, w = data
    expected = more_oracles.binned_ece(y, oracles.exact(p), oracles.exact(w), strategy=bins, alpha=alpha)
    strategy = tc.FixedBins([0, *bins, 1]) if isinstance(bins, list) else bins
    found = tc.binned_ece(y, p, strategy=strategy, alpha=alpha, sample_weight=w)
    assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-14)
    if alpha == 2:
        assert tc.binned_ece(y, p, strategy=strategy, norm="l2", sample_weight=w) ** 2 == pytest.approx(
            found, abs=1e-14
        )


@given(rows(min_size=4, max_size=12), st.sampled_from([1, 2]), st.sampled_from(["uniform", "quantile"]))
@examples(60)
def test_debiased_ece_against_its_definition(data, n_bins, strategy):
    y, p = data
    y, p = y * 2, p * 2  # two rows in each bin that has any
    expected = more_oracles.binned_ece(y, oracles.exact(p), n_bins=n_bins, strategy=strategy, norm="l2", debias=True)
    found = tc.binned_ece(y, p, n_bins=n_bins, strategy=strategy, norm="l2", debias=True)
    assert found**2 == pytest.approx(float(expected) ** 2, rel=1e-9, abs=1e-15)


def test_debiasing_takes_the_noise_out_on_average():
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    plain, debiased = [], []
    for _ in range(200):
        y = rng.random(2000) < truth
        plain.append(tc.binned_ece(y, truth, norm="l2") ** 2)
        debiased.append(tc.binned_ece(y, truth, norm="l2", debias=True) ** 2)
    assert np.mean(debiased) < np.mean(plain) / 2


@pytest.mark.parametrize(
    ("edge", "bin_of"),
    [(0.0, 0), (1 / 15, 1), (np.nextafter(1 / 15, 0), 0), (0.2, 3), (14 / 15, 14), (1.0, 14), (-0.0, 0)],
)
def test_edges_belong_to_the_bin_above(edge, bin_of):
    """A second row in the middle of the expected bin: its error cancels only if both are in one bin."""
    middle, off = (bin_of + 0.5) / 15, 0.03 if edge < 0.5 else -0.03
    assert tc.binned_ece([edge + off, middle - off], [edge, middle]) == pytest.approx(0, abs=1e-12)
    elsewhere = (bin_of + (1.5 if bin_of < 14 else -0.5)) / 15
    assert tc.binned_ece([edge + off, elsewhere - off], [edge, elsewhere]) == pytest.approx(0.03, abs=1e-12)


def test_quantile_bins_keep_ties_together_and_need_no_order():
    y, p = np.array([0, 1] * 50), np.array([0.3] * 60 + [0.6] * 40)
    expected = 0.6 * abs(0.3 - y[:60].mean()) + 0.4 * abs(0.6 - y[60:].mean())
    assert tc.binned_ece(y, p, strategy="quantile", n_bins=10) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_bins": 0}, ValueError, "`n_bins` must be between 1 and 16777216; got 0"),
        ({"n_bins": 2.0}, TypeError, "`n_bins` must be a whole number; got 2.0"),
        ({"n_bins": 10**30}, ValueError, "`n_bins` must be between 1 and 16777216"),
        ({"debias": "no"}, TypeError, "`debias` must be True or False; got 'no'"),
        ({"strategy": "kmeans"}, ValueError, "`strategy` must be one of 'uniform', 'quantile'; got 'kmeans'"),
        ({"alpha": 0.5}, ValueError, r"`alpha` must be finite and at least 1; got 0\.5"),
        ({"alpha": 2, "norm": "l2"}, ValueError, "`alpha` is defined for norm='l1' only; got alpha=2 with norm='l2'"),
        ({"norm": "l3"}, ValueError, "`norm` must be one of 'l1', 'l2', 'max'; got 'l3'"),
        ({"debias": True}, ValueError, "`debias` is defined for norm='l2' only; got norm='l1'"),
        ({"debias": True, "norm": "max"}, ValueError, "`debias` is defined for norm='l2' only; got norm='max'"),
        (
            {"debias": True, "norm": "l2"},
            ValueError,
            "`debias` needs at least two rows in every non-empty bin; use fewer bins",
        ),
        (
            {"debias": True, "norm": "l2", "sample_weight": [1, 2, 0.5]},
            ValueError,
            "whole numbers, because this measure counts rows; found 0.5",
        ),
    ],
)
def test_options_that_make_no_sense(options, error, message):
    with pytest.raises(error, match=message):
        tc.binned_ece([0, 1, 1], [0.2, 0.9, 0.6], **options)


def test_debias_refuses_fractions_and_ece_refuses_small_alpha():
    with pytest.raises(ValueError, match="`debias` needs 0/1 outcomes; `y_true` contains fractions"):
        tc.binned_ece([0.5, 0.5], [0.2, 0.3], norm="l2", debias=True, n_bins=1)
    for bad in (0.5, math.nan, 10**400):
        with pytest.raises(ValueError, match="`alpha` must be finite and at least 1"):
            tc.unbinned_ece([0, 1], [0.2, 0.7], alpha=bad)


def test_a_light_bin_keeps_its_gap():
    """Beside heavy bins, differences of cumulative sums would lose it."""
    y, p, w = [1, 0, 1, 1], [0.95, 0.4, 0.93, 0.99], [1.0, 1e-20, 1.0, 1.0]
    assert tc.binned_ece(y, p, norm="max", sample_weight=w) == pytest.approx(0.4, rel=1e-12)


def test_a_light_row_makes_no_bin_of_its_own():
    y, p, w = [0, 1, 0], [0.5, 0.5, 1.0], [1, 1, 1e-17]
    assert tc.binned_ece(y, p, n_bins=1, strategy="quantile", norm="max", sample_weight=w) < 1e-15
