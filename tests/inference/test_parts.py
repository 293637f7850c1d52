"""Segments and windows of time beside the verdict on all rows: `by` and `time` of `assess` and of `check`."""

import numpy as np
import pandas as pd
import pytest

import truthcal as tc
from truthcal.testing import assert_calibrated

N = 3000
rng = np.random.default_rng(2)
REGION = np.array(["north", "south"])[rng.integers(0, 2, N)]
P = rng.uniform(0.05, 0.95, N)
Y = (rng.random(N) < np.where(REGION == "south", 0.75, 1.0) * P).astype(int)
DAY = np.datetime64("2025-01-01") + np.sort(rng.integers(0, 120, N))
PATIENT = rng.integers(0, 300, N)


def test_parts_are_those_of_their_functions():
    options = {"alpha": 0.01, "confidence_level": 0.9}
    found = tc.assess(Y, P, by=REGION, time=DAY, window="month", **options)
    assert found.segments.to_dict() == tc.assess_segments(Y, P, REGION, **options).to_dict()
    assert found.over_time.to_dict() == tc.assess_over_time(Y, P, DAY, window="month", **options).to_dict()
    alone = tc.assess(Y, P, **options)
    assert alone.segments is None
    assert alone.over_time is None
    parts = ("segments", "over_time")
    assert {k: v for k, v in found.to_dict().items() if k not in parts} == {
        k: v for k, v in alone.to_dict().items() if k not in parts
    }


def test_parts_with_labels_weights_and_groups():
    labels, weights = np.where(Y, "yes", "no"), rng.uniform(0.5, 2.0, N)
    options = {"pos_label": "yes", "sample_weight": weights}
    found = tc.assess(labels, P, by=REGION, groups=PATIENT, **options)
    expected = tc.assess_segments(Y, P, REGION, groups=PATIENT, sample_weight=weights)
    assert found.segments.to_dict() == expected.to_dict()
    over_time = tc.assess(labels, P, time=DAY, **options).over_time
    assert over_time.to_dict() == tc.assess_over_time(Y, P, DAY, sample_weight=weights).to_dict()


def test_text_html_and_markdown_show_parts():
    found, alone = tc.assess(Y, P, by={"<region>": REGION}, time=DAY), tc.assess(Y, P)
    assert str(found).startswith(f"{alone}\n\nBy <region>: 1 of 2 segments is miscalibrated")
    assert "\n\nOver time: Stable: no change" in str(found)
    assert found.to_markdown().startswith(alone.to_markdown())
    assert found.segments.to_markdown() in found.to_markdown()
    html = found._repr_html_()
    assert html == alone._repr_html_() + found.segments._repr_html_() + found.over_time._repr_html_()
    assert "<region>" not in html
    assert list(found.frame().columns) == list(alone.frame().columns)
    assert len(found.frame()) == 1


def test_the_report_shows_parts():
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    found = tc.assess(Y, P, by={"region": REGION}, time=DAY)
    page = tc.report(found).html
    alone = tc.report(tc.assess(Y, P)).html
    assert found.segments.verdict in page
    assert found.segments.verdict not in alone
    assert found.over_time.verdict in page
    other = tc.assess_segments(Y, P, {"half": np.arange(N) % 2})
    assert other.verdict in tc.report(found, segments=other).html


def test_check_by_segment():
    gate = tc.check(Y, P, by=REGION, groups=PATIENT, max_error=0.02)
    frame = pd.DataFrame({"y": Y, "p": P, "segment": REGION, "patient": PATIENT})
    table = tc.sketch_frame(frame, y_true="y", y_proba="p", by="segment")
    rows = tc.check(Y, P, by=REGION, max_error=0.02)
    assert gate.status == rows.status == "fail"
    same = tc.check(Y, P, segments=table, max_error=0.02)
    assert (rows.reasons, str(rows)) == (same.reasons, str(same))
    assert gate.segments.segments[0].name == "south"


@pytest.mark.parametrize("function", [tc.check, assert_calibrated])
def test_rules_of_segments_in_the_gate(function):
    table = tc.SketchTable.from_sketches({"a": tc.Sketch().update(Y, P)}, by="g")
    with pytest.raises(ValueError, match="`by` cannot be combined with `segments`: both divide the rows"):
        function(Y, P, by=REGION, segments=table)
    with pytest.raises(
        ValueError, match="`by` cannot be combined with a Sketch, whose rows are summarized; pass `segments`"
    ):
        function(tc.Sketch().update(Y, P), by=REGION)
    with pytest.raises(ValueError, match="`by` is for predictions of one event, not for many classes"):
        function(Y, np.column_stack([1 - P, P]), by=REGION)


@pytest.mark.parametrize(
    ("rows", "options", "match"),
    [
        ((Y, P), {"time": DAY, "groups": PATIENT}, "`time` cannot be combined with `groups`: the test for change needs independent"),
        ((tc.Sketch().update(Y, P),), {"by": REGION}, "`by` cannot be combined with a Sketch, whose rows are summarized"),
        ((tc.Sketch().update(Y, P),), {"time": DAY}, "`time` cannot be combined with a Sketch, whose rows are summarized"),
        ((Y, np.column_stack([1 - P, P])), {"time": DAY}, "`time` is for predictions of one event, not for many classes"),
    ],
)  # fmt: skip
def test_parts_that_are_not_possible(rows, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        tc.assess(*rows, **options)


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        ((Y, P), {}, r"`by` is missing: pass \(y_true, y_proba, by\)"),
        ((Y,), {"by": REGION}, r"`y_proba` is missing: pass \(y_true, y_proba, by\)"),
        ((tc.SketchTable.from_sketches({"a": tc.Sketch().update(Y, P)}, by="g"),), {"groups": PATIENT}, "`groups` cannot be combined with a SketchTable"),
    ],
)  # fmt: skip
def test_arguments_of_assess_segments(arguments, options, match):
    with pytest.raises(TypeError, match=match):
        tc.assess_segments(*arguments, **options)
