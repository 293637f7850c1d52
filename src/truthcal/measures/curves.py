"""What a reliability diagram shows: observed frequencies beside predictions, and where calibration would put them."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import read_only
from truthcal.core.params import (
    check_choice,
    check_level,
    check_rng,
    check_whole,
    refuse_few_for_band,
)
from truthcal.core.points import Points
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize, summarize_predictions
from truthcal.kernels import chains, counts
from truthcal.measures.binned import DEFAULT_BINS, quantile_bins, uniform_bins
from truthcal.results.curves import ConsistencyBand, ReliabilityCurve

_Array = NDArray[np.float64]
ReliabilityStrategy = Literal["isotonic", "quantile", "uniform"]

STRATEGIES = ("isotonic", "quantile", "uniform")
# No screen shows more entries, and no file should hold more.
MOST_ENTRIES = 1000
# All redrawn curves are kept until their quantiles are known: so many at 1000 points are 160 MB.
MOST_RESAMPLES, AT_A_TIME = 20_000, 1000
# Bins of equal width in a plot of the density of predictions. If all predictions are below RARE, these bins are too
# coarse.
DENSITY_BINS, RARE = 50, 0.5
# Up to so many rows of equal weight in a bin, the law of their count is computed in full, in a millisecond.
_FEW = 500
# Means of pools that differ by less are equal but for rounding.
_SAME = 1e-12
# What rounding may do to a mean outcome.
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)
# Outcomes that leave nothing to chance, as a binomial with a spread below 1e-7.
_MOST_TRIALS = 2.0**50


def reliability_curve(
    y_true: object,
    y_proba: object = None,
    *,
    strategy: ReliabilityStrategy = "isotonic",
    n_bins: int = DEFAULT_BINS,
    confidence_level: float = 0.95,
    sample_weight: object = None,
    pos_label: object = None,
) -> ReliabilityCurve:
    """What happened where p was predicted: the points of a reliability diagram, and how far off chance could put them.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Sketch
        Outcomes, as for `atb`. A `Sketch` takes the place of all rows, `y_proba` and `sample_weight` included.
    y_proba, sample_weight, pos_label
        As for `atb`.
    strategy : {"isotonic", "quantile", "uniform"}, default "isotonic"
        "isotonic": pools of neighbours such that frequencies rise with predictions (CORP); there is nothing to choose.
        "quantile": bins of about equal weight. "uniform": bins of equal width.
    n_bins : int, default 15
        Number of bins, up to 1000. Isotonic regression has no use for it.
    confidence_level : float, default 0.95
        How often the frequency of a bin would lie in its band if predictions were calibrated.

    Returns
    -------
    ReliabilityCurve
        ``mean_proba``, ``mean_true``, ``count``, ``weight``, ``left``, ``right``, and the band ``low``, ``high``; one
        entry for each pool or bin that holds rows, at most 1000. Prints in words; ``.table()`` has the columns.

    Notes
    -----
    Equal predictions always stay together. Uniform bin k holds ``k / n_bins <= p < (k + 1) / n_bins``, and p = 1 is in
    the last; quantile bins are those of `binned_ece`. Empty bins have no entry: ``left`` and ``right`` show where they
    are, and ``empty`` how many. O(n log n): ten million rows take seconds and a gigabyte. From a sketch, milliseconds.

    Isotonic pools are those of pool-adjacent-violators. For n rows there are about n^(1/3) as a rule; where there are
    more than 1000, neighbours are put together, most of all in the middle of the predictions.

    From a sketch, pools and bins are made of whole buckets. A bucket that lies across an edge of a uniform bin goes to
    the side of its mean prediction, and ``straddling`` is the weight of such buckets: 0 if `n_bins` is a power of two
    up to `n_buckets`, or if no bucket holds predictions on both sides. Otherwise all is as for the rows.

    The band of a bin is where its frequency would be under calibration (Broecker and Smith 2007), which is the mean of
    independent 0/1 outcomes with known chances. Up to 500 rows of equal weight the law of that mean is computed in full
    (from a sketch, with the mean prediction of its bucket for each row), and since frequencies come in steps, the
    chance to be inside is the level or more. Beyond, it is a binomial's with the same mean and variance: at most half a
    percentage point short of that, unless hardly a row is in doubt and chances are far apart (4 points were seen). With
    unequal weights there are no steps, and the band is wider by about one row. For few such rows it holds on average
    only: random bins of 2 to 8 rows were outside their bands of 95% in 1 to 2% of cases, single ones in up to 16%.

    A band need not hold ``mean_proba``: a single row of chance 0.01 has frequency 0 or 1, and [0, 0] is its band. A row
    of any weight is one observation, and its outcome 0 or 1: fractions vary less.

    Pools are made by looking at the outcomes, so no such band would be honest of them: see `consistency_band`.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers; Broecker, Smith
    (2007), Increasing the reliability of reliability diagrams.

    Examples
    --------
    >>> import truthcal as tc
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9]
    >>> curve = tc.reliability_curve(y, p)
    >>> curve
    Mean gap between predictions and frequencies 0.1333 in 3 isotonic pools (6 rows), largest part from 0.7 to 0.9 \
(too low by 0.2).
    >>> curve.mean_true.tolist(), curve.count.tolist()
    ([0.0, 0.5, 1.0], [2, 2, 2])
    >>> tc.reliability_curve(tc.Sketch().update(y, p), strategy="uniform", n_bins=2).high.tolist()
    [0.6666666666666666, 1.0]
    """
    summary = summarize(y_true, y_proba, sample_weight, pos_label)
    return reliability_curve_of(summary, strategy, n_bins, confidence_level)


def reliability_curve_of(
    summary: Sample | Sketch, strategy: str = "isotonic", n_bins: int = DEFAULT_BINS, confidence_level: float = 0.95
) -> ReliabilityCurve:
    """The curve of sorted rows or of a sketch."""
    check_choice(strategy, "strategy", STRATEGIES)
    n_bins, level = check_whole(n_bins, "n_bins", 1, MOST_ENTRIES), check_level(confidence_level, "confidence_level")
    points, sketched = summary.points(), summary.sketched
    if strategy == "isotonic":
        pools = points.runs(_isotonic(points))
        shown = pools.thinned(MOST_ENTRIES)
        return _curve(shown, (shown.low, shown.high), None, strategy, level, pools=len(pools), sketched=sketched)
    if strategy == "quantile":
        starts = quantile_bins(points.weight, n_bins)
        bins, straddling = points.runs(starts), 0.0
        edges = bins.low, bins.high
    else:
        starts = uniform_bins(points.p, n_bins)
        bins, number = points.runs(starts), _bin_of(points.p[starts], n_bins)
        edges = number / n_bins, (number + 1) / n_bins
        across = _bin_of(points.low, n_bins) != _bin_of(points.high, n_bins)
        straddling = float(np.sum(points.weight[across]) / points.total)
    band, empty = _band(points, starts, bins, level), n_bins - len(starts)
    return _curve(bins, edges, band, strategy, level, empty=empty, straddling=straddling, sketched=sketched)


def density_of(summary: Sample | Sketch) -> ReliabilityCurve:
    """Bin predictions for a plot of their density: by width, or into the finest bins by weight if all are small."""
    density = reliability_curve_of(summary, "uniform", DENSITY_BINS)
    return reliability_curve_of(summary, "quantile", MOST_ENTRIES) if density.left[-1] < RARE else density


def _curve(
    points: Points,
    edges: tuple[_Array, _Array],
    band: tuple[_Array, _Array] | None,
    strategy: str,
    level: float,
    **rest: Any,
) -> ReliabilityCurve:
    low, high = (None, None) if band is None else map(read_only, band)
    return ReliabilityCurve(
        left=read_only(edges[0]),
        right=read_only(edges[1]),
        mean_proba=points.p,
        mean_true=read_only(_frequencies(points)),
        count=points.n,
        weight=read_only(points.weight / points.total),
        low=low,
        high=high,
        strategy=strategy,
        confidence_level=level,
        **rest,
    )


def _frequencies(points: Points) -> _Array:
    """Mean outcomes. Where rows have one weight and outcomes are 0 or 1 that is a count over n, to the last bit: else
    rounding would put a frequency at the end of its band beside it.
    """
    mean = np.clip(points.wy / points.weight, 0.0, 1.0)
    count = np.rint(mean * points.n)
    whole = _equally_weighted(points) & (np.abs(mean * points.n - count) <= _ROUNDING * points.n)
    return np.where(whole, count / points.n, mean)


# --- which points go together -----------------------------------------------------------------------------------------


def _isotonic(points: Points) -> NDArray[np.intp]:
    """Where the pools of isotonic regression start."""
    fit = np.empty(len(points))
    chains.isotonic(points.weight, points.wy, fit)
    return np.flatnonzero(np.diff(fit, prepend=-1.0) > _SAME)


def _bin_of(x: _Array, n_bins: int) -> NDArray[np.intp]:
    """The bin of equal width that holds x. By the edges, as in `uniform_bins`, since x * n_bins would round."""
    return np.searchsorted(np.arange(n_bins) / n_bins, x, side="right") - 1


# --- what calibration would show --------------------------------------------------------------------------------------


def _band(points: Points, starts: NDArray[np.intp], bins: Points, level: float) -> tuple[_Array, _Array]:
    """Between which frequencies calibrated outcomes of these bins would lie, with probability `level` or more."""
    low, high = _band_of_many(bins, level)
    few = np.flatnonzero((bins.n <= _FEW) & _equally_weighted(bins))
    ends, p = np.append(starts[1:], len(points)), points.p
    for k in few:
        own = slice(starts[k], ends[k])
        low[k], high[k] = _band_of_few(np.repeat(p[own], points.n[own]), level)
    return low, high


def _equally_weighted(bins: Points) -> NDArray[np.bool_]:
    """Where all rows of a bin have one weight, up to rounding: the frequency is then a whole count over n."""
    equal: NDArray[np.bool_] = bins.weight**2 >= (1.0 - 1e-9) * bins.n * bins.ww
    return equal


def _band_of_few(p: _Array, level: float) -> tuple[float, float]:
    """The same for rows of equal weight with chances p: the law of their sum, a row at a time."""
    law = np.zeros(len(p) + 1)
    counts.law_of_sum(p, law)
    upto, tail = np.cumsum(law), (1.0 - level) / 2.0
    low, high = int(np.searchsorted(upto, tail, side="right")), int(np.searchsorted(upto, 1.0 - tail))
    return low / len(p), min(high, len(p)) / len(p)


def _band_of_many(bins: Points, level: float) -> tuple[_Array, _Array]:
    """The same from the mean and variance of each bin's frequency, by a binomial that has both."""
    p, variance, n = bins.p, bins.wwv / bins.weight**2, bins.n.astype(np.float64)
    upper = p > 0.5  # count zeros there, so that what is rare is counted
    rare = np.where(upper, 1.0 - p, p)
    certain = (variance <= 0.0) | (rare <= 0.0)
    variance, rare = np.where(certain, 0.25, variance), np.where(certain, 0.5, rare)
    # Equal weights: a binomial in steps of one count. Other weights leave no steps: then in steps of its own, which
    # are about one row of mean weight, and outwards.
    steps = _equally_weighted(bins)
    chance = np.where(steps, np.clip(1.0 - n * variance / rare, rare, 1.0 - 1e-16), rare)
    trials = np.where(steps, n * rare / chance, np.maximum(rare * (1.0 - rare) / variance, 1.0))
    low, high = (_binomial_quantile(trials, chance, tail) for tail in ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
    unit = np.where(steps, n, trials)
    low = np.clip(np.where(steps, np.ceil(low), low), 0.0, unit)
    high = np.clip(np.where(steps, np.ceil(high), high + 1.0), 0.0, unit)
    low, high = np.where(upper, unit - high, low) / unit, np.where(upper, unit - low, high) / unit
    return np.where(certain, p, low), np.where(certain, p, high)


def _binomial_quantile(trials: _Array, chance: _Array, tail: float) -> _Array:
    """Where the distribution function of a binomial reaches `tail`, with real trials and counts, by bisection.

    The incomplete beta function is the distribution function at whole counts and rises smoothly between; at -1 it is 0
    and at `trials` 1. Rounded up, this is the quantile.
    """
    from scipy.special import betainc

    low, high = np.full_like(trials, -1.0), trials.copy()
    for _ in range(80):
        middle = (low + high) / 2.0
        above = betainc(np.maximum(trials - middle, 1e-300), np.maximum(middle + 1.0, 1e-300), 1.0 - chance) >= tail
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high


def consistency_band(
    y_proba: object,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = None,
    sample_weight: object = None,
) -> ConsistencyBand:
    """Where the isotonic curve of these predictions would lie if they were calibrated: the band of a CORP diagram.

    Parameters
    ----------
    y_proba : array-like of shape (n,), or Sketch
        Predicted probabilities; outcomes are not needed. A `Sketch` takes the place of all rows.
    confidence_level : float, default 0.95
        How often the curve would be in the band, at each prediction by itself.
    n_resamples : int, default 999
        How often outcomes are redrawn, at most 20,000.
    rng : int, numpy Generator or None
        Source of randomness.
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
    different predictions, however few the rows.

    Where there are more than 1000, neighbours are one point, finest at both ends; where a point has several chances
    (there, and in the buckets of a sketch) or weights, its frequency is drawn as a binomial's with the same mean and
    variance. O(n log n) for the sort, and then up to 1000 draws and one pass over the points for each redraw: 0.2 s by
    default, whatever n.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> band = tc.consistency_band(np.repeat([0.25, 0.75], 40), rng=0)
    >>> band.q.tolist(), band.low.tolist(), band.high.tolist()
    ([0.25, 0.75], [0.125, 0.6], [0.375, 0.875])
    """
    generator = check_rng(rng)
    return consistency_band_of(summarize_predictions(y_proba, sample_weight), confidence_level, n_resamples, generator)


def consistency_band_of(
    summary: Sample | Sketch, confidence_level: float = 0.95, n_resamples: int = 999, rng: Any = None
) -> ConsistencyBand:
    """The band of sorted rows or of a sketch, whose outcomes are not looked at."""
    level, generator = check_level(confidence_level, "confidence_level"), check_rng(rng)
    n_resamples = check_whole(n_resamples, "n_resamples", 1, MOST_RESAMPLES)
    refuse_few_for_band(n_resamples, level)
    points = summary.points().thinned(MOST_ENTRIES)
    fits = np.empty((n_resamples, len(points)))
    for first in range(0, n_resamples, AT_A_TIME):
        some = fits[first : first + AT_A_TIME]
        for fit, positive in zip(some, redrawn(points, len(some), generator), strict=True):
            chains.isotonic(points.weight, positive, fit)
    rank = math.floor((n_resamples + 1) * (1.0 - level) / 2.0 + 1e-9)
    fits.partition((rank - 1, n_resamples - rank), axis=0)
    low, high = fits[rank - 1].copy(), fits[n_resamples - rank].copy()
    return ConsistencyBand(points.p, read_only(low), read_only(high), level, n_resamples, summary.n)


def redrawn(points: Points, count: int, rng: np.random.Generator) -> _Array:
    """The weight of the positives at each point, `count` times, if predictions were calibrated.

    A point's frequency is drawn as that of a binomial with a number of trials that gives its variance. Where this
    number is not whole, one of its neighbours is drawn, with chances that keep the mean of 1 / trials.
    """
    p, variance = points.p, points.wwv / points.weight**2
    with np.errstate(divide="ignore", invalid="ignore"):
        trials = np.where(variance > 0.0, p * (1.0 - p) / variance, _MOST_TRIALS).clip(1.0, _MOST_TRIALS)
    whole = np.floor(trials)
    fewer = whole * (whole + 1.0 - trials) / trials
    drawn = (whole + (rng.random((count, len(p))) >= fewer)).astype(np.int64)
    return read_only(points.weight * (rng.binomial(drawn, p) / drawn))
