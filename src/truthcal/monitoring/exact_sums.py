"""Exact sums: numbers as pairs of integers, so that a sum does not depend on the order of its terms.

A number is stored as high 2^-20 + low 2^-60 with 0 <= low < 2^40, rounded down. Sums of such pairs are exact, so two
monitors that were merged equal one that saw the rows of both, to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

_HIGH, _LOW_BITS = 2.0**20, 40


def to_pairs(values: _Floats | float) -> _Ints:
    """Convert numbers to pairs, in a new first axis of length 2."""
    scaled = np.asarray(values, np.float64) * _HIGH
    high = np.floor(scaled)
    return np.stack([high, np.floor((scaled - high) * 2.0**_LOW_BITS)]).astype(np.int64)


def to_floats(pairs: _Ints) -> _Floats:
    """Convert pairs to the nearest numbers."""
    numbers: _Floats = pairs[0] / _HIGH + pairs[1] / (_HIGH * 2.0**_LOW_BITS)
    return numbers


def carry(pairs: _Ints) -> None:
    """Move what exceeds the low part to the high part, in place: equal sums become equal pairs."""
    pairs[0] += pairs[1] >> _LOW_BITS
    pairs[1] &= (1 << _LOW_BITS) - 1
