"""The mergeable summary: sums per bucket in fixed memory, with certified bounds on results.

Its file format is in docs/reference/sketch-format.md.
"""

import struct
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from truthcal.core import checks
from truthcal.core.bucket_stats import BucketStats, predictions_are_certain
from truthcal.core.cell_codec import CELL_SIZE, COLUMNS, SUMS, pack_cells, read_cells, unpack_cells
from truthcal.core.file_format import BinaryFile
from truthcal.core.grid import MAX_BUCKETS, MOST_FLAGS, Grid, pack_flags, unpack_flags
from truthcal.core.group_column import hash_groups
from truthcal.core.group_flips import GroupFlips
from truthcal.core.group_hash import Hashes
from truthcal.core.group_sums import GroupSums
from truthcal.core.parallel import in_parts
from truthcal.core.params import check_power_of_two
from truthcal.core.points import Points
from truthcal.kernels import buckets
from truthcal.results.base import Tabular
from truthcal.results.measures import AtbSummary, Bounded, DistanceBracket
from truthcal.results.text import count

# Parts of the rows of an update, each of which has its own sums for a time.
_MOST_PARTS = 8
# Rows that do not take the fast path are checked and added in chunks of this size, to keep copies small.
_CHUNK = 1 << 16
# Rows with groups are added to the sums with signs in chunks of this size.
_GROUP_ROWS = 1 << 20


class Sketch(Tabular, BinaryFile):
    """Rows reduced to a few sums per bucket of predictions: fixed memory, mergeable, certified.

    Add rows in any number of updates, on any number of machines, and merge the sketches. ATB comes with bounds that
    certainly contain the exact value.

    Parameters
    ----------
    n_buckets : int, default 4096
        Number of buckets of [0, 1], a power of two. From 128 on they are graded: finer towards 0 and 1, for rare
        events. Apart from rounding, the bounds on ATB are never further apart than ``1 / n_buckets``. If predictions
        are spread over [0, 1], they are about ``1 / (8 * n_buckets**2)`` apart, which is 1e-8 for 4096; for predictions
        between 1e-4 and 1e-2, less than 1e-12.

    Notes
    -----
    Memory: 232 bytes per bucket (1 MB by default), plus 2 MB during an update of any size, with weights 12 MB, and with
    groups 0.4 MB and 40 bytes for each row of the update.
    Two sketches can be merged if they have the same `n_buckets`. Files of format version 1 have buckets of equal width;
    their sketches can be updated and merged among themselves, but not with sketches of graded buckets.

    With `groups`, the sketch also adds up the errors of each group in 128 ranges of predictions, so that tests and
    intervals allow for rows that belong together, also if a group is split over sketches. If there are more than 8192
    such sums, it keeps sums with a random sign for each group instead: standard errors then differ from those of the
    rows by 6% (standard deviation), and if there are more than 1023 groups, their number is estimated, with a standard
    error of 3%. Groups are known by the MD5 of their text, whatever the engine, machine and type: 7, 7.0 and "7" are
    the same group.

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

    sketched: ClassVar[Literal[True]] = True
    neighbour_z: float | None = None  # known if all rows were at hand, in order: `summarize`, `scan`, `sketch_frame`
    flips: GroupFlips | None = None  # sums with signs, if rows were added with groups
    _group_sums: GroupSums | None = None
    impossible: int = 0  # rows whose outcome had a predicted probability of 0; known if `summarize` had the rows
    weights_known: bool = True  # False if files of version 1 contributed, which lack sums of uneven weights
    _MAGIC, _NOUN = b"TRUTHCAL", "sketch"
    _HEADERS: ClassVar = {1: struct.Struct("<8sIII"), 2: struct.Struct("<8sIIIIQ"), 3: struct.Struct("<8sIIIIQQ")}

    def __init__(self, n_buckets: int = 4096) -> None:
        self._empty(Grid.of_size(check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)))

    def _empty(self, grid: Grid) -> None:
        """Remove all rows and use this grid."""
        self.grid, self.n_buckets = grid, grid.n_buckets
        self._sums = np.zeros((buckets.N_SUMS, self.n_buckets))
        self._lost = np.zeros_like(self._sums)  # accumulated rounding errors of _sums, added back when read
        self._low = np.full(self.n_buckets, np.inf)
        self._high = np.full(self.n_buckets, -np.inf)
        self._top = np.zeros(self.n_buckets)  # largest weights

    # --- filling ---------------------------------------------------------------------------------------------------

    def update(
        self,
        y_true: object,
        y_proba: object,
        sample_weight: object = None,
        *,
        pos_label: object = None,
        groups: object = None,
    ) -> Self:
        """Add rows. Returns the sketch itself. If a row is invalid, the sketch is unchanged.

        Parameters
        ----------
        y_true, y_proba, pos_label
            As for `atb`.
        sample_weight : array-like, optional
            Weights, zero or between 1e-70 and 1e70. Rows of weight 0 are ignored.
        groups : array-like, optional
            Which rows belong together: patient, match or day, as text, numbers, dates or tuples of them. Rows of one
            group may be added in several updates, and to several sketches that are merged later. All rows of a sketch
            have groups, or none. See the Notes of `Sketch`.

        Returns
        -------
        Sketch
            The sketch itself.
        """
        columns = checks.as_columns(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
        if pos_label is not None:
            columns[0] = checks.positive_labels(columns[0], pos_label)
        hashes = None if groups is None else hash_groups(groups, y_proba)
        if self.n and (hashes is None) != (self.flips is None):
            _refuse_rows_with_groups(hashes is not None)
        self._add_rows(columns)
        if hashes is not None:
            self._add_groups(columns, hashes)
        return self

    def _add_rows(self, columns: list[NDArray[Any]]) -> None:
        """Add outcomes, predictions and weights to the buckets."""
        rows = len(columns[0])
        fast = in_parts(lambda first, last: self._fast(columns, first, last), rows, _MOST_PARTS)
        clean = [scratch for scratch in fast if scratch is not None]
        if len(clean) == len(fast):
            for scratch in clean:
                self._add_scratch(scratch)
            return
        try:
            parts = in_parts(lambda first, last: self._general(columns, first, last), rows, _MOST_PARTS)
        except (TypeError, ValueError):
            checks.check_rows(*columns)  # raises the same error for all rows, with correct row numbers and counts
            raise
        checks.refuse_no_weight(sum(part.n for part, _ in parts))
        if any(fractional for _, fractional in parts):
            checks.refuse_swapped(all(predictions_are_certain(part._filled()[1]) for part, _ in parts))
        for part, _ in parts:
            self._add(part)

    def _add_groups(self, columns: list[NDArray[Any]], hashes: Hashes) -> None:
        """Add rows that are in the buckets already to the sums with the signs of their groups."""
        self.flips = self.flips or GroupFlips(self.grid)
        for start in range(0, len(hashes), _GROUP_ROWS):
            part = slice(start, start + _GROUP_ROWS)
            rows = checks.check_rows(*(column[part] for column in columns), part=True)
            counted = slice(None) if rows.w is None else columns[2][part] > 0
            self.flips.add_rows(rows.p, rows.y, rows.w, hashes[part][counted])

    def _fast(self, columns: list[NDArray[Any]], first: int, last: int) -> NDArray[np.float64] | None:
        """Sum the rows first to last if they are valid, unweighted and have 0/1 outcomes; else return None."""
        if len(columns) > 2 or not all(checks.is_plain(column) for column in columns):
            return None
        y, p = (checks.read_only(column[first:last]) for column in columns)
        scratch = empty_scratch(self.n_buckets)
        return None if buckets.sketch_binary(p, y, self.grid.tables, scratch) else scratch

    def _general(self, columns: list[NDArray[Any]], first: int, last: int) -> tuple["Sketch", bool]:
        """Check the rows first to last; return a new sketch of them, and whether it has fractional outcomes."""
        part, fractional = self._of_grid(self.grid), False
        scratch = np.zeros((self.n_buckets, buckets.N_SUMS))
        for start in range(first, last, _CHUNK):
            chunk = [column[start : min(start + _CHUNK, last)] for column in columns]
            rows = checks.check_rows(*chunk, part=True)
            # A sketch cannot rescale weights, because more rows may be added later.
            if rows.w is not None and rows.w.size:
                low, high = float(rows.w.min()), float(rows.w.max())
                if not (low >= checks.SMALLEST_WEIGHT and high <= checks.LARGEST_WEIGHT):
                    checks.refuse_weights_between(low, high)
            fractional |= rows.y.dtype != np.uint8
            w = np.broadcast_to(np.float64(1.0), rows.p.shape) if rows.w is None else rows.w
            y = checks.read_only(rows.y.astype(np.float64))
            buckets.sketch_weighted(rows.p, y, w, self.grid.tables, scratch, part._low, part._high, part._top)
        part._sums[:] = scratch.T
        return part, fractional

    def _add_scratch(self, scratch: NDArray[np.float64]) -> None:
        """Add the sums that `buckets.sketch_binary` stored in `empty_scratch`."""
        self.neighbour_z, self._group_sums, self.impossible = None, None, 0
        buckets.finish_binary(scratch, self.grid.tables, self._sums, self._lost, *self._extremes())

    def merge(self, other: "Sketch") -> Self:
        """Add all rows of another sketch with the same `n_buckets`. Returns the sketch itself; `other` is unchanged."""
        if not isinstance(other, Sketch):
            raise TypeError(f"only a Sketch can be merged into a Sketch; got {type(other).__name__}.")
        if other.n_buckets != self.n_buckets:
            raise ValueError(
                f"cannot merge a sketch with n_buckets={other.n_buckets} into one with n_buckets={self.n_buckets}; "
                "use the same number for both."
            )
        refuse_other_grid(other.grid, self.grid, "sketch")
        if self.n and other.n:
            refuse_other_groups(other.flips is not None, self.flips is not None, "sketch")
        self._add(other)
        if other.flips is not None:
            self.flips = self.flips or GroupFlips(self.grid)
            self.flips.merge(other.flips)
        return self

    def __add__(self, other: object) -> "Sketch":
        if not isinstance(other, Sketch):
            return NotImplemented
        return self._of_grid(self.grid).merge(self).merge(other)

    def __radd__(self, other: object) -> "Sketch":
        if isinstance(other, int) and other == 0:  # the start value of sum(sketches)
            return self._of_grid(self.grid).merge(self)
        return NotImplemented

    @classmethod
    def _of_grid(cls, grid: Grid) -> Self:
        """Return an empty sketch with any grid; users get a graded one."""
        sketch = cls(1)
        sketch._empty(grid)
        return sketch

    def _add(self, other: "Sketch") -> None:
        self.neighbour_z, self._group_sums, self.impossible = None, None, 0
        buckets.add_buckets(self._sums, self._lost, other._sums)
        buckets.add_buckets(self._sums, self._lost, other._lost)
        np.minimum(self._low, other._low, out=self._low)
        np.maximum(self._high, other._high, out=self._high)
        np.maximum(self._top, other._top, out=self._top)
        self.weights_known &= other.weights_known

    def _extremes(self) -> tuple[NDArray[np.float64], ...]:
        """Smallest and largest prediction and largest weight of each bucket."""
        return self._low, self._high, self._top

    # --- results ---------------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows with a weight above 0."""
        return int(self._sums[buckets.N].sum())

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows."""
        return float(self._sums[buckets.W].sum() + self._lost[buckets.W].sum())

    def atb(self) -> Bounded:
        """ATB, the averaged two-bin calibration error, between certified bounds."""
        return self._stats().atb[0]

    def atb_l1(self) -> Bounded:
        """ATB with absolute values in place of squares, between certified bounds."""
        return self._stats().atb_l1[0]

    def summary(self) -> AtbSummary:
        """ATB with its noise floor, its excess (an unbiased estimate of the population's ATB) and the root of that.

        The same as `atb_summary` of the rows, except that the value is the estimate of `atb`.
        """
        stats = self._stats()
        columns = stats.atb.value, stats.noise_floor, stats.excess, stats.brier, stats.bias
        atb, noise_floor, excess, brier, bias = (float(column[0]) for column in columns)
        n, n_effective = int(stats.n[0]), 1.0 / float(stats.one_row[0])
        return AtbSummary(atb, noise_floor, excess, brier, bias, n, n_effective)

    def distcal_bracket(self) -> DistanceBracket:
        """Bounds of smCal and distCal, from ATB, ATB_l1 and the bias."""
        return DistanceBracket(**{name: float(column[0]) for name, column in self._stats().bracket().items()})

    def brier(self) -> float:
        """Mean squared error of the predictions."""
        return float(self._stats().brier[0])

    def bias(self) -> float:
        """Mean prediction minus mean outcome."""
        return float(self._stats().bias[0])

    def noise_floor(self) -> float:
        """Expected ATB of a perfectly calibrated forecaster with these predictions.

        A row of weight 2 is one observation here, not two. Rows are taken as independent; for a sketch with groups, see
        `Assessment.noise_floor`.
        """
        return float(self._stats().noise_floor[0])

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the filled buckets as columns of equal length, ready for a data frame.

        Returns
        -------
        dict of ndarray
            ``bucket`` (number), ``left`` and ``right`` (edges), ``n`` (rows), ``weight``, ``mean_proba``,
            ``mean_true``, ``min`` and ``max`` (of the predictions), ``top`` (largest weight), and the raw sums ``ww``
            (of w^2), ``www``, ``wwww``, ``wp``, ``pos`` and ``neg`` (of the positive and negative parts of w c),
            ``wcp``, ``wcc``, ``wwc``, ``wwcc`` and ``wwv``, where c = p - y and v = p(1 - p).
        """
        filled, columns = self._filled()
        raw = dict(zip(COLUMNS, columns, strict=True))
        w = raw["w"]
        return {
            "bucket": filled,
            "left": self.grid.edges[filled],
            "right": self.grid.edges[filled + 1],
            "n": raw["n"].astype(np.int64),
            "weight": w,
            "mean_proba": raw["wp"] / w,
            "mean_true": np.clip((raw["wp"] - (raw["pos"] - raw["neg"])) / w, 0.0, 1.0),
            **{name: raw[name] for name in ("min", "max", "top", *SUMS[2:])},
        }

    def points(self) -> Points:
        """Return the filled buckets as points: predictions with the sums of their rows."""
        self._refuse_empty()
        points = Points.of_buckets(self._filled()[1], self.n_buckets)
        return replace(points, impossible=self.impossible, weights_known=self.weights_known)

    @property
    def group_sums(self) -> GroupSums | None:
        """Second moments of the groups of rows, for tests and intervals; None if rows have no groups."""
        if self._group_sums is None and self.flips is not None:
            self._group_sums = self.flips.group_sums(self._filled()[0], self.points())
        return self._group_sums

    @group_sums.setter
    def group_sums(self, sums: GroupSums) -> None:
        """Set it exactly, if the rows are at hand (`summarize`)."""
        self._group_sums = sums

    def _filled(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Numbers of the filled buckets and their COLUMNS."""
        filled = np.flatnonzero(self._sums[buckets.N])
        sums = self._sums.take(filled, axis=1) + self._lost.take(filled, axis=1)
        return filled, np.vstack([sums, *(extreme[filled] + 0.0 for extreme in self._extremes())])  # -0.0 becomes 0.0

    def _refuse_empty(self) -> None:
        if not self._sums[buckets.N].any():
            raise ValueError("the sketch is empty; add rows with .update(y_true, y_proba) first.")

    def _stats(self) -> BucketStats:
        self._refuse_empty()
        filled, columns = self._filled()
        return BucketStats(np.array([0, len(filled)]), columns)

    def __repr__(self) -> str:
        groups = "" if self.flips is None else f" in {count(self.flips.n_groups, 'group')}"
        return f"Sketch({self.grid.arguments}): {count(self.n, 'row')}{groups}"

    # --- files -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the sketch in truthcal's file format: compressed, versioned, checksummed, no pickle.

        Accumulated rounding errors are not stored, so results may change in the last digit.
        """
        filled, columns = self._filled()
        cells = pack_cells(filled, columns)
        numbers = pack_flags(self.grid, self.weights_known), self.n_buckets, len(filled), len(cells)
        if self.flips is None:  # older versions of truthcal read it, too
            return self._sealed(2, numbers, cells)
        flips = self.flips.to_bytes()
        return self._sealed(3, (*numbers, len(flips)), cells, flips)

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        sizes = {1: lambda _, m: m * CELL_SIZE, 2: lambda *numbers: numbers[-1], 3: lambda *numbers: sum(numbers[-2:])}
        version, numbers, body = cls._opened(data, name, sizes)
        wrong = f"{name}: the sketch is inconsistent; it was not written by truthcal."
        flags, n_buckets, m, size, *_ = (0, *numbers, len(body)) if version == 1 else numbers
        cells = read_cells(body, m) if version == 1 else unpack_cells(body[:size], m) if m <= n_buckets else None
        if cells is None or flags > MOST_FLAGS:
            raise ValueError(wrong)
        grid, known = unpack_flags(flags, n_buckets)
        sketch = cls._from_columns(grid, *cells, wrong)
        sketch.weights_known = known if version > 1 else sketch.points().equal_weights if m else True
        if version == 3:
            sketch.flips = GroupFlips.from_bytes(body[size:], grid, cells[0], cells[1][buckets.W])
            if sketch.flips is None:
                raise ValueError(wrong)
        return sketch

    @classmethod
    def _from_columns(cls, grid: Grid, filled: NDArray[np.int64], columns: NDArray[np.float64], else_: str) -> Self:
        """Build a sketch from increasing bucket numbers and their COLUMNS; raise if no rows can have these sums."""
        possible = grid.is_possible and cells_are_possible(grid, filled, columns).all()
        if not possible or not (np.diff(filled) > 0).all():
            raise ValueError(else_)
        sketch = cls._of_grid(grid)
        sketch._sums[:, filled] = columns[: buckets.N_SUMS]
        for extreme, column in zip(sketch._extremes(), columns[buckets.N_SUMS :], strict=True):
            extreme[filled] = column
        return sketch


def empty_scratch(n_buckets: int) -> NDArray[np.float64]:
    """Return scratch memory for the buckets of a sketch, without rows, for `sketch_binary`."""
    scratch = np.zeros((n_buckets, buckets.SCRATCH_FIELDS))
    scratch[:, 6], scratch[:, 7] = np.inf, -np.inf
    return scratch.reshape(-1)


def bucket_index(y_proba: object, n_buckets: int = 4096) -> NDArray[np.int64]:
    """Return the bucket of a `Sketch` that each prediction falls into.

    Each bucket has its left edge, and 1 belongs to the last. All of truthcal uses this definition; the edges are in
    docs/reference/sketch-format.md.

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
    Fewer than 128 buckets have equal widths; others are finer towards 0 and 1:

    >>> import truthcal as tc
    >>> tc.bucket_index([0.0, 0.49, 0.5, 1.0], n_buckets=4).tolist()
    [0, 1, 2, 3]
    >>> tc.bucket_index([0.0, 0.001, 0.01, 0.1, 0.5, 1.0]).tolist()
    [0, 257, 775, 1228, 2048, 4095]
    """
    n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
    return Grid.of_size(n_buckets).index(checks.check_proba(y_proba, "y_proba"))


def _refuse_rows_with_groups(new: bool) -> None:
    if new:
        problem = "cannot be added: the rows that are already in this sketch have no groups."
        raise checks.invalid("groups", f"{problem} Pass groups= from the first update on, in a new Sketch.")
    raise checks.invalid("groups", "is missing: the rows that are already in this sketch have groups. Pass theirs.")


def refuse_other_groups(other: bool, mine: bool, noun: str) -> None:
    """Raise if two sketches cannot be merged since only one of them knows which rows belong together."""
    if other != mine:
        words = {True: "with groups", False: "without groups"}
        raise ValueError(
            f"cannot merge a {noun} {words[other]} into one {words[mine]}: tests would not know which rows belong "
            f"together. Build the one without groups again from its rows, with `groups`."
        )


def refuse_other_grid(other: Grid, grid: Grid, noun: str) -> None:
    """Raise if two sketches of the same number of buckets cannot be merged since their buckets differ."""
    if other != grid:
        old, new = sorted((other, grid), key=lambda grid: grid.graded)
        raise ValueError(
            f"cannot merge a {noun} with {other} into one with {grid}: {old} come from a file of format version 1, and "
            f"new sketches have {new}. Build the older {noun} again from its rows."
        )


def cells_are_possible(grid: Grid, bucket: NDArray[np.int64], columns: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each filled bucket of a sketch can come from rows. A checksum proves only unchanged bytes."""
    out = np.empty(len(bucket), np.bool_)
    buckets.possible_cells(np.ascontiguousarray(columns), out)  # columns may be transposed; compile for one layout
    for extreme in (buckets.LOW, buckets.HIGH):
        out[out] &= grid.index(columns[extreme, out]) == bucket[out]
    return out
