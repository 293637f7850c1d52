"""What functions that draw a curve return: columns of equal length, few enough to plot, that print in words."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]


def _tidy(x: float) -> float:
    """Without what rounding leaves of 0."""
    return 0.0 if abs(x) < 1e-15 else float(x)


@dataclass(frozen=True, slots=True, eq=False)
class BiasCurve:
    """The curve ATB integrates. Returned by `cumulative_bias_curve`.

    Attributes
    ----------
    q : ndarray
        The different predictions, increasing. From a sketch: the largest prediction of each filled bucket.
    bias : ndarray
        ``bias[i]``: sum of (prediction - outcome) over rows with prediction up to and including ``q[i]``, as a share of
        the total weight. Before ``q[0]`` the curve is 0; between two entries it is flat. Where it rises, predictions
        are too high; where it falls, too low. From a sketch: exact at each ``q[i]``, and unknown inside a bucket.
    count : ndarray
        Rows at each ``q``; from a sketch, in each bucket.
    weight : ndarray
        Their share of the total weight.
    sketched : bool
        Whether it comes from a sketch.
    """

    q: _Array
    bias: _Array
    count: NDArray[np.int64]
    weight: _Array
    sketched: bool = False

    def __str__(self) -> str:
        peak, many, rows = int(np.abs(self.bias).argmax()), len(self.q), int(self.count.sum())
        places = "buckets of a sketch" if self.sketched else "different predictions"
        where = f"{many:,} {places}" if many > 1 else "1 bucket of a sketch" if self.sketched else "one prediction"
        return (
            f"Cumulative bias at {where} ({rows:,} row{'' if rows == 1 else 's'}): "
            f"largest {_tidy(self.bias[peak]):+.4g} at q = {self.q[peak]:.4g}, {_tidy(self.bias[-1]):+.4g} in all."
        )

    __repr__ = __str__

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Columns of equal length, ready for a data frame."""
        return {"q": self.q, "bias": self.bias, "count": self.count, "weight": self.weight}


@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityCurve:
    """Predictions beside observed frequencies: the points of a reliability diagram. Returned by `reliability_curve`.

    One entry for each pool or bin that holds rows, in order of the predictions, and never more than 1000.

    Attributes
    ----------
    left, right : ndarray
        For "uniform" the edges of the bin, so that empty bins show as gaps; else the smallest and the largest
        prediction in it.
    mean_proba, mean_true : ndarray
        Mean prediction and mean outcome.
    count : ndarray
        Rows.
    weight : ndarray
        Their share of all weight.
    low, high : ndarray or None
        Between which frequencies `mean_true` would lie with probability `confidence_level` if predictions were
        calibrated. None for "isotonic", whose pools are made from the outcomes: see `consistency_band`.
    strategy : str
        How rows were put together.
    confidence_level : float
        The probability that `low` and `high` are for.
    empty : int
        Bins without rows, which have no entry.
    pools : int
        For "isotonic": how many pools there were before neighbours were put together to stay within 1000; else 0.
    straddling : float
        For "uniform" from a sketch: the share of weight in buckets that lie across an edge. They went, whole, to the
        side of their mean prediction.
    sketched : bool
        Whether it comes from a sketch.
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

    def __str__(self) -> str:
        gap = self.mean_proba - self.mean_true
        share = self.weight * np.abs(gap)
        worst = int(share.argmax())
        where = f"from {self.left[worst]:.4g} to {self.right[worst]:.4g}"
        if self.left[worst] == self.right[worst]:
            where = f"at {self.left[worst]:.4g}"
        most = f", largest part {where} (too {'high' if gap[worst] > 0 else 'low'} by {abs(gap[worst]):.4g})"
        return (
            f"Reliability in {self._places()}: mean gap {share.sum():.4g}{most if share[worst] else ''}{self._band()}."
        )

    __repr__ = __str__

    def _places(self) -> str:
        many = len(self.count)
        name = {"isotonic": "isotonic pool", "quantile": "bin", "uniform": "bin"}[self.strategy]
        kind = {"isotonic": "", "quantile": " of about equal weight", "uniform": " of equal width"}[self.strategy]
        rows = int(self.count.sum())
        notes = [f"{rows:,} row{'' if rows == 1 else 's'}{' of a sketch' if self.sketched else ''}"]
        if self.pools > many:
            notes.append(f"neighbours of {self.pools:,} pools put together")
        if self.empty:
            notes.append(f"{self.empty:,} empty bin{'' if self.empty == 1 else 's'} left out")
        if self.straddling:
            notes.append(f"{self.straddling:.2g} of the weight in buckets across an edge")
        return f"{many:,} {name}{'' if many == 1 else 's'}{kind} ({'; '.join(notes)})"

    def _band(self) -> str:
        if self.low is None or self.high is None:
            return ""
        outside = int(np.count_nonzero((self.mean_true < self.low) | (self.mean_true > self.high)))
        return f"; {outside:,} of {len(self.count):,} outside the {100 * self.confidence_level:g}% band of calibration"

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns of equal length, ready for a data frame; `low` and `high` where there are any."""
        names = ("left", "right", "mean_proba", "mean_true", "count", "weight", "low", "high")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


@dataclass(frozen=True, slots=True, eq=False)
class ConsistencyBand:
    """Where the isotonic curve of a reliability diagram would lie if predictions were calibrated.

    Returned by `consistency_band`.

    Attributes
    ----------
    q : ndarray
        Predictions, increasing, at most 1000.
    low, high : ndarray
        At each `q`, the isotonic curve would be in [low, high] with probability `confidence_level`. Both never fall.
    confidence_level : float
        That probability. It is for each `q` by itself: somewhere a curve leaves the band more often.
    n_resamples : int
        Number of redrawn outcomes behind it.
    n : int
        Rows.
    """

    q: _Array
    low: _Array
    high: _Array
    confidence_level: float
    n_resamples: int
    n: int

    def __str__(self) -> str:
        width = float(np.median(self.high - self.low))
        return (
            f"Where the isotonic curve would be {100 * self.confidence_level:g}% of the time if predictions were "
            f"calibrated, at {len(self.q):,} of them ({self.n:,} rows): a band {width:.4g} wide (median)."
        )

    __repr__ = __str__

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns of equal length, ready for a data frame."""
        return {"q": self.q, "low": self.low, "high": self.high}

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


@dataclass(frozen=True, slots=True)
class BiasBand:
    """Between which limits the cumulative bias curve would stay, everywhere, if predictions were calibrated.

    Returned by `bias_band`.

    Attributes
    ----------
    limit : float
        The curve would stay in [-limit, limit] from end to end with probability `confidence_level`.
    confidence_level : float
        That probability. It is for the whole curve at once.
    n_resamples : int
        Number of redrawn outcomes behind it.
    n : int
        Rows.
    """

    limit: float
    confidence_level: float
    n_resamples: int
    n: int

    def __str__(self) -> str:
        return (
            f"If predictions were calibrated, the cumulative bias of {_rows(self.n)} would stay between "
            f"-{self.limit:.4g} and +{self.limit:.4g} everywhere, {100 * self.confidence_level:g}% of the time."
        )

    __repr__ = __str__

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns of equal length, ready for a data frame: both ends of the band."""
        ends = np.full(2, self.limit)
        return {"q": np.array([0.0, 1.0]), "low": -ends, "high": ends}

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class ScaleProfile:
    """Miscalibration by scale, each beside what chance alone gives. Returned by `scale_profile`.

    Attributes
    ----------
    width : ndarray
        Widths of the bins of a randomly shifted grid: 1 (which is ATB), 1/2 ... 1/32.
    value : ndarray
        The binned squared error at each width: see `shifted_grid_ubse`.
    null_mean, null_sd : ndarray
        Mean and standard deviation of `value` if predictions were calibrated. The mean is the same at all widths.
    low, high : ndarray
        Between which `value` would lie with probability `confidence_level` if predictions were calibrated.
    excess : ndarray
        Unbiased estimate of `value` without the noise, as in `AtbSummary`; nan for one row.
    pvalue : ndarray
        How often calibrated predictions would have so large a `value`, at each width by itself.
    common : ndarray
        The share of all pairs of rows, by weight, that are in the same bin: the `value` of predictions that are all
        off by 1. In narrow bins there are fewer, so that values of different widths do not compare; `error` does.
    confidence_level : float
        The probability that `low` and `high` are for.
    method : str
        "asymptotic": the distribution for many rows. "redrawn": outcomes were redrawn `n_resamples` times.
    n_resamples : int
        Number of redrawn outcomes; 0 for "asymptotic".
    n : int
        Rows.
    sketched : bool
        Whether it comes from a sketch.
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

    @property
    def error(self) -> _Array:
        """By how much all predictions would have to be off, to the same side, to have as much beyond chance.

        The root of ``(value - null_mean) / common``, with its sign: on the scale of a probability, at every width.
        """
        return _signed_root((self.value - self.null_mean) / self.common)

    @property
    def error_low(self) -> _Array:
        """The lower end of where `error` would lie if predictions were calibrated."""
        return _signed_root((self.low - self.null_mean) / self.common)

    @property
    def error_high(self) -> _Array:
        """The upper end, likewise."""
        return _signed_root((self.high - self.null_mean) / self.common)

    @property
    def names(self) -> list[str]:
        """The widths as fractions: 1, 1/2 ... 1/32."""
        return ["1" if width == 1.0 else f"1/{1.0 / width:g}" for width in self.width]

    def __str__(self) -> str:
        level, many = f"{100 * self.confidence_level:g}%", int(np.count_nonzero(self.value > self.high))
        first = f"{many or 'None'} of {len(self.width)} scales {'have' if many > 1 else 'has'} an error above the"
        lines = [f"{first} range that holds {level} of calibrated ones ({_rows(self.n)})."]
        lines.append(f"  {'width':<6} {'error':>9}   {level + ' by chance':<22} p")
        for name, error, low, high, p in zip(
            self.names, self.error, self.error_low, self.error_high, self.pvalue, strict=True
        ):
            ends = f"{low:+.3g} to {high:+.3g}"
            lines.append(f"  {name:<6} {error:>+9.3g}   {ends:<22} {p:.2g}")
        return "\n".join(lines)

    __repr__ = __str__

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns of equal length, ready for a data frame."""
        names = ("width", "value", "null_mean", "null_sd", "low", "high", "excess", "pvalue", "common")
        derived = ("error", "error_low", "error_high")
        return {name: getattr(self, name) for name in (*names, *derived)}

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def _signed_root(x: _Array) -> _Array:
    root: _Array = np.sign(x) * np.sqrt(np.abs(x))
    return root


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"
