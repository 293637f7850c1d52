"""The gate: exit statuses, reasons, the Markdown summary, and that segments do not raise false alarms."""

import json

import numpy as np
import pytest
from cli.running import valid

import truthcal as tc

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
    assert done.out.startswith("Pass: no miscalibration is shown at level 0.05.\n")
    content = valid(quick("check", good, "--json", check=PASS).out)
    assert (content["status"], content["exit_status"]) == ("pass", 0)


def test_miscalibrated_predictions_fail(quick, bad, events):
    done = quick("check", bad, check=FAIL)
    assert done.out.startswith("Fail: miscalibration is shown at level 0.05 (overconfident, p <= 0.0001).\n")
    content = valid(quick("check", bad, "--json", check=FAIL).out)
    assert content["status"] == "fail"
    assert content["gate"] == {"alpha": 0.05, "max_rms": None, "confidence_level": 0.95}
    assert content["assessment"]["rms"] == tc.assess(events["hit"], events["sure"]).rms


def test_the_level_decides(quick, write):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 400).round(4)
    y = (rng.random(400) < p - 0.05).astype(int)
    path = rows(write, p, y)
    pvalue = tc.assess(y, p).test.greater
    assert 0.0005 < pvalue < 0.04
    assert quick("check", path, "--alpha", 0.99 * pvalue).status == PASS
    assert quick("check", path, "--alpha", pvalue).status == FAIL


def test_max_rms_looks_at_the_lower_bound_and_not_at_significance(quick, bad, events):
    low = tc.assess(events["hit"], events["sure"]).rms_interval.low
    assert low > 0.02
    assert quick("check", bad, "--max-rms", 1.01 * low).status in (PASS, UNCLEAR)
    done = quick("check", bad, "--max-rms", 0.99 * low, check=FAIL)
    assert done.out.startswith("Fail: the error (rms) is at least")
    # An error that is shown, but is smaller than what is allowed, passes; unless a level is named as well.
    assert quick("check", bad, "--max-rms", "0.2").status == PASS
    assert quick("check", bad, "--max-rms", "0.2", "--alpha", "0.05").status == FAIL


def test_the_confidence_level_moves_the_bound(quick, bad, events):
    bounds = [tc.assess(events["hit"], events["sure"], confidence_level=c).rms_interval.low for c in (0.5, 0.999)]
    between = float(np.mean(bounds))
    assert quick("check", bad, "--max-rms", between, "--confidence-level", "0.5").status == FAIL
    assert quick("check", bad, "--max-rms", between, "--confidence-level", "0.999").status != FAIL


@pytest.mark.parametrize("n", [1, 5, 40])
def test_too_few_rows_are_unclear(quick, write, n):
    path = rows(write, np.full(n, 0.5), np.arange(n) % 2)
    done = quick("check", path, check=UNCLEAR)
    assert done.out.startswith("Too little data to tell: ")
    assert valid(quick("check", path, "--json", check=UNCLEAR).out)["status"] == "unclear"


def test_rows_that_could_not_show_the_allowed_error_are_unclear(quick, good, events):
    detectable = tc.assess(events["hit"], events["score"]).detectable
    assert quick("check", good, "--max-rms", 1.1 * detectable).status == PASS
    done = quick("check", good, "--max-rms", detectable / 3, check=UNCLEAR)
    assert "would not have shown: these 900 rows show errors from" in done.out


def test_certain_predictions_that_are_right_pass_and_wrong_ones_fail(quick, write):
    y = np.arange(100) % 2
    assert quick("check", rows(write, y, y), "--proba", "p", "--label", "y").status == PASS
    p = np.where(np.arange(100) == 7, 1 - y, np.where(y, 0.8, 0.2))
    done = quick("check", rows(write, p.astype(float), y), "--alpha", "1e-9", check=FAIL)
    assert "1 outcomes had a predicted chance of exactly 0" in done.out


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
    bounded = quick("check", path, "--by", "team", "--max-rms", "0.06", check=FAIL)
    assert "the error of segment red (rms) is at least" in bounded.out


def test_with_segments_the_level_holds_for_all_together(quick, good):
    """Half of it is for the total, and half for the segments."""
    content = valid(quick("check", good, "--by", "region", "--json", check=PASS).out)
    assert content["gate"]["alpha"] == 0.025
    assert content["segments"]["alpha"] == 0.025


def test_predictions_that_are_too_good_pass_with_a_word(quick, write):
    """Outcomes in the same order as regular predictions: not miscalibrated, but no chance did this."""
    p = np.linspace(0.005, 0.995, 100).repeat(20)
    y = (np.tile(np.arange(20), 100) < np.round(p * 20)).astype(int)
    path = rows(write, p, y)
    assert tc.assess(y, p).kind == "too good"
    assert "Better than any honest forecaster could be" in quick("check", path, check=PASS).out


def test_the_summary_is_appended_as_markdown(quick, good, bad, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("# Before\n")
    quick("check", good, "--summary", summary, check=PASS)
    quick("check", bad, "--summary", summary, check=FAIL)
    text = summary.read_text()
    assert text.startswith("# Before\n")
    assert text.index("✅ Calibration of score") < text.index("❌ Calibration of score")
    assert "| error (rms) |" in text


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
    assert "`check` looks at one model" in done.err


def test_check_of_a_sketch_is_that_of_its_rows(quick, bad):
    quick("sketch", bad, "-o", "bad.sketch", check=0)
    assert json.loads(quick("check", "bad.sketch", "--json", check=FAIL).out)["status"] == "fail"
