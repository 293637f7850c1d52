"""The unnormalised binned squared error (UBSE) family: every member is truthful.

Draw a partition of the predictions that depends on them alone, square the sum of w (p - y) in each bin, add, divide by
W^2, and average over the draws. ATB is the member whose partition is one uniform threshold.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import check_report, read_only
from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import run_tasks
from truthcal.core.params import check_counts, check_number, check_whole
from truthcal.core.points import information_axis
from truthcal.core.sample import Sample
from truthcal.kernels import ubse as kernel
from truthcal.measures.atb import atb_of
from truthcal.measures.binning_checks import check_binning, check_draw, check_edges

_WIDTHS = tuple(0.5**k for k in range(6))


class Binning:
    """A random partition of the predictions, with its exact average. Base of the classes below."""

    def ubse_of(self, sample: Sample) -> float:
        """Exact UBSE of sorted rows under this partition."""
        raise TypeError("Binning is a base class; use a subclass, or pass a function of the predictions to ubse().")

    def noise_of(self, sample: Sample, chance: NDArray[np.float64]) -> float:
        """The part of the expected UBSE that does not depend on the report, if outcomes follow `chance`."""
        return float(np.sum(sample.w**2 * chance * (1.0 - chance))) / sample.moments.w**2


@dataclass(frozen=True, slots=True)
class RandomThreshold(Binning):
    """Two bins, cut at a uniform random threshold. Its UBSE is ATB."""

    def ubse_of(self, sample: Sample) -> float:
        """ATB."""
        return atb_of(sample)


@dataclass(frozen=True, slots=True)
class ShiftedGrid(Binning):
    """Bins of equal width, all shifted by one uniform random amount.

    Parameters
    ----------
    width : float
        Width of the bins, at least 1e-200.
    """

    width: float

    def __post_init__(self) -> None:
        check_number(self.width, "width", 1e-200)

    def ubse_of(self, sample: Sample) -> float:
        """Integral of the squared bias in a sliding window."""
        integral = kernel.window_integral(sample.p, sample.y, sample.w, float(self.width), True)
        return integral / sample.moments.w**2


@dataclass(frozen=True, slots=True)
class QuantileBins(Binning):
    """Bins of equal count, up to one row, with the exact average over random splits of ties.

    Weights must be whole numbers: a row of weight 2 stands for two independent rows, which may be in different bins.

    Parameters
    ----------
    n_bins : int, optional
        Number of bins. By default the rounded cube root of the number of rows.
    """

    n_bins: int | None = None

    def __post_init__(self) -> None:
        if self.n_bins is not None:
            check_whole(self.n_bins, "n_bins", 1)

    def ubse_of(self, sample: Sample) -> float:
        """Squared means and the variances from splitting ties."""
        size = _count_repetitions(sample)
        squares = kernel.quantile_squares(sample.p, sample.y, sample.repetitions, size, self.bins_for(sample))
        return squares / size**2

    def noise_of(self, sample: Sample, chance: NDArray[np.float64]) -> float:
        """Noise of the repeated rows."""
        return float(np.sum(sample.repetitions * chance * (1.0 - chance))) / _count_repetitions(sample) ** 2

    def bins_for(self, sample: Sample) -> int:
        """The number of bins for these rows."""
        size = _count_repetitions(sample)
        return check_whole(self.n_bins or round(size ** (1 / 3)), "n_bins", 1, size)


@dataclass(frozen=True, slots=True)
class FixedBins(Binning):
    """Bins between fixed edges, closed on the left. The outer bins extend to 0 and to 1, both included.

    Parameters
    ----------
    edges : iterable of float
        Increasing edges in [0, 1]. Those at 0 and 1 are optional.
    """

    edges: Iterable[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", check_edges(self.edges))

    def ubse_of(self, sample: Sample) -> float:
        """Squared sums of the bins."""
        cuts = np.array([edge for edge in self.edges if 0 < edge < 1])
        return _ubse_of_labels(sample, np.searchsorted(cuts, sample.p, side="right"))


@dataclass(frozen=True, slots=True)
class Multiscale(Binning):
    """A mixture of `ShiftedGrid` of widths 1, 1/2, 1/4 ... 1/32, each weighted by one over its noise.

    The noise of a width is, to first order in 1/n, the standard deviation of its UBSE for a calibrated forecaster (as
    if weights were repetitions): ``sqrt(sum over pairs of k^2 a a')``, k the tent of that width, a = w p(1 - p). It
    depends on the predictions alone, and the weights add up to 1: so the mixture is a UBSE, and truthful.
    """

    def ubse_of(self, sample: Sample) -> float:
        """The mixture."""
        grids = {width: ShiftedGrid(width) if width < 1 else _ATB for width in _WIDTHS}
        values = _at_each_grid_width(lambda width: grids[width].ubse_of(sample), sample.n)
        return math.fsum(share * values[width] for width, share in self.shares(sample.p, sample.w).items())

    def shares(self, p: NDArray[Any], w: NDArray[np.float64]) -> dict[float, float]:
        """Width -> its share of the mixture, for increasing predictions with weights."""
        noise = _at_each_grid_width(lambda width: math.sqrt(kernel.tent_pairs(p, w, width)), len(p))
        if not all(noise.values()):  # all predictions are (almost) 0 or 1: every width gives the same
            return {1.0: 1.0}
        total = math.fsum(1 / sd for sd in noise.values())
        return {width: 1 / sd / total for width, sd in noise.items()}


@dataclass(frozen=True, slots=True)
class MultiscaleInformation(Binning):
    """A mixture of shifted grids of widths 1, 1/2, 1/4 ... 1/32 on the information axis.

    A prediction's position is the share of the information (the sum of w p(1 - p)) below it, with half of its own. So
    bins have equal noise, whether predictions are near 1/2 or near 0. On this axis the noise of a width h is the same
    for all predictions without ties, ``sqrt(2h/3 - h^2/6)``: the shares of the widths are one over its square root, a
    compromise between smooth errors (equal shares are best) and narrow ones (one over the noise).
    """

    def ubse_of(self, sample: Sample) -> float:
        """The mixture."""
        points, widths, out = sample.points(), np.array(_WIDTHS), np.empty(1)
        x = read_only(information_axis(points.p, points.wv))
        before = tent_starts(x, widths)
        kernel.tent_sums(x, points.bias[None, :], before, 1.0 / widths, np.array(list(self.shares().values())), out)
        return max(float(out[0]), 0.0) / points.total**2

    def shares(self) -> dict[float, float]:
        """Width -> its share of the mixture."""
        shares = {width: (2.0 * width / 3.0 - width**2 / 6.0) ** -0.25 for width in _WIDTHS}
        return {width: share / math.fsum(shares.values()) for width, share in shares.items()}


def tent_starts(x: NDArray[np.float64], widths: NDArray[np.float64]) -> NDArray[np.intp]:
    """For UBSE with tent kernels: for each width and point, the first point less than a width below; x increases."""
    return np.stack([np.searchsorted(x, x - width, side="right") for width in widths])


_ATB = RandomThreshold()
BinningLike = Binning | Callable[[NDArray[np.float64]], Any]


def _at_each_grid_width(value: Callable[[float], float], rows: int) -> dict[float, float]:
    return dict(zip(_WIDTHS, run_tasks([partial(value, width) for width in _WIDTHS], rows), strict=True))


@named_columns
def ubse(
    y_true: object, y_proba: object, binning: BinningLike, *, sample_weight: object = None, pos_label: object = None
) -> float:
    """Binned squared calibration error for any bins that depend on the predictions alone. Truthful for all of them.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    binning : Binning or callable
        `RandomThreshold`, `ShiftedGrid`, `QuantileBins`, `FixedBins`, `Multiscale`, `MultiscaleInformation`, or a
        function of the predictions. A function is called once with the predictions in increasing order (a read-only
        float64 array) and returns bin labels in that order: one array of n labels, or several draws of them to average
        over (an iterator, or an array of shape (draws, n)). Equal predictions must get equal labels; to split ties use
        `QuantileBins`. The function must not use the outcomes, for example through a closure: the result would not be
        truthful.

    Returns
    -------
    float
        ``mean over draws of sum over bins of ((1/W) * sum in bin of w (p - y))^2``, between 0 and 1. Its noise floor is
        that of ATB for any bins (for `QuantileBins` without weights).

    Notes
    -----
    For the expected value, and why no lie lowers it, see `expected_ubse`.
    Reference: Hartline, Hu, Wu (2025), A Perfectly Truthful Calibration Measure.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    >>> print(f"{tc.ubse(y, p, tc.FixedBins([0.5])):.6f}")
    0.031250
    >>> print(f"{tc.ubse(y, p, lambda p: np.round(p)):.6f}")
    0.031250
    """
    return _ubse_of(Sample.of(y_true, y_proba, sample_weight, pos_label), binning)


def _ubse_of(sample: Sample, binning: BinningLike) -> float:
    if isinstance(binning, Binning):
        return binning.ubse_of(sample)
    check_binning(binning)
    p = read_only(sample.p.astype(np.float64))
    values = [_ubse_of_labels(sample, check_draw(draw, p)) for draw in _binning_draws(binning(p))]
    if not values:
        raise ValueError("`binning` returned no draws; it must return labels, or at least one draw of them.")
    return math.fsum(values) / len(values)


def _binning_draws(result: Any) -> Iterable[Any]:
    """Return the draws of a binning: one, or several from an iterator, a list of arrays or a 2-dimensional array."""
    if isinstance(result, np.ndarray):
        return result if result.ndim == 2 else [result]
    several = isinstance(result, list | tuple) and bool(result) and all(np.ndim(draw) == 1 for draw in result)
    return result if several or isinstance(result, Iterator) else [result]


def _ubse_of_labels(sample: Sample, labels: NDArray[Any]) -> float:
    """UBSE of one draw of a binning, by its labels."""
    names, bins = np.unique(labels, return_inverse=True)
    return kernel.labelled_squares(sample.p, sample.y, sample.w, bins, len(names)) / sample.moments.w**2


def _count_repetitions(sample: Sample) -> int:
    """Number of rows for UBSE in quantile bins, where weights are repetitions."""
    if not sample.weighted:
        return sample.n
    check_counts(sample.repetitions)
    return int(sample.repetitions.sum())


@named_columns
def shifted_grid_ubse(
    y_true: object, y_proba: object, *, width: float = 0.1, sample_weight: object = None, pos_label: object = None
) -> float:
    """ATB at a finer resolution: detects errors that change sign along the prediction axis. Truthful.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    width : float, default 0.1
        Width of the bins of a randomly shifted grid. 1 gives ATB.

    Returns
    -------
    float
        Between 0 (best) and 1. Its noise floor is that of ATB.

    Notes
    -----
    The kernel is a tent: ``(1/W^2) * sum over pairs of w w' c c' max(0, 1 - |p - p'|/width)``. Computed as the integral
    of the squared bias in a sliding window: exact, O(n log n); ties need no rule.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.shifted_grid_ubse([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], width=0.5):.6f}")
    0.018750
    """
    return shifted_grid_ubse_of(Sample.of(y_true, y_proba, sample_weight, pos_label), width=width)


def shifted_grid_ubse_of(sample: Sample, *, width: float = 0.1) -> float:
    """Shifted-grid UBSE of sorted rows."""
    return ShiftedGrid(width).ubse_of(sample)


@named_columns
def quantile_ece(
    y_true: object,
    y_proba: object,
    *,
    n_bins: int | None = None,
    sample_weight: object = None,
    pos_label: object = None,
) -> float:
    """Squared calibration error in bins of equal count: the quantile l2-ECE, made truthful.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`, but weights must be whole numbers: a row of weight 2 stands for two independent rows.
    n_bins : int, optional
        Number of bins. By default the rounded cube root of the number of rows.

    Returns
    -------
    float
        Between 0 (best) and 1: the mean over bins of the squared mean of (prediction - outcome), if `n_bins` divides n.
        Up to 9/8 if it does not, since bins then differ in size. Calibrated predictions score ``n_bins`` times the
        noise floor of ATB on average.

    Notes
    -----
    ``n_bins * UBSE`` with `QuantileBins`. Bins differ by at most one row. Ties are split uniformly at random, and the
    exact expectation over the splits is returned; nothing is drawn. O(n log n).

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.quantile_ece([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], n_bins=2):.6f}")
    0.062500
    """
    return quantile_ece_of(Sample.of(y_true, y_proba, sample_weight, pos_label), n_bins=n_bins)


def ubse_floor(sample: Sample) -> float:
    """Expected UBSE of calibrated predictions."""
    return sample.moments.wwv / sample.moments.w**2


def quantile_ece_floor(sample: Sample) -> float:
    """Expected quantile ECE, with the default number of bins, of these predictions if they are calibrated."""
    binning = QuantileBins()
    return binning.bins_for(sample) * binning.noise_of(sample, sample.p.astype(np.float64))


def quantile_ece_of(sample: Sample, *, n_bins: int | None = None) -> float:
    """Quantile ECE of sorted rows."""
    binning = QuantileBins(n_bins)
    return binning.bins_for(sample) * binning.ubse_of(sample)


@named_columns
def multiscale_atb(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """ATB on six scales at once: truthful, and detects errors that change sign along the prediction axis.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1. Its noise floor is that of ATB.

    Notes
    -----
    A mixture of `ShiftedGrid` UBSEs of widths 1, 1/2 ... 1/32; see `Multiscale` for the weights. Exact, O(n log n).

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.multiscale_atb([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.018729
    """
    return multiscale_atb_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def multiscale_atb_of(sample: Sample) -> float:
    """Multiscale ATB of sorted rows."""
    return Multiscale().ubse_of(sample)


@named_columns
def information_atb(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> float:
    """ATB on six scales of the information axis: truthful, and detects errors of rare events as well.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1. Its noise floor is that of ATB.

    Notes
    -----
    The default statistic of `calibration_test`. Like `multiscale_atb`, but a prediction's position is the share of the
    information (the sum of w p(1 - p)) below it: see `MultiscaleInformation`. If all predictions are below 0.01, they
    still take up the whole axis. It is not continuous: breaking a tie moves predictions apart on this axis. Exact,
    O(n log n).

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.information_atb([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.018119
    """
    return information_atb_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def information_atb_of(sample: Sample) -> float:
    """Information ATB of sorted rows."""
    return MultiscaleInformation().ubse_of(sample)


def expected_ubse(report: object, truth: object, binning: BinningLike = _ATB, *, sample_weight: object = None) -> float:
    """Expected UBSE of a report when outcomes follow `truth`: the exact price of a lie.

    Parameters
    ----------
    report, truth : array-like of shape (n,)
        Reported probabilities, and the true probabilities of the outcomes.
    binning : Binning or callable, default RandomThreshold()
        As for `ubse`; the default gives the expected ATB.
    sample_weight : array-like of shape (n,), optional
        As for `atb`.

    Returns
    -------
    float
        ``UBSE(report, truth) + sum w^2 truth (1 - truth) / W^2`` (w, not w^2, for `QuantileBins`).

    Notes
    -----
    Outcomes are independent. The first term is 0 for the honest report, and the second is the same for all: no lie
    scores less.

    Examples
    --------
    >>> import truthcal as tc
    >>> truth = [0.25, 0.75]
    >>> tc.expected_ubse(truth, truth), tc.expected_ubse([0.25, 0.5], truth)
    (0.09375, 0.109375)
    """
    sample = Sample.from_checked(check_report(report, truth, sample_weight))
    noise = (binning if isinstance(binning, Binning) else _ATB).noise_of(sample, sample.y)
    return _ubse_of(sample, binning) + noise
