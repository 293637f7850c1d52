"""The forest plot of segments: the bias of each with its interval, and which are miscalibrated."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from truthcal.core.params import check_whole
from truthcal.core.sketch_table import SketchTable
from truthcal.inference.segments import assess_segments
from truthcal.plots import _drawing as draw
from truthcal.plots._display import Display
from truthcal.results.segments import Segment, SegmentTable
from truthcal.results.tests import p_in_words, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

_KIND = "segments"
_WIDTH, _LINE = 7.6, 0.27
# Letters of a name, at least and at most; points that a letter and the bars take; and how few points leave no room for
# a verdict in words, and none for p.
_SHORTEST, _LONGEST = 10, 28
_LETTER, _BARS, _NARROW = 5.2, 130.0, (400.0, 270.0)
# Where the columns at the right begin, in points from the axes, and what they are called.
_COLUMNS = ((56.0, "rows", "right"), (114.0, "adjusted p", "right"), (124.0, "verdict", "left"))
_VERDICT = 74.0
# Print is never smaller than this, in points; and the size that the numbers above are for.
_SMALLEST, _DESIGNED = 5.0, 9.2


class SegmentsDisplay(Display):
    """Which segments are off, and by how much: a line for each, the clearest first.

    The marker is the bias (mean prediction minus mean outcome), the bar its interval. Segments found to be
    miscalibrated have a filled diamond, a thick bar and a bold name; the others an open circle. A segment can be
    miscalibrated though its bias is zero: overconfident, for example.

    Parameters
    ----------
    segments : SegmentTable
        From `assess_segments`.
    most : int, default 30
        Segments to draw; a line says how many more there are.
    name : str, optional
        The heading above the names; by default the columns that make the segments.
    """

    def __init__(self, segments: SegmentTable, most: int = 30, name: str | None = None) -> None:
        self.segments, self.most, self.name = segments, check_whole(most, "most", 1), name

    @classmethod
    def from_segments(
        cls, segments: SegmentTable, *, most: int = 30, name: str | None = None, ax: "Axes | None" = None
    ) -> Self:
        """Draw what `assess_segments` returned.

        Parameters
        ----------
        segments : SegmentTable
            From `assess_segments`.
        most, name
            As for the class.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        SegmentsDisplay
            With `ax_` and `figure_`.
        """
        return cls(segments, most, name).plot(ax)

    @classmethod
    def from_sketch_table(
        cls,
        table: SketchTable,
        *,
        most: int = 30,
        name: str | None = None,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Test the groups of a `SketchTable` and draw them.

        Parameters
        ----------
        table : SketchTable
            One sketch for each segment.
        most, name
            As for the class.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            As for `assess_segments`: `alpha`, `confidence_level`, `min_rows`, `adjust`.

        Returns
        -------
        SegmentsDisplay
            With `ax_` and `figure_`.
        """
        return cls.from_segments(assess_segments(table, **options), most=most, name=name, ax=ax)

    def table(self) -> dict[str, list[Any]]:
        """All segments, as `SegmentTable.table` has them."""
        return self.segments.table()

    def plot(self, ax: "Axes | None" = None, *, name: str | None = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        name : str, optional
            The heading above the names, in place of the Display's own.

        Returns
        -------
        SegmentsDisplay
            Itself, with `ax_` and `figure_`.
        """
        drawn = self.segments.segments[: self.most]
        left_out = len(self.segments) - len(drawn)
        lines = len(drawn) + bool(left_out)
        ax = draw.axes_for(ax, (_WIDTH, 1.15 + _LINE * lines))
        draw.resize_own(ax, 1.15 + _LINE * lines)
        beside = _Beside.of(ax, lines)
        for line, segment in enumerate(drawn):
            _draw_segment(ax, line, segment)
            beside.write(line, segment)
        if left_out:
            beside.label(len(drawn), f"... and {left_out:,} more")
        heading = name if name is not None else self.name if self.name is not None else ", ".join(self.segments.by)
        beside.write_headings(heading)
        _draw_axes(ax, lines, percent(drawn[0].bias_interval.confidence_level), narrow=beside.columns == 1)
        draw.make_room(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self


def _draw_segment(ax: "Axes", line: int, segment: Segment) -> None:
    """The bias and its interval; what is miscalibrated differs in shape, filling and strength, not in colour alone."""
    wrong = segment.miscalibrated
    color, alpha = (draw.style_of(1).color, 1.0) if wrong else (draw.ink(), 0.75)
    if not math.isnan(segment.bias_low):
        bar = ax.hlines(line, segment.bias_low, segment.bias_high, color=color, linewidth=3.0 if wrong else 1.2)
        bar.set(alpha=alpha, zorder=3)
        draw.mark(bar, _KIND, line, "interval")
    (point,) = ax.plot(segment.bias, line, linestyle="none", marker="D" if wrong else "o", color=color, zorder=4)
    point.set(markersize=6.5 if wrong else 5.5, alpha=alpha, markeredgewidth=1.2)
    point.set_markerfacecolor(color if wrong else "none")
    draw.mark(point, _KIND, line, "bias")


def _draw_axes(ax: "Axes", lines: int, level: str, *, narrow: bool) -> None:
    ax.set_yticks([])
    ax.locator_params(axis="x", nbins=1 if narrow else 5)
    ax.set_ylim(lines - 0.4, -0.6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    gap = "\n" if narrow else " "
    ax.set_xlabel(f"mean prediction minus mean outcome,{gap}{level} interval")
    if narrow:
        ax.xaxis.label.set_fontsize("small")
        ax.tick_params(axis="x", labelsize="small")
    zero = ax.axvline(0.0, color=draw.ink(), alpha=draw.RULE_ALPHA, linewidth=0.8, zorder=1)
    draw.mark(zero, _KIND, 0, "zero")


class _Beside(NamedTuple):
    """What is written at both sides of the axes, as far as there is room: letters of a name, columns, size of print.

    Names are no labels of the axis, since these would be rewritten, $ and all, with every drawing.
    """

    ax: "Axes"
    letters: int
    columns: int
    size: float
    scale: float

    @classmethod
    def of(cls, ax: "Axes", lines: int) -> Self:
        """What fits."""
        figure = draw.figure_of(ax)
        height = 72.0 * ax.bbox.height / figure.dpi / lines
        size = max(min(draw.small_size(), 0.9 * height), _SMALLEST)
        scale = max(size / _DESIGNED, 1.0)
        width = 72.0 * (figure.get_figwidth() if len(figure.axes) == 1 else ax.bbox.width / figure.dpi) / scale
        columns = len(_COLUMNS) - sum(width < each for each in _NARROW)
        taken = _BARS + _COLUMNS[columns - 1][0] + (_VERDICT if columns == len(_COLUMNS) else 0.0)
        letters = min(max(int((width - taken) / _LETTER), _SHORTEST), _LONGEST)
        return cls(ax, letters, columns, size, scale)

    def label(self, line: int, words: str, *, bold: bool = False) -> None:
        """What a line is called, as it is: a number that is cut off is another number."""
        text = self._text(words, (0.0, line), (-6.0, 0.0), "right")
        text.set_fontweight("bold" if bold else "normal")
        draw.mark(text, _KIND, line, "name")

    def write(self, line: int, segment: Segment) -> None:
        """Name, rows, adjusted p and verdict."""
        name = segment.name if segment.name.strip() else "(no name)"
        self.label(line, draw.literal(name, self.letters), bold=segment.miscalibrated)
        # That nothing was found proves little of a few rows.
        found = "no sign" if segment.kind == "calibrated" else segment.kind
        texts = (f"{segment.n:,}", _chance(segment), found)
        for (x, _, side), text in zip(_COLUMNS[: self.columns], texts, strict=False):
            self._text(text, (1.0, line), (x * self.scale, 0.0), side)

    def write_headings(self, names: str) -> None:
        """What names and columns are, above them."""
        columns = [(1.0, x * self.scale, text, side) for x, text, side in _COLUMNS[: self.columns]]
        for start, x, text, side in [(0.0, -6.0, draw.literal(names, self.letters), "right"), *columns]:
            self._text(text, (start, 1.0), (x, 4.0), side, "axes fraction", "bottom").set_alpha(0.75)

    def _text(
        self,
        text: str,
        at: tuple[float, float],
        away: tuple[float, float],
        side: str,
        coordinates: Any = ("axes fraction", "data"),
        align: str = "center",
    ) -> "Text":
        """Text at a distance in points from a place in the axes, or beside them."""
        return draw.as_it_is(
            self.ax.annotate(
                text,
                at,
                away,
                xycoords=coordinates,
                textcoords="offset points",
                ha=side,
                va=align,
                fontsize=self.size,
                annotation_clip=False,
            )
        )


def _chance(segment: Segment) -> str:
    return p_in_words(segment.adjusted).removeprefix("p = ").removeprefix("p ") if segment.tested else "not tested"
