"""The null distribution of the test statistic of many classes, for many rows: a weighted sum of squares of normals.

The weights are the eigenvalues of the covariance of the mean vector,

    S = (1/W^2) sum over rows of w^2 (diag(p) - p p') x phi phi',    weighted as the statistic weights pairs of classes,

which has a side of cells times classes: thousands. S is never built. Its product with a vector takes one pass over the
rows; the largest eigenvalues follow from such products (Lanczos), and the others are replaced by equal ones with the
same sum and about the same sum of squares. Both sums are those of S: the first is known exactly, the second is
estimated from random vectors (Hutchinson 1990), of which only the part that is orthogonal to the leading eigenvectors
counts. Beyond a number of rows, a random part of them is used.
"""

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.group_sums import FEWEST_GROUPS
from truthcal.inference.laws.quadratic_form import lower_tail, upper_tail
from truthcal.inference.laws.redraw import Tails
from truthcal.inference.multiclass.cells import ClassCells
from truthcal.measures.multiclass import uncertainty, vector_atb_of

_Array = NDArray[np.float64]

# Products of rows and classes, squared, that one multiplication by S may take; and the least number of rows.
_WORK, _LEAST_ROWS = 4_000_000, 1_000
# Leading eigenvalues, and random vectors for the sum of squares of the others.
_LEADING, _PROBES = 16, 24
# Groups between which inner products are taken, and products that this may take.
_MOST_GROUPS, _LEAST_GROUPS, _GROUP_WORK = 1_500, 400, 5e10
# The variance of pairs of groups is at least this share of that of all.
_LEAST_SHARE = 0.05


class NullLaw(NamedTuple):
    """Distribution under calibration: that of the sum of `scales` times squares of normals.

    `share`: the variance of the statistic divided by that of this sum; the distance from the mean is scaled by its
    root.
    """

    scales: _Array
    share: float = 1.0

    @property
    def mean(self) -> float:
        """Mean: the noise floor."""
        return float(np.sum(self.scales))

    @property
    def sd(self) -> float:
        """Standard deviation."""
        return math.sqrt(2.0 * self.share * float(np.sum(self.scales**2)))

    def tails(self, observed: float) -> Tails:
        """Both tails of an observed statistic."""
        if self.mean == 0.0:
            return Tails(float(observed == 0.0), 1.0, 0.0, 0.0, 0)
        x = self.mean + (observed - self.mean) / math.sqrt(self.share)
        return Tails(upper_tail(x, self.scales), lower_tail(x, self.scales), self.mean, self.sd, 0)


class _Covariance:
    """The covariance S of the mean vector, as a function of vectors."""

    def __init__(self, cells: ClassCells) -> None:
        from scipy import sparse

        rows = cells.rows
        some = rows.sampled(max(_WORK // rows.n_classes**2, _LEAST_ROWS))
        self.cells, self.p, self.trace = cells, rows.p[some], cells.noise_floor()
        squares, noise = rows.w[some] ** 2, rows.w**2 * uncertainty(rows.p)
        used = float(np.sum(noise[some]))
        self.times = float(np.sum(noise)) / used if used > 0.0 else 1.0
        self.squares = squares * self.times
        place = cells.cell[some].ravel()
        ends = np.arange(0, place.size + 1, rows.n_classes)
        self.member = sparse.csr_matrix((np.ones(place.size), place, ends), (len(some), cells.n_cells))
        self.shape = cells.n_cells, rows.n_classes

    def __call__(self, vector: _Array) -> _Array:
        """Multiply a vector by S."""
        at_rows = self.member @ self.cells.sums_of(vector.reshape(self.shape))
        at_rows = self.p * at_rows
        at_rows -= self.p * at_rows.sum(axis=1, keepdims=True)
        back = self.member.T @ (self.squares[:, None] * at_rows)
        return self.cells.vectors(back).ravel()

    def surplus_squares(self) -> float:
        """By how much drawn rows make the sum of squared eigenvalues too large.

        A drawn row stands for `times` rows, whose squares, not that of their sum, belong to the sum.
        """
        if self.times <= 1.0:
            return 0.0
        weights = self.cells.class_weights()
        of_rows = (self.p**2 @ weights) ** 2 + (self.p**2 * (1.0 - 2.0 * self.p)) @ weights**2
        return (1.0 - 1.0 / self.times) * float(np.sum(self.squares**2 * of_rows)) / self.cells.rows.total**4


def null_law_of(cells: ClassCells) -> NullLaw:
    """The null distribution of independent rows."""
    covariance, size = _Covariance(cells), cells.n_cells * cells.rows.n_classes
    if covariance.trace <= 0.0:
        return NullLaw(np.zeros(1))
    leading, axes = _leading(covariance, size, min(_LEADING, size - 2))
    rest = max(covariance.trace - float(np.sum(leading)), 0.0)
    return NullLaw(np.concatenate([leading, _equal_scales(rest, _rest_of_squares(covariance, axes, rest))]))


def _leading(covariance: _Covariance, size: int, count: int) -> tuple[_Array, _Array]:
    """Largest eigenvalues, in decreasing order, and their eigenvectors."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator((size, size), matvec=covariance, dtype=np.float64)
    start = np.random.default_rng(1).standard_normal(size)
    values, axes = eigsh(operator, count, v0=start, tol=1e-4)
    return np.maximum(values[::-1], 0.0), axes[:, ::-1]


def _rest_of_squares(covariance: _Covariance, axes: _Array, rest: float) -> float:
    """Sum of the squares of the eigenvalues but the leading ones, whose sum is `rest`, from random signs."""
    rng, squares = np.random.default_rng(2), []
    for _ in range(_PROBES):
        probe = rng.choice([-1.0, 1.0], len(axes))
        image = covariance(probe - axes @ (axes.T @ probe))
        image -= axes @ (axes.T @ image)
        squares.append(float(image @ image))
    # Not below that of eigenvalues that are all equal.
    return max(float(np.mean(squares)) - covariance.surplus_squares(), rest**2 / len(axes))


def _equal_scales(total: float, squares: float) -> _Array:
    """Equal numbers with this sum and, as far as a whole number of them can have it, this sum of squares."""
    if total <= 0.0 or squares <= 0.0:
        return np.zeros(0)
    count = max(round(total**2 / squares), 1)
    return np.full(count, total / count)


# --- rows that belong together ----------------------------------------------------------------------------------------


class GroupedClasses(NamedTuple):
    """Sums of the errors of groups of rows with many classes.

    `gram`: inner products of the mean vector's parts from each group, of at most 1,500 groups drawn at random. `mean`:
    the sum of the squared lengths of all groups. `own_atb`: the part of vector ATB from pairs of rows in one group.
    `one_group`: one over the effective number of groups. In `mean` and `own_atb`, the part from each row alone is
    exact, and that from pairs of different rows is estimated from the drawn groups.
    """

    gram: _Array
    mean: float
    own_atb: float
    n_groups: int
    one_group: float

    @classmethod
    def of(cls, cells: ClassCells, groups: NDArray[np.int64]) -> Self:
        """Add up the errors of each group."""
        rows, n_groups = cells.rows, int(groups.max()) + 1
        assert n_groups >= FEWEST_GROUPS  # `check_groups` refuses fewer
        # The inner products take the square of the number of groups, for each cell and class.
        most = int(np.clip(math.sqrt(_GROUP_WORK / (cells.n_cells * rows.n_classes)), _LEAST_GROUPS, _MOST_GROUPS))
        drawn = np.arange(n_groups)
        if n_groups > most:
            drawn = np.sort(np.random.default_rng(0).choice(n_groups, most, replace=False))
        weight = np.bincount(groups, rows.w) / rows.total
        of_groups = np.bincount(groups, rows.w**2 * uncertainty(rows.p))
        order, own = np.argsort(groups, kind="stable"), 0.0
        ends = np.searchsorted(groups[order], np.arange(n_groups + 1))
        for g in drawn:
            own += vector_atb_of(rows.take(order[ends[g] : ends[g + 1]])) * weight[g] ** 2
        used = float(of_groups[drawn].sum())
        times, gram = float(of_groups.sum()) / used if used > 0.0 else 1.0, _gram(cells, groups, drawn)
        is_drawn = np.isin(groups, drawn)

        def total(of_rows: _Array, of_drawn: float) -> float:
            return float(of_rows.sum()) + times * (of_drawn - float(of_rows[is_drawn].sum()))

        squares = (rows.w / rows.total) ** 2
        mean = total(squares * (rows.errors() ** 2 @ cells.class_weights()), float(np.trace(gram)))
        own_atb = total(squares * np.sum(rows.errors() ** 2, axis=1), own)
        return cls(gram, max(mean, 0.0), max(own_atb, 0.0), n_groups, float(np.sum(weight**2)))

    @property
    def n_effective(self) -> float:
        """Effective number of groups."""
        return 1.0 / self.one_group

    def null_law(self) -> NullLaw:
        """The distribution if the errors of whole groups change sign at random (see `laws.sign_flips`).

        Its variance is twice the sum of squared inner products of two different groups. Those of drawn groups with
        themselves are left out, too: they stand for other groups, not for pairs of them.
        """
        scales = np.maximum(np.linalg.eigvalsh(self.gram), 0.0)
        total, squares = float(np.sum(scales)), float(np.sum(scales**2))
        share = 1.0 - float(np.sum(np.diag(self.gram) ** 2)) / squares if squares > 0.0 else 1.0
        # Eigenvalues of drawn groups are in proportion to those of all groups.
        return NullLaw(scales * (self.mean / total if total > 0.0 else 0.0), max(share, _LEAST_SHARE))


def _gram(cells: ClassCells, groups: NDArray[np.int64], drawn: NDArray[np.int64]) -> _Array:
    """Inner products of the mean vector's parts from some groups; one class at a time, to bound the memory."""
    rows, place = cells.rows, np.full(int(groups.max()) + 1, -1)
    place[drawn] = np.arange(len(drawn))
    some = np.flatnonzero(place[groups] >= 0)
    place, p, w, y = place[groups[some]], rows.p[some], rows.w[some], rows.y[some]
    gram = np.zeros((len(drawn), len(drawn)))
    for k, (root, first, end) in enumerate(cells.classes()):
        cell = place * (end - first) + cells.cell[some, k] - first
        sums = np.stack([np.bincount(cell, w * column, len(drawn) * (end - first)) for column in p.T], axis=1)
        np.subtract.at(sums, (cell, y), w)
        vectors = root.T @ sums.reshape(len(drawn), end - first, -1) * (cells.scale[first:end] / rows.total)
        flat = vectors.reshape(len(drawn), -1)
        gram += flat @ flat.T
    return gram
