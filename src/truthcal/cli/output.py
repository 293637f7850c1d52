"""Output: results to stdout, messages to stderr, colour only on a terminal."""

import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from truthcal import __version__
from truthcal.cli.request import Request
from truthcal.core.file_format import write_atomically
from truthcal.results.text import escape_control_characters, mood, to_plain

# Increased when a field is removed or changes its meaning; docs/guide/cli.md describes the schema.
SCHEMA = 1
STDOUT = "-"
_COLOURS = {"good": "\x1b[1;32m", "bad": "\x1b[1;31m", "unsure": "\x1b[1;33m", "odd": "\x1b[1;33m"}
_RESET = "\x1b[0m"
_STATUS_MOODS = {"pass": "good", "fail": "bad", "unclear": "unsure"}


def write_file(path: str, data: bytes) -> None:
    """Write a file completely or not at all; `-` is stdout."""
    if path == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    else:
        write_atomically(path, data)


def print_result(text: str) -> None:
    """Print a result to stdout."""
    sys.stdout.write(f"{text}\n")


def print_message(request: Request, message: str) -> None:
    """Print a message to stderr, unless the user asked for none."""
    if not request.quiet:
        sys.stderr.write(f"truthcal: {escape_control_characters(message)}\n")


def print_json(command: str, content: Mapping[str, Any]) -> None:
    """Print JSON of the documented schema; an unknown number is null."""
    whole = {"schema": f"truthcal/{command}/{SCHEMA}", "version": __version__, **content}
    print_result(json.dumps(_null_unknown(to_plain(whole)), indent=2, allow_nan=False))


def print_formatted(request: Request, result: Any, content: Mapping[str, Any]) -> None:
    """Print a result in the format that was asked for: text, Markdown, or `content` as JSON."""
    if request.format == "json":
        print_json(request.command, content)
    else:
        print_result(result.to_markdown() if request.format == "markdown" else str(result))


def coloured(text: str, kind: str) -> str:
    """Colour the first line by the kind of an assessment or the status of a gate, if stdout is a terminal."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # no-color.org
        return text
    first, newline, rest = text.partition("\n")
    return f"{_COLOURS[_STATUS_MOODS.get(kind) or mood(kind)]}{first}{_RESET}{newline}{rest}"


def _null_unknown(value: Any) -> Any:
    """Replace nan and infinity by None."""
    if isinstance(value, dict):
        return {key: _null_unknown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_null_unknown(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
