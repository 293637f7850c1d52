"""Quotes in files of text: one that is never closed swallows lines, and pyarrow says nothing."""

import itertools
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

_MARK = b"\xef\xbb\xbf"
_QUOTE = ord('"')
_SEEN = re.compile(rb'["\r\n]')


class Counted:
    """A stream whose quotes are looked at as it is read."""

    def __init__(self, stream: Any, delimiter: str) -> None:
        self.closed = False
        self._stream, self._windows, self._quotes, self._plain = stream, _Windows(), 0, True
        self._edges = np.zeros(256, bool)
        self._edges[list(b'"\r\n' + delimiter.encode())] = True

    def read(self, size: int = -1) -> bytes:
        """So many bytes."""
        text: bytes = self._stream.read(size)
        self._look(text)
        return text

    def readable(self) -> bool:
        """As pyarrow asks of a file."""
        return True

    def writable(self) -> bool:
        """As pyarrow asks of a file."""
        return False

    def seekable(self) -> bool:
        """As pyarrow asks of a file."""
        return False

    def close(self) -> None:
        """As pyarrow asks of a file; whoever opened the stream closes it."""
        self.closed = True

    def are_in_order(self) -> bool:
        """Whether each quote so far opens or closes a whole field, and none is open. If not, it may still be right."""
        self._look(b"\n\n")
        return self._plain and self._quotes % 2 == 0

    def _look(self, text: bytes) -> None:
        window = self._windows.next(text)
        if not self._plain or not (n := window.count(b'"', 1, -1)):
            return
        letters = np.frombuffer(window, np.uint8)
        at = np.flatnonzero(letters[1:-1] == _QUOTE) + 1
        # Every second one closes; two in a row, which stand for one, seem to close and to open again.
        opening, closing = at[self._quotes % 2 :: 2], at[1 - self._quotes % 2 :: 2]
        self._plain = bool(self._edges[letters[opening - 1]].all() and self._edges[letters[closing + 1]].all())
        self._quotes += n


def lose_lines(chunks: Iterable[bytes], delimiter: str) -> bool:
    """Whether a quote is never closed, or closed on another line by what should open another one. Slow but sure.

    Other quotes in the midst of a field are text, as in ``5" pipe``.
    """
    edges, windows = b"\r\n" + delimiter.encode(), _Windows()
    inside, reopens, lines = False, False, False
    for chunk in itertools.chain(chunks, [b"\n\n"]):
        window = windows.next(chunk)
        for found in _SEEN.finditer(window, 1, len(window) - 1):
            at = found.start()
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


class _Windows:
    """A text in pieces that overlap, so that each byte but the ends of a piece has its neighbours, and comes once."""

    def __init__(self) -> None:
        self._tail = b""

    def next(self, chunk: bytes) -> bytes:
        """The next piece."""
        window = self._tail + chunk if self._tail else b"\n" + chunk.removeprefix(_MARK)
        self._tail = window[-2:]
        return window
