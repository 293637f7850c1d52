"""The exact summary: rows sorted once, shared by every measure."""

import itertools
import math
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, check_rows, read_only, refuse_wide_weight
from truthcal.core.group_sums import GroupSums
from truthcal.core.parallel import in_parts, parts_of, run_tasks
from truthcal.core.points import Points
from truthcal.core.sorting import Counts, sort_labels, sort_rows
from truthcal.kernels import rows as kernel
from truthcal.kernels.atb import bias_sum, bias_sum_binary
from truthcal.kernels.jit import Pairs


class Moments(NamedTuple):
    """Sums over rows, on the sample's own scale of weights. c = p - y, v = p(1 - p)."""

    w: float
    ww: float
    wcc: float
    wwcc: float
    wwv: float
    wc: float


class Groups(NamedTuple):
    """Rows with equal predictions as one: `r` increasing without ties; sums of w, w y and w c; c summed up so far."""

    r: NDArray[np.float64]
    w: NDArray[np.float64]
    wy: NDArray[np.float64]
    c: NDArray[np.float64]
    cumulative: NDArray[np.float64]


class Sample:
    """Rows in order of prediction: `p` increasing, with the corresponding `y` and `w`. Read-only.

    Weights are scaled by a power of two so that the largest lies in [0.5, 1): only their ratios matter, and so weights
    around 1e300 or 1e-300 are as good as any. `exponent` undoes it. Without weights, `w` is a broadcast 1.0.

    Memory a row, beyond the input: 9 bytes for 0/1 outcomes without weights (5 for float32); with fractional outcomes
    16 bytes, with weights 24. While sorting, 1 byte more (with weights 9), and a copy of the part that a thread sorts.
    Many rows with few distinct predictions, 0/1 outcomes and no weights are counted (`counts`), not sorted: then `p`
    and `y` take memory only from their first use on.
    """

    sketched: ClassVar[Literal[False]] = False
    neighbour_z: float | None = None  # of these rows in file order, where a test needs it
    group_sums: GroupSums | None = None  # if the user said which rows belong together
    counts: Counts | None = None  # of many rows with few distinct predictions

    def __init__(self, p: NDArray[Any], y: NDArray[Any], w: NDArray[np.float64] | None, exponent: int = 0) -> None:
        self.p, self.y = p, y
        self.n = len(p)
        self.counted = y.dtype == np.uint8  # outcomes are 0/1 and there are no weights, so that integers can count them
        self.weighted = w is not None
        self.w: NDArray[np.float64] = np.broadcast_to(np.float64(1.0), p.shape) if w is None else w
        self.exponent = exponent
        for array in (self.p, self.y, self.w):
            array.flags.writeable = False

    @classmethod
    def of(cls, y_true: object, y_proba: object, sample_weight: object = None, pos_label: object = None) -> Self:
        """Check and sort what a user passed to a measure."""
        return cls.from_checked(check_rows(y_true, y_proba, sample_weight, pos_label))

    @classmethod
    def from_checked(cls, rows: Checked) -> Self:
        """Sort checked rows."""
        if rows.w is None and rows.y.dtype == np.uint8:
            result = sort_labels(rows.p, rows.y)
            return cls._from_counts(result) if isinstance(result, Counts) else cls(*result, None)
        if rows.w is None:
            return cls(*sort_rows(rows))
        refuse_wide_weight(rows.w)
        w, exponent = relative_weights(rows.w)
        return cls(*sort_rows(rows._replace(w=w)), exponent)

    @classmethod
    def _from_counts(cls, counts: Counts) -> Self:
        sample = cls(counts.value[:0], counts.zeros[:0].astype(np.uint8), None)
        del sample.p, sample.y
        sample.counts, sample.n = counts, int(counts.zeros.sum() + counts.ones.sum())
        sample.w = np.broadcast_to(np.float64(1.0), (sample.n,))
        return sample

    @cached_property
    def p(self) -> NDArray[Any]:
        """Predictions, increasing."""
        return self._expanded[0]

    @cached_property
    def y(self) -> NDArray[Any]:
        """Outcomes in the order of `p`: bytes if they are 0/1 and there are no weights."""
        return self._expanded[1]

    @cached_property
    def _expanded(self) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Predictions and outcomes of counted rows."""
        assert self.counts is not None
        value, zeros, ones = self.counts
        labels = np.repeat(np.tile(np.array([0, 1], np.uint8), len(value)), np.column_stack((zeros, ones)).ravel())
        return read_only(np.repeat(value, zeros + ones)), read_only(labels)

    @cached_property
    def moments(self) -> Moments:
        """All sums that need no order, in one pass."""
        p, y, w = self.p, self.y, self.w
        parts = in_parts(lambda first, last: kernel.moments(p[first:last], y[first:last], w[first:last]), self.n)
        *sums, high, low = zip(*parts, strict=True)
        return Moments._make([*map(math.fsum, sums), math.fsum(high + low)])

    @property
    def weight(self) -> float:
        """Sum of the weights, without a pass over the rows where there are none."""
        return self.moments.w if self.weighted else float(self.n)

    @cached_property
    def groups(self) -> Groups:
        """The different predictions, 40 bytes each."""
        if self.counts is not None:
            columns = np.empty((len(Groups._fields), len(self.counts.value)))
            kernel.group_counts(*self.counts, columns)
        else:
            columns = self._group_ties()
        columns.flags.writeable = False
        return Groups(*columns)

    def _group_ties(self) -> NDArray[np.float64]:
        """The columns of `groups`, computed in parts of the rows that divide no ties."""
        p, y, w = self.p, self.y, self.w
        edges = np.searchsorted(p, p[[first for first, _ in parts_of(self.n)]])
        parts = [slice(*ends) for ends in itertools.pairwise([*np.unique(edges).tolist(), self.n])]
        counts = run_tasks([partial(kernel.count_distinct, p[rows]) for rows in parts], self.n)
        ends = np.cumsum([0, *counts])
        before, _ = self.bias_before([(rows.start, rows.stop) for rows in parts])
        columns = np.empty((len(Groups._fields), ends[-1]))
        tasks = [
            partial(kernel.group_ties, p[rows], y[rows], w[rows], sums, columns[:, first:last])
            for rows, sums, (first, last) in zip(parts, before, itertools.pairwise(ends), strict=True)
        ]
        run_tasks(tasks, self.n)
        return columns

    def bias_before(self, parts: list[tuple[int, int]]) -> tuple[list[Pairs], float]:
        """The sums of w p and of w y before each of these parts of the rows, as pairs, and the total bias."""
        p, y, w = self.p, self.y, self.w

        def bias(first: int, last: int) -> Pairs:
            rows = slice(first, last)
            return bias_sum_binary(p[rows], y[rows]) if self.counted else bias_sum(p[rows], y[rows], w[rows])

        before, ph, pl, yh, yl = [], 0.0, 0.0, 0.0, 0.0
        for sums in run_tasks([partial(bias, *rows) for rows in parts], self.n):
            before.append((ph, pl, yh, yl))
            predicted, happened = (ph, pl, *sums[:2]), (yh, yl, *sums[2:])
            ph, yh = math.fsum(predicted), math.fsum(happened)
            pl, yl = math.fsum((*predicted, -ph)), math.fsum((*happened, -yh))
        return before, math.fsum((ph, pl, -yh, -yl))

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The first row of each different prediction."""
        return np.searchsorted(self.p, self.groups.r.astype(self.p.dtype))

    def points(self) -> Points:
        """One point for each distinct prediction."""
        return self._points

    @cached_property
    def _points(self) -> Points:
        r, weight, wy, bias, cumulative = self.groups
        v = r * (1.0 - r)
        if self.weighted:
            n = np.diff(self.starts, append=self.n)
            wc = self.w * (self.p - self.y)
            squares = self.w**2
            powers = squares, squares * self.w, squares**2, self.w * wc, wc**2
            ww, www, fourth, wwc, wwcc = (np.add.reduceat(column, self.starts) for column in powers)
            row_ww, top = fourth / ww, np.maximum.reduceat(self.w, self.starts)
        else:
            n, ww, www, wwc = weight.astype(np.int64), weight, weight, bias
            row_ww = top = np.broadcast_to(np.float64(1.0), r.shape)
            if self.counted:
                wwcc = wy * (1.0 - r) ** 2 + (weight - wy) * r**2
            else:
                wwcc = np.add.reduceat((self.p - self.y) ** 2, self.starts)
        return Points(
            p=r, low=r, high=r, n=n, weight=weight, ww=ww, www=www, wp=weight * r, wy=wy, wv=weight * v, wcp=bias * r,
            wwc=wwc, wwcc=wwcc, wwv=ww * v, bias=bias, cumulative=cumulative, row_ww=row_ww,
            top=top, impossible=self._impossible(),
        )  # fmt: skip

    def _impossible(self) -> int:
        """Number of rows whose outcome had a predicted probability of exactly 0."""
        zeros = np.searchsorted(self.p, self.p.dtype.type(0), side="right")
        ones = np.searchsorted(self.p, self.p.dtype.type(1), side="left")
        return int(np.count_nonzero(self.y[:zeros] == 1) + np.count_nonzero(self.y[ones:] == 0))

    @cached_property
    def repetitions(self) -> NDArray[np.float64]:
        """The weights as the user gave them."""
        return np.ldexp(self.w, self.exponent) if self.weighted else self.w


def relative_weights(w: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Weights of a sample, scaled so that the maximum is in [0.5, 1), and the exponent of two that undoes it. Exact."""
    exponent = int(np.frexp(w.max())[1])
    return np.ldexp(w, -exponent), exponent
