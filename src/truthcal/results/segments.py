"""What `assess_segments` returns: which segments are miscalibrated, in words first, then a row for each."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from truthcal.results.tests import ConfidenceInterval, p_in_words, percent
from truthcal.results.text import literal, markdown_table

# Segments that `str` shows, and names in the verdict.
_SHOWN, _NAMED = 20, 5
# Verdicts that raise no alarm.
_FINE = ("calibrated", "too few rows")
_HEADER = ("rows", "bias", "error (rms)", "ATB / floor", "p", "adjusted p", "verdict")
_NUMBERS = (
    "n", "information", "mean_proba", "mean_true", "bias", "bias_low", "bias_high", "rms", "rms_low", "rms_high",
    "atb", "noise_floor", "pvalue", "adjusted",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Segment:
    """One group of a `SegmentTable`.

    Attributes
    ----------
    key : object
        Its key in the table.
    name : str
        The key as it is printed.
    kind : str
        "calibrated", "too few rows", "too high", "too low", "overconfident", "underconfident" or "miscalibrated" (none
        of these four clearly).
    pvalue : float
        How often calibrated predictions like these would look so bad, by chance alone; nan if it was not tested.
    adjusted : float
        The same with regard to how many segments were tested: at most `alpha` means miscalibrated.
    method : str
        "asymptotic", "bound" (see `assess_segments`), or "none" if it was not tested.
    n : int
        Rows that count.
    information : float
        Sum of p(1 - p) over the rows: how many coin tosses the outcomes are worth, times 1/4.
    mean_proba, mean_true, bias : float
        Mean prediction, mean outcome, and the first minus the second.
    atb, noise_floor, rms : float
        As in `AtbSummary`; rms is nan for one row.
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
    rms: float
    _interval: Callable[[Any, str], ConfidenceInterval] = field(repr=False, compare=False)

    @property
    def bias_interval(self) -> ConfidenceInterval:
        """Interval of the bias, for this segment alone. Computed when first asked for."""
        return self._interval(self.key, "bias")

    @property
    def bias_low(self) -> float:
        """Lower end of the bias's interval."""
        return self.bias_interval.low

    @property
    def bias_high(self) -> float:
        """Upper end of the bias's interval."""
        return self.bias_interval.high

    @property
    def rms_interval(self) -> ConfidenceInterval:
        """Interval of the error on the scale of a probability, likewise."""
        return self._interval(self.key, "rms")

    @property
    def rms_low(self) -> float:
        """Lower end of the error's interval."""
        return self.rms_interval.low

    @property
    def rms_high(self) -> float:
        """Upper end of the error's interval."""
        return self.rms_interval.high

    @property
    def tested(self) -> bool:
        """Whether it had rows enough to be tested."""
        return not math.isnan(self.pvalue)

    @property
    def miscalibrated(self) -> bool:
        """Whether it was found to be miscalibrated."""
        return self.kind not in _FINE

    def __str__(self) -> str:
        why = p_in_words(self.adjusted).replace("p ", "adjusted p ", 1) if self.tested else "not tested"
        sure = percent(self.bias_interval.confidence_level)
        ends = "no interval" if math.isnan(self.bias_low) else f"{sure}: {self.bias_low:+.2g} to {self.bias_high:+.2g}"
        return f"{self.name}: {self.kind} ({why}); bias {_signed(self.bias)} ({ends}); {self.n:,} rows"

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, ready for JSON (nan where a number is not known); `key` as text where JSON has none."""
        return {
            "key": _plain(self.key),
            "name": self.name,
            "kind": self.kind,
            "method": self.method,
            **{name: getattr(self, name) for name in _NUMBERS},
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SegmentTable(Mapping[Any, Segment]):
    """Which segments are miscalibrated? Returned by `assess_segments`. Print it.

    A mapping from the keys of the `SketchTable` to `Segment`, by increasing adjusted p-value; last those that were not
    tested, by decreasing number of rows.

    Attributes
    ----------
    segments : tuple of Segment
        All of them, in that order.
    by : tuple of str
        Names of the columns that make the segments.
    alpha : float
        Level of the test, of all segments together unless `adjust` is "none".
    adjust : str
        "holm", "fdr" or "none".
    min_rows : int
        Segments worth fewer rows were not tested.
    """

    segments: tuple[Segment, ...]
    by: tuple[str, ...]
    alpha: float
    adjust: str
    min_rows: int
    _place: dict[Any, Segment] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {segment.key: segment for segment in self.segments})

    def __getitem__(self, key: Any) -> Segment:
        try:
            return self._place[key]
        except (KeyError, TypeError):  # what has no hash is no key
            raise KeyError(
                f"no segment {key!r} by {', '.join(self.by)}; list(...) has the {len(self):,} keys."
            ) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def tested(self) -> tuple[Segment, ...]:
        """The segments with rows enough to be tested."""
        return tuple(segment for segment in self.segments if segment.tested)

    @property
    def miscalibrated(self) -> tuple[Segment, ...]:
        """The segments found to be miscalibrated, the clearest first."""
        return tuple(segment for segment in self.segments if segment.miscalibrated)

    @property
    def verdict(self) -> str:
        """In one line: how many are miscalibrated, which, and how many of these may be false alarms."""
        wrong, tested = self.miscalibrated, len(self.tested)
        few = len(self) - tested
        rest = f" {few:,} more {_have(few)} fewer than {self.min_rows} rows and {_was(few)} not tested." if few else ""
        if not tested:
            return f"None of {_segments(few)} {_have(few)} the {self.min_rows} rows that it takes to be tested."
        if not wrong:
            return f"No sign of miscalibration in any of {_segments(tested)} ({self._promise(tested)}).{rest}"
        names = ", ".join(f"{segment.name} ({segment.kind})" for segment in wrong[:_NAMED])
        more = f" and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
        start = f"{len(wrong):,} of {_segments(tested)} {'is' if len(wrong) == 1 else 'are'} miscalibrated"
        return f"{start}, {self._promise(tested)}: {names}{more}.{rest}"

    def _promise(self, tested: int) -> str:
        level = percent(self.alpha)
        if self.adjust == "holm":
            return f"at most {level} chance of any false alarm"
        if self.adjust == "fdr":
            return f"at most {level} of all findings are false alarms, on average"
        return f"without regard to how many were tested: up to {self.alpha * tested:.2g} false alarms by chance"

    def table(self) -> dict[str, list[Any]]:
        """One row for each segment, as columns of equal length, ready for a data frame.

        Returns
        -------
        dict of list
            The columns named in `by` (with an underscore behind a name that is a statistic's, too), then ``kind``,
            ``n`` (rows), ``information``, ``mean_proba``, ``mean_true``, ``bias``, ``bias_low``, ``bias_high``,
            ``rms``, ``rms_low``, ``rms_high``, ``atb``, ``noise_floor``, ``pvalue``, ``adjusted`` and ``method``. The
            intervals are computed when first asked for, in some 20 ms a segment.
        """
        fields = ("kind", *_NUMBERS, "method")
        keys = [segment.key if len(self.by) > 1 else (segment.key,) for segment in self.segments]
        columns = {name + "_" * (name in fields): [key[i] for key in keys] for i, name in enumerate(self.by)}
        return columns | {name: [getattr(segment, name) for segment in self.segments] for name in fields}

    def to_dict(self) -> dict[str, Any]:
        """All of it, in nested plain values, ready for JSON. As in `table`, intervals take some 20 ms a segment."""
        return {
            "verdict": self.verdict,
            "by": list(self.by),
            "alpha": self.alpha,
            "adjust": self.adjust,
            "min_rows": self.min_rows,
            "segments": [segment.to_dict() for segment in self.segments],
        }

    def to_markdown(self) -> str:
        """Verdict and table in Markdown, of as many segments as are printed."""
        header, *lines = self._lines()
        table = markdown_table([literal(header[0]), *header[1:]], lines, right=[1, 4, 5, 6])
        return "\n\n".join([literal(self.verdict), table, *self._rest()])

    def _lines(self) -> list[list[str]]:
        """Header and segments, as they are printed."""
        return [[", ".join(self.by), *_HEADER], *(_line(segment) for segment in self.segments[:_SHOWN])]

    def _rest(self) -> list[str]:
        return [f"... and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []

    def __str__(self) -> str:
        lines = self._lines()
        width = [max(map(len, column)) for column in zip(*lines, strict=True)]
        side = "<><<>>><"
        text = ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(line, side, width, strict=True)).rstrip() for line in lines]
        return "\n".join([self.verdict, "", *text, *self._rest()])

    __repr__ = __str__


def _line(segment: Segment) -> list[str]:
    """What is printed of a segment."""
    ratio = f"{segment.atb / segment.noise_floor:.3g}" if segment.noise_floor > 0.0 else "-"
    bias, rms = _signed(segment.bias), "-" if math.isnan(segment.rms) else f"{segment.rms:.2g}"
    if not math.isnan(segment.bias_low):
        bias += f" ({segment.bias_low:+.2g} to {segment.bias_high:+.2g})"
    if not math.isnan(segment.rms_low):
        rms += f" ({segment.rms_low:.2g} to {segment.rms_high:.2g})"
    chances = [_short(segment.pvalue), _short(segment.adjusted)]
    return [segment.name, f"{segment.n:,}", bias, rms, ratio, *chances, segment.kind]


def _short(p: float) -> str:
    return "-" if math.isnan(p) else p_in_words(p).removeprefix("p = ").removeprefix("p ")


def _signed(bias: float) -> str:
    return f"{0.0 if abs(bias) < 1e-15 else bias:+.2g}"


def _segments(count: int) -> str:
    return f"{count:,} segment{'s' * (count != 1)}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _plain(value: Any) -> Any:
    """A key as JSON has it: dates and the like as text."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
