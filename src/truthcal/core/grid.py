"""The grid of a sketch: the only definition of its buckets, for arrays, engines, SQL and files."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from truthcal.kernels import grid as kernel

MAX_BUCKETS = 1 << 20
# Fewer buckets have equal widths: they are too few for all pieces.
LEAST_GRADED = 128
# The pieces of a graded grid below 1/2, from 0 on: where they end, and their buckets per 1 / n_buckets. Found by
# search: together with Lemma A1 of docs/theory/foundations.md, bounds of ATB are 1.1 to 1.3 times as far apart as with
# equal widths and without the lemma for uniform predictions, and 180 to 430 times closer for predictions from 1e-4 to
# 1e-2 (log-uniform, 100,000 and a million rows).
_FINER = ((2.0**-13, 256), (2.0**-11, 64), (2.0**-7, 16), (2.0**-6, 8), (2.0**-4, 1), (0.5, 0.5))


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of [0, 1] whose buckets have one width, 1/scale: there p is in bucket floor(p * scale) + offset."""

    start: float
    scale: int
    offset: int


@dataclass(frozen=True)
class Grid:
    """The buckets of a sketch: `n_buckets` stretches of [0, 1], each with its left edge, and 1 in the last.

    All edges are multiples of the width on either side, and widths are powers of two. Multiplying by a power of two and
    rounding down are exact, so that each prediction has the same bucket in every engine. If `graded`, buckets are finer
    towards 0 and, mirrored, towards 1; else they have equal widths.
    """

    n_buckets: int
    graded: bool

    @classmethod
    def of_size(cls, n_buckets: int) -> "Grid":
        """Return the grid of a new sketch with this number of buckets: graded, unless there are very few."""
        return cls(n_buckets, n_buckets >= LEAST_GRADED)

    def __str__(self) -> str:
        return f"{self.n_buckets:,} {'graded buckets' if self.graded else 'buckets of equal width'}"

    @property
    def arguments(self) -> str:
        """The grid in the representation of a sketch."""
        default = self == Grid.of_size(self.n_buckets)
        return f"n_buckets={self.n_buckets}{'' if default else ', equal widths'}"

    @property
    def is_possible(self) -> bool:
        """Whether there is such a grid; a file may say anything."""
        power_of_two = 1 <= self.n_buckets <= MAX_BUCKETS and not self.n_buckets & (self.n_buckets - 1)
        return power_of_two and (not self.graded or self.n_buckets >= LEAST_GRADED)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of [0, 1], from 0 to 1."""
        return _pieces(self)

    @property
    def tables(self) -> kernel.GridTables:
        """The grid for compiled loops."""
        return _tables(self)

    @cached_property
    def edges(self) -> NDArray[np.float64]:
        """The edges of all buckets, from 0 to 1: one more than there are buckets."""
        starts = [piece.start for piece in self.pieces] + [1.0]
        parts = [
            np.arange(round(start * piece.scale), round(end * piece.scale)) / piece.scale
            for piece, start, end in zip(self.pieces, starts, starts[1:], strict=False)
        ]
        return np.concatenate([*parts, [1.0]])

    def index(self, p: NDArray[np.generic]) -> NDArray[np.int64]:
        """Return the bucket of each prediction in [0, 1]."""
        out = np.empty(len(p), np.int64)
        kernel.bucket_indices(p, self.tables, out)
        return out


MOST_FLAGS = 3


def pack_flags(grid: Grid, weights_known: bool) -> int:
    """Return the flags in the header of a file: 1 if the grid is graded, plus 2 if weights are not all known."""
    return int(grid.graded) + 2 * (not weights_known)


def unpack_flags(flags: int, n_buckets: int) -> tuple[Grid, bool]:
    """Return the grid and whether weights are known, from the flags in the header of a file."""
    return Grid(n_buckets, bool(flags & 1)), not flags & 2


@lru_cache(maxsize=64)
def _pieces(grid: Grid) -> tuple[Piece, ...]:
    if not grid.graded:
        return (Piece(0.0, grid.n_buckets, 0),)
    below: list[Piece] = []
    start, n = 0.0, 0  # end of the pieces so far, and the number of their buckets
    for end, factor in _FINER:
        scale = round(grid.n_buckets * factor)
        below.append(Piece(start, scale, n - round(start * scale)))
        n += round((end - start) * scale)
        start = end
    # Bucket n_buckets - 1 - k is the mirror image of bucket k. The piece around 1/2 is its own mirror image.
    above = [
        Piece(1.0 - following.start, piece.scale, grid.n_buckets - piece.scale - piece.offset)
        for piece, following in zip(below[-2::-1], below[:0:-1], strict=True)
    ]
    return (*below, *above)


@lru_cache(maxsize=64)
def _tables(grid: Grid) -> kernel.GridTables:
    # A prediction of each level. Level 0 has 1/2; from 1 on, predictions below 1/2; up to -1, their mirror images.
    level = np.arange(kernel.LEVELS) - kernel.LEVELS // 2
    tail = 0.75 * 0.5 ** np.clip(np.abs(level), 1, 60)
    example = np.where(level > 0, tail, 1.0 - tail)
    starts, scales, offsets = zip(*((piece.start, piece.scale, piece.offset) for piece in grid.pieces), strict=True)
    piece = np.searchsorted(starts, example, side="right") - 1
    below = [(piece.start, piece.scale, piece.offset) for piece in grid.pieces if piece.start < 0.5]
    below += below[-1:] * (kernel.PIECES_BELOW - len(below))
    firsts = [round(start * scale) + offset for start, scale, offset in zip(starts, scales, offsets, strict=True)]
    tables = kernel.GridTables(
        scales=np.array(scales, np.float64)[piece],
        offsets=np.array(offsets, np.int64)[piece].astype(np.uint64),
        pieces=np.column_stack([firsts, scales, offsets]).astype(np.float64),
        below=np.array(below, np.float64),
    )
    for table in tables:
        table.flags.writeable = False
    return tables
