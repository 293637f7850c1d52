"""Group sums: errors of rows that belong together, added up by group in cells of neighbouring predictions.

All inference for grouped rows needs only second moments of these sums. With z_g the vector of the sums of w c / W of
group g in each cell, and h_g that of its sums of w / W (w weight, c = p - y, W sum of all weights), these are

    errors = sum over g of z_g z_g',    cross = sum over g of z_g h_g',    weights = sum over g of h_g h_g'.

Under calibration groups have independent z_g with mean 0, so `errors` estimates the covariance of the total. With an
error e (a number for each cell), the noise of a group is z_g - h_g * e, and its covariance follows from all three.

Rows in memory have exact moments (`GroupSums.of_rows`). So has a sketch of few groups, which keeps their sums
(`GroupSums.of_entries`). A mergeable sketch of many groups keeps sums with random signs: each group has a slot, one of
128, and a sign, both from a hash. F is the sum over rows of s w c in each slot and cell, and the same for w. It is
linear, so that parts of a group add up, and F'F / W^2 has the mean `errors` (`GroupSums.of_flips`, `core.group_flips`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, invalid
from truthcal.core.edge_search import search_edges
from truthcal.core.points import Points, equal_cells

_Array = NDArray[np.float64]
_Ints = NDArray[np.int64]

# Cells of about equal noise. The narrowest of the tents of `information_atb` covers eight of them.
GROUP_CELLS = 128
# With fewer groups than the first, results are refused; with fewer effective groups than the second, they carry a
# warning.
FEWEST_GROUPS, FEW_GROUPS = 20, 40
# Products of groups with at most this many filled cells are added up pair by pair, of others as dense vectors, so many
# at a time (1 MB).
_SMALL_GROUP, _BLOCK = 4, 1 << 10


class GroupEntries(NamedTuple):
    """The filled cells of all groups, sorted by group: group, cell, and sums of w c / W and of w / W."""

    group: _Ints
    cell: _Ints
    z: _Array
    h: _Array

    @classmethod
    def of(cls, group: _Ints, cell: _Ints, z: _Array, h: _Array, n_cells: int) -> Self:
        """Add up the rows of each group in each cell."""
        key = group * n_cells + cell
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        sums = [np.add.reduceat(column[order], starts) for column in (z, h)]
        first = order[starts]
        return cls(group[first], cell[first], *sums)

    def take(self, some: NDArray[np.bool_]) -> Self:
        """Select some entries."""
        return type(self)(self.group[some], self.cell[some], self.z[some], self.h[some])

    def dense(self, n_cells: int) -> Iterator[tuple[_Array, _Array]]:
        """Yield the vectors z and h of some groups at a time, a row for each group."""
        place = np.cumsum(np.diff(self.group, prepend=self.group[:1]) > 0)  # groups numbered without gaps
        last_place = int(place[-1]) if len(place) else -1
        edges = np.searchsorted(place, np.arange(0, last_place + 1 + _BLOCK, _BLOCK))
        for first, last in pairwise(edges.tolist()):
            rows = place[first:last] - place[first]
            shape = int(rows[-1]) + 1, n_cells
            z, h = np.zeros(shape), np.zeros(shape)
            z[rows, self.cell[first:last]], h[rows, self.cell[first:last]] = self.z[first:last], self.h[first:last]
            yield z, h

    def moments(self, n_cells: int) -> tuple[_Array, _Array, _Array]:
        """Sums over groups of the products z z', z h' and h h'."""
        counts = np.bincount(self.group)
        small = counts[self.group] <= _SMALL_GROUP
        errors, cross, weights = self.take(small)._moments_of_small_groups(n_cells)
        for z, h in self.take(~small).dense(n_cells):
            errors += z.T @ z
            cross += z.T @ h
            weights += h.T @ h
        return errors, cross, weights

    def _moments_of_small_groups(self, n_cells: int) -> tuple[_Array, _Array, _Array]:
        """The same for groups with few entries: each entry times the one `step` places later in its group."""
        errors, cross, weights = np.zeros((3, n_cells, n_cells))

        def products(a: _Ints, x: _Array, b: _Ints, y: _Array) -> _Array:
            key = self.cell[a] * n_cells + self.cell[b]
            table = np.bincount(key, x[a] * y[b], minlength=n_cells * n_cells)
            return table.astype(np.float64, copy=False).reshape(n_cells, n_cells)

        for step in range(min(_SMALL_GROUP, len(self.group))):
            first = np.flatnonzero(self.group[: len(self.group) - step] == self.group[step:])
            second = first + step
            zz, zh, hh = (
                products(first, x, second, y) for x, y in ((self.z, self.z), (self.z, self.h), (self.h, self.h))
            )
            errors, cross, weights = errors + zz, cross + zh, weights + hh
            if step > 0:
                errors, weights = errors + zz.T, weights + hh.T
                cross = cross + products(second, self.z, first, self.h)
        return errors, cross, weights


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Second moments of the sums of groups, in cells of neighbouring predictions.

    Attributes
    ----------
    cells : Points
        The cells, with weights that add up to 1. ``cells.bias`` is the sum of all z_g.
    errors, cross, weights : ndarray of shape (cells, cells)
        Sums over groups of z z', z h' and h h' (see the module), or estimates of them.
    n_groups : int
        Number of groups.
    slots : int
        Number of slots of sums with random signs from which the moments are estimated; 0 if they are exact.
    """

    cells: Points
    errors: _Array
    cross: _Array
    weights: _Array
    n_groups: int
    slots: int = 0
    _entries: GroupEntries | None = field(default=None, repr=False)

    @classmethod
    def of_rows(cls, points: Points, rows: Checked, groups: _Ints) -> Self:
        """Build exact moments from the points of rows (their summary), checked rows, and the group of each row.

        Groups are numbers from 0, without gaps. Time is that of sorting the rows by group; memory is 60 bytes a row.
        """
        starts = np.flatnonzero(np.diff(equal_cells(points.wwv + 1e-12 * points.ww, GROUP_CELLS), prepend=-1))
        cells = points.runs(starts).normalized()
        p = rows.p.astype(np.float64)
        w = np.full(len(p), 1.0 / len(p)) if rows.w is None else rows.w / float(np.sum(rows.w))
        cell = search_edges(cells.low[1:], p, "right").astype(np.int64)
        entries = GroupEntries.of(groups, cell, w * (p - rows.y), w, len(cells))
        return cls(cells, *entries.moments(len(cells)), int(groups.max()) + 1, _entries=entries)

    @classmethod
    def of_entries(cls, cells: Points, group: _Ints, cell: _Ints, errors: _Array, weights: _Array) -> Self:
        """Build exact moments from the sums of w c and of w of each group in each cell, sorted by group and cell."""
        entries = GroupEntries(group, cell, errors / cells.total, weights / cells.total)
        return cls(cells.normalized(), *entries.moments(len(cells)), int(group[-1]) + 1, _entries=entries)

    @classmethod
    def of_flips(cls, cells: Points, errors: _Array, weights: _Array, n_groups: int) -> Self:
        """Estimate the moments from sums with random signs, which a sketch keeps.

        `errors` and `weights`: arrays of shape (slots, cells), the sums of s w c and of s w of the rows in each cell,
        where the slot and the sign s of a row depend on its group only. `cells`: the sums of the same rows in the same
        cells (``sketch.points()`` joined by `Points.runs`), on the same scale of weights.

        Slots take the place of groups: the sum over pairs of different slots of <F_a, F_b>^2 has the mean of that over
        pairs of different groups, but for the pairs in one slot.
        """
        slots, total = len(errors), cells.total
        slot, cell = (index.ravel() for index in np.indices(errors.shape))
        entries = GroupEntries(slot, cell, (errors / total).ravel(), (weights / total).ravel())
        z, h = errors / total, weights / total
        return cls(cells.normalized(), z.T @ z, z.T @ h, h.T @ h, n_groups, slots, _entries=entries)

    @cached_property
    def one_group(self) -> float:
        """Sum of the squared shares of the groups in the weight: one over the effective number of groups."""
        return min(max(float(np.sum(self.weights)), 1.0 / self.n_groups), 1.0)

    @property
    def n_effective(self) -> float:
        """Effective number of groups: that of groups of equal weight with the same information."""
        return 1.0 / self.one_group

    def covariance(self, error: Any = 0.0) -> _Array:
        """Covariance of the sums of all groups in each cell, if predictions in each cell are too high by `error`.

        The sum over groups of (z - h e)(z - h e)'. It is not corrected for errors that were estimated from these rows.
        """
        e = np.broadcast_to(np.asarray(error, np.float64), (len(self.cells),))
        cross = self.cross * e
        return np.asarray(self.errors - cross - cross.T + self.weights * np.outer(e, e))

    def group_squares(self, phi: _Array) -> _Array | None:
        """Squared length of z_g phi of each group with moments, for `phi` with a row for each cell.

        Of each slot if they are estimated; None if they are not known.
        """
        if self._entries is None:
            return None
        blocks = [np.sum((z @ phi) ** 2, axis=1) for z, _ in self._entries.dense(len(self.cells))]
        return np.concatenate(blocks)

    @property
    def n_vectors(self) -> float:
        """Number of groups with moments, or of slots if they are estimated; inf if neither is known."""
        return math.inf if self._entries is None else self.slots or self.n_groups

    def vectors(self, phi: _Array) -> _Array:
        """The vectors z_g phi of each group (or slot) with moments, as rows, for `phi` with a row for each cell."""
        assert self._entries is not None
        return np.concatenate([z @ phi for z, _ in self._entries.dense(len(self.cells))])

    def flipped(self, count: int, rng: np.random.Generator) -> _Array:
        """Draw the sums of all groups in each cell with random signs, `count` times; normal draws without the groups.

        A sketch has only the covariance of such draws. They are larger if there are fewer rare events than predicted.
        """
        size = math.sqrt(self.fewer_events_factor)
        if self._entries is None:
            scales, axes = np.linalg.eigh(self.errors)
            root = axes * (size * np.sqrt(np.maximum(scales, 0.0)))
            return np.asarray(rng.standard_normal((count, len(scales))) @ root.T)
        totals = np.zeros((count, len(self.cells)))
        for z, _ in self._entries.dense(len(self.cells)):
            totals += (2.0 * rng.integers(0, 2, (count, len(z)), np.int8) - 1.0) @ z
        return totals * size

    @cached_property
    def bias_variance(self) -> float:
        """Variance of the mean error, from the differences between groups."""
        bias = float(np.sum(self.cells.bias))
        return max(float(np.sum(self.covariance(bias))), 0.0) / (1.0 - self.one_group)

    @cached_property
    def noise_ratio(self) -> float:
        """Variance of the mean error, divided by that of independent rows with the same errors."""
        cells, bias = self.cells, float(np.sum(self.cells.bias))
        squares = float(np.sum(cells.wwcc - 2.0 * bias * cells.wwc)) + cells.one_row * bias**2
        return self.bias_variance * (1.0 - cells.one_row) / squares if squares > 0.0 else 1.0

    @property
    def design_effect(self) -> float:
        """`noise_ratio`, but at least 1: rows whose errors cancel in their group do not count as additional rows."""
        return max(self.noise_ratio, 1.0)

    def design_effect_of(self, direction: _Array) -> float:
        """`design_effect` of a weighted sum of errors, with a factor for each cell, if predictions are calibrated."""
        alone = float(np.sum(direction**2 * self.cells.wwcc))
        return max(float(direction @ self.errors @ direction) / alone, 1.0) if alone > 0.0 else 1.0

    @property
    def effective_rows(self) -> float:
        """Number of independent rows of equal weight that would know the mean error as well."""
        return 1.0 / self.cells.one_row / self.design_effect

    @cached_property
    def fewer_events_factor(self) -> float:
        """Factor, at least 1, for variances that are estimated from outcomes with fewer rare events than predicted.

        By chance, predictions look too high where few events happen, and there the estimated variance is small, too:
        with 50 expected events in 50 groups, 4% of p-values were below 1%. The factor is the ratio of predicted to
        observed variance of rows, as far as it comes from rare outcomes: a row counts with (1 - 2p)^4. (With the square
        in place of the fourth power, 1.4% of p-values were below 5% with 50 expected events.)
        """
        cells = self.cells
        predicted = float(np.sum(cells.wwv))
        missing = float(np.sum((1.0 - 2.0 * cells.p) ** 4 * (cells.wwv - cells.wwcc)))
        return max(predicted / (predicted - missing), 1.0) if 0.0 < missing < predicted else 1.0

    def reversed(self, signs: _Array) -> "GroupSums":
        """The same sums if the errors of each cell had another sign, with p replaced by 1 - p there."""
        cells, minus = self.cells, signs < 0.0
        p = np.where(minus, 1.0 - cells.p, cells.p)
        cells = replace(cells, p=p, bias=signs * cells.bias, wwc=signs * cells.wwc)
        errors, cross = self.errors * np.outer(signs, signs), self.cross * signs[:, None]
        return replace(self, cells=cells, errors=errors, cross=cross, _entries=None)


def refuse_few_groups(n_groups: int) -> None:
    """Reject rows in too few groups: the spread between groups would not be known well enough."""
    if n_groups < FEWEST_GROUPS:
        found = "only one value" if n_groups == 1 else f"{n_groups} different values"
        problem = f"has {found}; at least {FEWEST_GROUPS} groups are needed,"
        reason = "because tests and intervals rest on the differences between groups."
        cure = "Use a finer grouping, or collect more groups."
        raise invalid("groups", f"{problem} {reason} {cure}", cause="too few groups")
