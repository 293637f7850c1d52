"""Preview of a file: the types and first values of its columns, from its first rows."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from truthcal.io.files.source import Source, errors_naming
from truthcal.io.files.where_rows import require_where_columns
from truthcal.io.void_words import first_void_word, is_void

Kind = Literal["number", "bool", "text", "other", "nothing"]

# Rows to preview. In wide files the limit is the number of values, but there are always a few rows.
_ROWS, _VALUES, _MIN_ROWS = 1000, 1 << 21, 10
_DISTINCT, _LABELS = 3, 1000  # values of a column to report, and to compare with names of classes


@dataclass(frozen=True, slots=True)
class Column:
    """The contents of a column, judged by its first rows."""

    name: str
    kind: Kind  # "other" are dates, lists and mixed types; "nothing" is a column without values
    low: float | None = None  # the smallest number
    high: float | None = None
    values: tuple[Any, ...] = ()  # the first distinct values, at most three
    many: bool = False  # whether there are more distinct values
    in_path: bool = False  # whether it is part of the path, as in ``country=fr/part-0.parquet``: only for groups
    repeats: bool = field(default=False, compare=False)  # whether a value occurs twice in these rows
    void: str = field(default="", compare=False)  # the first word for a missing outcome, such as "void"
    numbers: tuple[float, ...] = field(default=(), repr=False, compare=False)  # row by row, if in [0, 100]
    missing: bool = field(default=False, compare=False)  # whether a value is missing
    fraction: str = field(default="", compare=False)  # an outcome between 0 and 1, if others are 0 and 1 or void
    labels: tuple[Any, ...] = field(default=(), repr=False, compare=False)  # distinct values, more than in `values`
    fields: tuple[str, ...] = field(default=(), compare=False)  # of the objects of JSON lines that it holds

    @property
    def in_unit(self) -> bool:
        """Whether these are numbers in [0, 1]."""
        return self.low is not None and self.high is not None and 0.0 <= self.low <= self.high <= 1.0


@dataclass(frozen=True, slots=True)
class Preview:
    """The columns of a file, and the file with its detected format, delimiter and header: pass it on to `load`."""

    source: Source
    columns: tuple[Column, ...]


def preview_columns(source: Source, named: Iterable[str] = ()) -> Preview:
    """Preview the columns of a file from its first thousand rows, or fewer if there are thousands of columns.

    Columns come in the order of the file, and two may have the same name; then come those of its path. A sketch has
    none. The `named` columns should exist: they decide between delimiters, and JSON lines are read until all were seen.
    """
    wanted = {*named, *(() if source.where is None else source.where.columns)}
    with errors_naming(source):
        source, in_file = source.format.preview(source, wanted)
    columns = tuple(in_file)
    header = tuple(column.name for column in columns)
    if not source.is_sketch:
        require_where_columns(source, header)
    in_path = ((name, value) for name, value in source.partition.items() if name not in header)
    columns += tuple(preview_values(name, [value], in_path=True) for name, value in in_path)
    return Preview(replace(source, header=header), columns)


def rows_to_preview(n_columns: int) -> int:
    """Return the number of rows to preview, by the number of columns."""
    return min(max(_VALUES // max(n_columns, 1), _MIN_ROWS), _ROWS)


def preview_values(name: str, values: Iterable[Any], *, in_path: bool = False) -> Column:
    """Preview a column from Python values: its type, its range and its first values."""
    values = list(values)
    present = [value for value in values if value is not None and value == value]
    types = {type(value) for value in present}
    if not types:
        return Column(name, "nothing", in_path=in_path)
    distinct = list(dict.fromkeys(present)) if types <= {bool, int, float, Decimal, str} else []
    first, many, repeats = tuple(distinct[:_DISTINCT]), len(distinct) > _DISTINCT, len(distinct) < len(present)
    facts: dict[str, Any] = {"missing": len(present) < len(values), "labels": tuple(distinct[:_LABELS])}
    facts["fraction"] = _first_fraction(distinct)
    if types <= {int, float, Decimal}:
        low, high = float(min(present)), float(max(present))
        numbers: tuple[float, ...] = ()
        if 0.0 <= low <= high <= 100.0:  # probabilities or percentages
            numbers = tuple(math.nan if value is None else float(value) for value in values)
        return Column(name, "number", low, high, first, many, in_path, repeats, numbers=numbers, **facts)
    if types in ({bool}, {str}):
        kind: Kind = "bool" if types == {bool} else "text"
        return Column(name, kind, None, None, first, many, in_path, repeats, first_void_word(distinct), **facts)
    fields = tuple(map(str, present[0])) if types == {dict} else ()
    return Column(name, "other", in_path=in_path, void=first_void_word(distinct), fields=fields)


def _first_fraction(distinct: list[Any]) -> str:
    """Return the first value between 0 and 1 of a previewed column that else has only 0, 1 and void words."""
    numbers, fraction = list[float](), ""
    for value in distinct:
        try:
            numbers.append(float(value))
        except ValueError:
            if not is_void(value):
                return ""
            continue
        fraction = fraction or (str(value) if 0.0 < numbers[-1] < 1.0 else "")
    return fraction if numbers and (min(numbers), max(numbers)) == (0.0, 1.0) else ""
