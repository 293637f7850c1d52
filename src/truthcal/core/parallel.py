"""Two pieces of work on two cores. Numpy's sort and the compiled kernels release the GIL, so plain threads do."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

# Starting two threads costs about as much as sorting this many rows.
WORTH_A_THREAD = 1 << 17


def use_threads(rows: int) -> bool:
    """Whether there are two cores to run on, and rows enough for them."""
    if rows < WORTH_A_THREAD:
        return False
    affinity = getattr(os, "sched_getaffinity", None)
    return (len(affinity(0)) if affinity else os.cpu_count() or 1) > 1


def in_halves(work: Callable[[int, int], A], rows: int) -> list[A]:
    """`work(first, last)` over all rows: in one call, or in two at the same time where that is worth a thread."""
    if not use_threads(rows):
        return [work(0, rows)]
    half = rows // 2
    return list(both(lambda: work(0, half), lambda: work(half, rows), rows))


def both(first: Callable[[], A], second: Callable[[], B], rows: int) -> tuple[A, B]:
    """Results of both calls, run at the same time where `rows` make it worth a thread.

    The first call's error wins, so that the error a user sees does not depend on timing. The pool lives only as long
    as the call: a process that forks later inherits no threads.
    """
    if not use_threads(rows):
        return first(), second()
    with ThreadPoolExecutor(1, thread_name_prefix="truthcal") as pool:
        try:
            later = pool.submit(second)
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            return first(), second()
        return first(), later.result()
