"""Correlation of errors of neighbouring rows, in file order."""

import itertools
import math

import numpy as np
import pytest

import truthcal as tc
from truthcal.core import neighbours
from truthcal.core.neighbours import neighbour_z


def z_by_definition(p, y):
    """With a single bin, below 1,000 rows."""
    bias = np.mean(p - y)
    errors, chance = p - y - bias, np.clip(p - bias, 0, 1)
    products = [a * b for a, b in itertools.pairwise(errors)]
    variance = chance * (1 - chance)
    expected = sum(a * b for a, b in itertools.pairwise(variance))
    return sum(products) / math.sqrt(max(sum(x * x for x in products), expected))


def draw(rng, p, groups=1):
    """Outcomes of calibrated predictions, the same random number for `groups` rows one after the other."""
    return (np.repeat(rng.random(len(p) // groups), groups) < p).astype(np.uint8)


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_against_the_definition(scale):
    rng = np.random.default_rng(0)
    p = rng.random(300) * scale
    y = draw(rng, p)
    assert neighbour_z(p, y) == pytest.approx(z_by_definition(p, y), rel=1e-9)
    assert neighbour_z(p.astype(np.float32), y.astype(bool)) == pytest.approx(z_by_definition(p, y), rel=1e-4)
    assert neighbour_z(p[:29], y[:29]) is None
    assert neighbour_z(np.zeros(50), np.zeros(50)) == 0.0


def test_miscalibration_in_a_sorted_file_is_no_dependence():
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(50_000))
    assert abs(neighbour_z(p, draw(rng, 0.5 * p))) < 4.0
    assert abs(neighbour_z(p, draw(rng, 0.2 + 0.6 * p))) < 4.0


def test_of_very_many_rows_some_blocks_are_read(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    everywhere = neighbour_z(p, draw(rng, p, 4))
    monkeypatch.setattr(neighbours, "_MOST", 1 << 13)
    assert 8.0 < neighbour_z(p, draw(rng, p, 4)) < everywhere


@pytest.mark.simulation
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.01])
def test_independent_rows_are_rarely_suspected(scale):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3000):
        p = scale * rng.random(400)
        found.append(neighbour_z(p, draw(rng, p)))
    assert np.mean(np.abs(found) > 4.0) <= 0.001
    assert np.std(found) < 1.1


def test_rows_that_belong_together_get_a_warning_beside_every_pvalue():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = draw(rng, p, 5)
    for result in (tc.calibration_test(y, p, rng=0), tc.spiegelhalter_test(y, p), tc.hosmer_lemeshow_test(y, p, rng=0)):
        assert result.neighbour_z == neighbour_z(p, y) > 10.0
        assert f"! errors of neighbouring rows are correlated (z = {result.neighbour_z:.1f}" in str(result)
        assert "keep one row of each group" in str(result)
        assert result.to_dict()["neighbour_z"] == result.neighbour_z
    assert any("errors of neighbouring rows are correlated" in warning for warning in tc.assess(y, p).warnings)
    mixed = rng.permutation(2000)
    assert "neighbouring" not in str(tc.calibration_test(y[mixed], p[mixed], rng=0))
    assert tc.calibration_test(tc.Sketch().update(y, p)).neighbour_z is None


def test_outcomes_that_exclude_each_other_get_a_warning():
    rng = np.random.default_rng(0)
    one = rng.random(1000)
    won = rng.random(1000) < one
    p, y = np.stack([one, 1 - one], axis=1).ravel(), np.stack([won, ~won], axis=1).ravel()
    result = tc.calibration_test(y, p, rng=0)
    assert result.neighbour_z < -10.0
    assert "errors of neighbouring rows have opposite signs (z = -" in str(result)


def test_rows_that_are_not_sorted_are_read_in_order_too(monkeypatch):
    monkeypatch.setattr("truthcal.core.summarize.TOO_MANY_TO_SORT", 1000)
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = draw(rng, p, 5)
    result = tc.calibration_test(y, p)
    assert "sketch" in result.why
    assert result.neighbour_z == neighbour_z(p, y)
