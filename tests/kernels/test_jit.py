"""Kernels give the same numbers interpreted and compiled, and are compiled when it pays."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truthcal as tc
from truthcal.kernels import notice, rows
from truthcal.kernels.jit import Kernel, _settings, compile_at_once, two_sum

# The kernels of distcal take long to compile, and are never interpreted.
MEASURES = [name for name in tc.MEASURES if name != "distcal"]
KINDS = ("labels", "float32", "fractions", "weights")


def values(y, p, w):
    table = tc.all_measures(y, p, MEASURES, sample_weight=w)
    decomposition = tc.brier_decomposition(y, p, sample_weight=w)
    return [table[name] for name in MEASURES] + [decomposition.miscalibration, tc.information_atb(y, p)]


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 400), distinct=st.sampled_from([3, 50, 10**6]))
def test_interpreted_and_compiled_kernels_agree(kind, seed, n, distinct):
    """To the last bit. Labels are bytes, so more than 255 ones would overflow in a careless sum."""
    rng = np.random.default_rng(seed)
    p = rng.integers(0, distinct + 1, n) / distinct
    y = (rng.random(n) < 0.9).astype(np.uint8) if kind != "fractions" else rng.random(n)
    p[0] = 0.5
    p = p.astype(np.float32) if kind == "float32" else p
    w = rng.integers(1, 4, n) if kind == "weights" else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", lambda kernel, *args: kernel.plain(*args))
        with np.errstate(all="ignore"):
            interpreted = values(y, p, w)
    with compile_at_once():
        np.testing.assert_array_equal(interpreted, values(y, p, w))


def test_interpreted_kernels_return_numbers_of_python():
    """Compiled ones do. Otherwise the type of a measure would depend on what is in the cache."""
    kernel = Kernel(lambda x: (x[0], (x[0] > 0.0, x)), interpreted=100)
    number, (flag, array) = kernel(np.ones(3))
    assert (type(number), type(flag), type(array)) == (float, bool, np.ndarray)
    assert {type(value) for value in values(np.array([0, 1, 1]), np.array([0.2, 0.4, 0.9]), None)} == {float}


def test_a_kernel_is_compiled_once_it_has_visited_many_elements(monkeypatch):
    monkeypatch.setattr(_settings, "numba_in_use", False)
    kernel = Kernel(rows.count_distinct._function, 10)
    for _ in range(2):
        assert kernel(np.arange(5.0)) == 5
        assert kernel._in_use is None
    assert kernel(np.arange(1.0)) == 1
    assert kernel._in_use is not None


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(rows.pack)) is rows.pack
    assert two_sum.__doc__.startswith("Add x to")


def test_compiling_is_announced(monkeypatch):
    calls = []
    monkeypatch.setattr(notice, "on_compile", lambda: calls.append(1))
    kernel = Kernel(rows.count_outside_unit._function, 0)
    assert kernel(np.arange(3, dtype=np.int16).astype(">i2").astype(np.uint16)) == 1
    hits = len(kernel.compiled.stats.cache_hits)
    assert bool(calls) == (hits == 0)
