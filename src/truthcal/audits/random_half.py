"""Expected subsampled errors: the coins that choose the half of the rows are drawn like the outcomes."""

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from truthcal.audits.audited_measure import AuditedMeasure, SortedReport
from truthcal.audits.outcomes import Outcomes2D
from truthcal.measures.registry import MEASURES

_Array = NDArray[np.float64]

# Subsampled measure -> the measure of each half.
MEASURE_OF_HALF = {"subsampled_smcal": "smcal", "subsampled_step_ce": "step_ce"}


def is_subsampled(measure: AuditedMeasure) -> bool:
    """Return whether the value of a measure is a mean over random halves of the rows."""
    return measure.name in MEASURE_OF_HALF and not measure.user_defined


def with_coins(measure: AuditedMeasure, truth: _Array) -> tuple[AuditedMeasure, _Array]:
    """Return a measure and the chances of the coins that it takes: the outcomes and, if it is subsampled, the halves.

    Then one half is enough for each outcome, since only the expected score is wanted.
    """
    if not is_subsampled(measure):
        return measure, truth
    norm = MEASURES[MEASURE_OF_HALF[measure.name]].norm
    assert norm is not None

    def values(reported: SortedReport) -> Callable[[Outcomes2D], _Array]:
        order, sample = reported.order, reported.sample
        starts, n = sample.starts, sample.n

        def score(coins: Outcomes2D) -> _Array:
            outcome, kept = coins[:, :n][:, order], coins[:, n:][:, order]
            bias = np.add.reduceat(kept * (sample.p - outcome), starts, axis=1)
            return norm(sample.p[starts], bias) / n

        return score

    chances = np.concatenate([truth, np.full(len(truth), 0.5)])
    return dataclasses.replace(measure, values=values, tolerance=0.0, slow=False), chances
