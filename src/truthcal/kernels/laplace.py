"""Loop of the Laplace kernel calibration error. Input: distinct predictions, increasing."""

import math

from truthcal.kernels.jit import Rows, interpreted_first, two_sum


@interpreted_first
def laplace_square(r: Rows, c: Rows, bandwidth: float) -> float:
    """Laplace kernel error: the sum over pairs of c c' exp(-|r - r'|/bandwidth), as a sum of squares.

    The kernel is the covariance of a stationary first-order process, whose Cholesky factor is known: with b_i the sum
    of c_j exp(-(r_j - r_i)/bandwidth) over j >= i, it is b_1^2 + sum over i > 1 of (1 - exp(-2 d/bandwidth)) b_i^2.
    `math` has the same functions in Python and in compiled code; those of numpy may differ in the last digit.
    """
    high, low, total = 0.0, 0.0, 0.0
    for i in range(r.size - 1, -1, -1):
        high, low = two_sum(high, low, c[i])
        if i > 0:
            d = (r[i] - r[i - 1]) / bandwidth
            b = high + low
            total -= math.expm1(-2.0 * d) * b * b
            high, low = two_sum(high, low, math.expm1(-d) * b)
    return total + (high + low) ** 2
