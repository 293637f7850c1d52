"""Results as flat metrics, for experiment trackers and monitoring systems."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar


class Tracked:
    """Mixin of results that experiment trackers can log. Metrics are attributes: name -> path of the attribute."""

    __slots__ = ()
    _METRICS: ClassVar[Mapping[str, str]] = {}

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """Return the main numbers by name, flat, as MLflow and other trackers log them.

        Parameters
        ----------
        prefix : str, default ""
            Start of each name, such as "test_".

        Returns
        -------
        dict of str to float
            Names have letters, digits and underscores only. A number that is not known is nan.
        """
        return {f"{prefix}{name}": _number_at(self, path) for name, path in self._METRICS.items()}


def interval_metrics(name: str, path: str = "") -> dict[str, str]:
    """Metrics of an interval: its estimate and both ends."""
    path = path or name
    return {name: f"{path}.estimate", f"{name}_low": f"{path}.low", f"{name}_high": f"{path}.high"}


def attribute_metrics(*names: str) -> dict[str, str]:
    """Metrics that are called as their attributes."""
    return {name: name for name in names}


def _number_at(result: Any, path: str) -> float:
    """Number at the path of a metric; nan if there is none."""
    for name in path.split("."):
        result = None if result is None else getattr(result, name)
    return math.nan if result is None else float(result)
