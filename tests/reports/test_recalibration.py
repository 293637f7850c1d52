"""The report of a recalibration: the decision, the scores before and after, and the curve."""

import re

import numpy as np
import pytest
from scipy import special

import truthcal as tc


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    truth = rng.beta(0.8, 1.6, 900)
    return (rng.random(900) < truth).astype(int), truth


def text_of(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page.html).split())


def test_page_has_words_scores_and_curve(rows):
    y, truth = rows
    fix = tc.recalibrate(y, special.expit(1.8 * special.logit(truth)))
    page = tc.report(fix)
    assert page.title == "Recalibration of predictions"
    assert fix.changes
    assert 'id="recalibration"' in page.html
    text = text_of(page)
    assert fix.verdict.splitlines()[0] in text
    assert "Third: 300 rows, drawn at random; for them, the map was fitted to the others." in text
    assert "The recalibrated probability for each prediction, by the map that is fitted to all rows." in text
    assert "Each has 300 rows." in text  # before and after are of the same rows


def test_page_of_predictions_that_stay_as_they_are(rows):
    fix = tc.recalibrate(*rows)
    assert not fix.changes
    text = text_of(tc.report(fix, title="Nothing to do"))
    assert "Predictions stay as they are." in text
    assert "The recalibrated probability for each prediction" not in text


def test_stored_recalibration_has_no_assessments(rows):
    stored = tc.Recalibration.from_json(tc.recalibrate(*rows).to_json())
    with pytest.raises(ValueError, match=r"`y_true` is a recalibration that was read from a file.* Pass the one that"):
        tc.report(stored)
