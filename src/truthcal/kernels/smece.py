"""Loops of smECE: sums of Gaussians by moments per cell (a fast Gauss transform), and integrals of their size.

Positions are in units of the cell width. The moments of a cell are sums of c d^p, d the distance from its centre. The
centre of a cell with a single prediction is that prediction, and it has one moment.
"""

import math

import numpy as np

from truthcal.kernels.jit import Rows, compiled

# For Gaussians at least as wide as a cell, 14 moments have a relative error of (1/2)^14 / sqrt(14!), about 2e-10.
MOMENTS, _MOMENT_ERROR = 14, 2.1e-10
# Standard deviations beyond which a Gaussian is ignored: less than 1e-8 of its mass.
REACH = 5.8
# Steps in a cell in which the sum may change its sign.
_STEPS = 12
# Their ends and middles; the last three are not used, but a multiple of four is faster.
_PLACES = np.arange(2 * _STEPS + 4) / (2.0 * _STEPS)
# Gauss-Legendre nodes and weights on [0, 1].
_X, _W = (0.5 * np.polynomial.legendre.leggauss(8)[0] + 0.5, 0.5 * np.polynomial.legendre.leggauss(8)[1])


def moments_needed(ratio: float) -> int:
    """Number of moments with this error, for smECE's Gaussians with a standard deviation of 1 / ratio cells."""
    errors = ((ratio / 2.0) ** n / math.sqrt(math.factorial(n)) for n in range(MOMENTS))
    return next((n for n, error in enumerate(errors) if error <= _MOMENT_ERROR), MOMENTS)


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
        scale = 1.0
        for p in range(size):
            new[p] = scale * moments[k, p]
            scale *= 0.5
        # Distances from the middle are d/2 + shift: expand their powers, like rows of Pascal's triangle.
        shift = place - middle
        for row in range(size - 1 if shift != 0.0 else 0):
            for p in range(size - 1, row, -1):
                new[p] += shift * new[p - 1]
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
def gaussian_sums(
    x: Rows, centre: Rows, moments: Rows, order: Rows, first: int, last: int, ratio: float, total: Rows
) -> None:
    """Sums of smECE's Gaussians of cells first..last at each x, up to the factor 1/sqrt(2 pi) per cell width.

    ratio: width of a cell over the standard deviation; moments are scaled by ratio^p / p!. Four x at a time, whose
    recurrences do not wait for each other: a third of the time.
    """
    for j in range(0, x.size, 4):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for k in range(first, last):
            z0, z1 = (x[j] - centre[k]) * ratio, (x[j + 1] - centre[k]) * ratio
            z2, z3 = (x[j + 2] - centre[k]) * ratio, (x[j + 3] - centre[k]) * ratio
            if z0 < -REACH - 0.5 or z3 > REACH + 0.5:  # x is increasing
                continue
            a0, a1, a2, a3 = 1.0, 1.0, 1.0, 1.0  # Hermite polynomials by their recurrence
            b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for p in range(order[k]):
                moment, degree = moments[k, p], np.float64(p)
                t0, t1, t2, t3 = t0 + moment * a0, t1 + moment * a1, t2 + moment * a2, t3 + moment * a3
                a0, b0 = z0 * a0 - degree * b0, a0
                a1, b1 = z1 * a1 - degree * b1, a1
                a2, b2 = z2 * a2 - degree * b2, a2
                a3, b3 = z3 * a3 - degree * b3, a3
            s0, s1 = s0 + t0 * math.exp(-0.5 * z0 * z0), s1 + t1 * math.exp(-0.5 * z1 * z1)
            s2, s3 = s2 + t2 * math.exp(-0.5 * z2 * z2), s3 + t3 * math.exp(-0.5 * z3 * z3)
        total[j], total[j + 1], total[j + 2], total[j + 3] = s0 * ratio, s1 * ratio, s2 * ratio, s3 * ratio


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
def cell_integral(
    start: float, centre: Rows, moments: Rows, order: Rows, first: int, last: int, ratio: float, values: Rows
) -> float:
    """Integral of |smoothed bias| over one cell of smECE: by quadrature if it keeps its sign, otherwise in steps."""
    gaussian_sums(start + _X, centre, moments, order, first, last, ratio, values)
    total, smallest, largest = 0.0, np.inf, -np.inf
    for k in range(_X.size):
        total += _W[k] * values[k]
        smallest, largest = min(smallest, values[k]), max(largest, values[k])
    if smallest > 0.1 * largest or largest < 0.1 * smallest:  # far enough from 0 to keep its sign between the nodes
        return abs(total)
    gaussian_sums(start + _PLACES, centre, moments, order, first, last, ratio, values)
    total = 0.0
    for k in range(_STEPS):
        total += absolute_quadratic(values[2 * k], values[2 * k + 1], values[2 * k + 2]) / _STEPS
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
    total, first, values = 0.0, 0, np.empty(_PLACES.size)
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
                part += cell_integral(start, centre, moments, order, left, right, ratio, values)
                start += 1.0
            part /= np.sqrt(2.0 * np.pi)
        else:
            for k in range(first, last):
                if signs[k] < 4 and begin <= centre[k] < end:
                    part += abs(moments[k, 0])
        total += part
        first = last
    return total
