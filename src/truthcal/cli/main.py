"""The entry point: arguments in, text and an exit status out.

Results go to stdout, messages to stderr. Exit status: 0 done (`check`: pass), 1 `check` failed, 2 wrong usage or bad
data, 3 `check` has too little data to tell, 130 interrupted, 141 the reader of stdout is gone, 143 terminated.
"""

import contextlib
import dataclasses
import difflib
import importlib
import io
import os
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from truthcal.cli.parser import COMMANDS, build_parser, parse
from truthcal.cli.request import Request
from truthcal.results.text import escape_control_characters

_WRONG, _INTERRUPTED, _BROKEN_PIPE, _TERMINATED = 2, 130, 141, 143
# Parameters of the library whose flag has another name.
_FLAGS = {
    "y_true": "--label",
    "y_proba": "--proba",
    "sample_weight": "--weight",
    "n_buckets": "--buckets",
    "rng": "--seed",
}
_FIELDS = {field.name for field in dataclasses.fields(Request)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that cannot be encoded are escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _exit_on_signal)
        if not arguments:
            build_parser().print_help(sys.stderr)
            return _WRONG
        _refuse_unknown_command(arguments[0])
        return _run(parse(arguments))
    except BrokenPipeError:
        _discard_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        _print_message("interrupted; no file was left half-written.")
        return _INTERRUPTED


def _refuse_unknown_command(word: str) -> None:
    """Suggest a command if the first word is not one."""
    names = [command.name for command in COMMANDS]
    if word in names or word.startswith("-"):
        return
    close = difflib.get_close_matches(word, names, n=1)
    if close or os.path.exists(word):
        cure = f"Did you mean: truthcal {f'{close[0]} ...' if close else f'assess {shlex.quote(word)}'}"
    else:
        cure = "See: truthcal --help"
    _print_message(f"{word!r} is not a command. {cure}")
    sys.exit(_WRONG)


def _exit_on_signal(*_: Any) -> NoReturn:
    """On SIGTERM, exit so that temporary files are removed."""
    sys.exit(_TERMINATED)


def _run(request: Request) -> int:
    """Run a command; print an error as one line, or as a traceback with --debug."""
    try:
        with warnings.catch_warnings():
            _print_warnings_as_messages(request.quiet)
            # Loaded only now: help must not wait for numpy.
            module = importlib.import_module(f"truthcal.cli.commands.{request.command}")
            status: int = module.run(request)
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as error:
        if request.debug:
            traceback.print_exc()
        elif isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
            _print_message(error_text(error))
        else:
            cause = f"{type(error).__name__}: {error_text(error)}"
            _print_message(f"internal error ({cause}); run again with --debug and report the traceback.")
        return _WRONG
    return status


def error_text(error: BaseException) -> str:
    """Return the message of an error in one line, with flags in place of the library's parameters."""
    if isinstance(error, MemoryError) and not str(error):
        return "not enough memory. `truthcal sketch` needs little memory; sketch the files and assess the sketch."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}."
    text = str(error)
    parts = vars(error)
    if "parameter" in parts:  # built by core.checks.invalid
        name, *values = parts["fix"] or ("",)
        fix = " ".join([_flag(name), *(shlex.quote(str(value)) for value in values)])
        text = f"{parts['subject'] or _flag(parts['parameter'])} {parts['problem']}{f' {fix}.' if name else ''}"
    return " ".join(text.split()) or type(error).__name__


def _flag(parameter: str) -> str:
    flag = f"--{parameter.replace('_', '-')}" if parameter in _FIELDS else f"`{parameter}`"
    return _FLAGS.get(parameter, flag)


def _print_message(message: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # stderr may be closed, too
        sys.stderr.write(f"truthcal: {escape_control_characters(message)}\n")


def _print_warnings_as_messages(quiet: bool) -> None:
    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if not quiet:
            _print_message(f"warning: {' '.join(str(message).split())}")

    warnings.showwarning = show


def _discard_output() -> None:
    """Redirect stdout to the null device, so that Python does not fail to flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
