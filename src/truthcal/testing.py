"""Assertions for tests of models, with pytest or unittest."""

from inspect import signature, unwrap
from typing import Any

from truthcal.core.frame_columns import named_columns
from truthcal.core.params import check_choice, refuse_unknown_options
from truthcal.inference.gate import check
from truthcal.results.gate import Gate

__all__ = ["assert_calibrated"]


@named_columns
def assert_calibrated(
    y_true: Any, y_proba: Any = None, *, max_error: float | None = None, too_little_data: str = "fail", **options: Any
) -> Gate:
    """Raise AssertionError unless predictions pass `check`, with its verdict and the evidence as message.

    Parameters
    ----------
    y_true, y_proba
        As for `assess`: columns, a `Sketch`, or a data frame and the names of two of its columns.
    max_error : float, optional
        The largest error, on the scale of a probability, that passes. Without it, the assertion fails if
        miscalibration is significant at the level `alpha`, default 0.05: one in 20 calibrated models fails by chance.
    too_little_data : {"fail", "pass"}, default "fail"
        Result if there are too few rows to tell. Few rows prove nothing, so that they fail by default. "pass" fails
        only what `check` fails. It also accepts an estimate of the error above `max_error`, as long as the interval of
        the error includes values below it.
    **options
        Passed to `check`: `alpha`, `confidence_level`, `by`, `groups`, `sample_weight`, `pos_label`, ...

    Returns
    -------
    Gate
        The result of `check`, if the assertion holds.

    Examples
    --------
    >>> import numpy as np
    >>> from truthcal.testing import assert_calibrated
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> gate = assert_calibrated(rng.random(2000) < p, p, max_error=0.05)
    >>> gate.status
    'pass'
    """
    __tracebackhide__ = True  # pytest shows the line of the test, not this one
    check_choice(too_little_data, "too_little_data", ("fail", "pass"))
    _refuse_unknown(options)
    gate = check(y_true, y_proba, max_error=max_error, **options)
    if gate.status == "fail" or (gate.status == "too little data" and too_little_data == "fail"):
        raise AssertionError(str(gate))
    return gate


def _refuse_unknown(options: dict[str, Any]) -> None:
    """Reject options that `check` does not have, in the name of the assertion."""
    known = [name for name in signature(unwrap(check)).parameters if name not in ("y_true", "y_proba")]
    refuse_unknown_options("assert_calibrated", options, [*known, "too_little_data"])
