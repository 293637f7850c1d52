"""Predictions that engines may put into different buckets: one table for the tests of all engines."""

import math

# Where the widths of buckets change below 1/2, in grids of any number of buckets.
STARTS = [2.0**-13, 2.0**-11, 2.0**-7, 2.0**-6, 2.0**-4]


def grid_cases(n_buckets):
    """Return the ends, the middle, changes of width, edges of the first and last buckets, and neighbours of them all."""
    below = [*STARTS, 0.5, *(1 / (256 * n_buckets) * k for k in (1, 2)), *(0.25 + k / n_buckets for k in (2, 4, 6))]
    below += [2.0**-6 - 1 / (8 * n_buckets), 2.0**-6 + 1 / n_buckets, 2.0**-4 - 1 / n_buckets, 1 / 3, 0.01, 0.001]
    edges = {*below, *(1.0 - edge for edge in below), 0.0, 1.0}
    neighbours = {math.nextafter(edge, end) for edge in edges for end in (0.0, 1.0)}
    return [-0.0, *sorted(edges | neighbours | {1e-300, 1e-17, 2.0**-1022})]
