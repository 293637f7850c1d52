"""The reliability diagram in bins, for those who must, with what chance would show in each bin."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import check_choice
from truthcal.measures.atb import summary_given
from truthcal.measures.binned import DEFAULT_BINS
from truthcal.measures.curves import reliability_curve_of
from truthcal.plots import _drawing as draw
from truthcal.plots._display import ModelDisplay, common_level
from truthcal.plots._square import Reach, extent_of, limits_of, unit_square
from truthcal.results.curves import ReliabilityCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_KIND = "binned"
_WIDTH = 5.2
# Areas of the smallest and the largest marker, in square points.
_SMALL, _LARGE = 12.0, 110.0
_BAR_ALPHA = 0.22
# Rows for each bin, at least, unless the user wants more bins.
_ROWS = 10


class BinnedReliabilityDisplay(ModelDisplay):
    """Observed frequencies in bins, each with the interval that calibrated predictions would stay in.

    A larger marker has more rows. It is filled where the bin is outside its interval and open where it is inside. Bins
    are a choice, and the picture changes with them: `ReliabilityDisplay` has none.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `reliability_curve` with strategy "quantile" or "uniform".
    name : str, optional
        What the legend calls it.
    """

    _KIND, _SIZE, _MARKERS, _ALONE = _KIND, (_WIDTH, 5.6), True, "observed"

    def __init__(self, curve: ReliabilityCurve, name: str | None = None) -> None:
        if curve.low is None or curve.high is None:
            raise ValueError(
                f'`curve` must have strategy "quantile" or "uniform"; got "{curve.strategy}". '
                "Draw it with ReliabilityDisplay."
            )
        self.curve, self.name = curve, name

    @classmethod
    def from_predictions(
        cls,
        y_true: object,
        y_proba: object = None,
        *,
        sample_weight: object = None,
        pos_label: object = None,
        name: str | None = None,
        ax: "Axes | None" = None,
        strategy: str = "quantile",
        n_bins: int | None = None,
        confidence_level: float = 0.95,
        **options: Any,
    ) -> Self:
        """Draw from outcomes and predictions, or from a `Sketch` in place of both.

        Parameters
        ----------
        y_true, y_proba, sample_weight, pos_label
            As for `reliability_curve`.
        name : str, optional
            What the legend calls it.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. Several models can be drawn into the same axes.
        strategy : {"quantile", "uniform"}, default "quantile"
            Bins of about equal weight, or of equal width.
        n_bins : int, optional
            Number of bins. By default 15, or fewer so that there are about 10 rows for each, and at least 2.
        confidence_level
            As for `reliability_curve`.
        **options
            As for `plot`.

        Returns
        -------
        BinnedReliabilityDisplay
            With `ax_` and `figure_`.
        """
        check_choice(strategy, "strategy", ("quantile", "uniform"))
        summary = summary_given(y_true, y_proba, sample_weight, pos_label)
        if n_bins is None:
            n_bins = min(DEFAULT_BINS, max(summary.n // _ROWS, 2))
        curve = reliability_curve_of(summary, strategy, n_bins, confidence_level)
        return cls(curve, name).plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of the curve: a row for each bin that holds rows."""
        return self.curve.table()

    def _prepare(self, ax: "Axes") -> None:
        unit_square(ax, _KIND)

    def _fit(self, ax: "Axes") -> None:
        """Axes that end above all models."""
        ends = limits_of(extent_of(each.display.reach() for each in draw.drawn(ax, _KIND)))
        ax.set(xlim=ends, ylim=ends)

    def reach(self) -> Reach:
        """The largest mean prediction of a bin, and the largest frequency and end of an interval."""
        largest = float(np.max(self.curve.mean_proba))
        return Reach(largest, max(largest, float(np.max(self.curve.mean_true)), float(np.max(self._ends()[1]))))

    def _height(self, ax: "Axes") -> float:
        return _WIDTH + 0.05

    def _draw(self, ax: "Axes", slot: int) -> "Line2D":
        curve, style = self.curve, draw.style_of(slot)
        low, high = self._ends()
        x, y = curve.mean_proba, curve.mean_true
        self._draw_ranges(ax, slot)
        (line,) = ax.plot(x, y, color=style.color, linestyle=style.line, linewidth=draw.THIN, alpha=0.6, zorder=3)
        out = (y < low) | (y > high)
        area = _SMALL + (_LARGE - _SMALL) * curve.count / np.max(curve.count)
        points = ax.scatter(x, y, s=area, marker=style.marker, linewidths=1.2, zorder=4, label="_points")
        points.set_facecolor([style.color if each else "none" for each in out])
        points.set_edgecolor(style.color)
        draw.mark(points, _KIND, slot, "points")
        return line

    def _draw_ranges(self, ax: "Axes", slot: int) -> None:
        """The intervals, where there is one model; for several, filled markers tell all the same."""
        if slot:
            draw.hide(ax, _KIND, "band")
            return
        ranges = ax.vlines(self.curve.mean_proba, *self._ends(), color=draw.ink(), linewidth=5.0, label="_ranges")
        ranges.set(alpha=_BAR_ALPHA, zorder=2)
        draw.mark(ranges, _KIND, slot, "band")

    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self.curve.low is not None and self.curve.high is not None  # noqa: PT018  refused by __init__
        return self.curve.low, self.curve.high

    def _sizes(self) -> str:
        least, most, bins = int(np.min(self.curve.count)), int(np.max(self.curve.count)), len(self.curve.count)
        rows = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        return f"{bins:,} bin{'s' * (bins > 1)}, {rows} row{'s' * (most > 1)}{' each' * (bins > 1)}"

    def _notes(self, ax: "Axes") -> draw.Entries:
        level, color = self.curve.confidence_level, draw.style_of(0).color
        (ranges,) = draw.marked(ax, _KIND, "band")
        return [
            (ranges, f"{100 * level:g}% range if calibrated"),
            (draw.full_marker(color), f"filled: outside ({100 * (1.0 - level):.3g}% by chance)"),
            (draw.full_marker(color, markersize=10.0, markerfacecolor="none"), f"larger: more rows ({self._sizes()})"),
        ]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        level = common_level(display.curve.confidence_level for display in displays)
        words = (
            "filled: outside its own range"
            if level is None
            else f"filled: outside its own {100 * level:g}% range ({100 * (1.0 - level):.3g}% by chance)"
        )
        return [(draw.full_marker(draw.ink()), words)]
