"""The HTML report of `truthcal watch`: the evidence over time, and what happened in each window."""

from collections.abc import Mapping
from typing import Any

from truthcal.reports.build import Report
from truthcal.reports.figures import Figures
from truthcal.reports.provenance import provenance_rows
from truthcal.reports.render import page_template, render_page
from truthcal.reports.wording import Chip
from truthcal.results.text import shorten
from truthcal.results.watch import WatchResult

# Windows in the table, the latest; characters of a heading, and of a note.
_MAX_WINDOWS, _MAX_HEADING, _MAX_NOTE = 100, 200, 1000
_CHIPS = {
    "pass": Chip("No alarm", "good"),
    "fail": Chip("Alarm", "bad"),
    "too little data": Chip("Too few rows to exclude a large bias", "unsure"),
}


def watch_report(result: WatchResult, title: str, provenance: Mapping[str, str], *, calendar: bool = True) -> Report:
    """Make the report on a watched stream. `calendar`: whether windows are named by dates, not by numbers."""
    template, figures = page_template("watch.html"), Figures()
    drawn = figures.watched(result, calendar=calendar) if result.windows else []
    content: dict[str, Any] = {
        "title": shorten(title, _MAX_HEADING),
        "result": result,
        "chip_": _CHIPS[result.decision],
        "figures": drawn,
        "windows": result.windows[-_MAX_WINDOWS:],
        "provenance": [(shorten(k, _MAX_HEADING), shorten(v, _MAX_NOTE)) for k, v in provenance_rows(provenance)],
    }
    return Report(render_page(template, figures.sheet.css(), content), title)
