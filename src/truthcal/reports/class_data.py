"""Data of a report on many classes: everything that is computed for it, once for each model."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truthcal.core.class_rows import ClassRows
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.core.summarize import summarize
from truthcal.measures.multiclass import DEFINITIONS, Definition, multiclass_atb_of
from truthcal.measures.reliability import consistency_band_of, density_of, reliability_curve_of
from truthcal.reports.data import SEED, unique_labels, with_short_names
from truthcal.results.curves import ConsistencyBand, ReliabilityCurve
from truthcal.results.multiclass import Confusion, MulticlassAssessment
from truthcal.results.segments import Segment, SegmentTable
from truthcal.results.text import one_line

# Diagrams of a report, the worst classes first: so many of a single model, at least so many of each of several.
_PANELS, _FEWEST_PANELS = 12, 2
# Classes in the table of confusion.
_CONFUSED = 12
# Characters of a class in the table of confusion: in a row, and in the heading of a column. If one is longer, all
# columns are numbered.
_LONGEST_CLASS, _LONGEST_HEADING = 40, 10
# Shades of the table of confusion start at these differences of frequencies.
_SHADES = (0.01, 0.03, 0.1)
# Rows of which the canonical definition, which compares all pairs, is computed: a tenth of a second.
CANONICAL_ROWS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ClassPanel:
    """The reliability diagram of one class against the rest."""

    segment: Segment
    curve: ReliabilityCurve
    band: ConsistencyBand
    density: ReliabilityCurve


@dataclass(frozen=True, slots=True)
class ConfusionCell:
    """Observed minus predicted frequency, in percentage points; nan if the class is never predicted.

    `shade` is from -3 to 3. A `significant` surplus is marked.
    """

    points: float
    shade: int
    significant: bool


@dataclass(frozen=True, slots=True)
class ConfusionData:
    """Some classes and, for each of them, a row of cells: what happens where it is predicted.

    `headings` are those of the columns: the labels if they are short, else their numbers, which `labels` then has, too.
    """

    labels: list[str]
    headings: list[str]
    rows: list[list[ConfusionCell]]
    n_classes: int
    sentence: str


@dataclass(frozen=True, slots=True, eq=False)
class ClassModelData:
    """Results for one model. `label` is a short, unique name; `values` has the ATB by each definition.

    `events` has the number of rows in which each class, or the event of each column, happened.
    """

    name: str
    label: str
    assessment: MulticlassAssessment
    table: SegmentTable
    events: dict[Any, int]
    panels: list[ClassPanel]
    confusion: ConfusionData | None
    values: dict[str, float]


def class_report_data(assessments: Mapping[str, MulticlassAssessment]) -> list[ClassModelData]:
    """Compute the data that the report shows of each model."""
    labels = unique_labels(assessments) if list(assessments) != [""] else [""]
    n_panels = max(_PANELS // len(assessments), _FEWEST_PANELS)
    return [
        ClassModelData(
            name=name,
            label=label,
            assessment=found,
            table=with_short_names(found.classes),
            events=_events(found),
            panels=class_panels(found, n_panels),
            confusion=None if found.confusion is None else confusion_data(found.confusion),
            values=_values(found),
        )
        for (name, found), label in zip(assessments.items(), labels, strict=True)
    ]


def definitions(models: Sequence[ClassModelData]) -> list[tuple[Definition, list[float]]]:
    """Return each definition of calibration, with its value for each model; none for independent columns."""
    if not any(model.values for model in models):
        return []
    return [(row, [model.values.get(name, math.nan) for model in models]) for name, row in DEFINITIONS.items()]


def _values(found: MulticlassAssessment) -> dict[str, float]:
    rows = found._rows
    if not isinstance(rows, ClassRows):
        return {}
    cheap = [name for name in DEFINITIONS if name not in ("vector", "canonical") or rows.n <= CANONICAL_ROWS]
    return {"vector": found.atb} | {name: multiclass_atb_of(rows, name) for name in cheap if name != "vector"}


def _events(found: MulticlassAssessment) -> dict[Any, int]:
    """Count the rows of each class, or the events of each column, without rows of weight 0."""
    rows = found._rows
    if isinstance(rows, ClassRows):
        counts = np.bincount(rows.y, minlength=rows.n_classes)
    else:
        counts = (rows.y if rows.w is None else rows.y[rows.w > 0.0]).sum(axis=0, dtype=np.int64)
    return dict(zip(found.labels, counts.tolist(), strict=True))


def class_panels(found: MulticlassAssessment, at_most: int) -> list[ClassPanel]:
    """Compute the diagrams of the worst classes: those with the smallest p-values."""
    place = {label: k for k, label in enumerate(found.labels)}
    short = with_short_names(found.classes).segments
    panels = []
    for segment in short[:at_most]:
        summary = _one_class(found, place[segment.key])
        curve, band = reliability_curve_of(summary), consistency_band_of(summary, rng=SEED, simultaneous=True)
        panels.append(ClassPanel(segment, curve, band, density_of(summary)))
    return panels


def _one_class(found: MulticlassAssessment, k: int) -> Sample | Sketch:
    """Summarize the rows of one class against the rest, with the groups of rows that belong together."""
    rows = found._rows
    if isinstance(rows, ClassRows):
        one = rows.one_against_rest(k)
        return summarize(one.y, one.p, one.w, sketch_many=True, groups=found._groups)
    column = rows.column(k)
    groups = column.groups if len(np.unique(column.groups)) < len(column.groups) else None
    return summarize(column.y_true, column.y_proba, column.sample_weight, sketch_many=True, groups=groups)


def confusion_data(confusion: Confusion) -> ConfusionData:
    """Choose the classes of the table of confusion, and the shade of each cell."""
    chosen = _most_confused(confusion)
    gap = np.asarray(confusion.observed) - np.asarray(confusion.predicted)
    rows = [[_cell(float(gap[k, j]), bool(confusion.significant[k, j])) for j in chosen] for k in chosen]
    labels = unique_labels(one_line(str(confusion.labels[k]), _LONGEST_CLASS) for k in chosen)
    headings = labels
    if max(map(len, labels)) > _LONGEST_HEADING:
        headings = [str(place) for place in range(1, len(labels) + 1)]
        labels = [f"{number}. {label}" for number, label in zip(headings, labels, strict=True)]
    return ConfusionData(labels, headings, rows, len(confusion.labels), str(confusion))


def _cell(gap: float, significant: bool) -> ConfusionCell:
    shade = 0 if math.isnan(gap) else int(math.copysign(sum(abs(gap) >= limit for limit in _SHADES), gap))
    return ConfusionCell(100.0 * gap, shade, significant)


def _most_confused(confusion: Confusion) -> list[int]:
    """Return the numbers of the classes of the clearest pairs, in the order of the columns."""
    n = len(confusion.labels)
    if n <= _CONFUSED:
        return list(range(n))
    z: Any = np.where(np.eye(n, dtype=bool), 0.0, np.asarray(confusion.z))
    order = np.argsort(np.where(confusion.significant, -z, 0.0) - 1e-9 * np.abs(z), axis=None, kind="stable")
    chosen: dict[int, None] = {}
    for pair in order:
        both = dict.fromkeys(divmod(int(pair), n))
        if len(chosen | both) <= _CONFUSED:
            chosen |= both
        if len(chosen) == _CONFUSED:
            break
    return sorted(chosen)
