"""Files read once, into sketches, and into arrays if there are not too many rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.core.summarize import BUCKETS
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.scan import scan_sources
from truthcal.io.files.source import Checksum, Source

_Rows = NDArray[Any]

EXACT_ROWS = 1 << 20  # read into memory; from more rows only a sketch is made
_GROUP_BUCKETS = 4096  # fewer than for all rows: there may be thousands of groups


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rows of one model: always as a sketch, and as arrays in the order of the files if there are not too many."""

    y: _Rows | None  # outcomes, after `pos_label` is applied
    p: _Rows | None
    w: _Rows | None  # None also if there is no weight column
    sketch: Sketch  # of all rows
    table: SketchTable | None  # one sketch for each group, if there are grouping columns
    n: int  # rows read, including those of weight 0

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
) -> dict[str, Loaded]:
    """Load the named columns of files in one pass; return the rows of each model by its prediction column.

    Sketches have 16,384 buckets by default, and 4096 for each group. If there are more than `exact_rows` rows, only the
    sketch is kept; None keeps all rows. `checksum` is updated with all bytes of all files, in order. Outcomes and
    weights are the same arrays in all models. Memory, for each model: as for `scan`, and at most 24 bytes for each kept
    row (16 without weights), twice that at the end: 50 MB with the default `exact_rows`.
    """
    rows = KeptRows(exact_rows)
    n_buckets = n_buckets or (_GROUP_BUCKETS if roles.by else BUCKETS)
    sketches = scan_sources(sources, roles, n_buckets, rows.add, checksum=checksum)
    y, ps, w = rows.columns()
    models = {}
    for i, (name, result) in enumerate(sketches.items()):
        sketch, table = (result.total(), result) if isinstance(result, SketchTable) else (result, None)
        models[name] = Loaded(y, ps[i] if ps else None, w, sketch, table, rows.n)
    return models


@dataclass(slots=True)
class KeptRows:
    """Copies of the rows read so far, until there are more than `limit`."""

    limit: int | None
    n: int = 0
    batches: list[tuple[_Rows, list[_Rows], _Rows | None]] = field(default_factory=list)

    def add(self, _: Any, y: _Rows, ps: list[_Rows], w: _Rows | None) -> None:
        """Add a batch, as a callback of `scan_sources`."""
        self.n += len(y)
        if self.limit is not None and self.n > self.limit:
            self.batches.clear()
        else:  # copies: a column of a batch would keep all of the batch, or of the file, in memory
            self.batches.append((y.copy(), [p.copy() for p in ps], None if w is None else w.copy()))

    def columns(self) -> tuple[_Rows | None, list[_Rows], _Rows | None]:
        """Return outcomes, predictions of each model and weights; nothing if there are too many rows."""
        if not self.batches:
            return None, [], None
        ys, ps, ws = zip(*self.batches, strict=True)
        self.batches.clear()
        weights = None if ws[0] is None else np.concatenate(ws)
        return np.concatenate(ys), [np.concatenate(parts) for parts in zip(*ps, strict=True)], weights
