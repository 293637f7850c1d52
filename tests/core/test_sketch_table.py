"""Tables of sketches: the same numbers as a sketch of each group's rows, keys of many types, merging, files."""

import base64
import copy
import hashlib
import json
import math
import os
import pickle
import re
import struct
import zlib
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import examples, inner_probabilities, weights

import truthcal as tc
from truthcal.core import file_format
from truthcal.core.cell_codec import COLUMNS, pack_cells, unpack_cells
from truthcal.core.group_keys import check_by
from truthcal.core.sketch_table import SketchTable
from truthcal.results.measures import BoundedArray

ATB = ["atb", "atb_low", "atb_high", "noise_floor", "excess"]
STATISTICS = ["n", "weight", "mean_proba", "mean_true", "bias", "brier", *ATB]
close = {"rel": 1e-12, "abs": 1e-300, "nan_ok": True}


def some_rows(n, n_groups, seed=0, weighted=False):
    """Keys, outcomes, predictions and weights, as lists."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    w = rng.random(n) + 0.1 if weighted else np.ones(n)
    group = rng.integers(0, n_groups, n)
    return [f"g{k:05}" for k in group], (rng.random(n) < p).astype(float).tolist(), p.tolist(), w.tolist()


def by_hand(keys, y, p, w=None, n_buckets=64):
    """A dict of sketches, one for each group, from the group's rows."""
    w = [1.0] * len(y) if w is None else w
    rows = {}
    for key, *row in zip(keys, y, p, w, strict=True):
        rows.setdefault(key, []).append(row)
    return {key: tc.Sketch(n_buckets).update(*map(list, zip(*own, strict=True))) for key, own in rows.items()}


def table_of(keys, y, p, w=None, n_buckets=64, by="segment"):
    return SketchTable.from_sketches(by_hand(keys, y, p, w, n_buckets), by)


def cells_of(sketches):
    """What an engine would hand over for these sketches."""
    parts = [sketch._filled() for sketch in sketches.values()]
    group = np.concatenate([np.full(len(filled), g) for g, (filled, _) in enumerate(parts)])
    keys = [key if isinstance(key, tuple) else (key,) for key in sketches]
    return keys, group, np.concatenate([part[0] for part in parts]), np.hstack([part[1] for part in parts])


def assert_same_sketch(a, b, rel=1e-12):
    left, right = a.table(), b.table()
    for name in ("bucket", "n", "min", "max"):
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
    size = (right["pos"] + right["neg"]).max(initial=1e-300)
    for name in ("weight", "ww", "wp", "pos", "neg", "wcp", "wcc", "wwcc", "wwv"):
        np.testing.assert_allclose(left[name], right[name], rtol=rel, atol=rel * size, err_msg=name)


def assert_holds(table, sketches, rel=1e-12):
    """The table has these groups and no other, with these sums."""
    assert set(table) == set(sketches)
    for key, sketch in sketches.items():
        assert_same_sketch(table[key], sketch, rel)


# --- the same numbers as sketches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_buckets", [1, 8, 4096])
def test_statistics_are_those_of_each_group(n_buckets, weighted):
    sketches = by_hand(*some_rows(600, 40, weighted=weighted), n_buckets=n_buckets)
    table = SketchTable.from_sketches(sketches, "segment")
    assert list(table) == sorted(sketches)
    brackets, atb, atb_l1 = table.distcal_bracket(), table.atb(), table.atb_l1()
    for g, key in enumerate(table):
        sketch = sketches[key]
        assert table.n[g] == sketch.n
        assert table.weight[g] == pytest.approx(sketch.weight, **close)
        for name in ("bias", "brier", "noise_floor"):
            assert getattr(table, name)()[g] == pytest.approx(getattr(sketch, name)(), **close), name
        for found, expected in ((atb[g], sketch.atb()), (atb_l1[g], sketch.atb_l1())):
            assert found.to_dict() == pytest.approx(expected.to_dict(), **close)
        bracket = {name: column[g] for name, column in brackets.items()}
        assert bracket == pytest.approx(sketch.distcal_bracket().to_dict(), **close)
    assert table.n.dtype == np.int64


@pytest.mark.parametrize("weighted", [False, True])
def test_bounds_contain_the_atb_of_each_groups_rows(weighted):
    keys, y, p, w = some_rows(500, 30, seed=3, weighted=weighted)
    table = table_of(keys, y, p, w, n_buckets=16)
    atb, atb_l1 = table.atb(), table.atb_l1()
    for g, key in enumerate(table):
        own = [[column[i] for i in range(len(keys)) if keys[i] == key] for column in (y, p, w)]
        assert tc.atb(own[0], own[1], sample_weight=own[2]) in atb[g]
        assert tc.atb_l1(own[0], own[1], sample_weight=own[2]) in atb_l1[g]


@pytest.mark.parametrize("weighted", [False, True])
def test_table_against_summaries_of_the_rows(weighted):
    """Exact summaries, so only as close as the buckets are fine."""
    keys, y, p, w = some_rows(300, 60, seed=1, weighted=weighted)
    columns = table_of(keys, y, p, w, n_buckets=2**12).table()
    assert list(columns) == ["segment", *STATISTICS]
    assert {len(column) for column in columns.values()} == {len(set(keys))}
    assert min(columns["n"]) == 1  # so that there is an excess of one row
    for g, key in enumerate(columns["segment"]):
        own = [[column[i] for i in range(len(keys)) if keys[i] == key] for column in (y, p, w)]
        exact = tc.atb_summary(own[0], own[1], sample_weight=own[2])
        expected = {
            "n": exact.n,
            "weight": sum(own[2]),
            "mean_proba": np.average(own[1], weights=own[2]),
            "mean_true": np.average(own[0], weights=own[2]),
            "bias": exact.bias,
            "brier": exact.brier,
            "atb": exact.value,
            "noise_floor": exact.noise_floor,
            "excess": exact.excess,
        }
        for name, value in expected.items():
            assert columns[name][g] == pytest.approx(value, rel=1e-9, abs=1e-6, nan_ok=True), name
        assert columns["atb_low"][g] <= exact.value <= columns["atb_high"][g]
        assert math.isnan(columns["excess"][g]) == (exact.n == 1)


def test_table_is_ready_for_a_data_frame():
    frame = pd.DataFrame(table_of(*some_rows(50, 5)).table())
    assert frame["segment"].tolist() == [f"g{k:05}" for k in range(5)]
    assert frame["n"].sum() == 50


def test_many_small_groups_take_little_memory_and_have_the_same_numbers():
    rng = np.random.default_rng(0)
    keys = [(f"shop {k % 100}", k // 100) for k in range(10_000) for _ in range(3)]
    p = rng.random(30_000)
    y = (rng.random(30_000) < p).astype(float)
    bucket = tc.bucket_index(p)
    c, v = p - y, p * (1 - p)
    one = np.ones(30_000)
    sums = [one, one, one, p, np.maximum(c, 0), np.maximum(-c, 0), c * p, c * c, c * c, v, c, one, one]
    columns = np.array([*sums, p, p, one])
    numbers = {key: g for g, key in enumerate(dict.fromkeys(keys))}
    group = np.array([numbers[key] for key in keys])
    table = SketchTable._from_cells(["shop", "day"], list(numbers), group, bucket, columns, 4096)
    assert len(table) == 10_000
    assert table.n.sum() == 30_000
    state = table._starts.nbytes + table._buckets.nbytes + table._columns.nbytes
    assert state <= 136 * 30_000 + 8 * 10_001
    assert len(table.to_bytes()) < 100 * 30_000 + 40 * 10_000
    for key in rng.choice(10_000, 50):
        key = (f"shop {key % 100}", int(key) // 100)
        own = [i for i in range(30_000) if keys[i] == key]
        assert_same_sketch(table[key], tc.Sketch().update(y[own], p[own]))
        expected = tc.atb_summary(y[own], p[own])
        assert table.bias()[list(table).index(key)] == pytest.approx(expected.bias, abs=1e-15)
    assert_same_sketch(table.total(), tc.Sketch().update(y, p))


def test_buckets_are_stored_sparsely_and_in_order():
    table = table_of(*some_rows(500, 7))
    assert table._starts.tolist() == [0, *np.cumsum([len(table[key].table()["n"]) for key in table])]
    assert table._columns.shape == (len(COLUMNS), len(table._buckets))
    for first, last in zip(table._starts[:-1], table._starts[1:], strict=True):
        assert (np.diff(table._buckets[first:last]) > 0).all()
    assert table._buckets.dtype == np.int64


# --- from cells ------------------------------------------------------------------------------------------------------


def test_cells_in_any_order_and_in_pieces_are_added_up():
    rows = some_rows(400, 6, seed=5, weighted=True)
    pieces = [by_hand(*([column[k::3] for column in rows])) for k in range(3)]
    keys, group, bucket, columns = [], [], [], []
    for piece in pieces:
        more = cells_of(piece)
        group.append(more[1] + len(keys))
        keys += more[0]
        bucket.append(more[2])
        columns.append(more[3])
    group, bucket, columns = np.concatenate(group), np.concatenate(bucket), np.hstack(columns)
    mixed = np.random.default_rng(0).permutation(len(group))
    table = SketchTable._from_cells(("segment",), keys, group[mixed], bucket[mixed], columns[:, mixed], 64)
    assert_holds(table, by_hand(*rows))
    assert list(table) == sorted(set(rows[0]))


def test_what_was_handed_over_is_not_changed_later():
    keys, group, bucket, columns = cells_of(by_hand(*some_rows(30, 3)))
    table = SketchTable._from_cells(["segment"], keys, group, bucket, columns, 64)
    before = table.to_bytes()
    columns[:] = 0
    assert table.to_bytes() == before


def test_groups_without_rows_are_left_out():
    full, empty = tc.Sketch(4).update([0, 1], [0.1, 0.9]), tc.Sketch(4)
    table = SketchTable.from_sketches({"b": full, "a": empty}, "x")
    assert list(table) == ["b"]
    keys, group, bucket, columns = cells_of({"b": full})
    table = SketchTable._from_cells(["x"], [("a",), *keys, ("c",)], group + 1, bucket, columns, 4)
    assert list(table) == ["b"]
    assert len(SketchTable.from_sketches({"a": empty}, "x")) == 0


FORGED = {
    "n": [0.0, -1.0, 2.5, math.nan],
    "w": [0.0, -1.0, 0.05, 1e300],
    "ww": [-1.0, 2.0],
    "wp": [-1.5, 5.0, 0.2],
    "pos": [-0.1, 100.0],
    "neg": [-0.1, 100.0],
    "wcp": [7.0, -7.0],
    "wcc": [-1.0, 100.0],
    "wwcc": [-1.0, 100.0],
    "wwv": [-0.25, 100.0],
    "wwc": [-1.1, 1.1, math.nan],
    "www": [0.0, 0.9, 1.1],
    "wwww": [-1.0, 0.9, 1.1],
    "top": [0.9, 1.1, math.inf],
    "min": [-0.1, 0.2, 0.3, math.nan],
    "max": [0.05, 0.3, math.inf],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FORGED.items() for value in values])
def test_cells_that_no_rows_have_are_refused(name, value):
    keys, group, bucket, columns = cells_of({key: tc.Sketch(4).update([0, 1], [0.1, 0.9]) for key in "ab"})
    columns[COLUMNS.index(name), 2] = value
    with pytest.raises(
        ValueError, match=r"^the sums of bucket 0 of group 'b' are inconsistent; no rows can have these"
    ):
        SketchTable._from_cells(["x"], keys, group, bucket, columns, 4)


@pytest.mark.parametrize("bucket", [-1, 1, 3, 4])
def test_cells_of_the_wrong_bucket_are_refused(bucket):
    keys, group, _, columns = cells_of({"a": tc.Sketch(4).update([0], [0.1])})
    with pytest.raises(ValueError, match=f"the sums of bucket {bucket} of group 'a' are inconsistent"):
        SketchTable._from_cells(["x"], keys, group, np.array([bucket]), columns, 4)


def test_cells_without_a_group_are_refused():
    keys, group, bucket, columns = cells_of({"a": tc.Sketch(4).update([0], [0.1])})
    message = "and each group must be one of the 1 keys"
    for wrong in (group - 1, group + 1, np.array([0, 0])):
        with pytest.raises(ValueError, match=message):
            SketchTable._from_cells(["x"], keys, wrong, bucket, columns, 4)
    with pytest.raises(ValueError, match=message):
        SketchTable._from_cells(["x"], keys, group, bucket, columns[:-1], 4)
    with pytest.raises(ValueError, match="`n_buckets` must be a power of two; got 5"):
        SketchTable._from_cells(["x"], keys, group, bucket, columns, 5)
    with pytest.raises(TypeError, match=r"a key must be a tuple of 2 values, one each for x, y; got \('a',\)"):
        SketchTable._from_cells(["x", "y"], keys, group, bucket, columns, 4)


# --- keys ------------------------------------------------------------------------------------------------------------

ONE = tc.Sketch(4).update([0], [0.25])
PARIS = ZoneInfo("Europe/Paris")
NOON = datetime(2024, 5, 1, 12, 0, 0, 5)
# One of each kind, in the order of a table.
EVERY_KIND = [
    -math.inf,
    -7,
    False,
    0.5,
    Decimal("0.75"),
    2**70,
    math.inf,
    "",
    "B",
    "a",
    "é\n\ud800",
    b"",
    b"\x00\xff",
    date(1, 1, 1),
    date(2024, 5, 1),
    datetime(2024, 5, 1),
    NOON,
    NOON.replace(tzinfo=UTC),
    None,
]


def keyed(*keys, by="x"):
    return SketchTable.from_sketches({key: ONE for key in keys}, by)


def spelled(keys):
    return [(type(key), repr(key)) for key in keys]


def test_mixed_keys_are_sorted_and_come_back_as_they_were():
    mixed = [EVERY_KIND[i] for i in np.random.default_rng(0).permutation(len(EVERY_KIND))]
    table = keyed(*mixed)
    assert spelled(table) == spelled(EVERY_KIND)
    assert spelled(SketchTable.from_bytes(table.to_bytes())) == spelled(EVERY_KIND)
    assert all(key in table for key in EVERY_KIND)
    assert table.table()["x"] == EVERY_KIND
    pairs = SketchTable.from_sketches({(b, a): ONE for a in mixed for b in mixed}, ["x", "y"])
    assert spelled(pairs) == spelled([(a, b) for a in EVERY_KIND for b in EVERY_KIND])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.int32(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (np.datetime64("2024-05-01"), date(2024, 5, 1)),
        (np.datetime64("2024-05"), date(2024, 5, 1)),
        (np.datetime64("2024-05-01T12:00:00"), datetime(2024, 5, 1, 12)),
        (np.datetime64("2024-05-01T12:00:00.000005", "ns"), NOON),
        (pd.Timestamp(NOON), NOON),
        (pd.Timestamp(NOON, tz="Europe/Paris"), datetime(2024, 5, 1, 10, 0, 0, 5, UTC)),
        (NOON.replace(tzinfo=PARIS), datetime(2024, 5, 1, 10, 0, 0, 5, UTC)),
        (datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=PARIS), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)),
        (NOON.replace(fold=1), NOON),
        (-0.0, 0.0),
        (math.nan, None),
        (np.float64("nan"), None),
        (Decimal("nan"), None),
        (Decimal("sNaN"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT"), None),
        (np.datetime64("NaT", "ns"), None),
    ],
)
def test_keys_become_plain_values(given, kept):
    if not (isinstance(given, Decimal) and given.is_snan()):  # no dict has such a key, but an engine may hand it over
        assert spelled(keyed(given)) == spelled([kept])
    assert given in keyed(kept)
    _, group, bucket, columns = cells_of({"a": ONE})
    assert spelled(SketchTable._from_cells(["x"], [(given,)], group, bucket, columns, 4)) == spelled([kept])


def test_all_that_is_missing_is_one_group():
    table = keyed(None, math.nan, pd.NA, pd.NaT, Decimal("nan"), 1)
    assert list(table) == [1, None]
    assert table.n.tolist() == [1, 5]
    assert table[math.nan].n == 5


@pytest.mark.parametrize("order", [1, -1])
def test_equal_numbers_of_different_types_are_one_key(order):
    """As in a dict; which spelling stays does not depend on the order."""
    spellings = [(True, 1), (1, 2), (1.0, 4), (Decimal("1"), 8), (Decimal("1.0"), 16)]
    tables = [
        SketchTable.from_sketches({key: tc.Sketch(4).update([0] * n, [0.25] * n)}, "x") for key, n in spellings[::order]
    ]
    assert spelled(sum(tables)) == [(bool, "True")]
    assert sum(tables)[1].n == 31
    for first in range(1, 5):
        kept = [table for (_, n), table in zip(spellings[::order], tables, strict=True) if n >= 2**first]
        assert spelled(sum(kept)) == spelled([spellings[first][0]])
    later = sum(tables).rollup("x")
    assert all(key in later for key, _ in spellings)


def test_whole_numbers_with_and_without_missing_ones_meet():
    """Pandas turns a column of integers into floats as soon as one is missing."""
    monday, tuesday = keyed(1, 2), keyed(2.0, 3.0, math.nan)
    assert spelled(monday + tuesday) == spelled([1, 2, 3.0, None])
    assert (monday + tuesday).n.tolist() == [1, 2, 1, 1]


def test_equal_moments_of_different_zones_are_one_key():
    paris, york = NOON.replace(tzinfo=PARIS), NOON.replace(tzinfo=timezone(timedelta(hours=-4)))
    table = keyed(paris) + keyed(york - timedelta(hours=6))
    assert spelled(table) == spelled([paris.astimezone(UTC)])
    assert table.n.tolist() == [2]
    assert york - timedelta(hours=6) in table


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    "key",
    [("a",), 1j, Colour.RED, pd.Interval(0, 1), timedelta(1), np.timedelta64(1, "D"), frozenset(), np.longdouble(1)],
)
def test_other_keys_are_refused(key):
    with pytest.raises(
        TypeError,
        match=r"^values of the grouping column 'x' must be None, bool, int, float, str, bytes, Decimal, date or "
        r"datetime; got .*\. Convert them to text, for example with str\(\)\.$",
    ):
        keyed(key)
    assert key not in keyed("a")


@pytest.mark.parametrize("time", [pd.Timestamp(1), np.datetime64(1, "ns")])
def test_times_finer_than_microseconds_are_refused(time):
    with pytest.raises(
        ValueError, match=r"column 'x' has times finer than microseconds, at 1970-.*; round them before grouping"
    ):
        keyed(time)


@pytest.mark.parametrize("key", ["ab", ("a",), ("a", "b", "c"), 5, ["a", "b"]])
def test_keys_of_several_columns_are_tuples(key):
    table = keyed(("a", 1), by=["x", "y"])
    assert key not in table
    if not isinstance(key, list):
        with pytest.raises(TypeError, match=r"a key must be a tuple of 2 values, one each for x, y; got "):
            keyed(key, by=["x", "y"])


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        ([], ValueError, "`by` is empty; name at least one column, or use one Sketch for all rows"),
        (["a", "b", "a"], ValueError, "`by` has 'a' twice; name each column once"),
        ("n", ValueError, "`by` must not name a column 'n': a table has a statistic of that name. Rename it"),
        (["a", "atb_low"], ValueError, "`by` must not name a column 'atb_low'"),
        (5, TypeError, "`by` must be the name of a column or a list of names; got 5"),
        (["a", 1], TypeError, r"`by` must be the name of a column or a list of names; got \['a', 1\]"),
        (None, TypeError, "`by` must be the name of a column or a list of names; got None"),
    ],
)
def test_bad_names_of_columns_are_refused(by, error, message):
    for ask in (SketchTable, check_by, lambda by: keyed("a", by=by), lambda by: keyed("a").rollup(by)):
        with pytest.raises(error, match=message):
            ask(by)


def test_every_statistic_is_a_reserved_name():
    assert list(keyed("a").table()) == ["x", *STATISTICS]
    for name in STATISTICS:
        with pytest.raises(ValueError, match=f"`by` must not name a column '{name}'"):
            SketchTable(name)


# --- a mapping -------------------------------------------------------------------------------------------------------


def test_it_is_a_mapping():
    sketches = by_hand(*some_rows(100, 4))
    table = SketchTable.from_sketches(sketches, ("segment",))
    assert table.by == ("segment",)
    assert table.n_buckets == 64
    assert len(table) == 4
    assert list(table.keys()) == list(table) == sorted(sketches)
    assert dict(table).keys() == sketches.keys()
    assert [sketch.n for sketch in table.values()] == table.n.tolist()
    assert table.get("nobody") is None
    assert "g00001" in table
    assert ["g00001"] not in table
    assert table["g00001"] is not table["g00001"]
    assert isinstance(table["g00001"], tc.Sketch)
    same = table
    assert table == same
    assert table != SketchTable.from_sketches(sketches, ("segment",))
    assert len({table, table}) == 1


def test_a_sketch_from_a_table_is_a_copy():
    table = keyed("a", "b")
    table["a"].update([1], [0.5])
    assert table.n.tolist() == [1, 1]


def test_an_unknown_key_is_a_kind_error():
    with pytest.raises(KeyError, match=r"no group 'z' in this table by x; the 2 are 'a', 'b'\."):
        keyed("a", "b")["z"]
    with pytest.raises(KeyError, match=r"no group 'z' in this table by x; the 5 are 'a', 'b', 'c', \.\.\.\."):
        keyed(*"abcde")["z"]
    with pytest.raises(KeyError, match=r"no group 'a' in this table by x, y; the 1 are \('a', 1\)\."):
        keyed(("a", 1), by=["x", "y"])["a"]
    with pytest.raises(KeyError, match="no group 'a' in this table by x; it has none"):
        SketchTable("x")["a"]
    with pytest.raises(KeyError, match=r"no group \['a'\] in this table"):
        keyed("a")[["a"]]


def test_an_empty_table_answers_with_empty_arrays():
    table = SketchTable("x", 8)
    assert (len(table), table.by, table.n_buckets) == (0, ("x",), 8)
    assert {len(column) for column in table.table().values()} == {0}
    for empty in (table.n, table.weight, table.bias(), table.brier(), table.noise_floor(), table.atb(), table.atb_l1()):
        assert len(empty) == 0
    assert {len(column) for column in table.distcal_bracket().values()} == {0}
    assert table.total().n == 0
    assert len(table.rollup("x")) == 0
    assert SketchTable.from_bytes(table.to_bytes()).to_bytes() == table.to_bytes()
    assert str(table) == "0 groups by x, 0 rows"
    with pytest.raises(ValueError, match="`n_buckets` must be a power of two; got 5"):
        SketchTable("x", 5)


@pytest.mark.parametrize(
    ("sketches", "error", "message"),
    [
        ([ONE], TypeError, r"`sketches` must be a dict from keys to sketches; got \[Sketch"),
        ({"a": ONE, "b": 5}, TypeError, "`sketches` must contain a Sketch for each key; got 5 for 'b'"),
        ({}, ValueError, "`sketches` must all have the same n_buckets; found none"),
        ({"a": ONE, "b": tc.Sketch(8)}, ValueError, "`sketches` must all have the same n_buckets; found 4, 8"),
    ],
)
def test_what_is_no_dict_of_sketches_is_refused(sketches, error, message):
    with pytest.raises(error, match=message):
        SketchTable.from_sketches(sketches, "x")


# --- merging ---------------------------------------------------------------------------------------------------------

keyed_rows = st.lists(
    st.tuples(
        st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2.5, True])),
        st.integers(0, 1),
        inner_probabilities,
        weights,
    ),
    min_size=1,
    max_size=25,
)


@given(keyed_rows, st.data())
@examples(40)
def test_chunks_in_any_order_merge_to_the_whole(rows, data):
    chunk = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    whole = by_hand(*zip(*rows, strict=True))
    parts = [[row for row, k in zip(rows, chunk, strict=True) if k == c] for c in set(chunk)]
    tables = [table_of(*zip(*part, strict=True), by=["x", "y"]) for part in data.draw(st.permutations(parts))]
    before = [table.to_bytes() for table in tables]
    merged = sum(tables)
    assert_holds(merged, whole)
    assert [table.to_bytes() for table in tables] == before
    start = SketchTable(["x", "y"], 64)
    for table in tables:
        assert start.merge(table) is start
    assert_holds(start, whole)
    assert start.to_bytes() == merged.to_bytes()
    assert_same_sketch(merged.total(), sum(whole.values()))
    assert_holds(merged.rollup("y"), by_hand([key[1] for key, *_ in rows], *list(zip(*rows, strict=True))[1:]))
    assert_same_sketch(merged.rollup("x").total(), sum(whole.values()))
    assert spelled(merged) == spelled(sum(reversed(tables)))


def test_two_hundred_tables_merge_to_the_whole():
    rows = some_rows(4_000, 10, seed=8, weighted=True)
    total = SketchTable("segment", 64)
    for first in range(0, 4_000, 20):
        total.merge(table_of(*[column[first : first + 20] for column in rows]))
    whole = by_hand(*rows)
    assert_holds(total, whole)
    assert total.atb().value == pytest.approx([whole[key].atb().value for key in total], rel=1e-9)


def test_a_table_merges_with_itself():
    table = table_of(*some_rows(50, 3))
    doubled = table + table
    assert doubled.n.tolist() == (2 * table.n).tolist()
    table.merge(table)
    assert table.to_bytes() == doubled.to_bytes()


def test_sums_are_new_tables():
    a, b = keyed("a"), keyed("b")
    before = a.to_bytes(), b.to_bytes()
    both, alone = a + b, sum([a])
    both.merge(a)
    alone.merge(b)
    assert (a.to_bytes(), b.to_bytes()) == before
    assert list(both) == list(alone) == ["a", "b"]


def test_merging_what_does_not_fit_is_refused_and_changes_nothing():
    table = keyed("a")
    before = table.to_bytes()
    finer = SketchTable.from_sketches({"b": tc.Sketch(8).update([0], [0.1])}, "x")
    for merge in (table.merge, lambda other: table + other):
        with pytest.raises(
            ValueError, match=r"merge a table with by=\('y',\) into one with by=\('x',\); use the same `by`"
        ):
            merge(keyed("b", by="y"))
        with pytest.raises(
            ValueError, match="cannot merge a table with n_buckets=8 into one with n_buckets=4; use the same"
        ):
            merge(finer)
    for other in (ONE, {"a": ONE}):
        kind = type(other).__name__
        with pytest.raises(TypeError, match=f"only a SketchTable can be merged into a SketchTable; got {kind}"):
            table.merge(other)
        with pytest.raises(TypeError, match="unsupported operand"):
            table + other
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + table
    assert table.to_bytes() == before


def test_rollup_groups_by_fewer_columns():
    keys, y, p, w = some_rows(300, 4, weighted=True)
    days = [date(2024, 1, 1 + k % 3) for k in range(300)]
    hours = [k % 5 for k in range(300)]
    table = table_of(zip(keys, days, hours, strict=True), y, p, w, by=["shop", "day", "hour"])
    assert len(table) == 60
    assert_holds(table.rollup("day"), by_hand(days, y, p, w))
    assert table.rollup("day").by == ("day",)
    assert_holds(table.rollup(["hour", "shop"]), by_hand(zip(hours, keys, strict=True), y, p, w))
    assert_holds(table.rollup(table.by), dict(table))
    with pytest.raises(ValueError, match="`by` must name columns of this table, shop, day, hour; got 'region'"):
        table.rollup(["day", "region"])


# --- printing --------------------------------------------------------------------------------------------------------


def test_repr_is_one_line():
    assert repr(table_of(*some_rows(2000, 4))) == "SketchTable(by=('segment',), n_buckets=64): 4 groups, 2,000 rows"
    assert repr(keyed(("a", 1), by=["x", "y"])) == "SketchTable(by=('x', 'y'), n_buckets=4): 1 group, 1 row"


def test_str_shows_the_largest_groups_first():
    sketches = {f"g{k:03}": tc.Sketch(4).update([0, 1] * (k + 1), [0.25, 0.75] * (k + 1)) for k in range(100)}
    lines = str(SketchTable.from_sketches(sketches, "segment")).splitlines()
    assert lines[:4] == [
        "100 groups by segment, 10,100 rows",
        "",
        "segment  rows  bias      ATB  noise floor",
        "g099      200    +0  0.01562    0.0009375",
    ]
    assert [line.split()[0] for line in lines[3:-1]] == [f"g{k:03}" for k in range(99, 79, -1)]
    assert lines[-1] == "... and 80 more"
    assert len(str(SketchTable.from_sketches(dict(list(sketches.items())[:20]), "segment")).splitlines()) == 23


def test_str_keeps_odd_keys_on_one_line():
    sure = tc.Sketch(4).update([0, 0], [0.0, 0.0])
    table = SketchTable.from_sketches({(None, "two\nlines"): ONE, (NOON, "x" * 100): sure}, ["when", "what"])
    text = str(table)
    assert text.splitlines()[2:] == [
        "when                        what                                      rows   bias     ATB  noise floor",
        f"2024-05-01 12:00:00.000005  {'x' * 26}\N{HORIZONTAL ELLIPSIS}{'x' * 13}     2     +0  {table.atb()[0].value:>6.4g}            0",
        "(missing)                   two\\nlines                                   1  +0.25  0.0625       0.1875",
    ]


def test_bounded_arrays_print_and_index():
    array = BoundedArray(np.array([0.25, 0.5]), np.array([0.24, 0.4]), np.array([0.26, 0.55]))
    assert str(array) == repr(array) == "2 numbers from 0.25 to 0.5, certain to 0.1"
    np.testing.assert_allclose(array.width, [0.02, 0.15])
    assert array[1] == tc.Bounded(0.5, 0.4, 0.55)
    assert [bounded.value for bounded in array] == [0.25, 0.5]
    assert list(array.to_dict()) == ["value", "low", "high"]
    assert str(BoundedArray(*np.array([[0.5], [0.4], [0.55]]))) == "0.5, certain to 0.1"
    assert str(BoundedArray(*np.empty((3, 0)))) == "no numbers"


# --- files -----------------------------------------------------------------------------------------------------------

# Two groups, ("a", 1) and (None, 2.5), by "x" and "y", as version 1 wrote them.
OLD_FILE = base64.b64decode(
    "VFJVVEhUQUIBAAAABAAAAAIAAAAAAAAAAwAAAAAAAAA4AAAAAAAAAAAAAAADAAAAAgAAAAAAAAAAAPA/AAAAAAAA8D8AAAAAAADwPwAAAAAAAP"
    "A/AAAAAAAA8D8AAAAAAAAAQAAAAAAAAPA/AAAAAAAA8D8AAAAAAAAQQAAAAAAAAMA/AAAAAAAA7D8AAAAAAADwPwAAAAAAAMA/AAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAwD8AAAAAAAAAAAAAAAAAAJA/AAAAAAAAvL8AAAAAAAAAAAAAAAAAAJA/AAAAAAAAkD8AAAAAAAAAAAAAAA"
    "AAAJA/AAAAAAAAkD8AAAAAAAAAAAAAAAAAALw/AAAAAAAAvD8AAAAAAADwPwAAAAAAAMA/AAAAAAAA7D8AAAAAAADgPwAAAAAAAMA/AAAAAAAA"
    "7D8AAAAAAADgPwIAAAABAAAAeyJieSI6WyJ4IiwieSJdLCJrZXlzIjpbWyJhIiwxXSxbbnVsbCx7ImZsb2F0IjoiMi41In1dXX1jLeVqn+l2+R"
    "sMi8qBOaHAa5HfrWx/SaIGwRHbyl3kjQ=="
)


def small():
    sketches = {
        ("a", 1): tc.Sketch(4).update([0, 1], [0.125, 0.875]),
        (None, 2.5): tc.Sketch(4).update([0.5], [0.5], [2.0]),
    }
    return SketchTable.from_sketches(sketches, ["x", "y"])


def test_file_round_trip(tmp_path):
    table = table_of(*some_rows(1000, 20, weighted=True))
    table.save(tmp_path / "week")
    loaded = SketchTable.load(tmp_path / "week")
    assert loaded.to_bytes() == table.to_bytes()
    assert loaded.table()["atb_high"].tolist() == table.table()["atb_high"].tolist()
    assert os.listdir(tmp_path) == ["week"]
    for again in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table), SketchTable.from_bytes(table.to_bytes())):
        assert again.to_bytes() == table.to_bytes()
        assert again.merge(table).n.tolist() == (2 * table.n).tolist()


def test_a_file_written_by_version_1_is_still_read():
    table = SketchTable.from_bytes(OLD_FILE)
    assert spelled(table) == spelled([("a", 1), (None, 2.5)])
    assert table.to_bytes() == small().to_bytes()
    assert_same_table(SketchTable.from_bytes(table.to_bytes()), small())


def assert_same_table(table, other):
    assert spelled(table) == spelled(other)
    for key in table:
        assert table[key].to_bytes() == other[key].to_bytes()


def old_table():
    """Three groups of 4096 buckets of equal width, from a file of version 1."""
    return SketchTable.load(Path(__file__).parents[1] / "data" / "sketch-table-v1-4096.bin")


def test_tables_of_version_1_merge_among_themselves_only():
    table = old_table()
    assert repr(table) == "SketchTable(by=('site',), n_buckets=4096, equal widths): 3 groups, 46 rows"
    assert (table + old_table()).n.tolist() == (2 * table.n).tolist()
    assert repr(table.total()) == "Sketch(n_buckets=4096, equal widths): 46 rows"
    assert table.rollup("site").grid == table["a"].grid == table.grid
    again = SketchTable.from_bytes(table.to_bytes())
    assert_same_table(again, table)
    new = SketchTable.from_sketches({"a": tc.Sketch().update([0], [0.5])}, "site")
    message = (
        "cannot merge a table with 4,096 buckets of equal width into one with 4,096 graded buckets: 4,096 buckets of "
        "equal width come from a file of format version 1, and new sketches have 4,096 graded buckets. Build the older "
        "table again from its rows."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        new.merge(table)
    with pytest.raises(ValueError, match="cannot merge a table with 4,096 graded buckets into one with 4,096 buckets"):
        table.merge(new)
    with pytest.raises(ValueError, match="cannot merge a sketch with 4,096 graded buckets into one with 4,096 buckets"):
        SketchTable.from_sketches({"a": table["a"], "b": new["a"]}, "site")


def resealed(body):
    return body + hashlib.sha256(body).digest()


TEXT = b'{"by":["x","y"],"keys":[["a",1],[null,{"float":"2.5"}]]}'


def test_format_is_as_documented():
    """Written from docs/reference/sketch-format.md with nothing but struct, zlib and json."""
    data = small().to_bytes()
    *numbers, cells, groups = struct.unpack_from("<8sIIIQQQQQ", data)
    assert numbers == [b"TRUTHTAB", 2, 0, 4, 2, 3, len(TEXT)]
    assert len(data) == 60 + cells + groups + 32
    assert zlib.decompress(data[60 + cells : -32]) == struct.pack("<2I", 2, 1) + TEXT
    bucket, columns = unpack_cells(memoryview(data)[60 : 60 + cells], 3)
    assert bucket.tolist() == [0, 3, 2]
    assert dict(zip(COLUMNS, columns.tolist(), strict=True)) == {
        "n": [1, 1, 1],
        "w": [1, 1, 2],
        "ww": [1, 1, 4],
        "wp": [0.125, 0.875, 1],
        "pos": [0.125, 0, 0],
        "neg": [0, 0.125, 0],
        "wcp": [0.125**2, -0.125 * 0.875, 0],
        "wcc": [0.125**2, 0.125**2, 0],
        "wwcc": [0.125**2, 0.125**2, 0],
        "wwv": [0.125 * 0.875, 0.125 * 0.875, 1],
        "wwc": [0.125, -0.125, 0],
        "www": [1, 1, 8],
        "wwww": [1, 1, 16],
        "min": [0.125, 0.875, 0.5],
        "max": [0.125, 0.875, 0.5],
        "top": [1, 1, 2],
    }
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()


def version_2(text=TEXT, counts=(2, 1), graded=0, n_buckets=4, g=2, m=3, k=None):
    """The small table with other names or numbers."""
    cells = pack_cells(small()._buckets, small()._columns)
    groups = zlib.compress(struct.pack(f"<{len(counts)}I", *counts) + text)
    numbers = graded, n_buckets, g, m, len(text) if k is None else k, len(cells), len(groups)
    return resealed(struct.pack("<8sIIIQQQQQ", b"TRUTHTAB", 2, *numbers) + cells + groups)


BROKEN_VERSION_2 = {
    "no json": version_2(b"{"),
    "few keys": version_2(b'{"by":["x","y"],"keys":[["a",1]]}'),
    "unsorted": version_2(b'{"by":["x","y"],"keys":[[null,1],["a",1]]}'),
    "empty group": version_2(counts=(3, 0)),
    "few cells": version_2(counts=(1, 1)),
    "odd buckets": version_2(n_buckets=5),
    "no buckets": version_2(n_buckets=0),
    "huge buckets": version_2(n_buckets=2**30),
    "graded, but too few": version_2(graded=1),
    "unknown grid": version_2(graded=7),
    "other grid": version_2(graded=1, n_buckets=4096),
    "more groups": version_2(g=3),
    "more cells": version_2(m=4),
    "too many cells": version_2(m=2**40),
    "longer names": version_2(k=len(TEXT) + 1),
    "huge names": version_2(k=2**40),
}


@pytest.mark.parametrize("data", BROKEN_VERSION_2.values(), ids=BROKEN_VERSION_2)
def test_inconsistent_files_of_version_2_are_refused(data):
    assert SketchTable.from_bytes(version_2()).to_bytes() == small().to_bytes()
    with pytest.raises(ValueError, match="these bytes: the sketch table is inconsistent; it was not written by"):
        SketchTable.from_bytes(data)


def test_keys_in_files_have_their_types():
    data = keyed(*EVERY_KIND).to_bytes()
    cells = struct.unpack_from("<8sIIIQQQQQ", data)[-2]
    names = json.loads(zlib.decompress(data[60 + cells : -32])[4 * len(EVERY_KIND) :])
    assert [key[0] for key in names["keys"]] == [
        {"float": "-inf"},
        -7,
        False,
        {"float": "0.5"},
        {"decimal": "0.75"},
        2**70,
        {"float": "inf"},
        "",
        "B",
        "a",
        "é\n\ud800",
        {"bytes": ""},
        {"bytes": "00ff"},
        {"date": "0001-01-01"},
        {"date": "2024-05-01"},
        {"datetime": "2024-05-01T00:00:00"},
        {"datetime": "2024-05-01T12:00:00.000005"},
        {"datetime": "2024-05-01T12:00:00.000005+00:00"},
        None,
    ]


def with_text(text):
    """The small table with other names."""
    body = OLD_FILE[:-32]
    return resealed(body[:32] + struct.pack("<Q", len(text)) + body[40 : 52 + 288 + 8] + text)


def with_bytes(offset, packed):
    body = OLD_FILE[:-32]
    return resealed(body[:offset] + packed + body[offset + len(packed) :])


CONTRADICTORY = {
    "no json": with_text(b"{"),
    "no ascii": with_text(b"\xff\xfe"),
    "other json": with_text(b"[1]"),
    "no keys": with_text(b'{"by":["x","y"]}'),
    "deep": with_text(b"[" * 100_000),
    "keys no list": with_text(b'{"by":["x","y"],"keys":5}'),
    "few keys": with_text(b'{"by":["x","y"],"keys":[["a",1]]}'),
    "many keys": with_text(b'{"by":["x","y"],"keys":[["a",1],["b",1],[null,1]]}'),
    "short keys": with_text(b'{"by":["x","y"],"keys":[["a"],["b"]]}'),
    "unsorted": with_text(b'{"by":["x","y"],"keys":[[null,1],["a",1]]}'),
    "twice": with_text(b'{"by":["x","y"],"keys":[["a",1],["a",1]]}'),
    "twice, spelled differently": with_text(b'{"by":["x","y"],"keys":[["a",1],["a",{"float":"1.0"}]]}'),
    "reserved": with_text(b'{"by":["x","n"],"keys":[["a",1],["b",1]]}'),
    "odd tag": with_text(b'{"by":["x","y"],"keys":[["a",{"complex":"1j"}],["b",1]]}'),
    "two tags": with_text(b'{"by":["x","y"],"keys":[["a",{"float":"1","int":"1"}],["b",1]]}'),
    "list as value": with_text(b'{"by":["x","y"],"keys":[["a",[1]],["b",1]]}'),
    "odd decimal": with_text(b'{"by":["x","y"],"keys":[["a",{"decimal":"x"}],["b",1]]}'),
    "odd date": with_text(b'{"by":["x","y"],"keys":[["a",{"date":"x"}],["b",1]]}'),
    "number for text": with_text(b'{"by":["x","y"],"keys":[["a",{"date":5}],["b",1]]}'),
    "odd buckets": with_bytes(12, struct.pack("<I", 5)),
    "no buckets": with_bytes(12, struct.pack("<I", 0)),
    "huge buckets": with_bytes(12, struct.pack("<I", 2**30)),
    "falling buckets": with_bytes(40, struct.pack("<2I", 3, 0)),
    "bucket twice": with_bytes(40, struct.pack("<2I", 0, 0)),
    "beyond": with_bytes(48, struct.pack("<I", 6)),
    "wrong bucket": with_bytes(48, struct.pack("<I", 1)),
    "nan": with_bytes(52, struct.pack("<d", math.nan)),
    "no rows": with_bytes(52, struct.pack("<d", 0)),
    "empty group": with_bytes(52 + 288, struct.pack("<2I", 3, 0)),
    "few cells": with_bytes(52 + 288, struct.pack("<2I", 1, 1)),
    "many cells": with_bytes(52 + 288, struct.pack("<2I", 2**32 - 1, 2**32 - 1)),
    "no names in an empty table": resealed(struct.pack("<8sIIQQQ", b"TRUTHTAB", 1, 4, 0, 0, 2) + b"{}"),
}


def forged(keys, cells, counts):
    """A whole file with these cells of one sketch, each as it was written, for these keys."""
    bucket, columns = tc.Sketch(4).update([0, 1], [0.125, 0.875])._filled()
    text = json.dumps({"by": ["x"], "keys": [[key] for key in keys]}).encode()
    head = struct.pack("<8sIIQQQ", b"TRUTHTAB", 1, 4, len(keys), len(cells), len(text))
    arrays = bucket[cells].astype("<u4"), columns[[*range(10), 13, 14]][:, cells], np.array(counts, "<u4")
    return resealed(head + b"".join(array.tobytes() for array in arrays) + text)


def test_cells_of_a_file_are_in_order():
    assert SketchTable.from_bytes(forged("ab", [0, 1, 1], [2, 1])).n.tolist() == [2, 1]
    assert SketchTable.from_bytes(forged("ab", [1, 0, 1], [1, 2])).n.tolist() == [1, 2]
    for data in (
        forged("ab", [1, 0, 1], [2, 1]),  # falling
        forged("ab", [0, 0, 1], [2, 1]),  # twice
        forged("ab", [0, 1], [2, 0]),  # a group without rows
        forged("ab", [0, 1], [0, 2]),
        forged("ab", [0, 1], [1, 2]),
        forged("ab", [0, 1, 1], [1, 1]),
    ):
        with pytest.raises(ValueError, match="these bytes: the sketch table is inconsistent"):
            SketchTable.from_bytes(data)


def broken_files():
    good = OLD_FILE
    flipped = bytearray(good)
    flipped[60] ^= 1
    wrong = {
        name: (data, "the sketch table is inconsistent; it was not written") for name, data in CONTRADICTORY.items()
    }
    return wrong | {
        "empty": (b"", r"not a truthcal sketch table\.$"),
        "text": (b"p,y\n0.1,0\n", r"not a truthcal sketch table\.$"),
        "pickle": (pickle.dumps([1, 2]), r"not a truthcal sketch table\.$"),
        "sketch": (ONE.to_bytes(), r"not a truthcal sketch table; read it with Sketch\.load\.$"),
        "header only": (good[:40], "the sketch table is truncated; copy or write it again"),
        "truncated": (good[:-1], rf"the sketch table is truncated \({len(good) - 1} of {len(good)} bytes\)"),
        "huge sizes": (good[:16] + b"\xff" * 24 + good[40:], r"the sketch table is truncated \(\d+ of \d+ bytes\)"),
        "one bit": (bytes(flipped), r"the sketch table is corrupted \(checksum mismatch\); copy or write it again"),
        "appended": (good + b"x", r"the sketch table is corrupted \(checksum mismatch\)"),
        "next version": (
            with_bytes(8, struct.pack("<I", 4)),
            "a sketch table of format version 4, but this truthcal reads versions up to 3; upgrade truthcal",
        ),
    }


@pytest.mark.parametrize(("data", "message"), broken_files().values(), ids=broken_files())
def test_broken_files_are_refused(data, message, tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        SketchTable.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(ValueError, match=f"^these bytes: .*{message}"):
        SketchTable.from_bytes(data)


def test_every_flipped_byte_is_noticed():
    for good in (OLD_FILE, small().to_bytes()):
        for position in range(len(good)):
            data = bytearray(good)
            data[position] ^= 0x40
            with pytest.raises(ValueError, match=r"^these bytes: "):
                SketchTable.from_bytes(bytes(data))


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    keyed("a").save(tmp_path / "week")
    before = (tmp_path / "week").read_bytes()

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_format.os, "fsync", fail)
    with pytest.raises(OSError, match="No space left on device"):
        keyed("b").save(tmp_path / "week")
    assert (tmp_path / "week").read_bytes() == before
    assert os.listdir(tmp_path) == ["week"]


@given(keyed_rows)
@examples(30)
def test_what_was_written_is_never_refused(rows):
    keys, y, p, w = zip(*rows, strict=True)
    for weight in (w, [1e70 if k % 2 else 1e-70 for k in range(len(w))]):
        table = table_of(keys, y, p, weight, by=["x", "y"])
        doubled = table + table
        assert SketchTable.from_bytes(doubled.to_bytes()).to_bytes() == doubled.to_bytes()
        assert dict(doubled).keys() == set(keys)


# --- points and copies ------------------------------------------------------------------------------------------------


def test_points_of_groups_in_any_order_and_in_small_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    sketches = {g: tc.Sketch(256).update(rng.integers(0, 2, n), rng.random(n)) for g, n in enumerate((3, 200, 50, 1))}
    table = tc.SketchTable.from_sketches(sketches, by="g")
    for block in (1, 60, 1 << 18):
        monkeypatch.setattr("truthcal.core.sketch_table._BLOCK", block)
        blocks = list(table.point_groups([2, 0, 3, 1]))
        assert all(len(groups) == 1 or len(groups.points) <= block for groups in blocks)
        for points, key in zip((points for groups in blocks for points in groups), (2, 0, 3, 1), strict=True):
            for name in ("p", "weight", "bias", "cumulative", "wwv"):
                np.testing.assert_array_equal(getattr(points, name), getattr(table.points(key), name))


def test_a_copy_is_quick_and_independent(monkeypatch):
    table = tc.SketchTable.from_sketches({"a": tc.Sketch().update([0, 1], [0.2, 0.9])}, by="g")
    monkeypatch.setattr(tc.SketchTable, "to_bytes", None)  # compressing all cells would take longer than any test
    other = copy.copy(table)
    table.merge(other)
    assert (int(table.n[0]), int(other.n[0])) == (4, 2)
    assert (other.by, other.n_buckets, list(other)) == (table.by, table.n_buckets, ["a"])
