"""Plots of expected scores by sample size: the rate at which they fall, and what lying gains."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.params import shown
from truthcal.plots import drawing as draw
from truthcal.plots.by_size import SizeDisplay, log_ticks
from truthcal.results.audit import ExpectedScore
from truthcal.results.best_response import BestResponse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Half the width of a 95% interval, in standard errors.
_TWO_SIDED_95 = 1.96


class ExpectedScoreDisplay(SizeDisplay):
    """Plot of the expected score of a report by number of rows, with the power of the rows by which it falls.

    Both axes are logarithmic, so that a power of the number of rows is a straight line. Bars are 95% intervals of
    scores that were simulated.

    Parameters
    ----------
    scores : sequence of ExpectedScore
        From `expected_score` with different `n_rows`, for the same report and measure.
    name : str, optional
        Name in the legend, the measure by default. The legend adds the exponent.

    Attributes
    ----------
    exponent : float
        Exponent of the power of the number of rows that fits best (least squares of logarithms): -0.5 if the score
        falls like 1 / sqrt(rows). nan for less than two numbers of rows, or if a score is not positive.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import truthcal as tc
    >>> truth = [0.25, 0.75]
    >>> scores = [tc.expected_score(truth, truth, "atb", n_rows=n) for n in (10, 100, 1000)]
    >>> display = tc.plots.ExpectedScoreDisplay(scores).plot(Figure().subplots())
    >>> print(f"{display.exponent:.3f}")  # the expected ATB of calibrated predictions is Brier score / rows
    -1.000
    """

    _KIND = "expected_score"

    def __init__(self, scores: Sequence[ExpectedScore], name: str | None = None) -> None:
        self.scores, self.name = _sorted_by_size(scores, "scores", ExpectedScore, "n_rows", ("measure",)), name
        self.sizes = np.array([score.n_rows for score in self.scores])
        self.values = np.array([score.value for score in self.scores])
        self.exponent = math.nan
        if len(self.sizes) > 1 and np.all(self.values > 0.0):
            self.exponent = float(np.polyfit(np.log(self.sizes), np.log(self.values), 1)[0])

    def table(self) -> dict[str, list[Any]]:
        """Return columns with a row for each number of rows."""
        names = "n_rows", "value", "standard_error", "method"
        return {name: [getattr(score, name) for score in self.scores] for name in names}

    def _label(self, name: str | None) -> str:
        power = "" if math.isnan(self.exponent) else f": rows^{self.exponent:.2f}"
        return (name or self.scores[0].measure) + power

    def _draw_details(self, ax: "Axes", slot: int, style: draw.Style) -> None:
        super()._draw_details(ax, slot, style)
        half = _TWO_SIDED_95 * np.array([score.standard_error for score in self.scores])
        bars = ax.vlines(self.sizes, self.values - half, self.values + half, color=style.color, zorder=5)
        bars.set_label("_interval")
        draw.tag(bars, self._KIND, slot, "interval")

    def _set_axes(self, ax: "Axes") -> None:
        ax.set(xlabel="rows")
        if all(np.all(one.display.values > 0.0) for one in draw.attached(ax, self._KIND)):
            log_ticks(ax)
        else:
            ax.set_yscale("linear")
        draw.set_label(ax, "y", "expected score")

    def _notes(self, ax: "Axes") -> draw.Entries:
        simulated = any(score.n_resamples for one in draw.attached(ax, self._KIND) for score in one.display.scores)
        return [(draw.thin_line(draw.ink()), "bars: 95% interval of the simulation")] if simulated else []


class BestResponseDisplay(SizeDisplay):
    """Plot of the factor that lying gains by number of events: honest score over that of the best report found.

    A measure is truthful if the line stays at 1. Markers are filled where a gain is shown. Better lies may exist: a
    factor is a lower bound, up to the noise of simulated scores.

    Parameters
    ----------
    responses : sequence of BestResponse
        From `best_response` with different numbers of events, for the same measure and setting.
    name : str, optional
        Name in the legend; measure and setting by default.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import truthcal as tc
    >>> responses = [tc.best_response([0.5] * n, "atb", setting="sequential") for n in (1, 2, 3)]
    >>> display = tc.plots.BestResponseDisplay(responses).plot(Figure().subplots())
    >>> print(*(f"{factor:.4g}" for factor in display.table()["ratio"]))
    1 1.333 1.512
    """

    _KIND = "best_response"

    def __init__(self, responses: Sequence[BestResponse], name: str | None = None) -> None:
        same = "measure", "setting"
        self.responses, self.name = _sorted_by_size(responses, "responses", BestResponse, "n_events", same), name
        self.sizes = np.array([response.n_events for response in self.responses])
        self.values = np.array([response.ratio for response in self.responses])

    def table(self) -> dict[str, list[Any]]:
        """Return columns with a row for each number of events."""
        names = "n_events", "honest", "best", "ratio", "gain", "standard_error", "pays", "truthful"
        return {name: [getattr(response, name) for response in self.responses] for name in names}

    def _label(self, name: str | None) -> str:
        first = self.responses[0]
        return name or f"{first.measure}, " + ("in a batch" if first.setting == "batch" else "in sequence")

    def _draw_details(self, ax: "Axes", slot: int, style: draw.Style) -> None:
        self._draw_markers(ax, slot, style, np.array([response.pays for response in self.responses]))

    def _set_axes(self, ax: "Axes") -> None:
        factors: NDArray[np.float64] = np.concatenate([o.display.values for o in draw.attached(ax, self._KIND)])
        highest = np.max(factors[np.isfinite(factors)], initial=2.0)
        ax.set(xlabel="events", yscale="log", ylim=(0.93, 1.15 * highest))
        log_ticks(ax)
        draw.set_label(ax, "y", "factor gained by lying")

    def _notes(self, ax: "Axes") -> draw.Entries:
        return [(draw.filled_marker(draw.ink()), "filled: lying gains")]


def _sorted_by_size(results: Any, name: str, kind: type, size: str, same: tuple[str, ...]) -> tuple[Any, ...]:
    """Check that results of one kind differ in their size and in nothing of `same`; return them by size."""
    listed = tuple(results) if isinstance(results, Sequence) else (results,)
    if not listed or not all(isinstance(one, kind) and getattr(one, size) is not None for one in listed):
        rule = f"must be a sequence of {kind.__name__}, each with `{size}`, such as a list of one for each size"
        raise invalid(name, f"{rule}; got {shown(results)}.", TypeError)
    for attribute in same:
        different = sorted({getattr(one, attribute) for one in listed})
        if len(different) > 1:
            cure = "Plot each with its own Display into the same axes."
            raise invalid(name, f"must have the same {attribute}; got {', '.join(different)}. {cure}")
    sizes = [getattr(one, size) for one in listed]
    if len(set(sizes)) < len(sizes):
        raise invalid(name, f"must have different `{size}`; got {', '.join(map(str, sizes))}.")
    return tuple(sorted(listed, key=lambda one: int(getattr(one, size))))
