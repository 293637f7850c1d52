"""Expected calibration error: in bins, and on distinct predictions (unbinned)."""

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.bins import bin_biases, bin_of_middle, quantile_edges, scaled_weights, uniform_edges
from truthcal.core.checks import Checked, check_rows, invalid
from truthcal.core.frame_columns import named_columns
from truthcal.core.params import check_choice, check_counts, check_flag, check_number, check_whole
from truthcal.core.sample import Sample
from truthcal.measures.ubse import FixedBins

Strategy = Literal["uniform", "quantile"] | FixedBins
Norm = Literal["l1", "l2", "max"]

_MOST_BINS = 1 << 24
DEFAULT_BINS = 15


@named_columns
def ece(
    y_true: object,
    y_proba: object,
    *,
    n_bins: int = DEFAULT_BINS,
    sample_weight: object = None,
    pos_label: object = None,
) -> float:
    """Expected calibration error in 15 bins of equal width, the most widely reported number. It can be gamed.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    n_bins : int, default 15
        Number of bins.

    Returns
    -------
    float
        Between 0 (best) and 1. Errors that cancel within a bin go unnoticed. Not truthful.

    Notes
    -----
    The same as `binned_ece` with its default parameters; `binned_ece` also has bins of equal weight, other norms and a
    correction for noise. `binned_ece_like` gives the number that another package prints. `unbinned_ece` treats equal
    predictions as one bin.
    Reference: Naeini, Cooper, Hauskrecht (2015).

    Examples
    --------
    >>> import truthcal as tc
    >>> y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    >>> print(f"{tc.ece(y, p):.6f} {tc.binned_ece(y, p, n_bins=15):.6f}")
    0.250000 0.250000
    """
    return binned_ece(y_true, y_proba, n_bins=n_bins, sample_weight=sample_weight, pos_label=pos_label)


def ece_of(sample: Sample, *, n_bins: int = DEFAULT_BINS) -> float:
    """ECE of sorted rows."""
    return binned_ece_of(sample, n_bins=n_bins)


def ece_norm(r: NDArray[np.float64], bias: NDArray[np.float64]) -> NDArray[np.float64]:
    """ECE of each row of `bias`: the sum of absolute biases in the default bins of the predictions `r`."""
    return unbinned_ece_norm(r, np.add.reduceat(bias, uniform_bins(r, DEFAULT_BINS), axis=1))


@named_columns
def binned_ece(
    y_true: object,
    y_proba: object,
    *,
    n_bins: int = DEFAULT_BINS,
    strategy: Strategy = "uniform",
    norm: Norm = "l1",
    alpha: float = 1.0,
    debias: bool = False,
    sample_weight: object = None,
    pos_label: object = None,
) -> float:
    """Expected calibration error in bins of your choice. Depends on the bins, and can be gamed.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    n_bins : int, default 15
        Number of bins.
    strategy : {"uniform", "quantile"} or FixedBins, default "uniform"
        Bins of equal width, or of about equal weight; or bins between edges of your own, which determine their number.
    norm : {"l1", "l2", "max"}, default "l1"
        Mean, root mean square, or largest of the bins' gaps (the last is known as MCE).
    alpha : float, default 1
        For norm "l1" only: exponent of the gaps, at least 1. The result is the mean of ``|gap|**alpha``, without a
        root (l_alpha-binned ECE), so that ``alpha=2`` is the square of norm "l2".
    debias : bool, default False
        Subtract, for norm "l2", the average contribution of noise. Needs 0/1 outcomes, whole weights, and two rows in
        each bin that is not empty.

    Returns
    -------
    float
        Between 0 (best) and 1. Errors that cancel within a bin go unnoticed. Not truthful. `binned_ece_like` gives the
        number that another package prints.

    Notes
    -----
    The gap of a bin is its mean prediction minus its mean outcome; empty bins are ignored. Uniform bin k holds
    ``k / n_bins <= p < (k + 1) / n_bins``, and p = 1 is in the last. For quantile bins, equal predictions stay
    together: they go to bin ``floor(n_bins * m)``, m being the share of weight below them plus half their own.
    `quantile_ece` splits ties fairly instead, and is truthful. Debiased: ``sqrt(max(0, sum of share * (gap^2 - ybar(1 -
    ybar)/(n - 1))))``. O(n), in one pass; for quantile bins in three, and only rows near their edges are sorted.
    Reference: Naeini, Cooper, Hauskrecht (2015); Kumar, Liang, Ma (2019), Verified Uncertainty Calibration.

    Examples
    --------
    >>> import truthcal as tc
    >>> y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    >>> print(f"{tc.binned_ece(y, p):.6f} {tc.binned_ece(y, p, n_bins=2, norm='max'):.6f}")
    0.250000 0.250000
    >>> print(f"{tc.binned_ece(y, p, strategy=tc.FixedBins([0.5]), alpha=3):.6f}")
    0.015625
    """
    error = _BinnedError.of(n_bins, strategy, norm, alpha, debias)
    rows = check_rows(y_true, y_proba, sample_weight, pos_label)
    return error.of_rows(rows)


def binned_ece_of(
    sample: Sample,
    *,
    n_bins: int = DEFAULT_BINS,
    strategy: Strategy = "uniform",
    norm: Norm = "l1",
    alpha: float = 1.0,
    debias: bool = False,
) -> float:
    """Binned ECE of sorted rows."""
    return _BinnedError.of(n_bins, strategy, norm, alpha, debias).of_sample(sample)


@dataclass(frozen=True, slots=True)
class _BinnedError:
    """A binned ECE with checked parameters. `edges`: the left ends of the bins; None for quantile bins."""

    n_bins: int
    edges: NDArray[np.float64] | None
    norm: str
    alpha: float
    debias: bool

    @classmethod
    def of(cls, n_bins: int, strategy: Strategy, norm: Norm, alpha: float, debias: bool) -> Self:
        """Check the parameters of binned ECE."""
        n_bins, debias = check_whole(n_bins, "n_bins", 1, _MOST_BINS), check_flag(debias, "debias")
        alpha = _check_exponent(alpha, check_choice(norm, "norm", ("l1", "l2", "max")))
        if debias and norm != "l2":
            raise invalid("debias", f"is defined for norm='l2' only; got norm={norm!r}.")
        if isinstance(strategy, FixedBins):
            edges = np.array([0.0, *(edge for edge in strategy.edges if 0.0 < edge < 1.0)])
        elif check_choice(strategy, "strategy", ("uniform", "quantile")) == "uniform":
            edges = uniform_edges(n_bins)
        else:
            edges = None
        return cls(n_bins, edges, norm, alpha, debias)

    def of_rows(self, rows: Checked) -> float:
        """Binned ECE of checked rows in any order; only bins of equal weight need another pass, for their edges."""
        edges = quantile_edges(rows, self.n_bins) if self.edges is None else self.edges
        bias, mass, positive = bin_biases(rows, edges)
        filled, exponent = mass > 0.0, 0
        if self.debias:
            w, exponent = scaled_weights(rows)
            _check_debias(rows.y, np.ldexp(w, exponent), np.ldexp(mass[filled], exponent))
        return self._error(bias[filled], mass[filled], positive[filled], exponent)

    def of_sample(self, sample: Sample) -> float:
        """Binned ECE of sorted rows."""
        groups = sample.groups
        starts = quantile_bins(groups.w, self.n_bins) if self.edges is None else _bins_from(groups.r, self.edges)
        # Differences of cumulative sums would lose a light bin to rounding.
        bias, mass, positive = (np.add.reduceat(column, starts) for column in (groups.c, groups.w, groups.wy))
        if self.debias:
            _check_debias(sample.y, sample.repetitions, np.ldexp(mass, sample.exponent))
        return self._error(bias, mass, positive, sample.exponent)

    def _error(
        self, bias: NDArray[np.float64], mass: NDArray[np.float64], positive: NDArray[np.float64], exponent: int
    ) -> float:
        """Binned ECE from the sums of w c, w and w y in each bin that is not empty."""
        total, gap = float(np.sum(mass)), bias / mass
        if self.norm == "l1":
            sizes = np.abs(bias) if self.alpha == 1.0 else mass * np.abs(gap) ** self.alpha
            return float(np.sum(sizes)) / total
        if self.norm == "max":
            return float(np.max(np.abs(gap)))
        square = gap**2
        if self.debias:
            mean = positive / mass
            square -= mean * (1.0 - mean) / (np.ldexp(mass, exponent) - 1.0)
        return math.sqrt(max(float(np.sum(mass * square)) / total, 0.0))


@named_columns
def unbinned_ece(
    y_true: object, y_proba: object, *, alpha: float = 1.0, sample_weight: object = None, pos_label: object = None
) -> float:
    """Expected calibration error without bins: for forecasts on a grid (0, 0.1, ..., 1), not for continuous scores.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    alpha : float, default 1
        The exponent, at least 1.

    Returns
    -------
    float
        Between 0 (best) and 1. If all predictions are different, each is compared with a single outcome, and the result
        says nothing about calibration. Not truthful. For the ECE in 15 bins, see `ece`.

    Notes
    -----
    ``sum over distinct r of share(r) * |r - mean outcome at r|**alpha``. Equal predictions form one group. O(n log n).

    Examples
    --------
    >>> import truthcal as tc
    >>> y, p = [0, 1, 0, 1, 0, 1, 1, 1, 0], [0.5, 0.5, 0.5, 0.6, 0.5, 0.6, 0.6, 0.6, 0.6]
    >>> print(f"{tc.unbinned_ece(y, p):.6f} {4 / 9 * 0.25 + 5 / 9 * 0.2:.6f}")
    0.222222 0.222222
    """
    return unbinned_ece_of(Sample.of(y_true, y_proba, sample_weight, pos_label), alpha=alpha)


def unbinned_ece_of(sample: Sample, *, alpha: float = 1.0) -> float:
    """Unbinned ECE of sorted rows."""
    alpha, groups = check_number(alpha, "alpha", 1.0), sample.groups
    if alpha == 1.0:
        return float(np.sum(np.abs(groups.c))) / sample.weight
    return float(np.sum(groups.w * np.abs(groups.c / groups.w) ** alpha)) / sample.weight


def unbinned_ece_norm(_: NDArray[np.float64], bias: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unbinned ECE of each row of `bias`: the sum of absolute values."""
    return np.asarray(np.sum(np.abs(bias), axis=1))


def uniform_bins(r: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """Start indices of the bins of binned ECE with equal width; empty bins are left out."""
    return _bins_from(r, uniform_edges(n_bins))


def _bins_from(r: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Start indices of the bins of binned ECE that start at `edges`; empty bins are left out."""
    starts = np.searchsorted(r, edges)
    return np.unique(starts[starts < len(r)])


def quantile_bins(w: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """Start indices of the bins of binned ECE with about equal weight."""
    upto = np.cumsum(w)
    return np.flatnonzero(np.diff(bin_of_middle(w, upto, upto[-1], n_bins), prepend=-1.0))


def _check_exponent(alpha: float, norm: str) -> float:
    """Check the exponent of binned ECE: at least 1, and 1 for the norms that have their own."""
    exponent = check_number(alpha, "alpha", 1.0)
    if norm != "l1" and exponent != 1.0:
        given = f"got alpha={exponent:g} with norm={norm!r}"
        raise invalid("alpha", f"is defined for norm='l1' only; {given}. Omit one of them.")
    return exponent


def _check_debias(y: NDArray[Any], repetitions: NDArray[np.float64], counts: NDArray[np.float64]) -> None:
    """Reject input that `debias` of binned ECE cannot use: it needs the variance of 0/1 outcomes in each bin."""
    if y.dtype != np.uint8 and not ((y == 0) | (y == 1)).all():
        raise invalid("debias", "needs 0/1 outcomes; `y_true` contains fractions.")
    check_counts(repetitions)
    if counts.min() < 2:
        raise invalid("debias", "needs at least two rows in every non-empty bin; use fewer bins.")
