"""What readers of all formats share."""

import contextlib
import csv
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from truthcal.io.column_roles import ColumnRoles
from truthcal.io.files.sources import COMPRESSED, Source

# Bytes of text parsed at a time. Columns are judged by the first of them.
BLOCK = 1 << 22
_TO_UTF8 = "save it as UTF-8: in a spreadsheet, or by `iconv -f latin1 -t utf-8` if it is Latin-1"


class Checksum(Protocol):
    """An object of hashlib, such as ``hashlib.sha256()``."""

    def update(self, data: Any, /) -> None:
        """Add bytes."""


def arrow() -> Any:
    """pyarrow, which reads all files."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError("reading files needs pyarrow: pip install 'truthcal[files]'.") from None
    return pyarrow


@contextlib.contextmanager
def said_of(source: Source) -> Iterator[None]:
    """Whatever is wrong with a file is said with its name."""
    try:
        yield
    except (
        arrow().ArrowInvalid,
        arrow().ArrowTypeError,
        arrow().ArrowNotImplementedError,
        UnicodeError,
        csv.Error,
    ) as error:
        raise ValueError(f"{source}: could not be read as {source.format} ({_reason(error)}).") from error
    except (OSError, MemoryError) as error:  # a damaged file is an OSError, too, or asks for more memory than there is
        if str(source) in str(error):
            raise
        kind = type(error) if isinstance(error, OSError) else MemoryError
        raise kind(f"{source}: could not be read as {source.format} ({_reason(error)}).") from error


def _reason(error: BaseException) -> str:
    reason = " ".join(str(error).split())[:300].rstrip(".")
    if "straddl" in reason:
        return f"a line is longer than {BLOCK:,} bytes, or a quote is opened and never closed: {reason}"
    if "invalid UTF8" in reason:
        return f"it is no text in UTF-8; {_TO_UTF8}: {reason}"
    return reason


def refuse_other_encodings(source: Source, text: bytes, names: str = "") -> None:
    """Text, of which these are the first bytes, must be UTF-8; and so must names of columns, decoded with `replace`."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        cure = "in a spreadsheet, or by `iconv -f utf-16 -t utf-8`"
        raise ValueError(
            f"{source}: could not be read as {source.format} (it is text in UTF-16). Save it as UTF-8: {cure}."
        )
    if b"\0" in text:
        raise ValueError(f"{source}: could not be read as {source.format} (it is no text in UTF-8).")
    if "\N{REPLACEMENT CHARACTER}" in names:
        raise ValueError(f"{source}: the names of its columns are no text in UTF-8; {_TO_UTF8}.")


def columns_in(source: Source, roles: ColumnRoles, there: Iterable[str]) -> list[str]:
    """Columns to read from the file itself, which has those `there`; others that make groups are in its path."""
    names = set(there)
    in_path = {name for name in source.partition if name not in names}
    return list(dict.fromkeys(name for role, name in roles if role != "by" or name not in in_path))


def refuse_missing(source: Source, roles: ColumnRoles, there: Iterable[str], where: str | None = None) -> None:
    """Refuse names that are neither in the file nor in its path."""
    names = list(there)
    in_path = [name for name in roles.by if name in source.partition and name not in names]
    roles.require_columns([*names, *in_path], where or str(source))


def texts_of(roles: ColumnRoles) -> set[str]:
    """Columns of files of text that are told apart by their text: groups, and labels if the positive one is text."""
    numbers = {name for role, name in roles if role not in ("by", "y_true")}
    labels = {roles.y_true}
    texts = {*roles.by, *labels} if isinstance(roles.pos_label, str) else {*roles.by} - labels
    return texts - numbers


def large_labels(roles: ColumnRoles) -> Any:
    """The type that tells a positive label from the next whole number, where float64 does not. None if it does."""
    label = roles.pos_label
    if isinstance(label, str) or label is None or not 2**53 <= abs(label) < 2**64 or label < -(2**63):
        return None
    return arrow().int64() if label < 2**63 else arrow().uint64()


def share(raw: Any, size: int) -> float:
    """How much of a file is read."""
    try:
        return float(raw.tell() / size)
    except (ValueError, OSError):  # whoever reads ahead has come to the end and closed it
        return 1.0


def beginning(source: Source, size: int) -> bytes:
    """So many bytes of the text."""
    with arrow().OSFile(str(source.path)) as raw:
        text: bytes = decompressed(source, raw).read(size)
    return text


def decompressed(source: Source, raw: Any) -> Any:
    """The text itself, if the name says that the file is compressed."""
    name = source.path.suffix.lower()
    if name not in COMPRESSED:
        return raw
    return arrow().CompressedInputStream(raw, {".gz": "gzip", ".zst": "zstd", ".br": "brotli"}.get(name, name[1:]))
