"""Methods that all results share."""

import dataclasses
import functools
import json
import math
import pickle
import sys
from datetime import date

import numpy as np
import pandas as pd
import pytest

import truthcal as tc
from truthcal.results.base import Result, to_plain

rng = np.random.default_rng(5)
P = rng.random(200)
Y = rng.random(200) < P
CLASSES = rng.dirichlet(np.ones(3), 60)
CLASS = np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]


def table_of(*keys):
    return tc.SketchTable.from_sketches({key: tc.Sketch().update(Y, P) for key in keys}, by="g")


def monitors():
    return tc.MonitorTable(by="g").update(Y, P, np.array(["a", "b"])[np.arange(len(Y)) % 2])


# Result -> how to compute it; computed when a test asks for it.
MAKERS = {
    "Assessment": lambda: tc.assess(Y, P),
    "one row": lambda: tc.assess([1], [0.3]),
    "AtbSummary": lambda: tc.atb_summary(Y, P),
    "Bounded": lambda: tc.Sketch().update(Y, P).atb(),
    "BoundedArray": lambda: table_of("a", "b").atb(),
    "Estimate": lambda: tc.subsampled_estimate(Y[:9], P[:9], rng=0),
    "DistanceBracket": lambda: tc.distcal_bracket(Y, P),
    "SmoothWitness": lambda: tc.smcal_witness(Y, P),
    "ScoreDecomposition": lambda: tc.brier_decomposition(Y, P),
    "CalibrationLine": lambda: tc.calibration_slope_intercept(Y, P),
    "MeasureTable": lambda: tc.all_measures(Y, P, ["atb", "smcal"]),
    "BiasCurve": lambda: tc.cumulative_bias_curve(Y, P),
    "ReliabilityCurve": lambda: tc.reliability_curve(Y, P),
    "binned": lambda: tc.reliability_curve(Y, P, strategy="uniform"),
    "ConsistencyBand": lambda: tc.consistency_band(P, rng=0, n_resamples=99),
    "BiasBand": lambda: tc.bias_band(P, rng=0, n_resamples=99),
    "ScaleProfile": lambda: tc.scale_profile(Y, P, rng=0, n_resamples=99),
    "CalibrationTest": lambda: tc.calibration_test(Y, P, rng=0, n_resamples=99),
    "ConfidenceInterval": lambda: tc.confidence_interval(Y, P),
    "WorstStretch": lambda: tc.assess(Y, P / 4).worst,
    "LinearTimeTest": lambda: tc.linear_time_test(Y, P),
    "DetectableError": lambda: tc.detectable_error(P),
    "Comparison": lambda: tc.compare(Y, P, 0.5 * P),
    "SegmentTable": lambda: tc.assess_segments(table_of("a", "b")),
    "Segment": lambda: tc.assess_segments(table_of("a"))["a"],
    "TimeAssessment": lambda: tc.assess_over_time(Y, P, np.arange(len(Y)) % 3, window="1"),
    "TimeWindow": lambda: compute("TimeAssessment").windows[0],
    "ChangeTest": lambda: compute("TimeAssessment").change,
    "Audit": lambda: tc.audit([0.2, 0.7], ["atb", "smcal"]),
    "AuditRow": lambda: tc.audit([0.2, 0.7], ["atb", "smcal"])["atb"],
    "BestResponse": lambda: tc.best_response([0.5, 0.5], setting="sequential", grid=[0.25]),
    "MulticlassAssessment": lambda: tc.assess(CLASS, CLASSES, n_resamples=199),
    "two classes": lambda: tc.assess(Y, np.column_stack([1.0 - P, P]), labels=[False, True]),
    "multilabel": lambda: tc.assess(CLASSES > 0.5, CLASSES, multilabel=True),
    "Gate": lambda: tc.check(Y, P),
    "Assessment with parts": lambda: tc.assess(Y, P, by=np.arange(200) % 3, time=np.arange(200)),
    "MonitorStatus": lambda: tc.Monitor().update(Y, P).status(),
    "MonitorSegments": lambda: monitors().status(),
    "MeasureValue": lambda: compute("MeasureTable").rows[0],
    "Validity": lambda: tc.validity(
        "atb", constant=2, n_rows=[100, 400], populations={"one": [0.5]}, families=["shift"]
    ),
    "ValidityCurve": lambda: tc.validity_curve(P[:20], distances=[0.1, 0.2], n_simulations=20),
    "Confusion": lambda: compute("MulticlassAssessment").confusion,
    "Recalibration": lambda: tc.recalibrate(Y, P**3),
    "identity": lambda: tc.recalibrate(Y, P),
    "RecalibrationComparison": lambda: compute("Recalibration").comparison,
    "Candidate": lambda: compute("Recalibration").candidates[1],
    "ComparisonTable": lambda: tc.compare_models(Y, {"a": P, "b": 0.5 * P, "c": P**2}),
    "ExpectedScore": lambda: tc.expected_score([0.2, 0.7], [0.2, 0.7], "atb"),
}
# Results with a table of several rows -> number of rows.
ROWS = {
    "MeasureTable": 2,
    "BoundedArray": 2,
    "Comparison": 4,
    "ComparisonTable": 3,
    "Recalibration": 5,
    "RecalibrationComparison": 5,
    "SegmentTable": 2,
    "TimeAssessment": 3,
    "Audit": 2,
    "BiasBand": 2,
    "ScaleProfile": 6,
    "MonitorSegments": 2,
    "Validity": 2,
    "ValidityCurve": 2,
}
COLUMNS = {"SmoothWitness": "q", "BiasCurve": "q", "ReliabilityCurve": "left", "ConsistencyBand": "q"}


@functools.cache
def compute(name):
    return MAKERS[name]()


@pytest.fixture(params=MAKERS)
def result(request):
    return compute(request.param)


def test_every_result_has_the_shared_methods(result):
    assert isinstance(result, Result)
    assert str(result).strip()
    assert result.to_markdown().strip()
    assert result._repr_html_().startswith("<")


def test_every_exported_result_is_tested_here():
    exported = [getattr(tc, name) for name in tc.__all__]
    classes = {kind.__name__ for kind in exported if isinstance(kind, type) and issubclass(kind, Result)}
    assert classes <= {type(compute(name)).__name__ for name in MAKERS}


SHOWN = {
    "Sketch": lambda: tc.Sketch().update(Y, P),
    "empty SketchTable": lambda: tc.SketchTable(by="<g>"),
    "SketchTable": lambda: tc.SketchTable.from_sketches({"<b>": tc.Sketch().update(Y, P)}, by="<g>"),
    "Monitor": lambda: tc.Monitor().update(Y, P),
    "MonitorTable": monitors,
}


@pytest.mark.parametrize("name", [*MAKERS, *SHOWN])
def test_html_is_valid_and_has_no_colours(name):
    """Notebooks are light or dark: colours are theirs."""
    html5lib = pytest.importorskip("html5lib")
    shown = (compute(name) if name in MAKERS else SHOWN[name]())._repr_html_()
    html5lib.HTMLParser(strict=True).parseFragment(shown)
    assert "color" not in shown
    assert "background" not in shown
    assert "<b>" not in shown
    assert "<g>" not in shown


@pytest.mark.parametrize(("name", "rows"), [("Sketch", None), ("SketchTable", 1), ("empty SketchTable", 0)])
def test_sketches_have_frames(name, rows):
    sketch = SHOWN[name]()
    frame = sketch.frame()
    assert list(frame.columns) == list(sketch.table())
    assert len(frame) == (len(sketch.points()) if rows is None else rows)


def test_to_dict_has_all_public_fields_in_plain_types(result):
    values = result.to_dict()
    assert {field.name for field in dataclasses.fields(result) if not field.name.startswith("_")} <= values.keys()
    assert not [name for name in values if name.startswith("_")]
    back = json.loads(json.dumps(values))
    assert json.dumps(back) == json.dumps(values)  # no tuples and no keys that are not text


def test_every_result_can_be_pickled(result):
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)
    assert json.dumps(again.to_dict()) == json.dumps(result.to_dict())


def test_frame_has_the_columns_of_the_table(result):
    frame, table = result.frame(), result.table()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(table)
    name = type(result).__name__
    rows = len(getattr(result, COLUMNS[name])) if name in COLUMNS else ROWS.get(name, 1)
    assert len(frame) == rows


def test_one_row_has_the_values_of_nested_results():
    assessment = compute("Assessment")
    (row,) = assessment.frame().to_dict("records")
    assert row["error_estimate"] == assessment.error.estimate
    assert row["error_low"] == assessment.error.low
    assert row["test_pvalue"] == assessment.test.pvalue
    assert "warnings" not in row


def test_frame_is_of_the_first_library_that_is_installed(monkeypatch):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(compute("AtbSummary").frame(), polars.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(compute("AtbSummary").frame(), pyarrow.Table)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="`frame` needs pandas, polars or pyarrow: pip install pandas"):
        compute("AtbSummary").frame()


@pytest.mark.parametrize(
    "name", [*COLUMNS, "Assessment", "MulticlassAssessment", "MeasureTable", "SegmentTable", "Audit", "BoundedArray"]
)
def test_repr_of_large_results_is_what_is_printed(name):
    assert repr(compute(name)) == str(compute(name))


def test_plain_values_are_those_of_json():
    values = {("a", 1): np.array([1.5, np.nan]), "b": (np.int64(3), np.bool_(True), None), "c": date(2026, 1, 31)}
    plain = to_plain(values)
    assert list(plain) == ["('a', 1)", "b", "c"]
    assert plain["b"] == [3, True, None]
    assert (type(plain["b"][0]), type(plain["b"][1])) == (int, bool)
    assert plain["c"] == "2026-01-31"
    assert plain["('a', 1)"][0] == 1.5
    assert math.isnan(plain["('a', 1)"][1])
