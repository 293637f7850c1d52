"""Sketches from sums by row code: the last step for engines, files and queries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.bucket_stats import predictions_are_certain
from truthcal.core.checks import is_missing_object, refuse_no_weight, refuse_swapped
from truthcal.core.grid import Grid
from truthcal.core.group_keys import checked_key, plain_value
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io import row_codes
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import refuse_impossible_sums, refuse_invalid_rows, refuse_more_labels

_Floats = NDArray[np.float64]
_Column = Sequence[Any] | NDArray[Any]
Groups = tuple[NDArray[Any], Sequence[tuple[Any, ...]]]  # of each line or row, an index into a list of keys


def build_sketch(
    table: Mapping[str, _Column], groups: Groups | None, roles: ColumnRoles, n_buckets: int, where: str
) -> Sketch | SketchTable:
    """Assemble the sketch, or one for each group, from a table with the columns that `row_codes` describes."""
    numbers = float_columns(table)
    refuse_invalid_rows(numbers, roles, where)
    used = numbers["code"] >= 0
    refuse_no_weight(int(np.count_nonzero(used)))
    if "w" not in numbers:
        numbers |= columns_without_weights(numbers)
    bucket, columns = numbers["code"][used].astype(np.int64), np.vstack([numbers[name] for name in row_codes.WEIGHTED])
    columns[row_codes.WEIGHTED.index("low") :] += 0.0  # -0.0 + 0.0 is 0.0
    if not used.all():
        columns = columns[:, used]
    if not np.isfinite(columns).all() or (bucket >= n_buckets).any():
        refuse_impossible_sums(where)
    _, w, _, wp, pos, neg, _, wcc = columns[:8]
    # Where predictions are only 0 and 1, outcomes are 0 and 1 if |c| is c^2.
    fractional = bool((pos + neg - wcc > 1e-9 * (pos + neg)).any())
    refuse_swapped(predictions_are_certain(columns) and fractional)
    if roles.pos_label is not None:
        refuse_more_labels(other_labels(table), bool((wp - pos + neg > 1e-9 * w).any()), roles)
    if groups is not None:
        return SketchTable._from_cells(roles.by, groups[1], groups[0][used], bucket, columns, n_buckets)
    order = np.argsort(bucket)
    wrong = "the sums are inconsistent; no rows can have these sums."
    return Sketch._from_columns(Grid.of_size(n_buckets), bucket[order], columns[:, order], wrong)


def merge_lines(table: Mapping[str, _Column], segments: Groups | None) -> tuple[dict[str, Any], Groups | None]:
    """Add up the lines with the same segment and code, in a table to assemble with several lines for each."""
    numbers = float_columns(table)
    index, keys = segments or (np.zeros(len(numbers["code"]), np.int64), [()])
    pairs, line = np.unique(np.stack([index, numbers["code"]]), axis=1, return_inverse=True)
    merged: dict[str, Any] = {name: table[name] for name in row_codes.OTHERS if name in table}
    merged["code"] = pairs[1]
    for name, values in numbers.items():
        extreme = {"low": np.fmin, "high": np.fmax, "top": np.fmax}.get(name)
        if name != "code":
            merged[name] = np.full(pairs.shape[1], 0.0 if extreme is None else np.nan)
            (extreme or np.add).at(merged[name], line.ravel(), values)
    return merged, None if segments is None else (pairs[0].astype(np.int64), keys)


def columns_without_weights(table: Mapping[str, _Floats]) -> dict[str, _Floats]:
    """Return the columns of the table to assemble that depend on weights, if all rows have a weight of 1."""
    counts = dict.fromkeys(("w", "ww", "www", "wwww"), table["n"])
    return counts | {"wwcc": table["wcc"], "wwc": table["pos"] - table["neg"], "top": np.ones(len(table["n"]))}


def assemble_groups(columns: Sequence[Sequence[Any]], names: tuple[str, ...]) -> Groups | None:
    """Assemble the groups of a table of sums: number its distinct keys; None if there are no grouping columns."""
    if not columns:
        return None
    numbers: dict[tuple[Any, ...], int] = {}
    columns = [_groups_in_utc(column, name) for column, name in zip(columns, names, strict=True)]
    try:
        index = [numbers.setdefault(key, len(numbers)) for key in zip(*columns, strict=True)]
    except TypeError:  # a list, which cannot be hashed; the check of keys has the message
        for key in zip(*columns, strict=True):
            checked_key(key, names)
        raise
    return np.array(index, dtype=np.int64), list(numbers)


def _groups_in_utc(column: Sequence[Any], name: str) -> Sequence[Any]:
    """Convert times to UTC: in a time zone, two times are equal for Python even if the clock was set back between."""
    first = next((value for value in column if value is not None), None)
    return [plain_value(value, name) for value in column] if isinstance(first, datetime) else column


def float_columns(table: Mapping[str, _Column]) -> dict[str, _Floats]:
    """Convert the table to assemble to floats, but for its labels; missing values become nan, a Decimal its float."""
    return {name: _float_column(column) for name, column in table.items() if name not in row_codes.OTHERS}


def _float_column(values: _Column) -> _Floats:
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.astype(np.float64, copy=False)
    raw = np.array(values, dtype=object)
    raw[is_missing_object(raw)] = np.nan
    return raw.astype(np.float64)


def other_labels(table: Mapping[str, _Column]) -> list[Any]:
    """Return the labels in the table to assemble that are not the positive one."""
    labels = np.array([label for name in row_codes.OTHERS for label in table[name]], dtype=object)
    return list(labels[~is_missing_object(labels)])
