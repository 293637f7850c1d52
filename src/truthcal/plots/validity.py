"""Plot of the power of a test by number of rows: how often it accepts calibrated and miscalibrated populations."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import check_flag
from truthcal.plots import drawing as draw
from truthcal.plots.display import Display
from truthcal.results.power import Validity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND, _SIZE = "validity", (6.0, 3.8)


class ValidityDisplay(Display):
    """Plot of acceptance rates of a test by number of rows: 1 - power at a distance of C / sqrt(rows).

    Thick lines with markers are miscalibrated populations, thin lines of the same colour calibrated ones. A valid test
    keeps the gap between them as rows grow.

    Parameters
    ----------
    validity : Validity
        From `validity`.
    name : str, optional
        Name in the legend; test and distance by default.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import truthcal as tc
    >>> half = {"one prediction": [0.5]}
    >>> found = tc.validity("atb", constant=2, n_rows=[100, 400], populations=half, families=["shift"])
    >>> display = tc.plots.ValidityDisplay(found).plot(Figure().subplots())
    """

    def __init__(self, validity: Validity, name: str | None = None) -> None:
        self.validity, self.name = validity, name

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the result, with a row for each number of rows."""
        return self.validity.table()

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
        ValidityDisplay
            Itself, with `ax_` and `figure_`.
        """
        check_flag(legend, "legend")
        ax = draw.axes_for(ax, _SIZE)
        slot, found = len(draw.tagged(ax, _KIND, "curve")), self.validity
        style = draw.model_style(slot)
        (thin,) = ax.plot(found.n_rows, found.accept_calibrated, color=style.color, linewidth=0.8, label="_calibrated")
        draw.tag(thin, _KIND, slot, "calibrated")
        look: dict[str, Any] = {"color": style.color, "linestyle": style.line, "marker": style.marker}
        (line,) = ax.plot(found.n_rows, found.accept_miscalibrated, **look, linewidth=1.8, markerfacecolor="white")
        draw.tag(line, _KIND, slot, "curve")
        label = name or self.name or f"{found.test}, distance {found.constant:.3g} / sqrt(rows)"
        draw.attach(line, draw.Drawn(self, label))
        line.set_label(draw.literal(label))
        self._set_axes(ax)
        notes = [(draw.thin_line(draw.ink()), "thin: calibrated populations")]
        lines = draw.draw_legend(ax, _KIND, draw.model_entries(ax, _KIND, markers=True), notes) if legend else 0
        draw.resize_new_figure(ax, _SIZE[1], lines)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self

    def _set_axes(self, ax: "Axes") -> None:
        """Set labels and limits, and a tick at each number of rows of all results in the axes."""
        sizes = np.unique(np.concatenate([one.display.validity.n_rows for one in draw.attached(ax, _KIND)]))
        ax.set_xscale("log")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.set_xticks([], minor=True)
        ax.set(xlabel="rows", ylim=(-0.03, 1.03))
        draw.set_label(ax, "y", "acceptance rate (1 - power)")
        draw.hide_frame(ax)
