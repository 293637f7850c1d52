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
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
# Letters of a name, columns and candidates that messages show; names that are compared for a suggestion.
_LETTERS, _LISTED, _FEW, _COMPARED = 60, 20, 8, 10_000


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names are compared without case, accents and punctuation, by words and by words joined.
_DECISION = _names("pred preds prediction predictions predicted ypred yhat decision")
_PROBA = _DECISION | _names(
    "p proba probas prob probs probability probabilities likelihood phat yproba yprob score scores yscore confidence "
    "conf forecast forecasts chance propensity risk"
)
_LOGIT, _WEIGHT = _names("logit logits logodds"), _names("w weight weights wt wgt sampleweight")
_OUTCOME = _names(
    "y ytrue ytest label labels target targets outcome outcomes actual truth gold observed correct class event result "
    "response status resolution clicked converted churn churned default defaulted fraud spam died survived won win rain"
)
_STATISTIC = _names(
    "lower upper lo hi low high ci min max std sd se err error variance threshold pvalue rank brier logloss entropy"
)
_GROUP = _names("id key index fold split train test seed date time year month day week hour age sex gender")
# Words that do not say which event a column is about. A risk is one of something bad, which 1 need not stand for.
_NEUTRAL = _PROBA - {"risk"} | _names(
    "y x is has was of the flag label target outcome true actual test model raw calibrated new old hat value out output"
)
_CORRECT, _ENDINGS = _names("correct iscorrect right"), ("", "s", "d", "ed", "ing")
# Labels that count as 0 and 1, and those of them that stand for 1 in any column.
_PAIRS = (
    ("0", "1"), ("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t"), ("negative", "positive"), ("neg", "pos"),
    ("loss", "win"), ("lost", "won"), ("wrong", "right"), ("incorrect", "correct"),
)  # fmt: skip
_ONES = ("1", "yes", "true", "positive", "pos")
_CLASSES = (
    "For one of several classes, or for the confidence in a decision, make a 0/1 column (such as `is_it = {} == {}`, "
    "or whether the decision was right) and name it by --label."
)


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
    """The outcome column, if it is known, and the label that counts as 1 (None for 1 and True)."""

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
    pair = None if (labels and probas) or label_elsewhere is not None else _outcome_pair(file, labels, probas)
    if pair is not None:
        probas, labels = [pair[0]], [pair[1]]
    elif not labels and label_elsewhere is None:
        labels = _label_candidates(file.free)
    event = _event(file, labels, pos_label)
    questions = [_which(file, "--label", labels)] if len(labels) != 1 and label_elsewhere is None else []
    if not probas:
        probas = _proba_candidates(file, labels, event)
        questions.append(_doubt(file, event, probas[0]) if len(probas) == 1 else _which(file, "--proba", probas))
    if any(questions):
        _refuse_duplicates(file, [c.name for c in labels + probas])
        raise ValueError(f"{' '.join(filter(None, questions))} All columns: {_list_names(columns, _LISTED)}.")
    guessed = {
        "--label": label is None and bool(labels),
        "--proba": not proba,
        "--pos-label": bool(labels) and event.positive is not None and pos_label is None,
    }
    y_true = "" if event.column is None else event.column.name
    messages = (*_guess_message(event, probas[0], guessed), *_unused_messages(file, labels))
    return Guess(y_true, tuple(proba) or (probas[0].name,), event.positive if labels else None, messages)


# --- candidates -------------------------------------------------------------------------------------------------------


def _outcome_pair(file: _File, labels: list[Column], probas: list[Column]) -> tuple[Column, Column] | None:
    """Find the columns named `X` and `X_outcome`, of probabilities and outcomes; ask if there are several."""
    outcomes = {_words(c.name): c for c in labels or file.free if _is_binary(c)}
    columns = probas or [c for c in file.free if _is_unit(c)]
    pairs = [(c, outcomes[words]) for c in columns if (words := (*_words(c.name), "outcome")) in outcomes]
    if len(probas) > 1 or not pairs:
        return None
    if len(pairs) == 1:
        return pairs[0]
    listed = "; ".join(f"{_shown(p.name)} and {_shown(y.name)}" for p, y in pairs[:_FEW])
    flags = f"{_flagged('--proba', pairs[0][0].name)} {_flagged('--label', pairs[0][1].name)}"
    raise ValueError(
        f"Which probabilities of {file.where} should be assessed? There are {len(pairs)} pairs of probabilities and "
        f"outcomes: {listed}. Name one: {flags}."
    )


def _label_candidates(columns: Sequence[Column]) -> list[Column]:
    """Return columns with two values: those with a known name or, only if there is no such name, all others."""
    possible = [c for c in columns if not _has(c.name, _PROBA | _WEIGHT | _STATISTIC)]
    named = [c for c in possible if _has(c.name, _OUTCOME)]
    if named:
        return [c for c in named if _is_binary(c)] or [c for c in named if _has_two_labels(c)]
    return [c for c in possible if _is_binary(c) and not _has(c.name, _GROUP)]


def _proba_candidates(file: _File, labels: list[Column], event: _Event) -> list[Column]:
    """Return columns in [0, 1] with a known name; or else columns with such names of other content, and all others."""
    possible = [c for c in file.free if c not in labels and not _has(c.name, _WEIGHT | _STATISTIC)]
    named = [c for c in possible if _has(c.name, _PROBA | _LOGIT)]
    candidates = [c for c in named if _is_unit(c) and not _has(c.name, _LOGIT)]
    if not candidates and any(_has(c.name, _PROBA) and _is_unit(c) for c in file.other_use):
        return []
    if not candidates:
        candidates = [c for c in named if c.kind in ("number", "text") and not _is_binary(c)]
        candidates += [c for c in possible if _is_unit(c) and not _has(c.name, _PROBA | _LOGIT | _GROUP | _OUTCOME)]
    if len(candidates) == 2 and _add_up_to_one(*candidates):  # such as ``prob_0`` and ``prob_1``
        fitting = [c for c in candidates if _fits_event(c.name, event)]
        return fitting if len(fitting) == 1 else candidates
    return candidates


def _event(file: _File, labels: list[Column], pos_label: str | None) -> _Event:
    if len(labels) == 1:
        return _Event(labels[0], _positive_label(file, labels[0], pos_label))
    if file.label_elsewhere:
        positive = None if pos_label == "1" else 0 if pos_label in ("0", "-1") else pos_label
        return _Event(Column(file.label_elsewhere, "nothing"), positive)
    return _Event()


def _positive_label(file: _File, column: Column, typed: str | None) -> Label:
    """Return the label that counts as 1, of the type of the column; None if it is 1 or True."""
    if typed is not None:
        return _converted_label(column, typed, file.where)
    pair = _label_pair(column) if column.kind == "text" else None
    if pair is not None:
        return pair[1]
    if column.kind == "text" or (column.kind == "number" and not _is_binary(column) and not _is_unit(column)):
        _ask_positive_label(file, column)
    return 1 if -1 in column.values and _is_binary(column) else None


def _fits_event(name: str, event: _Event) -> bool:
    """Tell whether all words of a name stand for the label that counts as 1, or for no event: not ``p_dry`` for `rain`.

    They may be those of the outcome's name if the label is 1, yes or the like, and those of the label itself.
    """
    if event.column is None:
        return True
    neutral = _NEUTRAL.difference(*(_words(str(value)) for value in event.column.values))
    about, outcome = ([w for w in _words(text) if w not in neutral] for text in (name, event.column.name))
    positive = str(1 if event.positive is None else event.positive).strip().casefold()
    counts_as_one = positive in [one for _, one in _PAIRS]
    names_other = any(set(_words(str(value))) <= set(about) - {"no"} for value in event.others)
    if names_other or (len(_words(name)) > 1 and _words(name)[0] == "1"):  # ``p_loss`` for win and loss, ``1-p``
        return False
    if not about or (counts_as_one and _is_same_word("".join(about), "".join(outcome))):
        return True
    for label in (positive, *_ONES * counts_as_one):
        rest = [word for word in about if word not in _words(label)]
        if set(_words(label)) <= set(about) and (not rest or _is_same_word("".join(rest), "".join(outcome))):
            return bool(_words(label))
    return False


def _is_same_word(a: str, b: str) -> bool:
    """Tell whether two words are forms of one, such as rain and rained."""
    short, long = sorted((a, b), key=len)
    return long in [short + ending for ending in _ENDINGS]


# --- questions --------------------------------------------------------------------------------------------------------


def _which(file: _File, flag: str, candidates: list[Column]) -> str:
    """Return the question which column has a role, with the candidates and the flags to type."""
    if flag == "--label":
        role, content, several = "outcomes", "0 and 1, True and False, or two labels", False
        used, excluded = _label_candidates(file.other_use), _PROBA | _WEIGHT | _GROUP
        columns = [c for c in file.free if (_is_binary(c) or _has_two_labels(c)) and not _has(c.name, excluded)]
    else:
        role, content, several = "predicted probabilities", "numbers between 0 and 1", file.several
        used = [c for c in file.other_use if _is_unit(c) and _has(c.name, _PROBA)]
        columns = [c for c in file.free if _is_unit(c)]
    question = f"Which column{'s' * several} of {file.where} hold{'s' * (not several)} the {role}? "
    if not candidates:
        question += "".join(f"`{_shown(c.name)}` is used by {file.flags[c.name]}. " for c in used)
    columns = candidates or columns
    if not columns:
        question += f"None holds {content} only. Name it: {flag} COLUMN."
    else:
        second = [c for c in columns[1:] if several and not _add_up_to_one(columns[0], c)][:1]
        lead = "If that is it, use" if len(columns) == 1 else "Name one or more" if second else "Name one"
        flags = " ".join(_flagged(flag, column.name) for column in [columns[0], *second])
        question += f"Candidate{'s' * (len(columns) > 1)}: {_list_names(columns, _FEW)}. {lead}: {flags}."
    return question if candidates or flag == "--proba" else f"{question} {_CLASSES.format('COLUMN', 'CLASS')}"


def _ask_positive_label(file: _File, column: Column) -> NoReturn:
    name, values = _shown(column.name), _list_values(column)
    if column.many or len(column.values) > 2:
        example = repr(column.values[0])[:_LETTERS] if column.values else "CLASS"
        raise ValueError(
            f"`{name}` in {file.where} holds more than two different labels ({values}); outcomes must be 0/1, "
            f"True/False or two labels. {_CLASSES.format(name, example)}"
        )
    flags = " or ".join(_flagged("--pos-label", str(value)) for value in column.values)
    raise ValueError(
        f"Which label in `{name}` of {file.where} counts as 1, the event that the probabilities are about? It holds "
        f"{values}. Use {flags}."
    )


def _doubt(file: _File, event: _Event, proba: Column) -> str:
    """Return a question if the only candidate may be about another event; otherwise an empty text."""
    if event.column is None or not _is_unit(proba):  # what is no probability is refused when it is read
        return ""
    flag, cure = _flagged("--proba", proba.name), "make a column of 1 minus it"
    if not _fits_event(proba.name, event):
        other = "another event"
        if event.column in file.columns:
            cure = f"for the other label {flag} {_flagged('--pos-label', str(next(iter(event.others), 0)))}"
    else:
        decisions = [c for c in file.free if _has(c.name, _DECISION) and not _is_unit(c) and c != event.column]
        is_correctness = any("".join(_words(str(t))) in _CORRECT for t in (event.column.name, event.positive))
        if not decisions or proba.low is None or proba.low < 0.5 or is_correctness:
            return ""
        other = f"a right decision in `{_shown(decisions[0].name)}`"
        cure = "make a 0/1 column that says whether the decision was right and name it by --label"
    one = event.positive if event.positive is not None else event.column.kind == "bool" or 1
    return (
        f"Does `{_shown(proba.name)}` of {file.where} hold the probabilities that `{_shown(event.column.name)}` is "
        f"{repr(one)[:_LETTERS]}, or of {other}? Use {flag}, or {cure}."
    )


# --- messages ---------------------------------------------------------------------------------------------------------


def _guess_message(event: _Event, proba: Column, guessed: dict[str, bool]) -> list[str]:
    """Return one line about all that was guessed."""
    parts, label = [], event.column
    if label is not None and (guessed["--label"] or guessed["--pos-label"]):
        only = ", the only such column" if guessed["--label"] and not _has(label.name, _OUTCOME) else ""
        content = "True/False" if label.kind == "bool" else "0/1"
        if event.positive is not None:
            content = f"{event.positive!r} counts as 1" + "".join(f", {value!r} as 0" for value in event.others)
        parts.append(f"label: `{_shown(label.name)}` ({content}{only})")
    if guessed["--proba"]:
        only = "" if _has(proba.name, _PROBA) else ", the only such column"
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
        others = [c for c in others if len(others) == 1 or _has(c.name, _OUTCOME)]
        if others:
            listed = ", ".join(f"`{_shown(c.name)}`" for c in others[:_FEW])
            messages.append(f"outcomes are taken from the other file, not from {listed} in this file")
    weights = [c.name for c in file.free if "".join(_words(c.name)) in _WEIGHT]
    if weights and "--weight" not in file.flags.values() and file.label_elsewhere != "":
        flag = _flagged("--weight", weights[0])
        messages.append(f"weights: `{_shown(weights[0])}` is not used; to use it, add {flag}")
    return messages


def _shown(name: str, letters: int | None = _LETTERS) -> str:
    """Format a name from a file: shortened, without control characters."""
    name = name if letters is None or len(name) <= letters else f"{name[:letters]}..."
    return name if name.isprintable() and name else repr(name)


def _flagged(flag: str, value: str) -> str:
    """Format a flag and its value as typed in a shell."""
    text = shlex.quote(value) if value.isprintable() else _shown(value)
    return f"{flag}={text}" if value.startswith("-") else f"{flag} {text}"


def _list_names(columns: Sequence[Column], limit: int) -> str:
    return ", ".join([*(_shown(c.name) for c in columns[:limit]), *["..."] * (len(columns) > limit)]) or "none"


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


def _is_binary(column: Column) -> bool:
    """Tell whether all values are known to stand for 0 and 1."""
    if column.kind == "number":
        return not column.many and set(column.values) in ({0}, {1}, {0, 1}, {-1, 1})
    return column.kind == "bool" or (column.kind == "text" and _label_pair(column) is not None)


def _has_two_labels(column: Column) -> bool:
    return column.kind in ("text", "number") and not column.many and len(column.values) == 2 and not _is_unit(column)


def _label_pair(column: Column) -> tuple[str, str] | None:
    """Return the labels of a text column that stand for 0 and 1, as written there."""
    seen = {str(value).strip().casefold(): str(value) for value in column.values}
    pair = next((pair for pair in _PAIRS if seen.keys() <= set(pair)), None)
    if pair is None or column.many or not seen or len(seen) != len(column.values):
        return None
    example = str(column.values[0])
    change = str.upper if example.isupper() else str.capitalize if example[:1].isupper() else str
    return seen.get(pair[0], change(pair[0])), seen.get(pair[1], change(pair[1]))


def _is_unit(column: Column) -> bool:
    """Tell whether a column holds numbers in [0, 1], and not only 0 and 1."""
    if column.kind != "number" or column.low is None or column.high is None:
        return False
    return 0.0 <= column.low <= column.high <= 1.0 and (column.many or not set(column.values) <= {0, 1})


def _add_up_to_one(a: Column, b: Column) -> bool:
    """Tell whether two columns add up to 1 in every previewed row: probabilities of an event and its opposite."""
    sums = [x + y for x, y in zip(a.numbers, b.numbers, strict=False) if not math.isnan(x + y)]
    return bool(sums) and all(abs(total - 1.0) < 1e-6 for total in sums)


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_named(file: _File, named: dict[str, Sequence[str | None]]) -> None:
    """Check that named columns exist once, and that no column has two roles."""
    roles: dict[str, str] = {}
    pairs = [(flag, name) for flag, names in named.items() for name in names if name is not None]
    for flag, name in pairs:
        _refuse_unknown_column(file, flag, name)
        if flag in ("--by", "--key"):  # these may also name columns of the path, and columns with another role
            continue
        if any(column.name == name and column.in_path for column in file.columns):
            where = f"which is in the path of {file.where} and not in the file itself"
            raise ValueError(f"{flag} names {name!r}, {where}; only --by may name it.")
        if name in roles:
            twice = f"twice by {flag}" if roles[name] == flag else f"by both {roles[name]} and {flag}"
            raise ValueError(f"the column {name!r} is named {twice}; each must be another column.")
        roles[name] = flag
    _refuse_duplicates(file, [name for _, name in pairs])


def _refuse_unknown_column(file: _File, flag: str, name: str) -> None:
    if any(column.name == name for column in file.columns):
        return
    plain, wanted = {"".join(_words(c.name)): c.name for c in reversed(file.columns)}, "".join(_words(name))
    close = [wanted] if wanted in plain else difflib.get_close_matches(wanted, list(plain)[:_COMPARED], n=1)
    suggestion = f" Did you mean {_shown(plain[close[0]])}?" if close else ""
    listed = _list_names(file.columns, _LISTED)
    raise ValueError(f"{file.where} has no column {name!r} (named by {flag}).{suggestion} Its columns: {listed}.")


def _refuse_duplicates(file: _File, names: Sequence[str]) -> None:
    counts = Counter(column.name for column in file.columns)  # one pass: a file may have 100,000 columns
    for name in names:
        if counts[name] > 1:
            raise ValueError(f"{file.where} has {counts[name]} columns named {name!r}; rename all but one.")


def _refuse_no_rows_or_header(file: _File) -> None:
    columns = [column for column in file.columns if not column.in_path]
    if all(column.kind == "nothing" for column in columns):
        raise ValueError(f"{file.where} has no rows; at least one is needed.")
    numbers = [c for c in columns if _NUMBER.fullmatch(c.name)]
    numbered = [c.name for c in columns] == [str(i) for i in range(len(columns))]
    if (len(numbers) == len(columns) and not numbered) or any(_is_unit(c) and "." in c.name for c in numbers):
        alone = file.label_elsewhere is not None
        example, flags = ("proba", "--proba") if alone else ("label,proba", "--label and --proba")
        raise ValueError(
            f"the first line of {file.where} holds numbers ({_list_names(columns, 4)}), where it should name the "
            f"columns. Add a line with names at the top, such as `{example}`; or name these columns by {flags}."
        )


def _converted_label(column: Column, typed: str, where: str) -> str | int | float | bool:
    """Convert the label that the user typed to the type of the column."""
    flag, name = _flagged("--pos-label", typed), _shown(column.name)
    label: str | int | float = typed
    if column.kind == "bool":
        if typed.casefold() not in ("true", "t", "1", "yes", "false", "f", "0", "no"):
            raise ValueError(f"{flag}: `{name}` in {where} holds True and False; name one of them.")
        return typed.casefold() in ("true", "t", "1", "yes")
    if column.kind == "number":
        try:
            label = int(typed) if re.fullmatch(r"[+-]?[0-9]+", typed) else float(typed)
        except ValueError:
            raise ValueError(f"{flag}: `{name}` in {where} holds numbers ({_list_values(column)}); name one.") from None
        label = int(label) if isinstance(label, float) and label.is_integer() else label
    if column.kind in ("text", "number") and not column.many and len(column.values) > 1 and label not in column.values:
        raise ValueError(f"{flag}: there is no such label in `{name}` of {where}; it holds {_list_values(column)}.")
    return label
