"""Checks of binnings: those of the user, of their draws, and of the edges of bins."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid, is_missing_object
from truthcal.core.params import shown


def check_binning(binning: object) -> None:
    """Reject a binning of UBSE that is not a function of the predictions."""
    if isinstance(binning, type):
        problem = f"is the class {binning.__name__}; pass an instance, {binning.__name__}(...)."
        raise invalid("binning", problem, TypeError)
    if not callable(binning):
        rule = "must be a Binning such as ShiftedGrid(0.1), or a function of the predictions"
        reason = "Precomputed labels are not accepted, because they could depend on the outcomes: pass lambda p: ..."
        raise invalid("binning", f"{rule}; got {type(binning).__name__}. {reason} instead.", TypeError)


def check_draw(labels: Any, p: NDArray[np.float64]) -> NDArray[Any]:
    """Check one draw of a user's UBSE binning: a label for each prediction, the same for ties.

    A sorted sample orders ties by their outcomes, so labels that split them could depend on the outcomes.
    """
    rows = len(p)
    try:
        array = np.asarray(labels)
    except ValueError:
        array = np.empty(0)
    if array.shape != (rows,):
        draw = f"an array of shape {array.shape}" if array.ndim else type(labels).__name__
        several = f"several such draws (an iterator of them, or an array of shape (draws, {rows}))"
        rule = f"must return one label for each of the {rows} predictions, or {several}"
        raise invalid("binning", f"{rule}; one draw was {draw}.")
    missing = is_missing_object(array) if array.dtype.kind == "O" else array != array  # only nan differs from itself
    if missing.any():
        raise invalid("binning", "returned a missing label (nan or None); it must label every prediction.")
    split = (array[1:] != array[:-1]) & (p[1:] == p[:-1])
    if split.any():
        problem = f"gave equal predictions ({p[int(split.argmax())]:g}) different labels"
        cure = "For bins of equal count use QuantileBins, which splits ties fairly."
        raise invalid("binning", f"{problem}; a binning may depend on the predictions alone. {cure}")
    return array


def check_edges(edges: Any) -> tuple[float, ...]:
    """Check the edges of `FixedBins`: increasing numbers in [0, 1]."""
    try:
        cuts = np.asarray(list(edges), dtype=np.float64)
    except (TypeError, ValueError):
        cuts = np.empty((0, 0))
    if cuts.ndim != 1:
        problem = f"must be a list of numbers; got {shown(edges)}. For ten equal bins: np.linspace(0, 1, 11)."
        raise invalid("edges", problem, TypeError)
    if not (((cuts >= 0) & (cuts <= 1)).all() and (np.diff(cuts) > 0).all()):
        raise invalid("edges", f"must lie in [0, 1] and increase; got {cuts.tolist()}.")
    return tuple(cuts.tolist())
