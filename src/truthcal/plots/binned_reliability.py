"""Reliability diagram in bins, with the range of calibrated predictions in each bin."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.frame_columns import named_columns_of_method
from truthcal.core.params import check_choice
from truthcal.core.summarize import summarize
from truthcal.measures.binned import DEFAULT_BINS
from truthcal.measures.reliability import reliability_curve_of
from truthcal.plots import drawing as draw
from truthcal.plots.display import ProbabilityDisplay, own_band, refuse_rows
from truthcal.plots.probability_axes import Predictions, prepare_square
from truthcal.results.curves import ReliabilityCurve
from truthcal.results.text import count, percent, plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_WIDTH = 5.2
# Areas of the smallest and the largest marker, in square points.
_SMALL, _LARGE = 12.0, 110.0
_BAR_ALPHA = 0.22
# Minimum rows per bin for the default number of bins.
_ROWS = 10


class BinnedReliabilityDisplay(ProbabilityDisplay):
    """Reliability diagram in bins, each with the interval in which calibrated predictions would be.

    Markers are larger in bins with more rows, filled if the bin is outside its interval and open if it is inside. The
    intervals hold for all bins at once, so that 5% of diagrams of calibrated predictions have a filled marker. The plot
    depends on the choice of bins: `ReliabilityDisplay` needs none.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `reliability_curve` with strategy "quantile" or "uniform". Filled markers need ``simultaneous=True``.
    name : str, optional
        Name in the legend.
    """

    _KIND, _SIZE, _MARKERS, _ALONE = "binned", (_WIDTH, 5.6), True, "observed"

    def __init__(self, curve: ReliabilityCurve, name: str | None = None) -> None:
        refuse_rows(curve, "curve", ReliabilityCurve, type(self))
        if curve.low is None or curve.high is None:
            rule = f'must have strategy "quantile" or "uniform"; got "{curve.strategy}"'
            raise invalid("curve", f"{rule}. Plot it with ReliabilityDisplay.")
        self.curve, self.name = curve, name

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
        strategy: str = "quantile",
        n_bins: int | None = None,
        confidence_level: float = 0.95,
        **options: Any,
    ) -> Self:
        """Plot outcomes and predictions, or a `Sketch` in place of both.

        Parameters
        ----------
        y_true, y_proba, sample_weight, pos_label, confidence_level
            As for `reliability_curve`.
        name, ax, **options
            As for `ReliabilityDisplay.from_predictions`.
        strategy : {"quantile", "uniform"}, default "quantile"
            Bins of about equal weight, or of equal width.
        n_bins : int, optional
            Number of bins. By default 15, or fewer so that each has about 10 rows, but at least 2.

        Returns
        -------
        BinnedReliabilityDisplay
            With `ax_` and `figure_`.
        """
        cls._refuse_unknown(options)
        check_choice(strategy, "strategy", ("quantile", "uniform"))
        summary = summarize(y_true, y_proba, sample_weight, pos_label)
        if n_bins is None:
            n_bins = min(DEFAULT_BINS, max(summary.n // _ROWS, 2))
        curve = reliability_curve_of(summary, strategy, n_bins, confidence_level, simultaneous=True)
        return cls(curve, name).plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the curve, with a row for each bin that holds rows."""
        return self.curve.table()

    def _prepare(self, ax: "Axes") -> None:
        prepare_square(ax, self._KIND)

    def _set_limits(self, ax: "Axes", displays: list[Any]) -> None:
        super()._set_limits(ax, displays)
        self._axis.apply(ax, x="predicted probability", y="observed frequency")

    def predictions(self) -> Predictions:
        """Return the mean predictions of bins, all of which are shown with their frequencies and intervals."""
        curve = self.curve
        values = np.concatenate([curve.mean_proba, curve.mean_true, *self._intervals()])
        shown = float(np.min(values)), float(np.max(values))
        return Predictions(curve.mean_proba, curve.weight, curve.count, shown)

    def _height(self, ax: "Axes") -> float:
        return _WIDTH + 0.05

    def _draw_band(self, ax: "Axes") -> "Artist":
        bars = ax.vlines(self.curve.mean_proba, *self._intervals(), color=draw.ink(), linewidth=5.0, label="_ranges")
        bars.set(alpha=_BAR_ALPHA, zorder=2)
        return bars

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        curve, style, (low, high) = self.curve, draw.model_style(slot), self._intervals()
        x, y = curve.mean_proba, curve.mean_true
        (line,) = ax.plot(x, y, color=style.color, linestyle=style.line, linewidth=draw.THIN, alpha=0.6, zorder=3)
        area = _SMALL + (_LARGE - _SMALL) * curve.count / np.max(curve.count)
        markers = draw.draw_markers(ax, x, y, self.curve.simultaneous & ((y < low) | (y > high)), style, area)
        draw.tag(markers, self._KIND, slot, "points")
        return line

    def _intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self.curve.low is not None and self.curve.high is not None  # noqa: PT018  checked by __init__
        return self.curve.low, self.curve.high

    def _word_sizes(self) -> str:
        """Word how many rows the bins hold and, if their numbers differ, what the sizes of markers mean."""
        low, high, bins = int(np.min(self.curve.count)), int(np.max(self.curve.count)), len(self.curve.count)
        rows = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        words = f"{count(bins, 'bin')}, {rows} {plural(high, 'row')}{' each' * (bins > 1)}"
        return words if low == high else f"larger: more rows ({words})"

    def _notes(self, ax: "Axes") -> draw.Entries:
        level, color = percent(self.curve.confidence_level), draw.model_style(0).color
        (bars,) = draw.tagged(ax, self._KIND, "band")
        large = draw.filled_marker(color, markersize=10.0, markerfacecolor="none")
        larger = (large, self._word_sizes())
        if not self.curve.simultaneous:
            return [(bars, f"{level} range of each bin by itself, if calibrated"), larger]
        outside = (draw.filled_marker(color), "filled: outside its range")
        return [(bars, f"{level} range of all bins at once, if calibrated"), outside, larger]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        levels = [display.curve.confidence_level if display.curve.simultaneous else None for display in displays]
        filled = draw.filled_marker(draw.ink())
        return [(filled, f"filled: outside {own_band('range', levels)}")] if any(levels) else []
