"""Loops of the lower distance to calibration: an interior-point method on a chain, and certificates.

The linear programme, on nodes x_0 = 0 < ... < x_N = 1 that carry the masses a (outcome 0) and b (outcome 1):

    max  sum a F + b G    subject to  |F_{i+1} - F_i| <= h_i,  |G_{i+1} - G_i| <= h_i,  (1 - x_i) F_i + x_i G_i <= 0

Its multipliers are flows along the chain and, for the last constraint, the mass that ends at x_i. Constraints involve
only neighbours, so Newton's normal matrix is block tridiagonal with 2 x 2 blocks, and an iteration costs O(N).
The rows of arrays with five rows belong to F up, F down, G up, G down (per link) and to x (per node).
"""

import numpy as np

from truthcal.kernels.jit import Rows, compiled, two_sum


@compiled
def cluster_into_nodes(r: Rows, w: Rows, width: float, nodes: Rows) -> int:
    """Nodes of distCal's chain: means of runs of predictions that span at most `width`; returns their number."""
    count, first = 0, 0
    while first < r.size:
        last, mass, moment = first, 0.0, 0.0
        while last < r.size and r[last] - r[first] <= width:
            mass += w[last]
            moment += w[last] * (r[last] - r[first])
            last += 1
        nodes[count] = min(r[first] + moment / mass, r[last - 1])
        count += 1
        first = last
    return count


@compiled
def split_between_nodes(r: Rows, mass: Rows, x: Rows, out: Rows) -> None:
    """Divide each mass between the two nodes of distCal's chain around it, preserving its mean."""
    k = 0
    for i in range(r.size):
        while k < x.size - 2 and x[k + 1] < r[i]:
            k += 1
        t = (r[i] - x[k]) / (x[k + 1] - x[k])
        out[k] += (1.0 - t) * mass[i]
        out[k + 1] += t * mass[i]


@compiled
def constraint_values(x: Rows, f: Rows, g: Rows, out: Rows) -> None:
    """Left sides of distCal's constraints at F and G (the transposed constraint matrix). The last link is 0."""
    n = x.size
    for i in range(n):
        out[4, i] = (1.0 - x[i]) * f[i] + x[i] * g[i]
        df, dg = (f[i + 1] - f[i], g[i + 1] - g[i]) if i < n - 1 else (0.0, 0.0)
        out[0, i], out[1, i], out[2, i], out[3, i] = df, -df, dg, -dg


@compiled
def factor_blocks(x: Rows, d: Rows, inverse: Rows) -> None:
    """Factor distCal's normal matrix A diag(d) A^T node by node; stores the inverse of each 2 x 2 pivot block.

    A pivot is P + E, with E for the links to the next node and P = Q + D v v^T for the constraint of the node plus the
    contribution of earlier nodes through their links, the parallel sum Q = (E^-1 + P^-1)^-1. All terms are sums of
    non-negative numbers, so that nothing cancels even if D and E differ by many orders, as in the last iterations.
    """
    n = x.size
    q11, q12, q22, det_q = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        v1, v2, node = 1.0 - x[i], x[i], d[4, i]
        both = np.sqrt(q11 * q22)
        apart = v1 * np.sqrt(q22) - v2 * np.sqrt(q11)
        det_p = det_q + node * apart * apart
        if both > 0.0:
            det_p += node * 2.0 * v1 * v2 * det_q / (both + q12)
        p11, p12, p22 = q11 + node * v1 * v1, q12 + node * v1 * v2, q22 + node * v2 * v2
        e1, e2 = d[0, i] + d[1, i], d[2, i] + d[3, i]
        det = det_p + e1 * p22 + e2 * p11 + e1 * e2
        inverse[0, i], inverse[1, i], inverse[2, i] = (p22 + e2) / det, -p12 / det, (p11 + e1) / det
        q11, q22 = e1 * (p11 * e2 + det_p) / det, e2 * (p22 * e1 + det_p) / det
        q12, det_q = e1 * e2 * p12 / det, e1 * e2 * det_p / det


@compiled
def solve_blocks(d: Rows, inverse: Rows, right_f: Rows, right_g: Rows, f: Rows, g: Rows) -> None:
    """Solve distCal's normal equations A diag(d) A^T (f, g) = (right_f, right_g), factored by `factor_blocks`."""
    n = f.size
    for i in range(n):
        rf, rg = right_f[i], right_g[i]
        if i > 0:
            rf += (d[0, i - 1] + d[1, i - 1]) * f[i - 1]
            rg += (d[2, i - 1] + d[3, i - 1]) * g[i - 1]
        f[i] = inverse[0, i] * rf + inverse[1, i] * rg
        g[i] = inverse[1, i] * rf + inverse[2, i] * rg
    for i in range(n - 2, -1, -1):
        rf = (d[0, i] + d[1, i]) * f[i + 1]
        rg = (d[2, i] + d[3, i]) * g[i + 1]
        f[i] += inverse[0, i] * rf + inverse[1, i] * rg
        g[i] += inverse[1, i] * rf + inverse[2, i] * rg


@compiled
def right_side(x: Rows, a: Rows, b: Rows, u: Rows, out_f: Rows, out_g: Rows) -> None:
    """(a, b) minus distCal's constraint matrix times u."""
    n = x.size
    for i in range(n):
        net_f, net_g = 0.0, 0.0
        if i > 0:
            net_f += u[0, i - 1] - u[1, i - 1]
            net_g += u[2, i - 1] - u[3, i - 1]
        if i < n - 1:
            net_f += u[1, i] - u[0, i]
            net_g += u[3, i] - u[2, i]
        out_f[i] = a[i] - net_f - (1.0 - x[i]) * u[4, i]
        out_g[i] = b[i] - net_g - x[i] * u[4, i]


@compiled
def solve_precisely(x: Rows, d: Rows, inverse: Rows, rf: Rows, rg: Rows, f: Rows, g: Rows, values: Rows) -> float:
    """Solve distCal's normal equations with iterative refinement; returns the relative residual.

    Where mass ends, d is huge and f and g must cancel: without refinement the last iterations would fail. `values`
    receives `constraint_values` of f and g.
    """
    n = x.size
    left_f, left_g, more_f, more_g, flow = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty((5, n))
    solve_blocks(d, inverse, rf, rg, f, g)
    before = np.inf
    while True:
        constraint_values(x, f, g, values)
        for k in range(5):
            for i in range(n):
                flow[k, i] = d[k, i] * values[k, i]
        right_side(x, rf, rg, flow, left_f, left_g)
        left, whole = 0.0, 0.0
        for i in range(n):
            left += abs(left_f[i]) + abs(left_g[i])
            whole += abs(rf[i]) + abs(rg[i])
        if not 1e-12 * whole < left < before / 2.0:
            return left / whole
        before = left
        solve_blocks(d, inverse, left_f, left_g, more_f, more_g)
        for i in range(n):
            f[i] += more_f[i]
            g[i] += more_g[i]


@compiled
def longest_step(z: Rows, dz: Rows) -> float:
    """Largest step of distCal's interior-point method, at most 1, for which z + step dz is not negative."""
    step = 1.0
    for k in range(z.shape[0]):
        for i in range(z.shape[1]):
            if dz[k, i] < 0.0 and z[k, i] + step * dz[k, i] < 0.0:
                step = -z[k, i] / dz[k, i]
    return step


@compiled
def set_start(x: Rows, z: Rows, s: Rows) -> None:
    """Start distCal's interior-point method: slacks s of F = G = -1/2, strictly feasible, flows z with equal z s."""
    n = x.size
    for k in range(5):
        for i in range(n):
            link = x[i + 1] - x[i] if i < n - 1 else 0.0
            s[k, i] = 0.5 if k == 4 else link
            z[k, i] = 0.5 / (n * s[k, i]) if s[k, i] > 0.0 else 0.0
            s[k, i] = s[k, i] if s[k, i] > 0.0 else 1.0  # after the last node: no flow, never binding


@compiled
def duality_gap(z: Rows, s: Rows, d: Rows) -> float:
    """Return the duality gap of distCal's linear programme, the sum of z s; sets d = z/s."""
    gap = 0.0
    for k in range(5):
        for i in range(z.shape[1]):
            gap += z[k, i] * s[k, i]
            d[k, i] = z[k, i] / s[k, i]
    return gap


@compiled
def newton_steps(z: Rows, d: Rows, aim: Rows, dz: Rows, ds: Rows) -> None:
    """Newton steps of distCal's z and s towards z s = aim * s. `ds` holds `constraint_values` of the step of F, G."""
    for k in range(5):
        for i in range(z.shape[1]):
            dz[k, i] = aim[k, i] - z[k, i] + d[k, i] * ds[k, i]
            ds[k, i] = -ds[k, i]


@compiled
def set_target(z: Rows, s: Rows, dz: Rows, ds: Rows, mu: float, count: int, aim: Rows) -> None:
    """Mehrotra's rule for distCal's programme: the target gap from the predictor, minus its second-order error."""
    primal, dual = longest_step(z, dz), longest_step(s, ds)
    reached = 0.0
    for k in range(5):
        for i in range(z.shape[1]):
            reached += (z[k, i] + primal * dz[k, i]) * (s[k, i] + dual * ds[k, i])
    target = mu * (reached / (count * mu)) ** 3
    for k in range(5):
        for i in range(z.shape[1]):
            aim[k, i] = (target - dz[k, i] * ds[k, i]) / s[k, i] if z[k, i] > 0.0 else 0.0


@compiled
def interior_point(x: Rows, a: Rows, b: Rows, f: Rows, g: Rows, mass: Rows, enough: float, at_most: int) -> None:
    """Solve distCal's programme by Mehrotra's predictor-corrector method until the duality gap is below `enough`.

    F and G are strictly feasible throughout; the flows become feasible up to rounding, which the caller corrects.
    """
    n = x.size
    count = 5 * n - 4
    z, s, dz, ds = np.empty((5, n)), np.empty((5, n)), np.empty((5, n)), np.empty((5, n))
    d, aim, none, inverse = np.empty((5, n)), np.empty((5, n)), np.zeros((5, n)), np.empty((3, n))
    df, dg, rf, rg = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    # Loops, here and below: to assign arrays to slices, numba would compile the text of an error message, for 3 s.
    for i in range(n):
        f[i], g[i] = -0.5, -0.5
    set_start(x, z, s)
    for _ in range(at_most):
        gap = duality_gap(z, s, d)
        if not gap > enough:
            break
        factor_blocks(x, d, inverse)
        solve_precisely(x, d, inverse, a, b, df, dg, ds)
        newton_steps(z, d, none, dz, ds)
        set_target(z, s, dz, ds, gap / count, count, aim)
        right_side(x, a, b, aim, rf, rg)
        left = solve_precisely(x, d, inverse, rf, rg, df, dg, ds)
        # An imprecise step is harmless far from the solution. Near it, there is no precision left to improve.
        if not left < (1e-3 if gap < 1e-4 else 1e3):
            break
        newton_steps(z, d, aim, dz, ds)
        primal, dual = 0.995 * longest_step(z, dz), 0.995 * longest_step(s, ds)
        for i in range(n):
            for k in range(5):
                z[k, i] += primal * dz[k, i]
                s[k, i] += dual * ds[k, i]
            f[i] += dual * df[i]
            g[i] += dual * dg[i]
    for i in range(n):
        mass[i] = z[4, i]


@compiled
def transport_cost(r: Rows, zeros: Rows, ones: Rows, stays: Rows, x: Rows, mass: Rows) -> float:
    """Cost of moving to calibration: W1 distance of the zeros to (1 - u) m plus that of the ones to u m.

    m is `stays` at r and `mass` at x. Both pairs have equal totals.
    """
    zh, zl, oh, ol, cost = 0.0, 0.0, 0.0, 0.0, 0.0
    i, k, here = 0, 0, 0.0
    while i < r.size or k < x.size:
        data = k >= x.size or (i < r.size and r[i] <= x[k])
        there = r[i] if data else x[k]
        cost += (there - here) * (abs(zh + zl) + abs(oh + ol))
        if data:
            zh, zl = two_sum(zh, zl, zeros[i] - (1.0 - r[i]) * stays[i])
            oh, ol = two_sum(oh, ol, ones[i] - r[i] * stays[i])
            i += 1
        else:
            zh, zl = two_sum(zh, zl, -(1.0 - x[k]) * mass[k])
            oh, ol = two_sum(oh, ol, -x[k] * mass[k])
            k += 1
        here = there
    return cost


@compiled
def scale_by_ratio(r: Rows, mass: Rows, x: Rows, ratio: Rows, out: Rows) -> None:
    """Multiply the mass at each prediction r by a ratio that is linear between the nodes of distCal's chain."""
    k = 0
    for i in range(r.size):
        while k < x.size - 2 and x[k + 1] < r[i]:
            k += 1
        t = (r[i] - x[k]) / (x[k + 1] - x[k])
        out[i] = mass[i] * ((1.0 - t) * ratio[k] + t * ratio[k + 1])


@compiled
def dual_value(r: Rows, zeros: Rows, ones: Rows, x: Rows, f: Rows, g: Rows) -> float:
    """Dual value of distCal's programme: sum of zeros F(r) + ones G(r), F and G linear between the nodes."""
    high, low, k = 0.0, 0.0, 0
    for i in range(r.size):
        while k < x.size - 2 and x[k + 1] < r[i]:
            k += 1
        t = (r[i] - x[k]) / (x[k + 1] - x[k])
        value = zeros[i] * (f[k] + t * (f[k + 1] - f[k])) + ones[i] * (g[k] + t * (g[k + 1] - g[k]))
        high, low = two_sum(high, low, value)
    return high + low


@compiled
def make_lipschitz(x: Rows, f: Rows) -> None:
    """Replace distCal's F or G by the largest 1-Lipschitz function below it, which corrects rounding errors."""
    for i in range(1, x.size):
        f[i] = min(f[i], f[i - 1] + (x[i] - x[i - 1]))
    for i in range(x.size - 2, -1, -1):
        f[i] = min(f[i], f[i + 1] + (x[i + 1] - x[i]))


@compiled
def violations(x: Rows, f: Rows, g: Rows, where: Rows, size: Rows) -> None:
    """For each link of distCal's chain, the maximum of (1 - u) F(u) + u G(u), quadratic there, and its position u."""
    for i in range(x.size - 1):
        left = (1.0 - x[i]) * f[i] + x[i] * g[i]
        right = (1.0 - x[i + 1]) * f[i + 1] + x[i + 1] * g[i + 1]
        where[i], size[i] = (x[i], left) if left > right else (x[i + 1], right)
        bend = (x[i + 1] - x[i]) * ((g[i + 1] - g[i]) - (f[i + 1] - f[i]))
        if bend < 0.0:  # left + t (right - left) - bend t (1 - t) may peak inside the link
            t = 0.5 - (right - left) / (2.0 * bend)
            if 0.0 < t < 1.0:
                where[i] = x[i] + t * (x[i + 1] - x[i])
                size[i] = left + t * (right - left) - bend * t * (1.0 - t)
