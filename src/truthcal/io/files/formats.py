"""The file formats: one row each."""

import contextlib
import os
import re
from pathlib import Path

from truthcal.core.file_format import READERS
from truthcal.io.files.csv import preview_csv, read_csv
from truthcal.io.files.json import preview_json, read_json
from truthcal.io.files.parquet_arrow import preview_arrow, preview_parquet, read_arrow, read_parquet
from truthcal.io.files.source import SKETCH, Batches, FileFormat, Source

PARQUET = FileFormat("Parquet", (".parquet", ".pq"), (b"PAR1",), read_parquet, preview_parquet)
CSV = FileFormat("CSV", (".csv", ".tsv", ".tab", ".txt"), (), read_csv, preview_csv)
JSON = FileFormat("JSON lines", (".jsonl", ".ndjson", ".json"), (), read_json, preview_json)


def _refuse_log(source: Source, *_: object) -> Batches:
    raise ValueError(
        f"{source}: is a log of Inspect, which only the commands of truthcal read: truthcal assess {source}"
    )


INSPECT = FileFormat("Inspect log", (".eval",), (), _refuse_log, lambda source, named: (source, _refuse_log(source)))
_ARROW_EXTENSIONS, _ARROW_MAGIC = (".arrow", ".arrows", ".feather", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff")
_ARROW = FileFormat("Arrow", _ARROW_EXTENSIONS, _ARROW_MAGIC, read_arrow, preview_arrow)
FORMATS = (PARQUET, CSV, JSON, _ARROW, INSPECT)
EXTENSIONS = {extension: format_ for format_ in FORMATS for extension in format_.extensions}


# Compressions of text, by pyarrow's names: extensions, and first bytes (brotli has none).
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
_CODEC_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\{|\[\s*\{)")


def format_of_path(path: Path) -> tuple[FileFormat | None, str]:
    """Return the file format by the extension, None if it is unknown, and the codec of compressed text or ""."""
    codec = _CODECS.get(path.suffix.lower(), "")
    return EXTENSIONS.get((path.with_suffix("") if codec else path).suffix.lower()), codec


def codec_of_content(head: bytes) -> str:
    """Detect the format of compressed data by these first bytes: the codec; "" for other data."""
    return next((codec for magic, codec in _CODEC_MAGIC.items() if head.startswith(magic)), "")


def format_of_content(head: bytes) -> FileFormat:
    """Detect the file format of data that start with these bytes."""
    text = JSON if _JSON.match(head) else CSV
    return next((format_ for format_ in (*FORMATS, SKETCH) if head.startswith(format_.magic)), text)


def sketch_kind(path: str | os.PathLike[str]) -> str | None:
    """Detect the formats that truthcal writes, by the first bytes of a file: "Sketch", "SketchTable" or None."""
    if os.path.isfile(path):  # opening a named pipe could wait forever
        with contextlib.suppress(OSError), open(path, "rb") as file:  # the reader reports errors
            return READERS.get(file.read(8))
    return None
