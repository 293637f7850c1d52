"""`assess` and `report`: the verdict in words, the evidence, and the report."""

import argparse
import importlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import truthcal as tc
from truthcal.cli.inputs import STDIN, Data, read, refuse_unwritable
from truthcal.cli.output import STDOUT, coloured, out, out_json, say, write_file
from truthcal.io.files.load import Loaded
from truthcal.results.text import escape_markdown


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of one model."""

    name: str
    assessment: tc.Assessment
    segments: tc.SegmentTable | None
    certified: tc.Bounded | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "assessment": self.assessment.to_dict(),
            "certified_atb": None if self.certified is None else self.certified.to_dict(),
            "segments": None if self.segments is None else self.segments.to_dict(),
        }

    def __str__(self) -> str:
        parts = [coloured(str(self.assessment), self.assessment.kind)]
        if self.certified is not None:
            parts[0] += f"\n  {'certified':<15} ATB is {self.certified}: the rows were reduced to a sketch"
        if self.segments is not None:
            parts.append(f"By {', '.join(self.segments.by)}: {self.segments}")
        return "\n\n".join(parts)

    def to_markdown(self) -> str:
        """The same for a pull request."""
        parts = [self.assessment.to_markdown()]
        if self.certified is not None:
            parts.append(f"ATB is {self.certified} (from a sketch).")
        if self.segments is not None:
            parts.append(self.segments.to_markdown())
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Levels:
    """At which levels models and their segments are assessed."""

    alpha: float
    confidence_level: float
    adjust: str = "holm"
    min_rows: int = 30

    @classmethod
    def of(cls, args: argparse.Namespace) -> Self:
        """As the arguments have them."""
        return cls(args.alpha, args.confidence_level, args.adjust, args.min_rows)


def assess(args: argparse.Namespace) -> int:
    """`truthcal assess`."""
    prepare_report(args, args.report)
    data = read(args, digest=args.report is not None)
    found = [assessed(name, loaded, Levels.of(args)) for name, loaded in data.models.items()]
    if args.json:
        out_json("assess", {"input": data.to_dict(), "models": [each.to_dict() for each in found]})
    elif args.markdown:
        headed = len(found) > 1
        out(
            "\n\n".join(
                f"### {escape_markdown(f.name)}\n\n{f.to_markdown()}" if headed else f.to_markdown() for f in found
            )
        )
    else:
        out("\n\n".join(f"{f.name}\n{'-' * len(f.name)}\n{f}" if len(found) > 1 else str(f) for f in found))
    if args.report is not None:
        write_report(args, args.report, data, found)
    return 0


def report(args: argparse.Namespace) -> int:
    """`truthcal report`."""
    path = args.output or _named_after(args.files[0])
    prepare_report(args, path)
    data = read(args, digest=True)
    found = [assessed(name, loaded, Levels.of(args)) for name, loaded in data.models.items()]
    write_report(args, path, data, found)
    if path != STDOUT:
        out(path)
    return 0


def assessed(name: str, loaded: Loaded, levels: Levels) -> Found:
    """The assessment of one model, and of its segments."""
    own: dict[str, Any] = {"alpha": levels.alpha, "confidence_level": levels.confidence_level}
    if loaded.exact:
        whole, certified = tc.assess(loaded.y, loaded.p, sample_weight=loaded.w, **own), None
    else:
        whole, certified = tc.assess(loaded.sketch, **own), loaded.sketch.atb()
    segments = None
    if loaded.table is not None:
        segments = tc.assess_segments(loaded.table, adjust=levels.adjust, min_rows=levels.min_rows, **own)
    return Found(name, whole, segments, certified)


def write_report(
    args: argparse.Namespace,
    path: str,
    data: Data,
    found: list[Found],
    comparisons: dict[tuple[str, str], tc.Comparison] | None = None,
) -> None:
    """Put the report where it was wanted, whole or not at all."""
    named = {each.name: each.assessment for each in found}
    only = len(found) == 1
    made = tc.report(
        found[0].assessment if only else named,
        segments=found[0].segments if only else {each.name: each.segments for each in found if each.segments} or None,
        comparisons=_comparisons(data) if comparisons is None else comparisons,
        title=args.title or f"Can these probabilities be trusted? {data.title}",
        provenance=_provenance(args, data),
        notes=_notes(args, data),
    )
    write_file(path, made.html.encode())
    if path != STDOUT:
        say(args, f"the report is in {path}")


def _comparisons(data: Data) -> dict[tuple[str, str], tc.Comparison]:
    """Each further model with the first one, on the same rows."""
    names = list(data.models)
    if len(names) < 2 or not data.first.exact:
        return {}
    a = data.first
    return {(names[0], name): tc.compare(a.y, a.p, data.models[name].p, sample_weight=a.w) for name in names[1:]}


def _provenance(args: argparse.Namespace, data: Data) -> dict[str, str]:
    shown = {
        "data": ", ".join(data.files[:5]) + (f" and {len(data.files) - 5:,} more" if len(data.files) > 5 else ""),
        "rows": f"{data.first.n:,}",
        "command": shlex.join(["truthcal", *args.line]),
    }
    if data.digest:
        shown["SHA-256 of the data"] = data.digest
    return shown


def _notes(args: argparse.Namespace, data: Data) -> list[str]:
    if not data.columns:
        return ["The data are a sketch: sums of rows by buckets of predictions, not the rows themselves."]
    c = data.columns
    label = f", where {c['pos_label']!r} counts as 1" if c["pos_label"] is not None else ""
    notes = [f"Outcomes are in the column {c['label']!r}{label}; predictions in {', '.join(map(repr, c['proba']))}."]
    notes.append(f"Weights are in the column {c['weight']!r}." if c["weight"] else "All rows have the same weight.")
    if args.label is None or not args.proba:
        notes.append("Columns that the command does not name were guessed by their names and first rows.")
    return notes


def prepare_report(args: argparse.Namespace, path: str | None) -> None:
    """What would go wrong with a report should go wrong before the work."""
    if path is None:
        return
    refuse_unwritable(args, path)
    for library in ("jinja2", "matplotlib"):
        try:
            importlib.import_module(library)
        except ImportError:
            raise ImportError(f"the report needs {library}: pip install 'truthcal[report]'.") from None


def _named_after(file: str) -> str:
    if file == STDIN:
        return "report.html"
    name = Path(file).name.split(".")[0].strip("*?[]") or "report"
    return f"{name}.html"
