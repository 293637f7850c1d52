"""Checks of the arguments of `report`."""

from collections.abc import Mapping, Sequence
from typing import Any

from truthcal.core.checks import invalid
from truthcal.core.params import shown
from truthcal.inference.model_comparison import table_of_pairs
from truthcal.results.assessment import Assessment
from truthcal.results.comparison import Comparison
from truthcal.results.comparison_table import ComparisonTable
from truthcal.results.multiclass import MulticlassAssessment
from truthcal.results.over_time import TimeAssessment
from truthcal.results.segments import SegmentTable

# More models would need more colours than can be distinguished, and a large file.
MAX_MODELS = 12


def _require_argument(condition: bool, parameter: str, problem: str, kind: type[Exception] = TypeError) -> None:
    if not condition:
        raise invalid(parameter, problem, kind)


def check_assessments(assessments: Mapping[Any, Any]) -> dict[str, Assessment] | dict[str, MulticlassAssessment]:
    """Check assessments by name; return them in order. A single one has the name ""."""
    for name, assessment in assessments.items():
        wrong = f"must contain results of truthcal.assess; {shown(name)} is {shown(assessment)}."
        _require_argument(isinstance(assessment, Assessment | MulticlassAssessment), "y_true", wrong)
        copied = f"contains an assessment{f' of {shown(name)}' * bool(name)} without rows or sketch to draw curves from"
        cure = "because truthcal.assess did not return it (it may be a copy). Call truthcal.assess again."
        rows = assessment._rows if isinstance(assessment, MulticlassAssessment) else assessment._summary
        _require_argument(rows is not None, "y_true", f"{copied}, {cure}", ValueError)
    _refuse_mixed(assessments)
    return dict(assessments)


def check_names(models: Mapping[Any, Any], parameter: str) -> None:
    """Check the names of the models of a report, and how many there are."""
    _require_argument(bool(models), parameter, "is empty; it needs at least one model.", ValueError)
    many = f"has {len(models)} models, but a report can show at most {MAX_MODELS}"
    cure = "choose the best of them, or write several reports."
    _require_argument(len(models) <= MAX_MODELS, parameter, f"{many}; {cure}", ValueError)
    for name in models:
        unnamed = f"must have names that are str; got {shown(name)}. Use str(name)."
        _require_argument(isinstance(name, str), parameter, unnamed)


def refuse_row_arguments(**arguments: Any) -> None:
    """Reject arguments that belong to rows in a report of results."""
    for name, value in arguments.items():
        given = value is not None and value is not False
        cure = "Pass it to truthcal.assess, or pass the rows: truthcal.report(y_true, y_proba)."
        _require_argument(not given, name, f"is for rows, but `y_true` holds results or sketches. {cure}", ValueError)


def _refuse_mixed(assessments: Mapping[str, Any]) -> None:
    names = {isinstance(assessment, MulticlassAssessment): name for name, assessment in assessments.items()}
    if len(names) == 2:
        mixed = f"mixes predictions of one event ({shown(names[False])}) and of many classes ({shown(names[True])})"
        raise invalid("y_true", f"{mixed}; write a report for each kind.")


def refuse_event_arguments(**arguments: Any) -> None:
    """Reject arguments that are for predictions of one event, in a report on many classes."""
    for name, value in arguments.items():
        _require_argument(
            not value, name, "is for predictions of one event, not for many classes. Omit it.", ValueError
        )


def own_parts(assessments: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the parts that assessments have themselves, `segments` or `over_time`, by the name of the model."""
    parts = {model: getattr(found, name, None) for model, found in assessments.items()}
    return {model: part for model, part in parts.items() if part is not None}


def check_segments(segments: Any, names: Sequence[str]) -> dict[str, SegmentTable]:
    """Check the argument `segments`; return the tables by the name of the model."""
    return _check_by_model(segments, names, "segments", SegmentTable, "assess_segments")


def check_over_time(over_time: Any, names: Sequence[str]) -> dict[str, TimeAssessment]:
    """Check the argument `over_time`; return the results by the name of the model."""
    return _check_by_model(over_time, names, "over_time", TimeAssessment, "assess_over_time")


def _check_by_model(results: Any, names: Sequence[str], parameter: str, kind: type, function: str) -> dict[str, Any]:
    """Check an argument that holds a result of one model, or a mapping of names to them."""
    if isinstance(results, kind):
        rule = f"must be a mapping of names to tables if there are {len(names)} models"
        cure = f"for example {{{names[0]!r}: {parameter}}}."
        _require_argument(len(names) == 1, parameter, f"{rule}, {cure}", ValueError)
        results = {names[0]: results}
    tables = {} if results is None else results
    wrong = f"must be a result of truthcal.{function}; got {shown(results)}."
    _require_argument(isinstance(tables, Mapping), parameter, wrong)
    for name, table in tables.items():
        _check_known(name, names, parameter)
        wrong = f"must contain results of truthcal.{function}; {shown(name)} is {shown(table)}."
        _require_argument(isinstance(table, kind), parameter, wrong)
    return dict(tables)


def check_comparisons(comparisons: Any, names: Sequence[str]) -> ComparisonTable | None:
    """Check the argument `comparisons`; return them as a table of pairs with adjusted p-values."""
    if isinstance(comparisons, ComparisonTable):
        comparisons = {found.names: found for found in comparisons.comparisons}
    pairs = {} if comparisons is None else comparisons
    rule = "must be a result of truthcal.compare_models, or a mapping of pairs of names to results of truthcal.compare"
    _require_argument(isinstance(pairs, Mapping), "comparisons", f"{rule}; got {shown(comparisons)}.")
    for pair, comparison in pairs.items():
        rule = f"must have pairs of names as keys, like ('old', 'new'); got {shown(pair)}."
        _require_argument(isinstance(pair, tuple) and len(pair) == 2, "comparisons", rule)
        for name in pair:
            _check_known(name, names, "comparisons")
        alone = f"compares {shown(pair[0])} with itself; it needs two models."
        _require_argument(pair[0] != pair[1], "comparisons", alone, ValueError)
        wrong = f"must contain results of truthcal.compare; {shown(pair)} is {shown(comparison)}."
        _require_argument(isinstance(comparison, Comparison), "comparisons", wrong)
    return table_of_pairs(pairs) if pairs else None


def _check_known(name: Any, names: Sequence[str], parameter: str) -> None:
    known = ", ".join(map(repr, names)) if any(names) else "one model without a name; pass a mapping"
    _require_argument(name in names, parameter, f"names {shown(name)}, but the report has {known}.", ValueError)


def check_texts(title: Any, group_name: Any, provenance: Any, notes: Any) -> None:
    """Check the arguments that are text: raise an error unless they are."""
    for name, text in (("title", title), ("group_name", group_name)):
        _require_argument(text is None or isinstance(text, str), name, f"must be str; got {shown(text)}.")
    wrong = f"must be a mapping of str to str; got {shown(provenance)}."
    _require_argument(provenance is None or isinstance(provenance, Mapping), "provenance", wrong)
    for name, value in (provenance or {}).items():
        both = isinstance(name, str) and isinstance(value, str)
        _require_argument(both, "provenance", f"must map str to str; got {shown(name)}: {shown(value)}.")
    listed = isinstance(notes, Sequence) and not isinstance(notes, str)
    _require_argument(listed, "notes", f"must be a sequence of str, like ['column p was guessed']; got {shown(notes)}.")
    for note in notes:
        _require_argument(isinstance(note, str), "notes", f"must contain str; got {shown(note)}.")
