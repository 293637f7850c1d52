"""The grid of a sketch: against exact fractions, in order, symmetric, and the same for all rows of all kinds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import grid as oracle
from support.grid_cases import grid_cases
from support.strategies import SPECIAL, examples

import truthcal as tc
from truthcal.core.grid import LEAST_GRADED, Grid

SIZES = [1, 2, 64, 128, 256, 4096]
sizes = st.sampled_from([*SIZES, 2**14, 2**20])
# All magnitudes from subnormal numbers on, and the same distances to 1.
probabilities = st.one_of(
    st.sampled_from([*SPECIAL, 5e-324, 1 - 2.0**-53]),
    st.floats(0, 1),
    st.floats(0, 1).map(lambda x: 1.0 - x),
    st.builds(lambda x, power: x * 0.5**power, st.floats(0, 1), st.integers(0, 30)),
    st.builds(lambda x, power: 1.0 - x * 0.5**power, st.floats(0, 1), st.integers(0, 30)),
)


@examples(200)
@given(st.lists(probabilities, min_size=1), sizes)
def test_index_against_fractions(p, n_buckets):
    assert tc.bucket_index(p, n_buckets).tolist() == [oracle.bucket_of(x, n_buckets) for x in p]


@pytest.mark.parametrize("n_buckets", SIZES)
def test_edges_against_fractions(n_buckets):
    grid, expected = Grid.of_size(n_buckets), oracle.edges_of(n_buckets)
    assert [Fraction(edge) for edge in grid.edges.tolist()] == expected
    assert len(expected) == n_buckets + 1
    np.testing.assert_array_equal(grid.edges, 1.0 - grid.edges[::-1])
    numbers = np.arange(n_buckets)
    np.testing.assert_array_equal(grid.index(grid.edges[:-1]), numbers)
    np.testing.assert_array_equal(grid.index(np.nextafter(grid.edges[1:], 0)), numbers)


@pytest.mark.parametrize("n_buckets", [2**14, 2**20])
def test_edges_of_large_grids_are_in_order_and_symmetric(n_buckets):
    grid = Grid.of_size(n_buckets)
    assert len(grid.edges) == n_buckets + 1
    assert (np.diff(grid.edges) > 0).all()
    np.testing.assert_array_equal(grid.edges, 1.0 - grid.edges[::-1])
    np.testing.assert_array_equal(grid.index(grid.edges), [*range(n_buckets), n_buckets - 1])


@given(probabilities, probabilities, sizes)
def test_index_is_monotone_and_symmetric(p, q, n_buckets):
    p, q = sorted((p, q))
    grid = Grid.of_size(n_buckets)
    low, high = grid.index(np.array([p, q]))
    assert 0 <= low <= high < n_buckets
    if Fraction(1.0 - p) == 1 - Fraction(p) and p not in grid.edges:
        assert grid.index(np.array([1.0 - p])) == n_buckets - 1 - low


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_buckets", [64, 4096])
def test_edge_cases_of_all_engines_against_fractions(dtype, n_buckets):
    p = np.array(grid_cases(n_buckets), dtype)
    expected = [oracle.bucket_of(float(x), n_buckets) for x in p]
    assert tc.bucket_index(p, n_buckets).tolist() == expected
    assert min(expected) == 0
    assert max(expected) == n_buckets - 1


@pytest.mark.parametrize("n_buckets", [64, 4096])
def test_all_kinds_of_rows_have_the_same_buckets(n_buckets):
    p = np.array(grid_cases(n_buckets))
    expected = np.bincount(tc.bucket_index(p, n_buckets), minlength=n_buckets)
    for y in (np.zeros(len(p)), np.ones(len(p)), np.full(len(p), 0.5)):
        for weight in (None, np.full(len(p), 2.0)):
            table = tc.Sketch(n_buckets).update(y, p, weight).table()
            np.testing.assert_array_equal(table["bucket"], np.flatnonzero(expected))
            np.testing.assert_array_equal(table["n"], expected[expected > 0])
            assert (table["left"] <= table["min"]).all()
            assert ((table["max"] < table["right"]) | (table["right"] == 1.0)).all()


@pytest.mark.parametrize("label", [0, 1])
def test_sums_of_one_row_are_its_own_at_every_edge(label):
    """Sums are added as distances to edges, in units of the bucket's width."""
    for p in grid_cases(4096):
        table = tc.Sketch().update([label], [p]).table()
        c = p - label
        expected = {"wp": p, "pos": max(c, 0.0), "neg": max(-c, 0.0), "wcp": c * p, "wcc": c * c, "wwv": p * (1.0 - p)}
        for name, value in expected.items():
            assert table[name][0] == pytest.approx(value, rel=1e-15, abs=1e-16 * abs(c)), (p, name)


def test_widths_are_powers_of_two_and_finer_towards_both_ends():
    widths = np.diff(Grid.of_size(4096).edges)
    assert (np.frexp(widths)[0] == 0.5).all()
    assert (np.diff(widths[:2048]) >= 0).all()
    assert (widths[2047], widths[0]) == (2.0**-11, 2.0**-20)
    assert (np.diff(Grid(4096, False).edges) == 2.0**-12).all()


def test_grids_have_names_and_sizes():
    assert str(Grid.of_size(4096)) == "4,096 graded buckets"
    assert str(Grid(4096, False)) == "4,096 buckets of equal width"
    assert not Grid.of_size(LEAST_GRADED // 2).graded
    possible = [(1, False), (64, False), (128, True), (2**20, True), (2**20, False)]
    impossible = [(0, False), (5, False), (64, True), (2**21, True), (4097, True)]
    assert all(Grid(*arguments).is_possible for arguments in possible)
    assert not any(Grid(*arguments).is_possible for arguments in impossible)


# --- what the grid is for ----------------------------------------------------------------------------------------------

# Widths of the bounds with 4096 buckets of equal width and without Lemma A1, measured before there were graded ones.
BEFORE = {"uniform": (3.80e-9, 3.96e-9), "rare": (5.13e-11, 5.35e-11)}


@pytest.mark.parametrize(("n", "before"), [(100_000, 0), (1_000_000, 1)])
def test_bounds_are_as_close_for_uniform_and_a_hundred_times_closer_for_rare_events(n, before):
    rng = np.random.default_rng(0)
    designs = {"uniform": rng.random(n), "rare": np.exp(rng.uniform(math.log(1e-4), math.log(1e-2), n))}
    for name, p in designs.items():
        y = rng.random(n) < p
        bounds, exact = tc.Sketch().update(y, p).atb(), tc.atb(y, p)
        assert bounds.low <= exact <= bounds.high
        assert bounds.width <= BEFORE[name][before] * {"uniform": 1.4, "rare": 1 / 140}[name]
