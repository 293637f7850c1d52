"""Widths of the columns of a table that must fit into a terminal, and text wrapped to a width."""

import itertools
import re
import textwrap
from collections.abc import Sequence

# A column is not narrower than this, unless its text is: shortened words must remain recognisable.
_NARROWEST = 8
# A word, with what is in parentheses taken as one; and a character that stands for its spaces, which are not broken.
_PHRASE, _GLUE = re.compile(r"(?:\([^()]*\)|[^\s(]|\()+"), "\x00"
_DIGIT = re.compile("[0-9]")


def check_width(width: int | None) -> None:
    """Check the parameter `width` of a printed text."""
    if width is not None and not (hasattr(width, "__index__") and width > 0):
        rule = "must be a positive whole number of characters, or None to wrap nothing"
        raise ValueError(f"`width` {rule}; got {width!r}.")


def wrap_lines(text: str, width: int | None, indent: str = "") -> str:
    """Wrap each line of a text that is longer than `width`; further lines keep its indentation and get `indent`."""
    check_width(width)
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        start = line[: len(line) - len(line.lstrip())] + indent
        lines += _wrapped(line, width, start) if len(line) > width else [line]
    return "\n".join(lines)


def _wrapped(line: str, width: int, indent: str = "") -> list[str]:
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(line, width, subsequent_indent=indent, **options)  # type: ignore[arg-type]


def fit_columns(lines: Sequence[Sequence[str]], room: int, part: str) -> list[int]:
    """Return widths of columns whose sum is at most `room`, or as small as possible.

    The widest columns get narrower first, down to their longest part: a "phrase", which is a word or anything in
    parentheses, a "word", or a "short" word. Numbers are never shortened.
    """
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [max((_least(x, part) for cell in column for x in _parts(cell, part)), default=0) for column in columns]
    while sum(widths) > room:
        excess = [width if width > low else 0 for width, low in zip(widths, least, strict=True)]
        if not any(excess):
            break
        widths[excess.index(max(excess))] -= 1
    return widths


def _parts(cell: str, part: str) -> list[str]:
    return _PHRASE.findall(cell) if part == "phrase" else cell.split()


def _least(text: str, part: str) -> int:
    return min(len(text), _NARROWEST) if part == "short" and not _DIGIT.search(text) else len(text)


def wrap_row(cells: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Wrap the cells of a row to the widths of their columns; return its lines."""
    wrapped = [_wrap_cell(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return [list(line) for line in itertools.zip_longest(*wrapped, fillvalue="")]


def _wrap_cell(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    phrases = [phrase.replace(" ", _GLUE) if len(phrase) <= width else phrase for phrase in _PHRASE.findall(cell)]
    words = [part for phrase in phrases for word in phrase.split(" ") for part in _divided(word, width)]
    return [line.replace(_GLUE, " ") for line in _wrapped(" ".join(words), width)] or [""]


def _divided(word: str, width: int) -> list[str]:
    """Divide a word of letters that fits into two lines with a hyphen; shorten other long ones, such as names."""
    if len(word) > width and word.isalpha() and word.islower() and len(word) < 2 * width:
        return [f"{word[: width - 1]}-", word[width - 1 :]]
    return [shorten(word, width)]


def shorten(text: str, longest: int) -> str:
    """Cut the middle of a long text: names often differ in their last characters."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 1]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - end :]}"
