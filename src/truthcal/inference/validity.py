"""Validity of a calibration test: how often it accepts samples from calibrated and from miscalibrated populations.

ATB with any threshold from 1/n to 2/n has a gap of at least 1/2 at the distance 3.67 / sqrt(n): Theorem I10 in
docs/theory/inference.md. No test has a larger gap than `best_possible_gap`: Theorem I20.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.checks import check_proba, check_report, invalid
from truthcal.core.params import check_choice, check_number, check_positive, check_rng, check_whole, shown
from truthcal.core.progress import progress
from truthcal.core.sample import Sample
from truthcal.inference.power import FAMILIES, Family, check_family, distances_by_strength
from truthcal.measures.registry import MEASURES
from truthcal.results.measures import Estimate
from truthcal.results.power import Validity

_Array = NDArray[np.float64]
_Counts = NDArray[np.int64]
TestLike = str | Callable[[Any, Any], Any]
Sampler = Callable[[int, np.random.Generator], tuple[Any, Any]]

# Samples up to which all are enumerated, for fast and for slow tests: about a second.
_MOST_SAMPLES, _MOST_SLOW_SAMPLES = 1 << 14, 1 << 10
# Largest number of rows for which the binomial distribution has ten correct digits.
_MOST_TRIALS = 10**12
# A value equal to the threshold up to rounding is accepted.
_ROUNDING = 1e-12
_POPULATIONS: dict[str, _Array] = {
    "one prediction": np.array([0.5]),
    "evenly spread": (np.arange(50) + 0.5) / 50,
    "below 0.1": (np.arange(50) + 0.5) / 500,
}


class Population:
    """A finite distribution of predictions and outcomes: kinds of events with their frequencies and true probabilities.

    A sample is a vector of counts: of the negative outcomes of each kind, then of the positive ones.
    """

    def __init__(self, p: _Array, truth: _Array, weight: _Array | None = None) -> None:
        order = np.argsort(p, kind="stable")
        share = np.ones(len(p)) if weight is None else weight
        share = share[order] / np.sum(share)
        self.p, self.truth, self.share = p[order], truth[order], share
        self.chances = np.concatenate([share * (1.0 - self.truth), share * self.truth])
        self.chances /= np.sum(self.chances)

    def draw(self, rng: np.random.Generator, n_rows: int, count: int) -> Iterator[_Counts]:
        """Draw `count` samples of independent rows."""
        return (rng.multinomial(n_rows, self.chances) for _ in range(count))

    def number(self, n_rows: int) -> int:
        """Number of different samples."""
        kinds = int(np.count_nonzero(self.chances))
        return math.comb(n_rows + kinds - 1, kinds - 1)

    def all(self, n_rows: int) -> Iterator[tuple[_Counts, float]]:
        """Yield all samples with their probabilities."""
        possible = np.flatnonzero(self.chances)
        bars = itertools.combinations(range(n_rows + len(possible) - 1), len(possible) - 1)
        for bar in bars:
            counts = np.zeros(len(self.chances), np.int64)
            counts[possible] = np.diff([-1, *bar, n_rows + len(possible) - 1]) - 1
            ways = special.gammaln(n_rows + 1.0) - np.sum(special.gammaln(counts + 1.0))
            yield counts, math.exp(ways + np.sum(special.xlogy(counts, self.chances)))

    def sample(self, counts: _Counts) -> Sample:
        """Sorted rows of a sample, in which weights are repetitions."""
        p, y = np.repeat(self.p, 2), np.tile([0.0, 1.0], len(self.p))
        w = counts.reshape(2, -1).T.ravel()
        used = w > 0
        return Sample(p[used] + 0.0, y[used], w[used].astype(np.float64))

    def rows(self, counts: _Counts, rng: np.random.Generator) -> tuple[NDArray[np.uint8], _Array]:
        """Outcomes and predictions of a sample, row by row, in random order."""
        kinds = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        return (kinds >= len(self.p)).astype(np.uint8), self.p[kinds % len(self.p)]


def acceptance_probability(
    y_proba: object,
    truth: object = None,
    test: TestLike = "atb",
    *,
    n_rows: int,
    threshold: float | None = None,
    n_simulations: int = 1000,
    rng: Any = 0,
    sample_weight: object = None,
) -> Estimate:
    """How often a test accepts a sample of independent rows from a population.

    Parameters
    ----------
    y_proba : array-like of shape (k,), or callable
        Predictions for k kinds of events. Or a sampler ``f(n_rows, rng) -> (y_true, y_proba)``, without `truth`.
    truth : array-like of shape (k,)
        True probabilities of these events.
    test : str or callable, default "atb"
        A name in `MEASURES`, or a function ``f(y_true, y_proba)``. It returns a number, which is accepted if it is at
        most `threshold`; or True or False; or a result with the attribute ``accepted``, as `linear_time_test` does.
        Rows are passed in random order, or as the sampler returns them; without a sampler the answer must not depend
        on their order.
    n_rows : int
        Number of rows in a sample.
    threshold : float, optional
        Largest number that is accepted. Omit it for a test that decides itself.
    n_simulations : int, default 1000
        Number of samples drawn if there are too many to enumerate.
    rng : int, numpy Generator or None, default 0
        Source of randomness; None draws a new seed.
    sample_weight : array-like of shape (k,), optional
        Relative frequencies of the kinds. By default all are equally frequent.

    Returns
    -------
    Estimate
        The probability, and its standard error: 0 if all samples were enumerated (up to 16,384; for slow measures and
        functions, 1,024).

    Notes
    -----
    Here predictions vary from sample to sample. `power` is for given predictions, and for tests whose threshold depends
    on them.
    Reference: Hartline, Hu, Wu (2025), Definition 2.16: accP(J; T, beta) for T = `n_rows`, beta = `threshold`.

    Examples
    --------
    >>> import truthcal as tc
    >>> print(tc.acceptance_probability([0.5], [0.5], "atb", n_rows=100, threshold=1 / 100))
    0.9648, exact
    >>> print(tc.acceptance_probability([0.5], [0.8], tc.linear_time_test, n_rows=100))
    2.49702e-05, exact
    """
    decision = _Decision(test, threshold)
    n_rows, n_simulations = check_whole(n_rows, "n_rows", 1), check_whole(n_simulations, "n_simulations", 1)
    generator = check_rng(rng)
    if callable(y_proba):
        for name, value in (("truth", truth), ("sample_weight", sample_weight)):
            if value is not None:
                raise invalid(name, "must be omitted if `y_proba` is a sampler, which draws outcomes itself.")
        return _accepted_of_sampler(y_proba, decision, n_rows, n_simulations, generator)
    if truth is None:
        raise invalid("truth", "is missing: pass the true probabilities of the events, or a sampler as `y_proba`.")
    rows = check_report(y_proba, truth, sample_weight, name="y_proba")
    population = Population(rows.p.astype(np.float64), rows.y, rows.w)
    if population.number(n_rows) <= (_MOST_SLOW_SAMPLES if decision.slow else _MOST_SAMPLES):
        cases = ((decision.value(population, counts, generator), chance) for counts, chance in population.all(n_rows))
        return Estimate(min(math.fsum(chance for value, chance in cases if decision.accepts(value)), 1.0), 0.0, 0)
    values = decision.draws(population, n_rows, n_simulations, generator)
    return _share(decision.accepts(values))


def _accepted_of_sampler(
    sampler: Sampler, decision: "_Decision", n_rows: int, count: int, rng: np.random.Generator
) -> Estimate:
    values = np.array([decision.value_of_rows(*_drawn_rows(sampler, n_rows, rng)) for _ in range(count)])
    return _share(decision.accepts(values))


def _drawn_rows(sampler: Sampler, n_rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw outcomes and predictions with a sampler, and check their number."""
    rows: Any = sampler(n_rows, rng)
    if not isinstance(rows, tuple | list) or len(rows) != 2:
        rule = "as a sampler f(n_rows, rng) must return the pair (y_true, y_proba)"
        raise invalid("y_proba", f"{rule}; it returned {shown(rows)}.", TypeError)
    counts = [len(column) if hasattr(column, "__len__") else -1 for column in rows]
    if counts != [n_rows, n_rows]:
        lengths = " and ".join("no rows" if count < 0 else f"{count} rows" for count in counts)
        raise invalid("y_proba", f"as a sampler must return {n_rows} outcomes and predictions; it returned {lengths}.")
    return rows[0], rows[1]


def _share(accepted: Any) -> Estimate:
    share, count = float(np.mean(accepted)), len(accepted)
    return Estimate(share, math.sqrt(share * (1.0 - share) / (count - 1)) if count > 1 else math.nan, count)


class _Decision:
    """A test as a number that is compared with a threshold.

    `threshold` is None if it is not known yet, or if the test decides itself; its number is then -1 (accepted) or 1.
    """

    def __init__(self, test: Any, threshold: float | None, *, needed: bool = True) -> None:
        if not callable(test):
            check_choice(test, "test", tuple(MEASURES))
        self._function = MEASURES[test].function if isinstance(test, str) else test
        self._measure = MEASURES[test] if isinstance(test, str) else None
        self._needed = needed
        self.name = test if isinstance(test, str) else str(getattr(test, "__name__", "own test"))
        self.slow = self._measure is None or self._measure.slow
        self.decides = False
        self.threshold = None if threshold is None else check_number(threshold, "threshold", -math.inf)
        if self._measure is not None and needed and threshold is None:
            raise invalid("threshold", f"is needed for the measure {test!r}: the largest value that is accepted.")

    def value(self, population: Population, counts: _Counts, rng: np.random.Generator) -> float:
        """Return the number for a sample of a population, whose rows are put in random order."""
        if self._measure is not None:
            return self._measure.of_sample(population.sample(counts))
        return self.value_of_rows(*population.rows(counts, rng))

    def value_of_rows(self, y: Any, p: Any) -> float:
        """Return the number for rows."""
        answer = self._function(y, p)
        decided = getattr(answer, "accepted", answer)
        if isinstance(decided, bool | np.bool_):
            if self.threshold is not None:
                raise invalid("threshold", f"must be omitted: {self.name} decides itself, without a threshold.")
            self.decides = True
            return -1.0 if decided else 1.0
        try:
            number = math.nan if isinstance(decided, str | bytes) else float(decided)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            rule = "must return a number, True or False, or a result with the attribute `accepted`"
            raise invalid("test", f"{rule}; it returned {shown(answer)}.", TypeError)
        if self.threshold is None and self._needed:
            raise invalid("threshold", f"is needed: {self.name} returns the number {number:g}, not True or False.")
        return number

    def draws(self, population: Population, n_rows: int, count: int, rng: np.random.Generator) -> _Array:
        """Return the numbers of random samples."""
        with progress(count, "drawing samples") as bar:
            values = []
            for counts in population.draw(rng, n_rows, count):
                values.append(self.value(population, counts, rng))
                bar.advance(1)
        return np.array(values)

    def accepts(self, values: Any) -> Any:
        """Return whether numbers are at most the threshold, up to rounding."""
        threshold = 0.0 if self.threshold is None else self.threshold
        return values <= threshold + _ROUNDING * abs(threshold)


def best_possible_gap(distance: float, n_rows: int, *, alternative: str = "two-sided") -> float:
    """Largest gap of acceptance, between calibrated and miscalibrated populations, that any test whatever can have.

    Parameters
    ----------
    distance : float
        Distance of the miscalibrated populations from calibration (distCal), at most 1/2.
    n_rows : int
        Number of independent rows that the test sees.
    alternative : {"two-sided", "greater"}, default "two-sided"
        The populations that bound the gap: all events are predicted with 1/2, and their true probability is 1/2
        (calibrated) or ``1/2 + distance`` ("greater"), or one of ``1/2 + distance`` and ``1/2 - distance``, either with
        probability 1/2 ("two-sided", which gives a smaller bound).

    Returns
    -------
    float
        Exact total variation distance of the outcomes of these populations, between 0 and 1.

    Notes
    -----
    A test accepts a calibrated population at most this much more often than the worst one at the given distance. The
    number of positive outcomes is binomial, and by Neyman and Pearson the best test compares it with a limit. At
    ``distance = C / sqrt(n_rows)`` and many rows the result is ``2 Phi(C) - 1`` for "greater", so no test can detect a
    distance that shrinks faster than 1 / sqrt(n_rows).
    Reference: Hartline, Hu, Wu (2025), Lemma 5.4, which has the pair of "greater".

    Examples
    --------
    >>> import truthcal as tc
    >>> for n in [100, 10_000, 1_000_000]:
    ...     print(f"{tc.best_possible_gap(n**-0.5, n):.4f} {tc.best_possible_gap(n**-0.6, n):.4f}")
    0.5706 0.3040
    0.5656 0.1385
    0.5656 0.0586
    """
    from scipy import stats  # takes 0.4 s, which other functions of this file do not need

    distance, n = check_number(distance, "distance", 0.0), check_whole(n_rows, "n_rows", 1, _MOST_TRIALS)
    if distance > 0.5:
        raise invalid("distance", f"must be at most 1/2, the largest one from the prediction 1/2; got {distance:g}.")
    sides = check_choice(alternative, "alternative", ("two-sided", "greater"))
    likely, unlikely = math.log1p(2.0 * distance), math.log1p(-2.0 * distance) if distance < 0.5 else -math.inf

    def ratio(k: int) -> float:
        """Logarithm of the likelihood of k positive outcomes, relative to the calibrated population."""
        up = special.xlogy(k, 1.0 + 2.0 * distance) + (unlikely * (n - k) if k < n else 0.0)
        if sides == "greater":
            return float(up)
        down = likely * (n - k) + (unlikely * k if k > 0 else 0.0)
        return float(np.logaddexp(up, down) - math.log(2.0))

    low, high = (-1 if sides == "greater" else (n - 1) // 2), n + 1  # ratio(low) <= 0 < ratio(high), by convention
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ratio(middle) <= 0.0 else (low, middle)
    least = -1 if sides == "greater" else n - low - 1
    calibrated, wrong = (stats.binom.cdf(low, n, q) - stats.binom.cdf(least, n, q) for q in (0.5, 0.5 + distance))
    return max(float(calibrated - wrong), 0.0)


def validity(
    test: TestLike = "atb",
    *,
    constant: float,
    n_rows: Iterable[int] = (400, 1600, 6400),
    threshold: Callable[[int], float] | None = None,
    populations: Mapping[str, object] | None = None,
    families: Iterable[str | Family] = tuple(FAMILIES),
    n_simulations: int = 400,
    rng: Any = 0,
) -> Validity:
    """Can a test tell calibrated populations from those at a distance of ``constant / sqrt(n_rows)``, as rows grow?

    Parameters
    ----------
    test : str or callable, default "atb"
        As for `acceptance_probability`: a measure, or your own function.
    constant : float
        The miscalibrated populations are at the distance (distCal) ``constant / sqrt(n_rows)``.
    n_rows : iterable of int, default (400, 1600, 6400)
        Numbers of rows in a sample.
    threshold : callable, optional
        Function of the number of rows that returns the largest number accepted. By default the threshold with the
        largest gap, chosen on other samples than those it is judged by.
    populations : dict from names to array-like, optional
        Predictions for equally frequent kinds of events. By default one prediction of 0.5; evenly spread ones; and
        evenly spread ones below 0.1.
    families : iterable of {"shift", "slope", "wave"} or callable
        How predictions are wrong, as for `validity_curve`. By default all three. A family that cannot reach the
        distance for some population is left out there.
    n_simulations : int, default 400
        Number of samples for each population, calibrated or not, and each number of rows.
    rng : int, numpy Generator or None, default 0
        Source of randomness; None draws a new seed.

    Returns
    -------
    Validity
        For each number of rows: the lowest acceptance rate of a calibrated population, the highest one of a
        miscalibrated population, the gap between them, and the largest gap that any test can have.

    Notes
    -----
    A measure is valid at this distance if the gap over all populations stays away from 0 as rows grow. The gap over the
    given populations is an upper bound of it. ATB is valid for `constant` = 3.67 and the threshold ``1.5 / n_rows``,
    with a gap of at least 1/2 over all populations (Theorem I10 in docs/theory/inference.md). No test is valid if the
    constant goes to 0 (`best_possible_gap`, Theorem I20). For few populations or families the gap may exceed that
    limit, which is one for all populations at this distance.
    Reference: Hartline, Hu, Wu (2025), Definition 2.17 and Theorem 5.1.

    Examples
    --------
    >>> import truthcal as tc
    >>> half = {"one prediction": [0.5]}
    >>> print(tc.validity("atb", constant=2, n_rows=[100, 400], populations=half, families=["shift"], rng=0))
    Acceptance rate of atb at a distance of 2 / sqrt(rows) from calibration:
    <BLANKLINE>
      rows  distance  calibrated  miscalibrated   gap  any test
       100       0.2        0.96           0.02  0.94      0.95
       400       0.1        0.98           0.03  0.95      0.94
    """
    constant = check_positive(constant, "constant")
    sizes = [check_whole(size, "n_rows", 1) for size in _check_list(n_rows, "n_rows", "[400, 1600]")]
    n_simulations, generator = check_whole(n_simulations, "n_simulations", 2), check_rng(rng)
    if threshold is not None and not callable(threshold):
        raise invalid("threshold", f"must be a function of the number of rows; got {shown(threshold)}.", TypeError)
    curves = _error_curves(
        _POPULATIONS if populations is None else populations, _check_list(families, "families", "['shift']")
    )
    rows = []
    for size in sizes:
        limit = None if threshold is None else check_number(threshold(size), "threshold", -math.inf)
        decision = _Decision(test, limit, needed=False)
        draw = functools.partial(decision.draws, n_rows=size, count=n_simulations, rng=generator)
        right, wrong = _populations_at(constant / math.sqrt(size), curves)
        decision.draws(right[0], size, 1, generator)  # shows whether the test needs a threshold
        if decision.threshold is None and not decision.decides:
            decision.threshold = _best_threshold(draw, right, wrong)
        low = min((_share(decision.accepts(draw(one))) for one in right), key=float)
        high = max((_share(decision.accepts(draw(one))) for one in wrong), key=float)
        rows.append((size, decision.threshold, low, high))
    return _validity_of(rows, decision.name, constant, n_simulations)


def _check_list(values: Any, name: str, example: str) -> list[Any]:
    """Check a parameter of a validity for a list that is not empty."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise invalid(name, f"must be a list, for example {example}; got {shown(values)}.", TypeError)
    entries = list(values)
    if not entries:
        raise invalid(name, f"must contain at least one entry, for example {example}; got an empty list.")
    return entries


def _validity_of(
    rows: list[tuple[int, float | None, Estimate, Estimate]], test: str, constant: float, n_simulations: int
) -> Validity:
    distance = [constant / math.sqrt(size) for size, *_ in rows]
    limits = [best_possible_gap(d, size) if d <= 0.5 else 1.0 for d, (size, *_) in zip(distance, rows, strict=True)]
    return Validity(
        n_rows=np.array([size for size, *_ in rows]),
        distance=np.array(distance),
        threshold=np.array([math.nan if threshold is None else threshold for _, threshold, *_ in rows]),
        accept_calibrated=np.array([low.value for *_, low, _ in rows]),
        accept_miscalibrated=np.array([high.value for *_, high in rows]),
        standard_error=np.array([math.hypot(low.standard_error, high.standard_error) for *_, low, high in rows]),
        best_possible=np.array(limits),
        test=test,
        constant=constant,
        n_simulations=n_simulations,
    )


def _best_threshold(draw: Callable[[Population], _Array], right: list[Population], wrong: list[Population]) -> float:
    """Threshold with the largest gap between the acceptance of calibrated and of miscalibrated populations."""
    calibrated, miscalibrated = ([np.sort(draw(one)) for one in group] for group in (right, wrong))
    tried = np.unique(np.concatenate([*calibrated, *miscalibrated]))
    low = np.min([np.searchsorted(values, tried, side="right") for values in calibrated], axis=0)
    high = np.max([np.searchsorted(values, tried, side="right") for values in miscalibrated], axis=0)
    return float(tried[np.argmax(low - high)])


_Curve = tuple[Sample, Family, tuple[_Array, _Array]]


def _error_curves(populations: Mapping[str, object], families: list[Any]) -> list[_Curve]:
    """Populations of a validity with each family of errors, and its distances to calibration by strength."""
    if not isinstance(populations, Mapping) or not populations:
        rule = "must be a dict from names to predictions, for example {'rare': [0.01, 0.02]}"
        raise invalid("populations", f"{rule}; got {shown(populations)}.", TypeError)
    curves: list[_Curve] = []
    for name, predictions in populations.items():
        p = np.sort(check_proba(predictions, f"populations[{name!r}]").astype(np.float64))
        sample = Sample(p, p, None)
        for family in families:
            _, wrong, strongest = check_family(family, p, "families")
            curves.append((sample, wrong, distances_by_strength(sample, wrong, strongest)))
    return curves


def _populations_at(distance: float, curves: list[_Curve]) -> tuple[list[Population], list[Population]]:
    """Calibrated populations, and miscalibrated ones at this distance to calibration."""
    right = {id(sample): Population(sample.p, sample.p) for sample, _, _ in curves}
    wrong = []
    for sample, family, (strengths, distances) in curves:
        if distance <= distances[-1]:
            truth = family(sample.p, float(np.interp(distance, distances, strengths)))
            wrong.append(Population(sample.p, np.clip(truth, 0.0, 1.0)))
    if not wrong:
        largest = max(distances[-1] for _, _, (_, distances) in curves)
        problem = f"makes a distance of {distance:.4g}, and these families reach {largest:.4g} at most"
        raise invalid("constant", f"{problem}. Lower it, or pass more rows.")
    return list(right.values()), wrong
