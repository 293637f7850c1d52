"""Checks of parameters. Rows are checked in `checks.py`; a check that one module needs is in that module."""

import difflib
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid

# Known names that are compared with an unknown one, to suggest one of them.
_COMPARED = 10_000
# All redrawn curves of a band are in memory until their quantiles are known: 20,000 at 1000 points are 160 MB.
_MOST_RESAMPLES = 20_000


def shown(value: object) -> str:
    """Format a parameter's value for an error, shortened: a column in the wrong place must not flood the screen."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"


def list_shown(values: Sequence[object], *, more: bool = False) -> str:
    """List the first values of a parameter for an error message; `more` if these are not all."""
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


def refuse_too_many(different: int, limit: int, advice: str) -> None:
    """Reject the parameter `y_proba` if it has more different values than a slow method can handle."""
    if different > limit:
        raise invalid("y_proba", f"has {different} different values, more than {limit}: {advice}")


def check_flag(value: object, name: str) -> bool:
    """Check a parameter for True or False."""
    if not isinstance(value, bool | np.bool_):
        raise invalid(name, f"must be True or False; got {shown(value)}.", TypeError)
    return bool(value)


def check_whole(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Check a parameter for an integer in [low, high]; numpy's integers are allowed, True and 3.0 are not."""
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
    """Check a parameter for a power of two in [1, high]."""
    number = check_whole(value, name, 1, high)
    if number & (number - 1):
        below = 1 << (number.bit_length() - 1)
        raise invalid(name, f"must be a power of two; got {number}. Try {below} or {2 * below}.")
    return number


def check_number(value: Any, name: str, least: float) -> float:
    """Check a parameter for a finite number, at least `least`; text and booleans are not numbers."""
    try:
        number = None if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise invalid(name, f"must be a number; got {shown(value)}.", TypeError)
    if not least <= number < math.inf:
        bound = f" and at least {least:g}" if least > -math.inf else ""
        raise invalid(name, f"must be finite{bound}; got {number!r}.")
    return number


def check_positive(value: Any, name: str) -> float:
    """Check a parameter for a finite number above 0."""
    number = check_number(value, name, 0.0)
    if number == 0.0:
        raise invalid(name, f"must be a positive number; got {number!r}.")
    return number


def check_level(value: Any, name: str) -> float:
    """Check a parameter for a probability strictly between 0 and 1."""
    number = check_number(value, name, 0.0)
    if not 0.0 < number < 1.0:
        cure = f" For {number:g}%, pass {number / 100:g}." if 1.0 < number < 100.0 else ""
        raise invalid(name, f"must lie strictly between 0 and 1; got {number!r}.{cure}")
    return number


def closest_name(name: Any, known: Sequence[Any]) -> Any:
    """Return the known name that an unknown one begins, or is most similar to, ignoring case; "" if there is none."""
    text, similar = str(name).casefold(), {str(each).casefold(): each for each in reversed(known[:_COMPARED])}
    longer = [each for each in similar if each.startswith(text)] if len(text) > 1 else []
    close = longer if len(longer) == 1 else difflib.get_close_matches(text, similar, n=1)
    return similar[close[0]] if close else ""


def refuse_unknown_options(function: str, options: Iterable[str], known: Sequence[str]) -> None:
    """Reject a keyword argument that a function does not have, and suggest the most similar one."""
    for name in options:
        if name not in known:
            close = closest_name(name, known)
            suggestion = f" Did you mean {close!r}?" if close else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}.{suggestion}")


def check_choice(value: object, name: str, allowed: tuple[str, ...], where: str = "") -> str:
    """Check a parameter for one of the allowed words; `where` says what narrows the choice."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    one_of = "one of " if len(allowed) > 1 else ""
    close = closest_name(value, allowed) if isinstance(value, str) else ""
    suggestion = f" Did you mean {close!r}?" if close else ""
    raise invalid(name, f"{where} must be {one_of}{words}; got {shown(value)}.{suggestion}".lstrip())


def check_rng(rng: Any) -> np.random.Generator:
    """Check the parameter `rng`: return a generator for a seed, a generator, or None (a fresh one)."""
    problem = f"must be a whole number, a numpy Generator or None; got {shown(rng)}."
    if isinstance(rng, bool | np.bool_ | str | float | np.random.RandomState):
        raise invalid("rng", problem, TypeError)
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise invalid("rng", problem, TypeError) from error


def check_band(confidence_level: float, n_resamples: int, rng: Any) -> tuple[float, int, np.random.Generator]:
    """Check the parameters of a band. With fewer draws it would reach beyond the largest and smallest of them."""
    level, generator = check_level(confidence_level, "confidence_level"), check_rng(rng)
    n_resamples = check_whole(n_resamples, "n_resamples", 1, _MOST_RESAMPLES)
    least = math.ceil(2.0 / (1.0 - level) - 1e-9) - 1
    if n_resamples < least:
        rule = f"must be at least {least} for confidence_level = {level:g}; got {n_resamples}."
        raise invalid("n_resamples", f"{rule} Increase it, or lower the level.")
    return level, n_resamples, generator
