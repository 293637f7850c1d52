"""Column guessing: find outcomes and probabilities by names and first rows, or ask a question that shows the flags."""

import functools
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from truthcal.cli.named_columns import (
    DECISION,
    UnclearColumns,
    ask_label,
    check_named,
    classes_hint,
    convert_label,
    flagged,
    flatten_hint,
    fraction_hint,
    only_tie,
    require_header,
    tie_hint,
    void_hint,
    word_many_labels,
)
from truthcal.core.frame_columns import require_columns
from truthcal.core.params import list_shown, shown
from truthcal.io.files.preview import Column

Label = str | int | float | bool | None


def _known_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Boundaries between the words of a name: before a capital and before a digit. A sign of negation is a word.
_EDGE, _WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])"), re.compile(r"[^\W_]+|[!~¬]")
# Known names, compared by words and by two words joined, without case and punctuation.
_DECISION = _known_names("pred preds prediction predictions predicted ypred yhat decision scoredlabels")
_LOGIT = _known_names("logit logits logodds")
_PROBA = _DECISION.union(_LOGIT) | _known_names(
    "p proba probas prob probs probability probabilities likelihood phat yproba yprob score scores yscore confidence "
    "conf forecast forecasts chance propensity risk pd"
)
_OUTCOME = _known_names(
    "y ytrue ytest label labels target targets outcome outcomes actual truth gold observed correct class event result "
    "response status resolution clicked converted churn churned default defaulted fraud spam died survived won win "
    "rain dead death relapsed readmitted purchased bought click happened occurred"
)
_WEIGHT = _known_names("w weight weights wt wgt sampleweight")
_STATISTIC = _WEIGHT | _known_names(
    "lower upper lo hi low high ci min max std sd se err error variance threshold pvalue rank brier logloss entropy"
)
_GROUP = _known_names("id key index fold split train test seed date time year month day week hour age sex gender")
# Words for the probability of some events only, and the outcomes that are such events if they are 1: not `survived`.
_EVENTS = {
    "risk": _known_names("died dead death relapsed readmitted default defaulted fraud churn churned event"),
    "pd": _known_names("default defaulted"),
}
# Words that do not say which event a column is about.
_NEUTRAL = _PROBA - _LOGIT - _EVENTS.keys() | _known_names(
    "y x is has was of the flag label target outcome true actual test model raw calibrated new old hat value out "
    "output predict scored estimate estimated fitted posterior calib oof ensemble class"
)
# Names of outcomes whose label 1 is the predicted event by convention, whatever that is.
_GENERIC = _known_names("y ytrue ytest label target event")
# Labels that count as 0 and 1, and those of them that stand for 1 in the name of any probability.
_PAIRS = {
    "0": "1", "no": "yes", "false": "true", "n": "y", "f": "t", "negative": "positive", "neg": "pos", "loss": "win",
    "lost": "won", "wrong": "right", "incorrect": "correct",
}  # fmt: skip
_CORRECT = _known_names("correct iscorrect right")
_ONES = ("1", "yes", "true", "positive", "pos")


@dataclass(frozen=True, slots=True)
class Guess:
    """The columns of outcomes and probabilities, the label that counts as 1 (None for 1 and True), and messages."""

    y_true: str
    y_proba: tuple[str, ...]
    pos_label: Label
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """The outcome column, without a name if it is unknown, and the label that counts as 1 (None for 1 and True)."""

    column: Column
    positive: Label

    @property
    def one(self) -> str | int | float:
        return 1 if self.positive is None else self.positive

    @property
    def zeros(self) -> list[str | int | float]:
        return [value for value in self.column.values if value != self.one]


def guess(
    columns: Sequence[Column],
    *,
    label: str | None = None,
    proba: Sequence[str] = (),
    weight: str | None = None,
    by: Sequence[str] = (),
    group: str | None = None,
    key: str | None = None,
    time: str | None = None,
    question: str | None = None,
    close: str | None = None,
    pos_label: str | None = None,
    where: str,
    label_elsewhere: str | None = None,
    fractional: bool = False,
) -> Guess:
    """Guess the columns that the user did not name, if there is only one possibility; otherwise raise a question.

    `label_elsewhere` is the outcome column of another file that this one is joined to; empty if no outcomes are needed.
    `fractional`: whether outcomes may be fractions.
    """
    where, is_needed = where if where.isprintable() else repr(where), label_elsewhere is None
    if not is_needed:
        label = next((c.name for c in columns if c.name and c.name == label_elsewhere), None)
    named = {"--label": [label], "--proba": proba, "--weight": [weight], "--by": by, "--group": [group], "--key": [key]}
    named |= {"--time": [time], "--question": [question], "--close": [close]}
    flags = check_named(columns, named, where)
    if not proba or (is_needed and label is None):
        require_header(columns, ["--label", "--proba"] if is_needed else ["--proba"], where)
    in_file = [c for c in columns if c.name and not c.in_path]
    free = [c for c in in_file if c.name not in flags]
    labels, probas = ([c for c in columns if c.name in names] for names in ([label], proba))
    pairs = _outcome_pairs(free, labels, probas) if is_needed and len(proba) < 2 else []
    if is_needed and not labels:
        labels = [outcome for _, outcome in pairs] or _label_candidates(free)
    is_known = len(labels) == 1 and (label is not None or _is_clear(labels[0], fractional))
    elsewhere = _Event(Column(label_elsewhere or "", "nothing"), "0" if pos_label == "-1" else pos_label)
    event = _guess_event(labels[0], pos_label, where, in_file) if is_known else elsewhere
    unclear = UnclearColumns(where)
    if is_needed and not is_known:
        unclear.ask("--label", [c.name for c in labels if not _is_impossible(c)], _way_out(labels, in_file, where))
    if not proba and not (unclear.lines and pairs):  # the outcome column decides between pairs
        probas = [c for c, _ in pairs] or [c for c in _proba_candidates(in_file, event) if c.name not in flags]
        if len(probas) != 1:
            unclear.ask("--proba", [c.name for c in probas or _other_candidates(free, event)])
        elif _is_doubtful(probas[0], event, in_file):
            unclear.lines.append(_ask_whether(probas[0], event, in_file, where))
    if unclear.lines and (hint := flatten_hint(in_file, where)):
        unclear.lines.append(hint)
        unclear.flags.clear()
    if unclear.lines:
        require_columns([("", c.name) for c in labels + probas], [c.name for c in columns], where)  # refuse duplicates
        raise unclear.with_columns([c.name for c in columns], flags)
    y_true, y_proba, positive = event.column.name, tuple(proba) or (probas[0].name,), event.positive if labels else None
    guessed = [flagged("--label", y_true)] if labels and label is None else []
    guessed += [] if proba else [flagged("--proba", y_proba[0])]
    guessed += [flagged("--pos-label", positive)] if positive is not None and pos_label is None else []
    outcomes = _label_candidates(free) if label_elsewhere and not labels else []
    weights = unused_weights(free) if weight is None and label_elsewhere != "" else []
    return Guess(y_true, y_proba, positive, guess_messages(guessed, outcomes, weights))


def unused_weights(columns: Sequence[Column]) -> list[Column]:
    """Return columns that are called weights: they are never guessed, but the user might expect them to be used."""
    return [column for column in columns if "".join(_words(column.name)) in _WEIGHT]


def is_outcome_name(name: str, *, decision: bool = False) -> bool:
    """Tell whether a name is a known one of outcomes or, if `decision`, of decisions such as ``predicted_class``."""
    return _has(name, _DECISION) if decision else _has(name, _OUTCOME) and not _has(name, _DECISION)


def _outcome_pairs(free: list[Column], labels: list[Column], probas: list[Column]) -> list[tuple[Column, Column]]:
    """Guess columns of probabilities and outcomes named `X` and `X_outcome`; `labels` and `probas` were named."""
    outcomes = {_words(c.name): c for c in labels or free if _content(c) in ("0/1", "unit")}  # with ties
    pairs = [(c, outcomes.get((*_words(c.name), "outcome"))) for c in probas or free if probas or _content(c) == "unit"]
    return [(column, outcome) for column, outcome in pairs if outcome is not None]


def _label_candidates(columns: list[Column]) -> list[Column]:
    """Guess outcomes: 0/1 columns with a known name; or all known names and 0/1 columns; or columns of two labels."""
    possible = [c for c in columns if not _has(c.name, _PROBA - _LOGIT | _STATISTIC)]
    named = [c for c in possible if _has(c.name, _OUTCOME)]
    others = [c for c in possible if not _has(c.name, _OUTCOME | _GROUP)]
    candidates = [c for c in named if _content(c) == "0/1"] or named + [c for c in others if _content(c) == "0/1"]
    return candidates or [c for c in others if _content(c) == "two labels"]


def _is_impossible(column: Column) -> bool:
    """Tell whether a column has more than two labels, and no option leaves out the others."""
    options = column.void or only_tie(column) or column.fraction
    return _content(column) == "other" and len(column.values) > 2 and not options


def _way_out(labels: Sequence[Column], columns: Sequence[Column], where: str) -> str:
    """Name the way out if a column of outcomes has more than two: classes, fractions, or words such as "void"."""
    outcomes = [column for column in labels if _has(column.name, _OUTCOME)]
    hints = [void_hint(column) for column in outcomes if column.void]
    hints += [tie_hint(column, tie) for column in outcomes if (tie := only_tie(column))]
    # Without 0 and 1 these are rather soft labels, or predictions.
    hints += [fraction_hint(c) for c in outcomes if _content(c) == "unit" and (c.low, c.high) == (0.0, 1.0)]
    is_binary = bool(labels) and all(_content(c) in ("0/1", "two labels") for c in labels)
    if hints or is_binary:
        return hints[0] if hints else ""
    many = next((c for c in labels if _is_impossible(c)), None)
    problem = "" if many is None else f"{word_many_labels(many, where)}. "
    return f"{problem}{classes_hint(columns)}"


def _is_clear(column: Column, fractional: bool) -> bool:
    """Tell whether the only guess for outcomes is accepted: two labels that are not known need a known name.

    So do fractions, which are accepted only if the user said so.
    """
    possible = ("two labels", "unit") if fractional else ("two labels",)
    return _content(column) == "0/1" or (_content(column) in possible and _has(column.name, _OUTCOME))


def _proba_candidates(columns: list[Column], event: _Event) -> list[Column]:
    """Guess probabilities: columns in [0, 1] with a known name; or else all known names and columns in [0, 1]."""
    possible = [c for c in columns if c != event.column and not _has(c.name, _STATISTIC)]
    named = [c for c in possible if _has(c.name, _PROBA) and c.kind in ("number", "text") and _content(c) != "0/1"]
    others = [c for c in possible if _content(c) == "unit" and not _has(c.name, _PROBA | _OUTCOME | _GROUP)]
    candidates = [c for c in named if _content(c) == "unit" and not _has(c.name, _LOGIT)] or named + others
    if len(candidates) != 2 or not _add_up_to_one(*candidates) or not event.column.name:
        return candidates
    fitting = [c for c in candidates if _is_about(c.name, event)]  # such as ``prob_1`` of ``prob_0`` and ``prob_1``
    return fitting if len(fitting) == 1 else candidates


def _other_candidates(columns: list[Column], event: _Event) -> list[Column]:
    """Return columns in [0, 1] to offer if none was guessed: ``RF high`` may be no upper limit, but a model's class."""
    others = [c for c in columns if _content(c) == "unit" and c != event.column]
    return [c for c in others if _has(c.name, _STATISTIC - _WEIGHT) and not _has(c.name, _OUTCOME | _GROUP | _WEIGHT)]


def _guess_event(column: Column, typed: str | None, where: str, columns: Sequence[Column]) -> _Event:
    """Guess which label of the outcome column counts as 1; ask if that is unknown."""
    if typed is not None:
        return _Event(column, convert_label(column, typed, where))
    if column.kind in ("text", "number") and _content(column) not in ("0/1", "unit"):
        ask_label(column, where, columns)
    return _Event(column, _known_positive(column))


def _is_doubtful(proba: Column, event: _Event, columns: list[Column]) -> bool:
    """Tell whether guessed probabilities may be about another event, or be the confidence in decisions."""
    if _content(proba) != "unit" or not event.column.name:  # other numbers are refused when they are read
        return False
    return _is_confidence(proba, event, columns) or not _is_about(proba.name, event)


def _is_confidence(proba: Column, event: _Event, columns: list[Column]) -> bool:
    """Tell whether probabilities, all of them at least a half, may be the confidence in decisions."""
    has_decisions = any(_has(c.name, _DECISION) and _content(c) != "unit" and c != event.column for c in columns)
    outcome = ["".join(_words(str(text))) for text in (event.column.name, event.one)]
    return has_decisions and _CORRECT.isdisjoint(outcome) and proba.low is not None and proba.low >= 0.5


def _is_about(name: str, event: _Event) -> bool:
    """Tell whether a column's name fits the label that counts as 1: not ``p_dry`` for `rain`.

    Its words must be neutral, except for the name of the outcome if the label is 1, yes or the like, and the label.
    """
    neutral = (_NEUTRAL | _words_for(event)).difference(*(_words(str(value)) for value in event.column.values))
    about, outcome = ([w for w in _words(text) if w not in neutral] for text in (name, event.column.name))
    names_zero = any(set(_words(str(zero))) <= set(about) for zero in event.zeros)  # ``p_loss`` for win and loss
    if names_zero or (len(_words(name)) > 1 and _words(name)[0] == "1"):  # ``1-p``
        return False
    is_one = str(event.one).strip().casefold() in _PAIRS.values()
    labels = [set(_words(str(label))) for label in (event.one, *_ONES * is_one)]
    rests = [[w for w in about if w not in label] for label in labels if label and label <= set(about)]
    return not about or any(not rest or _is_same(rest, outcome) for rest in [*rests, *[about] * is_one])


def _words_for(event: _Event) -> set[str]:
    """Return the words that stand for the probability of this event: ``risk`` for `died`, if 1 counts as 1."""
    if str(event.one).strip().casefold() not in _PAIRS.values():
        return set()
    name = "".join(word for word in _words(event.column.name) if word not in ("is", "has", "was"))
    return {word for word, events in _EVENTS.items() if name in _GENERIC | events}


def _is_same(a: list[str], b: list[str]) -> bool:
    """Tell whether words in column names are forms of the same, such as rain and rained."""
    short, long = sorted(("".join(a), "".join(b)), key=len)
    return bool(short) and long in [short + ending for ending in ("", "s", "d", "ed", "ing")]


def _ask_whether(proba: Column, event: _Event, columns: list[Column], where: str) -> str:
    """Return the question whether a guessed column is about the event, or the confidence in decisions."""
    flag = flagged("--proba", proba.name)
    inverted = f"use {flag} {flagged('--pos-label', next(iter(event.zeros), 0))}"
    opposite = inverted if event.column.kind != "nothing" else "add a column of 1 minus these values and name that"
    question = f"Is {shown(proba.name)} of {where} the probability that {shown(event.column.name)} is {event.one!r}?"
    hint = f" {DECISION}" if _is_confidence(proba, event, columns) else ""
    return f"{question} If so, use {flag}; if it is the probability of the opposite, {opposite}.{hint}"


def guess_messages(guessed: list[str], outcomes: list[Column], weights: list[Column]) -> tuple[str, ...]:
    """Return a line for what was guessed, and for outcomes and weights that the user might expect to be used."""
    messages = [f"columns were guessed, as if you had typed: {' '.join(guessed)}"] if guessed else []
    if outcomes:
        names = list_shown([c.name for c in outcomes])
        messages.append(f"outcomes are taken from the other file, not from {names} in this file")
    if weights:
        name = weights[0].name
        messages.append(f"weights: {shown(name)} is not used; to use it, add {flagged('--weight', name)}")
    return tuple(messages)


@functools.lru_cache(maxsize=1 << 17)
def _words(name: str) -> tuple[str, ...]:
    """Split a column's name into lower-case words: churn, proba, 1 for ``churnProba_1``."""
    return tuple(_WORD.findall(_EDGE.sub(" ", name).casefold()))


@functools.lru_cache(maxsize=1 << 17)
def _terms(name: str) -> frozenset[str]:
    words = _words(name)
    return frozenset([*words, *map("".join, itertools.pairwise(words))])


def _has(name: str, known: frozenset[str]) -> bool:
    """Tell whether a word of a column's name, or two neighbours joined, are known."""
    return not known.isdisjoint(_terms(name))


def _content(column: Column) -> Literal["unit", "0/1", "two labels", "other"]:
    """Classify a column to guess its role: numbers in [0, 1], values known to stand for 0 and 1, two other labels."""
    values = set(column.values)
    if column.in_unit:
        return "unit" if column.many or not values <= {0, 1} else "0/1"
    if column.kind == "bool" or _known_positive(column) is not None:
        return "0/1"
    return "two labels" if len(values) == 2 else "other"


def _known_positive(column: Column) -> Label:
    """Guess the label that counts as 1 in place of 1 and True: one of known labels, even if it was not seen yet."""
    seen = {str(value).strip().casefold(): str(value) for value in column.values}
    one = next((one for zero, one in _PAIRS.items() if seen.keys() <= {zero, one}), None)
    if column.kind != "text" or one is None or not seen or len(seen) != len(column.values):
        return 1 if column.kind == "number" and set(column.values) == {-1, 1} else None
    example = column.values[0]
    change = str.upper if example.isupper() else str.capitalize if example[:1].isupper() else str
    return seen.get(one, change(one))


def _add_up_to_one(a: Column, b: Column) -> bool:
    """Tell whether two columns add up to 1 in every previewed row: probabilities of an event and its opposite."""
    sums = [x + y for x, y in zip(a.numbers, b.numbers, strict=False) if not math.isnan(x + y)]
    return bool(sums) and all(abs(total - 1.0) < 1e-6 for total in sums)
