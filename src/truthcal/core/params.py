"""Checks of parameters. Rows are checked in `checks.py`; a check that one module needs is in that module."""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid


def shown(value: object) -> str:
    """Format a value for an error message, shortened: a column passed in the wrong place must not flood the screen."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"


def list_shown(values: Sequence[object], *, more: bool = False) -> str:
    """List the first values for an error message; `more` if these are not all."""
    return ", ".join([*map(shown, values[:20]), *["..."] * (more or len(values) > 20)]) or "none"


def check_counts(w: NDArray[np.float64]) -> None:
    """Reject weights that are not whole numbers of repetitions, or whose sum is not exact."""
    if w.sum() > 2**53:
        raise invalid("sample_weight", f"adds up to {w.sum():g} rows, more than can be counted exactly.")
    whole = w == np.floor(w)
    if not whole.all():
        rule = f"must contain whole numbers, because this measure counts rows; found {w[~whole][0]:g}."
        cure = "For fractional weights use another measure, for example multiscale_atb."
        raise invalid("sample_weight", f"{rule} {cure}")


def refuse_too_many(different: int, most: int, advice: str) -> None:
    """Reject input whose cost grows faster than its rows."""
    if different > most:
        raise invalid("y_proba", f"has {different} different values, more than {most}: {advice}")


def check_flag(value: object, name: str) -> bool:
    """Check for True or False."""
    if not isinstance(value, bool | np.bool_):
        raise invalid(name, f"must be True or False; got {shown(value)}.", TypeError)
    return bool(value)


def check_whole(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Check for an integer in [low, high]; numpy's integers are allowed, True and 3.0 are not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise invalid(name, f"must be a whole number; got {shown(value)}.", TypeError)
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"between {low} and {high}"
        raise invalid(name, f"must be {allowed}; got {number}.")
    return number


def check_power_of_two(value: object, name: str, high: int) -> int:
    """Check for a power of two in [1, high]."""
    number = check_whole(value, name, 1, high)
    if number & (number - 1):
        below = 1 << (number.bit_length() - 1)
        raise invalid(name, f"must be a power of two; got {number}. Try {below} or {2 * below}.")
    return number


def check_number(value: Any, name: str, least: float) -> float:
    """Check for a finite number, at least `least`; text and booleans are not numbers."""
    try:
        number = None if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise invalid(name, f"must be a number; got {shown(value)}.", TypeError)
    if not least <= number < math.inf:
        raise invalid(name, f"must be finite and at least {least:g}; got {number!r}.")
    return number


def check_positive(value: Any, name: str) -> float:
    """Check for a finite number above 0."""
    number = check_number(value, name, 0.0)
    if number == 0.0:
        raise invalid(name, f"must be a positive number; got {number!r}.")
    return number


def check_level(value: Any, name: str) -> float:
    """Check for a probability strictly between 0 and 1."""
    number = check_number(value, name, 0.0)
    if not 0.0 < number < 1.0:
        cure = f" For {number:g}%, pass {number / 100:g}." if 1.0 < number < 100.0 else ""
        raise invalid(name, f"must lie strictly between 0 and 1; got {number!r}.{cure}")
    return number


def check_choice(value: object, name: str, allowed: tuple[str, ...], where: str = "") -> str:
    """Check for one of the allowed words; `where` says what narrows the choice."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    one_of = "one of " if len(allowed) > 1 else ""
    raise invalid(name, f"{where} must be {one_of}{words}; got {shown(value)}.".lstrip())


def check_rng(rng: Any) -> np.random.Generator:
    """Return a generator for a seed, a generator, or None (a fresh one)."""
    problem = f"must be a whole number, a numpy Generator or None; got {shown(rng)}."
    if isinstance(rng, bool | np.bool_ | str | float | np.random.RandomState):
        raise invalid("rng", problem, TypeError)
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise invalid("rng", problem, TypeError) from error
