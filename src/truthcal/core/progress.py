"""A progress bar on stderr, shown only on a terminal."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import Self, TextIO

# Seconds before the line appears, and between two drawings of it.
_PATIENCE, _PAUSE = 1.0, 0.1
_BAR = 24


class progress:
    """One line on stderr with a bar and the remaining time, drawn on a terminal if the work takes more than 1 s.

    Use as ``with progress(total, "label") as bar: ... bar.advance(k)``, from any thread, or as
    ``for i in progress(total, "label")``. It never raises, and clears its line at the end.

    Parameters
    ----------
    total : int
        Units of work. It may be an estimate: advancing beyond it is allowed.
    label : str
        Name of the work, in a word or two.

    Examples
    --------
    >>> from truthcal.core.progress import progress
    >>> with progress(3, "counting") as bar:
    ...     for _ in range(3):
    ...         bar.advance()
    >>> [i for i in progress(3, "counting")]
    [0, 1, 2]
    """

    def __init__(self, total: int, label: str) -> None:
        self.total, self.label = max(int(total), 1), label
        self.done = 0
        self._lock = threading.Lock()
        self._start = time.monotonic()
        self._next = self._start + _PATIENCE
        self._drawn = 0
        self._stream = watched_stderr()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[int]:
        with self:
            for done in range(self.total):
                yield done
                self.advance()

    def advance(self, k: int = 1) -> None:
        """Record that `k` more units are done."""
        with self._lock:
            self.done += k
            now = time.monotonic()
            if self._stream is not None and now >= self._next:
                self._next = now + _PAUSE
                self._write(self._line(now - self._start))

    def close(self) -> None:
        """Clear the line if it was drawn."""
        with self._lock:
            if self._drawn:
                self._write("", end="\r")
            self._stream = None

    def _line(self, elapsed: float) -> str:
        share = min(self.done / self.total, 1.0)
        full = int(_BAR * share)
        left = f", {_format_time(elapsed * (1.0 - share) / share)} left" if share > 0.0 else ""
        return f"{self.label} [{'#' * full}{'.' * (_BAR - full)}] {share:4.0%}, {_format_time(elapsed)} so far{left}"

    def _write(self, line: str, end: str = "") -> None:
        if self._stream is None:
            return
        try:
            line = line[: shutil.get_terminal_size().columns - 1]  # a line that wraps cannot be cleared
            self._stream.write("\r" + line.ljust(self._drawn) + end)
            self._stream.flush()
            self._drawn = len(line)
        except Exception:  # a stream may raise anything (closed, broken pipe, encoding); go on without the bar
            self._stream = None


def watched_stderr() -> TextIO | None:
    """Return stderr for the progress bar if it is a terminal."""
    with contextlib.suppress(Exception):  # a closed stream raises; a replaced one may raise anything
        if sys.stderr is not None and sys.stderr.isatty():
            return sys.stderr
    return None


def _format_time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
