"""The loop over sorted rows that follows their cumulative bias."""

import numpy as np

from truthcal.kernels.jit import Rows, interpreted_briefly, two_sum


@interpreted_briefly
def bias_extremes(p: Rows, y: Rows, w: Rows) -> tuple[float, float, int, float, float, float, float]:
    """Lowest and highest cumulative bias of sorted rows, starting from 0 and read between distinct predictions.

    Also the number of distinct predictions, the sums of their s = w p(1 - p) and of s^2, and the total bias as a pair.
    """
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    lowest, highest, distinct, total, squares, step = 0.0, 0.0, 0, 0.0, 0.0, 0.0
    for i in range(p.size):
        x = np.float64(p[i])
        ph, pl = two_sum(ph, pl, w[i] * x)
        yh, yl = two_sum(yh, yl, w[i] * y[i])
        step += w[i] * x * (1.0 - x)
        if i + 1 == p.size or p[i + 1] != p[i]:
            bias = (ph - yh) + (pl - yl)
            lowest, highest = min(lowest, bias), max(highest, bias)
            distinct += 1
            total += step
            squares += step * step
            step = 0.0
    return lowest, highest, distinct, total, squares, ph - yh, pl - yl
