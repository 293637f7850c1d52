"""Files of rows with many classes, read into memory: the class of each row, and a column for each class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.params import list_shown, shown
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import refuse_no_rows
from truthcal.io.files.accumulate import refuse_invalid_batch
from truthcal.io.files.class_labels import LabelMatcher
from truthcal.io.files.class_sums import RowSums, name_columns
from truthcal.io.files.load import Loaded
from truthcal.io.files.scan import BatchReader, RowBatch
from truthcal.io.files.source import Checksum, Source

_Rows = NDArray[Any]

# Rows times classes of all models. Their matrix takes 0.8 GB, and an assessment needed ten times that for 10 classes.
MOST_NUMBERS = 10**8


@dataclass(frozen=True, slots=True)
class ClassColumns:
    """The columns of rows with many classes.

    `label` has the class of each row. `labels` are the classes as text. `models` has the columns of each model, by its
    name and in the order of `labels`. `percent`: numbers are percentages; `normalize`: divide each row by its sum.
    """

    label: str
    labels: tuple[str, ...]
    models: dict[str, tuple[str, ...]]
    sample_weight: str | None = None
    groups: str | None = None
    percent: bool = False
    normalize: bool = False

    @property
    def roles(self) -> ColumnRoles:
        """Roles for reading the numbers. The class is not one, so that a prediction stands in for it."""
        names = tuple(name for columns in self.models.values() for name in columns)
        return ColumnRoles(names[0], names, self.sample_weight, (), None, self.groups)


def load_classes(
    sources: list[Source], columns: ClassColumns, *, checksum: Checksum | None = None
) -> tuple[dict[str, Loaded], list[str]]:
    """Load rows with many classes in one pass; return those of each model by its name, and notes about conversions.

    Labels are compared with the names of classes as text. Memory: 8 bytes for each row and class, twice that at the
    end. Raises if a row is invalid, if its class has no column, or if there are too many rows.
    """
    matcher, sums = LabelMatcher(columns.labels), RowSums(percent=columns.percent, normalize=columns.normalize)
    reader = BatchReader(sources, columns.roles, extra_columns=(columns.label,), checksum=checksum)
    y, w, groups = list[_Rows](), list[_Rows](), list[_Rows]()
    matrices: dict[str, list[_Rows]] = {name: [] for name in columns.models}
    n = 0
    for rows in reader:
        n += len(rows.y)
        _refuse_many_rows(n, columns, reader.where)
        for name, matrix in _checked_matrices(rows, columns, sums).items():
            matrices[name].append(matrix)
        y.append(_class_codes(rows, columns.label, matcher))
        if rows.w is not None:
            w.append(rows.w.copy())
        if rows.hashes is not None:
            groups.append(rows.hashes)
    refuse_no_rows(n, reader.where)
    truth = np.array(columns.labels)[np.concatenate(y)]
    weights, together = (np.concatenate(parts) if parts else None for parts in (w, groups))
    models = {
        name: Loaded(truth, np.concatenate(parts), weights, None, None, n, together, labels=columns.labels)
        for name, parts in matrices.items()
    }
    return models, [*matcher.notes(columns.label), *sums.notes()]


def _checked_matrices(rows: RowBatch, columns: ClassColumns, sums: RowSums) -> dict[str, NDArray[np.float64]]:
    """Return the probabilities of each model in a batch, a column for each class. Raises if a row is invalid."""
    for model, matrix in _matrices(rows.ps, columns).items():
        sums.refuse_percentages(matrix, rows.numbers, name_columns(rows.source, columns.models[model]))
    ps = sums.probabilities(rows.ps)
    try:
        refuse_invalid_batch(ps[0], ps, rows.w, rows.numbers, columns.roles, str(rows.source))
    except (ValueError, TypeError) as error:
        vars(error).pop("cause", None)  # rows with many classes cannot be left out by an option
        raise
    return {
        model: sums.checked(matrix, rows.numbers, name_columns(rows.source, columns.models[model]))
        for model, matrix in _matrices(ps, columns).items()
    }


def _class_codes(rows: RowBatch, column: str, matcher: LabelMatcher) -> NDArray[np.int64]:
    """Return the number of each row's class in a batch. Raises if it is missing or unknown."""
    cure = "Drop these rows."
    index, values = rows.keys(column, "y_true", cure)
    y = np.array([matcher.code(value) for value in values], np.int64)[index]
    if (y < 0).any():
        row = int(np.argmax(y < 0))
        value, n, read = str(values[index[row]]), np.count_nonzero(y < 0), rows.numbers[-1] + 1
        problem = f"has the label {shown(value)} at row {rows.numbers[row]} ({n:,} of {read:,} rows read)"
        known = f"but there are columns only for {list_shown(matcher.classes)}. Add its column, or drop these rows."
        reason = matcher.conflict(value) or known
        raise invalid("y_true", f"{problem}, {reason}", subject=f"{rows.source}: column {column!r}")
    return y


def _matrices(ps: list[_Rows], columns: ClassColumns) -> dict[str, NDArray[np.float64]]:
    """Return the numbers of each model in a batch, a column for each class."""
    matrices, place = {}, 0
    for model, names in columns.models.items():
        matrices[model] = np.column_stack(ps[place : place + len(names)]).astype(np.float64, copy=False)
        place += len(names)
    return matrices


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
