"""Data of a report: everything that is computed for it, once for each model. Figures and pages only show it."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.inference.scale_profile import scale_profile_of
from truthcal.measures.bias_curve import bias_band_of, cumulative_bias_curve_of
from truthcal.measures.overview import all_measures_of
from truthcal.measures.registry import MEASURES
from truthcal.measures.reliability import consistency_band_of, density_of, reliability_curve_of
from truthcal.results.assessment import Assessment
from truthcal.results.curves import BiasBand, BiasCurve, ConsistencyBand, ReliabilityCurve, ScaleProfile
from truthcal.results.measures import MeasureTable, MeasureValue
from truthcal.results.over_time import TimeAssessment
from truthcal.results.segments import SegmentTable
from truthcal.results.text import LONGEST_LABEL, interval, one_line

SEED = 0
# With more models, each has two figures of its own, which keeps the file small.
_MANY_MODELS = 6
_EXACT_DISTCAL = "exact_distcal=True (--exact-distcal) computes it"
# Characters of a segment's name: 50 long names would fill the page.
_LONGEST_SEGMENT = 60


@dataclass(frozen=True, slots=True, eq=False)
class ModelData:
    """Results for one model. `label` is a short, unique name; `profile` and `binned` are None with many models.

    `sketch` is the sketch that was assessed; None if rows were.
    """

    name: str
    label: str
    assessment: Assessment
    sketch: Sketch | None
    segments: SegmentTable | None
    over_time: TimeAssessment | None
    measures: MeasureTable
    curve: ReliabilityCurve
    band: ConsistencyBand
    density: Any
    bias_curve: BiasCurve
    bias_band: BiasBand
    profile: ScaleProfile | None
    binned: ReliabilityCurve | None


def report_data(
    assessments: Mapping[str, Assessment],
    tables: Mapping[str, SegmentTable],
    over_time: Mapping[str, TimeAssessment],
    *,
    exact_distcal: bool,
) -> list[ModelData]:
    """Compute the data that the report shows of each model."""
    labels = unique_labels(assessments) if list(assessments) != [""] else [""]
    few = len(assessments) <= _MANY_MODELS
    models = []
    for (name, assessment), label in zip(assessments.items(), labels, strict=True):
        summary, table = assessment._summary, tables.get(name)
        bins = few and summary.group_sums is None  # their ranges assume independent rows
        sketch = summary if isinstance(summary, Sketch) else None
        models.append(
            ModelData(
                name=name,
                label=label,
                assessment=assessment,
                sketch=sketch,
                segments=None if table is None else with_short_names(table),
                over_time=over_time.get(name),
                measures=_compute_measures(summary, exact_distcal),
                curve=reliability_curve_of(summary),
                band=consistency_band_of(summary, rng=SEED, simultaneous=True),
                density=density_of(summary),
                bias_curve=cumulative_bias_curve_of(summary),
                bias_band=bias_band_of(summary, rng=SEED),
                profile=scale_profile_of(summary, rng=SEED) if few else None,
                binned=reliability_curve_of(summary, "uniform", simultaneous=True) if bins else None,
            )
        )
    return models


def unique_labels(names: Iterable[str]) -> list[str]:
    """Return labels of models or segments for the report's data: short names that are all different."""
    labels: dict[str, None] = {}
    for name in names:
        label, count = one_line(name), 1
        while label in labels:
            count += 1
            label = f"{one_line(name, LONGEST_LABEL - 5)} ({count})"
        labels[label] = None
    return list(labels)


def with_short_names(table: SegmentTable) -> SegmentTable:
    """Shorten the names in the data of segments: the table's verdict contains some of them."""
    by = tuple(one_line(name, _LONGEST_SEGMENT) for name in table.by)
    segments = (
        dataclasses.replace(segment, name=one_line(segment.name, _LONGEST_SEGMENT)) for segment in table.segments
    )
    return dataclasses.replace(table, segments=tuple(segments), by=by)


def _compute_measures(summary: Any, exact_distcal: bool) -> MeasureTable:
    if isinstance(summary, Sketch):
        names = (name for name, measure in MEASURES.items() if measure.sketchable)
        return MeasureTable(tuple(_measure_row(name, float(getattr(summary, name)())) for name in names))
    if exact_distcal:
        return all_measures_of(summary)
    table = all_measures_of(summary, omit=["distcal"])
    note = f"between {_bound_distcal(summary, table)}, by atb_l1, smcal and the bias; {_EXACT_DISTCAL}"
    return MeasureTable((*table.rows, _measure_row("distcal", math.nan, note)))


def _measure_row(name: str, value: float, note: str = "") -> MeasureValue:
    row = MEASURES[name]
    return MeasureValue(name, value, row.scale, row.truthful, row.continuous, row.complete, row.sound, note)


def _bound_distcal(sample: Sample, table: MeasureTable) -> str:
    """Bound distCal for the report by measures that take less time (docs/theory/foundations.md)."""
    bias, smcal, atb_l1 = abs(sample.moments.wc) / sample.weight, table["smcal"], table["atb_l1"]
    low, high = max(bias, smcal / 2.0, atb_l1 / 3.0), min(atb_l1, 2.0 * smcal - bias)
    return interval(min(low, high), high).replace(" to ", " and ")
