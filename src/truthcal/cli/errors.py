"""Errors of the command line: messages of the library with flags in place of parameters."""

import dataclasses
import shlex
from collections.abc import Sequence

from truthcal.cli.request import Request
from truthcal.results.text import escape_control_characters

# Parameters of the library whose flag has another name.
_FLAGS = {
    "y_true": "--label",
    "y_proba": "--proba",
    "sample_weight": "--weight",
    "groups": "--group",
    "n_buckets": "--buckets",
    "rng": "--seed",
    "dialect": "--sql",
}
# Ways out of errors about rows, by the cause of the error; and the causes for which a command has no such option.
_WAYS_OUT = {
    "percent": "Or add --percent, which divides by 100.",
    "missing": "To leave out rows without a value and count them, add --missing drop.",
    "fractional": "To leave out rows with fractional outcomes (ties, partial resolution) and count them, add "
    "--fractional drop; `truthcal measures` accepts them.",
}
_WITHOUT_WAYS_OUT = {"watch": ("missing", "fractional")} | dict.fromkeys(("audit", "merge", "apply"), tuple(_WAYS_OUT))
_NOT_DUE = "Outcomes that are not known yet: --due names the column with the time at which they are."
# Characters of a text that are shown before the place of an error in it, and after.
_POINTED = 60
_FIELDS = {field.name for field in dataclasses.fields(Request)}


def error_text(error: BaseException, command: str = "") -> str:
    """Return the message of an error in one line, with flags in place of the library's parameters.

    If the command has an option that avoids the error, the message ends with it.
    """
    if isinstance(error, MemoryError) and not str(error):
        return "not enough memory. `truthcal sketch` needs little memory; sketch the files and assess the sketch."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}."
    parts = vars(error)
    text = parts["lines"][0] if "flags" in parts else str(error)  # other lines of an UnclearColumns are below
    if "around_role" in parts:  # built by core.frame_columns.require_columns
        start, role, end = parts["around_role"]
        text = f"{start}{role if role.startswith('--') else _flag(role)}{end}"
    if "parameter" in parts:  # built by core.checks.invalid
        name, *values = parts["fix"] or ("",)
        fix = " ".join([_flag(name), *(shlex.quote(str(value)) for value in values)])
        text = f"{parts['subject'] or _flag(parts['parameter'])} {parts['problem']}{f' {fix}.' if name else ''}"
    if command == "watch" and (parts.get("cause"), parts.get("parameter")) == ("missing", "y_true"):
        text = f"{text} {_NOT_DUE}"
    if parts.get("cause") in _WAYS_OUT and parts["cause"] not in _WITHOUT_WAYS_OUT.get(command, ()):
        text = f"{text} {_WAYS_OUT[parts['cause']]}"
    return " ".join(text.split()) or type(error).__name__


def lines_below(error: BaseException, arguments: Sequence[str] = ()) -> list[str]:
    """Return lines to print below an error: what to type, or the text that it is about, with a mark at the place."""
    if "flags" in vars(error):  # an UnclearColumns
        _, *lines = vars(error)["lines"]
        return [f"  {line}" for line in [*lines, *_command_to_type(vars(error)["flags"], arguments)]]
    text, at = vars(error).get("pointer", ("", 0))
    if not text:
        return []
    before, rest = (escape_control_characters(part) for part in (text[:at], text[at:]))
    cut = max(len(before) - _POINTED, 0)
    start = "\N{HORIZONTAL ELLIPSIS}" if cut else ""
    return [f"  {start}{before[cut:]}{rest[:_POINTED]}", f"  {' ' * (len(start) + len(before) - cut)}^"]


def _command_to_type(flags: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the user's command with the flags that answer a question, if there are any."""
    if not flags:
        return []
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [shlex.join(arguments[:end]), *flags, shlex.join(arguments[end:])]
    return [f"For example: truthcal {escape_control_characters(' '.join(filter(None, words)))}"]


def _flag(parameter: str) -> str:
    """Return the flag that sets a parameter, for an error message."""
    flag = f"--{parameter.replace('_', '-')}" if parameter in _FIELDS else f"`{parameter}`"
    return _FLAGS.get(parameter, flag)
