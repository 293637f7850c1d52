"""The result of `assess_segments`: which segments are miscalibrated, in words first, then a row for each."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar

from truthcal.results.base import PageResult, Plotted, Result
from truthcal.results.dependence import RowOrderNote
from truthcal.results.intervals import ConfidenceInterval
from truthcal.results.text import (
    PLAIN,
    Page,
    Table,
    Unit,
    count,
    error_unit,
    more_rows,
    number,
    p_number,
    p_value,
    percent,
    plural,
    ratio_of_means,
)

# Segments that `str` shows, and names in the verdict.
SHOWN, _NAMED = 20, 5
# Verdicts that raise no alarm.
_FINE = ("not significant", "too few rows")
_HEADER = ("rows", "bias", "error", "p", "adjusted p", "verdict")
# Column of `SegmentTable.table` -> attribute of a segment.
_FIELDS = {name: name for name in ("kind", "n", "information", "mean_proba", "mean_true")}
_FIELDS |= {name: name for name in ("bias", "bias_low", "bias_high")}
_FIELDS |= {"error": "error.estimate", "error_low": "error.low", "error_high": "error.high"}
_FIELDS |= {name: name for name in ("atb", "noise_floor", "pvalue", "adjusted", "method")}


@dataclass(frozen=True, slots=True)
class Segment(Result):
    """One segment of a `SegmentTable`.

    Attributes
    ----------
    key, name : object, str
        Its key in the table; the key as text.
    kind : str
        "not significant", "too few rows", "too high", "too low", "overconfident", "underconfident" or "miscalibrated"
        (none of these four clearly).
    pvalue : float
        Probability of looking at least as bad if predictions are calibrated; nan if it was not tested.
    adjusted : float
        The same, adjusted for the number of tested segments: at most `alpha` means miscalibrated.
    method : str
        "exact", "approximate", "asymptotic" or "bound" (see `assess_segments`), or "none" if it was not tested.
    n, information : int, float
        Rows with a weight above 0, and their sum of p(1 - p).
    mean_proba, mean_true, bias : float
        Mean prediction, mean outcome, and the first minus the second.
    atb, noise_floor : float
        As in `AtbSummary`.
    """

    key: Any
    name: str
    kind: str
    pvalue: float
    adjusted: float
    method: str
    n: int
    information: float
    mean_proba: float
    mean_true: float
    bias: float
    atb: float
    noise_floor: float
    _intervals: Mapping[tuple[Any, str], ConfidenceInterval] = field(repr=False, compare=False)
    _derived: ClassVar = ("bias_low", "bias_high", "error")

    @property
    def bias_interval(self) -> ConfidenceInterval:
        """Interval of the bias, for this segment alone. Computed on first use."""
        return self._intervals[self.key, "bias"]

    bias_low = property(attrgetter("bias_interval.low"), doc="Lower end of `bias_interval`.")
    bias_high = property(attrgetter("bias_interval.high"), doc="Upper end of `bias_interval`.")

    @property
    def error(self) -> ConfidenceInterval:
        """Size of the error of this segment alone, as in `error_size`. Computed on first use."""
        return self._intervals[self.key, "error"]

    @property
    def tested(self) -> bool:
        """Whether it had enough rows to be tested."""
        return not math.isnan(self.pvalue)

    @property
    def miscalibrated(self) -> bool:
        """Whether it was found to be miscalibrated."""
        return self.kind not in _FINE

    def __str__(self) -> str:
        why = f"adjusted {p_value(self.adjusted)}" if self.tested else "not tested"
        unit = error_unit(self.mean_proba, self.mean_true)
        level, ends = percent(self.bias_interval.confidence_level), self.bias_interval.ends("+", unit)
        size = f"{number(unit.rows * self.bias, 2, sign='+')}{unit.per}"
        bias = f"{size} ({f'{level}: {ends}' if ends else 'no interval'})"
        return f"{self.name}: {self.kind} ({why}); bias {bias}; {count(self.n, 'row')}"

    def cells(self, digits: int = 2, unit: Unit = PLAIN) -> list[str]:
        """Format the segment as a row of the printed table, with `digits` significant digits."""
        interval, error = self.bias_interval, self.error
        bias = number(unit.rows * self.bias, digits, sign="+"), interval.ends("+", unit)
        intervals = bias, (error.size(digits, unit), error.ends(unit=unit) if error.low > 0.0 else "")
        sizes = [f"{value} ({ends})" if ends else value for value, ends in intervals]
        if unit.rows > 1:
            sizes.insert(1, self._ratio())
        return [self.name, f"{self.n:,}", *sizes, p_number(self.pvalue), p_number(self.adjusted), self.kind]

    def _ratio(self) -> str:
        """Format the ratio of predicted to observed events, with the interval that follows from that of the bias."""
        if math.isnan(self.bias_low) or not min(self.mean_true, self.mean_proba) > 0.0:
            return "-"
        return "{} ({})".format(*ratio_of_means(self.mean_proba, self.mean_true, self.bias_low, self.bias_high))


def _by_size(*sizes: float) -> tuple[Any, ...]:
    """Return the sort key of a segment by decreasing size, then by the next one; without a size it comes last."""
    return (True, 0.0) if any(map(math.isnan, sizes)) else (False, *(-size for size in sizes))


def segment_order(adjusted: float, pvalue: float, n: int) -> tuple[bool, float, float, int]:
    """Sort key of segments: tested ones first, by adjusted p-value; many are 1, or equal by the steps of Holm."""
    return (True, 0.0, 0.0, -n) if math.isnan(pvalue) else (False, adjusted, pvalue, -n)


def _name_key(value: Any) -> tuple[Any, ...]:
    """Return the sort key of a value of any type: numbers by size, also if they are text, then text."""
    text, size = str(value), math.nan
    with contextlib.suppress(ValueError):
        size = float(text)
    return (1, 0.0, text) if math.isnan(size) else (0, size, text)


# Orders of `SegmentTable.sort_by` -> sort keys.
_ORDERS: dict[str, Callable[[Segment], tuple[Any, ...]]] = {
    "p": lambda segment: segment_order(segment.adjusted, segment.pvalue, segment.n),
    # As printed: estimates of errors that exclude 0 first, then upper limits.
    "error": lambda segment: (
        _by_size(segment.error.estimate) if segment.error.low > 0.0 else (True, *_by_size(segment.error.high))
    ),
    "bias": lambda segment: _by_size(abs(segment.bias)),
    "rows": lambda segment: (-segment.n,),
    "name": lambda segment: tuple(map(_name_key, segment.key if isinstance(segment.key, tuple) else (segment.key,))),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SegmentTable(Plotted, RowOrderNote, PageResult, Mapping[Any, Segment]):
    """Verdicts on all segments. Returned by `assess_segments`. Print it.

    A mapping from the keys of the `SketchTable` to `Segment`, by increasing adjusted p-value; last those that were not
    tested, by decreasing number of rows.

    Attributes
    ----------
    segments : tuple of Segment
        All of them, in that order.
    by : tuple of str
        Names of the columns that define the segments.
    alpha, adjust : float, str
        Level of the test, of all segments together unless `adjust` is "none"; "holm", "fdr" or "none".
    min_rows : int
        Segments with a smaller effective sample size were not tested.
    neighbour_z : float or None
        As in `CalibrationTest`, where neighbours are consecutive rows of the same segment. None if the order of the
        rows is not known.
    noun : str
        Name of a segment in text: "class" or "column" in an assessment of many classes.
    """

    segments: tuple[Segment, ...]
    by: tuple[str, ...]
    alpha: float
    adjust: str
    min_rows: int
    neighbour_z: float | None = None
    noun: str = "segment"
    _place: dict[Any, Segment] = field(init=False, repr=False)
    _derived: ClassVar = ("verdict",)
    _neighbours: ClassVar = "in the order of the rows of each segment"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {segment.key: segment for segment in self.segments})

    def __getitem__(self, key: Any) -> Segment:
        try:
            return self._place[key]
        except (KeyError, TypeError):  # TypeError: not hashable
            message = f"no segment {key!r} by {', '.join(self.by)}; list(...) has the {len(self):,} keys."
            raise KeyError(message) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def tested(self) -> tuple[Segment, ...]:
        """The segments with enough rows to be tested."""
        return tuple(segment for segment in self.segments if segment.tested)

    @property
    def miscalibrated(self) -> tuple[Segment, ...]:
        """The segments found to be miscalibrated, the clearest first."""
        return tuple(sorted((segment for segment in self.segments if segment.miscalibrated), key=_ORDERS["p"]))

    @property
    def unit(self) -> Unit:
        """Unit of biases and errors in text, from the mean of all rows: for rare events, per 1,000 rows or more."""
        rows = max(sum(segment.n for segment in self.segments), 1)
        predicted = sum(segment.n * segment.mean_proba for segment in self.segments) / rows
        return error_unit(predicted, sum(segment.n * segment.mean_true for segment in self.segments) / rows)

    @property
    def verdict(self) -> str:
        """One line: how many are miscalibrated, which, and how many of these may be false alarms."""
        wrong, tested = self.miscalibrated, len(self.tested)
        few = len(self) - tested
        if not tested:
            none = f"{plural(few, 'The only', 'None of')} {self.noun if few == 1 else self.count_words(few)}"
            return f"{none} {plural(few, 'has fewer than', 'has')} the {self._needed} needed for a test."
        have, were = plural(few, "has", "have"), plural(few, "was", "were")
        rest = f" {few:,} more {have} fewer than {self._needed} and {were} not tested." if few else ""
        if not wrong:
            start = f"No significant miscalibration in {'any of ' * (tested > 1)}{self.count_words(tested)}"
            return f"{start} ({self._promise(tested)}).{self._word_little_information()}{rest}"
        separator = "; " if len(self.by) > 1 else ", "  # a name has commas between the values of several columns
        names = separator.join(f"{segment.name} ({segment.kind})" for segment in wrong[:_NAMED])
        more = f" and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
        start = f"{len(wrong):,} of {self.count_words(tested)} {plural(len(wrong), 'is', 'are')} miscalibrated"
        return f"{start} ({self._promise(tested)}): {names}{more}.{rest}"

    @property
    def _needed(self) -> str:
        """Rows that a segment needs to be tested; they are not enough in few groups, or if weights are uneven."""
        other = any(segment.n >= self.min_rows and math.isnan(segment.pvalue) for segment in self.segments)
        return f"{self.min_rows} effective rows (or too few groups)" if other else f"{self.min_rows} rows"

    def _word_little_information(self) -> str:
        """Word how many tested segments could have shown only gross errors."""
        few = sum(segment.kind == "too few rows" for segment in self.tested)
        return f" {few:,} of them {plural(few, 'carries', 'carry')} too little information." if few else ""

    def count_words(self, n: int) -> str:
        """Format a number of segments with their noun."""
        return f"{n:,} {plural(n, self.noun, 'classes' if self.noun == 'class' else None)}"

    def _promise(self, tested: int) -> str:
        level = percent(self.alpha)
        if self.adjust == "holm":
            return f"at most {level} chance of any false alarm"
        if self.adjust == "fdr":
            return f"at most {level} of all findings are false alarms, on average"
        return f"not adjusted for the number of tests: up to {self.alpha * tested:.2g} false alarms by chance"

    def table(self) -> dict[str, list[Any]]:
        """Return columns of equal length, one row for each segment.

        The columns named in `by` (with an underscore after a name that is also a statistic's), then ``kind``, ``n``,
        ``information``, ``mean_proba``, ``mean_true``, ``bias``, ``bias_low``, ``bias_high``, ``error``,
        ``error_low``, ``error_high``, ``atb``, ``noise_floor``, ``pvalue``, ``adjusted`` and ``method``. The intervals
        are computed on first use, in about 1 ms per segment.
        """
        keys = [segment.key if len(self.by) > 1 else (segment.key,) for segment in self.segments]
        columns = {name + "_" * (name in _FIELDS): [key[i] for key in keys] for i, name in enumerate(self.by)}
        return columns | {
            name: [attrgetter(path)(segment) for segment in self.segments] for name, path in _FIELDS.items()
        }

    def sort_by(self, order: str) -> "SegmentTable":
        """Return the table in another order.

        Parameters
        ----------
        order : {"p", "error", "bias", "rows", "name"}
            By increasing adjusted p-value (the order of `assess_segments`), the largest error, the largest bias of
            either sign, the most rows, or by key. Segments without that number come last.
        """
        if order not in _ORDERS:
            raise ValueError(f"`order` must be one of {', '.join(map(repr, _ORDERS))}; got {order!r}.")
        return replace(self, segments=tuple(sorted(self.segments, key=_ORDERS[order])))

    def to_text(self, width: int | None = None, limit: int | None = SHOWN) -> str:
        """Return the printed text: at most `limit` segments (None: all), in lines of at most `width` characters."""
        return self._page(limit).text(width)

    def to_markdown(self, limit: int | None = SHOWN) -> str:
        """Return heading and table in Markdown, with at most `limit` segments (None: all)."""
        return self._page(limit).markdown()

    def _page(self, limit: int | None = SHOWN, hint: str = "") -> Page:
        unit, limit = self.unit, len(self) if limit is None else limit
        rows = [segment.cells(unit=unit) for segment in self.segments[:limit]]
        header = [name + unit.per * (name in ("bias", "error")) for name in _HEADER]
        if unit.rows > 1:
            header.insert(2, "predicted/observed")
        right, optional = [1, len(header) - 2, len(header) - 1], [len(header) - 2, len(header) - 4]
        table = Table([", ".join(self.by), *header], rows, right=right, optional=optional)
        return Page(self.verdict, table, more_rows(len(self), limit, hint=hint), self._row_order_warnings())
