"""The band of the cumulative bias curve, against all possible outcomes and the law of Brownian motion."""

import itertools
import math

import numpy as np
import pytest

import truthcal as tc
from truthcal.measures.bias_curve import _largest_biases


def law_of_largest(p, w):
    """Every outcome: how far the cumulative bias goes, and how probable that is. Predictions differ and increase."""
    total = sum(w)
    for y in itertools.product((0, 1), repeat=len(p)):
        chance = math.prod(b if a else 1 - b for a, b in zip(y, p, strict=True))
        path, far = 0.0, 0.0
        for a, b, c in zip(y, p, w, strict=True):
            path += c * (b - a) / total
            far = max(far, abs(path))
        yield far, chance


@pytest.mark.parametrize("w", [[1, 1, 1, 1, 1, 1, 1], [1, 2, 1, 4, 0.5, 1, 3]])
def test_limit_is_the_quantile_over_all_outcomes(w):
    p = [0.11, 0.23, 0.37, 0.48, 0.59, 0.72, 0.94]
    band = tc.bias_band(p, n_resamples=20_000, confidence_level=0.9, sample_weight=w, rng=1)
    law = sorted(law_of_largest(p, w))
    inside = sum(chance for far, chance in law if far <= band.limit)
    below = sum(chance for far, chance in law if far < band.limit * (1 - 1e-9))
    assert below - 0.008 < 0.9 < inside + 0.008  # four standard errors
    assert min(abs(far - band.limit) for far, _ in law) < 1e-9
    assert (band.n, band.n_resamples, band.confidence_level) == (7, 20_000, 0.9)


def test_limit_has_the_rank_that_is_exactly_valid():
    """One row with chance 1/2 ends at +-1/2: whatever is drawn, the limit is 1/2. Two such rows: 1/2 or less."""
    assert tc.bias_band([0.5], rng=0).limit == pytest.approx(0.5)
    # Of 39 draws at 95%, the second largest is the limit.
    p = np.linspace(0.05, 0.95, 9)
    limits = [tc.bias_band(p, n_resamples=39, rng=seed).limit for seed in range(400)]
    law = list(law_of_largest(p.tolist(), [1] * 9))
    held = [sum(chance for far, chance in law if far <= limit) for limit in limits]
    # The mean over bands of the chance to be inside: at least 0.95, and more only by ties.
    assert 0.95 - 4 * np.std(held) / 20 < np.mean(held) < 0.975


@pytest.mark.simulation
def test_many_rows_follow_brownian_motion():
    p = np.random.default_rng(0).random(20_000)
    unit = math.sqrt(np.sum(p * (1 - p))) / len(p)
    limit = tc.bias_band(p, n_resamples=2999, rng=0).limit
    assert limit / unit == pytest.approx(2.2414, rel=0.05)  # of the largest size of a Brownian motion, 95%
    sketch = tc.Sketch(4096).update(np.zeros(len(p)), p)
    assert tc.bias_band(sketch, n_resamples=2999, rng=0).limit == pytest.approx(limit, rel=0.06)


def test_bridges_have_the_extremes_of_brownian_bridges():
    rng = np.random.default_rng(0)
    largest = _largest_biases(np.zeros((20_000, 1)), np.array([0.04]), rng)
    for m in (0.1, 0.2, 0.3):
        expected = (1.0 - math.exp(-2.0 * m**2 / 0.04)) ** 2  # largest and smallest drawn on their own
        assert np.mean(largest <= m) == pytest.approx(expected, abs=0.015)
    steps = _largest_biases(np.array([[0.5, -0.25]]), np.array([0.0, 0.0]), rng)
    assert steps.tolist() == [0.5]
    assert _largest_biases(np.array([[0.0, 0.5]]), np.array([0.0, 1e-4]), rng)[0] >= 0.5


def test_sketch_of_few_different_predictions_has_the_band_of_its_rows():
    p = np.repeat([0.25, 0.75], 40)
    rows, sketch = tc.bias_band(p, rng=3), tc.bias_band(tc.Sketch().update(np.zeros(80), p), rng=3)
    assert sketch.limit == pytest.approx(rows.limit)
    assert sketch.n == 80


def test_certain_predictions_leave_nothing_to_chance():
    assert tc.bias_band([0.0, 1.0, 1.0], rng=0).limit == 0.0


def test_curve_on_the_limit_is_inside():
    y, p = [0], [0.5]
    assert abs(tc.cumulative_bias_curve(y, p).bias[0]) <= tc.bias_band(p, rng=0).limit


def test_prints_in_words_and_has_a_table():
    band = tc.bias_band([0.5], rng=0)
    assert str(band) == (
        "If predictions were calibrated, the cumulative bias of 1 row would stay between -0.5 and +0.5 everywhere, "
        "95% of the time."
    )
    table = band.table()
    assert table["q"].tolist() == [0.0, 1.0]
    assert table["low"].tolist() == [-band.limit] * 2
    assert table["high"].tolist() == [band.limit] * 2
    assert band.to_dict()["limit"] == band.limit


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n_resamples": 10}, ValueError, "`n_resamples` must be at least 39"),
        ({"n_resamples": 20_001}, ValueError, "`n_resamples` must"),
        ({"confidence_level": 95}, ValueError, "`confidence_level` must"),
        ({"y_proba": [0.5, 2.0]}, ValueError, "`y_proba` must lie in"),
        ({"y_proba": tc.Sketch().update([1], [0.5]), "sample_weight": [1]}, TypeError, "Sketch"),
        ({"y_proba": tc.Sketch()}, ValueError, "empty|no rows"),
    ],
)
def test_refuses(given, error, message):
    with pytest.raises(error, match=message):
        tc.bias_band(**({"y_proba": [0.5]} | given))
