"""Bounds on tails of measures with a tent kernel: valid for any number of rows (docs/theory/inference.md)."""

import math
from collections.abc import Callable

import numpy as np

from truthcal.core.points import Points
from truthcal.inference.laws.redraw import Tails
from truthcal.inference.laws.skewness import correct_for_skewness
from truthcal.inference.laws.tent_kernel import NullMoments, TentKernel, null_moments

# If skewness increases the asymptotic p-value by more than this factor, a bound may be smaller.
_MUCH = 2.0


def variance_bound(points: Points, kernel: TentKernel, moments: NullMoments) -> float:
    """Upper limit of a test statistic's null variance: the variance itself for sorted rows."""
    if not points.sketched:
        return moments.sd**2
    # Both predictions of a pair may be their bucket's length from its mean, and k^2 is twice as steep as k.
    noise = points.wwv / points.total**2
    moved = 8.0 * kernel.steepness * float(np.sum(noise * kernel.lengths(points))) * points.noise_floor
    largest = points.top**2 / points.total**2
    return moments.pairs + moved + float(np.sum(noise * largest))


def bound_tails(observed: float, points: Points, variance: float) -> Tails:
    """Tails of a test statistic by the smallest of several bounds that always hold (docs/theory/inference.md).

    Above the mean: Markov; Cantelli; McDiarmid and Bernstein for the length of a sum of independent vectors. Below it:
    Cantelli.
    """
    floor, largest = points.noise_floor, points.largest_weight / points.total
    greater = less = 1.0
    gap = observed - floor
    cantelli = variance / (variance + gap**2) if variance + gap**2 > 0.0 else 1.0
    if gap < 0.0:
        less = cantelli
    elif gap > 0.0:
        length, spread = math.sqrt(observed), math.sqrt(floor)
        mcdiarmid = math.exp(-2.0 * max(0.0, length - spread) ** 2 / points.one_row)
        bernstein = 2.0 * math.exp(-observed / (2.0 * (floor + largest * length / 3.0)))
        greater = min(floor / observed, cantelli, mcdiarmid, bernstein)
    return Tails(greater, less, floor, math.sqrt(variance), 0)


def limit_or_bound(
    limit: float, skewness: float, observed: float, points_of: Callable[[], Points], kernel: TentKernel
) -> tuple[str, float]:
    """Upper tail of a test statistic, and its method: the limit corrected for skewness, or a bound if smaller."""
    if math.isinf(skewness):  # all predictions are 0 or 1: right, or impossible
        return "bound", float(observed == 0.0)
    corrected = correct_for_skewness(limit, skewness)
    if corrected > _MUCH * limit:
        points = points_of()
        variance = variance_bound(points, kernel, null_moments(kernel, points))
        bound = min(bound_tails(observed, points, variance).greater, 1.0)
        if bound < corrected:
            return "bound", bound
    return "asymptotic", corrected
