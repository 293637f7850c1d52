"""Sketches whose rows belong together: sums with signs, the same however rows are divided, added, saved and merged."""

import datetime
import decimal
import struct
import subprocess
import sys
import unittest.mock
import uuid
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.grid import bucket_of
from oracles.groups import cell_vectors, group_hash, signed_sums
from support.old_files import sealed

import truthcal as tc
from truthcal.core import group_flips
from truthcal.core.group_flips import COUNTED, EstimatedCount
from truthcal.core.group_hash import hash_values

DATA = Path(__file__).parent.parent / "data"


def rows(rng, n_groups=60, each=10, shared=0.45):
    """Calibrated rows; those of a group often have the same luck."""
    p = rng.uniform(0.02, 0.98, (n_groups, each))
    luck = np.where(rng.random(p.shape) < shared, rng.random((n_groups, 1)), rng.random(p.shape))
    return (luck < p).astype(int).ravel(), p.ravel(), np.repeat(np.arange(n_groups), each)


@pytest.fixture(params=["groups", "slots"])
def kept(request, monkeypatch):
    """Keep sums by group, as for few groups, or by slot, as for many."""
    if request.param == "slots":
        monkeypatch.setattr(group_flips, "MOST_SUMS", 0)
    return request.param


def assert_same_flips(one, other):
    np.testing.assert_allclose(one.flips.by_slot(), other.flips.by_slot(), rtol=0, atol=1e-11)
    assert one.flips.n_groups == other.flips.n_groups
    assert one.flips.is_exact == other.flips.is_exact
    if not one.flips.is_exact:
        np.testing.assert_array_equal(one.flips._smallest, other.flips._smallest)


# --- hashes -----------------------------------------------------------------------------------------------------------


def hashes(*values):
    return hash_values(values, "groups")[0].tolist()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((7, 7.0, np.int8(7), np.float32(7), decimal.Decimal("7.00"), "7", b"7"), "7"),
        ((-(10**20), decimal.Decimal(-(10**20)), "-100000000000000000000"), "-100000000000000000000"),
        ((0, 0.0, -0.0, False, "0"), "0"),
        ((1, True, np.True_), "1"),
        ((0.1, decimal.Decimal("0.10"), "0.1"), "0.1"),
        ((1e-9, "1e-09"), "1e-09"),
        ((decimal.Decimal("0.1234567890123456789"),), "0.1234567890123456789"),
        ((float("inf"), decimal.Decimal("Infinity")), "inf"),
        (("Ünal", "Ünal".encode(), np.str_("Ünal")), "Ünal"),
        (("",), ""),
        ((datetime.date(2026, 5, 1), np.datetime64("2026-05-01")), "2026-05-01"),
        ((datetime.datetime(2026, 5, 1, 12), np.datetime64("2026-05-01T12:00", "ns")), "2026-05-01 12:00:00"),
        ((uuid.UUID(int=5),), "00000000-0000-0000-0000-000000000005"),
        (((1, "a"), (1.0, "a")), "1:1,1:a,"),
    ],
)
def test_the_hash_is_that_of_the_text_of_a_group_whatever_its_type(values, text):
    assert hashes(*values) == [group_hash(text)] * len(values)


def test_different_groups_have_different_hashes():
    values = [7, "07", "7.0", " 7", 7.5, 70, (7,), ("7", ""), ("", "7"), "None", "nan"]
    assert len(set(hashes(*values))) == len(values)


def test_hashes_do_not_depend_on_the_process():
    code = "from truthcal.core.group_hash import hash_values; print(hash_values([7, 'a', (1, 'b')], 'g')[0].tolist())"
    lines = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": "1", "PYTHONPATH": path()}, {"PYTHONHASHSEED": "2", "PYTHONPATH": path()})
    }
    assert lines == {f"{hashes(7, 'a', (1, 'b'))}\n"}


def path():
    return str(Path(tc.__file__).parent.parent)


def test_signs_and_slots_are_balanced_and_independent():
    h = hash_values(range(20_000), "groups")[0]
    sign = 1.0 - 2.0 * ((h >> np.uint64(56)) & np.uint64(1)).astype(float)
    slot = np.bincount((h >> np.uint64(57)).astype(int), minlength=128)
    assert abs(sign.sum()) < 4 * 20_000**0.5
    assert abs((sign[1:] * sign[:-1]).sum()) < 4 * 20_000**0.5
    assert ((slot - 20_000 / 128) ** 2 / (20_000 / 128)).sum() < 200  # chi-squared of 127 degrees: 1e-4


# --- sums -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_buckets", [128, 4096])
def test_sums_with_signs_are_those_of_the_definition(weighted, n_buckets, kept):
    rng = np.random.default_rng(0)
    y, p, groups = rows(rng)
    p[:4] = [0.0, 1.0, 0.5, 2.0**-13]
    w = rng.choice([0.0, 0.5, 3.0], len(p)) if weighted else None
    sketch = tc.Sketch(n_buckets).update(y, p, w, groups=groups)
    expected = signed_sums(y, p, w, map(str, groups), lambda x: bucket_of(x, 128))
    np.testing.assert_allclose(sketch.flips.by_slot(), expected, atol=1e-12)
    assert sketch.flips.is_exact == (kept == "groups")
    assert sketch.flips.n_groups == 60


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_few_groups_are_exact(weighted):
    rng = np.random.default_rng(0)
    y, p, groups = rows(rng)
    w = rng.choice([0.0, 0.5, 3.0], len(p)) if weighted else None
    sums = tc.Sketch(256).update(y, p, w, groups=groups).group_sums
    some = slice(None) if w is None else w > 0
    z, h = cell_vectors(y[some], p[some], None if w is None else w[some], groups[some], sums.cells.low, sums.cells.high)
    np.testing.assert_allclose(sums.errors, z.T @ z, atol=1e-15)
    np.testing.assert_allclose(sums.cross, z.T @ h, atol=1e-15)
    np.testing.assert_allclose(sums.weights, h.T @ h, atol=1e-15)
    assert (sums.n_groups, sums.slots) == (60, 0)


def test_few_buckets_are_cells_themselves():
    y, p, groups = rows(np.random.default_rng(0))
    sketch = tc.Sketch(8).update(y, p, groups=groups)
    expected = signed_sums(y, p, None, map(str, groups), lambda x: min(int(x * 8), 7))
    np.testing.assert_allclose(sketch.flips.by_slot(), expected[:, :8], atol=1e-12)
    assert tc.assess(sketch).n_groups == 60


@pytest.mark.parametrize("most", [0, 100, 8192])
@given(data=st.data())
def test_parts_of_groups_add_up_in_any_sketches(data, most):
    """Chunk + merge = whole, also if all groups are split; sums are kept by slot or group, whatever the order."""
    with unittest.mock.patch.object(group_flips, "MOST_SUMS", most):
        check_that_parts_add_up(data)


def check_that_parts_add_up(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    y, p, groups = rows(rng, n_groups=data.draw(st.integers(1, 40)))
    w = rng.choice([0.0, 1.0, 2.5], len(p)) if data.draw(st.booleans()) else np.ones(len(p))
    w[0] = 1.0
    part = rng.integers(0, data.draw(st.integers(1, 5)), len(p))
    types = [int, float, str, lambda x: np.int32(x)]
    sketches = []
    for k in sorted(set(part[w > 0].tolist())):
        own = part == k
        sketches.append(tc.Sketch(256).update(y[own], p[own], w[own], groups=[types[k % 4](g) for g in groups[own]]))
    whole = tc.Sketch(256).update(y, p, w, groups=groups)
    assert_same_flips(sum(sketches), whole)
    in_updates = tc.Sketch(256)
    for own in (part == part[0], part != part[0]):
        if (w[own] > 0).any():
            in_updates.update(y[own], p[own], w[own], groups=groups[own])
    assert_same_flips(in_updates, whole)


def test_groups_of_weight_zero_do_not_count():
    y, p, groups = rows(np.random.default_rng(0))
    w = np.where(groups < 10, 0.0, 1.0)
    sketch = tc.Sketch().update(y, p, w, groups=groups)
    assert sketch.flips.n_groups == 50
    assert_same_flips(sketch, tc.Sketch().update(y[w > 0], p[w > 0], groups=groups[w > 0]))


def test_fewer_than_1024_groups_are_counted_and_more_are_estimated(kept):
    few = tc.Sketch().update(np.zeros(1023), np.full(1023, 0.5), groups=np.arange(1023))
    assert repr(few) == "Sketch(n_buckets=4096): 1,023 rows in 1,023 groups"
    more = tc.Sketch().update(np.zeros(5000), np.full(5000, 0.5), groups=np.arange(5000))
    assert more.flips.n_groups == pytest.approx(5000, rel=0.0 if kept == "groups" else 4 / COUNTED**0.5, abs=0.0)
    many = sum(
        tc.Sketch().update(np.zeros(30_000), np.full(30_000, 0.5), groups=np.arange(30_000) + first)
        for first in (0, 10_000, 10_000)
    )
    assert not many.flips.is_exact
    assert many.flips.n_groups == pytest.approx(40_000, rel=4 / COUNTED**0.5)
    assert isinstance(many.flips.n_groups, EstimatedCount)
    assert f"{many.flips.n_groups:,}".startswith("about ")
    assert " rows in about " in repr(many)


# --- inference --------------------------------------------------------------------------------------------------------


def test_results_are_close_to_those_of_the_rows(kept):
    y, p, groups = rows(np.random.default_rng(3), 400)
    exact, sketched = tc.assess(y, p, groups=groups), tc.assess(tc.Sketch().update(y, p, groups=groups))
    assert sketched.n_groups == exact.n_groups == 400
    assert sketched.kind == exact.kind == "calibrated"
    assert sketched.test.pvalue == pytest.approx(exact.test.pvalue, rel=0.15 if kept == "groups" else 0.5)
    width = [result.bias_interval.high - result.bias_interval.low for result in (exact, sketched)]
    assert width[1] == pytest.approx(width[0], rel=1e-3 if kept == "groups" else 0.25)
    assert sketched.error.high == pytest.approx(exact.error.high, rel=0.1 if kept == "groups" else 0.25)
    alone = tc.confidence_interval(tc.Sketch().update(y, p), measure="bias")
    assert width[1] > 1.2 * (alone.high - alone.low)


def test_groups_of_one_row_give_the_answer_without_groups(kept):
    rng = np.random.default_rng(4)
    p = rng.random(5000)
    y = rng.random(5000) < p**1.1
    alone, grouped = (tc.calibration_test(tc.Sketch().update(y, p, groups=g)) for g in (None, np.arange(5000)))
    assert np.log(grouped.pvalue) == pytest.approx(np.log(alone.pvalue), rel=0.3)


def test_fewer_than_20_groups_are_refused_when_a_result_needs_them():
    y, p, groups = rows(np.random.default_rng(0), 19, 30)
    sketch = tc.Sketch().update(y, p, groups=groups)
    assert sketch.bias() == pytest.approx(np.mean(p - y))
    message = r"`groups` has 19 different values; at least 20 groups are needed, because tests and intervals rest on"
    for function in (tc.assess, tc.calibration_test, tc.error_size):
        with pytest.raises(ValueError, match=message):
            function(sketch)


def test_what_assumes_independent_rows_is_refused():
    sketch = grouped_sketch()
    message = r"`y_true` is a sketch whose rows belong together \(`groups`\), but {} assume independent rows\. Use"
    with pytest.raises(ValueError, match=message.format("the guarantees of this test")):
        tc.linear_time_test(sketch)
    with pytest.raises(ValueError, match=message.format("intervals of bins")):
        tc.reliability_curve(sketch, strategy="uniform")
    assert len(tc.reliability_curve(sketch).mean_proba)
    assert tc.detectable_error(sketch) == tc.assess(sketch).detectable


@pytest.mark.simulation
def test_size_and_coverage(monkeypatch):
    """Calibrated rows in 60 groups, 400 times: rejections at 5% and 1%, and coverage of the bias, from slots."""
    monkeypatch.setattr(group_flips, "MOST_SUMS", 0)
    rng = np.random.default_rng(0)
    pvalues, covered = [], []
    for _ in range(400):
        y, p, groups = rows(rng)
        sketch = tc.Sketch(256).update(y, p, groups=rng.permutation(10**6)[:60][groups])
        pvalues.append(tc.calibration_test(sketch).pvalue)
        interval = tc.confidence_interval(sketch, measure="bias")
        covered.append(interval.low <= 0.0 <= interval.high)
    assert 0.02 <= np.mean(np.array(pvalues) <= 0.05) <= 0.085
    assert np.mean(np.array(pvalues) <= 0.01) <= 0.03
    assert 0.91 <= np.mean(covered) <= 0.98


# --- all rows have groups, or none ------------------------------------------------------------------------------------


def test_rows_with_and_without_groups_are_not_mixed():
    y, p, groups = rows(np.random.default_rng(0))
    grouped, alone = tc.Sketch().update(y, p, groups=groups), tc.Sketch().update(y, p)
    for one, other, words in (
        (grouped, alone, "a sketch without groups into one with groups"),
        (alone, grouped, "a sketch with groups into one without groups"),
    ):
        before = one.to_bytes()
        with pytest.raises(ValueError, match=f"cannot merge {words}: tests would not know which rows belong together"):
            one.merge(other)
        assert one.to_bytes() == before
    with pytest.raises(ValueError, match="`groups` is missing: the rows that are already in this sketch have groups"):
        grouped.update(y, p)
    with pytest.raises(ValueError, match="`groups` cannot be added: the rows that are already in this sketch have no"):
        alone.update(y, p, groups=groups)
    assert tc.Sketch().merge(grouped).flips is not None
    assert grouped.merge(tc.Sketch()).n == len(p)


def test_invalid_rows_or_groups_leave_the_sketch_unchanged():
    y, p, groups = rows(np.random.default_rng(0))
    sketch = tc.Sketch().update(y, p, groups=groups)
    before = sketch.to_bytes()
    for bad, message in (
        (dict(y_proba=[0.5, 1.5], groups=[1, 2]), r"`y_proba` must lie in \[0, 1\]"),
        (dict(y_proba=[0.5, 0.5], groups=["a", None]), r"`groups` has a missing value \(None\) at row 1 \(1 of 2 rows"),
        (
            dict(y_proba=[0.5, 0.5], groups=[(1, 2), (1, None)]),
            r"`groups` has a missing value \(\(1, None\)\) at row 1",
        ),
        (dict(y_proba=[0.5, 0.5], groups=[1]), "`groups` has 1 rows but `y_proba` has 2; they must match row by row"),
    ):
        with pytest.raises(ValueError, match=message):
            sketch.update([0, 1], **bad)
    with pytest.raises(TypeError, match="values of the grouping column 'groups' must be None, bool, int, float, str"):
        sketch.update([0, 1], [0.5, 0.5], groups=[frozenset([1]), 2])
    assert sketch.to_bytes() == before


# --- files ------------------------------------------------------------------------------------------------------------


def grouped_sketch():
    y, p, groups = rows(np.random.default_rng(0))
    return tc.Sketch().update(y, p, groups=groups)


def test_files_keep_groups(kept):
    sketch = grouped_sketch()
    data = sketch.to_bytes()
    loaded = tc.Sketch.from_bytes(data)
    assert_same_flips(loaded, sketch)
    assert loaded.to_bytes() == data
    assert str(tc.assess(loaded)) == str(tc.assess(sketch))
    assert len(data) < 300_000


def test_the_format_is_as_documented(kept):
    sketch = grouped_sketch()
    data = sketch.to_bytes()
    magic, version, _, n_buckets, _, size, more = struct.unpack_from("<8sIIIIQQ", data)
    assert (magic, version, n_buckets, len(data)) == (b"TRUTHCAL", 3, 4096, 40 + size + more + 32)
    slots, k = struct.unpack_from("<II", data, 40 + size)
    raw = zlib.decompress(data[48 + size : 40 + size + more])
    keys, sums = np.frombuffer(raw, "<u8", k), np.frombuffer(raw, "<f8", offset=8 * k)
    assert slots == (kept == "slots")
    hashes = sorted(group_hash(str(g)) // 128 * 128 for g in range(60))
    if slots:
        assert keys.tolist() == hashes
        np.testing.assert_array_equal(sums.reshape(128, 128, 2), sketch.flips.by_slot())
        return
    y, p, groups = rows(np.random.default_rng(0))
    expected = {}
    for row in range(len(p)):
        key = group_hash(str(groups[row])) // 128 * 128 + bucket_of(p[row], 128)
        expected[key] = expected.get(key, 0.0) + np.array([p[row] - y[row], 1.0])
    assert keys.tolist() == sorted(expected)
    np.testing.assert_allclose(sums.reshape(-1, 2), [expected[key] for key in sorted(expected)], atol=1e-14)


def test_sketches_without_groups_are_written_as_before():
    assert int.from_bytes(tc.Sketch().update([0, 1], [0.2, 0.3]).to_bytes()[8:12], "little") == 2


def test_files_of_version_2_are_still_read():
    sketch, table = (
        kind.load(DATA / name)
        for kind, name in ((tc.Sketch, "sketch-v2-256.bin"), (tc.SketchTable, "sketch-table-v2-256.bin"))
    )
    rng = np.random.default_rng(2)
    p = rng.beta(1, 3, 300).round(3)
    y, w = (rng.random(300) < p).astype(int), rng.choice([0.5, 1.0, 2.0], 300)
    expected = tc.Sketch(256).update(y, p, w)
    for own in (sketch, table.total()):
        assert own.flips is None
        for name, column in expected.table().items():
            np.testing.assert_allclose(own.table()[name], column, rtol=1e-12)


def forged(change):
    """A file whose sums of groups were changed, with a right checksum."""
    data = grouped_sketch().to_bytes()
    size, more = struct.unpack_from("<QQ", data, 24)
    numbers = np.frombuffer(data[40 + size : 48 + size], np.uint32).copy()
    raw = np.frombuffer(zlib.decompress(data[48 + size : 40 + size + more]), np.uint64).copy()
    numbers, raw = change(numbers, raw)
    part = numbers.tobytes() + zlib.compress(raw.tobytes())
    return sealed(data[:32] + struct.pack("<Q", len(part)) + data[40 : 40 + size] + part)


def float_at(place, value):
    def change(numbers, raw):
        raw.view(np.float64)[numbers[1] + place] = value
        return numbers, raw

    return change


def key_at(place, value):
    def change(numbers, raw):
        raw[place] = value
        return numbers, raw

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda numbers, raw: (np.array([2, numbers[1]], np.uint32), raw),
        lambda numbers, raw: (np.array([numbers[0], numbers[1] + 1], np.uint32), raw),
        lambda numbers, raw: (np.array([numbers[0], 2**32 - 1], np.uint32), raw),
        lambda numbers, raw: (numbers, raw[:-1]),
        key_at(0, 2**64 - 1),
        key_at(0, 127),
        float_at(0, np.nan),
        float_at(0, 1e9),
        float_at(1, 1e9),
    ],
)
def test_sums_that_no_rows_can_have_are_refused(change, kept):
    with pytest.raises(ValueError, match="these bytes: the sketch is inconsistent; it was not written by truthcal"):
        tc.Sketch.from_bytes(forged(change))


def test_missing_sums_of_groups_are_refused():
    def change(numbers, raw):
        k = int(numbers[1])
        return np.array([0, k - 1], np.uint32), np.concatenate([raw[1:k], raw[k + 2 :]])

    with pytest.raises(ValueError, match="the sketch is inconsistent"):
        tc.Sketch.from_bytes(forged(change))


def test_damaged_files_are_refused():
    data = grouped_sketch().to_bytes()
    with pytest.raises(ValueError, match="is corrupted"):
        tc.Sketch.from_bytes(data[:-40] + bytes(8) + data[-32:])
    with pytest.raises(ValueError, match="is truncated"):
        tc.Sketch.from_bytes(data[:-40])


# --- tables -----------------------------------------------------------------------------------------------------------


def grouped_table(seed=0):
    rng = np.random.default_rng(seed)
    sketches = {}
    for site in ("a", "b"):
        y, p, groups = rows(rng, 30)
        sketches[site] = tc.Sketch(256).update(y, p, groups=groups)
    return tc.SketchTable.from_sketches(sketches, by="site"), sketches


def test_tables_keep_the_groups_of_each_segment(kept):
    table, sketches = grouped_table()
    for data in (table, tc.SketchTable.from_bytes(table.to_bytes())):
        for site, sketch in sketches.items():
            assert_same_flips(data[site], sketch)
        assert_same_flips(data.total(), sketches["a"] + sketches["b"])
    assert table.to_bytes() == tc.SketchTable.from_bytes(table.to_bytes()).to_bytes()
    assert int.from_bytes(table.to_bytes()[8:12], "little") == 3


def test_tables_merge_and_roll_up_with_groups(kept):
    (one, sketches), (other, others) = grouped_table(), grouped_table(1)
    both = one + other
    for site in sketches:
        assert_same_flips(both[site], sketches[site] + others[site])
        assert_same_flips(one[site], sketches[site])  # unchanged
    days = {("mon", "a"): sketches["a"], ("mon", "b"): sketches["b"], ("tue", "a"): others["a"]}
    by_day = tc.SketchTable.from_sketches(days, by=["day", "site"]).rollup("day")
    assert_same_flips(by_day["mon"], sketches["a"] + sketches["b"])
    assert_same_flips(by_day["tue"], others["a"])


def test_a_sketch_from_a_table_is_a_copy(kept):
    table, sketches = grouped_table()
    table["a"].update([1], [0.5], groups=[5])
    assert_same_flips(table["a"], sketches["a"])


def test_tables_with_and_without_groups_are_not_mixed():
    table, sketches = grouped_table()
    alone = tc.Sketch(256).update([0, 1], [0.2, 0.3])
    with pytest.raises(ValueError, match="cannot merge a sketch without groups into one with groups"):
        tc.SketchTable.from_sketches(sketches | {"c": alone}, by="site")
    with pytest.raises(ValueError, match="cannot merge a table without groups into one with groups"):
        table.merge(tc.SketchTable.from_sketches({"a": alone}, by="site"))


def test_a_damaged_table_is_refused():
    data = grouped_table()[0].to_bytes()
    (more,) = struct.unpack_from("<Q", data, 60)
    start = len(data) - 32 - more
    broken = sealed(data[:start] + (5).to_bytes(8, "little") + data[start + 8 : -32])
    with pytest.raises(ValueError, match="the sketch table is inconsistent"):
        tc.SketchTable.from_bytes(broken)
