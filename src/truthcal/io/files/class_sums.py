"""Sums of the probabilities of all classes: percentages, and rows that were rounded."""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.class_rows import ROUNDING, SUM_TOLERANCE
from truthcal.core.params import list_shown
from truthcal.io.files.source import RowNumbers

_Array = NDArray[np.float64]
_MEANINGS = {
    "--percent": "Percentages? Add --percent.",
    "--normalize": "Rounded probabilities? Add --normalize, which divides each row by its sum.",
    "--percent --normalize": "Rounded percentages? Add --percent --normalize, which divides each row by its sum.",
}
_OTHERS = (
    "Is the column of a class missing, or is one of these columns something else? Name them with --proba. "
    "Events that do not exclude each other: assess them one by one, or in Python with multilabel=True."
)


def are_sums(sums: _Array, *, percent: bool, normalize: bool) -> bool:
    """Tell whether rows of classes may have these sums, of which at least one is not nan (a missing value)."""
    known = sums[~np.isnan(sums)]
    off = np.abs(known / (100.0 if percent else 1.0) - 1.0)
    return len(known) > 0 and bool((off <= _tolerance(normalize=normalize)).all())


def suggest_options(sums: _Array) -> str:
    """Say with which options rows with these sums are accepted; "" if with none."""
    for options, text in _MEANINGS.items():
        if are_sums(sums, percent="--percent" in options, normalize="--normalize" in options):
            return text
    return ""


def _tolerance(*, normalize: bool) -> float:
    return ROUNDING if normalize else SUM_TOLERANCE


class RowSums:
    """Checks the sums of rows, batch by batch, and converts the rows to probabilities."""

    def __init__(self, *, percent: bool, normalize: bool) -> None:
        self._percent, self._normalize = percent, normalize
        self._ends = list[float]()  # of the sums of each batch

    def probabilities(self, columns: Iterable[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return columns as probabilities, not yet normalized."""
        return [column / 100.0 for column in columns] if self._percent else list(columns)

    def refuse_percentages(self, matrix: _Array, numbers: RowNumbers, subject: str) -> None:
        """Reject rows that add up to 100 before single values are checked, if there is no --percent."""
        sums = matrix.sum(axis=1)
        if not self._percent and are_sums(sums, percent=True, normalize=True):
            self._refuse(sums, numbers, subject)

    def checked(self, matrix: _Array, numbers: RowNumbers, subject: str) -> _Array:
        """Return the probabilities of rows, whose numbers in the file are `numbers`. Raises for other sums."""
        sums = matrix.sum(axis=1)
        if not are_sums(sums, percent=False, normalize=self._normalize):
            self._refuse(sums, numbers, subject)
        if not self._normalize:
            return matrix
        self._ends += [float(sums.min()), float(sums.max())]
        return np.asarray(matrix / sums[:, None])

    def _refuse(self, sums: _Array, numbers: RowNumbers, subject: str) -> NoReturn:
        unit, tolerance = 100.0 if self._percent else 1.0, _tolerance(normalize=self._normalize)
        bad = np.abs(sums - 1.0) > tolerance
        row = int(np.argmax(bad))
        place = f"at row {numbers[row]} ({np.count_nonzero(bad):,} of {numbers[-1] + 1:,} rows read)"
        rule = f"must add up to {unit:g} in each row (within {unit * tolerance:g})"
        cure = suggest_options(sums) or _OTHERS
        if self._percent and are_sums(100.0 * sums, percent=False, normalize=True):
            cure = "Probabilities already? Omit --percent."
        raise invalid("y_proba", f"{rule}; found {unit * sums[row]:.6g} {place}. {cure}", subject=subject)

    def notes(self) -> list[str]:
        """Say how rows were converted."""
        unit, notes = 1.0, []
        if self._percent:
            unit, notes = 100.0, ["Probabilities are percentages: they were divided by 100 (--percent)."]
        if self._ends:
            low, high = unit * min(self._ends), unit * max(self._ends)
            ends = f"{low:.6g}" if f"{low:.6g}" == f"{high:.6g}" else f"between {low:.6g} and {high:.6g}"
            notes.append(f"Rows add up to {ends}; each was divided by its sum (--normalize).")
        return notes


def name_columns(source: object, names: Sequence[str]) -> str:
    """Name the columns of one model as the subject of an error."""
    return f"{source}: the columns {list_shown(names)}"
