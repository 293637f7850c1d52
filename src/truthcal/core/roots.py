"""Roots of functions, one or many at once. Importing scipy.optimize would take 0.2 s at the start of a command.

Many functions are evaluated together: ``rising(x, wanted)`` returns the values of all functions, each at its own entry
of x. Only the entries where `wanted` is True are used.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from truthcal.kernels.brent import F_CUR, N_STATE, X_CUR, brent_steps

_Array = NDArray[np.float64]
_Mask = NDArray[np.bool_]
Rising = Callable[[_Array, _Mask], _Array]

_MOST_STEPS = 100


def find_root(
    function: Callable[[float], float], a: float, b: float, *, xtol: float = 2e-12, rtol: float = 4.0 * 2.0**-52
) -> float:
    """Root of a function between a and b, where it must have different signs, by Brent's method.

    The same steps as `scipy.optimize.brentq`, and so the same result: it is within ``xtol + rtol * abs(root)`` of one.

    Examples
    --------
    >>> from truthcal.core.roots import find_root
    >>> print(f"{find_root(lambda x: x * x - 2.0, 0.0, 2.0):.6f}")
    1.414214
    """

    def values(x: _Array, _: _Mask | None = None) -> _Array:
        if math.isnan(f := float(function(float(x[0])))):
            raise ValueError(f"the function must not be nan; it is at {float(x[0])!r}.")
        return np.array([f])

    ends = np.array([a], np.float64), np.array([b], np.float64)
    f_a, f_b = map(values, ends)
    if np.sign(f_a) * np.sign(f_b) > 0.0:
        raise ValueError(
            f"the function must have different signs at a and b; got {float(f_a[0])!r} and {float(f_b[0])!r}."
        )
    return float(_brent(values, *ends, f_a, f_b, np.ones(1, np.bool_), np.array([xtol]), rtol)[0])


def interval_end(rising: Callable[[float], float]) -> float:
    """End of one confidence interval (see `interval_ends`)."""
    return float(interval_ends(lambda x, _: np.array([rising(float(x[0]))]), np.ones(1, np.bool_))[0])


def interval_ends(rising: Rising, wanted: _Mask) -> _Array:
    """Ends of confidence intervals: roots of increasing functions on [0, 1], or an end of [0, 1] if there is none.

    Lengths are much smaller than 1, so dividing by 4 brackets the root faster than Brent's method alone. Entries that
    are not wanted are 0.
    """
    ends, high, low = np.zeros(len(wanted)), np.ones(len(wanted)), np.zeros(len(wanted))
    f_low = np.where(wanted, rising(low, wanted), 0.0)
    open_ = wanted & (f_low < 0.0)
    f_high = np.where(open_, rising(high, open_), 0.0)
    ends[open_ & (f_high <= 0.0)] = 1.0
    open_ &= f_high > 0.0
    smaller = open_.copy()
    while smaller.any():
        quarter = high / 4.0
        value = np.where(smaller, rising(quarter, smaller), 0.0)
        above = smaller & (value > 0.0)
        low, f_low = np.where(smaller & ~above, quarter, low), np.where(smaller & ~above, value, f_low)
        high, f_high = np.where(above, quarter, high), np.where(above, value, f_high)
        smaller = above & (high > 1e-12)
    ends[open_] = _brent(rising, low, high, f_low, f_high, open_, np.full(len(wanted), 1e-12), 1e-6)[open_]
    return ends


def find_roots(rising: Rising, start: _Array, step: _Array, wanted: _Mask) -> _Array:
    """Roots of increasing functions, to full precision: doubling steps find brackets, Brent's method the roots."""
    xtol, step = 1e-16 * step, step.copy()
    here, f_here = start.copy(), np.where(wanted, rising(start, wanted), 0.0)
    there, f_there, seeking = here.copy(), f_here.copy(), wanted.copy()
    while seeking.any():
        next_ = np.where(seeking, there - np.copysign(step, f_there), there)
        value = np.where(seeking, rising(next_, seeking), f_there)
        here, f_here = np.where(seeking, there, here), np.where(seeking, f_there, f_here)
        there, f_there, step = next_, value, 2.0 * step
        seeking &= (value != 0.0) & ((value > 0.0) == (f_here > 0.0))
    return _brent(rising, here, there, f_here, f_there, wanted, xtol, 1e-15)


def _brent(
    rising: Rising, a: _Array, b: _Array, f_a: _Array, f_b: _Array, wanted: _Mask, xtol: _Array, rtol: float
) -> _Array:
    """Roots between a and b, where the functions have values of opposite signs."""
    state = np.zeros((N_STATE, len(a)))
    state[0], state[X_CUR], state[3], state[F_CUR] = a, b, f_a, f_b
    active = wanted & (f_a != 0.0) & (f_b != 0.0)
    state[X_CUR, wanted & (f_a == 0.0)] = a[wanted & (f_a == 0.0)]
    for _ in range(_MOST_STEPS):
        brent_steps(state, xtol, rtol, active)
        if not active.any():
            return np.asarray(state[X_CUR])
        value = rising(state[X_CUR], active)
        state[F_CUR, active] = value[active]
    raise ArithmeticError(f"No root was found in {_MOST_STEPS} steps; please report the input.")
