"""Ticks at round probabilities, as many as fit. Imports matplotlib: import this module inside functions."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Gap between labels, line height and digit width, in font sizes.
_GAP, _LINE, _DIGIT = 0.9, 1.7, 0.6
_MAX_TICKS = 6


class ProbabilityLocator(MaxNLocator):
    """Round probabilities inside the view, as many as have room for their labels."""

    def __init__(self) -> None:
        super().__init__(nbins=_MAX_TICKS, steps=[1, 2, 5, 10])

    def __call__(self) -> Any:
        """Return the ticks for the current view of the axis."""
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]  # set before the first call
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks between two limits, all in [0, 1]."""
        low, high = max(vmin, 0.0), min(vmax, 1.0)
        ticks = np.array([low])
        for bins in range(_MAX_TICKS, 0, -1):
            self.set_params(nbins=bins)
            candidates = np.asarray(super().tick_values(low, high))
            ticks = candidates[(candidates >= low) & (candidates <= high)]
            if len(ticks) < 3 or self._fit(ticks, vmax - vmin):
                break
        return ticks

    def _fit(self, ticks: Any, span: float) -> bool:
        axis: Any = self.axis
        box, horizontal = axis.axes.get_window_extent(), axis.axis_name == "x"
        length = (box.width if horizontal else box.height) * 72.0 / axis.axes.figure.dpi
        size = axis.get_major_ticks(1)[0].label1.get_size()
        needed = _DIGIT * max(len(f"{tick:g}") for tick in ticks) + _GAP if horizontal else _LINE
        return bool(np.min(np.diff(ticks)) / span * length >= needed * size)


def probability_ticks(ax: "Axes", *axes: str) -> None:
    """Set ticks at round probabilities, with short labels, on the x axis, the y axis or both."""
    for name in axes:
        axis = getattr(ax, f"{name}axis")
        axis.set_major_locator(ProbabilityLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
