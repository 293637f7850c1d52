"""Loop of the integrand of a quadratic form's tail."""

import math

import numpy as np

from truthcal.kernels.jit import Rows, compiled


@compiled
def log_far_factors(z: Rows, scales: Rows, squares: Rows) -> Rows:
    """Sum over scales r of -1/2 (log(1 - r z) + r z) + 1/2 d^2 (r z)^2 / (1 - r z), for each z; `squares` are d^2.

    One logarithm of a product of factors 1 - r z takes a fifth of the time of one for each. In a product, |r z| is at
    most 1/2 for each factor and 2.5 in total, or there is one factor alone, so that the angle stays below pi.
    """
    out = np.empty(z.size, np.complex128)
    for i in range(z.size):
        x, y = z[i].real, z[i].imag
        size = math.hypot(x, y)
        real = imag = shift = turn = reach = 0.0
        p, q = 1.0, 0.0
        for j in range(scales.size):
            a, b = x * scales[j], y * scales[j]
            gap, length = 1.0 - a, abs(scales[j]) * size
            if reach + length > 2.5 or length > 0.5:
                real -= 0.25 * math.log(p * p + q * q)
                imag += 0.5 * math.atan2(q, p)
                p, q, reach = 1.0, 0.0, 0.0
            p, q = p * gap - q * b, p * b + q * gap
            reach += length if length <= 0.5 else 3.0
            shift += a
            turn += b
            if squares[j] != 0.0:
                weight = 0.5 * squares[j] / (gap * gap + b * b)
                square, cross = a * a - b * b, 2.0 * a * b
                real += weight * (square * gap - cross * b)
                imag += weight * (square * b + cross * gap)
        real -= 0.25 * math.log(p * p + q * q) + 0.5 * shift
        imag += 0.5 * math.atan2(q, p) - 0.5 * turn
        out[i] = complex(real, imag)
    return out
