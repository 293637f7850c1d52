"""The sketch: certified bounds, merging, files that are whole or refused."""

import errno
import hashlib
import math
import os
import pickle
import re
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import measures as oracles
from support.old_files import sealed, version_1
from support.strategies import SPECIAL, examples, inner_probabilities, rows, weighted_rows

import truthcal as tc
from truthcal.core import file_format
from truthcal.core import sample as sample_module
from truthcal.core.cell_codec import COLUMNS, COLUMNS_1, pack_cells
from truthcal.core.sketch_table import SketchTable

sizes = st.sampled_from([1, 2, 8, 64, 4096])
DATA = Path(__file__).parents[1] / "data"


def some_rows(n, seed=0, bias=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < bias * p).astype(int), p


def assert_same(a, b, rel=1e-12, without=()):
    """Equal counts and extremes; sums equal against the size of their terms."""
    left, right = a.table(), b.table()
    for name in ("bucket", "n", "min", "max", "top"):
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
    size = left["pos"] + left["neg"]
    for name in ("weight", "ww", "wp", "pos", "neg", "wcp", "wcc", "wwcc", "wwv", "wwc", "www", "wwww"):
        if name in without:
            continue
        np.testing.assert_allclose(left[name], right[name], rtol=rel, atol=rel * size.max(initial=1e-300), err_msg=name)


# --- buckets ----------------------------------------------------------------------------------------------------------


def test_sketch_uses_the_same_buckets():
    p = np.array([*SPECIAL, *(np.arange(4097) / 4096), *np.nextafter(np.arange(1, 4097) / 4096, 0)])
    for y in (np.zeros(len(p)), np.ones(len(p)), np.full(len(p), 0.5)):
        table = tc.Sketch().update(y, p).table()
        expected = np.bincount(tc.bucket_index(p), minlength=4096)
        np.testing.assert_array_equal(table["n"], expected[expected > 0])
        np.testing.assert_array_equal(tc.bucket_index(table["min"]), table["bucket"])
        np.testing.assert_array_equal(tc.bucket_index(table["max"]), table["bucket"])


@pytest.mark.parametrize(
    ("n_buckets", "error", "message"),
    [
        (1000, ValueError, r"`n_buckets` must be a power of two; got 1000\. Try 512 or 1024"),
        (0, ValueError, "`n_buckets` must be between 1 and 1048576; got 0"),
        (2**21, ValueError, "`n_buckets` must be between 1 and 1048576; got 2097152"),
        (4096.0, TypeError, r"`n_buckets` must be a whole number; got 4096\.0"),
        ("many", TypeError, "`n_buckets` must be a whole number; got 'many'"),
    ],
)
def test_bad_n_buckets_are_refused(n_buckets, error, message):
    with pytest.raises(error, match=message):
        tc.Sketch(n_buckets)
    with pytest.raises(error, match=message):
        tc.bucket_index([0.5], n_buckets)


# --- what it holds ----------------------------------------------------------------------------------------------------


def exact_columns(y, p, w):
    """The sums of one bucket, in exact arithmetic, in the order of COLUMNS."""
    y, p, w = oracles.exact(y), oracles.exact(p), oracles.exact(w)
    c = [pi - yi for pi, yi in zip(p, y, strict=True)]
    return [
        Fraction(len(p)),
        sum(w),
        sum(wi**2 for wi in w),
        sum(wi * pi for wi, pi in zip(w, p, strict=True)),
        sum(wi * max(ci, 0) for wi, ci in zip(w, c, strict=True)),
        sum(wi * max(-ci, 0) for wi, ci in zip(w, c, strict=True)),
        sum(wi * ci * pi for wi, ci, pi in zip(w, c, p, strict=True)),
        sum(wi * ci**2 for wi, ci in zip(w, c, strict=True)),
        sum((wi * ci) ** 2 for wi, ci in zip(w, c, strict=True)),
        sum(wi**2 * pi * (1 - pi) for wi, pi in zip(w, p, strict=True)),
        sum(wi**2 * ci for wi, ci in zip(w, c, strict=True)),
        sum(wi**3 for wi in w),
        sum(wi**4 for wi in w),
        min(p),
        max(p),
        max(w),
    ]


@pytest.mark.parametrize("outcomes", [st.integers(0, 1), inner_probabilities])
@given(data=st.data())
def test_sums_against_exact_arithmetic(outcomes, data):
    y, p = data.draw(rows(max_size=20, outcomes=outcomes))
    p[0] = 0.4  # predictions of 0 and 1 only would look like swapped arguments
    weighted = data.draw(st.booleans())
    w = data.draw(st.lists(st.floats(0.1, 10), min_size=len(p), max_size=len(p))) if weighted else [1.0] * len(p)
    sketch = tc.Sketch(4).update(y, p, w if weighted else None)
    table = sketch.table()
    for i, bucket in enumerate(table["bucket"]):
        own = [k for k in range(len(p)) if tc.bucket_index([p[k]], 4)[0] == bucket]
        expected = exact_columns([y[k] for k in own], [p[k] for k in own], [w[k] for k in own])
        scale = float(expected[4] + expected[5]) or 1e-300
        for name, value in zip(COLUMNS, expected, strict=True):
            found = table["weight" if name == "w" else name][i]
            slack = 1e-14 * scale * (max(w) if name == "wwc" else 1.0)
            assert found == pytest.approx(float(value), rel=1e-13, abs=slack), name


@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize("p", [1e-12, 1 - 1e-12, 0.3])
def test_sums_stay_accurate_for_confident_predictions(y, p):
    expected = exact_columns([y] * 7, [p] * 7, [1] * 7)
    table = tc.Sketch().update([y] * 7, [p] * 7).table()
    for name in ("pos", "neg", "wcc", "wwcc"):
        assert table[name][0] == pytest.approx(float(expected[COLUMNS.index(name)]), rel=1e-12, abs=0)
    assert table["wwv"][0] == pytest.approx(float(expected[COLUMNS.index("wwv")]), rel=1e-3, abs=0)


@given(weighted_rows(max_size=30), sizes)
def test_bounds_contain_the_exact_value(data, n_buckets):
    y, p, w = data
    for weight in (None, w):
        sketch = tc.Sketch(n_buckets).update(y, p, weight)
        exact_w = oracles.exact(weight or [1] * len(p))
        square = oracles.atb(y, oracles.exact(p), exact_w)
        absolute = oracles.atb_l1(y, oracles.exact(p), exact_w)
        for bounded, value in ((sketch.atb(), square), (sketch.atb_l1(), absolute)):
            assert Fraction(bounded.low) <= value <= Fraction(bounded.high)
            assert bounded.low <= bounded.value <= bounded.high


@pytest.mark.parametrize("n_buckets", [1, 16, 4096])
@pytest.mark.parametrize("shape", ["uniform", "rare", "ties", "confident", "biased", "one bucket"])
def test_bounds_contain_the_exact_value_at_many_rows(n_buckets, shape):
    rng = np.random.default_rng(1)
    n = 200_000
    p = {
        "uniform": rng.random(n),
        "rare": rng.beta(1, 999, n),
        "ties": np.round(rng.random(n), 2),
        "confident": 1 - rng.beta(1, 1e6, n),
        "biased": rng.random(n),
        "one bucket": 0.3 + 1e-9 * rng.random(n),
    }[shape]
    y = rng.random(n) < (0.6 * p if shape == "biased" else p)
    sketch = tc.Sketch(n_buckets).update(y, p)
    assert tc.atb(y, p) in sketch.atb()
    assert tc.atb_l1(y, p) in sketch.atb_l1()


@pytest.mark.parametrize("p", [1e-4, 0.1, 1 - 1e-7])
@pytest.mark.parametrize("weight", [None, 0.1])
def test_bounds_hold_where_rounding_adds_up(p, weight):
    """A million equal terms, added plainly, are off by more than 1e-12; the bounds must know."""
    n = 1_000_000
    p, y = np.full(n, p), np.zeros(n)
    w = None if weight is None else np.full(n, weight)
    sketch = tc.Sketch().update(y, p, w)
    assert p[0] ** 2 in sketch.atb()
    assert p[0] in sketch.atb_l1()
    assert sketch.atb().value == pytest.approx(p[0] ** 2, rel=1e-9, abs=0)


def test_bounds_hold_where_the_average_within_a_bucket_is_hard_to_know():
    """The cumulative bias is large on a short stretch only, and the average over it is a small difference of sums."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        n = int(rng.integers(2, 7))
        start, step = rng.random() * 0.9, 10.0 ** -rng.integers(3, 17)
        p = np.minimum(start + step * rng.integers(0, 5, n), 1.0)
        y = rng.integers(0, 2, n)
        y[0], y[-1] = 0, 1
        w = None if rng.random() < 0.5 else (rng.random(n) + 0.1).tolist()
        exact = [y.tolist(), oracles.exact(p), oracles.exact(w or [1] * n)]
        sketch = tc.Sketch().update(y, p, w)
        for bounded, value in ((sketch.atb(), oracles.atb(*exact)), (sketch.atb_l1(), oracles.atb_l1(*exact))):
            assert Fraction(bounded.low) <= value <= Fraction(bounded.high), (p.tolist(), y.tolist(), w)


@pytest.mark.parametrize("tenths", [1, 2, 3, 4, 6, 7, 8, 9])
@pytest.mark.parametrize("repeats", [1, 7, 100])
@pytest.mark.parametrize("weight", [None, 0.1])
def test_bounds_hold_where_rounding_is_all_there_is(tenths, repeats, weight):
    """0.1 is not quite a tenth, so neither is the bias of ten such rows quite 0; what the sums say of it is rounding."""
    y, p = ([1] * tenths + [0] * (10 - tenths)) * repeats, [tenths / 10] * 10 * repeats
    w = None if weight is None else [weight] * len(p)
    exact = [y, oracles.exact(p), oracles.exact(w or [1] * len(p))]
    sketch = tc.Sketch().update(y, p, w)
    for bounded, value in ((sketch.atb(), oracles.atb(*exact)), (sketch.atb_l1(), oracles.atb_l1(*exact))):
        assert Fraction(bounded.low) <= value <= Fraction(bounded.high)


def test_bounds_hold_on_a_short_stretch_of_large_bias():
    y, p = [0, 0, 1, 1], [0.500003, 0.500004, 0.500004, 0.500004]
    bounded = tc.Sketch().update(y, p).atb()
    assert Fraction(bounded.low) <= oracles.atb(y, oracles.exact(p)) <= Fraction(bounded.high)


def test_bounds_hold_where_the_weight_is_rounded():
    n = 1_000_000
    y, p, w = np.r_[np.ones(n), 0], np.r_[np.ones(n), 0.3], np.r_[np.full(n, 0.1), 1.0]
    c, total = Fraction(0.3), n * Fraction(0.1) + 1
    exact = c * c / total**2
    for bounded in (tc.Sketch().update(y, p, w).atb(), tc.atb_approx(y, p, sample_weight=w, tolerance=0.01)):
        assert Fraction(bounded.low) <= exact <= Fraction(bounded.high)
    bounded = tc.Sketch().update(y, p, w).atb_l1()
    assert Fraction(bounded.low) <= c / total <= Fraction(bounded.high)


@pytest.mark.parametrize(("p", "w"), [(1e-95, 1e-70), (1e-160, 1.0), (5e-324, 1.0)])
def test_bounds_hold_where_squares_underflow(p, w):
    bounded = tc.Sketch().update([0], [p], [w]).atb()
    assert Fraction(bounded.low) <= Fraction(p) ** 2 <= Fraction(bounded.high)


def test_the_estimate_is_far_better_than_the_bounds_and_not_biased():
    errors, widths, shares = [], [], []
    for seed in range(40):
        y, p = some_rows(20_000, seed)
        exact, bounded = tc.atb(y, p), tc.Sketch(64).update(y, p).atb()
        errors.append(abs(bounded.value - exact))
        widths.append(bounded.width)
        shares.append((exact - bounded.low) / (bounded.value - bounded.low))
    assert np.median(errors) < 0.02 * np.median(widths)
    assert np.mean(shares) == pytest.approx(1, abs=0.1)


def test_default_buckets_are_sharp():
    y, p = some_rows(1_000_000)
    exact, bounded = tc.atb(y, p), tc.Sketch().update(y, p).atb()
    assert bounded.width < 0.02 / len(p)  # the paper's test needs 0.5 / n
    assert bounded.value == pytest.approx(exact, rel=1e-3, abs=0)


@given(weighted_rows(max_size=30))
def test_other_answers_agree_with_the_exact_summary(data):
    y, p, w = data
    sketch, exact = tc.Sketch().update(y, p, w), tc.atb_summary(y, p, sample_weight=w)
    assert sketch.n == exact.n
    assert sketch.weight == pytest.approx(sum(w), rel=1e-14, abs=0)
    assert sketch.brier() == pytest.approx(exact.brier, rel=1e-12, abs=1e-300)
    assert sketch.bias() == pytest.approx(exact.bias, rel=1e-9, abs=1e-14)
    assert sketch.noise_floor() == pytest.approx(exact.noise_floor, rel=1e-9, abs=1e-18)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_summary_is_that_of_the_rows(n, weighted):
    y, p = some_rows(n, seed=2)
    w = np.random.default_rng(3).random(n) + 0.1 if weighted else None
    exact = tc.atb_summary(y, p, sample_weight=w).to_dict()
    sketch = tc.Sketch(2**16).update(y, p, w)
    found = sketch.summary()
    assert found.to_dict() == pytest.approx(exact, rel=1e-6, abs=1e-9, nan_ok=True)
    assert found.value == sketch.atb().value
    assert (found.bias, found.brier, found.noise_floor) == (sketch.bias(), sketch.brier(), sketch.noise_floor())
    assert isinstance(found.n, int)
    assert math.isnan(found.excess) == (n == 1)


def test_extremes_have_no_sign_of_zero():
    """-0.0 is written as 0.0: files of equal rows are equal."""
    sketch, plain = tc.Sketch(4).update([0, 1], [-0.0, 0.5]), tc.Sketch(4).update([0, 1], [0.0, 0.5])
    assert not np.signbit([sketch.table()["min"], sketch.table()["max"]]).any()
    assert sketch.to_bytes() == plain.to_bytes()
    assert tc.Sketch(4).update([0, 1], [-0.0, 0.5], [1, 1]).to_bytes() == plain.to_bytes()


def test_table_is_ready_for_a_data_frame():
    table = tc.Sketch(4).update([0, 1, 1], [0.1, 0.2, 0.9]).table()
    assert table["bucket"].tolist() == [0, 3]
    assert table["left"].tolist() == [0.0, 0.75]
    assert table["right"].tolist() == [0.25, 1.0]
    assert table["n"].tolist() == [2, 1]
    np.testing.assert_allclose(table["mean_proba"], [0.15, 0.9])
    np.testing.assert_allclose(table["mean_true"], [0.5, 1.0])
    assert len({len(column) for column in table.values()}) == 1


def test_an_empty_sketch_says_so():
    for ask in ("atb", "atb_l1", "brier", "bias", "noise_floor", "summary", "distcal_bracket"):
        with pytest.raises(ValueError, match=r"the sketch is empty; add rows with \.update\(y_true, y_proba\) first"):
            getattr(tc.Sketch(), ask)()
    assert tc.Sketch().n == 0
    assert tc.Sketch().weight == 0.0
    assert tc.Sketch().table()["n"].tolist() == []


# --- updating and merging ---------------------------------------------------------------------------------------------


@given(weighted_rows(min_size=2, max_size=30), st.data())
@examples(60)
def test_two_updates_are_one_update_and_a_merge(data, more):
    y, p, w = data
    cut = more.draw(st.integers(1, len(y) - 1))
    for weight in (None, w):
        parts = [[column and column[half] for column in (y, p, weight)] for half in (slice(cut), slice(cut, None))]
        whole = tc.Sketch(64).update(y, p, weight)
        updated = tc.Sketch(64).update(*parts[0]).update(*parts[1])
        one, two = (tc.Sketch(64).update(*part) for part in parts)
        assert_same(updated, whole)
        assert_same(one + two, whole)
        assert_same(two + one, whole)
        assert_same(sum([one, two]), whole)
        assert one.merge(two) is one
        assert_same(one, whole)


def test_merging_keeps_what_rounding_took():
    """Ten thousand sketches of 0.1 added up: plain additions would be off by 1e-12."""
    one, total = tc.Sketch(2).update([0], [0.1]), tc.Sketch(2)
    pair = tc.Sketch(2).update([0], [0.1]).update([0], [1e-17])
    for _ in range(10_000):
        total.merge(one)
    assert total.bias() == pytest.approx(0.1, rel=2e-16, abs=0)
    assert (tc.Sketch(2).merge(pair)._lost == pair._lost).all()
    assert pair._lost.any()


def test_merge_is_associative_and_leaves_the_other_alone():
    sketches = [tc.Sketch(16).update(*some_rows(100, seed)) for seed in range(3)]
    a, b, c = sketches
    before = b.to_bytes()
    assert_same((a + b) + c, a + (b + c))
    assert b.to_bytes() == before
    assert ((a + b) + c).n == 300


def test_many_small_updates_do_not_drift():
    y, p = some_rows(20_000)
    whole, pieces = tc.Sketch().update(y, p), tc.Sketch()
    for first in range(0, len(y), 10):
        pieces.update(y[first : first + 10], p[first : first + 10])
    assert_same(pieces, whole, rel=1e-14)
    assert pieces.atb().value == pytest.approx(whole.atb().value, rel=1e-13, abs=0)


def test_every_way_in_gives_the_same_sums():
    """Fast and general kernel, one core and two, all label types."""
    y, p = some_rows(300_000)
    expected = tc.Sketch().update(y, p)
    assert_same(tc.Sketch().update(y == 1, p), expected)
    assert_same(tc.Sketch().update(y.astype(float), p), expected)
    assert_same(tc.Sketch().update(y.astype(">i4"), p), expected)
    assert_same(tc.Sketch().update(y, p, np.ones(len(y))), expected)
    assert_same(tc.Sketch().update(np.where(y == 1, "b", "a"), p, pos_label="b"), expected)
    almost = np.where(np.arange(len(y)) == 7, 0.5, y)
    assert tc.Sketch().update(almost, p).n == len(y)
    p32 = p.astype(np.float32)
    assert_same(tc.Sketch().update(y, p32), tc.Sketch().update(y, p32.astype(float)))


def test_memory_does_not_grow_with_the_batch():
    import tracemalloc

    peaks = []
    for n in (1_200_000, 4_000_000):  # from 8 * 2^17 rows on there are 8 parts
        y, p = some_rows(n)
        sketch = tc.Sketch().update(y, p)
        tracemalloc.start()
        sketch.update(y, p)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2_500_000
    assert peaks[1] < 1.2 * peaks[0]


def test_whether_arguments_look_swapped_is_decided_on_all_rows():
    p = np.r_[np.zeros(65536), np.full(4464, 0.5)]
    y = np.full(70000, 0.1)
    assert tc.atb(y, p) in tc.Sketch().update(y, p).atb()
    assert tc.atb(y, p) in tc.atb_approx(y, p, tolerance=0.01)
    with pytest.raises(ValueError, match="the arguments look swapped"):
        tc.Sketch().update(y, np.zeros(70000))


def test_refused_rows_leave_the_sketch_unchanged():
    y, p = some_rows(300_000)
    sketch = tc.Sketch().update(y, p)
    before = sketch.to_bytes()
    p[-1] = np.nan
    with pytest.raises(ValueError, match=r"`y_proba` has a missing value \(nan\) at row 299999 \(1 of 300000 rows\)"):
        sketch.update(y, p)
    with pytest.raises(ValueError, match=r"`y_proba` has a missing value \(nan\) at row 299999"):
        sketch.update(y, p, np.ones(len(y)))
    with pytest.raises(ValueError, match="`sample_weight` is zero in every row"):
        sketch.update([0, 1], [0.1, 0.2], [0, 0])
    assert sketch.to_bytes() == before


def test_weights_too_extreme_for_sums_are_refused():
    for weight in (1e-71, 1e71):
        with pytest.raises(
            ValueError, match=r"must be 0 or between 1e-70 and 1e\+70 for a sketch; .*Only ratios matter"
        ):
            tc.Sketch().update([0, 1], [0.2, 0.3], [1.0, weight])
    sketch = tc.Sketch().update([0, 1], [0.2, 0.3], [0.0, 1e70])
    assert sketch.n == 1
    assert sketch.brier() == pytest.approx(0.49)


def test_merging_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="cannot merge a sketch with n_buckets=8 into one with n_buckets=4"):
        tc.Sketch(4).merge(tc.Sketch(8))
    with pytest.raises(ValueError, match="cannot merge a sketch with n_buckets=8 into one with n_buckets=4"):
        tc.Sketch(4) + tc.Sketch(8)
    with pytest.raises(TypeError, match="only a Sketch can be merged into a Sketch; got dict"):
        tc.Sketch().merge({})
    with pytest.raises(TypeError, match="unsupported operand"):
        tc.Sketch() + 1
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + tc.Sketch()


# --- files ------------------------------------------------------------------------------------------------------------


def test_file_round_trip(tmp_path):
    y, p = some_rows(1000)
    sketch = tc.Sketch(64).update(y, p, np.random.default_rng(0).random(1000) + 0.1)
    sketch.save(tmp_path / "day.truthcal")
    loaded = tc.Sketch.load(tmp_path / "day.truthcal")
    assert loaded.to_bytes() == sketch.to_bytes()
    assert loaded.atb() == sketch.atb()
    assert repr(loaded) == "Sketch(n_buckets=64): 1,000 rows"
    assert os.listdir(tmp_path) == ["day.truthcal"]
    assert tc.Sketch.from_bytes(tc.Sketch(8).to_bytes()).n == 0
    assert pickle.loads(pickle.dumps(sketch)).to_bytes() == sketch.to_bytes()


def test_a_file_written_by_version_1_is_still_read():
    sketch = tc.Sketch.load(DATA / "sketch-v1.bin")
    expected = tc.Sketch(16).update([0, 1, 1, 0, 0.5], [0.0, 1.0, 0.7, 0.7, 0.3], [1, 2, 0.5, 1, 3])
    assert_same(sketch, expected, without=["wwc"])  # of two rows in a bucket; version 1 did not store it
    assert version_1(sketch) == (DATA / "sketch-v1.bin").read_bytes()
    assert sketch.to_bytes() == tc.Sketch.from_bytes(sketch.to_bytes()).to_bytes()


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=12), st.floats(0.1, 10.0))
def test_weights_of_version_1_are_as_uneven_as_their_sums_allow(w, equal):
    """It stored the sums of w and w^2 only. Bounds are valid if the sums of w^3 and w^4 are not too small."""
    old, new = (sketch.table() for sketch in as_version_1(w))
    for name in ("www", "wwww", "top"):
        assert old[name] >= new[name] * (1.0 - 1e-9)
    old, new = (sketch.table() for sketch in as_version_1([equal] * len(w)))
    for name in ("www", "wwww", "top", "wwc"):
        assert old[name] == pytest.approx(new[name], rel=1e-12)


def test_uneven_weights_of_version_1_are_tested_by_a_bound():
    """Redraws need sums that it lacks: with one large weight in place of many, 31% of calibrated samples were rejected."""
    rng = np.random.default_rng(0)
    p, w = rng.uniform(0.01, 0.03, 500), np.where(np.arange(500) < 10, 20.0, 1.0)
    new = tc.Sketch(64).update(rng.random(500) < p, p, w)
    old = tc.Sketch.from_bytes(version_1(new))
    assert (new.weights_known, old.weights_known) == (True, False)
    later = tc.Sketch.from_bytes((new + old).to_bytes())
    table = SketchTable.from_bytes(SketchTable.from_sketches({"a": old, "b": new}, by="x").to_bytes())
    for sketch in (old, later, table["b"], table.total(), table.rollup("x")["a"]):
        assert not sketch.weights_known
        assert tc.calibration_test(sketch).method == "bound"
    assert tc.calibration_test(new).method == "approximate"
    assert tc.Sketch.from_bytes(version_1(tc.Sketch(64).update([0, 1], [0.1, 0.1], [2.0, 2.0]))).weights_known


def as_version_1(w):
    """Return a sketch of one bucket with these weights, read from a file of version 1, and the sketch itself."""
    sketch = tc.Sketch(1).update([0] * len(w), [0.3] * len(w), w)
    return tc.Sketch.from_bytes(version_1(sketch)), sketch


def old_sketches():
    """Two sketches of 4096 buckets of equal width, from files of version 1."""
    return [tc.Sketch.load(DATA / f"sketch-v1-4096{suffix}.bin") for suffix in ("", "-more")]


def test_sketches_of_version_1_merge_among_themselves():
    one, other = old_sketches()
    assert repr(one) == "Sketch(n_buckets=4096, equal widths): 17 rows"
    assert one.atb().value == pytest.approx(0.0027177, rel=1e-5)
    whole = one + other
    assert (whole.n, whole.grid) == (31, one.grid)
    assert whole.atb().value == pytest.approx(0.00107145, rel=1e-5)
    assert_same(sum([one, other]), whole)
    assert_same(tc.Sketch.from_bytes(whole.to_bytes()), whole)
    assert repr(pickle.loads(pickle.dumps(whole))) == "Sketch(n_buckets=4096, equal widths): 31 rows"
    table = whole.table()
    np.testing.assert_array_equal(table["left"], table["bucket"] / 4096)
    np.testing.assert_array_equal(table["bucket"], np.minimum(np.floor(table["max"] * 4096), 4095))


def test_sketches_of_version_1_take_more_rows_in_their_own_buckets():
    y, p = some_rows(5000)
    w = np.random.default_rng(1).random(5000) + 0.1
    for weight in (None, w):
        sketch = old_sketches()[0].update(y, p, weight)
        assert sketch.n == 5017
        bucket = np.minimum((p * 4096).astype(int), 4095)
        assert set(sketch.table()["bucket"]) >= set(bucket)
        assert sketch.atb().width < 1e-7


@pytest.mark.parametrize("reverse", [False, True])
def test_sketches_of_different_grids_are_not_merged(reverse):
    pair = [tc.Sketch().update([0], [0.5]), old_sketches()[0]][:: -1 if reverse else 1]
    names = ["4,096 graded buckets", "4,096 buckets of equal width"][:: -1 if reverse else 1]
    message = (
        f"cannot merge a sketch with {names[1]} into one with {names[0]}: 4,096 buckets of equal width come from a "
        "file of format version 1, and new sketches have 4,096 graded buckets. Build the older sketch again from its "
        "rows."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pair[0].merge(pair[1])
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pair[0] + pair[1]


PREDICTED = {
    "w": lambda x: x["n"],
    "ww": lambda x: x["w"] * x["w"] / x["n"],
    "max": lambda x: x["min"],
    "wp": lambda x: x["w"] * ((x["min"] + x["max"]) / 2),
    "pos": lambda x: x["wp"] - x["positives"] * ((x["min"] + x["max"]) / 2),
    "neg": lambda x: x["pos"] - x["wp"] + x["positives"],
    "wcp": lambda x: (x["pos"] - x["neg"]) * (x["wp"] / x["w"]),
    "wcc": lambda x: x["wcp"] + x["neg"],
    "wwcc": lambda x: x["wcc"] * (x["ww"] / x["w"]),
    "wwv": lambda x: (x["pos"] - x["wcp"]) * (x["ww"] / x["w"]),
    "wwc": lambda x: (x["pos"] - x["neg"]) * (x["ww"] / x["w"]),
    "www": lambda x: x["ww"] * (x["ww"] / x["w"]),
    "wwww": lambda x: x["www"] * (x["www"] / x["ww"]),
    "top": lambda x: x["wwww"] / x["www"],
}


def read_by_hand(data):
    """The cells of a file of version 2, read from docs/reference/sketch-format.md with nothing but struct and zlib."""
    magic, version, graded, n_buckets, m, size = struct.unpack_from("<8sIIIIQ", data)
    assert (magic, version, len(data)) == (b"TRUTHCAL", 2, 32 + size + 32)
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()
    raw = zlib.decompress(data[32:-32])
    assert len(raw) == 140 * m
    steps = [int.from_bytes(raw[k : 4 * m : m], "little") for k in range(m)]
    bucket = [sum(steps[: k + 1]) for k in range(m)]
    order = ("n", "w", "ww", "www", "wwww", "top", "min", "max", "positives", *COLUMNS[3:10], "wwc")
    cells = [{} for _ in range(m)]
    for i, name in enumerate(order):
        column = raw[4 * m + 8 * m * i : 4 * m + 8 * m * (i + 1)]
        for k, cell in enumerate(cells):
            predicted = PREDICTED[name](cell) if name in PREDICTED else 0.0
            bits = struct.unpack("<Q", struct.pack("<d", predicted))[0] ^ int.from_bytes(column[k::m], "little")
            cell[name] = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return graded, n_buckets, bucket, cells


def test_format_is_as_documented():
    weights = np.random.default_rng(2).random(200) + 0.1
    for y, p, w in ([[0, 1], [0.125, 0.875], None], [*some_rows(200), None], [*some_rows(200), weights]):
        for n_buckets in (4, 4096):
            sketch = tc.Sketch(n_buckets).update(y, p, w)
            graded, size, bucket, cells = read_by_hand(sketch.to_bytes())
            assert (graded, size) == (n_buckets == 4096, n_buckets)
            filled, columns = sketch._filled()
            assert bucket == filled.tolist()
            for name, column in zip(COLUMNS, columns.tolist(), strict=True):
                assert [cell[name] for cell in cells] == column


def test_few_rows_are_small_files():
    sizes = {}
    for n in (0, 100, 8886, 10**6):
        y, p = some_rows(n) if n else ([], [])
        sizes[n] = len((tc.Sketch().update(y, p) if n else tc.Sketch()).to_bytes())
    assert sizes[0] <= 72
    assert sizes[100] <= 1500  # 10,052 in version 1
    assert sizes[8886] <= 75_000  # 366,852
    assert sizes[10**6] <= 130_000  # 409,652
    rng = np.random.default_rng(3)
    p = rng.beta(1, 9, 8886)
    assert len(tc.Sketch().update(rng.random(8886) < p, p).to_bytes()) <= 40_000  # 146,352


def test_the_format_of_version_1_is_as_documented():
    data = version_1(tc.Sketch(4).update([0, 1], [0.125, 0.875]))
    assert struct.unpack_from("<8sIII", data) == (b"TRUTHCAL", 1, 4, 2)
    assert_same(tc.Sketch.from_bytes(data), tc.Sketch(4).update([0, 1], [0.125, 0.875]))


def with_column(body, name, value):
    """The same sketch of two buckets with another value in the first."""
    offset = 28 + 16 * COLUMNS_1.index(name)
    return sealed(body[:offset] + struct.pack("<d", value) + body[offset + 8 :])


FORGED = {
    "n": [0.0, -1.0, 2.5],
    "w": [0.0, -1.0, 0.05],
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
    "min": [-0.1, 0.2, 0.3],
    "max": [0.05, 0.3, math.inf],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FORGED.items() for value in values])
def test_columns_that_contradict_each_other_are_refused(name, value):
    sketch = tc.Sketch(4).update([0, 1], [0.1, 0.9])
    if name in COLUMNS_1:
        with pytest.raises(ValueError, match="the sketch is inconsistent"):
            tc.Sketch.from_bytes(with_column(version_1(sketch)[:-32], name, value))
    filled, columns = sketch._filled()
    columns[COLUMNS.index(name), 0] = value
    with pytest.raises(ValueError, match="the sketch is inconsistent"):
        tc.Sketch.from_bytes(version_2(4, filled, columns))


@given(weighted_rows(max_size=30), sizes)
def test_what_was_written_is_never_refused(data, n_buckets):
    y, p, w = data
    for weight in (None, w, [1e70 if k % 2 else 1e-70 for k in range(len(w))]):
        sketch = tc.Sketch(n_buckets).update(y, p, weight)
        assert_same(tc.Sketch.from_bytes(sketch.to_bytes()), sketch)


def version_2(n_buckets, filled, columns, graded=0, m=None):
    """A file with these cells, whole but for what they say."""
    cells = pack_cells(np.asarray(filled), columns)
    numbers = graded, n_buckets, len(filled) if m is None else m, len(cells)
    return sealed(struct.pack("<8sIIIIQ", b"TRUTHCAL", 2, *numbers) + cells)


def broken_version_2():
    filled, columns = tc.Sketch(4).update([0, 1], [0.1, 0.9])._filled()
    few, many = tc.Sketch(4096).update([0, 1], [0.1, 0.9])._filled()
    noise = struct.pack("<8sIIIIQ", b"TRUTHCAL", 2, 0, 4, 2, 100) + bytes(100)
    return {
        "wrong bucket": version_2(4, [1, 3], columns),
        "falling": version_2(4, filled[::-1], columns[:, ::-1].copy()),
        "odd buckets": version_2(5, filled, columns),
        "no buckets": version_2(0, filled, columns),
        "huge buckets": version_2(2**30, filled, columns),
        "graded, but too few": version_2(4, filled, columns, graded=1),
        "other grid": version_2(4096, few, many, graded=0),
        "unknown grid": version_2(4096, few, many, graded=2),
        "fewer cells": version_2(4, filled, columns, m=1),
        "more cells": version_2(4, filled, columns, m=3),
        "too many cells": version_2(4, filled, columns, m=2**32 - 1),
        "not compressed": sealed(noise),
        "bytes after the cells": sealed(
            struct.pack("<8sIIIIQ", b"TRUTHCAL", 2, 0, 4, 2, len(pack_cells(filled, columns)) + 1)
            + pack_cells(filled, columns)
            + b"x"
        ),
    }


@pytest.mark.parametrize("data", broken_version_2().values(), ids=broken_version_2())
def test_inconsistent_files_of_version_2_are_refused(data):
    with pytest.raises(ValueError, match="these bytes: the sketch is inconsistent; it was not written by truthcal"):
        tc.Sketch.from_bytes(data)


def test_files_of_version_2_in_pieces_are_refused():
    good = tc.Sketch().update([0, 1], [0.1, 0.9]).to_bytes()
    for data, message in (
        (good[:20], "the sketch is truncated; copy or write it again"),
        (good[:-1], rf"the sketch is truncated \({len(good) - 1} of {len(good)} bytes\)"),
        (good + b"x", r"the sketch is corrupted \(checksum mismatch\)"),
    ):
        with pytest.raises(ValueError, match=message):
            tc.Sketch.from_bytes(data)


def broken_files():
    good = version_1(tc.Sketch(4).update([0, 1], [0.1, 0.9]))
    body = good[:-32]
    flipped = bytearray(good)
    flipped[60] ^= 1
    nan_sum = body[:-8] + struct.pack("<d", math.nan)
    other_bucket = body[:20] + struct.pack("<2I", 1, 3) + body[28:]
    return {
        "empty": (b"", "not a truthcal sketch"),
        "text": (b"p,y\n0.1,0\n", "not a truthcal sketch"),
        "pickle": (pickle.dumps([1, 2]), r"not a truthcal sketch\.$"),
        "table": (SketchTable("x").to_bytes(), r"not a truthcal sketch; read it with SketchTable\.load\.$"),
        "header only": (good[:20], "the sketch is truncated; copy or write it again"),
        "truncated": (good[:-1], rf"the sketch is truncated \({len(good) - 1} of {len(good)} bytes\)"),
        "one bit": (bytes(flipped), r"the sketch is corrupted \(checksum mismatch\)"),
        "appended": (good + b"x", r"the sketch is corrupted \(checksum mismatch\)"),
        "next version": (
            sealed(body[:8] + struct.pack("<I", 4) + body[12:]),
            "format version 4, but this truthcal reads versions up to 3; upgrade truthcal",
        ),
        "not a number": (sealed(nan_sum), "the sketch is inconsistent"),
        "wrong bucket": (sealed(other_bucket), "the sketch is inconsistent"),
        "odd buckets": (sealed(body[:12] + struct.pack("<I", 5) + body[16:]), "the sketch is inconsistent"),
        "no buckets": (sealed(body[:12] + struct.pack("<I", 0) + body[16:]), "the sketch is inconsistent"),
        "falling": (sealed(body[:20] + struct.pack("<2I", 3, 0) + body[28:]), "the sketch is inconsistent"),
        "empty, odd": (sealed(struct.pack("<8sIII", b"TRUTHCAL", 1, 5, 0)), "the sketch is inconsistent"),
    }


@pytest.mark.parametrize(("data", "message"), broken_files().values(), ids=broken_files())
def test_broken_files_are_refused(data, message, tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        tc.Sketch.load(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ValueError, match=f"these bytes: .*{message}"):
        tc.Sketch.from_bytes(data)


def test_every_flipped_byte_is_noticed():
    sketch = tc.Sketch(2).update([0, 1], [0.1, 0.9])
    for good in (sketch.to_bytes(), version_1(sketch)):
        for position in range(len(good)):
            data = bytearray(good)
            data[position] ^= 0x40
            with pytest.raises(ValueError, match="these bytes: "):
                tc.Sketch.from_bytes(bytes(data))


def test_missing_file_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        tc.Sketch.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no-such-folder/x'$"):
        tc.Sketch().save(tmp_path / "no-such-folder" / "x")


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_behind(failure, tmp_path, monkeypatch):
    path = tmp_path / "day"
    tc.Sketch(4).update([0], [0.5]).save(path)
    before = path.read_bytes()

    def fail(handle):
        raise failure

    monkeypatch.setattr(file_format.os, "fsync", fail)
    with pytest.raises(type(failure)):
        tc.Sketch(4).update([1], [0.5]).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["day"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_device_is_an_ordinary_error():
    with pytest.raises(OSError, match="No space left on device"):
        tc.Sketch().save("/dev/full")
    assert not os.path.isfile("/dev/full")


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    tc.Sketch(4).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert tc.Sketch.load(tmp_path / "real").n_buckets == 4


def test_relative_weights_keep_a_sketch_in_range():
    w, _ = sample_module.relative_weights(np.array([1e300, 2e231, 1e250]))
    assert tc.Sketch().update([0, 1, 1], [0.1, 0.2, 0.3], w).n == 3


# --- found by reviewers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_buckets", [2**16, 2**20])
def test_bounds_hold_the_exact_value_with_very_many_buckets(n_buckets):
    """The integral over so many buckets rounds more than the sums in them."""
    p = np.arange(n_buckets) / n_buckets
    y, w = p.copy(), np.full(n_buckets, 2.0**-30)
    y[0], w[0] = 1.0, 1.6369616873214543
    share = Fraction(w[0]) / (Fraction(w[0]) + (n_buckets - 1) * Fraction(2.0**-30))
    sketch = tc.Sketch(n_buckets).update(y, p, w)
    assert Fraction(sketch.atb().low) <= share**2 <= Fraction(sketch.atb().high)
    assert Fraction(sketch.atb_l1().low) <= share <= Fraction(sketch.atb_l1().high)


def test_bounds_survive_underflow():
    tiny = tc.Sketch().update([0], [1e-170], [1e70]).atb()
    assert tiny.low == 0.0 < tiny.high
    exact = Fraction(1e68) ** 2 * Fraction(1e-160) ** 2 / (Fraction(1e68) + Fraction(1e65)) ** 2
    bounds = tc.Sketch().update([0, 1], [1e-160, 1.0], [1e68, 1e65]).atb()
    assert Fraction(bounds.low) <= exact <= Fraction(bounds.high)


def test_tiny_predictions_beside_fractions_are_not_swapped():
    assert tc.Sketch().update([0.5, 0.25], [1e-190, 1e-191], [1e-70] * 2).n == 2
    with pytest.raises(ValueError, match="look swapped"):
        tc.Sketch().update([0.5, 0.25], [0.0, 1.0])


def test_sums_that_no_rows_have_are_refused():
    """A bias above the mean prediction, under a checksum that fits."""
    data = bytearray(version_1(tc.Sketch(16).update([0, 1, 1], [0.3] * 3))[:-32])
    data[56:64], data[64:72] = struct.pack("<d", 2.9), struct.pack("<d", 0.0)  # pos and neg
    with pytest.raises(ValueError, match="is inconsistent"):
        tc.Sketch.from_bytes(sealed(bytes(data)))


def test_a_wrong_file_is_not_read_whole(tmp_path):
    path = tmp_path / "huge.parquet"
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing
    with pytest.raises(ValueError, match="not a truthcal sketch"):
        tc.Sketch.load(path)


def test_saving_keeps_who_may_read(tmp_path):
    path = tmp_path / "a.sketch"
    tc.Sketch().update([0, 1], [0.2, 0.7]).save(path)
    path.chmod(0o600)
    tc.Sketch().update([0, 1], [0.2, 0.7]).save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_numpy_leaves_sketches_alone():
    sketch = tc.Sketch().update([0], [0.2])
    assert repr(sketch) == "Sketch(n_buckets=4096): 1 row"
    with pytest.raises(TypeError, match=r"unsupported operand|not implemented for NumPy arrays"):
        np.zeros(2) + sketch
    with pytest.raises(TypeError, match="`data` must be bytes"):
        tc.Sketch.from_bytes(None)
