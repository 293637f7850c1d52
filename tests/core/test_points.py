"""Points of sorted rows and of sketches: sums, merging; and the eigenvalues and coordinates of their tent kernel."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from support.strategies import weighted_rows

import truthcal as tc
from truthcal.core.points import Points, excess
from truthcal.core.sample import Sample
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


COLUMNS = ("bias", "wwv", "wwcc", "wwc", "ww")


def direct_sums(y, p, w):
    """x -> sums in the order of COLUMNS, row by row, and the sum of w^2 / W^2."""
    total, sums = math.fsum(w), {}
    for yi, pi, wi in zip(y, p, w, strict=True):
        share, c = wi / total, pi - yi
        row = np.array([share * c, share**2 * pi * (1 - pi), (share * c) ** 2, share**2 * c, share**2])
        sums[pi + 0.0] = sums.get(pi + 0.0, 0) + row
    return sums, math.fsum((wi / total) ** 2 for wi in w)


# --- sums -------------------------------------------------------------------------------------------------------------


@given(weighted_rows(max_size=15), st.booleans())
def test_points_hold_the_sums_of_their_rows(data, weighted):
    y, p, w = data
    w = w if weighted else [1.0] * len(p)
    points = Sample.of(y, p, w if weighted else None).points().normalized()
    sums, ww = direct_sums(y, p, w)
    some = sorted(sums)
    assert points.p.tolist() == points.low.tolist() == points.high.tolist() == some
    assert points.one_row == pytest.approx(ww, rel=1e-12, abs=0)
    expected = np.array([sums[x] for x in some]).reshape(-1, 5).T
    for name, column in zip(COLUMNS, expected, strict=True):
        np.testing.assert_allclose(getattr(points, name), column, rtol=1e-11, atol=1e-15, err_msg=name)


def test_predictions_of_no_noise_have_a_place():
    points = Sample.of([0, 1, 0, 1], [0.0, 1.0, 0.3, 1.0]).points().normalized()
    assert points.p.tolist() == [0.0, 0.3, 1.0]
    assert points.ww.tolist() == [1 / 16, 1 / 16, 2 / 16]
    assert points.one_row == 0.25
    certain = Sample.of([0, 1], [0.0, 1.0]).points()
    assert TentKernel(np.ones(1), np.ones(1)).null_scales(certain).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
def test_merging_keeps_totals_and_order(design, weighted):
    sample = Sample.of(*some_rows(3000, design, weighted=weighted))
    fine = sample.points()
    for most in (1, 2, 96, 384):
        cells = fine.merged(most)
        assert 1 <= len(cells) <= most
        assert (np.diff(cells.p) > 0).all()
        assert fine.p[0] <= cells.p[0] <= cells.p[-1] <= fine.p[-1]
        assert ((cells.low <= cells.p) & (cells.p <= cells.high)).all()
        for name in (*COLUMNS, "n", "weight", "wp", "wy", "wcp"):
            size = np.abs(getattr(fine, name)).sum()
            assert getattr(cells, name).sum() == pytest.approx(getattr(fine, name).sum(), rel=0, abs=1e-12 * size)
        assert cells.cumulative[-1] == fine.cumulative[-1]
        for name in ("one_row", "noise_floor", "self_pairs", "mean_proba", "mean_true"):
            assert getattr(cells, name) == pytest.approx(getattr(fine, name), rel=1e-11, abs=0), name


def test_merged_cells_have_about_equal_noise():
    cells = Sample.of(*some_rows(20_000, "rare")).points().merged(100)
    noise = cells.wwv + cells.wwcc
    assert len(noise) > 80
    assert noise.max() < 3 * noise.mean()


@pytest.mark.parametrize("design", DESIGNS)
def test_points_of_a_sketch_are_those_of_its_rows_bucket_by_bucket(design):
    y, p, _ = some_rows(2000, design)
    points = tc.Sketch(64).update(y, p).points().normalized()
    bucket, n = tc.bucket_index(p, 64), len(p)
    c = p - y
    columns = {"bias": c / n, "wwv": p * (1 - p) / n**2, "wwcc": c**2 / n**2, "wwc": c / n**2}
    columns |= {"ww": np.full(n, 1 / n**2), "wy": y / n, "wcp": c * p / n}
    filled = np.flatnonzero(np.bincount(bucket))
    np.testing.assert_allclose(points.p, (np.bincount(bucket, p) / np.maximum(np.bincount(bucket), 1))[filled])
    for name, column in columns.items():
        expected = np.bincount(bucket, column)[filled]
        np.testing.assert_allclose(getattr(points, name), expected, rtol=1e-9, atol=1e-15, err_msg=name)
    assert points.one_row == pytest.approx(1 / n, rel=1e-12, abs=0)
    assert (points.n_buckets, points.sketched, points.rows) == (64, True, n)


def test_points_of_a_weighted_sketch_are_exact_but_for_wwc():
    y, p, w = some_rows(4000, weighted=True)
    sample, sketch = Sample.of(y, p, w), tc.Sketch().update(y, p, w)
    rows, buckets = (summary.points().merged(200).normalized() for summary in (sample, sketch))
    for name in ("bias", "wwv", "wwcc"):
        assert getattr(buckets, name).sum() == pytest.approx(getattr(rows, name).sum(), rel=1e-11, abs=0)
    assert buckets.one_row == pytest.approx(rows.one_row, rel=1e-12, abs=0)
    # w^2 c is not in a sketch; w for its mean in the bucket is right up to chance, of one standard error or so
    chance = math.sqrt(np.sum((w / w.sum()) ** 4 * (p - y) ** 2))
    assert abs(buckets.wwc.sum() - rows.wwc.sum()) < 4 * chance


def test_points_of_a_sketch_have_the_means_of_the_buckets():
    y, p, w = some_rows(500, weighted=True)
    points = tc.Sketch(8).update(y, p, w).points()
    bucket = tc.bucket_index(p, 8)
    weight = np.bincount(bucket, w)
    np.testing.assert_allclose(points.weight, weight)
    np.testing.assert_allclose(points.p, np.bincount(bucket, w * p) / weight)
    np.testing.assert_allclose(points.wy, np.bincount(bucket, w * y))


def test_points_of_a_group_are_those_of_its_sketch():
    y, p, w = some_rows(500, weighted=True)
    sketch = tc.Sketch(8).update(y, p, w)
    table = tc.SketchTable.from_sketches({"a": sketch, "b": tc.Sketch(8).update(y, p)}, by="g")
    one, other = sketch.points(), table.points("a")
    for name, column in vars(one).items():
        np.testing.assert_array_equal(getattr(other, name), column, err_msg=name)
    with pytest.raises(KeyError, match="no group 'c'"):
        table.points("c")


def test_an_empty_sketch_has_no_points():
    with pytest.raises(ValueError, match="the sketch is empty"):
        tc.Sketch().points()


def test_columns_are_read_only():
    for summary in (Sample.of([0, 1], [0.2, 0.7]), tc.Sketch().update([0, 1], [0.2, 0.7])):
        for points in (summary.points(), summary.points().merged(1), summary.points().normalized()):
            assert not any(column.flags.writeable for column in vars(points).values() if isinstance(column, np.ndarray))


def test_rows_of_zero_chance_are_counted():
    y, p = [1, 1, 0, 0, 1, 0, 1], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5]
    for dtype in (np.float32, np.float64):
        assert Sample.of(y, np.array(p, dtype)).points().impossible == 4
    assert Sample.of(y, p, range(1, 8)).points().impossible == 4
    assert Sample.of([0, 1], [0.1, 0.9]).points().impossible == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_information_discounts_light_rows(weighted):
    y, p, w = some_rows(300, "tied", weighted=weighted)
    points, v = Sample.of(y, p, w).points(), p * (1 - p)
    w = np.ones(300) if w is None else w
    assert points.information == pytest.approx(v.sum(), rel=1e-12, abs=0)
    expected = np.sum(w**2 * v) ** 2 / np.sum(w**4 * v)
    assert points.effective_information == pytest.approx(expected, rel=1e-11, abs=0)


def test_excess_by_hand():
    assert excess(0.5, 0.1, 0.2) == pytest.approx(0.5, rel=1e-15, abs=0)
    assert math.isnan(excess(0.5, 0.5, 1.0))
    both = excess(np.array([0.5, 0.5]), np.array([0.1, 0.5]), np.array([0.2, 1.0]))
    np.testing.assert_array_equal(both, [excess(0.5, 0.1, 0.2), math.nan])


# --- eigenvalues ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("measure", TENTS)
def test_null_scales_add_up_to_the_null_moments(measure, design, weighted):
    y, p, w = some_rows(120, design, weighted=weighted)
    sample = Sample.of(y, p, w)
    kernel = TentKernel.of(measure, sample.points())
    scales = kernel.null_scales(sample.points())
    assert (scales >= 0).all()
    assert scales.sum() == pytest.approx(tc.atb_summary(y, p, sample_weight=w).noise_floor, rel=1e-9, abs=0)
    # The leading part of the null variance, row by row with the definition of the kernel.
    w = np.ones(len(p)) if w is None else w
    a = w**2 * p * (1 - p) / w.sum() ** 2
    x = np.array(oracles.information_positions(list(p), list(w))) if measure == "information_atb" else p
    k = sum(
        share * np.maximum(1 - np.abs(x[:, None] - x) / width, 0)
        for width, share in zip(kernel.widths, kernel.shares, strict=True)
    )
    leading = 2 * a @ k**2 @ a
    assert 2 * np.sum(scales**2) == pytest.approx(leading, rel=1e-8, abs=0)
    own = np.sum(w**4 * p * (1 - p) * (1 - 6 * p * (1 - p))) / w.sum() ** 4
    assert null_moments(kernel, sample.points()).sd ** 2 == pytest.approx(leading + own, rel=1e-8, abs=0)


@pytest.mark.parametrize("measure", TENTS)
def test_few_cells_have_the_eigenvalues_of_many(measure):
    sample = Sample.of(*some_rows(480))
    kernel = TentKernel.of(measure, sample.points())
    all_of_them = kernel.null_scales(sample.points())
    few = kernel.null_scales(sample.points().merged(120))
    assert few.sum() == pytest.approx(all_of_them.sum(), rel=1e-10, abs=0)
    np.testing.assert_allclose(few[-8:], all_of_them[-8:], rtol=2e-3, atol=1e-3 * few[-1])


def test_eigenvalues_of_two_points_by_hand():
    tent, y = TentKernel(np.ones(1), np.ones(1)), [0, 1]
    tied = tent.null_scales(Sample.of(y, [0.5, 0.5]).points())
    np.testing.assert_allclose(tied, [0.125], rtol=1e-12)
    a = 0.375 * 0.625 / 4  # of each; the kernel between them is 3/4
    apart = tent.null_scales(Sample.of(y, [0.375, 0.625]).points())
    np.testing.assert_allclose(apart, [a * 0.25, a * 1.75], rtol=1e-12)


# --- coordinates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("measure", TENTS)
def test_inner_products_of_axes_are_the_kernel(measure, design):
    sample = Sample.of(*some_rows(400, design))
    kernel = TentKernel.of(measure, sample.points())
    x = sample.points().p
    phi = kernel.axes(x)
    np.testing.assert_allclose(phi @ phi.T, kernel.matrix(x), rtol=0, atol=2e-12 * len(x))


def test_axes_of_points_one_ulp_apart_exist():
    x = np.array([0.5, np.nextafter(0.5, 1), 0.5 + 3e-16, 0.5 + 1e-12, np.nextafter(1.0, 0), 1.0])
    phi = TentKernel(np.array([1.0, 0.25]), np.array([0.5, 0.5])).axes(x)
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
        sample, buckets = Sample.of(y, p, w), tc.Sketch(16_384).update(y, p, w).points()
        spread = null_moments(TentKernel.of(measure, sample.points()), sample.points()).sd
        if (measure, design) == ("information_atb", "narrow"):  # a few buckets hold all rows, which count as tied there
            sample = Sample.of(y, buckets.p[np.searchsorted(buckets.low, p, side="right") - 1], w)
        exact = tc.MEASURES[measure].of_sample(sample)
        error = abs(TentKernel.of(measure, buckets).measure(buckets) - exact)
        # Measured: 5e-3 of the spread at most if calibrated, and 2e-4 of a value far above it ("ends").
        # The rows of a bucket count as tied on the information axis: 0.016.
        assert error < (0.03 if measure == "information_atb" else 0.01) * spread + (5e-4 * exact if slope < 1 else 0.0)


def test_tent_measure_is_exact_where_each_bucket_holds_one_value():
    y, p, w = some_rows(2000, "tied", weighted=True)
    sketch, sample = tc.Sketch().update(y, p, w), Sample.of(y, p, w)
    for measure in TENTS:
        found = TentKernel.of(measure, sample.points()).measure(sketch.points())
        assert found == pytest.approx(tc.MEASURES[measure].of_sample(sample), rel=1e-9, abs=0)


def test_tent_measure_of_atb_lies_in_the_certified_bounds():
    y, p, _ = some_rows(5000)
    sketch = tc.Sketch(256).update(y, p)
    bounds = sketch.atb()
    assert bounds.low <= TentKernel(np.ones(1), np.ones(1)).measure(sketch.points()) <= bounds.high


# --- weight classes ---------------------------------------------------------------------------------------------------


def power_sums(points):
    return points.weight, points.ww, points.www, points.row_ww * points.ww


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=40))
def test_weight_classes_have_the_power_sums_of_the_rows(w):
    """One row has the largest weight, the others weigh no more, and sums of w, w^2, w^3 and w^4 are theirs."""
    points = tc.Sketch(1).update([0, 1] * len(w), [0.3] * 2 * len(w), np.repeat(w, 2)).points()
    weights, sizes = (column[:, 0] for column in points.weight_classes())
    assert (weights[0], sizes[0]) == (max(w), 1.0)
    assert (weights > 0.0).all()
    assert (weights <= max(w) * (1.0 + 1e-12)).all()
    assert (sizes >= 0.0).all()
    for k, total in enumerate(power_sums(points), 1):
        assert np.sum(sizes * weights**k) == pytest.approx(2.0 * np.sum(np.power(w, k)), rel=1e-6)
        assert total[0] == pytest.approx(2.0 * np.sum(np.power(w, k)), rel=1e-12)


@pytest.mark.parametrize("w", [[2.0], [1.0, 3.0], [1.0, 2.0, 7.0], [0.5, 0.5, 0.5], [1.0, 1.0, 4.0]])
def test_weight_classes_of_up_to_three_rows_are_their_weights(w):
    points = tc.Sketch(1).update([0] * len(w), [0.3] * len(w), w).points()
    weights, sizes = (column[:, 0] for column in points.weight_classes())
    whole = np.rint(sizes).astype(int)
    np.testing.assert_allclose(sizes, whole, atol=1e-9)
    np.testing.assert_allclose(np.sort(np.repeat(weights, whole)), np.sort(w), rtol=1e-9)


def test_redrawn_weight_classes_have_the_moments_of_redrawn_rows():
    """Mean, variance and third moment of the weight of the positives, by formulas for independent rows."""
    rng = np.random.default_rng(0)
    p, w = rng.uniform(0.04, 0.06, 50), rng.pareto(2.0, 50) + 1.0
    points = tc.Sketch(16).update(np.zeros(50), p, w).points()
    assert len(points) == 1
    errors = points.redraw_positives(400_000, rng)[:, 0] - np.sum(w * p)
    variance, third = np.sum(w**2 * p * (1 - p)), np.sum(w**3 * p * (1 - p) * (1 - 2 * p))
    assert np.mean(errors) == pytest.approx(0.0, abs=4 * np.sqrt(variance / 400_000))
    assert np.var(errors) == pytest.approx(variance, rel=0.02)
    assert np.mean(errors**3) == pytest.approx(third, rel=0.05)


# --- many groups at once ----------------------------------------------------------------------------------------------


def some_groups():
    """Sketches of different sizes, one of a single row, one with predictions of 0 and 1, one with weights of 1e60."""
    rng = np.random.default_rng(0)
    sketches = []
    for n, scale in ((1, 1.0), (7, 1.0), (400, 1e60), (900, 1.0), (60, 1.0)):
        p = rng.random(n) if n != 60 else rng.integers(0, 3, n) / 2
        w = None if n in (7, 900) else scale * rng.exponential(1.0, n)
        sketches.append(tc.Sketch(1024).update(rng.random(n) < p, p, w))
    return [sketch.points() for sketch in sketches], tc.SketchTable.from_sketches(dict(enumerate(sketches)), by="g")


ALL_COLUMNS = [field.name for field in fields(Points) if field.name not in ("n_buckets", "impossible")]


@pytest.mark.parametrize("at_most", [1, 5, 56, 192, 5000])
def test_groups_are_merged_like_each_alone(at_most):
    alone, table = some_groups()
    (groups,) = table.point_groups(range(5))
    for points, one in zip(groups.merged(at_most).normalized(), alone, strict=True):
        expected = one.merged(at_most).normalized()
        assert len(points) <= at_most
        for name in ALL_COLUMNS:
            largest = np.max(np.abs(getattr(expected, name)))
            np.testing.assert_allclose(
                getattr(points, name), getattr(expected, name), rtol=1e-12, atol=1e-13 * largest, err_msg=name
            )


def test_totals_of_groups_are_those_of_each_alone():
    alone, table = some_groups()
    (groups,) = table.point_groups(range(5))
    for name in ("rows", "total", "one_row", "information", "effective_information"):
        np.testing.assert_allclose(getattr(groups, name), [getattr(points, name) for points in alone], rtol=1e-13)
    assert groups.sums(groups.points.wwcc) == pytest.approx([np.sum(points.wwcc) for points in alone], rel=1e-13)
    cumulative = np.concatenate([np.cumsum(points.bias) for points in alone])
    np.testing.assert_array_equal(groups.cumulative(groups.points.bias), cumulative)
    np.testing.assert_array_equal(groups.points.cumulative, cumulative)
    assert groups.largest(groups.points.top).tolist() == [points.largest_weight for points in alone]
    some = groups.take(np.array([True, False, False, True, True]))
    assert some.total.tolist() == groups.total[[0, 3, 4]].tolist()
    assert [len(points) for points in some] == [len(alone[g]) for g in (0, 3, 4)]


def test_information_by_hand():
    p, w = np.array([0.1, 0.5, 0.5, 0.8]), np.array([1.0, 3.0, 3.0, 2.0])
    points, v = tc.Sketch().update([0, 1, 0, 1], p, w).points(), p * (1 - p)
    assert points.information == pytest.approx(np.sum(v), rel=1e-12)
    assert points.effective_information == pytest.approx(np.sum(w**2 * v) ** 2 / np.sum(w**4 * v), rel=1e-12)


@pytest.mark.parametrize("measure", TENTS)
def test_null_scales_of_groups_are_those_of_each_alone(measure):
    alone, table = some_groups()
    (groups,) = table.point_groups(range(5))
    kernel, cells = TentKernel.of(measure, alone[3]), groups.merged(40)
    scales, values = kernel.group_null_scales(cells), kernel.group_measures(groups)
    for g, points in enumerate(alone):
        part = slice(cells.starts[g], cells.starts[g + 1])
        expected = kernel.null_scales(points.merged(40))
        np.testing.assert_allclose(scales[part], expected, rtol=1e-9, atol=1e-14 * np.max(expected))
        assert values[g] == pytest.approx(kernel.measure(points), rel=1e-12)
