"""Cells: rows with many classes, added up by neighbouring probabilities of each class.

The statistic of the calibration test of many classes is

    (1/W^2) sum over rows i, j and classes k, l of w_i w_j c_il c_jl r_kl s_k T(u_ik, u_jk),

where c = p - y is the vector of errors of a row, T the mixture of tents of `information_atb`, and u_k the position of
p_k on the information axis of class k, rounded to cells of equal information. s_k is the share of class k in the
information. r_kl weights the error of class l where class k is predicted: 1 for k = l, and 1 / (K - 1)^1.5 for each of
the other K - 1 classes. The error of class l at positions of p_k is nearly the same variable for all k, so that
averaging over k removes no noise of this second part: with weights of 1 / (K - 1) both parts have about the same
spread, and a slope of 1.3 that the first part alone detects with a power of 0.97 (10 classes, 1,000 rows) is detected
with 0.68. With these weights it is about 0.9, and errors that only the second part shows are still detected. For two
classes the statistic is twice `information_atb`, up to the rounding to cells.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.class_rows import ClassRows
from truthcal.core.points import information_axis
from truthcal.inference.laws.tent_kernel import TentKernel
from truthcal.kernels import multiclass as kernel
from truthcal.measures.ubse import MultiscaleInformation

_Array = NDArray[np.float64]
_Ints = NDArray[np.int32]

# Cells for each class: at most the first number, and in total about the second, but at least the third for each class.
# Cells with an information (sum of p(1 - p)) below 1 show nothing.
_MOST_CELLS, _ALL_CELLS, _LEAST_CELLS = 64, 2048, 16
_FEWEST_CELLS = 4


@dataclass(frozen=True, eq=False)
class ClassCells:
    """Rows with many classes in cells.

    Attributes
    ----------
    rows : ClassRows
        The rows.
    cell : ndarray of shape (n, k)
        The cell of each row for each class. Cells of all classes are numbered one after another.
    starts : ndarray of shape (k + 1,)
        First cell of each class.
    roots : list of ndarray
        For each class, a matrix R with R R' = s_k T between its cells.
    scale : ndarray of shape (cells, k)
        Roots of r_kl for each cell of class k and each class l.
    """

    rows: ClassRows
    cell: _Ints
    starts: NDArray[np.int64]
    roots: list[_Array]
    scale: _Array

    @classmethod
    def of(cls, rows: ClassRows) -> Self:
        """Find the cells of all classes."""
        at_most = int(np.clip(_ALL_CELLS // rows.n_classes, _LEAST_CELLS, _MOST_CELLS))
        variance = rows.w[:, None] * rows.p * (1.0 - rows.p)
        information = np.maximum(variance.sum(axis=0), 0.0)
        useful = np.clip(information / rows.total / rows.one_row, _FEWEST_CELLS, at_most).astype(np.int64)
        known = float(information.sum())
        shares = information / known if known > 0.0 else np.full(rows.n_classes, 1.0 / rows.n_classes)
        tents = MultiscaleInformation().shares()
        tent = TentKernel(np.array(list(tents)), np.array(list(tents.values())), True)
        cell, starts, roots = np.empty(rows.p.shape, np.int32), [0], []
        for k, order in enumerate(rows.orders):
            place, x = _equal_information(rows.p[order[::-1], k], variance[order[::-1], k], int(useful[k]))
            cell[order[::-1], k] = starts[-1] + place
            starts.append(starts[-1] + len(x))
            roots.append(np.sqrt(shares[k]) * tent.axes(x))
        others = math.sqrt(_weight_of_others(rows.n_classes))
        scale = np.full((starts[-1], rows.n_classes), others)
        for k in range(rows.n_classes):
            scale[starts[k] : starts[k + 1], k] = 1.0
        return cls(rows, cell, np.array(starts), roots, scale)

    def with_rows(self, rows: ClassRows, some: NDArray[np.int64] | None = None) -> "ClassCells":
        """Other rows in the same cells; with `some`, the places of these rows."""
        return replace(self, rows=rows, cell=self.cell if some is None else self.cell[some])

    def take(self, some: NDArray[np.int64]) -> "ClassCells":
        """Some of the rows, in the same cells."""
        return self.with_rows(self.rows.take(some), some)

    @property
    def n_cells(self) -> int:
        """Number of cells of all classes."""
        return int(self.starts[-1])

    @cached_property
    def errors(self) -> _Array:
        """Sum of w c of the rows in each cell: a row for each cell, a column for each class."""
        return self.errors_of(self.rows.y)

    def errors_of(self, y: NDArray[np.int64]) -> _Array:
        """The same sums for other outcomes."""
        out = np.zeros((self.n_cells, self.rows.n_classes))
        kernel.add_errors(self.cell, self.rows.p, y, self.rows.w, out)
        return out

    def vectors(self, errors: _Array) -> _Array:
        """Coordinates of sums of w c by cell in the space where the kernel is the inner product, divided by W."""
        parts = [root.T @ errors[..., a:b, :] for root, a, b in self.classes()]
        return np.asarray(np.concatenate(parts, axis=-2) * (self.scale / self.rows.total))

    def sums_of(self, vectors: _Array) -> _Array:
        """Transpose of `vectors`: from coordinates to cells."""
        vectors = vectors * (self.scale / self.rows.total)
        parts = [root @ vectors[a:b] for root, a, b in self.classes()]
        return np.concatenate(parts)

    def classes(self) -> "list[tuple[_Array, int, int]]":
        """Root, first cell and end of each class."""
        return [(root, int(a), int(b)) for root, a, b in zip(self.roots, self.starts, self.starts[1:], strict=False)]

    def statistic(self, errors: _Array) -> _Array:
        """The test statistic for sums of w c by cell; for each table of sums if there are several."""
        return np.asarray(np.sum(self.vectors(errors) ** 2, axis=(-2, -1)))

    def counts(self, y: NDArray[np.int64], some: NDArray[np.int64]) -> _Array:
        """Sums of the weights of some rows by cell and by their class y."""
        out = np.zeros((self.n_cells, self.rows.n_classes))
        for k in range(self.rows.n_classes):
            np.add.at(out, (self.cell[some, k], y[some]), self.rows.w[some])
        return out

    def class_weights(self) -> _Array:
        """Weight of the squared error of each class l in a row's own part of the statistic: sum over k of r_kl s_k."""
        others = _weight_of_others(self.rows.n_classes)
        shares = np.array([float(root[0] @ root[0]) for root in self.roots])
        return others + (1.0 - others) * shares

    def noise_floor(self) -> float:
        """Expected statistic of calibrated predictions."""
        rows = self.rows
        of_rows = (rows.p * (1.0 - rows.p)) @ self.class_weights()
        return float(np.sum(rows.w**2 * of_rows)) / rows.total**2


def _weight_of_others(n_classes: int) -> float:
    """The weight r_kl of classes l other than k."""
    return float((n_classes - 1.0) ** -1.5)


def _equal_information(p: _Array, information: _Array, at_most: int) -> tuple[NDArray[np.int64], _Array]:
    """Cut increasing predictions into cells of about equal information.

    Return the cell of each row, and the position of each cell on the information axis. Ties stay together.
    """
    total = float(information.sum())
    if total <= 0.0:  # all predictions are 0 or 1
        positions, place = np.unique(p, return_inverse=True)
        return place.astype(np.int64), positions
    starts = np.flatnonzero(np.diff(p, prepend=-1.0) > 0.0)
    of_ties = np.add.reduceat(information, starts)
    place = np.minimum(information_axis(p[starts], of_ties) * at_most, at_most - 1).astype(np.int64)
    cells, place = np.unique(place, return_inverse=True)
    of_cells = np.bincount(place, of_ties, len(cells)).astype(np.float64)
    x = information_axis(np.arange(float(len(cells))), of_cells)
    return np.repeat(place, np.diff(starts, append=len(p))), x
