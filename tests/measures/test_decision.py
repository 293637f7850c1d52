"""Calibration decision loss and U-calibration against linear programmes over all proper scores."""

import numpy as np
import pytest
from hypothesis import given
from oracles import more_measures as more_oracles
from support.strategies import examples, inner_probabilities, weighted_rows

import truthcal as tc


@given(weighted_rows(max_size=7))
@examples(40)
def test_against_all_proper_scores(data):
    y, p, w = data
    for name in ("decision_loss", "u_calibration"):
        expected = float(more_oracles.MORE_ORACLES[name](y, p, w))
        assert getattr(tc, name)(y, p, sample_weight=w) == pytest.approx(expected, abs=1e-12), name


@pytest.mark.parametrize("seed", range(5))
def test_against_all_proper_scores_with_ties(seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 6, 40) / 5
    y = (rng.random(40) < 0.3 + 0.4 * p).astype(int)
    for name in ("decision_loss", "u_calibration"):
        expected = more_oracles.MORE_ORACLES[name](y.tolist(), p.tolist(), solve=more_oracles.highs_lp)
        assert getattr(tc, name)(y, p) == pytest.approx(float(expected), abs=1e-7), name


def v_shaped(y, p, benchmark, mu):
    """Regret of a decision maker with one threshold, mu: acts if p > mu, and should act if the benchmark exceeds mu."""
    gain = lambda act: np.mean(np.where(act, y - mu, 0.0))  # noqa: E731
    return 2 * (gain(benchmark > mu) - gain(p > mu)) / (2 * max(mu, 1 - mu))


@given(weighted_rows(max_size=10))
def test_no_single_threshold_gains_more(data):
    y, p, _ = data
    y, p = np.array(y), np.array(p)
    means = np.array([y[p == value].mean() for value in p])
    for mu in np.linspace(0, 1, 41):
        assert v_shaped(y, p, means, mu) <= tc.decision_loss(y, p) + 1e-12
        assert v_shaped(y, p, np.full(len(p), y.mean()), mu) <= tc.u_calibration(y, p) + 1e-12


def test_useful_but_miscalibrated_predictions_have_no_u_calibration_error():
    truth = np.linspace(0.01, 0.99, 99)
    shrunk = 0.5 + 0.7 * (truth - 0.5)
    assert tc.u_calibration(truth, shrunk) < 1e-12
    assert tc.decision_loss(truth, shrunk) > 0.01


@given(inner_probabilities)
def test_a_constant_that_is_off(value):
    """One prediction r with mean outcome m: the gap m - r, spread over the worst mixture of thresholds between them."""
    y, p = [0, 1, 1, 1], [value] * 4
    gap = abs(0.75 - value)
    assert gap**2 - 1e-12 <= tc.decision_loss(y, p) <= 2 * gap + 1e-12
    assert tc.u_calibration(y, p) == pytest.approx(tc.decision_loss(y, p), abs=1e-12)
