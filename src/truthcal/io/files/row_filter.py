"""Rows left out at the user's request, and their number: never silently."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.accumulate import refuse_invalid_batch

if TYPE_CHECKING:
    from truthcal.io.files.scan import RowBatch

_Mask = NDArray[np.bool_]


@dataclass(slots=True)
class RowFilter:
    """A filter of rows, and the numbers of rows left out so far.

    `missing`: leave out rows without an outcome or without a probability. `fractional`: "drop" leaves out rows whose
    outcome is neither 0 nor 1. `chosen`: which rows of all files, in order, to use; None for all.
    """

    missing: bool = False
    fractional: Literal["drop", "keep"] | None = None
    chosen: _Mask | None = None
    n_rows: int = 0  # rows read so far
    n_fractional: int = 0  # rows with a fractional outcome so far, left out or not
    n_missing_outcomes: int = 0
    n_missing_probabilities: int = 0

    def apply(self, rows: "RowBatch", roles: ColumnRoles) -> "RowBatch":
        """Return the rows of a batch to use. Raises if one of them is invalid, with its row in the file."""
        keep = np.ones(len(rows.y), np.bool_)
        if self.chosen is not None:
            keep &= self.chosen[self.n_rows : self.n_rows + len(keep)]
        self.n_rows += len(keep)
        if self.missing:
            keep = self._without_missing(rows, keep)
        fractions = keep & (rows.y > 0) & (rows.y < 1)
        self.n_fractional += int(fractions.sum())
        if self.fractional == "drop":
            keep &= ~fractions
        if keep.all():
            return rows
        # Rows left out must not raise errors, and the others must raise theirs before row numbers change.
        y, ps = np.where(keep, rows.y, 0), [np.where(keep, p, np.float32(0.5)) for p in rows.ps]
        refuse_invalid_batch(y, ps, rows.w, rows.numbers, roles, str(rows.source))
        return _selected(rows, keep)

    def _without_missing(self, rows: "RowBatch", keep: _Mask) -> _Mask:
        """Leave out rows without an outcome, then those without a probability of each model."""
        known = ~np.isnan(rows.y) if rows.y.dtype.kind == "f" else np.ones(len(rows.y), np.bool_)
        self.n_missing_outcomes += int((keep & ~known).sum())
        keep = keep & known
        for p in rows.ps:
            self.n_missing_probabilities += int((keep & np.isnan(p)).sum())
            keep = keep & ~np.isnan(p)
        return keep


def _selected(rows: "RowBatch", keep: _Mask) -> "RowBatch":
    def some(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else values[keep]

    groups = None if rows.groups is None else (rows.groups[0][keep], rows.groups[1])
    record = rows.record.take(np.flatnonzero(keep))
    ps = [p[keep] for p in rows.ps]
    numbers = np.asarray(rows.numbers, np.int64)[keep]
    selected = replace(rows, y=rows.y[keep], ps=ps, w=some(rows.w), groups=groups, hashes=some(rows.hashes))
    return replace(selected, record=record, numbers=numbers)
