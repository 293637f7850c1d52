"""Sample complexity: rows that estimate a population's measure to within epsilon, with probability 1 - delta.

Theorem 4.10 and Proposition 4.11 of Hartline, Hu, Wu (2025) with explicit constants: Theorem I21 in
docs/theory/inference.md, whose bounds are computed here.
"""

import math

import numpy as np

from truthcal.core.checks import invalid
from truthcal.core.params import check_choice, check_level

# Norms of the bias: the factors k and d of Theorem I21.
_NORMS = {"sqrt_atb": (1.0, 1.0), "atb_l1": (2.0, 2.0), "smcal": (2.5, 2.0)}
ESTIMATED = ("atb", *_NORMS)
# Bound of E|z - mu|^2 in its proof.
_SPREAD = 5.0 / 9.0
# Shares of epsilon that the linear part of ATB may take: each is a valid bound, and the best one is used.
_SHARES = np.linspace(0.5, 0.995, 100)


# Smaller values would need more rows than anybody has.
_LEAST_EPSILON = 1e-9


def sample_complexity(epsilon: float, delta: float, *, measure: str = "atb") -> int:
    """Number of rows that estimate a measure to within `epsilon` with probability 1 - `delta`, for any population.

    Parameters
    ----------
    epsilon : float
        Allowed difference between the measure of the rows and that of their population.
    delta : float
        Allowed probability of a larger difference.
    measure : {"atb", "sqrt_atb", "atb_l1", "smcal"}, default "atb"
        The measure: ATB, its square root, ATB_l1 or the smooth calibration error.

    Returns
    -------
    int
        A number of independent rows that suffices whatever the predictions and outcomes are. Any larger number does.

    Notes
    -----
    This concerns the estimate of a measure, for the worst population. The number of rows that a test needs to detect an
    error is `required_sample_size`; the accuracy reached with given rows is `confidence_interval`.

    For the norms the result is ``((sqrt(5 k / 9) + sqrt(d log(1/delta))) / epsilon)^2`` with (k, d) = (1, 1) for the
    root of ATB, (2, 2) for ATB_l1 and (5/2, 2) for smCal. For ATB it is about ``(4/3) log(2/delta) / epsilon^2`` for
    small epsilon; no bound for all populations can have a factor below 1.06 in place of 4/3. Proof: Theorem
    I21 in docs/theory/inference.md.
    Reference: Hartline, Hu, Wu (2025), Theorem 4.10 and Proposition 4.11, with unspecified constants.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.sample_complexity(0.05, 0.05), tc.sample_complexity(0.05, 0.05, measure="atb_l1")
    (2288, 4906)
    """
    epsilon, delta = check_level(epsilon, "epsilon"), check_level(delta, "delta")
    if epsilon < _LEAST_EPSILON:
        raise invalid("epsilon", f"must be at least {_LEAST_EPSILON:g}; got {epsilon:g}.")
    if check_choice(measure, "measure", ESTIMATED) != "atb":
        k, d = _NORMS[measure]
        return math.ceil(((math.sqrt(_SPREAD * k) + math.sqrt(-d * math.log(delta))) / epsilon) ** 2)
    enough = 1
    while _atb_failure(enough, epsilon) > delta:
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (middle, enough) if _atb_failure(middle, epsilon) > delta else (too_few, middle)
    return enough


def _atb_failure(n: int, epsilon: float) -> float:
    """Sample complexity: a bound on the probability that ATB of n rows is off by `epsilon` or more; falls with n."""
    below = min(_mcdiarmid(n, epsilon), math.exp(-n * epsilon**2 / (4.0 / 3.0 + 140.0 / 81.0 * epsilon)))
    linear = _SHARES * epsilon
    noise = np.maximum(np.sqrt(n * (epsilon - linear)) - math.sqrt(_SPREAD), 0.0)
    above = np.min(np.exp(-n * linear**2 / (4.0 / 3.0 + linear / 3.0)) + np.exp(-(noise**2)))
    return below + min(_mcdiarmid(n, epsilon - _SPREAD / n), float(above))


def _mcdiarmid(n: int, deviation: float) -> float:
    """Sample complexity: McDiarmid's bound on the probability of a deviation of ATB from its mean."""
    return math.exp(-8.0 / 25.0 * n * max(deviation, 0.0) ** 2)
