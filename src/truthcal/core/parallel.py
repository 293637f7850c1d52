"""Run work on two cores. Numpy's sort and the compiled kernels release the GIL, so threads are enough."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

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
