"""The cost of acting on miscalibrated predictions: calibration decision loss and U-calibration."""

import numpy as np

from truthcal.core.frame_columns import named_columns
from truthcal.core.sample import Sample
from truthcal.kernels import decision


@named_columns
def decision_loss(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Calibration decision loss (CDL): the largest loss of any decision maker who trusts the predictions.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1: payoff lost per decision, for payoffs between 0 and 1. Each distinct prediction is
        compared with its mean outcome: if all are different, the result says nothing about calibration. Not truthful.

    Notes
    -----
    The largest gain, over all decision problems with payoffs in [0, 1], from acting on the mean outcome at each
    distinct prediction in place of the prediction. Decision problems are mixtures of thresholds, and the best mixture
    is read off a concave envelope (docs/theory/foundations.md): exact, O(n log n). Equal predictions form one group.
    Reference: Hu, Wu (2024), Predict to Minimize Swap Regret for All Payoff-Bounded Tasks.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.decision_loss([0, 1, 1, 0], [0.5, 0.5, 0.75, 0.75]):.6f}")
    0.166667
    """
    return decision_loss_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def decision_loss_of(sample: Sample) -> float:
    """Decision loss of sorted rows."""
    r, w, wy, _, _ = sample.groups
    gain = np.empty_like(r)
    decision.gain_of_knowing(r, w, wy, gain)
    return 2.0 * decision.envelope_at_half(r, w, wy, gain) / sample.weight


@named_columns
def u_calibration(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """U-calibration error: the largest loss of any decision maker who uses the predictions instead of the base rate.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1: payoff lost per decision, for payoffs between 0 and 1. Small for useful predictions even
        if they are miscalibrated: it is not sound. Not truthful.

    Notes
    -----
    The largest regret, over all decision problems with payoffs in [0, 1], against acting on the mean outcome of all
    rows; computed like `decision_loss`. Exact, O(n log n). Equal predictions form one group.
    Reference: Kleinberg, Leme, Schneider, Teng (2023), U-Calibration: Forecasting for an Unknown Agent.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.u_calibration([0, 1, 1, 0], [0.5, 0.5, 0.75, 0.75]):.6f}")
    0.166667
    """
    return u_calibration_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def u_calibration_of(sample: Sample) -> float:
    """U-calibration error of sorted rows."""
    r, w, wy, _, _ = sample.groups
    gain = np.maximum(float(np.sum(wy)) - r * sample.weight, 0.0)
    return 2.0 * decision.envelope_at_half(r, w, wy, gain) / sample.weight
