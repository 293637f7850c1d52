"""The mergeable summary: per-bucket moments in fixed memory, with certified bounds on what it answers.

File format, version 1, little-endian: the 8 bytes ``TRUTHCAL``; uint32 version, n_buckets, number of filled buckets m;
m uint32 bucket numbers, increasing; then `COLUMNS` one after the other, m float64 each; last the SHA-256 of all before.
"""

import hashlib
import math
import os
import struct
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truthcal._files import write_atomically
from truthcal._kernels import buckets
from truthcal._parameters import check_power_of_two
from truthcal._results import Bounded, DistanceBracket
from truthcal._threads import in_halves
from truthcal._validation import (
    as_columns,
    check_proba,
    check_rows,
    is_plain,
    positive_labels,
    read_only,
    refuse_extreme_weight,
    refuse_no_weight,
    refuse_swapped,
)

MAX_BUCKETS = 1 << 20
COLUMNS = ("n", "w", "ww", "wp", "pos", "neg", "wcp", "wcc", "wwcc", "wwv", "min", "max")

_MAGIC, _VERSION = b"TRUTHCAL", 1
_HEADER = struct.Struct("<8sIII")
_DIGEST_SIZE = hashlib.sha256().digest_size

# Rows that need a closer look are checked and added this many at a time, so that copies stay small.
_CHUNK = 1 << 16

# Adding n terms in any order is off by at most n - 1 roundings of the sum of their sizes; a term itself carries a few,
# which the constant below more than covers. Certified bounds are widened by what this could change.
_EPS = float(np.finfo(np.float64).eps)
_ROUNDINGS_A_TERM = 32
# Squares smaller than this underflow.
_TINY = 1e-300


class Sketch:
    """Rows reduced to a few sums per bucket of predictions: fixed memory, mergeable, certified.

    Feed it rows in any number of updates, on any number of machines, merge, and ask. Answers about ATB come with bounds
    that certainly contain the exact value.

    Parameters
    ----------
    n_buckets : int, default 4096
        Equal-width buckets of [0, 1], a power of two. The bounds on ATB are never further apart than
        ``1 / (2 * n_buckets)``; for predictions spread over [0, 1] about ``1 / (8 * n_buckets**2)``, which is 1e-8 for
        4096.

    Notes
    -----
    Memory: 176 bytes a bucket (0.7 MB by default), and while updating a few megabytes more, whatever the batch.
    Two sketches merge if they have the same `n_buckets`.

    Examples
    --------
    >>> import truthcal as tc
    >>> monday = tc.Sketch().update([0, 1, 1], [0.1, 0.8, 0.7])
    >>> tuesday = tc.Sketch().update([0, 1], [0.3, 0.9])
    >>> week = monday + tuesday
    >>> week
    Sketch(n_buckets=4096): 5 rows
    >>> print(week.atb())
    0.00992, certain to 1e-14
    """

    def __init__(self, n_buckets: int = 4096) -> None:
        self.n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
        self._sums = np.zeros((buckets.N_SUMS, self.n_buckets))
        self._lost = np.zeros_like(self._sums)  # what rounding took from _sums: added back when read
        self._low = np.full(self.n_buckets, np.inf)
        self._high = np.full(self.n_buckets, -np.inf)

    # --- filling ---------------------------------------------------------------------------------------------------

    def update(
        self, y_true: object, y_proba: object, sample_weight: object = None, *, pos_label: object = None
    ) -> Self:
        """Add rows. Returns the sketch itself. If the rows are refused, the sketch is unchanged.

        Parameters
        ----------
        y_true : array-like
            Outcomes: 0/1, bool, or fractions in [0, 1]. Other labels need `pos_label`.
        y_proba : array-like
            Predicted probabilities.
        sample_weight : array-like, optional
            Weights, zero or between 1e-100 and 1e100. Rows of weight 0 count for nothing.
        pos_label : optional
            The label that counts as 1.

        Returns
        -------
        Sketch
            The sketch itself.
        """
        columns = as_columns(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
        if pos_label is not None:
            columns[0] = positive_labels(columns[0], pos_label)
        rows = len(columns[0])
        fast = in_halves(lambda first, last: self._fast(columns, first, last), rows)
        clean = [scratch for scratch in fast if scratch is not None]
        if len(clean) == len(fast):
            for scratch in clean:
                buckets.finish_binary(scratch, self._sums, self._lost, self._low, self._high)
            return self
        try:
            parts = in_halves(lambda first, last: self._general(columns, first, last), rows)
        except (TypeError, ValueError):
            check_rows(*columns)  # says the same of all rows, so that row numbers and counts are right
            raise
        refuse_no_weight(sum(part.n for part, _ in parts))
        if any(fractional for _, fractional in parts):
            refuse_swapped(not any(part._sums[buckets.WWV].any() for part, _ in parts))
        for part, _ in parts:
            self._add(part)
        return self

    def _fast(self, columns: list[NDArray[Any]], first: int, last: int) -> NDArray[np.float64] | None:
        """Sums over the rows first to last, if they are valid, unweighted and have 0/1 outcomes; else None."""
        if len(columns) > 2 or not all(is_plain(column) for column in columns):
            return None
        y, p = (read_only(column[first:last]) for column in columns)
        scratch = np.zeros((self.n_buckets, buckets.SCRATCH_FIELDS))
        scratch[:, 6], scratch[:, 7] = np.inf, -np.inf
        others = buckets.sketch_binary(p, y, self.n_buckets, scratch.reshape(-1))
        return None if others else scratch.reshape(-1)

    def _general(self, columns: list[NDArray[Any]], first: int, last: int) -> tuple["Sketch", bool]:
        """A new sketch of the rows first to last, and whether it has fractional outcomes. Refuses what is not legal."""
        part, fractional = Sketch(self.n_buckets), False
        scratch = np.zeros((self.n_buckets, buckets.N_SUMS))
        for start in range(first, last, _CHUNK):
            chunk = [column[start : min(start + _CHUNK, last)] for column in columns]
            rows = check_rows(*chunk, part=True)
            refuse_extreme_weight(rows.w)
            fractional |= rows.y.dtype != np.uint8
            w = np.broadcast_to(np.float64(1.0), rows.p.shape) if rows.w is None else rows.w
            y = read_only(rows.y.astype(np.float64))
            buckets.sketch_weighted(rows.p, y, w, self.n_buckets, scratch, part._low, part._high)
        part._sums[:] = scratch.T
        return part, fractional

    def merge(self, other: "Sketch") -> Self:
        """Add all rows of another sketch with the same `n_buckets`. Returns the sketch itself; `other` is unchanged."""
        if not isinstance(other, Sketch):
            raise TypeError(f"only a Sketch can be merged into a Sketch; got {type(other).__name__}.")
        if other.n_buckets != self.n_buckets:
            raise ValueError(
                f"cannot merge a sketch with n_buckets={other.n_buckets} into one with n_buckets={self.n_buckets}; "
                "build both with the same number."
            )
        self._add(other)
        return self

    def __add__(self, other: object) -> "Sketch":
        if not isinstance(other, Sketch):
            return NotImplemented
        return Sketch(self.n_buckets).merge(self).merge(other)

    def __radd__(self, other: object) -> "Sketch":
        if other == 0:  # the start value of sum(sketches)
            return Sketch(self.n_buckets).merge(self)
        return NotImplemented

    def _add(self, other: "Sketch") -> None:
        buckets.add_table(self._sums, self._lost, other._sums)
        buckets.add_table(self._sums, self._lost, other._lost)
        np.minimum(self._low, other._low, out=self._low)
        np.maximum(self._high, other._high, out=self._high)

    # --- asking ----------------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Rows seen, without those of weight 0."""
        return int(self._sums[buckets.N].sum())

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows."""
        return self._total(buckets.W)

    def atb(self) -> Bounded:
        """ATB, the averaged two-bin calibration error, between certified bounds."""
        slack = self._slack()
        pad = 4 * slack * self._integral(squared=False)[2] + 5 * slack**2
        return self._bounded(self._integral(squared=True), pad, self.weight**2)

    def atb_l1(self) -> Bounded:
        """ATB with absolute values in place of squares, between certified bounds."""
        return self._bounded(self._integral(squared=False), 3 * self._slack(), self.weight)

    def distcal_bracket(self) -> DistanceBracket:
        """Between which numbers smCal and distCal lie, from ATB, ATB_l1 and the bias."""
        bias, slack = self.bias(), self._slack() / self.weight
        return bracket_following_from(self.atb(), self.atb_l1(), Bounded(bias, bias - slack, bias + slack))

    def brier(self) -> float:
        """Mean squared error of the predictions."""
        self._refuse_empty()
        return self._total(buckets.WCC) / self.weight

    def bias(self) -> float:
        """Mean prediction minus mean outcome."""
        self._refuse_empty()
        return (self._total(buckets.POS) - self._total(buckets.NEG)) / self.weight

    def noise_floor(self) -> float:
        """What a perfectly calibrated forecaster with these predictions would score in ATB on average.

        A row of weight 2 is one observation here, not two.
        """
        self._refuse_empty()
        return self._total(buckets.WWV) / self.weight**2

    def table(self) -> dict[str, NDArray[Any]]:
        """The filled buckets as columns of equal length, ready for a data frame.

        Returns
        -------
        dict of ndarray
            ``bucket`` (number), ``left`` and ``right`` (edges), ``n`` (rows), ``weight``, ``mean_proba``,
            ``mean_true``, ``min`` and ``max`` (of the predictions), and the raw sums ``ww`` (of w^2), ``wp``, ``pos``
            and ``neg`` (of the positive and negative parts of w c), ``wcp``, ``wcc``, ``wwcc`` and ``wwv``, where
            c = p - y and v = p(1 - p).
        """
        filled, columns = self._filled()
        raw = dict(zip(COLUMNS, columns, strict=True))
        w = raw["w"]
        return {
            "bucket": filled,
            "left": filled / self.n_buckets,
            "right": (filled + 1) / self.n_buckets,
            "n": raw["n"].astype(np.int64),
            "weight": w,
            "mean_proba": raw["wp"] / w,
            "mean_true": np.clip((raw["wp"] - (raw["pos"] - raw["neg"])) / w, 0.0, 1.0),
            **{name: raw[name] for name in ("min", "max", "ww", "wp", "pos", "neg", "wcp", "wcc", "wwcc", "wwv")},
        }

    def _filled(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Numbers of the filled buckets and their COLUMNS."""
        filled = np.flatnonzero(self._sums[buckets.N])
        sums = self._sums[:, filled] + self._lost[:, filled]
        return filled, np.vstack([sums, self._low[filled], self._high[filled]])

    def _total(self, field: int) -> float:
        return float(self._sums[field].sum() + self._lost[field].sum())

    def _integral(self, *, squared: bool) -> tuple[float, float, float]:
        self._refuse_empty()
        total = self._total(buckets.POS) - self._total(buckets.NEG)
        sums = self._sums + self._lost
        return buckets.sketch_integral(sums, self._low, self._high, self._rounding(), total, squared)

    def _rounding(self) -> NDArray[np.float64]:
        """Per bucket, how far its sums may be off, as a share of the sum of the sizes of their terms."""
        share: NDArray[np.float64] = _EPS * (self._sums[buckets.N] + _ROUNDINGS_A_TERM)
        return share

    def _slack(self) -> float:
        """How far rounding may have moved the cumulative bias, anywhere."""
        return float(np.sum(self._rounding() * (self._sums[buckets.POS] + self._sums[buckets.NEG])))

    def _bounded(self, integral: tuple[float, float, float], pad: float, unit: float) -> Bounded:
        """Divide by `unit`, a power of the weight, and widen by `pad` and by what rounding did to the unit."""
        value, low, high = integral
        share = 3 * float(self._rounding().max()) + 1e-12
        low = max(low - pad - _TINY, 0.0) * (1 - share)
        high = (high + pad + _TINY) * (1 + share)
        return Bounded(min(max(value, low), high) / unit, low / unit, high / unit)

    def _refuse_empty(self) -> None:
        if not self._sums[buckets.N].any():
            raise ValueError("the sketch is empty; add rows with .update(y_true, y_proba) first.")

    def __repr__(self) -> str:
        return f"Sketch(n_buckets={self.n_buckets}): {self.n:,} rows"

    # --- keeping ---------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The sketch in truthcal's own format: versioned, checksummed, the same on every machine, no pickle inside.

        What rounding took from the sums is not kept, so an answer may change in its last digit.
        """
        filled, columns = self._filled()
        header = _HEADER.pack(_MAGIC, _VERSION, self.n_buckets, len(filled))
        body = header + filled.astype("<u4").tobytes() + columns.astype("<f8").tobytes()
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the data are not a sketch, of a version this truthcal cannot read, truncated or corrupted.
        """
        return cls._from_bytes(data, "these bytes")

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        n_buckets, filled_count = _read_header(data, name)
        split = _HEADER.size + 4 * filled_count
        filled = np.frombuffer(data[_HEADER.size : split], "<u4").astype(np.int64)
        columns = np.frombuffer(data[split:-_DIGEST_SIZE], "<f8").astype(np.float64).reshape(len(COLUMNS), -1)
        return cls._from_columns(
            n_buckets, filled, columns, f"{name}: the sketch contradicts itself; it was not written by truthcal."
        )

    @classmethod
    def _from_columns(cls, n_buckets: int, filled: NDArray[np.int64], columns: NDArray[np.float64], else_: str) -> Self:
        """From the numbers of the filled buckets, increasing, and their COLUMNS, if these can have come from rows."""
        if not _is_consistent(n_buckets, filled, columns):
            raise ValueError(else_)
        sketch = cls(n_buckets)
        sketch._sums[:, filled] = columns[: buckets.N_SUMS]
        sketch._low[filled], sketch._high[filled] = columns[buckets.N_SUMS :]
        return sketch

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a file, whole or not at all: on a full disk what was there before remains."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by `save`.

        Raises
        ------
        ValueError
            If the file is not a sketch, of a version this truthcal cannot read, truncated or corrupted.
        """
        return cls._from_bytes(Path(path).read_bytes(), str(path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers that exchange objects by pickle get truthcal's own bytes, checksum included."""
        return type(self).from_bytes, (self.to_bytes(),)


def bracket_following_from(atb: Bounded, atb_l1: Bounded, bias: Bounded) -> DistanceBracket:
    """The tightest of all inequalities between these and smCal and distCal (docs/theory.md)."""
    least, most = max(bias.low, -bias.high, 0.0), max(bias.high, -bias.low)
    smcal_low = max((atb_l1.low + least) / 2.0, atb.low, least)
    root = math.sqrt(max(2.0 * atb.high - least**2, 0.0)) / 2.0
    smcal_high = min(1.5 * atb_l1.high, most + root, 1.0)
    distcal_low = max(atb_l1.low / 3.0, smcal_low / 2.0, least)
    return DistanceBracket(smcal_low, smcal_high, distcal_low, min(2.0 * smcal_high - least, 1.0))


def bucket_index(y_proba: object, n_buckets: int = 4096) -> NDArray[np.int64]:
    """Which bucket of a `Sketch` each prediction falls into.

    Bucket k is [k/n_buckets, (k+1)/n_buckets); 1 belongs to the last. This is the one definition in all of truthcal.

    Parameters
    ----------
    y_proba : array-like
        Predicted probabilities.
    n_buckets : int, default 4096
        A power of two.

    Returns
    -------
    ndarray of int64
        Bucket numbers, 0 to ``n_buckets - 1``.

    Examples
    --------
    >>> import truthcal as tc
    >>> tc.bucket_index([0.0, 0.49, 0.5, 1.0], n_buckets=4).tolist()
    [0, 1, 2, 3]
    """
    n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
    return _buckets(check_proba(y_proba, "y_proba"), n_buckets)


def _buckets(p: NDArray[Any], n_buckets: int) -> NDArray[np.int64]:
    out = np.empty(len(p), np.int64)
    buckets.bucket_indices(p, n_buckets, out)
    return out


def _read_header(data: bytes, name: str) -> tuple[int, int]:
    """Number of buckets and of filled ones, once the data have proved whole."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError(f"{name}: not a truthcal sketch.")
    if len(data) < _HEADER.size + _DIGEST_SIZE:
        raise ValueError(f"{name}: the sketch is truncated; copy or write it again.")
    _, version, n_buckets, filled = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise ValueError(
            f"{name}: a sketch of format version {version}, but this truthcal reads version {_VERSION}; upgrade it."
        )
    size = _HEADER.size + filled * (4 + 8 * len(COLUMNS)) + _DIGEST_SIZE
    if len(data) < size:
        raise ValueError(f"{name}: the sketch is truncated ({len(data)} of {size} bytes); copy or write it again.")
    if len(data) > size or hashlib.sha256(data[:-_DIGEST_SIZE]).digest() != data[-_DIGEST_SIZE:]:
        raise ValueError(f"{name}: the sketch is corrupted (checksum mismatch); copy or write it again.")
    return n_buckets, filled


def _is_consistent(n_buckets: int, filled: NDArray[np.int64], columns: NDArray[np.float64]) -> bool:
    """A checksum only proves that the bytes are as written; this, that they can have come from rows."""
    if not 1 <= n_buckets <= MAX_BUCKETS or n_buckets & (n_buckets - 1) or not np.isfinite(columns).all():
        return False
    n, w, ww, wp, pos, neg, wcp, wcc, wwcc, wwv, low, high = columns
    slack = (n + _ROUNDINGS_A_TERM) * _EPS * w  # what rounding may have added to a sum of terms of up to w
    conditions = [
        np.diff(filled, prepend=-1) > 0,
        filled < n_buckets,
        (n >= 1) & (n == np.floor(n)),
        (w > 0) & (ww > 0) & (ww <= w * w * (1 + n * _EPS)),
        (low >= 0) & (low <= high) & (high <= 1),
        (w * low - slack <= wp) & (wp <= w * high + slack),
        (pos >= 0) & (neg >= 0) & (pos + neg <= w + slack),
        np.abs(wcp) <= pos + neg + slack,
        (wcc >= 0) & (wcc <= pos + neg + slack),
        (wwcc >= 0) & (wwcc <= ww * (1 + n * _EPS)) & (wwv >= 0) & (wwv <= ww),
    ]
    if not all(condition.all() for condition in conditions):
        return False
    return bool((_buckets(low, n_buckets) == filled).all() and (_buckets(high, n_buckets) == filled).all())
