"""Where words go: answers to standard output, messages to standard error, colour only for a person."""

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from truthcal import __version__
from truthcal.core.file_format import write_atomically
from truthcal.results.text import escape_control_characters, mood, to_plain

# The number of a schema changes when a field is removed or changes its meaning; docs/guide/cli.md describes it.
SCHEMA = 1
STDOUT = "-"
_COLOURS = {"good": "\x1b[1;32m", "bad": "\x1b[1;31m", "unsure": "\x1b[1;33m", "odd": "\x1b[1;33m"}
_PLAIN = "\x1b[0m"


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
    out(json.dumps(_null(to_plain(whole)), indent=2, allow_nan=False))


def coloured(text: str, kind: str) -> str:
    """A verdict with its first line in the colour of its kind, if a person is watching."""
    return _painted(text, mood(kind))


def painted_status(text: str, status: str) -> str:
    """The result of `check` likewise."""
    return _painted(text, {"pass": "good", "fail": "bad"}.get(status, "unsure"))


def _painted(text: str, mood: str) -> str:
    if not _wants_colour(sys.stdout):
        return text
    first, line, rest = text.partition("\n")
    return f"{_COLOURS[mood]}{first}{_PLAIN}{line}{rest}"


def _wants_colour(stream: TextIO) -> bool:
    """Whether it is a terminal that shows colours, and nobody asked for none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _null(value: Any) -> Any:
    """Replace nan and infinity, which JSON has not, by None."""
    if isinstance(value, dict):
        return {key: _null(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
