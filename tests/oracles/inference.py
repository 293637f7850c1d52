"""Slow, obvious versions of the tests of calibration, by going through all outcomes. They know nothing of truthcal.

Predictions and weights are Fractions, so that outcomes that score the same do so exactly, unless the statistic itself
is a float.
"""

import functools
import itertools
import math
from fractions import Fraction


def fractions(values):
    """Floats as the fractions they really are."""
    return [Fraction(value) for value in values]


def null_distribution(p, w, statistic):
    """[(chance, value)] over all outcomes that calibrated predictions can have, the outcome being 0 or 1 in each row."""
    p, w = fractions(p), None if w is None else fractions(w)
    found = []
    for y in itertools.product((0, 1), repeat=len(p)):
        chance = math.prod(pi if yi else 1 - pi for pi, yi in zip(p, y, strict=True))
        if chance:
            found.append((chance, statistic(y, p, w)))
    return found


def tails(distribution, observed, slack=Fraction(0)):
    """P(value >= observed) and P(value <= observed); a value within `slack` of the observed one counts as equal."""
    low, high = observed - slack, observed + slack
    if isinstance(observed, Fraction):  # comparing two of them is fast
        low, high = Fraction(low), Fraction(high)
    greater = math.fsum(float(chance) for chance, value in distribution if value >= low)
    less = math.fsum(float(chance) for chance, value in distribution if value <= high)
    return greater, less


def mean_and_sd(distribution):
    """Mean and standard deviation, whose terms are exact and rounded once."""
    mean = math.fsum(float(chance * value) for chance, value in distribution)
    return mean, math.sqrt(math.fsum(float(chance) * (float(value) - mean) ** 2 for chance, value in distribution))


def spiegelhalter(y, p, w=None):
    """z: the Brier score's distance from its expectation, in standard deviations."""
    w = w or [1] * len(p)
    above = sum(wi * ((yi - pi) ** 2 - pi * (1 - pi)) for yi, pi, wi in zip(y, p, w, strict=True))
    variance = sum((wi * (1 - 2 * pi)) ** 2 * pi * (1 - pi) for pi, wi in zip(p, w, strict=True))
    return float(above) / math.sqrt(variance)


@functools.cache
def equal_count_bins(p, n_bins):
    """Label of each row: rows in order, equal predictions together, each in the bin where the middle of its tie falls."""
    labels = []
    for pi in p:
        below, equal = sum(q < pi for q in p), sum(q == pi for q in p)
        middle = Fraction(2 * below + equal, 2 * len(p))  # in shares of all rows
        labels.append(math.floor(middle * n_bins))
    return labels


def hosmer_lemeshow(y, p, w=None, n_bins=10):
    """Sum over bins of (observed - expected)^2 / (sum of w^2 times q (1 - q)), q the mean prediction of the bin."""
    w = w or [1] * len(p)
    labels = equal_count_bins(tuple(p), n_bins)
    total = 0
    for label in sorted(set(labels)):
        rows = [(yi, pi, wi) for yi, pi, wi, own in zip(y, p, w, labels, strict=True) if own == label]
        gap = sum(wi * (yi - pi) for yi, pi, wi in rows)
        q = sum(wi * pi for _, pi, wi in rows) / sum(wi for _, _, wi in rows)
        variance = sum(wi**2 for _, _, wi in rows) * q * (1 - q)
        if gap:
            total += gap**2 / variance if variance else math.inf
    return total
