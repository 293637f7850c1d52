"""Isotonic regression of outcomes on predictions, and the integrated calibration index (ICI)."""

import numpy as np
from numpy.typing import NDArray

from truthcal.core.frame_columns import named_columns
from truthcal.core.sample import Groups, Sample
from truthcal.kernels.isotonic import isotonic


def isotonic_of(groups: Groups) -> NDArray[np.float64]:
    """Isotonic regression of the outcomes on the predictions, at each different prediction."""
    fit = np.empty_like(groups.r)
    isotonic(groups.w, groups.wy, fit)
    return fit


@named_columns
def ici(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Integrated calibration index: mean distance of the predictions to a smoothed curve of outcomes.

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
    ``mean of |p - g(p)|``, g being the isotonic regression of outcomes on predictions, without a bandwidth. The loess
    curve of Austin and Steyerberg gives other numbers. Equal predictions form one group. O(n log n).
    Reference: Austin, Steyerberg (2019), The Integrated Calibration Index (ICI) and related metrics.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.ici([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.250000
    """
    return ici_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def ici_of(sample: Sample) -> float:
    """ICI of sorted rows, by isotonic regression."""
    groups = sample.groups
    return float(np.sum(groups.w * np.abs(groups.r - isotonic_of(groups)))) / sample.weight
