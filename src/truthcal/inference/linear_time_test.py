"""The paper's tester: accept or reject calibration in linear time."""

import math

import numpy as np

from truthcal.core.checks import check_rows, refuse_fractional
from truthcal.core.frame_columns import named_columns
from truthcal.core.neighbours import neighbour_z
from truthcal.core.summarize import given_sketch, refuse_fractional_buckets, refuse_groups
from truthcal.measures.atb_approx import bounds_of
from truthcal.results.tests import LinearTimeTest

# The test rejects at larger distances from calibration (distCal times the square root of the number of rows).
_FAR = 2.0 + math.sqrt(2.0 * math.log(4.0))


@named_columns
def linear_time_test(
    y_true: object, y_proba: object = None, *, sample_weight: object = None, pos_label: object = None
) -> LinearTimeTest:
    """Accept or reject calibration in linear time, each error with probability at most 1/4.

    Parameters
    ----------
    y_true, y_proba, sample_weight, pos_label
        As for `calibration_test`.

    Returns
    -------
    LinearTimeTest
        ``accepted``, and the guarantee.

    Notes
    -----
    The tester of Hartline, Hu and Wu: accept if ATB <= 3/(2n). Bounds on ATB that are at most 1/(2n) apart are accurate
    enough for this. Calibrated predictions have E[ATB] <= 1/(4n), so they are accepted with probability at least 3/4.
    (They are almost always accepted: the test is very conservative, and `calibration_test` detects much smaller
    errors.) If the population's distance from calibration (distCal) is at least ``3.67 / sqrt(n)``, the predictions are
    rejected with probability at least 3/4. The proof is in docs/theory/inference.md (I10). O(n) in the worst case.
    There is no `groups`: the guarantee holds for independent rows only. Use `calibration_test` if rows belong together.
    Reference: Hartline, Hu, Wu (2025), A Perfectly Truthful Calibration Measure.

    Examples
    --------
    >>> import numpy as np
    >>> import truthcal as tc
    >>> p = np.random.default_rng(0).random(1000)
    >>> y = np.random.default_rng(1).random(1000) < p
    >>> print(tc.linear_time_test(y, p))
    Accepted as calibrated: ATB 4.044e-05 <= 0.0015.
    (With probability at least 3/4, calibrated predictions are accepted
    and predictions at a distance of 0.116 or more from calibration are rejected.)
    """
    sketch = given_sketch(y_true, y_proba, sample_weight, pos_label)
    if sketch is not None:
        refuse_groups(sketch, "the guarantees of this test", "Use calibration_test.")
        points = sketch.points()
        refuse_fractional_buckets(points)
        value, ww, z = sketch.atb(), points.one_row, sketch.neighbour_z
        if value.width > ww / 2.0:
            raise ValueError(
                f"the sketch bounds ATB only to within {value.width:.2g}, and this test needs {ww / 2.0:.2g}; build it "
                f"with about {math.ceil(math.sqrt(value.width / (ww / 2.0)))} times as many buckets (`n_buckets`)."
            )
    else:
        rows = check_rows(y_true, y_proba, sample_weight, pos_label)
        refuse_fractional(rows.y)
        ww = 1.0 / len(rows.p) if rows.w is None else float(np.sum((rows.w / np.sum(rows.w)) ** 2))
        value = bounds_of(rows, ww / 2.0, squared=True)
        z = neighbour_z(rows.p, rows.y)
    threshold = 1.5 * ww
    return LinearTimeTest(value.value <= threshold, value, threshold, 1.0 / ww, _FAR * math.sqrt(ww), z)
