"""The column that says which rows belong together: any hashable values become numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, invalid, is_missing_object, refuse_unlike, row_of_first
from truthcal.core.group_hash import Hashes, hash_values
from truthcal.core.group_sums import refuse_few_groups
from truthcal.core.params import shown

_Ints = NDArray[np.int64]

GIVE_A_GROUP = "Every row needs a group: drop these rows, or give each of them a group of its own."


def check_groups(groups: object, y_proba: object, sample_weight: object = None) -> _Ints:
    """Check the groups of checked rows and number them from 0, for rows of positive weight only.

    Values may be of any hashable type; none may be missing. At least 20 groups must have rows of positive weight.
    """
    column = check_group_column(groups, y_proba, "y_proba")
    if sample_weight is not None:
        column = column[as_vector(sample_weight, "sample_weight") > 0]
    numbers, values = number_values(column)
    refuse_few_groups(len(values))
    return numbers


def hash_groups(groups: object, y_proba: object) -> Hashes:
    """Check the groups of rows and return their hashes, for a sketch. None may be missing; there may be few."""
    column = check_group_column(groups, y_proba, "y_proba")
    numbers, values = number_values(column)
    hashes, missing = hash_values(values, "groups")
    _refuse_missing_groups(missing[numbers], column)
    return hashes[numbers]


def check_group_column(groups: object, other: object, name: str) -> NDArray[Any]:
    """Convert groups to a vector with a value for each row of another column, the parameter `name`."""
    column = _as_column(groups)
    refuse_unlike(groups, column, "groups", as_vector(other, name), name, other)
    _refuse_missing_groups(missing_values(column), column)
    return column


def _refuse_missing_groups(missing: NDArray[np.bool_], column: NDArray[Any]) -> None:
    if missing.any():
        problem = f"has a missing value ({column[missing.argmax()]}) {row_of_first(missing)}."
        raise invalid("groups", f"{problem} {GIVE_A_GROUP}")


def _as_column(groups: object) -> NDArray[Any]:
    """Convert groups to a vector; tuples in a list are values, not rows of a matrix."""
    if isinstance(groups, list | tuple) and any(isinstance(value, tuple) for value in groups):
        column = np.empty(len(groups), object)
        column[:] = groups
        return column
    return as_vector(groups, "groups")


def missing_values(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a column of any type has no value."""
    if column.dtype.kind == "O":
        return is_missing_object(column)
    if column.dtype.kind in "fc":
        return np.asarray(np.isnan(column))
    if column.dtype.kind in "mM":
        return np.asarray(np.isnat(column))
    return np.zeros(len(column), np.bool_)


def number_values(column: NDArray[Any], name: str = "groups") -> tuple[_Ints, list[Any]]:
    """Number the distinct values of a column, from 0; return the number of each row, and the values."""
    if column.dtype.kind != "O":
        values, index = np.unique(column, return_inverse=True)
        # `tolist` would turn a time in nanoseconds into an integer
        return index.astype(np.int64), list(values) if values.dtype.kind in "mM" else values.tolist()
    numbers: dict[Any, int] = {}
    try:
        index = np.array([numbers.setdefault(value, len(numbers)) for value in column.tolist()], np.int64)
        return index, list(numbers)
    except TypeError:
        bad = np.array([not _is_hashable(value) for value in column.tolist()])
        problem = "must hold values that can be compared, such as text, numbers or dates;"
        found = f"found {shown(column[bad.argmax()])} {row_of_first(bad)}."
        raise invalid(name, f"{problem} {found}", TypeError) from None


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
