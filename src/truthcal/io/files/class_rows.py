"""Files of rows with many classes, read into memory: the class of each row, and a column for each class."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.class_rows import SUM_TOLERANCE
from truthcal.core.params import list_shown, shown
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import refuse_no_rows
from truthcal.io.files.accumulate import refuse_invalid_batch
from truthcal.io.files.load import Loaded
from truthcal.io.files.scan import BatchReader, RowBatch
from truthcal.io.files.source import Checksum, Source

_Rows = NDArray[Any]

# Rows times classes of all models. Their matrix takes 0.8 GB, and an assessment needed ten times that for 10 classes.
MOST_NUMBERS = 10**8
# A whole number that was written as a float: 3.0.
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")


@dataclass(frozen=True, slots=True)
class ClassColumns:
    """The columns of rows with many classes.

    `label` has the class of each row. `labels` are the classes as text. `models` has the columns of each model, by its
    name and in the order of `labels`.
    """

    label: str
    labels: tuple[str, ...]
    models: dict[str, tuple[str, ...]]
    sample_weight: str | None = None
    groups: str | None = None

    @property
    def roles(self) -> ColumnRoles:
        """Roles for reading the numbers. The class is not one, so that a prediction stands in for it."""
        names = tuple(name for columns in self.models.values() for name in columns)
        return ColumnRoles(names[0], names, self.sample_weight, (), None, self.groups)


def load_classes(
    sources: list[Source], columns: ClassColumns, *, checksum: Checksum | None = None
) -> dict[str, Loaded]:
    """Load rows with many classes in one pass; return those of each model by its name.

    Labels are compared with the names of classes as text. Memory: 8 bytes for each row and class, twice that at the
    end. Raises if a row is invalid, if its class has no column, or if there are too many rows.
    """
    roles, codes = columns.roles, label_codes(columns.labels)
    reader = BatchReader(sources, roles, extra_columns=(columns.label,), checksum=checksum)
    y, w, groups = list[_Rows](), list[_Rows](), list[_Rows]()
    matrices: dict[str, list[_Rows]] = {name: [] for name in columns.models}
    n = 0
    for rows in reader:
        n += len(rows.y)
        _refuse_many_rows(n, columns, reader.where)
        try:
            refuse_invalid_batch(rows.y, rows.ps, rows.w, rows.numbers, roles, str(rows.source))
        except (ValueError, TypeError) as error:
            vars(error).pop("cause", None)  # rows with many classes cannot be left out by an option
            raise
        y.append(_class_codes(rows, columns, codes))
        for name, matrix in _matrices(rows, columns).items():
            matrices[name].append(matrix)
        if rows.w is not None:
            w.append(rows.w.copy())
        if rows.hashes is not None:
            groups.append(rows.hashes)
    refuse_no_rows(n, reader.where)
    truth = np.array(columns.labels)[np.concatenate(y)]
    weights, together = (np.concatenate(parts) if parts else None for parts in (w, groups))
    return {
        name: Loaded(truth, np.concatenate(parts), weights, None, None, n, together, labels=columns.labels)
        for name, parts in matrices.items()
    }


def label_codes(labels: Sequence[str]) -> dict[str, int]:
    """Return the number of each class by its label as text; a whole number is the same with and without ".0"."""
    return {_without_fraction(label): k for k, label in enumerate(labels)} | {x: k for k, x in enumerate(labels)}


def label_code(value: object, codes: dict[str, int]) -> int:
    """Return the number of a label's class; -1 if it has none."""
    text = str(value)
    return codes.get(text, codes.get(_without_fraction(text), -1))


def same_but_for_case(value: str, labels: Sequence[str]) -> str:
    """Return the label that differs from a value only in case, spaces, hyphens or underscores; "" if there is none."""
    return next((label for label in labels if _folded(label) == _folded(value)), "")


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]+", "", _without_fraction(text)).casefold()


def _without_fraction(text: str) -> str:
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _class_codes(rows: RowBatch, columns: ClassColumns, codes: dict[str, int]) -> NDArray[np.int64]:
    """Return the number of each row's class in a batch. Raises if it is missing or unknown."""
    cure = "Drop these rows."
    index, values = rows.keys(columns.label, "y_true", cure)
    y = np.array([label_code(value, codes) for value in values], np.int64)[index]
    if (y < 0).any():
        row = int(np.argmax(y < 0))
        label, n = shown(str(values[index[row]])), np.count_nonzero(y < 0)
        problem = f"has the label {label} at row {rows.numbers[row]} ({n:,} of {len(y):,} rows in this batch)"
        rest = f"but there are columns only for {list_shown(columns.labels)}. Add its column, or drop these rows."
        if similar := same_but_for_case(str(values[index[row]]), columns.labels):
            rest = f"and the column is that of {shown(similar)}: they differ in case or spaces. Make them the same."
        raise invalid("y_true", f"{problem}, {rest}", subject=f"{rows.source}: column {columns.label!r}")
    return y


def _matrices(rows: RowBatch, columns: ClassColumns) -> dict[str, NDArray[np.float64]]:
    """Return the predictions of each model in a batch, a column for each class. Raises unless rows add up to 1."""
    matrices, place = {}, 0
    for model, names in columns.models.items():
        matrix = np.column_stack(rows.ps[place : place + len(names)]).astype(np.float64, copy=False)
        place += len(names)
        _refuse_other_sums(matrix.sum(axis=1), names, rows)
        matrices[model] = matrix
    return matrices


def _refuse_other_sums(sums: NDArray[np.float64], names: Sequence[str], rows: RowBatch) -> None:
    bad = np.abs(sums - 1.0) > SUM_TOLERANCE
    if not bad.any():
        return
    row = int(np.argmax(bad))
    place = f"at row {rows.numbers[row]} ({np.count_nonzero(bad):,} of {len(bad):,} rows in this batch)"
    problem = f"must add up to 1 in each row (within {SUM_TOLERANCE:g}); found {sums[row]:.6g} {place}."
    if np.abs(sums - 1.0).max() < 0.05:
        cure = "Rounded probabilities? Divide each row by its sum."
    else:
        cure = (
            "Is the column of a class missing, or is one of these columns something else? Name them with --proba. "
            "Events that do not exclude each other: assess them one by one, or in Python with multilabel=True."
        )
    subject = f"{rows.source}: the columns {list_shown(names)}"
    raise invalid("y_proba", f"{problem} {cure}", subject=subject)


def _refuse_many_rows(n: int, columns: ClassColumns, where: str) -> None:
    k, models = len(columns.labels), len(columns.models)
    if n * k * models <= MOST_NUMBERS:
        return
    each = f"{k:,} classes" + (f" and {models} models" if models > 1 else "")
    size = (
        f"the limit is {MOST_NUMBERS:,} numbers, {8 * MOST_NUMBERS / 1e9:.2g} GB in memory and ten times that to assess"
    )
    cure = "Pass a random sample of the rows, or one class against the rest; MulticlassSketch in Python needs no rows."
    raise ValueError(f"{where} has at least {n:,} rows with {each}, {n * k * models:,} numbers; {size}. {cure}")
