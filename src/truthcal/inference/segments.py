"""Assessment of segments: one test per group of a table, adjusted for the number of tests."""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid, refuse_fractional
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_keys import Key, printed
from truthcal.core.group_sums import FEWEST_GROUPS, GroupSums
from truthcal.core.parallel import WORTH_A_THREAD, one_blas_thread, run_tasks
from truthcal.core.params import check_choice, check_level, check_whole, shown
from truthcal.core.points import PointGroups, Points
from truthcal.core.segment_rows import refuse_beside_table, segment_rows
from truthcal.core.sketch_table import SketchTable
from truthcal.inference.calibration_test import ENOUGH_INFORMATION, run_test, tent_statistic
from truthcal.inference.direction import kind_of_error
from truthcal.inference.error_size import error_size_of, error_sizes_of
from truthcal.inference.intervals import bias_intervals, grouped_bias_interval
from truthcal.inference.laws.bounds import limit_or_bound
from truthcal.inference.laws.quadratic_form import Forms
from truthcal.inference.laws.sign_flips import SignFlips
from truthcal.inference.laws.skewness import error_skewnesses
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.inference.planning import LEAST_INFORMATION
from truthcal.inference.statistic import Plan
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.segments import Segment, SegmentTable, segment_order

T = TypeVar("T")
_Array = NDArray[np.float64]

# The test of `assess`: unlike ATB, it also detects errors that change sign, such as predictions that are too extreme.
_MEASURE = "information_atb"
# With 56 cells, p-values are up to 3% too large at 1e-3 and 7% at 1e-9, and the ends of intervals are off by 0.3%.
# Eigenvalues take 0.15 ms (192 cells: 2 ms).
_FEW_CELLS = 56
# Redraws of the outcomes of a segment with little information; the p-value may be smaller (`calibration_test`).
# Drawing stops once 100 are as extreme as the data: p is then known to 10%, in a third of the time of 500.
_RESAMPLES, _ENOUGH = 9999, 100
# Intervals that are computed when the first one is read, and most that are computed at a time.
_FIRST_INTERVALS, _MOST_INTERVALS = 20, 1000
# Segments that are worth a thread, and parts into which they are divided at most. With 32 in place of 250, intervals
# take three times as long: the arrays of a step are then too small for numpy.
_WORTH_A_THREAD, _MOST_PARTS = 250, 64


@named_columns
def assess_segments(
    y_true: object,
    y_proba: object = None,
    by: object = None,
    *,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    min_rows: int = 30,
    adjust: str = "holm",
    sample_weight: object = None,
    pos_label: object = None,
    groups: object = None,
) -> SegmentTable:
    """Find miscalibrated segments: one test per group, with control of false alarms.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label, groups
        As for `calibration_test`. In place of `y_true`, a `SketchTable` with one sketch for each segment, for example
        from ``sketch_frame(frame, ..., by="region")``; the others, and `by`, are then omitted. Outcomes are 0/1.
    by : array-like, or list or mapping of them
        Columns that define segments, with a value for each row: the region, or region and product. Missing values are a
        segment of their own. With a data frame, names: ``assess_segments(frame, "y", "p", by=["region", "product"])``.
    alpha : float, default 0.05
        Segments with an adjusted p-value of at most this are called miscalibrated.
    confidence_level : float, default 0.95
        Confidence level of the intervals, each for its segment alone.
    min_rows : int, default 30
        Segments with fewer rows are listed but not tested, and not counted in the adjustment. With weights, the
        effective sample size is used.
    adjust : {"holm", "fdr", "none"}, default "holm"
        How p-values are adjusted for the number of segments. "holm": the probability of any false alarm is at most
        `alpha`. "fdr": the expected share of false alarms among the flagged segments is at most `alpha` (Benjamini,
        Hochberg); flags more if there are many segments. "none": no adjustment; 37 calibrated segments raise at least
        one false alarm 85% of the time.

    Returns
    -------
    SegmentTable
        Print it. A mapping from keys to `Segment`; ``.frame()`` for a data frame, ``.to_dict()`` for JSON.

    Notes
    -----
    The statistic is `information_atb`, as in `assess`; only the upper tail is tested (no segment is called too good).
    The p-value is found as by `calibration_test`: if the effective sum p(1 - p) is below 100, by redraws of the number
    of positives in each bucket, or with weights in a few cells; otherwise from the asymptotic distribution, corrected
    for skewness, or from an upper bound ("bound"), if that is smaller. Asymptotic p-values and those of segments with
    weights differ from those of `calibration_test` by a few percent, because they are computed from fewer cells.

    Which segments are tested depends only on their numbers of rows and their weights. These are known before the
    outcomes, so the selection does not bias the other p-values. A segment with sum p(1 - p) below 5 is tested if it has
    enough rows, because large errors can be detected, but otherwise it has "too few rows".

    Segments have no rows in common, so their p-values are independent, as "fdr" requires. With `groups` (for a table:
    those of `sketch_frame` or `scan`), each segment with at least 20 groups is tested as by `calibration_test` with
    `groups`, the others are not tested, and "fdr" is an error, because a group may have rows in several segments. To
    assess all rows together, use `assess` with `by`, or ``assess(table.total())``; errors of segments may cancel there.
    References: Holm (1979), A simple sequentially rejective multiple test procedure; Benjamini, Hochberg (1995),
    Controlling the false discovery rate.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> sketches = {}
    >>> for region, factor in {"north": 1.0, "south": 0.8, "west": 1.0}.items():
    ...     p = rng.random(1000)
    ...     sketches[region] = tc.Sketch().update(rng.random(1000) < factor * p, p)
    >>> segments = tc.assess_segments(tc.SketchTable.from_sketches(sketches, by="region"))
    >>> print(segments.verdict)
    1 of 3 segments is miscalibrated (at most 5% chance of any false alarm): south (too high).
    >>> print(segments["west"].kind)
    not significant
    """
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    min_rows, adjust = check_whole(min_rows, "min_rows", 1), check_choice(adjust, "adjust", tuple(_ADJUSTMENTS))
    table = _table_of_rows(y_true, y_proba, by, sample_weight=sample_weight, pos_label=pos_label, groups=groups)
    if table.has_groups and adjust == "fdr":
        raise invalid("adjust", 'must be "holm" or "none" with groups: segments that share groups are not independent.')
    test = partial(_test_grouped, table, min_rows) if table.has_groups else partial(_test_segments, min_rows=min_rows)
    tests = _in_parts(
        lambda places: [one for groups, keys in _blocks_of(table, places) for one in test(groups, keys)],
        range(len(table)),
    )
    adjusted = np.array([test.pvalue for test in tests])
    tested = ~np.isnan(adjusted)
    adjusted[tested] = _ADJUSTMENTS[adjust](adjusted[tested])
    segments = _list_segments(table, tests, adjusted.tolist(), alpha, level)
    neighbour_z = None if table.has_groups else table.neighbour_z
    return SegmentTable(segments, table.by, alpha, adjust, min_rows, neighbour_z)


def _table_of_rows(y_true: object, y_proba: object, by: object, **options: object) -> SketchTable:
    """Reduce rows to a table with a sketch for each segment, or return the table that was passed in their place."""
    if isinstance(y_true, SketchTable) or (y_proba is None and by is None):
        refuse_beside_table(y_proba=y_proba, by=by, **options)
        return check_table_of_sketches(y_true)
    for name, column in (("y_proba", y_proba), ("by", by)):
        if column is None:
            raise invalid(name, "is missing: pass (y_true, y_proba, by).", TypeError)
    return segment_rows(y_true, y_proba, by, **options)


def _list_segments(
    table: SketchTable, tests: "list[_SegmentTest]", adjusted: list[float], alpha: float, level: float
) -> tuple[Segment, ...]:
    """List segments in the order of their results."""
    keys, statistics, names = list(table), table.table(), ("n", "mean_proba", "bias", "atb", "noise_floor")
    n, mean_proba, bias, atb, noise_floor = (statistics[name].tolist() for name in names)
    wrong = [g for g in range(len(keys)) if adjusted[g] <= alpha]
    kinds = dict(zip(wrong, _in_parts(lambda places: _kinds_of_errors(table, places), wrong), strict=True))
    order = sorted(range(len(keys)), key=lambda g: segment_order(adjusted[g], tests[g].pvalue, n[g]))
    # A copy shares its arrays, and stays as it is if more rows are merged into the table later.
    intervals = _Intervals(copy.copy(table), [keys[g] for g in order], order, level)
    return tuple(
        Segment(
            key=keys[g],
            name=", ".join(map(printed, keys[g])) if isinstance(keys[g], tuple) else printed(keys[g]),
            kind=kinds.get(g) or tests[g].kind_if_not_rejected,
            pvalue=tests[g].pvalue,
            adjusted=adjusted[g],
            method=tests[g].method,
            n=n[g],
            information=tests[g].information,
            mean_proba=mean_proba[g],
            mean_true=min(max(mean_proba[g] - bias[g], 0.0), 1.0),
            bias=bias[g],
            atb=atb[g],
            noise_floor=noise_floor[g],
            _intervals=intervals,
        )
        for g in order
    )


def _kinds_of_errors(table: SketchTable, places: Sequence[int]) -> list[str]:
    kinds = []
    for groups, keys in _blocks_of(table, places):
        for points, key in zip(groups, keys, strict=True):
            sums = table.group_sums(key) if table.has_groups else None
            kinds.append(kind_of_error(points, 1.0 if sums is None else sums.design_effect))
    return kinds


def _blocks_of(table: SketchTable, places: Sequence[int]) -> Iterator[tuple[PointGroups, list[Key]]]:
    """Yield the points of segments, many at a time, and their keys as tuples."""
    keys = list(table)
    rest = iter([keys[place] if len(table.by) > 1 else (keys[place],) for place in places])
    for groups in table.point_groups(places):
        yield groups, list(islice(rest, len(groups)))


class _SegmentTest(NamedTuple):
    """The p-value of one segment, the method that found it, and sum p(1 - p)."""

    pvalue: float
    method: str
    information: float

    @property
    def kind_if_not_rejected(self) -> str:
        """The kind. Not "calibrated": few rows prove little, and one in 40 intervals of the error excludes 0."""
        little = 0.0 < self.information < LEAST_INFORMATION
        return "too few rows" if math.isnan(self.pvalue) or little else "not significant"


class _Intervals(dict[tuple[Any, str], ConfidenceInterval]):
    """Intervals by segment and quantity, computed when first read. Unlike a cached function, it can be pickled.

    Those of the segments that follow are computed with it, and each time twice as many: together they take a tenth of
    the time that they would take one by one, and the 20 that are printed do not wait for all.
    """

    def __init__(self, table: SketchTable, keys: list[Any], places: list[int], level: float) -> None:
        super().__init__()
        self._table, self._level = table, level
        self._keys, self._places = keys, places
        self._rank = {key: rank for rank, key in enumerate(keys)}

    def __missing__(self, item: tuple[Any, str]) -> ConfidenceInterval:
        key, quantity = item
        many, first = min(max(len(self), _FIRST_INTERVALS), _MOST_INTERVALS), self._rank[key]
        next_ones = chain(range(first, len(self._keys)), reversed(range(first)))
        ranks = list(islice((rank for rank in next_ones if (self._keys[rank], quantity) not in self), many))
        intervals = _in_parts(lambda ranks: self._compute(quantity, ranks), ranks)
        self.update(((self._keys[rank], quantity), interval) for rank, interval in zip(ranks, intervals, strict=True))
        return self[item]

    def _compute(self, quantity: str, ranks: Sequence[int]) -> list[ConfidenceInterval]:
        intervals: list[ConfidenceInterval] = []
        for groups, keys in _blocks_of(self._table, [self._places[rank] for rank in ranks]):
            if self._table.has_groups:
                intervals += [
                    _grouped_interval(points, self._table.group_sums(key), quantity, self._level)
                    for points, key in zip(groups, keys, strict=True)
                ]
            elif quantity == "error":
                intervals += error_sizes_of(groups, self._level)
            else:
                intervals += bias_intervals(groups.merged(_FEW_CELLS).normalized(), self._level)
        return intervals


def _grouped_interval(points: Points, sums: GroupSums | None, quantity: str, level: float) -> ConfidenceInterval:
    """Interval of a segment whose rows belong together; none if there are too few groups."""
    if sums is not None:
        return error_size_of(points, level, sums=sums) if quantity == "error" else grouped_bias_interval(sums, level)
    why = f"an interval needs {FEWEST_GROUPS} groups"
    estimate = float(np.sum(points.bias)) / points.total
    name, estimate = (quantity, abs(estimate)) if quantity == "error" else ("bias", estimate)
    return ConfidenceInterval(math.nan, math.nan, level, name, estimate, "none", why)


@one_blas_thread()
def _in_parts(work: Callable[[Sequence[int]], list[T]], segments: Sequence[int]) -> list[T]:
    """Work on all segments, on all cores if there are many: most of the time is spent in loops without the GIL."""
    count = min(max(len(segments) // _WORTH_A_THREAD, 1), _MOST_PARTS)
    ends = [len(segments) * k // count for k in range(count + 1)]
    parts = [partial(work, segments[first:last]) for first, last in pairwise(ends)]
    return list(chain(*run_tasks(parts, count * WORTH_A_THREAD if count > 1 else 0)))


# --- p-values ---------------------------------------------------------------------------------------------------------


def _test_grouped(table: SketchTable, min_rows: int, groups: PointGroups, keys: list[Key]) -> list[_SegmentTest]:
    """Test segments whose rows belong together, if they have enough groups and rows."""
    if groups.has_fractions.any():
        refuse_fractional(None)
    tests = []
    for g, (key, information) in enumerate(zip(keys, groups.information.tolist(), strict=True)):
        sums = table.group_sums(key) if 1.0 / groups.one_row[g] >= min_rows * (1.0 - 1e-9) else None
        kernel = None if sums is None else TentKernel.of(_MEASURE, sums.cells)
        pvalue = math.nan if sums is None or kernel is None else SignFlips.of(sums, kernel).tails().greater
        tests.append(_SegmentTest(pvalue, "none" if sums is None else "asymptotic", information))
    return tests


def _test_segments(groups: PointGroups, keys: list[Key], min_rows: int) -> list[_SegmentTest]:
    """Test segments: those with enough information all at once, the others by redraws."""
    if groups.has_fractions.any():
        refuse_fractional(None)
    tested = 1.0 / groups.one_row >= min_rows * (1.0 - 1e-9)
    enough = tested & (groups.effective_information >= ENOUGH_INFORMATION)
    far = iter(_far_upper_tails(groups.take(enough)) if enough.any() else ())
    tests = []
    for g, information in enumerate(groups.information.tolist()):
        method, pvalue = next(far) if enough[g] else _redraw(groups[g]) if tested[g] else ("none", math.nan)
        tests.append(_SegmentTest(pvalue, method, information))
    return tests


def _far_upper_tails(groups: PointGroups) -> list[tuple[str, float]]:
    """Upper tails of segments, as in `far_upper_tail`, and their methods."""
    kernel, cells = TentKernel.of(_MEASURE, groups.points), groups.merged(_FEW_CELLS)  # the kernel of all segments
    observed, scales = kernel.group_measures(groups), kernel.group_null_scales(cells)
    limits = Forms.of(scales, np.zeros_like(scales), cells.starts).upper_tails(observed)
    numbers = zip(limits.tolist(), error_skewnesses(groups).tolist(), observed.tolist(), strict=True)
    return [limit_or_bound(*three, partial(groups.__getitem__, g), kernel) for g, three in enumerate(numbers)]


def _redraw(points: Points) -> tuple[str, float]:
    """Test a segment with little information. Return the method, and the p-value of the upper tail."""
    # The same seed for each segment, so that its p-value does not depend on the other segments.
    plan = Plan("auto", "greater", _RESAMPLES, np.random.default_rng(0), enough=_ENOUGH)
    test = run_test(tent_statistic(_MEASURE, points, at_most=_FEW_CELLS), plan)
    return test.method, test.pvalue


# --- adjustments ------------------------------------------------------------------------------------------------------


def holm(pvalues: _Array) -> _Array:
    """Holm's adjusted p-values of segments: k-th smallest of m times m - k + 1, and never less than one before it."""
    order, m = np.argsort(pvalues, kind="stable"), len(pvalues)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.maximum.accumulate(pvalues[order] * np.arange(m, 0, -1)), 1.0)
    return adjusted


def benjamini_hochberg(pvalues: _Array) -> _Array:
    """Benjamini-Hochberg's adjusted p-values of segments: k-th smallest of m times m / k, never more than the next."""
    order, m = np.argsort(pvalues, kind="stable"), len(pvalues)
    adjusted = np.empty(m)
    steps = pvalues[order] * (m / np.arange(1, m + 1))
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return adjusted


_ADJUSTMENTS: dict[str, Callable[[_Array], _Array]] = {"holm": holm, "fdr": benjamini_hochberg, "none": np.copy}


def check_table_of_sketches(table: object, name: str = "y_true") -> SketchTable:
    """Check for a table of sketches with at least one segment to assess, and return it."""
    if not isinstance(table, SketchTable):
        example = "as returned by sketch_frame(frame, ..., by='region')"
        problem = f"must be a SketchTable with one sketch per segment, {example}; got {shown(table)}."
        raise invalid(name, f"{problem} For one Sketch use assess.", TypeError)
    if not table:
        raise invalid(name, "is empty; it has no segments to assess.")
    return table
