"""Loops over predictions that find their buckets in the grid of a sketch. `core.grid` defines the grid."""

from typing import Any, NamedTuple

import numpy as np

from truthcal.kernels.jit import Rows, compiled

# Entries of the tables of `GridTables`; differences of exponents lie between -1024 and 1023.
LEVELS = 2048
PIECES_BELOW = 6
# Added to an integer below 2^51, it makes the lowest bits of the float those of the integer.
_TWO_52 = 2.0**52
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
    below : ndarray of float, (PIECES_BELOW, 3)
        Start, scale and offset of each piece that starts below 1/2, from 0 on. The last one may be repeated.
    """

    scales: Rows
    offsets: Rows
    pieces: Rows
    below: Rows


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
def place_rows(p: Rows, y: Rows, grid: GridTables, n_buckets: float, ts: Rows, sides: Rows) -> None:
    """For rows with outcomes 0 or 1, return what `sketch_binary` adds up: t, and 8 * bucket + 3 * outcome + 2^52.

    The same as `place_of`, without table look-ups or conversions, so that it is compiled to vector instructions: a
    quarter of the time. Entries of invalid rows are not defined.
    """
    e1, e2, e3, e4, e5 = grid.below[1, 0], grid.below[2, 0], grid.below[3, 0], grid.below[4, 0], grid.below[5, 0]
    s0, s1, s2 = grid.below[0, 1], grid.below[1, 1], grid.below[2, 1]
    s3, s4, s5 = grid.below[3, 1], grid.below[4, 1], grid.below[5, 1]
    o0, o1, o2 = grid.below[0, 2], grid.below[1, 2], grid.below[2, 2]
    o3, o4, o5 = grid.below[3, 2], grid.below[4, 2], grid.below[5, 2]
    for i in range(p.size):
        x = np.float64(p[i])
        mirrored = 1.0 - x
        d = x if x < mirrored else mirrored
        s = s1 if d >= e1 else s0
        s = s2 if d >= e2 else s
        s = s3 if d >= e3 else s
        s = s4 if d >= e4 else s
        s = s5 if d >= e5 else s
        o = o1 if d >= e1 else o0
        o = o2 if d >= e2 else o
        o = o3 if d >= e3 else o
        o = o4 if d >= e4 else o
        o = o5 if d >= e5 else o
        o = o if x < 0.5 else n_buckets - s - o
        z = x * s
        floor = np.floor(z)
        j = floor if floor < s else s - 1.0  # 1 belongs to the last bucket
        label = 1.0 * y[i]
        ts[i] = abs(j + label - z)
        sides[i] = 8.0 * (j + o) + 3.0 * label + _TWO_52


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
