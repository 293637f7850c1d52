"""Compilation of kernels, and definitions shared by all of them."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Rows = NDArray[Any]

# Long sums of non-negative terms are added in blocks of this many rows: the rounding error is then about BLOCK times,
# not n times, the machine epsilon, at the same speed.
BLOCK = 4096


def compiled(function: F) -> F:
    """Compile without the GIL, and cache the machine code on disk if there is a writable directory."""
    try:
        dispatcher: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # no writable cache directory: compile once per process
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))
    if not hasattr(dispatcher, "_cache"):  # with NUMBA_DISABLE_JIT it is the plain function
        return cast(F, dispatcher)
    save = dispatcher._cache.save_overload

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except OSError as error:  # a full disk must not stop the computation
            warnings.warn(f"truthcal could not cache compiled code: {error}", RuntimeWarning, stacklevel=2)

    dispatcher._cache.save_overload = save_if_possible
    return cast(F, dispatcher)


@compiled
def two_sum(high: float, low: float, x: float) -> tuple[float, float]:
    """Add x to (high, low), keeping the rounding error of the addition in low."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))
