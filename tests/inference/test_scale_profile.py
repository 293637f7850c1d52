"""The profile over scales, against sums over pairs of rows and over all possible outcomes."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import truthcal as tc

WIDTHS = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]
P = [0.11, 0.13, 0.31, 0.48, 0.59, 0.61, 0.94]
Y = [0, 1, 0, 1, 1, 0, 1]
W = [1.0, 2.0, 1.0, 4.0, 0.5, 1.0, 3.0]


def tent_sum(y, p, w, width):
    """The definition: a sum over all pairs of rows."""
    pairs = itertools.product(zip(y, p, w, strict=True), repeat=2)
    total = sum(u * v * (b - a) * (d - c) * max(0.0, 1.0 - abs(b - d) / width) for (a, b, u), (c, d, v) in pairs)
    return total / sum(w) ** 2


def every_value(p, w, width):
    for y in itertools.product((0, 1), repeat=len(p)):
        yield tent_sum(y, p, w, width), math.prod(b if a else 1 - b for a, b in zip(y, p, strict=True))


@pytest.mark.parametrize("w", [None, W])
def test_against_pairs_and_all_outcomes(w):
    profile = tc.scale_profile(Y, P, sample_weight=w, n_resamples=20_000, rng=0)
    weights = [1.0] * 7 if w is None else w
    assert profile.width.tolist() == WIDTHS
    for i, width in enumerate(WIDTHS):
        law = list(every_value(P, weights, width))
        mean = sum(value * chance for value, chance in law)
        sd = math.sqrt(sum((value - mean) ** 2 * chance for value, chance in law))
        observed = tent_sum(Y, P, weights, width)
        assert profile.value[i] == pytest.approx(observed)
        assert profile.null_mean[i] == pytest.approx(mean)
        assert profile.null_sd[i] == pytest.approx(sd)
        pvalue = sum(chance for value, chance in law if value >= observed * (1 - 1e-9))
        assert profile.pvalue[i] == pytest.approx(pvalue, abs=0.015)
        for end, tail in ((profile.low[i], 0.025), (profile.high[i], 0.975)):
            upto = sum(chance for value, chance in law if value <= end * (1 + 1e-9))
            below = sum(chance for value, chance in law if value < end * (1 - 1e-9))
            assert below - 0.005 <= tail <= upto + 0.005
    assert (profile.method, profile.n_resamples, profile.n) == ("redrawn", 20_000, 7)


@pytest.mark.parametrize("w", [None, W])
def test_width_one_is_atb(w):
    profile, summary = tc.scale_profile(Y, P, sample_weight=w, rng=0), tc.atb_summary(Y, P, sample_weight=w)
    assert profile.value[0] == pytest.approx(summary.value)
    assert profile.null_mean[0] == pytest.approx(summary.noise_floor)
    assert profile.excess[0] == pytest.approx(summary.excess)


def test_error_is_the_signed_root_of_what_exceeds_chance():
    profile = tc.scale_profile(Y, P, rng=0)
    for value, mean, low, high, common, error, error_low, error_high in zip(
        profile.value, profile.null_mean, profile.low, profile.high, profile.common,
        profile.error, profile.error_low, profile.error_high, strict=True,
    ):  # fmt: skip
        for x, root in ((value, error), (low, error_low), (high, error_high)):
            assert root * abs(root) * common == pytest.approx(x - mean)


@pytest.mark.parametrize("sketched", [False, True])
def test_common_is_the_share_of_pairs_in_a_bin(sketched):
    """By the definition: two rows are in one bin of a randomly shifted grid with chance 1 - distance / width."""
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(P))
    given = (tc.Sketch(2**20).update(Y, P, w),) if sketched else (Y, P)
    profile = tc.scale_profile(*given, rng=0, **({} if sketched else {"sample_weight": w}))
    distance = np.abs(np.subtract.outer(np.asarray(P), np.asarray(P)))
    for width, common in zip(profile.width, profile.common, strict=True):
        pairs = np.maximum(1.0 - distance / width, 0.0) * np.outer(w, w)
        assert common == pytest.approx(pairs.sum() / w.sum() ** 2, rel=1e-4)


def test_an_error_that_is_the_same_everywhere_is_the_same_at_every_width():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.9, 100_000)
    profile = tc.scale_profile(rng.random(100_000) < p - 0.1, p, rng=0)
    assert profile.error == pytest.approx(np.full(6, 0.1), abs=0.005)


def rows(n, slope, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    odds = slope * np.log(truth / (1 - truth))
    return (rng.random(n) < truth).astype(int), 1 / (1 + np.exp(-odds))


def test_many_rows_use_the_limit_and_agree_with_the_test():
    y, p = rows(12_000, 1.1)
    profile = tc.scale_profile(y, p)
    assert (profile.method, profile.n_resamples) == ("asymptotic", 0)
    test = tc.calibration_test(y, p, measure="atb", method="asymptotic")
    assert profile.pvalue[0] == pytest.approx(test.pvalue, rel=1e-9)
    assert profile.null_sd[0] == pytest.approx(test.null_sd)
    rng = np.random.default_rng(1)
    drawn = np.array([tc.shifted_grid_ubse((rng.random(len(p)) < p).astype(int), p, width=1 / 8) for _ in range(400)])
    inside = np.mean((drawn >= profile.low[3]) & (drawn <= profile.high[3]))
    assert inside == pytest.approx(0.95, abs=0.045)
    assert np.mean(drawn < profile.low[3]) == pytest.approx(0.025, abs=0.03)


@pytest.mark.parametrize("n", [300, 30_000])
def test_sketch_has_the_profile_of_its_rows(n):
    y, p = rows(n, 1.3)
    exact, sketched = tc.scale_profile(y, p, rng=0), tc.scale_profile(tc.Sketch(4096).update(y, p), rng=0)
    assert sketched.sketched
    assert not exact.sketched
    assert sketched.n == n
    assert sketched.method == exact.method
    for name in ("value", "null_mean", "null_sd", "excess"):
        np.testing.assert_allclose(getattr(sketched, name), getattr(exact, name), rtol=0.01)
    np.testing.assert_allclose(sketched.high, exact.high, rtol=0.15 if n == 300 else 0.01)
    np.testing.assert_allclose(np.log(sketched.pvalue), np.log(exact.pvalue), rtol=0.3 if n == 300 else 0.01)


def test_errors_that_change_sign_show_at_narrow_widths():
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    truth = np.clip(p + 0.08 * np.sign(np.sin(2 * np.pi * 16 * p)), 0, 1)
    profile = tc.scale_profile((rng.random(len(p)) < truth).astype(int), p)
    assert profile.pvalue[0] > 0.001
    assert profile.pvalue[5] < 1e-6
    assert int(np.argmax(profile.error)) >= 3


def test_many_rows_of_which_few_are_in_doubt_are_redrawn():
    p = np.full(20_000, 0.001)
    p[:5000] = 0.002
    y = np.zeros(20_000, int)
    y[:30] = 1
    profile = tc.scale_profile(y, p, n_resamples=20_000, rng=0)
    assert profile.method == "redrawn"
    few, many = np.meshgrid(np.arange(80), np.arange(80), indexing="ij")  # positives at 0.001 and at 0.002
    chance = stats.binom.pmf(few, 15_000, 0.001) * stats.binom.pmf(many, 5000, 0.002)
    a, b = 15.0 - few, 10.0 - many
    value = (a**2 + b**2 + 2 * a * b * (1 - 0.001)) / 20_000**2
    assert profile.value[0] == pytest.approx(value[0, 30])
    assert profile.pvalue[0] == pytest.approx(np.sum(chance[value >= value[0, 30] * (1 - 1e-9)]), abs=0.012)


def test_one_row_and_certain_rows():
    one = tc.scale_profile([1], [0.3], rng=0)
    assert np.isnan(one.excess).all()
    assert np.allclose(one.value, 0.49)
    certain = tc.scale_profile([0, 1], [0.0, 1.0], rng=0)
    assert certain.value.tolist() == certain.high.tolist() == [0.0] * 6
    assert certain.pvalue.tolist() == [1.0] * 6


def test_prints_in_words_and_has_a_table():
    profile = tc.scale_profile([1] * 20 + [0] * 20, [0.05] * 40, rng=0)
    lines = str(profile).splitlines()
    assert lines[0] == "6 of 6 scales have an error above the 95% range of calibrated predictions (40 rows)."
    assert [line.split()[0] for line in lines[3:9]] == ["1", "1/2", "1/4", "1/8", "1/16", "1/32"]
    assert lines[9:] == [f"! {profile.dependence}"]  # first only ones, then only zeros
    assert str(tc.scale_profile([1], [0.3], rng=0)).startswith("None of 6 scales has an error above")
    table = profile.table()
    assert {len(column) for column in table.values()} == {6}
    assert table["pvalue"] is profile.pvalue
    assert profile.to_dict()["n"] == 40


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"y_proba": None}, TypeError, "`y_proba`"),
        ({"y_true": [0.5, 0.2, 0.1]}, ValueError, "must contain only 0 and 1 here"),
        (
            {"y_true": tc.Sketch().update([0.5, 0.2], [0.4, 0.3]), "y_proba": None},
            ValueError,
            "must contain only 0 and 1 here",
        ),
        ({"y_true": tc.Sketch(), "y_proba": None}, ValueError, "empty|no rows"),
        ({"n_resamples": 5}, ValueError, "`n_resamples` must be at least 39"),
        ({"confidence_level": 1.5}, ValueError, "`confidence_level` must"),
    ],
)
def test_refuses(given, error, message):
    with pytest.raises(error, match=message):
        tc.scale_profile(**({"y_true": [0, 1, 1], "y_proba": [0.2, 0.7, 0.9]} | given))
