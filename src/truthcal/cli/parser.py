"""The arguments of every command, their help, and examples. Imports nothing heavy: `truthcal --help` must be quick."""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal import __version__

_FORMATS = "CSV, TSV, Parquet, JSON lines or Arrow; patterns and folders; `-` for standard input; or a file of `sketch`"
SHELLS = ("bash", "zsh", "fish")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it is for, examples, and what adds its arguments."""

    name: str
    help: str
    examples: tuple[tuple[str, str], ...]
    add: Callable[[argparse.ArgumentParser], Any]

    @property
    def epilog(self) -> str:
        """The examples as help shows them."""
        return "examples:\n" + "\n".join(f"  # {what}\n  {line}" for what, line in self.examples)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = _Parser(
        prog="truthcal",
        description="Can these probabilities be trusted? A verdict in words, and the evidence.",
        epilog="examples:\n"
        "  # a file of predictions and outcomes; the columns are guessed where they can be\n"
        "  truthcal assess predictions.csv\n"
        "  # which columns are meant, and a report to keep\n"
        "  truthcal assess predictions.csv --proba score --label clicked --report report.html\n"
        "  # three forecasters, and what truthcal says of them\n"
        "  truthcal demo\n\n"
        "truthcal COMMAND --help has more examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"truthcal {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        own = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help[0].upper() + command.help[1:] + "." * (not command.help.endswith("?")),
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add(own)
        own.add_argument("--debug", action="store_true", help="show the traceback of an error")
        own.add_argument("-q", "--quiet", action="store_true", help="no messages on stderr, except errors")
    return whole


# --- what several commands share --------------------------------------------------------------------------------------


def _files(own: argparse.ArgumentParser, *, optional: bool = False) -> None:
    own.add_argument("files", nargs="*" if optional else "+", metavar="FILE", help=_FORMATS)


def _columns(own: argparse.ArgumentParser, *, several: bool = False, by: bool = True) -> None:
    group = own.add_argument_group("columns (guessed if there is only one sensible reading)")
    group.add_argument("--label", metavar="COL", help="column of outcomes: 0/1, true/false, or two labels")
    more = "; again for each further model" if several else ""
    group.add_argument("--proba", metavar="COL", action="append", help=f"column of predicted probabilities{more}")
    group.add_argument("--weight", metavar="COL", help="column of weights")
    group.add_argument("--pos-label", metavar="VALUE", help="the label that counts as 1")
    if by:
        group.add_argument("--by", metavar="COL", action="append", help="also each segment; again for more columns")


def _formats(own: argparse.ArgumentParser) -> None:
    group = own.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="JSON, versioned schema (docs/guide/cli.md)")
    group.add_argument("--markdown", action="store_true", help="Markdown, for a pull request or a job summary")


def _level(own: argparse.ArgumentParser, name: str, default: float | None, help_: str) -> None:
    own.add_argument(name, type=_share, default=default, metavar="X", help=help_)


def _segments(own: argparse.ArgumentParser) -> None:
    own.add_argument(
        "--adjust",
        choices=("holm", "fdr", "none"),
        default="holm",
        help="how false alarms of many segments are limited (default: holm)",
    )
    own.add_argument(
        "--min-rows",
        type=_whole,
        default=30,
        metavar="N",
        help="segments of fewer rows are not tested (default: 30)",
    )


def _share(text: str) -> float:
    """A number between 0 and 1, both excluded."""
    number = _number(text)
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1; got {text}")
    return number


def _positive(text: str) -> float:
    number = _number(text)
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number; got {text}")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number; got {text!r}") from None


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number; got {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 on; got {text!r}")
    return int(text)


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in text.replace(",", " ").split()]


# --- the commands -----------------------------------------------------------------------------------------------------


def _assess(own: argparse.ArgumentParser) -> None:
    _files(own)
    _columns(own, several=True)
    own.add_argument("--report", metavar="OUT.html", help="also write the HTML report")
    own.add_argument("--title", metavar="TEXT", help="title of the report")
    _formats(own)
    _level(own, "--alpha", 0.05, "level of the test (default: 0.05)")
    _level(own, "--confidence-level", 0.95, "of the intervals (default: 0.95)")
    _segments(own)


def _test(own: argparse.ArgumentParser) -> None:
    _files(own)
    _columns(own, by=False)
    own.add_argument("--measure", metavar="NAME", default="multiscale_atb", help="statistic (default: multiscale_atb)")
    own.add_argument(
        "--alternative",
        choices=("greater", "less", "two-sided"),
        default="greater",
        help="greater: miscalibrated; less: too good to be honest (default: greater)",
    )
    own.add_argument(
        "--method",
        choices=("auto", "exact", "asymptotic", "bound"),
        default="auto",
        help="how the p-value is found (default: auto)",
    )
    own.add_argument("--n-resamples", type=_whole, default=9999, metavar="N", help="random outcomes (default: 9999)")
    own.add_argument("--seed", type=_seed, default=0, metavar="N", help="seed of these (default: 0)")
    _formats(own)


def _compare(own: argparse.ArgumentParser) -> None:
    _files(own)
    _columns(own, several=True, by=False)
    own.add_argument("--key", metavar="COL", help="column that says which rows of two files belong together")
    own.add_argument("--measure", metavar="NAME", default="atb", help="what is compared (default: atb)")
    _level(own, "--confidence-level", 0.95, "of the intervals (default: 0.95)")
    own.add_argument("--report", metavar="OUT.html", help="also write an HTML report of both")
    own.add_argument("--title", metavar="TEXT", help="title of the report")
    _formats(own)


def _measures(own: argparse.ArgumentParser) -> None:
    _files(own, optional=True)
    _columns(own, by=False)
    own.add_argument("--measure", metavar="NAME", action="append", help="only this one; again for more")
    own.add_argument("--list", action="store_true", help="all measures and what is true of them, without data")
    _formats(own)


def _audit(own: argparse.ArgumentParser) -> None:
    _files(own, optional=True)
    own.add_argument("--proba", metavar="COL", action="append", help="column of predictions, taken for the truth")
    own.add_argument("--truth", type=_numbers, metavar="P,P,...", help="true chances, in place of a file")
    own.add_argument("--measure", metavar="NAME", action="append", help="only this one; again for more")
    own.add_argument(
        "--max-rows", type=_whole, default=500, metavar="N", help="of more rows so many are used (default: 500)"
    )
    own.add_argument("--seed", type=_seed, default=0, metavar="N", help="of random outcomes (default: 0)")
    _formats(own)


def _sketch(own: argparse.ArgumentParser) -> None:
    _files(own)
    _columns(own)
    own.add_argument("-o", "--output", metavar="OUT", required=True, help="file to write, whole or not at all")
    own.add_argument("--buckets", type=_whole, metavar="N", help="a power of two (default: 16384; with --by 4096)")


def _merge(own: argparse.ArgumentParser) -> None:
    own.add_argument("files", nargs="+", metavar="SKETCH", help="files written by `truthcal sketch` or `Sketch.save`")
    own.add_argument("-o", "--output", metavar="OUT", required=True, help="file to write, whole or not at all")


def _report(own: argparse.ArgumentParser) -> None:
    _files(own)
    _columns(own, several=True)
    own.add_argument("-o", "--output", metavar="OUT.html", help="file to write (default: the data's name with .html)")
    own.add_argument("--title", metavar="TEXT", help="title of the report")
    _level(own, "--alpha", 0.05, "level of the test (default: 0.05)")
    _level(own, "--confidence-level", 0.95, "of the intervals (default: 0.95)")
    _segments(own)


def _check(own: argparse.ArgumentParser) -> None:
    _files(own)
    _columns(own)
    _level(own, "--alpha", None, "fail if miscalibration is shown at this level (default: 0.05, unless --max-rms)")
    own.add_argument(
        "--max-rms",
        type=_positive,
        metavar="X",
        help="fail if the error (rms) is shown to exceed this: its lower confidence bound does",
    )
    _level(own, "--confidence-level", 0.95, "of that bound's interval (default: 0.95)")
    own.add_argument("--summary", metavar="FILE", help="append the result as Markdown, e.g. to $GITHUB_STEP_SUMMARY")
    own.add_argument("--report", metavar="OUT.html", help="also write the HTML report")
    own.add_argument("--title", metavar="TEXT", help="title of the report")
    _segments(own)
    _formats(own)


def _demo(own: argparse.ArgumentParser) -> None:
    own.add_argument(
        "--folder",
        metavar="DIR",
        default="truthcal-demo",
        help="where the data and the report go (default: %(default)s)",
    )


def _completion(own: argparse.ArgumentParser) -> None:
    own.add_argument("shell", choices=SHELLS, help="whose")


_CSV = "predictions.csv"
COMMANDS = (
    Command(
        "assess",
        "can these probabilities be trusted? The verdict in words, then the evidence",
        (
            ("the columns are guessed where there is only one sensible reading", f"truthcal assess {_CSV}"),
            ("name them, and look at segments too", f"truthcal assess {_CSV} --proba score --label hit --by region"),
            ("two models, and a report to keep", f"truthcal assess {_CSV} --proba a --proba b --report out.html"),
            ("many files, however large", "truthcal assess 'day-*.parquet' --json"),
            ("from another program", "zcat big.csv.gz | truthcal assess -"),
        ),
        _assess,
    ),
    Command(
        "test",
        "could calibrated predictions have had these outcomes? A p-value for any measure",
        (
            ("multiscale ATB", f"truthcal test {_CSV}"),
            ("were the predictions fitted on these outcomes?", f"truthcal test {_CSV} --alternative less"),
            ("another statistic", f"truthcal test {_CSV} --measure binned_ece"),
        ),
        _test,
    ),
    Command(
        "compare",
        "which of two models is better calibrated, and which is more skilful?",
        (
            ("two columns of a file", f"truthcal compare {_CSV} --proba old --proba new"),
            ("two files with a column in common", "truthcal compare old.csv new.csv --key id"),
        ),
        _compare,
    ),
    Command(
        "measures",
        "all calibration measures of a file, or any of them, with what is true of each",
        (
            ("all of them", f"truthcal measures {_CSV}"),
            ("two of them", f"truthcal measures {_CSV} --measure atb --measure smcal"),
            ("what there is", "truthcal measures --list"),
        ),
        _measures,
    ),
    Command(
        "audit",
        "does lying pay? What honest and dishonest reports score under each measure",
        (
            ("for these predictions, taken for the truth", f"truthcal audit {_CSV} --proba score"),
            ("for two events", "truthcal audit --truth 0.25,0.75"),
        ),
        _audit,
    ),
    Command(
        "sketch",
        "reduce files of any size to a small file that merges, and that other commands read",
        (
            ("one day", "truthcal sketch monday.parquet -o monday.sketch --proba p --label y"),
            ("for each country", "truthcal sketch 'day-*.csv' -o week.sketch --by country"),
        ),
        _sketch,
    ),
    Command(
        "merge",
        "put sketches together, as if their rows had been read at once",
        (
            ("a week of days", "truthcal merge monday.sketch tuesday.sketch -o week.sketch"),
            ("and look at it", "truthcal assess week.sketch"),
        ),
        _merge,
    ),
    Command(
        "report",
        "write the HTML report: one file that needs nothing else",
        (
            ("into predictions.html", f"truthcal report {_CSV}"),
            ("of two models, by region", f"truthcal report {_CSV} --proba a --proba b --by region -o out.html"),
        ),
        _report,
    ),
    Command(
        "check",
        "the gate for CI: exit status 0 pass, 1 fail, 2 wrong use or bad data, 3 too little data to tell",
        (
            ("fail if miscalibration is shown at level 0.01", f"truthcal check {_CSV} --alpha 0.01"),
            ("fail if the error is shown to exceed 0.03", f"truthcal check {_CSV} --max-rms 0.03"),
            ("in a job of GitHub Actions", f'truthcal check {_CSV} --summary "$GITHUB_STEP_SUMMARY"'),
        ),
        _check,
    ),
    Command(
        "demo",
        "three forecasters of the same events: honest, overconfident, and one that games its metric",
        (("writes data and a report into truthcal-demo/", "truthcal demo"),),
        _demo,
    ),
    Command(
        "completion",
        "print a script that lets a shell complete commands, options and files",
        (
            ("bash", 'eval "$(truthcal completion bash)"'),
            ("zsh", 'eval "$(truthcal completion zsh)"'),
            ("fish", "truthcal completion fish | source"),
        ),
        _completion,
    ),
)
