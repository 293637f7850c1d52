"""The tables of the report: models, measures, segments. Strings only, so that the page has nothing to compute."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from truthcal.core.sketch import Sketch
from truthcal.measures.overview import all_measures_of
from truthcal.measures.registry import MEASURES
from truthcal.reports.sanitize import shortened
from truthcal.reports.wording import Chip, segment_chip, typeset
from truthcal.results.assessment import Assessment
from truthcal.results.measures import MeasureTable, MeasureValue
from truthcal.results.segments import Segment, SegmentTable
from truthcal.results.tests import ConfidenceInterval
from truthcal.results.text import p_value

# Segments that a report shows, the clearest findings first: an interval of the error takes 20 ms.
MOST_SEGMENTS = 50
# Letters of a segment's name: 50 long names would fill the page.
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment as its table shows it."""

    name: str
    chip: Chip
    rows: str
    bias: str
    bias_ends: str
    rms: str
    rms_ends: str
    pvalue: str
    adjusted: str


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model as the table of models shows it."""

    rms: str
    rms_ends: str
    bias: str
    bias_ends: str
    brier: str
    discrimination: str
    pvalue: str
    rows: str


def model_row(assessment: Assessment) -> ModelRow:
    """The numbers by which models are laid side by side."""
    a = assessment
    return ModelRow(
        rms=_number(a.rms),
        rms_ends=_ends(a.rms_interval),
        bias=_number(a.bias_interval.estimate, "+"),
        bias_ends=_ends(a.bias_interval, "+"),
        brier=_number(a.brier),
        discrimination=_number(a.decomposition.discrimination),
        pvalue=_without_p(a.test.format_p(a.test.greater)),
        rows=f"{a.n:,}",
    )


def measures_of(assessment: Assessment) -> MeasureTable:
    """The measures that are quick to have: all of rows, two of a sketch."""
    summary = assessment._summary
    if isinstance(summary, Sketch):
        known = [name for name, measure in MEASURES.items() if measure.sketchable]
        return MeasureTable(tuple(_of_sketch(name, float(getattr(summary, name)())) for name in known))
    return all_measures_of(summary)


def _of_sketch(name: str, value: float) -> MeasureValue:
    m = MEASURES[name]
    flags = {flag: getattr(m, flag) for flag in ("truthful", "continuous", "complete", "sound")}
    return MeasureValue(name=name, value=value, scale=m.scale, **flags)


def merged(tables: Sequence[MeasureTable]) -> list[tuple[MeasureValue, str, list[str]]]:
    """A row for each measure that any model has: its properties, what it is, and its value for each model."""
    rows = {row.name: row for table in tables for row in table.rows}
    order = [name for name in MEASURES if name in rows]
    return [(rows[name], _what_it_is(name), [_value(table, name) for table in tables]) for name in order]


def _what_it_is(name: str) -> str:
    """The first line of the measure's documentation; nothing where Python runs without it (-OO)."""
    return (MEASURES[name].function.__doc__ or "").strip().split("\n")[0].replace("`", "")


def notes_of(tables: Sequence[MeasureTable]) -> list[tuple[str, list[str]]]:
    """What there is to say of values, and of which measures."""
    found: dict[str, list[str]] = {}
    for table in tables:
        for row in table.rows:
            if row.note and row.name not in found.setdefault(row.note, []):
                found[row.note].append(row.name)
    return list(found.items())


def _value(table: MeasureTable, name: str) -> str:
    return _number(table[name]) if name in table else "\u2013"


def segment_rows(table: SegmentTable) -> list[SegmentRow]:
    """The segments in their order, up to the most that a report shows."""
    return [_segment(segment) for segment in table.segments[:MOST_SEGMENTS]]


def fit_names(table: SegmentTable) -> SegmentTable:
    """The table with short names: its verdict has some of them."""
    short = (dataclasses.replace(segment, name=shortened(segment.name, _LONGEST)) for segment in table.segments)
    return dataclasses.replace(table, segments=tuple(short), by=tuple(shortened(name, _LONGEST) for name in table.by))


def _segment(segment: Segment) -> SegmentRow:
    return SegmentRow(
        name=segment.name,
        chip=segment_chip(segment.kind),
        rows=f"{segment.n:,}",
        bias=_number(segment.bias, "+"),
        bias_ends=_ends(segment.bias_interval, "+"),
        rms=_number(segment.rms),
        rms_ends=_ends(segment.rms_interval) if segment.miscalibrated else "",
        pvalue=_chance(segment.pvalue),
        adjusted=_chance(segment.adjusted),
    )


def _number(x: float, sign: str = "") -> str:
    if math.isnan(x):
        return "\u2013"
    return "0" if abs(x) < 1e-15 else f"{x:{sign}.3g}"


def _ends(interval: ConfidenceInterval, sign: str = "") -> str:
    return "" if math.isnan(interval.low) else f"{_number(interval.low, sign)} to {_number(interval.high, sign)}"


def _chance(p: float) -> str:
    return "\u2013" if math.isnan(p) else _without_p(p_value(p))


def _without_p(words: str) -> str:
    """For a column whose header says it."""
    return typeset(words).removeprefix("p = ").removeprefix("p ")
