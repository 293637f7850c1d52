"""Curves and bands: columns of equal length, few enough to plot."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truthcal.results.base import PageResult, Plotted, Result
from truthcal.results.dependence import RowOrderNote
from truthcal.results.text import (
    PLAIN,
    Page,
    Table,
    Unit,
    count,
    error_unit,
    interval,
    number,
    percent,
    plural,
    unit_of,
)

_Array = NDArray[np.float64]
_KINDS = {"isotonic": "", "quantile": " of about equal weight", "uniform": " of equal width"}


class _Curve(Result):
    """Base of curves and bands, which print a description."""

    __slots__ = ()

    def describe(self, digits: int = 4) -> str:
        """Return the result in words, with `digits` significant digits."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BiasCurve(Plotted, _Curve):
    """The cumulative bias curve, on which ATB is based. Returned by `cumulative_bias_curve`.

    Attributes
    ----------
    q : ndarray
        The different predictions, increasing. From a sketch: the largest prediction of each filled bucket.
    bias : ndarray
        ``bias[i]``: weighted sum of (prediction - outcome) over rows with predictions up to ``q[i]``, divided by the
        total weight. The curve is 0 before ``q[0]`` and flat between entries. Where it rises, predictions are too high;
        where it falls, too low. From a sketch: exact at each ``q[i]``, unknown inside a bucket.
    count, weight : ndarray
        Rows at each ``q`` (from a sketch: in each bucket), and their share of the total weight.
    sketched : bool
        Whether it comes from a sketch.
    """

    q: _Array
    bias: _Array
    count: NDArray[np.int64]
    weight: _Array
    sketched: bool = False
    _columns: ClassVar = ("q", "bias", "count", "weight")

    @property
    def unit(self) -> Unit:
        """Unit of the bias in text: for rare events, per 1,000 rows or more."""
        mean = float(np.sum(self.weight * self.q))
        return error_unit(mean, mean)

    def describe(self, digits: int = 4) -> str:
        """Return the largest and the total bias in words, with `digits` significant digits."""
        peak, places, unit = int(np.abs(self.bias).argmax()), len(self.q), self.unit
        where = f"{places:,} different predictions" if places > 1 else "one prediction"
        if self.sketched:
            where = f"{count(places, 'bucket')} of a sketch"
        largest, total = (number(unit.rows * float(x), digits, sign="+") for x in (self.bias[peak], self.bias[-1]))
        start = f"Cumulative bias at {where} ({count(int(self.count.sum()), 'row')})"
        return f"{start}: largest {largest} at q = {self.q[peak]:.{digits}g}, total {total}{unit.per}."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReliabilityCurve(Plotted, _Curve):
    """Predictions and observed frequencies: the points of a reliability diagram. Returned by `reliability_curve`.

    One entry for each pool or bin that has rows, in order of the predictions, at most 1000.

    Attributes
    ----------
    left, right : ndarray
        Edges of the bin for "uniform" (empty bins are gaps); otherwise its smallest and largest prediction.
    mean_proba, mean_true : ndarray
        Mean prediction and mean outcome.
    count, weight : ndarray
        Rows, and their share of the total weight.
    low, high : ndarray or None
        `mean_true` of calibrated predictions lies in [low, high] with probability `confidence_level`. None for
        "isotonic", whose pools depend on the outcomes: see `consistency_band`.
    strategy, confidence_level : str, float
        Grouping of the rows: "isotonic", "quantile" or "uniform"; probability for `low` and `high`.
    empty, pools : int
        Number of bins without rows, which have no entry; of isotonic pools before merging neighbours, otherwise 0.
    straddling : float
        For "uniform" from a sketch: share of the weight in buckets that cross an edge. Each counts in the bin of its
        mean prediction.
    sketched : bool
        Whether it comes from a sketch.
    simultaneous : bool
        Whether `low` and `high` hold for all bins at once, not for each by itself.
    """

    left: _Array
    right: _Array
    mean_proba: _Array
    mean_true: _Array
    count: NDArray[np.int64]
    weight: _Array
    low: _Array | None
    high: _Array | None
    strategy: str
    confidence_level: float
    empty: int = 0
    pools: int = 0
    straddling: float = 0.0
    sketched: bool = False
    simultaneous: bool = False
    _columns: ClassVar = ("left", "right", "mean_proba", "mean_true", "count", "weight", "low", "high")

    @property
    def mean_gap(self) -> float:
        """Mean of ``|mean_proba - mean_true|``, by weight."""
        return float(np.sum(self.weight * np.abs(self.mean_proba - self.mean_true)))

    @property
    def outside(self) -> int:
        """Number of entries whose `mean_true` is not between `low` and `high`; 0 where there is no band."""
        if self.low is None or self.high is None:
            return 0
        return int(np.count_nonzero((self.mean_true < self.low) | (self.mean_true > self.high)))

    @property
    def unit(self) -> Unit:
        """Unit of gaps in text: for rare events, per 1,000 rows or more."""
        means = (float(np.sum(self.weight * mean)) for mean in (self.mean_proba, self.mean_true))
        return error_unit(*means, self.mean_gap)

    def describe(self, digits: int = 4, *, worst: bool = True) -> str:
        """Return the mean gap in words, with `digits` significant digits; with `worst`, also where it is largest."""
        unit, where = self.unit, self._largest_gap(digits) if worst else ""
        gap = f"{number(unit.rows * self.mean_gap, digits)}{unit.per}"
        outside = f"; {self.outside:,} of {len(self.count):,} outside the {percent(self.confidence_level)} band"
        at_once = ", which holds for all bins at once" * self.simultaneous
        band = "" if self.low is None else f"{outside} of calibrated predictions{at_once}"
        return f"Mean gap of {gap} between predictions and frequencies in {self._places()}{where}{band}."

    def _largest_gap(self, digits: int) -> str:
        gap = self.mean_proba - self.mean_true
        worst = int((self.weight * np.abs(gap)).argmax())
        if not self.weight[worst] * gap[worst]:
            return ""
        unit, place = self.unit, unit_of(float(self.right[worst]))
        left, right = (number(place.rows * float(end[worst]), digits) for end in (self.left, self.right))
        where = f"at {left}{place.per}" if left == right else f"from {left} to {right}{place.per}"
        size = f"{number(unit.rows * abs(float(gap[worst])), digits)}{unit.per}"
        return f", largest part {where} (too {'high' if gap[worst] > 0 else 'low'} by {size})"

    def _places(self) -> str:
        name = "isotonic pool" if self.strategy == "isotonic" else "bin"
        notes = [f"{count(int(self.count.sum()), 'row')}{' of a sketch' if self.sketched else ''}"]
        if self.pools > len(self.count):
            notes.append(f"merged from {self.pools:,} pools")
        if self.empty:
            notes.append(f"{count(self.empty, 'empty bin')} left out")
        if self.straddling:
            notes.append(f"{self.straddling:.2g} of the weight in buckets that straddle a bin edge")
        return f"{count(len(self.count), name)}{_KINDS[self.strategy]} ({'; '.join(notes)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConsistencyBand(_Curve):
    """Consistency band: the range of the isotonic curve of calibrated predictions. Returned by `consistency_band`.

    Attributes
    ----------
    q : ndarray
        Predictions, increasing, at most 1000.
    low, high : ndarray
        The isotonic curve of calibrated predictions is in [low, high] with probability `confidence_level`: everywhere
        if `simultaneous`, otherwise at each `q` separately. Both never decrease.
    confidence_level, n_resamples, n : float, int, int
        That probability; numbers of redrawn outcomes and of rows.
    simultaneous : bool
        Whether the band holds the whole curve. A whole curve leaves a band that is not simultaneous more often.
    """

    q: _Array
    low: _Array
    high: _Array
    confidence_level: float
    n_resamples: int
    n: int
    simultaneous: bool = False
    _columns: ClassVar = ("q", "low", "high")

    def describe(self, digits: int = 4) -> str:
        """Return the band's median width in words, with `digits` significant digits."""
        width = number(float(np.median(self.high - self.low)), digits)
        return (
            f"{percent(self.confidence_level)} consistency band of the {'whole ' * self.simultaneous}isotonic curve at "
            f"{count(len(self.q), 'prediction')} ({count(self.n, 'row')}): median width {width}."
        )


@dataclass(frozen=True, slots=True, repr=False)
class BiasBand(_Curve):
    """The range of the whole cumulative bias curve of calibrated predictions. Returned by `bias_band`.

    Attributes
    ----------
    limit, confidence_level : float
        The whole curve stays in [-limit, limit] with probability `confidence_level`.
    n_resamples, n : int
        Numbers of redrawn outcomes and of rows.
    """

    limit: float
    confidence_level: float
    n_resamples: int
    n: int

    def describe(self, digits: int = 4, unit: Unit = PLAIN) -> str:
        """Return the limits in words, with `digits` significant digits."""
        limit, often = number(unit.rows * self.limit, digits), f"{percent(self.confidence_level)} of the time"
        start = f"If predictions were calibrated, the cumulative bias of {count(self.n, 'row')} would stay"
        return f"{start} between -{limit} and +{limit}{unit.per} everywhere, {often}."

    def table(self) -> dict[str, NDArray[Any]]:
        """Return columns of equal length: both ends of the band."""
        ends = np.full(2, self.limit)
        return {"q": np.array([0.0, 1.0]), "low": -ends, "high": ends}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScaleProfile(Plotted, RowOrderNote, PageResult):
    """Miscalibration by scale, compared with chance. Returned by `scale_profile`.

    Attributes
    ----------
    width, value : ndarray
        Widths of the bins of a randomly shifted grid, 1 (which is ATB), 1/2 ... 1/32; `shifted_grid_ubse` at each.
    null_mean, null_sd : ndarray
        Mean and standard deviation of `value` under calibration. The mean is the same at all widths.
    low, high : ndarray
        `value` lies in [low, high] with probability `confidence_level` under calibration.
    excess : ndarray
        Unbiased estimate of `value` without noise, as in `AtbSummary`; nan for one row.
    pvalue : ndarray
        Probability of a `value` at least as large under calibration, at each width separately.
    common : ndarray
        Share of pairs of rows, by weight, in the same bin: the `value` of predictions that are all off by 1. Narrow
        bins have fewer pairs, so values of different widths are not comparable; `error` is.
    confidence_level : float
        Probability for `low` and `high`.
    method, n_resamples : str, int
        "asymptotic" or "redrawn", and the number of redrawn outcomes; 0 for "asymptotic".
    n, sketched : int, bool
        Rows, and whether they come from a sketch.
    neighbour_z : float or None
        As in `CalibrationTest`.
    """

    width: _Array
    value: _Array
    null_mean: _Array
    null_sd: _Array
    low: _Array
    high: _Array
    excess: _Array
    pvalue: _Array
    common: _Array
    confidence_level: float
    method: str
    n_resamples: int
    n: int
    sketched: bool = False
    neighbour_z: float | None = field(default=None, compare=False)
    _columns: ClassVar = (
        *("width", "value", "null_mean", "null_sd", "low", "high", "excess", "pvalue", "common"),
        *("error", "error_low", "error_high"),
    )

    @property
    def error(self) -> _Array:
        """Constant error that would cause the same excess over chance; comparable across widths.

        The square root of ``(value - null_mean) / common``, with its sign.
        """
        return _signed_root((self.value - self.null_mean) / self.common)

    @property
    def error_low(self) -> _Array:
        """Lower end of the range of `error` under calibration."""
        return _signed_root((self.low - self.null_mean) / self.common)

    @property
    def error_high(self) -> _Array:
        """Upper end of the range of `error` under calibration."""
        return _signed_root((self.high - self.null_mean) / self.common)

    @property
    def unit(self) -> Unit:
        """Unit of errors in text, from the mean of p(1 - p): for rare events, per 1,000 rows or more."""
        return unit_of(float(self.null_mean[0]) * self.n)

    @property
    def names(self) -> list[str]:
        """The widths as fractions: 1, 1/2 ... 1/32."""
        return ["1" if width == 1.0 else f"1/{1.0 / width:g}" for width in self.width]

    def describe(self) -> str:
        """Return in words how many scales have an error beyond chance."""
        many = int(np.count_nonzero(self.value > self.high))
        scales = f"{many or 'None'} of {len(self.width)} scales {plural(max(many, 1), 'has', 'have')}"
        calibrated = f"{percent(self.confidence_level)} range of calibrated predictions ({count(self.n, 'row')})"
        return f"{scales} an error above the {calibrated}."

    def _page(self) -> Page:
        unit = self.unit
        errors = (unit.rows * error for error in (self.error, self.error_low, self.error_high))
        columns = zip(self.names, *errors, self.pvalue, strict=True)
        rows = [[name, f"{x:+.3g}", interval(low, high, sign="+"), f"{p:.2g}"] for name, x, low, high, p in columns]
        header = ["width", f"error{unit.per}", f"{percent(self.confidence_level)} by chance", "p"]
        table = Table(header, rows, right=[1], indent=2)
        return Page(self.describe(), table, warnings=self._row_order_warnings())


def _signed_root(x: _Array) -> _Array:
    """Return the square roots of a curve's values, with their signs."""
    return np.asarray(np.sign(x) * np.sqrt(np.abs(x)), np.float64)
