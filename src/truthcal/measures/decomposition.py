"""CORP decompositions of the Brier score and the log loss: miscalibration, discrimination, uncertainty."""

import numpy as np
from numpy.typing import NDArray

from truthcal.core.frame_columns import named_columns
from truthcal.core.sample import Sample
from truthcal.measures.isotonic import isotonic_of
from truthcal.results.measures import ScoreDecomposition


@named_columns
def brier_decomposition(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> ScoreDecomposition:
    """The Brier score as miscalibration minus discrimination plus uncertainty (CORP).

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    ScoreDecomposition
        ``score = miscalibration - discrimination + uncertainty``, none of the parts negative.

    Notes
    -----
    Miscalibration: the gain of isotonic recalibration on the same rows. Discrimination: the gain of the recalibrated
    predictions over always predicting the mean outcome, whose score is the uncertainty.
    For fractional outcomes the score is ``(p - y)^2``. O(n log n).
    Reference: Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.brier_decomposition([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9]))
    Brier score 0.1925 = miscalibration 0.0675 - discrimination 0.125 + uncertainty 0.25
    """
    return brier_decomposition_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def brier_decomposition_of(sample: Sample) -> ScoreDecomposition:
    """The Brier decomposition of sorted rows."""
    groups, m = sample.groups, sample.moments
    mean = groups.wy / groups.w
    base = float(np.sum(groups.wy) / np.sum(groups.w))
    # All three scores contain the spread of outcomes within groups; adding it last avoids cancellation.
    within = m.wcc / m.w - float(np.sum(groups.w * (groups.r - mean) ** 2)) / sample.weight

    def score(p: NDArray[np.float64] | float) -> float:
        return float(np.sum(groups.w * (p - mean) ** 2)) / sample.weight

    return _build_decomposition("Brier score", (score(groups.r), score(isotonic_of(groups)), score(base)), within)


@named_columns
def log_loss_decomposition(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> ScoreDecomposition:
    """The logarithmic loss as miscalibration minus discrimination plus uncertainty (CORP).

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    ScoreDecomposition
        As for `brier_decomposition`, in nats. Score and miscalibration are infinite after a wrong prediction of 0 or 1.

    Notes
    -----
    As for `brier_decomposition`, with ``-y log(p) - (1 - y) log(1 - p)`` as the score.
    Reference: Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.log_loss_decomposition([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.9]))
    log loss 0.5403 = miscalibration 0.1937 - discrimination 0.3466 + uncertainty 0.6931
    """
    from scipy.special import xlog1py, xlogy

    sample = Sample.of(y_true, y_proba, sample_weight, pos_label)
    groups = sample.groups

    def score(p: NDArray[np.float64] | float) -> float:
        return float(np.sum(-xlogy(groups.wy, p) - xlog1py(groups.w - groups.wy, -np.asarray(p)))) / sample.weight

    base = float(np.sum(groups.wy) / np.sum(groups.w))
    return _build_decomposition("log loss", (score(groups.r), score(isotonic_of(groups)), score(base)), 0.0)


def _build_decomposition(name: str, parts: tuple[float, float, float], common: float) -> ScoreDecomposition:
    """Build the decomposition from the scores of the predictions, the recalibrated ones and the mean outcome."""
    original, recalibrated, constant = parts
    score, miscalibration = original + common, original - recalibrated
    discrimination, uncertainty = constant - recalibrated, constant + common
    return ScoreDecomposition(name, *(max(x, 0.0) for x in (score, miscalibration, discrimination, uncertainty)))
