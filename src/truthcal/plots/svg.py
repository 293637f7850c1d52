"""Figures as SVG text: the same bytes for the same drawing, with colours that a page can replace."""

import io
import warnings
from collections.abc import Callable
from typing import Any

from truthcal.plots.drawing import NEW_FIGURE, matplotlib_module

# The colour of text, axes and ticks, for a page to replace by its own: no palette has it.
INK = "#010203"
_SETTINGS: dict[str, Any] = {
    "figure.dpi": 72,  # as in SVG files, so that path.simplify_threshold is in points
    "path.simplify": True,
    "path.simplify_threshold": 0.5,
    "svg.fonttype": "none",  # text stays text: smaller, sharper, searchable, accessible to screen readers
    "text.parse_math": False,  # a dollar in a name is a dollar
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor", "legend.facecolor"), "none"),
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
    """Return what `draw` draws on matplotlib axes as the text of an SVG file. Changes no setting of matplotlib.

    `size`: width and height in inches; a Display may change the height. `salt`: seed of the ids in the file.
    `font_size`: of labels, in points; other text is smaller. Text, axes and ticks have the colour `INK`.
    """
    matplotlib = matplotlib_module("matplotlib")
    text = io.StringIO()
    with matplotlib.rc_context({**_SETTINGS, **_svg_sizes(font_size), "svg.hashsalt": salt}), warnings.catch_warnings():
        # The page chooses the font: glyphs that matplotlib's own font lacks do not matter.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*missing")
        figure = matplotlib_module("matplotlib.figure").Figure(figsize=size, layout="constrained")
        matplotlib_module("matplotlib.backends.backend_svg").FigureCanvasSVG(figure)
        figure.set_gid(NEW_FIGURE)
        draw(figure.subplots())
        _simplify_areas(figure)
        metadata = {"Date": None, "Creator": None}
        figure.savefig(text, format="svg", bbox_inches="tight", pad_inches=0.04, metadata=metadata)
    return text.getvalue()


def _svg_sizes(font_size: float) -> dict[str, float]:
    large, small = ("font.size", "axes.titlesize", "axes.labelsize"), ("xtick.labelsize", "ytick.labelsize")
    return {**dict.fromkeys(large, font_size), **dict.fromkeys((*small, "legend.fontsize"), font_size - 1.0)}


def _simplify_areas(figure: Any) -> None:
    """Simplify the outlines of areas before saving as SVG: matplotlib simplifies lines then, but no areas."""
    for area in figure.findobj(matplotlib_module("matplotlib.collections").PolyCollection):
        area.axes.autoscale_view()  # the transform depends on the limits
        to_page = area.get_transform()
        outlines = []
        for path in area.get_paths():
            on_page = path.transformed(to_page)  # to_polygons(to_page) would ignore logarithmic scales
            on_page.should_simplify = True
            outlines += on_page.to_polygons()
        area.set_verts([to_page.inverted().transform(outline) for outline in outlines])
