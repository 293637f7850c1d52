"""Slow, obvious versions of what an audit computes: numbers derived from ATB, and expectations over all samples."""

import functools
import itertools
import math
from fractions import Fraction

from oracles import inference, measures


def brier(y, p):
    """Mean squared error."""
    return float(sum((pi - yi) ** 2 for yi, pi in zip(y, inference.fractions(p), strict=True))) / len(p)


def sqrt_atb(y, p):
    """Square root of ATB."""
    return math.sqrt(measures.atb(y, p))


def atb_ratio(y, p):
    """ATB over the ATB that calibrated predictions have on average."""
    return measures.atb(y, p) / (sum(pi * (1 - pi) for pi in p) / len(p) ** 2)


def excess(y, p):
    """Mean of c_i c_j (1 - |p_i - p_j|) over all pairs of different rows."""
    p = inference.fractions(p)
    pairs = itertools.permutations([(pi, pi - yi) for yi, pi in zip(y, p, strict=True)], 2)
    return float(sum(c * d * (1 - abs(a - b)) for (a, c), (b, d) in pairs) / (len(p) * (len(p) - 1)))


def sqrt_excess(y, p):
    """Square root of the excess; 0 if it is negative."""
    return math.sqrt(max(excess(y, p), 0.0))


def error_size(y, p):
    """Root mean square error of a single group, and at least the bias: the mean of c_i c_j over different rows."""
    c = [pi - yi for yi, pi in zip(y, inference.fractions(p), strict=True)]
    square = sum(a * b for a, b in itertools.permutations(c, 2)) / (len(c) * (len(c) - 1))
    return max(math.sqrt(max(square, 0)), abs(float(sum(c)) / len(c)))


def pvalue(y, p):
    """Probability, if predictions are calibrated, of an information ATB at least as large."""
    distribution = inference.null_distribution(
        p, None, lambda y, p, w: measures.information_atb(y, list(map(float, p)))
    )
    return inference.tails(distribution, measures.information_atb(y, p), Fraction(1, 10**12))[0]


def pass_rate(y, p):
    """1 if the p-value is above 0.05."""
    return float(pvalue(y, p) > 0.05)


def ex_ante(truth, report, n_rows, value):
    """Expected value over all sequences of kinds of events, each equally likely, and all outcomes."""
    sequences = list(itertools.product(range(len(truth)), repeat=n_rows))
    means = [
        measures.expectation([truth[k] for k in kinds], lambda y, kinds=kinds: value(y, [report[k] for k in kinds]))
        for kinds in sequences
    ]
    return math.fsum(means) / len(sequences)


def best_policy(truth, grid, value):
    """Least expected value of all policies: maps from the outcomes so far to a report in the grid."""
    pasts = [past for t in range(len(truth)) for past in itertools.product((0, 1), repeat=t)]
    value = functools.cache(value)
    return min(
        expected_of_policy(truth, dict(zip(pasts, reports, strict=True)), value)
        for reports in itertools.product(grid, repeat=len(pasts))
    )


def expected_of_policy(truth, policy, value):
    """Expected value of the reports of a policy: a dict from the outcomes so far to a report."""
    return measures.expectation(truth, lambda y: value(tuple(y), tuple(policy[tuple(y[:t])] for t in range(len(y)))))
