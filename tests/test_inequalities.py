"""Proved inequalities between measures: F20 to F29 of docs/theory/foundations.md."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.strategies import inner_probabilities, probabilities, rows, weighted_rows

import truthcal as tc

SLACK = 1e-12
# smECE is exact up to this: 1.7e-9 too small was seen for predictions of 0 and 1.
SMECE = tc.MEASURES["smece"].tolerance


def values(y, p, w):
    """Compute all measures in the inequalities below."""
    names = ["atb", "atb_l1", "smcal", "intcal", "intcal_surrogate", "unbinned_ece", "ks_ce", "kuiper_ce"]
    names += ["decision_loss", "u_calibration", "laplace_kernel_ce", "smece", "ece", "ici"]
    found = {name: getattr(tc, name)(y, p, sample_weight=w) for name in names}
    found["distcal"] = tc.distcal_bounds(y, p, tolerance=1e-7, sample_weight=w)
    found["bias"] = tc.atb_summary(y, p, sample_weight=w).bias
    found["l2_ece"] = tc.unbinned_ece(y, p, alpha=2, sample_weight=w)
    return found


def rest(v):
    return max(2 * v["atb"] - v["bias"] ** 2, 0) ** 0.5 / 2


# name -> (smaller side, larger side). distcal is certified from either side.
INEQUALITIES = {
    "smCal <= ECE": lambda v: (v["smcal"], v["unbinned_ece"]),
    "distCal <= ECE": lambda v: (v["distcal"].low, v["unbinned_ece"]),
    "smCal/2 <= distCal": lambda v: (v["smcal"] / 2, v["distcal"].high),
    "distCal <= 2 smCal": lambda v: (v["distcal"].low, 2 * v["smcal"]),
    "2/3 smCal <= ATB_l1": lambda v: (2 / 3 * v["smcal"], v["atb_l1"]),
    "ATB_l1 <= 2 smCal": lambda v: (v["atb_l1"], 2 * v["smcal"]),
    "ATB_l1 <= 3 distCal": lambda v: (v["atb_l1"], 3 * v["distcal"].high),
    "ATB_l1^2/2 <= ATB": lambda v: (v["atb_l1"] ** 2 / 2, v["atb"]),
    "ATB <= ATB_l1": lambda v: (v["atb"], v["atb_l1"]),
    "2/5 smCal^2 <= ATB": lambda v: (2 / 5 * v["smcal"] ** 2, v["atb"]),
    "ATB <= smCal": lambda v: (v["atb"], v["smcal"]),
    "smCal^2/2 <= kCE^2": lambda v: (v["smcal"] ** 2 / 2, v["laplace_kernel_ce"] ** 2),
    "kCE^2 <= smCal": lambda v: (v["laplace_kernel_ce"] ** 2, v["smcal"]),
    "bias^2/2 <= ATB": lambda v: (v["bias"] ** 2 / 2, v["atb"]),
    "|bias| <= smCal": lambda v: (abs(v["bias"]), v["smcal"]),
    "|bias| <= distCal": lambda v: (abs(v["bias"]), v["distcal"].high),
    "ATB <= KS^2 + Kuiper^2": lambda v: (v["atb"], v["ks_ce"] ** 2 + v["kuiper_ce"] ** 2),
    "KS <= Kuiper": lambda v: (v["ks_ce"], v["kuiper_ce"]),
    "Kuiper <= 2 KS": lambda v: (v["kuiper_ce"], 2 * v["ks_ce"]),
    "smCal <= 2 KS": lambda v: (v["smcal"], 2 * v["ks_ce"]),
    "distCal <= intCE": lambda v: (v["distcal"].low, v["intcal"]),
    "intCE <= surrogate": lambda v: (v["intcal"], v["intcal_surrogate"]),
    "surrogate <= ECE": lambda v: (v["intcal_surrogate"], v["unbinned_ece"]),
    "ECE^2 <= l2-ECE": lambda v: (v["unbinned_ece"] ** 2, v["l2_ece"]),
    "l2-ECE <= CDL": lambda v: (v["l2_ece"], v["decision_loss"]),
    "CDL <= 2 ECE": lambda v: (v["decision_loss"], 2 * v["unbinned_ece"]),
    "U-cal <= CDL": lambda v: (v["u_calibration"], v["decision_loss"]),
    "distCal <= ATB_l1": lambda v: (v["distcal"].low, v["atb_l1"]),
    "distCal^2 <= 2 ATB": lambda v: (v["distcal"].low ** 2, 2 * v["atb"]),
    "ATB <= 2 distCal": lambda v: (v["atb"], 2 * v["distcal"].high),
    "smCal <= |bias| + ATB_l1/2": lambda v: (v["smcal"], abs(v["bias"]) + v["atb_l1"] / 2),
    "distCal <= 2 smCal - |bias|": lambda v: (v["distcal"].low, 2 * v["smcal"] - abs(v["bias"])),
    "ATB_l1 <= 2 smCal - |bias|": lambda v: (v["atb_l1"], 2 * v["smcal"] - abs(v["bias"])),
    "smCal <= |bias| + sqrt(2 ATB - bias^2)/2": lambda v: (v["smcal"], abs(v["bias"]) + rest(v)),
    "ATB <= ECE smCal": lambda v: (v["atb"], v["unbinned_ece"] * v["smcal"]),
    "kCE^2 <= ECE smCal": lambda v: (v["laplace_kernel_ce"] ** 2, v["unbinned_ece"] * v["smcal"]),
    "Kuiper <= ECE": lambda v: (v["kuiper_ce"], v["unbinned_ece"]),
    "smCal <= intCE": lambda v: (v["smcal"], v["intcal"]),
    "U-cal <= 2 Kuiper": lambda v: (v["u_calibration"], 2 * v["kuiper_ce"]),
    "smCal <= 1.8 smECE": lambda v: (v["smcal"], 1.8 * v["smece"] + SMECE),
    "smECE <= max(smCal, sqrt(0.8 smCal))": lambda v: (v["smece"], max(v["smcal"], (0.8 * v["smcal"]) ** 0.5) + SMECE),
    "smCal <= 2 ICI": lambda v: (v["smcal"], 2 * v["ici"]),
    "ICI <= ECE": lambda v: (v["ici"], v["unbinned_ece"]),
    "ICI^2 <= Kuiper": lambda v: (v["ici"] ** 2, v["kuiper_ce"]),
    "smECE <= ECE": lambda v: (v["smece"], v["unbinned_ece"] + SMECE),
    "|bias| <= smECE": lambda v: (abs(v["bias"]), v["smece"] + SMECE),
    "binned ECE <= unbinned ECE": lambda v: (v["ece"], v["unbinned_ece"]),
}


@given(weighted_rows(max_size=12))
def test_inequalities(data):
    found = values(*data)
    for name, sides in INEQUALITIES.items():
        small, large = sides(found)
        assert small <= large * (1 + 1e-9) + SLACK, name


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("shape", ["calibrated", "overconfident", "rare", "ties"])
def test_inequalities_of_larger_samples(n, shape):
    rng = np.random.default_rng(n)
    p = {"rare": rng.beta(1, 50, n), "ties": np.round(rng.random(n), 1)}.get(shape, rng.random(n))
    y = rng.random(n) < (0.5 + 0.6 * (p - 0.5) if shape == "overconfident" else p)
    found = values(y, p, None)
    for name, sides in INEQUALITIES.items():
        small, large = sides(found)
        assert small <= large * (1 + 1e-9) + SLACK, name


@given(rows(max_size=12), st.data())
def test_lipschitz_of_the_distance(data, more):
    y, p = data
    other = more.draw(st.lists(probabilities, min_size=len(p), max_size=len(p)))
    moved = float(np.mean(np.abs(np.subtract(p, other))))
    one, two = (tc.distcal_bounds(y, report, tolerance=1e-7) for report in (p, other))
    assert one.low - two.high <= moved + SLACK
    assert two.low - one.high <= moved + SLACK


# --- averaging: why most measures are not truthful --------------------------------------------------------------------


@given(weighted_rows(max_size=10))
def test_reporting_the_average_never_scores_worse(data):
    """Everything replaced by the mean prediction: only the bias is left, and nobody scores less than the bias."""
    y, p, w = data
    flat = np.full(len(p), np.average(p, weights=w))
    for name in ("unbinned_ece", "ece", "smcal", "intcal", "ks_ce", "smece", "atb_l1", "laplace_kernel_ce"):
        function = getattr(tc, name)
        honest, lie = function(y, p, sample_weight=w), function(y, flat, sample_weight=w)
        assert lie <= honest * (1 + 1e-6) + SLACK or name in ("atb_l1", "laplace_kernel_ce"), name
    low = tc.distcal_bounds(y, flat, tolerance=1e-7, sample_weight=w).low
    assert low <= tc.distcal_bounds(y, p, tolerance=1e-7, sample_weight=w).high + SLACK
    for alpha in (2, 3):
        flat_ece = tc.unbinned_ece(y, flat, alpha=alpha, sample_weight=w)
        assert flat_ece <= tc.unbinned_ece(y, p, alpha=alpha, sample_weight=w) * (1 + 1e-9) + SLACK
    for norm in ("l1", "l2"):
        flat_ece = tc.binned_ece(y, flat, norm=norm, sample_weight=w)
        assert flat_ece <= tc.binned_ece(y, p, norm=norm, sample_weight=w) * (1 + 1e-9) + SLACK


@given(rows(min_size=2, max_size=5))
def test_reporting_the_average_never_raises_l2_distance(data):
    y, p = data
    flat = np.full(len(p), np.mean(p))
    high = tc.distcal_bounds(y, p, alpha=2, tolerance=1e-4).high
    assert tc.distcal_bounds(y, flat, alpha=2, tolerance=1e-4).low <= high + SLACK


@given(weighted_rows(min_size=2, max_size=8), st.data())
def test_merging_two_predictions_never_raises_ece(data, more):
    y, p, w = data
    assume(len(set(p)) > 1)
    one, two = more.draw(st.sampled_from(sorted(itertools.combinations(sorted(set(p)), 2))))
    both = np.isin(p, [one, two])
    merged = np.where(both, np.average(np.array(p)[both], weights=np.array(w)[both]), p)
    for alpha in (1, 2):
        before = tc.unbinned_ece(y, p, alpha=alpha, sample_weight=w)
        assert tc.unbinned_ece(y, merged, alpha=alpha, sample_weight=w) <= before * (1 + 1e-9) + SLACK


def test_merging_some_predictions_may_raise_the_smooth_measures():
    """So averaging is a theorem for all predictions at once (and for ECE); a stronger one would be false."""
    y, p, merged = [1, 1, 0], [0.5, 1.0, 0.25], [0.75, 0.75, 0.25]
    assert tc.smcal(y, merged) > tc.smcal(y, p) + 0.02
    assert tc.distcal(y, merged) > tc.distcal(y, p) + 0.02


def test_averaging_may_raise_atb():
    """Two predictions off to the same side: apart, their biases are squared one by one half of the time."""
    y, p = [0, 0], [0.0, 1.0]
    assert tc.atb(y, p) == pytest.approx(0.25)
    y, p = [1, 1], [0.0, 0.5]
    assert tc.atb(y, [0.25, 0.25]) > tc.atb(y, p) + 0.05


# --- averaging in expectation ------------------------------------------------------------------------------------------


@given(inner_probabilities, inner_probabilities)
def test_under_most_measures_the_average_pays_more_than_the_truth(one, two):
    """What the averaging theorem means: for any two different chances the honest report is expected to score worse."""
    assume(abs(one - two) > 0.05)
    chance = {y: (one if y[0] else 1 - one) * (two if y[1] else 1 - two) for y in itertools.product((0, 1), repeat=2)}
    flat = [(one + two) / 2] * 2
    for function in (tc.unbinned_ece, tc.smcal):
        honest = sum(c * function(y, [one, two]) for y, c in chance.items())
        lie = sum(c * function(y, flat) for y, c in chance.items())
        assert lie < honest - 1e-8
