"""Sums over all pairs of points with a tent kernel, for many sets of masses on the same points."""

from truthcal.kernels.jit import Rows, compiled


@compiled
def tent_sums(x: Rows, c: Rows, before: Rows, slopes: Rows, shares: Rows, out: Rows) -> None:
    """out[k] = sum over s, t of c[k, s] c[k, t] sum_h share_h max(0, 1 - |x_s - x_t| slope_h), x increasing.

    before[h, t] is the first point that is less than a width below x_t. Sums of c and of c x over the points from there
    to t are differences of prefix sums, so a set of masses takes one pass for all widths.
    """
    points = x.size
    mass, moment = x.copy(), x.copy()  # sums over the points below
    for k in range(c.shape[0]):
        below, below_moment = 0.0, 0.0
        total = 0.0
        for t in range(points):
            mass[t], moment[t] = below, below_moment
            here = c[k, t]
            near = 0.0
            for h in range(slopes.size):
                first = before[h, t]
                level = 1.0 - x[t] * slopes[h]
                near += shares[h] * ((below - mass[first]) * level + (below_moment - moment[first]) * slopes[h])
            total += here * (here + 2.0 * near)
            below += here
            below_moment += here * x[t]
        out[k] = total
