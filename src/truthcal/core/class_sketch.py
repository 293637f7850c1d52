"""The mergeable summary of rows with many classes: sums for each ordered pair of classes, with certified vector ATB."""

import json
import struct
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import LARGEST_WEIGHT, SMALLEST_WEIGHT, invalid, refuse_weights_between
from truthcal.core.class_rows import as_matrix, check_class_rows, column_order
from truthcal.core.file_format import BinaryFile
from truthcal.core.grid import MAX_BUCKETS
from truthcal.core.params import check_power_of_two, shown
from truthcal.core.points import excess
from truthcal.core.sketch import bucket_index
from truthcal.kernels.multiclass import add_to_pairs
from truthcal.results.measures import Bounded
from truthcal.results.text import count

_Array = NDArray[np.float64]

# Sums of a bucket for each pair of classes: of w c_l, of w c_l p_k, and of the positive w c_l.
_N_SUMS = 3
# Totals: number of rows, sums of w, w^2, w^2 (1 - |p|^2) and w^2 |c|^2.
_N_TOTALS = 5
_MOST_BYTES = 1 << 30
# Rows that are checked and added at a time, to keep copies small.
_CHUNK_NUMBERS = 1 << 22
# Rounding of the sums: relative to sums of absolute values.
_ROUNDING = 1e-11


class MulticlassSketch(BinaryFile):
    """Rows with many classes reduced to sums per bucket and pair of classes: fixed memory, mergeable, certified.

    Add rows in any number of updates, on any number of machines, and merge the sketches. Vector ATB comes with bounds
    that certainly contain the exact value.

    Parameters
    ----------
    labels : sequence
        The classes, in the order of the columns of the predictions: text or whole numbers.
    n_buckets : int, default 256
        Number of buckets of each class, a power of two: from 128 on graded, as those of `Sketch`.

    Notes
    -----
    Memory: 24 bytes for each bucket and ordered pair of classes, 0.6 MB for ten classes and 61 MB for a hundred. More
    than 1 GB is refused. Within a bucket the path of the sum of errors of each pair of classes is not known, but its
    integral is; that bounds the integral of its square from both sides (docs/theory/foundations.md). For a test, or
    intervals, pass rows to `assess`; each class against the rest can be tested from a `SketchTable`.

    Examples
    --------
    >>> import truthcal as tc
    >>> monday = tc.MulticlassSketch(["cat", "dog", "owl"]).update(["cat", "dog"], [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    >>> tuesday = tc.MulticlassSketch(["cat", "dog", "owl"]).update(["owl"], [[0.2, 0.3, 0.5]])
    >>> week = monday + tuesday
    >>> week
    MulticlassSketch(3 classes, n_buckets=256): 3 rows
    >>> print(week.atb())
    0.0435556, certain to 1e-11
    """

    _MAGIC, _NOUN = b"TRUTHMUL", "multiclass sketch"
    _HEADERS: ClassVar = {1: struct.Struct("<8sIIIQ")}

    def __init__(self, labels: Any, n_buckets: int = 256) -> None:
        self.labels = _check_labels(labels)
        self.n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
        k = len(self.labels)
        if self._bytes(k, self.n_buckets) > _MOST_BYTES:
            memory = f"{k:,} classes in {n_buckets:,} buckets take {self._bytes(k, self.n_buckets) / 1e9:,.1f} GB"
            raise invalid(
                "n_buckets", f"is too large: {memory}, and at most 1 GB is allowed. Use fewer buckets or classes."
            )
        self._sums = np.zeros((k, self.n_buckets, k, _N_SUMS))
        self._squares = np.zeros((k, self.n_buckets))
        self._low, self._high = np.full((k, self.n_buckets), np.inf), np.full((k, self.n_buckets), -np.inf)
        self._totals = np.zeros(_N_TOTALS)

    @staticmethod
    def _bytes(k: int, n_buckets: int) -> int:
        """Memory of the sums."""
        return 8 * k * n_buckets * (_N_SUMS * k + 3)

    @property
    def n(self) -> int:
        """Number of rows with a weight above 0."""
        return int(self._totals[0])

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self._totals[1])

    def update(self, y_true: object, y_proba: object, sample_weight: object = None) -> Self:
        """Add rows. Returns the sketch itself. If a row is invalid, the sketch is unchanged.

        Parameters
        ----------
        y_true, y_proba
            As for `multiclass_atb`: labels, and an array with a column for each class, in the order of `labels`.
            Columns of a data frame that are called as the labels are matched by name.
        sample_weight : array-like, optional
            Weights, zero or between 1e-70 and 1e70.

        Returns
        -------
        MulticlassSketch
            The sketch itself.
        """
        order = column_order(y_proba, self.labels)
        if order is not None:
            y_proba = as_matrix(y_proba, "y_proba")[:, order]
        rows = check_class_rows(y_true, y_proba, sample_weight, list(self.labels))
        w = np.ldexp(rows.w, rows.exponent)
        if w.min() < SMALLEST_WEIGHT or w.max() > LARGEST_WEIGHT:
            refuse_weights_between(float(w.min()), float(w.max()))
        step = max(_CHUNK_NUMBERS // rows.n_classes, 1)
        for first in range(0, rows.n, step):
            part = slice(first, first + step)
            self._add(rows.p[part], rows.y[part], w[part])
        return self

    def _add(self, p: _Array, y: NDArray[np.int64], w: _Array) -> None:
        bucket = np.stack([bucket_index(column, self.n_buckets) for column in np.clip(p.T, 0.0, 1.0)], axis=1)
        add_to_pairs(bucket.astype(np.int64), p, y, w, self._sums, self._squares, self._low, self._high)
        ww, squares = w * w, np.einsum("ik,ik->i", p, p)
        errors = squares - 2.0 * p[np.arange(len(y)), y] + 1.0
        self._totals += [len(y), w.sum(), ww.sum(), ww @ np.maximum(1.0 - squares, 0.0), ww @ errors]

    def merge(self, other: "MulticlassSketch") -> Self:
        """Add the rows of another sketch with the same classes and `n_buckets`. Returns the sketch itself."""
        if not isinstance(other, MulticlassSketch):
            raise invalid("other", f"must be a MulticlassSketch; got {shown(other)}.", TypeError)
        if other.labels != self.labels or other.n_buckets != self.n_buckets:
            raise invalid("other", "must have the same classes, in the same order, and the same n_buckets.")
        self._sums += other._sums
        self._squares += other._squares
        np.minimum(self._low, other._low, out=self._low)
        np.maximum(self._high, other._high, out=self._high)
        self._totals += other._totals
        return self

    def __add__(self, other: object) -> "MulticlassSketch":
        if not isinstance(other, MulticlassSketch):
            return NotImplemented
        return MulticlassSketch(self.labels, self.n_buckets).merge(self).merge(other)

    # --- results ---------------------------------------------------------------------------------------------------

    def _refuse_empty(self) -> None:
        if self.n == 0:
            raise ValueError("the sketch is empty; add rows with `update` first.")

    def atb(self) -> Bounded:
        """Vector ATB (`multiclass_atb`), between certified bounds."""
        self._refuse_empty()
        low, value, high = np.sum([self._integrals(k) for k in range(len(self.labels))], axis=0) / self.weight**2
        rounding = _ROUNDING * (1.0 + high)
        return Bounded(float(value), float(max(low - rounding, 0.0)), float(high + rounding))

    def _integrals(self, k: int) -> tuple[float, float, float]:
        """Integral over q of |S(q)|^2, S(q) the sum of w c over rows with p_k > q: lower bound, estimate, upper bound.

        In a bucket from low to high, S is R - x with R the sum of its rows and of those above, and x(q) the sum of its
        rows below q. The integral of x is known, L = sum of w c (high - p); that of x^2 is at least L^2 / d and at most
        L (P - N) + d P N, where d = high - low, and P and -N are the sums of positive and of negative w c.
        """
        filled = np.flatnonzero(self._high[k] >= self._low[k])
        low, high = self._low[k, filled], self._high[k, filled]
        s, m, positive = np.moveaxis(self._sums[k, filled], -1, 0)
        from_here = np.cumsum(s[::-1], axis=0)[::-1]  # R of each bucket
        d = high - low
        below = np.diff(low, prepend=0.0) - np.concatenate([[0.0], d[:-1]])  # gap between a bucket and the one before
        known = np.sum(below * np.sum(from_here**2, axis=1))
        negative = positive - s
        path = s * high[:, None] - m  # L
        known += np.sum(d[:, None] * from_here**2 - 2.0 * from_here * path)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.sum(np.where(d[:, None] > 0.0, path**2 / d[:, None], 0.0), axis=1)
        most = np.sum(path * (positive - negative) + d[:, None] * positive * negative, axis=1)
        most = np.where(d > 0.0, np.maximum(most, least), 0.0)
        likely = np.minimum(least + d * (np.sum(s**2, axis=1) + self._squares[k, filled]) / 12.0, most)
        return float(known + least.sum()), float(known + likely.sum()), float(known + most.sum())

    def noise_floor(self) -> float:
        """Expected vector ATB of calibrated predictions."""
        self._refuse_empty()
        return float(self._totals[3]) / self.weight**2

    def excess(self) -> float:
        """Unbiased estimate of the vector ATB of the population, from the best estimate of that of the rows."""
        one_row = float(self._totals[2]) / self.weight**2 if self.n > 1 else 1.0
        return excess(self.atb().value, float(self._totals[4]) / self.weight**2, one_row)

    def bias(self) -> dict[Any, float]:
        """Mean prediction minus frequency of each class."""
        self._refuse_empty()
        total = np.sum(self._sums[0, :, :, 0], axis=0) / self.weight
        return dict(zip(self.labels, total.tolist(), strict=True))

    def __repr__(self) -> str:
        rows = count(self.n, "row")
        return f"MulticlassSketch({len(self.labels)} classes, n_buckets={self.n_buckets}): {rows}"

    # --- files -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the bytes of the file."""
        labels = json.dumps(list(self.labels)).encode()
        arrays = self._sums, self._squares, self._low, self._high, self._totals
        parts = [np.ascontiguousarray(array, "<f8").tobytes() for array in arrays]
        return self._sealed(1, (len(self.labels), self.n_buckets, len(labels)), labels, *parts)

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        def size(k: int, n_buckets: int, text: int) -> int:
            return text + cls._bytes(k, n_buckets) + 8 * _N_TOTALS

        _, (_, n_buckets, text), body = cls._opened(data, name, {1: size})
        sketch = cls(json.loads(bytes(body[:text])), n_buckets)
        values = np.frombuffer(body[text:], "<f8").astype(np.float64)
        first = 0
        for array in (sketch._sums, sketch._squares, sketch._low, sketch._high, sketch._totals):
            array[...] = values[first : first + array.size].reshape(array.shape)
            first += array.size
        return sketch


def _check_labels(labels: Any) -> tuple[Any, ...]:
    """Check the classes of a sketch: different from each other, text or whole numbers, so that files can hold them."""
    try:
        given = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    except TypeError:
        raise invalid("labels", f"must be a list of classes; got {shown(labels)}.", TypeError) from None
    for label in given:
        if isinstance(label, bool) or not isinstance(label, int | str):
            raise invalid("labels", f"must be text or whole numbers; got {shown(label)}.", TypeError)
    if len(given) < 2 or len(set(given)) != len(given):
        raise invalid("labels", "must hold at least two classes that differ from each other.")
    return given
