"""The entry point: arguments in, text and an exit status out.

Results go to stdout, messages to stderr. Exit status: 0 done (`check`: pass), 1 `check` failed, 2 wrong usage or bad
data, 3 `check` has too little data to tell, 130 interrupted, 141 the reader of stdout is gone, 143 terminated.
"""

import atexit
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

from truthcal.cli.command_table import COMMANDS
from truthcal.cli.errors import error_text, lines_below
from truthcal.cli.output import announce_compiling, discard_output, print_error, print_warnings_as_messages
from truthcal.cli.parser import build_parser, parse_arguments
from truthcal.cli.request import Request

_WRONG, _TOO_LITTLE, _UNWRITTEN, _INTERRUPTED, _BROKEN_PIPE, _TERMINATED = 2, 3, 120, 130, 141, 143


def run() -> NoReturn:
    """Run the command line and end the process: the entry point of the program.

    The interpreter is not shut down. Threads of pyarrow that read ahead of an error may still need the GIL, to call the
    Python file they read or to release it. While the interpreter shuts down, Python ends such a thread within a C++
    destructor, which aborts the process: "terminate called without an active exception", exit status 134 (2 of 49 runs
    on a busy machine). The functions of `atexit` are called, so that temporary files are removed.
    """
    try:
        status = main()
    except SystemExit as end:  # help, wrong usage, SIGTERM
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or _UNWRITTEN
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Matrices are small: threads of BLAS do not make them faster, and take a hundred times as long on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that cannot be encoded are escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, _exit_on_signal)
        if not arguments:
            build_parser().print_help(sys.stderr)
            return _WRONG
        _refuse_unknown_command(arguments[0])
        return _run_command(parse_arguments(arguments))
    except BrokenPipeError:
        discard_output()
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        print_error("interrupted; no file was left half-written.")
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
    print_error(f"{word!r} is not a command. {cure}")
    sys.exit(_WRONG)


def _exit_on_signal(*_: Any) -> NoReturn:
    """On SIGTERM, exit so that temporary files are removed."""
    sys.exit(_TERMINATED)


def _run_command(request: Request) -> int:
    """Run a command; print an error as one line, or as a traceback with --debug."""
    try:
        with warnings.catch_warnings():
            print_warnings_as_messages(request.quiet)
            announce_compiling(request)
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
            command = "apply" if request.apply is not None else request.command
            print_error(error_text(error, command), lines_below(error, request.line))
        else:
            cause = f"{type(error).__name__}: {error_text(error)}"
            print_error(f"internal error ({cause}); run again with --debug and report the traceback.")
        is_too_little = request.command == "check" and vars(error).get("cause") == "too few groups"
        return _TOO_LITTLE if is_too_little else _WRONG
    return status
