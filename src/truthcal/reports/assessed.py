"""The models of a report: results that the user passes, or rows and sketches that are assessed here."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truthcal.core.checks import as_vector, invalid
from truthcal.core.class_rows import ROUNDING, as_matrix, column_names, has_classes, labels_of_columns
from truthcal.core.frame_columns import columns_by_name
from truthcal.core.params import shown
from truthcal.core.sketch import Sketch
from truthcal.inference.assess import assess
from truthcal.inference.model_comparison import compare_models
from truthcal.reports.arguments import check_assessments, check_names, refuse_row_arguments
from truthcal.results.assessment import Assessment
from truthcal.results.comparison_table import ComparisonTable
from truthcal.results.multiclass import MulticlassAssessment

_RULE = (
    "must be outcomes beside `y_proba`, a Sketch, a result of truthcal.assess, or a mapping of names to sketches or "
    "results"
)


# Options of `assess` that `compare_models` does not have.
_OF_ASSESS = ("multilabel", "by", "time", "window")


class Models(NamedTuple):
    """Assessments by name, and the comparison of all pairs if rows of several models were passed."""

    named: dict[str, Assessment] | dict[str, MulticlassAssessment]
    compared: ComparisonTable | None = None


def assessed_models(y_true: Any, y_proba: Any, options: Mapping[str, Any], *, compare: bool) -> Models:
    """Return the assessments of a report, of rows if they were passed. `compare`: whether to compare all pairs."""
    if y_proba is None or isinstance(y_true, Assessment | MulticlassAssessment | Mapping | Sketch):
        window = None if options["window"] == "auto" else options["window"]
        refuse_row_arguments(y_proba=y_proba, **{**options, "window": window})
        return Models(_of_results(y_true))
    y_proba = _by_model(y_true, y_proba, options)
    if not isinstance(y_proba, Mapping):
        return Models(check_assessments({"": assess(y_true, y_proba, **options)}))
    check_names(y_proba, "y_proba")
    named = {name: assess(y_true, p, **options) for name, p in y_proba.items()}
    if not compare or len(named) < 2 or options["multilabel"]:
        return Models(check_assessments(named))
    paired = {name: value for name, value in options.items() if name not in _OF_ASSESS}
    return Models(check_assessments(named), compare_models(y_true, y_proba, **paired))


def _by_model(y_true: Any, y_proba: Any, options: Mapping[str, Any]) -> Any:
    """Return columns of a frame by name if they are models of one event; other predictions as they are."""
    names = None if isinstance(y_proba, Mapping) else column_names(y_proba)
    if names is None or options["labels"] is not None or options["multilabel"] or not has_classes(y_proba):
        return y_proba
    y, p = as_vector(y_true, "y_true"), as_matrix(y_proba, "y_proba")
    is_event = options["pos_label"] is not None or (_are_zeros_and_ones(y) and labels_of_columns(names, [0, 1]) is None)
    add_up = p.dtype.kind not in "biuf" or bool((np.abs(p.sum(axis=1) - 1.0) <= ROUNDING).all())
    return columns_by_name(y_proba, "y_proba") if is_event and not add_up else y_proba


def _are_zeros_and_ones(y: NDArray[Any]) -> bool:
    return y.dtype.kind in "biuf" and bool(((y == 0) | (y == 1)).all())


def _of_results(results: Any) -> dict[str, Assessment] | dict[str, MulticlassAssessment]:
    if isinstance(results, Assessment | MulticlassAssessment | Sketch):
        results = {"": results}
    if not isinstance(results, Mapping):
        raise invalid("y_true", f"{_RULE}; got {shown(results)}.", TypeError)
    check_names(results, "y_true")
    return check_assessments(
        {name: assess(found) if isinstance(found, Sketch) else found for name, found in results.items()}
    )
