"""Interval calibration error: binned error plus width of the bins, for the best bins."""

from truthcal.core.frame_columns import named_columns
from truthcal.core.params import refuse_too_many
from truthcal.core.sample import Sample
from truthcal.kernels import intcal as kernel
from truthcal.kernels.ubse import window_integral
from truthcal.measures.binned import unbinned_ece_of

# Different predictions: usually one second, at worst several.
_MOST = 100_000


@named_columns
def intcal(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Interval calibration error: the binned error plus the bins' width, for the best bins. Exact.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1, and never below `distcal`. Not truthful.

    Notes
    -----
    ``min over partitions into intervals of sum over intervals of |sum of w (p - y)| / W + share of weight * width``,
    the width of an interval being that of the predictions in it. Dynamic programming over the distinct predictions,
    with an early end of the inner search: O(n^2) at worst, far less if predictions are spread out; for up to 100,000
    different predictions. `intcal_surrogate` has no limit. Ties need no rule.
    Reference: Blasiok, Gopalan, Hu, Nakkiran (2023), A Unifying Theory of Distance from Calibration.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.intcal([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.250000
    """
    return intcal_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def intcal_of(sample: Sample) -> float:
    """Interval error of sorted rows."""
    groups = sample.groups
    refuse_too_many(len(groups.r), _MOST, "the exact interval error would take too long. Use intcal_surrogate.")
    return kernel.interval_error(groups.r, groups.w, groups.cumulative) / sample.weight


@named_columns
def intcal_surrogate(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> float:
    """Interval calibration error with randomly shifted bins of the best width among 1, 1/2, 1/4 ...

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1; at least `intcal` and at most `unbinned_ece`. Not truthful.

    Notes
    -----
    ``min over k of R(2^-k) + 2^-k``, where R(e) is the l1 binned error of a grid of width e, averaged over a uniform
    shift. Nothing is drawn: R(e) is the integral of the absolute bias in a sliding window, divided by e, computed in
    one pass. R never falls as the grid is refined, with `unbinned_ece` as its limit, so the search ends early.
    O(n log n) and a pass for each width. Ties need no rule.
    Reference: Blasiok, Gopalan, Hu, Nakkiran (2023), A Unifying Theory of Distance from Calibration.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.intcal_surrogate([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.250000
    """
    return intcal_surrogate_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def intcal_surrogate_of(sample: Sample) -> float:
    """Surrogate of sorted rows."""
    r, w, wy, _, _ = sample.groups
    best, width = unbinned_ece_of(sample), 1.0
    while width > 0.0:
        error = window_integral(r, wy / w, w, width, False) / sample.weight
        best = min(best, error + width)
        if error >= best:
            break
        width /= 2.0
    return best
