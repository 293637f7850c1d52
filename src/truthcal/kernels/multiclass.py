"""Loops over rows with many classes. The error of a row is the vector c = p - y, with y = 1 for its class, 0 elsewhere.

Rows of `p` are the probabilities of all classes; `y` holds the number of the class of each row, and `w` the weights.
"""

import numpy as np

from truthcal.kernels.jit import Rows, compiled, interpreted_briefly


@interpreted_briefly
def vector_integral(order: Rows, p: Rows, y: Rows, w: Rows, k: int) -> float:
    """Integral over q of |S(q)|^2 for the vector ATB: S(q) is the sum of w c over all rows with p_k > q.

    `order`: the rows in decreasing order of p_k.
    """
    n, n_classes = p.shape
    s = np.zeros(n_classes)
    total = 0.0
    for place in range(n):
        i = order[place]
        for j in range(n_classes):
            s[j] += w[i] * p[i, j]
        s[y[i]] -= w[i]
        below = p[order[place + 1], k] if place + 1 < n else 0.0
        gap = p[i, k] - below
        if gap > 0.0:
            square = 0.0
            for j in range(n_classes):
                square += s[j] * s[j]
            total += gap * square
    return total


@interpreted_briefly
def vector_influence(order: Rows, p: Rows, y: Rows, w: Rows, k: int, out: Rows) -> None:
    """Inner product of each row's error with the sum over all rows of w c min(p_k, p'_k), for the vector ATB.

    That sum is the integral of S(q) up to p_k. `order`: the rows in decreasing order of p_k.
    """
    n, n_classes = p.shape
    s, integral = np.zeros(n_classes), np.zeros(n_classes)
    for i in range(n):
        for j in range(n_classes):
            s[j] += w[i] * p[i, j]
        s[y[i]] -= w[i]
    below = 0.0
    for place in range(n - 1, -1, -1):
        i = order[place]
        gap = p[i, k] - below
        below = p[i, k]
        product = 0.0
        for j in range(n_classes):
            integral[j] += gap * s[j]
            product += p[i, j] * integral[j]
            s[j] -= w[i] * p[i, j]
        s[y[i]] += w[i]
        out[i] = product - integral[y[i]]


@interpreted_briefly
def canonical_sums(p: Rows, y: Rows, w: Rows, first: int, last: int) -> float:
    """Sum over pairs (s, t) of w w' <c, c'> prod_k (1 - |p_k - p'_k|) for the canonical ATB, t <= s, first <= s < last.

    Pairs of different rows count twice.
    """
    n_classes = p.shape[1]
    total = 0.0
    for s in range(first, last):
        for t in range(s + 1):
            kernel, product = 1.0, 0.0
            for j in range(n_classes):
                kernel *= 1.0 - abs(p[s, j] - p[t, j])
                product += p[s, j] * p[t, j]
            product -= p[s, y[t]] + p[t, y[s]]
            if y[s] == y[t]:
                product += 1.0
            total += (1.0 if s == t else 2.0) * w[s] * w[t] * kernel * product
    return total


@interpreted_briefly
def add_errors(cell: Rows, p: Rows, y: Rows, w: Rows, out: Rows) -> None:
    """Add up the errors of rows with many classes in cells: each row is in one cell for each class (`cell[i, k]`)."""
    n, n_classes = p.shape
    for i in range(n):
        for k in range(n_classes):
            a = cell[i, k]
            for j in range(n_classes):
                out[a, j] += w[i] * p[i, j]
            out[a, y[i]] -= w[i]


@compiled
def add_redrawn(cell: Rows, cumulative: Rows, w: Rows, uniform: Rows, out: Rows) -> None:
    """Draw a class for each row with its predicted probabilities, and add its weight to the row's cells.

    `cumulative`: cumulative probabilities of each row. `uniform`: a number in [0, 1) for each draw and row. `out` has a
    table of cells and classes for each draw.
    """
    n, n_classes = cumulative.shape
    for draw in range(uniform.shape[0]):
        for i in range(n):
            u = uniform[draw, i] * cumulative[i, n_classes - 1]
            y = 0
            while y < n_classes - 1 and cumulative[i, y] <= u:
                y += 1
            for k in range(n_classes):
                out[draw, cell[i, k], y] += w[i]


@interpreted_briefly
def add_to_pairs(bucket: Rows, p: Rows, y: Rows, w: Rows, sums: Rows, squares: Rows, low: Rows, high: Rows) -> None:
    """Add rows with many classes to the buckets of each class, for the vector ATB of a sketch.

    `bucket[i, k]`: bucket of p_ik. `sums[k, b, l]`: sums of w c_l, of w c_l p_k and of the positive w c_l. `squares`:
    sums of w^2 |c|^2. `low`, `high`: smallest and largest p_k.
    """
    n, n_classes = p.shape
    for i in range(n):
        square = 0.0
        for j in range(n_classes):
            c = p[i, j] - (1.0 if y[i] == j else 0.0)
            square += c * c
        square *= w[i] * w[i]
        for k in range(n_classes):
            b = bucket[i, k]
            x = p[i, k]
            squares[k, b] += square
            low[k, b] = min(low[k, b], x)
            high[k, b] = max(high[k, b], x)
            for j in range(n_classes):
                error = w[i] * (p[i, j] - (1.0 if y[i] == j else 0.0))
                sums[k, b, j, 0] += error
                sums[k, b, j, 1] += error * x
                sums[k, b, j, 2] += max(error, 0.0)
