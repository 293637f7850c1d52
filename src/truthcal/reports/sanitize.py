"""Text from users' data, made fit for a page: names of models, segments, files."""

import re
from collections.abc import Iterable

# What no page and no XML may hold, and what turns the order of letters around for the eye.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Letters of a name in a figure and in a heading; of a note or a command, which should stay whole.
_LONGEST, OF_HEADING, OF_NOTE = 28, 200, 1000
# Numbers below 10 with a point, but no percentages, versions or parts of longer numbers.
_DECIMAL = re.compile(r"(?<![\w.,])\d\.(\d+)(?:e[+-]\d+)?(?![\w%]|\.\d)")


def clean(text: str) -> str:
    """The text with a replacement mark for each character that is none."""
    return _UNFIT.sub("\ufffd", text)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A name in one line that fits a figure: what begins and ends it, where it is long."""
    return cut(" ".join(clean(text).split()) or "(no name)", longest)


def cut(text: str, longest: int) -> str:
    """What begins and ends a long text."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 1]}\u2026{text[-end:]}"


def rounded(text: str) -> str:
    """The text with its numbers in three digits: more would pretend to know more than any interval does."""
    return _DECIMAL.sub(_three_digits, text)


def _three_digits(number: re.Match[str]) -> str:
    digits = re.sub(r"e.*|\.", "", number[0]).lstrip("0")
    return number[0] if len(digits) <= 3 else f"{float(number[0]):.3g}"


def labels(names: Iterable[str]) -> list[str]:
    """Short names that are all different."""
    found: dict[str, None] = {}
    for name in names:
        label, count = shortened(name), 1
        while label in found:
            count += 1
            label = f"{shortened(name, _LONGEST - 5)} ({count})"
        found[label] = None
    return list(found)
