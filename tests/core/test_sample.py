"""The sorted sample: both ways to sort, on one core and on two, must agree with numpy."""

import itertools
import subprocess
import sys
import threading
import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from oracles import measures as oracles
from threadpoolctl import ThreadpoolController

import truthcal as tc
from truthcal.core import parallel, sorting
from truthcal.core import sample as sample_module
from truthcal.core.parallel import WORTH_A_THREAD
from truthcal.core.sample import Sample

LARGE = 3 * WORTH_A_THREAD


def shapes(n, rng):
    near = np.full(n, 0.5)
    near[n // 2 :] = np.nextafter(0.5, 1)
    zeros = np.zeros(n)
    zeros[::3] = -0.0
    return {
        "uniform": rng.random(n),
        "rare": rng.beta(1, 999, n),
        "ties": np.round(rng.random(n), 1),
        "all equal": np.full(n, 0.3),
        "two values": (rng.random(n) < 0.5).astype(float),
        "ulp": near,
        "subnormal": rng.integers(0, 50, n) * 5e-324,
        "zeros of both signs": zeros,
        "sorted": np.sort(rng.random(n)),
        "one below": np.r_[0.0, np.ones(n - 1)],
        "one above": np.r_[np.zeros(n - 1), 1.0],
        "two above": np.r_[np.zeros(n - 2), 1.0, 0.5],
    }


@pytest.mark.parametrize("n", [1, 2, 3, 1000, LARGE])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_sorting_agrees_with_numpy(n, dtype, threads, monkeypatch):
    monkeypatch.setenv("TRUTHCAL_NUM_THREADS", threads)
    rng = np.random.default_rng(n)
    for name, p in shapes(max(n, 3), rng).items():
        p = p[:n].astype(dtype)
        y = rng.random(n) < 0.4
        sample = Sample.of(y, p)
        order = np.lexsort((y, p))
        assert sample.p.dtype == dtype, name
        assert not np.signbit(sample.p).any(), name
        np.testing.assert_array_equal(sample.p, p[order], err_msg=name)
        pairs = sample.p + 2.0 * sample.y.astype(float)
        assert np.array_equal(np.sort(pairs), np.sort(p + 2.0 * y)), name  # each prediction kept its own outcomes


@pytest.mark.parametrize("n", [1, 2, 1000, LARGE])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_general_path_agrees_with_numpy(n, threads, monkeypatch):
    monkeypatch.setenv("TRUTHCAL_NUM_THREADS", threads)
    rng = np.random.default_rng(n)
    for name, p in shapes(max(n, 3), rng).items():
        p = p[:n]
        w = rng.integers(1, 1000, n) / 1024
        sample = Sample.of(rng.random(n) < 0.4, p, w)
        np.testing.assert_array_equal(sample.p, np.sort(p), err_msg=name)
        assert not np.signbit(sample.p).any(), name
        np.testing.assert_allclose(sample.repetitions.sum(), w.sum(), rtol=1e-12, err_msg=name)
        assert np.array_equal(np.sort(sample.p + 2 * sample.repetitions), np.sort(p + 2 * w)), name


@pytest.fixture
def small_parts(monkeypatch):
    """Let a few rows be enough for a thread."""
    monkeypatch.setattr(parallel, "WORTH_A_THREAD", 1000)
    monkeypatch.setattr(sorting, "WORTH_A_THREAD", 1000)
    monkeypatch.setattr(sorting, "_SORT_ROWS", 1000)


def each_thread_count(monkeypatch, function):
    """The results of a function with 1, 2, 3, 8 and 64 threads."""
    for threads in (1, 2, 3, 8, 64):
        monkeypatch.setenv("TRUTHCAL_NUM_THREADS", str(threads))
        yield function()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", sorted(tc.MEASURES))
def test_results_are_the_same_for_any_number_of_threads(name, weighted, monkeypatch, small_parts):
    rng = np.random.default_rng(0)
    p = np.round(rng.random(6007), 3)
    y, w = rng.random(6007) < p, rng.integers(1, 4, 6007) if weighted else None
    values = list(each_thread_count(monkeypatch, lambda: tc.MEASURES[name].function(y, p, sample_weight=w)))
    assert values[1:] == values[:1] * 4


@pytest.mark.parametrize("name", sorted(shapes(10, np.random.default_rng(0))))
def test_sums_and_order_are_the_same_for_any_number_of_threads(name, monkeypatch, small_parts):
    rng = np.random.default_rng(0)
    p = shapes(20_011, rng)[name]
    y, w = rng.random(20_011) < 0.4, rng.pareto(2.0, 20_011) + 1.0

    def results():
        samples = Sample.of(y, p), Sample.of(y, p, w), Sample.of(0.25 * y, np.maximum(p, 1e-9))
        sketches = tc.Sketch().update(y, p), tc.Sketch().update(y, p, w)
        arrays = [array.tobytes() for sample in samples for array in (sample.p, sample.y, sample.w)]
        bounds = tc.atb_approx(y, p, tolerance=1e-4), tc.atb_l1_approx(y, p, tolerance=1e-3, sample_weight=w)
        arrays += [array.tobytes() for sample in samples for array in sample.groups]
        return arrays, [sketch.to_bytes() for sketch in sketches], bounds, [sample.moments for sample in samples]

    found = list(each_thread_count(monkeypatch, results))
    assert found[1:] == found[:1] * 4


def exact_groups(y, p, w):
    """The groups of a sample by the definition, in exact arithmetic."""
    sums = {value: [Fraction(0)] * 3 for value in sorted({abs(float(value)) for value in p})}
    for outcome, value, weight in zip(y.tolist(), p.tolist(), w.tolist(), strict=True):
        mass, positive, bias = sums[abs(value)]
        weight = Fraction(weight)
        sums[abs(value)] = [mass + weight, positive + weight * outcome, bias + weight * (Fraction(value) - outcome)]
    mass, positive, bias = zip(*sums.values(), strict=True)
    return list(sums), mass, positive, bias, itertools.accumulate(bias)


@pytest.mark.parametrize("kind", ["labels", "float32", "weights"])
@pytest.mark.parametrize("name", sorted(shapes(10, np.random.default_rng(0))))
@pytest.mark.parametrize("n", [1, 3, 6007])
def test_groups_agree_with_exact_sums(n, name, kind, small_parts):
    rng = np.random.default_rng(n)
    p = shapes(max(n, 3), rng)[name][:n].astype(np.float32 if kind == "float32" else np.float64)
    # products of weights that are powers of two are exact
    y, w = rng.random(n) < 0.4, rng.choice([0.25, 1.0, 2.0], n) if kind == "weights" else np.ones(n)
    sample = Sample.of(y, p, w if kind == "weights" else None)
    expected = exact_groups(y, p, np.ldexp(w, -sample.exponent))
    for column, exact in zip(sample.groups, expected, strict=True):
        np.testing.assert_allclose(column, [float(value) for value in exact], rtol=1e-15, atol=0.0)


def few_values_in_order(seen_by_the_sample):
    """Rows with 3000 distinct predictions, of which a sample of the rows sees so many; in the same set of rows."""
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(3000), 140)
    y, at = (rng.random(len(p)) < p), np.arange(0, len(p), len(p) // sorting._SAMPLE)
    first = np.concatenate([np.arange(k * 140, k * 140 + len(at) // seen_by_the_sample + 1) for k in range(3000)])
    first = first[: len(at)] if seen_by_the_sample < 3000 else np.arange(len(at)) * 97 % len(p)
    order = np.empty(len(p), np.int64)
    rest = np.ones(len(p), np.bool_)
    rest[at] = False
    order[at], order[rest] = first, rng.permutation(np.setdiff1d(np.arange(len(p)), first))
    return y[order], p[order]


@pytest.mark.parametrize("seen", [50, 1500, 3000])
def test_counting_and_sorting_few_values_give_the_same_bits(seen, monkeypatch):
    sorts = []
    sort = sorting._sort_packed
    monkeypatch.setattr(sorting, "_sort_packed", lambda *args: sorts.append(1) or sort(*args))
    y, p = few_values_in_order(seen)
    sample = Sample.of(y, p)
    assert len(sorts) == (seen != 1500)  # few seen: the table is too small; many seen: not tried
    assert sample.counts is not None
    order = np.lexsort((y, p))
    np.testing.assert_array_equal(sample.p, p[order])
    np.testing.assert_array_equal(sample.y, y[order])
    shuffled = np.random.default_rng(1).permutation(len(p))
    assert tc.atb(y, p) == tc.atb(y[shuffled], p[shuffled])


def test_more_values_than_one_part_shows_are_sorted():
    p = np.sort(np.r_[np.repeat(np.linspace(0.1, 0.2, 6000), 30), np.full(270_000, 0.5)])
    y = np.random.default_rng(0).random(len(p)) < p
    sample = Sample.of(y, p)
    assert sample.counts is None
    np.testing.assert_array_equal(sample.p, p)
    assert sample.y.sum() == y.sum()


@pytest.mark.parametrize("name", ["ties", "all equal", "two values", "ulp", "zeros of both signs", "subnormal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atb_of_counted_rows_is_exact(name, dtype):
    rng = np.random.default_rng(0)
    p = shapes(LARGE, rng)[name].astype(dtype)
    y = rng.random(LARGE) < 0.4
    value, counts = np.unique(np.column_stack((np.abs(p), y)), axis=0, return_counts=True)
    exact = oracles.atb(value[:, 1], oracles.exact(value[:, 0]), oracles.exact(counts))
    assert tc.atb(y, p) == pytest.approx(float(exact), rel=1e-14)


def test_number_of_threads(monkeypatch):
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(parallel, "_cgroup_cores", lambda: 4)
    monkeypatch.delenv("TRUTHCAL_NUM_THREADS", raising=False)
    assert parallel.thread_count() == 4
    monkeypatch.setattr(parallel, "_cgroup_cores", lambda: 400)
    assert parallel.thread_count() == 6
    monkeypatch.setenv("TRUTHCAL_NUM_THREADS", "9")
    assert parallel.thread_count() == 9
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("TRUTHCAL_NUM_THREADS", wrong)
        with pytest.raises(ValueError, match=f"TRUTHCAL_NUM_THREADS must be a whole number from 1 on; got '{wrong}'"):
            parallel.thread_count()


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 1 << 16),
        ({"cpu.max": "max 100000"}, 1 << 16),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 1 << 16),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
    ],
)
def test_cores_of_a_container(files, cores, monkeypatch, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(parallel, "_CGROUP", tmp_path)
    assert parallel._cgroup_cores.__wrapped__() == cores


@pytest.mark.parametrize("threads", ["1", "3"])
def test_tasks_return_in_order_and_stop_at_an_error(threads, monkeypatch):
    monkeypatch.setenv("TRUTHCAL_NUM_THREADS", threads)
    assert parallel.run_tasks([lambda k=k: k for k in range(50)], LARGE) == list(range(50))
    assert parallel.run_tasks([], LARGE) == []
    ran = []

    def task(k):
        ran.append(k)
        if k == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel.run_tasks([lambda k=k: task(k) for k in range(500)], LARGE)
    assert set(range(6)) <= set(ran)
    assert len(ran) < 400


def test_sample_is_read_only_and_sorts_in_few_bytes():
    sample = Sample.of(np.array([0, 1]), np.array([0.7, 0.2]))
    for array in (sample.p, sample.y, sample.w):
        assert not array.flags.writeable
    assert sample.p.itemsize + sample.y.itemsize == 9


@pytest.mark.parametrize(("kind", "bytes_a_row"), [("packed", 10), ("fractional", 18), ("weighted", 34)])
def test_memory_is_as_stated(kind, bytes_a_row, monkeypatch):
    monkeypatch.setenv("TRUTHCAL_NUM_THREADS", "1")
    rng = np.random.default_rng(0)
    p = rng.random(500_000)
    rows = {"packed": (p < 0.4, p), "fractional": (p.copy(), p), "weighted": (p < 0.4, p, p + 0.1)}[kind]
    Sample.of(*rows)  # compile first
    tracemalloc.start()
    Sample.of(*rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / len(p) == pytest.approx(bytes_a_row, abs=1)


def test_relative_weights_are_exact():
    w, exponent = sample_module.relative_weights(np.array([3e300, 1e250, 1.7e308]))
    assert 0.5 <= w.max() < 1
    assert np.ldexp(w, exponent).tolist() == [3e300, 1e250, 1.7e308]
    w, exponent = sample_module.relative_weights(np.array([5e-324, 1e-310]))
    assert np.ldexp(w, exponent).tolist() == [5e-324, 1e-310]


def test_the_first_error_wins_whatever_the_timing():
    def fail(message, seconds):
        time.sleep(seconds)
        raise ValueError(message)

    with pytest.raises(ValueError, match="first"):
        parallel.run_tasks([lambda: fail("first", 0.1), lambda: fail("second", 0)], LARGE)


def blas_threads():
    return {library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()}


def test_blas_uses_one_thread_until_the_last_caller_ends():
    before, inside, done = blas_threads(), threading.Event(), threading.Event()

    @parallel.one_blas_thread()
    def other():
        inside.set()
        done.wait(10)

    thread = threading.Thread(target=other)
    with parallel.one_blas_thread():
        thread.start()
        assert inside.wait(10)
        assert blas_threads() == {1}
    assert blas_threads() == {1}
    done.set()
    thread.join()
    assert blas_threads() == before


def test_work_at_exit_runs_without_new_threads():
    code = (
        "import atexit, numpy as np, truthcal as tc\n"
        f"y, p = np.zeros({LARGE}), np.linspace(0, 1, {LARGE})\n"
        "atexit.register(lambda: print(round(tc.atb(y, p), 3)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.183"
