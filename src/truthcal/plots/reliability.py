"""The reliability diagram without bins: isotonic regression, its consistency band, and where predictions are."""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal._curves import ConsistencyBand, ReliabilityCurve
from truthcal._parameters import check_rng
from truthcal.measures.atb import summary_given
from truthcal.measures.curves import consistency_band_of, reliability_curve_of
from truthcal.plots import _drawing as draw
from truthcal.plots._display import ModelDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Array = NDArray[np.float64]

_KIND = "reliability"
DENSITY_BINS = 50
# A strip of density and the space above it, in units of the y axis; the least that shows that there are rows at all.
_STRIP, _GAP, _LEAST = 0.075, 0.018, 0.05
# Half the width of a mark for a curve that is one point, in units of the x axis.
_POINT = 0.006
_WIDTH = 5.2


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
        From ``reliability_curve(..., strategy="uniform", n_bins=50)``, for the strip.
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

    _KIND, _SIZE = _KIND, (_WIDTH, 5.8)

    def __init__(
        self,
        curve: ReliabilityCurve,
        band: ConsistencyBand | None = None,
        density: ReliabilityCurve | None = None,
        name: str | None = None,
    ) -> None:
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
            reliability_curve_of(summary, "uniform", DENSITY_BINS),
            name,
        )
        return display.plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of the curve; `band.table()` and `density.table()` have those of the others."""
        return self.curve.table()

    def _prepare(self, ax: "Axes") -> None:
        unit_square(ax, _KIND)

    def _draw(self, ax: "Axes", slot: int, name: str | None) -> None:
        self._draw_band(ax, slot)
        self._draw_curve(ax, slot, name)
        bottom = self._draw_density(ax, slot)
        ax.set_ylim(min(bottom, ax.get_ylim()[0]), 1.02)

    def _height(self, ax: "Axes") -> float:
        return (_WIDTH - 0.65) * (1.02 - ax.get_ylim()[0]) / 1.04 + 0.7

    def _draw_band(self, ax: "Axes", slot: int) -> None:
        """The band, where there is one model; for several, thick lines tell all the same."""
        if slot:
            draw.hide(ax, _KIND, "band")
        if slot or self.band is None:
            return
        q, low, high = _widened(self.band.q, self.band.low, self.band.high)
        area = ax.fill_between(q, low, high, color=draw.ink(), alpha=draw.BAND_ALPHA, linewidth=0, zorder=1)
        draw.mark(area, _KIND, slot, "band")

    def _draw_curve(self, ax: "Axes", slot: int, name: str | None) -> None:
        style, line = draw.style_of(slot), _Polyline.of(self.curve)
        alone = np.ptp(line.x) < 2.0 * _POINT
        (thin,) = ax.plot(
            line.x,
            line.y,
            color=style.color,
            linestyle=style.line,
            marker=style.marker if alone else None,
            linewidth=draw.THIN,
            zorder=3,
        )
        thin.set_label(draw.called(name, slot, "observed"))
        draw.mark(thin, _KIND, slot, "curve")
        if self.band is None:
            return
        x, y = line.outside(self.band)
        (thick,) = ax.plot(x, y, color=style.color, linewidth=draw.THICK, solid_capstyle="round", zorder=4)
        thick.set_label("_outside")
        draw.mark(thick, _KIND, slot, "outside")

    def _draw_density(self, ax: "Axes", slot: int) -> float:
        """How predictions are spread, in a strip of its own below zero. Returns where it ends."""
        top = -_GAP - len(draw.marked(ax, _KIND, "density")) * _STRIP
        if self.density is None:
            return top
        bins = len(self.density.weight) + self.density.empty
        height = np.zeros(bins)
        height[np.rint(self.density.left * bins).astype(int)] = _LEAST + (1 - _LEAST) * (
            self.density.weight / np.max(self.density.weight)
        )
        base = top - _STRIP + _GAP
        strip = ax.stairs(
            base + (_STRIP - _GAP) * height,
            np.arange(bins + 1) / bins,
            baseline=base,
            fill=True,
            color=draw.style_of(slot).color,
            alpha=0.75,
            linewidth=0,
            zorder=2,
        )
        draw.mark(strip, _KIND, slot, "density")
        return base - 0.008

    def _notes(self, ax: "Axes") -> draw.Entries:
        """What grey and thick mean."""
        if self.band is None:
            return []
        level, rest = self.band.confidence_level, 1.0 - self.band.confidence_level
        shown = [artist for artist in draw.marked(ax, _KIND, "band") if artist.get_visible()]
        if not shown:
            return [(draw.thick_line(draw.ink()), f"outside its own {100 * level:g}% band")]
        thick = draw.thick_line(draw.style_of(0).color)
        return [
            (shown[0], f"{100 * level:g}% band if calibrated"),
            (thick, f"outside that ({100 * rest:.3g}% by chance)"),
        ]


def unit_square(ax: "Axes", kind: str) -> None:
    """Axes of probabilities, both ways, with the diagonal on which predictions are right."""
    ax.set(xlabel="predicted probability", ylabel="observed frequency", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ticks = np.arange(6) / 5
    ax.set_xticks(ticks)
    ax.set_yticks(ticks)
    ax.set_aspect("equal", anchor="N")  # room to spare goes below, where the legend is
    draw.plain_look(ax)
    (diagonal,) = ax.plot([0, 1], [0, 1], color=draw.ink(), alpha=draw.RULE_ALPHA, linewidth=0.8, zorder=2)
    diagonal.set_label("_diagonal")
    draw.mark(diagonal, kind, 0, "diagonal")


class _Polyline(NamedTuple):
    """The isotonic curve as it is drawn: flat over each pool, straight from pool to pool."""

    x: _Array
    y: _Array

    @classmethod
    def of(cls, curve: ReliabilityCurve) -> Self:
        return cls(np.stack([curve.left, curve.right], axis=1).ravel(), np.repeat(curve.mean_true, 2))

    def outside(self, band: ConsistencyBand) -> tuple[_Array, _Array]:
        """The parts that lie outside the band, with gaps (nan) between."""
        x = np.union1d(self.x, np.clip(band.q, self.x[0], self.x[-1]))
        y = np.interp(x, self.x, self.y)
        out = (y < np.interp(x, band.q, band.low) - 1e-12) | (y > np.interp(x, band.q, band.high) + 1e-12)
        parts_x, parts_y = [], []
        for run in np.split(np.arange(len(x)), np.flatnonzero(np.diff(out)) + 1):
            if out[run[0]]:
                own_x, own_y = _widened(x[run], y[run])
                parts_x += [own_x, [np.nan]]
                parts_y += [own_y, [np.nan]]
        return np.concatenate([[], *parts_x]), np.concatenate([[], *parts_y])


def _widened(x: _Array, *others: _Array) -> tuple[_Array, ...]:
    """A single point as a short line, which can be seen."""
    if len(x) > 1:
        return x, *others
    return np.array([x[0] - _POINT, x[0] + _POINT]), *(np.repeat(other, 2) for other in others)
