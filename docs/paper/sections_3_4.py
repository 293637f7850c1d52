"""Sections 3 and 4 of the paper: UBSE and ATB."""

import itertools
import math

import numpy as np

import truthcal as tc
from paper.items import Numbers, Section, at_least, at_most, equal

UBSE = Section("3 Truthful family: unnormalized binned squared errors")
ATB = Section("4 Calibration errors with two bins")


@UBSE.item(
    "Definition 3.1",
    "Unnormalized binned squared errors",
    "E over random partitions, which depend on r only, of the sum over bins of ((1/T) sum of r - p)^2",
    uses="`ubse`, `RandomThreshold`, `ShiftedGrid`, `QuantileBins`, `FixedBins`, `Multiscale`",
    test="test_definition_3_1, measures/test_ubse.py",
    sharper="a sum over pairs; all members are complete, shifted grids and multiscale ATB sound: {F8}, {F9}",
    accepted={
        "one bin": equal(0),
        "each row its own bin": equal(0.3 / 16),
        "two bins cut at 0.5": equal(0.5 / 16),
        "cut at a random threshold": equal(0.164 / 16),
        "atb": equal(0.164 / 16),
    },
)
def definition_3_1() -> Numbers:
    """Four rows without bias."""
    y, r = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    return {
        "one bin": tc.ubse(y, r, lambda r: np.zeros(4)),
        "each row its own bin": tc.ubse(y, r, lambda r: np.arange(4)),
        "two bins cut at 0.5": tc.ubse(y, r, tc.FixedBins([0.5])),
        "cut at a random threshold": tc.ubse(y, r, tc.RandomThreshold()),
        "atb": tc.atb(y, r),
    }


@UBSE.item(
    "Theorem 3.2",
    "UBSEs are interim truthful",
    "no report has a smaller expected UBSE than the truth",
    uses="`expected_ubse`, `audit`, `MEASURES[name].truthful`",
    test="test_lemma_3_3, measures/test_ubse.py",
    sharper="also for every positive semidefinite kernel with constant diagonal: {F2}",
    accepted={
        f"{name}: smallest E UBSE(r, y) - E UBSE(p, y)": equal(0, 1e-12, ">= 0")
        for name in ("random threshold", "shifted grid 0.3", "quantile bins", "bins cut at 0.4")
    },
)
def theorem_3_2() -> Numbers:
    """Two events and 441 reports, for four ways to choose bins."""
    truth, levels = [0.3, 0.6], np.linspace(0, 1, 21)
    binnings = {
        "random threshold": tc.RandomThreshold(),
        "shifted grid 0.3": tc.ShiftedGrid(0.3),
        "quantile bins": tc.QuantileBins(2),
        "bins cut at 0.4": tc.FixedBins([0.4]),
    }
    return {
        f"{name}: smallest E UBSE(r, y) - E UBSE(p, y)": min(
            tc.expected_ubse(report, truth, binning) - tc.expected_ubse(truth, truth, binning)
            for report in itertools.product(levels, repeat=2)
        )
        for name, binning in binnings.items()
    }


@UBSE.item(
    "Lemma 3.3",
    "Error decomposition",
    "E_(y~p) UBSE(r, y) = UBSE(r, p) + (1/T^2) sum of p(1 - p)",
    uses="`expected_ubse`, `expected_score`",
    test="test_lemma_3_3, measures/test_atb.py",
    sharper="with weights: {F2}",
    accepted={
        "mean over all 16 outcomes": equal(0.0524375),
        "UBSE(r, p) + noise": equal(0.0524375),
        "expected_ubse": equal(0.0524375),
    },
)
def lemma_3_3() -> Numbers:
    """Four events, the report 0.2, 0.2, 0.2, 0.9, and ATB's random threshold."""
    p, r, binning = np.array([0.1, 0.35, 0.5, 0.8]), [0.2, 0.2, 0.2, 0.9], tc.RandomThreshold()
    outcomes = [np.array(y) for y in itertools.product([0, 1], repeat=4)]
    return {
        "mean over all 16 outcomes": sum(np.prod(np.where(y, p, 1 - p)) * tc.ubse(y, r, binning) for y in outcomes),
        "UBSE(r, p) + noise": tc.ubse(p, r, binning) + np.sum(p * (1 - p)) / 16,
        "expected_ubse": tc.expected_ubse(r, p, binning),
    }


@UBSE.item(
    "Example 3.4",
    "Quantile-binned l2-ECE is truthful",
    "k = T^(1/3) bins of equal count, ties broken at random; truthful, complete, and sound",
    uses="`quantile_ece`, `QuantileBins`",
    test="test_example_3_4",
    sharper="sound with the factor k of section 1.4.1, and not without it: {F10}",
    accepted={
        "quantile_ece": equal(0.06779056, 1e-8),
        "l2-ECE in 3 bins of 9 rows": equal(0.06779056, 1e-8),
        "3 times the UBSE of these bins": equal(0.06779056, 1e-8),
        "gain of the best lie found": at_most(0, "<= 0"),
    },
)
def example_3_4() -> Numbers:
    """27 rows in 3 bins; an audit of four events."""
    y, r, bins = np.arange(27) % 2, np.linspace(0.05, 0.95, 27), np.repeat([0, 1, 2], 9)
    return {
        "quantile_ece": tc.quantile_ece(y, r),
        "l2-ECE in 3 bins of 9 rows": np.mean([np.mean((r - y)[bins == k]) ** 2 for k in range(3)]),
        "3 times the UBSE of these bins": 3 * tc.ubse(y, r, lambda r: bins),
        "gain of the best lie found": tc.audit([0.2, 0.5, 0.6, 0.9], ["quantile_ece"])["quantile_ece"].gain,
    }


@UBSE.item(
    "Theorem 3.5",
    "Strict ex-ante truthfulness",
    "the truth is the only minimiser of the expected UBSE of T independent rows",
    uses='`expected_score(n_rows=T)`, `audit(stage="ex_ante")`',
    test="test_theorem_3_5",
    accepted={
        f"{name}: smallest E UBSE(r) - E UBSE(p)": at_least(1e-6, "> 0")
        for name in ("atb", "shifted_grid_ubse", "multiscale_atb")
    },
)
def theorem_3_5() -> Numbers:
    """Three equally frequent kinds of events, samples of three rows, and five lies, of which two are calibrated."""
    truth = [0.1, 0.3, 0.8]
    lies = [[0.1, 0.3, 0.81], [0.2, 0.2, 0.8], [0.4, 0.4, 0.4], [0.3, 0.1, 0.8], [0.15, 0.3, 0.7]]
    smallest = {}
    for name in ("atb", "shifted_grid_ubse", "multiscale_atb"):
        honest = tc.expected_score(truth, truth, name, n_rows=3).value
        others = [tc.expected_score(lie, truth, name, n_rows=3).value for lie in lies]
        smallest[f"{name}: smallest E UBSE(r) - E UBSE(p)"] = min(others) - honest
    return smallest


@UBSE.item(
    "Lemma 3.6",
    "UBSE and Brier loss",
    "E UBSE(vhat, y) = E(vhat - y)^2 / T, and E UBSE(v, y) >= that + E(v - vhat)^2 / T^2",
    uses='`expected_score(n_rows=T)`, `audit(stage="ex_ante")`',
    test="test_lemma_3_6",
    sharper="ATB: Lemma B.1",
    accepted={
        "T E UBSE(vhat, y), multiscale ATB": equal(0.16),
        "E(vhat - y)^2": equal(0.16),
        "T^2 (E UBSE(v, y) - E UBSE(vhat, y)) / E(v - vhat)^2": at_least(1, ">= 1"),
    },
)
def lemma_3_6() -> Numbers:
    """Kinds 0.1, 0.3 and 0.8, predicted 0.4, 0.4 and 0.8, so vhat = 0.2, 0.2 and 0.8; T = 3."""
    truth, v, vhat = [0.1, 0.3, 0.8], np.array([0.4, 0.4, 0.8]), np.array([0.2, 0.2, 0.8])
    raw, recalibrated = (tc.expected_score(r, truth, "multiscale_atb", n_rows=3).value for r in (v, vhat))
    return {
        "T E UBSE(vhat, y), multiscale ATB": 3 * recalibrated,
        "E(vhat - y)^2": tc.expected_score(vhat, truth, "brier").value,
        "T^2 (E UBSE(v, y) - E UBSE(vhat, y)) / E(v - vhat)^2": 9 * (raw - recalibrated) / np.mean((v - vhat) ** 2),
    }


@ATB.item(
    "Definition 4.1",
    "ATB and ATB_l1 of a distribution",
    "E_q of the squared (absolute) biases E[(v - y) 1(v < q)] and E[(v - y) 1(v >= q)]",
    uses="`atb`, `atb_l1` with true probabilities as outcomes and shares as `sample_weight`",
    test="test_definition_4_1, measures/test_atb.py",
    accepted={"ATB(J)": equal(0.017875), "ATB_l1(J)": equal(0.14)},
)
def definition_4_1() -> Numbers:
    """Predictions 0.2 and 0.5 with true probabilities 0.1 and 0.7 and shares 1/4 and 3/4."""
    J = {"y_true": [0.1, 0.7], "y_proba": [0.2, 0.5], "sample_weight": [0.25, 0.75]}
    return {"ATB(J)": tc.atb(**J), "ATB_l1(J)": tc.atb_l1(**J)}


@ATB.item(
    "Lemma 4.2",
    "ATB and ATB_l1",
    "ATB_l1^2 / 2 <= ATB <= ATB_l1",
    uses="`atb`, `atb_l1`",
    test="test_corollary_4_5, measures/test_atb.py",
    sharper="{F5}; both constants are attained",
    accepted={"smallest ATB / ATB_l1^2": equal(0.5, 1e-9, ">= 1/2"), "largest ATB / ATB_l1": equal(1, 1e-9, "<= 1")},
)
def lemma_4_2() -> Numbers:
    """1,000 random samples of five rows, and two extreme ones."""
    rng = np.random.default_rng(0)
    data = [(rng.integers(0, 2, 5), rng.integers(0, 21, 5) / 20) for _ in range(1000)]
    data += [([1, 0], [0.0, 1.0]), ([0, 0], [1.0, 1.0])]
    pairs = [(tc.atb(y, r), tc.atb_l1(y, r)) for y, r in data]
    return {
        "smallest ATB / ATB_l1^2": min(square / l1**2 for square, l1 in pairs if l1),
        "largest ATB / ATB_l1": max(square / l1 for square, l1 in pairs if l1),
    }


@ATB.item(
    "Theorem 4.3",
    "ATB and ATB_l1 are complete and sound",
    "E CAL(J_S) goes to 0 for calibrated J, and not for others",
    uses="`MEASURES[name].complete`, `.sound`, `expected_score(n_rows=T)`",
    test="test_definitions_2_8_and_2_9, test_common.py",
    sharper="ATB: calibrated J have at most 1/(4T), {F3}",
    accepted={
        "calibrated: E[ATB_l1], T = 30": equal(0.077, 0.005),
        "calibrated: E[ATB_l1], T = 3,000": equal(0.0077, 0.0005, "-> 0"),
        "miscalibrated: E[ATB_l1], T = 30": at_least(0.09),
        "miscalibrated: E[ATB_l1], T = 3,000": at_least(0.09, "> 0"),
    },
)
def theorem_4_3() -> Numbers:
    """Two kinds of events with true probabilities 0.3 and 0.6, predicted right and exchanged. (ATB: Definition 2.8.)"""
    truth = [0.3, 0.6]
    return {
        f"{name}: E[ATB_l1], T = {t:,}": tc.expected_score(report, truth, "atb_l1", n_rows=t).value
        for name, report in (("calibrated", [0.3, 0.6]), ("miscalibrated", [0.6, 0.3]))
        for t in (30, 3000)
    }


@ATB.item(
    "Theorem 4.4",
    "ATB_l1 against smCal and distCal",
    "(2/3) smCal <= ATB_l1 <= 3 distCal",
    uses="`atb_l1`, `smcal`, `distcal`, `distcal_bracket`",
    test="test_corollary_4_5",
    sharper="distCal <= ATB_l1, {F23}; ATB_l1 <= 2 smCal - abs(bias), {F20}",
    accepted={
        "smallest ATB_l1 / smCal": at_least(2 / 3, ">= 2/3"),
        "largest ATB_l1 / smCal": equal(2, 1e-6, "<= 6"),
        "smallest ATB_l1 / distCal": equal(1, 1e-3, ">= 1/3"),
        "largest ATB_l1 / distCal": at_most(3, "<= 3"),
    },
)
def theorem_4_4() -> Numbers:
    """300 random samples of four rows, and one with states 0, 1 and reports 25%, 75%."""
    rng = np.random.default_rng(0)
    data = [([0, 1], [0.25, 0.75])] + [(rng.integers(0, 2, 4), rng.integers(1, 20, 4) / 20) for _ in range(300)]
    l1, smooth, distance = (np.array([f(y, r) for y, r in data]) for f in (tc.atb_l1, tc.smcal, tc.distcal))
    return {
        "smallest ATB_l1 / smCal": np.min(l1 / smooth),
        "largest ATB_l1 / smCal": np.max(l1 / smooth),
        "smallest ATB_l1 / distCal": np.min(l1 / distance),
        "largest ATB_l1 / distCal": np.max(l1 / distance),
    }


@ATB.item(
    "Corollary 4.5",
    "All relations",
    "distCal/3 <= (2/3) smCal <= ATB_l1 <= 3 distCal <= 6 smCal; "
    "distCal^2/18 <= (2/9) smCal^2 <= ATB <= 3 distCal <= 6 smCal",
    uses="`distcal_bracket`",
    test="test_corollary_4_5, test_inequalities.py, test_constants.py",
    sharper="distCal^2 <= 2 ATB ({F24}) for 18; smCal^2 <= (5/2) ATB for 9/2, ATB <= smCal for 6 ({F21}); "
    "ATB_l1 <= 2 smCal for 6 ({F20}); worst ratios found: below",
    accepted={
        "distCal / ATB_l1": equal(1, 1e-3, "<= 3"),
        "distCal^2 / ATB": equal(1.92, 1e-2, "<= 18"),
        "smCal^2 / ATB": equal(2.47, 2e-2, "<= 9/2"),
        "ATB_l1 / smCal": equal(2, 1e-3, "<= 6"),
        "ATB / smCal": equal(1, 1e-9, "<= 6"),
    },
)
def corollary_4_5() -> Numbers:
    """Populations that come close to the sharper constants 1, 2, 5/2, 2 and 1, which therefore are best possible."""
    steep = {"y_true": [0, 1], "y_proba": [0.02, 0.98]}
    three = {"y_true": [0.01 - 9e-3, 0.5 + 6e-3, 1 - 9e-3], "y_proba": [0.01, 0.5, 1]}
    certain = {"y_true": [0], "y_proba": [1.0]}
    return {
        "distCal / ATB_l1": tc.distcal(**steep) / tc.atb_l1(**steep),
        "distCal^2 / ATB": tc.distcal(**steep) ** 2 / tc.atb(**steep),
        "smCal^2 / ATB": tc.smcal(**three) ** 2 / tc.atb(**three),
        "ATB_l1 / smCal": tc.atb_l1(**steep) / tc.smcal(**steep),
        "ATB / smCal": tc.atb(**certain) / tc.smcal(**certain),
    }


@ATB.item(
    "Lemma 4.6",
    "Upper bound of ATB_l1",
    "ATB_l1 <= 3 distCal",
    uses="`atb_l1`, `distcal`",
    test="test_corollary_4_5, test_constants.py",
    sharper="3 is best possible: {F22}",
    accepted={
        "ATB_l1 / distCal, x = 0.1": equal(2.8, 1e-3, "<= 3"),
        "ATB_l1 / distCal, x = 0.01": equal(2.98, 1e-3, "<= 3"),
    },
)
def lemma_4_6() -> Numbers:
    """A share x of events that happen is predicted 0; the others, which do not happen, are predicted x."""
    ratios = {}
    for x in (0.1, 0.01):
        J = {"y_true": [1, 0], "y_proba": [0, x], "sample_weight": [x, 1 - x]}
        ratios[f"ATB_l1 / distCal, x = {x}"] = tc.atb_l1(**J) / tc.distcal_bounds(**J, tolerance=1e-8).value
    return ratios


@ATB.item(
    "Lemma 4.7",
    "Upper bound of smCal",
    "smCal <= (3/2) ATB_l1",
    uses="`smcal`, `atb_l1`",
    test="test_corollary_4_5, test_inequalities.py",
    sharper="smCal <= abs(bias) + ATB_l1/2, {F20}; 3/2 is best possible",
    accepted={
        "smCal / ATB_l1, x = 0.1": equal(1.4, 1e-6, "<= 3/2"),
        "smCal / ATB_l1, x = 0.001": equal(1.499, 1e-6, "<= 3/2"),
    },
)
def lemma_4_7() -> Numbers:
    """Predictions x, 1/2 and 1 with biases s, -s and s."""
    ratios = {}
    for x in (0.1, 0.001):
        v, truth = [x, 0.5, 1], [0, 0.5 + x, 1 - x]
        ratios[f"smCal / ATB_l1, x = {x}"] = tc.smcal(truth, v) / tc.atb_l1(truth, v)
    return ratios


@ATB.item(
    "Theorem 4.8",
    "Truthfulness of ATB",
    "interim truthful with the decomposition of Lemma 3.3, and strictly ex-ante truthful",
    uses="`expected_score`, `audit`",
    test="test_theorem_4_8",
    sharper="{F2}, with weights",
    accepted={
        "E ATB(r, y), 20,000 draws": equal(0.02841, 2e-4),
        "ATB(r, p) + noise": equal(0.02841, 2e-4),
        "expected_score": equal(0.02841, 2e-4),
        "gain of the best lie found, ex ante": at_most(0, "none"),
    },
)
def theorem_4_8() -> Numbers:
    """Forty events whose squared probabilities are reported."""
    p, rng = np.linspace(0.05, 0.95, 40), np.random.default_rng(0)
    draws = (rng.random((20_000, 40)) < p).astype(int)
    return {
        "E ATB(r, y), 20,000 draws": np.mean([tc.atb(y, p**2) for y in draws]),
        "ATB(r, p) + noise": tc.atb(p, p**2) + np.sum(p * (1 - p)) / 1600,
        "expected_score": tc.expected_score(p**2, p, "atb").value,
        "gain of the best lie found, ex ante": tc.audit([0.3, 0.6], ["atb"], stage="ex_ante", n_rows=5)["atb"].gain,
    }


@ATB.item(
    "Theorem 4.9",
    "Continuity",
    "moving predictions by delta on average moves ATB_l1 by at most 3 delta and ATB by at most 6 delta",
    uses="`atb`, `atb_l1`",
    test="test_theorem_4_9, test_constants.py",
    sharper="4 instead of 6 for ATB; 3 and 4 are best possible: {F6}",
    accepted={
        "ATB: change / delta, T = 10": equal(3.8, 1e-4, "<= 6"),
        "ATB: change / delta, T = 1,000": equal(3.998, 1e-4, "<= 6"),
        "ATB_l1: change / delta": equal(2.998, 1e-6, "<= 3"),
        "largest ATB change / delta, 1,000 random pairs": at_most(4, "<= 6"),
    },
)
def theorem_4_9() -> Numbers:
    """One of T predictions of 1, whose outcomes are 0, is lowered; 0.001, 0.999 instead of 0, 1; random pairs."""

    def lowered(t: int, x: float = 1e-6) -> float:
        y, before, after = np.zeros(t), np.ones(t), np.append(np.ones(t - 1), 1 - x)
        return (tc.atb(y, before) - tc.atb(y, after)) / (x / t)

    rng = np.random.default_rng(0)
    pairs = [(rng.integers(0, 2, 5), rng.random(5), rng.random(5)) for _ in range(1000)]
    return {
        "ATB: change / delta, T = 10": lowered(10),
        "ATB: change / delta, T = 1,000": lowered(1000),
        "ATB_l1: change / delta": (tc.atb_l1([1, 0], [0, 1]) - tc.atb_l1([1, 0], [0.001, 0.999])) / 0.001,
        "largest ATB change / delta, 1,000 random pairs": max(
            abs(tc.atb(y, a) - tc.atb(y, b)) / np.mean(np.abs(a - b)) for y, a, b in pairs
        ),
    }


@ATB.item(
    "Theorem 4.10",
    "Sample complexity",
    "T > C eps^-2 log(1/delta) rows: ATB and ATB_l1 within eps of the population, with probability 1 - delta",
    uses='`sample_complexity(epsilon, delta, measure="atb" or "atb_l1")`',
    test="test_theorem_4_10",
    sharper="explicit constants, by bounded differences: {I21}",
    accepted={
        "ATB: rows for eps = delta = 0.05": equal(2288, paper="O(eps^-2 log(1/delta))"),
        "ATB_l1: rows for eps = delta = 0.05": equal(4906, paper="O(eps^-2 log(1/delta))"),
        "ATB: C, eps = 0.01, delta = 1e-9": at_most(1.6, "absolute constant"),
        "ATB: share of 500 samples further than eps": at_most(0.05, "<= delta"),
    },
)
def theorem_4_10() -> Numbers:
    """The population of the largest variance found: 79% of rows with p = 1, y = 0 and 21% with p = 0.65, y = 1."""
    rows, rng = tc.sample_complexity(0.05, 0.05), np.random.default_rng(0)
    population = tc.atb([0, 1], [1, 0.65], sample_weight=[79, 21])
    ones = rng.binomial(rows, 0.21, 500)
    found = np.array([tc.atb([0, 1], [1, 0.65], sample_weight=[rows - k, k]) for k in ones])
    return {
        "ATB: rows for eps = delta = 0.05": rows,
        "ATB_l1: rows for eps = delta = 0.05": tc.sample_complexity(0.05, 0.05, measure="atb_l1"),
        "ATB: C, eps = 0.01, delta = 1e-9": tc.sample_complexity(0.01, 1e-9) * 0.01**2 / math.log(1e9),
        "ATB: share of 500 samples further than eps": np.mean(np.abs(found - population) > 0.05),
    }


@ATB.item(
    "Proposition 4.11",
    "Sample complexity of smCal",
    "the same for smCal",
    uses='`sample_complexity(epsilon, delta, measure="smcal")`',
    test="test_theorem_4_10",
    sharper="explicit constants: {I21}",
    accepted={
        "rows for eps = delta = 0.05": equal(5259, 1, paper="O(eps^-2 log(1/delta))"),
        "share of 500 samples further than eps": at_most(0.05, "<= delta"),
    },
)
def proposition_4_11() -> Numbers:
    """All rows predicted 0.3 with true probability 0.7, where smCal is 0.4."""
    rows, rng = tc.sample_complexity(0.05, 0.05, measure="smcal"), np.random.default_rng(0)
    ones = rng.binomial(rows, 0.7, 500)
    found = np.array([tc.smcal([0, 1], [0.3, 0.3], sample_weight=[rows - k, k]) for k in ones])
    return {
        "rows for eps = delta = 0.05": rows,
        "share of 500 samples further than eps": np.mean(np.abs(found - 0.4) > 0.05),
    }


@ATB.item(
    "Theorem 4.12",
    "Computation",
    "ATB exactly in O(T log T), to within eps in O(T + 1/eps); likewise ATB_l1",
    uses="`atb`, `atb_approx`, `atb_l1`, `atb_l1_approx`",
    test="test_theorem_4_12, measures/test_atb_approx.py",
    sharper="O(T) for eps >= 1/(2T^2) (ATB_l1: 1/(8T)): {A3}; [times](../benchmarks/linear_time.md)",
    accepted={
        "ATB: error / eps, eps = 1/(2T), spread out": at_most(1, "<= 1"),
        "ATB: error / eps, eps = 1/(2T), in clusters": at_most(1, "<= 1"),
        "ATB_l1: error / eps, eps = 0.001, in clusters": at_most(1, "<= 1"),
    },
)
def theorem_4_12() -> Numbers:
    """100,000 rows, spread out and in ten clusters 1e-4 wide: difference of approximate and exact values."""
    rng, t = np.random.default_rng(0), 100_000
    spread, near = rng.random(t), (rng.integers(0, 10, t) + 1e-3 * rng.random(t)) / 10
    data = {"spread out": ((rng.random(t) < spread).astype(int), spread), "in clusters": (rng.integers(0, 2, t), near)}
    errors = {}
    for name, rows in data.items():
        error = abs(tc.atb_approx(*rows, tolerance=0.5 / t).value - tc.atb(*rows))
        errors[f"ATB: error / eps, eps = 1/(2T), {name}"] = error / (0.5 / t)
    rows = data["in clusters"]
    l1_error = abs(tc.atb_l1_approx(*rows, tolerance=1e-3).value - tc.atb_l1(*rows))
    return {**errors, "ATB_l1: error / eps, eps = 0.001, in clusters": l1_error / 1e-3}
