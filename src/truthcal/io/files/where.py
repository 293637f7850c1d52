"""Conditions on columns, as in ``season >= 2018 and region in ('north', 'south')``: parsed, with errors that point."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from truthcal.core.checks import invalid
from truthcal.core.params import shown

_TOKENS = re.compile(
    r"""(?P<space>\s+)
    | (?P<date>[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})
    | (?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    | (?P<malformed>[+-]?[0-9][\w.]*)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`[^`]+`)
    | (?P<operator><=|>=|<>|!=|==|&&|\|\||[=<>(),&|!~])
    | (?P<word>[^\W\d][\w.]*)""",
    re.VERBOSE,
)
_OPERATORS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KEYWORDS = ("and", "or", "not", "in", "is", "null", "true", "false")
# Operators of other languages -> what to write here.
_OTHERS = {"&": "and", "&&": "and", "|": "or", "||": "or", "!": "not", "~": "not"}
_UNSUPPORTED = {
    "between": "write `x >= 1 and x <= 2`",
    "not between": "write `x < 1 or x > 2`",
    "like": "compare the whole text, or list texts: `x in ('a', 'b')`",
    "not like": "compare the whole text, or list texts: `x not in ('a', 'b')`",
}
_VALUE = "a number, text in quotes, true or false"
_NAME = re.compile(r"[^\W\d]\w*")
_DATE = re.compile(r"^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?![0-9])")
_DEEPEST = 100  # parentheses within each other
EXACT = 2**53  # below it, all integers are floats


class Value(NamedTuple):
    """A literal, and its place in the text of the condition."""

    value: int | float | str | bool
    at: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with literals: one, none for "is null", several for "in". `at` is its place in the text."""

    column: str
    at: int
    operator: str
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    condition: "Condition"


@dataclass(frozen=True, slots=True)
class Joined:
    """Two or more conditions joined by "and" or by "or"."""

    operator: str
    conditions: tuple["Condition", ...]


Condition = Comparison | Not | Joined


class Cell(NamedTuple):
    """A text of a column, and the row of the file that holds it."""

    text: str
    row: int


@dataclass(slots=True)
class TextFacts:
    """Facts about a text column of a file, from the batches so far: the result must not depend on the batches."""

    first: Cell | None = None  # the first value that is not a word for a missing one
    missing: Cell | None = None  # the first word that "is null" took for a missing value, before there was a `first`
    times: dict[bool, Cell] = field(default_factory=dict)  # the first time with (True) or without a time zone


@dataclass(slots=True)
class TextHint:
    """Values of a column that is compared with text, for the error if no row is kept."""

    column: str
    matched: bool = False  # whether a row has met the comparison
    values: dict[str, None] = field(default_factory=dict)  # a few distinct ones, in order
    similar: str = ""  # one that differs from the literal only by case or spaces


@dataclass(frozen=True, slots=True)
class Where:
    """A condition that rows must meet, and its text; and what the rows read so far have shown."""

    text: str
    condition: Condition
    counts: dict[str, tuple[int, int]] = field(default_factory=dict, compare=False)  # rows read and kept, by file
    facts: dict[tuple[str, str], TextFacts] = field(default_factory=dict, compare=False)  # by file and column
    hints: dict[int, TextHint] = field(default_factory=dict, compare=False)  # by place of the comparison

    @property
    def comparisons(self) -> list[Comparison]:
        """All comparisons of the condition, in order."""
        return list(_comparisons(self.condition))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition names, each once."""
        return tuple(dict.fromkeys(comparison.column for comparison in self.comparisons))

    @property
    def text_columns(self) -> set[str]:
        """The columns that are compared with text."""
        pairs = [(comparison.column, value) for comparison in self.comparisons for value in comparison.values]
        return {column for column, value in pairs if isinstance(value.value, str)}

    @property
    def rows(self) -> tuple[int, int]:
        """The numbers of rows read and kept, of all files."""
        return sum(read for read, _ in self.counts.values()), sum(kept for _, kept in self.counts.values())

    @property
    def note(self) -> str:
        """Say how many rows were kept, for the output."""
        read, kept = self.rows
        return f"kept {kept:,} of {read:,} rows (--where {self.text})."

    def error(self, at: int, problem: str) -> Exception:
        """Build an error that points at a place of the text."""
        return where_error(self.text, at, problem)


def where_error(text: str, at: int, problem: str) -> Exception:
    """Build the error of a condition. The command line shows the text, and a mark below the place."""
    error = invalid("where", problem)
    vars(error).update(pointer=(text, at))
    return error


def parse_where(text: str) -> Where:
    """Parse a condition. Raises an error that points at the first place that cannot be understood."""
    return Where(text.strip(), _Parser(text.strip()).parse())


def _comparisons(condition: Condition) -> Iterator[Comparison]:
    if isinstance(condition, Comparison):
        yield condition
    elif isinstance(condition, Not):
        yield from _comparisons(condition.condition)
    else:
        for each in condition.conditions:
            yield from _comparisons(each)


def quote_name(name: str) -> str:
    """Return the name of a column as a condition must write it: in double quotes if it is a keyword or has signs."""
    is_plain = _NAME.fullmatch(name) and name.lower() not in _KEYWORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def exact_number(text: str) -> int | float:
    """Parse a number without rounding large integers; others are floats."""
    number = float(text)
    if not EXACT <= abs(number) < math.inf:
        return number
    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else number


class _Token(NamedTuple):
    """A word, sign or literal of the text. The last token is empty, of kind "end"."""

    kind: str
    text: str
    at: int

    @property
    def keyword(self) -> str:
        """The keyword, in lower case; "" if it is none."""
        word = self.text.lower() if self.kind == "word" else ""
        return word if word in _KEYWORDS else ""

    @property
    def is_column(self) -> bool:
        return self.kind == "quoted" or (self.kind == "word" and not self.keyword)


class _Parser:
    """A recursive descent parser: "or" binds weakest, then "and", then "not"."""

    def __init__(self, text: str) -> None:
        self._text, self._place, self._depth = text, 0, 0
        self._tokens = list(self._split())

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            match = _TOKENS.match(self._text, at)
            if match is None:
                letter, cure = self._text[at], "put names with spaces or signs in double quotes."
                unexpected = f"has an unexpected character {letter!r}; {cure}"
                raise self._error(at, "has a quote that is never closed." if letter in "'\"`" else unexpected)
            if match.lastgroup in ("date", "malformed"):
                raise self._error(at, (_date_problem if match.lastgroup == "date" else _number_problem)(match[0]))
            if match[0] in _OTHERS:
                raise self._error(at, f"has {match[0]!r} here; write `{_OTHERS[match[0]]}`.")
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match[0], at)
            at = match.end()
        yield _Token("end", "", len(self._text))

    def _error(self, at: int, problem: str) -> Exception:
        return where_error(self._text, at, problem)

    def parse(self) -> Condition:
        if self._next.kind == "end":
            raise self._error(0, "is empty; write a condition, such as `season >= 2018`.")
        condition = self._parse_or()
        if self._next.kind != "end":
            raise self._error(
                self._next.at, f"has {self._next.text!r} after a complete condition; join two by `and` or `or`."
            )
        return condition

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _take(self) -> _Token:
        token = self._next
        self._place += token.kind != "end"
        return token

    def _skip(self, *words: str) -> bool:
        """Skip these keywords or signs if they come next."""
        following = self._tokens[self._place : self._place + len(words)]
        if [token.keyword or token.text for token in following] != list(words):
            return False
        self._place += len(words)
        return True

    def _parse_or(self) -> Condition:
        return self._parse_joined("or", self._parse_and)

    def _parse_and(self) -> Condition:
        return self._parse_joined("and", self._parse_not)

    def _parse_joined(self, operator: str, parse: Callable[[], Condition]) -> Condition:
        conditions = [parse()]
        while self._skip(operator):
            conditions.append(parse())
        return conditions[0] if len(conditions) == 1 else Joined(operator, tuple(conditions))

    def _parse_not(self) -> Condition:
        is_negated = False
        while self._skip("not"):
            is_negated = not is_negated
        condition = self._parse_comparison()
        return Not(condition) if is_negated else condition

    def _parse_parentheses(self) -> Condition:
        """Parse what follows an opening parenthesis, and the closing one."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(self._next.at, f"has more than {_DEEPEST} parentheses within each other.")
        condition = self._parse_or()
        if not self._skip(")"):
            raise self._error(self._next.at, "needs a closing parenthesis here.")
        self._depth -= 1
        return condition

    def _parse_comparison(self) -> Condition:
        if self._skip("("):
            return self._parse_parentheses()
        first = self._next
        if first.is_column:
            return self._after_column(_without_quotes(self._take()), first.at)
        value = self._parse_value("the name of a column")
        operator = self._parse_operator(first.text)
        column = self._take()
        if not column.is_column:
            raise self._error(column.at, "needs the name of a column here, since there is none on the left.")
        return Comparison(_without_quotes(column), column.at, _FLIPPED[operator], (value,))

    def _after_column(self, name: str, at: int) -> Condition:
        """Parse what follows a column: a comparison, a list, or null."""
        if self._skip("is", "not", "null"):
            return Not(Comparison(name, at, "is null"))
        if self._skip("is", "null"):
            return Comparison(name, at, "is null")
        if self._skip("not", "in"):
            return Not(self._parse_list(name, at))
        if self._skip("in"):
            return self._parse_list(name, at)
        operator = self._parse_operator(name)
        return Comparison(name, at, operator, (self._parse_value(_VALUE),))

    def _parse_operator(self, after: str) -> str:
        token = self._take()
        if token.text in _OPERATORS:
            return _OPERATORS[token.text]
        words = f"{token.text} {self._next.text}" if token.keyword == "not" else token.text
        if cure := _UNSUPPORTED.get(words.lower()):
            raise self._error(token.at, f"does not know `{words}`; {cure}.")
        expected = f"needs =, !=, <, <=, >, >=, in, or is null after {shown(after)}"
        hint = "; put names with spaces or signs in double quotes" if token.kind in ("word", "operator") else ""
        raise self._error(token.at, f"{expected}{hint}.")

    def _parse_list(self, name: str, at: int) -> Comparison:
        if not self._skip("("):
            raise self._error(self._next.at, "needs a list in parentheses after `in`: (1, 2).")
        values = [self._parse_value(_VALUE)]
        while self._skip(","):
            values.append(self._parse_value(_VALUE))
        if not self._skip(")"):
            raise self._error(self._next.at, "needs a comma or a closing parenthesis here.")
        kinds = [str if isinstance(value.value, str) else float for value in values]
        other = next((value for value, kind in zip(values, kinds, strict=True) if kind != kinds[0]), None)
        if other is not None:
            raise self._error(other.at, "mixes numbers and text in one list.")
        return Comparison(name, at, "in", tuple(values))

    def _parse_value(self, expected: str) -> Value:
        token = self._take()
        if token.kind in ("text", "quoted") and token.text[0] != "`":
            return Value(_without_quotes(token), token.at)
        if token.kind == "number":
            number = exact_number(token.text)
            whole = token.text.lstrip("+-").isdecimal() and math.isfinite(number)
            return Value(int(number) if whole else number, token.at)
        if token.keyword in ("true", "false"):
            return Value(token.keyword == "true", token.at)
        if token.keyword == "null":
            raise self._error(token.at, "compares with null; write `is null` or `is not null`.")
        if token.is_column:
            text = "'" + _without_quotes(token).replace("'", "''") + "'"
            problem = f"has {token.text!r} in place of a value; put text in single quotes: {text}."
            raise self._error(token.at, f"{problem} Two columns cannot be compared.")
        raise self._error(token.at, f"needs {expected} here.")


def _without_quotes(token: _Token) -> str:
    """Return the text or the name that a token stands for."""
    quote = token.text[0]
    return token.text[1:-1].replace(2 * quote, quote) if token.kind in ("text", "quoted") else token.text


def pad_date(text: str) -> str:
    """Write the month and day at the start of a text with two digits, as in 2024-01-05 for 2024-1-5."""
    return _DATE.sub(lambda match: f"{match[1]}-{match[2]:0>2}-{match[3]:0>2}", text)


def _date_problem(text: str) -> str:
    """Describe a date without quotes, for an error."""
    try:
        return f"has a date without quotes; write '{date.fromisoformat(pad_date(text))}'."
    except ValueError:
        return f"has {text!r}, which is not a date; write dates as in '2024-01-31'."


def _number_problem(text: str) -> str:
    """Describe a word that starts with a digit, for an error."""
    try:
        return f"has {text!r}, which is not a number here; write {int(text, 0)}."
    except ValueError:
        return (
            f"has {text!r}, which is neither a number nor a name; put names that start with a digit in double quotes."
        )
