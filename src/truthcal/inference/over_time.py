"""Assessment over time: the error in each window, and whether it changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_columns, invalid, positive_labels, refuse_fractional
from truthcal.core.frame_columns import named_columns
from truthcal.core.group_keys import printed
from truthcal.core.neighbours import neighbour_z
from truthcal.core.parallel import one_blas_thread
from truthcal.core.params import check_level
from truthcal.core.points import Points
from truthcal.core.segment_rows import refuse_beside_table, sketch_runs
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.core.times import Times, integers_of_text, on_its_own_clock, times_of
from truthcal.core.windows import Window, choose_window, parse_window
from truthcal.inference.change import Change, WindowSums, detectable_change, run_change_test
from truthcal.inference.error_size import error_sizes_of, estimated_error
from truthcal.inference.intervals import bias_intervals
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.over_time import ChangeTest, TimeAssessment, TimeWindow

# Intervals take about 1 ms per window.
MOST_WINDOWS = 1000
_BY, _DAY = "window", 86_400 * 10**6


def window_is_automatic(window: object) -> bool:
    """Whether the windows are chosen automatically."""
    return isinstance(window, str) and window.strip().lower() == "auto"


@dataclass(frozen=True, slots=True)
class Span:
    """The span of time of a number of rows. `counter`: whether times are plain integers."""

    first: int
    last: int
    rows: int
    counter: bool

    @classmethod
    def of(cls, times: Times, rows: int | None = None) -> "Span":
        """Return the span of these times."""
        number = len(times) if rows is None else rows
        return cls(int(np.min(times.values)), int(np.max(times.values)), number, times.counter)

    def joined(self, other: "Span") -> "Span":
        """Return the span of the rows of both."""
        first, last = min(self.first, other.first), max(self.last, other.last)
        return Span(first, last, self.rows + other.rows, self.counter)

    def window_for(self, window: object) -> Window:
        """Parse a window, or choose one for these rows."""
        if window_is_automatic(window):
            return choose_window(self.first, self.last, self.rows, counter=self.counter)
        return parse_window(window, counter=self.counter)

    def refuse_too_many(self, number: int, window: Window) -> None:
        """Reject a division of these rows into too many windows."""
        if number > MOST_WINDOWS:
            longer = self.window_for("auto").text.replace(",", "")
            problem = f"of {window} makes {number:,} windows or more of these rows; the limit is {MOST_WINDOWS:,}"
            raise invalid("window", f"{problem}. Use longer windows, for example", fix=("window", longer))


@dataclass(frozen=True, slots=True)
class WindowedRows:
    """Rows reduced to a sketch for each window.

    `table` has one column, whose keys are in the order of time. `window` names the division of time, and `starts` and
    `labels` are the starts of windows, as values and as text.
    """

    table: SketchTable
    window: str
    starts: Sequence[Any]
    labels: Sequence[str]

    @classmethod
    def of_starts(
        cls, table: SketchTable, window: Window, first_times: dict[int, int], *, counter: bool
    ) -> "WindowedRows":
        """Name the windows of a table whose keys are their starts; `first_times` are those of windows of rows."""
        starts = list(table)
        name = f"steps of {window}" if window.kind == "steps" else str(window)
        if window.kind == "rows":
            starts = [first_times[start] for start in starts]
            whole_days = all(start % _DAY == 0 for start in starts)
            window = Window("steps", 1) if counter else Window("duration", _DAY if whole_days else 10**6)
        return cls(table, name, [window.key(start) for start in starts], [window.label(start) for start in starts])

    @classmethod
    def of_table(cls, table: SketchTable, window: object, time_unit: str | None) -> "WindowedRows":
        """Merge the groups of a user's table into windows; with "auto", each group is a window."""
        if len(table.by) > 1:
            problem = f"must have one column, whose values are times; it has {', '.join(table.by)}"
            raise invalid("y_true", f"{problem}. Use table.rollup({table.by[0]!r}).")
        if table.has_groups:
            problem = "has groups of rows that belong together, but the test for change needs independent rows"
            raise invalid("y_true", f"{problem}. Build the table without groups, or use `Monitor`, which accepts them.")
        if None in table:
            raise invalid("y_true", f"has rows without a time: {table.by[0]!r} is missing there. Drop those rows.")
        times = times_of(integers_of_text(list(table)), "time", time_unit)
        if window_is_automatic(window) and len(table) <= MOST_WINDOWS:
            names = dict(zip(times.values.tolist(), table, strict=True))
            ordered = table._with_keys([(time,) for time in times.values.tolist()])
            keys = [names[time] for time in ordered]
            return cls(ordered, table.by[0], keys, [printed(key) for key in keys])
        span = Span.of(times, int(np.sum(table.n)))
        chosen = span.window_for(window)
        if chosen.kind == "rows":
            problem = f"is {chosen.text!r}, but a table of sketches does not have the order of rows"
            raise invalid("window", f"{problem}. Use windows such as 'day'.")
        starts = chosen.starts(times).tolist()
        span.refuse_too_many(len(set(starts)), chosen)
        return cls.of_starts(table._with_keys([(start,) for start in starts]), chosen, {}, counter=times.counter)


@named_columns
def assess_over_time(
    y_true: object,
    y_proba: object = None,
    time: object = None,
    *,
    window: object = "auto",
    time_unit: str | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    sample_weight: object = None,
    pos_label: object = None,
) -> TimeAssessment:
    """Tell whether calibration changes over time: the error in each window of time, and a test for change.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `calibration_test`. In place of `y_true`, a `SketchTable` by one column of times, for example one sketch
        per day; `y_proba`, `time`, `sample_weight` and `pos_label` are then omitted, and by default each group is a
        window.
    time : array-like
        Time of each row: dates, datetimes, ISO text, or integers. Windows of a pandas or polars column with a time zone
        are those of its clocks; other times with a time zone, and those of files, are converted to UTC. Integers are
        any counter that grows with time, such as a year or a round, unless `time_unit` is given.
    window : str or int, default "auto"
        Division of time: "day", "week" (from Monday), "month", "quarter", "year", a duration such as "7d", "12h" or
        "15min" (counted from 1970-01-01), or "1000 rows" in the order of time. For integers, a number is a number of
        their units. "auto" chooses about 10 to 30 windows.
    time_unit : {"s", "ms", "us", "ns"}, optional
        Unit of integers that count time since 1970-01-01 UTC.
    alpha : float, default 0.05
        Level of the test for change.
    confidence_level : float, default 0.95
        Probability with which the intervals of all windows hold at once.

    Returns
    -------
    TimeAssessment
        Print it. ``.change`` is the test; ``.frame()`` has a row for each window, ``.to_dict()`` is for JSON.

    Notes
    -----
    The null hypothesis of the test is that the calibration error does not change: the frequency of the event is the
    same function of the prediction at all times. It need not be the prediction itself. A model with a constant bias is
    stable, and so is one whose predictions become larger together with the frequency of the event. Rows are compared
    within groups of similar predictions only (those of `error_size`): in each, the errors of a window are measured from
    the mean of all windows. The statistic adds up squares of these differences: before and after each possible date of
    change (Andrews, Ploberger 1994), and of each window from all others, for the bias and for five other shapes of
    errors. Its distribution is a quadratic form in normal variables or, for little information and without weights, is
    found by redistributing the events of each group over windows at random. docs/benchmarks/change.md has simulated
    sizes and powers.

    The estimated time is the date at which the difference before and after is most significant. If the error drifts
    slowly, or changes more than once, there is no single such date; look at the windows. More than 64 windows are
    merged into 64 blocks for the p-value.

    Windows have no rows in common, so that each interval has the level ``confidence_level ** (1 / windows)`` (Sidak).
    Intervals are approximations; the same page has the simulated share of data sets in which all of them hold.
    Rows are assumed to be independent, and there is no `groups` here: if rows of one window belong together (a patient,
    a match), their common deviation looks like a change. `Monitor` accepts groups.
    References: Andrews, Ploberger (1994), Optimal tests when a nuisance parameter is present only under the
    alternative.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> day = np.sort(rng.integers(0, 100, 20_000))
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < np.where(day < 60, p, 0.85 * p)
    >>> result = tc.assess_over_time(y, p, np.datetime64("2024-01-01") + day, window="week")
    >>> print(result.verdict)
    Changed around 2024-03-04 (p = 1.3e-30): bias +0.0044 before, +0.069 from then on; error 0.0056 before, 0.078 after.
    """
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    if isinstance(y_true, SketchTable):
        refuse_beside_table(y_proba=y_proba, time=time, sample_weight=sample_weight, pos_label=pos_label)
        rows = WindowedRows.of_table(y_true, window, time_unit)
    else:
        rows = window_rows(y_true, y_proba, time, window, time_unit, sample_weight, pos_label)
    return assess_windows(rows, alpha, level)


# --- rows -------------------------------------------------------------------------------------------------------------


def window_rows(
    y_true: object,
    y_proba: object,
    time: object,
    window: object,
    time_unit: str | None,
    sample_weight: object = None,
    pos_label: object = None,
) -> WindowedRows:
    """Reduce rows in memory to a sketch for each window."""
    for name, column in (("y_proba", y_proba), ("time", time)):
        if column is None:
            raise invalid(name, "is missing: pass (y_true, y_proba, time).", TypeError)
    times = times_of(on_its_own_clock(time), "time", time_unit)
    columns = as_columns(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
    if len(times) != len(columns[0]):
        problem = f"has {len(columns[0])} rows but `time` has {len(times)}; they must match row by row."
        raise invalid("y_true", problem)
    Sketch(1).update(*columns, pos_label=pos_label)  # one error for all rows, with the right number of the row
    order = np.argsort(times.values, kind="stable")
    times = Times(times.values[order], times.counter, times.zoned)
    chosen = Span.of(times).window_for(window)
    table, first_times = _table_of_windows([column[order] for column in columns], times, chosen, pos_label)
    return WindowedRows.of_starts(table, chosen, first_times, counter=times.counter)


def _table_of_windows(
    columns: list[NDArray[Any]], times: Times, window: Window, pos_label: object
) -> tuple[SketchTable, dict[int, int]]:
    """Sketch each window of rows in the order of time; also return the first time of each, by its start."""
    starts = window.starts(times)
    edges = np.flatnonzero(np.diff(starts, prepend=starts[0] - 1, append=starts[-1] + 1))
    Span.of(times).refuse_too_many(len(edges) - 1, window)
    keys = [(start,) for start in starts[edges[:-1]].tolist()]
    first_times = dict(zip(starts[edges[:-1]].tolist(), times.values[edges[:-1]].tolist(), strict=True))
    outcomes = columns[0] if pos_label is None else positive_labels(columns[0], pos_label)
    table = sketch_runs([outcomes, *columns[1:]], edges, keys, (_BY,))
    table.neighbour_z = neighbour_z(columns[1], outcomes, np.repeat(np.arange(len(edges) - 1), np.diff(edges)))
    return table, first_times


# --- results ----------------------------------------------------------------------------------------------------------


def assess_windows(rows: WindowedRows, alpha: float, confidence_level: float) -> TimeAssessment:
    """Assess windows, from the sketch of each."""
    table = rows.table
    if len(table) < 2:
        problem = f"puts all rows into one window (of {rows.window}), and change needs at least two"
        raise invalid("window", f"{problem}. Use shorter windows.")
    every = range(len(table))
    if any(block.has_fractions.any() for block in table.point_groups(every)):
        refuse_fractional(None)
    sums = WindowSums.of(table.point_groups(every), table.total().points())
    change = run_change_test(sums)
    detectable = math.nan if math.isnan(change.pvalue) else detectable_change(sums, alpha)
    level = confidence_level ** (1.0 / len(table))
    biases, errors = _intervals_of(table, level)
    statistics = table.table()
    windows = tuple(
        TimeWindow(
            start=rows.starts[g],
            label=rows.labels[g],
            n=int(statistics["n"][g]),
            mean_proba=float(statistics["mean_proba"][g]),
            mean_true=float(statistics["mean_true"][g]),
            bias=biases[g],
            error=errors[g],
        )
        for g in every
    )
    test = _change_in_words(rows, change, detectable, alpha)
    return TimeAssessment(windows, rows.window, test, alpha, confidence_level, table.neighbour_z)


@one_blas_thread()
def _intervals_of(table: SketchTable, level: float) -> tuple[list[ConfidenceInterval], list[ConfidenceInterval]]:
    """Intervals of the bias and of the size of the error of all windows, each with its own level."""
    biases, errors = [], []
    for block in table.point_groups(range(len(table))):
        biases += bias_intervals(block.merged().normalized(), level)
        errors += error_sizes_of(block, level)
    return biases, errors


def _change_in_words(rows: WindowedRows, change: Change, detectable: float, alpha: float) -> ChangeTest:
    """Name the time of a change, and compute bias and error before and after it."""
    significant = change.pvalue <= alpha
    sides = [math.nan] * 4
    if significant:
        keys = list(rows.table)
        points = [_points_of(rows.table, keys[: change.place]), _points_of(rows.table, keys[change.place :])]
        sides = [x.mean_proba - x.mean_true for x in points] + [estimated_error(x) for x in points]
    return ChangeTest(
        statistic=change.statistic,
        pvalue=change.pvalue,
        method=change.method,
        why=change.why,
        n_resamples=change.n_resamples,
        start=rows.starts[change.place] if significant else None,
        label=rows.labels[change.place] if significant else None,
        bias_before=sides[0],
        bias_after=sides[1],
        error_before=sides[2],
        error_after=sides[3],
        detectable=detectable,
    )


def _points_of(table: SketchTable, keys: Sequence[Any]) -> Points:
    """Points of the rows of several windows together."""
    sketch = table[keys[0]]
    for key in keys[1:]:
        sketch.merge(table[key])
    return sketch.points()
