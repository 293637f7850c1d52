"""Bins of rows, without sorting: the edges of bins of equal weight, and sums of the rows in each bin."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, read_only, refuse_wide_weight
from truthcal.core.grid import Grid
from truthcal.core.parallel import in_parts
from truthcal.core.points import Points
from truthcal.core.sample import Sample, relative_weights
from truthcal.kernels import bins as kernel

_Array = NDArray[np.float64]
_BinKernel = Callable[..., None]

# The bin of a row is found by at least so many equal stretches of [0, 1].
_LEAST_STRETCHES = 1024
# Parts of the rows have their own sums: at most so many parts, and so many sums in all.
_MOST_PARTS, _MOST_SUMS = 16, 1 << 18
# More rows than this are not sorted for edges of equal weight: only those of the buckets in which an edge lies are.
_FEW, _BUCKETS = 1 << 15, 1 << 14


class BinSums(NamedTuple):
    """Sums of the rows in each bin that is not empty. c = p - y, v = p(1 - p).

    p, low, high: mean, smallest and largest prediction. n: rows. weight, ww, wp, wy, wwv: sums of w, w^2, w p, w y and
    w^2 v, on the scale of `relative_weights`.
    """

    p: _Array
    low: _Array
    high: _Array
    n: NDArray[np.int64]
    weight: _Array
    ww: _Array
    wp: _Array
    wy: _Array
    wwv: _Array

    @classmethod
    def of_rows(cls, rows: Checked, edges: _Array) -> Self:
        """Add up rows, in any order, in bins that begin at `edges`."""
        empty = np.zeros((len(edges), 9))
        empty[:, 7:] = np.inf, -np.inf
        parts = np.stack(_sums_by_part(kernel.bin_totals, rows, edges, empty))
        n, weight, ww, wy, wwv, wp, rest = np.sum(parts[:, :, :7], axis=0).T
        wp, low, high = wp + rest, np.min(parts[:, :, 7], axis=0), np.max(parts[:, :, 8], axis=0)
        some = n > 0.0
        with np.errstate(invalid="ignore"):
            p = np.clip(wp / weight, low, high)  # rounding never takes a mean out of its bin
        columns = (p, low, high, n.astype(np.int64), weight, ww, wp, wy, wwv)
        return cls(*(read_only(column[some]) for column in columns))

    @classmethod
    def of_runs(cls, points: Points, starts: NDArray[np.intp]) -> Self:
        """Add up points in bins that begin at the points `starts`."""
        runs = points.runs(starts)
        return cls(*(getattr(runs, name) for name in cls._fields))


def bin_biases(rows: Checked, edges: _Array) -> tuple[_Array, _Array, _Array]:
    """Sums of w c, w and w y in bins that begin at `edges`, in one pass; those of w c without cancellation."""
    parts = _sums_by_part(kernel.bin_biases, rows, edges, np.zeros((len(edges), 4)))
    mass, positive, high, low = np.sum(parts, axis=0).T
    return high + low, mass, positive


def rows_of(sample: Sample) -> Checked:
    """Rows of a sample, for functions that need no order."""
    return Checked(sample.p, sample.y, sample.w if sample.weighted else None)


def scaled_weights(rows: Checked) -> tuple[_Array, int]:
    """Weights of rows as in a sample, a broadcast 1 without any, and the exponent of two that undoes their scale."""
    if rows.w is None:
        return np.broadcast_to(np.float64(1.0), rows.p.shape), 0
    refuse_wide_weight(rows.w)
    w, exponent = relative_weights(rows.w)
    return read_only(w), exponent


def _sums_by_part(add: _BinKernel, rows: Checked, edges: _Array, empty: _Array) -> list[_Array]:
    """Call a kernel that adds rows to bins with each part of the rows, and sums that are as `empty` at first."""
    first, w = _first_bins(edges), scaled_weights(rows)[0]

    def sums(start: int, stop: int) -> _Array:
        part, out = slice(start, stop), empty.copy()
        add(rows.p[part], rows.y[part], w[part], edges, first, out)
        return out

    return in_parts(sums, len(rows.p), min(max(_MOST_SUMS // len(edges), 1), _MOST_PARTS))


def _first_bins(edges: _Array) -> NDArray[np.intp]:
    """Bins of the left ends of equal stretches of [0, 1], and the last bin, for the search of a kernel."""
    size = 1 << max(2 * len(edges), _LEAST_STRETCHES).bit_length()
    return np.append(np.searchsorted(edges, np.arange(size) / size, side="right") - 1, len(edges) - 1)


def predictions_in(rows: Checked, edges: _Array, wanted: NDArray[np.bool_]) -> _Array:
    """Predictions of the rows in the wanted bins, sorted."""
    first = _first_bins(edges)

    def select(start: int, stop: int) -> _Array:
        out = np.empty(stop - start)
        return out[: kernel.select_bins(rows.p[start:stop], edges, first, wanted, out)].copy()

    return np.sort(np.concatenate(in_parts(select, len(rows.p))))


# --- edges ------------------------------------------------------------------------------------------------------------


def uniform_edges(n_bins: int) -> _Array:
    """Left edges of bins of equal width."""
    return np.arange(n_bins) / n_bins


def quantile_edges(rows: Checked, n_bins: int) -> _Array:
    """Left edges of bins of about equal weight, of rows in any order. The first bin begins at 0.

    Equal predictions are in one bin: that of the middle of their weight, see `bin_of_middle`. No sort of all rows: one
    pass finds the weight in each bucket of a grid, the next one collects the rows in the buckets that may hold an edge,
    and only these are sorted.
    """
    p, w = rows.p.astype(np.float64, copy=False), scaled_weights(rows)[0]
    if n_bins == 1:
        return np.zeros(1)
    skipped = np.zeros(1)
    if len(p) > _FEW:
        p, w, skipped = _rows_near_edges(rows.p, w, n_bins)
    if rows.w is None:
        p = np.sort(p)  # faster than with weights
    else:
        order = np.argsort(p)
        p, w = p[order], w[order]
    starts = np.flatnonzero(np.diff(p, prepend=-1.0))
    own = np.add.reduceat(w, starts)
    r = p[starts] + 0.0  # turns -0.0 into 0.0
    upto = np.cumsum(own)
    total = upto[-1] + skipped[-1]
    if len(skipped) > 1:
        upto += skipped[_GRID.index(r)]
    new = np.flatnonzero(np.diff(bin_of_middle(own, upto, total, n_bins), prepend=0.0))
    return np.concatenate([[0.0], r[new]])


def bin_of_middle(own: _Array, upto: _Array, total: float, n_bins: int) -> _Array:
    """Bins of about equal weight of distinct predictions, from their weights and the weight up to each, inclusive.

    Numbers of rows are exact: the quotient of two integers rounds to an integer only if it is one.
    """
    return np.asarray(np.minimum(np.floor(n_bins * (upto - own / 2.0) / total), n_bins - 1))  # a light row rounds up


_GRID = Grid.of_size(_BUCKETS)


def _rows_near_edges(p: NDArray[Any], w: _Array, n_bins: int) -> tuple[_Array, _Array, _Array]:
    """Predictions and weights of rows in buckets that may hold an edge; and the weight of others, up to each bucket."""
    tables = _GRID.tables

    def weigh(first: int, last: int) -> _Array:
        mass = np.zeros(_BUCKETS)
        kernel.bucket_weights(p[first:last], w[first:last], tables, mass)
        return mass

    mass = np.sum(in_parts(weigh, len(p), _MOST_PARTS), axis=0)
    upto, filled = np.cumsum(mass), np.flatnonzero(mass)
    # An edge is at the prediction in which a share of k / n_bins ends, or at the next one.
    inner = np.searchsorted(upto[filled], np.arange(1, n_bins) * upto[-1] / n_bins, side="right")
    wanted = np.zeros(_BUCKETS, np.bool_)
    wanted[filled[np.minimum(inner, len(filled) - 1)]] = True
    wanted[filled[np.minimum(inner + 1, len(filled) - 1)]] = True

    def select(first: int, last: int) -> _Array:
        out = np.empty((2, last - first))
        count = kernel.select_buckets(p[first:last], w[first:last], tables, wanted, out)
        return out[:, :count].copy()

    values, own = np.concatenate(in_parts(select, len(p)), axis=1)
    return values, own, np.cumsum(np.where(wanted, 0.0, mass))
