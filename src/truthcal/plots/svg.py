"""A figure as SVG text, the same bytes for the same drawing, for pages that colour it by their own style sheet."""

import io
import warnings
from collections.abc import Callable
from typing import Any

from truthcal.plots._drawing import OWN, matplotlib_module

# The colour of text, axes and ticks, for a page to replace by its own: no palette has it.
INK = "#010203"
_SETTINGS: dict[str, Any] = {
    "figure.dpi": 72,  # as in SVG files: distances are in points
    "path.simplify": True,
    "path.simplify_threshold": 0.5,
    "svg.fonttype": "none",  # text stays text: smaller, sharper, found by a search, read by a screen reader
    "text.parse_math": False,  # a dollar in a name is a dollar
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.facecolor": "none",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.0,
}


def figure_svg(
    draw: Callable[[Any], object],
    size: tuple[float, float] = (5.2, 4.0),
    *,
    salt: str = "truthcal",
    font_size: float = 11.0,
) -> str:
    """What `draw` draws on matplotlib axes, as the text of an SVG file.

    Parameters
    ----------
    draw : callable
        Takes the axes; what it returns is not looked at.
    size : tuple of float
        Width and height in inches. A Display that knows the height it needs takes that.
    salt : str
        Makes the ids in the file: the same for the same text.
    font_size : float
        Of labels, in points; ticks and what is small are smaller.

    Returns
    -------
    str
        The file. Text, axes and ticks have the colour `INK`; the ground is transparent; text is in no outlines.
        Settings of matplotlib are as before.
    """
    matplotlib = matplotlib_module("matplotlib")
    text = io.StringIO()
    with matplotlib.rc_context({**_SETTINGS, **_sizes(font_size), "svg.hashsalt": salt}), warnings.catch_warnings():
        # The page chooses the font, not matplotlib: what its own font lacks does not matter.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*missing")
        figure = matplotlib_module("matplotlib.figure").Figure(figsize=size, layout="constrained")
        matplotlib_module("matplotlib.backends.backend_svg").FigureCanvasSVG(figure)
        figure.set_gid(OWN)
        draw(figure.subplots())
        _simplify_areas(figure)
        figure.savefig(
            text, format="svg", bbox_inches="tight", pad_inches=0.04, metadata={"Date": None, "Creator": None}
        )
    return text.getvalue()


def _sizes(font_size: float) -> dict[str, float]:
    large, small = ("font.size", "axes.titlesize", "axes.labelsize"), ("xtick.labelsize", "ytick.labelsize")
    return {**dict.fromkeys(large, font_size), **dict.fromkeys((*small, "legend.fontsize"), font_size - 1.0)}


def _simplify_areas(figure: Any) -> None:
    """Simplify the outlines of areas, which matplotlib saves with every vertex: lines are simplified on saving."""
    figure.draw_without_rendering()  # computes the layout, on which the transforms depend
    for area in figure.findobj(matplotlib_module("matplotlib.collections").PolyCollection):
        to_page = area.get_transform()
        for path in area.get_paths():
            path.should_simplify = True
        outlines = [outline for path in area.get_paths() for outline in path.to_polygons(to_page)]
        area.set_verts([to_page.inverted().transform(outline) for outline in outlines])
