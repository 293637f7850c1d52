"""Reasons why columns that look like those of many classes are not taken for them, and what to change."""

import math
from collections.abc import Sequence

from truthcal.cli.class_columns import COMMANDS, FEWEST, known_prefixes
from truthcal.cli.column_guess import is_outcome_name
from truthcal.cli.named_columns import flagged, where_not
from truthcal.cli.request import Request
from truthcal.core.class_rows import SUM_TOLERANCE
from truthcal.core.params import list_shown, shown
from truthcal.io.files.class_rows import label_code, label_codes, same_but_for_case
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
    return [c for c in possible if sum(bool(same_but_for_case(str(x), classes)) for x in c.labels) > 1]


def _problem(prefix: str, columns: Sequence[Column], label: Column) -> str:
    """Word what keeps these columns from being the classes in the column of labels; "" if it has other values."""
    classes = [column.name.removeprefix(prefix) for column in columns]
    codes, values = label_codes(classes), [str(value) for value in label.labels]
    similar = {value: same_but_for_case(value, classes) for value in values}
    if not any(label_code(value, codes) >= 0 or similar[value] for value in values):
        return ""
    if value := next((value for value in values if label_code(value, codes) < 0 and similar[value]), ""):
        names = f"{shown(label.name)} holds {shown(value)}, and the column is {shown(prefix + similar[value])}"
        return f"{names}: they differ in case or spaces. Rename the columns, or the labels, so that they are the same."
    if unknown := [value for value in values if label_code(value, codes) < 0]:
        cure = (
            f"Add the column {shown(prefix + unknown[0])}, or leave out these rows: {where_not(label.name, unknown[0])}"
        )
        return f"the class {shown(unknown[0])} in {shown(label.name)} has no column. {cure}"
    if large := next((column for column in columns if column.high is not None and column.high > 1.0), None):
        return f"{shown(large.name)} holds {large.high:g}, which is no probability. Percentages? Divide by 100."
    return _problem_with_sums(prefix, columns, {label_code(value, codes) for value in values}, label)


def _problem_with_sums(prefix: str, columns: Sequence[Column], happened: set[int], label: Column) -> str:
    sums = [math.fsum(row) for row in zip(*(column.numbers for column in columns), strict=False)]
    row = next((row for row, total in enumerate(sums) if abs(total - 1.0) > SUM_TOLERANCE), None)
    if row is None:
        return ""
    problem = f"they add up to {sums[row]:.4g} in row {row}, not to 1."
    with_rows = [column for k, column in enumerate(columns) if k in happened]
    without = [column.name for column in columns if column not in with_rows]
    rest = [math.fsum(values) for values in zip(*(column.numbers for column in with_rows), strict=False)]
    if without and all(abs(total - 1.0) <= SUM_TOLERANCE for total in rest):
        flags = " ".join(flagged("--proba", column.name) for column in with_rows)
        names = list_shown(without)
        return f"{problem} No row of {shown(label.name)} is of the class of {names}; name the others: {flags}"
    return f"{problem} Is the column of a class missing, or are these events that do not exclude each other?"
