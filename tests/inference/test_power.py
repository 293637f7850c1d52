"""What a test would find: power by simulation and by theory, checked against one another."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

import truthcal as tc
from truthcal import MEASURES
from truthcal.core.sample import Sample
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.inference.planning import _EVENLY, Design
from truthcal.inference.power import FAMILIES

P = np.linspace(0.05, 0.95, 300)


def flattened(p, slope=0.7):
    return 0.5 + slope * (p - 0.5)


def truth_with_error(p, family, effect):
    """The truth of a family whose mean error is `effect`, by bisection."""
    wrong, high = FAMILIES[family]
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.mean(np.abs(p - wrong(p, middle))) < effect else (low, middle)
    return wrong(p, low)


# --- by simulation ----------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("measure", ["information_atb", "atb", "smcal", "spiegelhalter"])
def test_power_against_the_test_itself(measure):
    p, truth = np.linspace(0.05, 0.95, 60), flattened(np.linspace(0.05, 0.95, 60), 0.3)
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(100):
        y = (rng.random(len(p)) < truth).astype(int)
        if measure == "spiegelhalter":
            test = tc.spiegelhalter_test(y, p)
        else:
            test = tc.calibration_test(y, p, measure=measure, n_resamples=199, rng=rng)
        rejected += test.pvalue <= 0.05
    found = tc.power(p, truth, measure=measure, n_simulations=2000, n_resamples=1999, rng=1)
    assert 0.1 < found.value < 0.98
    error = math.sqrt(found.value * (1 - found.value) / 100)
    assert abs(rejected / 100 - found.value) < 4 * error + 0.01


@pytest.mark.simulation
@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("measure", ["information_atb", "atb", "ks_ce", "spiegelhalter", "hosmer_lemeshow"])
def test_power_under_calibration_is_the_level(measure, alpha):
    found = tc.power(P, P, measure=measure, alpha=alpha, n_simulations=4000, n_resamples=3999, rng=0)
    # Both the simulations and the redrawn outcomes vary.
    assert abs(found.value - alpha) < 4 * math.sqrt(2) * found.standard_error
    assert found.standard_error == pytest.approx(math.sqrt(alpha * (1 - alpha) / 4000), rel=0.15, abs=0)


def test_power_grows_with_the_error_and_the_level():
    weak, strong = (tc.power(P, flattened(P, s), n_simulations=400, n_resamples=999, rng=0) for s in (0.8, 0.5))
    strict = tc.power(P, flattened(P, 0.8), n_simulations=400, n_resamples=999, rng=0, alpha=0.01)
    assert strict.value < weak.value < strong.value
    assert strong.value > 0.95


def test_power_has_a_standard_error():
    found = tc.power(P, flattened(P), n_simulations=200, n_resamples=99, rng=0)
    assert found.n_resamples == 200
    assert found.standard_error == pytest.approx(math.sqrt(found.value * (1 - found.value) / 199), rel=1e-12, abs=0)
    assert math.isnan(tc.power(P, flattened(P), n_simulations=1, n_resamples=99, rng=0).standard_error)
    assert "from 200 draws" in str(found)


def test_power_is_reproducible():
    first, same, other = (tc.power(P, flattened(P), n_simulations=300, n_resamples=99, rng=r) for r in (3, 3, 4))
    assert first == same
    assert first != other


def test_power_with_ties_and_weights():
    p = np.round(P, 1)
    # The truth differs among equal predictions, too: then rows are drawn one by one.
    tied = tc.power(p, flattened(P, 0.5), n_simulations=300, n_resamples=499, rng=0)
    assert tied.value > 0.9
    w = np.where(P < 0.5, 1.0, 1e-6)
    half = tc.power(P, np.where(P < 0.5, P, 0.2), n_simulations=300, n_resamples=999, rng=0, sample_weight=w)
    assert half.value < 0.12  # errors only where there is no weight
    assert tc.power(P, np.where(P < 0.5, P, 0.2), n_simulations=100, n_resamples=99, rng=0).value == 1.0


def test_power_of_predictions_that_cannot_be_wrong_by_chance():
    p = np.array([0.0, 1.0, 1.0, 0.0])
    assert tc.power(p, p, n_simulations=20, n_resamples=99, rng=0).value == 0.0
    assert tc.power(p, 1 - p, n_simulations=20, n_resamples=99, rng=0).value == 1.0
    assert tc.power([0.5], [0.5], n_simulations=20, n_resamples=99, rng=0).value == 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"measure": "t"}, ValueError, "`measure` must be one of .*'spiegelhalter', 'hosmer_lemeshow'; got 't'"),
        ({"alpha": 5}, ValueError, r"For 5%, pass 0\.05"),
        ({"n_simulations": 0}, ValueError, "`n_simulations` must be at least 1; got 0"),
        ({"n_resamples": 1.5}, TypeError, r"`n_resamples` must be a whole number; got 1\.5"),
        ({"rng": 0.5}, TypeError, "`rng` must be a whole number"),
        ({"sample_weight": [-1.0, 1.0]}, ValueError, "`sample_weight`"),
        ({"truth": [0.5, 1.5]}, ValueError, "`truth` must lie in"),
        ({"truth": [0.5]}, ValueError, "`y_proba` has 2 rows but `truth` has 1"),
    ],
)
def test_bad_parameters_of_power_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.power([0.2, 0.4], **({"truth": [0.2, 0.4]} | arguments))


# --- validity curves --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_distances_are_distances_to_calibration(family, monkeypatch):
    p = np.linspace(0.1, 0.9, 40)
    seen = []
    wrong, most = FAMILIES[family]
    far = tc.distcal(wrong(p, 0.9 * most), p)
    wanted = [0.0, 0.3 * far, 0.6 * far]
    monkeypatch.setitem(FAMILIES, family, (lambda p, s: seen.append(wrong(p, s)) or seen[-1], most))
    curve = tc.validity_curve(p, family=family, distances=wanted, n_simulations=5, n_resamples=19, rng=0)
    assert curve.distance.tolist() == wanted
    # The last truths asked for are those simulated.
    found = [tc.distcal(truth, p) for truth in seen[-3:]]
    assert found == pytest.approx(wanted, rel=0.02, abs=1e-6)


def test_acceptance_falls_with_the_distance():
    curve = tc.validity_curve(P, distances=[0.0, 0.03, 0.06, 0.15], n_simulations=200, n_resamples=499, rng=0)
    assert curve.acceptance[0] > 0.88
    assert (np.diff(curve.acceptance) < 0).all()
    assert curve.acceptance[-1] < 0.05
    expected = np.sqrt(curve.acceptance * (1 - curve.acceptance) / 199)
    np.testing.assert_allclose(curve.standard_error, expected, rtol=1e-9)


def test_default_distances_reach_as_far_as_anything_is_accepted():
    curve = tc.validity_curve(P, family="slope", n_simulations=60, n_resamples=99, rng=0)
    assert len(curve.distance) == 8
    assert curve.distance[0] == 0.0
    assert (np.diff(curve.distance) > 0).all()
    assert curve.acceptance[0] > 0.8
    assert curve.acceptance[-1] < 0.2


def test_own_family():
    def halved(p, strength):
        return p * (1 - strength / 2)

    curve = tc.validity_curve(P, family=halved, distances=[0.0, 0.1], n_simulations=60, n_resamples=99, rng=0)
    assert curve.family == "halved"
    assert curve.acceptance[0] > 0.8
    assert curve.acceptance[1] < 0.3
    assert "(halved):" in str(curve)
    assert list(curve.table()) == ["distance", "acceptance", "standard_error"]


def test_curves_of_other_tests_and_weights():
    for measure in ("spiegelhalter", "ks_ce"):
        curve = tc.validity_curve(
            P, family="slope", distances=[0.0, 0.06], measure=measure, n_simulations=60, n_resamples=99, rng=0
        )
        assert curve.measure == measure
        assert curve.acceptance[0] > curve.acceptance[1]
    w = np.linspace(1.0, 5.0, len(P))
    weighted = tc.validity_curve(P, distances=[0.0, 0.1], n_simulations=60, n_resamples=99, rng=0, sample_weight=w)
    assert weighted.acceptance[0] > 0.8 > weighted.acceptance[1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"distances": [0.9]}, ValueError, r"`distances` must be at most 0\.\d+, the largest error .*; got 0\.9"),
        ({"distances": [-0.1]}, ValueError, r"`distances` must be finite and at least 0; got -0\.1"),
        ({"distances": []}, ValueError, "`distances` must contain at least one number; got an empty list"),
        ({"distances": [math.nan]}, ValueError, "`distances` must be finite and at least 0; got nan"),
        ({"distances": 0.1}, TypeError, r"`distances` must be a list of numbers; got 0\.1"),
        ({"distances": ["a"]}, TypeError, "`distances` must be a number; got 'a'"),
        ({"family": "tilt"}, ValueError, "`family` must be one of 'shift', 'slope', 'wave'; got 'tilt'"),
        ({"family": lambda p, s: p + 2 * s}, ValueError, "`family` must return one probability in"),
        ({"family": lambda p, s: p[:-1]}, ValueError, "for each of the 300 predictions"),
        ({"family": lambda p, s: p * math.nan}, ValueError, "`family` must return one probability in"),
        ({"measure": "t"}, ValueError, "`measure` must be one of"),
        ({"alpha": 0}, ValueError, "`alpha` must lie strictly between 0 and 1"),
    ],
)
def test_bad_parameters_of_curves_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.validity_curve(P, n_simulations=5, n_resamples=19, rng=0, **arguments)


# --- detectable errors ------------------------------------------------------------------------------------------------


# The field of a DetectableError for a family.
FIELD = {"shift": "too_high", "slope": "too_extreme"}


def truth_of_shape(p, shape, found):
    """The truth at the detectable error of a shape, from its definition."""
    if shape in ("too_high", "too_low"):
        return np.clip(p - {"too_high": found.shift_high, "too_low": -found.shift_low}[shape], 0, 1)
    log_odds, slope = np.log(p / (1 - p)), {"too_extreme": found.slope_low, "too_timid": found.slope_high}[shape]

    def mean(a):
        return np.mean(1 / (1 + np.exp(-a - slope * log_odds)))

    a = optimize.brentq(lambda a: mean(a) - np.mean(p), -60, 60)
    return 1 / (1 + np.exp(-a - slope * log_odds))


SHAPES = ("too_high", "too_low", "too_extreme", "too_timid")


@pytest.mark.simulation
@pytest.mark.parametrize("measure", ["information_atb", "atb", "shifted_grid_ubse"])
@pytest.mark.parametrize("shape", SHAPES)
def test_detectable_error_is_found_as_often_as_promised(shape, measure):
    p = np.linspace(0.05, 0.95, 1000)
    for power in (0.5, 0.8):
        truth = truth_of_shape(p, shape, tc.detectable_error(p, power=power, measure=measure))
        # Fewer redraws under calibration would move the critical value enough to change the power by 0.03.
        found = tc.power(p, truth, measure=measure, n_simulations=1000, n_resamples=19_999, rng=0)
        assert found.value == pytest.approx(power, rel=0, abs=0.03 + 3 * found.standard_error)


@pytest.mark.simulation
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("a", "b", "n"), [(1, 49, 5000), (0.3, 0.3, 300)])
def test_detectable_error_of_skewed_outcomes_is_found_as_often_as_promised(a, b, n, shape):
    p = np.clip(np.random.default_rng(0).beta(a, b, n), 1e-6, 1 - 1e-6)
    truth = truth_of_shape(p, shape, tc.detectable_error(p))
    found = tc.power(p, truth, n_simulations=1000, n_resamples=4999, rng=0)
    assert found.value == pytest.approx(0.8, rel=0, abs=0.03 + 3 * found.standard_error)


@pytest.mark.parametrize("shape", SHAPES)
def test_mean_errors_are_those_of_the_shapes(shape):
    p = np.linspace(0.02, 0.9, 64)
    found = tc.detectable_error(p, power=0.5)
    error = np.mean(np.abs(p - truth_of_shape(p, shape, found)))
    assert getattr(found, shape) == pytest.approx(error, rel=1e-6, abs=0)


def test_moments_of_the_statistic_under_an_error_are_those_of_all_outcomes():
    p, w = np.array([0.1, 0.35, 0.4, 0.7, 0.95]), np.array([1.0, 2.0, 0.5, 1.5, 1.0])
    truth, kernel = np.array([0.3, 0.3, 0.5, 0.6, 0.7]), TentKernel(np.array([1.0, 0.25]), np.array([0.6, 0.4]))
    y = np.array(list(itertools.product([0, 1], repeat=5)))
    chance = np.prod(np.where(y == 1, truth, 1 - truth), axis=1)
    c = w / w.sum() * (p - y)
    value = np.einsum("ij,jk,ik->i", c, kernel.matrix(p), c)
    mean = chance @ value
    share = w / w.sum()
    found = Design(p, share, share**2, share**3, share**4, kernel.axes(p)).alternative(truth)
    assert np.sum(found.mean**2) + np.trace(found.covariance) == pytest.approx(mean, rel=1e-9, abs=0)
    normal, variance = found.variances(1.0)
    assert variance == pytest.approx(chance @ (value - mean) ** 2, rel=1e-9, abs=0)
    assert normal != pytest.approx(variance, rel=0.01, abs=0)


def test_more_rows_show_smaller_errors():
    found = [tc.detectable_error(np.linspace(0.05, 0.95, n)) for n in (200, 800, 3200)]
    for name in SHAPES:
        errors = [getattr(result, name) for result in found]
        assert errors[0] > errors[1] > errors[2]
        assert errors[0] / errors[2] == pytest.approx(4.0, rel=0.15, abs=0)  # like the root of the number of rows
    assert found[0].slope_low < found[2].slope_low < 1.0 < found[2].slope_high < found[0].slope_high


def test_detectable_error_grows_with_the_demands():
    p = np.linspace(0.05, 0.95, 500)
    base = tc.detectable_error(p)
    assert tc.detectable_error(p, power=0.95).too_high > base.too_high
    assert tc.detectable_error(p, power=0.3).too_high < base.too_high
    assert tc.detectable_error(p, alpha=0.001).too_extreme > base.too_extreme
    assert tc.detectable_error(p, alpha=0.2).too_extreme < base.too_extreme
    # One scale sees more of what spans all predictions, several see more of the rest.
    assert tc.detectable_error(p, measure="atb").too_high < base.too_high


def test_uneven_weights_show_less():
    p = np.linspace(0.05, 0.95, 500)
    w = np.random.default_rng(0).exponential(1.0, 500)
    weighted, even = tc.detectable_error(p, sample_weight=w), tc.detectable_error(p)
    assert 1.2 * even.too_high < weighted.too_high < 1.7 * even.too_high  # half as many rows, in effect
    assert tc.detectable_error(p, sample_weight=np.full(500, 7.0)).too_high == pytest.approx(
        even.too_high, rel=1e-6, abs=0
    )


def test_constant_predictions_have_the_error_of_a_binomial_test():
    found = tc.detectable_error(np.full(1000, 0.3))
    # Wald: (1.96 sd under 0.3 + 0.84 sd under the truth), one side
    assert found.too_high == pytest.approx((1.96 + 0.84) * math.sqrt(0.21 / 1000), rel=0.05, abs=0)
    assert math.isnan(tc.detectable_error(np.full(1000, 0.5)).too_extreme)  # 1/2 cannot be too extreme
    assert math.isnan(tc.detectable_error(np.full(1000, 0.5)).too_high) is False


@pytest.mark.simulation
@pytest.mark.parametrize(("p", "n"), [(0.3, 30), (0.3, 300), (0.02, 600), (0.02, 3000)])
def test_shift_of_a_constant_prediction_is_found_as_often_as_promised(p, n):
    found = tc.detectable_error(np.full(n, p))
    for shift in (found.shift_high, -found.shift_low):
        power = tc.power(np.full(n, p), np.full(n, p - shift), n_simulations=2000, n_resamples=9999, rng=0)
        assert power.value == pytest.approx(0.8, rel=0, abs=0.02 + 3 * power.standard_error)


@pytest.mark.parametrize(("p", "n"), [(0.02, 300), (0.3, 30), (0.5, 40)])
def test_shift_of_a_constant_prediction_against_the_definition(p, n):
    """Power of the exact test, from all numbers of events."""
    k = np.arange(n + 1)
    distance = np.round(np.abs(k - n * p), 9)
    pvalue = np.array([stats.binom.pmf(k[distance >= d], n, p).sum() for d in distance])
    found = tc.detectable_error(np.full(n, p))
    for shift in (found.shift_high, -found.shift_low):
        assert stats.binom.pmf(k[pvalue <= 0.05], n, p - shift).sum() == pytest.approx(0.8, rel=1e-6, abs=0)


def test_shift_is_literal():
    """All predictions are too high or too low by the printed amount, but no truth is below 0 or above 1."""
    p = np.linspace(0.0, 1.0, 400) ** 3
    found = tc.detectable_error(p)
    assert found.too_high == pytest.approx(np.mean(np.minimum(p, found.shift_high)), rel=0.01, abs=0)
    assert found.too_low == pytest.approx(np.mean(np.minimum(1 - p, found.shift_low)), rel=0.01, abs=0)
    assert found.too_high < 0.9 * found.shift_high
    assert f"-{found.shift_low:.2g}" in found.shapes


@pytest.mark.parametrize("doublings", [13, 22])
def test_detectable_error_of_billions_of_rows(doublings):
    p = np.linspace(0.001, 0.999, 1000)
    sketch = tc.Sketch().update(np.arange(1000) % 2, p)
    few = tc.detectable_error(tc.Sketch().update(np.tile([0, 1], 8000), np.repeat(p, 16)))
    for _ in range(doublings):
        sketch = sketch + sketch
    found, ratio = tc.detectable_error(sketch), math.sqrt(2**doublings / 16)
    assert found.n == 1000 * 2**doublings
    for name in ("shift_high", "shift_low", "too_extreme", "too_timid"):
        assert getattr(found, name) * ratio == pytest.approx(getattr(few, name), rel=0.05, abs=0)


def test_power_of_a_detectable_error_exceeds_the_level():
    with pytest.raises(ValueError, match=r"`power` must be above alpha = 0\.2; got 0\.1"):
        tc.detectable_error(P, power=0.1, alpha=0.2)


@pytest.mark.parametrize("p", [[0.0, 1.0, 1.0], [0.0], [1.0] * 50])
def test_nothing_can_be_planned_for_certain_predictions(p):
    found = tc.detectable_error(p)
    assert math.isnan(found.too_high)
    assert math.isnan(found.too_extreme)
    assert math.isnan(found.largest)
    assert str(found).startswith(f"No detectable error can be given for {len(p)} prediction")
    assert "too little information (sum p(1 - p) is 0)" in str(found)


@pytest.mark.parametrize("p", [[0.5], [0.3, 0.6], [0.2, 0.4, 0.9]])
def test_few_rows_show_nothing(p):
    assert math.isnan(tc.detectable_error(p).largest)


def test_detectable_error_in_words():
    found = tc.detectable_error(np.linspace(0.05, 0.95, 500), power=0.9, alpha=0.01)
    assert found.largest == max(found.too_high, found.too_low, found.too_extreme, found.too_timid)
    assert str(found).startswith(
        "With these 500 predictions, a test at level 0.01 has 90% power to detect\na shift of 0.0"
    )
    assert found.to_dict()["too_low"] == found.too_low


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((0.0191, 0.0189, 0.87, 1.15), "a shift of 0.019 or more and log-odds slopes below 0.87 or above 1.15"),
        ((0.0104, 0.0104, 0.9, math.nan), "a shift of 0.0104 or more and log-odds slopes below 0.90"),
        ((0.0038, 0.0052, math.nan, 1.0523), "shifts below -0.0052 or above +0.0038 and log-odds slopes above 1.052"),
        ((math.nan, 0.2, math.nan, math.nan), "shifts below -0.20"),
        ((math.nan, math.nan, 0.5, 2.0), "log-odds slopes below 0.50 or above 2.0"),
        ((math.nan, math.nan, math.nan, math.nan), ""),
    ],
)  # fmt: skip
def test_shapes_of_detectable_errors_in_words(sizes, words):
    high, low, slope_low, slope_high = sizes
    found = dataclasses.replace(
        tc.detectable_error(P), shift_high=high, shift_low=low, slope_low=slope_low, slope_high=slope_high
    )
    assert found.shapes == words


@pytest.mark.parametrize("measure", ["information_atb", "atb", "shifted_grid_ubse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_detectable_error_of_a_sketch_is_that_of_its_rows(measure, weighted):
    rng = np.random.default_rng(0)
    p, w = rng.beta(2, 5, 3000), rng.exponential(1.0, 3000) if weighted else None
    rows = tc.detectable_error(p, sample_weight=w, measure=measure, power=0.7, alpha=0.01)
    sketches = [tc.Sketch(1 << 14).update(y, p, w) for y in (np.zeros(3000), rng.random(3000) < p)]
    one, other = (tc.detectable_error(sketch, measure=measure, power=0.7, alpha=0.01) for sketch in sketches)
    assert (one.n, one.power, one.alpha, one.measure) == (3000, 0.7, 0.01, measure)
    for name in (*SHAPES, "slope_low", "slope_high", "information"):
        assert getattr(one, name) == pytest.approx(getattr(rows, name), rel=5e-3, abs=0)
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=0)  # outcomes do not matter


def test_detectable_error_of_a_sketch_that_cannot_be():
    with pytest.raises(ValueError, match=r"the sketch is empty; add rows with \.update"):
        tc.detectable_error(tc.Sketch())
    with pytest.raises(TypeError, match="`sample_weight` cannot be combined with a Sketch"):
        tc.detectable_error(tc.Sketch().update([0, 1], [0.2, 0.7]), sample_weight=[1, 2])


def test_design_agrees_with_its_rows():
    rng = np.random.default_rng(0)
    p, w = rng.random(3000), rng.exponential(1.0, 3000)
    design = Design.of(Sample.of(rng.integers(0, 2, 3000), p, w).points(), "atb")
    assert len(design.x) <= 64
    assert design.share.sum() == pytest.approx(1.0, rel=1e-12, abs=0)
    assert design.squares.sum() == pytest.approx(np.sum(w**2) / np.sum(w) ** 2, rel=1e-12, abs=0)
    assert design.alternative(design.x).power(design.critical(0.05)) == pytest.approx(0.05, rel=1e-6, abs=0)
    assert design.error(flattened(design.x, 0.8)) == pytest.approx(
        np.sum(w * np.abs(p - flattened(p, 0.8))) / w.sum(), rel=1e-3, abs=0
    )


# --- sample sizes -----------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("family", FAMILIES)
def test_required_rows_find_the_error_as_often_as_promised(family):
    effect = 0.06
    n = tc.required_sample_size(effect, family=family)
    p = (np.arange(n) + 0.5) / n
    found = tc.power(p, truth_with_error(p, family, effect), n_simulations=600, n_resamples=1999, rng=0)
    assert found.value == pytest.approx(0.8, rel=0, abs=0.04 + 3 * found.standard_error)


@pytest.mark.parametrize("family", ["shift", "slope"])
def test_required_rows_and_detectable_error_are_inverse(family):
    effect = 0.04
    n = tc.required_sample_size(effect, family=family)
    found = tc.detectable_error((np.arange(n) + 0.5) / n)
    assert getattr(found, FIELD[family]) == pytest.approx(effect, rel=0.03, abs=0)


def test_required_rows_grow_with_the_demands():
    sizes = [tc.required_sample_size(effect) for effect in (0.2, 0.1, 0.05, 0.02)]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 4
    base = tc.required_sample_size(0.05)
    assert tc.required_sample_size(0.05, power=0.95) > base
    assert tc.required_sample_size(0.05, alpha=0.001) > base
    assert tc.required_sample_size(0.05, measure="atb") < base
    assert tc.required_sample_size(0.05, family="wave", measure="atb") > 3 * tc.required_sample_size(
        0.05, family="wave"
    )
    # Half the effect, four times the rows.
    assert tc.required_sample_size(0.01) / tc.required_sample_size(0.02) == pytest.approx(4.0, rel=0.05, abs=0)


def test_required_rows_for_own_predictions_do_not_depend_on_how_many_are_given():
    few, many = (tc.required_sample_size(0.03, y_proba=np.linspace(0.2, 0.6, k)) for k in (100, 5000))
    assert few == pytest.approx(many, rel=0.03, abs=0)
    assert many != tc.required_sample_size(0.03)
    evenly = tc.required_sample_size(0.03, y_proba=_EVENLY)
    assert evenly == tc.required_sample_size(0.03)


def test_required_rows_for_own_family():
    n = tc.required_sample_size(0.05, family=lambda p, s: p * (1 - s / 2))
    assert isinstance(n, int)
    assert 50 < n < 5000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"effect": 0.9}, ValueError, r"`effect` must be at most 0\.\d+, the largest error .* predictions; got 0\.9"),
        ({"effect": 0.3, "family": "wave"}, ValueError, " for these predictions; got 0.3"),
        ({"effect": 1e-12}, ValueError, r"`effect` is too small to plan for: more than 1e\+18 rows .*; got 1e-12"),
        ({"effect": 0.1, "power": 0.01}, ValueError, r"`power` must be above alpha = 0\.05; got 0\.01"),
        ({"effect": 0.05, "y_proba": [0.0, 1.0], "family": "slope"}, ValueError, "`family` does not change these"),
        (
            {"effect": 0.1, "y_proba": [0.0, 0.3, 1.0], "family": "slope"},
            ValueError,
            r"`effect` must be at most 0\.06667, the largest error of this family",
        ),
        (
            {"effect": 0.1, "family": lambda p, s: p if s < 0.5 else 1 - p},
            ValueError,
            r"`effect` cannot be reached: the errors of this family jump over 0\.1",
        ),
        ({"effect": 0}, ValueError, "`effect` must lie strictly between 0 and 1"),
        ({"effect": 5}, ValueError, r"For 5%, pass 0\.05"),
        ({"effect": "2%"}, TypeError, "`effect` must be a number; got '2%'"),
        ({"effect": 0.1, "power": 1}, ValueError, "`power` must lie strictly between 0 and 1"),
        ({"effect": 0.1, "measure": "smcal"}, ValueError, "`measure` must be one of .*; got 'smcal'"),
        ({"effect": 0.1, "family": "tilt"}, ValueError, "`family` must be one of"),
        (
            {"effect": 0.1, "y_proba": [0.0, 1.0], "family": "wave"},
            ValueError,
            "`family` does not change these predictions, for example because they are all 0 or 1",
        ),
        ({"effect": 0.1, "y_proba": [2.0]}, ValueError, "`y_proba` must lie in"),
        ({"effect": 0.1, "family": lambda p, s: p + s}, ValueError, "`family` must return one probability in"),
    ],
)
def test_bad_parameters_of_planning_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tc.required_sample_size(**arguments)


def test_bad_parameters_of_detectable_error_are_refused():
    with pytest.raises(ValueError, match=r"`measure` must be one of .*; got 'spiegelhalter'"):
        tc.detectable_error(P, measure="spiegelhalter")
    with pytest.raises(ValueError, match=r"For 80%, pass 0\.8"):
        tc.detectable_error(P, power=80)
    with pytest.raises(ValueError, match="`y_proba`"):
        tc.detectable_error([0.5, math.nan])
    assert "spiegelhalter" not in MEASURES


def test_too_low_is_not_too_high_where_events_are_rare():
    """Rare events: what is too low by this much varies more than what is too high, and takes more to be seen."""
    found = tc.detectable_error(np.full(20_000, 0.0005))
    assert found.too_low > 1.2 * found.too_high


def test_a_family_must_start_calibrated():
    with pytest.raises(ValueError, match="must return the predictions themselves at strength 0"):
        tc.required_sample_size(0.1, family=lambda p, s: 0.5 * p)


def test_draws_too_few_for_the_level_are_refused():
    with pytest.raises(ValueError, match=r"`n_resamples` must be at least 19 for alpha = 0.05; got 5"):
        tc.power([0.2, 0.7], [0.2, 0.7], n_resamples=5)


def test_infinite_statistics_do_not_disturb():
    found = tc.power(
        [0.0, 0.0, 0.5, 0.5], [0.5] * 4, measure="hosmer_lemeshow", n_simulations=200, n_resamples=99, rng=0
    )
    assert 0.5 < found.value <= 1.0  # three of four outcomes cannot happen if the predictions are right


def test_certain_predictions_have_no_curve():
    with pytest.raises(ValueError, match="`family` does not change these predictions"):
        tc.validity_curve([0.0, 1.0] * 10, family="wave")
