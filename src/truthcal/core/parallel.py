"""Run work on two cores. Numpy's sort and the compiled kernels release the GIL, so threads are enough."""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")

# Starting two threads costs about as much as sorting this many rows.
WORTH_A_THREAD = 1 << 17


def use_threads(rows: int) -> bool:
    """Return whether there are two cores, and enough rows to make a second thread worthwhile."""
    if rows < WORTH_A_THREAD:
        return False
    affinity = getattr(os, "sched_getaffinity", None)
    return (len(affinity(0)) if affinity else os.cpu_count() or 1) > 1


def in_halves(work: Callable[[int, int], A], rows: int) -> list[A]:
    """Call `work(first, last)` for all rows: once, or for both halves at the same time if there are enough rows."""
    if not use_threads(rows):
        return [work(0, rows)]
    half = rows // 2
    return list(run_parts(lambda: work(0, half), lambda: work(half, rows), rows))


def run_parts(first: Callable[[], A], second: Callable[[], B], rows: int) -> tuple[A, B]:
    """Return the results of both calls, run at the same time if there are enough rows.

    If both fail, the first call's error is raised, so that the error does not depend on timing. The pool is closed
    before returning: a process that forks later inherits no threads.
    """
    if not use_threads(rows):
        return first(), second()
    with ThreadPoolExecutor(1, thread_name_prefix="truthcal") as pool:
        try:
            later = pool.submit(second)
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            return first(), second()
        return first(), later.result()


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
