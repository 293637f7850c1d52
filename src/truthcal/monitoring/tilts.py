"""Tilts: the kinds of miscalibration that a monitor looks for, and the evidence of rows for each of them.

A tilt theta adds theta(p) to the log-odds of the event. If the outcome y of a row has probability p given the past,
the factor exp(theta y) / (1 + p (exp(theta) - 1)) has mean 1. Products of such factors are martingales, and so are
their averages over tilts with weights fixed beforehand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from truthcal.core.grid import Grid

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

# A tilt is constant within each of these buckets. A sketch of 128 or more graded buckets can be reduced to them.
GRID = Grid.of_size(128)
BUCKETS = GRID.n_buckets
# Size of a tilt in log-odds -> its share. A tilt detects errors of half to twice its size fastest; large errors are
# found early in any case, and the smallest sizes pay only in streams of millions of rows.
_SIZES = {0.005: 0.03, 0.02: 0.07, 0.06: 0.20, 0.14: 0.30, 0.32: 0.25, 0.8: 0.10, 2.0: 0.05}
# Shares of the shapes: a shift, a change of the slope, and bumps of widths 2/4 and 2/8.
_SHIFT, _SLOPE, _BUMPS = 0.55, 0.25, 0.20
_SCALES = (4, 8)
# Means of predictions for which errors of the slope are called by this name.
_BOTH_SIDES = (0.3, 0.7)
_STEEPEST = 4.0  # log-odds beyond which the tilt of the slope is constant
# Rows of groups are tilted in blocks of this size, to bound memory: 15 MB.
_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a tilt: "shift", "slope", or "bump" around the prediction `centre`."""

    kind: str
    centre: float = 0.0

    def describe(self, sign: float, mean_proba: float) -> str:
        """Describe predictions, with this mean, whose outcomes follow this tilt with a positive or negative size.

        A change of the slope turns around 0.5. If most predictions are on one side of it, it is a shift of them.
        """
        if self.kind == "slope" and _BOTH_SIDES[0] <= mean_proba <= _BOTH_SIDES[1]:
            return "underconfident" if sign > 0 else "overconfident"
        if self.kind == "slope" and mean_proba < 0.5:
            sign = -sign
        where = f" near {self.centre:g}" if self.kind == "bump" else ""
        return f"{'too low' if sign > 0 else 'too high'}{where}"


@dataclass(frozen=True, slots=True)
class TiltTable:
    """All tilts: `theta` by tilt and bucket, the logarithm of the prior of each tilt, its shape and its sign."""

    theta: _Floats
    growth: _Floats  # exp(theta) - 1
    log_prior: _Floats
    shape: _Ints  # index into `shapes`
    sign: _Ints
    shapes: tuple[Shape, ...]


@lru_cache(maxsize=1)
def tilt_table() -> TiltTable:
    """Return the table of all tilts. It is fixed: tilts chosen after looking at the outcomes would not be valid."""
    centre = (GRID.edges[:-1] + GRID.edges[1:]) / 2.0
    log_odds = np.log(centre / (1.0 - centre))
    shapes, share = [Shape("shift"), Shape("slope")], [_SHIFT, _SLOPE]
    curves = [np.ones(BUCKETS), np.clip(log_odds, -_STEEPEST, _STEEPEST) / 2.0]
    for scale in _SCALES:
        for k in range(scale + 1):
            shapes.append(Shape("bump", k / scale))
            curves.append(np.maximum(1.0 - np.abs(centre * scale - k), 0.0))
            share.append(_BUMPS / len(_SCALES) / (scale + 1))
    sizes = np.array([sign * size for size in _SIZES for sign in (1, -1)])
    weights = np.repeat(list(_SIZES.values()), 2) / 2.0
    theta = np.concatenate([np.outer(sizes, curve) for curve in curves])
    prior = np.concatenate([part * weights for part in share])
    shape = np.repeat(np.arange(len(shapes)), len(sizes))
    sign = np.tile(np.sign(sizes).astype(np.int64), len(shapes))
    return TiltTable(theta, np.expm1(theta), np.log(prior / prior.sum()), shape, sign, tuple(shapes))


def log_factors(n: _Ints, positives: _Ints, proba: _Floats) -> _Floats:
    """Return the log evidence of rows for each tilt, from sums by bucket: rows, outcomes of 1, predictions.

    The log of 1 + p (exp(theta) - 1) is concave in p, so with the mean prediction of a bucket in place of each
    prediction the evidence is at most that of the rows (Jensen's inequality): it stays valid.
    """
    table, filled = tilt_table(), np.flatnonzero(n)
    mean = np.minimum(proba[filled] / n[filled], 1.0)
    return table.theta[:, filled] @ positives[filled] - np.log1p(mean * table.growth[:, filled]) @ n[filled]


def group_log_factors(sizes: _Ints, p: _Floats, y: _Ints) -> Iterator[_Floats]:
    """Yield the log evidence of groups (first axis) for each tilt, some groups at a time: the log of the mean factor.

    The mean of factors that each have mean 1 has mean 1 however the rows of a group depend on each other. The rows of a
    group stand together; `sizes` are their numbers. The evidence of a group does not depend on the other groups, to
    the last bit.
    """
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        start = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, start + _BLOCK, side="right")))
        rows, starts = slice(start, int(ends[last - 1])), ends[first:last] - sizes[first:last] - start
        parts = range(start, rows.stop, _BLOCK)  # more than one only if this is a single large group
        sums = sum(
            np.add.reduceat(_factors(p[k : k + _BLOCK], y[k : k + _BLOCK], rows.stop - k), starts) for k in parts
        )
        yield np.log(sums / sizes[first:last, None])
        first = last


def _factors(p: _Floats, y: _Ints, n: int) -> _Floats:
    """Return the factors of the first n rows (first axis) for each tilt."""
    table, p, y = tilt_table(), p[:n, None], y[:n, None]
    bucket = GRID.index(p[:, 0])
    odds = np.where(y == 1, np.exp(table.theta.T[bucket]), 1.0)
    return odds / (1.0 + p * table.growth.T[bucket])
