"""Weighted sums of squared normals, against other formulas in many digits."""

import itertools
import math
from functools import lru_cache

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truthcal.inference.laws.quadratic_form import Forms, lower_tail, upper_quantile, upper_tail


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(80):
        yield


def chi_square_tails(x, df):
    """P(> x), P(< x) of a chi-square variable, by incomplete gamma functions."""
    half = mp.mpf(df) / 2, mp.mpf(x) / 2
    return mp.gammainc(half[0], half[1], regularized=True), mp.gammainc(half[0], 0, half[1], regularized=True)


def one_square_tail(x, shift):
    """P((X + shift)^2 > x)."""
    root = mp.sqrt(x)
    return mp.ncdf(shift - root) + mp.ncdf(-shift - root)


@lru_cache
def partial_fractions(scales, digits):
    """Weights of the exponentials in the density of the sum of 2 l_k E_k, for different l_k of any sign."""
    with mp.workdps(digits):
        exact = [mp.mpf(scale) for scale in scales]
        return [mp.fprod(own / (own - other) for other in exact if other != own) for own in exact]


def exponentials_tails(x, scales, digits=300):
    """P(> x), P(< x) of the sum of 2 l_k E_k for x >= 0: a quadratic form whose scales come in equal pairs."""
    weights = partial_fractions(tuple(scales), digits)
    with mp.workdps(digits):  # enough for what cancels
        upper = mp.fsum(
            weight * mp.exp(-mp.mpf(x) / (2 * mp.mpf(scale)))
            for weight, scale in zip(weights, scales, strict=True)
            if scale > 0
        )
        return upper, 1 - upper


def ruben_tails(x, scales, shifts, terms):
    """P(> x), P(< x) for positive scales as a mixture of chi-square variables (Ruben 1962)."""
    scales, squares = [mp.mpf(scale) for scale in scales], [mp.mpf(shift) ** 2 for shift in shifts]
    unit = min(scales)
    rest = [1 - unit / scale for scale in scales]
    powers = [mp.mpf(1)] * len(scales)
    g, a = [mp.mpf(0)], [mp.exp(-mp.fsum(squares) / 2) * mp.fprod(mp.sqrt(unit / scale) for scale in scales)]
    for m in range(1, terms):
        shifted = mp.fsum(square / scale * power for square, scale, power in zip(squares, scales, powers, strict=True))
        powers = [power * ratio for power, ratio in zip(powers, rest, strict=True)]
        g.append(mp.fsum(powers) + m * unit * shifted)
        a.append(mp.fsum(g[m - r] * a[r] for r in range(m)) / (2 * m))
    half, y = mp.mpf(len(scales)) / 2, mp.mpf(x) / unit / 2
    upper, lower = chi_square_tails(2 * y, len(scales))
    bit = mp.exp(half * mp.log(y) - y - mp.loggamma(half + 1))
    above = below = mp.mpf(0)
    for k, weight in enumerate(a):
        above, below = above + weight * upper, below + weight * lower
        upper, lower, bit = upper + bit, lower - bit, bit * y / (half + k + 1)
    return above, below


def difference_tail(x, scales, shifts):
    """P(own (X + d)^2 - other (Y + e)^2 > x) for x >= 0, as an integral over Y."""
    (own, other), (d, e) = map(mp.mpf, scales), map(mp.mpf, shifts)
    unit = one_square_tail(x / own, d)  # mp.quad stops at an absolute error

    def piece(y):
        return mp.npdf(y) * one_square_tail((x + other * (y + e) ** 2) / own, d) / unit

    return unit * mp.quad(piece, sorted([mp.mpf(-12), mp.mpf(12), *(-e + mp.mpf(y) for y in (-3, -0.25, 0, 0.25, 3))]))


def close(expected, rel=1e-12):
    """Equal to a relative error, as far as floats have all their digits."""
    expected = float(expected)
    return pytest.approx(expected, rel=rel, abs=0) if expected > 1e-290 else pytest.approx(0.0, abs=1e-289)


@pytest.mark.parametrize("df", [1, 2, 3, 10, 400, 2000])
def test_equal_scales_are_a_chi_square_variable(df):
    for ratio in (1e-100, 1e-9, 1e-3, 0.1, 0.45, 0.9, 1.0, 1.1, 1.5, 3.0, 30.0, 900.0):
        x = ratio * df
        upper, lower = chi_square_tails(x, df)
        assert upper_tail(x, np.ones(df)) == close(upper)
        assert lower_tail(x, np.ones(df)) == close(lower)


@pytest.mark.parametrize("x", [0.5, 1.0, 10.8, 50.8, 223.0, 908.0])
def test_one_shifted_square(x):
    for shift in (0.0, 0.3, -2.0, 5.0):
        assert upper_tail(3.0 * x, [3.0], [shift]) == close(one_square_tail(mp.mpf(x), mp.mpf(shift)))
        assert lower_tail(-3.0 * x, [-3.0], [shift]) == close(one_square_tail(mp.mpf(x), mp.mpf(shift)))


@pytest.mark.parametrize("deviations", [-20.0, -3.0, 0.0, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("shift", [1e3, 1e5, 1e7])
def test_huge_shift(shift, deviations):
    x = shift**2 + 1.0 + 2.0 * shift * deviations
    upper = one_square_tail(mp.mpf(x), mp.mpf(shift))
    assert upper_tail(x, [1.0], [shift]) == close(upper)
    with mp.workdps(150):
        assert lower_tail(x, [1.0], [shift]) == close(1 - one_square_tail(mp.mpf(x), mp.mpf(shift)))


def test_against_scipy():
    assert upper_tail(30.0, [1.5] * 4, [1.0, -1.0, 0.5, 0.0]) == close(stats.ncx2.sf(20.0, 4, 2.25), 1e-10)
    assert lower_tail(3.0, [1.5] * 4, [1.0, -1.0, 0.5, 0.0]) == close(stats.ncx2.cdf(2.0, 4, 2.25), 1e-10)
    assert upper_quantile(1e-3, [2.0] * 7) == close(2.0 * stats.chi2.isf(1e-3, 7), 1e-12)


@pytest.mark.parametrize(
    "scales", [[1.0, 0.5], [1.0, 0.999, 0.998, 0.3], [1.0, 1e-3, 1e-6], [5.0, 4.0, 3.0, 2.0, 1.0, 0.1]]
)
def test_pairs_are_exponentials(scales):
    total = 2.0 * sum(scales)
    for ratio in (1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 1.5, 3.0, 10.0, 100.0, 300.0):
        x = ratio * total
        upper, lower = exponentials_tails(x, scales)
        assert upper_tail(x, np.repeat(scales, 2)) == close(upper)
        assert lower_tail(x, np.repeat(scales, 2)) == close(lower)


@pytest.mark.parametrize(
    "scales", [[1.0, -1.0], [1.0, -0.01], [0.02, -1.0], [1.0, 0.6, -0.3, -0.9], [1e-4, 2e-4, -1.0, -2.0]]
)
def test_signed_pairs_are_differences_of_exponentials(scales):
    for x in (0.0, 1e-9, 1e-4, 0.01, 0.3, 1.0, 5.0, 60.0, 800.0):
        upper, lower = exponentials_tails(x, scales)
        assert upper_tail(x, np.repeat(scales, 2)) == close(upper)
        assert lower_tail(x, np.repeat(scales, 2)) == close(lower)


@pytest.mark.parametrize("x", [0.003, 0.02, 0.1, 0.16, 0.2, 0.5, 3.0, 6.0, 24.0, 95.0])
def test_sums_of_many_scales(x):
    """The law of the two-dimensional Cramer-von Mises statistic: 200 pairs 1 / (j pi)^2, tails from 0.5 to 1e-200."""
    scales = [float(1 / (j * mp.pi) ** 2) for j in range(1, 201)]
    upper, lower = exponentials_tails(x, scales)
    assert upper_tail(x, np.repeat(scales, 2)) == close(upper)
    assert lower_tail(x, np.repeat(scales, 2)) == close(lower)


@pytest.mark.parametrize("x", [0.01, 0.5, 3.0, 9.0, 25.0, 80.0, 1180.0])
def test_few_scales_and_shifts_against_rubens_series(x):
    scales, shifts = [1.3, 0.9, 0.7], [0.5, -1.5, 0.0]
    upper, lower = ruben_tails(x, scales, shifts, 150 if x < 100 else 900)
    assert upper_tail(x, scales, shifts) == close(upper)
    assert lower_tail(x, scales, shifts) == close(lower)


@pytest.mark.parametrize("x", [0.0, 1e-6, 2.0, 50.0, 800.0])
def test_difference_of_two_squares(x):
    for scales, shifts in (((1.0, 0.7), (0.0, 0.0)), ((1.0, 1e-3), (0.5, 2.0)), ((0.4, 2.0), (3.0, -1.0))):
        signed = [scales[0], -scales[1]]
        with mp.workdps(22):
            upper = difference_tail(mp.mpf(x), scales, shifts)
        assert upper_tail(x, signed, shifts) == close(upper)
        assert lower_tail(x, signed, shifts) == close(1 - upper)


def test_small_scales_beside_a_large_one_shift_and_blur_it():
    """2000 tiny scales are a normal variable to the accuracy seen here; the large square is integrated over it."""
    small = np.full(2000, 1e-6)
    for x in (-3.0, -1.0, 0.5):
        expected = stats.chi2.sf(max(0.002 - x, 0.0), 1)
        assert lower_tail(x, [*small, -1.0]) == close(expected, 1e-8)
    tail = [upper_tail(x, [1.0, *np.full(2000, 1e-30)]) for x in (0.1, 1.0, 40.0)]
    assert tail == pytest.approx(stats.chi2.sf([0.1, 1.0, 40.0], 1), rel=1e-12, abs=0)
    assert lower_tail(1.0, [-1.0, *np.full(2000, 1e-3)]) == close(blurred_tail(), 1e-10)


def blurred_tail():
    """P(sum of 2000 squares / 1000 - X^2 < 1), integrated over the gamma density of the sum."""
    with mp.workdps(30):
        log_norm = mp.loggamma(1000) + 1000 * mp.log(2)

        def piece(y):
            return mp.exp(999 * mp.log(y) - y / 2 - log_norm) * one_square_tail(max(y / 1000 - 1, mp.mpf(0)), 0)

        return mp.quad(piece, [1000, 1400, 1600, 1800, 1900, 2000, 2100, 2200, 2400, 2600, 3000])


def test_difference_of_large_groups():
    """The path of integration that suits the larger scales is a detour for the many small ones, and is left for another."""
    x = -24.0

    def piece(b):
        log_density = 49 * mp.log(b) - b / 2 - mp.loggamma(50) - 50 * mp.log(2)
        return mp.exp(log_density) * chi_square_tails(max((x + b / 2) * 20, mp.mpf(0)), 500)[0]

    with mp.workdps(20):
        upper = mp.quad(piece, [0, 48, 70, 85, 100, 115, 130, 160, 320])
    assert upper_tail(x, [0.05] * 500 + [-0.5] * 100) == close(upper)
    assert lower_tail(x, [0.05] * 500 + [-0.5] * 100) == close(1 - upper)


def test_signed_scales_with_shifts_against_simulation():
    rng = np.random.default_rng(7)
    scales, shifts = np.array([2.0, 0.5, -1.0, -0.3, 0.1]), np.array([0.3, -2.0, 1.0, 0.0, 4.0])
    q = (rng.standard_normal((400_000, 5)) + shifts) ** 2 @ scales
    for x in (-4.0, 0.0, 2.0, 5.0, 12.0):
        chance = upper_tail(x, scales, shifts)
        assert np.mean(q > x) == pytest.approx(chance, abs=4.0 * math.sqrt(chance * (1.0 - chance) / q.size))


def test_nothing_random_and_thresholds_outside():
    for scales in ([], [0.0, 0.0]):
        assert [upper_tail(x, scales) for x in (-1.0, 0.0, 1.0)] == [1.0, 0.0, 0.0]
        assert [lower_tail(x, scales) for x in (-1.0, 0.0, 1.0)] == [0.0, 0.0, 1.0]
        assert upper_quantile(0.3, scales) == 0.0
    for x in (-math.inf, -1.0, 0.0, 1e-300):
        assert (upper_tail(x, [2.0, 0.0, 1.0]), lower_tail(x, [2.0, 0.0, 1.0])) == (1.0, 0.0)
        assert (upper_tail(-x, [-2.0, -1.0]), lower_tail(-x, [-2.0, -1.0])) == (0.0, 1.0)
    for x in (math.inf, 1e300, 1e5):
        assert (upper_tail(x, [2.0, -1.0]), lower_tail(x, [2.0, -1.0])) == (0.0, 1.0)
        assert (upper_tail(-x, [2.0, -1.0]), lower_tail(-x, [2.0, -1.0])) == (1.0, 0.0)


def test_extreme_units():
    for unit in (1e-300, 1e300, 5e-324):
        assert upper_tail(3.0 * unit, [unit], [0.0]) == close(stats.chi2.sf(3.0, 1))
    assert upper_quantile(0.01, [1e-300, 1e-300]) == close(-2e-300 * math.log(0.01))


@pytest.mark.parametrize(
    "scales", [[1.0], [1.0, 1e-8], [1.0, -1.0], [-1.0, -0.2], [3.0, 1.0, -0.5], [1.0, *[1e-3] * 60]]
)
def test_quantile_inverts_the_tail(scales):
    for shifts in (np.zeros(len(scales)), np.linspace(-2.0, 3.0, len(scales))):
        for chance in (1e-200, 1e-12, 1e-3, 0.05, 0.5, 0.7, 0.99):
            if max(scales) > 0.0 or chance > 1e-100:
                assert upper_tail(upper_quantile(chance, scales, shifts), scales, shifts) == close(chance, 1e-10)
        chance = 1.0 - 2.0**-50
        assert lower_tail(upper_quantile(chance, scales, shifts), scales, shifts) == close(2.0**-50, 1e-10)


def test_errors():
    with pytest.raises(ValueError, match="`chance` must lie strictly between 0 and 1; found 1"):
        upper_quantile(1.0, [1.0])
    with pytest.raises(ValueError, match="`shifts` and `scales` must have the same length; got 1 and 2"):
        upper_tail(1.0, [1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="`scales` must be finite"):
        lower_tail(1.0, [math.inf])
    with pytest.raises(ValueError, match="`x` must be a number; found nan"):
        lower_tail(math.nan, [1.0])


scale = st.tuples(st.floats(-6.0, 0.0), st.sampled_from([-1.0, 1.0])).map(lambda pair: pair[1] * 10.0 ** pair[0])
forms = st.lists(st.tuples(scale, st.floats(-4.0, 4.0)), min_size=1, max_size=6)


@given(forms, st.floats(-6.0, 6.0), st.floats(0.0, 1.0), st.integers(-60, 60))
def test_tails_add_up_fall_and_do_not_depend_on_units(form, x, step, exponent):
    scales, shifts = np.array(form).T
    upper, lower = upper_tail(x, scales, shifts), lower_tail(x, scales, shifts)
    assert 0.0 <= upper <= 1.0
    assert upper + lower == pytest.approx(1.0, rel=1e-14)
    assert upper_tail(x + step, scales, shifts) <= upper * (1.0 + 1e-11)
    assert upper_tail(x * 2.0**exponent, scales * 2.0**exponent, shifts) == upper
    assert upper_tail(3.0 * x, 3.0 * scales, shifts) == close(upper, 1e-11)
    assert lower_tail(-x, -scales, shifts) == close(upper, 1e-13)


def test_balanced_signs_are_symmetric():
    for scales in (
        [1.0, -1.0],
        [1.0, 1e-5, -1e-5, -1.0],
        [*np.geomspace(1e-3, 1.0, 50), *-np.geomspace(1e-3, 1.0, 50)],
    ):
        assert upper_tail(0.0, scales) == pytest.approx(0.5, rel=1e-14)


def test_far_beyond_floats_is_zero_and_never_nan():
    rng = np.random.default_rng(3)
    scales, shifts = rng.standard_normal(40), 1e3 * rng.standard_normal(40)
    for x in (-1e308, -1e12, -1e8, 0.0, 1e-300, 1e8, 1e12, 1e308):
        upper, lower = upper_tail(x, scales, shifts), lower_tail(x, scales, shifts)
        assert 0.0 <= upper <= 1.0
        assert upper + lower == pytest.approx(1.0, rel=1e-14)


def test_known_values():
    assert lower_tail(1e-9, [1.0, 1.0]) == pytest.approx(5e-10, rel=5e-6)  # 1 - exp(-5e-10)
    assert upper_quantile(0.05, [1.0]) == pytest.approx(3.8415, abs=5e-5)  # chi-square with one degree of freedom


# --- many forms at once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signed", [False, True])
def test_forms_together_are_those_of_each_alone(signed):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 40)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    scales, shifts = rng.exponential(1.0, starts[-1]) * 10.0 ** rng.integers(-9, 9), rng.normal(size=starts[-1])
    scales[rng.random(len(scales)) < 0.2] = 0.0
    scales[: sizes[0]] = 0.0
    if signed:
        scales *= rng.choice([-1.0, 1.0], len(scales))
    forms, parts = Forms.of(scales, shifts, starts), [slice(*ends) for ends in itertools.pairwise(starts)]
    x = np.array([np.sum(scales[part]) * rng.exponential(2.0) for part in parts])
    for many, one in ((forms.upper_tails, upper_tail), (forms.lower_tails, lower_tail)):
        alone = [one(value, scales[part], shifts[part]) for value, part in zip(x, parts, strict=True)]
        assert many(x).tolist() == alone
        some = np.arange(len(x)) % 3 == 0
        assert many(x, some).tolist() == np.where(some, alone, 0.0).tolist()
    for chance in (0.01, 0.9):
        alone = [upper_quantile(chance, scales[part], shifts[part]) for part in parts]
        np.testing.assert_allclose(forms.upper_quantiles(chance), alone, rtol=1e-13, atol=0)


def test_extreme_thresholds_with_shifts_do_not_affect_other_forms():
    """Saddlepoints of 1e200: squares of the nodes overflow."""
    forms = Forms.of(np.array([1.0, 0.5] * 3), np.array([0.0, 0.0, 1.0, 0.0, 0.3, -2.0]), np.array([0, 2, 4, 6]))
    x = np.array([1e-200, 1.0, 1e-153])
    alone = [
        lower_tail(1e-200, [1.0, 0.5]),
        lower_tail(1.0, [1.0, 0.5], [1.0, 0.0]),
        lower_tail(1e-153, [1.0, 0.5], [0.3, -2.0]),
    ]
    assert forms.lower_tails(x).tolist() == alone
    # Near 0 the density of two squares is constant: exp(-(d^2 + e^2)/2) / (2 sqrt(r s)).
    expected = 1e-153 * math.exp(-(0.3**2 + 2.0**2) / 2.0) / (2.0 * math.sqrt(0.5))
    assert alone[2] == pytest.approx(expected, rel=1e-12)
    assert alone[0] == pytest.approx(1e-200 / (2.0 * math.sqrt(0.5)), rel=1e-12)
