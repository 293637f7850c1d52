"""Sketches from the results of `sketch_sql` queries."""

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, overload

import narwhals as nw

from truthcal.core.checks import invalid
from truthcal.core.grid import MAX_BUCKETS, Grid
from truthcal.core.group_flips import cells_of
from truthcal.core.params import check_power_of_two, shown
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io import row_codes
from truthcal.io.assemble import Groups, assemble_groups, build_sketch, float_columns, merge_lines
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.engines import collect
from truthcal.io.errors import refuse_no_rows
from truthcal.io.segment_flips import flips_of_entries


@overload
def sketch_from_rows(result: Any, *, by: None = ..., pos_label: Any = ..., groups: str | None = ...) -> Sketch: ...


@overload
def sketch_from_rows(
    result: Any, *, by: str | Sequence[str], pos_label: Any = ..., groups: str | None = ...
) -> SketchTable: ...


def sketch_from_rows(
    result: Any, *, by: str | Sequence[str] | None = None, pos_label: Any = None, groups: str | None = None
) -> Sketch | SketchTable:
    """Build a sketch from the result of a query that `sketch_sql` wrote.

    Parameters
    ----------
    result : list of tuples, list of dicts, dict of columns, cursor, or data frame
        All lines that the database returned, in any form: ``cursor.fetchall()``, ``list(job.result())``, a data frame.
        Missing lines, if a tool returns only the first ones, are an error.
    by, pos_label, groups
        The same as for `sketch_sql`.

    Returns
    -------
    Sketch or SketchTable
        As for `sketch_frame`, with the same checks: if the query found invalid rows, it raises.

    Examples
    --------
    >>> import sqlite3
    >>> import truthcal as tc
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE clicks (clicked INTEGER, score REAL)")
    >>> _ = database.executemany("INSERT INTO clicks VALUES (?, ?)", [(0, 0.2), (1, 0.9), (1, 0.6), (0, 0.3)])
    >>> query = tc.sketch_sql("clicks", y_true="clicked", y_proba="score", dialect="sqlite")
    >>> tc.sketch_from_rows(database.execute(query).fetchall())
    Sketch(n_buckets=4096): 4 rows
    """
    roles = ColumnRoles.of("y_true", "y_proba", "sample_weight", by, pos_label, groups)
    columns = _result_columns(result, roles)
    total, n_buckets = (_common_value(columns.pop(name), name) for name in row_codes.CHECKS)
    rows = sum(map(int, columns["n"]))
    if rows != total:
        cure = "Some clients return only the first thousand lines of a result; fetch each line exactly once."
        raise invalid("result", f"is incomplete: it accounts for {rows:,} of {total:,} rows of the table. {cure}")
    n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
    segments = assemble_groups([columns.pop(name) for name in roles.by], roles.by)
    if roles.groups is None:
        return build_sketch(columns, segments, roles, n_buckets, "the result")
    return _build_grouped(columns, columns.pop(roles.groups), segments, roles, Grid.of_size(n_buckets))


def _build_grouped(
    columns: dict[str, Any], keys: Sequence[Any], segments: Groups | None, roles: ColumnRoles, grid: Grid
) -> Sketch | SketchTable:
    """Assemble the sketch of a result with a line for each segment, group and code."""
    table, those = merge_lines(columns, segments)
    sketch = build_sketch(table, those, roles, grid.n_buckets, "the result")
    numbers = float_columns(columns)
    valid = numbers["code"] >= 0
    entries = {
        "cell": numbers["code"][valid] * cells_of(grid) // grid.n_buckets,
        "n": numbers["n"][valid],
        "errors": (numbers["pos"] - numbers["neg"])[valid],
        "weights": numbers.get("w", numbers["n"])[valid],
    }
    some = None if segments is None else (segments[0][valid], segments[1])
    groups = list(itertools.compress(keys, valid.tolist()))
    flips_of_entries(entries, groups, some, roles, grid, "the result").store_in(sketch)
    return sketch


def _common_value(values: Sequence[Any], name: str) -> int:
    """Return the value that all lines of the query's result must have."""
    if len(set(values)) != 1:
        _refuse_result(f"lines of different queries (`{name}` is not the same in all of them)")
    return int(values[0])


def _result_columns(result: Any, roles: ColumnRoles) -> dict[str, Any]:
    last = (*(row_codes.OTHERS if roles.pos_label is not None else ()), *row_codes.CHECKS)
    headers = [(*roles.keys, "code", *sums, *last) for sums in (row_codes.UNWEIGHTED, row_codes.WEIGHTED)]
    columns: dict[str, Any] | None = None
    if isinstance(result, Mapping):
        columns = {str(name): list(values) for name, values in result.items()}
    elif not isinstance(result, list | tuple):
        with contextlib.suppress(TypeError):  # not a data frame
            columns = collect(nw.from_native(result).lazy(), as_lists=roles.keys)
    if columns is None:  # lines, or a cursor
        columns = _result_from_lines(list(result), headers) if isinstance(result, Iterable) else {}
    if not any(set(columns) == set(header) for header in headers):
        _refuse_result(f"the columns {', '.join(columns) or '(none)'}")
    return columns


def _result_from_lines(lines: list[Any], headers: list[tuple[str, ...]]) -> dict[str, Any]:
    """Return the columns of a query's result from tuples in the order of the query, or from lines with column names."""
    if not lines:
        refuse_no_rows(0, "the result")
    if hasattr(lines[0], "keys") and not isinstance(lines[0], tuple):  # a dict, a row of sqlite3 or BigQuery
        return {str(name): [line[name] for line in lines] for name in lines[0].keys()}  # noqa: SIM118
    if not isinstance(lines[0], Sequence) or isinstance(lines[0], str):
        _refuse_result(f"lines such as {shown(lines[0])}")
    header = next((header for header in headers if len(header) == len(lines[0])), None)
    if header is None:
        _refuse_result(f"{len(lines[0])} columns")
    return {name: list(values) for name, values in zip(header, zip(*lines, strict=True), strict=True)}


def _refuse_result(description: str) -> NoReturn:
    rule = "must be the complete result of a query written by sketch_sql, with the same `by`, `pos_label` and `groups`"
    raise invalid("result", f"{rule}; got {description}.")
