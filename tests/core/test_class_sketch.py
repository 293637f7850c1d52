"""The sketch of many classes: certified bounds, merging, files, errors."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truthcal as tc


def rows(n, k, seed=0, weighted=False, digits=None):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), n)
    if digits is not None:
        p = np.maximum(np.round(p, digits), 10.0**-digits)
        p /= p.sum(axis=1, keepdims=True)
    return rng.integers(0, k, n), p, rng.exponential(size=n) if weighted else None


@given(
    st.integers(1, 40), st.integers(2, 5), st.sampled_from([1, 4, 128, 256]), st.integers(0, 10**6), st.booleans(),
    st.sampled_from([None, 1]),
)  # fmt: skip
def test_bounds_contain_vector_atb(n, k, n_buckets, seed, weighted, digits):
    y, p, w = rows(n, k, seed, weighted, digits)
    found = tc.MulticlassSketch(range(k), n_buckets).update(y, p, w).atb()
    exact = tc.multiclass_atb(y, p, labels=range(k), sample_weight=w)
    assert found.low <= exact <= found.high
    assert found.low <= found.value <= found.high


def test_the_estimate_is_much_closer_than_the_bounds():
    y, p, _ = rows(3000, 6)
    found, exact = tc.MulticlassSketch(range(6)).update(y, p).atb(), tc.multiclass_atb(y, p)
    assert abs(found.value - exact) < 1e-3 * exact
    assert found.width < 0.1 * exact


def test_tied_predictions_are_exact():
    y, p, w = rows(500, 4, weighted=True, digits=1)
    p = p[:20].repeat(25, axis=0)
    found = tc.MulticlassSketch(range(4), 1024).update(y, p, w).atb()
    assert found.value == pytest.approx(tc.multiclass_atb(y, p, sample_weight=w), rel=1e-9)
    assert found.width < 1e-9


def test_chunks_and_merging_give_the_whole():
    y, p, w = rows(700, 5, weighted=True)
    whole = tc.MulticlassSketch(range(5)).update(y, p, w)
    parts = [tc.MulticlassSketch(range(5)).update(y[a:b], p[a:b], w[a:b]) for a, b in ((0, 1), (1, 400), (400, 700))]
    merged = parts[0] + parts[1] + parts[2]
    again = tc.MulticlassSketch(range(5)).update(y[:300], p[:300], w[:300]).update(y[300:], p[300:], w[300:])
    for other in (merged, again):
        assert other.n == whole.n == 700
        assert other.atb().value == pytest.approx(whole.atb().value, rel=1e-12)
        assert other.bias() == pytest.approx(whole.bias(), rel=1e-9)
        assert other.noise_floor() == pytest.approx(whole.noise_floor(), rel=1e-12)
    assert parts[0].n == 1  # addition leaves its operands as they were


def test_totals_follow_from_the_rows():
    y, p, w = rows(200, 3, weighted=True)
    w[:5] = 0.0
    sketch = tc.MulticlassSketch(["a", "b", "c"]).update(np.array(["a", "b", "c"])[y], p, w)
    errors, share = p - np.eye(3)[y], w / w.sum()
    assert sketch.n == 195
    assert list(sketch.bias()) == ["a", "b", "c"]
    assert list(sketch.bias().values()) == pytest.approx(share @ errors)
    assert sketch.noise_floor() == pytest.approx(share**2 @ (1.0 - np.sum(p**2, axis=1)))
    value, own = sketch.atb().value, share**2 @ np.sum(errors**2, axis=1)
    assert sketch.excess() == pytest.approx((value - own) / (1.0 - share @ share))


def test_files_and_pickles_keep_everything(tmp_path):
    y, p, _ = rows(100, 3)
    sketch = tc.MulticlassSketch(["a", "b", "c"], 128).update(np.array(["a", "b", "c"])[y], p)
    sketch.save(tmp_path / "week.tcs")
    for copy in (tc.MulticlassSketch.load(tmp_path / "week.tcs"), pickle.loads(pickle.dumps(sketch))):
        assert copy.to_bytes() == sketch.to_bytes()
        assert (copy.labels, copy.n_buckets) == (("a", "b", "c"), 128)
        assert copy.atb() == sketch.atb()
    data = bytearray(sketch.to_bytes())
    data[200] ^= 1
    with pytest.raises(ValueError, match=r"the multiclass sketch is corrupted \(checksum mismatch\)"):
        tc.MulticlassSketch.from_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"not a truthcal sketch; read it with MulticlassSketch\.load"):
        tc.Sketch.load(tmp_path / "week.tcs")


def test_an_invalid_row_leaves_the_sketch_unchanged():
    y, p, _ = rows(50, 3)
    sketch = tc.MulticlassSketch(range(3)).update(y, p)
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match="must add up to 1 in each row"):
        sketch.update(y, p * 0.9)
    assert sketch.to_bytes() == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tc.MulticlassSketch(3), "`labels` must be a list of classes"),
        (lambda: tc.MulticlassSketch([0.5, 1]), "`labels` must be text or whole numbers"),
        (lambda: tc.MulticlassSketch(["a"]), "`labels` must hold at least two classes"),
        (lambda: tc.MulticlassSketch(["a", "a"]), "`labels` must hold at least two classes that differ"),
        (lambda: tc.MulticlassSketch(range(1000), 1024), r"`n_buckets` is too large: 1,000 classes in 1,024 buckets take 24.6 GB"),
        (lambda: tc.MulticlassSketch(range(3)).atb(), "the sketch is empty; add rows with `update` first"),
        (lambda: tc.MulticlassSketch(range(3)).merge(tc.MulticlassSketch(range(4))), "`other` must have the same classes"),
        (lambda: tc.MulticlassSketch(range(3)).merge(tc.Sketch()), "`other` must be a MulticlassSketch"),
        (lambda: tc.MulticlassSketch(range(2)).update([0, 1], np.eye(2), [1e-80, 1.0]), "`sample_weight` must be 0 or between"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
