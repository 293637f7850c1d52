"""Interval calibration error and its surrogate."""

import numpy as np
import pytest
from hypothesis import given
from oracles import more_measures as more_oracles
from support.strategies import examples, rows, weighted_rows

import truthcal as tc


def dynamic_programme(y, p):
    """O(n^2) without shortcuts."""
    order = np.argsort(p)
    r, inverse = np.unique(p[order], return_inverse=True)
    c = np.bincount(inverse, (p - y)[order]) / len(p)
    m = np.bincount(inverse) / len(p)
    a, mass = np.concatenate([[0], np.cumsum(c)]), np.concatenate([[0], np.cumsum(m)])
    best = np.zeros(len(r) + 1)
    for j in range(1, len(r) + 1):
        i = np.arange(j)
        best[j] = np.min(best[:j] + np.abs(a[j] - a[:j]) + (mass[j] - mass[:j]) * (r[j - 1] - r[i]))
    return best[-1]


@given(rows(max_size=8))
def test_all_partitions_of_up_to_eight_rows(data):
    y, p = data
    assert tc.intcal(y, p) == pytest.approx(float(more_oracles.intcal(y, p)), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("shape", ["calibrated", "overconfident", "rare", "close", "ties"])
def test_the_early_end_of_the_search_loses_nothing(shape):
    rng = np.random.default_rng(0)
    n = 1500
    p = {"rare": rng.beta(1, 99, n), "close": 0.4 + 1e-4 * rng.random(n), "ties": np.round(rng.random(n), 1)}.get(
        shape, rng.random(n)
    )
    y = rng.random(n) < (0.5 + 0.5 * (p - 0.5) if shape == "overconfident" else p)
    assert tc.intcal(y, p) == pytest.approx(dynamic_programme(y, p), rel=1e-9)


def test_five_thousand_different_predictions():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = rng.random(5000) < p
    assert tc.distcal(y, p) <= tc.intcal(y, p) <= tc.intcal_surrogate(y, p) <= tc.unbinned_ece(y, p)


def test_too_many_predictions_are_refused_with_advice():
    p = np.random.default_rng(0).random(100_001)
    with pytest.raises(
        ValueError, match=r"`y_proba` has 100001 different values, more than 100000: .* Use intcal_surrogate"
    ):
        tc.intcal(p < 0.5, p)
    assert tc.intcal(p < 0.5, np.round(p, 2)) > 0


@given(weighted_rows(max_size=8))
@examples(50)
def test_surrogate_is_never_below_the_exact_one_nor_above_ece(data):
    y, p, w = data
    exact, surrogate, ece = (f(y, p, sample_weight=w) for f in (tc.intcal, tc.intcal_surrogate, tc.unbinned_ece))
    assert exact <= surrogate * (1 + 1e-9) + 1e-15
    assert surrogate <= ece * (1 + 1e-9) + 1e-15


def test_surrogate_of_many_rows_against_random_shifts():
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    y = rng.random(2000) < np.clip(p + 0.1, 0, 1)
    best = np.inf
    for k in range(8):
        width = 0.5**k
        shifts = (np.arange(400) + 0.5) / 400 * width
        errors = []
        for shift in shifts:
            bins = np.floor((p - shift) / width).astype(int)
            errors.append(np.abs(np.bincount(bins - bins.min(), p - y)).sum() / 2000)
        best = min(best, np.mean(errors) + width)
    assert tc.intcal_surrogate(y, p) == pytest.approx(best, rel=2e-3)
