"""The cumulative bias curve, and its band for calibrated predictions."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import read_only
from truthcal.core.frame_columns import named_columns
from truthcal.core.params import check_band
from truthcal.core.points import thinned_runs
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize, summarize_predictions
from truthcal.measures.reliability import AT_A_TIME, MOST_ENTRIES
from truthcal.results.curves import BiasBand, BiasCurve

_Array = NDArray[np.float64]

# Relative rounding error of a sum of biases: a curve that reaches the limit must not exceed it.
_ROUNDING = 1e-12


@named_columns
def cumulative_bias_curve(
    y_true: object, y_proba: object = None, *, sample_weight: object = None, pos_label: object = None
) -> BiasCurve:
    """The curve that ATB integrates: the bias of all predictions up to q, as q grows.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`, or a `Sketch` alone in place of all rows.

    Returns
    -------
    BiasCurve
        ``q``, ``bias``, ``count`` and ``weight``, one entry for each different prediction. Where the bias rises,
        predictions are too high; where it falls, too low.

    Notes
    -----
    Exact, O(n log n); equal predictions form one entry. From a sketch, in linear time, there is one entry for each
    filled bucket: ``q`` is its largest prediction, where the bias is exact; inside a bucket the curve is not known.

    Examples
    --------
    >>> import truthcal as tc
    >>> curve = tc.cumulative_bias_curve([0, 1, 1, 0], [0.25, 0.75, 0.75, 0.25])
    >>> curve
    Cumulative bias at 2 different predictions (4 rows): largest +0.125 at q = 0.25, total +0.
    >>> curve.q.tolist(), curve.bias.tolist(), curve.count.tolist()
    ([0.25, 0.75], [0.125, 0.0], [2, 2])
    """
    return cumulative_bias_curve_of(summarize(y_true, y_proba, sample_weight, pos_label))


def cumulative_bias_curve_of(summary: Sample | Sketch) -> BiasCurve:
    """The cumulative bias curve of sorted rows or of a sketch."""
    points, total = summary.points(), summary.weight
    bias, weight = read_only(points.cumulative / total), read_only(points.weight / total)
    return BiasCurve(points.high, bias, points.n, weight, summary.sketched)


@named_columns
def bias_band(
    y_proba: object,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = 0,
    sample_weight: object = None,
) -> BiasBand:
    """Range in which the cumulative bias curve of these predictions would stay if they were calibrated.

    Parameters
    ----------
    y_proba, n_resamples, rng, sample_weight
        As for `consistency_band`.
    confidence_level : float, default 0.95
        Probability that the whole curve stays within the band.

    Returns
    -------
    BiasBand
        ``limit``: draw the band from -limit to +limit, behind the curve of `cumulative_bias_curve`. A curve that leaves
        it anywhere is evidence of miscalibration, at the level of the band.

    Notes
    -----
    Outcomes are redrawn from the predictions; `limit` is the k-th largest of the maxima of the absolute cumulative
    bias, k = (n_resamples + 1)(1 - confidence_level). Redraws, cost and validity are as for `consistency_band`; within
    a point made of neighbours the curve is drawn as a Brownian bridge, whose extremes are known. Rows are assumed to be
    independent: there is no `groups`, since what rows of a group have in common shows only in their outcomes.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> tc.bias_band(np.repeat([0.25, 0.75], 40), rng=0)
    If predictions were calibrated, the cumulative bias of 80 rows would stay between -0.1 and +0.1 everywhere, 95% of \
the time.
    """
    return bias_band_of(summarize_predictions(y_proba, sample_weight), confidence_level, n_resamples, rng)


def bias_band_of(
    summary: Sample | Sketch, confidence_level: float = 0.95, n_resamples: int = 999, rng: Any = 0
) -> BiasBand:
    """Band of the bias curve, from sorted rows or a sketch; their outcomes are not used.

    If rows belong together, signs of whole groups are drawn instead of outcomes.
    """
    level, n_resamples, generator = check_band(confidence_level, n_resamples, rng)
    if summary.group_sums is not None:
        largest = np.max(np.abs(np.cumsum(summary.group_sums.flipped(n_resamples, generator), axis=1)), axis=1)
        return BiasBand(_upper_rank(largest, level), level, n_resamples, summary.n)
    points = summary.points()
    starts = thinned_runs(points.weight, MOST_ENTRIES)
    several = np.diff(starts, append=len(points)) > 1
    points, total = points.runs(starts), points.total
    # Variance of the curve inside a point that is made of several.
    inside = np.where(several, points.wwv, 0.0) / total**2
    largest = np.empty(n_resamples)
    for first in range(0, n_resamples, AT_A_TIME):
        batch = largest[first : first + AT_A_TIME]
        curves = np.cumsum(points.wp - points.redraw_positives(len(batch), generator), axis=1) / total
        batch[:] = _largest_biases(curves, inside, generator)
    return BiasBand(_upper_rank(largest, level), level, n_resamples, summary.n)


def _upper_rank(largest: _Array, level: float) -> float:
    """The limit of a band of bias curves: the k-th largest of their largest values, up to rounding."""
    many = len(largest)
    rank = math.floor((many + 1) * (1.0 - level) + 1e-9)
    return float(np.partition(largest, many - rank)[many - rank]) * (1.0 + _ROUNDING)


def _largest_biases(curves: _Array, inside: _Array, rng: np.random.Generator) -> _Array:
    """Largest absolute value of each bias curve, including the bridges inside its points.

    The maximum of a Brownian bridge from a to b of variance v is (a + b + sqrt((b - a)^2 - 2 v log U)) / 2 with U
    uniform. The minimum gets an independent U, since only one of the two is ever near a limit.
    """
    largest: _Array = np.max(np.abs(curves), axis=1)
    where = np.flatnonzero(inside > 0.0)
    if len(where) == 0:
        return largest
    ends = curves[:, where]
    begins = np.where(where > 0, curves[:, where - 1], 0.0)
    for sign in (1.0, -1.0):
        fall = 2.0 * inside[where] * rng.standard_exponential(ends.shape)  # -2 v log U
        top = (sign * (begins + ends) + np.sqrt((ends - begins) ** 2 + fall)) / 2.0
        largest = np.maximum(largest, np.max(top, axis=1))
    return largest
