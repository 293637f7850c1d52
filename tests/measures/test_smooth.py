"""smCal with its witness, smECE, and the Laplace kernel error: beyond what test_common.py asks of every measure."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from oracles import more_measures as more_oracles
from support.strategies import examples, probabilities, rows, weighted_rows

import truthcal as tc
from truthcal.measures import smooth


def sample_of(n, seed=0, slope=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return rng.random(n) < np.clip(0.5 + slope * (p - 0.5) + shift, 0, 1), p


# --- smcal ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 100, 400])
@pytest.mark.parametrize(("slope", "shift"), [(1, 0), (0.7, 0), (1, 0.1), (1, -0.1), (-1, 0)])
def test_smcal_against_the_linear_programme(n, slope, shift):
    y, p = sample_of(n, n, slope, shift)
    expected = more_oracles.smcal(y.astype(int).tolist(), p.tolist(), solve=more_oracles.highs_lp)
    assert tc.smcal(y, p) == pytest.approx(float(expected), abs=1e-9)


@given(weighted_rows(max_size=10))
def test_witness_certifies_smcal(data):
    """Primal = dual: a function within the constraints that attains the value found by isotonic regression."""
    y, p, w = data
    witness = tc.smcal_witness(y, p, sample_weight=w)
    value = tc.smcal(y, p, sample_weight=w)
    assert np.abs(witness.f).max() <= 1
    assert (np.abs(np.diff(witness.f)) <= np.diff(witness.q) * (1 + 1e-9) + 1e-15).all()
    attained = np.average((np.array(p) - y) * witness(p), weights=w)
    assert attained == pytest.approx(value, rel=1e-9, abs=1e-14)
    assert witness.value == pytest.approx(value, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_witness_certifies_smcal_of_many_rows(seed):
    rng = np.random.default_rng(seed)
    y, p = sample_of(5000, seed, rng.uniform(0.5, 1.2), rng.uniform(-0.02, 0.02))
    if seed % 3 == 0:
        p = np.round(p, 2)
    witness = tc.smcal_witness(y, p)
    assert (np.abs(np.diff(witness.f)) <= np.diff(witness.q) * (1 + 1e-9) + 1e-15).all()
    assert np.abs(witness.f).max() <= 1
    assert np.mean((p - y) * witness(p)) == pytest.approx(tc.smcal(y, p), rel=1e-9)


@given(rows(max_size=10), st.lists(probabilities, min_size=1, max_size=5))
def test_no_lipschitz_function_beats_the_witness(data, knots):
    """Any function that is allowed gives a lower bound: here sums of tents, scaled to be allowed."""
    y, p = data
    f = sum(np.maximum(0, 0.3 - np.abs(np.array(p) - knot)) * (-1) ** k for k, knot in enumerate(knots)) / len(knots)
    assert abs(np.mean((np.array(p) - y) * f)) <= tc.smcal(y, p) + 1e-12


def test_witness_is_a_function_and_prints():
    witness = tc.smcal_witness([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3])
    assert str(witness) == "A 1-Lipschitz function at 4 different predictions that shows smCal = 0.05."
    assert list(witness.table()) == ["q", "f"]
    assert witness([0.0, 0.45, 1.0]) == pytest.approx([witness.f[0], (witness.f[1] + witness.f[2]) / 2, witness.f[3]])
    with pytest.raises(ValueError, match="read-only"):
        witness.f[0] = 1


@pytest.mark.parametrize(("y", "p", "expected"), [([1], [0.25], 0.75), ([0], [0.0], 0), ([1, 0], [0.5, 0.5], 0)])
def test_smcal_of_one_prediction_is_its_bias(y, p, expected):
    assert tc.smcal(y, p) == expected
    assert tc.smcal_witness(y, p).value == expected


def test_smcal_of_a_million_rows_against_its_witness():
    y, p = sample_of(1_000_000, 1, 0.98)
    assert tc.smcal_witness(y, p).value == pytest.approx(tc.smcal(y, p), rel=1e-9)


# --- the Laplace kernel -----------------------------------------------------------------------------------------------


@given(weighted_rows(max_size=6), st.sampled_from([0.01, 0.3, 1.0, 10.0]))
@examples(30)
def test_laplace_bandwidth(data, bandwidth):
    y, p, w = data
    expected = more_oracles.laplace_kernel_ce(y, oracles.exact(p), oracles.exact(w), bandwidth=bandwidth)
    found = tc.laplace_kernel_ce(y, p, bandwidth=bandwidth, sample_weight=w)
    assert found == pytest.approx(float(expected), rel=1e-7, abs=1e-15)


def test_laplace_reference_value():
    assert 2 * tc.laplace_kernel_ce([1, 0, 1], [0.8, 0.4, 0.6]) ** 2 == pytest.approx(0.0270559716, abs=5e-11)


def test_laplace_of_biases_whose_squares_underflow():
    assert tc.laplace_kernel_ce([0], [1e-295]) == pytest.approx(1e-295, rel=1e-14)
    assert tc.laplace_kernel_ce([0, 0], [5e-324, 1e-300]) == pytest.approx(0.5e-300, rel=1e-14)
    assert tc.laplace_kernel_ce([0, 1], [0, 1]) == 0


def test_laplace_of_narrow_and_wide_kernels():
    y, p = sample_of(500)
    c = p - y
    wide = tc.laplace_kernel_ce(y, p, bandwidth=1e12)
    assert wide == pytest.approx(abs(c.mean()), rel=1e-4)
    narrow = tc.laplace_kernel_ce(y, p, bandwidth=1e-12)
    assert narrow == pytest.approx(math.sqrt(np.sum(c * c)) / 500, rel=1e-12)


def test_the_square_of_the_laplace_error_is_truthful():
    """A positive definite kernel with ones on its diagonal: the decomposition of a UBSE holds."""
    truth = [0.2, 0.5, 0.9]
    honest = oracles.expectation(truth, lambda y: tc.laplace_kernel_ce(y, truth) ** 2)
    assert honest == pytest.approx(sum(t * (1 - t) for t in truth) / 9)
    for lie in ([0.2, 0.5, 0.8], [0.5, 0.5, 0.5], [0.0, 0.5, 1.0], [0.3, 0.6, 1.0]):
        assert oracles.expectation(truth, lambda y, lie=lie: tc.laplace_kernel_ce(y, lie) ** 2) > honest


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
def test_laplace_refuses_a_bad_bandwidth(bad):
    with pytest.raises(ValueError, match="`bandwidth` must be finite and at least 1e-200"):
        tc.laplace_kernel_ce([0, 1], [0.2, 0.7], bandwidth=bad)


# --- smECE ------------------------------------------------------------------------------------------------------------


def brute_force(y, p, sigma, nodes=8001):
    """Integral by the trapezoidal rule, with all images that reach [0, 1]."""
    t = np.linspace(0, 1, nodes)
    values = np.zeros(nodes)
    for shift in range(-12, 13, 2):
        for image in (p + shift, shift - p):
            for x, c in zip(image, p - y, strict=True):
                values += c * np.exp(-0.5 * ((t - x) / sigma) ** 2)
    return np.trapezoid(np.abs(values), t) / (sigma * math.sqrt(2 * math.pi) * len(p))


@pytest.mark.parametrize("n", [2, 5, 30, 200])
@pytest.mark.parametrize("seed", range(4))
def test_smece_is_the_fixed_point(n, seed):
    y, p = sample_of(n, seed)
    value = tc.smece(y, p)
    assert brute_force(y, p, value) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0, 1e-9, 1 - 1e-9])
def test_smece_of_one_row_is_its_error(y, p):
    """Full mass also at 0 and 1, where some implementations lose half of it."""
    assert tc.smece([y], [p]) == pytest.approx(abs(y - p), rel=1e-12, abs=0)
    assert tc.smece([y] * 3, [p] * 3) == pytest.approx(abs(y - p), rel=1e-12, abs=0)


def test_smece_keeps_full_mass_at_the_ends():
    assert tc.smece([1, 1, 0, 0], [0.0, 0.0, 0.0, 0.0]) == pytest.approx(0.5)
    assert tc.smece([0, 0, 1, 1], [1.0, 1.0, 0.0, 0.0]) == pytest.approx(more_oracles.smece([0, 0, 1, 1], [1, 1, 0, 0]))


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-9, 1e-11])
def test_smece_of_tiny_errors(scale):
    """Errors of one size and alternating sign, far apart: nothing cancels, and smECE is the size."""
    truth = np.linspace(0.1, 0.9, 9)
    report = truth + scale * (-1.0) ** np.arange(9)
    assert tc.smece(truth, report) == pytest.approx(np.mean(np.abs(report - truth)), rel=1e-3)


def test_smece_below_the_finest_scale_is_still_bounded():
    truth = np.array([0.25, 0.5])
    assert 0 <= tc.smece(truth, np.add(truth, [1e-14, -1e-14])) <= 1e-12


def test_smece_of_many_levels_agrees_with_brute_force():
    y, p = sample_of(20_000, 5)
    value = tc.smece(y, p)
    # rows summed on a fine grid first: exact enough for smoothing this wide
    cells = np.minimum((p * 2048).astype(int), 2047)
    c = np.bincount(cells, p - y, 2048)
    centre = (np.arange(2048) + 0.5) / 2048
    smoothed = np.zeros(2048)
    for image in (centre, -centre, 2 - centre):
        kernel = np.exp(-0.5 * ((centre[:, None] - image[None, :]) / value) ** 2)
        smoothed += kernel @ c
    found = np.abs(smoothed).sum() / 2048 / (value * math.sqrt(2 * math.pi) * len(p))
    assert found == pytest.approx(value, rel=3e-3)


@pytest.mark.parametrize("n", [3, 50, 3_000, 40_000])
@pytest.mark.parametrize("error", [0.0, 0.02, 0.2])
def test_smece_by_secant_steps_is_that_of_the_search_over_levels(n, error, monkeypatch):
    """Both ways find the same fixed point; the second one serves where the first one does not converge."""
    y, p = sample_of(n, 7)
    p = np.clip(p + error, 0.0, 1.0)
    value = tc.smece(y, p)
    used = []
    monkeypatch.setattr(smooth, "_smece_from_estimate", lambda *_: used.append(1))
    assert tc.smece(y, p) == pytest.approx(value, rel=2e-7)
    assert used
