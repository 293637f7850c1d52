"""Checks of parameters, of bins, and of what a measure can take; with their error messages.

Rows themselves are checked in `_validation.py`.
"""

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import is_missing_object, where_found


def shown(value: object) -> str:
    """A value in an error message: a column passed in the wrong place must not flood the screen."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"


# --- what a measure can take ------------------------------------------------------------------------------------------


def check_counts(w: NDArray[np.float64]) -> None:
    """Weights that stand for repetitions must be whole numbers, and so must their sum be."""
    if w.sum() > 2**53:
        raise ValueError(f"`sample_weight` repeats rows {w.sum():g} times in all, more than can be counted exactly.")
    whole = w == np.floor(w)
    if not whole.all():
        raise ValueError(
            "this needs rows to count, so `sample_weight` must hold whole numbers of repetitions; found "
            f"{w[~whole][0]:g}. For fractional weights use another measure, for example multiscale_atb."
        )


def check_debias(norm: object, y: NDArray[Any], repetitions: NDArray[np.float64], counts: NDArray[np.float64]) -> None:
    """What taking the noise out of squared gaps needs: a variance of 0/1 outcomes in each bin."""
    if norm != "l2":
        raise ValueError(f"`debias` is defined for norm='l2' only; got norm={norm!r}.")
    if not ((y == 0) | (y == 1)).all():
        raise ValueError("`debias` needs 0/1 outcomes; `y_true` holds fractions.")
    check_counts(repetitions)
    if counts.min() < 2:
        raise ValueError("`debias` needs two rows in each bin that is not empty; use fewer bins.")


def check_log_odds(r: NDArray[np.float64]) -> None:
    """Predictions (increasing) whose log-odds are finite and not all the same."""
    if r[0] <= 0.0 or r[-1] >= 1.0:
        raise ValueError(
            f"`y_proba` must lie strictly between 0 and 1 here, since log-odds are taken; found "
            f"{r[0] if r[0] <= 0.0 else r[-1]:g}. Clip deliberately, for example np.clip(y_proba, 1e-6, 1 - 1e-6)."
        )
    if len(r) < 2:
        raise ValueError(f"a slope needs two different predictions; all of `y_proba` is {r[0]:g}.")


def check_spread(spread: float) -> None:
    """Different predictions may still have one log-odds, to rounding."""
    if not spread > 0.0:
        raise ValueError(
            "a slope cannot be found to any precision: the log-odds of all of `y_proba` are equal but for rounding."
        )


def refuse_separated(w: NDArray[np.float64], wy: NDArray[np.float64]) -> None:
    """Outcomes that a threshold on the predictions separates have no finite maximum of the likelihood."""
    with_zeros, with_ones = np.flatnonzero(wy < w), np.flatnonzero(wy > 0.0)
    if len(with_zeros) == 0 or len(with_ones) == 0:
        raise ValueError("`y_true` has one class only, so no finite intercept fits best; rows of both are needed.")
    if with_zeros[-1] <= with_ones[0] or with_ones[-1] <= with_zeros[0]:
        raise ValueError(
            "a threshold on `y_proba` separates the outcomes, so no finite slope fits best; more rows are needed."
        )


def refuse_unconverged(newton_step: float) -> None:
    """A fit whose last step was still long has not arrived: the maximum is too far out for floats."""
    if not newton_step <= 1e-6:
        raise ValueError(
            "the slope and intercepts cannot be found to any precision: predictions are too near 0, 1 or one another, "
            "or outcomes are all but separated by `y_proba`. More rows, or weights less far apart, are needed."
        )


def refuse_beside_sketch(y_proba: object, sample_weight: object, pos_label: object) -> None:
    """A sketch holds predictions and weights already."""
    given = {"y_proba": y_proba, "sample_weight": sample_weight, "pos_label": pos_label}
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"`{name}` cannot go with a Sketch, which holds what is known of its rows; leave it out.")


def refuse_not_table(table: object, is_table: bool) -> None:
    """Segments come from a table of sketches that has some."""
    if not is_table:
        raise TypeError(
            "`table` must be a SketchTable, one sketch for each segment, such as sketch_frame(frame, ..., by='region') "
            f"returns; got {shown(table)}. For one Sketch use assess."
        )
    if not table:
        raise ValueError("`table` is empty; it has no segments to assess.")


def refuse_no_spread(spread: float) -> None:
    """Spiegelhalter's statistic needs a Brier score that outcomes can change."""
    if not spread > 0.0:
        raise ValueError(
            "all of `y_proba` is 0, 1/2 or 1, where Spiegelhalter's test sees nothing; use calibration_test."
        )


def refuse_no_freedom(freedom: int, ddof: int) -> None:
    """A chi-square needs a degree of freedom."""
    if freedom < 1:
        raise ValueError(
            f"no degrees of freedom are left: {freedom + ddof} bins with any doubt in them, less `ddof` = {ddof}; "
            "use more bins, or calibration_test."
        )


def refuse_no_proba(y_proba: object) -> None:
    """Outcomes alone say nothing."""
    if y_proba is None:
        raise TypeError(
            "`y_proba` is missing: pass (y_true, y_proba). Only a Sketch goes without: of a "
            "SketchTable pass one group, table[key], or table.total()."
        )


def refuse_unique(measure: str, unique: bool) -> None:
    """An ECE of distinct predictions has no population value where hardly any prediction repeats."""
    if unique:
        raise ValueError(f"most predictions are unique, so {measure} has no population value; use atb or binned_ece.")


def refuse_one_row(ww: float) -> None:
    """One row, or one that outweighs all others, tells nothing of the next. `ww`: sum of (w / W)^2."""
    if not ww < 1.0:
        raise ValueError("two rows of some weight are needed to tell noise from error.")


def refuse_coarse_sketch(width: float, needed: float) -> None:
    """Bounds further apart than this cannot decide between accepting and rejecting."""
    if width > needed:
        raise ValueError(
            f"the sketch knows ATB only to within {width:.2g}, and this test needs {needed:.2g}; build it with about "
            f"{math.ceil(math.sqrt(width / needed))} times as many `n_buckets`."
        )


# --- binnings ---------------------------------------------------------------------------------------------------------


def check_binning(binning: object) -> None:
    """A binning must be something that can look at the predictions, and not what someone has made of them already."""
    if isinstance(binning, type):
        raise TypeError(f"`binning` is the class {binning.__name__}; pass an instance, {binning.__name__}(...).")
    if not callable(binning):
        raise TypeError(
            "`binning` must be a Binning such as ShiftedGrid(0.1), or a function of the predictions; got "
            f"{type(binning).__name__}. Ready-made labels are not accepted, because they could have been made from the "
            "outcomes: pass lambda p: ... instead."
        )


def check_draw(labels: Any, p: NDArray[np.float64]) -> NDArray[Any]:
    """One draw of a user's binning: a label for each prediction, the same for equal ones.

    In a sorted sample ties are in order of their outcomes, so labels that split them could tell outcomes apart.
    """
    rows = len(p)
    try:
        array = np.asarray(labels)
    except ValueError:
        array = np.empty(0)
    if array.shape != (rows,):
        found = f"an array of shape {array.shape}" if array.ndim else type(labels).__name__
        raise ValueError(
            f"`binning` must return one label for each of the {rows} predictions, or several such draws (an iterator "
            f"of them, or an array of shape (draws, {rows})); one draw was {found}."
        )
    missing = is_missing_object(array) if array.dtype.kind == "O" else array != array  # only nan differs from itself
    if missing.any():
        raise ValueError("`binning` returned a missing label (nan or None); it must label every prediction.")
    split = (array[1:] != array[:-1]) & (p[1:] == p[:-1])
    if split.any():
        raise ValueError(
            f"`binning` gave equal predictions ({p[int(split.argmax())]:g}) different labels; a binning may depend on "
            "the predictions alone. For bins of equal count use QuantileBins, which splits ties fairly."
        )
    return array


def check_edges(edges: Any) -> tuple[float, ...]:
    """Increasing cuts in [0, 1]."""
    try:
        cuts = np.asarray(list(edges), dtype=np.float64)
    except (TypeError, ValueError):
        cuts = np.empty((0, 0))
    if cuts.ndim != 1:
        raise TypeError(
            f"`edges` must be a list of numbers; got {shown(edges)}. For ten equal bins: np.linspace(0, 1, 11)."
        )
    if not (((cuts >= 0) & (cuts <= 1)).all() and (np.diff(cuts) > 0).all()):
        raise ValueError(f"`edges` must lie in [0, 1] and increase; got {cuts.tolist()}.")
    return tuple(cuts.tolist())


def refuse_too_many(different: int, most: int, advice: str) -> None:
    """A cost that grows faster than the rows is refused, not waited for."""
    if different > most:
        raise ValueError(f"there are {different} different predictions, more than {most}: {advice}")


# --- parameters -------------------------------------------------------------------------------------------------------


def check_names(names: Any, known: tuple[str, ...]) -> list[str]:
    """Names of measures."""
    if isinstance(names, str):
        names = [names]
    try:
        wanted = list(names)
    except TypeError:
        raise TypeError(f"`names` must be names of measures, such as ['atb', 'smcal']; got {shown(names)}.") from None
    for name in wanted:
        check_choice(name, "names", known)
    return wanted


def check_flag(value: object, name: str) -> bool:
    """True or False; "no" is neither."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False; got {shown(value)}.")
    return bool(value)


def check_whole(value: Any, name: str, low: int, high: int | None = None) -> int:
    """An integer in [low, high]; numpy's integers are fine, True and 3.0 are not."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be a whole number; got {shown(value)}.")
    if number < low or (high is not None and number > high):
        upto = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"`{name}` must be {upto}; got {number}.")
    return number


def check_power_of_two(value: object, name: str, high: int) -> int:
    """A power of two in [1, high]."""
    number = check_whole(value, name, 1, high)
    if number & (number - 1):
        below = 1 << (number.bit_length() - 1)
        raise ValueError(f"`{name}` must be a power of two; got {number}. Try {below} or {2 * below}.")
    return number


def check_number(value: Any, name: str, least: float) -> float:
    """A finite number, at least `least`; text and booleans are not numbers."""
    try:
        number = None if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise TypeError(f"`{name}` must be a number; got {shown(value)}.")
    if not least <= number < math.inf:
        raise ValueError(f"`{name}` must be finite and at least {least:g}; got {number!r}.")
    return number


def check_level(value: Any, name: str) -> float:
    """A probability strictly between 0 and 1."""
    number = check_number(value, name, 0.0)
    if not 0.0 < number < 1.0:
        cure = f" For {number:g}%, pass {number / 100:g}." if 1.0 < number < 100.0 else ""
        raise ValueError(f"`{name}` must lie strictly between 0 and 1; got {number!r}.{cure}")
    return number


def check_family(family: Any, known: Mapping[str, tuple[Any, float]], p: NDArray[np.float64]) -> tuple[str, Any, float]:
    """A way for predictions p to be wrong: its name, its function of predictions and strength, its largest strength."""
    if not callable(family):
        name = check_choice(family, "family", tuple(known))
        return name, *known[name]

    def checked(p: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
        truth = np.asarray(family(p, strength), dtype=np.float64)
        if truth.shape != p.shape or not ((truth >= 0.0) & (truth <= 1.0)).all():
            raise ValueError(
                f"`family` must return one probability in [0, 1] for each of the {len(p)} predictions; at strength "
                f"{strength:g} it did not."
            )
        return truth

    if not np.allclose(checked(p, 0.0), p, rtol=1e-9, atol=1e-12):
        raise ValueError("`family` must return the predictions themselves at strength 0, where they are calibrated.")
    return getattr(family, "__name__", "own family"), checked, 1.0


def refuse_few_draws(n_resamples: int, alpha: float) -> None:
    """p-values from so few draws would never be small enough."""
    if (1 + n_resamples) * alpha < 1.0:
        raise ValueError(
            f"`n_resamples` must be at least {math.ceil(1.0 / alpha) - 1} for alpha = {alpha:g}; got {n_resamples}."
        )


def refuse_unreachable(wanted: NDArray[np.float64], most: float) -> None:
    """Errors larger than a family of miscalibrations can make."""
    if wanted.size == 0 or not (wanted >= 0.0).all():
        raise ValueError("`distances` must be some numbers from 0 up.")
    if most == 0.0:
        raise ValueError("predictions like these cannot be wrong in this way: they are all 0 or 1, or all 1/2.")
    if wanted.max() > most:
        raise ValueError(
            f"predictions like these can be wrong by {most:.4g} at most in this way; got {wanted.max():g}."
        )


def check_choice(value: object, name: str, allowed: tuple[str, ...], where: str = "") -> str:
    """One of the allowed words; `where` says what narrows the choice."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    raise ValueError(f"`{name}`{where} must be {'one of ' if len(allowed) > 1 else ''}{words}; got {shown(value)}.")


def refuse_fractions(y: NDArray[Any], convention: str) -> None:
    """The packages whose numbers are reproduced take labels only, so for fractions there is no number to reproduce."""
    if y.dtype != np.uint8:
        raise ValueError(
            f"`y_true` must hold 0/1 outcomes for the convention {convention!r}; found "
            f"{where_found(y, (y != 0) & (y != 1))}. For fractional outcomes use a measure of truthcal, such as atb."
        )


def refuse_nothing_counted(rows: int) -> None:
    """With one bin MAPIE counts the predictions of exactly 0 alone, and divides 0 by 0 if there are none."""
    if rows == 0:
        raise ValueError(
            "`n_bins` must be at least 2 for the convention 'mapie' unless a prediction is exactly 0; got 1, for which "
            "mapie returns nan. Pass n_bins=2 to have all rows in one bin."
        )


def check_rng(rng: Any) -> np.random.Generator:
    """A seed, a generator, or None for a fresh one."""
    if isinstance(rng, bool | np.bool_ | str | float | np.random.RandomState):
        raise TypeError(f"`rng` must be a whole number, a numpy Generator or None; got {shown(rng)}.")
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`rng` must be a whole number, a numpy Generator or None; got {shown(rng)}.") from error


# --- audits -----------------------------------------------------------------------------------------------------------


def check_score(value: Any, name: str, y: NDArray[Any]) -> float:
    """What a user's own measure returned for the outcomes `y`: a finite number."""
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
    """A function f(y_true, y_proba) has no place for weights."""
    if sample_weight is not None:
        raise ValueError(
            "`sample_weight` cannot be given with a function as `measure`, which is called as f(y_true, y_proba); "
            "use the weights inside that function."
        )


def check_table(given: Any, name: str, example: str) -> dict[str, Any]:
    """Names, or a dict from names to what they stand for; at least one of them, and no name twice."""
    if isinstance(given, str):
        given = [given]
    try:
        pairs = list(given.items()) if isinstance(given, Mapping) else [(entry, entry) for entry in given]
    except TypeError:
        raise TypeError(f"`{name}` must be a list of names or a dict, such as {example}; got {shown(given)}.") from None
    if not pairs:
        raise ValueError(f"`{name}` is empty; at least one is needed, for example {example}.")
    for entry, _ in pairs:
        if not isinstance(entry, str):
            raise TypeError(
                f"`{name}` must be a list of names or a dict, such as {example}; got {shown(entry)} as a name."
            )
    return dict(pairs)


def refuse_reserved(name: str, reserved: tuple[str, ...]) -> None:
    """A lie whose name is that of another column of the audit."""
    if name in reserved:
        raise ValueError(f"`strategies` must not name a lie {name!r}: an audit has a column of that name. Rename it.")


# --- curves -----------------------------------------------------------------------------------------------------------


def refuse_few_for_band(n_resamples: int, confidence_level: float) -> None:
    """The largest and smallest of so few draws would be inside the band."""
    least = math.ceil(2.0 / (1.0 - confidence_level) - 1e-9) - 1
    if n_resamples < least:
        raise ValueError(
            f"`n_resamples` must be at least {least} for confidence_level = {confidence_level:g}; got {n_resamples}. "
            "Draw more, or lower the level."
        )
