"""Totals over all rows that a test needs besides its statistic, in one pass and in any order."""

import math
from dataclasses import dataclass
from typing import Self

from truthcal.core.bins import scaled_weights
from truthcal.core.checks import Checked
from truthcal.core.parallel import in_parts
from truthcal.core.points import Points
from truthcal.kernels.totals import information_sums


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over rows; `Points` has the same ones, and documents them."""

    rows: int
    information: float
    effective_information: float
    noise_floor: float
    impossible: int
    n_buckets: int = 0

    @classmethod
    def of_points(cls, points: Points) -> Self:
        """Totals of points of a sketch or of sorted rows."""
        known = points.information, points.effective_information, points.noise_floor
        return cls(points.rows, *known, points.impossible, points.n_buckets)

    @classmethod
    def of_rows(cls, rows: Checked) -> Self:
        """Totals of checked rows with 0/1 outcomes, in any order."""
        (p, y, _), w = rows, scaled_weights(rows)[0]
        parts = in_parts(lambda first, last: information_sums(p[first:last], y[first:last], w[first:last]), len(p))
        weight, v, wwv, fourth, impossible = map(math.fsum, zip(*parts, strict=True))
        return cls(len(p), v, wwv**2 / fourth if fourth > 0.0 else 0.0, wwv / weight**2, int(impossible))

    @property
    def sketched(self) -> bool:
        """Whether these are totals of a sketch."""
        return self.n_buckets > 0
