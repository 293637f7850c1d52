"""The numbered items of Hartline, Hu, Wu (2025), A Perfectly Truthful Calibration Measure, by the paper's numbers.

Each test computes an item in a few lines with the public functions. Slow oracles and property tests of the same
functions are in the other files.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from support.strategies import examples, rows, weighted_rows

import truthcal as tc
from truthcal import acceptance_probability, expected_score

UBSES = [name for name, measure in tc.MEASURES.items() if measure.truthful and name != "quantile_ece"]
KINDS = [0.1, 0.3, 0.8]  # a population of equally frequent events
SLACK = 1e-9
HALF = {"one prediction": [0.5]}
FAR = 2 + math.sqrt(2 * math.log(4))  # the C of Lemma 5.3 that is proved here: 3.67


def uniform_thirds(n_rows, rng):
    """A sampler: calibrated predictions, uniform on [1/3, 2/3]."""
    p = rng.uniform(1 / 3, 2 / 3, n_rows)
    return (rng.random(n_rows) < p).astype(int), p


# --- 1 Introduction ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", [2, 9])
def test_example_1_1_ece_is_not_truthful(events):
    """For every outcome the truth has an ECE of 1/3 or more."""
    truth = np.linspace(1 / 3, 2 / 3, events)
    honest = expected_score(truth, truth, "unbinned_ece")
    assert len(honest.values) == 2**events
    assert honest.values.min() >= 1 / 3 - 1e-15
    assert expected_score(np.full(events, 0.5), truth, "unbinned_ece").value <= 0.5 / math.sqrt(events)


def test_example_1_1_as_events_accumulate():
    for events in (50, 400, 3200):
        y, p = uniform_thirds(events, np.random.default_rng(0))
        assert tc.unbinned_ece(y, p) >= 1 / 3
        truth = np.linspace(1 / 3, 2 / 3, events)
        flat, biased = (expected_score(np.full(events, r), truth, "unbinned_ece", n_resamples=300) for r in (0.5, 0.55))
        assert flat.value <= 0.5 / math.sqrt(events)
        assert biased.value < 1 / 3  # even the miscalibrated constant has a smaller error than the truth


def test_definition_1_2_atb():
    y, p = [0, 1, 1], [0.2, 0.9, 0.6]
    grid = (np.arange(10_000) + 0.5) / 10_000
    below = np.array([sum(r - o for r, o in zip(p, y, strict=True) if r < q) for q in grid])
    above = sum(p) - sum(y) - below
    assert tc.atb(y, p) == pytest.approx(np.mean(below**2 + above**2) / 9, abs=1e-5)
    # Definition 1.5: the l1 variant.
    assert tc.atb_l1(y, p) == pytest.approx(np.mean(np.abs(below) + np.abs(above)) / 3, abs=1e-5)


@pytest.mark.parametrize("t", [2, 10, 100])
def test_section_1_5_the_midpoint_of_two_calibrated_reports_is_miscalibrated(t):
    y = np.arange(t) % 2
    expected = {
        tc.atb: (0, 1 / 64, 0),
        tc.atb_l1: (0, 1 / 8, 0),
        tc.smcal: (0, 1 / 16, 0),
        tc.distcal: (0, 1 / 8, 0),
        tc.unbinned_ece: (0, 1 / 4, 0),
    }
    for function, values in expected.items():
        found = [function(y, 0.5 + move * (y - 0.5)) for move in (0, 0.5, 1)]  # 50%, 25%/75%, the outcomes themselves
        assert found == pytest.approx(values, abs=1e-5)
    path = [tc.atb(y, 0.5 + move * (y - 0.5)) for move in np.linspace(0, 1, 11)]
    assert path == pytest.approx([move * (1 - move) ** 2 / 8 for move in np.linspace(0, 1, 11)])


# --- 2 Preliminaries --------------------------------------------------------------------------------------------------


def test_definition_2_3_ece_of_any_exponent_has_no_root():
    truth, v, share = [0.1, 0.7], [0.2, 0.5], [1, 3]
    for alpha in (1, 2, 3.5):
        expected = 0.25 * 0.1**alpha + 0.75 * 0.2**alpha
        assert tc.unbinned_ece(truth, v, alpha=alpha, sample_weight=share) == pytest.approx(expected)


@examples(20)
@given(weighted_rows(max_size=8))
def test_proposition_2_6_smcal_and_distcal_are_within_a_factor_of_two(data):
    y, p, w = data
    distance, smooth = tc.distcal_bounds(y, p, sample_weight=w), tc.smcal(y, p, sample_weight=w)
    assert distance.low / 2 - SLACK <= smooth <= 2 * distance.high + SLACK


def test_claim_2_7_zero_exactly_for_calibrated_distributions():
    v, share = [0.2, 0.5, 0.9], [1, 2, 3]  # Definitions 2.1 and 2.2: E[y|v] = v
    for function in (tc.unbinned_ece, tc.distcal, tc.smcal, tc.atb, tc.atb_l1):
        assert function(v, v, sample_weight=share) == 0
        for truth in ([0.2, 0.5, 0.8], [0.3, 0.45, 0.9]):  # the second is unbiased on average
            assert function(truth, v, sample_weight=share) > 1e-5


@pytest.mark.parametrize("name", ["atb", "atb_l1", "smcal"])
def test_definitions_2_8_and_2_9_complete_and_sound(name):
    """Theorem 4.3 for ATB and ATB_l1. ECE is not complete."""
    calibrated, wrong = ([0.3, 0.6], [0.3, 0.6]), ([0.3, 0.6], [0.45, 0.45])  # the second has no bias
    complete, sound = (
        [expected_score(*j, name, n_rows=t, n_resamples=200).value for t in (2, 8, 32)] for j in (calibrated, wrong)
    )
    assert complete[0] > 1.5 * complete[1] > 2.2 * complete[2]
    assert min(sound) > 0.99 * tc.MEASURES[name].function(wrong[1], wrong[0]) > 0
    assert tc.MEASURES[name].complete
    assert tc.MEASURES[name].sound
    assert not tc.MEASURES["unbinned_ece"].complete


def test_definition_2_10_binned_ece_of_any_exponent_and_partition():
    truth, v, share = [0.1, 0.7, 0.8], [0.2, 0.5, 0.9], [1, 1, 2]
    bins = tc.FixedBins([0.6])
    for alpha in (1, 2, 3):
        expected = 0.5 * abs((0.1 - 0.2) / 2) ** alpha + 0.5 * 0.1**alpha
        assert tc.binned_ece(truth, v, strategy=bins, alpha=alpha, sample_weight=share) == pytest.approx(expected)


def test_remark_2_11_an_error_that_is_no_calibration_error():
    def bias_and_certain_mistakes(y, r):
        return (np.mean(r) - np.mean(y)) ** 2 + np.mean(np.isin(r, [0, 1]) & (r != y))

    y = np.arange(200) % 2
    assert bias_and_certain_mistakes(y, 1 - y) == 1  # first condition: always wrong
    constant = expected_score([0.3], [0.5], bias_and_certain_mistakes, n_rows=200, n_resamples=100)
    assert constant.value > 0.04  # second condition: a constant other than the base rate
    lie, truth = [0.25, 0.75], [0.75, 0.25]  # as wrong as can be, except on average
    small, large = (expected_score(lie, truth, bias_and_certain_mistakes, n_rows=n, n_resamples=50) for n in (4, 400))
    assert large.value < small.value / 20
    assert tc.smcal(truth, lie) == 0.125
    assert tc.distcal(truth, lie) == pytest.approx(1 / 6)
    assert tc.atb(truth, lie) == 0.0625


def test_definition_2_12_ex_ante_truthfulness():
    """Claim 2.15: what is interim truthful is also ex ante truthful."""
    lies = {"strategies": ["constant mean", "shrink"], "stage": "ex_ante", "n_rows": 4}
    for row in tc.audit([0.4, 0.5, 0.6], ["atb", "smcal", "unbinned_ece"], **lies).rows:
        assert row.pays == (not tc.MEASURES[row.measure].truthful)


def test_definition_2_13_induced_error_of_a_sequence():
    r, p = [0.2, 0.2, 0.7], [0.1, 0.5, 0.6]
    many = [1000 * round(10 * chance) for chance in p]  # J_{r,p}: each row 10,000 times, with the share p of positives
    y = np.concatenate([np.repeat([1, 0], [ones, 10_000 - ones]) for ones in many])
    for function in (tc.atb, tc.atb_l1, tc.smcal, tc.unbinned_ece):
        assert function(p, r) == pytest.approx(function(y, np.repeat(r, 10_000)))
    assert tc.unbinned_ece(p, r) == pytest.approx(abs(0.4 - 0.6) / 3 + 0.1 / 3)


@pytest.mark.parametrize(("name", "truthful"), [("atb", True), ("smcal", False), ("distcal", False), ("ece", False)])
def test_definition_2_14_interim_truthfulness(name, truthful):
    truth = [0.25, 0.75]
    honest = expected_score(truth, truth, name).value
    reports = itertools.product(np.linspace(0, 1, 9), repeat=2)
    assert all(expected_score(r, truth, name).value >= honest - 1e-6 for r in reports) == truthful


def test_definition_2_16_acceptance_probability():
    """At any threshold, of any measure and test, for a finite distribution or a sampler."""
    exact = acceptance_probability([0.5], [0.6], "atb", n_rows=10, threshold=0.01)
    assert exact.value == pytest.approx(stats.binom.cdf(6, 10, 0.6) - stats.binom.cdf(3, 10, 0.6))
    tester = acceptance_probability(uniform_thirds, test=tc.linear_time_test, n_rows=50, n_simulations=50, rng=0)
    assert tester.value >= 0.75


def test_definition_2_17_validity():
    """The gap of ATB, at the distance C / sqrt(T), stays as T grows; at a distance of a smaller order it cannot."""
    found = tc.validity(
        "atb", constant=2, n_rows=[64, 256, 1024], families=["shift"], populations=HALF, n_simulations=50, rng=0
    )
    assert (found.gap > 0.7).all()
    assert (found.gap <= found.best_possible + 4 * found.standard_error + 0.02).all()
    gaps = [tc.best_possible_gap(t**-0.6, t) for t in (10**2, 10**4, 10**6, 10**8)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.03


# --- 3 UBSE -----------------------------------------------------------------------------------------------------------


def test_definition_3_1_ubse():
    y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    assert tc.ubse(y, p, lambda p: np.arange(4)) == pytest.approx(
        sum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / 16
    )
    assert tc.ubse(y, p, lambda p: np.zeros(4)) == pytest.approx((sum(p) - sum(y)) ** 2 / 16)
    assert tc.ubse(y, p, tc.RandomThreshold()) == tc.atb(y, p)


@pytest.mark.parametrize(
    "binning", [tc.RandomThreshold(), tc.ShiftedGrid(0.3), tc.QuantileBins(2), tc.FixedBins([0.4])]
)
def test_lemma_3_3_error_decomposition(binning):
    """Lemma 1.3, and Theorem 3.2: no report has a smaller expected value than the truth."""
    truth = np.array([0.1, 0.35, 0.5, 0.8])
    noise = np.sum(truth * (1 - truth)) / 16
    outcomes = list(itertools.product([0, 1], repeat=4))
    chances = [math.prod(np.where(y, truth, 1 - truth)) for y in map(np.array, outcomes)]
    for report in ([0.1, 0.35, 0.5, 0.8], [0.2, 0.2, 0.2, 0.9], [0.9, 0.1, 0.4, 0.4]):
        mean = sum(chance * tc.ubse(y, report, binning) for y, chance in zip(outcomes, chances, strict=True))
        assert mean == pytest.approx(tc.ubse(truth, report, binning) + noise)
        assert tc.expected_ubse(report, truth, binning) == pytest.approx(mean)
        assert mean >= noise - 1e-15


def test_example_3_4_quantile_binned_ece_is_truthful():
    p, y = np.linspace(0.05, 0.95, 27), np.arange(27) % 2
    bins = np.repeat([0, 1, 2], 9)  # T^(1/3) = 3 bins of T/k rows
    assert tc.quantile_ece(y, p) == pytest.approx(3 * tc.ubse(y, p, lambda p: bins))
    means = [np.mean((p - y)[bins == k]) for k in range(3)]
    assert tc.quantile_ece(y, p) == pytest.approx(np.mean(np.square(means)))  # l2-binned ECE of these bins
    assert not tc.audit([0.2, 0.5, 0.6, 0.9], ["quantile_ece"])["quantile_ece"].pays


@pytest.mark.parametrize("name", UBSES)
def test_theorem_3_5_strict_ex_ante_truthfulness(name):
    honest = expected_score(KINDS, KINDS, name, n_rows=3).value
    assert honest == pytest.approx(expected_score(KINDS, KINDS, "brier").value / 3)
    for report in ([0.1, 0.3, 0.81], [0.2, 0.2, 0.8], [0.4, 0.4, 0.4], [0.3, 0.1, 0.8]):
        assert expected_score(report, KINDS, name, n_rows=3).value > honest + 1e-6


@pytest.mark.parametrize("name", UBSES)
@pytest.mark.parametrize("report", [[0.15, 0.3, 0.7], [0.4, 0.4, 0.8], [0.3, 0.3, 0.3]])
def test_lemma_3_6_ubse_and_brier(name, report):
    recalibrated = [np.mean([t for t, r in zip(KINDS, report, strict=True) if r == v]) for v in report]
    for t in (1, 2, 4):
        calibrated = expected_score(recalibrated, KINDS, name, n_rows=t).value
        assert calibrated == pytest.approx(expected_score(recalibrated, KINDS, "brier").value / t)
        slack = np.mean(np.square(np.subtract(report, recalibrated))) / t**2
        assert expected_score(report, KINDS, name, n_rows=t).value >= calibrated + slack - 1e-14


# --- 4 ATB ------------------------------------------------------------------------------------------------------------


def test_definition_4_1_atb_of_a_distribution():
    truth, v, share = np.array([0.1, 0.7]), np.array([0.2, 0.5]), np.array([0.25, 0.75])
    bias = share * (v - truth)
    first, second = (0.2 + 0.5) * np.sum(bias) ** 2, 0.3 * np.sum(bias**2)
    assert tc.atb(truth, v, sample_weight=share) == pytest.approx(first + second)
    first, second = (0.2 + 0.5) * abs(np.sum(bias)), 0.3 * np.sum(np.abs(bias))
    assert tc.atb_l1(truth, v, sample_weight=share) == pytest.approx(first + second)


@examples(30)
@given(weighted_rows(max_size=8))
def test_corollary_4_5_all_relations(data):
    """Theorem 1.6, Lemmas 4.2, 4.6 and 4.7, Theorem 4.4; and the sharper constants of docs/theory/foundations.md."""
    y, p, w = data
    atb, l1, smooth = (function(y, p, sample_weight=w) for function in (tc.atb, tc.atb_l1, tc.smcal))
    distance = tc.distcal_bounds(y, p, sample_weight=w)
    assert l1**2 / 2 - SLACK <= atb <= l1 + SLACK
    assert distance.low - SLACK <= min(2 * smooth, l1) + SLACK
    assert 2 / 3 * smooth - SLACK <= l1 <= min(3 * distance.high, 2 * smooth) + SLACK
    assert (
        max(2 / 9 * smooth**2, 2 / 5 * smooth**2, distance.low**2 / 2) - SLACK
        <= atb
        <= min(3 * distance.high, smooth) + SLACK
    )


def test_theorem_4_8_truthfulness_of_atb():
    truth = np.linspace(0.05, 0.95, 40)
    noise = np.sum(truth * (1 - truth)) / 1600
    for report in (truth, np.full(40, 0.5), truth**2):
        assert expected_score(report, truth, "atb").value == pytest.approx(tc.atb(truth, report) + noise)
    assert tc.audit([0.3, 0.6], ["atb"], stage="ex_ante", n_rows=5)["atb"].truthful


@examples(30)
@given(rows(min_size=1, max_size=8), rows(min_size=8, max_size=8))
def test_theorem_4_9_continuity(data, other):
    y, p = data
    q = other[1][: len(p)]
    moved = np.mean(np.abs(np.subtract(p, q)))
    assert abs(tc.atb_l1(y, p) - tc.atb_l1(y, q)) <= 3 * moved + SLACK
    assert abs(tc.atb(y, p) - tc.atb(y, q)) <= 4 * moved + SLACK  # 6 in the paper


def test_theorem_4_10_and_proposition_4_11_sample_complexity():
    """T = C log(1/delta) / epsilon^2 with an explicit C; a population with much noise."""
    rng = np.random.default_rng(0)
    for measure, constant in (("atb", 2.6), ("atb_l1", 4.1), ("smcal", 4.4)):
        for epsilon, delta in ((0.1, 0.05), (0.1, 0.001), (0.01, 0.05)):
            assert tc.sample_complexity(epsilon, delta, measure=measure) <= constant * math.log(1 / delta) / epsilon**2
        n = tc.sample_complexity(0.05, 0.05, measure=measure)
        value = tc.atb_l1([1], [0.3]) if measure != "atb" else tc.atb([0, 1], [1, 0.65], sample_weight=[79, 21])
        for _ in range(40):
            if measure == "atb":
                kind = rng.random(n) < 0.21
                y, p = kind.astype(int), np.where(kind, 0.65, 1.0)
            else:
                y, p, value = (rng.random(n) < 0.7).astype(int), np.full(n, 0.3), 0.4
            assert abs(getattr(tc, measure)(y, p) - value) <= 0.05


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1 / 4000])
def test_theorem_4_12_approximation(tolerance):
    y, p = uniform_thirds(2000, np.random.default_rng(0))
    found = tc.atb_approx(y, p, tolerance=tolerance)
    assert abs(found.value - tc.atb(y, p)) <= tolerance


# --- 5 Testing --------------------------------------------------------------------------------------------------------


def test_theorem_5_1_the_papers_tester_is_valid():
    """With the threshold 1.5/T and C = 3.67: a gap of at least 1/2."""
    found = tc.validity(
        tc.linear_time_test,
        constant=FAR,
        n_rows=[64, 256, 1024],
        families=["shift"],
        populations=HALF,
        n_simulations=30,
        rng=0,
    )
    assert (found.gap >= 0.5).all()


@pytest.mark.parametrize("t", [1, 2, 10, 100, 300])
def test_lemma_5_2_calibrated_populations_are_accepted(t):
    for v in (0.5, 0.1, 0.01):
        assert acceptance_probability([v], [v], "atb", n_rows=t, threshold=1 / t).value >= 0.75
    if t <= 10:
        assert acceptance_probability([0.3, 0.7], [0.3, 0.7], "atb", n_rows=t, threshold=1 / t).value >= 0.75


def test_lemma_5_3_populations_far_from_calibration_are_rejected():
    for t in (60, 200, 800):
        wrong = 0.5 + FAR / math.sqrt(t)
        assert tc.distcal([wrong], [0.5]) >= FAR / math.sqrt(t) - 1e-9
        assert acceptance_probability([0.5], [wrong], "atb", n_rows=t, threshold=2 / t).value <= 0.25


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_lemma_5_4_lower_bound(alternative):
    """Exact total variation distance of the two binomials: at most C sqrt(2), and 2 Phi(C) - 1 in the limit."""
    for constant in (0.01, 0.1, 0.5, 1.0):
        gaps = [tc.best_possible_gap(constant / math.sqrt(t), t, alternative=alternative) for t in (100, 10**4, 10**8)]
        assert max(gaps) <= constant * math.sqrt(2) + 1e-12  # Pinsker
        if alternative == "greater":
            assert gaps[-1] == pytest.approx(2 * stats.norm.cdf(constant) - 1, rel=1e-3)
        else:
            assert gaps[-1] <= 2 * stats.norm.cdf(constant) - 1
    pair = [
        acceptance_probability([0.5], [q], lambda y, p: y.mean(), n_rows=50, threshold=0.54).value for q in (0.5, 0.6)
    ]
    assert pair[0] - pair[1] <= tc.best_possible_gap(0.1, 50, alternative="greater") + 1e-12


# --- A Non-truthfulness of known measures -----------------------------------------------------------------------------

AVERAGED = {
    "l1-ECE": tc.unbinned_ece,
    "l3-ECE": lambda y, p, **w: tc.unbinned_ece(y, p, alpha=3, **w),
    "l2-binned ECE": lambda y, p, **w: tc.binned_ece(y, p, alpha=2, **w),
    "l1.5-binned ECE": lambda y, p, **w: tc.binned_ece(y, p, n_bins=4, alpha=1.5, **w),
    "smCal": tc.smcal,
    "distCal": tc.distcal,
}


@examples(20)
@given(rows(min_size=2, max_size=6))
def test_theorem_a_2_averaging_never_hurts(data):
    y, p = data
    for function in AVERAGED.values():
        assert function(y, np.full(len(p), np.mean(p))) <= function(y, p) + 2e-5


def test_theorem_a_2_for_the_squared_distance():
    for y in itertools.product([0, 1], repeat=3):
        assert tc.distcal(y, [0.4] * 3, alpha=2) <= tc.distcal(y, [0.1, 0.4, 0.7], alpha=2) + 2e-4


def test_remark_a_3_averaging_often_helps_strictly():
    y, p = [0, 1, 0, 1], [0.4, 0.45, 0.55, 0.6]
    assert all(
        function(y, [0.5] * 4) < 1e-9 < 1e-4 < function(y, p) for name, function in AVERAGED.items() if name != "l3-ECE"
    )


@examples(20)
@given(weighted_rows(min_size=2, max_size=6))
def test_theorem_a_4_averaging_never_hurts_for_distributions(data):
    y, p, w = data
    flat = np.full(len(p), np.average(p, weights=w))
    for function in AVERAGED.values():
        assert function(y, flat, sample_weight=w) <= function(y, p, sample_weight=w) + 2e-5


def l2_distcal(y, p):
    """Definition A.1 for alpha = 2."""
    return tc.distcal(y, p, alpha=2)


@pytest.mark.parametrize(
    ("measure", "average", "truthful", "means"),
    [
        ("smcal", (0.5, 0.5, 0, 0), (0.5, 0.5, 0.0625, 0.1875), (0.1875, 0.234375)),
        ("distcal", (0.5, 0.5, 0, 0), (0.5, 0.5, 0.125, 0.25), (0.1875, 0.2734375)),  # "> 0" in the paper
        (l2_distcal, (0.25, 0.25, 0, 0), (0.3125, 0.3125, 0.0625, 0.0625), (0.09375, 0.15625)),  # likewise
        ("atb", (0.25, 0.25, 0, 0), (0.203125, 0.203125, 0.015625, 0.140625), (0.09375, 0.09375)),
    ],
)
def test_table_1_two_points(measure, average, truthful, means):
    for report, values, mean in (([0.5, 0.5], average, means[0]), ([0.25, 0.75], truthful, means[1])):
        found = expected_score(report, [0.25, 0.75], measure)
        by_states = dict(
            zip(map(tuple, found.outcomes.tolist()), zip(found.values, found.probabilities, strict=True), strict=True)
        )
        states, chances = [(0, 0), (1, 1), (0, 1), (1, 0)], [3 / 16, 3 / 16, 9 / 16, 1 / 16]
        assert [by_states[state][0] for state in states] == pytest.approx(values, abs=2e-5, rel=0)
        assert [by_states[state][1] for state in states] == pytest.approx(chances)
        assert found.value == pytest.approx(mean, abs=2e-5, rel=0)


# --- B ATB and Brier loss ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1, 2, 10, 1000])
def test_lemma_b_1_atb_and_brier_loss(t):
    share = [1, 2, 5]
    for report, calibrated in ((KINDS, True), ([0.25, 0.25, 0.8], False), ([0.15, 0.3, 0.7], False)):
        found = expected_score(report, KINDS, "atb", n_rows=t, sample_weight=share)
        brier = expected_score(report, KINDS, "brier", n_rows=t, sample_weight=share).value
        assert (found.standard_error, found.method) == (0, "decomposition")
        excess = (t - 1) / t * tc.atb(KINDS, report, sample_weight=share)
        assert found.value == pytest.approx(brier / t + excess)
        assert (excess == 0) == (calibrated or t == 1)
