"""Pending rows: predictions whose outcomes arrive later.

A row with a due window is scored at the end of that window, not when its outcome arrives: outcomes of 1 are often known
earlier than outcomes of 0, and the rows known so far would not be calibrated even if all rows are. An outcome that
arrives after its due window is scored when it arrives. Rows without a due window are scored when they arrive.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from truthcal.core.checks import invalid
from truthcal.core.params import shown

# Overdue rows from which the dependence on the prediction is examined, and the z from which there is a warning: high,
# because it is looked at again and again.
_FEWEST, _CLEAR = 20, 4.0


@dataclass(slots=True)
class PendingRow:
    """A row that is not yet scored: prediction, due window and group (None without), and the outcome if known.

    `left_out` if its group was scored without it.
    """

    p: float
    due: int | None
    group: Hashable = None
    y: int | None = None
    left_out: bool = False

    def is_overdue(self, now: int) -> bool:
        """Return whether the outcome is missing after the due window."""
        return self.y is None and self.due is not None and self.due < now


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row with its outcome, to be scored now."""

    p: float
    y: int
    group: Hashable


@dataclass(slots=True)
class PendingRows:
    """All registered rows that are not yet scored, by id, and sums of those that were scored."""

    rows: dict[Hashable, PendingRow] = field(default_factory=dict)
    # Number, sum of predictions and of their squares, of rows with a due window whose outcome arrived.
    known: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    too_late: int = 0  # outcomes that arrived after their group was scored

    def add(self, ids: list[Any], rows: Iterable[PendingRow]) -> None:
        """Register rows; none of them if an id is not new."""
        known: set[Hashable] = set()
        for position, row_id in enumerate(ids):
            if row_id in self.rows or row_id in known:
                problem = f"has {shown(row_id)} at row {position}, which is registered already"
                raise invalid("ids", f"{problem}; each row needs an id of its own.")
            known.add(row_id)
        self.rows.update(zip(ids, rows, strict=True))

    def check_disjoint(self, other: "PendingRows") -> None:
        """Reject rows that both have."""
        both = next((row_id for row_id in other.rows if row_id in self.rows), None)
        if both is not None:
            problem = f"the row {shown(both)} is registered in both monitors"
            raise ValueError(f"{problem}; merge monitors of different rows, with different ids.")

    def merge(self, other: "PendingRows") -> None:
        """Add the rows of another monitor."""
        self.rows.update(other.rows)
        self.known = [mine + others for mine, others in zip(self.known, other.known, strict=True)]
        self.too_late += other.too_late

    def resolve(self, row_id: Hashable, y: int, now: int) -> ScoredRow | None:
        """Store the outcome of a row; return the row if it is to be scored at once."""
        row = self.rows[row_id]
        if row.due is not None:
            self.known = [total + row.p**k for k, total in enumerate(self.known)]
        if row.left_out:
            self.too_late += 1
            del self.rows[row_id]
        elif row.group is not None or (row.due is not None and row.due >= now):
            row.y = y
        else:
            del self.rows[row_id]
            return ScoredRow(row.p, y, None)
        return None

    def check_ids(self, ids: list[Any]) -> None:
        """Reject ids that are not registered, or whose outcome is known."""
        for position, row_id in enumerate(ids):
            row = self.rows.get(row_id)
            if row is None or row.y is not None:
                problem = "is not registered, or is scored already" if row is None else "has its outcome already"
                raise invalid("ids", f"has {shown(row_id)} at row {position}, which {problem}.")
        if len(set(ids)) < len(ids):
            twice = Counter(ids).most_common(1)[0][0]
            raise invalid("ids", f"has {shown(twice)} twice; each row has one outcome.")

    def due_at_end(self, window: int) -> list[ScoredRow]:
        """Remove and return the rows that are scored at the end of a window.

        A group is scored as a whole, when the outcome of each of its rows is known and due, or overdue.
        """
        waiting = {row.group for row in self.rows.values() if row.group is not None and self._waits(row, window)}
        ready: dict[Hashable, PendingRow] = {
            row_id: row
            for row_id, row in self.rows.items()
            if not row.left_out and not self._waits(row, window) and (row.group is None or row.group not in waiting)
        }
        grouped = {row.group for row in ready.values() if row.group is not None and row.y is not None}
        scored = []
        for row_id, row in ready.items():
            if row.y is not None:
                scored.append(ScoredRow(row.p, row.y, row.group))
                del self.rows[row_id]
            elif row.group in grouped and row.group is not None:
                row.left_out = True
        return scored

    @staticmethod
    def _waits(row: PendingRow, window: int) -> bool:
        """Return whether a row can still get its outcome in time, or is known before it is due."""
        return not row.left_out and (row.y is None if row.due is None else row.due > window)

    def next_due(self, after: int) -> Iterator[int]:
        """Yield the due windows of known rows from `after` on, in order."""
        yield from sorted({row.due for row in self.rows.values() if row.due is not None and row.due >= after})

    def overdue(self, now: int) -> list[PendingRow]:
        """Return the rows whose outcome is missing after their due window."""
        return [row for row in self.rows.values() if row.is_overdue(now)]

    def warning(self, now: int) -> str | None:
        """Return a warning if predictions of overdue rows differ clearly from those of rows with outcomes."""
        missing = [row.p for row in self.overdue(now)]
        return missing_warning([len(missing), sum(missing), sum(p * p for p in missing)], self.known)


def missing_warning(missing: list[float], known: list[float]) -> str | None:
    """Return a warning if predictions of rows without and with an outcome differ clearly.

    Of both: the number of rows, the sum of their predictions, and of the squares of these.
    """
    if min(missing[0], known[0]) < _FEWEST:
        return None
    means = [total / n for n, total, _ in (missing, known)]
    both = zip((missing, known), means, strict=True)
    variance = sum(max(squares / n - mean**2, 0.0) / n for (n, _, squares), mean in both)
    difference = means[0] - means[1]
    if not difference or (variance > 0.0 and abs(difference) < _CLEAR * math.sqrt(variance)):
        return None
    z = f" (z = {difference / math.sqrt(variance):+.1f})" if variance > 0.0 else ""
    return (
        f"Missing outcomes depend on the prediction: {int(missing[0]):,} rows are overdue with a mean prediction of "
        f"{means[0]:.3g}; {int(known[0]):,} rows with outcomes have {means[1]:.3g}{z}. The evidence covers only rows "
        "with outcomes. It is valid if the outcome itself has no influence on whether it is missing."
    )
