"""Which column holds the outcomes and which the probabilities, where the user did not say: by names and by content."""

import difflib
import functools
import itertools
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal.cli.column_names import BESIDE, DECIDED, LABEL, OPPOSITES, PAIRS, PROBA, SORTING, TRUTHS, WEIGHT
from truthcal.frames.looking import Column

# Where words of a name meet: before a capital and before a digit.
_EDGE, _WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])"), re.compile(r"[^\W_]+")
_BOTH_WAYS = (*OPPOSITES, *((b, a) for a, b in OPPOSITES))
# Columns and candidates that messages list.
_LISTED, _FEW = 20, 8
# Letters of a name that they show.
_LETTERS = 60
# Names among which one is looked for that is like another: more would take seconds.
_COMPARED = 10_000


@dataclass(frozen=True, slots=True)
class Guess:
    """Which columns hold outcomes and probabilities, which label counts as 1, and what to tell the user about it.

    Attributes
    ----------
    y_true : str
    y_proba : tuple of str
    pos_label : str, int, float, bool or None
        Of the kind that the column of outcomes holds. None for 0/1 and True/False.
    said : tuple of str
        Lines for the user: what was guessed, and how to say otherwise. Empty if nothing was.
    """

    y_true: str
    y_proba: tuple[str, ...]
    pos_label: str | int | float | bool | None
    said: tuple[str, ...]


def guess(
    columns: Sequence[Column],
    *,
    label: str | None = None,
    proba: Sequence[str] = (),
    weight: str | None = None,
    by: Sequence[str] = (),
    key: str | None = None,
    pos_label: str | None = None,
    where: str,
    several: bool = False,
    label_elsewhere: str | None = None,
) -> Guess:
    """Find the columns of outcomes and of probabilities, if there is only one sensible reading.

    Parameters
    ----------
    columns : sequence of Column
        What `look` saw.
    label, proba, weight, by, key
        Columns that the user named. They are checked, and not guessed.
    pos_label : str or None
        The label that counts as 1, as the user typed it.
    where : str
        How messages call the file.
    several : bool, default False
        Whether there may be several columns of probabilities. They are not all taken: only those named, or the one.
    label_elsewhere : str or None
        The column of outcomes in another file that this one is joined to. This file may do without it.

    Returns
    -------
    Guess

    Raises
    ------
    ValueError
        If a named column is not there, or if there is no sensible reading or more than one. The message has the flags.
    """
    if label_elsewhere is not None:
        label = label_elsewhere if any(c.name == label_elsewhere for c in columns) else None
    _check_named(columns, {"--label": [label], "--proba": proba, "--weight": [weight]}, [*by, key], where)
    taken = {label, *proba, weight, *by, key, ""}
    free = [column for column in columns if column.name not in taken and not column.in_path]
    if not proba or (label is None and label_elsewhere is None):
        _refuse_nothing(columns, where)
    labels = [c for c in columns if c.name == label]
    if not labels and label_elsewhere is None:
        labels = _labels(free)
    chosen = labels[0] if len(labels) == 1 else None
    positive = None if chosen is None else _positive(chosen, pos_label, where)
    probas = [c for c in columns if c.name in proba] or _probas([c for c in free if c not in labels], chosen, positive)
    sure = bool(proba) or (len(probas) == 1 and not _says_zero(probas[0].name, chosen, positive))
    asked = chosen is None and label_elsewhere is None
    if asked or not sure:
        _ask(columns, free, where, labels if asked else None, None if sure else (chosen, positive, probas, several))
    guessed = {"--label": label is None and chosen is not None, "--proba": not proba}
    said = _said(chosen, positive, probas[0], guessed | {"--pos-label": positive is not None and pos_label is None})
    weights = [c.name for c in free if _squashed(c.name) in WEIGHT] if weight is None else []
    if weights:
        said.append(f"weights: `{_shown(weights[0])}` was not used; to use it say {_flag('--weight', weights[0])}")
    y_true = chosen.name if chosen is not None else label_elsewhere or ""
    return Guess(y_true, tuple(proba) or (probas[0].name,), positive, tuple(said))


# --- names ------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1 << 17)
def _words(name: str) -> tuple[str, ...]:
    """Words of a name, small and plain: of ``churnProba_1`` they are churn, proba, 1."""
    plain = _EDGE.sub(" ", name).casefold()
    if not plain.isascii():
        plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    return tuple(_WORD.findall(plain))


@functools.lru_cache(maxsize=1 << 17)
def _terms(name: str) -> frozenset[str]:
    """The words of a name, two of them in one, and all of them in one."""
    words = _words(name)
    pairs = (first + second for first, second in itertools.pairwise(words))
    return frozenset([*words, *pairs, "".join(words)])


def _squashed(name: str) -> str:
    return "".join(_words(name))


def _has(name: str, known: frozenset[str]) -> bool:
    """Whether a name is one of these words, or has one of them in it."""
    return not known.isdisjoint(_terms(name))


def _says_probability(name: str) -> bool:
    """Also ``p``, ``p_churn`` and ``P(rain)``, and what German makes one word of."""
    words = _words(name)
    return words[:1] == ("p",) or _has(name, PROBA[0]) or any(word.endswith("wahrscheinlichkeit") for word in words)


def _says_score(name: str) -> bool:
    return _has(name, PROBA[1])


# --- outcomes ---------------------------------------------------------------------------------------------------------


def _labels(columns: Sequence[Column]) -> list[Column]:
    """All sensible readings: of those with the better names, or of all others by their content."""
    possible = [c for c in columns if not _has(c.name, DECIDED | WEIGHT)]
    for known in LABEL:
        named = [c for c in possible if _has(c.name, known)]
        found = [c for c in named if _is_two(c)] or [c for c in named if _may_be_two(c)]
        if found:
            return found
    if any(_has(c.name, LABEL[0]) for c in possible):  # it says so, and cannot be it: no other one should do instead
        return []
    return [c for c in possible if _is_two(c) and not _has(c.name, SORTING | BESIDE)]


def _is_two(column: Column) -> bool:
    """Whether all values are known to stand for 0 and 1."""
    if column.kind == "number":
        return not column.many and set(column.values) in ({0}, {1}, {0, 1}, {-1, 1})
    return column.kind == "bool" or (column.kind == "text" and _pair(column) is not None)


def _may_be_two(column: Column) -> bool:
    """Whether there are two values, of which one may count as 1."""
    return column.kind in ("text", "number") and not column.many and len(column.values) == 2 and not _is_unit(column)


def _pair(column: Column) -> tuple[str, str] | None:
    """What stands for 0 and for 1 in a column of text, as it is written there."""
    seen = {str(value).strip().casefold(): str(value) for value in column.values}
    if column.many or len(seen) != len(column.values):
        return None
    for pair in PAIRS:
        if seen and seen.keys() <= set(pair):
            zero, one = (seen.get(word, _like(word, str(column.values[0]))) for word in pair)
            return zero, one
    return None


def _like(word: str, example: str) -> str:
    """A word in capitals or not, as in the example."""
    return word.upper() if example.isupper() else word.capitalize() if example[:1].isupper() else word


def _positive(column: Column, given: str | None, where: str) -> str | int | float | bool | None:
    """The label that counts as 1, of the kind that the column holds; None where that is clear."""
    if given is not None:
        return _converted(column, given, where)
    values = set(column.values)
    if column.kind == "text":
        pair = _pair(column)
        if pair is None:
            _ask_positive(column, where)
        return pair[1]
    if column.kind == "number" and not column.many and len(values) == 2 and values != {0, 1} and not _is_unit(column):
        if values != {-1, 1}:
            _ask_positive(column, where)
        return 1
    return None


def _converted(column: Column, given: str, where: str) -> str | int | float | bool:
    """What the user typed, as the column has it."""
    flag = f"--pos-label {shlex.quote(given)}"
    label: str | int | float | bool = given
    if column.kind == "bool":
        truth = {"true": True, "t": True, "1": True, "yes": True, "false": False, "f": False, "0": False, "no": False}
        if given.casefold() not in truth:
            raise ValueError(f"{flag}: `{column.name}` in {where} holds True and False; name one of them.")
        label = truth[given.casefold()]
    elif column.kind == "number":
        try:
            label = int(given) if re.fullmatch(r"[+-]?[0-9]+", given) else float(given)
        except ValueError:
            raise ValueError(
                f"{flag}: `{column.name}` in {where} holds numbers ({_values(column)}); name one."
            ) from None
        label = int(label) if isinstance(label, float) and label.is_integer() else label
    if column.kind in ("text", "number") and not column.many and len(column.values) > 1 and label not in column.values:
        raise ValueError(f"{flag}: there is no such label in `{column.name}` of {where}; it holds {_values(column)}.")
    return label


def _ask_positive(column: Column, where: str) -> NoReturn:
    """Two labels, and nothing says which of them counts as 1; or more than two."""
    if column.many or len(column.values) > 2:
        raise ValueError(
            f"`{column.name}` in {where} holds more than two different labels ({_values(column)}); "
            "outcomes must be 0/1, True/False or two labels. For one class against the rest make a column that says "
            "whether the label is that class."
        )
    flags = " or ".join(_flag("--pos-label", str(value)) for value in column.values)
    raise ValueError(
        f"Which label in `{_shown(column.name)}` of {where} counts as 1, the event that the probabilities speak of? "
        f"It holds {_values(column)}. Say {flags}."
    )


# --- probabilities ----------------------------------------------------------------------------------------------------


def _probas(columns: Sequence[Column], label: Column | None, positive: Any) -> list[Column]:
    """All sensible readings: of those with the better names, or of all others by their content."""
    possible = [c for c in columns if not _has(c.name, WEIGHT | BESIDE)]
    for says in (_says_probability, _says_score):
        found = _of_positive([c for c in possible if says(c.name) and _is_unit(c)], label, positive)
        if found:
            return found
    # Percentages and the like are taken by their name, so that reading them says what is wrong.
    unfit = [c for c in possible if _is_outside(c) and (_says_probability(c.name) or _says_score(c.name))]
    unfit += [c for c in possible if c.kind == "text" and _says_probability(c.name)]
    others = [c for c in possible if _is_unit(c) and not _has(c.name, SORTING | LABEL[0])]
    return _of_positive(unfit + others, label, positive)


def _is_unit(column: Column) -> bool:
    """Whether a column holds numbers in [0, 1], and not only 0 and 1."""
    if column.kind != "number" or column.low is None or column.high is None or _is_outside(column):
        return False
    return column.many or not set(column.values) <= {0, 1}


def _is_outside(column: Column) -> bool:
    return column.low is not None and column.high is not None and not 0.0 <= column.low <= column.high <= 1.0


def _of_positive(columns: list[Column], label: Column | None, positive: Any) -> list[Column]:
    """Of a pair such as ``prob_0`` and ``prob_1`` the one that speaks of the label that counts as 1."""
    names = [_squashed(column.name) for column in columns]
    for zero, one in _endings(label, positive):
        for i, name in enumerate(names):
            if name.endswith(one) and len(columns) == 2 and names[1 - i] == name.removesuffix(one) + zero:
                return [columns[i]]
    return columns


def _endings(label: Column | None, positive: Any) -> list[tuple[str, str]]:
    """How names of columns may end that speak of the label that counts as 0, and of the one that counts as 1."""
    if label is None:
        return []
    if positive is None:
        return list(TRUTHS)
    others = [value for value in label.values if value != positive]
    return [(_squashed(str(other)), _squashed(str(positive))) for other in others]


def _says_zero(name: str, label: Column | None, positive: Any) -> bool:
    """Whether a name says that a column speaks of the label that counts as 0: ``prob_0``, ``p_survival`` of `died`."""
    if label is None:
        return False
    words, own = set(_words(name)), set(_words(label.name))
    if _words(name)[-1:] in [(zero,) for zero, _ in _endings(label, positive) if zero not in own]:
        return True
    if isinstance(positive, str):
        own |= set(_words(positive))
    opposed = any(words & a and own & b and not words & b and not own & a for a, b in _BOTH_WAYS)
    alike = any(words & a and own & a for a, _ in _BOTH_WAYS)
    upside_down = not isinstance(positive, str) and positive in (0, -1)
    return alike if upside_down else opposed


# --- what is said -----------------------------------------------------------------------------------------------------


def _said(label: Column | None, positive: Any, proba: Column, guessed: dict[str, bool]) -> list[str]:
    """One line for all that was guessed, or none."""
    parts = []
    if label is not None and (guessed["--label"] or guessed["--pos-label"]):
        alone = ", the only such column" if guessed["--label"] and not _has(label.name, LABEL[0] | LABEL[1]) else ""
        parts.append(f"label: `{_shown(label.name)}` ({_labels_in(label, positive)}{alone})")
    if guessed["--proba"]:
        alone = "" if _says_probability(proba.name) or _says_score(proba.name) else ", the only such column"
        span = f"{proba.low:.3g} to {proba.high:.3g}" if proba.low is not None else "text"
        parts.append(f"probability: `{_shown(proba.name)}` ({span}{alone})")
    flags = [flag for flag, so in guessed.items() if so]
    otherwise = " and ".join([", ".join(flags[:-1]), flags[-1]] if len(flags) > 1 else flags)
    return [f"{', '.join(parts)}; say otherwise with {otherwise}"] if parts else []


def _labels_in(column: Column, positive: Any) -> str:
    if positive is None:
        return "True/False" if column.kind == "bool" else "0/1"
    zeros = [f", {value!r} as 0" for value in column.values if value != positive]
    return f"{positive!r} counts as 1{''.join(zeros)}"


_Probas = tuple[Column | None, Any, list[Column], bool]


def _ask(
    columns: Sequence[Column], free: Sequence[Column], where: str, labels: list[Column] | None, probas: _Probas | None
) -> NoReturn:
    """No reading, or more than one: what could be meant, and the flags that say it."""
    for name in dict.fromkeys(column.name for column in (labels or []) + (probas[2] if probas else [])):
        _refuse_double(columns, name, where)
    told = []
    if labels is not None:
        possible = [c for c in free if not _has(c.name, DECIDED | WEIGHT | SORTING)]
        weak = labels or [c for c in possible if _is_two(c) or _may_be_two(c)]
        told.append(f"Which column of {where} holds the outcomes? {_candidates('--label', weak)}")
    if probas is not None:
        told.append(_which_proba(free, where, *probas))
    raise ValueError(f"{' '.join(told)} All columns: {_names(columns, _LISTED)}.")


def _which_proba(
    free: Sequence[Column], where: str, label: Column | None, positive: Any, found: list[Column], several: bool
) -> str:
    if label is not None and len(found) == 1:  # its name says zero
        one = 1 if positive is None else positive
        name, zero = found[0].name, next((value for value in label.values if value != one), 0)
        return (
            f"Does `{_shown(name)}` of {where} hold the probabilities of the label that counts as 1, or, as its name "
            f"says, of the other one? Say {_flag('--proba', name)}, or {_flag('--pos-label', str(zero))}."
        )
    question = f"Which columns of {where} hold" if several else f"Which column of {where} holds"
    decided = [c.name for c in free if _is_two(c) and _has(c.name, DECIDED)]
    only = f"`{_shown(decided[0])}` holds two values only: decisions. " if decided and not found else ""
    weak = found or [c for c in free if _is_unit(c)]
    return f"{question} the predicted probabilities? {only}{_candidates('--proba', weak, several)}"


def _candidates(flag: str, found: list[Column], several: bool = False) -> str:
    if not found:
        missing = "0 and 1, True and False, or two labels" if flag == "--label" else "numbers between 0 and 1"
        return f"None holds {missing} only. Name it: {flag} COLUMN."
    one = "Name them" if several else "Name one" if len(found) > 1 else "If that is it, say"
    flags = " ".join(_flag(flag, column.name) for column in found[: 2 if several else 1])
    return f"Candidate{'s' * (len(found) > 1)}: {_names(found, _FEW)}. {one}: {flags}."


def _flag(flag: str, name: str) -> str:
    """As it is typed."""
    text = shlex.quote(name) if name.isprintable() else _shown(name)
    return f"{flag}={text}" if name.startswith("-") else f"{flag} {text}"


def _names(columns: Sequence[Column], most: int) -> str:
    return _listed([_shown(column.name) for column in columns[:most]], len(columns) > most) or "none"


def _shown(name: str) -> str:
    """A name in a message. It comes from a file: neither long ones nor signs that steer a terminal are passed on."""
    name = name if len(name) <= _LETTERS else f"{name[:_LETTERS]}..."
    return name if name.isprintable() and name else repr(name)


def _listed(values: Iterable[str], more: bool) -> str:
    return ", ".join([*values, *["..."] * more])


def _values(column: Column) -> str:
    return _listed([repr(value)[:_LETTERS] for value in column.values], column.many)


# --- what cannot be ---------------------------------------------------------------------------------------------------


def _refuse_nothing(columns: Sequence[Column], where: str) -> None:
    """Without rows, or without names, there is nothing to guess by."""
    own = [column for column in columns if not column.in_path]
    if all(column.kind == "nothing" for column in own):
        raise ValueError(f"{where} has no rows; at least one is needed.")
    names = [column.name for column in own]
    numbers = all(map(_is_number, names)) and names != [str(i) for i in range(len(names))]
    if numbers or any(_is_unit(column) and "." in column.name and _is_number(column.name) for column in own):
        raise ValueError(
            f"the first line of {where} holds numbers ({_names(own, 4)}), where it should name the columns. Add a line "
            "with names on top, such as `label,proba`; or name these by --label and --proba."
        )


def _is_number(name: str) -> bool:
    try:
        return float(name) == float(name)
    except ValueError:
        return False


def _check_named(
    columns: Sequence[Column], in_file: dict[str, Sequence[str | None]], anywhere: Sequence[str | None], where: str
) -> None:
    """Named columns must be there, once; and those that must be in the file itself each be one thing only."""
    roles: dict[str, str] = {}
    for flag, names in {**in_file, "--by or --key": anywhere}.items():
        for name in (name for name in names if name is not None):
            _refuse_missing(columns, flag, name, where)
            _refuse_double(columns, name, where)
            if flag in in_file:
                _refuse_in_path(columns, flag, name, where)
                if name in roles:
                    twice = f"twice by {flag}" if roles[name] == flag else f"by both {roles[name]} and {flag}"
                    raise ValueError(f"the column {name!r} is named {twice}; each must be another column.")
                roles[name] = flag


def _refuse_in_path(columns: Sequence[Column], flag: str, name: str, where: str) -> None:
    if any(column.name == name and column.in_path for column in columns):
        raise ValueError(
            f"{flag} names {name!r}, which is in the path of {where} and not in the file itself; only --by may name it."
        )


def _refuse_missing(columns: Sequence[Column], flag: str, name: str, where: str) -> None:
    names = [column.name for column in columns]
    if name in names:
        return
    plain = {_squashed(other): other for other in reversed(names)}
    few = list(plain) if len(plain) <= _COMPARED else []
    close = [_squashed(name)] if _squashed(name) in plain else difflib.get_close_matches(_squashed(name), few, n=1)
    meant = f" Did you mean {_shown(plain[close[0]])}?" if close else ""
    listed = _names(columns, _LISTED)
    raise ValueError(f"{where} has no column {name!r} (named by {flag}).{meant} Its columns: {listed}.")


def _refuse_double(columns: Sequence[Column], name: str, where: str) -> None:
    n = sum(column.name == name for column in columns)
    if n > 1:
        raise ValueError(f"{where} has {n} columns named {name!r}; rename all but one.")
