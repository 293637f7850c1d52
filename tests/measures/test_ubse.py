"""The UBSE family: every member against its definition, and the theory they share."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from support.strategies import examples, inner_probabilities, probabilities, rows, weighted_rows

import truthcal as tc
from truthcal.core.points import information_axis
from truthcal.core.sample import Sample

BINNINGS = [
    tc.RandomThreshold(),
    tc.ShiftedGrid(0.3),
    tc.QuantileBins(2),
    tc.FixedBins([0.2, 0.7]),
    tc.Multiscale(),
    lambda p: np.floor(4 * p),
]
widths = st.sampled_from([1.0, 0.5, 0.25, 1 / 32, 0.1, 0.3, 2.0])


# --- members ----------------------------------------------------------------------------------------------------------


@given(rows(max_size=8), widths)
def test_shifted_grid_against_the_average_over_shifts(data, width):
    y, p = data
    expected = oracles.shifted_grid_ubse(y, oracles.exact(p), width=Fraction(width))
    assert tc.ubse(y, p, tc.ShiftedGrid(width)) == pytest.approx(float(expected), rel=1e-9, abs=1e-16)


@given(weighted_rows(max_size=8), widths)
def test_shifted_grid_is_a_tent_kernel(data, width):
    y, p, w = data
    exact = oracles.kernel_sum(y, oracles.exact(p), oracles.exact(w), oracles.tent(Fraction(width)))
    value = tc.ubse(y, p, tc.ShiftedGrid(width), sample_weight=w)
    assert value == pytest.approx(float(exact), rel=1e-9, abs=1e-15)


def test_window_steps_are_exact_where_rows_enter_and_leave_together():
    up, down = math.nextafter(0.25, 1), math.nextafter(0.25, 0)
    p = [0.5, math.nextafter(0.5, 1), 0.25, up, down]
    y = [0, 1, *p[2:]]
    expected = oracles.kernel_sum(oracles.exact(y), oracles.exact(p), [1] * 5, oracles.tent(Fraction(1, 4)))
    assert tc.ubse(y, p, tc.ShiftedGrid(0.25)) == pytest.approx(float(expected), rel=1e-10, abs=0)


def test_window_recursion_does_not_drift():
    """A million rows on a hundred values: the pairs can be summed by value."""
    rng = np.random.default_rng(0)
    p = np.round(rng.random(1_000_000), 2)
    y = rng.random(len(p)) < np.clip(p + 0.1 * np.sin(60 * p), 0, 1)
    value, count = np.unique(p, return_counts=True)
    a, c = count * value * (1 - value), np.array([math.fsum(p[p == x] - y[p == x]) for x in value])
    kernels = {0.5**k: np.maximum(0.0, 1 - np.abs(value[:, None] - value) * 2**k) for k in range(6)}
    noise = {width: math.sqrt(a @ kernel**2 @ a) for width, kernel in kernels.items()}
    total = sum(1 / sd for sd in noise.values())
    expected = sum((c @ kernels[width] @ c) / sd / total for width, sd in noise.items()) / len(p) ** 2
    assert tc.multiscale_atb(y, p) == pytest.approx(expected, rel=1e-11, abs=0)


@given(rows(max_size=30))
def test_width_one_is_atb(data):
    y, p = data
    assert tc.ubse(y, p, tc.ShiftedGrid(1.0)) == pytest.approx(tc.atb(y, p), rel=1e-12, abs=1e-300)
    assert tc.ubse(y, p, tc.RandomThreshold()) == tc.atb(y, p)


@given(rows(max_size=7), st.integers(1, 7))
@examples(60)
def test_quantile_bins_against_every_way_to_break_ties(data, k):
    y, p = data
    k = min(k, len(p))
    expected = float(oracles.quantile_ubse(y, oracles.exact(p), k))
    assert tc.ubse(y, p, tc.QuantileBins(k)) == pytest.approx(expected, rel=1e-10, abs=1e-300)
    assert tc.quantile_ece(y, p, n_bins=k) == pytest.approx(k * expected, rel=1e-10, abs=1e-300)


def test_quantile_ece_is_the_mean_over_bins_of_squared_mean_error():
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(1000))
    y = rng.random(1000) < p
    bins = (p - y).reshape(10, 100)
    assert tc.quantile_ece(y, p) == pytest.approx(np.mean(bins.mean(axis=1) ** 2), rel=1e-12, abs=0)


@given(weighted_rows(max_size=10))
def test_fixed_bins_against_definition(data):
    y, p, w = data
    labels = [0 if pi < 0.2 else 1 if pi < 0.5 else 2 for pi in p]
    expected = float(oracles.squares_in_bins(y, oracles.exact(p), oracles.exact(w), labels))
    for edges in ([0.2, 0.5], np.array([0.0, 0.2, 0.5, 1.0]), (x / 10 for x in (2, 5))):
        value = tc.ubse(y, p, tc.FixedBins(edges), sample_weight=w)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-30)


@pytest.mark.parametrize(("p", "ones"), [(0.1, 1), (0.3, 3), (0.7, 7)])
def test_bins_keep_full_precision_when_biases_cancel(p, ones):
    y, p = [1] * ones + [0] * (10 - ones), [p] * 10
    expected = float(oracles.squares_in_bins(y, oracles.exact(p), [1] * 10, [0] * 10))
    assert tc.ubse(y, p, tc.FixedBins([0.5])) == pytest.approx(expected, rel=1e-10, abs=0)


def test_a_prediction_of_one_is_in_the_last_fixed_bin():
    assert tc.ubse([0, 1], [1.0, 0.75], tc.FixedBins([0, 0.5, 1])) == (1 - 0.25) ** 2 / 4


def _columns(y, p):
    sample = Sample.of(y, p)
    return sample.p, sample.w


@given(rows(min_size=2, max_size=9))
def test_multiscale_shares_depend_on_predictions_alone_and_add_up_to_one(data):
    y, p = data
    shares = tc.Multiscale().shares(*_columns(y, p))
    assert shares == tc.Multiscale().shares(*_columns([0] * len(p), p))
    assert math.fsum(shares.values()) == pytest.approx(1)


def test_multiscale_noise_is_the_null_deviation_to_first_order():
    """Against the exact null variance, 2 S + sum v (1 - 6 v), by going through all outcomes."""
    p = [0.1, 0.3, 0.35, 0.5, 0.6, 0.8]
    v = [x * (1 - x) for x in p]
    for width in (1.0, 0.25):
        pairs = sum(oracles.tent(width)(a, b) ** 2 * va * vb for a, va in zip(p, v) for b, vb in zip(p, v))  # noqa: B905
        exact = oracles.null_variance(p, [1] * len(p), oracles.tent(width))
        assert exact == pytest.approx(2 * pairs + sum(x * (1 - 6 * x) for x in v), rel=1e-12, abs=0)
    shares = tc.Multiscale().shares(*_columns([0] * len(p), p))
    ratio = math.sqrt(
        sum(oracles.tent(1.0)(a, b) ** 2 * va * vb for a, va in zip(p, v) for b, vb in zip(p, v))  # noqa: B905
        / sum(oracles.tent(0.25)(a, b) ** 2 * va * vb for a, va in zip(p, v) for b, vb in zip(p, v))  # noqa: B905
    )
    assert shares[0.25] / shares[1.0] == pytest.approx(ratio, rel=1e-12, abs=0)


def test_multiscale_at_many_rows_against_the_pairs():
    """The window recursion over thousands of rows drifts by less than 1e-10."""
    rng = np.random.default_rng(5)
    p = np.sort(np.concatenate([rng.random(1500), rng.beta(1, 999, 1500), [0.0, 1.0]]))
    y = rng.random(len(p)) < p
    v, c = p * (1 - p), p - y
    distance = np.abs(p[:, None] - p[None, :])
    kernels = {0.5**k: np.maximum(0.0, 1 - distance * 2**k) for k in range(6)}
    noise = {width: math.sqrt(v @ kernel**2 @ v) for width, kernel in kernels.items()}
    total = sum(1 / sd for sd in noise.values())
    expected = sum((c @ kernels[width] @ c) / sd / total for width, sd in noise.items()) / len(p) ** 2
    assert tc.multiscale_atb(y, p) == pytest.approx(expected, rel=1e-10, abs=0)


def test_information_atb_breaks_with_a_tie():
    y, p = np.arange(100) % 2, np.full(100, 0.5)
    assert tc.information_atb(y, p) == 0.0
    for d in (1e-3, 1e-9, 1e-15):
        assert tc.information_atb(y, p + d * (2 * y - 1)) == pytest.approx(
            tc.information_atb(y, p + 1e-6 * (y - 0.5)), rel=0.01
        )
    assert tc.information_atb(y, p + 1e-15 * (2 * y - 1)) > 0.1


def test_information_atb_of_rare_events_is_that_of_common_ones():
    """A tenth of the probabilities have the same positions, up to the change of p(1 - p)."""
    p = np.sort(np.random.default_rng(3).uniform(1e-5, 1e-4, 500))
    positions = [information_axis(q, q * (1.0 - q)) for q in (p, 10 * p)]
    np.testing.assert_allclose(positions[0], positions[1], atol=1e-3)
    y = 2.0 * p  # outcomes may be true probabilities
    assert tc.information_atb(10 * y, 10 * p) == pytest.approx(100 * tc.information_atb(y, p), rel=1e-2)


def test_information_atb_at_many_rows_against_the_pairs():
    rng = np.random.default_rng(6)
    p = np.sort(np.concatenate([rng.random(1000), rng.beta(1, 999, 1000), [0.0, 1.0], np.full(50, 0.25)]))
    w = rng.uniform(0.5, 2.0, len(p))
    y = rng.random(len(p)) < p
    v = w * p * (1 - p)
    x = np.array([(v[p < q].sum() + v[p == q].sum() / 2) / v.sum() for q in p])
    distance, c = np.abs(x[:, None] - x), w * (p - y)
    shares = {h: (2 * h / 3 - h * h / 6) ** -0.25 for h in (0.5**k for k in range(6))}
    expected = sum(s * (c @ np.maximum(0.0, 1 - distance / h) @ c) for h, s in shares.items()) / sum(shares.values())
    assert tc.information_atb(y, p, sample_weight=w) == pytest.approx(expected / w.sum() ** 2, rel=1e-10)


# --- a user's own bins ------------------------------------------------------------------------------------------------


def test_callable_sees_sorted_predictions_and_nothing_else():
    seen = []

    def binning(*args):
        seen.extend(args)
        return np.zeros(len(args[0]))

    tc.ubse([0, 1, 1], np.array([0.9, 0.1, 0.5], np.float32), binning)
    assert len(seen) == 1
    assert seen[0].dtype == np.float64
    assert seen[0].tolist() == np.array([0.1, 0.5, 0.9], np.float32).astype(float).tolist()
    with pytest.raises(ValueError, match="read-only"):
        seen[0][0] = 1.0


def test_labels_may_be_text_and_need_not_be_numbers_in_a_row():
    y, p = [0, 1, 1], [0.2, 0.4, 0.9]
    expected = tc.ubse(y, p, tc.FixedBins([0.5]))
    assert tc.ubse(y, p, lambda p: ["low" if x < 0.5 else "high" for x in p]) == expected
    assert tc.ubse(y, p, lambda p: np.where(p < 0.5, -7, 10**12)) == expected


def test_draws_are_averaged():
    y, p = [0, 1, 1], [0.2, 0.4, 0.9]
    one = tc.ubse(y, p, lambda p: np.zeros(3))
    other = tc.ubse(y, p, lambda p: np.arange(3))
    mean = pytest.approx((one + other) / 2, rel=1e-15, abs=0)
    assert tc.ubse(y, p, lambda p: np.array([np.zeros(3), np.arange(3)])) == mean
    assert tc.ubse(y, p, lambda p: [[0, 0, 0], [0, 1, 2]]) == mean
    assert tc.ubse(y, p, lambda p: (labels for labels in ([0, 0, 0], ["a", "b", "c"]))) == mean


def test_random_thresholds_by_hand_approach_atb():
    rng = np.random.default_rng(0)
    y, p = [0, 1, 1, 0], [0.2, 0.4, 0.9, 0.7]
    value = tc.ubse(y, p, lambda p: (p < q for q in rng.random(4000)))
    assert value == pytest.approx(tc.atb(y, p), rel=0.05, abs=0)


@pytest.mark.parametrize(
    ("binning", "error", "message"),
    [
        ([0, 1, 1], TypeError, "Precomputed labels are not accepted, because they could depend on the outcomes"),
        (None, TypeError, "`binning` must be a Binning such as ShiftedGrid"),
        (
            lambda p: [0, 1],
            ValueError,
            r"one label for each of the 3 predictions, .*; one draw was an array of shape \(2,\)",
        ),
        (
            lambda p: np.zeros((3, 2)),
            ValueError,
            r"an array of shape \(draws, 3\)\); one draw was an array of shape \(2,\)",
        ),
        (lambda p: 1, ValueError, "`binning` must return one label for each .*; one draw was int"),
        (lambda p: None, ValueError, "`binning` must return one label for each .*; one draw was NoneType"),
        (lambda p: (int(4 * x) for x in p), ValueError, "an iterator of them, .*; one draw was int"),
        (np.histogram, ValueError, "`binning` must return one label for each of the 3 predictions"),
        (tc.QuantileBins, TypeError, r"`binning` is the class QuantileBins; pass an instance, QuantileBins\(\.\.\.\)"),
        (lambda p: iter([]), ValueError, "`binning` returned no draws"),
        (lambda p: [0.0, np.nan, 1.0], ValueError, r"`binning` returned a missing label \(nan or None\)"),
        (lambda p: [0, None, 1], ValueError, r"`binning` returned a missing label \(nan or None\)"),
        (tc.Binning(), TypeError, "Binning is a base class"),
    ],
)
def test_bad_binnings_are_refused(binning, error, message):
    with pytest.raises(error, match=message):
        tc.ubse([0, 1, 1], [0.1, 0.2, 0.3], binning)


@pytest.mark.parametrize("weight", [None, [1, 1, 1, 1]])
def test_bins_that_split_ties_are_refused(weight):
    """Ties are sorted by outcome, so such a binning could see outcomes: with it, lying would pay."""
    with pytest.raises(ValueError, match=r"gave equal predictions \(0\.5\) different labels; .* use QuantileBins"):
        tc.ubse([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5], lambda p: np.arange(len(p)) // 2, sample_weight=weight)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: tc.ShiftedGrid(0), ValueError, "`width` must be finite and at least 1e-200; got 0.0"),
        (lambda: tc.ShiftedGrid("0.1"), TypeError, "`width` must be a number; got '0.1'"),
        (lambda: tc.ShiftedGrid(math.inf), ValueError, "`width` must be finite"),
        (lambda: tc.QuantileBins(0), ValueError, "`n_bins` must be at least 1; got 0"),
        (lambda: tc.QuantileBins(2.5), TypeError, r"`n_bins` must be a whole number; got 2\.5"),
        (lambda: tc.QuantileBins(True), TypeError, "`n_bins` must be a whole number; got True"),
        (
            lambda: tc.FixedBins([0.5, 0.2]),
            ValueError,
            r"`edges` must lie in \[0, 1\] and increase; got \[0\.5, 0\.2\]",
        ),
        (
            lambda: tc.FixedBins([10, 20]),
            ValueError,
            r"`edges` must lie in \[0, 1\] and increase; got \[10\.0, 20\.0\]",
        ),
        (lambda: tc.FixedBins([math.nan]), ValueError, r"`edges` must lie in \[0, 1\] and increase"),
        (
            lambda: tc.FixedBins(10),
            TypeError,
            r"`edges` must be a list of numbers; got 10\. .* np\.linspace\(0, 1, 11\)",
        ),
        (lambda: tc.FixedBins(["a"]), TypeError, r"`edges` must be a list of numbers; got \['a'\]"),
        (lambda: tc.quantile_ece([0, 1], [0.1, 0.2], n_bins=3), ValueError, "`n_bins` must be between 1 and 2; got 3"),
    ],
)
def test_bad_parameters_are_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


# --- theory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binning", BINNINGS, ids=lambda b: getattr(b, "__name__", repr(b)))
@given(data=rows(min_size=2, max_size=7, outcomes=inner_probabilities))
@examples(25)
def test_expected_value_by_the_decomposition(binning, data):
    truth, report = data
    expected = oracles.expectation(truth, lambda y: tc.ubse(y, report, binning))
    assert tc.expected_ubse(report, truth, binning) == pytest.approx(expected, rel=1e-10, abs=0)


@pytest.mark.parametrize("binning", BINNINGS, ids=lambda b: getattr(b, "__name__", repr(b)))
@given(truth=st.lists(probabilities, min_size=2, max_size=30), data=st.data())
def test_lying_never_pays(binning, truth, data):
    lie = data.draw(st.lists(probabilities, min_size=len(truth), max_size=len(truth)))
    honest = tc.expected_ubse(truth, truth, binning)
    assert honest <= tc.expected_ubse(lie, truth, binning) * (1 + 1e-12)
    assert honest == pytest.approx(sum(t * (1 - t) for t in truth) / len(truth) ** 2, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    "binning", [b for b in BINNINGS if b != tc.QuantileBins(2)], ids=lambda b: repr(b).partition(" at ")[0]
)
@given(data=weighted_rows(min_size=2, max_size=6, outcomes=inner_probabilities))
@examples(20)
def test_expected_value_with_weights(binning, data):
    truth, report, w = data
    expected = oracles.expectation(truth, lambda y: tc.ubse(y, report, binning, sample_weight=w))
    assert tc.expected_ubse(report, truth, binning, sample_weight=w) == pytest.approx(expected, rel=1e-9, abs=0)


@given(
    data=rows(min_size=2, max_size=4, outcomes=inner_probabilities),
    w=st.lists(st.integers(1, 3), min_size=4, max_size=4),
)
@examples(30)
def test_expected_value_of_quantile_bins_is_that_of_repeated_rows(data, w):
    truth, report = data
    w = w[: len(truth)]
    many_truth, many_report = oracles.repeat(truth, w), oracles.repeat(report, w)
    expected = oracles.expectation(many_truth, lambda y: tc.ubse(y, many_report, tc.QuantileBins(2)))
    assert tc.expected_ubse(report, truth, tc.QuantileBins(2), sample_weight=w) == pytest.approx(
        expected, rel=1e-9, abs=0
    )
    floor = tc.MEASURES["quantile_ece"].noise_floor
    assert floor(Sample.of([0] * len(w), report, w)) == pytest.approx(
        floor(Sample.of([0] * sum(w), many_report)), rel=1e-12, abs=1e-300
    )


def test_huge_repetitions_are_counted_or_refused():
    value = tc.quantile_ece([0, 1], [0.2, 0.7], sample_weight=[2.0**44] * 2, n_bins=2**10)
    assert value == pytest.approx((0.2**2 + 0.3**2) / 2, rel=1e-9, abs=0)
    with pytest.raises(ValueError, match=r"adds up to 4\.61169e\+18 rows, more than can be counted exactly"):
        tc.quantile_ece([0, 1], [0.2, 0.7], sample_weight=[2.0**61] * 2, n_bins=4)


def test_expected_ubse_names_its_own_arguments():
    with pytest.raises(ValueError, match=r"`report` must lie in \[0, 1\]; found 1\.5 at row 1"):
        tc.expected_ubse([0.5, 1.5], [0.5, 0.5])
    with pytest.raises(ValueError, match="`report` has 2 rows but `truth` has 1"):
        tc.expected_ubse([0.5, 0.5], [0.5])
    with pytest.raises(ValueError, match=r"`truth` must lie in \[0, 1\]; found 50\.0 at row 0 .* Percentages\?"):
        tc.expected_ubse([0.5, 0.5], [50, 0.5])
    with pytest.raises(TypeError, match="`truth` must contain probabilities; got dtype <U1"):
        tc.expected_ubse([0.5, 0.5], ["a", "b"])
    assert tc.expected_ubse([0, 1], [0.5, 0.5]) == 0.25  # a report of 0 and 1 is a legal lie
