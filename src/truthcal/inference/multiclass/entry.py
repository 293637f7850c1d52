"""Matrices of predictions: check them once, at the entry point of a public function."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, check_weights, invalid, read_only, refuse_missing_values, refuse_unlike
from truthcal.core.class_rows import (
    ClassRows,
    as_matrix,
    check_class_proba,
    check_class_rows,
    column_names,
    column_order,
    has_classes,
)
from truthcal.core.group_column import check_groups
from truthcal.core.group_sums import FEWEST_GROUPS

_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EventRows:
    """Arguments of a public function for one event: the user's, or those of the second of two classes."""

    y_true: Any
    y_proba: Any
    sample_weight: Any = None
    pos_label: Any = None
    groups: Any = None

    def options(self) -> dict[str, Any]:
        """Return the optional arguments by name."""
        return {name: getattr(self, name) for name in ("sample_weight", "pos_label", "groups")}


@dataclass(frozen=True, eq=False)
class ClassInput:
    """Checked rows with many classes, and numbers of the groups of rows that belong together."""

    rows: ClassRows
    groups: _Ints | None

    @classmethod
    def of(
        cls,
        y_true: object,
        y_proba: object,
        *,
        sample_weight: object = None,
        pos_label: object = None,
        labels: object = None,
        groups: object = None,
        name: str = "y_proba",
    ) -> Self:
        """Check the arguments of a public function."""
        if pos_label is not None:
            cure = "For one class against the rest, pass `y_true == label` and its column."
            raise invalid("pos_label", f"cannot be combined with several columns of predictions. {cure}")
        rows = check_class_rows(y_true, y_proba, sample_weight, labels, name=name)
        return cls(rows, None if groups is None else check_groups(groups, y_true, sample_weight))

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, so that the second one against the first says all."""
        return self.rows.n_classes == 2

    def second_class(self) -> EventRows:
        """Rows of two classes as those of one event: the second class."""
        rows = self.rows
        return EventRows(rows.y == 1, rows.p[:, 1].copy(), rows.w if rows.weighted else None, None, self.groups)


@dataclass(frozen=True, eq=False)
class MultilabelInput:
    """Checked rows with independent columns: several events of each row, any number of which may happen."""

    p: NDArray[np.float64]
    y: NDArray[np.uint8]
    w: NDArray[np.float64] | None
    labels: tuple[Any, ...]
    groups: _Ints

    @classmethod
    def of(
        cls,
        y_true: object,
        y_proba: object,
        *,
        sample_weight: object = None,
        labels: object = None,
        groups: object = None,
    ) -> Self:
        """Check the arguments of a public function. Without groups, each row is one: its columns may depend."""
        p = check_class_proba(y_proba, exclusive=False)
        truth = as_matrix(y_true, "y_true")
        if truth.shape != p.shape:
            problem = f"has shape {truth.shape}, but `y_proba` has shape {p.shape}"
            raise invalid("y_true", f"{problem}; with multilabel=True both have a column for each event.")
        names = _names_of_columns(labels, y_proba, p.shape[1])
        y = _zeros_and_ones(_in_order_of(names, y_true, truth))
        if groups is None and len(p) < FEWEST_GROUPS:
            raise invalid("y_proba", f"has {len(p)} rows; multilabel=True needs at least {FEWEST_GROUPS}.")
        numbers = check_groups(np.arange(len(p)) if groups is None else groups, p[:, 0], None)
        w = None
        if sample_weight is not None:
            raw = as_vector(sample_weight, "sample_weight")
            refuse_unlike(sample_weight, raw, "sample_weight", p, "y_proba", y_proba)
            w = check_weights(raw)
        return cls(p, y, w, names, numbers)

    @property
    def n_effective(self) -> float:
        """Effective number of rows."""
        return float(len(self.p)) if self.w is None else float(self.w.sum() ** 2 / np.sum(self.w**2))

    def entries(self) -> EventRows:
        """All entries of the matrix as rows of one event; those of a row belong together."""
        k = self.p.shape[1]
        w = None if self.w is None else np.repeat(self.w, k)
        return EventRows(self.y.ravel(), self.p.ravel(), w, None, np.repeat(self.groups, k))

    def column(self, k: int) -> EventRows:
        """Rows of one event."""
        return EventRows(self.y[:, k].copy(), self.p[:, k].copy(), self.w, None, self.groups)


def _zeros_and_ones(truth: NDArray[Any]) -> NDArray[np.uint8]:
    if truth.dtype.kind == "f":
        refuse_missing_values(np.isnan(truth).any(axis=1), "y_true", "nan")
    if truth.dtype.kind not in "biuf" or not ((truth == 0) | (truth == 1)).all():
        raise invalid("y_true", "must contain only 0 and 1 with multilabel=True, a column for each event.")
    return read_only(truth.astype(np.uint8))


def _in_order_of(names: tuple[Any, ...], y_true: object, truth: NDArray[Any]) -> NDArray[Any]:
    """Outcomes whose columns are those of the predictions: by name if they have names, else by position."""
    columns = column_names(y_true)
    order = column_order(y_true, names)
    if columns is not None and order is None:
        problem = f"has the columns {', '.join(map(repr, columns[:6]))}"
        found = f"but those of the predictions are called {', '.join(map(repr, names[:6]))}"
        raise invalid("y_true", f"{problem}, {found}. Rename them, or pass .to_numpy() of both in the same order.")
    return truth if order is None else truth[:, order]


def _names_of_columns(labels: object, y_proba: object, n_columns: int) -> tuple[Any, ...]:
    columns = column_names(y_proba)
    if labels is None:
        return tuple(range(n_columns)) if columns is None else tuple(columns)
    given = tuple(as_vector(labels, "labels").tolist())
    if len(given) != n_columns or len(set(given)) != len(given):
        raise invalid("labels", f"must hold {n_columns} different names, one for each column.")
    order = column_order(y_proba, given)
    if order is not None and (order != np.arange(n_columns)).any():
        raise invalid("labels", "has the names of the columns of `y_proba` in another order. Omit it.")
    return given


def event_or_classes(
    rows: EventRows, labels: object, *, hard: bool = True, name: str = "y_proba"
) -> EventRows | ClassInput:
    """Tell predictions of one event from those of many classes: the one place where public functions do.

    Predictions of one event are returned as they are, unchecked. Two classes become the event of the second one. Unless
    `hard`, classes that always have the probability 1 are rejected.
    """
    if not has_classes(rows.y_proba):
        refuse_class_options(labels)
        return rows
    classes = ClassInput.of(rows.y_true, rows.y_proba, labels=labels, name=name, **rows.options())
    refuse_certain_classes(classes.rows, hard, name)
    return classes.second_class() if classes.is_binary else classes


def refuse_certain_classes(rows: ClassRows, hard: bool, name: str = "y_proba") -> None:
    """Reject rows in which one class always has the probability 1, unless they are meant to be."""
    if not hard and not ((rows.p > 0.0) & (rows.p < 1.0)).any():
        cure = "Pass `predict_proba`, or hard=True (--hard) to treat them as certain predictions."
        raise invalid(name, f"gives one class the probability 1 in every row: labels from `predict`? {cure}")


def refuse_class_options(labels: object, multilabel: bool = False) -> None:
    """Reject options of many classes if predictions have one column."""
    for name, given in (("labels", labels is not None), ("multilabel", multilabel)):
        if given:
            problem = "is for predictions with a column for each class, an array of shape (n, k)"
            raise invalid(name, f"{problem}; `y_proba` has one column. Omit it.")


def refuse_event_options(**options: object) -> None:
    """Reject options of one event if predictions have a column for each class."""
    for name, value in options.items():
        if value is not None:
            cure = (
                "For one class against the rest, pass `y_true == label` and its column; if the columns are models of "
                "one event, name them: {'name': column, ...}."
            )
            raise invalid(name, f"is for predictions of one event, not for many classes. Omit it. {cure}")
