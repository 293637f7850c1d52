"""Text from users' data, made fit for a page: names of models, segments, files."""

import re
from collections.abc import Iterable

# What no page and no XML may hold, and what turns the order of letters around for the eye.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
_LONGEST = 28


def clean(text: str) -> str:
    """The text with a replacement mark for each character that is none."""
    return _UNFIT.sub("\ufffd", text)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A name in one line that fits a figure: what begins and ends it, where it is long."""
    line = " ".join(clean(text).split()) or "(no name)"
    if len(line) <= longest:
        return line
    end = longest // 3
    return f"{line[: longest - end - 1]}\u2026{line[-end:]}"


def labels(names: Iterable[str]) -> list[str]:
    """Short names that are all different."""
    found: list[str] = []
    for name in names:
        label, count = shortened(name), 1
        while label in found:
            count += 1
            label = f"{shortened(name, _LONGEST - 5)} ({count})"
        found.append(label)
    return found
