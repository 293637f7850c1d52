"""How a kernel is compiled, and what all kernels share."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Rows = NDArray[Any]

# Long sums of non-negative terms are taken in blocks of this many rows, which keeps the rounding error near BLOCK
# times, not n times, the machine epsilon and costs no speed.
BLOCK = 4096


def compiled(function: F) -> F:
    """Compile for every caller, without the GIL, with the machine code cached on disk where a place for it exists."""
    try:
        dispatcher: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no writable cache directory: compile once per process instead
        return cast(F, numba.njit(nogil=True, error_model="numpy")(function))
    if not hasattr(dispatcher, "_cache"):  # NUMBA_DISABLE_JIT leaves the plain function
        return cast(F, dispatcher)
    save = dispatcher._cache.save_overload

    def save_if_possible(*args: Any) -> None:
        try:
            save(*args)
        except OSError as error:  # a disk that filled up meanwhile must not stop a computation
            warnings.warn(f"truthcal could not cache compiled code: {error}", RuntimeWarning, stacklevel=2)

    dispatcher._cache.save_overload = save_if_possible
    return cast(F, dispatcher)


@compiled
def two_sum(high: float, low: float, x: float) -> tuple[float, float]:
    """(high, low) + x without losing the rounding error of the addition."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))
