"""Run work on all cores. Numpy's sort and the compiled kernels release the GIL, so threads are enough.

Work is divided in the same way whatever the number of threads, and results are combined in order: they are identical
to the last bit for any number of threads.
"""

import contextlib
import functools
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

A = TypeVar("A")

# Starting a thread costs about as much as sorting this many rows.
WORTH_A_THREAD = 1 << 17
# Random streams for simulations.
_STREAMS = 8
_VARIABLE = "TRUTHCAL_NUM_THREADS"
_CGROUP = Path("/sys/fs/cgroup")


def thread_count() -> int:
    """Return the number of threads to use: TRUTHCAL_NUM_THREADS, or the cores that this process may use."""
    wanted = os.environ.get(_VARIABLE, "").strip()
    if wanted:
        if not wanted.isdecimal() or int(wanted) == 0:
            raise ValueError(f"{_VARIABLE} must be a whole number from 1 on; got {wanted!r}.")
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, _cgroup_cores()))


@functools.cache
def _cgroup_cores() -> int:
    """Return the number of cores that the container may use on average, rounded up; very many without a limit."""
    for files in (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]):  # of versions 2 and 1 of cgroups
        with contextlib.suppress(OSError, ValueError):
            quota, period = (float(word) for name in files for word in (_CGROUP / name).read_text().split())
            if quota > 0.0:
                return math.ceil(quota / period)
    return 1 << 16


class _Thread(threading.local):
    """Whether this thread runs a task, one of several at a time: then the tasks within it start no more threads."""

    busy = False


_THREAD = _Thread()


def run_tasks(tasks: Sequence[Callable[[], A]], rows: int) -> list[A]:
    """Return the results of all tasks, in order; on several threads if there are enough rows.

    Threads take the next task from a queue. If tasks fail, the error of the first one in order is raised, so that it
    does not depend on timing. The threads end before this returns: a process that forks later inherits none.
    """
    threads = min(thread_count(), len(tasks)) if rows >= WORTH_A_THREAD and not _THREAD.busy else 1
    results: dict[int, A] = {}
    errors: dict[int, BaseException] = {}
    waiting = iter(range(len(tasks)))

    def work() -> None:
        was_busy, _THREAD.busy = _THREAD.busy, _THREAD.busy or threads > 1
        for k in waiting:
            try:
                results[k] = tasks[k]()
            except BaseException as error:  # raised below
                errors[k] = error
            if errors:
                break
        _THREAD.busy = was_busy

    others = [threading.Thread(target=work, name=f"truthcal-{k}") for k in range(1, threads)]
    started = []
    with contextlib.suppress(RuntimeError):  # the interpreter is shutting down and starts no more threads
        for thread in others:
            thread.start()
            started.append(thread)
    work()
    for thread in started:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[k] for k in range(len(tasks))]


def parts_of(rows: int, most: int = 256) -> list[tuple[int, int]]:
    """Divide rows into parts of about equal size, (first, last) each; at most so many, which can keep 64 cores busy.

    The number of threads has no influence. Parts are smaller than what is worth a thread, so that threads finish
    together: on two threads, seven parts take as long as eight.
    """
    count = min(2 * rows // WORTH_A_THREAD, most) if rows >= WORTH_A_THREAD else 1
    edges = [rows * k // count for k in range(count + 1)]
    return list(itertools.pairwise(edges))


def in_parts(work: Callable[[int, int], A], rows: int, most: int = 256) -> list[A]:
    """Return the results of ``work(first, last)`` for all parts of the rows (see `parts_of`), in order."""
    return run_tasks([functools.partial(work, first, last) for first, last in parts_of(rows, most)], rows)


def random_streams(generator: np.random.Generator) -> list[np.random.Generator]:
    """Return independent random streams to draw from in as many tasks; their number does not depend on the threads."""
    return [np.random.default_rng(generator.integers(0, 2**63, 4)) for _ in range(_STREAMS)]


# --- BLAS -------------------------------------------------------------------------------------------------------------


class _BlasLimit:
    """The limit on BLAS threads while at least one caller wants it. The last one restores what was there before."""

    def __init__(self) -> None:
        self.lock, self.callers = threading.Lock(), 0
        self.limiter: Any = None


_BLAS = _BlasLimit()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread, in a ``with`` block or as a decorator.

    For matrices of a few hundred rows a second thread gains little. If it has to wait for a busy core, eigenvalues take
    twenty times as long, and `assess` 1.5 s instead of 0.1 s.
    """
    with _BLAS.lock:
        if _BLAS.callers == 0:
            _BLAS.limiter = _blas_controller().limit(limits=1, user_api="blas")
        _BLAS.callers += 1
    try:
        yield
    finally:
        with _BLAS.lock:
            _BLAS.callers -= 1
            if _BLAS.callers == 0:
                _BLAS.limiter.restore_original_limits()


@functools.cache
def _blas_controller() -> Any:
    from threadpoolctl import ThreadpoolController  # 5 ms

    return ThreadpoolController()
