"""Where words go: answers to standard output, messages to standard error, colour only for a person."""

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np

from truthcal import __version__
from truthcal.cli.main import escape_control_characters
from truthcal.core.file_format import write_atomically

# The number of a schema changes when a field is removed or changes its meaning; docs/guide/cli.md describes it.
SCHEMA = 1
STDOUT = "-"
_COLOURS = {"good": "\x1b[1;32m", "bad": "\x1b[1;31m", "unclear": "\x1b[1;33m"}
_PLAIN = "\x1b[0m"
_MOODS = {"calibrated": "good", "too few rows": "unclear", "too good": "unclear"}


def write_file(path: str, data: bytes) -> None:
    """Write a file, whole or not at all; `-` is standard output."""
    if path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    else:
        write_atomically(path, data)


def out(text: str) -> None:
    """Print an answer."""
    sys.stdout.write(f"{text}\n")


def say(args: argparse.Namespace, message: str) -> None:
    """Print a message, unless nobody wants any."""
    if not args.quiet:
        sys.stderr.write(f"truthcal: {escape_control_characters(message)}\n")


def out_json(command: str, content: Mapping[str, Any]) -> None:
    """Print JSON of a documented schema; a number that is not known is null."""
    whole = {"schema": f"truthcal/{command}/{SCHEMA}", "version": __version__, **content}
    out(json.dumps(_plain(whole), indent=2, allow_nan=False))


def coloured(text: str, kind: str) -> str:
    """A verdict with its first line in the colour of its kind, if a person is watching."""
    return _painted(text, _MOODS.get(kind, "bad"))


def painted_status(text: str, status: str) -> str:
    """The result of `check` likewise."""
    return _painted(text, {"pass": "good", "fail": "bad"}.get(status, "unclear"))


def _painted(text: str, mood: str) -> str:
    if not _wants_colour(sys.stdout):
        return text
    first, line, rest = text.partition("\n")
    return f"{_COLOURS[mood]}{first}{_PLAIN}{line}{rest}"


def _wants_colour(stream: TextIO) -> bool:
    """Whether it is a terminal that shows colours, and nobody asked for none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
