"""The plot of a recalibration shows what it computes."""

import numpy as np
import pytest
from scipy import special

import truthcal as tc


@pytest.fixture(scope="module")
def fix():
    rng = np.random.default_rng(0)
    truth = rng.beta(0.8, 1.6, 1000)
    return tc.recalibrate(rng.random(1000) < truth, special.expit(1.6 * special.logit(truth)))


def test_line_is_the_recalibration(fix, figure, artists):
    display = tc.plots.RecalibrationDisplay(fix).plot(figure.subplots())
    x, y = artists(display.ax_)["recalibration-0-curve"].get_data()
    assert (y == fix(x)).all()
    assert list(display.frame().columns) == ["y_proba", "recalibrated"]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["temperature"]


def test_stored_recalibration_is_drawn_on_all_probabilities(fix, figure):
    stored = tc.Recalibration.from_json(fix.to_json())
    display = tc.plots.RecalibrationDisplay(stored, name="stored").plot(figure.subplots(), legend=False)
    assert display.table()["y_proba"][[0, -1]].tolist() == [0.0, 1.0]
    assert display.ax_.get_legend() is None


def test_rare_events_have_a_log_scale(figure):
    rng = np.random.default_rng(0)
    p = special.expit(rng.normal(-5, 1, 20_000))
    fix = tc.recalibrate(rng.random(20_000) < p, np.minimum(2 * p, 1), method="platt")
    ax = tc.plots.RecalibrationDisplay(fix).plot(figure.subplots()).ax_
    assert ax.get_xlabel() == "prediction, per 1,000 (log scale)"
    with pytest.raises(ValueError, match=r"`scale` must be one of 'auto', 'linear', 'log', 'logit'; got 'big'"):
        tc.plots.RecalibrationDisplay(fix).plot(ax, scale="big")
