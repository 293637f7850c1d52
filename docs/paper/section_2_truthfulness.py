"""Section 2 of the paper, second half: truthfulness, calibration tests and validity."""

import itertools

import numpy as np
from scipy import stats

import truthcal as tc
from paper.items import Numbers, at_least, at_most, equal
from paper.sections_1_2 import PRELIMINARIES


@PRELIMINARIES.item(
    "Definition 2.12",
    "Ex-ante truthfulness",
    "E_S CAL(p) <= E_S CAL(r) for samples S of T rows and every predictor r",
    uses='`audit(stage="ex_ante", n_rows=T)`, `expected_score(n_rows=T)`',
    test="test_definition_2_12",
    accepted={
        "ATB: E of the average - E of the truth": at_least(0, ">= 0"),
        "smCal: E of the average - E of the truth": at_most(-0.001),
        "ATB: gain of the best lie found": at_most(0, "<= 0"),
    },
)
def definition_2_12() -> Numbers:
    """Three equally frequent kinds of events, samples of four rows."""
    truth, average = [0.3, 0.5, 0.7], [0.5, 0.5, 0.5]
    difference = {
        name: tc.expected_score(average, truth, name, n_rows=4).value
        - tc.expected_score(truth, truth, name, n_rows=4).value
        for name in ("atb", "smcal")
    }
    return {
        "ATB: E of the average - E of the truth": difference["atb"],
        "smCal: E of the average - E of the truth": difference["smcal"],
        "ATB: gain of the best lie found": tc.audit(truth, ["atb"], stage="ex_ante", n_rows=4)["atb"].gain,
    }


@PRELIMINARIES.item(
    "Definition 2.13",
    "Induced calibration error on prediction sequences",
    "CAL(r, p) = CAL(J_(r,p)), the distribution of a random row and its random state",
    uses="every measure accepts fractional outcomes",
    test="test_definition_2_13",
    accepted={
        "ECE(r, p)": equal(0.1, paper="(1/T) sum over v of abs(sum of r - p)"),
        "ATB(r, p)": equal(0.03 / 9),
        "ATB of 30,000 rows with these frequencies": equal(0.03 / 9),
    },
)
def definition_2_13() -> Numbers:
    """Three rows with true probabilities, and each row 10,000 times with as many ones as its probability says."""
    r, p = [0.2, 0.2, 0.7], [0.1, 0.5, 0.6]
    y = np.concatenate([np.repeat([1, 0], [round(10_000 * chance), round(10_000 * (1 - chance))]) for chance in p])
    return {
        "ECE(r, p)": tc.unbinned_ece(p, r),
        "ATB(r, p)": tc.atb(p, r),
        "ATB of 30,000 rows with these frequencies": tc.atb(y, np.repeat(r, 10_000)),
    }


@PRELIMINARIES.item(
    "Definition 2.14",
    "Interim truthfulness",
    "E_(y~p) CAL(p, y) <= E_(y~p) CAL(r, y) for every report r",
    uses="`audit`, `expected_score`",
    test="test_definition_2_14",
    accepted={
        "atb: smallest E CAL(r, y) - E CAL(p, y)": equal(0, 1e-12, ">= 0"),
        "smcal: smallest E CAL(r, y) - E CAL(p, y)": equal(-0.046875),
        "ece: smallest E CAL(r, y) - E CAL(p, y)": equal(-0.1875),
    },
)
def definition_2_14() -> Numbers:
    """Two events with probabilities 25% and 75%, and 81 reports."""
    truth, reports = [0.25, 0.75], list(itertools.product(np.linspace(0, 1, 9), repeat=2))
    smallest = {}
    for name in ("atb", "smcal", "ece"):
        honest = tc.expected_score(truth, truth, name).value
        others = [tc.expected_score(report, truth, name).value for report in reports]
        smallest[f"{name}: smallest E CAL(r, y) - E CAL(p, y)"] = min(others) - honest
    return smallest


@PRELIMINARIES.item(
    "Claim 2.15",
    "Interim implies ex-ante truthfulness",
    "an ex-ante expectation is a mean of interim expectations, over the events that are drawn",
    uses="`expected_score`, `audit`",
    test="test_definition_2_12",
    accepted={
        "E ATB of samples of 3 rows": equal(0.081),
        "mean of the interim E ATB over all 8 samples of events": equal(0.081),
        "smallest E CAL(r) - E CAL(p) over 82 predictors": equal(0, 1e-12, ">= 0"),
    },
)
def claim_2_15() -> Numbers:
    """Two equally frequent kinds of events, and the predictor 0.3, 0.9 of 0.2, 0.7."""
    report, truth = np.array([0.3, 0.9]), np.array([0.2, 0.7])
    events = [list(kinds) for kinds in itertools.product([0, 1], repeat=3)]
    interim = [tc.expected_score(report[kinds], truth[kinds], "atb").value for kinds in events]
    honest = tc.expected_score(truth, truth, "atb", n_rows=3).value
    reports = [*itertools.product(np.linspace(0, 1, 9), repeat=2), truth]
    return {
        "E ATB of samples of 3 rows": tc.expected_score(report, truth, "atb", n_rows=3).value,
        "mean of the interim E ATB over all 8 samples of events": np.mean(interim),
        "smallest E CAL(r) - E CAL(p) over 82 predictors": min(
            tc.expected_score(r, truth, "atb", n_rows=3).value - honest for r in reports
        ),
    }


@PRELIMINARIES.item(
    "Definition 2.16",
    "Calibration test",
    "accP(J; T, beta) = Pr[CAL(J_S) <= beta] for samples S of T rows",
    uses="`acceptance_probability`",
    test="test_definition_2_16",
    accepted={
        "accP(J; 10, 0.01) of ATB": equal(stats.binom.cdf(6, 10, 0.6) - stats.binom.cdf(3, 10, 0.6)),
        "binomial formula": equal(stats.binom.cdf(6, 10, 0.6) - stats.binom.cdf(3, 10, 0.6)),
    },
)
def definition_2_16() -> Numbers:
    """All events predicted with 1/2, true probability 0.6: ATB <= 0.01 if 4, 5 or 6 of 10 events happen."""
    return {
        "accP(J; 10, 0.01) of ATB": tc.acceptance_probability([0.5], [0.6], "atb", n_rows=10, threshold=0.01).value,
        "binomial formula": stats.binom.cdf(6, 10, 0.6) - stats.binom.cdf(3, 10, 0.6),
    }


@PRELIMINARIES.item(
    "Definition 2.17",
    "Validity",
    "liminf of (smallest accP of calibrated J - largest accP with Ref(J) >= gamma_T) > 0, for some thresholds",
    uses="`validity`",
    test="test_definition_2_17",
    sharper="a gap for any test, with the largest gap that any test can have",
    accepted={
        "ATB, T = 100: gap": equal(0.93, 0.04, "> 0"),
        "ATB, T = 1,600: gap": equal(0.93, 0.04, "> 0"),
        "any test, T = 1,600": equal(0.94, 0.02),
    },
)
def definition_2_17() -> Numbers:
    """Thresholds 1/T, reference distCal >= 2/sqrt(T): three populations, errors that shift or stretch log-odds."""
    found = tc.validity("atb", constant=2, n_rows=[100, 1600], threshold=lambda t: 1 / t, n_simulations=1000, rng=0)
    return {
        "ATB, T = 100: gap": found.gap[0],
        "ATB, T = 1,600: gap": found.gap[1],
        "any test, T = 1,600": found.best_possible[1],
    }
