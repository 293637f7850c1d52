"""Roots of many functions at once: against scipy's root finder for each alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from truthcal.inference.laws.roots import find_roots, interval_end, interval_ends

FUNCTIONS = {
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
ALL = np.ones(len(FUNCTIONS), np.bool_)


def together(x, wanted):
    """All functions, each at its own entry; nan where no value is wanted."""
    pairs = zip(FUNCTIONS.values(), x, wanted, strict=True)
    return np.array([f(value) if ask else np.nan for f, value, ask in pairs])


def slow_end(f):
    """The root on [0, 1], by scipy alone."""
    if f(0.0) >= 0.0 or f(1.0) <= 0.0:
        return 0.0 if f(0.0) >= 0.0 else 1.0
    return optimize.brentq(f, 0.0, 1.0, xtol=1e-15, rtol=1e-14)


def test_interval_ends_against_scipy():
    expected = [slow_end(f) for f in FUNCTIONS.values()]
    np.testing.assert_allclose(interval_ends(together, ALL), expected, rtol=2e-6, atol=2e-12)


def test_interval_ends_together_are_those_of_each_alone():
    alone = [interval_end(lambda x, f=f: float(f(x))) for f in FUNCTIONS.values()]
    assert interval_ends(together, ALL).tolist() == alone
    some = np.arange(len(FUNCTIONS)) % 2 == 0
    assert interval_ends(together, some).tolist() == np.where(some, alone, 0.0).tolist()


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 5)), min_size=1, max_size=8))
def test_find_roots_far_from_the_start(lines):
    root, slope = np.array(lines).T
    found = find_roots(lambda x, _: np.sinh(slope * (x - root)), np.zeros(len(root)), np.ones(len(root)), root < 1e9)
    np.testing.assert_allclose(found, root, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_are_those_of_brentq(name):
    f, a, b = FUNCTIONS[name], -3.0, 5.0
    if name == "tiny":
        a = 0.0
    seen, ours = [], []
    optimize.brentq(lambda x: seen.append(x) or f(x), a, b, xtol=1e-16 * (b - a), rtol=1e-15)

    def watched(x, _):
        ours.append(float(x[0]))
        return np.array([f(x[0])])

    find_roots(watched, np.array([a]), np.array([b - a]), np.array([True]))
    assert ours[:2] == [a, b]
    assert ours == seen


def test_a_search_without_end_is_an_error():
    with pytest.raises(ArithmeticError, match="No root was found in 100 steps"):
        find_roots(lambda x, _: (x - 0.01) ** 3, np.array([-3.0]), np.array([8.0]), np.array([True]))
