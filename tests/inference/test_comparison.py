"""Comparison of two forecasters: how often it errs, what it finds, and what it says."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.simulation import REPEATS, assert_covered
from support.strategies import examples, inner_probabilities, rows

import truthcal as tc
from truthcal import MEASURES
from truthcal.inference import comparison
from truthcal.measures.registry import NORMS, TENTS


def logistic(x):
    return 1 / (1 + np.exp(-x))


def informed(n, rng):
    """Both calibrated; a knows two things, b one of them."""
    known, hidden = rng.normal(0, 1, n), rng.choice([-1.0, 1.0], n)
    truth = logistic(known + hidden)
    return truth, truth, (logistic(known + 1) + logistic(known - 1)) / 2


def mirrored(n, rng):
    """As wrong as one another: one too high, the other too low, on a truth of 1/2."""
    offset = rng.uniform(0.05, 0.15, n)
    return np.full(n, 0.5), 0.5 + offset, 0.5 - offset


def worse(n, rng):
    """b is overconfident."""
    truth = rng.random(n)
    return truth, truth, np.clip(0.5 + 1.6 * (truth - 0.5), 0.01, 0.99)


def drawn(case, n, seed=0):
    """(y, a, b)"""
    rng = np.random.default_rng(seed)
    truth, a, b = case(n, rng)
    return (rng.random(n) < truth).astype(int), a, b


# --- how often it errs ------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("measure", ["atb", "multiscale_atb"])
@pytest.mark.parametrize("case", [informed, mirrored])
def test_no_difference_is_found_where_there_is_none(case, measure, n):
    results = [tc.compare(*drawn(case, n, seed), measure=measure) for seed in range(REPEATS)]
    assert_covered(sum(result.pvalue >= 0.05 for result in results), REPEATS, "p-value")
    assert_covered(sum(result.low <= 0.0 <= result.high for result in results), REPEATS, "interval")


@pytest.mark.parametrize("case", [informed, mirrored, worse])
def test_small_p_values_go_with_intervals_that_leave_out_zero(case):
    for seed in range(6):
        result = tc.compare(*drawn(case, 200, seed), confidence_level=0.7)
        assert (result.pvalue < 0.3) == (not result.low <= 0.0 <= result.high)


def test_few_cells_give_the_interval_of_many(monkeypatch):
    for seed in range(3):
        y, a, b = drawn(worse, 1000, seed)
        many = tc.compare(y, a, b)
        monkeypatch.setattr(comparison, "_CELLS", 24)
        few = tc.compare(y, a, b)
        monkeypatch.undo()
        assert (few.low, few.high) == pytest.approx((many.low, many.high), rel=0.05, abs=0.02 * abs(many.difference))


@pytest.mark.parametrize("measure", TENTS)
def test_worse_calibration_is_found(measure):
    for seed in range(4):
        result = tc.compare(*drawn(worse, 3000, seed), measure=measure)
        assert result.better_calibrated == "a"
        assert result.pvalue < 0.01
        assert result.low <= result.difference <= result.high < 0.0


@pytest.mark.parametrize("measure", ["smcal", "ece", "atb_l1", "ks_ce"])
def test_norms_are_valid_and_find_large_differences(measure):
    for case in (informed, mirrored):
        for seed in range(5):
            result = tc.compare(*drawn(case, 300, seed), measure=measure, n_resamples=199)
            assert result.low <= 0.0 <= result.high
            assert result.pvalue > 0.05
    y, a, _ = drawn(informed, 3000)
    found = tc.compare(y, 1 - a, a, measure=measure, n_resamples=199)
    assert found.better_calibrated == "b"
    assert found.pvalue <= 0.05


@pytest.mark.simulation
def test_interval_holds_the_true_difference():
    grid = (np.arange(2000) + 0.5) / 2000
    truth, overconfident = grid, np.clip(0.5 + 1.6 * (grid - 0.5), 0.01, 0.99)
    true = -tc.atb(truth, overconfident)
    results = [tc.compare(*drawn(worse, 400, seed)) for seed in range(REPEATS)]
    assert_covered(sum(result.low <= true <= result.high for result in results), REPEATS, "interval")


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_each_alone(weighted):
    y, a, b = drawn(worse, 300)
    w = np.random.default_rng(1).exponential(1.0, 300) if weighted else None
    result = tc.compare(y, a, b, sample_weight=w)
    for value, p in ((result.a, a), (result.b, b)):
        assert value == pytest.approx(tc.atb_summary(y, p, sample_weight=w).excess, rel=1e-9, abs=1e-12)
    assert result.difference == result.a - result.b
    shown = tc.compare(y, a, b, measure="smcal", sample_weight=w, n_resamples=99)
    assert (shown.a, shown.b) == (tc.smcal(y, a, sample_weight=w), tc.smcal(y, b, sample_weight=w))
    assert result.n == 300


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_brier_part_is_the_paired_t_test(level):
    y, a, b = drawn(informed, 120)
    expected = stats.ttest_rel((a - y) ** 2, (b - y) ** 2)
    ends = expected.confidence_interval(level)
    result = tc.compare(y, a, b, confidence_level=level)
    assert result.brier_pvalue == pytest.approx(expected.pvalue, rel=1e-9, abs=0)
    assert (result.brier_low, result.brier_high) == pytest.approx((ends.low, ends.high), rel=1e-9, abs=0)
    assert result.brier_a == pytest.approx(np.mean((a - y) ** 2), rel=1e-12, abs=0)
    assert result.brier_difference == pytest.approx(np.mean((a - y) ** 2 - (b - y) ** 2), rel=1e-9, abs=0)


@pytest.mark.parametrize("measure", ["atb", "multiscale_atb", "smcal"])
def test_swapping_the_two_flips_the_sign(measure):
    y, a, b = drawn(worse, 400)
    one, two = (tc.compare(y, *pair, measure=measure, n_resamples=999) for pair in ((a, b), (b, a)))
    assert (two.a, two.b, two.difference) == (one.b, one.a, -one.difference)
    size = abs(one.difference)
    # Norms are drawn at random; squares are not.
    slack = {"rel": 0.2, "abs": 0.0} if measure in NORMS else {"rel": 1e-5, "abs": 1e-5 * size}
    assert (two.low, two.high) == pytest.approx((-one.high, -one.low), **slack)
    assert two.pvalue == pytest.approx(one.pvalue, rel=1e-3, abs=0.1 if measure in NORMS else 1e-9)
    assert (two.brier_low, two.brier_high) == pytest.approx((-one.brier_high, -one.brier_low), rel=1e-12, abs=0)
    assert two.brier_pvalue == pytest.approx(one.brier_pvalue, rel=1e-9, abs=0)


@pytest.mark.parametrize("measure", [*TENTS, "smcal"])
def test_identical_predictions_do_not_differ(measure):
    y, a, _ = drawn(worse, 200)
    result = tc.compare(y, a, a.copy(), measure=measure, n_resamples=99)
    assert result.difference == 0.0
    assert result.pvalue == pytest.approx(1.0, rel=0.005, abs=0)  # noise that cancels, up to rounding
    assert -1e-3 <= result.low <= 0.0 <= result.high <= 1e-3 or measure == "smcal"
    assert (result.brier_difference, result.brier_pvalue) == (0.0, 1.0)
    assert result.better_calibrated is None
    assert result.better_brier is None


@examples(15)
@given(rows(min_size=2, max_size=10), st.data())
def test_small_comparisons_make_sense(first, data):
    y, a = first
    b = data.draw(st.lists(inner_probabilities, min_size=len(a), max_size=len(a)))
    result = tc.compare(y, a, b)
    assert result.low - 1e-12 <= result.difference <= result.high + 1e-12
    assert 0.0 <= result.pvalue <= 1.0
    assert 0.0 <= result.brier_pvalue <= 1.0
    assert str(result)


def test_scale_of_weights_and_order_of_rows_do_not_matter():
    y, a, b = drawn(worse, 300)
    rng = np.random.default_rng(2)
    w, order = rng.exponential(1.0, 300), rng.permutation(300)
    one = tc.compare(y, a, b, sample_weight=w)
    for other in (
        tc.compare(y, a, b, sample_weight=1e60 * w),
        tc.compare(y[order], a[order], b[order], sample_weight=w[order]),
    ):
        for name in ("a", "b", "low", "high", "pvalue", "brier_low", "brier_pvalue"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-4, abs=1e-9), name
    equal = tc.compare(y, a, b, sample_weight=np.full(300, 3.0))
    assert equal.low == pytest.approx(tc.compare(y, a, b).low, rel=1e-6, abs=1e-12)


def test_wider_level_wider_interval():
    y, a, b = drawn(worse, 300)
    narrow, wide = (tc.compare(y, a, b, confidence_level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.pvalue == narrow.pvalue


def test_containers_and_labels():
    pandas = pytest.importorskip("pandas")
    y, a, b = drawn(worse, 100)
    first = tc.compare(y, a, b)
    frame = pandas.DataFrame({"y": np.where(y == 1, "yes", "no"), "a": a, "b": b})
    assert tc.compare(frame["y"], frame["a"], frame["b"], pos_label="yes") == first
    assert tc.compare(y.tolist(), a.tolist(), b.tolist()) == first
    short = tc.compare(y, a.astype(np.float32), b)
    assert short.difference == pytest.approx(first.difference, rel=1e-4, abs=1e-7)


# --- words ------------------------------------------------------------------------------------------------------------


def test_both_better():
    result = tc.compare(*drawn(worse, 3000))
    assert str(result).startswith("a is better calibrated and has the better Brier score.\n")


def test_more_skilful_only():
    result = tc.compare(*drawn(informed, 3000))
    assert str(result).startswith(
        "a is more skilful (Brier score); no significant difference in calibration (3,000 rows).\n"
    )


def test_better_calibrated_only():
    rng = np.random.default_rng(0)
    n = 3000
    truth = rng.random(n)
    y = (rng.random(n) < truth).astype(int)
    # b knows the truth and exaggerates, as much as makes up for a's ignorance of half the rows.
    a = np.where(np.arange(n) % 3 == 0, 0.5, truth)
    b = np.clip(0.5 + 1.75 * (truth - 0.5), 0.0, 1.0)
    result = tc.compare(y, a, b)
    assert (result.better_calibrated, result.better_brier) == ("a", None)
    assert str(result).startswith(
        "a is better calibrated; no significant difference in the Brier score (3,000 rows).\n"
    )


def test_calibrated_but_ignorant():
    y, _, b = drawn(worse, 3000)
    result = tc.compare(y, np.full(3000, y.mean()), b)
    assert str(result).startswith("a is better calibrated, but b is more skilful (Brier score).\n")


def test_no_difference_shown():
    y, a, b = drawn(mirrored, 500)
    result = tc.compare(y, a, b)
    assert str(result).startswith("No significant difference in calibration or Brier score (500 rows).\n")


def test_printing_and_json():
    result = tc.compare(*drawn(worse, 200), measure="multiscale_atb", confidence_level=0.9)
    text = str(result)
    assert "90% interval" in text
    assert "multiscale_atb" in text
    assert max(map(len, text.splitlines())) <= 110
    assert json.loads(json.dumps(result.to_dict()))["pvalue"] == result.pvalue


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"measure": "distcal"}, ValueError, "`measure` must be one of 'atb', .*; got 'distcal'"),
        ({"confidence_level": 95}, ValueError, r"For 95%, pass 0\.95"),
        ({"n_resamples": 9}, ValueError, "`n_resamples` must be at least 99; got 9"),
        ({"rng": "x"}, TypeError, "`rng` must be a whole number"),
        ({"sample_weight": [1.0]}, ValueError, "but `sample_weight` has 1; they must match"),
    ],
)
def test_bad_parameters_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.compare(*drawn(worse, 20), **arguments)


def test_columns_that_do_not_match_are_refused():
    y, a, b = drawn(worse, 20)
    with pytest.raises(ValueError, match="`y_proba_a` has 20 rows but `y_proba_b` has 19"):
        tc.compare(y, a, b[:-1])
    with pytest.raises(ValueError, match=r"`y_true` has 19 rows"):
        tc.compare(y[:-1], a, b)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"y_proba_a.*y_proba_b"):
        tc.compare(y, pandas.Series(a), pandas.Series(b, index=np.arange(20)[::-1]))


def test_bad_predictions_are_refused_by_name():
    y, a, b = drawn(worse, 20)
    with pytest.raises(ValueError, match="`y_proba_b` must lie in"):
        tc.compare(y, a, b + 1)
    with pytest.raises(ValueError, match="`y_proba_a`"):
        tc.compare(y, np.where(a > 0.5, math.nan, a), b)


def test_fractional_outcomes_and_single_rows_are_refused():
    _, a, b = drawn(worse, 20)
    with pytest.raises(ValueError, match="`y_true` must contain only 0 and 1 here"):
        tc.compare(a, a, b)
    with pytest.raises(ValueError, match="row"):
        tc.compare([1], [0.5], [0.4])
    with pytest.raises(ValueError, match="row"):
        tc.compare([1, 0], [0.5, 0.2], [0.4, 0.3], sample_weight=[1.0, 0.0])


def test_every_measure_with_an_interval_can_be_compared():
    y, a, b = drawn(worse, 200)
    for measure in (*TENTS, *NORMS):
        result = tc.compare(y, np.round(a, 1), np.round(b, 1), measure=measure, n_resamples=99)
        assert result.measure == measure
        assert measure in MEASURES
        assert result.low <= result.difference <= result.high


def nudged(p):
    return np.minimum(p + 0.001, 1.0)


def shrunk(p):
    return 0.5 + 0.97 * (p - 0.5)


@pytest.mark.simulation
@pytest.mark.parametrize("other", [nudged, shrunk])
def test_forecasters_that_are_nearly_the_same(other):
    """Before and after recalibration: errors of both are nearly the same noise, which must not pass for a difference."""
    grid = (np.arange(20_000) + 0.5) / 20_000
    difference = -tc.atb(grid, other(grid))
    rng, hits = np.random.default_rng(0), 0
    for _ in range(REPEATS):
        p = rng.random(500)
        result = tc.compare(rng.random(500) < p, p, other(p))
        hits += result.low <= difference <= result.high
    assert_covered(hits, REPEATS, "interval")


def test_a_copy_in_single_precision_is_no_better():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.random(300)
        result = tc.compare(rng.random(300) < p, p, p.astype(np.float32))
        assert result.better_calibrated is None
        assert result.pvalue > 0.5


def test_ece_of_unique_predictions_is_refused():
    with pytest.raises(ValueError, match="most predictions are unique, so unbinned_ece has no population value"):
        tc.compare([0, 1, 1], [0.2, 0.6, 0.9], [0.3, 0.5, 0.8], measure="unbinned_ece")
