"""Calibration errors read off the cumulative bias curve, on distinct predictions: KS, Kuiper, StepCE."""

import itertools
import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import parts_of, run_tasks
from truthcal.core.sample import Sample
from truthcal.kernels.bias_path import bias_extremes

_Array = NDArray[np.float64]


class BiasPath(NamedTuple):
    """The cumulative bias of sorted rows: its extremes, 0 included; and its steps, one for each distinct prediction.

    steps: effective number of equal steps, (sum of s)^2 / (sum of s^2), s being a step's sum of w p(1 - p).
    """

    lowest: float
    highest: float
    distinct: int
    steps: float


def bias_path(sample: Sample) -> BiasPath:
    """Follow the cumulative bias of sorted rows, without storing it."""
    inner = np.array([last for _, last in parts_of(sample.n)][:-1], np.int64)
    starts = np.searchsorted(sample.p, sample.p[inner])  # equal predictions stay together
    edges = [0, *np.unique(starts[starts > 0]).tolist(), sample.n]
    p, y, w = sample.p, sample.y, sample.w
    tasks = [partial(bias_extremes, p[a:b], y[a:b], w[a:b]) for a, b in itertools.pairwise(edges)]
    lows, highs, distinct, steps, squares, ends, rests = zip(*run_tasks(tasks, sample.n), strict=True)
    before = [math.fsum(ends[:k] + rests[:k]) for k in range(len(tasks))]
    lowest = min(0.0, *(start + low for start, low in zip(before, lows, strict=True)))
    highest = max(0.0, *(start + high for start, high in zip(before, highs, strict=True)))
    total, square = math.fsum(steps), math.fsum(squares)
    return BiasPath(lowest, highest, sum(distinct), total**2 / square if square > 0.0 else 0.0)


@named_columns
def ks_ce(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Kolmogorov-Smirnov calibration error: the largest cumulative bias. Also known as ECCE-MAD.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1. Not truthful.

    Notes
    -----
    ``max over thresholds of |sum of w (p - y) over p <= threshold| / W``, 0 for the threshold below all rows included.
    Thresholds lie between different predictions, so the order of tied rows does not matter. O(n log n).
    Reference: Gupta et al. (2021), Calibration of Neural Networks using Splines; Arrieta-Ibarra et al. (2022), Metrics
    of Calibration for Probabilistic Predictions.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.ks_ce([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.125000
    """
    return ks_ce_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def ks_ce_of(sample: Sample) -> float:
    """Largest cumulative bias of sorted rows."""
    path = bias_path(sample)
    return max(path.highest, -path.lowest) / sample.weight


def ks_ce_norm(_: _Array, bias: _Array) -> _Array:
    """Largest cumulative bias of each row of `bias`."""
    return np.asarray(np.max(np.abs(np.cumsum(bias, axis=1)), axis=1))


@named_columns
def kuiper_ce(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Kuiper calibration error: the largest bias over any interval of predictions. Also known as ECCE-R.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1; between `ks_ce` and twice that. Not truthful.

    Notes
    -----
    Highest minus lowest point of the cumulative bias, which starts at 0. Tie rule and cost as for `ks_ce`.
    Reference: Arrieta-Ibarra et al. (2022), Metrics of Calibration for Probabilistic Predictions.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.kuiper_ce([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.125000
    """
    return kuiper_ce_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def kuiper_ce_of(sample: Sample) -> float:
    """Range of the cumulative bias of sorted rows."""
    path = bias_path(sample)
    return (path.highest - path.lowest) / sample.weight


def kuiper_ce_norm(_: _Array, bias: _Array) -> _Array:
    """Range of the cumulative bias of each row of `bias`."""
    curve = np.cumsum(bias, axis=1)
    return np.asarray(np.maximum(np.max(curve, axis=1), 0.0) - np.minimum(np.min(curve, axis=1), 0.0))


@named_columns
def step_ce(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Step calibration error: the largest bias that a threshold on the predictions can find.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        The same number as `ks_ce`; the name comes from sequential forecasting, where rows are summed, not averaged.
        `subsampled_step_ce` is its nearly truthful version.

    Notes
    -----
    ``max over step functions f = 1(p <= threshold) of |sum of w (p - y) f(p)| / W``. O(n log n).
    Reference: Qiao, Zhao (2025), Truthfulness of Decision-Theoretic Calibration Measures.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.step_ce([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.125000
    """
    return ks_ce_of(Sample.of(y_true, y_proba, sample_weight, pos_label))
