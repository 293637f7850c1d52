"""Labels of classes, matched as text: exactly, or else regardless of case, spaces, hyphens and underscores."""

import re
from collections import Counter
from collections.abc import Sequence

from truthcal.core.params import shown

# A whole number that was written as a float: 3.0.
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")
_SHOWN = 4  # matches in a note


class LabelMatcher:
    """Matches labels with classes, and remembers which label of the rows each class has.

    A label that equals no class is matched with the only class that differs from it in case, spaces, hyphens or
    underscores. A class has one label: if it would have two, the second one does not match.
    """

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        self._exact = {_without_fraction(label): k for k, label in enumerate(classes)}
        self._exact |= {label: k for k, label in enumerate(classes)}
        times = Counter(map(_folded, classes))
        self._folded = {_folded(label): k for k, label in enumerate(classes) if times[_folded(label)] == 1}
        self._labels: dict[int, str] = {}

    def exact_code(self, value: object) -> int:
        """Return the number of the class that a label equals; -1 if there is none."""
        text = str(value)
        return self._exact.get(text, self._exact.get(_without_fraction(text), -1))

    def code(self, value: object) -> int:
        """Return the number of the class that matches a label; -1 if there is none, or if it has another label."""
        text = _without_fraction(str(value))
        code = self.exact_code(value)
        code = self._folded.get(_folded(text), -1) if code < 0 else code
        return code if code < 0 or self._labels.setdefault(code, text) == text else -1

    def conflict(self, value: object) -> str:
        """Say which other label the only class that a label could match has, and what to change; "" if none."""
        code = self._folded.get(_folded(str(value)), -1)
        if code not in self._labels:
            return ""
        both = f"the class {shown(self.classes[code])} also has the label {shown(self._labels[code])}"
        return f"but {both}: they differ in case or spaces. Make them the same."

    def notes(self, column: str) -> list[str]:
        """Say which labels of a column were matched with classes that they do not equal."""
        pairs = [(x, self.classes[k]) for k, x in sorted(self._labels.items()) if self.exact_code(x) != k]
        if not pairs:
            return []
        texts = [f"{shown(label)} with {shown(name)}" for label, name in pairs[:_SHOWN]]
        more = f", and {len(pairs) - _SHOWN:,} more" if len(pairs) > _SHOWN else ""
        start = f"Labels in {shown(column)} and names of columns differ in case or spaces; they were matched"
        return [f"{start}: {', '.join(texts)}{more}."]


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]+", "", _without_fraction(text)).casefold()


def _without_fraction(text: str) -> str:
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text
