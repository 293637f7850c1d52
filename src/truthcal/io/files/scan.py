"""Files of any size, read once, as a stream of batches that go straight into buckets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

from numpy.typing import NDArray

from truthcal.core.params import check_power_of_two
from truthcal.core.progress import progress
from truthcal.core.sketch import MAX_BUCKETS, Sketch
from truthcal.core.sketch_table import SketchTable
from truthcal.io.assemble import build_sketch
from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.accumulate import BucketAccumulator
from truthcal.io.files.batches import batches_of, refuse_unreadable
from truthcal.io.files.decode import BatchDecoder
from truthcal.io.files.sources import Source, find_sources
from truthcal.io.files.text_input import Checksum

# Steps of the progress bar for each file.
_STEPS = 1000

BatchCallback = Callable[[Any, NDArray[Any], list[NDArray[Any]], NDArray[Any] | None], None]


@overload
def scan(
    paths: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = ...,
    by: None = ...,
    pos_label: Any = ...,
    n_buckets: int = ...,
) -> Sketch: ...


@overload
def scan(
    paths: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = ...,
    by: str | Sequence[str],
    pos_label: Any = ...,
    n_buckets: int = ...,
) -> SketchTable: ...


def scan(
    paths: Any,
    *,
    y_true: str,
    y_proba: str,
    sample_weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: Any = None,
    n_buckets: int = 4096,
) -> Sketch | SketchTable:
    r"""Reduce files of any size to a sketch, in one pass and little memory.

    Parameters
    ----------
    paths : str, path, or list of them
        Local files, patterns (``"day-*.parquet"``, ``"**/*.csv"``) and folders. Parquet, CSV (also parted by tabs,
        semicolons or bars), JSON lines, Arrow (Feather); text may be compressed. The ending of the name tells the
        format. In folders and patterns, names that begin with ``_`` or ``.`` and empty files of text are passed over:
        Spark leaves them there. Refused are a file that is named twice, a folder with files of other endings, and
        tables of Delta or Iceberg, whose logs say which files count.
    y_true, y_proba, sample_weight, by, pos_label, n_buckets
        As for `sketch_frame`. `by` may also name a part of the path, as in ``country=fr/part-0.parquet``. Its values
        are whole numbers or dates if they are so in all of these files, as engines have it, else text (so is ``007``).
        A column of that name in the file must say the same.

    Returns
    -------
    Sketch or SketchTable
        As for `sketch_frame`.

    Notes
    -----
    Only the named columns are read, a million rows at a time; memory does not grow with the files. It grows with
    groups: by 4 bytes for each of the `n_buckets` of a group and 64 for a filled one. With 65,536 groups of 4096
    buckets that is 1 GB and more, and the most that is accepted; with fewer buckets there may be more groups.

    Rows are checked as they pass: the first batch with a row that cannot be used ends the scan with an error that names
    file, column, row and value. Groups of CSV files are told apart by their text; an empty field is None, ``""`` is
    empty text. Columns of JSON lines are judged by the first lines, 4 MiB of them. A progress line shows on a terminal.
    Nothing is written: `Sketch.save` puts the result into a file, whole or not at all.

    Needs pyarrow: ``pip install 'truthcal[files]'``.

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
    roles = ColumnRoles.of(y_true, y_proba, sample_weight, by, pos_label)
    return scan_sources(find_sources(paths), roles, n_buckets)[y_proba]


def scan_sources(
    sources: list[Source],
    roles: ColumnRoles,
    n_buckets: int,
    on_batch: BatchCallback | None = None,
    *,
    extra_columns: tuple[str, ...] = (),
    checksum: Checksum | None = None,
) -> dict[str, Sketch | SketchTable]:
    """Reduce all rows of these files in one pass; the result has one entry for each prediction column.

    `on_batch` is called for each batch of valid rows: with the record batch, which also holds the `extra_columns`, and
    with the arrays of outcomes, of predictions (one for each model) and of weights. `checksum`, an object of hashlib,
    is updated with all bytes of all files.
    """
    wanted = replace(roles, by=(*roles.by, *extra_columns))
    refuse_unreadable(sources, wanted)
    decoder = BatchDecoder(roles)
    accumulators = {name: BucketAccumulator(roles.for_model(name), n_buckets) for name in roles.y_probas}
    with progress(_STEPS * len(sources), "reading") as bar:
        for i, source in enumerate(sources):
            row = 0
            for batch, share in batches_of(source, wanted, checksum):
                y, ps, w, groups = decoder.decode(batch, source)
                for accumulator, p in zip(accumulators.values(), ps, strict=True):
                    accumulator.add(y, p, w, groups, row, str(source))
                if on_batch is not None:
                    on_batch(batch, y, ps, w)
                row += len(batch)
                bar.advance(_STEPS * i + int(_STEPS * share) - bar.done)
    where = str(sources[0]) if len(sources) == 1 else f"each of these {len(sources)} files"
    results = {}
    for name, accumulator in accumulators.items():
        table, groups = accumulator.table()
        labels = decoder.other_labels()
        results[name] = build_sketch({**table, **labels}, groups, roles.for_model(name), n_buckets, where)
    return results
