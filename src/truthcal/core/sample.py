"""The exact summary: rows sorted once, shared by every measure."""

import math
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import Checked, check_rows, refuse_wide_weight
from truthcal.core.parallel import in_halves, run_parts, use_threads
from truthcal.core.points import Points
from truthcal.kernels import rows as kernel


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
    16 bytes and 33 while sorting; with weights 24, and 57 while sorting.
    """

    sketched: ClassVar[Literal[False]] = False
    neighbour_z: float | None = None  # of these rows in file order, where a test needs it

    def __init__(self, p: NDArray[Any], y: NDArray[Any], w: NDArray[np.float64] | None, exponent: int = 0) -> None:
        self.p, self.y = p, y
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
            return cls(*_sort_packed(rows.p, rows.y), None)
        if rows.w is None:
            return cls(*_sort_rows(rows))
        refuse_wide_weight(rows.w)
        w, exponent = relative_weights(rows.w)
        return cls(*_sort_rows(rows._replace(w=w)), exponent)

    @property
    def counted(self) -> bool:
        """Whether outcomes are 0/1 and there are no weights, so that integers can count them."""
        return self.y.dtype == np.uint8

    @property
    def n(self) -> int:
        """Rows that count."""
        return len(self.p)

    @cached_property
    def moments(self) -> Moments:
        """All sums that need no order, in one pass."""
        half = self.n // 2  # always in two, so that the result does not depend on the number of cores
        lower, upper = run_parts(
            lambda: kernel.moments(self.p[:half], self.y[:half], self.w[:half]),
            lambda: kernel.moments(self.p[half:], self.y[half:], self.w[half:]),
            self.n,
        )
        sums = [a + b for a, b in zip(lower[:5], upper[:5], strict=True)]
        return Moments._make([*sums, math.fsum(lower[5:] + upper[5:])])

    @property
    def weight(self) -> float:
        """Sum of the weights, without a pass over the rows where there are none."""
        return self.moments.w if self.weighted else float(self.n)

    @cached_property
    def groups(self) -> Groups:
        """The different predictions, 40 bytes each."""
        columns = np.empty((len(Groups._fields), kernel.count_distinct(self.p)))
        kernel.group_ties(self.p, self.y, self.w, *columns)
        columns.flags.writeable = False
        return Groups(*columns)

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


def _sort_packed(p: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sort the rows of a sample as integers of (p, label): values sort several times faster than indices.

    A float in [0, 1] has its top bits clear and orders like its bit pattern, so the label fits below it (`pack`).
    """
    integer = np.int32 if p.dtype == np.float32 else np.int64
    bits = p.view(integer)
    n = len(bits)
    if not use_threads(n):
        keys = np.empty(n, integer)
        kernel.pack(bits, y, keys)
        keys.sort()
    else:
        middle = abs(np.median(p[:: max(1, n // 1001)])).astype(p.dtype)
        keys = _sort_rows_in_two(bits, y, int(middle.view(integer)) << 1)
    labels = np.empty(n, np.uint8)
    in_halves(lambda first, last: kernel.unpack(keys[first:last], labels[first:last]), n)
    return keys.view(p.dtype), labels


def _sort_rows_in_two(bits: NDArray[Any], y: NDArray[Any], pivot: int) -> NDArray[Any]:
    """Sort the rows of a sample on two cores: each packs and sorts the keys on its side of a pivot, in one buffer.

    Both read all rows, which is cheap; neither waits for the other, and nothing needs merging afterwards.
    """
    n = len(bits)
    # Each side also writes one slot beyond its own keys. Two spare slots between the sides keep them apart.
    keys = np.empty(n + 2, bits.dtype)
    lower, _ = run_parts(
        lambda: kernel.pack_lower(bits, y, pivot, keys), lambda: kernel.pack_upper(bits, y, pivot, keys), n
    )
    moved = min(2, n - lower)  # close the gap with the last keys of the upper side: they are not in order yet
    keys[lower : lower + moved] = keys[n + 2 - moved :]
    keys = keys[:n]
    run_parts(keys[:lower].sort, keys[lower:].sort, n)
    return keys


def _sort_rows(rows: Checked) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
    """Sort the rows of a sample by argsort, each side of a pivot on a core."""
    p, y, w = rows

    def in_order(index: NDArray[np.intp]) -> list[NDArray[Any]]:
        index = index[np.argsort(p[index])]
        return [column[index].astype(np.float64) for column in (p, y, w) if column is not None]

    if use_threads(len(p)):
        below = p < np.median(p[:: max(1, len(p) // 1001)])
        sides = run_parts(lambda: in_order(np.flatnonzero(below)), lambda: in_order(np.flatnonzero(~below)), len(p))
        columns = [np.concatenate(parts) for parts in zip(*sides, strict=True)]
    else:
        columns = in_order(np.arange(len(p)))
    columns[0] += 0.0  # turns -0.0 into 0.0
    return columns[0], columns[1], columns[2] if w is not None else None
