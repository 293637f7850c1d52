"""Loops of the UBSE family: sums over sliding windows, tents and bins. Input: rows sorted by prediction."""

import numpy as np

from truthcal.kernels.jit import BLOCK, Rows, interpreted_briefly, interpreted_first, two_sum


@interpreted_first
def window_integral(p: Rows, y: Rows, w: Rows, width: float, squared: bool) -> float:
    """Kernel of shifted-grid UBSE: (1/width) * integral over q of (sum of w c, q < p <= q + width)^2, or absolute.

    The window [q, q + width] slides up. Rows enter at q = p - width and leave at q = p. Steps between two events of the
    same kind are differences of predictions, so that the distance of neighbours one ulp apart is exact.
    """
    n = p.size
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    total, block = 0.0, 0.0
    entered, left = 0, 0
    here, here_enters = np.float64(p[0]), True
    for event in range(2 * n):
        leaver = np.float64(p[left])
        enters = False
        if entered < n:
            distance, rounded = two_sum(np.float64(p[entered]), 0.0, -leaver)
            enters = bool((distance - width) + rounded <= 0.0)
        there = np.float64(p[entered]) if enters else leaver
        step, rounded = two_sum(there, 0.0, -here)
        if enters and not here_enters:
            step -= width
        elif here_enters and not enters:
            step += width
        step += rounded
        x = (ph - yh) + (pl - yl)
        block += max(step, 0.0) * (x * x if squared else abs(x))
        if event % BLOCK == 0:
            total += block
            block = 0.0
        if enters:
            ph, pl = two_sum(ph, pl, w[entered] * there)
            yh, yl = two_sum(yh, yl, w[entered] * y[entered])
            entered += 1
        else:
            ph, pl = two_sum(ph, pl, -w[left] * there)
            yh, yl = two_sum(yh, yl, -w[left] * y[left])
            left += 1
        here, here_enters = there, enters
    return (total + block) / width


@interpreted_briefly
def tent_pairs(p: Rows, w: Rows, width: float) -> float:
    """Noise of UBSE with a tent kernel k: sum over pairs (s, t) of k^2 a_s a_t.

    k = max(0, 1 - |p_s - p_t|/width), a = w p(1 - p). a0, a1, a2 are sums of a, a d, a d^2 over the window below p_t,
    d = (p_t - p_s)/width.
    """
    a0, a1, a2 = (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)  # pairs, so that rows that leave cancel exactly
    total, lost = 0.0, 0.0
    left = 0
    for t in range(p.size):
        x = np.float64(p[t])
        if t > 0:
            step = (x - np.float64(p[t - 1])) / width
            mass, moment = a0[0] + a0[1], a1[0] + a1[1]
            a2 = two_sum(a2[0], a2[1], step * (2.0 * moment + step * mass))
            a1 = two_sum(a1[0], a1[1], step * mass)
        while x - np.float64(p[left]) >= width:
            z = np.float64(p[left])
            d = (x - z) / width
            a = w[left] * z * (1.0 - z)
            a0 = two_sum(a0[0], a0[1], -a)
            a1 = two_sum(a1[0], a1[1], -a * d)
            a2 = two_sum(a2[0], a2[1], -a * d * d)
            left += 1
        if left == t:  # an empty window: clear the rounding errors
            a0, a1, a2 = (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)
        a = w[t] * x * (1.0 - x)
        near = (a0[0] + a0[1]) - 2.0 * (a1[0] + a1[1]) + (a2[0] + a2[1])
        total, lost = two_sum(total, lost, a * (2.0 * near + a))
        a0 = two_sum(a0[0], a0[1], a)
    return total + lost


@interpreted_first
def quantile_squares(p: Rows, y: Rows, w: Rows, size: int, n_bins: int) -> float:
    """Kernel of UBSE in quantile bins: expected sum of (sum of c)^2 over bins of equal counts, ties split at random.

    w holds whole numbers of repetitions, `size` is their sum. A bin with j of m tied rows has j times their mean, and
    j(m - j)/m times their sample variance as the variance of drawing without replacement.
    """
    total, variance = 0.0, 0.0
    ph, pl, yh, yl = 0.0, 0.0, 0.0, 0.0
    share, rest_of_size = size // n_bins, size % n_bins
    room, carry = share, rest_of_size  # bin j ends at row floor((j + 1) size / n_bins), without the large product
    i = 0
    while i < p.size:
        x = np.float64(p[i])
        m, positive, last = 0.0, 0.0, i
        while last < p.size and p[last] == p[i]:
            m += w[last]
            positive += w[last] * y[last]
            last += 1
        spread = 0.0
        for k in range(i, last):
            spread += w[k] * (y[k] - positive / m) ** 2
        rest = int(m)
        while rest > 0:
            taken = min(rest, room)
            ph, pl = two_sum(ph, pl, taken * x)
            yh, yl = two_sum(yh, yl, taken * positive / m)
            if m > 1.0:
                variance += taken * (m - taken) / m * spread / (m - 1.0)
            rest -= taken
            room -= taken
            if room == 0:
                mean = (ph - yh) + (pl - yl)
                total += mean * mean + variance
                ph, pl, yh, yl, variance = 0.0, 0.0, 0.0, 0.0, 0.0
                room, carry = share, carry + rest_of_size
                if carry >= n_bins:
                    room, carry = share + 1, carry - n_bins
        i = last
    return total


@interpreted_first
def labelled_squares(p: Rows, y: Rows, w: Rows, bins: Rows, n_bins: int) -> float:
    """Kernel of UBSE in given bins: sum over bins of (sum of w c)^2, for rows with labels 0 to n_bins - 1."""
    sums = np.zeros((n_bins, 4))
    for i in range(p.size):
        bin_sums = sums[bins[i]]
        bin_sums[0], bin_sums[1] = two_sum(bin_sums[0], bin_sums[1], w[i] * np.float64(p[i]))
        bin_sums[2], bin_sums[3] = two_sum(bin_sums[2], bin_sums[3], w[i] * y[i])
    total = 0.0
    for k in range(n_bins):
        total += ((sums[k, 0] - sums[k, 2]) + (sums[k, 1] - sums[k, 3])) ** 2
    return total


@interpreted_first
def tent_sums(x: Rows, c: Rows, before: Rows, slopes: Rows, shares: Rows, out: Rows) -> None:
    """UBSE with a mixture of tent kernels, for each row k of c: sum over s, t of c[k, s] c[k, t] sum_h share_h tent_h.

    tent_h = max(0, 1 - |x_s - x_t| slope_h), x increasing. before[h, t] is the first point that is less than a width
    below x_t. Sums of c and of c x over the points from there to t are differences of prefix sums, so a set of masses
    takes one pass for all widths.
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


@interpreted_briefly
def grouped_tent_sums(starts: Rows, x: Rows, c: Rows, slopes: Rows, shares: Rows, out: Rows) -> None:
    """`tent_sums` of groups of points, each with its own positions: those of group g end before ``starts[g + 1]``."""
    mass, moment = x.copy(), x.copy()  # sums over the points of the group below
    first = np.zeros(slopes.size, np.int64)  # points less than a width below
    for g in range(starts.size - 1):
        below, below_moment, total = 0.0, 0.0, 0.0
        first[:] = starts[g]
        for t in range(starts[g], starts[g + 1]):
            mass[t], moment[t] = below, below_moment
            near = 0.0
            for h in range(slopes.size):
                slope, at = slopes[h], first[h]
                while (x[t] - x[at]) * slope >= 1.0:
                    at += 1
                first[h] = at
                near += shares[h] * ((below - mass[at]) * (1.0 - x[t] * slope) + (below_moment - moment[at]) * slope)
            total += c[t] * (c[t] + 2.0 * near)
            below += c[t]
            below_moment += c[t] * x[t]
        out[g] = total
