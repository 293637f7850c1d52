"""Output files: checked before the work starts, and written completely or not at all."""

import os
import sys
from pathlib import Path

from truthcal.cli.inputs import STDIN, sketches_in
from truthcal.cli.request import Request
from truthcal.core.file_format import write_atomically
from truthcal.io.files.find_files import find_sources

STDOUT = "-"


def refuse_unwritable(request: Request, path: str | None, *, may_be_input: bool = False) -> None:
    """Reject an output file that cannot be written, or that is an input, before the work starts."""
    if path is None or path == STDOUT:
        return
    target = Path(path)
    if not path:
        raise ValueError("the name of an output file is empty; give a name, or omit the option.")
    if not may_be_input and target.is_file():
        _refuse_input(request, target)
    if target.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; name a file in it.")
    folder = target.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}; create it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the folder {folder} is not writable; name another folder.")


def _refuse_input(request: Request, target: Path) -> None:
    """Reject an output file that is one of the input files."""
    paths = [Path(name) for name in sketches_in(request.files)]
    rows = [name for name in request.files if name != STDIN]
    if rows and not paths:
        paths = [source.path for source in find_sources(rows)]
    if any(path.samefile(target) for path in paths):
        raise ValueError(f"{target}: is an input and would be overwritten; choose another output file.")


def write_file(path: str, data: bytes) -> None:
    """Write an output file completely or not at all; `-` is stdout."""
    if path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    else:
        write_atomically(path, data)
