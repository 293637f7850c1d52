"""ATB: every statement of its theory as a property."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from support.strategies import examples, inner_probabilities, probabilities, rows, weighted_rows

import truthcal as tc


@given(rows(max_size=8))
def test_atb_is_a_kernel_sum(data):
    y, p = data
    kernel = oracles.kernel_sum(y, oracles.exact(p), [1] * len(p), lambda a, b: 1 - abs(a - b))
    assert kernel == oracles.atb(y, oracles.exact(p))
    assert tc.atb(y, p) == pytest.approx(float(kernel), rel=1e-12, abs=1e-300)


@given(rows(max_size=10, outcomes=inner_probabilities), st.data())
@examples(40)
def test_error_decomposition(data, more):
    """E[ATB(r, y)] = ATB(r, truth) + sum truth (1 - truth) / n^2, whatever is reported."""
    truth, _ = data
    report = more.draw(st.lists(inner_probabilities, min_size=len(truth), max_size=len(truth)))
    n = len(truth)
    expected = oracles.expectation(truth, lambda y: tc.atb(y, report))
    noise = sum(t * (1 - t) for t in truth) / n**2
    assert expected == pytest.approx(tc.atb(truth, report) + noise, rel=1e-10, abs=0)
    assert tc.expected_ubse(report, truth) == pytest.approx(expected, rel=1e-10, abs=0)


@given(rows(max_size=20), st.data())
def test_lipschitz(data, more):
    y, p = data
    other = more.draw(st.lists(probabilities, min_size=len(p), max_size=len(p)))
    distance = sum(abs(a - b) for a, b in zip(p, other, strict=True)) / len(p)
    assert abs(tc.atb(y, p) - tc.atb(y, other)) <= 4 * distance + 1e-12
    assert abs(tc.atb_l1(y, p) - tc.atb_l1(y, other)) <= 3 * distance + 1e-12


@given(weighted_rows(max_size=20))
def test_atb_and_atb_l1_bound_each_other(data):
    y, p, w = data
    square, absolute = tc.atb(y, p, sample_weight=w), tc.atb_l1(y, p, sample_weight=w)
    assert absolute**2 / 2 <= square * (1 + 1e-12)
    assert square <= absolute * (1 + 1e-12)


@given(weighted_rows(max_size=20))
def test_atb_is_at_least_half_the_squared_bias(data):
    y, p, w = data
    summary = tc.atb_summary(y, p, sample_weight=w)
    assert summary.bias**2 / 2 <= summary.value * (1 + 1e-12)


def test_excess_is_unbiased_over_all_samples():
    """Draw n rows from a small population of (p, y) cells in every possible way; the mean excess is its ATB."""
    cells = [(0.2, 0), (0.2, 1), (0.7, 1), (0.9, 0)]
    chances = [0.3, 0.2, 0.4, 0.1]
    population = tc.atb([y for _, y in cells], [p for p, _ in cells], sample_weight=chances)
    for n in (2, 3, 4):
        mean = 0.0
        for draw in np.ndindex(*[len(cells)] * n):
            sample = [cells[i] for i in draw]
            summary = tc.atb_summary([y for _, y in sample], [p for p, _ in sample])
            mean += math.prod(chances[i] for i in draw) * summary.excess
        assert mean == pytest.approx(population, rel=1e-12, abs=0)


@given(rows(max_size=8, outcomes=inner_probabilities))
@examples(30)
def test_noise_floor_is_the_mean_of_a_calibrated_forecaster(data):
    truth, _ = data
    mean = oracles.expectation(truth, lambda y: tc.atb(y, truth))
    assert tc.atb_summary([0] * len(truth), truth).noise_floor == pytest.approx(mean, rel=1e-10, abs=0)


@given(weighted_rows(max_size=8))
def test_summary_against_definitions(data):
    y, p, w = data
    summary = tc.atb_summary(y, p, sample_weight=w)
    total = sum(w)
    c = [pi - yi for pi, yi in zip(p, y, strict=True)]
    exact_p, exact_w = oracles.exact(p), oracles.exact(w)
    assert summary.value == pytest.approx(float(oracles.atb(y, exact_p, exact_w)), rel=1e-9, abs=1e-30)
    assert summary.brier == pytest.approx(sum(wi * ci * ci for wi, ci in zip(w, c, strict=True)) / total)
    assert summary.bias == pytest.approx(sum(wi * ci for wi, ci in zip(w, c, strict=True)) / total, abs=1e-14)
    floor = sum(wi * wi * pi * (1 - pi) for wi, pi in zip(w, p, strict=True)) / total**2
    assert summary.noise_floor == pytest.approx(floor, rel=1e-12, abs=1e-300)
    assert summary.n == len(p)
    assert summary.n_effective == pytest.approx(total**2 / sum(wi * wi for wi in w))
    if len(p) == 1:
        assert math.isnan(summary.excess)
    else:
        self_pairs = sum((wi * ci) ** 2 for wi, ci in zip(w, c, strict=True)) / total**2
        share = sum(wi * wi for wi in w) / total**2
        assert summary.excess == pytest.approx((summary.value - self_pairs) / (1 - share), rel=1e-6, abs=1e-12)


def test_excess_of_a_constant_prediction_off_by_d_is_its_square():
    y = np.array([0, 1] * 5000)
    assert tc.atb_summary(y, np.full(10_000, 0.6)).excess == pytest.approx(0.01, rel=0.02, abs=0)


def test_summary_prints_a_sentence_first():
    y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    text = str(tc.atb_summary(y, p))
    assert text.startswith("ATB is 0.0103, 0.234 times the noise floor\n(too few rows for a rule of thumb")
    assert "effective" not in text
    assert "rows         4            effective sample size 2.1" in str(
        tc.atb_summary(y, p, sample_weight=[1, 1, 1, 6])
    )
    assert "One row says little" in str(tc.atb_summary([1], [0.5]))
    many = tc.atb_summary([0, 1] * 300, [0.4, 0.6] * 300)
    assert "(if predictions are calibrated, 95 of 100 samples stay below 4 times the noise floor)." in str(many)
    assert str(tc.atb_summary([1], [0.5])).count("undefined    needs two rows") == 1
    assert "All predictions are 0 or 1; if they were all right, ATB would be exactly 0" in str(
        tc.atb_summary([1, 0], [1.0, 0.0])
    )
    assert tc.atb_summary(y, p).to_dict()["n"] == 4


@pytest.mark.simulation
@pytest.mark.parametrize("shape", ["uniform", "rare", "one value"])
def test_chance_alone_stays_below_four_floors_in_95_of_100_samples(shape):
    """What the summary says. One value is the extreme case: a chi-square with one degree of freedom, 3.84."""
    rng = np.random.default_rng(0)
    n, samples = 2000, 2000
    p = {"uniform": rng.random(n), "rare": rng.beta(1, 49, n), "one value": np.full(n, 0.3)}[shape]
    floor = tc.atb_summary(np.zeros(n), p).noise_floor
    ratios = [tc.atb(rng.random(n) < p, p) / floor for _ in range(samples)]
    assert 2.5 < np.quantile(ratios, 0.95) < 4.2


# --- the curve --------------------------------------------------------------------------------------------------------


@given(weighted_rows(max_size=10))
def test_curve_against_definition_and_atb(data):
    y, p, w = data
    curve = tc.cumulative_bias_curve(y, p, sample_weight=w)
    exact_p, exact_w, total = oracles.exact(p), oracles.exact(w), sum(oracles.exact(w))
    assert oracles.exact(curve.q) == sorted(set(exact_p))
    for q, bias, count, weight in zip(oracles.exact(curve.q), curve.bias, curve.count, curve.weight, strict=True):
        below = [(pi, yi, wi) for pi, yi, wi in zip(exact_p, y, exact_w, strict=True) if pi <= q]
        assert bias == pytest.approx(float(sum(wi * (pi - yi) for pi, yi, wi in below) / total), rel=1e-9, abs=1e-15)
        assert count == sum(pi == q for pi in exact_p)
        assert weight == pytest.approx(float(sum(wi for pi, _, wi in below if pi == q) / total))
    steps = np.diff([0.0, *curve.q, 1.0])
    height = np.array([0.0, *curve.bias])
    integral = float(steps @ (height**2 + (height[-1] - height) ** 2))
    assert integral == pytest.approx(tc.atb(y, p, sample_weight=w), rel=1e-9, abs=1e-15)


@given(weighted_rows(max_size=40), st.sampled_from([1, 8, 4096]))
def test_curve_of_a_sketch_lies_on_the_curve_of_the_rows(data, n_buckets):
    y, p, w = data
    exact = tc.cumulative_bias_curve(y, p, sample_weight=w)
    sketch = tc.Sketch(n_buckets).update(y, p, w)
    curve = tc.cumulative_bias_curve(sketch)
    assert set(curve.q) <= set(exact.q)
    at = np.searchsorted(exact.q, curve.q)
    np.testing.assert_allclose(curve.bias, exact.bias[at], rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.cumsum(curve.weight), np.cumsum(exact.weight)[at], rtol=1e-12)
    assert np.cumsum(curve.count).tolist() == np.cumsum(exact.count)[at].tolist()
    assert len(curve.q) == len({*tc.bucket_index(p, n_buckets)})
    assert curve.bias[-1] == pytest.approx(sketch.bias(), abs=1e-12)


@pytest.mark.parametrize("shape", ["uniform", "rare", "wrong"])
def test_curve_of_a_sketch_of_many_rows_lies_on_the_curve_of_the_rows(shape):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 99, 300_000) if shape == "rare" else rng.random(300_000)
    y = rng.random(300_000) < (p**2 if shape == "wrong" else p)
    exact, curve = tc.cumulative_bias_curve(y, p), tc.cumulative_bias_curve(tc.Sketch().update(y, p))
    assert len(curve.q) <= 4096
    assert curve.sketched
    assert not exact.sketched
    np.testing.assert_allclose(curve.bias, exact.bias[np.searchsorted(exact.q, curve.q)], rtol=0, atol=1e-12)


@given(weighted_rows(max_size=10))
def test_summary_of_a_sketch_is_that_of_the_rows(data):
    """In the estimate of ATB to within its certified bounds, in all else up to rounding."""
    y, p, w = data
    sketch = tc.Sketch().update(y, p, w)
    exact, summary = tc.atb_summary(y, p, sample_weight=w), tc.atb_summary(sketch)
    assert exact.value in sketch.atb()
    assert summary.value == sketch.atb().value
    for name in ("noise_floor", "brier", "bias", "n", "n_effective"):
        assert getattr(summary, name) == pytest.approx(getattr(exact, name), rel=1e-9, abs=1e-12), name
    assert math.isnan(summary.excess) == math.isnan(exact.excess)
    if len(p) > 1:
        share = sum(wi * wi for wi in w) / sum(w) ** 2
        doubt = (sketch.atb().width + 1e-12) / (1 - share)
        assert summary.excess == pytest.approx(exact.excess, rel=1e-6, abs=doubt)


def test_bracket_of_a_sketch_is_that_of_its_rows():
    y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    assert tc.distcal_bracket(tc.Sketch().update(y, p)) == tc.distcal_bracket(y, p)


def test_curve_prints_and_makes_columns():
    curve = tc.cumulative_bias_curve([0, 1, 1, 0], [0.25, 0.75, 0.75, 0.25])
    assert str(curve) == ("Cumulative bias at 2 different predictions (4 rows): largest +0.125 at q = 0.25, total +0.")
    assert list(curve.table()) == ["q", "bias", "count", "weight"]
    sketched = tc.cumulative_bias_curve(tc.Sketch(2).update([0, 1, 1, 0], [0.25, 0.75, 0.875, 0.125]))
    assert str(sketched) == (
        "Cumulative bias at 2 buckets of a sketch (4 rows): largest +0.09375 at q = 0.25, total +0."
    )
    assert sketched.q.tolist() == [0.25, 0.875]
    assert not any(column.flags.writeable for column in sketched.table().values())


def test_bounded_is_a_number_with_bounds():
    bounded = tc.Bounded(0.5, 0.25, 1.0)
    assert float(bounded) == 0.5
    assert bounded.width == 0.75
    assert 0.25 in bounded
    assert 0.2 not in bounded
    assert str(bounded) == "0.5, certain to 0.5"
    assert f"{bounded:.3f} {bounded}" == "0.500 0.5, certain to 0.5"


# --- numbers you can lean on ------------------------------------------------------------------------------------------


@given(rows(max_size=30))
def test_exact_arithmetic_on_delicate_floats(data):
    y, p = data
    for function, oracle in ((tc.atb, oracles.atb), (tc.atb_l1, oracles.atb_l1)):
        assert function(y, p) == pytest.approx(float(oracle(y, oracles.exact(p))), rel=1e-10, abs=1e-300)


def test_cancellation_leaves_full_precision():
    """Ten rows at 0.1, one of them positive: the float 0.1 is off by 5.6e-18, and that is the bias."""
    y, p = [1] + [0] * 9, [0.1] * 10
    expected = float(oracles.atb(y, oracles.exact(p)))
    assert 0 < expected < 1e-30
    assert tc.atb(y, p) == pytest.approx(expected, rel=1e-10, abs=0)


@pytest.mark.parametrize(("n", "p", "ones"), [(10, 0.3, 3), (7, 1 / 7, 1), (1000, 0.7, 700), (6, 1 / 3, 2)])
def test_cancellation_across_the_two_walks(n, p, ones):
    y, p = [1] * ones + [0] * (n - ones), [p] * n
    exact_p = oracles.exact(p)
    assert tc.atb(y, p) == pytest.approx(float(oracles.atb(y, exact_p)), rel=1e-10, abs=0)
    assert tc.atb_l1(y, p) == pytest.approx(float(oracles.atb_l1(y, exact_p)), rel=1e-10, abs=0)
    assert tc.atb_summary(y, p).bias == pytest.approx(float(sum(exact_p) - ones) / n, rel=1e-10, abs=0)


def test_predictions_one_ulp_apart_keep_their_distance():
    below = np.nextafter(0.5, 0)
    y, p = [0] * 50 + [1] * 50, [below] * 50 + [0.5] * 50
    expected = float(oracles.atb(y, oracles.exact(p)))
    assert tc.atb(y, p) == pytest.approx(expected, rel=1e-10, abs=0)


@pytest.mark.parametrize("weights", [[1e-300, 1e300, 1.0], [5e-324, 1.0, 2.0], [1.0, 1e-100, 1.0]])
def test_weights_too_far_apart_are_refused(weights):
    for call in (tc.atb, tc.atb_l1, tc.multiscale_atb, tc.atb_summary, tc.cumulative_bias_curve):
        with pytest.raises(
            ValueError, match=r"`sample_weight` has too wide a range: .* set them to 0, or correct the weights"
        ):
            call([0, 1, 1], [0.3, 0.6, 0.2], sample_weight=weights)
    with pytest.raises(ValueError, match="`sample_weight` has too wide a range"):
        tc.atb_approx([0, 1, 1], [0.3, 0.6, 0.2], sample_weight=weights, tolerance=0.1)


@pytest.mark.parametrize(
    "weights", [[1e-300, 3e-300, 1e-299], [5e-324, 1e-323, 5e-324], [1.7e308, 1.7e308, 1e308], [1, 1e-89, 1]]
)
def test_extreme_weights_work(weights):
    y, p = [0, 1, 1], [0.3, 0.6, 0.2]
    expected = float(oracles.atb(y, oracles.exact(p), oracles.exact(weights)))
    assert tc.atb(y, p, sample_weight=weights) == pytest.approx(expected, rel=1e-10, abs=0)
    summary = tc.atb_summary(y, p, sample_weight=weights)
    assert math.isfinite(summary.n_effective)
    assert 0 < summary.noise_floor < 1


def high_precision_atb(y, p):
    """The definition again with whole numbers: predictions are multiples of 2^-60, so all sums are exact."""
    unit = 1 << 60
    bias = {}
    for pi, yi in zip((p * 2.0**60).tolist(), y.tolist(), strict=True):
        bias[pi] = bias.get(pi, 0) + int(pi) - unit * yi
    values = sorted(bias)
    cumulative = [0, *itertools.accumulate(bias[value] for value in values)]
    edges = [0, *map(int, values), unit]
    steps = zip(itertools.pairwise(edges), cumulative, strict=True)
    integral = sum((right - left) * (c * c + (cumulative[-1] - c) ** 2) for (left, right), c in steps)
    return integral / (unit**3 * len(p) ** 2)


@pytest.mark.parametrize("shape", ["uniform", "rare", "ties", "biased", "halves"])
def test_many_rows_against_exact_sums(shape):
    rng = np.random.default_rng(3)
    n = 140_000  # enough for two threads
    p = {
        "uniform": rng.random(n),
        "rare": np.floor(rng.beta(1, 99, n) * 2**50) / 2**50,
        "ties": np.round(rng.random(n), 2),
        "biased": rng.random(n),
        "halves": np.full(n, 0.5),
    }[shape]
    p = np.floor(p * 2**53) / 2**53  # multiples of 2^-60 after all
    y = rng.random(n) < (0.7 * p if shape == "biased" else p)
    expected = high_precision_atb(y, p)
    assert tc.atb(y, p) == pytest.approx(expected, rel=1e-10, abs=0)
    assert tc.ubse(y, p, tc.ShiftedGrid(1)) == pytest.approx(expected, rel=1e-10, abs=0)
    assert tc.atb(y, p, sample_weight=np.full(n, 0.3)) == pytest.approx(expected, rel=1e-10, abs=0)


def test_ten_million_rows_are_exact_too():
    """An even grid of predictions has a closed form; long sums of equal terms are where rounding builds up."""
    n = 10_000_000
    p = (np.arange(n) + 0.5) / n
    y = np.zeros(n, np.uint8)
    # C(q) = n q^2 / 2 and C = n / 2, up to steps of size 1/n: integral of q^4/4 + (1 - q^2)^2/4 = 1/20 + 8/60
    assert tc.atb(y, p) == pytest.approx(1 / 20 + 2 / 15, rel=1e-10, abs=0)
    assert tc.atb_l1(y, p) == pytest.approx(1 / 2, rel=1e-10, abs=0)
    assert tc.atb(y, p) in tc.Sketch().update(y, p).atb()
