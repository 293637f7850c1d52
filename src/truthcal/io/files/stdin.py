"""Standard input as a file: kept for as long as it is read, and its format told by its content."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from truthcal.core.file_format import READERS
from truthcal.io.files.sources import Source
from truthcal.io.files.text_input import beginning, said_of

NAME = "standard input"
# What data begin with, and how files of that format end.
_FORMATS = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow", **dict.fromkeys(READERS, "sketch")}
_COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2", b"\x04\x22\x4d\x18": ".lz4"}
_STRANGE = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; save the sheet as CSV, or unpack it with `unzip -p`",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\xfd7zXZ": "compressed by xz; unpack it with `xz -dc`",
    b"\x93NUMPY": "an array of numpy; write it as CSV or Parquet, with names of columns",
    b"SQLite format": "a database of SQLite; write the table as CSV: `sqlite3 -csv -header`",
    b"%PDF": "a PDF; give the table itself",
}
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*\{)")


def sketch_kind(path: str | os.PathLike[str]) -> str | None:
    """What truthcal itself has written there: "Sketch" or "SketchTable", by what the file begins with. None if not."""
    try:
        with open(path, "rb") as file:
            return READERS.get(file.read(8))
    except OSError:  # not there, a folder, a pattern: whoever reads it has the words
        return None


@contextlib.contextmanager
def spool_stdin(stream: BinaryIO) -> Iterator[Source]:
    """Copy standard input to a file that can be read more than once, and remove it in the end, whatever happens.

    Parameters
    ----------
    stream : binary file
        Parquet, Arrow, JSON lines or CSV, the last two also compressed, or a sketch of truthcal: its content tells.

    Yields
    ------
    Source
        Messages call it "standard input". Its format is "sketch" for what `Sketch.save` or `SketchTable.save` wrote.
    """
    with tempfile.TemporaryDirectory(prefix="truthcal-") as folder:
        path = Path(folder) / "data"
        _copy(stream, path)
        with open(path, "rb") as file:
            head = file.read(1 << 12)
        if not head:
            raise ValueError(f"{NAME} is empty; pipe a file into it, as in `truthcal assess - < predictions.csv`.")
        ending = next((ending for magic, ending in _COMPRESSED.items() if head.startswith(magic)), "")
        source = Source(path.rename(path.with_name(f"data{ending}")), "text", {}, NAME)
        if ending:
            with said_of(source):
                head = beginning(source, 1 << 12)
        yield Source(source.path, _format(head, bool(ending)), {}, NAME)


def _copy(stream: BinaryIO, path: Path) -> None:
    with open(path, "xb") as file:
        try:
            shutil.copyfileobj(stream, file, 1 << 20)
            file.flush()
        except OSError as error:
            raise OSError(
                f"{NAME} could not be copied to {path.parent} ({error.strerror or error}). Too little room? Set TMPDIR "
                "to a folder with more, or name the file itself."
            ) from error


def _format(head: bytes, compressed: bool) -> str:
    """The format of data that begin so."""
    for magic, what in _STRANGE.items():
        if head.startswith(magic):
            raise ValueError(f"{NAME} is {what}.")
    found = next((format_ for magic, format_ in _FORMATS.items() if head.startswith(magic)), None)
    if found is None:
        return "JSON lines" if _JSON.match(head) else "CSV"
    if compressed:
        raise ValueError(f"{NAME} is a compressed {found} file; unpack it first, as in `gzip -dc`, and pipe that.")
    return found
