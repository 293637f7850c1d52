"""Sort rows by prediction, in parallel parts, or count them if there are few distinct predictions."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked
from truthcal.core.parallel import WORTH_A_THREAD, in_parts, parts_of, run_tasks
from truthcal.kernels import rows as kernel

A = TypeVar("A")

# Rows are sorted in parts of about so many rows, which fit into the L2 cache of a core, in at most so many parts.
_SORT_ROWS, _MOST_PARTS = 1 << 14, 64
# Pivots between the parts are quantiles of a sample of so many rows. A table of so many cells finds the part of a row.
_SAMPLE, _CELLS = 4001, 1 << 12
# Fewer rows than this are sorted by `np.argsort`, without compiled loops.
_FEW_ROWS = 1 << 12
# Many rows with at most so many distinct predictions are counted, in at most so many parts with a table each.
_FEW_VALUES, _COUNT_PARTS = 1 << 12, 16


class Counts(NamedTuple):
    """Rows counted by prediction: distinct predictions, increasing, and the numbers of rows with either outcome."""

    value: NDArray[Any]
    zeros: NDArray[np.int64]
    ones: NDArray[np.int64]


def sort_labels(p: NDArray[Any], y: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[np.uint8]] | Counts:
    """Sort rows with 0/1 outcomes, or count them if they are many and have at most 4096 distinct predictions.

    Whether they are counted depends on the set of rows, not on their order, and so do the last bits of every result of
    sorted rows.
    A sample of the rows only decides which way is tried first.
    """
    if len(p) < WORTH_A_THREAD:
        return _sort_few(p, y)
    sample = _sorted_sample(p)
    distinct = 1 + int(np.count_nonzero(np.diff(sample)))
    counts = _count_values(p, y, distinct) if 2 * distinct <= len(sample) else None
    if counts is not None:
        return counts
    p, y, distinct = _sort_packed(p, y, sample)
    return _count_sorted(p, y) if distinct <= _FEW_VALUES else (p, y)


def _sort_few(p: NDArray[Any], y: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Sort rows as integers of (p, label): values sort several times faster than indices.

    A float in [0, 1] has its top bits clear and orders like its bit pattern, so the label fits below it (`pack`).
    """
    bits = _bits(p)
    keys, labels = np.empty_like(bits), np.empty(len(p), np.uint8)
    kernel.pack(bits, y, keys)
    keys.sort()
    kernel.unpack(keys, labels)
    return keys.view(p.dtype), labels


def _sort_packed(
    p: NDArray[Any], y: NDArray[np.uint8], sample: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.uint8], int]:
    """Sort many rows as integers of (p, label), in parts; also return the number of distinct predictions."""
    bits, parts = _bits(p), _Partition(p, sample)
    keys, labels = np.empty_like(bits), np.empty(len(p), np.uint8)
    parts.scatter(lambda rows, part, at: kernel.scatter_keys(bits[rows], y[rows], part, at, keys))

    def sort(first: int, last: int) -> int:
        keys[first:last].sort()
        return kernel.unpack(keys[first:last], labels[first:last])

    return keys.view(p.dtype), labels, sum(parts.each(sort))


def _count_values(p: NDArray[Any], y: NDArray[np.uint8], distinct: int) -> Counts | None:
    """Count rows by prediction in hash tables; None if there are too many distinct predictions.

    `distinct` is the number of them in a sample, which determines the size of the tables.
    """
    slots = 8 << distinct.bit_length()
    bits, shift, most = _bits(p), 65 - slots.bit_length(), min(slots // 4, _FEW_VALUES)

    def count(first: int, last: int) -> NDArray[np.int64] | None:
        table = np.zeros((slots, 4), np.int64)  # bits of p + 1, rows with outcome 0 and 1, padding
        return table if kernel.count_values(bits[first:last], y[first:last], shift, most, table) <= most else None

    total = np.zeros((slots, 4), np.int64)
    for table in in_parts(count, len(p), _COUNT_PARTS):
        if table is None or kernel.add_counts(table, shift, most, total) > most:
            return None
    used = total[total[:, 0] > 0]
    value, zeros, ones, _ = used[np.argsort(used[:, 0])].T
    return Counts((value - 1).astype(bits.dtype).view(p.dtype), zeros.copy(), ones.copy())


def _count_sorted(p: NDArray[Any], y: NDArray[np.uint8]) -> Counts:
    """Count sorted rows by prediction."""
    starts = np.append(0, np.flatnonzero(p[1:] != p[:-1]) + 1)  # with a byte for each row in between
    ones = np.add.reduceat(y, starts, dtype=np.int64)
    return Counts(p[starts], np.diff(starts, append=len(p)) - ones, ones)


def sort_rows(rows: Checked) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
    """Sort the rows of a sample with weights or fractional outcomes: moved once, then sorted in parts."""
    p, y, w = rows
    columns, weights = np.empty((2 if w is None else 3, len(p))), np.empty(0) if w is None else w

    def sort(first: int, last: int) -> None:
        order = _stable_order(columns[0, first:last])
        for column in columns:
            column[first:last] = column[first:last].take(order)

    if len(p) < WORTH_A_THREAD:
        for out, column in zip(columns, rows, strict=False):
            out[:] = column
        columns[0] += 0.0  # turns -0.0 into 0.0
        sort(0, len(p))
    else:
        parts = _Partition(p, _sorted_sample(p))
        parts.scatter(lambda rows, part, at: kernel.scatter_rows(p[rows], y[rows], weights[rows], part, at, columns))
        parts.each(sort)
    return columns[0], columns[1], columns[2] if w is not None else None


def _stable_order(p: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order that sorts rows by prediction; equal ones stay in their order.

    Sorting values is twice as fast as `np.argsort`. So the index of a row takes the low bits of its sort key, and the
    high bits are those of p, less the smallest one: mostly all of them fit. Rows that differ only in bits that do not
    fit are moved afterwards; if these are too many, `np.argsort` does it all.
    """
    if len(p) < _FEW_ROWS:
        return np.argsort(p, kind="stable")
    bits, index_bits = _bits(p), (len(p) - 1).bit_length()
    low = int(bits.min())
    shift = max((int(bits.max()) - low).bit_length() + index_bits - 63, 0)
    keys, order = np.empty_like(bits), np.empty_like(bits)
    kernel.index_keys(bits, low, shift, index_bits, keys)
    keys.sort()
    done = kernel.order_of_keys(keys, bits, (1 << index_bits) - 1, shift > 0, order)
    return order if done else np.argsort(p, kind="stable")


class _Partition:
    """A division of rows by prediction into parts that are sorted one by one, in parallel.

    Pivots between the parts are quantiles of some of the rows, always the same ones. Chunks of rows are moved to the
    parts in parallel: each chunk has its own places in each part.
    """

    def __init__(self, p: NDArray[Any], sample: NDArray[Any]) -> None:
        self._n, self._chunks = len(p), parts_of(len(p))
        self._part = np.empty(len(p), np.uint8)
        bits, table = _bits(p), _part_table(sample, len(p))
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

    def each(self, sort: Callable[[int, int], A]) -> list[A]:
        """Call `sort` with the first and the last row of each part, large parts first."""
        ranges = sorted(itertools.pairwise([0, *self._ends.tolist()]), key=lambda part: part[0] - part[1])
        return run_tasks([partial(sort, first, last) for first, last in ranges if last > first], self._n)


def _bits(p: NDArray[Any]) -> NDArray[Any]:
    """The bit patterns of predictions, as integers: they order like the predictions."""
    return p.view(np.int32 if p.dtype == np.float32 else np.int64)


def _sorted_sample(p: NDArray[Any]) -> NDArray[Any]:
    """The bit patterns of a sample of the rows, always the same ones, sorted."""
    return np.sort(_bits(np.abs(p[:: max(1, len(p) // _SAMPLE)])))


def _part_table(sample: NDArray[Any], n: int) -> tuple[int, int, NDArray[np.uint8], NDArray[Any]]:
    """Pivots between the parts of a partition, and the table that finds the part of a row (`count_by_part`).

    Cells of the table are equal stretches of bit patterns between the pivots, so that they are finer for small p.
    """
    parts = min(max(n // _SORT_ROWS, 2), _MOST_PARTS)
    pivots = np.unique(sample[np.arange(1, parts) * len(sample) // parts])
    low, high = int(pivots[min(int(np.searchsorted(pivots, 1)), len(pivots) - 1)]), int(pivots[-1])
    shift = max((high - low).bit_length() - _CELLS.bit_length() + 1, 0)
    first = np.searchsorted(pivots, low + (np.arange(_CELLS) << shift), side="right").astype(np.uint8)
    first[0] = 0
    return low, shift, first, np.append(pivots, np.iinfo(pivots.dtype).max)
