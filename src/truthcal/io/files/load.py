"""Files read once: into arrays if there are not too many rows, else into sketches."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import refuse_no_weight, refuse_swapped
from truthcal.core.group_keys import checked_key
from truthcal.core.segment_groups import SegmentGroups
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.core.summarize import BUCKETS
from truthcal.inference.over_time import WindowedRows
from truthcal.io.assemble import other_labels
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.errors import refuse_more_labels, refuse_no_rows
from truthcal.io.files.accumulate import refuse_invalid_batch
from truthcal.io.files.decode import KeyNumbers
from truthcal.io.files.row_filter import RowFilter
from truthcal.io.files.scan import BatchReader, RowBatch, SketchBuilder
from truthcal.io.files.source import Checksum, Source
from truthcal.io.files.windows import TimeOptions, WindowBuilder

_Rows = NDArray[Any]

EXACT_ROWS = 1 << 20  # read into memory; from more rows only a sketch is made
_GROUP_BUCKETS = 4096  # fewer than for all rows: there may be thousands of groups


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rows of one model: as arrays in the order of the files, or as a sketch if there are too many."""

    y: _Rows | None  # outcomes, after `pos_label` is applied
    p: _Rows | None
    w: _Rows | None  # None also if there is no weight column
    sketch: Sketch | None  # of all rows, if there are no arrays
    table: SketchTable | None  # one sketch for each group, if there are grouping columns
    n: int  # rows read, including those of weight 0
    groups: _Rows | None = None  # the hash of the group of each row, if the user said which rows belong together
    windows: WindowedRows | None = None  # one sketch for each window, if there is a time column
    labels: tuple[str, ...] | None = None  # with many classes: those of the columns of `p`; `y` has the class

    @property
    def exact(self) -> bool:
        """Whether the rows themselves are available, not only their sketch."""
        return self.p is not None


def load(
    sources: list[Source],
    roles: ColumnRoles,
    *,
    n_buckets: int | None = None,
    exact_rows: int | None = EXACT_ROWS,
    checksum: Checksum | None = None,
    time: TimeOptions | None = None,
    row_filter: RowFilter | None = None,
) -> dict[str, Loaded]:
    """Load the named columns of files in one pass; return the rows of each model by its prediction column.

    If there are more than `exact_rows` rows, they become a sketch of 16,384 buckets by default, and of 4096 for each
    group; None keeps all rows. With `time`, they also become a sketch for each window. `checksum` is updated with all
    bytes of all files, in order. `row_filter` leaves out rows and counts them. Outcomes and weights are
    the same arrays in all models. Memory, for each model: as for `scan`, and at most 24 bytes for each kept row (16
    without weights), twice that at the end: 50 MB with the default `exact_rows`. With groups of rows that
    belong together, 16 bytes more for each kept row.
    """
    extra = () if time is None else (time.column,)
    reader = BatchReader(sources, roles, extra_columns=extra, checksum=checksum, row_filter=row_filter)
    kept = KeptRows(roles, exact_rows)
    windows = None if time is None else WindowBuilder(time, roles, _GROUP_BUCKETS)
    members, segments = list[_Rows](), KeyNumbers()
    # Rows are not added to buckets unless these are used: compiling that would take most of a first `assess`.
    builder = SketchBuilder(roles, n_buckets or (_GROUP_BUCKETS if roles.by else BUCKETS))
    for rows in reader:
        released = kept.add(rows)
        if rows.hashes is not None and kept.batches:
            members.append(rows.hashes)
            if rows.groups is not None:
                segments.add(rows.groups[0], [checked_key(key, roles.by) for key in rows.groups[1]])
        elif members:
            members, segments = [], KeyNumbers()
        for batch in [rows] if roles.by else released:
            builder.add(batch)
        if windows is not None:
            windows.add(rows)
    y, ps, w = kept.columns(reader)
    sketches = builder.build(reader, flips=y is None) if roles.by or y is None else {}
    groups = np.concatenate(members) if members else None
    over_time = {} if windows is None else windows.build(reader)
    models = {}
    for i, name in enumerate(roles.y_probas):
        result = sketches.get(name)
        table = result if isinstance(result, SketchTable) else None
        if table is not None and groups is not None and (found := segments.result()) is not None:
            table.segment_groups = SegmentGroups((y, ps[i], w), groups, *found)
        sketch = None if y is not None else result.total() if isinstance(result, SketchTable) else result
        models[name] = Loaded(y, ps[i] if ps else None, w, sketch, table, kept.n, groups, over_time.get(name))
    return models


@dataclass(slots=True)
class KeptRows:
    """Copies of the rows read so far, until there are more than `limit`."""

    roles: ColumnRoles
    limit: int | None
    n: int = 0
    batches: list[RowBatch] = field(default_factory=list)

    def add(self, rows: RowBatch) -> Iterator[RowBatch]:
        """Add a batch; return the batches that are no longer kept: all of them once there are more than `limit` rows.

        If a row is invalid and kept, raise.
        """
        self.n += len(rows.y)
        if self.limit is not None and self.n > self.limit:
            released, self.batches = [*self.batches, rows], []
            return iter(released)
        refuse_invalid_batch(rows.y, rows.ps, rows.w, rows.numbers, self.roles, str(rows.source))
        # Copies: a column of a batch would keep all of the batch, or of the file, in memory.
        w = None if rows.w is None else rows.w.copy()
        self.batches.append(replace(rows, y=rows.y.copy(), ps=[p.copy() for p in rows.ps], w=w, record=None))
        return iter(())

    def columns(self, reader: BatchReader) -> tuple[_Rows | None, list[_Rows], _Rows | None]:
        """Return outcomes, predictions of each model and weights; nothing if there are too many rows.

        The same errors as for a sketch are raised for rows that are valid alone, but not together.
        """
        refuse_no_rows(self.n, reader.where)
        if not self.batches:
            return None, [], None
        y, *columns = (
            np.concatenate(parts) for parts in zip(*((rows.y, *rows.ps) for rows in self.batches), strict=True)
        )
        weights = [rows.w for rows in self.batches if rows.w is not None]
        self.batches = []
        w = np.concatenate(weights) if weights else None
        used = slice(None) if w is None else w > 0.0
        refuse_no_weight(len(y[used]))
        fractional = bool(((y != 0) & (y != 1))[used].any())
        for p in columns:
            refuse_swapped(fractional and bool(((p == 0) | (p == 1))[used].all()))
        if self.roles.pos_label is not None:
            refuse_more_labels(other_labels(reader.other_labels()), bool((y[used] > 0).any()), self.roles)
        return y, columns, w
