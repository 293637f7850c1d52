"""Sketches of data frames: one lazy expression for every engine that narwhals supports."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack, cast, overload

import narwhals as nw
import numpy as np

from truthcal.core.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT, invalid
from truthcal.core.frame_columns import require_columns
from truthcal.core.grid import MAX_BUCKETS, Grid
from truthcal.core.group_flips import cells_of
from truthcal.core.neighbours import SpreadRows
from truthcal.core.params import check_power_of_two, shown
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io import row_codes
from truthcal.io.assemble import Groups, assemble_groups, build_sketch
from truthcal.io.column_roles import ColumnOptions, ColumnRoles
from truthcal.io.errors import refuse_column_type, refuse_nested_groups, refuse_other_type_of_label
from truthcal.io.frame_batches import accumulate_frame, series_to_numpy
from truthcal.io.row_codes import Check, error_codes, rules_for
from truthcal.io.row_order import RowOrder
from truthcal.io.segment_flips import SegmentFlips, flips_of_entries

_GROUPS = "truthcal_groups"  # alias of the column that says which rows belong together


@overload
def sketch_frame(frame: Any, *, by: None = ..., **columns: Unpack[ColumnOptions]) -> Sketch: ...


@overload
def sketch_frame(frame: Any, *, by: str | Sequence[str], **columns: Unpack[ColumnOptions]) -> SketchTable: ...


def sketch_frame(
    frame: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: Any = None,
    groups: str | None = None,
    n_buckets: int = 4096,
) -> Sketch | SketchTable:
    """Reduce a data frame of any engine to a sketch, where the rows are.

    Parameters
    ----------
    frame : data frame
        pandas, polars (eager or lazy), a pyarrow table, a DuckDB relation, a PySpark or Dask data frame, an ibis table
        (of a backend with nan and infinity, such as DuckDB): all that narwhals supports.
    y_true, y_proba : str
        Columns of outcomes (0/1, booleans, fractions in [0, 1]) and of predicted probabilities: any numbers.
    sample_weight : str, optional
        Column of weights, 0 or between 1e-70 and 1e70.
    by : str or list of str, optional
        Columns that define groups: the result is then a `SketchTable`, with one sketch for each group.
    pos_label : optional
        The label in `y_true` that counts as 1; needed for text.
    groups : str, optional
        Column that says which rows belong together: patient, match or day. Tests and intervals of the sketch then
        allow for it, also if a group is split over sketches that are merged later.
    n_buckets : int, default 4096
        As for `Sketch`. With many groups, fewer may suffice: 256 give ATB to within 4e-3 at worst, usually to 2e-6.

    Returns
    -------
    Sketch or SketchTable
        It has `atb`, can be saved and merged, and `assess`, `calibration_test` and `reliability_curve` accept it.

    Notes
    -----
    In Spark, Dask and ibis one query aggregates the rows by bucket, and only the sums reach Python. Engines in this
    process (DuckDB, Polars, pandas, pyarrow) pass the named columns to compiled loops, which takes about half the time:
    DuckDB and Polars in batches of a million rows, pandas and pyarrow after they have converted them to float64. The
    batches of Polars have no fixed order, so that sums of weights may differ in the last digits between calls. If rows
    are invalid, the query counts missing values, numbers out of range and wrong labels, and the error names the column,
    the number of rows, and an example. No row is ever dropped.

    With `groups`, Spark, Dask and ibis run a second query, which returns two sums for each group and each of 128 ranges
    of predictions that it has rows in: 50 bytes of memory in Python for each. Engines in this process return nothing
    more. The result is the same up to rounding.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import truthcal as tc
    >>> frame = pa.table({"clicked": [0, 1, 1, 0], "score": [0.2, 0.9, 0.6, 0.3], "site": ["a", "a", "b", "b"]})
    >>> print(tc.sketch_frame(frame, y_true="clicked", y_proba="score").atb())
    0.01025, certain to 1e-14
    >>> tc.sketch_frame(frame, y_true="clicked", y_proba="score", by="site")["b"]
    Sketch(n_buckets=4096): 2 rows
    """
    n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
    roles = ColumnRoles.of(y_true, y_proba, sample_weight, by, pos_label, groups)
    rows = select_columns(lazy_frame(frame), roles)
    sums = accumulate_frame(rows, _key_aliases(roles), roles, n_buckets)
    table, segments = sums[:2] if sums else aggregate_in_engine(rows, roles, n_buckets)
    result = build_sketch(table, segments, roles, n_buckets, "the frame")
    _store_row_order(result, frame, roles)
    if roles.groups is not None:
        flips = sums[2] if sums else aggregate_groups(rows, roles, n_buckets)
        flips.store_in(result)
    return result


def aggregate_in_engine(
    rows: nw.LazyFrame[Any], roles: ColumnRoles, n_buckets: int
) -> tuple[dict[str, Any], Groups | None]:
    """Let the engine add up the rows by group and code; return the table of sums and its groups."""
    coded = with_code_column(rows, roles.sample_weight is not None, n_buckets)
    columns = collect(_aggregate_frame(coded, roles), as_lists=_group_aliases(roles))
    return columns, assemble_groups([columns.pop(name) for name in _group_aliases(roles)], roles.by)


def aggregate_groups(rows: nw.LazyFrame[Any], roles: ColumnRoles, n_buckets: int) -> SegmentFlips:
    """Let the engine add up the valid rows by segment, group and cell; add these sums with the signs of groups."""
    grid, weighted = Grid.of_size(n_buckets), roles.sample_weight is not None
    p, y, w = nw.col("p"), nw.col("y"), nw.col("w")
    coded = with_code_column(rows, weighted, n_buckets).filter(nw.col("code") >= 0)
    cell = (nw.col("code") // (n_buckets // cells_of(grid))).cast(nw.Int32)
    terms = {"errors": w * (p - y), "weights": w * 1.0} if weighted else {"errors": p - y, "weights": p * 0.0 + 1.0}
    keys = [*_key_aliases(roles), "cell"]
    sums = [nw.len().alias("n"), *(nw.col(name).sum() for name in terms)]
    entries = coded.with_columns(cell=cell, **terms).group_by(keys).agg(*sums)
    columns = collect(entries, as_lists=keys[:-1])
    segments = assemble_groups([columns[name] for name in _group_aliases(roles)], roles.by)
    return flips_of_entries(columns, columns[_GROUPS], segments, roles, grid, "the frame")


def _store_row_order(result: Sketch | SketchTable, frame: Any, roles: ColumnRoles) -> None:
    """Store the z of neighbouring rows in the sketch of a frame, if its rows have an order."""
    eager = nw.from_native(frame)
    if not isinstance(eager, nw.DataFrame):
        return
    rows = SpreadRows()
    rows.add(np.arange(len(eager)))
    few = eager if len(eager) == len(rows.columns()[0]) else eager[rows.columns()[0]]
    columns = collect(select_columns(few.lazy(), roles), as_lists=_group_aliases(roles))
    order = RowOrder()
    groups = assemble_groups([columns[name] for name in _group_aliases(roles)], roles.by)
    order.add(columns["y"], [columns["p"]], columns.get("w"), groups)
    order.store_in(result)


def _group_aliases(roles: ColumnRoles) -> list[str]:
    return [f"truthcal_by_{i}" for i in range(len(roles.by))]


def _key_aliases(roles: ColumnRoles) -> list[str]:
    return [*_group_aliases(roles), *([] if roles.groups is None else [_GROUPS])]


def lazy_frame(frame: Any) -> nw.LazyFrame[Any]:
    """Wrap a data frame of any engine for narwhals, or raise."""
    _refuse_duplicate_names(frame)
    try:
        return cast(nw.LazyFrame[Any], nw.from_native(frame).lazy())
    except TypeError:
        rule = "must be a data frame: pandas, polars, pyarrow, a DuckDB relation, PySpark, Dask or ibis"
        cure = "For columns use Sketch().update(y_true, y_proba), for files scan(paths, ...)."
        raise invalid("frame", f"{rule}; got {shown(frame)}. {cure}", TypeError) from None


def collect(frame: nw.LazyFrame[Any], as_lists: Sequence[str]) -> dict[str, Any]:
    """Collect a lazy frame as arrays of numbers; groups, named by `as_lists`, and labels as lists of Python values."""
    lists = {*as_lists, *row_codes.OTHERS}
    return {x.name: x.to_list() if x.name in lists else series_to_numpy(x) for x in frame.collect().iter_columns()}


def _refuse_duplicate_names(frame: Any) -> None:
    """Raise for duplicate names in a frame before narwhals or the engine does. For Spark p and P are the same name."""
    library = type(frame).__module__.partition(".")[0]
    if library not in ("pandas", "pyarrow", "dask", "pyspark"):
        return
    names = [str(name) for name in getattr(frame, "column_names", None) or getattr(frame, "columns", [])]
    normalize = str.lower if library == "pyspark" else str
    counts = Counter(map(normalize, names))
    duplicates = dict.fromkeys(name for name in names if counts[normalize(name)] > 1)
    if duplicates:
        listed = ", ".join(map(repr, list(duplicates)[:4]))
        raise ValueError(f"the frame has more than one column named {listed}; rename all but one of each name.")


def select_columns(frame: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """Select a frame's columns as `y`, `p`, `w`, labels and groups, with numbers as Float64; raise for other types."""
    require_columns(roles, frame.collect_schema().names(), "the frame")
    frame, roles = _with_plain_names(frame, roles)
    schema, kind = frame.collect_schema(), frame.implementation
    casts = not (kind.is_pandas_like() or kind.is_dask())
    columns = [_number_expression(roles.y_proba, "y_proba", schema, casts).alias("p")]
    if roles.pos_label is None:
        columns.append(_number_expression(roles.y_true, "y_true", schema, casts).alias("y"))
    else:
        columns += _label_expressions(roles, schema[roles.y_true])
    if roles.sample_weight is not None:
        columns.append(_number_expression(roles.sample_weight, "sample_weight", schema, casts).alias("w"))
    for name in roles.keys:
        if schema[name].is_nested():
            refuse_nested_groups(name, str(schema[name]))
    columns += [nw.col(name).alias(alias) for name, alias in zip(roles.keys, _key_aliases(roles), strict=True)]
    return frame.select(columns)


def _with_plain_names(frame: nw.LazyFrame[Any], roles: ColumnRoles) -> tuple[nw.LazyFrame[Any], ColumnRoles]:
    """Rename columns such as `a.b` in Spark, which reads that as the field b of a column a even in quotes."""
    if not frame.implementation.is_spark_like() or not any(set(".`") & set(name) for _, name in roles):
        return frame, roles
    plain = {name: f"truthcal_{i}" for i, name in enumerate(frame.collect_schema().names())}
    weight, groups = plain.get(roles.sample_weight or ""), tuple(plain[name] for name in roles.by)
    names = plain[roles.y_true], (plain[roles.y_proba],), weight, groups
    renamed = ColumnRoles(*names, roles.pos_label, plain.get(roles.groups or ""))
    return lazy_frame(nw.to_native(frame).toDF(*plain.values())), renamed


def _number_expression(name: str, role: str, schema: Mapping[str, Any], casts: bool) -> nw.Expr:
    """Return the expression of a column of numbers or booleans. Text is not converted: engines differ in that.

    `casts` tells whether the engine can cast booleans with missing values to numbers.
    """
    kind, column = schema[name], nw.col(name)
    if kind == nw.Boolean and not casts:
        return _one_or_zero(column, ~column.is_null())
    if not kind.is_numeric() and kind != nw.Boolean:
        refuse_column_type(name, role, str(kind), text=_is_string(kind))
    return column.cast(nw.Float64)


def _is_string(kind: Any) -> bool:
    """Whether a frame's column holds text."""
    return kind in (nw.String, nw.Categorical, nw.Enum)


def _label_expressions(roles: ColumnRoles, kind: Any) -> list[nw.Expr]:
    """Return expressions for whether the label is the positive one (null if missing), and for another label."""
    refuse_other_type_of_label(roles, str(kind), text=_is_string(kind), number=kind.is_numeric() or kind == nw.Boolean)
    label = nw.col(roles.y_true)
    if _is_string(kind):
        label = label.cast(nw.String)
    elif kind == nw.Boolean:
        label = label.cast(nw.Int8)
    # Engines with strict types do not compare numbers with True.
    positive: Any = int(roles.pos_label) if isinstance(roles.pos_label, bool) else roles.pos_label
    present = _is_finite(label) if kind.is_float() else ~label.is_null()  # nan is not another label
    other = nw.when(present & (label != positive)).then(label)
    outcome = _one_or_zero(present & (label == positive), present).alias("y")
    return [outcome, *(other.alias(name) for name in row_codes.OTHERS)]


def _one_or_zero(one: nw.Expr, present: nw.Expr) -> nw.Expr:
    """Return an expression: 1.0, 0.0 or null. For labels, and for pandas and Dask, which cannot cast null booleans."""
    return nw.when(one).then(nw.lit(1.0)).otherwise(nw.when(present).then(nw.lit(0.0)))


def _is_finite(x: nw.Expr) -> nw.Expr:
    """Return an expression for whether x is neither nan nor infinite, by two conditions.

    DuckDB answers `p <= 1` and isnan(p) from the statistics of a Parquet file, which ignore nan. It does not do so for
    isfinite(p), but ibis writes that with isnan; nor for p * 0 = 0.
    """
    return x.is_finite() & (x * 0.0 == 0.0)


# The rules of `row_codes` as expressions.
_BREAKS: dict[Check, Callable[[nw.Expr], nw.Expr]] = {
    "missing": lambda x: x.is_null(),
    "nonfinite": lambda x: ~_is_finite(x),
    "outside_unit": lambda x: (x < 0.0) | (x > 1.0),
    "negative": lambda x: x < 0.0,
    "zero": lambda x: x == 0.0,
    "extreme": lambda x: (x < SMALLEST_WEIGHT) | (x > LARGEST_WEIGHT),
}


def _with_piece_columns(rows: nw.LazyFrame[Any], grid: Grid) -> nw.LazyFrame[Any]:
    """Add the `scale` and `offset` of the piece of the grid in which each prediction, or its mirror image, lies.

    The pieces are those of the distance to 0 or 1, which is exact: the grid is its own mirror image, and this takes
    half as many conditions. Each step is a column, since some engines compute an expression wherever it is used.
    """
    p, distance = nw.col("p"), nw.col("distance")
    rows = rows.with_columns(distance=nw.when(p < 0.5).then(p).otherwise(1.0 - p))
    first, *others = (piece for piece in grid.pieces if piece.start < 0.5)
    scale, offset = nw.lit(float(first.scale)), nw.lit(float(first.offset))
    for piece in others:
        scale = nw.when(distance >= piece.start).then(nw.lit(float(piece.scale))).otherwise(scale)
        offset = nw.when(distance >= piece.start).then(nw.lit(float(piece.offset))).otherwise(offset)
    return rows.with_columns(scale=scale, offset=offset)


def _bucket_expression(grid: Grid) -> nw.Expr:
    """Return an expression for the bucket of a valid prediction, from its piece; 1 is in the last."""
    p, scale, offset = (nw.col(name) for name in ("p", "scale", "offset"))
    n_buckets = float(grid.n_buckets)
    offset = nw.when(p < 0.5).then(offset).otherwise(n_buckets - scale - offset)
    return nw.when(p >= 1.0).then(nw.lit(n_buckets - 1.0)).otherwise((p * scale).floor() + offset)


def with_code_column(rows: nw.LazyFrame[Any], weighted: bool, n_buckets: int) -> nw.LazyFrame[Any]:
    """Add the row codes to a lazy frame as a column, and set `y`, `p` and `w` to null in rows that do not count."""
    columns = {"y_true": nw.col("y"), "y_proba": nw.col("p"), "sample_weight": nw.col("w")}
    p, code = nw.col("p"), nw.col("code")
    grid = Grid.of_size(n_buckets)
    rows, bucket = _with_piece_columns(rows, grid), _bucket_expression(grid)
    for rule in reversed(rules_for(weighted=weighted)):
        broken = _BREAKS[rule.check](columns[rule.role])
        bucket = nw.when(broken).then(nw.lit(float(rule.code))).otherwise(bucket)
    rows = rows.with_columns(bucket.cast(nw.Int32).alias("code"))
    lowest, highest = error_codes("y_true")
    example = nw.when((code <= highest) & (code >= lowest)).then(columns["y_true"]).otherwise(p)
    if weighted:
        example = nw.when(code <= error_codes("sample_weight")[1]).then(columns["sample_weight"]).otherwise(example)
    valid = [nw.when(code >= 0).then(nw.col(name)).alias(name) for name in ("y", "p", "w")[: 3 if weighted else 2]]
    return rows.with_columns(example.alias("low"), example.alias("high"), *valid)


def _aggregate_frame(rows: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """Add up a lazy frame by group and code. Products are made columns first, since Dask aggregates only columns."""
    y, p, w = nw.col("y"), nw.col("p"), nw.col("w")
    c, weighted = p - y, roles.sample_weight is not None
    wc = c * w if weighted else c
    zero = nw.lit(0.0)
    terms = {"pos": nw.when(c > 0.0).then(wc).otherwise(zero), "neg": nw.when(c < 0.0).then(0.0 - wc).otherwise(zero)}
    terms |= {"wcp": wc * p, "wcc": wc * c}
    if weighted:
        terms |= {"w": w, "wp": w * p, "wwv": w * w * p * (1.0 - p), "ww": w * w, "wwcc": wc * wc}
        terms |= {"wwc": w * wc, "www": w * w * w, "wwww": w * w * (w * w)}
    else:
        terms |= {"wp": p, "wwv": p * (1.0 - p)}
    sums = [nw.len().alias("n"), *(nw.col(name).sum() for name in terms)]
    extremes = extreme_expressions(roles)
    if weighted:
        terms |= {"top": w}
        extremes.append(nw.col("top").max())
    return rows.with_columns(**terms).group_by([*_group_aliases(roles), "code"]).agg(*sums, *extremes)


def extreme_expressions(roles: ColumnRoles) -> list[nw.Expr]:
    """Return expressions for the extreme values that `code` is about, and for the first and last other label."""
    first, last = ([name] if roles.pos_label is not None else [] for name in row_codes.OTHERS)
    return [*(nw.col(name).min() for name in ("low", *first)), *(nw.col(name).max() for name in ("high", *last))]
