"""Plot of calibration over time: the size of the error in each window, its rows, and the time of a change."""

import math
from datetime import date
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.frame_columns import named_columns_of_method
from truthcal.core.params import check_flag
from truthcal.inference.over_time import assess_over_time
from truthcal.plots import drawing as draw
from truthcal.plots.display import Display, refuse_rows
from truthcal.results.over_time import TimeAssessment
from truthcal.results.text import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND = "time"
_SIZE = (7.2, 4.0)  # inches of a new figure
# Share of the height of the axes for the rows, and for their longest bar.
_ROWS, _LONGEST = 0.2, 0.13
# Errors are shown up to this many medians of the upper limits, if the estimates allow: few rows prove little.
_MOST_MEDIANS = 3.0
# Windows with fewer rows than this share of the median may have errors beyond the axis, unless they are significant.
_FEW_ROWS = 0.1
# More windows than this have small markers; most labels of windows that are no times.
_MANY, _MOST_LABELS = 40, 8


class OverTimeDisplay(Display):
    """Size of the calibration error in each window of time, with intervals that hold for all windows at once.

    Windows whose interval is above 0 have a filled marker and a thick bar. Grey bars at the bottom show the
    number of rows. If a change was detected, a dashed line shows its estimated time.

    Parameters
    ----------
    result : TimeAssessment
        From `assess_over_time`.
    name : str, optional
        Name in the legend.
    """

    def __init__(self, result: TimeAssessment, name: str | None = None) -> None:
        refuse_rows(result, "result", TimeAssessment, type(self))
        self.result, self.name = result, name

    @classmethod
    @named_columns_of_method
    def from_predictions(
        cls,
        y_true: object,
        y_proba: object,
        time: object,
        *,
        name: str | None = None,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Assess predictions over time and plot the result.

        Parameters
        ----------
        y_true, y_proba, time
            As for `assess_over_time`.
        name : str, optional
            As for the class.
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default.
        **options
            Passed to `assess_over_time`: `window`, `time_unit`, `alpha`, `confidence_level`, `sample_weight`,
            `pos_label`.

        Returns
        -------
        OverTimeDisplay
            With `ax_` and `figure_`.
        """
        return cls(assess_over_time(y_true, y_proba, time, **options), name).plot(ax)

    def table(self) -> dict[str, list[Any]]:
        """Return all windows, as `TimeAssessment.table` does."""
        return self.result.table()

    def plot(self, ax: "Axes | None" = None, *, name: str | None = None, legend: bool = True) -> Self:
        """Plot the stored result.

        Parameters
        ----------
        ax, name : optional
            As for `from_predictions`; the name replaces the Display's own.
        legend : bool, default True
            Whether to draw a legend.

        Returns
        -------
        OverTimeDisplay
            Itself, with `ax_` and `figure_`.
        """
        check_flag(legend, "legend")
        ax = draw.axes_for(ax, _SIZE)
        starts, widths = _places(self.result)
        self._draw_errors(ax, starts + widths / 2.0)
        self._draw_rows(ax, starts, widths)
        self._draw_change(ax, starts)
        self._set_axes(ax, starts, widths)
        shown = name if name is not None else self.name
        lines = draw.draw_legend(ax, _KIND, [], self._notes(shown)) if legend else 0
        draw.resize_new_figure(ax, _SIZE[1], lines)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self

    def _draw_errors(self, ax: "Axes", middle: NDArray[np.float64]) -> None:
        style, many = draw.model_style(0), len(middle) > _MANY
        errors = [window.error for window in self.result.windows]
        certain = np.array([error.low > 0.0 for error in errors])
        known = np.array([not math.isnan(error.low) for error in errors])
        for part, thick in ((known & ~certain, False), (known & certain, True)):
            low, high = (np.array([getattr(error, end) for error in errors])[part] for end in ("low", "high"))
            bars = ax.vlines(middle[part], low, high, color=style.color, alpha=0.9 if thick else 0.55, zorder=3)
            bars.set_linewidth((2.2 if thick else 1.0) * (0.6 if many else 1.0))
            draw.tag(bars, _KIND, int(thick), "intervals")
        estimates = np.array([error.estimate for error in errors])
        (line,) = ax.plot(
            *_broken_at_gaps(middle, estimates), color=style.color, linewidth=0.8, alpha=0.5, zorder=2, label="_curve"
        )
        draw.tag(line, _KIND, 0, "curve")
        markers = draw.draw_markers(ax, middle, estimates, certain, style, area=10 if many else 30)
        draw.tag(markers, _KIND, 0, "points")

    def _draw_rows(self, ax: "Axes", starts: NDArray[np.float64], widths: NDArray[np.float64]) -> None:
        rows = np.array([window.n for window in self.result.windows], np.float64)
        bars = ax.bar(
            starts,
            _LONGEST * rows / rows.max(),
            0.9 * widths,
            align="edge",
            transform=ax.get_xaxis_transform(),  # heights are shares of the axes
            color=draw.ink(),
            alpha=0.3,
            linewidth=0,
        )
        for k, bar in enumerate(bars):
            draw.tag(bar, _KIND, k, "rows")

    def _draw_change(self, ax: "Axes", starts: NDArray[np.float64]) -> None:
        if self.result.kind != "changed":
            return
        place = [window.start for window in self.result.windows].index(self.result.change.start)
        line = ax.axvline(float(starts[place]), color=draw.model_style(1).color, linewidth=1.6, linestyle=(0, (5, 2)))
        line.set(zorder=3, label="_change")
        draw.tag(line, _KIND, 0, "change")

    def _set_axes(self, ax: "Axes", starts: NDArray[np.float64], widths: NDArray[np.float64]) -> None:
        from truthcal.plots.ticks import set_unit_ticks

        errors = [window.error for window in self.result.windows]
        highs = [error.high for error in errors if not math.isnan(error.high)] or [1.0]
        limit = max(1.15 * self._largest_shown(), _MOST_MEDIANS * float(np.median(highs)))
        top = min(1.05 * max(highs), limit) or 1.0
        ax.set_ylim(-top * _ROWS / (1.0 - _ROWS), top)
        unit = self.result.unit
        set_unit_ticks(ax.yaxis, unit)
        ax.yaxis.set_major_locator(_ticks_from_zero(top))
        draw.set_label(ax, "y", f"size of the error{unit.per and f',{unit.per}'}")
        draw.reference_line(ax.axhline(0.0), _KIND, "zero")
        ax.set_xlim(starts[0] - 0.3 * widths[0], starts[-1] + 1.3 * widths[-1])
        _set_time_ticks(ax, self.result, starts + widths / 2.0)
        ax.set_xlabel(draw.literal(f"window ({self.result.window})"))
        draw.hide_frame(ax)

    def _largest_shown(self) -> float:
        """Return the largest error that has to be visible: that of a few rows says nothing unless it is significant."""
        windows = self.result.windows
        few = _FEW_ROWS * float(np.median([window.n for window in windows]))
        shown = [window.error.estimate for window in windows if window.n >= few or window.error.low > 0.0]
        return max((estimate for estimate in shown if not math.isnan(estimate)), default=0.0)

    def _notes(self, name: str | None) -> draw.Entries:
        style, level = draw.model_style(0), percent(self.result.confidence_level)
        rows = max(window.n for window in self.result.windows)
        patch = draw.matplotlib_module("matplotlib.patches").Patch(color=draw.ink(), alpha=0.3, linewidth=0)
        subject = "error" if name is None else f"{draw.literal(name)}: error"
        marker = draw.filled_marker(style.color, markerfacecolor="none")
        filled = draw.filled_marker(style.color), "filled: the interval is above 0"
        certain = [filled] if any(window.error.low > 0.0 for window in self.result.windows) else []
        notes = [
            (marker, f"{subject} and {level} interval, for all windows at once"),
            *certain,
            (patch, f"rows, at most {rows:,} per window"),
        ]
        if self.result.kind == "changed":
            line = draw.matplotlib_module("matplotlib.lines").Line2D([], [], linestyle=(0, (5, 2)), linewidth=1.6)
            line.set_color(draw.model_style(1).color)
            notes.append((line, f"changed around {self.result.change.label}"))
        return notes


def _places(result: TimeAssessment) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions of the starts of windows on the x axis, and their widths, which are never wider than half a gap."""
    values = [window.start for window in result.windows]
    if all(isinstance(value, date) for value in values):
        starts = np.asarray(draw.matplotlib_module("matplotlib.dates").date2num(values), np.float64)
    elif all(isinstance(value, int | float) for value in values) and len(set(values)) == len(values):
        starts = np.array(values, np.float64)
    else:
        starts = np.arange(len(values), dtype=np.float64)
    gaps = np.diff(starts)
    usual = float(np.median(gaps)) or 1.0
    return starts, np.append(np.minimum(gaps, 1.5 * usual), usual)


def _broken_at_gaps(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Insert nan where windows are missing, so that no line joins the errors on both sides."""
    gaps = np.diff(x)
    if not len(gaps):
        return x, y
    missing = np.flatnonzero(gaps > 1.5 * np.median(gaps)) + 1
    return np.insert(x, missing, np.nan), np.insert(y, missing, np.nan)


def _ticks_from_zero(top: float) -> Any:
    """Ticks at round errors from 0 on: below are the rows."""
    ticker = draw.matplotlib_module("matplotlib.ticker")
    ticks = ticker.MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(0.0, top)
    return ticker.FixedLocator([tick for tick in ticks if 0.0 <= tick <= top])


def _set_time_ticks(ax: "Axes", result: TimeAssessment, middle: NDArray[np.float64]) -> None:
    """Set the ticks of the x axis: dates, numbers, or labels of windows that are neither."""
    values, ticker = [window.start for window in result.windows], draw.matplotlib_module("matplotlib.ticker")
    if all(isinstance(value, date) for value in values):
        dates = draw.matplotlib_module("matplotlib.dates")
        locator = dates.AutoDateLocator(minticks=3, maxticks=7)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    elif all(isinstance(value, int | float) for value in values):
        ax.xaxis.set_major_locator(ticker.MaxNLocator(nbins=7, integer=True))
    else:
        step = -(-len(values) // _MOST_LABELS)
        ax.set_xticks(middle[::step], [draw.literal(window.label, 12) for window in result.windows[::step]])
