"""The gate: exit statuses, reasons, the Markdown summary, and that segments do not raise false alarms."""

import json
import re

import numpy as np
import pytest
from support.cli import valid

import truthcal as tc
from truthcal.results.text import upper_limit

PASS, FAIL, WRONG, UNCLEAR = 0, 1, 2, 3


@pytest.fixture
def good(write, events):
    return write("good.csv", hit=events["hit"], score=events["score"], region=events["region"])


@pytest.fixture
def bad(write, events):
    return write("bad.csv", hit=events["hit"], score=events["sure"], region=events["region"])


def rows(write, p, y, **more):
    return write("rows.csv", p=np.asarray(p).tolist(), y=np.asarray(y).tolist(), **more)


def test_calibrated_predictions_pass(quick, good):
    done = quick("check", good, check=PASS)
    assert done.out.startswith("Pass: no significant miscalibration at level 0.05.\n")
    content = valid(quick("check", good, "--json", check=PASS).out)
    assert (content["status"], content["exit_status"]) == ("pass", 0)


def test_miscalibrated_predictions_fail(quick, bad, events):
    done = quick("check", bad, check=FAIL)
    assert done.out.startswith("Fail: significant miscalibration (overconfident, p = ")
    assert ") at level 0.05" in done.out.splitlines()[0]
    content = valid(quick("check", bad, "--json", check=FAIL).out)
    assert content["status"] == "fail"
    assert content["gate"]["alpha"] == 0.05
    assert content["gate"]["max_error"] is None
    assert content["assessment"]["error"]["estimate"] == tc.assess(events["hit"], events["sure"]).error.estimate


def test_the_level_decides(quick, write):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 400).round(4)
    y = (rng.random(400) < p - 0.05).astype(int)
    path = rows(write, p, y)
    pvalue = tc.assess(y, p).test.greater
    assert 0.0005 < pvalue < 0.04
    assert quick("check", path, "--alpha", 0.99 * pvalue).status == UNCLEAR  # 400 rows leave room for 0.1
    assert quick("check", path, "--alpha", pvalue).status == FAIL


def test_max_error_compares_the_interval_and_not_significance(quick, bad, events):
    interval = tc.assess(events["hit"], events["sure"]).error
    assert 0.02 < interval.low < interval.high
    done = quick("check", bad, "--max-error", 0.99 * interval.low, check=FAIL)
    assert done.out.startswith("Fail: the error is at least")
    done = quick("check", bad, "--max-error", (interval.low + interval.high) / 2, check=UNCLEAR)
    ends = r"the error is between 0\.\d+ and 0\.\d+ \(95%\), and the limit is 0\.\d+\."
    assert re.search(ends, done.out)
    # An error that is shown, but is smaller than what is allowed, passes; unless a level is named as well.
    done = quick("check", bad, "--max-error", 1.01 * interval.high, check=PASS)
    assert done.out.startswith("Pass: the error is at most")
    assert quick("check", bad, "--max-error", 1.01 * interval.high, "--alpha", "0.05").status == FAIL


def test_errors_of_both_signs_are_no_pass(quick, write):
    """Every prediction is off by 0.2, up and down in turn: ATB sees little of it."""
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.8, 3000).round(4)
    y = (rng.random(3000) < p + np.where((p * 20).astype(int) % 2, 0.2, -0.2)).astype(int)
    path = rows(write, p, y)
    assert tc.assess(y, p).kind == "miscalibrated"
    assert "the error is at least" in quick("check", path, "--max-error", "0.08", check=FAIL).out
    assert quick("check", path).status == FAIL


def test_the_confidence_level_moves_the_bound(quick, bad, events):
    bounds = [tc.assess(events["hit"], events["sure"], confidence_level=c).error.low for c in (0.5, 0.999)]
    between = float(np.mean(bounds))
    assert quick("check", bad, "--max-error", between, "--confidence-level", "0.5").status == FAIL
    assert quick("check", bad, "--max-error", between, "--confidence-level", "0.999").status == UNCLEAR


@pytest.mark.parametrize("n", [1, 5, 40])
def test_too_few_rows_are_unclear(quick, write, n):
    path = rows(write, np.full(n, 0.5), np.arange(n) % 2)
    done = quick("check", path, check=UNCLEAR)
    assert done.out.startswith("Too little data to tell: ")
    assert valid(quick("check", path, "--json", check=UNCLEAR).out)["status"] == "too little data"


def test_rows_that_leave_room_for_the_allowed_error_are_unclear(quick, good, events):
    high = tc.assess(events["hit"], events["score"]).error.high
    assert quick("check", good, "--max-error", 1.1 * high).status == PASS
    assert f"may be as large as {upper_limit(high)}" in quick("check", good, "--max-error", high / 3, check=UNCLEAR).out


@pytest.mark.parametrize(("n", "status"), [(1, UNCLEAR), (3, UNCLEAR), (3000, PASS)])
def test_certain_predictions_that_are_right_pass_if_they_are_many(quick, write, n, status):
    y = np.arange(n) % 2
    path = rows(write, y, y)
    assert "hard=True (--hard)" in quick("check", path, "--proba", "p", "--label", "y", check=2).err
    assert quick("check", path, "--proba", "p", "--label", "y", "--hard").status == status
    assert quick("check", path, "--proba", "p", "--label", "y", "--hard", "--max-error", "0.1").status == status


def test_an_outcome_that_could_not_be_fails_a_level_but_not_a_size(quick, write):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 2000).round(3)
    y = (rng.random(2000) < p).astype(int)
    p[7], y[7] = 0.0, 1
    path = rows(write, p, y)
    done = quick("check", path, "--alpha", "1e-9", check=FAIL)
    assert "Fail: 1 outcome had a predicted probability of exactly 0." in done.out
    assert quick("check", path, "--max-error", "0.1").status == PASS


def test_segments_that_are_all_too_small_are_unclear(quick, good):
    done = quick("check", good, "--by", "region", "--min-rows", "301", check=UNCLEAR)
    assert "None of 3 segments has the 301 rows needed for a test" in done.out


def test_segments_that_leave_room_for_the_allowed_error_are_unclear(quick, good, events):
    high = tc.assess(events["hit"], events["score"]).error.high
    done = quick("check", good, "--by", "region", "--max-error", 1.2 * high, check=UNCLEAR)
    assert "the error of segment" in done.out


def test_a_wrong_segment_fails_though_the_total_is_fine(quick, write):
    """Errors of two segments that cancel in the total."""
    rng = np.random.default_rng(5)
    p = rng.uniform(0.3, 0.7, 4000).round(4)
    up = np.arange(4000) % 2 == 0
    y = (rng.random(4000) < np.where(up, p + 0.15, p - 0.15)).astype(int)
    path = rows(write, p, y, team=np.where(up, "red", "blue").tolist())
    assert quick("check", path).status == PASS
    done = quick("check", path, "--by", "team", check=FAIL)
    assert "segment red is too low" in done.out
    assert "segment blue is too high" in done.out
    bounded = quick("check", path, "--by", "team", "--max-error", "0.06", check=FAIL)
    assert "the error of segment red is at least" in bounded.out


def test_with_segments_the_level_holds_for_all_together(quick, good):
    """Half of it is for the total, and half for the segments."""
    content = valid(quick("check", good, "--by", "region", "--json", check=PASS).out)
    assert content["gate"] == {
        "alpha": 0.05,
        "max_error": None,
        "confidence_level": 0.95,
        "used": {"alpha": 0.025, "confidence_level": 0.95},
    }
    assert content["segments"]["alpha"] == 0.025
    sized = valid(quick("check", good, "--by", "region", "--max-error", "0.5", "--json", check=PASS).out)
    assert sized["gate"]["used"] == {"alpha": None, "confidence_level": pytest.approx(1 - 0.05 / 4)}
    assert sized["assessment"]["error"]["confidence_level"] == pytest.approx(1 - 0.05 / 4)
    tests = "Levels of the tests: 0.025 for all rows together and 0.025 for the segments, half of 0.05 each."
    sizes = "Confidence level of each interval: 98.75%, so that all 4 hold together with 95%."
    options = ("--by", "region", "-v")
    assert f"\n{tests}\n" in quick("check", good, *options, check=PASS).out
    assert f"\n{sizes}\n" in quick("check", good, *options, "--max-error", "0.5", check=PASS).out
    assert f"\n{tests} {sizes}\n" in quick("check", good, *options, "--max-error", "0.5", "--alpha", "0.05").out
    assert "Levels of the tests" not in quick("check", good, "--by", "region").out + quick("check", good, "-v").out


@pytest.mark.simulation
def test_calibrated_segments_raise_no_more_alarms_than_the_level(quick, write):
    """Twenty segments of a calibrated forecaster, ten times at level 0.2: 6 alarms or more have a chance of 0.006."""
    alarms = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 800).round(4)
        y = (rng.random(800) < p).astype(int)
        path = rows(write, p, y, g=rng.integers(0, 20, 800).tolist())
        alarms += quick("check", path, "--by", "g", "--alpha", "0.2", "--label", "y", "-q").status == FAIL
    assert alarms < 6


def test_predictions_that_are_too_good_pass_with_a_word(quick, write):
    """Outcomes in the same order as regular predictions: not miscalibrated, but no chance did this."""
    p = np.linspace(0.005, 0.995, 100).repeat(20)
    y = (np.tile(np.arange(20), 100) < np.round(p * 20)).astype(int)
    path = rows(write, p, y)
    assert tc.assess(y, p).kind == "too good"
    closer = "Unusually close: predictions are closer to the outcomes than chance allows."
    assert closer in quick("check", path, check=PASS).out


def test_the_summary_is_appended_as_markdown(quick, good, bad, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("# Before\n")
    quick("check", good, "--summary", summary, check=PASS)
    quick("check", bad, "--summary", summary, check=FAIL)
    text = summary.read_text()
    assert text.startswith("# Before\n")
    assert text.index("✅ Calibration of score") < text.index("❌ Calibration of score")
    assert "| error |" in text


def test_the_summary_shows_names_as_they_are(quick, write, events, tmp_path):
    names = ["<script>alert(1)</script>" if i % 2 else "a|b`c*" for i in range(900)]
    path = write("s.csv", hit=events["hit"], score=events["score"], who=names)
    quick("check", path, "--by", "who", "--summary", tmp_path / "s.md", check=PASS)
    text = (tmp_path / "s.md").read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "a\\|b\\`c\\*" in text


def test_bad_data_is_exit_status_two(quick, tmp_path):
    (tmp_path / "x.csv").write_text("y,p\n1,0.5\n0,74.5\n")
    done = quick("check", "x.csv", "--json", check=WRONG)
    assert done.out == ""
    assert "Percentages? Divide by 100." in done.err


def test_several_models_are_refused(quick, write, events):
    path = write("m.csv", hit=events["hit"], score=events["score"], sure=events["sure"])
    done = quick("check", path, "--proba", "score", "--proba", "sure", check=WRONG)
    assert "`check` takes one model" in done.err


def test_check_of_a_sketch_is_that_of_its_rows(quick, bad):
    quick("sketch", bad, "-o", "bad.sketch", check=0)
    assert json.loads(quick("check", "bad.sketch", "--json", check=FAIL).out)["status"] == "fail"
