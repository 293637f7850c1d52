"""Sketches of files of any size, read once in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import invalid
from truthcal.core.grid import MAX_BUCKETS
from truthcal.core.group_hash import Hashes
from truthcal.core.group_keys import plain_value
from truthcal.core.params import check_power_of_two
from truthcal.core.progress import progress
from truthcal.core.sketch import Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io.assemble import Groups, build_sketch
from truthcal.io.column_roles import ColumnOptions, ColumnRoles
from truthcal.io.files.accumulate import BucketAccumulator
from truthcal.io.files.decode import BatchDecoder, decode_to_dictionary, storage
from truthcal.io.files.find_files import find_sources
from truthcal.io.files.parquet_arrow import check_parquet_footers
from truthcal.io.files.row_filter import RowFilter
from truthcal.io.files.source import Checksum, RowNumbers, Source, errors_naming
from truthcal.io.files.where_rows import rows_where
from truthcal.io.files.where_texts import hint_of_values
from truthcal.io.row_order import RowOrder

_Rows = NDArray[Any]
_STEPS = 1000  # of the progress bar for each file


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Decoded rows of a file, not yet checked; `numbers` are those of its rows."""

    y: _Rows
    ps: list[_Rows]  # predictions of each model
    w: _Rows | None
    groups: Groups | None  # segments
    hashes: Hashes | None  # of the groups of rows that belong together
    numbers: RowNumbers
    source: Source
    record: Any  # the record batch

    def keys(self, name: str, parameter: str, cure: str) -> tuple[_Rows, list[Any]]:
        """Decode a column of any type: each row's index into a list of distinct values, none of them missing."""
        if name not in self.record.schema.names:  # it is in the path, the same for all rows
            return np.zeros(len(self.y), np.int64), [self.source.partition[name]]
        with errors_naming(self.source):
            encoded = decode_to_dictionary(storage(self.record.column(name)))
        index = np.from_dlpack(encoded.indices)
        keys = [plain_value(value, name) for value in encoded.dictionary.to_pylist()]
        nulls = [place for place, key in enumerate(keys) if key is None or key == "" or key != key]
        missing = np.isin(index, nulls)
        if missing.any():
            problem = f"has a missing value at row {self.numbers[int(missing.argmax())]}. {cure}"
            raise invalid(parameter, problem, subject=f"{self.source}: column {name!r}")
        return index, keys


@overload
def scan(paths: Any, *, by: None = ..., **columns: Unpack[ColumnOptions]) -> Sketch: ...


@overload
def scan(paths: Any, *, by: str | Sequence[str], **columns: Unpack[ColumnOptions]) -> SketchTable: ...


def scan(
    paths: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: Any = None,
    groups: str | None = None,
    n_buckets: int = 4096,
) -> Sketch | SketchTable:
    r"""Reduce files of any size to a sketch, in one pass and little memory.

    Parameters
    ----------
    paths : str, path, or list of them
        Local files, patterns (``"day-*.parquet"``, ``"**/*.csv"``) and folders. Parquet, CSV (also separated by tabs,
        semicolons or bars), JSON lines, Arrow (Feather); text may be compressed. The extension determines the format.
        In folders and patterns, names that start with ``_`` or ``.`` and empty text files are skipped: Spark writes
        them. Errors are a file that is named twice, a folder with files of other extensions, and Delta or Iceberg
        tables, whose logs determine which files are valid.
    y_true, y_proba, sample_weight, by, pos_label, groups, n_buckets
        As for `sketch_frame`. `by` and `groups` may also name a part of the path, as in
        ``country=fr/part-0.parquet``. Its values are integers or dates if they are in all of these files, as in other
        engines, else text (so is ``007``). A column of that name in the file must have the same value.

    Returns
    -------
    Sketch or SketchTable
        As for `sketch_frame`.

    Notes
    -----
    Only the named columns are read, a million rows at a time. Memory grows with the number of groups, not with the size
    of the files: each group needs 4 bytes per bucket and 64 per filled bucket (128 with weights or fractional
    outcomes). The limit is 65,536 groups of 4096 buckets, which take more than 1 GB; with fewer buckets there may be
    more groups.

    The first batch with an invalid row ends the scan with an error that names file, column, row and value. Groups of
    CSV files are compared as text; an empty field is None, ``""`` is empty text. The types of JSON columns are inferred
    from the first 4 MiB. A progress bar shows on a terminal. Needs pyarrow: ``pip install 'truthcal[files]'``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import truthcal as tc
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "monday.csv").write_text("clicked,score\n0,0.2\n1,0.9\n")
    >>> _ = (folder / "tuesday.csv").write_text("clicked,score\n1,0.6\n0,0.3\n")
    >>> tc.scan(folder / "*.csv", y_true="clicked", y_proba="score")
    Sketch(n_buckets=4096): 4 rows
    """
    n_buckets = check_power_of_two(n_buckets, "n_buckets", MAX_BUCKETS)
    roles = ColumnRoles.of(y_true, y_proba, sample_weight, by, pos_label, groups)
    return scan_sources(find_sources(paths), roles, n_buckets)[y_proba]


def scan_sources(sources: list[Source], roles: ColumnRoles, n_buckets: int) -> dict[str, Sketch | SketchTable]:
    """Scan all rows of these files in one pass; the result has one sketch or table for each prediction column."""
    reader, builder = BatchReader(sources, roles), SketchBuilder(roles, n_buckets)
    for rows in reader:
        builder.add(rows)
    return builder.build(reader)


class BatchReader:
    """All rows of these files, in batches, read once.

    The record batches also hold the `extra_columns`. `checksum`, an object of hashlib, is updated with all bytes of all
    files. `row_filter` leaves out rows and counts them.
    """

    def __init__(
        self,
        sources: list[Source],
        roles: ColumnRoles,
        *,
        extra_columns: tuple[str, ...] = (),
        checksum: Checksum | None = None,
        row_filter: RowFilter | None = None,
    ) -> None:
        self._sources, self._checksum, self._roles, self._filter = sources, checksum, roles, row_filter
        where = sources[0].where if sources else None
        columns = () if where is None else where.columns
        self._wanted = replace(roles, by=(*roles.by, *extra_columns), where=columns)
        self._decoder = BatchDecoder(roles)

    def __iter__(self) -> Iterator[RowBatch]:
        check_parquet_footers(self._sources, self._wanted)
        with progress(_STEPS * len(self._sources), "reading") as bar:
            for i, source in enumerate(self._sources):
                for record, numbers, share in self._records(source):
                    rows = RowBatch(*self._decoder.decode(record, source, numbers), numbers, source, record)
                    rows = rows if self._filter is None else self._filter.apply(rows, self._roles)
                    if len(rows.y) or (self._filter is None and source.where is None):
                        yield rows
                    bar.advance(_STEPS * i + int(_STEPS * share) - bar.done)
        self._refuse_no_match()

    def _records(self, source: Source) -> Iterator[tuple[Any, RowNumbers, float]]:
        """Yield record batches of the rows that meet the condition, their numbers, and the share read so far."""
        read, kept = 0, 0
        for record, share in source.batches(self._wanted, self._checksum):
            first, read = read, read + len(record)
            numbers: RowNumbers = range(first, read)
            if source.where is not None:
                with errors_naming(source):
                    if source.format.name == "Arrow":  # memory-mapped, so that damage could crash Python
                        record.validate(full=True)
                    chosen = rows_where(record, source, first)
                kept += len(chosen)
                source.where.counts[str(source)] = read, kept
                if len(chosen) < len(record):
                    record, numbers = record.take(chosen), first + chosen
            yield record, numbers, share

    def _refuse_no_match(self) -> None:
        """Raise if no row of any file meets the condition."""
        where = self._sources[0].where
        counts = [] if where is None else [where.counts.get(str(source), (0, 0)) for source in self._sources]
        read = sum(n for n, _ in counts)
        if where is not None and read and not any(kept for _, kept in counts):
            files = str(self._sources[0]) if len(counts) == 1 else f"these {len(counts)} files"
            raise where.error(0, f"keeps none of the {read:,} rows of {files}.{hint_of_values(where)}")

    @property
    def where(self) -> str:
        """The files, for errors about all rows."""
        files = str(self._sources[0]) if len(self._sources) == 1 else f"each of these {len(self._sources)} files"
        return files if self._filter is None else f"{files}, without the rows left out,"

    def other_labels(self) -> dict[str, list[Any]]:
        """Return the labels read so far but the positive one, as columns of a table of sums by code."""
        return self._decoder.other_labels()


class SketchBuilder:
    """Sketches of rows that are added in batches: one sketch or table for each prediction column."""

    def __init__(self, roles: ColumnRoles, n_buckets: int) -> None:
        self._roles, self._n_buckets, self._order = roles, n_buckets, RowOrder()
        self._accumulators = {name: BucketAccumulator(roles.for_model(name), n_buckets) for name in roles.y_probas}

    def add(self, rows: RowBatch) -> None:
        """Add a batch. If a row is invalid, raise."""
        for accumulator, p in zip(self._accumulators.values(), rows.ps, strict=True):
            accumulator.add(rows.y, p, rows.w, rows.groups, rows.numbers, str(rows.source), rows.hashes)
        self._order.add(rows.y, rows.ps, rows.w, rows.groups)

    def build(self, reader: BatchReader, *, flips: bool = True) -> dict[str, Sketch | SketchTable]:
        """Build the sketches of all rows of a reader; without `flips`, they have no groups of rows."""
        results = {}
        for model, (name, accumulator) in enumerate(self._accumulators.items()):
            table, groups = accumulator.table()
            table |= reader.other_labels()
            results[name] = build_sketch(table, groups, self._roles.for_model(name), self._n_buckets, reader.where)
            self._order.store_in(results[name], model)
            if flips:
                accumulator.flips.store_in(results[name])
        return results
