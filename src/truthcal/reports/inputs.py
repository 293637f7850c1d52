"""Checks of the arguments of `report`."""

from collections.abc import Mapping, Sequence
from typing import Any

from truthcal.core.params import shown
from truthcal.results.assessment import Assessment
from truthcal.results.comparison import Comparison
from truthcal.results.segments import SegmentTable

# More models would need more colours than can be distinguished, and a large file.
MAX_MODELS = 12


def check_assessments(assessments: Any) -> dict[str, Assessment]:
    """Return assessments by name, in order; a single one has the name ""."""
    if isinstance(assessments, Assessment):
        assessments = {"": assessments}
    elif not isinstance(assessments, Mapping):
        rule = "must be a result of truthcal.assess, or a mapping of names to such results"
        raise TypeError(f"`assessments` {rule}; got {shown(assessments)}.")
    elif not assessments:
        raise ValueError("`assessments` is empty; it needs at least one model.")
    if len(assessments) > MAX_MODELS:
        raise ValueError(
            f"`assessments` holds {len(assessments)} models, more than the {MAX_MODELS} that one page can show; "
            "choose the best of them, or write several reports."
        )
    for name, assessment in assessments.items():
        _check_one(name, assessment)
    return dict(assessments)


def _check_one(name: Any, assessment: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"names in `assessments` must be str; got {shown(name)}. Use str(name).")
    if not isinstance(assessment, Assessment):
        raise TypeError(f"`assessments` must hold results of truthcal.assess; {shown(name)} is {shown(assessment)}.")
    if assessment._summary is None:
        which = f" of {shown(name)}" if name else ""
        raise ValueError(
            f"the assessment{which} has no rows or sketch to draw curves from, because it was not returned by "
            "truthcal.assess. Call truthcal.assess again."
        )


def check_segments(segments: Any, names: Sequence[str]) -> dict[str, SegmentTable]:
    """Return tables of segments by the name of the model."""
    if segments is None:
        return {}
    if isinstance(segments, SegmentTable):
        if len(names) > 1:
            raise ValueError(
                f"`segments` must be a mapping of names to tables where there are {len(names)} models: "
                f"whose segments are these? For example {{{names[0]!r}: segments}}."
            )
        return {names[0]: segments}
    if not isinstance(segments, Mapping):
        raise TypeError(f"`segments` must be a result of truthcal.assess_segments; got {shown(segments)}.")
    for name, table in segments.items():
        _check_known(name, names, "segments")
        if not isinstance(table, SegmentTable):
            item = f"{shown(name)} is {shown(table)}"
            raise TypeError(f"`segments` must hold results of truthcal.assess_segments; {item}.")
    return dict(segments)


def check_comparisons(comparisons: Any, names: Sequence[str]) -> dict[tuple[str, str], Comparison]:
    """Return comparisons by the names of both models."""
    if comparisons is None:
        return {}
    if not isinstance(comparisons, Mapping):
        rule = "must be a mapping of pairs of names to results of truthcal.compare"
        raise TypeError(f"`comparisons` {rule}; got {shown(comparisons)}.")
    for pair, comparison in comparisons.items():
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"keys of `comparisons` must be pairs of names, like ('old', 'new'); got {shown(pair)}.")
        for name in pair:
            _check_known(name, names, "comparisons")
        if pair[0] == pair[1]:
            raise ValueError(f"`comparisons` compares {shown(pair[0])} with itself; it needs two models.")
        if not isinstance(comparison, Comparison):
            item = f"{shown(pair)} is {shown(comparison)}"
            raise TypeError(f"`comparisons` must hold results of truthcal.compare; {item}.")
    return dict(comparisons)


def _check_known(name: Any, names: Sequence[str], where: str) -> None:
    if name not in names:
        known = ", ".join(map(repr, names)) if any(names) else "one model without a name; pass a mapping"
        raise ValueError(f"`{where}` names {shown(name)}, but `assessments` has {known}.")


def check_texts(title: Any, provenance: Any, notes: Any) -> None:
    """Raise an error unless title, provenance and notes are text."""
    if title is not None and not isinstance(title, str):
        raise TypeError(f"`title` must be str; got {shown(title)}.")
    if provenance is not None and not isinstance(provenance, Mapping):
        raise TypeError(f"`provenance` must be a mapping of str to str; got {shown(provenance)}.")
    for name, value in (provenance or {}).items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise TypeError(f"`provenance` must map str to str; got {shown(name)}: {shown(value)}.")
    if isinstance(notes, str) or not isinstance(notes, Sequence):
        raise TypeError(f"`notes` must be a sequence of str, like ['column p was guessed']; got {shown(notes)}.")
    for note in notes:
        if not isinstance(note, str):
            raise TypeError(f"`notes` must hold str; got {shown(note)}.")
