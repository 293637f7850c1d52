"""The public function `report`: check, compute the data, draw, fill the page."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from truthcal.core.file_format import write_atomically
from truthcal.reports.arguments import (
    check_assessments,
    check_comparisons,
    check_over_time,
    check_segments,
    check_texts,
    own_parts,
    refuse_event_arguments,
)
from truthcal.reports.build_classes import build_classes
from truthcal.reports.data import ModelData, report_data
from truthcal.reports.figures import Figure, Figures
from truthcal.reports.provenance import provenance_rows
from truthcal.reports.render import page_template, render_page
from truthcal.reports.wording import (
    MEANING,
    Chip,
    assumptions,
    merge_measures,
    merge_notes,
    model_chips,
    verdict_lines,
    word_independence,
)
from truthcal.results.assessment import Assessment
from truthcal.results.comparison import Comparison
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.over_time import TimeAssessment
from truthcal.results.segments import SegmentTable
from truthcal.results.text import one_line, shorten

AnyAssessment = Assessment | MulticlassAssessment

# Segments in a table, the clearest findings first: an interval of the error takes 20 ms.
_MAX_SEGMENTS = 50
# Windows of time in a table; the figure shows all of them.
_MAX_WINDOWS = 60
# Characters of a heading; of a note or a command, which should stay whole.
_MAX_HEADING, _MAX_NOTE = 200, 1000


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A report: one HTML file that needs nothing else. Returned by `report`.

    Attributes
    ----------
    html : str
        The file.
    title : str
        Its title.
    """

    html: str
    title: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, completely or not at all: if the disk is full, an older file stays as it was."""
        write_atomically(path, self.html.encode())

    def __str__(self) -> str:
        size = len(self.html.encode()) / 1000
        return f"Report {self.title!r}: {size:.0f} kB of HTML in one file; .save(path) writes it."

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class _Section:
    """The part of the page about one model."""

    data: ModelData
    name: str
    anchor: str
    chips: list[Chip]
    verdict: list[str]
    figures: list[Figure]
    folded: Figure | None
    forest: Figure | None
    history: Figure | None


def report(
    assessments: AnyAssessment | Mapping[str, AnyAssessment],
    *,
    segments: SegmentTable | Mapping[str, SegmentTable] | None = None,
    comparisons: Mapping[tuple[str, str], Comparison] | None = None,
    over_time: TimeAssessment | Mapping[str, TimeAssessment] | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    exact_distcal: bool = False,
) -> Report:
    """Make a report on whether these probabilities can be trusted: one HTML file that needs nothing else.

    Parameters
    ----------
    assessments : Assessment or MulticlassAssessment, or mapping of str to either
        Results of `assess`: of one model, or of up to 12 by name. All of them are of one event, or all of many classes;
        with many classes, `segments`, `over_time` and `exact_distcal` must be omitted.
    segments : SegmentTable, or mapping of str to SegmentTable, optional
        Results of `assess_segments`; with several models, by the name of the model. Default: those of the assessment.
    comparisons : mapping of (str, str) to Comparison, optional
        Results of `compare`, by the names of the two models, in the order in which they were compared.
    over_time : TimeAssessment, or mapping of str to TimeAssessment, optional
        Results of `assess_over_time`; with several models, by the name of the model. Default: those of the assessment.
    title : str, optional
        The title of the page.
    provenance : mapping of str to str, optional
        How to reproduce it: file, command, checksum of the data. Versions and the date are added.
    notes : sequence of str, optional
        Assumptions, for example which columns were guessed.
    exact_distcal : bool, default False
        Whether to compute the distance to calibration, `distcal`, instead of bounds of it. It takes longer than all
        other measures together, and its code takes 10 s to compile when it is first used on a machine.

    Returns
    -------
    Report
        ``.save("report.html")`` writes it; ``.html`` is its text.

    Notes
    -----
    The file has no script and loads nothing from the network; a Content-Security-Policy forbids both. It contains
    summaries only, no rows. All names are escaped. It is light or dark as the reader's system is, and can be printed.

    Needs matplotlib and jinja2: ``pip install 'truthcal[report]'``. Takes about a second for each model.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500)
    >>> page = tc.report(tc.assess(rng.random(500) < truth, truth), title="Rain in 2025")
    >>> page.title
    'Rain in 2025'
    """
    named = check_assessments(assessments)
    names, classes = list(named), any(isinstance(found, MulticlassAssessment) for found in named.values())
    tables, pairs = check_segments(segments, names), check_comparisons(comparisons, names)
    windows = check_over_time(over_time, names)
    tables, windows = own_parts(named, "segments") | tables, own_parts(named, "over_time") | windows
    check_texts(title, provenance, notes)
    if classes:
        refuse_event_arguments(segments=tables, over_time=windows, exact_distcal=exact_distcal)
    template, figures = page_template("classes.html" if classes else "report.html"), Figures()
    heading = title if title is not None else _build_title(names)
    own = (
        build_classes(cast(Any, named), figures)
        if classes
        else _build_events(report_data(cast(Any, named), tables, windows, exact_distcal=exact_distcal), figures)
    )
    content = {
        "title": shorten(heading, _MAX_HEADING),
        "several": len(names) > 1,
        "classes": classes,
        "comparisons": _build_comparisons(pairs, own["models"]),
        "independence": word_independence(list(named.values())),
        "notes": [shorten(note, _MAX_NOTE) for note in notes],
        "provenance": [(shorten(k, _MAX_HEADING), shorten(v, _MAX_NOTE)) for k, v in provenance_rows(provenance)],
        "max_segments": _MAX_SEGMENTS,
        "max_windows": _MAX_WINDOWS,
        **own,
    }
    return Report(render_page(template, figures.sheet.css(), content), heading)


def _build_comparisons(pairs: Mapping[tuple[str, str], Comparison], sections: Sequence[Any]) -> list[Comparison]:
    labels = {section.data.name: section.data.label for section in sections}
    return [replace(found, names=(labels[a], labels[b])) for (a, b), found in pairs.items()]


def _build_events(models: Sequence[ModelData], figures: Figures) -> dict[str, Any]:
    """Build the parts of a report on predictions of one event."""
    several = len(models) > 1
    return {
        "together": figures.reliability(models) if several else None,
        "models": [_build_section(k, model, figures, alone=not several) for k, model in enumerate(models, 1)],
        "assumptions": assumptions({model.label: (model.assessment, model.sketch) for model in models}),
        "meaning": MEANING,
        **_build_measures(models),
    }


def _build_section(place: int, model: ModelData, figures: Figures, *, alone: bool) -> _Section:
    drawn = [figures.reliability([model]), figures.bias(model.bias_curve, model.bias_band)]
    if model.profile is not None:
        drawn.append(figures.scales(model.profile))
    return _Section(
        data=model,
        name=one_line(model.name, _MAX_HEADING),
        anchor=f"m{place}",
        chips=model_chips(model.assessment, model.segments, model.over_time),
        verdict=verdict_lines(model.assessment, model.segments, model.over_time),
        figures=drawn,
        folded=None if model.binned is None else figures.binned(model.binned),
        forest=None if model.segments is None else figures.forest(model.segments, alone),
        history=None if model.over_time is None else figures.history(model.over_time),
    )


def _build_measures(models: Sequence[ModelData]) -> dict[str, Any]:
    tables = [model.measures for model in models]
    rows = merge_measures(tables)
    return {
        "measures": rows,
        "measure_notes": merge_notes(tables),
        "truthful": [row.name for row, *_ in rows if row.truthful],
        "gameable": [row.name for row, *_ in rows if not row.truthful],
        "sketched": any(model.sketch is not None for model in models),
    }


def _build_title(names: Sequence[str]) -> str:
    if len(names) > 1:
        return f"Which of these {len(names)} models can be trusted?"
    if not names[0].strip():
        return "Can these probabilities be trusted?"
    return f"Can the probabilities of {shorten(names[0], _MAX_HEADING - 40)} be trusted?"
