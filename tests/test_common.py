"""Every row of MEASURES through the same mill. A new measure is tested here by its row and its oracle alone."""

import inspect
import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from oracles import measures as oracles
from oracles import more_measures as more_oracles
from support.strategies import examples, inner_probabilities, rows

import truthcal as tc
from truthcal import MEASURES
from truthcal.core.sample import Sample

NAMES = sorted(MEASURES)
each_measure = pytest.mark.parametrize("name", NAMES)
TRUTHFUL = [name for name in NAMES if MEASURES[name].truthful]
ORACLES = oracles.ORACLES | more_oracles.MORE_ORACLES

# Measures whose definition divides by a mean outcome, takes a root or bends a curve: rounding is relative to 1 there,
# and not to the result.
ABSOLUTE = {"decision_loss": 1e-14, "u_calibration": 1e-14, "ici": 1e-15, "ece": 1e-15, "distcal": 1e-8}


def close(name, expected, rel=1e-10):
    """What a value must equal: the oracle's, as precisely as the measure's row promises."""
    tolerance = MEASURES[name].tolerance
    if tolerance > 0:  # and nan, for means over draws, is not
        return pytest.approx(expected, rel=tolerance, abs=max(tolerance, ABSOLUTE.get(name, 0)))
    return pytest.approx(expected, rel=rel, abs=ABSOLUTE.get(name, 1e-300))


def some_rows(n=60, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    if ties:
        p = np.round(p, 1)
    return (rng.random(n) < p).astype(int), p


def test_every_measure_has_an_oracle_and_is_public():
    assert set(ORACLES) == set(MEASURES)
    assert set(MEASURES) <= set(tc.__all__)
    for name, measure in MEASURES.items():
        assert getattr(tc, name) is measure.function


@each_measure
@examples(60)
@given(data=rows(max_size=6))
def test_agrees_with_oracle(name, data):
    y, p = data
    expected = float(ORACLES[name](y, oracles.exact(p)))
    assert MEASURES[name].function(y, p) == close(name, expected)


@each_measure
@examples(40)
@given(data=rows(max_size=4), w=st.lists(st.integers(1, 2), min_size=4, max_size=4))
def test_agrees_with_oracle_when_weighted(name, data, w):
    y, p = data
    w = w[: len(y)]
    expected = float(ORACLES[name](y, oracles.exact(p), w))
    assert MEASURES[name].function(y, p, sample_weight=w) == close(name, expected, rel=1e-9)


@each_measure
@examples(40)
@given(data=rows(max_size=6, outcomes=inner_probabilities))
def test_agrees_with_oracle_when_outcomes_are_fractions(name, data):
    y, p = data
    p[0] = 0.3  # predictions of 0 and 1 only would look like swapped arguments
    expected = float(ORACLES[name](oracles.exact(y), oracles.exact(p)))
    assert MEASURES[name].function(y, p) == close(name, expected, rel=1e-9)


@each_measure
@pytest.mark.parametrize("ties", [False, True])
def test_row_order_does_not_matter(name, ties):
    y, p = some_rows(300, ties=ties)
    expected = MEASURES[name].function(y, p)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(p))
        assert MEASURES[name].function(y[order], p[order]) == expected  # to the last bit: sorted rows are the same


@each_measure
@pytest.mark.parametrize("ties", [False, True])
def test_weight_is_repetition(name, ties):
    y, p = some_rows(200, ties=ties)
    w = np.random.default_rng(1).integers(0, 4, len(p))
    repeated = MEASURES[name].function(np.repeat(y, w), np.repeat(p, w))
    assert MEASURES[name].function(y, p, sample_weight=w) == pytest.approx(repeated, rel=1e-11, abs=0)


@each_measure
def test_scale_of_weights_does_not_matter(name):
    if MEASURES[name].whole_weights:
        with pytest.raises(ValueError, match=r"whole numbers, because this measure counts rows; found 0\.5"):
            MEASURES[name].function([0, 1], [0.2, 0.7], sample_weight=[1, 0.5])
        return
    y, p = some_rows(100)
    w = np.random.default_rng(1).random(len(p)) + 0.1
    expected = MEASURES[name].function(y, p, sample_weight=w)
    for scale in (2.0**-1000, 1e-300, 1e300, 3.0):
        assert MEASURES[name].function(y, p, sample_weight=w * scale) == pytest.approx(expected, rel=1e-12, abs=0)


@each_measure
def test_rows_of_weight_zero_count_for_nothing(name):
    y, p = some_rows(50)
    w = np.ones(len(p), int)
    w[::3] = 0
    expected = MEASURES[name].function(y[w > 0], p[w > 0])
    assert MEASURES[name].function(y, p, sample_weight=w) == pytest.approx(expected, rel=1e-12, abs=0)


@each_measure
def test_one_sample_serves_all(name):
    y, p = some_rows(100)
    assert MEASURES[name].of_sample(Sample.of(y, p)) == pytest.approx(MEASURES[name].function(y, p), rel=1e-14)


@each_measure
def test_pos_label(name):
    y, p = some_rows(50)
    words = np.where(y == 1, "yes", "no")
    expected = MEASURES[name].function(y, p)
    assert MEASURES[name].function(words, p, pos_label="yes") == expected
    assert MEASURES[name].function(1 + y, p, pos_label=2) == expected
    assert MEASURES[name].function(1 - y, p, pos_label=0) == expected


@each_measure
def test_value_is_in_range_and_a_float(name):
    measure = MEASURES[name]
    for y, p in [
        ([1], [0.0]),
        ([0], [0.0]),
        ([1, 1], [0.0, 0.0]),
        ([1] * 5, [0.0] * 5),
        ([1] * 32, [0.0] * 32),
        ([0, 1], [1.0, 0.0]),
        some_rows(500),
    ]:
        value = measure.function(y, p)
        assert type(value) is float
        assert measure.best <= value <= measure.worst * (1 + 1e-15)
    assert measure.function([1, 0, 1], [1.0, 0.0, 1.0]) == measure.best


@each_measure
def test_bad_input_is_refused(name):
    function = MEASURES[name].function
    with pytest.raises(ValueError, match=r"`y_proba` has a missing value \(nan\) at row 1"):
        function([0, 1], [0.5, np.nan])
    with pytest.raises(ValueError, match="`y_true` has 3 rows but `y_proba` has 2"):
        function([0, 1, 1], [0.5, 0.5])
    with pytest.raises(TypeError, match="positional argument"):
        function([0, 1], [0.5, 0.5], [1, 1])


@pytest.mark.parametrize("name", [name for name in NAMES if MEASURES[name].continuous])
@pytest.mark.parametrize("n", [1, 2, 5, 20, 200])
def test_continuous_measures_do_not_jump(name, n):
    if math.isnan(MEASURES[name].tolerance) and n > 10:
        n = 9  # more rows are drawn at random, and a nudge that breaks a tie changes the draws
    rng = np.random.default_rng(n)
    p = np.clip(np.round(rng.random(n), 1), 0.05, 0.95)  # many ties, which the nudge breaks
    y = rng.random(n) < p
    nudged = p + 1e-12 * rng.standard_normal(n)  # some move like the root of the nudge
    assert MEASURES[name].function(y, nudged) == pytest.approx(MEASURES[name].function(y, p), abs=1e-5)


# Nudges that break ties: of equal rows, of rows between others, and at an edge of 15 bins.
NUDGES = [
    ([1, 0, 0, 1], [0.5, 0.5, 0.5, 0.5], [0.0, 1e-9, 2e-9, 3e-9]),
    ([0, 1, 0, 1], [0.4, 0.5, 0.5, 0.6], [0.0, 0.0, 1e-9, 0.0]),
    ([0, 1], [1 / 3, 1 / 3], [0.0, -1e-9]),
]


@pytest.mark.parametrize("name", [name for name in NAMES if not MEASURES[name].continuous])
def test_other_measures_do_jump(name):
    function = MEASURES[name].function
    jumps = [abs(function(y, np.add(p, nudge)) - function(y, p)) for y, p, nudge in NUDGES]
    assert max(jumps) > 1e-3


@pytest.mark.simulation
@each_measure
def test_complete_a_calibrated_forecaster_goes_to_zero(name):
    values = []
    for n in (100, 10_000):
        truth = np.random.default_rng(n).random(n)
        outcomes = [np.random.default_rng(seed).random(n) < truth for seed in range(20)]
        values.append(np.mean([MEASURES[name].function(y, truth) for y in outcomes]))
    assert MEASURES[name].complete == (values[1] < values[0] / 3)


def miscalibrated():
    """(truth, report) pairs, one for each way to be wrong."""
    truth = (np.arange(2000) + 0.5) / 2000
    odds = truth / (1 - truth)
    return {
        "too low": (truth, truth**2),
        "too high": (truth, np.sqrt(truth)),
        "overconfident": (truth, odds**2 / (1 + odds**2)),
        "underconfident": (truth, (1 + truth) / 3),
        "upside down": (truth, 1 - truth),
        "always 1, never happens": (0 * truth, 0 * truth + 1),
        "always 0, always happens": (0 * truth + 1, 0 * truth),
        "constant, wrong": (truth, 0 * truth + 0.6),
        "wrong at both ends": (truth, np.clip(truth, 0.2, 0.8)),
        "errors cancel within a bin": (np.repeat([0.0, 1.0], 1000), np.repeat([0.48, 0.52], 1000)),
    }


def sees(name, case):
    """Whether the value, free of noise since outcomes are the true probabilities, is not small beside the distance.

    What is quadratically related to the distance to calibration counts as sound. ATB is at least 1/2 of its square.
    """
    truth, report = miscalibrated()[case]
    return MEASURES[name].function(truth, report) >= tc.distcal(truth, report) ** 2 / 10 * (1 - 1e-6)


@each_measure
def test_sound_a_miscalibrated_forecaster_stays_away_from_zero(name):
    assert MEASURES[name].sound == all(sees(name, case) for case in miscalibrated())


@each_measure
def test_the_truth_itself_scores_zero_without_noise(name):
    truth, _ = miscalibrated()["too low"]
    assert MEASURES[name].function(truth, truth) == pytest.approx(0, abs=ABSOLUTE.get(name, 0))


@pytest.mark.parametrize("name", TRUTHFUL)
@examples(40)
@given(data=rows(min_size=1, max_size=5, outcomes=inner_probabilities))
def test_truthful_measures_never_reward_a_lie(name, data):
    truth, lie = data
    function = MEASURES[name].function
    honest = oracles.expectation(truth, lambda y: function(y, truth))
    assert oracles.expectation(truth, lambda y: function(y, lie)) >= honest - 1e-12


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(TRUTHFUL)))
def test_other_measures_do_reward_a_lie(name):
    """Two points at 0.25 and 0.75; some pair of reports on a grid scores better than the honest one."""
    truth = [0.25, 0.75]
    function = MEASURES[name].function
    grid = [k / 8 for k in range(9)]
    scores = {
        lie: oracles.expectation(truth, lambda y, lie=lie: function(y, lie)) for lie in itertools.product(grid, grid)
    }
    assert min(scores.values()) < scores[tuple(truth)] - 1e-3


@pytest.mark.parametrize("name", [name for name in NAMES if MEASURES[name].noise_floor])
@examples(30)
@given(data=rows(min_size=1, max_size=6, outcomes=inner_probabilities))
def test_noise_floor_is_the_expected_value_of_the_honest_report(name, data):
    truth, _ = data
    value = oracles.expectation(truth, lambda y: MEASURES[name].function(y, truth))
    assert MEASURES[name].noise_floor(Sample.of([0] * len(truth), truth)) == pytest.approx(value, rel=1e-10, abs=0)


def test_random_numbers_have_a_fixed_seed_by_default():
    """Every public function with the parameter `rng` gives the same result twice; None draws a new seed."""
    functions = [getattr(tc, name) for name in dir(tc) if not name.startswith("_")]
    displays = [tc.plots.ReliabilityDisplay.from_predictions, tc.plots.ScaleProfileDisplay.from_predictions]
    found = {
        function: inspect.signature(function).parameters["rng"].default
        for function in functions + displays
        if inspect.isroutine(function) and "rng" in inspect.signature(function).parameters
    }
    assert len(found) > 15
    assert set(found.values()) == {0}
