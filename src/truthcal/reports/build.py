"""From assessments to one HTML file: the public function, and what it returns."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truthcal.core.file_format import write_atomically
from truthcal.core.sketch import Sketch
from truthcal.reports.figures import Figure, Figures
from truthcal.reports.inputs import check_assessments, check_comparisons, check_segments, check_texts
from truthcal.reports.provenance import origin
from truthcal.reports.render import page, page_template
from truthcal.reports.sanitize import OF_HEADING, OF_NOTE, cut, labels, shortened
from truthcal.reports.tables import (
    MOST_SEGMENTS,
    ModelRow,
    fit_names,
    measures_of,
    merged,
    model_row,
    notes_of,
    segment_rows,
)
from truthcal.reports.wording import MEANING, Chip, Number, assumed, compared, model_chips, numbers, verdict_lines
from truthcal.results.assessment import Assessment
from truthcal.results.segments import SegmentTable
from truthcal.results.tests import Comparison

# Beyond so many models each has two figures of its own, so that the file stays small.
_MANY_MODELS = 6


@dataclass(frozen=True, slots=True)
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
        """Write it to a file, whole or not at all: on a full disk what was there before remains."""
        write_atomically(path, self.html.encode())

    def __str__(self) -> str:
        size = len(self.html.encode()) / 1000
        return f"Report {self.title!r}: {size:.0f} kB of HTML in one file; .save(path) writes it."

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class _Model:
    """What the page shows of one model."""

    name: str
    label: str
    anchor: str
    chips: list[Chip]
    verdict: list[str]
    warnings: tuple[str, ...]
    numbers: list[Number]
    figures: list[Figure]
    folded: Figure | None
    segments: dict[str, Any] | None
    row: ModelRow


def report(
    assessments: Assessment | Mapping[str, Assessment],
    *,
    segments: SegmentTable | Mapping[str, SegmentTable] | None = None,
    comparisons: Mapping[tuple[str, str], Comparison] | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> Report:
    """Whether these probabilities can be trusted, as a report to keep: one HTML file that needs nothing else.

    Parameters
    ----------
    assessments : Assessment, or mapping of str to Assessment
        What `assess` returned: of one model, or of up to 12 by name.
    segments : SegmentTable, or mapping of str to SegmentTable, optional
        What `assess_segments` returned; with several models, by the name of the model.
    comparisons : mapping of (str, str) to Comparison, optional
        What `compare` returned, by the names of the two models, in the order in which they were compared.
    title : str, optional
        The title of the page.
    provenance : mapping of str to str, optional
        How to reproduce it: file, command, fingerprint of the data. Versions and the date are added.
    notes : sequence of str, optional
        What was assumed, for example which columns were guessed.

    Returns
    -------
    Report
        ``.save("report.html")`` writes it; ``.html`` is its text.

    Notes
    -----
    The file has no script and asks for nothing from any network; a Content-Security-Policy forbids both. It holds
    summaries only, no rows. All names are escaped. It is light or dark as the reader's system is, and prints.

    Needs matplotlib and jinja2: ``pip install 'truthcal[report]'``. Takes about a second for each model.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500)
    >>> made = tc.report(tc.assess(rng.random(500) < truth, truth), title="Rain in 2025")
    >>> made.title
    'Rain in 2025'
    """
    given = check_assessments(assessments)
    tables = {name: fit_names(table) for name, table in check_segments(segments, list(given)).items()}
    pairs = check_comparisons(comparisons, list(given))
    check_texts(title, provenance, notes)
    template, figures = page_template(), Figures()
    short = dict(zip(given, labels(given) if list(given) != [""] else [""], strict=True))
    summaries = [assessment._summary for assessment in given.values()]
    together = figures.reliability(summaries, list(short.values())) if len(given) > 1 else None
    models = [
        _model(place, name, short[name], given[name], tables.get(name), figures, len(given))
        for place, name in enumerate(given, 1)
    ]
    heading = title if title is not None else _title(list(given))
    content = {
        "title": cut(heading, OF_HEADING),
        "models": models,
        "together": together,
        "comparisons": [compared((short[a], short[b]), found) for (a, b), found in pairs.items()],
        "assumed": assumed({short[name]: assessment for name, assessment in given.items()}),
        "notes": [cut(note, OF_NOTE) for note in notes],
        "origin": [(cut(name, OF_HEADING), cut(value, OF_NOTE)) for name, value in origin(provenance)],
        "meaning": MEANING,
        "several": len(given) > 1,
        **_measures(list(given.values())),
    }
    return Report(page(template, figures.sheet.css(), content), heading)


def _model(
    place: int,
    name: str,
    label: str,
    assessment: Assessment,
    table: SegmentTable | None,
    figures: Figures,
    count: int,
) -> _Model:
    summary = assessment._summary
    drawn = [figures.reliability([summary], [label or None]), figures.bias(summary)]
    folded = None
    if count <= _MANY_MODELS:
        drawn.append(figures.scales(summary))
        folded = figures.binned(summary)
    return _Model(
        name=shortened(name, OF_HEADING),
        label=label,
        anchor=f"m{place}",
        chips=model_chips(assessment, table),
        verdict=verdict_lines(assessment, table),
        warnings=assessment.warnings,
        numbers=numbers(assessment),
        figures=drawn,
        folded=folded,
        segments=None if table is None else _segments(table, figures, count == 1),
        row=model_row(assessment),
    )


def _segments(table: SegmentTable, figures: Figures, alone: bool) -> dict[str, Any]:
    return {
        "verdict": table.verdict,
        "by": ", ".join(table.by),
        "figure": figures.forest(table, alone),
        "rows": segment_rows(table),
        "left_out": max(len(table) - MOST_SEGMENTS, 0),
    }


def _measures(assessments: Sequence[Assessment]) -> dict[str, Any]:
    tables = [measures_of(assessment) for assessment in assessments]
    rows = merged(tables)
    return {
        "measures": rows,
        "measure_notes": notes_of(tables),
        "honest": [row.name for row, *_ in rows if row.truthful],
        "gameable": [row.name for row, *_ in rows if not row.truthful],
        "sketched": any(isinstance(assessment._summary, Sketch) for assessment in assessments),
    }


def _title(names: Sequence[str]) -> str:
    if len(names) > 1:
        return f"Which of these {len(names)} models can be trusted?"
    if not names[0].strip():
        return "Can these probabilities be trusted?"
    return f"Can the probabilities of {cut(names[0], OF_HEADING - 40)} be trusted?"
