"""Choose the method of a recalibration, and say why."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from truthcal.inference.assess import REVERSED, SEPARATED
from truthcal.inference.direction import is_reversed, is_separated
from truthcal.inference.paired import paired_mean
from truthcal.results.assessment import Assessment
from truthcal.results.recalibration import METHOD_NAMES, Candidate
from truthcal.results.text import count

_Array = NDArray[np.float64]

# Events, and other rows, that "auto" needs to change anything: with fewer, a map follows single rows.
FEWEST_OF_EACH = 10
# Log losses that differ by less than this part of themselves are ties: fits end with errors of about 1e-11.
_TIE = 1e-9
UNCORRECTED = "Miscalibration is significant, but is not corrected: predictions stay as they are."


def rank_methods(
    losses: Mapping[str, _Array], weight: _Array, groups: NDArray[np.int64] | None
) -> tuple[Candidate, ...]:
    """Compare the log losses of methods, one for each row, with those of the best one: of ties, the simplest."""
    means = {name: float(np.average(loss, weights=weight)) for name, loss in losses.items()}
    lowest = min(means.values())
    best = losses[next(name for name, mean in means.items() if mean <= lowest * (1.0 + _TIE))]
    gaps = {name: paired_mean(loss - best, weight, groups) for name, loss in losses.items()}
    return tuple(Candidate(name, means[name], max(gap.mean, 0.0), gap.standard_error) for name, gap in gaps.items())


def doubts_about(whole: Assessment, n_events: int) -> list[str]:
    """Reasons why no map should be fitted to these rows."""
    points = whole._summary.points()
    doubts = [REVERSED] if is_reversed(points, whole.n_effective) else []
    doubts += [SEPARATED] if is_separated(points) else []
    fewest, what = min((n_events, "event"), (whole.n - n_events, "non-event"))
    if fewest < FEWEST_OF_EACH:
        needed = f"at least {FEWEST_OF_EACH} events and {FEWEST_OF_EACH} non-events are needed"
        doubts.append(f"Only {count(fewest, what)}: {needed} for a map that follows more than single rows.")
    return doubts


def is_significant(whole: Assessment, alpha: float) -> bool:
    """Tell whether the calibration test gives a reason to change anything."""
    return whole.test.greater <= alpha or whole.test.impossible > 0


def choose_method(
    candidates: tuple[Candidate, ...], whole: Assessment, alpha: float, doubts: list[str]
) -> tuple[str, str]:
    """Choose the simplest method about as good as the best one, if there is anything to correct, and say why."""
    test = whole.test
    if not is_significant(whole, alpha):
        return "identity", f"Miscalibration is not significant ({test.format_p(test.greater)})."
    significant = f"Miscalibration is significant ({test.format_p(test.greater)})"
    if doubts:
        cure = "\nIf so, pass 1 minus the predictions." if doubts[0] == REVERSED else ""
        return "identity", f"{significant}, but is not corrected.\n{doubts[0]}{cure}"
    best = min(candidates, key=lambda candidate: candidate.difference).method
    chosen = next((each.method for each in candidates if each.within_one_standard_error), best)
    if chosen == "identity":
        problem = "no method improves the log loss\nof rows that it was not fitted to by more than one standard error"
        return "identity", f"{significant}, but {problem}."
    why = (
        "It has the best log loss"
        if best == chosen
        else f"It is the simplest method about as good as {METHOD_NAMES[best]}"
    )
    return chosen, f"{why} on rows that it was not fitted to."
