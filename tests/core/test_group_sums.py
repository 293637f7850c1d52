"""Group sums: moments against a loop over groups, and from random signs."""

import datetime as dt

import numpy as np
import pytest

from tests.oracles.groups import cell_vectors
from truthcal.core.checks import check_rows
from truthcal.core.group_column import check_groups
from truthcal.core.group_sums import GroupSums
from truthcal.core.sample import Sample


def _rows(rng, n=600, n_groups=40, weighted=False, ties=False):
    p = rng.random(n)
    p = np.round(p, 1) if ties else p
    y = (rng.random(n) < p).astype(float)
    w = rng.exponential(size=n) if weighted else None
    sizes = rng.dirichlet(np.full(n_groups, 0.3))
    groups = np.concatenate([np.arange(n_groups), rng.choice(n_groups, n - n_groups, p=sizes)])
    return y, p, w, groups


def _group_sums(y, p, w, groups):
    rows = check_rows(y, p, w)
    return GroupSums.of_rows(Sample.from_checked(rows).points(), rows, check_groups(groups, p, w))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [25, 300])
def test_moments_are_those_of_a_loop_over_groups(n_groups, weighted, ties):
    y, p, w, groups = _rows(np.random.default_rng(n_groups), 900, n_groups, weighted, ties)
    sums = _group_sums(y, p, w, groups)
    z, h = cell_vectors(y, p, w, groups, sums.cells.low, sums.cells.high)
    np.testing.assert_allclose(sums.errors, z.T @ z, atol=1e-15)
    np.testing.assert_allclose(sums.cross, z.T @ h, atol=1e-15)
    np.testing.assert_allclose(sums.weights, h.T @ h, atol=1e-15)
    np.testing.assert_allclose(sums.cells.bias, z.sum(0), atol=1e-15)
    assert sums.n_groups == n_groups
    assert sums.n_effective == pytest.approx(1.0 / np.sum(h.sum(1) ** 2))
    e = np.linspace(-0.1, 0.2, len(sums.cells))
    np.testing.assert_allclose(sums.covariance(e), (z - h * e).T @ (z - h * e), atol=1e-15)
    phi = np.random.default_rng(0).standard_normal((len(sums.cells), 5))
    np.testing.assert_allclose(np.sort(sums.group_squares(phi)), np.sort(np.sum((z @ phi) ** 2, 1)), atol=1e-15)


def test_moments_of_many_groups_in_blocks():
    rng = np.random.default_rng(1)
    y, p, w, groups = _rows(rng, 20_000, 1300)
    sums = _group_sums(y, p, w, groups)
    z, h = cell_vectors(y, p, w, groups, sums.cells.low, sums.cells.high)
    np.testing.assert_allclose(sums.errors, z.T @ z, atol=1e-15)
    np.testing.assert_allclose(sums.weights, h.T @ h, atol=1e-15)
    assert len(sums.group_squares(np.eye(len(sums.cells)))) == 1300


def test_random_signs_estimate_the_moments():
    rng = np.random.default_rng(2)
    y, p, w, groups = _rows(rng, 2000, 60)
    exact = _group_sums(y, p, w, groups)
    z, h = cell_vectors(y, p, w, groups, exact.cells.low, exact.cells.high)
    signs = rng.choice([-1.0, 1.0], (20_000, len(z)))
    flipped = GroupSums.of_flips(exact.cells, signs @ z / 20_000**0.5, signs @ h / 20_000**0.5, 60)
    assert flipped.slots == 20_000
    assert flipped.n_effective == pytest.approx(exact.n_effective, rel=0.05)
    assert np.trace(flipped.errors) == pytest.approx(np.trace(exact.errors), rel=0.02)
    assert np.sum(flipped.cross) == pytest.approx(np.sum(exact.cross), abs=0.05 * np.sum(exact.weights))


def test_the_design_effect_is_one_for_independent_rows_and_the_size_of_a_group_for_copies():
    rng = np.random.default_rng(3)
    p = rng.random(4000)
    y = rng.random(4000) < p
    alone = _group_sums(y, p, None, np.arange(4000))
    assert alone.design_effect == pytest.approx(1.0)
    assert alone.effective_rows == pytest.approx(4000)
    copies = _group_sums(np.repeat(y, 5), np.repeat(p, 5), None, np.repeat(np.arange(4000), 5))
    assert copies.design_effect == pytest.approx(5.0, rel=0.001)
    assert copies.effective_rows == pytest.approx(4000, rel=0.001)


# --- the column of groups ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [str, int, float, lambda k: dt.date(2024, 1, 1) + dt.timedelta(k), lambda k: (k, "a"), lambda k: f"é{k}".encode()],
)
def test_groups_of_any_hashable_type(value):
    numbers = np.repeat(np.arange(25), 3)
    coded = check_groups([value(int(k)) for k in numbers], np.full(75, 0.5))
    np.testing.assert_array_equal(coded[1:] == coded[:-1], numbers[1:] == numbers[:-1])
    assert len(set(coded.tolist())) == 25


def test_groups_of_other_containers():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    numbers = np.repeat(np.arange(25), 3)
    text = [f"g{k}" for k in numbers]
    for column in (
        pd.Series(text, dtype="category"),
        pd.Series(text, dtype="string"),
        pl.Series(text),
        pd.to_datetime(pd.Series(numbers), unit="D"),
        pl.Series(numbers),
    ):
        assert len(set(check_groups(column, np.full(75, 0.5)).tolist())) == 25


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_group_is_an_error(missing):
    groups = [*range(30), missing]
    with pytest.raises(ValueError, match=r"`groups` has a missing value \(.*\) at row 30 \(1 of 31 rows\)"):
        check_groups(np.array(groups, object), np.full(31, 0.5))


def test_a_missing_number_or_time_is_an_error():
    with pytest.raises(ValueError, match=r"`groups` has a missing value \(nan\) at row 1 "):
        check_groups(np.array([1.0, np.nan, 3.0]), np.full(3, 0.5))
    with pytest.raises(ValueError, match=r"`groups` has a missing value \(.*NaT.*\) at row 0 "):
        check_groups(np.array(["NaT", "2024-01-01"], "datetime64[D]"), np.full(2, 0.5))


def test_too_few_groups_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="`groups` has 19 different values; at least 20 groups are needed, because"):
        check_groups(np.arange(100) % 19, np.full(100, 0.5))
    w = np.ones(40)
    w[20:] = 0.0
    w[:2] = 0.0
    with pytest.raises(ValueError, match="`groups` has 18 different values"):
        check_groups(np.arange(40), np.full(40, 0.5), w)


def test_groups_of_another_length_or_type_are_errors():
    with pytest.raises(ValueError, match="`groups` has 3 rows but `y_proba` has 4"):
        check_groups([1, 2, 3], np.full(4, 0.5))
    groups = np.empty(2, object)
    groups[:] = [["a"], ["b"]]
    with pytest.raises(TypeError, match=r"`groups` must hold values that can be compared.*found \['a'\] at row 0"):
        check_groups(groups, np.full(2, 0.5))
    with pytest.raises(ValueError, match="`groups` must be one-dimensional"):
        check_groups(np.zeros((2, 2)), np.full(2, 0.5))
