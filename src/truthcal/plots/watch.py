"""Plots of a watched stream: the evidence, the error and the number of rows of each window."""

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.plots import drawing as draw
from truthcal.plots.display import Display
from truthcal.results.watch import WatchResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND = "watch"
_SIZE = (7.2, 3.4)  # inches of a new figure
# The evidence is drawn from here on; less is no evidence. Powers of ten.
_LEAST, _MOST = -2.0, 300.0
# Errors are shown up to this many medians of the upper limits: few rows prove little.
_MOST_MEDIANS = 3.0
_MANY = 40  # windows from which on markers are small
_LOG_10 = math.log(10.0)


class WatchDisplay(Display):
    """One aspect of a watched stream, by window.

    Parameters
    ----------
    result : WatchResult
        From `truthcal watch`.
    shows : {"evidence", "error", "rows"}
        The e-value at the end of each window, with the limit of the alarm; the size of the error in each window, with
        its interval; or the number of rows, and of those without an outcome.
    calendar : bool
        Whether starts of windows are microseconds since 1970-01-01.
    """

    def __init__(
        self, result: WatchResult, shows: Literal["evidence", "error", "rows"], *, calendar: bool = True
    ) -> None:
        self.result, self.shows, self.calendar, self.name = result, shows, calendar, None

    def table(self) -> dict[str, Any]:
        """Return all windows as columns."""
        return self.result.table()

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot the stored result.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw into; a new figure by default.

        Returns
        -------
        WatchDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = draw.axes_for(ax, _SIZE)
        x = self._places()
        notes = {"evidence": self._draw_evidence, "error": self._draw_errors, "rows": self._draw_rows}[self.shows](
            ax, x
        )
        self._set_time_axis(ax)
        draw.hide_frame(ax)
        lines = draw.draw_legend(ax, _KIND, [], notes)
        draw.resize_new_figure(ax, _SIZE[1], lines)
        draw.fit_into_figure(ax)
        self.ax_, self.figure_ = ax, draw.figure_of(ax)
        return self

    def _places(self) -> NDArray[np.float64]:
        starts = [window.start for window in self.result.windows]
        if not self.calendar:
            return np.array(starts, np.float64)
        times = [datetime(1970, 1, 1) + timedelta(microseconds=start) for start in starts]
        return np.asarray(draw.matplotlib_module("matplotlib.dates").date2num(times), np.float64)

    def _draw_evidence(self, ax: "Axes", x: NDArray[np.float64]) -> draw.Entries:
        logs = np.clip([window.log_e_value / _LOG_10 for window in self.result.windows], _LEAST, _MOST)
        limit = -math.log10(self.result.status.alpha)
        style = draw.model_style(0)
        (line,) = ax.plot(x, logs, color=style.color, linewidth=1.6, label="_evidence")
        draw.tag(line, _KIND, 0, "evidence")
        alarm = ax.axhline(limit, color=draw.model_style(1).color, linewidth=1.4, linestyle=(0, (5, 2)))
        alarm.set_label("_limit")
        draw.tag(alarm, _KIND, 0, "limit")
        draw.reference_line(ax.axhline(0.0), _KIND, "one")
        ax.set_ylim(min(float(logs.min()), -0.5) - 0.2, max(float(logs.max()), limit) * 1.08 + 0.2)
        draw.set_label(ax, "y", "e-value")
        ticker = draw.matplotlib_module("matplotlib.ticker")
        ax.yaxis.set_major_locator(ticker.MaxNLocator(nbins=6, integer=True))
        ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: _power_of_ten(value)))
        handle = draw.matplotlib_module("matplotlib.lines").Line2D([], [], linewidth=1.4, linestyle=(0, (5, 2)))
        handle.set_color(draw.model_style(1).color)
        return [
            (draw.thick_line(style.color), "evidence against calibration"),
            (handle, f"alarm from {1.0 / self.result.status.alpha:g} on"),
        ]

    def _draw_errors(self, ax: "Axes", x: NDArray[np.float64]) -> draw.Entries:
        style, many = draw.model_style(0), len(x) > _MANY
        low, high, middle = (
            np.array([getattr(window.error, end) for window in self.result.windows])
            for end in ("low", "high", "estimate")
        )
        known, certain = ~np.isnan(low), low > 0.0
        for part, thick in ((known & ~certain, False), (known & certain, True)):
            bars = ax.vlines(x[part], low[part], high[part], color=style.color, alpha=0.9 if thick else 0.5)
            bars.set_linewidth((2.2 if thick else 1.0) * (0.6 if many else 1.0))
            draw.tag(bars, _KIND, int(thick), "intervals")
        draw.tag(draw.draw_markers(ax, x, middle, certain, style, area=10 if many else 26), _KIND, 0, "points")
        ends = high[known]
        top = (
            min(float(ends.max()), max(_MOST_MEDIANS * float(np.median(ends)), 1.1 * float(np.nanmax(middle))))
            if known.any()
            else 1.0
        )
        ax.set_ylim(-0.02 * top, 1.05 * top)
        draw.set_label(ax, "y", "size of the error")
        marker = draw.filled_marker(style.color, markerfacecolor="none")
        return [
            (marker, "error and 95% interval of each window alone"),
            (draw.filled_marker(style.color), "filled: the interval is above 0"),
        ]

    def _draw_rows(self, ax: "Axes", x: NDArray[np.float64]) -> draw.Entries:
        scored, late = (np.array([getattr(w, name) for w in self.result.windows]) for name in ("n", "n_overdue"))
        width = 0.85 * (float(np.median(np.diff(x))) if len(x) > 1 else 1.0)
        patches = draw.matplotlib_module("matplotlib.patches")
        red = draw.model_style(1).color
        for k, (heights, bottom, color, alpha) in enumerate(
            ((scored, 0 * scored, draw.ink(), 0.35), (late, scored, red, 0.9))
        ):
            for bar in ax.bar(x, heights, width, bottom, color=color, alpha=alpha, linewidth=0):
                draw.tag(bar, _KIND, k, "rows")
        draw.set_label(ax, "y", "rows")
        ax.set_ylim(0, 1.05 * max(int((scored + late).max()), 1))
        entries = [(patches.Patch(color=draw.ink(), alpha=0.35, linewidth=0), "rows with outcomes")]
        if late.any():
            share = f"{100.0 * late.sum() / (late + scored).sum():.2g}% of all rows"
            entries.append(
                (patches.Patch(color=red, alpha=0.9, linewidth=0), f"overdue when the window closed: {share}")
            )
        return entries

    def _set_time_axis(self, ax: "Axes") -> None:
        if self.calendar:
            dates = draw.matplotlib_module("matplotlib.dates")
            locator = dates.AutoDateLocator(minticks=3, maxticks=7)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        ax.set_xlabel("window")


def _power_of_ten(value: float) -> str:
    """Format the tick of an e-value from its power of ten."""
    return f"{10.0**value:g}" if -4 <= value < 6 else f"1e{value:+.0f}"
