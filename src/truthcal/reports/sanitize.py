"""Names from users' data, made valid for a page: names of models, segments, files."""

import re
from collections.abc import Iterable

from truthcal.results.text import shorten

# Characters that HTML or XML forbid, and those that reverse the direction of text.
_INVALID = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Characters of a name in a figure and in a heading; of a note or a command, which should stay whole.
_LONGEST, MAX_HEADING, MAX_NOTE = 28, 200, 1000


def clean(text: str) -> str:
    """Replace each character that a page must not contain by U+FFFD."""
    return _INVALID.sub("\ufffd", text)


def one_line(name: str, longest: int = _LONGEST) -> str:
    """Return a name on one line, short enough for a figure."""
    return shorten(" ".join(clean(name).split()) or "(no name)", longest)


def unique_labels(names: Iterable[str]) -> list[str]:
    """Return short names that are all different."""
    labels: dict[str, None] = {}
    for name in names:
        label, count = one_line(name), 1
        while label in labels:
            count += 1
            label = f"{one_line(name, _LONGEST - 5)} ({count})"
        labels[label] = None
    return list(labels)
