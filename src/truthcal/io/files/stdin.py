"""Standard input as a temporary file, with its format detected from its content."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from truthcal.io.files.formats import CSV, codec_of_content, format_of_content
from truthcal.io.files.source import FileFormat, Source, errors_naming
from truthcal.io.files.text_input import TextInput
from truthcal.io.files.unsupported import advice_for_content

NAME = "standard input"


@contextlib.contextmanager
def spool_stdin(stream: BinaryIO) -> Iterator[Source]:
    """Copy standard input (any format, compressed text or a sketch) to a temporary file, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="truthcal-") as folder:
        path = Path(folder) / "data"
        _copy_stdin(stream, path)
        with open(path, "rb") as file:
            head = file.read(1 << 12)
        if not head:
            raise ValueError(f"{NAME} is empty; pipe a file into it, as in `truthcal assess - < predictions.csv`.")
        if codec := codec_of_content(head):
            compressed = Source(path, CSV, codec, name=NAME)
            with errors_naming(compressed), TextInput(compressed) as text:
                head = text.head(1 << 12)
        yield Source(path, _stdin_format(head, bool(codec)), codec, name=NAME)


def _copy_stdin(stream: BinaryIO, path: Path) -> None:
    with open(path, "xb") as file:
        try:
            shutil.copyfileobj(stream, file, 1 << 20)
            file.flush()
        except OSError as error:
            problem = f"{NAME} could not be copied to {path.parent} ({error.strerror or error}). Is the disk full?"
            cure = "Set TMPDIR to a folder with more space, or name the file itself."
            raise OSError(f"{problem} {cure}") from error


def _stdin_format(head: bytes, compressed: bool) -> FileFormat:
    if advice := advice_for_content(head):
        raise ValueError(f"{NAME} is {advice}.")
    format_ = format_of_content(head)
    if compressed and format_.magic:
        raise ValueError(f"{NAME} is a compressed {format_.name} file; decompress it first, e.g. with `gzip -dc`.")
    return format_
