"""ATB and ATB_l1 in linear time, between certified bounds."""

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, check_rows, refuse_wide_weight
from truthcal.core.frame_columns import named_columns
from truthcal.core.parallel import in_parts, parts_of, run_tasks
from truthcal.core.params import check_number
from truthcal.core.sample import Sample, relative_weights
from truthcal.kernels import atb_approx as kernel
from truthcal.measures.atb import atb_l1_of, atb_of
from truthcal.results.measures import Bounded

# Tighter certified bounds would be dominated by rounding.
_FINEST = 1e-10
_EPS = float(np.finfo(np.float64).eps)
_MOST_BUCKETS = 1 << 16
# Parts of the rows that threads take at a time: each has its own cells.
_MOST_PARTS = 8
# Shares of the tolerance: for buckets that need no cells, and for those divided into cells. The rest is for rounding.
_COARSE_SHARE, _FINE_SHARE = 0.125, 0.85


@named_columns
def atb_approx(
    y_true: object, y_proba: object, *, tolerance: float, sample_weight: object = None, pos_label: object = None
) -> Bounded:
    """ATB in linear time, between certified bounds at most `tolerance` apart.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    tolerance : float
        Largest allowed distance between the bounds, at least 1e-10. The paper's linear-time calibration test needs
        ``1 / (2 * n)``.

    Returns
    -------
    Bounded
        ``value``, and ``low`` and ``high`` that certainly contain the exact ATB.

    Notes
    -----
    Sums rows in ``1 / sqrt(2 * tolerance)`` buckets of predictions. If that is not enough, a second pass sums them in
    at most about as many cells, placed where the bounds are wide. Time O(n) and memory O(tolerance^(-1/2)) in the worst
    case, for any tolerance of ``1 / (2 * n^2)`` or more; the proof is in docs/theory/foundations.md. For smaller
    tolerances the rows are sorted, in O(n log n), and the result is exact up to rounding.

    Examples
    --------
    >>> import truthcal as tc
    >>> result = tc.atb_approx([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], tolerance=0.01)
    >>> result.low <= tc.atb([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]) <= result.high, result.width <= 0.01
    (True, True)
    """
    tolerance = check_number(tolerance, "tolerance", _FINEST)
    return bounds_of(check_rows(y_true, y_proba, sample_weight, pos_label), tolerance, squared=True)


@named_columns
def atb_l1_approx(
    y_true: object, y_proba: object, *, tolerance: float, sample_weight: object = None, pos_label: object = None
) -> Bounded:
    """ATB_l1 in linear time, between certified bounds at most `tolerance` apart.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `atb`.
    tolerance : float
        Largest allowed distance between the bounds, at least 1e-10.

    Returns
    -------
    Bounded
        ``value``, and ``low`` and ``high`` that certainly contain the exact ATB_l1.

    Notes
    -----
    Sums rows in about ``2 / sqrt(tolerance)`` buckets of predictions, which is exact wherever the cumulative bias stays
    on one side of 0 and of its total. The rows of other buckets are distributed over about ``1 / tolerance`` cells at
    most. Time and memory O(n) in the worst case, for any tolerance of ``1 / (8 * n)`` or more; the proof is in
    docs/theory/foundations.md. For smaller tolerances the rows are sorted, in O(n log n), and the result is exact up to
    rounding.

    Examples
    --------
    >>> import truthcal as tc
    >>> result = tc.atb_l1_approx([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], tolerance=0.05)
    >>> result.low <= tc.atb_l1([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3]) <= result.high, result.width <= 0.05
    (True, True)
    """
    tolerance = check_number(tolerance, "tolerance", _FINEST)
    return bounds_of(check_rows(y_true, y_proba, sample_weight, pos_label), tolerance, squared=False)


def bounds_of(rows: Checked, tolerance: float, *, squared: bool) -> Bounded:
    """ATB (`squared`) or ATB_l1 of checked rows, between bounds at most `tolerance` apart."""
    n, tolerance = len(rows.p), min(tolerance, 1.0)
    if rows.w is not None:
        refuse_wide_weight(rows.w)
        rows = rows._replace(w=relative_weights(rows.w)[0])
    n_buckets = 1 / math.sqrt(2 * tolerance) if squared else 2 / math.sqrt(tolerance)
    if (n_buckets if squared else 1 / (8 * tolerance)) <= max(n, 64):
        buckets = _Buckets(rows, min(1 << math.ceil(math.log2(n_buckets)), _MOST_BUCKETS), squared)
        result = buckets.result()
        if result.width > tolerance:
            buckets.refine(tolerance)
            result = buckets.result()
        if result.width <= tolerance:
            return result
    exact = (atb_of if squared else atb_l1_of)(Sample.from_checked(rows))
    # Relative error 1e-11 of the block sums; absolute error 1e-15 of the cumulative bias, times its own size for ATB.
    rounding = 1e-11 * exact + 1e-14 * (math.sqrt(exact) if squared else 1.0) + 1e-29
    return Bounded(exact, max(exact - rounding, 0.0), exact + rounding)


class _Buckets:
    """Rows summed in equal-width buckets, with bounds of the integral of the loss over each bucket."""

    def __init__(self, rows: Checked, n_buckets: int, squared: bool) -> None:
        self._p, self._y, self._w = rows.p, rows.y, np.empty(0) if rows.w is None else rows.w
        self._n_buckets, self._squared = n_buckets, squared
        weight = float(len(rows.p)) if rows.w is None else float(rows.w.sum())
        self._unit = weight**2 if squared else weight
        self._row_weight = 1.0 if rows.w is None else float(rows.w @ rows.w) / weight
        parts = in_parts(self._fill_buckets, len(rows.p), _MOST_PARTS)
        counts = np.stack([part[:, kernel.ROWS] for part in parts]).astype(np.int64)
        self._rows_before_part = np.cumsum(counts, axis=0) - counts
        self._cells = _merged(parts)
        self._before, self._bounds = np.empty(n_buckets), np.empty((3, n_buckets))
        self._total, self._size = kernel.sum_before(self._cells, self._before)
        self._between = kernel.integrate_between(self._cells, self._before, self._total, squared)
        self._most_cells = 1
        self._bound(self._cells, np.arange(n_buckets + 1))

    def _fill_buckets(self, first: int, last: int) -> NDArray[np.float64]:
        cells = _empty_cells(self._n_buckets)
        kernel.fill_buckets(*self._rows(first, last), cells)
        return cells

    def _rows(self, first: int, last: int) -> tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.float64]]:
        return self._p[first:last], self._y[first:last], self._w[first:last]

    def _bound(self, cells: NDArray[np.float64], starts: NDArray[np.int64]) -> None:
        """Bound the loss over each bucket, from cells ``starts[k]`` to ``starts[k + 1]`` of bucket k."""
        kernel.bound_buckets(cells, starts, self._before, self._total, self._row_weight, self._squared, self._bounds)

    def result(self) -> Bounded:
        """Estimate and bounds of the measure, widened by all possible rounding errors."""
        value, lower, upper = (self._between + self._bounds.sum(axis=1)).tolist()
        # Sums of w c are compensated; `slack` bounds the error of each, relative to the sum of absolute values.
        slack = (32 * _EPS + (_EPS * len(self._p)) ** 2) * self._size
        pad = 4 * slack * math.sqrt(2 * upper) + 5 * slack**2 if self._squared else 12 * slack
        share = 2 * _EPS * (self._most_cells + self._n_buckets) + 1e-13
        low = max(lower * (1 - share) - pad - 1e-300, 0.0) / self._unit
        high = (upper * (1 + share) + pad + 1e-300) / self._unit
        return Bounded(min(max(value / self._unit, low), high), low, high)

    def refine(self, tolerance: float) -> None:
        """Divide buckets into cells, such that the bounds of the measure are at most `tolerance` apart."""
        allowed = tolerance * self._unit
        width = self._bounds[2] - self._bounds[1]
        wide = np.flatnonzero(width > _COARSE_SHARE * allowed / self._n_buckets)
        root = np.sqrt(self._width_of_one_cell(wide))
        parts = np.maximum(np.ceil(root * (root.sum() / (_FINE_SHARE * allowed))), 1.0).astype(np.int64)
        self._most_cells = int(parts.max(initial=1))
        refine = self._refine_all if self._squared else self._refine_gathered
        refine(wide[parts > 1], parts[parts > 1])

    def _width_of_one_cell(self, wide: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bound the distance of the bounds over these buckets: with k cells it is at most a k-th of this."""
        cells, before = self._cells[wide], self._before[wide]
        length = cells[:, kernel.HIGH] - cells[:, kernel.LOW]
        pos, neg = cells[:, kernel.POS], cells[:, kernel.NEG]
        if self._squared:
            return length * (pos**2 + neg**2) / 2
        # The absolute loss bends where the cumulative bias is 0 or its total.
        bends = sum(((before - neg <= z) & (z <= before + pos)).astype(np.float64) for z in (0.0, self._total))
        return length * (pos + neg) * bends / 2

    def _refine_all(self, wide: NDArray[np.int64], parts: NDArray[np.int64]) -> None:
        """Sum all rows again, in cells."""
        counts = np.ones(self._n_buckets, np.int64)
        counts[wide] = parts
        starts = np.concatenate([[0], np.cumsum(counts)])
        left, right = self._cells[:, kernel.LOW].copy(), self._cells[:, kernel.HIGH]
        scale = np.zeros(self._n_buckets)
        several = counts > 1
        scale[several] = counts[several] / (right - left)[several]

        def fill(first: int, last: int) -> NDArray[np.float64]:
            cells = _empty_cells(int(starts[-1]))
            kernel.fill_cells(*self._rows(first, last), starts, left, scale, cells)
            return cells

        self._bound(_merged(in_parts(fill, len(self._p), _MOST_PARTS)), starts)

    def _refine_gathered(self, wide: NDArray[np.int64], parts: NDArray[np.int64]) -> None:
        """Copy the rows of these buckets, bucket by bucket; then divide each bucket into cells, or order its rows."""
        if len(wide) == 0:
            return
        starts = np.concatenate([[0], np.cumsum(self._cells[wide, kernel.ROWS].astype(np.int64))])
        x, wc = self._gather(wide, starts)
        plan = np.column_stack([wide / self._n_buckets, self._cells[wide][:, kernel.LOW :], self._before[wide]])
        bounds = np.empty((3, len(wide)))

        def refine(first: int, last: int) -> dict[int, NDArray[np.float64]]:
            """Bound the buckets whose rows are all from first to last; return cells of those with other rows, too."""
            whole = slice(int(np.searchsorted(starts, first)), int(np.searchsorted(starts, last, side="right")) - 1)
            if whole.start < whole.stop:
                own = plan[whole], parts[whole], self._total, self._row_weight, bounds[:, whole]
                kernel.refine_gathered(x, wc, starts[whole.start : whole.stop + 1], *own)
            shared = {int(np.searchsorted(starts, row, side="right")) - 1 for row in (first, last - 1)}
            return {k: cells_of(k, first, last) for k in sorted(shared) if not whole.start <= k < whole.stop}

        def cells_of(k: int, first: int, last: int) -> NDArray[np.float64]:
            edge, left, right, _ = plan[k].tolist()
            cells, rows = np.empty((parts[k], kernel.FIELDS)), slice(max(first, starts[k]), min(last, starts[k + 1]))
            kernel.fill_bucket(x[rows], wc[rows], edge, left, parts[k] / (right - left), cells)
            return cells

        pieces = in_parts(refine, int(starts[-1]), _MOST_PARTS)
        for k in {k for piece in pieces for k in piece}:
            cells = _merged([piece[k] for piece in pieces if k in piece])
            edge, _, _, before = plan[k].tolist()
            bounds[:, k] = kernel.bound_cells(cells, edge, before, self._total, self._row_weight, False)
        self._bounds[:, wide] = bounds

    def _gather(
        self, wide: NDArray[np.int64], starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Copy the rows of these buckets: those of bucket ``wide[j]`` from ``starts[j]``. See `kernel.gather_rows`."""
        rows = int(starts[-1])
        labels_only = len(self._w) == 0 and self._y.dtype == np.uint8
        # Rows of other buckets are written to one spare place of each part, on a cache line of its own.
        spare = rows + 8 * len(parts_of(len(self._p), _MOST_PARTS))
        x, wc = np.empty(spare), np.empty(0 if labels_only else spare)
        steps = np.zeros(self._n_buckets, np.int64)
        steps[wide] = 1

        def gather(part: int, first: int, last: int) -> None:
            at = np.full(self._n_buckets, rows + 8 * part)
            at[wide] = starts[:-1] + self._rows_before_part[part, wide]
            kernel.gather_rows(*self._rows(first, last), at, steps, x, wc)

        tasks = [partial(gather, k, *part) for k, part in enumerate(parts_of(len(self._p), _MOST_PARTS))]
        run_tasks(tasks, len(self._p))
        return x, wc


def _empty_cells(count: int) -> NDArray[np.float64]:
    cells = np.empty((count, kernel.FIELDS))
    kernel.clear_cells(cells)
    return cells


def _merged(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Merge cells of the same buckets, from different rows, into the first."""
    for other in parts[1:]:
        kernel.merge_cells(parts[0], other)
    return parts[0]
