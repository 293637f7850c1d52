"""Which column holds the outcomes and which the probabilities, where the user did not say: by names and by content."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal.cli.column_names import (
    BESIDE,
    DECIDED,
    LABEL,
    LOGITS,
    NAMED,
    RIGHT,
    SORTING,
    TRUTHS,
    WEIGHT,
    check_named,
    converted,
    cut,
    denied,
    flagged,
    has,
    is_classes,
    is_number,
    is_two,
    is_unfit,
    is_unit,
    listed,
    may_be_two,
    names,
    pair_of,
    refuse_double,
    says_event,
    says_opposite,
    says_probability,
    says_score,
    shown,
    squashed,
    values_in,
    words,
)
from truthcal.io.files.preview import Column

# Columns and candidates that messages list.
_LISTED, _FEW = 20, 8


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
        The column of outcomes in another file that this one is joined to. This file may do without it. Empty if no
        outcomes are needed at all.

    Returns
    -------
    Guess

    Raises
    ------
    ValueError
        If a named column is not there, or if there is no sensible reading or more than one. The message has the flags.
    """
    if label_elsewhere is not None:
        label = label_elsewhere if label_elsewhere and any(c.name == label_elsewhere for c in columns) else None
    named = {"--label": [label], "--proba": proba, "--weight": [weight], "--by": by, "--key": [key]}
    file = _File(columns, shown(where, None), _flags_of(named), label_elsewhere, several)
    check_named(columns, named, file.where)
    if not proba or (label is None and label_elsewhere is None):
        _refuse_nothing(file)
    labels = [c for c in columns if c.name == label] or (_labels(file.free) if label_elsewhere is None else [])
    event = _event(file, labels, pos_label)
    probas = [c for c in columns if c.name in proba] or _free_probas(file, labels, event)
    _ask_if_in_doubt(file, labels, None if proba else probas, event)
    guessed = {
        "--label": label is None and bool(labels),
        "--proba": not proba,
        "--pos-label": bool(labels) and event.positive is not None and pos_label is None,
    }
    y_true = "" if event.column is None else event.column.name
    said = (*_said(event, probas[0], guessed), *_not_used(file, labels))
    return Guess(y_true, tuple(proba) or (probas[0].name,), event.positive if labels else None, said)


def _flags_of(named: dict[str, Sequence[str | None]]) -> dict[str, str]:
    """The flag by which each column is named, of two the first."""
    return {name: flag for flag, given in reversed(named.items()) for name in given if name is not None}


@dataclass(frozen=True, slots=True)
class _File:
    """A file, and what the user said of it: names of columns with their flags, and where outcomes are if not here."""

    columns: Sequence[Column]
    where: str
    taken: dict[str, str]
    label_elsewhere: str | None
    several: bool

    @property
    def free(self) -> list[Column]:
        """Columns that may still be anything."""
        return [c for c in self.columns if c.name not in self.taken and c.name and not c.in_path]

    @property
    def grouping(self) -> list[Column]:
        """Columns that the user named for something else than outcomes and probabilities."""
        return [c for c in self.columns if self.taken.get(c.name) in ("--by", "--key", "--weight")]


@dataclass(frozen=True, slots=True)
class _Event:
    """The column of outcomes, if it is known which it is, or its name alone if it is in another file; and its 1."""

    column: Column | None = None
    positive: str | int | float | bool | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Words that speak of it."""
        name = "" if self.column is None else self.column.name
        return words(name) + (words(self.positive) if isinstance(self.positive, str) else ())

    @property
    def others(self) -> list[Any]:
        """The labels that count as 0."""
        one = 1 if self.positive is None else self.positive
        return [value for value in (self.column.values if self.column is not None else ()) if value != one]


def _event(file: _File, labels: list[Column], pos_label: str | None) -> _Event:
    if len(labels) == 1:
        return _Event(labels[0], _positive(file, labels[0], pos_label))
    if file.label_elsewhere:
        positive = None if pos_label == "1" else 0 if pos_label in ("0", "-1") else pos_label
        return _Event(Column(file.label_elsewhere, "nothing"), positive)
    return _Event()


# --- outcomes ---------------------------------------------------------------------------------------------------------


def _labels(columns: Sequence[Column]) -> list[Column]:
    """All sensible readings: of those with the better names, or of all others by their content."""
    possible = [c for c in columns if not has(c.name, DECIDED | WEIGHT)]
    for known in LABEL:
        named = [c for c in possible if has(c.name, known)]
        found = [c for c in named if is_two(c)] or [c for c in named if may_be_two(c)]
        if found:
            return found
    # A name says so, and it cannot be it: no other one should do instead.
    if any(has(c.name, LABEL[0]) or (has(c.name, LABEL[1]) and is_classes(c)) for c in possible):
        return []
    return [c for c in possible if is_two(c) and not has(c.name, SORTING | BESIDE)]


def _classes(columns: Sequence[Column]) -> Column | None:
    """The column of classes, if one looks so: by its name, by three words, or by words that other names speak of."""
    possible = [c for c in columns if is_classes(c) and not has(c.name, DECIDED | WEIGHT | SORTING | BESIDE)]
    named = [c for known in LABEL for c in possible if has(c.name, known)]
    texts = [c for c in possible if c.kind == "text"]
    spoken = frozenset(word for c in columns if is_unit(c) for word in words(c.name))
    told = [c for c in texts if any(has(str(value), spoken) for value in c.values)]
    return next(iter(named + told + [c for c in texts if not c.many]), None)


def _positive(file: _File, column: Column, given: str | None) -> str | int | float | bool | None:
    """The label that counts as 1, of the kind that the column holds; None where that is clear."""
    if given is not None:
        return converted(column, given, file.where)
    pair = pair_of(column) if column.kind == "text" else None
    if pair is not None:
        return pair[1]
    if column.kind == "text" or is_classes(column) or (may_be_two(column) and not is_two(column)):
        _ask_positive(file, column)
    return 1 if -1 in column.values and is_two(column) else None


def _ask_positive(file: _File, column: Column) -> NoReturn:
    """Two labels, and nothing says which of them counts as 1; or more than two."""
    if column.many or len(column.values) > 2:
        raise ValueError(
            f"`{shown(column.name)}` in {file.where} holds more than two different labels ({values_in(column)}); "
            f"outcomes must be 0/1, True/False or two labels. {_cure_of_classes(file, column)}"
        )
    flags = " or ".join(flagged("--pos-label", str(value)) for value in column.values)
    raise ValueError(
        f"Which label in `{shown(column.name)}` of {file.where} counts as 1, the event that the probabilities speak "
        f"of? It holds {values_in(column)}. Say {flags}."
    )


def _cure_of_classes(file: _File, column: Column) -> str:
    """One class against the rest; or, if there are decisions and how sure they are, whether they were right."""
    name = shown(column.name)
    such = "".join(f", such as `is_it = {name} == {cut(value)}`" for value in column.values[:1])
    cure = (
        f"For one class against the rest make a 0/1 column{such}, name it by --label, and that class's column of "
        "probabilities by --proba."
    )
    probas = [c for c in file.columns if file.taken.get(c.name) == "--proba"]
    probas = probas or _probas([c for c in file.free if c is not column], _Event())
    decided = _decisions(file, column, probas)
    if decided is None or len(probas) != 1 or not is_unit(probas[0]):
        return cure
    return f"{cure} {_cure_of_decisions(probas[0], decided, column)}"


# --- probabilities ----------------------------------------------------------------------------------------------------


def _free_probas(file: _File, labels: list[Column], event: _Event) -> list[Column]:
    """All sensible readings. None if nothing but content speaks for them, while a better one is in other use."""
    found = _probas([c for c in file.free if c not in labels], event)
    named = any(says_probability(c.name) or says_score(c.name) for c in found)
    better = [c for c in file.grouping if says_probability(c.name) and is_unit(c)]
    return [] if better and not named else found


def _probas(columns: Sequence[Column], event: _Event) -> list[Column]:
    """All sensible readings: of those with the better names, or of all others by their content."""
    possible = [c for c in columns if not has(c.name, WEIGHT | BESIDE)]
    units = [c for c in possible if is_unit(c) and not has(c.name, LOGITS)]
    for says in (says_probability, says_score):
        found = _of_positive([c for c in units if says(c.name)], event)
        if found:
            return found
    # Percentages and the like are taken, so that reading them says what is wrong.
    unfit = [c for c in possible if is_unfit(c)]
    others = [c for c in units if not has(c.name, SORTING | LABEL[0])]
    return _of_positive(unfit + others, event)


def _of_positive(columns: list[Column], event: _Event) -> list[Column]:
    """Of a pair such as ``prob_0`` and ``prob_1`` the one that speaks of the label that counts as 1."""
    called = [squashed(column.name) for column in columns]
    for zero, one in _endings(event):
        for i, name in enumerate(called):
            if name.endswith(one) and len(columns) == 2 and called[1 - i] == name.removesuffix(one) + zero:
                return [columns[i]]
    return columns


def _endings(event: _Event) -> list[tuple[str, str]]:
    """How names of columns may end that speak of the label that counts as 0, and of the one that counts as 1."""
    if event.column is None:
        return []
    if event.positive is None:
        return list(TRUTHS)
    return [(squashed(str(other)), squashed(str(event.positive))) for other in event.others]


# --- doubts about the only candidate ----------------------------------------------------------------------------------


def _says_zero(name: str, event: _Event) -> bool:
    """Whether a name says that a column speaks of the label that counts as 0: ``prob_0``, ``p_survival`` of `died`."""
    if event.column is None:
        return False
    own, last = words(event.column.name), "".join(words(name)[-1:])
    told = set(words(name)) - denied(words(name))
    if last in told and last in [zero for zero, _ in _endings(event) if zero not in own]:
        return True
    if not isinstance(event.positive, str):
        upside_down = event.positive in (0, -1)
    else:
        upside_down = event.positive.strip().casefold() in [zero for zero, _ in TRUTHS]
        told.difference_update(event.words)
        if any(told.issuperset(words(other)) for other in map(str, event.others) if words(other)):
            return True
    if upside_down:
        return last != squashed(str(event.positive)) and says_event(name, own)
    return says_opposite(name, event.words)


def _decisions(file: _File, label: Column | None, probas: Sequence[Column]) -> Column | None:
    """A column of what a model decided, by its name and its few values."""
    for column in file.columns:
        if has(column.name, DECIDED) and column is not label and column not in probas and not column.in_path:
            few = column.kind in ("text", "number", "bool") and (not column.many or is_classes(column))
            if few and not is_unit(column) and not says_probability(column.name):
                return column
    return None


def _says_right(event: _Event) -> bool:
    """Whether the outcomes say that a decision was right, of which a confidence in it speaks."""
    if event.column is None or str(event.positive).strip().casefold() in RIGHT:
        return True
    return has(event.column.name, RIGHT) and not has(event.column.name, NAMED)


def _cure_of_decisions(proba: Column, decided: Column, label: Column) -> str:
    return (
        f"If `{shown(proba.name)}` is the confidence in the decision, make a column that says whether the decision was "
        f"right (`correct = {shown(decided.name)} == {shown(label.name)}`) and name it: --label correct."
    )


def _doubt(file: _File, event: _Event, proba: Column) -> str:
    """What may be wrong with the only candidate, and the flags that say it. Empty if nothing is."""
    name = shown(proba.name)
    if event.column is None:
        return ""
    if _says_zero(proba.name, event):
        zero = next(iter(event.others), 0)
        there = event.column in file.columns
        cure = flagged("--pos-label", str(zero)) if there else "make a column of 1 minus it"
        return (
            f"Does `{name}` of {file.where} hold the probabilities of the label that counts as 1, or, as its name "
            f"says, of the other one? Say {flagged('--proba', proba.name)}, or {cure}."
        )
    decided = _decisions(file, event.column, [proba])
    sure = proba.low is not None and proba.low >= 0.5 and is_unit(proba)
    if decided is None or decided.many or not sure or _says_right(event):
        return ""
    one, cure = 1 if event.positive is None else event.positive, _cure_of_decisions(proba, decided, event.column)
    return (
        f"Does `{name}` of {file.where} speak of the label that counts as 1, or of a decision? `{name}` is never below "
        f"0.5, and `{shown(decided.name)}` holds decisions. {cure} If it is the probability that the label is "
        f"{cut(one)}, say {flagged('--proba', proba.name)}."
    )


# --- what is said -----------------------------------------------------------------------------------------------------


def _said(event: _Event, proba: Column, guessed: dict[str, bool]) -> list[str]:
    """One line for all that was guessed, or none."""
    parts, label = [], event.column
    if label is not None and (guessed["--label"] or guessed["--pos-label"]):
        alone = ", the only such column" if guessed["--label"] and not has(label.name, LABEL[0] | LABEL[1]) else ""
        parts.append(f"label: `{shown(label.name)}` ({_labels_in(label, event.positive)}{alone})")
    if guessed["--proba"]:
        alone = "" if says_probability(proba.name) or says_score(proba.name) else ", the only such column"
        span = f"{proba.low:.3g} to {proba.high:.3g}" if proba.low is not None else "text"
        parts.append(f"probability: `{shown(proba.name)}` ({span}{alone})")
    flags = [flag for flag, so in guessed.items() if so]
    otherwise = " and ".join([", ".join(flags[:-1]), flags[-1]] if len(flags) > 1 else flags)
    return [f"{', '.join(parts)}; say otherwise with {otherwise}"] if parts else []


def _not_used(file: _File, labels: list[Column]) -> list[str]:
    """A line for each column that one might think was used."""
    if file.label_elsewhere == "":
        return []
    said = []
    others = _labels(file.free) if file.label_elsewhere and not labels else []
    others = [c for c in others if len(others) == 1 or has(c.name, LABEL[0] | LABEL[1])]
    if others:
        found = listed([f"`{shown(c.name)}`" for c in others[:_FEW]], len(others) > _FEW)
        were = "were" if len(others) > 1 else "was"
        said.append(f"outcomes are taken from the other file; {found} here {were} not looked at")
    weights = [c.name for c in file.free if squashed(c.name) in WEIGHT]
    if weights and "--weight" not in file.taken.values():
        said.append(f"weights: `{shown(weights[0])}` was not used; to use it say {flagged('--weight', weights[0])}")
    return said


def _labels_in(column: Column, positive: Any) -> str:
    if positive is None:
        return "True/False" if column.kind == "bool" else "0/1"
    zeros = [f", {value!r} as 0" for value in column.values if value != positive]
    return f"{positive!r} counts as 1{''.join(zeros)}"


def _ask_if_in_doubt(file: _File, labels: list[Column], probas: list[Column] | None, event: _Event) -> None:
    """No reading, or more than one: what could be meant, and the flags that say it."""
    told = []
    if len(labels) != 1 and file.label_elsewhere is None:
        told.append(_which_label(file, labels))
    if probas is not None:
        told.append(_doubt(file, event, probas[0]) if len(probas) == 1 else _which_proba(file, probas))
    if not any(told):
        return
    times = Counter(column.name for column in file.columns)
    for name in (column.name for column in labels + (probas or []) if times[column.name] > 1):
        refuse_double(file.columns, name, file.where)
    raise ValueError(f"{' '.join(filter(None, told))} All columns: {names(file.columns, _LISTED)}.")


def _which_label(file: _File, found: list[Column]) -> str:
    possible = [c for c in file.free if not has(c.name, DECIDED | WEIGHT | SORTING)]
    weak = found or [c for c in possible if is_two(c) or may_be_two(c)]
    taken = "" if found else _taken(file, _labels(file.grouping))
    classes = None if found else _classes(file.free)
    cure = ""
    if classes is not None:
        more = f"If it is `{shown(classes.name)}`: that holds more than two classes ({values_in(classes)})."
        cure = f" {more} {_cure_of_classes(file, classes)}"
    return f"Which column of {file.where} holds the outcomes? {taken}{_candidates('--label', weak)}{cure}"


def _which_proba(file: _File, found: list[Column]) -> str:
    question = f"Which columns of {file.where} hold" if file.several else f"Which column of {file.where} holds"
    decided = [c.name for c in file.free if is_two(c) and has(c.name, DECIDED)]
    only = f"`{shown(decided[0])}` holds two values only: decisions. " if decided and not found else ""
    only += "" if found else _taken(file, _probas(file.grouping, _Event()))
    weak = found or [c for c in file.free if is_unit(c)]
    return f"{question} the predicted probabilities? {only}{_candidates('--proba', weak, file.several)}"


def _taken(file: _File, columns: list[Column]) -> str:
    """Columns that might be it, if the user had not named them for something else."""
    return "".join(f"`{shown(c.name)}` is taken by {file.taken[c.name]}. " for c in columns)


def _candidates(flag: str, found: list[Column], several: bool = False) -> str:
    if not found:
        missing = "0 and 1, True and False, or two labels" if flag == "--label" else "numbers between 0 and 1"
        return f"None holds {missing} only. Name it: {flag} COLUMN."
    one = "If that is it, say" if len(found) == 1 else "Name one or more" if several else "Name one"
    flags = " ".join(flagged(flag, column.name) for column in found[: 2 if several else 1])
    return f"Candidate{'s' * (len(found) > 1)}: {names(found, _FEW)}. {one}: {flags}."


# --- what cannot be ---------------------------------------------------------------------------------------------------


def _refuse_nothing(file: _File) -> None:
    """Without rows, or without names, there is nothing to guess by."""
    own = [column for column in file.columns if not column.in_path]
    if all(column.kind == "nothing" for column in own):
        raise ValueError(f"{file.where} has no rows; at least one is needed.")
    called = [column.name for column in own]
    numbers = all(map(is_number, called)) and called != [str(i) for i in range(len(called))]
    if numbers or any(is_unit(column) and "." in column.name and is_number(column.name) for column in own):
        such, flags = ("label,proba", "--label and --proba") if file.label_elsewhere is None else ("proba", "--proba")
        raise ValueError(
            f"the first line of {file.where} holds numbers ({names(own, 4)}), where it should name the columns. Add a "
            f"line with names on top, such as `{such}`; or name these by {flags}."
        )
