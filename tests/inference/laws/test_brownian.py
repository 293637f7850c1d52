"""Largest distance and range of a Brownian motion, against the other series in many digits and simulation."""

import math

import mpmath as mp
import numpy as np
import pytest

from truthcal.inference.laws.brownian import maximum_head, maximum_tail, range_head, range_tail

POINTS = [0.12, 0.3, 0.7, 1.0, 1.19, 1.2, 1.21, 1.49, 1.5, 1.51, 2.0, 2.5, 3.5, 5.512, 9.0, 15.0, 30.0, 36.0]


def many(term, start):
    """Sum of a series until its terms no longer count."""
    total, k = mp.mpf(0), start
    while True:
        part = term(k)
        total, k = total + part, k + 1
        if abs(part) < mp.mpf(10) ** (-mp.mp.dps - 5):
            return total


def maximum_by_images(x):
    """P(max |B| < x) = P(|B_1| < x on paths that never leave), by the method of images: a sum over shifted normals."""
    return (
        mp.ncdf(x)
        - mp.ncdf(-x)
        + 2 * many(lambda k: (-1) ** k * (mp.ncdf((2 * k + 1) * x) - mp.ncdf((2 * k - 1) * x)), 1)
    )


def range_by_density(x):
    """P(range > x), the integral of Feller's density 8 sum (-1)^(k-1) k^2 phi(k r) over r > x."""
    top = x + 12

    def density(r):
        return 8 * many(lambda k: (-1) ** (k - 1) * k**2 * mp.npdf(k * r), 1)

    return mp.quad(density, [x, x + 1, x + 3, top])


@pytest.mark.parametrize("x", POINTS)
def test_maximum_against_images(x):
    with mp.workdps(30 + int(max(2.2 / x**2, 0.22 * x**2))):
        head = maximum_by_images(mp.mpf(x))
        expected = float(1 - head), float(head)
    found = maximum_tail(x), maximum_head(x)
    assert found == pytest.approx(expected, rel=4e-13, abs=0)


@pytest.mark.parametrize("x", [0.35, 0.7, 1.2, 1.49, 1.51, 2.0, 4.0, 6.78])
def test_range_against_the_integral_of_its_density(x):
    with mp.workdps(40):
        tail = range_by_density(mp.mpf(x))
        expected = float(tail), float(1 - tail)
    assert (range_tail(x), range_head(x)) == pytest.approx(expected, rel=1e-13, abs=0)


@pytest.mark.parametrize("x", POINTS)
def test_range_against_the_series_for_its_tail(x):
    with mp.workdps(30 + int(max(2.2 / x**2, 0.22 * x**2))):
        tail = 8 * many(lambda k: (-1) ** (k - 1) * k * mp.ncdf(-k * mp.mpf(x)), 1)
        expected = float(tail), float(1 - tail)
    assert (range_tail(x), range_head(x)) == pytest.approx(expected, rel=4e-13, abs=1e-290)


def test_known_values():
    assert (maximum_tail(2.2414), range_tail(2.4977)) == pytest.approx((0.05, 0.05), abs=5e-5)
    assert (maximum_head(0.2), range_head(0.4)) == pytest.approx((5.131e-14, 2.047e-12), rel=5e-4)
    assert maximum_tail(5.512) == pytest.approx(7.1e-8, rel=0.01)
    assert maximum_tail(4.274) == pytest.approx(3.8e-5, rel=0.02)
    assert range_tail(6.780) == pytest.approx(4.8e-11, rel=0.01)


def test_against_simulation():
    """Random walks of 2500 steps; the step left unseen beyond the largest value is 0.583 standard deviations."""
    rng = np.random.default_rng(11)
    steps = 2500
    walks = np.cumsum(rng.standard_normal((4000, steps)), axis=1) / math.sqrt(steps)
    high, low = np.maximum(walks.max(axis=1), 0.0), np.minimum(walks.min(axis=1), 0.0)
    unseen = 0.5826 / math.sqrt(steps)
    for x in (1.0, 1.5, 2.0):
        for seen, chance in (
            (np.maximum(high, -low) + unseen, maximum_tail(x)),
            (high - low + 2.0 * unseen, range_tail(x)),
        ):
            assert np.mean(seen > x) == pytest.approx(chance, abs=4.0 * math.sqrt(chance * (1.0 - chance) / 4000))


def test_thresholds_at_the_ends():
    for tail, head in ((maximum_tail, maximum_head), (range_tail, range_head)):
        for x in (-math.inf, -1.0, 0.0, 1e-300, 1e-3):
            assert (tail(x), head(x)) == (1.0, 0.0)
        for x in (50.0, 1e300, math.inf):
            assert (tail(x), head(x)) == (0.0, 1.0)


def test_tail_falls_and_complements():
    grid = np.linspace(0.01, 12.0, 2000)
    for tail, head in ((maximum_tail, maximum_head), (range_tail, range_head)):
        tails, heads = np.array([tail(x) for x in grid]), np.array([head(x) for x in grid])
        assert np.all(np.diff(tails) <= 0.0)
        assert np.all(np.diff(heads) >= 0.0)
        assert tails + heads == pytest.approx(1.0, rel=1e-15)
