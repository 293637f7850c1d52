"""Rows in file order, kept while a sketch is built, to tell whether errors of neighbours are correlated."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthcal.core.neighbours import SpreadRows, neighbour_z
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io.assemble import Groups

_Rows = NDArray[Any]


class RowOrder:
    """Outcomes, predictions and groups of rows in file order, as many as `neighbour_z` reads. Memory: 3 MB."""

    def __init__(self) -> None:
        self._rows = SpreadRows()
        self._numbers: dict[Any, int] = {}
        self._columns: list[_Rows] = []

    def add(self, y: _Rows, ps: list[_Rows], w: _Rows | None = None, groups: Groups | None = None) -> None:
        """Add a batch of valid rows: outcomes, the predictions of each model, weights and groups."""
        index, keys = groups or (np.zeros(len(y), np.int32), [()])
        numbers = np.array([self._numbers.setdefault(key, len(self._numbers)) for key in keys], np.int32)
        columns = [y, *ps, numbers[index]]
        self._rows.add(*(columns if w is None else [column[w > 0.0] for column in columns]))

    def store_in(self, result: Sketch | SketchTable, model: int = 0) -> None:
        """Store the z of one of the models in the sketch, or the table, of all rows, unless the user named groups."""
        y, *ps, groups = self._columns = self._columns or self._rows.columns()
        z = neighbour_z(ps[model], y)
        if isinstance(result, SketchTable):
            result.neighbour_z, result._neighbour_z_of_all = neighbour_z(ps[model], y, groups), z
        else:
            result.neighbour_z = z
