"""`check`: the gate for CI. Passes, fails, or has too little data to tell."""

import argparse
import math
from dataclasses import dataclass
from typing import Any

from truthcal.cli.commands.assess import Found, Levels, assessed, prepare_report, write_report
from truthcal.cli.inputs import Data, one_model, read, refuse_unwritable
from truthcal.cli.output import out, out_json, painted_status
from truthcal.results.tests import ConfidenceInterval
from truthcal.results.text import count, escape_markdown, p_value

_ALPHA = 0.05
# Rows that leave room for an error of this size say too little, unless another size is asked for.
_NOTABLE = 0.1
# Reasons that a sentence has; JSON has all.
_TOLD = 5
STATUS = {"pass": 0, "fail": 1, "unclear": 3}
_MARKS = {"pass": "✅", "fail": "❌", "unclear": "❔"}


@dataclass(frozen=True, slots=True)
class Gate:
    """When to fail: if miscalibration is shown at level `alpha`, or if the rms is shown to exceed `max_rms`.

    `segments` is how many there are besides all rows together. Half of `alpha` is theirs, so that both together keep
    the level; of intervals, each has its share of what they may miss.
    """

    alpha: float | None
    max_rms: float | None
    confidence_level: float
    segments: int = 0

    def levels(self, args: argparse.Namespace) -> Levels:
        """What all rows and segments are assessed at."""
        alpha = self.alpha or _ALPHA
        missed = (1.0 - self.confidence_level) / (1 + self.segments if self.max_rms is not None else 1)
        return Levels(alpha / 2.0 if self.segments else alpha, 1.0 - missed, args.adjust, args.min_rows)

    def result(self, found: Found, levels: Levels) -> tuple[str, list[str]]:
        """Status and reasons."""
        wrong = [*self._wrong_level(found, levels), *self._too_large(found)]
        if wrong:
            return "fail", wrong
        doubts = self._doubts(found, levels)
        return ("unclear", doubts) if doubts else ("pass", [self._praise(found, levels)])

    def _wrong_level(self, found: Found, levels: Levels) -> list[str]:
        if self.alpha is None:
            return []
        test, wrong = found.assessment.test, []
        if test.greater <= levels.alpha:
            chance = f"{found.assessment.kind}, {test.format_p(test.greater)}"
            wrong.append(f"miscalibration is shown at level {self._level(levels)} ({chance})")
        if test.impossible:
            wrong.append(f"{count(test.impossible, 'outcome')} had a predicted chance of exactly 0")
        if found.segments is not None:
            bad = found.segments.miscalibrated
            wrong += [f"segment {each.name} is {each.kind} (adjusted {p_value(each.adjusted)})" for each in bad]
        return wrong

    def _level(self, levels: Levels) -> str:
        return f"{levels.alpha:g}, half of {self.alpha:g}" if self.segments else f"{self.alpha:g}"

    def _sizes(self, found: Found) -> dict[str, ConfidenceInterval]:
        """The errors that must be small, by what they are called."""
        sizes = {"the error": found.assessment.rms_interval}
        if found.segments is not None and self.max_rms is not None:
            sizes |= {f"the error of segment {each.name}": each.rms_interval for each in found.segments.tested}
        return sizes

    def _too_large(self, found: Found) -> list[str]:
        if self.max_rms is None:
            return []
        return [
            f"{what} (rms) is at least {interval.low:.3g}, more than {self.max_rms:g}"
            for what, interval in self._sizes(found).items()
            if interval.low > self.max_rms
        ]

    def _doubts(self, found: Found, levels: Levels) -> list[str]:
        """Why a pass would say nothing."""
        whole, segments = found.assessment, found.segments
        allowed = _NOTABLE if self.max_rms is None else self.max_rms
        doubts = [_doubt(what, interval, allowed) for what, interval in self._sizes(found).items()]
        shown = whole.kind == "miscalibrated" and whole.test.greater <= levels.alpha
        if self.max_rms is not None and shown:
            doubts.append("errors change sign along the predictions and cancel in the rms, which may hide their size")
        if segments is not None and not segments.tested:
            doubts.append(segments.verdict.rstrip("."))
        return [doubt for doubt in doubts if doubt]

    def _praise(self, found: Found, levels: Levels) -> str:
        if self.max_rms is not None:
            high = max(interval.high for interval in self._sizes(found).values())
            return f"the error (rms) is at most {high:.2g}, which does not exceed {self.max_rms:g}"
        return f"no miscalibration is shown at level {self._level(levels)}"

    def to_dict(self, levels: Levels) -> dict[str, Any]:
        """What was asked for, and the levels that were used for it, for JSON."""
        asked = {"alpha": self.alpha, "max_rms": self.max_rms, "confidence_level": self.confidence_level}
        used = {"alpha": None if self.alpha is None else levels.alpha, "confidence_level": levels.confidence_level}
        return {**asked, "used": used}


def _doubt(what: str, interval: ConfidenceInterval, allowed: float) -> str:
    if math.isnan(interval.high):
        return f"{what} (rms) has no interval: {interval.why.rstrip('.')}"
    if interval.high <= allowed:
        return ""
    return f"{what} (rms) may be as large as {interval.high:.2g}, and {allowed:g} is the limit"


def check(args: argparse.Namespace) -> int:
    """`truthcal check`."""
    prepare_report(args, args.report)
    refuse_unwritable(args, args.summary)
    data = read(args, digest=args.report is not None)
    loaded = one_model(data, args)
    alpha = _ALPHA if args.alpha is None and args.max_rms is None else args.alpha
    gate = Gate(alpha, args.max_rms, args.confidence_level, len(loaded.table or ()))
    levels = gate.levels(args)
    found = assessed(next(iter(data.models)), loaded, levels)
    status, reasons = gate.result(found, levels)
    if args.json:
        asked = {"status": status, "exit_status": STATUS[status], "reasons": reasons, "gate": gate.to_dict(levels)}
        out_json("check", {**asked, "input": data.to_dict(), **found.to_dict()})
    else:
        words = painted_status(_sentence(status, reasons), status)
        out(_markdown(data, found, status, reasons) if args.markdown else f"{words}\n\n{found}")
    if args.summary is not None:
        _append(args.summary, _markdown(data, found, status, reasons) + "\n\n")
    if args.report is not None:
        write_report(args, args.report, data, [found])
    return STATUS[status]


def _append(path: str, text: str) -> None:
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:  # writing itself does not say where
        raise type(error)(error.errno, error.strerror, path) from None


def _sentence(status: str, reasons: list[str]) -> str:
    word = {"pass": "Pass", "fail": "Fail", "unclear": "Too little data to tell"}[status]
    more = f"; and {len(reasons) - _TOLD:,} more" if len(reasons) > _TOLD else ""
    return f"{word}: {'; '.join(reasons[:_TOLD])}{more}."


def _markdown(data: Data, found: Found, status: str, reasons: list[str]) -> str:
    title = f"## {_MARKS[status]} Calibration of {escape_markdown(found.name)} in {escape_markdown(data.where)}"
    return "\n\n".join([title, escape_markdown(_sentence(status, reasons)), found.to_markdown()])
