"""The reliability diagram without bins: isotonic regression, its consistency band, and where predictions are."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import check_rng
from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.measures.atb import summary_given
from truthcal.measures.curves import consistency_band_of, reliability_curve_of
from truthcal.plots import _drawing as draw
from truthcal.plots._display import ModelDisplay, common_level
from truthcal.plots._square import RARE, Reach, extent_of, limits_of, unit_square
from truthcal.results.curves import ConsistencyBand, ReliabilityCurve

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_Array = NDArray[np.float64]

_KIND = "reliability"
# Columns of the strip; and bins of equal weight from which it is drawn if predictions are small, as fine as there are.
DENSITY_BINS = 50
_FINE_BINS = 1000
# A strip of density and the space above it, in extents of the axes; the least that shows that there are rows at all.
_STRIP, _GAP, _LEAST = 0.075, 0.018, 0.05
# A curve narrower than this, in extents of the axes, is a point.
_POINT = 0.012
# Isotonic curves and bands may rise to 1 in the last few rows, where they say nothing: axes are made for the others.
_BULK = 0.99
_WIDTH = 5.2
# Points across of a mark for a pool outside the band that is a single prediction.
_DOT = 5.0


def density_of(summary: Sample | Sketch) -> ReliabilityCurve:
    """How predictions are spread, fine enough for the strip of a `ReliabilityDisplay`."""
    density = reliability_curve_of(summary, "uniform", DENSITY_BINS)
    small = density.left[-1] < RARE
    return reliability_curve_of(summary, "quantile", _FINE_BINS) if small else density


class ReliabilityDisplay(ModelDisplay):
    """What happened where p was predicted: the isotonic (CORP) reliability diagram, with what chance would show.

    On the diagonal, predictions are right. The grey band is where calibrated predictions would have their curve, at
    each point by itself; the curve is drawn thick where it is outside, which by chance alone it is in 5% of places. The
    strip below shows how predictions are spread.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `reliability_curve`, isotonic.
    band : ConsistencyBand, optional
        From `consistency_band`.
    density : ReliabilityCurve, optional
        From ``reliability_curve(..., strategy="uniform", n_bins=50)``, for the strip; if predictions are small, from
        ``strategy="quantile", n_bins=1000``, which is finer.
    name : str, optional
        What the legend calls it.

    Examples
    --------
    >>> import truthcal as tc
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> shown = tc.plots.ReliabilityDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], ax=ax, rng=0)
    >>> shown.ax_.get_ylabel()
    'observed frequency'
    """

    _KIND, _SIZE, _ALONE = _KIND, (_WIDTH, 5.8), "observed"

    def __init__(
        self,
        curve: ReliabilityCurve,
        band: ConsistencyBand | None = None,
        density: ReliabilityCurve | None = None,
        name: str | None = None,
    ) -> None:
        if curve.strategy != "isotonic":
            raise ValueError(
                f'`curve` must have strategy "isotonic"; got "{curve.strategy}". Draw it with BinnedReliabilityDisplay.'
            )
        self.curve, self.band, self.density, self.name = curve, band, density, name

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
        confidence_level: float = 0.95,
        n_resamples: int = 999,
        rng: Any = None,
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
        confidence_level, n_resamples, rng
            As for `consistency_band`.
        **options
            As for `plot`.

        Returns
        -------
        ReliabilityDisplay
            With `ax_` and `figure_`.
        """
        generator = check_rng(rng)
        summary = summary_given(y_true, y_proba, sample_weight, pos_label)
        display = cls(
            reliability_curve_of(summary),
            consistency_band_of(summary, confidence_level, n_resamples, generator),
            density_of(summary),
            name,
        )
        return display.plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of the curve; `band.table()` and `density.table()` have those of the others."""
        return self.curve.table()

    def _prepare(self, ax: "Axes") -> None:
        unit_square(ax, _KIND)

    def _draw(self, ax: "Axes", slot: int) -> "Line2D":
        self._draw_band(ax, slot)
        self._draw_density(ax, slot)
        return self._draw_curve(ax, slot)

    def _fit(self, ax: "Axes") -> None:
        """Axes that end above all models, with strips below zero."""
        extent = extent_of(each.display.reach() for each in draw.drawn(ax, _KIND))
        low, high = limits_of(extent)
        strips: list[Any] = draw.marked(ax, _KIND, "density")
        for place, strip in enumerate(strips):
            base = -extent * (place + 1) * _STRIP
            height = strip.truthcal.display.density_up_to(extent)
            edges = extent * np.arange(len(height) + 1) / len(height)
            strip.set_data(base + extent * (_STRIP - _GAP) * height, edges, base)
            low = base - 0.008 * extent
        ax.set(xlim=limits_of(extent), ylim=(low, high))

    def reach(self) -> Reach:
        """The largest prediction, and the largest frequency and end of the band but for the last few rows."""
        curve = self.curve
        last = min(int(np.searchsorted(np.cumsum(curve.weight), _BULK)), len(curve.weight) - 1)
        values = [float(curve.mean_true[last])]
        if self.band is not None:
            values.append(float(np.interp(curve.mean_proba[last], self.band.q, self.band.high)))
        largest = float(curve.right[-1])
        return Reach(largest, max(largest, *values))

    def _height(self, ax: "Axes") -> float:
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        return (_WIDTH - 0.65) * (high - low) / (right - left) + 0.7

    def _draw_band(self, ax: "Axes", slot: int) -> None:
        """The band, where there is one model; for several, thick lines tell all the same."""
        if slot:
            draw.hide(ax, _KIND, "band")
        if slot or self.band is None:
            return
        q, low, high = self.band.q, self.band.low, self.band.high
        look: dict[str, Any] = {"color": draw.ink(), "alpha": draw.BAND_ALPHA, "zorder": 1}
        if len(q) > 1:
            area: Artist = ax.fill_between(q, low, high, linewidth=0, **look)
        else:  # an area would have no width
            area = ax.vlines(q, low, high, linewidth=8.0, **look)
        draw.mark(area, _KIND, slot, "band")

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        style, curve = draw.style_of(slot), self.curve
        x, y = np.stack([curve.left, curve.right], axis=1).ravel(), np.repeat(curve.mean_true, 2)
        alone = np.ptp(x) < _POINT * extent_of([self.reach()])
        look: dict[str, Any] = {"color": style.color, "linestyle": style.line, "linewidth": draw.THIN, "zorder": 3}
        (thin,) = ax.plot(x, y, marker=style.marker if alone else None, **look)
        if self.band is None:
            return thin
        x, y, points = _outside(curve, self.band)
        (thick,) = ax.plot(x, y, color=style.color, linewidth=draw.THICK, solid_capstyle="round", zorder=4)
        thick.set(marker=style.marker, markersize=_DOT, markevery=points, label="_outside")
        draw.mark(thick, _KIND, slot, "outside")
        return thin

    def _draw_density(self, ax: "Axes", slot: int) -> None:
        """How predictions are spread, in a strip of its own below zero, where `_fit` puts it."""
        if self.density is None:
            return
        look: dict[str, Any] = {"color": draw.style_of(slot).color, "alpha": 0.75, "linewidth": 0, "zorder": 2}
        strip = ax.stairs([0.0], [0.0, 1.0], fill=True, **look)
        draw.mark(strip, _KIND, slot, "density")
        draw.remember(strip, draw.Drawn(self, self.name))

    def density_up_to(self, extent: float) -> _Array:
        """The height of the strip in columns from 0 to `extent`: 1 in the fullest, 0 where nothing was predicted."""
        assert self.density is not None
        left, right = self.density.left, self.density.right
        edges = extent * np.arange(DENSITY_BINS + 1)[:, None] / DENSITY_BINS
        width = np.where(right > left, right - left, 1.0)
        below = np.where(right > left, np.clip((edges - left) / width, 0.0, 1.0), edges > left)
        below[-1] = 1.0
        weight = np.diff(below @ self.density.weight)
        share = weight / np.max(weight)
        height: _Array = np.where(share > 1e-9, _LEAST + (1.0 - _LEAST) * share, 0.0)
        return height

    def _notes(self, ax: "Axes") -> draw.Entries:
        if self.band is None:
            return []
        level = self.band.confidence_level
        (area,) = draw.marked(ax, _KIND, "band")
        return [
            (area, f"{100 * level:g}% band if calibrated"),
            (draw.thick_line(draw.style_of(0).color), f"outside that ({100 * (1.0 - level):.3g}% by chance)"),
        ]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        levels = [display.band and display.band.confidence_level for display in displays]
        if not any(levels):
            return []
        level = common_level(levels)
        words = (
            "outside its own band"
            if level is None
            else f"outside its own {100 * level:g}% band ({100 * (1.0 - level):.3g}% by chance)"
        )
        return [(draw.thick_line(draw.ink()), words)]


def _outside(curve: ReliabilityCurve, band: ConsistencyBand) -> tuple[_Array, _Array, list[int]]:
    """The parts of pools that lie outside the band, with gaps (nan) between, and which of them are single points.

    A pool goes from its smallest to its largest prediction. Between pools nothing was predicted.
    """
    parts_x: list[_Array] = [np.empty(0)]
    parts_y: list[_Array] = [np.empty(0)]
    points, length = [], 0
    for left, right, mean in zip(curve.left, curve.right, curve.mean_true, strict=True):
        x = np.unique(np.concatenate([[left], band.q[(band.q > left) & (band.q < right)], [right]]))
        out = (mean < np.interp(x, band.q, band.low) - 1e-12) | (mean > np.interp(x, band.q, band.high) + 1e-12)
        for run in np.split(np.arange(len(x)), np.flatnonzero(np.diff(out)) + 1):
            if out[run[0]]:
                points += [length] * (len(run) == 1)
                parts_x += [x[run], np.array([np.nan])]
                parts_y += [np.full(len(run), mean), np.array([np.nan])]
                length += len(run) + 1
    return np.concatenate(parts_x), np.concatenate(parts_y), points
