"""Axes of probabilities: limits, ticks and diagonal of reliability diagrams."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from truthcal.measures.reliability import RARE
from truthcal.plots import drawing as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ABOVE, _MARGIN = 1.04, 0.02


class Largest(NamedTuple):
    """Largest prediction of a model, and largest value that its plot must show."""

    proba: float
    value: float


def axis_end(models: Iterable[Largest]) -> float:
    """Return the end of probability axes that suits all models: just above the largest value if predictions are small.

    With axes to 1, predictions of rare events would be a dot in a corner.
    """
    models = list(models)
    largest = max(max(model) for model in models)
    rare = max(model.proba for model in models) < RARE and largest > 0.0
    return min(_ABOVE * largest, 1.0) if rare else 1.0


def axis_limits(end: float) -> tuple[float, float]:
    """Return the limits of a probability axis from 0 to `end`, with a margin for lines along its ends."""
    return -_MARGIN * end, (1.0 + _MARGIN) * end


def prepare_square(ax: "Axes", kind: str) -> None:
    """Make square probability axes, of predictions and frequencies, with the diagonal of calibrated predictions."""
    from truthcal.plots.ticks import probability_ticks

    ax.set(xlabel="predicted probability", xlim=axis_limits(1.0), ylim=axis_limits(1.0))
    draw.set_y_label(ax, "observed frequency")
    probability_ticks(ax, "x", "y")
    ax.set_aspect("equal", anchor="N")  # free space goes below, where the legend is
    draw.hide_frame(ax)
    (diagonal,) = ax.plot([0, 1], [0, 1], color=draw.ink())
    draw.reference_line(diagonal, kind, "diagonal")
