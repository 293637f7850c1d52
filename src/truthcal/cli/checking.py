"""`check`: the gate for CI. Passes, fails, or has too little data to tell."""

import argparse
import math
from dataclasses import dataclass
from typing import Any

import truthcal as tc
from truthcal._markdown import literal
from truthcal._verdicts import p_in_words
from truthcal.cli.assessing import Found, assessed, prepare_report, write_report
from truthcal.cli.inputs import Data, one_model, read, refuse_unwritable
from truthcal.cli.showing import out, out_json, painted_status, say

_ALPHA = 0.05
# Rows that would not have shown a mean error of this size say too little, unless another size is asked for.
_NOTABLE = 0.1
STATUS = {"pass": 0, "fail": 1, "unclear": 3}
_MARKS = {"pass": "✅", "fail": "❌", "unclear": "❔"}


@dataclass(frozen=True, slots=True)
class Gate:
    """When to fail: if miscalibration is shown at level `alpha`, or if the rms is shown to exceed `max_rms`.

    With segments each half of `alpha` is for all rows together and for the segments: so both together keep the level.
    """

    alpha: float | None
    max_rms: float | None
    confidence_level: float

    def result(self, found: Found) -> tuple[str, list[str]]:
        """Status and reasons."""
        wrong = [*self._wrong_level(found), *self._wrong_size(found)]
        if wrong:
            return "fail", wrong
        doubt = self._doubt(found.assessment)
        return ("unclear", [doubt]) if doubt else ("pass", [self._praise(found)])

    def _wrong_level(self, found: Found) -> list[str]:
        if self.alpha is None:
            return []
        whole, wrong = found.assessment, []
        if whole.test.greater <= self.alpha:
            chance = whole.test.in_words(whole.test.greater)
            wrong.append(f"miscalibration is shown at level {self.alpha:g} ({whole.kind}, {chance})")
        if whole.test.impossible:
            wrong.append(f"{whole.test.impossible:,} outcomes had a predicted chance of exactly 0")
        if found.segments is not None:
            bad = found.segments.miscalibrated
            wrong += [f"segment {each.name} is {each.kind} (adjusted {p_in_words(each.adjusted)})" for each in bad]
        return wrong

    def _wrong_size(self, found: Found) -> list[str]:
        if self.max_rms is None:
            return []
        sizes = {"the error": found.assessment.rms_interval}
        if found.segments is not None:
            sizes |= {f"the error of segment {each.name}": each.rms_interval for each in found.segments.tested}
        return [
            f"{what} (rms) is at least {interval.low:.3g}, more than {self.max_rms:g}"
            for what, interval in sizes.items()
            if interval.low > self.max_rms
        ]

    def _doubt(self, whole: tc.Assessment) -> str:
        """Why a pass would say nothing."""
        size = _NOTABLE if self.max_rms is None else self.max_rms
        if whole.test.information == 0.0:  # all certain, and none of them wrong
            return ""
        if math.isnan(whole.detectable):
            return f"{whole.n:,} rows like these leave too little to chance to show any error"
        if whole.detectable > size:
            shown = f"these {whole.n:,} rows show errors from {whole.detectable:.2g} on"
            return f"an error of {size:g} would not have shown: {shown}"
        return ""

    def _praise(self, found: Found) -> str:
        whole = found.assessment
        if self.max_rms is not None:
            return f"the error (rms {whole.rms:.2g}) is not shown to exceed {self.max_rms:g}"
        return f"no miscalibration is shown at level {self.alpha:g}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"alpha": self.alpha, "max_rms": self.max_rms, "confidence_level": self.confidence_level}


def check(args: argparse.Namespace) -> int:
    """`truthcal check`."""
    prepare_report(args.report)
    refuse_unwritable(args.summary)
    alpha = _ALPHA if args.alpha is None and args.max_rms is None else args.alpha
    data = read(args, digest=args.report is not None)
    loaded = one_model(data, args)
    segmented = loaded.table is not None
    gate = Gate(alpha / 2.0 if alpha and segmented else alpha, args.max_rms, args.confidence_level)
    args.alpha = gate.alpha or _ALPHA
    if segmented and args.max_rms is not None:  # each of many bounds must hold
        args.confidence_level = 1.0 - (1.0 - args.confidence_level) / (1 + len(loaded.table or ()))
    found = assessed(next(iter(data.models)), loaded, args)
    status, reasons = gate.result(found)
    _show(args, data, found, gate, status, reasons)
    if args.summary is not None:
        with open(args.summary, "a", encoding="utf-8") as file:
            file.write(_markdown(data, found, status, reasons) + "\n\n")
    if args.report is not None:
        write_report(args, args.report, data, [found])
    return STATUS[status]


def _show(args: argparse.Namespace, data: Data, found: Found, gate: Gate, status: str, reasons: list[str]) -> None:
    if args.json:
        content = {
            "status": status,
            "exit_status": STATUS[status],
            "reasons": reasons,
            "gate": gate.to_dict(),
            "input": data.to_dict(),
            **found.to_dict(),
        }
        out_json("check", content)
    elif args.markdown:
        out(_markdown(data, found, status, reasons))
    else:
        out(painted_status(_sentence(status, reasons), status) + f"\n{found.assessment}")
        if found.segments is not None:
            out(f"\n{found.segments}")
    for warning in found.assessment.warnings:
        say(args, f"warning: {warning}")


def _sentence(status: str, reasons: list[str]) -> str:
    word = {"pass": "Pass", "fail": "Fail", "unclear": "Too little data to tell"}[status]
    return f"{word}: {'; '.join(reasons)}."


def _markdown(data: Data, found: Found, status: str, reasons: list[str]) -> str:
    title = f"## {_MARKS[status]} Calibration of {literal(found.name)} in {literal(data.where)}"
    return "\n\n".join([title, literal(_sentence(status, reasons)), found.to_markdown()])
