"""Subsampled errors: exact for few rows, seeded draws with a standard error for many."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from oracles import more_measures as more_oracles
from support.strategies import examples, rows

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.kernels import subsampled as kernel
from truthcal.measures import subsampled

BOTH = [(tc.subsampled_smcal, "smcal"), (tc.subsampled_step_ce, "step_ce")]


def sample_of(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.simulation
@pytest.mark.parametrize(("function", "name"), BOTH)
def test_draws_agree_with_going_through_all_subsets(function, name, monkeypatch):
    y, p = sample_of(10)
    exact = function(y, p)
    assert str(tc.subsampled_estimate(y, p, name)).endswith("exact")
    monkeypatch.setattr(subsampled, "_FEW_ROWS", 0)
    drawn = tc.subsampled_estimate(y, p, name, n_resamples=20_000)
    assert drawn.value == pytest.approx(exact, abs=4 * drawn.standard_error)
    assert drawn.standard_error < 0.02 * exact


@pytest.mark.simulation
@pytest.mark.parametrize(("function", "name"), BOTH)
def test_the_standard_error_is_honest(function, name):
    y, p = sample_of(300)
    estimates = [tc.subsampled_estimate(y, p, name, rng=seed) for seed in range(200)]
    values = [estimate.value for estimate in estimates]
    claimed = np.mean([estimate.standard_error for estimate in estimates])
    assert np.std(values, ddof=1) == pytest.approx(claimed, rel=0.2)
    assert function(y, p, rng=7) == values[7]


@pytest.mark.parametrize(("function", "name"), BOTH)
def test_seeds(function, name):
    y, p = sample_of(100)
    assert function(y, p) == function(y, p) == function(y, p, rng=0)
    assert function(y, p, rng=1) != function(y, p)
    assert function(y, p, rng=None) != function(y, p, rng=None)
    generator = np.random.default_rng(5)
    assert function(y, p, rng=generator) != function(y, p, rng=generator)  # it moves on
    assert function(y, p, rng=np.random.default_rng(5)) == function(y, p, rng=5)
    old = np.random.Generator(np.random.RandomState(5)._bit_generator)  # has no seed sequence to spawn from
    assert function(y, p, rng=old) > 0
    assert function(y, p, n_resamples=50) != function(y, p, n_resamples=51)


@given(rows(max_size=5))
@examples(30)
def test_a_row_of_weight_two_is_two_rows(data):
    y, p = data
    for function, name in BOTH:
        expected = float(more_oracles.MORE_ORACLES[f"subsampled_{name}"](y * 2, p * 2))
        assert function(y, p, sample_weight=[2] * len(y)) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.simulation
@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])  # the second makes words of 32 bits
def test_large_counts_are_drawn_from_the_right_distribution(bits):
    rows = subsampled._Rows(np.zeros(4), np.zeros(4), np.array([1, 63, 64, 1000]), 1128)
    kept = np.array(list(itertools.islice(rows.draws(np.random.Generator(bits(0))), 20_000)))
    assert kept.mean(axis=0) == pytest.approx(rows.counts / 2, rel=0.02)
    assert kept.var(axis=0) == pytest.approx(rows.counts / 4, rel=0.05)
    assert (kept <= rows.counts).all()


@pytest.mark.parametrize(("function", "name"), BOTH)
def test_fractional_outcomes_do_not_depend_on_the_order_of_rows(function, name):
    rng = np.random.default_rng(0)
    y, p = rng.random(200), np.round(rng.random(200), 1)
    order = rng.permutation(200)
    assert function(y[order], p[order]) == function(y, p)


@pytest.mark.parametrize(("name", "bound"), [("smcal", 5e-5), ("step_ce", 8e-5)])
def test_merging_neighbours_moves_little(name, bound, monkeypatch):
    y, p = sample_of(60_000)
    sample = Sample.of(y, p)
    error = subsampled._ERRORS[name]
    merged, cells = subsampled._Rows.of(sample), subsampled._MOST_GROUPS
    assert len(np.unique(merged.r)) <= cells
    assert merged.size == 60_000
    monkeypatch.setattr(subsampled, "_MOST_GROUPS", 1 << 30)
    apart = subsampled._Rows.of(sample)
    assert np.sum(merged.r * merged.counts) == pytest.approx(np.sum(apart.r * apart.counts))

    # the same rows kept in both: all of them
    def of_all(rows):
        distinct = np.unique(rows.r)
        cumulative = np.empty_like(distinct)
        kernel.subset_bias(rows.r, rows.y, rows.counts, cumulative)
        return error(distinct, cumulative) / rows.size

    assert of_all(merged) == pytest.approx(of_all(apart), abs=bound)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be at least 1; got 0"),
        ({"rng": "seed"}, TypeError, "`rng` must be a whole number, a numpy Generator or None; got 'seed'"),
        ({"rng": 1.5}, TypeError, "`rng` must be a whole number"),
        ({"rng": True}, TypeError, "`rng` must be a whole number"),
        ({"rng": np.random.RandomState(3)}, TypeError, "`rng` must be a whole number"),
        ({"rng": -1}, TypeError, "`rng` must be a whole number"),
        ({"sample_weight": [0.5] * 20}, ValueError, r"whole numbers, because this measure counts rows; found 0\.5"),
    ],
)
def test_options_that_make_no_sense(options, error, message):
    y, p = sample_of(20)
    for function, _ in BOTH:
        with pytest.raises(error, match=message):
            function(y, p, **options)


def test_estimate():
    y, p = sample_of(50)
    estimate = tc.subsampled_estimate(y, p)
    assert float(estimate) == estimate.value == tc.subsampled_smcal(y, p)
    assert estimate.n_resamples == 100
    one = tc.subsampled_estimate(y, p, n_resamples=1)
    assert math.isnan(one.standard_error)
    assert str(one).endswith("from 1 draw")
    assert list(one.to_dict()) == ["value", "standard_error", "n_resamples"]
    assert tc.subsampled_estimate([1], [0.5]).standard_error == 0
    with pytest.raises(ValueError, match="`measure` must be one of 'smcal', 'step_ce'; got 'atb'"):
        tc.subsampled_estimate(y, p, "atb")
