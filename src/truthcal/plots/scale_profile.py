"""Plot of miscalibration by scale, with the range of calibrated predictions."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.inference.scale_profile import scale_profile
from truthcal.plots import drawing as draw
from truthcal.plots.display import ModelDisplay, Rows, own_band, refuse_rows
from truthcal.results.curves import ScaleProfile
from truthcal.results.text import percent

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Width in points below which tick labels of normal size would touch.
_NARROW = 190.0


class ScaleProfileDisplay(ModelDisplay):
    """Plot of the error beyond chance in wide and in narrow bins: the scale on which predictions are wrong.

    Errors of one sign along all predictions show at the left; errors that change sign along them, at the right. A
    marker is filled where the error is above the range of calibrated predictions.

    Parameters
    ----------
    profile : ScaleProfile
        From `scale_profile`.
    name : str, optional
        Name in the legend.
    """

    _KIND, _SIZE, _MARKERS, _ALONE = "scales", (6.4, 4.4), True, "error"

    def __init__(self, profile: ScaleProfile, name: str | None = None) -> None:
        refuse_rows(profile, "profile", ScaleProfile, type(self))
        self.profile, self.name = profile, name

    @classmethod
    def _of(cls, rows: Rows, confidence_level: float, n_resamples: int, rng: Any) -> Self:
        y_true, y_proba, sample_weight, pos_label = rows
        chance: dict[str, Any] = {"confidence_level": confidence_level, "n_resamples": n_resamples, "rng": rng}
        return cls(scale_profile(y_true, y_proba, **chance, sample_weight=sample_weight, pos_label=pos_label))

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the profile, with a row for each width."""
        return self.profile.table()

    def _prepare(self, ax: "Axes") -> None:
        from truthcal.plots.ticks import set_unit_ticks

        widths = self.profile.width
        ax.set_xscale("log", base=2)
        ax.set_xlim(np.max(widths) * 1.2, np.min(widths) / 1.2)  # wide at the left
        ax.set_xticks(widths, self.profile.names)
        ax.set_xticks([], minor=True)
        if draw.width_in_points(ax) < _NARROW:
            ax.tick_params(axis="x", labelsize="small")
        ax.set(xlabel="width of the bins (1 is ATB)")
        unit = self.profile.unit
        draw.set_label(ax, "y", f"error beyond chance{unit.per and f',{unit.per}'}")
        set_unit_ticks(ax.yaxis, unit)
        draw.hide_frame(ax)
        draw.reference_line(ax.axhline(0.0), self._KIND, "zero")
        note = "constant error that would cause", "the same excess over chance"
        draw.note_above(ax, note, "scales-note")

    def _draw_band(self, ax: "Axes") -> "Artist":
        return draw.shade(ax, self.profile.width, self.profile.error_low, self.profile.error_high)

    def _draw_curve(self, ax: "Axes", slot: int) -> "Line2D":
        profile, style = self.profile, draw.model_style(slot)
        look: dict[str, Any] = {"color": style.color, "linestyle": style.line, "linewidth": draw.THIN, "zorder": 3}
        (line,) = ax.plot(profile.width, profile.error, **look)
        markers = draw.draw_markers(ax, profile.width, profile.error, profile.value > profile.high, style, area=42)
        draw.tag(markers, self._KIND, slot, "points")
        return line

    def _notes(self, ax: "Axes") -> draw.Entries:
        (band,) = draw.tagged(ax, self._KIND, "band")
        marker = draw.filled_marker(draw.model_style(0).color)
        level = percent(self.profile.confidence_level)
        return [(band, f"{level} range if calibrated"), (marker, "filled: above that range")]

    def _notes_for_all(self, displays: list[Any]) -> draw.Entries:
        ranges = own_band("range", (display.profile.confidence_level for display in displays))
        return [(draw.filled_marker(draw.ink()), f"filled: above {ranges}")]
