"""What is said of rows that cannot be used, by codes that an engine, a file or a query found."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal.core.checks import cure_outside_unit, refuse_weights_between
from truthcal.io import row_codes
from truthcal.io.column_roles import ColumnRoles


@dataclass(frozen=True, slots=True)
class Found:
    """Rows with the same code: how many, the smallest and largest of their values in question, and the first."""

    n: int = 0
    low: float = math.nan
    high: float = math.nan
    row: float = math.nan

    def __add__(self, other: "Found") -> "Found":
        low, high = _least(self.low, other.low), -_least(-self.high, -other.high)
        return Found(self.n + other.n, low, high, _least(self.row, other.row))


def _least(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else min(a, b)


def refuse_bad_rows(found: Mapping[int, Found], total: int, roles: ColumnRoles, where: str) -> None:
    """Refuse, by one error, if any code says that rows cannot be used."""
    kinds = (
        (roles.y_true, "y_true", row_codes.TRUE_NULL, row_codes.TRUE_WILD, row_codes.TRUE_OUTSIDE),
        (roles.y_proba, "y_proba", row_codes.PROBA_NULL, row_codes.PROBA_WILD, row_codes.PROBA_OUTSIDE),
        (roles.sample_weight, "sample_weight", row_codes.WEIGHT_NULL, row_codes.WEIGHT_WILD, row_codes.WEIGHT_OUTSIDE),
    )
    for column, role, null, wild, outside in kinds:
        name = _named(column, role)
        missing = found.get(null, Found()) + found.get(wild, Found())
        if missing.n:
            _refuse_missing(missing, name, _place(missing, total, where))
        if outside in found:
            _refuse_outside(found[outside], role, name, _place(found[outside], total, where))
    if row_codes.WEIGHT_EXTREME in found:
        extreme = found[row_codes.WEIGHT_EXTREME]
        refuse_weights_between(extreme.low, extreme.high, _named(roles.sample_weight, "sample_weight"))


def _named(column: str | None, role: str) -> str:
    return f"`{column}` ({role})" if column != role else f"`{role}`"


def _place(found: Found, total: int, where: str) -> str:
    """Where such a row is, if known, and how many there are. Rows are counted from 0, as everywhere."""
    rows = f"{found.n:,} of {total:,} row{'s' if total != 1 else ''}"
    if math.isnan(found.row):
        return f"in {where} ({rows})"
    return f"at row {found.row:.0f} of {where} ({rows} read with it)"


def _refuse_missing(found: Found, name: str, share: str) -> NoReturn:
    if math.isinf(found.low) or math.isinf(found.high):
        example = found.low if math.isinf(found.low) else found.high
        raise ValueError(
            f"{name} must hold finite numbers; found {example!r} {share}, counting null and nan. Drop those rows, or "
            "mend them deliberately; infinite log-odds need the sigmoid first."
        )
    raise ValueError(f"{name} has a missing value (null or nan) {share}. Drop those rows, or fill them deliberately.")


def _refuse_outside(found: Found, role: str, name: str, share: str) -> NoReturn:
    low, high = found.low, found.high
    example = f"found {high if high > 1 else low!r} {share}"
    if role == "sample_weight":
        raise ValueError(f"{name} must not be negative; found {low!r} {share}. Drop or mend these rows.")
    if role == "y_proba":
        raise ValueError(f"{name} must lie in [0, 1]; {example}. {cure_outside_unit(low, high)}")
    raise ValueError(
        f"{name} must hold 0/1, True/False or probabilities in [0, 1]; {example}. For two labels other than 0 and 1, "
        "name the positive one with `pos_label`."
    )


def refuse_no_rows(total: int, where: str) -> None:
    """Nothing can be said of no rows."""
    if total == 0:
        raise ValueError(f"{where} has no rows; at least one is needed.")


def refuse_more_labels(others: list[Any], positives: bool, roles: ColumnRoles) -> None:
    """Beside the positive label there must be one other at most."""
    if len(set(others)) <= 1:
        return
    listed = ", ".join(repr(label) for label in sorted(set(others), key=str)[:4])
    if not positives:
        raise ValueError(f"pos_label={roles.pos_label!r} is not among the labels in `{roles.y_true}` ({listed}, ...).")
    raise ValueError(
        f"{_named(roles.y_true, 'y_true')} has more than two different labels ({roles.pos_label!r}, {listed}); for one "
        f"class against the rest make a column that says whether the label is {roles.pos_label!r}."
    )


def refuse_wrong_sums(where: str) -> NoReturn:
    """Sums that no rows can have: a check of the engine, not of the rows."""
    raise ValueError(
        f"{where} returned sums that rows cannot have, so it must have passed over nan or counted wrongly. Please "
        "report this with the name and version of the engine; copy the rows into another one for now."
    )


# --- types ------------------------------------------------------------------------------------------------------------


def refuse_type(column: str, role: str, kind: str, *, text: bool, word: str = "") -> NoReturn:
    """A column that does not hold numbers, but text such as this word."""
    cure = "Convert it to numbers first."
    if text:
        cure = "Numbers written as text? Convert them first."
        if re.fullmatch(r"[0-9.,]+ ?%", word):
            cure = "Percentages? Remove the sign and divide by 100."
        elif re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", word) and role == "sample_weight":
            cure = "Separators of thousands? Write 1200, not 1,200."
        elif re.fullmatch(r"[0-9]*,[0-9]+", word):
            cure = "A decimal comma? Write 0.5, not 0,5."
        if role == "y_true":
            cure = "Name the label that counts as 1 with `pos_label`."
    raise TypeError(f"`{column}` ({role}) must hold numbers; its type is {kind}. {cure}")


def refuse_other_kind_of_label(roles: ColumnRoles, kind: str, *, text: bool, number: bool) -> None:
    """A positive label that cannot be among the labels."""
    if not (text or number):
        raise TypeError(f"`{roles.y_true}` (y_true) must hold labels: numbers, True/False or text; its type is {kind}.")
    if text != isinstance(roles.pos_label, str):
        cure = f" Name the label as text: pos_label={str(roles.pos_label)!r}." if text else ""
        raise ValueError(
            f"pos_label={roles.pos_label!r} is not of the kind of the labels in `{roles.y_true}`, whose type is {kind}."
            f"{cure}"
        )


def refuse_mixed_groups(name: str, one: tuple[str, Any], other: tuple[str, Any]) -> NoReturn:
    """A grouping column that is of one kind in one file and of another in the next."""
    raise ValueError(
        f"`{name}` (by) is {one[0]} in {one[1]} but {other[0]} in {other[1]}; groups could not be told to be the same. "
        "Scan these files apart, or write the column alike."
    )


def refuse_nested_groups(name: str, kind: str) -> NoReturn:
    """Lists and the like make no groups."""
    raise TypeError(f"`{name}` (by) must hold text, numbers or dates; it is {kind}.")


def refuse_result(what: str) -> NoReturn:
    """Not what a query of `sketch_sql` returns."""
    raise ValueError(
        "`result` must be all that a query of sketch_sql returned, with `by` and `pos_label` as they were given there; "
        f"got {what}."
    )


def refuse_part(rows: int, total: int) -> None:
    """Some of the lines of a result are missing, or there are too many."""
    if rows != total:
        raise ValueError(
            f"`result` is not all that the query returned: its lines speak of {rows:,} rows, and there are {total:,}. "
            "Some tools return only the first thousand lines; ask for all of them, each once."
        )


def refuse_double_names(names: list[str]) -> NoReturn:
    """Engines cannot tell columns of one name apart."""
    listed = ", ".join(repr(name) for name in names[:4])
    raise ValueError(f"the frame has more than one column named {listed}; rename all but one of each name.")
