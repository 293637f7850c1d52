"""Files read once, into a sketch, and into arrays too as long as there are not too many rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.inference.cells import BUCKETS, TOO_MANY_TO_SORT
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.scan import reduced
from truthcal.io.files.sources import Source

_Rows = NDArray[Any]

# Above so many rows `assess` works on buckets anyway, so that rows need not be kept.
EXACT_ROWS = TOO_MANY_TO_SORT
# Of all rows, as in `assess`; and of each group, of which there may be thousands.
_BUCKETS, _GROUP_BUCKETS = BUCKETS, 4096


@dataclass(frozen=True, slots=True)
class Loaded:
    """All rows of some files: always as a sketch, and as they are if there are few enough.

    Attributes
    ----------
    y, p, w : ndarray or None
        Outcomes (0 and 1 once `pos_label` is applied), predictions and weights in the order of the files. None if there
        were too many rows; `w` also if no column holds weights.
    sketch : Sketch
        Of all rows.
    table : SketchTable or None
        One sketch for each group, if columns make groups.
    n : int
        Rows read, with those of weight 0.
    """

    y: _Rows | None
    p: _Rows | None
    w: _Rows | None
    sketch: Sketch
    table: SketchTable | None
    n: int

    @property
    def exact(self) -> bool:
        """Whether the rows are there, and not their sketch alone."""
        return self.p is not None


def load(
    sources: list[Source], roles: ColumnRoles, *, n_buckets: int | None = None, exact_rows: int | None = EXACT_ROWS
) -> Loaded:
    """Read the named columns of files in one pass.

    Parameters
    ----------
    sources : list of Source
        As `sources_of` finds them.
    roles : ColumnRoles
        Which column is what.
    n_buckets : int, optional
        Of the sketch. By default 16,384, and 4096 of each group.
    exact_rows : int or None, default 1,048,576
        So many rows are also kept as they are; of more rows only the sketch is left. None keeps all of them, however
        many.

    Returns
    -------
    Loaded
        Rows that cannot be used are errors, as for `scan`.

    Notes
    -----
    Memory: what `scan` takes, and for each row kept at most 24 bytes (16 without weights), twice that at the end.
    With the default that is 50 MB; with None it grows with the files.
    """
    kept = _Kept(exact_rows)
    found = reduced(sources, roles, n_buckets or (_GROUP_BUCKETS if roles.by else _BUCKETS), kept.add)
    table = found if isinstance(found, SketchTable) else None
    sketch = found.total() if isinstance(found, SketchTable) else found
    return Loaded(*kept.columns(), sketch, table, kept.n)


@dataclass(slots=True)
class _Kept:
    """Rows as they come, until they are too many."""

    most: int | None
    n: int = 0
    batches: list[tuple[_Rows, _Rows, _Rows | None]] = field(default_factory=list)

    def add(self, _: Any, y: _Rows, p: _Rows, w: _Rows | None) -> None:
        self.n += len(p)
        if self.most is not None and self.n > self.most:
            self.batches.clear()
        else:  # copies: a column of a batch would keep all of the batch, or of the file, in memory
            self.batches.append((y.copy(), p.copy(), None if w is None else w.copy()))

    def columns(self) -> tuple[_Rows | None, _Rows | None, _Rows | None]:
        if not self.batches:
            return None, None, None
        ys, ps, ws = zip(*self.batches, strict=True)
        self.batches.clear()
        weights = None if ws[0] is None else np.concatenate(ws)
        return np.concatenate(ys), np.concatenate(ps), weights
