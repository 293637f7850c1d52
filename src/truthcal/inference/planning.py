"""Power without simulation: the error that a test of these rows can detect, and the rows that an error needs."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from truthcal.core.checks import check_proba
from truthcal.core.params import check_choice, check_level
from truthcal.core.points import Points, equal_cells
from truthcal.core.summarize import summarize_predictions
from truthcal.inference.laws.quadratic_form import upper_quantile, upper_tail
from truthcal.inference.laws.tent_kernel import CERTAIN, TentKernel
from truthcal.inference.power import FAMILIES, Family, check_family, refuse_unreachable
from truthcal.measures.registry import TENTS
from truthcal.results.power import DetectableError

_Array = NDArray[np.float64]

# Planning needs two digits, for which fewer cells do; and predictions that nobody has yet are spread evenly.
_PLANNING_CELLS, _EVENLY = 128, (np.arange(1000) + 0.5) / 1000
# With less than this the law for many rows says nothing.
LEAST_INFORMATION = 5.0


@dataclass(frozen=True, slots=True)
class Design:
    """Predictions for which a test is planned: points with their share of the weight and of the squared weight.

    Outcomes at a point vary by its `noise`, the sum of (w / W)^2, times t(1 - t) if t is the truth there. `phi`: the
    points' coordinates along the axes on which the mean error of calibrated predictions has independent coordinates.
    """

    x: _Array
    share: _Array
    noise: _Array
    phi: _Array

    @classmethod
    def of(cls, points: Points, measure: str) -> Self:
        """From the points of sorted rows or of a sketch; where there are many, neighbours are merged."""
        kernel = TentKernel.of(measure, points)
        if len(points) > _PLANNING_CELLS:
            cell = equal_cells(points.weight * (points.p * (1.0 - points.p) + 1e-12), _PLANNING_CELLS)
            points = points.runs(np.flatnonzero(np.diff(cell, prepend=-1)))
        x, share, noise = points.p, points.weight / points.total, points.ww / points.total**2
        phi = kernel.axes(x)
        _, axes = np.linalg.eigh((phi.T * (noise * x * (1.0 - x))) @ phi)
        return cls(x, share, noise, phi @ axes)

    @property
    def information(self) -> float:
        """Sum of p(1 - p); with weights, of as many rows of equal weight as these are worth."""
        return float(np.sum(self.share * self.x * (1.0 - self.x)) / np.sum(self.noise))

    def error(self, truth: _Array) -> float:
        """Mean of |prediction - truth|."""
        return float(np.sum(self.share * np.abs(self.x - truth)))

    def critical(self, alpha: float) -> float:
        """The value that calibrated predictions exceed with probability alpha."""
        return upper_quantile(alpha, self._variances(self.x))

    def power(self, truth: _Array, critical: float, times: float = 1.0) -> float:
        """Chance to exceed a critical value of these rows, with `times` as many; it then shrinks in proportion."""
        scales, mean = self._variances(truth) / times, (self.share * (self.x - truth)) @ self.phi
        free = scales > CERTAIN * np.max(scales)
        rest = critical / times - float(np.sum(mean[~free] ** 2))
        return upper_tail(rest, scales[free], mean[free] / np.sqrt(scales[free]))

    def _variances(self, truth: _Array) -> _Array:
        """Variances of the mean error along the axes if outcomes follow the truth.

        The axes are those of calibrated predictions, along which coordinates are then independent. For other truths
        they nearly are, as noise changes little along the predictions (tests/inference/test_power.py simulates it).
        """
        variances: _Array = (self.noise * truth * (1.0 - truth)) @ self.phi**2
        return variances


def detectable_error(
    y_proba: object,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    measure: str = "multiscale_atb",
    sample_weight: object = None,
) -> DetectableError:
    """The smallest error that these predictions could have been shown to have: what this number of rows can see.

    Parameters
    ----------
    y_proba : array-like of shape (n,), or Sketch
        Predicted probabilities. Outcomes are not needed. A `Sketch` takes the place of all rows, `sample_weight`
        included; its outcomes are not looked at.
    power : float, default 0.8
        Probability that the test finds the error.
    alpha : float, default 0.05
        Level of the test.
    measure : {"multiscale_atb", "atb", "shifted_grid_ubse"}, default "multiscale_atb"
        The test's statistic.
    sample_weight
        As for `calibration_test`.

    Returns
    -------
    DetectableError
        For predictions that are all too high, all too low, or too extreme: the mean of ``|prediction - truth|`` that
        the test finds with this power. nan if not even the largest such error is found, or if sum p(1 - p) is below 5,
        where nothing can be said.

    Notes
    -----
    Uses the distribution of the statistic for many rows, under calibration and under the error; nothing is simulated.
    Errors that change sign several times along the predictions need to be larger.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> print(tc.detectable_error(np.linspace(0.05, 0.95, 2000)))
    With these 2,000 predictions, a test at level 0.05 has 80% power to detect a mean error of
      0.03 if all are too high,
      0.03 if all are too low,
      0.031 if too extreme.
    """
    check_choice(measure, "measure", TENTS)
    power, alpha = check_level(power, "power"), check_level(alpha, "alpha")
    return detectable_of(summarize_predictions(y_proba, sample_weight).points(), power, alpha, measure)


def detectable_of(points: Points, power: float, alpha: float, measure: str) -> DetectableError:
    """The detectable error, from the points of sorted rows or of a sketch."""
    design = Design.of(points, measure)
    errors = [math.nan] * 3
    if design.information >= LEAST_INFORMATION:
        shift, most = FAMILIES["shift"]
        families = FAMILIES["shift"], (lambda p, strength: shift(p, -strength), most), FAMILIES["slope"]
        errors = [_least(design, wrong, most, power, design.critical(alpha)) for wrong, most in families]
    high, low, extreme = errors
    return DetectableError(high, low, extreme, power, alpha, measure, points.rows, design.information)


def _least(design: Design, wrong: Family, most: float, power: float, critical: float) -> float:
    """The mean error of the weakest member of a family that is found with this power; nan if there is none."""

    def missing(strength: float) -> float:
        return design.power(wrong(design.x, strength), critical) - power

    # Strengths so great that nothing is left to chance may not be found either: look for one that is.
    low = 1e-6 * most
    for high in np.geomspace(1e-3 * most, 0.999 * most, 16):
        if missing(float(high)) >= 0.0:
            break
        low = float(high)
    else:
        return math.nan
    if missing(low) < 0.0:
        low = float(optimize.brentq(missing, low, float(high), xtol=1e-9 * most, rtol=1e-3))
    return design.error(wrong(design.x, low))


def required_sample_size(
    effect: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    family: str | Family = "shift",
    y_proba: object = None,
    measure: str = "multiscale_atb",
) -> int:
    """Number of rows that a test needs to find an error of this size.

    Parameters
    ----------
    effect : float
        Mean of ``|prediction - truth|``, as a probability: 0.02 for 2 points.
    power, alpha, measure
        As for `detectable_error`.
    family : {"shift", "slope", "wave"} or callable, default "shift"
        How the predictions are wrong, as for `validity_curve`.
    y_proba : array-like, optional
        Predictions like those to come; any number of them. By default spread evenly over [0, 1].

    Returns
    -------
    int
        Rows.

    Notes
    -----
    Computed as in `detectable_error`; for fewer than 100 rows or so, check with `power`.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.required_sample_size(0.05), tc.required_sample_size(0.02)
    (643, 4021)
    """
    check_choice(measure, "measure", TENTS)
    power, alpha, effect = check_level(power, "power"), check_level(alpha, "alpha"), check_level(effect, "effect")
    p = check_proba(y_proba, "y_proba").astype(np.float64) if y_proba is not None else _EVENLY
    _, wrong, most = check_family(family, p)
    points = summarize_predictions(p).points()
    design = Design.of(points, measure)

    def short(strength: float) -> float:
        return design.error(wrong(design.x, strength)) - effect

    refuse_unreachable(effect, effect + short(most))
    truth = wrong(design.x, float(optimize.brentq(short, 0.0, most, xtol=1e-12)))
    critical = design.critical(alpha)

    def missing(log_times: float) -> float:
        return design.power(truth, critical, math.exp(log_times)) - power

    fewest = -math.log(points.rows)
    if missing(fewest) >= 0.0:
        return 1
    times = math.exp(optimize.brentq(missing, fewest, 40.0, xtol=1e-6))
    return math.ceil(times * points.rows * (1.0 - 1e-9))
