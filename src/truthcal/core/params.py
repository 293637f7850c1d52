"""Checks of parameters, of binnings, and of the conditions that some measures need. Rows are checked in `checks.py`."""

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid, is_missing_object, where_found


def shown(value: object) -> str:
    """Format a value for an error message, shortened: a column passed in the wrong place must not flood the screen."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"


# --- conditions of measures ------------------------------------------------------------------------------------------


def check_counts(w: NDArray[np.float64]) -> None:
    """Reject weights that are not whole numbers of repetitions, or whose sum is not exact."""
    if w.sum() > 2**53:
        raise invalid("sample_weight", f"repeats rows {w.sum():g} times in all, more than can be counted exactly.")
    whole = w == np.floor(w)
    if not whole.all():
        rule = f"must hold whole numbers of repetitions, since rows are counted here; found {w[~whole][0]:g}."
        cure = "For fractional weights use another measure, for example multiscale_atb."
        raise invalid("sample_weight", f"{rule} {cure}")


def check_debias(norm: object, y: NDArray[Any], repetitions: NDArray[np.float64], counts: NDArray[np.float64]) -> None:
    """Reject what `debias` cannot use: it needs the variance of 0/1 outcomes in each bin."""
    if norm != "l2":
        raise invalid("debias", f"is defined for norm='l2' only; got norm={norm!r}.")
    if not ((y == 0) | (y == 1)).all():
        raise invalid("debias", "needs 0/1 outcomes; `y_true` holds fractions.")
    check_counts(repetitions)
    if counts.min() < 2:
        raise invalid("debias", "needs two rows in each bin that is not empty; use fewer bins.")


def check_log_odds(r: NDArray[np.float64]) -> None:
    """Reject predictions (increasing) whose log-odds are not finite, or all the same."""
    if r[0] <= 0.0 or r[-1] >= 1.0:
        example = f"found {r[0] if r[0] <= 0.0 else r[-1]:g}"
        cure = "Clip deliberately, for example np.clip(y_proba, 1e-6, 1 - 1e-6)."
        raise invalid("y_proba", f"must lie strictly between 0 and 1 here, since log-odds are taken; {example}. {cure}")
    if len(r) < 2:
        raise invalid("y_proba", f"must hold two different predictions to fit a slope; all are {r[0]:g}.")


def check_spread(spread: float) -> None:
    """Reject different predictions whose log-odds are equal up to rounding."""
    if not spread > 0.0:
        raise invalid("y_proba", "has log-odds that are equal up to rounding, so no slope can be fitted.")


def refuse_separated(w: NDArray[np.float64], wy: NDArray[np.float64]) -> None:
    """Reject outcomes that a threshold on the predictions separates: the likelihood has no finite maximum."""
    with_zeros, with_ones = np.flatnonzero(wy < w), np.flatnonzero(wy > 0.0)
    if len(with_zeros) == 0 or len(with_ones) == 0:
        raise invalid("y_true", "has one class only, so no finite intercept fits best; rows of both are needed.")
    if with_zeros[-1] <= with_ones[0] or with_ones[-1] <= with_zeros[0]:
        problem = "separates the outcomes by a threshold, so no finite slope fits best; more rows are needed."
        raise invalid("y_proba", problem)


def refuse_unconverged(newton_step: float) -> None:
    """Reject a fit whose last step was still long: its maximum is too far out for floats."""
    if not newton_step <= 1e-6:
        reason = "predictions are too close to 0, 1 or each other, or almost separate the outcomes"
        cure = "More rows, or weights less far apart, are needed."
        raise invalid("y_proba", f"allows no accurate fit of slope and intercepts: {reason}. {cure}")


def refuse_not_table(table: object, is_table: bool, name: str = "table") -> None:
    """Reject what is not a table of sketches with at least one segment."""
    if not is_table:
        example = "such as sketch_frame(frame, ..., by='region') returns"
        problem = f"must be a SketchTable, one sketch for each segment, {example}; got {shown(table)}."
        raise invalid(name, f"{problem} For one Sketch use assess.", TypeError)
    if not table:
        raise invalid(name, "is empty; it has no segments to assess.")


# --- binnings ---------------------------------------------------------------------------------------------------------


def check_binning(binning: object) -> None:
    """Reject a binning that is not a function of the predictions."""
    if isinstance(binning, type):
        problem = f"is the class {binning.__name__}; pass an instance, {binning.__name__}(...)."
        raise invalid("binning", problem, TypeError)
    if not callable(binning):
        rule = "must be a Binning such as ShiftedGrid(0.1), or a function of the predictions"
        reason = "Ready-made labels are not accepted, because they could depend on the outcomes: pass lambda p: ..."
        raise invalid("binning", f"{rule}; got {type(binning).__name__}. {reason} instead.", TypeError)


def check_draw(labels: Any, p: NDArray[np.float64]) -> NDArray[Any]:
    """Check one draw of a user's binning: a label for each prediction, the same for ties.

    A sorted sample orders ties by their outcomes, so labels that split them could depend on the outcomes.
    """
    rows = len(p)
    try:
        array = np.asarray(labels)
    except ValueError:
        array = np.empty(0)
    if array.shape != (rows,):
        draw = f"an array of shape {array.shape}" if array.ndim else type(labels).__name__
        several = f"several such draws (an iterator of them, or an array of shape (draws, {rows}))"
        rule = f"must return one label for each of the {rows} predictions, or {several}"
        raise invalid("binning", f"{rule}; one draw was {draw}.")
    missing = is_missing_object(array) if array.dtype.kind == "O" else array != array  # only nan differs from itself
    if missing.any():
        raise invalid("binning", "returned a missing label (nan or None); it must label every prediction.")
    split = (array[1:] != array[:-1]) & (p[1:] == p[:-1])
    if split.any():
        problem = f"gave equal predictions ({p[int(split.argmax())]:g}) different labels"
        cure = "For bins of equal count use QuantileBins, which splits ties fairly."
        raise invalid("binning", f"{problem}; a binning may depend on the predictions alone. {cure}")
    return array


def check_edges(edges: Any) -> tuple[float, ...]:
    """Check edges of bins: increasing numbers in [0, 1]."""
    try:
        cuts = np.asarray(list(edges), dtype=np.float64)
    except (TypeError, ValueError):
        cuts = np.empty((0, 0))
    if cuts.ndim != 1:
        problem = f"must be a list of numbers; got {shown(edges)}. For ten equal bins: np.linspace(0, 1, 11)."
        raise invalid("edges", problem, TypeError)
    if not (((cuts >= 0) & (cuts <= 1)).all() and (np.diff(cuts) > 0).all()):
        raise invalid("edges", f"must lie in [0, 1] and increase; got {cuts.tolist()}.")
    return tuple(cuts.tolist())


def refuse_too_many(different: int, most: int, advice: str) -> None:
    """Reject input whose cost grows faster than its rows."""
    if different > most:
        raise invalid("y_proba", f"has {different} different values, more than {most}: {advice}")


# --- parameters -------------------------------------------------------------------------------------------------------


def check_names(names: Any, known: tuple[str, ...]) -> list[str]:
    """Check names of measures."""
    if isinstance(names, str):
        names = [names]
    try:
        wanted = list(names)
    except TypeError:
        problem = f"must be names of measures, such as ['atb', 'smcal']; got {shown(names)}."
        raise invalid("names", problem, TypeError) from None
    for name in wanted:
        check_choice(name, "names", known)
    return wanted


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


def check_family(family: Any, known: Mapping[str, tuple[Any, float]], p: NDArray[np.float64]) -> tuple[str, Any, float]:
    """Return a family of miscalibrations: name, function of predictions and strength, largest strength."""
    if not callable(family):
        name = check_choice(family, "family", tuple(known))
        return name, *known[name]

    def checked(p: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
        truth = np.asarray(family(p, strength), dtype=np.float64)
        if truth.shape != p.shape or not ((truth >= 0.0) & (truth <= 1.0)).all():
            rule = f"must return one probability in [0, 1] for each of the {len(p)} predictions"
            raise invalid("family", f"{rule}; at strength {strength:g} it did not.")
        return truth

    if not np.allclose(checked(p, 0.0), p, rtol=1e-9, atol=1e-12):
        raise invalid("family", "must return the predictions themselves at strength 0, where they are calibrated.")
    return getattr(family, "__name__", "own family"), checked, 1.0


def refuse_unreachable(wanted: NDArray[np.float64], most: float) -> None:
    """Reject errors larger than a family of miscalibrations can make."""
    if wanted.size == 0 or not (wanted >= 0.0).all():
        raise invalid("distances", "must hold numbers that are not negative, at least one.")
    if most == 0.0:
        raise ValueError("predictions like these cannot be wrong in this way: they are all 0 or 1, or all 1/2.")
    largest = wanted.max()
    if largest > most:
        raise ValueError(f"predictions like these can be wrong by {most:.4g} at most in this way; got {largest:g}.")


def check_choice(value: object, name: str, allowed: tuple[str, ...], where: str = "") -> str:
    """Check for one of the allowed words; `where` says what narrows the choice."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    one_of = "one of " if len(allowed) > 1 else ""
    raise invalid(name, f"{where} must be {one_of}{words}; got {shown(value)}.".lstrip())


def refuse_fractions(y: NDArray[Any], convention: str) -> None:
    """Reject fractional outcomes: the packages whose numbers are reproduced take labels only."""
    if y.dtype != np.uint8:
        example = where_found(y, (y != 0) & (y != 1))
        cure = "For fractional outcomes use a measure of truthcal, such as atb."
        raise invalid("y_true", f"must hold 0/1 outcomes for the convention {convention!r}; found {example}. {cure}")


def refuse_nothing_counted(rows: int) -> None:
    """Reject one bin for MAPIE, which then counts only predictions of exactly 0, if there are none of these."""
    if rows == 0:
        rule = "must be at least 2 for the convention 'mapie' unless a prediction is exactly 0; got 1"
        raise invalid("n_bins", f"{rule}, for which mapie returns nan. Pass n_bins=2 to have all rows in one bin.")


def check_rng(rng: Any) -> np.random.Generator:
    """Return a generator for a seed, a generator, or None (a fresh one)."""
    problem = f"must be a whole number, a numpy Generator or None; got {shown(rng)}."
    if isinstance(rng, bool | np.bool_ | str | float | np.random.RandomState):
        raise invalid("rng", problem, TypeError)
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise invalid("rng", problem, TypeError) from error


# --- audits -----------------------------------------------------------------------------------------------------------


def check_score(value: Any, name: str, y: NDArray[Any]) -> float:
    """Check the value that a user's own measure returned for the outcomes `y`: a finite number."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"the measure {name!r} must return a finite number for all outcomes; it returned {shown(value)} for "
            f"y_true = {shown(y.tolist())}. Give it a value there, or choose a truth where this cannot occur."
        )
    return number


def refuse_weight_of_callable(sample_weight: object) -> None:
    """Reject weights with a function f(y_true, y_proba), which has no argument for them."""
    if sample_weight is not None:
        problem = "cannot be given with a function as `measure`, which is called as f(y_true, y_proba)"
        raise invalid("sample_weight", f"{problem}; use the weights inside that function.")


def check_table(given: Any, name: str, example: str) -> dict[str, Any]:
    """Convert a list of names, or a dict from names to values, to a dict with at least one entry."""
    rule = f"must be a list of names or a dict, such as {example}"
    if isinstance(given, str):
        given = [given]
    try:
        pairs = list(given.items()) if isinstance(given, Mapping) else [(entry, entry) for entry in given]
    except TypeError:
        raise invalid(name, f"{rule}; got {shown(given)}.", TypeError) from None
    if not pairs:
        raise invalid(name, f"is empty; at least one is needed, for example {example}.")
    for entry, _ in pairs:
        if not isinstance(entry, str):
            raise invalid(name, f"{rule}; got {shown(entry)} as a name.", TypeError)
    return dict(pairs)


def refuse_reserved(name: str, reserved: tuple[str, ...]) -> None:
    """Reject a strategy with the name of another column of the audit."""
    if name in reserved:
        raise invalid("strategies", f"must not name a lie {name!r}: an audit has a column of that name. Rename it.")


# --- curves -----------------------------------------------------------------------------------------------------------


def refuse_few_for_band(n_resamples: int, confidence_level: float) -> None:
    """Reject so few draws that a band would reach beyond the largest and smallest of them."""
    least = math.ceil(2.0 / (1.0 - confidence_level) - 1e-9) - 1
    if n_resamples < least:
        rule = f"must be at least {least} for confidence_level = {confidence_level:g}; got {n_resamples}."
        raise invalid("n_resamples", f"{rule} Draw more, or lower the level.")
