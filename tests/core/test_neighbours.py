"""Correlation of errors of neighbouring rows, in file order, and the warning in every result that assumes none."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import truthcal as tc
from truthcal.core import neighbours
from truthcal.core.neighbours import SpreadRows, neighbour_z


def means_removed(values, bins):
    """Values minus the mean of their bin, and the mean product of two of them in random order, for each bin."""
    rows = {b: np.flatnonzero(bins == b) for b in np.unique(bins)}
    values = values - np.array([np.mean(values[rows[b]]) for b in bins])
    pairs = {b: [x * y for x, y in itertools.permutations(values[own], 2)] for b, own in rows.items()}
    return values, {b: np.mean(products) if products else 0.0 for b, products in pairs.items()}


def z_by_definition(p, y, groups=None):
    """Below 1,000 rows: in bins of 15 rows, or, with groups, in one bin of all rows and one of each group."""
    errors, bins = p - y, np.zeros(len(p), int)
    if groups is None:
        edges = np.quantile(p, np.arange(1, len(p) // 15) / (len(p) // 15))
        groups, bins = bins, np.sum(edges[:, None] <= p, axis=0)
    else:
        errors, bins = means_removed(errors, bins)[0], groups
    errors, in_random_order = means_removed(errors, bins)
    chance = np.clip(y + errors, 0, 1)
    total, squares, expected = 0.0, 0.0, 0.0
    for group in np.unique(groups):
        for i, j in itertools.pairwise(np.flatnonzero(groups == group)):
            total += errors[i] * errors[j] - (in_random_order[bins[i]] if bins[i] == bins[j] else 0.0)
            squares += (errors[i] * errors[j]) ** 2
            expected += chance[i] * (1 - chance[i]) * chance[j] * (1 - chance[j])
    return total / math.sqrt(max(squares, expected))


def draw(rng, p, groups=1):
    """Outcomes of calibrated predictions, the same random number for `groups` rows one after the other."""
    return (np.repeat(rng.random(len(p) // groups), groups) < p).astype(np.uint8)


def in_turn(*columns, segments):
    """Columns of one segment after the other, reordered: the first row of each segment, then the second ones."""
    return [np.ascontiguousarray(column.reshape(segments, -1).T).ravel() for column in columns]


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_against_the_definition(scale):
    rng = np.random.default_rng(0)
    p = rng.random(300) * scale
    y, groups = draw(rng, p), rng.integers(0, 40, 300)
    assert neighbour_z(p, y) == pytest.approx(z_by_definition(p, y), rel=1e-9)
    assert neighbour_z(p, y, groups) == pytest.approx(z_by_definition(p, y, groups), rel=1e-9)
    assert neighbour_z(p.astype(np.float32), y.astype(bool)) == pytest.approx(neighbour_z(p, y), rel=1e-4)
    assert neighbour_z(p[:29], y[:29]) is neighbour_z(p[:0], y[:0]) is neighbour_z(p, 0.5 * y) is None


@pytest.mark.parametrize("p", [0.0, 0.1, 0.7])
def test_errors_that_are_all_equal_are_no_dependence(p):
    assert abs(neighbour_z(np.full(3000, p), np.zeros(3000))) < 1e-6


def test_miscalibration_in_a_sorted_file_is_no_dependence():
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(50_000))
    assert abs(neighbour_z(p, draw(rng, 0.5 * p))) < 4.0
    assert abs(neighbour_z(p, draw(rng, 0.2 + 0.6 * p))) < 4.0
    assert abs(neighbour_z(p[::50], draw(rng, 0.4 + 0.2 * p[::50]))) < 4.0


@pytest.mark.parametrize("n", [100, 300, 900])
def test_a_large_calibration_error_in_a_small_sorted_file_is_no_dependence(n):
    rng = np.random.default_rng(0)
    for _ in range(25):
        for p in (np.sort(rng.random(n)), np.sort(rng.integers(0, 11, n) / 10)):
            assert abs(neighbour_z(p, draw(rng, 0.05 + 0.9 * (p > 0.5)))) < 4.0
            assert abs(neighbour_z(p, draw(rng, 1 - p))) < 4.0


def test_a_miscalibrated_segment_is_no_dependence_within_segments():
    rng = np.random.default_rng(0)
    p, segment = rng.random(20_000), np.repeat([0, 1, 2, 3], 5000)
    y = draw(rng, p * (0.25 * segment + 0.25))
    assert neighbour_z(p, y) > 10.0  # the error differs along the file
    assert abs(neighbour_z(p, y, segment)) < 4.0


def test_of_very_many_rows_some_blocks_are_read(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    everywhere = neighbour_z(p, draw(rng, p, 4))
    monkeypatch.setattr(neighbours, "_BLOCK", 1 << 9)
    assert 8.0 < neighbour_z(p, draw(rng, p, 4)) < everywhere


@pytest.mark.parametrize("batch", [1, 7, 160, 1000])
def test_blocks_do_not_depend_on_the_batches(batch, monkeypatch):
    monkeypatch.setattr(neighbours, "_BLOCK", 5)
    rows = SpreadRows()
    for first in range(0, 1003, batch):
        rows.add(np.arange(first, min(first + batch, 1003)))
    assert rows.columns()[0].tolist() == [row for row in range(1003) if row // 5 % 16 == 0]  # 13 of 201 blocks


@pytest.mark.simulation
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("segments", [0, 10, 100])
def test_independent_rows_are_rarely_suspected(scale, segments):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3000):
        p = scale * rng.random(400)
        segment = rng.integers(0, segments, 400) if segments else None
        found.append(neighbour_z(p, draw(rng, p if segment is None else p * (0.5 + segment / segments)), segment))
    assert np.mean(np.abs(found) > 4.0) <= 0.001
    assert np.std(found) < 1.1
    assert abs(np.mean(found)) < 0.15  # of many small segments, each error minus its mean


@pytest.mark.simulation
def test_dependent_rows_of_segments_are_suspected():
    """Five consecutive rows of a segment share an outcome; segments take turns in the file."""
    rng = np.random.default_rng(0)
    within, in_file = [], []
    for _ in range(300):
        p, segment = rng.random(1000), np.repeat(np.arange(10), 100)
        p, y, segment = in_turn(p, draw(rng, p, 5), segment, segments=10)
        within.append(neighbour_z(p, y, segment))
        in_file.append(neighbour_z(p, y))
    assert np.mean(np.array(within) > 4.0) > 0.99
    assert np.mean(np.abs(in_file) > 4.0) < 0.02  # neighbours in the file are of different segments


NOTE = "! errors of neighbouring rows are correlated (z = "


def test_rows_that_belong_together_get_a_warning_beside_every_pvalue():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = draw(rng, p, 5)
    results = [
        tc.calibration_test(y, p, n_resamples=99, rng=0),
        tc.spiegelhalter_test(y, p),
        tc.hosmer_lemeshow_test(y, p, n_resamples=99, rng=0),
        tc.linear_time_test(y, p),
        tc.scale_profile(y, p, n_resamples=99, rng=0),
        tc.compare(y, p, np.clip(p, 0.1, 0.9)),
    ]
    for result in results:
        assert result.neighbour_z > 10.0
        assert f"{NOTE}{result.neighbour_z:.1f} in the order of the rows): " in str(result)
        assert "keep one row of each patient" in str(result)
        assert result.to_dict()["neighbour_z"] == result.neighbour_z
    assert results[0].neighbour_z == neighbour_z(p, y)
    assert any(NOTE[2:] in warning for warning in tc.assess(y, p, n_resamples=99).warnings)
    mixed = rng.permutation(2000)
    assert "neighbouring" not in str(tc.calibration_test(y[mixed], p[mixed], n_resamples=99, rng=0))
    assert tc.calibration_test(tc.Sketch().update(y, p)).neighbour_z is None


def test_a_comparison_has_the_z_that_is_further_from_0():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(400), 5)  # days, of which the first model knows the probability
    y = draw(rng, p)
    z, z_constant = neighbour_z(p, y), neighbour_z(np.full(2000, 0.5), y)
    assert abs(z) < 4.0 < z_constant
    assert tc.compare(y, p, np.full(2000, 0.5)).neighbour_z == z_constant
    assert tc.compare(y, np.full(2000, 0.5), p).neighbour_z == z_constant
    assert tc.compare(y[:20], p[:20], np.full(20, 0.5)).neighbour_z is None


def test_outcomes_that_exclude_each_other_get_a_warning():
    rng = np.random.default_rng(0)
    one = rng.random(1000)
    won = rng.random(1000) < one
    p, y = np.stack([one, 1 - one], axis=1).ravel(), np.stack([won, ~won], axis=1).ravel()
    result = tc.calibration_test(y, p, rng=0)
    assert result.neighbour_z < -10.0
    assert "errors of neighbouring rows have opposite signs (z = -" in str(result)


@pytest.mark.parametrize("pos_label", [None, "yes"])
def test_rows_that_are_not_sorted_are_read_in_order_too(pos_label, monkeypatch):
    monkeypatch.setattr("truthcal.core.summarize.TOO_MANY_TO_SORT", 1000)
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = draw(rng, p, 5)
    result = tc.calibration_test(y if pos_label is None else np.where(y, "yes", "no"), p, pos_label=pos_label)
    assert "sketch" in result.why
    assert result.neighbour_z == neighbour_z(p, y)


@pytest.fixture
def table():
    """Rows of four segments that take turns; five consecutive rows of a segment share an outcome."""
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    p, y, number = in_turn(p, draw(rng, p, 5), np.repeat(np.arange(4), 500), segments=4)
    return {"y": y, "p": p, "number": number, "segment": np.array(["e", "n", "s", "w"])[number]}


def check_segments_of(built, total, table):
    """Check the z of a sketch table and of the sketch of all its rows, and the warning of its segments."""
    y, p = table["y"], table["p"]
    segments = tc.assess_segments(built)
    assert segments.neighbour_z == pytest.approx(neighbour_z(p, y, table["number"]), rel=1e-12)
    assert segments.neighbour_z > 10.0
    note = f"{NOTE}{segments.neighbour_z:.1f} in the order of the rows of each segment): "
    assert note in str(segments)
    assert note[2:] in segments.to_markdown()
    assert segments.to_dict()["neighbour_z"] == segments.neighbour_z
    assert built.total().neighbour_z == total.neighbour_z == neighbour_z(p, y)


def test_segments_of_a_frame_get_the_warning(table):
    frame, columns = pa.table(table), {"y_true": "y", "y_proba": "p"}
    built, total = tc.sketch_frame(frame, by="segment", **columns), tc.sketch_frame(frame, **columns)
    check_segments_of(built, total, table)
    labelled = frame.append_column("label", pa.array(np.where(table["y"], "yes", "no")))
    built = tc.sketch_frame(labelled, y_true="label", y_proba="p", by="segment", pos_label="yes")
    check_segments_of(built, built.total(), table)


def test_segments_of_files_get_the_warning(table, tmp_path):
    for name, rows in (("1.csv", slice(0, 777)), ("2.csv", slice(777, 2000))):
        csv.write_csv(pa.table({key: column[rows] for key, column in table.items()}), tmp_path / name)
    columns = {"y_true": "y", "y_proba": "p"}
    built, total = tc.scan(tmp_path, by="segment", **columns), tc.scan(tmp_path, **columns)
    check_segments_of(built, total, table)
    assert tc.assess_segments(built).dependence in str(tc.check(total, segments=built))


def test_rows_of_weight_0_are_no_neighbours(table):
    doubled = {key: np.repeat(column, 2) for key, column in table.items()} | {"w": np.tile([1.0, 0.0], 2000)}
    built = tc.sketch_frame(pa.table(doubled), y_true="y", y_proba="p", sample_weight="w", by="segment")
    assert built.neighbour_z == pytest.approx(neighbour_z(table["p"], table["y"], table["number"]), rel=1e-12)


def test_sketches_that_are_changed_or_saved_have_no_order(table):
    frame, columns = pa.table(table), {"y_true": "y", "y_proba": "p"}
    built, total = tc.sketch_frame(frame, by="segment", **columns), tc.sketch_frame(frame, **columns)
    for other in (built + built, built.rollup("segment"), tc.SketchTable.from_bytes(built.to_bytes())):
        assert other.neighbour_z is other.total().neighbour_z is tc.assess_segments(other).neighbour_z is None
    assert built["n"].neighbour_z is None
    assert (total + total).neighbour_z is tc.Sketch.from_bytes(total.to_bytes()).neighbour_z is None
    assert total.neighbour_z is not None
    assert total.update(table["y"], table["p"]).neighbour_z is None
    assert built.merge(built).neighbour_z is None
