"""The results of one model: its assessment, its segments, and how they are printed."""

from dataclasses import dataclass
from typing import Any

import truthcal as tc
from truthcal.cli.inputs import Data
from truthcal.cli.output import coloured
from truthcal.cli.request import Request
from truthcal.inference.over_time import assess_windows
from truthcal.io.files.load import Loaded
from truthcal.results.assessment import word_parts


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The assessment of one model. `certified` bounds ATB if the rows were reduced to a sketch."""

    name: str
    assessment: tc.Assessment | tc.MulticlassAssessment
    segments: tc.SegmentTable | None
    certified: tc.Bounded | None
    over_time: tc.TimeAssessment | None = None

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

    def __str__(self) -> str:
        parts = [coloured(str(self.assessment), self.assessment.kind)]
        if self.certified is not None:
            parts[0] += f"\n  {'certified':<15} ATB is {self.certified} (computed from a sketch)"
        return "\n\n".join([*parts, *word_parts(self.segments, self.over_time)])

    def to_markdown(self) -> str:
        """Return the same in Markdown."""
        parts = [self.assessment.to_markdown()]
        if self.certified is not None:
            parts.append(f"ATB is {self.certified} (from a sketch).")
        if self.segments is not None:
            parts.append(self.segments.to_markdown())
        if self.over_time is not None:
            parts.append(self.over_time.to_markdown())
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
        results.append(ModelResult(name, whole, segments, certified_atb(loaded), over_time))
    return results


def rows_or_sketch(loaded: Loaded) -> tuple[tuple[Any, ...], Any]:
    """Return the rows or the sketch of one model as positional arguments, (y, p) or (sketch,), and the weights."""
    return ((loaded.y, loaded.p), loaded.w) if loaded.exact else ((loaded.sketch,), None)


def certified_atb(loaded: Loaded) -> tc.Bounded | None:
    """Return the bounds of one model's ATB if only a sketch of its rows was kept."""
    return None if loaded.sketch is None else loaded.sketch.atb()
