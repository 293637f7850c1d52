"""Plot of a recalibration: the recalibrated probability for each prediction."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.params import check_choice, check_flag, shown
from truthcal.plots import drawing as draw
from truthcal.plots.display import Display
from truthcal.plots.probability_axes import SCALES, Predictions, ProbabilityAxis, prepare_square

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (5.0, 5.2)  # inches of a new figure
_POINTS = 512


class RecalibrationDisplay(Display):
    """Plot of a recalibration: the recalibrated probability for each prediction; the diagonal leaves it as it is.

    Parameters
    ----------
    recalibration : Recalibration
        From `recalibrate`.
    name : str, optional
        Name in the legend; the method by default.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import truthcal as tc
    >>> fix = tc.recalibrate([0, 1, 1, 0, 1, 0], [0.1, 0.8, 0.7, 0.3, 0.9, 0.6], method="platt")
    >>> display = tc.plots.RecalibrationDisplay(fix).plot(Figure().subplots())
    """

    _KIND = "recalibration"

    def __init__(self, recalibration: Any, name: str | None = None) -> None:
        if not hasattr(recalibration, "comparison"):
            cure = "Pass the result of recalibrate(y_true, y_proba)."
            raise invalid("recalibration", f"must be a Recalibration; got {shown(recalibration)}. {cure}", TypeError)
        self.recalibration, self.name = recalibration, name
        self._axis = self._choose_axis("auto")

    def table(self) -> dict[str, NDArray[np.float64]]:
        """Return predictions and recalibrated probabilities as columns of equal length."""
        p = np.unique(np.clip(self._axis.at(np.linspace(0.0, 1.0, _POINTS)), 0.0, 1.0))
        return {"y_proba": p, "recalibrated": self.recalibration(p)}

    def plot(
        self, ax: "Axes | None" = None, *, name: str | None = None, scale: str = "auto", legend: bool = True
    ) -> Self:
        """Plot the stored recalibration.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default.
        name : str, optional
            Name in the legend, instead of the Display's own.
        scale : {"auto", "linear", "log", "logit"}, default "auto"
            Scale of both axes; "auto" is log or logit for rare events or non-events.
        legend : bool, default True
            Whether to draw a legend.

        Returns
        -------
        Display
            Itself, with `ax_` and `figure_`.
        """
        check_flag(legend, "legend")
        self._axis = self._choose_axis(check_choice(scale, "scale", SCALES))
        ax = draw.axes_for(ax, _SIZE)
        slot = len(draw.tagged(ax, self._KIND, "curve"))
        if slot == 0:
            prepare_square(ax, self._KIND)
        style, values = draw.model_style(slot), self.table()
        (line,) = ax.plot(*values.values(), color=style.color, linestyle=style.line, linewidth=1.8, zorder=3)
        draw.tag(line, self._KIND, slot, "curve")
        label = name or self.name or str(self.recalibration.method)
        draw.attach(line, draw.Drawn(self, label))
        line.set_label(draw.literal(label))
        self._axis.apply(ax, x="prediction", y="recalibrated probability")
        entries = draw.model_entries(ax, self._KIND, markers=False)
        lines = draw.draw_legend(ax, self._KIND, entries, self._axis.notes) if legend else 0
        draw.resize_new_figure(ax, _SIZE[1], lines)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self

    def _choose_axis(self, scale: str) -> ProbabilityAxis:
        """Choose an axis for the predictions that the recalibration was fitted to, if they are known."""
        whole = self.recalibration.assessment
        if whole is None:
            return ProbabilityAxis("linear")
        points = whole._summary.points()
        q = self.recalibration(points.p)
        shown = float(np.min(q)), float(np.max(q))
        return ProbabilityAxis.choose([Predictions(points.p, points.weight, points.n, shown)], scale)
