"""The cumulative bias curve, which ATB integrates, with the band that calibrated predictions stay in."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.params import check_rng
from truthcal.measures.atb import cumulative_bias_curve_of, summary_given
from truthcal.measures.bias_bands import bias_band_of
from truthcal.plots import _drawing as draw
from truthcal.plots._display import ModelDisplay, common_level
from truthcal.plots._square import Reach, extent_of, limits_of
from truthcal.results.curves import BiasBand, BiasCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_Array = NDArray[np.float64]

_KIND = "bias"
# Columns in which a long curve is drawn, by the lowest and the highest point of each: as wide as the line. More would
# only fill files; six curves are 100 kB of SVG.
_COLUMNS = 240


class BiasCurveDisplay(ModelDisplay):
    """The bias of all predictions up to q, as q grows: what ATB integrates, beside how far chance would carry it.

    Where the curve rises, predictions are too high; where it falls, too low. A calibrated curve stays in the band from
    end to end with the band's probability; outside, the curve is drawn thick.

    Parameters
    ----------
    curve : BiasCurve
        From `cumulative_bias_curve`.
    band : BiasBand, optional
        From `bias_band`.
    name : str, optional
        What the legend calls it.
    """

    _KIND, _SIZE, _ALONE = _KIND, (6.4, 4.4), "cumulative bias"

    def __init__(self, curve: BiasCurve, band: BiasBand | None = None, name: str | None = None) -> None:
        self.curve, self.band, self.name = curve, band, name

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
            As for `cumulative_bias_curve`.
        name : str, optional
            What the legend calls it.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. Several models can be drawn into the same axes.
        confidence_level, n_resamples, rng
            As for `bias_band`.
        **options
            As for `plot`.

        Returns
        -------
        BiasCurveDisplay
            With `ax_` and `figure_`.
        """
        generator = check_rng(rng)
        summary = summary_given(y_true, y_proba, sample_weight, pos_label)
        band = bias_band_of(summary, confidence_level, n_resamples, generator)
        return cls(cumulative_bias_curve_of(summary), band, name).plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of the curve, all of them: `q`, `bias`, `count` and `weight`."""
        return self.curve.to_dict()

    def _draw(self, ax: "Axes", slot: int) -> "Line2D":
        self._draw_band(ax, slot)
        return self._draw_curve(ax, slot)

    def _prepare(self, ax: "Axes") -> None:
        from truthcal.plots._ticks import probability_ticks

        ax.set(xlabel="predicted probability")
        draw.label_y(ax, "bias of all predictions up to here")
        probability_ticks(ax, "x")
        ax.ticklabel_format(axis="y", style="plain", useOffset=False)  # a power of ten would be where the note is
        draw.plain_look(ax)
        zero = ax.axhline(0.0, color=draw.ink(), alpha=draw.RULE_ALPHA, linewidth=0.8, label="_zero", zorder=2)
        draw.mark(zero, _KIND, 0, "zero")
        draw.note_above(ax, ("rising: predictions too high", "falling: too low"), f"{_KIND}-note", gap="      ")

    def _draw_band(self, ax: "Axes", slot: int) -> None:
        """The band, where there is one model; for several, thick lines tell all the same."""
        if slot:
            draw.hide(ax, _KIND, "band")
        if slot or self.band is None:
            return
        ends = self.band.table()
        look: dict[str, Any] = {"color": draw.ink(), "alpha": draw.BAND_ALPHA, "linewidth": 0}
        area = ax.fill_between(ends["q"], ends["low"], ends["high"], zorder=1, **look)
        draw.mark(area, _KIND, slot, "band")

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        style, (x, y) = draw.style_of(slot), _drawn(self.curve)
        (thin,) = ax.plot(x, y, color=style.color, linestyle=style.line, linewidth=draw.THIN, zorder=3)
        if self.band is None:
            return thin
        x, y = _beyond(x, y, self.band.limit)
        (thick,) = ax.plot(x, y, color=style.color, linewidth=draw.THICK, solid_capstyle="round", zorder=4)
        thick.set_label("_outside")
        draw.mark(thick, _KIND, slot, "outside")
        return thin

    def _fit(self, ax: "Axes") -> None:
        """Limits with room for all curves and bands, and a height even if all is zero."""
        displays = [each.display for each in draw.drawn(ax, _KIND)]
        ends = [end for display in displays for end in display.ends()]
        low, high = min(ends), max(ends)
        pad = 0.08 * ((high - low) or 0.1)
        extent = extent_of(_reach(display.curve) for display in displays)
        ax.set(xlim=limits_of(extent), ylim=(low - pad, high + pad))

    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value of curve and band."""
        limit = self.band.limit if self.band else 0.0
        return min(float(np.min(self.curve.bias)), -limit), max(float(np.max(self.curve.bias)), limit)

    def _notes(self, ax: "Axes") -> draw.Entries:
        if self.band is None:
            return []
        (area,) = draw.marked(ax, _KIND, "band")
        thick = draw.thick_line(draw.style_of(0).color)
        level = f"{100 * self.band.confidence_level:g}%"
        return [(area, f"holds {level} of calibrated curves"), (thick, "outside that")]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        levels = [display.band and display.band.confidence_level for display in displays]
        if not any(levels):
            return []
        level = common_level(levels)
        words = (
            "outside its own band"
            if level is None
            else f"outside its own {100 * level:g}% band ({100 * (1.0 - level):.3g}% of calibrated curves)"
        )
        return [(draw.thick_line(draw.ink()), words)]


def _reach(curve: BiasCurve) -> Reach:
    largest = float(curve.q[-1])
    return Reach(largest, largest)


def _drawn(curve: BiasCurve) -> tuple[_Array, _Array]:
    """The corners of the curve: from zero, in steps, to the end. Straight lines where steps are too many or unknown."""
    q, bias = np.asarray(curve.q, np.float64), curve.bias
    many = len(q) > _COLUMNS
    if many:
        q, bias = _thinned(q, bias)
    start = [0.0, q[0]] if many or curve.sketched else [0.0]
    if not (many or curve.sketched):
        before = np.concatenate([[0.0], bias[:-1]])
        q, bias = np.repeat(q, 2), np.stack([before, bias], axis=1).ravel()
    return np.concatenate([start, q, [1.0]]), np.concatenate([np.zeros(len(start)), bias, bias[-1:]])


def _thinned(q: _Array, bias: _Array) -> tuple[_Array, _Array]:
    """The lowest and the highest point of each column of the picture, and both ends."""
    extent = extent_of([Reach(float(q[-1]), float(q[-1]))])
    column = np.minimum((q / extent * _COLUMNS).astype(np.int64), _COLUMNS - 1)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    ends = np.append(starts[1:], len(q))
    kept = [np.array([0, len(q) - 1])]
    for extreme in (np.minimum, np.maximum):
        level = np.repeat(extreme.reduceat(bias, starts), ends - starts)
        at = np.flatnonzero(bias == level)
        kept.append(at[np.unique(column[at], return_index=True)[1]])
    keep = np.unique(np.concatenate(kept))
    return q[keep], bias[keep]


def _beyond(x: _Array, y: _Array, limit: float) -> tuple[_Array, _Array]:
    """The parts of a line that lie outside [-limit, limit], with gaps (nan) between."""
    position = np.arange(len(x), dtype=np.float64)
    cuts = [position]
    for level in (-limit, limit):
        at = np.flatnonzero((y[:-1] - level) * (y[1:] - level) < 0.0)
        cuts.append(at + (level - y[at]) / (y[at + 1] - y[at]))
    every = np.unique(np.concatenate(cuts))
    x, y = np.interp(every, position, x), np.interp(every, position, y)
    size = np.abs(y) + 1e-12 * limit  # rounding must not put a cut inside
    out = (np.minimum(size[:-1], size[1:]) >= limit) & (np.maximum(size[:-1], size[1:]) > limit * (1.0 + 1e-9))
    before, after = np.append(False, out), np.append(out, False)
    kept, last = np.flatnonzero(before | after), (before & ~after)[before | after]
    gaps = np.flatnonzero(last) + 1
    return np.insert(x[kept], gaps, np.nan), np.insert(y[kept], gaps, np.nan)
