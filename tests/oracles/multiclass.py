"""Slow, obvious versions of everything for many classes, written from the definitions. They know nothing of truthcal.

`y` holds class numbers from 0, `p` rows of probabilities, `w` weights.
"""

import itertools
import math

import numpy as np


def errors(y, p):
    """c = p - y for each row, a list of lists."""
    return [[pk - (k == yi) for k, pk in enumerate(row)] for yi, row in zip(y, p, strict=True)]


def dot(a, b):
    return sum(x * z for x, z in zip(a, b, strict=True))


def one_minus_tv(p, q):
    """1 minus the total variation distance of two rows that add up to 1."""
    return 1 - sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def overlap(p, q):
    """The same number for rows that add up to 1, and what is computed for rounded ones."""
    return sum(min(a, b) for a, b in zip(p, q, strict=True))


def product_kernel(p, q):
    return math.prod(1 - abs(a - b) for a, b in zip(p, q, strict=True))


def kernel_sum(y, p, w, kernel):
    c, pairs = errors(y, p), itertools.product(range(len(y)), repeat=2)
    total = sum(w[i] * w[j] * dot(c[i], c[j]) * kernel(p[i], p[j]) for i, j in pairs)
    return total / sum(w) ** 2


def vector(y, p, w):
    return kernel_sum(y, p, w, overlap)


def canonical(y, p, w):
    return kernel_sum(y, p, w, product_kernel)


def vector_by_thresholds(y, p, w):
    """Sum over classes k of the integral over q of |sum over p_k > q of w c|^2, which is constant between cuts."""
    c, total = errors(y, p), 0
    for k in range(len(p[0])):
        cuts = sorted({0, 1, *(row[k] for row in p)})
        for left, right in itertools.pairwise(cuts):
            some = [i for i in range(len(y)) if p[i][k] >= right]
            sums = [sum(w[i] * c[i][j] for i in some) for j in range(len(p[0]))]
            total += (right - left) * dot(sums, sums)
    return total / sum(w) ** 2


def atb(y, p, w):
    """Binary ATB as a kernel sum."""
    c = [wi * (pi - yi) for yi, pi, wi in zip(y, p, w, strict=True)]
    pairs = itertools.product(range(len(y)), repeat=2)
    return sum(c[i] * c[j] * (1 - abs(p[i] - p[j])) for i, j in pairs) / sum(w) ** 2


def classwise(y, p, w):
    n_classes = len(p[0])
    return sum(atb([yi == k for yi in y], [row[k] for row in p], w) for k in range(n_classes)) / n_classes


def top_label(y, p, w):
    """ATB of the first of the most probable classes."""
    top = [row.index(max(row)) for row in (list(row) for row in p)]
    return atb([yi == t for yi, t in zip(y, top, strict=True)], [max(row) for row in p], w)


DEFINITIONS = {"vector": vector, "classwise": classwise, "canonical": canonical, "top_label": top_label}


def influence(y, p, w):
    """(1/W) sum over j of w_j <c_i, c_j> times the kernel, for each row."""
    c = errors(y, p)
    return [sum(w[j] * dot(c[i], c[j]) * overlap(p[i], p[j]) for j in range(len(y))) / sum(w) for i in range(len(y))]


def brier(y, p):
    """Half of |p - y|^2 for each row."""
    return [dot(c, c) / 2 for c in errors(y, p)]


def noise_floor(p, w):
    return sum(wi**2 * (1 - dot(row, row)) for row, wi in zip(p, w, strict=True)) / sum(w) ** 2


def outcomes(p):
    """All outcomes of rows, each with its probability."""
    for y in itertools.product(range(len(p[0])), repeat=len(p)):
        yield y, math.prod(row[yi] for row, yi in zip(p, y, strict=True))


# --- the test ---------------------------------------------------------------------------------------------------------

WIDTHS = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]


def tents(u, v):
    """The mixture of tents of information_atb between two positions on the information axis."""
    shares = [(2 * h / 3 - h**2 / 6) ** -0.25 for h in WIDTHS]
    return sum(s * max(0, 1 - abs(u - v) / h) for s, h in zip(shares, WIDTHS, strict=True)) / sum(shares)


def information_positions(cell, p_k, w):
    """For one class: the share of the information below each row's cell, with half of the cell's own."""
    v = [wi * pi * (1 - pi) for wi, pi in zip(w, p_k, strict=True)]
    total = sum(v)
    if total == 0:
        return [0.0] * len(v)
    return [
        (
            sum(vj for vj, c in zip(v, cell, strict=True) if c < ci)
            + sum(vj for vj, c in zip(v, cell, strict=True) if c == ci) / 2
        )
        / total
        for ci in cell
    ]


def row_kernels(cell, p, w):
    """For each class l, the matrix between rows of sum over k of r_kl s_k T(u_ik, u_jk)."""
    n, n_classes = p.shape
    information = [sum(w[i] * p[i, k] * (1 - p[i, k]) for i in range(n)) for k in range(n_classes)]
    tables = []
    for k in range(n_classes):
        u = information_positions(list(cell[:, k]), list(p[:, k]), list(w))
        tables.append(np.array([[tents(a, b) for b in u] for a in u]) * information[k] / sum(information))
    others = 1 / (n_classes - 1) ** 1.5
    return [sum(table * (1 if k == j else others) for k, table in enumerate(tables)) for j in range(n_classes)]


def statistic(y, cell, p, w):
    c, kernels = np.array(errors(y, p)) * w[:, None], row_kernels(cell, p, w)
    return sum(c[:, j] @ kernel @ c[:, j] for j, kernel in enumerate(kernels)) / w.sum() ** 2


def null_moments(cell, p, w):
    """Mean, and trace of the squared covariance of the mean vector, of the statistic under calibration.

    E of the statistic is tr(A C), and the variance of its normal limit 2 tr((A C)^2), for the vector of all w c of all
    rows and classes with the covariance C and the matrix A of the statistic.
    """
    n, n_classes = p.shape
    a, covariance = np.zeros((n, n_classes, n, n_classes)), np.zeros((n, n_classes, n, n_classes))
    for j, kernel in enumerate(row_kernels(cell, p, w)):
        a[:, j, :, j] = kernel / w.sum() ** 2
    for i in range(n):
        covariance[i, :, i, :] = w[i] ** 2 * (np.diag(p[i]) - np.outer(p[i], p[i]))
    product = a.reshape(n * n_classes, -1) @ covariance.reshape(n * n_classes, -1)
    return np.trace(product), np.trace(product @ product)


# --- size of the error, slope, confusion --------------------------------------------------------------------------------


def error_estimate(y, bins, p, w):
    """Root of half of the sum over bins of weight times (squared error without the pairs of a row with itself)."""
    c, total, known = np.array(errors(y, p)), 0.0, 0.0
    for k in range(p.shape[1]):
        for b in np.unique(bins[:, k]):
            some = bins[:, k] == b
            weight = w[some].sum()
            own, one = np.sum((w[some] * c[some, k]) ** 2) / weight**2, np.sum(w[some] ** 2) / weight**2
            if one < 1:
                total += weight * ((w[some] @ c[some, k] / weight) ** 2 - own) / (1 - one)
                known += weight
    return math.sqrt(max(total / known * p.shape[1] / 2, 0.0))


def log_likelihood(slope, y, p, w):
    total = 0.0
    for yi, row, wi in zip(y, p, w, strict=True):
        powers = [max(pk, 1e-6) ** slope for pk in row]
        total += wi * math.log(powers[yi] / sum(powers))
    return total


def confusion(y, p, w):
    """Predicted and observed frequency of class l, and z, with rows weighted by p_k."""
    n_classes = len(p[0])
    predicted, observed, z = np.empty((3, n_classes, n_classes))
    for k, j in itertools.product(range(n_classes), repeat=2):
        weight = sum(wi * row[k] for wi, row in zip(w, p, strict=True))
        predicted[k, j] = sum(wi * row[k] * row[j] for wi, row in zip(w, p, strict=True)) / weight
        observed[k, j] = sum(wi * row[k] * (yi == j) for yi, wi, row in zip(y, w, p, strict=True)) / weight
        variance = sum((wi * row[k]) ** 2 * row[j] * (1 - row[j]) for wi, row in zip(w, p, strict=True))
        z[k, j] = (observed[k, j] - predicted[k, j]) * weight / math.sqrt(variance)
    return predicted, observed, z
