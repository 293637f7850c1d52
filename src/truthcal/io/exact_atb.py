"""ATB itself from an engine: the cumulative bias is followed inside it, and a few numbers a bucket come out."""

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, read_only, refuse_no_weight, refuse_swapped
from truthcal.core.sample import Sample
from truthcal.io import row_codes
from truthcal.io.assemble import as_floats, found_in, other_labels
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.engines import coded, extremes_of, lazy_frame, selected
from truthcal.io.errors import refuse_bad_rows, refuse_more_labels, refuse_no_rows
from truthcal.measures.atb import atb_of

# Within so many buckets an engine follows the cumulative bias, in parallel and without losing digits.
_BUCKETS = 4096
_Floats = NDArray[np.float64]


def atb_frame(
    frame: Any, *, y_true: str, y_proba: str, sample_weight: str | None = None, pos_label: Any = None
) -> float:
    """ATB of a data frame of any engine, exact up to rounding.

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
    The engine groups by the different predictions, sorts them within 4096 buckets, and sums the cumulative bias and its
    square along each; these sums, a few thousand numbers, are put together here. So the rows stay where they are, and
    the engine may use its disk. Of frames in memory (pandas, polars, pyarrow), and of Dask, which cannot sum
    cumulatively by group, the different predictions come here; `atb` of the columns is faster for these.

    Sorting is what costs. `sketch_frame` does not sort, so it takes a fraction of the time, its result merges and
    answers every other question too, and its bounds say how close it is: with 4096 buckets to about 1e-8 for
    predictions that are spread out. Prefer it unless predictions crowd in few buckets (all below 0.001, say) and that
    last digit matters.

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
    distinct = _distinct(coded(selected(rows, roles), roles.sample_weight is not None, _BUCKETS), roles)
    if rows.implementation.is_dask() or isinstance(nw.from_native(frame), nw.DataFrame):
        return _of_distinct(distinct.collect(), roles)
    return _of_buckets(_followed(distinct, roles).collect(), roles)


def _distinct(rows: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """Sums by different prediction. A row that does not count has its code, and no prediction."""
    y, p, w = nw.col("y"), nw.col("p"), nw.col("w")
    if roles.sample_weight is None:
        w = nw.when(~p.is_null()).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    between = nw.when((y > 0.0) & (y < 1.0)).then(nw.lit(1)).otherwise(nw.lit(0))
    rows = rows.with_columns(w=w, wy=w * y, fractions=between)
    sums = [nw.len().alias("n"), *(nw.col(name).sum() for name in ("w", "wy", "fractions"))]
    return rows.group_by(["code", "p"]).agg(*sums, *extremes_of(roles))


def _followed(distinct: nw.LazyFrame[Any], roles: ColumnRoles) -> nw.LazyFrame[Any]:
    """For each bucket, the integrals of x and of x^2, where x is the bias so far within the bucket."""
    p, x, gap = nw.col("p"), nw.col("x"), nw.col("gap")
    distinct = distinct.with_columns(c=p * nw.col("w") - nw.col("wy"))
    distinct = distinct.with_columns(
        x=nw.col("c").cum_sum().over("code", order_by="p"), gap=p.shift(-1).over("code", order_by="p") - p
    )
    distinct = distinct.with_columns(linear=x * gap, square=x * x * gap)
    sums = [nw.col(name).sum() for name in ("n", "w", "wy", "c", "fractions", "linear", "square")]
    return distinct.group_by("code").agg(*sums, *extremes_of(roles))


def _usable(table: nw.DataFrame[Any], roles: ColumnRoles) -> dict[str, _Floats]:
    """The lines of rows that count, by increasing prediction, if all rows can be used."""
    lines = {name: table[name].to_list() for name in table.columns}
    others = other_labels(lines) if roles.pos_label is not None else []
    known = {name: as_floats(values) for name, values in lines.items() if name not in row_codes.OTHERS}
    total = int(known["n"].sum())
    refuse_no_rows(total, "the frame")
    refuse_bad_rows(found_in(known), total, roles, "the frame")
    used = np.flatnonzero(known["code"] >= 0)
    refuse_no_weight(len(used))
    used = used[np.argsort(known["low"][used])]
    known = {name: values[used] for name, values in known.items()}
    certain = bool((((known["low"] == 0) | (known["low"] == 1)) & (known["low"] == known["high"])).all())
    refuse_swapped(certain and bool(known["fractions"].any()))
    refuse_more_labels(others, bool(known["wy"].any()), roles)
    return known


def _of_distinct(table: nw.DataFrame[Any], roles: ColumnRoles) -> float:
    """Different predictions as weighted rows, each with its mean outcome: C(q) is the same."""
    known = _usable(table, roles)
    p, w = known["low"], known["w"]
    y = np.clip(known["wy"] / w, 0.0, 1.0)
    return atb_of(Sample.from_checked(Checked(read_only(p), read_only(y), read_only(w))))


def _of_buckets(table: nw.DataFrame[Any], roles: ColumnRoles) -> float:
    """With a the bias before a bucket and x within it: (a + x)^2 + (C - a - x)^2 = loss(a) + 2x (2a - C) + 2x^2."""
    known = _usable(table, roles)
    high, c = known["high"], known["c"]
    after = np.cumsum(c)
    bias = float(after[-1])
    before = np.concatenate([[0.0], after[:-1]])

    def loss(a: Any) -> Any:
        return a**2 + (bias - a) ** 2

    # Up to the bucket and along it; beyond the last one the bias is complete.
    reach = high - np.concatenate([[0.0], high[:-1]])
    within = 2.0 * known["linear"] * (2.0 * before - bias) + 2.0 * known["square"]
    integral = float(np.sum(reach * loss(before) + within) + (1.0 - high[-1]) * loss(bias))
    return max(integral, 0.0) / float(known["w"].sum()) ** 2
