"""Columns of many classes: named by a prefix or one by one, or guessed from labels that are part of column names."""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.cli.column_guess import guess_messages, is_outcome_name, unused_weights
from truthcal.cli.named_columns import check_named, flagged, require_header
from truthcal.cli.output import print_message
from truthcal.cli.request import Request
from truthcal.core.class_rows import MOST_CLASSES
from truthcal.core.frame_columns import require_columns
from truthcal.core.params import list_shown
from truthcal.io.files.class_labels import LabelMatcher
from truthcal.io.files.class_rows import ClassColumns
from truthcal.io.files.class_sums import are_sums
from truthcal.io.files.preview import Column, Preview

COMMANDS = ("assess", "test", "compare", "report", "check")
# Prefixes that are guessed, with any case and separator: proba_, prob_, p_, "Prob ".
_PREFIX = re.compile(r"(?:probability|proba|prob|p)[_ .:-]+", re.IGNORECASE)
FEWEST = 3  # columns of classes that are not named by a prefix
_ONE_EVENT = "For one class against the rest, add a 0/1 column and pass it with --label, and its column with --proba."


def find_class_columns(request: Request, preview: Preview) -> ClassColumns | None:
    """Find the columns of many classes, and print a guess; None if the predictions are of one event."""
    if request.command not in COMMANDS or (request.key is not None and not request.proba_prefix):
        return None
    if "" in request.proba_prefix:
        raise ValueError("--proba-prefix must not be empty; name the columns of the classes with --proba.")
    where, columns = str(preview.source), preview.columns
    prefixes = request.proba_prefix or _guess_prefixes(request, columns, where)
    if not prefixes:
        return None
    _refuse_other_options(request)
    flags = _named_columns(request, columns, where)
    labels, models = _models(request, prefixes, columns, flags, where)
    used = {*flags, *(name for names in models.values() for name in names)}
    free = [column for column in columns if column.name not in used and not column.in_path]
    label = request.label if request.label is not None else _guess_label(free, labels, where)
    guessed = [flagged("--label", label)] if request.label is None else []
    if not request.proba_prefix and not request.proba:
        guessed += [flagged("--proba-prefix", prefix) for prefix in prefixes]
    weights = unused_weights(free) if request.weight is None else []
    for message in guess_messages(guessed, [], weights):
        print_message(request, message)
    return ClassColumns(label, labels, models, request.weight, request.group, request.percent, request.normalize)


def known_prefixes(columns: Sequence[Column]) -> list[str]:
    """Return the prefixes in the names of these columns that may be those of classes, the longest first."""
    found = dict.fromkeys(prefix[0] for column in columns if (prefix := _PREFIX.match(column.name)))
    return sorted(found, key=len, reverse=True)


def describe_classes(request: Request, columns: ClassColumns) -> dict[str, Any]:
    """Describe the columns of many classes and their roles for JSON and the report."""
    return {
        "label": columns.label,
        "proba": [name for names in columns.models.values() for name in names],
        "classes": list(columns.labels),
        "weight": request.weight,
        "pos_label": None,
        "by": [],
        "group": request.group,
        "time": None,
    }


def _named_columns(request: Request, columns: Sequence[Column], where: str) -> dict[str, str]:
    """Check the columns named by flags beside those of classes; return the flag of each."""
    require_header(columns, ["--label", "--proba-prefix"], where)
    named = {"--label": [request.label], "--proba": request.proba, "--weight": [request.weight]}
    return check_named(columns, {**named, "--group": [request.group]}, where)


def _refuse_other_options(request: Request) -> None:
    """Reject options that make no sense with many classes."""
    reasons = {
        "proba": "name the columns of classes by their prefix, or one by one" if request.proba_prefix else "",
        "pos_label": f"all classes are assessed together. {_ONE_EVENT}",
        "by": "segments are those of one event. Assess the rows of each segment by themselves, or the classes that "
        f"matter. {_ONE_EVENT}",
        "time": f"the test for change is one of a single event. {_ONE_EVENT}",
        "key": "two files are joined for one event. Put both models into one file, and name both prefixes",
        "input_format": "it is for files with one column of predictions",
        "missing": "rows are left out for one event only. Drop them from the file",
        "fractional": "a class happens or does not. Omit it",
        "question": "forecasts are chosen for one event only. Choose them in the file, or use --group",
        "exact_distcal": "the distance to calibration is defined for one event. Omit it",
    }
    for name, reason in reasons.items():
        if reason and getattr(request, name):
            flag = "--format" if name == "input_format" else f"--{name.replace('_', '-')}"
            other = "--proba-prefix" if name == "proba" else "many classes"
            raise ValueError(f"{flag} cannot be combined with {other}: {reason.rstrip('.')}.")


# --- columns of each model --------------------------------------------------------------------------------------------


def _models(
    request: Request, prefixes: Sequence[str], columns: Sequence[Column], flags: Collection[str], where: str
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the classes, and the columns of each model in their order."""
    found = {prefix: _columns_of(request, prefix, prefixes, columns, flags) for prefix in dict.fromkeys(prefixes)}
    first, *others = found
    for prefix, names in found.items():
        _refuse_few_columns(prefix, names, columns, where)
    labels = tuple(found[first])
    for prefix in others:
        missing = [label for label in labels if label not in found[prefix]]
        more = [label for label in found[prefix] if label not in labels]
        if missing or more:
            where_missing, label = (prefix, missing[0]) if missing else (first, more[0])
            problem = f"both models need the same classes, but {where} has no column {where_missing + label!r}"
            raise ValueError(f"{flagged('--proba-prefix', prefix)}: {problem}.")
    names = _model_names(list(found))
    return labels, {names[prefix]: tuple(found[prefix][label] for label in labels) for prefix in found}


def _columns_of(
    request: Request, prefix: str, prefixes: Sequence[str], columns: Sequence[Column], flags: Collection[str]
) -> dict[str, str]:
    """Return the columns of one model by class. A column that fits two prefixes belongs to the longer one."""
    if request.proba:
        return {name.removeprefix(prefix): name for name in request.proba}
    longer = tuple(other for other in prefixes if other.startswith(prefix) and other != prefix)
    names = [column.name for column in columns if not column.in_path and column.name not in flags]
    fitting = [name for name in names if name.startswith(prefix) and not (longer and name.startswith(longer))]
    return {name.removeprefix(prefix): name for name in fitting if name != prefix}


def _refuse_few_columns(prefix: str, names: dict[str, str], columns: Sequence[Column], where: str) -> None:
    flag = flagged("--proba-prefix", prefix)
    every = [column.name for column in columns]
    if not names:
        raise ValueError(f"{flag}: no column of {where} starts with this. All columns: {list_shown(every)}.")
    if len(names) < 2:
        only = next(iter(names.values()))
        problem = f"only {only!r} of {where} starts with this, but there must be a column for each class"
        raise ValueError(f"{flag}: {problem}. For one event, use {flagged('--proba', only)}.")
    if len(names) > MOST_CLASSES:
        raise ValueError(f"{flag}: {len(names):,} columns of {where} start with this; the limit is {MOST_CLASSES:,}.")
    require_columns([("--proba-prefix", name) for name in names.values()], every, where)


def _model_names(prefixes: Sequence[str]) -> dict[str, str]:
    """Name models by their prefixes, without the punctuation that separates them from the class."""
    short = {prefix: prefix.rstrip("_-.: ") or prefix or "predictions" for prefix in prefixes}
    return short if len(set(short.values())) == len(short) else {prefix: prefix for prefix in prefixes}


# --- guesses ----------------------------------------------------------------------------------------------------------


def _guess_prefixes(request: Request, columns: Sequence[Column], where: str) -> list[str]:
    """Guess the prefix of the columns of classes: none if there are no labels in column names, or for several models.

    All columns of a prefix are probabilities that add up to 1 in the first rows, and the classes in the first rows have
    columns.
    """
    if request.proba:
        prefixes = known_prefixes(columns)
        prefix = next(x for x in (*prefixes, "") if all(name.startswith(x) and name != x for name in request.proba))
        return [prefix] if _are_classes(request, prefix, columns, where) else []
    prefixes = []
    for prefix in known_prefixes(columns):
        fitting = [c for c in columns if c.name.startswith(prefix) and c.name != prefix and not c.in_path]
        labels = [c.name.removeprefix(prefix) for c in fitting]
        if len(fitting) >= FEWEST and _add_up(request, fitting) and _labels_among(request, columns, fitting, labels):
            prefixes.append(prefix)
    if len(prefixes) > 1:
        flags = " or ".join(flagged("--proba-prefix", prefix) for prefix in prefixes)
        raise ValueError(f"Which columns of {where} hold the probabilities of the classes? Use {flags}, or both.")
    return prefixes


def _are_classes(request: Request, prefix: str, columns: Sequence[Column], where: str) -> bool:
    """Tell whether several columns named by --proba are the classes of one model, not several models of one event."""
    chosen = [column for column in columns if column.name in request.proba]
    if len(request.proba) < FEWEST or len(chosen) < len(request.proba):
        return False
    candidates = _labels_among(request, columns, chosen, [name.removeprefix(prefix) for name in request.proba])
    if not candidates:
        return False
    is_binary = any(column.kind == "bool" or set(column.values) <= {0, 1} for column in candidates)
    if not is_binary:
        return True
    if prefix and _add_up(request, chosen):
        problem = f"are these columns of {where} the classes of one model, or several models of one event?"
        cure = f"For classes, use {flagged('--proba-prefix', prefix)}. For several models, name them one at a time."
        raise ValueError(f"{' '.join(flagged('--proba', name) for name in request.proba)}: {problem} {cure}")
    return not prefix and _add_up(request, chosen)


def _labels_among(
    request: Request, columns: Sequence[Column], used: Collection[Column], labels: Sequence[str]
) -> list[Column]:
    """Return the columns that may hold the class of each row: the one that was named, or those with such labels."""
    flags = {request.weight, request.group, *request.by, request.time}
    free = [c for c in columns if c not in used and not c.in_path and c.name not in flags]
    return _label_candidates([c for c in free if request.label in (None, c.name)], labels)


def _label_candidates(columns: Sequence[Column], labels: Sequence[str]) -> list[Column]:
    """Guess the class of each row: columns whose first values are all classes, but not decisions."""
    fitting = [c for c in columns if c.values and _are_labels(LabelMatcher(labels).exact_code, c)]
    fitting = fitting or [c for c in columns if c.values and _are_labels(LabelMatcher(labels).code, c)]
    named = [c for c in fitting if is_outcome_name(c.name)]
    return named or [c for c in fitting if not is_outcome_name(c.name, decision=True)]


def _are_labels(code: Callable[[object], int], column: Column) -> bool:
    """Tell whether all values of a column that are known from its first rows are labels of classes."""
    ends = [x for x in (column.low, column.high) if x is not None]
    return all(code(value) >= 0 for value in [*column.values, *ends])


def _guess_label(columns: Sequence[Column], labels: Sequence[str], where: str) -> str:
    candidates = _label_candidates(columns, labels)
    if len(candidates) != 1:
        _ask_label(candidates, columns, labels, where)
    return candidates[0].name


def _ask_label(candidates: Sequence[Column], columns: Sequence[Column], labels: Sequence[str], where: str) -> NoReturn:
    question = f"Which column of {where} holds the class of each row ({list_shown(labels)})?"
    names = [column.name for column in candidates or columns]
    example = flagged("--label", names[0] if names else "COLUMN")
    raise ValueError(f"{question} Candidates: {list_shown(names)}. Name it: {example}.")


def _add_up(request: Request, columns: Sequence[Column]) -> bool:
    """Tell whether columns add up to 1, or what the options say, in every previewed row without missing values."""
    return are_sums(previewed_sums(columns), percent=request.percent, normalize=request.normalize)


def previewed_sums(columns: Sequence[Column]) -> NDArray[np.float64]:
    """Return the sums of columns in the previewed rows, nan if a value is missing; none for numbers beyond 100."""
    if not columns or not all(column.numbers for column in columns):
        return np.array([])
    return np.asarray(np.array([column.numbers for column in columns]).sum(axis=0))
