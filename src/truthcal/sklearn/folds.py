"""Notice stratified folds: test folds whose numbers of events are equal, up to rounding.

A scorer sees one test fold at a time, and never the object that made the folds. It therefore remembers the number of
events in each fold. If rows are assigned to folds without regard to the outcome, these numbers vary, and the
probability that they differ by at most 1 is known.
"""

import threading
import zlib
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

# Probability of a false alarm, whatever the number of folds. Runs of equal folds after the first one must be rarer.
_FALSE_ALARM = 0.004
_MOST_HISTORIES = 256
_PERIODS = range(2, 11)


def chance_of_equal_events(sizes: list[int], events: list[int]) -> float:
    """Probability that folds of about the same size have numbers of events that differ by at most 1.

    Rows are assigned to the folds at random, and the total number of events is given. Then k folds of n rows with
    c = total // k and r = total % k have C(k, r) C(n, c)^(k - r) C(n, c + 1)^r equal assignments of C(k n, total).
    """
    k, total, rows = len(sizes), sum(events), sum(sizes)
    c, r = divmod(total, k)
    log_choices = _log_choose(k, r) + (k - r) * _log_choose(rows / k, c)
    log_choices += r * _log_choose(rows / k, c + 1) if r else 0.0
    return float(np.exp(log_choices - _log_choose(rows, total)))


def are_stratified(sizes: list[int], events: list[int], false_alarm: float = _FALSE_ALARM) -> bool:
    """Whether folds of one size have numbers of events that are too equal for chance."""
    equal = max(sizes) - min(sizes) <= 1 and max(events) - min(events) <= 1
    return equal and chance_of_equal_events(sizes, events) <= false_alarm


def _log_choose(n: float, k: float) -> float:
    return float(-np.log1p(n) - betaln(n - k + 1.0, k + 1.0))


def most_frequent(y: NDArray[Any]) -> Any:
    """Return the most frequent label, whose number varies most between folds of few classes."""
    labels, counts = np.unique(y, return_counts=True)
    return labels[counts.argmax()]


@dataclass
class FoldHistory:
    """Test folds that a scorer has seen in this process."""

    seen: set[tuple[int, str]] = field(default_factory=set)
    label: Any = None
    sizes: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    restarts: int = -1
    warned: bool = False

    def notice(self, X: Any, y: Any) -> bool:
        """Add a test fold. Returns True, once for each data set, if the folds so far are stratified.

        A fold that was seen before, for another candidate or in another search, is not added again.
        """
        outcomes = np.asarray(y)
        if outcomes.ndim != 1 or len(outcomes) == 0 or (key := _key_of(X, outcomes)) in self.seen:
            return False
        self.seen.add(key)
        if self.label is None or not np.any(outcomes == self.label):
            self.label, self.sizes, self.events, self.warned = most_frequent(outcomes), [], [], False
            self.restarts += 1
        self.sizes.append(len(outcomes))
        self.events.append(int(np.sum(outcomes == self.label)))
        if max(self.sizes) - min(self.sizes) > 1 or max(self.events) - min(self.events) > 1:
            self.sizes, self.events, self.warned = self.sizes[-1:], self.events[-1:], False
            self.restarts += 1
        if self.warned:  # a repetition of these folds, or further ones
            return False
        self.warned = are_stratified(self.sizes, self.events, _FALSE_ALARM / (1 + self.restarts) ** 2)
        return self.warned


def _key_of(X: Any, y: NDArray[Any]) -> tuple[int, str]:
    """Identify a test fold by its outcomes; if these are sorted or periodic, also by the first row of its features.

    Sorted or periodic outcomes, such as those of matched pairs in the order of the file, are the same in all folds.
    Features alone do not identify a fold: permutation importance and feature selection change them.
    """
    labels, codes = np.unique(y, return_inverse=True)
    steps = np.diff(codes)
    ordered = bool((steps >= 0).all() or (steps <= 0).all()) or _is_periodic(codes)
    first = joblib.hash(X[:1]) if ordered and hasattr(X, "__getitem__") else ""
    return zlib.crc32(codes.astype(np.int32).tobytes(), len(labels)), first


def _is_periodic(codes: NDArray[np.intp]) -> bool:
    """Whether outcomes repeat after a few rows."""
    return any(bool((codes[period:] == codes[:-period]).all()) for period in _PERIODS if len(codes) >= 2 * period)


# Scorers are pickled for each task that runs in another process. Their histories stay with the process.
_HISTORIES: dict[str, FoldHistory] = {}
_LOCK = threading.Lock()


def notice_fold(scorer: str, X: Any, y: Any) -> list[int] | None:
    """Add a test fold to the history of a scorer (any name).

    Returns the numbers of events if folds are stratified, once for each data set.
    """
    with _LOCK:
        while len(_HISTORIES) >= _MOST_HISTORIES and scorer not in _HISTORIES:
            del _HISTORIES[next(iter(_HISTORIES))]
        history = _HISTORIES.setdefault(scorer, FoldHistory())
        return history.events if history.notice(X, y) else None
