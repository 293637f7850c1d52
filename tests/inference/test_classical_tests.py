"""Spiegelhalter and Hosmer-Lemeshow, against their formulas in plain Python, full enumeration and known distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import inference as inference_oracles
from scipy import stats
from support.strategies import examples, inner_probabilities

import truthcal as tc

EACH = pytest.mark.parametrize("function", [tc.spiegelhalter_test, tc.hosmer_lemeshow_test])

DESIGNS = {
    "dyadic": ([0.125, 0.25, 0.375, 0.5, 0.75, 0.875, 0.9375, 0.0625, 0.3125, 0.6875], None),
    "floats": ([0.1, 0.37, 0.7, 0.55, 0.9, 0.21, 0.83, 0.45, 0.05, 0.64], None),
    "tied": ([0.25, 0.25, 0.5, 0.5, 0.75, 0.5, 0.25, 0.75, 0.75, 0.5], None),
    "weighted": ([0.125, 0.25, 0.25, 0.5, 0.75, 0.5, 0.25, 0.75], [1, 2, 3, 1, 2, 1, 1, 4]),
    "certain": ([0.0, 0.5, 1.0, 0.25, 0.0, 0.75, 1.0, 0.3], None),
}


def some_rows(n, seed=0, slope=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(int), p


def outcomes_for(p, count=4):
    """A few outcomes that certain predictions allow."""
    rng = np.random.default_rng(0)
    return [[int(rng.random() < (pi if pi in (0, 1) else 0.5)) for pi in p] for _ in range(count)]


# --- exact p-values, by full enumeration ------------------------------------------------------------------------------


def check_against_enumeration(function, oracle, p, w):
    distribution = inference_oracles.null_distribution(p, w, oracle)
    mean, sd = inference_oracles.mean_and_sd(distribution)
    fractions = inference_oracles.fractions(p), w and inference_oracles.fractions(w)
    for y in outcomes_for(p):
        observed = float(oracle(y, *fractions))
        greater, less = inference_oracles.tails(distribution, observed, 1e-10)
        expected = {"greater": greater, "less": less, "two-sided": min(1.0, 2.0 * min(greater, less))}
        for alternative, pvalue in expected.items():
            result = function(y, p, alternative=alternative, sample_weight=w, method="exact")
            assert result.pvalue == pytest.approx(pvalue, rel=1e-9, abs=0)
            assert result.statistic == pytest.approx(observed, rel=1e-12, abs=1e-12)
        assert (result.null_mean, result.null_sd) == pytest.approx((mean, sd), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", DESIGNS)
def test_spiegelhalter_equals_full_enumeration(kind):
    check_against_enumeration(tc.spiegelhalter_test, inference_oracles.spiegelhalter, *DESIGNS[kind])


@pytest.mark.parametrize("n_bins", [1, 3, 10])
@pytest.mark.parametrize("kind", [kind for kind in DESIGNS if kind != "certain"])
def test_hosmer_lemeshow_equals_full_enumeration(kind, n_bins):
    def test(*rows, **options):
        return tc.hosmer_lemeshow_test(*rows, n_bins=n_bins, **options)

    def oracle(y, p, w=None):
        return inference_oracles.hosmer_lemeshow(y, p, w, n_bins)

    check_against_enumeration(test, oracle, *DESIGNS[kind])


# --- the statistics ---------------------------------------------------------------------------------------------------

LINES = st.lists(st.tuples(st.integers(0, 1), inner_probabilities, st.integers(1, 4)), min_size=2, max_size=30)


@examples(60)
@given(lines=LINES, n_bins=st.integers(1, 12))
def test_hosmer_lemeshow_is_the_loop_over_bins(lines, n_bins):
    y, p, w = zip(*lines, strict=True)
    p = [inference_oracles.Fraction(float(pi)) for pi in p]
    for weight in (None, w):
        expected = float(inference_oracles.hosmer_lemeshow(y, p, weight, n_bins))
        found = tc.hosmer_lemeshow_test(y, [float(pi) for pi in p], n_bins=n_bins, sample_weight=weight, n_resamples=1)
        assert found.statistic == pytest.approx(expected, rel=1e-9, abs=1e-12)


@examples(60)
@given(lines=LINES)
def test_spiegelhalter_is_its_formula(lines):
    y, p, w = zip(*lines, strict=True)
    if all(pi == 0.5 for pi in p):
        return
    for weight in (None, w):
        expected = inference_oracles.spiegelhalter(y, inference_oracles.fractions(p), weight)
        found = tc.spiegelhalter_test(y, p, sample_weight=weight, method="asymptotic")
        assert found.statistic == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_spiegelhalter_by_hand():
    """Brier 0.1, expected 0.25 * 0.75 = 0.1875 at p = 1/4 twice: z = (2/16 - 6/16) / sqrt(2 * (1/2)^2 * 3/16)."""
    result = tc.spiegelhalter_test([0, 0], [0.25, 0.25], method="asymptotic")
    z = -0.25 / math.sqrt(2 * 0.25 * 3 / 16)
    assert result.statistic == pytest.approx(z, rel=1e-14)
    assert result.pvalue == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), rel=1e-13)
    less = tc.spiegelhalter_test([0, 0], [0.25, 0.25], method="asymptotic", alternative="less").pvalue
    assert less == pytest.approx(result.pvalue / 2, rel=1e-13)
    assert (result.null_mean, result.null_sd, result.z) == (0.0, 1.0, result.statistic)


def test_spiegelhalter_is_the_brier_score():
    """z counts the distance of the Brier score from its expectation in standard deviations."""
    y, p = some_rows(500)
    brier, expected = np.mean((y - p) ** 2), np.mean(p * (1 - p))
    spread = math.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p))) / 500
    assert tc.spiegelhalter_test(y, p).statistic == pytest.approx((brier - expected) / spread, rel=1e-10)


def test_hosmer_lemeshow_by_hand():
    """Two bins of 5: expected 0.2 * 5 = 1 and 0.6 * 5 = 3; observed 2 and 2: 1/0.8 + 1/1.2 = 25/12."""
    y = [1, 1, 0, 0, 0, 1, 1, 0, 0, 0]
    p = [0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    result = tc.hosmer_lemeshow_test(y, p, n_bins=2, method="asymptotic")
    assert result.statistic == pytest.approx(25 / 12, rel=1e-12)
    assert result.pvalue == pytest.approx(math.exp(-25 / 24), rel=1e-12)  # chi-square with 2 degrees of freedom
    assert (result.null_mean, result.null_sd) == (2.0, 2.0)
    fitted = tc.hosmer_lemeshow_test(y, p, n_bins=2, ddof=1)
    assert fitted.method == "asymptotic"
    assert fitted.pvalue == pytest.approx(math.erfc(math.sqrt(25 / 24)), rel=1e-12)  # and with 1
    less = tc.hosmer_lemeshow_test(y, p, n_bins=2, method="asymptotic", alternative="less").pvalue
    assert less == pytest.approx(-math.expm1(-25 / 24), rel=1e-12)


def test_hosmer_lemeshow_keeps_ties_together():
    """Nine equal predictions and one other: two bins however many are asked for."""
    p, y = [0.5] * 9 + [0.9], [1] * 6 + [0] * 3 + [1]
    result = tc.hosmer_lemeshow_test(y, p, n_bins=10, method="asymptotic")
    assert result.statistic == pytest.approx(1.5**2 / 2.25 + 0.1**2 / 0.09, rel=1e-12)
    assert result.null_mean == 2.0


@EACH
@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_asymptotic_is_close_to_exact(function, alternative):
    for seed, slope in ((0, 1.0), (1, 0.95), (2, 0.9)):
        y, p = some_rows(1000, seed, slope)
        exact = function(y, p, alternative=alternative, method="exact", rng=0)
        asymptotic = function(y, p, alternative=alternative, method="asymptotic")
        assert asymptotic.statistic == exact.statistic
        assert asymptotic.pvalue == pytest.approx(exact.pvalue, rel=0.15, abs=0.005)


@EACH
def test_auto_is_exact_for_few_rows(function):
    y, p = some_rows(10_001)
    assert function(y, p).method == "asymptotic"
    assert function(y[:-1], p[:-1], n_resamples=9).method == "exact"
    assert function(y * 0, p / 1000, n_resamples=9).method == "exact"


def test_spiegelhalter_sees_overconfidence_and_not_a_shift():
    y, p = some_rows(5000, slope=0.8)
    assert tc.spiegelhalter_test(y, p, method="asymptotic", alternative="greater").pvalue < 1e-10
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 5000)
    shifted = (rng.random(5000) < p + 0.08).astype(int)
    assert tc.spiegelhalter_test(shifted, p, method="asymptotic").pvalue > 0.05
    assert tc.hosmer_lemeshow_test(shifted, p, method="asymptotic").pvalue < 1e-10


@EACH
def test_scale_of_weights_and_rows_of_weight_zero_do_not_matter(function):
    y, p = some_rows(300)
    w = np.random.default_rng(0).uniform(0.2, 3.0, 300)
    expected = function(y, p, sample_weight=w, method="asymptotic")
    scaled = function(y, p, sample_weight=w * 2.0**-700, method="asymptotic")
    assert (scaled.statistic, scaled.pvalue) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-12)
    longer = np.append(y, [0, 1]), np.append(p, [0.999, 0.001])
    assert function(*longer, sample_weight=np.append(w, [0.0, 0.0]), method="asymptotic") == expected


@EACH
def test_results_print_and_depend_on_the_seed_alone(function):
    y, p = some_rows(400, slope=0.5)
    assert function(y, p, rng=3) == function(y, p, rng=3)
    assert str(function(y, p, rng=3)).startswith("Clear evidence of miscalibration")
    with pytest.raises(ValueError, match="is a test statistic, not a measure: it has no population value"):
        function(y, p, rng=3).confidence_interval()


def test_single_precision():
    y, p = some_rows(400)
    for function in (tc.spiegelhalter_test, tc.hosmer_lemeshow_test):
        a, b = (function(y, q, method="asymptotic") for q in (p.astype(np.float32), p.astype(np.float32).astype(float)))
        assert (a.statistic, a.pvalue) == pytest.approx((b.statistic, b.pvalue), rel=1e-9)


# --- refusals ---------------------------------------------------------------------------------------------------------

Y, P = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4]
REFUSED = [
    ({"method": "bound"}, ValueError, "`method` must be one of 'auto', 'exact', 'asymptotic'; got 'bound'"),
    ({"alternative": "both"}, ValueError, "`alternative` must be one of 'greater', 'less', 'two-sided'; got 'both'"),
    ({"n_resamples": 0}, ValueError, "`n_resamples` must be at least 1; got 0"),
    ({"rng": "seed"}, TypeError, "`rng` must be a whole number, a numpy Generator or None; got 'seed'"),
    ({"sample_weight": [1, 1, 1, -1]}, ValueError, "`sample_weight`"),
]


@EACH
@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED)
def test_bad_arguments_are_refused(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(Y, P, **arguments)


@EACH
def test_bad_rows_are_refused(function):
    with pytest.raises(ValueError, match=r"`y_true` must contain only 0 and 1 here; found 0\.5 at row 1"):
        function([0, 0.5, 1, 0], P)
    with pytest.raises(ValueError, match=r"`y_proba` has a missing value \(nan\) at row 1"):
        function(Y, [0.2, np.nan, 0.6, 0.4])
    with pytest.raises(ValueError, match="`y_true` has 4 rows but `y_proba` has 3"):
        function(Y, P[:3])
    with pytest.raises(TypeError, match="y_proba"):
        function(Y)


@pytest.mark.parametrize("p", [[0.5], [0.0, 1.0], [0.5, 0.0, 0.5, 1.0]])
def test_spiegelhalter_refuses_where_it_sees_nothing(p):
    with pytest.raises(
        ValueError, match="`y_proba` contains only 0, 1/2 and 1, which do not affect Spiegelhalter's test"
    ):
        tc.spiegelhalter_test([0] * len(p), p)


def test_hosmer_lemeshow_refuses_where_no_freedom_is_left():
    with pytest.raises(
        ValueError, match="`ddof` = 0 leaves no degrees of freedom: 0 bins have predictions other than 0 and 1"
    ):
        tc.hosmer_lemeshow_test([0, 1], [0.0, 1.0])
    with pytest.raises(
        ValueError, match="`ddof` = 2 leaves no degrees of freedom: 2 bins have predictions other than 0 and 1"
    ):
        tc.hosmer_lemeshow_test(Y, P, n_bins=2, ddof=2)
    with pytest.raises(ValueError, match="`n_bins` must be at least 1; got 0"):
        tc.hosmer_lemeshow_test(Y, P, n_bins=0)
    with pytest.raises(ValueError, match="`ddof` must be at least 0; got -1"):
        tc.hosmer_lemeshow_test(Y, P, ddof=-1)
    with pytest.raises(
        ValueError, match="`method` for hosmer_lemeshow must be one of 'auto', 'asymptotic'; got 'exact'"
    ):
        tc.hosmer_lemeshow_test(Y, P, n_bins=4, ddof=1, method="exact")


@pytest.mark.parametrize("method", ["exact", "asymptotic"])
def test_hosmer_lemeshow_with_an_impossible_bin(method):
    """Predictions of 0 in a bin of their own, and one of them positive."""
    p, y = [0.0] * 5 + [0.4, 0.6, 0.4, 0.6, 0.5], [0, 1, 0, 0, 0, 1, 0, 0, 1, 1]
    for alternative in ("greater", "two-sided"):
        result = tc.hosmer_lemeshow_test(y, p, n_bins=2, method=method, alternative=alternative)
        assert (result.statistic, result.pvalue) == (math.inf, 0.0)
        assert "Clear evidence of miscalibration" in str(result)
    assert tc.hosmer_lemeshow_test([0] * 5 + y[5:], p, n_bins=2, method=method).pvalue > 0.3


def test_one_row_and_two():
    assert tc.spiegelhalter_test([1], [0.25], alternative="greater").pvalue == pytest.approx(0.25, rel=1e-12)
    assert tc.hosmer_lemeshow_test([1], [0.25]).pvalue == pytest.approx(0.25, rel=1e-12)
    assert tc.hosmer_lemeshow_test([1], [0.25]).statistic == pytest.approx(3.0, rel=1e-12)
    result = tc.hosmer_lemeshow_test([1, 0], [0.25, 0.5], method="asymptotic")
    assert result.pvalue == pytest.approx(stats.chi2.sf(3.0 + 1.0, 2), rel=1e-12)


def test_hosmer_lemeshow_auto_redraws_where_a_bin_has_few_events():
    rng = np.random.default_rng(0)
    p = np.sort(rng.beta(1, 99, 12_000))
    y = rng.random(len(p)) < p
    assert tc.hosmer_lemeshow_test(y, p, n_resamples=99, rng=0).method == "exact"
    assert tc.hosmer_lemeshow_test(y, p, n_bins=2).method == "asymptotic"


def test_tiny_predictions_give_no_warning():
    assert tc.hosmer_lemeshow_test([0] * 30, [1e-300] * 30).pvalue == pytest.approx(1.0)
    assert tc.spiegelhalter_test([0] * 30, [5e-324] * 30).pvalue == pytest.approx(1.0)


def test_spiegelhalter_says_on_which_side():
    p = np.linspace(0.1, 0.9, 200)
    timid = tc.spiegelhalter_test(p > 0.5, p)
    assert "the Brier score is better than expected. The predictions are probably not extreme enough." in str(timid)
    extreme = tc.spiegelhalter_test(np.arange(200) % 2, p)
    assert "worse than expected. The predictions are probably too extreme." in str(extreme)


@pytest.mark.parametrize("method", ["asymptotic", "exact"])
def test_certain_predictions_that_are_right_add_nothing_to_hosmer_lemeshow(method):
    """Weights that are not dyadic: sums of them differ in the last digit, and these bins have no variance."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = np.concatenate([rng.random(60), np.zeros(15), np.ones(15)])
        y, w = rng.random(len(p)) < p, rng.random(len(p))
        result = tc.hosmer_lemeshow_test(y, p, n_bins=6, sample_weight=w, method=method, n_resamples=99)
        inner = slice(0, 60)
        assert 0.0 < result.statistic < 50.0
        assert math.isfinite(result.null_mean)
        assert tc.hosmer_lemeshow_test(1 - y, 1 - p, n_bins=6, sample_weight=w, method=method).pvalue > 0.0
        wrong = tc.hosmer_lemeshow_test(
            np.append(y[inner], 0), np.append(p[inner], 1.0), n_bins=61, method="asymptotic"
        )
        assert wrong.statistic == math.inf
