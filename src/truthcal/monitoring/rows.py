"""Rows of a monitor reduced to sums: from a sketch, or from groups of rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, invalid
from truthcal.core.group_keys import ordered_keys, plain_value
from truthcal.core.sketch import Sketch
from truthcal.monitoring.blocks import sums_of_groups, sums_of_rows
from truthcal.monitoring.pending import ScoredRow
from truthcal.monitoring.tilts import BUCKETS, GRID, group_log_factors

_Ints = NDArray[np.int64]

# Rounding errors of sums over a bucket, per row.
_ROUNDING = 1e-6


def sketch_sums(sketch: Sketch) -> _Ints:
    """Return the sums of the rows of a sketch. Rejects weights, fractional outcomes and buckets that do not fit."""
    if not sketch.grid.graded:
        rule = f"must have at least {BUCKETS} graded buckets"
        raise ValueError(f"the sketch {rule} for a monitor; this one has {sketch.grid}. Build it again from its rows.")
    if not sketch.n:
        raise ValueError("the sketch is empty; add rows with .update(y_true, y_proba) first.")
    if sketch.flips is not None:
        problem = "the sketch has groups of rows that belong together, which a monitor cannot take from a sketch"
        raise ValueError(f"{problem}. Pass the rows with `groups`, or build the sketch without them.")
    table = sketch.table()
    n, w, proba = table["n"], table["weight"], table["wp"]
    if not sketch.weights_known or (w != n).any() or (table["ww"] != n).any():
        raise ValueError("the sketch has weights; a monitor needs rows without weights. Build it again without them.")
    positives = np.rint(proba - table["pos"] + table["neg"]).astype(np.int64)
    # Without weights, sum y^2 = sum c^2 - 2 sum c p + sum p^2; for outcomes of 0 and 1 it equals sum y.
    squares = table["wcc"] - 2.0 * table["wcp"] + (proba - table["wwv"])
    if (np.abs(squares - positives) > _ROUNDING * (n + 1)).any():
        raise ValueError("the sketch has fractional outcomes; a monitor needs outcomes of 0 and 1.")
    bucket = table["bucket"] // (sketch.n_buckets // GRID.n_buckets)
    rows, events = (np.bincount(bucket, column, BUCKETS).astype(np.int64) for column in (n, positives))
    predictions = np.bincount(bucket, proba, BUCKETS).astype(np.float64)
    return sums_of_rows(rows, events, predictions, float(table["wcc"].sum()))


def group_sums(rows: Sequence[ScoredRow]) -> _Ints:
    """Return the sums of rows in groups. They do not depend on the order of the rows."""
    p, y = np.array([row.p for row in rows]), np.array([row.y for row in rows], np.int64)
    group = np.array(ordered_keys([(row.group,) for row in rows])[1])
    order = np.lexsort((y, p, group))
    group, p, y = group[order], p[order], y[order]
    sizes = np.bincount(group)
    totals = np.stack([np.bincount(group, p), np.bincount(group, p - y) ** 2])
    return sums_of_groups(group_log_factors(sizes, p, y), totals, len(p), int(y.sum()))


def plain_keys(values: object, name: str, n: int) -> list[Any]:
    """Check a column of names of rows or groups: plain values, none of them missing."""
    # numpy would turn a list of numbers and text into text.
    column = as_vector(np.fromiter(values, object) if isinstance(values, list | tuple) else values, name)
    if len(column) != n:
        raise invalid(name, f"has {len(column)} rows but there are {n} outcomes or predictions; they must match.")
    keys = [plain_value(value, name) for value in column]
    if None in keys:
        raise invalid(name, f"has a missing value at row {keys.index(None)}; name every row.")
    return keys
