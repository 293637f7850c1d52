"""Answers to mistakes in how scikit-learn is called: a warning at the user's line, and functions passed uncalled."""

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from truthcal.core.checks import invalid

P = ParamSpec("P")
R = TypeVar("R")

# scikit-learn calls scorers and estimators through these packages: their lines tell the user nothing.
_BETWEEN = ("truthcal", "sklearn", "joblib")


def warn_caller(message: str) -> None:
    """Warn at the line outside of scikit-learn and truthcal that led here: the user's, unless in another process."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def refuse_uncalled(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that returns scorers explain itself if a search calls it like a scorer, as (estimator, X, y)."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > 1:
            name = f"{function.__name__}()"
            raise invalid("scoring", f"must be {name}, with parentheses; got the function itself.", TypeError)
        return function(*args, **kwargs)

    return wrapper
