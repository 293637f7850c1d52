"""The exact summary: rows sorted once, shared by every measure."""

import math
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, check_rows, refuse_wide_weight
from truthcal.core.grid import Grid
from truthcal.core.parallel import WORTH_A_THREAD, in_parts, parts_of, run_tasks
from truthcal.core.points import Points
from truthcal.kernels import rows as kernel

# Rows are sorted in parts of about this many rows, which fit into the processor's cache, and in so many parts at most.
# They are found by so many buckets, whose numbers are stored in two bytes.
_SORT_ROWS, _MOST_SORT_PARTS, _SORT_BUCKETS = 1 << 16, 512, 4096
# Places between those to which threads write rows that are not needed: a cache line.
_SPARE = 16


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
    16 bytes, with weights 24. While sorting, 2 bytes more (with weights 10), and two copies of 65,536 rows per thread.
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
    integer = np.int32 if p.dtype == np.float32 else np.int64
    bits, labels, n = p.view(integer), np.empty(len(p), np.uint8), len(p)
    if n < WORTH_A_THREAD:
        keys = np.empty(n, integer)
        kernel.pack(bits, y, keys)
        keys.sort()
        kernel.unpack(keys, labels)
        return keys.view(p.dtype), labels
    parts = _Partition(p, y)
    keys = np.empty(n + _SPARE * len(parts.chunks), integer)

    def scatter(chunk: int) -> None:
        # Tied rows, which need no sorting, all go to a spare place.
        at = np.where(parts.tied, n + _SPARE * chunk, parts.places[chunk])
        rows = slice(*parts.chunks[chunk])
        step = (~parts.tied).astype(np.int64)
        kernel.scatter_keys(bits[rows], y[rows], parts.bucket[rows], parts.part_of, at, step, keys)

    def sort(part: int) -> None:
        rows = slice(*parts.rows_of(part))
        if parts.tied[part]:
            keys[rows] = p.dtype.type(parts.value[part]).view(integer)
            labels[rows] = 0
            labels[rows.stop - parts.positives[part] : rows.stop] = 1
        else:
            keys[rows].sort()
            kernel.unpack(keys[rows], labels[rows])

    run_tasks([partial(scatter, chunk) for chunk in range(len(parts.chunks))], n)
    run_tasks([partial(sort, part) for part in range(len(parts.tied))], n)
    return keys[:n].view(p.dtype), labels


def _sort_rows(rows: Checked) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
    """Sort the rows of a sample with weights or fractional outcomes: moved once, then sorted in parts."""
    p, y, w = rows
    parts = _Partition(p, np.broadcast_to(np.uint8(0), p.shape))
    columns = np.empty((2 if w is None else 3, len(p)))
    weights = np.empty(0) if w is None else w

    def scatter(chunk: int) -> None:
        own = slice(*parts.chunks[chunk])
        at = parts.places[chunk].copy()
        kernel.scatter_rows(p[own], y[own], weights[own], parts.bucket[own], parts.part_of, at, columns)

    def sort(part: int) -> None:
        if not parts.tied[part]:
            own = slice(*parts.rows_of(part))
            order = np.argsort(columns[0, own])
            columns[:, own] = columns[:, own][:, order]

    run_tasks([partial(scatter, chunk) for chunk in range(len(parts.chunks))], len(p))
    run_tasks([partial(sort, part) for part in range(len(parts.tied))], len(p))
    return columns[0], columns[1], columns[2] if w is not None else None


class _Partition:
    """A division of rows by prediction into parts that fit into the processor's cache: each is sorted by itself.

    Rows are counted in the buckets of a sketch, and parts are runs of neighbouring buckets. A bucket with many equal
    predictions and no others is a part of its own, which needs no sorting. Chunks of rows are the units of threads.

    Attributes
    ----------
    chunks : list of (int, int)
        First and last row of each chunk.
    bucket : ndarray of uint16
        Bucket of each row.
    part_of : ndarray of int64
        Part of each bucket.
    tied : ndarray of bool
        Whether all predictions of a part are equal: then they are `value`, and so many have the label 1: `positives`.
    places : ndarray of int64, (chunks, parts)
        Where the rows of each chunk begin in each part.
    """

    def __init__(self, p: NDArray[Any], y: NDArray[Any]) -> None:
        self._n, self.chunks = len(p), parts_of(len(p))
        grid = Grid.of_size(_SORT_BUCKETS)
        self.bucket = np.empty(len(p), np.uint16)

        def count(first: int, last: int) -> tuple[NDArray[Any], ...]:
            counts, value = np.zeros(2 * _SORT_BUCKETS, np.int64), np.full(_SORT_BUCKETS, np.nan)
            mixed, rows = np.zeros(_SORT_BUCKETS, np.bool_), slice(first, last)
            kernel.count_by_bucket(p[rows], y[rows], grid.tables, self.bucket[rows], counts, value, mixed)
            return counts.reshape(-1, 2), value, mixed

        counted = run_tasks([partial(count, *chunk) for chunk in self.chunks], len(p))
        counts, values, mixed = (np.stack(column) for column in zip(*counted, strict=True))
        self._assign_parts(counts.sum(axis=2), values, np.logical_or.reduce(mixed))
        ones = counts[:, :, 1].sum(axis=0)
        self.positives = np.bincount(self.part_of, ones, len(self.tied)).astype(np.int64)

    def _assign_parts(self, sizes: NDArray[np.int64], values: NDArray[np.float64], mixed: NDArray[np.bool_]) -> None:
        """Assign the buckets to parts. `sizes` and `values` (nan if there is none): for each chunk and bucket."""
        size = sizes.sum(axis=0)
        with np.errstate(invalid="ignore"):
            lowest, highest = np.fmin.reduce(values), np.fmax.reduce(values)
        target = max(_SORT_ROWS, self._n // _MOST_SORT_PARTS)
        tied = ~mixed & (lowest == highest) & (size >= target // 8)
        block = (np.cumsum(size) - size) // target
        begins = tied | np.r_[True, tied[:-1] | (np.diff(block) > 0)]
        self.part_of = np.cumsum(begins) - 1
        first = np.flatnonzero(begins)
        self.tied, self.value = tied[first], lowest[first] + 0.0  # turns -0.0 into 0.0
        in_parts = np.add.reduceat(sizes, first, axis=1)
        self._ends = np.cumsum(in_parts.sum(axis=0))
        self.places = np.cumsum(in_parts, axis=0) - in_parts + (self._ends - in_parts.sum(axis=0))

    def rows_of(self, part: int) -> tuple[int, int]:
        """First and last sorted row of a part."""
        return (int(self._ends[part - 1]) if part else 0), int(self._ends[part])
