"""Power without simulation: the error that a test can detect, and the number of rows needed to detect an error."""

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

# Planning needs only two digits, so fewer cells suffice. Unknown future predictions are assumed to be evenly spread.
_PLANNING_CELLS, _EVENLY = 128, (np.arange(1000) + 0.5) / 1000
# With less information the asymptotic distribution is not usable.
LEAST_INFORMATION = 5.0


@dataclass(frozen=True, slots=True)
class Design:
    """Predictions for which a test is planned: points with their share of the weight and of the squared weight.

    The outcomes at a point with truth t have the variance `noise` t(1 - t), where `noise` is the sum of (w / W)^2.
    `phi`: coordinates of the points on the principal axes of the mean error of calibrated predictions.
    """

    x: _Array
    share: _Array
    noise: _Array
    phi: _Array

    @classmethod
    def of(cls, points: Points, measure: str) -> Self:
        """Build it from the points of sorted rows or of a sketch; if there are many, neighbours are merged."""
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
        """Sum of p(1 - p), scaled to the effective sample size."""
        return float(np.sum(self.share * self.x * (1.0 - self.x)) / np.sum(self.noise))

    def error(self, truth: _Array) -> float:
        """Mean of |prediction - truth|."""
        return float(np.sum(self.share * np.abs(self.x - truth)))

    def critical(self, alpha: float) -> float:
        """The value that calibrated predictions exceed with probability alpha."""
        return upper_quantile(alpha, self._variances(self.x))

    def power(self, truth: _Array, critical: float, times: float = 1.0) -> float:
        """Probability of exceeding a critical value of these rows, with `times` as many; it shrinks in proportion."""
        scales, mean = self._variances(truth) / times, (self.share * (self.x - truth)) @ self.phi
        free = scales > CERTAIN * np.max(scales)
        rest = critical / times - float(np.sum(mean[~free] ** 2))
        return upper_tail(rest, scales[free], mean[free] / np.sqrt(scales[free]))

    def _variances(self, truth: _Array) -> _Array:
        """Variances of the mean error along the axes if outcomes follow the truth.

        On the axes of calibrated predictions the coordinates are independent under calibration. For other truths they
        nearly are, because noise changes slowly along the prediction axis (simulated in tests/inference/test_power.py).
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
    """Plan a test: the smallest error of these predictions that it detects with a given power.

    Parameters
    ----------
    y_proba : array-like of shape (n,), or Sketch
        Predicted probabilities. Outcomes are not needed. A `Sketch` takes the place of all rows, including
        `sample_weight`; its outcomes are ignored.
    power : float, default 0.8
        Probability that the test detects the error.
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
        the test detects with this power. nan if not even the largest such error is detected, or if sum p(1 - p) is
        below 5, which is too little information.

    Notes
    -----
    Uses the asymptotic distribution of the statistic, under calibration and under the error; nothing is simulated.
    Errors that change sign several times along the prediction axis must be larger to be detected.

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
        shift, strongest = FAMILIES["shift"]
        families = FAMILIES["shift"], (lambda p, strength: shift(p, -strength), strongest), FAMILIES["slope"]
        errors = [_detectable(design, wrong, strongest, power, design.critical(alpha)) for wrong, strongest in families]
    high, low, extreme = errors
    return DetectableError(high, low, extreme, power, alpha, measure, points.rows, design.information)


def _detectable(design: Design, wrong: Family, strongest: float, power: float, critical: float) -> float:
    """The smallest detectable mean error in a family of errors, with this power; nan if there is none."""

    def missing(strength: float) -> float:
        return design.power(wrong(design.x, strength), critical) - power

    # Very strong errors that make all outcomes certain may not be detected either, so search from below.
    low = 1e-6 * strongest
    for high in np.geomspace(1e-3 * strongest, 0.999 * strongest, 16):
        if missing(float(high)) >= 0.0:
            break
        low = float(high)
    else:
        return math.nan
    if missing(low) < 0.0:
        low = float(optimize.brentq(missing, low, float(high), xtol=1e-9 * strongest, rtol=1e-3))
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
    """Plan a test: the number of rows that it needs to detect an error of this size.

    Parameters
    ----------
    effect : float
        Mean of ``|prediction - truth|``, as a probability: 0.02 for 2 points.
    power, alpha, measure
        As for `detectable_error`.
    family : {"shift", "slope", "wave"} or callable, default "shift"
        How the predictions are wrong, as for `validity_curve`.
    y_proba : array-like, optional
        Predictions similar to the future ones; any number of them. By default evenly spread over [0, 1].

    Returns
    -------
    int
        Number of rows.

    Notes
    -----
    Computed as in `detectable_error`. If the result is below about 100, check it with `power`.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.required_sample_size(0.05), tc.required_sample_size(0.02)
    (643, 4021)
    """
    check_choice(measure, "measure", TENTS)
    power, alpha, effect = check_level(power, "power"), check_level(alpha, "alpha"), check_level(effect, "effect")
    p = check_proba(y_proba, "y_proba").astype(np.float64) if y_proba is not None else _EVENLY
    _, wrong, strongest = check_family(family, p)
    points = summarize_predictions(p).points()
    design = Design.of(points, measure)

    def surplus(strength: float) -> float:
        return design.error(wrong(design.x, strength)) - effect

    refuse_unreachable(effect, effect + surplus(strongest))
    truth = wrong(design.x, float(optimize.brentq(surplus, 0.0, strongest, xtol=1e-12)))
    critical = design.critical(alpha)

    def missing(log_times: float) -> float:
        return design.power(truth, critical, math.exp(log_times)) - power

    fewest = -math.log(points.rows)
    if missing(fewest) >= 0.0:
        return 1
    return math.ceil(math.exp(optimize.brentq(missing, fewest, 40.0, xtol=1e-6)) * points.rows * (1.0 - 1e-9))
