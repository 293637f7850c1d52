"""Output: results to stdout, messages to stderr, colour only on a terminal."""

import contextlib
import json
import math
import os
import re
import shutil
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from truthcal import __version__
from truthcal.cli.request import Request
from truthcal.core.progress import watched_stderr
from truthcal.kernels import notice
from truthcal.results.base import to_plain
from truthcal.results.column_width import wrap_lines
from truthcal.results.text import escape_control_characters, escape_markdown, mood

# Increased when a field is removed or changes its meaning; docs/guide/cli.md describes the schema.
SCHEMA = 1
_COLOURS = {"good": "\x1b[1;32m", "bad": "\x1b[1;31m", "unsure": "\x1b[1;33m", "odd": "\x1b[1;33m"}
_RESET = "\x1b[0m"
# Control characters other than tabs and the ends of lines; codes of colours are matched as a group, to keep them.
_CONTROL = re.compile(f"({'|'.join(map(re.escape, [*_COLOURS.values(), _RESET]))})|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Columns of notes, and the narrowest terminal that text is fitted to.
_NOTE_WIDTH, _NARROWEST = 100, 40
_STATUS_MOODS = {"pass": "good", "fail": "bad", "too little data": "unsure"}


def print_result(text: str) -> None:
    """Print a result for people to stdout. Control characters are escaped: names of columns may contain any."""
    print_exactly(_CONTROL.sub(lambda match: match[1] or repr(match[0])[1:-1], text))


def print_exactly(text: str) -> None:
    """Print a result for programs to stdout: JSON, SQL, or the name of a file."""
    sys.stdout.write(f"{text}\n")


def print_message(request: Request, message: str) -> None:
    """Print a message to stderr, unless the user asked for none."""
    if not request.quiet:
        sys.stderr.write(f"{_wrapped_for_stderr(f'truthcal: {escape_control_characters(message)}')}\n")


def announce_compiling(request: Request) -> None:
    """From now on, print a message on a terminal before code is compiled, once: otherwise a long wait has no reason."""

    def announce() -> None:
        notice.on_compile = None
        print_message(request, "compiling (first run only; `truthcal warmup` does it in advance) ...")

    notice.on_compile = announce if watched_stderr() is not None and request.command != "warmup" else None


def print_error(message: str, lines: Sequence[str] = ()) -> None:
    """Print an error or a warning to stderr, and more lines below it."""
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed, too
        first = _wrapped_for_stderr(f"truthcal: {escape_control_characters(message)}")
        # A command to copy stays on one line, and so do a text and the mark below it.
        marked = bool(lines) and lines[-1].endswith("^")
        others = [line if marked or "For example: truthcal" in line else _wrapped_for_stderr(line) for line in lines]
        sys.stderr.write("\n".join([first, *others, ""]))


def _wrapped_for_stderr(text: str) -> str:
    """Wrap a message at spaces if it is shown on a terminal, which would break words; else leave it on one line."""
    if not sys.stderr.isatty():
        return text
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    return wrap_lines(text, width, "" if text.startswith(" ") else "  ")


def print_warnings_as_messages(quiet: bool) -> None:
    """From now on, print Python's warnings to stderr in one line each, unless `quiet`."""

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if not quiet:
            print_error(f"warning: {' '.join(str(message).split())}")

    warnings.showwarning = show


def discard_output() -> None:
    """Discard all further output to stdout, so that Python does not fail to flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(command: str, content: Mapping[str, Any]) -> None:
    """Print JSON of the documented schema; an unknown number is null."""
    whole = {"schema": f"truthcal/{command}/{SCHEMA}", "version": __version__, **content}
    print_exactly(json.dumps(_null_unknown(to_plain(whole)), indent=2, allow_nan=False))


def as_rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Convert columns of equal length to one dict for each row, to print them as JSON."""
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def print_formatted(request: Request, result: Any, content: Mapping[str, Any]) -> None:
    """Print a result in the format that was asked for: text, Markdown, or `content` as JSON."""
    if request.format == "json":
        print_json(request.command, content)
        return
    print_result(result.to_markdown() if request.format == "markdown" else result.to_text(terminal_width()))
    print_notes(request, content["input"]["notes"])


def print_notes(request: Request, notes: Sequence[str]) -> None:
    """Print notes about the input below a result, as text or Markdown; nothing if there are none."""
    if notes and request.format == "markdown":
        print_result("\n" + notes_in_markdown(notes))
    elif notes:
        width = min(_NOTE_WIDTH, terminal_width() or _NOTE_WIDTH)
        lines = [wrap_lines(escape_control_characters(note), width, "  ") for note in notes]
        print_result("\n" + "\n".join(lines))


def notes_in_markdown(notes: Sequence[str]) -> str:
    """Format notes about the input as a list in Markdown."""
    return "\n".join(f"- {escape_markdown(note)}" for note in notes)


def terminal_width() -> int | None:
    """Return the number of columns of the terminal that shows the results; None if stdout is a file or a pipe."""
    return max(shutil.get_terminal_size().columns, _NARROWEST) if sys.stdout.isatty() else None


def coloured(text: str, kind: str, heading: str) -> str:
    """Colour the first line of a heading by the kind of an assessment or the status of a gate, on a terminal.

    `text` starts with the heading, wrapped to the width of the terminal.
    """
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # no-color.org
        return text
    end = len(wrap_lines(heading.partition("\n")[0], terminal_width()))
    return f"{_COLOURS[_STATUS_MOODS.get(kind) or mood(kind)]}{text[:end]}{_RESET}{text[end:]}"


def _null_unknown(value: Any) -> Any:
    """Replace nan and infinity in JSON output by None."""
    if isinstance(value, dict):
        return {key: _null_unknown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_null_unknown(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
