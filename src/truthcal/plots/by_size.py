"""Base of the plots of a number by sample size: a line with markers for each result, several in the same axes."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import check_flag
from truthcal.plots import drawing as draw
from truthcal.plots.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (6.0, 3.8)  # inches of a new figure


class SizeDisplay(Display):
    """A Display of a number for several sample sizes. Several of a kind can be plotted into the same axes."""

    _KIND: str  # prefix of the gids of its artists

    sizes: NDArray[np.int64]
    values: NDArray[np.float64]

    def plot(self, ax: "Axes | None" = None, *, name: str | None = None, legend: bool = True) -> Self:
        """Plot the stored result.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default. Several results can share axes.
        name : str, optional
            Name in the legend, instead of the Display's own.
        legend : bool, default True
            Whether to draw a legend.

        Returns
        -------
        Display
            Itself, with `ax_` and `figure_`.
        """
        check_flag(legend, "legend")
        ax = draw.axes_for(ax, _SIZE)
        slot = len(draw.tagged(ax, self._KIND, "curve"))
        style = draw.model_style(slot)
        (line,) = ax.plot(self.sizes, self.values, color=style.color, linestyle=style.line, linewidth=1.8, zorder=3)
        draw.tag(line, self._KIND, slot, "curve")
        label = self._label(name or self.name)
        draw.attach(line, draw.Drawn(self, label))
        line.set_label(draw.literal(label))
        self._draw_details(ax, slot, style)
        ax.set_xscale("log")
        sizes = np.unique(np.concatenate([one.display.sizes for one in draw.attached(ax, self._KIND)]))
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.set_xticks([], minor=True)
        self._set_axes(ax)
        draw.hide_frame(ax)
        entries = draw.model_entries(ax, self._KIND, markers=True)
        lines = draw.draw_legend(ax, self._KIND, entries, self._notes(ax)) if legend else 0
        draw.resize_new_figure(ax, _SIZE[1], lines)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self

    def _draw_details(self, ax: "Axes", slot: int, style: draw.Style) -> None:
        """Draw markers, and whatever belongs to this kind of result."""
        self._draw_markers(ax, slot, style, np.zeros(len(self.sizes), bool))

    def _draw_markers(self, ax: "Axes", slot: int, style: draw.Style, filled: NDArray[np.bool_]) -> None:
        look: dict[str, Any] = {"area": 36, "open_color": draw.page_color(ax)}  # hides the line in open markers
        points = draw.draw_markers(ax, self.sizes, self.values, filled, style, **look)
        draw.tag(points, self._KIND, slot, "points")

    def _label(self, name: str | None) -> str:
        """Return the text in the legend."""
        raise NotImplementedError

    def _set_axes(self, ax: "Axes") -> None:
        """Set labels and the y axis."""
        raise NotImplementedError

    def _notes(self, ax: "Axes") -> draw.Entries:
        """Return the legend entries that explain the plot."""
        return []


def log_ticks(ax: "Axes") -> None:
    """Make the y axis logarithmic, with ticks at round numbers in plain digits: more of them for a short axis."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 10 * low else (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
    ax.yaxis.set_major_locator(LogLocator(subs=steps))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:.6g}"))
    ax.set_yticks([], minor=True)
