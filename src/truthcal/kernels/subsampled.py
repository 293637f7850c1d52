"""Loops of the calibration errors of a random half of the rows."""

from truthcal.kernels.jit import Rows, interpreted_first, two_sum


@interpreted_first
def subset_bias(r: Rows, y: Rows, counts: Rows, cumulative: Rows) -> None:
    """Kernel of subsampling: sum of counts * (r - y) over the rows up to each distinct r, inclusive."""
    high, low = 0.0, 0.0
    group = -1
    for i in range(r.size):
        if i == 0 or r[i] != r[i - 1]:
            group += 1
        high, low = two_sum(high, low, counts[i] * (r[i] - y[i]))
        cumulative[group] = high + low


@interpreted_first
def merge_groups(r: Rows, mass: Rows, positive: Rows, steps: int, out: Rows) -> int:
    """Kernel of subsampling: merge groups into mean r, zeros, ones. Returns the number of merged groups.

    Groups that begin within the same of `steps` equal parts of the total mass become one.
    """
    total = 0.0
    for i in range(r.size):
        total += mass[i]
    before, step, count = 0.0, -1, -1
    for i in range(r.size):
        part = int(before / total * steps)
        if part != step:
            step = part
            count += 1
            out[:, count] = 0.0
        out[0, count] += r[i] * mass[i]
        out[1, count] += mass[i] - positive[i]
        out[2, count] += positive[i]
        before += mass[i]
    for k in range(count + 1):
        out[0, k] /= out[1, k] + out[2, k]
    return count + 1
