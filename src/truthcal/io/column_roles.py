"""Which column is what."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from truthcal.core.group_keys import check_by
from truthcal.core.params import shown


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The names of the columns that are read, and the label that counts as 1."""

    y_true: str
    y_proba: str
    sample_weight: str | None
    by: tuple[str, ...]
    pos_label: str | int | float | bool | None

    @classmethod
    def of(cls, y_true: object, y_proba: object, sample_weight: object, by: object, pos_label: object) -> "ColumnRoles":
        """Check the names as such; `refuse_missing` compares them with what there is."""
        given = {"y_true": y_true, "y_proba": y_proba}
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        names = {role: _name(name, role) for role, name in given.items()}
        for role, name in names.items():
            twin = next((other for other in names if other != role and names[other] == name), None)
            if twin is not None:
                raise ValueError(f"`{role}` and `{twin}` both name the column {name!r}; they must be two columns.")
        if isinstance(pos_label, np.generic):
            pos_label = pos_label.item()
        if pos_label is not None and (not isinstance(pos_label, str | int | float) or pos_label != pos_label):
            raise TypeError(f"`pos_label` must be one label: text, a number, True or False; got {shown(pos_label)}.")
        return cls(names["y_true"], names["y_proba"], names.get("sample_weight"), _groups(by), pos_label)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Pairs of a role and a column's name."""
        yield "y_true", self.y_true
        yield "y_proba", self.y_proba
        if self.sample_weight is not None:
            yield "sample_weight", self.sample_weight
        for name in self.by:
            yield "by", name

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        return list(dict.fromkeys(name for _, name in self))

    def refuse_missing(self, there: Iterable[str], where: str) -> None:
        """Refuse names that no column has."""
        columns = list(there)
        for role, name in self:
            if name not in columns:
                listed = ", ".join(repr(column) for column in columns[:20]) + (", ..." if len(columns) > 20 else "")
                raise ValueError(f"{where} has no column {name!r} (named by `{role}`); it has {listed or 'none'}.")
            if columns.count(name) > 1:
                raise ValueError(f"{where} has {columns.count(name)} columns named {name!r}; rename all but one.")


def _name(name: object, role: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"`{role}` must be the name of a column; got {shown(name)}.")
    if not name:
        raise ValueError(f"`{role}` must be the name of a column; got an empty text.")
    return name


def _groups(by: object) -> tuple[str, ...]:
    """Names of the columns to group by; none is an empty tuple."""
    names = () if by is None else check_by(by)
    for name in names:
        _name(name, "by")
    return names
