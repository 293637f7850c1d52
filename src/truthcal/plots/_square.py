"""Axes of probabilities: the square in which frequencies are beside predictions, and how much of it there is to see."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from truthcal.plots import _drawing as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Where all predictions are below this, axes end a little above the largest: rare events would be a dot in a corner.
RARE = 0.5
_ABOVE, _MARGIN = 1.04, 0.02


class Reach(NamedTuple):
    """How far a model goes: its largest prediction, and the largest value that must be in the picture."""

    proba: float
    value: float


def extent_of(reaches: Iterable[Reach]) -> float:
    """Where axes from 0 end that suit all these models."""
    reaches = list(reaches)
    largest = max(max(each) for each in reaches)
    rare = max(each.proba for each in reaches) < RARE and largest > 0.0
    return min(_ABOVE * largest, 1.0) if rare else 1.0


def limits_of(extent: float) -> tuple[float, float]:
    """The ends of an axis, with a margin for lines that lie along them."""
    return -_MARGIN * extent, (1.0 + _MARGIN) * extent


def unit_square(ax: "Axes", kind: str) -> None:
    """Axes of probabilities, both ways, with the diagonal on which predictions are right."""
    from truthcal.plots._ticks import probability_ticks

    ax.set(xlabel="predicted probability", xlim=limits_of(1.0), ylim=limits_of(1.0))
    draw.label_y(ax, "observed frequency")
    probability_ticks(ax, "x", "y")
    ax.set_aspect("equal", anchor="N")  # room to spare goes below, where the legend is
    draw.plain_look(ax)
    (diagonal,) = ax.plot([0, 1], [0, 1], color=draw.ink(), alpha=draw.RULE_ALPHA, linewidth=0.8, zorder=2)
    diagonal.set_label("_diagonal")
    draw.mark(diagonal, kind, 0, "diagonal")
