"""Dependence of rows: do errors of neighbouring rows, in file order, have something in common?"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import is_plain, read_only
from truthcal.kernels.neighbours import neighbour_products

# Fewer rows say nothing. Errors are measured from their mean in bins of this many rows or more.
_FEWEST, _PER_BIN, _MOST_BINS = 30, 500, 200
# Of more rows than this, as many are read, in blocks spread over the file: 15 ms.
_MOST, _BLOCKS = 1 << 17, 16


def neighbour_z(p: NDArray[Any], y: NDArray[Any]) -> float | None:
    """Standardized correlation (z) of errors of neighbouring rows, in this order; None for few rows or labels.

    The sum over neighbours of e e', where e is p - y minus its mean among rows of similar predictions: a calibration
    error alone shows no correlation. For independent rows the products are uncorrelated with mean 0. The sum is divided
    by the root of the sum of their variances or of their squares, whichever is larger: then it is not large where
    events are rare and two happen to be neighbours.
    """
    n = len(p)
    if n < _FEWEST or not (is_plain(p) and is_plain(y)):
        return None
    if n > _MOST:
        starts = np.linspace(0, n - _MOST // _BLOCKS, _BLOCKS).astype(np.int64)
        p, y = (np.concatenate([x[start : start + _MOST // _BLOCKS] for start in starts]) for x in (p, y))
    bins = min(max(len(p) // _PER_BIN, 1), _MOST_BINS)
    edges = np.unique(np.quantile(p[:: max(1, len(p) // 10_000)].astype(np.float64), np.arange(1, bins) / bins))
    columns = (read_only(p.astype(np.float64, copy=False)), read_only(y.astype(np.uint8, copy=False)))
    total, squares, expected = neighbour_products(*columns, read_only(edges))
    return total / math.sqrt(max(squares, expected)) if squares > 0.0 else 0.0
