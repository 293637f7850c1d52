"""Recalibration maps: non-decreasing functions from predicted to recalibrated probabilities."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from truthcal.core.checks import invalid
from truthcal.core.params import check_number, shown

_Array = NDArray[np.float64]

# Logarithms are taken of predictions between this and 1 minus this, and results lie between them: no map returns 0 or 1
# unless it leaves predictions as they are.
LEAST = 1e-9
# Log-odds of LEAST.
LARGEST_LOG_ODDS = math.log1p(-LEAST) - math.log(LEAST)
# Predictions closer than this are taken as equal: a line between them would be too steep for floats.
EQUAL = 1e-15


@dataclass(frozen=True, slots=True)
class LogisticMap:
    """The map with log-odds ``a ln(p) - b ln(1 - p) + c``, where a and b are not negative.

    Temperature scaling has a = b and c = 0, Platt scaling a = b, beta calibration three free numbers.
    """

    a: float
    b: float
    c: float

    def __call__(self, p: _Array) -> _Array:
        """Recalibrate valid probabilities."""
        p = np.clip(p, LEAST, 1.0 - LEAST)
        log_odds = self.a * np.log(p) - self.b * np.log1p(-p) + self.c
        return np.asarray(special.expit(np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the map in plain JSON types."""
        return {"a": self.a, "b": self.b, "c": self.c}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Check and read what `to_dict` returned."""
        a, b, c = (check_number(_entry(content, name), f"map: {name}", -math.inf) for name in "abc")
        if min(a, b) < 0.0:
            raise invalid("map", "must not decrease: `a` and `b` are not allowed to be negative.")
        return cls(a, b, c)


@dataclass(frozen=True, slots=True)
class InterpolatedMap:
    """The map that connects points by straight lines, and is constant beyond the first and the last one."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, p: _Array) -> _Array:
        """Recalibrate valid probabilities."""
        return np.interp(p, self.x, self.y)

    def to_dict(self) -> dict[str, Any]:
        """Return the points of the map in plain JSON types."""
        return {"x": list(self.x), "y": list(self.y)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Check and read what `to_dict` returned."""
        x, y = (_numbers(content, name) for name in "xy")
        if not (len(x) == len(y) > 0 and np.all(np.diff(x) > 0.0) and np.all(np.diff(y) >= 0.0)):
            raise invalid("map", "must have as many `y` as `x`, both in increasing order, and at least one.")
        if np.any(np.diff(x) <= EQUAL):
            raise invalid("map", f"must have `x` that differ by more than {EQUAL:g}: merge those that are closer.")
        return cls(tuple(x), tuple(y))


@dataclass(frozen=True, slots=True)
class IdentityMap:
    """The map that leaves predictions as they are."""

    def __call__(self, p: _Array) -> _Array:
        """Return the probabilities."""
        return p

    def to_dict(self) -> dict[str, Any]:
        """Return an empty dict: the map has no numbers."""
        return {}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the map."""
        return cls()


RecalibrationMap = IdentityMap | LogisticMap | InterpolatedMap

# Methods from the simplest map to the one with the most freedom.
METHODS: dict[str, type[IdentityMap] | type[LogisticMap] | type[InterpolatedMap]] = {
    "identity": IdentityMap,
    "temperature": LogisticMap,
    "platt": LogisticMap,
    "beta": LogisticMap,
    "isotonic": InterpolatedMap,
}


def read_map(method: str, content: Mapping[str, Any]) -> RecalibrationMap:
    """Check and read the stored map of a method."""
    stored = METHODS[method].from_dict(content)
    if isinstance(stored, LogisticMap) and method != "beta":
        rule = "a = b and c = 0" if method == "temperature" else "a = b"
        if stored.a != stored.b or (method == "temperature" and stored.c != 0.0):
            raise invalid("map", f"must have {rule} for the method {method!r}; got {shown(stored.to_dict())}.")
    return stored


def _entry(content: Mapping[str, Any], name: str) -> Any:
    """Read one entry of a stored map."""
    if not isinstance(content, Mapping) or name not in content:
        raise invalid("map", f"lacks {name!r}; got {shown(content)}.")
    return content[name]


def _numbers(content: Mapping[str, Any], name: str) -> list[float]:
    """Read a list of probabilities of a stored map."""
    values = _entry(content, name)
    if not isinstance(values, list):
        raise invalid("map", f"needs a list of numbers as {name!r}; got {shown(values)}.")
    numbers = [check_number(value, f"map: {name}", 0.0) for value in values]
    if max(numbers, default=0.0) > 1.0:
        raise invalid("map", f"must contain probabilities between 0 and 1 as {name!r}; got {max(numbers)!r}.")
    return numbers
