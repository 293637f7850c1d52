"""Rows that engines may disagree about, as an Arrow table, and a comparison of sketches."""

import numpy as np
import pyarrow as pa

from support.grid_cases import grid_cases

B = 4096
EPS = 2.0**-53

# Every prediction that engines may disagree about: the ends, minus zero, exact edges of buckets and their neighbours.
PROBA = [*grid_cases(B), 0.25, 0.25, 0.25]
TRUE = [(7 * i) % 3 == 0 for i in range(len(PROBA))]
WEIGHT = [(i % 5) * 0.7 for i in range(len(PROBA))]
SITE = [("north", "south", None)[i % 3] for i in range(len(PROBA))]
YEAR = [2020 + i % 2 for i in range(len(PROBA))]


def table(**columns):
    columns = {"y": TRUE, "p": PROBA, "w": WEIGHT, "site": SITE, "year": YEAR, **columns}
    return pa.table({name: values for name, values in columns.items() if values is not None})


def numbers(column):
    return [float(value) for value in column.to_pylist()]


def assert_same(sketch, other):
    """Counts and extremes exactly, sums to 1e-12 of the sizes of their terms."""
    one, two = sketch.table(), other.table()
    sizes = one["weight"] * np.maximum(1.0, one["top"]) ** 3
    for name, values in one.items():
        if name in ("bucket", "left", "right", "n", "min", "max", "top"):
            assert values.tolist() == two[name].tolist(), name
        else:
            np.testing.assert_array_less(np.abs(values - two[name]), 1e-12 * sizes + 1e-300, name)
