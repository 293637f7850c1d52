"""Ticks at round probabilities, as many as fit. Imports matplotlib: import this module inside functions."""

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from truthcal.plots.probability_axes import ProbabilityAxis, round_numbers, tick_label
from truthcal.results.text import PLAIN, Unit

# Gap between labels, line height and digit width, in font sizes.
_GAP, _LINE, _DIGIT = 0.9, 1.7, 0.6
_MAX_TICKS = 6


class ProbabilityLocator(MaxNLocator):
    """Round probabilities inside the view, as many as have room for their labels."""

    def __init__(self, scale: ProbabilityAxis) -> None:
        super().__init__(nbins=_MAX_TICKS, steps=[1, 2, 5, 10])
        self._scale = scale

    def __call__(self) -> Any:
        """Return the ticks for the current view of the axis."""
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]  # set before the first call
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks between two limits, all in [0, 1]."""
        low, high = max(vmin, 0.0), min(vmax, 1.0)
        if self._scale.scale != "linear":
            return self._fittinground_numbers(low, high, vmin, vmax)
        ticks = np.array([low])
        for bins in range(_MAX_TICKS, 0, -1):
            self.set_params(nbins=bins)
            candidates = np.asarray(super().tick_values(low, high))
            ticks = candidates[(candidates >= low) & (candidates <= high)]
            if len(ticks) < 3 or self._fit(ticks, vmin, vmax):
                break
        return ticks

    def _fittinground_numbers(self, low: float, high: float, vmin: float, vmax: float) -> Any:
        """Return round numbers, the roundest first, each if it has room beside those before it."""
        ticks: list[float] = []
        for tick in round_numbers(mirrored=self._scale.scale == "logit"):
            wider = np.array(sorted([*ticks, tick]))
            if low <= tick <= high and len(ticks) < _MAX_TICKS and self._fit(wider, vmin, vmax):
                ticks.append(tick)
        return np.array(sorted(ticks) or [low])

    def _fit(self, ticks: Any, vmin: float, vmax: float) -> bool:
        if len(ticks) < 2:
            return True
        axis: Any = self.axis
        box, horizontal = axis.axes.get_window_extent(), axis.axis_name == "x"
        length = (box.width if horizontal else box.height) * 72.0 / axis.axes.figure.dpi
        size = axis.get_major_ticks(1)[0].label1.get_size()
        letters = max(len(tick_label(tick, self._scale)) for tick in ticks)
        needed = _DIGIT * letters + _GAP if horizontal else _LINE
        places = self._scale.forward([vmin, *ticks, vmax])
        return bool(np.min(np.diff(places[1:-1])) / (places[-1] - places[0]) * length >= needed * size)


def set_probability_ticks(axis: Any, scale: ProbabilityAxis) -> None:
    """Set ticks at round probabilities, with short labels, on an axis."""
    axis.set_major_locator(ProbabilityLocator(scale))
    axis.set_major_formatter(FuncFormatter(lambda tick, _: tick_label(tick, scale)))


def set_unit_ticks(axis: Any, unit: Unit = PLAIN) -> None:
    """Set the tick labels of errors or biases, in a unit and without a common power of ten."""
    if unit.rows > 1:
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{unit.rows * x + 0.0:g}".replace("-", "\N{MINUS SIGN}")))
    else:
        axis.get_major_formatter().set_useOffset(False)
        axis.get_major_formatter().set_scientific(False)
