"""Plot of errors on the way from one set of predictions to another."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import check_proba, invalid
from truthcal.core.params import check_choice, check_flag, check_whole
from truthcal.measures.registry import MEASURES
from truthcal.plots import drawing as draw
from truthcal.plots.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND, _SIZE = "blend", (6.0, 3.8)


class BlendDisplay(Display):
    """Plot of the errors of blends (1 - share) * first + share * second of two predictions of the same outcomes.

    It shows whether a blend of two models is better than both, and what shrinking predictions towards their mean does.
    Values of measures on different scales (see `MEASURES`) can be compared along a line, not between lines.

    Parameters
    ----------
    share : ndarray
        Shares of the second predictions.
    errors : dict
        For each name in the legend, the errors at these shares.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import truthcal as tc
    >>> y, ax = [0, 1, 0, 1], Figure().subplots()
    >>> display = tc.plots.BlendDisplay.from_predictions(y, [0.5] * 4, y, measures=["smcal"], n_shares=5, ax=ax)
    >>> print(display.table()["smcal"])
    [0.       0.046875 0.0625   0.046875 0.      ]
    """

    def __init__(self, share: NDArray[np.float64], errors: Mapping[str, NDArray[np.float64]]) -> None:
        self.share, self.errors, self.name = share, dict(errors), None

    @classmethod
    def from_predictions(
        cls,
        y_true: object,
        first: object,
        second: object = None,
        *,
        measures: Iterable[str] | Mapping[str, Callable[[Any, Any], float]] = ("atb", "smcal"),
        n_shares: int = 41,
        ax: "Axes | None" = None,
        legend: bool = True,
    ) -> Self:
        """Plot two sets of predictions of the same outcomes.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Outcomes, as for `atb`.
        first, second : array-like of shape (n,)
            Predictions of two models. By default the second predict the mean of the first for all rows.
        measures : iterable of str or mapping, default ("atb", "smcal")
            Names in `MEASURES`; or a dict from names in the legend to functions ``f(y_true, y_proba) -> float``, for
            example to use weights.
        n_shares : int, default 41
            Number of blends, from the first predictions to the second, at least 2. Each is measured anew.
        ax, legend
            As for `plot`.

        Returns
        -------
        BlendDisplay
            With `ax_` and `figure_`.
        """
        start = check_proba(first, "first").astype(np.float64)
        end = np.full(len(start), np.mean(start)) if second is None else check_proba(second, "second")
        if len(end) != len(start):
            raise invalid("second", f"must have as many rows as `first`, {len(start):,}; got {len(end):,}.")
        share = np.linspace(0.0, 1.0, check_whole(n_shares, "n_shares", 2))
        blends = [(1.0 - part) * start + part * end for part in share]
        functions = _measure_functions(measures)
        errors = {name: np.array([float(f(y_true, p)) for p in blends]) for name, f in functions.items()}
        return cls(share, errors).plot(ax, legend=legend)

    def table(self) -> dict[str, NDArray[np.float64]]:
        """Return the share of the second predictions, and a column of errors for each measure."""
        return {"share": self.share, **self.errors}

    def plot(self, ax: "Axes | None" = None, *, legend: bool = True) -> Self:
        """Plot the stored errors.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default.
        legend : bool, default True
            Whether to draw a legend.

        Returns
        -------
        BlendDisplay
            Itself, with `ax_` and `figure_`.
        """
        check_flag(legend, "legend")
        ax = draw.axes_for(ax, _SIZE)
        for name, values in self.errors.items():
            slot = len(draw.tagged(ax, _KIND, "curve"))
            style = draw.model_style(slot)
            (line,) = ax.plot(self.share, values, color=style.color, linestyle=style.line, linewidth=1.8)
            line.set_label(draw.literal(name))
            draw.tag(line, _KIND, slot, "curve")
        ax.set(xlabel="share of the second predictions", xlim=(0.0, 1.0))
        if ax.dataLim.y0 >= 0.0:
            ax.set_ylim(bottom=0.0, auto=None)  # still adapts to further lines
        draw.set_label(ax, "y", "error")
        draw.hide_frame(ax)
        lines = draw.draw_legend(ax, _KIND, draw.model_entries(ax, _KIND), []) if legend else 0
        draw.resize_new_figure(ax, _SIZE[1], lines)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self


def _measure_functions(measures: Any) -> dict[str, Callable[[Any, Any], float]]:
    """Return the functions to plot by their names."""
    if isinstance(measures, Mapping):
        return dict(measures)
    names = [measures] if isinstance(measures, str) else list(measures)
    return {name: MEASURES[check_choice(name, "measures", tuple(MEASURES))].function for name in names}
