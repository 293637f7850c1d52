"""The parser: arguments of every command, with their help and examples. Imports nothing heavy, so that help is fast."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from truthcal import __version__
from truthcal.cli.command_table import COMMANDS
from truthcal.cli.name_lists import split_names
from truthcal.cli.options import add_options
from truthcal.cli.request import Request


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line that names the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


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
        parser = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + "." * (not command.help.endswith("?")),
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
        )
        add_options(parser, command.options.split())
    return whole
