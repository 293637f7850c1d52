"""Rows and sketches as a few hundred points: sums, eigenvalues, coordinates."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from support.strategies import weighted_rows

import truthcal as tc
from truthcal.core.sample import Sample
from truthcal.inference.cells import Cells, axes_of, bucket_sample, tent_measure
from truthcal.inference.laws.tent_kernel import TentKernel, null_moments
from truthcal.measures.registry import TENTS

DESIGNS = {
    "uniform": lambda rng, n: rng.random(n),
    "beta": lambda rng, n: rng.beta(2, 2, n),
    "rare": lambda rng, n: rng.beta(1, 49, n),
    "tied": lambda rng, n: np.round(rng.random(n), 1),
    "narrow": lambda rng, n: 0.5 + 1e-6 * rng.random(n),
    "ends": lambda rng, n: np.where(rng.random(n) < 0.5, np.round(rng.random(n)), rng.random(n)),
}


def some_rows(n, design="uniform", *, weighted=False, seed=0, slope=0.7):
    rng = np.random.default_rng(seed)
    p = DESIGNS[design](rng, n)
    y = (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(int)
    return y, p, rng.exponential(1.0, n) if weighted else None


def direct_sums(y, p, w):
    """x -> (s, a, q, u, d), row by row, and the sum of w^2 / W^2."""
    total, sums = math.fsum(w), {}
    for yi, pi, wi in zip(y, p, w, strict=True):
        share, c = wi / total, pi - yi
        row = np.array([share * c, share**2 * pi * (1 - pi), (share * c) ** 2, share**2 * c, share**2])
        sums[pi + 0.0] = sums.get(pi + 0.0, 0) + row
    return sums, math.fsum((wi / total) ** 2 for wi in w)


# --- sums -------------------------------------------------------------------------------------------------------------


@given(weighted_rows(max_size=15), st.booleans())
def test_cells_hold_the_sums_of_their_rows(data, weighted):
    y, p, w = data
    w = w if weighted else [1.0] * len(p)
    cells = Cells.of_sample(Sample.of(y, p, w if weighted else None))
    sums, ww = direct_sums(y, p, w)
    some = sorted(sums)
    assert cells.x.tolist() == some
    assert cells.ww == pytest.approx(ww, rel=1e-12, abs=0)
    expected = np.array([sums[x] for x in some]).reshape(-1, 5).T
    for name, column in zip("saqud", expected, strict=True):
        np.testing.assert_allclose(getattr(cells, name), column, rtol=1e-11, atol=1e-15, err_msg=name)


def test_predictions_of_no_noise_have_a_place():
    cells = Cells.of_sample(Sample.of([0, 1, 0, 1], [0.0, 1.0, 0.3, 1.0]))
    assert cells.x.tolist() == [0.0, 0.3, 1.0]
    assert cells.d.tolist() == [1 / 16, 1 / 16, 2 / 16]
    assert cells.ww == 0.25
    certain = Cells.of_sample(Sample.of([0, 1], [0.0, 1.0]))
    assert certain.null_scales(TentKernel(np.ones(1), np.ones(1))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_merging_keeps_totals_and_order(design, weighted):
    sample = Sample.of(*some_rows(3000, design, weighted=weighted))
    fine = Cells.of_sample(sample, most=10**6)
    for most in (1, 2, 96, 384):
        cells = Cells.of_sample(sample, most)
        assert 1 <= len(cells.x) <= most
        assert (np.diff(cells.x) > 0).all()
        assert fine.x[0] <= cells.x[0] <= cells.x[-1] <= fine.x[-1]
        for name in "saqud":
            size = np.abs(getattr(fine, name)).sum()
            assert getattr(cells, name).sum() == pytest.approx(getattr(fine, name).sum(), rel=0, abs=1e-12 * size)
        assert cells.ww == fine.ww


def test_merged_cells_have_about_equal_noise():
    cells = Cells.of_sample(Sample.of(*some_rows(20_000, "rare")), 100)
    noise = cells.a + cells.q
    assert len(noise) > 80
    assert noise.max() < 3 * noise.mean()


@pytest.mark.parametrize("design", DESIGNS)
def test_cells_of_a_sketch_are_those_of_its_rows_bucket_by_bucket(design):
    y, p, _ = some_rows(2000, design)
    cells = Cells.of_sketch(tc.Sketch(64).update(y, p), most=1000)
    bucket, n = tc.bucket_index(p, 64), len(p)
    c = p - y
    columns = {"s": c / n, "a": p * (1 - p) / n**2, "q": c**2 / n**2, "u": c / n**2}
    columns["d"] = np.full(n, 1 / n**2)
    filled = np.flatnonzero(np.bincount(bucket))
    np.testing.assert_allclose(cells.x, (np.bincount(bucket, p) / np.maximum(np.bincount(bucket), 1))[filled])
    for name, column in columns.items():
        expected = np.bincount(bucket, column)[filled]
        np.testing.assert_allclose(getattr(cells, name), expected, rtol=1e-9, atol=1e-15, err_msg=name)
    assert cells.ww == pytest.approx(1 / n, rel=1e-12, abs=0)


def test_cells_of_a_weighted_sketch_are_exact_but_for_u():
    y, p, w = some_rows(4000, weighted=True)
    sample, sketch = Sample.of(y, p, w), tc.Sketch().update(y, p, w)
    rows, buckets = (make(x, 200) for make, x in ((Cells.of_sample, sample), (Cells.of_sketch, sketch)))
    for name in "saq":
        assert getattr(buckets, name).sum() == pytest.approx(getattr(rows, name).sum(), rel=1e-11, abs=0)
    assert buckets.ww == pytest.approx(rows.ww, rel=1e-12, abs=0)
    # w^2 c is not in a sketch; w for its mean in the bucket is right up to chance, of one standard error or so
    chance = math.sqrt(np.sum((w / w.sum()) ** 4 * (p - y) ** 2))
    assert abs(buckets.u.sum() - rows.u.sum()) < 4 * chance


def test_bucket_sample_has_the_means_of_the_buckets():
    y, p, w = some_rows(500, weighted=True)
    rows = bucket_sample(tc.Sketch(8).update(y, p, w))
    bucket = tc.bucket_index(p, 8)
    weight = np.bincount(bucket, w)
    np.testing.assert_allclose(rows.w, weight)
    np.testing.assert_allclose(rows.p, np.bincount(bucket, w * p) / weight)
    np.testing.assert_allclose(rows.y, np.bincount(bucket, w * y) / weight)


# --- eigenvalues ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("measure", TENTS)
def test_null_scales_add_up_to_the_null_moments(measure, design, weighted):
    y, p, w = some_rows(120, design, weighted=weighted)
    sample = Sample.of(y, p, w)
    kernel = TentKernel.of(measure, sample)
    scales = Cells.of_sample(sample, most=1000).null_scales(kernel)
    assert (scales >= 0).all()
    assert scales.sum() == pytest.approx(tc.atb_summary(y, p, sample_weight=w).noise_floor, rel=1e-9, abs=0)
    # The leading part of the null variance, row by row with the definition of the kernel.
    w = np.ones(len(p)) if w is None else w
    a = w**2 * p * (1 - p) / w.sum() ** 2
    k = sum(
        share * np.maximum(1 - np.abs(p[:, None] - p) / width, 0)
        for width, share in zip(kernel.widths, kernel.shares, strict=True)
    )
    leading = 2 * a @ k**2 @ a
    assert 2 * np.sum(scales**2) == pytest.approx(leading, rel=1e-8, abs=0)
    own = np.sum(w**4 * p * (1 - p) * (1 - 6 * p * (1 - p))) / w.sum() ** 4
    assert null_moments(kernel, sample).sd ** 2 == pytest.approx(leading + own, rel=1e-8, abs=0)


@pytest.mark.parametrize("measure", TENTS)
def test_few_cells_have_the_eigenvalues_of_many(measure):
    sample = Sample.of(*some_rows(480))
    kernel = TentKernel.of(measure, sample)
    all_of_them = Cells.of_sample(sample, most=480).null_scales(kernel)
    few = Cells.of_sample(sample, most=120).null_scales(kernel)
    assert few.sum() == pytest.approx(all_of_them.sum(), rel=1e-10, abs=0)
    np.testing.assert_allclose(few[-8:], all_of_them[-8:], rtol=2e-3, atol=1e-3 * few[-1])


def test_eigenvalues_of_two_points_by_hand():
    tent, y = TentKernel(np.ones(1), np.ones(1)), [0, 1]
    tied = Cells.of_sample(Sample.of(y, [0.5, 0.5])).null_scales(tent)
    np.testing.assert_allclose(tied, [0.125], rtol=1e-12)
    a = 0.375 * 0.625 / 4  # of each; the kernel between them is 3/4
    apart = Cells.of_sample(Sample.of(y, [0.375, 0.625])).null_scales(tent)
    np.testing.assert_allclose(apart, [a * 0.25, a * 1.75], rtol=1e-12)


# --- coordinates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("measure", TENTS)
def test_inner_products_of_axes_are_the_kernel(measure, design):
    sample = Sample.of(*some_rows(400, design))
    kernel = TentKernel.of(measure, sample)
    x = sample.groups.r
    phi = axes_of(x, kernel)
    np.testing.assert_allclose(phi @ phi.T, kernel.matrix(x), rtol=0, atol=2e-12 * len(x))


def test_axes_of_points_one_ulp_apart_exist():
    x = np.array([0.5, np.nextafter(0.5, 1), 0.5 + 3e-16, 0.5 + 1e-12, np.nextafter(1.0, 0), 1.0])
    phi = axes_of(x, TentKernel(np.array([1.0, 0.25]), np.array([0.5, 0.5])))
    assert np.isfinite(phi).all()
    np.testing.assert_allclose(phi[0] @ phi[1], 1.0, rtol=1e-10)


@pytest.mark.parametrize(("width", "share"), [((1.0,), (1.0,)), ((1.0, 0.25, 1 / 32), (0.2, 0.3, 0.5))])
def test_matrix_against_oracle(width, share):
    x = np.array([0.0, 0.125, 0.3, 0.31, 0.9, 1.0])
    k = TentKernel(np.array(width), np.array(share)).matrix(x)
    for i, a in enumerate(x):
        for j, b in enumerate(x):
            expected = sum(s * oracles.tent(h)(a, b) for h, s in zip(width, share, strict=True))
            assert k[i, j] == pytest.approx(expected, rel=1e-13, abs=1e-16)


# --- measures of a sketch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("measure", TENTS)
def test_tent_measure_of_a_sketch_is_off_by_little_of_the_null_spread(measure, design, weighted):
    for slope, seed in ((1.0, 0), (1.0, 1), (0.7, 2)):
        y, p, w = some_rows(10_000, design, weighted=weighted, seed=seed, slope=slope)
        sample, sketch = Sample.of(y, p, w), tc.Sketch(16_384).update(y, p, w)
        spread = null_moments(TentKernel.of(measure, sample), sample).sd
        exact = tc.MEASURES[measure].of_sample(sample)
        error = abs(tent_measure(sketch, TentKernel.of(measure, bucket_sample(sketch))) - exact)
        # Measured: 5e-3 of the spread at most if calibrated, and 2e-4 of a value far above it ("ends").
        assert error < 0.01 * spread + (5e-4 * exact if slope < 1 else 0.0)


def test_tent_measure_is_exact_where_each_bucket_holds_one_value():
    y, p, w = some_rows(2000, "tied", weighted=True)
    sketch, sample = tc.Sketch().update(y, p, w), Sample.of(y, p, w)
    for measure in TENTS:
        found = tent_measure(sketch, TentKernel.of(measure, sample))
        assert found == pytest.approx(tc.MEASURES[measure].of_sample(sample), rel=1e-9, abs=0)


def test_tent_measure_of_atb_lies_in_the_certified_bounds():
    y, p, _ = some_rows(5000)
    sketch = tc.Sketch(256).update(y, p)
    bounds = sketch.atb()
    assert bounds.low <= tent_measure(sketch, TentKernel(np.ones(1), np.ones(1))) <= bounds.high
