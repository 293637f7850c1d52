"""From sums by code to a sketch: where all engines, files and queries meet."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.bucket_stats import predictions_are_certain
from truthcal.core.checks import is_missing_object, refuse_no_weight, refuse_swapped
from truthcal.core.group_keys import checked_key, plain_value
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io import row_codes
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import Found, refuse_bad_rows, refuse_more_labels, refuse_no_rows, refuse_wrong_sums

_Floats = NDArray[np.float64]


_Column = Sequence[Any] | NDArray[Any]


# For each line of a table, or for each row, an index into a list of keys.
Groups = tuple[NDArray[Any], Sequence[tuple[Any, ...]]]


def build_sketch(
    table: Mapping[str, _Column], groups: Groups | None, roles: ColumnRoles, n_buckets: int, where: str
) -> Sketch | SketchTable:
    """The sketch, or one for each group, if all rows can be used. `table` has the columns that `codes` names."""
    known = {name: as_floats(column) for name, column in table.items() if name not in row_codes.OTHERS}
    total = int(known["n"].sum())
    refuse_no_rows(total, where)
    refuse_bad_rows(found_in(known), total, roles, where)
    used = known["code"] >= 0
    refuse_no_weight(int(np.count_nonzero(used)))
    bucket, columns = known["code"][used].astype(np.int64), _columns(known)
    if not used.all():
        columns = columns[:, used]
    if not np.isfinite(columns).all() or (bucket >= n_buckets).any():
        refuse_wrong_sums(where)
    _refuse_swapped(columns)
    if roles.pos_label is not None:
        _, w, _, wp, pos, neg = columns[:6]
        refuse_more_labels(other_labels(table), bool((wp - pos + neg > 1e-9 * w).any()), roles)
    if groups is not None:
        return SketchTable._from_cells(roles.by, groups[1], groups[0][used], bucket, columns, n_buckets)
    order = np.argsort(bucket)
    wrong = "the sums contradict each other; no rows have such sums."
    return Sketch._from_columns(n_buckets, bucket[order], columns[:, order], wrong)


def groups_of(columns: Sequence[Sequence[Any]], names: tuple[str, ...]) -> Groups | None:
    """The groups that columns of values make, line by line; None if there are no columns."""
    if not columns:
        return None
    number: dict[tuple[Any, ...], int] = {}
    columns = [_in_utc(column, name) for column, name in zip(columns, names, strict=True)]
    try:
        index = [number.setdefault(key, len(number)) for key in zip(*columns, strict=True)]
    except TypeError:  # a list, which cannot be told apart from others; the check of keys has the words
        for key in zip(*columns, strict=True):
            checked_key(key, names)
        raise
    return np.array(index, dtype=np.int64), list(number)


def _in_utc(column: Sequence[Any], name: str) -> Sequence[Any]:
    """Times in a zone are equal for Python if they read alike, though the clock may have been set back between them."""
    first = next((value for value in column if value is not None), None)
    return [plain_value(value, name) for value in column] if isinstance(first, datetime) else column


def as_floats(values: _Column) -> _Floats:
    """Numbers as they come: what is missing is nan, and a Decimal is its float."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64, copy=False)
    raw = np.array(values, dtype=object)
    raw[is_missing_object(raw)] = np.nan
    return raw.astype(np.float64)


def found_in(known: Mapping[str, _Floats]) -> dict[int, Found]:
    """What the codes say of rows that cannot be used."""
    found: dict[int, Found] = {}
    for i in np.flatnonzero(known["code"] < row_codes.WEIGHTLESS):
        code, n, low, high = int(known["code"][i]), int(known["n"][i]), float(known["low"][i]), float(known["high"][i])
        if low > high:  # the smallest and largest of no numbers, as some engines have them
            low = high = np.nan
        found[code] = found.get(code, Found()) + Found(n, low, high)
    return found


def other_labels(table: Mapping[str, _Column]) -> list[Any]:
    """The labels that are not the positive one, as far as the table has them."""
    labels = np.array([label for name in row_codes.OTHERS for label in table[name]], dtype=object)
    return list(labels[~is_missing_object(labels)])


def _columns(known: Mapping[str, _Floats]) -> _Floats:
    """The columns of a sketch, in order."""
    if "w" not in known:
        known = {**known, "w": known["n"], "ww": known["n"], "wwcc": known["wcc"]}
    columns = np.vstack([known[name] for name in row_codes.WEIGHTED])
    columns[-2:] += 0.0  # -0.0 + 0.0 is 0.0
    return columns


def _refuse_swapped(columns: _Floats) -> None:
    """Beside predictions of nothing but 0 and 1, outcomes are 0 and 1 if |c| is c^2."""
    pos, neg, wcc = columns[4], columns[5], columns[7]
    refuse_swapped(predictions_are_certain(columns) and bool((pos + neg - wcc > 1e-9 * (pos + neg)).any()))
