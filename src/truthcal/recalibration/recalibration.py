"""The result of `recalibrate`: a function from predicted to recalibrated probabilities, and the evidence for it."""

import json
import math
import numbers
import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from truthcal.core.checks import check_proba, invalid
from truthcal.core.file_format import write_atomically
from truthcal.core.params import check_choice, check_level, shown
from truthcal.recalibration.choice import UNCORRECTED
from truthcal.recalibration.maps import METHODS, IdentityMap, RecalibrationMap, read_map
from truthcal.recalibration.sql import map_sql
from truthcal.recalibration.stored_fields import read_stored
from truthcal.results.assessment import Assessment
from truthcal.results.base import PageResult
from truthcal.results.recalibration import METHOD_NAMES, Candidate, RecalibrationComparison, candidate_table
from truthcal.results.text import Page, number, percent, upper_limit

_FORMAT, _VERSION = "truthcal recalibration", 1
_NOT_STORED = ("assessment", "before", "after")
# Stored entries beside method and map, and their types.
_STORED: dict[str, Any] = {
    "reason": str,
    "comparison": RecalibrationComparison,
    "candidates": tuple[Candidate, ...],
    "warnings": tuple[str, ...],
}


@dataclass(frozen=True, slots=True, repr=False)
class Recalibration(PageResult):
    """A function that recalibrates probabilities: ``fix(p_new)``. Returned by `recalibrate`. Print it.

    Attributes
    ----------
    method : str
        "identity" (predictions stay as they are), "temperature", "platt", "beta" or "isotonic".
    map : IdentityMap, LogisticMap or InterpolatedMap
        The fitted function.
    reason : str
        Why this method was chosen.
    comparison : RecalibrationComparison
        Scores before and after, of rows that the map was not fitted to.
    candidates : tuple of Candidate
        The methods that were tried, and their log losses.
    warnings : tuple of str
        Reasons to doubt a method that was requested; or one that says that "auto" leaves predictions as they are
        although miscalibration is significant.
    assessment : Assessment or None
        Assessment of all predictions as they were: the reason for a recalibration. None if it was read from a file, as
        are the next two.
    before, after : Assessment or None
        Assessments before and after of the rows in `comparison`.
    """

    method: str
    map: RecalibrationMap
    reason: str
    comparison: RecalibrationComparison
    candidates: tuple[Candidate, ...] = ()
    warnings: tuple[str, ...] = ()
    assessment: Assessment | None = field(default=None, compare=False)
    before: Assessment | None = field(default=None, compare=False)
    after: Assessment | None = field(default=None, compare=False)

    def __call__(self, y_proba: object) -> Any:
        """Recalibrate probabilities: one number, or a column of any type that `assess` accepts, which may be empty.

        Returns a numpy array of the same length, or one number.
        """
        is_number = isinstance(y_proba, numbers.Real) and not isinstance(y_proba, bool)
        if is_number or getattr(y_proba, "ndim", None) == 0:  # such as numpy.array(0.5), or a tensor
            return self([y_proba])[0]
        if _is_empty_column(y_proba):
            return np.zeros(0)
        p = check_proba(y_proba, "y_proba")
        return np.array(self.map(p.astype(np.float64)))  # a copy, also if nothing changes

    @property
    def changes(self) -> bool:
        """Whether predictions change; False for the method "identity"."""
        return not isinstance(self.map, IdentityMap)

    @property
    def verdict(self) -> str:
        """The decision, its reason, the error before and the effect in words."""
        if not self.changes:
            return f"Predictions stay as they are.\n{self.reason}"
        lines = [f"Recalibrate by {METHOD_NAMES[self.method]}.", self.reason, *self._error_before()]
        return "\n".join([*lines, self.comparison.verdict])

    def _error_before(self) -> list[str]:
        """Say how large the error of all rows is without the map; nothing if the assessment is not known."""
        if self.assessment is None or math.isnan(self.assessment.error.low):
            return []
        error, rows = self.assessment.error, f"all {self.assessment.n:,} rows"
        level = percent(error.confidence_level)
        if error.low == 0.0:
            return [f"Before: the error of {rows} is at most {upper_limit(error.high)} ({level} confidence)."]
        return [f"Before: the error of {rows} is about {number(error.estimate, 3)} ({level}: {error.ends()})."]

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Plot the map, with matplotlib: `RecalibrationDisplay.plot` with these arguments. Returns the Display."""
        from truthcal.plots.recalibration import RecalibrationDisplay

        return RecalibrationDisplay(self).plot(ax, **options)

    def to_sql(self, dialect: str = "duckdb", *, y_proba: str = "p") -> str:
        """Return the SQL expression that recalibrates the column `y_proba`.

        Parameters
        ----------
        dialect : str, default "duckdb"
            As for `sketch_sql`.
        y_proba : str, default "p"
            Name of the column. It is quoted.

        Returns
        -------
        str
            An expression for a SELECT; NULL where the column is not a probability between 0 and 1.
        """
        return map_sql(self.map, dialect, y_proba)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the recalibration as JSON, which `from_json` reads; also write it to the file `path` if given."""
        stored = {name: value for name, value in self.to_dict().items() if name not in _NOT_STORED}
        content = {"format": _FORMAT, "version": _VERSION, **_without_nan(stored)}
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        if path is not None:
            write_atomically(path, text.encode())
        return text

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Self:
        """Read the text that `to_json` returned, or the file that it wrote."""
        start = source.lstrip()[:1] if isinstance(source, str) else "a path"
        is_text = start in ("", "{") or (start == "[" and not Path(source).is_file())
        name = "text" if is_text else str(source)
        try:
            content = json.loads(str(source) if is_text else Path(source).read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise _unreadable(name, f"is not valid JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise _unreadable(name, "was not written by `Recalibration.to_json`")
        if content.get("version") != _VERSION:
            raise _unreadable(name, f"has version {shown(content.get('version'))}, which needs a newer truthcal")
        method = check_choice(content.get("method"), "method", tuple(METHODS))
        try:
            parts = [read_stored(kind, content.get(part), part) for part, kind in _STORED.items()]
        except ValueError as error:
            raise _unreadable(name, f"{error}. Store the recalibration again with `to_json`") from None
        reason, comparison, candidates, warnings = parts
        check_level(comparison.scores.confidence_level, "comparison.scores.confidence_level")
        return cls(method, read_map(method, content.get("map", {})), reason, comparison, candidates, warnings)

    def table(self) -> dict[str, list[Any]]:
        """Return the rows of `comparison` as columns of equal length."""
        return self.comparison.table()

    def _page(self) -> Page:
        if not self.changes:
            is_said = "but is not corrected" in self.verdict
            warnings = [warning for warning in self.warnings if not (is_said and warning == UNCORRECTED)]
            return Page(self.verdict, candidate_table(self.candidates), warnings=warnings)
        return replace(self.comparison._page(), heading=self.verdict, warnings=self.warnings)


def _is_empty_column(values: Any) -> bool:
    """Whether a value is a column without rows. Text, mappings, sets and tables are no columns."""
    if isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__"):
        return False
    return len(getattr(values, "shape", (0,))) == 1 and len(values) == 0


def _unreadable(name: str, problem: str) -> Exception:
    """Build the error for a file that is not a recalibration."""
    return invalid("source", f"cannot be read: {name} {problem}.", subject="the recalibration")


def _without_nan(value: Any) -> Any:
    """Replace what JSON has no number for: nan by null, infinities by text."""
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
