"""Forest plot of segments: bias with interval, rows, adjusted p-value and verdict of each."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from truthcal.core.params import check_whole
from truthcal.core.sketch_table import SketchTable
from truthcal.inference.segments import assess_segments
from truthcal.plots import drawing as draw
from truthcal.plots.display import Display
from truthcal.results.segments import Segment, SegmentTable
from truthcal.results.text import Unit, p_number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

_KIND = "segments"
# Inches of a new figure: width, height of the axis and its label, height of a line.
_WIDTH, _AXIS, _LINE = 7.6, 1.15, 0.27
# Letters of a name, minimum and maximum.
_SHORTEST, _LONGEST = 10, 28
# Points that a letter and the bars take; widths below which the verdict, and then p, is left out.
_LETTER, _BARS, _NARROW = 5.2, 130.0, (400.0, 270.0)
# Columns at the right: distance from the axes in points, heading, alignment. The last one is _VERDICT points wide.
_COLUMNS = ((56.0, "rows", "right"), (114.0, "adjusted p", "right"), (124.0, "verdict", "left"))
_VERDICT = 74.0
# Smallest font size in points; font size for which the distances above hold.
_SMALLEST_FONT, _DESIGN_FONT = 5.0, 9.2


class SegmentsDisplay(Display):
    """Forest plot of segments, the strongest evidence of miscalibration first.

    The marker is the bias (mean prediction minus mean outcome), the bar its interval. Miscalibrated segments have a
    filled diamond, a thick bar and a bold name; the others an open circle. A segment with a bias of zero can be
    miscalibrated too, for example overconfident.

    Parameters
    ----------
    segments : SegmentTable
        From `assess_segments`.
    max_segments : int, default 30
        Segments to draw; a last line counts the others.
    name : str, optional
        Heading above the names of segments; by default the columns that define them.
    """

    def __init__(self, segments: SegmentTable, max_segments: int = 30, name: str | None = None) -> None:
        self.segments, self.max_segments, self.name = segments, check_whole(max_segments, "max_segments", 1), name

    @classmethod
    def from_segments(
        cls, segments: SegmentTable, *, max_segments: int = 30, name: str | None = None, ax: "Axes | None" = None
    ) -> Self:
        """Plot the result of `assess_segments`.

        Parameters
        ----------
        segments, max_segments, name
            As for the class.
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default.

        Returns
        -------
        SegmentsDisplay
            With `ax_` and `figure_`.
        """
        return cls(segments, max_segments, name).plot(ax)

    @classmethod
    def from_sketch_table(
        cls,
        table: SketchTable,
        *,
        max_segments: int = 30,
        name: str | None = None,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Test the groups of a `SketchTable` and plot them.

        Parameters
        ----------
        table : SketchTable
            One sketch for each segment.
        max_segments, name, ax
            As for `from_segments`.
        **options
            Passed to `assess_segments`: `alpha`, `confidence_level`, `min_rows`, `adjust`.

        Returns
        -------
        SegmentsDisplay
            With `ax_` and `figure_`.
        """
        return cls(assess_segments(table, **options), max_segments, name).plot(ax)

    def table(self) -> dict[str, list[Any]]:
        """Return all segments, as `SegmentTable.table` does."""
        return self.segments.table()

    def plot(self, ax: "Axes | None" = None, *, name: str | None = None) -> Self:
        """Plot the stored segments.

        Parameters
        ----------
        ax, name : optional
            As for `from_segments`; the name replaces the Display's own.

        Returns
        -------
        SegmentsDisplay
            Itself, with `ax_` and `figure_`.
        """
        segments = self.segments.segments[: self.max_segments]
        left_out = len(self.segments) - len(segments)
        lines = len(segments) + bool(left_out)
        ax = draw.axes_for(ax, (_WIDTH, _AXIS + _LINE * lines))
        draw.resize_new_figure(ax, _AXIS + _LINE * lines)
        columns = _TextColumns.fitting(ax, lines)
        for line, segment in enumerate(segments):
            _draw_segment(ax, line, segment)
            columns.write(line, segment)
        if left_out:
            columns.write_name(len(segments), f"... and {left_out:,} more")
        heading = name if name is not None else self.name if self.name is not None else ", ".join(self.segments.by)
        columns.write_headings(heading)
        level, narrow = percent(segments[0].bias_interval.confidence_level), columns.number == 1
        _draw_forest_axes(ax, lines, level, self.segments.unit, narrow=narrow)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self


def _draw_segment(ax: "Axes", line: int, segment: Segment) -> None:
    """Draw a segment's bias and interval. Miscalibrated ones differ in shape, fill and width, not only in colour."""
    wrong = segment.miscalibrated
    color, alpha = (draw.model_style(1).color, 1.0) if wrong else (draw.ink(), 0.75)
    if not math.isnan(segment.bias_low):
        bar = ax.hlines(line, segment.bias_low, segment.bias_high, color=color, linewidth=3.0 if wrong else 1.2)
        bar.set(alpha=alpha, zorder=3)
        draw.tag(bar, _KIND, line, "interval")
    (point,) = ax.plot(segment.bias, line, linestyle="none", marker="D" if wrong else "o", color=color, zorder=4)
    point.set(markersize=6.5 if wrong else 5.5, alpha=alpha, markeredgewidth=1.2)
    point.set_markerfacecolor(color if wrong else "none")
    draw.tag(point, _KIND, line, "bias")


def _draw_forest_axes(ax: "Axes", lines: int, level: str, unit: Unit, *, narrow: bool) -> None:
    from truthcal.plots.ticks import set_unit_ticks

    set_unit_ticks(ax.xaxis, unit)
    ax.set_yticks([])
    ax.locator_params(axis="x", nbins=1 if narrow else 5)
    ax.set_ylim(lines - 0.4, -0.6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    gap = "\n" if narrow else " "
    ax.set_xlabel(f"mean prediction minus mean outcome{unit.per},{gap}{level} interval")
    if narrow:
        ax.xaxis.label.set_fontsize("small")
        ax.tick_params(axis="x", labelsize="small")
    draw.reference_line(ax.axvline(0.0), _KIND, "zero")


class _TextColumns(NamedTuple):
    """Text at both sides of the axes, as much as fits: letters of a name, number of columns, font size.

    Names are not tick labels, since matplotlib would parse $ in these at every drawing.
    """

    ax: "Axes"
    letters: int
    number: int
    size: float
    scale: float

    @classmethod
    def fitting(cls, ax: "Axes", lines: int) -> Self:
        """Choose what fits beside the axes."""
        figure = draw.figure_of(ax)
        height = 72.0 * ax.bbox.height / figure.dpi / lines
        size = max(min(draw.small_font_size(), 0.9 * height), _SMALLEST_FONT)
        scale = max(size / _DESIGN_FONT, 1.0)
        width = (72.0 * figure.get_figwidth() if len(figure.axes) == 1 else draw.width_in_points(ax)) / scale
        number = len(_COLUMNS) - sum(width < limit for limit in _NARROW)
        taken = _BARS + _COLUMNS[number - 1][0] + (_VERDICT if number == len(_COLUMNS) else 0.0)
        letters = min(max(int((width - taken) / _LETTER), _SHORTEST), _LONGEST)
        return cls(ax, letters, number, size, scale)

    def write_name(self, line: int, name: str, *, bold: bool = False) -> None:
        """Write a name at the left of a line, uncut."""
        text = self._text(name, (0.0, line), (-6.0, 0.0), "right")
        text.set_fontweight("bold" if bold else "normal")
        draw.tag(text, _KIND, line, "name")

    def write(self, line: int, segment: Segment) -> None:
        """Write name, rows, adjusted p and verdict of a segment."""
        name = segment.name if segment.name.strip() else "(no name)"
        self.write_name(line, draw.literal(name, self.letters), bold=segment.miscalibrated)
        p = p_number(segment.adjusted, missing="not tested")
        for (x, _, side), text in zip(_COLUMNS[: self.number], (f"{segment.n:,}", p, segment.kind), strict=False):
            self._text(text, (1.0, line), (x * self.scale, 0.0), side)

    def write_headings(self, names: str) -> None:
        """Write the headings above names and columns."""
        columns = [(1.0, x * self.scale, text, side) for x, text, side in _COLUMNS[: self.number]]
        for start, x, text, side in [(0.0, -6.0, draw.literal(names, self.letters), "right"), *columns]:
            self._text(text, (start, 1.0), (x, 4.0), side, xycoords="axes fraction", va="bottom").set_alpha(0.75)

    def _text(
        self, text: str, at: tuple[float, float], offset: tuple[float, float], side: str, **options: Any
    ) -> "Text":
        """Write text at an offset in points from a place in the axes."""
        look: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
        look |= {"ha": side, "fontsize": self.size, "annotation_clip": False, **options}
        return draw.disable_markup(self.ax.annotate(text, at, offset, **look))
