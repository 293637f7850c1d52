"""Loops for tails of quadratic forms in normal variables: the saddlepoint, and the integral along a contour through it.

A form is Q = sum of r (X + d)^2, X independent standard normals. Here z is in units in which the moment generating
function has the factors (1 - r z)^(-1/2), and the threshold x is halved accordingly. `squares` are d^2.
"""

import cmath
import math

import numpy as np

from truthcal.kernels.jit import Rows, compiled

# The contour ends where the integrand falls below e^-42 = 6e-19 of its size at the saddlepoint.
_NEGLIGIBLE = math.exp(-42.0)
# A contour on which the integrand grows by more than this factor loses digits: another one is tried.
_TOLERATED = math.exp(1.0)
# Halving the step squares the error of the trapezoid rule: two results this close differ only by rounding.
_AGREEMENT = 1e-8
_FIRST_STEP, _MOST_NODES, _MOST_HALVINGS, _SHORT = 0.25, 400, 9, 32
# Factors of a product, and the size from which on a factor is taken alone.
_FACTORS, _HUGE = 16, 1e15
_SMALLEST = math.ulp(0.0)


@compiled
def log_factors(z: complex, scales: Rows, squares: Rows, n_near: int) -> complex:
    """Sum over scales r of the log of a factor of the moment generating function at z.

    The first `n_near` scales add -1/2 log(1 - r z) + 1/2 d^2 r z / (1 - r z), the others that less 1/2 r z (1 + d^2):
    -1/2 (log(1 - r z) + r z) + 1/2 d^2 (r z)^2 / (1 - r z).

    One logarithm of a product of 16 factors 1 - r z takes a fifth of the time of one for each. `circles` counts how
    often the angle of the product passes pi; a factor turns it by less than pi, to the side of the sign of r. A factor
    that is so large that the product might overflow is taken alone.
    """
    x, y = z.real, z.imag
    size = math.hypot(x, y)
    real = lost = imag = shift = turn = circles = 0.0
    p, q, factors = 1.0, 0.0, 0
    for j in range(scales.size):
        a, b = x * scales[j], y * scales[j]
        gap, huge = 1.0 - a, abs(scales[j]) * size > _HUGE
        if factors >= _FACTORS or (huge and factors > 0):
            term = -0.5 * math.log(math.hypot(p, q)) - lost
            real, before = real + term, real
            lost = (real - before) - term  # compensated: thousands of near scales would cost three digits
            imag += 0.5 * math.atan2(q, p)
            p, q, factors = 1.0, 0.0, 0
        p, q, side = p * gap - q * b, p * b + q * gap, q
        circles += (side >= 0.0 > q) * (b > 0.0) - (side < 0.0 <= q) * (b < 0.0)
        factors += _FACTORS if huge else 1
        if j >= n_near:
            shift += a
            turn += b
            if squares[j] != 0.0:
                weight, square, cross = 0.5 * squares[j] / (gap * gap + b * b), a * a - b * b, 2.0 * a * b
                real += weight * (square * gap - cross * b)
                imag += weight * (square * b + cross * gap)
        elif squares[j] != 0.0:
            inverse = 0.5 * squares[j] / complex(gap, -b)  # divides without overflow
            real += inverse.real - 0.5 * squares[j]
            imag += inverse.imag
    real -= 0.5 * math.log(math.hypot(p, q)) + 0.5 * shift + lost
    imag += 0.5 * math.atan2(q, p) - 0.5 * turn + math.pi * circles
    return complex(real, imag)


@compiled
def saddlepoint(x: float, scales: Rows, squares: Rows) -> tuple[float, float]:
    """Saddlepoint of a quadratic form's tail: the minimum s > 0 of the log integrand on the real axis, and its width.

    Newton's method in a bracket. s need not be exact: any path nearby gives the same integral.
    """
    top, mean, variance, total = scales[0], 0.0, 0.0, 0.0
    for j in range(scales.size):
        top = max(top, scales[j])
        mean += scales[j] * (1.0 + squares[j])
        variance += scales[j] * scales[j] * (2.0 + 4.0 * squares[j])
        total += squares[j]
    # Without positive scales the slope is positive where |x| exceeds a bound on all other terms.
    low, high = 0.0, 1.0 / top if top > 0.0 else (0.5 * scales.size + 0.25 * total + 1.0) / abs(x)
    spread = 0.5 * math.sqrt(variance)
    excess = (x - 0.5 * mean) / spread
    s = 0.5 * (excess + math.hypot(excess, 2.0)) / spread  # the solution for a normal Q
    s = s / (1.0 + s / high)
    curvature = 1.0
    for _ in range(200):
        slope, curvature = -1.0 - s * x, 1.0  # derivatives of the log integrand, times s and s^2
        for j in range(scales.size):
            gap = 1.0 - scales[j] * s
            v = scales[j] * s / gap
            slope += 0.5 * v * (1.0 + squares[j] / gap)
            curvature += 0.5 * v * v * (1.0 + 2.0 * squares[j] / gap)
        step = -slope / curvature
        if abs(step) * math.sqrt(curvature) < 1e-3:
            break
        low, high = (s, high) if slope < 0.0 else (low, s)
        proposal = s * (1.0 + step)
        if low < proposal < high and (0.5 * s < proposal < 1.5 * s or high < 8.0 * low):
            s = proposal
        elif low == 0.0:
            s = s / 8.0
        else:
            s = math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
    return s, s / math.sqrt(curvature)


@compiled
def contour_value(
    u: float,
    cosine: float,
    sine: float,
    s: float,
    width: float,
    x: float,
    origin: float,
    scales: Rows,
    squares: Rows,
    n_near: int,
) -> complex:
    """Integrand times dz/du on a hyperbola, relative to its absolute value at u = 0, where it is i.

    The integrand is M(z) exp(-x z) / z, M the moment generating function. The path is z(u) = s + width (cosh(u + i
    angle) - cos(angle)) / sin(angle): it leaves s vertically and bends to the right if the angle is below pi/2, to the
    left if above. Equal steps in u grow with the distance from s, so that power laws decay as fast as exponentials.
    """
    up, half = math.sinh(u), math.sinh(0.5 * u)
    rise = 2.0 * half * half  # cosh(u) - 1, without cancellation
    z = complex(s + width / sine * rise * cosine, width * up)
    log = log_factors(z, scales, squares, n_near) - x * z - cmath.log(z)
    size = math.exp(min(log.real - origin, 100.0))  # a path that grows this much is rejected; avoid overflow
    turned = complex(up * cosine / sine, 1.0 + rise)
    return complex(size * math.cos(log.imag), size * math.sin(log.imag)) * turned


@compiled
def first_nodes(
    angle: float, s: float, width: float, x: float, origin: float, scales: Rows, squares: Rows, n_near: int
) -> tuple[float, int]:
    """Sum of `contour_value` at the coarsest nodes until it is negligible, and their number; 0 if it grows."""
    cosine, sine, total = math.cos(angle), math.sin(angle), 0.0
    for k in range(_MOST_NODES):
        value = contour_value(_FIRST_STEP * k, cosine, sine, s, width, x, origin, scales, squares, n_near)
        size = abs(value)
        total += value.imag
        if size < _NEGLIGIBLE:
            return total, k + 1
        if size > _TOLERATED:
            return 0.0, 0
    return 0.0, 0


@compiled
def contour_integral(x: float, s: float, width: float, scales: Rows, squares: Rows, n_near: int) -> float:
    """Log of a quadratic form's tail: integral of exp(log integrand) / (2 pi i) along the shortest path; nan if none.

    Far out exp(-x z) decays on the side of the sign of x, but closer the sum of many small scales can reverse that: the
    first short path without growth is taken, else the shortest. Vertical ones never grow.
    """
    origin = (log_factors(complex(s, 0.0), scales, squares, n_near) - x * s).real - math.log(s)
    if origin + math.log(width) < -1000.0:
        # Below the smallest float: the leading term is enough to search for a quantile.
        return origin + math.log(width / math.sqrt(2.0 * math.pi))
    angle, total, nodes, side = 0.0, 0.0, 0, math.copysign(1.0, x)
    for bend in (side, -side, 0.5 * side, -0.5 * side, 0.0):
        tried = math.pi * (0.5 - bend / 6.0)
        found, count = first_nodes(tried, s, width, x, origin, scales, squares, n_near)
        if count > 0 and (nodes == 0 or count < nodes):
            angle, total, nodes = tried, found, count
            if nodes <= _SHORT:
                break
    if nodes == 0:
        return math.nan
    step, total, nodes = _FIRST_STEP, total - 0.5, nodes - 1
    result, change = step * total, math.inf
    for _ in range(_MOST_HALVINGS):
        for k in range(nodes):
            total += contour_value(
                step * (k + 0.5), math.cos(angle), math.sin(angle), s, width, x, origin, scales, squares, n_near
            ).imag
        step, nodes = 0.5 * step, 2 * nodes
        before, last = result, change
        result = step * total
        change = abs(result - before)
        # Stop at the rounding error, where halving no longer helps.
        if change <= _AGREEMENT * abs(result) or (change <= 1e-7 * abs(result) and change > 0.1 * last):
            break
    return origin + math.log(width * max(result, _SMALLEST) / math.pi)


@compiled
def log_far_tail(x: float, scales: Rows, squares: Rows) -> float:
    """Log of P(Q > x) of a quadratic form Q, for x not below its mean. Scales are not 0."""
    if scales.size == 0 or math.isinf(x):
        return -math.inf
    top, above = scales[0], 0.0
    for j in range(scales.size):
        top = max(top, scales[j])
        above += max(scales[j], 0.0) * (1.0 + squares[j])
    if top < 0.0 and x > -1e-250:
        return -math.inf
    # By Chernoff's bound the probability is below e^-10000, and the saddlepoint might round onto the branch point.
    if x > 2.0 * above + 4e4 * top > 0.0:
        return -math.inf
    s, width = saddlepoint(0.5 * x, scales, squares)
    # For scales with small r s (far from their branch points) log(1 - r z) + r z is summed, and the sum of r is
    # subtracted from x beforehand, which avoids cancellation. Near ones come first.
    r, d = np.empty_like(scales), np.empty_like(squares)
    n_near = last = int(np.int64(0))  # a literal 0 would compile everything below twice
    rest = 0.0
    for far in (False, True):
        for j in range(scales.size):
            if (abs(scales[j]) * s < 0.5) == far:
                r[last], d[last] = scales[j], squares[j]
                last += 1
                if far:
                    rest += scales[j] * (1.0 + squares[j])
                else:
                    n_near = last
    return contour_integral(0.5 * (x - rest), s, width, r, d, n_near)


@compiled
def log_upper_tails(x: Rows, starts: Rows, scales: Rows, squares: Rows, wanted: Rows, out: Rows) -> None:
    """Log of P(Q > x) of each wanted quadratic form, from the tail on x's side of the mean: the other is at most 0.7.

    Form g has the scales from ``starts[g]`` to ``starts[g + 1]``; those that are 0 are left out.
    """
    for g in range(x.size):
        if not wanted[g]:
            continue
        r, d, mean, size = scales[starts[g] : starts[g + 1]].copy(), squares[starts[g] : starts[g + 1]].copy(), 0.0, 0
        for j in range(starts[g], starts[g + 1]):
            if scales[j] != 0.0:
                r[size], d[size] = scales[j], squares[j]
                mean += scales[j] * (1.0 + squares[j])
                size += 1
        r, d = r[:size], d[:size]
        if x[g] >= mean:
            out[g] = log_far_tail(x[g], r, d)
        else:
            other = log_far_tail(-x[g], -r, d)
            out[g] = other if math.isnan(other) else math.log1p(-math.exp(other)) if other < 0.0 else -math.inf
