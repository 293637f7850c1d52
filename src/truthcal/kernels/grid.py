"""Loops over predictions that find their buckets in the grid of a sketch. `core.grid` defines the grid."""

from typing import Any, NamedTuple

import numpy as np

from truthcal.kernels.jit import Rows, compiled

# Entries of the tables of `GridTables`; differences of exponents lie between -1024 and 1023.
LEVELS = 2048
_HALF, _MASK, _EXPONENT = np.uint64(LEVELS // 2), np.uint64(LEVELS - 1), np.uint64(52)


class GridTables(NamedTuple):
    """The grid of a sketch as tables for loops.

    Attributes
    ----------
    scales, offsets : ndarray of float and of uint64
        For each `level_of` a prediction, the scale and the offset of its piece of the grid: the bucket is
        floor(p * scale) + offset, modulo 2^64.
    pieces : ndarray of float, (pieces, 3)
        First bucket, scale and offset of each piece of [0, 1], from 0 to 1.
    """

    scales: Rows
    offsets: Rows
    pieces: Rows


@compiled
def level_of(x: float) -> Any:
    """Return the entry of `GridTables` for x in [0, 1]: the exponent of 1 - x minus that of x, without a branch.

    Below 1/2 only the second varies, above 1/2 only the first, so that this is the power of two that x or 1 - x
    reaches. -0.0 has the entry of 0.0, thanks to the mask.
    """
    above = np.float64(1.0 - x).view(np.uint64) >> _EXPONENT
    below = np.float64(x).view(np.uint64) >> _EXPONENT
    return (_HALF + above - below) & _MASK


@compiled
def place_of(x: float, grid: GridTables) -> tuple[Any, Any, float]:
    """Return the bucket of x, its number j within the grid of the same width, and x in units of that width.

    All steps are exact: scales are powers of two. 1 belongs to the last bucket. Unsigned, because numba checks signed
    indices for negative values, which takes 25% of the sketch's time.
    """
    level = level_of(x)
    scale = grid.scales[level]
    z = x * scale
    j = np.uint64(np.int64(min(z, scale - 0.5)))
    return j + grid.offsets[level], j, z


@compiled
def bucket_in(x: float, grid: GridTables) -> Any:
    """Return the bucket of x."""
    return place_of(x, grid)[0]


@compiled
def bucket_indices(p: Rows, grid: GridTables, out: Rows) -> None:
    """Return the bucket of each entry of an array."""
    for i in range(p.size):
        out[i] = bucket_in(np.float64(p[i]), grid)


@compiled
def left_and_width(bucket: int, pieces: Rows) -> tuple[float, float]:
    """Return the left edge and the width of a bucket. Both are exact."""
    piece = 0
    while piece + 1 < pieces.shape[0] and bucket >= pieces[piece + 1, 0]:
        piece += 1
    width = 1.0 / pieces[piece, 1]
    return (bucket - pieces[piece, 2]) * width, width
