"""Calibration slope and intercepts."""

import math

import numpy as np
import pytest
from oracles import more_measures as more_oracles
from scipy import special

import truthcal as tc


@pytest.mark.parametrize("seed", range(6))
def test_slope_and_intercepts_against_general_optimisation(seed):
    rng = np.random.default_rng(seed)
    n = 200
    p = rng.beta(2, 3, n)
    y = rng.random(n) < np.clip(0.2 + 0.5 * p, 0, 1)
    w = rng.random(n) + 0.1 if seed % 2 else None
    found = tc.calibration_slope_intercept(y, p, sample_weight=w)
    intercept, slope, large = more_oracles.calibration_slope_intercept(
        y.astype(int).tolist(), p.tolist(), None if w is None else w.tolist()
    )
    assert found.slope == pytest.approx(slope, rel=1e-6)
    assert found.intercept == pytest.approx(intercept, rel=1e-5, abs=1e-6)
    assert found.calibration_in_the_large == pytest.approx(large, rel=1e-5, abs=1e-6)


def test_slope_of_a_known_distortion():
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 2, 200_000)
    y = rng.random(200_000) < truth
    log_odds = np.log(truth / (1 - truth))
    report = 1 / (1 + np.exp(-(2 * log_odds + 1)))  # so truth = expit(0.5 logit(report) - 0.5)
    found = tc.calibration_slope_intercept(y, report)
    assert found.slope == pytest.approx(0.5, abs=0.01)
    assert found.intercept == pytest.approx(-0.5, abs=0.02)
    honest = tc.calibration_slope_intercept(y, truth)
    assert honest.slope == pytest.approx(1, abs=0.02)
    assert honest.calibration_in_the_large == pytest.approx(0, abs=0.02)
    assert list(honest.to_dict()) == ["slope", "intercept", "calibration_in_the_large"]


def test_slope_of_fractional_outcomes_is_exact():
    truth = np.linspace(0.05, 0.95, 50)
    found = tc.calibration_slope_intercept(truth, truth)
    assert found.slope == pytest.approx(1, rel=1e-9)
    assert found.intercept == pytest.approx(0, abs=1e-9)
    assert found.calibration_in_the_large == pytest.approx(0, abs=1e-9)


def test_extreme_log_odds_converge():
    p = np.array([1e-300, 1e-8, 0.5, 1 - 1e-8, 1 - 1e-16])
    found = tc.calibration_slope_intercept([0, 1, 0, 1, 1], p)
    assert 0 < found.slope < 0.2
    assert math.isfinite(found.calibration_in_the_large)


def likelihood_equations(found, y, p, w):
    """Derivatives of the log-likelihood, which are 0 at its maximum, relative to the sum of their terms' sizes."""
    log_odds = np.log(p) - np.log1p(-p)
    joint = w * (special.expit(found.intercept + found.slope * log_odds) - y)
    alone = w * (special.expit(found.calibration_in_the_large + log_odds) - y)
    terms = joint, joint * log_odds, alone
    return [math.fsum(term) / math.fsum(np.abs(term)) for term in terms]


def test_a_fit_far_from_the_predictions():
    y, p = np.array([0, 1, 0, 1]), np.array([1e-20, 1e-20, 3e-20, 3e-20])
    found = tc.calibration_slope_intercept(y, p)
    assert (found.slope, found.intercept) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert np.abs(likelihood_equations(found, y, p, np.ones(4))).max() < 1e-12


@pytest.mark.parametrize("kind", ["uniform", "rare", "one bucket", "tied", "float32", "fractions"])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_satisfy_the_likelihood_equations(kind, weighted):
    """More than 2^15 rows are fitted in buckets first."""
    rng = np.random.default_rng(1)
    p = {
        "rare": lambda u: 1e-3 * u**3 + 1e-9,
        "one bucket": lambda u: 0.4 + 1e-7 * u,
        "tied": lambda u: u.round(1),
    }.get(kind, lambda u: u)(rng.uniform(0.02, 0.98, 150_000))
    p = np.clip(p, 1e-9, 0.97).astype(np.float32 if kind == "float32" else np.float64)
    truth = np.sqrt(p)
    y = truth if kind == "fractions" else (rng.random(len(p)) < truth).astype(int)
    w = rng.exponential(size=len(p)) if weighted else None
    found = tc.calibration_slope_intercept(y, p, sample_weight=w)
    equations = likelihood_equations(found, y, p.astype(np.float64), np.ones(len(p)) if w is None else w)
    assert np.abs(equations).max() < 1e-9


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 1, 1], [0.0, 0.5, 0.6], "strictly between 0 and 1, because log-odds are used; found 0. Clip"),
        ([0, 1, 1], [0.2, 0.5, 1.0], "strictly between 0 and 1, because log-odds are used; found 1. Clip"),
        (
            [0, 1, 1],
            [0.4, 0.4, 0.4],
            "`y_proba` must contain at least two distinct predictions to fit a slope; all are 0.4",
        ),
        ([1, 1, 1], [0.2, 0.4, 0.5], "contains only one class, so the maximum-likelihood intercept is infinite"),
        (
            [0, 0, 1],
            [0.2, 0.4, 0.5],
            "`y_proba` separates the outcomes perfectly, so the maximum-likelihood slope is infinite",
        ),
        (
            [1, 1, 0],
            [0.2, 0.4, 0.5],
            "`y_proba` separates the outcomes perfectly, so the maximum-likelihood slope is infinite",
        ),
        (
            [0, 0, 1, 1],
            [0.2, 0.4, 0.4, 0.5],
            "`y_proba` separates the outcomes perfectly, so the maximum-likelihood slope is infinite",
        ),
    ],
)
def test_slope_where_no_finite_one_exists(y, p, message):
    with pytest.raises(ValueError, match=message):
        tc.calibration_slope_intercept(y, p)


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_with_weights_that_round(outcome):
    """Sums of weights and of weighted outcomes must agree exactly, or a class of weight 1e-17 appears from nowhere."""
    rng = np.random.default_rng(0)
    p, w = np.clip(np.round(rng.random(5000), 1), 0.05, 0.95), rng.random(5000) ** 3 + 1e-6
    y = np.full(5000, outcome)
    assert tc.log_loss_decomposition(y, p, sample_weight=w).uncertainty == 0
    assert tc.brier_decomposition(y, p, sample_weight=w).uncertainty < 1e-15
    with pytest.raises(ValueError, match="contains only one class"):
        tc.calibration_slope_intercept(y, p, sample_weight=w)
    exact = np.average(np.abs(p - y), weights=w)
    assert tc.distcal(y, p, sample_weight=w) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("y", "p", "w"),
    [
        ([0, 0, 1, 1, 0], [0.2, 0.3, 0.6, 0.7, 0.8], [1, 1, 1, 1, 1e-20]),
        ([0, 0, 1, 1, 0], [0.2, 0.3, 0.6, 0.7, 0.8], [1, 1, 1, 1, 1e-40]),
        ([0, 1, 0, 1, 1], [1e-3, 1e-3, *[np.nextafter(1e-3, 1)] * 3], None),
    ],
)
def test_slope_that_floats_cannot_find_is_refused(y, p, w):
    with pytest.raises(
        ValueError, match=r"no slope can be fitted|does not allow an accurate fit of slope and intercepts"
    ):
        tc.calibration_slope_intercept(y, p, sample_weight=w)
