"""Ticks that suit the room there is. Imports matplotlib: import this inside functions, when axes are there."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Gaps between labels, and the height of a line, in sizes of the font; the width of a digit likewise.
_GAP, _LINE, _DIGIT = 0.9, 1.7, 0.6
_MOST = 6


class ProbabilityLocator(MaxNLocator):
    """Round probabilities inside the view, as many as have room for their labels when they are drawn."""

    def __init__(self) -> None:
        super().__init__(nbins=_MOST, steps=[1, 2, 5, 10])

    def __call__(self) -> Any:
        """The ticks of the axis as it is."""
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]  # given when it is used
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """The ticks between two ends: no probability is below 0 or above 1."""
        low, high = max(vmin, 0.0), min(vmax, 1.0)
        ticks = np.array([low])
        for bins in range(_MOST, 0, -1):
            self.set_params(nbins=bins)
            every = np.asarray(super().tick_values(low, high))
            ticks = every[(every >= low) & (every <= high)]
            if len(ticks) < 3 or self._fit(ticks, vmax - vmin):
                break
        return ticks

    def _fit(self, ticks: Any, span: float) -> bool:
        axis: Any = self.axis
        box = axis.axes.get_window_extent()
        across = axis.axis_name == "x"
        length = (box.width if across else box.height) * 72.0 / axis.axes.figure.dpi
        size = axis.get_major_ticks(1)[0].label1.get_size()
        needed = _DIGIT * max(len(f"{tick:g}") for tick in ticks) + _GAP if across else _LINE
        return bool(np.min(np.diff(ticks)) / span * length >= needed * size)


def probability_ticks(ax: "Axes", *axes: str) -> None:
    """Such ticks on the x axis, the y axis or both, with labels as short as can be."""
    for name in axes:
        axis = getattr(ax, f"{name}axis")
        axis.set_major_locator(ProbabilityLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
