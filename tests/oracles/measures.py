"""Slow, obvious versions of every measure, written from the definitions. They know nothing of truthcal.

All of them take plain sequences and work with floats as well as with fractions.Fraction, where they are exact.
"""

import itertools
import math
from fractions import Fraction


def exact(values):
    """Floats as the fractions they really are."""
    return [Fraction(float(value)) for value in values]


def two_bins(p, y, w, q):
    """Sums of w (p - y) below the threshold q and from it on."""
    below = sum(wi * (pi - yi) for pi, yi, wi in zip(p, y, w, strict=True) if pi < q)
    above = sum(wi * (pi - yi) for pi, yi, wi in zip(p, y, w, strict=True) if pi >= q)
    return below, above


def threshold_average(p, y, w, loss):
    """Integral over q in [0, 1] of loss(below, above): constant between neighbouring predictions, so a finite sum."""
    cuts = sorted({0, 1, *p})
    return sum((right - left) * loss(*two_bins(p, y, w, right)) for left, right in itertools.pairwise(cuts))


def atb(y, p, w=None):
    w = w or [1] * len(p)
    return threshold_average(p, y, w, lambda a, b: a * a + b * b) / sum(w) ** 2


def atb_l1(y, p, w=None):
    w = w or [1] * len(p)
    return threshold_average(p, y, w, lambda a, b: abs(a) + abs(b)) / sum(w)


def atb_and_atb_l1_by_scan(y, p, w):
    """Both measures by one scan over the sorted rows: the same definition, for thousands of rows."""
    total = sum(wi * (pi - yi) for pi, yi, wi in zip(p, y, w, strict=True))
    squares, sizes, below, position = 0, 0, 0, 0
    for pi, yi, wi in sorted(zip(p, y, w, strict=True)):
        squares += (pi - position) * (below**2 + (total - below) ** 2)
        sizes += (pi - position) * (abs(below) + abs(total - below))
        below += wi * (pi - yi)
        position = pi
    squares += (1 - position) * total**2
    sizes += (1 - position) * abs(total)
    return squares / sum(w) ** 2, sizes / sum(w)


def kernel_sum(y, p, w, kernel):
    c = [wi * (pi - yi) for pi, yi, wi in zip(p, y, w, strict=True)]
    pairs = itertools.product(range(len(p)), repeat=2)
    return sum(c[s] * c[t] * kernel(p[s], p[t]) for s, t in pairs) / sum(w) ** 2


def squares_in_bins(y, p, w, labels):
    """UBSE of one partition."""
    bins = {}
    for yi, pi, wi, label in zip(y, p, w, labels, strict=True):
        bins[label] = bins.get(label, 0) + wi * (pi - yi)
    return sum(b * b for b in bins.values()) / sum(w) ** 2


def shifted_grid_ubse(y, p, w=None, width=None):
    """Average over the shift of a grid: the partition changes only where a prediction meets a grid line."""
    w = w or [1] * len(p)
    width = width or Fraction(0.1)
    cuts = sorted({0 * width, width, *(pi % width for pi in p)})
    total = 0
    for left, right in itertools.pairwise(cuts):
        middle = (left + right) / 2
        total += (right - left) * squares_in_bins(y, p, w, [math.floor((pi - middle) / width) for pi in p])
    return total / width


def quantile_sizes(n, k):
    return [(j + 1) * n // k - j * n // k for j in range(k)]


def quantile_ubse(y, p, k):
    """Average over every order of the rows that is sorted by prediction."""
    n = len(p)
    labels = [j for j, size in enumerate(quantile_sizes(n, k)) for _ in range(size)]
    total, count = 0, 0
    for order in itertools.permutations(range(n)):
        if all(p[a] <= p[b] for a, b in itertools.pairwise(order)):
            total += squares_in_bins([y[i] for i in order], [p[i] for i in order], [1] * n, labels)
            count += 1
    return total / count


def quantile_ece(y, p, w=None, k=None):
    if w is not None:
        y, p = repeat(y, w), repeat(p, w)
    k = k or round(len(p) ** (1 / 3))
    return k * quantile_ubse(y, p, k)


def repeat(values, w):
    return [value for value, times in zip(values, w, strict=True) for _ in range(int(times))]


def tent(width):
    return lambda a, b: max(0, 1 - abs(a - b) / width)


def null_variance(p, w, kernel):
    """Variance of sum k w w' c c' when outcomes follow p, by going through all of them."""
    values, chances = [], []
    for y in itertools.product((0, 1), repeat=len(p)):
        values.append(kernel_sum(y, p, w, kernel) * sum(w) ** 2)
        chances.append(math.prod(pi if yi else 1 - pi for pi, yi in zip(p, y, strict=True)))
    mean = sum(v * c for v, c in zip(values, chances, strict=True))
    return sum((v - mean) ** 2 * c for v, c in zip(values, chances, strict=True))


def multiscale_shares(p, w):
    """Width -> share: one over the leading part of the null deviation."""
    a = [wi * pi * (1 - pi) for pi, wi in zip(p, w, strict=True)]
    pairs = list(itertools.product(range(len(p)), repeat=2))
    noise = {}
    for width in (Fraction(1, 2**k) for k in range(6)):
        k = tent(width)
        noise[width] = math.sqrt(sum(k(p[s], p[t]) ** 2 * a[s] * a[t] for s, t in pairs))
    if not all(noise.values()):  # no noise at all, or so little that it underflows
        return {Fraction(1): 1.0}
    total = sum(1 / sd for sd in noise.values())
    return {width: 1 / sd / total for width, sd in noise.items()}


def multiscale_atb(y, p, w=None):
    w = w or [1] * len(p)
    shares = multiscale_shares(p, w)
    return sum(share * kernel_sum(y, p, w, tent(width)) for width, share in shares.items())


def information_positions(p, w):
    """Share of the information w p(1 - p) at smaller predictions, with half of that at equal ones."""
    information = [wi * pi * (1 - pi) for pi, wi in zip(p, w, strict=True)]
    if not sum(information):
        return p
    below = [sum(a for q, a in zip(p, information, strict=True) if q < pi) for pi in p]
    equal = [sum(a for q, a in zip(p, information, strict=True) if q == pi) for pi in p]
    return [(b + e / 2) / sum(information) for b, e in zip(below, equal, strict=True)]


def information_atb(y, p, w=None):
    """Six tents on the information axis, each with a share of one over the square root of its noise there."""
    w = w or [1] * len(p)
    x = information_positions(p, w)
    shares = {h: (2 * h / 3 - h**2 / 6) ** -0.25 for h in (0.5**k for k in range(6))}
    total = 0
    for h, share in shares.items():
        k = tent(Fraction(h))
        pairs = itertools.product(zip(x, p, y, w, strict=True), repeat=2)
        total += share * float(sum(k(a, b) * v * w * (p - y) * (q - z) for (a, p, y, w), (b, q, z, v) in pairs))
    return total / sum(shares.values()) / float(sum(w)) ** 2


def expectation(truth, value):
    """Mean of value(outcomes) when outcomes follow truth, by going through all of them."""
    total = 0
    for y in itertools.product((0, 1), repeat=len(truth)):
        total += math.prod(t if yi else 1 - t for t, yi in zip(truth, y, strict=True)) * value(y)
    return total


# One oracle for each row of MEASURES, called as oracle(y, p, w).
ORACLES = {
    "atb": atb,
    "atb_l1": atb_l1,
    "multiscale_atb": multiscale_atb,
    "information_atb": information_atb,
    "quantile_ece": quantile_ece,
    "shifted_grid_ubse": shifted_grid_ubse,
}
