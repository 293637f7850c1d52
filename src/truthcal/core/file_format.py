"""Atomic writes, and the base of truthcal's binary file formats (magic, version, checksum)."""

import contextlib
import hashlib
import os
import secrets
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

_DIGEST_SIZE = hashlib.sha256().digest_size
# Magic bytes -> the class that reads the file.
READERS = {b"TRUTHCAL": "Sketch", b"TRUTHTAB": "SketchTable", b"TRUTHMUL": "MulticlassSketch"}


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to the file `path`. On any failure (full disk, interrupt) the previous file remains."""
    with open_atomically(path) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` at the end. On any failure the previous file remains."""
    if Path(path).exists() and not Path(path).is_file():  # a pipe or a device must be written to, not replaced
        with open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(scratch, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():  # keep its permissions
            os.chmod(scratch, stat.S_IMODE(target.stat().st_mode))
        os.replace(scratch, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(scratch)):
            # report the user's path, not the temporary one
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise


class BinaryFile:
    """Base of classes with a file format: versioned, checksummed, readable on every machine, without pickle.

    A file is a header (magic, version, numbers), a body whose size follows from these numbers, and a SHA-256 of both.
    """

    _MAGIC: bytes
    _NOUN: str
    _HEADERS: ClassVar[dict[int, struct.Struct]]  # of all versions that can be read

    __array_ufunc__ = None  # numpy must not add it elementwise

    def to_bytes(self) -> bytes:
        """Return the bytes of the file."""
        raise NotImplementedError

    @classmethod
    def _from_bytes(cls, data: bytes, name: str) -> Self:
        raise NotImplementedError

    def _sealed(self, version: int, numbers: tuple[int, ...], *parts: bytes) -> bytes:
        body = b"".join([self._HEADERS[version].pack(self._MAGIC, version, *numbers), *parts])
        return body + hashlib.sha256(body).digest()

    @classmethod
    def _opened(
        cls, data: bytes, name: str, body_sizes: Mapping[int, Callable[..., int]]
    ) -> tuple[int, list[int], memoryview]:
        """Verify the data and return the version, the numbers in the header and the body."""
        it_is = f"{name}: the {cls._NOUN} is"
        if data[: len(cls._MAGIC)] != cls._MAGIC:
            cure = f"; read it with {reader}.load" if (reader := READERS.get(bytes(data[:8]))) else ""
            raise ValueError(f"{name}: not a truthcal {cls._NOUN}{cure}.")
        version = int.from_bytes(data[len(cls._MAGIC) : len(cls._MAGIC) + 4], "little")
        header = cls._HEADERS.get(version, cls._HEADERS[min(cls._HEADERS)])
        if len(data) < header.size + _DIGEST_SIZE:
            raise ValueError(f"{it_is} truncated; copy or write it again.")
        if version not in cls._HEADERS:
            known = f"this truthcal reads versions up to {max(cls._HEADERS)}; upgrade truthcal."
            raise ValueError(f"{name}: a {cls._NOUN} of format version {version}, but {known}")
        _, _, *numbers = header.unpack_from(data)
        size = header.size + body_sizes[version](*numbers) + _DIGEST_SIZE
        if len(data) < size:
            raise ValueError(f"{it_is} truncated ({len(data)} of {size} bytes); copy or write it again.")
        body = memoryview(data)[:-_DIGEST_SIZE]
        if len(data) > size or hashlib.sha256(body).digest() != data[-_DIGEST_SIZE:]:
            raise ValueError(f"{it_is} corrupted (checksum mismatch); copy or write it again.")
        return version, numbers, body[header.size :]

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises
        ------
        ValueError
            If the data have another format or an unsupported version, or are truncated or corrupted.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"`data` must be bytes, as `to_bytes` returns them; got {type(data).__name__}.")
        return cls._from_bytes(bytes(data), "these bytes")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file atomically: if writing fails, the previous file remains."""
        write_atomically(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by `save`. Raises ValueError like `from_bytes`, with the name of the file."""
        with open(path, "rb") as file:
            magic = file.read(len(cls._MAGIC))  # do not read a wrong file, which may be larger than memory
            return cls._from_bytes(magic + file.read() if magic == cls._MAGIC else magic, str(path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the bytes of the file, checksum included."""
        return type(self).from_bytes, (self.to_bytes(),)
