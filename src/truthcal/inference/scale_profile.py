"""Miscalibration by scale: wide errors of one sign, or narrow ones that change sign along the predictions."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import read_only
from truthcal.core.params import check_level, check_rng, check_whole, refuse_few_for_band
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.inference.calibration_test import (
    ENOUGH_INFORMATION,
    MANY_ROWS,
    Rows,
    refuse_fractions_in,
    rows_of,
    summary_of,
)
from truthcal.inference.cells import Cells, tent_measure
from truthcal.inference.laws.quadratic_form import upper_quantile, upper_tail
from truthcal.inference.laws.tent_kernel import TentKernel, null_moments
from truthcal.measures.atb import atb_of
from truthcal.measures.curves import MOST_RESAMPLES, Points, redrawn, thinned
from truthcal.measures.ubse import ShiftedGrid
from truthcal.results.curves import ScaleProfile

_Array = NDArray[np.float64]

WIDTHS = tuple(0.5**k for k in range(6))
# Outcomes are redrawn at so many points at most: 60 and more in the narrowest tent, if they are spread out.
_MOST_POINTS, _AT_A_TIME = 2000, 100


class _Null(NamedTuple):
    """What a value would be by chance at one width: its range, and how often it is so large."""

    low: float
    high: float
    pvalue: float


class _Facts(NamedTuple):
    """What is known of the rows at each width; `own`: what pairs of a row with itself add; `ww`: sum of (w/W)^2.

    `common`: the share of pairs of rows in the same bin.
    """

    values: list[float]
    common: list[float]
    mean: float
    sds: list[float]
    own: float
    ww: float
    rows: Rows


def scale_profile(
    y_true: object,
    y_proba: object = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = None,
    sample_weight: object = None,
    pos_label: object = None,
) -> ScaleProfile:
    """On which scale are predictions off? The error in wide and in narrow bins, each beside what chance alone gives.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `calibration_test`, or a `Sketch` alone in place of all rows. A row of any weight is one observation.
    confidence_level : float, default 0.95
        How often calibrated predictions would be in the range of a scale.
    n_resamples : int, default 999
        How often outcomes are redrawn where that is needed, at most 20,000.
    rng : int, numpy Generator or None
        Source of randomness.

    Returns
    -------
    ScaleProfile
        ``width``, ``value``, ``null_mean``, ``null_sd``, ``low``, ``high``, ``excess``, ``pvalue`` and ``common``, an
        entry for each of the widths 1, 1/2 ... 1/32. Prints in words; ``.table()`` has the columns.

    Notes
    -----
    ``.error`` is the constant error that would show as much at that width. If predictions are all off to one side it is
    about the same at every width; if errors change sign it is small in wide bins, where they cancel, and large in
    narrow ones. The value at each width is `shifted_grid_ubse`, at width 1 ATB; `multiscale_atb` is a weighted mean of
    the six.

    Six p-values are not one: each is right for its own width, and the smallest of the six is small more often than it
    says. For a single answer use `calibration_test`, whose default looks at all six scales at once.

    Null mean and sd are exact for rows, and for a sketch up to the width of its buckets. Up to 10,000 rows, or where
    sum p(1 - p) is below 100, ranges and p-values come from redrawn outcomes; where there are more than 2000 different
    predictions neighbours are redrawn as one. Beyond, they come from the distribution for many rows. More than 2^20
    rows are not sorted: they are reduced to a sketch of 16,384 buckets.

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
    summary = summary_of(y_true, y_proba, sample_weight, pos_label)
    return scale_profile_of(summary, confidence_level, n_resamples, rng)


def scale_profile_of(
    summary: Sample | Sketch, confidence_level: float = 0.95, n_resamples: int = 999, rng: Any = None
) -> ScaleProfile:
    """The profile of sorted rows or of a sketch."""
    level, generator = check_level(confidence_level, "confidence_level"), check_rng(rng)
    n_resamples = check_whole(n_resamples, "n_resamples", 1, MOST_RESAMPLES)
    refuse_few_for_band(n_resamples, level)
    kernels = [TentKernel(np.array([width]), np.ones(1)) for width in WIDTHS]
    facts = _of_sketch(summary, kernels) if isinstance(summary, Sketch) else _of_sample(summary, kernels)
    many = facts.rows.n > MANY_ROWS and facts.rows.effective >= ENOUGH_INFORMATION
    if many:
        cells = Cells.of_sketch(summary) if isinstance(summary, Sketch) else Cells.of_sample(summary)
        null = [_limit(value, cells, kernel, level) for value, kernel in zip(facts.values, kernels, strict=True)]
    else:
        null = _redraws(summary, kernels, level, n_resamples, generator)
    excess = [(v - facts.own) / (1.0 - facts.ww) if facts.ww < 1.0 else math.nan for v in facts.values]
    columns = (
        WIDTHS,
        facts.values,
        [facts.mean] * len(WIDTHS),
        facts.sds,
        *zip(*null, strict=True),
        excess,
        facts.common,
    )
    width, value, mean, sd, low, high, pvalue, excesses, common = (read_only(np.array(column)) for column in columns)
    return ScaleProfile(
        width, value, mean, sd, low, high, excesses, pvalue, common,
        confidence_level=level,
        method="asymptotic" if many else "redrawn",
        n_resamples=0 if many else n_resamples,
        n=summary.n,
        sketched=isinstance(summary, Sketch),
    )  # fmt: skip


def _of_sample(sample: Sample, kernels: list[TentKernel]) -> _Facts:
    values = [atb_of(sample) if width == 1.0 else ShiftedGrid(width).ubse_of(sample) for width in WIDTHS]
    moments = [null_moments(kernel, sample) for kernel in kernels]
    m = sample.moments
    ww = m.ww / m.w**2 if sample.n > 1 else 1.0
    common = _common(sample.groups.r, sample.groups.w, kernels)
    return _Facts(values, common, moments[0].mean, [each.sd for each in moments], m.wwcc / m.w**2, ww, Rows.of(sample))


def _of_sketch(sketch: Sketch, kernels: list[TentKernel]) -> _Facts:
    """Rows of a bucket count as if all were at its mean prediction, with its mean of w^2."""
    floor, table, total = sketch.noise_floor(), sketch.table(), sketch.weight  # refuses an empty sketch
    refuse_fractions_in(sketch)
    x, ww, wwv = table["mean_proba"], table["ww"] / total**2, table["wwv"] / total**2
    own = float(np.sum(wwv * ww / table["n"] * (1.0 - 6.0 * x * (1.0 - x))))
    values = [sketch.atb().value, *(tent_measure(sketch, kernel) for kernel in kernels[1:])]
    sds = [math.sqrt(max(2.0 * kernel.squares(x, wwv) + own, 0.0)) for kernel in kernels]
    one_row = float(np.sum(ww)) if sketch.n > 1 else 1.0
    common = _common(x, table["weight"], kernels)
    return _Facts(values, common, floor, sds, float(np.sum(table["wwcc"])) / total**2, one_row, rows_of(sketch))


def _common(x: _Array, w: _Array, kernels: list[TentKernel]) -> list[float]:
    """The share of pairs of rows, by weight, that are in the same bin."""
    masses = np.ascontiguousarray(w / np.sum(w))[None, :]
    return [float(kernel.sums(np.ascontiguousarray(x), masses)[0]) for kernel in kernels]


def _limit(value: float, cells: Cells, kernel: TentKernel, level: float) -> _Null:
    """From the distribution for many rows."""
    scales, tail = cells.null_scales(kernel), (1.0 - level) / 2.0
    return _Null(upper_quantile(1.0 - tail, scales), upper_quantile(tail, scales), upper_tail(value, scales))


def _redraws(
    summary: Sample | Sketch, kernels: list[TentKernel], level: float, n_resamples: int, rng: np.random.Generator
) -> list[_Null]:
    """From redrawn outcomes, the same for all widths. Observed values are measured by the same arithmetic."""
    points = Points.of(summary)
    points = points.merged(thinned(points.w, _MOST_POINTS))
    x, total = points.mean_proba, float(np.sum(points.w)) ** 2
    observed = [float(kernel.sums(x, (points.wp - points.wy)[None, :])[0]) / total for kernel in kernels]
    drawn = np.empty((len(kernels), n_resamples))
    for first in range(0, n_resamples, _AT_A_TIME):
        some = slice(first, min(first + _AT_A_TIME, n_resamples))
        bias = points.wp - redrawn(points, some.stop - first, rng)
        for kernel, row in zip(kernels, drawn, strict=True):
            row[some] = kernel.sums(x, bias) / total
    return [_ranked(value, row, level) for value, row in zip(observed, drawn, strict=True)]


def _ranked(value: float, drawn: _Array, level: float) -> _Null:
    """Exactly valid for redraws that have the law of the observed value; up to rounding, equal counts as so large."""
    many = len(drawn)
    rank = math.floor((many + 1) * (1.0 - level) / 2.0 + 1e-9)
    ranked = np.sort(drawn)
    slack = 1e-9 * value + 1e-10 * float(np.mean(drawn))
    above = int(np.count_nonzero(drawn >= value - slack))
    return _Null(float(ranked[rank - 1]), float(ranked[many - rank]), (1 + above) / (1 + many))
