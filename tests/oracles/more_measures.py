"""More slow, obvious versions of measures, written from the definitions. They know nothing of truthcal.

Called as oracle(y, p, w): plain sequences of ints, floats or Fractions; a float counts as the fraction it really is.
Sums, maxima and small linear programmes are exact and come back as Fractions. Floats come back from roots, kernels,
transport (distcal, good to about 1e-9), smece and the logistic fit. A row with outcome y between 0 and 1 puts mass
w * y on outcome 1 and w * (1 - y) on outcome 0. Made for a handful of rows.
"""

import decimal
import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import optimize, sparse, special


def fractions(values):
    return [Fraction(value) for value in values]


def table(y, p, w=None):
    """[(r, share, ones)]: each distinct prediction, its share of the weight, and the share that has outcome 1."""
    y, p, w = fractions(y), fractions(p), fractions(w or [1] * len(p))
    mass, ones = dict.fromkeys(p, 0), dict.fromkeys(p, 0)
    for yi, pi, wi in zip(y, p, w, strict=True):
        mass[pi] += wi / sum(w)
        ones[pi] += wi * yi / sum(w)
    return [(r, mass[r], ones[r]) for r in sorted(mass)]


def gaps(y, p, w=None):
    """Distinct predictions r and c = share * (r - mean outcome at r)."""
    rows = table(y, p, w)
    return [r for r, _, _ in rows], [r * mass - ones for r, mass, ones in rows]


def to_decimal(x):
    return decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)


def root(x):
    """Square root of a fraction, also where the fraction itself would underflow."""
    with decimal.localcontext(prec=60):
        return float(to_decimal(Fraction(x)).sqrt())


def unbinned_ece(y, p, w=None, alpha=1):
    return sum(mass * abs(r - ones / mass) ** alpha for r, mass, ones in table(y, p, w))


def binned_ece(y, p, w=None, n_bins=15, strategy="uniform", norm="l1", debias=False, alpha=1):
    """debias counts rows (weight = repetition) and leaves out bins of one row, as the code of Kumar et al. does.

    strategy may be a list of inner edges. alpha: exponent for norm l1, without a root.
    """
    rows, count = table(y, p, w), sum(fractions(w or [1] * len(p)))
    bins, before = {}, 0
    for r, mass, ones in rows:
        if strategy == "uniform":
            k = max(k for k in range(n_bins) if Fraction(k / n_bins) <= r)
        elif isinstance(strategy, list):
            k = sum(edge <= r for edge in strategy)
        else:
            k = math.floor(n_bins * (before + mass / 2))
        before += mass
        bins.setdefault(k, []).append((r, mass, ones))
    total, largest = 0, 0
    for members in bins.values():
        share = sum(mass for _, mass, _ in members)
        mean = sum(ones for _, _, ones in members) / share
        gap = abs(sum(r * mass for r, mass, _ in members) / share - mean)
        largest = max(largest, gap)
        if not debias:
            total += share * (gap**alpha if norm == "l1" else gap**2)
        elif share * count > 1:
            total += share * (gap**2 - mean * (1 - mean) / (share * count - 1))
    return {"l1": total, "l2": root(max(0, total)), "max": largest}[norm]


# Linear programmes: maximise gain.x subject to rows.x <= limits and x >= 0, where limits >= 0 so that x = 0 is allowed.


def exact_lp(gain, rows, limits):
    """Textbook simplex method in fractions; Bland's rule, so it cannot cycle. Returns the largest gain."""
    n, m = len(gain), len(rows)
    body = [fractions([*row, limit]) for row, limit in zip(rows, limits, strict=True)]
    last = fractions([*gain, 0])  # reduced gains, and minus the value so far
    outside, inside = list(range(n)), list(range(n, n + m))  # names of the nonbasic columns and of the basic rows
    while any(g > 0 for g in last[:n]):
        j = min((j for j in range(n) if last[j] > 0), key=lambda j: outside[j])
        ratios = [(body[i][n] / body[i][j], inside[i], i) for i in range(m) if body[i][j] > 0]
        i = min(ratios)[2]
        pivot = body[i][j]
        body[i] = [x / pivot for x in body[i]]
        body[i][j] = 1 / pivot
        for other in [*body[:i], *body[i + 1 :], last]:
            factor = other[j]
            if factor:
                other[j] = Fraction(0)
                for k, x in enumerate(body[i]):
                    if x:
                        other[k] -= factor * x
        outside[j], inside[i] = inside[i], outside[j]
    return -last[n]


def highs(cost, **problem):
    """Least cost, by HiGHS in floats."""
    tolerances = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    result = optimize.linprog(cost, **problem, method="highs", options=tolerances)
    assert result.status == 0, result.message
    return result


def highs_lp(gain, rows, limits):
    """As exact_lp in floats: for more rows, and as a check. It ignores entries below 1e-9, so keep p that far apart."""
    gain, rows, limits = (np.array(part, float) for part in (gain, rows, limits))
    return -highs(-gain, A_ub=rows, b_ub=limits, bounds=(0, None)).fun


def unit(n, *entries):
    row = [0] * n
    for index, value in entries:
        row[index] += value
    return row


def smooth(r, c, solve=exact_lp):
    """Largest sum of c f over |f| <= 1 on r with slope at most 1 between neighbours; the variables are f + 1."""
    n = len(r)
    rows, limits = [unit(n, (i, 1)) for i in range(n)], [2] * n
    for i in range(n - 1):
        rows += [unit(n, (i, 1), (i + 1, -1)), unit(n, (i, -1), (i + 1, 1))]
        limits += [r[i + 1] - r[i]] * 2
    return solve(c, rows, limits) - sum(c)


def smcal(y, p, w=None, solve=exact_lp):
    return smooth(*gaps(y, p, w), solve)


def subsampled(y, p, w, worst):
    """Mean of worst(c at the distinct predictions) over the ways to keep each row with chance 1/2, over all rows."""
    w = [1] * len(p) if w is None else [int(wi) for wi in w]
    y, p = fractions(y), fractions(p)
    rows = [(pi, pi - yi) for yi, pi, wi in zip(y, p, w, strict=True) for _ in range(wi)]
    r = sorted(set(p))
    seen = {}  # how often each c turned up
    for kept in itertools.product((0, 1), repeat=len(rows)):
        c = dict.fromkeys(r, 0)
        for (pi, ci), keep in zip(rows, kept, strict=True):
            c[pi] += keep * ci
        key = tuple(c.values())
        seen[key] = seen.get(key, 0) + 1
    return sum(times * worst(c) for c, times in seen.items()) / Fraction(2 ** len(rows)) / len(rows)


def subsampled_smcal(y, p, w=None):
    """A prediction none of whose rows is kept does no harm: any f on the others extends to it."""
    return subsampled(y, p, w, lambda c: smooth(sorted(set(fractions(p))), c))


def subsampled_step_ce(y, p, w=None):
    return subsampled(y, p, w, lambda c: max(abs(sum(c[:k])) for k in range(len(c) + 1)))


def masses(y, p, w):
    """Distinct predictions and the masses of outcomes 0 and 1 there, as float arrays."""
    return np.array([(r, mass - ones, ones) for r, mass, ones in table(y, p, w)], float).T


def transport_grid(p, points=200):
    return np.unique([0.0, 1.0, *(float(pi) for pi in p), *np.linspace(0, 1, points + 1)])


def transport(r, m0, m1, grid, alpha):
    """Move mass from (r, outcome) to u in the grid at cost |u - r|^alpha so that u is calibrated. Cost and dual."""
    n, size = len(r), len(grid)
    cost = np.abs(grid - r[:, None]) ** alpha  # variables x[o, i, k]: mass of outcome o that goes from r_i to u_k
    leave = sparse.kron(sparse.eye(2 * n), np.ones(size))  # all mass of (r_i, o) goes somewhere
    balance = sparse.hstack([sparse.diags(-grid)] * n + [sparse.diags(1 - grid)] * n)  # ones = u * (zeros + ones) at u
    result = highs(
        np.concatenate([cost.ravel(), cost.ravel()]),
        A_eq=sparse.vstack([leave, balance]),
        b_eq=np.concatenate([m0, m1, np.zeros(size)]),
        bounds=(0, None),
    )
    return result.fun, result.eqlin.marginals[: 2 * n].reshape(2, n)


def better_points(r, prices, grid, alpha):
    """30 times finer points in the cells of the grid where some u would lower the cost.

    With prices f_o(i) of the mass at (r_i, o), u can help only if (1-u) G0(u) + u G1(u) < 0, G_o(u) being the least
    |u - r_i|^alpha - f_o(i). If that is nowhere below -d, the cost is within d of the least cost over all of [0, 1].
    """

    def slack(u):
        best = (np.abs(u - r[:, None, None]) ** alpha - prices[:, :, None, None]).min(axis=1)
        return (1 - u) * best[0] + u * best[1]

    step = np.diff(grid) / 8
    left = grid[:-1] + np.arange(7)[:, None] * step  # three points in a row, seven times in each cell of the grid
    a, b, c = slack(left), slack(left + step), slack(left + 2 * step)
    with np.errstate(all="ignore"):
        turn = (a - c) / (2 * (a - 2 * b + c))  # where the parabola through the three is lowest
    turn = np.where((np.abs(turn) <= 1) & (a - 2 * b + c > 0), turn, 0)
    bad = (slack(left + step + step * turn).min(axis=0) < -5e-10) & (np.diff(grid) > 1e-6)  # width h costs only h^2 / 2
    return (grid[:-1][bad] + np.diff(grid)[bad] * np.arange(1, 30)[:, None] / 30).ravel()


def distcal(y, p, w=None, alpha=1, grid=None):
    """Least cost on the grid; with no grid given, points are added until no other u in [0, 1] can lower it."""
    r, m0, m1 = masses(y, p, w)
    if grid is not None:
        return transport(r, m0, m1, np.asarray(grid, float), alpha)[0]
    grid = transport_grid(p)
    for _ in range(30):
        value, prices = transport(r, m0, m1, grid, alpha)
        new = better_points(r, prices, grid, alpha)
        if not len(new):
            return value
        grid = np.union1d(grid, new)
    raise AssertionError("no convergence")


def distcal_dual(y, p, w=None, grid=None):
    """The dual for alpha = 1: largest sum m0 F0 + m1 F1 with slopes at most 1 and (1-u) F0 + u F1 <= 0 on a grid."""
    r, m0, m1 = masses(y, p, w)
    u = transport_grid(p) if grid is None else np.asarray(grid, float)
    size = len(u)
    gain = np.zeros((2, size))
    gain[:, np.searchsorted(u, r)] = m0, m1
    steps = sparse.kron(sparse.eye(2), sparse.diags([-1.0, 1.0], [0, 1], shape=(size - 1, size)))
    rows = sparse.vstack([steps, -steps, sparse.hstack([sparse.diags(1 - u), sparse.diags(u)])])
    limits = np.concatenate([np.tile(np.diff(u), 4), np.zeros(size)])
    return -highs(-gain.ravel(), A_ub=rows, b_ub=limits, bounds=(-1, 1)).fun  # F0 <= u, F1 <= 1-u; -u, -(1-u) will do


def intcal(y, p, w=None):
    """Least cost over all ways to cut the distinct predictions into groups of neighbours."""
    rows, costs = table(y, p, w), []
    for cuts in itertools.product((False, True), repeat=len(rows) - 1):
        edges = [0, *(i for i, cut in enumerate(cuts, 1) if cut), len(rows)]
        cost = 0
        for group in (rows[a:b] for a, b in itertools.pairwise(edges)):
            cost += abs(sum(r * mass - ones for r, mass, ones in group))
            cost += sum(mass for _, mass, _ in group) * (group[-1][0] - group[0][0])
        costs.append(cost)
    return min(costs)


def random_interval_ce(r, c, width):
    """Mean over the shift of the binned l1 error; the bins change only where a prediction meets an edge."""
    total = 0
    for left, right in itertools.pairwise(sorted({0, width, *(ri % width for ri in r)})):
        bins = {}
        for ri, ci in zip(r, c, strict=True):
            label = math.floor((ri - (left + right) / 2) / width)
            bins[label] = bins.get(label, 0) + ci
        total += (right - left) * sum(abs(b) for b in bins.values())
    return total / width


def intcal_surrogate(y, p, w=None):
    """Least RintCE(width) + width over width = 1, 1/2, 1/4, ..., and its limit, the ECE.

    Once the width is no more than the smallest gap, no bin (open on one side) ever holds two distinct predictions, so
    RintCE is the ECE from there on and width only adds to it: nothing further can be smaller. At most 1075 steps.
    """
    r, c = gaps(y, p, w)
    best, width = unbinned_ece(y, p, w), Fraction(1)
    smallest = min((right - left for left, right in itertools.pairwise(r)), default=1)
    while width > smallest:
        best = min(best, random_interval_ce(r, c, width) + width)
        width /= 2
    return best


def laplace_kernel_ce(y, p, w=None, bandwidth=1):
    """400 digits: neighbours may be 1e-310 apart, and the sum may then be that small."""
    r, c = gaps(y, p, w)
    with decimal.localcontext(prec=400):
        total = decimal.Decimal(0)
        for (ri, ci), (rj, cj) in itertools.product(zip(r, c, strict=True), repeat=2):
            total += to_decimal(ci * cj) * (-to_decimal(abs(ri - rj) / Fraction(bandwidth))).exp()
        return float(max(total, 0).sqrt())


NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)
FAR = 14  # standard deviations, beyond which a Gaussian is nothing


def zeros_of(function, x):
    """Where function is 0: at points of x, and by bisection between neighbours where it has opposite signs."""
    sign = np.sign(function(x))
    at = np.flatnonzero(sign[1:] * sign[:-1] < 0)
    low, high, below = x[at], x[at + 1], sign[at]
    for _ in range(70):
        middle = (low + high) / 2
        same = np.sign(function(middle)) == below
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.concatenate([x[sign == 0], (low + high) / 2])


def smoothed_share(y, p, w, s):
    """smECE_s / ECE: integral over t in [0, 1] of |sum c K_s(t, r)| as a share of sum |c|.

    K_s is Gaussian with images at 2k + r and 2k - r. Each t belongs to its nearest r and is written t = r + x s, so
    no digits are lost however small s is. Panels one deviation wide, cut where the sum changes sign; extremes are
    looked for first so that no narrow dip is missed.
    """
    r, c = gaps(y, p, w)
    s, scale = Fraction(s), sum(abs(ci) for ci in c)
    many = range(-math.ceil(7 * s), math.ceil(7 * s) + 1)
    images = [(2 * k + sign * ri, ci / scale) for ri, ci in zip(r, c, strict=True) for k in many for sign in (1, -1)]
    edges = [0, *((a + b) / 2 for a, b in itertools.pairwise(r)), 1]
    total = 0
    for ri, left, right in zip(r, edges, edges[1:], strict=False):
        near = [((ri - m) / s, ci) for m, ci in images if ci and abs(ri - m) < 2 * FAR * s]
        shift, height = np.array([(float(d), float(ci)) for d, ci in near], np.longdouble).reshape(-1, 2).T

        def value(x, shift=shift, height=height):
            return (height * np.exp(-((x[..., None] + shift) ** 2) / 2)).sum(-1) / np.sqrt(2 * np.pi)

        def slope(x, shift=shift, height=height):
            z = x[..., None] + shift
            return (-height * z * np.exp(-(z**2) / 2)).sum(-1)

        start, stop = float(max((left - ri) / s, -FAR)), float(min((right - ri) / s, FAR))
        cuts = np.linspace(start, stop, math.ceil(stop - start) + 1).astype(np.longdouble)
        fine = np.linspace(start, stop, 16 * (len(cuts) - 1) + 1).astype(np.longdouble)
        fine = np.union1d(fine, zeros_of(slope, fine))
        cuts = np.union1d(cuts, zeros_of(value, fine))
        half = np.diff(cuts) / 2
        panels = (value(cuts[:-1, None] + half[:, None] * (1 + NODES)) * NODE_WEIGHTS).sum(1) * half
        total += float(np.abs(panels).sum())
    return total


def smece(y, p, w=None):
    """The s with smECE_s = s. As |bias| <= smECE_s <= ECE, it lies between these; smECE_s falls as s grows."""
    _, c = gaps(y, p, w)
    scale, bias = sum(abs(ci) for ci in c), abs(sum(c))
    if bias == scale:
        return float(scale)

    def above(log_u):
        u = Fraction(math.exp(log_u))
        return math.log(smoothed_share(y, p, w, u * scale)) - log_u

    low = -1.0
    while above(low) < 0:
        low *= 2
    if above(0.0) >= 0:  # smECE_s = ECE = s but for rounding
        return float(scale)
    return float(scale * Fraction(math.exp(optimize.brentq(above, low, 0.0, xtol=1e-13, rtol=1e-14))))


def cumulative(y, p, w=None):
    _, c = gaps(y, p, w)
    return [0, *itertools.accumulate(c)]


def ks_ce(y, p, w=None):
    return max(abs(a) for a in cumulative(y, p, w))


def kuiper_ce(y, p, w=None):
    return max(cumulative(y, p, w)) - min(cumulative(y, p, w))


def regret(y, p, w, benchmarks, solve):
    """Largest mean of loss(r, y) - loss(benchmark of r, y) over proper losses with values in [0, 1].

    Variables loss(q, 0), loss(q, 1) for q in Q = predictions and benchmarks; no other report may look better at q.
    """
    rows = table(y, p, w)
    q = sorted({r for r, _, _ in rows} | set(benchmarks))
    n, place = 2 * len(q), {value: 2 * k for k, value in enumerate(q)}
    gain = [0] * n
    for (r, mass, ones), b in zip(rows, benchmarks, strict=True):
        for report, sign in ((r, 1), (b, -1)):
            gain[place[report]] += sign * (mass - ones)
            gain[place[report] + 1] += sign * ones
    lp, limits = [unit(n, (k, 1)) for k in range(n)], [1] * n
    for a, b in itertools.permutations(q, 2):
        i, j = place[a], place[b]
        lp.append(unit(n, (i, 1 - a), (i + 1, a), (j, a - 1), (j + 1, -a)))
        limits.append(0)
    return solve(gain, lp, limits)


def decision_loss(y, p, w=None, solve=exact_lp):
    return regret(y, p, w, [ones / mass for _, mass, ones in table(y, p, w)], solve)


def u_calibration(y, p, w=None, solve=exact_lp):
    rows = table(y, p, w)
    return regret(y, p, w, [sum(ones for _, _, ones in rows)] * len(rows), solve)


def isotonic(y, p, w=None):
    """Fitted value of each row, in the order of the rows: max over i <= k of min over j >= k of the mean of i..j."""
    rows = table(y, p, w)
    n = len(rows)

    def mean(i, j):
        return sum(ones for _, _, ones in rows[i : j + 1]) / sum(mass for _, mass, _ in rows[i : j + 1])

    fit = {rows[k][0]: max(min(mean(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)}
    return [fit[pi] for pi in fractions(p)]


def weighted_mean(values, w):
    w = fractions(w or [1] * len(values))
    return sum(wi * value for wi, value in zip(w, values, strict=True)) / sum(w)


def ici(y, p, w=None):
    return weighted_mean([abs(pi - fi) for pi, fi in zip(fractions(p), isotonic(y, p, w), strict=True)], w)


def decomposition(y, p, w, score):
    """CORP: score, miscalibration, discrimination, uncertainty; score(o, q) is the loss of report q at outcome o."""
    y, p = fractions(y), fractions(p)

    def mean_score(reports):
        losses = [
            (yi * score(1, q) if yi else 0) + ((1 - yi) * score(0, q) if yi != 1 else 0)
            for yi, q in zip(y, reports, strict=True)
        ]
        return weighted_mean(losses, w) if max(losses) < math.inf else math.inf

    raw, fitted, constant = mean_score(p), mean_score(isotonic(y, p, w)), mean_score([weighted_mean(y, w)] * len(y))
    return raw, raw - fitted, constant - fitted, constant


def brier_decomposition(y, p, w=None):
    return decomposition(y, p, w, lambda outcome, q: (q - outcome) ** 2)


def log_loss_decomposition(y, p, w=None):
    """Infinite where a prediction of 0 or 1 is wrong; 0 log 0 is 0."""

    def loss(outcome, q):
        hit = q if outcome else 1 - q
        if hit == 0:
            return math.inf
        return -math.log(float(hit)) if hit < 0.5 else -math.log1p(-float(1 - hit))

    return decomposition(y, p, w, loss)


def calibration_slope_intercept(y, p, w=None):
    """(a, b) of the likeliest sigmoid(a + b logit(p)), then the likeliest a when b = 1.

    Only where these exist: p inside (0, 1), two or more of them distinct, no threshold on p that separates outcomes.
    """
    y, x = np.array(fractions(y), float), special.logit(np.array(fractions(p), float))
    w = np.array(fractions(w or [1] * len(y)), float)

    def fit(design, offset):
        def loss(theta):
            z = offset + design @ theta
            return w @ (np.logaddexp(0, z) - y * z)

        def gradient(theta):
            return design.T @ (w * (special.expit(offset + design @ theta) - y))

        start = optimize.minimize(loss, np.zeros(design.shape[1]), jac=gradient, method="BFGS").x
        return optimize.root(gradient, start, tol=1e-14).x

    a, b = fit(np.column_stack([np.ones_like(x), x]), 0 * x)
    (alone,) = fit(np.ones((len(x), 1)), x)
    return float(a), float(b), float(alone)


MORE_ORACLES = {
    **{f.__name__: f for f in (unbinned_ece, smcal, distcal, intcal, intcal_surrogate, laplace_kernel_ce, smece)},
    **{f.__name__: f for f in (ks_ce, kuiper_ce, decision_loss, u_calibration, subsampled_smcal, subsampled_step_ce)},
    "step_ce": ks_ce,
    "ece": binned_ece,
    "ici": ici,
}
