"""The exact summary: rows sorted once, shared by every measure."""

import itertools
import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, check_rows, refuse_wide_weight
from truthcal.core.parallel import WORTH_A_THREAD, in_parts, parts_of, run_tasks
from truthcal.core.points import Points
from truthcal.kernels import rows as kernel

# Rows are sorted in parts of about so many rows, which fit into the L2 cache of a core, in at most so many parts.
_SORT_ROWS, _MOST_PARTS = 1 << 15, 64
# Pivots between the parts are quantiles of so many rows. A table of so many cells finds the part of a row.
_PIVOT_SAMPLE, _CELLS = 4001, 1 << 12


class Moments(NamedTuple):
    """Sums over rows, on the sample's own scale of weights. c = p - y, v = p(1 - p)."""

    w: float
    ww: float
    wcc: float
    wwcc: float
    wwv: float
    wc: float


class Groups(NamedTuple):
    """Rows with equal predictions as one: `r` increasing without ties; sums of w, w y and w c; c summed up so far."""

    r: NDArray[np.float64]
    w: NDArray[np.float64]
    wy: NDArray[np.float64]
    c: NDArray[np.float64]
    cumulative: NDArray[np.float64]


class Sample:
    """Rows in order of prediction: `p` increasing, with the corresponding `y` and `w`. Read-only.

    Weights are scaled by a power of two so that the largest lies in [0.5, 1): only their ratios matter, and so weights
    around 1e300 or 1e-300 are as good as any. `exponent` undoes it. Without weights, `w` is a broadcast 1.0.

    Memory a row, beyond the input: 9 bytes for 0/1 outcomes without weights (5 for float32); with fractional outcomes
    16 bytes, with weights 24. While sorting, 1 byte more (with weights 9), and a copy of the part that a thread sorts.
    """

    sketched: ClassVar[Literal[False]] = False
    neighbour_z: float | None = None  # of these rows in file order, where a test needs it

    def __init__(self, p: NDArray[Any], y: NDArray[Any], w: NDArray[np.float64] | None, exponent: int = 0) -> None:
        self.p, self.y = p, y
        self.weighted = w is not None
        self.w: NDArray[np.float64] = np.broadcast_to(np.float64(1.0), p.shape) if w is None else w
        self.exponent = exponent
        for array in (self.p, self.y, self.w):
            array.flags.writeable = False

    @classmethod
    def of(cls, y_true: object, y_proba: object, sample_weight: object = None, pos_label: object = None) -> Self:
        """Check and sort what a user passed to a measure."""
        return cls.from_checked(check_rows(y_true, y_proba, sample_weight, pos_label))

    @classmethod
    def from_checked(cls, rows: Checked) -> Self:
        """Sort checked rows."""
        if rows.w is None and rows.y.dtype == np.uint8:
            return cls(*_sort_packed(rows.p, rows.y), None)
        if rows.w is None:
            return cls(*_sort_rows(rows))
        refuse_wide_weight(rows.w)
        w, exponent = relative_weights(rows.w)
        return cls(*_sort_rows(rows._replace(w=w)), exponent)

    @property
    def counted(self) -> bool:
        """Whether outcomes are 0/1 and there are no weights, so that integers can count them."""
        return self.y.dtype == np.uint8

    @property
    def n(self) -> int:
        """Rows that count."""
        return len(self.p)

    @cached_property
    def moments(self) -> Moments:
        """All sums that need no order, in one pass."""
        p, y, w = self.p, self.y, self.w
        parts = in_parts(lambda first, last: kernel.moments(p[first:last], y[first:last], w[first:last]), self.n)
        *sums, high, low = zip(*parts, strict=True)
        return Moments._make([*map(math.fsum, sums), math.fsum(high + low)])

    @property
    def weight(self) -> float:
        """Sum of the weights, without a pass over the rows where there are none."""
        return self.moments.w if self.weighted else float(self.n)

    @cached_property
    def groups(self) -> Groups:
        """The different predictions, 40 bytes each."""
        columns = np.empty((len(Groups._fields), kernel.count_distinct(self.p)))
        kernel.group_ties(self.p, self.y, self.w, *columns)
        columns.flags.writeable = False
        return Groups(*columns)

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The first row of each different prediction."""
        return np.searchsorted(self.p, self.groups.r.astype(self.p.dtype))

    def points(self) -> Points:
        """One point for each distinct prediction."""
        return self._points

    @cached_property
    def _points(self) -> Points:
        r, weight, wy, bias, cumulative = self.groups
        v = r * (1.0 - r)
        if self.weighted:
            n = np.diff(self.starts, append=self.n)
            wc = self.w * (self.p - self.y)
            squares = self.w**2
            powers = squares, squares * self.w, squares**2, self.w * wc, wc**2
            ww, www, fourth, wwc, wwcc = (np.add.reduceat(column, self.starts) for column in powers)
            row_ww, top = fourth / ww, np.maximum.reduceat(self.w, self.starts)
        else:
            n, ww, www, wwc = weight.astype(np.int64), weight, weight, bias
            row_ww = top = np.broadcast_to(np.float64(1.0), r.shape)
            if self.counted:
                wwcc = wy * (1.0 - r) ** 2 + (weight - wy) * r**2
            else:
                wwcc = np.add.reduceat((self.p - self.y) ** 2, self.starts)
        return Points(
            p=r, low=r, high=r, n=n, weight=weight, ww=ww, www=www, wp=weight * r, wy=wy, wv=weight * v, wcp=bias * r,
            wwc=wwc, wwcc=wwcc, wwv=ww * v, bias=bias, cumulative=cumulative, row_ww=row_ww,
            top=top, impossible=self._impossible(),
        )  # fmt: skip

    def _impossible(self) -> int:
        """Number of rows whose outcome had a predicted probability of exactly 0."""
        zeros = np.searchsorted(self.p, self.p.dtype.type(0), side="right")
        ones = np.searchsorted(self.p, self.p.dtype.type(1), side="left")
        return int(np.count_nonzero(self.y[:zeros] == 1) + np.count_nonzero(self.y[ones:] == 0))

    @cached_property
    def repetitions(self) -> NDArray[np.float64]:
        """The weights as the user gave them."""
        return np.ldexp(self.w, self.exponent) if self.weighted else self.w


def relative_weights(w: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Weights of a sample, scaled so that the maximum is in [0.5, 1), and the exponent of two that undoes it. Exact."""
    exponent = int(np.frexp(w.max())[1])
    return np.ldexp(w, -exponent), exponent


def _sort_packed(p: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sort the rows of a sample as integers of (p, label): values sort several times faster than indices.

    A float in [0, 1] has its top bits clear and orders like its bit pattern, so the label fits below it (`pack`).
    """
    bits = _bits(p)
    keys, labels = np.empty_like(bits), np.empty(len(p), np.uint8)

    def sort(first: int, last: int) -> None:
        keys[first:last].sort()
        kernel.unpack(keys[first:last], labels[first:last])

    if len(p) < WORTH_A_THREAD:
        kernel.pack(bits, y, keys)
        sort(0, len(p))
    else:
        parts = _Partition(p)
        parts.scatter(lambda rows, part, at: kernel.scatter_keys(bits[rows], y[rows], part, at, keys))
        parts.each(sort)
    return keys.view(p.dtype), labels


def _sort_rows(rows: Checked) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
    """Sort the rows of a sample with weights or fractional outcomes: moved once, then sorted in parts."""
    p, y, w = rows
    columns, weights = np.empty((2 if w is None else 3, len(p))), np.empty(0) if w is None else w

    def sort(first: int, last: int) -> None:
        order = np.argsort(columns[0, first:last])
        for column in columns:
            column[first:last] = column[first:last][order]

    if len(p) < WORTH_A_THREAD:
        for out, column in zip(columns, rows, strict=False):
            out[:] = column
        columns[0] += 0.0  # turns -0.0 into 0.0
        sort(0, len(p))
    else:
        parts = _Partition(p)
        parts.scatter(lambda rows, part, at: kernel.scatter_rows(p[rows], y[rows], weights[rows], part, at, columns))
        parts.each(sort)
    return columns[0], columns[1], columns[2] if w is not None else None


class _Partition:
    """A division of rows by prediction into parts that are sorted one by one, in parallel.

    Pivots between the parts are quantiles of some of the rows, always the same ones. Chunks of rows are moved to the
    parts in parallel: each chunk has its own places in each part.
    """

    def __init__(self, p: NDArray[Any]) -> None:
        self._n, self._chunks = len(p), parts_of(len(p))
        self._part = np.empty(len(p), np.uint8)
        bits, table = _bits(p), _part_table(p)
        tasks = [partial(kernel.count_by_part, bits[a:b], *table, self._part[a:b]) for a, b in self._chunks]
        counts = np.stack(run_tasks(tasks, self._n))
        self._ends = np.cumsum(counts.sum(axis=0))
        self._places = np.cumsum(counts, axis=0) - counts + (self._ends - counts.sum(axis=0))

    def scatter(self, move: Callable[[slice, NDArray[np.uint8], NDArray[np.int64]], None]) -> None:
        """Call `move` with each chunk of rows, the part of each row, and the first place in each part."""
        tasks = [
            partial(move, slice(first, last), self._part[first:last], places)
            for (first, last), places in zip(self._chunks, self._places, strict=True)
        ]
        run_tasks(tasks, self._n)

    def each(self, sort: Callable[[int, int], None]) -> None:
        """Call `sort` with the first and the last row of each part, large parts first."""
        ranges = sorted(itertools.pairwise([0, *self._ends.tolist()]), key=lambda part: part[0] - part[1])
        run_tasks([partial(sort, first, last) for first, last in ranges if last > first], self._n)


def _bits(p: NDArray[Any]) -> NDArray[Any]:
    """The bit patterns of predictions, as integers: they order like the predictions."""
    return p.view(np.int32 if p.dtype == np.float32 else np.int64)


def _part_table(p: NDArray[Any]) -> tuple[int, int, NDArray[np.uint8], NDArray[Any]]:
    """Pivots between the parts of a partition, and the table that finds the part of a row (`count_by_part`).

    Cells of the table are equal stretches of bit patterns between the pivots, so that they are finer for small p.
    """
    sample = np.sort(_bits(np.abs(p[:: max(1, len(p) // _PIVOT_SAMPLE)])))
    parts = min(max(len(p) // _SORT_ROWS, 2), _MOST_PARTS)
    pivots = np.unique(sample[np.arange(1, parts) * len(sample) // parts])
    low, high = int(pivots[min(np.searchsorted(pivots, 1), len(pivots) - 1)]), int(pivots[-1])
    shift = max((high - low).bit_length() - _CELLS.bit_length() + 1, 0)
    first = np.searchsorted(pivots, low + (np.arange(_CELLS) << shift), side="right").astype(np.uint8)
    first[0] = 0
    return low, shift, first, np.append(pivots, np.iinfo(pivots.dtype).max)
