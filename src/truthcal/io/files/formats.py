"""The file formats: one row each."""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from truthcal.core.file_format import READERS
from truthcal.io.files.batches import preview_arrow, preview_parquet, read_arrow, read_parquet
from truthcal.io.files.csv import preview_csv, read_csv
from truthcal.io.files.json import preview_json, read_json
from truthcal.io.files.source import SKETCH, FileFormat

PARQUET = FileFormat("Parquet", (".parquet", ".pq"), (b"PAR1",), read_parquet, preview_parquet)
CSV = FileFormat("CSV", (".csv", ".tsv", ".tab", ".txt"), (), read_csv, preview_csv)
JSON = FileFormat("JSON lines", (".jsonl", ".ndjson", ".json"), (), read_json, preview_json)
ARROW = FileFormat(
    "Arrow", (".arrow", ".arrows", ".feather", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff"), read_arrow, preview_arrow
)
FORMATS = (PARQUET, CSV, JSON, ARROW)
EXTENSIONS = {extension: format_ for format_ in FORMATS for extension in format_.extensions}


@dataclass(frozen=True, slots=True)
class Compression:
    """A compression of text files; `codec` is pyarrow's name for it."""

    codec: str
    extension: str
    magic: bytes | None


COMPRESSIONS = (
    Compression("gzip", ".gz", b"\x1f\x8b"),
    Compression("bz2", ".bz2", b"BZh"),
    Compression("zstd", ".zst", b"\x28\xb5\x2f\xfd"),
    Compression("lz4", ".lz4", b"\x04\x22\x4d\x18"),
    Compression("brotli", ".br", None),
)

_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*\{)")


def format_of_path(path: Path) -> tuple[FileFormat | None, str]:
    """Return the format by the extension, None if it is unknown, and the codec of compressed text or ""."""
    compression = next((c for c in COMPRESSIONS if c.extension == path.suffix.lower()), None)
    extension = (path if compression is None else path.with_suffix("")).suffix.lower()
    return EXTENSIONS.get(extension), "" if compression is None else compression.codec


def format_of_content(head: bytes) -> FileFormat:
    """Return the format of data that start with these bytes."""
    for format_ in (*FORMATS, SKETCH):
        if head.startswith(format_.magic):
            return format_
    return JSON if _JSON.match(head) else CSV


def sketch_kind(path: str | os.PathLike[str]) -> str | None:
    """Return "Sketch" or "SketchTable" if truthcal has written this file, by its first bytes; else None."""
    if os.path.isfile(path):  # opening a named pipe could wait forever
        with contextlib.suppress(OSError), open(path, "rb") as file:  # the reader reports errors
            return READERS.get(file.read(8))
    return None
