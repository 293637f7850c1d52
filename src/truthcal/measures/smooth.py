"""Smooth calibration errors: smCal, smECE and the Laplace kernel error."""

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import read_only
from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import parts_of, run_tasks
from truthcal.core.params import check_number
from truthcal.core.roots import find_root
from truthcal.core.sample import Groups, Sample
from truthcal.kernels import smece as kernel
from truthcal.kernels.laplace import laplace_square
from truthcal.kernels.smcal import smooth_error, witness
from truthcal.measures.binned import unbinned_ece_of
from truthcal.results.measures import SmoothWitness

NO_FIT = np.empty(0)
# Below this, terms of a sum of squares may have been rounded to 0.
_UNDERFLOW = 1e-250
# Cells of this level are merged into coarser ones; finer ones are built from the rows.
_BASE = 12
# Stretches of cells that are integrated in parallel.
_STRETCHES = 8
# Work of a cell, in rows.
_ROWS_A_CELL = 128
# An estimate of few rows is made in cells of this level: smECE is rarely below four of them.
_FEW, _BASE_OF_FEW = 1 << 15, 10
# Secant steps from an estimate end with an estimated relative error below this.
_CLOSE, _MOST_SECANTS = 3e-8, 8
# The narrowest Gaussian tried has a standard deviation of 2^-40, about 1e-12.
_FINEST = 40


class _Cells(NamedTuple):
    """Cells of smECE: moments of c in the nonempty cells of width 2^-level; `kernels.smece` documents the columns."""

    level: int
    cell: NDArray[np.int64]
    centre: NDArray[np.float64]
    moments: NDArray[np.float64]
    order: NDArray[np.int64]
    signs: NDArray[np.int8]

    @classmethod
    def of(cls, groups: Groups, level: int) -> "_Cells":
        """Sum the moments of stretches of cells, in parallel: always the same ones."""
        stretches = len(parts_of(len(groups.r), _STRETCHES))
        ends = np.searchsorted(groups.r, np.arange(1, stretches) / stretches)
        tasks = [
            partial(cls._columns_of, groups.r[first:last], groups.c[first:last], level)
            for first, last in itertools.pairwise([0, *ends.tolist(), len(groups.r)])
        ]
        return cls(level, *(np.concatenate(parts) for parts in zip(*run_tasks(tasks, len(groups.r)), strict=True)))

    @staticmethod
    def _columns_of(r: NDArray[np.float64], c: NDArray[np.float64], level: int) -> list[NDArray[Any]]:
        size = min(len(r), 1 << level)
        columns: list[NDArray[Any]] = [
            np.empty(size, np.int64),
            np.empty(size),
            np.empty((size, kernel.MOMENTS)),
            np.empty(size, np.int64),
            np.empty(size, np.int8),
        ]
        count = kernel.sum_moments(r, c, 1 << level, *columns)
        return [column[:count] for column in columns]

    def coarser(self) -> "_Cells":
        columns: list[NDArray[Any]] = [column.copy() for column in self[1:]]
        count = kernel.merge_cell_pairs(len(self.cell), *columns)
        return _Cells(self.level - 1, *(column[:count] for column in columns))

    def smoothed(self, sigma: float) -> float:
        """Integral of |sum of c K(t, p)| over t in [0, 1], K the reflected Gaussian."""
        size, ratio = 1 << self.level, 2.0**-self.level / sigma
        powers = np.arange(kernel.moments_needed(ratio))
        scale = ratio**powers / [math.factorial(p) for p in powers]
        far = kernel.REACH / ratio + 1.0
        images: list[tuple[NDArray[Any], ...]] = []
        periods = math.ceil(far / (2 * size))
        for shift, sign in itertools.product(range(-2 * periods, 2 * periods + 1, 2), (1, -1)):
            centre = sign * self.centre + shift * size
            near = (centre > -far) & (centre < size + far)
            signs = self.signs[near] + (0 if (shift, sign) == (0, 1) else 4)
            moments = self.moments[near, : len(powers)] * (scale * sign**powers)
            images.append((centre[near], moments, np.minimum(self.order[near], len(powers)), signs))
        centre, moments, order, signs = (np.concatenate(parts) for parts in zip(*images, strict=True))
        by_place = np.argsort(centre)
        columns = centre[by_place], moments[by_place], order[by_place], signs[by_place]
        # Always the same stretches of cells, so that the result does not depend on the number of threads.
        inner = np.clip(np.floor(columns[0][:: max(len(centre) // _STRETCHES, 1)][1:]), 0.0, size)
        edges = [-math.inf, *np.unique(inner).tolist(), math.inf]
        tasks = [
            partial(kernel.smoothed_error, *columns, ratio, float(size), first, last)
            for first, last in itertools.pairwise(edges)
        ]
        return math.fsum(run_tasks(tasks, len(centre) * _ROWS_A_CELL))


@named_columns
def smcal(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """Smooth calibration error: the largest bias under a smooth reweighting of the rows, exact.

    Not to be confused with `smece`, also known as "smooth ECE".

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1. 0.02: some smooth reweighting of the rows has a mean error of 2 points. Not truthful.

    Notes
    -----
    ``max (1/W) * sum of w (p - y) f(p)`` over all f with values and slopes in [-1, 1]; `smcal_witness` returns the best
    f. Computed by isotonic regression of the cumulative bias (F14 in docs/theory/foundations.md): exact, O(n log n),
    with 56 bytes for each different prediction besides the sorted rows. Ties need no rule.
    Reference: Kakade, Foster (2004), Deterministic calibration and Nash equilibrium; Blasiok, Gopalan, Hu, Nakkiran
    (2023), A Unifying Theory of Distance from Calibration.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.smcal([0, 1], [0.25, 0.75]), tc.smcal([0, 0], [0.25, 0.75])
    (0.0625, 0.5)
    """
    return smcal_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def smcal_of(sample: Sample) -> float:
    """Smooth calibration error of sorted rows."""
    return smooth_error(sample.groups.r, sample.groups.cumulative, NO_FIT) / sample.weight


def smcal_norm(r: NDArray[np.float64], bias: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth calibration error of each row of `bias` at the predictions `r`."""
    curves = read_only(np.cumsum(bias, axis=1))  # as in smcal_of, so that the kernel compiles once for both
    return np.array([smooth_error(r, curve, NO_FIT) for curve in curves])


@named_columns
def smcal_witness(
    y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None
) -> SmoothWitness:
    """The function that attains the smooth calibration error: a certificate that `smcal` is no smaller.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    SmoothWitness
        ``q`` and ``f``, one entry for each different prediction, and ``value``; called with predictions it returns the
        function's values there. Its level shows the overall bias; where it rises, predictions further up are too high
        compared with those below. `cumulative_bias_curve` is easier to read.

    Examples
    --------
    >>> import truthcal as tc
    >>> y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]
    >>> witness = tc.smcal_witness(y, p)
    >>> witness
    A 1-Lipschitz function at 4 different predictions that shows smCal = 0.05.
    >>> mean = sum((pi - yi) * fi for yi, pi, fi in zip(y, p, witness(p))) / 4
    >>> print(f"{mean:.6f} {tc.smcal(y, p):.6f}")
    0.050000 0.050000
    """
    sample = Sample.of(y_true, y_proba, sample_weight, pos_label)
    groups = sample.groups
    fit, f = np.empty_like(groups.r), np.empty_like(groups.r)
    smooth_error(groups.r, groups.cumulative, fit)
    witness(groups.r, groups.cumulative, fit, f)
    return SmoothWitness(groups.r, read_only(f), math.fsum(groups.c * f) / sample.weight)


@named_columns
def laplace_kernel_ce(
    y_true: object, y_proba: object, *, bandwidth: float = 1.0, sample_weight: object = None, pos_label: object = None
) -> float:
    """Kernel calibration error with the Laplace kernel: a smooth error with a closed form.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    bandwidth : float, default 1
        Distance over which errors at neighbouring predictions are averaged, at least 1e-200.

    Returns
    -------
    float
        Between 0 (best) and 1; read it like `smcal`, to which it is close. Not truthful, but its square is, as a kernel
        sum with ones on the diagonal.

    Notes
    -----
    ``kCE = sqrt((1/W^2) * sum over pairs of w w' c c' exp(-|p - p'| / bandwidth))``, computed as a sum of squares:
    exact, O(n log n). Ties need no rule. Twice its square, for bandwidth 1, is the biased SKCE of two classes.
    Reference: Kumar, Sarawagi, Jain (2018), Trainable Calibration Measures; Blasiok, Gopalan, Hu, Nakkiran (2023).

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{2 * tc.laplace_kernel_ce([1, 0, 1], [0.8, 0.4, 0.6]) ** 2:.10f}")
    0.0270559716
    """
    return laplace_kernel_ce_of(Sample.of(y_true, y_proba, sample_weight, pos_label), bandwidth=bandwidth)


def laplace_kernel_ce_of(sample: Sample, *, bandwidth: float = 1.0) -> float:
    """Laplace kernel error of sorted rows."""
    bandwidth = check_number(bandwidth, "bandwidth", 1e-200)
    return _laplace_root(sample.groups.r, sample.groups.c, bandwidth) / sample.weight


def laplace_kernel_ce_norm(r: NDArray[np.float64], bias: NDArray[np.float64]) -> NDArray[np.float64]:
    """Laplace kernel error of each row of `bias` at the predictions `r`, with bandwidth 1."""
    return np.array([_laplace_root(r, row, 1.0) for row in read_only(bias)])


def _laplace_root(r: NDArray[np.float64], c: NDArray[np.float64], bandwidth: float) -> float:
    """Root of the kernel sum; biases so small that their squares underflow are scaled first."""
    square = laplace_square(r, c, bandwidth)
    largest = float(np.max(np.abs(c))) if square < _UNDERFLOW else 0.0
    if largest == 0.0:
        return math.sqrt(square)
    return largest * math.sqrt(laplace_square(r, c / largest, bandwidth))


@named_columns
def smece(y_true: object, y_proba: object, *, sample_weight: object = None, pos_label: object = None) -> float:
    """SmECE: the ECE after smoothing with a Gaussian whose width is the error itself.

    Not to be confused with `smcal`, the smooth calibration error.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.

    Returns
    -------
    float
        Between 0 (best) and 1; read it like an ECE, a mean error of the probabilities. Not truthful.

    Notes
    -----
    ``smECE_s = (1/W) * integral over t in [0, 1] of |sum of w (p - y) K_s(t, p)|``, K_s the Gaussian of standard
    deviation s reflected at 0 and 1. It falls as s grows; smECE is the s that it equals. Relative error below 1e-7 (or
    1e-12 in absolute terms). O(n log n), and a cost that grows with 1/smECE. Ties need no rule.
    Reference: Blasiok, Nakkiran (2023), Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(f"{tc.smece([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]):.6f}")
    0.174118
    """
    return smece_of(Sample.of(y_true, y_proba, sample_weight, pos_label))


def smece_of(sample: Sample) -> float:
    """SmECE of sorted rows."""
    groups, weight = sample.groups, sample.weight
    bound = unbinned_ece_of(sample)  # smECE without smoothing: an upper bound
    if bound == 0.0 or len(groups.r) == 1:
        return bound
    close = _smece_from_estimate(groups, weight, bound)
    if close is not None:
        return close
    for cells in _smece_levels(groups, max(1, min(math.floor(-math.log2(bound)), _FINEST))):
        narrow = 2.0**-cells.level
        value = cells.smoothed(narrow) / weight
        if value >= narrow:
            return _smece_crossing(cells, weight)
    return value


def _smece_from_estimate(groups: Groups, weight: float, bound: float) -> float | None:
    """Find smECE by secant steps from an estimate; None if it is too small for one, or if they do not converge.

    The smoothed error falls as the standard deviation grows, so there is one crossing. Three evaluations suffice
    mostly, in place of about fifteen.
    """
    base = _Cells.of(groups, _BASE) if len(groups.r) > _FEW else None
    estimate = _SmoothedMasses(groups, base, weight)
    if not (bound > estimate.narrowest and estimate.above(math.log(estimate.narrowest)) > 0.0):
        return None
    x = find_root(estimate.above, math.log(estimate.narrowest), math.log(2.0 * bound), xtol=1e-4)
    slope = (estimate.above(x + 0.01) - estimate.above(x - 0.01)) / 0.02
    level = math.floor(-x / math.log(2.0)) + 1
    cells = _Cells.of(groups, level) if base is None else base
    while cells.level > level:
        cells = cells.coarser()
    before = math.nan, math.nan
    for _ in range(_MOST_SECANTS):
        sigma, guess = math.exp(x), slope
        if not (slope < 0.0 and 0.99 <= sigma * 2.0**level <= 2.02):  # the moments would not be accurate
            return None
        above = math.log(cells.smoothed(sigma) / weight) - x
        if x != before[0] and not math.isnan(before[0]):
            slope = (above - before[1]) / (x - before[0])
        step = -above / slope
        # The last slope is better than the one before: the step is wrong by less than their difference says.
        wrong = abs(step) * (abs(slope / guess - 1.0) if slope != guess else 1.0)
        before, x = (x, above), x + step
        if wrong <= _CLOSE:
            return math.exp(x)
    return None


class _SmoothedMasses:
    """Estimate of the smoothed error of smECE: with the c of each cell at its middle, by fast Fourier transforms."""

    def __init__(self, groups: Groups, base: _Cells | None, weight: float) -> None:
        """Use the cells `base` or, for few rows, wider ones."""
        mass = np.zeros(1 << _BASE)
        if base is not None:
            mass[base.cell] = base.moments[:, 0]
        else:
            size = 1 << _BASE_OF_FEW
            cell = np.minimum((groups.r * size).astype(np.int64), size - 1)
            mass = np.bincount(cell, groups.c, size).astype(np.float64, copy=False)
        # Mirror images at 0 and 1: periodic with period 2.
        self._waves = np.fft.rfft(np.concatenate([mass, mass[::-1]]) / weight)
        self._squares = (math.pi * np.arange(len(mass) + 1)) ** 2 / 2.0
        self.narrowest = 4.0 / len(mass)

    def above(self, log_sigma: float) -> float:
        """Logarithm of the smoothed error over the standard deviation."""
        waves = self._waves * np.exp(-math.exp(2.0 * log_sigma) * self._squares)
        return math.log(float(np.sum(np.abs(np.fft.irfft(waves)))) / 2.0 + 1e-300) - log_sigma


def _smece_crossing(cells: _Cells, weight: float) -> float:
    """Find smECE: the standard deviation, of one to two cells, that equals the smoothed error, on a log scale."""

    def above(log_sigma: float) -> float:
        return math.log(cells.smoothed(math.exp(log_sigma)) / weight) - log_sigma

    narrow = -cells.level * math.log(2.0)
    wide = narrow + math.log(2.0)
    if above(wide) >= 0.0:  # through rounding
        return math.exp(wide)
    return math.exp(find_root(above, narrow, wide, xtol=1e-9))


def _smece_levels(groups: Groups, first: int) -> Iterator[_Cells]:
    """Yield the cells of smECE from coarse to fine, starting at level `first`."""
    if first <= _BASE:
        levels = [_Cells.of(groups, _BASE)]
        while levels[-1].level > first:
            levels.append(levels[-1].coarser())
        yield from reversed(levels)
    for level in range(max(first, _BASE + 1), _FINEST + 1):
        yield _Cells.of(groups, level)
