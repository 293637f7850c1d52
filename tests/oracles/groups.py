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


def group_hash(text):
    """The first 8 bytes of the MD5 of the text of a group, as an integer."""
    import hashlib

    return int(hashlib.md5(text.encode()).hexdigest()[:16], 16)


def signed_sums(y, p, w, texts, cell):
    """Sums of s w (p - y) and of s w in 128 slots and 128 cells, row by row; `cell` returns that of a prediction."""
    sums = np.zeros((128, 128, 2))
    for row, text in enumerate(texts):
        bits = format(group_hash(text), "064b")
        slot, sign = int(bits[:7], 2), -1.0 if bits[7] == "1" else 1.0
        weight = 1.0 if w is None else w[row]
        sums[slot, cell(p[row])] += sign * weight * np.array([p[row] - y[row], 1.0])
    return sums
