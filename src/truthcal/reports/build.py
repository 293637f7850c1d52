"""The public function `report`: check, compute the data, draw, fill the page."""

import html
import os
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from truthcal.core.checks import invalid
from truthcal.core.file_format import write_atomically
from truthcal.core.frame_columns import named_columns
from truthcal.recalibration.recalibration import Recalibration
from truthcal.reports.arguments import (
    check_comparisons,
    check_over_time,
    check_segments,
    check_texts,
    own_parts,
    refuse_event_arguments,
)
from truthcal.reports.assessed import assessed_models
from truthcal.reports.build_classes import build_classes
from truthcal.reports.data import ModelData, report_data
from truthcal.reports.figures import Figure, Figures
from truthcal.reports.provenance import provenance_rows
from truthcal.reports.recalibration import build_recalibration, models_of
from truthcal.reports.render import page_template, render_page
from truthcal.reports.wording import (
    MEANING,
    TABLES,
    Chip,
    assumptions,
    merge_measures,
    merge_notes,
    model_chips,
    reason_without_p,
    verdict_lines,
    word_independence,
    word_rows,
)
from truthcal.results.comparison import Comparison
from truthcal.results.comparison_table import ComparisonTable
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.over_time import TimeAssessment
from truthcal.results.segments import SegmentTable
from truthcal.results.text import one_line, shorten

# Segments in a table, the clearest findings first: an interval of the error takes 20 ms.
_MAX_SEGMENTS = 50
# Windows of time in a table; the figure shows all of them.
_MAX_WINDOWS = 60
# Endings of files with a report.
_SUFFIXES = (".html", ".htm")
# Pixels of a report in a notebook.
_NOTEBOOK_HEIGHT = 800
# Characters of a heading; of a note or a command, which should stay whole.
_MAX_HEADING, _MAX_NOTE = 200, 1000


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A report: one HTML file that needs nothing else. Returned by `report`. A notebook shows it.

    Attributes
    ----------
    html : str
        The file.
    title : str
        Its title.
    """

    html: str
    title: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a file, completely or not at all: if the disk is full, an older file stays as it was.

        Returns the path, whose name must end with .html or .htm.
        """
        if Path(path).suffix.lower() not in _SUFFIXES:
            cure = "For a PDF, open that file in a browser and print it."
            raise invalid("path", f"must end with .html, the format of a report; got {os.fspath(path)!r}. {cure}")
        write_atomically(path, self.html.encode())
        return Path(path)

    def open(self) -> Path:
        """Write it to a temporary file, show that in the browser, and return its path."""
        path = self.save(Path(tempfile.mkdtemp(prefix="truthcal-")) / "report.html")
        webbrowser.open(path.as_uri())
        return path

    def __str__(self) -> str:
        size = len(self.html.encode()) / 1000
        return f"Report {self.title!r}: {size:.0f} kB of HTML in one file; .save(path) writes it."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        look = f'width="100%" height="{_NOTEBOOK_HEIGHT}" style="border:1px solid #8884"'
        return f'<iframe srcdoc="{page}" sandbox="" title="{html.escape(self.title)}" {look}></iframe>'


@dataclass(frozen=True, slots=True)
class _Section:
    """The part of the page about one model. `main` is its reliability diagram; `reason` explains the chips, or ""."""

    data: ModelData
    name: str
    anchor: str
    chips: list[Chip]
    reason: str
    verdict: list[str]
    main: Figure
    figures: list[Figure]
    folded: Figure | None
    forest: Figure | None
    history: Figure | None


@named_columns
def report(
    y_true: Any,
    y_proba: Any = None,
    *,
    sample_weight: object = None,
    pos_label: object = None,
    groups: object = None,
    labels: object = None,
    hard: bool = False,
    multilabel: bool = False,
    by: object = None,
    time: object = None,
    window: object = "auto",
    segments: SegmentTable | Mapping[str, SegmentTable] | None = None,
    comparisons: ComparisonTable | Mapping[tuple[str, str], Comparison] | None = None,
    over_time: TimeAssessment | Mapping[str, TimeAssessment] | None = None,
    title: str | None = None,
    group_name: str | None = None,
    provenance: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    exact_distcal: bool = False,
) -> Report:
    """Make a report on whether these probabilities can be trusted: one HTML file that needs nothing else.

    Parameters
    ----------
    y_true : array-like; or Sketch, Assessment, MulticlassAssessment, or mapping of str to these; or Recalibration
        Outcomes of rows, beside `y_proba`. Or, alone, a sketch or a result of `assess`; or those of up to 12 models by
        name. All of them are of one event, or all of many classes. Or a result of `recalibrate`: predictions before and
        after, and the curve.
    y_proba : array-like, or mapping of str to array-like, optional
        Predictions of one model, as for `assess`; or those of up to 12 models of the same rows by name, all pairs of
        which are compared. Several columns of a data frame are models of one event if outcomes are 0/1 (or `pos_label`
        is given) and rows do not add up to 1: ``report(frame, "y", ["old", "new"])``. Otherwise they are classes.
    sample_weight, pos_label, groups, labels, hard, multilabel
        As for `assess`, beside `y_proba`.
    by, time, window
        As for `assess`, beside `y_proba`: columns that define segments; the time of each row, and how it is divided.
        Each model's segments and windows of time are then shown.
    segments : SegmentTable, or mapping of str to SegmentTable, optional
        Results of `assess_segments`; with several models, by the name of the model. Default: those of the assessment.
        Only for predictions of one event, as are `over_time` and `exact_distcal`.
    comparisons : ComparisonTable, or mapping of (str, str) to Comparison, optional
        The result of `compare_models`; or results of `compare`, by the names of the two models, in the order in which
        they were compared. P-values are adjusted for the number of pairs.
    over_time : TimeAssessment, or mapping of str to TimeAssessment, optional
        Results of `assess_over_time`; with several models, by the name of the model. Default: those of the assessment.
    title : str, optional
        The title of the page.
    group_name : str, optional
        What the groups of rows are, such as "patient"; by default the name of `groups` if it has one, as a Series has.
    provenance : mapping of str to str, optional
        How to reproduce it: file, command, checksum of the data. Versions and the date are added, and the names of
        the columns of outcomes and predictions if they have names.
    notes : sequence of str, optional
        Assumptions, for example which columns were guessed.
    exact_distcal : bool, default False
        Whether to compute the distance to calibration, `distcal`, instead of bounds of it. It takes longer than all
        other measures together, and its code takes 10 s to compile when it is first used on a machine.

    Returns
    -------
    Report
        ``.save("report.html")`` writes it; ``.open()`` shows it in the browser; ``.html`` is its text.

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
    >>> page = tc.report(rng.random(500) < truth, truth, title="Rain in 2025")
    >>> page.title
    'Rain in 2025'
    """
    check_texts(title, group_name, provenance, notes)
    template = {name: page_template(f"{name}.html") for name in ("report", "classes")}
    options = {"sample_weight": sample_weight, "pos_label": pos_label, "groups": groups, "labels": labels}
    options |= {"hard": hard, "multilabel": multilabel, "by": by, "time": time, "window": window}
    provenance = {**_column_names(Outcomes=y_true, Predictions=y_proba), **(provenance or {})}
    fix = y_true if isinstance(y_true, Recalibration) else None
    if fix is not None:
        y_true, comparisons = models_of(fix)
    named, compared = assessed_models(y_true, y_proba, options, compare=comparisons is None)
    names, classes = list(named), any(isinstance(found, MulticlassAssessment) for found in named.values())
    tables = own_parts(named, "segments") | check_segments(segments, names)
    windows = own_parts(named, "over_time") | check_over_time(over_time, names)
    pairs, figures = compared or check_comparisons(comparisons, names), Figures()
    if classes:
        refuse_event_arguments(segments=tables, over_time=windows, exact_distcal=exact_distcal)
        own = build_classes(cast(Any, named), figures)
    else:
        own = _build_events(report_data(cast(Any, named), tables, windows, exact_distcal=exact_distcal), figures)
    heading, grouped_by = title if title is not None else _build_title(names, fix), group_name or _name_of(groups)
    labelled = {section.data.label: section.data.assessment for section in own["models"]}
    content = {
        "title": shorten(heading, _MAX_HEADING),
        "several": len(names) > 1,
        "same_rows": _same_rows(list(named.values())),
        "classes": classes,
        "comparisons": _relabel(pairs, own["models"]),
        "recalibration": None if fix is None else build_recalibration(fix, figures),
        "rows": word_rows(labelled, grouped_by),
        "independence": word_independence(list(named.values())),
        "notes": [shorten(note, _MAX_NOTE) for note in notes],
        "provenance": [(shorten(k, _MAX_HEADING), shorten(v, _MAX_NOTE)) for k, v in provenance_rows(provenance)],
        "max_segments": _MAX_SEGMENTS,
        "max_windows": _MAX_WINDOWS,
        **own,
    }
    return Report(render_page(template["classes" if classes else "report"], figures.sheet.css(), content), heading)


def _same_rows(assessments: Sequence[Any]) -> int:
    """Return the number of rows of all models of a report if it is the same, else 0."""
    numbers = {assessment.n for assessment in assessments}
    return int(numbers.pop()) if len(numbers) == 1 else 0


def _name_of(column: object) -> str | None:
    """Return the name of a column: that of a Series, if it has one."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) else None


def _column_names(**columns: object) -> dict[str, str]:
    """Return the names of columns that have one, as those of a data frame do, by their role."""
    names = {role: _name_of(column) for role, column in columns.items()}
    return {role: name for role, name in names.items() if name is not None}


def _relabel(pairs: ComparisonTable | None, sections: Sequence[Any]) -> ComparisonTable | None:
    """Return the compared models with the labels that they have in the report."""
    if pairs is None:
        return None
    labels = {section.data.name: section.data.label for section in sections}
    named = tuple(replace(found, names=(labels[found.names[0]], labels[found.names[1]])) for found in pairs.comparisons)
    return replace(pairs, comparisons=named)


def _build_events(models: Sequence[ModelData], figures: Figures) -> dict[str, Any]:
    """Build the parts of a report on predictions of one event."""
    several = len(models) > 1
    together = figures.reliability(models) if several else None
    sections = [_build_section(k, model, figures, alone=not several) for k, model in enumerate(models, 1)]
    return {
        "together": together,
        "models": sections,
        "assumptions": assumptions({model.label: (model.assessment, model.sketch) for model in models}),
        "meaning": MEANING,
        "readings": _readings(sections),
        "tables": TABLES,
        **_build_measures(models),
    }


def _build_section(place: int, model: ModelData, figures: Figures, *, alone: bool) -> _Section:
    main, drawn = figures.reliability([model]), [figures.bias(model.bias_curve, model.bias_band)]
    if model.profile is not None:
        drawn.append(figures.scales(model.profile))
    return _Section(
        data=model,
        name=one_line(model.name, _MAX_HEADING),
        anchor=f"m{place}",
        chips=model_chips(model.assessment, model.segments, model.over_time),
        reason=reason_without_p(model.assessment),
        verdict=verdict_lines(model.assessment, model.segments, model.over_time),
        main=main,
        figures=drawn,
        folded=None if model.binned is None else figures.binned(model.binned),
        forest=None if model.segments is None else figures.forest(model.segments, alone),
        history=None if model.over_time is None else figures.history(model.over_time),
    )


def _readings(sections: Sequence[_Section]) -> dict[str, str]:
    """Return how to read each kind of figure and table in the sections of several models."""
    readings: dict[str, str] = {}
    for section in sections:
        own = [*section.figures, section.folded, section.forest, section.history]
        readings |= {figure.title: figure.reading for figure in own if figure is not None}
        readings |= {"Segments": TABLES["Segments"]} if section.forest else {}
        readings |= {"Windows of time": TABLES["Windows of time"]} if section.history else {}
    return readings


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


def _build_title(names: Sequence[str], fix: Recalibration | None) -> str:
    if fix is not None:
        return "Recalibration of predictions"
    if len(names) > 1:
        return f"Which of these {len(names)} models can be trusted?"
    if not names[0].strip():
        return "Can these probabilities be trusted?"
    return f"Can the probabilities of {shorten(names[0], _MAX_HEADING - 40)} be trusted?"
