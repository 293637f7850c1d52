"""Reliability diagram without bins: isotonic regression, its consistency band, and the density of predictions."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.summarize import summarize
from truthcal.measures.reliability import consistency_band_of, density_of, reliability_curve_of
from truthcal.plots import drawing as draw
from truthcal.plots.display import ProbabilityDisplay, Rows, own_band, refuse_rows
from truthcal.plots.probability_axes import Predictions, ProbabilityAxis, prepare_square
from truthcal.results.curves import ConsistencyBand, ReliabilityCurve
from truthcal.results.text import percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_Array = NDArray[np.float64]

# Height of a density strip with the space above it, and of all strips together, as shares of the axes; that of the
# space and of a column with few rows, as shares of a strip.
_STRIP, _STRIPS, _GAP, _LOWEST = 0.075, 0.45, 0.24, 0.05
# A curve narrower than this share of the axes is drawn as a point.
_POINT = 0.012
# The last few rows can lift isotonic curves to 1, and the band widens before: the limits of the axes ignore what is
# beyond these shares of the weight.
_BULK, _BAND = 0.99, 0.9
_WIDTH = 5.2
# Columns of a density strip; rounding error of a place on the axis.
_COLUMNS, _ROUNDING = 50, 1e-12
# Marker size, in points, of a pool outside the band that is a single prediction.
_DOT = 5.0


class ReliabilityDisplay(ProbabilityDisplay):
    """Isotonic (CORP) reliability diagram: observed frequency against prediction, with a band for chance.

    Calibrated predictions are on the diagonal. The grey band holds the whole curve of calibrated predictions with the
    band's probability; the curve is drawn thick where it is outside. By chance, this happens anywhere in 5% of diagrams
    of calibrated predictions. The strip below shows the density of predictions.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `reliability_curve`, isotonic.
    band : ConsistencyBand, optional
        From `consistency_band`. Thick lines need ``simultaneous=True``: curves of calibrated predictions often leave a
        band that holds them at each prediction separately.
    density : ReliabilityCurve, optional
        From ``reliability_curve(..., strategy="quantile", n_bins=1000)``, for the strip and the choice of the axis.
    name : str, optional
        Name in the legend.

    Examples
    --------
    >>> import truthcal as tc
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> display = tc.plots.ReliabilityDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.3], ax=ax, rng=0)
    >>> display.ax_.get_ylabel()
    'observed frequency'
    """

    _KIND, _SIZE, _ALONE = "reliability", (_WIDTH, 5.8), "observed"

    def __init__(
        self,
        curve: ReliabilityCurve,
        band: ConsistencyBand | None = None,
        density: ReliabilityCurve | None = None,
        name: str | None = None,
    ) -> None:
        refuse_rows(curve, "curve", ReliabilityCurve, type(self))
        if curve.strategy != "isotonic":
            cure = "Plot it with BinnedReliabilityDisplay."
            raise invalid("curve", f'must have strategy "isotonic"; got "{curve.strategy}". {cure}')
        self.curve, self.band, self.density, self.name = curve, band, density, name

    @classmethod
    def _of(cls, rows: Rows, confidence_level: float, n_resamples: int, rng: Any) -> Self:
        summary = summarize(*rows)
        band = consistency_band_of(summary, confidence_level, n_resamples, rng, simultaneous=True)
        return cls(reliability_curve_of(summary), band, density_of(summary))

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the curve; `band.table()` and `density.table()` return those of the others."""
        return self.curve.table()

    def _prepare(self, ax: "Axes") -> None:
        prepare_square(ax, self._KIND)

    def _set_limits(self, ax: "Axes", displays: list[Any]) -> None:
        """Set limits above all models, and draw their density strips below zero."""
        super()._set_limits(ax, displays)
        axis, low = self._axis, -0.02
        axis.apply(ax, x="predicted probability", y="observed frequency")
        strips: list[Any] = draw.tagged(ax, self._KIND, "density")
        step = min(_STRIP, _STRIPS / max(len(strips), 1))
        for place, strip in enumerate(strips):
            base, height = -(place + 1) * step, strip.truthcal.display.density_on(axis)
            edges = axis.at(np.arange(len(height) + 1) / len(height))
            strip.set_data(axis.at(base + (1.0 - _GAP) * step * height), edges, float(axis.at(base)))
            low = base - 0.008
        if strips:
            ax.set_ylim(float(axis.at(low)))

    def predictions(self) -> Predictions:
        """Return the distribution of predictions, and the frequencies and ends of the band except for the last rows."""
        curve, each = self.curve, self.curve if self.density is None else self.density
        upto = np.cumsum(curve.weight)
        ends = [min(int(np.searchsorted(upto, share)), len(upto) - 1) for share in (1.0 - _BULK, _BULK)]
        shown = [float(curve.mean_true[end]) for end in ends]
        if self.band is not None:
            ends = [min(int(np.searchsorted(upto, share)), len(upto) - 1) for share in (1.0 - _BAND, _BAND)]
            low, high = (
                float(np.interp(curve.mean_proba[end], self.band.q, limit))
                for end, limit in zip(ends, (self.band.low, self.band.high), strict=True)
            )
            shown = [min(shown[0], low), max(shown[1], high)]
        return Predictions(each.mean_proba, each.weight, each.count, (shown[0], shown[1]))

    def _height(self, ax: "Axes") -> float:
        return (_WIDTH - 0.65) * ax.get_data_ratio() + 0.7

    def _draw_band(self, ax: "Axes") -> "Artist | None":
        if self.band is None:
            return None
        q, low, high = self.band.q, self.band.low, self.band.high
        if len(q) > 1:
            return draw.shade(ax, q, low, high)
        # An area of one point has no width.
        return ax.vlines(q, low, high, color=draw.ink(), alpha=draw.BAND_ALPHA, linewidth=8.0, zorder=1)

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        self._draw_density(ax, slot)
        style, curve = draw.model_style(slot), self.curve
        x, y = np.stack([curve.left, curve.right], axis=1).ravel(), np.repeat(curve.mean_true, 2)
        is_point = np.ptp(self._axis.share(x)) < _POINT
        look: dict[str, Any] = {"color": style.color, "linestyle": style.line, "linewidth": draw.THIN, "zorder": 3}
        (thin,) = ax.plot(x, y, marker=style.marker if is_point else None, **look)
        if self.band is None or not self.band.simultaneous:
            return thin
        x, y, points = _pools_outside_band(curve, self.band)
        (thick,) = ax.plot(x, y, color=style.color, linewidth=draw.THICK, solid_capstyle="round", zorder=4)
        thick.set(marker=style.marker, markersize=_DOT, markevery=points, label="_outside")
        draw.tag(thick, self._KIND, slot, "outside")
        return thin

    def _draw_density(self, ax: "Axes", slot: int) -> None:
        """Draw an empty strip for the density of predictions; `_set_limits` fills and places it."""
        if self.density is None:
            return
        look: dict[str, Any] = {"color": draw.model_style(slot).color, "alpha": 0.75, "linewidth": 0, "zorder": 2}
        strip = ax.stairs([0.0], [0.0, 1.0], fill=True, **look)
        draw.tag(strip, self._KIND, slot, "density")
        draw.attach(strip, draw.Drawn(self, self.name))

    def density_on(self, axis: ProbabilityAxis) -> _Array:
        """Return the height of the strip in columns along the axis: 1 in the fullest, 0 without predictions."""
        assert self.density is not None
        left, right = axis.share(self.density.left), axis.share(self.density.right)
        edges = np.arange(_COLUMNS + 1)[:, None] / _COLUMNS
        width = np.where(right > left, right - left, 1.0)
        with np.errstate(over="ignore"):  # widths of 1e-320
            part = np.clip((edges - left) / width, 0.0, 1.0)
        below = np.where(right > left, part, edges > left + _ROUNDING)
        below[-1] = np.maximum(below[-1], left <= 1.0 + _ROUNDING)
        weight = np.diff(below @ self.density.weight)
        share = weight / max(float(np.max(weight)), 1e-300)
        height: _Array = np.where(share > 1e-9, _LOWEST + (1.0 - _LOWEST) * share, 0.0)
        return height

    def _notes(self, ax: "Axes") -> draw.Entries:
        if self.band is None:
            return []
        (area,) = draw.tagged(ax, self._KIND, "band")
        level = percent(self.band.confidence_level)
        if not self.band.simultaneous:
            return [(area, f"{level} band at each point if calibrated")]
        thick = draw.thick_line(draw.model_style(0).color)
        return [(area, f"contains {level} of calibrated curves"), (thick, "outside that")]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        bands = [display.band if display.band and display.band.simultaneous else None for display in displays]
        levels = [band and band.confidence_level for band in bands]
        thick = draw.thick_line(draw.ink())
        return [(thick, f"outside {own_band('band', levels, 'of calibrated curves')}")] if any(levels) else []


def _pools_outside_band(curve: ReliabilityCurve, band: ConsistencyBand) -> tuple[_Array, _Array, list[int]]:
    """Return the parts of the reliability curve outside the band, with gaps (nan), and indices of single points.

    A pool goes from its smallest to its largest prediction. Between pools there are no predictions. At a prediction
    that was merged with others in the band, the limits are those of the next points of the band on both sides.
    """
    parts_x: list[_Array] = [np.empty(0)]
    parts_y: list[_Array] = [np.empty(0)]
    points, length = [], 0
    for left, right, mean in zip(curve.left, curve.right, curve.mean_true, strict=True):
        x = np.unique(np.concatenate([[left], band.q[(band.q > left) & (band.q < right)], [right]]))
        low = np.append(0.0, band.low)[np.searchsorted(band.q, x, side="right")]
        high = np.append(band.high, 1.0)[np.searchsorted(band.q, x)]
        out = (mean < low - 1e-12) | (mean > high + 1e-12)
        for run in np.split(np.arange(len(x)), np.flatnonzero(np.diff(out)) + 1):
            if out[run[0]]:
                points += [length] * (len(run) == 1)
                parts_x += [x[run], np.array([np.nan])]
                parts_y += [np.full(len(run), mean), np.array([np.nan])]
                length += len(run) + 1
    return np.concatenate(parts_x), np.concatenate(parts_y), points
