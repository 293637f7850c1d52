"""The parts of a report on many classes: a table, small diagrams and the confusion of errors for each model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truthcal.reports.class_data import ClassModelData, class_report_data, definitions
from truthcal.reports.class_wording import class_chips, class_meaning, class_verdict, word_outcomes
from truthcal.reports.figures import Figure, Figures
from truthcal.reports.wording import Chip, assumptions
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.text import PLAIN, one_line

# Characters of a heading.
_MAX_HEADING = 200
# Classes in the table of each of several models, to keep the file small.
_MANY_MODELS, _MAX_CLASSES = 4, 20


@dataclass(frozen=True, slots=True)
class _ClassSection:
    """The part of the page about one model. `noun` is "classes", or "columns" if these are independent events."""

    data: ClassModelData
    name: str
    anchor: str
    noun: str
    chips: list[Chip]
    verdict: list[str]
    figures: list[Figure]


def build_classes(assessments: Mapping[str, MulticlassAssessment], figures: Figures) -> dict[str, Any]:
    """Build the parts of a report on many classes."""
    models = class_report_data(assessments)
    return {
        "models": [_build_section(k, model, figures) for k, model in enumerate(models, 1)],
        "assumptions": assumptions({model.label: (model.assessment, None) for model in models}),
        "meaning": class_meaning([model.assessment for model in models]),
        "definitions": definitions(models),
        "multilabel": models[0].assessment.definition != "vector",
        "outcomes": word_outcomes(models),
        "plain": PLAIN,
        **({"max_segments": _MAX_CLASSES} if len(models) >= _MANY_MODELS else {}),
    }


def _build_section(place: int, model: ClassModelData, figures: Figures) -> _ClassSection:
    return _ClassSection(
        data=model,
        name=one_line(model.name, _MAX_HEADING),
        anchor=f"m{place}",
        noun="classes" if model.table.noun == "class" else "columns",
        chips=class_chips(model.assessment),
        verdict=class_verdict(model.assessment),
        figures=[figures.class_panel(panel) for panel in model.panels],
    )
