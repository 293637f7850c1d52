"""The result of `recalibrate`: a function from predicted to recalibrated probabilities, and the evidence for it."""

import json
import math
import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from truthcal.core.checks import check_proba, invalid
from truthcal.core.file_format import write_atomically
from truthcal.core.params import check_choice, shown
from truthcal.recalibration.choice import UNCORRECTED
from truthcal.recalibration.maps import METHODS, IdentityMap, RecalibrationMap
from truthcal.recalibration.sql import map_sql
from truthcal.results.assessment import Assessment
from truthcal.results.base import PageResult
from truthcal.results.recalibration import METHOD_NAMES, Candidate, RecalibrationComparison, candidate_table
from truthcal.results.text import Page

_FORMAT, _VERSION = "truthcal recalibration", 1
_NOT_STORED = ("assessment", "before", "after")


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
        Reasons to doubt a method that was requested; or, if "auto" leaves predictions as they are although
        miscalibration is significant, that it does.
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
        if isinstance(y_proba, numbers.Real) and not isinstance(y_proba, bool):
            return self([y_proba])[0]
        if hasattr(y_proba, "__len__") and len(y_proba) == 0:
            return np.zeros(0)
        p = check_proba(y_proba, "y_proba")
        return np.array(self.map(p.astype(np.float64)))  # a copy, also if nothing changes

    @property
    def changes(self) -> bool:
        """Whether predictions change; False for the method "identity"."""
        return not isinstance(self.map, IdentityMap)

    @property
    def verdict(self) -> str:
        """The decision, its reason and its effect in words."""
        if not self.changes:
            return f"Predictions stay as they are.\n{self.reason}"
        return f"Recalibrate by {METHOD_NAMES[self.method]}.\n{self.reason}\n{self.comparison.verdict}"

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
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        name = "text" if is_text else str(source)
        try:
            content = json.loads(str(source) if is_text else Path(source).read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise _unreadable(name, f"not valid JSON: {error}") from None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise _unreadable(name, "written by something else than `Recalibration.to_json`")
        if content.get("version") != _VERSION:
            raise _unreadable(name, f"of version {shown(content.get('version'))}, which needs a newer truthcal")
        method = check_choice(content.get("method"), "method", tuple(METHODS))
        try:
            entries = _with_nan(content)
            comparison = RecalibrationComparison.from_dict(entries["comparison"])
            candidates = tuple(Candidate(**candidate) for candidate in entries["candidates"])
            reason, stored, warnings = str(entries["reason"]), entries["map"], tuple(entries["warnings"])
        except (KeyError, TypeError) as error:
            raise _unreadable(name, f"incomplete: {error}") from None
        return cls(method, METHODS[method].from_dict(stored), reason, comparison, candidates, warnings)

    def table(self) -> dict[str, list[Any]]:
        """Return the rows of `comparison` as columns of equal length."""
        return self.comparison.table()

    def _page(self) -> Page:
        if not self.changes:
            is_said = "but is not corrected" in self.verdict
            warnings = [warning for warning in self.warnings if not (is_said and warning == UNCORRECTED)]
            return Page(self.verdict, candidate_table(self.candidates), warnings=warnings)
        return replace(self.comparison._page(), heading=self.verdict, warnings=self.warnings)


def _unreadable(name: str, problem: str) -> Exception:
    """Build the error for a file that is not a recalibration."""
    return invalid("source", f"cannot be read: {name} is {problem}.", subject="the recalibration")


def _without_nan(value: Any) -> Any:
    """Replace what JSON has no number for: nan by null, infinities by text."""
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _with_nan(content: Mapping[str, Any]) -> dict[str, Any]:
    """Restore the numbers that `_without_nan` replaced; counts of groups stay None."""
    counts = ("n_groups", "n_effective_groups", "neighbour_z")

    def restore(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: restore(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [restore(name, item) for item in value]
        if value is None:
            return None if name in counts else math.nan
        return float(value) if value in ("inf", "-inf") else value

    return {key: restore(key, value) for key, value in content.items()}
