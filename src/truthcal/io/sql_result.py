"""What a query of `sketch_sql` returned, as a sketch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from truthcal.core.params import check_power_of_two, shown
from truthcal.core.sketch import MAX_BUCKETS, Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io import row_codes
from truthcal.io.assemble import build_sketch, groups_of
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.engines import columns_of_frame
from truthcal.io.errors import refuse_no_rows, refuse_part, refuse_result

_Lines = dict[str, list[Any]]


@overload
def sketch_from_rows(result: Any, *, by: None = ..., pos_label: Any = ...) -> Sketch: ...


@overload
def sketch_from_rows(result: Any, *, by: str | Sequence[str], pos_label: Any = ...) -> SketchTable: ...


def sketch_from_rows(
    result: Any, *, by: str | Sequence[str] | None = None, pos_label: Any = None
) -> Sketch | SketchTable:
    """Make a sketch of what a query written by `sketch_sql` returned.

    Parameters
    ----------
    result : list of tuples, list of dicts, dict of columns, cursor, or data frame
        All lines that the database returned, as its driver gives them: ``cursor.fetchall()``, ``list(job.result())``, a
        data frame of any kind. If a tool returned only the first lines, that is found out.
    by, pos_label
        As they were given to `sketch_sql`.

    Returns
    -------
    Sketch or SketchTable
        As for `sketch_frame`, with the same checks: if the query found rows that cannot be used, the error says so.

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
    roles = ColumnRoles.of("y_true", "y_proba", "sample_weight", by, pos_label)
    lines = _lines(result, roles)
    total, n_buckets = (_one(lines.pop(name), name) for name in row_codes.CHECKS)
    refuse_part(sum(map(int, lines["n"])), total)
    groups = groups_of([lines.pop(name) for name in roles.by], roles.by)
    return build_sketch(lines, groups, roles, check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS), "the result")


def _one(values: list[Any], name: str) -> int:
    """What all lines must agree on."""
    if len(set(values)) != 1:
        refuse_result(f"lines of different queries (`{name}` is not the same in all of them)")
    return int(values[0])


def _lines(result: Any, roles: ColumnRoles) -> _Lines:
    """The result as columns by name."""
    others = row_codes.OTHERS if roles.pos_label is not None else ()
    known = [
        (*roles.by, "code", *sums, *others, *row_codes.CHECKS) for sums in (row_codes.UNWEIGHTED, row_codes.WEIGHTED)
    ]
    columns: _Lines | None
    if isinstance(result, Mapping):
        columns = {str(name): list(values) for name, values in result.items()}
    else:
        columns = columns_of_frame(result) if not isinstance(result, list | tuple) else _from_lines(list(result), known)
        if columns is None:  # a cursor, perhaps
            columns = _from_lines(list(result), known) if isinstance(result, Iterable) else {}
    if not any(set(columns) == set(names) for names in known):
        refuse_result(f"the columns {', '.join(columns) or '(none)'}")
    return columns


def _from_lines(lines: list[Any], known: list[tuple[str, ...]]) -> _Lines:
    """Tuples in the order of the query, or lines that know the names of their columns."""
    if not lines:
        refuse_no_rows(0, "the result")
    if hasattr(lines[0], "keys") and not isinstance(lines[0], tuple):  # a dict, a row of sqlite3 or BigQuery
        return {str(name): [line[name] for line in lines] for name in lines[0].keys()}  # noqa: SIM118
    if not isinstance(lines[0], Sequence) or isinstance(lines[0], str):
        refuse_result(f"lines such as {shown(lines[0])}")
    names = next((names for names in known if len(names) == len(lines[0])), None)
    if names is None:
        refuse_result(f"{len(lines[0])} columns")
    return {name: list(values) for name, values in zip(names, zip(*lines, strict=True), strict=True)}
