"""Roots of functions of one variable. Importing scipy.optimize for them would take 0.2 s at the start of a command."""

import math
from collections.abc import Callable

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

    def value(x: float) -> float:
        if math.isnan(f := float(function(x))):
            raise ValueError(f"the function must not be nan; it is at {x!r}.")
        return f

    x, before = float(b), float(a)
    f_before, f = value(before), value(x)
    if f_before == 0.0:
        return before
    if f != 0.0 and (f > 0.0) == (f_before > 0.0):
        raise ValueError(f"the function must have different signs at a and b; got {f_before!r} and {f!r}.")
    other, f_other = before, f_before  # the end on the other side of the root
    last = step = x - before
    for _ in range(_MOST_STEPS):
        if f != 0.0 and (f > 0.0) != (f_before > 0.0):
            other, f_other = before, f_before
            last = step = x - before
        if abs(f_other) < abs(f):
            before, x, other = x, other, x
            f_before, f, f_other = f, f_other, f
        delta, half = (xtol + rtol * abs(x)) / 2.0, (other - x) / 2.0
        if f == 0.0 or abs(half) < delta:
            return x
        last, step = _next_steps((x, f), (before, f_before), (other, f_other), last, step, delta)
        before, f_before = x, f
        x += step if abs(step) > delta else math.copysign(delta, half)
        f = value(x)
    raise ArithmeticError(f"no root was found in {_MOST_STEPS} steps; please report the input.")


def _next_steps(
    here: tuple[float, float],
    before: tuple[float, float],
    other: tuple[float, float],
    last: float,
    step: float,
    delta: float,
) -> tuple[float, float]:
    """Return the last and the next step to the root: inverse interpolation if it is short enough, else bisection."""
    (x, f), (x_before, f_before), (x_other, f_other) = here, before, other
    half = (x_other - x) / 2.0
    if abs(last) > delta and abs(f) < abs(f_before):
        try:
            if x_before == x_other:
                trial = -f * (x - x_before) / (f - f_before)
            else:
                slope, other_slope = (f_before - f) / (x_before - x), (f_other - f) / (x_other - x)
                trial = -f * (f_other * other_slope - f_before * slope) / (other_slope * slope * (f_other - f_before))
        except ZeroDivisionError:  # values or their product underflow
            trial = math.inf
        if 2.0 * abs(trial) < min(abs(last), 3.0 * abs(half) - delta):
            return step, trial
    return half, half
