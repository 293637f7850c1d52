"""Plot of the cumulative bias curve, which ATB integrates, with the band of calibrated predictions."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.summarize import summarize
from truthcal.measures.bias_curve import bias_band_of, cumulative_bias_curve_of
from truthcal.plots import drawing as draw
from truthcal.plots.display import ProbabilityDisplay, Rows, own_band, refuse_rows
from truthcal.plots.probability_axes import Predictions, ProbabilityAxis
from truthcal.results.curves import BiasBand, BiasCurve
from truthcal.results.text import percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_Array = NDArray[np.float64]

# A long curve is drawn by the lowest and the highest point in each of this many columns, each as wide as the line. More
# would only make files larger.
_COLUMNS = 240


class BiasCurveDisplay(ProbabilityDisplay):
    """Plot of the bias of all predictions up to q against q: the curve that ATB integrates, with a band for chance.

    Where the curve rises, predictions are too high; where it falls, too low. The whole curve of calibrated predictions
    stays in the band with the band's probability; the curve is drawn thick where it is outside.

    Parameters
    ----------
    curve : BiasCurve
        From `cumulative_bias_curve`.
    band : BiasBand, optional
        From `bias_band`.
    name : str, optional
        Name in the legend.
    """

    _KIND, _SIZE, _ALONE = "bias", (6.4, 4.4), "cumulative bias"

    def __init__(self, curve: BiasCurve, band: BiasBand | None = None, name: str | None = None) -> None:
        refuse_rows(curve, "curve", BiasCurve, type(self))
        self.curve, self.band, self.name = curve, band, name

    @classmethod
    def _of(cls, rows: Rows, confidence_level: float, n_resamples: int, rng: Any) -> Self:
        summary = summarize(*rows)
        band = bias_band_of(summary, confidence_level, n_resamples, rng)
        return cls(cumulative_bias_curve_of(summary), band)

    def table(self) -> dict[str, NDArray[Any]]:
        """Return all columns of the curve: `q`, `bias`, `count` and `weight`."""
        return self.curve.table()

    def _prepare(self, ax: "Axes") -> None:
        draw.hide_frame(ax)
        draw.reference_line(ax.axhline(0.0), self._KIND, "zero")
        draw.note_above(ax, ("rising: predictions too high", "falling: too low"), "bias-note", gap="      ")

    def _draw_band(self, ax: "Axes") -> "Artist | None":
        if self.band is None:
            return None
        band = self.band.table()
        return draw.shade(ax, band["q"], band["low"], band["high"])

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        style, (x, y) = draw.model_style(slot), _bias_curve_corners(self.curve, self._axis)
        (thin,) = ax.plot(x, y, color=style.color, linestyle=style.line, linewidth=draw.THIN, zorder=3)
        if self.band is None:
            return thin
        x, y = _bias_beyond_band(x, y, self.band.limit)
        (thick,) = ax.plot(x, y, color=style.color, linewidth=draw.THICK, solid_capstyle="round", zorder=4)
        thick.set_label("_outside")
        draw.tag(thick, self._KIND, slot, "outside")
        return thin

    def _set_limits(self, ax: "Axes", displays: list[Any]) -> None:
        """Set limits that hold all curves and bands, with some height even if all values are zero."""
        from truthcal.plots.ticks import set_unit_ticks

        super()._set_limits(ax, displays)
        self._axis.apply(ax, x="predicted probability")
        unit = displays[0].curve.unit
        draw.set_label(ax, "y", f"bias of all predictions up to here{unit.per and f',{unit.per}'}")
        set_unit_ticks(ax.yaxis, unit)
        extremes = [value for display in displays for value in display.extremes()]
        low, high = min(extremes), max(extremes)
        margin = 0.08 * ((high - low) or 0.1)
        ax.set_ylim(low - margin, high + margin)

    def predictions(self) -> Predictions:
        """Return the distribution of predictions."""
        return Predictions(self.curve.q, self.curve.weight, self.curve.count)

    def extremes(self) -> tuple[float, float]:
        """Return the lowest and the highest value of curve and band."""
        limit = self.band.limit if self.band else 0.0
        return min(float(np.min(self.curve.bias)), -limit), max(float(np.max(self.curve.bias)), limit)

    def _notes(self, ax: "Axes") -> draw.Entries:
        if self.band is None:
            return []
        (area,) = draw.tagged(ax, self._KIND, "band")
        thick = draw.thick_line(draw.model_style(0).color)
        return [(area, f"contains {percent(self.band.confidence_level)} of calibrated curves"), (thick, "outside that")]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        levels = [display.band and display.band.confidence_level for display in displays]
        thick = draw.thick_line(draw.ink())
        return [(thick, f"outside {own_band('band', levels, 'of calibrated curves')}")] if any(levels) else []


def _bias_curve_corners(curve: BiasCurve, axis: ProbabilityAxis) -> tuple[_Array, _Array]:
    """Return the corners of the bias curve from 0 to 1: steps, or straight lines if steps are too many or unknown."""
    q, bias = np.asarray(curve.q, np.float64), curve.bias
    straight = len(q) > _COLUMNS or curve.sketched
    if len(q) > _COLUMNS:
        q, bias = _thin_bias_curve(q, bias, axis)
    start = [0.0, q[0]] if straight else [0.0]
    if not straight:
        before = np.concatenate([[0.0], bias[:-1]])
        q, bias = np.repeat(q, 2), np.stack([before, bias], axis=1).ravel()
    return np.concatenate([start, q, [1.0]]), np.concatenate([np.zeros(len(start)), bias, bias[-1:]])


def _thin_bias_curve(q: _Array, bias: _Array, axis: ProbabilityAxis) -> tuple[_Array, _Array]:
    """Return the lowest and the highest point of the bias curve in each column of the plot, and both ends."""
    column = np.clip((axis.share(q) * _COLUMNS).astype(np.int64), 0, _COLUMNS - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    ends = np.append(starts[1:], len(q))
    selected = [np.array([0, len(q) - 1])]
    for extreme in (np.minimum, np.maximum):
        level = np.repeat(extreme.reduceat(bias, starts), ends - starts)
        at = np.flatnonzero(bias == level)
        selected.append(at[np.unique(column[at], return_index=True)[1]])
    points = np.unique(np.concatenate(selected))
    return q[points], bias[points]


def _bias_beyond_band(x: _Array, y: _Array, limit: float) -> tuple[_Array, _Array]:
    """Return the parts of the bias curve outside the band [-limit, limit], with gaps (nan) between them."""
    position = np.arange(len(x), dtype=np.float64)
    cuts = [position]
    for level in (-limit, limit):
        at = np.flatnonzero((y[:-1] - level) * (y[1:] - level) < 0.0)
        cuts.append(at + (level - y[at]) / (y[at + 1] - y[at]))
    positions = np.unique(np.concatenate(cuts))
    x, y = np.interp(positions, position, x), np.interp(positions, position, y)
    size = np.abs(y) + 1e-12 * limit  # rounding must not put a cut inside
    out = (np.minimum(size[:-1], size[1:]) >= limit) & (np.maximum(size[:-1], size[1:]) > limit * (1.0 + 1e-9))
    before, after = np.append(False, out), np.append(out, False)
    outside, last = np.flatnonzero(before | after), (before & ~after)[before | after]
    gaps = np.flatnonzero(last) + 1
    return np.insert(x[outside], gaps, np.nan), np.insert(y[outside], gaps, np.nan)
