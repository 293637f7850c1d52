"""The reliability diagram in bins, for those who must, with what chance would show in each bin."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal._curves import ReliabilityCurve
from truthcal._parameters import check_choice
from truthcal.measures.binned import DEFAULT_BINS
from truthcal.measures.curves import reliability_curve
from truthcal.plots import _drawing as draw
from truthcal.plots._display import ModelDisplay
from truthcal.plots.reliability import unit_square

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND = "binned"
_WIDTH = 5.2
# Areas of the smallest and the largest marker, in square points.
_SMALL, _LARGE = 12.0, 110.0
_BAR_ALPHA = 0.22


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

    _KIND, _SIZE, _MARKERS = _KIND, (_WIDTH, 5.6), True

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
        n_bins: int = DEFAULT_BINS,
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
        n_bins, confidence_level
            As for `reliability_curve`.
        **options
            As for `plot`.

        Returns
        -------
        BinnedReliabilityDisplay
            With `ax_` and `figure_`.
        """
        check_choice(strategy, "strategy", ("quantile", "uniform"))
        curve = reliability_curve(
            y_true,
            y_proba,
            strategy=strategy,  # type: ignore[arg-type]  # checked above
            n_bins=n_bins,
            confidence_level=confidence_level,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )
        return cls(curve, name).plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of the curve: a row for each bin that holds rows."""
        return self.curve.table()

    def _prepare(self, ax: "Axes") -> None:
        unit_square(ax, _KIND)

    def _height(self, ax: "Axes") -> float:
        return _WIDTH + 0.05

    def _draw(self, ax: "Axes", slot: int, name: str | None) -> None:
        curve, style = self.curve, draw.style_of(slot)
        low, high = self._ends()
        x, y = curve.mean_proba, curve.mean_true
        self._draw_ranges(ax, slot)
        (line,) = ax.plot(x, y, color=style.color, linestyle=style.line, linewidth=draw.THIN, alpha=0.6, zorder=3)
        line.set_label(draw.called(name, slot, "observed"))
        out = (y < low) | (y > high)
        area = _SMALL + (_LARGE - _SMALL) * curve.count / np.max(curve.count)
        points = ax.scatter(x, y, s=area, marker=style.marker, linewidths=1.2, zorder=4, label="_points")
        points.set_facecolor([style.color if each else "none" for each in out])
        points.set_edgecolor(style.color)
        draw.mark(line, _KIND, slot, "curve")
        draw.mark(points, _KIND, slot, "points")

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
        """What bars, filled and large markers mean."""
        level, rest = self.curve.confidence_level, 1.0 - self.curve.confidence_level
        shown = [artist for artist in draw.marked(ax, _KIND, "band") if artist.get_visible()]
        if not shown:
            return [(draw.full_marker(draw.ink()), f"filled: outside its {100 * level:g}% range")]
        color = draw.style_of(0).color
        return [
            (shown[0], f"{100 * level:g}% range if calibrated"),
            (draw.full_marker(color), f"filled: outside ({100 * rest:.3g}% by chance)"),
            (draw.full_marker(color, markersize=10.0, markerfacecolor="none"), f"larger: more rows ({self._sizes()})"),
        ]
