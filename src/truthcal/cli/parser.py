"""The parser: arguments of every command, their help and examples. Imports nothing heavy, so that help is fast."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from truthcal import __version__
from truthcal.cli.request import Request

_ROWS = "CSV, TSV, Parquet, JSON lines or Arrow; a pattern or folder; or `-` for stdin"
SHELLS = ("bash", "zsh")
# shtab.FILE, which is not imported here.
_COMPLETE_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line that names the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its purpose, examples, and the names of its options."""

    name: str
    help: str
    examples: tuple[tuple[str, str], ...]
    options: str

    @property
    def epilog(self) -> str:
        """The examples as help shows them."""
        return "examples:\n" + "\n".join(f"  # {purpose}\n  {line}" for purpose, line in self.examples)


def parse_arguments(line: Sequence[str]) -> Request:
    """Turn the arguments into a request. Exits with a message if they are wrong."""
    fields = vars(build_parser().parse_args(line))
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
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
        _add_options(parser, command.options.split())
    return whole


# --- options ----------------------------------------------------------------------------------------------------------


def _parse_share(text: str) -> float:
    """Parse an option's number between 0 and 1, both excluded."""
    if not 0.0 < (number := _parse_number(text)) < 1.0:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1; got {text}")
    return number


def _parse_positive(text: str) -> float:
    if not 0.0 < (number := _parse_number(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number; got {text}")
    return number


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number; got {text!r}") from None


def _parse_whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number; got {text!r}")
    return int(text)


def _parse_seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more; got {text!r}")
    return int(text)


def _parse_numbers(text: str) -> list[float]:
    return [_parse_number(part) for part in text.replace(",", " ").split()]


_Option = tuple[tuple[str, ...], dict[str, Any]]


def _option(help_: str, *flags: str, **settings: Any) -> _Option:
    return flags, {"help": help_, **settings}


def _column_flag(flag: str, help_: str, **settings: Any) -> _Option:
    return _option(help_, flag, metavar="COL", **settings)


def _count_flag(flag: str, help_: str) -> _Option:
    return _option(help_, flag, type=_parse_whole, metavar="N")


def _limit(flag: str, help_: str, convert: Callable[[str], float] = _parse_share, **settings: Any) -> _Option:
    """Return an option of the parser for a level or a limit."""
    return _option(help_, flag, type=convert, metavar="X", **settings)


def _format_flag(name: str, help_: str) -> _Option:
    return _option(help_, f"--{name}", dest="format", action="store_const", const=name)


# Name in `Command.options` -> flags and settings of argparse. Defaults are in `Request`.
_OPTIONS = {
    "files": _option(f"{_ROWS}; or a file written by `truthcal sketch`", "files", nargs="+", metavar="FILE"),
    "rows": _option(_ROWS, "files", nargs="+", metavar="FILE"),
    "rows?": _option(_ROWS, "files", nargs="*", metavar="FILE"),
    "sketches": _option("file written by `truthcal sketch` or `Sketch.save`", "files", nargs="+", metavar="SKETCH"),
    "label": _column_flag("--label", "outcomes: 0/1, true/false, or two labels"),
    "class": _column_flag("--label", "outcomes: 0/1, true/false, or two labels; or the class of each row"),
    "proba": _column_flag("--proba", "predicted probabilities", action="append"),
    "probas": _column_flag("--proba", "predicted probabilities; repeat once per model", action="append"),
    "proba-as-truth": _column_flag("--proba", "predictions to use as the true probabilities", action="append"),
    "proba-prefix": _option(
        "start of the names of columns with the probability of each class (p_ for p_cat and p_dog); once per model",
        "--proba-prefix",
        action="append",
        metavar="PREFIX",
    ),
    "weight": _column_flag("--weight", "weights"),
    "pos-label": _option("the label that counts as 1", "--pos-label", metavar="VALUE"),
    "hard": _option("accept predictions that are all 0 or 1", "--hard", action="store_true"),
    "by": _column_flag("--by", "segments; repeat for more columns", action="append"),
    "group": _column_flag("--group", "which rows belong together: patient, match, question"),
    "key": _column_flag("--key", "column on which to join two files"),
    "time": _column_flag("--time", "times: assess windows of time, and test whether calibration changes"),
    "window": _option(
        "windows for --time: day, week, month, 7d, 12h, or '1000 rows' (default: 10 to 30 windows)",
        "--window",
        metavar="SPEC",
    ),
    "watch-time": _column_flag("--time", "times of the predictions"),
    "watch-window": _option(
        "windows: day, week, month, 7d, 12h, or '1000 rows'", "--window", metavar="SPEC", required=True
    ),
    "due": _column_flag(
        "--due", "times at which outcomes are due; rows are scored then, and may lack an outcome before"
    ),
    "watch-group": _column_flag(
        "--group", "which rows belong together: each group counts as one observation per window"
    ),
    "state": _option(
        "file of the monitor: continued if it exists, written atomically", "--state", metavar="FILE", required=True
    ),
    "monitor-alpha": _limit("--alpha", "probability of a false alarm, ever (default: 0.05)"),
    "watch-report": _option("also write an HTML report on all windows", "--report", metavar="OUT.html"),
    "time-unit": _option(
        "unit of times that are integers and count from 1970-01-01", "--time-unit", choices=("s", "ms", "us", "ns")
    ),
    "format": _option(
        "format of evaluation files of language models (default: recognised by content)",
        "--format",
        dest="input_format",
        choices=("lm-eval", "inspect", "confidence"),
    ),
    "rule": _option(
        "lm-eval: how log-likelihoods become probabilities (default: softmax)",
        "--rule",
        choices=("softmax", "length-normalised"),
    ),
    "answers": _option(
        "lm-eval: all options of a question are rows, or only the top one, which can be gamed (default: all)",
        "--answers",
        choices=("all", "top"),
    ),
    "percent": _option("confidences without a percent sign are percentages, too", "--percent", action="store_true"),
    "missing": _option(
        "leave out rows whose outcome or probability is missing or void, and count them", "--missing", choices=("drop",)
    ),
    "fractional": _option(
        "leave out rows whose outcome is a fraction, such as a tie, and count them; or keep them in `measures`",
        "--fractional",
        choices=("drop", "keep"),
    ),
    "question": _column_flag("--question", "questions with several forecasts, of which --horizon chooses one"),
    "forecast-time": _column_flag("--time", "times of the forecasts, for --horizon"),
    "close": _column_flag("--close", "times at which questions close or are resolved, for --horizon"),
    "horizon": _option(
        "use the latest forecast of each question at least this long before --close: 7d, 12h",
        "--horizon",
        metavar="SPAN",
    ),
    "truth": _option("true probabilities, instead of a file", "--truth", type=_parse_numbers, metavar="P,P,..."),
    "stage": _option(
        "interim: the events are known; ex_ante: they are drawn from a population (default: interim)",
        "--stage",
        choices=("interim", "ex_ante"),
    ),
    "n-rows": _count_flag(
        "--n-rows", "events in a sample of the stage ex_ante (default: as many as in the population)"
    ),
    "report": _option("also write the HTML report", "--report", metavar="OUT.html"),
    "title": _option("title of the report", "--title", metavar="TEXT"),
    "exact-distcal": _option(
        "compute the distance to calibration for the report, instead of bounds", "--exact-distcal", action="store_true"
    ),
    "page": _option("file to write (default: the input's name with .html)", "-o", "--output", metavar="OUT.html"),
    "output": _option("file to write", "-o", "--output", metavar="OUT", required=True),
    "summary": _option("append the result as Markdown, e.g. to $GITHUB_STEP_SUMMARY", "--summary", metavar="FILE"),
    "alpha": _limit("--alpha", "significance level of the test (default: 0.05)"),
    "gate-alpha": _limit(
        "--alpha",
        "fail if miscalibration is significant at this level (default: 0.05 without --max-error)",
        default=None,
    ),
    "max-error": _limit("--max-error", "fail if the lower confidence limit of the error exceeds X", _parse_positive),
    "confidence-level": _limit("--confidence-level", "confidence level of the intervals (default: 0.95)"),
    "adjust": _option(
        "correction for multiple testing of segments (default: holm)", "--adjust", choices=("holm", "fdr", "none")
    ),
    "min-rows": _count_flag("--min-rows", "do not test segments with fewer than N rows (default: 30)"),
    "statistic": _option("test statistic (default: information_atb)", "--measure", metavar="NAME"),
    "compared": _option("score of calibration (default: atb)", "--measure", default="atb", metavar="NAME"),
    "measures": _option(
        "compute only this measure; repeat for more", "--measure", dest="measures", action="append", metavar="NAME"
    ),
    "alternative": _option(
        "greater: miscalibrated; less: closer to the outcomes than chance allows (default: greater)",
        "--alternative",
        choices=("greater", "less", "two-sided"),
    ),
    "method": _option(
        "how to compute the p-value (default: auto)", "--method", choices=("auto", "exact", "asymptotic", "bound")
    ),
    "n-resamples": _count_flag("--n-resamples", "number of times to redraw the outcomes (default: 9999)"),
    "seed": _option("seed of the random draws (default: 0)", "--seed", type=_parse_seed, metavar="N"),
    "max-rows": _count_flag("--max-rows", "use at most N rows, evenly spaced in sorted order (default: 500)"),
    "list": _option("list all measures and their properties, without data", "--list", action="store_true"),
    "buckets": _count_flag("--buckets", "number of buckets, a power of two (default: 16384, or 4096 with --by)"),
    "folder": _option("folder for the data and the report (default: truthcal-demo)", "--folder", metavar="DIR"),
    "shell": _option("shell that will run the script", "shell", choices=SHELLS),
    "json": _format_flag("json", "print JSON with a documented, versioned schema (docs/guide/cli.md)"),
    "markdown": _format_flag("markdown", "print Markdown, for a pull request or a job summary"),
    "debug": _option("show a traceback if an error occurs", "--debug", action="store_true"),
    "quiet": _option("on stderr, print nothing but errors", "-q", "--quiet", action="store_true"),
}
_FILES = ("files", "rows", "rows?", "sketches", "report", "page", "output", "summary", "state", "watch-report")
_COLUMNS = (
    "label",
    "class",
    "proba",
    "probas",
    "proba-prefix",
    "proba-as-truth",
    "weight",
    "pos-label",
    "by",
    "time",
    "watch-time",
    "due",
    "group",
    "watch-group",
)
_INPUT_OPTIONS = ("format", "rule", "answers", "percent", "missing", "fractional")
_FORECASTS = ("question", "forecast-time", "close", "horizon")


def _add_options(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    columns = parser.add_argument_group("columns (--label and --proba are guessed if the choice is unambiguous)")
    inputs = parser.add_argument_group("evaluation files of language models, and rows to leave out")
    forecasts = parser.add_argument_group("several forecasts per question over time (also needs --time)")
    groups = dict.fromkeys(_COLUMNS, columns) | dict.fromkeys(_INPUT_OPTIONS, inputs)
    groups |= dict.fromkeys(_FORECASTS, forecasts)
    # In Python 3.11 an empty group makes --help fail.
    formats = parser.add_mutually_exclusive_group() if "json" in names else parser
    for name in (*names, "debug", "quiet"):
        flags, settings = _OPTIONS[name]
        group = groups.get(name, formats if name in ("json", "markdown") else parser)
        action = group.add_argument(*flags, **settings)
        if name in _FILES:
            vars(action)["complete"] = _COMPLETE_FILES


# --- commands ---------------------------------------------------------------------------------------------------------

_CSV = "predictions.csv"
# Of commands that read rows with outcomes.
_INPUT = " format rule answers percent missing fractional question close horizon"
COMMANDS = (
    Command(
        "assess",
        "can these probabilities be trusted? Prints a verdict in words, followed by the evidence",
        (
            ("the columns are guessed if the choice is unambiguous", f"truthcal assess {_CSV}"),
            (
                "name the columns and also assess segments",
                f"truthcal assess {_CSV} --proba score --label hit --by region",
            ),
            ("assess two models and write a report", f"truthcal assess {_CSV} --proba a --proba b --report out.html"),
            ("many classes: one column for each of them", f"truthcal assess {_CSV} --label kind --proba-prefix p_"),
            ("rows of the same match belong together", f"truthcal assess {_CSV} --group match_id"),
            ("has calibration changed over time?", f"truthcal assess {_CSV} --time date --window week"),
            ("assess many files of any size", "truthcal assess 'day-*.parquet' --json"),
            ("read the output of another program", "zcat big.csv.gz | truthcal assess -"),
            ("assess a language model: samples of lm-eval", "truthcal assess samples_arc_easy_2026-01-31.jsonl"),
            (
                "forecasts: leave out ties and void questions",
                f"truthcal assess {_CSV} --fractional drop --missing drop",
            ),
        ),
        "files class probas proba-prefix weight pos-label hard by group time window time-unit report title "
        "exact-distcal json markdown alpha confidence-level adjust min-rows" + _INPUT,
    ),
    Command(
        "test",
        "are these outcomes plausible if the predictions are calibrated? Prints a p-value for any measure",
        (
            ("test with the default statistic, multiscale ATB", f"truthcal test {_CSV}"),
            ("were the predictions fitted on these outcomes?", f"truthcal test {_CSV} --alternative less"),
            ("use another statistic", f"truthcal test {_CSV} --measure ece"),
        ),
        "files class proba proba-prefix weight pos-label hard group statistic alternative method n-resamples seed json "
        "markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "compare",
        "which models have the better ATB (calibration), and which the better Brier score? All pairs",
        (
            ("compare two columns of a file", f"truthcal compare {_CSV} --proba old --proba new"),
            ("compare all pairs of three columns", f"truthcal compare {_CSV} --proba a --proba b --proba c"),
            ("compare two files, joined on a column", "truthcal compare old.csv new.csv --key id"),
            ("compare two models of many classes", f"truthcal compare {_CSV} --proba-prefix old_ --proba-prefix new_"),
        ),
        "rows class probas proba-prefix weight pos-label hard group key compared confidence-level report title "
        "exact-distcal json markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "measures",
        "compute calibration measures and list their properties",
        (
            ("compute all measures", f"truthcal measures {_CSV}"),
            ("compute two measures", f"truthcal measures {_CSV} --measure atb --measure smcal"),
            ("list all measures", "truthcal measures --list"),
        ),
        "rows? label proba weight pos-label measures list json markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "audit",
        "does lying pay? Prints the scores of honest and dishonest forecasts under each measure",
        (
            ("use these predictions as the true probabilities", f"truthcal audit {_CSV} --proba score"),
            ("audit two events", "truthcal audit --truth 0.25,0.75"),
            ("audit samples from a population", "truthcal audit --truth 0.2,0.4,0.6,0.8 --stage ex_ante --n-rows 4"),
        ),
        "rows? proba-as-truth truth stage n-rows measures max-rows seed json markdown",
    ),
    Command(
        "sketch",
        "reduce files of any size to a small, mergeable sketch that other commands can read",
        (
            ("sketch one day", "truthcal sketch monday.parquet -o monday.sketch --proba p --label y"),
            ("build one sketch per country", "truthcal sketch 'day-*.csv' -o week.sketch --by country"),
            ("rows of a match belong together", "truthcal sketch monday.csv -o monday.sketch --group match_id"),
        ),
        "files label proba weight pos-label by group output buckets forecast-time time-unit" + _INPUT,
    ),
    Command(
        "merge",
        "merge sketches into the sketch of all their rows",
        (
            ("merge days into a week", "truthcal merge monday.sketch tuesday.sketch -o week.sketch"),
            ("then assess it", "truthcal assess week.sketch"),
        ),
        "sketches output",
    ),
    Command(
        "report",
        "write the HTML report, one self-contained file",
        (
            ("write predictions.html", f"truthcal report {_CSV}"),
            ("report on two models, by region", f"truthcal report {_CSV} --proba a --proba b --by region -o out.html"),
        ),
        "files class probas proba-prefix weight pos-label hard by group time window time-unit page title exact-distcal "
        "alpha confidence-level adjust min-rows" + _INPUT,
    ),
    Command(
        "check",
        "gate for CI; exit status 0: pass, 1: fail, 2: usage error or invalid data, 3: too little data",
        (
            ("fail if miscalibration is significant at level 0.01", f"truthcal check {_CSV} --alpha 0.01"),
            ("fail if the lower confidence limit of the error exceeds 0.03", f"truthcal check {_CSV} --max-error 0.03"),
            (
                "add the result to the summary of a GitHub job",
                f'truthcal check {_CSV} --summary "$GITHUB_STEP_SUMMARY"',
            ),
        ),
        "files class proba proba-prefix weight pos-label hard by group gate-alpha max-error confidence-level summary "
        "report title exact-distcal adjust min-rows json markdown forecast-time time-unit" + _INPUT,
    ),
    Command(
        "watch",
        "monitor a stream; exit status 0: no alarm, 1: alarm, 2: usage error or invalid data, 3: too little data",
        (
            (
                "every week: score what is new, and raise an alarm if predictions are no longer calibrated",
                "truthcal watch 'log/*.csv' --time date --window 7d --state churn.tcm",
            ),
            (
                "outcomes are due after some time; also monitor each region",
                "truthcal watch loans.csv --time date --due due --by region --window month --state loans.tcm",
            ),
            ("from sketches by day", "truthcal watch days.sketch --window week --state churn.tcm --report churn.html"),
        ),
        "files label proba pos-label watch-time due watch-group by watch-window time-unit state monitor-alpha "
        "watch-report title json markdown",
    ),
    Command(
        "demo",
        "assess three example forecasters: honest, overconfident, and one that games its metric",
        (("write the data and a report into truthcal-demo/", "truthcal demo"),),
        "folder",
    ),
    Command(
        "warmup",
        "compile all code now instead of at first use, for example while a container is built",
        (("in a Dockerfile, after the installation: RUN ...", "truthcal warmup"),),
        "",
    ),
    Command(
        "completion",
        "print a shell script that completes commands, options and file names",
        (("bash", 'eval "$(truthcal completion bash)"'), ("zsh", 'eval "$(truthcal completion zsh)"')),
        "shell",
    ),
)
