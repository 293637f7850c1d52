"""The options of all commands: their flags, help and types. Defaults are in `Request`."""

import argparse
import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

_ROWS = "CSV, TSV, Parquet, JSON lines or Arrow; a pattern or folder; or `-` for stdin"
SHELLS = ("bash", "zsh")
# shtab.FILE, which is not imported here.
_COMPLETE_FILES = {"bash": "_shtab_compgen_files", "zsh": "_files"}


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
        pass
    cure = ""
    if text.endswith("%"):
        with contextlib.suppress(ValueError):
            cure = f". Write {float(text[:-1]) / 100.0:g}"
    raise argparse.ArgumentTypeError(f"must be a number; got {text!r}{cure}")


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
    "probas": _column_flag("--proba", "predicted probabilities; once per model, or a,b", action="append"),
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
    "by": _column_flag("--by", "segments; repeat for more columns, or a,b", action="append"),
    "roll-up": _column_flag("--by", "keep only these columns of segments, and add up the others", action="append"),
    "group": _column_flag("--group", "which rows belong together: patient, match, question"),
    "key": _column_flag("--key", "column on which to join two files"),
    "time": _column_flag("--time", "times: assess windows of time, and test whether calibration changes"),
    "window": _option(
        "windows for --time: day, week, month, quarter, year, 7d, 12h, or '1000 rows' (default: 10 to 30 windows)",
        "--window",
        metavar="SPEC",
    ),
    "watch-time": _column_flag("--time", "times of the predictions"),
    "watch-window": _option(
        "windows: day, week, month, quarter, year, 7d, 12h, or '1000 rows'", "--window", metavar="SPEC", required=True
    ),
    "due": _column_flag(
        "--due", "times at which outcomes are due; rows are scored then, and may lack an outcome before"
    ),
    "until": _option(
        "close windows that end by this time, such as 2026-06-29, even without later rows", "--until", metavar="TIME"
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
    "percent": _option("probabilities are percentages: divide them by 100", "--percent", action="store_true"),
    "normalize": _option(
        "many classes: divide each row by its sum, of rounded probabilities that add up to 0.99 or 1.01",
        "--normalize",
        action="store_true",
    ),
    "where": _option(
        "keep only rows that meet a condition on any columns: \"season >= 2018 and region in ('north', 'south')\"",
        "--where",
        metavar="CONDITION",
    ),
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
    "sort": _option(
        "order of segments (--by) or of many classes: smallest p-value (default), largest error or bias, most rows, "
        "name",
        "--sort",
        choices=("p", "error", "bias", "rows", "name"),
    ),
    "all": _option("print all segments (--by), windows (--time) or classes", "--all", action="store_true"),
    "plot": _option("also print the reliability diagram, in text", "--plot", action="store_true"),
    "verbose": _option(
        "also print the assessment, with all numbers, and the segments", "-v", "--verbose", action="store_true"
    ),
    "min-rows": _count_flag("--min-rows", "do not test segments with fewer than N rows (default: 30)"),
    "statistic": _option("test statistic (default: information_atb)", "--measure", metavar="NAME"),
    "compared": _option("score of calibration (default: atb)", "--measure", default="atb", metavar="NAME"),
    "measures": _option(
        "compute only this measure; repeat for more, or a,b",
        "--measure",
        dest="measures",
        action="append",
        metavar="NAME",
    ),
    "alternative": _option(
        "greater: miscalibrated; less: closer to the outcomes than chance allows (default: greater)",
        "--alternative",
        choices=("greater", "less", "two-sided"),
    ),
    "method": _option(
        "how to compute the p-value (default: auto)", "--method", choices=("auto", "exact", "asymptotic", "bound")
    ),
    "recalibration-method": _option(
        "how to correct (default: auto, the simplest method that is about as good as the best, if one is needed)",
        "--method",
        choices=("auto", "identity", "temperature", "platt", "beta", "isotonic"),
    ),
    "fix": _option("file to write: the correction, or with --apply the rows", "-o", "--output", metavar="OUT"),
    "apply": _option("file written by `truthcal recalibrate -o`: apply it", "--apply", metavar="FIX"),
    "sql": _option("print the correction as an SQL expression of this dialect", "--sql", metavar="DIALECT"),
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
_FILES = (
    "files",
    "rows",
    "rows?",
    "sketches",
    "report",
    "page",
    "output",
    "summary",
    "state",
    "watch-report",
    "fix",
    "apply",
)
_COLUMNS = (
    "label",
    "class",
    "proba",
    "probas",
    "proba-prefix",
    "normalize",
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
_INPUT_OPTIONS = ("format", "rule", "answers", "percent", "where", "missing", "fractional")
_FORECASTS = ("question", "forecast-time", "close", "horizon")


def add_options(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Add the named options of a command to its parser."""
    columns = parser.add_argument_group("columns (--label and --proba are guessed if the choice is unambiguous)")
    inputs = parser.add_argument_group("evaluation files of language models, and rows to keep or to leave out")
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
