"""Section 5 and the appendices of the paper: tests, averaging, Brier loss, uniform convergence."""

import itertools
import math

import numpy as np
from scipy import stats

import truthcal as tc
from paper.items import Numbers, Section, at_least, at_most, equal

TESTING = Section("5 Linear-time calibration tester")
AVERAGING = Section("A Non-truthfulness of known calibration measures")
BRIER = Section("B ATB and Brier loss")
CONVERGENCE = Section("C Standard uniform convergence bounds")


@TESTING.item(
    "Theorem 5.1",
    "Optimal validity",
    "ATB is O(1/sqrt T)-valid with respect to distCal, and no measure is better than Omega(1/sqrt T)",
    uses="`linear_time_test`, `validity`, `best_possible_gap`",
    test="test_theorem_5_1",
    sharper="C = 2 + sqrt(2 log 4) = 3.67 for a gap of 1/2, {I10}",
    accepted={
        "linear-time test, C = 3.67, T = 64: gap": at_least(0.5, "> 0"),
        "linear-time test, C = 3.67, T = 1,024: gap": at_least(0.5, "> 0"),
        "any test, distance T^-0.6, T = 10^4": equal(0.1385, 1e-4),
        "any test, distance T^-0.6, T = 10^8": at_most(0.03, "-> 0"),
    },
)
def theorem_5_1() -> Numbers:
    """Gaps between the acceptance rates of calibrated and miscalibrated populations; every prediction is 1/2."""
    found = tc.validity(
        tc.linear_time_test,
        constant=2 + math.sqrt(2 * math.log(4)),
        n_rows=[64, 1024],
        populations={"one prediction": [0.5]},
        families=["shift"],
        n_simulations=200,
        rng=0,
    )
    return {
        "linear-time test, C = 3.67, T = 64: gap": found.gap[0],
        "linear-time test, C = 3.67, T = 1,024: gap": found.gap[1],
        "any test, distance T^-0.6, T = 10^4": tc.best_possible_gap(0.01**1.2, 10**4),
        "any test, distance T^-0.6, T = 10^8": tc.best_possible_gap(0.01**2.4, 10**8),
    }


@TESTING.item(
    "Lemma 5.2",
    "Calibrated distributions are accepted",
    "J calibrated: Pr[ATB(J_S) <= 1/T] >= 3/4",
    uses='`acceptance_probability(..., "atb", threshold=1/T)`',
    test="test_lemma_5_2",
    sharper="",
    accepted={"smallest of 15 acceptance probabilities": at_least(0.75, ">= 3/4")},
)
def lemma_5_2() -> Numbers:
    """All rows predicted v, the true probability; exact for each v and T."""
    accepted = [
        tc.acceptance_probability([v], [v], "atb", n_rows=t, threshold=1 / t).value
        for v in (0.5, 0.1, 0.01)
        for t in (1, 2, 10, 100, 1000)
    ]
    return {"smallest of 15 acceptance probabilities": min(accepted)}


@TESTING.item(
    "Lemma 5.3",
    "Distributions far from calibrated are rejected",
    "distCal(J) >= C/sqrt T: Pr[ATB(J_S) <= 2/T] <= 1/4",
    uses='`acceptance_probability(..., "atb", threshold=2/T)`',
    test="test_lemma_5_3",
    sharper="C = 2 + sqrt(2 log 4) = 3.67 instead of some constant, {I10}",
    accepted={
        "T = 100: acceptance probability": at_most(0.25, "<= 1/4"),
        "T = 1,000: acceptance probability": at_most(0.25, "<= 1/4"),
        "T = 1,000: smallest constant for this population": at_most(2 + math.sqrt(2 * math.log(4))),
    },
)
def lemma_5_3() -> Numbers:
    """All rows predicted 1/2, true probability 1/2 + C/sqrt(T); the constants tried are 0.05 apart."""

    def accepted(constant: float, t: int) -> float:
        truth = 0.5 + constant / math.sqrt(t)
        return tc.acceptance_probability([0.5], [truth], "atb", n_rows=t, threshold=2 / t).value

    far = 2 + math.sqrt(2 * math.log(4))
    return {
        "T = 100: acceptance probability": accepted(far, 100),
        "T = 1,000: acceptance probability": accepted(far, 1000),
        "T = 1,000: smallest constant for this population": next(
            constant for constant in np.arange(1.5, 5, 0.05) if accepted(constant, 1000) <= 0.25
        ),
    }


@TESTING.item(
    "Lemma 5.4",
    "Lower bound",
    "at prediction 1/2 with bias 0 and gamma, the total variation distance O(gamma sqrt T) bounds every gap",
    uses="`best_possible_gap`",
    test="test_lemma_5_4",
    sharper="exact, at most gamma sqrt(2T), and 2 Phi(C) - 1 in the limit at gamma = C/sqrt T: {I20}",
    accepted={
        "C = 0.5, T = 10^8": equal(2 * stats.norm.cdf(0.5) - 1, 1e-3, "O(C)"),
        "2 Phi(0.5) - 1": equal(2 * stats.norm.cdf(0.5) - 1),
        "largest distance / C, C = 0.01 to 1": at_most(math.sqrt(2), "O(1)"),
    },
)
def lemma_5_4() -> Numbers:
    """Exact total variation distances of binomials; Pinsker's inequality bounds them by sqrt(2) C."""
    ratios = [
        tc.best_possible_gap(constant / math.sqrt(t), t, alternative="greater") / constant
        for constant in (0.01, 0.1, 1)
        for t in (10, 1000, 10**6)
        if constant / math.sqrt(t) <= 0.5
    ]
    return {
        "C = 0.5, T = 10^8": tc.best_possible_gap(0.5e-4, 10**8, alternative="greater"),
        "2 Phi(0.5) - 1": 2 * stats.norm.cdf(0.5) - 1,
        "largest distance / C, C = 0.01 to 1": max(ratios),
    }


@AVERAGING.item(
    "Definition A.1",
    "l_alpha-distance to calibration",
    "inf of E abs(u - v)^alpha over couplings with (u, y) calibrated",
    uses="`distcal(alpha=)`, `distcal_bounds(alpha=)`, up to 200 distinct predictions",
    test="test_table_1, measures/test_distcal.py",
    sharper="certified bounds, {M6}",
    accepted={
        "l2-distCal, reports 25%, 75%, states 0, 0": equal(0.3125, 2e-5, "0.3125 (Table 1)"),
        "l2-distCal, reports 25%, 75%, states 0, 1": equal(0.0625, 2e-5, "> 0 (Table 1)"),
    },
)
def definition_a_1() -> Numbers:
    """If all states are 0, u must be 0, and the distance is the mean of the squares 1/16 and 9/16."""
    return {
        "l2-distCal, reports 25%, 75%, states 0, 0": tc.distcal([0, 0], [0.25, 0.75], alpha=2),
        "l2-distCal, reports 25%, 75%, states 0, 1": tc.distcal([0, 1], [0.25, 0.75], alpha=2),
    }


@AVERAGING.item(
    "Theorem A.2",
    "Averaging never hurts, sequences",
    "CAL(rbar, y) <= CAL(r, y) for l_alpha-ECE, l_alpha-binned ECE, smCal and l_alpha-distCal",
    uses="`unbinned_ece`, `binned_ece`, `smcal`, `distcal`",
    test="test_theorem_a_2, test_inequalities.py",
    sharper="the values of the average are powers of the bias: {F27}",
    accepted={
        f"largest {name}(rbar, y) - {name}(r, y)": at_most(2e-5, "<= 0")
        for name in ("l1-ECE", "l3-ECE", "l2-binned ECE", "smCal", "distCal", "l2-distCal")
    },
)
def theorem_a_2() -> Numbers:
    """40 random samples of four rows (distCal is computed to within 1e-5)."""
    rng = np.random.default_rng(0)
    data = [(rng.integers(0, 2, 4), rng.integers(0, 21, 4) / 20) for _ in range(40)]
    measures = {
        "l1-ECE": tc.unbinned_ece,
        "l3-ECE": lambda y, r: tc.unbinned_ece(y, r, alpha=3),
        "l2-binned ECE": lambda y, r: tc.binned_ece(y, r, alpha=2),
        "smCal": tc.smcal,
        "distCal": tc.distcal,
        "l2-distCal": lambda y, r: tc.distcal(y, r, alpha=2),
    }
    return {
        f"largest {name}(rbar, y) - {name}(r, y)": max(f(y, np.full(4, np.mean(r))) - f(y, r) for y, r in data)
        for name, f in measures.items()
    }


@AVERAGING.item(
    "Remark A.3",
    "Often strictly better",
    "for many states CAL(rbar, y) = 0 < CAL(r, y)",
    uses="`unbinned_ece`, `smcal`, `distcal`",
    test="test_remark_a_3",
    accepted={
        "largest of three measures at rbar": equal(0, 1e-9, "0"),
        "smallest of three measures at r": at_least(1e-3, "> 0"),
    },
)
def remark_a_3() -> Numbers:
    """Four different reports around 1/2, half of the states are 1."""
    y, r, measures = [0, 1, 0, 1], [0.4, 0.45, 0.55, 0.6], (tc.unbinned_ece, tc.smcal, tc.distcal)
    return {
        "largest of three measures at rbar": max(f(y, [0.5] * 4) for f in measures),
        "smallest of three measures at r": min(f(y, r) for f in measures),
    }


@AVERAGING.item(
    "Theorem A.4",
    "Averaging never hurts, distributions",
    "CAL(Jbar) <= CAL(J), where every prediction of Jbar is the mean prediction",
    uses="`unbinned_ece`, `smcal`, `distcal` with `sample_weight`",
    test="test_theorem_a_4",
    sharper="not for merging some predictions only: {F29}",
    accepted={f"largest {name}(Jbar) - {name}(J)": at_most(2e-5, "<= 0") for name in ("ECE", "smCal", "distCal")},
)
def theorem_a_4() -> Numbers:
    """100 random populations of four kinds with random shares and true probabilities."""
    rng = np.random.default_rng(0)
    data = [(rng.random(4), rng.random(4), rng.random(4)) for _ in range(100)]
    return {
        f"largest {name}(Jbar) - {name}(J)": max(
            f(truth, np.full(4, np.average(v, weights=share)), sample_weight=share) - f(truth, v, sample_weight=share)
            for truth, v, share in data
        )
        for name, f in {"ECE": tc.unbinned_ece, "smCal": tc.smcal, "distCal": tc.distcal}.items()
    }


# The paper's Table 1: of each measure, the average and the truth in the states (0, 0), (1, 1), (0, 1), (1, 0), and the
# expected errors; where the paper has only a bound, our number is exact and the bound is the text.
_TABLE_1 = {
    "smCal": ((0.5, 0.5, 0, 0, 0.1875), (0.5, 0.5, 0.0625, 0.1875, 0.234375), ("", "", "", "", "")),
    "distCal": ((0.5, 0.5, 0, 0, 0.1875), (0.5, 0.5, 0.125, 0.25, 0.2734375), ("", "", "> 0", "> 0", "> 0.1875")),
    "l2-distCal": (
        (0.25, 0.25, 0, 0, 0.09375),
        (0.3125, 0.3125, 0.0625, 0.0625, 0.15625),
        ("", "", "> 0", "> 0", "> 0.11"),
    ),
    "ATB": ((0.25, 0.25, 0, 0, 0.09375), (0.203125, 0.203125, 0.015625, 0.140625, 0.09375), ("", "", "", "", "")),
}
_STATES = ("(0, 0)", "(1, 1)", "(0, 1)", "(1, 0)", "expected")


@AVERAGING.item(
    "Table 1",
    "Two points with true probabilities 25% and 75%",
    "smCal, distCal and l2-distCal prefer the average 50% to the truth; ATB gives both the same expected error",
    uses="`expected_score([.5, .5] or [.25, .75], [.25, .75], name)`",
    test="test_table_1",
    sharper="exact numbers where the paper has bounds",
    accepted={
        f"{name}, {report}, {state}": equal(value, 2e-5, bound or f"{value:g}")
        for name, (average, truth, bounds) in _TABLE_1.items()
        for report, values, texts in (("avg", average, ("",) * 5), ("truth", truth, bounds))
        for state, value, bound in zip(_STATES, values, texts, strict=True)
    },
)
def table_1() -> Numbers:
    """The errors in all four states, and their expectation."""
    states = ["(0, 0)", "(1, 1)", "(0, 1)", "(1, 0)"]
    measures = {"smCal": "smcal", "distCal": "distcal", "l2-distCal": None, "ATB": "atb"}
    found = {}
    for name, measure in measures.items():
        for label, report in (("avg", [0.5, 0.5]), ("truth", [0.25, 0.75])):
            score = tc.expected_score(report, [0.25, 0.75], measure or (lambda y, r: tc.distcal(y, r, alpha=2)))
            values = dict(zip((str(tuple(y)) for y in score.outcomes.tolist()), score.values, strict=True))
            found |= {f"{name}, {label}, {state}": values[state] for state in states}
            found[f"{name}, {label}, expected"] = score.value
    return found


@BRIER.item(
    "Lemma B.1",
    "ATB and Brier loss",
    "E ATB(v, y) >= E(v - y)^2 / T for T independent rows, with equality if J is calibrated",
    uses='`expected_score(n_rows=T)`, `audit(stage="ex_ante")`',
    test="test_lemma_b_1",
    sharper="E ATB = (Brier + (T - 1) ATB(J)) / T for every J: {F4}",
    accepted={
        "calibrated: T E[ATB] / Brier, T = 1,000": equal(1, 1e-9, "= 1"),
        "miscalibrated: T E[ATB] / Brier, T = 1,000": at_least(1, ">= 1"),
        "miscalibrated: (Brier + (T - 1) ATB(J)) / (T E[ATB])": equal(1, 1e-9),
        "miscalibrated: mean of 2,000 samples / E[ATB]": equal(1, 0.02),
    },
)
def lemma_b_1() -> Numbers:
    """Kinds 0.1, 0.3 and 0.8 with shares 1/8, 2/8 and 5/8; the miscalibrated report exchanges the first two."""
    truth, share, wrong, t = [0.1, 0.3, 0.8], np.array([1, 2, 5]) / 8, np.array([0.3, 0.1, 0.8]), 1000
    atb, brier = (
        {label: tc.expected_score(r, truth, name, n_rows=t, sample_weight=share).value for label, r in reports.items()}
        for name, reports in ((n, {"right": truth, "wrong": wrong}) for n in ("atb", "brier"))
    )
    rng, draws = np.random.default_rng(0), []
    for _ in range(2000):
        kinds = rng.choice(3, t, p=share)
        draws.append(tc.atb((rng.random(t) < np.array(truth)[kinds]).astype(int), wrong[kinds]))
    exact = (brier["wrong"] + (t - 1) * tc.atb(truth, wrong, sample_weight=share)) / t
    return {
        "calibrated: T E[ATB] / Brier, T = 1,000": t * atb["right"] / brier["right"],
        "miscalibrated: T E[ATB] / Brier, T = 1,000": t * atb["wrong"] / brier["wrong"],
        "miscalibrated: (Brier + (T - 1) ATB(J)) / (T E[ATB])": exact / atb["wrong"],
        "miscalibrated: mean of 2,000 samples / E[ATB]": np.mean(draws) / atb["wrong"],
    }


NOT_NEEDED = "not needed: `sample_complexity` is proved by bounded differences, with constants"


@CONVERGENCE.item(
    "Definition C.1",
    "Rademacher complexity",
    "R(F; z) = E sup over f of (1/n) sum of s_i f(z_i), for random signs s",
    uses=NOT_NEEDED,
    test="-",
    accepted={"R of the thresholds 1(v < q), n = 4": equal(19 / 64), "n = 12": equal(0.1933187, 1e-6)},
)
def definition_c_1() -> Numbers:
    """Thresholds on n different points: mean over all signs of the largest partial sum."""

    def complexity(n: int) -> float:
        signs = np.array(list(itertools.product([-1, 1], repeat=n)))
        return np.mean(np.maximum(np.cumsum(signs, axis=1).max(axis=1), 0)) / n

    return {"R of the thresholds 1(v < q), n = 4": complexity(4), "n = 12": complexity(12)}


@CONVERGENCE.item(
    "Proposition C.2",
    "Uniform convergence from Rademacher complexity",
    "E sup over f of abs(mean of f on the sample - E f) <= 2 E R(F)",
    uses=NOT_NEEDED,
    test="-",
    accepted={
        "thresholds, n = 100: E sup of the deviation": equal(0.0852, 0.004),
        "2 E R": equal(0.1496, 0.004),
        "ratio": at_most(1, "<= 1"),
    },
)
def proposition_c_2() -> Numbers:
    """Uniform points and all thresholds 1(v < q), whose deviation is the Kolmogorov-Smirnov statistic."""
    rng, n = np.random.default_rng(0), 100
    v, steps = np.sort(rng.random((5000, n))), np.arange(n + 1) / n
    deviation = np.mean(np.maximum(np.abs(v - steps[1:]), np.abs(v - steps[:-1])).max(axis=1))
    signs = rng.choice([-1, 1], (5000, n))
    bound = 2 * np.mean(np.maximum(np.cumsum(signs, axis=1).max(axis=1), 0)) / n
    return {"thresholds, n = 100: E sup of the deviation": deviation, "2 E R": bound, "ratio": deviation / bound}


@CONVERGENCE.item(
    "Proposition C.3",
    "Rademacher complexity after Lipschitz postprocessing",
    "1-Lipschitz functions of f do not raise R: here from 1(v < q) to (v - y) 1(v < q)",
    uses=NOT_NEEDED,
    test="-",
    accepted={"R of (v - y) 1(v < q) / R of 1(v < q), largest of 100": at_most(1, "<= 1")},
)
def proposition_c_3() -> Numbers:
    """Eight random rows, all signs, 100 times."""
    rng, signs = np.random.default_rng(0), np.array(list(itertools.product([-1, 1], repeat=8)))
    plain = np.mean(np.maximum(np.cumsum(signs, axis=1).max(axis=1), 0))
    ratios = []
    for _ in range(100):
        residual = np.sort(rng.random(8)) - rng.integers(0, 2, 8)
        ratios.append(np.mean(np.maximum(np.cumsum(signs * residual, axis=1).max(axis=1), 0)) / plain)
    return {"R of (v - y) 1(v < q) / R of 1(v < q), largest of 100": max(ratios)}


@CONVERGENCE.item(
    "Definition C.4",
    "VC dimension",
    "largest number of points on which the family takes all combinations of values",
    uses=NOT_NEEDED,
    test="-",
    accepted={"VC dimension of the thresholds 1(v < q)": equal(1, paper="at most 1")},
)
def definition_c_4() -> Numbers:
    """Number of combinations of values of thresholds on d points, compared with 2^d."""
    largest = 0
    for d in (1, 2, 3, 4):
        points = np.linspace(0.2, 0.8, d)
        combinations = {tuple(points < q) for q in np.linspace(0, 1, 1001)}
        largest = d if len(combinations) == 2**d else largest
    return {"VC dimension of the thresholds 1(v < q)": largest}


@CONVERGENCE.item(
    "Proposition C.5",
    "Rademacher complexity from VC dimension",
    "R(F; z) = O(sqrt(d/n)) for VC dimension d",
    uses=NOT_NEEDED,
    test="-",
    accepted={
        "sqrt(n) R of the thresholds, n = 100": equal(math.sqrt(2 / math.pi), 0.06, "O(1)"),
        "n = 10,000": equal(math.sqrt(2 / math.pi), 0.04, "O(1)"),
        "limit": equal(math.sqrt(2 / math.pi)),
    },
)
def proposition_c_5() -> Numbers:
    """Largest partial sums of 2,000 random walks; sqrt(2/pi) is the mean maximum of Brownian motion."""
    rng = np.random.default_rng(0)
    found = []
    for n in (100, 10_000):
        walks = (np.cumsum(rng.choice([-1, 1], n)).max() for _ in range(2000))
        found.append(np.mean([max(top, 0) for top in walks]) / math.sqrt(n))
    return {"sqrt(n) R of the thresholds, n = 100": found[0], "n = 10,000": found[1], "limit": math.sqrt(2 / math.pi)}
