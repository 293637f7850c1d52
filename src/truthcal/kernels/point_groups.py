"""Loops over the points of many groups: those of group g stand from ``starts[g]`` to ``starts[g + 1]``."""

from truthcal.kernels.jit import Rows, compiled, interpreted_first


@compiled
def cumulative_sums(starts: Rows, column: Rows, out: Rows) -> None:
    """Cumulative sums of a column of points, from the first point of each group on."""
    for g in range(starts.size - 1):
        total = 0.0
        for k in range(starts[g], starts[g + 1]):
            total += column[k]
            out[k] = total


@interpreted_first
def break_at_odds(
    starts: Rows, p: Rows, weight: Rows, ww: Rows, levels: Rows, least_rows: float, smallest: float, breaks: Rows
) -> None:
    """Add breaks at the given increasing predictions, within stretches between breaks where odds differ 10 times.

    Both pieces must have an effective number of rows of at least `least_rows`. Odds are those of predictions from
    `smallest` to 1 - `smallest`. The first point of each group is a break already.
    """
    for g in range(starts.size - 1):
        at = starts[g]
        for level in levels:
            while at < starts[g + 1] and p[at] < level:
                at += 1
            if at == starts[g + 1] or breaks[at]:
                continue
            begin, end = at - 1, at + 1
            below, below_ww, above, above_ww = weight[begin], ww[begin], weight[at], ww[at]
            while not breaks[begin]:
                begin -= 1
                below += weight[begin]
                below_ww += ww[begin]
            while end < starts[g + 1] and not breaks[end]:
                above += weight[end]
                above_ww += ww[end]
                end += 1
            first, last = max(p[begin], smallest), min(p[end - 1], 1.0 - smallest)
            first, last = min(first, 1.0 - smallest), max(last, smallest)
            wide = last / (1.0 - last) > 10.0 * first / (1.0 - first)
            breaks[at] = wide and min(below**2 / below_ww, above**2 / above_ww) >= least_rows
