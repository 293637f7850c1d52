"""What the name of a column and its first values say, by lists of words; and how messages show names."""

import difflib
import functools
import itertools
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence

from truthcal.io.files.preview import Column

# Where words of a name meet: before a capital and before a digit.
_EDGE, _WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])"), re.compile(r"[^\W_]+")
_PERCENT = re.compile(r"[0-9.,]+ ?%")
# Letters of a name that messages show.
_LETTERS = 60
# Columns that they list.
_LISTED = 20
# Names among which one is looked for that is like another: more would take seconds.
_COMPARED = 10_000


def _known(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names are compared without case, accents and punctuation, as wholes and by their words. Of two lists the first counts
# more; within a list no word counts more than another, for then it is better to ask.
PROBA = (
    _known("""
        proba probas prob probs probability probabilities likelihood phat yproba yprob ypredproba ypredprob pd
        wahrscheinlichkeit probabilite vraisemblance probabilidad probabilita waarschijnlijkheid
    """),
    _known("""
        score scores scored confidence conf forecast forecasts prediction predictions predicted pred preds yhat ypred
        yscore pop estimate risk chance propensity belief certainty credence sigmoid softmax output
        vorhersage prognose konfidenz risiko prevision confiance risque pronostico prediccion previsione voorspelling
    """),
)
LABEL = (
    _known("""
        ytrue ytest yval y label labels target targets outcome outcomes actual actuals truth groundtruth gt gold
        observed observation obs true correct
        ziel zielvariable ergebnis eingetreten cible resultat etiquette observe objetivo resultado etiqueta obiettivo
        esito etichetta doel uitkomst
    """),
    _known("""
        class classe klasse event ereignis evenement response result status positive success hit occurred happened
        realized realised resolution resolved clicked click converted conversion purchased bought churn churned exited
        attrition default defaulted fraud spam died dead death mortality survived survival alive readmitted readmission
        relapse disease diagnosis sepsis cancer malignant won win winner rain rained failure failed fail anomaly attack
        toxic duplicate paid accepted approved returned accident claim subscribed
        gekundigt gekuendigt kundigung kuendigung ausfall geklickt gekauft betrug verstorben achat clic fraude deces
        desabonnement impago
    """),
)
# What a model decided, which is not what came true.
DECIDED = _known(
    "pred preds prediction predictions predicted ypred yhat hat estimate estimated forecast decision vorhersage"
)
# What says whether a decision was right; and what is said of the label itself, as in `correct_label`.
RIGHT = _known("correct correctly iscorrect wascorrect right accurate hit ishit")
NAMED = _known("label labels class classes category answer answers option choice")
# Probabilities on another scale.
LOGITS = _known("logit logits logodds")
# What stands beside a probability: the ends of an interval, errors, p-values.
BESIDE = _known("""
    lower upper lo hi low high lcl ucl ci min max std stdev sd se err error var variance threshold cutoff pvalue pval
    padj rank quantile entropy logloss brier
""")
# Who, when, and for what use.
SORTING = _known("""
    id ids key index idx uuid fold split train test valid validation holdout seed date time timestamp year month day
    week hour age sex gender
""")
WEIGHT = _known("w weight weights wt wgt sampleweight sampleweights caseweight gewicht poids peso")
# How labels are written that say no or yes; and how names of columns end that speak of 0 or of 1.
TRUTHS = (
    ("0", "1"),
    ("no", "yes"),
    ("false", "true"),
    ("n", "y"),
    ("f", "t"),
    ("negative", "positive"),
    ("neg", "pos"),
    ("nein", "ja"),
    ("non", "oui"),
    ("falsch", "wahr"),
    ("faux", "vrai"),
)
# Labels that stand for 0 and for 1.
PAIRS = (
    *TRUTHS,
    ("loss", "win"),
    ("lost", "won"),
    ("lose", "win"),
    ("l", "w"),
    ("incorrect", "correct"),
    ("wrong", "right"),
    ("failure", "success"),
)
# Words of which one side speaks of what the other one does not: who died has not survived.
OPPOSITES = tuple(
    (_known(one), _known(other))
    for one, other in (
        ("win won winner wins", "loss lost lose loses loser"),
        ("success successful succeeded pass passed", "failure failed fail fails"),
        ("died dead death deaths mortality deceased", "survived survival survive survives alive"),
        ("correct right", "incorrect wrong"),
        ("default defaulted", "paid repaid repayment"),
        ("churn churned churner exited attrition leave leaving left", "retain retained retention stay stays stayed"),
        ("spam", "ham"),
        ("fraud fraudulent", "legit legitimate genuine"),
        ("malignant cancer", "benign"),
        ("sick ill diseased disease", "healthy"),
        ("rain rained rainy raining wet precipitation", "dry"),
        ("good", "bad"),
        ("up rise rises rose increase increased", "down fall falls fell decrease decreased"),
        ("present presence", "absent absence"),
        ("anomaly anomalous abnormal attack outlier", "normal inlier"),
        ("late delayed delay", "punctual timely"),
        ("hit", "miss missed"),
        ("accepted approved accept", "rejected denied reject declined"),
        ("positive", "negative"),
        ("home", "away"),
        ("over", "under"),
        ("fake", "real"),
        ("toxic unsafe", "safe nontoxic"),
    )
)
_BOTH_WAYS = (*OPPOSITES, *((b, a) for a, b in OPPOSITES))
# Words, or beginnings of words, that say the opposite of what follows.
_NOT = _known("no not non un without never nicht kein keine pas sans sin geen niet")
# Words that stand in names of all columns, and so do not say of which event they speak.
_NEUTRAL = LABEL[0] | PROBA[0] | PROBA[1] | DECIDED | _known("p is has was will flag model of the")


# --- what a name says -------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1 << 17)
def words(name: str) -> tuple[str, ...]:
    """Words of a name, small and plain: of ``churnProba_1`` they are churn, proba, 1."""
    plain = _EDGE.sub(" ", name).casefold()
    if not plain.isascii():
        plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    return tuple(_WORD.findall(plain))


@functools.lru_cache(maxsize=1 << 17)
def _terms(name: str) -> frozenset[str]:
    """The words of a name, two of them in one, and all of them in one."""
    own = words(name)
    pairs = (first + second for first, second in itertools.pairwise(own))
    return frozenset([*own, *pairs, "".join(own)])


def squashed(name: str) -> str:
    """All words of a name in one."""
    return "".join(words(name))


def has(name: str, known: frozenset[str]) -> bool:
    """Whether a name is one of these words, or has one of them in it."""
    return not known.isdisjoint(_terms(name))


def says_probability(name: str) -> bool:
    """Also ``p``, ``p_churn`` and ``P(rain)``, and what German makes one word of."""
    own = words(name)
    return own[:1] == ("p",) or has(name, PROBA[0]) or any(word.endswith("wahrscheinlichkeit") for word in own)


def says_score(name: str) -> bool:
    """Whether a name may be that of a probability."""
    return has(name, PROBA[1])


def says_event(name: str, event: tuple[str, ...]) -> bool:
    """Whether a name speaks of an event that has these words: ``p_click`` of `clicked`, ``mortality`` of `died`."""
    told_not, own_not = denied(words(name)), denied(event)
    told, own = set(words(name)) - told_not, set(event) - own_not
    same = any(told & a and own & a for a, _ in _BOTH_WAYS)
    return same or _meet(told - _NEUTRAL, own - _NEUTRAL) or _meet(told_not, own_not)


def says_opposite(name: str, event: tuple[str, ...]) -> bool:
    """Whether a name speaks of the opposite of an event: ``p_dry`` or ``p_no_rain`` of `rain`."""
    told, own = set(words(name)), set(event)
    if any(told & a and own & b and not told & b and not own & a for a, b in _BOTH_WAYS):
        return True
    told_not, own_not = denied(words(name)), denied(event)
    return _meet(told_not, own - own_not) or _meet(told - told_not, own_not)


def denied(own: tuple[str, ...]) -> set[str]:
    """What stands after a no: ``churn`` in `no churn` and, as far as one can tell, in `nonchurn`."""
    within = {word.removeprefix(no) for word in own for no in _NOT if word.startswith(no) and len(word) > len(no) + 2}
    return within.union(second for first, second in itertools.pairwise(own) if first in _NOT)


def _meet(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether two words are forms of one, as rain and rained are."""
    pairs = itertools.product(some, others)
    return any(a == b or (min(len(a), len(b)) > 2 and (a.startswith(b) or b.startswith(a))) for a, b in pairs)


# --- what a column holds ----------------------------------------------------------------------------------------------


def is_two(column: Column) -> bool:
    """Whether all values are known to stand for 0 and 1."""
    if column.kind == "number":
        return not column.many and set(column.values) in ({0}, {1}, {0, 1}, {-1, 1})
    return column.kind == "bool" or (column.kind == "text" and pair_of(column) is not None)


def may_be_two(column: Column) -> bool:
    """Whether there are two values, of which one may count as 1."""
    return column.kind in ("text", "number") and not column.many and len(column.values) == 2 and not is_unit(column)


def is_classes(column: Column) -> bool:
    """Whether there are three values or more, as classes are written: words or whole numbers."""
    more = column.many or len(column.values) > 2
    whole = column.kind == "number" and is_outside(column) and all(value == value // 1 for value in column.values)
    return more and (whole or column.kind == "text") and not is_percentages(column)


def pair_of(column: Column) -> tuple[str, str] | None:
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


def is_unit(column: Column) -> bool:
    """Whether a column holds numbers in [0, 1], and not only 0 and 1."""
    if column.kind != "number" or column.low is None or column.high is None or is_outside(column):
        return False
    return column.many or not set(column.values) <= {0, 1}


def is_outside(column: Column) -> bool:
    """Whether a column holds numbers that are no probabilities."""
    return column.low is not None and column.high is not None and not 0.0 <= column.low <= column.high <= 1.0


def is_unfit(column: Column) -> bool:
    """Whether a column seems to hold probabilities, written so that they cannot be read."""
    if column.kind == "text":
        return says_probability(column.name) or is_percentages(column)
    named = says_probability(column.name) or says_score(column.name) or has(column.name, LOGITS)
    return named and is_outside(column)


def is_percentages(column: Column) -> bool:
    """Whether there are percentages with their sign, which makes them text."""
    return column.kind == "text" and any(_PERCENT.fullmatch(str(value).strip()) for value in column.values)


def is_number(name: str) -> bool:
    """Whether a name is a number, as those of columns seldom are."""
    try:
        return float(name) == float(name)
    except ValueError:
        return False


# --- how messages show it ---------------------------------------------------------------------------------------------


def shown(name: str, letters: int | None = _LETTERS) -> str:
    """A name in a message. It comes from a file: neither long ones nor signs that steer a terminal are passed on."""
    name = name if letters is None or len(name) <= letters else f"{name[:letters]}..."
    return name if name.isprintable() and name else repr(name)


def flagged(flag: str, name: str) -> str:
    """A flag and its value, as they are typed."""
    text = shlex.quote(name) if name.isprintable() else shown(name)
    return f"{flag}={text}" if name.startswith("-") else f"{flag} {text}"


def listed(values: Iterable[str], more: bool) -> str:
    """Values, and dots if there are more."""
    return ", ".join([*values, *["..."] * more])


def cut(value: object) -> str:
    """A value in a message, as Python writes it."""
    return repr(value)[:_LETTERS]


def names(columns: Sequence[Column], most: int) -> str:
    """The first names of columns, and dots if there are more."""
    return listed([shown(column.name) for column in columns[:most]], len(columns) > most) or "none"


def values_in(column: Column) -> str:
    """The first values of a column."""
    return listed(map(cut, column.values), column.many)


# --- what the user named -----------------------------------------------------------------------------------------


def check_named(columns: Sequence[Column], named: dict[str, Sequence[str | None]], where: str) -> None:
    """Named columns must be there, once; and those that must be in the file itself each be one thing only."""
    roles: dict[str, str] = {}
    for flag, given in named.items():
        for name in (name for name in given if name is not None):
            _refuse_missing(columns, flag, name, where)
            refuse_double(columns, name, where)
            if flag not in ("--by", "--key"):  # which may also name columns of the path, and columns in other use
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
    there = [column.name for column in columns]
    if name in there:
        return
    plain = {squashed(other): other for other in reversed(there)}
    few = list(plain) if len(plain) <= _COMPARED else []
    close = [squashed(name)] if squashed(name) in plain else difflib.get_close_matches(squashed(name), few, n=1)
    meant = f" Did you mean {shown(plain[close[0]])}?" if close else ""
    listed = names(columns, _LISTED)
    raise ValueError(f"{where} has no column {name!r} (named by {flag}).{meant} Its columns: {listed}.")


def refuse_double(columns: Sequence[Column], name: str, where: str) -> None:
    """Refuse a name that two columns have: it does not say which is meant."""
    n = sum(column.name == name for column in columns)
    if n > 1:
        raise ValueError(f"{where} has {n} columns named {name!r}; rename all but one.")


def converted(column: Column, given: str, where: str) -> str | int | float | bool:
    """The label that the user typed, as the column has it."""
    flag = flagged("--pos-label", given)
    label: str | int | float | bool = given
    if column.kind == "bool":
        truth = {"true": True, "t": True, "1": True, "yes": True, "false": False, "f": False, "0": False, "no": False}
        if given.casefold() not in truth:
            raise ValueError(f"{flag}: `{shown(column.name)}` in {where} holds True and False; name one of them.")
        label = truth[given.casefold()]
    elif column.kind == "number":
        try:
            label = int(given) if re.fullmatch(r"[+-]?[0-9]+", given) else float(given)
        except ValueError:
            raise ValueError(
                f"{flag}: `{shown(column.name)}` in {where} holds numbers ({values_in(column)}); name one."
            ) from None
        label = int(label) if isinstance(label, float) and label.is_integer() else label
    if column.kind in ("text", "number") and not column.many and len(column.values) > 1 and label not in column.values:
        raise ValueError(
            f"{flag}: there is no such label in `{shown(column.name)}` of {where}; it holds {values_in(column)}."
        )
    return label
