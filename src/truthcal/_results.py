"""What functions return when one number is not enough: frozen dataclasses that print well."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The sum of p(1 - p) from which on the distribution of ATB is close to its limit.
_ENOUGH = 100


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number known up to certified bounds: ``low <= exact value <= high`` always holds, rounding included.

    Attributes
    ----------
    value : float
        Best estimate, far closer to the exact value than the bounds as a rule.
    low, high : float
        Certified bounds.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """``high - low``."""
        return self.high - self.low

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __str__(self) -> str:
        return f"{self.value:.6g}, certain to {max(self.high - self.value, self.value - self.low):.1g}"


@dataclass(frozen=True, slots=True)
class AtbSummary:
    """ATB beside what is needed to read it. Returned by `atb_summary`.

    Attributes
    ----------
    value : float
        ATB, the averaged two-bin calibration error.
    noise_floor : float
        What a perfectly calibrated forecaster with these very predictions scores on average. Compare with it, and not
        with 0: it is 0 only if all predictions are 0 or 1. Where sum p(1 - p) is at least 100, chance alone keeps the
        value below about 4 times the floor in 95 of 100 samples, and often well below it. A row of weight 2 is one
        observation here, not two.
    excess : float
        Unbiased estimate of the ATB that infinitely many such rows would have. May be negative. NaN for one row.
    rms : float
        ``sqrt(max(excess, 0))``, on the scale of a probability. A forecaster with one constant prediction that is off
        by d has d here; in general it is at most the root mean square error of the probabilities, because errors of
        opposite sign at neighbouring predictions partly cancel.
    brier : float
        Mean squared error of the predictions.
    bias : float
        Mean prediction minus mean outcome.
    n : int
        Rows that count (those with weight 0 do not).
    n_effective : float
        Rows of equal weight that would carry as much information, ``(sum w)^2 / sum w^2``.
    """

    value: float
    noise_floor: float
    excess: float
    rms: float
    brier: float
    bias: float
    n: int
    n_effective: float

    def __str__(self) -> str:
        lines = [
            self._sentence(),
            "",
            f"  ATB          {self.value:<12.6g} averaged two-bin calibration error",
            f"  noise floor  {self.noise_floor:<12.6g} what calibrated predictions like these score on average",
            f"  excess       {self._excess()}",
            f"  rms          {self._rms()}",
            f"  bias         {self.bias:<+12.4g} mean prediction minus mean outcome",
            f"  Brier score  {self.brier:<12.6g} mean squared error of the predictions",
            f"  rows         {self.n:,}" + self._effective(),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, float]:
        """The fields by name."""
        return dataclasses.asdict(self)

    def _sentence(self) -> str:
        start = f"ATB is {self.value:.3g}"
        if self.noise_floor == 0.0:
            return f"{start}. The predictions are all 0 or 1; if they were right, it would be exactly 0."
        if math.isnan(self.excess):
            return f"{start}. One row says little about calibration."
        ratio = self.value / self.noise_floor
        chance = "by chance alone it stays below 4 times in 95 of 100 samples"
        if self.noise_floor * self.n_effective**2 < _ENOUGH:
            chance = "too little is uncertain here for a rule of thumb on what chance alone can do"
        return f"{start}, {ratio:.3g} times what calibrated predictions like these score on average\n({chance})."

    def _excess(self) -> str:
        if math.isnan(self.excess):
            return "undefined    needs two rows"
        return f"{self.excess:<12.4g} unbiased estimate of the ATB without the noise"

    def _rms(self) -> str:
        if math.isnan(self.rms):
            return "undefined    needs two rows"
        return f"{self.rms:<12.4g} root of the excess, on the scale of a probability"

    def _effective(self) -> str:
        same = math.isclose(self.n, self.n_effective, rel_tol=1e-9)
        return "" if same else f", worth {self.n_effective:,.1f} of equal weight"


@dataclass(frozen=True, slots=True, eq=False)
class BiasCurve:
    """The curve ATB integrates. Returned by `cumulative_bias_curve`.

    Attributes
    ----------
    q : ndarray
        The different predictions, increasing.
    bias : ndarray
        ``bias[i]``: sum of (prediction - outcome) over rows with prediction up to and including ``q[i]``, as a share of
        the total weight. Before ``q[0]`` the curve is 0; between two entries it is flat. Where it rises, predictions
        are too high; where it falls, too low.
    count : ndarray
        Rows at each ``q``.
    weight : ndarray
        Their share of the total weight.
    """

    q: NDArray[np.float64]
    bias: NDArray[np.float64]
    count: NDArray[np.int64]
    weight: NDArray[np.float64]

    def __str__(self) -> str:
        peak = int(np.abs(self.bias).argmax())
        return (
            f"Cumulative bias at {len(self.q):,} different predictions ({int(self.count.sum()):,} rows): "
            f"largest {self.bias[peak]:+.4g} at q = {self.q[peak]:.4g}, {self.bias[-1]:+.4g} in all."
        )

    __repr__ = __str__

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """The fields by name: columns of equal length, ready for a data frame."""
        return {"q": self.q, "bias": self.bias, "count": self.count, "weight": self.weight}
