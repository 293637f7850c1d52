"""Loops of smECE: sums of Gaussians by moments per cell (a fast Gauss transform), and integrals of their size.

Positions are in units of the cell width. The moments of a cell are sums of c d^p, d the distance from its centre. The
centre of a cell with a single prediction is that prediction, and it has one moment.
"""

import numpy as np

from truthcal.kernels.jit import Rows, compiled

# For Gaussians at least as wide as a cell, 14 moments have a relative error of (1/2)^14 / sqrt(14!), about 2e-10.
MOMENTS = 14
# Standard deviations beyond which a Gaussian is ignored: less than 1e-8 of its mass.
REACH = 5.8
# Steps in a cell in which the sum may change its sign.
_STEPS = 12
# Gauss-Legendre nodes and weights on [0, 1].
_X, _W = (0.5 * np.polynomial.legendre.leggauss(8)[0] + 0.5, 0.5 * np.polynomial.legendre.leggauss(8)[1])


@compiled
def sum_moments(r: Rows, c: Rows, cells: int, cell: Rows, centre: Rows, moments: Rows, order: Rows, signs: Rows) -> int:
    """Sum the moments of c in each nonempty cell of smECE, `cells` equal parts of [0, 1]; returns the number of cells.

    order: number of moments used. signs: 1 if a cell has positive c, 2 if negative, 3 if both.
    """
    count = -1
    first = 0
    while first < r.size:
        here = min(int(r[first] * cells), cells - 1)
        last = first + 1
        while last < r.size and min(int(r[last] * cells), cells - 1) == here:
            last += 1
        count += 1
        cell[count] = here
        centre[count] = r[first] * cells if last == first + 1 else here + 0.5
        order[count] = 1 if last == first + 1 else moments.shape[1]
        signs[count] = 0
        moments[count, :] = 0.0
        for i in range(first, last):
            d, term = r[i] * cells - centre[count], c[i]
            signs[count] |= (term > 0.0) + 2 * (term < 0.0)
            for p in range(order[count]):
                moments[count, p] += term
                term *= d
        first = last
    return count + 1


@compiled
def merge_cell_pairs(count: int, cell: Rows, centre: Rows, moments: Rows, order: Rows, signs: Rows) -> int:
    """Merge the cells of smECE in pairs, in place; returns the new number of cells."""
    size = moments.shape[1]
    merged, new = -1, np.empty(size)
    for k in range(count):
        wider, place, sign = cell[k] >> 1, 0.5 * centre[k], signs[k]
        alone = not (k + 1 < count and cell[k + 1] >> 1 == wider) and not (merged >= 0 and cell[merged] == wider)
        middle = place if alone and order[k] == 1 else wider + 0.5
        for p in range(size):  # distances from the middle are d/2 + place - middle; expand their powers
            term, total = 1.0, 0.0
            for q in range(p, -1, -1):  # binomial(p, q) (place - middle)^(p - q) 2^-q m_q
                total += term * moments[k, q] * 0.5**q
                term *= (place - middle) * q / (p - q + 1)
            new[p] = total
        if merged < 0 or cell[merged] != wider:
            merged += 1
            cell[merged], centre[merged], signs[merged] = wider, middle, 0
            order[merged] = 1 if alone and order[k] == 1 else size
            moments[merged, :] = 0.0
        signs[merged] |= sign
        for p in range(size):
            moments[merged, p] += new[p]
    return merged + 1


@compiled
def gaussian_sum(x: float, centre: Rows, moments: Rows, order: Rows, first: int, last: int, ratio: float) -> float:
    """Sum of smECE's Gaussians of cells first..last at x, up to the factor 1/sqrt(2 pi) per cell width.

    ratio: width of a cell over the standard deviation; moments are scaled by ratio^p / p!.
    """
    total = 0.0
    for k in range(first, last):
        z = (x - centre[k]) * ratio
        if abs(z) > REACH + 0.5:
            continue
        here, before, part = 1.0, 0.0, 0.0  # Hermite polynomials by their recurrence
        for p in range(order[k]):
            part += moments[k, p] * here
            here, before = z * here - p * before, here
        total += part * np.exp(-0.5 * z * z)
    return total * ratio


@compiled
def absolute_quadratic(left: float, middle: float, right: float) -> float:
    """Integral of |quadratic through three equally spaced values| over [0, 1], for steps of smECE in a cell."""
    a, b = 2.0 * (left + right - 2.0 * middle), 4.0 * middle - 3.0 * left - right
    lower, upper = 1.0, 1.0
    under = b * b - 4.0 * a * left
    if under > 0.0:
        q = -0.5 * (b + (np.sqrt(under) if b >= 0.0 else -np.sqrt(under)))
        one, two = (q / a if a != 0.0 else 2.0), (left / q if q != 0.0 else 2.0)
        lower, upper = min(max(min(one, two), 0.0), 1.0), min(max(max(one, two), 0.0), 1.0)
    total = 0.0
    for s, t in ((0.0, lower), (lower, upper), (upper, 1.0)):
        total += abs(left * (t - s) + b * (t * t - s * s) / 2.0 + a * (t * t * t - s * s * s) / 3.0)
    return total


@compiled
def cell_integral(start: float, centre: Rows, moments: Rows, order: Rows, first: int, last: int, ratio: float) -> float:
    """Integral of |smoothed bias| over one cell of smECE: by quadrature if it keeps its sign, otherwise in steps."""
    total, smallest, largest = 0.0, np.inf, -np.inf
    for k in range(_X.size):
        value = gaussian_sum(start + _X[k], centre, moments, order, first, last, ratio)
        total += _W[k] * value
        smallest, largest = min(smallest, value), max(largest, value)
    if smallest > 0.1 * largest or largest < 0.1 * smallest:  # far enough from 0 to keep its sign between the nodes
        return abs(total)
    total = 0.0
    left = gaussian_sum(start, centre, moments, order, first, last, ratio)
    for k in range(_STEPS):
        middle = gaussian_sum(start + (k + 0.5) / _STEPS, centre, moments, order, first, last, ratio)
        right = gaussian_sum(start + (k + 1.0) / _STEPS, centre, moments, order, first, last, ratio)
        total += absolute_quadratic(left, middle, right) / _STEPS
        left = right
    return total


@compiled
def smoothed_error(
    centre: Rows, moments: Rows, order: Rows, signs: Rows, ratio: float, cells: float, begin: float, end: float
) -> float:
    """Integral of smECE: the absolute sum of all Gaussians over the part of [0, cells] from `begin` to `end`.

    Mirror images have 4 added to their signs. Cells beyond the reach of each other are handled separately, and need no
    integration if all c have one sign.
    """
    n, reach = centre.size, REACH / ratio + 0.5
    total, first = 0.0, 0
    while first < n:
        last, sign = first, 0
        while last < n and (last == first or centre[last] - centre[last - 1] <= 2.0 * reach):
            sign |= signs[last] & 3
            last += 1
        part = 0.0
        if sign == 3:
            start = max(np.floor(centre[first] - reach), begin, 0.0)
            stop = min(np.ceil(centre[last - 1] + reach), end, cells)
            left, right = first, first
            while start < stop:
                while left < last and centre[left] < start - reach:
                    left += 1
                right = max(left, right)
                while right < last and centre[right] <= start + 1.0 + reach:
                    right += 1
                part += cell_integral(start, centre, moments, order, left, right, ratio)
                start += 1.0
            part /= np.sqrt(2.0 * np.pi)
        else:
            for k in range(first, last):
                if signs[k] < 4 and begin <= centre[k] < end:
                    part += abs(moments[k, 0])
        total += part
        first = last
    return total
