"""Start times: the windows at which a change may have begun, their prior, and which of them are kept.

The evidence of a monitor is a weighted sum over start times s of the evidence of all rows from window s on. Each term
is a martingale that is 1 before s, so the sum is one, too, if the weights add up to at most 1. A start time that is
dropped only makes the sum smaller, so dropping is always valid. Start times are thinned out with age: those divisible
by 2^k are kept for _AGE 2^k windows, so that at most about _AGE/2 log2(windows) are kept, and a change that began d
windows ago has a start time within d/_AGE of it. Those that are kept longer get more weight.
"""

import math

import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]

# Weight of "from the beginning". The rest is for later changes.
_BEGINNING = 0.67
_AGE = 32  # windows for which every start time is kept
# Start times are grouped by _AGE; group b has a weight proportional to 1 / (b + 1) for the first _GROUPS groups (8192
# windows), and the share _TAIL is for all later ones.
_GROUPS, _TAIL = 256, 0.05
_HARMONIC = sum(1.0 / (b + 1) for b in range(_GROUPS))


def kept_starts(starts: _Ints, now: int) -> NDArray[np.bool_]:
    """Return which start times are kept in the window `now`: a function of both alone, so that monitors agree."""
    lowest_bit = starts & -starts
    kept: NDArray[np.bool_] = (starts == 0) | (now - starts < _AGE * lowest_bit)
    return kept


def log_weights(starts: _Ints) -> _Floats:
    """Return the logarithm of the weight of each start time. The weights of all start times add up to less than 1."""
    group = starts // _AGE
    late = _TAIL * math.log(_GROUPS) / ((group + 1) * np.log(np.maximum(group + 1, 2)) ** 2)
    mass = np.where(group < _GROUPS, (1.0 - _TAIL) / _HARMONIC / (group + 1), late)
    share = np.minimum(starts & -starts, _AGE) / np.where(group == 0, _shares() - _AGE, _shares())
    weights = np.where(starts == 0, _BEGINNING, (1.0 - _BEGINNING) * mass * share)
    logs: _Floats = np.log(weights)
    return logs


def log_reserve(now: int) -> float:
    """Return the logarithm of a lower bound of the weight of start times after `now`, whose evidence is still 1."""
    group = now // _AGE
    if group >= _GROUPS:
        return -math.inf
    used = sum(1.0 / (b + 1) for b in range(group + 1)) / _HARMONIC
    return math.log((1.0 - _BEGINNING) * (_TAIL + (1.0 - _TAIL) * (1.0 - used))) if used < 1.0 else -math.inf


def _shares() -> int:
    """Sum over a group of start times of the largest power of two, at most _AGE, that divides each."""
    return sum(min(s & -s, _AGE) for s in range(_AGE, 2 * _AGE))
