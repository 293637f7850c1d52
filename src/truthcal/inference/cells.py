"""Rows reduced to a few hundred points on the prediction axis: all that the theory of many rows needs.

In the space where the kernel is the inner product of phi(p) and phi(q), a measure with a kernel of tents is the squared
length of the mean of w c phi(p). For many rows that mean is normal, so its squared length is a weighted sum of squares
of normals. The weights are eigenvalues, which a few hundred points give to four digits and more.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.sample import Sample
from truthcal.core.sketch import Sketch
from truthcal.inference.laws.tent_kernel import TentKernel

_Array = NDArray[np.float64]

# Cells of equal noise: 192 give p-values of multiscale ATB to 0.6% down to 1e-9, and of ATB to 0.01%, in 2 ms. Twice as
# many would be four times as close, and take seconds where BLAS threads wait for a busy core.
CELLS = 192
# More rows than this are not sorted: all that is said of them comes from a sketch with so many buckets.
TOO_MANY_TO_SORT, BUCKETS = 1 << 20, 1 << 14
# Directions that matter less than this share of the most are left out.
CERTAIN = 1e-11


@dataclass(frozen=True, slots=True)
class Cells:
    """Points `x`, increasing, and sums over the rows near each, divided by the total weight W or by W^2.

    c = p - y, v = p(1 - p). `s`: w c / W. `a`: w^2 v / W^2. `q`: w^2 c^2 / W^2. `u`: w^2 c / W^2.
    `d`: w^2 / W^2.
    `ww` is the sum over all rows of w^2 / W^2, one over the number of rows of equal weight that would know as much.
    """

    x: _Array
    s: _Array
    a: _Array
    q: _Array
    u: _Array
    d: _Array
    ww: float

    @classmethod
    def of_sample(cls, sample: Sample, most: int = CELLS) -> Self:
        """One cell for each different prediction, or for neighbours where these are many."""
        p, y, w = sample.p.astype(np.float64), sample.y, sample.w / sample.weight
        c = p - y
        columns = w * c, w * w * p * (1.0 - p), (w * c) ** 2, w * w * c, w * w
        sums = [np.add.reduceat(column, sample.starts) for column in columns]
        return cls._merged(sample.groups.r, np.stack(sums), float(np.sum(w * w)), most)

    @classmethod
    def of_sketch(cls, sketch: Sketch, most: int = CELLS) -> Self:
        """One cell for each filled bucket, or for neighbours where these are many.

        A sketch has no sums of w^2 c. Without weights they are those of w c; with weights, w is taken for its mean in
        the bucket.
        """
        table, total = sketch.table(), sketch.weight
        s = (table["pos"] - table["neg"]) / total
        u = s * (table["ww"] / table["weight"]) / total
        sums = np.stack([s, table["wwv"] / total**2, table["wwcc"] / total**2, u, table["ww"] / total**2])
        return cls._merged(table["mean_proba"], sums, float(np.sum(table["ww"])) / total**2, most)

    @classmethod
    def _merged(cls, x: _Array, sums: _Array, ww: float, most: int) -> Self:
        """Neighbours as one where there are more than `most`, in cells of about equal noise."""
        noise = sums[1] + sums[2] + 1e-12 * sums[4]  # predictions of 0 and 1 have a place, too
        if len(x) > most:
            cell = equal_cells(noise, most)
            x = np.bincount(cell, noise * x) / np.bincount(cell, noise)
            sums = np.stack([np.bincount(cell, column) for column in sums])
        s, a, q, u, d = sums
        return cls(x, s, a, q, u, d, ww)

    def null_scales(self, kernel: TentKernel) -> _Array:
        """Under calibration the measure is a sum of squares of standard normals with these scales."""
        return _eigenvalues(self.x, self.a, kernel)


def equal_cells(noise: _Array, most: int) -> NDArray[np.intp]:
    """The cell of each point, numbered from 0, such that cells of neighbours have about equal noise."""
    share = (np.cumsum(noise) - 0.5 * noise) / np.sum(noise)
    return np.unique(np.minimum((share * most).astype(np.int64), most - 1), return_inverse=True)[1]


def axes_of(x: _Array, kernel: TentKernel) -> _Array:
    """Coordinates of phi at the points: inner products of rows are the kernel.

    By Cholesky, since eigenvectors take a hundred times as long where BLAS threads wait for a busy core. Points too
    close together to be told apart get a little room, which changes lengths by less than it.
    """
    room = np.eye(len(x)) * (1e-12 * len(x))
    return np.linalg.cholesky(kernel.matrix(x) + room).astype(np.float64)


def _eigenvalues(x: _Array, mass: _Array, kernel: TentKernel) -> _Array:
    root = np.sqrt(mass)
    return np.maximum(np.linalg.eigvalsh(root[:, None] * kernel.matrix(x) * root).astype(np.float64), 0.0)


def bucket_sample(sketch: Sketch) -> Sample:
    """The buckets of a sketch as rows: mean prediction, mean outcome, weight."""
    table = sketch.table()
    return Sample(table["mean_proba"], table["mean_true"], table["weight"])


def tent_measure(sketch: Sketch, kernel: TentKernel) -> float:
    """A measure with a kernel of tents, from a sketch.

    Each bucket becomes two points with the bucket's sums of w c and w c p. Pairs of rows in different buckets are then
    exact wherever the kernel is straight between them; for the others see docs/guide/inference.md, where the error is
    measured against the spread of the measure under calibration.
    """
    table = sketch.table()
    s, low, high = table["pos"] - table["neg"], table["min"], table["max"]
    middle, reach = (low + high) / 2.0, (high - low) / np.sqrt(12.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = np.where(reach > 0.0, (table["wcp"] - s * middle) / reach, 0.0)
    x = np.stack([middle - reach, middle + reach], axis=1).ravel()
    c = np.stack([(s - tilt) / 2.0, (s + tilt) / 2.0], axis=1).ravel()
    return float(kernel.sums(x, c[None, :])[0]) / sketch.weight**2
