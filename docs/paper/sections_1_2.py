"""Sections 1 and 2 of the paper: introduction and preliminaries."""

import numpy as np

import truthcal as tc
from paper.items import Numbers, Section, at_least, at_most, equal

INTRODUCTION = Section("1 Introduction")
PRELIMINARIES = Section("2 Preliminaries")


@INTRODUCTION.item(
    "Example 1.1",
    "ECE is not truthful",
    "true probabilities uniform on [1/3, 2/3]: the truth has ECE >= 1/3, the constant 1/2 has O(1/sqrt T)",
    uses="`unbinned_ece`, `expected_score`",
    test="test_example_1_1",
    sharper="the factor is sqrt(2 E[p(1 - p)] / pi) = 0.391 in the limit, for evenly spaced true probabilities; 0.399 "
    "if they are drawn at random",
    accepted={
        "truth: smallest ECE over all outcomes": at_least(1 / 3, ">= 1/3"),
        "constant 1/2: E[ECE] sqrt(T), T = 100": equal(0.3915, 0.03, "O(1)"),
        "constant 1/2: E[ECE] sqrt(T), T = 10,000": equal(0.3915, 0.03, "O(1)"),
        "constant 0.55: E[ECE], T = 10,000": at_most(1 / 3, "less than the truth"),
    },
)
def example_1_1() -> Numbers:
    """All outcomes of 9 events for the truth; 1,000 random ones for constants."""
    few, some, many = (np.linspace(1 / 3, 2 / 3, t) for t in (9, 100, 10_000))
    return {
        "truth: smallest ECE over all outcomes": tc.expected_score(few, few, "unbinned_ece").values.min(),
        "constant 1/2: E[ECE] sqrt(T), T = 100": 10 * tc.expected_score(some * 0 + 0.5, some, "unbinned_ece").value,
        "constant 1/2: E[ECE] sqrt(T), T = 10,000": 100 * tc.expected_score(many * 0 + 0.5, many, "unbinned_ece").value,
        "constant 0.55: E[ECE], T = 10,000": tc.expected_score(many * 0 + 0.55, many, "unbinned_ece").value,
    }


@INTRODUCTION.item(
    "Definition 1.2",
    "Averaged two-bin calibration error",
    "ATB(r, y) = E_q (1/T^2) [(sum of r - y over r < q)^2 + (sum of r - y over r >= q)^2], q uniform on [0, 1]",
    uses="`atb`",
    test="test_definition_1_2, measures/test_atb.py",
    sharper="a sum over pairs of rows, {F1}",
    accepted={"atb": equal(0.158 / 9), "average over 10,000 thresholds": equal(0.158 / 9, 1e-6)},
)
def definition_1_2() -> Numbers:
    """Three rows: the function, and the definition on a grid of thresholds."""
    y, r = np.array([0, 1, 1]), np.array([0.2, 0.9, 0.6])
    total = [np.sum((r - y)[r < q]) ** 2 + np.sum((r - y)[r >= q]) ** 2 for q in (np.arange(10_000) + 0.5) / 10_000]
    return {"atb": tc.atb(y, r), "average over 10,000 thresholds": np.mean(total) / 9}


INTRODUCTION.same_as(
    "Lemma 3.3",
    "Lemma 1.3",
    "Error decomposition, informal",
    "expected empirical UBSE = UBSE on the true distribution + variance of the mean outcome",
    uses="`expected_ubse`, `expected_score`",
    test="test_lemma_3_3",
    sharper="with weights: {F2}",
)
INTRODUCTION.same_as(
    "Theorem 5.1",
    "Theorem 1.4",
    "Linear-time test, informal",
    "ATB tells calibrated predictors from those with smCal >= C/sqrt T, and no test can do better",
    uses="`linear_time_test`, `validity`, `best_possible_gap`",
    test="test_theorem_5_1",
    sharper="explicit C, see Lemma 5.3",
)


@INTRODUCTION.item(
    "Definition 1.5",
    "l1 variant of ATB",
    "ATB_l1(r, y): the same with absolute values instead of squares, and 1/T",
    uses="`atb_l1`",
    test="test_definition_1_2, measures/test_atb.py",
    accepted={"atb_l1": equal(0.46 / 3), "average over 10,000 thresholds": equal(0.46 / 3, 1e-5)},
)
def definition_1_5() -> Numbers:
    """Three rows: the function, and the definition on a grid of thresholds."""
    y, r = np.array([0, 1, 1]), np.array([0.2, 0.9, 0.6])
    total = [abs(np.sum((r - y)[r < q])) + abs(np.sum((r - y)[r >= q])) for q in (np.arange(10_000) + 0.5) / 10_000]
    return {"atb_l1": tc.atb_l1(y, r), "average over 10,000 thresholds": np.mean(total) / 3}


INTRODUCTION.same_as(
    "Corollary 4.5",
    "Theorem 1.6",
    "ATB_l1 is a constant-factor approximation, informal",
    "distCal/3 <= ATB_l1 <= 3 distCal and (2/3) smCal <= ATB_l1 <= 6 smCal",
    uses="`distcal_bracket`",
    test="test_corollary_4_5",
    sharper="distCal <= ATB_l1 ({F23}), ATB_l1 <= 2 smCal ({F20})",
)


@INTRODUCTION.item(
    "Figure 1",
    "A weight function as a mixture of threshold functions",
    "w(r) = E[sign(w(r) - lambda)] for lambda uniform on [-1, 1]",
    uses="`smcal_witness`",
    test="measures/test_smooth.py",
    sharper="the w that attains smCal, in O(n log n): {F15}",
    accepted={
        "E[(v - y) w(v)]": equal(0.076875),
        "smcal": equal(0.076875),
        "largest abs(w - mixture of 20,000 thresholds)": at_most(1e-4),
    },
)
def figure_1() -> Numbers:
    """The optimal weight function w of four kinds of events, and the mean of its threshold functions."""
    v, truth = np.array([0.1, 0.35, 0.6, 0.9]), np.array([0.3, 0.4, 0.5, 0.6])
    w = tc.smcal_witness(truth, v)
    r, steps = np.linspace(0, 1, 101), (np.arange(20_000) + 0.5) / 10_000 - 1
    mixture = np.array([np.mean(np.sign(value - steps)) for value in w(r)])
    return {
        "E[(v - y) w(v)]": np.mean((v - truth) * w(v)),
        "smcal": tc.smcal(truth, v),
        "largest abs(w - mixture of 20,000 thresholds)": np.max(np.abs(w(r) - mixture)),
    }


@INTRODUCTION.item(
    "Section 1.5",
    "Truthfulness and monotonicity (no number)",
    "states 0, 1, 0, 1, ...: the reports 50% and 0/1 are calibrated, 25%/75% between them is not",
    uses="`atb`, `smcal`, `distcal`",
    test="test_section_1_5",
    sharper="closed form along the path: ATB = m (1 - m)^2 / 8 for a share m of the way",
    accepted={
        "ATB at 50%": equal(0, paper="vanishes"),
        "ATB at 25%/75%": equal(1 / 64, paper="high"),
        "ATB at 0/1": equal(0, paper="vanishes"),
        "smCal at 25%/75%": equal(1 / 16, paper="high"),
        "distCal at 25%/75%": equal(1 / 8, 1e-5, paper="high"),
    },
)
def section_1_5() -> Numbers:
    """Ten states, and reports that move from 1/2 to the states."""
    y = np.arange(10) % 2
    half, between = np.full(10, 0.5), (0.5 + y) / 2
    return {
        "ATB at 50%": tc.atb(y, half),
        "ATB at 25%/75%": tc.atb(y, between),
        "ATB at 0/1": tc.atb(y, y),
        "smCal at 25%/75%": tc.smcal(y, between),
        "distCal at 25%/75%": tc.distcal(y, between),
    }


@INTRODUCTION.item(
    "Figure 2",
    "Order sensitivity",
    "a truthful error of one state falls along the segment from the report to the state",
    uses="`atb`",
    test="test_section_1_5",
    sharper="",
    accepted={
        "one state: largest step of ATB": at_most(0, "decreasing"),
        "many states: largest ATB on the way from 50% to 0/1": equal(1 / 54, 1e-5),
        "many states: share of the way there": equal(1 / 3, 1e-3),
    },
)
def figure_2() -> Numbers:
    """ATB along the segment from the report 1/2 to the states, for one state and for 0, 1, 0, 1, ..."""
    move, y = np.linspace(0, 1, 1001), np.arange(10) % 2
    one = [tc.atb([1], [0.5 + m / 2]) for m in move]
    many = [tc.atb(y, 0.5 + m * (y - 0.5)) for m in move]
    return {
        "one state: largest step of ATB": np.max(np.diff(one)),
        "many states: largest ATB on the way from 50% to 0/1": max(many),
        "many states: share of the way there": move[np.argmax(many)],
    }


@PRELIMINARIES.item(
    "Definition 2.1",
    "Calibration",
    "a predictor r is calibrated if E[y given r(x)] = r(x)",
    uses="`unbinned_ece(truth, report) == 0`: fractional outcomes are true probabilities",
    test="test_claim_2_7",
    accepted={"the truth": equal(0), "its average": equal(0), "a lie": equal(0.1)},
)
def definition_2_1() -> Numbers:
    """Two equally frequent kinds of events with true probabilities 0.25 and 0.75."""
    truth = [0.25, 0.75]
    reports = {"the truth": [0.25, 0.75], "its average": [0.5, 0.5], "a lie": [0.35, 0.65]}
    return {name: tc.unbinned_ece(truth, report) for name, report in reports.items()}


@PRELIMINARIES.item(
    "Definition 2.2",
    "Calibration of prediction-state distributions",
    "J is calibrated if E_J[y given v] = v",
    uses="`unbinned_ece(..., sample_weight=shares)`",
    test="test_claim_2_7",
    accepted={"calibrated": equal(0), "not calibrated": equal(0.075)},
)
def definition_2_2() -> Numbers:
    """Predictions 0.2 and 0.5 with shares 1/4 and 3/4; two kinds of events share the prediction 0.5."""
    right = tc.unbinned_ece([0.2, 0.3, 0.6], [0.2, 0.5, 0.5], sample_weight=[3, 3, 6])
    wrong = tc.unbinned_ece([0.2, 0.2, 0.5], [0.2, 0.5, 0.5], sample_weight=[3, 3, 6])
    return {"calibrated": right, "not calibrated": wrong}


@PRELIMINARIES.item(
    "Definition 2.3",
    "Expected calibration error (ECE, l_alpha-ECE)",
    "E abs(v - E[y given v])^alpha, without a root",
    uses="`unbinned_ece(alpha=)`",
    test="test_definition_2_3, measures/test_binned.py",
    accepted={f"alpha = {a}": equal(0.25 * 0.1**a + 0.75 * 0.2**a) for a in (1, 2, 3.5)},
)
def definition_2_3() -> Numbers:
    """Errors of 0.1 and 0.2 with shares 1/4 and 3/4."""
    data = {"y_true": [0.1, 0.7], "y_proba": [0.2, 0.5], "sample_weight": [1, 3]}
    return {f"alpha = {alpha}": tc.unbinned_ece(**data, alpha=alpha) for alpha in (1, 2, 3.5)}


@PRELIMINARIES.item(
    "Definition 2.4",
    "(Lower) distance to calibration",
    "inf of E abs(u - v) over couplings of (u, v, y) with (u, y) calibrated",
    uses="`distcal`, `distcal_bounds`",
    test="measures/test_distcal.py",
    sharper="certified bounds, {M5}",
    accepted={"distCal": equal(0.125, 1e-5, "> 0 (Table 1)"), "width of the certified bounds": at_most(1e-4)},
)
def definition_2_4() -> Numbers:
    """Predictions 25% and 75% with states 0 and 1."""
    bounds = tc.distcal_bounds([0, 1], [0.25, 0.75])
    return {"distCal": tc.distcal([0, 1], [0.25, 0.75]), "width of the certified bounds": bounds.high - bounds.low}


@PRELIMINARIES.item(
    "Definition 2.5",
    "Smooth calibration error",
    "sup of E[(v - y) w(v)] over 1-Lipschitz w with values in [-1, 1]",
    uses="`smcal`, `smcal_witness`",
    test="measures/test_smooth.py",
    sharper="= abs(bias) + L1 distance to a monotone curve, {F14}",
    accepted={"smCal": equal(0.0625, paper="0.0625 (Table 1)"), "E[(v - y) w(v)]": equal(0.0625)},
)
def definition_2_5() -> Numbers:
    """Predictions 25% and 75% with states 0 and 1; w attains the supremum."""
    y, r = np.array([0, 1]), np.array([0.25, 0.75])
    return {"smCal": tc.smcal(y, r), "E[(v - y) w(v)]": np.mean((r - y) * tc.smcal_witness(y, r)(r))}


@PRELIMINARIES.item(
    "Proposition 2.6",
    "smCal and distCal",
    "distCal/2 <= smCal <= 2 distCal",
    uses="`smcal`, `distcal`",
    test="test_proposition_2_6, test_inequalities.py",
    sharper="distCal <= 2 smCal - abs(bias), {F24}; both constants are best possible, {F22}",
    accepted={
        "smallest smCal / distCal": equal(0.5, 1e-3, ">= 1/2"),
        "largest smCal / distCal": equal(1.99, 1e-3, "<= 2"),
        "smallest (2 smCal - abs(bias)) / distCal": at_least(1 - 1e-3),
    },
)
def proposition_2_6() -> Numbers:
    """Two extreme samples (in the second, one of 100 events happens, predicted 0), and 200 random ones of five rows."""
    rng = np.random.default_rng(0)
    data = [(np.array([0, 1]), np.array([0.25, 0.75])), (np.eye(100)[0], np.append(0, np.full(99, 0.01)))]
    data += [(rng.integers(0, 2, 5), rng.integers(1, 20, 5) / 20) for _ in range(200)]
    smooth = np.array([tc.smcal(y, r) for y, r in data])
    distance = np.array([tc.distcal_bounds(y, r, tolerance=1e-8).value for y, r in data])
    bias = [abs(np.mean(r - y)) for y, r in data]
    ratio = smooth / distance
    return {
        "smallest smCal / distCal": ratio.min(),
        "largest smCal / distCal": ratio.max(),
        "smallest (2 smCal - abs(bias)) / distCal": np.min((2 * smooth - bias) / distance),
    }


@PRELIMINARIES.item(
    "Claim 2.7",
    "Zero exactly for calibrated distributions",
    "ECE, smCal and distCal are >= 0, and 0 if and only if J is calibrated",
    uses="`unbinned_ece`, `smcal`, `distcal`",
    test="test_claim_2_7",
    sharper="likewise ATB and ATB_l1, {F21}",
    accepted={
        "calibrated: largest of five measures": equal(0, paper="0"),
        "not calibrated, without bias: smallest of five": at_least(1e-5, "> 0"),
    },
)
def claim_2_7() -> Numbers:
    """Three predictions; the miscalibrated truth is right on average."""
    v, wrong, share = [0.2, 0.5, 0.9], [0.3, 0.45, 0.9], [1, 2, 3]
    measures = (tc.unbinned_ece, tc.smcal, tc.distcal, tc.atb, tc.atb_l1)
    return {
        "calibrated: largest of five measures": max(f(v, v, sample_weight=share) for f in measures),
        "not calibrated, without bias: smallest of five": min(f(wrong, v, sample_weight=share) for f in measures),
    }


@PRELIMINARIES.item(
    "Definition 2.8",
    "Completeness",
    "E[CAL(J_S)] goes to 0 for samples S from a calibrated J",
    uses="`expected_score(n_rows=T)`, `MEASURES[name].complete`",
    test="test_definitions_2_8_and_2_9, test_common.py",
    sharper="every UBSE: at most 1/(4T), {F3}",
    accepted={
        "E[ATB], T = 30": equal(0.225 / 30),
        "E[ATB], T = 3,000": equal(0.225 / 3000),
        "E[smCal], T = 30": equal(0.072, 0.01),
        "E[smCal], T = 3,000": equal(0.0072, 0.001),
    },
)
def definition_2_8() -> Numbers:
    """Two equally frequent kinds of events, predicted by their true probabilities."""
    truth = [0.3, 0.6]
    return {
        f"E[{name}], T = {t:,}": tc.expected_score(truth, truth, name.lower(), n_rows=t).value
        for name in ("ATB", "smCal")
        for t in (30, 3000)
    }


@PRELIMINARIES.item(
    "Definition 2.9",
    "Soundness",
    "liminf E[CAL(J_S)] > 0 for samples S from a miscalibrated J",
    uses="`expected_score(n_rows=T)`, `MEASURES[name].sound`",
    test="test_definitions_2_8_and_2_9, test_common.py",
    sharper="E[ATB] = (1 - 1/T) ATB(J) + Brier(J)/T, {F4}",
    accepted={
        "E[ATB], T = 30": at_least(0.0135),
        "E[ATB], T = 3,000": at_least(0.0135),
        "ATB(J)": equal(0.0135, paper="> 0"),
    },
)
def definition_2_9() -> Numbers:
    """True probabilities 0.6 and 0.3, predicted as 0.3 and 0.6: right on average."""
    truth, report = [0.6, 0.3], [0.3, 0.6]
    expected = {f"E[ATB], T = {t:,}": tc.expected_score(report, truth, "atb", n_rows=t).value for t in (30, 3000)}
    return {**expected, "ATB(J)": tc.atb(truth, report)}


@PRELIMINARIES.item(
    "Definition 2.10",
    "Binned ECE",
    "sum over bins of Pr[v in bin] abs(E[v - y given the bin])^alpha, for any partition and alpha >= 1",
    uses="`binned_ece(strategy=, alpha=)`, `ece`",
    test="test_definition_2_10, measures/test_binned.py",
    accepted={f"alpha = {a}": equal(0.5 * 0.05**a + 0.5 * 0.1**a) for a in (1, 2, 3)},
)
def definition_2_10() -> Numbers:
    """Two bins cut at 0.6, whose errors are 0.05 and 0.1."""
    truth, v, share = [0.1, 0.7, 0.8], [0.2, 0.5, 0.9], [1, 1, 2]
    bins = tc.FixedBins([0.6])
    return {
        f"alpha = {alpha}": tc.binned_ece(truth, v, strategy=bins, alpha=alpha, sample_weight=share)
        for alpha in (1, 2, 3)
    }


@PRELIMINARIES.item(
    "Remark 2.11",
    "Comparison to Haghtalab et al. (2024)",
    "(E r - E y)^2 + Pr[r is 0 or 1, r != y] meets their soundness and is far from a calibration error",
    uses="`expected_score` with an own function",
    test="test_remark_2_11",
    accepted={
        "that error, T = 400, reports 25%/75% for truths 75%/25%": equal(0.4375 / 400, 2e-4, "vanishes"),
        "smCal of these reports": equal(0.125, paper="does not"),
        "ATB of these reports": equal(0.0625, paper="does not"),
    },
)
def remark_2_11() -> Numbers:
    """Reports that are as wrong as they can be, except on average."""

    def own_error(y: np.ndarray, r: np.ndarray) -> float:
        return float((np.mean(r) - np.mean(y)) ** 2 + np.mean(np.isin(r, [0, 1]) & (r != y)))

    lie, truth = [0.25, 0.75], [0.75, 0.25]
    name = "that error, T = 400, reports 25%/75% for truths 75%/25%"
    return {
        name: tc.expected_score(lie, truth, own_error, n_rows=400, n_resamples=1000).value,
        "smCal of these reports": tc.smcal(truth, lie),
        "ATB of these reports": tc.atb(truth, lie),
    }
