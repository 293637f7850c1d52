"""Plots of the weight function of smCal and of blends: lines are the numbers of the measures."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import truthcal as tc

Y, P = [0, 1, 1, 0, 1], [0.2, 0.9, 0.6, 0.3, 0.3]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_weight_function_with_thresholds(figure, artists, data):
    ax = figure.subplots()
    display = tc.plots.SmoothWitnessDisplay.from_predictions(Y, P, n_thresholds=8, ax=ax)
    curve = artists(ax)["witness-0-curve"]
    mean_product = np.mean((np.array(P) - Y) * np.interp(P, *curve.get_data()))
    assert mean_product == pytest.approx(tc.smcal(Y, P))
    step, mean = (line for line in ax.get_lines() if line.get_gid() == "witness-0-band")
    at = mean.get_xdata()
    weight, levels = display.witness(at), np.linspace(-1, 1, 17)[1::2]
    np.testing.assert_allclose(mean.get_ydata(), np.mean(np.sign(weight - levels[:, None] + 1e-15), axis=0))
    assert np.max(np.abs(mean.get_ydata() - weight)) <= 1 / 8
    assert any(np.array_equal(step.get_ydata(), np.where(weight >= level, 1, -1)) for level in levels)
    assert texts(ax)[:2] == ["weight function of smCal", "mean of 8 threshold functions"]
    assert texts(ax)[2].startswith("one of them: sign(weight - ")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted probability", "weight of prediction - outcome")
    tc.plots.SmoothWitnessDisplay.from_predictions(*data(3000), name="other", ax=ax)
    assert not mean.get_visible()
    assert not step.get_visible()
    assert texts(ax) == ["model 1", "other"]
    assert list(display.table()["q"]) == sorted(set(P))


def test_weight_function_of_rare_events_fills_the_axes(ax):
    tc.plots.SmoothWitnessDisplay.from_predictions([0, 1, 0], [0.001, 0.002, 0.004], ax=ax)
    assert ax.get_xlim()[1] < 0.005
    with pytest.raises(ValueError, match="`n_thresholds` must be"):
        tc.plots.SmoothWitnessDisplay.from_predictions(Y, P, n_thresholds=-1)


def test_blends(figure, artists):
    ax, other = figure.subplots(), [0.5, 0.5, 0.9, 0.1, 1.0]
    measures = {"atb": tc.atb, "brier": lambda y, p: np.mean((np.array(y) - p) ** 2)}
    display = tc.plots.BlendDisplay.from_predictions(Y, P, other, measures=measures, n_shares=5, ax=ax)
    share, brier = artists(ax)["blend-1-curve"].get_data()
    blends = [np.array(P) + part * (np.array(other) - P) for part in (0, 0.25, 0.5, 0.75, 1)]
    np.testing.assert_allclose(share, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(brier, [np.mean((p - Y) ** 2) for p in blends])
    np.testing.assert_allclose(artists(ax)["blend-0-curve"].get_ydata(), [tc.atb(Y, p) for p in blends])
    assert texts(ax) == ["atb", "brier"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("share of the second predictions", "error")
    assert list(display.table()) == ["share", "atb", "brier"]
    to_mean = tc.plots.BlendDisplay.from_predictions(Y, P, measures="smcal", n_shares=2, ax=Figure().subplots())
    np.testing.assert_allclose(to_mean.errors["smcal"], [tc.smcal(Y, P), tc.smcal(Y, [np.mean(P)] * 5)])


def test_further_blends_stay_in_view(ax):
    tc.plots.BlendDisplay(np.array([0.0, 1.0]), {"low": np.array([0.1, 0.2])}).plot(ax, legend=False)
    tc.plots.BlendDisplay(np.array([0.0, 1.0]), {"high": np.array([0.5, 0.9])}).plot(ax)
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > 0.9
    assert texts(ax) == ["low", "high"]


def test_blends_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="`second` must have as many rows as `first`, 5; got 1"):
        tc.plots.BlendDisplay.from_predictions(Y, P, [0.5])
    with pytest.raises(ValueError, match="`measures` must be"):
        tc.plots.BlendDisplay.from_predictions(Y, P, measures=["nonsense"])
