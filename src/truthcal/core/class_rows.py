"""Rows with many classes: labels, a probability for each class, and weights become valid arrays, or one clear error."""

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import (
    Checked,
    as_vector,
    check_weights,
    cure_outside_unit,
    invalid,
    is_missing_object,
    read_only,
    refuse_missing_values,
    refuse_no_weight,
    refuse_unlike,
    refuse_wide_weight,
    row_of_first,
)
from truthcal.core.parallel import run_tasks
from truthcal.core.sample import relative_weights

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]

# Rows must add up to 1 up to this: probabilities that were rounded to three digits do in most cases.
SUM_TOLERANCE = 1e-3
# Sums within this may be those of rounded probabilities, of a few classes to two digits.
ROUNDING = 0.05
# Vectors of all classes are added up by class: so many classes take 128 MB in a test.
MOST_CLASSES = 1000
_SHOWN_LABELS = 6


def has_classes(y_proba: object) -> bool:
    """Whether predictions have a column for each class: a matrix, or a data frame of several columns."""
    shape = getattr(y_proba, "shape", None)
    if shape is None and isinstance(y_proba, list | tuple) and len(y_proba) and np.ndim(y_proba[0]) == 1:
        return len(y_proba[0]) > 1
    return shape is not None and len(shape) == 2 and int(shape[1]) > 1


class ClassRows:
    """Checked rows with many classes.

    Attributes
    ----------
    p : ndarray of shape (n, n_classes)
        Predicted probabilities, float64.
    y : ndarray of shape (n,)
        Class of each row, a number from 0.
    w : ndarray of shape (n,)
        Weights above 0, the largest between 0.5 and 1.
    weighted, exponent : bool, int
        Whether the user passed weights, and the power of two that undoes their scaling.
    labels : tuple
        The label of each class, in the order of the columns.
    kept : ndarray of bool, or None
        Which of the user's rows have a weight above 0; None for all.
    """

    def __init__(
        self, p: _Array, y: _Ints, w: _Array | None, labels: tuple[Any, ...], kept: NDArray[np.bool_] | None = None
    ) -> None:
        self.p, self.y, self.labels, self.kept = p, y, labels, kept
        self.weighted = w is not None
        self.w, self.exponent = (np.ones(len(y)), 0) if w is None else relative_weights(w)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.p.shape[1])

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        return float(np.sum(self.w))

    @cached_property
    def one_row(self) -> float:
        """Sum of w^2 / W^2: one over the effective number of rows."""
        return float(np.sum(self.w**2)) / self.total**2

    @cached_property
    def orders(self) -> list[NDArray[np.int32]]:
        """For each class, the rows in decreasing order of its probability; sorted once, on all cores."""
        columns = np.ascontiguousarray(self.p.T)
        tasks = [partial(_decreasing, column) for column in columns]
        return run_tasks(tasks, self.p.size)

    def errors(self) -> _Array:
        """The error c = p - y of each row, a column for each class."""
        c = self.p.copy()
        c[np.arange(self.n), self.y] -= 1.0
        return c

    def one_against_rest(self, k: int) -> Checked:
        """Rows of one class against all others, as binary outcomes."""
        y = read_only((self.y == k).view(np.uint8))
        p = read_only(np.clip(np.ascontiguousarray(self.p[:, k]), 0.0, 1.0))
        return Checked(p, y, read_only(self.w) if self.weighted else None)

    def with_proba(self, p: _Array) -> "ClassRows":
        """The same rows with other predictions."""
        return ClassRows(p, self.y, self.w if self.weighted else None, self.labels, self.kept)

    def take(self, some: _Ints) -> "ClassRows":
        """Some of the rows, with the same scale of weights."""
        part = ClassRows(self.p[some], self.y[some], None, self.labels)
        part.w, part.weighted = self.w[some], self.weighted
        return part

    def sampled(self, at_most: int) -> _Ints:
        """Numbers of all rows or, if there are more, of so many drawn at random, always the same ones."""
        if self.n <= at_most:
            return np.arange(self.n)
        return np.sort(np.random.default_rng(0).choice(self.n, at_most, replace=False))


def _decreasing(column: _Array) -> NDArray[np.int32]:
    return np.argsort(-column, kind="stable").astype(np.int32)


def check_class_rows(
    y_true: object, y_proba: object, sample_weight: object = None, labels: object = None, *, name: str = "y_proba"
) -> ClassRows:
    """Check labels, a matrix of probabilities (parameter `name`) and weights together."""
    p = check_class_proba(y_proba, name)
    truth = _label_column(y_true)
    refuse_unlike(y_true, truth, "y_true", p, name, y_proba)
    names = _class_labels(labels, truth, y_proba, p.shape[1], name)
    y = _codes_of(truth, names, name)
    if sample_weight is None:
        return ClassRows(p, y, None, names)
    raw = as_vector(sample_weight, "sample_weight")
    refuse_unlike(sample_weight, raw, "sample_weight", p, name, y_proba)
    w = check_weights(raw)
    kept = w > 0
    refuse_no_weight(int(kept.sum()))
    refuse_wide_weight(w[kept])
    return ClassRows(p, y, w, names) if kept.all() else ClassRows(p[kept], y[kept], w[kept], names, kept)


# --- predictions ------------------------------------------------------------------------------------------------------


def check_class_proba(y_proba: object, name: str = "y_proba", *, exclusive: bool = True) -> _Array:
    """Check a matrix of probabilities, a column for each class. If classes exclude each other, rows add up to 1."""
    p = as_matrix(y_proba, name)
    if p.shape[1] > MOST_CLASSES and exclusive:
        memory = f"a test would need {p.shape[1] ** 2 * 128e-6:,.0f} MB"
        cure = "Assess the classes that matter, one against the rest, or pass their sum as one class."
        raise invalid(
            name, f"has {p.shape[1]:,} columns; at most {MOST_CLASSES:,} classes are possible: {memory}. {cure}"
        )
    if p.dtype.kind not in "biuf":
        raise invalid(name, f"must contain probabilities; got dtype {p.dtype}. Pass numbers.", TypeError)
    p = np.ascontiguousarray(p, dtype=np.float64)
    _refuse_missing(p, name)
    with np.errstate(invalid="ignore"):  # inf - inf
        low, high, sums = float(p.min()), float(p.max()), p.sum(axis=1)
    if low < 0.0 or high > 1.0:
        row, column = np.unravel_index(int(np.argmax((p < 0.0) | (p > 1.0))), p.shape)
        found = f"found {p[row, column].item()!r} at row {row}, column {column}"
        raise invalid(name, f"must lie in [0, 1]; {found}. {_cure_matrix(p, sums)}")
    if exclusive:
        _refuse_sums(sums, name, y_proba)
    return p


def as_matrix(values: object, name: str) -> NDArray[Any]:
    """Convert a matrix-like object to a two-dimensional numpy array of its type, with at least one row."""
    try:
        array = np.asarray(values)
    except Exception as error:
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".rstrip(".")
        raise invalid(
            name, f"could not be read as a matrix ({cause}). Pass an array of shape (n, k).", TypeError
        ) from error
    if array.ndim != 2:
        raise invalid(name, f"must have shape (n, k), a column for each class; got shape {array.shape}.")
    if array.shape[0] == 0:
        raise invalid(name, "is empty; at least one row is needed.")
    if array.shape[1] < 2:
        raise invalid(
            name, f"has shape {array.shape}; at least two columns are needed. For one event, pass its column."
        )
    if array.dtype.kind == "O":
        missing = is_missing_object(array.ravel()).reshape(array.shape).any(axis=1)
        refuse_missing_values(np.asarray(missing), name, "None or NA")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise invalid(name, "must contain probabilities, but has values that are not numbers.", TypeError) from None
    return array


def _refuse_missing(p: _Array, name: str) -> None:
    refuse_missing_values(np.asarray(np.isnan(p).any(axis=1)), name, "nan")


def _cure_matrix(p: _Array, sums: _Array) -> str:
    """Suggest what numbers outside [0, 1] are, and how to turn them into probabilities."""
    with np.errstate(over="ignore"):
        if float(p.max()) <= 0.0 and np.allclose(np.exp(p).sum(axis=1), 1.0, atol=SUM_TOLERANCE):
            return "Log-probabilities? Apply np.exp first."
    if float(p.min()) >= 0.0 and np.allclose(sums, 100.0, atol=100.0 * SUM_TOLERANCE):
        return "Percentages? Divide by 100."
    low, high = float(p.min()), float(p.max())
    if low >= -1e-6 and high <= 1.0 + 1e-6:
        return cure_outside_unit(low, high)
    return "Logits or scores? Apply the softmax first: scipy.special.softmax(..., axis=1)."


def _refuse_sums(sums: _Array, name: str, y_proba: object) -> None:
    """Reject rows that do not add up to 1."""
    bad = np.abs(sums - 1.0) > SUM_TOLERANCE
    if not bad.any():
        return
    first = int(np.argmax(bad))
    problem = f"must add up to 1 in each row (within {SUM_TOLERANCE:g}); found {sums[first]:.6g} {row_of_first(bad)}."
    if np.abs(sums - 1.0).max() <= ROUNDING:
        is_pandas = hasattr(y_proba, "iloc")
        divided = f".div({name}.sum(axis=1), axis=0)" if is_pandas else f" / {name}.sum(axis=1, keepdims=True)"
        cure = f"Rounded probabilities? Divide each row by its sum: {name}{divided}."
    else:
        cure = (
            "Are columns missing? If columns are independent events, use assess(..., multilabel=True); if they are "
            "models of one event, name them: report(y_true, {'name': column, ...}), or use compare_models."
        )
    raise invalid(name, f"{problem} {cure}")


# --- labels -----------------------------------------------------------------------------------------------------------


def _label_column(y_true: object) -> NDArray[Any]:
    shape = np.shape(y_true) if isinstance(y_true, np.ndarray) else getattr(y_true, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        cure = (
            "Pass the class of each row, np.asarray(y_true).argmax(axis=1), or multilabel=True for independent columns."
        )
        raise invalid("y_true", f"must be one-dimensional; got shape {tuple(shape)}. {cure}")
    raw = as_vector(y_true, "y_true")
    if raw.dtype.kind == "O":
        refuse_missing_values(is_missing_object(raw), "y_true", "None or NA")
    if raw.dtype.kind == "f":
        refuse_missing_values(np.isnan(raw), "y_true", "nan")
        whole = np.isfinite(raw) & (raw == np.floor(raw))
        if not whole.all():
            found = f"found {raw[int(np.argmin(whole))].item()!r} {row_of_first(~whole)}"
            raise invalid("y_true", f"must contain the class of each row; {found}.")
    return raw


def _class_labels(labels: object, truth: NDArray[Any], y_proba: object, n_classes: int, name: str) -> tuple[Any, ...]:
    """Labels of the columns: those passed, the names of the columns of a data frame, or the labels in `y_true`."""
    present = _distinct(truth)
    if labels is not None:
        given = tuple(as_vector(labels, "labels").tolist())
        if len(set(given)) != len(given):
            raise invalid("labels", f"must be different from each other; got {_listed(given)}.")
        if len(given) != n_classes:
            raise invalid("labels", f"has {len(given)} labels, but `{name}` has {n_classes} columns.")
        order = column_order(y_proba, given)
        if order is not None and (order != np.arange(n_classes)).any():
            names = f"the columns of `{name}` are called {_listed(column_names(y_proba))}, in this order"
            raise invalid("labels", f"is {_listed(given)}, but {names}. Omit it: named columns are matched by name.")
        return given
    columns = column_names(y_proba)
    if columns is not None:
        if (named := labels_of_columns(columns, present)) is not None:
            return named
        found = f"`y_true` has the labels {_listed(present)}, but `{name}` has the columns {_listed(columns)}."
        raise invalid("labels", f"is needed: {found} Name the class of each column, in order.")
    if len(present) == n_classes:
        return tuple(present)  # increasing, as scikit-learn orders the columns of predict_proba
    # Numbers from 0. Without a 0, classes may be numbered from 1.
    if 0 in present and all(isinstance(label, int) and 0 <= label < n_classes for label in present):
        return tuple(range(n_classes))
    found = f"`y_true` has {len(present)} different labels ({_listed(present)}), but `{name}` has {n_classes} columns."
    raise invalid("labels", f"is needed: {found} Name the class of each column, in order.")


def column_names(y_proba: object) -> list[Any] | None:
    """Names of the columns of a data frame; None without names. The numbers that pandas gives by default are none."""
    columns = getattr(y_proba, "column_names", None)  # pyarrow, where `columns` are the values
    columns = getattr(y_proba, "columns", None) if columns is None else columns
    if columns is None or (type(columns).__name__ == "RangeIndex" and list(columns) == list(range(len(columns)))):
        return None
    return list(columns)


def column_order(frame: object, labels: Any) -> _Ints | None:
    """Places of the columns of a data frame that are called as the labels, as text; None if others are, or none."""
    names = [str(name) for name in column_names(frame) or ()]
    wanted = [str(label) for label in labels]
    if len(set(names)) != len(names) or sorted(names) != sorted(wanted):
        return None
    return np.array([names.index(label) for label in wanted])


def labels_of_columns(columns: list[Any], present: list[Any]) -> tuple[Any, ...] | None:
    """Labels of named columns: their names, where a label and its text are the same; None if no name is a label."""
    of_text = {str(label): label for label in present}
    labels = tuple(of_text.get(str(column), column) for column in columns)
    if len(set(labels)) == len(columns) and not set(present).isdisjoint(labels):
        return labels
    if (rest := _without_prefix([str(column) for column in columns], list(of_text))) is not None:
        return tuple(of_text.get(text, text) for text in rest)
    return None


def _without_prefix(names: list[str], labels: list[str]) -> list[str] | None:
    """Column names without a common prefix, as cat and dog of p_cat and p_dog, if all labels are among the rest."""
    for prefix in [name.removesuffix(labels[0]) for name in names if name.endswith(labels[0])]:
        rest = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        if len(set(rest)) == len(names) and set(labels) <= set(rest):
            return rest
    return None


def _distinct(truth: NDArray[Any]) -> list[Any]:
    """Different labels, in increasing order; booleans as 0 and 1."""
    try:
        values = np.unique(truth.astype(np.int64) if truth.dtype.kind == "b" else truth).tolist()
    except TypeError:
        raise invalid("y_true", "has labels of different types, which cannot be ordered.", TypeError) from None
    return [int(value) if isinstance(value, float) else value for value in values]


def _codes_of(truth: NDArray[Any], labels: tuple[Any, ...], name: str) -> _Ints:
    """Number of the class of each row."""
    code = {label: k for k, label in enumerate(labels)}
    values, inverse = np.unique(truth.astype(np.int64) if truth.dtype.kind == "b" else truth, return_inverse=True)
    codes = np.array([code.get(value, -1) for value in values.tolist()], np.int64)
    y = codes[inverse]
    if (y < 0).any():
        unknown = truth[int(np.argmax(y < 0))]
        found = (
            f"has the label {unknown.item() if isinstance(unknown, np.generic) else unknown!r} {row_of_first(y < 0)}"
        )
        cure = "Add its column, drop these rows, or pass `labels` in the order of the columns."
        raise invalid("y_true", f"{found}, but `{name}` has columns for {_listed(labels)} only. {cure}")
    return y


def _listed(labels: Any) -> str:
    shown = ", ".join(repr(label) for label in list(labels)[:_SHOWN_LABELS])
    return shown + (", ..." if len(labels) > _SHOWN_LABELS else "")
