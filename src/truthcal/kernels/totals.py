"""Sums over all rows, in any order, for tests."""

import numpy as np

from truthcal.kernels.jit import BLOCK, Rows, interpreted_first


@interpreted_first
def information_sums(p: Rows, y: Rows, w: Rows) -> tuple[float, float, float, float, float]:
    """Sums over rows of w, v, w^2 v and w^4 v, where v = p(1 - p); and the number of impossible outcomes."""
    weight, information, noise, fourth, impossible = 0.0, 0.0, 0.0, 0.0, 0.0
    for first in range(0, p.size, BLOCK):
        block_w, block_v, block_wwv, block_fourth, block_impossible = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(first, min(first + BLOCK, p.size)):
            x, ww = np.float64(p[i]), w[i] * w[i]
            v = x * (1.0 - x)
            block_w += w[i]
            block_v += v
            block_wwv += ww * v
            block_fourth += ww * (ww * v)
            block_impossible += np.float64(((x == 0.0) & (y[i] == 1)) | ((x == 1.0) & (y[i] == 0)))
        weight += block_w
        information += block_v
        noise += block_wwv
        fourth += block_fourth
        impossible += block_impossible
    return weight, information, noise, fourth, impossible


@interpreted_first
def spiegelhalter_sums(p: Rows, y: Rows, w: Rows) -> tuple[float, float]:
    """Sums over rows of w (y - p)(1 - 2p) and of w^2 (1 - 2p)^2 p (1 - p)."""
    total, variance = 0.0, 0.0
    for first in range(0, p.size, BLOCK):
        block, block_variance = 0.0, 0.0
        for i in range(first, min(first + BLOCK, p.size)):
            x = np.float64(p[i])
            slope = w[i] * (1.0 - 2.0 * x)
            block += slope * (y[i] - x)
            block_variance += slope * slope * x * (1.0 - x)
        total += block
        variance += block_variance
    return total, variance


@interpreted_first
def outcome_ranges(p: Rows, y: Rows) -> tuple[float, float, float, float]:
    """Smallest and largest prediction of rows with an outcome below 1, and of those above 0; infinite without any."""
    zero_low, zero_high, one_low, one_high = np.inf, -np.inf, np.inf, -np.inf
    for i in range(p.size):
        x = np.float64(p[i])
        if y[i] < 1:
            zero_low, zero_high = min(zero_low, x), max(zero_high, x)
        if y[i] > 0:
            one_low, one_high = min(one_low, x), max(one_high, x)
    return zero_low, zero_high, one_low, one_high
