"""The results of one model: its assessment, its segments, and how they are printed."""

from dataclasses import dataclass, replace
from typing import Any

import truthcal as tc
from truthcal.cli.inputs import Data
from truthcal.cli.output import coloured, terminal_width
from truthcal.cli.request import Request
from truthcal.inference.over_time import assess_windows
from truthcal.io.files.load import Loaded
from truthcal.results.assessment import word_parts
from truthcal.results.column_width import wrap_lines
from truthcal.results.over_time import SHOWN as WINDOWS_SHOWN
from truthcal.results.segments import SHOWN

_SHOW_ALL = "--all shows them"


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The assessment of one model. `certified` bounds ATB if the rows were reduced to a sketch.

    `classes` are printed if the user asked for them; `plot` is printed below the assessment.
    """

    name: str
    assessment: tc.Assessment | tc.MulticlassAssessment
    segments: tc.SegmentTable | None
    certified: tc.Bounded | None
    over_time: tc.TimeAssessment | None = None
    classes: tc.SegmentTable | None = None
    plot: str = ""
    all: bool = False  # print all segments and windows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        whole = self.assessment.to_dict()
        parts = ("segments", "over_time")  # beside the assessment, not in it
        return {
            "name": self.name,
            "assessment": {name: value for name, value in whole.items() if name not in parts},
            "certified_atb": None if self.certified is None else self.certified.to_dict(),
            "segments": None if self.segments is None else self.segments.to_dict(),
            "over_time": None if self.over_time is None else self.over_time.to_dict(),
        }

    def to_text(self) -> str:
        """Return the text for stdout: in lines that fit into the terminal, if it is one."""
        width = terminal_width()
        parts = [coloured(self.assessment.to_text(width), self.assessment.kind, self.assessment.verdict)]
        if self.certified is not None:
            line = f"  {'certified':<15} ATB is {self.certified} (computed from a sketch)"
            parts[0] += f"\n{wrap_lines(line, width, '  ')}"
        parts += [self.plot] if self.plot else []
        options: dict[str, Any] = {"whole": self.all, "hint": _SHOW_ALL, "width": width}
        parts += word_parts(self.segments, None, **options)
        parts += word_parts(self.classes, self.over_time, **options)
        return "\n\n".join(parts)

    def to_markdown(self) -> str:
        """Return the same in Markdown."""
        parts = [self.assessment.to_markdown()]
        if self.certified is not None:
            parts.append(f"ATB is {self.certified} (from a sketch).")
        limit, windows = (None, None) if self.all else (SHOWN, WINDOWS_SHOWN)
        tables = [table for table in (self.segments, self.classes) if table is not None]
        parts += [table._page(limit, _SHOW_ALL).markdown() for table in tables]
        if self.over_time is not None:
            parts.append(self.over_time._page(windows, _SHOW_ALL).markdown())
        return "\n\n".join(parts)


def assess_models(request: Request, data: Data, alpha: float | None = None) -> list[ModelResult]:
    """Return the results of all models and their segments at the levels of the request, or at another `alpha`."""
    levels: dict[str, Any] = {"alpha": alpha or request.alpha, "confidence_level": request.confidence_level}
    results = []
    for name, loaded in data.models.items():
        rows, weight = rows_or_sketch(loaded)
        segments = None
        if loaded.table is not None:
            segments = tc.assess_segments(loaded.table, adjust=request.adjust, min_rows=request.min_rows, **levels)
        options = {"sample_weight": weight, "groups": loaded.groups, "labels": loaded.labels, "hard": request.hard}
        whole = tc.assess(*rows, **(options | levels))
        over_time = None if loaded.windows is None else assess_windows(loaded.windows, *levels.values())
        result = ModelResult(name, whole, segments, certified_atb(loaded), over_time)
        results.append(arrange_result(request, result, several=len(data.models) > 1))
    return results


def refuse_text_options(request: Request) -> None:
    """Reject options about printed text that do not fit the others, before any file is read."""
    if request.plot and request.format != "text":
        problem = f"--plot prints text, which cannot be combined with --{request.format}"
        raise ValueError(f"{problem}; omit one of them. --report has the diagram as a figure.")


def arrange_result(request: Request, result: ModelResult, *, several: bool = False) -> ModelResult:
    """Sort the segments, and add the classes and the plot that the request asks for. `several`: name the model."""
    asked, table = request.sort is not None or request.all, result.segments
    classes = result.assessment.classes if isinstance(result.assessment, tc.MulticlassAssessment) and asked else None
    if asked and table is None and classes is None:
        _refuse_without_parts(request, windows=result.over_time is not None)
    if request.sort is not None:
        table, classes = (None if x is None else x.sort_by(request.sort) for x in (table, classes))
    plot = ""
    if request.plot:
        from truthcal.cli.terminal_plot import terminal_plot

        plot = terminal_plot(result.assessment, result.name if several else "")
    return replace(result, segments=table, classes=classes, plot=plot, all=request.all)


def _refuse_without_parts(request: Request, *, windows: bool) -> None:
    """Reject --sort without segments, and --all without segments and windows."""
    if windows and request.sort is None:
        return
    flag = "--sort" if request.sort is not None else "--all"
    fix = "name their column with --by"
    if flag == "--all" and request.command == "assess":
        fix += "; windows of time need --time"
    raise ValueError(f"{flag} is for segments, and there are none; {fix}.")


def rows_or_sketch(loaded: Loaded) -> tuple[tuple[Any, ...], Any]:
    """Return the rows or the sketch of one model as positional arguments, (y, p) or (sketch,), and the weights."""
    return ((loaded.y, loaded.p), loaded.w) if loaded.exact else ((loaded.sketch,), None)


def certified_atb(loaded: Loaded) -> tc.Bounded | None:
    """Return the bounds of one model's ATB if only a sketch of its rows was kept."""
    return None if loaded.sketch is None else loaded.sketch.atb()
