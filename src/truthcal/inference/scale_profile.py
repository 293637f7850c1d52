"""Miscalibration by scale: wide errors of one sign, or narrow ones that change sign along the predictions."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import read_only
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_sums import GroupSums
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_band
from truthcal.core.points import Points, excess
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import refuse_fractional_buckets, summarize
from truthcal.inference.calibration_test import ENOUGH_INFORMATION
from truthcal.inference.laws.quadratic_form import Forms
from truthcal.inference.laws.sign_flips import SignFlips
from truthcal.inference.laws.skewness import correct_for_skewness, error_skewness
from truthcal.inference.laws.tent_kernel import TentKernel, null_moments
from truthcal.measures.atb import atb_of
from truthcal.measures.ubse import ShiftedGrid
from truthcal.results.curves import ScaleProfile

_Array = NDArray[np.float64]

WIDTHS = tuple(0.5**k for k in range(6))
# Outcomes are redrawn at this many points at most: 60 and more in the narrowest tent, if they are spread out.
_MOST_POINTS, _AT_A_TIME = 2000, 100


class _Null(NamedTuple):
    """The range of a value under calibration at one width, and its p-value."""

    low: float
    high: float
    pvalue: float


@named_columns
def scale_profile(
    y_true: object,
    y_proba: object = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = 0,
    sample_weight: object = None,
    pos_label: object = None,
    groups: object = None,
) -> ScaleProfile:
    """On which scale are predictions off? Compares the error in wide and narrow bins with chance.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label, groups
        As for `calibration_test`.
    confidence_level : float, default 0.95
        Probability that calibrated predictions are in the range of a scale.
    n_resamples : int, default 999
        Number of redraws, if they are needed, at most 20,000.
    rng : int, numpy Generator or None, default 0
        Source of randomness; None draws a new seed.

    Returns
    -------
    ScaleProfile
        ``width``, ``value``, ``null_mean``, ``null_sd``, ``low``, ``high``, ``excess``, ``pvalue`` and ``common``, an
        entry for each of the widths 1, 1/2 ... 1/32. Prints in words; ``.table()`` has the columns.

    Notes
    -----
    ``.error`` is the constant error that would cause the same excess over chance at that width. If all predictions are
    off in the same direction, it is about the same at every width. If errors change sign, it is small in wide bins,
    where they cancel, and large in narrow ones. The value at each width is `shifted_grid_ubse`; width 1 is ATB, and
    `multiscale_atb` is a weighted mean of the six.

    Each p-value is valid only for its width: the smallest of six p-values is not a valid p-value. For a single test use
    `calibration_test`, whose default combines all six scales.

    Null mean and sd are exact for rows, and for a sketch up to the width of its buckets. If sum p(1 - p) is below 100,
    ranges and p-values come from redrawn outcomes; above 2000 distinct predictions, neighbours are merged. Otherwise
    they come from the asymptotic distribution. More than 2^15 rows are not sorted but reduced to a sketch of 16,384
    buckets, unless these are too coarse.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> y = np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    >>> profile = tc.scale_profile(y, np.repeat([0.25, 0.75], 40), rng=0)
    >>> profile.value.tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> print(profile.null_mean[0])
    0.00234375
    """
    summary = summarize(y_true, y_proba, sample_weight, pos_label, binary=True, sketch_many=True, groups=groups)
    return scale_profile_of(summary, confidence_level, n_resamples, rng)


@one_blas_thread()
def scale_profile_of(
    summary: Sample | Sketch, confidence_level: float = 0.95, n_resamples: int = 999, rng: Any = 0
) -> ScaleProfile:
    """The scale profile of sorted rows or of a sketch."""
    level, n_resamples, generator = check_band(confidence_level, n_resamples, rng)
    kernels = [TentKernel(np.array([width]), np.ones(1)) for width in WIDTHS]
    points = summary.points()
    refuse_fractional_buckets(points)
    values = _value_by_scale(summary, points, kernels)
    sums = summary.group_sums
    laws = [] if sums is None else [SignFlips.of(sums, kernel) for kernel in kernels]
    many = sums is not None or points.effective_information >= ENOUGH_INFORMATION
    if laws:
        null = [_null_from_groups(law, level) for law in laws]
    elif many:
        null = _null_from_limit(values, points, kernels, level)
    else:
        null = _null_from_redraws(points, kernels, level, n_resamples, generator)
    shares = np.ascontiguousarray(points.weight / points.total)[None, :]
    columns = (
        WIDTHS,
        values,
        [law.mean for law in laws] or [points.noise_floor] * len(WIDTHS),
        [law.sd for law in laws] or [null_moments(kernel, points).sd for kernel in kernels],
        *zip(*null, strict=True),
        _excess_by_scale(values, points, sums, laws),
        [float(kernel.sums(points.p, shares)[0]) for kernel in kernels],
    )
    width, value, mean, sd, low, high, pvalue, excesses, common = (read_only(np.array(column)) for column in columns)
    return ScaleProfile(
        width, value, mean, sd, low, high, excesses, pvalue, common,
        confidence_level=level,
        method="asymptotic" if many else "redrawn",
        n_resamples=0 if many else n_resamples,
        n=points.rows,
        sketched=points.sketched,
        neighbour_z=summary.neighbour_z,
    )  # fmt: skip


def _excess_by_scale(values: list[float], points: Points, sums: GroupSums | None, laws: list[SignFlips]) -> list[float]:
    """Excess over chance at each scale; if rows belong together, `laws` have the noise of groups."""
    if sums is None:
        return [excess(value, points.self_pairs, points.one_row) for value in values]
    own = [law.mean / sums.fewer_events_factor for law in laws]
    return [excess(value, square, sums.one_group) for value, square in zip(values, own, strict=True)]


def _null_from_groups(law: SignFlips, level: float) -> _Null:
    """Null range and p-value at one scale if rows belong together, from random signs of the groups."""
    tail = (1.0 - level) / 2.0
    return _Null(law.upper_quantile(1.0 - tail), law.upper_quantile(tail), law.tails().greater)


def _value_by_scale(summary: Sample | Sketch, points: Points, kernels: list[TentKernel]) -> list[float]:
    """The measure at each width of the scale profile, from the rows themselves if they are available."""
    if summary.sketched:
        return [summary.atb().value, *(kernel.measure(points) for kernel in kernels[1:])]
    return [atb_of(summary), *(ShiftedGrid(width).ubse_of(summary) for width in WIDTHS[1:])]


def _null_from_limit(values: list[float], points: Points, kernels: list[TentKernel], level: float) -> list[_Null]:
    """Null range and p-value at each scale, from the distribution for many rows."""
    cells, skewness, tail = points.merged(), error_skewness(points), (1.0 - level) / 2.0
    scales = [kernel.null_scales(cells) for kernel in kernels]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in scales])])
    forms = Forms.of(np.concatenate(scales), np.zeros(starts[-1]), starts)
    columns = forms.upper_quantiles(1.0 - tail), forms.upper_quantiles(tail), forms.upper_tails(np.array(values))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [_Null(low, high, correct_for_skewness(upper, skewness)) for low, high, upper in rows]


def _null_from_redraws(
    points: Points, kernels: list[TentKernel], level: float, n_resamples: int, rng: np.random.Generator
) -> list[_Null]:
    """Null range and p-value at each scale, from redrawn outcomes, the same for all widths.

    Observed values are measured by the same arithmetic.
    """
    points = points.thinned(_MOST_POINTS)
    x, total = points.p, points.total**2
    observed = [float(kernel.sums(x, (points.wp - points.wy)[None, :])[0]) / total for kernel in kernels]
    drawn = np.empty((len(kernels), n_resamples))
    for first in range(0, n_resamples, _AT_A_TIME):
        batch = slice(first, min(first + _AT_A_TIME, n_resamples))
        bias = points.wp - points.redraw_positives(batch.stop - first, rng)
        for kernel, row in zip(kernels, drawn, strict=True):
            row[batch] = kernel.sums(x, bias) / total
    return [_null_from_ranks(value, row, level) for value, row in zip(observed, drawn, strict=True)]


def _null_from_ranks(value: float, drawn: _Array, level: float) -> _Null:
    """Null range and exact p-value at one scale, by rank among redrawn values; ties up to rounding count as larger."""
    many = len(drawn)
    rank = math.floor((many + 1) * (1.0 - level) / 2.0 + 1e-9)
    ranked = np.sort(drawn)
    slack = 1e-9 * value + 1e-10 * float(np.mean(drawn))
    above = int(np.count_nonzero(drawn >= value - slack))
    return _Null(float(ranked[rank - 1]), float(ranked[many - rank]), (1 + above) / (1 + many))
