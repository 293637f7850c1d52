"""The figures of the report: each drawn by a Display, and said in words for those who do not see it."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from truthcal import plots
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.inference.scale_profile import scale_profile_of
from truthcal.measures.atb import cumulative_bias_curve_of
from truthcal.measures.bias_bands import bias_band_of
from truthcal.measures.curves import consistency_band_of, density_of, reliability_curve_of
from truthcal.plots.svg import INK, figure_svg
from truthcal.reports.render import safe
from truthcal.reports.sanitize import labels, rounded
from truthcal.reports.svg import Stylesheet, inline_svg
from truthcal.results.curves import ReliabilityCurve
from truthcal.results.segments import SegmentTable

_SEED = 0
# Inches. Displays of models choose their height themselves; a forest plot has axes, and a line for each segment.
_SIZE, _FOREST, _AXES, _EACH = (5.2, 4.4), 8.2, 1.15, 0.27
# Points: what is written small has 11 pixels still on a telephone, which shows a figure 365 pixels wide. A forest plot
# has less room between its columns, and scrolls.
_FONT, _FOREST_FONT = 14.0, 11.0
# Segments that a forest plot shows, alone on a page and among several.
_MANY_LINES, _FEW_LINES = 30, 15
# The page has its own ink, and the colours of models in a shade for its ground.
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
    """A figure of the page: markup, its title, how to read it, what it shows."""

    svg: Any
    title: str
    reading: str
    shows: list[str]


class Figures:
    """Draws the figures of one page, and collects their styles."""

    def __init__(self) -> None:
        self.sheet = Stylesheet(_COLOURS)
        self._drawn = 0

    def reliability(self, summaries: Sequence[Sample | Sketch], names: Sequence[str | None]) -> Figure:
        """Reliability diagrams of one or several models in one axes."""
        curves = [reliability_curve_of(summary) for summary in summaries]
        told = [_in_words(curve) for curve in curves]
        bands = [consistency_band_of(summary, rng=_SEED) for summary in summaries]
        densities = [density_of(summary) for summary in summaries]
        displays = [
            plots.ReliabilityDisplay(curve=curve, band=band, density=density, name=name)
            for curve, band, density, name in zip(curves, bands, densities, names, strict=True)
        ]
        return self._figure(
            lambda ax: _draw_all(displays, ax),
            "Reliability diagram",
            "How often it happened where p was predicted: right predictions lie on the diagonal. Calibrated ones are "
            f"in {'their' if len(names) > 1 else 'the'} band {100 * bands[0].confidence_level:g}% of the time, at "
            "each p by itself; a line is thick where it is outside.",
            *(f"{name}: {words}" if len(names) > 1 else _start(words) for name, words in zip(names, told, strict=True)),
        )

    def bias(self, summary: Sample | Sketch) -> Figure:
        """The cumulative bias curve."""
        curve, band = cumulative_bias_curve_of(summary), bias_band_of(summary, rng=_SEED)
        return self._figure(
            plots.BiasCurveDisplay(curve=curve, band=band, name=None).plot,
            "Cumulative bias",
            "The bias of all predictions up to q: where the curve rises they are too high, where it falls too low. ATB "
            "is the square of the bias below a threshold plus the square of that above it, averaged over all "
            "thresholds. By chance alone the whole curve stays in the band "
            f"{100 * band.confidence_level:g}% of the time.",
            rounded(f"{curve} {band}"),
        )

    def scales(self, summary: Sample | Sketch) -> Figure:
        """The error by scale."""
        profile = scale_profile_of(summary, rng=_SEED)
        return self._figure(
            plots.ScaleProfileDisplay(profile).plot,
            "Error by scale",
            "Errors of one sign show at every width, errors that change sign along the predictions in narrow bins. The "
            f"range is where calibrated predictions would be {100 * profile.confidence_level:g}% of the time, at each "
            "width by itself.",
            rounded(str(profile)),
        )

    def binned(self, summary: Sample | Sketch) -> Figure:
        """The diagram in bins."""
        curve = reliability_curve_of(summary, "uniform")
        return self._figure(
            plots.BinnedReliabilityDisplay(curve=curve, name=None).plot,
            "Reliability in bins",
            "The same in bins of equal width, for those who must have bins: their number is a choice, and the choice "
            "changes the picture.",
            _start(_in_words(curve)),
        )

    def forest(self, table: SegmentTable, alone: bool) -> Figure:
        """The segments, one below the other."""
        names = labels(segment.name for segment in table.segments)
        named = zip(table.segments, names, strict=True)
        clean = dataclasses.replace(table, segments=tuple(dataclasses.replace(s, name=name) for s, name in named))
        most = _MANY_LINES if alone else _FEW_LINES
        return self._figure(
            plots.SegmentsDisplay(clean, max_segments=most).plot,
            "Bias of the segments",
            "Mean prediction minus mean outcome of each segment with its interval, for the segment alone.",
            table.verdict,
            size=(_FOREST, _AXES + _EACH * min(len(table), most + 1)),
            font_size=_FOREST_FONT,
        )

    def _figure(
        self,
        draw: Callable[[Any], object],
        title: str,
        reading: str,
        *shows: str,
        size: tuple[float, float] = _SIZE,
        font_size: float = _FONT,
    ) -> Figure:
        self._drawn += 1
        name = f"f{self._drawn}"
        drawn, told = figure_svg(draw, size, salt=name, font_size=font_size), " ".join(shows)
        svg = inline_svg(drawn, name=name, title=title, description=told, sheet=self.sheet)
        return Figure(safe(svg), title, reading, [text.splitlines()[0] for text in shows])


def _draw_all(displays: Sequence[Any], ax: Any) -> None:
    for display in displays:
        display.plot(ax)


def _start(words: str) -> str:
    return words[0].upper() + words[1:]


def _in_words(curve: ReliabilityCurve) -> str:
    """What the curve shows, but for where it is worst: the verdict names such a place by another rule."""
    words = curve.describe(3, worst=False)
    return words[0].lower() + words[1:]
