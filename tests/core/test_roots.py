"""Roots of one function and of many at once: the same steps as scipy's root finder takes for each alone."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from truthcal.core.roots import find_root, find_roots, interval_end, interval_ends

FUNCTIONS = {
    "line": lambda x: 3.0 * x,
    "cubic": lambda x: x**3 + x,
    "tail": lambda x: math.tanh(5.0 * x),
    "step": lambda x: 1.0 if x > 0.0 else -2.0,
    "bent": lambda x: math.expm1(x) if x < 0.0 else 1e6 * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(
    root=st.floats(-50, 50),
    below=st.floats(1e-3, 100),
    above=st.floats(1e-3, 100),
    tolerance=st.sampled_from([2e-12, 1e-6, 1e-2]),
    swap=st.booleans(),
)
def test_against_scipy(name, root, below, above, tolerance, swap):
    visited, expected_visits = [], []

    def function(x, visits):
        visits.append(x)
        return FUNCTIONS[name](x - root)

    ends = (root + above, root - below) if swap else (root - below, root + above)
    expected = brentq(function, *ends, args=(expected_visits,), xtol=tolerance)
    assert find_root(lambda x: function(x, visited), *ends, xtol=tolerance) == expected
    assert visited == expected_visits


def test_a_root_at_an_end_is_returned():
    assert find_root(lambda x: x, 0.0, 1.0) == 0.0
    assert find_root(lambda x: x, -1.0, 0.0) == 0.0


def test_equal_signs_are_rejected():
    with pytest.raises(ValueError, match=r"must have different signs at a and b; got 1\.0 and 2\.0"):
        find_root(lambda x: x, 1.0, 2.0)


def test_nan_is_rejected():
    with pytest.raises(ValueError, match=r"must not be nan; it is at 0\.5"):
        find_root(lambda x: math.nan if x == 0.5 else x - 0.5, 0.0, 1.0)


def test_endless_searches_end():
    with pytest.raises(ArithmeticError, match="No root was found in 100 steps"):
        find_root(lambda x: 1.0 if x > 0.0 else -1.0, -0.3, 1.0, xtol=1e-300)


def test_values_that_underflow_are_bisected():
    assert find_root(lambda x: x**99, -0.3, 1.0) == pytest.approx(brentq(lambda x: x**99, -0.3, 1.0), abs=1e-3)


# --- many functions ---------------------------------------------------------------------------------------------------

RISING = {
    "line": lambda x: x - 0.3,
    "steep": lambda x: np.tanh(200.0 * (x - 0.7)),
    "flat": lambda x: (x - 0.01) ** 3 + 1e-3 * (x - 0.01),
    "tiny": lambda x: np.sqrt(x) - 1e-4,
    "below": lambda x: x - 2.0,
    "above": lambda x: x + 0.1,
    "root at 0": lambda x: x,
    "root at a quarter": lambda x: x - 0.25,
    "smallest": lambda x: x - 1e-14,
}
ALL = np.ones(len(RISING), np.bool_)


def together(x, wanted):
    """All functions, each at its own entry; nan where no value is wanted."""
    pairs = zip(RISING.values(), x, wanted, strict=True)
    return np.array([f(value) if ask else np.nan for f, value, ask in pairs])


def slow_end(f):
    """The root on [0, 1], by scipy alone."""
    if f(0.0) >= 0.0 or f(1.0) <= 0.0:
        return 0.0 if f(0.0) >= 0.0 else 1.0
    return brentq(f, 0.0, 1.0, xtol=1e-15, rtol=1e-14)


def test_interval_ends_against_scipy():
    expected = [slow_end(f) for f in RISING.values()]
    np.testing.assert_allclose(interval_ends(together, ALL), expected, rtol=2e-6, atol=2e-12)


def test_interval_ends_together_are_those_of_each_alone():
    alone = [interval_end(lambda x, f=f: float(f(x))) for f in RISING.values()]
    assert interval_ends(together, ALL).tolist() == alone
    some = np.arange(len(RISING)) % 2 == 0
    assert interval_ends(together, some).tolist() == np.where(some, alone, 0.0).tolist()


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 5)), min_size=1, max_size=8))
def test_find_roots_far_from_the_start(lines):
    root, slope = np.array(lines).T
    found = find_roots(lambda x, _: np.sinh(slope * (x - root)), np.zeros(len(root)), np.ones(len(root)), root < 1e9)
    np.testing.assert_allclose(found, root, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", RISING)
def test_steps_are_those_of_brentq(name):
    f, a, b = RISING[name], -3.0, 5.0
    if name == "tiny":
        a = 0.0
    seen, ours = [], []
    brentq(lambda x: seen.append(x) or f(x), a, b, xtol=1e-16 * (b - a), rtol=1e-15)

    def watched(x, _):
        ours.append(float(x[0]))
        return np.array([f(x[0])])

    find_roots(watched, np.array([a]), np.array([b - a]), np.array([True]))
    assert ours[:2] == [a, b]
    assert ours == seen


def test_a_search_without_end_is_an_error():
    with pytest.raises(ArithmeticError, match="No root was found in 100 steps"):
        find_roots(lambda x, _: (x - 0.01) ** 3, np.array([-3.0]), np.array([8.0]), np.array([True]))
