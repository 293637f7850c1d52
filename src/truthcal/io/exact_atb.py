"""Exact ATB of data frames: the engine integrates the cumulative bias within buckets, and returns a few sums each."""

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, read_only, refuse_no_weight, refuse_swapped
from truthcal.core.sample import Sample
from truthcal.io.assemble import float_columns, other_labels
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.engines import collect, extreme_expressions, lazy_frame, select_columns, with_code_column
from truthcal.io.errors import refuse_invalid_rows, refuse_more_labels
from truthcal.measures.atb import atb_of

_BUCKETS = 4096  # within which the engine accumulates the bias: in parallel, and without losing digits
_Floats = NDArray[np.float64]


def atb_frame(
    frame: Any, *, y_true: str, y_proba: str, sample_weight: str | None = None, pos_label: Any = None
) -> float:
    """Compute ATB of a data frame of any engine, exact up to rounding.

    Parameters
    ----------
    frame, y_true, y_proba, sample_weight, pos_label
        As for `sketch_frame`.

    Returns
    -------
    float
        As `atb` of the columns.

    Notes
    -----
    The engine groups by distinct prediction, sorts them within 4096 buckets, and integrates the cumulative bias and its
    square within each bucket; only these sums, a few thousand numbers, reach Python. For frames in memory (pandas,
    polars, pyarrow), and for Dask, which has no cumulative sums by group, the distinct predictions are collected;
    `atb` of the columns is faster for these.

    Sorting takes most of the time. `sketch_frame` does not sort, and the bounds of its ATB are about 1e-8 wide, or
    narrower for rare events: prefer it unless predictions are concentrated in few buckets and the last digit matters.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import truthcal as tc
    >>> frame = pa.table({"clicked": [0, 1, 1, 0], "score": [0.2, 0.9, 0.6, 0.3]})
    >>> tc.atb_frame(frame, y_true="clicked", y_proba="score")
    0.01025
    """
    roles = ColumnRoles.of(y_true, y_proba, sample_weight, None, pos_label)
    rows = lazy_frame(frame)
    coded = with_code_column(select_columns(rows, roles), roles.sample_weight is not None, _BUCKETS)
    distinct = _distinct_predictions(coded, roles)
    if not rows.implementation.is_dask() and not isinstance(nw.from_native(frame), nw.DataFrame):
        return _atb_of_buckets(_collect_valid_lines(_bias_integrals(distinct, roles), roles))
    # Distinct predictions are weighted rows, each with its mean outcome: C(q) is the same.
    lines = _collect_valid_lines(distinct, roles)
    y = np.clip(lines["wy"] / lines["w"], 0.0, 1.0)
    return atb_of(Sample.from_checked(Checked(read_only(lines["low"]), read_only(y), read_only(lines["w"]))))


def _distinct_predictions(rows: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """Add up by distinct prediction for the exact ATB. Rows that do not count have a code, and no prediction."""
    y, p, w = nw.col("y"), nw.col("p"), nw.col("w")
    if roles.sample_weight is None:
        w = nw.when(~p.is_null()).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    fractional = nw.when((y > 0.0) & (y < 1.0)).then(nw.lit(1)).otherwise(nw.lit(0))
    rows = rows.with_columns(w=w, wy=w * y, fractions=fractional)
    sums = [nw.len().alias("n"), *(nw.col(name).sum() for name in ("w", "wy", "fractions"))]
    return rows.group_by(["code", "p"]).agg(*sums, *extreme_expressions(roles))


def _bias_integrals(distinct: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """Return the integrals of x and x^2 for the exact ATB, where x is the cumulative bias within a bucket."""
    p, c, x, gap = (nw.col(name) for name in ("p", "c", "x", "gap"))
    distinct = distinct.with_columns(c=p * nw.col("w") - nw.col("wy"))
    cumulative, following = (column.over("code", order_by="p") for column in (c.cum_sum(), p.shift(-1)))
    distinct = distinct.with_columns(x=cumulative, gap=following - p)
    distinct = distinct.with_columns(linear=x * gap, square=x * x * gap)
    sums = [nw.col(name).sum() for name in ("n", "w", "wy", "c", "fractions", "linear", "square")]
    return distinct.group_by("code").agg(*sums, *extreme_expressions(roles))


def _collect_valid_lines(lines: nw.LazyFrame[Any], roles: ColumnRoles) -> dict[str, _Floats]:
    """Collect what the exact ATB needs of valid rows, by increasing prediction; raise if a row is invalid."""
    table = collect(lines, as_lists=())
    columns = float_columns(table)
    refuse_invalid_rows(columns, roles, "the frame")
    used = np.flatnonzero(columns["code"] >= 0)
    refuse_no_weight(len(used))
    used = used[np.argsort(columns["low"][used])]
    columns = {name: values[used] for name, values in columns.items()}
    certain = np.isin(columns["low"], [0, 1]) & (columns["low"] == columns["high"])
    refuse_swapped(bool(certain.all() and columns["fractions"].any()))
    if roles.pos_label is not None:
        refuse_more_labels(other_labels(table), bool(columns["wy"].any()), roles)
    return columns


def _atb_of_buckets(lines: dict[str, _Floats]) -> float:
    """Compute the exact ATB from the integrals of all buckets.

    With a the bias before a bucket and x within it: (a + x)^2 + (C - a - x)^2 = loss(a) + 2x (2a - C) + 2x^2.
    """
    high, after = lines["high"], np.cumsum(lines["c"])
    bias, before = float(after[-1]), np.concatenate([[0.0], after[:-1]])

    def loss(a: Any) -> Any:
        return a**2 + (bias - a) ** 2

    # Up to the bucket and within it; after the last one the bias is complete.
    width = np.diff(high, prepend=0.0)
    within = 2.0 * lines["linear"] * (2.0 * before - bias) + 2.0 * lines["square"]
    integral = float(np.sum(width * loss(before) + within) + (1.0 - high[-1]) * loss(bias))
    return max(integral, 0.0) / float(lines["w"].sum()) ** 2
