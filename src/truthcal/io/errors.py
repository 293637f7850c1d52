"""Errors about rows, labels and column types that engines, files and queries share."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import cure_outside_unit, invalid, refuse_weights_between
from truthcal.core.group_column import GIVE_A_GROUP
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.row_codes import ROW_RULES, ZERO_WEIGHT, RowRule, code_of
from truthcal.io.void_words import first_void_word


@dataclass(frozen=True, slots=True)
class BadRows:
    """Rows with the same code: their number, their smallest and largest value; if known, the first row and its value.

    The row is counted from 0 in its file.
    """

    n: int = 0
    low: float = math.nan
    high: float = math.nan
    row: float = math.nan
    value: float = math.nan

    def __add__(self, other: "BadRows") -> "BadRows":
        low, high = float(np.fmin(self.low, other.low)), float(np.fmax(self.high, other.high))
        first = other if math.isnan(self.row) or other.row < self.row else self
        return BadRows(self.n + other.n, low, high, first.row, first.value)

    @property
    def example(self) -> float:
        """The value in the first row; one of the extremes if it is unknown."""
        return self.value if not math.isnan(self.row) else self.high if self.high > 1 else self.low

    def place(self, total: int, where: str) -> str:
        """Return the first row, counted from 0, if it is known, and how many there are of all rows.

        If the row is known, rows are read in batches, and `total` are those of the file so far.
        """
        rows = f"{self.n:,} of {total:,} row{'s' if total != 1 else ''}"
        if math.isnan(self.row):
            return f"in {where} ({rows})"
        return f"at row {self.row:.0f} of {where} ({rows} read)"


def refuse_invalid_rows(numbers: Mapping[str, NDArray[np.float64]], roles: ColumnRoles, where: str) -> None:
    """Raise an error if a table of sums has no rows, or codes of invalid rows."""
    total = int(numbers["n"].sum())
    refuse_no_rows(total, where)
    bad_rows: dict[int, BadRows] = {}
    for i in np.flatnonzero(numbers["code"] < ZERO_WEIGHT):
        code, n, low, high = (float(numbers[name][i]) for name in ("code", "n", "low", "high"))
        if low > high:  # some engines return this for the extremes of no numbers
            low = high = np.nan
        bad_rows[int(code)] = bad_rows.get(int(code), BadRows()) + BadRows(int(n), low, high)
    refuse_bad_rows(bad_rows, total, roles, where)


def refuse_bad_rows(bad_rows: Mapping[int, BadRows], total: int, roles: ColumnRoles, where: str) -> None:
    """Raise an error for the first rule in ROW_RULES that rows break."""
    for rule in ROW_RULES:
        if rule.code not in bad_rows or rule.check == "zero":
            continue
        rows, column = bad_rows[rule.code], getattr(roles, rule.role)
        if rule.check in ("missing", "nonfinite"):  # engines disagree on whether nan is null: count both
            missing, nonfinite = (bad_rows.get(code_of(rule.role, c), BadRows()) for c in ("missing", "nonfinite"))
            rows = missing + nonfinite
            if not math.isnan(nonfinite.row):  # the message names the infinite value, so it needs its row
                rows = replace(rows, row=nonfinite.row, value=nonfinite.value)
        if rule.role == "y_proba" and rows.n < total:  # the other rows are in [0, 1]
            rows = replace(rows, high=max(rows.high, 1.0))
        _raise_row_error(rule, rows, column_and_role(column, rule.role), rows.place(total, where))


def _raise_row_error(rule: RowRule, rows: BadRows, name: str, place: str) -> NoReturn:
    value, fix = rows.example, ""
    if rule.check == "extreme":
        refuse_weights_between(rows.low, rows.high, name)
    if rule.check in ("missing", "nonfinite"):
        value = next((x for x in (rows.value, rows.low, rows.high) if math.isinf(x)), math.nan)
        kind = "nonfinite" if math.isinf(value) else "missing"
        rule = next(other for other in ROW_RULES if (other.role, other.check) == (rule.role, kind))
    elif rule.check == "negative" and math.isnan(rows.row):
        value = rows.low
    elif rule.role == "y_proba":
        fix = cure_outside_unit(rows.low, rows.high)
    labels = ("pos_label",) if (rule.role, rule.check) == ("y_true", "outside_unit") else ()
    problem = rule.message.format(value=value, place=place, fix=fix)
    cause: Any = "missing" if rule.check == "missing" and rule.role != "sample_weight" else ""
    cause = "percent" if fix.startswith("Percentages?") else cause
    raise invalid(rule.role, problem, subject=name, fix=labels, cause=cause)


def column_and_role(column: str | None, role: str) -> str:
    """Return the name of a column for error messages, with its role unless both are the same."""
    return f"`{column}` ({role})" if column != role else f"`{role}`"


def refuse_no_rows(total: int, where: str) -> None:
    """Raise an error if there are no rows."""
    if total == 0:
        raise ValueError(f"{where} has no rows; at least one is needed.")


def refuse_more_labels(others: list[Any], positives: bool, roles: ColumnRoles) -> None:
    """Raise an error if there is more than one label other than the positive one."""
    if len(set(others)) <= 1:
        return
    listed = ", ".join(map(_shown_label, sorted(set(others), key=str)[:4]))
    positive = _shown_label(roles.pos_label)
    if not positives:
        problem = f"must be one of the labels in `{roles.y_true}` ({listed}, ...); got {positive}."
        raise invalid("pos_label", problem)
    fix = f"for one class against the rest, create a column that is true where the label is {positive}."
    problem = f"has more than two different labels ({positive}, {listed}); {fix}"
    raise invalid("y_true", problem, subject=column_and_role(roles.y_true, "y_true"))


def _shown_label(label: Any) -> str:
    """Format a label for an error: integers that were read as floats without the point."""
    return f"{label:.0f}" if isinstance(label, float) and label.is_integer() else repr(label)


def refuse_impossible_sums(where: str) -> NoReturn:
    """Raise an error for sums that no rows can have: the engine is wrong, not the rows."""
    problem = f"{where} returned sums that no rows can have, so it must have skipped nan or miscounted."
    cure = "Please report this with the name and version of the engine. As a workaround, use another engine."
    raise ValueError(f"{problem} {cure}")


def refuse_column_type(column: str, role: str, kind: str, *, text: bool, word: str = "") -> NoReturn:
    """Raise an error for a column that holds no numbers; `word` is an example of its text."""
    fix = "Convert it to numbers first."
    if kind.startswith("struct"):
        fix = f"Make columns of its fields, for JSON lines with: jq -c '. + .{column}'"
    if text:
        fix = "Numbers written as text? Convert them first."
        if re.fullmatch(r"[0-9.,]+ ?%", word):
            fix = "Percentages? Remove the sign and divide by 100."
        elif re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", word) and role == "sample_weight":
            fix = "Thousands separators? Write 1200, not 1,200."
        elif re.fullmatch(r"[0-9]*,[0-9]+", word):
            fix = "A decimal comma? Write 0.5, not 0,5."
    problem, subject = f"must contain numbers; its type is {kind}.", f"`{column}` ({role})"
    if text and role != "sample_weight" and first_void_word([word]):
        cure = "Words for a missing value? Drop those rows."
        raise invalid(role, f"{problem} {cure}", TypeError, subject=subject, cause="missing")
    if text and role == "y_true":
        fix_label = f"{problem} Name the label that counts as 1 with"
        raise invalid(role, fix_label, TypeError, subject=subject, fix=("pos_label",))
    is_percent = role == "y_proba" and fix.startswith("Percentages?")
    raise invalid(role, f"{problem} {fix}", TypeError, subject=subject, cause="percent" if is_percent else "")


def refuse_other_type_of_label(roles: ColumnRoles, kind: str, *, text: bool, number: bool) -> None:
    """Raise an error if the positive label cannot be among the labels of this type."""
    if not (text or number):
        problem = f"must contain labels: numbers, True/False or text; its type is {kind}."
        raise invalid("y_true", problem, TypeError, subject=f"`{roles.y_true}` (y_true)")
    if text != isinstance(roles.pos_label, str):
        problem = f"must have the same type as the labels in `{roles.y_true}`, {kind}; got {roles.pos_label!r}."
        if text:
            problem = f"{problem} Name the label as text:"
        raise invalid("pos_label", problem, fix=("pos_label", str(roles.pos_label)) if text else ())


def refuse_missing_groups(name: str, place: str) -> NoReturn:
    """Raise an error for rows that have no group, although the others have."""
    subject = column_and_role(name, "groups")
    raise invalid("groups", f"has a missing value {place}. {GIVE_A_GROUP}", subject=subject)


def refuse_nested_groups(name: str, kind: str) -> NoReturn:
    """Raise an error for a grouping column of lists or structs."""
    raise TypeError(f"`{name}` (by) must contain text, numbers or dates; it is {kind}.")
