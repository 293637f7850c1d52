"""Column guessing: find outcomes and probabilities by names and first rows, or ask a question that shows the flags."""

import difflib
import functools
import itertools
import math
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal.io.files.preview import Column

Label = str | int | float | bool | None

# Boundaries between the words of a name: before a capital and before a digit.
_EDGE, _WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])"), re.compile(r"[^\W_]+")
_PERCENT = re.compile(r"[0-9.,]+ ?%")
# Letters of a name, columns and candidates that messages show; names that are compared for a suggestion.
_LETTERS, _LISTED, _FEW, _COMPARED = 60, 20, 8, 10_000


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names are compared without case, accents and punctuation, by words and by words joined.
_PROBA = _names("p proba probas prob probs probability probabilities likelihood phat yproba yprob pd")
_SCORE = _names(
    "score scores confidence conf forecast forecasts prediction predictions predicted pred preds yhat ypred yscore "
    "risk chance pop propensity"
)
_LABEL = _names("y ytrue ytest label labels target targets outcome outcomes actual truth gold observed correct")
_EVENT = _names(
    "class event result response status success hit resolution clicked converted churn churned default defaulted fraud "
    "spam died survived won win rain rained failure"
)
_DECISION = _names("pred preds prediction predictions predicted ypred yhat estimate forecast decision")
_CORRECT, _CLASS_NAME = _names("correct iscorrect right"), _names("label labels class answer")
_LOGIT, _WEIGHT = _names("logit logits logodds"), _names("w weight weights wt wgt sampleweight")
_STATISTIC = _names(
    "lower upper lo hi low high ci min max std sd se err error variance threshold pvalue rank brier logloss entropy"
)
_GROUP = _names("id key index fold split train test seed date time year month day week hour age sex gender")
_NEGATION = _names("no not non un without never")
# Words that do not say which event a column is about.
_NEUTRAL = (
    _PROBA | _SCORE | _LABEL | _names("is has was will flag model of the class event result resolution hat new old")
)
# Labels that count as 0 and 1.
_TRUTHS = (
    ("0", "1"), ("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"), ("negative", "positive"), ("neg", "pos"),
    ("nein", "ja"), ("non", "oui"),
)  # fmt: skip
_PAIRS = (*_TRUTHS, ("loss", "win"), ("lost", "won"), ("wrong", "right"), ("incorrect", "correct"))


@dataclass(frozen=True, slots=True)
class Guess:
    """The columns of outcomes and probabilities, the label that counts as 1, and messages about what was guessed.

    `pos_label` has the type of the outcome column's values; None for 0/1 and True/False.
    """

    y_true: str
    y_proba: tuple[str, ...]
    pos_label: Label
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _File:
    """The columns of a file, the flags that name some of them, and where outcomes are if not here."""

    columns: Sequence[Column]
    where: str
    flags: dict[str, str]
    label_elsewhere: str | None
    several: bool

    @property
    def free(self) -> list[Column]:
        return [c for c in self.columns if c.name not in self.flags and c.name and not c.in_path]

    @property
    def other_use(self) -> list[Column]:
        return [c for c in self.columns if self.flags.get(c.name) in ("--by", "--key", "--weight")]


@dataclass(frozen=True, slots=True)
class _Event:
    """The outcome column, if it is known, and the label that counts as 1."""

    column: Column | None = None
    positive: Label = None

    @property
    def others(self) -> list[Any]:
        """The labels that count as 0."""
        one = 1 if self.positive is None else self.positive
        return [value for value in (() if self.column is None else self.column.values) if value != one]


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
    """Find the columns that the user did not name, if there is only one possibility; otherwise raise a question.

    `label_elsewhere` is the outcome column of another file that this one is joined to; empty if no outcomes are needed.
    """
    if label_elsewhere is not None:
        label = label_elsewhere if label_elsewhere and any(c.name == label_elsewhere for c in columns) else None
    named = {"--label": [label], "--proba": proba, "--weight": [weight], "--by": by, "--key": [key]}
    flags = {name: flag for flag, names in reversed(named.items()) for name in names if name is not None}
    file = _File(columns, _shown(where, None), flags, label_elsewhere, several)
    _check_named(file, named)
    if not proba or (label is None and label_elsewhere is None):
        _refuse_no_rows_or_header(file)
    labels = [c for c in columns if c.name == label]
    probas = [c for c in columns if c.name in proba]
    pairs = [] if (labels and probas) or label_elsewhere is not None else _outcome_pairs(file, labels, probas)
    if len(pairs) > 1:
        _ask_pair(file, pairs)
    if pairs:
        probas, labels = [pairs[0][0]], [pairs[0][1]]
    elif not labels and label_elsewhere is None:
        labels = _label_candidates(file.free)
    event = _event(file, labels, pos_label)
    probas = probas or _proba_candidates(file, labels, event)
    _ask_if_unclear(file, labels, None if proba else probas, event)
    guessed = {
        "--label": label is None and bool(labels),
        "--proba": not proba,
        "--pos-label": bool(labels) and event.positive is not None and pos_label is None,
    }
    y_true = "" if event.column is None else event.column.name
    messages = (*_guess_message(event, probas[0], guessed), *_unused_messages(file, labels))
    return Guess(y_true, tuple(proba) or (probas[0].name,), event.positive if labels else None, messages)


def _outcome_pairs(file: _File, labels: list[Column], probas: list[Column]) -> list[tuple[Column, Column]]:
    """Find pairs of columns named `X` and `X_outcome`, of probabilities and outcomes."""
    if len(probas) > 1:
        return []
    outcomes = {
        _words(c.name)[:-1]: c
        for c in labels or file.free
        if _is_binary(c) and _LABEL.intersection(_words(c.name)[-1:])
    }
    columns = probas or [c for c in file.free if _is_unit(c)]
    return [(c, outcomes[_words(c.name)]) for c in columns if _words(c.name) in outcomes]


def _event(file: _File, labels: list[Column], pos_label: str | None) -> _Event:
    if len(labels) == 1:
        return _Event(labels[0], _positive_label(file, labels[0], pos_label))
    if file.label_elsewhere:
        positive = None if pos_label == "1" else 0 if pos_label in ("0", "-1") else pos_label
        return _Event(Column(file.label_elsewhere, "nothing"), positive)
    return _Event()


def _label_candidates(columns: Sequence[Column]) -> list[Column]:
    """Return columns with two values: those with a known name, or else all but decisions, groups and weights."""
    possible = [c for c in columns if not _has(c.name, _DECISION | _WEIGHT)]
    for known in (_LABEL, _EVENT):
        named = [c for c in possible if _has(c.name, known)]
        candidates = [c for c in named if _is_binary(c)] or [c for c in named if _may_be_binary(c)]
        if candidates:
            return candidates
    # If a name says that it holds outcomes and the content does not fit, no other column may replace it.
    if any(_has(c.name, _LABEL) or (_has(c.name, _EVENT) and _is_classes(c)) for c in possible):
        return []
    return [c for c in possible if _is_binary(c) and not _has(c.name, _GROUP | _STATISTIC)]


def _positive_label(file: _File, column: Column, typed: str | None) -> Label:
    """Return the label that counts as 1, of the type of the column; None if it is 1 or True."""
    if typed is not None:
        return _converted_label(column, typed, file.where)
    pair = _label_pair(column) if column.kind == "text" else None
    if pair is not None:
        return pair[1]
    if column.kind == "text" or _is_classes(column) or (_may_be_binary(column) and not _is_binary(column)):
        _ask_positive_label(file, column)
    return 1 if -1 in column.values and _is_binary(column) else None


def _proba_candidates(file: _File, labels: list[Column], event: _Event) -> list[Column]:
    """Return columns in [0, 1] with the better known names, or else all; percentages and logits too, to report them."""
    possible = [c for c in file.free if c not in labels and not _has(c.name, _WEIGHT | _STATISTIC)]
    units = [c for c in possible if _is_unit(c) and not _has(c.name, _LOGIT)]
    for named in ([c for c in units if _names_probability(c.name)], [c for c in units if _has(c.name, _SCORE)]):
        if named:
            return _of_positive_class(named, event)
    if any(_names_probability(c.name) and _is_unit(c) for c in file.other_use):
        return []
    unfit = [c for c in possible if _is_unfit(c)]
    return _of_positive_class(unfit + [c for c in units if not _has(c.name, _GROUP | _LABEL)], event)


def _of_positive_class(columns: list[Column], event: _Event) -> list[Column]:
    """Of two columns such as ``prob_0`` and ``prob_1`` return the one of the label that counts as 1."""
    if len(columns) != 2 or event.column is None:
        return columns
    names = ["".join(_words(c.name)) for c in columns]
    for zero, one in _label_words(event):
        for name, other, column in ((names[0], names[1], columns[0]), (names[1], names[0], columns[1])):
            if name.endswith(one) and other == name.removesuffix(one) + zero:
                return [column]
    return columns


def _label_words(event: _Event) -> list[tuple[str, str]]:
    """Return pairs of words that stand for the labels 0 and 1 in names of columns."""
    if event.positive is None:
        return list(_TRUTHS)
    return [("".join(_words(str(other))), "".join(_words(str(event.positive)))) for other in event.others]


# --- questions --------------------------------------------------------------------------------------------------------


def _ask_if_unclear(file: _File, labels: list[Column], probas: list[Column] | None, event: _Event) -> None:
    """Raise if there is no candidate, more than one, or a doubt about the only one."""
    questions = []
    if len(labels) != 1 and file.label_elsewhere is None:
        questions.append(_which_label(file, labels))
    if probas is not None:
        questions.append(_doubt(file, event, probas[0]) if len(probas) == 1 else _which_proba(file, probas))
    if any(questions):
        counts = Counter(column.name for column in file.columns)  # one pass: a file may have 100,000 columns
        for name in (column.name for column in labels + (probas or []) if counts[column.name] > 1):
            _refuse_duplicate(file, name)
        raise ValueError(f"{' '.join(filter(None, questions))} All columns: {_list_names(file.columns, _LISTED)}.")


def _ask_pair(file: _File, pairs: list[tuple[Column, Column]]) -> NoReturn:
    listed = "; ".join(f"{_shown(p.name)} and {_shown(y.name)}" for p, y in pairs[:_FEW])
    flags = f"{_flagged('--proba', pairs[0][0].name)} {_flagged('--label', pairs[0][1].name)}"
    raise ValueError(
        f"Which probabilities of {file.where} should be assessed? There are {len(pairs)} pairs of probabilities and "
        f"outcomes: {listed}. Name one: {flags}."
    )


def _which_label(file: _File, candidates: list[Column]) -> str:
    possible = [c for c in file.free if not _has(c.name, _DECISION | _WEIGHT | _GROUP)]
    listed = _candidates("--label", candidates or [c for c in possible if _is_binary(c) or _may_be_binary(c)])
    if candidates:
        return f"Which column of {file.where} holds the outcomes? {listed}"
    used = _other_use(file, _label_candidates(file.other_use))
    classes = next((c for known in (_LABEL, _EVENT) for c in possible if _is_classes(c) and _has(c.name, known)), None)
    classes = classes or next((c for c in possible if _is_classes(c) and c.kind == "text"), None)
    cure = ""
    if classes is not None:
        cure = f" If it is `{_shown(classes.name)}`: that holds more than two classes ({_list_values(classes)}). "
        cure += _cure_of_classes(file, classes)
    return f"Which column of {file.where} holds the outcomes? {used}{listed}{cure}"


def _which_proba(file: _File, candidates: list[Column]) -> str:
    question = f"Which column{'s' * file.several} of {file.where} hold{'s' * (not file.several)}"
    note = ""
    if not candidates:
        decisions = [c for c in file.free if _is_binary(c) and _has(c.name, _DECISION)]
        note = f"`{_shown(decisions[0].name)}` holds two values only: decisions. " if decisions else ""
        note += _other_use(file, [c for c in file.other_use if _is_unit(c) and _names_probability(c.name)])
    listed = _candidates("--proba", candidates or [c for c in file.free if _is_unit(c)], file.several)
    return f"{question} the predicted probabilities? {note}{listed}"


def _candidates(flag: str, columns: list[Column], several: bool = False) -> str:
    if not columns:
        content = "0 and 1, True and False, or two labels" if flag == "--label" else "numbers between 0 and 1"
        return f"None holds {content} only. Name it: {flag} COLUMN."
    second = [c for c in columns[1:] if several and not _add_up_to_one(columns[0], c)][:1]
    lead = "If that is it, use" if len(columns) == 1 else "Name one or more" if second else "Name one"
    flags = " ".join(_flagged(flag, column.name) for column in [columns[0], *second])
    return f"Candidate{'s' * (len(columns) > 1)}: {_list_names(columns, _FEW)}. {lead}: {flags}."


def _other_use(file: _File, columns: list[Column]) -> str:
    return "".join(f"`{_shown(c.name)}` is used by {file.flags[c.name]}. " for c in columns)


def _ask_positive_label(file: _File, column: Column) -> NoReturn:
    name = _shown(column.name)
    if column.many or len(column.values) > 2:
        raise ValueError(
            f"`{name}` in {file.where} holds more than two different labels ({_list_values(column)}); outcomes must be "
            f"0/1, True/False or two labels. {_cure_of_classes(file, column)}"
        )
    flags = " or ".join(_flagged("--pos-label", str(value)) for value in column.values)
    raise ValueError(
        f"Which label in `{name}` of {file.where} counts as 1, the event that the probabilities are about? It holds "
        f"{_list_values(column)}. Use {flags}."
    )


def _cure_of_classes(file: _File, column: Column) -> str:
    """Suggest one class against the rest; or, if there are decisions, whether they were right."""
    example = "".join(
        f", such as `is_it = {_shown(column.name)} == {repr(value)[:_LETTERS]}`" for value in column.values[:1]
    )
    cure = (
        f"For one class against the rest make a 0/1 column{example}, name it by --label, and that class's column of "
        "probabilities by --proba."
    )
    named = [c for c in file.columns if file.flags.get(c.name) == "--proba"]
    probas = named or _proba_candidates(file, [column], _Event())
    decision = _decision_column(file, [column, *probas])
    if decision is None or len(probas) != 1 or not _is_unit(probas[0]):
        return cure
    return f"{cure} {_cure_of_decisions(probas[0], decision, column)}"


def _cure_of_decisions(proba: Column, decision: Column, label: Column) -> str:
    return (
        f"If `{_shown(proba.name)}` is the confidence in the decision, make a column that says whether the decision "
        f"was right (`correct = {_shown(decision.name)} == {_shown(label.name)}`) and name it: --label correct."
    )


def _doubt(file: _File, event: _Event, proba: Column) -> str:
    """Return a question if the only candidate may be about another event; otherwise an empty text."""
    if event.column is None:
        return ""
    name, flag = _shown(proba.name), _flagged("--proba", proba.name)
    if _may_be_other_event(proba.name, event):
        other = _flagged("--pos-label", str(next(iter(event.others), 0)))
        cure = other if event.column in file.columns else "make a column of 1 minus it"
        return (
            f"Does `{name}` of {file.where} hold the probabilities of the label that counts as 1, or of another event? "
            f"Use {flag}, or {cure}."
        )
    decision = _decision_column(file, [event.column, proba])
    certain = proba.low is not None and proba.low >= 0.5 and _is_unit(proba)
    if decision is None or decision.many or not certain or _is_correctness(event):
        return ""
    one = 1 if event.positive is None else event.positive
    return (
        f"Is `{name}` of {file.where} about the label that counts as 1, or about a decision? `{name}` is never below "
        f"0.5, and `{_shown(decision.name)}` holds decisions. {_cure_of_decisions(proba, decision, event.column)} If "
        f"it is the probability that the label is {repr(one)[:_LETTERS]}, use {flag}."
    )


def _decision_column(file: _File, others: list[Column]) -> Column | None:
    """Find a column of decisions, by its name and its few values."""
    for c in file.columns:
        few = c.kind in ("text", "number", "bool") and (not c.many or _is_classes(c)) and not _is_unit(c)
        if few and _has(c.name, _DECISION) and not _names_probability(c.name) and c not in others and not c.in_path:
            return c
    return None


def _is_correctness(event: _Event) -> bool:
    """Tell whether the outcomes say that a decision was right, which a confidence is about."""
    if event.column is None or str(event.positive).strip().casefold() in _CORRECT:
        return True
    return _has(event.column.name, _CORRECT) and not _has(event.column.name, _CLASS_NAME)


def _may_be_other_event(name: str, event: _Event) -> bool:
    """Tell whether a name has words that do not fit the label that counts as 1: ``prob_0``, ``p_dry`` for `rain`."""
    label = "" if event.column is None else event.column.name
    words, own = _words(name), _words(label)
    positive = str(event.positive).strip().casefold()
    zeros = [zero for zero, _ in _label_words(event) if zero not in own]
    ones = [one for _, one in _label_words(event)]
    inverted = event.positive in (0, -1) or positive in [zero for zero, _ in _TRUTHS]
    negated, own_negated = not _NEGATION.difference(ones).isdisjoint(words), not _NEGATION.isdisjoint(own)
    if words[-1:] and words[-1] in ones:
        return negated > own_negated  # ``p_not_dog`` for dog
    if words[-1:] and words[-1] in zeros:
        return "not" not in words
    about = {word for word in words if len(word) > 1 and not word.isdecimal()} - _NEUTRAL - _NEGATION - set(ones)
    about = {word for word in about if not word.startswith("prob")}
    if inverted:
        return bool(about) and _NEGATION.isdisjoint(words)
    if isinstance(event.positive, str) and any(zero and zero in words for zero in zeros):
        return True
    if "".join(own) in _terms(name) and own_negated >= negated:  # ``p_noshow`` for `no_show`
        return False
    if negated != own_negated:
        return True
    known = set(own) - _NEUTRAL
    return bool(known) and not all(any(_related(word, other) for other in known) for word in about)


def _related(a: str, b: str) -> bool:
    """Tell whether two words are forms of one, such as rain and rained."""
    return a == b or (min(len(a), len(b)) > 2 and (a.startswith(b) or b.startswith(a)))


# --- messages ---------------------------------------------------------------------------------------------------------


def _guess_message(event: _Event, proba: Column, guessed: dict[str, bool]) -> list[str]:
    """Return one line about all that was guessed."""
    parts, label = [], event.column
    if label is not None and (guessed["--label"] or guessed["--pos-label"]):
        only = ", the only such column" if guessed["--label"] and not _has(label.name, _LABEL | _EVENT) else ""
        content = "True/False" if label.kind == "bool" else "0/1"
        if event.positive is not None:
            content = f"{event.positive!r} counts as 1" + "".join(f", {value!r} as 0" for value in event.others)
        parts.append(f"label: `{_shown(label.name)}` ({content}{only})")
    if guessed["--proba"]:
        only = "" if _names_probability(proba.name) or _has(proba.name, _SCORE) else ", the only such column"
        content = f"{proba.low:.3g} to {proba.high:.3g}" if proba.low is not None else "text"
        parts.append(f"probability: `{_shown(proba.name)}` ({content}{only})")
    flags = [flag for flag, is_guessed in guessed.items() if is_guessed]
    listed = " and ".join([", ".join(flags[:-1]), flags[-1]] if len(flags) > 1 else flags)
    return [f"{', '.join(parts)}; to change this use {listed}"] if parts else []


def _unused_messages(file: _File, labels: list[Column]) -> list[str]:
    """Return a line for outcomes and weights that the user might expect to be used."""
    messages = []
    if file.label_elsewhere and not labels:
        others = _label_candidates(file.free)
        others = [c for c in others if len(others) == 1 or _has(c.name, _LABEL | _EVENT)]
        if others:
            listed = ", ".join(f"`{_shown(c.name)}`" for c in others[:_FEW])
            messages.append(f"outcomes are taken from the other file, not from {listed} in this file")
    weights = [c.name for c in file.free if "".join(_words(c.name)) in _WEIGHT]
    if weights and "--weight" not in file.flags.values() and file.label_elsewhere != "":
        messages.append(
            f"weights: `{_shown(weights[0])}` is not used; to use it, add {_flagged('--weight', weights[0])}"
        )
    return messages


def _shown(name: str, letters: int | None = _LETTERS) -> str:
    """Format a name from a file: shortened, without control characters."""
    name = name if letters is None or len(name) <= letters else f"{name[:letters]}..."
    return name if name.isprintable() and name else repr(name)


def _flagged(flag: str, value: str) -> str:
    """Format a flag and its value as typed in a shell."""
    text = shlex.quote(value) if value.isprintable() else _shown(value)
    return f"{flag}={text}" if value.startswith("-") else f"{flag} {text}"


def _list_names(columns: Sequence[Column], most: int) -> str:
    return ", ".join([*(_shown(c.name) for c in columns[:most]), *["..."] * (len(columns) > most)]) or "none"


def _list_values(column: Column) -> str:
    return ", ".join([*(repr(value)[:_LETTERS] for value in column.values), *["..."] * column.many])


# --- names and contents of columns ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1 << 17)
def _words(name: str) -> tuple[str, ...]:
    """Split a name into plain lower-case words: churn, proba, 1 for ``churnProba_1``."""
    plain = unicodedata.normalize("NFKD", _EDGE.sub(" ", name).casefold())
    return tuple(_WORD.findall("".join(c for c in plain if not unicodedata.combining(c))))


@functools.lru_cache(maxsize=1 << 17)
def _terms(name: str) -> frozenset[str]:
    """Return the words of a name, two neighbours joined, and all joined."""
    words = _words(name)
    return frozenset([*words, *map("".join, itertools.pairwise(words)), "".join(words)])


def _has(name: str, known: frozenset[str]) -> bool:
    return not known.isdisjoint(_terms(name))


def _names_probability(name: str) -> bool:
    words = _words(name)
    return words[:1] == ("p",) or _has(name, _PROBA - {"p"}) or any(word.startswith("probabili") for word in words)


def _is_binary(column: Column) -> bool:
    """Tell whether all values are known to stand for 0 and 1."""
    if column.kind == "number":
        return not column.many and set(column.values) in ({0}, {1}, {0, 1}, {-1, 1})
    return column.kind == "bool" or (column.kind == "text" and _label_pair(column) is not None)


def _may_be_binary(column: Column) -> bool:
    return column.kind in ("text", "number") and not column.many and len(column.values) == 2 and not _is_unit(column)


def _is_classes(column: Column) -> bool:
    """Tell whether there are three or more values that may be classes: text or whole numbers."""
    whole = column.kind == "number" and _is_outside(column) and all(value == value // 1 for value in column.values)
    return (column.many or len(column.values) > 2) and (whole or column.kind == "text") and not _is_percentages(column)


def _label_pair(column: Column) -> tuple[str, str] | None:
    """Return the labels of a text column that stand for 0 and 1, as written there."""
    seen = {str(value).strip().casefold(): str(value) for value in column.values}
    if column.many or not seen or len(seen) != len(column.values):
        return None
    pair = next((pair for pair in _PAIRS if seen.keys() <= set(pair)), None)
    if pair is None:
        return None
    example = str(column.values[0])
    change = str.upper if example.isupper() else str.capitalize if example[:1].isupper() else str
    return seen.get(pair[0], change(pair[0])), seen.get(pair[1], change(pair[1]))


def _is_unit(column: Column) -> bool:
    """Tell whether a column holds numbers in [0, 1], and not only 0 and 1."""
    if column.kind != "number" or column.low is None or _is_outside(column):
        return False
    return column.many or not set(column.values) <= {0, 1}


def _is_outside(column: Column) -> bool:
    return column.low is not None and column.high is not None and not 0.0 <= column.low <= column.high <= 1.0


def _is_unfit(column: Column) -> bool:
    """Tell whether a column seems to hold probabilities in a form that cannot be read."""
    if column.kind == "text":
        return _names_probability(column.name) or _is_percentages(column)
    return _is_outside(column) and (
        _names_probability(column.name) or _has(column.name, _SCORE) or _has(column.name, _LOGIT)
    )


def _is_percentages(column: Column) -> bool:
    return column.kind == "text" and any(_PERCENT.fullmatch(str(value).strip()) for value in column.values)


def _add_up_to_one(a: Column, b: Column) -> bool:
    """Tell whether two columns add up to 1 in every previewed row: probabilities of an event and its opposite."""
    sums = [x + y for x, y in zip(a.numbers, b.numbers, strict=False) if not math.isnan(x + y)]
    return bool(sums) and all(abs(total - 1.0) < 1e-6 for total in sums)


def _is_number(name: str) -> bool:
    try:
        return not math.isnan(float(name))
    except ValueError:
        return False


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_named(file: _File, named: dict[str, Sequence[str | None]]) -> None:
    """Check that named columns exist once, and that no column has two roles."""
    roles: dict[str, str] = {}
    for flag, name in ((flag, name) for flag, names in named.items() for name in names if name is not None):
        _refuse_unknown_column(file, flag, name)
        _refuse_duplicate(file, name)
        if flag in ("--by", "--key"):  # these may also name columns of the path, and columns with another role
            continue
        if any(column.name == name and column.in_path for column in file.columns):
            where = f"which is in the path of {file.where} and not in the file itself"
            raise ValueError(f"{flag} names {name!r}, {where}; only --by may name it.")
        if name in roles:
            twice = f"twice by {flag}" if roles[name] == flag else f"by both {roles[name]} and {flag}"
            raise ValueError(f"the column {name!r} is named {twice}; each must be another column.")
        roles[name] = flag


def _refuse_unknown_column(file: _File, flag: str, name: str) -> None:
    names = [column.name for column in file.columns]
    if name in names:
        return
    plain = {"".join(_words(other)): other for other in reversed(names)}
    wanted = "".join(_words(name))
    close = [wanted] if wanted in plain else difflib.get_close_matches(wanted, list(plain)[:_COMPARED], n=1)
    suggestion = f" Did you mean {_shown(plain[close[0]])}?" if close else ""
    listed = _list_names(file.columns, _LISTED)
    raise ValueError(f"{file.where} has no column {name!r} (named by {flag}).{suggestion} Its columns: {listed}.")


def _refuse_duplicate(file: _File, name: str) -> None:
    n = sum(column.name == name for column in file.columns)
    if n > 1:
        raise ValueError(f"{file.where} has {n} columns named {name!r}; rename all but one.")


def _refuse_no_rows_or_header(file: _File) -> None:
    columns = [column for column in file.columns if not column.in_path]
    if all(column.kind == "nothing" for column in columns):
        raise ValueError(f"{file.where} has no rows; at least one is needed.")
    names = [column.name for column in columns]
    numbers = all(map(_is_number, names)) and names != [str(i) for i in range(len(names))]
    if numbers or any(_is_unit(c) and "." in c.name and _is_number(c.name) for c in columns):
        proba_only = file.label_elsewhere is not None
        example, flags = ("proba", "--proba") if proba_only else ("label,proba", "--label and --proba")
        raise ValueError(
            f"the first line of {file.where} holds numbers ({_list_names(columns, 4)}), where it should name the "
            f"columns. Add a line with names at the top, such as `{example}`; or name these columns by {flags}."
        )


def _converted_label(column: Column, typed: str, where: str) -> str | int | float | bool:
    """Convert the label that the user typed to the type of the column."""
    flag, name = _flagged("--pos-label", typed), _shown(column.name)
    label: str | int | float | bool = typed
    if column.kind == "bool":
        if typed.casefold() not in ("true", "t", "1", "yes", "false", "f", "0", "no"):
            raise ValueError(f"{flag}: `{name}` in {where} holds True and False; name one of them.")
        return typed.casefold() in ("true", "t", "1", "yes")
    if column.kind == "number":
        try:
            label = int(typed) if re.fullmatch(r"[+-]?[0-9]+", typed) else float(typed)
        except ValueError:
            raise ValueError(f"{flag}: `{name}` in {where} holds numbers ({_list_values(column)}); name one.") from None
        label = int(label) if float(label).is_integer() and isinstance(label, float) else label
    if column.kind in ("text", "number") and not column.many and len(column.values) > 1 and label not in column.values:
        raise ValueError(f"{flag}: there is no such label in `{name}` of {where}; it holds {_list_values(column)}.")
    return label
