"""Figures of the report: each is drawn by a Display and described in words for readers who cannot see it."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from truthcal import plots
from truthcal.plots.svg import INK, figure_svg
from truthcal.plots.watch import WatchDisplay
from truthcal.recalibration.recalibration import Recalibration
from truthcal.reports.class_data import ClassPanel
from truthcal.reports.data import ModelData, unique_labels
from truthcal.reports.inline_svg import Stylesheet, inline_svg
from truthcal.reports.render import safe
from truthcal.results.curves import BiasBand, BiasCurve, ReliabilityCurve, ScaleProfile
from truthcal.results.over_time import TimeAssessment
from truthcal.results.segments import SegmentTable
from truthcal.results.text import p_value, percent
from truthcal.results.watch import WatchResult

# Significant digits of numbers: more would suggest a precision that no interval has.
_DIGITS = 3
# Inches. Displays of models choose their own height; a forest plot has axes, and a line for each segment.
_WATCH_SIZE = (5.2, 3.4)
_SIZE, _FOREST_WIDTH, _AXES_HEIGHT, _LINE_HEIGHT = (5.2, 4.4), 8.2, 1.15, 0.27
# Points. The smallest text has 11 pixels on a phone, which shows a figure 365 pixels wide. A forest plot has less room
# between its columns, and scrolls.
_FONT, _FOREST_FONT = 14.0, 11.0
# Small diagrams: two beside each other on a phone, 150 pixels wide.
_PANEL, _PANEL_FONT = (2.1, 2.1), 11.5
# Predictions whose recalibrated values are given in words.
_EXAMPLES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Segments in a forest plot: on the page of one model, and of several.
_MANY_LINES, _FEW_LINES = 30, 15
# Colours of the figures -> variables of the page's style sheet, which has a light and a dark shade of each.
_COLOURS = {
    INK: "var(--ink)",
    "#0072B2": "var(--blue)",
    "#D55E00": "var(--red)",
    "#009E73": "var(--green)",
    "#CC79A7": "var(--pink)",
    "#C98A00": "var(--gold)",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the page: markup, title, how to read it, and what it shows in words."""

    svg: Any
    title: str
    reading: str
    shows: list[str]


class Figures:
    """Draws the figures of one page and collects their styles."""

    def __init__(self) -> None:
        self.sheet = Stylesheet(_COLOURS)
        self._count = 0

    def reliability(self, models: Sequence[ModelData]) -> Figure:
        """Draw the reliability diagrams of one or several models in one axes."""
        several = len(models) > 1
        displays = [
            plots.ReliabilityDisplay(curve=m.curve, band=m.band, density=m.density, name=m.label or None)
            for m in models
        ]
        words = [model.curve.describe(_DIGITS, worst=False) for model in models]  # the verdict says where it is worst
        if several:
            words = [f"{m.label}: {line[0].lower()}{line[1:]}" for m, line in zip(models, words, strict=True)]
        level = percent(models[0].band.confidence_level)
        if any(model.assessment.n_groups is not None for model in models):
            level = f"about {level}"  # the dependence of rows is estimated
        return self._figure(
            lambda ax: [display.plot(ax) for display in displays],
            "Reliability diagram",
            "How often the event happened where p was predicted. Perfect calibration is the diagonal. For calibrated "
            f"predictions, the whole curve stays in {'its' if several else 'the grey'} band {level} of the time. The "
            "line is thick where it leaves the band. The test combines all predictions, so it can detect smaller "
            "errors than the band shows: see the cumulative bias. Strips below show where the predictions are.",
            *words,
        )

    def class_panel(self, panel: ClassPanel) -> Figure:
        """Draw the small reliability diagram of one class, on linear axes without labels and legend."""
        segment, words = panel.segment, panel.curve.describe(_DIGITS, worst=False)
        display = plots.ReliabilityDisplay(curve=panel.curve, band=panel.band, density=panel.density)

        unit = ""

        def draw(ax: Any) -> None:
            nonlocal unit
            display.plot(ax, legend=False, scale="linear")
            unit = ax.get_xlabel().partition(",")[2]  # such as "per 1,000"
            ax.set(xlabel="", ylabel="")

        title = f"Reliability diagram of {segment.name}"
        figure = self._figure(draw, title, "", words, size=_PANEL, font_size=_PANEL_FONT)
        verdict = segment.kind if not segment.tested else f"{segment.kind}, {p_value(segment.adjusted)}"
        return dataclasses.replace(figure, title=segment.name, reading=verdict + f"; axes{unit}" * bool(unit))

    def recalibration(self, fix: Recalibration) -> Figure:
        """Draw the recalibrated probability for each prediction."""
        examples = ", ".join(f"{p:g} becomes {q:.2g}" for p, q in zip(_EXAMPLES, fix(_EXAMPLES), strict=True))
        return self._figure(
            plots.RecalibrationDisplay(fix).plot,
            "Recalibration",
            "The recalibrated probability for each prediction, by the map that is fitted to all rows. On the diagonal, "
            "predictions stay as they are.",
            f"{examples}.",
        )

    def bias(self, curve: BiasCurve, band: BiasBand) -> Figure:
        """Draw the cumulative bias curve."""
        return self._figure(
            plots.BiasCurveDisplay(curve=curve, band=band, name=None).plot,
            "Cumulative bias",
            "The bias of all predictions up to q. Where the curve rises, predictions are too high; where it falls, too "
            "low. ATB is the squared bias below a threshold plus the squared bias above it, averaged over all "
            "thresholds. For calibrated predictions, the whole curve stays in the band "
            f"{percent(band.confidence_level)} of the time.",
            f"{curve.describe(_DIGITS)} {band.describe(_DIGITS, curve.unit)}",
        )

    def scales(self, profile: ScaleProfile) -> Figure:
        """Draw the error by scale."""
        return self._figure(
            plots.ScaleProfileDisplay(profile).plot,
            "Error by scale",
            "Errors of one sign appear at every width. Errors that change sign along the prediction axis appear in "
            "narrow bins. The range contains the errors of calibrated predictions "
            f"{percent(profile.confidence_level)} of the time, at each width separately.",
            profile.describe(),
            description=str(profile),
        )

    def binned(self, curve: ReliabilityCurve) -> Figure:
        """Draw the reliability diagram in bins."""
        return self._figure(
            plots.BinnedReliabilityDisplay(curve=curve, name=None).plot,
            "Reliability in bins",
            "The reliability diagram in bins of equal width. A different number of bins gives a different picture. "
            f"For calibrated predictions, all bins are in their ranges {percent(curve.confidence_level)} of the time.",
            curve.describe(_DIGITS, worst=False),
        )

    def forest(self, table: SegmentTable, alone: bool) -> Figure:
        """Draw the biases of the segments, one per line."""
        labels = unique_labels(segment.name for segment in table.segments)
        pairs = zip(table.segments, labels, strict=True)
        table = dataclasses.replace(table, segments=tuple(dataclasses.replace(s, name=label) for s, label in pairs))
        limit = _MANY_LINES if alone else _FEW_LINES
        return self._figure(
            plots.SegmentsDisplay(table, max_segments=limit).plot,
            "Bias of the segments",
            "Mean prediction minus mean outcome of each segment, with an interval for that segment alone.",
            table.verdict,
            size=(_FOREST_WIDTH, _AXES_HEIGHT + _LINE_HEIGHT * min(len(table), limit + 1)),
            font_size=_FOREST_FONT,
        )

    def history(self, result: TimeAssessment) -> Figure:
        """Draw the error in each window of time."""
        level = percent(result.confidence_level)
        return self._figure(
            plots.OverTimeDisplay(result).plot,
            "Error over time",
            "Size of the error in each window of time, without noise. The intervals contain the true errors of all "
            f"windows at once about {level} of the time. Windows with few rows have wide intervals.",
            result.verdict,
        )

    def watched(self, result: WatchResult, *, calendar: bool) -> list[Figure]:
        """Draw the evidence, the error and the number of rows of each window of a watched stream."""
        rows = sum(window.n for window in result.windows)
        late = sum(window.n_overdue for window in result.windows)
        readings: dict[Literal["evidence", "error", "rows"], tuple[str, str, str]] = {
            "evidence": (
                "Evidence against calibration",
                "The e-value of all rows up to the end of each window. Without errors it stays around 1 or below.",
                result.status.verdict,
            ),
            "error": (
                "Error in each window",
                "Size of the calibration error in each window alone, without noise. With many windows, some intervals "
                "are above 0 by chance; the evidence takes this into account.",
                f"{sum(window.error.low > 0.0 for window in result.windows):,} of {len(result.windows):,} intervals "
                "are above 0.",
            ),
            "rows": (
                "Rows in each window",
                "Rows that were scored, and rows without an outcome when the window was closed.",
                f"{rows:,} rows were scored; {late:,} were overdue.",
            ),
        }
        return [
            self._figure(WatchDisplay(result, shows, calendar=calendar).plot, *texts, size=_WATCH_SIZE)
            for shows, texts in readings.items()
        ]

    def _figure(
        self,
        draw: Callable[[Any], object],
        title: str,
        reading: str,
        *shows: str,
        description: str = "",
        size: tuple[float, float] = _SIZE,
        font_size: float = _FONT,
    ) -> Figure:
        self._count += 1
        name = f"f{self._count}"
        svg = inline_svg(
            figure_svg(draw, size, salt=name, font_size=font_size),
            name=name,
            title=title,
            description=description or " ".join(shows),
            sheet=self.sheet,
        )
        return Figure(safe(svg), title, reading, list(shows))
