"""ATB, the averaged two-bin calibration error: the number and its summary."""

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import parts_of, run_tasks
from truthcal.core.points import excess
from truthcal.core.sample import Groups, Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize
from truthcal.kernels import atb as kernel
from truthcal.results.measures import AtbSummary


@named_columns
def atb(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Averaged two-bin calibration error: how far predictions are from being calibrated, in a way no lie improves.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Outcomes: 0/1, bool, or fractions in [0, 1] (known true probabilities, not observed rates). Other labels need
        `pos_label`.
    y_proba : array-like of shape (n,)
        Predicted probabilities of the positive outcome.
    sample_weight : array-like of shape (n,), optional
        Weights, finite and not negative. A weight of 2 gives the value of two equal rows; rows of weight 0 are ignored.
        For noise (`atb_summary`) a row of weight 2 is one observation: if weights are counts, repeat the rows.
    pos_label : optional
        The label in `y_true` that counts as 1.

    Returns
    -------
    float
        Between 0 (best) and 1. Compare it with the noise floor (`atb_summary`), not with 0. For independent outcomes no
        report has a smaller expected value than the truth.

    Notes
    -----
    Cut the predictions at a threshold q drawn uniformly from [0, 1], divide the sum of w (p - y) in each of the two
    bins by the total weight W, square, add, and average over q:

        ATB = (1/W^2) * integral over q of C(q)^2 + (C - C(q))^2,   C(q) = sum over p < q of w (p - y),   C = C(1).

    Exact, in O(n log n) for the sort and one pass. Ties need no rule: rows with equal predictions fall on the same side
    of almost every threshold. Extra memory: 9 bytes per row for 0/1 outcomes without weights.
    Reference: Hartline, Hu, Wu (2025), A Perfectly Truthful Calibration Measure.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.atb([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3])
    0.01025
    """
    return atb_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def atb_of(sample: Sample) -> float:
    """ATB of sorted rows.

    One pass sums up the bias of each part of the rows, a second one integrates over the thresholds of each part.
    """
    if sample.counts is not None:
        return _atb_of_groups(sample.groups) / sample.weight**2
    p, y, w, counted = sample.p, sample.y, sample.w, sample.counted
    ranges = parts_of(sample.n)
    before, total = sample.bias_before(ranges)

    def integral(part: int, first: int, last: int) -> float:
        rows, end = slice(first, last), float(p[last]) if last < sample.n else 1.0
        if counted:
            return kernel.square_integral_binary(p[rows], y[rows], before[part], total, end)
        return kernel.square_integral(p[rows], y[rows], w[rows], before[part], total, end)

    tasks = [partial(integral, part, *rows) for part, rows in enumerate(ranges)]
    below_first = float(p[0]) * total * total
    return math.fsum([below_first, *run_tasks(tasks, sample.n)]) / sample.weight**2


def _atb_of_groups(groups: Groups) -> float:
    """Integral of ATB over all thresholds, from few distinct predictions."""
    total = float(groups.cumulative[-1])
    return float(groups.r[0]) * total * total + kernel.integral_of_block(groups.r, groups.cumulative, total, 1.0)


@named_columns
def atb_l1(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """ATB with absolute values in place of squares: on the scale of a probability, but not truthful.

    Within constant factors of the smooth calibration error and of the distance to calibration:
    ``ATB_l1^2 / 2 <= ATB <= ATB_l1``.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1. Its noise floor has no closed form.

    Notes
    -----
    ``ATB_l1 = (1/W) * integral over q of |C(q)| + |C - C(q)|``, exact, O(n log n); ties need no rule.
    Reference: Hartline, Hu, Wu (2025), A Perfectly Truthful Calibration Measure.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.atb_l1([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.100000
    """
    return atb_l1_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def atb_l1_of(sample: Sample) -> float:
    """ATB_l1 of sorted rows."""
    return kernel.absolute_integral(sample.p, sample.y, sample.w, sample.moments.wc) / sample.weight


def atb_l1_norm(r: NDArray[np.float64], bias: NDArray[np.float64]) -> NDArray[np.float64]:
    """ATB_l1 of each row of `bias` at the predictions `r`: integral of absolute biases on both sides of a threshold."""
    curve = np.cumsum(bias, axis=1)
    total = curve[:, -1:]
    sides = (np.abs(curve) + np.abs(total - curve)) @ np.diff(r, append=1.0)
    value: NDArray[np.float64] = sides + np.abs(total[:, 0]) * r[0]
    return value


@named_columns
def atb_summary(
    y_true: object, y_proba: object = None, *, sample_weight: object = None, pos_label: object = None
) -> AtbSummary:
    """ATB with its noise floor, its excess (an unbiased estimate of the population's ATB) and the root of that.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`, or only a `Sketch` in place of all rows. Noise floor and excess assume independent rows, each of
        which is one observation whatever its weight. If weights are counts, repeat the rows with ``np.repeat`` first.

    Returns
    -------
    AtbSummary
        Prints as a small table. From a sketch, ATB is its best estimate; ``Sketch.atb`` has certified bounds.

    Notes
    -----
    Without the pairs of a row with itself, the kernel form of ATB is an unbiased estimate of the population's ATB:
    ``excess = (ATB - sum w^2 (p - y)^2 / W^2) / (1 - sum w^2 / W^2)``. It needs two independent rows.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.atb_summary([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]))
    ATB is 0.0103, 0.234 times the noise floor
    (too few rows for a rule of thumb: sum p(1 - p) is 0.7, below 100).
    <BLANKLINE>
      ATB          0.01025      averaged two-bin calibration error
      noise floor  0.04375      average ATB of calibrated predictions like these
      excess       -0.01133     unbiased estimate of ATB without noise
      bias         +0           mean prediction minus mean outcome
      Brier score  0.075        mean squared error of the predictions
      rows         4
    """
    return atb_summary_of(summarize(y_true, y_proba, sample_weight, pos_label))


def atb_summary_of(summary: Sample | Sketch) -> AtbSummary:
    """The ATB summary of sorted rows or of a sketch."""
    if summary.sketched:
        return summary.summary()
    m, n = summary.moments, summary.n
    value, one_row = atb_of(summary), m.ww / m.w**2 if n > 1 else 1.0
    noise_floor, brier, bias = m.wwv / m.w**2, m.wcc / m.w, m.wc / m.w
    estimate = excess(value, m.wwcc / m.w**2, one_row)
    return AtbSummary(value, noise_floor, estimate, brier, bias, n, n_effective=1.0 / one_row)
