"""Blocks of windows: all that a monitor remembers of scored rows, as sums that add up exactly.

Windows are numbered from 0. A block holds the sums of the windows from its start to the start of the next block. The
starts are the start times that are kept (`start_times.py`), so the number of blocks grows with the logarithm of the
number of windows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.monitoring.exact_sums import carry, to_floats, to_pairs
from truthcal.monitoring.start_times import kept_starts, log_reserve, log_weights
from truthcal.monitoring.tilts import BUCKETS, log_factors, tilt_table

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

# The sums of a block: rows, outcomes of 1 and predictions by bucket; log evidence of groups by tilt; totals of rows,
# outcomes of 1 and units (groups, or rows without one); totals of predictions and of squared errors of units.
_TILTS = len(tilt_table().log_prior)
_N, _Y, _P = slice(0, BUCKETS), slice(BUCKETS, 2 * BUCKETS), slice(2 * BUCKETS, 4 * BUCKETS)
_LOGS = slice(4 * BUCKETS, 4 * BUCKETS + 2 * _TILTS)
_COUNTS, _TOTALS = slice(_LOGS.stop, _LOGS.stop + 3), slice(_LOGS.stop + 3, _LOGS.stop + 7)
WIDTH = _TOTALS.stop


class Totals(NamedTuple):
    """Totals of scored rows: their number, outcomes of 1, independent units, sums of predictions and squared errors."""

    n: int
    positives: int
    units: int
    proba: float
    squares: float


def sums_of_rows(n: _Ints, positives: _Ints, proba: _Floats, squares: float) -> _Ints:
    """Return the sums of rows that are not in groups, from their sums by bucket."""
    sums = np.zeros(WIDTH, np.int64)
    sums[_N], sums[_Y] = n, positives
    pairs = to_pairs(proba)
    sums[_P] = pairs.ravel()
    sums[_COUNTS] = n.sum(), positives.sum(), n.sum()
    total = np.array([pairs[0].sum(), pairs[1].sum()])
    sums[_TOTALS] = np.stack([total, to_pairs(squares)], axis=1).ravel()
    _carried(sums[None])
    return sums


def sums_of_groups(logs: Iterable[_Floats], totals: _Floats, n: int, positives: int) -> _Ints:
    """Return the sums of n rows in groups, from the log evidence of groups (first axis) for each tilt.

    `totals` are the sums of predictions and the squared sums of errors of each group (second axis). The numbers of each
    group are rounded by themselves, so that the sums do not depend on which groups come together.
    """
    sums = np.zeros(WIDTH, np.int64)
    for part in logs:
        sums[_LOGS] += to_pairs(part).sum(axis=1).ravel()
        _carried(sums[None])
    sums[_COUNTS] = n, positives, totals.shape[1]
    sums[_TOTALS] = to_pairs(totals).sum(axis=2).ravel()
    _carried(sums[None])
    return sums


def _carried(sums: _Ints) -> _Ints:
    """Normalize the pairs in rows of sums, in place; return the rows."""
    for part, size in ((_P, BUCKETS), (_LOGS, _TILTS), (_TOTALS, 2)):
        pairs = sums[:, part].reshape(len(sums), 2, size).transpose(1, 0, 2).copy()
        carry(pairs)
        sums[:, part] = pairs.transpose(1, 0, 2).reshape(len(sums), -1)
    return sums


@dataclass(slots=True)
class Blocks:
    """The blocks of a monitor up to the window `now`; without windows, `now` is -1."""

    now: int = -1
    starts: _Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    sums: _Ints = field(default_factory=lambda: np.zeros((0, WIDTH), np.int64))
    _evidence: dict[int, _Floats] = field(default_factory=dict)  # by start of the block: computed on demand
    _log_e: float | None = None  # of all rows: computed on demand

    def advance(self, now: int) -> None:
        """Go to a later window. Blocks of start times that are no longer kept join the block before them."""
        if now <= self.now:
            return
        # Windows between two looks have no rows of their own, but each is a start time.
        new = np.arange(self.now + 1, now + 1)
        new = new[kept_starts(new, now)]
        starts = np.concatenate([self.starts, new])
        sums = np.concatenate([self.sums, np.zeros((len(new), WIDTH), np.int64)])
        kept = kept_starts(starts, now)
        if not kept.all():
            joined = np.flatnonzero(~kept)
            for place in {int(p) for p in np.cumsum(kept)[joined] - 1}:
                self._evidence.pop(int(starts[kept][place]), None)
            for start in starts[joined].tolist():
                self._evidence.pop(start, None)
            sums = _carried(np.add.reduceat(sums, np.flatnonzero(kept), axis=0))
        self.now, self.starts, self.sums, self._log_e = now, starts[kept], sums, None

    def add(self, sums: _Ints) -> None:
        """Add sums of rows to the window `now`."""
        self.sums[-1] += sums
        _carried(self.sums[-1:])
        self._evidence.pop(int(self.starts[-1]), None)
        self._log_e = None

    def merge(self, other: "Blocks") -> None:
        """Add the rows of other blocks, window by window. Both go to the later of their last windows first."""
        copy = Blocks(other.now, other.starts, other.sums)
        copy.advance(self.now)
        self.advance(other.now)
        self.sums = _carried(self.sums + copy.sums)
        self._evidence.clear()
        self._log_e = None

    def rows(self) -> _Ints:
        """Return the number of rows of each block."""
        return self.sums[:, _COUNTS.start]

    def totals(self, since: int = 0) -> Totals:
        """Return the totals of the rows of all blocks that start at window `since` or later."""
        some = self.sums[self.starts >= since]
        sums = _carried(some.sum(axis=0, keepdims=True))[0] if len(some) else np.zeros(WIDTH, np.int64)
        proba, squares = to_floats(sums[_TOTALS].reshape(2, 2)).tolist()
        n, positives, units = sums[_COUNTS].tolist()
        return Totals(n, positives, units, proba, squares)

    def evidence(self) -> _Floats:
        """Return the log evidence of each block (first axis) for each tilt."""
        for start, sums in zip(self.starts.tolist(), self.sums, strict=True):
            if start not in self._evidence:
                logs = to_floats(sums[_LOGS].reshape(2, _TILTS))
                proba = to_floats(sums[_P].reshape(2, BUCKETS))
                self._evidence[start] = logs + log_factors(sums[_N], sums[_Y], proba)
        return np.array([self._evidence[start] for start in self.starts.tolist()]).reshape(-1, _TILTS)

    def log_terms(self, end: int | None = None) -> _Floats:
        """Return the log evidence, weight included, by start time and tilt, of the first `end` blocks."""
        evidence = self.evidence()[:end]
        since = np.cumsum(evidence[::-1], axis=0)[::-1]
        return since + log_weights(self.starts[:end])[:, None] + tilt_table().log_prior

    def log_e_value(self, end: int | None = None) -> float:
        """Return the log of the evidence of all rows, or of those of the first `end` blocks."""
        if not len(self.starts):
            return 0.0
        if end is not None and end < len(self.starts):
            return log_sum(np.append(self.log_terms(end), log_reserve(int(self.starts[end]) - 1)))
        if self._log_e is None:
            self._log_e = log_sum(np.append(self.log_terms(), log_reserve(self.now)))
        return self._log_e


def log_sum(logs: _Floats) -> float:
    """Return the logarithm of the sum of numbers whose logarithms are given."""
    largest = float(logs.max())
    return largest + float(np.log(np.exp(logs - largest).sum()))
