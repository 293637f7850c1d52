"""Reasons why columns that look like those of many classes are not taken for them, and what to change."""

from collections.abc import Sequence

import numpy as np

from truthcal.cli.class_columns import COMMANDS, FEWEST, known_prefixes, previewed_sums
from truthcal.cli.column_guess import is_outcome_name
from truthcal.cli.named_columns import flagged, where_not
from truthcal.cli.request import Request
from truthcal.core.class_rows import SUM_TOLERANCE
from truthcal.core.params import list_shown, shown
from truthcal.io.files.class_labels import LabelMatcher
from truthcal.io.files.class_sums import are_sums, suggest_options
from truthcal.io.files.preview import Column


def explain_classes(request: Request, columns: Sequence[Column], where: str) -> str:
    """Explain what is wrong with columns that look like those of many classes; "" if none do."""
    if request.command not in COMMANDS or request.proba or request.proba_prefix:
        return ""
    for prefix in known_prefixes(columns):
        fitting = [c for c in columns if c.name.startswith(prefix) and c.name != prefix and c.kind == "number"]
        others = [c for c in columns if c not in fitting and not c.in_path]
        if len(fitting) < FEWEST:
            continue
        for label in _label_candidates(request, prefix, fitting, others):
            problem = _problem(prefix, fitting, label)
            if problem:
                names = list_shown([c.name for c in fitting])
                return f"The columns {names} of {where} look like the probabilities of classes, but {problem}"
    return ""


def _label_candidates(
    request: Request, prefix: str, fitting: Sequence[Column], others: Sequence[Column]
) -> list[Column]:
    """Return columns that may hold the classes: the one that was named, or those with two classes or more."""
    if request.label is not None:
        return [column for column in others if column.name == request.label]
    classes = [column.name.removeprefix(prefix) for column in fitting]
    possible = [column for column in others if not is_outcome_name(column.name, decision=True)]
    return [c for c in possible if sum(code >= 0 for code in map(LabelMatcher(classes).code, c.labels)) > 1]


def _problem(prefix: str, columns: Sequence[Column], label: Column) -> str:
    """Word what keeps these columns from being the classes in the column of labels; "" if it has other values."""
    matcher = LabelMatcher([column.name.removeprefix(prefix) for column in columns])
    codes = {str(value): matcher.code(value) for value in label.labels}
    if max(codes.values(), default=-1) < 0:
        return ""
    if unknown := next((value for value, code in codes.items() if code < 0), ""):
        if conflict := matcher.conflict(unknown):
            return f"{shown(label.name)} holds {shown(unknown)}, {conflict}"
        cure = f"Add the column {shown(prefix + unknown)}, or leave out these rows: {where_not(label.name, unknown)}"
        return f"the class {shown(unknown)} in {shown(label.name)} has no column. {cure}"
    return _problem_with_sums(prefix, columns, set(codes.values()), label)


def _problem_with_sums(prefix: str, columns: Sequence[Column], happened: set[int], label: Column) -> str:
    sums = previewed_sums(columns)
    options = suggest_options(sums)
    large = next((column for column in columns if column.high is not None and column.high > 1.0), None)
    if large and not options:
        return f"{shown(large.name)} holds {large.high:g}, which is no probability."
    bad = np.abs(sums - 1.0) > SUM_TOLERANCE
    if not bad.any():
        return ""
    row = int(np.argmax(bad))
    problem = f"they add up to {sums[row]:.4g} in row {row}, not to 1."
    with_rows = [column for k, column in enumerate(columns) if k in happened]
    without = [column.name for column in columns if column not in with_rows]
    if without and are_sums(previewed_sums(with_rows), percent=False, normalize=False):
        flags = " ".join(flagged("--proba", column.name) for column in with_rows)
        names = list_shown(without)
        return f"{problem} No row of {shown(label.name)} is of the class of {names}; name the others: {flags}"
    others = "Is the column of a class missing, or are these events that do not exclude each other?"
    return f"{problem} {options or others}"
