"""Reliability curves: observed frequencies by prediction, and their bands under calibration."""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truthcal.core.bins import BinSums, predictions_in, quantile_edges, uniform_edges
from truthcal.core.checks import Checked, check_rows, read_only
from truthcal.core.frame_columns import named_columns
from truthcal.core.params import check_band, check_choice, check_flag, check_level, check_rng, check_whole
from truthcal.core.points import Points
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import given_sketch, refuse_groups, summarize, summarize_predictions
from truthcal.kernels.isotonic import isotonic
from truthcal.kernels.poisson_binomial import poisson_binomial
from truthcal.measures.binned import DEFAULT_BINS, quantile_bins, uniform_bins
from truthcal.measures.grouped_redraw import redraw_groups
from truthcal.results.curves import ConsistencyBand, ReliabilityCurve

_Array = NDArray[np.float64]
_Columns = tuple[_Array, _Array, _Array, _Array, NDArray[np.int64], _Array]
ReliabilityStrategy = Literal["isotonic", "quantile", "uniform"]

STRATEGIES = ("isotonic", "quantile", "uniform")
# Enough for any screen or file.
MOST_ENTRIES = 1000
# Curves redrawn at a time.
AT_A_TIME = 1000
# Up to this many rows of equal weight in a bin, the distribution of their count is computed exactly, in 1 ms.
_FEW = 500
# Means of pools that differ by less are equal but for rounding.
_SAME = 1e-12
# The arcsine of 1.
_RIGHT = math.pi / 2.0
# Rounding error of a mean outcome.
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)


@named_columns
def reliability_curve(
    y_true: object,
    y_proba: object = None,
    *,
    strategy: ReliabilityStrategy = "isotonic",
    n_bins: int = DEFAULT_BINS,
    confidence_level: float = 0.95,
    simultaneous: bool = False,
    sample_weight: object = None,
    pos_label: object = None,
) -> ReliabilityCurve:
    """Observed frequency by prediction, the points of a reliability diagram, with the band of calibrated predictions.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`, or a `Sketch` alone in place of all rows.
    strategy : {"isotonic", "quantile", "uniform"}, default "isotonic"
        "isotonic": pools of neighbours such that frequencies rise with predictions (CORP), without a parameter.
        "quantile": bins of about equal weight. "uniform": bins of equal width.
    n_bins : int, default 15
        Number of bins, up to 1000. Ignored for "isotonic".
    confidence_level : float, default 0.95
        Probability that the frequency of a bin lies in its band if predictions are calibrated.
    simultaneous : bool, default False
        Whether the frequencies of all bins lie in their bands at once with that probability, instead of each by itself.
        Ignored for "isotonic".

    Returns
    -------
    ReliabilityCurve
        ``mean_proba``, ``mean_true``, ``count``, ``weight``, ``left``, ``right``, and the band ``low``, ``high``; one
        entry for each pool or bin that holds rows, at most 1000. Prints in words; ``.table()`` has the columns.

    Notes
    -----
    Equal predictions always stay together. Uniform bin k holds ``k / n_bins <= p < (k + 1) / n_bins``, and p = 1 is in
    the last; quantile bins are those of `binned_ece`. Empty bins have no entry. Isotonic pools are those of
    pool-adjacent-violators; if there are more than 1000, neighbours are merged, mostly in the middle of the
    predictions. O(n log n) for them; O(n) for bins, where only rows near the edges of quantile bins are sorted. From a
    sketch, milliseconds.

    From a sketch, pools and bins consist of whole buckets, and pools of a sketch with groups of up to 128 cells. A
    bucket that straddles the edge of a uniform bin is counted on the side of its mean prediction, and ``straddling`` is
    the weight of such buckets: 0 if `n_bins` is a power of two up to ``n_buckets / 2``.

    The band of a bin is the central range of its frequency under calibration. Up to 500 rows of equal weight it is
    exact (from a sketch, each row has the mean prediction of its bucket), and conservative since frequencies are
    discrete. Beyond, it is that of a binomial with the same mean and variance: at most half a percentage point short,
    unless nearly all outcomes are certain (4 points were seen). With unequal weights the band is wider by about one
    row; for few such rows it holds on average only (random 95% bands of 2 to 8 rows missed in 1 to 2% of cases, single
    ones in up to 16%). A band may exclude ``mean_proba``: the band of a single row with p = 0.01 is [0, 0]. A row
    of any weight is one 0/1 observation. Rows are assumed to be independent: there is no `groups`, and `assess` has the
    intervals of rows that belong together. Frequencies of different bins are independent: for bands of m bins at once,
    each one has the level ``confidence_level ** (1 / m)``. Isotonic pools depend on the outcomes: for them see
    `consistency_band`.
    Reference: Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers;
    Broecker, Smith (2007), Increasing the reliability of reliability diagrams.

    Examples
    --------
    >>> import truthcal as tc
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9]
    >>> curve = tc.reliability_curve(y, p)
    >>> curve
    Mean gap of 0.1333 between predictions and frequencies in 3 isotonic pools (6 rows), largest part from 0.7 to 0.9 \
(too low by 0.2).
    >>> curve.mean_true.tolist(), curve.count.tolist()
    ([0.0, 0.5, 1.0], [2, 2, 2])
    >>> tc.reliability_curve(tc.Sketch().update(y, p), strategy="uniform", n_bins=2).high.tolist()
    [0.6666666666666666, 1.0]
    """
    sketch = given_sketch(y_true, y_proba, sample_weight, pos_label)
    if strategy != "isotonic" and sketch is not None:
        refuse_groups(sketch, "intervals of bins", 'Use strategy="isotonic", and assess for intervals.')
    if strategy != "isotonic" and sketch is None:
        n_bins, level = _check_curve(strategy, n_bins, confidence_level, simultaneous)
        rows = check_rows(y_true, y_proba, sample_weight, pos_label)
        return _binned_curve_of_rows(rows, strategy, n_bins, level, simultaneous)
    summary = summarize(y_true, y_proba, sample_weight, pos_label)
    return reliability_curve_of(summary, strategy, n_bins, confidence_level, simultaneous=simultaneous)


def reliability_curve_of(
    summary: Sample | Sketch,
    strategy: str = "isotonic",
    n_bins: int = DEFAULT_BINS,
    confidence_level: float = 0.95,
    *,
    simultaneous: bool = False,
) -> ReliabilityCurve:
    """Reliability curve of sorted rows or of a sketch."""
    n_bins, level = _check_curve(strategy, n_bins, confidence_level, simultaneous)
    points = summary.points()
    if strategy == "isotonic":
        if summary.group_sums is not None:
            points = summary.group_sums.cells  # those of the band
        pools = points.runs(_pool_starts(points))
        columns = _curve_columns(pools.thinned(MOST_ENTRIES), None)
        return ReliabilityCurve(*columns, None, None, strategy, level, 0, len(pools), 0.0, summary.sketched)
    starts = uniform_bins(points.p, n_bins) if strategy == "uniform" else quantile_bins(points.weight, n_bins)
    ends = np.append(starts[1:], len(points))

    def rows_of(k: int) -> _Array:
        bin_points = slice(starts[k], ends[k])
        return np.repeat(points.p[bin_points], points.n[bin_points])

    bins, straddling, uniform = BinSums.of_runs(points, starts), 0.0, n_bins if strategy == "uniform" else None
    if uniform:
        across = _bin_of(points.low, n_bins) != _bin_of(points.high, n_bins)
        straddling = float(np.sum(points.weight[across]) / points.total)
    columns, band = _curve_columns(bins, uniform), _bin_band(bins, rows_of, level, simultaneous)
    empty, sketched = n_bins - len(starts), summary.sketched
    return ReliabilityCurve(*columns, *band, strategy, level, empty, 0, straddling, sketched, simultaneous)


def _binned_curve_of_rows(
    rows: Checked, strategy: str, n_bins: int, level: float, simultaneous: bool
) -> ReliabilityCurve:
    """Reliability curve of bins of checked rows, in any order: the band needs only sums, but in bins of few rows."""
    uniform = n_bins if strategy == "uniform" else None
    edges = uniform_edges(n_bins) if uniform else quantile_edges(rows, n_bins)
    bins = BinSums.of_rows(rows, edges)
    few = np.zeros(len(edges), np.bool_)
    few[np.searchsorted(edges, bins.low, side="right") - 1] = bins.n <= _FEW
    p = predictions_in(rows, edges, few) if few.any() else np.empty(0)

    def rows_of(k: int) -> _Array:
        return p[np.searchsorted(p, bins.low[k]) : np.searchsorted(p, bins.high[k], side="right")]

    columns, band = _curve_columns(bins, uniform), _bin_band(bins, rows_of, level, simultaneous)
    return ReliabilityCurve(*columns, *band, strategy, level, n_bins - len(bins.n), simultaneous=simultaneous)


def _check_curve(strategy: str, n_bins: int, confidence_level: float, simultaneous: bool) -> tuple[int, float]:
    check_choice(strategy, "strategy", STRATEGIES)
    check_flag(simultaneous, "simultaneous")
    return check_whole(n_bins, "n_bins", 1, MOST_ENTRIES), check_level(confidence_level, "confidence_level")


def _curve_columns(bins: Points | BinSums, uniform: int | None) -> _Columns:
    """Columns of a reliability curve without its band. `uniform`: the number of bins, if they have equal widths."""
    left, right = bins.low, bins.high
    if uniform:
        number = _bin_of(bins.p, uniform)
        left, right = number / uniform, (number + 1) / uniform
    share = bins.weight / np.sum(bins.weight)
    mean_true = _observed_frequencies(bins)
    return read_only(left), read_only(right), bins.p, read_only(mean_true), bins.n, read_only(share)


def density_of(summary: Sample | Sketch) -> ReliabilityCurve:
    """Merge neighbouring predictions for a plot of their density: into few points, finest at both ends."""
    points = summary.points().thinned(MOST_ENTRIES)
    left, right, mean_true = read_only(points.low), read_only(points.high), read_only(points.wy / points.weight)
    columns = left, right, points.p, mean_true, points.n, read_only(points.weight / points.total), None, None
    return ReliabilityCurve(*columns, "quantile", 0.95, sketched=summary.sketched)


def _observed_frequencies(points: Points | BinSums) -> _Array:
    """Mean outcomes of a reliability curve; for 0/1 outcomes of equal weight exactly a count over n, like its band."""
    mean = np.clip(points.wy / points.weight, 0.0, 1.0)
    count = np.rint(mean * points.n)
    whole = _equally_weighted(points) & (np.abs(mean * points.n - count) <= _ROUNDING * points.n)
    return np.where(whole, count / points.n, mean)


def _pool_starts(points: Points) -> NDArray[np.intp]:
    """Start indices of the bins of the isotonic reliability curve: pools of equal fit."""
    fit = np.empty(len(points))
    isotonic(points.weight, points.wy, fit)
    return np.flatnonzero(np.diff(fit, prepend=-1.0) > _SAME)


def _bin_of(x: _Array, n_bins: int) -> NDArray[np.intp]:
    """Reliability bin of equal width that holds x, by the edges of `uniform_bins`, since x * n_bins would round."""
    return np.searchsorted(np.arange(n_bins) / n_bins, x, side="right") - 1


# --- bands under calibration ------------------------------------------------------------------------------------------


def _bin_band(
    bins: BinSums, rows_of: Callable[[int], _Array], level: float, simultaneous: bool
) -> tuple[_Array, _Array]:
    """Band of a reliability curve: holds each bin's frequency with probability `level` or more under calibration.

    If `simultaneous`, it holds those of all bins at once. `rows_of` returns the predictions of the rows of a bin; it is
    called for bins of few rows.
    """
    if simultaneous:
        level **= 1.0 / len(bins.n)
    low, high = _band_of_many(bins, level)
    for k in np.flatnonzero((bins.n <= _FEW) & _equally_weighted(bins)):
        low[k], high[k] = _band_of_few(rows_of(int(k)), level)
    return read_only(low), read_only(high)


def _equally_weighted(bins: Points | BinSums) -> NDArray[np.bool_]:
    """Mask of the reliability bins whose rows have one weight, up to rounding: the frequency is a count over n."""
    equal: NDArray[np.bool_] = bins.weight**2 >= (1.0 - 1e-9) * bins.n * bins.ww
    return equal


def _band_of_few(p: _Array, level: float) -> tuple[float, float]:
    """Reliability band of rows of equal weight with probabilities p, from the exact distribution of their sum."""
    law = np.zeros(len(p) + 1)
    poisson_binomial(p, law)
    upto, tail = np.cumsum(law), (1.0 - level) / 2.0
    low, high = int(np.searchsorted(upto, tail, side="right")), int(np.searchsorted(upto, 1.0 - tail))
    return low / len(p), min(high, len(p)) / len(p)


def _band_of_many(bins: BinSums, level: float) -> tuple[_Array, _Array]:
    """Reliability bands from binomials with the mean and variance of each bin's frequency."""
    p, variance, n = bins.p, bins.wwv / bins.weight**2, bins.n.astype(np.float64)
    upper = p > 0.5  # count the zeros there: the rarer outcome
    rare = np.where(upper, 1.0 - p, p)
    certain = (variance <= 0.0) | (rare <= 0.0)
    variance, rare = np.where(certain, 0.25, variance), np.where(certain, 0.5, rare)
    # Equal weights: a binomial in steps of one count. Other weights: in steps of about one row of mean weight, rounded
    # outwards.
    steps = _equally_weighted(bins)
    chance = np.where(steps, np.clip(1.0 - n * variance / rare, rare, 1.0 - 1e-16), rare)
    trials = np.where(steps, n * rare / chance, np.maximum(rare * (1.0 - rare) / variance, 1.0))
    low, high = _binomial_quantiles(trials, chance, np.array([[1.0 - level], [1.0 + level]]) / 2.0, steps)
    unit = np.where(steps, n, trials)
    low, high = np.clip(low, 0.0, unit), np.clip(np.where(steps, high, high + 1.0), 0.0, unit)
    low, high = np.where(upper, unit - high, low) / unit, np.where(upper, unit - low, high) / unit
    return np.where(certain, p, low), np.where(certain, p, high)


def _binomial_quantiles(trials: _Array, chance: _Array, tails: _Array, whole: NDArray[np.bool_]) -> _Array:
    """Ends of reliability bands: counts at which binomials reach `tails`; where not `whole`, real numbers.

    By bisection of the incomplete beta function, which interpolates the distribution function from 0 at -1 to 1 at
    `trials`; first of the whole numbers, from those near the quantile of a normal distribution with its skewness.
    """
    from scipy.special import betainc, ndtri

    def reached(count: _Array) -> NDArray[np.bool_]:
        distribution = betainc(np.maximum(trials - count, 1e-300), np.maximum(count + 1.0, 1e-300), 1.0 - chance)
        return np.asarray(distribution >= tails)

    z, most = ndtri(tails), np.ceil(trials)
    middle = trials * chance + z * np.sqrt(trials * chance * (1.0 - chance)) + (z**2 - 1.0) * (1.0 - 2.0 * chance) / 6.0
    low, high = (np.clip(np.floor(middle) + shift, -1.0, most) for shift in (-2.0, 1.0))
    low, high = np.where(reached(low), -1.0, low), np.where(reached(high), high, most)
    while np.any(high - low > 1.0):
        middle = np.floor((low + high) / 2.0)
        above = reached(middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    for _ in range(0 if whole.all() else 60):
        middle = (low + high) / 2.0
        above = reached(middle) | whole
        low, high = np.where(above, low, middle), np.where(above & ~whole, middle, high)
    return high


@named_columns
def consistency_band(
    y_proba: object,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = 0,
    simultaneous: bool = False,
    sample_weight: object = None,
) -> ConsistencyBand:
    """Range in which the isotonic curve of these predictions would lie if they were calibrated: a CORP diagram's band.

    Parameters
    ----------
    y_proba : array-like of shape (n,), or Sketch
        Predicted probabilities; outcomes are not needed. A `Sketch` takes the place of all rows.
    confidence_level : float, default 0.95
        Probability that the curve lies in the band: at each prediction separately, or everywhere if `simultaneous`.
    n_resamples : int, default 999
        Number of redrawn outcomes, at most 20,000.
    rng : int, numpy Generator or None, default 0
        Source of randomness; None draws a new seed.
    simultaneous : bool, default False
        Whether the band holds the whole curve. A curve that leaves such a band anywhere is evidence of miscalibration;
        curves of calibrated predictions leave the band of each prediction by itself somewhere most of the time.
    sample_weight : array-like of shape (n,), optional
        Weights. A row of any weight is one observation.

    Returns
    -------
    ConsistencyBand
        ``q``, ``low`` and ``high``, at most 1000 entries. Draw it around the diagonal, behind the isotonic curve of
        `reliability_curve`.

    Notes
    -----
    Outcomes are drawn from the predictions, isotonic regression is fitted to them, and `low` and `high` are the k-th
    smallest and largest fit at each `q`, k = (n_resamples + 1)(1 - confidence_level)/2: exactly valid for up to 1000
    different predictions, however few the rows. If there are more, neighbours are merged to 1000 points, finest at both
    ends. The frequency of a point with several predictions (there, and in the buckets of a sketch) or with weights is
    drawn as a binomial's with the same mean and variance; with weights, it is exactly 0 or 1 where only one outcome is
    drawn. O(n log n) for the sort, then 0.2 s by default, whatever n.

    For the simultaneous band, half of the drawn fits give `low` and `high` at each `q`. The other half gives the factor
    by which their distances from the median, on the scale of arcsin(sqrt(fit)), are enlarged: the smallest one for
    which the band holds enough whole fits. A curve of calibrated predictions leaves it anywhere with a probability of
    at most 1 - confidence_level, on average over the random draws.

    Rows are assumed to be independent: there is no `groups`, since what rows of a group have in common shows only in
    their outcomes. A report of an assessment with `groups` has the band of grouped rows.
    Reference: Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> band = tc.consistency_band(np.repeat([0.25, 0.75], 40), rng=0)
    >>> band.q.tolist(), band.low.tolist(), band.high.tolist()
    ([0.25, 0.75], [0.125, 0.6], [0.4, 0.875])
    """
    generator = check_rng(rng)
    summary, whole = summarize_predictions(y_proba, sample_weight), check_flag(simultaneous, "simultaneous")
    return consistency_band_of(summary, confidence_level, n_resamples, generator, simultaneous=whole)


def consistency_band_of(
    summary: Sample | Sketch,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = 0,
    *,
    simultaneous: bool = False,
) -> ConsistencyBand:
    """Consistency band of sorted rows or of a sketch; their outcomes are not used.

    If rows belong together, the outcomes of a group are drawn with the correlation that is estimated from the rows.
    """
    level, n_resamples, generator = check_band(confidence_level, n_resamples, rng)
    sums = summary.group_sums
    points = summary.points().thinned(MOST_ENTRIES) if sums is None else sums.cells
    fits = np.empty((n_resamples, len(points)))
    for first in range(0, n_resamples, AT_A_TIME):
        batch = fits[first : first + AT_A_TIME]
        if sums is None:
            drawn = points.redraw_positives(len(batch), generator, of_curve=True)
        else:
            drawn = redraw_groups(sums, len(batch), generator)
        drawn = np.ascontiguousarray(np.clip(drawn, 0.0, points.weight))
        for fit, positive in zip(batch, read_only(drawn), strict=True):
            isotonic(points.weight, positive, fit)
    if simultaneous:
        low, high = _whole_band(fits, level)
    else:
        rank = math.floor((n_resamples + 1) * (1.0 - level) / 2.0 + 1e-9)
        fits.partition((rank - 1, n_resamples - rank), axis=0)
        low, high = fits[rank - 1].copy(), fits[n_resamples - rank].copy()
    columns = points.p, low, high
    if sums is not None:
        # The curve is constant in a cell, and starts and ends with the smallest and the largest prediction.
        columns = np.r_[points.low[0], points.p, points.high[-1]], *(np.r_[x[0], x, x[-1]] for x in (low, high))
    q, low, high = map(read_only, columns)
    return ConsistencyBand(q, low, high, level, n_resamples, summary.n, simultaneous)


def _whole_band(fits: _Array, level: float) -> tuple[_Array, _Array]:
    """Ends of a band that holds whole isotonic fits: those at each point, with all distances from the median enlarged.

    Half of the fits give the distances, the other half the factor by which they are enlarged. Distances are those of
    arcsin(sqrt(fit)), whose spread depends little on the frequency.
    """
    np.arcsin(np.sqrt(fits, out=fits), out=fits)
    first, second = fits[: len(fits) // 2], fits[len(fits) // 2 :]
    first.sort(axis=0)
    middle, ends = first[len(first) // 2].copy(), []
    largest = np.zeros(len(second))
    second -= middle
    for sign, ranked in ((1.0, first), (-1.0, -first[::-1])):
        end = _typical_end(ranked, level) - sign * middle
        ratio = np.divide(sign * second, end, out=np.zeros_like(second), where=end > 0.0)
        np.maximum(largest, ratio.max(axis=1), out=largest)
        ends.append(end)
    rank = math.floor((len(second) + 1) * (1.0 - level) + 1e-9)
    factor = float(np.partition(largest, len(second) - rank)[len(second) - rank]) * (1.0 + _ROUNDING)
    high, low = np.clip(middle + factor * ends[0], 0.0, _RIGHT), np.clip(middle - factor * ends[1], 0.0, _RIGHT)
    # Fits rise: one that is above a limit on the left is above it on the right, too.
    return np.maximum.accumulate(np.sin(low) ** 2), np.minimum.accumulate(np.sin(high[::-1]) ** 2)[::-1]


def _typical_end(ranked: _Array, level: float) -> _Array:
    """Upper end of the isotonic fits at each point: a quantile or, if it is the median, the median of larger fits."""
    above = np.count_nonzero(ranked > ranked[len(ranked) // 2], axis=0)
    rank = np.minimum(max(math.floor((len(ranked) + 1) * (1.0 - level) / 2.0), 1), (above + 1) // 2)
    end: _Array = np.take_along_axis(ranked, len(ranked) - np.maximum(rank, 1)[None], axis=0)[0]
    return end
