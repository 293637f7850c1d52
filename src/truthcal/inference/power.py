"""What a test would find: its power, the error that so many rows show, and the rows that an error needs."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from truthcal._parameters import (
    check_choice,
    check_family,
    check_level,
    check_rng,
    check_whole,
    refuse_few_draws,
    refuse_unreachable,
)
from truthcal._progress import progress
from truthcal._results import Estimate
from truthcal._sample import Sample
from truthcal._threads import both
from truthcal._validation import check_proba, check_report
from truthcal._verdicts import DetectableError, ValidityCurve
from truthcal.inference.cells import CERTAIN, axes_of, bucket_sample, equal_cells
from truthcal.inference.classical import hosmer_lemeshow_of, spiegelhalter_of
from truthcal.inference.outcomes import Outcomes, Values, blocks
from truthcal.inference.quadratic import upper_quantile, upper_tail
from truthcal.inference.tents import TENTS, Tents
from truthcal.measures import MEASURES
from truthcal.measures.distance import distcal_of
from truthcal.sketch import Sketch

_Array = NDArray[np.float64]
Family = Callable[[_Array, float], _Array]

_CLASSICAL = {"spiegelhalter": spiegelhalter_of, "hosmer_lemeshow": hosmer_lemeshow_of}
TESTS = (*MEASURES, *_CLASSICAL)
# Planning needs two digits, for which fewer cells do; and predictions that nobody has yet are spread evenly.
_PLANNING_CELLS, _EVENLY = 128, 1000
# With less than this the law for many rows says nothing.
_LEAST_INFORMATION = 5.0


def _shifted(p: _Array, strength: float) -> _Array:
    """All predictions too high, by the same amount in log-odds."""
    return p / (p + (1.0 - p) * math.exp(strength))


def _flattened(p: _Array, strength: float) -> _Array:
    """Predictions too extreme: the true log-odds are (1 - strength) times the predicted ones."""
    with np.errstate(divide="ignore"):
        return 1.0 / (1.0 + ((1.0 - p) / p) ** (1.0 - strength)) if strength < 1.0 else np.full_like(p, 0.5)


def _waving(p: _Array, strength: float) -> _Array:
    """Too high and too low in turn, three times."""
    return p + strength * p * (1.0 - p) * np.sin(6.0 * math.pi * p)


# Ways to be miscalibrated: the truth, given predictions and a strength from 0 (calibrated) up to the number beside it.
FAMILIES: dict[str, tuple[Family, float]] = {
    "shift": (_shifted, 30.0),
    "slope": (_flattened, 1.0),
    "wave": (_waving, 1.0),
}


# --- by simulation ----------------------------------------------------------------------------------------------------


def power(
    y_proba: object,
    truth: object,
    *,
    measure: str = "multiscale_atb",
    alpha: float = 0.05,
    n_simulations: int = 1000,
    n_resamples: int = 4999,
    rng: Any = None,
    sample_weight: object = None,
) -> Estimate:
    """How often the test rejects these predictions if outcomes really follow `truth`.

    Parameters
    ----------
    y_proba : array-like of shape (n,)
        Predicted probabilities.
    truth : array-like of shape (n,)
        True probabilities of the outcomes.
    measure : str, default "multiscale_atb"
        The statistic: a name in `MEASURES`, "spiegelhalter" (two-sided) or "hosmer_lemeshow".
    alpha : float, default 0.05
        Level of the test.
    n_simulations : int, default 1000
        Outcomes drawn from `truth`.
    n_resamples : int, default 4999
        Outcomes drawn from the predictions, with which each is compared.
    rng : int, numpy Generator or None
        Source of randomness.
    sample_weight : array-like of shape (n,), optional
        As for `calibration_test`.

    Returns
    -------
    Estimate
        The share of rejections, and its standard error.

    Notes
    -----
    The exact test: a simulated outcome is rejected if its p-value ``(1 + #{redrawn >= it}) / (1 + n_resamples)`` is at
    most alpha. Predictions are the same in all simulations, so one set of redrawn outcomes serves them all.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> p = np.linspace(0.05, 0.95, 500)
    >>> result = tc.power(p, 0.5 + 0.8 * (p - 0.5), n_simulations=200, n_resamples=999, rng=0)
    >>> print(result)
    0.585, standard error 0.035 from 200 draws
    """
    check_choice(measure, "measure", TESTS)
    alpha = check_level(alpha, "alpha")
    n_simulations = check_whole(n_simulations, "n_simulations", 1)
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    refuse_few_draws(n_resamples, alpha)
    sample = Sample.from_checked(check_report(y_proba, truth, sample_weight, name="y_proba"))
    return _Power(sample, measure, alpha, n_resamples, check_rng(rng)).against(sample.y, n_simulations)


class _Power:
    """A test of fixed predictions, with its redrawn outcomes in order."""

    def __init__(
        self, sample: Sample, measure: str, alpha: float, n_resamples: int, generator: np.random.Generator
    ) -> None:
        self.sample, self.measure, self.alpha, self.generator = sample, measure, alpha, generator
        self.null = np.sort(self._draw(Outcomes(sample), n_resamples, "redrawing outcomes"))

    def against(self, truth: _Array, n_simulations: int) -> Estimate:
        """Share of rejections when outcomes follow `truth` (in the sample's order)."""
        found = self._draw(Outcomes(self.sample, truth), n_simulations, "simulating outcomes")
        slack = np.where(np.isfinite(found), 1e-9 * np.abs(found) + 1e-14, 0.0)
        extreme = len(self.null) - np.searchsorted(self.null, found - slack)
        rejected = float(np.mean((1 + extreme) / (1 + len(self.null)) <= self.alpha * (1.0 + 1e-12)))
        error = math.sqrt(rejected * (1.0 - rejected) / (n_simulations - 1)) if n_simulations > 1 else math.nan
        return Estimate(rejected, error, n_simulations)

    def _draw(self, outcomes: Outcomes, count: int, label: str) -> _Array:
        """The statistic of `count` outcomes, from two streams on both cores."""
        streams = [np.random.default_rng(self.generator.integers(0, 2**63, 4)) for _ in range(2)]
        values = self._values(outcomes)
        with progress(count, label) as bar:

            def some(stream: np.random.Generator, count: int) -> list[_Array]:
                found = [np.empty(0)]
                for size in blocks(count, outcomes.block):
                    found.append(values(outcomes.draw(stream, size)))
                    bar.advance(size)
                return found

            half = count // 2
            one, two = both(
                lambda: some(streams[0], half), lambda: some(streams[1], count - half), count * len(outcomes.r)
            )
        return np.concatenate([*one, *two])

    def _values(self, outcomes: Outcomes) -> Values:
        if self.measure not in _CLASSICAL:
            return outcomes.values(self.measure)
        statistic = _CLASSICAL[self.measure](outcomes.sample)
        if statistic.values is None:
            raise AssertionError("classical statistics of new data can be redrawn")
        raw = statistic.values(outcomes)
        return (lambda positive: np.abs(raw(positive))) if self.measure == "spiegelhalter" else raw


def validity_curve(
    y_proba: object,
    *,
    family: str | Family = "shift",
    distances: Iterable[float] | None = None,
    measure: str = "multiscale_atb",
    alpha: float = 0.05,
    n_simulations: int = 400,
    n_resamples: int = 1999,
    rng: Any = None,
    sample_weight: object = None,
) -> ValidityCurve:
    """How often a test accepts predictions that are further and further from calibrated.

    Parameters
    ----------
    y_proba, measure, alpha, n_resamples, rng, sample_weight
        As for `power`.
    family : {"shift", "slope", "wave"} or callable, default "shift"
        How the predictions are wrong: all too high in log-odds, too extreme, or too high and too low in turn. Or a
        function of the predictions and a strength from 0 to 1 that returns the truth, calibrated at 0.
    distances : iterable of float, optional
        Distances to calibration (distCal) at which to look. By default 8 of them, from 0 up to where hardly any is
        accepted, or as far as the family goes.
    n_simulations : int, default 400
        Simulated outcomes at each distance.

    Returns
    -------
    ValidityCurve
        ``distance``, ``acceptance`` and its ``standard_error``; prints as a table.

    Notes
    -----
    At distance 0 the acceptance is 1 - alpha. A test is worth the more, the faster it falls. The distance is that of
    the true probabilities, free of noise; strengths in between are interpolated.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> p = np.linspace(0.05, 0.95, 300)
    >>> curve = tc.validity_curve(p, distances=[0, 0.05, 0.1], n_simulations=100, n_resamples=499, rng=0)
    >>> print(curve)
    How often multiscale_atb at level 0.05 accepts 300 predictions, by how far they are from calibrated (shift):
      distance 0       accepted 97%
      distance 0.05    accepted 65%
      distance 0.1     accepted 2%
    """
    check_choice(measure, "measure", TESTS)
    alpha = check_level(alpha, "alpha")
    n_simulations = check_whole(n_simulations, "n_simulations", 1)
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    refuse_few_draws(n_resamples, alpha)
    p = check_proba(y_proba, "y_proba").astype(np.float64)
    name, wrong, most = check_family(family, FAMILIES, p)
    sample = Sample.from_checked(check_report(p, p, sample_weight, name="y_proba"))
    design = _Power(sample, measure, alpha, n_resamples, check_rng(rng))
    distance_of = _distances(sample, wrong, most)
    refuse_unreachable(np.zeros(1), distance_of[1][-1])
    wanted = _checked_distances(distances, distance_of[1][-1]) if distances is not None else None
    if wanted is None:
        wanted = np.linspace(0.0, _far_enough(design, wrong, distance_of, n_simulations), 8)
    strengths = np.interp(wanted, distance_of[1], distance_of[0])
    found = [design.against(wrong(sample.p.astype(np.float64), float(b)), n_simulations) for b in strengths]
    return ValidityCurve(
        distance=wanted,
        acceptance=np.array([1.0 - estimate.value for estimate in found]),
        standard_error=np.array([estimate.standard_error for estimate in found]),
        measure=measure,
        alpha=alpha,
        family=name,
        n=sample.n,
    )


def _distances(sample: Sample, wrong: Family, most: float) -> tuple[_Array, _Array]:
    """Strengths and the distances to calibration they lead to, close enough together to interpolate."""
    strengths = np.concatenate([[0.0], np.geomspace(1e-3 * most, most, 40)])
    p = sample.p.astype(np.float64)
    found = [0.0]
    for strength in strengths[1:]:
        truth = Sample(sample.p, np.clip(wrong(p, float(strength)), 0.0, 1.0), sample.w if sample.weighted else None)
        found.append(max(distcal_of(truth), found[-1]))
    return strengths, np.array(found)


def _checked_distances(distances: Iterable[float], most: float) -> _Array:
    wanted = np.array([float(d) for d in distances])
    refuse_unreachable(wanted, most)
    return wanted


def _far_enough(design: _Power, wrong: Family, distance_of: tuple[_Array, _Array], n_simulations: int) -> float:
    """The first distance at which hardly any is accepted, or the largest there is."""
    p = design.sample.p.astype(np.float64)
    for strength, distance in zip(*distance_of, strict=True):
        if design.against(wrong(p, float(strength)), min(n_simulations, 100)).value >= 0.98:
            return float(distance)
    return float(distance_of[1][-1])


# --- without simulation -----------------------------------------------------------------------------------------------


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
    def of(cls, summary: Sample | Sketch, measure: str) -> Self:
        """From sorted rows or a sketch, with neighbours as one where there are many."""
        if isinstance(summary, Sketch):
            table, rows = summary.table(), bucket_sample(summary)
            x, share, noise = table["mean_proba"], table["weight"], table["ww"]
        else:
            rows, x = summary, summary.groups.r
            starts = rows.starts
            share, noise = rows.groups.w, np.add.reduceat(rows.w**2, starts)
        share, noise = share / np.sum(share), noise / np.sum(share) ** 2
        if len(x) > _PLANNING_CELLS:
            cell = equal_cells(share * (x * (1.0 - x) + 1e-12), _PLANNING_CELLS)
            x = np.bincount(cell, share * x) / np.bincount(cell, share)
            share, noise = (np.bincount(cell, mass).astype(np.float64) for mass in (share, noise))
        phi = axes_of(x, Tents.of(measure, rows))
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
        """How the mean error varies along the axes if outcomes follow the truth.

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
    y_proba : array-like of shape (n,)
        Predicted probabilities. Outcomes are not needed.
    power : float, default 0.8
        How probable it should be that the test finds the error.
    alpha : float, default 0.05
        Level of the test.
    measure : {"multiscale_atb", "atb", "shifted_grid_ubse"}, default "multiscale_atb"
        The test's statistic.
    sample_weight : array-like of shape (n,), optional
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
    With these 2,000 predictions a test at level 0.05 finds, 80% of the time, a mean error of
      0.03 if all are too high,
      0.03 if all are too low,
      0.031 if too extreme.
    """
    check_choice(measure, "measure", TENTS)
    power, alpha = check_level(power, "power"), check_level(alpha, "alpha")
    p = check_proba(y_proba, "y_proba")
    sample = Sample.from_checked(check_report(p, p, sample_weight, name="y_proba"))
    return detectable_of(sample, power, alpha, measure)


def detectable_of(summary: Sample | Sketch, power: float, alpha: float, measure: str) -> DetectableError:
    """The same for sorted rows or a sketch."""
    design = Design.of(summary, measure)
    found = [math.nan] * 3
    if design.information >= _LEAST_INFORMATION:
        ways: list[tuple[Family, float]] = [FAMILIES["shift"], (_lowered, FAMILIES["shift"][1]), FAMILIES["slope"]]
        found = [_least(design, wrong, most, power, design.critical(alpha)) for wrong, most in ways]
    high, low, extreme = found
    return DetectableError(high, low, extreme, power, alpha, measure, summary.n, design.information)


def _lowered(p: _Array, strength: float) -> _Array:
    """All predictions too low, by the same amount in log-odds."""
    return _shifted(p, -strength)


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
    """How many rows a test needs to find an error of this size.

    Parameters
    ----------
    effect : float
        Mean of ``|prediction - truth|``, as a probability: 0.02 for 2 points.
    power : float, default 0.8
        How probable it should be that the test finds it.
    alpha : float, default 0.05
        Level of the test.
    family : {"shift", "slope", "wave"} or callable, default "shift"
        How the predictions are wrong, as for `validity_curve`.
    y_proba : array-like, optional
        Predictions like those to come; any number of them. By default spread evenly over [0, 1].
    measure : {"multiscale_atb", "atb", "shifted_grid_ubse"}, default "multiscale_atb"
        The test's statistic.

    Returns
    -------
    int
        Rows.

    Notes
    -----
    As for `detectable_error`; for fewer than 100 rows or so, check with `power`.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.required_sample_size(0.05), tc.required_sample_size(0.02)
    (643, 4021)
    """
    check_choice(measure, "measure", TENTS)
    power, alpha, effect = check_level(power, "power"), check_level(alpha, "alpha"), check_level(effect, "effect")
    p = check_proba(y_proba, "y_proba").astype(np.float64) if y_proba is not None else _evenly()
    _, wrong, most = check_family(family, FAMILIES, p)
    sample = Sample.from_checked(check_report(p, p, name="y_proba"))
    design = Design.of(sample, measure)

    def short(strength: float) -> float:
        return design.error(wrong(design.x, strength)) - effect

    refuse_unreachable(np.array([effect]), effect + short(most))
    truth = wrong(design.x, float(optimize.brentq(short, 0.0, most, xtol=1e-12)))
    critical = design.critical(alpha)

    def missing(log_times: float) -> float:
        return design.power(truth, critical, math.exp(log_times)) - power

    fewest = -math.log(sample.n)
    if missing(fewest) >= 0.0:
        return 1
    times = math.exp(optimize.brentq(missing, fewest, 40.0, xtol=1e-6))
    return math.ceil(times * sample.n * (1.0 - 1e-9))


def _evenly() -> _Array:
    return (np.arange(_EVENLY) + 0.5) / _EVENLY
