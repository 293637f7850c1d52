"""The size of the error: an estimate from pairs of rows, and an interval that covers the true root mean square error."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.shapes import SHAPES, true_error
from support.simulation import REPEATS, assert_covered
from support.strategies import weighted_rows

import truthcal as tc
from truthcal.core.points import PointGroups
from truthcal.core.summarize import summarize
from truthcal.inference.error_size import number_of_groups
from truthcal.kernels.point_groups import break_at_odds
from truthcal.results.text import lower_limit, upper_limit

# --- the estimate -----------------------------------------------------------------------------------------------------


def groups_of(p, w, k):
    """Lists of row numbers: rows of equal predictions together, heavy predictions alone, else by the middle weight."""
    total, before, groups, last = sum(w), 0.0, [], None
    for value in sorted(set(p)):
        rows = [i for i in range(len(p)) if p[i] == value]
        weight = sum(w[i] for i in rows)
        place = "alone" if weight * k >= 0.5 * total else min(int((before + weight / 2) * k / total), k - 1)
        if place == "alone" or place != last:
            groups.append([])
        groups[-1] += rows
        before, last = before + weight, place
    return groups


def mean_square(y, p, w, k):
    """Mean over groups of the mean of c c' over pairs of different rows; groups of one row are left out."""
    total = weight = 0.0
    for rows in groups_of(p, w, k):
        if len(rows) > 1:
            pairs = list(itertools.permutations(rows, 2))
            square = sum(w[i] * w[j] * (p[i] - y[i]) * (p[j] - y[j]) for i, j in pairs)
            share = sum(w[i] for i in rows)
            total, weight = total + share * square / sum(w[i] * w[j] for i, j in pairs), weight + share
    return total / weight if weight else 0.0


def rounding_decides(p, w, k):
    """Whether a prediction is about as heavy as one alone, or its middle about at an edge, of weights with fractions."""
    if all(float(x).is_integer() for x in w):
        return False  # sums are exact
    weight = np.array([sum(w[i] for i in range(len(p)) if p[i] == value) for value in sorted(set(p))]) * k / sum(w)
    middle = np.cumsum(weight) - weight / 2.0
    return bool(min(np.min(np.abs(weight - 0.5)), np.min(np.abs(middle - np.rint(middle)))) < 1e-9)


@given(weighted_rows(min_size=2, max_size=10), st.integers(1, 5))
def test_estimate_is_the_mean_over_pairs_of_rows(data, k):
    y, p, w = data
    k = min(k, len(p) // 2)
    assume(not rounding_decides(p, w, k))
    bias = abs(sum(wi * (pi - yi) for wi, pi, yi in zip(w, p, y, strict=True)) / sum(w))
    expected = max(math.sqrt(max(mean_square(y, p, w, k), 0.0)), bias)
    assert tc.error_size(y, p, sample_weight=w, n_bins=k).estimate == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_square_is_unbiased():
    """Over all outcomes of six rows, each with its own truth: the noise drops out."""
    p, truth = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.9]), np.array([0.3, 0.1, 0.2, 0.9, 0.4, 0.8])
    w = [1.0, 2.0, 1.0, 1.0, 3.0, 1.0]
    outcomes = list(itertools.product((0, 1), repeat=6))
    chances = [np.prod(np.where(y, truth, 1.0 - truth)) for y in outcomes]
    for k in (1, 2, 3):
        mean = np.dot(chances, [mean_square(y, p, w, k) for y in outcomes])
        assert mean == pytest.approx(mean_square(truth, p, w, k), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_constant_error_is_its_size(k):
    y = np.tile([0, 0, 1, 1, 1], 4000)
    assert tc.error_size(y, np.full(20_000, 0.7), n_bins=k).estimate == pytest.approx(0.1, rel=1e-3, abs=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_many_rows_give_the_true_error(shape):
    y, p, truth, w = SHAPES[shape](np.random.default_rng(1), 200_000)
    found = tc.error_size(y, p, sample_weight=w)
    assert found.estimate == pytest.approx(true_error(p, truth, w), rel=0.04, abs=2e-3)


# --- the interval -----------------------------------------------------------------------------------------------------


def squares_of_groups(y, p, k, error, count, rng):
    """Mean squared error of k groups of equal numbers of rows, drawn for a given error of each group."""
    groups = np.array_split(np.arange(len(p)), k)
    squares = np.zeros(count)
    for rows, e in zip(groups, error, strict=True):
        q = np.clip(p[rows] - e, 0.0, 1.0)
        drawn = rng.binomial(1, q, (count, len(rows)))
        squares += np.mean(p[rows] - drawn, axis=1) ** 2 / k
    return squares


def test_lower_end_is_where_the_upper_tail_rejects():
    """At the lower end, in the observed direction, 2.5% of redrawn outcomes have a larger mean square."""
    rng = np.random.default_rng(4)
    p = np.sort(rng.uniform(0.2, 0.8, 4000))
    y = (rng.random(4000) < p - 0.06).astype(int)
    found = tc.error_size(y, p, n_bins=5)
    bias = np.array([np.mean((p - y)[rows]) for rows in np.array_split(np.arange(4000), 5)])
    observed = np.mean(bias**2)
    drawn = squares_of_groups(y, p, 5, bias * found.low / math.sqrt(observed), 20_000, rng)
    assert np.mean(drawn >= observed) == pytest.approx(0.025, abs=0.005)
    # The error is far from noise, so that the upper end is sought in nearly the same direction.
    drawn = squares_of_groups(y, p, 5, bias * found.high / math.sqrt(observed), 20_000, rng)
    assert np.mean(drawn <= observed) == pytest.approx(0.025, abs=0.008)


def covered(shape, n, of_sketch, repeats):
    hits = 0
    for seed in range(repeats):
        y, p, truth, w = SHAPES[shape](np.random.default_rng([seed, n]), n)
        rows = (tc.Sketch().update(y, p, w),) if of_sketch else (y, p)
        found = tc.error_size(*rows, sample_weight=None if of_sketch else w)
        hits += found.low <= true_error(p, truth, w) + 1e-12 <= found.high + 2e-12
    return hits


@pytest.mark.simulation
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n", "of_sketch"), [(300, False), (1000, True), (10_000, True)])
def test_coverage_of_the_true_error(shape, n, of_sketch):
    repeats = REPEATS // 3
    assert_covered(covered(shape, n, of_sketch, repeats), repeats, f"{shape}, {n}", coverage=0.92)


# --- errors that hide ----------------------------------------------------------------------------------------------------


def _few_large(rng, n):
    """One row of 200 has a large prediction that is 0.5 too high; the others are below 0.02 and right."""
    p = np.where(np.arange(n) < n // 200, 0.6 + 0.2 * rng.random(n), 0.02 * rng.random(n))
    return p, np.where(p > 0.3, 0.2, p)


def _few_equal(rng, n):
    """Three of 1,000 rows have a prediction of 0.3 and happen in 80% of the cases."""
    p = np.where(np.arange(n) < 3 * n // 1000, 0.3, rng.random(n))
    return p, np.where(p == 0.3, 0.8, p)


def _near_one(rng, n):
    p = rng.random(n)
    return p, np.where(p > 0.999, p - 0.5, p)


def _fast_wave(rng, n):
    p = rng.random(n)
    return p, np.clip(p + 0.1 * np.sin(40.0 * np.pi * p), 0.0, 1.0)


@pytest.mark.parametrize(
    ("forecasts", "n"), [(_few_large, 10_000), (_few_equal, 20_000), (_near_one, 60_000), (_fast_wave, 20_000)]
)
def test_errors_of_few_rows_and_of_both_signs_do_not_hide(forecasts, n):
    hits = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p, truth = forecasts(rng, n)
        found = tc.error_size(rng.random(n) < truth, p)
        hits += found.low <= true_error(p, truth) <= found.high
    assert hits >= 5  # of 8: at a coverage of 0.92, less often in one of 1,000 cases


def test_rare_wrong_labels_are_within_the_interval():
    """No label of 100 is wrong, which happens in 13% of the cases if 2% are."""
    labels = np.repeat([0.0, 1.0], 50)
    assert tc.error_size(labels, labels).high > 0.03


def test_interval_begins_with_the_bias():
    rng = np.random.default_rng(4)
    p = rng.random(1000)
    y = rng.random(1000) < p - 0.05
    bias = tc.confidence_interval(y, p, measure="bias", confidence_level=0.975)
    assert tc.error_size(y, p).low == pytest.approx(bias.low, rel=1e-6)


def test_wide_buckets_have_no_interval():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = rng.random(1000) < p
    found = tc.error_size(tc.Sketch(8).update(y, p))
    assert math.isnan(found.high)
    assert found.why == "the buckets of this sketch are too wide: errors within them are not known"
    equal = tc.Sketch(8).update(y, np.full(1000, 0.5))
    assert not math.isnan(tc.error_size(equal).high)


# --- what holds for all rows ------------------------------------------------------------------------------------------


@given(weighted_rows(min_size=2, max_size=12))
def test_order_within_the_interval_and_no_smaller_than_the_bias(data):
    y, p, w = data
    found = tc.error_size(y, p, sample_weight=w)
    bias = tc.confidence_interval(y, p, measure="bias", sample_weight=w)
    assert found.estimate >= abs(bias.estimate) * (1 - 1e-9)
    if math.isnan(found.low):
        assert found.why
        return
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
    assert found.high >= min(max(-bias.low, bias.high), 1.0) - 1e-9


def test_order_of_rows_and_unit_of_weights_do_not_matter():
    y, p, _, w = SHAPES["Pareto weights"](np.random.default_rng(1), 500)
    p = p.round(1)
    order = np.random.default_rng(2).permutation(500)
    first = tc.error_size(y, p, sample_weight=w)
    second = tc.error_size(y[order], p[order], sample_weight=1e30 * w[order])
    assert (second.estimate, second.low, second.high) == pytest.approx(
        (first.estimate, first.low, first.high), rel=1e-6
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_sketch_gives_the_error_of_its_rows(shape):
    y, p, _, w = SHAPES[shape](np.random.default_rng(5), 5000)
    rows, sketch = tc.error_size(y, p, sample_weight=w), tc.error_size(tc.Sketch().update(y, p, w))
    slack = 0.1 * (rows.high - rows.low)
    assert sketch.estimate == pytest.approx(rows.estimate, abs=slack)
    assert (sketch.low, sketch.high) == pytest.approx((rows.low, rows.high), abs=slack)


def test_interval_grows_with_the_level_and_shrinks_with_rows():
    y, p, _, _ = SHAPES["slope 0.6"](np.random.default_rng(3), 8000)
    narrow, wide = (tc.error_size(y, p, confidence_level=level) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
    few = tc.error_size(y[:2000], p[:2000])
    assert few.high - few.low > 1.5 * (tc.error_size(y, p).high - tc.error_size(y, p).low)


def usual_groups(y, p):
    return number_of_groups(PointGroups.one(summarize(y, p).points()))[0]


def test_number_of_groups_depends_on_predictions_and_weights_alone():
    rng = np.random.default_rng(0)
    for n, k in ((2, 1), (100, 5), (300, 9), (1000, 16), (10_000, 50), (100_000, 107), (10**6, 230)):
        assert usual_groups(np.zeros(n, int), rng.random(n)) == pytest.approx(k, abs=1)
    p = rng.beta(1, 99, 10_000)
    few, many = (usual_groups(y, p) for y in (np.zeros(10_000, int), np.ones(10_000, int)))
    assert few == many < 20


def test_too_good_is_not_certain():
    """Outcomes that follow the predictions as closely as possible leave room for an error."""
    found = tc.error_size([0, 1] * 500, np.full(1000, 0.5))
    assert found.low == found.estimate == 0.0
    assert 0.01 < found.high < 0.05


# --- words, and what is refused ---------------------------------------------------------------------------------------


def test_one_row_and_heavy_rows_have_no_interval():
    one = tc.error_size([1], [0.3])
    assert one.estimate == pytest.approx(0.7)
    assert (math.isnan(one.low), one.why) == (True, "an interval needs two rows")
    assert str(one) == "error 0.7; no interval: an interval needs two rows"
    heavy = tc.error_size([0, 1, 1, 0] * 10, np.linspace(0.1, 0.9, 40), sample_weight=[1e9] + [1.0] * 39)
    assert heavy.why == "a few rows have nearly all of the weight"


def test_in_words():
    found = tc.error_size(*SHAPES["slope 1.6"](np.random.default_rng(0), 1000)[:2], confidence_level=0.9)
    assert (
        str(found)
        == f"error without noise {found.estimate:.4g}, 90% between {lower_limit(found.low)} and {upper_limit(found.high)}"
    )
    assert (found.measure, found.method) == ("error", "quadratic")
    why = "approximation: all sizes of the error that are consistent with 17 groups of rows"  # one of 16 is wide
    assert found.why == why


@pytest.mark.parametrize(
    ("given_parameters", "message"),
    [
        ({"n_bins": 0}, "`n_bins` must be at least 1"),
        ({"n_bins": 3}, "`n_bins` is 3, but 4 rows make at most 2 bins"),
        ({"confidence_level": 1.0}, "`confidence_level` must"),
        ({"sample_weight": [1, 2]}, "`sample_weight`"),
    ],
)
def test_wrong_parameters_are_named(given_parameters, message):
    with pytest.raises(ValueError, match=message):
        tc.error_size([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.7], **given_parameters)


def test_no_error_is_printed_as_a_bare_0():
    found = tc.error_size([0, 1] * 100, [0.5] * 200)
    assert found.estimate == 0.0
    assert str(found) == f"error: none detected, at most {upper_limit(found.high)} (95% confidence)"
    assert found.noise_removed


# --- breaks at odds ---------------------------------------------------------------------------------------------------


def slow_breaks(p, weight, ww, breaks):
    """Break stretches at odds of powers of 10 if odds differ 10 times and both pieces have 10 rows."""
    breaks = breaks.copy()
    odds = 10.0 ** np.arange(-6, 7)
    for at in np.unique(np.searchsorted(p, odds / (1.0 + odds))):
        if 0 < at < len(p) and not breaks[at]:
            begin = np.flatnonzero(breaks[:at])[-1]
            end = at + next(iter(np.flatnonzero(breaks[at:])), len(p) - at)
            rows = min(np.sum(weight[side]) ** 2 / np.sum(ww[side]) for side in (slice(begin, at), slice(at, end)))
            first, last = np.clip(p[[begin, end - 1]], 1e-7, 1.0 - 1e-7)
            breaks[at] = rows >= 10.0 and last / (1.0 - last) > 10.0 * first / (1.0 - first)
    return breaks


@given(st.integers(0, 2**32 - 1))
def test_breaks_at_odds_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 120, 5))])
    odds = 10.0 ** rng.uniform(-9, 9, starts[-1])
    p = np.concatenate([np.sort((odds / (1 + odds))[a:b]) for a, b in itertools.pairwise(starts)])
    weight, ww = rng.integers(1, 5, len(p)) * 1.0, rng.integers(1, 9, len(p)) * 1.0
    breaks = rng.random(len(p)) < 0.05
    breaks[starts[:-1]] = True
    parts = [slice(*ends) for ends in itertools.pairwise(starts)]
    expected = np.concatenate([slow_breaks(p[part], weight[part], ww[part], breaks[part]) for part in parts])
    levels = 10.0 ** np.arange(-6, 7)
    break_at_odds(starts, p, weight, ww, levels / (1.0 + levels), 10.0, 1e-7, breaks)
    np.testing.assert_array_equal(breaks, expected)
