"""Comparison of two forecasters: how often it errs, what it finds, and what it says."""

import dataclasses
import functools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from support.simulation import REPEATS, assert_covered
from support.strategies import examples, inner_probabilities, rows

import truthcal as tc
from truthcal import MEASURES
from truthcal.core.checks import check_rows
from truthcal.inference import comparison
from truthcal.measures.registry import TENTS
from truthcal.results import text


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


@pytest.fixture
def scores_only(monkeypatch):
    """Half the cells, and no sizes of errors: simulations take a third of the time."""
    monkeypatch.setattr(comparison, "_CELLS", 48)
    monkeypatch.setattr(comparison, "error_size_of", lambda *_, **__: None)


# --- how often it errs ------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.usefixtures("scores_only")
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
        assert result.better_by_measure == "a"
        assert result.pvalue < 0.01
        assert result.low <= result.difference <= result.high < 0.0


@functools.cache
def population(case):
    """Differences of ATB and of the Brier score in the population."""
    truth, a, b = case(400_000, np.random.default_rng(99))
    brier = [np.mean((p - truth) ** 2 + truth * (1 - truth)) for p in (a, b)]
    return tc.atb(truth, a) - tc.atb(truth, b), brier[0] - brier[1]


def expected_difference(case, weight):
    """The expected difference of ATB for rows with these weights, from its definition.

    Pairs of different rows contribute the population's ATB, pairs of a row with itself the Brier score.
    """
    of_pairs, brier = population(case)
    one_row = np.sum(weight**2) / np.sum(weight) ** 2
    return (1 - one_row) * of_pairs + one_row * brier


def test_expected_difference_is_the_mean_of_the_differences():
    rng, case, n = np.random.default_rng(0), both_wrong, 20
    differences = []
    for _ in range(1500):
        truth, a, b = case(n, rng)
        y = (rng.random(n) < truth).astype(int)
        differences.append(tc.atb(y, a) - tc.atb(y, b))
    error = np.std(differences) / math.sqrt(len(differences))
    assert np.mean(differences) == pytest.approx(expected_difference(case, np.ones(n)), rel=0, abs=4 * error)


def logit(p):
    return np.log(p / (1 - p))


def shifted(n, rng):
    """b is too high by 0.05."""
    truth = rng.uniform(0.0, 0.95, n)
    return truth, truth, truth + 0.05


def nearly_equal(n, rng):
    """b is too high by 0.01."""
    truth = rng.uniform(0.0, 0.99, n)
    return truth, truth, truth + 0.01


def both_wrong(n, rng):
    """Both overconfident, b more so."""
    truth = rng.uniform(0.01, 0.99, n)
    return truth, logistic(1.3 * logit(truth)), logistic(1.6 * logit(truth))


def rare(n, rng, mean=0.01):
    """Events with a probability of 1% on average, of which b predicts twice as many."""
    truth = np.minimum(mean * np.exp(rng.normal(0, 1, n) - 0.5), 0.45)
    return truth, truth, 2 * truth


@pytest.mark.simulation
@pytest.mark.usefixtures("scores_only")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [300, 2000])
@pytest.mark.parametrize("case", [informed, shifted, nearly_equal, worse, both_wrong, rare])
def test_interval_holds_the_expected_difference(case, n, weighted):
    rng, hits, repeats = np.random.default_rng(n), 0, REPEATS // 2
    for _ in range(repeats):
        truth, a, b = case(n, rng)
        w = rng.exponential(1.0, n) if weighted else np.ones(n)
        result = tc.compare((rng.random(n) < truth).astype(int), a, b, sample_weight=w)
        hits += result.low <= expected_difference(case, w) <= result.high
    assert_covered(hits, repeats, "interval", coverage=0.93)


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", TENTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_each_alone(measure, weighted):
    y, a, b = drawn(worse, 300)
    w = np.random.default_rng(1).exponential(1.0, 300) if weighted else None
    result = tc.compare(y, a, b, measure=measure, sample_weight=w)
    assert (result.a, result.b) == tuple(MEASURES[measure].function(y, p, sample_weight=w) for p in (a, b))
    assert result.difference == result.a - result.b
    assert (result.error_a, result.error_b) == tuple(tc.error_size(y, p, sample_weight=w) for p in (a, b))
    assert (result.measure, result.label, result.n) == (measure, MEASURES[measure].label, 300)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_brier_part_is_the_paired_t_test_if_events_are_frequent(level):
    """Corrections for skewness and for events that did not happen vanish as rows accumulate."""
    y, a, b = drawn(informed, 100_000)
    expected = stats.ttest_rel((a - y) ** 2, (b - y) ** 2)
    ends = expected.confidence_interval(level)
    result = tc.compare(y, a, b, confidence_level=level)
    assert (result.brier_low, result.brier_high) == pytest.approx((ends.low, ends.high), rel=0.002, abs=0)
    assert result.brier_a == pytest.approx(np.mean((a - y) ** 2), rel=1e-12, abs=0)
    assert result.brier_difference == pytest.approx(np.mean((a - y) ** 2 - (b - y) ** 2), rel=1e-9, abs=0)


@pytest.mark.parametrize("events", [0, 1, 5, 10, 40])
def test_brier_interval_of_a_constant_gap_is_nearly_that_of_a_poisson_count(events):
    """If both forecasters are constant, the difference is a linear function of the number of events."""
    n, a, b = 100_000, 0.0004, 0.0002
    y = np.zeros(n)
    y[:events] = 1
    result = tc.compare(y, np.full(n, a), np.full(n, b))
    low, high = (n * ((a * a - b * b) - end) / (2 * (a - b)) for end in (result.brier_high, result.brier_low))
    exact = (stats.chi2.ppf(0.025, 2 * events) / 2 if events else 0.0, stats.chi2.ppf(0.975, 2 * events + 2) / 2)
    assert exact[0] - 1.5 <= low <= exact[0] + 0.4
    assert exact[1] - 0.5 <= high <= exact[1] + (2.0 if events >= 5 else 10.0)


def brier_oracle(y, a, b, w, level=0.95):
    """Interval of the Brier difference, row by row from its description."""
    w = [x / sum(w) for x in w]
    d = [(p - k) ** 2 - (q - k) ** 2 for k, p, q in zip(y, a, b, strict=True)]
    mean, one_row = sum(x * k for x, k in zip(w, d, strict=True)), sum(x * x for x in w)
    observed = sum((x * (k - mean)) ** 2 for x, k in zip(w, d, strict=True)) / (1 - one_row)
    second = third = fourth = 0.0
    for x, p, q in zip(w, a, b, strict=True):
        h, jump = (p + q) / 2, 2 * x * (q - p)  # the change of the difference if the event happens
        second += jump**2 * h * (1 - h)
        third += jump**3 * h * (1 - h) * (1 - 2 * h)
        fourth += jump**4 * h * (1 - h)

    def gap(s):  # one standard deviation above the variance that s times as many events would show
        return s * second - math.sqrt(s * fourth) - observed

    s = optimize.brentq(gap, (fourth / second**2) / 4, 1e9)
    variance = max(observed, min(s * second, max(second, fourth / second)))
    skew = third / second * variance / variance**1.5

    def statistic(center):
        t = (mean - center) / math.sqrt(variance)
        return t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6

    t = stats.t.ppf((1 + level) / 2, 1 / one_row - 1)
    reach = 100 * math.sqrt(variance)
    ends = [optimize.brentq(lambda c, z=z: statistic(c) - z, mean - reach, mean + reach, xtol=1e-15) for z in (t, -t)]
    return *ends, 2 * stats.t.sf(abs(statistic(0.0)), 1 / one_row - 1)


@pytest.mark.parametrize("case", [informed, worse, rare])
def test_brier_interval_against_its_description(case):
    for seed in range(3):
        y, a, b = drawn(case, 200, seed)
        w = np.random.default_rng(seed).exponential(1.0, 200)
        result = tc.compare(y, a, b, sample_weight=w)
        found = result.brier_low, result.brier_high, result.brier_pvalue
        assert found == pytest.approx(brier_oracle(y, a, b, w), rel=1e-6, abs=1e-12)


def noisy(n, rng, mean):
    """Rare events; b is a noisy copy of the truth."""
    truth, a, _ = rare(n, rng, mean)
    return truth, a, logistic(logit(truth) + rng.normal(0, 0.7, n))


def halved(n, rng, mean):
    """Rare events, of which b predicts half."""
    truth, a, _ = rare(n, rng, mean)
    return truth, a, truth / 2


def without_skill(n, rng, mean):
    """Rare events; b always predicts their mean."""
    truth, a, _ = rare(n, rng, mean)
    return truth, a, np.full(n, mean)


def brier_hits(case, n, repeats, mean, weighted=False):
    """How often the interval of the Brier difference holds the population's difference."""
    rng = np.random.default_rng(n)
    truth, a, b = case(400_000, rng, mean)
    true = np.mean((a - b) * (a + b - 2 * truth))
    hits = 0
    for _ in range(repeats):
        truth, a, b = case(n, rng, mean)
        w = rng.exponential(1.0, n) if weighted else None
        rows = [check_rows((rng.random(n) < truth).astype(int), p, w, None) for p in (a, b)]
        found = comparison._compare_brier(*rows, 0.95, None)
        hits += found.low <= true <= found.high
    return hits


@pytest.mark.simulation
@pytest.mark.parametrize("events", [5, 10, 30])
@pytest.mark.parametrize("case", [rare, noisy, halved, without_skill])
def test_brier_interval_covers_with_few_events(case, events):
    n, repeats = 2000, 4 * REPEATS
    assert_covered(brier_hits(case, n, repeats, events / n), repeats, "Brier interval", coverage=0.94)
    assert_covered(brier_hits(case, n, repeats, events / n, True), repeats, "weighted", coverage=0.94)


@pytest.mark.parametrize("measure", ["atb", "multiscale_atb"])
def test_swapping_the_two_flips_the_sign(measure):
    y, a, b = drawn(worse, 400)
    one, two = (tc.compare(y, *pair, measure=measure) for pair in ((a, b), (b, a)))
    assert (two.a, two.b, two.difference) == (one.b, one.a, -one.difference)
    size = abs(one.difference)
    assert (two.low, two.high) == pytest.approx((-one.high, -one.low), rel=1e-5, abs=1e-5 * size)
    assert two.pvalue == pytest.approx(one.pvalue, rel=1e-3, abs=1e-9)
    assert (two.brier_low, two.brier_high) == pytest.approx((-one.brier_high, -one.brier_low), rel=1e-12, abs=0)
    assert two.brier_pvalue == pytest.approx(one.brier_pvalue, rel=1e-9, abs=0)


@pytest.mark.parametrize("measure", TENTS)
def test_identical_predictions_do_not_differ(measure):
    y, a, _ = drawn(worse, 200)
    result = tc.compare(y, a, a.copy(), measure=measure)
    assert result.difference == 0.0
    assert result.pvalue == pytest.approx(1.0, rel=0.005, abs=0)  # noise that cancels, up to rounding
    assert -1e-3 <= result.low <= 0.0 <= result.high <= 1e-3
    assert (result.brier_difference, result.brier_pvalue) == (0.0, 1.0)
    assert result.better_by_measure is None
    assert result.better_by_brier is None


@examples(15)
@given(rows(min_size=2, max_size=10), st.data())
def test_small_comparisons_make_sense(first, data):
    y, a = first
    b = data.draw(st.lists(inner_probabilities, min_size=len(a), max_size=len(a)))
    result = tc.compare(y, a, b, hard=True)
    assert result.low - 1e-12 <= result.difference <= result.high + 1e-12
    assert 0.0 <= result.pvalue <= 1.0
    assert 0.0 <= result.brier_pvalue <= 1.0
    assert str(result)


@pytest.mark.parametrize("gap", [1e-300, 1e-160, 1e-90, 1e-17])
@pytest.mark.parametrize("y", [[0, 0, 0], [0, 0, 1]])
def test_tiny_predictions_and_gaps(y, gap):
    result = tc.compare(y, [gap] * 3, [0.0] * 3, hard=True)
    assert result.brier_low <= result.brier_difference <= result.brier_high
    assert result.low <= result.difference <= result.high
    assert 0.0 <= min(result.pvalue, result.brier_pvalue) <= max(result.pvalue, result.brier_pvalue) <= 1.0


@pytest.mark.parametrize("name", ["y_proba_a", "y_proba_b"])
def test_labels_in_place_of_probabilities_are_refused(name):
    y, predictions = [0, 1, 1, 0], {"y_proba_a": [0.2, 0.7, 0.6, 0.1], "y_proba_b": [0.3, 0.7, 0.6, 0.1]}
    predictions[name] = [0, 1, 0, 0]
    with pytest.raises(ValueError, match=f"`{name}` contains nothing but 0 and 1: labels from `predict`") as caught:
        tc.compare(y, **predictions)
    assert caught.value.parameter == name
    assert tc.compare(y, **predictions, hard=True).n == 4


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
    assert str(result).startswith("a has the better ATB and the better Brier score (3,000 rows).\n")


def test_more_skilful_only():
    result = tc.compare(*drawn(informed, 3000))
    assert str(result).startswith("a has the better Brier score; no significant difference in ATB (3,000 rows).\n")


def test_better_by_measure_only():
    rng = np.random.default_rng(0)
    n = 3000
    truth = rng.random(n)
    y = (rng.random(n) < truth).astype(int)
    # b knows the truth and exaggerates, as much as makes up for a's ignorance of half the rows.
    a = np.where(np.arange(n) % 3 == 0, 0.5, truth)
    b = np.clip(0.5 + 1.75 * (truth - 0.5), 0.0, 1.0)
    result = tc.compare(y, a, b)
    assert (result.better_by_measure, result.better_by_brier) == ("a", None)
    assert str(result).startswith("a has the better ATB; no significant difference in the Brier score (3,000 rows).\n")


def test_calibrated_but_ignorant():
    y, _, b = drawn(worse, 3000)
    result = tc.compare(y, np.full(3000, y.mean()), b)
    assert str(result).startswith("a has the better ATB, but b has the better Brier score (3,000 rows).\n")


def test_no_difference_shown():
    y, a, b = drawn(mirrored, 500)
    result = tc.compare(y, a, b)
    assert str(result).startswith("No significant difference in ATB or in the Brier score (500 rows).\n")


def test_printing_and_json():
    result = tc.compare(*drawn(worse, 200), measure="multiscale_atb", confidence_level=0.9)
    text = str(result)
    assert "90% interval" in text
    assert "  Multiscale ATB  " in text
    assert max(map(len, text.splitlines())) <= 110
    assert json.loads(json.dumps(result.to_dict()))["pvalue"] == result.pvalue
    assert result.table()["measure"] == ["Multiscale ATB", "Brier score", "error of a", "error of b"]


def test_errors_have_rows_of_their_own():
    result = dataclasses.replace(tc.compare(*drawn(worse, 2000)), names=("old", "new"))
    old, new = (row.cells(3) for row in result.rows()[2:])
    high = text.upper_limit(result.error_a.high)
    assert result.error_a.low == 0.0 < result.error_b.low  # an error that may be 0 has an upper limit only
    assert old == ["error of old", f"<= {high}", "", "", f"0 to {high}", ""]
    assert new == ["error of new", "", f"{result.error_b.estimate:.3g}", "", result.error_b.ends(), ""]
    assert "are estimates with their own intervals, not scores to rank by" in str(result)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"measure": "smcal"}, ValueError, "`measure` must be one of 'atb', 'multiscale_atb', .*; got 'smcal'"),
        ({"confidence_level": 95}, ValueError, r"For 95%, pass 0\.95"),
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


def nudged(p):
    return np.minimum(p + 0.001, 1.0)


def shrunk(p):
    return 0.5 + 0.97 * (p - 0.5)


@pytest.mark.simulation
@pytest.mark.usefixtures("scores_only")
@pytest.mark.parametrize("other", [nudged, shrunk])
def test_forecasters_that_are_nearly_the_same(other):
    """Before and after recalibration: errors of both are nearly the same noise, which must not pass for a difference."""
    grid = (np.arange(20_000) + 0.5) / 20_000
    brier = np.mean((other(grid) - grid) ** 2)  # beyond the truth's
    difference = -(1 - 1 / 500) * tc.atb(grid, other(grid)) - brier / 500
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
        assert result.better_by_measure is None
        assert result.pvalue > 0.5
