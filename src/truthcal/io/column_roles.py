"""Column roles: which column holds outcomes, predictions, weights and groups."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Required, TypedDict

import numpy as np

from truthcal.core.checks import invalid
from truthcal.core.group_keys import check_by
from truthcal.core.params import shown

# Roles of columns of any type, which may be in the path of a file.
KEY_ROLES = ("by", "groups", "where")


class ColumnOptions(TypedDict, total=False):
    """The options that `scan` and `sketch_frame` share."""

    y_true: Required[str]
    y_proba: Required[str]
    sample_weight: str | None
    pos_label: Any
    groups: str | None
    n_buckets: int


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The names of the columns to read, and the label that counts as 1.

    Several models have one prediction column each, and share all other columns.
    """

    y_true: str
    y_probas: tuple[str, ...]
    sample_weight: str | None
    by: tuple[str, ...]
    pos_label: str | int | float | bool | None
    groups: str | None = None  # which rows belong together; `by` makes segments
    where: tuple[str, ...] = ()  # columns that decide which rows to keep

    @classmethod
    def of(
        cls,
        y_true: object,
        y_proba: object,
        sample_weight: object,
        by: object,
        pos_label: object,
        groups: object = None,
    ) -> "ColumnRoles":
        """Check the names themselves; `require_columns` checks that such columns exist."""
        names = {"y_true": _check_name_for_role(y_true, "y_true"), "y_proba": _check_name_for_role(y_proba, "y_proba")}
        if sample_weight is not None:
            names["sample_weight"] = _check_name_for_role(sample_weight, "sample_weight")
        for role, other in itertools.combinations(names, 2):
            if names[role] == names[other]:
                raise invalid(role, f"and `{other}` both name the column {names[role]!r}; they must differ.")
        if isinstance(pos_label, np.generic):
            pos_label = pos_label.item()
        if pos_label is not None and (not isinstance(pos_label, str | int | float) or pos_label != pos_label):
            problem = f"must be one label: text, a number, True or False; got {shown(pos_label)}."
            raise invalid("pos_label", problem, TypeError)
        segments = () if by is None else tuple(_check_name_for_role(name, "by") for name in check_by(by))
        group = None if groups is None else _check_name_for_role(groups, "groups")
        if group in segments:
            problem = f"and `by` both name the column {group!r}, so that each segment would be a single group;"
            raise invalid("groups", f"{problem} omit one of them.")
        return cls(names["y_true"], (names["y_proba"],), names.get("sample_weight"), segments, pos_label, group)

    @classmethod
    def of_models(
        cls,
        y_true: object,
        y_probas: Sequence[str],
        sample_weight: object,
        by: object,
        pos_label: object,
        groups: object = None,
    ) -> "ColumnRoles":
        """Check the names for several models, one prediction column each."""
        models = [cls.of(y_true, name, sample_weight, by, pos_label, groups) for name in y_probas]
        return replace(models[0], y_probas=tuple(y_probas))

    @classmethod
    def predictions_only(cls, y_proba: str) -> "ColumnRoles":
        """Roles for reading predictions without outcomes: they stand in for the outcome column, which is not read."""
        return cls(y_proba, (y_proba,), None, (), None)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of a role and a column name."""
        yield "y_true", self.y_true
        yield from (("y_proba", name) for name in self.y_probas)
        if self.sample_weight is not None:
            yield "sample_weight", self.sample_weight
        yield from (("by", name) for name in self.by)
        if self.groups is not None:
            yield "groups", self.groups
        yield from (("where", name) for name in self.where)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of any type, which are compared, not added up: those of `by`, `groups` and `where`."""
        return (*self.by, *(() if self.groups is None else (self.groups,)), *self.where)

    @property
    def y_proba(self) -> str:
        """The prediction column of the only model, or of the first."""
        return self.y_probas[0]

    @property
    def has_outcomes(self) -> bool:
        """Whether there is an outcome column."""
        return self.y_true not in self.y_probas

    def for_model(self, y_proba: str) -> "ColumnRoles":
        """Return the roles of one of the models."""
        return replace(self, y_probas=(y_proba,))


def _check_name_for_role(name: object, role: str) -> str:
    if not isinstance(name, str):
        raise invalid(role, f"must be the name of a column; got {shown(name)}.", TypeError)
    if not name:
        raise invalid(role, "must be the name of a column; got an empty string.")
    return name
