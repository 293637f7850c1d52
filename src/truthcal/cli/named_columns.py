"""Named columns: checks of the columns and the label that the user named, and of files without a header."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NoReturn, Self

from truthcal.core.frame_columns import require_columns
from truthcal.core.params import list_shown, shown
from truthcal.io.errors import refuse_no_rows
from truthcal.io.files.preview import Column
from truthcal.io.files.where import quote_name
from truthcal.io.void_words import first_tie
from truthcal.results.text import escape_control_characters, join_words

_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_BOOLS = {"true": True, "t": True, "1": True, "yes": True, "false": False, "f": False, "0": False, "no": False}
_BOTH = "--missing drop --fractional drop"
_ACCEPTS = "`truthcal measures` accepts fractions."
_CLASSES = (
    "If the model has a column for each class, `assess`, `test`, `compare`, `report` and `check` accept {how}. "
    "Otherwise add a 0/1 column, of one class or of whether a decision was right, and name it with --label."
)
_FEWEST_CLASSES = 3  # columns of probabilities that may be those of classes
DECISION = (
    "If it is the confidence in a decision, add a 0/1 column of whether the decision was right, and name it with "
    "--label."
)
_ROLES = {"--label": "outcomes (0/1, True/False or two labels)", "--proba": "predicted probabilities (in [0, 1])"}
# Columns that a question lists.
_LISTED = 6


class UnclearColumns(ValueError):
    """Columns that cannot be guessed: lines with questions and hints, and the flags that answer them, if any do."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.flags: list[str] = []
        self._where, self._hints, self._has_candidates = where, list[str](), True

    def __str__(self) -> str:
        return " ".join(self.lines)

    def ask(self, flag: str, candidates: Sequence[str], hint: str = "") -> None:
        """Add the question which column has the role of a flag."""
        question = f"Which column of {self._where} holds the {_ROLES[flag]}?"
        self.lines.append(f"{question} Candidates for {flag}: {_list_few(candidates)}.")
        self.flags.append(flagged(flag, candidates[0] if candidates else "COLUMN"))
        self._hints += [hint] if hint else []
        self._has_candidates &= bool(candidates)

    def with_columns(self, names: Sequence[str], flags: Mapping[str, str]) -> Self:
        """Add the hints, and, if a question has no candidates, all columns and those that have another role."""
        self.lines += self._hints
        if self._hints:
            self.flags.clear()  # to name a candidate is not enough
        if not self._has_candidates:
            used = [f"{shown(name)} is already used for {flag}." for name, flag in flags.items()]
            self.lines.append(" ".join([*used, f"All columns: {_list_few(names)}."]))
        return self


def _list_few(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return list_shown(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def check_named(columns: Sequence[Column], named: Mapping[str, Iterable[str | None]], where: str) -> dict[str, str]:
    """Check that the columns named by flags exist once, and that none has two roles; return the flag of each."""
    flags: dict[str, str] = {}
    for flag, name in ((flag, name) for flag, names in named.items() for name in names if name is not None):
        # These come last: they may name columns of the path, or with another role.
        _refuse_nested(flag, name, columns, where)
        is_group = flag in ("--by", "--group", "--key", "--time", "--question", "--close")
        require_columns([(flag, name)], [column.name for column in columns], where)
        if not is_group and any(column.name == name and column.in_path for column in columns):
            problem = f"{flag} names {name!r}, which is a partition column of {where}"
            raise ValueError(f"{problem}; only --by, --group and --time may name it.")
        if not is_group and name in flags:
            by = f"by {flags[name]} and {flag}; name another column"
            if flag == flags[name]:
                by = f"by {flag}; name it once"
            raise ValueError(f"the column {name!r} is named twice, {by}.")
        flags.setdefault(name, flag)
    return flags


def _refuse_nested(flag: str, name: str, columns: Sequence[Column], where: str) -> None:
    """Raise if a name is that of a column of objects or of a field of one: such a column is no suggestion."""
    known = next((column for column in columns if column.name == name), None)
    holders = [c for c in columns if known is None and (name in c.fields or name.rpartition(".")[0] == c.name)]
    if known is not None and known.fields:
        raise ValueError(f"{flag} names {name!r} of {where}, which holds objects. {flatten_hint(columns, where)}")
    if holders and holders[0].fields:
        problem = f"{where} has no column {name!r} (named by {flag}), but {shown(holders[0].name)} holds objects"
        raise ValueError(f"{problem}. {flatten_hint(columns, where)}")


def flatten_hint(columns: Sequence[Column], where: str) -> str:
    """Return a command that makes columns of the fields of objects in JSON lines; "" if there are none."""
    parts = [f".{c.name}" if c.name.isidentifier() else f'."{c.name}"' for c in columns if c.fields]
    if not parts:
        return ""
    return f"Make columns of their fields: jq -c '. + {' + '.join(parts)}' {shlex.quote(where)} > flat.jsonl"


def require_header(columns: Sequence[Column], flags: Sequence[str], where: str) -> None:
    """Raise if a file has no rows, or numbers in place of the header that names columns; `flags` would name them."""
    names = [column.name for column in columns if not column.in_path]
    refuse_no_rows(sum(column.kind != "nothing" for column in columns if not column.in_path), where)
    numbers = [name for name in names if _NUMBER.fullmatch(name)]
    is_numbered = names == [str(i) for i in range(len(names))]
    is_value = any("." in name and 0.0 <= float(name) <= 1.0 for name in numbers)
    if is_value or (len(numbers) == len(names) and not is_numbered):
        problem = f"the first line of {where} holds numbers ({list_shown(names)}), where it should name the columns."
        cure = f"Add a line with names at the top, or, if these are the names, pass them with {join_words(flags)}."
        raise ValueError(f"{problem} {cure}")


def convert_label(column: Column, typed: str, where: str) -> str | int | float | bool:
    """Convert the label that the user named to the type of the column's values."""
    label: str | int | float | None = typed
    if column.kind == "bool":
        label = _BOOLS.get(typed.casefold())
    elif column.kind == "number":
        number = float(typed) if _NUMBER.fullmatch(typed) else None
        label = int(Decimal(typed)) if number is not None and number.is_integer() else number  # exact above 2^53
    is_complete = column.kind in ("text", "number") and not column.many and len(column.values) > 1
    is_other_case = typed.casefold() in [str(value).casefold() for value in column.values]
    if label is None or (label not in column.values and (is_complete or is_other_case)):
        problem = f"{flagged('--pos-label', typed)}: there is no such label in {shown(column.name)} of {where}"
        raise ValueError(f"{problem}; it holds {list_shown(column.values, more=column.many)}.")
    return label


def classes_hint(columns: Sequence[Column]) -> str:
    """Say how to name the columns of many classes: by what the names of these columns have in common, if they do."""
    names = [column.name for column in columns if column.in_unit and column.many and not column.in_path]
    prefix = _common_prefix(names)
    starting = [column.name for column in columns if prefix and column.name.startswith(prefix)]
    how = "the start of their names with --proba-prefix, or their names with --proba"
    if len(names) >= _FEWEST_CLASSES and starting == names and prefix not in names:
        how = f"the start of their names: {flagged('--proba-prefix', prefix)}"
    elif len(names) >= _FEWEST_CLASSES:
        how = f"their names: {flagged('--proba', ','.join(names[:_LISTED]))}" + ",..." * (len(names) > _LISTED)
    return _CLASSES.format(how=how)


def _common_prefix(names: Sequence[str]) -> str:
    """Return the letters that all names start with."""
    first, last = min(names, default=""), max(names, default="")  # the most different ones
    return next((first[:i] for i, letter in enumerate(first) if letter != last[i : i + 1]), first)


def ask_label(column: Column, where: str, columns: Sequence[Column] = ()) -> NoReturn:
    """Ask the user to name which of two labels counts as 1, or refuse more than two."""
    subject, values = f"{shown(column.name)} of {where}", list_shown(column.values, more=column.many)
    if column.many or len(column.values) > 2:
        tie = only_tie(column)
        hint = void_hint(column) if column.void else tie_hint(column, tie) if tie else classes_hint(columns)
        raise ValueError(f"{word_many_labels(column, where)}. {hint}")
    if len(column.values) == 1:
        flag = flagged("--pos-label", column.values[0])
        problem = f"the first rows of {subject} hold only {values}, and outcomes must be 0/1, True/False or two labels"
        cure = f"If this label counts as 1 and the file has one other label, use {flag}; else name another column"
        raise ValueError(f"{problem}. {cure}.")
    flags = " or ".join(flagged("--pos-label", value) for value in column.values)
    raise ValueError(f"Which label in {subject} counts as 1, the event? It holds {values}. Use {flags}.")


def word_many_labels(column: Column, where: str) -> str:
    """Say that a column has more than two labels."""
    values = list_shown(column.values, more=column.many)
    rule = "outcomes must be 0/1, True/False or two labels"
    return f"{shown(column.name)} of {where} holds more than two different labels ({values}); {rule}"


def void_hint(column: Column) -> str:
    """Name the option that leaves out rows whose outcome is a word such as "void"; and that for fractions, too."""
    start = f"{shown(column.void)} in {shown(column.name)} is no outcome"
    if column.fraction:
        rest = f"and {column.fraction} is a fraction (a tie or a partial resolution?)"
        return f"{start}, {rest}; to leave out both kinds of rows and count them, add {_BOTH}. {_ACCEPTS}"
    return f"{start}; to leave out such rows, add --missing drop."


def only_tie(column: Column) -> str:
    """Return the word for a tie, such as "draw", of a column that has two other labels; else ""."""
    return first_tie(column.labels) if len(column.labels) == 3 else ""


def tie_hint(column: Column, tie: str) -> str:
    """Name the option that leaves out rows whose outcome is a word such as "draw"."""
    return f"{shown(tie)} is neither of two outcomes; to leave out such rows, add {where_not(column.name, tie)}."


def where_not(name: str, text: str) -> str:
    """Return the option, as typed in a shell, that leaves out rows with this text in a column."""
    quoted = quote_name(name)
    condition = f"{quoted} != '{text.replace(chr(39), 2 * chr(39))}'"
    return "--where " + (shlex.quote(condition) if re.search(r'["$`\\!]', quoted + text) else f'"{condition}"')


def refuse_missing_and_fractional(column: Column, where: str) -> None:
    """Raise one error, not two one after the other, if outcomes are missing in some rows and fractions in others."""
    if column.fraction and (column.missing or column.void):
        kinds = f"missing values and fractions such as {column.fraction} (a tie or a partial resolution?)"
        cure = f"to leave out both kinds of rows and count them, add {_BOTH}"
        raise ValueError(f"{shown(column.name)} of {where} holds {kinds}; {cure}. {_ACCEPTS}")


def fraction_hint(column: Column) -> str:
    """Name the option that leaves out rows whose outcome is a fraction, such as a tie."""
    fraction = next((value for value in column.values if value not in (0, 1)), column.values[0])
    cure = "to leave out such rows and count them, add --fractional drop; `truthcal measures` accepts them."
    if column.missing:
        cure = f"to leave out such rows and those without an outcome, and count them, add {_BOTH}. {_ACCEPTS}"
    problem = f"{shown(column.name)} holds fractions such as {fraction!r} (a tie or a partial resolution?)"
    return f"{problem}; {cure}"


def flagged(flag: str, value: object) -> str:
    """Format a flag that names a column or label, and its value, as typed in a shell."""
    text = escape_control_characters(str(value))
    return f"{flag}{'=' if text.startswith('-') else ' '}{shlex.quote(text)}"
