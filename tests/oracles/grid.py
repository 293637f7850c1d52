"""The grid of a sketch by the words of docs/reference/sketch-format.md, in exact fractions."""

import math
from fractions import Fraction

# From, to, and buckets per 1 / n_buckets, below 1/2.
PIECES = (
    (Fraction(0), Fraction(1, 2**13), Fraction(256)),
    (Fraction(1, 2**13), Fraction(1, 2**11), Fraction(64)),
    (Fraction(1, 2**11), Fraction(1, 2**7), Fraction(16)),
    (Fraction(1, 2**7), Fraction(1, 2**6), Fraction(8)),
    (Fraction(1, 2**6), Fraction(1, 2**4), Fraction(1)),
    (Fraction(1, 2**4), Fraction(1, 2), Fraction(1, 2)),
)


def bucket_of(p, n_buckets):
    """Count the edges up to p: those above 1/2 mirror those below."""
    p = Fraction(p)
    if p == 1:
        return n_buckets - 1
    if n_buckets < 128:
        return math.floor(p * n_buckets)
    if p < Fraction(1, 2):
        return sum(math.floor(buckets) for buckets in _buckets_below(p, n_buckets))
    return n_buckets - sum(math.ceil(buckets) for buckets in _buckets_below(1 - p, n_buckets))


def _buckets_below(p, n_buckets):
    return [(min(p, end) - start) * finer * n_buckets for start, end, finer in PIECES if p > start]


def edges_of(n_buckets):
    """All edges, as fractions."""
    if n_buckets < 128:
        return [Fraction(k, n_buckets) for k in range(n_buckets + 1)]
    below = []
    for start, end, finer in PIECES:
        width = 1 / (finer * n_buckets)
        below += [start + k * width for k in range(int((end - start) / width))]
    return [*below, Fraction(1, 2), *(1 - edge for edge in reversed(below))]
