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
        for vector, sign in zip(z, rng.choice([-1.0, 1.0], len(z)), strict=True):
            total += sign * vector
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


def student_interval(y, p, w, groups, level):
    """Interval of the bias from group sums: Student's quantile for the effective number of groups."""
    from scipy import stats

    w = np.ones(len(p)) if w is None else w
    names = sorted(set(groups))
    sums = np.array([sum(w[i] * (p[i] - y[i]) for i in range(len(p)) if groups[i] == g) for g in names]) / w.sum()
    share = np.array([sum(w[i] for i in range(len(p)) if groups[i] == g) for g in names]) / w.sum()
    bias, one_group = sums.sum(), np.sum(share**2)
    variance = np.sum((sums - share * bias) ** 2) / (1.0 - one_group)
    reach = stats.t.ppf((1.0 + level) / 2.0, 1.0 / one_group - 1.0) * np.sqrt(variance)
    return bias - reach, bias + reach
