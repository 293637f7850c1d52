"""One lazy expression for every engine that narwhals knows."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, overload

import narwhals as nw

from truthcal.core.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT
from truthcal.core.params import check_power_of_two, shown
from truthcal.core.sketch import MAX_BUCKETS, Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io import row_codes
from truthcal.io.assemble import build_sketch, groups_of
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import (
    refuse_double_names,
    refuse_nested_groups,
    refuse_other_kind_of_label,
    refuse_type,
)


@overload
def sketch_frame(
    frame: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = ...,
    by: None = ...,
    pos_label: Any = ...,
    n_buckets: int = ...,
) -> Sketch: ...


@overload
def sketch_frame(
    frame: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = ...,
    by: str | Sequence[str],
    pos_label: Any = ...,
    n_buckets: int = ...,
) -> SketchTable: ...


def sketch_frame(
    frame: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: Any = None,
    n_buckets: int = 4096,
) -> Sketch | SketchTable:
    """Reduce a data frame of any engine to a sketch, inside that engine.

    Parameters
    ----------
    frame : data frame
        pandas, polars (eager or lazy), a pyarrow table, a DuckDB relation, a PySpark or Dask data frame, an ibis table
        (of a backend that knows nan and infinity, such as DuckDB): whatever narwhals can hold.
    y_true, y_proba : str
        Columns of outcomes (0/1, booleans, fractions in [0, 1]) and of predicted probabilities: any numbers.
    sample_weight : str, optional
        Column of weights, 0 or between 1e-100 and 1e100.
    by : str or list of str, optional
        Columns whose values make groups: the result is then a `SketchTable`, with one sketch for each group.
    pos_label : optional
        The label in `y_true` that counts as 1; needed for text.
    n_buckets : int, default 4096
        As for `Sketch`. With many groups fewer buckets do: 256 still know ATB to 2e-3 at worst and 2e-6 as a rule.

    Returns
    -------
    Sketch or SketchTable
        Ask it for `atb`, hand it to `assess`, `calibration_test` or `reliability_curve`, save it, merge it.

    Notes
    -----
    One query: every row gets its bucket, rows are grouped by bucket and added up, and only the sums reach Python, at
    most groups times buckets. The same query counts missing values, numbers out of range and wrong labels; if there are
    any, the error names the column, how many rows, and an example. No row is ever dropped.

    For files on this machine `scan` is faster; for columns in memory, ``Sketch().update(y_true, y_proba)``.

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
    roles = ColumnRoles.of(y_true, y_proba, sample_weight, by, pos_label)
    rows = coded(selected(lazy_frame(frame), roles), roles.sample_weight is not None, n_buckets)
    columns = _collected(_summed(rows, roles))
    groups = groups_of([columns.pop(name) for name in _group_names(roles)], roles.by)
    return build_sketch(columns, groups, roles, n_buckets, "the frame")


def _group_names(roles: ColumnRoles) -> list[str]:
    """Names inside the engine, such that nothing there is in their way."""
    return [f"truthcal_by_{i}" for i in range(len(roles.by))]


def lazy_frame(frame: Any) -> nw.LazyFrame[Any]:
    """What narwhals makes of a frame, or an error that says what a frame is."""
    _refuse_double_names(frame)
    try:
        lazy: nw.LazyFrame[Any] = nw.from_native(frame).lazy()
        return lazy
    except TypeError:
        raise TypeError(
            "`frame` must be a data frame: pandas, polars, pyarrow, a DuckDB relation, PySpark, Dask or ibis; got "
            f"{shown(frame)}. For columns use Sketch().update(y_true, y_proba), for files scan(paths, ...)."
        ) from None


def columns_of_frame(frame: Any) -> dict[str, list[Any]] | None:
    """All columns of a data frame; None if it is not one."""
    try:
        return _collected(nw.from_native(frame).lazy())
    except TypeError:
        return None


def _collected(frame: nw.LazyFrame[Any]) -> dict[str, list[Any]]:
    table = frame.collect()
    return {name: table[name].to_list() for name in table.columns}


def _refuse_double_names(frame: Any) -> None:
    """Before narwhals or the engine stumble over them. Spark takes p and P for the same name."""
    kind = type(frame).__module__.partition(".")[0]
    if kind not in ("pandas", "pyarrow", "dask", "pyspark"):
        return
    names = [str(name) for name in getattr(frame, "column_names", None) or getattr(frame, "columns", [])]
    told_apart = [name.lower() for name in names] if kind == "pyspark" else names
    double = [name for name, alike in zip(names, told_apart, strict=True) if told_apart.count(alike) > 1]
    if double:
        refuse_double_names(list(dict.fromkeys(double)))


def selected(frame: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """The columns in question as `y`, `p`, `w`, `label` and groups, numbers as Float64, once their types allow it."""
    roles.require_columns(frame.collect_schema().names(), "the frame")
    frame, roles = _with_plain_names(frame, roles)
    schema = frame.collect_schema()
    chosen = [_number(roles.y_proba, "y_proba", schema).alias("p")]
    if roles.pos_label is None:
        chosen.append(_number(roles.y_true, "y_true", schema).alias("y"))
    else:
        chosen += _labels(roles, schema[roles.y_true])
    if roles.sample_weight is not None:
        chosen.append(_number(roles.sample_weight, "sample_weight", schema).alias("w"))
    for name in roles.by:
        if schema[name].is_nested():
            refuse_nested_groups(name, str(schema[name]))
    chosen += [nw.col(name).alias(inside) for name, inside in zip(roles.by, _group_names(roles), strict=True)]
    return frame.select(chosen)


def _with_plain_names(frame: nw.LazyFrame[Any], roles: ColumnRoles) -> tuple[nw.LazyFrame[Any], ColumnRoles]:
    """Spark reads `a.b` as the field b of a column a, however it is quoted; there such columns are renamed first."""
    if not frame.implementation.is_spark_like() or not any(set(".`") & set(name) for _, name in roles):
        return frame, roles
    plain = {name: f"truthcal_{i}" for i, name in enumerate(frame.collect_schema().names())}
    renamed = dataclasses.replace(
        roles,
        y_true=plain[roles.y_true],
        y_probas=(plain[roles.y_proba],),
        sample_weight=plain.get(roles.sample_weight or ""),
        by=tuple(plain[name] for name in roles.by),
    )
    return lazy_frame(nw.to_native(frame).toDF(*plain.values())), renamed


def _number(name: str, role: str, schema: Mapping[str, Any]) -> nw.Expr:
    """A column of numbers or booleans. Text is not converted: engines differ in what they make of it."""
    kind, column = schema[name], nw.col(name)
    if kind == nw.Boolean:
        return _one_or_zero(column, ~column.is_null())
    if not kind.is_numeric():
        refuse_type(name, role, str(kind), text=_is_text(kind))
    return column.cast(nw.Float64)


def _is_text(kind: Any) -> bool:
    return kind in (nw.String, nw.Categorical, nw.Enum)


def _labels(roles: ColumnRoles, kind: Any) -> list[nw.Expr]:
    """Whether the label is the positive one (null where it is missing), and the label if it is another one."""
    positive: Any = roles.pos_label
    refuse_other_kind_of_label(roles, str(kind), text=_is_text(kind), number=kind.is_numeric() or kind == nw.Boolean)
    label = nw.col(roles.y_true)
    if _is_text(kind):
        label = label.cast(nw.String)
    elif kind == nw.Boolean:
        label = label.cast(nw.Int8)
    if isinstance(positive, bool):  # engines that are strict about types compare no number with True
        positive = int(positive)
    there = _is_finite(label) if kind.is_float() else ~label.is_null()  # nan is not another label
    other = nw.when(there & (label != positive)).then(label)
    return [
        _one_or_zero(there & (label == positive), there).alias("y"),
        *(other.alias(name) for name in row_codes.OTHERS),
    ]


def _one_or_zero(one: nw.Expr, there: nw.Expr) -> nw.Expr:
    """Not by a cast: pandas, and so Dask, cannot cast a boolean column with missing values."""
    return nw.when(one).then(nw.lit(1.0)).otherwise(nw.when(there).then(nw.lit(0.0)))


def _is_finite(x: nw.Expr) -> nw.Expr:
    """Neither nan nor infinite, said in two ways.

    DuckDB answers `p <= 1` and isnan(p) from the statistics of a Parquet file, which pass over nan. It does not do so
    for isfinite(p), but ibis writes that with isnan; nor for p * 0 = 0.
    """
    return x.is_finite() & (x * 0.0 == 0.0)


def coded(rows: nw.LazyFrame[Any], weighted: bool, n_buckets: int) -> nw.LazyFrame[Any]:
    """With the code of each row, and with values only in rows that count."""
    y, p, w = nw.col("y"), nw.col("p"), nw.col("w")
    rules = [
        (y.is_null(), row_codes.TRUE_NULL),
        (~_is_finite(y), row_codes.TRUE_WILD),
        ((y < 0.0) | (y > 1.0), row_codes.TRUE_OUTSIDE),
        (p.is_null(), row_codes.PROBA_NULL),
        (~_is_finite(p), row_codes.PROBA_WILD),
        ((p < 0.0) | (p > 1.0), row_codes.PROBA_OUTSIDE),
    ]
    if weighted:
        rules += [
            (w.is_null(), row_codes.WEIGHT_NULL),
            (~_is_finite(w), row_codes.WEIGHT_WILD),
            (w < 0.0, row_codes.WEIGHT_OUTSIDE),
            (w == 0.0, row_codes.WEIGHTLESS),
            ((w < SMALLEST_WEIGHT) | (w > LARGEST_WEIGHT), row_codes.WEIGHT_EXTREME),
        ]
    bucket = (p * float(n_buckets)).floor()
    rules.append((p >= 1.0, n_buckets - 1))
    for rule, value in reversed(rules):
        bucket = nw.when(rule).then(nw.lit(float(value))).otherwise(bucket)
    rows = rows.with_columns(bucket.cast(nw.Int32).alias("code"))
    code, counts = nw.col("code"), nw.col("code") >= 0
    example = nw.when((code < row_codes.WEIGHTLESS) & (code > row_codes.PROBA_NULL)).then(y).otherwise(p)
    if weighted:
        example = nw.when(code <= row_codes.WEIGHT_NULL).then(w).otherwise(example)
    kept = [nw.when(counts).then(nw.col(name)).alias(name) for name in ("y", "p", "w")[: 3 if weighted else 2]]
    return rows.with_columns(example.alias("low"), example.alias("high"), *kept)


def _summed(rows: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """Sums by group and code. Products are columns of their own first: Dask aggregates nothing but columns."""
    y, p, w = nw.col("y"), nw.col("p"), nw.col("w")
    c, weighted = p - y, roles.sample_weight is not None
    wc = c * w if weighted else c
    terms = {
        "pos": nw.when(c > 0.0).then(wc).otherwise(nw.lit(0.0)),
        "neg": nw.when(c < 0.0).then(0.0 - wc).otherwise(nw.lit(0.0)),
        "wcp": wc * p,
        "wcc": wc * c,
    }
    if weighted:
        terms |= {"w": w, "wp": w * p, "wwv": w * w * p * (1.0 - p), "ww": w * w, "wwcc": wc * wc}
    else:
        terms |= {"wp": p, "wwv": p * (1.0 - p)}
    sums = [nw.len().alias("n"), *(nw.col(name).sum() for name in terms)]
    return rows.with_columns(**terms).group_by([*_group_names(roles), "code"]).agg(*sums, *extremes_of(roles))


def extremes_of(roles: ColumnRoles) -> list[nw.Expr]:
    """The smallest and largest value in question, and the first and last of the other labels."""
    first, last = ([name] if roles.pos_label is not None else [] for name in row_codes.OTHERS)
    return [*(nw.col(name).min() for name in ("low", *first)), *(nw.col(name).max() for name in ("high", *last))]
