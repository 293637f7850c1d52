"""Rows in memory by segment: columns that define segments become keys, and the rows of each segment a sketch."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_columns, as_vector, invalid, positive_labels, refuse_unlike
from truthcal.core.class_rows import column_names
from truthcal.core.group_column import check_groups, number_values
from truthcal.core.group_keys import Key, check_by, checked_key, ordered_keys
from truthcal.core.neighbours import neighbour_z
from truthcal.core.params import shown
from truthcal.core.segment_groups import SegmentGroups
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable

_Ints = NDArray[np.int64]

# Sketches that exist at a time, 1 MB each, before they join a table, which keeps only filled buckets.
_SKETCHES = 64
# Each segment takes 1.5 ms.
_MOST_SEGMENTS = 20_000


def segment_rows(
    y_true: object,
    y_proba: object,
    by: object,
    *,
    sample_weight: object = None,
    pos_label: object = None,
    groups: object = None,
) -> SketchTable:
    """Check rows and reduce those of each segment to a sketch.

    `by` is a column with a value for each row, or several: a list of columns, a mapping of names to columns, or a data
    frame. Missing values are a segment of their own.
    """
    columns = as_columns(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
    if pos_label is not None:
        columns[0] = positive_labels(columns[0], pos_label)
    Sketch(1).update(*columns)  # one error for all rows, with the right number of the row
    names, numbers, keys = _number_segments(by, columns[1], y_proba)
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(len(keys) + 1))
    table = sketch_runs([column[order] for column in columns], edges, keys, names)
    table.neighbour_z = neighbour_z(columns[1], columns[0], numbers)
    if groups is not None:
        y, p, w = (*columns, None)[:3]
        table.segment_groups = SegmentGroups((y, p, w), check_groups(groups, y_proba), numbers, keys)
    return table


def sketch_runs(
    columns: Sequence[NDArray[Any]], edges: NDArray[np.int64], keys: Sequence[Key], by: Sequence[str]
) -> SketchTable:
    """Sketch runs of rows, which start and end at the edges, one for each key. Runs without weight are left out."""
    tables, sketches = list[SketchTable](), dict[Any, Sketch]()
    for key, (first, last) in zip(keys, pairwise(edges.tolist()), strict=True):
        part = [column[first:last] for column in columns]
        if len(part) < 3 or np.any(part[2] > 0):
            sketches[key if len(by) > 1 else key[0]] = Sketch().update(*part)
        if len(sketches) == _SKETCHES:
            tables.append(SketchTable.from_sketches(sketches, by=by))
            sketches = {}
    if sketches:
        tables.append(SketchTable.from_sketches(sketches, by=by))
    return _merge(tables)


def _merge(tables: Sequence[SketchTable]) -> SketchTable:
    """Merge tables in halves: one by one, the first segments would be copied once for each table."""
    middle = len(tables) // 2
    return _merge(tables[:middle]) + _merge(tables[middle:]) if middle else tables[0]


def _number_segments(by: object, p: NDArray[Any], y_proba: object) -> tuple[tuple[str, ...], _Ints, list[Key]]:
    """Names of the columns that define segments, the number of each row's segment, and the keys, in order."""
    columns = _columns_by_name(by)
    names = check_by(tuple(columns))
    numbers, keys = np.zeros(len(p), np.int64), list[Key]([()])
    for values in columns.values():
        column = _as_column(values)
        refuse_unlike(values, column, "by", p, "y_proba", y_proba)
        own, distinct = number_values(column, "by")
        combined, numbers = np.unique(numbers * len(distinct) + own, return_inverse=True)
        keys = [(*keys[pair // len(distinct)], distinct[pair % len(distinct)]) for pair in combined.tolist()]
        if len(keys) > _MOST_SEGMENTS:
            problem = f"divides the rows into {len(keys):,} segments; the limit is {_MOST_SEGMENTS:,}."
            raise invalid(
                "by", f"{problem} Use fewer columns or coarser values, or `sketch_frame`, which has no limit."
            )
    ordered, places = ordered_keys([checked_key(key, names) for key in keys])
    return names, np.array(places)[numbers.ravel()], ordered


def _columns_by_name(by: Any) -> dict[str, Any]:
    """Columns that define segments, by name. A column without a name is called "segment"."""
    if isinstance(by, str):
        problem = f"is {shown(by)}, but only a data frame has columns with names"
        raise invalid("by", f"{problem}. Pass the frame first, as in (frame, 'y', 'p', by={shown(by)}), or the column.")
    if isinstance(by, Mapping):
        return {str(name): column for name, column in by.items()}
    if (names := column_names(by)) is not None:
        return {str(name): by[name] for name in names}
    if isinstance(by, list | tuple) and len(by) and np.ndim(by[0]) == 1:
        return {_name_of(column) or f"segment {k}": column for k, column in enumerate(by, 1)}
    return {_name_of(by) or "segment": by}


def _name_of(column: object) -> str:
    name = getattr(column, "name", None)
    return name if isinstance(name, str) else ""


def _as_column(values: Any) -> NDArray[Any]:
    """Convert a column that defines segments to a vector; masked values are missing. Integers remain integers."""
    if isinstance(values, np.ma.MaskedArray):
        present = np.ma.getdata(values).astype(object)
        present[np.ma.getmaskarray(values)] = None
        return as_vector(present, "by")
    column = as_vector(values, "by")
    kind = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()  # of pandas and polars, or of pyarrow
    if column.dtype.kind == "f" and kind.startswith(("int", "uint")):  # with missing values, numpy has floats
        listed = values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()
        column = np.empty(len(listed), object)
        column[:] = listed
    return column


def refuse_beside_table(**arguments: object) -> None:
    """Reject columns beside a table of sketches, whose rows are summarized."""
    for name, value in arguments.items():
        if value is not None:
            raise invalid(name, "cannot be combined with a SketchTable, whose rows are summarized; omit it.", TypeError)
