"""Plots by sample size: lines are the numbers of the results, and lists that do not fit together are refused."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import truthcal as tc

TRUTH, WRONG = [0.25, 0.75], [0.5, 0.75]


def scores(report, measure="atb", sizes=(10, 100), **options):
    return [tc.expected_score(report, TRUTH, measure, n_rows=n, **options) for n in sizes]


def responses(measure, setting, sizes=(1, 2, 3)):
    return [tc.best_response([0.5] * n, measure, setting=setting) for n in sizes]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_expected_scores_with_their_rate(figure, artists):
    ax = figure.subplots()
    exact = tc.plots.ExpectedScoreDisplay(scores(TRUTH)[::-1]).plot(ax)
    simulated = scores(TRUTH, lambda y, p: tc.atb(y, p), n_resamples=20)
    tc.plots.ExpectedScoreDisplay(simulated, "drawn").plot(ax)
    drawn = artists(ax)
    brier = tc.expected_score(TRUTH, TRUTH, "brier").value
    np.testing.assert_allclose(drawn["expected_score-0-curve"].get_xydata(), [[10, brier / 10], [100, brier / 100]])
    assert exact.exponent == pytest.approx(-1)
    np.testing.assert_array_equal(drawn["expected_score-1-curve"].get_ydata(), [one.value for one in simulated])
    (low, high), _ = (bar[:, 1] for bar in drawn["expected_score-1-interval"].get_segments())
    assert (low + high) / 2 == pytest.approx(simulated[0].value)
    assert (high - low) / 2 == pytest.approx(1.96 * simulated[0].standard_error)
    assert texts(ax)[0] == "atb: rows^-1.00"
    assert texts(ax)[1].startswith("drawn: rows^-")
    assert texts(ax)[2] == "bars: 95% interval of the simulation"
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("rows", "expected score", "log")
    assert exact.table()["n_rows"] == [10, 100]


def test_scores_of_any_sign_have_a_linear_axis(ax):
    display = tc.plots.ExpectedScoreDisplay(scores(TRUTH, lambda y, p: -1.0, n_resamples=20)).plot(ax)
    assert math.isnan(display.exponent)
    assert ax.get_yscale() == "linear"
    assert texts(ax)[0] == "<lambda>"


def test_factors_of_lies(figure, artists):
    ax, in_sequence = figure.subplots(), responses("atb", "sequential")
    tc.plots.BestResponseDisplay(responses("atb", "batch"), "batch").plot(ax)
    display = tc.plots.BestResponseDisplay(in_sequence).plot(ax)
    drawn = artists(ax)
    np.testing.assert_array_equal(drawn["best_response-0-curve"].get_ydata(), [1, 1, 1])
    expected = [one.honest / one.best for one in in_sequence]
    np.testing.assert_allclose(drawn["best_response-1-curve"].get_xydata().T, [[1, 2, 3], expected])
    colors = [to_hex(color) for color in drawn["best_response-1-points"].get_facecolor()]
    line = to_hex(drawn["best_response-1-curve"].get_color())
    assert [color == line for color in colors] == [one.pays for one in in_sequence] == [False, True, True]
    assert texts(ax) == ["batch", "atb, in sequence", "filled: lying gains"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("events", "factor gained by lying")
    figure.draw_without_rendering()
    assert {"1", "1.5", "2"} <= {label.get_text() for label in ax.get_yticklabels()}
    assert display.table()["best"] == [one.best for one in in_sequence]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (list, TypeError, "`scores` must be a sequence of ExpectedScore, each with `n_rows`"),
        (lambda: [tc.expected_score(TRUTH, TRUTH)], TypeError, "each with `n_rows`"),
        (lambda: 3, TypeError, "got 3"),
        (lambda: scores(TRUTH) + scores(TRUTH, "brier", [5]), ValueError, "must have the same measure; got atb, brier"),
        (lambda: scores(TRUTH) + scores(WRONG), ValueError, "must have different `n_rows`; got 10, 100, 10, 100"),
    ],
)
def test_lists_that_do_not_fit_together_are_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        tc.plots.ExpectedScoreDisplay(wrong())


def test_settings_are_not_mixed():
    with pytest.raises(ValueError, match="`responses` must have the same setting; got batch, sequential"):
        tc.plots.BestResponseDisplay(responses("atb", "batch", [1]) + responses("atb", "sequential", [2]))


def test_a_new_figure_has_room_for_the_legend():
    display = tc.plots.BestResponseDisplay(responses("atb", "batch")).plot()
    display.figure_.draw_without_rendering()
    page, legend = display.figure_.bbox, display.ax_.get_legend().get_window_extent()
    assert page.y0 <= legend.y0 < legend.y1 <= display.ax_.get_window_extent().y0
    assert tc.plots.BestResponseDisplay(responses("atb", "batch")).plot(Figure().subplots(), legend=False).ax_
