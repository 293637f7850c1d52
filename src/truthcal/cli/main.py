"""The command line: arguments in, words and exit codes out.

Data go to standard output, messages to standard error. Exit status: 0 done (`check`: pass), 1 `check` failed, 2 wrong
use or bad data, 3 `check` has too little data to tell, 130 interrupted, 141 nobody reads the output any more, 143 asked
to end.
"""

import argparse
import contextlib
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

from truthcal.cli.parser import parser
from truthcal.results.text import escape_control_characters

# Command -> module that runs it, loaded only then: help must not wait for numpy.
_HOME = {
    "assess": "commands.assess",
    "test": "commands.test",
    "compare": "commands.compare",
    "measures": "commands.test",
    "audit": "commands.test",
    "sketch": "commands.sketch",
    "merge": "commands.sketch",
    "report": "commands.assess",
    "check": "commands.check",
    "demo": "commands.demo",
    "completion": "commands.completion",
}
# What errors of the library call an argument -> what it is called here.
_FLAGS = {
    "`pos_label`": "--pos-label",
    "pos_label=": "--pos-label ",
    "`n_buckets`": "--buckets",
    "n_buckets=": "--buckets ",
    "`by`": "--by",
    "The order is (y_true, y_proba), outcomes first.": "Swap --label and --proba.",
}
_WRONG, _INTERRUPTED, _NOBODY_READS, _ENDED = 2, 130, 141, 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # what cannot be encoded must not end the program
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _end)
        if not arguments:
            parser().print_help(sys.stderr)
            return _WRONG
        _refuse_no_command(arguments[0])
        args = parser().parse_args(arguments)
        args.line = arguments
        return _run(args)
    except BrokenPipeError:
        _forget_output()
        return _NOBODY_READS
    except KeyboardInterrupt:
        _say("interrupted; nothing was left half-written.")
        return _INTERRUPTED


def _refuse_no_command(word: str) -> None:
    """Say what may have been meant by a first word that is no command."""
    if word in _HOME or word.startswith("-"):
        return
    close = difflib.get_close_matches(word, _HOME, n=1)
    meant = f"truthcal {close[0]} ..." if close else f"truthcal assess {shlex.quote(word)}"
    cure = f"Did you mean: {meant}" if close or os.path.exists(word) else "See: truthcal --help"
    _say(f"{word!r} is not a command. {cure}")
    sys.exit(_WRONG)


def _end(*_: Any) -> NoReturn:
    """Whoever asks the program to end wants its scratch files gone, too."""
    sys.exit(_ENDED)


def _run(args: argparse.Namespace) -> int:
    """Run a command; whatever is wrong is one line, unless the traceback is wanted."""
    try:
        with warnings.catch_warnings():
            _show_warnings_in_a_line(args.quiet)
            module = importlib.import_module(f"truthcal.cli.{_HOME[args.command]}")
            status: int = getattr(module, args.command)(args)
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if args.debug:
            traceback.print_exc()
        else:
            _say(_in_one_line(error))
        return _WRONG
    except Exception as error:
        if args.debug:
            traceback.print_exc()
            return _WRONG
        what = f"{type(error).__name__}: {_in_one_line(error)}"
        _say(f"something went wrong inside truthcal ({what}); run again with --debug and report what it prints.")
        return _WRONG
    return status


def _in_one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError) and not str(error):
        return "not enough memory. `truthcal sketch` reduces files in little memory; assess that."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}."
    words = " ".join(str(error).split()) or type(error).__name__
    for name, flag in _FLAGS.items():
        words = words.replace(name, flag)
    return words


def _say(message: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody reads that either
        sys.stderr.write(f"truthcal: {escape_control_characters(message)}\n")


def _show_warnings_in_a_line(quiet: bool) -> None:
    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if not quiet:
            _say(f"warning: {' '.join(str(message).split())}")

    warnings.showwarning = show


def _forget_output() -> None:
    """So that Python does not complain about what it cannot write when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
