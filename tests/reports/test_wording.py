"""What the report says, where nothing needs to be drawn."""

import dataclasses
import math

import numpy as np
import pytest

import truthcal as tc
from truthcal.reports.wording import MEANING, assumptions, model_chips, segment_chip, verdict_lines


def changed(assessment, **fields):
    return dataclasses.replace(assessment, **fields)


def only(models, error):
    """A detectable error of this size, and of one shape."""
    others = dict.fromkeys(("too_low", "too_extreme", "too_timid"), math.nan)
    return changed(models["honest"].detectable, too_high=error, **others)


def moods(assessment, table=None):
    return [chip.mood for chip in model_chips(assessment, table)]


def test_calibrated_with_enough_rows_has_a_green_tick(models):
    (chip,) = model_chips(models["honest"], None)
    assert (chip.text, chip.mood) == ("Calibrated", "good")


@pytest.mark.parametrize(
    ("detectable", "mean_proba", "mood"),
    [
        (0.1, 0.5, "good"),
        (0.1001, 0.5, "unsure"),
        (0.01, 0.02, "good"),
        (0.0101, 0.02, "unsure"),
        (0.0101, 0.98, "unsure"),
        (math.nan, 0.5, "unsure"),
    ],
)
def test_calibrated_has_no_green_tick_where_large_errors_would_stay_hidden(models, detectable, mean_proba, mood):
    assert moods(changed(models["honest"], detectable=only(models, detectable), mean_proba=mean_proba)) == [mood]


def test_impossible_outcomes_have_no_green_tick(models):
    honest = models["honest"]
    assert moods(changed(honest, test=changed(honest.test, impossible=1))) == ["unsure"]


@pytest.mark.parametrize(
    ("kind", "mood"), [("too high", "bad"), ("miscalibrated", "bad"), ("too few rows", "unsure"), ("too good", "odd")]
)
def test_other_kinds_keep_their_mood(models, kind, mood):
    assert moods(changed(models["honest"], kind=kind, detectable=only(models, math.nan))) == [mood]


def test_segment_in_which_nothing_was_found_is_not_praised():
    found = segment_chip("not significant")
    assert (found.text, found.mood) == ("Not significant", "neutral")
    assert (segment_chip("too high").text, segment_chip("too high").mood) == ("Too high", "bad")
    assert segment_chip("too few rows").mood == "unsure"


def test_miscalibrated_segments_are_in_the_verdict(models, one_off):
    assert one_off.verdict.startswith("1 of 4 segments is miscalibrated")
    honest, over = models["honest"], models["overconfident"]
    assert verdict_lines(honest, one_off) == [*honest.verdict.splitlines(), f"But {one_off.verdict}"]
    assert verdict_lines(over, one_off)[-1] == f"And {one_off.verdict}"
    chips = [(chip.text, chip.mood) for chip in model_chips(honest, one_off)]
    assert chips == [("Calibrated", "good"), ("1 of 4 segments off", "bad")]


def test_segments_in_which_nothing_was_found_do_not_change_the_verdict(models, one_off):
    fine = dataclasses.replace(one_off, segments=one_off.segments[1:])
    assert verdict_lines(models["honest"], fine) == models["honest"].verdict.splitlines()
    assert moods(models["honest"], fine) == ["good"]


def test_numbers_have_three_digits(models):
    honest = changed(models["honest"], atb=0.0123456, brier=0.0987654, noise_floor=0.00012345, mean_proba=0.512345)
    shown = {row.name: row for row in honest.evidence(digits=3)}
    assert (shown["ATB"].value, shown["ATB"].text) == (0.0123456, "0.0123")
    assert shown["Brier score"].text == "0.0988"
    assert shown["ATB"].explanation.startswith("chance alone gives 0.000123; ")
    assert "mean prediction 0.512, outcome" in shown["bias"].explanation


def test_meaning_of_the_error_holds():
    """Never smaller than the bias, for predictions that are all off by 0.05 and for calibrated ones."""
    assert "never smaller than the bias" in MEANING["error"]
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.05):
        for _ in range(20):
            p = rng.uniform(0.1, 0.9, 200)
            y = rng.random(200) < p - shift
            assert tc.error_size(y, p).estimate >= abs(np.mean(p - y)) * (1 - 1e-12)


def test_selected_and_noisy_numbers_say_so():
    assert "choosing the worst one does not exaggerate it" in MEANING["worst range"]
    assert "include noise" in MEANING["Brier score"]


@pytest.mark.parametrize(("n", "rows"), [(1, "from one row with a weight"), (3, "from 3 rows with a weight")])
def test_rows_are_counted_in_good_english(n, rows):
    first, *_, last = assumptions({"": (tc.assess([1] * n, [0.3] * n), None)})
    assert rows in first
    if n == 1:
        assert last == "The error has no interval: an interval needs two rows."
