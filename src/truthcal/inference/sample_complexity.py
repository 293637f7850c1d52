"""Sample complexity: rows that estimate a population's measure to within epsilon, with probability 1 - delta.

Theorem 4.10 and Proposition 4.11 of Hartline, Hu, Wu (2025) with explicit constants. Proof. Rows (p, y) are independent
draws, c = p - y. There are vectors f(p) of length 1 with <f(p), f(q)> = 1 - |p - q|, so ATB = |M|^2 for a sample and
|m|^2 for the population, where z = c f(p), M is the mean of z over the rows, and m = E z. Put s = |m|, X = |M - m|.

(1) The z lie in a set of diameter sqrt 2, so replacing one of n rows moves X by at most sqrt(2)/n: if c >= 0 >= c' with
    b = p, a = 1 - p', then |z - z'|^2 = (a + b)^2 + 2ab(1 - a - b) <= 2 for a + b >= 1 (smallest ab: a = 1 or b = 1),
    and |z - z'|^2 <= (a + b)^2 <= 1 otherwise; for equal signs it is at most 1.
(2) n E X^2 = E|z - m|^2 <= 5/9: with o = (f(1) - f(0))/3, E|z - m|^2 <= E|z - o|^2, and |z - o|^2 = 2/9 + (2x - x^2)/3,
    x = |c|. So E X <= sqrt(5/(9n)), and 0 <= E ATB - s^2 <= 5/(9n).
(3) For x f(x) and any p, q: x p (1 - |x - p|) + x (1 - q)(1 - |x - q|) <= x ((1 + x)^2 + (2 - x)^2)/4 <= 5/4. So the
    values of <v, z>, for any fixed v in the convex hull of the z, lie in an interval of length 5/4, and replacing one
    row moves ATB by |<M + M', z - z'>|/n <= 5/(2n). McDiarmid: a deviation of ATB above, or below, its mean by t or
    more has probability at most exp(-8 n t^2/25).
(4) V = <m, z> has mean s^2, V <= s, and -V <= max (1 - q) x (1 - |x - q|) = 8/27. So the variance of 2V is at most
    4 (s - s^2)(s^2 + 8/27) <= 2/3, 2V - 2s^2 <= 2(s - s^2) <= 1/2 and 2s^2 - 2V <= 70/27. Bernstein: the mean of 2V is
    above its expectation by t or more with probability at most exp(-n t^2/(4/3 + t/3)), below it with probability at
    most exp(-n t^2/(4/3 + 140t/81)). |M|^2 - s^2 = (mean of 2V - 2s^2) + X^2, so the second bounds the lower tail of
    ATB, and the first one, together with (1) and (2), the upper tail. (Largest variance of 2V found: 0.533, with 79% of
    rows at p = 1, y = 0 and 21% at p = 0.65, y = 1. Largest n E X^2 found: 0.536.)
(5) The root of ATB, ATB_l1 and smCal are norms N of the bias, so the sample's value differs from the population's by at
    most Y = N(noise). By (2) and N^2 <= k ATB with k = 1, 2, 5/2, E Y <= sqrt(5k/(9n)). Replacing a row moves Y by
    at most sqrt(2)/n, 2/n, 2/n (one row has N <= |c|, so two have at most 2). McDiarmid: with probability 1 - delta,
    Y <= E Y + sqrt(d log(1/delta)/n), where d = 1, 2, 2. []
"""

import math

import numpy as np

from truthcal.core.checks import invalid
from truthcal.core.params import check_choice, check_level

# Norms of the bias: the factors k and d of the proof.
_NORMS = {"sqrt_atb": (1.0, 1.0), "atb_l1": (2.0, 2.0), "smcal": (2.5, 2.0)}
ESTIMATED = ("atb", *_NORMS)
# Bound of E|z - m|^2 in the proof.
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
    small epsilon; no bound for all populations can have a factor below 1.06 in place of 4/3. The proof is in the source
    of this module.
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
