"""Which segments are miscalibrated: one test for each group of a table, with regard to how many there are."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal._keys import printed
from truthcal._parameters import check_choice, check_level, check_whole, refuse_no_groups
from truthcal._segments import Segment, SegmentTable
from truthcal._verdicts import ConfidenceInterval
from truthcal.inference.assessment import Gaps
from truthcal.inference.cells import CELLS, Cells, bucket_sample, tent_measure
from truthcal.inference.intervals import interval_of
from truthcal.inference.planning import LEAST_INFORMATION
from truthcal.inference.quadratic import upper_tail
from truthcal.inference.tents import Tents
from truthcal.inference.testing import refuse_fractions_in, rows_of, test_of
from truthcal.sketch import Sketch
from truthcal.sketch_table import SketchTable

_Array = NDArray[np.float64]

# The test of `assess`: it sees predictions that are too extreme, which ATB, blind where errors change sign, may not.
_MEASURE = "multiscale_atb"
# So many cells give p-values 1% to 5% too large, in a third of the time that it takes to give them to 0.6%; p-values
# below _CLOSER_LOOK are computed anew with all cells.
_FEW_CELLS, _CLOSER_LOOK = 64, 0.02
# Where rows are so few and skewed that the limit has to be multiplied by more than this, a bound may be smaller.
_MUCH = 2.0
# Enough for the ends of an interval of rms to 0.5%, which two printed digits do not show.
_INTERVAL_CELLS = 32


def assess_segments(
    table: SketchTable,
    *,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    min_rows: int = 30,
    adjust: str = "holm",
) -> SegmentTable:
    """Which segments are miscalibrated? A test for each group, and control of how many false alarms there are.

    Parameters
    ----------
    table : SketchTable
        One sketch for each segment, for example from ``sketch_frame(frame, ..., by="region")``. Outcomes are 0/1.
    alpha : float, default 0.05
        Segments with an adjusted p-value of at most this are called miscalibrated.
    confidence_level : float, default 0.95
        Of the intervals. Each is for its own segment and has no regard to the others.
    min_rows : int, default 30
        Segments of fewer rows are listed, but not tested and not counted. With weights, rows of equal weight that are
        worth as much.
    adjust : {"holm", "fdr", "none"}, default "holm"
        What `alpha` promises, however many segments there are. "holm": the chance of any false alarm is at most
        `alpha`. "fdr": of the segments called miscalibrated at most this share is not, on average (Benjamini,
        Hochberg); finds more where there are many. "none": each calibrated segment has this chance of a false alarm,
        so that 37 of them raise one or more 85% of the time.

    Returns
    -------
    SegmentTable
        Print it. A mapping from keys to `Segment`; ``.table()`` for a data frame, ``.to_dict()`` for JSON.

    Notes
    -----
    The statistic is multiscale ATB, as in `assess`; p-values are of the upper tail (nothing is called too good). A
    sketch cannot redraw its rows' outcomes, and the distribution for many rows makes p-values too small where rows are
    few and events are rare: the sum of errors is then skewed. By how much is known to first order (Cramér 1938): at z
    standard deviations tails are exp(+-g z^3 / 6) times as heavy, g the skewness. So the p-value is that of many rows
    ("asymptotic") times cosh(g z^3 / 6), with g taken as if all rows were skewed to the same side; or the upper limit
    that always holds ("bound"), if that is smaller. For groups with g near 0 it is the one of `calibration_test`.

    Which segments are tested depends on their numbers of rows and their weights alone. These are known before any
    outcome, so the choice favours no outcome, and p-values of the rest mean what they meant. A segment where sum
    p(1 - p) is below 5 is tested if it has the rows, since gross errors show, but never called calibrated.

    Segments have no rows in common, so their p-values are independent, as "fdr" wants. Whether all rows together are
    calibrated is another question, ``assess(table.total())``: errors of segments may cancel in the total.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.
    Benjamini, Hochberg (1995), Controlling the false discovery rate.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> rng = np.random.default_rng(0)
    >>> sketches = {}
    >>> for region, factor in {"north": 1.0, "south": 0.8, "west": 1.0}.items():
    ...     p = rng.random(1000)
    ...     sketches[region] = tc.Sketch().update(rng.random(1000) < factor * p, p)
    >>> segments = tc.assess_segments(tc.SketchTable.from_sketches(sketches, by="region"))
    >>> print(segments.verdict)
    1 of 3 segments is miscalibrated, at most 5% chance of any false alarm: south (too high).
    >>> print(segments["west"].kind)
    calibrated
    """
    alpha, level = check_level(alpha, "alpha"), check_level(confidence_level, "confidence_level")
    min_rows, adjust = check_whole(min_rows, "min_rows", 1), check_choice(adjust, "adjust", tuple(_ADJUSTMENTS))
    refuse_no_groups(table, isinstance(table, SketchTable) and len(table))
    answers = table.table()
    enough = answers["n"] > 0 if min_rows == 1 else _worth(table) >= min_rows * (1.0 - 1e-9)
    found = [_Found.of(table[key], bool(test), level) for key, test in zip(table, enough, strict=True)]
    adjusted = _adjusted(np.array([each.pvalue for each in found]), adjust)
    rms_interval = functools.cache(functools.partial(_rms_interval, table, level))
    segments = [
        Segment(
            key=key,
            name=", ".join(map(printed, key if len(table.by) > 1 else (key,))),
            kind=each.kind(float(adjusted[g]), alpha),
            pvalue=each.pvalue,
            adjusted=float(adjusted[g]),
            method=each.method,
            n=int(answers["n"][g]),
            information=each.information,
            mean_proba=float(answers["mean_proba"][g]),
            mean_true=float(answers["mean_true"][g]),
            bias_interval=each.bias,
            atb=float(answers["atb"][g]),
            noise_floor=float(answers["noise_floor"][g]),
            rms=float(answers["rms"][g]),
            _rms_interval=rms_interval,
        )
        for g, (key, each) in enumerate(zip(table, found, strict=True))
    ]
    return SegmentTable(tuple(sorted(segments, key=_order)), table.by, alpha, adjust, min_rows)
