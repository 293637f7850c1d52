"""The evidence of a monitor from its definition, row by row, start time by start time and tilt by tilt."""

import math

from oracles.grid import bucket_of, edges_of

SIZES = {0.005: 0.03, 0.02: 0.07, 0.06: 0.20, 0.14: 0.30, 0.32: 0.25, 0.8: 0.10, 2.0: 0.05}
EDGES = [float(edge) for edge in edges_of(128)]


def tilts():
    """All (prior, function of the bucket's centre)."""
    shapes = [(0.55, lambda x: 1.0), (0.25, lambda x: min(max(math.log(x / (1 - x)), -4.0), 4.0) / 2)]
    for scale in (4, 8):
        shapes += [
            (0.10 / (scale + 1), lambda x, scale=scale, k=k: max(1 - abs(x * scale - k), 0.0)) for k in range(scale + 1)
        ]
    return [
        (share * part / 2, lambda x, a=sign * size, f=shape: a * f(x))
        for share, shape in shapes
        for size, part in SIZES.items()
        for sign in (1, -1)
    ]


def start_weight(s):
    """The weight of a start time."""
    if s == 0:
        return 0.67
    group = s // 32

    def power(s):
        return math.gcd(s, 32)

    share = power(s) / sum(power(t) for t in range(32 * group, 32 * group + 32) if t > 0)
    if group < 256:
        mass = 0.95 / (group + 1) / sum(1 / (b + 1) for b in range(256))
    else:
        mass = 0.05 * math.log(256) / ((group + 1) * math.log(group + 1) ** 2)
    return 0.33 * mass * share


def is_kept(s, now):
    """Whether a start time is kept: for 32 windows times the largest power of two that divides it."""
    return s == 0 or now - s < 32 * (s & -s)


def group_factor(rows, theta):
    """The mean over the rows (p, y) of a group of their factors."""
    factors = []
    for p, y in rows:
        k = bucket_of(p, 128)
        t = theta((EDGES[k] + EDGES[k + 1]) / 2)
        factors.append(math.exp(t * y) / (1 + p * (math.exp(t) - 1)))
    return sum(factors) / len(factors)


def e_value(windows, now):
    """The evidence of groups of rows by window, {window: [[(p, y), ...], ...]}, without grouping by buckets."""
    kept = [s for s in range(now + 1) if is_kept(s, now)]
    total = 0.33 * (
        0.05 + 0.95 * (1 - sum(1 / (b + 1) for b in range(now // 32 + 1)) / sum(1 / (b + 1) for b in range(256)))
    )
    for prior, theta in tilts():
        product = {s: 1.0 for s in kept}
        for window, groups in windows.items():
            for rows in groups:
                factor = group_factor(rows, theta)
                for s in kept:
                    if window >= s:
                        product[s] *= factor
        total += sum(start_weight(s) * prior * product[s] for s in kept)
    return total
