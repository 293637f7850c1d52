"""Loops over the scales of a quadratic form: the integrand of its tail, and the slope at the saddlepoint."""

import math

import numpy as np

from truthcal.kernels.jit import Rows, compiled


@compiled
def log_factors(z: Rows, scales: Rows, squares: Rows, n_near: int) -> Rows:
    """Sum over scales r of the log of a factor of the moment generating function, for each z; `squares` are d^2.

    The first `n_near` scales add -1/2 log(1 - r z) + 1/2 d^2 r z / (1 - r z), the others that less 1/2 r z (1 + d^2):
    -1/2 (log(1 - r z) + r z) + 1/2 d^2 (r z)^2 / (1 - r z).

    One logarithm of a product of factors 1 - r z takes a fifth of the time of one for each. In a product, |r z| is at
    most 1/2 for each factor and 2.5 in total, or there is one factor alone, so that the angle stays below pi.
    """
    out = np.empty(z.size, np.complex128)
    for i in range(z.size):
        x, y = z[i].real, z[i].imag
        size = math.hypot(x, y)
        real = lost = imag = shift = turn = reach = 0.0
        p, q = 1.0, 0.0
        for j in range(scales.size):
            a, b = x * scales[j], y * scales[j]
            gap, length = 1.0 - a, abs(scales[j]) * size
            if reach + length > 2.5 or length > 0.5:
                term = -0.5 * math.log(math.hypot(p, q)) - lost
                real, before = real + term, real
                lost = (real - before) - term  # compensated: thousands of near scales would cost three digits
                imag += 0.5 * math.atan2(q, p)
                p, q, reach = 1.0, 0.0, 0.0
            p, q = p * gap - q * b, p * b + q * gap
            reach += length if length <= 0.5 else 3.0
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
        imag += 0.5 * math.atan2(q, p) - 0.5 * turn
        out[i] = complex(real, imag)
    return out


@compiled
def slope_and_curvature(s: float, scales: Rows, squares: Rows) -> tuple[float, float]:
    """First two derivatives, times s and s^2, of the log moment generating function at the real s."""
    slope = curvature = 0.0
    for j in range(scales.size):
        gap = 1.0 - scales[j] * s
        v = scales[j] * s / gap
        slope += v * (1.0 + squares[j] / gap)
        curvature += v * v * (1.0 + 2.0 * squares[j] / gap)
    return 0.5 * slope, 0.5 * curvature
