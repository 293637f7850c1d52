"""The summary of a monitor: the evidence, what it shows and since when, and the bias with its confidence sequence."""

import math

import numpy as np

from truthcal.monitoring.blocks import Blocks, Totals, log_sum
from truthcal.monitoring.tilts import tilt_table
from truthcal.results.intervals import ConfidenceInterval

# The confidence sequence is narrowest, relative to an interval for one look, when the sum of squared errors is this.
_NARROWEST = 1000.0


def bias_sequence(totals: Totals, alpha: float) -> ConfidenceInterval:
    """Return the bias of all rows so far, with an interval that holds at all looks together.

    Robbins' normal mixture: sqrt((V + r) log((V + r) / (r alpha^2))) / n, where V is the sum over rows, or groups, of
    squared errors. V stands for the variance of the outcomes, so the interval is asymptotic; it is wide while V is
    below r, about 110, so this does not matter for few rows either.
    """
    measure, why = "bias", "a confidence sequence: it holds at all looks together"
    if totals.n == 0:
        nan = math.nan
        return ConfidenceInterval(nan, nan, 1.0 - alpha, measure, nan, "none", "there are no rows")
    spare = 2.0 * math.log(1.0 / alpha)
    r = _NARROWEST / (spare + math.log1p(spare))
    v = totals.squares + r
    half = math.sqrt(v * (math.log(v / r) + spare)) / totals.n
    bias = (totals.proba - totals.positives) / totals.n
    low, high = max(bias - half, -1.0), min(bias + half, 1.0)
    return ConfidenceInterval(low, high, 1.0 - alpha, measure, bias, "normal mixture", why)


def main_error(blocks: Blocks) -> tuple[str, int]:
    """Return the kind of error that most of the evidence speaks for, in words, and the window since when."""
    table, terms = tilt_table(), blocks.log_terms()
    kind = 2 * table.shape + (table.sign > 0)
    totals = [log_sum(terms[:, kind == k]) for k in range(2 * len(table.shapes))]
    best = int(np.argmax(totals))
    by_start = np.array([log_sum(row) for row in terms[:, kind == best]])
    share = np.cumsum(np.exp(by_start - by_start.max()))
    start = int(blocks.starts[np.searchsorted(share, share[-1] / 2.0)])
    since = blocks.totals(start)
    return table.shapes[best // 2].describe(1 if best % 2 else -1, since.proba / max(since.n, 1)), start
