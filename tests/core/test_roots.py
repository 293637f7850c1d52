"""Brent's method takes the same steps as scipy's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from truthcal.core.roots import find_root

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
    with pytest.raises(ArithmeticError, match="no root was found in 100 steps"):
        find_root(lambda x: 1.0 if x > 0.0 else -1.0, -0.3, 1.0, xtol=1e-300)


def test_values_that_underflow_are_bisected():
    assert find_root(lambda x: x**99, -0.3, 1.0) == pytest.approx(brentq(lambda x: x**99, -0.3, 1.0), abs=1e-3)
