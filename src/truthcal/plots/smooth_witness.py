"""Plot of the function that attains the smooth calibration error, and of the threshold functions it is a mean of."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.frame_columns import named_columns_of_method
from truthcal.core.params import check_whole
from truthcal.measures.smooth import smcal_witness
from truthcal.plots import drawing as draw
from truthcal.plots.display import ModelDisplay, refuse_rows
from truthcal.plots.probability_axes import ProbabilityAxis
from truthcal.results.measures import SmoothWitness

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Predictions at which functions are drawn, and the largest number of predictions with a marker of their own.
_POINTS, _MARKED = 2001, 60


class SmoothWitnessDisplay(ModelDisplay):
    """Plot of the weight function that attains the smooth calibration error, by prediction.

    smCal is the mean of the weight times (prediction - outcome), and no 1-Lipschitz function with values in [-1, 1]
    gives a larger one. Where the function rises, predictions further up are too high compared with those below.

    Parameters
    ----------
    witness : SmoothWitness
        From `smcal_witness`.
    name : str, optional
        Name in the legend.
    n_thresholds : int, default 0
        If positive, also draw the mean of that many threshold functions sign(weight - level), whose levels are evenly
        spaced in [-1, 1], and one of them. The mean differs from the weight function by at most 1 / n_thresholds: this
        is why two bins, averaged over their threshold, are enough for ATB (Hartline, Hu, Wu 2025, Figure 1). Not shown
        for several models in the same axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import truthcal as tc
    >>> witness = tc.smcal_witness([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3])
    >>> display = tc.plots.SmoothWitnessDisplay(witness, n_thresholds=20).plot(Figure().subplots())
    """

    _KIND, _SIZE, _ALONE = "witness", (6.0, 3.8), "weight function of smCal"

    def __init__(self, witness: SmoothWitness, name: str | None = None, *, n_thresholds: int = 0) -> None:
        refuse_rows(witness, "witness", SmoothWitness, type(self))
        self.witness, self.name = witness, name
        self.n_thresholds = check_whole(n_thresholds, "n_thresholds", 0)

    @classmethod
    @named_columns_of_method
    def from_predictions(
        cls,
        y_true: object,
        y_proba: object = None,
        *,
        sample_weight: object = None,
        pos_label: object = None,
        name: str | None = None,
        ax: "Axes | None" = None,
        n_thresholds: int = 0,
        **options: Any,
    ) -> Self:
        """Plot outcomes and predictions.

        Parameters
        ----------
        y_true, y_proba, sample_weight, pos_label
            As for `smcal_witness`.
        name, n_thresholds
            As for the class.
        ax, **options
            As for `plot`.

        Returns
        -------
        SmoothWitnessDisplay
            With `ax_` and `figure_`.
        """
        cls._refuse_unknown(options)
        witness = smcal_witness(y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label)
        return cls(witness, name, n_thresholds=n_thresholds).plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the different predictions `q` and the function `f` there."""
        return self.witness.table()

    def _prepare(self, ax: "Axes") -> None:
        ax.set_ylim(-1.08, 1.08)
        draw.set_label(ax, "y", "weight of prediction - outcome")
        draw.hide_frame(ax)
        draw.reference_line(ax.axhline(0.0), self._KIND, "zero")

    def _draw_band(self, ax: "Axes") -> "Artist | None":
        """Draw one threshold function and the mean of all. Returns the mean."""
        if not self.n_thresholds:
            return None
        at = self._points()
        weight = self.witness(at)
        levels = (2.0 * np.arange(self.n_thresholds) + 1.0) / self.n_thresholds - 1.0
        level = levels[np.argmin(np.abs(levels - (np.min(weight) + np.max(weight)) / 2.0))]
        (step,) = ax.plot(
            at, np.where(weight >= level, 1.0, -1.0), color=draw.model_style(1).color, linewidth=draw.THIN
        )
        step.set(linestyle=draw.model_style(1).line, label=f"_one of them: sign(weight - {level:.3g})")
        draw.tag(step, self._KIND, 0, "band")
        mean = 2.0 * np.searchsorted(levels, weight, side="right") / self.n_thresholds - 1.0
        (staircase,) = ax.plot(at, mean, color=draw.ink(), linewidth=0.8)
        staircase.set_label(f"_mean of {self.n_thresholds:,} threshold functions")
        return staircase

    def _points(self) -> NDArray[np.float64]:
        """Return many predictions up to the largest one, after which functions are constant."""
        return np.append(np.linspace(0.0, self.witness.q[-1], _POINTS), 1.0)

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        style, q = draw.model_style(slot), self.witness.q
        at = np.unique([0.0, *q, 1.0]) if len(q) < _POINTS else self._points()
        (line,) = ax.plot(at, self.witness(at), color=style.color, linestyle=style.line, linewidth=1.8, zorder=3)
        if len(q) <= _MARKED:
            points = draw.draw_markers(ax, q, self.witness.f, np.ones(len(q), bool), style, area=24)
            draw.tag(points, self._KIND, slot, "points")
        return line

    def _set_limits(self, ax: "Axes", displays: list[Any]) -> None:
        largest = max(float(display.witness.q[-1]) for display in displays)
        ProbabilityAxis("linear", end=1.04 * largest if 0.0 < largest < 0.5 else 1.0).apply(
            ax, x="predicted probability"
        )

    def _notes(self, ax: "Axes") -> draw.Entries:
        thresholds: list[Any] = draw.tagged(ax, self._KIND, "band")[::-1]
        return [(line, str(line.get_label()).removeprefix("_")) for line in thresholds]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        return []
