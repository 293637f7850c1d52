"""Grouped rows, literally: one vector for each group, signs flipped one group at a time."""

import numpy as np


def cell_vectors(y, p, w, groups, low, high):
    """The sums of w (p - y) / W and of w / W of each group in each cell [low, high], by a loop over rows."""
    w = np.ones(len(p)) if w is None else w
    place = {name: k for k, name in enumerate(sorted(set(groups)))}
    z, h = np.zeros((len(place), len(low))), np.zeros((len(place), len(low)))
    for row in range(len(p)):
        cell = next(k for k in range(len(low)) if low[k] <= p[row] <= high[k])
        group = place[groups[row]]
        z[group, cell] += w[row] * (p[row] - y[row]) / w.sum()
        h[group, cell] += w[row] / w.sum()
    return z, h


def flipped_squares(z, kernel, n_resamples, rng):
    """Squared lengths of the sum of z_g with random signs, for the kernel between cells."""
    squares = []
    for _ in range(n_resamples):
        total = np.zeros(z.shape[1])
        for vector in z:
            total += rng.choice([-1.0, 1.0]) * vector
        squares.append(total @ kernel @ total)
    return np.array(squares)
