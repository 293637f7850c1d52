"""Quotes in CSV files: one that is never closed swallows lines, and pyarrow does not report it."""

import itertools
import re
from collections.abc import Iterable

import numpy as np

from truthcal.io.files.text_input import UTF8_MARK

_QUOTE = ord('"')
_QUOTE_OR_LINE_END = re.compile(rb'["\r\n]')


class _Windows:
    """Pieces of a text that overlap by two bytes, so that each byte appears once with both of its neighbours."""

    _tail = b""

    def next(self, chunk: bytes) -> bytes:
        window = self._tail + chunk if self._tail else b"\n" + chunk.removeprefix(UTF8_MARK)
        self._tail = window[-2:]
        return window


class QuoteCheck:
    """A fast check of all quotes in a text, fed in pieces: each must open or close a whole field."""

    def __init__(self, delimiter: str) -> None:
        self._windows, self._quotes, self._in_order = _Windows(), 0, True
        self._edges = np.zeros(256, bool)
        self._edges[list(b'"\r\n' + delimiter.encode())] = True

    def feed(self, text: bytes) -> None:
        """Check the next piece."""
        window = self._windows.next(text)
        if not self._in_order or not (n := window.count(b'"', 1, -1)):
            return
        letters = np.frombuffer(window, np.uint8)
        at = np.flatnonzero(letters[1:-1] == _QUOTE) + 1
        # Every second quote closes; two in a row, which stand for one, seem to close and to open again.
        opening, closing = at[self._quotes % 2 :: 2], at[1 - self._quotes % 2 :: 2]
        self._in_order = bool(self._edges[letters[opening - 1]].all() and self._edges[letters[closing + 1]].all())
        self._quotes += n

    def are_in_order(self) -> bool:
        """Whether all quotes open or close a whole field, and none is left open. If not, `swallows_lines` decides."""
        self.feed(b"\n\n")
        return self._in_order and self._quotes % 2 == 0


def swallows_lines(chunks: Iterable[bytes], delimiter: str) -> bool:
    """Whether a quote is never closed, or closed on another line by a quote that should open a field. Slow but exact.

    Other quotes inside a field are text, as in ``5" pipe``.
    """
    edges, windows = b"\r\n" + delimiter.encode(), _Windows()
    inside, reopens, lines = False, False, False
    for chunk in itertools.chain(chunks, [b"\n\n"]):
        window = windows.next(chunk)
        for match in _QUOTE_OR_LINE_END.finditer(window, 1, len(window) - 1):
            at = match.start()
            if window[at] != _QUOTE:
                lines = True
            elif inside:
                inside, reopens = False, window[at + 1] == _QUOTE
                if lines and not reopens and window[at + 1] not in edges:
                    return True
            elif reopens:
                inside, reopens = True, False
            elif window[at - 1] in edges:
                inside, lines = True, False
    return inside


def has_line_end(text: bytes) -> bool:
    """Whether a line ends here, outside quotes of CSV."""
    quotes = last = 0
    for match in re.finditer(rb"[\r\n]+", text):
        quotes, last = quotes + text.count(b'"', last, match.start()), match.start()
        if last and quotes % 2 == 0:
            return True
    return False
