"""Text files: opened once, decompressed, with the beginning available before the rest is read."""

import io
from collections.abc import Callable
from types import TracebackType
from typing import Any

from truthcal.core.file_format import READERS
from truthcal.io.column_roles import KEY_ROLES, ColumnRoles
from truthcal.io.files.source import CONVERT_TO_UTF8, Checksum, Source, arrow
from truthcal.io.files.unsupported import advice_for_content

UTF8_MARK = b"\xef\xbb\xbf"  # the byte order mark that Excel writes


class _PythonFile(io.RawIOBase):
    """A file object for pyarrow, which also calls `close`."""

    def readable(self) -> bool:
        return True


class TextInput(_PythonFile):
    """The decompressed bytes of a text file, as a file object for pyarrow.

    `head` returns the first bytes; `read` still starts at the first byte, so that the file is opened only once. The
    `with` block closes the file, after all of its bytes have been added to the `checksum`.
    """

    def __init__(self, source: Source, checksum: Checksum | None = None) -> None:
        self._size = source.path.stat().st_size
        self._raw = arrow().OSFile(str(source.path))
        self._stream = self._raw if checksum is None else _ChecksumStream(self._raw, checksum)
        self._rest = self._stream
        if source.compression:
            stream = self._raw if checksum is None else arrow().PythonFile(self._stream, mode="r")
            self._stream = arrow().CompressedInputStream(stream, source.compression)
        self._head, self._position = b"", 0
        self.on_read: Callable[[bytes], None] | None = None  # called with all bytes that `read` returns

    def head(self, size: int) -> bytes:
        """Return the first bytes: `size` of them, or all if there are fewer."""
        if len(self._head) < size:
            self._head += self._stream.read(size - len(self._head))
        return self._head[:size]

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        text = self._head[self._position : self._position + size]
        self._position += len(text)
        if len(text) < size:
            text += self._stream.read(size - len(text))
        if self.on_read is not None:
            self.on_read(text)
        return text

    def share(self) -> float:
        """Return the share of the file that has been read."""
        return min(float(self._raw.tell() / self._size), 1.0) if self._size else 1.0

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        try:
            while kind is None and self._rest is not self._raw and self._rest.read(1 << 20):
                pass
        finally:
            self._raw.close()


class _ChecksumStream(_PythonFile):
    """A file object that adds the bytes it reads to a checksum."""

    def __init__(self, raw: Any, checksum: Checksum) -> None:
        self._raw, self._checksum = raw, checksum

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._raw.read(size)
        self._checksum.update(data)
        return data


def is_sketch(text: TextInput) -> bool:
    """Whether a text input is a sketch of truthcal, whatever its name says."""
    return text.head(8) in READERS


def require_utf8(source: Source, text: bytes, names: str = "") -> None:
    """Raise if a text input with these first bytes, or names decoded with ``errors="replace"``, are not UTF-8."""
    problem = f"{source}: could not be read as {source.format.name}"
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(
            f"{problem} (it is UTF-16 text). Save it as UTF-8: in a spreadsheet, or with `iconv -f utf-16 -t utf-8`."
        )
    if advice := advice_for_content(text):
        raise ValueError(f"{problem}, whatever its name says: it is {advice}.")
    if b"\0" in text:
        raise ValueError(f"{problem} (it is not UTF-8 text).")
    if "\N{REPLACEMENT CHARACTER}" in names:
        raise ValueError(f"{source}: the column names are not UTF-8 text; {CONVERT_TO_UTF8}.")


def text_columns(roles: ColumnRoles) -> set[str]:
    """Return the columns of a text input to read as text: groups, and labels if `pos_label` is text."""
    texts = {*roles.keys, roles.y_true} if isinstance(roles.pos_label, str) else {*roles.keys} - {roles.y_true}
    return texts - {name for role, name in roles if role not in (*KEY_ROLES, "y_true")}


def large_label_type(roles: ColumnRoles) -> Any:
    """Return the integer type to read labels of a text input if float64 is too coarse for `pos_label`; else None."""
    label = roles.pos_label
    if isinstance(label, str) or label is None or not 2**53 <= abs(label) < 2**64 or label < -(2**63):
        return None
    return arrow().int64() if label < 2**63 else arrow().uint64()
