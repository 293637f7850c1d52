"""Loops of the smooth calibration error. Input: distinct predictions, increasing."""

import numpy as np

from truthcal.kernels.jit import Rows, compiled


@compiled
def smooth_error(r: Rows, cumulative: Rows, fit: Rows) -> float:
    """smCal, the largest sum of c f with f Lipschitz in [-1, 1]: |C| + min over monotone E of sum of d |C_i - E_i|.

    E, which rises from 0 to C, is an L1 isotonic regression, solved by the slope trick: a max-heap holds the points
    where the cost changes its slope as a function of the last level. Points outside [0, C] are clipped to it, and their
    cost is added; they do not enter the heap (`at_top` holds those at C, those at 0 are not needed). If `fit` has room,
    it receives E, with the sign that makes C non-negative.
    """
    n = r.size
    sign = 1.0 if cumulative[n - 1] >= 0.0 else -1.0
    top = sign * cumulative[n - 1]
    value, weight = np.empty(n), np.empty(n)
    size, at_top, cost = 0, 0.0, 0.0
    for i in range(n - 1):
        d = r[i + 1] - r[i]
        x = sign * cumulative[i]
        if x >= top:
            cost += d * (x - top)
            at_top += d
        else:
            level = max(x, 0.0)
            cost += d * (level - x)
            spent = min(at_top, d)  # remove the slope d from the largest points down to this one
            at_top -= spent
            cost += spent * (top - level)
            rest = d - spent
            while rest > 0.0 and size > 0 and value[0] > level:
                spent = min(weight[0], rest)
                cost += spent * (value[0] - level)
                rest -= spent
                weight[0] -= spent
                if weight[0] <= 0.0:
                    size = pop_from_heap(value, weight, size)
            if level > 0.0:
                size = push_on_heap(value, weight, size, level, 2.0 * d - rest)
        if fit.size > 0:
            fit[i] = top if at_top > 0.0 else (value[0] if size > 0 else 0.0)
    if fit.size > 0:
        fit[n - 1] = top
        for i in range(n - 2, -1, -1):
            fit[i] = min(fit[i], fit[i + 1])
    return float(top + cost)


@compiled
def pop_from_heap(value: Rows, weight: Rows, size: int) -> int:
    """Take the largest entry off the heap of `smooth_error`; returns its new size."""
    size -= 1
    v, w = value[size], weight[size]
    k = 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and value[child + 1] > value[child]:
            child += 1
        if value[child] <= v:
            break
        value[k], weight[k] = value[child], weight[child]
        k = child
    value[k], weight[k] = v, w
    return size


@compiled
def push_on_heap(value: Rows, weight: Rows, size: int, v: float, w: float) -> int:
    """Put an entry on the heap of `smooth_error`; returns its new size."""
    k = size
    while k > 0 and value[(k - 1) >> 1] < v:
        value[k], weight[k] = value[(k - 1) >> 1], weight[(k - 1) >> 1]
        k = (k - 1) >> 1
    value[k], weight[k] = v, w
    return size + 1


@compiled
def witness(r: Rows, cumulative: Rows, fit: Rows, f: Rows) -> None:
    """The Lipschitz function that attains smCal, from the monotone fit E of `smooth_error`.

    By complementary slackness f steps down by d where C_i > E_i and up by d where C_i < E_i, and is 1 wherever E rises.
    Steps where C_i = E_i are free: within a block of constant E they are taken down first and up later, which keeps f
    below 1, and so that f is back at 1 where E rises next.
    """
    n = r.size
    sign = 1.0 if cumulative[n - 1] >= 0.0 else -1.0
    f[0] = 0.0
    first = 0
    while first < n - 1:
        last = first
        while last < n - 1 and fit[last] == fit[first]:
            last += 1
        witness_in_block(r, cumulative, fit, sign, first, last, f)
        first = last
    shift = 0.0
    if fit[n - 1] > 0.0:  # f is 1 where E first rises
        rises = 0
        while fit[rises] <= 0.0:
            rises += 1
        shift = 1.0 - f[rises]
    for i in range(n):
        f[i] = sign * max(min(f[i] + shift, 1.0), -1.0)


@compiled
def witness_in_block(r: Rows, cumulative: Rows, fit: Rows, sign: float, first: int, last: int, f: Rows) -> None:
    """Continue the witness f of smCal through a block of constant E, from node `first` to node `last`."""
    level, bound, free = fit[first], 0.0, 0.0
    for i in range(first, last):
        d, x = r[i + 1] - r[i], sign * cumulative[i]
        if x == level:
            free += d
        else:
            bound += d if x > level else -d
    down = (free - bound) / 2.0
    if level >= fit[fit.size - 1]:  # E no longer rises: f need not come back
        down = free
    elif level <= 0.0:  # E has not risen yet: f need not start at 1
        down = 0.0
    for i in range(first, last):
        d, x = r[i + 1] - r[i], sign * cumulative[i]
        step = d if x > level else -d
        if x == level:
            part = min(down, d)
            down -= part
            step = 2.0 * part - d
        f[i + 1] = f[i] - step
