"""Rows that belong together: tests, intervals and verdicts from sums of groups."""

import inspect
import itertools
import json
import pickle

import numpy as np
import pytest
from oracles.groups import cell_vectors, flipped_squares, student_interval
from scipy import stats
from scipy.special import ndtr
from support.simulation import REPEATS, assert_covered

import truthcal as tc
from truthcal.core.group_sums import GroupSums
from truthcal.core.summarize import summarize
from truthcal.inference.laws import sign_flips
from truthcal.inference.laws.sign_flips import SignFlips
from truthcal.inference.laws.tent_kernel import TentKernel


def in_game(rng, n_groups=60, rows=20):
    """Predictions of each match as it unfolds, and the true probabilities of winning."""
    lead = 0.7 * rng.standard_normal((n_groups, 1)) + np.cumsum(rng.standard_normal((n_groups, rows + 5)), 1) / 5.0
    p = ndtr(lead[:, :rows] / np.sqrt((rows + 5 - np.arange(1, rows + 1)) / 25.0))
    return np.repeat(lead[:, -1] > 0.0, rows), p.ravel(), np.repeat(np.arange(n_groups), rows)


def uneven(rng, n_groups=150):
    """Groups of 1 to 60 rows; some rows of a group share their luck."""
    sizes = np.minimum(np.ceil(3.0 * rng.pareto(1.5, n_groups) + 1.0), 60).astype(int)
    groups = np.repeat(np.arange(n_groups), sizes)
    p, shared = rng.beta(1.5, 1.5, len(groups)), rng.random(len(groups)) < 0.5
    luck = np.where(shared, rng.random(n_groups)[groups], rng.random(len(groups)))
    return luck < p, p, groups


# --- the test ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["information_atb", "atb", "multiscale_atb", "shifted_grid_ubse"])
@pytest.mark.parametrize("draw", [in_game, uneven])
def test_pvalues_are_those_of_random_signs_of_groups(draw, measure):
    rng = np.random.default_rng(1)
    y, p, groups = draw(rng)
    p = np.clip(p + 0.06, 0.0, 1.0)
    summary = summarize(y, p, groups=groups)
    sums, kernel = summary.group_sums, TentKernel.of(measure, summary.points())
    z, _ = cell_vectors(y, p, None, groups, sums.cells.low, sums.cells.high)
    matrix = kernel.matrix(kernel.positions(sums.cells))
    total = z.sum(0)
    squares = flipped_squares(z, matrix, 800, rng)
    law = SignFlips.of(sums, kernel)
    assert law.observed == pytest.approx(total @ matrix @ total, rel=1e-6)
    factor = sums.fewer_events_factor
    assert law.mean == pytest.approx(factor * np.sum((z @ matrix) * z), rel=1e-6)
    gram = z @ matrix @ z.T
    variance = 2.0 * (np.sum(gram**2) - np.sum(np.diag(gram) ** 2))
    assert law.sd == pytest.approx(factor * np.sqrt(variance), rel=1e-4)
    for chance in (0.5, 0.2, 0.05):
        share = np.mean(factor * squares > law.upper_quantile(chance))
        assert share == pytest.approx(chance, abs=4.0 * np.sqrt(chance / 800))
    test = tc.calibration_test(y, p, measure=measure, groups=groups)
    assert test.pvalue == law.tails().greater
    assert test.statistic == pytest.approx(tc.MEASURES[measure].function(y, p))


def test_each_row_in_a_group_of_its_own_gives_nearly_the_result_without_groups():
    rng = np.random.default_rng(2)
    for shift in (0.0, 0.02, 0.04):
        p = rng.uniform(0.05, 0.95, 4000)
        y = rng.random(4000) < p - shift
        alone, grouped = tc.assess(y, p), tc.assess(y, p, groups=np.arange(4000))
        assert grouped.test.pvalue == pytest.approx(alone.test.pvalue, rel=0.25, abs=0.02)
        assert grouped.noise_floor == pytest.approx(alone.noise_floor, rel=0.05)
        assert grouped.excess == pytest.approx(alone.excess, abs=0.02 * alone.noise_floor)
        assert grouped.bias_interval.low == pytest.approx(alone.bias_interval.low, abs=3e-4)
        assert grouped.bias_interval.high == pytest.approx(alone.bias_interval.high, abs=3e-4)
        assert grouped.error.high == pytest.approx(alone.error.high, abs=0.015)
        assert grouped.detectable.shift_high == pytest.approx(alone.detectable.shift_high, rel=0.1)
        assert grouped.n_effective == pytest.approx(4000, rel=0.05)
        assert (grouped.n_groups, round(grouped.n_effective_groups)) == (4000, 4000)


def test_copies_of_rows_in_the_same_group_change_nothing():
    """Five copies of each row know no more than one: without groups, the p-value would be tiny."""
    rng = np.random.default_rng(3)
    p = rng.random(1000)
    y = rng.random(1000) < np.clip(p - 0.03, 0, 1)
    once = tc.assess(y, p, groups=np.arange(1000))
    copies = [np.repeat(x, 5) for x in (y, p, np.arange(1000))]
    five = tc.assess(copies[0], copies[1], groups=copies[2])
    assert five.test.pvalue == pytest.approx(once.test.pvalue, rel=1e-6)
    assert five.noise_floor == pytest.approx(once.noise_floor)
    assert five.bias_interval.low == pytest.approx(once.bias_interval.low, rel=0.01)
    assert five.n_effective == pytest.approx(once.n_effective, rel=0.01)
    assert tc.assess(copies[0], copies[1]).test.pvalue < once.test.pvalue / 100.0


def test_names_and_order_of_groups_and_the_unit_of_weights_do_not_matter():
    rng = np.random.default_rng(4)
    y, p, groups = uneven(rng)
    w = rng.exponential(size=len(p))
    first = tc.calibration_test(y, p, groups=groups, sample_weight=w)
    order = rng.permutation(len(p))
    names = np.array([f"patient {k}" for k in rng.permutation(groups.max() + 1)])[groups]
    other = tc.calibration_test(y[order], p[order], groups=names[order], sample_weight=1e3 * w[order])
    assert other.pvalue == pytest.approx(first.pvalue, rel=1e-9)
    assert other.n_groups == first.n_groups == groups.max() + 1
    without = w.copy()
    without[groups == 0] = 0.0
    assert tc.calibration_test(y, p, groups=groups, sample_weight=without).n_groups == groups.max()


def test_dependent_rows_are_not_called_miscalibrated():
    y, p, groups = in_game(np.random.default_rng(5), 63, 141)
    alone, grouped = tc.assess(y, p), tc.assess(y, p, groups=groups)
    assert alone.test.pvalue < 1e-6
    assert "--group" in alone.test.dependence
    assert "groups=" in alone.test.dependence
    assert grouped.kind == "calibrated"
    assert grouped.verdict.startswith("Calibrated as far as 8,883 rows in 63 groups can tell")
    assert grouped.test.dependence == ""
    assert grouped.test.neighbour_z is None
    assert (grouped.atb, grouped.brier) == (alone.atb, alone.brier)
    assert grouped.n_effective < 200 < 8883


def test_real_errors_are_found_and_named():
    y, p, groups = in_game(np.random.default_rng(6), 400, 20)
    high = tc.assess(y, np.clip(p + 0.12, 0.0, 0.999), groups=groups)
    assert high.kind == "too high"
    assert high.worst is not None
    assert high.bias_interval.low > 0.05
    steep = tc.assess(y, 1.0 / (1.0 + ((1.0 - p) / p) ** 2.5), groups=groups)
    assert steep.kind == "overconfident"
    far = tc.calibration_test(y, np.clip(p + 0.5, 0, 1), groups=groups)
    assert 0.0 < far.pvalue < 1e-12  # no smallest p-value


def test_many_rows_are_reduced_to_a_sketch_with_groups():
    rng = np.random.default_rng(7)
    y, p, groups = in_game(rng, 2500, 20)
    test = tc.calibration_test(y, p, groups=groups)
    assert len(p) > 1 << 15
    order = rng.permutation(len(p))
    assert tc.calibration_test(y[order], p[order], groups=groups[order]).pvalue == pytest.approx(test.pvalue, rel=1e-6)
    assert test.n_groups == 2500
    assert tc.assess(y, p, groups=groups).n == 50_000


@pytest.mark.parametrize("measure", ["smcal", "ks_ce", "kuiper_ce", "atb_l1", "laplace_kernel_ce", "step_ce"])
def test_norms_draw_signs(measure):
    y, p, groups = in_game(np.random.default_rng(8))
    test = tc.calibration_test(y, p, measure=measure, groups=groups, n_resamples=499, rng=0)
    assert test.method == "approximate"
    assert test.pvalue > 0.01
    assert test.n_resamples == 499
    wrong = tc.calibration_test(y, np.clip(p + 0.3, 0, 1), measure=measure, groups=groups, n_resamples=499, rng=0)
    assert wrong.pvalue <= 0.01
    interval = tc.confidence_interval(y, np.clip(p + 0.3, 0, 1), measure=measure, groups=groups)
    alone = tc.confidence_interval(y, np.clip(p + 0.3, 0, 1), measure=measure)
    assert interval.estimate == alone.estimate
    assert interval.high - interval.low > alone.high - alone.low


# --- intervals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_interval_of_the_bias_is_that_of_student(weighted):
    rng = np.random.default_rng(9)
    y, p, groups = uneven(rng)
    w = rng.exponential(size=len(p)) if weighted else None
    interval = tc.confidence_interval(y, p, measure="bias", groups=groups, sample_weight=w)
    low, high = student_interval(y, p, w, groups, 0.95)
    assert interval.low <= low + 1e-9  # wider if assumed outcomes vary more than the observed ones
    assert interval.high >= high - 1e-9
    assert interval.high - interval.low == pytest.approx(high - low, rel=0.1)


def test_excess_is_unbiased():
    rng, values = np.random.default_rng(10), []
    for _ in range(60):
        y, p, groups = in_game(rng, 40, 10)
        values.append(tc.confidence_interval(y, p, measure="atb", groups=groups).estimate)
    assert abs(np.mean(values)) < 4.0 * np.std(values) / np.sqrt(len(values))
    y, p, groups = in_game(rng, 40, 10)
    assert (
        tc.confidence_interval(y, p, measure="atb").estimate
        > tc.confidence_interval(y, p, measure="atb", groups=groups).estimate
    )


def test_the_size_of_a_constant_error_is_found():
    y, p, groups = uneven(np.random.default_rng(11), 3000)
    inside = (p > 0.1) & (p < 0.9)
    y, p, groups = y[inside], p[inside], groups[inside]
    error = tc.error_size(y, p + 0.09, groups=groups)
    assert 0.09 in error
    assert error.estimate == pytest.approx(0.09, abs=0.03)
    assert "groups of rows" in error.why
    assert tc.error_size(y, p + 0.09, groups=groups, n_bins=4).why.endswith("in 4 bins")


def test_of_flips_gives_nearly_the_same_test():
    rng = np.random.default_rng(12)
    y, p, groups = in_game(rng, 300)
    summary = summarize(y, np.clip(p + 0.03, 0, 1), groups=groups)
    exact, kernel = summary.group_sums, TentKernel.of("information_atb", summary.points())
    z, h = cell_vectors(y, np.clip(p + 0.03, 0, 1), None, groups, exact.cells.low, exact.cells.high)
    signs = rng.choice([-1.0, 1.0], (512, len(z))) / 512**0.5
    sketched = GroupSums.of_flips(exact.cells, signs @ z, signs @ h, 300)
    one, other = (SignFlips.of(x, kernel).tails().greater for x in (exact, sketched))
    assert other == pytest.approx(one, rel=0.4, abs=0.02)
    assert len(sketched.flipped(5, rng)) == 5


def test_events_that_did_not_happen_widen_the_interval_of_the_error():
    groups, p = np.repeat(np.arange(40), 5), np.full(200, 0.01)
    error = tc.error_size(np.zeros(200), p, groups=groups)
    assert (error.low, error.estimate) == (0.0, pytest.approx(0.01))
    p = np.linspace(0.0, 0.1, 200)
    error, bias = (f(np.zeros(200), p, groups=groups) for f in (tc.error_size, bias_of))
    assert error.low < 0.035 < 0.05 < error.high
    assert bias.low < 0.035 < 0.05 <= bias.high


def bias_of(y, p, groups):
    return tc.confidence_interval(y, p, measure="bias", groups=groups)


def test_one_group_with_nearly_all_of_the_weight_has_no_interval():
    rng = np.random.default_rng(21)
    groups, p = np.repeat(np.arange(40), 5), rng.random(200)
    y, w = rng.random(200) < p, np.where(groups == 0, 1e6, 1.0)
    error = tc.error_size(y, p, groups=groups, sample_weight=w)
    assert np.isnan(error.low)
    assert error.why == "a few groups have nearly all of the weight"
    assert tc.assess(y, p, groups=groups, sample_weight=w).kind == "too few rows"


def test_groups_whose_errors_cancel():
    """Both teams of each match: the bias is 0 in every group, and known to be."""
    rng = np.random.default_rng(22)
    p = rng.uniform(0.2, 0.8, 300)
    won = rng.random(300) < p
    y, p = np.stack([won, ~won], 1).ravel(), np.stack([p, 1.0 - p], 1).ravel()
    groups = np.repeat(np.arange(300), 2)
    result = tc.assess(y, p, groups=groups)
    assert abs(result.bias_interval.high) < 1e-6
    assert result.test.pvalue > 0.01
    assert result.test.less > 0.01
    assert result.n_effective == pytest.approx(600)


# --- comparison, profile, gate ----------------------------------------------------------------------------------------


def test_compare_copies_in_groups():
    rng = np.random.default_rng(13)
    p = rng.random(800)
    y = rng.random(800) < p
    other = np.clip(p + 0.1 * rng.standard_normal(800), 0, 1)
    alone = tc.compare(y, p, other)
    copies = [np.repeat(x, 6) for x in (y, p, other, np.arange(800))]
    grouped = tc.compare(*copies[:3], groups=copies[3])
    assert (grouped.n, grouped.n_groups) == (4800, 800)
    assert grouped.difference == pytest.approx(alone.difference)
    assert grouped.brier_low == pytest.approx(alone.brier_low, rel=0.05)
    assert grouped.brier_high == pytest.approx(alone.brier_high, rel=0.05)
    assert grouped.brier_pvalue == pytest.approx(alone.brier_pvalue, rel=0.3)
    assert grouped.high - grouped.low == pytest.approx(alone.high - alone.low, rel=0.1)
    assert grouped.pvalue == pytest.approx(alone.pvalue, rel=0.3)
    assert "(4,800 rows in 800 groups)" in grouped.verdict


def test_scale_profile_with_groups():
    y, p, groups = in_game(np.random.default_rng(14), 63, 100)
    alone, grouped = tc.scale_profile(y, p), tc.scale_profile(y, p, groups=groups)
    assert np.array_equal(alone.value, grouped.value)
    assert np.all(grouped.null_mean > 3.0 * alone.null_mean)
    assert np.all(grouped.high > alone.high)
    assert grouped.pvalue.min() > alone.pvalue.min()
    assert grouped.pvalue[0] == tc.calibration_test(y, p, measure="atb", groups=groups).pvalue


def test_check_with_groups():
    y, p, groups = in_game(np.random.default_rng(15), 80, 100)
    assert tc.check(y, p).status == "fail"
    gate = tc.check(y, p, groups=groups)
    assert gate.status == "too little data"
    assert gate.assessment.n_groups == 80
    assert tc.check(y, np.clip(p + 0.3, 0, 1), groups=groups).status == "fail"


# --- results and errors -----------------------------------------------------------------------------------------------


def test_results_state_the_groups():
    y, p, groups = uneven(np.random.default_rng(16))
    result = tc.assess(y, p, groups=groups)
    content = json.loads(json.dumps(result.to_dict()))
    assert content["n_groups"] == content["test"]["n_groups"] == 150
    assert content["n_effective_groups"] == content["test"]["n_effective_groups"] < 150
    assert (
        "\n  groups          150         rows of a group may depend on each other; effective number of groups "
        in str(result)
    )
    assert "150 groups of rows, of uneven weight (effective number " in str(result.test)
    assert pickle.loads(pickle.dumps(result.test)).confidence_interval() == result.test.confidence_interval()
    assert tc.assess(y, p).n_groups is None


def test_few_effective_groups_carry_a_warning():
    y, p, groups = in_game(np.random.default_rng(17), 30)
    warning = "there are few groups: their effective number is 30.0, and tests and intervals"
    result = tc.assess(y, p, groups=groups)
    assert any(text.startswith(warning) for text in result.warnings)
    assert warning in str(tc.calibration_test(y, p, groups=groups))
    assert warning in str(tc.compare(y, p, p**2, groups=groups))
    y, p, groups = in_game(np.random.default_rng(17), 60)
    assert not any("few groups" in text for text in tc.assess(y, p, groups=groups).warnings)


def test_too_little_data_speaks_of_groups():
    p, groups = np.random.default_rng(18).uniform(0.01, 0.02, 100), np.repeat(np.arange(20), 5)
    result = tc.assess(np.zeros(100, int), p, groups=groups)
    assert result.kind == "too few rows"
    assert "100 rows in 20 groups have an effective sample size of " in result.verdict


@pytest.mark.parametrize("measure", ["information_atb", "ks_ce"])
def test_few_events_are_not_too_good(measure):
    """Of 100 rows with a probability of 0.1%, nine of ten samples have no event at all."""
    p, groups = np.random.default_rng(19).uniform(0.0005, 0.002, 100), np.repeat(np.arange(20), 5)
    assert tc.calibration_test(np.zeros(100, int), p, measure=measure, groups=groups, rng=0).less > 0.5
    assert tc.assess(np.zeros(100, int), p, groups=groups).kind == "too few rows"


@pytest.mark.parametrize(("p", "n_groups"), [(0.02, 60), (0.5, 60), (0.02, 1000)])
def test_equal_predictions_with_exactly_the_expected_events_are_not_too_good(p, n_groups):
    """The continuous distribution of the statistic has no probability at 0, but that of outcomes has."""
    rng, n = np.random.default_rng(20), 10 * n_groups
    y = rng.permutation(np.arange(n) < p * n)
    test = tc.calibration_test(y, np.full(n, p), groups=np.repeat(np.arange(n_groups), 10))
    assert test.less > 0.01
    assert tc.assess(y, np.full(n, p), groups=np.repeat(np.arange(n_groups), 10)).kind != "too good"


def test_errors_of_groups():
    y, p, groups = in_game(np.random.default_rng(19), 30)
    with pytest.raises(ValueError, match="`groups` has 10 different values; at least 20 groups are needed"):
        tc.assess(y, p, groups=groups % 10)
    with pytest.raises(ValueError, match="`groups` has 599 rows but `y_proba` has 600"):
        tc.calibration_test(y, p, groups=groups[:-1])
    with pytest.raises(ValueError, match=r"`groups` has a missing value \(nan\) at row 3 \(1 of 600 rows\)"):
        tc.error_size(y, p, groups=np.where(np.arange(600) == 3, np.nan, groups))
    with pytest.raises(TypeError, match="`groups` cannot be combined with a Sketch"):
        tc.assess(tc.Sketch().update(y, p), groups=groups)
    with pytest.raises(ValueError, match="`measure` with groups must be one of"):
        tc.calibration_test(y, p, measure="ece", groups=groups)
    with pytest.raises(ValueError, match="`measure` with groups must be one of"):
        tc.confidence_interval(y, p, measure="ece", groups=groups)
    with pytest.raises(ValueError, match="`method` for information_atb with groups must be one of"):
        tc.calibration_test(y, p, method="exact", groups=groups)


_INFERENCE = (
    "Assessment", "CalibrationTest", "ConfidenceInterval", "Comparison", "Gate", "SegmentTable", "ScaleProfile",
    "LinearTimeTest", "ConsistencyBand", "BiasBand", "ReliabilityCurve", "DetectableError",
)  # fmt: skip


def test_every_function_with_a_pvalue_or_an_interval_has_groups_or_says_why_not():
    functions = {name: getattr(tc, name) for name in dir(tc) if inspect.isfunction(getattr(tc, name))}
    returned = {name: str(inspect.signature(f).return_annotation) for name, f in functions.items()}
    wanted = [name for name, kind in returned.items() if any(result in kind for result in _INFERENCE)]
    assert len(wanted) > 10
    for name in wanted:
        has = "groups" in inspect.signature(functions[name]).parameters
        assert has or "no `groups`" in " ".join(functions[name].__doc__.split()), name
    assert {name for name in wanted if "groups" in inspect.signature(functions[name]).parameters} == {
        "assess", "assess_segments", "calibration_test", "check", "compare", "compare_models", "confidence_interval",
        "error_size", "scale_profile",
    }  # fmt: skip


# --- simulations ------------------------------------------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("draw", [in_game, uneven])
def test_size_and_coverage(draw):
    rng, found, hits, repeats = np.random.default_rng(20), [], 0, min(REPEATS, 1000)
    for _ in range(repeats):
        y, p, groups = draw(rng)
        found.append(tc.calibration_test(y, p, groups=groups).pvalue)
        hits += 0.0 in tc.confidence_interval(y, p, measure="bias", groups=groups)
    for level in (0.05, 0.01):
        rejected = np.sum(np.array(found) <= level)
        assert stats.binom.sf(rejected - 1, repeats, 1.4 * level) > 1e-3, (level, rejected)
        assert stats.binom.cdf(rejected, repeats, 0.7 * level) > 1e-3, (level, rejected)
    assert_covered(hits, repeats, draw.__name__, 0.93)


def test_the_law_of_few_groups_has_the_first_three_cumulants_of_all_sign_flips():
    rng = np.random.default_rng(12)
    z = rng.standard_normal((11, 3)) * rng.gamma(0.7, size=(11, 1))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=11)))
    squares = np.sum((signs @ z) ** 2, axis=1)
    gram = z @ z.T
    off_diagonal = np.linalg.eigvalsh(gram - np.diag(np.diag(gram)))
    law = SignFlips(0.0, np.linalg.eigvalsh(z.T @ z), 0.5, off_diagonal)
    assert law.mean == pytest.approx(np.mean(squares))
    assert 2.0 * np.sum(off_diagonal**2) == pytest.approx(np.var(squares))
    assert 8.0 * np.sum(off_diagonal**3) == pytest.approx(np.mean((squares - np.mean(squares)) ** 3))
    x = law.upper_quantile(0.03)
    assert law.upper_tail(x) == pytest.approx(0.03)


def test_the_laws_of_few_and_of_many_groups_agree(monkeypatch):
    y, p, groups = uneven(np.random.default_rng(13), 400)
    few = tc.calibration_test(y, np.clip(p + 0.03, 0.0, 1.0), groups=groups).pvalue
    monkeypatch.setattr(sign_flips, "_FEW_GROUPS", 100)
    many = tc.calibration_test(y, np.clip(p + 0.03, 0.0, 1.0), groups=groups).pvalue
    assert few != many
    assert few == pytest.approx(many, rel=0.2)
