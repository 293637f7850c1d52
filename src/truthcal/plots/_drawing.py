"""What all Displays share on the canvas: axes, colours, literal text, legends. matplotlib is looked up here."""

import importlib
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from truthcal.core.params import shown

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Okabe and Ito's colours for all kinds of sight, those that show on white and on near-black; orange a little darker for
# that. "ink" is the colour of text at the time of drawing. Line styles and markers tell models apart without colour.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "ink", "#C98A00")
_LINES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (10, 2)), (0, (3, 1, 1, 1, 1, 1)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P")
THIN, THICK = 1.3, 3.6
# How strong grey areas and lines are: ink that lets the background through.
BAND_ALPHA, RULE_ALPHA = 0.14, 0.45
OWN = "truthcal-figure"
# Handles and texts of a legend.
Entries = list[tuple[Any, str]]
# Width of letters and height of a line of a legend, as shares of the size in points: enough to know what fits.
_LETTER, _LINE = 0.6, 1.65
# Letters that the line or marker before a text takes; letters on a line of a legend, at least.
_HANDLE, _NARROWEST = 8, 30
# Print up to this size, in points, fits into figures of the usual size.
_USUAL = 13.0
# Axes of a smaller share of the figure show nothing.
_LEFT_OVER = 0.15


class Style(NamedTuple):
    """How a model looks."""

    color: str
    line: Any
    marker: str


def matplotlib_module(name: str) -> Any:
    """matplotlib, or one of its modules, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'truthcal[plot]'.") from error


def axes_for(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """The axes to draw into: the user's, or those of a new figure of this size in inches."""
    if ax is not None:
        kind: type = matplotlib_module("matplotlib.axes").Axes
        if not isinstance(ax, kind):
            raise TypeError(
                f"`ax` must be one matplotlib Axes, or None for a new figure; got {shown(ax)}. "
                "Of several, as plt.subplots(2, 3) returns them, pass one."
            )
        return ax
    scale = _scale()
    inches = size[0] * scale, size[1] * scale
    figure, new = matplotlib_module("matplotlib.pyplot").subplots(figsize=inches, layout="constrained")
    figure.set_gid(OWN)
    made: Axes = new
    return made


def figure_of(ax: "Axes") -> "Figure":
    """The whole figure, also of axes in a part of it."""
    figure: Any = ax.figure
    while getattr(figure, "figure", figure) not in (figure, None):
        figure = figure.figure
    whole: Figure = figure
    return whole


def resize_own(ax: "Axes", height: float, legend: int = 0) -> None:
    """Another height for a figure that a Display has made; users' figures are left as they are.

    Inches of all but the legend, for print of the usual size, and the lines of the legend.
    """
    if figure_of(ax).get_gid() == OWN:
        size = small_size()
        figure_of(ax).set_figheight(height * _scale() + (_LINE * legend + 0.9 * bool(legend)) * size / 72.0)


def _scale() -> float:
    """How much larger a figure is for print that is larger than usual."""
    return max(1.0, float(matplotlib_module("matplotlib").rcParams["font.size"]) / _USUAL)


def small_size() -> float:
    """Points of small print."""
    size: float = matplotlib_module("matplotlib.font_manager").FontProperties(size="small").get_size_in_points()
    return size


def ink() -> str:
    """The colour of text where this is drawn: dark on light, or light on dark."""
    color: str = matplotlib_module("matplotlib").rcParams["text.color"]
    return color


def mark(artist: "Artist", kind: str, slot: int, part: str) -> None:
    """Names an artist, so that it is found again, in an SVG too: for example "reliability-1-curve"."""
    artist.set_gid(f"{kind}-{slot}-{part}")


def marked(ax: "Axes", kind: str, part: str) -> "list[Artist]":
    """The artists of that kind and part that are in the axes already, one for each model."""
    return [artist for artist in ax.get_children() if _is(artist.get_gid(), kind, part)]


def hide(ax: "Axes", kind: str, part: str) -> None:
    """Bands of several models would cover each other: how their curves are drawn tells as much."""
    for artist in marked(ax, kind, part):
        artist.set_visible(False)


class Drawn(NamedTuple):
    """Whose an artist is, and what the legend was told to call it."""

    display: Any
    name: str | None


def remember(artist: "Artist", drawn: Drawn) -> None:
    """Keeps with an artist what it shows: what follows for the axes depends on all models in them."""
    anything: Any = artist
    anything.truthcal = drawn


def drawn(ax: "Axes", kind: str, part: str = "curve") -> list[Drawn]:
    """What the artists of that kind and part show, one for each model."""
    artists: list[Any] = list(marked(ax, kind, part))
    return [artist.truthcal for artist in artists]


def name_curves(ax: "Axes", kind: str, alone: str) -> None:
    """Labels for the curves: their names; for those without, `alone`, or "model 2" among several."""
    curves = marked(ax, kind, "curve")
    for slot, (curve, each) in enumerate(zip(curves, drawn(ax, kind), strict=True)):
        unnamed = f"model {slot + 1}" if len(curves) > 1 else alone
        curve.set_label(literal(unnamed if each.name is None else each.name))


def _is(gid: str | None, kind: str, part: str) -> bool:
    names = (gid or "").rsplit("-", 2)
    return len(names) == 3 and names[0] == kind and names[2] == part


def style_of(slot: int) -> Style:
    """The look of the model number `slot`, counted from 0. After six, colours come again with other lines."""
    color = _COLORS[slot % len(_COLORS)]
    shift = slot // len(_COLORS)
    return Style(
        ink() if color == "ink" else color,
        _LINES[(slot + shift) % len(_LINES)],
        _MARKERS[(slot + shift) % len(_MARKERS)],
    )


def literal(text: object, most: int = 60) -> str:
    """What a user has called something, on one line, and not longer than `most` characters."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))
    return plain if len(plain) <= most else plain[: max(most - 1, 1)].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def as_it_is(text: "Text") -> "Text":
    """Text in which $ and _ mean nothing."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def legend_outside(ax: "Axes", kind: str, models: Entries, notes: Entries) -> int:
    """A legend where no curve can be. Returns how many lines it takes below the axes.

    It is under the label of the x axis, or beside axes of equal aspect in a wide place that they cannot fill. Names of
    models are shortened to fit; notes, which say what the looks mean, go on in another line. What else has a label in
    the axes keeps it.
    """
    size, beside, others = small_size(), _spare_width(ax), _others(ax, kind)
    width = beside if beside else ax.bbox.width * 72.0 / figure_of(ax).dpi
    room = max(int(width / (size * _LETTER)), _NARROWEST) - _HANDLE  # letters on a line
    texts = [literal(text, max(room, 26)) for _, text in models]
    texts += [textwrap.fill(text, max(room, 26)) for _, text in notes]
    own = len(texts)
    texts += [text for _, text in others]
    longest = max(len(line) for text in texts for line in text.split("\n"))
    columns = 1 if beside else max(1, min(3, len(texts), (room + _HANDLE) // (longest + _HANDLE)))
    where: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    where["borderaxespad"] = _below_label(ax) / size
    if beside:
        ax.set_anchor("NW")
        where = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.5}
    legend = ax.legend(
        [handle for handle, _ in (*models, *notes, *others)],
        [" "] * len(texts),  # set below, since a name may start with _ or hold $
        frameon=False,
        fontsize=size,
        ncols=columns,
        handlelength=3.2,
        columnspacing=1.5,
        **where,
    )
    for number, (place, text) in enumerate(zip(legend.get_texts(), texts, strict=True)):
        (as_it_is(place) if number < own else place).set_text(text)
    return 0 if beside else -(-sum(text.count("\n") + 1 for text in texts) // columns)


def _others(ax: "Axes", kind: str) -> Entries:
    """What has a label in the axes and is not of this kind: a line of the user's, for example."""
    handles, texts = ax.get_legend_handles_labels()
    both = zip(handles, texts, strict=True)
    return [(handle, text) for handle, text in both if not str(handle.get_gid() or "").startswith(f"{kind}-")]


def _spare_width(ax: "Axes") -> float:
    """Points beside axes of equal aspect in a user's figure, if their place is much wider than high; else 0."""
    figure = figure_of(ax)
    if figure.get_gid() == OWN or ax.get_aspect() == "auto":
        return 0.0
    place, whole = ax.get_position(original=True), figure.get_size_inches() * 72.0
    width, height = place.width * whole[0], place.height * whole[1]
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    spare = width - height * (right - left) / (high - low)
    return float(spare) if width > 1.25 * height and spare > 110.0 else 0.0


def lines_of(ax: "Axes", kind: str, *, markers: bool = False) -> Entries:
    """An entry of the legend for each model: its line, with its open marker if it has some."""
    entries: Entries = []
    for slot, line in enumerate(marked(ax, kind, "curve")):
        style, handle = style_of(slot), line
        if markers:
            look: dict[str, Any] = {"color": style.color, "linestyle": style.line, "marker": style.marker}
            handle = matplotlib_module("matplotlib.lines").Line2D([], [], markerfacecolor="none", **look)
        entries.append((handle, str(line.get_label())))
    return entries


def thick_line(color: str) -> Any:
    """What stands for lines beyond chance in the legend."""
    return matplotlib_module("matplotlib.lines").Line2D([], [], color=color, linewidth=THICK)


def full_marker(color: str, **look: Any) -> Any:
    """What stands for filled markers in the legend."""
    line = matplotlib_module("matplotlib.lines").Line2D
    return line([], [], color=color, linestyle="none", marker=_MARKERS[0], **look)


def _below_label(ax: "Axes") -> float:
    """Points from the axes down to below the label of the x axis."""
    parameters = matplotlib_module("matplotlib").rcParams
    sizes = matplotlib_module("matplotlib.font_manager").FontProperties(size=parameters["xtick.labelsize"])
    ticks = float(sizes.get_size_in_points()) + parameters["xtick.major.size"] + parameters["xtick.major.pad"]
    label: Any = ax.xaxis.label
    lines = label.get_text().count("\n") + 1
    return float(ticks + ax.xaxis.labelpad + 1.3 * lines * label.get_fontsize() + 5.0)


def make_room(ax: "Axes") -> None:
    """Shrinks the axes until all that belongs to them is in the figure, where no layout engine does so.

    If next to nothing were left of them, the legend stays outside the figure, where notebooks and
    ``savefig(bbox_inches="tight")`` show it all the same.
    """
    if figure_of(ax).get_layout_engine() is not None:
        return
    before, legend = ax.get_position(original=True), ax.get_legend()
    if _shrink(ax) or legend is None:
        return
    ax.set_position(before)
    legend.set_in_layout(False)
    _shrink(ax)
    legend.set_in_layout(True)


def _shrink(ax: "Axes") -> bool:
    """Shrinks the axes into their figure, and says whether enough is left of them."""
    for _ in range(4):  # axes of equal aspect shrink on both sides
        whole, used, place = ax.figure.bbox, ax.get_tightbbox(), ax.get_position(original=True)
        if used is None:
            return True
        left, below = max(whole.x0 - used.x0, 0.0) / whole.width, max(whole.y0 - used.y0, 0.0) / whole.height
        right, above = max(used.x1 - whole.x1, 0.0) / whole.width, max(used.y1 - whole.y1, 0.0) / whole.height
        width, height = place.width - left - right, place.height - below - above
        if max(left, right, below, above) < 0.002 or min(width, height) < _LEFT_OVER:
            break
        ax.set_position((place.x0 + left, place.y0 + below, width, height))
    final = ax.get_position()
    return bool(min(width, height, final.width, final.height) >= _LEFT_OVER)


def note_above(ax: "Axes", parts: tuple[str, ...], gid: str, gap: str = " ") -> None:
    """Small print above the axes, where no curve can be: on one line, with gaps, if there is room for it."""
    letters = int(ax.bbox.width * 72.0 / figure_of(ax).dpi / (small_size() * _LETTER))
    one = gap.join(parts)
    note = ax.annotate(
        one if len(one) < letters else "\n".join(textwrap.fill(part, max(letters, 12)) for part in parts),
        (0.0, 1.0),
        (0.0, 4.0),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize="small",
        va="bottom",
    )
    note.set_gid(gid)


def label_y(ax: "Axes", text: str) -> None:
    """What the y axis shows, in as many lines as its height asks for."""
    label: Any = ax.yaxis.label
    letters = max(int(ax.bbox.height * 72.0 / figure_of(ax).dpi / (label.get_fontsize() * _LETTER)), 12)
    lines = -(-len(text) // letters)
    ax.set_ylabel(textwrap.fill(text, min(len(text) // lines + 6, letters)))  # of about equal length


def plain_look(ax: "Axes") -> None:
    """No frame where nothing ends."""
    ax.spines[["top", "right"]].set_visible(False)
