"""Files read once, into sketches, and into arrays if there are not too many rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.inference.cells import BUCKETS, TOO_MANY_TO_SORT
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.scan import scan_sources
from truthcal.io.files.source import Checksum, Source

_Rows = NDArray[Any]

# With more rows `assess` works on buckets anyway, so the rows themselves are not needed.
EXACT_ROWS = TOO_MANY_TO_SORT
# Buckets for all rows, as in `assess`; and for each group, of which there may be thousands.
_BUCKETS, _GROUP_BUCKETS = BUCKETS, 4096


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rows of one model: always as a sketch, and as arrays if there are not too many.

    Attributes
    ----------
    y, p, w : ndarray or None
        Outcomes (0 and 1 after `pos_label` is applied), predictions and weights in the order of the files. None if
        there are too many rows; `w` also if there is no weight column.
    sketch : Sketch
        The sketch of all rows.
    table : SketchTable or None
        One sketch for each group, if there are grouping columns.
    n : int
        Number of rows read, including those of weight 0.
    """

    y: _Rows | None
    p: _Rows | None
    w: _Rows | None
    sketch: Sketch
    table: SketchTable | None
    n: int

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
    """Read the named columns of files in one pass, for one or more models.

    Parameters
    ----------
    sources : list of Source
        Files from `find_sources`, `spool_stdin` or `preview_columns`.
    roles : ColumnRoles
        Roles of the columns, with one prediction column for each model.
    n_buckets : int, optional
        Buckets of each sketch: by default 16,384, or 4096 for each group.
    exact_rows : int or None, default 1,048,576
        Up to this number of rows, the rows themselves are kept; beyond it, only the sketch. None keeps all rows.
    checksum : hashlib object, optional
        Updated with all bytes of all files, in order, without opening them again.

    Returns
    -------
    dict of Loaded
        One for each prediction column, in order. Outcomes and weights are the same arrays in all of them. Invalid rows
        are errors, as for `scan`.

    Notes
    -----
    Memory, for each model: as for `scan`, and for each kept row at most 24 bytes (16 without weights), twice that at
    the end. With the default that is 50 MB; with None it grows with the files.
    """
    rows = _KeptRows(exact_rows)
    n_buckets = n_buckets or (_GROUP_BUCKETS if roles.by else _BUCKETS)
    sketches = scan_sources(sources, roles, n_buckets, rows.add, checksum=checksum)
    y, ps, w = rows.columns()
    models = {}
    for i, (name, result) in enumerate(sketches.items()):
        table = result if isinstance(result, SketchTable) else None
        sketch = result.total() if isinstance(result, SketchTable) else result
        models[name] = Loaded(y, ps[i] if ps else None, w, sketch, table, rows.n)
    return models


@dataclass(slots=True)
class _KeptRows:
    """Copies of the rows read so far, until there are more than `limit`."""

    limit: int | None
    n: int = 0
    batches: list[tuple[_Rows, list[_Rows], _Rows | None]] = field(default_factory=list)

    def add(self, _: Any, y: _Rows, ps: list[_Rows], w: _Rows | None) -> None:
        self.n += len(y)
        if self.limit is not None and self.n > self.limit:
            self.batches.clear()
        else:  # copies: a column of a batch would keep all of the batch, or of the file, in memory
            self.batches.append((y.copy(), [p.copy() for p in ps], None if w is None else w.copy()))

    def columns(self) -> tuple[_Rows | None, list[_Rows], _Rows | None]:
        if not self.batches:
            return None, [], None
        ys, ps, ws = zip(*self.batches, strict=True)
        self.batches.clear()
        weights = None if ws[0] is None else np.concatenate(ws)
        return np.concatenate(ys), [np.concatenate(parts) for parts in zip(*ps, strict=True)], weights
