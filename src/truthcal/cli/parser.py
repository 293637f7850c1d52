"""The parser: arguments of every command, with their help and examples. Imports nothing heavy, so that help is fast."""

import argparse
import difflib
from collections.abc import Sequence
from typing import Any, NoReturn

from truthcal import __version__
from truthcal.cli.command_table import COMMANDS
from truthcal.cli.name_lists import split_names
from truthcal.cli.options import add_options
from truthcal.cli.request import Request

_SIMILAR = 0.7  # of difflib: --lable and --label have 0.86, --proba-prefix and --proba 0.67


_COMMANDS_WITH: dict[str, dict[str, None]] = {}  # the commands that have an option


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line that names the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments here, where the options of the command are known; argparse would do it above."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._suggestion(unknown)}")
        return known, unknown

    def _suggestion(self, unknown: Sequence[str]) -> str:
        """Suggest the option most similar to the first unknown one; "" if there is none."""
        flag = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
        others = _COMMANDS_WITH.get(flag)
        if others:
            return f"; {flag} is an option of {', '.join(f'`{name}`' for name in others)}"
        close = difflib.get_close_matches(flag, self._option_string_actions, n=1, cutoff=_SIMILAR)
        return f"; did you mean {close[0]}?" if close else ""


def parse_arguments(line: Sequence[str]) -> Request:
    """Turn the arguments into a request. Exits with a message if they are wrong."""
    fields = vars(build_parser().parse_args(line))
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    values["measures"] = split_names(values.get("measures", ()))
    return Request(line=tuple(line), **values)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line. Defaults are in `Request`."""
    whole = _Parser(
        prog="truthcal",
        description="Can these probabilities be trusted? Prints a verdict in words, followed by the evidence.",
        epilog="examples:\n"
        "  # assess a file of predictions and outcomes; the columns are guessed if the choice is unambiguous\n"
        "  truthcal assess predictions.csv\n"
        "  # name the columns and write a report\n"
        "  truthcal assess predictions.csv --proba score --label clicked --report report.html\n"
        "  # see an example with three forecasters\n"
        "  truthcal demo\n\n"
        "truthcal COMMAND --help shows more examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"truthcal {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        parser: _Parser = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + "." * (not command.help.endswith("?")),
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
        )
        add_options(parser, command.options.split())
        for flag in parser._option_string_actions:
            _COMMANDS_WITH.setdefault(flag, {})[command.name] = None
    return whole
