"""Drawing helpers of all Displays: axes, colours, literal text, legends. Imports matplotlib on first use."""

import importlib
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from truthcal.core.checks import invalid
from truthcal.core.params import shown
from truthcal.results.text import escape_control_characters

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# The colour-blind safe palette of Okabe and Ito, without those that fade on white or near-black, and with a darker
# orange. "ink" is the text colour at the time of drawing. Line styles and markers differ too, for print without colour.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "ink", "#C98A00")
_LINES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (10, 2)), (0, (3, 1, 1, 1, 1, 1)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P")
THIN, THICK = 1.3, 3.6
# Opacity of grey areas and reference lines, which are drawn in the text colour.
BAND_ALPHA, RULE_ALPHA = 0.14, 0.45
# The gid of figures that a Display creates: only these may be resized.
NEW_FIGURE = "truthcal-figure"
# Handles and texts of a legend.
Entries = list[tuple[Any, str]]
# Approximate letter width and line height of a legend, in font sizes.
_LETTER, _LINE = 0.6, 1.65
# Letters taken by the line or marker before a legend text; minimum letters on a line.
_HANDLE, _NARROWEST = 8, 30
# Largest font size, in points, for which figures have their normal size.
_NORMAL_FONT = 13.0
# Smallest useful share of the figure for axes.
_SMALLEST_AXES = 0.15


class Style(NamedTuple):
    """Colour, line style and marker of a model."""

    color: str
    line: Any
    marker: str


class Drawn(NamedTuple):
    """The Display that an artist shows, and the name passed for its legend."""

    display: Any
    name: str | None


def matplotlib_module(name: str) -> Any:
    """Import matplotlib or one of its modules, or raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'truthcal[plot]'.") from error


def axes_for(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return the axes to draw into: the user's, or those of a new figure of this size in inches."""
    if ax is not None:
        kind: type = matplotlib_module("matplotlib.axes").Axes
        if not isinstance(ax, kind):
            cure = "If plt.subplots(2, 3) returned an array of them, pass one of its elements."
            problem = f"must be one matplotlib Axes, or None for a new figure; got {shown(ax)}. {cure}"
            raise invalid("ax", problem, TypeError)
        return ax
    inches = size[0] * _figure_scale(), size[1] * _figure_scale()
    figure, new = matplotlib_module("matplotlib.pyplot").subplots(figsize=inches, layout="constrained")
    figure.set_gid(NEW_FIGURE)
    return cast("Axes", new)


def figure_of(ax: "Axes") -> "Figure":
    """Return the figure into which the axes are drawn, also if they are in a subfigure."""
    figure: Any = ax.figure
    while getattr(figure, "figure", figure) not in (figure, None):
        figure = figure.figure
    return cast("Figure", figure)


def width_in_points(ax: "Axes") -> float:
    """Return the width in which to draw, that of the axes, in points."""
    return float(ax.bbox.width * 72.0 / figure_of(ax).dpi)


def resize_new_figure(ax: "Axes", height: float, legend: int = 0) -> None:
    """Set the height of a figure to draw into that a Display created; users' figures keep their size.

    `height` is in inches, for the normal font size and without the legend; `legend` counts the lines of the legend.
    """
    figure = figure_of(ax)
    if figure.get_gid() == NEW_FIGURE:
        lines = _LINE * legend + 0.9 * bool(legend)
        figure.set_figheight(height * _figure_scale() + lines * small_font_size() / 72.0)


def _figure_scale() -> float:
    """Return the factor by which figures are drawn larger for a large font."""
    return max(1.0, float(matplotlib_module("matplotlib").rcParams["font.size"]) / _NORMAL_FONT)


def small_font_size() -> float:
    """Return the size of small text to draw, matplotlib's font size "small", in points."""
    size: float = matplotlib_module("matplotlib.font_manager").FontProperties(size="small").get_size_in_points()
    return size


def ink() -> str:
    """Return the colour to draw text in, the current one: dark on light, or light on dark."""
    color: str = matplotlib_module("matplotlib").rcParams["text.color"]
    return color


def tag(artist: "Artist", kind: str, slot: int, part: str) -> None:
    """Set the gid of a drawn artist, by which it is found again, for example "reliability-1-curve"."""
    artist.set_gid(f"{kind}-{slot}-{part}")


def tagged(ax: "Axes", kind: str, part: str) -> "list[Artist]":
    """Return the drawn artists of that kind and part in the axes, one for each model."""
    ids = [((artist.get_gid() or "").rsplit("-", 2), artist) for artist in ax.get_children()]
    return [artist for names, artist in ids if len(names) == 3 and (names[0], names[2]) == (kind, part)]


def attach(artist: "Artist", drawn: Drawn) -> None:
    """Store with a drawn artist what it shows: limits and legend depend on all models in the axes."""
    anything: Any = artist
    anything.truthcal = drawn


def attached(ax: "Axes", kind: str, part: str = "curve") -> list[Drawn]:
    """Return what the drawn artists of that kind and part show, one for each model."""
    artists: list[Any] = list(tagged(ax, kind, part))
    return [artist.truthcal for artist in artists]


def name_curves(ax: "Axes", kind: str, alone: str) -> None:
    """Set the labels of all drawn curves: names; without a name, `alone` or, among several models, "model 2"."""
    curves = tagged(ax, kind, "curve")
    for slot, (curve, drawn) in enumerate(zip(curves, attached(ax, kind), strict=True)):
        unnamed = f"model {slot + 1}" if len(curves) > 1 else alone
        curve.set_label(literal(unnamed if drawn.name is None else drawn.name))


def model_style(slot: int) -> Style:
    """Return the style to draw a model in by its number, from 0. After six, colours repeat with other line styles."""
    color = _COLORS[slot % len(_COLORS)]
    shifted = slot + slot // len(_COLORS)
    line, marker = _LINES[shifted % len(_LINES)], _MARKERS[shifted % len(_MARKERS)]
    return Style(ink() if color == "ink" else color, line, marker)


def reference_line(line: Any, kind: str, part: str) -> None:
    """Draw a line as a reference: the diagonal or zero."""
    line.set(color=ink(), alpha=RULE_ALPHA, linewidth=0.8, zorder=2, label=f"_{part}")
    tag(line, kind, 0, part)


def shade(ax: "Axes", x: Any, low: Any, high: Any) -> "Artist":
    """Draw a grey band."""
    return ax.fill_between(x, low, high, color=ink(), alpha=BAND_ALPHA, linewidth=0, zorder=1)


def draw_markers(
    ax: "Axes", x: Any, y: Any, filled: Any, style: Style, area: Any, *, open_color: Any = "none"
) -> "Artist":
    """Draw markers, filled or open. The inside of open ones is transparent by default."""
    points = ax.scatter(x, y, s=area, marker=style.marker, linewidths=1.2, zorder=4, label="_points")
    points.set_facecolor([style.color if fill else open_color for fill in filled])
    points.set_edgecolor(style.color)
    return points


def page_color(ax: "Axes") -> Any:
    """Return the colour of the page to draw on, white if the axes are transparent."""
    color: Any = ax.get_facecolor()
    return color if color[3] else "white"


def literal(text: object, max_length: int = 60) -> str:
    """Return a user's name to draw on one line, escaped and cut to `max_length` characters."""
    plain = escape_control_characters(str(text))
    return plain if len(plain) <= max_length else plain[: max(max_length - 1, 1)].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def disable_markup(text: "Text") -> "Text":
    """Draw $ and _ in a text literally."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def draw_legend(ax: "Axes", kind: str, models: Entries, notes: Entries) -> int:
    """Draw a legend outside the axes. Returns the number of its lines below them.

    It is placed below the label of the x axis, or beside axes of equal aspect if their place is much wider than high.
    Names of models are cut to fit; notes, which explain line widths and markers, are wrapped. Labels that the user set
    in the same axes are kept.
    """
    size, beside, users = small_font_size(), _width_beside(ax), _user_entries(ax, kind)
    letters = max(int((beside or width_in_points(ax)) / (size * _LETTER)), _NARROWEST)
    longest = max(letters - _HANDLE, 26)
    texts = [literal(text, longest) for _, text in models] + [textwrap.fill(text, longest) for _, text in notes]
    literals = len(texts)
    texts += [text for _, text in users]
    widest = max(len(line) for text in texts for line in text.split("\n"))
    columns = 1 if beside else max(1, min(3, len(texts), letters // (widest + _HANDLE)))
    if beside:
        ax.set_anchor("NW")
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.5}
    else:
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": _height_below(ax) / size}
    legend = ax.legend(
        [handle for handle, _ in (*models, *notes, *users)],
        [" "] * len(texts),  # set below: matplotlib would drop names that start with _ and parse $
        frameon=False,
        fontsize=size,
        ncols=columns,
        handlelength=3.2,
        columnspacing=1.5,
        **place,
    )
    for number, (line, text) in enumerate(zip(legend.get_texts(), texts, strict=True)):
        (disable_markup(line) if number < literals else line).set_text(text)
    return 0 if beside else -(-sum(text.count("\n") + 1 for text in texts) // columns)


def _user_entries(ax: "Axes", kind: str) -> Entries:
    """Return the entries of the drawn legend for artists that are not of this kind, for example a line of the user."""
    entries = zip(*ax.get_legend_handles_labels(), strict=True)
    return [(handle, text) for handle, text in entries if not str(handle.get_gid() or "").startswith(f"{kind}-")]


def _width_beside(ax: "Axes") -> float:
    """Return the free points to draw a legend beside axes of equal aspect in a user's figure, or 0 if too few."""
    figure = figure_of(ax)
    if figure.get_gid() == NEW_FIGURE or ax.get_aspect() == "auto":
        return 0.0
    place, (figure_width, figure_height) = ax.get_position(original=True), figure.get_size_inches() * 72.0
    width, height = place.width * figure_width, place.height * figure_height
    free = width - height / ax.get_data_ratio()
    return float(free) if width > 1.25 * height and free > 110.0 else 0.0


def model_entries(ax: "Axes", kind: str, *, markers: bool = False) -> Entries:
    """Return a legend entry for each model: its line, with an open marker if `markers`."""
    entries: Entries = []
    for slot, line in enumerate(tagged(ax, kind, "curve")):
        style, handle = model_style(slot), line
        if markers:
            handle = _legend_line(color=style.color, linestyle=style.line, marker=style.marker, markerfacecolor="none")
        entries.append((handle, str(line.get_label())))
    return entries


def thick_line(color: str) -> Any:
    """Return the legend handle for the thick parts of lines."""
    return _legend_line(color=color, linewidth=THICK)


def thin_line(color: str) -> Any:
    """Return the legend handle for thin lines."""
    return _legend_line(color=color, linewidth=0.8)


def filled_marker(color: str, **look: Any) -> Any:
    """Return the legend handle for filled markers."""
    return _legend_line(color=color, linestyle="none", marker=_MARKERS[0], **look)


def _legend_line(**look: Any) -> Any:
    return matplotlib_module("matplotlib.lines").Line2D([], [], **look)


def _height_below(ax: "Axes") -> float:
    """Return the points from the drawn axes to below the label of the x axis."""
    parameters = matplotlib_module("matplotlib").rcParams
    font = matplotlib_module("matplotlib.font_manager").FontProperties(size=parameters["xtick.labelsize"])
    ticks = float(font.get_size_in_points()) + parameters["xtick.major.size"] + parameters["xtick.major.pad"]
    label: Any = ax.xaxis.label
    lines = label.get_text().count("\n") + 1
    return float(ticks + ax.xaxis.labelpad + 1.3 * lines * label.get_fontsize() + 5.0)


def fit_into_figure(ax: "Axes") -> None:
    """Shrink the drawn axes until labels and legend are inside the figure, unless a layout engine does so.

    If too little of the axes would remain, the legend stays outside the figure, where notebooks and
    ``savefig(bbox_inches="tight")`` still show it.
    """
    if figure_of(ax).get_layout_engine() is not None:
        return
    before, legend = ax.get_position(original=True), ax.get_legend()
    if _shrink_axes(ax) or legend is None:
        return
    ax.set_position(before)
    legend.set_in_layout(False)
    _shrink_axes(ax)
    legend.set_in_layout(True)


def _shrink_axes(ax: "Axes") -> bool:
    """Shrink the axes into their figure. Returns whether enough of them is left."""
    for _ in range(4):  # axes of equal aspect shrink on both sides
        page, used, place = ax.figure.bbox, ax.get_tightbbox(), ax.get_position(original=True)
        if used is None:
            return True
        left, below = max(page.x0 - used.x0, 0.0) / page.width, max(page.y0 - used.y0, 0.0) / page.height
        right, above = max(used.x1 - page.x1, 0.0) / page.width, max(used.y1 - page.y1, 0.0) / page.height
        width, height = place.width - left - right, place.height - below - above
        if max(left, right, below, above) < 0.002 or min(width, height) < _SMALLEST_AXES:
            break
        ax.set_position((place.x0 + left, place.y0 + below, width, height))
    final = ax.get_position()
    return bool(min(width, height, final.width, final.height) >= _SMALLEST_AXES)


def note_above(ax: "Axes", parts: tuple[str, ...], gid: str, gap: str = " ") -> None:
    """Draw small text above the axes: on one line if it fits, else one part per line."""
    letters = int(width_in_points(ax) / (small_font_size() * _LETTER))
    text = gap.join(parts)
    if len(text) >= letters:
        text = "\n".join(textwrap.fill(part, max(letters, 12)) for part in parts)
    offset: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(text, (0.0, 1.0), (0.0, 4.0), fontsize="small", va="bottom", **offset).set_gid(gid)


def set_label(ax: "Axes", axis: str, text: str) -> None:
    """Draw the label of the x or the y axis, in lines of about equal length that fit its length."""
    label: Any = getattr(ax, f"{axis}axis").label
    length = ax.bbox.width if axis == "x" else ax.bbox.height
    letters = max(int(length * 72.0 / figure_of(ax).dpi / (label.get_fontsize() * _LETTER)), 12)
    lines = -(-len(text) // letters)
    label.set_text(textwrap.fill(text, min(len(text) // lines + 6, letters)))


def hide_frame(ax: "Axes") -> None:
    """Draw no frame at the top and right edge of the axes."""
    ax.spines[["top", "right"]].set_visible(False)
