"""The parts of a report on many classes: a table, small diagrams and the confusion of errors for each model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truthcal.reports.class_data import CANONICAL_ROWS, ClassModelData, class_report_data, definitions
from truthcal.reports.class_wording import class_chips, class_meaning, class_verdict, word_outcomes
from truthcal.reports.figures import Figure, Figures
from truthcal.reports.wording import Chip, assumptions, reason_without_p
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.text import PLAIN, one_line, percent

# Characters of a heading.
_MAX_HEADING = 200
# Diagrams beside the verdict.
_FIRST_PANELS = 4
# Classes in the table of each of several models, to keep the file small.
_MANY_MODELS, _MAX_CLASSES = 4, 20


@dataclass(frozen=True, slots=True)
class _ClassSection:
    """The part of the page about one model. `noun` is "classes", or "columns" if these are independent events.

    `first` are the diagrams of the clearest classes, which are beside the verdict, `figures` the others.
    """

    data: ClassModelData
    name: str
    anchor: str
    noun: str
    chips: list[Chip]
    reason: str
    verdict: list[str]
    first: list[Figure]
    figures: list[Figure]


def build_classes(assessments: Mapping[str, MulticlassAssessment], figures: Figures) -> dict[str, Any]:
    """Build the parts of a report on many classes."""
    models = class_report_data(assessments)
    return {
        "models": [_build_section(k, model, figures) for k, model in enumerate(models, 1)],
        "assumptions": assumptions({model.label: (model.assessment, None) for model in models}),
        "meaning": class_meaning([model.assessment for model in models]),
        "definitions": definitions(models),
        "unknown_rows": CANONICAL_ROWS if any(model.assessment.n > CANONICAL_ROWS for model in models) else 0,
        "multilabel": models[0].assessment.definition != "vector",
        "outcomes": word_outcomes(models),
        "plain": PLAIN,
        "readings": {},
        "level": percent(models[0].panels[0].band.confidence_level),
        **({"max_segments": _MAX_CLASSES} if len(models) >= _MANY_MODELS else {}),
    }


def _build_section(place: int, model: ClassModelData, figures: Figures) -> _ClassSection:
    panels = [figures.class_panel(panel) for panel in model.panels]
    return _ClassSection(
        data=model,
        name=one_line(model.name, _MAX_HEADING),
        anchor=f"m{place}",
        noun="classes" if model.table.noun == "class" else "columns",
        chips=class_chips(model.assessment),
        reason=reason_without_p(model.assessment),
        verdict=class_verdict(model.assessment),
        first=panels[:_FIRST_PANELS],
        figures=panels[_FIRST_PANELS:],
    )
