"""Miscalibration by scale, beside what chance alone gives."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.inference.scale_profile import scale_profile
from truthcal.plots import _drawing as draw
from truthcal.plots._display import ModelDisplay, common_level
from truthcal.results.curves import ScaleProfile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_KIND = "scales"
# Points across, in which labels of the usual size would touch.
_NARROW = 190.0


class ScaleProfileDisplay(ModelDisplay):
    """On which scale predictions are off: the error beyond chance in wide and in narrow bins.

    Wide errors, of one sign along all predictions, show at the left; narrow ones, which change sign, at the right. A
    marker is filled where the error is above what calibrated predictions would have.

    Parameters
    ----------
    profile : ScaleProfile
        From `scale_profile`.
    name : str, optional
        What the legend calls it.
    """

    _KIND, _SIZE, _MARKERS, _ALONE = _KIND, (6.4, 4.4), True, "error"

    def __init__(self, profile: ScaleProfile, name: str | None = None) -> None:
        self.profile, self.name = profile, name

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
            As for `scale_profile`.
        name : str, optional
            What the legend calls it.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. Several models can be drawn into the same axes.
        confidence_level, n_resamples, rng
            As for `scale_profile`.
        **options
            As for `plot`.

        Returns
        -------
        ScaleProfileDisplay
            With `ax_` and `figure_`.
        """
        profile = scale_profile(
            y_true,
            y_proba,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            rng=rng,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )
        return cls(profile, name).plot(ax, **options)

    def table(self) -> dict[str, NDArray[Any]]:
        """The columns of the profile: a row for each width."""
        return self.profile.table()

    def _draw(self, ax: "Axes", slot: int) -> "Line2D":
        self._draw_band(ax, slot)
        return self._draw_curve(ax, slot)

    def _prepare(self, ax: "Axes") -> None:
        widths = self.profile.width
        ax.set_xscale("log", base=2)
        ax.set_xlim(np.max(widths) * 1.2, np.min(widths) / 1.2)  # wide at the left
        ax.set_xticks(widths, self.profile.names)
        ax.set_xticks([], minor=True)
        if ax.bbox.width * 72.0 / draw.figure_of(ax).dpi < _NARROW:
            ax.tick_params(axis="x", labelsize="small")
        ax.set(xlabel="width of the bins (1 is ATB)")
        draw.label_y(ax, "error beyond chance")
        draw.plain_look(ax)
        zero = ax.axhline(0.0, color=draw.ink(), alpha=draw.RULE_ALPHA, linewidth=0.8, label="_zero", zorder=2)
        draw.mark(zero, _KIND, 0, "zero")
        parts = "the error, were it the same everywhere,", "that would show as much beyond chance"
        draw.note_above(ax, parts, f"{_KIND}-note")

    def _draw_band(self, ax: "Axes", slot: int) -> None:
        """The range, where there is one model; for several, filled markers tell all the same."""
        if slot:
            draw.hide(ax, _KIND, "band")
            return
        profile = self.profile
        area = ax.fill_between(
            profile.width,
            profile.error_low,
            profile.error_high,
            color=draw.ink(),
            alpha=draw.BAND_ALPHA,
            linewidth=0,
            zorder=1,
        )
        draw.mark(area, _KIND, slot, "band")

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        profile, style = self.profile, draw.style_of(slot)
        (line,) = ax.plot(
            profile.width, profile.error, color=style.color, linestyle=style.line, linewidth=draw.THIN, zorder=3
        )
        points = ax.scatter(profile.width, profile.error, s=42, marker=style.marker, linewidths=1.2, zorder=4)
        points.set_facecolor([style.color if out else "none" for out in profile.value > profile.high])
        points.set_edgecolor(style.color)
        points.set_label("_points")
        draw.mark(points, _KIND, slot, "points")
        return line

    def _notes(self, ax: "Axes") -> draw.Entries:
        (band,) = draw.marked(ax, _KIND, "band")
        full = draw.full_marker(draw.style_of(0).color)
        level = f"{100 * self.profile.confidence_level:g}%"
        return [(band, f"{level} of errors if calibrated"), (full, "filled: above that range")]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        level = common_level(display.profile.confidence_level for display in displays)
        share = "" if level is None else f"{100 * level:g}% "
        return [(draw.full_marker(draw.ink()), f"filled: above its own {share}range")]
