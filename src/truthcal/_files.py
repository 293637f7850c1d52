"""Writing a file whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Put `data` at `path`. On any failure (full disk, interrupt) what stood there before still stands."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or a device must be written to, not replaced
        target.write_bytes(data)
        return
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(scratch, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        if isinstance(error, OSError):  # name the file the user named, not the scratch
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise
