"""The gate: status, reasons and levels; segments share the level with all rows. The command line: tests/cli/test_check.py."""

import json
import pickle
import re

import numpy as np
import pytest

import truthcal as tc


def rows(n, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n).round(4)
    return (rng.random(n) < p + shift).astype(int), p


def table_of(y, p, names):
    parts = {name: tc.Sketch().update(y[names == name], p[names == name]) for name in np.unique(names).tolist()}
    return tc.SketchTable.from_sketches(parts, by="team")


def test_calibrated_predictions_pass():
    """Of the seeds 0 to 99, two fail at level 0.05 by chance, among them 0: see the next test."""
    gate = tc.check(*rows(3000, seed=1))
    assert gate.status == "pass"
    assert gate.reasons == ("no significant miscalibration at level 0.05",)
    assert str(gate).startswith("Pass: no significant miscalibration at level 0.05.\n\nCalibrated")
    assert (gate.alpha, gate.max_error, gate.used_alpha, gate.used_confidence_level) == (0.05, None, 0.05, 0.95)


def test_a_false_alarm_stays_one():
    """Calibrated rows that fail by chance; `truthcal check` had the same answer before the gate moved here."""
    gate = tc.check(*rows(3000, seed=0))
    assert (gate.status, gate.assessment.test.greater) == ("fail", pytest.approx(0.00371, rel=1e-3))
    assert tc.check(*rows(3000, seed=0), alpha=0.003).reasons[0].startswith("miscalibration is not significant, but")


def test_miscalibrated_predictions_fail():
    y, p = rows(3000, -0.1)
    gate = tc.check(y, p)
    assert gate.status == "fail"
    assert gate.reasons[0].startswith("significant miscalibration (too high, p = ")
    assert gate.reasons[0].endswith(") at level 0.05")
    assert gate.assessment.error == tc.assess(y, p).error


def test_alpha_is_compared_with_the_pvalue():
    y, p = rows(400, -0.05, seed=1)
    pvalue = tc.assess(y, p).test.greater
    assert 0.0005 < pvalue < 0.05
    assert tc.check(y, p, alpha=0.99 * pvalue).status != "fail"
    assert tc.check(y, p, alpha=pvalue).status == "fail"


def test_max_error_is_compared_with_the_interval():
    y, p = rows(3000, -0.1)
    interval = tc.assess(y, p).error
    assert tc.check(y, p, max_error=0.99 * interval.low).status == "fail"
    unclear = tc.check(y, p, max_error=0.1)
    assert interval.low < 0.1 < interval.high
    assert unclear.status == "too little data"
    pattern = r"the error is between 0\.0\d+ and 0\.1\d+ \(95%\), and the limit is 0\.1"
    assert re.fullmatch(pattern, unclear.reasons[0])
    passed = tc.check(y, p, max_error=1.01 * interval.high)
    assert (passed.status, passed.alpha, passed.used_alpha) == ("pass", None, None)
    assert tc.check(y, p, max_error=1.01 * interval.high, alpha=0.05).status == "fail"


def test_few_rows_are_unclear():
    gate = tc.check([0, 1, 0, 1], [0.5] * 4)
    assert gate.status == "too little data"
    assert gate.verdict.startswith("Too little data to tell: the error")


def test_rare_events_do_not_pass_by_a_fixed_limit():
    """All predictions are below 0.1, so that an error below 0.1 means nothing."""
    y, p = np.zeros(40), np.random.default_rng(1).random(40) * 0.1
    y[7] = 1
    gate = tc.check(y, p)
    assert gate.status == "too little data"
    assert gate.reasons[0].endswith("and must be at most 0.025 to pass if no limit is given")
    assert tc.check(y, p, max_error=0.5).reasons == ("too few rows to detect errors",)


def test_unclear_predictions_pass_only_a_limit_on_their_error():
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    y = rng.random(3000) < p
    gate = tc.check(y, p)
    assert (gate.status, gate.assessment.kind) == ("too little data", "unclear")
    assert gate.reasons[0].startswith("miscalibration is not significant, but the error is at least 0.00")
    assert gate.reasons[0].endswith("; a limit of the error (max_error=, --max-error) decides by its size")
    limit = dict(gate.summary())["limit"]
    assert re.fullmatch(r"p = 0\.\d+ is above 0\.05, but the interval of the error excludes 0", limit)
    assert tc.check(y, p, max_error=0.06).status == "pass"


def test_the_largest_error_is_that_of_a_named_segment():
    y, p = rows(3000, seed=1)
    passed = tc.check(y, p, segments=table_of(y, p, np.where(np.arange(3000) < 300, "few", "many")), max_error=0.3)
    assert passed.reasons[0].startswith("the error of segment few is at most 0.")


def test_a_sketch_gets_the_answer_of_its_rows():
    y, p = rows(3000, -0.1)
    gate, want = tc.check(tc.Sketch(16384).update(y, p)), tc.check(y, p)
    assert (gate.status, gate.assessment.kind) == (want.status, want.assessment.kind)


def test_weights_and_labels_are_passed_on():
    y, p = rows(1000, -0.1)
    words, weight = np.where(y == 1, "won", "lost"), np.arange(1000) % 3 + 1.0
    gate = tc.check(words, p, pos_label="won", sample_weight=weight)
    assert gate.assessment.to_dict() == tc.assess(y, p, sample_weight=weight).to_dict() | {"event": "won"}


def test_segments_share_the_level_with_all_rows():
    """Errors of two segments that cancel in the total."""
    up = np.arange(4000) % 2 == 0
    y, p = rows(4000, np.where(up, 0.1, -0.1), seed=5)
    table = table_of(y, p, np.where(up, "red", "blue"))
    assert tc.check(y, p).status == "pass"
    gate = tc.check(y, p, segments=table)
    assert gate.status == "fail"
    assert [reason.split(" (")[0] for reason in gate.reasons] == ["segment blue is too high", "segment red is too low"]
    assert (gate.used_alpha, gate.segments.alpha) == (0.025, 0.025)
    bounded = tc.check(y, p, segments=table, max_error=0.05)
    assert bounded.used_confidence_level == pytest.approx(1 - 0.05 / 3)
    assert any(reason.startswith("the error of segment red is at least") for reason in bounded.reasons)
    assert "By team: " in str(gate)
    assert "| red |" in gate.to_markdown()


def test_a_gate_is_plain_json_and_can_be_pickled():
    y, p = rows(500)
    gate = tc.check(y, p, segments=table_of(y, p, np.where(y == y, "all", "")), max_error=0.3)
    content = json.loads(json.dumps(gate.to_dict()))
    levels = ("alpha", "max_error", "confidence_level", "used_alpha", "used_confidence_level")
    assert [content[name] for name in levels] == [None, 0.3, 0.95, None, pytest.approx(0.975)]
    assert content["status"] == gate.status
    gate = tc.check(y, p)
    assert pickle.loads(pickle.dumps(gate)).verdict == gate.verdict


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 5}, ValueError, "`alpha` must lie strictly between 0 and 1; got 5.0. For 5%, pass 0.05"),
        ({"max_error": 0}, ValueError, "`max_error` must be a positive number; got 0.0"),
        ({"max_error": 5}, ValueError, "`max_error` must be at most 1; got 5. For 5 percentage points, pass 0.05"),
        ({"max_error": "small"}, TypeError, "`max_error` must be a number; got 'small'"),
        ({"confidence_level": 1}, ValueError, "`confidence_level` must lie strictly between 0 and 1"),
        ({"segments": "region"}, TypeError, "`segments` must be a SketchTable with .* got 'region'"),
        ({"segments": tc.SketchTable(by="g")}, ValueError, "`segments` is empty"),
        ({"adjust": "bonferroni"}, ValueError, "`adjust` must be one of 'holm', 'fdr', 'none'"),
    ],
)
def test_wrong_parameters_are_named(arguments, error, message):
    y, p = rows(50)
    table = table_of(y, p, np.where(y == y, "all", ""))
    with pytest.raises(error, match=message):
        tc.check(y, p, **({"segments": table} | arguments))


def test_passing_says_which_segments_were_not_tested():
    """Ward C has enough rows, but of five patients only."""
    y, p = rows(1050, seed=1)
    ward, patient = np.array(["A", "B", "C"])[np.minimum(np.arange(1050) // 500, 2)], np.arange(1050) // 10
    for options in ({}, {"max_error": 0.3}):
        gate = tc.check(y, p, by=ward, groups=patient, **options)
        assert gate.status == "pass"
        assert gate.reasons[-1] == "1 of 3 segments was not tested (too few rows or groups)"
    few = " 1 more has fewer than 30 effective rows (or too few groups) and was not tested."
    assert gate.segments.verdict.endswith(few)


def test_the_limit_line_names_what_decided():
    """The size of the error is within its limit, and something else decides."""
    y, p = rows(3000, seed=1)
    few = tc.check(y, p, segments=table_of(y, p, np.arange(3000) // 10))
    assert few.status == "too little data"
    assert dict(few.summary())["limit"] == "no segment was tested"
