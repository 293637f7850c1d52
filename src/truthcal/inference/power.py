"""Power by simulation: how often a test rejects, and how often it accepts miscalibrated predictions."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import check_proba, check_report, invalid
from truthcal.core.parallel import one_blas_thread, random_streams
from truthcal.core.params import check_choice, check_level, check_number, check_rng, check_whole, shown
from truthcal.core.progress import progress
from truthcal.core.sample import Sample
from truthcal.inference.classical_tests import hosmer_lemeshow_values, spiegelhalter_values
from truthcal.inference.laws.redraw import Outcomes, Values, draw_from_streams
from truthcal.measures.distcal import distcal_of
from truthcal.measures.registry import MEASURES
from truthcal.results.measures import Estimate
from truthcal.results.power import ValidityCurve

_Array = NDArray[np.float64]
Family = Callable[[_Array, float], _Array]

_CLASSICAL: dict[str, Callable[[Sample], Values]] = {
    "spiegelhalter": spiegelhalter_values,
    "hosmer_lemeshow": hosmer_lemeshow_values,
}
TESTS = (*MEASURES, *_CLASSICAL)


def _shifted(p: _Array, strength: float) -> _Array:
    """Family of errors for power: all predictions too high (too low if negative) by `strength`; truths stop at 0, 1."""
    return np.clip(p - strength, 0.0, 1.0)


def _flattened(p: _Array, strength: float) -> _Array:
    """Family of errors for power: too extreme; true log-odds are (1 - strength) times the predicted ones."""
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / (1.0 + ((1.0 - p) / p) ** (1.0 - strength)) if strength < 1.0 else np.full_like(p, 0.5)


def _waving(p: _Array, strength: float) -> _Array:
    """Family of errors for power: too high and too low in turn, three times."""
    return p + strength * p * (1.0 - p) * np.sin(6.0 * math.pi * p)


# Kinds of miscalibration: the truth, given predictions and a strength (0 is calibrated); and the largest strength.
FAMILIES: dict[str, tuple[Family, float]] = {
    "shift": (_shifted, 1.0),
    "slope": (_flattened, 1.0),
    "wave": (_waving, 1.0),
}


def check_family(family: Any, p: _Array, parameter: str = "family") -> tuple[str, Family, float]:
    """Check a family of errors for power: return name, function of predictions and strength, largest strength."""
    if not callable(family):
        name = check_choice(family, parameter, tuple(FAMILIES))
        return name, *FAMILIES[name]

    def checked(p: _Array, strength: float) -> _Array:
        truth = np.asarray(family(p, strength), dtype=np.float64)
        if truth.shape != p.shape or not ((truth >= 0.0) & (truth <= 1.0)).all():
            rule = f"must return one probability in [0, 1] for each of the {len(p)} predictions"
            raise invalid(parameter, f"{rule}; at strength {strength:g} it did not.")
        return truth

    if not np.allclose(checked(p, 0.0), p, rtol=1e-9, atol=1e-12):
        raise invalid(parameter, "must return the predictions themselves at strength 0, where they are calibrated.")
    return getattr(family, "__name__", "own family"), checked, 1.0


def refuse_unreachable(distance: float, largest: float, parameter: str) -> None:
    """Reject an error whose power is requested but that a family of errors cannot reach."""
    if largest == 0.0:
        problem = "does not change these predictions, for example because they are all 0 or 1, or all 1/2"
        raise invalid("family", f"{problem}. Choose another family, or pass other predictions.")
    if distance > largest:
        rule = f"must be at most {largest:.4g}, the largest error of this family for these predictions"
        raise invalid(parameter, f"{rule}; got {distance:g}.")


@one_blas_thread()
def power(
    y_proba: object,
    truth: object,
    *,
    measure: str = "information_atb",
    alpha: float = 0.05,
    n_simulations: int = 1000,
    n_resamples: int = 4999,
    rng: Any = 0,
    sample_weight: object = None,
) -> Estimate:
    """Power of a test: how often it rejects these predictions if outcomes really follow `truth`.

    Parameters
    ----------
    y_proba : array-like of shape (n,)
        Predicted probabilities.
    truth : array-like of shape (n,)
        True probabilities of the outcomes.
    measure : str, default "information_atb"
        The statistic: a name in `MEASURES`, "spiegelhalter" (two-sided) or "hosmer_lemeshow".
    alpha : float, default 0.05
        Level of the test.
    n_simulations : int, default 1000
        Number of sets of outcomes drawn from `truth`.
    n_resamples : int, default 4999
        Number of sets of outcomes drawn from the predictions, for the null distribution.
    rng, sample_weight
        As for `calibration_test`.

    Returns
    -------
    Estimate
        The share of rejections, and its standard error.

    Notes
    -----
    This is the exact test: a simulation is rejected if its p-value ``(1 + #{redrawn >= it}) / (1 + n_resamples)`` is at
    most alpha. Predictions are the same in all simulations, so all of them share the redrawn outcomes. If the
    predictions are drawn at random too, or the threshold is given, use `acceptance_probability`.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> p = np.linspace(0.05, 0.95, 500)
    >>> result = tc.power(p, 0.5 + 0.8 * (p - 0.5), n_simulations=200, n_resamples=999, rng=0)
    >>> print(result)
    0.625, standard error 0.034 from 200 draws
    """
    alpha, n_simulations, n_resamples = _check_power_test(measure, alpha, n_simulations, n_resamples)
    sample = Sample.from_checked(check_report(y_proba, truth, sample_weight, name="y_proba"))
    return _Power(sample, measure, alpha, n_resamples, check_rng(rng)).against(sample.y, n_simulations)


def _check_power_test(measure: str, alpha: float, n_simulations: int, n_resamples: int) -> tuple[float, int, int]:
    check_choice(measure, "measure", TESTS)
    alpha, n_simulations = check_level(alpha, "alpha"), check_whole(n_simulations, "n_simulations", 1)
    n_resamples = check_whole(n_resamples, "n_resamples", 1)
    if (1 + n_resamples) * alpha < 1.0:  # no p-value could be at most alpha
        least = math.ceil(1.0 / alpha) - 1
        raise invalid("n_resamples", f"must be at least {least} for alpha = {alpha:g}; got {n_resamples}.")
    return alpha, n_simulations, n_resamples


class _Power:
    """A test of fixed predictions, with its null distribution: the sorted statistics of redrawn outcomes."""

    def __init__(
        self, sample: Sample, measure: str, alpha: float, n_resamples: int, generator: np.random.Generator
    ) -> None:
        self.sample, self.measure, self.alpha, self.generator = sample, measure, alpha, generator
        self.null = np.sort(self._draw(Outcomes(sample), n_resamples, "redrawing outcomes"))

    def against(self, truth: _Array, n_simulations: int) -> Estimate:
        """Share of rejections if outcomes follow `truth` (in the order of the sample)."""
        values = self._draw(Outcomes(self.sample, truth), n_simulations, "simulating outcomes")
        slack = np.where(np.isfinite(values), 1e-9 * np.abs(values) + 1e-14, 0.0)
        extreme = len(self.null) - np.searchsorted(self.null, values - slack)
        rejected = float(np.mean((1 + extreme) / (1 + len(self.null)) <= self.alpha * (1.0 + 1e-12)))
        error = math.sqrt(rejected * (1.0 - rejected) / (n_simulations - 1)) if n_simulations > 1 else math.nan
        return Estimate(rejected, error, n_simulations)

    def _draw(self, outcomes: Outcomes, count: int, label: str) -> _Array:
        """The statistic of `count` outcomes, from two streams on both cores."""
        streams, values = random_streams(self.generator), self._values(outcomes)
        with progress(count, label) as bar:
            redraw, work = (lambda stream, size: values(outcomes.draw(stream, size))), count * len(outcomes.r)
            return draw_from_streams(redraw, streams, count, outcomes.block, bar, work)

    def _values(self, outcomes: Outcomes) -> Values:
        if self.measure not in _CLASSICAL:
            return outcomes.values(self.measure)
        statistic_of = _CLASSICAL[self.measure](outcomes.sample)
        if self.measure == "spiegelhalter":
            return lambda positive: np.abs(statistic_of(outcomes.bias(positive)))
        return lambda positive: statistic_of(outcomes.bias(positive))


def validity_curve(
    y_proba: object,
    *,
    family: str | Family = "shift",
    distances: Iterable[float] | None = None,
    measure: str = "information_atb",
    alpha: float = 0.05,
    n_simulations: int = 400,
    n_resamples: int = 1999,
    rng: Any = 0,
    sample_weight: object = None,
) -> ValidityCurve:
    """Acceptance rate of a test as a function of the distance of the predictions from calibration.

    Parameters
    ----------
    y_proba, measure, alpha, n_resamples, rng, sample_weight
        As for `power`.
    family : {"shift", "slope", "wave"} or callable, default "shift"
        How the predictions are wrong: all too high by the same amount (but truths are at least 0), too extreme, or too
        high and too low in turn. Or a function of the predictions and a strength from 0 to 1 that returns the truth,
        calibrated at 0.
    distances : iterable of float, optional
        Distances to calibration (distCal). By default 8 of them, from 0 to the distance at which almost nothing is
        accepted, or to the largest distance of the family.
    n_simulations : int, default 400
        Number of simulations at each distance.

    Returns
    -------
    ValidityCurve
        ``distance``, ``acceptance`` and its ``standard_error``; prints as a table.

    Notes
    -----
    At distance 0 the acceptance rate is 1 - alpha. The faster it falls, the better the test. Distances are computed
    from the true probabilities, without noise; strengths in between are interpolated.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> p = np.linspace(0.05, 0.95, 300)
    >>> curve = tc.validity_curve(p, distances=[0, 0.05, 0.1], n_simulations=100, n_resamples=499, rng=0)
    >>> print(curve)
    Acceptance rate of information_atb at level 0.05 for 300 predictions, by distance to calibration (shift):
      distance 0       accepted 97%
      distance 0.05    accepted 60%
      distance 0.1     accepted 2%
    """
    alpha, n_simulations, n_resamples = _check_power_test(measure, alpha, n_simulations, n_resamples)
    p = check_proba(y_proba, "y_proba").astype(np.float64)
    name, wrong, strongest = check_family(family, p)
    sample = Sample.from_checked(check_report(p, p, sample_weight, name="y_proba"))
    design = _Power(sample, measure, alpha, n_resamples, check_rng(rng))
    distance_of = distances_by_strength(sample, wrong, strongest)
    wanted = np.array(_check_distances(distances) if distances is not None else [0.0])
    refuse_unreachable(float(wanted.max()), distance_of[1][-1], "distances")
    if distances is None:
        wanted = np.linspace(0.0, _last_distance(design, wrong, distance_of, n_simulations), 8)
    strengths = np.interp(wanted, distance_of[1], distance_of[0])
    powers = [design.against(wrong(sample.p.astype(np.float64), float(b)), n_simulations) for b in strengths]
    return ValidityCurve(
        distance=wanted,
        acceptance=np.array([1.0 - estimate.value for estimate in powers]),
        standard_error=np.array([estimate.standard_error for estimate in powers]),
        measure=measure,
        alpha=alpha,
        family=name,
        n=sample.n,
    )


def _check_distances(distances: Any) -> list[float]:
    """Check the distances of a validity curve: a list of numbers that are not negative."""
    if isinstance(distances, str) or not isinstance(distances, Iterable):
        raise invalid("distances", f"must be a list of numbers; got {shown(distances)}.", TypeError)
    numbers = [check_number(distance, "distances", 0.0) for distance in distances]
    if not numbers:
        raise invalid("distances", "must contain at least one number; got an empty list.")
    return numbers


def distances_by_strength(sample: Sample, wrong: Family, strongest: float) -> tuple[_Array, _Array]:
    """Points of a validity curve: strengths and their distances to calibration, dense enough for interpolation."""
    strengths = np.concatenate([[0.0], np.geomspace(1e-3 * strongest, strongest, 40)])
    p, distances = sample.p.astype(np.float64), [0.0]
    for strength in strengths[1:]:
        truth = Sample(sample.p, np.clip(wrong(p, float(strength)), 0.0, 1.0), sample.w if sample.weighted else None)
        distances.append(max(distcal_of(truth), distances[-1]))
    return strengths, np.array(distances)


def _last_distance(design: _Power, wrong: Family, distance_of: tuple[_Array, _Array], n_simulations: int) -> float:
    """End of a validity curve: the first distance at which almost nothing is accepted, or the largest one."""
    p = design.sample.p.astype(np.float64)
    for strength, distance in zip(*distance_of, strict=True):
        if design.against(wrong(p, float(strength)), min(n_simulations, 100)).value >= 0.98:
            return float(distance)
    return float(distance_of[1][-1])
