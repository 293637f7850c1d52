"""A data file: its path, its format, and the columns to read from it."""

import contextlib
import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from truthcal.core.file_format import READERS
from truthcal.core.frame_columns import require_columns
from truthcal.io.column_roles import KEY_ROLES, ColumnRoles
from truthcal.io.files.where import Where

CONVERT_TO_UTF8 = "save it as UTF-8: in a spreadsheet, or with `iconv -f latin1 -t utf-8` if it is Latin-1"


# The error of pyarrow about a line of CSV with other columns than the header, which is row 1 for pyarrow.
_RAGGED = re.compile(r"CSV parse error: (?:Row #([0-9]+): )?(Expected ([0-9]+) columns, got ([0-9]+).*)")


class Checksum(Protocol):
    """An object of hashlib, such as ``hashlib.sha256()``."""

    def update(self, data: Any, /) -> None: ...  # noqa: D102


Batches = Iterator[tuple[Any, float]]
# The row of its file for each row of a batch, for errors: consecutive unless some rows were left out.
RowNumbers = range | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A file format: how to recognize it and how to read it.

    `read` yields record batches with the requested columns, and the share of the file read so far. `preview` returns
    the source with what was detected and its columns; it takes the names of columns that should exist.
    """

    name: str
    extensions: tuple[str, ...]
    magic: tuple[bytes, ...]  # the first bytes; empty for text
    read: Callable[["Source", ColumnRoles, Checksum | None], Batches]
    preview: Callable[["Source", set[str]], tuple["Source", Iterable[Any]]]


@dataclass(frozen=True, slots=True)
class Source:
    """A data file, with what a preview has detected."""

    BLOCK: ClassVar[int] = 1 << 22  # bytes of text parsed at a time; column types are inferred from the first block

    path: Path
    format: FileFormat
    compression: str = ""  # codec of pyarrow for compressed text
    partition: dict[str, Any] = field(default_factory=dict)  # columns in the path: ``day=2026-01-31/part-0.parquet``
    name: str = ""  # the name in messages, if it is not the path
    delimiter: str = ""  # of a CSV file, once a preview has detected it
    header: tuple[str, ...] = ()  # column names, once a preview has read them
    table: Any = None  # rows in memory that are read in place of the file (`tables.py`)
    void: bool = False  # whether words such as "void" are missing outcomes
    where: Where | None = None  # the condition that rows must meet
    percent: bool = False  # whether predictions are percentages, to be divided by 100

    def __str__(self) -> str:
        return self.name or str(self.path)

    @property
    def is_sketch(self) -> bool:
        """Whether the file holds a `Sketch` or `SketchTable`, not rows."""
        return self.format is SKETCH

    def columns_to_read(self, roles: ColumnRoles, available: Iterable[str]) -> list[str]:
        """Return the columns to read from the file, which has those `available`; other groups are in its path."""
        names = set(available)
        in_path = {name for name in self.partition if name not in names}
        return list(dict.fromkeys(name for role, name in roles if role not in KEY_ROLES or name not in in_path))

    def require_columns(self, roles: ColumnRoles, available: Iterable[str], where: str | None = None) -> None:
        """Raise if a named column is neither in the file nor in its path."""
        names = list(available)
        in_path = [name for name in roles.keys if name in self.partition and name not in names]
        require_columns(roles, [*names, *in_path], where or str(self))

    def batches(self, roles: ColumnRoles, checksum: Checksum | None = None) -> Batches:
        """Yield record batches with at least the requested columns, and the share of the file read so far."""
        with errors_naming(self):
            yield from self.format.read(self, roles, checksum)


def _refuse_sketch_as_source(source: Source, *_: Any) -> Batches:
    raise ValueError(f"{source}: is a truthcal sketch, not a file of rows; load it with Sketch.load.")


SKETCH = FileFormat("sketch", (), tuple(READERS), _refuse_sketch_as_source, lambda source, _: (source, []))


def arrow() -> Any:
    """Import pyarrow, which reads sources of all formats."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError("reading files needs pyarrow: pip install 'truthcal[files]'.") from None
    return pyarrow


@contextlib.contextmanager
def errors_naming(source: Source) -> Iterator[None]:
    """Put the name of the source into errors of pyarrow, csv and the operating system."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeError, csv.Error) as error:
        raise ValueError(f"{source}: could not be read as {source.format.name} ({_source_error(error)}).") from error
    except (OSError, MemoryError) as error:  # a damaged file may raise OSError, or ask for more memory than there is
        if str(source) in str(error):
            raise
        kind = type(error) if isinstance(error, OSError) else MemoryError
        raise kind(f"{source}: could not be read as {source.format.name} ({_source_error(error)}).") from error


def _source_error(error: BaseException) -> str:
    reason = " ".join(str(error).split())[:300].rstrip(".")
    if "straddl" in reason:
        return f"a line is longer than {Source.BLOCK:,} bytes, or a quote is opened but never closed: {reason}"
    if "invalid UTF8" in reason:
        return f"it is not UTF-8 text; {CONVERT_TO_UTF8}: {reason}"
    if ragged := _RAGGED.search(reason):
        row = f"row {int(ragged[1]) - 2}: " if ragged[1] else ""
        cure = "A field with a delimiter in it must be in quotes, and the header must name all columns"
        cure = "Add the missing fields, or drop this line" if int(ragged[4]) < int(ragged[3]) else cure
        return f"{row}{ragged[2][0].lower()}{ragged[2][1:]}. {cure}"
    return reason
