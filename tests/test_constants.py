"""Constants of docs/theory/foundations.md: each is attained or approached, and no search exceeds it."""

import importlib.util
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg
from support.strategies import examples, probabilities, rows, weighted_rows

import truthcal as tc

SLACK = 1e-12


@pytest.fixture(scope="module")
def constants():
    """Load benchmarks/constants.py."""
    path = Path(__file__).parents[1] / "benchmarks" / "constants.py"
    spec = importlib.util.spec_from_file_location("constants_benchmark", path)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_worst_ratios_stay_below_the_constants(constants):
    """A short search from the worst known populations and from random ones; `make paper` prints a longer one."""
    found = constants.worst_ratios(steps=2)
    for row in found:
        assert row.worst <= row.proved * (1 + 1e-6), row
        assert row.worst <= row.paper or math.isnan(row.paper), row
    nearly = {row.statement: row.worst / row.proved for row in found}
    for statement in ("distCal^2 <= 2 ATB", "distCal <= ATB_l1", "distCal <= 2 smCal", "ATB_l1 <= 2 smCal"):
        assert nearly[statement] > 0.97
    for statement in ("smCal^2 <= (5/2) ATB", "smCal <= (3/2) ATB_l1", "ATB moves by at most 4 mean |dr|"):
        assert nearly[statement] > 0.97
    for statement in ("smCal <= 2 distCal", "ATB_l1 <= 3 distCal"):
        assert nearly[statement] > 0.97


# --- F6: Lipschitz constants ------------------------------------------------------------------------------------------


@given(rows(max_size=12), st.data(), st.sampled_from([1.0, 0.5, 0.3, 0.1]))
def test_lipschitz(data, more, width):
    y, p = data
    other = more.draw(st.lists(probabilities, min_size=len(p), max_size=len(p)))
    moved = float(np.mean(np.abs(np.subtract(p, other))))
    for measure, constant in ((tc.atb, 4), (tc.atb_l1, 3), (tc.smcal, 2)):
        assert abs(measure(y, p) - measure(y, other)) <= constant * moved + SLACK
    change = tc.shifted_grid_ubse(y, p, width=width) - tc.shifted_grid_ubse(y, other, width=width)
    assert abs(change) <= 2 * (1 + 1 / width) * moved + SLACK


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_lipschitz_constant_of_atb_is_attained(n):
    """All predictions 1, no event happens, one prediction is lowered by x: the ratio is 4 - 2/n up to 2x."""
    lowered, step = np.ones(n), 1e-6
    lowered[0] -= step
    ratio = (1.0 - tc.atb(np.zeros(n), lowered)) * n / step
    assert ratio == pytest.approx(4 - 2 / n, abs=1e-4)


# --- F8, F9, F10: soundness of the UBSEs ------------------------------------------------------------------------------


def factor(width):
    """Return the factor of F8: the eigenvalue if 1/width is whole, and the bound for every width otherwise."""
    lines = math.ceil(1 / width - 1e-9)
    if abs(lines * width - 1) > 1e-9:
        return lines**2 * width
    numbers = np.arange(lines + 1)
    return width * linalg.eigvalsh(lines - np.abs(numbers[:, None] - numbers))[-1]


@given(weighted_rows(max_size=12), st.one_of(st.sampled_from([1, 1 / 2, 1 / 3, 1 / 4, 1 / 32]), st.floats(0.05, 1)))
def test_atb_is_bounded_by_the_shifted_grid(data, width):
    y, p, w = data
    atb = tc.atb(y, p, sample_weight=w)
    assert atb <= factor(width) * tc.shifted_grid_ubse(y, p, width=width, sample_weight=w) * (1 + 1e-9) + SLACK
    assert atb <= 32 * tc.multiscale_atb(y, p, sample_weight=w) * (1 + 1e-9) + SLACK


@pytest.mark.parametrize("lines", [1, 2, 4, 10])
def test_factor_of_the_shifted_grid(lines):
    """The factor is at most the number of lines, and the leading eigenvector nearly attains it."""
    numbers = np.arange(lines + 1)
    values, vectors = linalg.eigh(lines - np.abs(numbers[:, None] - numbers))
    assert values[-1] / lines <= lines
    assert values[-1] / lines == pytest.approx(factor(1 / lines))
    p = 1e-4 + (1 - 2e-4) * numbers / lines
    w = np.abs(vectors[:, -1]) / p  # outcomes are 0, so the bias of a row is proportional to w p
    width = (1 - 2e-4) / lines
    ratio = tc.atb(0 * p, p, sample_weight=w) / tc.shifted_grid_ubse(0 * p, p, width=width, sample_weight=w)
    assert ratio == pytest.approx(factor(1 / lines), rel=1e-3)


def quantile_limit(n, ties):
    """Return quantile_ece without noise (outcomes are true probabilities), and l2-ECE."""
    p = (np.arange(n) + 0.5) / n
    if ties:
        p = np.where(p < 0.3, 0.15, p)  # an atom beside a continuous part
    truth = np.clip(p + 0.2 * np.sin(9 * p), 0, 1)
    return tc.quantile_ece(truth, p), float(np.mean((p - truth) ** 2))


@pytest.mark.parametrize("ties", [False, True])
def test_quantile_ece_converges_to_l2_ece(ties):
    errors = []
    for n in (100, 3000, 100_000):
        value, limit = quantile_limit(n, ties)
        errors.append(abs(value - limit) / limit)
        k = round(n ** (1 / 3))
        assert value / k <= 1 / k + 1 / n  # without the factor k, the measure goes to 0
    assert errors[1] < errors[0] / 2
    assert errors[2] < 0.01


# --- F14, F23: smCal and distCal --------------------------------------------------------------------------------------


@examples(40)
@given(weighted_rows(max_size=6))
def test_isotonic_identity(data):
    """smCal is |S| plus the L1 distance of the cumulative bias to monotone curves, here by a minimum over all blocks.

    An optimal monotone curve takes only values of the (clipped) cumulative bias, its ends included.
    """
    y, p, w = (np.array(column, float) for column in data)
    predictions = np.unique(p)
    steps = np.array([np.sum((w * (p - y))[p == v]) for v in predictions]) / w.sum()
    curve, gaps, bias = np.cumsum(steps)[:-1], np.diff(predictions), steps.sum()
    sign = 1.0 if bias >= 0 else -1.0
    values = sorted({0.0, sign * bias, *np.clip(sign * curve, 0, sign * bias)})
    monotone = itertools.combinations_with_replacement(values, len(curve))
    distance = min(float(np.sum(gaps * np.abs(sign * curve - np.array(h)))) for h in monotone)
    assert tc.smcal(y, p, sample_weight=w) == pytest.approx(abs(bias) + distance, abs=1e-12)


@examples(60)
@given(weighted_rows(max_size=10, outcomes=st.floats(0, 1)))
def test_distcal_is_at_most_atb_l1(data):
    y, p, w = data
    if set(p) <= {0.0, 1.0}:
        return
    low = tc.distcal_bounds(y, p, tolerance=1e-7, sample_weight=w).low
    assert low <= tc.atb_l1(y, p, sample_weight=w) * (1 + 1e-9) + SLACK
    assert low**2 <= 2 * tc.atb(y, p, sample_weight=w) * (1 + 1e-9) + SLACK


@pytest.mark.parametrize("x", [0.01, 0.1, 0.25, 0.4])
def test_distcal_is_atb_l1_for_underconfident_predictions(x):
    y, p = [0, 1], [x, 1 - x]
    bounds = tc.distcal_bounds(y, p, tolerance=1e-8)
    assert bounds.low == pytest.approx(x * (1 - 2 * x), abs=1e-8)
    assert tc.atb_l1(y, p) == pytest.approx(x * (1 - 2 * x))
    assert tc.smcal(y, p) == pytest.approx(x * (1 - 2 * x) / 2)
    assert tc.atb(y, p) == pytest.approx(x**2 * (1 - 2 * x) / 2)


# --- M8, M9: the upper distance to calibration ------------------------------------------------------------------------


def set_partitions(items):
    """Generate all ways to divide a list into groups."""
    if not items:
        yield []
        return
    first, *others = items
    for groups in set_partitions(others):
        yield [[first], *groups]
        for i, group in enumerate(groups):
            yield [*groups[:i], [first, *group], *groups[i + 1 :]]


def upper_distance(y, p, w):
    """Return the smallest mean |u - v| over calibrated functions u of the row: each group goes to its mean outcome."""
    y, p, w = (np.array(column, float) for column in (y, p, w))

    def cost(group):
        return np.sum(w[group] * np.abs(p[group] - np.average(y[group], weights=w[group])))

    return min(sum(cost(group) for group in groups) for groups in set_partitions(list(range(len(p))))) / w.sum()


@examples(30)
@given(weighted_rows(max_size=6))
def test_upper_distance_is_bracketed(data):
    y, p, w = data
    values, where = np.unique(p, return_inverse=True)
    weight = np.bincount(where, w)
    upper = upper_distance(np.bincount(where, np.multiply(w, y)) / weight, values, weight)
    low = tc.distcal_bounds(y, p, tolerance=1e-7, sample_weight=w)
    assert low.low <= upper + SLACK
    assert upper <= tc.unbinned_ece(y, p, sample_weight=w) + SLACK
    assert upper <= tc.intcal(y, p, sample_weight=w) + SLACK
    assert tc.intcal(y, p, sample_weight=w) <= low.high + 2 * math.sqrt(2 * low.high) + SLACK


@pytest.mark.parametrize(("items", "divisible"), [((1, 2, 3), True), ((1, 1, 3), False), ((3, 1, 2, 2), True)])
def test_upper_distance_solves_the_partition_problem(items, divisible):
    """Two anchors that need half of the items each: the upper distance is the lower one if they can be halved."""
    total = sum(items)
    p = [0.2, 0.3] + [0.25] * len(items)
    y = [0, 0] + [1] * len(items)
    w = [2 * total, 7 * total / 6, *items]
    lower = tc.distcal_bounds(y, p, tolerance=1e-8, sample_weight=w)
    assert lower.low == pytest.approx(0.012, abs=1e-7)
    assert (upper_distance(y, p, w) < 0.012 + 1e-9) == divisible
