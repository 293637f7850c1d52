"""Group sums of segments: rows that belong together, in a table with one sketch for each segment."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, check_rows
from truthcal.core.group_keys import Key
from truthcal.core.group_sums import FEWEST_GROUPS, GroupSums
from truthcal.core.sample import Sample

_Ints = NDArray[np.int64]


class SegmentGroups:
    """The rows of all segments, sorted by segment, and their groups. Sums are computed for one segment at a time.

    A group may have rows in several segments. Memory: 20 to 30 bytes a row; the sums of a segment take 0.4 MB.
    """

    def __init__(self, columns: tuple[Any, Any, Any], groups: _Ints, segment: _Ints, keys: Sequence[Key]) -> None:
        """Sort rows (outcomes, predictions, weights or None) by the number of their segment among the keys."""
        y, p, w = columns
        order = np.argsort(segment, kind="stable")
        self._columns = y[order], p[order], None if w is None else w[order]
        self._groups = groups[order]
        self._ends = np.searchsorted(segment[order], np.arange(len(keys) + 1))
        self._place = {key: place for place, key in enumerate(keys)}

    def sums(self, key: Key) -> GroupSums | None:
        """Add up the rows of each group in a segment; None if it has fewer than 20 groups."""
        place = self._place[key]
        rows = slice(self._ends[place], self._ends[place + 1])
        y, p, w = (None if column is None else column[rows] for column in self._columns)
        groups = self._groups[rows] if w is None else self._groups[rows][w > 0.0]
        distinct, numbers = np.unique(groups, return_inverse=True)
        if len(distinct) < FEWEST_GROUPS:
            return None
        checked: Checked = check_rows(y, p, w, part=True)
        return GroupSums.of_rows(Sample.from_checked(checked).points(), checked, numbers.astype(np.int64))
