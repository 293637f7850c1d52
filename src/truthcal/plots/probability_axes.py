"""Axes of probabilities: their scale and limits, chosen from the predictions of all models in a plot.

Log and logit scales are linear near 0 and 1, so that predictions and frequencies of exactly 0 and 1 are on them: an
inverse hyperbolic sine takes the place of the logarithm. Log rather than square root: a constant ratio of predicted to
observed events is a constant distance from the diagonal, and one scale shows predictions of 0.0001 and of 0.5.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.plots import drawing as draw
from truthcal.results.text import PLAIN, Unit, count, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Array = NDArray[np.float64]

SCALES = ("auto", "linear", "log", "logit")
_ABOVE, _MARGIN = 1.04, 0.02
# Most predictions are below this, or above 1 minus this: a log or a logit scale shows them.
_RARE = 0.05
# The axis may leave out this share of the information, sum of p(1 - p), at each end, and one row. It is linear below
# the predictions with this share of the information.
_OUTSIDE, _LINEAR = 0.01, 0.05
# It gets longer by up to this share if it then leaves out nothing.
_LITTLE = 0.05
# Predictions that need the end of an axis to be 1.
_LARGE = 0.5
# In a unit like "per 1,000", numbers above this are harder to read than percentages.
_MANY = 500.0
# Smallest power of ten with a tick.
_SMALLEST = -15


class Predictions(NamedTuple):
    """Distribution of a model's predictions: values, weights, numbers of rows; and the y values that must be shown."""

    p: _Array
    weight: _Array
    rows: NDArray[np.int64]
    shown: tuple[float, float] = (math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class ProbabilityAxis:
    """An axis from `start` to `end`; `width` is the length of the linear part of a log or logit scale.

    `unit` is that of tick labels; `note` says how many rows are outside.
    """

    scale: str
    start: float = 0.0
    end: float = 1.0
    width: float = 1.0
    unit: Unit = PLAIN
    note: str = ""

    @classmethod
    def choose(cls, models: Iterable[Predictions], scale: str = "auto") -> Self:
        """Choose scale and limits for the predictions of all models, by weight: no single row decides them."""
        models = list(models)
        p, weight, spread = _pool(models)
        total = float(np.sum(spread))
        if not total > 0.0:
            return cls("linear")
        rare, common = (float(np.sum(weight[near])) > len(models) / 2 for near in (p < _RARE, p > 1.0 - _RARE))
        low = min(_quantile(p, weight, _OUTSIDE), _quantile(p, spread, _OUTSIDE))
        high = max(_quantile(p, weight, 1.0 - _OUTSIDE), _quantile(p, spread, 1.0 - _OUTSIDE))
        if scale == "auto":
            scale = "logit" if common or (rare and high > 1.0 - _RARE) else "log" if rare else "linear"
        smallest = min([low, *(model.shown[0] for model in models if not math.isnan(model.shown[0]))])
        largest = max([high, *(model.shown[1] for model in models if not math.isnan(model.shown[1]))])
        start = max(1.0 - _ABOVE * (1.0 - smallest), 0.0) if common and low > _LARGE else 0.0
        end = min(_ABOVE * largest, 1.0) if high < (_LARGE if scale == "linear" else 1.0 - _RARE) else 1.0
        rarer = np.minimum(p, 1.0 - p)
        order = np.argsort(rarer, kind="stable")
        axis = cls(scale, start, end, _quantile(rarer[order], spread[order], _LINEAR))
        axis = axis._extended(float(p[0]), float(p[-1]))
        unit = unit_of(float(np.sum(weight * p)) / len(models))
        unit = PLAIN if unit.rows * axis.end > _MANY else unit
        return replace(axis, unit=unit, note=_word_outside(models, replace(axis, unit=unit)))

    def _extended(self, smallest: float, largest: float) -> Self:
        """Return an axis that holds all predictions if this makes it little longer."""
        start = min(self.start, max(1.0 - _ABOVE * (1.0 - smallest), 0.0))
        end = max(self.end, min(_ABOVE * largest, 1.0))
        low, high = self.share([start, end])
        start = start if self.start > 0.0 and low >= -_LITTLE else self.start
        return replace(self, start=start, end=end if high <= 1.0 + _LITTLE else self.end)

    def forward(self, p: Any) -> _Array:
        """Return places on the axis for probabilities."""
        p = np.asarray(p, np.float64)
        if self.scale == "linear":
            return np.asarray(p)
        place: _Array = np.arcsinh(p / self.width)
        return place if self.scale == "log" else place - np.arcsinh((1.0 - p) / self.width)

    def inverse(self, place: Any) -> _Array:
        """Return the probabilities at places on the axis."""
        place = np.asarray(place, np.float64)
        if self.scale == "linear":
            return np.asarray(place)
        if self.scale == "log":
            return np.asarray(self.width * np.sinh(place))
        # With A and B the two inverse sines, A - B = place, and sinh A + sinh B = 1 / width.
        half = np.sinh(place / 2.0)
        mean = 0.5 / self.width / np.cosh(place / 2.0)
        return np.asarray(0.5 + self.width * np.sqrt(1.0 + mean**2) * half)

    def at(self, share: Any) -> _Array:
        """Return the probabilities at shares of the axis: `start` at 0, `end` at 1."""
        first, last = self.forward(self.start), self.forward(self.end)
        return self.inverse(first + np.asarray(share) * (last - first))

    def share(self, p: Any) -> _Array:
        """Return probabilities as shares of the axis: 0 at `start`, 1 at `end`."""
        first, last = self.forward(self.start), self.forward(self.end)
        return np.asarray((self.forward(p) - first) / (last - first))

    @property
    def limits(self) -> tuple[float, float]:
        """Limits with a margin for lines along both ends."""
        if self.scale == "linear":
            margin = _MARGIN * (self.end - self.start)
            return self.start - margin, self.end + margin
        low, high = self.at([-_MARGIN, 1.0 + _MARGIN]).tolist()
        return low, high

    @property
    def notes(self) -> draw.Entries:
        """Legend entry for rows outside."""
        return [(draw.filled_marker("none"), self.note)] if self.note else []

    def label(self, text: str) -> str:
        """Return a label that names the unit and, unless it is linear, the scale."""
        return text + f",{self.unit.per}" * (self.unit.rows > 1) + f" ({self.scale} scale)" * (self.scale != "linear")

    def apply(self, ax: "Axes", **labels: str) -> None:
        """Set scale, limits, ticks and label of the x axis, the y axis or both: ``apply(ax, x="prediction")``."""
        from truthcal.plots.ticks import set_probability_ticks

        functions: tuple[Callable[[Any], Any], Callable[[Any], Any]] = self.forward, self.inverse
        for name, text in labels.items():
            scale: dict[str, Any] = {} if self.scale == "linear" else {"functions": functions}
            getattr(ax, f"set_{name}scale")("function" if scale else "linear", **scale)
            getattr(ax, f"set_{name}lim")(*self.limits)
            set_probability_ticks(getattr(ax, f"{name}axis"), self)
            draw.set_label(ax, name, self.label(text))


def round_numbers(*, mirrored: bool) -> list[float]:
    """Return the ticks of a log or logit axis, the most important first: 0, 1, powers of ten, then 5 and 2 times."""
    powers = [10.0**k for k in range(-1, _SMALLEST, -1)]
    numbers = [0.0, 1.0, *([0.5] if mirrored else [])]
    for times in (1.0, 5.0, 2.0):
        for power in powers:
            numbers += [float(f"{times * power:.1g}"), *([1.0 - times * power] if mirrored else [])]
    return numbers


def tick_label(tick: float, scale: ProbabilityAxis) -> str:
    """Return the label of a tick: in the unit of the axis, or in percent on a log or logit scale without a unit."""
    if scale.unit.rows > 1 or scale.scale == "linear":
        return f"{scale.unit.rows * tick:g}"
    return f"{round(100.0 * tick, 12):.12g}%"


def _pool(models: list[Predictions]) -> tuple[_Array, _Array, _Array]:
    """Return the predictions of all models in order, their weights (1 per model), and their shares of information.

    A single row at either end has neither, unless it has more weight than the axis may leave out.
    """
    weights = []
    for model in models:
        weight = model.weight / np.sum(model.weight)
        for end in (np.argmin(model.p), np.argmax(model.p)):
            if model.rows[end] == 1 and weight[end] <= _OUTSIDE:
                weight[end] = 0.0
        weights.append(weight)
    p, weight = np.concatenate([model.p for model in models]), np.concatenate(weights)
    order = np.argsort(p, kind="stable")
    p, weight = p[order], weight[order]
    return p, weight, weight * p * (1.0 - p)


def _quantile(values: _Array, weight: _Array, share: float) -> float:
    """Return the smallest of the increasing values that have this share of the weight up to them."""
    upto = np.cumsum(weight)
    return float(values[min(np.searchsorted(upto, share * upto[-1]), len(values) - 1)])


def _word_outside(models: list[Predictions], axis: ProbabilityAxis) -> str:
    """Word how many rows are not on the axis, with predictions in its unit."""
    parts = []
    for word, limit, extreme in (("below", axis.start, min), ("above", axis.end, max)):
        outside = [(m.p < limit) if word == "below" else (m.p > limit) for m in models]
        rows = sum(int(np.sum(model.rows[each])) for model, each in zip(models, outside, strict=True))
        if rows:
            furthest = extreme(float(p) for m, each in zip(models, outside, strict=True) for p in m.p[each])
            end = f"{'to' if rows > 1 else 'at'} {_in_unit(furthest, axis)}"
            parts.append(f"{count(rows, 'row')} {word} {_in_unit(limit, axis)} ({end})")
    return f"not shown: {' and '.join(parts)}" if parts else ""


def _in_unit(p: float, axis: ProbabilityAxis) -> str:
    """Return a probability that is no tick, with two digits, in the unit of the tick labels."""
    rounded = float(f"{p:.2g}") if p <= 0.5 else 1.0 - float(f"{1.0 - p:.2g}")
    return tick_label(round(rounded, 15), axis)


def prepare_square(ax: "Axes", kind: str) -> None:
    """Make square probability axes, of predictions and frequencies, with the diagonal of calibrated predictions."""
    ax.set_aspect("equal", anchor="N")  # free space goes below, where the legend is
    draw.hide_frame(ax)
    (diagonal,) = ax.plot([0, 1], [0, 1], color=draw.ink())
    draw.reference_line(diagonal, kind, "diagonal")
