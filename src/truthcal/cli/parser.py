"""The parser: arguments of every command, their help and examples. Imports nothing heavy, so that help is fast."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal import __version__
from truthcal.cli.request import Request

_FORMATS = "CSV, TSV, Parquet, JSON lines or Arrow; a pattern or folder; `-` for stdin; or a file written by `sketch`"
SHELLS = ("bash", "zsh")
# shtab.FILE, which is not imported here.
_COMPLETE_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line that names the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its purpose, examples, and the function that adds its arguments."""

    name: str
    help: str
    examples: tuple[tuple[str, str], ...]
    add: Callable[[argparse.ArgumentParser], Any]

    @property
    def epilog(self) -> str:
        """The examples as help shows them."""
        return "examples:\n" + "\n".join(f"  # {purpose}\n  {line}" for purpose, line in self.examples)


def parse(line: Sequence[str]) -> Request:
    """Turn the arguments into a request. Exits with a message if they are wrong."""
    fields = vars(build_parser().parse_args(line))
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return Request(line=tuple(line), **values)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line. Defaults are in `Request`."""
    whole = _Parser(
        prog="truthcal",
        description="Can these probabilities be trusted? A verdict in words, and the evidence.",
        epilog="examples:\n"
        "  # a file of predictions and outcomes; columns are guessed if there is only one possibility\n"
        "  truthcal assess predictions.csv\n"
        "  # name the columns, and write a report\n"
        "  truthcal assess predictions.csv --proba score --label clicked --report report.html\n"
        "  # an example with three forecasters\n"
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
        command.add(parser)
        parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
        parser.add_argument("-q", "--quiet", action="store_true", help="no messages on stderr, except errors")
    return whole


# --- arguments of several commands ------------------------------------------------------------------------------------


def _files(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    _file_argument(parser, "files", nargs="*" if optional else "+", metavar="FILE", help=_FORMATS)


def _file_argument(parser: argparse.ArgumentParser, *names: str, **options: Any) -> None:
    """Add an argument that shells complete with files."""
    vars(parser.add_argument(*names, **options))["complete"] = _COMPLETE_FILES


def _columns(parser: argparse.ArgumentParser, *, several: bool = False, by: bool = True) -> None:
    group = parser.add_argument_group("columns (guessed if there is only one possibility)")
    group.add_argument("--label", metavar="COL", help="outcomes: 0/1, true/false, or two labels")
    repeat = "; repeat for more models" if several else ""
    group.add_argument("--proba", metavar="COL", action="append", help=f"predicted probabilities{repeat}")
    group.add_argument("--weight", metavar="COL", help="weights")
    group.add_argument("--pos-label", metavar="VALUE", help="the label that counts as 1")
    if by:
        group.add_argument("--by", metavar="COL", action="append", help="segments; repeat for more columns")


def _formats(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    for name, text in (
        ("json", "print JSON with a documented, versioned schema (docs/guide/cli.md)"),
        ("markdown", "print Markdown, for a pull request or a job summary"),
    ):
        group.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=text)


def _report_file(parser: argparse.ArgumentParser) -> None:
    _file_argument(parser, "--report", metavar="OUT.html", help="also write the HTML report")
    _title(parser)


def _title(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--title", metavar="TEXT", help="title of the report")


def _alpha(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--alpha", type=_share, metavar="X", help="level of the test (default: 0.05)")


def _confidence(parser: argparse.ArgumentParser) -> None:
    text = "confidence level of the intervals (default: 0.95)"
    parser.add_argument("--confidence-level", type=_share, metavar="X", help=text)


def _segments(parser: argparse.ArgumentParser) -> None:
    text = "how to limit false alarms among many segments (default: holm)"
    parser.add_argument("--adjust", choices=("holm", "fdr", "none"), help=text)
    text = "do not test segments with fewer rows (default: 30)"
    parser.add_argument("--min-rows", type=_whole, metavar="N", help=text)


def _output(parser: argparse.ArgumentParser, metavar: str, **options: Any) -> None:
    _file_argument(parser, "-o", "--output", metavar=metavar, **options)


def _share(text: str) -> float:
    """Convert a number between 0 and 1, both excluded."""
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
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more; got {text!r}")
    return int(text)


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in text.replace(",", " ").split()]


# --- the commands -----------------------------------------------------------------------------------------------------


def _assess(parser: argparse.ArgumentParser) -> None:
    _files(parser)
    _columns(parser, several=True)
    _report_file(parser)
    _formats(parser)
    _alpha(parser)
    _confidence(parser)
    _segments(parser)


def _test(parser: argparse.ArgumentParser) -> None:
    _files(parser)
    _columns(parser, by=False)
    parser.add_argument("--measure", metavar="NAME", help="statistic (default: multiscale_atb)")
    text = "greater: miscalibrated; less: too good to be honest (default: greater)"
    parser.add_argument("--alternative", choices=("greater", "less", "two-sided"), help=text)
    text = "how to compute the p-value (default: auto)"
    parser.add_argument("--method", choices=("auto", "exact", "asymptotic", "bound"), help=text)
    text = "number of random outcomes to draw (default: 9999)"
    parser.add_argument("--n-resamples", type=_whole, metavar="N", help=text)
    parser.add_argument("--seed", type=_seed, metavar="N", help="seed of the random outcomes (default: 0)")
    _formats(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    _files(parser)
    _columns(parser, several=True, by=False)
    parser.add_argument("--key", metavar="COL", help="column on which to join two files")
    parser.add_argument("--measure", metavar="NAME", help="measure to compare (default: atb)")
    parser.set_defaults(measure="atb")
    _confidence(parser)
    _report_file(parser)
    _formats(parser)


def _measures(parser: argparse.ArgumentParser) -> None:
    _files(parser, optional=True)
    _columns(parser, by=False)
    _chosen_measures(parser)
    parser.add_argument("--list", action="store_true", help="list all measures and their properties, without data")
    _formats(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    _files(parser, optional=True)
    text = "predictions, which are assumed to be the true probabilities"
    parser.add_argument("--proba", metavar="COL", action="append", help=text)
    parser.add_argument("--truth", type=_numbers, metavar="P,P,...", help="true probabilities, instead of a file")
    _chosen_measures(parser)
    text = "use at most this many rows, drawn at random (default: 500)"
    parser.add_argument("--max-rows", type=_whole, metavar="N", help=text)
    parser.add_argument("--seed", type=_seed, metavar="N", help="seed of the random draws (default: 0)")
    _formats(parser)


def _chosen_measures(parser: argparse.ArgumentParser) -> None:
    text = "only this measure; repeat for more"
    parser.add_argument("--measure", dest="measures", metavar="NAME", action="append", help=text)


def _sketch(parser: argparse.ArgumentParser) -> None:
    _files(parser)
    _columns(parser)
    _output(parser, "OUT", required=True, help="file to write")
    text = "number of buckets, a power of two (default: 16384; with --by 4096)"
    parser.add_argument("--buckets", type=_whole, metavar="N", help=text)


def _merge(parser: argparse.ArgumentParser) -> None:
    text = "files written by `truthcal sketch` or `Sketch.save`"
    _file_argument(parser, "files", nargs="+", metavar="SKETCH", help=text)
    _output(parser, "OUT", required=True, help="file to write")


def _report(parser: argparse.ArgumentParser) -> None:
    _files(parser)
    _columns(parser, several=True)
    _output(parser, "OUT.html", help="file to write (default: name of the data file, with .html)")
    _title(parser)
    _alpha(parser)
    _confidence(parser)
    _segments(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    _files(parser)
    _columns(parser)
    text = "fail if miscalibration is significant at this level (default: 0.05, unless --max-rms is given)"
    parser.add_argument("--alpha", type=_share, metavar="X", help=text)
    parser.set_defaults(alpha=None)
    text = "fail if the lower confidence bound of the error (rms) exceeds this"
    parser.add_argument("--max-rms", type=_positive, metavar="X", help=text)
    _confidence(parser)
    text = "append the result as Markdown to this file, e.g. $GITHUB_STEP_SUMMARY"
    _file_argument(parser, "--summary", metavar="FILE", help=text)
    _report_file(parser)
    _segments(parser)
    _formats(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    text = "folder for the data and the report (default: truthcal-demo)"
    parser.add_argument("--folder", metavar="DIR", help=text)


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to print the script for")


_CSV = "predictions.csv"
COMMANDS = (
    Command(
        "assess",
        "can these probabilities be trusted? The verdict in words, then the evidence",
        (
            ("columns are guessed if there is only one possibility", f"truthcal assess {_CSV}"),
            (
                "name the columns, and assess segments too",
                f"truthcal assess {_CSV} --proba score --label hit --by region",
            ),
            ("two models, and a report", f"truthcal assess {_CSV} --proba a --proba b --report out.html"),
            ("many files of any size", "truthcal assess 'day-*.parquet' --json"),
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
        "compute all calibration measures of a file, or some, with their properties",
        (
            ("all of them", f"truthcal measures {_CSV}"),
            ("two of them", f"truthcal measures {_CSV} --measure atb --measure smcal"),
            ("list all measures", "truthcal measures --list"),
        ),
        _measures,
    ),
    Command(
        "audit",
        "does lying pay? The scores of honest and dishonest forecasts under each measure",
        (
            ("if these predictions are the true probabilities", f"truthcal audit {_CSV} --proba score"),
            ("for two events", "truthcal audit --truth 0.25,0.75"),
        ),
        _audit,
    ),
    Command(
        "sketch",
        "reduce files of any size to a small file that can be merged and read by other commands",
        (
            ("one day", "truthcal sketch monday.parquet -o monday.sketch --proba p --label y"),
            ("for each country", "truthcal sketch 'day-*.csv' -o week.sketch --by country"),
        ),
        _sketch,
    ),
    Command(
        "merge",
        "merge sketches, as if their rows had been read together",
        (
            ("a week of days", "truthcal merge monday.sketch tuesday.sketch -o week.sketch"),
            ("then assess it", "truthcal assess week.sketch"),
        ),
        _merge,
    ),
    Command(
        "report",
        "write the HTML report: one self-contained file",
        (
            ("to predictions.html", f"truthcal report {_CSV}"),
            ("two models, by region", f"truthcal report {_CSV} --proba a --proba b --by region -o out.html"),
        ),
        _report,
    ),
    Command(
        "check",
        "the gate for CI: exit status 0 pass, 1 fail, 2 wrong usage or bad data, 3 too little data to tell",
        (
            ("fail if miscalibration is significant at level 0.01", f"truthcal check {_CSV} --alpha 0.01"),
            ("fail if the lower bound of the error exceeds 0.03", f"truthcal check {_CSV} --max-rms 0.03"),
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
        "print the completion script of a shell, for commands, options and files",
        (
            ("bash", 'eval "$(truthcal completion bash)"'),
            ("zsh", 'eval "$(truthcal completion zsh)"'),
        ),
        _completion,
    ),
)
